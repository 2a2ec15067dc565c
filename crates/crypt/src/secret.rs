//! Bytes that must not be seen: wiped when dropped, mute in `Debug`, no `Display`, no serialisation.

use std::fmt;

use zeroize::Zeroizing;

/// Secret bytes. The only way to them is [`Secret::expose`], so every use can be found by its name.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Takes ownership of secret bytes.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Shows the bytes; think before you store or print them.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// Shows the bytes as text, if they are text.
    pub fn expose_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// Compares in constant time (lengths are not secret).
    pub fn equals(&self, other: &[u8]) -> bool {
        same(&self.0, other)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Compares two byte strings in constant time; only their lengths may leak.
pub fn same(a: &[u8], b: &[u8]) -> bool {
    subtle::ConstantTimeEq::ct_eq(a, b).into()
}
