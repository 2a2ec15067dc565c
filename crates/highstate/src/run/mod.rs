//! The run: step after step, as their requisites allow.
//!
//! - [`gate`]: what requisites say, after the states they name;
//! - [`step`]: one state, with its guards and retries; [`verify`], [`retry`];
//! - [`threads`]: states with `parallel: True`; whoever depends on one waits for it;
//! - [`listen`]: watch actions after all others;
//! - [`pause`]: `state.pause` and `state.soft_kill`;
//! - [`returns`]: the shape of returns.
//!
//! This file has the loop and what concerns the run as a whole: parallel states that must wait,
//! `failhard`, events, the journal.

mod gate;
mod listen;
mod pause;
mod retry;
mod returns;
mod step;
mod threads;
mod verify;

use std::{
    collections::HashMap,
    sync::{Arc, atomic::AtomicI64},
};

use halite_spec::{Cx, Event, Journal};
use halite_value::{Dict, List, SmolStr, Value, entries};
use indexmap::{IndexMap, IndexSet};

use self::{
    gate::{Evidence, Gate, Why},
    returns::is_set,
    step::Caller,
    threads::Threads,
};
use crate::{
    Graph, Low, States,
    graph::{Pass, StepId},
    keywords::{REQUISITE_WORDS, Requisite},
    low::{tag, text},
    places::Places,
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
    graph: &'a Graph,
    caller: Arc<Caller>,
    /// Returns by tag, in the order of the run.
    running: IndexMap<SmolStr, Dict>,
    /// Returns of `prereq` checks.
    checked: HashMap<SmolStr, Dict>,
    threads: Threads,
    /// Parallel states that could not begin yet, in their order.
    waiting: IndexSet<StepId>,
    failed_hard: bool,
}

impl<'a> Run<'a> {
    pub fn new(
        cx: &Cx,
        graph: &'a Graph,
        places: Places,
        states: Arc<dyn States>,
        options: RunOptions,
    ) -> Self {
        let caller = Caller {
            cx: cx.clone(),
            states,
            options,
            places,
            numbers: AtomicI64::new(graph.disabled().len() as i64),
        };
        Self {
            graph,
            caller: Arc::new(caller),
            running: IndexMap::new(),
            checked: HashMap::new(),
            threads: Threads::default(),
            waiting: IndexSet::new(),
            failed_hard: false,
        }
    }

    /// Runs everything and returns tag → return.
    pub fn run(mut self) -> Dict {
        // Salt's `__lowstate__`: `file.directory` keeps what other states manage below it.
        let chunks: List = self.graph.chunks().into_iter().collect();
        let outer = self.cx().context.insert("__lowstate__", chunks);
        self.remember();
        for &step in self.graph.steps() {
            self.retry_waiting();
            self.run_needs(step);
            let id = text(self.graph.low(step), "__id__");
            if self.is_over() || pause::ends_at(self.cx(), &id) {
                break;
            }
            if !self.attempt(step) {
                self.waiting.insert(step);
            }
            if self.failed_hard {
                break;
            }
        }
        while !self.waiting.is_empty() && !self.failed_hard {
            self.retry_or_sleep();
        }
        let threads = self.threads.started();
        threads.iter().for_each(|tag| self.join(tag));
        if !threads.is_empty() {
            // They stand where they were started, not where they ended.
            let number = |ret: &Dict| {
                ret.get("__run_num__").and_then(|number| number.as_int()).unwrap_or(i64::MAX)
            };
            self.running.sort_by(|_, a, _, b| number(a).cmp(&number(b)));
        }
        if !self.failed_hard {
            self.listen();
            self.beacons();
        }
        // A run within a state of another gives its place back. And the chunks shall not be held while a
        // large return is printed.
        match outer {
            Some(outer) => self.cx().context.insert("__lowstate__", outer),
            None => self.cx().context.remove("__lowstate__"),
        };
        let disabled = self.graph.disabled();
        let returns = Dict::with_capacity(disabled.len() + self.running.len());
        for (tag, ret) in disabled {
            returns.insert(tag, ret);
        }
        for (tag, ret) in self.running {
            returns.insert(tag, ret);
        }
        returns
    }

    fn cx(&self) -> &Cx {
        &self.caller.cx
    }

    fn options(&self) -> &RunOptions {
        &self.caller.options
    }

    fn is_over(&self) -> bool {
        self.failed_hard || self.cx().host.cancelled()
    }

    /// Takes over what an earlier, interrupted run has done.
    fn remember(&mut self) {
        let known = self.options().journal.as_ref().map(|journal| journal.known());
        for (tag, ret) in known.into_iter().flatten() {
            self.caller.next_number();
            self.running.insert(tag.into(), ret);
        }
    }

    /// Tries the steps again that had to wait; false if none could run.
    fn retry_waiting(&mut self) -> bool {
        let before = self.waiting.len();
        for step in self.waiting.clone() {
            if self.attempt(step) {
                self.waiting.shift_remove(&step);
            }
        }
        self.waiting.len() < before
    }

    fn retry_or_sleep(&mut self) {
        if !self.retry_waiting() {
            std::thread::sleep(threads::MOMENT);
        }
    }

    /// Before a state that is not parallel: runs what it needs of those that had to wait, so that
    /// it keeps its place in the order.
    fn run_needs(&mut self, step: StepId) {
        if is_parallel(self.graph.low(step)) {
            return;
        }
        while !self.is_over() && self.needs_waiting(step) {
            self.retry_or_sleep();
        }
    }

    /// Tells whether something a step needs has not even begun.
    fn needs_waiting(&self, step: StepId) -> bool {
        !self.waiting.is_empty()
            && self.graph.needs(step).any(|(_, first)| self.waiting.contains(&first))
    }

    /// Runs a step if it can run now; false if it must wait.
    fn attempt(&mut self, step: StepId) -> bool {
        if self.failed_hard {
            return true;
        }
        let tag = self.graph.tag(step);
        if self.threads.has(tag) {
            return true;
        }
        if self.running.contains_key(tag) {
            if self.options().journal.is_some() {
                // Done by an earlier run, which may have ended there.
                self.check_failhard(tag, self.graph.low(step));
            }
            return true;
        }
        let low = self.aggregated(step);
        if !self.is_ready(step, &low) {
            return false;
        }
        self.act(step, &low);
        self.check_failhard(tag, &low);
        true
    }

    /// Joins the states of the chunk's group into it, where the module can do that.
    fn aggregated(&self, step: StepId) -> Low {
        let (own, low) = (self.graph.tag(step), self.graph.low(step));
        let group = self.graph.group_of(step);
        if group.len() < 2 {
            return low.clone();
        }
        let open = group.into_iter().filter(|(tag, _)| !self.running.contains_key(*tag));
        let open: Vec<(&str, &Low)> = open.collect();
        if !is_set(low, "__agg__") {
            let all: Vec<Low> = open.iter().map(|(_, low)| (*low).clone()).collect();
            let running: Dict = self.running.iter().collect();
            low.insert("__agg__", true);
            let joined = self.caller.states.aggregate_users(self.cx(), low, &all, &running);
            if let Some(joined) = joined {
                return joined;
            }
            low.remove("__agg__");
        }
        let Some(join) = self.caller.states.aggregate(&text(low, "state")) else {
            return low.clone();
        };
        let others = open.into_iter().filter(|(tag, _)| *tag != own);
        join(low, &others.map(|(_, low)| low.clone()).collect::<Vec<_>>())
    }

    /// Tells whether all a step needs has returned. One that is parallel itself lets others go
    /// ahead meanwhile; any other waits here.
    fn is_ready(&mut self, step: StepId, low: &Low) -> bool {
        if self.needs_waiting(step) {
            return false;
        }
        let graph = self.graph;
        let needs: Vec<&SmolStr> = graph.needs(step).map(|(_, first)| graph.tag(first)).collect();
        if is_parallel(low) && needs.iter().any(|tag| self.threads.is_busy(tag)) {
            return false;
        }
        needs.into_iter().for_each(|tag| self.join(tag));
        true
    }

    /// Looks at what the requisites of a step did.
    fn gate(&self, step: StepId) -> Gate {
        let mut evidence = Evidence::default();
        for (kind, first) in self.graph.needs(step) {
            let tag = self.graph.tag(first);
            let ret = match kind {
                Requisite::Prereq => self.checked.get(tag),
                _ => self.running.get(tag),
            };
            if let Some(ret) = ret {
                evidence.add(kind, ret);
            }
        }
        evidence.gate()
    }

    /// Runs a step, or says why not.
    fn act(&mut self, step: StepId, low: &Low) {
        let tag = self.graph.tag(step);
        let gate = self.gate(step);
        match gate {
            Gate::Closed(why) => self.not_run(step, low, why),
            _ if self.graph.is_check(step) => {
                let ret = self.caller.call(low, Pass::Check);
                low.insert("__prereq__", false);
                self.checked.insert(tag.clone(), ret);
            }
            Gate::Open | Gate::OpenAnyway if is_parallel(low) => self.start(step, low),
            Gate::Open | Gate::OpenAnyway => {
                let ret = self.caller.call(low, Pass::Apply);
                self.finish(tag, ret, low);
            }
            Gate::OpenWithWatch => {
                let ret = self.caller.call(low, Pass::Apply);
                let content = returns::has_changes(&ret) || is_set(&ret, "skip_watch");
                let ret = if content { ret } else { self.watch(step, low) };
                self.finish(tag, ret, low);
            }
            Gate::OpenWithoutWatch => {
                let ret = self.caller.call(low, Pass::Apply);
                let skipped =
                    " mod_watch was not run because requisites were skipped by another state";
                ret.insert("comment", text(&ret, "comment") + skipped);
                self.finish(tag, ret, low);
            }
        }
    }

    /// Writes down and files the return of a step that has run, with its `mod_watch`: a run that
    /// goes on after a crash must not take a state for done whose restart is still due.
    fn finish(&mut self, tag: &SmolStr, ret: Dict, low: &Low) {
        self.options().note(tag, &ret);
        self.file(tag, ret, low);
    }

    /// Files the return of a step that its requisites keep from running.
    fn not_run(&mut self, step: StepId, low: &Low, why: Why) {
        let (tag, check) = (self.graph.tag(step), self.graph.is_check(step));
        let (result, words) = why.says();
        let mut comment = words.to_owned();
        if why == Why::Failed {
            // The target of a `prereq` whose asker failed: its own check tells more than the chain.
            if let Some(ret) = self.checked.get(tag).filter(|_| !check).cloned() {
                ret.insert("changes", Value::dict());
                ret.insert("__run_num__", self.caller.next_number());
                returns::sign(&ret, low);
                return self.file(tag, ret, low);
            }
            comment += &self.failures(step);
        }
        let ret = returns::not_run(low, result, &comment, self.caller.next_number());
        if check {
            self.checked.insert(tag.clone(), ret.clone());
        }
        self.file(tag, ret, low);
    }

    /// Names the states that failed of those a step needs.
    fn failures(&self, step: StepId) -> String {
        let failed = self.graph.needs(step).map(|(_, first)| first).filter(|first| {
            let tag = self.graph.tag(*first);
            let ret = self.checked.get(tag).or_else(|| self.running.get(tag));
            ret.is_some_and(returns::is_failure)
        });
        let names: IndexSet<String> = failed
            .map(|first| {
                let low = self.graph.low(first);
                format!("{}.{}", text(low, "__sls__"), text(low, "__id__"))
            })
            .collect();
        names.into_iter().collect::<Vec<_>>().join(", ")
    }

    /// Files a return, tells the master, and adds what the state reported of its parts.
    fn file(&mut self, tag: &SmolStr, ret: Dict, low: &Low) {
        let parts = if self.options().keeps_parts { None } else { ret.remove("sub_state_run") };
        self.tell(&ret, low);
        self.running.insert(tag.clone(), ret);
        for part in parts.and_then(|parts| parts.items_of_sequence()).unwrap_or_default() {
            let part = returns::part(&part, low, || self.caller.next_number());
            self.running.extend(part.map(|(tag, ret)| (tag.into(), ret)));
        }
    }

    /// Fires the event of a state that is done, where somebody wants it.
    fn tell(&self, ret: &Dict, low: &Low) {
        let cx = self.cx();
        let (jid, id) = (&cx.job.jid, cx.id());
        let data = entries! { "ret" => ret };
        let tag = match low.get("fire_event").filter(Value::truthy) {
            Some(Value::Str(suffix)) => format!("salt/state_result/{jid}/{id}/{suffix}"),
            Some(_) => format!("salt/state_result/{jid}/{id}/{}", text(ret, "name")),
            None if self.options().events => {
                data.insert("len", self.graph.steps().len());
                format!("salt/job/{jid}/prog/{id}/{}", text(ret, "__run_num__"))
            }
            None => return,
        };
        let event = Event { tag, data: data.into(), pretag: None, local: false };
        if let Err(error) = cx.runtime.fire(cx, event) {
            tracing::warn!("the state's event could not be fired: {error}");
        }
    }

    /// Ends the run if a state failed that must not.
    fn check_failhard(&mut self, tag: &SmolStr, low: &Low) {
        let hard = low.get("failhard").map_or(self.options().failhard, |hard| hard.truthy());
        if self.options().test || !hard {
            return;
        }
        self.join(tag);
        self.failed_hard |= self.running.get(tag).is_some_and(returns::is_failure);
    }

    /// Calls the watch action of a state, which may look at everything done so far.
    fn watch(&self, step: StepId, low: &Low) -> Dict {
        let low = instead(low, "mod_watch");
        let requisites = Dict::new();
        for (kind, first) in self.graph.needs(step) {
            let list = requisites.get_or_insert_with(kind.word(), || List::new().into());
            if let Value::List(list) = list {
                list.push(self.graph.low(first));
            }
        }
        low.insert("__reqs__", requisites);
        let running: Dict = self.running.iter().map(|(tag, ret)| (tag, ret.clone())).collect();
        low.insert("__running__", running);
        self.caller.call(&low, Pass::Apply)
    }

    fn start(&mut self, step: StepId, low: &Low) {
        let tag = self.graph.tag(step);
        if let Err(error) = self.threads.start(&self.caller, step, tag, low) {
            let ret = returns::failed(low, &format!("cannot start a thread: {error}"));
            self.running.insert(tag.clone(), ret);
        }
    }

    /// Waits for a state that runs on a thread, and files its return.
    fn join(&mut self, tag: &SmolStr) {
        let graph = self.graph;
        if let Some((step, ret)) = self.threads.take(tag, |step| graph.low(step)) {
            self.file(tag, ret, graph.low(step));
        }
    }

    /// Runs the watch action of states that listen to a state that changed, after all others.
    fn listen(&mut self) {
        if !listen::is_wanted(self.graph) {
            return;
        }
        let index = listen::Index::new(self.graph);
        let mut errors = IndexMap::new();
        for listening in index.listenings() {
            let nobody = |named: &listen::Named| {
                let (id, state, word) = &listening.said;
                let place = self.caller.places.of_arg(id, state, word);
                returns::listens_to_nothing(named, place, index.near(named))
            };
            let sources = index.named(&listening.source);
            if sources.is_empty() {
                errors.extend([nobody(&listening.source)]);
            }
            let changed = |step: &StepId| {
                self.running.get(self.graph.tag(*step)).is_some_and(returns::has_changes)
            };
            if !sources.iter().any(changed) {
                continue;
            }
            let listeners = index.named(&listening.listener);
            if listeners.is_empty() {
                errors.extend([nobody(&listening.listener)]);
            }
            for &step in listeners {
                self.besides(step, "mod_watch", "listener");
            }
        }
        for (tag, ret) in errors {
            ret.insert("__run_num__", self.caller.next_number());
            self.running.insert(tag.into(), ret);
        }
    }

    /// Has every state that says `beacon` watched from now on, after all others. A state that no
    /// file holds (`state.single`) is not asked.
    fn beacons(&mut self) {
        for &step in self.graph.steps() {
            let low = self.graph.low(step);
            if low.contains("beacon") && is_set(low, "__sls__") {
                self.besides(step, "mod_beacon", "beacon");
            }
        }
    }

    /// Runs another function of a state's module under an id of its own, once.
    fn besides(&mut self, step: StepId, function: &str, prefix: &str) {
        let low = instead(self.graph.low(step), function);
        low.insert("__id__", format!("{prefix}_{}", text(&low, "__id__")));
        for word in REQUISITE_WORDS {
            low.remove(word);
        }
        let tag = SmolStr::from(tag(&low));
        if !self.running.contains_key(&tag) {
            let ret = self.caller.call(&low, Pass::Apply);
            self.file(&tag, ret, &low);
        }
    }
}

/// The chunk that calls another function of a chunk's module for it.
fn instead(low: &Low, function: &str) -> Low {
    let other = low.shallow_copy();
    other.insert("sfun", low.get("fun"));
    other.insert("fun", function);
    other
}

/// `umask:` of a chunk; what YAML took for a number was meant in octal all the same.
pub fn umask(low: &Low) -> Option<u32> {
    u32::from_str_radix(&low.get("umask")?.to_str(), 8).ok()
}

fn is_parallel(low: &Low) -> bool {
    is_set(low, "parallel")
}
