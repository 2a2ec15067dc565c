//! A master in a folder of its own, and a minion made by hand.
#![allow(dead_code, reason = "each test file uses its part")]

use std::{
    path::Path,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use halite_config::{Opts, Role};
use halite_crypt::{Crypticle, EncAlgo, Nonce, PrivateKey, PublicKey, SessionKey, SigAlgo};
use halite_master::{Master, Parts, Running, Settings, start};
use halite_transport::{ClientOptions, Kind, LinkError, Subscription, Transport, connect};
use halite_value::{
    Dict, Value, dict, entries,
    msgpack::{self, Dialect, Text},
};
use halite_wire::{AuthReply, AuthRequest, Envelope, MinionId, Refusal, Sealed, Welcome};
use tempfile::TempDir;

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Returns one of a few keys; making them takes its time.
pub(crate) fn key(number: usize) -> PrivateKey {
    static KEYS: OnceLock<Vec<PrivateKey>> = OnceLock::new();
    let keys = KEYS.get_or_init(|| {
        (0..3).map(|_| PrivateKey::generate(2048).expect("a usual size")).collect()
    });
    keys[number].clone()
}

/// A running master.
pub(crate) struct TestMaster {
    pub(crate) running: Option<Running>,
    pub(crate) dir: TempDir,
    opts: Dict,
    parts: fn() -> Parts,
}

pub(crate) fn pack(value: &Value) -> Bytes {
    msgpack::to_vec(value, Dialect::Raw).expect("plain data").into()
}

pub(crate) fn unpack(bytes: &[u8]) -> Value {
    msgpack::from_slice(bytes, Text::Guess).expect("an answer is msgpack")
}

impl TestMaster {
    /// Starts a master with these options beside the usual ones.
    pub(crate) async fn new(more: Dict) -> Self {
        Self::with_parts(more, Parts::default).await
    }

    pub(crate) async fn with_parts(more: Dict, parts: fn() -> Parts) -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        // The master's own key is made once for all tests.
        let pki = dir.path().join("pki");
        std::fs::create_dir_all(&pki).expect("a folder");
        halite_crypt::file::write(&pki.join("test.pem"), key(2).to_pem(None).expose(), 0o400, None)
            .expect("a file");
        let mut master = Self { running: None, dir, opts: more, parts };
        master.start().await;
        master
    }

    pub(crate) async fn restart_with(&mut self, parts: Parts) {
        self.stop().await;
        self.start_with(parts).await;
    }

    pub(crate) async fn start(&mut self) {
        self.start_with((self.parts)()).await;
    }

    async fn start_with(&mut self, parts: Parts) {
        let path = |name: &str| self.dir.path().join(name).to_str().expect("text").to_owned();
        let opts = entries! {
            "id" => "test_master", "user" => "root", "interface" => "127.0.0.1",
            "publish_port" => 0, "ret_port" => 0, "transport" => "zeromq",
            "pki_dir" => path("pki"), "cachedir" => path("cache"), "sock_dir" => path("sock"),
            "minimum_auth_version" => 3, "publish_session" => 86_400, "loop_interval" => 60,
            "keep_jobs_seconds" => 86_400, "max_event_size" => 1 << 20, "auth_events" => true,
            "minion_data_cache" => true, "minion_data_cache_events" => true, "job_cache" => true,
            "sign_pub_messages" => true, "rotate_aes_key" => true, "keysize" => 2048,
            "hash_type" => "sha256", "token_expire" => 43_200,
            "allow_minion_key_revoke" => true, "file_recv_max_size" => 100,
            "file_roots" => dict! { "base" => Value::list([path("srv")]) },
            "fileserver_followsymlinks" => true,
        };
        opts.update(&self.opts);
        let settings = Settings::from_opts(&Opts::new(Role::Master, opts)).expect("settings");
        self.running = Some(start(settings, parts).await.expect("a master"));
    }

    pub(crate) async fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop().await;
        }
    }

    pub(crate) fn master(&self) -> &Arc<Master> {
        &self.running.as_ref().expect("running").master
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn sock_dir(&self) -> std::path::PathBuf {
        self.dir.path().join("sock")
    }

    fn client(&self, extension: bool) -> Arc<dyn Transport> {
        let addr = self.running.as_ref().expect("running").request_addr();
        let mut options = ClientOptions::new("127.0.0.1", addr.port());
        options.extension = extension;
        connect(Kind::ZeroMq, options)
    }

    /// Sends raw bytes, and returns the raw answer.
    pub(crate) async fn raw(&self, body: Bytes) -> Value {
        let link = self.client(false);
        unpack(&link.request(body, PATIENCE).await.expect("an answer"))
    }

    /// Sends a clear request.
    pub(crate) async fn clear(&self, load: Dict) -> Value {
        let envelope = Envelope::Clear { load, version: 3 };
        self.raw(envelope.encode().expect("plain data").into()).await
    }

    /// Puts a minion's key among the accepted ones, as `salt-key -a` does.
    pub(crate) fn accept(&self, id: &str, key: &PrivateKey) {
        let path = self.dir.path().join("pki/minions").join(id);
        std::fs::write(path, key.public().text()).expect("a file");
    }

    pub(crate) fn minion(&self, id: &str, key: PrivateKey) -> Minion {
        self.minion_on(id, key, false)
    }

    pub(crate) fn halite_minion(&self, id: &str, key: PrivateKey) -> Minion {
        self.minion_on(id, key, true)
    }

    fn minion_on(&self, id: &str, key: PrivateKey, halite: bool) -> Minion {
        Minion {
            id: id.into(),
            key,
            link: self.client(halite),
            halite,
            session: None,
            shared: None,
            publish_port: 0,
            master: None,
        }
    }

    /// An accepted minion that has signed in.
    pub(crate) async fn signed_in(&self, id: &str, number: usize) -> Minion {
        self.accept(id, &key(number));
        let mut minion = self.minion(id, key(number));
        minion.sign_in().await.expect("accepted");
        minion
    }
}

/// A minion made by hand.
pub(crate) struct Minion {
    pub(crate) id: String,
    pub(crate) key: PrivateKey,
    pub(crate) link: Arc<dyn Transport>,
    pub(crate) halite: bool,
    pub(crate) session: Option<SessionKey>,
    pub(crate) shared: Option<SessionKey>,
    pub(crate) publish_port: i64,
    pub(crate) master: Option<PublicKey>,
}

impl Minion {
    pub(crate) fn auth_load(&self, nonce: &str) -> Dict {
        AuthRequest {
            id: MinionId::new(&self.id).expect("an id"),
            public_key: self.key.public().text().into(),
            nonce: Some(nonce.into()),
            enc_algo: Some("OAEP-SHA1".into()),
            sig_algo: Some("PKCS1v15-SHA1".into()),
            token: None,
            autosign_grains: Dict::new(),
            halite: self.halite.then(|| entries! { "version" => 1, "listens" => true }),
        }
        .write()
    }

    /// Sends a request, again if the connection is closed under it: that of a deleted key is.
    async fn request(&self, body: Bytes) -> Bytes {
        for _ in 0..5 {
            match self.link.request(body.clone(), PATIENCE).await {
                Err(LinkError::Lost { .. }) => {}
                answer => return answer.expect("an answer"),
            }
        }
        panic!("every connection is closed");
    }

    pub(crate) async fn sign_in(&mut self) -> Result<Welcome, Refusal> {
        let nonce = Nonce::generate();
        self.sign_in_with(self.auth_load(nonce.as_str()), 3, nonce.as_str()).await
    }

    pub(crate) async fn sign_in_with(
        &mut self,
        load: Dict,
        version: i64,
        nonce: &str,
    ) -> Result<Welcome, Refusal> {
        let envelope = Envelope::Clear { load, version }.encode().expect("plain data");
        let reply = self.request(envelope.into()).await;
        let (body, sig) = AuthReply::unwrap_signed(&reply).expect("a signed reply");
        let (reply, echoed) = AuthReply::decode(&body).expect("a reply");
        assert_eq!(echoed.as_deref(), Some(nonce), "the nonce is echoed");
        match reply {
            AuthReply::Refused(refusal) => Err(refusal),
            AuthReply::Welcome(welcome) => {
                let master = PublicKey::from_pem(welcome.public_key.as_bytes()).expect("a key");
                let sig = sig.expect("a signature");
                master.verify(SigAlgo::Pkcs1v15Sha1, &body, &sig).expect("the master's signature");
                let algo = EncAlgo::OaepSha1;
                let shared = SessionKey::unwrap_from(&welcome.aes, &self.key, algo).expect("aes");
                shared.verify_proof(&master, &welcome.aes_sig).expect("the inner signature");
                let session = welcome.session.as_ref().expect("protocol 3");
                self.session =
                    Some(SessionKey::unwrap_from(session, &self.key, algo).expect("session"));
                self.shared = Some(shared);
                self.publish_port = welcome.publish_port;
                self.master = Some(master);
                Ok(*welcome)
            }
        }
    }

    /// Returns a load with everything a session adds.
    pub(crate) fn dressed(&self, load: &Dict, nonce: &str) -> Dict {
        let load = load.shallow_copy();
        load.get_or_insert_with("id", || self.id.as_str().into());
        load.insert("nonce", nonce);
        load.insert("ts", jiff_now());
        let token = self.key.token().expect("a token");
        load.get_or_insert_with("tok", || Value::bytes(token.clone()));
        load
    }

    pub(crate) fn sealed(&self, load: &Dict) -> Bytes {
        let session = self.session.as_ref().expect("signed in");
        let payload = pack(&load.into());
        Envelope::Sealed(Sealed {
            load: Crypticle::new(session).seal(&payload, None),
            version: 3,
            id: Some(MinionId::new(&self.id).expect("an id")),
            enc_algo: Some("OAEP-SHA1".into()),
            sig_algo: Some("PKCS1v15-SHA1".into()),
        })
        .encode()
        .expect("plain data")
        .into()
    }

    /// Shows the master that we could read its welcome.
    pub(crate) async fn prove(&self) {
        self.ask(&entries! { "cmd" => "_file_envs" }).await.expect("an answer under the session");
    }

    /// Asks; `Err` is what came in clear.
    pub(crate) async fn ask(&self, load: &Dict) -> Result<Value, Value> {
        let nonce = Nonce::generate();
        let body = self.sealed(&self.dressed(load, nonce.as_str()));
        self.ask_raw(body, &nonce).await
    }

    pub(crate) async fn ask_raw(&self, body: Bytes, nonce: &Nonce) -> Result<Value, Value> {
        let reply = self.request(body).await;
        self.open(&reply, nonce)
    }

    pub(crate) fn open(&self, reply: &[u8], nonce: &Nonce) -> Result<Value, Value> {
        let reply = msgpack::from_slice(reply, Text::KeepBytes).expect("msgpack");
        let session = Crypticle::new(self.session.as_ref().expect("signed in"));
        let sealed = reply.as_bytes().and_then(|bytes| session.open(bytes, Some(nonce)).ok());
        match sealed {
            Some(clear) => Ok(unpack(&clear)),
            None => Err(match reply.as_bytes() {
                Some(bytes) => String::from_utf8_lossy(bytes).into_owned().into(),
                None => reply,
            }),
        }
    }

    /// Subscribes to publications.
    pub(crate) fn subscribe(&self) {
        let port = u16::try_from(self.publish_port).expect("a port");
        self.link.subscribe(Subscription::everything(port));
    }

    /// Waits for the next job.
    pub(crate) async fn next_job(&self) -> Dict {
        loop {
            let event = tokio::time::timeout(PATIENCE, self.link.next()).await.expect("in time");
            if let Some(halite_transport::Event::Publication(body)) = event {
                return self.job_of(&body);
            }
        }
    }

    pub(crate) fn job_of(&self, body: &[u8]) -> Dict {
        let publication = halite_wire::SealedPublication::decode(body).expect("a publication");
        let master = self.master.as_ref().expect("signed in");
        let sig = publication.sig.expect("signed");
        master.verify(SigAlgo::Pkcs1v15Sha1, &publication.load, &sig).expect("by the master");
        let shared = Crypticle::new(self.shared.as_ref().expect("signed in"));
        match unpack(&shared.open(&publication.load, None).expect("sealed for us")) {
            Value::Dict(job) => job,
            other => panic!("a job is a map, not {other:?}"),
        }
    }

    pub(crate) async fn give_back(
        &self,
        jid: &str,
        value: impl Into<Value>,
    ) -> Result<Value, Value> {
        self.ask(&entries! {
            "cmd" => "_return", "jid" => jid, "fun" => "test.ping", "fun_args" => Vec::<Value>::new(),
            "return" => value.into(), "retcode" => 0, "success" => true,
        })
        .await
    }
}

fn jiff_now() -> i64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |now| i64::try_from(now.as_secs()).unwrap_or(0))
}

/// Waits until something is true.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain for: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
