//! The steps of an orchestration: how they are written down, and how a job is found again.
//!
//! An orchestration that runs in a master has a journal there. A step asks for the id of its job
//! before it publishes it; if the journal has one already, an earlier master began the step, and it
//! waits for that job instead of starting another. Where there is no journal (`salt-run` without a
//! master) everything works, and nothing is remembered.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use halite_client::{Job, Outcome, Patience, Request, Silence};
use halite_spec::{Cx, Error, Result};
use halite_value::{Dict, SmolStr, Value, entries};

use crate::master;

/// How long minions may take to come back after the master did.
const RETURN: Duration = Duration::from_secs(30);

/// What the master remembers of this run.
#[derive(Clone)]
pub(crate) struct Journal {
    cx: Cx,
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Journal({})", self.cx.job.jid)
    }
}

impl Journal {
    /// Returns the journal of the run, with the high data of an earlier one; `None` if there is no
    /// journal.
    pub(crate) fn open(cx: &Cx) -> Option<(Self, Option<Dict>)> {
        let journal = Self { cx: cx.clone() };
        if !journal.ask("running", Dict::new()).ok()?.truthy() {
            return None;
        }
        let plan = match journal.ask("plan", Dict::new()).ok()? {
            Value::Dict(high) => Some(high),
            _ => None,
        };
        Some((journal, plan))
    }

    fn ask(&self, what: &str, load: Dict) -> Result<Value> {
        ask(&self.cx, what, load)
    }

    /// Keeps the high data.
    pub(crate) fn set_plan(&self, high: &Dict) -> Result<()> {
        self.ask("set_plan", entries! { "high" => high }).map(drop)
    }
}

fn ask(cx: &Cx, what: &str, load: Dict) -> Result<Value> {
    load.insert("cmd", "halite_orchestration");
    load.insert("do", what);
    load.insert("run", cx.job.jid.as_str());
    cx.runtime.ask_master(cx, load.into())
}

impl halite_spec::Journal for Journal {
    fn known(&self) -> Vec<(String, Dict)> {
        let known = self.ask("known", Dict::new()).unwrap_or_default();
        let pairs = known.items_of_sequence().unwrap_or_default();
        pairs
            .iter()
            .filter_map(|pair| {
                let [tag, Value::Dict(ret)] =
                    <[Value; 2]>::try_from(pair.items_of_sequence()?).ok()?
                else {
                    return None;
                };
                Some((tag.to_string(), ret))
            })
            .collect()
    }

    fn finished(&self, tag: &str, ret: &Dict) {
        let load = entries! { "tag" => tag, "ret" => ret };
        if let Err(error) = self.ask("finished", load) {
            tracing::error!("the step {tag} is not written down: {error}");
        }
    }
}

/// One step under way.
pub(crate) struct Step {
    cx: Cx,
    tag: String,
    parts: usize,
}

impl Step {
    /// The step of the state that runs.
    pub(crate) fn new(cx: &Cx) -> Self {
        let text = |name: &str| cx.low.get(name).map(|value| value.to_string()).unwrap_or_default();
        let tag =
            format!("{}_|-{}_|-{}_|-{}", text("state"), text("__id__"), text("name"), text("fun"));
        Self { cx: cx.clone(), tag, parts: 0 }
    }

    fn key(&self, part: usize) -> String {
        if part == 0 { self.tag.clone() } else { format!("{}#{part}", self.tag) }
    }

    /// Begins a part: the id of its job, and whether an earlier master began it.
    pub(crate) fn begin(&mut self) -> (SmolStr, bool) {
        let begun = self.begin_part();
        (
            begun.get_str("jid").unwrap_or_default(),
            begun.get("resumed").is_some_and(|resumed| resumed.truthy()),
        )
    }

    /// Without a journal nothing is known.
    fn begin_part(&mut self) -> Value {
        let key = self.key(self.parts);
        self.parts += 1;
        ask(&self.cx, "begin", entries! { "tag" => key }).unwrap_or_default()
    }

    /// Its jobs are over; another attempt begins anew.
    pub(crate) fn end(&self) {
        self.end_with(Value::Null);
    }

    /// As [`Step::end`], with a result that is kept nowhere else.
    fn end_with(&self, gave: Value) {
        let tags = Value::list((0..self.parts).map(|part| self.key(part)));
        // Without a journal there is nothing to say.
        let _ = ask(&self.cx, "end", entries! { "tags" => tags, "gave" => gave });
    }

    /// Waits for minions that have not come back yet since the master did: what is published now
    /// would not reach them.
    fn settle(&self, job: &Job) -> Result<()> {
        let load = entries! { "tgt" => &job.tgt, "tgt_type" => job.tgt_type.as_str() };
        let request = Request::Ask { what: "resolve".into(), load };
        loop {
            let found = master::ask(&self.cx, &request)?;
            let uptime = found.get("uptime").and_then(|seconds| seconds.as_float());
            let has = |name: &str| found.get(name).is_some_and(|ids| ids.truthy());
            // A genuine minion is not seen to connect; it takes a moment.
            let limit = match (has("absent"), has("unsure")) {
                (true, _) => RETURN.as_secs_f64(),
                (_, true) => 5.0,
                _ => 0.0,
            };
            if uptime.is_none_or(|uptime| uptime >= limit) {
                return Ok(());
            }
            self.cx.sleep(Duration::from_millis(200))?;
        }
    }

    /// Runs a job, or waits for the one that was begun. Returns its id as well.
    pub(crate) fn run(&mut self, job: &Job, patience: Patience) -> Result<Outcome> {
        let (jid, resumed) = self.begin();
        let job = Job { jid: jid.clone(), ..job.clone() };
        if resumed {
            let stored = master::ask(&self.cx, &Request::Job { jid: jid.clone() })?;
            if !stored.is_null() {
                return attach(&self.cx, &job, &stored, patience);
            }
        }
        self.settle(&job)?;
        master::run(&self.cx, &job, Some(patience))
    }

    /// Gives the job of the present part to more minions.
    pub(crate) fn run_more(&mut self, job: &Job, patience: Patience) -> Result<Outcome> {
        self.settle(job)?;
        master::run(&self.cx, job, Some(patience))
    }

    /// Returns whom the job of the next part went to, if it was begun by an earlier master.
    pub(crate) fn resumed_minions(&self) -> Option<Vec<SmolStr>> {
        let key = self.key(self.parts);
        let peeked = ask(&self.cx, "peek", entries! { "tag" => key }).ok()?;
        let jid = peeked.get_str("jid").filter(|jid| !jid.is_empty())?;
        let stored = master::ask(&self.cx, &Request::Job { jid }).ok()?;
        let minions = stored.get("minions")?.items_of_sequence()?;
        Some(minions.iter().map(Value::to_str).collect())
    }
}

fn returns_of(stored: &Value) -> Vec<(SmolStr, Dict)> {
    let Some(Value::Dict(returns)) = stored.get("returns") else { return Vec::new() };
    returns
        .into_iter()
        .filter_map(|(id, load)| Some((id.to_str(), load.as_dict()?.clone())))
        .collect()
}

/// Waits for a job that an earlier master published.
fn attach(cx: &Cx, job: &Job, stored: &Value, patience: Patience) -> Result<Outcome> {
    let minions: Vec<SmolStr> = stored
        .get("minions")
        .and_then(|ids| ids.items_of_sequence())
        .unwrap_or_default()
        .iter()
        .map(Value::to_str)
        .collect();
    let published = halite_client::Published {
        jid: job.jid.clone(),
        minions: minions.clone(),
        ..halite_client::Published::default()
    };
    let mut outcome = Outcome { published, ..Outcome::default() };
    let until = Instant::now() + RETURN.max(patience.timeout);
    let mut told_again: HashSet<SmolStr> = HashSet::new();
    let mut stored = stored.clone();
    loop {
        outcome.returned = returns_of(&stored);
        let is_open =
            |id: &&SmolStr, stored: &Value| !returns_of(stored).iter().any(|(own, _)| own == *id);
        let open: Vec<SmolStr> =
            minions.iter().filter(|id| is_open(id, &stored)).cloned().collect();
        if open.is_empty() {
            return Ok(outcome);
        }
        let running = running(cx, job, &open, patience)?;
        // What came in while they were asked counts.
        stored = master::ask(cx, &Request::Job { jid: job.jid.clone() })?;
        let silent: Vec<SmolStr> = open
            .iter()
            .filter(|id| is_open(id, &stored) && !running.contains(*id))
            .cloned()
            .collect();
        // Who is there and knows nothing of the job was not told, or its return is on the way. A
        // Halite minion can be told again, since it runs no job twice.
        let connected = connected(cx)?;
        let untold: Vec<SmolStr> = silent
            .iter()
            .filter(|id| connected.contains(*id) && told_again.insert((*id).clone()))
            .cloned()
            .collect();
        if !untold.is_empty() {
            let again = Job {
                tgt: Value::list(&untold),
                tgt_type: "list".into(),
                follow: false,
                ..job.clone()
            };
            master::connect(cx)?.publish(&again).map_err(master::failed)?;
        }
        if running.is_empty() && !silent.is_empty() && Instant::now() >= until {
            outcome.returned = returns_of(&stored);
            outcome.missing = silent.into_iter().map(|id| (id, Silence::NoResponse)).collect();
            return Ok(outcome);
        }
        cx.sleep(Duration::from_millis(300))?;
        stored = master::ask(cx, &Request::Job { jid: job.jid.clone() })?;
    }
}

/// Asks who is still at a job.
fn running(cx: &Cx, job: &Job, ids: &[SmolStr], patience: Patience) -> Result<HashSet<SmolStr>> {
    let question = Job {
        arg: vec![Value::from(&job.jid)],
        ..Job::new(Value::list(ids), "list", "saltutil.find_job")
    };
    let answered = master::run(cx, &question, Some(patience))?;
    Ok(answered
        .returned
        .into_iter()
        .filter(|(_, load)| load.get("return").is_some_and(|ret| ret.truthy()))
        .map(|(id, _)| id)
        .collect())
}

fn connected(cx: &Cx) -> Result<HashSet<SmolStr>> {
    let minions = master::ask(cx, &Request::Minions)?;
    let ids = minions.get("connected").and_then(|ids| ids.items_of_sequence()).unwrap_or_default();
    Ok(ids.iter().map(Value::to_str).collect())
}

/// Runs a runner or wheel function in the master, under the id the journal gives; one that was
/// under way when an earlier master ended is waited for if it goes on, and has failed otherwise.
pub(crate) fn call_master(
    cx: &Cx,
    step: &mut Step,
    wheel: bool,
    fun: &str,
    arg: Vec<Value>,
    kwarg: Dict,
) -> Result<Dict> {
    let begun = step.begin_part();
    let jid = begun.get_str("jid").unwrap_or_default();
    if begun.get("resumed").is_some_and(|resumed| resumed.truthy()) {
        let found = match begun.get("gave") {
            Some(Value::Dict(gave)) => Some(gave),
            _ => earlier(cx, &jid, fun)?,
        };
        if let Some(data) = found {
            step.end_with((&data).into());
            return Ok(data);
        }
    }
    let fun = SmolStr::new(fun);
    let request = if wheel {
        Request::Wheel { fun, arg, kwarg }
    } else {
        Request::Orchestrate { jid, fun, arg, kwarg }
    };
    match master::ask(cx, &request)? {
        Value::Dict(data) => {
            step.end_with((&data).into());
            Ok(data)
        }
        other => Err(Error::failed(format!("the master answered {other}"))),
    }
}

/// What became of a call an earlier master began; `None` if it certainly did not begin.
fn earlier(cx: &Cx, jid: &SmolStr, fun: &str) -> Result<Option<Dict>> {
    loop {
        let stored = master::ask(cx, &Request::Job { jid: jid.clone() })?;
        // What is kept of a runner is its last event.
        let kept = returns_of(&stored).into_iter().next();
        if let Some(Value::Dict(event)) = kept.and_then(|(_, load)| load.get("return")) {
            return Ok(Some(event));
        }
        let load = entries! { "do" => "running", "run" => jid.as_str() };
        let request = Request::Ask { what: "orchestration".into(), load };
        if !master::ask(cx, &request)?.truthy() {
            // An orchestration is written down before anything of it runs.
            if fun.starts_with("state.orch") || fun == "state.sls" {
                return Ok(None);
            }
            // Nobody can tell how far it came; to begin again might do it twice.
            return Ok(Some(entries! {
                "jid" => jid.as_str(), "success" => false,
                "return" => "interrupted by a restart of the master, and not repeated",
            }));
        }
        cx.sleep(Duration::from_millis(500))?;
    }
}
