//! The run: chunk after chunk, as their requisites allow.
//!
//! Each chunk gets a [`Status`] from what its requisites did; the table of statuses is Salt 3008's.
//! Returns are the dicts Salt's outputters and job caches know. States with `parallel: True` run
//! on threads of their own; whoever depends on one waits for it.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
    sync::Arc,
    thread::JoinHandle,
    time::{Duration, Instant},
};

use halite_spec::{Call, Cx, Error, Event, Journal, Outcome, Refresh};
use halite_value::{Dict, List, Value, dict, entries, msgpack, suggest};
use indexmap::IndexMap;
use parking_lot::Mutex;

use crate::{
    Graph, Low, States,
    gather::Places,
    graph::Step,
    guards, high,
    keywords::{self, REQUISITE_WORDS, Requisite},
    low::{tag, text},
    slots,
};

/// How to run.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    pub test: bool,
    pub failhard: bool,
    /// `state_events`: tell the master of every state.
    pub events: bool,
    /// `state_max_parallel`; no limit if `None`.
    pub max_parallel: Option<usize>,
    /// `mock`: pretend that every state succeeded.
    pub mock: bool,
    /// Unknown arguments are errors (`halite: {strict: true}`).
    pub strict: bool,
    /// What a state reports of its parts stays in its return (`state.single`, `state.low`), instead
    /// of standing beside it.
    pub keeps_parts: bool,
    /// Where finished states are written down.
    pub journal: Option<Arc<dyn Journal>>,
}

impl RunOptions {
    fn note(&self, tag: &str, ret: &Dict) {
        if let Some(journal) = &self.journal {
            journal.finished(tag, ret);
        }
    }
}

/// A run in progress.
pub struct Run<'a> {
    cx: Cx,
    graph: &'a Graph,
    /// Shared with every call: a copy for each would make the run's cost quadratic.
    places: Arc<Places>,
    states: Arc<dyn States>,
    options: RunOptions,
    /// Returns by tag, in the order of the run.
    running: IndexMap<String, Dict>,
    /// Returns of `prereq` checks.
    pre: HashMap<String, Dict>,
    /// States on threads of their own.
    threads: HashMap<String, JoinHandle<Dict>>,
    /// Parallel states that could not begin yet, in their order.
    waiting: Vec<Step>,
    /// How often a node is among them.
    held: HashMap<usize, usize>,
    numbers: Arc<Mutex<i64>>,
    failed_hard: bool,
}

/// What the requisites of a chunk say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Met,
    /// A watched state changed.
    Change,
    Fail,
    /// `prereq`: the other state would change nothing.
    Pre,
    Onfail,
    Onchanges,
    SkipReq,
    SkipWatch,
    /// A state on a thread has to end first.
    Pending,
}

impl<'a> Run<'a> {
    pub fn new(
        cx: &Cx,
        graph: &'a Graph,
        places: &Places,
        states: Arc<dyn States>,
        options: RunOptions,
    ) -> Self {
        Self {
            cx: cx.clone(),
            graph,
            places: Arc::new(places.clone()),
            states,
            options,
            running: IndexMap::new(),
            pre: HashMap::new(),
            threads: HashMap::new(),
            waiting: Vec::new(),
            held: HashMap::new(),
            numbers: Arc::new(Mutex::new(0)),
            failed_hard: false,
        }
    }

    /// Runs everything and returns tag → return.
    pub fn run(mut self) -> Dict {
        // Salt's `__lowstate__`: `file.directory` keeps what other states manage below it.
        let chunks = self.graph.chunks();
        self.cx.context.insert("__lowstate__", chunks.into_iter().collect::<List>());
        let returns = Dict::new();
        for (tag, ret) in self.graph.disabled() {
            returns.insert(tag, ret);
        }
        *self.numbers.lock() = returns.len() as i64;
        self.remember();
        for step in self.graph.steps() {
            self.retry_waiting();
            self.drain(step);
            if self.failed_hard || self.cx.host.cancelled() {
                break;
            }
            if self.paused(step) {
                break;
            }
            if !self.attempt(step) {
                self.hold(step);
            }
            if self.failed_hard {
                break;
            }
        }
        while !self.waiting.is_empty() && !self.failed_hard {
            self.retry_or_sleep();
        }
        self.join_all();
        if !self.failed_hard {
            self.listen();
            self.beacons();
        }
        for (tag, ret) in std::mem::take(&mut self.running) {
            returns.insert(tag, ret);
        }
        returns
    }

    /// Makes a step wait.
    fn hold(&mut self, step: Step) {
        *self.held.entry(step.node).or_default() += 1;
        self.waiting.push(step);
    }

    /// Tries the steps again that had to wait; false if none could run.
    fn retry_waiting(&mut self) -> bool {
        let waiting = std::mem::take(&mut self.waiting);
        let before = waiting.len();
        for step in waiting {
            if let Some(count) = self.held.get_mut(&step.node) {
                *count = count.saturating_sub(1);
            }
            if !self.attempt(step) {
                self.hold(step);
            }
        }
        self.waiting.len() < before
    }

    fn retry_or_sleep(&mut self) {
        if !self.retry_waiting() {
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Before a state that is not parallel: runs what it needs of those that had to wait, so that
    /// it keeps its place in the order.
    fn drain(&mut self, step: Step) {
        if is_parallel(self.graph.low(step.node)) {
            return;
        }
        while !self.failed_hard && !self.cx.host.cancelled() && self.needs_waiting(step) {
            self.retry_or_sleep();
        }
    }

    /// Something a step needs has not even begun.
    fn needs_waiting(&self, step: Step) -> bool {
        if self.waiting.is_empty() && self.held.is_empty() {
            return false;
        }
        let needs = self.graph.needs(step.node);
        needs.into_iter().any(|(_, node)| self.held.get(&node).is_some_and(|count| *count > 0))
    }

    /// Takes over what an earlier, interrupted run has done.
    fn remember(&mut self) {
        let Some(journal) = self.options.journal.clone() else { return };
        for (tag, ret) in journal.known() {
            self.next_number();
            self.running.insert(tag, ret);
        }
    }

    /// Waits while `state.pause` holds the run here; true if `state.soft_kill` ends it.
    fn paused(&self, step: Step) -> bool {
        let jid = &self.cx.job.jid;
        let Some(cache) = self.cx.opt_str("cachedir").filter(|_| !jid.is_empty()) else {
            return false;
        };
        let path = Path::new(cache.as_str()).join("state_pause").join(jid.as_str());
        let id = text(self.graph.low(step.node), "__id__");
        let started = self.cx.host.now();
        loop {
            let Ok(bytes) = self.cx.host.read(&path) else { return false };
            let Ok(Value::Dict(pauses)) = msgpack::from_slice(&bytes, msgpack::Text::Typed) else {
                return false;
            };
            let Some(pause) = pauses.get(id.as_str()).or_else(|| pauses.get("__all__")) else {
                return false;
            };
            if pause.get("kill").is_some_and(|kill| kill.truthy()) {
                return true;
            }
            let limit = pause.get("duration").and_then(|seconds| seconds.to_int());
            let waited = self.cx.host.now().duration_since(started).unwrap_or_default();
            if limit.is_some_and(|limit| waited.as_secs() >= limit.unsigned_abs()) {
                return false;
            }
            if self.cx.sleep(Duration::from_secs(1)).is_err() {
                return true;
            }
        }
    }

    /// Runs a step if it can run now; false if it must wait.
    fn attempt(&mut self, step: Step) -> bool {
        if self.failed_hard {
            return true;
        }
        let tag = self.graph.tag(step.node);
        if self.running.contains_key(&tag) || self.threads.contains_key(&tag) {
            if self.options.journal.is_some() && !self.threads.contains_key(&tag) {
                // Done by an earlier run, which may have ended there.
                let low = self.graph.low(step.node).clone();
                self.check_failhard(&tag, &low);
            }
            return true;
        }
        self.step(step, &tag)
    }

    /// Runs one step; false if it must wait.
    fn step(&mut self, step: Step, tag: &str) -> bool {
        let low = self.aggregated(step);
        let status = self.status(step, &low);
        match status {
            Status::Pending => return false,
            Status::Met => self.execute(step, tag, &low),
            Status::Change | Status::SkipWatch if step.check => self.execute(step, tag, &low),
            Status::Change => {
                let ret = self.call(&low, false);
                self.options.note(tag, &ret);
                let changed = ret.get("changes").is_some_and(|changes| changes.truthy());
                let skip = ret.get("skip_watch").is_some_and(|skip| skip.truthy());
                let ret = if changed || skip { ret } else { self.watch(step, &low) };
                self.file(tag, ret, &low);
            }
            Status::SkipWatch => {
                let ret = self.call(&low, false);
                let comment = format!(
                    "{} mod_watch was not run because requisites were skipped by another state",
                    text(&ret, "comment")
                );
                ret.insert("comment", comment);
                self.file(tag, ret, &low);
            }
            Status::Fail => self.requisite_failed(step, tag, &low),
            Status::SkipReq => self.not_run(
                step,
                tag,
                &low,
                true,
                "State was not run because requisites were skipped by another state",
            ),
            Status::Pre => self.not_run(step, tag, &low, true, "No changes detected"),
            Status::Onfail => self.not_run(
                step,
                tag,
                &low,
                true,
                "State was not run because onfail req did not change",
            ),
            Status::Onchanges => self.not_run(
                step,
                tag,
                &low,
                true,
                "State was not run because none of the onchanges reqs changed",
            ),
        }
        self.check_failhard(tag, &low);
        true
    }

    fn execute(&mut self, step: Step, tag: &str, low: &Low) {
        if step.check {
            let ret = self.call(low, true);
            low.insert("__prereq__", false);
            self.pre.insert(tag.to_owned(), ret);
        } else if is_parallel(low) {
            self.start(tag, low);
        } else {
            let ret = self.call(low, false);
            self.options.note(tag, &ret);
            self.file(tag, ret, low);
        }
    }

    /// Joins the states of the chunk's group into it, where the module can do that.
    fn aggregated(&self, step: Step) -> Low {
        let low = self.graph.low(step.node);
        let group = self.graph.group_of(step.node);
        if group.len() < 2 || step.check {
            return low.clone();
        }
        let own = tag(low);
        let is_joined = |low: &Low| low.get("__agg__").is_some_and(|joined| joined.truthy());
        if !is_joined(low) {
            let open = |other: &Low| tag(other) == own || !self.running.contains_key(&tag(other));
            let open: Vec<Low> = group.iter().filter(|other| open(other)).cloned().collect();
            let running: Dict = self.running.iter().collect();
            low.insert("__agg__", true);
            if let Some(joined) = self.states.aggregate_users(&self.cx, low, &open, &running) {
                return joined;
            }
            low.remove("__agg__");
        }
        let Some(aggregate) = self.states.aggregate(&text(low, "state")) else {
            return low.clone();
        };
        let open = group.into_iter().filter(|other| {
            let other = tag(other);
            other != own && !self.running.contains_key(&other)
        });
        aggregate(low, &open.collect::<Vec<_>>())
    }

    /// Looks at what the requisites of a step did.
    fn status(&mut self, step: Step, low: &Low) -> Status {
        let mut by_kind: IndexMap<Requisite, Vec<String>> = IndexMap::new();
        for (kind, node) in self.graph.needs(step.node) {
            by_kind.entry(kind).or_default().push(self.graph.tag(node));
        }
        if self.needs_waiting(step) {
            return Status::Pending;
        }
        let parallel = is_parallel(low);
        for tag in by_kind.values().flatten() {
            if parallel && self.threads.get(tag).is_some_and(|thread| !thread.is_finished()) {
                return Status::Pending;
            }
        }
        let tags: Vec<String> = by_kind.values().flatten().cloned().collect();
        tags.iter().for_each(|tag| self.join(tag));
        let mut all = HashSet::new();
        for (kind, tags) in by_kind {
            let returns = tags.iter().filter_map(|tag| match kind {
                Requisite::Prereq => self.pre.get(tag),
                _ => self.running.get(tag),
            });
            all.extend(finds(kind, returns));
        }
        conclude(&all)
    }

    fn requisite_failed(&mut self, step: Step, tag: &str, low: &Low) {
        // The target of a `prereq` whose asker failed: its own check tells more than the chain.
        if let Some(ret) = self.pre.get(tag).cloned().filter(|_| !step.check) {
            ret.insert("changes", Value::dict());
            ret.insert("__run_num__", self.next_number());
            for key in ["__sls__", "__id__", "name"] {
                ret.insert(key, low.get(key));
            }
            return self.file(tag, ret, low);
        }
        let mut failed: Vec<String> = Vec::new();
        for (_, node) in self.graph.needs(step.node) {
            let tag = self.graph.tag(node);
            let ret = self.pre.get(&tag).or_else(|| self.running.get(&tag));
            if ret.is_some_and(|ret| ret.get("result") == Some(Value::Bool(false))) {
                let low = self.graph.low(node);
                let name = format!("{}.{}", text(low, "__sls__"), text(low, "__id__"));
                if !failed.contains(&name) {
                    failed.push(name);
                }
            }
        }
        let comment = format!("One or more requisite failed: {}", failed.join(", "));
        self.not_run(step, tag, low, false, &comment);
    }

    fn not_run(&mut self, step: Step, tag: &str, low: &Low, result: bool, comment: &str) {
        let ret = entries! {
            "changes" => Value::dict(), "result" => result, "duration" => 0.0,
            "start_time" => time_of_day(), "comment" => comment, "__state_ran__" => false,
            "__run_num__" => self.next_number(),
        };
        for key in ["__sls__", "__id__", "name"] {
            ret.insert(key, low.get(key));
        }
        if step.check {
            self.pre.insert(tag.to_owned(), ret.clone());
        }
        self.file(tag, ret, low);
    }

    /// Files a return, tells the master, and adds what the state reported of its parts.
    fn file(&mut self, tag: &str, ret: Dict, low: &Low) {
        let parts = if self.options.keeps_parts { None } else { ret.remove("sub_state_run") };
        self.tell(&ret, low);
        self.running.insert(tag.to_owned(), ret);
        for part in parts.and_then(|parts| parts.items_of_sequence()).unwrap_or_default() {
            let Some(Value::Dict(part_low)) = part.get("low") else { continue };
            let ret = entries! {
                "name" => part_low.get("name"), "changes" => part.get("changes"),
                "result" => part.get("result"),
                "duration" => part.get("duration").unwrap_or(Value::Float(0.0)),
                "start_time" => part.get("start_time").unwrap_or_else(|| time_of_day().into()),
                "comment" => part.get("comment").unwrap_or_else(|| "".into()),
                "__state_ran__" => true, "__run_num__" => self.next_number(),
                "__sls__" => low.get("__sls__"), "__id__" => low.get("__id__"),
            };
            self.running.insert(crate::tag(&part_low), ret);
        }
    }

    fn tell(&self, ret: &Dict, low: &Low) {
        let fire = low.get("fire_event").filter(Value::truthy);
        if fire.is_none() && !self.options.events {
            return;
        }
        let (jid, id) = (&self.cx.job.jid, self.cx.id());
        let data = dict! { "ret" => ret };
        let tag = match &fire {
            Some(Value::Str(suffix)) => format!("salt/state_result/{jid}/{id}/{suffix}"),
            Some(_) => format!("salt/state_result/{jid}/{id}/{}", text(ret, "name")),
            None => {
                if let Value::Dict(data) = &data {
                    data.insert("len", self.graph.steps().len());
                }
                format!("salt/job/{jid}/prog/{id}/{}", text(ret, "__run_num__"))
            }
        };
        let event = Event { tag, data, pretag: None, local: false };
        if let Err(error) = self.cx.runtime.fire(&self.cx, event) {
            tracing::warn!("the state's event could not be fired: {error}");
        }
    }

    fn next_number(&self) -> i64 {
        let mut next = self.numbers.lock();
        *next += 1;
        *next - 1
    }

    fn check_failhard(&mut self, tag: &str, low: &Low) {
        if self.options.test {
            return;
        }
        let hard = low.get("failhard").map_or(self.options.failhard, |hard| hard.truthy());
        if !hard {
            return;
        }
        self.join(tag);
        let failed = |ret: &Dict| ret.get("result") == Some(Value::Bool(false));
        if self.running.get(tag).is_some_and(failed) {
            self.failed_hard = true;
        }
    }

    fn caller(&self) -> Caller {
        Caller {
            cx: self.cx.clone(),
            states: self.states.clone(),
            options: self.options.clone(),
            numbers: self.numbers.clone(),
            places: self.places.clone(),
        }
    }

    fn call(&self, low: &Low, check: bool) -> Dict {
        self.caller().call(low, check, 1)
    }

    /// Calls the watch action of a state.
    fn watch(&self, step: Step, low: &Low) -> Dict {
        let low = low.shallow_copy();
        low.insert("sfun", low.get("fun"));
        low.insert("fun", "mod_watch");
        let requisites = Dict::new();
        for (kind, node) in self.graph.needs(step.node) {
            let list = requisites.get_or_insert_with(kind.word(), || List::new().into());
            if let Value::List(list) = list {
                list.push(self.graph.low(node));
            }
        }
        low.insert("__reqs__", requisites);
        low.insert(
            "__running__",
            Value::Dict(self.running.iter().map(|(t, r)| (t, r.clone())).collect()),
        );
        self.call(&low, false)
    }

    fn start(&mut self, tag: &str, low: &Low) {
        if let Some(max) = self.options.max_parallel {
            while self.threads.values().filter(|thread| !thread.is_finished()).count() >= max.max(1)
            {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        let caller = self.caller();
        let low = low.clone();
        let name = format!("state {}", text(&low, "__id__"));
        let own = tag.to_owned();
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            let ret = caller.call(&low, false, 1);
            ret.insert("__parallel__", true);
            caller.options.note(&own, &ret);
            ret
        });
        match thread {
            Ok(thread) => {
                self.threads.insert(tag.to_owned(), thread);
            }
            Err(error) => {
                let low = self.cx.low.clone();
                let ret = failed_return(&low, &format!("cannot start a thread: {error}"));
                self.running.insert(tag.to_owned(), ret);
            }
        }
    }

    /// Waits for a state that runs on a thread.
    fn join(&mut self, tag: &str) {
        let Some(thread) = self.threads.remove(tag) else { return };
        let node = self
            .graph
            .steps()
            .iter()
            .map(|step| step.node)
            .find(|node| self.graph.tag(*node) == tag);
        let low = node.map(|node| self.graph.low(node).clone()).unwrap_or_default();
        let ret = thread.join().unwrap_or_else(|_| {
            failed_return(&low, "The state failed with an internal error (a panic); this is a bug")
        });
        self.file(tag, ret, &low);
    }

    fn join_all(&mut self) {
        let tags: Vec<String> = self.threads.keys().cloned().collect();
        tags.iter().for_each(|tag| self.join(tag));
    }

    /// Runs the watch action of states that listen to a state that changed, after all others.
    fn listen(&mut self) {
        let chunks = self.graph.chunks();
        let mut listeners: Vec<(String, Value, Vec<Value>)> = Vec::new();
        for low in &chunks {
            if let Some(targets) = low.get("listen").and_then(|list| list.items_of_sequence()) {
                listeners.push((
                    text(low, "state"),
                    low.get("__id__").unwrap_or_default(),
                    targets,
                ));
            }
            for target in
                low.get("listen_in").and_then(|list| list.items_of_sequence()).unwrap_or_default()
            {
                let own = Dict::new();
                own.insert(text(low, "state"), low.get("__id__"));
                for (state, name) in target.as_dict().into_iter().flatten() {
                    listeners.push((state.to_string(), name, vec![own.clone().into()]));
                }
            }
        }
        let named = |state: &str, name: &Value| -> Vec<Low> {
            let is_named = |low: &&Low| {
                text(low, "state") == state
                    && (low.get("__id__").as_ref() == Some(name)
                        || low.get("name").as_ref() == Some(name))
            };
            chunks.iter().filter(is_named).cloned().collect()
        };
        let mut errors = IndexMap::new();
        for (state, name, targets) in listeners {
            for target in targets {
                let pairs: Vec<(String, Value)> = match &target {
                    Value::Dict(target) => {
                        target.into_iter().map(|(state, name)| (state.to_string(), name)).collect()
                    }
                    bare => {
                        let is_it = |low: &&Low| {
                            low.get("__id__").as_ref() == Some(bare)
                                || low.get("name").as_ref() == Some(bare)
                        };
                        let last = chunks.iter().rfind(is_it);
                        last.map(|low| (text(low, "state"), low.get("__id__").unwrap_or_default()))
                            .into_iter()
                            .collect()
                    }
                };
                for (to_state, to_name) in pairs {
                    let sources = named(&to_state, &to_name);
                    if sources.is_empty() {
                        listen_error(&mut errors, &to_state, &to_name);
                        continue;
                    }
                    let changed = sources.iter().any(|low| {
                        let ret = self.running.get(&tag(low));
                        ret.and_then(|ret| ret.get("changes"))
                            .is_some_and(|changes| changes.truthy())
                    });
                    if !changed {
                        continue;
                    }
                    let listening = named(&state, &name);
                    if listening.is_empty() {
                        listen_error(&mut errors, &state, &name);
                    }
                    listening.iter().for_each(|low| self.listener(low));
                }
            }
        }
        for (tag, ret) in errors {
            ret.insert("__run_num__", self.next_number());
            self.running.insert(tag, ret);
        }
    }

    fn listener(&mut self, low: &Low) {
        self.besides(low, "mod_watch", "listener");
    }

    /// Has every state that says `beacon` watched from now on, after all others. A state that no
    /// file holds (`state.single`) is not asked.
    fn beacons(&mut self) {
        for low in self.graph.chunks() {
            if low.contains("beacon") && low.get("__sls__").is_some_and(|sls| sls.truthy()) {
                self.besides(&low, "mod_beacon", "beacon");
            }
        }
    }

    /// Runs another function of a state's module under an id of its own, once.
    fn besides(&mut self, low: &Low, fun: &str, prefix: &str) {
        let low = low.shallow_copy();
        low.insert("sfun", low.get("fun"));
        low.insert("fun", fun);
        low.insert("__id__", format!("{prefix}_{}", text(&low, "__id__")));
        REQUISITE_WORDS.iter().for_each(|word| {
            low.remove(*word);
        });
        let tag = tag(&low);
        if !self.running.contains_key(&tag) {
            let ret = self.call(&low, false);
            self.file(&tag, ret, &low);
        }
    }
}

fn listen_error(errors: &mut IndexMap<String, Dict>, state: &str, name: &Value) {
    let tag = format!("Listen_Error_|-listen_{name}_|-listen_{state}_|-Listen_Error");
    let ret = entries! {
        "comment" => format!("Referenced state {state}: {name} does not exist"),
        "name" => format!("listen_{state}:{name}"), "result" => false, "changes" => Value::dict(),
    };
    errors.insert(tag, ret);
}

/// What a requisite finds in the returns of the states it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Finding {
    Met,
    Fail,
    Change,
    SkipReq,
    Pre,
    PreMet,
    /// At least one state of an `onfail` succeeded.
    Onfail,
    Onchanges,
    OnchangesMet,
}

/// Reads the returns of one requisite's states, by the rules of its kind.
fn finds<'r>(kind: Requisite, returns: impl Iterator<Item = &'r Dict>) -> HashSet<Finding> {
    use Finding as F;
    let mut found = HashSet::new();
    for ret in returns {
        let result = ret.get("result").unwrap_or_default();
        let changed = ret.get("changes").is_some_and(|changes| changes.truthy());
        if ret.get("skip_req").is_some_and(|skip| skip.truthy()) {
            found.insert(F::SkipReq);
        }
        let failed = result == Value::Bool(false);
        let ran = ret.get("__state_ran__").is_none_or(|ran| ran.truthy());
        match kind {
            Requisite::Onfail | Requisite::OnfailAny | Requisite::OnfailAll => {
                if result == Value::Bool(true) {
                    found.insert(F::Onfail);
                } else if ran {
                    found.insert(F::Met);
                }
            }
            Requisite::Onchanges | Requisite::OnchangesAny => {
                found.insert(if failed || !changed { F::Onchanges } else { F::OnchangesMet });
            }
            _ if failed => {
                found.insert(F::Fail);
            }
            Requisite::Watch | Requisite::WatchAny if changed => {
                found.insert(F::Change);
            }
            Requisite::Prereq => {
                found.insert(if result.is_null() { F::PreMet } else { F::Pre });
            }
            _ if ran => {
                found.insert(F::Met);
            }
            _ => {}
        }
    }
    let any = matches!(
        kind,
        Requisite::RequireAny
            | Requisite::WatchAny
            | Requisite::OnchangesAny
            | Requisite::OnfailAny
            | Requisite::Onfail
    );
    if any {
        if found.contains(&F::Met) || found.contains(&F::Change) {
            found.remove(&F::Fail);
        }
        if found.contains(&F::OnchangesMet) {
            found.remove(&F::Onchanges);
            found.remove(&F::Fail);
        }
        if found.contains(&F::Met) {
            found.remove(&F::Onfail);
        }
    }
    if kind == Requisite::OnfailAll && found.contains(&F::Onfail) {
        found.remove(&F::Met);
    }
    found
}

fn conclude(found: &HashSet<Finding>) -> Status {
    use Finding as F;
    let has = |finding| found.contains(&finding);
    if has(F::Fail) {
        Status::Fail
    } else if has(F::SkipReq) && (has(F::OnchangesMet) || has(F::PreMet)) {
        Status::SkipReq
    } else if has(F::SkipReq) && has(F::Change) {
        Status::SkipWatch
    } else if has(F::Pre) {
        if has(F::PreMet) { Status::Met } else { Status::Pre }
    } else if has(F::Onfail) && !has(F::OnchangesMet) {
        Status::Onfail
    } else if has(F::Onchanges) && !has(F::OnchangesMet) {
        Status::Onchanges
    } else if has(F::Change) {
        Status::Change
    } else if has(F::Onfail) {
        Status::Onfail
    } else {
        Status::Met
    }
}

/// Everything a single call needs; moved to a thread for `parallel`.
struct Caller {
    cx: Cx,
    states: Arc<dyn States>,
    options: RunOptions,
    numbers: Arc<Mutex<i64>>,
    places: Arc<Places>,
}

impl Caller {
    /// Calls one state, with its guards and retries.
    fn call(&self, low: &Low, check: bool, attempt: i64) -> Dict {
        let started = Instant::now();
        let start_time = time_of_day();
        let full = format!("{}.{}", text(low, "state"), text(low, "fun"));
        tracing::info!("Running state [{}] at time {start_time}", text(low, "name"));
        let problems = self.verify(low, &full);
        if !problems.is_empty() {
            let comment = problems.iter().map(|problem| format!("{problem}\n")).collect::<String>();
            // Without `__id__` and `__sls__`, as in Salt.
            let ret = Outcome::failed(&comment).to_value(&low.get("name").unwrap_or_default());
            ret.insert("__run_num__", self.next_number());
            tracing::error!("{comment}");
            return ret;
        }
        let test = self.options.test || check;
        let ret = self.guarded(low, &full, test);
        if check {
            return ret;
        }
        ret.insert("__sls__", low.get("__sls__"));
        ret.insert("__run_num__", self.next_number());
        if low.get("no_log").is_some_and(|mask| mask.truthy()) {
            mask(&ret);
        }
        self.refresh(low, &ret);
        ret.insert("start_time", start_time);
        ret.insert("duration", milliseconds(started.elapsed()));
        ret.insert("__id__", low.get("__id__"));
        self.retried(low, ret, attempt)
    }

    fn next_number(&self) -> i64 {
        let mut next = self.numbers.lock();
        *next += 1;
        *next - 1
    }

    /// Checks the chunk before anything runs.
    fn verify(&self, low: &Low, full: &str) -> Vec<String> {
        let mut problems = Vec::new();
        match low.get("name") {
            Some(Value::Str(_)) => {}
            None => problems.push("Missing \"name\" data".to_owned()),
            Some(name) if name.truthy() => problems.push(format!(
                "ID '{name}' in SLS '{}' is not formed as a string, but is a {}",
                text(low, "__sls__"),
                name.type_name()
            )),
            Some(_) => {}
        }
        if let Some(written) = low.get("umask")
            && umask(low).is_none()
        {
            problems.push(format!("Invalid umask: {written}"));
        }
        let declared = self.declared(low, full);
        let place = self.places.of_state(&text(low, "__id__"), &text(low, "state"));
        if !self.states.has(&self.cx, &declared) {
            problems.push(format!(
                "State '{declared}' was not found in SLS '{}'",
                text(low, "__sls__")
            ));
            let reason = self.states.missing_reason(&self.cx, &declared);
            problems.push(format!(
                "Reason: {}",
                reason.unwrap_or_else(|| format!("'{declared}' is not available."))
            ));
            if let Some(place) = place {
                problems.push(format!("  --> {place}"));
            }
            // A beacon is asked for by name of the state; there is nothing to have misspelt.
            let names = match declared.ends_with(".mod_beacon") {
                true => Vec::new(),
                false => self.states.names(&self.cx),
            };
            if let Some(near) = suggest::nearest(&declared, names.iter().map(String::as_str)) {
                problems.push(format!("   = help: did you mean `{near}`?"));
            }
            return problems;
        }
        let params = self.states.params(&declared);
        for name in params.required.iter().filter(|name| !low.contains(name.as_str())) {
            problems.push(format!("Missing parameter {name} for state {declared}"));
            if let Some(place) = place {
                problems.push(format!("  --> {place}"));
            }
        }
        if self.options.strict {
            problems.extend(self.unknown(low, &declared));
        }
        problems
    }

    /// The state a chunk declares: behind `mod_watch` stands the function watched for.
    fn declared(&self, low: &Low, full: &str) -> String {
        match low.get("sfun") {
            Some(function) if full.ends_with(".mod_watch") => {
                format!("{}.{function}", text(low, "state"))
            }
            _ => full.to_owned(),
        }
    }

    /// Warnings for arguments nobody declared.
    fn unknown(&self, low: &Low, state: &str) -> Vec<String> {
        let params = self.states.params(state);
        let mut warnings = Vec::new();
        for (key, value) in low {
            let word = key.to_string();
            if params.names.contains(&word) || keywords::is_engine_keyword(&word) {
                continue;
            }
            // A state that takes anything takes a misspelt requisite too; a list gives it away.
            if params.open && !(value.as_list().is_some() && is_nearly_requisite(&word)) {
                continue;
            }
            let place = self.places.of_arg(&text(low, "__id__"), &text(low, "state"), &word);
            let place = place.map(|place| format!("{place}: ")).unwrap_or_default();
            let own = suggest::nearest(&word, params.names.iter().map(String::as_str))
                .filter(|_| !params.open);
            warnings.push(match (own, high::suggest_keyword(&word)) {
                (Some(near), _) => {
                    format!("{place}unknown argument `{word}` for state `{state}`; did you mean `{near}`?")
                }
                (None, Some(near)) => {
                    format!("{place}`{word}` is not a requisite; did you mean `{near}`?")
                }
                (None, None) => format!("{place}unknown argument `{word}` for state `{state}`"),
            });
        }
        warnings
    }

    /// Of a state that failed: which `salt://` sources are not there, where they are asked for, and
    /// what they may have been meant to be.
    fn missing_sources(&self, low: &Low) -> Vec<String> {
        let Some(source) = low.get("source") else { return Vec::new() };
        let saltenv = self.cx.saltenv();
        let sources = source.items_of_sequence().unwrap_or_else(|| vec![source]);
        let mut files: Option<Vec<String>> = None;
        let mut warnings = Vec::new();
        for source in sources.iter().filter_map(Value::as_str) {
            let Some(path) = source.strip_prefix("salt://") else { continue };
            if path.contains(['?', '|']) {
                continue;
            }
            let files =
                files.get_or_insert_with(|| self.cx.files.list(&saltenv, "").unwrap_or_default());
            let folder = format!("{}/", path.trim_end_matches('/'));
            if files.iter().any(|file| file == path || file.starts_with(&folder)) {
                continue;
            }
            let place = self.places.of_arg(&text(low, "__id__"), &text(low, "state"), "source");
            let place = place.map(|place| format!("{place}: ")).unwrap_or_default();
            let folders = files.iter().flat_map(|file| {
                file.match_indices('/').map(|(end, _)| &file[..end]).collect::<Vec<_>>()
            });
            let near = suggest::nearest(path, files.iter().map(String::as_str).chain(folders));
            let near = near.map(|near| format!("; did you mean `salt://{near}`?"));
            warnings.push(format!(
                "{place}there is no {source} in environment {saltenv}{}",
                near.unwrap_or_default()
            ));
        }
        warnings
    }

    /// Asks the guards, then runs the state, then its `check_cmd`.
    fn guarded(&self, low: &Low, full: &str, test: bool) -> Dict {
        let cx = Cx { low: low.clone(), ..self.cx.clone() };
        let name = low.get("name").unwrap_or_default();
        let outcome = self.attempted(&cx, low, full, test);
        let ret = match outcome {
            Ok(ret) => ret,
            Err(error) => {
                let outcome = Outcome::failed(exception_text(&error));
                outcome.to_value(&name)
            }
        };
        let mut warnings = self.unknown(low, &self.declared(low, full));
        if ret.get("result") == Some(Value::Bool(false)) {
            warnings.extend(self.missing_sources(low));
        }
        if !warnings.is_empty() {
            let list = ret.get_or_insert_with("warnings", || List::new().into());
            if let Value::List(list) = list {
                list.extend(warnings.into_iter().map(Value::from));
            }
        }
        // A state that declares `check_cmd` runs it itself (`file.managed`, on the new content).
        let declared = || self.states.params(&self.declared(low, full)).names;
        if low.contains("check_cmd") && !declared().iter().any(|name| name == "check_cmd") {
            match guards::check(&cx, low) {
                Ok((result, comment)) => {
                    ret.insert("result", result);
                    ret.insert("comment", comment);
                }
                Err(error) => {
                    ret.insert("result", false);
                    ret.insert("comment", exception_text(&error));
                }
            }
        }
        ret
    }

    fn attempted(&self, cx: &Cx, low: &Low, full: &str, test: bool) -> Result<Dict, Error> {
        let name = low.get("name").unwrap_or_default();
        if let Some(verdict) = guards::ask(cx, low)?
            && verdict.skip
        {
            let ret = entries! {
                "result" => true, "name" => &name, "changes" => Value::dict(),
                "comment" => verdict.comment, "__sls__" => low.get("__sls__"),
                "__id__" => low.get("__id__"), "skip_watch" => true,
            };
            return Ok(ret);
        }
        if self.options.mock {
            let outcome = Outcome::new(Some(true), Dict::new(), "Not called, mocked");
            return Ok(outcome.to_value(&name));
        }
        let declared = self.declared(low, full);
        let call = slots::fill(cx, self.arguments(low, &declared))?;
        let host = umask(low).and_then(|mask| cx.host.with_umask(mask));
        let masked = host.map(|host| Cx { host, ..cx.clone() });
        let cx = masked.as_ref().unwrap_or(cx);
        let outcome = if full.ends_with(".mod_watch") {
            self.states.watch(cx, &declared, call, test)
        } else {
            self.states.run(cx, &declared, call, test)
        };
        outcome.map(|outcome| outcome.to_value(&name))
    }

    /// The arguments of a chunk: declared ones, and others that are not the engine's.
    fn arguments(&self, low: &Low, state: &str) -> Call {
        let params = self.states.params(state);
        let kwargs = Dict::new();
        // It is told which function asks for the beacon, and whether it really does.
        let of_beacon = |word: &str| {
            matches!(word, "sfun" | "beacon") && params.open && state.ends_with(".mod_beacon")
        };
        for (word, value) in low {
            let name = word.to_str();
            let declared = params.names.iter().any(|own| *own == *name) || of_beacon(&name);
            let wanted = if keywords::is_engine_keyword(&name) {
                declared || (params.open && keywords::is_shared(&name))
            } else {
                declared || params.open
            };
            if wanted {
                kwargs.insert(word, value);
            }
        }
        Call { args: Vec::new(), kwargs }
    }

    /// Loads anew what the state says, or may have brought.
    fn refresh(&self, low: &Low, ret: &Dict) {
        let asks = |word: &str| low.get(word).is_some_and(|flag| flag.truthy());
        let changed = ret.get("changes").is_some_and(|changes| changes.truthy());
        let (state, fun, name) = (text(low, "state"), text(low, "fun"), text(low, "name"));
        let brings_modules = match (state.as_str(), fun.as_str()) {
            ("file", "managed") => {
                [".py", ".pyx", ".pyo", ".pyc", ".so"].iter().any(|end| name.ends_with(end))
            }
            ("file", "recurse") => true,
            ("file", "symlink") => name.contains("bin"),
            ("pkg" | "ports" | "pip", _) => true,
            _ => false,
        };
        let mut wanted = Vec::new();
        if asks("reload_grains") {
            wanted.push(Refresh::Grains);
        }
        if asks("reload_pillar") {
            wanted.push(Refresh::Pillar);
        }
        if asks("force_reload_modules") || (changed && (asks("reload_modules") || brings_modules)) {
            wanted.push(Refresh::Modules);
        }
        for what in wanted {
            if let Err(error) = self.cx.runtime.refresh(&self.cx, what) {
                tracing::warn!("refreshing {what:?} failed: {error}");
            }
        }
    }

    fn retried(&self, low: &Low, ret: Dict, attempt: i64) -> Dict {
        let Some(retry) = low.get("retry") else { return ret };
        let retry = Retry::read(&retry);
        if self.options.test {
            let comment = text(&ret, "comment");
            ret.insert(
                "comment",
                format!(
                    "{comment}  The state would be retried every {} seconds (with a splay of up to \
                     {} seconds) a maximum of {} times or until a result of {} is returned",
                    retry.interval,
                    retry.splay,
                    retry.attempts,
                    Value::Bool(retry.until)
                ),
            );
            return ret;
        }
        if ret.get("result") == Some(Value::Bool(retry.until)) || attempt >= retry.attempts {
            return ret;
        }
        let pause = retry.interval + retry.random_splay();
        if self.cx.sleep(Duration::from_secs(pause.unsigned_abs())).is_err() {
            return ret;
        }
        let again = self.call(low, false, attempt + 1);
        let comment = format!(
            "Attempt {attempt}: Returned a result of \"{}\", with the following comment: \
             \"{}\"\n{}",
            ret.get("result").unwrap_or_default(),
            text(&ret, "comment"),
            text(&again, "comment")
        );
        again.insert("comment", comment);
        let duration = |ret: &Dict| ret.get("duration").and_then(|d| d.as_float()).unwrap_or(0.0);
        again.insert("duration", duration(&again) + duration(&ret) + (pause * 1000) as f64);
        if attempt == 1 {
            again.insert("start_time", ret.get("start_time"));
        }
        again
    }
}

/// `umask:` of a chunk; what YAML took for a number was meant in octal all the same.
fn umask(low: &Low) -> Option<u32> {
    u32::from_str_radix(&low.get("umask")?.to_str(), 8).ok()
}

/// `retry:` as the author wrote it; what is missing or wrong has its default.
struct Retry {
    until: bool,
    attempts: i64,
    interval: i64,
    splay: i64,
}

impl Retry {
    fn read(value: &Value) -> Self {
        let usual = Self { until: true, attempts: 2, interval: 30, splay: 0 };
        match value {
            Value::Bool(false) => Self { attempts: 0, ..usual },
            Value::Dict(_) | Value::List(_) => {
                // A list of one-key dicts is taken as the dict that was meant.
                let get = |word: &str| match value {
                    Value::List(list) => list.into_iter().find_map(|item| item.get(word)),
                    other => other.get(word),
                };
                let int = |word: &str, usual: i64| match get(word) {
                    Some(Value::Int(int)) => int,
                    _ => usual,
                };
                Self {
                    until: get("until").and_then(|until| until.as_bool()).unwrap_or(usual.until),
                    attempts: int("attempts", usual.attempts),
                    interval: int("interval", usual.interval),
                    splay: int("splay", usual.splay),
                }
            }
            _ => usual,
        }
    }

    /// A number below the splay; the clock's lowest digits are random enough to spread load.
    fn random_splay(&self) -> i64 {
        if self.splay <= 0 {
            return 0;
        }
        let nanos = jiff::Timestamp::now().subsec_nanosecond();
        i64::from(nanos.unsigned_abs()) / 1000 % (self.splay + 1)
    }
}

fn failed_return(low: &Low, comment: &str) -> Dict {
    let ret = Outcome::failed(comment).to_value(&low.get("name").unwrap_or_default());
    for key in ["__sls__", "__id__"] {
        if let Some(value) = low.get(key) {
            ret.insert(key, value);
        }
    }
    ret
}

/// What a failed state says. Expected failures speak for themselves.
fn is_parallel(low: &Low) -> bool {
    low.get("parallel").is_some_and(|parallel| parallel.truthy())
}

/// Tells whether a word looks like a requisite that was misspelt.
fn is_nearly_requisite(word: &str) -> bool {
    high::suggest_keyword(word).is_some_and(|near| {
        keywords::REQUISITE_WORDS.contains(&near) || keywords::REQUISITE_IN_WORDS.contains(&near)
    })
}

fn exception_text(error: &Error) -> String {
    match error {
        Error::Failed(text) | Error::Invalid(text) => text.clone(),
        Error::Source { message, place, help, .. } => {
            let place = place.as_ref().map(|place| format!("\n  --> {place}")).unwrap_or_default();
            let help = help.as_ref().map(|help| format!("\n   = help: {help}")).unwrap_or_default();
            format!("{message}{place}{help}")
        }
        Error::Raised { class, message, traceback } => {
            // A traceback ends with the class and the message.
            let trace = traceback
                .as_ref()
                .map_or_else(|| format!("{class}: {message}"), |trace| trace.trim_end().to_owned());
            format!("An exception occurred in this state: {trace}")
        }
        other => format!("An exception occurred in this state: {other}"),
    }
}

/// `no_log`: nothing of the return may be shown.
fn mask(ret: &Dict) {
    const HIDDEN: &str = "The return data has been hidden by no_log.";
    if ret.get("changes").is_some_and(|changes| changes.truthy()) {
        ret.insert("changes", dict! { "no_log" => HIDDEN });
    }
    ret.insert("comment", HIDDEN);
}

fn milliseconds(time: Duration) -> f64 {
    (time.as_micros() as f64) / 1000.0
}

fn time_of_day() -> String {
    jiff::Zoned::now().strftime("%H:%M:%S%.6f").to_string()
}
