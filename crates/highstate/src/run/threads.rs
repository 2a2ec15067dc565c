//! States with `parallel: True`, each on a thread of its own.

use std::{
    collections::HashMap,
    sync::Arc,
    thread::{Builder, JoinHandle, sleep},
    time::Duration,
};

use halite_spec::Keys;
use halite_value::{Dict, SmolStr};

use super::{returns, step::Caller};
use crate::{
    Low,
    graph::{Pass, StepId},
    low::text,
};

/// How long to wait before looking again whether a thread has ended.
pub(super) const MOMENT: Duration = Duration::from_millis(2);

/// States that run, or have run and were not asked for their returns yet.
#[derive(Default)]
pub(super) struct Threads {
    by_tag: HashMap<SmolStr, (StepId, JoinHandle<Dict>)>,
    /// Tags in the order of their start; those taken stay.
    started: Vec<SmolStr>,
}

impl Threads {
    /// Starts a state, as soon as there are fewer than `max` others.
    pub(super) fn start(
        &mut self,
        caller: &Arc<Caller>,
        step: StepId,
        tag: &SmolStr,
        low: &Low,
    ) -> std::io::Result<()> {
        if let Some(max) = caller.options.max_parallel {
            while self.busy() >= max.max(1) {
                sleep(MOMENT);
            }
        }
        let (caller, low, own) = (Arc::clone(caller), low.clone(), tag.clone());
        let name = format!("state {}", text(&low, "__id__"));
        // In the order of the start, whoever ends first.
        let number = caller.next_number();
        let thread = Builder::new().name(name).spawn(move || {
            let ret = caller.call_as(&low, Pass::Apply, Some(number));
            let ret = Keys::PARALLEL.arranged(&ret);
            ret.insert("__parallel__", true);
            caller.options.note(&own, &ret);
            ret
        })?;
        self.by_tag.insert(tag.clone(), (step, thread));
        self.started.push(tag.clone());
        Ok(())
    }

    fn busy(&self) -> usize {
        self.by_tag.values().filter(|(_, thread)| !thread.is_finished()).count()
    }

    pub(super) fn has(&self, tag: &str) -> bool {
        self.by_tag.contains_key(tag)
    }

    pub(super) fn is_busy(&self, tag: &str) -> bool {
        self.by_tag.get(tag).is_some_and(|(_, thread)| !thread.is_finished())
    }

    /// Waits for a state and hands out its step and its return, once. `low` knows the chunk.
    pub(super) fn take<'l>(
        &mut self,
        tag: &str,
        low: impl Fn(StepId) -> &'l Low,
    ) -> Option<(StepId, Dict)> {
        const PANICKED: &str = "The state failed with an internal error (a panic); this is a bug";
        let (step, thread) = self.by_tag.remove(tag)?;
        Some((step, thread.join().unwrap_or_else(|_| returns::failed(low(step), PANICKED))))
    }

    /// Returns the tags of all that were ever started.
    pub(super) fn started(&self) -> Vec<SmolStr> {
        self.started.clone()
    }
}
