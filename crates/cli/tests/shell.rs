//! The executable itself: names, exit codes, what goes to which stream.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::atomic::{AtomicU32, Ordering},
};

struct Shell {
    dir: PathBuf,
}

impl Shell {
    /// Makes a folder with links and a configuration that touches nothing else.
    fn new(files: &[(&str, &str)]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("halite-shell-{}-{count}", std::process::id()));
        fs::create_dir_all(dir.join("etc")).expect("a folder");
        for (name, text) in files {
            let path = dir.join("etc").join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, text.replace("ROOT", &dir.to_string_lossy())).expect("a file");
        }
        let links = Command::new(env!("CARGO_BIN_EXE_halite"))
            .args(["install-links", &dir.to_string_lossy()])
            .output()
            .expect("links");
        assert!(links.status.success(), "{links:?}");
        assert_eq!(String::from_utf8_lossy(&links.stdout).lines().count(), 12);
        Self { dir }
    }

    fn run(&self, line: &str) -> (i32, String, String) {
        let mut words = line.split(' ');
        let program = self.dir.join(words.next().expect("a program"));
        let program = if program.exists() { program } else { env!("CARGO_BIN_EXE_halite").into() };
        let output = Command::new(program)
            .args(words.map(|word| word.replace("ETC", &self.dir.join("etc").to_string_lossy())))
            .current_dir(&self.dir)
            .env_clear()
            .env("HOME", &self.dir)
            .output()
            .expect("the executable");
        self.texts(&output)
    }

    fn texts(&self, output: &Output) -> (i32, String, String) {
        let text = |bytes: &[u8]| {
            String::from_utf8_lossy(bytes).replace(&*self.dir.to_string_lossy(), "DIR")
        };
        (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

const QUIET: (&str, &str) = ("master", "root_dir: ROOT\nid: boss\n");

#[test]
fn versions() {
    let shell = Shell::new(&[]);
    let (code, out, _) = shell.run("salt-call --version");
    let words: Vec<&str> = out.split_whitespace().collect();
    assert_eq!((code, words[0], words[1]), (0, "salt-call", "3008.3"));
    assert!(out.starts_with("salt-call 3008.3 (Halite "));
    assert_eq!(shell.run("halite --version").1.split(' ').next(), Some("halite"));
    let (code, out, _) = shell.run("salt-key -V");
    assert!(code == 0 && out.starts_with("Salt Version:\n          Salt: 3008.3\n"), "{out}");
}

#[test]
fn wrong_command_lines() {
    let shell = Shell::new(&[QUIET]);
    let (code, out, err) = shell.run("salt --nope");
    assert_eq!((code, out.as_str()), (64, ""));
    assert_eq!(
        err,
        "Usage: salt [options] '<target>' <function> [arguments]\n\nsalt: error: no such option: --nope\n"
    );
    let (code, _, err) = shell.run("salt -c ETC -EG a test.ping");
    assert_eq!(code, 64);
    assert!(err.ends_with(
        "salt: error: The options --pcre/--grain are mutually exclusive. Please only choose one of them\n"
    ));
    let (code, out, err) = shell.run("salt -c ETC");
    assert!(out.starts_with("Usage: salt"), "{out}");
    assert_eq!(
        (code, err.as_str()),
        (42, "\nCannot execute command without defining a target.\n\n")
    );
    let (code, _, err) = shell.run("salt -c ETC x");
    assert_eq!((code, err.as_str()), (42, "\nIncomplete options passed.\n\n"));
    let (code, _, err) = shell.run("salt -c ETC x a.b,c.d 1");
    assert_eq!(code, 42);
    assert_eq!(err, "Cannot execute compound command without defining all arguments.\n");
    let (code, _, err) = shell.run("salt-key -c ETC -l nope");
    assert_eq!(code, 64);
    assert!(err.ends_with("'nope' is not a valid argument to '--list'\n"), "{err}");
    let (code, out, err) = shell.run("salt-call -c ETC");
    assert_eq!(code, 64);
    assert!(
        out.starts_with("Usage: salt-call")
            && err.ends_with("Requires function, --grains or --doc\n")
    );
}

#[test]
fn unknown_commands_are_guessed() {
    let shell = Shell::new(&[]);
    let (code, _, err) = shell.run("halite docter");
    assert_eq!(code, 64);
    assert!(err.contains("no such command: docter; did you mean `doctor`?"), "{err}");
}

#[test]
fn missing_folder_is_mentioned() {
    let shell = Shell::new(&[]);
    let (_, _, err) = shell.run("salt-call -c /nowhere/at/all --local test.ping");
    assert!(
        err.starts_with("WARNING: CONFIG '/nowhere/at/all' directory does not exist.\n"),
        "{err}"
    );
}

#[test]
fn broken_configuration() {
    let shell = Shell::new(&[("master", "user: salt\nfile_roots:\n  base: x: y\n")]);
    let (code, out, err) = shell.run("salt -c ETC x test.ping");
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.starts_with("error: Error parsing configuration file: DIR/etc/master"), "{err}");
    assert!(err.contains("--> DIR/etc/master:3:10") && err.contains("3 |   base: x: y"), "{err}");
    let (code, _, err) = shell.run("salt -c ETC --error-format=json x test.ping");
    assert_eq!(code, 1);
    let report = halite_value::json::from_str(&err).expect("JSON");
    assert_eq!(report.get("line"), Some(3.into()));
}

#[test]
fn wrong_command_lines_as_json() {
    let shell = Shell::new(&[]);
    for (line, word) in [
        ("salt-call --error-format json --lgo-level=info test.ping", "did you mean --log-level?"),
        ("salt --nope --error-format=json x test.ping", "--nope"),
        ("salt-key --error-format=json -f", "-f option requires"),
        ("halite doktor --error-format=json", "did you mean `doctor`?"),
    ] {
        let (code, out, err) = shell.run(line);
        assert_eq!((code, out.as_str()), (64, ""), "{line}");
        let report = halite_value::json::from_str(&err).expect("JSON");
        let message = report.get("message").expect("a message");
        assert!(message.to_str().contains(word), "{line}: {err}");
    }
}

#[test]
fn odd_configuration_is_logged() {
    let master = "root_dir: ROOT\nid: boss\nfile_root: {}\nret_port: many\nmy_own_thing: 5\n";
    let shell = Shell::new(&[("master", master)]);
    let (_, _, err) = shell.run("salt -c ETC x test.ping");
    assert!(
        err.contains(
            "[WARNING ] DIR/etc/master:3:1: unknown option `file_root`; did you mean `file_roots`?"
        ),
        "{err}"
    );
    assert!(
        err.contains("[WARNING ] DIR/etc/master:4:1: Config option 'ret_port' with value many"),
        "{err}"
    );
    assert!(!err.contains("my_own_thing"), "{err}");
    let (_, _, err) = shell.run("salt -c ETC -l quiet x test.ping");
    assert!(!err.contains("WARNING"), "{err}");
    let (_, _, err) = shell.run("salt -c ETC --out yaml x test.ping");
    assert!(err.starts_with("# [WARNING ]"), "{err}");
}

#[test]
fn log_file() {
    let shell = Shell::new(&[("master", "root_dir: ROOT\nid: boss\nret_port: many\n")]);
    shell.run("salt -c ETC --log-file=x.log x test.ping");
    let text = fs::read_to_string(shell.dir.join("x.log")).expect("a log");
    assert!(text.contains("[salt.config      :"), "{text}");
    assert!(text.contains("][WARNING ]["), "{text}");
}

#[test]
fn a_log_file_of_ones_own_gets_its_folder() {
    let shell = Shell::new(&[("minion", "root_dir: ROOT\nid: web1\nfile_client: local\n")]);
    let (code, ..) = shell.run("salt-call -c ETC --log-file=new/x.log test.ping");
    let mode = fs::metadata(shell.dir.join("new/x.log")).expect("a log").permissions().mode();
    assert_eq!((code, mode & 0o777), (0, 0o640));
    let (code, _, err) = shell.run("salt-call -c ETC --log-file=new test.ping");
    assert!(code == 64 && err.contains("it is a folder"), "{code} {err}");
}

#[test]
fn nobody_is_root_by_mistake() {
    let shell = Shell::new(&[("minion", "root_dir: ROOT\nid: web1\nfile_client: local\n")]);
    let (code, out, err) = shell.run("salt-call -c ETC --priv no-such-user test.ping");
    assert!(code == 67 && out.is_empty() && err.contains("no-such-user"), "{code} {out} {err}");
    fs::write(shell.dir.join("etc/minion"), "root_dir: ROOT\nuser: no-such-user\n")
        .expect("written");
    assert_eq!(shell.run("salt-call -c ETC --local test.ping").0, 67);
}

#[test]
fn saltfile() {
    let shell =
        Shell::new(&[QUIET, ("Saltfile", "salt:\n  config_dir: ROOT/etc\n  log_level: quiet\n")]);
    fs::rename(shell.dir.join("etc/Saltfile"), shell.dir.join("Saltfile")).expect("moved");
    let (code, out, err) = shell.run("salt --config-dump");
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("id: boss\n"), "{out}");
    // The configuration is what the files say, not what the command line adds.
    assert!(!out.contains("config_dump") && !out.contains("selected_target_option"), "{out}");
}

#[test]
fn doctor() {
    let master = "root_dir: ROOT\nid: boss\nfile_rots: {}\nauto_accept: 'yes'\nmy_own_thing: 5\nworker_threads: 9\n";
    let shell = Shell::new(&[("master", master), ("master.d/a.conf", "user: salt\n")]);
    let (code, out, err) = shell.run("halite doctor --config -c ETC");
    assert_eq!((code, err.as_str()), (1, ""));
    assert!(out.contains("help: did you mean `file_roots`?"), "{out}");
    assert!(out.contains("master: Halite acts on: 4\n"), "{out}");
    assert!(out.contains("DIR/etc/master.d/a.conf:1:1"), "{out}");
    assert!(out.contains("my_own_thing"), "{out}");
    let (code, _, err) = shell.run("halite doctor --config -c /nowhere");
    assert_eq!(code, 1);
    assert!(err.starts_with("error: no configuration in /nowhere"), "{err}");
}

#[test]
fn links_stay_and_force_replaces() {
    let shell = Shell::new(&[]);
    let again = shell.run(&format!("halite install-links {}", shell.dir.display()));
    assert_eq!(again, (0, String::new(), String::new()));
    let link = shell.dir.join("salt-key");
    fs::remove_file(&link).expect("removed");
    fs::write(&link, "in the way").expect("written");
    let (code, _, _) = shell.run(&format!("halite install-links {}", shell.dir.display()));
    assert_eq!(code, 1);
    let (code, _, _) = shell.run(&format!("halite install-links -f {}", shell.dir.display()));
    assert_eq!(code, 0);
    assert!(
        fs::read_link(&link).is_ok_and(|target| target == Path::new(env!("CARGO_BIN_EXE_halite")))
    );
}

const TREE: (&str, &str) = (
    "minion",
    "root_dir: ROOT/root\nfile_client: local\nfile_roots: {base: [ROOT/etc/srv]}\nid: x\n",
);

#[test]
fn a_module_without_its_program_does_not_exist() {
    let shell = Shell::new(&[
        TREE,
        ("srv/there.sls", "a:\n  test.nop:\n    - x: {{ 'rabbitmq.list_users' in salt }}\n"),
        ("srv/state.sls", "a:\n  rabbitmq_user.absent: []\n"),
        ("srv/call.sls", "{% set x = salt.rabbitmq.list_users() %}\n"),
    ]);
    let folders = ["/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"];
    if folders.iter().any(|folder| Path::new(folder).join("rabbitmqctl").exists()) {
        return;
    }
    let (code, out, err) = shell.run("salt-call --local -c ETC -l quiet rabbitmq.list_users");
    let why = "'rabbitmq' __virtual__ returned False: Module rabbitmq: module only works when \
               RabbitMQ is installed\n";
    assert_eq!((code, out.as_str(), err.as_str()), (255, "", why));
    let listed = shell.run("salt-call --local -c ETC -l quiet sys.list_functions rabbitmq").1;
    assert!(!listed.contains("rabbitmq."), "{listed}");
    let low = shell.run("salt-call --local -c ETC -l quiet state.show_low_sls there").1;
    assert!(low.contains("False"), "{low}");
    let (_, out, _) = shell.run("salt-call --local -c ETC -l quiet --out json state.sls state");
    let ret = halite_value::json::from_str(&out).expect("JSON");
    let ret = ret.get("local").and_then(|ret| ret.as_dict().and_then(|ret| ret.values().pop()));
    let comment = ret.and_then(|ret| ret.get("comment")).expect("a comment").to_str();
    assert!(
        comment.starts_with(
            "State 'rabbitmq_user.absent' was not found in SLS 'state'\nReason: 'rabbitmq_user' \
             __virtual__ returned False: Command not found: rabbitmqctl\n"
        ),
        "{comment}"
    );
    assert!(!comment.contains("did you mean"), "it was not misspelt: {comment}");
    let failed = shell.run("salt-call --local -c ETC -l quiet state.show_low_sls call").1;
    let words = "Jinja variable 'salt.utils.templates.AliasedLoader object' has no attribute \
                 'rabbitmq'";
    assert!(failed.contains(words), "{failed}");
}

#[test]
fn functions_in_templates_fail_in_pythons_words() {
    let cases = [
        ("{% set x = salt['user.info'](None[0]) %}", "Jinja variable None has no element 0"),
        ("{% set x = salt['cmd.run']('true', cwd=nope) %}", "Jinja variable 'nope' is undefined"),
        ("{% set x = salt['cmd.run'](nope) %}", "Jinja variable 'nope' is undefined"),
        ("{% set x = salt['pillar.get']('zz', nope) %}", "Jinja variable 'nope' is undefined"),
        (
            "{% set x = salt['cmd.run']() %}",
            "Jinja error: run() missing 1 required positional argument: 'cmd'",
        ),
        (
            "{% set x = salt['file.read']('/nope') %}",
            "Jinja error: [Errno 2] No such file or directory: '/nope'",
        ),
    ];
    // Handed on, not looked at.
    let fine =
        ["{% set x = salt['test.echo'](nope) %}", "{% set x = salt['config.get']('id', nope) %}"];
    let names: Vec<String> =
        (0..cases.len() + fine.len()).map(|n| format!("srv/t{n}.sls")).collect();
    let texts = cases.iter().map(|(text, _)| *text).chain(fine);
    let texts: Vec<String> = texts.map(|text| format!("{text}\na: {{test.nop: []}}\n")).collect();
    let mut files = vec![TREE];
    files.extend(names.iter().map(String::as_str).zip(texts.iter().map(String::as_str)));
    let shell = Shell::new(&files);
    for (n, (text, expected)) in cases.iter().enumerate() {
        let line = format!("salt-call --local -c ETC -l quiet state.show_low_sls t{n}");
        let (code, out, err) = shell.run(&line);
        assert!(code != 0 && out.contains(expected), "{text}: {out}{err}");
    }
    for (n, text) in texts.iter().enumerate().skip(cases.len()) {
        let line = format!("salt-call --local -c ETC -l quiet state.show_low_sls t{n}");
        assert_eq!(shell.run(&line).0, 0, "{text}");
    }
}

#[test]
fn a_proxy_needs_an_id_and_a_user() {
    let shell = Shell::new(&[("proxy", "root_dir: ROOT\nuser: nobody-of-that-name\n")]);
    let (code, _, said) = shell.run("salt-proxy -c ETC");
    assert_eq!(code, 64, "{said}");
    assert!(said.starts_with("Usage: salt-proxy"), "{said}");
    assert!(said.contains("error: salt-proxy requires --proxyid"), "{said}");
    let (code, _, said) = shell.run("salt-proxy -c ETC --proxyid p1");
    assert_eq!(code, 67, "{said}");
    assert!(said.contains("user nobody-of-that-name. The user is not available."), "{said}");
}

#[test]
fn a_runner_shows_its_job_id_if_the_configuration_says_so() {
    let shell = Shell::new(&[("master", "root_dir: ROOT\nshow_jid: True\n")]);
    let (code, out, said) = shell.run("salt-run -c ETC test.arg 1 --out=json");
    assert_eq!(code, 0, "{said}");
    let (first, rest) = out.split_once('\n').expect("two lines");
    let jid = first.strip_prefix("jid: ").expect(first);
    assert!(jid.len() == 20 && jid.bytes().all(|digit| digit.is_ascii_digit()), "{jid}");
    assert!(rest.trim_start().starts_with('{'), "{rest}");
}

#[test]
fn a_listing_of_providers_takes_no_name() {
    let shell = Shell::new(&[]);
    let (code, _, said) = shell.run("salt-cloud -c ETC --list-providers ec2");
    assert_eq!(code, 64, "{said}");
    assert!(said.contains("error: '--list-providers' does not accept any arguments"), "{said}");
}
