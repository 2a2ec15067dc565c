//! Hashes remembered for as long as a file does not change.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use halite_spec::{
    Host, Stat,
    host::{Error, Result},
};
use parking_lot::Mutex;

use crate::hash::Kind;

/// A file changed within this time may change again without its times telling.
const SETTLED_S: f64 = 1.0;

/// Hashes kept at most; then all are forgotten.
const MAX: usize = 100_000;

/// The hashes of files, by path; valid while size, times and inode stay.
#[derive(Debug, Default)]
pub(crate) struct HashCache(Mutex<HashMap<PathBuf, Entry>>);

#[derive(Debug)]
struct Entry {
    kind: Kind,
    sign: [u64; 4],
    digits: String,
}

fn sign(stat: &Stat) -> [u64; 4] {
    [stat.mtime.to_bits(), stat.ctime.to_bits(), stat.size, stat.inode]
}

impl HashCache {
    /// Returns the hash of a file whose `stat` was just taken.
    pub(crate) fn hash(
        &self,
        host: &dyn Host,
        path: &Path,
        stat: &Stat,
        kind: Kind,
    ) -> Result<String> {
        let sign = sign(stat);
        if let Some(entry) = self.0.lock().get(path)
            && entry.kind == kind
            && entry.sign == sign
        {
            return Ok(entry.digits.clone());
        }
        let mut file = host.open(path)?;
        let digits = kind.of(&mut file).map_err(|error| Error::io("read", path, error))?;
        let now = host.now().duration_since(UNIX_EPOCH).map_or(0.0, |now| now.as_secs_f64());
        if now - stat.mtime.max(stat.ctime) > SETTLED_S {
            let mut entries = self.0.lock();
            if entries.len() >= MAX {
                entries.clear();
            }
            entries.insert(path.to_owned(), Entry { kind, sign, digits: digits.clone() });
        }
        Ok(digits)
    }
}
