//! A master made by hand: as much of one as a minion needs, with faults to order.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use bytes::Bytes;
use halite_crypt::{Crypticle, EncAlgo, Nonce, PrivateKey, PublicKey, SessionKey, SigAlgo};
use halite_transport::{Delivery, Hub, Peer, Server, ServerOptions, Service, zeromq};
use halite_value::{
    Dict, SmolStr, Value, dict, entries,
    msgpack::{self, Dialect, Text},
};
use halite_wire::{
    AuthReply, AuthRequest, EXTENSION, Envelope, Jid, MinionRequest, Refusal, Sealed,
    SealedPublication, Welcome,
};
use parking_lot::Mutex;

/// How long a test waits for what must come.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// What the master does and what it was told.
pub struct Core {
    key: PrivateKey,
    shared: Mutex<SessionKey>,
    session: Mutex<SessionKey>,
    serial: AtomicI64,
    port: AtomicUsize,
    minion: Mutex<Option<PublicKey>>,
    pub refusal: Mutex<Option<Refusal>>,
    /// Requests of this command get no answer.
    pub deaf_to: Mutex<Option<&'static str>>,
    /// Each chunk of a file after the first is cut off this many times.
    pub cut_chunks: AtomicUsize,
    pub tamper_pillar: AtomicBool,
    /// Every answer comes this many milliseconds late.
    pub late_ms: AtomicU64,
    /// It says at sign-in that it is a Halite master.
    extension: bool,
    pub files: Mutex<HashMap<String, Vec<u8>>>,
    pub chunk: usize,
    pub sign_ins: AtomicUsize,
    pub commands: Mutex<Vec<String>>,
    returns: mpsc::Sender<Dict>,
    events: mpsc::Sender<Dict>,
}

/// A running master.
pub struct Master {
    pub core: Arc<Core>,
    pub returns: mpsc::Receiver<Dict>,
    pub events: mpsc::Receiver<Dict>,
    hub: Hub,
    runtime: tokio::runtime::Runtime,
    server: Option<Server>,
    extension: bool,
    port: u16,
}

struct Door(Arc<Core>);

impl Master {
    pub fn start() -> Self {
        Self::with(false)
    }

    /// `extension`: it is a Halite master.
    pub fn with(extension: bool) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let (returns, returned) = mpsc::channel();
        let (events, fired) = mpsc::channel();
        let core = Arc::new(Core {
            key: PrivateKey::generate(1024).expect("a key"),
            shared: Mutex::new(SessionKey::generate()),
            session: Mutex::new(SessionKey::generate()),
            serial: AtomicI64::new(0),
            port: AtomicUsize::new(0),
            minion: Mutex::new(None),
            refusal: Mutex::new(None),
            deaf_to: Mutex::new(None),
            cut_chunks: AtomicUsize::new(0),
            tamper_pillar: AtomicBool::new(false),
            late_ms: AtomicU64::new(0),
            extension,
            files: Mutex::default(),
            chunk: 1000,
            sign_ins: AtomicUsize::new(0),
            commands: Mutex::default(),
            returns,
            events,
        });
        let hub = {
            let _inside = runtime.enter();
            Hub::new()
        };
        let mut master = Self {
            core,
            returns: returned,
            events: fired,
            hub,
            runtime,
            server: None,
            extension,
            port: 0,
        };
        master.up();
        master
    }

    /// Starts listening, on the same ports as before.
    pub fn up(&mut self) {
        let options = ServerOptions {
            interface: "127.0.0.1".into(),
            ret_port: self.port,
            publish_port: u16::try_from(self.core.port.load(Ordering::SeqCst)).expect("a port"),
            extension: self.extension,
            ..ServerOptions::default()
        };
        let door = Arc::new(Door(self.core.clone()));
        let server = self.runtime.block_on(zeromq::serve(&options, &self.hub, door));
        let server = server.expect("a free port");
        self.port = server.request_addr().port();
        self.core.port.store(server.publish_addr().port().into(), Ordering::SeqCst);
        self.server = Some(server);
    }

    /// Goes away.
    pub fn down(&mut self) {
        self.server = None;
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Changes all keys, as a restart does.
    pub fn rotate(&self) {
        *self.core.shared.lock() = SessionKey::generate();
        *self.core.session.lock() = SessionKey::generate();
        self.core.serial.store(0, Ordering::SeqCst);
    }

    pub fn publish(&self, fun: impl Into<Value>, arg: Value) -> SmolStr {
        let jid = Jid::now();
        self.publish_as(jid.as_str(), fun, arg);
        jid.as_str().into()
    }

    pub fn publish_as(&self, jid: &str, fun: impl Into<Value>, arg: Value) {
        let load = entries! {
            "fun" => fun, "arg" => arg, "tgt" => "*", "tgt_type" => "glob", "jid" => jid,
            "ret" => "", "user" => "root",
        };
        self.publish_load(&load);
    }

    pub fn publish_load(&self, load: &Dict) {
        load.insert("serial", self.core.serial.fetch_add(1, Ordering::SeqCst) + 1);
        let packed = msgpack::to_vec(&load.into(), Dialect::Raw).expect("a load");
        let sealed = Crypticle::new(&self.core.shared.lock()).seal(&packed, None);
        let sig = self.core.key.sign(SigAlgo::Pkcs1v15Sha1, &sealed).expect("a signature");
        let publication = SealedPublication {
            load: sealed,
            sig: Some(sig),
            sig_algo: Some("PKCS1v15-SHA1".into()),
        };
        let bytes = Bytes::from(publication.encode().expect("a publication"));
        self.runtime.block_on(async { self.hub.publish(Delivery::all(), bytes).await });
    }

    /// Waits for the return of a job.
    pub fn returned(&self, jid: &str) -> Dict {
        loop {
            let ret = self.returns.recv_timeout(PATIENCE).expect("a return");
            if ret.get("jid") == Some(jid.into()) {
                return ret;
            }
        }
    }

    /// Waits for an event.
    pub fn event(&self, tag: &str) -> Dict {
        loop {
            let event = self.events.recv_timeout(PATIENCE).expect("an event");
            if event.get("tag") == Some(tag.into()) {
                return event;
            }
        }
    }

    pub fn serve(&self, path: &str, content: &[u8]) {
        self.core.files.lock().insert(path.to_owned(), content.to_vec());
    }
}

impl Service for Door {
    async fn request(&self, peer: &Peer, body: Bytes) -> Option<Bytes> {
        match Envelope::decode(&body).expect("an envelope") {
            Envelope::Clear { load, .. } => {
                let request = AuthRequest::read(&load).expect("a sign-in");
                peer.bind(request.id.as_str());
                Some(self.0.sign_in(&request).into())
            }
            Envelope::Sealed(sealed) => {
                let late = Duration::from_millis(self.0.late_ms.load(Ordering::SeqCst));
                let answer = self.0.answer(&sealed).map(Bytes::from);
                tokio::time::sleep(late).await;
                answer
            }
        }
    }
}

fn pack(value: &Value) -> Vec<u8> {
    msgpack::to_vec(value, Dialect::Raw).expect("packable")
}

impl Core {
    fn sign_in(&self, request: &AuthRequest) -> Vec<u8> {
        self.sign_ins.fetch_add(1, Ordering::SeqCst);
        let minion = PublicKey::from_pem(request.public_key.as_bytes()).expect("a key");
        *self.minion.lock() = Some(minion.clone());
        let algo = EncAlgo::OaepSha1;
        let (shared, session) = (self.shared.lock().clone(), self.session.lock().clone());
        let refusal = *self.refusal.lock();
        let reply = match refusal {
            Some(refusal) => AuthReply::Refused(refusal),
            None => AuthReply::Welcome(Box::new(Welcome {
                public_key: self.key.public().text().into(),
                publish_port: i64::try_from(self.port.load(Ordering::SeqCst)).expect("a port"),
                aes: shared.wrap(&minion, algo).expect("wrapped"),
                session: Some(session.wrap(&minion, algo).expect("wrapped")),
                aes_sig: shared.proof(&self.key).expect("a proof"),
                token: request.token.as_ref().map(|token| {
                    let clear = self.key.decrypt(algo, token).expect("a token");
                    minion.encrypt(algo, clear.expose()).expect("sealed")
                }),
                halite: self.extension.then(|| entries! { "version" => EXTENSION, "first" => 1 }),
                ..Welcome::default()
            })),
        };
        let body = reply.encode(request.nonce.as_deref()).expect("a body");
        let sig = self.key.sign(SigAlgo::Pkcs1v15Sha1, &body).expect("a signature");
        AuthReply::signed(body, sig).expect("a reply")
    }

    fn answer(&self, sealed: &Sealed) -> Option<Vec<u8>> {
        let session = Crypticle::new(&self.session.lock());
        let Ok(packed) = session.open(&sealed.load, None) else {
            return Some(pack(&"bad load".into()));
        };
        let Ok(Value::Dict(load)) = msgpack::from_slice(&packed, Text::Guess) else {
            panic!("a request is a map");
        };
        let nonce = load.remove("nonce").expect("a nonce").to_str();
        let nonce = Nonce::parse(&nonce).expect("a nonce");
        let tok = load.remove("tok").expect("a token");
        assert!(!tok.as_bytes().expect("bytes").is_empty());
        let command = load.get("cmd").expect("a command").to_str();
        self.commands.lock().push(command.to_string());
        if *self.deaf_to.lock() == Some(command.as_str()) {
            return None;
        }
        if command == "_pillar" {
            return Some(self.pillar(&nonce));
        }
        let reply = match MinionRequest::read(&load).expect("a known request") {
            MinionRequest::Return(_) => {
                let _ = self.returns.send(load);
                Value::Null
            }
            MinionRequest::Returns(all) => {
                for ret in all {
                    let Value::Dict(ret) = ret else { panic!("a return is a map") };
                    let _ = self.returns.send(ret);
                }
                Value::Null
            }
            MinionRequest::Event { load } => {
                let _ = self.events.send(load);
                Value::Null
            }
            MinionRequest::FileHash(file) => match self.files.lock().get(file.path.as_str()) {
                Some(content) => {
                    let hsum = halite_crypt::Hash::Sha256.hex(content);
                    dict! { "hash_type" => "sha256", "hsum" => hsum }
                }
                None => "".into(),
            },
            MinionRequest::ServeFile { file, offset, .. } => {
                if offset > 0
                    && self
                        .cut_chunks
                        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                            left.checked_sub(1)
                        })
                        .is_ok()
                {
                    return None;
                }
                let files = self.files.lock();
                let content = files.get(file.path.as_str()).cloned().unwrap_or_default();
                let at = usize::try_from(offset).expect("small").min(content.len());
                let end = (at + self.chunk).min(content.len());
                dict! { "data" => Value::bytes(content[at..end].to_vec()), "dest" => file.path }
            }
            MinionRequest::FileEnvs => Value::list(["base"]),
            _ => Value::dict(),
        };
        Some(pack(&Value::bytes(session.seal(&pack(&reply), Some(&nonce)))))
    }

    fn pillar(&self, nonce: &Nonce) -> Vec<u8> {
        let minion = self.minion_key();
        let once = SessionKey::generate();
        let key = Value::bytes(once.wrap(&minion, EncAlgo::OaepSha1).expect("wrapped"));
        let data = pack(&dict! {
            "key" => &key, "pillar" => dict! { "role" => "web" }, "nonce" => nonce.as_str(),
        });
        let sig = self.key.sign(SigAlgo::Pkcs1v15Sha1, &data).expect("a signature");
        let data = if self.tamper_pillar.load(Ordering::SeqCst) {
            data.iter().map(|byte| if *byte == b'w' { b'b' } else { *byte }).collect()
        } else {
            data
        };
        let inner = pack(&dict! { "data" => Value::bytes(data), "sig" => Value::bytes(sig) });
        let sealed = Crypticle::new(&once).seal(&inner, None);
        pack(&dict! { "key" => key, "pillar" => Value::bytes(sealed) })
    }

    fn minion_key(&self) -> PublicKey {
        self.minion.lock().clone().expect("a minion that signed in")
    }
}
