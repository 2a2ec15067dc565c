//! `hashutil`: digests and base64, of texts and of files.
//!
//! [`Kind`] is where the rest of the crate gets its hashes from. Files are read in pieces, never as
//! a whole.

use std::{fmt::Write as _, io::Read, path::Path};

use halite_spec::{Cx, Error, Host, Result, function, host, module};
use halite_value::Value;
use hmac::{KeyInit, Mac};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use crate::file::paths::expand_user;

module! {
    /// Digests and base64.
    "hashutil": digest, digest_file, base64_b64encode, base64_b64decode, base64_encodestring,
    base64_encodefile, base64_decodestring, base64_decodefile, md5_digest, sha256_digest,
    sha512_digest, hmac_signature, hmac_compute, github_signature,
}

/// A kind of hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Sha512,
    Sha384,
    Sha256,
    Sha224,
    Sha1,
    Md5,
}

impl Kind {
    /// In the order in which Salt lists them.
    pub const ALL: [Self; 6] =
        [Self::Sha512, Self::Sha384, Self::Sha256, Self::Sha224, Self::Sha1, Self::Md5];

    pub fn name(self) -> &'static str {
        match self {
            Self::Sha512 => "sha512",
            Self::Sha384 => "sha384",
            Self::Sha256 => "sha256",
            Self::Sha224 => "sha224",
            Self::Sha1 => "sha1",
            Self::Md5 => "md5",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// How many hexadecimal digits a digest has.
    pub fn digits(self) -> usize {
        match self {
            Self::Sha512 => 128,
            Self::Sha384 => 96,
            Self::Sha256 => 64,
            Self::Sha224 => 56,
            Self::Sha1 => 40,
            Self::Md5 => 32,
        }
    }

    pub fn with_digits(digits: usize) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.digits() == digits)
    }

    /// Returns the digest of everything a reader gives, in hexadecimal.
    pub fn of_reader(self, reader: &mut dyn Read) -> std::io::Result<String> {
        match self {
            Self::Sha512 => read_all::<Sha512>(reader),
            Self::Sha384 => read_all::<Sha384>(reader),
            Self::Sha256 => read_all::<Sha256>(reader),
            Self::Sha224 => read_all::<Sha224>(reader),
            Self::Sha1 => read_all::<Sha1>(reader),
            Self::Md5 => read_all::<Md5>(reader),
        }
    }

    pub fn of(self, mut bytes: &[u8]) -> String {
        self.of_reader(&mut bytes).expect("reading from memory cannot fail")
    }

    pub fn of_file(self, host: &dyn Host, path: &Path) -> host::Result<String> {
        self.of_reader(&mut *host.open(path)?).map_err(|error| host::Error::io("read", path, error))
    }
}

fn read_all<D: Digest>(reader: &mut dyn Read) -> std::io::Result<String> {
    let mut digest = D::new();
    let mut buffer = vec![0; 128 << 10];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return Ok(hex(&digest.finalize())),
            Ok(count) => digest.update(&buffer[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Returns the base64 of bytes, on one line.
pub fn base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk
            .iter()
            .chain(std::iter::repeat(&0))
            .take(3)
            .fold(0_u32, |word, &byte| word << 8 | u32::from(byte));
        for (index, shift) in [18, 12, 6, 0].into_iter().enumerate() {
            if index <= chunk.len() {
                out.push(char::from(ALPHABET[(word >> shift & 63) as usize]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

/// Returns the bytes of a base64 text; what is not of the alphabet is passed over, as in Python.
pub fn from_base64(text: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut word, mut count) = (0_u32, 0);
    for &byte in text {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' if count >= 2 => {
                // Padding ends the text.
                for index in 0..count - 1 {
                    out.push((word >> (if count == 3 { 10 - 8 * index } else { 4 }) & 255) as u8);
                }
                return Ok(out);
            }
            _ => continue,
        };
        word = word << 6 | u32::from(digit);
        count += 1;
        if count == 4 {
            out.extend([(word >> 16 & 255) as u8, (word >> 8 & 255) as u8, (word & 255) as u8]);
            (word, count) = (0, 0);
        }
    }
    match count {
        0 => Ok(out),
        1 => Err("Invalid base64-encoded string: number of data characters cannot be 1 more \
                  than a multiple of 4"),
        _ => Err("Incorrect padding"),
    }
}

/// As lines of 76 characters, each with its end: what Python's `encodebytes` gives.
fn base64_lines(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.chunks(57) {
        out.push_str(&base64(chunk));
        out.push('\n');
    }
    out
}

/// Text or bytes. Anything else is refused: nobody means the digest of the word `None`.
fn bytes_of(value: &Value) -> Result<Vec<u8>> {
    value.as_bytes().map(<[u8]>::to_vec).ok_or_else(|| {
        let given = value.type_name();
        let told = format!("expected str, bytes, or bytearray not <class '{given}'>");
        Error::raised("TypeError", told)
    })
}

/// Bytes that are text are returned as text.
fn text_or_bytes(bytes: Vec<u8>) -> Value {
    match String::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(error) => Value::bytes(error.into_bytes()),
    }
}

fn bad_base64(message: &str) -> Error {
    Error::raised("Error", message)
}

fn checksum_kind(name: &str) -> Result<Kind> {
    match Kind::named(name) {
        Some(kind @ (Kind::Md5 | Kind::Sha256 | Kind::Sha512)) => Ok(kind),
        _ => Err(Error::failed(format!("Hash func '{name}' is not supported."))),
    }
}

/// Return a digest of a text.
///
/// ```console
/// $ salt '*' hashutil.digest 'get salted' sha256
/// ```
#[function]
pub fn digest(
    _cx: &Cx,
    /// The text.
    instr: Value,
    /// `md5`, `sha256` or `sha512`.
    #[default("md5".to_owned())]
    checksum: String,
) -> Result<String> {
    Ok(checksum_kind(&checksum)?.of(&bytes_of(&instr)?))
}

/// Return a digest of a file.
///
/// ```console
/// $ salt '*' hashutil.digest_file /path/to/file sha256
/// ```
#[function]
pub fn digest_file(
    cx: &Cx,
    /// The file.
    infile: String,
    /// `md5`, `sha256` or `sha512`.
    #[default("md5".to_owned())]
    checksum: String,
) -> Result<String> {
    let path = expand_user(cx, &infile);
    if !cx.host.is_file(Path::new(&path))? {
        return Err(Error::failed(format!("File path '{infile}' not found.")));
    }
    Ok(checksum_kind(&checksum)?.of_file(&*cx.host, Path::new(&path))?)
}

/// Encode a text as base64, on one line.
///
/// ```console
/// $ salt web1 hashutil.base64_b64encode 'some text'
/// ```
#[function]
pub fn base64_b64encode(
    _cx: &Cx,
    /// The text.
    instr: Value,
) -> Result<String> {
    Ok(base64(&bytes_of(&instr)?))
}

/// Decode base64.
///
/// ```console
/// $ salt web1 hashutil.base64_b64decode 'some text'
/// ```
#[function]
pub fn base64_b64decode(
    _cx: &Cx,
    /// The base64 text.
    instr: Value,
) -> Result<Value> {
    from_base64(&bytes_of(&instr)?).map(text_or_bytes).map_err(bad_base64)
}

/// Encode a text as base64, in lines of 76 characters.
///
/// ```console
/// $ salt web1 hashutil.base64_encodestring 'some text'
/// ```
#[function]
pub fn base64_encodestring(
    _cx: &Cx,
    /// The text.
    instr: Value,
) -> Result<String> {
    Ok(base64_lines(&bytes_of(&instr)?))
}

/// Encode a file as base64, in lines of 76 characters.
///
/// ```console
/// $ salt web1 hashutil.base64_encodefile /srv/app/app.conf
/// ```
#[function]
pub fn base64_encodefile(
    cx: &Cx,
    /// The file.
    fname: String,
) -> Result<String> {
    Ok(base64_lines(&cx.host.read(Path::new(&fname))?))
}

/// Decode base64.
///
/// ```console
/// $ salt '*' hashutil.base64_decodestring 'Z2V0IHNhbHRlZAo='
/// ```
#[function]
pub fn base64_decodestring(
    _cx: &Cx,
    /// The base64 text.
    instr: Value,
) -> Result<Value> {
    from_base64(&bytes_of(&instr)?).map(text_or_bytes).map_err(bad_base64)
}

/// Decode base64 into a file.
///
/// ```console
/// $ salt '*' hashutil.base64_decodefile instr='Z2V0IHNhbHRlZAo=' outfile='/path/to/file'
/// ```
#[function]
pub fn base64_decodefile(
    cx: &Cx,
    /// The base64 text.
    instr: String,
    /// The file to write.
    outfile: String,
) -> Result<bool> {
    let bytes = from_base64(instr.as_bytes()).map_err(bad_base64)?;
    cx.host.write(Path::new(&outfile), &bytes, &host::Write::default())?;
    Ok(true)
}

/// Return the MD5 digest of a text.
///
/// ```console
/// $ salt web1 hashutil.md5_digest 'some text'
/// ```
#[function]
pub fn md5_digest(
    _cx: &Cx,
    /// The text.
    instr: Value,
) -> Result<String> {
    Ok(Kind::Md5.of(&bytes_of(&instr)?))
}

/// Return the SHA-256 digest of a text.
///
/// ```console
/// $ salt web1 hashutil.sha256_digest 'some text'
/// ```
#[function]
pub fn sha256_digest(
    _cx: &Cx,
    /// The text.
    instr: Value,
) -> Result<String> {
    Ok(Kind::Sha256.of(&bytes_of(&instr)?))
}

/// Return the SHA-512 digest of a text.
///
/// ```console
/// $ salt web1 hashutil.sha512_digest 'some text'
/// ```
#[function]
pub fn sha512_digest(
    _cx: &Cx,
    /// The text.
    instr: Value,
) -> Result<String> {
    Ok(Kind::Sha512.of(&bytes_of(&instr)?))
}

fn hmac_of<M: Mac + KeyInit>(message: &[u8], key: &[u8]) -> Vec<u8> {
    let mut mac = <M as KeyInit>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(message);
    mac.finalize().into_bytes().to_vec()
}

/// Tell whether a base64 HMAC-SHA256 belongs to a text and a secret.
///
/// ```console
/// $ salt web1 hashutil.hmac_signature 'some text' s3cret c2lnbmF0dXJl
/// ```
#[function]
pub fn hmac_signature(
    _cx: &Cx,
    /// The text.
    string: Value,
    /// The secret.
    shared_secret: Value,
    /// The signature, in base64.
    challenge_hmac: Value,
) -> Result<bool> {
    let mac = hmac_of::<hmac::Hmac<Sha256>>(&bytes_of(&string)?, &bytes_of(&shared_secret)?);
    Ok(base64(&mac).as_bytes() == bytes_of(&challenge_hmac)?)
}

/// Return the HMAC-SHA256 of a text with a secret, in hexadecimal.
///
/// ```console
/// $ salt web1 hashutil.hmac_compute 'some text' s3cret
/// ```
#[function]
pub fn hmac_compute(
    _cx: &Cx,
    /// The text.
    string: Value,
    /// The secret.
    shared_secret: Value,
) -> Result<String> {
    Ok(hex(&hmac_of::<hmac::Hmac<Sha256>>(&bytes_of(&string)?, &bytes_of(&shared_secret)?)))
}

/// Tell whether a signature of the form `sha1=…`, as GitHub sends them, belongs to a text.
///
/// ```console
/// $ salt web1 hashutil.github_signature 'some text' s3cret c2lnbmF0dXJl
/// ```
#[function]
pub fn github_signature(
    _cx: &Cx,
    /// The text.
    string: Value,
    /// The secret.
    shared_secret: Value,
    /// The kind of hash, `=`, the signature in hexadecimal.
    challenge_hmac: String,
) -> Result<bool> {
    let (kind, challenge) = challenge_hmac.split_once('=').ok_or_else(|| {
        Error::invalid("the signature must have the form <hash type>=<signature>")
    })?;
    let (message, key) = (bytes_of(&string)?, bytes_of(&shared_secret)?);
    let mac = match Kind::named(kind) {
        Some(Kind::Sha1) => hmac_of::<hmac::Hmac<Sha1>>(&message, &key),
        Some(Kind::Sha224) => hmac_of::<hmac::Hmac<Sha224>>(&message, &key),
        Some(Kind::Sha256) => hmac_of::<hmac::Hmac<Sha256>>(&message, &key),
        Some(Kind::Sha384) => hmac_of::<hmac::Hmac<Sha384>>(&message, &key),
        Some(Kind::Sha512) => hmac_of::<hmac::Hmac<Sha512>>(&message, &key),
        Some(Kind::Md5) => hmac_of::<hmac::Hmac<Md5>>(&message, &key),
        None => return Err(Error::invalid(format!("Invalid hash type: {kind}"))),
    };
    Ok(hex(&mac) == challenge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_both_ways() {
        for (plain, encoded) in
            [("", ""), ("a", "YQ=="), ("ab", "YWI="), ("abc", "YWJj"), ("abcd", "YWJjZA==")]
        {
            assert_eq!(base64(plain.as_bytes()), encoded);
            assert_eq!(from_base64(encoded.as_bytes()).unwrap(), plain.as_bytes());
        }
        assert_eq!(from_base64(b"YW Jj\n").unwrap(), b"abc");
        assert!(from_base64(b"YWI").is_err());
    }

    #[test]
    fn digests() {
        assert_eq!(Kind::Md5.of(b""), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(Kind::Sha1.of(b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        for kind in Kind::ALL {
            assert_eq!(kind.of(b"x").len(), kind.digits());
            assert_eq!(Kind::with_digits(kind.digits()), Some(kind));
        }
    }
}
