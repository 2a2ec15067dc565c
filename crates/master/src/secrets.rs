//! The master's own keys: RSA, the shared key of publications, one session key per minion, and the
//! keys of local users.
//!
//! Unlike Salt we keep the shared key over a restart (0600, beside the session keys): no minion has
//! to sign in again because its master was restarted. A minion drops what does not carry a growing
//! `serial` under one key, so ours starts at the clock's microseconds instead of 1 and grows from
//! there. Where it started last is written down: after a start with the clock put back it goes on from
//! there, or minions would take every job for a repeat until the clock has caught up.
//!
//! Salt's requests can be recorded and played back. Ours remember the nonces of each session; what
//! is too old to be remembered is recognised by its `ts`, compared with the newest one this minion
//! has sent (its clock against its own clock: no common time is needed). A minion whose clock was
//! put back is refused once and gets a new session key when it signs in again.

use std::{
    collections::{HashMap, HashSet, hash_map::DefaultHasher},
    fs,
    hash::{Hash as _, Hasher as _},
    io::ErrorKind,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::{Duration, SystemTime},
};

use halite_crypt::{Crypticle, KeyOptions, PkiDir, PrivateKey, SessionKey, file, pki};
use halite_value::SmolStr;
use halite_wire::MinionId;
use parking_lot::{Mutex, RwLock};

use crate::{Error, Settings};

/// How far behind the newest a request's `ts` may be.
const BEHIND: i64 = 120;
/// Nonces remembered per session and generation.
const NONCES: usize = 1 << 17;

/// The key that all minions share, for publications.
pub(crate) struct Shared {
    pub(crate) key: SessionKey,
    pub(crate) crypticle: Crypticle,
    /// The inner signature of every sign-in reply: the same for all, so made once.
    pub(crate) proof: Vec<u8>,
    /// The first serial; grows from key to key.
    pub(crate) first: i64,
    serial: AtomicI64,
    pub(crate) seen: Mutex<Seen>,
}

impl Shared {
    fn new(key: SessionKey, master: &PrivateKey, first: i64) -> Result<Self, Error> {
        Ok(Self {
            crypticle: Crypticle::new(&key),
            proof: key.proof(master)?,
            key,
            first,
            serial: AtomicI64::new(first),
            seen: Mutex::default(),
        })
    }

    /// Returns the number of the next publication.
    pub(crate) fn next_serial(&self) -> i64 {
        self.serial.fetch_add(1, Ordering::AcqRel)
    }
}

/// What a session has seen already: the nonces of the last while, in two generations.
///
/// The earlier generation is dropped as a whole once all of it is too old to be taken anyway, so
/// that a nonce needs no time of its own: eight bytes of it, in a set.
#[derive(Default)]
pub(crate) struct Seen {
    recent: HashSet<u64>,
    /// Those whose `ts` is not after `since`.
    earlier: HashSet<u64>,
    /// The newest `ts` when `recent` was begun.
    since: i64,
    newest: i64,
    floor: i64,
}

/// Whether a request is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freshness {
    Fresh,
    Replayed,
    /// Older than what is remembered: refused, but perhaps its clock was put back.
    Stale,
}

impl Seen {
    /// Judges a request, and remembers it.
    pub(crate) fn judge(&mut self, nonce: &str, ts: Option<i64>) -> Freshness {
        let ts = ts.unwrap_or(self.newest);
        let nonce = number_of(nonce);
        if self.recent.contains(&nonce) || self.earlier.contains(&nonce) {
            return Freshness::Replayed;
        }
        self.newest = self.newest.max(ts);
        self.floor = self.floor.max(self.newest - BEHIND);
        if self.newest > self.since + BEHIND {
            self.turn();
        } else if self.recent.len() >= NONCES && self.newest > self.since {
            // A burst gives up the right to be old; a flood within one second is refused.
            self.floor = self.floor.max(self.since + 1);
            self.turn();
        }
        if ts < self.floor || self.recent.len() >= NONCES {
            return Freshness::Stale;
        }
        self.recent.insert(nonce);
        Freshness::Fresh
    }

    /// Drops the earlier generation, all of which is below the floor, and begins another.
    fn turn(&mut self) {
        self.earlier = std::mem::take(&mut self.recent);
        self.since = self.newest;
    }
}

/// Returns half of a nonce as a number: it is one, in 32 hexadecimal digits; another's text is
/// hashed. Two that are new and have the same half would be one replay: once in 2^64.
fn number_of(nonce: &str) -> u64 {
    match u128::from_str_radix(nonce, 16) {
        Ok(number) if nonce.len() == 32 => number as u64,
        _ => {
            let mut hasher = DefaultHasher::new();
            nonce.hash(&mut hasher);
            hasher.finish()
        }
    }
}

/// A minion's own key.
pub(crate) struct Session {
    pub(crate) key: SessionKey,
    pub(crate) crypticle: Crypticle,
    made: SystemTime,
    seen: Mutex<Seen>,
    /// A stale request came in: the next sign-in gets a new key.
    doubted: AtomicBool,
    /// The token that was verified last, with the key file's identity it was verified against.
    pub(crate) token: Mutex<Option<(Vec<u8>, u64)>>,
}

impl Session {
    fn new(key: SessionKey, made: SystemTime) -> Self {
        Self {
            crypticle: Crypticle::new(&key),
            key,
            made,
            seen: Mutex::default(),
            doubted: AtomicBool::new(false),
            token: Mutex::default(),
        }
    }

    fn is_older_than(&self, age: Duration) -> bool {
        self.made.elapsed().is_ok_and(|elapsed| elapsed > age)
    }

    /// Judges a request, and remembers it.
    pub(crate) fn judge(&self, nonce: &str, ts: Option<i64>) -> Freshness {
        let freshness = self.seen.lock().judge(nonce, ts);
        if freshness == Freshness::Stale {
            self.doubted.store(true, Ordering::Release);
        }
        freshness
    }
}

/// All keys of the master.
pub(crate) struct Secrets {
    pub(crate) master: PrivateKey,
    /// `pub_sig`, if `master_sign_pubkey`.
    pub(crate) signed_public: Option<String>,
    shared: RwLock<Arc<Shared>>,
    shared_file: PathBuf,
    sessions: RwLock<HashMap<MinionId, Arc<Session>>>,
    sessions_dir: PathBuf,
    lifetime: Duration,
    /// Login name → key string.
    users: RwLock<HashMap<SmolStr, SmolStr>>,
}

impl Secrets {
    /// Reads or makes everything. Blocking.
    pub(crate) fn load(settings: &Settings, owner: Option<u32>) -> Result<Self, Error> {
        let opts = &settings.opts;
        let pass = opts.opt_str("key_pass");
        let bits = u32::try_from(opts.int("keysize")).unwrap_or(2048);
        let options = KeyOptions { bits, passphrase: pass.as_deref(), owner };
        let dir = PkiDir::new(&settings.pki_dir);
        let master = dir.master(&settings.id, &options)?;
        let signed_public = if opts.bool("master_sign_pubkey") {
            Some(signature(settings, &dir, &master)?)
        } else {
            None
        };
        let shared_file = settings.cachedir.join(".halite_shared_key");
        let shared = load_shared(&shared_file, settings.publish_session, &master)?;
        Ok(Self {
            master,
            signed_public,
            shared: RwLock::new(Arc::new(shared)),
            shared_file,
            sessions: RwLock::default(),
            sessions_dir: settings.cachedir.join("sessions"),
            lifetime: settings.publish_session,
            users: RwLock::default(),
        })
    }

    pub(crate) fn shared(&self) -> Arc<Shared> {
        self.shared.read().clone()
    }

    /// Replaces the shared key: from now on, minions have to sign in to read publications.
    pub(crate) fn rotate(&self) -> Result<(), Error> {
        let after = self.shared().serial.load(Ordering::Acquire);
        let shared = make_shared(&self.shared_file, &self.master, after)?;
        *self.shared.write() = Arc::new(shared);
        Ok(())
    }

    /// Returns the session of a minion if it is in memory and young enough.
    pub(crate) fn session(&self, id: &str) -> Option<Arc<Session>> {
        let session = self.sessions.read().get(id).cloned()?;
        (!session.is_older_than(self.lifetime)).then_some(session)
    }

    /// As [`Secrets::session`], looking at the disk as well. Blocking.
    pub(crate) fn stored_session(&self, id: &MinionId) -> Option<Arc<Session>> {
        if let Some(session) = self.session(id) {
            return Some(session);
        }
        let (key, made) = read_key(&self.sessions_dir.join(id.as_str())).ok()??;
        let session = Arc::new(Session::new(key, made));
        if session.is_older_than(self.lifetime) {
            return None;
        }
        Some(self.sessions.write().entry(id.clone()).or_insert(session).clone())
    }

    /// Returns the session for a sign-in, a new one if need be. Blocking.
    pub(crate) fn open_session(&self, id: &MinionId) -> Result<Arc<Session>, Error> {
        if let Some(session) = self.stored_session(id)
            && !session.doubted.load(Ordering::Acquire)
        {
            return Ok(session);
        }
        let key = SessionKey::generate();
        file::write(&self.sessions_dir.join(id.as_str()), key.text().expose(), 0o600, None)?;
        let session = Arc::new(Session::new(key, SystemTime::now()));
        self.sessions.write().insert(id.clone(), session.clone());
        Ok(session)
    }

    /// Ends a minion's session: its key was deleted or rejected. Blocking.
    pub(crate) fn end_session(&self, id: &MinionId) {
        self.sessions.write().remove(id);
        if let Err(error) = fs::remove_file(self.sessions_dir.join(id.as_str()))
            && error.kind() != ErrorKind::NotFound
        {
            tracing::error!("Unable to remove the session of {id}: {error}");
        }
    }

    /// Makes the key files of local users who may publish. Blocking.
    pub(crate) fn make_user_keys(
        &self,
        cachedir: &Path,
        users: &[(SmolStr, Option<u32>)],
    ) -> Result<(), Error> {
        let mut keys = HashMap::new();
        for (user, uid) in users {
            // A domain user's name has a backslash.
            let name = user.replace('\\', "_");
            if MinionId::new(&name).is_err() {
                continue;
            }
            let path = cachedir.join(format!(".{name}_key"));
            let kept = match read_key(&path) {
                Ok(Some((key, _))) => key.text().expose_str().map(SmolStr::from),
                _ => None,
            };
            let text = match kept {
                Some(text) => text,
                None => {
                    let key = SessionKey::generate();
                    file::write(&path, key.text().expose(), 0o600, *uid)?;
                    key.text().expose_str().unwrap_or_default().into()
                }
            };
            keys.insert(user.clone(), text);
        }
        *self.users.write() = keys;
        Ok(())
    }

    /// Returns the users whose key this is.
    pub(crate) fn users_of_key(&self, key: &str) -> Vec<SmolStr> {
        let users = self.users.read();
        let is_own =
            |(_, own): &(&SmolStr, &SmolStr)| halite_crypt::same(own.as_bytes(), key.as_bytes());
        users.iter().filter(is_own).map(|(user, _)| user.clone()).collect()
    }
}

fn signature(settings: &Settings, dir: &PkiDir, master: &PrivateKey) -> Result<String, Error> {
    let opts = &settings.opts;
    if opts.bool("master_use_pubkey_signature") {
        let configured = opts.opt_str("master_pubkey_signature");
        let file = halite_keys::signature_file(configured.as_deref(), &settings.id);
        if let Some(signature) = dir.pubkey_signature(&file)? {
            return Ok(signature);
        }
        tracing::error!("The signature file {file} was not found; the key is signed at once");
    }
    let name = opts.opt_str("master_sign_key_name").unwrap_or_else(|| "master_sign".into());
    let pass = opts.opt_str("signing_key_pass");
    let options = KeyOptions { passphrase: pass.as_deref(), ..KeyOptions::default() };
    let signing = dir.load_or_create(&name, &options)?;
    Ok(pki::sign_pubkey(&signing, settings.master_signing, master.public().text())?)
}

/// Reads a key file with the time it was made; `None` if there is none, or it is none of ours.
fn read_key(path: &Path) -> Result<Option<(SessionKey, SystemTime)>, Error> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(Error::io(path, source)),
    };
    // Readable by others, or a link somebody planted: not a secret any more.
    if !metadata.is_file() || metadata.mode() & 0o077 != 0 {
        return Ok(None);
    }
    let Some(text) = file::read(path)? else { return Ok(None) };
    let made = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    Ok(SessionKey::parse(text.trim_ascii()).ok().map(|key| (key, made)))
}

fn first_serial() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_micros()).unwrap_or(1).max(1)
}

fn load_shared(path: &Path, lifetime: Duration, master: &PrivateKey) -> Result<Shared, Error> {
    match read_key(path)? {
        // The clock before the key was made: it was put back, and serials would repeat.
        Some((key, made)) if made.elapsed().is_ok_and(|age| age < lifetime) => {
            let first = serial_after(last_start(path), first_serial());
            note_start(path, first);
            Shared::new(key, master, first)
        }
        _ => make_shared(path, master, last_start(path)),
    }
}

/// More publications than a master makes between two starts.
const ONE_RUN: i64 = 1_000_000_000;

/// Returns where serials start at this time, after a start at `last`.
fn serial_after(last: i64, now: i64) -> i64 {
    if now > last { now } else { last.saturating_add(ONE_RUN) }
}

fn start_file(shared: &Path) -> PathBuf {
    shared.with_file_name(".halite_shared_serial")
}

/// Returns where the serials of the last start began; 0 if that is not known.
fn last_start(shared: &Path) -> i64 {
    let text = fs::read_to_string(start_file(shared)).unwrap_or_default();
    text.trim().parse().unwrap_or(0).max(0)
}

/// Without the note all is well as long as the clock is.
fn note_start(shared: &Path, first: i64) {
    let path = start_file(shared);
    if let Err(error) = file::write(&path, first.to_string().as_bytes(), 0o600, None) {
        tracing::warn!("cannot write {}: {error}", path.display());
    }
}

/// Makes a shared key whose serials come after `after`, whatever the clock did.
fn make_shared(path: &Path, master: &PrivateKey, after: i64) -> Result<Shared, Error> {
    let key = SessionKey::generate();
    file::write(path, key.text().expose(), 0o600, None)?;
    let first = first_serial().max(after.saturating_add(1));
    note_start(path, first);
    Shared::new(key, master, first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serials_grow_whatever_the_clock_does() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("key");
        let master = PrivateKey::generate(2048).expect("a key");
        let start = || load_shared(&path, Duration::from_secs(86400), &master).expect("a key");
        let one = start();
        let hour = 3_600_000_000;
        // That start was an hour from now; since then jobs were published.
        note_start(&path, one.first + hour);
        let two = start();
        assert_eq!(two.key.text().expose(), one.key.text().expose(), "nobody has to sign in again");
        assert!(two.first > one.first + hour + 1_000_000, "{} {}", one.first, two.first);
        let three = start();
        assert!(three.first > two.first);
        fs::write(start_file(&path), "junk").expect("a file");
        assert!(start().first > one.first, "the clock's word, where there is no other");
        fs::remove_file(&path).expect("it was there");
        note_start(&path, three.first);
        assert!(start().first > three.first, "with a new key, too");
    }

    #[test]
    fn nothing_is_taken_twice() {
        let mut seen = Seen::default();
        assert_eq!(seen.judge("a", Some(1000)), Freshness::Fresh);
        assert_eq!(seen.judge("a", Some(1000)), Freshness::Replayed);
        assert_eq!(seen.judge("b", Some(900)), Freshness::Fresh);
        assert_eq!(seen.judge("c", Some(2000)), Freshness::Fresh);
        assert_eq!(seen.judge("d", Some(1879)), Freshness::Stale);
        assert_eq!(seen.judge("e", Some(1880)), Freshness::Fresh);
        assert_eq!(seen.judge("f", None), Freshness::Fresh);
        assert_eq!(seen.judge("f", None), Freshness::Replayed);
    }

    #[test]
    fn what_is_forgotten_is_refused_as_too_old() {
        let mut seen = Seen::default();
        for n in 0..3 * NONCES as i64 {
            assert_eq!(seen.judge(&n.to_string(), Some(10_000 + n / 1000)), Freshness::Fresh);
            assert!(seen.recent.len() <= NONCES && seen.earlier.len() <= NONCES);
        }
        for n in 0..3 * NONCES as i64 {
            assert_ne!(seen.judge(&n.to_string(), Some(10_000 + n / 1000)), Freshness::Fresh);
        }
    }

    #[test]
    fn what_is_too_old_anyway_is_not_kept() {
        let mut seen = Seen::default();
        let text = |n: i64| format!("{n:032x}");
        for n in 0..10 * BEHIND {
            assert_eq!(seen.judge(&text(n), Some(10_000 + n)), Freshness::Fresh);
            let kept = seen.recent.len() + seen.earlier.len();
            assert!(kept <= 2 * BEHIND as usize + 3, "{kept}");
            assert_eq!(seen.judge(&text(n), Some(10_000 + n)), Freshness::Replayed);
        }
        for n in 0..10 * BEHIND {
            assert_ne!(seen.judge(&text(n), Some(10_000 + n)), Freshness::Fresh);
        }
    }

    #[test]
    fn a_flood_is_refused_and_passes() {
        let mut seen = Seen::default();
        for n in 0..NONCES {
            assert_eq!(seen.judge(&n.to_string(), Some(10_000)), Freshness::Fresh);
        }
        // All of one second: nothing could be dropped that would not be taken again.
        assert_eq!(seen.judge("one more", Some(10_000)), Freshness::Stale);
        assert_eq!(seen.judge("0", Some(10_000)), Freshness::Replayed);
        assert_eq!(seen.judge("later", Some(10_001)), Freshness::Fresh);
        assert_eq!(seen.judge("0", Some(10_000)), Freshness::Replayed);
    }
}
