//! Events lead to reactions: what guides to Salt show, with real daemons.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

use halite_e2e::{
    fleet::{Fleet, until},
    free_port, mail_server, need,
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
        "old:\n  local.state.apply:\n    - tgt: {{ data['id'] }}\n    - arg: [one]\n    - kwarg:\n        pillar: {word: {{ data['data']['word'] }}}\n        queue: True\n\
         run:\n  runner.event.send:\n    - args:\n      - tag: seen/{{ tag }}\n      - data: {n: 1}\n",
    );
    fleet.machine.write(
        "srv/salt/reactor/second.sls",
        "new:\n  local.state.apply:\n    - tgt: 'roles:web'\n    - tgt_type: grain\n    - args:\n      - mods: two\n      - queue: True\n",
    );
    fleet.minion("web1", "grains: {roles: [web]}");
    let followed = fleet.follow();
    fleet.call("web1", &["event.send", "myapp/deploy/complete", "{\"word\": \"ok\"}"]).code(0);
    until("the old form", || fleet.machine.read("one").is_some_and(|text| text.trim() == "ok"));
    until("the new form", || fleet.machine.read("two").is_some());
    until("the runner's event", || !followed.tags("seen/").is_empty());
    assert_eq!(followed.tags("seen/"), ["seen/myapp/deploy/complete"]);
    assert!(followed.text().contains("\"n\": 1"), "{}", followed.text());
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
fn a_failure_leads_to_what_waits_for_it_and_mistakes_have_a_place() {
    let fleet = Fleet::new(
        "reactor:\n  - 'work/*':\n    - {root}/srv/reactor/work.sls\n  - 'odd':\n    - {root}/srv/reactor/odd.sls\n  - empty:\n\
         engines:\n  - webhook:\n      tokn: secret\n",
    );
    fleet.machine.write(
        "srv/reactor/work.sls",
        "work:\n  runner.{{ 'no.such' if data['bad'] else 'test.arg' }}: []\n\
         alarm:\n  runner.event.send:\n    - tag: alarm/{{ data['n'] }}\n    - onfail:\n      - runner: work\n\
         well:\n  runner.event.send:\n    - tag: well/{{ data['n'] }}\n    - require:\n      - runner: work\n",
    );
    fleet.machine.write(
        "srv/reactor/odd.sls",
        "fine:\n  runner.test.arg: []\nodd:\n  local.test.ping:\n    - arg: [1]\n",
    );
    let followed = fleet.follow();
    fleet.run(&["event.send", "work/1", "{\"bad\": true, \"n\": 1}"]).code(0);
    fleet.run(&["event.send", "work/2", "{\"bad\": false, \"n\": 2}"]).code(0);
    until("the failure is followed", || !followed.tags("alarm/").is_empty());
    until("the success is followed", || !followed.tags("well/").is_empty());
    assert_eq!(followed.tags("alarm/"), ["alarm/1"]);
    assert_eq!(followed.tags("well/"), ["well/2"]);
    fleet.run(&["event.send", "odd"]).code(0);
    for (what, place) in [
        ("reactor: the tag empty has no files (", "master:"),
        ("it has no setting `tokn`; did you mean `token`? (", "master:"),
        ("`odd` is no reaction: `tgt` is missing (", "odd.sls:4:3)"),
    ] {
        until(what, || fleet.log().lines().any(|line| line.contains(what) && line.contains(place)));
    }
    // Once the file is mended, what failed is done again, and nothing else.
    fleet.machine.write(
        "srv/reactor/work.sls",
        "work:\n  runner.event.send:\n    - tag: mended/{{ data['n'] }}\n\
         alarm:\n  runner.event.send:\n    - tag: alarm/again\n    - onfail:\n      - runner: work\n\
         well:\n  runner.event.send:\n    - tag: well/{{ data['n'] }}\n    - require:\n      - runner: work\n",
    );
    fleet.run(&["reactor.retry", "--out=json"]).code(0).says("2");
    until("the second try is followed", || followed.tags("well/").len() == 2);
    assert_eq!(followed.tags("well/"), ["well/2", "well/1"]);
    assert_eq!(followed.tags("mended/"), ["mended/1"]);
    assert_eq!(followed.tags("alarm/"), ["alarm/1"]);
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
    let mut fleet = Fleet::new(
        "halite:\n  rules:\n    disk is filling:\n      tag: 'disk/*'\n      if: \"data['percent'] > 90\"\n\
         \x20     per: id\n      count: 3\n      within: 1h\n      quiet: 1h\n\
         \x20     react:\n        tell:\n          runner.event.send:\n            - args:\n\
         \x20             - tag: told/{{ key }}\n              - data: {n: \"{{ count }}\"}\n",
    );
    let fire = |fleet: &Fleet, id: &str, percent: i64| {
        let data = format!("{{\"id\": \"{id}\", \"percent\": {percent}}}");
        fleet.run(&["event.send", &format!("disk/{id}"), &data]).code(0);
    };
    let followed = fleet.follow();
    for percent in [95, 50, 96, 97, 98, 99, 99] {
        fire(&fleet, "m1", percent);
    }
    for _ in 0..3 {
        fire(&fleet, "m2", 99);
    }
    until("both are told", || followed.tags("told/").len() >= 2);
    assert_eq!(followed.tags("told/"), ["told/m1", "told/m2"], "{}", followed.text());
    // Two of three, then another master: it goes on counting, and m1 stays quiet.
    for _ in 0..2 {
        fire(&fleet, "m3", 99);
    }
    let handled = |fleet: &Fleet| {
        let status = fleet.run(&["reactor.status", "--out=json"]).out;
        let status: serde_json::Value = serde_json::from_str(&status).unwrap_or_default();
        status["handled"].as_i64().unwrap_or(0)
    };
    until("all were looked at", || handled(&fleet) == 12);
    drop(followed);
    fleet.stop_master();
    fleet.start_master();
    let followed = fleet.follow();
    for _ in 0..3 {
        fire(&fleet, "m1", 99);
    }
    fire(&fleet, "m3", 99);
    until("the third is told", || !followed.tags("told/").is_empty());
    until("all were looked at", || handled(&fleet) == 4);
    assert_eq!(followed.tags("told/"), ["told/m3"], "{}", followed.text());
}

/// The reactor of guides: a minion that starts, a cloud machine, a web server that stopped, an event
/// of a state.
#[test]
fn the_reactor_of_guides() {
    let mut fleet = Fleet::prepared("auto_accept: True\n");
    let config = "reactor:
  - 'salt/minion/*/start':
    - {root}/srv/reactor/minion_start.sls

  - 'salt/minion/*/service/nginx/stopped':
    - {root}/srv/reactor/restart_nginx.sls

  - 'salt/cloud/*/creating':
    - {root}/srv/reactor/cloud_bootstrap.sls

  - 'myapp/deploy/complete':
    - {root}/srv/reactor/deployed.sls
";
    let root = fleet.machine.path("").display().to_string();
    let config = config.replace("{root}", root.trim_end_matches('/'));
    fleet.machine.write("etc/salt/master.d/reactor.conf", &config);
    fleet.machine.write(
        "srv/reactor/minion_start.sls",
        "# When a new minion comes online, automatically apply its highstate\n\
         apply_highstate:\n  local.state.highstate:\n    - tgt: {{ data['id'] }}\n",
    );
    fleet.machine.write(
        "srv/reactor/restart_nginx.sls",
        "{% set minion_id = data['id'] %}\n\
         restart_nginx_on_minion:\n  local.service.restart:\n    - tgt: {{ minion_id }}\n    - arg:\n      - nginx\n\
         notify_ops:\n  local.notes.send_msg:\n    - tgt: 'salt-master'\n    - arg:\n      - ops@example.com\n\
         \x20     - \"Nginx restarted on {{ minion_id }}\"\n      - \"Nginx service was stopped and automatically restarted\"\n",
    );
    fleet.machine.write(
        "srv/reactor/cloud_bootstrap.sls",
        "note:\n  runner.event.send:\n    - args:\n      - tag: seen/{{ tag.split('/')[2] }}\n      - data: {{ data | json }}\n",
    );
    fleet.machine.write(
        "srv/reactor/deployed.sls",
        "note:\n  runner.event.send:\n    - tag: seen/deployed\n    - data:\n        version: {{ data['data']['version'] }}\n",
    );
    // This machine need not have nginx: what is called is what counts.
    let notes = fleet.machine.path("notes").display().to_string();
    let module = |name: &str, function: &str| {
        format!(
            "def {function}(*args, **kwargs):\n    with open({notes:?}, 'a') as f:\n        f.write('{name}.{function} ' + ' | '.join(args) + '\\n')\n    return True\n"
        )
    };
    fleet.machine.write("srv/salt/_modules/service.py", &module("service", "restart"));
    fleet.machine.write("srv/salt/_modules/notes.py", &module("notes", "send_msg"));
    leaves(&fleet, "base", "highstate-was-here");
    fleet.machine.write("srv/salt/top.sls", "base:\n  'web*':\n    - base\n");
    fleet.machine.write(
        "srv/salt/deployed.sls",
        "notify_deploy_complete:\n  module.run:\n    - name: event.send\n    - tag: myapp/deploy/complete\n\
         \x20   - data:\n        version: {{ pillar['app_version'] }}\n        status: ok\n",
    );
    fleet.start_master();
    fleet.start_minion("salt-master", "");
    fleet.minion("web01", "");
    until("a minion that started gets its highstate", || {
        fleet.machine.path("highstate-was-here").exists()
    });
    fleet.wait_for("salt-master");
    for id in ["web01", "salt-master"] {
        fleet.salt(&[id, "saltutil.sync_modules", "saltenv=base"]).code(0);
    }
    let followed = fleet.follow();
    fleet.call("web01", &["event.send", "salt/minion/web01/service/nginx/stopped"]).code(0);
    until("nginx is restarted, and somebody is told", || {
        let notes = fleet.machine.read("notes").unwrap_or_default();
        notes.contains("service.restart nginx")
            && notes.contains(
                "notes.send_msg ops@example.com | Nginx restarted on web01 | Nginx service",
            )
    });
    fleet.run(&["event.send", "salt/cloud/new1/creating", "{\"name\": \"new1\"}"]).code(0);
    until("a machine of a cloud", || followed.tags("seen/").contains(&"seen/new1".to_owned()));
    fleet
        .salt(&["web01", "state.apply", "deployed", "pillar={\"app_version\": \"1.4.2\"}"])
        .code(0);
    until("an event of a state", || {
        followed.tags("seen/").contains(&"seen/deployed".to_owned())
            && followed.text().contains("\"version\": \"1.4.2\"")
    });
    let sent = "{\"version\": \"1.4.3\", \"status\": \"ok\"}";
    fleet.salt(&["web01", "event.send", "myapp/deploy/complete", sent]).code(0);
    until("an event of a command", || followed.text().contains("\"version\": \"1.4.3\""));
}

/// Posts over TLS with a certificate the client has to know.
const POST: &str = r#"
import http.client, ssl, sys

port, certificate = int(sys.argv[1]), sys.argv[2]
context = ssl.create_default_context(cafile=certificate)
connection = http.client.HTTPSConnection("localhost", port, context=context, timeout=30)
connection.request("POST", "/hook/build/done", body='{"n": 7}', headers={"X-Auth-Token": "secret"})
print(connection.getresponse().status)
try:
    ssl.create_default_context().wrap_socket(__import__("socket").create_connection(("localhost", port)), server_hostname="localhost")
    print("a stranger's certificate was believed")
except ssl.SSLError:
    print("refused")
"#;

#[test]
fn the_hook_speaks_tls() {
    let mut fleet = Fleet::prepared("");
    let (crt, key) = (fleet.machine.path("hook.crt"), fleet.machine.path("hook.key"));
    let mut openssl = std::process::Command::new(need("openssl", &["openssl"]));
    openssl
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj"])
        .args(["/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&crt);
    let made = openssl.output().expect("openssl runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let port = free_port();
    let config = format!(
        "engines:\n  - webhook: {{address: 127.0.0.1, port: {port}, token: secret, ssl_crt: {}, ssl_key: {}}}\n",
        crt.display(),
        key.display()
    );
    fleet.machine.write("etc/salt/master.d/hook.conf", &config);
    fleet.start_master();
    let followed = fleet.follow();
    until("the hook listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    fleet.machine.write("post.py", POST);
    let mut post = std::process::Command::new("python3");
    post.arg(fleet.machine.path("post.py")).arg(port.to_string()).arg(&crt);
    let ran = fleet.machine.run(&mut post).code(0);
    assert_eq!(ran.out, "200\nrefused\n", "{ran:?}");
    until("the event is fired", || {
        followed.tags("salt/engines/hook/build/done").len() == 1
            && followed.text().contains("\"n\": 7")
    });
    // Plain text gets no answer, and does no harm.
    assert!(
        !self::post(port, "/hook/build/done", "X-Auth-Token: secret\r\n", "{}").contains("200")
    );
    let ran = fleet.machine.run(&mut post).code(0);
    assert!(ran.out.starts_with("200"), "{ran:?}");
}

#[test]
fn a_reader_that_does_not_read_changes_nothing_for_others() {
    use std::time::{Duration, Instant};

    use halite_client::{Client, EventItem, Request};

    let fleet = Fleet::new("");
    let folder = fleet.machine.path("var/run/salt/master");
    let connect = || Client::connect(&folder).expect("a master");
    let request = Request::Events { tag: "many/".into(), after: None };
    let mut readers: Vec<_> = (0..3)
        .map(|_| {
            let mut client = connect();
            let stream = client.send(&request).expect("a stream");
            (client, stream)
        })
        .collect();
    let mut slow = connect();
    let slow_stream = slow.send(&request).expect("a stream");
    let mut firing = connect();
    let word = "x".repeat(1000);
    let fire = |firing: &mut Client, n: i64| {
        let data = halite_value::entries! { "n" => n, "word" => word.as_str() };
        let tag = format!("many/{n}").into();
        firing.call(&Request::Fire { tag, data }).expect("it is fired");
    };
    // All listen once each has seen something.
    let soon = || Some(Instant::now() + Duration::from_secs(60));
    let next = |client: &mut Client, stream| match client.event(stream, soon()).expect("connected")
    {
        Some(EventItem::Event { data, .. }) => data.get("n").and_then(|n| n.as_int()),
        Some(EventItem::Gap { missed }) => Some(-i64::try_from(missed).unwrap_or(i64::MAX)),
        None => None,
    };
    for (client, stream) in &mut readers {
        until("it listens", || {
            fire(&mut firing, 0);
            client
                .event(*stream, Some(Instant::now() + Duration::from_millis(100)))
                .is_ok_and(|seen| seen.is_some())
        });
    }
    // More than the slow one's sockets and queue hold; the others read along.
    const MANY: i64 = 60_000;
    let reading: Vec<_> = readers
        .into_iter()
        .map(|(mut client, stream)| {
            std::thread::spawn(move || {
                let mut expected = 1;
                while expected <= MANY {
                    let seen = match client.event(stream, soon()).expect("connected") {
                        Some(EventItem::Event { data, .. }) => {
                            data.get("n").and_then(|n| n.as_int())
                        }
                        Some(EventItem::Gap { missed }) => {
                            panic!("a gap of {missed} at {expected}")
                        }
                        None => panic!("nothing after {expected}"),
                    };
                    if seen != Some(0) {
                        assert_eq!(seen, Some(expected), "in order, and none left out");
                        expected += 1;
                    }
                }
            })
        })
        .collect();
    for n in 1..=MANY {
        fire(&mut firing, n);
    }
    for reader in reading {
        reader.join().expect("it saw all of them");
    }
    // The slow one is told what it missed, and the master did not keep it all in memory.
    let mut seen = 0;
    let gap = loop {
        match next(&mut slow, slow_stream) {
            Some(gap) if gap < 0 => break -gap,
            Some(_) => seen += 1,
            None => panic!("no gap after {seen} events"),
        }
    };
    assert!(gap > 0 && seen < MANY, "{seen} seen, {gap} missed");
}

/// The mail of a guide's reactor, by a profile of the minion and by its usual account; and as state.
#[test]
fn reactions_send_mail() {
    let (port, mails) = mail_server();
    let mut fleet = Fleet::prepared(
        "auto_accept: True\nreactor:\n  - 'shop/stopped': [{root}/srv/reactor/tell.sls]\n",
    );
    fleet.machine.write(
        "srv/reactor/tell.sls",
        "notify_ops:\n  local.smtp.send_msg:\n    - tgt: salt-master\n    - arg:\n      - ops@example.com\n\
         \x20     - \"Nginx restarted on {{ data['which'] }}\"\n      - \"Nginx service was stopped and restarted\"\n",
    );
    fleet.start_master();
    let config = format!(
        "smtp.server: 127.0.0.1:{port}\nsmtp.tls: False\nsmtp.sender: salt@example.com\n\
         desk: {{'smtp.server': '127.0.0.1:{port}', 'smtp.tls': False, 'smtp.sender': desk@example.com,\
         \x20 'smtp.username': u, 'smtp.password': p}}\n"
    );
    fleet.minion("salt-master", &config);
    fleet.run(&["event.send", "shop/stopped", "{\"which\": \"web1\"}"]).code(0);
    let mail = mails.recv_timeout(halite_e2e::site::PATIENCE).expect("a mail");
    let expected = "MAIL FROM:<salt@example.com>\nRCPT TO:<ops@example.com>\nDATA\n\
                    Content-Type: text/plain; charset=\"us-ascii\"\nMIME-Version: 1.0\n\
                    Content-Transfer-Encoding: 7bit\nSubject: Nginx service was stopped and restarted\n\
                    From: salt@example.com\nTo: ops@example.com\n\nNginx restarted on web1\n.\nQUIT\n";
    assert!(mail.ends_with(expected), "{mail}");

    let args = [
        "salt-master",
        "state.single",
        "smtp.send_msg",
        "name=grüß dich",
        "recipient=a@x.org,b@x.org",
    ];
    let more = ["subject=S", "profile=desk"];
    fleet.salt(&[&args[..], &more[..]].concat()).code(0).says("Sent message to a@x.org,b@x.org");
    let mail = mails.recv_timeout(halite_e2e::site::PATIENCE).expect("a mail");
    for line in [
        "AUTH PLAIN AHUAcA==",
        "MAIL FROM:<desk@example.com>",
        "RCPT TO:<b@x.org>",
        "Content-Transfer-Encoding: base64",
        "Z3LDvMOfIGRpY2g=",
    ] {
        assert!(mail.lines().any(|own| own == line), "{line}: {mail}");
    }
    let test = [&args[..], &more[..], &["test=True"]].concat();
    fleet.salt(&test).code(0).says("Need to send message to a@x.org,b@x.org: grüß dich");
    // A line's end in an address would begin a command of its own.
    let evil = ["salt-master", "smtp.send_msg", "a@x.org>\r\nRSET", "text"];
    assert!(fleet.salt(&evil).out.contains("no address"), "refused");
    fleet.machine.write("paper", "hello\n");
    let paper = format!("attachments=['{}']", fleet.machine.path("paper").display());
    fleet
        .salt(&["salt-master", "smtp.send_msg", "a@x.org", "see there", &paper])
        .code(0)
        .says("True");
    let mail = mails.recv_timeout(halite_e2e::site::PATIENCE).expect("a mail");
    assert!(mail.contains("filename=\"paper\"\n\naGVsbG8K\n"), "{mail}");
}

/// Engines of Salt's own, in the forms the option has.
#[test]
fn what_a_script_prints_becomes_events() {
    let mut fleet = Fleet::prepared(
        "auto_accept: True\nengines:\n  - script: {cmd: '{root}/tell.sh', interval: 1}\n\
         \x20 - changes:\n    - engine_module: script\n    - cmd: '{root}/same.sh'\n    - interval: 1\n    - onchange: True\n\
         \x20 - reactor: {refresh_interval: 60, worker_threads: 10}\n  - test\n",
    );
    let script = |name: &str, lines: &str| {
        fleet.machine.write(name, &format!("#!/bin/sh\n{lines}\n"));
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(fleet.machine.path(name), mode).expect("it is ours");
    };
    script("tell.sh", "echo nonsense\necho '{\"tag\": \"scr/one\", \"data\": {\"n\": 1}}'");
    script("same.sh", "echo '{\"tag\": \"scr/same\", \"data\": {\"n\": 2}}'");
    fleet.start_master();
    let followed = fleet.follow();
    until("its lines are events, again and again", || {
        followed.text().matches("\"n\": 1").count() >= 3
    });
    assert!(followed.text().contains("_master\""), "{}", followed.text());
    assert!(followed.tags("scr/same").len() <= 1, "{}", followed.text());
    let log = fleet.log();
    assert!(!log.contains("The engine reactor") && !log.contains("The engine test"), "{log}");
    assert!(log.contains("The engine script: "), "what is no event is named: {log}");
}
