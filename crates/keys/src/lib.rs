//! The keys of minions: the folders of a `pki_dir`, and what `salt-key` and `wheel.key` do with them.
//!
//! [`Keyring`] knows the files (one per key, in one folder per state) and is what a master asks on
//! each sign-in. [`Keys`] is Salt's vocabulary on top of it: lists by state, globs, accept, reject,
//! delete, fingerprints, made pairs and signatures. It works on files alone, so it works while no
//! master runs; what a running master shall hear of is handed back as events ([`Changed`]).
//!
//! Absent: printing, asking, sockets.

pub mod keyring;
mod keys;

use std::{
    io,
    path::{Path, PathBuf},
};

pub use keyring::{Accepted, KeyState, Keyring};
pub use keys::{Changed, Include, Keys, Match, Signature, request_rotation, signature_file};

/// What can go wrong with the folders of keys.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Crypt(#[from] halite_crypt::Error),
    #[error(transparent)]
    Wire(#[from] halite_wire::Error),
}

impl Error {
    pub(crate) fn io(path: impl AsRef<Path>, source: io::Error) -> Self {
        Self::Io { path: path.as_ref().to_owned(), source }
    }
}
