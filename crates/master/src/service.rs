//! The door: opens what comes in, finds out who asks, seals the answer.
//!
//! An envelope is clear (sign-in, local clients) or sealed under a session key. Whatever cannot be
//! opened is answered `bad load` at once, which makes a genuine minion sign in again; silence would
//! cost it a minute. Nothing here looks a name up: a request is a variant of a closed enum, or
//! refused.

use std::sync::Arc;

use bytes::Bytes;
use halite_crypt::{Crypticle, Nonce};
use halite_transport::{Ended, Peer, Service};
use halite_value::{
    Dict, Value,
    msgpack::{self, Text},
};
use halite_wire::{Envelope, IN_SESSION, MinionId, Notice, RETURNS, Sealed, Tag};

use crate::{
    Counters, Error, Master, SERVING, SIGNING_IN, auth, brief, clients, encode,
    presence::Kind,
    requests,
    secrets::{Freshness, Session},
};
use halite_store::{Op, State};

/// From this size on, opening and sealing leave the network's threads.
const LARGE: usize = 256 << 10;

/// Answers for the master on every transport.
pub(crate) struct Door(pub Arc<Master>);

/// A request whose sender is proven.
pub(crate) struct Opened {
    /// `None`: a version 2 minion that did not say who it is, which a few requests allow.
    pub(crate) id: Option<MinionId>,
    pub(crate) load: Dict,
    pub(crate) version: i64,
    pub(crate) enc_algo: Option<halite_value::SmolStr>,
    pub(crate) sig_algo: Option<halite_value::SmolStr>,
    pub(crate) nonce: Option<Nonce>,
    key: ReplyKey,
}

enum ReplyKey {
    Session(Arc<Session>),
    Shared(Arc<crate::secrets::Shared>),
}

impl Opened {
    fn crypticle(&self) -> &Crypticle {
        match &self.key {
            ReplyKey::Session(session) => &session.crypticle,
            ReplyKey::Shared(shared) => &shared.crypticle,
        }
    }

    /// Tells whether the sender asked for a private answer under its session key, and has one.
    pub(crate) fn in_session(&self) -> bool {
        matches!(self.key, ReplyKey::Session(_))
            && self.load.get(IN_SESSION).is_some_and(|asked| asked.truthy())
    }

    /// Seals an answer.
    pub(crate) fn seal(&self, answer: &Value) -> Result<Vec<u8>, Error> {
        let sealed = self.crypticle().seal(&encode(answer)?, self.nonce.as_ref());
        encode(&Value::bytes(sealed))
    }
}

/// Why a request was not opened. All of them are answered alike.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Shut {
    #[error("no such session, or another key")]
    Session,
    #[error("not what a minion would seal")]
    Malformed,
    #[error("the id in the load is not the sender's")]
    Impersonation,
    #[error("the token does not prove the key")]
    Token,
    #[error("the request is too old")]
    Expired,
    #[error("the request was seen before")]
    Replay,
    #[error("the return is not signed, or not by that minion")]
    Signature,
}

impl Service for Door {
    async fn request(&self, peer: &Peer, body: Bytes) -> Option<Bytes> {
        match answer(&self.0, peer, body).await {
            Ok(reply) => reply.map(Bytes::from),
            Err(error) => {
                tracing::error!("A request was not answered: {error}");
                Some(plain("Some exception handling minion payload"))
            }
        }
    }

    async fn identify(&self, _peer: &Peer, body: Bytes) -> Option<String> {
        let master = self.0.clone();
        let id = brief(&SERVING, move || identify(&master, &body)).await.ok()??;
        if self.0.presence.learn(&id, Kind::Named) {
            self.0.note_kind(&id, "tcp");
        }
        Some(id.to_string())
    }

    fn subscribed(&self, peer: &Peer) {
        if let Some(id) = peer.id() {
            self.0.jobs.back(&id);
            self.0.catch_up(&id);
            self.0.upkeep_presence();
        }
    }

    fn notice(&self, peer: &Peer, body: Bytes) {
        let Some(id) = peer.id() else { return };
        let Ok(notice) = Notice::decode(&body) else { return };
        let (jid, state) = match notice {
            Notice::Received(jid) => (jid, State::Received),
            Notice::Started(jid) => (jid, State::Started),
            Notice::Refused(jid, why) => {
                tracing::debug!("{id} refused the job {jid}: {why}");
                (jid, State::Refused)
            }
            Notice::Running(_) | Notice::Key(_) | Notice::SignIn => return,
        };
        self.0.jobs.step(&jid, &id, state);
        let op = Op::State { jid: jid.to_string(), minion: id.to_string(), state };
        let _stored_later = self.0.store.write(vec![op]);
    }

    fn down(&self, peer: &Peer, why: &Ended) {
        self.0.give_up_arriving(self.0.arriving.ended(peer.serial()));
        let Some(id) = peer.id() else { return };
        // Another connection of the same minion may carry on.
        if !peer.is_subscribed() || self.0.hub.is_connected(&id) {
            return;
        }
        tracing::debug!("{id} is gone: {why}");
        let jids = self.0.jobs.lost(&id, &why.to_string());
        let lost = |jid: halite_value::SmolStr| Op::State {
            jid: jid.to_string(),
            minion: id.to_string(),
            state: State::Lost,
        };
        if !jids.is_empty() {
            let _stored_later = self.0.store.write(jids.into_iter().map(lost).collect());
        }
        self.0.upkeep_presence();
    }
}

fn plain(text: &str) -> Bytes {
    encode(&text.into()).unwrap_or_default().into()
}

fn bad_load(master: &Master) -> Option<Vec<u8>> {
    Counters::count(&master.counters.bad_loads);
    Some(plain("bad load").to_vec())
}

async fn answer(master: &Arc<Master>, peer: &Peer, body: Bytes) -> Result<Option<Vec<u8>>, Error> {
    let envelope = if body.len() > LARGE {
        let body = body.clone();
        brief(&SERVING, move || Envelope::decode(&body)).await?
    } else {
        Envelope::decode(&body)
    };
    match envelope {
        Ok(Envelope::Clear { load, version }) => {
            if version < master.settings.minimum_auth_version {
                tracing::warn!(
                    "Rejected authentication attempt using protocol version {version} (minimum required: {})",
                    master.settings.minimum_auth_version
                );
                return Ok(bad_load(master));
            }
            clear(master, peer, load, version).await
        }
        Ok(Envelope::Sealed(sealed)) => {
            if sealed.version < master.settings.minimum_auth_version {
                return Ok(bad_load(master));
            }
            minion_request(master, peer, sealed).await
        }
        Err(error) => {
            tracing::debug!("A malformed request from {:?}: {error}", peer.addr());
            Ok(match error {
                halite_wire::Error::NotMap | halite_wire::Error::Type("load") => {
                    Counters::count(&master.counters.bad_loads);
                    Some(plain("payload and load must be a dict").to_vec())
                }
                halite_wire::Error::MinionId(id) if id.contains("\\0") => {
                    Counters::count(&master.counters.bad_loads);
                    Some(plain("bad load: id contains a null byte").to_vec())
                }
                _ => bad_load(master),
            })
        }
    }
}

async fn clear(
    master: &Arc<Master>,
    peer: &Peer,
    load: Dict,
    version: i64,
) -> Result<Option<Vec<u8>>, Error> {
    if let Some(id) = load.get("id") {
        match &id {
            Value::Str(text) if text.contains('\0') => {
                return Ok(Some(plain("bad load: id contains a null byte").to_vec()));
            }
            Value::Str(_) | Value::Null => {}
            other => {
                let text = format!("bad load: id {} is not a string", other.to_str());
                return Ok(Some(plain(&text).to_vec()));
            }
        }
    }
    if load.get("cmd").is_some_and(|cmd| cmd == *"_auth") {
        let (owner, peer) = (master.clone(), peer.clone());
        let begun = master.stats.begin(&load);
        let work = move || auth::sign_in(&owner, &peer, &load, version);
        let signed_in = brief(&SIGNING_IN, work).await?;
        master.count_request(begun);
        return Ok(Some(signed_in?));
    }
    let begun = master.stats.begin(&load);
    let reply = clients::answer(master, &load).await;
    master.count_request(begun);
    Ok(Some(encode(&reply)?))
}

async fn minion_request(
    master: &Arc<Master>,
    peer: &Peer,
    sealed: Sealed,
) -> Result<Option<Vec<u8>>, Error> {
    // Only what is in memory is opened here; a session on disk costs a thread.
    let known = sealed.id.as_ref().is_none_or(|id| master.secrets.session(id).is_some());
    let opened = if known && sealed.load.len() <= LARGE {
        open(master, sealed)
    } else {
        let owner = master.clone();
        brief(&SERVING, move || {
            if let Some(id) = &sealed.id {
                // Only an accepted minion gets its session into memory.
                if !owner.keys.is_accepted(id) || owner.secrets.stored_session(id).is_none() {
                    return Err(Shut::Session);
                }
            }
            open(&owner, sealed)
        })
        .await?
    };
    let opened = match opened {
        Ok(opened) => opened,
        Err(shut) => {
            match shut {
                Shut::Replay => Counters::count(&master.counters.replays),
                Shut::Impersonation => Counters::count(&master.counters.impersonations),
                _ => {}
            }
            tracing::debug!("A request from {:?} was refused: {shut}", peer.addr());
            return Ok(bad_load(master));
        }
    };
    if let Some(id) = &opened.id
        && peer.id().as_deref() != Some(id.as_str())
    {
        master.admit(peer, id);
    }
    let begun = master.stats.begin(&opened.load);
    let answered = requests::answer(master, opened).await;
    master.count_request(begun);
    answered
}

/// Opens a request and proves its sender.
fn open(master: &Master, sealed: Sealed) -> Result<Opened, Shut> {
    let key = match &sealed.id {
        Some(id) if sealed.version >= 3 => {
            ReplyKey::Session(master.secrets.session(id).ok_or(Shut::Session)?)
        }
        None if sealed.version < 3 => ReplyKey::Shared(master.secrets.shared()),
        _ => return Err(Shut::Malformed),
    };
    let crypticle = match &key {
        ReplyKey::Session(session) => &session.crypticle,
        ReplyKey::Shared(shared) => &shared.crypticle,
    };
    let clear = crypticle.open(&sealed.load, None).map_err(|_| Shut::Session)?;
    let Ok(Value::Dict(load)) = msgpack::from_slice(&clear, Text::Guess) else {
        return Err(Shut::Malformed);
    };
    let named = match load.get("id") {
        None | Some(Value::Null) => None,
        Some(Value::Str(id)) => Some(MinionId::new(&id).map_err(|_| Shut::Malformed)?),
        Some(_) => return Err(Shut::Malformed),
    };
    let ts = load.get("ts").and_then(|ts| ts.to_int());
    if let (Some(ttl), true) = (master.settings.request_ttl, sealed.version >= 3) {
        let now = jiff::Timestamp::now().as_second();
        let age = now - ts.ok_or(Shut::Expired)?;
        if age > i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX) {
            tracing::warn!("Received request is expired, ttl exceeded");
            return Err(Shut::Expired);
        }
    }
    if sealed.id.is_some() && named != sealed.id {
        tracing::warn!("Request id mismatch. Found '{named:?}' but expected '{:?}'", sealed.id);
        return Err(Shut::Impersonation);
    }
    let token = load.remove("tok");
    let id = match (named, token) {
        (None, _) => None,
        (Some(id), Some(token)) => {
            prove(master, &id, &key, token.as_bytes().ok_or(Shut::Malformed)?)?;
            Some(id)
        }
        (Some(_), None) if sealed.version >= 3 => return Err(Shut::Token),
        // Old minions do not prove themselves everywhere; see `requests::answer`.
        (Some(_), None) => None,
    };
    let nonce = match load.remove("nonce") {
        Some(Value::Str(text)) => Some(Nonce::parse(&text).map_err(|_| Shut::Malformed)?),
        _ if sealed.version >= 3 => return Err(Shut::Malformed),
        _ => None,
    };
    if let Some(nonce) = &nonce {
        let freshness = match &key {
            ReplyKey::Session(session) => session.judge(nonce.as_str(), ts),
            ReplyKey::Shared(shared) => {
                let now = jiff::Timestamp::now().as_second();
                shared.seen.lock().judge(nonce.as_str(), Some(now))
            }
        };
        if freshness != Freshness::Fresh {
            tracing::warn!("A request of {:?} was seen before, or is too old", id.as_deref());
            return Err(Shut::Replay);
        }
    }
    let Sealed { version, enc_algo, sig_algo, .. } = sealed;
    let sig = load.remove("sig");
    if load.get("cmd").is_some_and(|cmd| cmd == *"_return" || cmd == *RETURNS) {
        check_signature(master, id.as_ref(), &load, sig.as_ref(), sig_algo.as_ref())?;
    }
    Ok(Opened { id, load, version, enc_algo, sig_algo, nonce, key })
}

/// Checks the signature of a return, where the options ask for one (`require_minion_sign_messages`,
/// `drop_messages_signature_fail`).
fn check_signature(
    master: &Master,
    id: Option<&MinionId>,
    load: &Dict,
    sig: Option<&Value>,
    algo: Option<&halite_value::SmolStr>,
) -> Result<(), Shut> {
    let opts = &master.settings.opts;
    let Some(sig) = sig.filter(|sig| sig.truthy()) else {
        return match opts.bool("require_minion_sign_messages") {
            true => Err(Shut::Signature),
            false => Ok(()),
        };
    };
    let is_good = || -> Option<bool> {
        let accepted = master.keys.accepted(id?)?;
        let algo = crate::settings::sig_algo(algo)?;
        let sig = sig.as_bytes()?;
        // What is signed has changed over time: with the time stamp, and before without it.
        let older = load.shallow_copy();
        older.remove("ts");
        Some([load, &older].into_iter().any(|load| {
            let packed = msgpack::to_vec(&load.into(), msgpack::Dialect::Modern);
            packed.is_ok_and(|packed| accepted.key.verify(algo, &packed, sig).is_ok())
        }))
    };
    if is_good() == Some(true) {
        return Ok(());
    }
    tracing::error!("The signature of a return of {:?} is wrong", id.map(MinionId::as_str));
    match opts.bool("drop_messages_signature_fail") {
        true => Err(Shut::Signature),
        false => Ok(()),
    }
}

/// Checks a token against the accepted key. It never changes, so the last good one is remembered.
fn prove(master: &Master, id: &MinionId, key: &ReplyKey, token: &[u8]) -> Result<(), Shut> {
    let accepted = master.keys.accepted(id).ok_or(Shut::Token)?;
    let memory = match key {
        ReplyKey::Session(session) => Some(&session.token),
        ReplyKey::Shared(_) => None,
    };
    if let Some(memory) = memory
        && let Some((known, version)) = &*memory.lock()
        && *version == accepted.version
        && halite_crypt::same(known, token)
    {
        return Ok(());
    }
    accepted.key.verify_token(token).map_err(|_| Shut::Token)?;
    if let Some(memory) = memory {
        *memory.lock() = Some((token.to_vec(), accepted.version));
    }
    Ok(())
}

/// Checks the identification frame of a tcp minion. Blocking.
fn identify(master: &Master, body: &[u8]) -> Option<MinionId> {
    let Ok(Envelope::Sealed(sealed)) = Envelope::decode(body) else { return None };
    let shared = master.secrets.shared();
    let clear = shared.crypticle.open(&sealed.load, None).ok()?;
    let Ok(Value::Dict(load)) = msgpack::from_slice(&clear, Text::Guess) else { return None };
    let id = MinionId::new(load.get("id")?.as_str()?).ok()?;
    let token = load.get("tok")?;
    master.keys.accepted(&id)?.key.verify_token(token.as_bytes()?).ok()?;
    Some(id)
}

impl Master {
    /// A minion has proven itself on a connection: by a request that was sealed with its session,
    /// carried its token and was not seen before. A sign-in alone proves nothing: anybody can send
    /// one in anybody's name, and not understand the answer.
    fn admit(self: &Arc<Self>, peer: &Peer, id: &MinionId) {
        if peer.is_extended() && self.presence.learn(id, Kind::Named) {
            self.note_kind(id, "halite");
        }
        // On a plain connection only for «who has a connection»; publications do not go by it.
        let binding = peer.bind(id);
        if peer.is_extended() && binding == halite_transport::Binding::Subscribed {
            self.jobs.back(id);
            self.catch_up(id);
            self.upkeep_presence();
        }
    }

    pub(crate) fn note_kind(&self, id: &MinionId, kind: &str) {
        let op = Op::Put { bank: "kind", key: id.to_string(), value: kind.into() };
        let _stored_later = self.store.write(vec![op]);
    }

    /// Fires an event for a tag of ours.
    pub(crate) fn fire(&self, tag: &Tag, data: Dict) {
        self.bus.fire(tag.to_string(), data);
    }
}
