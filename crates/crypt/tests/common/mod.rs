//! What the tests share: recorded data, hex, and a directory that goes away.
#![allow(dead_code, reason = "each test file uses its part")]

use std::path::{Path, PathBuf};

use serde_json::Value;

pub(crate) fn unhex(value: &Value) -> Vec<u8> {
    let text = text(value);
    let pairs = (0..text.len()).step_by(2);
    pairs.map(|i| u8::from_str_radix(&text[i..i + 2], 16).expect("hex")).collect()
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().expect("a text in the recorded data")
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list in the recorded data")
}

pub(crate) fn genuine() -> Value {
    serde_json::from_str(include_str!("../data/genuine.json")).expect("JSON")
}

/// A directory under the system's temporary one, removed when dropped.
pub(crate) struct TempDir(PathBuf);

impl TempDir {
    pub(crate) fn new() -> Self {
        let name = format!("halite-crypt-{}", halite_crypt::Nonce::generate().as_str());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).expect("a fresh directory");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A small generator of the same numbers in every run (xorshift).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
}
