//! The master: who may talk, what they are told, what they said.
//!
//! One process. A connection brings bytes (`transport`), `service.rs` opens them and turns them
//! into a typed request, a handler answers. Read in this order:
//! - `settings.rs`, `start.rs`: what runs, and in which order it comes up;
//! - `secrets.rs`, `admission.rs`, `auth.rs`, `keys.rs`: keys, and who is let in (the files of
//!   minions' keys are the crate `keys`);
//! - `service.rs`: opening and sealing; `requests/`: what minions ask; `clients.rs`: what local
//!   clients of Salt ask; `control.rs`: what our own programs ask;
//! - `publish.rs`, `jobs.rs`, `acl.rs`: jobs on their way out and back; `offline.rs`: jobs that wait
//!   for minions, `arriving.rs`: for those that are about to be there; `batch.rs`: jobs on a few
//!   minions at a time; `returns.rs`: answers;
//!   `job_cache.rs`: jobs kept in databases as well;
//! - `bus.rs`: events; `reactor/`, `engines/`: what they lead to, and what brings them in;
//!   `orchestration.rs`, `queues.rs`: what runners keep here;
//! - `upkeep.rs`: what has to be done now and then; `stats.rs`, `roots_events.rs`: what is told of
//!   requests and of files.
//!
//! Who asks is known from the session and from nowhere else. Disk, RSA and rendering happen on
//! blocking threads; what is awaited is the network and the store.

pub mod acl;
mod admission;
mod arriving;
mod auth;
mod batch;
pub mod bus;
mod clients;
mod control;
pub mod eauth;
pub mod engines;
pub mod job_cache;
mod jobs;
mod keys;
mod ldap;
mod local_cache;
mod offline;
pub mod orchestration;
mod pam_rules;
mod presence;
mod publish;
mod queues;
mod quota;
pub mod reactor;
mod relays;
mod requests;
mod returns;
mod roots_events;
pub mod runners;
mod schedule;
mod secrets;
mod service;
pub mod settings;
mod start;
mod stats;
mod tokens;
mod upkeep;

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering},
    },
};

use halite_fileserver::FileServer;
use halite_store::{Op, Store};
use halite_target::Index;
use halite_transport::Hub;
use halite_value::{
    Dict, SmolStr, Value,
    msgpack::{self, Dialect},
};
use halite_wire::MinionId;
use parking_lot::{Mutex, RwLock};

pub use halite_keys::{KeyState, Keyring};
pub use jobs::Jobs;
pub use requests::pillar::{EmptyPillar, PillarRequest, PillarSource};
pub use settings::Settings;
pub use start::{Parts, Running, Told, run, start};

/// What can go wrong in a master.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Config(String),
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Crypt(#[from] halite_crypt::Error),
    #[error(transparent)]
    Wire(#[from] halite_wire::Error),
    #[error(transparent)]
    Codec(#[from] msgpack::Error),
    #[error(transparent)]
    Store(#[from] halite_store::Error),
    #[error(transparent)]
    Serve(#[from] halite_transport::ServeError),
    #[error(transparent)]
    Keys(#[from] halite_keys::Error),
    #[error("another master is running here: {0}")]
    Running(String),
    /// The request gets no answer on purpose: it was not done, and is to be tried again.
    #[error("not done, and not answered")]
    Unanswered,
    #[error("{0}")]
    Other(String),
}

impl Error {
    pub(crate) fn io(path: impl AsRef<Path>, source: io::Error) -> Self {
        Self::Io { path: path.as_ref().to_owned(), source }
    }
}

/// Everything a master knows. Shared by all its tasks.
pub struct Master {
    pub settings: Settings,
    pub(crate) secrets: secrets::Secrets,
    pub keys: halite_keys::Keyring,
    pub(crate) admission: admission::Admission,
    pub bus: bus::Bus,
    pub hub: Hub,
    pub store: Arc<dyn Store>,
    pub(crate) index: RwLock<Index>,
    /// The accepted keys the index was last compared with.
    pub(crate) compared: Mutex<Option<Arc<Vec<MinionId>>>>,
    pub(crate) presence: presence::Presence,
    pub(crate) relays: relays::Relays,
    pub jobs: Jobs,
    pub(crate) batches: batch::Batches,
    pub(crate) offline: offline::Offline,
    pub(crate) arriving: arriving::Arriving,
    pub(crate) files: Arc<FileServer>,
    pub(crate) pillar: Arc<dyn PillarSource>,
    pub(crate) runners: Arc<dyn runners::Runners>,
    pub(crate) wheel: Arc<dyn runners::Runners>,
    pub(crate) tokens: tokens::Tokens,
    pub(crate) authenticators: eauth::Systems,
    pub(crate) local_cache: local_cache::LocalCache,
    /// Where jobs are kept beside the store.
    pub(crate) mirrors: Vec<Arc<job_cache::Mirror>>,
    /// Held while a publication gets its serial and its place in the order.
    pub(crate) publishing: Mutex<()>,
    /// Renderings at a time: more only fight for the processors.
    pub(crate) rendering: tokio::sync::Semaphore,
    publish_port: AtomicU16,
    pub(crate) presence_changed: tokio::sync::Notify,
    pub reactor: Arc<reactor::Reactor>,
    pub(crate) queues: queues::Queues,
    pub(crate) stats: stats::Stats,
    pub(crate) roots_seen: roots_events::Seen,
    pub(crate) quota: quota::Quota,
    pub(crate) started: std::time::Instant,
    /// Tells this master from the one before it, in what both write down.
    pub(crate) life: halite_value::SmolStr,
    /// Set when the master is told to end: what breaks from then on is no result.
    stopping: AtomicBool,
    pub counters: Counters,
}

/// What was refused, and how often.
#[derive(Debug, Default)]
pub struct Counters {
    pub bad_loads: AtomicU64,
    pub replays: AtomicU64,
    pub unknown_commands: AtomicU64,
    pub refused_events: AtomicU64,
    pub impersonations: AtomicU64,
    /// Events of minions that sent too many.
    pub dropped_events: AtomicU64,
}

impl Counters {
    pub(crate) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl Master {
    pub(crate) fn publish_port(&self) -> u16 {
        self.publish_port.load(Ordering::Relaxed)
    }

    /// Tells whether the master is going down.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Ends a user's token: a sign-out. Blocking.
    pub fn revoke_token(&self, token: &str) -> bool {
        self.tokens.revoke(token)
    }

    /// Forgets what is remembered of minions: `grains`, `pillar`, `mine`, or one function of it.
    /// Blocking.
    pub(crate) fn forget(&self, ids: &[SmolStr], what: &str, function: &str) -> Result<(), Error> {
        let mut ops = Vec::new();
        let mut index = self.index.write();
        for id in ids {
            let key = id.to_string();
            match what {
                "grains" => {
                    index.set_grains(id, None);
                    ops.push(Op::Delete { bank: "grains", key });
                }
                "pillar" => {
                    index.set_pillar(id, None);
                    self.pillar.forget(id);
                    ops.push(Op::Delete { bank: "pillar", key });
                }
                "mine" => ops.push(Op::Mine { minion: key, entries: Vec::new(), clear: true }),
                "mine_func" => ops.push(Op::MineDelete { minion: key, function: function.into() }),
                other => return Err(Error::Other(format!("nothing is remembered as `{other}`"))),
            }
        }
        drop(index);
        self.store.write(ops).wait()?;
        Ok(())
    }

    /// Tells whether a minion's grains are remembered, if any are: who deletes its key deletes them.
    pub(crate) fn has_data_of(&self, id: &MinionId) -> bool {
        !self.settings.opts.bool("minion_data_cache") || self.index.read().grains(id).is_some()
    }

    /// Remembers a minion's grains, and its pillar if given.
    pub(crate) fn remember(&self, id: &MinionId, grains: Dict, pillar: Option<Dict>) {
        if !self.settings.opts.bool("minion_data_cache") {
            return;
        }
        // Most minions come back with what is known: nothing is written for them.
        let (known_grains, known_pillar) = {
            let index = self.index.read();
            (index.grains(id).cloned(), index.pillar(id).cloned())
        };
        let is_new = |known: Option<Dict>, now: &Dict| {
            !known.is_some_and(|known| Value::from(known).is_identical(&now.into()))
        };
        let grains = Some(grains).filter(|grains| is_new(known_grains, grains));
        let pillar = pillar.filter(|pillar| is_new(known_pillar, pillar));
        let put = |bank, value: &Dict| Op::Put { bank, key: id.to_string(), value: value.into() };
        let mut ops = Vec::new();
        ops.extend(grains.as_ref().map(|grains| put("grains", grains)));
        ops.extend(pillar.as_ref().map(|pillar| put("pillar", pillar)));
        if ops.is_empty() {
            return;
        }
        let mut index = self.index.write();
        if grains.is_some() {
            index.set_grains(id, grains);
        }
        if pillar.is_some() {
            index.set_pillar(id, pillar);
        }
        drop(index);
        let _stored_later = self.store.write(ops);
    }
}

/// Runs blocking work away from the tasks that serve the network.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Error::Other(format!("a request ended in a panic: {error}")))
}

/// How much work of one kind may be under way at once.
pub(crate) struct Few(LazyLock<tokio::sync::Semaphore>);

impl Few {
    const fn new() -> Self {
        Self(LazyLock::new(|| {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            tokio::sync::Semaphore::new(2 * cores.max(2))
        }))
    }
}

/// Sign-ins: two RSA operations each.
pub(crate) static SIGNING_IN: Few = Few::new();
/// Other requests of minions that need a disk, or are large.
pub(crate) static SERVING: Few = Few::new();

/// As [`blocking`], for work that waits for nobody: a crowd of minions must not become a crowd of
/// threads, which cost memory and time.
pub(crate) async fn brief<T: Send + 'static>(
    few: &'static Few,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    // Nobody closes it: without a permit it would only be less orderly.
    let _one = few.0.acquire().await;
    blocking(work).await
}

/// Writes a value as it goes over the network.
pub(crate) fn encode(value: &Value) -> Result<Vec<u8>, Error> {
    Ok(msgpack::to_vec(value, Dialect::Raw)?)
}
