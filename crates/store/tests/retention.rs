//! Limits are enforced while writing: age, number, bytes.

use std::{sync::Arc, time::Duration};

use halite_store::{Embedded, Op, Options, Retention, State, Store};
use halite_value::{Value, dict};
use parking_lot::Mutex;

fn open(dir: &std::path::Path, retention: Retention) -> (Embedded, Arc<Mutex<Vec<String>>>) {
    let gone = Arc::new(Mutex::new(Vec::new()));
    let told = gone.clone();
    let on_expired = Box::new(move |jids: &[String]| told.lock().extend(jids.iter().cloned()));
    let options = Options { retention, on_expired: Some(on_expired) };
    (Embedded::open(dir, options).expect("a store in an empty folder"), gone)
}

fn no_limit() -> Retention {
    Retention { job_age: Duration::ZERO, jobs: 0, job_bytes: 0, events: 0, event_bytes: 0 }
}

fn job(jid: &str) -> Vec<Op> {
    let ret = Op::Return { jid: jid.into(), minion: "m".into(), load: dict! { "return" => true } };
    vec![Op::Job { jid: jid.into(), load: dict! { "fun" => "test.ping" } }, ret]
}

#[test]
fn old_jobs_go() {
    let dir = tempfile::tempdir().unwrap();
    let (store, gone) =
        open(dir.path(), Retention { job_age: Duration::from_secs(3600), ..no_limit() });
    store.write(job("20200101000000000000")).wait().unwrap();
    store.write(job("20990101000000000000")).wait().unwrap();
    assert_eq!(*gone.lock(), ["20200101000000000000"]);
    assert!(store.job("20200101000000000000").unwrap().is_none());
    assert!(store.returns("20200101000000000000").unwrap().is_empty());
    assert!(store.job("20990101000000000000").unwrap().is_some());
    assert_eq!(store.sizes().jobs, 1);
}

#[test]
fn number_and_bytes_are_limited() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path(), Retention { jobs: 10, events: 20, ..no_limit() });
    for n in 0..50 {
        store.write(job(&format!("{n:020}"))).wait().unwrap();
        drop(store.write(vec![Op::Event { cursor: n + 1, bytes: vec![0; 100] }]));
    }
    store.write(job(&format!("{:020}", 99))).wait().unwrap();
    assert_eq!(store.sizes().jobs, 10);
    let jids: Vec<String> = store.jobs(None, 100).unwrap().into_iter().map(|job| job.jid).collect();
    assert_eq!(jids.len(), 10);
    assert_eq!(jids[0], format!("{:020}", 99), "newest first");
    assert!(store.sizes().events <= 20);
    let events = store.events(0, 1000).unwrap();
    assert_eq!(events.last().map(|(cursor, _)| *cursor), Some(50));
    drop(store);
    let (store, _) = open(dir.path(), Retention { job_bytes: 400, ..no_limit() });
    store.write(job(&format!("{:020}", 100))).wait().unwrap();
    assert!(store.sizes().job_bytes <= 400 && store.sizes().jobs >= 1);
    assert_eq!(store.last_event().unwrap(), 50);
}

#[test]
fn everything_is_found_again() {
    let dir = tempfile::tempdir().unwrap();
    let jid = "20260101000000000000";
    {
        let (store, _) = open(dir.path(), no_limit());
        let put = |bank, key: &str, value: Value| Op::Put { bank, key: key.into(), value };
        let mine = |entries: &[(&str, i64)], clear| Op::Mine {
            minion: "m".into(),
            entries: entries.iter().map(|(k, v)| ((*k).to_owned(), (*v).into())).collect(),
            clear,
        };
        store
            .write(vec![
                put("grains", "m", dict! { "os" => "Debian" }),
                put("grains", "n", dict! { "os" => "Alpine" }),
                put("pillar", "m", dict! { "a" => 1 }),
                mine(&[("f", 1), ("g", 2)], false),
                mine(&[("g", 3), ("h", 4)], false),
            ])
            .wait()
            .unwrap();
        let state = |state| Op::State { jid: jid.into(), minion: "m".into(), state };
        store.write(vec![state(State::Started), state(State::Received)]);
        store.write(job(jid)).wait().unwrap();
        store.write(vec![state(State::Lost)]);
        let again = store.write(job(jid)).wait().unwrap();
        assert_eq!(again.duplicates, 1);
    }
    let (store, _) = open(dir.path(), no_limit());
    assert_eq!(store.all("grains").unwrap().len(), 2);
    assert_eq!(store.get("grains", "m").unwrap(), Some(dict! { "os" => "Debian" }));
    assert_eq!(store.mine("m", "g").unwrap(), Some(3.into()));
    assert_eq!(store.mine_names("m").unwrap(), ["f", "g", "h"]);
    assert_eq!(store.states(jid).unwrap(), [("m".to_owned(), State::Returned)]);
    assert_eq!(store.return_of(jid, "m").unwrap(), Some(dict! { "return" => true }));
    store.write(vec![Op::Forget { minion: "m".into() }]).wait().unwrap();
    assert!(store.get("grains", "m").unwrap().is_none());
    assert!(store.mine_names("m").unwrap().is_empty());
    assert_eq!(store.all("grains").unwrap().len(), 1);
    assert_eq!(store.returns(jid).unwrap().len(), 1, "history stays");
}
