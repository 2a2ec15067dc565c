//! Frames: four bytes of length, one msgpack value.

use bytes::{Buf as _, BytesMut};
use halite_value::{
    Value,
    msgpack::{self, Dialect, Text},
};

use crate::protocol::Malformed;

/// The largest frame either side takes: a return may carry a file.
pub const MAX_FRAME: usize = 256 << 20;

/// Writes a frame.
pub fn encode(value: &Value) -> Result<Vec<u8>, Malformed> {
    let mut frame = Vec::with_capacity(msgpack::ROOM);
    frame.extend([0; 4]);
    msgpack::append(value, Dialect::Modern, &mut frame).map_err(|_| Malformed("unsendable"))?;
    let length = u32::try_from(frame.len() - 4).map_err(|_| Malformed("too large"))?;
    frame[..4].copy_from_slice(&length.to_be_bytes());
    Ok(frame)
}

/// Takes the first frame off a buffer; `None` while it is not complete.
pub fn read_frame(buffer: &mut BytesMut) -> Result<Option<Value>, Malformed> {
    let Some((length, rest)) = buffer.split_first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_be_bytes(*length) as usize;
    if length > MAX_FRAME {
        return Err(Malformed("too large"));
    }
    let Some(body) = rest.get(..length) else { return Ok(None) };
    let value = msgpack::from_slice(body, Text::Typed).map_err(|_| Malformed("not msgpack"))?;
    buffer.advance(4 + length);
    Ok(Some(value))
}

#[cfg(test)]
mod tests {
    use halite_value::dict;

    use super::*;

    #[test]
    fn frames_come_in_any_pieces() {
        let value = dict! { "a" => 1, "raw" => Value::bytes([0xff]) };
        let two = [encode(&value).unwrap(), encode(&value).unwrap()].concat();
        let mut buffer = BytesMut::new();
        let mut seen = 0;
        for byte in two {
            buffer.extend([byte]);
            while let Some(found) = read_frame(&mut buffer).unwrap() {
                assert_eq!(found, value);
                seen += 1;
            }
        }
        assert_eq!((seen, buffer.len()), (2, 0));
        assert!(read_frame(&mut BytesMut::from(&[0xff; 8][..])).is_err());
    }
}
