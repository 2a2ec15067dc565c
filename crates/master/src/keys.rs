//! What follows from a change of keys. The files are the truth, whoever changed them: `salt-key`,
//! `wheel.key`, a person with `rm`. [`Master::sync_accepted`] compares them with what is in memory.

use std::sync::Arc;

use halite_store::{Op, State};
use halite_transport::Peer;
use halite_value::{Dict, Value, dict, entries};
use halite_wire::{MinionId, Notice, Publication, Tag};

use crate::{Error, KeyState, Master, encode, publish};

impl Master {
    /// A key was accepted: the minion can be targeted.
    pub(crate) fn key_accepted(&self, id: &MinionId) {
        self.index.write().set_accepted(id, true);
    }

    /// A key was deleted or rejected: its connections end, its session too. Blocking.
    pub(crate) fn key_gone(&self, id: &MinionId, forget: bool) {
        self.secrets.end_session(id);
        for peer in self.hub.peers_of(id) {
            peer.unbind();
            peer.close();
        }
        // Connections without a name end silently; whoever waits for the minion has to be told.
        let lost = self.jobs.lost(id, "its key was deleted or rejected");
        let ops = lost.into_iter().map(|jid| Op::State {
            jid: jid.to_string(),
            minion: id.to_string(),
            state: State::Lost,
        });
        let _stored_later = self.store.write(ops.collect());
        let mut index = self.index.write();
        index.set_accepted(id, false);
        if forget {
            index.remove(id);
            drop(index);
            self.presence.forget(id);
            let _stored_later = self.store.write(vec![Op::Forget { minion: id.to_string() }]);
        }
    }

    /// Brings the index of minions up to date with the key files. Blocking, mostly one `stat`.
    pub(crate) fn sync_accepted(&self) -> Result<(), Error> {
        self.sync_keys(self.settings.opts.bool("preserve_minion_cache"))
    }

    /// As [`Master::sync_accepted`]; `keep` what is remembered of minions whose key is gone.
    pub(crate) fn sync_keys(&self, keep: bool) -> Result<(), Error> {
        let ids = self.keys.accepted_ids()?;
        let stale = {
            let index = self.index.read();
            // The same list as last time: nothing has changed on disk, and thousands need not be compared.
            let known = self.compared.lock().clone();
            let is_known = known.is_some_and(|known| Arc::ptr_eq(&known, &ids));
            let is_new = |id: &MinionId| !index.is_accepted(id);
            index.accepted_count() != ids.len() || (!is_known && ids.iter().any(is_new))
        };
        if !stale {
            *self.compared.lock() = Some(ids);
            return Ok(());
        }
        let mut gone = Vec::new();
        {
            let mut index = self.index.write();
            for id in index.accepted() {
                if ids.binary_search_by(|own| own.as_str().cmp(id.as_str())).is_err() {
                    index.set_accepted(&id, false);
                    gone.extend(MinionId::new(&id).ok());
                }
            }
            for id in ids.iter() {
                index.set_accepted(id, true);
            }
        }
        // Somebody removed the file: the connection must not outlive it.
        for id in gone {
            tracing::info!("The key of {id} is gone");
            let forget = !keep && self.keys.find(&id).is_none();
            self.key_gone(&id, forget);
        }
        Ok(())
    }

    /// A minion asked for its own key to be deleted.
    pub(crate) fn revoke(&self, id: &MinionId, forget: bool) -> Result<bool, Error> {
        let gone = self.keys.delete(id, KeyState::Accepted)?;
        if gone {
            self.key_gone(id, forget);
            self.fire(&Tag::Key, entries! { "result" => true, "act" => "delete", "id" => id });
            if self.settings.opts.bool("rotate_aes_key") {
                self.rotate()?;
            }
        }
        Ok(gone)
    }

    /// Makes a new shared key, and says so.
    pub(crate) fn rotate(&self) -> Result<(), Error> {
        // Not between the serial and the queue of a publication.
        let order = self.publishing.lock();
        self.secrets.rotate()?;
        self.hand_out();
        drop(order);
        tracing::info!("Rotating master AES key");
        self.bus.fire("key", entries! { "rotate_aes_key" => true });
        if self.settings.opts.bool("ping_on_rotate") {
            // Genuine minions learn of the new key by what they cannot read.
            self.ping_everybody()?;
        }
        Ok(())
    }

    /// Gives the new shared key to the Halite minions that are connected, each under its own
    /// session key. They need not sign in for it, and a fleet of them does not come running because
    /// one key was deleted; the minion whose key that was has no session any more.
    fn hand_out(&self) {
        let shared = self.secrets.shared();
        let load = dict! {
            "is" => "key", "aes" => Value::bytes(shared.key.text().expose().to_vec()),
            "first" => shared.first,
        };
        let Ok(packed) = encode(&load) else { return };
        let sealed = |peer: Peer| {
            let session = self.secrets.session(&peer.id()?)?;
            let notice = Notice::Key(session.crypticle.seal(&packed, None)).encode().ok()?;
            Some((peer, notice.into()))
        };
        let peers = self.hub.peers().into_iter().filter(Peer::is_extended);
        // Whoever does not get it is told by the next publication, as genuine minions are.
        self.hub.notices(peers.filter_map(sealed).collect());
    }

    fn ping_everybody(&self) -> Result<(), Error> {
        let everybody = self.resolve(&"*".into(), "glob", None, Default::default());
        let minions = everybody.map(|found| found.minions).unwrap_or_default();
        let ping = Publication {
            jid: self.jobs.next_jid(),
            fun: "test.ping".into(),
            arg: Vec::new(),
            tgt: "*".into(),
            tgt_type: "glob".into(),
            ret: "".into(),
            user: "root".into(),
            serial: None,
            extra: Dict::new(),
        };
        publish::send(self, &ping, &minions)
    }
}
