//! Runners: functions that run in the master. The seam; the functions themselves live elsewhere.
//!
//! Every call fires `salt/run/<jid>/new` and `…/ret`, as Salt does, whoever asked for it. An
//! orchestration is written down before it begins and until it has ended (`orchestration.rs`), and
//! goes on when whoever asked for it goes away.

use std::sync::Arc;

use halite_store::Op;
use halite_value::{Dict, SmolStr, Value, entries};
use halite_wire::{Jid, Tag};
use tokio::sync::OwnedSemaphorePermit;

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

    /// Runs an execution function on the master's machine (reactions of the kind `caller`).
    fn execution(&self, master: &Arc<Master>, call: &Call) -> Option<Outcome> {
        let _ = (master, call);
        None
    }

    /// Hands the return of a scheduled job to returners, with what the job says of them.
    fn deliver(&self, master: &Arc<Master>, returners: &[String], job: &Dict, ret: &Dict) {
        let _ = (master, returners, job, ret);
    }

    /// Returns what `master_tops` gives a minion with these options: environment → list of SLS.
    fn tops(&self, master: &Arc<Master>, minion_opts: &Dict) -> Dict {
        let _ = (master, minion_opts);
        Dict::new()
    }
}

/// No runners at all.
pub struct NoRunners;

impl Runners for NoRunners {
    fn run(&self, _: &Arc<Master>, _: &Call) -> Option<Outcome> {
        None
    }
}

/// The right to occupy a thread; given back when the function has ended, before its result is on disk.
pub(crate) type Turn = OwnedSemaphorePermit;

/// Runs a runner, with its events. Returns the data of the last one. Goes on if dropped.
pub async fn run(master: &Arc<Master>, call: Call) -> Dict {
    run_in_turn(master, call, None).await
}

/// As [`run`], for those who may occupy so many threads only.
pub(crate) async fn run_in_turn(master: &Arc<Master>, call: Call, turn: Option<Turn>) -> Dict {
    let owner = master.clone();
    let jid = call.jid.clone();
    let running = tokio::spawn(async move {
        let _open = owner.open_orchestration(&call, Dict::new()).await;
        let tag = Tag::RunNew(call.jid.to_string());
        let end = Tag::RunReturn(call.jid.to_string());
        let worker = owner.clone();
        with_events(&owner, "runner", &tag, &end, call, move |call| {
            let _turn = turn;
            worker.runners.clone().run(&worker, call)
        })
        .await
    });
    running.await.unwrap_or_else(|error| entries! {
        "jid" => &jid, "success" => false, "return" => format!("the runner ended in a panic: {error}"),
    })
}

/// Runs a wheel function, with its events. Returns the data of the last one.
pub async fn wheel(master: &Arc<Master>, call: Call) -> Dict {
    wheel_in_turn(master, call, None).await
}

/// As [`wheel`], for those who may occupy so many threads only.
pub(crate) async fn wheel_in_turn(master: &Arc<Master>, call: Call, turn: Option<Turn>) -> Dict {
    let tag = Tag::WheelNew(call.jid.to_string());
    let end = Tag::WheelReturn(call.jid.to_string());
    let owner = master.clone();
    with_events(master, "wheel", &tag, &end, call, move |call| {
        let _turn = turn;
        let outcome = owner.wheel.clone().run(&owner, call);
        if call.function.starts_with("key.")
            && let Err(error) = owner.sync_accepted()
        {
            tracing::error!("The accepted keys cannot be listed: {error}");
        }
        outcome
    })
    .await
}

/// Arguments as events show them: those with names last, in one dict.
pub fn fun_args(args: &[Value], kwargs: &Dict) -> Vec<Value> {
    let mut all = args.to_vec();
    if !kwargs.is_empty() {
        all.push(kwargs.shallow_copy().into());
    }
    all
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
    let args = fun_args(&call.args, &call.kwargs);
    let about = || {
        entries! {
            "fun" => &fun, "jid" => &call.jid, "user" => &call.user, "fun_args" => args.clone(),
        }
    };
    master.fire(begin, about());
    let owned = call.clone();
    let outcome = blocking(move || {
        work(&owned).unwrap_or_else(|| Outcome {
            value: format!("'{}' is not available.", owned.function).into(),
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
    // What broke because the master ends is no result; an orchestration will have one later.
    if master.is_stopping() {
        return data;
    }
    keep(master, &call.jid, &data).await;
    master.bus.fire(end.to_string(), data).data.clone()
}

/// A runner that `salt-run` did by itself has ended: its job is kept, and the bus told.
pub(crate) async fn done(master: &Arc<Master>, data: Dict) -> Result<(), Error> {
    let jid = Jid::new(&data.get("jid").unwrap_or_default().to_str())?;
    keep(master, &jid, &data).await;
    master.bus.fire(Tag::RunReturn(jid.to_string()).to_string(), data);
    Ok(())
}

/// Keeps the result where `jobs.lookup_jid` finds it. As in Salt the return of such a job is all of
/// its last event, its target the master, and its arguments are in the return.
async fn keep(master: &Arc<Master>, jid: &Jid, data: &Dict) {
    let opts = &master.settings.opts;
    let is_wanted = opts.get("runner_returns").is_none_or(|wanted| wanted.truthy());
    if !opts.bool("job_cache") || !is_wanted {
        return;
    }
    let id = &master.settings.id;
    let part = |name: &str| data.get(name).unwrap_or_default();
    let fun = part("fun").to_str();
    let load = entries! {
        "fun" => &fun, "arg" => Vec::<Value>::new(), "tgt" => id, "tgt_type" => "list", "ret" => "",
        "jid" => jid, "user" => part("user"),
        "kwargs" => Value::dict(),
    };
    let event = data.shallow_copy();
    let stamp = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string();
    event.get_or_insert_with("_stamp", || stamp.as_str().into());
    let kept = entries! { "id" => id, "jid" => jid, "fun" => &fun, "return" => event };
    let jid = jid.to_string();
    let ops = vec![
        Op::Job { jid: jid.clone(), load: load.into() },
        Op::Return { jid, minion: id.to_string(), load: kept.into() },
    ];
    if let Err(error) = master.store.write(ops).await {
        tracing::warn!("The result of {fun} is not kept: {error}");
    }
}
