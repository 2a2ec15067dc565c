//! The whole daemon, in this process, against a master made by hand.

#![allow(clippy::unwrap_used, unreachable_pub, reason = "a test may")]

mod master;

use std::{
    collections::HashSet,
    path::Path,
    sync::{Arc, atomic::Ordering},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use halite_minion::{
    Pipes,
    daemon::{self, Start, auth::Identity, journal::Journal, options::Settings},
};
use halite_spec::Host;
use halite_value::{Dict, Value, dict, entries, list, msgpack};
use halite_wire::{RETURNS, Refusal};
use master::{Master, PATIENCE};
use tokio::sync::oneshot;

/// A minion that runs until it is dropped.
struct Minion {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<u8>>,
}

fn opts(folder: &Path, port: u16, more: &Dict) -> Dict {
    let place = |name: &str| folder.join(name).display().to_string();
    let opts = entries! {
        "id" => "m1", "master" => "127.0.0.1", "master_port" => port, "keysize" => 1024,
        "pki_dir" => place("pki"), "cachedir" => place("cache"), "sock_dir" => place("run"),
        "extension_modules" => place("cache/extmods"), "conf_file" => place("minion"),
        "acceptance_wait_time" => 0.1, "auth_timeout" => 2, "auth_tries" => 1,
        "request_channel_timeout" => 2, "request_channel_tries" => 1, "return_retry_timer" => 1,
        "return_retry_timer_max" => 1, "recon_default" => 50, "recon_max" => 100,
        "renderer" => "jinja|yaml", "hash_type" => "sha256", "saltenv" => "base",
        "grains_cache" => true, "mine_enabled" => false,
        "halite" => dict! { "extension" => false },
    };
    opts.update(more);
    // Collecting grains takes longer than all of the rest.
    let grains = msgpack::to_vec(&dict! { "os" => "Test", "id" => "m1" }, msgpack::Dialect::Modern);
    std::fs::create_dir_all(folder.join("cache")).unwrap();
    std::fs::write(folder.join("cache/grains.cache.p"), grains.unwrap()).unwrap();
    opts
}

impl Minion {
    fn start(opts: Dict) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let rendering = Arc::new(Pipes::new(&opts));
            let stop = async {
                let _ = stopped.await;
            };
            daemon::run_until(Start { opts, rendering }, stop).expect("a daemon")
        });
        Self { stop: Some(stop), thread: Some(thread) }
    }

    /// Ends it; returns its exit code.
    fn end(mut self) -> u8 {
        self.stop.take();
        self.thread.take().unwrap().join().unwrap()
    }

    /// Waits for it to end by itself.
    fn ended(mut self) -> u8 {
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Minion {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct World {
    master: Master,
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        Self { master: Master::start(), folder: tempfile::tempdir().unwrap() }
    }

    fn minion(&self, more: &Dict) -> Minion {
        let minion = Minion::start(opts(self.folder.path(), self.master.port(), more));
        self.master.event("salt/minion/m1/start");
        minion
    }
}

fn ret(ret: &Dict) -> Value {
    ret.get("return").unwrap()
}

#[test]
fn a_job_from_publication_to_return() {
    let world = World::new();
    let minion = world.minion(&Dict::new());
    let jid = world.master.publish("test.ping", list![]);
    let got = world.master.returned(&jid);
    assert_eq!(ret(&got), Value::Bool(true));
    for (field, value) in [
        ("id", Value::from("m1")),
        ("fun", "test.ping".into()),
        ("fun_args", list![]),
        ("retcode", 0.into()),
        ("success", true.into()),
        ("user", "root".into()),
        ("cmd", "_return".into()),
    ] {
        assert_eq!(got.get(field), Some(value), "{field}");
    }
    assert!(!got.contains("out"));
    let jid =
        world.master.publish("test.echo", list![dict! { "text" => "x", "__kwarg__" => true }]);
    let got = world.master.returned(&jid);
    assert_eq!(ret(&got), Value::from("x"));
    assert_eq!(got.get("fun_args"), Some(list![dict! { "text" => "x", "__kwarg__" => true }]));
    let jid = world.master.publish("pillar.ls", list![]);
    assert_eq!(ret(&world.master.returned(&jid)), list!["role"]);
    let funs = list!["test.ping", "test.echo", "no.such"];
    let jid = world.master.publish(funs, list![list![], list!["hi"], list![]]);
    let got = world.master.returned(&jid);
    assert_eq!(
        ret(&got),
        dict! { "test.ping" => true, "test.echo" => "hi", "no.such" => "'no.such' is not available." }
    );
    let success = dict! { "test.ping" => true, "test.echo" => true, "no.such" => false };
    assert_eq!(got.get("success"), Some(success));
    // One that gave nothing has no code, as in Salt.
    assert_eq!(got.get("retcode"), Some(dict! { "test.ping" => 0, "test.echo" => 0 }));
    assert_eq!(minion.end(), 0);
}

#[test]
fn what_cannot_be_done_is_said_in_salts_words() {
    let world = World::new();
    let _minion = world.minion(&Dict::new());
    for (fun, arg, text) in [
        ("no.such", list![], "'no.such' is not available."),
        (
            "test.echo",
            list![],
            "Passed invalid arguments to test.echo: echo() missing 1 required positional argument: 'text'\n",
        ),
        (
            "test.ping",
            list!["x=1"],
            "ERROR executing 'test.ping': The following keyword arguments are not valid: x=1",
        ),
    ] {
        let jid = world.master.publish(fun, arg);
        let got = world.master.returned(&jid);
        assert!(ret(&got).to_str().starts_with(text), "{}", ret(&got));
        assert_eq!(got.get("retcode"), Some(1.into()), "{fun}");
        assert_eq!(got.get("success"), Some(false.into()), "{fun}");
        assert_eq!(got.get("out"), Some("nested".into()), "{fun}");
    }
}

#[test]
fn targets_decide_and_repeats_are_dropped() {
    let world = World::new();
    let _minion = world.minion(&Dict::new());
    let master = &world.master;
    let load = |jid: &str, tgt: Value, kind: &str| {
        entries! {
            "fun" => "test.ping", "arg" => list![], "tgt" => tgt, "tgt_type" => kind, "jid" => jid,
            "ret" => "", "user" => "root",
        }
    };
    master.publish_load(&load("20260101000000000001", "other".into(), "glob"));
    master.publish_load(&load("20260101000000000002", "os:Nope".into(), "grain"));
    master.publish_load(&load("20260101000000000003", "os:Test".into(), "grain"));
    master.publish_load(&load("20260101000000000003", "os:Test".into(), "grain"));
    master.publish_load(&load("20260101000000000004", list!["m1"], "list"));
    master.publish_load(&load("20260101000000000005", "role:web".into(), "pillar"));
    master.publish_load(&load("20260101000000000006", "G@os:Test and not m2".into(), "compound"));
    let mut seen = Vec::new();
    while seen.len() < 4 {
        let got = master.returns.recv_timeout(PATIENCE).unwrap();
        seen.push(got.get("jid").unwrap().to_str().to_string());
    }
    seen.sort();
    let last = |jid: &String| jid[19..].to_owned();
    assert_eq!(seen.iter().map(last).collect::<Vec<_>>(), ["3", "4", "5", "6"]);
    assert!(master.returns.recv_timeout(Duration::from_millis(300)).is_err());
}

#[test]
fn a_return_waits_for_a_master_that_is_away_and_for_a_new_life() {
    let mut world = World::new();
    let minion = world.minion(&Dict::new());
    *world.master.core.deaf_to.lock() = Some("_return");
    let first = world.master.publish("test.echo", list!["one"]);
    let until = Instant::now() + PATIENCE;
    while !world.master.core.commands.lock().iter().any(|command| command == "_return") {
        assert!(Instant::now() < until, "the return was never sent");
        std::thread::sleep(Duration::from_millis(20));
    }
    world.master.down();
    assert_eq!(minion.end(), 0);
    *world.master.core.deaf_to.lock() = None;
    world.master.rotate();
    world.master.up();
    let _minion = world.minion(&Dict::new());
    assert_eq!(ret(&world.master.returned(&first)), Value::from("one"));
    // Acknowledged once, it is not sent again; and the job is not run again.
    world.master.publish_as(&first, "test.echo", list!["one"]);
    assert!(world.master.returns.recv_timeout(Duration::from_millis(1500)).is_err());
}

#[test]
fn a_master_that_comes_back_gets_what_it_missed() {
    let mut world = World::new();
    let _minion = world.minion(&Dict::new());
    let jid = world.master.publish("test.sleep", list![1]);
    std::thread::sleep(Duration::from_millis(300));
    world.master.down();
    std::thread::sleep(Duration::from_millis(1500));
    world.master.rotate();
    world.master.up();
    assert_eq!(ret(&world.master.returned(&jid)), Value::from(true));
    world.master.event("salt/minion/m1/start");
    let jid = world.master.publish("test.ping", list![]);
    assert_eq!(ret(&world.master.returned(&jid)), Value::from(true));
}

#[test]
fn a_job_that_a_crash_interrupted_is_reported() {
    let world = World::new();
    let path = world.folder.path().join("cache/journal");
    let (journal, _) = Journal::open(&path, 100).unwrap();
    let load = entries! {
        "fun" => "state.apply", "arg" => list!["web"], "tgt" => "*", "tgt_type" => "glob",
        "jid" => "20260101000000000001", "ret" => "", "user" => "anna",
    };
    journal.start("20260101000000000001", "127.0.0.1", &load, true).unwrap();
    drop(journal);
    let minion = world.minion(&Dict::new());
    let got = world.master.returned("20260101000000000001");
    assert!(ret(&got).to_str().contains("stopped while job 20260101000000000001 was running"));
    assert_eq!(got.get("success"), Some(false.into()));
    assert_eq!(got.get("user"), Some("anna".into()));
    assert_eq!(got.get("fun"), Some("state.apply".into()));
    minion.end();
    let _minion = world.minion(&Dict::new());
    assert!(world.master.returns.recv_timeout(Duration::from_millis(500)).is_err(), "only once");
}

#[test]
fn jobs_can_be_found_and_ended() {
    let world = World::new();
    let _minion = world.minion(&Dict::new());
    let master = &world.master;
    let long = master.publish("test.sleep", list![60]);
    let find = |jid: &str| {
        let asked = master.publish("saltutil.find_job", list![jid]);
        ret(&master.returned(&asked))
    };
    let until = Instant::now() + PATIENCE;
    let found = loop {
        let found = find(&long);
        // It is known before its thread is.
        let has_thread = found.get("pid").is_some_and(|pid| pid.truthy());
        if has_thread || Instant::now() > until {
            break found;
        }
    };
    assert_eq!(found.get("fun"), Some("test.sleep".into()));
    assert_eq!(found.get("jid"), Some(long.as_str().into()));
    assert!(found.get("pid").is_some_and(|pid| pid.truthy()));
    assert_eq!(find("20260101000000000009"), Value::dict());
    let asked = master.publish("saltutil.kill_job", list![long.as_str()]);
    let got = [master.returns.recv_timeout(PATIENCE), master.returns.recv_timeout(PATIENCE)];
    for got in got {
        let got = got.unwrap();
        if got.get("jid") == Some(asked.as_str().into()) {
            assert!(ret(&got).to_str().starts_with("Signal 9 sent to job"), "{}", ret(&got));
        } else {
            assert_eq!(ret(&got), Value::from("ERROR: the job was ended by signal 9"));
            assert_eq!(got.get("success"), Some(false.into()));
        }
    }
    assert_eq!(find(&long), Value::dict());
}

#[test]
fn keys_that_change_are_noticed() {
    let world = World::new();
    let _minion = world.minion(&Dict::new());
    assert_eq!(world.master.core.sign_ins.load(Ordering::SeqCst), 1);
    world.master.rotate();
    // The publication cannot be opened; after signing in it can.
    let jid = world.master.publish("test.ping", list![]);
    assert_eq!(ret(&world.master.returned(&jid)), Value::from(true));
    assert_eq!(world.master.core.sign_ins.load(Ordering::SeqCst), 2);
}

#[test]
fn a_key_that_is_not_accepted_waits() {
    let world = World::new();
    *world.master.core.refusal.lock() = Some(Refusal::Pending);
    let minion = Minion::start(opts(world.folder.path(), world.master.port(), &Dict::new()));
    let until = Instant::now() + PATIENCE;
    while world.master.core.sign_ins.load(Ordering::SeqCst) < 3 {
        assert!(Instant::now() < until, "it does not ask again");
        std::thread::sleep(Duration::from_millis(20));
    }
    *world.master.core.refusal.lock() = None;
    world.master.event("salt/minion/m1/start");
    assert_eq!(minion.end(), 0);
}

#[test]
fn a_wrong_fingerprint_ends_the_minion() {
    let world = World::new();
    let more = entries! { "master_finger" => "00:11" };
    let minion = Minion::start(opts(world.folder.path(), world.master.port(), &more));
    assert_eq!(minion.ended(), 42);
}

#[test]
fn a_halite_master_needs_one_connection() {
    let world = World { master: Master::with(true), folder: tempfile::tempdir().unwrap() };
    let more = entries! { "halite" => dict! { "extension" => true } };
    let _minion = world.minion(&more);
    let jid = world.master.publish("test.ping", list![]);
    assert_eq!(ret(&world.master.returned(&jid)), Value::from(true));
}

#[test]
fn returns_that_are_ready_together_go_together() {
    let world = World { master: Master::with(true), folder: tempfile::tempdir().unwrap() };
    let more = entries! { "halite" => dict! { "extension" => true } };
    let _minion = world.minion(&more);
    world.master.core.late_ms.store(700, Ordering::SeqCst);
    let jobs: Vec<_> =
        (0..6).map(|number| world.master.publish("test.echo", list![number.to_string()])).collect();
    // Whichever comes first: each comes once, in whatever company.
    let mut missing: HashSet<_> = jobs.into_iter().collect();
    while !missing.is_empty() {
        let ret = world.master.returns.recv_timeout(PATIENCE).expect("a return");
        let jid = ret.get("jid").unwrap().to_str();
        assert!(missing.remove(&jid), "{jid} came twice");
        assert_eq!(ret.get("id"), Some("m1".into()));
        assert_eq!(ret.get("cmd"), Some("_return".into()));
    }
    let commands = world.master.core.commands.lock();
    let messages = commands.iter().filter(|name| ["_return", RETURNS].contains(&name.as_str()));
    assert!(messages.count() < 6, "{commands:?}");
    assert!(commands.iter().any(|name| name == RETURNS), "{commands:?}");
}

/// A session without a daemon, as `salt-call` has it.
fn connected(world: &World) -> daemon::call::Connected {
    let opts = opts(world.folder.path(), world.master.port(), &Dict::new());
    let host: Arc<dyn Host> = Arc::new(halite_host::Os::new());
    daemon::call::Connected::new(&host, &opts).unwrap()
}

#[test]
fn files_are_fetched_once_and_go_on_where_they_stopped() {
    let world = World::new();
    let content: Vec<u8> = (0..10_500_u32).map(|n| (n % 251) as u8).collect();
    world.master.serve("a/b.bin", &content);
    world.master.serve("empty", b"");
    let session = connected(&world);
    let files = &session.files;
    // The second chunk is lost: this attempt fails, the next goes on there.
    world.master.core.cut_chunks.store(1, Ordering::SeqCst);
    assert!(files.cache("salt://a/b.bin", "base").is_err());
    let served = |world: &World| {
        let commands = world.master.core.commands.lock();
        commands.iter().filter(|command| *command == "_serve_file").count()
    };
    let before = served(&world);
    let path = files.cache("salt://a/b.bin", "base").unwrap().unwrap();
    assert_eq!(served(&world) - before, 11, "ten more chunks and the empty one");
    assert!(path.ends_with("cache/files/base/a/b.bin"));
    assert_eq!(std::fs::read(&path).unwrap(), content);
    let before = served(&world);
    assert_eq!(files.cache("salt://a/b.bin", "base").unwrap().unwrap(), path);
    assert_eq!(served(&world), before, "it is here already");
    let empty = files.cache("salt://empty", "base").unwrap().unwrap();
    assert_eq!(std::fs::read(empty).unwrap(), b"");
    assert!(files.cache("salt://missing", "base").unwrap().is_none());
    assert!(files.cache("salt://../../etc/passwd", "base").unwrap().is_none());
    world.master.serve("../up", b"x");
    assert!(files.cache("salt://../up", "base").is_err());
    let left: Vec<_> = std::fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(left.len(), 1, "no parts stay behind");
}

#[test]
fn a_pillar_that_was_tampered_with_is_refused() {
    let world = World::new();
    let session = connected(&world);
    let opts = opts(world.folder.path(), world.master.port(), &Dict::new());
    let setup = |session: &daemon::call::Connected| halite_minion::caller::Setup {
        files: Arc::clone(&session.files),
        sources: Arc::clone(&session.sources),
        rendering: Arc::new(Pipes::new(&opts)),
        link: Arc::clone(&session.link),
        job: halite_spec::Job::new("20260101000000000001", "test.ping", "root"),
        host: Arc::new(halite_host::Os::new()),
        opts: opts.clone(),
    };
    let caller = halite_minion::Caller::new(setup(&session)).unwrap();
    assert_eq!(caller.cx.pillar.get("role"), Some("web".into()));
    world.master.core.tamper_pillar.store(true, Ordering::SeqCst);
    assert!(halite_minion::Caller::new(setup(&session)).is_err());
}

#[test]
fn the_key_pair_is_made_once() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings::read(&opts(folder.path(), 1, &Dict::new())).unwrap();
    let first = Identity::open(&settings).unwrap();
    let second = Identity::open(&settings).unwrap();
    assert_eq!(first.key.public(), second.key.public());
}
