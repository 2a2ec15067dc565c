//! Sign-in: every state a key can be in, and what a refusal looks like.

mod common;

use std::{fs, os::unix::fs::PermissionsExt as _};

use common::{TestMaster, key};
use halite_crypt::Nonce;
use halite_value::{Dict, Value, dict, entries, list};
use halite_wire::Refusal;

#[tokio::test(flavor = "multi_thread")]
async fn a_key_waits_until_it_is_accepted() {
    let master = TestMaster::new(Dict::new()).await;
    let events = master.master().bus.subscribe("salt/auth", 100);
    let mut minion = master.minion("web1", key(0));
    assert_eq!(minion.sign_in().await.unwrap_err(), Refusal::Pending);
    assert!(master.path().join("pki/minions_pre/web1").exists());
    let mut other = master.minion("web1", key(1));
    assert_eq!(other.sign_in().await.unwrap_err(), Refusal::Denied, "another key");
    assert!(master.path().join("pki/minions_denied/web1").exists());
    fs::rename(master.path().join("pki/minions_pre/web1"), master.path().join("pki/minions/web1"))
        .unwrap();
    let welcome = minion.sign_in().await.unwrap();
    assert!(welcome.publish_port > 0);
    assert_eq!(other.sign_in().await.unwrap_err(), Refusal::Denied);
    let mut acts = Vec::new();
    for _ in 0..4 {
        let Some(halite_master::bus::Item::One(event)) = events.next().await else { panic!() };
        assert_eq!(event.data.get("id"), Some("web1".into()));
        acts.push(event.data.get("act").unwrap().to_str().to_string());
    }
    assert_eq!(acts, ["pend", "denied", "accept", "denied"]);
    fs::rename(
        master.path().join("pki/minions/web1"),
        master.path().join("pki/minions_rejected/web1"),
    )
    .unwrap();
    assert_eq!(minion.sign_in().await.unwrap_err(), Refusal::Denied);
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_let_in_and_turn_away() {
    let dir = tempfile::tempdir().unwrap();
    let (sign, reject) = (dir.path().join("sign"), dir.path().join("reject"));
    fs::write(&sign, "good*\n").unwrap();
    fs::write(&reject, "*bad\n").unwrap();
    let master = TestMaster::new(entries! {
        "autosign_file" => sign.to_str().unwrap(), "autoreject_file" => reject.to_str().unwrap(),
        "max_minions" => 0,
    })
    .await;
    assert!(master.minion("good1", key(0)).sign_in().await.is_ok());
    assert_eq!(master.minion("goodbad", key(0)).sign_in().await.unwrap_err(), Refusal::Denied);
    assert!(master.path().join("pki/minions_rejected/goodbad").exists());
    assert_eq!(master.minion("other", key(0)).sign_in().await.unwrap_err(), Refusal::Pending);
    let open = TestMaster::new(entries! { "open_mode" => true }).await;
    assert!(open.minion("x", key(0)).sign_in().await.is_ok());
    assert!(open.minion("x", key(1)).sign_in().await.is_ok(), "a changed key");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_master_keeps_who_is_in() {
    let master = TestMaster::new(entries! { "max_minions" => 1, "auto_accept" => true }).await;
    let mut first = master.halite_minion("one", key(0));
    first.sign_in().await.unwrap();
    first.prove().await;
    assert_eq!(master.minion("two", key(1)).sign_in().await.unwrap_err(), Refusal::Full);
    first.sign_in().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_sign_in_is_told_so() {
    let master = TestMaster::new(Dict::new()).await;
    let minion = master.minion("web1", key(0));
    let load = minion.auth_load(Nonce::generate().as_str());
    let with = |name: &str, value: Value| {
        let load = load.shallow_copy();
        load.insert(name, value);
        load
    };
    let ret = |ret: &str| dict! { "enc" => "clear", "load" => dict! { "ret" => ret } };
    assert_eq!(master.clear(with("sig_algo", "PSS-SHA1".into())).await, ret("bad sig algo"));
    let odd = "Some exception handling minion payload";
    assert_eq!(master.clear(with("enc_algo", "RSA".into())).await, Value::from(odd));
    let token = with("enc_algo", "RSA".into());
    token.insert("token", "x");
    assert_eq!(master.clear(token).await, ret("bad enc algo"));
    let unnamed = load.shallow_copy();
    unnamed.remove("pub");
    assert_eq!(master.clear(unnamed).await, Value::from(odd));
    assert_eq!(
        master.clear(with("id", "a\0b".into())).await,
        Value::from("bad load: id contains a null byte")
    );
    assert_eq!(
        master.clear(with("id", 7.into())).await,
        Value::from("bad load: id 7 is not a string")
    );
    let mut minion = minion;
    for hostile in ["../x", "a/b", "..", ""] {
        let nonce = Nonce::generate();
        let load = minion.auth_load(nonce.as_str());
        load.insert("id", hostile);
        let refused = minion.sign_in_with(load, 3, nonce.as_str()).await;
        assert_eq!(refused.unwrap_err(), Refusal::Denied, "{hostile}");
    }
    let nonce = Nonce::generate();
    let load = minion.auth_load(nonce.as_str());
    load.insert("pub", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----");
    assert_eq!(minion.sign_in_with(load, 3, nonce.as_str()).await.unwrap_err(), Refusal::Denied);
    assert!(!master.path().join("pki/minions_pre/web1").exists(), "no file for no key");
}

#[tokio::test(flavor = "multi_thread")]
async fn old_versions_need_leave() {
    let master = TestMaster::new(entries! { "auto_accept" => true }).await;
    let minion = master.minion("old", key(0));
    for version in [0, 1, 2] {
        let load = minion.auth_load(Nonce::generate().as_str());
        let envelope = halite_wire::Envelope::Clear { load, version }.encode().unwrap();
        assert_eq!(master.raw(envelope.into()).await, Value::from("bad load"), "{version}");
    }
    let master = TestMaster::new(entries! {
        "auto_accept" => true, "minimum_auth_version" => 2, "file_recv" => true,
    })
    .await;
    let mut minion = master.minion("old", key(0));
    let nonce = Nonce::generate();
    let load = minion.auth_load(nonce.as_str());
    minion.sign_in_with(load, 2, nonce.as_str()).await.unwrap();
    // Version 2 speaks under the shared key.
    let shared = halite_crypt::Crypticle::new(minion.shared.as_ref().unwrap());
    let ask = async |load: Dict| {
        let nonce = Nonce::generate();
        load.insert("nonce", nonce.as_str());
        let sealed = halite_wire::Sealed {
            load: shared.seal(&common::pack(&load.into()), None),
            version: 2,
            id: None,
            enc_algo: None,
            sig_algo: None,
        };
        let body = halite_wire::Envelope::Sealed(sealed).encode().unwrap();
        let reply = minion.link.request(body.into(), common::PATIENCE).await.unwrap();
        let reply =
            halite_value::msgpack::from_slice(&reply, halite_value::msgpack::Text::KeepBytes)
                .unwrap();
        let clear = shared.open(reply.as_bytes().unwrap(), Some(&nonce)).ok()?;
        Some(common::unpack(&clear))
    };
    assert_eq!(ask(entries! { "cmd" => "_file_envs" }).await, Some(list!["base"]));
    // Without proof it can do nothing in anybody's name.
    let mine = entries! { "cmd" => "_mine", "id" => "old", "data" => dict! { "f" => 1 } };
    assert_eq!(ask(mine.shallow_copy()).await, Some(Value::dict()));
    let token = Value::bytes(minion.key.token().unwrap());
    mine.insert("tok", &token);
    assert_eq!(ask(mine.shallow_copy()).await, Some(true.into()));
    master.accept("victim", &key(1));
    mine.insert("id", "victim");
    assert_eq!(ask(mine).await, None, "another's name with one's own token");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signing_key_signs_the_masters() {
    let master = TestMaster::new(entries! {
        "auto_accept" => true, "master_sign_pubkey" => true, "master_sign_key_name" => "master_sign",
    })
    .await;
    let mut minion = master.minion("web1", key(0));
    let welcome = minion.sign_in().await.unwrap();
    let signing = fs::read(master.path().join("pki/master_sign.pub")).unwrap();
    let signing = halite_crypt::PublicKey::from_pem(&signing).unwrap();
    let sig = String::from_utf8(welcome.public_key_sig.unwrap()).unwrap();
    let algo = halite_crypt::SigAlgo::Pkcs1v15Sha1;
    halite_crypt::pki::verify_pubkey(&signing, algo, &welcome.public_key, &sig).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_costs_no_sign_in() {
    let mut master = TestMaster::new(Dict::new()).await;
    let minion = master.signed_in("web1", 0).await;
    let (session, shared) = (minion.session.clone(), minion.shared.clone());
    drop(minion);
    master.stop().await;
    master.start().await;
    let mut again = master.minion("web1", key(0));
    again.session = session.clone();
    let envs = again.ask(&entries! { "cmd" => "_file_envs" }).await;
    assert_eq!(envs, Ok(list!["base"]));
    again.sign_in().await.unwrap();
    assert!(again.session == session && again.shared == shared);
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_for_nobody_else() {
    let master = TestMaster::new(Dict::new()).await;
    let _minion = master.signed_in("web1", 0).await;
    let mode = |path: &str| {
        let metadata = fs::metadata(master.path().join(path));
        metadata.unwrap_or_else(|_| panic!("{path}")).permissions().mode() & 0o777
    };
    assert_eq!(mode("pki/test.pem"), 0o400);
    for file in ["cache/.root_key", "cache/.halite_shared_key", "cache/sessions/web1"] {
        assert_eq!(mode(file), 0o600, "{file}");
    }
    assert_eq!(mode("pki"), 0o700);
    assert_eq!(mode("sock/halite.sock"), 0o600);
    assert_eq!(mode("sock/master_event_pull.ipc"), 0o600);
    for marker in ["sock/publish_pull.ipc", "sock/workers.ipc", "sock/master_event_pub.ipc"] {
        assert!(master.path().join(marker).exists(), "{marker}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_makes_a_new_connection_known() {
    let mut master = TestMaster::new(entries! { "auto_accept" => true }).await;
    let mut minion = master.halite_minion("web1", key(0));
    minion.sign_in().await.unwrap();
    minion.prove().await;
    let session = minion.session.clone();
    minion.link.close();
    master.stop().await;
    master.start().await;
    let signed_in = master.master().bus.subscribe("salt/auth", 10);
    let mut back = master.halite_minion("web1", key(0));
    back.session = session;
    back.publish_port = i64::from(master.running.as_ref().unwrap().publish_addr().port());
    back.subscribe();
    back.prove().await;
    common::until("it is connected", || master.master().hub.is_connected("web1")).await;
    let more = tokio::time::timeout(std::time::Duration::from_millis(100), signed_in.next()).await;
    assert!(more.is_err(), "nobody signed in for that");
}
