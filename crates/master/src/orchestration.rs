//! What a master remembers of its orchestrations, so that they survive it.
//!
//! Before an orchestration begins, its call is on disk; then the high data it was compiled to, so
//! that a resumed run has the same steps whatever became of the files; then, for each step, the id
//! of the job it is about to start, that the job is over, and at last the step's return. A master that
//! comes up finds the runs that have not ended and runs them again: finished steps are not run, a step
//! whose job was started takes that job's result, also when it was over already. Only in the life in
//! which a job ended does the step's next attempt (`retry`) begin another.
//!
//! The steps themselves are states (`crates/runners`), which ask by [`Master::orchestration`].

use std::sync::{Arc, Weak};

use halite_store::{Op, Store};
use halite_value::{Dict, SmolStr, Value, dict, entries};
use halite_wire::Jid;

use crate::{
    Error, Master, blocking,
    returns::step,
    runners::{self, Call},
};

/// The bank of runs, by job id.
pub const RUNS: &str = "orchestrations";
/// The bank of steps: `<job id> <tag>`.
pub const STEPS: &str = "orchestration_steps";

/// Tells whether a runner function is an orchestration.
pub(crate) fn is_one(function: &str) -> bool {
    matches!(
        function,
        "state.orchestrate"
            | "state.orch"
            | "state.sls"
            | "state.orchestrate_single"
            | "state.single"
            | "state.orchestrate_high"
            | "state.high"
    )
}

/// A run under way. Dropping it ends the record, unless the master is being stopped.
pub(crate) struct Open {
    master: Weak<Master>,
    jid: Jid,
}

impl Drop for Open {
    fn drop(&mut self) {
        let Some(master) = self.master.upgrade() else { return };
        if master.is_stopping() {
            return;
        }
        if let Err(error) = close(&*master.store, &self.jid) {
            tracing::error!("The record of the orchestration {} stays: {error}", self.jid);
        }
    }
}

fn step_key(run: &str, tag: &str) -> String {
    format!("{run} {tag}")
}

fn close(store: &dyn Store, jid: &str) -> Result<(), Error> {
    let prefix = format!("{jid} ");
    let steps = store.all(STEPS)?.into_iter().filter(|(key, _)| key.starts_with(&prefix));
    let mut ops = vec![Op::Delete { bank: RUNS, key: jid.to_owned() }];
    ops.extend(steps.map(|(key, _)| Op::Delete { bank: STEPS, key }));
    // The order of writes is kept, so nobody has to wait.
    drop(store.write(ops));
    Ok(())
}

/// The journal of one run, over any store.
#[derive(Clone)]
pub struct Journal {
    store: Arc<dyn Store>,
    run: SmolStr,
    /// Of the master that writes.
    life: SmolStr,
}

/// What a step that begins is told.
#[derive(Clone, Debug, PartialEq)]
pub struct Begun {
    /// The id of its job.
    pub jid: SmolStr,
    /// An earlier master began that job.
    pub resumed: bool,
    /// What it gave, if that was written down.
    pub gave: Value,
}

impl Journal {
    pub fn new(store: Arc<dyn Store>, run: impl Into<SmolStr>, life: impl Into<SmolStr>) -> Self {
        Self { store, run: run.into(), life: life.into() }
    }

    fn put(&self, bank: &'static str, key: String, value: Dict) -> Result<(), Error> {
        self.store.write(vec![Op::Put { bank, key, value: value.into() }]).wait()?;
        Ok(())
    }

    /// Writes the call down, if it is not there already, with what whoever resumes it has to know.
    pub fn open(&self, call: &Call, about: &Dict) -> Result<(), Error> {
        if self.store.get(RUNS, &self.run)?.is_some() {
            return Ok(());
        }
        let record = entries! {
            "fun" => &call.function, "arg" => call.args.clone(), "kwarg" => &call.kwargs,
            "user" => &call.user,
        };
        record.update(about);
        self.put(RUNS, self.run.to_string(), record)
    }

    /// Returns the high data of the run, if it has been compiled.
    pub fn plan(&self) -> Result<Option<Value>, Error> {
        let record = self.store.get(RUNS, &self.run)?;
        Ok(record.and_then(|record| record.get("high")).filter(|high| !high.is_null()))
    }

    /// Keeps the high data. False: this run is not written down.
    pub fn set_plan(&self, high: &Value) -> Result<bool, Error> {
        let Some(Value::Dict(record)) = self.store.get(RUNS, &self.run)? else { return Ok(false) };
        record.insert("high", high);
        self.put(RUNS, self.run.to_string(), record)?;
        Ok(true)
    }

    /// Returns the steps that are done.
    pub fn known(&self) -> Result<Vec<(String, Value)>, Error> {
        let prefix = format!("{} ", self.run);
        let mut done: Vec<(i64, String, Value)> = self
            .store
            .all(STEPS)?
            .into_iter()
            .filter_map(|(key, record)| {
                let tag = key.strip_prefix(&prefix)?.to_owned();
                let ret = record.get("ret")?;
                let number = ret.get("__run_num__").and_then(|n| n.as_int()).unwrap_or(0);
                Some((number, tag, ret))
            })
            .collect();
        done.sort_by_key(|(number, ..)| *number);
        Ok(done.into_iter().map(|(_, tag, ret)| (tag, ret)).collect())
    }

    /// Returns the record of a job that is the step's own: begun by another master, or not over.
    fn open_job(&self, key: &str) -> Result<Option<Value>, Error> {
        let record = self.store.get(STEPS, key)?;
        Ok(record.filter(|record| {
            record.get_str("jid").is_some_and(|jid| !jid.is_empty())
                && record.get_str("over").is_none_or(|life| life != self.life)
        }))
    }

    /// Returns the id of the job that a step would go on with.
    pub fn peek(&self, tag: &str) -> Result<Option<SmolStr>, Error> {
        Ok(self.open_job(&step_key(&self.run, tag))?.and_then(|record| record.get_str("jid")))
    }

    /// A step begins, or a further part of it (`<tag>#<part>`).
    pub fn begin(&self, tag: &str, fresh: impl FnOnce() -> SmolStr) -> Result<Begun, Error> {
        let key = step_key(&self.run, tag);
        if let Some(record) = self.open_job(&key)? {
            let jid = record.get_str("jid").unwrap_or_default();
            return Ok(Begun { jid, resumed: true, gave: record.get("gave").unwrap_or_default() });
        }
        let jid = fresh();
        let parts = format!("{key}#");
        let is_part = |(key, _): &(String, Value)| key.starts_with(&parts);
        // The parts of an earlier attempt are none of this one.
        let mut ops: Vec<Op> = match self.store.get(STEPS, &key)? {
            None => Vec::new(),
            Some(_) => self
                .store
                .all(STEPS)?
                .into_iter()
                .filter(is_part)
                .map(|(key, _)| Op::Delete { bank: STEPS, key })
                .collect(),
        };
        ops.push(Op::Put { bank: STEPS, key, value: dict! { "jid" => &jid } });
        self.store.write(ops).wait()?;
        Ok(Begun { jid, resumed: false, gave: Value::Null })
    }

    /// The jobs of an attempt at a step are over; there may be another attempt.
    pub fn end(&self, tags: &[SmolStr], gave: &Value) -> Result<(), Error> {
        let mut ops = Vec::new();
        for tag in tags {
            let key = step_key(&self.run, tag);
            let Some(Value::Dict(record)) = self.store.get(STEPS, &key)? else { continue };
            record.insert("over", &self.life);
            record.insert("gave", gave);
            ops.push(Op::Put { bank: STEPS, key, value: record.into() });
        }
        self.store.write(ops).wait()?;
        Ok(())
    }

    /// A step is done.
    pub fn finished(&self, tag: &str, ret: &Value) -> Result<(), Error> {
        self.put(STEPS, step_key(&self.run, tag), entries! { "jid" => "", "ret" => ret })
    }

    /// The run is over.
    pub fn close(&self) -> Result<(), Error> {
        close(&*self.store, &self.run)
    }
}

impl Master {
    /// Writes an orchestration down; `None` for any other function.
    pub(crate) async fn open_orchestration(
        self: &Arc<Self>,
        call: &Call,
        about: Dict,
    ) -> Option<Open> {
        if !is_one(&call.function) {
            return None;
        }
        let (owner, call) = (self.clone(), call.clone());
        let jid = call.jid.clone();
        let opened = blocking(move || owner.journal(call.jid.as_str()).open(&call, &about));
        if let Err(error) = opened.await.and_then(|opened| opened) {
            tracing::error!("The orchestration {jid} will not survive a crash: {error}");
        }
        Some(Open { master: Arc::downgrade(self), jid })
    }

    fn journal(&self, run: &str) -> Journal {
        Journal::new(self.store.clone(), run, self.life.clone())
    }

    /// Answers a step or the run itself: `{do, run, tag, …}`. Blocking.
    pub fn orchestration(&self, load: &Dict) -> Result<Value, Error> {
        let text = |name: &str| load.get(name).map(|value| value.to_str()).unwrap_or_default();
        let journal = self.journal(&text("run"));
        let (what, tag) = (text("do"), text("tag"));
        // What breaks because the master ends is no result of a step.
        if self.is_stopping() {
            return Err(Error::Other("the master is going down".into()));
        }
        let answer = match what.as_str() {
            "plan" => journal.plan()?.unwrap_or_default(),
            "set_plan" => journal.set_plan(&load.get("high").unwrap_or_default())?.into(),
            "known" => Value::list(
                journal.known()?.into_iter().map(|(tag, ret)| Value::list([tag.into(), ret])),
            ),
            "begin" => {
                let begun = journal.begin(&tag, || self.jobs.next_jid().as_str().into())?;
                dict! { "jid" => begun.jid, "resumed" => begun.resumed, "gave" => begun.gave }
            }
            "peek" => dict! { "jid" => journal.peek(&tag)? },
            "end" => {
                let tags = load.get("tags").and_then(|tags| tags.items_of_sequence());
                let tags: Vec<SmolStr> =
                    tags.unwrap_or_default().iter().map(Value::to_str).collect();
                journal.end(&tags, &load.get("gave").unwrap_or_default())?;
                true.into()
            }
            "finished" => {
                journal.finished(&tag, &load.get("ret").unwrap_or_default()).map(|()| true)?.into()
            }
            "running" => self.store.get(RUNS, &text("run"))?.is_some().into(),
            other => return Err(Error::Other(format!("orchestration: `{other}` is unknown"))),
        };
        step(self, &format!("orchestration-{what}"));
        Ok(answer)
    }
}

/// Returns the calls an earlier master did not finish, each with its record.
pub(crate) async fn unfinished(master: &Arc<Master>) -> Vec<(Call, Value)> {
    let owner = master.clone();
    let open = blocking(move || Ok::<_, Error>(owner.store.all(RUNS)?)).await;
    let open = match open.and_then(|open| open) {
        Ok(open) => open,
        Err(error) => {
            tracing::error!("Orchestrations cannot be resumed: {error}");
            return Vec::new();
        }
    };
    let call = |(jid, record): (String, Value)| {
        let jid = Jid::new(&jid).ok()?;
        let kwargs = match record.get("kwarg") {
            Some(Value::Dict(found)) => found,
            _ => Dict::new(),
        };
        let call = Call {
            function: record.get_str("fun").unwrap_or_default(),
            args: record.get("arg").and_then(|args| args.items_of_sequence()).unwrap_or_default(),
            kwargs,
            user: record.get_str("user").unwrap_or_default(),
            jid,
        };
        Some((call, record))
    };
    open.into_iter().filter_map(call).collect()
}

/// Runs what an earlier master did not finish, but for what its schedule began.
pub(crate) async fn resume(master: Arc<Master>) {
    for (call, record) in unfinished(&master).await {
        if record.get("schedule").is_some() {
            continue;
        }
        tracing::info!("Resuming the orchestration {} ({})", call.jid, call.function);
        let owner = master.clone();
        tokio::spawn(async move { runners::run(&owner, call).await });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use halite_store::{Embedded, Options};

    use super::*;

    /// The machines: a job runs on them once, however often it is sent.
    #[derive(Default)]
    struct Fleet {
        jobs: Vec<SmolStr>,
        ran: HashMap<&'static str, usize>,
        order: Vec<&'static str>,
    }

    impl Fleet {
        fn send(&mut self, step: &'static str, jid: &SmolStr) {
            if !self.jobs.contains(jid) {
                self.jobs.push(jid.clone());
                *self.ran.entry(step).or_default() += 1;
                self.order.push(step);
            }
        }
    }

    /// Runs the steps that are not done; the master dies at the given boundary.
    fn run(journal: &Journal, fleet: &mut Fleet, next: &mut u64, mut lives: i64) -> Option<()> {
        let mut boundary = || {
            lives -= 1;
            (lives >= 0).then_some(())
        };
        let done = journal.known().unwrap();
        for step in ["one", "two", "three"] {
            if done.iter().any(|(tag, _)| tag == step) {
                continue;
            }
            boundary()?;
            let fresh = || {
                *next += 1;
                format!("{next:020}").into()
            };
            let jid = journal.begin(step, fresh).unwrap().jid;
            boundary()?;
            fleet.send(step, &jid);
            boundary()?;
            // The answer is with the machines until somebody asks for it.
            assert!(fleet.jobs.contains(&jid));
            boundary()?;
            journal.end(&[step.into()], &Value::Null).unwrap();
            boundary()?;
            journal
                .finished(step, &dict! { "result" => true, "__run_num__" => done.len() })
                .unwrap();
            boundary()?;
        }
        Some(())
    }

    #[test]
    fn no_step_is_repeated_or_skipped_whenever_the_master_dies() {
        let boundaries = 3 * 6;
        for first in 0..=boundaries {
            // Once at every boundary, and a second time a few further on.
            let second = (first * 5 + 2) % (boundaries + 1);
            let folder = tempfile::tempdir().unwrap();
            let (mut fleet, mut next) = (Fleet::default(), 0);
            let mut over = false;
            for (life, lives) in ["a", "b", "c"].into_iter().zip([first, second, i64::MAX]) {
                // A new store on the same file, as a new master has it.
                let store = Embedded::open(folder.path(), Options::default()).unwrap();
                let journal = Journal::new(Arc::new(store), "20300101000000000000", life);
                over = run(&journal, &mut fleet, &mut next, lives).is_some();
                if over {
                    break;
                }
            }
            assert!(over);
            assert_eq!(fleet.order, ["one", "two", "three"], "died at {first} and {second}");
            assert!(fleet.ran.values().all(|times| *times == 1));
        }
    }

    #[test]
    fn another_attempt_is_another_job() {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(Embedded::open(folder.path(), Options::default()).unwrap());
        let journal = Journal::new(store.clone(), "r", "first life");
        let begin = |journal: &Journal, jid: &str| journal.begin("a", || jid.into()).unwrap();
        let fresh = |jid: &str| Begun { jid: jid.into(), resumed: false, gave: Value::Null };
        assert_eq!(begin(&journal, "1"), fresh("1"));
        assert_eq!(begin(&journal, "2"), Begun { resumed: true, ..fresh("1") });
        journal.end(&["a".into()], &"well".into()).unwrap();
        assert_eq!(begin(&journal, "2"), fresh("2"));
        journal.begin("a#1", || "2.1".into()).unwrap();
        journal.end(&["a".into(), "a#1".into()], &"well".into()).unwrap();
        assert_eq!(journal.peek("a").unwrap(), None);
        // Another master does not know that the step was not told so.
        let later = Journal::new(store.clone(), "r", "second life");
        assert_eq!(begin(&later, "3"), Begun { resumed: true, gave: "well".into(), ..fresh("2") });
        assert_eq!(later.peek("a#1").unwrap(), Some("2.1".into()));
        later.end(&["a".into()], &Value::Null).unwrap();
        assert_eq!(begin(&later, "3"), fresh("3"));
        assert_eq!(later.peek("a#1").unwrap(), None, "a part of an attempt before");
        journal.finished("a", &dict! { "result" => true }).unwrap();
        assert_eq!(journal.known().unwrap().len(), 1);
        assert!(Journal::new(store.clone(), "other", "x").known().unwrap().is_empty());
        journal.close().unwrap();
        store.write(Vec::new()).wait().unwrap();
        assert!(journal.known().unwrap().is_empty());
    }
}
