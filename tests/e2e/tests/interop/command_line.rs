//! Genuine programs beside our master: the `salt` command, and Python that listens to the bus.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use halite_e2e::{
    genuine::{self, NEWEST},
    site::{Make, PATIENCE, Site},
};
use serde_json::json;

use super::{salt, tree};

const LISTEN: &str = r#"
import sys
import salt.config
import salt.utils.event
import salt.utils.json
opts = salt.config.client_config(sys.argv[1])
bus = salt.utils.event.get_event("master", sock_dir=opts["sock_dir"], opts=opts, listen=True)
print("ready", flush=True)
sent = salt.utils.event.get_master_event(opts, opts["sock_dir"])
sent.fire_event({"from": "python"}, "own/tag")
returns = 0
for event in bus.iter_events(full=True):
    print(event["tag"], salt.utils.json.dumps(event["data"]), flush=True)
    returns += "/ret/" in event["tag"]
    if returns == 2:
        break
"#;

#[test]
fn the_genuine_command_line_on_our_master() {
    let mut site = Site::new(Make::Ours, "");
    tree(&site);
    site.start_master();
    site.minion("one", Make::Ours, "");
    site.minion("two", Make::Ours, "");
    site.accept(&["one", "two"]);
    site.answer(&["one", "two"]);

    let mut listener = std::process::Command::new(genuine::python())
        .args(["-c", LISTEN])
        .arg(site.path("master/etc/master"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("python starts");
    let mut heard = BufReader::new(listener.stdout.take().expect("a pipe")).lines();
    assert_eq!(heard.next().expect("a line").expect("text"), "ready");

    let genuine = salt(NEWEST);
    let got = site.ask_as(genuine, &["*", "test.ping"]);
    assert_eq!(json!(got), json!({"one": true, "two": true}));
    // It ends by itself when it has heard both; if it does not, it is ended for the test to fail.
    let (told, over) = std::sync::mpsc::channel::<()>();
    let killer = std::thread::spawn(move || {
        if over.recv_timeout(PATIENCE).is_err() {
            let _ = listener.kill();
        }
        let _ = listener.wait();
    });
    let heard: Vec<String> = heard.map_while(Result::ok).collect();
    let _ = told.send(());
    killer.join().expect("no panic");
    for wanted in ["own/tag {", "/new {", "/ret/one {", "/ret/two {"] {
        assert!(heard.iter().any(|line| line.contains(wanted)), "{wanted}: {heard:#?}");
    }
    let got = site.ask_as(genuine, &["-G", "os_family:*", "-b", "1", "test.echo", "hi"]);
    assert_eq!((&got["one"], &got["two"]), (&json!("hi"), &json!("hi")), "{got:?}");
    // All parts of its batch are one job to us, too.
    let jobs = site.runner(&["jobs.list_jobs", "search_function=test.echo"]);
    let jids: Vec<_> = jobs.as_object().expect("jobs").keys().cloned().collect();
    assert_eq!(jids.len(), 1, "{jobs}");
    let returns = site.runner(&["jobs.lookup_jid", &jids[0]]);
    assert_eq!(returns, json!({"one": "hi", "two": "hi"}));
    // A job that takes longer than the timeout: genuine asks with find_job.
    let ran = site.run_as(genuine, "salt", "master", &["one", "test.sleep", "4", "-t", "1"]);
    ran.code(0).says("one:\n    True");
    let ran = site.run_as(genuine, "salt", "master", &["one", "state.apply", "web"]);
    ran.code(0).says("Succeeded: 3 (changed=3)");
    let ran = site.run_as(genuine, "salt-key", "master", &["-L"]);
    ran.code(0).says("Accepted Keys:\none\ntwo");
    let lookup = site.run_as(genuine, "salt-run", "master", &["jobs.list_jobs", "--out=json"]);
    assert!(lookup.out.contains("state.apply"), "the job cache on disk is Salt's: {lookup:?}");
    // Genuine salt-call with our minion's keys.
    let call = site.run_as(genuine, "salt-call", "one", &["cp.get_file_str", "salt://tree/a/one"]);
    call.code(0).says("    1");
}
