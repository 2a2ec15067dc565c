//! The master's schedule: runs runners when their time has come.
//!
//! Which are due is decided by the crate `schedule`. What a runner gave is told by an event
//! `__schedule_return`, as Salt does, and kept with the jobs under the master's id. An orchestration is
//! journaled like any other; what a crash cut off goes on before anything new is due.

use std::{collections::HashMap, sync::Arc, time::Duration};

use halite_schedule::{Fire, Table};
use halite_store::Op;
use halite_value::{Dict, Value, entries};
use jiff::Zoned;
use parking_lot::Mutex;

use crate::{
    Master, blocking, orchestration,
    runners::{Call, Outcome, fun_args},
};

/// However far the next job is: the clock may have been set.
const LOOK: Duration = Duration::from_secs(30);

/// How many runs of each job there are.
type Running = Arc<Mutex<HashMap<String, usize>>>;

/// Runs the schedule for as long as the master runs.
pub(crate) async fn run(master: Arc<Master>) {
    let running = Running::default();
    for (call, record) in orchestration::unfinished(&master).await {
        if let (Some(name), Some(Value::Dict(job))) =
            (record.get_str("schedule"), record.get("job"))
        {
            tracing::info!("Resuming the orchestration {} of the scheduled job {name}", call.jid);
            start(&master, &running, Due { name: name.to_string(), job, call });
        }
    }
    let mut table = Table::new();
    match master.settings.opts.get("schedule") {
        Some(Value::Dict(schedule)) if !schedule.is_empty() => table.set_config(&schedule),
        // Nothing is ever added to a master's schedule while it runs.
        _ => return,
    }
    loop {
        let now = Zoned::now();
        let fires = {
            let running = running.lock();
            let count = |name: &str| running.get(name).copied().unwrap_or(0);
            table.tick(&now, &count, &random)
        };
        for fire in fires {
            tracing::info!("Running scheduled job: {}", fire.name);
            start(&master, &running, Due::new(&master, fire));
        }
        let wait = table.next().map_or(LOOK, |next| {
            let wait = next.duration_since(now.timestamp());
            Duration::try_from(wait).unwrap_or_default().clamp(Duration::from_millis(10), LOOK)
        });
        tokio::time::sleep(wait).await;
    }
}

fn start(master: &Arc<Master>, running: &Running, due: Due) {
    let (master, running) = (master.clone(), Arc::clone(running));
    *running.lock().entry(due.name.clone()).or_default() += 1;
    tokio::spawn(async move {
        let name = due.name.clone();
        work(&master, due).await;
        if let Some(count) = running.lock().get_mut(&name) {
            *count -= 1;
        }
    });
}

/// A job whose time has come.
struct Due {
    name: String,
    /// As the schedule describes it.
    job: Dict,
    call: Call,
}

impl Due {
    fn new(master: &Master, fire: Fire) -> Self {
        let args = match fire.job.get("args") {
            None | Some(Value::Null) => Vec::new(),
            Some(args) => args.items_of_sequence().unwrap_or_else(|| vec![args]),
        };
        let kwargs = match fire.job.get("kwargs") {
            Some(Value::Dict(kwargs)) => kwargs.deep_copy(),
            _ => Dict::new(),
        };
        let function = fire.function.as_str().into();
        let call =
            Call { function, args, kwargs, user: "root".into(), jid: master.jobs.next_jid() };
        Self { name: fire.name, job: fire.job, call }
    }
}

/// Returns a number from 0 up to and with `most`. Nothing secret depends on it.
fn random(most: u64) -> u64 {
    use std::hash::{BuildHasher, Hasher};
    let bits = std::hash::RandomState::new().build_hasher().finish();
    bits % (most + 1)
}

/// Returns the returners a job's return goes to: its own, and those of all jobs.
fn returners(master: &Master, job: &Dict) -> Vec<String> {
    let given = [job.get("returner"), master.settings.opts.get("schedule_returner")];
    let given = given.into_iter().flatten().filter(Value::truthy);
    let names = given.flat_map(|names| names.items_of_sequence().unwrap_or_else(|| vec![names]));
    let split = |name: Value| name.to_str().split(',').map(str::to_owned).collect::<Vec<_>>();
    names.flat_map(split).collect()
}

async fn work(master: &Arc<Master>, due: Due) {
    let Due { name, job, call } = due;
    let (jid, function) = (call.jid.clone(), call.function.clone());
    let fun_args = fun_args(&call.args, &call.kwargs);
    // An orchestration goes on after a crash of the master, and its end is told as if there was none.
    let about = entries! { "schedule" => name.as_str(), "job" => &job };
    let open = master.open_orchestration(&call, about).await;
    let owner = master.clone();
    let outcome = blocking(move || {
        let runners = owner.runners.clone();
        runners.run(&owner, &call)
    })
    .await;
    let outcome = match outcome {
        Ok(Some(outcome)) => outcome,
        Ok(None) => {
            tracing::error!("Scheduled job \"{name}\": '{function}' is not available.");
            Outcome { value: format!("'{function}' is not available.").into(), success: false }
        }
        Err(error) => Outcome { value: error.to_string().into(), success: false },
    };
    let id = Value::from(&master.settings.id);
    let ret = entries! {
        "id" => &id, "fun" => function.as_str(), "fun_args" => fun_args,
        "schedule" => name.as_str(), "jid" => &jid, "pid" => std::process::id(),
        "return" => outcome.value, "retcode" => i64::from(!outcome.success),
        "success" => outcome.success,
    };
    if let Some(metadata @ Value::Dict(_)) = job.get("metadata") {
        ret.insert("metadata", metadata);
    }
    let returners = returners(master, &job);
    let is_returned = !returners.is_empty();
    if is_returned {
        let (owner, job, ret) = (master.clone(), job.clone(), ret.shallow_copy());
        let given = blocking(move || {
            let runners = owner.runners.clone();
            runners.deliver(&owner, &returners, &job, &ret);
        });
        if let Err(error) = given.await {
            tracing::error!("The returners of the scheduled job {name}: {error}");
        }
    }
    if !job.get("return_job").is_none_or(|wanted| wanted.truthy()) {
        return;
    }
    let is_kept = job.get("return_job").is_none_or(|wanted| wanted != "nocache");
    if master.settings.opts.bool("job_cache") && (is_kept || is_returned) {
        let kept = ret.shallow_copy();
        kept.insert("cmd", "_return");
        let load = entries! {
            "jid" => &jid, "fun" => function.as_str(), "arg" => ret.get("fun_args"),
            "tgt" => &id, "tgt_type" => "list", "id" => &id, "user" => "root",
            "schedule" => name.as_str(), "minions" => Value::list([id.clone()]),
        };
        let ops = vec![
            Op::Job { jid: jid.to_string(), load: load.into() },
            Op::Return { jid: jid.to_string(), minion: id.to_str().to_string(), load: kept.into() },
        ];
        if let Err(error) = master.store.write(ops).await {
            tracing::error!("The return of the scheduled job {} is not kept: {error}", name);
        }
    }
    if !is_returned {
        ret.insert("jid", if is_kept { "req" } else { "nocache" });
    }
    ret.insert("cmd", "_return");
    master.bus.fire("__schedule_return".to_owned(), ret);
    // Only now: a crash before this makes the next master tell the end once more, not never.
    drop(open);
}
