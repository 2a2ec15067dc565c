//! The journal: which jobs this minion started, and which returns the master has not got yet.
//!
//! One append-only file in the cache folder. A job's id is written before the job starts, so no job
//! runs twice, whatever a master sends again; its return is written, and synced, before anybody is
//! told that it is done; the acknowledgement of the master is written after it. What follows from
//! that after a crash: a job that started and has no return was interrupted; a return without an
//! acknowledgement is sent again.
//!
//! A record is its length, a CRC-32, and msgpack. A torn one at the end (the crash itself) is cut
//! off. When most of the file is history it is written anew with what still counts; the last job
//! ids always do. Returns stay on disk and are read back to be sent: memory holds their place only.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use halite_value::{
    Dict, SmolStr, Value, entries,
    msgpack::{self, Dialect, Text},
};
use parking_lot::Mutex;

/// The file is looked over for rewriting when it is longer than this.
const REWRITE: u64 = 1 << 20;
/// No return is longer: the wire would not take it.
const MAX_RECORD: u32 = 256 << 20;
const HEADER: usize = 8;
/// How long the file is believed to be in its place without another look.
const IN_PLACE: Duration = Duration::from_secs(1);

/// What an earlier life of this minion left behind.
#[derive(Debug, Default)]
pub struct Leftovers {
    /// Jobs that started and never ended, with what was published.
    pub interrupted: Vec<Spooled>,
    /// Returns the master has not acknowledged.
    pub returns: Vec<SmolStr>,
}

/// A job, or a return to be sent.
#[derive(Debug)]
pub struct Spooled {
    pub key: SmolStr,
    /// Which master gave the job.
    pub master: SmolStr,
    pub load: Dict,
}

/// The journal.
pub struct Journal {
    inner: Mutex<Inner>,
    /// Which life of the file is known to be on disk, and up to where.
    synced: Mutex<(u64, u64)>,
}

struct Inner {
    path: PathBuf,
    file: File,
    end: u64,
    /// Bytes of records that still count.
    live: u64,
    known: Known,
    started: HashMap<SmolStr, Span>,
    returns: HashMap<SmolStr, Span>,
    /// Changes with every rewriting, so that a sync knows which file it meant.
    life: u64,
    /// When the file was last seen in its place.
    seen: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    at: u64,
    len: u64,
}

/// The last job ids, oldest first.
struct Known {
    most: usize,
    order: VecDeque<SmolStr>,
    set: HashSet<SmolStr>,
}

impl Known {
    fn add(&mut self, jid: &str) -> bool {
        if !self.set.insert(jid.into()) {
            return false;
        }
        self.order.push_back(jid.into());
        if self.order.len() > self.most
            && let Some(old) = self.order.pop_front()
        {
            self.set.remove(&old);
        }
        true
    }
}

impl Journal {
    /// Opens the journal at `path`, which remembers at least `most` job ids.
    pub fn open(path: &Path, most: usize) -> io::Result<(Self, Leftovers)> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)?;
        let mut inner = Inner {
            path: path.to_owned(),
            file,
            end: 0,
            live: 0,
            known: Known { most, order: VecDeque::new(), set: HashSet::new() },
            started: HashMap::new(),
            returns: HashMap::new(),
            life: 0,
            seen: None,
        };
        let mut order = Vec::new();
        inner.replay(&mut order)?;
        let mut leftovers = Leftovers::default();
        for key in order {
            if let Some(span) = inner.started.get(&key)
                && let Some(job) = inner.read(*span).ok().and_then(|record| spooled(&record))
            {
                leftovers.interrupted.push(job);
            }
            if inner.returns.contains_key(&key) {
                leftovers.returns.push(key);
            }
        }
        let journal = Self { inner: Mutex::new(inner), synced: Mutex::new((0, 0)) };
        journal.rewrite_if_long(0)?;
        Ok((journal, leftovers))
    }

    /// Takes a job id; false if it was taken before.
    pub fn claim(&self, jid: &str) -> bool {
        self.inner.lock().known.add(jid)
    }

    /// Notes that a job is about to start. `durable`: even a power cut shall not let it run again.
    pub fn start(&self, jid: &str, master: &str, load: &Dict, durable: bool) -> io::Result<()> {
        let record =
            entries! { "kind" => "start", "key" => jid, "master" => master, "load" => load };
        let mut inner = self.inner.lock();
        inner.known.add(jid);
        inner.look_again(durable);
        let span = inner.append(&record)?;
        inner.started.insert(jid.into(), span);
        inner.live += span.len;
        let (end, life) = (inner.end, inner.life);
        drop(inner);
        if durable { self.sync(end, life) } else { Ok(()) }
    }

    /// Keeps a return until it is acknowledged; returns the room it takes. `durable`: it is on disk
    /// when this returns.
    pub fn keep(&self, key: &str, master: &str, load: &Dict, durable: bool) -> io::Result<u64> {
        let record =
            entries! { "kind" => "return", "key" => key, "master" => master, "load" => load };
        let mut inner = self.inner.lock();
        inner.look_again(durable);
        let span = inner.append(&record)?;
        inner.returns.insert(key.into(), span);
        inner.live += span.len;
        inner.forget_start(key);
        let (end, life) = (inner.end, inner.life);
        drop(inner);
        if durable {
            self.sync(end, life)?;
        }
        Ok(span.len)
    }

    /// Returns a kept return.
    pub fn kept(&self, key: &str) -> Option<Spooled> {
        let inner = self.inner.lock();
        let span = *inner.returns.get(key)?;
        spooled(&inner.read(span).ok()?)
    }

    /// Returns the room that a kept return takes; 0 if it is kept no more.
    pub fn size_of(&self, key: &str) -> u64 {
        self.inner.lock().returns.get(key).map_or(0, |span| span.len)
    }

    /// Returns how many returns wait.
    pub fn waiting(&self) -> usize {
        self.inner.lock().returns.len()
    }

    /// Drops what is kept of jobs: their returns are acknowledged, or there are none to send.
    pub fn done<'a>(&self, keys: impl IntoIterator<Item = &'a str>) -> io::Result<()> {
        let mut inner = self.inner.lock();
        let mut records = Vec::new();
        for key in keys {
            inner.forget_start(key);
            if let Some(span) = inner.returns.remove(key) {
                inner.live -= span.len;
            }
            records.extend(framed(&entries! { "kind" => "done", "key" => key })?);
        }
        // Lost in a crash it only means that a return is sent twice; no sync.
        inner.write(&records)?;
        drop(inner);
        self.rewrite_if_long(REWRITE)
    }

    /// Brings everything written so far to the disk.
    pub fn flush(&self) -> io::Result<()> {
        let (end, life) = {
            let mut inner = self.inner.lock();
            inner.look_again(true);
            if !inner.is_in_place() {
                inner.rewrite()?;
            }
            (inner.end, inner.life)
        };
        self.sync(end, life)
    }

    fn sync(&self, end: u64, life: u64) -> io::Result<()> {
        let mut synced = self.synced.lock();
        // Rewriting syncs: a later life holds all that counted in this one.
        if *synced >= (life, end) {
            return Ok(());
        }
        let (file, now) = {
            let inner = self.inner.lock();
            (inner.file.try_clone()?, (inner.life, inner.end))
        };
        file.sync_data()?;
        *synced = now;
        Ok(())
    }

    fn rewrite_if_long(&self, limit: u64) -> io::Result<()> {
        let mut synced = self.synced.lock();
        let mut inner = self.inner.lock();
        if inner.end <= limit.max(inner.live * 2) {
            return Ok(());
        }
        let end = inner.rewrite()?;
        *synced = (inner.life, end);
        Ok(())
    }
}

impl Inner {
    fn forget_start(&mut self, key: &str) {
        if let Some(span) = self.started.remove(key) {
            self.live -= span.len;
        }
    }

    fn append(&mut self, record: &Dict) -> io::Result<Span> {
        self.write(&framed(record)?)
    }

    /// Writes records at the end, as one piece.
    fn write(&mut self, bytes: &[u8]) -> io::Result<Span> {
        if !self.is_in_place() {
            // Somebody emptied the cache folder under us; what counts goes into a new file.
            self.rewrite()?;
        }
        let written = self.file.write_all_at(bytes, self.end);
        if let Err(error) = written {
            // A full disk must not leave half a record in the way of later ones.
            let _ = self.file.set_len(self.end);
            return Err(error);
        }
        let span = Span { at: self.end, len: bytes.len() as u64 };
        self.end += span.len;
        Ok(span)
    }

    fn read(&self, span: Span) -> io::Result<Dict> {
        let len = usize::try_from(span.len).map_err(io::Error::other)?;
        let mut bytes = vec![0; len];
        self.file.read_exact_at(&mut bytes, span.at)?;
        let payload = bytes.get(HEADER..).unwrap_or_default();
        decoded(payload).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Reads all records; notes their keys in the order they came.
    fn replay(&mut self, order: &mut Vec<SmolStr>) -> io::Result<()> {
        let mut reader = io::BufReader::new(self.file.try_clone()?);
        reader.seek(SeekFrom::Start(0))?;
        while let Some((record, len)) = next_record(&mut reader)? {
            let span = Span { at: self.end, len };
            self.end += len;
            let key = record.get("key").unwrap_or_default().to_str();
            match record.get("kind").unwrap_or_default().to_str().as_str() {
                "start" => {
                    self.known.add(&key);
                    self.started.insert(key.clone(), span);
                    self.live += len;
                    order.push(key);
                }
                "return" => {
                    self.forget_start(&key);
                    self.known.add(&key);
                    if let Some(old) = self.returns.insert(key.clone(), span) {
                        self.live -= old.len;
                    }
                    self.live += len;
                    if !order.contains(&key) {
                        order.push(key);
                    }
                }
                "done" => {
                    self.forget_start(&key);
                    if let Some(span) = self.returns.remove(&key) {
                        self.live -= span.len;
                    }
                }
                "known" => {
                    let ids = record.get("ids").and_then(|ids| ids.items_of_sequence());
                    for jid in ids.unwrap_or_default() {
                        self.known.add(&jid.to_str());
                    }
                }
                // A later version may write more.
                _ => {}
            }
        }
        self.file.set_len(self.end)
    }

    /// What shall outlive a power cut is not written where it was a second ago.
    fn look_again(&mut self, durable: bool) {
        if durable {
            self.seen = None;
        }
    }

    fn is_in_place(&mut self) -> bool {
        if self.seen.is_some_and(|seen| seen.elapsed() < IN_PLACE) {
            return true;
        }
        let place = |meta: std::fs::Metadata| (meta.dev(), meta.ino());
        let is_there = match (std::fs::metadata(&self.path), self.file.metadata()) {
            (Ok(named), Ok(held)) => place(named) == place(held),
            _ => false,
        };
        self.seen = is_there.then(Instant::now);
        is_there
    }

    /// Writes the file anew with what still counts; returns its length.
    fn rewrite(&mut self) -> io::Result<u64> {
        let path = self.path.clone();
        let path = path.as_path();
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let temporary = path.with_extension("new");
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)?;
        let mut out = io::BufWriter::new(&file);
        let ids = Value::list(self.known.order.iter());
        let head = framed(&entries! { "kind" => "known", "ids" => ids })?;
        out.write_all(&head)?;
        let mut end = head.len() as u64;
        let mut moved = Vec::new();
        let spans = self.started.iter().map(|(key, span)| (true, key.clone(), *span));
        let spans = spans.chain(self.returns.iter().map(|(key, span)| (false, key.clone(), *span)));
        let mut spans: Vec<_> = spans.collect();
        spans.sort_by_key(|(_, _, span)| span.at);
        for (is_start, key, span) in spans {
            let mut bytes = vec![0; usize::try_from(span.len).map_err(io::Error::other)?];
            self.file.read_exact_at(&mut bytes, span.at)?;
            out.write_all(&bytes)?;
            moved.push((is_start, key, Span { at: end, len: span.len }));
            end += span.len;
        }
        out.flush()?;
        drop(out);
        file.sync_all()?;
        std::fs::rename(&temporary, path)?;
        if let Some(folder) = path.parent() {
            File::open(folder)?.sync_all()?;
        }
        for (is_start, key, span) in moved {
            let table = if is_start { &mut self.started } else { &mut self.returns };
            table.insert(key, span);
        }
        self.file = file;
        self.end = end;
        self.life += 1;
        Ok(end)
    }
}

fn spooled(record: &Dict) -> Option<Spooled> {
    let text = |name: &str| record.get(name).unwrap_or_default().to_str();
    match record.get("load") {
        Some(Value::Dict(load)) => Some(Spooled { key: text("key"), master: text("master"), load }),
        _ => None,
    }
}

fn framed(record: &Dict) -> io::Result<Vec<u8>> {
    let payload =
        msgpack::to_vec(&Value::from(record), Dialect::Modern).map_err(io::Error::other)?;
    let len = u32::try_from(payload.len()).ok().filter(|len| *len <= MAX_RECORD);
    let len = len.ok_or_else(|| io::Error::other("the return is too long to be kept"))?;
    let mut bytes = Vec::with_capacity(HEADER + payload.len());
    bytes.extend_from_slice(&len.to_le_bytes());
    bytes.extend_from_slice(&crc32fast::hash(&payload).to_le_bytes());
    bytes.extend_from_slice(&payload);
    Ok(bytes)
}

fn decoded(payload: &[u8]) -> Option<Dict> {
    match msgpack::from_slice(payload, Text::Typed) {
        Ok(Value::Dict(record)) => Some(record),
        _ => None,
    }
}

/// Reads one record; `None` at the end, or where the file makes no sense any more.
fn next_record(reader: &mut impl Read) -> io::Result<Option<(Dict, u64)>> {
    let mut header = [0; HEADER];
    if !fill(reader, &mut header)? {
        return Ok(None);
    }
    let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap_or_default());
    let (len, sum) = (number(&header[..4]), number(&header[4..]));
    if len > MAX_RECORD {
        return Ok(None);
    }
    // Grown as bytes come: a wrong length must not cost its memory.
    let mut payload = Vec::new();
    reader.by_ref().take(len.into()).read_to_end(&mut payload)?;
    if payload.len() != len as usize || crc32fast::hash(&payload) != sum {
        return Ok(None);
    }
    Ok(decoded(&payload).map(|record| (record, HEADER as u64 + u64::from(len))))
}

fn fill(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match reader.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(fun: &str) -> Dict {
        entries! { "fun" => fun }
    }

    fn open(folder: &tempfile::TempDir) -> (Journal, Leftovers) {
        Journal::open(&folder.path().join("cache/journal"), 100).unwrap()
    }

    #[test]
    fn a_job_starts_once_across_lives() {
        let folder = tempfile::tempdir().unwrap();
        let (journal, left) = open(&folder);
        assert!(left.interrupted.is_empty() && left.returns.is_empty());
        assert!(journal.claim("1"));
        assert!(!journal.claim("1"));
        journal.start("1", "salt", &load("a.b"), true).unwrap();
        journal.start("2", "salt", &load("c.d"), false).unwrap();
        journal.keep("2", "salt", &load("c.d"), true).unwrap();
        journal.start("3", "salt", &load("e.f"), true).unwrap();
        journal.keep("3", "salt", &load("e.f"), true).unwrap();
        journal.done(["3"]).unwrap();
        drop(journal);

        let (journal, left) = open(&folder);
        assert_eq!(left.interrupted.len(), 1);
        assert_eq!(left.interrupted[0].key, "1");
        assert_eq!(left.returns, ["2"]);
        assert_eq!(journal.kept("2").unwrap().master, "salt");
        assert!(journal.kept("3").is_none());
        for jid in ["1", "2", "3"] {
            assert!(!journal.claim(jid), "{jid}");
        }
        journal.done(["1"]).unwrap();
        journal.done(["2"]).unwrap();
        drop(journal);
        let (_, left) = open(&folder);
        assert!(left.interrupted.is_empty() && left.returns.is_empty());
    }

    #[test]
    fn a_journal_that_is_removed_comes_back_with_what_counts() {
        let folder = tempfile::tempdir().unwrap();
        let (journal, _) = open(&folder);
        journal.start("1", "salt", &load("a.b"), true).unwrap();
        journal.keep("1", "salt", &load("a.b"), true).unwrap();
        std::fs::remove_dir_all(folder.path().join("cache")).unwrap();
        journal.start("2", "salt", &load("c.d"), true).unwrap();
        drop(journal);
        let (_, left) = open(&folder);
        assert_eq!(left.returns, ["1"]);
        assert_eq!(left.interrupted.len(), 1);
    }

    #[test]
    fn a_job_that_must_not_run_again_is_never_written_beside_the_place() {
        let folder = tempfile::tempdir().unwrap();
        let (journal, _) = open(&folder);
        // Long enough that the new file is shorter than what was synced of the old one.
        for jid in ["1", "2", "3"] {
            journal.start(jid, "salt", &load(&"x".repeat(1000)), true).unwrap();
            journal.done([jid]).unwrap();
        }
        std::fs::remove_dir_all(folder.path().join("cache")).unwrap();
        journal.start("4", "salt", &load("c.d"), false).unwrap();
        journal.flush().unwrap();
        let synced = *journal.synced.lock();
        let inner = journal.inner.lock();
        assert_eq!(synced, (inner.life, inner.end));
        drop(inner);
        drop(journal);
        let (_, left) = open(&folder);
        assert_eq!(left.interrupted.len(), 1);
    }

    #[test]
    fn a_file_cut_off_anywhere_loses_only_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache/journal");
        let (journal, _) = open(&folder);
        journal.start("1", "salt", &load("a.b"), true).unwrap();
        let whole = std::fs::metadata(&path).unwrap().len();
        journal.keep("1", "salt", &load("a.b"), true).unwrap();
        drop(journal);
        let bytes = std::fs::read(&path).unwrap();
        for cut in 0..bytes.len() {
            std::fs::write(&path, &bytes[..cut]).unwrap();
            let (journal, left) = open(&folder);
            let known = cut as u64 >= whole;
            assert_eq!(!journal.claim("1"), known, "cut at {cut}");
            assert_eq!(left.interrupted.len(), usize::from(known), "cut at {cut}");
            assert_eq!(left.returns.len(), 0);
        }
        for flip in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[flip] ^= 0x40;
            std::fs::write(&path, &bad).unwrap();
            let (journal, left) = open(&folder);
            assert!(left.returns.is_empty(), "flipped {flip}");
            assert!(journal.claim("9"));
        }
    }

    #[test]
    fn history_is_dropped_and_what_counts_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache/journal");
        let (journal, _) = open(&folder);
        journal.start("kept", "salt", &load("a.b"), false).unwrap();
        journal.keep("kept", "salt", &load(&"x".repeat(1000)), false).unwrap();
        let long = load(&"y".repeat(50_000));
        for number in 0..100 {
            let jid = number.to_string();
            journal.start(&jid, "salt", &load("a.b"), false).unwrap();
            journal.keep(&jid, "salt", &long, false).unwrap();
            journal.done([jid.as_str()]).unwrap();
        }
        let size = std::fs::metadata(&path).unwrap().len();
        assert!(size < REWRITE + 60_000, "{size}");
        assert_eq!(journal.waiting(), 1);
        assert!(journal.kept("kept").is_some());
        drop(journal);
        let (journal, left) = open(&folder);
        assert_eq!(left.returns, ["kept"]);
        assert!(!journal.claim("99") && journal.claim("-1"));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    use std::os::unix::fs::PermissionsExt;
}
