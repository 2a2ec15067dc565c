//! What a reaction does.
//!
//! The reactions to an event begin in the order of its files. A `local` one is done when its job is published,
//! unless another reaction needs it: then, when every minion has returned, and well. Runner, wheel
//! and caller reactions run on threads, as many at a time as there are workers; who needs one waits
//! for its end.

use std::{sync::Arc, time::Duration};

use halite_client::Progress;
use halite_value::{Dict, SmolStr, Value};
use tokio::{sync::watch, time::Instant};

use super::{Kind, Reaction, USER, count, failed, reaction::job_args};
use crate::{
    Master, blocking,
    bus::{Fired, Item, Queue},
    publish::{self, Rights, Wish},
    runners::{self, Call},
};

/// How long a reaction waits for a minion whose key it needed accepted.
const ARRIVAL: Duration = Duration::from_secs(120);
/// How long a job is waited for that another reaction needs.
const JOB: Duration = Duration::from_secs(3600);

/// How a reaction ended. The ids are minions whose keys were accepted by it.
#[derive(Clone, Debug)]
enum Ended {
    Well(Vec<SmolStr>),
    Badly(String),
    /// What it was to follow did not fail.
    NotDue,
}

type Watched = watch::Receiver<Option<Ended>>;

/// Performs the reactions to an event. Returns when all have begun that need nobody.
pub(super) async fn all(master: &Arc<Master>, event: &Arc<Fired>, list: Vec<Reaction>) {
    let reactor = &master.reactor;
    let is_needed = |at: usize| {
        list.iter().any(|other| other.needs.contains(&at) || other.after_failure.contains(&at))
    };
    let needed: Vec<bool> = (0..list.len()).map(is_needed).collect();
    let mut watched: Vec<Watched> = Vec::with_capacity(list.len());
    for (reaction, needed) in list.into_iter().zip(needed) {
        let Ok(permit) = reactor.performing.clone().acquire_owned().await else { return };
        let those = |list: &[usize]| -> Vec<Watched> {
            list.iter().filter_map(|other| watched.get(*other)).cloned().collect()
        };
        let (needs, failures) = (those(&reaction.needs), those(&reaction.after_failure));
        let (tell, told) = watch::channel(None);
        watched.push(told);
        count(&reactor.counters.reactions);
        let (master, event) = (master.clone(), event.clone());
        // Jobs are published in the order of the file.
        let waits =
            !needs.is_empty() || !failures.is_empty() || reaction.kind != Kind::Local || needed;
        let work = async move {
            let ended = match wait_for(&master, needs).await {
                Ok(()) if !one_failed(failures).await => Ended::NotDue,
                Ok(()) => perform(&master, &reaction, needed).await,
                Err(why) => Ended::Badly(why),
            };
            let reactor = &master.reactor;
            match &ended {
                Ended::Well(_) | Ended::NotDue => count(&reactor.counters.done),
                Ended::Badly(why) => {
                    let what = format!(
                        "{}: {}.{}: {why}",
                        reaction.id,
                        reaction.kind.word(),
                        reaction.fun
                    );
                    let sls = &reaction.sls;
                    tracing::error!("The reaction {what} (file {sls}, tag {}) failed", event.tag);
                    failed(reactor, &event, sls, Some(&reaction.id), &what);
                }
            }
            let _ = tell.send(Some(ended));
            drop(permit);
        };
        if waits {
            tokio::spawn(work);
        } else {
            work.await;
        }
    }
}

/// Waits until the reactions needed have succeeded.
async fn wait_for(master: &Arc<Master>, needs: Vec<Watched>) -> Result<(), String> {
    let mut arriving = Vec::new();
    for mut need in needs {
        let ended = need.wait_for(Option::is_some).await.ok().and_then(|ended| ended.clone());
        match ended {
            Some(Ended::Well(ids)) => arriving.extend(ids),
            Some(Ended::NotDue) => return Err("a required reaction was not due".into()),
            Some(Ended::Badly(_)) => return Err("a required reaction failed".into()),
            None => return Err("a required reaction came to no end".into()),
        }
    }
    arrival(master, &arriving).await;
    Ok(())
}

/// Waits for the reactions whose failure is to be followed; true if there are none.
async fn one_failed(others: Vec<Watched>) -> bool {
    let mut failed = others.is_empty();
    for mut other in others {
        let ended = other.wait_for(Option::is_some).await.ok().and_then(|ended| ended.clone());
        failed |= matches!(ended, Some(Ended::Badly(_)) | None);
    }
    failed
}

/// Waits for minions that have just been let in: a job published now would not reach them.
async fn arrival(master: &Arc<Master>, ids: &[SmolStr]) {
    if ids.is_empty() {
        return;
    }
    let starts = master.bus.subscribe("salt/minion/", 10_000);
    let until = Instant::now() + ARRIVAL;
    let mut open: Vec<&SmolStr> = ids.iter().collect();
    loop {
        open.retain(|id| !master.hub.is_connected(id));
        if open.is_empty() {
            return;
        }
        let wait = tokio::time::timeout(Duration::from_millis(200), starts.next()).await;
        if let Ok(Some(Item::One(event))) = wait {
            open.retain(|id| event.tag != format!("salt/minion/{id}/start"));
        }
        if Instant::now() >= until {
            let names: Vec<&str> = open.iter().map(|id| id.as_str()).collect();
            tracing::warn!("{} did not connect after its key was accepted", names.join(", "));
            return;
        }
    }
}

async fn perform(master: &Arc<Master>, reaction: &Reaction, needed: bool) -> Ended {
    match reaction.kind {
        Kind::Local => local(master, reaction, needed).await,
        kind => on_thread(master, kind, reaction).await,
    }
}

async fn local(master: &Arc<Master>, reaction: &Reaction, needed: bool) -> Ended {
    let kwargs = Dict::new();
    if let Some(metadata) = reaction.low.get("metadata") {
        kwargs.insert("metadata", metadata);
    }
    let kind = reaction.text("tgt_type").or_else(|| reaction.text("expr_form"));
    let wish = Wish {
        tgt: reaction.low.get("tgt").unwrap_or_default(),
        tgt_type: kind.unwrap_or_else(|| "glob".into()).into(),
        fun: reaction.fun.as_str().into(),
        arg: job_args(reaction),
        ret: reaction.text("ret").unwrap_or_default().into(),
        jid: SmolStr::default(),
        user: master.settings.user.clone(),
        kwargs,
        timeout: reaction.low.get("timeout").and_then(|seconds| seconds.to_int()),
        id: None,
        on_disk: false,
    };
    match publish::publish(master, wish, Rights::All, needed).await {
        Err(refusal) => Ended::Badly(refusal.message),
        Ok((done, queue)) => {
            if let Some(error) = &done.published.error {
                tracing::warn!("The reaction {}: {error}", reaction.id);
                return match needed {
                    true => Ended::Badly(error.to_string()),
                    false => Ended::Well(Vec::new()),
                };
            }
            match queue {
                Some(queue) if needed => outcome(&queue).await,
                _ => Ended::Well(Vec::new()),
            }
        }
    }
}

/// Waits for a job to end.
async fn outcome(queue: &Arc<Queue<Progress>>) -> Ended {
    let all = async {
        let mut bad = Vec::new();
        while let Some(next) = queue.next().await {
            match next {
                Item::One(Progress::Returned(load)) => {
                    let id = load.get("id").map(|id| id.to_str()).unwrap_or_default();
                    let code = load.get("retcode").and_then(|code| code.as_int()).unwrap_or(0);
                    let well = load.get("success").is_none_or(|success| success.truthy());
                    if code != 0 || !well {
                        bad.push(id);
                    }
                }
                Item::One(Progress::Lost { id, .. }) => bad.push(id),
                Item::One(Progress::Back { id }) => bad.retain(|own| *own != id),
                Item::One(Progress::Done) => break,
                Item::One(_) | Item::Gap(_) => {}
            }
        }
        bad
    };
    match tokio::time::timeout(JOB, all).await {
        Ok(bad) if bad.is_empty() => Ended::Well(Vec::new()),
        Ok(bad) => Ended::Badly(format!("it failed on {}", bad.join(", "))),
        Err(_) => Ended::Badly("it took too long".into()),
    }
}

async fn on_thread(master: &Arc<Master>, kind: Kind, reaction: &Reaction) -> Ended {
    let Ok(turn) = master.reactor.threads.clone().acquire_owned().await else {
        return Ended::Badly("the master is going down".into());
    };
    let call = Call {
        function: reaction.fun.as_str().into(),
        args: reaction.args.clone(),
        kwargs: reaction.kwargs.clone(),
        user: USER.into(),
        jid: master.jobs.next_jid(),
    };
    let data = match kind {
        Kind::Runner => runners::run_in_turn(master, call, Some(turn)).await,
        Kind::Wheel => runners::wheel_in_turn(master, call, Some(turn)).await,
        Kind::Caller | Kind::Local => {
            let owner = master.clone();
            let ran = blocking(move || {
                let _turn = turn;
                owner.runners.clone().execution(&owner, &call)
            })
            .await;
            return match ran {
                Ok(Some(done)) if done.success => Ended::Well(Vec::new()),
                Ok(Some(done)) => Ended::Badly(done.value.to_string()),
                Ok(None) => Ended::Badly(format!("'{}' is not available.", reaction.fun)),
                Err(error) => Ended::Badly(error.to_string()),
            };
        }
    };
    let ret = data.get("return").unwrap_or_default();
    if data.get("success").is_some_and(|success| success.truthy()) {
        let accepts = kind == Kind::Wheel && reaction.fun.starts_with("key.accept");
        Ended::Well(if accepts { accepted(&ret) } else { Vec::new() })
    } else {
        Ended::Badly(ret.to_string())
    }
}

/// Returns the ids a `key.accept` accepted.
fn accepted(ret: &Value) -> Vec<SmolStr> {
    let ids = ret.get("minions").and_then(|ids| ids.items_of_sequence()).unwrap_or_default();
    ids.iter().map(Value::to_str).collect()
}
