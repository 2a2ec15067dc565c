//! What a compiled pillar depends on.
//!
//! Everything read on the way is written down with a hash of what was found, also what was looked
//! for in vain. As long as nothing of it changes (and the minion's grains do not), compiling again
//! would give the same, so asking [`Inputs::unchanged`] is enough.

use std::path::{Path, PathBuf};

use halite_fileserver::hash::Kind;
use halite_spec::Host;
use parking_lot::Mutex;

/// One thing a pillar was made from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// A file that was read, with its hash; `None` if it was not there.
    File { path: PathBuf, hash: Option<String> },
    /// The SLS below a folder: their names, hashed.
    Listing { root: PathBuf, hash: String },
    /// A function a template called, or an external source: nobody can tell whether it would
    /// answer the same.
    Volatile(String),
}

/// Collects inputs; shared by everything that takes part in a compilation.
#[derive(Debug, Default)]
pub struct Inputs(Mutex<Vec<Input>>);

impl Inputs {
    pub fn add(&self, input: Input) {
        let mut inputs = self.0.lock();
        if !inputs.contains(&input) {
            inputs.push(input);
        }
    }

    /// Adds a file by what was read from it.
    pub fn add_file(&self, path: &Path, content: Option<&[u8]>) {
        let hash = content.map(hash);
        self.add(Input::File { path: path.to_owned(), hash });
    }

    pub fn take(&self) -> Vec<Input> {
        std::mem::take(&mut self.0.lock())
    }
}

pub(crate) fn hash(content: &[u8]) -> String {
    Kind::Sha256.of_bytes(content)
}

/// Tells whether everything is as it was. Never, when something volatile took part.
pub fn unchanged(inputs: &[Input], host: &dyn Host) -> bool {
    inputs.iter().all(|input| match input {
        Input::File { path, hash: known } => {
            let content = host.read(path).ok();
            content.as_deref().map(hash) == *known
        }
        Input::Listing { root, hash } => crate::files::listing_hash(host, root) == *hash,
        Input::Volatile(_) => false,
    })
}
