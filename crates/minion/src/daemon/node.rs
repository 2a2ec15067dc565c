//! What all masters of a minion share: grains, jobs, journal, local bus.
//!
//! A return is written to the journal before it is sent ([`super::outbox`]) and dropped from it when
//! its master has acknowledged it.

use std::{
    path::PathBuf,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use halite_host::{Cancel, Fake, Os};
use halite_modules::state;
use halite_spec::Host;
use halite_value::{
    Dict, SmolStr, Value,
    msgpack::{self, Dialect},
};
use parking_lot::{Mutex, RwLock};
use tokio::{runtime::Handle, sync::Notify};

use super::{
    auth::Identity,
    beacons::Beacons,
    bus::Bus,
    jobs::{Jobs, Pool, Shelf},
    journal::Journal,
    options::{MasterType, Reader, Settings},
    outbox::{Contents, Outbox, Parcel},
    own::{Ground, Hermit},
    proxy::Device,
    schedule::Schedule,
    session::Master,
    tie::Tie,
};
use crate::Rendering;

/// The minion, whatever its masters.
pub(crate) struct Node {
    pub(crate) settings: Arc<Settings>,
    pub(crate) opts: Dict,
    /// The one dict of grains; refreshed in place.
    pub(crate) grains: Dict,
    pub(crate) identity: Arc<Identity>,
    pub(crate) rendering: Arc<dyn Rendering>,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) journal: Journal,
    pub(crate) bus: Arc<Bus>,
    pub(crate) handle: Handle,
    pub(crate) host: Arc<dyn Host>,
    machine: Machine,
    pub(crate) conduct: Conduct,
    ties: RwLock<Vec<Weak<Tie>>>,
    pub(crate) schedule: Schedule,
    pub(crate) beacons: Beacons,
    /// What a proxy minion speaks for.
    pub(crate) device: Option<Device>,
    /// Where the minion's own jobs run while no tie is in use.
    ground: RwLock<Option<Ground>>,
    /// Rung when a master becomes reachable.
    pub(crate) reachable: Notify,
    pub(crate) outbox: Outbox,
    exit: Mutex<Option<u8>>,
    retired: AtomicBool,
    pub(crate) exiting: Notify,
}

/// The machine that jobs work on.
#[derive(Clone, Default)]
pub(crate) enum Machine {
    /// This one.
    #[default]
    Real,
    /// One in memory: a swarm's minions must not change the machine they share.
    Pretended(Fake),
}

impl Machine {
    pub(crate) fn host(&self, cancel: Cancel) -> Arc<dyn Host> {
        match self {
            Self::Real => Arc::new(Os::with_cancel(cancel)),
            Self::Pretended(fake) => Arc::new(fake.clone()),
        }
    }
}

/// How a minion treats the jobs it gets. Only a swarm's minions misbehave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Conduct {
    #[default]
    Good,
    /// Does them after a while.
    Late(Duration),
    /// Takes them and says nothing.
    Silent,
}

/// Everything a [`Node`] is made of.
pub(crate) struct NodeParts {
    pub(crate) settings: Arc<Settings>,
    pub(crate) opts: Dict,
    pub(crate) grains: Dict,
    pub(crate) identity: Arc<Identity>,
    pub(crate) rendering: Arc<dyn Rendering>,
    pub(crate) journal: Journal,
    pub(crate) bus: Arc<Bus>,
    pub(crate) handle: Handle,
    pub(crate) machine: Machine,
    /// Threads for the jobs, if each is not to have its own.
    pub(crate) pool: Option<Arc<Pool>>,
    pub(crate) conduct: Conduct,
}

impl Node {
    pub(crate) fn new(parts: NodeParts) -> Arc<Self> {
        let host = parts.machine.host(Cancel::new());
        let (cachedir, master) = (&parts.settings.cachedir, parts.opts.get("master"));
        state::clear_queues(&*host, cachedir, master.as_ref());
        let folder = state::queue_folder(cachedir, master.as_ref(), "job_queue");
        let shelf = Shelf { host: Arc::clone(&host), folder };
        Arc::new(Self {
            jobs: Jobs::on(parts.settings.process_count_max, parts.pool, Some(shelf)),
            settings: parts.settings,
            grains: parts.grains,
            identity: parts.identity,
            rendering: parts.rendering,
            journal: parts.journal,
            bus: parts.bus,
            handle: parts.handle,
            host,
            machine: parts.machine,
            conduct: parts.conduct,
            ties: RwLock::default(),
            schedule: Schedule::new(&parts.opts),
            beacons: Beacons::new(&parts.opts),
            device: Device::of(&parts.opts),
            ground: RwLock::default(),
            opts: parts.opts,
            reachable: Notify::new(),
            outbox: Outbox::default(),
            exit: Mutex::new(None),
            retired: AtomicBool::new(false),
            exiting: Notify::new(),
        })
    }

    pub(crate) fn proc_dir(&self) -> PathBuf {
        self.settings.cachedir.join("proc")
    }

    /// Returns the machine a job works on.
    pub(crate) fn job_host(&self, cancel: Cancel) -> Arc<dyn Host> {
        self.machine.host(cancel)
    }

    /// Asks the daemon to end with this code.
    pub(crate) fn exit(&self, code: u8) {
        self.exit.lock().get_or_insert(code);
        self.exiting.notify_one();
    }

    pub(crate) fn exit_code(&self) -> Option<u8> {
        *self.exit.lock()
    }

    /// A tie is in use from now on.
    pub(crate) fn add(&self, tie: &Arc<Tie>) {
        let mut ties = self.ties.write();
        ties.retain(|tie| tie.strong_count() > 0);
        ties.push(Arc::downgrade(tie));
        drop(ties);
        self.reachable.notify_waiters();
    }

    /// A tie is in use no more.
    pub(crate) fn remove(&self, tie: &Arc<Tie>) {
        let gone = Arc::downgrade(tie);
        self.ties.write().retain(|tie| !tie.ptr_eq(&gone));
    }

    /// Returns where the minion's own jobs run: beside its first master, or where the last one was.
    pub(crate) fn ground(&self) -> Option<Ground> {
        match self.ties().into_iter().find(|tie| tie.is_ready()) {
            Some(tie) => Some(Ground::Tie(tie)),
            None => self.ground.read().clone(),
        }
    }

    /// A tie has its pillar: the minion's own jobs may run beside it.
    pub(crate) fn is_ready(self: &Arc<Self>, tie: Arc<Tie>) {
        // They wait for a master.
        self.watch_beacons();
        // Kept only where something runs beside it: it keeps the minion in memory.
        let has_engines = self.opts.get("engines").is_some_and(|engines| engines.truthy());
        if self.schedule.is_run() || has_engines {
            *self.ground.write() = Some(Ground::Tie(tie));
        }
        self.reachable.notify_waiters();
    }

    /// Runs the minion's own jobs without a master. Blocking.
    pub(crate) fn settle_alone(self: &Arc<Self>) {
        *self.ground.write() = Some(Ground::Alone(Hermit::new(self)));
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Relaxed)
    }

    /// Ends what the minion does of its own accord.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Relaxed);
        self.beacons.end();
        self.ground.write().take();
    }

    /// The pillar of the first master was loaded.
    pub(crate) fn pillar_is(self: &Arc<Self>, pillar: &Dict) {
        self.schedule.pillar_is(pillar, &self.grains);
        self.beacons.set_pillar(pillar);
        if self.may_begin("beacons_before_connect") {
            self.watch_beacons();
        }
    }

    /// Tells whether what the minion does of its own accord may begin: once it has a master, unless
    /// it has none or an option says otherwise.
    pub(crate) fn may_begin(&self, option: &str) -> bool {
        self.settings.master_type == MasterType::Disable
            || Reader(self.opts.clone()).flag(option, false)
            || self.is_served()
    }

    /// Does what an event on the local bus asks; returns the answer.
    pub(crate) fn manage(self: &Arc<Self>, tag: &str, request: &Dict) -> Option<Dict> {
        match tag {
            "manage_schedule" => self.manage_schedule(request),
            "manage_beacons" => self.manage_beacons(request),
            _ => None,
        }
    }

    pub(crate) fn ties(&self) -> Vec<Arc<Tie>> {
        self.ties.read().iter().filter_map(Weak::upgrade).collect()
    }

    /// Tells whether some master gives us jobs.
    pub(crate) fn is_served(&self) -> bool {
        self.ties.read().iter().filter_map(Weak::upgrade).any(|tie| tie.is_ready())
    }

    /// Returns the master a return goes to.
    pub(crate) fn master_for(&self, name: &str) -> Option<Arc<Master>> {
        let ties = self.ties();
        let own = ties.iter().find(|tie| tie.master.address.name == name);
        let any = || {
            let one_at_a_time = self.settings.master_type != MasterType::Hot || ties.len() == 1;
            ties.first().filter(|_| one_at_a_time)
        };
        own.or_else(any).map(|tie| Arc::clone(&tie.master))
    }

    /// Takes a finished job's return and sees to it that it reaches its master.
    pub(crate) fn deliver(self: &Arc<Self>, key: &str, master: &str, load: Dict, durable: bool) {
        if self.settings.cache_jobs {
            self.cache_job(&load);
        }
        if !self.settings.pub_ret {
            self.forget([key]);
            return;
        }
        load.insert("cmd", "_return");
        let parcel = match self.journal.keep(key, master, &load, durable) {
            Ok(size) => Parcel::new(key, Contents::First(load), size),
            Err(error) => {
                tracing::error!("the return of job {key} is in memory only: {error}");
                Parcel::new(key, Contents::Unkept(load), u64::MAX)
            }
        };
        self.post(master.into(), parcel);
    }

    /// Sends what the journal kept of an earlier life.
    pub(crate) fn resend(self: &Arc<Self>, key: &SmolStr) {
        if let Some(kept) = self.journal.kept(key) {
            self.post(kept.master, Parcel::new(key, Contents::Kept, self.journal.size_of(key)));
        }
    }

    pub(crate) fn forget<'a>(&self, keys: impl IntoIterator<Item = &'a str>) {
        if let Err(error) = self.journal.done(keys) {
            tracing::warn!("the journal cannot be written: {error}");
        }
    }

    /// Keeps a copy of a return on this machine (`cache_jobs`).
    fn cache_job(&self, load: &Dict) {
        let jid = load.get("jid").unwrap_or_default().to_str();
        let Ok(jid) = halite_wire::Jid::new(&jid) else { return };
        let folder = self.settings.cachedir.join("minion_jobs").join(jid.as_str());
        let written = std::fs::create_dir_all(&folder)
            .map_err(|error| error.to_string())
            .and_then(|()| {
                msgpack::to_vec(&Value::from(load), Dialect::Modern)
                    .map_err(|error| error.to_string())
            })
            .and_then(|bytes| {
                std::fs::write(folder.join("return.p"), bytes).map_err(|error| error.to_string())
            });
        if let Err(error) = written {
            tracing::warn!("the return of job {jid} is not cached: {error}");
        }
    }
}

/// Returns a number from 0 to 1.
pub(crate) fn random_part() -> f64 {
    use std::hash::{BuildHasher, Hasher};
    // Spreads a fleet's repetitions; nothing secret depends on it.
    let bits = std::hash::RandomState::new().build_hasher().finish();
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}
