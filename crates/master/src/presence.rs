//! Who is connected, and what can be known about it.
//!
//! A Halite minion is on one connection that carries everything: if that is gone, so is the
//! minion. A genuine minion over tcp identifies its publish connection: the same. A genuine minion
//! over ZeroMQ or ws subscribes without a name, so its absence cannot be known, only guessed.

use std::collections::HashMap;

use halite_value::SmolStr;
use halite_wire::MinionId;
use parking_lot::RwLock;

/// How a minion is connected when it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Its subscription has a name.
    Named,
    /// Its subscription has none.
    Anonymous,
}

/// What was learnt about minions' connections.
#[derive(Default)]
pub struct Presence {
    kinds: RwLock<HashMap<MinionId, Kind>>,
    hub: std::sync::OnceLock<halite_transport::Hub>,
}

impl Presence {
    pub fn new(hub: halite_transport::Hub) -> Self {
        let presence = Self::default();
        let _ = presence.hub.set(hub);
        presence
    }

    /// Remembers the kind; true if it is news.
    pub fn learn(&self, id: &MinionId, kind: Kind) -> bool {
        if self.kinds.read().get(id) == Some(&kind) {
            return false;
        }
        self.kinds.write().insert(id.clone(), kind);
        true
    }

    pub fn forget(&self, id: &str) {
        self.kinds.write().remove(id);
    }

    pub fn kind(&self, id: &str) -> Option<Kind> {
        self.kinds.read().get(id).copied()
    }

    /// Returns everybody who has an open connection of any sort, sorted.
    pub fn ids(&self) -> Vec<SmolStr> {
        let Some(hub) = self.hub.get() else { return Vec::new() };
        let mut ids: Vec<SmolStr> =
            hub.peers().iter().filter_map(|peer| peer.id()).map(|id| SmolStr::new(&*id)).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}
