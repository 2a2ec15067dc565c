//! Nobody can hold the event bus up: neither a minion that sends too much, nor a program that reads
//! too little.

use std::{
    io::{ErrorKind, Read as _},
    os::unix::net::UnixStream,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use halite_client::{Client, EventItem, Request};
use halite_e2e::fleet::{Fleet, until};

fn client(fleet: &Fleet) -> Client {
    Client::connect(&fleet.machine.path("var/run/salt/master")).expect("a master")
}

fn counter(fleet: &Fleet, name: &str) -> i64 {
    let counters = client(fleet).call(&Request::Statistics).expect("a master");
    counters.get(name).and_then(|count| count.as_int()).expect("a number")
}

#[test]
fn a_minion_that_sends_too_much_is_dropped_and_told_of() {
    const SENT: usize = 24;
    let limit = "auto_accept: True\nhalite: {minion_events: {rate: 1, burst: 5}}";
    let mut fleet = Fleet::new(limit);
    fleet.minion("loud", "");
    fleet.minion("calm", "");
    let events = fleet.follow();
    // At once: whoever waits for its turn too long is dropped.
    std::thread::scope(|scope| {
        for n in 0..SENT {
            let fleet = &fleet;
            scope.spawn(move || {
                let data = format!("{{n: {n}}}");
                fleet.call("loud", &["event.send", &format!("flood/{n}"), &data]).code(0);
            });
        }
    });
    until("it is told", || !events.tags("salt/minion/loud/events_dropped").is_empty());
    // What belongs to others has a measure of its own, and so have jobs and returns.
    fleet.call("calm", &["event.send", "calm/one"]).code(0);
    until("the calm one is heard", || events.tags("calm/").len() == 1);
    fleet.salt(&["loud", "test.ping", "--out=txt"]).code(0).says("loud: True");
    let (heard, dropped) = (events.tags("flood/").len(), counter(&fleet, "dropped_events"));
    assert_eq!(i64::try_from(SENT - heard), Ok(dropped), "{heard} heard");
    assert!(heard >= 5 && dropped > 0, "{heard} heard, {dropped} dropped");
    assert!(fleet.log().contains("sends more than 1 events per second"));
}

/// The memory of the master, in megabytes.
fn memory(fleet: &Fleet) -> u64 {
    let hello = client(fleet).call(&Request::Hello).expect("a master");
    let pid = hello.get("pid").and_then(|pid| pid.as_int()).expect("its process");
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
    let kilobytes = line.split_whitespace().next().and_then(|n| n.parse::<u64>().ok());
    kilobytes.expect("a number") >> 10
}

/// Counts the events of a tag in what a subscriber of Salt's socket reads.
struct Reader {
    socket: UnixStream,
    rest: Vec<u8>,
}

impl Reader {
    fn new(fleet: &Fleet) -> Self {
        let path = fleet.machine.path("var/run/salt/master/master_event_pub.ipc");
        let socket = UnixStream::connect(path).expect("Salt's event socket");
        Self { socket, rest: Vec::new() }
    }

    /// Fires events until this reader sees one: who has just connected may not be listened to yet.
    fn begin(&mut self, mut fire: impl FnMut(&str)) {
        self.socket.set_read_timeout(Some(Duration::from_millis(200))).expect("a socket");
        until("the reader hears", || {
            fire("begin/one");
            self.try_read(b"begin/").is_some_and(|seen| seen > 0)
        });
        self.socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
    }

    /// Reads once, and returns how many more were seen.
    fn read(&mut self) -> usize {
        self.try_read(b"many/").expect("events go on")
    }

    /// As [`Reader::read`], for any tag; `None` if nothing comes in time.
    fn try_read(&mut self, tag: &[u8]) -> Option<usize> {
        let mut chunk = [0; 1 << 16];
        let read = match self.socket.read(&mut chunk) {
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
            Err(error) => panic!("{error}"),
        };
        assert!(read > 0, "the master has closed the socket");
        self.rest.extend_from_slice(&chunk[..read]);
        let is_tag = |at: &usize| self.rest[*at..].starts_with(tag);
        let seen: Vec<usize> = (0..self.rest.len()).filter(is_tag).collect();
        let done = seen.last().map_or(0, |at| at + 1);
        let keep = self.rest.len().saturating_sub(tag.len() - 1).max(done);
        self.rest.drain(..keep.min(self.rest.len()));
        Some(seen.len())
    }
}

/// Sets its flag when it goes, so that a thread which waits for it ends after a failure too.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn who_reads_a_byte_a_second_holds_nobody_up() {
    /// So many at a time, far below what may wait for one reader: a busy machine is not a slow reader.
    const STEP: usize = 500;
    const ROUND: usize = 30 * STEP;
    const MANY: usize = 2 * ROUND;
    let fleet = Fleet::new("");
    let word = "x".repeat(6000);
    let mut firing = client(&fleet);
    let mut fire = |tag: &str| {
        let data = halite_value::entries! { "word" => word.as_str() };
        firing.call(&Request::Fire { tag: tag.into(), data }).expect("it is fired");
    };
    let mut readers: Vec<Reader> = (0..3).map(|_| Reader::new(&fleet)).collect();
    let mut slow = Reader::new(&fleet);
    for reader in &mut readers {
        reader.begin(&mut fire);
    }
    let is_over = AtomicBool::new(false);
    let counts = [const { AtomicUsize::new(0) }; 3];
    let before = std::thread::scope(|scope| {
        let over = Over(&is_over);
        scope.spawn(|| {
            let mut byte = [0];
            while !is_over.load(Ordering::Relaxed) && slow.socket.read(&mut byte).is_ok() {
                for _ in 0..20 {
                    if !is_over.load(Ordering::Relaxed) {
                        std::thread::sleep(Duration::from_millis(50));
                    }
                }
            }
        });
        for (reader, count) in readers.iter_mut().zip(&counts) {
            scope.spawn(move || {
                while count.load(Ordering::Relaxed) < MANY {
                    count.fetch_add(reader.read(), Ordering::Relaxed);
                }
            });
        }
        let mut before = 0;
        for n in 1..=MANY {
            fire(&format!("many/{n}"));
            if n % STEP == 0 {
                let have_all = || counts.iter().all(|count| count.load(Ordering::Relaxed) >= n);
                until("the others have read all", have_all);
            }
            if n == ROUND {
                before = memory(&fleet);
            }
        }
        drop(over);
        before
    });
    assert_eq!(counts.map(AtomicUsize::into_inner), [MANY; 3]);
    // What waits for the slow one has a limit, which the first round reached; another 90 MB went by.
    let grown = memory(&fleet).saturating_sub(before);
    assert!(grown < 45, "the master grew by {grown} MB");
}

/// Reads until an event of this tag, with its cursor; gaps count as they come.
fn read_to(client: &mut Client, stream: u64, tag: &str) -> (Vec<String>, u64, u64) {
    let (mut tags, mut missed) = (Vec::new(), 0);
    loop {
        let soon = Some(Instant::now() + halite_e2e::fleet::PATIENCE);
        match client.event(stream, soon).expect("connected") {
            Some(EventItem::Event { cursor, tag: own, .. }) => {
                tags.push(own.to_string());
                if own == tag {
                    return (tags, missed, cursor);
                }
            }
            Some(EventItem::Gap { missed: more }) => missed += more,
            None => panic!("no {tag} after {tags:?}"),
        }
    }
}

/// Who was away asks for what came meanwhile, also of a master that was away itself, and is told
/// how much is no longer there.
#[test]
fn cursors_lead_through_restarts_and_gaps() {
    let mut fleet = Fleet::new("halite: {store: {max_events: 50}}\n");
    let fire = |fleet: &Fleet, tags: &[&str]| {
        let mut firing = client(fleet);
        for tag in tags {
            let data = halite_value::entries! { "n" => 1 };
            firing.call(&Request::Fire { tag: (*tag).into(), data }).expect("it is fired");
        }
    };
    let ask = |fleet: &Fleet, after: Option<u64>| {
        let mut reading = client(fleet);
        let stream =
            reading.send(&Request::Events { tag: "own/".into(), after }).expect("a stream");
        (reading, stream)
    };
    let (mut reading, stream) = ask(&fleet, Some(0));
    fire(&fleet, &["own/1", "own/2"]);
    let (tags, missed, cursor) = read_to(&mut reading, stream, "own/2");
    assert_eq!((tags.as_slice(), missed), (["own/1", "own/2"].map(str::to_owned).as_slice(), 0));
    drop(reading);
    // While nobody reads, and from one master to the next.
    fire(&fleet, &["own/3"]);
    fleet.stop_master();
    fleet.start_master();
    fire(&fleet, &["own/4"]);
    let (mut reading, stream) = ask(&fleet, Some(cursor));
    let (tags, missed, cursor) = read_to(&mut reading, stream, "own/4");
    assert_eq!((tags.as_slice(), missed), (["own/3", "own/4"].map(str::to_owned).as_slice(), 0));
    drop(reading);
    // More than is kept: a gap, with its number, and then the rest in order.
    let many: Vec<String> = (0..400).map(|n| format!("own/many/{n}")).collect();
    fire(&fleet, &many.iter().map(String::as_str).collect::<Vec<_>>());
    let (mut reading, stream) = ask(&fleet, Some(cursor));
    let (tags, missed, _) = read_to(&mut reading, stream, "own/many/399");
    assert_eq!(tags, many[many.len() - tags.len()..], "none is left out after the gap");
    assert!(missed > 0 && tags.len() < many.len(), "{missed} missed, {} read", tags.len());
    assert!(missed as usize + tags.len() >= many.len(), "{missed} missed, {} read", tags.len());
}

/// `salt-run state.event` in its forms, and events in theirs.
#[test]
fn events_are_watched_in_every_form() {
    let mut fleet = Fleet::new("auto_accept: True");
    fleet.minion("web1", "");
    let watch = |args: &[&str]| {
        let mut watching = fleet.start_run(&[&["state.event"], args].concat());
        until("it ends by itself", || {
            fleet.call("web1", &["event.send", "own/tag", "{\"n\": 1}", "word=x"]).code(0);
            matches!(watching.try_wait(), Ok(Some(_)))
        });
        let out = watching.wait_with_output().expect("it ended");
        assert!(out.status.success());
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    let line = watch(&["own/*", "count=1"]);
    assert!(line.starts_with("own/tag\t{") && line.ends_with("}\nNone\n"), "{line}");
    let (_, data) = line.split_once('\t').expect("tag and data");
    let data: serde_json::Value =
        serde_json::from_str(data.lines().next().unwrap_or_default()).expect("JSON");
    assert_eq!((&data["id"], &data["cmd"]), (&"web1".into(), &"_minion_event".into()));
    assert_eq!((&data["data"]["n"], &data["data"]["word"]), (&1.into(), &"x".into()));
    // As genuine Salt's `salt-call` sends it.
    assert!(data.get("pretag").is_none(), "{data}");
    let pretty = watch(&["tagmatch=own/*", "count=1", "pretty=True"]);
    assert!(
        pretty.contains("\n    \"data\": {\n") && pretty.contains("\"word\": \"x\""),
        "{pretty}"
    );
    assert_eq!(watch(&["own/*", "count=2", "quiet=True"]), "None\n");
    assert_eq!(watch(&["own/*", "count=3", "node=master"]).matches("own/tag\t").count(), 3);
}
