//! The little of msgpack that framing needs: where an object ends, and what is under a key. Values stay bytes.

use bytes::{Buf, Bytes, BytesMut};
use rmp::Marker;

use crate::peer::Ended;

/// Finds the end of the object at the front of a growing buffer, without looking at any byte twice.
#[derive(Debug)]
pub(crate) struct Scanner {
    /// How far we are; may lie beyond the buffer, in a string that is still coming.
    at: usize,
    /// Objects that must still be read to complete the outermost.
    pending: u64,
}

impl Default for Scanner {
    fn default() -> Self {
        Self { at: 0, pending: 1 }
    }
}

/// What a scan found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Scan {
    /// The object ends here.
    Ends(usize),
    /// At least so many more bytes are needed.
    Wants(usize),
}

impl Scanner {
    /// Scans on. The buffer must begin with what was scanned before.
    pub(crate) fn scan(&mut self, buf: &[u8], limit: usize) -> Result<Scan, Ended> {
        while self.pending > 0 {
            let Some(rest) = buf.get(self.at..).filter(|rest| !rest.is_empty()) else {
                return Ok(Scan::Wants((self.at - buf.len()).max(1)));
            };
            let Some(Shape { size, children }) = shape(rest)? else { return Ok(Scan::Wants(1)) };
            self.pending = self.pending - 1 + children;
            // Every object that is still to come has at least one byte.
            let least = size.saturating_add(self.at as u64).saturating_add(self.pending);
            if least > limit as u64 {
                return Err(Ended::TooLarge { size: least, limit });
            }
            // Fits: it is not above the limit, which is a usize.
            self.at += usize::try_from(size).unwrap_or(limit);
        }
        let end = self.at;
        if end > buf.len() {
            return Ok(Scan::Wants(end - buf.len()));
        }
        *self = Self::default();
        Ok(Scan::Ends(end))
    }
}

struct Shape {
    /// Bytes of the object itself, without children.
    size: u64,
    children: u64,
}

/// Returns the shape of the object at the front; `None` if its header is not complete.
fn shape(bytes: &[u8]) -> Result<Option<Shape>, Ended> {
    let Some(&first) = bytes.first() else { return Ok(None) };
    let number = |width: usize| -> Option<u64> {
        let digits = bytes.get(1..=width)?;
        Some(digits.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    };
    let scalar = |size: u64| Some(Shape { size, children: 0 });
    let counted = |width: u64, extra: u64| {
        let length = number(usize::try_from(width).unwrap_or(4))?;
        Some(Shape { size: 1 + width + extra + length, children: 0 })
    };
    let parent = |width: u64, each: u64| {
        let length = number(usize::try_from(width).unwrap_or(4))?;
        Some(Shape { size: 1 + width, children: length * each })
    };
    Ok(match Marker::from_u8(first) {
        Marker::FixPos(_) | Marker::FixNeg(_) | Marker::Null | Marker::True | Marker::False => {
            scalar(1)
        }
        Marker::U8 | Marker::I8 => scalar(2),
        Marker::U16 | Marker::I16 => scalar(3),
        Marker::U32 | Marker::I32 | Marker::F32 => scalar(5),
        Marker::U64 | Marker::I64 | Marker::F64 => scalar(9),
        Marker::FixStr(length) => scalar(1 + u64::from(length)),
        Marker::Str8 | Marker::Bin8 => counted(1, 0),
        Marker::Str16 | Marker::Bin16 => counted(2, 0),
        Marker::Str32 | Marker::Bin32 => counted(4, 0),
        Marker::FixExt1 => scalar(3),
        Marker::FixExt2 => scalar(4),
        Marker::FixExt4 => scalar(6),
        Marker::FixExt8 => scalar(10),
        Marker::FixExt16 => scalar(18),
        Marker::Ext8 => counted(1, 1),
        Marker::Ext16 => counted(2, 1),
        Marker::Ext32 => counted(4, 1),
        Marker::FixArray(length) => Some(Shape { size: 1, children: u64::from(length) }),
        Marker::Array16 => parent(2, 1),
        Marker::Array32 => parent(4, 1),
        Marker::FixMap(length) => Some(Shape { size: 1, children: 2 * u64::from(length) }),
        Marker::Map16 => parent(2, 2),
        Marker::Map32 => parent(4, 2),
        Marker::Reserved => return Err(Ended::Malformed("not msgpack".into())),
    })
}

/// Takes the next complete object off the buffer.
pub(crate) fn take(
    scanner: &mut Scanner,
    buf: &mut BytesMut,
    limit: usize,
) -> Result<Result<Bytes, usize>, Ended> {
    Ok(match scanner.scan(buf, limit)? {
        Scan::Ends(end) => Ok(buf.split_to(end).freeze()),
        Scan::Wants(bytes) => Err(bytes),
    })
}

/// Splits a complete object off the front.
fn split_object(rest: &mut Bytes) -> Option<Bytes> {
    match Scanner::default().scan(rest, usize::MAX) {
        Ok(Scan::Ends(end)) => Some(rest.split_to(end)),
        _ => None,
    }
}

/// Returns what a map has under each of the given text keys, as packed bytes; `None` if it is no map.
pub(crate) fn lookup<const N: usize>(map: &Bytes, keys: [&str; N]) -> Option<[Option<Bytes>; N]> {
    let (length, header) = match Marker::from_u8(*map.first()?) {
        Marker::FixMap(length) => (u64::from(length), 1),
        Marker::Map16 => (shape(map).ok()??.children / 2, 3),
        Marker::Map32 => (shape(map).ok()??.children / 2, 5),
        _ => return None,
    };
    let mut rest = map.clone();
    rest.advance(header);
    let mut found = [const { None }; N];
    for _ in 0..length {
        let key = split_object(&mut rest)?;
        let value = split_object(&mut rest)?;
        let Some(text) = content(&key) else { continue };
        if let Some(at) = keys.iter().position(|key| key.as_bytes() == text) {
            found[at] = Some(value);
        }
    }
    Some(found)
}

/// Returns the content of a packed string or byte string.
pub(crate) fn content(object: &Bytes) -> Option<Bytes> {
    let header = match Marker::from_u8(*object.first()?) {
        Marker::FixStr(_) => 1,
        Marker::Str8 | Marker::Bin8 => 2,
        Marker::Str16 | Marker::Bin16 => 3,
        Marker::Str32 | Marker::Bin32 => 5,
        _ => return None,
    };
    (object.len() >= header).then(|| object.slice(header..))
}

/// Writes the header of a byte string.
pub(crate) fn put_bin_header(out: &mut Vec<u8>, length: usize) {
    let length = u32::try_from(length).expect("messages are limited far below 4 GiB");
    rmp::encode::write_bin_len(out, length).expect("writing to memory");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn sample() -> Vec<u8> {
        let mut out = Vec::new();
        rmp::encode::write_map_len(&mut out, 3).expect("memory");
        rmp::encode::write_str(&mut out, "head").expect("memory");
        rmp::encode::write_map_len(&mut out, 1).expect("memory");
        rmp::encode::write_str(&mut out, "mid").expect("memory");
        rmp::encode::write_uint(&mut out, 70_000).expect("memory");
        rmp::encode::write_uint(&mut out, 5).expect("memory");
        rmp::encode::write_array_len(&mut out, 2).expect("memory");
        rmp::encode::write_f64(&mut out, 1.5).expect("memory");
        rmp::encode::write_ext_meta(&mut out, 4, 78).expect("memory");
        out.extend_from_slice(b"abcd");
        rmp::encode::write_str(&mut out, "body").expect("memory");
        rmp::encode::write_bin(&mut out, &[7; 300]).expect("memory");
        out
    }

    #[test]
    fn an_object_is_found_however_it_is_cut() {
        let whole = sample();
        for step in [1, 2, 3, 7, 100, 1000] {
            let (mut scanner, mut buf) = (Scanner::default(), BytesMut::new());
            let mut found = Vec::new();
            for piece in [&whole[..], &whole[..]].concat().chunks(step) {
                buf.extend_from_slice(piece);
                while let Ok(object) = take(&mut scanner, &mut buf, 1000).expect("well-formed") {
                    found.push(object);
                }
            }
            assert_eq!(found, [whole.clone(), whole.clone()]);
        }
    }

    #[test]
    fn keys_are_found_beside_others() {
        let whole = Bytes::from(sample());
        let [head, body, none] = lookup(&whole, ["head", "body", "none"]).expect("a map");
        let [mid] = lookup(&head.expect("a head"), ["mid"]).expect("a map");
        assert_eq!(mid.expect("a mid"), &b"\xce\x00\x01\x11\x70"[..]);
        assert_eq!(content(&body.expect("a body")), Some(Bytes::from(vec![7; 300])));
        assert_eq!(none, None);
        assert_eq!(lookup(&Bytes::from_static(b"\x93\x01\x02\x03"), ["head"]), None);
    }

    #[test]
    fn promises_beyond_the_limit_are_refused_at_once() {
        for bytes in [&b"\xdf\xff\xff\xff\xff"[..], b"\xc6\xff\xff\xff\xff", b"\xdd\x10\0\0\0"] {
            assert!(Scanner::default().scan(bytes, 1 << 20).is_err());
        }
        assert!(Scanner::default().scan(b"\xc1", 1000).is_err());
        // Arrays of arrays of arrays: more objects promised than bytes allowed.
        let nested = b"\xdc\xff\xff".repeat(50);
        assert!(Scanner::default().scan(&nested, 1 << 20).is_err());
    }

    #[test]
    fn random_bytes_never_panic() {
        let mut random = Random::new(3);
        for _ in 0..20_000 {
            let mut bytes = sample();
            for _ in 0..random.below(5) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = random.next() as u8;
            }
            bytes.truncate(random.below(bytes.len() as u64 + 1) as usize);
            let mut buf = BytesMut::from(&bytes[..]);
            while let Ok(Ok(object)) = take(&mut Scanner::default(), &mut buf, 500) {
                let _ = lookup(&object, ["head", "body"]);
                let _ = content(&object);
            }
        }
    }
}
