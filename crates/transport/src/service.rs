//! What a master implements to be served by a transport, and the handle of a running listener.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;

use crate::listen::Gate;
use crate::peer::{Ended, Peer};

/// Answers what comes in over any transport.
///
/// The plain functions are called on the connection's own task: they must return at once (set a flag, send on a
/// channel). `request` runs as a task of its own, so it may take its time; a panic in it ends this one request.
pub trait Service: Send + Sync + 'static {
    /// Answers one request; `body` and the reply are one msgpack object each, whatever the wire.
    ///
    /// `None` sends nothing: a Salt peer then runs into its timeout, a Halite peer is told so at once. A ZeroMQ REQ
    /// peer gets its replies in the order of its requests, everyone else as they are ready. The answer goes to the
    /// connection the request came from; if that has ended it is dropped, and the future still runs to its end.
    fn request(&self, peer: &Peer, body: Bytes) -> impl Future<Output = Option<Bytes>> + Send;

    /// Checks the identification frame that a tcp minion sends on the publish port, and returns the id it proves.
    ///
    /// The transport binds that id, then calls [`Service::subscribed`].
    fn identify(&self, _peer: &Peer, _body: Bytes) -> impl Future<Output = Option<String>> + Send {
        std::future::ready(None)
    }

    /// A connection has finished its handshake.
    fn up(&self, _peer: &Peer) {}

    /// The peer now takes publications: it subscribed (ZeroMQ: for the first time) or identified itself (tcp).
    ///
    /// Together with the answer of [`Peer::bind`] this tells when a bound peer can be reached: whichever of the two
    /// comes second sees both. (It can happen that both see both; catch-up must not mind being asked twice.)
    fn subscribed(&self, _peer: &Peer) {}

    /// A Halite peer sent a notice: one way, unordered against requests, ordered against other notices.
    fn notice(&self, _peer: &Peer, _body: Bytes) {}

    /// A connection for which `up` was called has ended. [`Peer::id`] still tells the id that was bound; the hub no
    /// longer counts it.
    fn down(&self, _peer: &Peer, _why: &Ended) {}
}

/// Why a listener could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot listen on {address}: {source}")]
    Bind { address: String, source: std::io::Error },
    #[error("cannot resolve the interface {name}: {source}")]
    Resolve { name: String, source: std::io::Error },
    #[error("ssl: {0}")]
    Ssl(String),
}

/// A running listener pair. Dropping it stops listening and ends all its connections.
#[derive(Debug)]
pub struct Server {
    pub(crate) requests: SocketAddr,
    pub(crate) publications: SocketAddr,
    pub(crate) gate: Arc<Gate>,
}

impl Server {
    /// Returns where requests are accepted (the port is the real one, also if 0 was asked for).
    pub fn request_addr(&self) -> SocketAddr {
        self.requests
    }

    /// Returns where subscribers are accepted.
    pub fn publish_addr(&self) -> SocketAddr {
        self.publications
    }

    /// Stops listening and ends all connections.
    pub fn stop(&self) {
        self.gate.stop();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}
