//! The reactor: events lead to reactions.
//!
//! Every event is offered in the moment it is fired ([`Tap`]); what a tag of the table or a rule
//! matches is queued (`queue.rs`: in memory up to `reactor_worker_hwm`, then on disk, never
//! dropped), rendered by `reactor_worker_threads` workers, and performed. Read on:
//! - `table.rs`: which tags lead to which files, and how that is changed while running;
//! - `reaction.rs`: from a rendered file to reactions in their order;
//! - `perform.rs`: what `local`, `runner`, `wheel` and `caller` do;
//! - `rules.rs`: rules with memory;
//! - `dead.rs`: what could not be done, kept for people.
//!
//! Templates are rendered by whoever made the master ([`Rendering`]).

mod dead;
mod perform;
mod queue;
mod reaction;
mod rules;
mod table;

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use halite_config::Opts;
use halite_store::Store;
use halite_value::{Dict, Value, dict, entries};
use parking_lot::RwLock;
use tokio::{sync::Semaphore, task::JoinHandle};

use crate::{
    Master, blocking,
    bus::{Fired, Tap},
    publish::Refusal,
};

pub use dead::DEAD;
use dead::{Failed, Letters};
pub use queue::SPILLED;
use queue::Waiting;
pub use reaction::{Kind, Reaction, Unusable};
pub use rules::REMEMBERED;
use rules::Rules;
use table::Table;

/// Under whose name the reactor runs runners; events of such runs are not reacted to.
pub const USER: &str = "Reactor";

/// Reactions being performed at a time, beside those that run on threads.
const PERFORMING: usize = 256;

/// Why a file gave no reactions.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RenderError {
    #[error("File missing or not found.")]
    Missing,
    #[error("{0}")]
    Failed(String),
}

/// Turns files into data, and texts into texts. Called on threads that may block.
pub trait Rendering: Send + Sync {
    /// Renders one entry of the table: a path, a glob of paths or a `salt://` address. Returns the
    /// name of each file with what it rendered to. `names` are `tag`, `data` and others.
    fn files(
        &self,
        master: &Arc<Master>,
        entry: &str,
        names: &Dict,
    ) -> Result<Vec<(String, Value)>, RenderError>;

    /// Renders a text with Jinja.
    fn text(&self, master: &Arc<Master>, text: &str, names: &Dict) -> Result<String, RenderError>;
}

/// The reactor of a master.
pub struct Reactor {
    table: RwLock<Table>,
    rules: Rules,
    waiting: Waiting,
    letters: Letters,
    rendering: Option<Arc<dyn Rendering>>,
    is_leader: AtomicBool,
    workers: usize,
    performing: Arc<Semaphore>,
    /// Runner, wheel and caller reactions occupy threads.
    threads: Arc<Semaphore>,
    counters: Counters,
}

/// What the reactor has done so far.
#[derive(Debug, Default)]
pub struct Counters {
    /// Events that were queued.
    pub events: AtomicU64,
    /// Events that were dealt with.
    pub handled: AtomicU64,
    /// Reactions begun.
    pub reactions: AtomicU64,
    /// Reactions done.
    pub done: AtomicU64,
    /// What went wrong: files and reactions.
    pub failed: AtomicU64,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Reactor {
    pub fn new(opts: &Opts, store: Arc<dyn Store>, rendering: Option<Arc<dyn Rendering>>) -> Self {
        let number = |name: &str, default: usize| {
            opts.opt_int(name)
                .and_then(|n| usize::try_from(n).ok())
                .filter(|n| *n > 0)
                .unwrap_or(default)
        };
        let workers = number("reactor_worker_threads", 10);
        let halite = opts.get("halite").unwrap_or_default();
        let (rules, problems) =
            Rules::read(&halite.get("rules").unwrap_or_default(), Some(store.clone()));
        for problem in problems {
            tracing::error!("halite: rules: {problem}");
        }
        let (table, problems) = Table::read(&opts.get("reactor").unwrap_or_default());
        for problem in problems {
            tracing::error!("reactor: {problem}");
        }
        Self {
            table: RwLock::new(table),
            rules,
            waiting: Waiting::new(store.clone(), number("reactor_worker_hwm", 10_000)),
            letters: Letters::new(store),
            rendering,
            is_leader: true.into(),
            workers,
            performing: Arc::new(Semaphore::new(PERFORMING)),
            threads: Arc::new(Semaphore::new(workers)),
            counters: Counters::default(),
        }
    }

    fn wants(&self, event: &Fired) -> bool {
        if !self.is_leader.load(Ordering::Relaxed) {
            return false;
        }
        // What the reactor itself has run must not make it run again.
        if (event.tag.starts_with("salt/run/") || event.tag.starts_with("salt/wheel/"))
            && event.data.get("user").is_some_and(|user| user == USER)
        {
            return false;
        }
        self.table.read().matches(&event.tag) || self.rules.matches(&event.tag)
    }

    /// Returns how many dead letters there are.
    pub fn dead_letters(&self) -> u64 {
        self.letters.len()
    }

    /// Returns what it has done, and what waits.
    pub fn status(&self) -> Value {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.counters;
        dict! {
            "events" => read(&counters.events), "handled" => read(&counters.handled),
            "reactions" => read(&counters.reactions), "done" => read(&counters.done),
            "failed" => read(&counters.failed), "waiting" => self.waiting.len(),
            "waiting_on_disk" => self.waiting.on_disk(), "spilled" => self.waiting.spilled_ever(),
            "dead" => self.letters.len(), "leader" => self.is_leader.load(Ordering::Relaxed),
            "rules" => self.rules.status(),
        }
    }
}

impl Tap for Reactor {
    fn offer(&self, event: &Arc<Fired>) {
        if self.wants(event) {
            count(&self.counters.events);
            self.waiting.push(event);
        }
    }
}

/// Starts the workers, if there is anything to react to or may be one day.
pub(crate) fn start(master: &Arc<Master>) -> Vec<JoinHandle<()>> {
    let reactor = &master.reactor;
    // Before the first event: what comes then must not take the place of what is there.
    reactor.waiting.find_left_over();
    reactor.letters.load();
    reactor.rules.load();
    master.bus.tap(reactor.clone());
    let owner = master.clone();
    let check = async move { drop(blocking(move || owner.reactor.rules.check(&owner)).await) };
    let mut tasks = vec![tokio::spawn(watch_spill(master.clone())), tokio::spawn(check)];
    tasks.extend((0..reactor.workers).map(|_| tokio::spawn(work(master.clone()))));
    tasks
}

/// Looks after what was written to disk, so that a loss is never silent.
async fn watch_spill(master: Arc<Master>) {
    let reactor = &master.reactor;
    reactor
        .waiting
        .watch(|event, error| {
            tracing::error!("An event is lost to the reactor: {} ({error})", event.tag);
            count(&reactor.counters.failed);
            reactor.letters.add(
                &event.tag,
                &event.data,
                "",
                None,
                &format!("it could not be kept: {error}"),
            );
        })
        .await;
}

async fn work(master: Arc<Master>) {
    loop {
        let event = master.reactor.waiting.next(&master).await;
        let handled = handle(&master, event);
        // A panic in one event's handling was told by the runtime; the worker goes on.
        let _ = tokio::spawn(handled).await;
        count(&master.reactor.counters.handled);
    }
}

/// The names every reaction's template sees.
fn names(event: &Fired) -> Dict {
    entries! { "tag" => event.tag.as_str(), "data" => &event.data }
}

fn handle(master: &Arc<Master>, event: Arc<Fired>) -> impl Future<Output = ()> + Send + 'static {
    let master = master.clone();
    async move {
        let reactor = &master.reactor;
        let entries = reactor.table.read().entries_of(&event.tag);
        let mut files = Vec::new();
        for entry in entries {
            files.extend(render(&master, &event, entry, names(&event)).await);
        }
        perform_files(&master, &event, files, None).await;
        follow_rules(&master, &event).await;
    }
}

/// Shows an event to the rules, and does what they ask for.
async fn follow_rules(master: &Arc<Master>, event: &Arc<Fired>) {
    if !master.reactor.rules.matches(&event.tag) {
        return;
    }
    let (owner, about) = (master.clone(), event.clone());
    let fired = blocking(move || owner.reactor.rules.see(&owner, &about)).await;
    for (what, names) in fired.unwrap_or_default() {
        let files = match what {
            rules::React::File(entry) => render(master, event, entry, names).await,
            rules::React::Inline(name, high) => vec![(name, high)],
        };
        perform_files(master, event, files, None).await;
    }
}

/// Does once more what failed of an event, and nothing else of it.
async fn handle_again(master: Arc<Master>, event: Arc<Fired>, mut failed: Failed) {
    if failed.is_all() {
        return handle(&master, event).await;
    }
    let entries = master.reactor.table.read().entries_of(&event.tag);
    let mut files = Vec::new();
    for entry in entries {
        let found = render(&master, &event, entry.clone(), names(&event)).await;
        if failed.has_file(&entry) {
            failed.add_files(&found);
        }
        files.extend(found);
    }
    if failed.concerns(&files) {
        perform_files(&master, &event, files, Some(&failed)).await;
    } else {
        // None of the table's files: a rule asked for it.
        follow_rules(&master, &event).await;
    }
}

/// Renders one entry. What fails is counted, and kept for people.
async fn render(
    master: &Arc<Master>,
    event: &Arc<Fired>,
    entry: String,
    names: Dict,
) -> Vec<(String, Value)> {
    let reactor = &master.reactor;
    let why = match try_render(master, &entry, names).await {
        Ok(files) => return files,
        Err(why) => why,
    };
    tracing::error!("Can not render SLS {entry} for tag {}. {why}", event.tag);
    failed(reactor, event, &entry, None, &why);
    Vec::new()
}

async fn try_render(
    master: &Arc<Master>,
    entry: &str,
    names: Dict,
) -> Result<Vec<(String, Value)>, String> {
    let rendering = master.reactor.rendering.clone().ok_or("this master cannot render files")?;
    let (owner, path) = (master.clone(), entry.to_owned());
    let rendered = blocking(move || rendering.files(&owner, &path, &names)).await;
    rendered.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

/// Does what files say: all of it, or only what failed before.
async fn perform_files(
    master: &Arc<Master>,
    event: &Arc<Fired>,
    files: Vec<(String, Value)>,
    again: Option<&Failed>,
) {
    let problem = match reaction::compile(&files) {
        Ok(all) => {
            let all = match again {
                Some(failed) => failed.of(all),
                None => all,
            };
            return perform::all(master, event, all).await;
        }
        Err(problem) => problem,
    };
    // One that is unusable does not keep the others from being done.
    if let [(sls, _)] = files.as_slice() {
        tracing::error!("The reactor file {sls} for tag {} is unusable: {problem}", event.tag);
        return failed(&master.reactor, event, sls, None, &problem.to_string());
    }
    for file in files {
        Box::pin(perform_files(master, event, vec![file], again)).await;
    }
}

/// Counts and keeps a failure.
fn failed(reactor: &Reactor, event: &Fired, sls: &str, id: Option<&str>, error: &str) {
    count(&reactor.counters.failed);
    reactor.letters.add(&event.tag, &event.data, sls, id, error);
}

/// Answers what programs ask of the reactor.
pub(crate) async fn answer(master: &Arc<Master>, load: &Dict) -> Result<Value, Refusal> {
    let reactor = &master.reactor;
    let text = |name: &str| load.get(name).map(|value| value.to_str()).unwrap_or_default();
    Ok(match text("action").as_str() {
        "list" => reactor.table.read().write(),
        "add" => {
            reactor.table.write().add(&text("event"), &load.get("reactors").unwrap_or_default())
        }
        "delete" => reactor.table.write().delete(&text("event")),
        "is_leader" => reactor.is_leader.load(Ordering::Relaxed).into(),
        "set_leader" => {
            let value = load.get("value").is_some_and(|value| value.truthy());
            reactor.is_leader.store(value, Ordering::Relaxed);
            value.into()
        }
        "status" => reactor.status(),
        what @ ("dead" | "forget_dead" | "retry_dead") => {
            // What was counted is to be found: letters are written without waiting for the disk.
            let _ = master.store.write(Vec::new()).await;
            let (owner, what) = (master.clone(), what.to_owned());
            let runtime = tokio::runtime::Handle::current();
            let work = move || match what.as_str() {
                "dead" => owner.reactor.letters.list(),
                "forget_dead" => owner.reactor.letters.clear().into(),
                _ => retry_dead(&owner, &runtime).into(),
            };
            blocking(work).await.map_err(|error| Refusal::invocation(error.to_string()))?
        }
        "test" => {
            let data = match load.get("data") {
                Some(Value::Dict(data)) => data,
                _ => Dict::new(),
            };
            return Ok(rehearse(master, &text("tag"), data).await);
        }
        other => return Err(Refusal::invocation(format!("the reactor cannot `{other}`"))),
    })
}

/// Does once more what lies among the dead letters; returns how many events that concerns.
fn retry_dead(master: &Arc<Master>, runtime: &tokio::runtime::Handle) -> u64 {
    let letters = master.reactor.letters.take();
    let count = letters.len() as u64;
    let owner = master.clone();
    runtime.spawn(async move {
        for (tag, data, failed) in letters {
            let bytes = halite_wire::Event { tag: tag.clone(), data: data.clone() }.encode();
            let bytes = bytes.unwrap_or_default().into();
            let event = Arc::new(Fired { cursor: 0, bytes, tag, data });
            handle_again(owner.clone(), event, failed).await;
        }
    });
    count
}

/// Tells what an event would lead to, without doing it.
async fn rehearse(master: &Arc<Master>, tag: &str, data: Dict) -> Value {
    let reactor = &master.reactor;
    let names = entries! { "tag" => tag, "data" => &data };
    let found = reactor.table.read().entries_of(tag);
    let mut rendered = Vec::new();
    for entry in found {
        let files = try_render(master, &entry, names.clone()).await;
        rendered.push((entry, files));
    }
    let all: Vec<_> =
        rendered.iter().filter_map(|(_, files)| files.as_ref().ok()).flatten().cloned().collect();
    let merged = reaction::compile(&all);
    let shown = rendered.iter().map(|(entry, files)| match files {
        Ok(files) => {
            let files = files.iter().map(|file| show(file, merged.as_deref().ok()));
            dict! { "sls" => entry.as_str(), "files" => Value::list(files) }
        }
        Err(error) => dict! { "sls" => entry.as_str(), "error" => error.as_str() },
    });
    let shown = Value::list(shown);
    dict! { "tag" => tag, "matches" => shown, "rules" => reactor.rules.names_matching(tag) }
}

/// Shows the reactions of one file: its part of all, if all go together.
fn show(file: &(String, Value), merged: Option<&[Reaction]>) -> Value {
    let own = match merged {
        Some(_) => Ok(Vec::new()),
        None => reaction::compile(std::slice::from_ref(file)),
    };
    match own {
        Ok(own) => {
            let all = merged.unwrap_or(&own);
            let of_file = all.iter().filter(|reaction| reaction.sls == file.0);
            let reactions = Value::list(of_file.map(|reaction| reaction.show(all)));
            dict! { "file" => file.0.as_str(), "reactions" => reactions }
        }
        Err(error) => dict! { "file" => file.0.as_str(), "error" => error.to_string() },
    }
}
