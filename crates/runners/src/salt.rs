//! `salt`: execution functions, here on the master and out on minions.

use std::time::Duration;

use halite_client::{Job, Patience};
use halite_spec::{Call, Cx, Rest, Result, function, module};
use halite_value::{Dict, Value};

use crate::master;

module! {
    /// Execution functions, on the master and on minions.
    "salt": cmd, execute,
}

/// Run an execution function on the master.
///
/// ```console
/// $ salt-run salt.cmd test.echo hello
/// ```
#[function]
pub fn cmd(
    cx: &Cx,
    /// The function.
    fun: String,
    rest: Rest,
) -> Result<Value> {
    let kwargs: Dict = rest
        .kwargs
        .entries()
        .into_iter()
        .filter(|(name, _)| !name.to_str().starts_with("__"))
        .collect();
    kwargs.remove("with_pillar");
    match cx.call(&fun, Call { args: rest.args, kwargs }) {
        Err(error) if error.is_missing() => Ok(format!("'{fun}' is not available.").into()),
        other => other,
    }
}

/// Run an execution function on minions, and return what they return.
///
/// ```console
/// $ salt-run salt.execute '*' test.ping
/// ```
#[function]
pub fn execute(
    cx: &Cx,
    /// Who is meant.
    tgt: Value,
    /// The function.
    fun: String,
    /// Its arguments.
    arg: Option<Vec<Value>>,
    /// Seconds to wait.
    timeout: Option<f64>,
    /// How the target is read.
    #[default("glob".to_owned())]
    tgt_type: String,
    /// Returners.
    #[default(String::new())]
    ret: String,
    /// The id the job is to have.
    #[default(String::new())]
    jid: String,
    /// Its arguments by name.
    kwarg: Option<Dict>,
    /// What else a job may carry: `metadata`, say.
    kwargs: Rest,
) -> Result<Dict> {
    let mut arg = arg.unwrap_or_default();
    if let Some(kwarg) = kwarg.filter(|kwarg| !kwarg.is_empty()) {
        let kwarg = kwarg.shallow_copy();
        kwarg.insert("__kwarg__", true);
        arg.push(kwarg.into());
    }
    let mut patience = Patience::from_opts(&cx.opts);
    if let Some(timeout) = timeout.filter(|seconds| *seconds > 0.0 && *seconds < 1e9) {
        patience.timeout = Duration::from_secs_f64(timeout);
    }
    let (jid, kwargs) = (jid.into(), kwargs.kwargs);
    let job = Job { arg, ret: ret.into(), jid, kwargs, ..Job::new(tgt, &tgt_type, fun) };
    Ok(master::run_named(cx, &job, Some(patience))?.returns())
}
