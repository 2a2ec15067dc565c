//! Genuine Salt, and what our own Python package needs, installed by pip into virtual environments in
//! the build folder when it is missing.
//!
//! The first use takes a minute or two and the network; later ones find `oracle/<version>` ready. A
//! lock lets one process install while others wait. An environment counts as ready only when its
//! stamp names the packages it was made from, so a half-made one is made anew.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::{Mutex, PoisonError},
};

/// The releases we must get along with.
pub const VERSIONS: [&str; 3] = ["3006.28", "3007.15", "3008.3"];
/// The one we are compatible with.
pub const NEWEST: &str = VERSIONS[2];
/// Where Python's own `venv` lacks pip, as on a bare Debian.
const DEBIAN: [&str; 2] = ["python3", "python3-venv"];

/// Returns the folder with the programs of a release, which is installed if need be.
pub fn programs(version: &str) -> PathBuf {
    environment(version, &format!("salt=={version}"))
}

/// Returns an interpreter that has what our own client package needs, and no Salt. It is of the version
/// of the `python3` that comes first in `PATH`, so that the tests can be run with several.
pub fn client_python() -> PathBuf {
    let version = "import sys; print('%d.%d' % sys.version_info[:2])";
    let said = run(Command::new("python3").args(["-c", version])).expect("python3 can be started");
    let version = String::from_utf8_lossy(&said.stdout).trim().to_owned();
    environment(&format!("client-{version}"), "pyyaml").join("python")
}

/// Returns the folder with the programs of an environment that has a package, made if need be.
pub fn environment(name: &str, wanted: &str) -> PathBuf {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _here = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = build_folder().join("oracle");
    fs::create_dir_all(&folder).expect("a folder for genuine Salt");
    let lock = File::create(folder.join(".lock")).expect("a lock file");
    lock.lock().expect("file locks work here");
    let venv = folder.join(name);
    let stamp = venv.join("halite-stamp");
    if fs::read_to_string(&stamp).ok().as_deref() != Some(wanted) {
        install(&venv, wanted);
        fs::write(&stamp, wanted).expect("a stamp");
    }
    venv.join("bin")
}

/// Returns an interpreter that has what Salt needs (zmq, msgpack, cryptography, aiohttp).
pub fn python() -> PathBuf {
    programs(NEWEST).join("python")
}

/// …/debug/deps/test-0123 → …
fn build_folder() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own file");
    test.ancestors().nth(3).expect("tests lie three folders deep").to_owned()
}

fn install(venv: &Path, package: &str) {
    eprintln!("installing {package} into {}", venv.display());
    if venv.exists() {
        fs::remove_dir_all(venv).expect("a half-made environment can be removed");
    }
    let make = || run(Command::new("python3").args(["-m", "venv"]).arg(venv));
    if make().is_err() {
        let installed = apt(&DEBIAN);
        installed.expect("Debian packages python3 and python3-venv are there or can be installed");
        let _ = fs::remove_dir_all(venv);
        make().expect("python3 makes a virtual environment");
    }
    let pip = venv.join("bin/pip");
    let args = ["install", "--quiet", "--disable-pip-version-check", package];
    let fetch = || run(Command::new(&pip).args(args));
    if fetch().is_err() {
        // One of its dependencies is compiled: that takes Python's headers.
        apt(&["python3-dev", "gcc", "libc6-dev"]).expect("what pip compiles with can be installed");
        fetch().expect("pip installs it");
    }
}

/// Installs Debian packages.
pub(crate) fn apt(packages: &[&str]) -> Result<(), String> {
    let apt = |args: &[&str]| {
        run(Command::new("apt-get").args(args).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    apt(&["update", "-qq"])?;
    apt(&[&["install", "-y", "-qq", "--no-install-recommends"], packages].concat())?;
    Ok(())
}

fn run(command: &mut Command) -> Result<Output, String> {
    let shown = format!("{command:?}");
    let output = command.output().map_err(|error| format!("{shown}: {error}"))?;
    if output.status.success() {
        return Ok(output);
    }
    Err(format!("{shown}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)))
}
