//! ZMTP 3.1 on the byte level: greeting, frames, commands. Accepts 3.0 peers; NULL mechanism only.
//!
//! Nothing here waits or allocates ahead of the data: a frame's 64-bit length is compared with the limit before
//! anything else is done with it, and a frame leaves as a slice of the buffer it arrived in.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::peer::Ended;

pub(crate) const GREETING_LEN: usize = 64;

const MORE: u8 = 0x01;
const LONG: u8 = 0x02;
const COMMAND: u8 = 0x04;

/// Handshake commands are small; a stranger gets no more than this before READY.
pub(crate) const HANDSHAKE_LIMIT: usize = 8 << 10;

/// The property both ends announce to agree on the Halite extension; its value is the version, in ASCII.
pub(crate) const EXTENSION: &str = "X-Halite";
pub(crate) const EXTENSION_VERSION: &[u8] = b"1";

/// Returns our greeting: all 64 bytes at once, version 3.1, NULL.
pub(crate) fn greeting() -> Bytes {
    let mut greeting = BytesMut::zeroed(GREETING_LEN);
    greeting[0] = 0xff;
    greeting[8] = 0x01; // libzmq sets this bit too; ancient peers read it as a length
    greeting[9] = 0x7f;
    greeting[10] = 3;
    greeting[11] = 1;
    greeting[12..16].copy_from_slice(b"NULL");
    greeting.freeze()
}

/// Takes the peer's greeting, once it is complete, and returns its minor version.
pub(crate) fn take_greeting(buf: &mut BytesMut) -> Result<Option<u8>, Ended> {
    // What is wrong is said as soon as it can be seen: a port scanner need not send 64 bytes.
    if buf.first().is_some_and(|&first| first != 0xff) || buf.get(9).is_some_and(|&b| b & 1 == 0) {
        return Err(malformed("not a ZMTP greeting"));
    }
    if let Some(&major) = buf.get(10)
        && major < 3
    {
        return Err(malformed(&format!("ZMTP {major} is too old, 3.0 is needed")));
    }
    if buf.len() < GREETING_LEN {
        return Ok(None);
    }
    let greeting = buf.split_to(GREETING_LEN);
    let mechanism = greeting[12..32].split(|&b| b == 0).next().unwrap_or_default();
    if mechanism != b"NULL" {
        let name = String::from_utf8_lossy(mechanism);
        return Err(malformed(&format!("security mechanism {name:?} is not supported")));
    }
    Ok(Some(if greeting[10] > 3 { u8::MAX } else { greeting[11] }))
}

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) more: bool,
    pub(crate) command: bool,
    pub(crate) body: Bytes,
}

/// What the front of the buffer holds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Front {
    Frame(Frame),
    /// Incomplete; so many more bytes are needed, as far as can be told.
    Wants(usize),
}

/// Takes the next frame off the buffer, if it is complete.
pub(crate) fn take_frame(buf: &mut BytesMut, limit: usize) -> Result<Front, Ended> {
    let Some(&flags) = buf.first() else { return Ok(Front::Wants(2)) };
    if flags & !(MORE | LONG | COMMAND) != 0 || flags & (MORE | COMMAND) == MORE | COMMAND {
        return Err(malformed(&format!("invalid frame flags {flags:#04x}")));
    }
    let header = if flags & LONG == 0 { 2 } else { 9 };
    if buf.len() < header {
        return Ok(Front::Wants(header - buf.len()));
    }
    let size = if flags & LONG == 0 {
        u64::from(buf[1])
    } else {
        buf[1..9].iter().fold(0, |size, &byte| size << 8 | u64::from(byte))
    };
    let Some(size) = usize::try_from(size).ok().filter(|&size| size <= limit) else {
        return Err(Ended::TooLarge { size, limit });
    };
    // Cannot wrap: `size` is below a limit that itself fits in memory.
    if buf.len() - header < size {
        return Ok(Front::Wants(size - (buf.len() - header)));
    }
    buf.advance(header);
    let body = buf.split_to(size).freeze();
    Ok(Front::Frame(Frame { more: flags & MORE != 0, command: flags & COMMAND != 0, body }))
}

/// Writes the header of a frame whose body has `size` bytes.
pub(crate) fn put_header(out: &mut BytesMut, more: bool, command: bool, size: usize) {
    let flags = if more { MORE } else { 0 } | if command { COMMAND } else { 0 };
    if let Ok(short) = u8::try_from(size) {
        out.put_u8(flags);
        out.put_u8(short);
    } else {
        out.put_u8(flags | LONG);
        out.put_u64(size as u64);
    }
}

/// Returns a whole command frame.
pub(crate) fn command(name: &str, data: &[u8]) -> Bytes {
    let size = 1 + name.len() + data.len();
    let mut out = BytesMut::with_capacity(9 + size);
    put_header(&mut out, false, true, size);
    out.put_u8(u8::try_from(name.len()).expect("command names are short constants"));
    out.put_slice(name.as_bytes());
    out.put_slice(data);
    out.freeze()
}

/// Splits the body of a command frame into name and data.
pub(crate) fn split_command(body: &Bytes) -> Result<(&[u8], Bytes), Ended> {
    let length = usize::from(*body.first().ok_or_else(|| malformed("an empty command"))?);
    let name = body.get(1..=length).ok_or_else(|| malformed("a command name without end"))?;
    Ok((name, body.slice(1 + length..)))
}

/// Returns a READY command.
pub(crate) fn ready(properties: &[(&str, &[u8])]) -> Bytes {
    let mut data = BytesMut::new();
    for (name, value) in properties {
        data.put_u8(u8::try_from(name.len()).expect("property names are short constants"));
        data.put_slice(name.as_bytes());
        data.put_u32(u32::try_from(value.len()).expect("property values are short"));
        data.put_slice(value);
    }
    command("READY", &data)
}

/// Returns the properties of a READY command; names are compared without regard to case.
pub(crate) fn properties(mut data: Bytes) -> Result<Vec<(String, Bytes)>, Ended> {
    let mut properties = Vec::new();
    while data.has_remaining() {
        let length = usize::from(data.get_u8());
        if data.remaining() < length + 4 {
            return Err(malformed("a READY property without end"));
        }
        let name = String::from_utf8_lossy(&data.split_to(length)).to_ascii_lowercase();
        let length = data.get_u32() as usize;
        if data.remaining() < length {
            return Err(malformed("a READY value without end"));
        }
        properties.push((name, data.split_to(length)));
    }
    Ok(properties)
}

/// What a PING asks: the PONG to send, and how long we may hear nothing before the link is dead (0: no word).
pub(crate) fn answer_ping(data: &Bytes) -> Result<(Bytes, std::time::Duration), Ended> {
    if data.len() < 2 {
        return Err(malformed("a PING without time-to-live"));
    }
    let ttl = u64::from(u16::from_be_bytes([data[0], data[1]]));
    // The context is at most 16 bytes; a longer one is cut, not echoed at length.
    let context = &data[2..data.len().min(18)];
    Ok((command("PONG", context), std::time::Duration::from_millis(ttl * 100)))
}

/// Returns a PING that allows silence for `ttl`.
pub(crate) fn ping(ttl: std::time::Duration) -> Bytes {
    let deciseconds = u16::try_from(ttl.as_millis() / 100).unwrap_or(u16::MAX);
    command("PING", &deciseconds.to_be_bytes())
}

/// Returns an ERROR command.
pub(crate) fn error(reason: &str) -> Bytes {
    let reason = &reason.as_bytes()[..reason.len().min(255)];
    let mut data = vec![u8::try_from(reason.len()).expect("cut to 255")];
    data.extend_from_slice(reason);
    command("ERROR", &data)
}

pub(crate) fn malformed(text: &str) -> Ended {
    Ended::Malformed(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn frame(bytes: &[u8]) -> Result<Front, Ended> {
        take_frame(&mut BytesMut::from(bytes), 1000)
    }

    #[test]
    fn frames_long_and_short() {
        let body = |bytes: &'static [u8]| Bytes::from_static(bytes);
        let whole = |more, command, b| Ok(Front::Frame(Frame { more, command, body: body(b) }));
        assert_eq!(frame(b"\x01\x03abc"), whole(true, false, b"abc"));
        assert_eq!(frame(b"\x04\x01xrest"), whole(false, true, b"x"));
        assert_eq!(frame(b"\x02\0\0\0\0\0\0\0\x02hi"), whole(false, false, b"hi"));
        assert_eq!(frame(b"\x00\x03ab"), Ok(Front::Wants(1)));
        assert_eq!(frame(b"\x02\0\0"), Ok(Front::Wants(6)));
        assert_eq!(frame(b""), Ok(Front::Wants(2)));
    }

    #[test]
    fn hostile_lengths_and_flags_are_refused_before_anything_is_allocated() {
        assert_eq!(
            frame(b"\x02\xff\xff\xff\xff\xff\xff\xff\xff"),
            Err(Ended::TooLarge { size: u64::MAX, limit: 1000 })
        );
        assert_eq!(
            frame(b"\x02\0\0\0\0\0\0\x03\xe9"),
            Err(Ended::TooLarge { size: 1001, limit: 1000 })
        );
        assert!(frame(b"\x08\x01a").is_err());
        assert!(frame(b"\x05\x01a").is_err(), "a command has no MORE");
    }

    #[test]
    fn greetings() {
        let mut ours = BytesMut::from(&greeting()[..]);
        assert_eq!(take_greeting(&mut ours), Ok(Some(1)));
        assert!(ours.is_empty());
        assert_eq!(take_greeting(&mut BytesMut::from(&greeting()[..63])), Ok(None));
        assert!(take_greeting(&mut BytesMut::from(&b"GET / HTTP/1.1"[..])).is_err());
        let mut old = BytesMut::from(&greeting()[..11]);
        old[10] = 1;
        assert!(take_greeting(&mut old).is_err());
        let mut curve = BytesMut::from(&greeting()[..]);
        curve[12..17].copy_from_slice(b"CURVE");
        assert!(take_greeting(&mut curve).is_err());
    }

    #[test]
    fn ready_round_trip() {
        let sent = ready(&[("Socket-Type", b"REQ"), (EXTENSION, b"1")]);
        let Ok(Front::Frame(frame)) = take_frame(&mut BytesMut::from(&sent[..]), 1000) else {
            panic!("a whole frame")
        };
        let (name, data) = split_command(&frame.body).expect("a command");
        assert_eq!(name, b"READY");
        let got = properties(data).expect("properties");
        assert_eq!(got[0], ("socket-type".into(), Bytes::from_static(b"REQ")));
        assert_eq!(got[1], ("x-halite".into(), Bytes::from_static(b"1")));
    }

    #[test]
    fn random_and_mutated_bytes_never_panic() {
        let mut random = Random::new(7);
        let mut seed = BytesMut::from(&greeting()[..]);
        seed.extend_from_slice(&ready(&[("Socket-Type", b"SUB"), ("Identity", b"")]));
        seed.extend_from_slice(&command("SUBSCRIBE", b"topic"));
        seed.extend_from_slice(&ping(std::time::Duration::from_secs(3)));
        for _ in 0..20_000 {
            let mut bytes = seed.clone();
            for _ in 0..random.below(6) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = random.next() as u8;
            }
            bytes.truncate(random.below(bytes.len() as u64 + 1) as usize);
            if take_greeting(&mut bytes).is_err() {
                continue;
            }
            while let Ok(Front::Frame(frame)) = take_frame(&mut bytes, 1 << 16) {
                if let Ok((name, data)) = split_command(&frame.body) {
                    let _ = (name == b"READY").then(|| properties(data.clone()));
                    let _ = answer_ping(&data);
                }
            }
        }
    }
}
