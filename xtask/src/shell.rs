//! Starting other programs, with an error that says what was started and why it was needed.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

/// Returns cargo, the one that runs us if there is one.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Returns the folder builds go to; scratch files of ours go there too.
pub(crate) fn target_dir(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir))
}

/// Runs a command to its end and fails if it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = format!("{command:?}");
    let status = command.status().with_context(|| format!("starting {shown}"))?;
    if !status.success() {
        bail!("{shown}: {status}");
    }
    Ok(())
}

/// Runs a command and returns what it printed; its errors go to ours.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let shown = format!("{command:?}");
    let output =
        command.stderr(Stdio::inherit()).output().with_context(|| format!("starting {shown}"))?;
    if !output.status.success() {
        bail!("{shown}: {}", output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Tells whether a program can be started.
pub(crate) fn has(program: &str) -> bool {
    let found = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    found.is_ok()
}

/// Makes sure that a program is there, by installing a Debian package when we may.
pub(crate) fn need(program: &str, package: &str) -> Result<()> {
    if has(program) {
        return Ok(());
    }
    println!("xtask: `{program}` is missing: installing {package}");
    let install = || -> Result<()> {
        let apt = |args: &[&str]| {
            let mut command = Command::new("apt-get");
            run(command.args(args).env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null()))
        };
        apt(&["update", "-qq"])?;
        apt(&["install", "-y", "-qq", "--no-install-recommends", package])
    };
    install().with_context(|| format!("install `{program}` (Debian package {package}) yourself"))
}
