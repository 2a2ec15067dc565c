//! The Halite extension: one connection for everything.
//!
//! Negotiated by the property `X-Halite` in READY on a request connection (REQ to ROUTER). From then on both ends send
//! single ZMTP message frames of this form, ZMTP commands (PING, PONG) between them as before:
//!
//! | first byte | then | direction |
//! |---|---|---|
//! | 1 request | id (8 bytes, big-endian), body | to the master |
//! | 2 reply | id, body | to the minion |
//! | 3 publication | body | to the minion |
//! | 4 notice | body | both |
//! | 5 subscribe | nothing | to the master |
//! | 6 declined | id: there will be no reply | to the minion |
//!
//! Requests are answered in any order. Unknown first bytes are ignored, so that a later version may add some.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::zmtp;

const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const PUBLICATION: u8 = 3;
const NOTICE: u8 = 4;
const SUBSCRIBE: u8 = 5;
const DECLINED: u8 = 6;

/// How much a frame adds to a body, at most.
pub(crate) const OVERHEAD: usize = 16;

/// One message of the extension.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Request(u64, Bytes),
    Reply(u64, Bytes),
    Publication(Bytes),
    Notice(Bytes),
    Subscribe,
    Declined(u64),
    Unknown,
}

/// Reads a frame's body; `None` if it is cut short.
pub(crate) fn parse(mut body: Bytes) -> Option<Message> {
    let kind = body.try_get_u8().ok()?;
    Some(match kind {
        REQUEST => Message::Request(body.try_get_u64().ok()?, body),
        REPLY => Message::Reply(body.try_get_u64().ok()?, body),
        PUBLICATION => Message::Publication(body),
        NOTICE => Message::Notice(body),
        SUBSCRIBE => Message::Subscribe,
        DECLINED => Message::Declined(body.try_get_u64().ok()?),
        _ => Message::Unknown,
    })
}

fn head(kind: u8, id: Option<u64>, body: usize) -> Bytes {
    let mut out = BytesMut::with_capacity(9 + 9);
    zmtp::put_header(&mut out, false, false, 1 + id.map_or(0, |_| 8) + body);
    out.put_u8(kind);
    if let Some(id) = id {
        out.put_u64(id);
    }
    out.freeze()
}

pub(crate) fn request(id: u64, body: Bytes) -> [Bytes; 2] {
    [head(REQUEST, Some(id), body.len()), body]
}

pub(crate) fn reply(id: u64, body: Bytes) -> [Bytes; 2] {
    [head(REPLY, Some(id), body.len()), body]
}

pub(crate) fn declined(id: u64) -> [Bytes; 1] {
    [head(DECLINED, Some(id), 0)]
}

pub(crate) fn subscribe() -> [Bytes; 1] {
    [head(SUBSCRIBE, None, 0)]
}

pub(crate) fn notice(body: Bytes) -> [Bytes; 2] {
    [head(NOTICE, None, body.len()), body]
}

/// Returns a publication as one piece, to be shared by many connections.
pub(crate) fn publication(body: &Bytes) -> Bytes {
    let head = head(PUBLICATION, None, body.len());
    let mut out = BytesMut::with_capacity(head.len() + body.len());
    out.put_slice(&head);
    out.put_slice(body);
    out.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pieces: &[Bytes], expected: Message) {
        let mut buf = BytesMut::new();
        for piece in pieces {
            buf.extend_from_slice(piece);
        }
        let Ok(zmtp::Front::Frame(frame)) = zmtp::take_frame(&mut buf, 1 << 20) else {
            panic!("a whole frame")
        };
        assert!(buf.is_empty() && !frame.command && !frame.more);
        assert_eq!(parse(frame.body), Some(expected));
    }

    #[test]
    fn round_trips() {
        let body = Bytes::from(vec![5; 300]);
        check(&request(7, body.clone()), Message::Request(7, body.clone()));
        check(&reply(u64::MAX, Bytes::new()), Message::Reply(u64::MAX, Bytes::new()));
        check(&[publication(&body)], Message::Publication(body.clone()));
        check(&notice(body.clone()), Message::Notice(body));
        check(&subscribe(), Message::Subscribe);
        check(&declined(3), Message::Declined(3));
    }

    #[test]
    fn cut_short_or_unknown() {
        assert_eq!(parse(Bytes::new()), None);
        assert_eq!(parse(Bytes::from_static(b"\x01\0\0")), None);
        assert_eq!(parse(Bytes::from_static(b"\x09whatever")), Some(Message::Unknown));
    }
}
