//! Runners: functions that run in the master. The seam; the functions themselves live elsewhere.
//!
//! Every call fires `salt/run/<jid>/new` and `…/ret`, as Salt does, whoever asked for it.

use std::sync::Arc;

use halite_value::{Dict, SmolStr, Value, entries};
use halite_wire::{Jid, Tag};

use crate::{Error, Master, blocking};

/// A call of a runner or wheel function.
#[derive(Clone, Debug)]
pub struct Call {
    pub function: SmolStr,
    pub args: Vec<Value>,
    pub kwargs: Dict,
    pub user: SmolStr,
    pub jid: Jid,
}

/// What a function gave.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub value: Value,
    pub success: bool,
}

/// The runner (or wheel) functions of a master. Called on blocking threads.
pub trait Runners: Send + Sync {
    /// Runs a function; `None` if there is none of that name.
    fn run(&self, master: &Arc<Master>, call: &Call) -> Option<Outcome>;
}

/// No runners at all.
pub struct NoRunners;

impl Runners for NoRunners {
    fn run(&self, _: &Arc<Master>, _: &Call) -> Option<Outcome> {
        None
    }
}

/// Runs a runner, with its events. Returns the data of the last one.
pub async fn run(master: &Arc<Master>, call: Call) -> Dict {
    let tag = Tag::RunNew(call.jid.to_string());
    let end = Tag::RunReturn(call.jid.to_string());
    let owner = master.clone();
    with_events(master, "runner", &tag, &end, call, move |call| {
        let runners = owner.runners.clone();
        runners.run(&owner, call)
    })
    .await
}

/// Runs a wheel function, with its events. Returns the data of the last one.
pub async fn wheel(master: &Arc<Master>, call: Call) -> Dict {
    let tag = Tag::WheelNew(call.jid.to_string());
    let end = Tag::WheelReturn(call.jid.to_string());
    let owner = master.clone();
    with_events(master, "wheel", &tag, &end, call, move |call| {
        let wheel = owner.wheel.clone();
        let outcome = wheel.run(&owner, call);
        if call.function.starts_with("key.")
            && let Err(error) = owner.sync_accepted()
        {
            tracing::error!("The accepted keys cannot be listed: {error}");
        }
        outcome
    })
    .await
}

async fn with_events(
    master: &Arc<Master>,
    form: &'static str,
    begin: &Tag,
    end: &Tag,
    call: Call,
    work: impl FnOnce(&Call) -> Option<Outcome> + Send + 'static,
) -> Dict {
    let fun = format!("{form}.{}", call.function);
    let args = halite_wire::Args { args: call.args.clone(), kwargs: call.kwargs.clone() }.write();
    let about = || {
        entries! {
            "fun" => &fun, "jid" => &call.jid, "user" => &call.user, "fun_args" => args.clone(),
        }
    };
    master.fire(begin, about());
    let (owned, name) = (call.clone(), fun.clone());
    let outcome = blocking(move || {
        work(&owned).unwrap_or_else(|| Outcome {
            value: format!("'{name}' is not available.").into(),
            success: false,
        })
    })
    .await
    .unwrap_or_else(|error: Error| Outcome {
        value: format!("Exception occurred in {form} {}: {error}", call.function).into(),
        success: false,
    });
    let data = about();
    data.insert("return", outcome.value);
    data.insert("success", outcome.success);
    master.bus.fire(end.to_string(), data).data.clone()
}
