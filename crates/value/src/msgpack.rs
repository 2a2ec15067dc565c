//! msgpack with Salt's conventions.
//!
//! Two dialects travel: the network speaks the *old raw* types (text and bytes both as raw, no
//! `bin`, no `str8`), local event buses and caches the *modern* ones. Readers take both. On the
//! network the distinction between text and bytes is lost, so [`Text::Guess`] turns every byte
//! string that is valid UTF-8 into text, as genuine Salt does.

use jiff::civil::DateTime;
use rmp::{Marker, encode as rmp_encode};

use crate::{Dict, Key, List, Value, set::Set};

/// Salt's extension type for dates: ASCII `YYYYMMDDTHH:MM:SS.ffffff`.
const EXT_DATETIME: i8 = 78;
/// Salt's extension type for its internal constants: modern msgpack of `[name, value]`.
const EXT_CONSTANT: i8 = 79;
const MAX_DEPTH: usize = 256;
/// Most messages fit without growing.
pub const ROOM: usize = 512;

/// Which types to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Old raw types, as on the network.
    Raw,
    /// `str` and `bin` told apart, as on event buses and in cache files.
    Modern,
}

/// What a raw/str is when read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// Anything that is valid UTF-8 is text, `bin` included.
    Guess,
    /// `str` is text, `bin` is bytes; a `str` that is not UTF-8 becomes bytes.
    Typed,
    /// Everything is bytes except map keys (which are guessed): file chunks must survive.
    KeepBytes,
}

#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    #[error("the message ends in the middle of a value")]
    Truncated,
    #[error("{0} bytes follow the value")]
    Trailing(usize),
    #[error("nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    #[error("a {0} cannot be a map key")]
    Key(String),
    #[error("byte 0xc1 is not used by msgpack")]
    Reserved,
    #[error("a {0} cannot be sent")]
    Unsendable(String),
}

/// Writes a value.
pub fn to_vec(value: &Value, dialect: Dialect) -> Result<Vec<u8>, Error> {
    let mut out = Vec::with_capacity(ROOM);
    append(value, dialect, &mut out)?;
    Ok(out)
}

/// Writes a value behind what is there already.
pub fn append(value: &Value, dialect: Dialect, out: &mut Vec<u8>) -> Result<(), Error> {
    write(value, dialect, 0, out)
}

/// Reads exactly one value.
pub fn from_slice(bytes: &[u8], text: Text) -> Result<Value, Error> {
    let (value, used) = read_prefix(bytes, text)?;
    match bytes.len() - used {
        0 => Ok(value),
        more => Err(Error::Trailing(more)),
    }
}

/// Reads the value at the start; returns it with the number of bytes it took.
/// [`Error::Truncated`] then means: wait for more.
pub fn read_prefix(bytes: &[u8], text: Text) -> Result<(Value, usize), Error> {
    let mut reader = Reader { bytes, at: 0, text };
    let value = reader.value(0)?;
    Ok((value, reader.at))
}

fn write(value: &Value, dialect: Dialect, depth: usize, out: &mut Vec<u8>) -> Result<(), Error> {
    const MEMORY: &str = "writing to memory cannot fail";
    if depth > MAX_DEPTH {
        return Err(Error::TooDeep);
    }
    match value {
        Value::Null => rmp_encode::write_nil(out).expect(MEMORY),
        Value::Bool(flag) => rmp_encode::write_bool(out, *flag).expect(MEMORY),
        Value::Int(int) => {
            rmp_encode::write_sint(out, *int).expect(MEMORY);
        }
        Value::BigInt(int) => match u64::try_from(&**int) {
            Ok(int) => {
                rmp_encode::write_uint(out, int).expect(MEMORY);
            }
            // Salt sends what msgpack cannot hold as decimal text.
            Err(_) => write_text(int.to_string().as_bytes(), dialect, out),
        },
        Value::Float(float) => rmp_encode::write_f64(out, *float).expect(MEMORY),
        Value::Str(text) => write_text(text.as_bytes(), dialect, out),
        Value::Bytes(bytes) => match dialect {
            Dialect::Raw => write_text(bytes, dialect, out),
            Dialect::Modern => rmp_encode::write_bin(out, bytes).expect(MEMORY),
        },
        // Nothing foreign runs below: what is written is read where it lies.
        Value::List(list) => write_items(&list.read(), dialect, depth, out)?,
        Value::Tuple(items) => write_items(items, dialect, depth, out)?,
        Value::Dict(dict) => {
            let entries = dict.read();
            rmp_encode::write_map_len(out, length(entries.len())?).expect(MEMORY);
            for (key, value) in entries.iter() {
                write(key, dialect, depth + 1, out)?;
                write(value, dialect, depth + 1, out)?;
            }
        }
        Value::Timestamp(time) => {
            let text = format!(
                "{}.{:06}",
                time.strftime("%Y%m%dT%H:%M:%S"),
                time.subsec_nanosecond() / 1000
            );
            rmp_encode::write_ext_meta(out, length(text.len())?, EXT_DATETIME).expect(MEMORY);
            out.extend_from_slice(text.as_bytes());
        }
        Value::Object(object) => match object.as_any().downcast_ref::<Set>() {
            // As in Salt: there are no sets on the wire.
            Some(set) => {
                let items: Vec<Value> = set.to_vec().into_iter().map(Key::into_value).collect();
                write_items(&items, dialect, depth, out)?;
            }
            None => return Err(Error::Unsendable(object.type_name().to_owned())),
        },
    }
    Ok(())
}

fn write_items(
    items: &[Value],
    dialect: Dialect,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    rmp_encode::write_array_len(out, length(items.len())?).expect("writing to memory cannot fail");
    items.iter().try_for_each(|item| write(item, dialect, depth + 1, out))
}

fn length(len: usize) -> Result<u32, Error> {
    u32::try_from(len).map_err(|_| Error::Unsendable("value of more than 4 GiB".into()))
}

/// The raw dialect has no `str8`: from 32 bytes on it uses two length bytes.
fn write_text(bytes: &[u8], dialect: Dialect, out: &mut Vec<u8>) {
    let len = bytes.len();
    match (len, dialect) {
        (0..=31, _) => out.push(0xa0 | len as u8),
        (32..=255, Dialect::Modern) => out.extend([0xd9, len as u8]),
        (32..=65535, _) => {
            out.push(0xda);
            out.extend((len as u16).to_be_bytes());
        }
        _ => {
            out.push(0xdb);
            out.extend((len as u32).to_be_bytes());
        }
    }
    out.extend_from_slice(bytes);
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    text: Text,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], Error> {
        let end = self.at.checked_add(len).ok_or(Error::Truncated)?;
        let taken = self.bytes.get(self.at..end).ok_or(Error::Truncated)?;
        self.at = end;
        Ok(taken)
    }

    fn uint(&mut self, bytes: usize) -> Result<u64, Error> {
        Ok(self.take(bytes)?.iter().fold(0, |int, byte| int << 8 | u64::from(*byte)))
    }

    fn len(&mut self, bytes: usize) -> Result<usize, Error> {
        usize::try_from(self.uint(bytes)?).map_err(|_| Error::Truncated)
    }

    fn value(&mut self, depth: usize) -> Result<Value, Error> {
        if depth > MAX_DEPTH {
            return Err(Error::TooDeep);
        }
        let marker = Marker::from_u8(self.take(1)?[0]);
        Ok(match marker {
            Marker::FixPos(int) => Value::Int(int.into()),
            Marker::FixNeg(int) => Value::Int(int.into()),
            Marker::Null => Value::Null,
            Marker::True => Value::Bool(true),
            Marker::False => Value::Bool(false),
            Marker::U8 => Value::from(self.uint(1)?),
            Marker::U16 => Value::from(self.uint(2)?),
            Marker::U32 => Value::from(self.uint(4)?),
            Marker::U64 => Value::from(self.uint(8)?),
            Marker::I8 => Value::Int((self.uint(1)? as i8).into()),
            Marker::I16 => Value::Int((self.uint(2)? as i16).into()),
            Marker::I32 => Value::Int((self.uint(4)? as i32).into()),
            Marker::I64 => Value::Int(self.uint(8)? as i64),
            Marker::F32 => Value::Float(f32::from_bits(self.uint(4)? as u32).into()),
            Marker::F64 => Value::Float(f64::from_bits(self.uint(8)?)),
            Marker::FixStr(len) => self.string(len.into(), false)?,
            Marker::Str8 => self.sized_string(1, false)?,
            Marker::Str16 => self.sized_string(2, false)?,
            Marker::Str32 => self.sized_string(4, false)?,
            Marker::Bin8 => self.sized_string(1, true)?,
            Marker::Bin16 => self.sized_string(2, true)?,
            Marker::Bin32 => self.sized_string(4, true)?,
            Marker::FixArray(len) => self.array(len.into(), depth)?,
            Marker::Array16 => self.sized_array(2, depth)?,
            Marker::Array32 => self.sized_array(4, depth)?,
            Marker::FixMap(len) => self.map(len.into(), depth)?,
            Marker::Map16 => self.sized_map(2, depth)?,
            Marker::Map32 => self.sized_map(4, depth)?,
            Marker::FixExt1 => self.ext(1, depth)?,
            Marker::FixExt2 => self.ext(2, depth)?,
            Marker::FixExt4 => self.ext(4, depth)?,
            Marker::FixExt8 => self.ext(8, depth)?,
            Marker::FixExt16 => self.ext(16, depth)?,
            Marker::Ext8 => self.sized_ext(1, depth)?,
            Marker::Ext16 => self.sized_ext(2, depth)?,
            Marker::Ext32 => self.sized_ext(4, depth)?,
            Marker::Reserved => return Err(Error::Reserved),
        })
    }

    fn sized_string(&mut self, bytes: usize, binary: bool) -> Result<Value, Error> {
        let len = self.len(bytes)?;
        self.string(len, binary)
    }

    fn string(&mut self, len: usize, binary: bool) -> Result<Value, Error> {
        let bytes = self.take(len)?;
        let keep = match self.text {
            Text::Guess => false,
            Text::Typed => binary,
            Text::KeepBytes => true,
        };
        Ok(match std::str::from_utf8(bytes) {
            Ok(text) if !keep => Value::str(text),
            _ => Value::bytes(bytes),
        })
    }

    fn sized_array(&mut self, bytes: usize, depth: usize) -> Result<Value, Error> {
        let len = self.len(bytes)?;
        self.array(len, depth)
    }

    fn array(&mut self, len: usize, depth: usize) -> Result<Value, Error> {
        // Each item takes a byte at least: a lying length allocates no more than the message has.
        let mut items = Vec::with_capacity(len.min(self.bytes.len() - self.at));
        for _ in 0..len {
            items.push(self.value(depth + 1)?);
        }
        Ok(List::from(items).into())
    }

    fn sized_map(&mut self, bytes: usize, depth: usize) -> Result<Value, Error> {
        let len = self.len(bytes)?;
        self.map(len, depth)
    }

    fn map(&mut self, len: usize, depth: usize) -> Result<Value, Error> {
        let mut map = crate::Map::default();
        map.reserve(len.min((self.bytes.len() - self.at) / 2));
        for _ in 0..len {
            let text = self.text;
            if text == Text::KeepBytes {
                self.text = Text::Guess;
            }
            let key = self.value(depth + 1);
            self.text = text;
            let key = match key? {
                // Python turns list keys into tuples.
                Value::List(list) => Value::Tuple(list.to_vec().into()),
                other => other,
            };
            let key = Key::try_from(key).map_err(|error| Error::Key(error.0))?;
            map.insert(key, self.value(depth + 1)?);
        }
        Ok(Dict::from(map).into())
    }

    fn sized_ext(&mut self, bytes: usize, depth: usize) -> Result<Value, Error> {
        let len = self.len(bytes)?;
        self.ext(len, depth)
    }

    /// Unknown extensions must not break decoding: their bytes come through.
    fn ext(&mut self, len: usize, depth: usize) -> Result<Value, Error> {
        let kind = self.take(1)?[0] as i8;
        let body = self.take(len)?;
        Ok(match kind {
            EXT_DATETIME => datetime(body).map_or_else(|| Value::bytes(body), Value::Timestamp),
            EXT_CONSTANT => {
                let mut inner = Reader { bytes: body, at: 0, text: Text::Typed };
                inner.value(depth + 1)?.as_list().and_then(|pair| pair.get(1)).unwrap_or_default()
            }
            _ => Value::bytes(body),
        })
    }
}

fn datetime(body: &[u8]) -> Option<DateTime> {
    DateTime::strptime("%Y%m%dT%H:%M:%S%.f", body).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{dict, list};

    fn round_trip(value: &Value, dialect: Dialect, text: Text) {
        let bytes = to_vec(value, dialect).expect("sendable");
        assert_eq!(&from_slice(&bytes, text).expect("own bytes"), value);
    }

    fn sample() -> Value {
        dict! {
            "s" => "é", "n" => (), "i" => list![0, 127, 128, -1, -33, 70_000, i64::MIN, i64::MAX],
            "f" => 1.5, 7 => true, "long" => "x".repeat(300), "b" => Value::bytes([0xff, 0]),
            "t" => DateTime::constant(2026, 11, 15, 1, 2, 3, 456_000_000),
        }
    }

    #[test]
    fn both_dialects_round_trip() {
        round_trip(&sample(), Dialect::Modern, Text::Typed);
        round_trip(&sample(), Dialect::Raw, Text::Guess);
    }

    #[test]
    fn sets_travel_as_lists() {
        let set = Value::from([1, 2].map(Key::from).into_iter().collect::<Set>());
        let bytes = to_vec(&set, Dialect::Raw).unwrap();
        assert_eq!(from_slice(&bytes, Text::Guess).unwrap(), list![1, 2]);
    }

    #[test]
    fn the_network_uses_neither_str8_nor_bin() {
        let bytes = to_vec(&list!["x".repeat(40), Value::bytes([0xff; 40])], Dialect::Raw).unwrap();
        assert_eq!((bytes[1], bytes[44]), (0xda, 0xda));
        let modern = to_vec(&Value::from("x".repeat(40)), Dialect::Modern).unwrap();
        assert_eq!(modern[0], 0xd9);
    }

    #[test]
    fn guessing_turns_utf8_into_text() {
        let bytes = to_vec(&Value::bytes(*b"abc"), Dialect::Modern).unwrap();
        assert_eq!(from_slice(&bytes, Text::Guess), Ok("abc".into()));
        assert_eq!(from_slice(&bytes, Text::Typed), Ok(Value::bytes(*b"abc")));
        let map = to_vec(&dict! { "data" => "abc" }, Dialect::Raw).unwrap();
        assert_eq!(
            from_slice(&map, Text::KeepBytes),
            Ok(dict! { "data" => Value::bytes(*b"abc") })
        );
    }

    #[test]
    fn big_integers_become_text() {
        let big = "99999999999999999999999".parse::<num_bigint::BigInt>().unwrap();
        let bytes = to_vec(&big.into(), Dialect::Raw).unwrap();
        assert_eq!(from_slice(&bytes, Text::Guess), Ok("99999999999999999999999".into()));
        round_trip(&Value::from(u64::MAX), Dialect::Raw, Text::Guess);
    }

    #[test]
    fn hostile_lengths_cost_nothing() {
        assert_eq!(from_slice(&[0xdd, 255, 255, 255, 255], Text::Guess), Err(Error::Truncated));
        assert_eq!(from_slice(&[0xdf, 255, 255, 255, 255], Text::Guess), Err(Error::Truncated));
        assert_eq!(from_slice(&[0xdb, 255, 255, 255, 255], Text::Guess), Err(Error::Truncated));
        assert_eq!(from_slice(&[0x91; 1000], Text::Guess), Err(Error::TooDeep));
        assert_eq!(from_slice(&[0x81, 0x80, 0x01], Text::Guess), Err(Error::Key("dict".into())));
    }

    #[test]
    fn every_truncation_is_noticed() {
        let bytes = to_vec(&sample(), Dialect::Modern).unwrap();
        for end in 0..bytes.len() {
            assert_eq!(read_prefix(&bytes[..end], Text::Typed), Err(Error::Truncated));
        }
    }
}
