//! What a master must not forget: jobs, returns, minion data, the mine, the event log.
//!
//! [`Store`] is what the master uses; [`Embedded`] keeps it in one checksummed file (`redb`). A
//! write is a list of [`Op`]s that happen together; its [`Written`] is ready when they are on disk,
//! not before. Many writes share one sync: while one is under way the next ones gather.
//!
//! Retention (age, number, bytes) is enforced while writing, so the file stops growing by itself.
//! A full disk fails the writes that do not fit, with an error, and drops the oldest jobs to make
//! room; nothing has to be restarted.
//!
//! Absent on purpose: what the records mean. They are [`Value`]s under names.

mod embedded;
mod frozen;
pub mod history;
mod queue;
mod record;

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use halite_value::Value;
use tokio::sync::oneshot;

pub use embedded::{Embedded, Options};

/// Why something could not be stored or read.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    #[error("the store cannot be used: {0}")]
    Broken(String),
    #[error("the disk is full: {0}")]
    Full(String),
    /// Too much waits to be written already.
    #[error("the store cannot keep up")]
    Busy,
    #[error("the record {0} is damaged")]
    Damaged(String),
    #[error("the record cannot be written: {0}")]
    Unwritable(String),
}

/// One change.
#[derive(Clone, Debug)]
pub enum Op {
    /// A job, before it is published.
    Job {
        jid: String,
        load: Value,
    },
    /// A return. The first one for a job and a minion stays.
    Return {
        jid: String,
        minion: String,
        load: Value,
    },
    /// Where a minion stands with a job. Never goes back.
    State {
        jid: String,
        minion: String,
        state: State,
    },
    /// Data of a minion (`grains`, `pillar`, …) or of the master.
    Put {
        bank: &'static str,
        key: String,
        value: Value,
    },
    Delete {
        bank: &'static str,
        key: String,
    },
    /// Entries of a minion's mine; `clear` removes all others.
    Mine {
        minion: String,
        entries: Vec<(String, Value)>,
        clear: bool,
    },
    MineDelete {
        minion: String,
        function: String,
    },
    /// An event as it travels, at its place. Not waited for.
    Event {
        cursor: u64,
        bytes: Vec<u8>,
    },
    /// Everything about a minion except its returns.
    Forget {
        minion: String,
    },
}

/// Where a minion stands with a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum State {
    /// Expected to answer; not told yet as far as we know.
    Queued = 0,
    /// Written to its connection.
    Delivered = 1,
    /// It said so.
    Received = 2,
    Started = 3,
    /// Its connection ended, or it said that it will not.
    Lost = 4,
    Refused = 5,
    Returned = 6,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Delivered => "delivered",
            Self::Received => "received",
            Self::Started => "started",
            Self::Lost => "lost",
            Self::Refused => "refused",
            Self::Returned => "returned",
        }
    }

    fn of(byte: u8) -> Option<Self> {
        use State::{Delivered, Lost, Queued, Received, Refused, Returned, Started};
        [Queued, Delivered, Received, Started, Lost, Refused, Returned]
            .into_iter()
            .find(|state| *state as u8 == byte)
    }
}

/// What became of a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// Returns that were there already, and were left as they are.
    pub duplicates: usize,
}

/// The future of a write: ready when it is on disk.
#[derive(Debug)]
pub struct Written(oneshot::Receiver<Result<Receipt, Error>>);

impl Written {
    /// Waits on a thread that may block.
    pub fn wait(self) -> Result<Receipt, Error> {
        self.0.blocking_recv().unwrap_or_else(|_| Err(Error::Broken("it was closed".into())))
    }
}

impl Future for Written {
    type Output = Result<Receipt, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0)
            .poll(cx)
            .map(|done| done.unwrap_or_else(|_| Err(Error::Broken("it was closed".into()))))
    }
}

/// What is kept, and for how long. Zero means no limit.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    pub job_age: Duration,
    pub jobs: u64,
    pub job_bytes: u64,
    pub events: u64,
    pub event_bytes: u64,
}

impl Retention {
    /// Keeps everything.
    pub fn unlimited() -> Self {
        Self { job_age: Duration::ZERO, jobs: 0, job_bytes: 0, events: 0, event_bytes: 0 }
    }
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            job_age: Duration::from_secs(86_400),
            jobs: 1_000_000,
            job_bytes: 4 << 30,
            events: 200_000,
            event_bytes: 256 << 20,
        }
    }
}

/// A job as it is stored.
#[derive(Clone, Debug)]
pub struct StoredJob {
    pub jid: String,
    pub load: Value,
}

/// Sizes, for people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    pub jobs: u64,
    pub job_bytes: u64,
    pub events: u64,
    pub event_bytes: u64,
    pub commits: u64,
    pub failed: u64,
    /// Events that were not logged, because too much was waiting.
    pub dropped_events: u64,
}

/// A place for everything the master must not forget. Reading blocks (briefly); writing does not.
pub trait Store: Send + Sync {
    /// Starts a write. It is done in the order of the calls.
    fn write(&self, ops: Vec<Op>) -> Written;

    fn job(&self, jid: &str) -> Result<Option<StoredJob>, Error>;

    /// Returns jobs, newest first, from before `before` if given.
    fn jobs(&self, before: Option<&str>, limit: usize) -> Result<Vec<StoredJob>, Error>;

    /// Returns what minions returned for a job, by minion.
    fn returns(&self, jid: &str) -> Result<Vec<(String, Value)>, Error>;

    fn return_of(&self, jid: &str, minion: &str) -> Result<Option<Value>, Error>;

    fn states(&self, jid: &str) -> Result<Vec<(String, State)>, Error>;

    fn get(&self, bank: &str, key: &str) -> Result<Option<Value>, Error>;

    /// Returns everything in a bank, by key.
    fn all(&self, bank: &str) -> Result<Vec<(String, Value)>, Error>;

    /// Returns what is in a bank after a key, in the order of the keys, this many at most.
    fn some(&self, bank: &str, after: &str, limit: usize) -> Result<Vec<(String, Value)>, Error>;

    fn mine(&self, minion: &str, function: &str) -> Result<Option<Value>, Error>;

    /// Returns the names in a minion's mine.
    fn mine_names(&self, minion: &str) -> Result<Vec<String>, Error>;

    /// Returns logged events after a cursor, oldest first.
    fn events(&self, after: u64, limit: usize) -> Result<Vec<(u64, Vec<u8>)>, Error>;

    /// Returns the cursor of the newest logged event; 0 if there is none.
    fn last_event(&self) -> Result<u64, Error>;

    fn sizes(&self) -> Sizes;

    /// Writes what waits and lets go of the files, whoever else still holds the store. What comes
    /// later is refused.
    fn close(&self) {}
}
