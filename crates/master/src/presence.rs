//! Who is connected, and what can be known about it.
//!
//! A Halite minion is on one connection that carries everything: if that is gone, so is the
//! minion. A genuine minion over tcp identifies its publish connection: the same. A genuine minion
//! over ZeroMQ or ws subscribes without a name, so its absence cannot be known, only guessed.

use std::collections::HashMap;

use halite_value::SmolStr;
use halite_wire::MinionId;
use parking_lot::RwLock;

/// How a minion is connected when it is: nothing is known of those whose subscription has no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Its subscription has a name.
    Named,
}

/// What was learnt about minions' connections.
#[derive(Default)]
pub(crate) struct Presence {
    kinds: RwLock<HashMap<MinionId, Kind>>,
    hub: std::sync::OnceLock<halite_transport::Hub>,
}

impl Presence {
    pub(crate) fn new(hub: halite_transport::Hub) -> Self {
        let presence = Self::default();
        let _ = presence.hub.set(hub);
        presence
    }

    /// Remembers the kind; true if it is news.
    pub(crate) fn learn(&self, id: &MinionId, kind: Kind) -> bool {
        if self.kinds.read().get(id) == Some(&kind) {
            return false;
        }
        self.kinds.write().insert(id.clone(), kind);
        true
    }

    pub(crate) fn forget(&self, id: &str) {
        self.kinds.write().remove(id);
    }

    pub(crate) fn kind(&self, id: &str) -> Option<Kind> {
        self.kinds.read().get(id).copied()
    }

    /// Returns everybody who has an open connection of any sort, sorted.
    pub(crate) fn ids(&self) -> Vec<SmolStr> {
        let Some(hub) = self.hub.get() else { return Vec::new() };
        let mut ids: Vec<SmolStr> = hub
            .peers()
            .iter()
            .filter_map(halite_transport::Peer::id)
            .map(|id| SmolStr::new(&*id))
            .collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}
