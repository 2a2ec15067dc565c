//! One master, as this minion reaches it: sealed requests, with sign-in behind them.
//!
//! [`Master::ask`] seals a load with a fresh nonce, sends it, opens the reply; a reply that cannot be
//! opened means that the master has other keys than we (it restarted, it rotated them), so we sign
//! in again and ask once more. Any number of tasks and threads may ask at once; one of them signs
//! in, the others wait for it.
//!
//! Job threads call [`Master::ask_now`], which lends the calling thread to the daemon's runtime.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use halite_crypt::{Crypticle, Error as CryptError, Nonce, SessionKey};
use halite_transport::{LinkError, Transport};
use halite_value::{
    Dict, Value, entries,
    msgpack::{self, Dialect, Text},
};
use halite_wire::{EXTENSION, Envelope, IN_SESSION, Sealed, SealedPublication};
use parking_lot::RwLock;
use tokio::runtime::Handle;

use super::{
    auth::{Identity, Keys, SignInError},
    options::{MasterAddress, Settings},
};

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error("cannot sign in: {0}")]
    SignIn(#[from] Arc<SignInError>),
    #[error("the master's answer cannot be read: {0}")]
    Crypt(#[from] CryptError),
    #[error("the master's answer is not msgpack: {0}")]
    Codec(#[from] msgpack::Error),
    #[error(transparent)]
    Wire(#[from] halite_wire::Error),
    #[error("the master's answer is not what was asked for: {0}")]
    Reply(String),
    #[error("the job was cancelled")]
    Cancelled,
}

/// The way to one master.
pub struct Master {
    pub address: MasterAddress,
    pub identity: Arc<Identity>,
    pub transport: Arc<dyn Transport>,
    settings: Arc<Settings>,
    grains: Dict,
    handle: Handle,
    keys: RwLock<Option<Arc<Keys>>>,
    /// The connection that signed in last; on an extended link only that one is known.
    connection: AtomicU64,
    /// The serial of the last publication under the present shared key.
    serial: AtomicI64,
    signing_in: tokio::sync::Mutex<()>,
    /// We are going to take its jobs.
    listens: AtomicBool,
    /// It let us in again, but has nothing of us any more.
    pub forgotten: tokio::sync::Notify,
}

/// How a request may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repeat {
    /// Asking twice does no harm.
    Freely,
    /// Only if the first certainly never left.
    IfUnsent,
}

impl Master {
    /// `grains` is the daemon's own dict: sign-in shows the master those it is asked for.
    pub fn new(
        address: MasterAddress,
        settings: Arc<Settings>,
        identity: Arc<Identity>,
        transport: Arc<dyn Transport>,
        grains: Dict,
        handle: Handle,
    ) -> Arc<Self> {
        Arc::new(Self {
            address,
            identity,
            transport,
            settings,
            grains,
            handle,
            keys: RwLock::new(None),
            connection: AtomicU64::new(0),
            serial: AtomicI64::new(0),
            signing_in: tokio::sync::Mutex::new(()),
            listens: AtomicBool::new(false),
            forgotten: tokio::sync::Notify::new(),
        })
    }

    /// Takes the grains that sign-in may show, in place of those given at first.
    pub fn show_grains(&self, grains: &Dict) {
        self.grains.update(grains);
    }

    /// Tells the master at sign-in that jobs are to be held for us until we are there.
    pub fn will_listen(&self) {
        self.listens.store(true, Ordering::Release);
    }

    /// Returns the present keys, if we are signed in.
    pub fn keys(&self) -> Option<Arc<Keys>> {
        self.keys.read().clone()
    }

    /// Returns the connection over which we signed in last.
    pub fn connection(&self) -> u64 {
        self.connection.load(Ordering::Acquire)
    }

    /// Signs in, once; the attempts of `auth_tries` are for a master that does not answer.
    pub async fn sign_in(&self) -> Result<Arc<Keys>, SignInError> {
        let guard = self.signing_in.lock().await;
        let keys = self.sign_in_alone().await;
        drop(guard);
        keys
    }

    /// As [`Master::sign_in`], unless somebody did since these were the keys.
    pub async fn sign_in_unless_done(&self, known: Option<&Arc<Keys>>) -> Result<(), SignInError> {
        let _alone = self.signing_in.lock().await;
        let is_known = match (self.keys(), known) {
            (Some(now), Some(then)) => Arc::ptr_eq(&now, then),
            (now, _) => now.is_none(),
        };
        if is_known { self.sign_in_alone().await.map(drop) } else { Ok(()) }
    }

    /// Takes a new shared key from a Halite master, without signing in for it.
    pub fn take_key(&self, sealed: &[u8]) {
        let mut current = self.keys.write();
        match current.as_ref().and_then(|keys| keys.renewed(sealed)) {
            Some(keys) => {
                self.serial.store(0, Ordering::Release);
                *current = Some(Arc::new(keys));
            }
            // The next publication will tell whether we need another.
            None => tracing::debug!("{} sent a key that is none, or old", self.address.name),
        }
    }

    /// Makes a new connection known to the master by the session we have: one sealed question in
    /// place of a sign-in with RSA. `false`: there is no session yet, or no answer.
    pub async fn resume(&self, connection: u64) -> bool {
        if self.keys().is_none() {
            return false;
        }
        let question = entries! { "cmd" => "_file_envs" };
        // A master that does not know the session any more makes `ask` sign in.
        let known = self.ask_within(&question, self.settings.auth_timeout).await.is_ok();
        if known {
            self.connection.store(connection, Ordering::Release);
        }
        known
    }

    async fn sign_in_alone(&self) -> Result<Arc<Keys>, SignInError> {
        let (reply, asked, connection) = self.ask_to_sign_in().await?;
        let keys = Arc::new(self.identity.check(&reply, &asked)?);
        let mut current = self.keys.write();
        if current.as_ref().is_none_or(|old| !old.same_shared_key(&keys)) {
            self.serial.store(0, Ordering::Release);
        }
        self.connection.store(connection, Ordering::Release);
        // At the first time everything is told anyway.
        if current.replace(Arc::clone(&keys)).is_some() && keys.is_unknown() {
            self.forgotten.notify_one();
        }
        Ok(keys)
    }

    async fn ask_to_sign_in(&self) -> Result<(Bytes, super::auth::Asked, u64), SignInError> {
        let mut left = self.settings.auth_tries;
        loop {
            let own = entries! { "version" => EXTENSION };
            if self.listens.load(Ordering::Acquire) {
                own.insert("listens", true);
            }
            let (body, asked) = self.identity.ask(&self.grains, Some(own))?;
            let sent = self.transport.request_on(body.into(), self.settings.auth_timeout).await;
            left -= 1;
            match sent {
                Ok((reply, connection)) => return Ok((reply, asked, connection)),
                Err(error @ (LinkError::Closed | LinkError::TooLarge { .. })) => {
                    return Err(error.into());
                }
                Err(error) if left == 0 => return Err(error.into()),
                Err(error) => tracing::debug!("signing in at {}: {error}", self.address.name),
            }
        }
    }

    /// Returns keys other than `old` (which did not work), signing in if nobody else did.
    async fn keys_after(&self, old: Option<&Arc<Keys>>) -> Result<Arc<Keys>, AskError> {
        let _alone = self.signing_in.lock().await;
        match (self.keys(), old) {
            (Some(keys), None) => return Ok(keys),
            (Some(keys), Some(old)) if !Arc::ptr_eq(&keys, old) => return Ok(keys),
            _ => {}
        }
        self.sign_in_alone().await.map_err(|error| AskError::SignIn(Arc::new(error)))
    }

    /// Asks the master one question.
    pub async fn ask(&self, load: &Dict) -> Result<Value, AskError> {
        let reply = self.exchange(load, self.settings.request_timeout).await?;
        Ok(msgpack::from_slice(&reply, Text::Guess)?)
    }

    /// As [`Master::ask`], with another patience for each try.
    pub async fn ask_within(&self, load: &Dict, timeout: Duration) -> Result<Value, AskError> {
        let reply = self.exchange(load, timeout).await?;
        Ok(msgpack::from_slice(&reply, Text::Guess)?)
    }

    /// As [`Master::ask`], with every text of the answer left as bytes: file contents survive.
    pub async fn ask_raw(&self, load: &Dict) -> Result<Value, AskError> {
        let reply = self.exchange(load, self.settings.request_timeout).await?;
        Ok(msgpack::from_slice(&reply, Text::KeepBytes)?)
    }

    /// Asks and opens the reply; returns the packed answer.
    async fn exchange(&self, load: &Dict, timeout: Duration) -> Result<Vec<u8>, AskError> {
        let mut keys = match self.keys() {
            Some(keys) => keys,
            None => self.keys_after(None).await?,
        };
        let mut renewed = false;
        loop {
            let (reply, nonce) = self.send(load, &keys, timeout).await?;
            let problem = match sealed_bytes(&reply) {
                Ok(sealed) => match keys.requests().open(&sealed, Some(&nonce)) {
                    Ok(answer) => return Ok(answer),
                    Err(CryptError::Authentication) => AskError::Crypt(CryptError::Authentication),
                    Err(error) => return Err(error.into()),
                },
                Err(problem) => problem,
            };
            if renewed {
                return Err(problem);
            }
            tracing::debug!("{} has other keys than we: signing in again", self.address.name);
            renewed = true;
            keys = self.keys_after(Some(&keys)).await?;
        }
    }

    /// Asks for something only we may read, a pillar: returns the packed data.
    pub async fn ask_private(&self, load: &Dict) -> Result<Value, AskError> {
        let mut keys = match self.keys() {
            Some(keys) => keys,
            None => self.keys_after(None).await?,
        };
        if keys.in_session() {
            let load = load.shallow_copy();
            load.insert(IN_SESSION, true);
            match self.ask(&load).await {
                // It may have become another master meanwhile, one that does not know the field.
                Err(AskError::Reply(_)) => {}
                done => return done,
            }
            keys = self.keys_after(None).await?;
        }
        let mut renewed = false;
        loop {
            let (reply, nonce) = self.send(load, &keys, self.settings.request_timeout).await?;
            match self.open_private(&reply, &nonce, &keys) {
                Err(_) if !renewed => {
                    renewed = true;
                    keys = self.keys_after(Some(&keys)).await?;
                }
                done => return done,
            }
        }
    }

    fn open_private(&self, reply: &[u8], nonce: &Nonce, keys: &Keys) -> Result<Value, AskError> {
        let wrong = |text: &str| AskError::Reply(text.to_owned());
        let outer = msgpack::from_slice(reply, Text::KeepBytes)?;
        let bytes = |map: &Value, field: &str| -> Result<Vec<u8>, AskError> {
            let value = map.get(field).ok_or_else(|| wrong(&format!("it has no `{field}`")))?;
            value.as_bytes().map(<[u8]>::to_vec).ok_or_else(|| wrong("a field is no text"))
        };
        let wrapped = bytes(&outer, "key")?;
        let one_shot =
            SessionKey::unwrap_from(&wrapped, &self.identity.key, self.identity.enc_algo)?;
        let packed = Crypticle::new(&one_shot).open(&bytes(&outer, "pillar")?, None)?;
        let signed = msgpack::from_slice(&packed, Text::KeepBytes)?;
        let data = bytes(&signed, "data")?;
        keys.master.verify(self.identity.sig_algo, &data, &bytes(&signed, "sig")?)?;
        // The binary key decides: guessing texts would lose it.
        let inner = msgpack::from_slice(&data, Text::KeepBytes)?;
        if bytes(&inner, "key")? != wrapped {
            return Err(wrong("the key inside is another than the one outside"));
        }
        if bytes(&inner, "nonce")? != nonce.as_str().as_bytes() {
            return Err(CryptError::NonceMismatch.into());
        }
        let Value::Dict(inner) = msgpack::from_slice(&data, Text::Guess)? else {
            return Err(wrong("it is no map"));
        };
        inner.get("pillar").ok_or_else(|| wrong("it holds no pillar"))
    }

    /// Seals and sends, again if that is safe; returns the reply and the nonce it must carry.
    async fn send(
        &self,
        load: &Dict,
        keys: &Keys,
        timeout: Duration,
    ) -> Result<(Bytes, Nonce), AskError> {
        let repeat = repeat(load);
        let mut left = self.settings.request_tries;
        loop {
            let (body, nonce) = self.seal(load, keys)?;
            left -= 1;
            match self.transport.request(body, timeout).await {
                Ok(reply) => return Ok((reply, nonce)),
                Err(error) => {
                    let again = match &error {
                        LinkError::Closed | LinkError::TooLarge { .. } => false,
                        LinkError::Unreachable { .. } => true,
                        _ => repeat == Repeat::Freely,
                    };
                    if left == 0 || !again {
                        return Err(error.into());
                    }
                    tracing::debug!("asking {} again: {error}", self.address.name);
                }
            }
        }
    }

    fn seal(&self, load: &Dict, keys: &Keys) -> Result<(Bytes, Nonce), AskError> {
        self.seal_as(&self.identity.id, load, keys)
    }

    fn seal_as(&self, id: &str, load: &Dict, keys: &Keys) -> Result<(Bytes, Nonce), AskError> {
        let nonce = Nonce::generate();
        let load = load.shallow_copy();
        load.insert("id", id);
        load.insert("ts", jiff::Timestamp::now().as_second());
        if self.settings.sign_messages {
            // The order of the fields is part of what is signed.
            let signed = msgpack::to_vec(&Value::from(&load), Dialect::Modern)?;
            let sig = self.identity.key.sign(self.identity.sig_algo, &signed)?;
            load.insert("sig", Value::bytes(sig));
        }
        load.insert("nonce", nonce.as_str());
        load.insert("tok", Value::bytes(self.identity.tok().to_vec()));
        let packed = msgpack::to_vec(&load.into(), Dialect::Raw)?;
        let version = keys.version();
        let sealed = Sealed {
            load: keys.requests().seal(&packed, None),
            version,
            id: (version >= 3).then(|| self.identity.id.clone()),
            enc_algo: Some(self.identity.enc_algo.name().into()),
            sig_algo: Some(self.identity.sig_algo.name().into()),
        };
        Ok((Envelope::Sealed(sealed).encode()?.into(), nonce))
    }

    /// Sends a question in the name of `id`, the same frame several times, and gives the replies as
    /// they are. No honest minion does: a swarm's hostile ones try the master with it.
    pub(crate) async fn provoke(&self, id: &str, load: &Dict, times: usize) -> Vec<Bytes> {
        let Some(keys) = self.keys() else { return Vec::new() };
        let Ok((body, _)) = self.seal_as(id, load, &keys) else { return Vec::new() };
        let mut replies = Vec::with_capacity(times);
        for _ in 0..times {
            let reply = self.transport.request(body.clone(), self.settings.auth_timeout).await;
            replies.extend(reply.ok());
        }
        replies
    }

    /// Returns the identification frame of `transport: tcp`.
    pub fn identification(&self) -> Option<Bytes> {
        let keys = self.keys()?;
        let load = Dict::new();
        load.insert("id", &self.identity.id);
        load.insert("tok", Value::bytes(self.identity.tok().to_vec()));
        let packed = msgpack::to_vec(&load.into(), Dialect::Raw).ok()?;
        let sealed = Sealed {
            load: keys.shared.seal(&packed, None),
            version: keys.version(),
            id: None,
            enc_algo: None,
            sig_algo: None,
        };
        Some(Envelope::Sealed(sealed).encode().ok()?.into())
    }

    /// Opens a publication: `None` for a repeat, or one that is not for these ears.
    pub async fn open(&self, publication: &[u8]) -> Result<Option<Dict>, AskError> {
        let sealed = SealedPublication::decode(publication)?;
        let mut keys = match self.keys() {
            Some(keys) => keys,
            None => self.keys_after(None).await?,
        };
        let mut opened = keys.shared.open(&sealed.load, None);
        if matches!(opened, Err(CryptError::Authentication)) {
            tracing::debug!("a publication under another key: signing in again");
            keys = self.keys_after(Some(&keys)).await?;
            opened = keys.shared.open(&sealed.load, None);
        }
        let packed = opened?;
        if self.settings.sign_pub_messages {
            verify(&sealed, &keys)?;
        }
        let Value::Dict(load) = msgpack::from_slice(&packed, Text::Guess)? else {
            return Err(AskError::Reply("a publication is no map".into()));
        };
        if let Some(serial) = load.get("serial").and_then(|serial| serial.to_int())
            && !self.is_new(serial)
        {
            tracing::debug!(serial, "a publication came again");
            return Ok(None);
        }
        Ok(Some(load))
    }

    fn is_new(&self, serial: i64) -> bool {
        self.serial.fetch_max(serial, Ordering::AcqRel) < serial
    }

    /// Sends something whose answer nobody waits for.
    pub(crate) fn tell(self: &Arc<Self>, load: Dict) {
        let own = Arc::clone(self);
        self.handle.spawn(async move {
            if let Err(error) = own.ask(&load).await {
                tracing::warn!("An event did not reach {}: {error}", own.address.name);
            }
        });
    }

    /// Asks from a thread of a job. Ends early when the job is cancelled.
    pub fn ask_now(&self, load: &Dict, cancelled: &dyn Fn() -> bool) -> Result<Value, AskError> {
        self.wait(self.ask(load), cancelled)
    }

    /// Waits for an answer on a thread of a job.
    pub fn wait<T>(
        &self,
        asking: impl Future<Output = Result<T, AskError>>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<T, AskError> {
        const LOOK: Duration = Duration::from_millis(100);
        self.handle.block_on(async {
            tokio::pin!(asking);
            loop {
                tokio::select! {
                    biased;
                    answer = &mut asking => return answer,
                    () = tokio::time::sleep(LOOK) => {
                        if cancelled() {
                            return Err(AskError::Cancelled);
                        }
                    }
                }
            }
        })
    }
}

fn verify(sealed: &SealedPublication, keys: &Keys) -> Result<(), AskError> {
    let (Some(sig), Some(algo)) = (&sealed.sig, &sealed.sig_algo) else {
        return Err(AskError::Reply("a publication is not signed".into()));
    };
    Ok(keys.master.verify(algo.parse()?, &sealed.load, sig)?)
}

/// Takes the sealed bytes out of a reply. Anything else is the signal to sign in again.
fn sealed_bytes(reply: &[u8]) -> Result<Vec<u8>, AskError> {
    let value = msgpack::from_slice(reply, Text::KeepBytes)?;
    match value.as_bytes() {
        Some(bytes) => Ok(bytes.to_vec()),
        None => Err(AskError::Reply(format!("a {} came in clear", value.type_name()))),
    }
}

fn repeat(load: &Dict) -> Repeat {
    let command = load.get("cmd");
    match command.as_ref().and_then(Value::as_str) {
        Some("minion_pub" | "minion_publish" | "minion_runner") => Repeat::IfUnsent,
        _ => Repeat::Freely,
    }
}
