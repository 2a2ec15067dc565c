//! A master, a minion and the programs of people who use them: real processes, real sockets.

use std::{
    fs,
    os::unix::net::UnixDatagram,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use halite_e2e::{Machine, Ran, free_port, halite};

const PATIENCE: Duration = Duration::from_secs(300);

/// A master with one minion.
struct Fleet {
    machine: Machine,
    master: Option<Child>,
    minion: Option<Child>,
    notices: UnixDatagram,
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain for: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    // The shell has it built in; the program of that name may be missing.
    let mut kill = Command::new("sh");
    let sent = kill.args(["-c", "kill \"$0\" \"$1\"", name, &pid]).status();
    assert!(sent.expect("a shell").success(), "kill {name} {pid}");
}

impl Fleet {
    fn new(more: &str) -> Self {
        let machine = Machine::new();
        let (requests, publications) = (free_port(), free_port());
        let root = machine.path("").display().to_string();
        let root = root.trim_end_matches('/');
        let master = format!(
            "root_dir: {root}\nid: boss\ninterface: 127.0.0.1\nret_port: {requests}\n\
             publish_port: {publications}\nsock_dir: {root}/run\ntoken_file: {root}/token\n\
             file_roots: {{base: [{root}/srv/salt]}}\npillar_roots: {{base: [{root}/srv/pillar]}}\n\
             log_file: {root}/master.log\nlog_level_logfile: warning\ntimeout: 2\n\
             gather_job_timeout: 2\n{more}"
        );
        machine.write("etc/salt/master", &master);
        let minion = format!(
            "root_dir: {root}/m\nid: web1\nmaster: 127.0.0.1\nmaster_port: {requests}\n\
             acceptance_wait_time: 1\nlog_file: {root}/minion.log\ngrains: {{role: web}}\n"
        );
        machine.write("m/etc/salt/minion", &minion);
        let notices = UnixDatagram::bind(machine.path("notify.sock")).expect("a socket");
        notices.set_read_timeout(Some(Duration::from_secs(1))).expect("a time limit");
        let mut fleet = Self { machine, master: None, minion: None, notices };
        fleet.start_master();
        fleet
    }

    fn daemon(&self, name: &str, config: &str) -> Child {
        let said = fs::File::create(self.machine.path(&format!("{name}.said"))).expect("a file");
        Command::new(halite())
            .args([name, "-c"])
            .arg(self.machine.path(config))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.machine.path(""))
            // Minions have words for a service manager too; these tests listen to the master's.
            .envs((name == "master").then(|| ("NOTIFY_SOCKET", self.machine.path("notify.sock"))))
            .current_dir(self.machine.path(""))
            .stdin(Stdio::null())
            .stdout(said.try_clone().expect("a file"))
            .stderr(said)
            .spawn()
            .expect("a daemon can be started")
    }

    fn start_master(&mut self) {
        self.master = Some(self.daemon("master", "etc/salt"));
        assert!(self.notice().starts_with("READY=1"), "it says when it serves");
    }

    fn start_minion(&mut self) {
        self.minion = Some(self.daemon("minion", "m/etc/salt"));
    }

    fn notice(&self) -> String {
        let (mut buffer, mut length) = ([0; 500], None);
        let end = Instant::now() + PATIENCE;
        while length.is_none() && Instant::now() < end {
            length = self.notices.recv(&mut buffer).ok();
        }
        let Some(length) = length else {
            let [said, log] = ["master.said", "master.log"].map(|name| self.machine.read(name));
            panic!("no word from the master; it said {said:?}, its log says {log:?}");
        };
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }

    fn run(&self, program: &str, args: &[&str]) -> Ran {
        let mut command = Command::new(halite());
        let config = self.machine.path("etc/salt");
        command.arg(program).arg("-c").arg(config).args(args);
        self.machine.run(&mut command)
    }

    fn salt(&self, args: &[&str]) -> Ran {
        self.run("salt", args)
    }

    /// Lets the minion in, and waits for it.
    fn joined(mut self) -> Self {
        self.start_minion();
        until("the key", || self.run("key", &["-l", "un"]).out.contains("web1"));
        self.run("key", &["-a", "web1", "-y"]).code(0).says("Key for minion web1 accepted.");
        until("the minion", || self.salt(&["web1", "test.ping"]).code == Some(0));
        self
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        if std::thread::panicking() {
            halite_e2e::show_logs(&self.machine.path(""));
        }
        for child in [&mut self.minion, &mut self.master].into_iter().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

const RULES: &str = "
nodegroups: {front: 'G@role:web and web*'}
sharedsecret: s3cret
external_auth:
  sharedsecret:
    ann: ['test.*', '@wheel']
    bob: [{'db*': [test.ping]}]
";

#[test]
fn jobs_targets_and_rights() {
    let fleet = Fleet::new(RULES).joined();
    let answered = "web1:\n    True\n";
    for target in [
        vec!["*"],
        vec!["-E", "web[0-9]"],
        vec!["-L", "web1"],
        vec!["-G", "role:web"],
        vec!["-P", "role:w.*"],
        vec!["-N", "front"],
        vec!["-C", "N@front and not db*"],
        vec!["-S", "127.0.0.1"],
    ] {
        let mut args = target.clone();
        args.push("test.ping");
        let ran = fleet.salt(&args).code(0);
        assert_eq!(ran.out, answered, "{target:?}");
    }
    // A bar is for eyes; what is left of it in a file is the sum.
    let counted = fleet.salt(&["*", "test.ping", "--progress"]).code(0);
    assert!(counted.out.starts_with("\n\n---"), "{counted:?}");
    assert!(counted.out.contains("# of minions returned: 1\n"), "{counted:?}");
    let nobody = fleet.salt(&["none", "test.ping"]).code(2);
    assert!(nobody.out.starts_with("No minions matched the target."), "{}", nobody.out);
    fleet.salt(&["-N", "nosuch", "test.ping"]).code(0).says("Node group nosuch unavailable in");
    let within = fleet.salt(&["-C", "web1 or N@nosuch", "test.ping"]).code(0);
    within.says("Node group nosuch unavailable in");
    fleet.salt(&["-L", "web1,gone", "test.ping"]).code(1).says("gone:\n    Minion did not return.");
    fleet.salt(&["*", "test.retcode", "3"]).code(1).complains("non-zero exit code");
    fleet.salt(&["*", "test.ping", "-b", "few"]).code(1).complains("Invalid batch specification");
    // What stands before the function.
    let by = |names: &str, more: &str| {
        let names = format!("--module-executors={names}");
        fleet.salt(&[&names, more, "web1", "test.ping"])
    };
    let soon = "--executor-opts={splaytime: 1}";
    assert_eq!(by("[splay, direct_call]", soon).code(0).out, answered);
    by("[splay, direct_call]", "--executor-opts={splaytime: 0}")
        .says("splaytime must be a positive");
    by("[nosuch]", soon).code(1).says("Executor 'nosuch' is not available");
    // Somebody else's rights, and no others.
    let sign_in = |user: &str, password: &str, rest: &[&str]| {
        let mut args = vec!["-a", "sharedsecret", "--username", user, "--password", password];
        args.extend(rest);
        fleet.salt(&args)
    };
    assert_eq!(sign_in("ann", "s3cret", &["*", "test.ping"]).code(0).out, answered);
    sign_in("ann", "wrong", &["*", "test.ping"]).code(0).says("Authentication error occurred.");
    sign_in("ann", "s3cret", &["*", "cmd.run", "id"]).says("Authorization error occurred.");
    sign_in("bob", "s3cret", &["*", "test.ping"]).says("Authorization error occurred.");
    let unknown = ["-a", "nosuch", "--username", "x", "--password", "x", "*", "test.ping"];
    fleet
        .salt(&unknown)
        .code(2)
        .says("\"nosuch\" is not available")
        .complains("Authentication failed");
    let key = |user: &str| {
        let args =
            ["--auth", "sharedsecret", "--username", user, "--password", "s3cret", "-l", "acc"];
        fleet.run("key", &args)
    };
    assert_eq!(key("ann").code(0).out, "Accepted Keys:\nweb1\n");
    key("bob").says("Authentication failure of type \"eauth\" occurred for user bob.");
    sign_in("ann", "s3cret", &["-T", "*", "test.ping"]).code(0);
    assert_eq!(fleet.machine.read("token").map(|token| token.len()), Some(64));
    // What was done is remembered.
    fleet.run("run", &["jobs.list_jobs", "search_function=cmd.run"]).code(0);
    let last = fleet.run("run", &["jobs.last_run", "function=test.retcode", "--out=json"]).code(0);
    assert!(last.out.contains("\"test.retcode\"") && last.out.contains("web1"), "{}", last.out);
}

#[test]
fn a_job_for_a_minion_that_is_away() {
    let mut fleet = Fleet::new("").joined();
    let mut minion = fleet.minion.take().expect("running");
    minion.kill().expect("it can be killed");
    minion.wait().expect("it ends");
    let begun = Instant::now();
    until("it is missed", || {
        let gone = fleet.salt(&["*", "test.ping"]);
        gone.code == Some(1) && gone.out.contains("[Not connected]")
    });
    let asked = fleet.salt(&["*", "test.ping"]).code(1);
    assert!(begun.elapsed() < PATIENCE && asked.out.contains("[Not connected]"));
    let mark = fleet.machine.path("ran");
    let touch = format!("echo once >> {}", mark.display());
    fleet
        .salt(&["*", "cmd.run", &touch, "--queue-offline", "120"])
        .code(0)
        .says("The job waits for it for 120 seconds.");
    // The master may come and go meanwhile.
    let mut master = fleet.master.take().expect("running");
    signal(&master, "-TERM");
    assert_eq!(fleet.notice(), "STOPPING=1");
    assert!(master.wait().expect("it ends").success());
    fleet.start_master();
    fleet.start_minion();
    until("the job", || mark.exists());
    until("the minion", || fleet.salt(&["web1", "test.ping"]).code == Some(0));
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(fs::read_to_string(&mark).expect("a file"), "once\n");
}

#[test]
fn a_minion_that_was_deleted_and_let_in_again_is_found() {
    let fleet = Fleet::new("").joined();
    let by_grain = || fleet.salt(&["-G", "id:web1", "test.ping"]);
    until("its grains are known", || by_grain().code == Some(0));
    fleet.run("key", &["-d", "web1", "-y"]).code(0);
    until("it asks to be let in", || fleet.run("key", &["-l", "un"]).out.contains("web1"));
    by_grain().code(2);
    fleet.run("key", &["-a", "web1", "-y"]).code(0);
    // It was not started anew: the master asks for what it has deleted with the key.
    until("it is found by what it has", || by_grain().code == Some(0));
}

#[test]
fn signals_and_the_doctor() {
    let fleet = Fleet::new("");
    let master = fleet.master.as_ref().expect("running");
    let log = fleet.machine.path("master.log");
    signal(master, "-USR1");
    let holds = || fs::read_to_string(&log).is_ok_and(|text| text.contains("SIGUSR1"));
    until("counters in the log", holds);
    fs::rename(&log, log.with_extension("1")).expect("moved");
    signal(master, "-HUP");
    // It may write to the old file until it has taken note.
    until("a new log", || {
        signal(master, "-USR1");
        holds()
    });
    let config = fleet.machine.path("etc/salt").display().to_string();
    let doctor = fleet.machine.halite(&["doctor", "--master", "-c", &config]);
    doctor.code(0).says("ok     master       runs (pid ");
}

#[test]
fn who_interrupts_salt_is_told_how_to_find_the_job() {
    let fleet = Fleet::new("").joined();
    let mut salt = Command::new(halite());
    salt.args(["salt", "-c"]).arg(fleet.machine.path("etc/salt"));
    salt.args(["web1", "test.sleep", "60"]).stdin(Stdio::null()).stderr(Stdio::piped());
    let salt = salt.spawn().expect("a program can be started");
    let mut jid = String::new();
    until("the job", || {
        let active = fleet.run("run", &["jobs.active", "--out=json"]).out;
        let found = active.split('"').find(|word| word.len() == 20 && word.starts_with('2'));
        jid = found.unwrap_or_default().to_owned();
        !jid.is_empty()
    });
    // A test run in the background may have been told to ignore Ctrl-C; so do its children.
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("a mask");
    let is_ignored = u64::from_str_radix(mask.trim(), 16).expect("hexadecimal") & 2 != 0;
    signal(&salt, if is_ignored { "-TERM" } else { "-INT" });
    let ended = salt.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(0));
    let said = String::from_utf8_lossy(&ended.stderr);
    let hint = format!("\nsalt-run jobs.lookup_jid {jid}\n");
    let is_told = said.starts_with("\nExiting gracefully on Ctrl-c\n") && said.ends_with(&hint);
    assert!(is_told || is_ignored, "{said}");
    fleet.salt(&["web1", "saltutil.kill_job", &jid]).code(0);
}
