//! The states of orchestrations, `salt.*`: jobs on minions and functions of the master as steps.
//!
//! A step on minions succeeds only if every minion it was meant for returned, and well, or its
//! author said otherwise: `allow_fail` and `fail_minions` (a number, a percentage or names) permit
//! failures, `expect_minions: False` permits silence and a target that means nobody.
//!
//! A minion has these states, too. Without a master, `salt.state` applies its states right here,
//! whoever is meant; the others need a master on the same machine.

// gen:pub

use std::time::{Duration, Instant};

use halite_client::Request;
use halite_spec::{
    Applied, Args, Call, Cx, Error, Event, Keys, Outcome, Plan, Rest, Result, State, states,
};
use halite_target::fnmatch::fnmatch;
use halite_value::{Dict, SmolStr, Value, entries};

use crate::{
    master,
    steps::{Step, call_master},
    work::{Allowed, Gathered, Work},
};

states! {
    /// Jobs on minions and functions of the master, as steps of an orchestration.
    "salt": "state" => StateStep,
    "function" => FunctionStep,
    "runner" => RunnerStep,
    "wheel" => WheelStep,
    "parallel_runners" => ParallelRunners,
    "wait_for_event" => WaitForEvent,
}

/// Apply states on minions.
#[derive(Args)]
pub struct StateStep {
    /// A name for the step.
    name: String,
    /// Who is meant.
    tgt: Value,
    /// Go through salt-ssh.
    #[default(false)]
    ssh: bool,
    /// How the target is read.
    #[default("glob".to_owned())]
    tgt_type: String,
    /// Returners.
    ret: Option<Value>,
    /// Their configuration.
    ret_config: Option<Value>,
    /// Their arguments.
    ret_kwargs: Option<Value>,
    /// Apply the highstate.
    highstate: Option<Value>,
    /// SLS files to apply.
    sls: Option<Value>,
    /// A top file to apply.
    top: Option<Value>,
    /// The environment of the files.
    saltenv: Option<Value>,
    /// Only tell what would change.
    test: Option<bool>,
    /// Pillar for this run.
    pillar: Option<Value>,
    /// The environment of the pillar.
    pillarenv: Option<String>,
    /// Minions that do not return count as failed.
    expect_minions: Option<bool>,
    /// SLS files or ids to leave out.
    exclude: Option<Value>,
    /// Minions that may fail: names, a number or a percentage.
    fail_minions: Option<Value>,
    /// How many minions may fail.
    #[default(Value::Int(0))]
    allow_fail: Value,
    /// Run beside other state runs.
    #[default(Value::Bool(false))]
    concurrent: Value,
    /// Seconds to wait.
    timeout: Option<f64>,
    /// This many minions, or this part of them, at a time.
    batch: Option<Value>,
    /// Wait for other state runs.
    #[default(Value::Bool(false))]
    queue: Value,
    /// As many minions as this, chosen at random.
    subset: Option<i64>,
    /// The orchestration this belongs to.
    orchestration_jid: Option<Value>,
    /// Stop the whole run when this fails.
    failhard: Option<Value>,
    /// Further arguments of the state function.
    rest: Rest,
}

/// Run an execution function on minions.
#[derive(Args)]
pub struct FunctionStep {
    /// The function.
    name: String,
    /// Who is meant.
    tgt: Value,
    /// Go through salt-ssh.
    #[default(false)]
    ssh: bool,
    /// How the target is read.
    #[default("glob".to_owned())]
    tgt_type: String,
    /// Returners.
    ret: Option<Value>,
    /// Their configuration.
    ret_config: Option<Value>,
    /// Their arguments.
    ret_kwargs: Option<Value>,
    /// Minions that do not return count as failed.
    expect_minions: Option<bool>,
    /// Minions that may fail: names, a number or a percentage.
    fail_minions: Option<Value>,
    /// An execution function of the master that tells by a return whether it is good.
    fail_function: Option<String>,
    /// Arguments.
    arg: Option<Value>,
    /// Arguments by name.
    kwarg: Option<Dict>,
    /// Seconds to wait.
    timeout: Option<f64>,
    /// This many minions, or this part of them, at a time.
    batch: Option<Value>,
    /// As many minions as this, chosen at random.
    subset: Option<i64>,
    /// Stop the whole run when this fails.
    failhard: Option<Value>,
    /// Further options.
    rest: Rest,
}

/// Run a runner function.
#[derive(Args)]
pub struct RunnerStep {
    /// The function.
    name: String,
    /// Its arguments: `arg` and `kwarg`, or by name.
    rest: Rest,
}

/// Run a wheel function.
#[derive(Args)]
pub struct WheelStep {
    /// The function.
    name: String,
    /// Its arguments: `arg` and `kwarg`, or by name.
    rest: Rest,
}

/// Run several runner functions at once.
#[derive(Args)]
pub struct ParallelRunners {
    /// A name for the step.
    name: String,
    /// Name → runner function with its arguments.
    runners: Value,
    /// Further options.
    rest: Rest,
}

/// Wait for events, one for each id of a list.
#[derive(Args)]
pub struct WaitForEvent {
    /// A glob for tags.
    name: String,
    /// The ids to wait for.
    id_list: Vec<Value>,
    /// Where the id stands in the event's data.
    #[default("id".to_owned())]
    event_id: String,
    /// Seconds to wait.
    #[default(300.0)]
    timeout: f64,
    /// Whose bus.
    #[default("master".to_owned())]
    node: String,
}

fn joined(ids: &[SmolStr]) -> String {
    ids.join(", ")
}

/// What a minion's state run says.
enum Ran {
    Well {
        changed: bool,
    },
    Badly,
    /// It is no state run at all.
    No,
}

fn ran(load: &Dict) -> Ran {
    let code = load.get("retcode").and_then(|code| code.as_int()).unwrap_or(0);
    match load.get("return") {
        Some(Value::Dict(states))
            if states.values().iter().all(|state| state.as_dict().is_some()) =>
        {
            let failed =
                states.values().iter().any(|ret| ret.get("result") == Some(Value::Bool(false)));
            let changed = states
                .values()
                .iter()
                .any(|ret| ret.get("changes").is_some_and(|changes| changes.truthy()));
            // A failure that an `onfail` dealt with leaves the code at 0.
            if code != 0 || (failed && !load.contains("retcode")) || states.is_empty() {
                Ran::Badly
            } else {
                Ran::Well { changed }
            }
        }
        _ => Ran::No,
    }
}

/// Tells whether this is a minion that runs without a master.
fn is_masterless(cx: &Cx) -> bool {
    cx.opt_str("__role").as_deref() == Some("minion")
        && cx.opt_str("file_client").as_deref() == Some("local")
}

/// Says what a minion returned in place of a state run, unless the return says it all.
fn no_run(id: &str, ret: &Value) -> Option<String> {
    Some(match ret {
        Value::Dict(_) => return None,
        Value::List(_) | Value::Tuple(_) => {
            let items = ret.items_of_sequence().unwrap_or_default();
            let errors: Vec<String> =
                items.iter().filter(|item| item.truthy()).map(Value::to_string).collect();
            match errors.is_empty() {
                true => format!("Minion {id} returned an empty error list."),
                false => format!("Minion {id} returned errors: {}", errors.join("; ")),
            }
        }
        other => format!("Minion {id} returned {} instead of a state result.", other.repr()),
    })
}

impl StateStep {
    fn work(&self, test: bool) -> Result<Option<Work<'_>>> {
        let given = |value: &Option<Value>| value.clone().filter(Value::truthy);
        let mut arg = Vec::new();
        let fun = if given(&self.highstate).is_some() {
            "state.highstate"
        } else if let Some(top) = given(&self.top) {
            arg.push(top);
            "state.top"
        } else if let Some(sls) = given(&self.sls) {
            let names = sls.items_of_sequence().unwrap_or_else(|| vec![sls.clone()]);
            let names: Vec<String> = names.iter().map(Value::to_string).collect();
            arg.push(names.join(",").into());
            "state.sls"
        } else {
            return Ok(None);
        };
        if self.ssh {
            return Err(Error::failed("salt.state: `ssh` is not built yet"));
        }
        let kwarg = Dict::new();
        if test {
            kwarg.insert("test", true);
        }
        if let Some(pillar) = given(&self.pillar) {
            kwarg.insert("pillar", pillar);
        }
        if let Some(env) = &self.pillarenv {
            kwarg.insert("pillarenv", env.as_str());
        }
        for (name, value) in [("saltenv", &self.saltenv), ("exclude", &self.exclude)] {
            if let Some(value) = given(value) {
                kwarg.insert(name, value);
            }
        }
        // Always said, as by genuine Salt: who reads the job's arguments finds them.
        kwarg.insert("queue", &self.queue);
        kwarg.insert("concurrent", &self.concurrent);
        for (name, value) in &self.rest.kwargs {
            if !name.to_str().starts_with("__") {
                kwarg.insert(name, value);
            }
        }
        Ok(Some(Work {
            tgt: &self.tgt,
            tgt_type: &self.tgt_type,
            fun,
            arg,
            kwarg,
            ret: self.ret.as_ref(),
            ret_config: self.ret_config.as_ref(),
            ret_kwargs: self.ret_kwargs.as_ref(),
            timeout: self.timeout,
            batch: self.batch.as_ref(),
            subset: self.subset,
        }))
    }

    fn go(&self, cx: &Cx, run_test: bool) -> Result<Outcome> {
        // The engine's business, declared so that nobody is warned.
        let _ = (&self.name, &self.orchestration_jid, &self.failhard);
        let test = self.test.unwrap_or(run_test);
        if self.allow_fail.to_int().is_none() || self.allow_fail.as_str().is_some() {
            return Ok(Outcome::failed("Passed invalid value for 'allow_fail', must be an int"));
        }
        let Some(work) = self.work(test)? else {
            return Ok(Outcome::failed("No highstate or sls specified, no execution made"));
        };
        if !matches!(self.concurrent, Value::Bool(_)) {
            return Ok(Outcome::failed("Must pass in boolean for value of 'concurrent'"));
        }
        if is_masterless(cx) {
            return Ok(self.judge(&work.run_here(cx)?, test));
        }
        let cx = &master::beside(cx)?;
        work.announce(cx, "state", &self.name, self.expect_minions.unwrap_or(true));
        let mut step = Step::new(cx);
        let gathered = work.run(cx, &mut step)?;
        let outcome = self.judge(&gathered, test);
        step.end();
        Ok(outcome)
    }

    fn judge(&self, gathered: &Gathered, test: bool) -> Outcome {
        let expect = self.expect_minions.unwrap_or(true);
        if gathered.is_empty() {
            return match self.expect_minions {
                Some(false) => Outcome::new(Some(true), Dict::new(), "States ran successfully."),
                _ => Outcome::failed("No minions returned"),
            };
        }
        let (mut failed, mut changed, mut same) = (Vec::new(), Vec::new(), Vec::new());
        let mut notes = Vec::new();
        let changes = Dict::new();
        for (id, load) in &gathered.returned {
            let ret = load.get("return").unwrap_or_default();
            match ran(load) {
                Ran::Well { changed: false } => same.push(id.clone()),
                Ran::Well { changed: true } => {
                    changes.insert(id.as_str(), ret);
                    changed.push(id.clone());
                }
                Ran::Badly => {
                    changes.insert(id.as_str(), ret);
                    failed.push(id.clone());
                }
                Ran::No => {
                    notes.extend(no_run(id, &ret));
                    changes.insert(id.as_str(), ret);
                    failed.push(id.clone());
                }
            }
        }
        if expect {
            for id in &gathered.missing {
                changes.insert(id.as_str(), false);
                failed.push(id.clone());
                notes.push(format!("Minion {id} did not return a state result."));
            }
        }
        failed.sort();
        let allow_fail = self.allow_fail.to_int().unwrap_or(0);
        let allowed = Allowed::read(self.fail_minions.as_ref(), allow_fail, gathered.len());
        let (rest, too_many) = allowed.judge(failed.clone());
        let extra = Dict::new();
        if !gathered.jid.is_empty() {
            extra.insert("__jid__", &gathered.jid);
        }
        let shown = match changes.is_empty() {
            true => Dict::new(),
            false => entries! { "out" => "highstate", "ret" => changes },
        };
        let (result, comment) = if too_many {
            let mut comment = format!("Run failed on minions: {}", joined(&rest));
            for note in notes {
                comment += &format!("\n{note}");
            }
            (Some(false), comment)
        } else {
            changed.extend(failed);
            changed.sort();
            same.sort();
            let mut comment = "States ran successfully.".to_owned();
            if !changed.is_empty() {
                comment += &format!(" Updating {}.", joined(&changed));
            }
            if !same.is_empty() {
                comment += &format!(" No changes made to {}.", joined(&same));
            }
            (if test && !changed.is_empty() { None } else { Some(true) }, comment)
        };
        let warnings = allowed.warnings();
        Outcome { extra, warnings, ..Outcome::new(result, shown, comment) }
    }
}

/// Turns a finished outcome into what `apply` may give.
fn applied(outcome: Outcome) -> Applied {
    // `test: True` of a step in a run that is no test: neither true nor false.
    if outcome.result.is_none() {
        outcome.extra.insert("result", Value::Null);
    }
    if !outcome.warnings.is_empty() {
        outcome.extra.insert("warnings", Value::list(outcome.warnings));
    }
    Applied {
        changes: Some(outcome.changes),
        comment: Some(outcome.comment),
        result: Some(outcome.result.unwrap_or(true)),
        extra: outcome.extra,
    }
}

impl State for StateStep {
    type Seen = ();

    const REPEATS: bool = true;
    const KEYS: Keys = Keys(["name", "changes", "comment", "result"]);

    fn observe(&self, _: &Cx) -> Result<()> {
        Ok(())
    }

    fn plan(&self, (): &()) -> Result<Plan> {
        Ok(Plan::unknown())
    }

    fn apply(&self, cx: &Cx, (): ()) -> Result<Applied> {
        self.go(cx, false).map(applied)
    }

    /// The minions are asked what would change.
    fn rehearse(&self, cx: &Cx) -> Result<Option<Outcome>> {
        self.go(cx, true).map(Some)
    }
}

impl FunctionStep {
    fn go(&self, cx: &Cx) -> Result<Outcome> {
        let _ = (&self.failhard, &self.rest);
        if self.ssh {
            return Err(Error::failed("salt.function: `ssh` is not built yet"));
        }
        let arg = match &self.arg {
            None | Some(Value::Null) => Vec::new(),
            // One text is words with commas, as Salt reads it.
            Some(Value::Str(text)) => text.split(',').map(|word| word.trim().into()).collect(),
            Some(one) => one.items_of_sequence().unwrap_or_else(|| vec![one.clone()]),
        };
        let work = Work {
            tgt: &self.tgt,
            tgt_type: &self.tgt_type,
            fun: &self.name,
            arg,
            kwarg: self.kwarg.clone().unwrap_or_default(),
            ret: self.ret.as_ref(),
            ret_config: self.ret_config.as_ref(),
            ret_kwargs: self.ret_kwargs.as_ref(),
            timeout: self.timeout,
            batch: self.batch.as_ref(),
            subset: self.subset,
        };
        let cx = &master::beside(cx)?;
        work.announce(cx, "function", &self.name, self.expect_minions.unwrap_or(false));
        let mut step = Step::new(cx);
        let gathered = work.run(cx, &mut step)?;
        let outcome = self.judge(cx, &gathered)?;
        step.end();
        Ok(outcome)
    }

    fn judge(&self, cx: &Cx, gathered: &Gathered) -> Result<Outcome> {
        if gathered.is_empty() {
            return Ok(match self.expect_minions {
                Some(false) => {
                    Outcome::new(Some(true), Dict::new(), "No minions matched the target")
                }
                _ => Outcome::failed("No minions responded"),
            });
        }
        let (mut failed, returns) = (Vec::new(), Dict::new());
        for (id, load) in &gathered.returned {
            let ret = load.get("return").unwrap_or_default();
            let code = load.get("retcode").and_then(|code| code.as_int()).unwrap_or(0);
            let mut bad = ret == Value::Bool(false) || code != 0;
            if let Some(function) = &self.fail_function {
                let call = Call { args: vec![ret.clone()], kwargs: Dict::new() };
                bad |= !cx.call(function, call)?.truthy();
            }
            if bad {
                failed.push(id.clone());
            }
            returns.insert(id.as_str(), ret);
        }
        // differs: Salt takes silence for success unless `expect_minions` is set.
        if self.expect_minions.unwrap_or(true) {
            for id in &gathered.missing {
                returns.insert(id.as_str(), false);
                failed.push(id.clone());
            }
        }
        let ids: Vec<SmolStr> = returns.keys().iter().map(|id| id.to_str()).collect();
        let allowed = Allowed::read(self.fail_minions.as_ref(), 0, gathered.len());
        let (rest, too_many) = allowed.judge(failed);
        let comment = if too_many {
            format!("Running function {} failed on minions: {}", self.name, joined(&rest))
        } else {
            "Function ran successfully.".to_owned()
        };
        let comment = format!("{comment} Function {} ran on {}.", self.name, joined(&ids));
        let extra = Dict::new();
        if !gathered.jid.is_empty() {
            extra.insert("__jid__", &gathered.jid);
        }
        let changes = entries! { "ret" => returns };
        let warnings = allowed.warnings();
        Ok(Outcome { extra, warnings, ..Outcome::new(Some(!too_many), changes, comment) })
    }
}

impl State for FunctionStep {
    type Seen = ();

    const REPEATS: bool = true;
    const KEYS: Keys = Keys(["name", "changes", "comment", "result"]);

    fn observe(&self, _: &Cx) -> Result<()> {
        Ok(())
    }

    fn plan(&self, (): &()) -> Result<Plan> {
        let target = self.tgt.to_string();
        Ok(Plan::unknown()
            .pending(format!("Function {} would be executed on target {target}", self.name)))
    }

    fn apply(&self, cx: &Cx, (): ()) -> Result<Applied> {
        self.go(cx).map(applied)
    }
}

/// Words of a step that are not for the function it runs.
const NOT_FOR_FUNCTIONS: [&str; 15] = [
    "arg",
    "kwarg",
    "orchestration_jid",
    "parallel",
    "retry",
    "order",
    "failhard",
    "fire_event",
    "onlyif",
    "unless",
    "creates",
    "check_cmd",
    "reload_modules",
    "reload_grains",
    "reload_pillar",
];

/// What Salt's `saltutil.runner`, through which it goes, keeps for itself.
const NOT_FOR_RUNNERS: [&str; 3] = ["saltenv", "full_return", "jid"];

/// The arguments of a runner or wheel step: `arg` and `kwarg`, or what stands beside them.
fn arguments(rest: &Dict, wheel: bool) -> (Vec<Value>, Dict) {
    let args = match rest.get("arg") {
        None | Some(Value::Null) => Vec::new(),
        Some(one) => one.items_of_sequence().unwrap_or_else(|| vec![one.clone()]),
    };
    let kwargs: Dict = rest
        .into_iter()
        .filter(|(name, _)| {
            let name = name.to_str();
            !name.starts_with("__")
                && !NOT_FOR_FUNCTIONS.contains(&name.as_str())
                && (wheel || !NOT_FOR_RUNNERS.contains(&name.as_str()))
        })
        .collect();
    if let Some(kwarg) = rest.get("kwarg") {
        match kwarg {
            Value::Dict(more) => kwargs.update(&more),
            list => {
                for item in list.items_of_sequence().unwrap_or_default() {
                    item.as_dict().into_iter().for_each(|item| kwargs.update(item));
                }
            }
        }
    }
    (args, kwargs)
}

/// Tells the bus what a step hands to a function of the master.
fn tell(cx: &Cx, kind: &str, name: &str, args: &[Value], kwargs: &Dict) {
    let data = entries! { "type" => kind, "name" => name };
    if kind == "wheel" {
        data.insert("args", kwargs);
    } else {
        data.insert("args", args.to_vec());
        data.insert("kwargs", kwargs);
    }
    let data = data.into();
    let event = Event { tag: "args".into(), data, pretag: None, local: false };
    if let Err(error) = cx.runtime.fire(cx, event) {
        tracing::debug!("nobody heard of the step: {error}");
    }
}

/// Tells whether a runner's data is that of a success.
fn succeeded(data: &Dict) -> bool {
    let ret = data.get("return").unwrap_or_default();
    let code = ret.get("retcode").and_then(|code| code.as_int()).unwrap_or(0);
    data.get("success").is_none_or(|success| success.truthy()) && code == 0
}

/// Runs a function of the master as a step.
fn call(cx: &Cx, wheel: bool, name: &str, rest: &Dict) -> Result<Applied> {
    let (kind, title) = if wheel { ("wheel", "Wheel") } else { ("runner", "Runner") };
    let (args, kwargs) = arguments(rest, wheel);
    let cx = &master::beside(cx)?;
    tell(cx, kind, name, &args, &kwargs);
    let mut step = Step::new(cx);
    let data = call_master(cx, &mut step, wheel, name, args, kwargs)?;
    let well = succeeded(&data);
    let done = if well { "executed" } else { "failed" };
    Ok(Applied {
        changes: Some(entries! { "return" => data.get("return") }),
        comment: Some(format!("{title} function '{name}' {done}.")),
        result: Some(well),
        extra: entries! { "__jid__" => data.get("jid") },
    })
}

impl State for RunnerStep {
    type Seen = ();

    const REPEATS: bool = true;
    const KEYS: Keys = Keys(["name", "result", "changes", "comment"]);
    const KEYS_APPLIED: Keys = Keys::USUAL;

    fn observe(&self, _: &Cx) -> Result<()> {
        Ok(())
    }

    fn plan(&self, (): &()) -> Result<Plan> {
        Ok(Plan::unknown().pending(format!("Runner function '{}' would be executed.", self.name)))
    }

    fn apply(&self, cx: &Cx, (): ()) -> Result<Applied> {
        call(cx, false, &self.name, &self.rest.kwargs)
    }
}

impl State for WheelStep {
    type Seen = ();

    const REPEATS: bool = true;
    const KEYS: Keys = Keys(["name", "result", "changes", "comment"]);
    const KEYS_APPLIED: Keys = Keys::USUAL;

    fn observe(&self, _: &Cx) -> Result<()> {
        Ok(())
    }

    fn plan(&self, (): &()) -> Result<Plan> {
        Ok(Plan::unknown().pending(format!("Wheel function '{}' would be executed.", self.name)))
    }

    fn apply(&self, cx: &Cx, (): ()) -> Result<Applied> {
        call(cx, true, &self.name, &self.rest.kwargs)
    }
}

impl ParallelRunners {
    /// Returns the runners: id, function, arguments.
    fn list(&self) -> Result<Vec<(String, String, Dict)>> {
        let _ = &self.rest;
        let Value::Dict(runners) = &self.runners else {
            return Err(Error::failed("The runners parameter must be a dictionary."));
        };
        runners
            .into_iter()
            .map(|(id, body)| {
                let id = id.to_string();
                let config = Dict::new();
                match &body {
                    Value::Dict(map) => config.update(map),
                    list => {
                        for item in list.items_of_sequence().unwrap_or_default() {
                            item.as_dict().into_iter().for_each(|item| config.update(item));
                        }
                    }
                }
                let name =
                    config.remove("name").map_or_else(|| id.clone(), |name| name.to_string());
                Ok((id, name, config))
            })
            .collect()
    }
}

impl State for ParallelRunners {
    type Seen = ();

    const REPEATS: bool = true;

    fn observe(&self, _: &Cx) -> Result<()> {
        Ok(())
    }

    fn plan(&self, (): &()) -> Result<Plan> {
        let names: Vec<String> = self.list()?.into_iter().map(|(_, name, _)| name).collect();
        Ok(Plan::unknown()
            .pending(format!("Runner functions would be executed: {}.", names.join(", "))))
    }

    fn apply(&self, cx: &Cx, (): ()) -> Result<Applied> {
        let runners = self.list()?;
        let cx = &master::beside(cx)?;
        let results: Vec<Result<Dict>> = std::thread::scope(|scope| {
            let threads: Vec<_> = runners
                .iter()
                .map(|(id, name, config)| {
                    scope.spawn(move || {
                        let (args, kwargs) = arguments(config, false);
                        tell(cx, "runner", name, &args, &kwargs);
                        // Each has its own place in the journal.
                        let low = cx.low.shallow_copy();
                        low.insert("name", format!("{}#{id}", self.name));
                        let mut step = Step::new(&Cx { low, ..cx.clone() });
                        call_master(cx, &mut step, false, name, args, kwargs)
                    })
                })
                .collect();
            let failed = || Err(Error::failed("the runner ended in a panic"));
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| failed())).collect()
        });
        let returns = Dict::new();
        let mut failed: Vec<&str> = Vec::new();
        for ((id, ..), result) in runners.iter().zip(results) {
            match result {
                Ok(data) => {
                    if !succeeded(&data) {
                        failed.push(id);
                    }
                    returns.insert(id.as_str(), data.get("return").unwrap_or_default());
                }
                Err(error) => {
                    failed.push(id);
                    returns.insert(id.as_str(), error.to_string());
                }
            }
        }
        let comment = match failed.as_slice() {
            [] => "All runner functions executed successfully.".to_owned(),
            [one] => format!("Runner {one} failed."),
            many => format!("Runners {} failed.", many.join(", ")),
        };
        Ok(Applied {
            changes: Some(entries! { "ret" => returns }),
            comment: Some(comment),
            result: Some(failed.is_empty()),
            extra: Dict::new(),
        })
    }
}

impl State for WaitForEvent {
    type Seen = ();

    const REPEATS: bool = true;
    const KEYS: Keys = Keys(["name", "changes", "comment", "result"]);

    fn observe(&self, _: &Cx) -> Result<()> {
        Ok(())
    }

    fn plan(&self, (): &()) -> Result<Plan> {
        Ok(Plan::unknown().pending(format!("Orchestration would wait for event '{}'", self.name)))
    }

    fn apply(&self, cx: &Cx, (): ()) -> Result<Applied> {
        let _ = &self.node;
        let cx = &master::beside(cx)?;
        let mut step = Step::new(cx);
        let (begun, resumed) = step.begin();
        // What was fired while there was no master to listen is in its log.
        let after = resumed.then_some(0);
        let mut client = master::connect(cx)?;
        let request = Request::Events { tag: "".into(), after };
        let stream = client.send(&request).map_err(master::failed)?;
        let start = Instant::now();
        let until = start + Duration::from_secs_f64(self.timeout.clamp(0.0, 1e8));
        let mut open: Vec<SmolStr> = self.id_list.iter().map(Value::to_str).collect();
        let mut seen: Vec<SmolStr> = Vec::new();
        while !open.is_empty() {
            let left = until.min(Instant::now() + Duration::from_secs(1));
            let item = client.event(stream, Some(left)).map_err(master::failed)?;
            if cx.host.cancelled() {
                return Err(Error::Cancelled);
            }
            let Some(item) = item else {
                if Instant::now() < until {
                    continue;
                }
                step.end();
                let changes = match seen.is_empty() {
                    true => Dict::new(),
                    false => entries! { "minions_seen" => Value::list(&seen) },
                };
                return Ok(Applied::failed(changes, "Timeout value reached."));
            };
            let halite_client::EventItem::Event { tag, data, .. } = item else { continue };
            if !fnmatch(&tag, &self.name) || (resumed && stamp_of(&data) < begun) {
                continue;
            }
            let found = data
                .get(self.event_id.as_str())
                .or_else(|| data.get("data")?.get(self.event_id.as_str()));
            let Some(id) = found.map(|id| id.to_str()) else { continue };
            if open.contains(&id) {
                open.retain(|own| *own != id);
                seen.push(id);
            }
        }
        step.end();
        let seconds = start.elapsed().as_secs_f64();
        Ok(Applied::changes(entries! { "minions_seen" => Value::list(&seen) })
            .comment(format!("All events seen in {seconds} seconds.")))
    }
}

/// The time of an event, written as job ids are.
fn stamp_of(data: &Dict) -> SmolStr {
    let stamp = data.get("_stamp").map(|stamp| stamp.to_str()).unwrap_or_default();
    let time = stamp.split('+').next().unwrap_or_default();
    time.chars().filter(char::is_ascii_digit).collect()
}

#[cfg(test)]
mod tests {
    use halite_value::{dict, list};

    use super::*;

    #[test]
    fn arguments_of_functions_of_the_master() {
        let rest = entries! {
            "arg" => list![1], "kwarg" => dict! { "x" => 1 }, "y" => 2, "__reqs__" => 0,
            "saltenv" => "base",
        };
        let (args, kwargs) = arguments(&rest, false);
        assert_eq!((args, Value::from(kwargs)), (vec![1.into()], dict! { "y" => 2, "x" => 1 }));
        assert!(arguments(&rest, true).1.contains("saltenv"));
    }

    #[test]
    fn state_runs_are_judged() {
        let state =
            |result: bool, changes: Value| dict! { "result" => result, "changes" => changes };
        let load = |ret: Value, code: i64| entries! { "return" => ret, "retcode" => code };
        assert!(matches!(
            ran(&load(dict! { "a" => state(true, Value::dict()) }, 0)),
            Ran::Well { changed: false }
        ));
        assert!(matches!(
            ran(&load(dict! { "a" => state(true, dict! { "x" => 1 }) }, 0)),
            Ran::Well { changed: true }
        ));
        assert!(matches!(ran(&load(dict! { "a" => state(false, Value::dict()) }, 2)), Ran::Badly));
        assert!(matches!(ran(&load(list!["Rendering failed"], 1)), Ran::No));
        let said = |ret: Value| no_run("m1", &ret).unwrap_or_default();
        assert_eq!(said(list!["one", "two"]), "Minion m1 returned errors: one; two");
        assert_eq!(said(list![]), "Minion m1 returned an empty error list.");
        assert_eq!(said("odd".into()), "Minion m1 returned 'odd' instead of a state result.");
        assert_eq!(said(Value::dict()), "");
        assert_eq!(
            stamp_of(&entries! { "_stamp" => "2026-11-16T01:46:30.980934+00:00" }),
            "20261116014630980934"
        );
    }
}
