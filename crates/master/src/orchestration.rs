//! What a master remembers of its orchestrations, so that they survive it.
//!
//! Before an orchestration begins, its call is on disk; then the high data it was compiled to, so
//! that a resumed run has the same steps whatever became of the files; then, for each step, the id
//! of the job it is about to start, and at last the step's return. A master that comes up finds
//! the runs that have not ended and runs them again: finished steps are not run, a step whose job
//! was started waits for that job.
//!
//! The steps themselves are states (`crates/runners`), which ask by [`Master::orchestration`].

use std::sync::{Arc, Weak};

use halite_store::{Op, Store};
use halite_value::{Dict, SmolStr, Value, dict, entries};
use halite_wire::Jid;

use crate::{
    Error, Master, blocking,
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
}

impl Journal {
    pub fn new(store: Arc<dyn Store>, run: impl Into<SmolStr>) -> Self {
        Self { store, run: run.into() }
    }

    fn put(&self, bank: &'static str, key: String, value: Dict) -> Result<(), Error> {
        self.store.write(vec![Op::Put { bank, key, value: value.into() }]).wait()?;
        Ok(())
    }

    /// Writes the call down, if it is not there already.
    pub fn open(&self, call: &Call) -> Result<(), Error> {
        if self.store.get(RUNS, &self.run)?.is_some() {
            return Ok(());
        }
        let record = entries! {
            "fun" => &call.function, "arg" => call.args.clone(), "kwarg" => &call.kwargs,
            "user" => &call.user,
        };
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

    /// A step begins: returns the id of its job, and whether that was begun by an earlier run.
    pub fn begin(
        &self,
        tag: &str,
        fresh: impl FnOnce() -> SmolStr,
    ) -> Result<(SmolStr, bool), Error> {
        let key = step_key(&self.run, tag);
        if let Some(record) = self.store.get(STEPS, &key)?
            && let Some(jid) = record.get_str("jid").filter(|jid| !jid.is_empty())
        {
            return Ok((jid, true));
        }
        let jid = fresh();
        self.put(STEPS, key, entries! { "jid" => &jid })?;
        Ok((jid, false))
    }

    /// An attempt at a step has ended; there may be another.
    pub fn end(&self, tag: &str) -> Result<(), Error> {
        self.put(STEPS, step_key(&self.run, tag), entries! { "jid" => "" })
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
    /// Writes an orchestration down.
    pub(crate) async fn open_orchestration(self: &Arc<Self>, call: &Call) -> Open {
        let (owner, call) = (self.clone(), call.clone());
        let jid = call.jid.clone();
        let opened =
            blocking(move || Journal::new(owner.store.clone(), call.jid.as_str()).open(&call));
        if let Err(error) = opened.await.and_then(|opened| opened) {
            tracing::error!("The orchestration {jid} will not survive a crash: {error}");
        }
        Open { master: Arc::downgrade(self), jid }
    }

    /// Answers a step or the run itself: `{do, run, tag, …}`. Blocking.
    pub fn orchestration(&self, load: &Dict) -> Result<Value, Error> {
        let text = |name: &str| load.get(name).map(|value| value.to_str()).unwrap_or_default();
        let journal = Journal::new(self.store.clone(), text("run"));
        let tag = text("tag");
        // What breaks because the master ends is no result of a step.
        if self.is_stopping() {
            return Err(Error::Other("the master is going down".into()));
        }
        Ok(match text("do").as_str() {
            "plan" => journal.plan()?.unwrap_or_default(),
            "set_plan" => journal.set_plan(&load.get("high").unwrap_or_default())?.into(),
            "known" => Value::list(
                journal.known()?.into_iter().map(|(tag, ret)| Value::list([tag.into(), ret])),
            ),
            "begin" => {
                let (jid, resumed) =
                    journal.begin(&tag, || self.jobs.next_jid().as_str().into())?;
                dict! { "jid" => jid, "resumed" => resumed }
            }
            "peek" => {
                let key = step_key(&text("run"), &tag);
                self.store.get(STEPS, &key)?.unwrap_or_default()
            }
            "end" => journal.end(&tag).map(|()| true)?.into(),
            "finished" => {
                journal.finished(&tag, &load.get("ret").unwrap_or_default()).map(|()| true)?.into()
            }
            "running" => self.store.get(RUNS, &text("run"))?.is_some().into(),
            other => return Err(Error::Other(format!("orchestration: `{other}` is unknown"))),
        })
    }
}

/// Runs what an earlier master did not finish.
pub(crate) async fn resume(master: Arc<Master>) {
    let owner = master.clone();
    let open = match blocking(move || owner.store.all(RUNS)).await {
        Ok(Ok(open)) => open,
        Ok(Err(error)) => return tracing::error!("Orchestrations cannot be resumed: {error}"),
        Err(error) => return tracing::error!("Orchestrations cannot be resumed: {error}"),
    };
    for (jid, record) in open {
        let Ok(jid) = Jid::new(&jid) else { continue };
        let dict_of = |name: &str| match record.get(name) {
            Some(Value::Dict(found)) => found,
            _ => Dict::new(),
        };
        let call = Call {
            function: record.get_str("fun").unwrap_or_default(),
            args: record.get("arg").and_then(|args| args.items_of_sequence()).unwrap_or_default(),
            kwargs: dict_of("kwarg"),
            user: record.get_str("user").unwrap_or_default(),
            jid: jid.clone(),
        };
        tracing::info!("Resuming the orchestration {jid} ({})", call.function);
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
            let (jid, _) = journal
                .begin(step, || {
                    *next += 1;
                    format!("{next:020}").into()
                })
                .unwrap();
            boundary()?;
            fleet.send(step, &jid);
            boundary()?;
            // The answer is with the machines until somebody asks for it.
            assert!(fleet.jobs.contains(&jid));
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
        let boundaries = 3 * 5;
        for first in 0..=boundaries {
            for second in 0..=boundaries {
                let folder = tempfile::tempdir().unwrap();
                let (mut fleet, mut next) = (Fleet::default(), 0);
                let mut over = false;
                for lives in [first, second, i64::MAX] {
                    // A new store on the same file, as a new master has it.
                    let store = Embedded::open(folder.path(), Options::default()).unwrap();
                    let journal = Journal::new(Arc::new(store), "20300101000000000000");
                    over = run(&journal, &mut fleet, &mut next, lives).is_some();
                    if over {
                        break;
                    }
                }
                assert!(over);
                assert_eq!(fleet.order, ["one", "two", "three"], "died at {first} and {second}");
            }
        }
    }

    #[test]
    fn another_attempt_is_another_job() {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(Embedded::open(folder.path(), Options::default()).unwrap());
        let journal = Journal::new(store.clone(), "r");
        assert_eq!(journal.begin("a", || "1".into()).unwrap(), ("1".into(), false));
        assert_eq!(journal.begin("a", || "2".into()).unwrap(), ("1".into(), true));
        journal.end("a").unwrap();
        assert_eq!(journal.begin("a", || "2".into()).unwrap(), ("2".into(), false));
        journal.finished("a", &dict! { "result" => true }).unwrap();
        assert_eq!(journal.known().unwrap().len(), 1);
        assert!(Journal::new(store.clone(), "other").known().unwrap().is_empty());
        journal.close().unwrap();
        store.write(Vec::new()).wait().unwrap();
        assert!(journal.known().unwrap().is_empty());
    }
}
