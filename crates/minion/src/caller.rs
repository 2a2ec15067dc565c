//! A minion without a daemon: builds a `Cx` from a configuration and runs one function.
//!
//! `salt-call` is this; the daemon builds its own `Cx` from the same parts. While a function runs,
//! a record of it lies in `cachedir/proc`, named by its job id and locked for as long as the
//! process lives, so that `saltutil.running` and the one-state-run-at-a-time rule see it.

use std::{path::PathBuf, sync::Arc};

use halite_returners::Options;
use halite_spec::{Call, Cx, Error, Files, Host, Job, Result};
use halite_value::{Dict, SmolStr, Value, entries};

use crate::{
    Engine, Link, Parts, Rendering, Sources, daemon,
    executors::{self, Work},
    proc::Record,
    registry::Native,
};

/// What a function gave.
#[derive(Debug)]
pub struct Outcome {
    pub ret: Value,
    pub retcode: i64,
    /// The outputter the function declares, if any.
    pub out: Option<SmolStr>,
}

/// A minion that can be called.
pub struct Caller {
    pub cx: Cx,
    pub rendering: Arc<dyn Rendering>,
}

/// Everything a [`Caller`] is built from.
pub struct Setup {
    pub opts: Dict,
    pub host: Arc<dyn Host>,
    pub files: Arc<dyn Files>,
    pub rendering: Arc<dyn Rendering>,
    pub sources: Arc<dyn Sources>,
    pub link: Arc<dyn Link>,
    pub job: Job,
}

impl Caller {
    /// Collects grains, then pillar. A pillar that does not render is kept with its errors, as a
    /// minion keeps it: state runs refuse it, other functions work.
    pub fn new(setup: Setup) -> Result<Self> {
        let Setup { opts, host, files, rendering, sources, link, job } = setup;
        let python = rendering.python();
        let own = Arc::clone(&rendering);
        let parts =
            Parts { rendering, sources: Arc::clone(&sources), link, states: Arc::new(Native) };
        let mut cx = Cx {
            host,
            opts,
            grains: Dict::new(),
            pillar: Dict::new(),
            context: Dict::new(),
            low: Dict::new(),
            job: Arc::new(job),
            files,
            runtime: Arc::new(Engine::new(parts)),
        };
        cx.grains = sources.grains(&cx)?;
        cx.opts.insert("grains", &cx.grains);
        cx.pillar = sources.pillar(&cx, &Dict::new(), None)?;
        cx.opts.insert("pillar", &cx.pillar);
        if let Some(python) = python {
            python.remember(&cx);
        }
        Ok(Self { cx, rendering: own })
    }

    /// Runs a function as its own job.
    pub fn call(&self, function: &str, call: Call) -> Result<Outcome> {
        let cx = &self.cx;
        let record = Record::begin(cx, function, &call)?;
        let result = self.execute(function, call);
        record.end(cx);
        let ret = result?;
        Ok(Outcome { retcode: retcode(cx, &ret), ret, out: daemon::outputter(cx, function) })
    }

    fn execute(&self, function: &str, call: Call) -> Result<Value> {
        let cx = &self.cx;
        let names = executors::by_hand(cx)?;
        let is_plain = names.first().is_some_and(|name| name == "direct_call");
        if !is_plain && cx.runtime.has(cx, function) {
            let args =
                halite_wire::Args { args: call.args.clone(), kwargs: call.kwargs.shallow_copy() };
            let data = entries! { "fun" => function, "arg" => args.write() };
            if let Some(opts) = cx.opt("executor_opts").filter(Value::truthy) {
                data.insert("executor_opts", opts);
            }
            let work = Work { data: &data, fun: function, call: &call };
            if let executors::Outcome::Done(ret) = work.execute(cx, &names)? {
                return Ok(ret);
            }
        }
        cx.call(function, call)
    }
}

impl Caller {
    /// Hands what a function gave to the returners that are asked for (`return`); `typed` are its
    /// arguments as they were written. The returner `local` shows it, which is for the program to
    /// do: what it shows is returned.
    pub fn return_to(&self, function: &str, typed: &[String], outcome: &Outcome) -> Option<Value> {
        let cx = &self.cx;
        let names = cx.opt("return").filter(Value::truthy)?;
        let names = names.items_of_sequence().unwrap_or_else(|| vec![names]);
        let names: Vec<_> = names.iter().map(Value::to_str).collect();
        let ret = entries! {
            "jid" => &cx.job.jid, "return" => &outcome.ret, "retcode" => outcome.retcode,
        };
        if let Some(out) = &outcome.out {
            ret.insert("out", out);
        }
        ret.insert("id", cx.id());
        ret.insert("fun", function);
        ret.insert("fun_args", Value::list(typed));
        // Whatever the return code: the function was called.
        ret.insert("success", true);
        let options = Options::given(cx.opt("return_config"), cx.opt("return_kwargs"));
        let names: Vec<&str> = names.iter().flat_map(|name| name.split(',')).collect();
        let others = names.iter().copied().filter(|name| *name != "local");
        halite_returners::deliver_all(cx, others, &options, &ret);
        names.contains(&"local").then(|| ret.into())
    }
}

/// The code of a return: the one the function set, or 1 if the return says that it failed.
pub fn retcode(cx: &Cx, ret: &Value) -> i64 {
    let set = cx.job.retcode();
    if set != 0 {
        return set;
    }
    let failed = ["result", "success"].iter().any(|key| ret.get(key) == Some(Value::Bool(false)));
    i64::from(failed)
}

/// Returns the folder of job records.
pub(crate) fn proc_dir(cx: &Cx) -> Result<PathBuf> {
    let cache = cx.opt_str("cachedir").ok_or_else(|| Error::invalid("cachedir is not set"))?;
    Ok(PathBuf::from(cache.as_str()).join("proc"))
}
