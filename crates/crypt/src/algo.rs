//! The closed lists of algorithms, with their names on the wire and in the configuration.
//!
//! A peer names its algorithms; a name outside of these lists is refused before any key is touched.

use std::fmt;
use std::str::FromStr;

use crate::{Error, ffi};

/// How key strings and tokens are encrypted (`encryption_algorithm`, `enc_algo`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum EncAlgo {
    /// `OAEP-SHA1`: the default, also what peers older than 3006.9 mean by saying nothing.
    #[default]
    OaepSha1,
    /// `OAEP-SHA224`
    OaepSha224,
}

/// How documents are signed (`signing_algorithm`, `publish_signing_algorithm`, `sig_algo`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SigAlgo {
    /// `PKCS1v15-SHA1`: the default, also what peers older than 3006.9 mean by saying nothing.
    #[default]
    Pkcs1v15Sha1,
    /// `PKCS1v15-SHA224`
    Pkcs1v15Sha224,
}

/// A digest, by its name in `hash_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Hash {
    Md5,
    Sha1,
    Sha224,
    #[default]
    Sha256,
    Sha384,
    Sha512,
}

impl EncAlgo {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::OaepSha1 => "OAEP-SHA1",
            Self::OaepSha224 => "OAEP-SHA224",
        }
    }

    pub(crate) fn hash(self) -> Hash {
        match self {
            Self::OaepSha1 => Hash::Sha1,
            Self::OaepSha224 => Hash::Sha224,
        }
    }
}

impl SigAlgo {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pkcs1v15Sha1 => "PKCS1v15-SHA1",
            Self::Pkcs1v15Sha224 => "PKCS1v15-SHA224",
        }
    }

    pub(crate) fn hash(self) -> Hash {
        match self {
            Self::Pkcs1v15Sha1 => Hash::Sha1,
            Self::Pkcs1v15Sha224 => Hash::Sha224,
        }
    }
}

impl Hash {
    /// The name in `hash_type`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Sha1 => "sha1",
            Self::Sha224 => "sha224",
            Self::Sha256 => "sha256",
            Self::Sha384 => "sha384",
            Self::Sha512 => "sha512",
        }
    }

    /// Returns the digest of `data`.
    pub fn digest(self, data: &[u8]) -> Vec<u8> {
        ffi::digest(self, data)
    }

    /// Returns the digest of `data` as lower-case hex.
    pub fn hex(self, data: &[u8]) -> String {
        hex(&self.digest(data), "")
    }
}

/// Lower-case hex with `between` between the bytes.
pub(crate) fn hex(bytes: &[u8], between: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * (2 + between.len()));
    for (place, byte) in bytes.iter().enumerate() {
        if place > 0 {
            text.push_str(between);
        }
        text.extend([byte >> 4, byte & 15].map(|digit| char::from(DIGITS[usize::from(digit)])));
    }
    text
}

impl FromStr for EncAlgo {
    type Err = Error;
    fn from_str(name: &str) -> Result<Self, Error> {
        let found = [Self::OaepSha1, Self::OaepSha224].into_iter().find(|a| a.name() == name);
        found.ok_or_else(|| Error::UnknownEncAlgo(name.into()))
    }
}

impl FromStr for SigAlgo {
    type Err = Error;
    fn from_str(name: &str) -> Result<Self, Error> {
        let found =
            [Self::Pkcs1v15Sha1, Self::Pkcs1v15Sha224].into_iter().find(|a| a.name() == name);
        found.ok_or_else(|| Error::UnknownSigAlgo(name.into()))
    }
}

impl FromStr for Hash {
    type Err = Error;
    fn from_str(name: &str) -> Result<Self, Error> {
        use Hash::{Md5, Sha1, Sha224, Sha256, Sha384, Sha512};
        let all = [Md5, Sha1, Sha224, Sha256, Sha384, Sha512];
        let found = all.into_iter().find(|h| h.name() == name);
        found.ok_or_else(|| Error::UnknownHash(name.into()))
    }
}

impl fmt::Display for EncAlgo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for SigAlgo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_closed() {
        for name in ["OAEP-SHA1", "OAEP-SHA224"] {
            assert_eq!(name.parse::<EncAlgo>().map(EncAlgo::name).ok(), Some(name));
        }
        for name in ["PKCS1v15-SHA1", "PKCS1v15-SHA224"] {
            assert_eq!(name.parse::<SigAlgo>().map(SigAlgo::name).ok(), Some(name));
        }
        for name in ["", "OAEP-SHA256", "oaep-sha1", "PKCS1v15-SHA1", " OAEP-SHA1"] {
            assert!(name.parse::<EncAlgo>().is_err(), "{name}");
        }
        for name in ["", "PKCS1v15-SHA256", "PSS-SHA1", "OAEP-SHA1", "X9.31"] {
            assert!(name.parse::<SigAlgo>().is_err(), "{name}");
        }
        assert!("sha3_256".parse::<Hash>().is_err());
        let told = "x".parse::<SigAlgo>().expect_err("unknown").to_string();
        assert_eq!(told, "Invalid signing algorithm: x");
    }

    #[test]
    fn digests() {
        assert_eq!(Hash::Md5.hex(b""), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(Hash::Sha1.hex(b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        let lengths = ["md5", "sha1", "sha224", "sha256", "sha384", "sha512"]
            .map(|name| name.parse::<Hash>().expect("known").digest(b"x").len());
        assert_eq!(lengths, [16, 20, 28, 32, 48, 64]);
    }
}
