//! The hashes Salt knows: of files, and as users write them.

use std::io::Read;

use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

/// A kind of hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Md5,
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

impl Kind {
    /// In the order in which Salt lists them: the longest first.
    pub const ALL: [Self; 6] =
        [Self::Sha512, Self::Sha384, Self::Sha256, Self::Sha224, Self::Sha1, Self::Md5];

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

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns how many hexadecimal digits it has.
    pub fn digits(self) -> usize {
        match self {
            Self::Md5 => 32,
            Self::Sha1 => 40,
            Self::Sha224 => 56,
            Self::Sha256 => 64,
            Self::Sha384 => 96,
            Self::Sha512 => 128,
        }
    }

    pub fn of_length(digits: usize) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.digits() == digits)
    }

    /// Hashes everything that can be read; returns lower-case hexadecimal digits.
    pub fn of(self, content: &mut dyn Read) -> std::io::Result<String> {
        match self {
            Self::Md5 => digest::<Md5>(content),
            Self::Sha1 => digest::<Sha1>(content),
            Self::Sha224 => digest::<Sha224>(content),
            Self::Sha256 => digest::<Sha256>(content),
            Self::Sha384 => digest::<Sha384>(content),
            Self::Sha512 => digest::<Sha512>(content),
        }
    }

    pub fn of_bytes(self, mut bytes: &[u8]) -> String {
        self.of(&mut bytes).expect("memory can be read")
    }
}

fn digest<D: Digest>(content: &mut dyn Read) -> std::io::Result<String> {
    let mut hasher = D::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match content.read(&mut buffer)? {
            0 => break,
            read => hasher.update(&buffer[..read]),
        }
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_nothing() {
        assert_eq!(Kind::Md5.of_bytes(b""), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(Kind::Sha1.of_bytes(b""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
        for kind in Kind::ALL {
            assert_eq!(kind.of_bytes(b"x").len(), kind.digits());
            assert_eq!(Kind::named(kind.name()), Some(kind));
            assert_eq!(Kind::of_length(kind.digits()), Some(kind));
        }
    }
}
