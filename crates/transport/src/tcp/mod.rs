//! Salt's `transport: tcp`: a stream of msgpack maps `{"head": …, "body": …}` without any length.
//!
//! * Request port: the head carries a message id, which the reply repeats; several questions may be open at once.
//! * Publish port: the subscriber sends one identification frame, which [`Service::identify`](crate::Service::identify)
//!   judges; until then it gets only what is for everybody.
//!
//! A publication's body is a byte string that holds the packed envelope. 3006 masters send the envelope itself, and a
//! client here takes both. There is no heartbeat on this wire; TCP keepalive has to find dead links.

mod server;
mod session;

use bytes::Bytes;

use crate::msgpack;

pub use server::serve;
pub(crate) use session::Session;

/// How much the map around a body adds, at most, for what we send ourselves.
const OVERHEAD: usize = 4 << 10;

/// Returns everything that stands before a body: `{"head": <head>, "body":`.
fn before(head: &[u8], more: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(1 + 5 + head.len() + 5 + more);
    out.push(0x82);
    out.extend_from_slice(b"\xa4head");
    out.extend_from_slice(head);
    out.extend_from_slice(b"\xa4body");
    out
}

/// The empty head.
const NO_HEAD: &[u8] = b"\x80";

/// Returns a frame around a packed body.
pub(crate) fn frame(head: &[u8], body: Bytes) -> [Bytes; 2] {
    [before(head, 0).into(), body]
}

/// Returns a frame around a body that becomes a byte string; one piece, to be shared.
pub(crate) fn bytes_frame(head: &[u8], body: &[u8]) -> Bytes {
    let mut out = before(head, 5 + body.len());
    msgpack::put_bin_header(&mut out, body.len());
    out.extend_from_slice(body);
    out.into()
}

pub(crate) fn publication(body: &Bytes) -> Bytes {
    bytes_frame(NO_HEAD, body)
}

pub(crate) fn identification(body: Bytes) -> [Bytes; 2] {
    frame(NO_HEAD, body)
}

/// Returns a request with its number as message id (as text, 32 characters, as Salt's).
pub(crate) fn request(id: u64, body: Bytes) -> [Bytes; 2] {
    let mut head = b"\x81\xa3mid\xd9\x20".to_vec();
    head.extend_from_slice(format!("{id:032x}").as_bytes());
    frame(&head, body)
}

/// Returns the number in a reply's head.
fn number(head: &Bytes) -> Option<u64> {
    let [mid] = msgpack::lookup(head, ["mid"])?;
    let text = msgpack::content(&mid?)?;
    u64::from_str_radix(std::str::from_utf8(&text).ok()?, 16).ok()
}
