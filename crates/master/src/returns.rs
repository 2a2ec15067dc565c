//! What minions answer: stored first, then shown.
//!
//! A return that was acknowledged is on disk; a return that anybody sees is, too. A second return of
//! the same minion for the same job is not stored, but its event is fired again, as in Salt.

use std::sync::Arc;

use halite_client::Progress;
use halite_store::Op;
use halite_value::{Dict, Key, SmolStr, Value, entries};
use halite_wire::{Jid, MinionId, Return, Tag};

use crate::{Counters, Error, Master, blocking, relays};

/// Returns in one message; no honest minion sends more.
const MOST: usize = 1000;

/// How far ahead of the clock a job id may be.
const AHEAD: i64 = 86_400;

/// A return whose sender is who it says it is.
struct Taken {
    jid: Jid,
    /// Whose it is: the minion's, or a resource's that it speaks for.
    filed: MinionId,
    load: Dict,
    is_kept: bool,
    /// What is to be stored.
    ops: Vec<Op>,
}

/// Takes a return from the minion `id`. True if it may be acknowledged.
pub(crate) async fn take(
    master: &Arc<Master>,
    id: &MinionId,
    ret: &Return,
    load: Dict,
) -> Result<bool, Error> {
    let Some(taken) = read(master, id, ret, load)? else { return Ok(false) };
    keep(master, vec![taken]).await?;
    Ok(true)
}

/// Takes several of one minion at once. What is none is told of, and costs the others nothing.
pub(crate) async fn take_all(
    master: &Arc<Master>,
    id: &MinionId,
    all: Vec<Value>,
    sent: Option<Value>,
) -> Result<(), Error> {
    if all.len() > MOST {
        return Err(Error::Other(format!("{} returns are too many for one message", all.len())));
    }
    let mut taken = Vec::with_capacity(all.len());
    for one in all {
        let Value::Dict(load) = one else { continue };
        if let Some(sent) = &sent {
            load.insert("ts", sent);
        }
        match Return::read(&load).map_err(Error::from).and_then(|ret| read(master, id, &ret, load))
        {
            Ok(one) => taken.extend(one),
            Err(error) => tracing::error!("A return of {id} cannot be read: {error}"),
        }
    }
    keep(master, taken).await
}

/// Finds out whose return it is, and of which job; `None` if it may not be taken.
fn read(master: &Master, id: &MinionId, ret: &Return, load: Dict) -> Result<Option<Taken>, Error> {
    if ret.id != *id {
        tracing::warn!("{id} returned in the name of {}", ret.id);
        Counters::count(&master.counters.impersonations);
        return Ok(None);
    }
    // A resource's return is filed under the resource, which its minion speaks for.
    let filed = match load.get("resource_id") {
        Some(Value::Str(resource)) => MinionId::new(&resource)?,
        _ => id.clone(),
    };
    if filed != *id && !master.manages(id, &filed) {
        tracing::warn!("{id} returned for {filed}, which it does not manage");
        return Ok(None);
    }
    let (jid, is_new) = match ret.jid.as_str() {
        "req" | "nocache" => (master.jobs.next_jid(), true),
        known => (Jid::new(known)?, false),
    };
    if !is_new && is_ahead(&jid) {
        tracing::warn!("{id} returned the job {jid}, which is in the future");
        return Ok(None);
    }
    load.insert("jid", &jid);
    if filed != *id {
        load.insert("id", &filed);
    }
    if ret.jid == "req" {
        // Nobody published it: who reads its event learns from it whom it was for, as of others.
        load.get_or_insert_with("arg", || {
            load.get("fun_args").unwrap_or_else(|| Value::list([""; 0]))
        });
        load.insert("tgt_type", "glob");
        load.insert("tgt", id.as_str());
    }
    // One time for what is kept and for what is shown.
    load.get_or_insert_with("_stamp", || halite_wire::stamp().into());
    let mut ops = Vec::with_capacity(2);
    let is_kept = master.settings.opts.bool("job_cache") && ret.jid != "nocache";
    if is_kept {
        if is_new {
            let job = own_job(&load, &jid);
            ops.push(Op::Job { jid: jid.to_string(), load: job.into() });
        }
        let kept = load.shallow_copy();
        kept.remove("cmd");
        ops.push(Op::Return { jid: jid.to_string(), minion: filed.to_string(), load: kept.into() });
    }
    Ok(Some(Taken { jid, filed, load, is_kept, ops }))
}

/// Stores returns, then shows them.
async fn keep(master: &Arc<Master>, mut all: Vec<Taken>) -> Result<(), Error> {
    step(master, "return-received");
    let ops: Vec<Op> = all.iter_mut().flat_map(|one| std::mem::take(&mut one.ops)).collect();
    if !ops.is_empty() {
        match master.store.write(ops).await {
            Ok(receipt) => {
                for Taken { jid, filed, .. } in all.iter().filter(|one| one.is_kept) {
                    if receipt.duplicates < all.len() {
                        tracing::info!(%jid, minion_id = %filed, "Got return from {filed} for job {jid}");
                    } else {
                        tracing::info!("Duplicate return of {filed} for the job {jid}");
                    }
                }
            }
            Err(error) => {
                // Not acknowledged: the minion tries again. Who waits for it sees it anyway.
                for Taken { jid, filed, load, .. } in all {
                    tracing::error!("The return of {filed} for {jid} was not stored: {error}");
                    show(master, &jid, &filed, load.shallow_copy());
                }
                return Err(Error::Unanswered);
            }
        }
        step(master, "return-stored");
        for one in all.iter().filter(|one| one.is_kept) {
            keep_for_salt(master, &one.jid, &one.filed, &one.load).await?;
        }
        step(master, "return-cached");
    }
    for Taken { jid, filed, load, .. } in all {
        show(master, &jid, &filed, load);
    }
    step(master, "return-shown");
    Ok(())
}

/// Dies on the spot if a test asked for it (`halite: {die_at: …}`), as in a power cut. Absent from
/// release builds.
pub(crate) fn step(master: &Master, name: &str) {
    if cfg!(debug_assertions) && master.settings.own("die_at").is_some_and(|at| at == *name) {
        std::process::abort();
    }
}

/// Fires the event and tells the followers.
pub(crate) fn show(master: &Master, jid: &Jid, id: &MinionId, load: Dict) {
    failed_states(master, jid, id, &load);
    let fired = master.bus.fire(Tag::JobReturn(jid.to_string(), id.to_string()).to_string(), load);
    master.jobs.returned(jid, id, &fired.data);
}

/// For a failed state run, an event per failed state, as Salt fires them.
fn failed_states(master: &Master, jid: &Jid, id: &MinionId, load: &Dict) {
    let Some(Value::Str(fun)) = load.get("fun") else { return };
    if !matches!(fun.as_str(), "state.highstate" | "state.sls" | "state.apply") {
        return;
    }
    let failed = load.get("retcode").is_some_and(|code| code.truthy());
    let Some(Value::Dict(states)) = load.get("return").filter(|_| failed) else { return };
    for (tag, state) in &states {
        let Value::Dict(state) = state else { continue };
        if state.get("result") != Some(Value::Bool(false)) {
            continue;
        }
        let tag = tag.to_str();
        let parts: Vec<&str> = tag.split("_|-").collect();
        let (Some(kind), Some(name)) = (parts.first(), parts.last()) else { continue };
        let function = format!("{kind}.{name}");
        let data = state.shallow_copy();
        data.update(&entries! {
            "jid" => jid, "id" => id, "success" => false, "return" => format!("Error: {function}"),
            "fun" => &function, "retcode" => load.get("retcode"),
        });
        master.bus.fire(format!("salt/job/{jid}/sub/{id}/error/{fun}"), data);
    }
}

/// The job of a return that no master published: a schedule's, or `salt-call`.
fn own_job(load: &Dict, jid: &Jid) -> Dict {
    entries! {
        "cmd" => "_return", "jid" => jid, "fun" => load.get("fun"),
        "arg" => load.get("fun_args"), "tgt" => load.get("id"), "tgt_type" => "glob",
        "id" => load.get("id"), "user" => load.get("user"), "schedule" => load.get("schedule"),
        "minions" => Value::list([load.get("id").unwrap_or_default()]),
    }
}

async fn keep_for_salt(
    master: &Arc<Master>,
    jid: &Jid,
    id: &MinionId,
    load: &Dict,
) -> Result<(), Error> {
    if master.local_cache.lacks(jid) {
        return Ok(());
    }
    let (owner, jid, id, load) = (master.clone(), jid.clone(), id.clone(), load.clone());
    let saved = blocking(move || owner.local_cache.save_return(&jid, &id, &load)).await?;
    if let Err(error) = saved {
        tracing::warn!("A return was not written to Salt's job cache: {error}");
    }
    Ok(())
}

fn is_ahead(jid: &Jid) -> bool {
    let latest = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(AHEAD);
    let latest = jiff::tz::TimeZone::UTC.to_datetime(latest);
    let date = [i64::from(latest.year()), latest.month().into(), latest.day().into()];
    let time = [latest.hour(), latest.minute(), latest.second()].map(i64::from);
    let latest = date.into_iter().chain(time).fold(0, |number, part| number * 100 + part);
    jid.as_str().get(..14).and_then(|time| time.parse::<i64>().ok()).is_some_and(|at| at > latest)
}

/// Keeps a job that a master below this one gave; what this one gave is kept already.
async fn keep_job(
    master: &Arc<Master>,
    jid: &Jid,
    job: &Dict,
    minions: &[SmolStr],
) -> Result<(), Error> {
    let (owner, wanted) = (master.clone(), jid.clone());
    if blocking(move || owner.store.job(&wanted)).await??.is_some() {
        relays::extend(master, jid.clone(), minions.to_vec());
        return Ok(());
    }
    let load = job.shallow_copy();
    for own in ["Minions", "key", "token", "password", "auth_list"] {
        load.remove(own);
    }
    load.insert("minions", Value::list(minions));
    master.store.write(vec![Op::Job { jid: jid.to_string(), load: load.into() }]).await?;
    Ok(())
}

/// Returns the return of one minion below a syndic; `None` if its name is none.
fn below(entry: &Dict, jid: &Jid, id: &Key, ret: &Value) -> Option<(MinionId, Dict)> {
    let id = MinionId::new(&id.to_str()).ok()?;
    let load = match ret {
        Value::Dict(ret) => ret.shallow_copy(),
        other => entries! { "return" => other },
    };
    load.update(&entries! { "jid" => jid, "id" => &id, "fun" => entry.get("fun") });
    for name in ["master_id", "out"] {
        if let Some(value) = entry.get(name) {
            load.insert(name, value);
        }
    }
    // One time for what is kept and for what is shown.
    load.get_or_insert_with("_stamp", || halite_wire::stamp().into());
    Some((id, load))
}

/// Takes what a syndic collected: returns of the minions below it.
pub(crate) async fn take_syndic(
    master: &Arc<Master>,
    syndic: &MinionId,
    load: &Value,
) -> Result<(), Error> {
    if !master.settings.order_masters {
        tracing::warn!("{syndic} sent returns of others, but order_masters is off");
        return Ok(());
    }
    let each = load.items_of_sequence().unwrap_or_else(|| vec![load.clone()]);
    for entry in each {
        let Value::Dict(entry) = entry else { continue };
        let Some(Value::Str(jid)) = entry.get("jid") else { continue };
        let Ok(jid) = Jid::new(&jid) else { continue };
        let Some(Value::Dict(returns)) = entry.get("return") else { continue };
        master.mark_syndic(syndic);
        if let Some(Value::Dict(job)) = entry.get("load").filter(halite_value::Value::truthy) {
            let ids: Vec<SmolStr> = job
                .get("Minions")
                .and_then(|ids| ids.items_of_sequence())
                .unwrap_or_default()
                .iter()
                .map(Value::to_str)
                .filter(|id| MinionId::new(id).is_ok())
                .collect();
            master.jobs.expect(&jid, &ids, syndic.as_str(), &[]);
            keep_job(master, &jid, &job, &ids).await?;
        }
        let all: Vec<(MinionId, Dict)> =
            returns.into_iter().filter_map(|(id, ret)| below(&entry, &jid, &id, &ret)).collect();
        // Together: each on its own would wait for the disk.
        let kept = all.iter().map(|(id, load)| Op::Return {
            jid: jid.to_string(),
            minion: id.to_string(),
            load: load.shallow_copy().into(),
        });
        if let Err(error) = master.store.write(kept.collect()).await {
            // Not acknowledged: the syndic tries again.
            tracing::error!("The returns of {syndic} for {jid} were not stored: {error}");
            return Err(Error::Unanswered);
        }
        for (id, load) in all {
            keep_for_salt(master, &jid, &id, &load).await?;
            show(master, &jid, &id, load);
        }
    }
    Ok(())
}

impl Master {
    /// Tells whether a minion manages a resource.
    fn manages(&self, id: &MinionId, resource: &MinionId) -> bool {
        let Ok(Some(Value::Dict(resources))) = self.store.get("resources", id) else {
            return false;
        };
        resources.into_iter().any(|(_, ids)| {
            let ids = ids.items_of_sequence().unwrap_or_default();
            ids.iter().any(|own| *own == *resource.as_str())
        })
    }

    /// A part of a return, or a start, came as an event.
    pub(crate) fn progress(&self, tag: &Tag, data: &Dict) {
        match tag {
            Tag::JobProgress(jid, _, _) => {
                self.jobs.tell(jid, &Progress::Partial(data.clone()));
            }
            Tag::JobStart(jid, id) => self.jobs.step(jid, id, halite_store::State::Started),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_of_tomorrow_is_ahead() {
        assert!(!is_ahead(&Jid::now()));
        assert!(is_ahead(&Jid::new("99991231235959000000").unwrap()));
        assert!(!is_ahead(&Jid::new("20200101000000000000").unwrap()));
        let in_hours = |hours| {
            let at = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(hours);
            let at = at.to_zoned(jiff::tz::TimeZone::UTC).strftime("%Y%m%d%H%M%S%6f").to_string();
            Jid::new(&at).unwrap()
        };
        assert!(!is_ahead(&in_hours(23)) && is_ahead(&in_hours(25)));
    }
}
