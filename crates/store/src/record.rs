//! Records: a checksum, then msgpack. What does not fit its checksum is not handed out.

use halite_value::{
    Value,
    msgpack::{self, Dialect, Text},
};

use crate::Error;

fn sum(bytes: &[u8]) -> [u8; 4] {
    crc32fast::hash(bytes).to_le_bytes()
}

/// Writes bytes behind their checksum.
pub(crate) fn seal(bytes: &[u8]) -> Vec<u8> {
    let mut record = Vec::with_capacity(4 + bytes.len());
    record.extend(sum(bytes));
    record.extend_from_slice(bytes);
    record
}

/// Returns the bytes of a record; `name` is for the error.
pub(crate) fn open<'a>(record: &'a [u8], name: &str) -> Result<&'a [u8], Error> {
    match record.split_first_chunk::<4>() {
        Some((found, bytes)) if *found == sum(bytes) => Ok(bytes),
        _ => Err(Error::Damaged(name.to_owned())),
    }
}

pub(crate) fn write(value: &Value) -> Result<Vec<u8>, Error> {
    let mut record = Vec::with_capacity(msgpack::ROOM);
    record.extend([0; 4]);
    msgpack::append(value, Dialect::Modern, &mut record)
        .map_err(|error| Error::Unwritable(error.to_string()))?;
    let sum = sum(&record[4..]);
    record[..4].copy_from_slice(&sum);
    Ok(record)
}

pub(crate) fn read(record: &[u8], name: &str) -> Result<Value, Error> {
    let bytes = open(record, name)?;
    msgpack::from_slice(bytes, Text::Typed).map_err(|_| Error::Damaged(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use halite_value::dict;

    use super::*;

    #[test]
    fn a_changed_bit_is_found() {
        let value = dict! { "a" => 1, "b" => Value::bytes([1, 2, 3]) };
        let record = write(&value).unwrap();
        assert_eq!(read(&record, "x").unwrap(), value);
        for at in 0..record.len() * 8 {
            let mut bad = record.clone();
            bad[at / 8] ^= 1 << (at % 8);
            assert!(matches!(read(&bad, "x"), Err(Error::Damaged(_))));
        }
        assert!(read(b"abc", "x").is_err());
    }
}
