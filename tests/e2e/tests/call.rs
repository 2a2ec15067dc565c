//! `salt-call` without a master: functions, states, exit codes, and where output goes.

use std::process::Command;

use halite_e2e::{Machine, halite};

#[test]
fn a_function_answers() {
    let machine = Machine::new();
    let ran = machine.call(&["test.ping"]).code(0);
    assert_eq!(ran.out, "local:\n    True\n");
    let ran = machine.call(&["test.echo", "{a: [1, x]}", "--out", "json", "--out-indent=-1"]);
    assert_eq!(ran.code(0).out.trim(), r#"{"local": {"a": [1, "x"]}}"#);
}

#[test]
fn an_answer_that_cannot_be_written_is_a_failure() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("the device");
    let mut command = Command::new(halite());
    command.args(["call", "test.ping", "--local", "--config-dir", "."]).stdout(full);
    let ran = Machine::new().run(&mut command).code(1);
    assert!(ran.err.contains("No space left on device"), "{}", ran.err);
}

#[test]
fn warnings_are_seen_whatever_the_log_level() {
    let ran = Machine::new().call(&["test.deprecation_warning", "-l", "critical"]).code(0);
    assert_eq!(ran.err.matches("DeprecationWarning: ").count(), 2, "{}", ran.err);
}

#[test]
fn warnings_are_silenced_as_pythons_are() {
    let mut command = Command::new("env");
    command.arg("PYTHONWARNINGS=ignore").arg(halite()).args(["call", "test.deprecation_warning"]);
    let ran = Machine::new().run(command.args(["--local", "--config-dir", "."])).code(0);
    assert!(!ran.err.contains("DeprecationWarning"), "{}", ran.err);
}

/// Not an answer with a comment: a script must not take it for one about the file.
#[test]
fn digests_that_cannot_be_fetched_are_an_error() {
    let machine = Machine::new();
    let source = ["/nowhere/a", "http://127.0.0.1:1/a", "source_hash=http://127.0.0.1:1/a.sha256"];
    let others = [
        "source_hash_name=null",
        "user=null",
        "group=null",
        "mode=null",
        "attrs=null",
        "template=null",
        "context=null",
        "defaults=null",
        "saltenv=base",
    ];
    for function in ["file.check_managed_changes", "file.check_managed"] {
        let ran = machine.call(&[&[function][..], &source, &others].concat()).code(1);
        let wanted = "Error: [Errno 111] Connection refused reading /a.sha256";
        assert!(ran.err.contains(wanted), "{}", ran.err);
    }
}

#[test]
fn a_pillar_that_does_not_render_is_told() {
    let machine = Machine::new();
    machine.write("srv/pillar/top.sls", "base: {'*': [nothere]}\n");
    machine.write("srv/salt/top.sls", "base: {'*': [web]}\n");
    machine.write("srv/salt/web.sls", "x: test.nop\n");
    let why = "Specified SLS 'nothere' in environment 'base' is not available on the salt master";
    for call in [&["state.show_top"][..], &["state.show_lowstate"], &["state.show_sls", "web"]] {
        let ran = machine.call(call).code(1);
        let wanted = format!("Pillar failed to render. Additional info follows:\n\n- {why}");
        assert!(ran.err.contains(&wanted), "{call:?}: {}", ran.err);
    }
    machine.call(&["state.apply", "web"]).says(why);
    machine.call(&["state.single", "test.nop", "x"]).code(0).says("Succeeded: 1");
}

/// What people are shown is masked; what a template looks up is not.
#[test]
fn templates_of_a_pillar_see_its_values() {
    let machine = Machine::new();
    machine.write("srv/pillar/top.sls", "base: {'*': [data]}\n");
    let data = "path: {{ salt['pillar.get']('nothere', 'a') }}/*\n";
    machine.write("srv/pillar/data.sls", data);
    let ran = machine.call(&["pillar.items", "unmask=True", "--out=json"]).code(0);
    assert!(ran.out.contains("\"path\": \"a/*\""), "{}", ran.out);
    assert!(!machine.call(&["pillar.items"]).code(0).out.contains("_errors"));
}

#[test]
fn a_misspelt_function_gets_a_suggestion() {
    let ran = Machine::new().call(&["test.pnig"]).code(255);
    let text = format!("{}{}", ran.out, ran.err);
    assert!(text.contains("'test.pnig' is not available"), "{text}");
    assert!(text.contains("did you mean `test.ping`?"), "{text}");
}

#[test]
fn states_run_in_the_order_of_their_requisites() {
    let machine = Machine::new();
    let sls = "second:\n  test.nop:\n    - require: [test: first]\nfirst:\n  test.nop: []\n";
    machine.write("srv/salt/order.sls", &format!("#!yaml\n{sls}"));
    let ran = machine.call(&["state.apply", "order", "--state-output=terse"]).code(0);
    let place = |text: &str| ran.out.find(text).unwrap_or_else(|| panic!("{}", ran.out));
    assert!(place("Name: first") < place("Name: second"), "{}", ran.out);
    ran.says("Succeeded: 2");
}

#[test]
fn a_failed_state_fails_the_command_only_when_asked() {
    let machine = Machine::new();
    machine.write("srv/salt/fail.sls", "#!yaml\nx:\n  test.fail_without_changes: []\n");
    machine.call(&["state.apply", "fail"]).says("Failed:    1");
    machine.call(&["--retcode-passthrough", "state.apply", "fail"]).code(2);
}

#[test]
fn an_sls_that_does_not_parse_is_pointed_at() {
    let machine = Machine::new();
    machine.write("srv/salt/bad.sls", "#!yaml\nx:\n  test.nop\n y: 1\n");
    let ran = machine.call(&["state.apply", "bad"]);
    ran.code(1).says("Rendering SLS 'base:bad' failed").says("--> bad.sls:4:3");
}

#[test]
fn a_state_waits_for_a_parallel_one_that_has_not_begun() {
    let machine = Machine::new();
    let flag = machine.path("flag").display().to_string();
    let sls = format!(
        "#!yaml\nslow:\n  cmd.run: [name: sleep 0.3, parallel: true]\nmakes:\n  cmd.run:\n    - name: \
         echo made > {flag}\n    - parallel: true\n    - require: [cmd: slow]\nneeds:\n  cmd.run:\n    - \
         name: test -s {flag}\n    - require: [cmd: makes]\n"
    );
    machine.write("srv/salt/chain.sls", &sls);
    machine.call(&["state.apply", "chain"]).says("Succeeded: 3");
}

#[test]
fn a_state_works_under_a_umask_of_its_own() {
    use std::os::unix::fs::PermissionsExt;

    let machine = Machine::new();
    let at = |name: &str| machine.path(name).display().to_string();
    // As YAML reads it, 027 is a number.
    let sls = format!(
        "#!yaml\n{}:\n  file.managed: [contents: x, umask: '077']\n{}:\n  file.directory:\n    - \
         makedirs: true\n    - umask: 027\n{}:\n  file.touch: []\nrun:\n  cmd.run: [name: touch {}, \
         umask: '007']\nbad:\n  file.touch: [name: {}, umask: '09']\n",
        at("managed"),
        at("up/down"),
        at("usual"),
        at("ran"),
        at("bad"),
    );
    machine.write("srv/salt/masks.sls", &sls);
    machine.call(&["state.apply", "masks"]).says("Succeeded: 4").says("Invalid umask: 09");
    let mode = |name: &str| {
        let found = std::fs::metadata(machine.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        found.permissions().mode() & 0o777
    };
    assert_eq!(mode("managed"), 0o600);
    assert_eq!((mode("up"), mode("up/down")), (0o750, 0o750));
    assert_eq!(mode("ran"), 0o660);
    assert_eq!(mode("usual") & 0o600, 0o600);
    let bad = at("bad");
    let ran =
        machine.call(&["state.single", "file.touch", &bad, "umask=999", "--out=json"]).code(1);
    let said: String = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(said, r#"{ "local": [ "Invalid umask: 999" ] }"#, "without a file, a list");
    assert!(!machine.path("bad").exists());
}

/// Scripts read the manual on stdout and the reason on stderr, as with Salt.
#[test]
fn a_function_called_wrongly_shows_its_manual() {
    let machine = Machine::new();
    let ran = machine.call(&["test.echo"]).code(1).says("Return a text as it was given.");
    let why = "\nPassed invalid arguments: echo() missing 1 required positional argument: 'text'.";
    assert!(ran.err.contains(why), "{ran:?}");
    let ran = machine.call(&["test.kwarg", "x"]).code(1);
    ran.complains("kwarg() takes 0 positional arguments but 1 was given");
    let ran = machine.call(&["-d", "nosuch"]).code(0);
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("", ""));
}

#[test]
fn a_call_is_told_of_itself() {
    let machine = Machine::new();
    let ran = machine.call(&["test.arg", "a", "b=1", "--metadata", "--out=json"]).code(0);
    let told: serde_json::Value = serde_json::from_str(&ran.out).expect("json");
    let told = &told["local"];
    assert_eq!(told["fun_args"], serde_json::json!(["a", "b=1"]), "{told}");
    assert_eq!((&told["fun"], &told["retcode"]), (&"test.arg".into(), &0.into()), "{told}");
    let kwargs = &told["return"]["kwargs"];
    assert_eq!(kwargs["__pub_jid"], told["jid"], "{told}");
    assert_eq!(kwargs["__pub_tgt"], "salt-call", "{told}");
}

#[test]
fn the_returner_local_shows_the_return() {
    let args = ["--local", "--return", "local", "cmd.run", "exit 3", "--out=json"];
    let ran = Machine::new().call(&args).code(1);
    let (first, rest) = ran.out.split_once('\n').expect("lines");
    assert!(first.starts_with("{'jid': '"), "{first}");
    let end = "'fun': 'cmd.run', 'fun_args': ['exit 3'], 'success': True}";
    assert!(
        first.contains("'return': '', 'retcode': 3, 'id': ") && first.ends_with(end),
        "{first}"
    );
    assert_eq!(rest, "{\n    \"local\": \"\"\n}\n");
}
