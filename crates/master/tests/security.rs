//! What a stranger or a hostile minion can try. The rows of the CVE table that concern a master.

mod common;

use std::{fs, sync::Arc};

use bytes::Bytes;
use common::{Minion, TestMaster, key, pack};
use halite_client::{Client, Error as ClientError, Job, Request};
use halite_crypt::{Crypticle, Nonce, SessionKey};
use halite_value::{Dict, Value, dict, entries, list};
use halite_wire::{Envelope, MinionId, Sealed};

fn bad_load<T: Into<Value>>(text: T) -> Result<Value, Value> {
    Err(text.into())
}

/// Every request a minion can make, in the name of whomever.
fn every_request() -> Vec<Dict> {
    vec![
        entries! { "cmd" => "_pillar", "grains" => dict! { "x" => 1 }, "saltenv" => "base", "ver" => "2" },
        entries! { "cmd" => "_master_opts" },
        entries! { "cmd" => "_master_tops", "opts" => Value::dict() },
        entries! { "cmd" => "_file_envs" },
        entries! { "cmd" => "_file_list", "saltenv" => "base" },
        entries! { "cmd" => "_dir_list", "saltenv" => "base" },
        entries! { "cmd" => "_file_find", "saltenv" => "base", "path" => "x" },
        entries! { "cmd" => "_file_hash", "saltenv" => "base", "path" => "x" },
        entries! { "cmd" => "_serve_file", "saltenv" => "base", "path" => "x", "loc" => 0 },
        entries! { "cmd" => "_file_recv", "path" => list!["x"], "loc" => 0, "size" => 1, "data" => "x" },
        entries! { "cmd" => "_mine", "data" => dict! { "f" => 1 } },
        entries! { "cmd" => "_mine_get", "tgt" => "*", "fun" => "f" },
        entries! { "cmd" => "_mine_delete", "fun" => "f" },
        entries! { "cmd" => "_mine_flush" },
        entries! { "cmd" => "_minion_event", "tag" => "x", "data" => "y" },
        entries! { "cmd" => "_return", "jid" => "req", "return" => true, "fun" => "test.ping" },
        entries! { "cmd" => "_syndic_return", "load" => list![] },
        entries! { "cmd" => "minion_runner", "fun" => "test.arg", "arg" => list![] },
        entries! { "cmd" => "minion_pub", "fun" => "test.ping", "arg" => list![], "tgt" => "*" },
        entries! { "cmd" => "minion_publish", "fun" => "test.ping", "arg" => list![], "tgt" => "*" },
        entries! { "cmd" => "pub_ret", "jid" => "20261115224046354303" },
        entries! { "cmd" => "revoke_auth" },
        entries! { "cmd" => "_register_resources", "resources" => Value::dict() },
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_acts_as_another() {
    let master = TestMaster::new(entries! { "file_recv" => true }).await;
    let mallory = master.signed_in("mallory", 0).await;
    let victim = master.signed_in("victim", 1).await;
    assert_eq!(
        victim.ask(&entries! { "cmd" => "_mine", "data" => dict! { "f" => 1 } }).await,
        Ok(true.into())
    );
    let events = master.master().bus.subscribe("", 10_000);
    for load in every_request() {
        let command = load.get("cmd").unwrap();
        // The other's id inside one's own session.
        let inside = load.shallow_copy();
        inside.insert("id", "victim");
        assert_eq!(mallory.ask(&inside).await, bad_load("bad load"), "{command}");
        // The other's id on the envelope, sealed with one's own key.
        let nonce = Nonce::generate();
        let dressed = mallory.dressed(&inside, nonce.as_str());
        let forged = Envelope::Sealed(Sealed {
            load: Crypticle::new(mallory.session.as_ref().unwrap())
                .seal(&pack(&dressed.into()), None),
            version: 3,
            id: Some(MinionId::new("victim").unwrap()),
            enc_algo: None,
            sig_algo: None,
        });
        let reply = master.raw(forged.encode().unwrap().into()).await;
        assert_eq!(reply, Value::from("bad load"), "{command}");
        // One's own id with a wrong token, and with none.
        let wrong = load.shallow_copy();
        wrong.insert("tok", Value::bytes(victim.key.token().unwrap()));
        assert_eq!(mallory.ask(&wrong).await, bad_load("bad load"), "{command}");
        let nonce = Nonce::generate();
        let dressed = mallory.dressed(&load, nonce.as_str());
        dressed.remove("tok");
        let reply = mallory.ask_raw(mallory.sealed(&dressed), &nonce).await;
        assert_eq!(reply, bad_load("bad load"), "{command}");
    }
    assert!(
        tokio::time::timeout(std::time::Duration::from_millis(100), events.next()).await.is_err(),
        "nothing happened at all"
    );
    let get =
        entries! { "cmd" => "_mine_get", "tgt" => "victim", "fun" => "f", "tgt_type" => "list" };
    assert_eq!(victim.ask(&get).await, Ok(dict! { "victim" => 1 }));
    assert!(master.path().join("pki/minions/victim").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_taken_twice() {
    let master = TestMaster::new(entries! { "file_recv" => true }).await;
    let minion = master.signed_in("web1", 0).await;
    for load in every_request() {
        if load.get("cmd") == Some("revoke_auth".into()) {
            continue;
        }
        let nonce = Nonce::generate();
        let body = minion.sealed(&minion.dressed(&load, nonce.as_str()));
        let _ = minion.ask_raw(body.clone(), &nonce).await;
        for _ in 0..2 {
            let again = minion.ask_raw(body.clone(), &nonce).await;
            assert_eq!(again, bad_load("bad load"), "{:?}", load.get("cmd"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn old_requests_expire() {
    let master = TestMaster::new(entries! { "request_server_ttl" => 30 }).await;
    let minion = master.signed_in("web1", 0).await;
    let at = async |shift: Option<i64>| {
        let nonce = Nonce::generate();
        let load = minion.dressed(&entries! { "cmd" => "_file_envs" }, nonce.as_str());
        match shift {
            Some(shift) => {
                let ts = load.get("ts").unwrap().as_int().unwrap();
                load.insert("ts", ts + shift);
            }
            None => {
                load.remove("ts");
            }
        }
        minion.ask_raw(minion.sealed(&load), &nonce).await.is_ok()
    };
    assert!(at(Some(0)).await && at(Some(-20)).await && at(Some(20)).await);
    assert!(!at(Some(-40)).await && !at(None).await);
}

/// What genuine masters have as methods: none of it can be called by name.
const INTERNAL: &[&str] = &[
    "_prep_auth_info",
    "_send_pub",
    "_send_ssh_pub",
    "_prep_pub",
    "_prep_jid",
    "run_func",
    "get_method",
    "__init__",
    "__setup_fileserver",
    "_handle_clear",
    "_handle_aes",
    "_init",
    "verify_minion",
    "_find_file",
    "_ext_nodes",
    "_handle_minion_event",
    "rm_token",
    "destroy",
    "expose_methods",
    "_AESFuncs__verify_load",
    "key",
    "opts",
    "get_token\0",
    "publish ",
    "_auth2",
];

#[tokio::test(flavor = "multi_thread")]
async fn internal_methods_have_no_name() {
    let master = TestMaster::new(Dict::new()).await;
    let minion = master.signed_in("web1", 0).await;
    for name in INTERNAL {
        let load = entries! { "cmd" => *name, "id" => "web1" };
        assert_eq!(master.clear(load.shallow_copy()).await, Value::dict(), "{name}");
        assert_eq!(minion.ask(&load).await, Ok(Value::dict()), "{name}");
    }
    // What minions may ask is nothing for strangers.
    for load in every_request() {
        assert_eq!(master.clear(load.shallow_copy()).await, Value::dict(), "{:?}", load.get("cmd"));
    }
    // And what clients may ask is nothing for minions.
    for name in ["publish", "runner", "wheel", "mk_token", "get_token", "ping"] {
        let load = entries! { "cmd" => name, "fun" => "test.ping", "tgt" => "*", "arg" => list![] };
        assert_eq!(minion.ask(&load).await, Ok(Value::dict()), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_need_credentials() {
    let master = TestMaster::new(entries! {
        "external_auth" => dict! { "sharedsecret" => dict! { "ann" => list!["test.ping"] } },
        "sharedsecret" => "s3cret",
    })
    .await;
    let _minion = master.signed_in("web1", 0).await;
    let key = fs::read_to_string(master.path().join("cache/.root_key")).unwrap();
    let job = |extra: Dict| {
        let load = entries! {
            "cmd" => "publish", "fun" => "test.ping", "tgt" => "*", "arg" => list![],
            "tgt_type" => "glob", "ret" => "", "jid" => "", "user" => "root",
        };
        load.update(&extra);
        load
    };
    let name = |reply: &Value| {
        reply.get("error").and_then(|error| error.get("name")).unwrap_or_default().to_str()
    };
    let eauth = |user: &str, password: &str| {
        entries! { "kwargs" => dict! {
            "eauth" => "sharedsecret", "username" => user, "password" => password,
        } }
    };
    for wrong in [
        Dict::new(),
        entries! { "key" => "" },
        entries! { "key" => Value::Null },
        entries! { "key" => &key[..75] },
        entries! { "key" => list![key.as_str()] },
        entries! { "kwargs" => dict! { "token" => "" } },
        entries! { "kwargs" => dict! { "token" => "x".repeat(64) }, "key" => "wrong" },
        eauth("ann", ""),
        eauth("ann", "wrong"),
        eauth("", "s3cret"),
        entries! { "kwargs" => dict! { "eauth" => "pam", "username" => "root", "password" => "" } },
        entries! { "kwargs" => dict! { "eauth" => "auto", "username" => "root", "password" => "" } },
    ] {
        let reply = master.clear(job(wrong.shallow_copy())).await;
        assert_eq!(name(&reply), "AuthenticationError", "{:?}", Value::from(wrong));
    }
    for command in ["runner", "wheel"] {
        let load = entries! { "cmd" => command, "fun" => "key.list_all" };
        assert!(name(&master.clear(load.shallow_copy()).await).ends_with("AuthenticationError"));
        load.update(
            &entries! { "eauth" => "sharedsecret", "username" => "ann", "password" => "s3cret" },
        );
        assert_eq!(name(&master.clear(load).await), "EauthAuthenticationError");
    }
    let ok = master.clear(job(entries! { "key" => key.as_str() })).await;
    assert_eq!(ok.get("load").and_then(|load| load.get("minions")), Some(list!["web1"]));
    let ann = master.clear(job(eauth("ann", "s3cret"))).await;
    assert!(ann.get("load").is_some_and(|load| load.get("jid").is_some_and(|jid| jid.truthy())));
    let more = job(eauth("ann", "s3cret"));
    more.insert("fun", "cmd.run");
    assert_eq!(name(&master.clear(more).await), "AuthorizationError");
    let token = master.clear(entries! {
        "cmd" => "mk_token", "eauth" => "sharedsecret", "username" => "ann", "password" => "s3cret",
    });
    let token = token.await.get("token").unwrap();
    let by_token = job(entries! { "kwargs" => dict! { "token" => token } });
    assert!(master.clear(by_token.shallow_copy()).await.get("load").is_some());
    by_token.insert("fun", "cmd.run");
    assert_eq!(name(&master.clear(by_token).await), "AuthorizationError");
    let refused = entries! { "cmd" => "mk_token", "eauth" => "sharedsecret", "username" => "ann", "password" => "x" };
    assert_eq!(master.clear(refused).await, Value::from(""));
    assert_eq!(master.clear(entries! { "cmd" => "get_token" }).await, Value::Bool(false));
    assert_eq!(
        master.clear(entries! { "cmd" => "get_token", "token" => "../../../etc/passwd" }).await,
        Value::dict()
    );
}

fn hostile_paths() -> Vec<&'static str> {
    vec![
        "../secret",
        "/etc/passwd",
        "a/../../secret",
        "..",
        ".",
        "//etc/passwd",
        "../srv/../secret",
        "a\0b",
        "./../secret",
        "%2e%2e/secret",
        "..\\secret",
        "~/secret",
        "salt://../secret",
        "|../secret",
        "secret?saltenv=../..",
        "?saltenv=..&x",
        "file:///etc/passwd",
        "/proc/self/environ",
        "....//....//secret",
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_stay_in_their_folder() {
    let master = TestMaster::new(entries! { "file_recv" => true }).await;
    fs::create_dir_all(master.path().join("srv")).unwrap();
    fs::write(master.path().join("srv/good"), "good").unwrap();
    fs::write(master.path().join("secret"), "SECRET").unwrap();
    let minion = master.signed_in("web1", 0).await;
    let good =
        entries! { "cmd" => "_serve_file", "path" => "good", "saltenv" => "base", "loc" => 0 };
    assert_eq!(minion.ask(&good).await.unwrap().get("data"), Some("good".into()));
    let mut environments = hostile_paths();
    environments.push("base");
    for path in hostile_paths() {
        for saltenv in &environments {
            for command in ["_serve_file", "_file_find", "_file_hash", "_file_hash_and_stat"] {
                let load = entries! {
                    "cmd" => command, "path" => path, "saltenv" => *saltenv, "loc" => 0,
                };
                let reply = minion.ask(&load).await.unwrap();
                let text = reply.to_str();
                assert!(
                    !text.contains("SECRET") && !text.contains("root:"),
                    "{command} {path}: {text}"
                );
                assert!(
                    !text.contains("/secret") && !text.contains("passwd"),
                    "{command} {path}: {text}"
                );
            }
        }
        for parts in [list![path], list!["..", "..", "..", "x"], list!["a", path, "b"]] {
            let load = entries! {
                "cmd" => "_file_recv", "path" => parts, "loc" => 0, "size" => 4, "data" => "EVIL",
            };
            let reply = minion.ask(&load).await;
            assert!(matches!(reply, Ok(Value::Bool(_) | Value::Str(_))), "{reply:?}");
        }
    }
    for hostile in
        ["../../x", "20261115224046354303/../..", "/etc", "req/../x", "", "99999999999999999999"]
    {
        let reply = minion.give_back(hostile, true).await;
        assert!(matches!(reply, Ok(Value::Str(_) | Value::Bool(false))), "{hostile}: {reply:?}");
        let _ = minion.ask(&entries! { "cmd" => "pub_ret", "jid" => hostile }).await;
    }
    // Nothing was written anywhere but where it belongs.
    for entry in walk(master.path()) {
        let content = fs::read(&entry).unwrap_or_default();
        if content == b"EVIL" {
            assert!(
                entry.starts_with(master.path().join("cache/minions/web1/files")),
                "{}",
                entry.display()
            );
        }
    }
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(walk(&entry.path()));
        } else if entry.file_type().is_ok_and(|kind| kind.is_file()) {
            found.push(entry.path());
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn rubbish_hurts_nobody() {
    let master = TestMaster::new(Dict::new()).await;
    let minion = master.signed_in("web1", 0).await;
    let good = minion
        .sealed(&minion.dressed(&entries! { "cmd" => "_file_envs" }, Nonce::generate().as_str()));
    let mut bodies: Vec<Bytes> = vec![
        Bytes::new(),
        Bytes::from_static(b"\xc1"),
        Bytes::from_static(b"\xdf\xff\xff\xff\xff"),
        Bytes::from_static(&[0x81; 3000]),
        Bytes::from_static(&[0x91; 3000]),
        pack(&Value::Null),
        pack(&dict! { "enc" => "aes", "load" => Value::Null }),
        pack(&dict! { "enc" => "aes", "load" => "x", "version" => 3 }),
        pack(&dict! { "enc" => "aes", "load" => "x", "version" => 3, "id" => "nobody" }),
        pack(&dict! { "enc" => "aes", "load" => "x", "version" => 3, "id" => "../x" }),
        pack(
            &dict! { "enc" => "aes", "load" => Value::bytes(vec![7; 80]), "version" => 3, "id" => "web1" },
        ),
        pack(&dict! { "enc" => "pub", "load" => Value::dict(), "version" => 3 }),
        pack(&dict! { "enc" => "clear", "load" => list![], "version" => 3 }),
        pack(&dict! { "enc" => "clear", "load" => dict! { "cmd" => list![] }, "version" => 3 }),
        pack(&dict! { "enc" => "clear", "load" => dict! { "cmd" => "_auth" }, "version" => 3 }),
        pack(&dict! { "enc" => "clear", "load" => dict! { "cmd" => "publish" }, "version" => "x" }),
    ];
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    for _ in 0..400 {
        let mut bytes = good.to_vec();
        for _ in 0..4 {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            let at = seed as usize % bytes.len();
            bytes[at] = (seed >> 32) as u8;
            if seed.is_multiple_of(5) {
                bytes.truncate(at.max(1));
            }
        }
        bodies.push(bytes.into());
    }
    let link = master.minion("x", key(1)).link;
    for body in bodies {
        let reply = link.request(body.clone(), common::PATIENCE).await;
        let reply = common::unpack(&reply.unwrap_or_else(|error| panic!("{error}: {body:02x?}")));
        assert!(matches!(reply, Value::Str(_) | Value::Dict(_)), "{reply:?}");
    }
    assert_eq!(minion.ask(&entries! { "cmd" => "_file_envs" }).await, Ok(list!["base"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn minions_speak_only_for_themselves_on_the_bus() {
    let master = TestMaster::new(Dict::new()).await;
    let minion = master.signed_in("web1", 0).await;
    let events = master.master().bus.subscribe("", 1000);
    let single = async |tag: &str| {
        minion
            .ask(&entries! { "cmd" => "_minion_event", "tag" => tag, "data" => dict! { "x" => 1 } })
            .await
            .unwrap();
    };
    let several = async |tag: &str, pretag: Value| {
        let each = list![dict! { "tag" => tag, "data" => dict! { "x" => 1 } }];
        minion
            .ask(&entries! { "cmd" => "_minion_event", "events" => each, "pretag" => pretag })
            .await
            .unwrap();
    };
    for refused in [
        "salt/job/20261115224046354303/new",
        "salt/job/20261115224046354303/publish",
        "salt/key",
        "salt/auth",
        "salt/run/1/ret",
        "salt/wheel/1/new",
        "salt/cloud/x/created",
        "key",
        "salt/minion/web2/start",
        "salt/job/20261115224046354303/ret/web2",
        "salt/presence/change",
        "salt/beacon/web2/load/",
    ] {
        single(refused).await;
        several(refused, Value::Null).await;
        several("x", refused.into()).await;
    }
    single("own/tag").await;
    let mut seen = Vec::new();
    while let Ok(Some(halite_master::bus::Item::One(event))) =
        tokio::time::timeout(std::time::Duration::from_millis(200), events.next()).await
    {
        seen.push(event.tag.clone());
    }
    assert_eq!(seen, ["own/tag"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_key_ends_everything() {
    let master = TestMaster::new(Dict::new()).await;
    let minion = master.signed_in("web1", 0).await;
    let other = master.signed_in("web2", 1).await;
    let envs = entries! { "cmd" => "_file_envs" };
    assert!(minion.ask(&envs).await.is_ok());
    fs::remove_file(master.path().join("pki/minions/web1")).unwrap();
    assert_eq!(minion.ask(&envs).await, bad_load("bad load"), "at once, whoever removed it");
    assert!(other.ask(&envs).await.is_ok());
    common::until("the session is gone", || !master.path().join("cache/sessions/web1").exists())
        .await;
    let mut minion: Minion = minion;
    assert!(minion.sign_in().await.is_err());
    minion.session = Some(SessionKey::generate());
    assert_eq!(minion.ask(&envs).await, bad_load("bad load"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mine_is_read_by_whom_it_is_for() {
    let master = TestMaster::new(entries! {
        "mine_get" => dict! { "web.*" => list!["pub.*", "for_web1"] },
    })
    .await;
    let one = master.signed_in("web1", 0).await;
    let two = master.signed_in("web2", 1).await;
    let acl = dict! {
        "__data__" => "hush", "__saltmine_acl__" => 1, "allow_tgt" => "web1", "allow_tgt_type" => "glob",
    };
    let data = dict! { "public" => 1, "private" => 2, "for_web1" => acl };
    assert_eq!(two.ask(&entries! { "cmd" => "_mine", "data" => data }).await, Ok(true.into()));
    let get = async |minion: &Minion, fun: Value| {
        minion.ask(&entries! { "cmd" => "_mine_get", "tgt" => "web2", "tgt_type" => "glob", "fun" => fun }).await.unwrap()
    };
    assert_eq!(get(&one, "public".into()).await, dict! { "web2" => 1 });
    assert_eq!(get(&one, "private".into()).await, Value::dict());
    assert_eq!(get(&one, "for_web1".into()).await, dict! { "web2" => "hush" });
    assert_eq!(get(&two, "for_web1".into()).await, Value::dict());
    assert_eq!(
        get(&one, "public,for_web1,private".into()).await,
        dict! { "public" => dict! { "web2" => 1 }, "for_web1" => dict! { "web2" => "hush" } }
    );
}

/// Everything our own programs can ask.
fn every_control_request() -> Vec<Request> {
    let any = || ("*".into(), "glob".into());
    let call = |fun: &str| (fun.into(), Vec::new(), Dict::new());
    let ((tgt, tgt_type), (fun, arg, kwarg)) = (any(), call("jobs.active"));
    let mut all = vec![
        Request::Publish(Box::new(Job::new("*", "glob", "cmd.run"))),
        Request::Follow { jid: "20261115224046354303".into() },
        Request::Events { tag: "".into(), after: None },
        Request::Fire { tag: "salt/key".into(), data: Dict::new() },
        Request::Jobs { limit: None, filter: Dict::new() },
        Request::Job { jid: "20261115224046354303".into() },
        Request::ActiveJobs,
        Request::Minions,
        Request::MinionData { tgt, tgt_type },
        Request::EndToken { token: "x".into() },
        Request::Statistics,
        Request::Runner { fun, arg, kwarg, asynchronous: false },
    ];
    let ((tgt, tgt_type), (fun, arg, kwarg)) = (any(), call("key.accept"));
    all.push(Request::Wheel { fun, arg, kwarg });
    all.push(Request::Mine { tgt, tgt_type, functions: Vec::new() });
    let (tgt, tgt_type) = any();
    let (what, function) = ("mine".into(), "".into());
    all.push(Request::Forget { tgt, tgt_type, what, function });
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn local_programs_have_the_rights_they_bring() {
    let master = TestMaster::new(entries! {
        "external_auth" => dict! { "sharedsecret" => dict! { "ann" => list!["test.ping"] } },
        "sharedsecret" => "s3cret",
    })
    .await;
    let _minion = master.signed_in("web1", 0).await;
    let dir = master.sock_dir();
    let worked = tokio::task::spawn_blocking(move || {
        let user = |eauth: &str, name: &str, password: &str| {
            entries! { "eauth" => eauth, "username" => name, "password" => password }
        };
        let ann = || user("sharedsecret", "ann", "s3cret");
        let nobody = [
            Dict::new(),
            entries! { "token" => "" },
            entries! { "token" => "a".repeat(64) },
            entries! { "key" => "", "user" => "root" },
            user("sharedsecret", "ann", ""),
            user("sharedsecret", "ann", "wrong"),
            user("sharedsecret", "", "s3cret"),
            user("auto", "ann", "x"),
            user("nosuch", "ann", "s3cret"),
            entries! { "eauth" => "sharedsecret", "username" => "ann" },
        ];
        // The socket itself would give root's rights; what was brought counts.
        for (number, credentials) in nobody.into_iter().enumerate() {
            for request in every_control_request() {
                let mut client = Client::connect(&dir).unwrap();
                client.sign_in(credentials.shallow_copy());
                let refused = client.call(&request);
                assert!(
                    matches!(refused, Err(ClientError::Refused { .. })),
                    "credentials {number}: {request:?}"
                );
            }
            let mut client = Client::connect(&dir).unwrap();
            assert!(client.call(&Request::MakeToken { load: credentials }).is_err());
        }
        // Who may ping may do nothing else.
        for request in every_control_request() {
            let mut client = Client::connect(&dir).unwrap();
            client.sign_in(ann());
            assert!(
                matches!(client.call(&request), Err(ClientError::Refused { .. })),
                "{request:?}"
            );
        }
        let mut client = Client::connect(&dir).unwrap();
        let made = client.call(&Request::MakeToken { load: ann() }).unwrap();
        let token = made.get("token").unwrap();
        client.sign_in(entries! { "token" => token.clone() });
        let mut ping = Job::new("*", "glob", "test.ping");
        ping.follow = false;
        let (published, _) = client.publish(&ping).unwrap();
        assert_eq!(published.minions, ["web1"]);
        // And nobody wraps one request into another to get rid of the check.
        let inner =
            Box::new(Request::As { credentials: ann(), request: Box::new(Request::Statistics) });
        let mut client = Client::connect(&dir).unwrap();
        assert!(client.call(&Request::As { credentials: ann(), request: inner }).is_err());
        token.to_str()
    })
    .await
    .unwrap();
    master.master().revoke_token(&worked);
    let dir = master.sock_dir();
    tokio::task::spawn_blocking(move || {
        let mut client = Client::connect(&dir).unwrap();
        client.sign_in(entries! { "token" => worked });
        assert!(client.publish(&Job::new("*", "glob", "test.ping")).is_err(), "it was ended");
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_takes_nobodys_place() {
    let master = TestMaster::new(Dict::new()).await;
    master.accept("victim", &key(0));
    // Mallory sends the victim's public key, which is no secret, over a connection of her own.
    let mut mallory = master.halite_minion("victim", key(1));
    let load = mallory.auth_load("00112233445566778899aabbccddeeff");
    load.insert("pub", key(0).public().text());
    let body = Envelope::Clear { load, version: 3 }.encode().unwrap();
    let reply = mallory.link.request(body.into(), common::PATIENCE).await.unwrap();
    assert!(!reply.is_empty(), "answered like anybody");
    mallory.publish_port = i64::from(master.running.as_ref().unwrap().publish_addr().port());
    mallory.subscribe();
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    assert!(!master.master().hub.is_connected("victim"), "she cannot read the answer");
    // Nor does the victim's own request help her, sent again.
    let mut victim = master.halite_minion("victim", key(0));
    victim.sign_in().await.unwrap();
    let nonce = Nonce::generate();
    let body = victim.sealed(&victim.dressed(&entries! { "cmd" => "_file_envs" }, nonce.as_str()));
    assert!(victim.ask_raw(body.clone(), &nonce).await.is_ok());
    victim.link.close();
    common::until("it is gone", || master.master().hub.peers_of("victim").is_empty()).await;
    let replayed = mallory.link.request(body, common::PATIENCE).await.unwrap();
    assert_eq!(common::unpack(&replayed), Value::from("bad load"));
    assert!(!master.master().hub.is_connected("victim"));
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_are_signed_where_that_is_asked() {
    let master = TestMaster::new(entries! {
        "require_minion_sign_messages" => true, "drop_messages_signature_fail" => true,
    })
    .await;
    let minion = master.signed_in("web1", 0).await;
    let signed = |signer: usize, with_ts: bool| {
        let nonce = Nonce::generate();
        let load = minion.dressed(
            &entries! { "cmd" => "_return", "jid" => "req", "fun" => "test.ping", "return" => true },
            nonce.as_str(),
        );
        let token = load.remove("tok").unwrap();
        load.remove("nonce");
        let ts = load.get("ts").unwrap();
        if !with_ts {
            load.remove("ts");
        }
        let packed = halite_value::msgpack::to_vec(
            &load.shallow_copy().into(),
            halite_value::msgpack::Dialect::Modern,
        );
        let sig = key(signer).sign(halite_crypt::SigAlgo::Pkcs1v15Sha1, &packed.unwrap()).unwrap();
        load.insert("ts", ts);
        load.insert("sig", Value::bytes(sig));
        load.insert("nonce", nonce.as_str());
        load.insert("tok", token);
        (minion.sealed(&load), nonce)
    };
    for (signer, with_ts, good) in [(0, true, true), (0, false, true), (1, true, false)] {
        let (body, nonce) = signed(signer, with_ts);
        assert_eq!(minion.ask_raw(body, &nonce).await.is_ok(), good, "{signer} {with_ts}");
    }
    assert_eq!(minion.give_back("req", true).await, bad_load("bad load"), "not signed at all");
    assert!(minion.ask(&entries! { "cmd" => "_file_envs" }).await.is_ok(), "only returns are");
}

/// Returns what a subscription has, and what comes within a moment.
async fn heard(events: &halite_master::bus::Subscription) -> Vec<Arc<halite_master::bus::Fired>> {
    let mut all = Vec::new();
    let moment = std::time::Duration::from_millis(200);
    while let Ok(Some(next)) = tokio::time::timeout(moment, events.next()).await {
        if let halite_master::bus::Item::One(event) = next {
            all.push(event);
        }
    }
    all
}

/// CVE-2024-22231: what a syndic names becomes no path; and without `order_masters` nobody is a syndic.
#[tokio::test(flavor = "multi_thread")]
async fn a_syndic_names_minions_not_paths() {
    // Of now: what is older than `keep_jobs` is gone as soon as it is stored.
    let jid = halite_wire::Jid::now();
    let hostile = ["../../evil", "/tmp/evil", "a/b", "..", "", "a\0b"];
    let returns = Dict::new();
    for id in hostile.iter().chain(&["below1"]) {
        returns.insert(*id, dict! { "return" => true, "retcode" => 0, "success" => true });
    }
    let minions = Value::list(hostile.iter().chain(&["below1"]).copied());
    let job = dict! { "fun" => "test.ping", "tgt" => "*", "Minions" => minions.clone() };
    let said = entries! {
        "cmd" => "_syndic_return", "load" => Value::list([dict! {
            "id" => "low", "jid" => &jid, "fun" => "test.ping", "load" => job, "return" => returns,
        }]),
    };
    let told = entries! {
        "cmd" => "_minion_event", "pretag" => "syndic/low", "events" => Value::list([
            dict! { "tag" => format!("salt/job/{jid}/new"), "data" => dict! { "minions" => minions } },
            dict! { "tag" => "salt/key", "data" => dict! { "act" => "accept" } },
            dict! { "tag" => format!("halite/relay/{jid}"), "data" => dict! { "lost" => list!["x"] } },
        ]),
    };
    for order_masters in [false, true] {
        let master = TestMaster::new(entries! { "order_masters" => order_masters }).await;
        let syndic = master.signed_in("low", 0).await;
        let events = master.master().bus.subscribe("", 10_000);
        for load in [&told, &said] {
            syndic.ask(load).await.unwrap();
        }
        let kept = master.master().store.returns(&jid).unwrap();
        let ids: Vec<_> = kept.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids, if order_masters { vec!["below1"] } else { vec![] });
        let mark = master.path().join("cache/syndics/low");
        assert_eq!(mark.exists(), order_masters, "{}", mark.display());
        let tags: Vec<_> = heard(&events).await.iter().map(|event| event.tag.clone()).collect();
        assert!(!tags.iter().any(|tag| *tag == "salt/key"), "{tags:?}");
        assert!(!tags.iter().any(|tag| tag.contains("halite/relay") && order_masters), "{tags:?}");
        assert_eq!(tags.iter().any(|tag| tag.ends_with("/ret/below1")), order_masters, "{tags:?}");
        assert!(!tags.iter().any(|tag| tag.contains("evil")), "{tags:?}");
    }
}

/// CVE-2022-22941: through a syndic «nobody here» is not «everybody below».
#[tokio::test(flavor = "multi_thread")]
async fn who_is_limited_to_some_minions_does_not_reach_those_below() {
    let acl = dict! { "auto" => dict! {
        "ann" => list![dict! { "web*" => list!["test.ping"] }], "bob" => list!["test.ping"],
    } };
    let master =
        TestMaster::new(entries! { "order_masters" => true, "external_auth" => acl }).await;
    let _web = master.signed_in("web1", 0).await;
    let events = master.master().bus.subscribe("salt/job/", 1000);
    let ask = |name: &str, target: &str| {
        entries! {
            "cmd" => "publish", "fun" => "test.ping", "arg" => list![], "tgt" => target,
            "tgt_type" => "glob", "jid" => "", "ret" => "", "kwargs" => Value::dict(),
            "eauth" => "auto", "username" => name, "password" => "x",
        }
    };
    for target in ["below1", "*", "nosuch"] {
        let said = master.clear(ask("ann", target)).await;
        let expected = target == "*";
        assert_eq!(said.get("load").is_some(), expected, "{target}: {said}");
    }
    assert!(master.clear(ask("bob", "below1")).await.get("load").is_some());
    let heard = heard(&events).await;
    let lists: Vec<_> = heard.iter().filter_map(|event| event.data.get("auth_list")).collect();
    // What goes down says what they may do there.
    let expected = [list![dict! { "web*" => list!["test.ping"] }], list!["test.ping"]];
    assert_eq!(lists, expected);
}
