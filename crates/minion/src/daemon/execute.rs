//! Doing a job: from a publication to a return.
//!
//! Nothing here touches the network: a job's functions reach the master through their `Cx`. Whatever
//! happens inside a function, a panic included, ends as a return.

use std::panic::{AssertUnwindSafe, catch_unwind};

use halite_spec::{By, Call, Cx, Error, Result};
use halite_value::{Dict, SmolStr, Value, entries};
use halite_wire::{Args, Publication};

use super::jobs::Ticket;
use crate::{
    executors::{self, Outcome, Work},
    failure, registry,
};

/// What one function gave.
pub(crate) struct Done {
    ret: Value,
    retcode: i64,
    success: bool,
    /// It gave nothing, not even a code.
    raised: bool,
    out: Option<SmolStr>,
}

impl Done {
    fn failed(text: impl Into<Value>) -> Self {
        let out = Some("nested".into());
        Self { ret: text.into(), retcode: 1, success: false, raised: true, out }
    }
}

/// Does a job; returns the load of its return, without `cmd`.
pub(crate) fn run(cx: &Cx, publication: &Publication, ticket: &Ticket) -> Dict {
    let ret = match &publication.fun {
        Value::Str(fun) => {
            let args = Args::read(&publication.arg);
            let done = one(cx, fun, args, publication, ticket);
            let ret = entries! {
                "success" => done.success, "return" => done.ret, "retcode" => done.retcode,
            };
            if let Some(out) = done.out {
                ret.insert("out", out);
            }
            ret
        }
        _ => several(cx, publication, ticket),
    };
    describe(&ret, publication, &cx.id());
    ret
}

/// Adds to a return what is the same for every job.
pub(crate) fn describe(ret: &Dict, publication: &Publication, id: &str) {
    ret.insert("id", id);
    ret.insert("jid", &publication.jid);
    ret.insert("fun", &publication.fun);
    ret.insert("fun_args", publication.arg.clone());
    ret.insert("user", &publication.user);
    if let Some(master) = publication.extra.get("master_id") {
        ret.insert("master_id", master);
    }
    match publication.extra.get("metadata") {
        Some(metadata @ Value::Dict(_)) => {
            ret.insert("metadata", metadata);
        }
        Some(_) => tracing::warn!("the metadata of the job are no dictionary; they are left out"),
        None => {}
    }
}

/// The load of a return for a job that a crash of the minion ended.
pub(crate) fn interrupted(publication: &Publication, id: &str) -> Dict {
    let text = format!(
        "ERROR: the minion stopped while job {} was running; what it had done by then stays done, \
         and it is not run again",
        publication.jid
    );
    let ret = entries! {
        "success" => false, "return" => text, "retcode" => 1, "out" => "nested",
        "interrupted" => true,
    };
    describe(&ret, publication, id);
    ret
}

fn several(cx: &Cx, publication: &Publication, ticket: &Ticket) -> Dict {
    let ordered = cx.opt_bool("multifunc_ordered");
    let calls = publication.calls();
    let (returns, retcodes, successes) = (Dict::new(), Dict::new(), Dict::new());
    let (mut in_order, mut codes, mut flags) = (Vec::new(), Vec::new(), Vec::new());
    for (fun, args) in calls {
        let done = one(cx, &fun, args, publication, ticket);
        if ordered {
            in_order.push(done.ret);
            codes.push(Value::from(done.retcode));
            flags.push(Value::from(done.success));
        } else {
            returns.insert(fun.clone(), done.ret);
            // Salt counts only the functions that gave something; `success` tells of the others.
            if !done.raised {
                retcodes.insert(fun.clone(), done.retcode);
            }
            successes.insert(fun, done.success);
        }
    }
    if ordered {
        entries! { "return" => in_order, "retcode" => codes, "success" => flags }
    } else {
        entries! { "return" => returns, "retcode" => retcodes, "success" => successes }
    }
}

fn one(cx: &Cx, fun: &SmolStr, args: Args, publication: &Publication, ticket: &Ticket) -> Done {
    cx.job.set_retcode(0);
    let outcome = catch_unwind(AssertUnwindSafe(|| call(cx, fun, args, publication)));
    match outcome {
        _ if ticket.cancel.is_cancelled() => {
            let signal = ticket.signal().unwrap_or(15);
            Done::failed(format!("ERROR: the job was ended by signal {signal}"))
        }
        Ok(Ok(ret)) => {
            let mut retcode = cx.job.retcode();
            if retcode == 0 && failure::says_failed(&ret) {
                retcode = 1;
            }
            let out = outputter(cx, fun);
            Done { ret, retcode, success: retcode == 0, raised: false, out }
        }
        Ok(Err(Refused::Told(text))) => Done::failed(text),
        Ok(Err(Refused::Error(error))) if error.is_missing() && !cx.runtime.has(cx, fun) => {
            let missing = || match &error {
                Error::NotLoaded(why) => why.clone(),
                _ => failure::missing(fun),
            };
            Done::failed(failure::instead_of(cx, fun).map_or_else(|| missing().into(), Value::from))
        }
        Ok(Err(Refused::Error(error))) => {
            tracing::error!("Problem executing '{fun}': {error}");
            let code = cx.job.retcode();
            let doc = || users_doc(cx, fun);
            let text = match failure::type_error(fun, &error, doc) {
                Some(text) => text,
                None => failure::text(fun, registry::function(fun), &error),
            };
            let mut done = Done::failed(text);
            if code != 0 {
                done.retcode = code;
            }
            done
        }
        Err(panic) => {
            let why = failure::panic_text(&*panic);
            tracing::error!("{fun} panicked: {why}");
            Done::failed(format!(
                "The minion function caused an exception: {fun} panicked, which is a mistake in \
                 Halite: {why}"
            ))
        }
    }
}

/// Why a function gave nothing.
enum Refused {
    Error(Error),
    /// In words of its own.
    Told(String),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

fn call(cx: &Cx, fun: &str, args: Args, publication: &Publication) -> Result<Value, Refused> {
    blackout(cx, fun)?;
    let data = published(publication);
    let names = executors::published(cx, &data)?;
    let is_plain = names.first().is_some_and(|name| name == "direct_call");
    if !is_plain && !cx.runtime.has(cx, fun) {
        if !executors::take_unknown(cx, &names, fun) {
            return Err(Error::NotLoaded(failure::missing(fun)).into());
        }
        // Nobody knows what such a function takes: all that was published.
        let call = Call { args: args.write(), kwargs: data.shallow_copy() };
        return match (Work { data: &data, fun, call: &call }).execute(cx, &names)? {
            Outcome::Done(ret) => Ok(ret),
            Outcome::Direct => Err(Error::NotLoaded(failure::missing(fun)).into()),
        };
    }
    let call = fitting(cx, fun, args, &data)?;
    if !is_plain
        && let Outcome::Done(ret) = (Work { data: &data, fun, call: &call }).execute(cx, &names)?
    {
        return Ok(ret);
    }
    Ok(cx.call(fun, call)?)
}

/// Returns the call of a function that takes these arguments, or says why it does not.
fn fitting(cx: &Cx, fun: &str, args: Args, data: &Dict) -> Result<Call, Refused> {
    let call = failure::with_keywords(Call { args: args.args, kwargs: args.kwargs });
    let Some(function) = cx.runtime.function(cx, fun) else {
        let Some(about) = cx.runtime.described("modules", &[fun.to_owned()]).get(fun) else {
            return Ok(call);
        };
        let unknown = failure::unknown_to_users(&about, &call);
        if !unknown.is_empty() {
            return Err(failure::refused_keywords(&unknown).into());
        }
        if about.get("spec").is_some_and(|spec| spec.get("kwargs").is_some_and(|kw| kw.truthy())) {
            add_publication(&call.kwargs, data);
        }
        return Ok(call);
    };
    let unknown = failure::unknown_keywords(function, &call);
    if !unknown.is_empty() {
        return Err(failure::refused_keywords(&unknown).into());
    }
    if let Some(why) = failure::misfit(function, &call) {
        let help = function.help("salt '*'", fun);
        let text = format!("Passed invalid arguments to {fun}: {why}\n{help}");
        return Err(Refused::Told(text));
    }
    if function.params.iter().any(|param| param.by == By::Name || param.takes_names()) {
        add_publication(&call.kwargs, data);
    }
    Ok(call)
}

/// Returns a job as functions that take anything, and executors, are told of it.
fn published(publication: &Publication) -> Dict {
    let load = publication.write();
    if load.contains("schedule") {
        // Nobody published it.
        for key in ["arg", "tgt", "tgt_type", "ret", "user", "serial"] {
            load.remove(key);
        }
    } else {
        // Of minions that stand for other things: none here does.
        load.insert("resource_targets", Vec::<Value>::new());
        load.insert("pure_resource_target", false);
        load.insert("minion_is_target", true);
    }
    load
}

/// Functions that take anything are told what was published, as in Salt.
fn add_publication(kwargs: &Dict, data: &Dict) {
    for (key, value) in data {
        kwargs.insert(format!("__pub_{key}"), value);
    }
}

/// Refuses almost everything while pillar or grains say `minion_blackout`.
fn blackout(cx: &Cx, fun: &str) -> Result<()> {
    let forbids = |data: &Dict| {
        let allowed = data.get("minion_blackout_whitelist").unwrap_or_default();
        let allowed = allowed.items_of_sequence().unwrap_or_default();
        data.get("minion_blackout").is_some_and(|on| on.truthy())
            && fun != "saltutil.refresh_pillar"
            && !allowed.iter().any(|name| *name == *fun)
    };
    if forbids(&cx.pillar) || forbids(&cx.grains) {
        return Err(Error::invalid(
            "Minion in blackout mode. Set 'minion_blackout' to False in pillar or grains to resume \
             operations. Only saltutil.refresh_pillar allowed in blackout mode.",
        ));
    }
    Ok(())
}

/// Returns the outputter a function asks for; a user's does in `__outputter__`.
pub(crate) fn outputter(cx: &Cx, fun: &str) -> Option<SmolStr> {
    if cx.runtime.function(cx, fun).is_some() {
        return native_outputter(fun).map(SmolStr::from);
    }
    cx.runtime.described("modules", &[fun.to_owned()]).get(fun)?.get_str("outputter")
}

/// Returns the documentation of a user's function.
fn users_doc(cx: &Cx, fun: &str) -> Option<String> {
    let about = cx.runtime.described("modules", &[fun.to_owned()]).get(fun)?;
    about.get("doc").filter(Value::truthy).map(|doc| doc.to_str().into())
}

fn native_outputter(fun: &str) -> Option<&'static str> {
    let (module, name) = fun.split_once('.')?;
    match (module, name) {
        (
            "state",
            "sls" | "sls_id" | "pkg" | "top" | "single" | "highstate" | "template" | "template_str"
            | "apply" | "test" | "request" | "check_request" | "run_request",
        ) => Some("highstate"),
        ("grains", "items" | "item" | "setval") => Some("nested"),
        ("aliases", "list_aliases") => Some("yaml"),
        ("aliases", "rm_alias" | "has_target" | "get_target" | "set_target")
        | ("alternatives", "display" | "install" | "remove") => Some("txt"),
        _ => None,
    }
}
