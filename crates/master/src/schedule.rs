//! The master's schedule: runs runners when their time has come.
//!
//! Which are due is decided by the crate `schedule`. What a runner gave is told by an event
//! `__schedule_return`, as Salt does, and kept with the jobs under the master's id.

use std::{collections::HashMap, sync::Arc, time::Duration};

use halite_schedule::{Fire, Table};
use halite_store::Op;
use halite_value::{Dict, Value, entries};
use jiff::Zoned;
use parking_lot::Mutex;

use crate::{
    Master, blocking,
    runners::{Call, Outcome},
};

/// However far the next job is: the clock may have been set.
const LOOK: Duration = Duration::from_secs(30);

/// Runs the schedule for as long as the master runs.
pub(crate) async fn run(master: Arc<Master>) {
    let mut table = Table::new();
    match master.settings.opts.get("schedule") {
        Some(Value::Dict(schedule)) if !schedule.is_empty() => table.set_config(&schedule),
        // Nothing is ever added to a master's schedule while it runs.
        _ => return,
    }
    let running: Arc<Mutex<HashMap<String, usize>>> = Arc::default();
    loop {
        let now = Zoned::now();
        let fires = {
            let running = running.lock();
            let count = |name: &str| running.get(name).copied().unwrap_or(0);
            table.tick(&now, &count, &random)
        };
        for fire in fires {
            tracing::info!("Running scheduled job: {}", fire.name);
            let (master, running) = (master.clone(), Arc::clone(&running));
            *running.lock().entry(fire.name.clone()).or_default() += 1;
            tokio::spawn(async move {
                let name = fire.name.clone();
                work(&master, fire).await;
                if let Some(count) = running.lock().get_mut(&name) {
                    *count -= 1;
                }
            });
        }
        let wait = table.next().map_or(LOOK, |next| {
            let wait = next.duration_since(now.timestamp());
            Duration::try_from(wait).unwrap_or_default().clamp(Duration::from_millis(10), LOOK)
        });
        tokio::time::sleep(wait).await;
    }
}

/// Returns a number from 0 up to and with `most`. Nothing secret depends on it.
fn random(most: u64) -> u64 {
    use std::hash::{BuildHasher, Hasher};
    let bits = std::hash::RandomState::new().build_hasher().finish();
    bits % (most + 1)
}

async fn work(master: &Arc<Master>, fire: Fire) {
    let jid = master.jobs.next_jid();
    let job = fire.job;
    let mut fun_args = match job.get("args") {
        None | Some(Value::Null) => Vec::new(),
        Some(args) => args.items_of_sequence().unwrap_or_else(|| vec![args]),
    };
    let kwargs = match job.get("kwargs") {
        Some(Value::Dict(kwargs)) => kwargs.deep_copy(),
        _ => Dict::new(),
    };
    let call = Call {
        function: fire.function.as_str().into(),
        args: fun_args.clone(),
        kwargs: kwargs.clone(),
        user: "root".into(),
        jid: jid.clone(),
    };
    if !kwargs.is_empty() {
        fun_args.push(kwargs.into());
    }
    let (owner, name) = (master.clone(), fire.function.clone());
    let outcome = blocking(move || {
        let runners = owner.runners.clone();
        runners.run(&owner, &call)
    })
    .await;
    let outcome = match outcome {
        Ok(Some(outcome)) => outcome,
        Ok(None) => {
            tracing::error!("Scheduled job \"{}\": '{name}' is not available.", fire.name);
            Outcome { value: format!("'{name}' is not available.").into(), success: false }
        }
        Err(error) => Outcome { value: error.to_string().into(), success: false },
    };
    let id = Value::from(&master.settings.id);
    let ret = entries! {
        "cmd" => "_return", "id" => &id, "fun" => fire.function.as_str(), "fun_args" => fun_args,
        "schedule" => fire.name.as_str(), "jid" => "req", "pid" => std::process::id(),
        "return" => outcome.value, "retcode" => i64::from(!outcome.success),
        "success" => outcome.success,
    };
    if let Some(metadata @ Value::Dict(_)) = job.get("metadata") {
        ret.insert("metadata", metadata);
    }
    if !job.get("return_job").is_none_or(|wanted| wanted.truthy()) {
        return;
    }
    if master.settings.opts.bool("job_cache") {
        let kept = ret.shallow_copy();
        kept.insert("jid", &jid);
        let load = entries! {
            "jid" => &jid, "fun" => fire.function.as_str(), "arg" => ret.get("fun_args"),
            "tgt" => &id, "tgt_type" => "list", "id" => &id, "user" => "root",
            "schedule" => fire.name.as_str(), "minions" => Value::list([id.clone()]),
        };
        let ops = vec![
            Op::Job { jid: jid.to_string(), load: load.into() },
            Op::Return { jid: jid.to_string(), minion: id.to_str().to_string(), load: kept.into() },
        ];
        if let Err(error) = master.store.write(ops).await {
            tracing::error!("The return of the scheduled job {} is not kept: {error}", fire.name);
        }
    }
    master.bus.fire("__schedule_return".to_owned(), ret);
}
