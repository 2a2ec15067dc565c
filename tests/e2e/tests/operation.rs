//! How a fleet is run: batches, the history of what the master did itself, options of minions.

use std::{fs, path::PathBuf};

use halite_e2e::{
    fleet::{Fleet, until},
    need,
    site::{Make, Site},
};
use serde_json::{Value, json};

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The only job of a function in the master's history: its id, and what is told of it.
fn only_job(fleet: &Fleet, function: &str) -> (String, Value) {
    let search = format!("search_function={function}");
    let jobs = json_of(&fleet.run(&["jobs.list_jobs", &search, "--out=json"]).code(0).out);
    let jobs = jobs.as_object().expect("jobs by id").clone();
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    jobs.into_iter().next().expect("one")
}

#[test]
fn a_batch_is_one_job() {
    let mut fleet = Fleet::new("auto_accept: True");
    let ids = ["a", "b", "c"];
    for id in ids {
        fleet.start_minion(id, "");
    }
    ids.iter().for_each(|id| fleet.wait_for(id));
    let ran = fleet.salt(&["*", "-b", "1", "test.echo", "hi", "--out=txt"]).code(0);
    assert_eq!(ran.out.matches("Executing run on [").count(), 3, "{ran:?}");
    let (jid, job) = only_job(&fleet, "test.echo");
    assert_eq!(ran.out.matches(&format!("jid: {jid}")).count(), 3, "{ran:?}");
    // As in Salt the target is that of the last part.
    assert_eq!(job["Target"].as_array().map(Vec::len), Some(1), "{job}");
    let all = json_of(&fleet.run(&["jobs.list_job", &jid, "--out=json"]).code(0).out);
    assert_eq!(all["Minions"], json!(ids), "{all}");
    for id in ids {
        let expected = json!({"return": "hi", "retcode": 0, "success": true});
        assert_eq!(all["Result"][id], expected, "{all}");
    }
    // The worst code is the program's; with --failhard nobody comes after the first.
    fleet.salt(&["*", "-b", "2", "cmd.run", "exit 3"]).code(3);
    let ran = fleet.salt(&["*", "-b", "1", "--failhard", "cmd.run", "exit 4"]).code(4);
    assert_eq!(ran.out.matches("Executing run on [").count(), 1, "{ran:?}");
    ran.complains("Batch run stopped due to failhard");
    fleet
        .salt(&["none", "-b", "1", "test.ping"])
        .code(2)
        .says("No minions matched the target.")
        .complains("ERROR: No return received");
    let nobody = "No minions matched the target. No command was sent, no jid was assigned.\n";
    for (args, expected) in [
        (["none", "-s", "test.ping", "--out=json"].as_slice(), format!("{nobody}{{}}\n")),
        (&["none", "-s", "test.ping"], nobody.into()),
        (&["none", "-s", "-b", "1", "test.ping", "--out=json"], format!("{nobody}{{}}\n")),
        (&["none", "--subset", "1", "test.ping"], nobody.repeat(2)),
    ] {
        let ran = fleet.salt(args).code(2);
        assert_eq!(ran.out, expected, "{args:?}");
    }
    // A runner's return is shown as asked, even as a state run that it is none.
    let ran = fleet.run(&["test.arg", "1", "a=[b]", "--out=raw"]).code(0);
    assert_eq!(ran.out, "{'args': (1,), 'kwargs': {'a': ['b']}}\n");
    fleet.run(&["test.arg", "a=[b]", "--out=highstate"]).code(0).says("Summary for kwargs\n");
    let ran = fleet.salt(&["none", "test.ping", "--progress"]).code(0);
    assert_eq!((ran.out.as_str(), ran.err.as_str()), (nobody, ""));
    let none = fleet.machine.path("none/file").display().to_string();
    let ran = fleet.salt(&["*", "test.ping", "--out-file", &none]).code(1);
    assert_eq!(ran.err.matches("cannot write the result").count(), 1, "{ran:?}");
    let safe = ["*", "--batch-safe-limit", "3", "--batch-safe-size", "2", "test.ping"];
    let ran = fleet.salt(&safe).code(0).says("NOTICE: Too many minions targeted");
    assert_eq!(ran.out.matches("True").count(), 3, "{ran:?}");
}

/// Starts a batch the master drives; returns its id.
fn start_batch(fleet: &Fleet, args: &[&str]) -> String {
    let ran = fleet.salt(&[&["*", "--async"], args].concat()).code(0);
    let jid = ran.out.trim().strip_prefix("Executed batch command with job ID: ");
    jid.unwrap_or_else(|| panic!("{ran:?}")).to_owned()
}

fn batch_status(fleet: &Fleet, jid: &str) -> Value {
    let ran = fleet.run(&["batch.status", jid, "--out=json"]).code(0);
    json_of(&ran.out)
}

/// Counts the batches of an id in the job cache on disk.
fn batch_files(fleet: &Fleet, jid: &str) -> usize {
    let jobs = fleet.machine.path("var/cache/salt/master/jobs");
    let inside = |folder: PathBuf| {
        fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()))
    };
    let files = inside(jobs).flat_map(inside).map(|job| job.join(".batch.p"));
    let texts = files.filter_map(|file| fs::read(file).ok());
    texts.filter(|bytes| String::from_utf8_lossy(bytes).contains(jid)).count()
}

#[test]
fn a_batch_in_the_master_survives_it() {
    let mut fleet = Fleet::new("auto_accept: True");
    let ids = ["a", "b", "c", "d"];
    for id in ids {
        fleet.start_minion(id, "master_alive_interval: 1\nrecon_max: 500");
    }
    ids.iter().for_each(|id| fleet.wait_for(id));
    let events = fleet.follow();
    let jid = start_batch(&fleet, &["-b", "1", "test.echo", "hi"]);
    let tag = |what: &str| format!("salt/batch/{jid}/{what}");
    until("it is told to be complete", || events.text().contains(&tag("complete")));
    let tags = events.tags(&format!("salt/batch/{jid}/"));
    assert_eq!(tags.iter().filter(|own| **own == tag("new")).count(), 1, "{tags:?}");
    assert_eq!(tags.iter().filter(|own| **own == tag("progress")).count(), 4, "{tags:?}");
    assert_eq!(tags.len(), 6, "{tags:?}");
    let status = batch_status(&fleet, &jid);
    let counts = (&status["completed"], &status["total"], &status["driver"], &status["halted"]);
    assert_eq!(counts, (&json!(4), &json!(4), &json!("master"), &json!(false)), "{status}");
    assert_eq!(fleet.run(&["batch.list_active", "--out=json"]).code(0).out.trim(), "[]");
    assert_eq!(batch_files(&fleet, &jid), 1, "scripts look for it in Salt's job cache");

    // Nobody is left out and nobody gets it twice when the master dies in the middle.
    let file = fleet.machine.path("done");
    let line = format!("echo done >> {}; sleep 0.7", file.display());
    let jid = start_batch(&fleet, &["-b", "1", "cmd.run", &line]);
    let lines = || std::fs::read_to_string(&file).unwrap_or_default().lines().count();
    until("the second one has it", || lines() >= 2);
    assert!(fleet.run(&["batch.list_active", "--out=json"]).code(0).out.contains(&jid));
    fleet.kill_master();
    fleet.start_master();
    until("it goes on to its end", || batch_status(&fleet, &jid)["completed"] == json!(4));
    assert_eq!(lines(), 4);
    let found = json_of(&fleet.run(&["jobs.lookup_jid", &jid, "--out=json"]).code(0).out);
    assert_eq!(found.as_object().map(serde_json::Map::len), Some(4), "{found}");

    // It can be stopped; who has the job is named.
    let jid = start_batch(&fleet, &["-b", "1", "test.sleep", "60"]);
    until("somebody has it", || batch_status(&fleet, &jid)["active"] == json!(1));
    fleet.run(&["batch.stop", &jid, "kill=True", "--out=json"]).code(0).says("true");
    let status = batch_status(&fleet, &jid);
    let counts = (&status["halted"], &status["halted_reason"], &status["pending"]);
    assert_eq!(counts, (&json!(true), &json!("stop"), &json!(3)), "{status}");
    fleet.run(&["batch.stop", &jid, "--out=json"]).code(0).says("false");
    assert_eq!(batch_status(&fleet, "20200101000000000000"), Value::Null);

    let failing = start_batch(&fleet, &["-b", "1", "--failhard", "cmd.run", "exit 3"]);
    until("it halts", || batch_status(&fleet, &failing)["halted_reason"] == json!("failhard"));
    assert_eq!(batch_status(&fleet, &failing)["completed"], json!(1));
}

#[test]
fn a_batch_of_the_command_line_is_seen_and_stopped() {
    let mut fleet = Fleet::new("auto_accept: True");
    let ids = ["a", "b", "c"];
    ids.iter().for_each(|id| fleet.start_minion(id, ""));
    ids.iter().for_each(|id| fleet.wait_for(id));
    let active = || json_of(&fleet.run(&["batch.list_active", "--out=json"]).code(0).out);
    assert_eq!(active(), json!([]));
    std::thread::scope(|scope| {
        let ran = scope.spawn(|| fleet.salt(&["*", "-b", "1", "test.sleep", "60"]));
        let mut jid = String::new();
        until("it is listed", || match active()[0]["jid"].as_str() {
            Some(found) => {
                found.clone_into(&mut jid);
                true
            }
            None => false,
        });
        until("somebody has it", || batch_status(&fleet, &jid)["active"] == json!(1));
        let status = batch_status(&fleet, &jid);
        let told = (&status["driver"], &status["fun"], &status["total"], &status["tgt"]);
        assert_eq!(told, (&json!("cli"), &json!("test.sleep"), &json!(3), &json!("*")));
        fleet.run(&["batch.stop", &jid, "kill=True", "--out=json"]).code(0).says("true");
        let ran = ran.join().expect("no panic").code(0);
        assert_eq!(ran.out.matches("Executing run on [").count(), 1, "{ran:?}");
        until("its end is told", || batch_status(&fleet, &jid)["halted"] == json!(true));
        assert_eq!(batch_status(&fleet, &jid)["halted_reason"], json!("stop"));
        assert_eq!(active(), json!([]));
        fleet.run(&["batch.stop", &jid, "--out=json"]).code(0).says("false");
    });
    fleet.salt(&["*", "-b", "2", "test.ping"]).code(0);
    assert_eq!(active(), json!([]), "an end is told too");

    // Killed, it cannot tell: the batch ends with its connection.
    let mut driver = fleet.start("salt", &["*", "-b", "1", "test.sleep", "60"]);
    until("it is listed", || active() != json!([]));
    let jid = active()[0]["jid"].as_str().expect("an id").to_owned();
    driver.kill().expect("it is ours");
    driver.wait().expect("it ends");
    until("it is not listed", || active() == json!([]));
    let status = batch_status(&fleet, &jid);
    let told = (&status["halted"], &status["halted_reason"]);
    assert_eq!(told, (&json!(true), &json!("driver gone")), "{status}");
}

/// Salt reads its job cache from disk; so do we when there is no master.
#[test]
fn jobs_are_shown_without_a_master() {
    let mut fleet = Fleet::new("auto_accept: True");
    fleet.start_minion("a", "");
    fleet.wait_for("a");
    fleet.salt(&["a", "test.echo", "remember me"]).code(0);
    let (jid, _) = only_job(&fleet, "test.echo");
    fleet.stop_master();
    let looked_up =
        |fleet: &Fleet| json_of(&fleet.run(&["jobs.lookup_jid", &jid, "--out=json"]).code(0).out);
    assert_eq!(looked_up(&fleet), json!({"a": "remember me"}));
    let (again, job) = only_job(&fleet, "test.echo");
    assert_eq!((&again, &job["Target"]), (&jid, &json!("a")));
    let job = json_of(&fleet.run(&["jobs.list_job", &jid, "--out=json"]).code(0).out);
    assert_eq!(job["Result"]["a"]["return"], json!("remember me"), "{job}");
    // A killed master leaves a file that has to be repaired; reading leaves it so.
    fleet.start_master();
    fleet.wait_for("a");
    fleet.kill_master();
    assert_eq!(looked_up(&fleet), json!({"a": "remember me"}));
    fleet.start_master();
    assert_eq!(looked_up(&fleet), json!({"a": "remember me"}));
}

#[test]
fn a_state_asks_for_its_beacon() {
    let mut fleet = Fleet::new("auto_accept: True");
    fleet.start_minion("a", "");
    fleet.wait_for("a");
    let at = |name: &str| fleet.machine.path(name).display().to_string();
    let (file, folder) = (at("watched"), at("folder"));
    let sls = format!(
        "#!yaml\n{file}:\n  file.managed:\n    - contents: x\n    - beacon: true\n    - \
         beacon_data: {{interval: 5}}\n{folder}:\n  file.directory: [beacon: true]\nunable:\n  \
         file.touch: [name: {}, beacon: true]\nnot:\n  file.touch: [name: {}, beacon: false]\n\
         nop:\n  test.nop: [beacon: true]\n",
        at("unable"),
        at("not"),
    );
    fleet.machine.write("srv/salt/watched.sls", &sls);
    let ran = fleet.salt(&["a", "state.apply", "watched", "--out=json", "--static"]);
    let ret = &json_of(&ran.out)["a"];
    let of = |tag: &str| &ret[format!("{tag}_|-mod_beacon")];
    let done = of(&format!("file_|-beacon_{file}_|-{file}"));
    assert_eq!(done["name"], json!(format!("beacon_inotify_{file}")), "{ret}");
    assert_eq!(done["comment"], json!(format!("Adding beacon_inotify_{file} to beacons")));
    let not_able = of(&format!("file_|-beacon_unable_|-{}", at("unable")));
    let words = "file.touch does not work with the beacon state function";
    assert_eq!((&not_able["comment"], &not_able["result"]), (&json!(words), &json!(false)));
    let unwanted = of(&format!("file_|-beacon_not_|-{}", at("not")));
    assert_eq!(unwanted["comment"], json!("Not adding beacon."));
    let comment = of("test_|-beacon_nop_|-nop")["comment"].as_str().unwrap_or_default().to_owned();
    assert!(comment.starts_with("State 'test.mod_beacon' was not found in SLS 'watched'"), "{ret}");
    let args = ["a", "beacons.list", "return_yaml=False", "--out=json", "--static"];
    let beacons = &json_of(&fleet.salt(&args).code(0).out)["a"];
    let all = ["create", "delete", "modify"];
    assert_eq!(
        beacons[format!("beacon_inotify_{file}")],
        json!([
            {"files": {&file: {"mask": all}}},
            {"interval": 5},
            {"coalesce": false},
            {"beacon_module": "inotify"},
        ]),
    );
    let settings = json!({"mask": all, "recurse": true, "auto_add": true, "exclude": []});
    assert_eq!(beacons[format!("beacon_inotify_{folder}")][0]["files"][&folder], settings);
}

#[test]
fn a_minion_beside_a_master_asks_it() {
    let mut fleet = Fleet::new("auto_accept: True");
    fleet.start_minion("a", "");
    fleet.wait_for("a");
    // As in Salt: the master's configuration is looked for beside the minion's.
    let master = std::fs::read(fleet.config_dir().join("master")).expect("a configuration");
    let folder = fleet.machine.path("etc/salt-a");
    let json = |args: &[&str]| {
        let ran = fleet.call("a", &[args, &["--out=json"]].concat());
        json_of(&ran.code(0).out)["local"].clone()
    };
    std::fs::write(folder.join("master"), master).expect("written");
    assert_eq!(json(&["saltutil.runner", "manage.up"]), json!(["a"]));
    let ret = json(&["saltutil.wheel", "key.list", "accepted"]);
    assert_eq!(ret["return"], json!({"minions": ["a"]}), "{ret}");
    assert_eq!(
        (&ret["success"], &ret["retcode"]),
        (&json!(true), &serde_json::Value::Null),
        "{ret}"
    );
    // Of arguments that do not fit, the function tells what it takes: that is an answer.
    let ret = json(&["saltutil.wheel", "key.list"]);
    assert!(ret["return"].to_string().contains("Passed invalid arguments"), "{ret}");
    let ran = fleet.call("a", &["saltutil.wheel", "no.such"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    fleet.call("a", &["saltutil.runner", "no.such"]).code(1).complains("is not available");
    assert_eq!(json(&["saltutil.cmd", "*", "test.ping"])["a"], json!(true));
}

#[test]
fn what_salt_run_did_is_remembered() {
    let fleet = Fleet::new("");
    fleet.run(&["test.arg", "a", "b=1"]).code(0);
    let (jid, job) = only_job(&fleet, "runner.test.arg");
    assert_eq!((&job["Target"], &job["Target-type"]), (&json!("boss_master"), &json!("list")));
    assert_eq!(job["Arguments"], json!([]), "{job}");
    let kept = json_of(&fleet.run(&["jobs.lookup_jid", &jid, "--out=json"]).code(0).out);
    let event = &kept["boss_master"];
    assert_eq!(event["fun_args"], json!(["a", {"b": 1}]), "{kept}");
    assert_eq!(event["return"], json!({"args": ["a"], "kwargs": {"b": 1}}), "{kept}");
    assert_eq!(event["success"], json!(true), "{kept}");
    // One that the master does on its own is found by the id in its tag.
    let ran = fleet.run(&["--async", "test.sleep", "0"]).code(0);
    let tag = ran.err.rsplit("salt/run/").next().expect("a tag").trim().to_owned();
    until("it is kept", || {
        let ran = fleet.run(&["jobs.lookup_jid", &tag, "--out=json"]);
        ran.out.contains("\"fun\": \"runner.test.sleep\"")
    });
}

#[test]
fn minions_have_what_they_are_told_to_have() {
    let mut fleet = Fleet::new("auto_accept: True");
    fleet.start_minion("barred", "disable_modules: [cmdmod]");
    let modules = fleet.machine.path("own").display().to_string();
    let line = "def line():\n    return __salt__['cmd.run']('echo by itself')\n";
    fleet.machine.write("own/own.py", line);
    let choosy = format!("whitelist_modules: [test, own, state]\nmodule_dirs: ['{modules}']");
    fleet.start_minion("choosy", &choosy);
    for id in ["barred", "choosy"] {
        fleet.wait_for(id);
    }
    for (id, function) in [("barred", "cmd.run"), ("choosy", "cmd.run"), ("choosy", "grains.items")]
    {
        let ran = fleet.salt(&[id, function, "id"]).code(1);
        assert!(ran.out.contains(&format!("'{function}' is not available.")), "{ran:?}");
    }
    fleet.salt(&["barred", "grains.get", "id"]).code(0).says("barred");
    // A module on the list may call what is not; a template may not.
    fleet.salt(&["choosy", "own.line"]).code(0).says("by itself");
    let sls = "{{ salt['cmd.run']('id') }}: {test.nop: []}";
    fleet.salt(&["choosy", "state.template_str", sls]).code(1).says("has no attribute 'cmd.run'");
}

/// Returns the names of the jobs that wait in a queue of a minion.
fn waiting(fleet: &Fleet, id: &str, queue: &str) -> Vec<String> {
    let folder = format!("minions/{id}/var/cache/salt/minion/queues/127.0.0.1/{queue}");
    let entries = fs::read_dir(fleet.machine.path(&folder)).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into())).collect()
}

/// Starts a job and does not wait for it; returns its id.
fn start_job(fleet: &Fleet, args: &[&str]) -> String {
    let ran = fleet.salt(&[args, &["--async"]].concat()).code(0);
    ran.out.split_whitespace().last().unwrap_or_default().to_owned()
}

#[test]
fn jobs_that_wait_are_seen_on_the_disk() {
    let mut fleet = Fleet::new("auto_accept: True");
    let gate = fleet.machine.path("go").display().to_string();
    let sleep = format!("while [ ! -e {gate} ]; do sleep 0.1; done");
    let sls = format!("wait:\n  cmd.run:\n    - name: '{sleep}'\n");
    fleet.machine.write("srv/salt/slow.sls", &sls);
    fleet.machine.write("srv/salt/quick.sls", "quick:\n  test.nop: []\n");
    fleet.start_minion("one", "process_count_max: 1");
    fleet.start_minion("many", "");
    ["one", "many"].iter().for_each(|id| fleet.wait_for(id));
    start_job(&fleet, &["one", "cmd.run", &sleep]);
    let behind = start_job(&fleet, &["one", "test.echo", "x"]);
    let is_it = |names: Vec<String>, jid: &str| {
        names.len() == 1
            && names[0].starts_with("queued_")
            && names[0].ends_with(&format!("_{jid}.p"))
    };
    until("a job waits", || is_it(waiting(&fleet, "one", "job_queue"), &behind));
    // Of two that come together the second gives way.
    let slow = start_job(&fleet, &["many", "state.apply", "slow"]);
    let second = start_job(&fleet, &["many", "state.apply", "quick"]);
    let told = |jid: &str| fleet.run(&["jobs.lookup_jid", jid, "--out=json"]).out;
    until("the second is refused", || told(&second).contains(&format!("with jid {slow}")));
    let queued = start_job(&fleet, &["many", "state.apply", "quick", "queue=True"]);
    until("a run waits", || is_it(waiting(&fleet, "many", "state_queue"), &queued));
    fleet.machine.write("go", "");
    for (id, queue, jid) in [("one", "job_queue", &behind), ("many", "state_queue", &queued)] {
        until("it returns", || fleet.run(&["jobs.lookup_jid", jid]).out.contains(id));
        assert_eq!(waiting(&fleet, id, queue), [""; 0]);
    }
    until("the first ran", || told(&slow).contains("\"cmd_|-wait_|-"));
}

#[test]
fn a_second_daemon_is_refused() {
    let mut fleet = Fleet::new("auto_accept: True");
    fleet.minion("m", "");
    let folder = |name: &str| fleet.machine.path(name).display().to_string();
    // Before it goes to the background, or nobody would see the code.
    for how in [&[][..], &["-d"]] {
        let (master, minion) = (folder("etc/salt"), folder("etc/salt-m"));
        let args = [&["salt-master", "--config-dir", &master][..], how].concat();
        let ran = fleet.machine.halite(&args).code(4);
        ran.complains("The ports are not available to bind");
        let args = [&["salt-minion", "--config-dir", &minion][..], how].concat();
        let ran = fleet.machine.halite(&args).code(1);
        ran.complains("An instance is already running");
    }
    fleet.salt(&["m", "test.ping"]).code(0);
}

#[test]
fn a_function_tells_the_master() {
    let mut site = Site::new(Make::Ours, "auto_accept: True");
    site.start_master();
    site.write("ext/modules/whereis.py", "def master():\n    return '127.0.0.1'\n");
    let folder = site.path("ext").display().to_string();
    let function = format!("master_type: func\nmaster: whereis.master\nmodule_dirs: ['{folder}']");
    site.minion("asker", Make::Ours, &function);
    site.answer(&["asker"]);
}

#[test]
fn a_master_tells_of_its_requests_its_files_and_the_ends_of_jobs() {
    let mut fleet = Fleet::new(
        "auto_accept: True\njob_cache_store_endtime: True\nfileserver_events: True\n\
         master_stats: True\nmaster_stats_event_iter: 1",
    );
    fleet.minion("a", "retry_dns_count: 2\nretry_dns: 1");
    let events = fleet.follow();
    fleet.run(&["fileserver.update"]).code(0);
    fleet.machine.write("srv/salt/new.sls", "{}");
    fleet.run(&["fileserver.update"]).code(0).says("True");
    until("files are told of", || events.text().contains("salt/fileserver/roots/update"));
    let told = events.text();
    let told = told.lines().find(|line| line.starts_with("salt/fileserver/roots/update"));
    let (_, data) = told.and_then(|line| line.split_once('\t')).expect("tag and data");
    let files = json_of(data)["files"].clone();
    assert_eq!(files["added"].as_array().map(Vec::len), Some(1), "{files}");
    assert!(files["added"][0].as_str().is_some_and(|path| path.ends_with("/new.sls")), "{files}");

    until("requests are counted", || {
        fleet.salt(&["a", "test.ping"]).code(0);
        let told = events.text();
        let mut stats =
            told.lines().filter(|line| line.starts_with("salt/stats/MWorker-default-0"));
        stats
            .next_back()
            .is_some_and(|line| line.contains("\"_return\"") && line.contains("\"runs\""))
    });
    let job = fleet.run(&["jobs.last_run", "function=test.ping", "--out=json"]).code(0);
    let job = json_of(&job.out);
    let job = job.as_object().and_then(|jobs| jobs.values().next()).expect("a job");
    assert!(job["EndTime"].as_str() > job["StartTime"].as_str(), "{job}");

    // A name that does not exist is not looked for without end.
    fleet.machine.write(
        "etc/lost/minion",
        "id: lost\nmaster: no-such-host.invalid\nretry_dns_count: 1\nretry_dns: 1\n",
    );
    let root = fleet.machine.path("lost");
    let mut lost = std::process::Command::new(halite_e2e::halite());
    lost.args(["minion", "--config-dir"]).arg(fleet.machine.path("etc/lost"));
    let text = format!("root_dir: {}\n", root.display());
    let config = fleet.machine.read("etc/lost/minion").unwrap_or_default() + &text;
    fleet.machine.write("etc/lost/minion", &config);
    let ran = fleet.machine.run(&mut lost);
    assert!(ran.code != Some(0) && ran.err.contains("not found or not responsive"), "{ran:?}");
}

/// `pillar_cache`: what has changed is not seen until it is asked for, or the time is over.
#[test]
fn a_pillar_is_kept_when_asked_for() {
    let more = "auto_accept: True\npillar_cache: True\next_pillar: \
                [{extra_minion_data_in_pillar: {include: '<all>'}}]";
    let mut fleet = Fleet::new(more);
    fleet.machine.write("srv/pillar/top.sls", "base: {'*': [a]}\n");
    fleet.machine.write("srv/pillar/a.sls", "val: 1\n");
    fleet.start_minion("a", "own: {deep: z, other: 1}\npass_to_ext_pillars: ['own:deep']");
    fleet.wait_for("a");
    let val = |fleet: &Fleet| {
        json_of(&fleet.call("a", &["pillar.raw", "--out=json"]).code(0).out)["local"].clone()
    };
    assert_eq!(val(&fleet), json!({"val": 1, "own": {"deep": "z"}}));
    fleet.machine.write("srv/pillar/a.sls", "val: 2\n");
    assert_eq!(val(&fleet)["val"], json!(1));
    fleet.run(&["pillar.clear_pillar_cache", "--out=json"]).code(0).says("true");
    assert_eq!(val(&fleet)["val"], json!(2));
    fleet.machine.write("srv/pillar/a.sls", "val: 3\n");
    for kept in
        [&["saltutil.refresh_pillar", "clean_cache=False"][..], &["saltutil.refresh_grains"]]
    {
        fleet.salt(&[&["a"], kept].concat()).code(0);
        assert_eq!(val(&fleet)["val"], json!(2), "{kept:?}");
    }
    fleet.salt(&["a", "saltutil.refresh_pillar", "wait=True"]).code(0);
    assert_eq!(val(&fleet)["val"], json!(3));
}

#[test]
fn files_and_pillar_from_git() {
    need("git", &["git"]);
    let config = "auto_accept: True\nfileserver_backend: [git]\n\
                  gitfs_remotes: ['file://{root}/repo']\n\
                  ext_pillar: [{git: [{'master file://{root}/repo': [{root: pillar}]}]}]\n";
    let mut fleet = Fleet::prepared(config);
    let machine = &fleet.machine;
    let state = "{{ opts['root_dir'] }}/made:\n  file.managed: [{source: 'salt://word'}]\n";
    let files = [
        ("top.sls", "base: {'*': [made]}\n"),
        ("made.sls", state),
        ("word", "first\n"),
        ("pillar/top.sls", "base: {'*': [known]}\n"),
        ("pillar/known.sls", "known: {{ grains.id }}\n"),
    ];
    for (name, text) in files {
        machine.write(&format!("repo/{name}"), text);
    }
    let repo = machine.path("repo");
    let git = |args: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.arg("-C").arg(&repo).args(["-c", "user.name=a", "-c", "user.email=a@b"]);
        let ran = command.args(args).output().expect("git runs");
        assert!(ran.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ran.stderr));
    };
    git(&["init", "-q", "-b", "master"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "first"]);
    fleet.start_master();
    fleet.minion("m1", "");
    fleet.salt(&["m1", "state.apply"]).code(0);
    let made = |fleet: &Fleet| fleet.call("m1", &["cp.get_file_str", "salt://word"]).out;
    assert!(made(&fleet).contains("first"));
    fleet.salt(&["m1", "pillar.ls", "--out=txt"]).says("known");
    // What is committed is there after an update.
    fleet.machine.write("repo/word", "second\n");
    git(&["commit", "-qam", "second"]);
    fleet.run(&["fileserver.update"]).code(0);
    fleet.salt(&["m1", "state.apply"]).code(0).says("-first").says("+second");
    assert!(made(&fleet).contains("second"));
}
