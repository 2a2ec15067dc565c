//! A fleet on one machine: a real master and real minions on loopback ports of their own.

use std::{
    fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::{Machine, Ran, free_port, halite};

/// How long anything may take before a test gives up.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// A master with its minions. Everything ends when it is dropped.
pub struct Fleet {
    pub machine: Machine,
    publish_port: u16,
    ret_port: u16,
    master: Option<Child>,
    minions: Vec<(String, Child)>,
}

/// Waits until something is so.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

impl Fleet {
    /// Writes a master's configuration, with more of it given, and starts it.
    pub fn new(config: &str) -> Self {
        let mut fleet = Self::prepared(config);
        fleet.start_master();
        fleet
    }

    /// As [`Fleet::new`], but nothing runs yet.
    pub fn prepared(config: &str) -> Self {
        let machine = Machine::new();
        let (publish_port, ret_port) = (free_port(), free_port());
        let root = machine.path("").display().to_string();
        let root = root.trim_end_matches('/');
        let config = config.replace("{root}", root);
        let text = format!(
            "id: boss_master\nroot_dir: {root}\ninterface: 127.0.0.1\npublish_port: {publish_port}\n\
             ret_port: {ret_port}\nfile_roots: {{base: [{root}/srv/salt]}}\n\
             pillar_roots: {{base: [{root}/srv/pillar]}}\nlog_level_logfile: info\n{config}\n"
        );
        machine.write("etc/salt/master", &text);
        Self { machine, publish_port, ret_port, master: None, minions: Vec::new() }
    }

    pub fn config_dir(&self) -> PathBuf {
        self.machine.path("etc/salt")
    }

    fn spawn(&self, program: &str, config: &str, log: &str) -> Child {
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.machine.path(log))
            .expect("a log");
        Command::new(halite())
            .args([program, "--config-dir"])
            .arg(self.machine.path(config))
            .args(["--log-level", "info"])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.machine.path(""))
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn()
            .expect("the program starts")
    }

    /// Starts the master and waits until it listens.
    pub fn start_master(&mut self) {
        self.master = Some(self.spawn("master", "etc/salt", "master.log"));
        let socket = self.machine.path("var/run/salt/master/halite.sock");
        until("the master listens", || std::os::unix::net::UnixStream::connect(&socket).is_ok());
    }

    /// Ends the master as a power failure would.
    pub fn kill_master(&mut self) {
        if let Some(mut master) = self.master.take() {
            let _ = master.kill();
            let _ = master.wait();
        }
    }

    /// Waits until the master has died by itself.
    #[track_caller]
    pub fn wait_for_death(&mut self) {
        let mut master = self.master.take().expect("it was started");
        until("the master dies", || matches!(master.try_wait(), Ok(Some(_))));
    }

    /// Starts a minion, with more of its configuration given. Its key is not accepted by this.
    pub fn start_minion(&mut self, id: &str, config: &str) {
        let root = self.machine.path(&format!("minions/{id}"));
        fs::create_dir_all(&root).expect("a folder");
        let folder = format!("etc/salt-{id}");
        let text = format!(
            "id: {id}\nroot_dir: {}\nmaster: 127.0.0.1\npublish_port: {}\nmaster_port: {}\n\
             acceptance_wait_time: 1\n{config}\n",
            root.display(),
            self.publish_port,
            self.ret_port
        );
        self.machine.write(&format!("{folder}/minion"), &text);
        let child = self.spawn("minion", &folder, &format!("{id}.log"));
        self.minions.push((id.to_owned(), child));
    }

    /// Starts a minion and waits until it answers; the master must accept keys by itself.
    pub fn minion(&mut self, id: &str, config: &str) {
        self.start_minion(id, config);
        self.wait_for(id);
    }

    /// Waits until a minion answers.
    #[track_caller]
    pub fn wait_for(&self, id: &str) {
        until(&format!("{id} answers"), || {
            self.salt(&[id, "test.ping", "--out=json"]).out.contains("true")
        });
    }

    fn program(&self, program: &str, args: &[&str]) -> Ran {
        let mut command = Command::new(halite());
        command.arg(program).arg("--config-dir").arg(self.config_dir()).args(args);
        self.machine.run(&mut command)
    }

    /// Runs `salt`.
    pub fn salt(&self, args: &[&str]) -> Ran {
        self.program("salt", args)
    }

    /// Runs `salt-run`.
    pub fn run(&self, args: &[&str]) -> Ran {
        self.program("run", args)
    }

    /// Runs `salt-key`.
    pub fn key(&self, args: &[&str]) -> Ran {
        self.program("key", args)
    }

    /// Starts `salt-run` without waiting for it.
    pub fn start_run(&self, args: &[&str]) -> Child {
        self.start("run", args)
    }

    /// Starts a program without waiting for it.
    pub fn start(&self, program: &str, args: &[&str]) -> Child {
        Command::new(halite())
            .arg(program)
            .arg("--config-dir")
            .arg(self.config_dir())
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts")
    }

    /// Runs `salt-call` as a minion.
    pub fn call(&self, id: &str, args: &[&str]) -> Ran {
        let mut command = Command::new(halite());
        command.arg("call").arg("--config-dir").arg(self.machine.path(&format!("etc/salt-{id}")));
        self.machine.run(command.args(args))
    }

    /// Returns the master's log.
    pub fn log(&self) -> String {
        self.machine.read("master.log").unwrap_or_default()
    }
}

impl Fleet {
    /// Asks the master to end, and waits for it.
    pub fn stop_master(&mut self) {
        let Some(mut master) = self.master.take() else { return };
        let pid = nix::unistd::Pid::from_raw(i32::try_from(master.id()).expect("small"));
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
        until("the master ends", || matches!(master.try_wait(), Ok(Some(_))));
    }

    /// Follows the master's events from now on.
    pub fn follow(&self) -> Followed {
        let path = self.machine.path("events.log");
        let log = fs::File::create(&path).expect("a file");
        let child = Command::new(halite())
            .arg("run")
            .arg("--config-dir")
            .arg(self.config_dir())
            .args(["state.event", "--out=quiet"])
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let followed = Followed { child, path };
        // It has to listen before anything is expected of it.
        until("events are followed", || {
            self.run(&["event.send", "e2e/probe"]);
            followed.text().contains("e2e/probe")
        });
        followed
    }
}

/// Events as `salt-run state.event` prints them.
pub struct Followed {
    child: Child,
    path: PathBuf,
}

impl Followed {
    /// Returns what was printed so far.
    pub fn text(&self) -> String {
        fs::read_to_string(&self.path).unwrap_or_default()
    }

    /// Returns the tags that begin with a text, in order.
    pub fn tags(&self, begin: &str) -> Vec<String> {
        let text = self.text();
        // The last line may not be complete.
        let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        lines
            .filter_map(|line| line.split_once('\t'))
            .filter(|(tag, _)| tag.starts_with(begin))
            .map(|(tag, _)| tag.to_owned())
            .collect()
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        if std::thread::panicking() {
            crate::show_logs(&self.machine.path(""));
        }
        for (_, minion) in &mut self.minions {
            let _ = minion.kill();
            let _ = minion.wait();
        }
        self.kill_master();
    }
}
