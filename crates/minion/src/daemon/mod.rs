//! `salt-minion`: a process that waits for its masters' jobs and does them.
//!
//! Read in this order: [`auth`] and [`session`] (one master: sign-in, sealed requests), [`files`],
//! [`pillar`] and [`link`] (what a job sees of the master), [`journal`] and [`jobs`] (what runs, and
//! what must not be lost), `tie` (one master's publications become jobs and returns), `node` (what
//! all masters share), `masters` (staying connected to one, to all, or to one of several). A proxy
//! minion (`salt-proxy`) is this daemon, too: `proxy` has what it does besides.
//!
//! One thread runs everything that waits (a current-thread runtime); each job has a thread of its
//! own. Nothing here depends on a master being there: jobs go on without it and their returns wait
//! on disk.

pub mod auth;
pub mod beacons;
pub mod bus;
pub mod call;
mod events;
mod execute;
pub mod files;
pub mod jobs;
pub mod journal;
pub mod link;
mod masters;
mod node;
pub mod options;
mod outbox;
mod own;
pub mod pillar;
mod proxy;
mod schedule;
pub mod session;
pub mod swarm;
pub mod syndic;
mod tie;

use std::{sync::Arc, time::Duration};

pub(crate) use execute::outputter;
use halite_host::{Cancel, Os};
use halite_spec::Job;
use halite_value::{Dict, Value};
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::{
    auth::{Identity, SignInError},
    bus::Bus,
    journal::{Journal, Leftovers},
    node::{Node, NodeParts},
    options::{MasterType, Settings},
};
use crate::{Rendering, kinds};

/// The key was rejected.
pub const EX_NOPERM: u8 = 77;
/// The master's fingerprint is not the configured one.
pub const EX_FINGER: u8 = 42;
const EX_GENERIC: u8 = 1;
/// How long starting takes, at most times; how often a daemon looks for memory to give back.
const STARTED: Duration = Duration::from_secs(4);
const AT_REST: Duration = Duration::from_secs(600);

/// What the daemon is started with.
pub struct Start {
    /// The minion's configuration, complete.
    pub opts: Dict,
    pub rendering: Arc<dyn Rendering>,
}

/// Why the daemon did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Options(#[from] options::Problem),
    #[error(transparent)]
    Key(#[from] SignInError),
    #[error("{what}: {source}")]
    Io { what: String, source: std::io::Error },
}

impl StartError {
    fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        |source| Self::Io { what, source }
    }
}

/// Runs the minion until it is told to end; returns the exit code.
pub fn run(start: Start) -> Result<u8, StartError> {
    run_until(start, std::future::pending())
}

/// As [`run`]; ends, too, when `stop` does.
pub fn run_until(start: Start, stop: impl Future<Output = ()>) -> Result<u8, StartError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(StartError::io("cannot start"))?;
    let code = runtime.block_on(daemon(start, runtime.handle().clone(), stop))?;
    // Threads of jobs that did not want to end must not keep the process.
    runtime.shutdown_background();
    Ok(code)
}

/// With `retry_dns_count` a minion gives up if no master's name can be resolved that often. Without
/// it names are looked up at every attempt to connect, for ever.
async fn await_names(settings: &Settings) -> Result<(), StartError> {
    let Some(tries) = settings.dns_tries.filter(|_| !settings.masters.is_empty()) else {
        return Ok(());
    };
    for attempt in 1..=tries.max(1) {
        for master in &settings.masters {
            let host = master.host.trim_matches(['[', ']']);
            if tokio::net::lookup_host((host, master.port))
                .await
                .is_ok_and(|mut at| at.next().is_some())
            {
                return Ok(());
            }
        }
        let names: Vec<_> = settings.masters.iter().map(|master| master.host.as_str()).collect();
        let names = names.join("', '");
        if attempt < tries && !settings.dns_pause.is_zero() {
            tracing::error!(
                "Master hostname: '{names}' not found or not responsive. Retrying in {} seconds",
                settings.dns_pause.as_secs()
            );
            tokio::time::sleep(settings.dns_pause).await;
        } else {
            let problem = format!("Master hostname: '{names}' not found or not responsive");
            return Err(options::Problem::Master(problem).into());
        }
    }
    Ok(())
}

async fn daemon(
    start: Start,
    handle: tokio::runtime::Handle,
    stop: impl Future<Output = ()>,
) -> Result<u8, StartError> {
    let mut signals = Signals::new()?;
    let opts = start.opts;
    if opts.get("master_type").is_some_and(|kind| kind == *"func") {
        let (opts, rendering) = (opts.clone(), Arc::clone(&start.rendering));
        let asked = tokio::task::spawn_blocking(move || ask_for_master(&opts, rendering)).await;
        asked.unwrap_or_else(|panic| Err(options::Problem::Master(panic.to_string())))?;
    }
    let settings = Arc::new(Settings::read(&opts)?);
    await_names(&settings).await?;
    let configured = match opts.get("grains") {
        Some(Value::Dict(configured)) => configured,
        _ => Dict::new(),
    };
    opts.insert(pillar::CONFIGURED, &configured);
    opts.insert("__role", "minion");
    let identity = Arc::new(Identity::open(&settings)?);
    let path = settings.cachedir.join("journal");
    let (journal, leftovers) = Journal::open(&path, settings.jid_queue.max(1000))
        .map_err(StartError::io(format!("cannot open the journal {}", path.display())))?;
    let grains = {
        let opts = opts.clone();
        let python = start.rendering.python();
        let collect = move || {
            let users = python.as_deref().map(|python| (python, None));
            pillar::grains(&Os::new(), &opts, &configured, users)
        };
        tokio::task::spawn_blocking(collect).await.unwrap_or_default()
    };
    opts.insert("grains", &grains);
    let (bus, puller) = Bus::open(&settings.bus()).await;
    let node = Node::new(NodeParts {
        settings: Arc::clone(&settings),
        opts,
        grains,
        identity,
        rendering: start.rendering,
        journal,
        bus,
        handle,
        machine: node::Machine::Real,
        pool: None,
        conduct: node::Conduct::Good,
    });
    take_up(&node, leftovers);
    if let Some(puller) = puller {
        tokio::spawn(events::listen(Arc::clone(&node), puller));
    }
    tokio::spawn(schedule::run(Arc::clone(&node)));
    start_engines(&node);
    if settings.master_type == MasterType::Disable {
        tracing::warn!("Master is set to disable, skipping connection");
        let own = Arc::clone(&node);
        let alone = tokio::task::spawn_blocking(move || {
            own.settle_alone();
            own.watch_beacons();
        });
        let own = Arc::clone(&node);
        tokio::spawn(async move {
            if alone.await.is_ok()
                && let Some(ground) = own.ground()
            {
                proxy::begin(&own, ground).await;
            }
        });
    } else {
        let early = ["scheduler_before_connect", "beacons_before_connect"];
        if early.iter().any(|option| node.may_begin(option)) {
            let own = Arc::clone(&node);
            tokio::task::spawn_blocking(move || own.settle_alone());
        }
        tokio::spawn(masters::keep(Arc::clone(&node)));
    }
    tokio::spawn(events::watch_grains(Arc::clone(&node)));
    tokio::spawn(rest());
    tokio::select! {
        name = signals.next() => {
            let what = if node.device.is_some() { "ProxyMinion" } else { "Minion" };
            tracing::warn!("{what} received a {name}. Exiting.");
        }
        () = node.exiting.notified() => {}
        () = stop => {}
    }
    Ok(end(&node, &mut signals).await)
}

/// Gives back what starting needed, and now and then what jobs did.
async fn rest() {
    let mut pause = STARTED;
    loop {
        tokio::time::sleep(pause).await;
        halite_host::give_back();
        pause = AT_REST;
    }
}

/// `master_type: func`: the option `master` names an execution function that tells the master, or
/// several. Blocking.
fn ask_for_master(opts: &Dict, rendering: Arc<dyn Rendering>) -> Result<(), options::Problem> {
    let function = opts.get("master").unwrap_or_default().to_str();
    let wrong = |why: &str| {
        options::Problem::Master(format!("Failed to load master address from {function}: {why}"))
    };
    let host: Arc<dyn halite_spec::Host> = Arc::new(Os::new());
    let pipes = Arc::new(crate::Pipes::new(opts));
    // As far as this function is concerned there is no master.
    let own = opts.shallow_copy();
    own.insert("file_client", "local");
    let caller = crate::Caller::new(crate::caller::Setup {
        files: Arc::new(halite_fileserver::Local::new(Arc::clone(&host), &own)),
        link: Arc::new(crate::Alone::new(Arc::clone(&host), opts)),
        opts: own,
        host,
        rendering,
        sources: Arc::new(crate::Masterless::new(pipes)),
        job: halite_spec::Job::default(),
    });
    let told = caller
        .and_then(|caller| caller.cx.call(&function, halite_spec::Call::default()))
        .map_err(|error| wrong(&error.to_string()))?;
    let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    match told.items_of_sequence() {
        Some(list) if !list.is_empty() && list.iter().all(is_text) => {}
        None if is_text(&told) => {}
        _ => return Err(wrong(&format!("it returned {}", told.repr()))),
    }
    tracing::info!("Evaluated master from module: {function}");
    opts.insert("master", told);
    Ok(())
}

/// Starts the engines of the option `engines`; they wait for the minion to be settled.
fn start_engines(node: &Arc<Node>) {
    for (name, config) in kinds::configured_engines(&node.opts.get("engines").unwrap_or_default()) {
        let engine = kinds::python_engine(&name, &config);
        let (ground, wanted) = (Arc::downgrade(node), Arc::downgrade(node));
        let cx = move || Some(ground.upgrade()?.ground()?.cx(Job::default(), Cancel::new()));
        let is_wanted = move || wanted.upgrade().is_some_and(|node| !node.is_retired());
        if let Err(error) = kinds::keep_on_thread(engine, cx, is_wanted) {
            tracing::error!("The engine {name} does not start: {error}");
        }
    }
}

/// Sends again what an earlier life could not, and reports what it was doing when it ended.
// differs: in Salt a job that the death of its minion interrupted is never heard of again.
fn take_up(node: &Arc<Node>, leftovers: Leftovers) {
    for key in &leftovers.returns {
        node.resend(key);
    }
    for job in leftovers.interrupted {
        match halite_wire::Publication::read(&job.load) {
            Ok(publication) => {
                tracing::warn!("job {} was interrupted by the end of the minion", job.key);
                let ret = execute::interrupted(&publication, &node.settings.id);
                node.deliver(&job.key, &job.master, ret, true);
            }
            Err(error) => {
                tracing::warn!("job {} cannot be reported as interrupted: {error}", job.key);
                node.forget([job.key.as_str()]);
            }
        }
    }
}

/// Gives jobs a moment to end by themselves, then ends them. What they return is in the journal.
async fn end(node: &Arc<Node>, signals: &mut Signals) -> u8 {
    let code = node.exit_code().unwrap_or(0);
    node.retire();
    let jobs = Arc::clone(&node.jobs);
    let settle = async {
        for _ in 0..20 {
            if jobs.running() == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let ending = Arc::clone(&jobs);
        let left = tokio::task::spawn_blocking(move || ending.end_all(Duration::from_secs(5)));
        if let Ok(left @ 1..) = left.await {
            tracing::warn!("{left} jobs did not end; they will be reported as interrupted");
        }
    };
    tokio::select! {
        () = settle => {}
        // Asked twice: at once.
        _ = signals.next() => return code,
    }
    proxy::end(node).await;
    // Returns that are under way may still arrive; what does not is sent after the next start.
    for _ in 0..10 {
        if node.journal.waiting() == 0 || node.ties().is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    for tie in node.ties() {
        tie.master.transport.close();
    }
    code
}

struct Signals {
    term: Signal,
    int: Signal,
    usr1: Signal,
}

impl Signals {
    fn new() -> Result<Self, StartError> {
        let on = |kind| signal(kind).map_err(StartError::io("cannot listen for signals"));
        Ok(Self {
            term: on(SignalKind::terminate())?,
            int: on(SignalKind::interrupt())?,
            usr1: on(SignalKind::user_defined1())?,
        })
    }

    /// Waits for a signal that ends the minion; returns its name.
    async fn next(&mut self) -> &'static str {
        loop {
            tokio::select! {
                _ = self.term.recv() => return "SIGTERM",
                _ = self.int.recv() => return "SIGINT",
                _ = self.usr1.recv() => match halite_host::write_snapshot("SIGUSR1: salt-minion") {
                    Ok(path) => tracing::warn!("SIGUSR1: see {}", path.display()),
                    Err(error) => tracing::warn!("SIGUSR1: {error}"),
                },
            }
        }
    }
}

/// The exit code that a failed sign-in means, if it means one.
fn fatal(error: &SignInError) -> Option<u8> {
    match error {
        SignInError::Finger { .. } => Some(EX_FINGER),
        SignInError::Rejected => Some(EX_NOPERM),
        _ => None,
    }
}
