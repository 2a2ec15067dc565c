//! Events: seen live, seen again, and reacted to.

mod common;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use common::{TestMaster, until};
use halite_client::{Client, EventItem, Request};
use halite_master::{
    Master, Parts,
    bus::Item,
    reactor::{RenderError, Rendering},
    runners::{Call, Outcome, Runners},
};
use halite_value::{Dict, Value, dict, entries, list};

/// Reads an event stream from a cursor on, until nothing comes for a moment.
async fn read(master: &TestMaster, tag: &str, after: Option<u64>) -> Vec<String> {
    let (dir, tag) = (master.sock_dir(), tag.to_owned());
    tokio::task::spawn_blocking(move || {
        let mut client = Client::connect(&dir).expect("a master");
        let request = Request::Events { tag: tag.into(), after };
        let stream = client.send(&request).expect("a stream");
        let mut seen = Vec::new();
        let moment = || Some(Instant::now() + Duration::from_millis(500));
        while let Some(item) = client.event(stream, moment()).expect("a connection") {
            seen.push(match item {
                EventItem::Event { cursor, tag, .. } => format!("{cursor} {tag}"),
                EventItem::Gap { missed } => format!("gap {missed}"),
            });
        }
        seen
    })
    .await
    .expect("no panic")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_goes_on_where_it_stopped() {
    let more = entries! { "halite" => dict! { "store" => dict! { "max_events" => 5 } } };
    let master = TestMaster::new(more).await;
    let first = master.master().bus.fire("first", Dict::new()).cursor;
    for n in 0..3 {
        master.master().bus.fire(format!("a/{n}"), Dict::new());
    }
    master.master().bus.fire("b", Dict::new());
    // At once: what is not on disk yet is not forgotten.
    let expected: Vec<String> = (0..3).map(|n| format!("{} a/{n}", first + 1 + n)).collect();
    assert_eq!(read(&master, "a/", Some(first)).await, expected);
    assert_eq!(read(&master, "", Some(first + 3)).await, [format!("{} b", first + 4)]);
    assert!(read(&master, "", None).await.is_empty(), "without a cursor only what is to come");
    // Only five are kept: who stopped before them is told how many are missing.
    for n in 0..10 {
        master.master().bus.fire(format!("c/{n}"), Dict::new());
    }
    let seen = read(&master, "", Some(first)).await;
    assert_eq!((seen[0].as_str(), seen.len()), ("gap 9", 6), "{seen:?}");
    assert!(seen[5].ends_with(" c/9"));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_slow_reader_slows_nobody() {
    let master = TestMaster::new(Dict::new()).await;
    let bus = &master.master().bus;
    let slow = bus.subscribe("", 10);
    let quick = bus.subscribe("", 100_000);
    for n in 0..20_000 {
        bus.fire(format!("n/{n}"), Dict::new());
    }
    let mut seen = 0;
    while let Ok(Some(Item::One(_))) =
        tokio::time::timeout(Duration::from_millis(200), quick.next()).await
    {
        seen += 1;
    }
    assert_eq!(seen, 20_000);
    for _ in 0..10 {
        assert!(matches!(slow.next().await, Some(Item::One(_))));
    }
    assert!(matches!(slow.next().await, Some(Item::Gap(19_990))));
}

static RAN: AtomicU64 = AtomicU64::new(0);

/// Renders every file to one runner call; a file `bad` does not render.
struct Toy;

impl Rendering for Toy {
    fn files(
        &self,
        _: &Arc<Master>,
        entry: &str,
        names: &Dict,
    ) -> Result<Vec<(String, Value)>, RenderError> {
        if entry == "bad" {
            return Err(RenderError::Failed("it is bad".into()));
        }
        // Slower than events come.
        std::thread::sleep(Duration::from_micros(200));
        let n = names.get("data").and_then(|data| data.get("n")).unwrap_or_default();
        let high = dict! { "x" => dict! { "runner.toy.run" => list![dict! { "n" => n }] } };
        Ok(vec![(entry.to_owned(), high)])
    }

    fn text(&self, _: &Arc<Master>, text: &str, _: &Dict) -> Result<String, RenderError> {
        Ok(text.to_owned())
    }
}

impl Runners for Toy {
    fn run(&self, _: &Arc<Master>, call: &Call) -> Option<Outcome> {
        RAN.fetch_add(1, Ordering::Relaxed);
        let fails = call.kwargs.get("n").is_some_and(|n| n.as_int() == Some(13));
        Some(Outcome { value: "".into(), success: !fails })
    }
}

fn toys() -> Parts {
    Parts { rendering: Some(Arc::new(Toy)), runners: Some(Arc::new(Toy)), ..Parts::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_goes_through_a_small_queue_by_way_of_the_disk() {
    let more = entries! {
        "reactor_worker_hwm" => 20, "reactor_worker_threads" => 4,
        "reactor" => list![dict! { "burst/*" => list!["file"] }, dict! { "bad" => list!["bad"] }],
    };
    let master = TestMaster::with_parts(more, toys).await;
    for n in 0..2000 {
        master.master().bus.fire(format!("burst/{n}"), entries! { "n" => n });
    }
    let status =
        |name: &str| master.master().reactor.status().get(name).and_then(|n| n.as_int()).unwrap();
    until("all are handled", || status("done") + status("failed") == 2000).await;
    assert_eq!((RAN.load(Ordering::Relaxed), status("failed"), status("dead")), (2000, 1, 1));
    assert!(status("spilled") > 1000 && status("waiting") == 0);
    master.master().bus.fire("bad", Dict::new());
    until("it has failed", || status("dead") == 2).await;
    let ask = |action: &str| Request::Ask {
        what: "reactor".into(),
        load: entries! { "action" => action },
    };
    let dir = master.sock_dir();
    let (dead, again) = tokio::task::spawn_blocking(move || {
        let mut client = Client::connect(&dir).unwrap();
        // The count is told before the list is on the disk.
        let mut dead = client.call(&ask("dead")).unwrap();
        for _ in 0..100 {
            if dead.items_of_sequence().is_some_and(|list| list.len() == 2) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
            dead = client.call(&ask("dead")).unwrap();
        }
        (dead, client.call(&ask("retry_dead")).unwrap())
    })
    .await
    .unwrap();
    let errors: Vec<String> = dead
        .items_of_sequence()
        .unwrap()
        .iter()
        .map(|one| one.get("error").unwrap().to_string())
        .collect();
    assert!(errors[0].contains("toy.run") && errors[1] == "it is bad", "{errors:?}");
    assert_eq!(again, Value::from(2));
    until("they failed again", || status("dead") == 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_the_leader_does_not_react() {
    let more = entries! { "reactor" => list![dict! { "x" => list!["file"] }] };
    let master = TestMaster::with_parts(more, toys).await;
    let ask = |value: bool| {
        let load = entries! { "action" => "set_leader", "value" => value };
        let dir = master.sock_dir();
        tokio::task::spawn_blocking(move || {
            let request = Request::Ask { what: "reactor".into(), load };
            Client::connect(&dir).unwrap().call(&request).unwrap()
        })
    };
    assert_eq!(ask(false).await.unwrap(), Value::from(false));
    master.master().bus.fire("x", Dict::new());
    assert_eq!(ask(true).await.unwrap(), Value::from(true));
    master.master().bus.fire("x", Dict::new());
    let events = || master.master().reactor.status().get("events").and_then(|n| n.as_int());
    until("the second one is taken", || events() == Some(1)).await;
}
