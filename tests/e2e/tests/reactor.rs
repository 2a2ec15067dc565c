//! Events lead to reactions: what guides to Salt show, with real daemons.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

use halite_e2e::{
    fleet::{Fleet, until},
    free_port,
};

/// A state that leaves a file behind.
fn leaves(fleet: &Fleet, sls: &str, file: &str) {
    let path = fleet.machine.path(file);
    fleet.machine.write(
        &format!("srv/salt/{sls}.sls"),
        &format!(
            "{}:\n  file.managed:\n    - contents: {{{{ pillar.get('word', 'done') }}}}\n",
            path.display()
        ),
    );
}

#[test]
fn a_key_is_accepted_by_name_and_the_highstate_follows() {
    let mut fleet = Fleet::prepared(
        "reactor:\n  - 'salt/auth':\n    - {root}/srv/reactor/auth.sls\n    - {root}/srv/reactor/missing.sls\n",
    );
    fleet.machine.write(
        "srv/reactor/auth.sls",
        "{% if data['act'] == 'pend' and data['id'].startswith('web-asg-') %}\n\
         accept_minion:\n  wheel.key.accept:\n    - match: {{ data['id'] }}\n\n\
         apply_state:\n  local.state.highstate:\n    - tgt: {{ data['id'] }}\n    - require:\n      - wheel: accept_minion\n\
         {% endif %}\n",
    );
    leaves(&fleet, "base", "highstate-was-here");
    fleet.machine.write("srv/salt/top.sls", "base:\n  '*':\n    - base\n");
    fleet.start_master();
    fleet.start_minion("other-1", "");
    fleet.start_minion("web-asg-1", "");
    until("the highstate has run", || fleet.machine.path("highstate-was-here").exists());
    let keys = fleet.key(&["-L", "--out=json"]).code(0).out;
    let accepted = keys.split("\"minions\"").nth(1).and_then(|rest| rest.split(']').next());
    assert!(
        accepted.is_some_and(|ids| ids.contains("web-asg-1") && !ids.contains("other-1")),
        "{keys}"
    );
    assert!(fleet.log().contains("missing.sls for tag salt/auth. File missing or not found."));
    fleet.run(&["reactor.dead_letters", "--out=json"]).code(0).says("missing.sls");
}

#[test]
fn own_events_old_and_new_arguments_and_salt_addresses() {
    let mut fleet = Fleet::new(
        "auto_accept: True\nreactor:\n  - 'myapp/*':\n    - {root}/srv/reactor/app.sls\n    - salt://reactor/second.sls\n",
    );
    leaves(&fleet, "one", "one");
    leaves(&fleet, "two", "two");
    fleet.machine.write(
        "srv/reactor/app.sls",
        "old:\n  local.state.apply:\n    - tgt: {{ data['id'] }}\n    - arg: [one]\n    - kwarg:\n        pillar: {word: {{ data['data']['word'] }}}\n\
         run:\n  runner.event.send:\n    - args:\n      - tag: seen/{{ tag }}\n      - data: {n: 1}\n",
    );
    fleet.machine.write(
        "srv/salt/reactor/second.sls",
        "new:\n  local.state.apply:\n    - tgt: 'roles:web'\n    - tgt_type: grain\n    - args:\n      - mods: two\n      - queue: True\n",
    );
    fleet.minion("web1", "grains: {roles: [web]}");
    let watching = fleet.start_run(&["state.event", "seen/*", "count=1"]);
    std::thread::sleep(std::time::Duration::from_millis(500));
    fleet.call("web1", &["event.send", "myapp/deploy/complete", "{\"word\": \"ok\"}"]).code(0);
    until("the old form", || fleet.machine.read("one").is_some_and(|text| text.trim() == "ok"));
    until("the new form", || fleet.machine.read("two").is_some());
    let seen = watching.wait_with_output().expect("it ends after one event");
    let seen = String::from_utf8_lossy(&seen.stdout).into_owned();
    assert!(
        seen.starts_with("seen/myapp/deploy/complete\t{") && seen.contains("\"n\": 1"),
        "{seen}"
    );
    fleet
        .run(&[
            "reactor.test",
            "myapp/x",
            "{\"id\": \"web1\", \"data\": {\"word\": \"w\"}}",
            "--out=json",
        ])
        .code(0)
        .says("local.state.apply")
        .says("roles:web");
    fleet.run(&["reactor.delete", "myapp/*"]).code(0).says("Reactor deleted.");
    fleet.run(&["reactor.list", "--out=json"]).code(0).says("[]");
}

#[test]
fn a_failed_deployment_is_rolled_back_by_an_orchestration() {
    let mut fleet = Fleet::new(
        "auto_accept: True\nreactor:\n  - 'myapp/deployment/failed':\n    - {root}/srv/reactor/rollback.sls\n",
    );
    fleet.machine.write(
        "srv/reactor/rollback.sls",
        "rollback_failed_deploy:\n  runner.state.orchestrate:\n    - args:\n      - mods: orchestration.rollback\n      - pillar:\n          app_name: {{ data['app_name'] }}\n          failed_version: {{ data['version'] }}\n\
         here:\n  caller.cmd.run:\n    - args:\n      - cmd: echo {{ data['version'] }} > {{ opts['root_dir'] }}/called\n",
    );
    fleet.machine.write(
        "srv/salt/orchestration/rollback.sls",
        "roll:\n  salt.state:\n    - tgt: '*'\n    - sls: rolled\n    - pillar: {word: \"{{ pillar['app_name'] }} {{ pillar['failed_version'] }}\"}\n",
    );
    leaves(&fleet, "rolled", "rolled");
    fleet.minion("app1", "");
    fleet
        .run(&[
            "event.send",
            "myapp/deployment/failed",
            "{\"app_name\": \"shop\", \"version\": \"v2\"}",
        ])
        .code(0);
    until("it is rolled back", || {
        fleet.machine.read("rolled").is_some_and(|text| text.trim() == "shop v2")
    });
    until("the master's machine did its part", || {
        fleet.machine.read("called").is_some_and(|text| text.trim() == "v2")
    });
    until("the run is in the job cache", || {
        let jobs = fleet.run(&["jobs.list_jobs", "--out=json"]).code(0).out;
        jobs.contains("runner.state.orchestrate") && jobs.contains("Reactor")
    });
}

/// Posts to the hook, and returns the status line.
fn post(port: u16, path: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the hook listens");
    let text = format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(text.as_bytes()).expect("it takes requests");
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn an_alert_of_prometheus_ends_in_a_state_run() {
    let port = free_port();
    let mut fleet = Fleet::new(&format!(
        "auto_accept: True\nengines:\n  - webhook: {{port: {port}, token: secret, max_size: 10000}}\n\
         \x20 - event_out_file: {{path: {{root}}/events.jsonl, tags: ['salt/engines/*']}}\n\
         reactor:\n  - 'salt/engines/hook/alertmanager/firing/DiskFull':\n    - {{root}}/srv/reactor/disk.sls\n"
    ));
    fleet.machine.write(
        "srv/reactor/disk.sls",
        "clean:\n  local.state.apply:\n    - tgt: {{ data['host'] }}\n    - args:\n      - mods: clean\n      - pillar: {word: {{ data['labels']['mountpoint'] }}}\n",
    );
    leaves(&fleet, "clean", "cleaned");
    fleet.minion("web1", "");
    let body = r#"{"version": "4", "receiver": "salt", "status": "firing", "alerts": [{"status": "firing",
        "labels": {"alertname": "DiskFull", "instance": "web1:9100", "mountpoint": "/var", "severity": "page"},
        "annotations": {"summary": "full"}, "startsAt": "2026-01-01T00:00:00Z"}]}"#;
    until("the hook listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    assert!(post(port, "/hook/alertmanager", "", body).contains("401"));
    assert!(
        post(port, "/hook/alertmanager", "X-Auth-Token: secret\r\n", &"x".repeat(20_000))
            .contains("413")
    );
    assert!(post(port, "/hook/alertmanager", "X-Auth-Token: secret\r\n", body).contains("200"));
    until("the state has run", || {
        fleet.machine.read("cleaned").is_some_and(|text| text.trim() == "/var")
    });
    until("the event is in the file", || {
        fleet
            .machine
            .read("events.jsonl")
            .is_some_and(|text| text.contains("alertmanager/firing/DiskFull"))
    });
    assert!(!fleet.machine.read("events.jsonl").unwrap_or_default().contains("secret"));
}

#[test]
fn ten_thousand_events_lead_to_ten_thousand_reactions() {
    let fleet = Fleet::new(
        "reactor_worker_hwm: 500\nreactor:\n  - 'burst/*':\n    - {root}/srv/reactor/count.sls\n",
    );
    // A reaction that leaves a trace which can be counted.
    fleet.machine.write(
        "srv/reactor/count.sls",
        "count:\n  runner.test.arg:\n    - args:\n      - n: {{ data['n'] }}\n",
    );
    let mut master = halite_client::Client::connect(&fleet.machine.path("var/run/salt/master"))
        .expect("a master");
    for n in 0..10_000 {
        let data = halite_value::entries! { "n" => n };
        master
            .send(&halite_client::Request::Fire { tag: format!("burst/{n}").into(), data })
            .expect("sent");
    }
    let status = |name: &str| -> i64 {
        let out = fleet.run(&["reactor.status", "--out=json"]).code(0).out;
        let text = out.split(&format!("\"{name}\": ")).nth(1).unwrap_or_default();
        text.split([',', '\n', '}']).next().unwrap_or_default().trim().parse().unwrap_or(-1)
    };
    until("all are done", || status("done") == 10_000);
    assert_eq!((status("events"), status("failed"), status("waiting")), (10_000, 0, 0));
    assert!(status("spilled") > 0, "the queue is smaller than the burst");
}

#[test]
fn rules_remember() {
    let fleet = Fleet::new(
        "halite:\n  rules:\n    disk is filling:\n      tag: 'disk/*'\n      if: \"data['percent'] > 90\"\n\
         \x20     per: id\n      count: 3\n      within: 1m\n      quiet: 1h\n\
         \x20     react:\n        tell:\n          runner.event.send:\n            - args:\n\
         \x20             - tag: told/{{ key }}\n              - data: {n: \"{{ count }}\"}\n",
    );
    let watching = fleet.start_run(&["state.event", "told/*", "count=2"]);
    std::thread::sleep(std::time::Duration::from_millis(500));
    let fire = |id: &str, percent: i64| {
        let data = format!("{{\"id\": \"{id}\", \"percent\": {percent}}}");
        fleet.run(&["event.send", &format!("disk/{id}"), &data]).code(0);
    };
    for percent in [95, 50, 96, 97, 98, 99, 99] {
        fire("m1", percent);
    }
    for _ in 0..3 {
        fire("m2", 99);
    }
    let told = watching.wait_with_output().expect("two events");
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    let tags: Vec<&str> =
        told.lines().filter_map(|line| line.split_once('\t')).map(|(tag, _)| tag).collect();
    assert_eq!(tags, ["told/m1", "told/m2"], "{told}");
}
