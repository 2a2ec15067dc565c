//! The running master, as runners reach it.

use std::path::Path;

use halite_client::{Client, Job, Outcome, Patience, Request};
use halite_spec::{Cx, Error, Event, Result};
use halite_value::{Dict, Value, entries};

/// Returns the context of a step: on a minion with the options of the master on its machine.
pub(crate) fn beside(cx: &Cx) -> Result<Cx> {
    if cx.opt_str("__role").as_deref() != Some("minion") {
        return Ok(cx.clone());
    }
    match cx.runtime.ask_master(cx, entries! { "cmd" => "halite_options" }.into())? {
        Value::Dict(opts) => {
            let opts = opts.shallow_copy();
            // Whoever is asked next is asked from the minion's side still.
            opts.insert("__role", "minion");
            let cx = Cx { opts, ..cx.clone() };
            let alone = "The salt master could not be contacted. Is master running?";
            connect(&cx).map_err(|_| Error::failed(alone))?;
            Ok(cx)
        }
        _ => Err(Error::failed("the options of the master are not known")),
    }
}

/// Connects to the master's control socket.
pub(crate) fn connect(cx: &Cx) -> Result<Client> {
    let folder = cx.opt_str("sock_dir").unwrap_or_default();
    Client::connect(Path::new(folder.as_str())).map_err(failed)
}

pub(crate) fn failed(error: halite_client::Error) -> Error {
    Error::failed(error.to_string())
}

/// Asks one question.
pub(crate) fn ask(cx: &Cx, request: &Request) -> Result<Value> {
    connect(cx)?.call(request).map_err(failed)
}

/// Runs a job on minions to its end.
pub(crate) fn run(cx: &Cx, job: &Job, patience: Option<Patience>) -> Result<Outcome> {
    let patience = patience.unwrap_or_else(|| Patience::from_opts(&cx.opts));
    connect(cx)?.run(job, patience).map_err(failed)
}

/// What the user reads when a target names nobody.
pub(crate) const NOBODY: &str =
    "No minions matched the target. No command was sent, no jid was assigned.";

/// Runs a job on minions a user named, and says so if he named nobody.
pub(crate) fn run_named(cx: &Cx, job: &Job, patience: Option<Patience>) -> Result<Outcome> {
    let outcome = run(cx, job, patience)?;
    if outcome.published.jid.is_empty() {
        say(cx, NOBODY)?;
    }
    Ok(outcome)
}

/// Prints a line on the user's terminal, where there is one.
pub(crate) fn say(cx: &Cx, text: impl Into<Value>) -> Result<()> {
    let event = Event { tag: crate::PRINT.into(), data: text.into(), pretag: None, local: true };
    cx.runtime.clone().fire(cx, event).map(drop)
}

/// Tells how far a runner is: an event `progress` of its job.
pub(crate) fn progress(cx: &Cx, data: Dict) -> Result<()> {
    tell(cx, "progress", data)
}

/// Fires an event of the runner's job.
pub(crate) fn tell(cx: &Cx, tag: &str, data: Dict) -> Result<()> {
    let event = Event { tag: tag.into(), data: data.into(), pretag: None, local: false };
    cx.runtime.clone().fire(cx, event).map(drop)
}

/// Answers what execution functions on the master's machine ask of it (`saltutil.runner` in a
/// template, say); `None` if the question is another.
pub fn answer(cx: &Cx, load: &Value) -> Option<Result<Value>> {
    let text = |name: &str| load.get(name).map(|value| value.to_str()).unwrap_or_default();
    let arg = || load.get("arg").and_then(|arg| arg.items_of_sequence()).unwrap_or_default();
    let kwarg = || match load.get("kwarg") {
        Some(Value::Dict(kwarg)) => kwarg,
        _ => Dict::new(),
    };
    let request = match text("cmd").as_str() {
        "halite_options" => return Some(Ok(cx.opts.clone().into())),
        "halite_runner" => {
            let (fun, arg, kwarg) = (text("fun"), arg(), kwarg());
            Request::Runner { fun, arg, kwarg, asynchronous: false }
        }
        "halite_wheel" => Request::Wheel { fun: text("fun"), arg: arg(), kwarg: kwarg() },
        "halite_cmd" => {
            let mut arg = arg();
            let kwarg = kwarg();
            if !kwarg.is_empty() {
                kwarg.insert("__kwarg__", true);
                arg.push(kwarg.into());
            }
            let fun = load.get("fun").unwrap_or_default();
            let tgt = load.get("tgt").unwrap_or_default();
            let job = Job { arg, ret: text("ret"), ..Job::new(tgt, &text("tgt_type"), fun) };
            return Some(run(cx, &job, None).map(|outcome| outcome.returns().into()));
        }
        _ => return None,
    };
    Some(ask(cx, &request))
}
