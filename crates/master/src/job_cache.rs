//! Jobs kept elsewhere as well: `master_job_cache` and `ext_job_cache`.
//!
//! The master's own store stays the truth: what is acknowledged is on disk here. Jobs and returns
//! that are written to it are put into a queue beside it, and a thread of its own brings them to a
//! returner, many at a time. A database that is slow or gone delays nobody; it gets what it missed
//! when it is back, as long as that is not too much. Who reads jobs back asks for [`Mirror::flush`]
//! first.
//!
//! With `ext_job_cache` minions return there by themselves, and the master only brings the jobs.

use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use halite_store::{Error, Op, Sizes, State, Store, StoredJob, Written};
use halite_value::{Dict, SmolStr, Value};
use parking_lot::{Condvar, Mutex};

use crate::{Master, settings::Settings};

/// Records that wait at most; beyond them the oldest go.
const MOST: usize = 200_000;
/// Records brought at a time.
const BATCH: usize = 500;
/// How often old jobs are removed there.
const CLEANING: Duration = Duration::from_secs(60);
/// How long the end of a master waits for a database.
const FAREWELL: Duration = Duration::from_secs(5);
/// The longest pause before a database is tried again.
const PAUSE: Duration = Duration::from_secs(30);

/// Something to be kept elsewhere.
#[derive(Clone, Debug)]
pub enum Record {
    Load { jid: String, load: Dict },
    Return(Dict),
}

/// Why records were not kept.
#[derive(Clone, Debug)]
pub enum Trouble {
    /// Nothing was; the same is to be tried again.
    Unreachable(String),
    /// These were not, and never will be: place in the batch, reason.
    Rejected(Vec<(usize, String)>),
}

/// Brings records to returners. Called on a thread that may block.
pub trait JobCache: Send + Sync {
    fn save(&self, master: &Arc<Master>, returner: &str, records: &[Record])
    -> Result<(), Trouble>;

    /// Removes what is old.
    fn clean(&self, master: &Arc<Master>, returner: &str) -> Result<(), String>;
}

/// A returner, and whether it gets returns or only jobs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wanted {
    name: SmolStr,
    returns: bool,
}

/// Returns the returners that keep jobs beside the master's own store.
pub(crate) fn wanted(settings: &Settings) -> Vec<Wanted> {
    let option = |name: &str| settings.opts.opt_str(name).unwrap_or_default();
    let (own, external) = (option("master_job_cache"), option("ext_job_cache"));
    let is_own = |name: &str| matches!(name, "" | "local_cache" | "salt_cache");
    let mut all = Vec::new();
    if !is_own(&own) {
        all.push(Wanted { name: own.clone(), returns: external.is_empty() });
    }
    if !is_own(&external) && external != own {
        all.push(Wanted { name: external, returns: false });
    }
    all
}

/// What waits to be brought to one returner.
pub(crate) struct Mirror {
    wanted: Wanted,
    state: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    records: VecDeque<Record>,
    /// Records taken out of the queue that are under way.
    under_way: usize,
    /// Records that ever came, and that are done with.
    came: u64,
    done: u64,
    dropped: u64,
    is_reachable: bool,
    is_ending: bool,
}

impl Mirror {
    pub(crate) fn new(wanted: Wanted) -> Arc<Self> {
        let state = Waiting { is_reachable: true, ..Waiting::default() };
        Arc::new(Self { wanted, state: Mutex::new(state), changed: Condvar::new() })
    }

    fn push(&self, record: Record) {
        if matches!(record, Record::Return(_)) && !self.wanted.returns {
            return;
        }
        let mut state = self.state.lock();
        state.came += 1;
        if state.records.len() >= MOST {
            state.records.pop_front();
            state.dropped += 1;
            state.done += 1;
        }
        state.records.push_back(record);
        self.changed.notify_all();
    }

    /// Waits until everything that came so far has been brought, as long as that can be hoped for.
    pub(crate) fn flush(&self, most: Duration) {
        let end = Instant::now() + most;
        let mut state = self.state.lock();
        let until = state.came;
        while state.done < until && state.is_reachable {
            if self.changed.wait_until(&mut state, end).timed_out() {
                return;
            }
        }
    }

    /// Returns numbers for people.
    pub(crate) fn counters(&self) -> (SmolStr, usize, u64) {
        let state = self.state.lock();
        (self.wanted.name.clone(), state.records.len() + state.under_way, state.dropped)
    }

    /// Starts the thread that brings records.
    pub(crate) fn start(self: &Arc<Self>, master: &Arc<Master>, cache: Arc<dyn JobCache>) {
        let (mirror, master) = (Arc::clone(self), Arc::downgrade(master));
        let started = std::thread::Builder::new()
            .name("job-cache".into())
            .spawn(move || mirror.work(&master, &*cache));
        if let Err(error) = started {
            tracing::error!("Jobs will not be brought to {}: {error}", self.wanted.name);
        }
    }

    fn work(&self, master: &Weak<Master>, cache: &dyn JobCache) {
        let mut cleaned = Instant::now().checked_sub(CLEANING).unwrap_or_else(Instant::now);
        let mut pause = Duration::from_secs(1);
        loop {
            let batch = self.take();
            let Some(master) = master.upgrade() else { return };
            if batch.is_empty() {
                if self.state.lock().is_ending {
                    return;
                }
            } else if self.bring(&master, cache, batch) {
                pause = Duration::from_secs(1);
            } else {
                drop(master);
                let mut state = self.state.lock();
                if state.is_ending {
                    return;
                }
                // New records do not end the pause; the end of the master does.
                let end = Instant::now() + pause;
                while !state.is_ending && !self.changed.wait_until(&mut state, end).timed_out() {}
                pause = (pause * 2).min(PAUSE);
                continue;
            }
            if cleaned.elapsed() >= CLEANING {
                cleaned = Instant::now();
                if let Err(error) = cache.clean(&master, &self.wanted.name) {
                    tracing::warn!("{}: old jobs stay: {error}", self.wanted.name);
                }
            }
        }
    }

    /// Takes some records out of the queue, after waiting for one.
    fn take(&self) -> Vec<Record> {
        let mut state = self.state.lock();
        if state.records.is_empty() && !state.is_ending {
            self.changed.wait_for(&mut state, CLEANING);
        }
        let count = state.records.len().min(BATCH);
        state.under_way = count;
        state.records.drain(..count).collect()
    }

    /// Brings a batch; false if it has to be tried again, and is back in the queue.
    fn bring(&self, master: &Arc<Master>, cache: &dyn JobCache, batch: Vec<Record>) -> bool {
        let name = &self.wanted.name;
        let saved = cache.save(master, name, &batch);
        let mut state = self.state.lock();
        state.under_way = 0;
        let unreachable = match saved {
            Ok(()) => None,
            Err(Trouble::Rejected(which)) => {
                for (_, reason) in &which {
                    tracing::error!("The job cache {name} refused a record: {reason}");
                }
                None
            }
            Err(Trouble::Unreachable(reason)) => Some(reason),
        };
        let is_done = unreachable.is_none();
        if let Some(reason) = unreachable {
            if state.is_reachable {
                tracing::error!("The job cache {name} cannot be reached: {reason}");
            }
            for record in batch.into_iter().rev() {
                state.records.push_front(record);
            }
        } else {
            if !state.is_reachable {
                tracing::info!("The job cache {name} can be reached again");
            }
            state.done += batch.len() as u64;
        }
        state.is_reachable = is_done;
        self.changed.notify_all();
        is_done
    }

    fn end(&self) {
        self.flush(FAREWELL);
        let mut state = self.state.lock();
        state.is_ending = true;
        let left = state.records.len() + state.under_way;
        if left > 0 {
            tracing::error!("{left} records were not brought to {}", self.wanted.name);
        }
        self.changed.notify_all();
    }
}

/// The master's store, with mirrors beside it.
pub(crate) struct Mirrored {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) mirrors: Vec<Arc<Mirror>>,
}

impl Mirrored {
    fn note(&self, op: &Op) {
        let record = match op {
            Op::Job { jid, load: Value::Dict(load) } => {
                let load = load.shallow_copy();
                // Salt keeps them apart, and these returners do not keep them.
                load.remove("minions");
                Record::Load { jid: jid.clone(), load }
            }
            Op::Return { load: Value::Dict(load), .. } => Record::Return(load.clone()),
            _ => return,
        };
        for mirror in &self.mirrors {
            mirror.push(record.clone());
        }
    }
}

impl Store for Mirrored {
    fn write(&self, ops: Vec<Op>) -> Written {
        ops.iter().for_each(|op| self.note(op));
        self.store.write(ops)
    }

    fn job(&self, jid: &str) -> Result<Option<StoredJob>, Error> {
        self.store.job(jid)
    }

    fn jobs(&self, before: Option<&str>, limit: usize) -> Result<Vec<StoredJob>, Error> {
        self.store.jobs(before, limit)
    }

    fn returns(&self, jid: &str) -> Result<Vec<(String, Value)>, Error> {
        self.store.returns(jid)
    }

    fn return_of(&self, jid: &str, minion: &str) -> Result<Option<Value>, Error> {
        self.store.return_of(jid, minion)
    }

    fn states(&self, jid: &str) -> Result<Vec<(String, State)>, Error> {
        self.store.states(jid)
    }

    fn get(&self, bank: &str, key: &str) -> Result<Option<Value>, Error> {
        self.store.get(bank, key)
    }

    fn all(&self, bank: &str) -> Result<Vec<(String, Value)>, Error> {
        self.store.all(bank)
    }

    fn some(&self, bank: &str, after: &str, limit: usize) -> Result<Vec<(String, Value)>, Error> {
        self.store.some(bank, after, limit)
    }

    fn mine(&self, minion: &str, function: &str) -> Result<Option<Value>, Error> {
        self.store.mine(minion, function)
    }

    fn mine_names(&self, minion: &str) -> Result<Vec<String>, Error> {
        self.store.mine_names(minion)
    }

    fn events(&self, after: u64, limit: usize) -> Result<Vec<(u64, Vec<u8>)>, Error> {
        self.store.events(after, limit)
    }

    fn last_event(&self) -> Result<u64, Error> {
        self.store.last_event()
    }

    fn sizes(&self) -> Sizes {
        self.store.sizes()
    }

    fn close(&self) {
        self.mirrors.iter().for_each(|mirror| mirror.end());
        self.store.close();
    }
}
