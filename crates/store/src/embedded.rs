//! The store in one file, through `redb`.
//!
//! One thread owns the writing: it takes everything that waits, does it in one transaction, syncs,
//! and then tells the waiters. After an error the database is opened again, since `redb` refuses
//! to go on; a small file kept in reserve gives back some room when the disk is full.

use std::{
    collections::BTreeMap,
    fs,
    ops::Bound,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant, SystemTime},
};

use halite_value::Value;
use parking_lot::{Mutex, RwLock};
use redb::{
    Database, ReadableDatabase as _, ReadableTable, StorageBackend, TableDefinition,
    WriteTransaction,
};
use tokio::sync::oneshot;

use crate::{
    Error, Op, Receipt, Retention, Sizes, State, Store, StoredJob, Written,
    frozen::Frozen,
    queue::{Patience, Queue, Waits},
    record,
};

type Pair = (&'static str, &'static str);

const JOBS: TableDefinition<&str, &[u8]> = TableDefinition::new("jobs");
const RETURNS: TableDefinition<Pair, &[u8]> = TableDefinition::new("returns");
const STATES: TableDefinition<Pair, u8> = TableDefinition::new("states");
const BANKS: TableDefinition<Pair, &[u8]> = TableDefinition::new("banks");
const MINE: TableDefinition<Pair, &[u8]> = TableDefinition::new("mine");
const EVENTS: TableDefinition<u64, &[u8]> = TableDefinition::new("events");
const COUNTS: TableDefinition<&str, u64> = TableDefinition::new("counts");

/// Memory for pages.
const CACHE: usize = 16 << 20;
/// How long readers of a store without a master are waited for.
const READERS: Duration = Duration::from_secs(3);
/// Bytes that may wait to be written.
const MOST_WAITING: usize = 256 << 20;
/// How long events may wait for company.
const LAZY: Duration = Duration::from_millis(100);
/// How long others are waited for where many wait already: fewer syncs, and more done by each.
const COMPANY: Duration = Duration::from_millis(5);
/// So many that wait at once are many.
const CROWD: usize = 16;
/// Ops in one transaction, so that waiters wait no longer than that.
const MOST_OPS: usize = 20_000;
/// Records removed by one transaction.
const MOST_REMOVED: usize = 20_000;
/// What is given back when the disk is full.
const RESERVE: u64 = 8 << 20;

pub(crate) type OnExpired = Box<dyn Fn(&[String]) + Send>;

/// How the store behaves.
#[derive(Default)]
pub struct Options {
    pub retention: Retention,
    /// Called with the ids of jobs that were removed. Must return soon.
    pub on_expired: Option<OnExpired>,
}

/// The store. Dropping it writes what waits, and closes the file.
pub struct Embedded {
    shared: Arc<Shared>,
    queue: Arc<Queue<Batch>>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    database: RwLock<Option<Database>>,
    waiting: AtomicUsize,
    sizes: Mutex<Sizes>,
    dropped_events: AtomicU64,
}

struct Batch {
    ops: Vec<Ready>,
    bytes: usize,
    done: Option<oneshot::Sender<Result<Receipt, Error>>>,
}

impl Waits for Batch {
    fn size(&self) -> usize {
        self.ops.len()
    }

    fn is_lazy(&self) -> bool {
        self.done.is_none() && self.ops.iter().all(Ready::is_lazy)
    }
}

/// An op whose record is written already: that is the caller's time, not the writer's.
enum Ready {
    Job(String, Vec<u8>),
    Return(String, String, Vec<u8>),
    State(String, String, State),
    Put(&'static str, String, Vec<u8>),
    Delete(&'static str, String),
    Mine(String, Vec<(String, Vec<u8>)>, bool),
    MineDelete(String, String),
    Event(u64, Vec<u8>),
    Forget(String),
}

impl Ready {
    fn new(op: Op) -> Result<Self, Error> {
        Ok(match op {
            Op::Job { jid, load } => Self::Job(jid, record::write(&load)?),
            Op::Return { jid, minion, load } => Self::Return(jid, minion, record::write(&load)?),
            Op::State { jid, minion, state } => Self::State(jid, minion, state),
            Op::Put { bank, key, value } => Self::Put(bank, key, record::write(&value)?),
            Op::Delete { bank, key } => Self::Delete(bank, key),
            Op::Mine { minion, entries, clear } => {
                let entries = entries
                    .into_iter()
                    .map(|(name, value)| Ok((name, record::write(&value)?)))
                    .collect::<Result<_, Error>>()?;
                Self::Mine(minion, entries, clear)
            }
            Op::MineDelete { minion, function } => Self::MineDelete(minion, function),
            Op::Event { cursor, bytes } => Self::Event(cursor, record::seal(&bytes)),
            Op::Forget { minion } => Self::Forget(minion),
        })
    }

    fn weight(&self) -> usize {
        64 + match self {
            Self::Job(_, record) | Self::Return(_, _, record) => record.len(),
            Self::Put(_, _, record) | Self::Event(_, record) => record.len(),
            Self::Mine(_, entries, _) => entries.iter().map(|(_, record)| record.len()).sum(),
            _ => 0,
        }
    }

    fn is_lazy(&self) -> bool {
        matches!(self, Self::Event(..) | Self::State(..))
    }
}

/// Where the database lies.
trait Place: Send + 'static {
    fn open(&self) -> Result<Database, Error>;
    /// Gives back some room; true if there was any to give.
    fn release(&self) -> bool;
    /// Keeps some room again.
    fn reserve(&self);
}

struct Folder(PathBuf);

fn builder() -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE);
    builder
}

fn broken(error: impl std::fmt::Display) -> Error {
    let text = error.to_string();
    if text.contains("No space left")
        || text.contains("os error 28")
        || text.contains("os error 122")
    {
        Error::Full(text)
    } else {
        Error::Broken(text)
    }
}

impl Place for Folder {
    fn open(&self) -> Result<Database, Error> {
        let path = self.0.join("master.redb");
        let create = || {
            let made = builder().create(&path);
            // For the master's user alone, whatever the umask.
            let _ = fs::set_permissions(&path, fs::Permissions::from_mode(0o600));
            made
        };
        let patience = Instant::now() + READERS;
        let opened = loop {
            match create() {
                // Somebody may be reading what a master left: `salt-run jobs.list_jobs`.
                Err(redb::DatabaseError::DatabaseAlreadyOpen) if Instant::now() < patience => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                opened => break opened,
            }
        };
        match opened {
            Ok(database) => Ok(database),
            Err(error @ redb::DatabaseError::DatabaseAlreadyOpen) => Err(broken(error)),
            // A file that is no database at all is told as bad data, not as damage.
            Err(redb::DatabaseError::Storage(redb::StorageError::Io(error)))
                if error.kind() != std::io::ErrorKind::InvalidData =>
            {
                Err(broken(error))
            }
            Err(error) => {
                // Damaged beyond repair: set aside for people to look at, and go on.
                let aside = self.0.join(format!("master.redb.damaged-{}", seconds_now()));
                tracing::error!(
                    salt = "critical",
                    "The store {} is damaged ({error}); it was set aside as {}",
                    path.display(),
                    aside.display()
                );
                fs::rename(&path, &aside).map_err(broken)?;
                create().map_err(broken)
            }
        }
    }

    fn release(&self) -> bool {
        fs::remove_file(self.0.join("reserve")).is_ok()
    }

    fn reserve(&self) {
        let path = self.0.join("reserve");
        if path.exists() {
            return;
        }
        // Really written: a file with holes reserves nothing.
        let zeros = vec![0; RESERVE as usize];
        if fs::write(&path, zeros).is_err() {
            let _ = fs::remove_file(&path);
        }
        let _ = fs::set_permissions(&path, fs::Permissions::from_mode(0o600));
    }
}

/// A file that is only read.
struct Still(Mutex<Option<Frozen>>);

impl Place for Still {
    fn open(&self) -> Result<Database, Error> {
        let frozen = self.0.lock().take().ok_or_else(closed)?;
        builder().create_with_backend(frozen).map_err(broken)
    }

    fn release(&self) -> bool {
        false
    }

    fn reserve(&self) {}
}

fn closed() -> Error {
    Error::Broken("it is closed".into())
}

fn seconds_now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

impl Embedded {
    /// Opens the store in a folder, or makes it.
    pub fn open(folder: &Path, options: Options) -> Result<Self, Error> {
        use std::os::unix::fs::DirBuilderExt as _;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(broken)?;
        Self::start(Folder(folder.to_owned()), options)
    }

    /// Opens the store of a master that is not running, to read in it: nothing in the folder is
    /// changed. Fails if there is none, or a master has it open.
    pub fn frozen(folder: &Path) -> Result<Self, Error> {
        let path = folder.join("master.redb");
        let taken = fs::File::open(&path).and_then(Frozen::new);
        let taken = taken.map_err(|error| broken(format!("{}: {error}", path.display())))?;
        let place = Still(Mutex::new(Some(taken)));
        Self::start(place, Options { retention: Retention::unlimited(), on_expired: None })
    }

    /// Opens a store on any storage, for tests with failing disks.
    pub fn with_backend<B: StorageBackend>(
        backend: impl Fn() -> B + Send + 'static,
        options: Options,
    ) -> Result<Self, Error> {
        struct Made<F>(F);
        impl<B: StorageBackend, F: Fn() -> B + Send + 'static> Place for Made<F> {
            fn open(&self) -> Result<Database, Error> {
                builder().create_with_backend((self.0)()).map_err(broken)
            }
            fn release(&self) -> bool {
                false
            }
            fn reserve(&self) {}
        }
        Self::start(Made(backend), options)
    }

    fn start(place: impl Place, options: Options) -> Result<Self, Error> {
        let database = place.open()?;
        let sizes = prepare(&database)?;
        place.reserve();
        let shared = Arc::new(Shared {
            database: RwLock::new(Some(database)),
            waiting: AtomicUsize::new(0),
            sizes: Mutex::new(sizes),
            dropped_events: AtomicU64::new(0),
        });
        let queue = Arc::new(Queue::new(MOST_OPS));
        let batches = Arc::clone(&queue);
        let writer = Writer { shared: shared.clone(), place: Box::new(place), options };
        let writer = std::thread::Builder::new()
            .name("store".into())
            .spawn(move || writer.run(&batches))
            .map_err(broken)?;
        Ok(Self { shared, queue, writer: Some(writer).into() })
    }

    fn read<T>(
        &self,
        look: impl FnOnce(&redb::ReadTransaction) -> Result<T, redb::Error>,
    ) -> Result<T, Error> {
        let database = self.shared.database.read();
        let database = database.as_ref().ok_or_else(closed)?;
        let transaction = database.begin_read().map_err(broken)?;
        look(&transaction).map_err(broken)
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.close();
    }
}

/// Makes all tables, so that reading never meets a missing one.
fn prepare(database: &Database) -> Result<Sizes, Error> {
    let prepare = || -> Result<Sizes, redb::Error> {
        let transaction = database.begin_write()?;
        let sizes = {
            transaction.open_table(JOBS)?;
            transaction.open_table(RETURNS)?;
            transaction.open_table(STATES)?;
            transaction.open_table(BANKS)?;
            transaction.open_table(MINE)?;
            transaction.open_table(EVENTS)?;
            let counts = transaction.open_table(COUNTS)?;
            let count = |name: &str| -> Result<u64, redb::Error> {
                Ok(counts.get(name)?.map_or(0, |count| count.value()))
            };
            Sizes {
                jobs: count("jobs")?,
                job_bytes: count("job_bytes")?,
                events: count("events")?,
                event_bytes: count("event_bytes")?,
                ..Sizes::default()
            }
        };
        transaction.commit()?;
        Ok(sizes)
    };
    prepare().map_err(broken)
}

struct Writer {
    shared: Arc<Shared>,
    place: Box<dyn Place>,
    options: Options,
}

impl Writer {
    fn run(&self, batches: &Queue<Batch>) {
        /// Whoever waits for a writer that panicked is told.
        struct Abandon<'a>(&'a Queue<Batch>);
        impl Drop for Abandon<'_> {
            fn drop(&mut self) {
                self.0.abandon();
            }
        }
        let _abandon = Abandon(batches);
        let mut is_crowded = false;
        loop {
            let urgent = if is_crowded { COMPANY } else { Duration::ZERO };
            let Some(group) = batches.take(Patience { lazy: LAZY, urgent }) else { return };
            is_crowded = group.iter().filter(|batch| batch.done.is_some()).count() >= CROWD;
            self.commit(group);
        }
    }

    /// Writes a group; if that fails, each batch by itself, so that one bad one hurts only itself.
    fn commit(&self, group: Vec<Batch>) {
        let freed: usize = group.iter().map(|batch| batch.bytes).sum();
        let alone = group.len() == 1;
        match self.transact(&group, false) {
            Ok(receipts) => tell(group, receipts.into_iter().map(Ok)),
            Err(error) if alone => {
                // Once more with room made: the oldest jobs go first.
                let again = self.recover(&error).and_then(|()| self.transact(&group, true));
                match again {
                    Ok(receipts) => tell(group, receipts.into_iter().map(Ok)),
                    Err(error) => {
                        self.shared.sizes.lock().failed += 1;
                        tracing::error!("Nothing was stored: {error}");
                        let _ = self.recover(&error);
                        tell(group, std::iter::once(Err(error)));
                    }
                }
            }
            Err(error) => {
                tracing::warn!("A group of writes failed ({error}); they are tried one by one");
                if self.recover(&error).is_ok() {
                    for batch in group {
                        let bytes = batch.bytes;
                        self.commit(vec![batch]);
                        // Counted below, for the whole group.
                        self.shared.waiting.fetch_add(bytes, Ordering::AcqRel);
                    }
                } else {
                    let errors: Vec<_> = group.iter().map(|_| Err(error.clone())).collect();
                    tell(group, errors.into_iter());
                }
            }
        }
        self.shared.waiting.fetch_sub(freed, Ordering::AcqRel);
    }

    /// After an error: opens the database again, with some room if the disk was full.
    fn recover(&self, error: &Error) -> Result<(), Error> {
        if matches!(error, Error::Full(_)) && self.place.release() {
            tracing::error!("The disk is full: the store uses its reserve");
        }
        let mut database = self.shared.database.write();
        // The old one must be gone before the file is opened again.
        *database = None;
        let opened = self.place.open()?;
        let fresh = prepare(&opened)?;
        *database = Some(opened);
        drop(database);
        let mut sizes = self.shared.sizes.lock();
        *sizes = Sizes { commits: sizes.commits, failed: sizes.failed, ..fresh };
        Ok(())
    }

    fn transact(&self, group: &[Batch], in_need: bool) -> Result<Vec<Receipt>, Error> {
        let mut sizes = *self.shared.sizes.lock();
        let mut expired = Vec::new();
        let receipts = {
            let database = self.shared.database.read();
            let database = database.as_ref().ok_or_else(|| Error::Broken("it is closed".into()))?;
            let mut work = || -> Result<Vec<Receipt>, redb::Error> {
                let transaction = database.begin_write()?;
                let mut receipts = Vec::with_capacity(group.len());
                if in_need {
                    let mut tight = self.options.retention;
                    tight.job_bytes = (sizes.job_bytes / 2).max(1);
                    tight.event_bytes = (sizes.event_bytes / 2).max(1);
                    enforce(&transaction, &tight, &mut sizes, &mut expired)?;
                }
                let mut tables = Tables::open(&transaction)?;
                for batch in group {
                    receipts.push(tables.apply(&batch.ops, &mut sizes)?);
                }
                drop(tables);
                enforce(&transaction, &self.options.retention, &mut sizes, &mut expired)?;
                write_counts(&transaction, &sizes)?;
                transaction.commit()?;
                Ok(receipts)
            };
            work().map_err(broken)?
        };
        sizes.commits += 1;
        *self.shared.sizes.lock() = sizes;
        if sizes.commits.is_multiple_of(256) {
            self.place.reserve();
        }
        if let (Some(told), false) = (&self.options.on_expired, expired.is_empty()) {
            told(&expired);
        }
        Ok(receipts)
    }
}

fn tell(group: Vec<Batch>, results: impl Iterator<Item = Result<Receipt, Error>>) {
    for (batch, result) in group.into_iter().zip(results) {
        if let Some(done) = batch.done {
            // Nobody waits any more: it is stored all the same.
            let _ = done.send(result);
        }
    }
}

fn write_counts(transaction: &WriteTransaction, sizes: &Sizes) -> Result<(), redb::Error> {
    let mut counts = transaction.open_table(COUNTS)?;
    for (name, count) in [
        ("jobs", sizes.jobs),
        ("job_bytes", sizes.job_bytes),
        ("events", sizes.events),
        ("event_bytes", sizes.event_bytes),
    ] {
        counts.insert(name, count)?;
    }
    Ok(())
}

/// The tables of one transaction, opened once for all its ops.
struct Tables<'t> {
    jobs: redb::Table<'t, &'static str, &'static [u8]>,
    returns: redb::Table<'t, Pair, &'static [u8]>,
    states: redb::Table<'t, Pair, u8>,
    banks: redb::Table<'t, Pair, &'static [u8]>,
    mine: redb::Table<'t, Pair, &'static [u8]>,
    events: redb::Table<'t, u64, &'static [u8]>,
}

impl<'t> Tables<'t> {
    fn open(transaction: &'t WriteTransaction) -> Result<Self, redb::Error> {
        Ok(Self {
            jobs: transaction.open_table(JOBS)?,
            returns: transaction.open_table(RETURNS)?,
            states: transaction.open_table(STATES)?,
            banks: transaction.open_table(BANKS)?,
            mine: transaction.open_table(MINE)?,
            events: transaction.open_table(EVENTS)?,
        })
    }

    fn apply(&mut self, ops: &[Ready], sizes: &mut Sizes) -> Result<Receipt, redb::Error> {
        let mut receipt = Receipt::default();
        for op in ops {
            match op {
                Ready::Job(jid, record) => {
                    let old = self.jobs.insert(jid.as_str(), record.as_slice())?;
                    match old {
                        Some(old) => {
                            sizes.job_bytes -= sizes.job_bytes.min(old.value().len() as u64);
                        }
                        None => sizes.jobs += 1,
                    }
                    sizes.job_bytes += record.len() as u64;
                }
                Ready::Return(jid, minion, record) => {
                    let key = (jid.as_str(), minion.as_str());
                    // Nearly always there is none before it: one look, not two.
                    let first = self.returns.insert(key, record.as_slice())?;
                    let first = first.map(|first| first.value().to_vec());
                    if let Some(first) = first {
                        receipt.duplicates += 1;
                        self.returns.insert(key, first.as_slice())?;
                    } else {
                        sizes.job_bytes += record.len() as u64;
                    }
                }
                Ready::State(jid, minion, state) => {
                    let key = (jid.as_str(), minion.as_str());
                    let known = self.states.get(key)?.map(|state| state.value());
                    // Back from being lost is no step back.
                    let was_lost = known == Some(State::Lost as u8);
                    if was_lost || known.is_none_or(|known| known < *state as u8) {
                        self.states.insert(key, *state as u8)?;
                    }
                }
                Ready::Put(bank, key, record) => {
                    self.banks.insert((*bank, key.as_str()), record.as_slice())?;
                }
                Ready::Delete(bank, key) => {
                    self.banks.remove((*bank, key.as_str()))?;
                }
                Ready::Mine(minion, entries, clear) => {
                    if *clear {
                        clear_mine(&mut self.mine, minion)?;
                    }
                    for (name, record) in entries {
                        self.mine.insert((minion.as_str(), name.as_str()), record.as_slice())?;
                    }
                }
                Ready::MineDelete(minion, function) => {
                    self.mine.remove((minion.as_str(), function.as_str()))?;
                }
                Ready::Event(cursor, record) => {
                    let old = self.events.insert(cursor, record.as_slice())?.is_some();
                    if !old {
                        sizes.events += 1;
                        sizes.event_bytes += record.len() as u64;
                    }
                }
                Ready::Forget(minion) => {
                    clear_mine(&mut self.mine, minion)?;
                    for bank in ["grains", "pillar", "resources", "kind"] {
                        self.banks.remove((bank, minion.as_str()))?;
                    }
                }
            }
        }
        Ok(receipt)
    }
}

fn clear_mine(
    mine: &mut redb::Table<'_, Pair, &'static [u8]>,
    minion: &str,
) -> Result<(), redb::Error> {
    let names = names_of(mine, minion)?;
    for name in names {
        mine.remove((minion, name.as_str()))?;
    }
    Ok(())
}

/// Returns the second parts of all keys with this first part.
fn names_of<V: redb::Value + 'static>(
    table: &impl ReadableTable<Pair, V>,
    first: &str,
) -> Result<Vec<String>, redb::Error> {
    let mut names = Vec::new();
    for entry in table.range::<(&str, &str)>((first, "")..)? {
        let (key, _) = entry?;
        let (own, name) = key.value();
        if own != first {
            break;
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

/// Removes what is too old or too much. Does a part at a time: the next commit goes on.
fn enforce(
    transaction: &WriteTransaction,
    retention: &Retention,
    sizes: &mut Sizes,
    expired: &mut Vec<String>,
) -> Result<(), redb::Error> {
    let cutoff = (!retention.job_age.is_zero()).then(|| jid_before(retention.job_age)).flatten();
    let over = |sizes: &Sizes| {
        (retention.jobs > 0 && sizes.jobs > retention.jobs)
            || (retention.job_bytes > 0 && sizes.job_bytes > retention.job_bytes)
    };
    let mut removed = 0;
    {
        let mut jobs = transaction.open_table(JOBS)?;
        let mut returns = transaction.open_table(RETURNS)?;
        let mut states = transaction.open_table(STATES)?;
        while removed < MOST_REMOVED {
            // The oldest of what is there: a return may have outlived its job, or come before it.
            let job = jobs.first()?.map(|(jid, _)| jid.value().to_owned());
            let orphan = returns.first()?.map(|(key, _)| key.value().0.to_owned());
            let Some(oldest) = job.into_iter().chain(orphan).min() else { break };
            let is_old = cutoff.as_ref().is_some_and(|cutoff| oldest < *cutoff);
            if !is_old && !over(sizes) {
                break;
            }
            if let Some(record) = jobs.remove(oldest.as_str())? {
                sizes.jobs = sizes.jobs.saturating_sub(1);
                sizes.job_bytes = sizes.job_bytes.saturating_sub(record.value().len() as u64);
            }
            for minion in names_of(&returns, &oldest)? {
                if let Some(record) = returns.remove((oldest.as_str(), minion.as_str()))? {
                    let length = record.value().len() as u64;
                    sizes.job_bytes = sizes.job_bytes.saturating_sub(length);
                }
                removed += 1;
            }
            for minion in names_of(&states, &oldest)? {
                states.remove((oldest.as_str(), minion.as_str()))?;
            }
            removed += 1;
            expired.push(oldest);
        }
    }
    let mut events = transaction.open_table(EVENTS)?;
    let too_many = |sizes: &Sizes| {
        (retention.events > 0 && sizes.events > retention.events)
            || (retention.event_bytes > 0 && sizes.event_bytes > retention.event_bytes)
    };
    while too_many(sizes) {
        let Some((_, record)) = events.pop_first()? else { break };
        sizes.events = sizes.events.saturating_sub(1);
        sizes.event_bytes = sizes.event_bytes.saturating_sub(record.value().len() as u64);
    }
    Ok(())
}

/// Returns the smallest id of a job that is not older than `age`.
fn jid_before(age: Duration) -> Option<String> {
    let at = SystemTime::now().checked_sub(age)?;
    Some(jid_at(at.duration_since(SystemTime::UNIX_EPOCH).ok()?))
}

/// Writes a time (since 1970) as job ids do: year to microsecond, in UTC.
fn jid_at(since: Duration) -> String {
    let days = since.as_secs() / 86_400;
    let second = since.as_secs() % 86_400;
    // Days to a date, in years that begin in March (so that leap days come last).
    let z = days + 719_468;
    let era = z / 146_097;
    let day_of_era = z % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    let micros = since.subsec_micros();
    format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{:02}{micros:06}", second % 60)
}

impl Store for Embedded {
    fn write(&self, ops: Vec<Op>) -> Written {
        let (done, written) = oneshot::channel();
        let written = Written(written);
        let ready = match ops.into_iter().map(Ready::new).collect::<Result<Vec<_>, _>>() {
            Ok(ready) => ready,
            Err(error) => {
                let _ = done.send(Err(error));
                return written;
            }
        };
        let bytes = ready.iter().map(Ready::weight).sum();
        // An empty write is a question: is everything before it on disk?
        let is_lazy = !ready.is_empty() && ready.iter().all(Ready::is_lazy);
        if self.shared.waiting.load(Ordering::Acquire) + bytes > MOST_WAITING {
            self.shared.dropped_events.fetch_add(u64::from(is_lazy), Ordering::Relaxed);
            let _ = done.send(Err(Error::Busy));
            return written;
        }
        self.shared.waiting.fetch_add(bytes, Ordering::AcqRel);
        // What is lazy is not waited for by the writer; a caller may all the same.
        let batch = Batch { ops: ready, bytes, done: Some(done).filter(|_| !is_lazy) };
        if let Err(Batch { bytes, done: Some(done), .. }) = self.queue.push(batch) {
            self.shared.waiting.fetch_sub(bytes, Ordering::AcqRel);
            let _ = done.send(Err(closed()));
        }
        written
    }

    fn close(&self) {
        // The writer ends when it has written what was sent before.
        self.queue.close();
        if let Some(writer) = self.writer.lock().take() {
            // A writer that panicked has said so; its waiters were told.
            let _ = writer.join();
        }
        *self.shared.database.write() = None;
    }

    fn job(&self, jid: &str) -> Result<Option<StoredJob>, Error> {
        let found = self.read(|transaction| {
            let jobs = transaction.open_table(JOBS)?;
            Ok(jobs.get(jid)?.map(|record| record.value().to_vec()))
        })?;
        let load = found.map(|record| record::read(&record, jid)).transpose()?;
        Ok(load.map(|load| StoredJob { jid: jid.to_owned(), load }))
    }

    fn jobs(&self, before: Option<&str>, limit: usize) -> Result<Vec<StoredJob>, Error> {
        let records = self.read(|transaction| {
            let jobs = transaction.open_table(JOBS)?;
            let end = before.map_or(Bound::Unbounded, Bound::Excluded);
            let range = jobs.range::<&str>((Bound::Unbounded, end))?;
            let mut records = Vec::new();
            for entry in range.rev().take(limit) {
                let (jid, record) = entry?;
                records.push((jid.value().to_owned(), record.value().to_vec()));
            }
            Ok(records)
        })?;
        Ok(readable(records).map(|(jid, load)| StoredJob { jid, load }).collect())
    }

    fn returns(&self, jid: &str) -> Result<Vec<(String, Value)>, Error> {
        let records = self.read(|transaction| pairs(&transaction.open_table(RETURNS)?, jid))?;
        Ok(readable(records).collect())
    }

    fn return_of(&self, jid: &str, minion: &str) -> Result<Option<Value>, Error> {
        let found = self.read(|transaction| {
            let returns = transaction.open_table(RETURNS)?;
            Ok(returns.get((jid, minion))?.map(|record| record.value().to_vec()))
        })?;
        found.map(|record| record::read(&record, jid)).transpose()
    }

    fn states(&self, jid: &str) -> Result<Vec<(String, State)>, Error> {
        self.read(|transaction| {
            let states = transaction.open_table(STATES)?;
            let mut found = BTreeMap::new();
            for entry in states.range::<(&str, &str)>((jid, "")..)? {
                let (key, state) = entry?;
                if key.value().0 != jid {
                    break;
                }
                if let Some(state) = State::of(state.value()) {
                    found.insert(key.value().1.to_owned(), state);
                }
            }
            // Who has returned is not written twice: its return says so.
            let returned = names_of(&transaction.open_table(RETURNS)?, jid)?;
            found.extend(returned.into_iter().map(|minion| (minion, State::Returned)));
            Ok(found.into_iter().collect())
        })
    }

    fn get(&self, bank: &str, key: &str) -> Result<Option<Value>, Error> {
        let found = self.read(|transaction| {
            let banks = transaction.open_table(BANKS)?;
            Ok(banks.get((bank, key))?.map(|record| record.value().to_vec()))
        })?;
        found.map(|record| record::read(&record, key)).transpose()
    }

    fn all(&self, bank: &str) -> Result<Vec<(String, Value)>, Error> {
        let records = self.read(|transaction| pairs(&transaction.open_table(BANKS)?, bank))?;
        Ok(readable(records).collect())
    }

    fn some(&self, bank: &str, after: &str, limit: usize) -> Result<Vec<(String, Value)>, Error> {
        let records = self.read(|transaction| {
            let banks = transaction.open_table(BANKS)?;
            let mut records = Vec::new();
            let from = (Bound::Excluded((bank, after)), Bound::Unbounded);
            for entry in banks.range::<(&str, &str)>(from)?.take(limit) {
                let (key, record) = entry?;
                let (own, name) = key.value();
                if own != bank {
                    break;
                }
                records.push((name.to_owned(), record.value().to_vec()));
            }
            Ok(records)
        })?;
        Ok(readable(records).collect())
    }

    fn mine(&self, minion: &str, function: &str) -> Result<Option<Value>, Error> {
        let found = self.read(|transaction| {
            let mine = transaction.open_table(MINE)?;
            Ok(mine.get((minion, function))?.map(|record| record.value().to_vec()))
        })?;
        found.map(|record| record::read(&record, function)).transpose()
    }

    fn mine_names(&self, minion: &str) -> Result<Vec<String>, Error> {
        self.read(|transaction| names_of(&transaction.open_table(MINE)?, minion))
    }

    fn events(&self, after: u64, limit: usize) -> Result<Vec<(u64, Vec<u8>)>, Error> {
        let records = self.read(|transaction| {
            let events = transaction.open_table(EVENTS)?;
            let mut records = Vec::new();
            for entry in events.range(after.saturating_add(1)..)?.take(limit) {
                let (cursor, record) = entry?;
                records.push((cursor.value(), record.value().to_vec()));
            }
            Ok(records)
        })?;
        let open = |(cursor, record): (u64, Vec<u8>)| {
            record::open(&record, "event").ok().map(|bytes| (cursor, bytes.to_vec()))
        };
        Ok(records.into_iter().filter_map(open).collect())
    }

    fn last_event(&self) -> Result<u64, Error> {
        self.read(|transaction| {
            let events = transaction.open_table(EVENTS)?;
            Ok(events.last()?.map_or(0, |(cursor, _)| cursor.value()))
        })
    }

    fn sizes(&self) -> Sizes {
        let dropped_events = self.shared.dropped_events.load(Ordering::Relaxed);
        Sizes { dropped_events, ..*self.shared.sizes.lock() }
    }
}

/// Returns the records under a first part, by the second.
fn pairs(
    table: &impl ReadableTable<Pair, &'static [u8]>,
    first: &str,
) -> Result<Vec<(String, Vec<u8>)>, redb::Error> {
    let mut records = Vec::new();
    for entry in table.range::<(&str, &str)>((first, "")..)? {
        let (key, record) = entry?;
        let (own, second) = key.value();
        if own != first {
            break;
        }
        records.push((second.to_owned(), record.value().to_vec()));
    }
    Ok(records)
}

/// Reads records; a damaged one is told and left out, the others are still of use.
fn readable(records: Vec<(String, Vec<u8>)>) -> impl Iterator<Item = (String, Value)> {
    records.into_iter().filter_map(|(name, record)| {
        record::read(&record, &name)
            .inspect_err(|error| tracing::error!("{error}"))
            .ok()
            .map(|value| (name, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_job_ids() {
        for (seconds, expected) in [
            (0, "19700101000000"),
            (951_782_399, "20000228235959"),
            (951_782_400, "20000229000000"),
            (1_709_251_200, "20240301000000"),
            (4_102_444_799, "20991231235959"),
        ] {
            assert_eq!(jid_at(Duration::from_secs(seconds)), format!("{expected}000000"));
        }
    }
}
