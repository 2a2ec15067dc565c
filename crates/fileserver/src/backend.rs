//! What a back end of the file server is.

use std::{path::PathBuf, sync::Arc};

use halite_spec::{
    Stat,
    host::{Kind as FileKind, Result},
};
use halite_value::Value;

use crate::{RelPath, hash::Kind};

/// A served file that was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// Where it lies on this machine, as users know it.
    pub path: PathBuf,
    /// What is to be opened: the same, or with links resolved, if those were checked.
    pub real: PathBuf,
    /// Its path in the environment.
    pub rel: RelPath,
    pub stat: Stat,
}

/// Everything an environment holds, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    pub files: Vec<String>,
    pub dirs: Vec<String>,
    pub empty_dirs: Vec<String>,
    /// Links with their destinations as written.
    pub links: Vec<(String, String)>,
}

/// A source of files: `roots`, `git` …
pub trait Backend: Send + Sync {
    /// Returns the name users configure: `roots`.
    fn name(&self) -> &str;

    /// Returns the environments, sorted.
    fn envs(&self) -> Result<Vec<String>>;

    /// Finds a file; with an index, only in that one of the environment's roots.
    fn find(&self, path: &RelPath, saltenv: &str, index: Option<usize>) -> Result<Option<Found>>;

    /// Returns the hash of a found file.
    fn hash(&self, found: &Found) -> Result<(Kind, String)>;

    /// Reads a piece of a found file; less than asked for at its end.
    fn read(&self, found: &Found, offset: u64, length: usize) -> Result<Vec<u8>>;

    fn lists(&self, saltenv: &str) -> Result<Arc<Lists>>;

    /// Forgets the lists of these environments (of all, with `None`); returns which it had.
    fn clear_lists(&self, saltenvs: Option<&[String]>) -> Vec<String>;
}

/// Returns the ten numbers of Python's `os.stat`, as they travel.
pub fn stat_list(stat: &Stat) -> Value {
    let kind: u32 = match stat.kind {
        FileKind::File => 0o100_000,
        FileKind::Dir => 0o040_000,
        FileKind::Link => 0o120_000,
        FileKind::Block => 0o060_000,
        FileKind::Char => 0o020_000,
        FileKind::Fifo => 0o010_000,
        FileKind::Socket => 0o140_000,
    };
    Value::list([
        Value::from(kind | stat.mode),
        stat.inode.into(),
        stat.device.into(),
        stat.links.into(),
        stat.uid.into(),
        stat.gid.into(),
        stat.size.into(),
        Value::Int(stat.atime.floor() as i64),
        Value::Int(stat.mtime.floor() as i64),
        Value::Int(stat.ctime.floor() as i64),
    ])
}
