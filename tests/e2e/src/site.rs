//! A site: a master and its minions, each in a folder that stands for `/`, ours or genuine.
//!
//! Daemons run in process groups of their own and are killed when the site is dropped (genuine ones
//! have many processes). When a test fails the ends of their logs are printed. Everything listens on
//! loopback, on ports below those the kernel gives to clients.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill, killpg},
    unistd::Pid,
};
use serde_json::{Map, Value};

use crate::{Ran, free_port, genuine, halite};

/// How long anything may take before it counts as failed. Genuine daemons need long on a busy
/// machine, and a test that passes does not wait for this.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// Returns a limit for something that has to be quick: longer where this machine is slow at the
/// moment. Taken as late as possible, since neighbours come and go.
pub fn at_most(seconds: u64) -> Duration {
    // What a program needs to do nothing, on a machine with nothing else to do.
    const USUAL: Duration = Duration::from_millis(30);
    let start = || {
        let begun = Instant::now();
        let _ = Command::new(halite()).arg("--version").stdout(Stdio::null()).status();
        begun.elapsed()
    };
    let slowest = (0..3).map(|_| start()).max().unwrap_or(USUAL);
    let factor = (slowest.as_secs_f64() / USUAL.as_secs_f64()).clamp(1.0, 30.0);
    Duration::from_secs(seconds).mul_f64(factor)
}

/// Whose program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Make {
    Ours,
    /// Genuine, of this release.
    Salt(&'static str),
}

impl Make {
    /// Returns a program by its name in Salt.
    pub fn program(self, name: &str) -> Command {
        match self {
            Self::Ours => {
                let mut command = Command::new(halite());
                command.arg(name.strip_prefix("salt-").unwrap_or(name));
                command
            }
            Self::Salt(version) => Command::new(genuine::programs(version).join(name)),
        }
    }
}

struct Daemon {
    child: Child,
}

impl Daemon {
    fn group(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).expect("process ids are small"))
    }

    fn kill(&mut self) {
        let _ = killpg(self.group(), Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

/// A master and its minions.
pub struct Site {
    folder: tempfile::TempDir,
    pub publish: u16,
    pub ret: u16,
    make: Make,
    daemons: BTreeMap<String, Daemon>,
}

impl Site {
    /// Returns a site whose master is of this make; `more` is added to its configuration.
    pub fn new(make: Make, more: &str) -> Self {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let (publish, ret) = (free_port(), free_port());
        let site = Self { folder, publish, ret, make, daemons: BTreeMap::new() };
        let root = site.path("").display().to_string();
        let config = format!(
            "root_dir: {root}/master\ninterface: 127.0.0.1\npublish_port: {publish}\n\
             ret_port: {ret}\nuser: root\nworker_threads: 2\nfile_recv: True\n\
             file_roots: {{base: [{root}/srv/salt]}}\npillar_roots: {{base: [{root}/srv/pillar]}}\n"
        );
        site.write("master/etc/master", with(&config, more));
        site.write("srv/salt/.keep", "");
        site.write("srv/pillar/.keep", "");
        site
    }

    /// Returns a path of the site.
    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Writes a file, with the folders it needs.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("files lie in folders")).expect("a folder");
        fs::write(path, content).expect("a file");
    }

    /// Returns a file's text, empty if there is none.
    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_default()
    }

    /// Writes a minion's configuration.
    pub fn configure(&self, id: &str, more: &str) {
        let config = format!(
            "id: {id}\nroot_dir: {}\nmaster: 127.0.0.1\nmaster_port: {}\nuser: root\n\
             acceptance_wait_time: 1\nrecon_default: 100\nrecon_max: 1000\n",
            self.path(id).display(),
            self.ret
        );
        self.write(&format!("{id}/etc/minion"), with(&config, more));
    }

    /// Starts the master.
    pub fn start_master(&mut self) {
        self.start("master", self.make, "salt-master", &[]);
    }

    /// Configures and starts a minion.
    pub fn minion(&mut self, id: &str, make: Make, more: &str) {
        self.configure(id, more);
        self.start(id, make, "salt-minion", &[]);
    }

    /// Configures and starts a proxy minion. All of a site share the machine `proxies`.
    pub fn proxy(&mut self, id: &str, make: Make, more: &str) {
        let config = format!(
            "root_dir: {}\nmaster: 127.0.0.1\nmaster_port: {}\npublish_port: {}\nuser: root\n\
             acceptance_wait_time: 1\nrecon_default: 100\nrecon_max: 1000\n",
            self.path("proxies").display(),
            self.ret,
            self.publish
        );
        // Another one may be reading it.
        if self.read("proxies/etc/proxy") != config {
            self.write("proxies/etc/proxy", config);
        }
        self.write(&format!("proxies/etc/proxy.d/{id}/own.conf"), more);
        self.start_on("proxies", id, make, "salt-proxy", &[], &["--proxyid", id]);
    }

    /// Starts a daemon of the machine `name`. Its log is `<name>.log`.
    pub fn start(&mut self, name: &str, make: Make, program: &str, wrapper: &[&str]) {
        self.start_on(name, name, make, program, wrapper, &[]);
    }

    fn start_on(
        &mut self,
        machine: &str,
        name: &str,
        make: Make,
        program: &str,
        wrapper: &[&str],
        args: &[&str],
    ) {
        let log = self.path(&format!("{name}.log"));
        let log = fs::OpenOptions::new().create(true).append(true).open(log).expect("a log");
        let program = make.program(program);
        let mut command = match wrapper {
            [] => program,
            [first, rest @ ..] => {
                let mut command = Command::new(first);
                command.args(rest).arg(program.get_program()).args(program.get_args());
                command
            }
        };
        let child = command
            .arg("-c")
            .arg(self.path(machine).join("etc"))
            .args(["-l", "info"])
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.path())
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a second handle"))
            .stderr(log)
            .process_group(0)
            .spawn()
            .expect("a daemon starts");
        self.daemons.insert(name.to_owned(), Daemon { child });
    }

    /// Starts a minion that was configured before.
    pub fn start_minion(&mut self, id: &str, make: Make) {
        self.start(id, make, "salt-minion", &[]);
    }

    /// Kills a daemon as a power cut would.
    pub fn kill(&mut self, name: &str) {
        self.daemons.remove(name).unwrap_or_else(|| panic!("{name} does not run")).kill();
    }

    /// Asks a daemon to end and waits for it; returns its exit code.
    pub fn stop(&mut self, name: &str) -> Option<i32> {
        let mut daemon = self.daemons.remove(name).unwrap_or_else(|| panic!("{name} does not run"));
        let _ = kill(daemon.group(), Signal::SIGTERM);
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Ok(Some(status)) = daemon.child.try_wait() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        daemon.kill();
        None
    }

    /// Tells whether a daemon ended by itself.
    pub fn has_ended(&mut self, name: &str) -> bool {
        let daemon = self.daemons.get_mut(name).unwrap_or_else(|| panic!("{name} does not run"));
        matches!(daemon.child.try_wait(), Ok(Some(_)))
    }

    /// Sends a signal to a daemon.
    pub fn signal(&self, name: &str, signal: Signal) {
        let daemon = self.daemons.get(name).unwrap_or_else(|| panic!("{name} does not run"));
        killpg(daemon.group(), signal).expect("it can be signalled");
    }

    /// Returns a daemon's process id.
    pub fn pid(&self, name: &str) -> u32 {
        self.daemons.get(name).unwrap_or_else(|| panic!("{name} does not run")).child.id()
    }

    /// Runs a program of the given make on a machine of the site.
    pub fn run_as(&self, make: Make, program: &str, machine: &str, args: &[&str]) -> Ran {
        let mut command = make.program(program);
        command.arg("-c").arg(self.path(machine).join("etc")).args(args);
        self.command(&mut command)
    }

    /// Runs any command at the site.
    pub fn command(&self, command: &mut Command) -> Ran {
        crate::run_in(self.folder.path(), command)
    }

    /// Runs one of the master's programs, of its own make.
    pub fn run(&self, program: &str, args: &[&str]) -> Ran {
        self.run_as(self.make, program, "master", args)
    }

    /// Runs `salt`.
    pub fn salt(&self, args: &[&str]) -> Ran {
        self.run("salt", args)
    }

    /// Runs `salt` and returns what each minion gave.
    pub fn ask(&self, args: &[&str]) -> Map<String, Value> {
        self.ask_as(self.make, args)
    }

    /// As [`Site::ask`], with the command line of another make.
    pub fn ask_as(&self, make: Make, args: &[&str]) -> Map<String, Value> {
        let args = [args, &["--out=json", "-t", "60"]].concat();
        let ran = self.run_as(make, "salt", "master", &args);
        documents(&ran.out)
    }

    /// Runs a runner and returns what it gave.
    pub fn runner(&self, args: &[&str]) -> Value {
        let ran = self.run("salt-run", &[args, &["--out=json"]].concat());
        serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
    }

    /// Waits for keys to be shown and accepts them all.
    pub fn accept(&self, ids: &[&str]) {
        let are_in = |folder: &str| {
            let keys = self.path("master/etc/salt/pki/master").join(folder);
            ids.iter().filter(|id| keys.join(id).exists()).count()
        };
        until("the keys are shown", || are_in("minions_pre") == ids.len());
        self.run("salt-key", &["-A", "-y"]).code(0);
        if self.make == Make::Ours {
            return;
        }
        // A genuine master on a busy machine may put a key back that a minion showed meanwhile.
        until("the keys are accepted", || {
            let done = are_in("minions") == ids.len() && are_in("minions_pre") == 0;
            if !done {
                self.run("salt-key", &["-A", "-y"]).code(0);
            }
            done
        });
    }

    /// Waits until these minions answer.
    pub fn answer(&self, ids: &[&str]) {
        let list = ids.join(",");
        let mut last = Map::new();
        let started = Instant::now();
        while started.elapsed() < PATIENCE {
            let ran = self.salt(&["-L", &list, "test.ping", "--out=json", "-t", "5"]);
            last = documents(&ran.out);
            if ids.iter().all(|id| last.get(*id) == Some(&Value::Bool(true))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        panic!("not everybody answers: {last:?}");
    }

    /// Prints the ends of all logs.
    pub fn show_logs(&self) {
        crate::show_logs(self.folder.path());
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.show_logs();
        }
        for daemon in self.daemons.values_mut() {
            daemon.kill();
        }
    }
}

/// Returns a configuration with other lines, which win over lines of the same option.
fn with(config: &str, more: &str) -> String {
    let option = |line: &str| line.split_once(':').map(|(name, _)| name.to_owned());
    let own: Vec<_> = more.lines().filter_map(option).collect();
    let kept = config.lines().filter(|line| option(line).is_none_or(|name| !own.contains(&name)));
    kept.chain(more.lines()).flat_map(|line| [line, "\n"]).collect()
}

/// Waits until something is so.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Returns the entries of all JSON documents in a text: one per minion, as they came.
pub fn documents(text: &str) -> Map<String, Value> {
    let mut all = Map::new();
    // Genuine Salt mixes lines for people into it ("Minion did not return").
    let start = text.find('{').unwrap_or(0);
    for document in serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>() {
        match document {
            Ok(Value::Object(entries)) => all.extend(entries),
            Ok(_) => {}
            Err(_) => break,
        }
    }
    all
}
