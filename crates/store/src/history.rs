//! Jobs as people ask for them: a job with its minions, returns and states in one dict.
//!
//! The master answers with these while it runs, and `salt-run jobs.*` when it does not.

use halite_value::{Dict, Value, entries};

use crate::{Error, State, Store, StoredJob};

const PAGE: usize = 1000;

fn with_jid(job: StoredJob) -> Value {
    let load = job.load;
    if let Value::Dict(load) = &load {
        load.insert("jid", job.jid);
    }
    load
}

/// Returns the jobs that fit, newest first, each with its id.
pub fn jobs(
    store: &dyn Store,
    limit: usize,
    fits: impl Fn(&Value) -> bool,
) -> Result<Value, Error> {
    let mut found = Vec::new();
    let mut before: Option<String> = None;
    while found.len() < limit {
        let page = store.jobs(before.as_deref(), PAGE)?;
        let Some(last) = page.last() else { break };
        before = Some(last.jid.clone());
        found.extend(page.into_iter().map(with_jid).filter(&fits));
    }
    found.truncate(limit);
    Ok(found.into())
}

/// Returns everything about a job; `Null` if nothing is known of it.
pub fn job(store: &dyn Store, jid: &str) -> Result<Value, Error> {
    let stored = store.job(jid)?;
    let returns: Dict = store.returns(jid)?.into_iter().collect();
    if stored.is_none() && returns.is_empty() {
        return Ok(Value::Null);
    }
    let states = Dict::new();
    let load = stored.map(with_jid).unwrap_or_default();
    for id in load.get("minions").and_then(|ids| ids.items_of_sequence()).unwrap_or_default() {
        states.insert(id.to_str(), State::Queued.name());
    }
    for (id, state) in store.states(jid)? {
        states.insert(id, state.name());
    }
    Ok(entries! {
        "jid" => jid, "load" => load.clone(), "minions" => load.get("minions"),
        "returns" => returns, "states" => states,
    }
    .into())
}
