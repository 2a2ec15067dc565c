//! The thread that asks the beacons.
//!
//! It sleeps until one is due, or until the kernel wakes it: a beacon that watches files has a
//! descriptor for that. Beacons without an `interval` are asked every `loop_interval` seconds, as
//! Salt asks them. A beacon that fails is logged and asked again; it never stops the others. Nor
//! does one that takes its time (packages, web sites, certificates, a user's own): such beacons
//! look on a thread of their own, and are not asked again before they are back.

use std::{
    collections::HashMap,
    os::fd::{AsFd, BorrowedFd},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, Sender},
    },
    time::{Duration, Instant},
};

use halite_beacons::{Config, Running};
use halite_host::Cancel;
use halite_spec::{Call, Cx, Job};
use halite_value::{Dict, Value, entries};
use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::eventfd::{EfdFlags, EventFd},
};
use parking_lot::Mutex;

use super::Board;
use crate::daemon::{node::Node, options::Reader};

/// Grains and pillar are taken anew this often.
const FRESH: Duration = Duration::from_secs(30);
/// A busy folder must not make a busy minion: changes of this long are told together.
const GATHER: Duration = Duration::from_millis(50);
/// However long nothing is due.
const LONGEST: Duration = Duration::from_secs(60);

/// Beacons that look at this machine alone, and at what never waits.
const QUICK: [&str; 11] = [
    "btmp",
    "inotify",
    "load",
    "log",
    "memusage",
    "network_info",
    "network_settings",
    "ps",
    "swapusage",
    "watchdog",
    "wtmp",
];

/// The beacons as the daemon holds them.
pub(crate) struct Beacons {
    board: Mutex<Board>,
    /// Wakes the thread.
    bell: Option<EventFd>,
    begun: AtomicBool,
    over: AtomicBool,
}

impl Beacons {
    pub(crate) fn new(opts: &Dict) -> Self {
        let config = match opts.get("beacons") {
            Some(Value::Dict(config)) => config,
            _ => Dict::new(),
        };
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let bell = EventFd::from_value_and_flags(0, flags);
        if let Err(error) = &bell {
            tracing::warn!("beacons will notice changes late: {error}");
        }
        Self {
            board: Mutex::new(Board::new(&config)),
            bell: bell.ok(),
            begun: AtomicBool::new(false),
            over: AtomicBool::new(false),
        }
    }

    pub(crate) fn set_pillar(&self, pillar: &Dict) {
        let part = match pillar.get("beacons") {
            Some(Value::Dict(part)) => part,
            _ => Dict::new(),
        };
        self.board.lock().set_pillar(&part);
        self.ring();
    }

    fn ring(&self) {
        if let Some(bell) = &self.bell {
            let _ = bell.write(1);
        }
    }

    /// Ends the thread.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Release);
        self.ring();
    }
}

impl Node {
    /// Answers `manage_beacons`.
    pub(crate) fn manage_beacons(self: &Arc<Self>, request: &Dict) -> Option<Dict> {
        let custom = |config: &Config| {
            let cx = self.ground()?.cx(Job::default(), Cancel::new());
            validated_by_user(&cx, config)
        };
        let answer = self.beacons.board.lock().manage(request, &custom);
        self.beacons.ring();
        self.watch_beacons();
        let (tag, data) = answer?;
        self.bus.fire(tag, &data);
        Some(data)
    }

    /// Starts the thread, if there is something to watch and it does not run yet.
    pub(crate) fn watch_beacons(self: &Arc<Self>) {
        let beacons = &self.beacons;
        if beacons.board.lock().active().is_empty() || beacons.begun.swap(true, Ordering::AcqRel) {
            return;
        }
        let node = Arc::clone(self);
        let thread = std::thread::Builder::new().name("beacons".into());
        if let Err(error) = thread.spawn(move || Watcher::new(&node).run()) {
            tracing::error!("no thread for the beacons: {error}");
            beacons.begun.store(false, Ordering::Release);
        }
    }
}

/// A user's own beacon says whether a configuration is right; `None` if there is no such beacon, or
/// it does not say.
fn validated_by_user(cx: &Cx, config: &Config) -> Option<Result<(), String>> {
    let function = format!("{}.validate", config.kind);
    let call = Call { args: vec![config.value.clone()], kwargs: Dict::new() };
    match cx.runtime.call_extension(cx, "beacons", &function, call) {
        Ok(None) => None,
        Ok(Some(answer)) => {
            let parts = answer.items_of_sequence().unwrap_or_else(|| vec![answer]);
            let valid = parts.first().is_some_and(Value::truthy);
            let why = parts.get(1).map(|why| why.to_str().to_string()).unwrap_or_default();
            Some(if valid { Ok(()) } else { Err(why) })
        }
        Err(error) => Some(Err(error.to_string())),
    }
}

/// A beacon at work.
struct Live {
    config: Config,
    asked: Asked,
    next: Instant,
    /// It looks on a thread of its own, and is not back yet.
    away: bool,
}

/// What is asked: it may be away on a thread of its own.
#[derive(Default)]
struct Asked {
    /// `None`: a user's own, in Python.
    running: Option<Box<dyn Running>>,
    /// What was wrong at the last look, so that it is said once.
    wrong: Option<String>,
}

/// A beacon that comes back from its look: its name and kind.
type Back = (String, String, Asked);

struct Watcher<'a> {
    node: &'a Arc<Node>,
    live: HashMap<String, Live>,
    version: Option<u64>,
    every: Duration,
    cx: Option<(Cx, Instant)>,
    back: (Sender<Back>, Receiver<Back>),
}

impl<'a> Watcher<'a> {
    fn new(node: &'a Arc<Node>) -> Self {
        let every = Reader(node.opts.clone()).seconds("loop_interval", 1.0);
        let every = every.max(Duration::from_millis(100));
        let back = std::sync::mpsc::channel();
        Self { node, live: HashMap::new(), version: None, every, cx: None, back }
    }

    fn run(&mut self) {
        while !self.node.beacons.over.load(Ordering::Acquire) {
            self.welcome();
            if let Some(cx) = self.cx() {
                self.follow(&cx);
                self.look(&cx);
            }
            self.wait();
        }
    }

    /// Takes back the beacons whose look is over.
    fn welcome(&mut self) {
        while let Ok((name, kind, asked)) = self.back.1.try_recv() {
            if let Some(live) = self.live.get_mut(&name)
                && live.away
                && live.config.kind == kind
            {
                live.asked = asked;
                live.away = false;
            }
        }
    }

    /// Returns what beacons work with; `None` while there is no master.
    fn cx(&mut self) -> Option<Cx> {
        let now = Instant::now();
        if let Some((cx, since)) = &self.cx
            && now.duration_since(*since) < FRESH
        {
            return Some(cx.clone());
        }
        let job = Job::new("", "beacons", "root");
        let cx = self.node.ground()?.cx(job, Cancel::new());
        self.cx = Some((cx.clone(), now));
        Some(cx)
    }

    /// Takes over what was configured meanwhile.
    fn follow(&mut self, cx: &Cx) {
        let (version, active) = {
            let board = self.node.beacons.board.lock();
            if self.version == Some(board.version) {
                return;
            }
            (board.version, board.active())
        };
        self.version = Some(version);
        let mut before = std::mem::take(&mut self.live);
        for config in active {
            let old = before.remove(&config.name);
            if let Some(mut old) = old
                && old.config.kind == config.kind
            {
                if old.config.value != config.value {
                    old.config = config;
                    old.next = Instant::now();
                    old.asked.wrong = None;
                }
                self.live.insert(old.config.name.clone(), old);
            } else if let Some(live) = begin(cx, config) {
                self.live.insert(live.config.name.clone(), live);
            }
        }
    }

    /// Asks those that are due or have been woken.
    fn look(&mut self, cx: &Cx) {
        let now = Instant::now();
        let mut events = Vec::new();
        let mut in_states = None;
        for live in self.live.values_mut() {
            let running = live.asked.running.as_ref();
            let woken = running.and_then(|running| running.wakes()).is_some_and(is_ready);
            if live.away || live.next > now && !woken {
                continue;
            }
            live.next = now + live.config.interval().unwrap_or(self.every);
            if live.config.flag("disable_during_state_run", false) {
                let running = *in_states.get_or_insert_with(|| states_run(cx));
                if running {
                    tracing::info!("Skipping beacon {}. State run in progress.", live.config.name);
                    // differs: genuine Salt tells what the state run changed once it is over.
                    if let Some(running) = &mut live.asked.running {
                        running.discard();
                    }
                    continue;
                }
            }
            if QUICK.contains(&live.config.kind.as_str()) {
                let found = ask(cx, &live.config, &mut live.asked);
                let id = &self.node.settings.id;
                events.extend(found.into_iter().map(|data| event(id, &live.config.name, data)));
            } else {
                send_out(self.node, cx, live, &self.back.0);
            }
        }
        if !events.is_empty() {
            tell(self.node, events);
        }
    }

    /// Sleeps until the next is due, or something happens.
    fn wait(&self) {
        let now = Instant::now();
        let here = self.live.values().filter(|live| !live.away);
        let next = here.map(|live| live.next).min();
        let wait = next.map_or(LONGEST, |next| next.saturating_duration_since(now)).min(LONGEST);
        let wait = if self.cx.is_none() { Duration::from_secs(1) } else { wait };
        let watched = self.live.values().filter_map(|live| live.asked.running.as_ref()?.wakes());
        let bell = self.node.beacons.bell.as_ref();
        let mut fds: Vec<PollFd<'_>> = bell
            .map(AsFd::as_fd)
            .into_iter()
            .chain(watched)
            .map(|fd| PollFd::new(fd, PollFlags::POLLIN))
            .collect();
        // Rounded up: a little late is one look, a little early is two.
        let millis = wait.as_millis().saturating_add(1);
        let timeout = PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX);
        match poll(&mut fds, timeout) {
            Ok(1..) => {
                let by_bell =
                    bell.is_some() && fds.first().is_some_and(|fd| fd.any().unwrap_or(false));
                if by_bell && let Some(bell) = bell {
                    let _ = bell.read();
                } else {
                    std::thread::sleep(GATHER);
                }
            }
            Ok(_) => {}
            Err(nix::errno::Errno::EINTR) => {}
            Err(error) => {
                tracing::warn!("beacons cannot wait: {error}");
                std::thread::sleep(self.every);
            }
        }
    }
}

fn is_ready(fd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::new(fd, PollFlags::POLLIN)];
    matches!(poll(&mut fds, PollTimeout::ZERO), Ok(1..))
}

/// Checks a configuration and starts its beacon.
fn begin(cx: &Cx, config: Config) -> Option<Live> {
    let next = Instant::now();
    let Some(beacon) = halite_beacons::beacon(&config.kind) else {
        match validated_by_user(cx, &config) {
            Some(Err(why)) => {
                refuse(&config.name, &why);
                return None;
            }
            // Whether there is one at all is seen when it is asked.
            Some(Ok(())) | None => {
                return Some(Live { config, asked: Asked::default(), next, away: false });
            }
        }
    };
    if let Err(problem) = (beacon.validate)(&config) {
        refuse(&config.name, &problem.to_string());
        return None;
    }
    let asked = Asked { running: Some((beacon.start)()), wrong: None };
    Some(Live { asked, config, next, away: false })
}

fn refuse(name: &str, why: &str) {
    tracing::error!("Beacon {name} configuration invalid, not running.\n{why}");
}

/// Lets a beacon look on a thread of its own.
fn send_out(node: &Arc<Node>, cx: &Cx, live: &mut Live, back: &Sender<Back>) {
    let (node, cx, back) = (Arc::clone(node), cx.clone(), back.clone());
    let config = live.config.clone();
    let mut asked = std::mem::take(&mut live.asked);
    live.away = true;
    let work = move || {
        let found = ask(&cx, &config, &mut asked);
        let id = &node.settings.id;
        let events: Vec<Value> =
            found.into_iter().map(|data| event(id, &config.name, data)).collect();
        if !events.is_empty() {
            tell(&node, events);
        }
        // Nobody waits for it when the minion ends.
        let _ = back.send((config.name, config.kind, asked));
        node.beacons.ring();
    };
    let name = format!("beacon {}", live.config.name);
    if let Err(error) = std::thread::Builder::new().name(name).spawn(work) {
        tracing::error!("no thread for the beacon {}: {error}", live.config.name);
        live.away = false;
        if let Some(beacon) = halite_beacons::beacon(&live.config.kind) {
            live.asked.running = Some((beacon.start)());
        }
    }
}

/// Asks one beacon; what goes wrong is logged, once.
fn ask(cx: &Cx, config: &Config, asked: &mut Asked) -> Vec<Dict> {
    let Asked { running, wrong } = asked;
    let looked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| match running {
        Some(running) => running.look(cx, config).map_err(|error| error.to_string()),
        None => ask_user(cx, config),
    }));
    let looked = looked.unwrap_or_else(|_| Err("it panicked, which is a mistake in Halite".into()));
    match looked {
        Ok(events) => {
            *wrong = None;
            events
        }
        Err(why) => {
            if wrong.as_ref() != Some(&why) {
                tracing::error!("The beacon {} errored: {why}", config.name);
                *wrong = Some(why);
            }
            Vec::new()
        }
    }
}

/// Asks a user's own beacon.
fn ask_user(cx: &Cx, config: &Config) -> Result<Vec<Dict>, String> {
    let function = format!("{}.beacon", config.kind);
    // As Salt does, so that several of one kind can tell themselves apart.
    let mut given = config.value.items_of_sequence().unwrap_or_else(|| vec![config.value.clone()]);
    given.push(entries! { "_beacon_name" => config.name.as_str() }.into());
    let call = Call { args: vec![Value::list(given)], kwargs: Dict::new() };
    let answer = cx.runtime.call_extension(cx, "beacons", &function, call);
    match answer.map_err(|error| error.to_string())? {
        Some(events) => {
            let events = events.items_of_sequence().unwrap_or_default();
            Ok(events.into_iter().filter_map(|event| event.as_dict().cloned()).collect())
        }
        None => {
            let names = halite_beacons::names();
            let near = halite_value::suggest::nearest(&config.kind, names.iter().copied());
            let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            Err(format!(
                "Unable to process beacon {}: there is none of that name{hint}",
                config.kind
            ))
        }
    }
}

/// Tells whether states are being applied, by the daemon or by `salt-call`.
fn states_run(cx: &Cx) -> bool {
    cx.runtime
        .running()
        .iter()
        .any(|job| job.get_str("fun").is_some_and(|fun| fun.starts_with("state.")))
}

/// An event as the master fires it.
fn event(id: &str, name: &str, data: Dict) -> Value {
    let mut tag = format!("salt/beacon/{id}/{name}/");
    if let Some(own) = data.remove("tag") {
        tag.push_str(&own.to_str());
    }
    if !data.contains("id") {
        data.insert("id", id);
    }
    entries! { "tag" => tag, "data" => data, "beacon_name" => name }.into()
}

/// Sends events to every master.
fn tell(node: &Arc<Node>, events: Vec<Value>) {
    let ties = node.ties();
    if ties.is_empty() {
        // Who has no master has a bus.
        for event in &events {
            if let (Some(tag), Some(Value::Dict(data))) = (event.get_str("tag"), event.get("data"))
            {
                node.bus.fire(&tag, &data);
            }
        }
        return;
    }
    for tie in ties {
        let load = entries! {
            "cmd" => "_minion_event", "pretag" => Value::Null, "events" => events.clone(),
        };
        crate::daemon::events::send(&tie, load, "events of beacons");
    }
}
