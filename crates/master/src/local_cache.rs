//! Salt's job cache on disk, for programs of Salt that look there.
//!
//! The genuine `salt` command does not believe in a job that is not in `cachedir/jobs`; genuine
//! runners read returns from there. So jobs published by genuine clients are written there too;
//! our own programs ask the master. Of batches there is `.batch.p`, whoever began them, as scripts
//! look for it. The store is what counts: these files are not synced, and nothing of ours reads
//! them.

use std::{
    collections::HashMap,
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use halite_crypt::Hash;
use halite_value::{
    Dict, SmolStr, Value, entries,
    msgpack::{self, Dialect},
};
use halite_wire::{Jid, MinionId};
use parking_lot::Mutex;

/// The folder `cachedir/jobs`.
pub(crate) struct LocalCache {
    dir: PathBuf,
    hash: Hash,
    /// Write all jobs, whoever published them (`halite: {salt_job_cache: true}`).
    pub(crate) always: bool,
    /// Whether lately used jobs are here: most are not, and returns come by the thousand.
    lately: Mutex<HashMap<SmolStr, bool>>,
}

/// So many jobs are remembered; then it starts anew.
const LATELY: usize = 10_000;

impl LocalCache {
    pub(crate) fn new(cachedir: &Path, hash: Hash, always: bool) -> Self {
        Self { dir: cachedir.join("jobs"), hash, always, lately: Mutex::default() }
    }

    /// Tells whether a job is known not to be here.
    pub(crate) fn lacks(&self, jid: &Jid) -> bool {
        self.lately.lock().get(jid.as_str()) == Some(&false)
    }

    /// Remembers whether a job is here.
    pub(crate) fn note(&self, jid: &Jid, is_here: bool) {
        let mut lately = self.lately.lock();
        if lately.len() >= LATELY {
            lately.clear();
        }
        lately.insert(jid.as_str().into(), is_here);
    }

    fn folder(&self, jid: &Jid) -> PathBuf {
        let digits = self.hash.hex(jid.as_bytes());
        let (first, rest) = digits.split_at(2);
        self.dir.join(first).join(rest)
    }

    /// Writes a job. Blocking.
    pub(crate) fn save_load(&self, jid: &Jid, load: &Dict, minions: &[SmolStr]) -> io::Result<()> {
        let folder = self.folder(jid);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("jid"), jid.as_bytes())?;
        write(&folder.join(".minions.p"), &Value::list(minions))?;
        // Last: Salt takes a job for complete when it has this.
        write(&folder.join(".load.p"), &load.into())?;
        self.note(jid, true);
        Ok(())
    }

    /// Writes a return, if the job is here. Blocking.
    pub(crate) fn save_return(&self, jid: &Jid, id: &MinionId, load: &Dict) -> io::Result<()> {
        let folder = self.folder(jid);
        let is_here = folder.join("jid").exists();
        self.note(jid, is_here);
        if !is_here {
            return Ok(());
        }
        let own = folder.join(id.as_str());
        match fs::create_dir(&own) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let kept: Dict = ["return", "retcode", "success", "fun", "fun_args", "id", "jid"]
            .into_iter()
            .filter_map(|name| Some((name, load.get(name)?)))
            .collect();
        let ret = entries! {};
        for name in ["return", "retcode", "success"] {
            if let Some(value) = kept.get(name) {
                ret.insert(name, value);
            }
        }
        if let Some(out) = load.get("out") {
            write(&own.join("out.p"), &out)?;
        }
        write(&own.join("return.p"), &ret.into())
    }

    /// Writes how far a batch is. Blocking.
    pub(crate) fn save_batch(&self, jid: &Jid, state: &Dict) -> io::Result<()> {
        let folder = self.folder(jid);
        fs::create_dir_all(&folder)?;
        write(&folder.join(".batch.p"), &state.into())
    }

    /// Removes a job. Blocking.
    pub(crate) fn remove(&self, jid: &str) {
        let Ok(jid) = Jid::new(jid) else { return };
        let folder = self.folder(&jid);
        if let Err(error) = fs::remove_dir_all(&folder)
            && error.kind() != ErrorKind::NotFound
        {
            tracing::warn!("Unable to remove {}: {error}", folder.display());
        }
        // Fails while it holds other jobs, which is as it should be.
        if let Some(parent) = folder.parent() {
            let _ = fs::remove_dir(parent);
        }
    }
}

fn write(path: &Path, value: &Value) -> io::Result<()> {
    let bytes = msgpack::to_vec(value, Dialect::Modern).map_err(io::Error::other)?;
    let temp = path.with_extension("tmp");
    fs::write(&temp, bytes)?;
    fs::rename(&temp, path)
}
