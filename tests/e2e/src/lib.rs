//! What end-to-end tests share: the built executable, a machine of their own, and what came of a
//! command.
//!
//! A [`Machine`] is a scratch folder that stands for `/`: configuration in `etc/salt`, a state tree
//! in `srv/salt`, everything the program writes below it. Commands get no environment but `PATH`, so
//! that the developer's machine does not leak in. The tests prove wiring; details belong to the
//! crates. A [`site::Site`] is a master with minions, ours or [`genuine`].

#![expect(clippy::print_stderr, reason = "what tests have to say is for people")]

pub mod genuine;
pub mod site;

pub mod fleet;

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicU16, Ordering},
        mpsc,
    },
};

/// Returns the executable under test: `HALITE_BIN`, or the one cargo builds.
pub fn halite() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| std::env::var_os("HALITE_BIN").map_or_else(build, PathBuf::from))
}

/// Builds it: test packages cannot name another package's executable as a dependency.
fn build() -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--package", "halite"])
        .current_dir(root())
        .status()
        .expect("cargo can be started");
    assert!(status.success(), "halite does not build");
    let test = std::env::current_exe().expect("a test knows its own file");
    // …/debug/deps/test-0123 → …/debug/halite
    test.ancestors().nth(2).expect("tests lie two folders deep").join("halite")
}

/// Returns the root of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("two folders below the root")
}

/// Returns where a program is, after installing the Debian packages that bring it if it is missing.
/// Fails where that cannot be done: a test that cannot test must not pass.
pub fn need(program: &str, packages: &[&str]) -> PathBuf {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let find = || {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
        folders.map(|folder| folder.join(program)).find(|path| path.is_file())
    };
    if let Some(path) = find() {
        return path;
    }
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if find().is_none() {
        eprintln!("installing {packages:?} for {program}");
        genuine::apt(packages).unwrap_or_else(|error| panic!("{program} is needed: {error}"));
    }
    find().unwrap_or_else(|| panic!("{packages:?} are installed, and there is no {program}"))
}

/// Returns a port nobody listens on, below those the kernel gives to clients: no connection made
/// between here and the daemon's start can take it.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Tests are processes of their own, with numbers side by side: each gets a stretch for itself.
    let start = u16::try_from(std::process::id() % 550 * 20).unwrap_or(0);
    loop {
        let port = 21_000 + (start + NEXT.fetch_add(1, Ordering::Relaxed)) % 11_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// A mail server that takes everything; what it was told goes to the channel when a mail has ended.
pub fn mail_server() -> (u16, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let Ok(reading) = stream.try_clone() else { return };
            let (mut heard, mut in_data) = (String::new(), false);
            let _ = stream.write_all(b"220 ready\r\n");
            for line in BufReader::new(reading).lines() {
                let Ok(line) = line else { break };
                heard.push_str(&line);
                heard.push('\n');
                let answer: &[u8] = match line.as_str() {
                    "." => {
                        in_data = false;
                        b"250 taken\r\n"
                    }
                    _ if in_data => continue,
                    "DATA" => {
                        in_data = true;
                        b"354 go on\r\n"
                    }
                    "QUIT" => b"221 bye\r\n",
                    _ => b"250 fine\r\n",
                };
                let _ = stream.write_all(answer);
            }
            let _ = tell.send(heard);
        }
    });
    (port, told)
}

/// A server that ends with the test.
pub struct Server(pub std::process::Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Prints the ends of all logs in a folder: of daemons that run, and of those that ended.
pub fn show_logs(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    for path in paths {
        if !path.extension().is_some_and(|end| end == "log" || end == "said") {
            continue;
        }
        let log = fs::read(&path).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<_> = log.lines().collect();
        let tail = &lines[lines.len().saturating_sub(80)..];
        let name = path.file_stem().unwrap_or_default().display();
        eprintln!("── log of {name}\n{}", tail.join("\n"));
    }
}

/// A scratch folder that stands for a machine.
pub struct Machine {
    folder: tempfile::TempDir,
}

impl Default for Machine {
    fn default() -> Self {
        Self::new()
    }
}

impl Machine {
    /// Returns a machine with a masterless minion's configuration and an empty tree.
    pub fn new() -> Self {
        let machine = Self { folder: tempfile::tempdir().expect("a scratch folder can be made") };
        let config = format!(
            "id: e2e\nroot_dir: {root}\nfile_client: local\n\
             file_roots: {{base: [{root}/srv/salt]}}\npillar_roots: {{base: [{root}/srv/pillar]}}\n",
            root = machine.path("").display()
        );
        machine.write("etc/salt/minion", &config);
        machine.write("srv/salt/.keep", "");
        machine.write("srv/pillar/.keep", "");
        machine
    }

    /// Returns a path on the machine.
    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Writes a file, with the folders it needs.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("files lie in folders")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    /// Returns a file's text; None when it is not there.
    pub fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.path(path)).ok()
    }

    /// Runs `halite` with these arguments.
    pub fn halite(&self, args: &[&str]) -> Ran {
        let mut command = Command::new(halite());
        command.args(args);
        self.run(&mut command)
    }

    /// Runs `salt-call` with this machine's configuration.
    pub fn call(&self, args: &[&str]) -> Ran {
        let mut command = Command::new(halite());
        command.arg("call").arg("--config-dir").arg(self.path("etc/salt")).args(args);
        self.run(&mut command)
    }

    /// Runs a command in the machine's folder, with nothing but `PATH` in its environment.
    pub fn run(&self, command: &mut Command) -> Ran {
        run_in(self.folder.path(), command)
    }
}

/// Runs a command in a folder, with nothing but `PATH` in its environment.
pub fn run_in(folder: &Path, command: &mut Command) -> Ran {
    let shown = format!("{command:?}");
    let output = command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", folder)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{shown}: {error}"));
    Ran {
        shown,
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// What came of a command.
#[derive(Debug)]
pub struct Ran {
    pub shown: String,
    /// None: killed by a signal.
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ran {
    /// Fails unless it ended with this code.
    #[track_caller]
    pub fn code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}\n{}\n{}", self.shown, self.out, self.err);
        self
    }

    /// Fails unless standard output holds the text.
    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        assert!(self.out.contains(text), "{}: no {text:?} in\n{}", self.shown, self.out);
        self
    }

    /// Fails unless standard error holds the text.
    #[track_caller]
    pub fn complains(self, text: &str) -> Self {
        assert!(self.err.contains(text), "{}: no {text:?} in\n{}", self.shown, self.err);
        self
    }
}
