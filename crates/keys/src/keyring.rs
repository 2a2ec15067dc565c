//! Which minions may talk to this master: the key files in `pki_dir`, as Salt lays them out.
//!
//! The files are the truth. `salt-key`, scripts and people change them behind our back, so every
//! look-up compares the file (one `stat`) before it uses what is in memory. Ids are [`MinionId`]s
//! and cannot leave their folder; links are not followed, as in Salt 3008.

use std::{
    collections::HashMap,
    fs,
    io::ErrorKind,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use halite_crypt::{PublicKey, file, same_key};
use halite_wire::MinionId;
use parking_lot::{Mutex, RwLock};

use crate::Error;

/// What the master thinks of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyState {
    Accepted,
    Pending,
    Rejected,
    Denied,
}

impl KeyState {
    pub const ALL: [Self; 4] = [Self::Accepted, Self::Pending, Self::Rejected, Self::Denied];

    /// The folder of the state, which is also Salt's name for it in answers.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Accepted => "minions",
            Self::Pending => "minions_pre",
            Self::Rejected => "minions_rejected",
            Self::Denied => "minions_denied",
        }
    }

    /// The word in `salt/key` events.
    pub fn word(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Pending => "pending",
            Self::Rejected => "rejected",
            Self::Denied => "denied",
        }
    }
}

/// What tells one version of a file from another.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Version {
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

/// An accepted key with what tells it from another one for the same id.
#[derive(Clone)]
pub struct Accepted {
    pub key: PublicKey,
    /// Changes whenever the file does.
    pub version: u64,
}

/// The folders of keys.
pub struct Keyring {
    dir: PathBuf,
    group_may_read: bool,
    accepted: RwLock<HashMap<MinionId, (Version, Arc<Accepted>)>>,
    next_version: std::sync::atomic::AtomicU64,
    listed: Mutex<Option<Listed>>,
    /// One change at a time: states are moves between folders.
    changing: Mutex<()>,
}

struct Listed {
    version: (Version, SystemTime),
    ids: Arc<Vec<MinionId>>,
}

/// The time in which a folder may change twice under one time stamp.
const TICK: Duration = Duration::from_millis(50);

impl Keyring {
    /// Names the folders; nothing is touched yet. What is not there holds no keys.
    pub fn new(dir: &Path, group_may_read: bool) -> Self {
        Self {
            dir: dir.to_owned(),
            group_may_read,
            accepted: RwLock::default(),
            next_version: 1.into(),
            listed: Mutex::default(),
            changing: Mutex::default(),
        }
    }

    /// Makes the folders. Blocking, like everything here.
    pub fn open(dir: &Path, group_may_read: bool) -> Result<Self, Error> {
        let keyring = Self::new(dir, group_may_read);
        keyring.make_folders()?;
        Ok(keyring)
    }

    /// Makes the folders that are missing.
    pub fn make_folders(&self) -> Result<(), Error> {
        let mode = if self.group_may_read { 0o750 } else { 0o700 };
        let folders = KeyState::ALL.map(KeyState::folder);
        for folder in folders.into_iter().chain(["minions_autosign"]) {
            let path = self.dir.join(folder);
            let made = fs::DirBuilder::new().recursive(true).mode(mode).create(&path);
            made.map_err(|source| Error::io(&path, source))?;
        }
        Ok(())
    }

    fn path(&self, state: KeyState, id: &MinionId) -> PathBuf {
        self.dir.join(state.folder()).join(id.as_str())
    }

    /// Returns an accepted minion's key.
    pub fn accepted(&self, id: &MinionId) -> Option<Arc<Accepted>> {
        let path = self.path(KeyState::Accepted, id);
        let Some(version) = version_of(&path) else {
            self.accepted.write().remove(id);
            return None;
        };
        if let Some((known, accepted)) = self.accepted.read().get(id)
            && *known == version
        {
            return Some(Arc::clone(accepted));
        }
        let text = file::read(&path).ok()??;
        let key = PublicKey::from_pem(&text)
            .inspect_err(|error| tracing::error!("The key of {id} is unusable: {error}"))
            .ok()?;
        let number = self.next_version.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let accepted = Arc::new(Accepted { key, version: number });
        self.accepted.write().insert(id.clone(), (version, Arc::clone(&accepted)));
        Some(accepted)
    }

    /// Tells whether an accepted key is on file, without reading it.
    pub fn is_accepted(&self, id: &MinionId) -> bool {
        version_of(&self.path(KeyState::Accepted, id)).is_some()
    }

    /// Returns state and text of a minion's key, in Salt's order of looking.
    pub fn find(&self, id: &MinionId) -> Option<(KeyState, String)> {
        [KeyState::Rejected, KeyState::Pending, KeyState::Accepted]
            .into_iter()
            .find_map(|state| Some((state, self.text(state, id)?)))
    }

    /// Returns the text of a key in a state.
    pub fn text(&self, state: KeyState, id: &MinionId) -> Option<String> {
        let path = self.path(state, id);
        version_of(&path)?;
        let text = file::read(&path).ok()??;
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    /// Stores a key under a state, and removes it from the others (a denied one stands beside).
    pub fn put(&self, state: KeyState, id: &MinionId, text: &str) -> Result<(), Error> {
        let _one = self.changing.lock();
        let mode = if self.group_may_read { 0o640 } else { 0o600 };
        file::write(&self.path(state, id), text.as_bytes(), mode, None)?;
        if state != KeyState::Denied {
            for other in [KeyState::Accepted, KeyState::Pending, KeyState::Rejected] {
                if other != state {
                    remove(&self.path(other, id))?;
                }
            }
        }
        Ok(())
    }

    /// Moves a key between states. False if it is not there.
    pub fn shift(&self, id: &MinionId, from: KeyState, to: KeyState) -> Result<bool, Error> {
        let _one = self.changing.lock();
        let (old, new) = (self.path(from, id), self.path(to, id));
        match fs::rename(&old, &new) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(source) => Err(Error::io(&old, source)),
        }
    }

    /// Removes a key from a state. False if it was not there.
    pub fn delete(&self, id: &MinionId, state: KeyState) -> Result<bool, Error> {
        let _one = self.changing.lock();
        remove(&self.path(state, id))
    }

    /// Returns the ids in a state, sorted.
    pub fn list(&self, state: KeyState) -> Result<Vec<MinionId>, Error> {
        let folder = self.dir.join(state.folder());
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(Error::io(&folder, source)),
        };
        let ids: Vec<_> = entries
            .filter_map(Result::ok)
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                // What `file::write` has not finished, and what editors leave.
                if name.starts_with('.') { None } else { MinionId::new(&name).ok() }
            })
            .collect();
        Ok(MinionId::sort(ids))
    }

    /// Returns the accepted ids, read anew only if the folder has changed.
    pub fn accepted_ids(&self) -> Result<Arc<Vec<MinionId>>, Error> {
        let folder = self.dir.join(KeyState::Accepted.folder());
        let mut listed = self.listed.lock();
        let version = version_of_folder(&folder);
        if let (Some(listed), Some(version)) = (&*listed, version)
            && listed.version.0 == version
        {
            return Ok(listed.ids.clone());
        }
        let ids = Arc::new(self.list(KeyState::Accepted)?);
        // Changed a moment ago: a second change may get the same time stamp.
        let settled = version.filter(|version| {
            let modified = SystemTime::UNIX_EPOCH
                + Duration::new(
                    u64::try_from(version.modified.0).unwrap_or(0),
                    u32::try_from(version.modified.1).unwrap_or(0),
                );
            modified.elapsed().is_ok_and(|age| age > TICK)
        });
        *listed = settled
            .map(|version| Listed { version: (version, SystemTime::now()), ids: ids.clone() });
        Ok(ids)
    }

    /// Returns the folder of one-shot stubs for auto-acceptance.
    pub fn autosign_dir(&self) -> PathBuf {
        self.dir.join("minions_autosign")
    }
}

/// Tells whether two key texts are the same key.
pub fn is_same(a: &str, b: &str) -> bool {
    same_key(a, b)
}

fn remove(path: &Path) -> Result<bool, Error> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(source) => Err(Error::io(path, source)),
    }
}

fn version_of(path: &Path) -> Option<Version> {
    let metadata = fs::symlink_metadata(path).ok()?;
    metadata.is_file().then(|| version(&metadata))
}

fn version_of_folder(path: &Path) -> Option<Version> {
    Some(version(&fs::metadata(path).ok()?))
}

fn version(metadata: &fs::Metadata) -> Version {
    Version {
        inode: metadata.ino(),
        size: metadata.size(),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_state() {
        let dir = tempfile::tempdir().unwrap();
        let keys = Keyring::open(dir.path(), false).unwrap();
        let id = MinionId::new("web1").unwrap();
        assert!(keys.find(&id).is_none());
        keys.put(KeyState::Pending, &id, "PEM").unwrap();
        assert_eq!(keys.find(&id), Some((KeyState::Pending, "PEM".into())));
        assert!(keys.shift(&id, KeyState::Pending, KeyState::Accepted).unwrap());
        assert!(keys.is_accepted(&id));
        assert!(keys.accepted(&id).is_none(), "not a key at all");
        keys.put(KeyState::Rejected, &id, "PEM").unwrap();
        assert!(!keys.is_accepted(&id));
        assert!(keys.delete(&id, KeyState::Rejected).unwrap());
        assert!(!keys.delete(&id, KeyState::Rejected).unwrap());
    }

    #[test]
    fn changes_from_outside_are_seen() {
        let dir = tempfile::tempdir().unwrap();
        let keys = Keyring::open(dir.path(), false).unwrap();
        assert!(keys.accepted_ids().unwrap().is_empty());
        fs::write(dir.path().join("minions/a"), "x").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("minions/link")).unwrap();
        assert_eq!(keys.accepted_ids().unwrap().len(), 1);
        std::thread::sleep(TICK * 2);
        keys.accepted_ids().unwrap();
        fs::write(dir.path().join("minions/b"), "x").unwrap();
        fs::remove_file(dir.path().join("minions/a")).unwrap();
        let ids = keys.accepted_ids().unwrap();
        assert_eq!(ids.iter().map(MinionId::as_str).collect::<Vec<_>>(), ["b"]);
    }
}
