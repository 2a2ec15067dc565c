//! What a minion or a command line tool sees of its master: questions, and a stream of publications.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;

/// A boxed future, so that `dyn Transport` is possible: `main` picks the wire once.
pub type Ask<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A client's end of the wire to one master.
///
/// Nothing is opened before the first [`request`](Transport::request) or [`subscribe`](Transport::subscribe). All
/// functions may be called from many tasks at once; only `next` is meant for one reader.
pub trait Transport: Send + Sync + 'static {
    /// Asks the master one question; connects first if need be, again and again until `timeout`.
    ///
    /// Never sends the question twice. After [`LinkError::Timeout`] or [`LinkError::Lost`] the master may or may not
    /// have handled it; after [`LinkError::Unreachable`] it never left. Concurrent requests do not wait for each
    /// other.
    fn request(&self, body: Bytes, timeout: Duration) -> Ask<'_, Result<Bytes, LinkError>> {
        Box::pin(async move { Ok(self.request_on(body, timeout).await?.0) })
    }

    /// Like [`request`](Transport::request), and tells the number of the connection that carried it.
    ///
    /// For signing in: what a Halite master learns from a sign-in holds for that connection only. If the number equals
    /// [`Linked::connection`] of the last [`Event::Connected`], the link is signed in; if not, do it again.
    fn request_on(
        &self,
        body: Bytes,
        timeout: Duration,
    ) -> Ask<'_, Result<(Bytes, u64), LinkError>>;

    /// Starts (or changes) the stream of publications; [`next`](Transport::next) then reports it.
    ///
    /// Kept up for ever, with back-off, fresh name lookups and heartbeats, until [`close`](Transport::close).
    fn subscribe(&self, subscription: Subscription);

    /// Sends the identification of `transport: tcp` on the publish connection; on other wires it does nothing.
    ///
    /// To be called after each [`Event::Connected`], once signed in. Returns false when there is no connection.
    fn identify(&self, body: Bytes) -> bool;

    /// Sends a notice to a Halite master. Returns false, and sends nothing, when the link is not extended or is down.
    fn notice(&self, body: Bytes) -> bool;

    /// Tells whether the current connection speaks the Halite extension.
    fn is_extended(&self) -> bool;

    /// Waits for the next event; `None` after `close`. Cancel safe.
    ///
    /// Events wait in a bounded queue; while it is full the connection is not read (the master drops and counts).
    fn next(&self) -> Ask<'_, Option<Event>>;

    /// Drops the connections there are, which may be dead without knowing; new ones are made as after any loss.
    fn reconnect(&self);

    /// Ends all connections and wakes all waiters.
    fn close(&self);
}

/// Which publications a client wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// The master's publish port, as it announced it. Not used on an extended link.
    pub port: u16,
    /// ZeroMQ topic prefixes; the empty one is everything. Other wires have no topics.
    pub topics: Vec<Bytes>,
}

impl Subscription {
    /// Returns a subscription to all publications on `port`.
    pub fn everything(port: u16) -> Self {
        Self { port, topics: vec![Bytes::new()] }
    }
}

/// What [`Transport::next`] reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// One publication: the packed envelope, without any topic.
    Publication(Bytes),
    /// A notice from a Halite master.
    Notice(Bytes),
    /// The stream of publications is up, for the first time or again.
    ///
    /// What the master knew about the connection is gone: on an extended link sign in (or resume) again, on tcp
    /// sign in and `identify`; plain ZeroMQ needs neither.
    Connected(Linked),
    /// The stream of publications is down; connecting again has begun. The text says why, for the log.
    Disconnected(String),
}

/// How the client is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Linked {
    /// Both ends speak the Halite extension.
    pub extended: bool,
    /// The number of this connection; each has its own.
    pub connection: u64,
    /// The master's address, as resolved this time. `None` on the simulated network.
    pub remote: Option<SocketAddr>,
}

/// Why a request has no reply.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LinkError {
    /// The request was never sent.
    #[error("no connection to the master at {address} within {waited:?}: {reason}")]
    Unreachable { address: String, waited: Duration, reason: String },
    /// The request was sent and not answered in time.
    #[error("no reply from the master at {address} within {waited:?}")]
    Timeout { address: String, waited: Duration },
    /// The connection ended while waiting for the reply.
    #[error("the connection to the master at {address} was lost: {reason}")]
    Lost { address: String, reason: String },
    /// A Halite master decided not to answer.
    #[error("the master at {address} does not answer this request")]
    Declined { address: String },
    /// The request is larger than the limit.
    #[error("a request of {size} bytes is over the limit of {limit}")]
    TooLarge { size: usize, limit: usize },
    /// [`Transport::close`] was called.
    #[error("the transport is closed")]
    Closed,
}

impl LinkError {
    /// Tells whether the master certainly did not see the request, so that repeating it is safe.
    pub fn never_sent(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::TooLarge { .. })
    }
}
