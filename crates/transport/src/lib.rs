//! Carries sealed bytes between master and minions on Salt's wire.
//!
//! Knows no keys, no jobs, no tags: a request is bytes in, a reply is bytes out, a publication is bytes for
//! many. What the bytes mean (msgpack envelopes, ciphertexts) is the business of the crates above.
//!
//! # The master's side
//!
//! Implement [`Service`], make one [`Hub`], hand both to a transport:
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use bytes::Bytes;
//! # use halite_transport::{Delivery, Hub, Peer, ServerOptions, Service, zeromq};
//! struct Master;
//! impl Service for Master {
//!     async fn request(&self, peer: &Peer, body: Bytes) -> Option<Bytes> {
//!         // … once the sender has proved who it is:
//!         peer.bind("web1");
//!         Some(body)
//!     }
//! }
//! # async fn start() -> Result<(), Box<dyn std::error::Error>> {
//! let hub = Hub::new();
//! let server = zeromq::serve(&ServerOptions::default(), &hub, Arc::new(Master)).await?;
//! let receipt = hub.publish(Delivery::all(), Bytes::from_static(b"sealed job")).await;
//! # drop((server, receipt)); Ok(()) }
//! ```
//!
//! * Every connection is a [`Peer`]. [`Peer::bind`] ties a proven id to it; [`Service::down`] tells at once when
//!   it ends, so bound peers are presence.
//! * [`Hub::publish`] delivers to all, to ids, or by ZeroMQ topic, encodes once per wire format, never waits for a slow
//!   reader, and keeps the order of the calls.
//! * One hub may serve several transports at the same time.
//!
//! # The minion's side
//!
//! [`connect`] gives an `Arc<dyn Transport>`, whatever the wire:
//!
//! ```no_run
//! # use std::time::Duration;
//! # use bytes::Bytes;
//! # use halite_transport::{ClientOptions, Event, Kind, Subscription, connect};
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let link = connect(Kind::ZeroMq, ClientOptions::new("salt", 4506));
//! let reply = link.request(Bytes::from_static(b"sealed sign-in"), Duration::from_secs(5)).await?;
//! link.subscribe(Subscription::everything(4505));
//! while let Some(event) = link.next().await {
//!     match event {
//!         Event::Connected(up) => { /* sign in, unless that was done over this very connection */ }
//!         Event::Publication(sealed) => { /* open it, match it, run it */ }
//!         Event::Notice(_) | Event::Disconnected(_) => {}
//!     }
//! }
//! # drop(reply); Ok(()) }
//! ```
//!
//! # The Halite extension
//!
//! When both ends of a ZeroMQ request connection are Halite (each announces `X-Halite` in its ZMTP READY), that one
//! connection carries requests, replies, publications, notices and heartbeats. Nothing changes in the API:
//! [`Transport::subscribe`] then opens no second connection, [`Peer::is_extended`] is true on the master, and a
//! [`Peer::notice`] reaches the other end as [`Event::Notice`]. See [`zeromq::extension`] for the frames.
//!
//! # What is surprising
//!
//! * A [`Peer`] handle does not keep its socket open; it only stops working when the connection ends.
//! * Nothing here retries a request that may have reached the master: the caller knows whether that is safe.

mod client;
mod dial;
mod dialect;
mod drive;
mod events;
mod hub;
pub mod ipc;
mod keeper;
mod lane;
mod link;
mod listen;
mod msgpack;
mod options;
mod outlet;
mod peer;
mod random;
mod service;
pub mod simulated;
pub mod tcp;
mod tls;
pub mod ws;
pub mod zeromq;

pub use client::{Ask, Event, LinkError, Linked, Subscription, Transport};
pub use hub::{Delivery, Hub, Receipt, Sending, Statistics};
pub use options::{
    CertReqs, ClientOptions, Heartbeat, Keepalive, Kind, Limits, Reconnect, ServerOptions, Ssl,
};
pub use peer::{Binding, Ended, Peer, Role};
pub use service::{ServeError, Server, Service};
pub use tls::{acceptor as tls_acceptor, client_config as tls_client};

use std::sync::Arc;

/// Returns a client for the given wire. It connects when first used, inside a tokio runtime.
pub fn connect(kind: Kind, options: ClientOptions) -> Arc<dyn Transport> {
    Arc::new(keeper::Client::new(kind, options))
}
