//! What must not be lost: real daemons that are killed, cut off, and run out of disk.
//!
//! The promises behind these tests: a job runs once; what it returned arrives once, whoever died in
//! between; nobody waits for a minion that is known to be away.

#![expect(clippy::print_stderr, reason = "what tests have to say is for people")]

mod disk;
mod kills;
mod network;
mod steps;

use std::time::{Duration, Instant};

use halite_e2e::site::{Make, Site, at_most, until};
use serde_json::{Value, json};

/// Returns what minions returned for a job.
fn returns(site: &Site, jid: &str) -> Value {
    let ran = site.run("salt-run", &["jobs.lookup_jid", jid, "--out=json"]);
    serde_json::from_str(&ran.out).unwrap_or(Value::Null)
}

/// Publishes without waiting; returns the job's id.
fn publish(site: &Site, args: &[&str]) -> String {
    let ran = site.salt(&[&["--async"], args].concat()).code(0);
    jid_in(&ran.out).unwrap_or_else(|| panic!("no job id: {ran:?}"))
}

fn jid_in(text: &str) -> Option<String> {
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words.find(|word| word.len() == 20 && word.bytes().all(|b| b.is_ascii_digit())).map(Into::into)
}

/// A master and minions of ours, connected.
fn fleet(ids: &[&str], more: &str) -> Site {
    let mut site = Site::new(Make::Ours, "");
    site.start_master();
    for id in ids {
        site.minion(id, Make::Ours, more);
    }
    site.accept(ids);
    site.answer(ids);
    site
}

/// How often the master says that it got a return.
fn times_stored(site: &Site, jid: &str) -> usize {
    let log = site.read("master.log");
    log.lines().filter(|line| line.contains("Got return") && line.contains(jid)).count()
}

#[test]
fn a_return_waits_for_a_master_that_was_killed() {
    let away = Duration::from_secs(90);
    let mut site = fleet(&["one"], "");
    let side = site.path("side").display().to_string();
    let job = publish(&site, &["one", "cmd.run", &format!("sleep 2; echo ran | tee -a {side}")]);
    until("the job runs", || site.read("one.log").contains(&job));
    std::thread::sleep(Duration::from_millis(500));
    site.kill("master");
    std::thread::sleep(away);
    until("the job goes on without the master", || site.read("side") == "ran\n");
    site.start_master();
    until("the return arrives", || returns(&site, &job)["one"] == json!("ran"));
    // Anything that would be sent or run again has had its time.
    std::thread::sleep(Duration::from_secs(2));
    site.answer(&["one"]);
    assert_eq!((times_stored(&site, &job), site.read("side").as_str()), (1, "ran\n"));
}

#[test]
fn a_job_that_a_minions_death_interrupted_is_reported() {
    let mut site = fleet(&["one"], "");
    let side = site.path("side").display().to_string();
    let job = publish(&site, &["one", "cmd.run", &format!("echo ran >> {side}; sleep 60")]);
    until("the job runs", || !site.read("side").is_empty());
    site.kill("one");
    site.start_minion("one", Make::Ours);
    let before = Instant::now();
    until("it is reported", || returns(&site, &job).get("one").is_some());
    let took = before.elapsed();
    let text = returns(&site, &job)["one"].to_string();
    assert!(text.contains("stopped while job"), "{text}");
    assert!(took < at_most(5), "{took:?}");
    site.answer(&["one"]);
    assert_eq!(site.read("side"), "ran\n", "it is not run again");
}

#[test]
fn nobody_waits_for_a_minion_that_died() {
    let ids = ["m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "m9"];
    let mut site = fleet(&ids, "");
    site.kill("m7");
    let before = Instant::now();
    let ran = site.salt(&["*", "test.ping"]).code(1);
    let took = before.elapsed();
    assert!(took < at_most(1), "{took:?}");
    assert_eq!(ran.out.matches("True").count(), 9, "{ran:?}");
    ran.says("m7:\n    Minion did not return. [Not connected]");
    // One that dies while it works is named when its connection ends, not at some timeout.
    let sleep = std::thread::scope(|scope| {
        let waits = scope.spawn(|| site.salt(&["m[12]", "test.sleep", "600", "-t", "600"]));
        for id in ["m1", "m2"] {
            let log = format!("{id}.log");
            until("the job runs", || site.read(&log).contains("test.sleep"));
        }
        let before = Instant::now();
        for id in ["m1", "m2"] {
            let pid = nix::unistd::Pid::from_raw(i32::try_from(site.pid(id)).unwrap());
            nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
        }
        (waits.join().unwrap(), before.elapsed())
    });
    let (ran, took) = sleep;
    assert!(took < at_most(10), "{took:?}: {ran:?}");
    ran.says("m1:").says("m2:").says("Minion did not return");
}

#[test]
fn nobody_waits_for_a_minion_whose_key_is_gone() {
    let site = fleet(&["one"], "");
    let (ran, took) = std::thread::scope(|scope| {
        let waits = scope.spawn(|| site.salt(&["one", "test.sleep", "600", "-t", "600"]));
        until("the job runs", || site.read("one.log").contains("test.sleep"));
        let before = Instant::now();
        site.run("salt-key", &["-d", "one", "-y"]).code(0);
        (waits.join().expect("it ends"), before.elapsed())
    });
    assert!(took < at_most(15), "{took:?}: {ran:?}");
    ran.code(1).says("one:\n    Minion did not return");
}
