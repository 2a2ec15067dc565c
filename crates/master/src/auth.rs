//! Sign-in: the answer to `_auth`.
//!
//! The decision ([`decide`]) is Salt's table of stored state against presented key; what follows
//! from it (files, events, keys on the wire) is around it. All of it is RSA and disk: it runs on a
//! blocking thread.

use halite_crypt::{EncAlgo, PublicKey, SigAlgo, normalise};
use halite_transport::Peer;
use halite_value::{Dict, Value, dict, entries};
use halite_wire::{AuthReply, AuthRequest, EXTENSION, MinionId, Refusal, Welcome};

use crate::{
    Error, KeyState, Master,
    settings::{enc_algo, sig_algo},
};

/// What is to be done with a minion at the door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Let in; the key is stored (again) if `store`.
    Accept {
        store: bool,
    },
    Pend {
        store: bool,
    },
    /// Rejected before, or by rule; stored as such if `store`.
    Reject {
        store: bool,
    },
    /// Another key than the one on file.
    Deny,
}

/// Salt's table. `same` tells whether the key is the stored one.
fn decide(
    open: bool,
    stored: Option<KeyState>,
    same: bool,
    auto_reject: impl Fn() -> bool,
    auto_accept: impl Fn() -> bool,
) -> Verdict {
    if open {
        return Verdict::Accept { store: stored != Some(KeyState::Accepted) || !same };
    }
    match stored {
        Some(KeyState::Rejected | KeyState::Denied) => Verdict::Reject { store: false },
        Some(KeyState::Accepted) if same => Verdict::Accept { store: false },
        Some(KeyState::Accepted) => Verdict::Deny,
        None if auto_reject() => Verdict::Reject { store: true },
        None if auto_accept() => Verdict::Accept { store: true },
        None => Verdict::Pend { store: true },
        Some(KeyState::Pending) if auto_reject() => Verdict::Reject { store: true },
        Some(KeyState::Pending) if !same => Verdict::Deny,
        Some(KeyState::Pending) if auto_accept() => Verdict::Accept { store: true },
        Some(KeyState::Pending) => Verdict::Pend { store: false },
    }
}

/// Answers `_auth`. Blocking. The connection learns nothing from it: whoever can read the answer
/// shows it by the first request sealed with the session inside.
pub(crate) fn sign_in(
    master: &Master,
    peer: &Peer,
    load: &Dict,
    version: i64,
) -> Result<Vec<u8>, Error> {
    let request = match AuthRequest::read(load) {
        Ok(request) => request,
        Err(halite_wire::Error::MinionId(id)) => {
            tracing::info!("Authentication request from invalid id {id}");
            // Signed like any other refusal: a minion must be able to tell that it was us.
            let nonce = load.get("nonce").map(|nonce| nonce.to_str());
            let algo = sig_algo(load.get("sig_algo").map(|name| name.to_str()).as_ref());
            let reply = AuthReply::Refused(Refusal::Denied);
            return sealed(master, &reply, nonce.as_deref(), algo.unwrap_or_default(), version);
        }
        Err(error) => {
            tracing::debug!("An unusable sign-in: {error}");
            return text("Some exception handling minion payload");
        }
    };
    let Some(sig) = sig_algo(request.sig_algo.as_ref()) else {
        return clear_ret("bad sig algo");
    };
    let Some(enc) = enc_algo(request.enc_algo.as_ref()) else {
        return match request.token {
            Some(_) => clear_ret("bad enc algo"),
            None => text("Some exception handling minion payload"),
        };
    };
    tracing::info!("Authentication request from {}", request.id);
    let refuse = |refusal: Refusal| {
        let reply = AuthReply::Refused(refusal);
        sealed(master, &reply, request.nonce.as_deref(), sig, version)
    };
    if is_full(master, &request.id) {
        tracing::info!(
            "Too many minions connected (max_minions={}). Rejecting connection from id {}",
            master.settings.max_minions,
            request.id
        );
        fire(master, &request, false, "full");
        return refuse(Refusal::Full);
    }
    // A key nobody can use is refused before it gets a file.
    let Ok(key) = PublicKey::from_pem(request.public_key.as_bytes()) else {
        tracing::error!("Corrupt public key from {}", request.id);
        fire(master, &request, false, "error");
        return refuse(Refusal::Denied);
    };
    match judged(master, peer, &request)? {
        Verdict::Accept { .. } => {}
        Verdict::Pend { .. } => return refuse(Refusal::Pending),
        Verdict::Reject { .. } | Verdict::Deny => return refuse(Refusal::Denied),
    }
    // As with a publication: who signs in may come because of an edit.
    master.pillar.look_again();
    let welcome = welcome(master, &request, &key, enc)?;
    let nonce = request.nonce.as_deref();
    let reply = sealed(master, &AuthReply::Welcome(Box::new(welcome)), nonce, sig, version)?;
    // Its time begins with the answer.
    expect(master, peer, &request);
    fire(master, &request, true, "accept");
    Ok(reply)
}

/// A Halite minion that is going to take jobs must not miss those that are published before its
/// connection has a name.
fn expect(master: &Master, peer: &Peer, request: &AuthRequest) {
    let listens = |own: &Dict| own.get("listens").is_some_and(|listens| listens.truthy());
    let is_known = peer.is_subscribed() && peer.id().as_deref() == Some(request.id.as_str());
    if peer.is_extended() && !is_known && request.halite.as_ref().is_some_and(listens) {
        master.arriving.expect(&request.id, peer.serial());
    }
}

/// Decides, stores what follows, and tells the bus (except for an acceptance: that comes with the
/// keys).
fn judged(master: &Master, peer: &Peer, request: &AuthRequest) -> Result<Verdict, Error> {
    let id = &request.id;
    let stored = master.keys.find(id);
    let same =
        stored.as_ref().is_some_and(|(_, text)| halite_crypt::same_key(text, &request.public_key));
    let verdict = decide(
        master.settings.opts.bool("open_mode"),
        stored.as_ref().map(|(state, _)| *state),
        same,
        || master.admission.rejects(id),
        || master.admission.accepts(id, &request.autosign_grains),
    );
    let text = normalise(&request.public_key);
    let put = |state| master.keys.put(state, id, &text);
    match verdict {
        Verdict::Accept { store } => {
            // Before its key counts: from then on jobs are meant for it, and what follows (RSA, a
            // file for its session) takes long on a busy machine.
            expect(master, peer, request);
            if store {
                put(KeyState::Accepted)?;
            }
            // Also if the file was there before: when it goes, somebody must have known of it.
            if !master.index.read().is_accepted(id) {
                master.key_accepted(id);
            }
            tracing::info!("{id} signed in");
        }
        Verdict::Pend { store } => {
            if store {
                tracing::info!("{id} is new; its key waits to be accepted");
                put(KeyState::Pending)?;
            } else {
                tracing::info!(
                    "{id} asked again, but nobody has accepted its key yet: salt-key -a {id}"
                );
            }
            fire(master, request, true, "pend");
        }
        Verdict::Reject { store } => {
            if store {
                tracing::info!("{id} is new and on the list of those to refuse");
                put(KeyState::Rejected)?;
            } else {
                tracing::info!("{id} asked again, but its key was refused for good");
            }
            fire(master, request, false, "reject");
        }
        Verdict::Deny => {
            tracing::error!(
                "somebody calls itself {id} and has another key than the one known: an intruder, or a minion that was set up anew"
            );
            put(KeyState::Denied)?;
            fire(master, request, false, "denied");
        }
    }
    Ok(verdict)
}

fn is_full(master: &Master, id: &MinionId) -> bool {
    let most = master.settings.max_minions;
    if most == 0 {
        return false;
    }
    let connected = master.presence.ids();
    // Who is in keeps its place.
    connected.len() >= most && !connected.iter().any(|known| known.as_str() == id.as_str())
}

fn welcome(
    master: &Master,
    request: &AuthRequest,
    key: &PublicKey,
    enc: EncAlgo,
) -> Result<Welcome, Error> {
    let session = master.secrets.open_session(&request.id)?;
    let shared = master.secrets.shared();
    // A token made for another master's key cannot be read: Salt then leaves it out.
    let token = match &request.token {
        None => None,
        Some(token) => match master.secrets.master.decrypt(enc, token) {
            Ok(clear) => Some(key.encrypt(enc, clear.expose())?),
            Err(_) => None,
        },
    };
    Ok(Welcome {
        public_key: master.secrets.master.public().text().into(),
        publish_port: master.publish_port().into(),
        aes: shared.key.wrap(key, enc)?,
        session: Some(session.key.wrap(key, enc)?),
        aes_sig: shared.proof.clone(),
        token,
        public_key_sig: master.secrets.signed_public.clone().map(String::into_bytes),
        halite: request.halite.as_ref().map(|_| {
            entries! {
                "version" => EXTENSION, "first" => shared.first,
                "known" => master.has_data_of(&request.id),
            }
        }),
    })
}

/// Signs a reply, as version 2 and later want it.
fn sealed(
    master: &Master,
    reply: &AuthReply,
    nonce: Option<&str>,
    algo: SigAlgo,
    version: i64,
) -> Result<Vec<u8>, Error> {
    if version < 2 {
        return Ok(reply.encode(None)?);
    }
    let body = reply.encode(nonce)?;
    let sig = master.secrets.master.sign(algo, &body)?;
    Ok(AuthReply::signed(body, sig)?)
}

fn clear_ret(ret: &str) -> Result<Vec<u8>, Error> {
    crate::encode(&dict! { "enc" => "clear", "load" => dict! { "ret" => ret } })
}

fn text(text: &str) -> Result<Vec<u8>, Error> {
    crate::encode(&Value::from(text))
}

fn fire(master: &Master, request: &AuthRequest, result: bool, act: &str) {
    if !master.settings.opts.bool("auth_events") {
        return;
    }
    let event = entries! {
        "result" => result, "act" => act, "id" => &request.id, "pub" => &request.public_key,
    };
    // The option lists the kinds of events (`pend` …) that repeat what the minion sent for it.
    let wanted = master.settings.opts.str_list("auth_events_autosign_grains");
    let pending = master.settings.opts.bool("auth_events_pend_autosign_grains");
    let is_wanted = wanted.iter().any(|kind| *kind == act) || act == "pend" && pending;
    if is_wanted && !request.autosign_grains.is_empty() {
        event.insert("autosign_grains", &request.autosign_grains);
    }
    master.bus.fire("salt/auth", event);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_salts() {
        use KeyState::{Accepted, Pending, Rejected};
        use Verdict::{Accept, Deny, Pend, Reject};
        let check = |stored, same, reject: bool, accept: bool, expected: Verdict| {
            let verdict = decide(false, stored, same, || reject, || accept);
            assert_eq!(verdict, expected, "{stored:?} {same} {reject} {accept}");
        };
        for (reject, accept) in [(false, false), (true, false), (false, true), (true, true)] {
            check(Some(Rejected), true, reject, accept, Reject { store: false });
            check(Some(Accepted), true, reject, accept, Accept { store: false });
            check(Some(Accepted), false, reject, accept, Deny);
        }
        check(None, false, false, false, Pend { store: true });
        check(None, false, true, true, Reject { store: true });
        check(None, false, false, true, Accept { store: true });
        check(Some(Pending), true, false, false, Pend { store: false });
        check(Some(Pending), false, false, false, Deny);
        check(Some(Pending), false, false, true, Deny);
        check(Some(Pending), true, false, true, Accept { store: true });
        check(Some(Pending), true, true, true, Reject { store: true });
        assert_eq!(decide(true, Some(Rejected), false, || true, || false), Accept { store: true });
    }
}
