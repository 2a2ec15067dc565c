//! What follows from a change of keys. The files are the truth, whoever changed them: `salt-key`,
//! `wheel.key`, a person with `rm`. [`Master::sync_accepted`] compares them with what is in memory.

use halite_store::Op;
use halite_value::entries;
use halite_wire::{MinionId, Tag};

use crate::{Error, KeyState, Master};

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
            let known = index.accepted();
            known.len() != ids.len() || ids.iter().any(|id| !index.is_accepted(id))
        };
        if !stale {
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
        let _order = self.publishing.lock();
        self.secrets.rotate()?;
        tracing::info!("Rotating master AES key");
        self.bus.fire("key", entries! { "rotate_aes_key" => true });
        Ok(())
    }
}
