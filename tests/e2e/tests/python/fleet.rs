//! With a master: modules travel, runners and scripts work.

use std::process::Command;

use halite_e2e::{
    genuine::client_python,
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

/// An executor decides what becomes of a published job, also of a function that nobody has.
#[test]
fn executors_of_users_get_the_published_job() {
    let mut site = Site::new(Make::Ours, "auto_accept: True");
    site.write(
        "srv/salt/_executors/far.py",
        "def allow_missing_func(fun):\n    return fun.startswith('far.')\n\n\n\
         def execute(opts, data, func, args, kwargs):\n    if isinstance(func, str):\n        \
         return [func, args, kwargs['tgt']]\n    return [func.__name__, func(*args, **kwargs), data['tgt']]\n",
    );
    site.start_master();
    site.minion("m1", Make::Ours, "");
    site.answer(&["m1"]);
    site.salt(&["m1", "saltutil.sync_executors"]).code(0).says("executors.far");
    let far = "--module-executors=far";
    let out = "--out=json";
    let squeezed = |args: &[&str], code: i32| {
        let ran = site.salt(args).code(code);
        ran.out.split_whitespace().collect::<String>()
    };
    assert_eq!(squeezed(&[out, far, "m1", "test.echo", "hi"], 0), r#"{"m1":["echo","hi","m1"]}"#);
    assert_eq!(squeezed(&[out, far, "m1", "far.off", "a"], 0), r#"{"m1":["far.off",["a"],"m1"]}"#);
    let unknown = squeezed(&[out, far, "m1", "near.by"], 1);
    assert_eq!(unknown, r#"{"m1":"'near.by'isnotavailable."}"#);
}

/// Runs a script with our package.
fn script(site: &Site, text: &str) -> halite_e2e::Ran {
    site.write("script.py", text);
    let mut command = Command::new(client_python());
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
assert sorted(batches, key=str) == [{"m1": True}, {"m2": True}], batches
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
    let mut forwarder = Command::new(client_python())
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

/// Everything scripts do with a master, and what came of it, as JSON.
const BOTH: &str = r#"
import json, sys, time
import salt.client, salt.config, salt.runner, salt.wheel, salt.utils.event
import salt.utils.stringutils

MASTER, MINION = sys.argv[1:3]
FOUND = {}

opts = salt.config.client_config(MASTER)
client = salt.client.LocalClient(mopts=opts)


def keep(name, value):
    FOUND[name] = value


def plain(full):
    """What is the same in every run."""
    return {minion: {key: data[key] for key in ("ret", "retcode", "success") if key in data} for minion, data in full.items()}


keep("cmd", client.cmd("*", "test.ping"))
keep("cmd echo", client.cmd("m1", "test.echo", ["x"]))
kwarg = client.cmd("m1", "test.kwarg", kwarg={"a": 1})["m1"]
keep("cmd kwarg", {key: value for key, value in kwarg.items() if not key.startswith("__pub")})
keep("cmd arg and kwarg", client.cmd("m1", "test.arg", ["a", "b=2", 3], kwarg={"c": [1]})["m1"]["args"])
full = client.cmd("m1", "test.ping", full_return=True)
keep("cmd full", [plain(full), sorted(full["m1"])])
keep("cmd list", client.cmd("m2,m1", "test.ping", tgt_type="list"))
keep("cmd list of names", client.cmd(["m2"], "test.ping", tgt_type="list"))
keep("cmd compound", client.cmd("m1 or G@id:m2", "test.ping", tgt_type="compound"))
keep("cmd grain", client.cmd("id:m1", "test.ping", tgt_type="grain"))
keep("cmd several", client.cmd("m1", ["test.ping", "test.echo"], [[], ["y"]]))
keep("cmd comma", client.cmd("m1", "test.ping,test.echo", [[], ["y"]]))
keep("cmd nobody", client.cmd("nobody", "test.ping"))
keep("cmd missing", client.cmd("m1", "no.such"))
keep("cmd_iter", sorted(name for part in client.cmd_iter("*", "test.ping") for name in part))
full = next(iter(client.cmd_iter("m1", "test.echo", ["z"])))
keep("cmd_iter full", [plain(full), sorted(full["m1"])])
keep("cmd_full_return", plain(client.cmd_full_return("m1", "test.echo", ["f"])))
keep("cmd_iter_no_block", sorted(name for part in client.cmd_iter_no_block("*", "test.ping") for name in part or {}))
batches = list(client.cmd_batch("*", "test.ping", batch="1"))
keep("cmd_batch", sorted(batches, key=str))
raw = [event["tag"].rsplit("/", 2)[1:] for event in client.cmd_batch("*", "test.ping", batch="1", raw=True)]
keep("cmd_batch raw", sorted(raw))
keep("cmd_subset", len(client.cmd_subset("*", "test.ping", subset=1)))
job = client.run_job("*", "test.ping")
keep("run_job", [sorted(job), sorted(job["minions"]), len(job["jid"])])
jid = client.cmd_async("*", "test.echo", ["later"])
keep("cmd_async", [type(jid).__name__, len(jid)])
for _ in range(300):
    found = client.get_cache_returns(jid)
    if len(found) == 2:
        break
    time.sleep(0.1)
keep("get_cache_returns", found)
keep("get_cli_returns", list(client.get_cli_returns(jid, {"m1", "m2"})))
keep("get_full_returns", client.get_full_returns(jid, {"m1", "m2"}, 5))
keep("cmd_async nobody", client.cmd_async("nobody", "test.ping"))
wheel = salt.wheel.WheelClient(opts)
keep("wheel", wheel.cmd("key.list_all"))
keep("wheel name", wheel.cmd("key.name_match", ["m*"]))
runner = salt.runner.RunnerClient(opts)
keep("runner", runner.cmd("manage.up", print_event=False))
keep("runner arg", runner.cmd("test.arg", ["a"], kwarg={"b": 2}, print_event=False))
keep("runner lookup", runner.cmd("jobs.lookup_jid", [jid], print_event=False))
bus = salt.utils.event.get_event("master", sock_dir=opts["sock_dir"], opts=opts, listen=True)
assert bus.connect_pub(timeout=30) is not False
keep("fire_event", bool(bus.fire_event({"n": 1, "deep": {"a": [1]}}, "own/tag")))
event = bus.get_event(wait=30, tag="own/", full=True)
keep("get_event", [event["tag"], event["data"]["n"], event["data"]["deep"], "_stamp" in event["data"]])
keep("get_event none", bus.get_event(wait=0.1, tag="nothing/", full=True))
bus.fire_event({"n": 2}, "own/two")
keep("get_event data", bus.get_event(wait=30, tag="own/two")["n"])
jid = client.cmd_async("m1", "test.echo", ["seen"])
for event in bus.iter_events(tag="salt/job", full=True):
    if event["tag"] == "salt/job/{}/ret/m1".format(jid):
        data = event["data"]
        keep("iter_events", [data["fun"], data["id"], data["return"], data["retcode"], data["success"], data["fun_args"]])
        break
caller = salt.client.Caller(mopts=salt.config.minion_config(MINION))
keep("caller", caller.cmd("test.echo", "here"))
keep("caller kwarg", caller.cmd("test.arg", "a", b=2))
keep("caller pillar", caller.cmd("pillar.get", "color"))
keep("caller grain", caller.cmd("grains.get", "id"))
keep("expr_match", [salt.utils.stringutils.expr_match("web1", "web*"), salt.utils.stringutils.expr_match("x", "web*")])
print("FOUND " + json.dumps(FOUND, sort_keys=True))
"#;

#[test]
fn scripts_do_the_same_with_the_genuine_package() {
    let site = two_minions();
    site.write("srv/pillar/top.sls", "base: {'*': [p]}\n");
    site.write("srv/pillar/p.sls", "color: red\n");
    site.salt(&["*", "saltutil.refresh_pillar", "wait=True"]).code(0);
    site.write("both.py", BOTH);
    let run = |command: &mut Command| -> serde_json::Map<String, serde_json::Value> {
        command
            .arg(site.path("both.py"))
            .arg(site.path("master/etc/master"))
            .arg(site.path("m1/etc/minion"));
        let ran = site.command(command);
        let line = ran.out.lines().find_map(|line| line.strip_prefix("FOUND "));
        let line = line.unwrap_or_else(|| panic!("{ran:?}\n{}", site.read("master.log")));
        serde_json::from_str(line).expect("JSON")
    };
    // `python3 -c` with a path: an environment is not passed on.
    let ours = run(Command::new("env")
        .arg(format!("PYTHONPATH={}", root().join("python").display()))
        .arg(format!("HALITE={}", halite_e2e::halite().display()))
        .arg(client_python()));
    let theirs = run(&mut Command::new(halite_e2e::genuine::python()));
    assert!(ours.len() > 30, "{ours:?}");
    for (what, genuine) in &theirs {
        assert_eq!(ours.get(what), Some(genuine), "{what}");
    }
    assert_eq!(ours.len(), theirs.len());
}
