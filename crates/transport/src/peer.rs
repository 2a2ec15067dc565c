//! One connection as the master sees it.
//!
//! A [`Peer`] is a cheap handle. It does not keep the socket: once the connection has ended every function is a
//! harmless no-op, and handles held by slow requests cost no descriptor.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use parking_lot::Mutex;

use crate::hub::{Hub, Inner as HubInner};
use crate::outlet::{Keep, Outlet, Sent};
use crate::zeromq::extension;

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Asks questions (request port).
    Requester,
    /// Takes publications (publish port).
    Subscriber,
    /// Both: a Halite peer on one connection.
    Extended,
}

/// What [`Peer::bind`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    /// Bound; the peer takes publications.
    Subscribed,
    /// Bound; the peer has not asked for publications (`salt-call`, or not yet).
    Silent,
    /// The connection has ended already: nothing was bound, and `down` was or is being called.
    Gone,
}

/// Why a connection ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Ended {
    #[error("the peer closed the connection")]
    PeerClosed,
    #[error("{0}")]
    Io(String),
    #[error("nothing heard for {0:?}")]
    Silent(std::time::Duration),
    #[error("the handshake was not finished in time")]
    HandshakeTimeout,
    #[error("{0}")]
    Malformed(String),
    #[error("a message of {size} bytes is over the limit of {limit}")]
    TooLarge { size: u64, limit: usize },
    #[error("too many bytes of unfinished messages")]
    Crowded,
    #[error("the peer does not read what it is sent")]
    Clogged,
    #[error("closed by this side")]
    Closed,
}

/// How publications and notices are written on this connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Zmtp,
    Extended,
    Tcp,
    Ws,
}

/// One connection.
#[derive(Clone)]
pub struct Peer(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) serial: u64,
    pub(crate) addr: Option<SocketAddr>,
    pub(crate) outlet: Outlet,
    pub(crate) hub: Weak<HubInner>,
    pub(crate) hwm: usize,
    /// Known after the handshake only; a ZeroMQ request connection may turn out to be extended.
    nature: OnceLock<(Role, Wire)>,
    id: Mutex<Option<Arc<str>>>,
    subscribed: AtomicBool,
    certificates: OnceLock<Vec<Vec<u8>>>,
}

impl Peer {
    pub(crate) fn new(hub: &Hub, addr: Option<SocketAddr>, outlet: Outlet, hwm: usize) -> Self {
        Self(Arc::new(Inner {
            serial: hub.next_serial(),
            addr,
            outlet,
            hub: hub.downgrade(),
            hwm,
            nature: OnceLock::new(),
            id: Mutex::new(None),
            subscribed: AtomicBool::new(false),
            certificates: OnceLock::new(),
        }))
    }

    /// Ties a proven id to this connection, in place of any earlier one.
    ///
    /// From now on [`Hub::publish`] reaches it by this id (if it subscribed), and [`Service::down`] reports the id. An
    /// id may be bound to several connections (`salt-call` beside `salt-minion`, or an old connection not yet known to be
    /// dead): publications go to all that subscribed.
    ///
    /// [`Service::down`]: crate::Service::down
    pub fn bind(&self, id: &str) -> Binding {
        self.0.hub.upgrade().map_or(Binding::Gone, |hub| hub.bind(self, id))
    }

    /// Takes the id off this connection again.
    pub fn unbind(&self) {
        if let Some(hub) = self.0.hub.upgrade() {
            hub.unbind(self);
        }
    }

    /// Returns the bound id.
    pub fn id(&self) -> Option<Arc<str>> {
        self.0.id.lock().clone()
    }

    /// Returns a number that no other connection of this hub has or had.
    pub fn serial(&self) -> u64 {
        self.0.serial
    }

    /// Returns the address of the other end; `None` on the simulated network.
    pub fn addr(&self) -> Option<SocketAddr> {
        self.0.addr
    }

    /// Returns what the connection is for.
    pub fn role(&self) -> Role {
        self.nature().0
    }

    /// Tells whether the other end is Halite, on the one connection for everything.
    pub fn is_extended(&self) -> bool {
        self.role() == Role::Extended
    }

    /// Tells whether the peer takes publications.
    pub fn is_subscribed(&self) -> bool {
        self.0.subscribed.load(Ordering::Acquire)
    }

    /// Returns the certificates the peer showed (DER, its own first), if TLS is used and it showed any.
    pub fn certificates(&self) -> &[Vec<u8>] {
        self.0.certificates.get().map_or(&[], Vec::as_slice)
    }

    /// Sends a notice to a Halite peer; false when it is none, has ended, or reads too slowly.
    pub fn notice(&self, body: Bytes) -> bool {
        let pieces = match self.nature().1 {
            Wire::Extended => extension::notice(body),
            Wire::Zmtp | Wire::Tcp | Wire::Ws => return false,
        };
        matches!(self.0.outlet.send(&pieces, Keep::UpTo(self.0.hwm)), Sent::Written | Sent::Queued)
    }

    /// Ends the connection. [`Service::down`](crate::Service::down) follows.
    pub fn close(&self) {
        self.0.outlet.close(Ended::Closed);
    }

    /// Tells whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.0.outlet.has_ended()
    }

    pub(crate) fn become_(&self, role: Role, wire: Wire) {
        // The handshake is done once; a second call would be ours to fix, and must not change what others saw.
        let _ = self.0.nature.set((role, wire));
    }

    pub(crate) fn set_certificates(&self, certificates: Vec<Vec<u8>>) {
        let _ = self.0.certificates.set(certificates);
    }

    fn nature(&self) -> (Role, Wire) {
        *self.0.nature.get().unwrap_or(&(Role::Requester, Wire::Zmtp))
    }

    pub(crate) fn wire(&self) -> Wire {
        self.nature().1
    }

    pub(crate) fn set_id(&self, id: Option<Arc<str>>) -> Option<Arc<str>> {
        std::mem::replace(&mut *self.0.id.lock(), id)
    }

    /// Marks the peer as taking publications; true if it did not before.
    pub(crate) fn set_subscribed(&self, yes: bool) -> bool {
        self.0.subscribed.swap(yes, Ordering::AcqRel) != yes
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer")
            .field("serial", &self.0.serial)
            .field("addr", &self.0.addr)
            .field("id", &self.id())
            .field("role", &self.role())
            .finish_non_exhaustive()
    }
}
