//! What minions do of their own accord, with real daemons: beacons, the schedule, the mine, peers,
//! returners.

use std::{
    fs,
    io::{Read as _, Write as _},
    time::Duration,
};

use halite_e2e::{
    fleet::{Fleet, until},
    root,
};

const ACCEPT: &str = "auto_accept: True";

/// Follows the master's events.
fn follow(fleet: &Fleet) -> impl Fn() -> String + use<> {
    let followed = fleet.follow();
    move || followed.text()
}

#[test]
fn beacons_become_events_of_the_master() {
    let mut fleet = Fleet::new(ACCEPT);
    let watched = fleet.machine.path("watched");
    fs::create_dir_all(&watched).unwrap();
    let shown = watched.display().to_string();
    let config = format!(
        "beacons:\n  inotify:\n    - files:\n        {shown}: {{mask: [create]}}\n  memusage:\n    \
         - percent: 0%\n    - interval: 1\n  sick:\n    - percent: x\n    - beacon_module: memusage\n"
    );
    let events = follow(&fleet);
    fleet.minion("web1", &config);
    until("the beacons run", || events().contains("salt/beacon/web1/memusage/"));
    fs::write(watched.join("new"), "x").unwrap();
    until("a new file is told", || events().contains(&format!("salt/beacon/web1/inotify/{shown}")));
    assert!(events().contains("IN_CREATE"), "{}", events());
    let log = fleet.machine.read("web1.log").unwrap_or_default();
    assert!(log.contains("Beacon sick configuration invalid, not running."), "{log}");

    let add = "[{processes: {no-such-process: stopped}}, {interval: 1}]";
    fleet.salt(&["web1", "beacons.add", "ps", add]).code(0).says("Added beacon: ps.");
    until("an added beacon runs", || events().contains("no-such-process"));
    fleet.salt(&["web1", "beacons.save"]).code(0).says("Beacons saved to");
    let saved = fleet.machine.read("etc/salt-web1/minion.d/beacons.conf").unwrap_or_default();
    assert!(saved.contains("no-such-process"), "{saved}");
    fleet.call("web1", &["--local", "beacons.list"]).code(0).says("no-such-process");
    fleet.salt(&["web1", "beacons.disable"]).code(0).says("Disabled beacons on minion.");
}

#[test]
fn the_schedule_returns_to_the_job_cache() {
    let mut fleet = Fleet::new(
        "auto_accept: True\nschedule:\n  own: {function: test.arg, args: [from the master], seconds: 3600, \
         returner: rawfile_json, return_kwargs: {filename: \"{root}/own.json\"}}\n",
    );
    let events = follow(&fleet);
    let returns = fleet.machine.path("returns.json").display().to_string();
    fleet.minion(
        "web1",
        &format!(
            "schedule:\n  job1: {{function: test.arg, args: [here I am], kwargs: {{a: 2}}, seconds: 3600, \
             returner: rawfile_json, metadata: {{x: y}}}}\nrawfile_json.filename: {returns}\n"
        ),
    );
    until("the job has returned", || {
        fleet.run(&["jobs.list_jobs", "--out=json"]).out.contains("here I am")
    });
    until("its event is seen", || events().contains("\"schedule\": \"job1\""));
    let kept = fleet.machine.read("returns.json").unwrap_or_default();
    assert!(kept.contains("here I am"), "{kept}");

    let add =
        ["web1", "schedule.add", "job2", "function=test.arg", "job_args=[added]", "seconds=3600"];
    fleet.salt(&add).code(0).says("Added job: job2 to schedule.");
    until("an added job runs", || {
        fleet.run(&["jobs.list_jobs", "--out=json"]).out.contains("added")
    });
    let saved = fleet.machine.read("etc/salt-web1/minion.d/_schedule.conf").unwrap_or_default();
    assert!(saved.contains("job2") && !saved.contains("__mine_interval"), "{saved}");
    fleet.salt(&["web1", "schedule.show_next_fire_time", "job2"]).code(0).says("next_fire_time");
    fleet.call("web1", &["--local", "schedule.list"]).code(0).says("job2");
    fleet.salt(&["web1", "schedule.delete", "job2"]).code(0).says("Deleted Job job2");
    fleet.salt(&["web1", "schedule.list"]).code(0).says("job1");

    let all = fleet.run(&["jobs.list_jobs", "--out=json"]).out;
    assert!(all.contains("from the master"), "{all}");
    let kept = fleet.machine.read("own.json").unwrap_or_default();
    assert!(kept.contains("from the master") && !kept.contains("\"cmd\""), "{kept}");

    // What genuine Salt's events of scheduled jobs say, too.
    fleet.machine.write("srv/salt/calm.sls", "calm: test.succeed_without_changes");
    let job = ["job_args=[calm]", "seconds=3600"];
    let states = ["web1", "schedule.add", "states", "function=state.apply", job[0], job[1]];
    fleet.salt(&states).code(0);
    fleet.salt(&["web1", "schedule.add", "none", "function=no.such", "seconds=3600"]).code(0);
    let line = |name: &str| {
        let name = format!("\"schedule\": \"{name}\"");
        events().lines().find(|line| line.contains(&name)).map(str::to_owned)
    };
    until("both have run", || line("states").is_some() && line("none").is_some());
    for (name, words) in [
        ("states", ["\"out\": \"highstate\"", "\"tgt\": \"web1\"", "\"arg\": [\"calm\"]"]),
        ("none", ["\"retcode\": 254", "\"tgt_type\": \"glob\"", "is not available."]),
    ] {
        let line = line(name).unwrap_or_default();
        assert!(words.iter().all(|word| line.contains(word)), "{name}: {line}");
    }
    fleet
        .salt(&["web1", "schedule.add", "odd", "function=test.ping", "when=nonsense"])
        .code(1)
        .says("Schedule item nonsense for \"when\" in invalid.");
}

#[test]
fn minions_ask_each_other() {
    let config = "auto_accept: True\npeer: {'web.*': [test.*]}\npeer_run: {'web.*': [test.arg]}\n";
    let mut fleet = Fleet::new(config);
    let mine = "mine_functions:\n  test.arg: [mined]\n  shown: [{mine_function: test.arg}, {allow_tgt: 'db*'}, secret]\n";
    fleet.minion("web1", mine);
    fleet.minion("db1", "mine_functions: [test.ping]");
    until("the mine is filled", || {
        fleet.salt(&["db1", "mine.get", "web1", "test.arg", "--out=json"]).out.contains("mined")
    });
    fleet.salt(&["db1", "mine.get", "web1", "shown", "--out=json"]).code(0).says("secret");
    let refused = fleet.salt(&["web1", "mine.get", "*", "shown", "--out=json"]).code(0);
    assert!(!refused.out.contains("secret"), "{}", refused.out);
    until("the other list form", || {
        fleet.salt(&["web1", "mine.get", "db1", "test.ping", "--out=json"]).out.contains("true")
    });

    fleet.salt(&["web1", "publish.publish", "*", "test.ping", "--out=json"]).code(0).says("db1");
    let nobody = fleet.salt(&["web1", "publish.publish", "nosuch", "test.ping", "--out=json"]);
    nobody.code(0).says("\"web1\": null");
    let args = ["web1", "publish.full_data", "db1", "test.arg", "[1, a=b]", "--out=json"];
    fleet.salt(&args).code(0).says("\"ret\"");
    fleet.salt(&["web1", "publish.runner", "test.arg", "from a peer"]).says("from a peer");
    let refused = fleet.salt(&["db1", "publish.publish", "*", "test.ping", "--out=json"]);
    assert!(!refused.out.contains("web1"), "{}", refused.out);
}

/// A guide's files for a busy master and for peers, as they stand there.
#[test]
fn the_limits_and_peers_of_guides() {
    let mut fleet = Fleet::prepared(ACCEPT);
    fleet.machine.write(
        "etc/salt/master.d/performance.conf",
        "# Worker threads\nworker_threads: 10\n\n# ZeroMQ tuning\nzmq_filtering: True\nsalt_event_pub_hwm: 10000\n\
         event_publisher_pub_hwm: 10000\n\n# Job cache\njob_cache: True\nkeep_jobs: 72\ncache: localfs\n\n\
         # Minion data cache\nminion_data_cache: True\n\n# Reactor threading\nreactor_worker_threads: 10\n\
         reactor_worker_hwm: 10000\n\n# File server\nfileserver_followsymlinks: False\nfile_ignore_glob:\n  - '*.pyc'\n  - '*.swp'\n",
    );
    fleet.machine.write(
        "etc/salt/master.d/security.conf",
        "# Peer communication\npeer:\n  '.*':\n    - grains.get\n  'web*':\n    - service.status\n",
    );
    let path = fleet.machine.path("srv/reactor/tell.sls").display().to_string();
    let reactor = format!("reactor:\n  - 'salt/minion/*/start':\n    - {path}\n");
    fleet.machine.write("etc/salt/master.d/reactor.conf", &reactor);
    fleet.machine.write(
        "srv/reactor/tell.sls",
        "tell:\n  local.test.arg:\n    - tgt: {{ data['id'] }}\n    - arg: [welcome]\n",
    );
    fleet.start_master();
    fleet.start_minion("db1", "");
    fleet.minion("web1", "zmq_filtering: True");
    fleet.wait_for("db1");
    until("both are welcomed", || {
        fleet.run(&["jobs.list_jobs", "--out=json"]).out.matches("welcome").count() == 2
    });
    let ask = |who: &str, args: &[&str]| {
        let args = [&[who, "publish.publish"], args, &["--out=json", "--out-indent=-1"]].concat();
        fleet.salt(&args).out.trim().to_owned()
    };
    assert_eq!(ask("db1", &["web1", "grains.get", "id"]), r#"{"db1": {"web1": "web1"}}"#);
    assert_eq!(ask("web1", &["db1", "service.status", "none"]), r#"{"web1": {"db1": false}}"#);
    assert_eq!(ask("db1", &["web1", "service.status", "none"]), r#"{"db1": {}}"#);
}

#[test]
fn the_master_says_how_states_are_run() {
    let mut fleet = Fleet::new(
        "auto_accept: True\nstate_events: True\nfailhard: True\nstate_top: other_top.sls\n\
         nodegroups: {shop: 'web* and not web2', bank: web2}\n",
    );
    fleet.machine.write("srv/salt/top.sls", "base: {'*': [calm]}\n");
    fleet.machine.write(
        "srv/salt/other_top.sls",
        "base:\n  shop: [{match: nodegroup}, steps]\n  bank: [{match: nodegroup}, calm]\n",
    );
    fleet.machine.write("srv/salt/calm.sls", "calm: test.succeed_without_changes\n");
    fleet.machine.write(
        "srv/salt/steps.sls",
        "fine: {test.succeed_without_changes: [{order: 1}]}\nbad: {test.fail_without_changes: [{order: 2}]}\n\
         never: {test.succeed_without_changes: [{order: 3}]}\n",
    );
    fleet.minion("web1", "failhard: False\nstate_top: top.sls\n");
    let followed = fleet.follow();
    fleet.salt(&["web1", "state.apply"]).code(1).says("Total states run:     2").says("bad");
    let progress = |n: u8| {
        let tags = followed.tags("salt/job/");
        tags.iter().filter(|tag| tag.ends_with(&format!("/prog/web1/{n}"))).count()
    };
    until("each state is told", || progress(0) == 1 && progress(1) == 1);
    assert_eq!(progress(2), 0);
    fleet.salt(&["web1", "state.top", "top.sls"]).code(0).says("calm");
    // Who asks decides.
    fleet.salt(&["web1", "state.apply", "calm", "state_events=False"]).code(0);
    fleet.salt(&["web1", "state.apply", "calm"]).code(0);
    until("the last run is told", || progress(0) == 3);
}

#[test]
fn returns_go_where_they_are_asked_to() {
    let mut fleet = Fleet::new(
        "auto_accept: True\nevent_return: rawfile_json\nrawfile_json.filename: {root}/events.json\n\
         event_return_queue: 1000\nevent_return_blacklist: ['quiet/*']\n",
    );
    let one = fleet.machine.path("one.json").display().to_string();
    fleet.minion("web1", &format!("rawfile_json.filename: {one}\n"));
    fleet.salt(&["web1", "test.arg", "asked for", "--return", "rawfile_json"]).code(0);
    until("the return is in the file", || {
        fleet.machine.read("one.json").unwrap_or_default().contains("asked for")
    });
    until("the master's events are in their file", || {
        fleet.machine.read("events.json").unwrap_or_default().contains("salt/minion/web1/start")
    });
    fleet.machine.write("srv/salt/told.sls", "told:\n  test.nop:\n    - fire_event: shop/told\n");
    fleet.run(&["event.send", "quiet/one"]).code(0);
    fleet.salt(&["web1", "state.apply", "told"]).code(0);
    // A queue that is never full is emptied all the same.
    let line = || {
        let events = fleet.machine.read("events.json").unwrap_or_default();
        events.lines().find(|line| line.contains("/web1/shop/told")).map(str::to_owned)
    };
    until("the state's event is in the file", || line().is_some());
    let line = line().unwrap_or_default();
    assert!(line.contains("\"jid\": \"2") && !line.contains("pretag"), "{line}");
    let kept = fleet.machine.read("events.json").unwrap_or_default();
    assert!(!kept.contains("\"tag\": \"quiet/one\""), "{kept}");
    let two = fleet.machine.path("two.json").display().to_string();
    let kwargs = format!("{{filename: {two}}}");
    fleet
        .salt(&["web1", "test.ping", "--return", "rawfile_json", "--return_kwargs", &kwargs])
        .code(0);
    until("the return is in the other file", || {
        fleet.machine.read("two.json").unwrap_or_default().contains("test.ping")
    });
}

/// A configuration as manuals show it; genuine Salt fails on it, as `load` lacks its third average.
#[test]
fn a_usual_configuration_of_beacons_works() {
    let mut fleet = Fleet::new(ACCEPT);
    let events = follow(&fleet);
    fleet
        .machine
        .write("etc/salt-web1/minion.d/beacons.conf", include_str!("../files/beacons.conf"));
    fleet.minion("web1", "");
    until("the services are told", || {
        let events = events();
        events.contains("salt/beacon/web1/service/nginx")
            && events.contains("salt/beacon/web1/service/postgresql")
    });
    let log = fleet.machine.read("web1.log").unwrap_or_default();
    assert!(!log.contains("invalid") && !log.contains("errored"), "{log}");
    fleet.salt(&["web1", "beacons.list"]).code(0).says("/etc/important.conf");
}

/// Without any master: the schedule and the beacons run all the same.
#[test]
fn a_minion_without_a_master_keeps_its_schedule() {
    let mut fleet = Fleet::prepared("");
    let returns = fleet.machine.path("alone.json").display().to_string();
    fleet.machine.write("srv/pillar/top.sls", "base: {'*': [jobs]}");
    fleet.machine.write(
        "srv/pillar/jobs.sls",
        "schedule: {of_the_pillar: {function: test.arg, args: [from the pillar], seconds: 3600, returner: rawfile_json}}",
    );
    let root = fleet.machine.path("").display().to_string();
    let config = format!(
        "master_type: disable\nfile_client: local\npillar_roots: {{base: [{root}/srv/pillar]}}\n\
         rawfile_json.filename: {returns}\nschedule: {{own: {{function: test.arg, args: [from the file], \
         cron: '* * * * * */2', returner: rawfile_json}}}}\n"
    );
    fleet.start_minion("hermit", &config);
    until("both jobs have run", || {
        let kept = fleet.machine.read("alone.json").unwrap_or_default();
        kept.contains("from the pillar") && kept.contains("from the file")
    });
}

/// `requests` as the example uses it.
const REQUESTS: &str = r#"
import urllib.request


class RequestException(Exception):
    pass


class Response:
    def __init__(self, status):
        self.status_code = status


def get(url, timeout=None):
    try:
        with urllib.request.urlopen(url, timeout=timeout) as answer:
            return Response(answer.status)
    except OSError as error:
        raise RequestException(str(error)) from None
"#;

/// What guides show: a beacon's event leads to a state on the minion that saw it.
#[test]
fn beacons_lead_to_states() {
    let port = halite_e2e::free_port();
    let mut fleet = Fleet::prepared(
        "auto_accept: True\nreactor:\n  - 'salt/beacon/*/diskusage/*': [{root}/srv/reactor/alert.sls]\n\
         \x20 - 'salt/beacon/*/inotify/*': [{root}/srv/reactor/alert.sls]\n\
         \x20 - 'salt/beacon/*/app_latency/*': [{root}/srv/reactor/alert.sls]\n",
    );
    fleet.machine.write(
        "srv/reactor/alert.sls",
        "{% set kind = tag.split('/')[3] %}\nalert:\n  local.state.apply:\n    - tgt: {{ data['id'] }}\n\
         \x20   - args:\n      - mods: alert\n      - queue: True\n      - pillar:\n          kind: {{ kind }}\n\
         \x20         seen: {{ data | json | yaml_dquote }}\n",
    );
    let place = fleet.machine.path("alerts").display().to_string();
    fleet.machine.write(
        "srv/salt/alert.sls",
        &format!(
            "{place}/{{{{ pillar['kind'] }}}}:\n  file.managed:\n    - makedirs: True\n    \
             - contents: {{{{ pillar['seen'] | yaml_dquote }}}}\n"
        ),
    );
    let beacon = root().join("examples/python_app/salt/_beacons/app_latency.py");
    let beacon = fs::read_to_string(beacon).expect("the example");
    fleet.machine.write("srv/salt/_beacons/app_latency.py", &beacon);
    fleet.machine.write("lib/requests.py", REQUESTS);
    let python = fleet.machine.path("python");
    let lib = fleet.machine.path("lib").display().to_string();
    fleet.machine.write("python", &format!("#!/bin/sh\nPYTHONPATH={lib} exec python3 \"$@\"\n"));
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&python, mode).expect("it is ours");
    let watched = fleet.machine.path("watched.conf");
    fleet.machine.write("watched.conf", "a\n");
    fleet.start_master();
    let config = format!(
        "halite: {{python: {}}}\nbeacons:\n  inotify:\n    - files:\n        {}: {{mask: [modify]}}\n    \
         - disable_during_state_run: True\n  diskusage:\n    - /: 0%\n    - interval: 5\n  app_latency:\n    \
         - url: http://127.0.0.1:{port}/health\n      threshold_ms: 500\n      interval: 3\n",
        python.display(),
        watched.display()
    );
    fleet.minion("app1", &config);
    let alert = |kind: &str| fleet.machine.read(&format!("alerts/{kind}")).unwrap_or_default();
    until("a disk is told", || alert("diskusage").contains("diskusage"));
    fleet.salt(&["app1", "saltutil.sync_beacons", "saltenv=base"]).code(0).says("app_latency");
    until("the application that is not there is told", || {
        let told = alert("app_latency");
        told.contains("refused")
            && told.contains(&format!("127.0.0.1:{port}"))
            && told.contains("app1")
    });
    // It comes back, but is slow.
    let slow = std::net::TcpListener::bind(("127.0.0.1", port)).expect("nobody has it");
    std::thread::spawn(move || {
        for mut stream in slow.incoming().flatten() {
            std::thread::sleep(Duration::from_millis(700));
            let _ = stream.read(&mut [0; 2048]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
    });
    until("the slow application is told", || {
        let told = alert("app_latency");
        let seen: serde_json::Value = serde_json::from_str(told.trim()).unwrap_or_default();
        seen["latency_ms"].as_f64().is_some_and(|latency| latency >= 700.0)
            && seen["status_code"] == 200
            && seen["threshold_ms"] == 500
    });
    // A change while a state runs is not told: it is made until it is. The others would have states run all the time
    // on a machine that is slower than they are.
    for beacon in ["diskusage", "app_latency"] {
        fleet.salt(&["app1", "beacons.disable_beacon", beacon]).code(0);
    }
    until("the changed file is told", || {
        fleet.machine.write("watched.conf", "b\n");
        alert("inotify").contains("watched.conf")
    });
}

#[test]
fn the_minions_own_bus_is_watched() {
    let mut fleet = Fleet::new(ACCEPT);
    fleet.minion("web1", "");
    let folder = fleet.machine.path("minions/web1/var/run/salt/minion").display().to_string();
    let sock_dir = format!("sock_dir={folder}");
    let args = ["state.event", "own/*", "count=1", "node=minion", &sock_dir];
    let mut watching = fleet.start_run(&args);
    until("an event of the minion's own bus is printed", || {
        fleet.call("web1", &["event.fire", "{\"n\": 1}", "own/tag"]).code(0);
        matches!(watching.try_wait(), Ok(Some(_)))
    });
    let out = watching.wait_with_output().expect("it ended").stdout;
    let out = String::from_utf8_lossy(&out).into_owned();
    assert!(out.starts_with("own/tag\t{") && out.contains("\"n\": 1"), "{out}");
    fleet.run(&["state.event", "node=syndic"]).code(1);
}

#[test]
fn a_minion_begins_before_it_has_a_master() {
    let mut fleet = Fleet::prepared(ACCEPT);
    let returns = fleet.machine.path("early.json").display().to_string();
    let config = format!(
        "scheduler_before_connect: True\nbeacons_before_connect: True\nrawfile_json.filename: {returns}\n\
         schedule: {{early: {{function: test.arg, args: [early bird], seconds: 3600, returner: rawfile_json}}}}\n\
         beacons:\n  memusage:\n    - percent: 0%\n    - interval: 1\n"
    );
    fleet.start_minion("web1", &config);
    until("the job ran without a master", || {
        fleet.machine.read("early.json").unwrap_or_default().contains("early bird")
    });
    fleet.start_master();
    let events = follow(&fleet);
    fleet.wait_for("web1");
    until("the master gets what was returned before it was there", || {
        fleet.run(&["jobs.list_jobs", "--out=json"]).out.contains("early bird")
    });
    until("the beacons tell the master, too", || events().contains("salt/beacon/web1/memusage/"));
}

/// One that hangs for a minute holds neither the others up nor the minion's end.
#[test]
fn a_slow_beacon_keeps_nobody_waiting() {
    let mut fleet = Fleet::new(ACCEPT);
    let events = follow(&fleet);
    let config = "beacons:\n  salt_monitor:\n    - salt_fun:\n      - cmd.run: {args: [sleep 60.25]}\n    - interval: 1\n\
                  \x20 memusage:\n    - percent: 0%\n    - interval: 1\n\
                  \x20 quick:\n    - salt_fun: [test.ping]\n    - beacon_module: salt_monitor\n    - interval: 1\n";
    fleet.minion("web1", config);
    let count = |tag: &str| events().matches(tag).count();
    until("the others go on", || {
        count("salt/beacon/web1/memusage/") >= 4 && count("salt/beacon/web1/quick/") >= 4
    });
    assert_eq!(count("salt/beacon/web1/salt_monitor/"), 0, "{}", events());
    // It was asked once: who is away is not asked again.
    let sleeping = ["web1", "ps.pgrep", "^sleep 60.25$", "full=True", "pattern_is_regex=True"];
    let running = fleet.salt(&sleeping).code(0).out;
    assert_eq!(running.matches("- ").count(), 1, "{running}");
    // Changed while it is away, it looks by its new options once it is back; others at once.
    let other = "[{percent: 0%}, {interval: 1}, {beacon_module: memusage}]";
    fleet.salt(&["web1", "beacons.add", "other", other]).code(0).says("Added beacon: other.");
    until("an added one runs", || count("salt/beacon/web1/other/") >= 1);
    fleet.salt(&["web1", "beacons.disable_beacon", "quick"]).code(0);
    fleet.salt(&["web1", "beacons.list"]).code(0).says("enabled: false");
    fleet.salt(&["web1", "beacons.enable_beacon", "quick"]).code(0);
    let listed = fleet.salt(&["web1", "beacons.list"]).code(0).out;
    assert!(!listed.contains("enabled"), "{listed}");
}
