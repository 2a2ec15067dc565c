//! Jobs: out to minions, back into the store, seen by whoever asks.

mod common;

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use common::{TestMaster, key, until};
use halite_client::{Client, Job, Patience, Progress, Request, Silence};
use halite_master::{
    Master, Parts, PillarRequest, PillarSource,
    runners::{Call, Outcome, Runners},
};
use halite_transport::ipc;
use halite_value::{Dict, Value, dict, entries, list};
use halite_wire::{Event, Jid, Notice, RETURNS};

/// Runs a client, which blocks, beside the test.
async fn with_client<T: Send + 'static>(
    master: &TestMaster,
    work: impl FnOnce(&mut Client) -> T + Send + 'static,
) -> T {
    let dir = master.sock_dir();
    tokio::task::spawn_blocking(move || work(&mut Client::connect(&dir).expect("a master")))
        .await
        .expect("no panic")
}

fn soon() -> Option<std::time::Instant> {
    Some(std::time::Instant::now() + common::PATIENCE)
}

/// Counts how often it is told that files may have changed.
#[derive(Default)]
struct Looks(AtomicUsize);

impl PillarSource for Looks {
    fn compile(&self, _: &PillarRequest) -> Dict {
        Dict::new()
    }

    fn look_again(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pillar_files_are_looked_at_again_after_a_sign_in_and_a_publication() {
    let looks = Arc::new(Looks::default());
    let mut master = TestMaster::new(Dict::new()).await;
    let pillar = Arc::clone(&looks) as Arc<dyn PillarSource>;
    master.restart_with(Parts { pillar: Some(pillar), ..Parts::default() }).await;
    let minion = master.signed_in("web1", 0).await;
    minion.subscribe();
    let before = looks.0.load(Ordering::SeqCst);
    assert!(before > 0, "it signed in");
    until("it subscribed", || master.master().hub.statistics().connections >= 2).await;
    with_client(&master, |client| client.publish(&Job::new("web*", "glob", "test.ping")).unwrap())
        .await;
    assert_eq!(looks.0.load(Ordering::SeqCst), before + 1, "one job was published");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_goes_out_and_comes_back() {
    let master = TestMaster::new(Dict::new()).await;
    let minion = master.signed_in("web1", 0).await;
    minion.subscribe();
    until("it subscribed", || master.master().hub.statistics().connections >= 2).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let client = tokio::spawn({
        let dir = master.sock_dir();
        async move {
            tokio::task::spawn_blocking(move || {
                let mut client = Client::connect(&dir).unwrap();
                let mut job = Job::new("web*", "glob", "test.echo");
                job.arg = vec!["hi".into()];
                let (published, id) = client.publish(&job).unwrap();
                assert_eq!(published.minions, ["web1"]);
                assert_eq!(published.unsure, ["web1"], "a genuine one: who knows");
                let mut steps = Vec::new();
                loop {
                    match client.progress(id, soon()).unwrap().expect("in time") {
                        Progress::Done => break,
                        step => steps.push(step),
                    }
                }
                (published.jid, steps)
            })
            .await
            .unwrap()
        }
    });
    let job = minion.next_job().await;
    assert_eq!(job.get("fun"), Some("test.echo".into()));
    assert_eq!(job.get("arg"), Some(list!["hi"]));
    assert_eq!(job.get("tgt_type"), Some("glob".into()));
    let jid = job.get("jid").unwrap().to_str();
    assert_eq!(minion.give_back(&jid, "hi").await, Ok(Value::Null));
    let (published, steps) = client.await.unwrap();
    assert_eq!(published, jid);
    let [Progress::Returned(load)] = steps.as_slice() else { panic!("{steps:?}") };
    assert_eq!(load.get("return"), Some("hi".into()));
    assert_eq!(load.get("id"), Some("web1".into()));
    assert!(!load.contains("tok") && !load.contains("nonce"));
    // A second time: acknowledged, and not stored.
    assert_eq!(minion.give_back(&jid, "other").await, Ok(Value::Null));
    let wanted = jid.clone();
    let found =
        with_client(&master, move |client| client.call(&Request::Job { jid: wanted }).unwrap())
            .await;
    assert_eq!(
        found.get("returns").and_then(|r| r.get("web1")).and_then(|r| r.get("return")),
        Some("hi".into())
    );
    assert_eq!(found.get("states"), Some(dict! { "web1" => "returned" }));
    let serial = job.get("serial").unwrap().as_int().unwrap();
    with_client(&master, |client| {
        let mut job = Job::new("web1", "glob", "test.ping");
        job.follow = false;
        client.publish(&job).unwrap()
    })
    .await;
    assert!(minion.next_job().await.get("serial").unwrap().as_int().unwrap() > serial);
}

/// Publishes to everybody without following it; returns the job id and whom the master counts as
/// connected.
async fn publish_now(master: &TestMaster) -> (String, Vec<String>) {
    let published = with_client(master, |client| {
        let mut job = Job::new("*", "glob", "test.ping");
        job.follow = false;
        client.publish(&job).expect("it is published").0
    })
    .await;
    let connected = published.connected.iter().map(ToString::to_string).collect();
    (published.jid.to_string(), connected)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_reaches_a_minion_in_every_phase_of_its_start() {
    let master = TestMaster::new(entries! { "auto_accept" => true }).await;
    let mut minion = master.halite_minion("new", key(0));
    let mut jids = Vec::new();
    minion.sign_in().await.unwrap();
    // Signed in, and nothing else: it counts, so it must get this.
    let (jid, connected) = publish_now(&master).await;
    assert_eq!(connected, ["new"]);
    jids.push(jid);
    minion.subscribe();
    until("it is subscribed", || {
        master.master().hub.peers().iter().any(halite_transport::Peer::is_subscribed)
    })
    .await;
    assert!(!master.master().hub.is_connected("new"), "its connection has no name yet");
    let (jid, connected) = publish_now(&master).await;
    assert_eq!(connected, ["new"]);
    jids.push(jid);
    minion.prove().await;
    let (jid, connected) = publish_now(&master).await;
    assert_eq!(connected, ["new"]);
    jids.push(jid);
    let mut got = Vec::new();
    while got.len() < jids.len() {
        let jid = minion.next_job().await.get("jid").unwrap().to_str().to_string();
        // Twice is allowed: a minion runs a job id once.
        if !got.contains(&jid) {
            got.push(jid);
        }
    }
    got.sort();
    assert_eq!(got, jids);

    // The other order: a name first, then the wish for publications.
    let mut other = master.halite_minion("other", key(1));
    other.sign_in().await.unwrap();
    other.prove().await;
    assert!(!master.master().hub.is_connected("other"));
    let (jid, connected) = publish_now(&master).await;
    assert_eq!(connected, ["new", "other"]);
    other.subscribe();
    assert_eq!(other.next_job().await.get("jid").unwrap().to_str(), *jid);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_reaches_a_minion_from_the_moment_its_key_counts() {
    let master = TestMaster::new(entries! { "auto_accept" => true }).await;
    // What comes between the key and the answer takes a while on a busy machine; here it fails.
    let sessions = master.path().join("cache/sessions");
    let _ = fs::remove_dir_all(&sessions);
    fs::write(&sessions, "in the way").unwrap();
    let mut minion = master.halite_minion("new", key(0));
    let nonce = halite_crypt::Nonce::generate();
    let envelope = dict! {
        "enc" => "clear", "load" => minion.auth_load(nonce.as_str()), "version" => 3,
    };
    let asked = minion.link.request(common::pack(&envelope), common::PATIENCE).await.unwrap();
    assert_eq!(common::unpack(&asked), "Some exception handling minion payload");
    let (jid, connected) = publish_now(&master).await;
    assert_eq!(connected, ["new"], "its key counts, so it must get this");
    fs::remove_file(&sessions).unwrap();
    fs::create_dir(&sessions).unwrap();
    minion.sign_in().await.unwrap();
    minion.subscribe();
    minion.prove().await;
    assert_eq!(minion.next_job().await.get("jid").unwrap().to_str(), *jid);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_without_end_for_a_minion_that_cannot_tell() {
    let master = TestMaster::new(entries! { "auto_accept" => true }).await;
    let mut minion = master.halite_minion("mute", key(0));
    minion.sign_in().await.unwrap();
    minion.subscribe();
    minion.prove().await;
    until("it is connected", || master.master().hub.is_connected("mute")).await;
    let dir = master.sock_dir();
    let patience = Patience {
        timeout: Duration::from_millis(50),
        gather_job_timeout: Duration::from_secs(10),
        syndic_wait: Duration::from_secs(1),
    };
    let waiting = tokio::task::spawn_blocking(move || {
        let job = Job::new("mute", "glob", "state.apply");
        Client::connect(&dir).unwrap().run(&job, patience).unwrap()
    });
    let answers = async {
        loop {
            let job = minion.next_job().await;
            if job.get("fun") == Some("saltutil.find_job".into()) {
                let jid = job.get("jid").unwrap().to_str();
                minion.give_back(&jid, "'saltutil.find_job' is not available.").await.unwrap();
            }
        }
    };
    let outcome = tokio::select! {
        outcome = tokio::time::timeout(common::PATIENCE, waiting) => outcome.expect("an end").unwrap(),
        () = answers => unreachable!(),
    };
    assert!(outcome.returned.is_empty());
    assert_eq!(outcome.missing, [("mute".into(), Silence::NoResponse)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minion_that_goes_while_a_job_is_published_is_named_at_once() {
    let master = TestMaster::new(entries! { "auto_accept" => true }).await;
    let patience = Patience {
        timeout: common::PATIENCE,
        gather_job_timeout: common::PATIENCE,
        syndic_wait: Duration::from_secs(1),
    };
    for round in 0..40 {
        let mut minion = master.halite_minion("brief", key(0));
        minion.sign_in().await.unwrap();
        minion.subscribe();
        minion.prove().await;
        until("it is connected", || master.master().hub.is_connected("brief")).await;
        let dir = master.sock_dir();
        let waiting = tokio::task::spawn_blocking(move || {
            let job = Job::new("brief", "glob", "state.apply");
            Client::connect(&dir).unwrap().run(&job, patience).unwrap()
        });
        tokio::time::sleep(Duration::from_micros(100 * round)).await;
        minion.link.close();
        let outcome = tokio::time::timeout(common::PATIENCE / 2, waiting).await;
        let outcome = outcome.unwrap_or_else(|_| panic!("in round {round}")).unwrap();
        assert_eq!(outcome.missing, [("brief".into(), Silence::NotConnected)]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_reaches_a_minion_whose_old_connection_is_not_known_to_be_dead() {
    let master = TestMaster::new(entries! { "auto_accept" => true }).await;
    let mut old = master.halite_minion("here", key(0));
    old.sign_in().await.unwrap();
    old.subscribe();
    old.prove().await;
    until("it is connected", || master.master().hub.is_connected("here")).await;
    // The machine lost power and is back; its old connection is still open, as far as we know.
    let mut new = master.halite_minion("here", key(0));
    new.sign_in().await.unwrap();
    let (jid, connected) = publish_now(&master).await;
    assert_eq!(connected, ["here"]);
    new.subscribe();
    new.prove().await;
    assert_eq!(new.next_job().await.get("jid").unwrap().to_str(), *jid);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_halite_minion_is_accounted_for() {
    let master = TestMaster::new(entries! { "auto_accept" => true }).await;
    let mut here = master.halite_minion("here", key(0));
    here.sign_in().await.unwrap();
    here.subscribe();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!master.master().hub.is_connected("here"), "a sign-in proves nothing");
    here.prove().await;
    until("it is connected", || master.master().hub.is_connected("here")).await;
    let mut gone = master.halite_minion("gone", key(1));
    gone.sign_in().await.unwrap();
    gone.subscribe();
    gone.prove().await;
    until("it is connected", || master.master().hub.is_connected("gone")).await;
    gone.link.close();
    until("it is gone", || !master.master().hub.is_connected("gone")).await;
    let dir = master.sock_dir();
    let client = tokio::task::spawn_blocking(move || {
        let mut client = Client::connect(&dir).unwrap();
        let (published, id) = client.publish(&Job::new("*", "glob", "test.ping")).unwrap();
        let mut steps = Vec::new();
        loop {
            match client.progress(id, soon()).unwrap().expect("in time") {
                Progress::Done => break,
                step => steps.push(step.write().get("is").unwrap().to_str().to_string()),
            }
        }
        (published, steps)
    });
    let job = here.next_job().await;
    let jid = Jid::new(&job.get("jid").unwrap().to_str()).unwrap();
    assert!(here.link.notice(Notice::Received(jid.clone()).encode().unwrap().into()));
    assert!(here.link.notice(Notice::Started(jid.clone()).encode().unwrap().into()));
    tokio::time::sleep(Duration::from_millis(100)).await;
    here.link.close();
    until("it is gone", || !master.master().hub.is_connected("here")).await;
    let mut back = master.halite_minion("here", key(0));
    back.sign_in().await.unwrap();
    back.subscribe();
    back.prove().await;
    until("it is back", || master.master().hub.is_connected("here")).await;
    assert_eq!(back.give_back(&jid, true).await, Ok(Value::Null));
    let (published, steps) = client.await.unwrap();
    assert_eq!(published.connected, ["here"]);
    assert_eq!(published.absent, ["gone"], "named at once");
    assert!(published.unsure.is_empty());
    assert_eq!(steps, ["received", "started", "lost", "back", "returned"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_salts_own_clients_are_on_disk() {
    let master = TestMaster::new(Dict::new()).await;
    let minion = master.signed_in("web1", 0).await;
    let root_key = fs::read_to_string(master.path().join("cache/.root_key")).unwrap();
    let reply = master
        .clear(entries! {
            "cmd" => "publish", "fun" => "test.ping", "tgt" => list!["web1", "nobody"],
            "arg" => list![], "tgt_type" => "list", "ret" => "", "jid" => "", "user" => "root",
            "key" => root_key.as_str(), "kwargs" => dict! { "show_timeout" => true },
        })
        .await;
    let load = reply.get("load").unwrap();
    assert_eq!(load.get("minions"), Some(list!["web1"]));
    assert_eq!(load.get("missing"), Some(list!["nobody"]));
    let jid = load.get("jid").unwrap().to_str();
    let digits = halite_crypt::Hash::Sha256.hex(jid.as_bytes());
    let folder = master.path().join("cache/jobs").join(&digits[..2]).join(&digits[2..]);
    assert_eq!(fs::read_to_string(folder.join("jid")).unwrap(), jid);
    let stored = halite_value::msgpack::from_slice(
        &fs::read(folder.join(".load.p")).unwrap(),
        halite_value::msgpack::Text::Typed,
    )
    .unwrap();
    assert_eq!(stored.get("fun"), Some("test.ping".into()));
    assert!(!stored.to_str().contains(root_key.as_str()), "no credentials on disk");
    minion.give_back(&jid, true).await.unwrap();
    until("the return is there", || folder.join("web1/return.p").exists()).await;
    let nothing = master
        .clear(entries! {
            "cmd" => "publish", "fun" => "test.ping", "tgt" => "none*", "arg" => list![],
            "tgt_type" => "glob", "user" => "root", "key" => root_key.as_str(),
        })
        .await;
    let load = nothing.get("load").unwrap();
    assert_eq!(load.get("jid"), Some(Value::Null));
    assert_eq!(load.get("error"), Some("Master could not resolve minions for target none*".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn events_reach_salts_listeners() {
    let master = TestMaster::new(Dict::new()).await;
    let address = ipc::Address::Unix(master.sock_dir().join("master_event_pub.ipc"));
    let mut listener = ipc::Listener::connect(&address).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let pull = ipc::Address::Unix(master.sock_dir().join("master_event_pull.ipc"));
    for prefix in [false, true] {
        let mut pusher = ipc::Pusher::connect(&pull, prefix).await.unwrap();
        let event = Event::new("my/tag", entries! { "n" => prefix });
        pusher.send(&event.encode().unwrap()).await.unwrap();
        let heard = listener.next().await.unwrap().unwrap();
        let heard = Event::decode(&heard).unwrap();
        assert_eq!((heard.tag.as_str(), heard.data.get("n")), ("my/tag", Some(prefix.into())));
    }
}

/// Wheel functions as a program would bring them: here one that deletes a key.
struct Wheel(halite_keys::Keys);

impl Runners for Wheel {
    fn run(&self, _: &Arc<Master>, call: &Call) -> Option<Outcome> {
        if call.function != "key.delete" {
            return None;
        }
        let changed = self.0.delete(&halite_keys::Match::of(&call.args[0])).expect("files");
        Some(Outcome { value: changed.keys.into(), success: true })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_change_hands() {
    let mut master = TestMaster::new(Dict::new()).await;
    let keys = |master: &TestMaster| {
        halite_keys::Keys::new(&master.path().join("pki"), false, halite_crypt::Hash::Sha256)
    };
    let wheel: Arc<dyn Runners> = Arc::new(Wheel(keys(&master)));
    master.restart_with(Parts { wheel: Some(wheel), ..Parts::default() }).await;
    let mut minion = master.halite_minion("web1", key(0));
    minion.sign_in().await.unwrap_err();
    master.minion("web2", key(1)).sign_in().await.unwrap_err();
    let events = master.master().bus.subscribe("", 100);
    let what = halite_keys::Match::of(&"web1".into());
    let changed = keys(&master).accept(&what, halite_keys::Include::default()).unwrap();
    let event = changed.events[0].clone();
    with_client(&master, move |client| {
        client.call(&Request::Fire { tag: "salt/key".into(), data: event }).unwrap()
    })
    .await;
    minion.sign_in().await.unwrap();
    minion.subscribe();
    minion.prove().await;
    until("it is connected", || master.master().hub.is_connected("web1")).await;
    with_client(&master, |client| {
        let wheel = |fun: &str| Request::Wheel {
            fun: fun.into(),
            arg: vec!["web1".into()],
            kwarg: Dict::new(),
        };
        let done = client.call(&wheel("key.delete")).unwrap();
        assert_eq!(done.get("success"), Some(true.into()));
        let unknown = client.call(&wheel("no.such")).unwrap();
        assert_eq!(unknown.get("success"), Some(false.into()));
    })
    .await;
    assert!(!master.master().hub.is_connected("web1"), "its connection ended with the key");
    assert!(minion.sign_in().await.is_err(), "pending again");
    let mut tags = Vec::new();
    while let Ok(Some(halite_master::bus::Item::One(event))) =
        tokio::time::timeout(Duration::from_millis(100), events.next()).await
    {
        tags.push(event.tag.clone());
    }
    assert!(tags.contains(&"salt/key".to_owned()), "{tags:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drop_file_rotates_the_key() {
    let master = TestMaster::new(Dict::new()).await;
    let minion = master.signed_in("web1", 0).await;
    let dfn = master.path().join("cache/.dfn");
    halite_crypt::file::write(&dfn, b"test_master", 0o400, None).unwrap();
    until("it was used up", || !dfn.exists()).await;
    let mut again = master.minion("web1", key(0));
    until("the key changed", || true).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    again.sign_in().await.unwrap();
    assert!(again.shared != minion.shared);
    assert!(again.session == minion.session, "its own key stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_shared_key_is_handed_out_to_who_is_connected() {
    let master = TestMaster::new(entries! { "auto_accept" => true }).await;
    let mut stays = master.halite_minion("stays", key(0));
    let welcome = stays.sign_in().await.unwrap();
    let first = welcome.halite.and_then(|own| own.get("first")).unwrap().as_int().unwrap();
    let mut goes = master.halite_minion("goes", key(1));
    goes.sign_in().await.unwrap();
    for minion in [&stays, &goes] {
        minion.subscribe();
        minion.prove().await;
    }
    let hub = &master.master().hub;
    until("both are there", || hub.is_connected("stays") && hub.is_connected("goes")).await;
    // A key is deleted, and the shared one changed for it, as `salt-key -d` does.
    std::fs::remove_file(master.path().join("pki/minions/goes")).unwrap();
    until("it is gone", || !hub.is_connected("goes")).await;
    let dfn = master.path().join("cache/.dfn");
    halite_crypt::file::write(&dfn, b"test_master", 0o400, None).unwrap();
    let sealed = loop {
        let event = tokio::time::timeout(common::PATIENCE, stays.link.next()).await.unwrap();
        if let Some(halite_transport::Event::Notice(body)) = event
            && let Ok(Notice::Key(sealed)) = Notice::decode(&body)
        {
            break sealed;
        }
    };
    let session = halite_crypt::Crypticle::new(stays.session.as_ref().unwrap());
    let load = common::unpack(&session.open(&sealed, None).expect("under its own key"));
    assert!(load.get("first").unwrap().as_int().unwrap() > first, "it grows from key to key");
    let fresh = halite_crypt::SessionKey::parse(load.get_str("aes").unwrap().as_bytes()).unwrap();
    assert!(stays.shared.as_ref() != Some(&fresh));
    stays.shared = Some(fresh);
    // Publications are read with it, and nobody signed in for that.
    let (jid, _) = publish_now(&master).await;
    assert_eq!(stays.next_job().await.get("jid").unwrap().to_str(), *jid);
}

#[tokio::test(flavor = "multi_thread")]
async fn scheduled_returns_get_a_job() {
    let master = TestMaster::new(Dict::new()).await;
    let minion = master.signed_in("web1", 0).await;
    let events = master.master().bus.subscribe("salt/job/", 10);
    assert_eq!(minion.give_back("req", 5).await, Ok(Value::Null));
    let Some(halite_master::bus::Item::One(event)) = events.next().await else { panic!() };
    let jid = event.data.get("jid").unwrap().to_str();
    assert!(Jid::new(&jid).is_ok() && event.tag.ends_with("/ret/web1"));
    let stored = master.master().store.job(&jid).unwrap().expect("a job of its own");
    assert_eq!(stored.load.get("fun"), Some("test.ping".into()));
    // What cannot be a job's number is a job nobody knows.
    let odd =
        with_client(&master, |client| client.call(&Request::Job { jid: "../x".into() }).unwrap())
            .await;
    assert_eq!(odd, Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_in_one_message_are_each_judged_by_themselves() {
    let master = TestMaster::new(Dict::new()).await;
    let minion = master.signed_in("web1", 0).await;
    let ret = |jid: &str, id: &str, value: &str| {
        dict! {
            "cmd" => "_return", "jid" => jid, "id" => id, "fun" => "test.echo", "return" => value,
            "retcode" => 0, "success" => true, "fun_args" => list![value],
        }
    };
    let jids = std::iter::successors(Some(Jid::now()), |last| Some(Jid::after(Some(last))));
    let jids: Vec<String> = jids.take(3).map(|jid| jid.to_string()).collect();
    let all = list![
        ret(&jids[0], "web1", "first"),
        ret(&jids[1], "web2", "in another's name"),
        ret("../../x", "web1", "no job"),
        "no return at all",
        ret(&jids[2], "web1", "last"),
        ret(&jids[2], "web1", "twice"),
    ];
    let many = entries! { "cmd" => RETURNS, "returns" => all };
    assert_eq!(minion.ask(&many).await, Ok(Value::Null));
    let wanted = jids.clone();
    let found = with_client(&master, move |client| {
        let lookup = |jid: &String| client.call(&Request::Job { jid: jid.into() }).unwrap();
        wanted.iter().map(lookup).collect::<Vec<_>>()
    })
    .await;
    let kept = |number: usize, id: &str| {
        found[number].get("returns").and_then(|r| r.get(id)).and_then(|r| r.get("return"))
    };
    assert_eq!(kept(0, "web1"), Some("first".into()));
    assert_eq!((kept(1, "web1"), kept(1, "web2")), (None, None));
    assert_eq!(kept(2, "web1"), Some("last".into()));
    // More than any minion has: nothing is taken, and not acknowledged as taken.
    let more: Vec<Value> = (0..1001).map(|_| ret(&jids[1], "web1", "x")).collect();
    let many = entries! { "cmd" => RETURNS, "returns" => more };
    assert_eq!(minion.ask(&many).await, Ok("".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_waits_for_who_is_away() {
    let mut master = TestMaster::new(entries! { "auto_accept" => true }).await;
    let mut minion = master.halite_minion("web1", key(0));
    minion.sign_in().await.unwrap();
    minion.subscribe();
    minion.prove().await;
    until("it is connected", || master.master().hub.is_connected("web1")).await;
    minion.link.close();
    until("it is gone", || !master.master().hub.is_connected("web1")).await;
    let give = |ttl: i64| {
        move |client: &mut Client| {
            let mut job = Job::new("*", "glob", "test.ping");
            job.kwargs.insert("ttl", ttl);
            job.follow = false;
            client.publish(&job).unwrap().0
        }
    };
    let first = with_client(&master, give(100)).await;
    let in_vain = with_client(&master, give(1)).await;
    let second = with_client(&master, give(100)).await;
    assert_eq!(first.absent, ["web1"]);
    // The queue is on disk.
    master.stop().await;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    master.start().await;
    let mut back = master.halite_minion("web1", key(0));
    back.sign_in().await.unwrap();
    back.subscribe();
    back.prove().await;
    let got = [back.next_job().await, back.next_job().await];
    let jids: Vec<_> = got.iter().map(|job| job.get("jid").unwrap().to_str()).collect();
    assert_eq!(
        jids,
        [first.jid.as_str(), second.jid.as_str()],
        "in order, and not the expired one"
    );
    for jid in &jids {
        back.give_back(jid, true).await.unwrap();
    }
    let look = in_vain.jid.clone();
    with_client(&master, move |client| {
        let state = |client: &mut Client, jid: &str| {
            let job = client.call(&Request::Job { jid: jid.into() }).unwrap();
            job.get("states").unwrap().get_str("web1").unwrap().to_string()
        };
        assert_eq!(state(client, &first.jid), "returned");
        assert_eq!(state(client, &look), "lost");
    })
    .await;
    back.link.close();
    until("it is gone", || !master.master().hub.is_connected("web1")).await;
    let mut again = master.halite_minion("web1", key(0));
    again.sign_in().await.unwrap();
    again.subscribe();
    again.prove().await;
    until("it is back", || master.master().hub.is_connected("web1")).await;
    let more = tokio::time::timeout(Duration::from_millis(300), again.next_job()).await;
    assert!(more.is_err(), "each job once");
}
