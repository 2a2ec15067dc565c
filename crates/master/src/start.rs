//! How a master comes up and goes down.
//!
//! First what others could trip over (folders, keys, the store), then the sockets, local ones
//! last: who sees them may use them. Going down is the reverse; what was acknowledged is on disk
//! at any moment, so nothing has to be saved.

use std::{
    fs,
    os::unix::fs::{
        DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
    },
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use halite_config::Opts;
use halite_fileserver::{FileServer, Options as FileOptions, Roots};
use halite_store::{Embedded, Op, Options as StoreOptions, Retention, Store};
use halite_target::Index;
use halite_transport::{Hub, Kind as Wire, Server, ipc, tcp, ws, zeromq};
use halite_value::{SmolStr, Value};
use halite_wire::{Event, MinionId};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::task::JoinHandle;

use crate::{
    Counters, EmptyPillar, Error, Jobs, Keyring, Master, PillarSource, Settings,
    admission::Admission,
    blocking,
    bus::{Bus, Fired, Log},
    control, eauth, engines,
    job_cache::{self, JobCache, Mirror, Mirrored},
    local_cache::LocalCache,
    offline::Offline,
    orchestration,
    presence::{Kind, Presence},
    queues,
    quota::Quota,
    reactor,
    runners::{NoRunners, Runners},
    secrets::Secrets,
    service::Door,
    tokens::Tokens,
    upkeep,
};

/// What others provide.
#[derive(Default)]
pub struct Parts {
    pub pillar: Option<Arc<dyn PillarSource>>,
    pub runners: Option<Arc<dyn Runners>>,
    pub wheel: Option<Arc<dyn Runners>>,
    /// Further ways of external authentication, by name.
    pub authenticators: eauth::Systems,
    /// Renders what the reactor reacts with.
    pub rendering: Option<Arc<dyn reactor::Rendering>>,
    /// Engines beyond the built-in ones.
    pub engines: Option<Arc<dyn engines::Engines>>,
    /// Event returners (`event_return`).
    pub event_returner: Option<Arc<dyn engines::EventReturner>>,
    /// Returners that keep jobs (`master_job_cache`, `ext_job_cache`).
    pub job_cache: Option<Arc<dyn JobCache>>,
}

/// A master that runs. Dropping it stops it.
pub struct Running {
    pub master: Arc<Master>,
    server: Server,
    tasks: Vec<JoinHandle<()>>,
    files: Vec<PathBuf>,
}

impl Running {
    pub fn request_addr(&self) -> std::net::SocketAddr {
        self.server.request_addr()
    }

    pub fn publish_addr(&self) -> std::net::SocketAddr {
        self.server.publish_addr()
    }

    /// Ends the master and waits until its tasks are gone: then another can listen where it did.
    pub async fn stop(mut self) {
        let tasks = std::mem::take(&mut self.tasks);
        tasks.iter().for_each(JoinHandle::abort);
        for task in tasks {
            // Ended by itself, aborted or failed: gone in any case.
            let _ = task.await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.master.stopping.store(true, Ordering::Relaxed);
        self.server.stop();
        for task in &self.tasks {
            task.abort();
        }
        self.master.bus.close();
        for file in &self.files {
            let _ = fs::remove_file(file);
        }
        // Tasks of connections hold the master until they notice; its store must not stay locked
        // for as long.
        self.master.store.close();
    }
}

/// Whom a running master tells about itself.
#[derive(Clone, Copy)]
pub struct Told<'a> {
    /// It serves.
    pub ready: &'a dyn Fn(),
    /// SIGHUP.
    pub hangup: &'a dyn Fn(),
    /// It was told to end.
    pub ending: &'a dyn Fn(),
}

/// Runs a master until it is told to end (SIGTERM, SIGINT). SIGHUP is passed on, SIGUSR1 writes the
/// counters to the log and to a file.
pub fn run(opts: &Opts, parts: Parts, told: Told<'_>) -> Result<(), Error> {
    use tokio::signal::unix::{SignalKind, signal};
    let settings = Settings::from_opts(opts)?;
    // What has no mode of its own is for the master's user alone.
    nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o077));
    raise_descriptors(&settings);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("master")
        .max_blocking_threads(128)
        .build()
        .map_err(|source| Error::io("tokio", source))?;
    let ended = runtime.block_on(async {
        let of = |kind| signal(kind).map_err(|source| Error::io("signals", source));
        let (mut term, mut int) = (of(SignalKind::terminate())?, of(SignalKind::interrupt())?);
        let (mut hup, mut usr1) = (of(SignalKind::hangup())?, of(SignalKind::user_defined1())?);
        let running = start(settings, parts).await?;
        tracing::info!(
            "The Salt master is listening on {} and {}",
            running.request_addr(),
            running.publish_addr()
        );
        (told.ready)();
        loop {
            tokio::select! {
                _ = term.recv() => break,
                _ = int.recv() => break,
                _ = hup.recv() => (told.hangup)(),
                _ = usr1.recv() => {
                    let counters = control::statistics(&running.master);
                    tracing::warn!("SIGUSR1: {}", counters.repr());
                    let about = format!("SIGUSR1: salt-master\n{}", counters.repr());
                    if let Err(error) = halite_host::write_snapshot(&about) {
                        tracing::warn!("SIGUSR1: {error}");
                    }
                }
            }
        }
        (told.ending)();
        tracing::info!("The Salt Master is shutting down");
        // A task that does not hear of it is left behind with its thread.
        let _ = tokio::time::timeout(Duration::from_secs(2), running.stop()).await;
        Ok(())
    });
    // Requests in the middle of their work get a moment.
    runtime.shutdown_timeout(Duration::from_secs(2));
    ended
}

/// Asks the system for as many descriptors as it gives.
fn raise_descriptors(settings: &Settings) {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    if soft < hard {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
    let wanted = u64::try_from(settings.max_minions).unwrap_or(0);
    if hard < wanted {
        tracing::warn!(
            "The number of open files is limited to {hard}, fewer than the {wanted} minions of max_minions"
        );
    }
}

/// Brings a master up.
pub async fn start(settings: Settings, mut parts: Parts) -> Result<Running, Error> {
    let hub = Hub::new();
    let more = parts.engines.take();
    let event_returner = parts.event_returner.take();
    let cache = parts.job_cache.take();
    let (made, has_cache) = (hub.clone(), cache.is_some());
    let master = blocking(move || prepare(settings, parts, made, has_cache)).await??;
    let master = Arc::new(master);
    let settings = &master.settings;
    let publisher = {
        let address = settings.ipc("master_event_pub.ipc", "tcp_master_pub_port");
        let prefix = match settings.own("event_prefix") {
            None | Some(Value::Null) => ipc::Prefix::Recognise,
            Some(flag) if flag.truthy() => ipc::Prefix::Always,
            Some(_) => ipc::Prefix::Never,
        };
        let options = ipc::PublisherOptions { prefix, ..ipc::PublisherOptions::default() };
        let bound = ipc::Publisher::bind(&address, options).await;
        bound.map_err(|source| Error::Running(format!("{address}: {source}")))?
    };
    let puller = {
        let address = settings.ipc("master_event_pull.ipc", "tcp_master_pull_port");
        let bound = ipc::Puller::bind(&address, 0o600).await;
        bound.map_err(|source| Error::Running(format!("{address}: {source}")))?
    };
    master.bus.feed(Arc::new(publisher));
    let door = Arc::new(Door(master.clone()));
    let server = match settings.transport {
        Wire::ZeroMq => zeromq::serve(&settings.server, &hub, door).await?,
        Wire::Tcp => tcp::serve(&settings.server, &hub, door).await?,
        Wire::Ws => ws::serve(&settings.server, &hub, door).await?,
    };
    master.publish_port.store(server.publish_addr().port(), Ordering::Relaxed);
    let control = control::listen(&master).await?;
    let mut files = vec![settings.sock_dir.join(halite_client::SOCKET)];
    // Clients of Salt look for these, and only whether they are there.
    for marker in ["publish_pull.ipc", "workers.ipc"] {
        let path = settings.sock_dir.join(marker);
        let _ = fs::remove_file(&path);
        let made = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        made.map_err(|source| Error::io(&path, source))?;
        files.push(path);
    }
    files.extend(write_pid(settings)?);
    let mut tasks = vec![
        tokio::spawn(pull(master.clone(), puller)),
        tokio::spawn(upkeep::run(master.clone())),
        tokio::spawn(crate::schedule::run(master.clone())),
        control,
    ];
    tasks.extend(reactor::start(&master));
    tasks.extend(engines::start(&master, more.as_deref()));
    if let Some(cache) = cache {
        master.mirrors.iter().for_each(|mirror| mirror.start(&master, cache.clone()));
    }
    tasks.extend(event_returner.map(|returner| engines::return_events(&master, returner)));
    tasks.push(tokio::spawn(orchestration::resume(master.clone())));
    tasks.push(tokio::spawn(crate::batch::resume(master.clone())));
    Ok(Running { master, server, tasks, files })
}

/// Brings events from local programs to the bus.
async fn pull(master: Arc<Master>, mut puller: ipc::Puller) {
    while let Some(bytes) = puller.next().await {
        match Event::decode(&bytes) {
            Ok(event) => {
                master.bus.fire_event(event);
            }
            Err(error) => tracing::warn!("A local program sent an event that is none: {error}"),
        }
    }
}

fn write_pid(settings: &Settings) -> Result<Option<PathBuf>, Error> {
    let Some(path) = &settings.pidfile else { return Ok(None) };
    let own = std::process::id().to_string();
    if fs::read_to_string(path).is_ok_and(|pid| pid == own) {
        // Written by root, before it became the user we are.
        return Ok(Some(path.clone()));
    }
    if let Some(folder) = path.parent() {
        make_folder(folder, 0o755)?;
    }
    fs::write(path, own).map_err(|source| Error::io(path, source))?;
    let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o644));
    Ok(Some(path.clone()))
}

/// Makes a folder with this mode. What has to be made above it can be entered by all, whatever the
/// umask: local users reach the master's socket through it.
fn make_folder(path: &Path, mode: u32) -> Result<(), Error> {
    let missing: Vec<&Path> = path.ancestors().take_while(|folder| !folder.is_dir()).collect();
    for folder in missing.into_iter().rev().filter(|folder| !folder.as_os_str().is_empty()) {
        let mode = if folder == path { mode } else { 0o755 };
        match fs::DirBuilder::new().mode(mode).create(folder) {
            // Somebody else was faster.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            made => {
                made.and_then(|()| fs::set_permissions(folder, fs::Permissions::from_mode(mode)))
            }
        }
        .map_err(|source| Error::io(folder, source))?;
    }
    Ok(())
}

/// Does everything that needs no network. Blocking.
fn prepare(settings: Settings, parts: Parts, hub: Hub, has_cache: bool) -> Result<Master, Error> {
    let cache = &settings.cachedir;
    make_folder(&settings.pki_dir, 0o700)?;
    let group = settings.opts.bool("permissive_pki_access");
    let mode = if group { 0o750 } else { 0o700 };
    // Somebody else's folder stays as it is; that shows when a key is written.
    let _ = fs::set_permissions(&settings.pki_dir, fs::Permissions::from_mode(mode));
    make_folder(cache, 0o755)?;
    make_folder(&settings.sock_dir, 0o755)?;
    for folder in ["jobs", "proc", "sessions", "minions", "syndics", "tokens"] {
        make_folder(&cache.join(folder), 0o700)?;
    }
    let opts = &settings.opts;
    let keys = Keyring::open(&settings.pki_dir, opts.bool("permissive_pki_access"))?;
    let secrets = Secrets::load(&settings, None)?;
    secrets.make_user_keys(cache, &local_users(&settings))?;
    let local_cache = LocalCache::new(
        cache,
        settings.hash_type,
        settings.own("salt_job_cache").is_some_and(|on| on.truthy()),
    );
    let mut store: Arc<dyn Store> = Arc::new(open_store(&settings)?);
    // Nobody takes from a mirror that has no returner behind it.
    let mirrors: Vec<_> = if has_cache { job_cache::wanted(&settings) } else { Vec::new() }
        .into_iter()
        .map(Mirror::new)
        .collect();
    if !mirrors.is_empty() {
        store = Arc::new(Mirrored { store, mirrors: mirrors.clone() });
    }
    let bus = Bus::new(store.last_event()? + 1, settings.max_event_size);
    bus.log_to(Arc::new(EventLog(store.clone())));
    let presence = Presence::new(hub.clone());
    let index = load_index(&keys, &*store, &presence)?;
    let token_dir = opts
        .opt_str("token_dir")
        .map_or_else(|| cache.join("tokens"), |dir| PathBuf::from(dir.as_str()));
    let settings_quota = settings.own("minion_events").unwrap_or_default();
    let mut authenticators = eauth::built_in();
    authenticators.extend(parts.authenticators);
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let file_options = FileOptions::from_opts(opts.values());
    let host: Arc<dyn halite_spec::Host> = Arc::new(halite_host::Os::new());
    let roots = Arc::new(Roots::new(host.clone(), file_options));
    let files = FileServer::from_opts(&host, opts.values(), roots);
    let reactor = Arc::new(reactor::Reactor::new(opts, store.clone(), parts.rendering));
    Ok(Master {
        reactor,
        queues: queues::Queues::default(),
        stats: crate::stats::Stats::new(&settings),
        roots_seen: crate::roots_events::Seen::default(),
        started: std::time::Instant::now(),
        life: jiff::Timestamp::now().as_nanosecond().to_string().into(),
        stopping: false.into(),
        admission: Admission::new(opts, keys.autosign_dir()),
        files: Arc::new(files),
        pillar: parts.pillar.unwrap_or_else(|| Arc::new(EmptyPillar)),
        runners: parts.runners.unwrap_or_else(|| Arc::new(NoRunners)),
        wheel: parts.wheel.unwrap_or_else(|| Arc::new(NoRunners)),
        tokens: Tokens::new(token_dir),
        authenticators,
        quota: Quota::new(&settings_quota),
        index: index.into(),
        compared: parking_lot::Mutex::default(),
        jobs: Jobs::default(),
        relays: crate::relays::Relays::load(&settings.cachedir.join("syndics")),
        batches: crate::batch::Batches::default(),
        offline: Offline::load(&*store)?,
        arriving: crate::arriving::Arriving::default(),
        publishing: parking_lot::Mutex::default(),
        rendering: tokio::sync::Semaphore::new(cores.max(2)),
        publish_port: settings.server.publish_port.into(),
        presence_changed: tokio::sync::Notify::new(),
        counters: Counters::default(),
        secrets,
        keys,
        bus,
        hub,
        store,
        presence,
        local_cache,
        mirrors,
        settings,
    })
}

struct EventLog(Arc<dyn Store>);

impl Log for EventLog {
    fn append(&self, event: &Fired) {
        let op = Op::Event { cursor: event.cursor, bytes: event.bytes.to_vec() };
        drop(self.0.write(vec![op]));
    }
}

fn open_store(settings: &Settings) -> Result<Embedded, Error> {
    let limits = match settings.own("store") {
        Some(Value::Dict(limits)) => limits,
        _ => halite_value::Dict::new(),
    };
    let usual = Retention::default();
    let limit = |name: &str, default: u64| {
        limits
            .get(name)
            .and_then(|value| value.to_int())
            .and_then(|n| u64::try_from(n).ok())
            .unwrap_or(default)
    };
    let retention = Retention {
        job_age: settings.keep_jobs,
        jobs: limit("max_jobs", usual.jobs),
        job_bytes: limit("max_job_bytes", usual.job_bytes),
        events: limit("max_events", usual.events),
        event_bytes: limit("max_event_bytes", usual.event_bytes),
    };
    let cache = LocalCache::new(&settings.cachedir, settings.hash_type, false);
    let on_expired = Box::new(move |jids: &[String]| {
        for jid in jids {
            cache.remove(jid);
        }
    });
    let options = StoreOptions { retention, on_expired: Some(on_expired) };
    Ok(Embedded::open(&settings.cachedir.join("halite"), options)?)
}

/// Brings back what is known of minions.
fn load_index(keys: &Keyring, store: &dyn Store, presence: &Presence) -> Result<Index, Error> {
    let mut index = Index::new();
    for id in keys.accepted_ids()?.iter() {
        index.set_accepted(id, true);
    }
    for (bank, set) in [
        ("grains", Index::set_grains as fn(&mut Index, &str, Option<halite_value::Dict>)),
        ("pillar", Index::set_pillar),
        ("resources", Index::set_resources),
    ] {
        for (id, value) in store.all(bank)? {
            if let Value::Dict(data) = value {
                set(&mut index, &id, Some(data));
            }
        }
    }
    for (id, _) in store.all("kind")? {
        if let Ok(id) = MinionId::new(&id) {
            presence.learn(&id, Kind::Named);
        }
    }
    Ok(index)
}

/// Returns who gets a key: the master's user, root, and everybody `publisher_acl` names.
fn local_users(settings: &Settings) -> Vec<(SmolStr, Option<u32>)> {
    let uid = |name: &str| nix::unistd::User::from_name(name).ok().flatten().map(|user| user.uid);
    let us = nix::unistd::geteuid();
    // Only root can give files away.
    let owner = |name: &str| uid(name).filter(|_| us.is_root()).map(nix::unistd::Uid::as_raw);
    let mut users = vec![(settings.user.clone(), owner(&settings.user))];
    if settings.user != "root" && us.is_root() {
        users.push(("root".into(), Some(0)));
    }
    let acl = settings.opts.dict("publisher_acl");
    let machine = settings.opts.bool("client_acl_verify").then(system_users);
    for (name, _) in &acl {
        for name in meant(&name.to_str(), machine.as_deref()) {
            if !users.iter().any(|(known, _)| *known == name) {
                let owner = owner(&name);
                users.push((name, owner));
            }
        }
    }
    users
}

/// Returns the users a name in `publisher_acl` means: those of the machine that fit it, or, if
/// nobody looks there (`client_acl_verify: False`), the name as it stands.
fn meant(pattern: &SmolStr, machine: Option<&[SmolStr]>) -> Vec<SmolStr> {
    match machine {
        // A name becomes that of a file.
        None if pattern.contains('/') => Vec::new(),
        None => vec![pattern.clone()],
        // Also one whom only a directory service knows.
        Some(_) if nix::unistd::User::from_name(pattern).is_ok_and(|user| user.is_some()) => {
            vec![pattern.clone()]
        }
        Some(users) => {
            let fitting = users.iter().filter(|name| crate::admission::fits(name, pattern));
            fitting.cloned().collect()
        }
    }
}

fn system_users() -> Vec<SmolStr> {
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    passwd.lines().filter_map(|line| line.split(':').next()).map(SmolStr::new).collect()
}

/// Tells whether `cachedir/.dfn` asks for a new shared key; uses it up. Blocking.
pub(crate) fn takes_drop_file(settings: &Settings) -> bool {
    let path = settings.cachedir.join(".dfn");
    let Ok(metadata) = fs::symlink_metadata(&path) else { return false };
    if !metadata.is_file() || metadata.mode() & 0o7777 != 0o400 {
        tracing::error!("Found dropfile with incorrect permissions, ignoring...");
        let _ = fs::remove_file(&path);
        return false;
    }
    let text = fs::read_to_string(&path).unwrap_or_default();
    let _ = fs::remove_file(&path);
    // Before 3007 it was empty.
    let bare = settings.id.strip_suffix("_master").unwrap_or(&settings.id);
    let text = text.trim();
    text.is_empty() || text == settings.id || text == bare
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_acl_mean_users() {
        let machine: Vec<SmolStr> = ["ops1", "ops2", "web"].map(SmolStr::from).to_vec();
        let check = |pattern: &str, machine: Option<&[SmolStr]>, expected: &[&str]| {
            assert_eq!(meant(&pattern.into(), machine), expected, "{pattern}");
        };
        check("ops.*", Some(&machine), &["ops1", "ops2"]);
        check("nobody-here", Some(&machine), &[]);
        check("ops.*", None, &["ops.*"]);
        check("nobody-here", None, &["nobody-here"]);
        check("../ops", None, &[]);
    }

    #[test]
    fn folders_above_can_be_entered() {
        let top = tempfile::tempdir().unwrap();
        let folder = top.path().join("run/salt/master");
        make_folder(&folder, 0o700).unwrap();
        make_folder(&folder, 0o755).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(&folder), 0o700, "one that is there stays as it is");
        assert_eq!(mode(&top.path().join("run/salt")), 0o755);
        assert_eq!(mode(&top.path().join("run")), 0o755);
        fs::write(top.path().join("file"), "").unwrap();
        assert!(make_folder(&top.path().join("file/x"), 0o755).is_err());
    }
}
