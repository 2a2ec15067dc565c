//! With a master: modules travel, runners and scripts work.

use std::process::Command;

use halite_e2e::{
    root,
    site::{Make, Site},
};

use crate::example;

/// Patches `sleep`, so that an example's minute is a moment.
const SITE: &str = "import time\n_sleep = time.sleep\ntime.sleep = lambda s: _sleep(min(s, 0.1))\n";

const DEPLOY: &str = "
def release(app_name, version):
    return {'success': True, 'app': app_name, 'version': version}


def health_check(app_name):
    return {'healthy': True}
";

#[test]
fn the_canary_runner_of_the_examples() {
    let mut site = Site::new(Make::Ours, "auto_accept: True");
    site.write("srv/salt/_modules/deploy.py", DEPLOY);
    let runner = example("python_app/salt/_runners/canary_deploy.py");
    site.write("master/var/cache/salt/master/extmods/runners/canary_deploy.py", runner);
    site.write("lib/sitecustomize.py", SITE);
    let python = site.path("python");
    let lib = site.path("lib");
    site.write("python", format!("#!/bin/sh\nPYTHONPATH={} exec python3 \"$@\"\n", lib.display()));
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&python, mode).expect("it is ours");
    let config = site.read("master/etc/master");
    site.write("master/etc/master", format!("{config}halite: {{python: {}}}\n", python.display()));
    site.start_master();
    for id in ["web-canary1", "web1"] {
        site.minion(id, Make::Ours, "");
    }
    site.answer(&["web-canary1", "web1"]);
    site.salt(&["*", "saltutil.sync_all"]).code(0).says("modules.deploy");
    let done = site.runner(&["canary_deploy.execute", "myapp", "v2.3.1"]);
    assert_eq!(done["stage"], "complete", "{done}");
    assert_eq!(done["success"], true);
    assert_eq!(done["canary_hosts"], serde_json::json!(["web-canary1"]));
    assert_eq!(done["total_hosts"].as_array().map(Vec::len), Some(2));
    site.run("salt-run", &["-d", "canary_deploy"]).code(0).says("Deploy to canary hosts first");
}

/// Runs a script with our package.
fn script(site: &Site, text: &str) -> halite_e2e::Ran {
    site.write("script.py", text);
    let mut command = Command::new("python3");
    command.arg("-c").arg(format!(
        "import sys; sys.path.insert(0, {:?}); exec(open({:?}).read())",
        root().join("python").display().to_string(),
        site.path("script.py").display().to_string()
    ));
    site.command(&mut command)
}

const CLIENTS: &str = r#"
import time
import salt.client, salt.config, salt.runner, salt.wheel, salt.utils.event

opts = salt.config.client_config(CONFIG)
client = salt.client.LocalClient(mopts=opts)
assert client.cmd("*", "test.ping") == {"m1": True, "m2": True}
assert client.cmd("m1", "test.echo", ["x"]) == {"m1": "x"}
assert client.cmd("m1", "test.kwarg", kwarg={"a": 1})["m1"]["a"] == 1
assert client.cmd("m1", "test.ping", full_return=True)["m1"]["ret"] is True
assert client.cmd("m2,m1", "test.ping", tgt_type="list") == {"m1": True, "m2": True}
assert client.cmd("m1", ["test.ping", "test.echo"], [[], ["y"]]) == {"m1": {"test.ping": True, "test.echo": "y"}}
assert client.cmd("nobody", "test.ping") == {}
assert sorted(name for part in client.cmd_iter("*", "test.ping") for name in part) == ["m1", "m2"]
batches = list(client.cmd_batch("*", "test.ping", batch="1"))
assert len(batches) == 2 and all(part["retcode"] == 0 for part in batches), batches
job = client.run_job("*", "test.ping")
assert sorted(job["minions"]) == ["m1", "m2"], job
jid = client.cmd_async("*", "test.echo", ["later"])
for _ in range(100):
    found = client.get_cache_returns(jid)
    if len(found) == 2:
        break
    time.sleep(0.1)
assert found["m1"]["ret"] == "later", found
assert client.cmd_async("nobody", "test.ping") == 0
keys = salt.wheel.WheelClient(opts).cmd("key.list_all")
assert keys["minions"] == ["m1", "m2"], keys
bus = salt.utils.event.get_event("master", sock_dir=opts["sock_dir"], transport=opts["transport"], opts=opts)
assert bus.fire_event({"n": 1}, "own/tag")
event = bus.get_event(wait=10, tag="own/", full=True)
assert event["tag"] == "own/tag" and event["data"]["n"] == 1, event
client.cmd_async("m1", "test.ping")
for event in bus.iter_events(tag="salt/job", full=True):
    if event["tag"].endswith("/ret/m1"):
        break
print("all good")
"#;

fn two_minions() -> Site {
    let mut site = Site::new(Make::Ours, "auto_accept: True");
    site.start_master();
    site.minion("m1", Make::Ours, "");
    site.minion("m2", Make::Ours, "");
    site.answer(&["m1", "m2"]);
    site
}

#[test]
fn scripts_talk_to_our_master() {
    let site = two_minions();
    let config = format!("CONFIG = {:?}\n", site.path("master/etc/master").display().to_string());
    script(&site, &format!("{config}{CLIENTS}")).code(0).says("all good");
}

/// `requests` as the example uses it, but to the collector of this test.
const REQUESTS: &str = r#"
import json as _json, os

def post(url, json=None):
    with open(os.environ["COLLECTED"], "a") as f:
        f.write(url + " " + _json.dumps(json) + "\n")
"#;

#[test]
fn the_event_forwarder_of_the_examples() {
    let site = two_minions();
    site.write("lib/requests.py", REQUESTS);
    site.write("forwarder.py", example("blue_green/scripts/salt_event_forwarder.py"));
    let package = root().join("python");
    let path = format!("{}:{}", site.path("lib").display(), package.display());
    let collected = site.path("collected");
    let mut forwarder = Command::new("python3")
        .arg(site.path("forwarder.py"))
        .env("PYTHONPATH", path)
        .env("COLLECTED", &collected)
        .env("SALT_MASTER_CONFIG", site.path("master/etc/master"))
        .spawn()
        .expect("python3 starts");
    halite_e2e::site::until("the forwarder posts returns", || {
        site.salt(&["m1", "test.ping"]);
        let posted = site.read("collected");
        posted.contains("http://monitoring.example.com/api/metrics")
            && posted.contains("\"minion\": \"m1\"")
            && posted.contains("\"fun\": \"test.ping\"")
    });
    forwarder.kill().expect("it runs");
    forwarder.wait().expect("it ended");
}
