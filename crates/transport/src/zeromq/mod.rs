//! Salt's default wire: ZeroMQ, spoken from the ZMTP frames up.
//!
//! * [`serve`]: a ROUTER-like request listener and a PUB-like publisher for genuine REQ and SUB peers; peers that are
//!   Halite too get the one-connection [`extension`].
//! * The client ([`connect`](crate::connect)) is REQ and SUB towards a genuine master, the extension towards ours.
//!
//! There is no identity table: a reply goes to the connection its request came from, so two peers with one identity both
//! get answers.

pub mod extension;
mod pulse;
mod server;
mod session;
pub(crate) mod zmtp;

use bytes::{BufMut, Bytes, BytesMut};

pub use server::serve;
pub(crate) use server::serve_stream;
pub(crate) use session::Session;

/// Returns a publication as it goes to plain subscribers: one frame, or topic and payload.
pub(crate) fn publication(topic: Option<&Bytes>, body: &Bytes) -> Bytes {
    let mut out = BytesMut::with_capacity(18 + topic.map_or(0, Bytes::len) + body.len());
    if let Some(topic) = topic {
        zmtp::put_header(&mut out, true, false, topic.len());
        out.put_slice(topic);
    }
    zmtp::put_header(&mut out, false, false, body.len());
    out.put_slice(body);
    out.freeze()
}

/// Returns a request as a REQ socket sends it: an empty delimiter, then the body.
pub(crate) fn request(body: Bytes) -> [Bytes; 2] {
    let mut head = BytesMut::with_capacity(11);
    zmtp::put_header(&mut head, true, false, 0);
    zmtp::put_header(&mut head, false, false, body.len());
    [head.freeze(), body]
}
