//! What minions do of their own accord, with real daemons: beacons, the schedule, the mine, peers,
//! returners.

use std::{fs, process::Stdio};

use halite_e2e::fleet::{Fleet, until};

const ACCEPT: &str = "auto_accept: True";

/// Follows the master's events in a file.
fn follow(fleet: &Fleet) -> impl Fn() -> String + use<> {
    let path = fleet.machine.path("events.log");
    let log = fs::File::create(&path).expect("a file");
    let mut command = std::process::Command::new(halite_e2e::halite());
    command
        .arg("run")
        .arg("--config-dir")
        .arg(fleet.config_dir())
        .args(["state.event", "--out=quiet"])
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(Stdio::null());
    let child = Follower(command.spawn().expect("the program starts"));
    move || {
        let _ = &child;
        fs::read_to_string(&path).unwrap_or_default()
    }
}

struct Follower(std::process::Child);

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
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
        "auto_accept: True\nschedule:\n  own: {function: test.arg, args: [from the master], seconds: 3600}\n",
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
    let args = ["web1", "publish.full_data", "db1", "test.arg", "[1, a=b]", "--out=json"];
    fleet.salt(&args).code(0).says("\"ret\"");
    let refused = fleet.salt(&["db1", "publish.publish", "*", "test.ping", "--out=json"]);
    assert!(!refused.out.contains("web1"), "{}", refused.out);
}

#[test]
fn returns_go_where_they_are_asked_to() {
    let mut fleet = Fleet::new(ACCEPT);
    let one = fleet.machine.path("one.json").display().to_string();
    fleet.minion("web1", &format!("rawfile_json.filename: {one}\n"));
    fleet.salt(&["web1", "test.arg", "asked for", "--return", "rawfile_json"]).code(0);
    until("the return is in the file", || {
        fleet.machine.read("one.json").unwrap_or_default().contains("asked for")
    });
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
