//! A swarm: many minions in one process, for measuring a master.
//!
//! Each has its own id, key, connection, session, journal, grains and a machine in memory, and runs
//! the daemon's own code: what is measured is the real protocol. Shared are the runtime, the threads
//! that do the jobs (a machine with ten thousand threads measures itself), and, unless asked
//! otherwise, a store of keys: making one takes a tenth of a second of processor time.
//!
//! A part of the swarm can misbehave: answer late, take jobs and never answer, come and go, or be
//! hostile: sign in as it should, do its jobs, and try meanwhile what no minion may do.

use std::{
    net::Ipv4Addr,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use halite_crypt::{KeyOptions, PkiDir};
use halite_host::Fake;
use halite_value::{Dict, Value, dict, entries, list};
use tokio::{runtime::Handle, sync::Semaphore};

use super::{
    Signals, StartError,
    auth::Identity,
    bus::Bus,
    jobs::Pool,
    journal::Journal,
    masters,
    node::{Conduct, Machine, Node, NodeParts},
    options::Settings,
    pillar, take_up,
};
use crate::Rendering;

/// What a swarm is made of.
pub struct Swarm {
    /// A minion's configuration, complete; each minion's own differs in id, folders and address.
    pub opts: Dict,
    pub rendering: Arc<dyn Rendering>,
    /// Where each minion has its folder, and the store of keys is.
    pub root: PathBuf,
    pub prefix: String,
    /// Number of the first.
    pub first: usize,
    pub count: usize,
    /// Different keys; 0: one for each minion.
    pub keys: usize,
    /// Threads that do jobs.
    pub threads: usize,
    /// Minions that sign in at the same time at most.
    pub at_once: usize,
    /// Connections come from 127.0.0.0/8, this many minions from each address; 0: from anywhere.
    pub per_address: usize,
    pub mischief: Mischief,
    /// How often to tell how it goes.
    pub every: Duration,
}

/// How many of the swarm misbehave, counted from its first on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mischief {
    /// Answer after this time.
    pub slow: usize,
    pub delay: Duration,
    /// Take jobs and say nothing.
    pub dead: usize,
    /// Drop the connection every `period` and come back.
    pub flapping: usize,
    pub period: Duration,
    /// Are known to the master once, then stay away.
    pub offline: usize,
    /// Try every `period` to speak for others, to read what is not theirs, and to break the master.
    pub hostile: usize,
}

impl Mischief {
    fn of(&self, number: usize) -> Role {
        let mut end = 0;
        for (many, role) in [
            (self.slow, Role::Slow),
            (self.dead, Role::Dead),
            (self.flapping, Role::Flapping),
            (self.offline, Role::Offline),
            (self.hostile, Role::Hostile),
        ] {
            end += many;
            if number < end {
                return role;
            }
        }
        Role::Good
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Good,
    Slow,
    Dead,
    Flapping,
    Offline,
    Hostile,
}

/// How a swarm does.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    pub minions: usize,
    /// Minions that are signed in.
    pub connected: usize,
    /// Jobs done since the start.
    pub jobs: u64,
    /// Returns the master has not acknowledged.
    pub waiting: usize,
    /// What hostile minions tried, and how often the master gave in.
    pub attacks: u64,
    pub breaches: u64,
    pub seconds: f64,
    pub memory_kb: u64,
}

impl Report {
    pub fn to_value(self) -> Value {
        dict! {
            "minions" => self.minions, "connected" => self.connected, "jobs" => self.jobs as i64,
            "waiting" => self.waiting, "seconds" => self.seconds,
            "attacks" => self.attacks as i64, "breaches" => self.breaches as i64,
            "memory_kb" => self.memory_kb as i64,
        }
    }
}

/// Runs a swarm until it is told to end; `tell` gets a report now and then and at the end.
pub fn run(swarm: Swarm, tell: impl Fn(Report)) -> Result<(), StartError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(StartError::io("cannot start"))?;
    let result = runtime.block_on(live(swarm, runtime.handle().clone(), tell));
    runtime.shutdown_background();
    result
}

async fn live(swarm: Swarm, handle: Handle, tell: impl Fn(Report)) -> Result<(), StartError> {
    let mut signals = Signals::new()?;
    let begun = Instant::now();
    let pool = Pool::new(swarm.threads).map_err(StartError::io("cannot start threads"))?;
    let swarm = Arc::new(swarm);
    let making = {
        let (swarm, handle) = (Arc::clone(&swarm), handle.clone());
        tokio::task::spawn_blocking(move || make(&swarm, &handle, &pool))
    };
    let nodes = making.await.map_err(|error| {
        StartError::io("cannot make the swarm")(std::io::Error::other(error.to_string()))
    })??;
    let turns = Arc::new(Semaphore::new(swarm.at_once.max(1)));
    let tally = Arc::new(Tally::default());
    for (number, node) in nodes.iter().enumerate() {
        let role = swarm.mischief.of(number);
        let (node, turns, tally) = (Arc::clone(node), Arc::clone(&turns), Arc::clone(&tally));
        let period = swarm.mischief.period.max(Duration::from_millis(100));
        let victim = format!("{}{}", swarm.prefix, swarm.first + swarm.count.saturating_sub(1));
        handle.spawn(async move { lead(&node, &turns, role, period, &victim, &tally).await });
    }
    let (mut served, mut counted) = (0, None::<Instant>);
    let mut report = || {
        // Looking at all of them takes longer than some of them need for a job.
        let is_recent = counted.is_some_and(|at| at.elapsed() < Duration::from_secs(1));
        if served < nodes.len() || !is_recent {
            served = nodes.iter().filter(|node| node.is_served()).count();
            counted = Some(Instant::now());
        }
        Report {
            minions: nodes.len(),
            connected: served,
            jobs: nodes.iter().map(|node| node.jobs.finished()).sum(),
            waiting: nodes.iter().map(|node| node.journal.waiting()).sum(),
            attacks: tally.attacks.load(Ordering::Relaxed),
            breaches: tally.breaches.load(Ordering::Relaxed),
            seconds: begun.elapsed().as_secs_f64(),
            memory_kb: memory_kb(),
        }
    };
    let mut ticks = tokio::time::interval(swarm.every.max(Duration::from_millis(50)));
    loop {
        tokio::select! {
            _ = signals.next() => break,
            _ = ticks.tick() => tell(report()),
        }
    }
    tell(report());
    for tie in nodes.iter().flat_map(|node| node.ties()) {
        tie.master.transport.close();
    }
    Ok(())
}

/// The life of one minion.
async fn lead(
    node: &Arc<Node>,
    turns: &Semaphore,
    role: Role,
    period: Duration,
    victim: &str,
    tally: &Tally,
) {
    // Signing in costs both sides real work: a crowd that tries all at once only times out.
    let turn = turns.acquire().await;
    let keeping = tokio::spawn(masters::keep(Arc::clone(node)));
    let limit = Instant::now() + Duration::from_secs(60);
    while !node.is_served() && Instant::now() < limit {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    drop(turn);
    match role {
        Role::Good | Role::Slow | Role::Dead => {}
        Role::Offline => leave(node, &keeping),
        Role::Hostile => loop {
            tokio::time::sleep(period).await;
            attack(node, victim, tally).await;
        },
        Role::Flapping => {
            let mut keeping = keeping;
            loop {
                tokio::time::sleep(period).await;
                leave(node, &keeping);
                keeping = tokio::spawn(masters::keep(Arc::clone(node)));
            }
        }
    }
}

/// What hostile minions did.
#[derive(Default)]
struct Tally {
    attacks: AtomicU64,
    breaches: AtomicU64,
}

/// Tries everything once that a minion must not do. Each is a frame of its own, sealed as it should
/// be, so that it gets as far as it can.
async fn attack(node: &Node, victim: &str, tally: &Tally) {
    let Some(tie) = node.ties().into_iter().next() else { return };
    let own = node.identity.id.to_string();
    let jid = halite_wire::Jid::now();
    let forged = entries! {
        "cmd" => "_return", "jid" => &jid, "fun" => "test.ping", "return" => FORGED, "retcode" => 0,
        "success" => true, "fun_args" => list![],
    };
    let event = |tag: &str| {
        entries! { "cmd" => "_minion_event", "tag" => tag, "data" => dict! { "id" => FORGED } }
    };
    let read = |path: &str| {
        entries! { "cmd" => "_serve_file", "path" => path, "saltenv" => "base", "loc" => 0 }
    };
    let pillar = entries! { "cmd" => "_pillar", "grains" => dict! { "id" => victim } };
    let push = entries! {
        "cmd" => "_file_recv", "path" => list!["..", "..", FORGED], "loc" => 0, "size" => 1,
        "data" => FORGED,
    };
    let tries: [(&str, Dict, usize); 10] = [
        (victim, forged, 1),
        (victim, event("own/tag"), 1),
        (&own, event("salt/auth"), 1),
        (&own, event(&format!("salt/job/{jid}/ret/{victim}")), 1),
        (victim, pillar, 1),
        (&own, read("../../../../etc/shadow"), 1),
        (&own, read("salt://../../etc/shadow"), 1),
        (&own, push, 1),
        (&own, entries! { "cmd" => "__init__" }, 1),
        // The second is a replay.
        (&own, entries! { "cmd" => "_file_envs" }, 2),
    ];
    for (id, load, times) in tries {
        tally.attacks.fetch_add(1, Ordering::Relaxed);
        let replies = tie.master.provoke(id, &load, times).await;
        let gave = |reply: &bytes::Bytes| reply.windows(6).any(|part| part == b"root:x");
        if replies.iter().any(gave) {
            tally.breaches.fetch_add(1, Ordering::Relaxed);
        }
    }
    // Not even a request.
    for body in [&b""[..], &[0xc1; 64], &[0xdf, 0xff, 0xff, 0xff, 0xff], &[0x81; 4000]] {
        tally.attacks.fetch_add(1, Ordering::Relaxed);
        let _ = tie.master.transport.request(body.to_vec().into(), Duration::from_secs(5)).await;
    }
}

/// What appears anywhere only if a master believed a hostile minion.
const FORGED: &str = "forged-by-a-hostile-minion";

fn leave(node: &Node, keeping: &tokio::task::JoinHandle<()>) {
    keeping.abort();
    for tie in node.ties() {
        tie.master.transport.close();
        node.remove(&tie);
    }
}

/// Makes all minions: files and keys, no network.
fn make(swarm: &Swarm, handle: &Handle, pool: &Arc<Pool>) -> Result<Vec<Arc<Node>>, StartError> {
    let shared = keys(swarm)?;
    let made = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let one = |index: usize| node(swarm, index, &shared, handle, pool);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let parts = std::thread::scope(|scope| {
        let work = || {
            let mut own = Vec::new();
            while !failed.load(Ordering::Relaxed) {
                let index = made.fetch_add(1, Ordering::Relaxed);
                if index >= swarm.count {
                    break;
                }
                match one(index) {
                    Ok(node) => own.push((index, node)),
                    Err(error) => {
                        failed.store(true, Ordering::Relaxed);
                        return Err(error);
                    }
                }
            }
            Ok(own)
        };
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .map(|thread| match thread.join() {
                Ok(part) => part,
                Err(panic) => std::panic::resume_unwind(panic),
            })
            .collect::<Result<Vec<_>, StartError>>()
    })?;
    let mut nodes: Vec<_> = parts.into_iter().flatten().collect();
    nodes.sort_by_key(|(index, _)| *index);
    Ok(nodes.into_iter().map(|(_, node)| node).collect())
}

/// Makes the store of shared keys, or finds it.
fn keys(swarm: &Swarm) -> Result<Vec<PathBuf>, StartError> {
    let folder = swarm.root.join("keys");
    let wanted = swarm.keys.min(swarm.count);
    let made = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let work = || -> Result<(), StartError> {
            loop {
                let index = made.fetch_add(1, Ordering::Relaxed);
                if index >= wanted {
                    return Ok(());
                }
                PkiDir::new(folder.join(index.to_string()))
                    .minion(&KeyOptions { bits: 2048, passphrase: None, owner: None })
                    .map_err(super::SignInError::from)?;
            }
        };
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    Ok((0..wanted).map(|index| folder.join(index.to_string())).collect())
}

fn node(
    swarm: &Swarm,
    index: usize,
    keys: &[PathBuf],
    handle: &Handle,
    pool: &Arc<Pool>,
) -> Result<Arc<Node>, StartError> {
    let number = swarm.first + index;
    let id = format!("{}{number}", swarm.prefix);
    let folder = swarm.root.join(&id);
    let opts = swarm.opts.shallow_copy();
    opts.insert("id", &*id);
    opts.insert("root_dir", folder.display().to_string());
    opts.insert("cachedir", folder.join("cache").display().to_string());
    opts.insert("sock_dir", folder.join("run").display().to_string());
    opts.insert("pki_dir", folder.join("pki").display().to_string());
    opts.insert("__role", "minion");
    if let Some(per_address @ 1..) = Some(swarm.per_address) {
        opts.insert("source_address", address(number / per_address).to_string());
    }
    let grains = grains(&id, number);
    opts.insert(pillar::CONFIGURED, &grains);
    opts.insert("grains", &grains);
    let settings = Arc::new(Settings::read(&opts)?);
    if !keys.is_empty() {
        lend(&keys[number % keys.len()], &settings.pki_dir)
            .map_err(StartError::io("cannot lend a key"))?;
    }
    let identity = Arc::new(Identity::open(&settings)?);
    let path = settings.cachedir.join("journal");
    let (journal, leftovers) = Journal::open(&path, settings.jid_queue.max(1000))
        .map_err(StartError::io(format!("cannot open the journal {}", path.display())))?;
    let conduct = match swarm.mischief.of(index) {
        Role::Slow => Conduct::Late(swarm.mischief.delay),
        Role::Dead => Conduct::Silent,
        _ => Conduct::Good,
    };
    let node = Node::new(NodeParts {
        settings,
        opts,
        grains,
        identity,
        rendering: Arc::clone(&swarm.rendering),
        journal,
        bus: Bus::closed(),
        handle: handle.clone(),
        machine: Machine::Pretended(Fake::new()),
        pool: Some(Arc::clone(pool)),
        conduct,
    });
    let _entered = handle.enter();
    take_up(&node, leftovers);
    Ok(node)
}

/// Gives a minion one of the stored keys.
fn lend(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for name in ["minion.pem", "minion.pub"] {
        match std::fs::hard_link(from.join(name), to.join(name)) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            other => other?,
        }
    }
    Ok(())
}

/// A loopback address; the first is 127.1.0.1.
fn address(number: usize) -> Ipv4Addr {
    let number = number % (250 * 250 * 250);
    let digit = |place: usize| (number / 250_usize.pow(place as u32) % 250) as u8;
    Ipv4Addr::new(127, 1 + digit(2), digit(1), 1 + digit(0))
}

/// Grains of a fleet: several systems, roles and places, the same for the same number.
fn grains(id: &str, number: usize) -> Dict {
    const SYSTEMS: [(&str, &str, &str, i64); 5] = [
        ("Debian", "Debian", "12", 12),
        ("Ubuntu", "Debian", "24.04", 24),
        ("Rocky", "RedHat", "9.4", 9),
        ("SUSE", "Suse", "15.6", 15),
        ("Alpine", "Alpine", "3.20", 3),
    ];
    const ROLES: [&str; 6] = ["web", "db", "cache", "queue", "edge", "batch"];
    const PLACES: [&str; 4] = ["fra1", "ams2", "iad1", "sin1"];
    let (os, family, release, major) = SYSTEMS[number % SYSTEMS.len()];
    let address = format!("10.{}.{}.{}", number / 62_500 % 250, number / 250 % 250, number % 250);
    entries! {
        "id" => id, "host" => id, "fqdn" => format!("{id}.example.net"), "localhost" => id,
        "domain" => "example.net", "os" => os, "os_family" => family, "osrelease" => release,
        "osmajorrelease" => major, "kernel" => "Linux", "cpuarch" => "x86_64",
        "num_cpus" => 1_i64 << (number % 6), "mem_total" => 1024_i64 << (number % 5),
        "roles" => list![ROLES[number % ROLES.len()], ROLES[number / 7 % ROLES.len()]],
        "datacenter" => PLACES[number / 11 % PLACES.len()],
        "ipv4" => list!["127.0.0.1", address.as_str()],
        "ip_interfaces" => dict! { "eth0" => list![address.as_str()] },
        "saltversion" => "3008.3", "swarm" => true, "number" => number,
    }
}

/// What this process holds of the machine's memory.
fn memory_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_loopback_and_differ() {
        assert_eq!(address(0), Ipv4Addr::new(127, 1, 0, 1));
        let all: std::collections::HashSet<_> = (0..100_000).map(address).collect();
        assert_eq!(all.len(), 100_000);
        assert!(all.iter().all(Ipv4Addr::is_loopback));
    }

    #[test]
    fn mischief_is_counted_from_the_first() {
        let mischief = Mischief {
            slow: 1,
            dead: 2,
            flapping: 1,
            offline: 1,
            hostile: 1,
            ..Mischief::default()
        };
        let roles: Vec<_> = (0..7).map(|number| mischief.of(number)).collect();
        use Role::*;
        assert_eq!(roles, [Slow, Dead, Dead, Flapping, Offline, Hostile, Good]);
    }

    #[test]
    fn grains_are_those_of_a_fleet() {
        let two = [grains("a", 1), grains("b", 2)];
        assert_ne!(two[0].get("os"), two[1].get("os"));
        assert_eq!(grains("a", 1), two[0]);
    }
}
