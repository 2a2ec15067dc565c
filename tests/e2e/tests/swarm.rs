//! A thousand minions on one master: every count must be exact. Times are the benchmark's business.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
};

use halite_e2e::{
    halite,
    site::{Make, Site, documents, until},
};
use serde_json::Value;

const MINIONS: u64 = 1000;

/// A swarm that ends with the test.
struct Swarm {
    child: Child,
    last: Arc<Mutex<Value>>,
}

impl Swarm {
    fn start(site: &Site, more: &[&str]) -> Self {
        site.configure("swarm", "");
        let mut child = Command::new(halite())
            .args(["swarm", "--count", &MINIONS.to_string(), "--every", "0.2", "--keys", "4"])
            .arg("-c")
            .arg(site.path("swarm/etc"))
            .arg("--root")
            .arg(site.path("swarm/minions"))
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a swarm starts");
        let last = Arc::new(Mutex::new(Value::Null));
        let lines = BufReader::new(child.stdout.take().expect("its output is ours"));
        let shared = Arc::clone(&last);
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                if let Ok(report) = serde_json::from_str(&line) {
                    *shared.lock().expect("no panic under it") = report;
                }
            }
        });
        Self { child, last }
    }

    fn count(&self, what: &str) -> u64 {
        let report = self.last.lock().expect("no panic under it");
        report.get(what).and_then(Value::as_u64).unwrap_or(0)
    }
}

impl Drop for Swarm {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_thousand_minions_are_counted_exactly() {
    let mut site = Site::new(Make::Ours, "auto_accept: True\ngather_job_timeout: 3\n");
    site.start_master();
    let hostile = ["--hostile", "4", "--period", "0.5"];
    let swarm = Swarm::start(&site, &[&["--dead", "3", "--offline", "2"], &hostile[..]].concat());
    // Those that stay away have been there once.
    until("the swarm is there", || swarm.count("connected") == MINIONS - 2);
    until("their own jobs are done", || swarm.count("waiting") == 0);

    let silent: Vec<String> = (0..5).map(|number| format!("swarm-{number}")).collect();
    let good = MINIONS as usize - silent.len();
    let all = format!("E@swarm-.* and not L@{}", silent.join(","));
    let returns = site.ask(&["-C", &all, "test.ping"]);
    assert_eq!(returns.len(), good);
    assert!(returns.values().all(|value| *value == Value::Bool(true)));

    // One of these takes the job and says nothing: it must not hold up the command.
    let ran = site.salt(&["-G", "os:Debian", "grains.item", "number", "--out=json", "-t", "5"]);
    let debian = documents(&ran.out);
    for (id, items) in &debian {
        let number: u64 = id.trim_start_matches("swarm-").parse().expect("a number");
        assert_eq!(number % 5, 0, "{id} is no Debian");
        if !silent.contains(id) {
            assert_eq!(items["number"], Value::from(number));
        }
    }
    assert_eq!(debian.len(), MINIONS as usize / 5);

    // What has been acknowledged has been stored: the job's history knows every return.
    let ran = site.salt(&["-C", &all, "test.echo", "counted", "--out=quiet", "-t", "30"]);
    ran.code(0);
    let jobs = site.runner(&["jobs.list_jobs", "search_function=test.echo"]);
    let jid = jobs.as_object().and_then(|jobs| jobs.keys().next()).expect("the job").clone();
    let stored = site.runner(&["jobs.lookup_jid", &jid]);
    let stored = stored.as_object().expect("returns by minion");
    assert_eq!(stored.len(), good);
    assert!(stored.values().all(|value| *value == "counted"));

    // Four of them tried all the time to be somebody else, and did their jobs beside it.
    until("all attacks have been tried", || swarm.count("attacks") > 4 * 14 * 2);
    assert_eq!(swarm.count("breaches"), 0);
    let believed = "forged-by-a-hostile-minion";
    let history = site.run("salt-run", &["jobs.list_jobs", "display_progress=False"]).code(0).out;
    assert!(!history.contains("swarm-999"), "a job in the name of another: {history}");
    let cached = site.path("master/var/cache/salt/master");
    let found = Command::new("grep").args(["-r", "-l", believed]).arg(cached).output();
    let found = String::from_utf8_lossy(&found.expect("grep runs").stdout).into_owned();
    assert_eq!(found, "", "the master keeps what a hostile minion said");

    let keys = site.run("salt-key", &["-l", "acc", "--out=json"]).code(0);
    let keys: Value = serde_json::from_str(&keys.out).expect("JSON");
    assert_eq!(keys["minions"].as_array().map(Vec::len), Some(MINIONS as usize));
}
