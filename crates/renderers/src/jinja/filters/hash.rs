//! Filters that hash and encode.

use halite_value::{SmolStr, Value};
use hmac::{KeyInit, Mac};
use sha2::Digest;

use super::{Row, words::class_of};
use crate::jinja::{
    error::{type_error, value_error},
    eval::{Interp, Result},
    methods,
    objects::*,
};

pub(crate) const FILTERS: &[Row] = &[
    ("md5", "md5_digest(instr)", |interp, args| digest(interp, &args.take(0), "md5")),
    ("sha1", "sha1_digest(instr)", |interp, args| digest(interp, &args.take(0), "sha1")),
    ("sha256", "sha256_digest(instr)", |interp, args| digest(interp, &args.take(0), "sha256")),
    ("sha512", "sha512_digest(instr)", |interp, args| digest(interp, &args.take(0), "sha512")),
    ("hmac", "hmac_signature(string, shared_secret, challenge_hmac)", |interp, args| {
        let (text, secret) = (args.take(0), args.take(1));
        let signature = sign(interp, &text, &secret)?;
        let challenge = bytes(interp, &args.take(2))?;
        Ok(Value::Bool(base64(&signature).as_bytes() == challenge))
    }),
    ("hmac_compute", "hmac_compute(string, shared_secret)", |interp, args| {
        let (text, secret) = (args.take(0), args.take(1));
        Ok(Value::from(hex(&sign(interp, &text, &secret)?)))
    }),
    ("base64_encode", "base64_b64encode(instr)", |interp, args| {
        let data = bytes(interp, &args.take(0))?;
        interp.room(data.len() * 2)?;
        Ok(Value::from(base64(&data)))
    }),
    ("base64_decode", "base64_b64decode(instr)", |interp, args| {
        let data = bytes(interp, &args.take(0))?;
        let decoded = unbase64(&data)?;
        Ok(match String::from_utf8(decoded) {
            Ok(text) => Value::from(text),
            Err(error) => Value::bytes(error.into_bytes()),
        })
    }),
    ("uuid", "uuid_(val)", |interp, args| {
        let name = bytes(interp, &args.take(0))?;
        Ok(Value::from(uuid5(&name)))
    }),
];

/// Returns the bytes of a text or of bytes.
pub(crate) fn bytes(interp: &mut Interp<'_>, value: &Value) -> Result<Vec<u8>> {
    match value {
        Value::Bytes(bytes) => Ok(bytes.to_vec()),
        other => match text_of(other) {
            Some(text) => {
                interp.burn(text.len() / 8)?;
                Ok(text.as_bytes().to_vec())
            }
            None => {
                let error = type_error(format!(
                    "expected str, bytes, or bytearray not {}",
                    class_of(other)
                ));
                Err(interp.blame(error, other))
            }
        },
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Hashes with the algorithm of this name; `None` if there is no such one.
pub(crate) fn hash(name: &str, data: &[u8]) -> Option<String> {
    Some(match name {
        "md5" => hex(&md5::Md5::digest(data)),
        "sha1" => hex(&sha1::Sha1::digest(data)),
        "sha224" => hex(&sha2::Sha224::digest(data)),
        "sha256" => hex(&sha2::Sha256::digest(data)),
        "sha384" => hex(&sha2::Sha384::digest(data)),
        "sha512" => hex(&sha2::Sha512::digest(data)),
        _ => return None,
    })
}

fn digest(interp: &mut Interp<'_>, value: &Value, name: &str) -> Result<Value> {
    let data = bytes(interp, value)?;
    Ok(Value::from(hash(name, &data)))
}

fn sign(interp: &mut Interp<'_>, text: &Value, secret: &Value) -> Result<Vec<u8>> {
    let (text, secret) = (bytes(interp, text)?, bytes(interp, secret)?);
    let Ok(mut mac) = hmac::Hmac::<sha2::Sha256>::new_from_slice(&secret) else {
        return Err(value_error("the secret has a wrong length"));
    };
    mac.update(&text);
    Ok(mac.finalize().into_bytes().to_vec())
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(crate) fn base64(data: &[u8]) -> String {
    let mut out = String::with_capacity(data.len().div_ceil(3) * 4);
    for chunk in data.chunks(3) {
        let bits = chunk.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for index in 0..4 {
            if index <= chunk.len() {
                out.push(char::from(ALPHABET[(bits >> (18 - 6 * index)) as usize & 63]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

/// Decodes as Python does without `validate`: characters outside the alphabet are skipped.
fn unbase64(data: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let (mut bits, mut count, mut padding) = (0u32, 0u32, 0u32);
    for byte in data {
        if *byte == b'=' {
            padding += 1;
            if count >= 2 && count + padding >= 4 {
                break;
            }
            continue;
        }
        let Some(value) = ALPHABET.iter().position(|own| own == byte) else { continue };
        padding = 0;
        bits = bits << 6 | value as u32;
        count += 1;
        if count == 4 {
            out.extend_from_slice(&bits.to_be_bytes()[1..]);
            (bits, count) = (0, 0);
        }
    }
    match (count, padding) {
        (0, _) => {}
        (1, _) => {
            let total = out.len() / 3 * 4 + 1;
            return Err(crate::jinja::error::Error::other(
                "Error",
                format!(
                    "Invalid base64-encoded string: number of data characters ({total}) cannot be 1 \
                     more than a multiple of 4"
                ),
            ));
        }
        (count, padding) if count + padding < 4 => {
            return Err(crate::jinja::error::Error::other("Error", "Incorrect padding"));
        }
        (count, _) => {
            bits <<= 6 * (4 - count);
            out.extend_from_slice(&bits.to_be_bytes()[1..count as usize]);
        }
    }
    Ok(out)
}

/// A UUID of a name, in Salt's own name space.
fn uuid5(name: &[u8]) -> String {
    const SPACE: [u8; 16] = [
        0x91, 0x63, 0x3e, 0xbf, 0x1c, 0x86, 0x5e, 0x33, 0x93, 0x5a, 0x28, 0x06, 0x1f, 0x4b, 0x48,
        0x0e,
    ];
    let mut hash = sha1::Sha1::new();
    hash.update(SPACE);
    hash.update(name);
    let mut id: [u8; 16] = [0; 16];
    id.copy_from_slice(&hash.finalize()[..16]);
    id[6] = id[6] & 0x0f | 0x50;
    id[8] = id[8] & 0x3f | 0x80;
    let text = hex(&id);
    format!("{}-{}-{}-{}-{}", &text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..])
}

/// Only so that both kinds of argument readers stay in one place.
pub(crate) fn int_arg(value: Option<Value>, default: i64) -> Result<i64> {
    match value {
        None | Some(Value::Null) => Ok(default),
        Some(value) => methods::index(&value),
    }
}

/// A text argument that may be absent.
pub(crate) fn optional_text(value: Option<&Value>) -> Option<SmolStr> {
    value.and_then(text_of).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_goes_both_ways() {
        for text in ["", "a", "ab", "abc", "abcd", "\u{1F600}"] {
            assert_eq!(
                unbase64(base64(text.as_bytes()).as_bytes()).expect("valid"),
                text.as_bytes()
            );
        }
        assert!(unbase64(b"YQ").is_err());
        assert_eq!(unbase64(b"YW Jj\n").expect("blanks are skipped"), b"abc");
    }
}
