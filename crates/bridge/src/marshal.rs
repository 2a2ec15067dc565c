//! Values in Python's own notation: `marshal`, version 2.
//!
//! Both sides speak it without a library: Python reads and writes it in C, and it is a dozen types
//! here. Unlike JSON it keeps bytes, tuples and keys of any type; unlike msgpack it needs no slow
//! Python code ([decision record](../../../docs/decisions)). The version is fixed: 2 has existed
//! since Python 2.5, and every later Python writes it when asked.
//!
//! What Python does not have is marked by a tuple that begins with `Ellipsis`, which no module
//! returns: dates. Objects of templates (functions, macros) become their text.

use halite_value::{BigInt, DateTime, Dict, Key, List, Value, set::Set};
use num_bigint::Sign;

const MAX_DEPTH: usize = 256;
/// Digits of marshal's integers have 15 bits.
const DIGIT: u32 = 15;
/// A longer integer than anybody writes down; Python itself prints at most 4300 digits.
const MAX_DIGITS: usize = 4096;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the message ends in the middle of a value")]
    Truncated,
    #[error("nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    #[error("a {0} cannot be a key")]
    Key(String),
    #[error("type {0:?} is not used here")]
    Type(char),
    #[error("{0} bytes follow the value")]
    Trailing(usize),
    #[error("more than 2 GiB")]
    TooLong,
}

/// Writes a value.
pub fn to_vec(value: &Value) -> Result<Vec<u8>, Error> {
    let mut out = Vec::with_capacity(256);
    write(value, 0, &mut out)?;
    Ok(out)
}

/// Writes a value after what a buffer holds already.
pub fn write(value: &Value, depth: usize, out: &mut Vec<u8>) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(Error::TooDeep);
    }
    match value {
        Value::Null => out.push(b'N'),
        Value::Bool(true) => out.push(b'T'),
        Value::Bool(false) => out.push(b'F'),
        Value::Int(int) => write_int(*int, out),
        Value::BigInt(int) => write_big(int, out)?,
        Value::Float(float) => {
            out.push(b'g');
            out.extend(float.to_le_bytes());
        }
        Value::Str(text) => write_text(text, out)?,
        Value::Bytes(bytes) => {
            out.push(b's');
            out.extend(length(bytes.len())?);
            out.extend_from_slice(bytes);
        }
        Value::List(list) => write_items(b'[', &list.to_vec(), depth, out)?,
        Value::Tuple(items) => write_items(b'(', items, depth, out)?,
        Value::Dict(dict) => {
            out.push(b'{');
            for (key, value) in dict.entries() {
                write(key.value(), depth + 1, out)?;
                write(&value, depth + 1, out)?;
            }
            out.push(b'0');
        }
        Value::Timestamp(time) => {
            out.extend(*b"(\x03\0\0\0.");
            write_text("datetime", out)?;
            write_text(&time.strftime("%Y-%m-%dT%H:%M:%S.%6f").to_string(), out)?;
        }
        Value::Object(object) => match object.as_any().downcast_ref::<Set>() {
            Some(set) => {
                let items: Vec<Value> = set.to_vec().into_iter().map(Key::into_value).collect();
                write_items(b'[', &items, depth, out)?;
            }
            None => write_text(&object.str(), out)?,
        },
    }
    Ok(())
}

fn length(len: usize) -> Result<[u8; 4], Error> {
    i32::try_from(len).map(i32::to_le_bytes).map_err(|_| Error::TooLong)
}

fn write_text(text: &str, out: &mut Vec<u8>) -> Result<(), Error> {
    out.push(b'u');
    out.extend(length(text.len())?);
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

fn write_items(kind: u8, items: &[Value], depth: usize, out: &mut Vec<u8>) -> Result<(), Error> {
    out.push(kind);
    out.extend(length(items.len())?);
    items.iter().try_for_each(|item| write(item, depth + 1, out))
}

fn write_int(int: i64, out: &mut Vec<u8>) {
    if let Ok(small) = i32::try_from(int) {
        out.push(b'i');
        out.extend(small.to_le_bytes());
        return;
    }
    let mut digits = Vec::with_capacity(5);
    let mut left = int.unsigned_abs();
    while left > 0 {
        digits.push((left & 0x7fff) as u16);
        left >>= DIGIT;
    }
    write_digits(&digits, int < 0, out);
}

fn write_big(int: &BigInt, out: &mut Vec<u8>) -> Result<(), Error> {
    let (sign, bytes) = int.to_bytes_le();
    let mut digits = Vec::new();
    let (mut held, mut bits) = (0_u32, 0);
    for byte in bytes {
        held |= u32::from(byte) << bits;
        bits += 8;
        if bits >= DIGIT {
            digits.push((held & 0x7fff) as u16);
            held >>= DIGIT;
            bits -= DIGIT;
        }
    }
    if held > 0 {
        digits.push(held as u16);
    }
    while digits.last() == Some(&0) {
        digits.pop();
    }
    if digits.len() > MAX_DIGITS {
        return Err(Error::TooLong);
    }
    write_digits(&digits, sign == Sign::Minus, out);
    Ok(())
}

fn write_digits(digits: &[u16], negative: bool, out: &mut Vec<u8>) {
    out.push(b'l');
    let count = digits.len() as i32;
    out.extend((if negative { -count } else { count }).to_le_bytes());
    digits.iter().for_each(|digit| out.extend(digit.to_le_bytes()));
}

/// Reads exactly one value.
pub fn from_slice(bytes: &[u8]) -> Result<Value, Error> {
    let mut reader = Reader { bytes, at: 0 };
    let value = reader.value(0)?.ok_or(Error::Type('0'))?;
    match bytes.len() - reader.at {
        0 => Ok(value),
        more => Err(Error::Trailing(more)),
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], Error> {
        let end = self.at.checked_add(len).ok_or(Error::Truncated)?;
        let taken = self.bytes.get(self.at..end).ok_or(Error::Truncated)?;
        self.at = end;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        self.take(N)?.try_into().map_err(|_| Error::Truncated)
    }

    fn int(&mut self) -> Result<i32, Error> {
        self.array().map(i32::from_le_bytes)
    }

    fn len(&mut self) -> Result<usize, Error> {
        usize::try_from(self.int()?).map_err(|_| Error::Truncated)
    }

    /// Reads a value; `None` is the end of a dict.
    fn value(&mut self, depth: usize) -> Result<Option<Value>, Error> {
        if depth > MAX_DEPTH {
            return Err(Error::TooDeep);
        }
        let [kind] = self.array()?;
        Ok(Some(match kind {
            b'0' => return Ok(None),
            b'N' => Value::Null,
            b'T' => Value::Bool(true),
            b'F' => Value::Bool(false),
            b'.' => Value::str(MARK),
            b'i' => Value::Int(self.int()?.into()),
            b'l' => self.long()?,
            b'g' => Value::Float(f64::from_le_bytes(self.array()?)),
            b's' => {
                let len = self.len()?;
                Value::bytes(self.take(len)?)
            }
            b'u' | b't' => {
                let len = self.len()?;
                // Lone surrogates, which Python's file names may have, are no text here.
                Value::str(String::from_utf8_lossy(self.take(len)?))
            }
            b'[' | b'<' | b'>' => List::from(self.items(depth)?).into(),
            b'(' => tuple(self.items(depth)?),
            b'{' => self.dict(depth)?,
            other => return Err(Error::Type(other.into())),
        }))
    }

    fn need(&mut self, depth: usize) -> Result<Value, Error> {
        self.value(depth)?.ok_or(Error::Type('0'))
    }

    fn items(&mut self, depth: usize) -> Result<Vec<Value>, Error> {
        let len = self.len()?;
        // Each item takes a byte at least: a lying length allocates no more than the message has.
        let mut items = Vec::with_capacity(len.min(self.bytes.len() - self.at));
        for _ in 0..len {
            items.push(self.need(depth + 1)?);
        }
        Ok(items)
    }

    fn dict(&mut self, depth: usize) -> Result<Value, Error> {
        let mut map = halite_value::Map::default();
        while let Some(key) = self.value(depth + 1)? {
            let key = Key::try_from(key).map_err(|error| Error::Key(error.0))?;
            map.insert(key, self.need(depth + 1)?);
        }
        Ok(Dict::from(map).into())
    }

    fn long(&mut self) -> Result<Value, Error> {
        let count = self.int()?;
        let digits = usize::try_from(count.unsigned_abs()).map_err(|_| Error::TooLong)?;
        if digits > MAX_DIGITS {
            return Err(Error::TooLong);
        }
        let bytes = self.take(digits * 2)?;
        let digit = |pair: &[u8]| u16::from_le_bytes([pair[0], pair[1]]);
        let int = bytes
            .chunks_exact(2)
            .rev()
            .fold(BigInt::ZERO, |int, pair| (int << DIGIT) | BigInt::from(digit(pair)));
        Ok(Value::from_bigint(if count < 0 { -int } else { int }))
    }
}

/// Stands for `Ellipsis` while reading; the zero byte keeps it apart from text.
const MARK: &str = "\0Ellipsis";

/// Returns a tuple, or what a marked one means.
fn tuple(items: Vec<Value>) -> Value {
    if let [mark, kind, text] = items.as_slice()
        && *mark == *MARK
        && *kind == *"datetime"
        && let Ok(time) = text.to_str().parse::<DateTime>()
    {
        return Value::Timestamp(time);
    }
    Value::Tuple(items.into())
}

#[cfg(test)]
mod tests {
    use halite_value::{dict, list};

    use super::*;

    fn big(text: &str) -> Value {
        Value::from_bigint(text.parse().expect("digits"))
    }

    fn round_trip(value: &Value) {
        let bytes = to_vec(value).expect("sendable");
        assert_eq!(from_slice(&bytes).expect("own bytes").repr(), value.repr());
    }

    #[test]
    fn everything_keeps_its_type() {
        round_trip(&dict! {
            "text" => "é", "none" => (), 7 => true, Key::try_from(Value::tuple([1, 2])).unwrap() => 1.5,
            "bytes" => Value::bytes([0xff, 0]), "tuple" => Value::tuple(["a"]),
            "list" => list![0, -1, i64::MAX, i64::MIN, 1_i64 << 40, -(1_i64 << 33)],
            "big" => big("-123456789012345678901234567890"),
            "time" => DateTime::constant(2026, 11, 15, 1, 2, 3, 456_000_000),
        });
        for text in ["9223372036854775808", "18446744073709551616", "32768000000000000000000"] {
            round_trip(&big(text));
            round_trip(&big(&format!("-{text}")));
        }
    }

    #[test]
    fn bytes_are_pythons() {
        // marshal.dumps({'a': [1, None, (2.5,)], 'b': b'x'}, 2), and of 2**33 and -40000.
        let python = b"{u\x01\0\0\0a[\x03\0\0\0i\x01\0\0\0N(\x01\0\0\0g\0\0\0\0\0\0\x04@u\x01\0\0\0bs\x01\0\0\0x0";
        let value = dict! { "a" => list![1, (), Value::tuple([2.5])], "b" => Value::bytes(*b"x") };
        assert_eq!(to_vec(&value).unwrap(), python);
        assert_eq!(from_slice(python).unwrap(), value);
        assert_eq!(to_vec(&(1_i64 << 33).into()).unwrap(), b"l\x03\0\0\0\0\0\0\0\x08\0");
        assert_eq!(from_slice(b"l\x03\0\0\0\0\0\0\0\x08\0").unwrap(), Value::Int(1 << 33));
    }

    #[test]
    fn hostile_lengths_cost_nothing() {
        assert_eq!(from_slice(b"[\xff\xff\xff\x7f"), Err(Error::Truncated));
        assert_eq!(from_slice(b"[\xff\xff\xff\xff"), Err(Error::Truncated));
        assert_eq!(from_slice(b"l\xff\xff\xff\x7f"), Err(Error::TooLong));
        assert_eq!(from_slice(b"c"), Err(Error::Type('c')));
        assert_eq!(from_slice(b"NN"), Err(Error::Trailing(1)));
        let deep: Vec<u8> = b"[\x01\0\0\0".repeat(1000);
        assert_eq!(from_slice(&deep), Err(Error::TooDeep));
    }

    #[test]
    fn every_truncation_is_noticed() {
        let bytes = to_vec(&list![1, "text", dict! { 1 => big("99999999999999999999") }]).unwrap();
        for end in 0..bytes.len() {
            assert_eq!(from_slice(&bytes[..end]), Err(Error::Truncated));
        }
    }
}
