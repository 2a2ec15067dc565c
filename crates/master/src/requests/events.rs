//! Events that minions send to the master's bus.
//!
//! A single event is fired with the whole request as its data, a list one by one. Minions may use
//! any tag of their own, but not the master's: what reactors and clients take for the master's
//! word (`salt/key`, `salt/job/…/new`, `salt/run/…`), and nothing in the name of another minion.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use halite_value::{Dict, SmolStr, Value};
use halite_wire::{MinionId, Tag};

use crate::{Counters, Master, quota::Verdict, relays};

/// Fires what a minion sent, if it does not send too much.
pub(crate) async fn take_in_turn(master: &Arc<Master>, id: &MinionId, load: &Dict) {
    let events = load.get("events").and_then(|events| events.items_of_sequence());
    // A syndic speaks for many.
    let is_syndic = load.get("pretag").is_some_and(|pretag| pretag.truthy());
    let number = if is_syndic && master.settings.order_masters {
        0
    } else {
        events.map_or(1, |events| events.len())
    };
    match master.quota.take(id.as_str(), number, Instant::now()) {
        Verdict::Now => {}
        Verdict::After(wait) => tokio::time::sleep(wait).await,
        Verdict::Dropped(told) => {
            master.counters.dropped_events.fetch_add(number as u64, Ordering::Relaxed);
            if let Some(dropped) = told {
                tracing::warn!(
                    "Minion {id} sends more than {} events per second (halite: {{minion_events: …}}): \
                     {dropped} dropped",
                    master.quota.rate()
                );
                let data = halite_value::entries! { "id" => id, "dropped" => dropped };
                master.bus.fire(format!("salt/minion/{id}/events_dropped"), data);
            }
            return;
        }
    }
    take(master, id, load);
}

/// Fires what a minion sent.
fn take(master: &Arc<Master>, id: &MinionId, load: &Dict) {
    let Some(events) = load.get("events").and_then(|events| events.items_of_sequence()) else {
        return take_one(master, id, load);
    };
    let pretag = load.get("pretag").filter(Value::truthy).map(|pretag| pretag.to_str());
    let is_syndic = pretag.is_some() && master.settings.order_masters;
    for event in events {
        let Value::Dict(event) = event else { continue };
        let Some(Value::Str(tag)) = event.get("tag") else { continue };
        let data = match event.get("data") {
            Some(Value::Dict(data)) => data,
            _ => event.shallow_copy(),
        };
        if let Some(pretag) = &pretag {
            if *pretag != format!("syndic/{id}") && !may_use(pretag, id) {
                refuse(master, id, pretag);
                continue;
            }
            if is_syndic {
                master.mark_syndic(id);
                if relays::hear(master, id, &tag, &data) {
                    continue;
                }
            }
            master.bus.fire(format!("{pretag}/{tag}"), data.shallow_copy());
        }
        if is_syndic && !is_masters(&tag) || may_use(&tag, id) {
            fire(master, id, tag, data);
        } else if pretag.is_none() {
            refuse(master, id, &tag);
        }
    }
}

fn take_one(master: &Master, id: &MinionId, load: &Dict) {
    let Some(Value::Str(tag)) = load.get("tag") else { return };
    if let Some(Value::Dict(grains)) = load.get("grains")
        && !grains.is_empty()
    {
        grains.insert("id", id);
        master.remember(id, grains, None);
    }
    if !may_use(&tag, id) {
        return refuse(master, id, &tag);
    }
    if tag.starts_with("salt/syndic/") || tag == "syndic_start" {
        master.mark_syndic(id);
    }
    fire(master, id, tag, load.shallow_copy());
}

fn fire(master: &Master, id: &MinionId, tag: SmolStr, data: Dict) {
    let parsed = Tag::from(tag.as_str());
    let fired = master.bus.fire(tag.to_string(), data);
    master.progress(&parsed, &fired.data);
    if matches!(parsed, Tag::MinionStart(_)) {
        tracing::debug!("Minion {id} started");
    }
}

fn refuse(master: &Master, id: &MinionId, tag: &str) {
    Counters::count(&master.counters.refused_events);
    tracing::warn!("Filtering blacklisted event tag {tag} from {id}");
}

/// Tags only the master itself fires.
fn is_masters(tag: &str) -> bool {
    let parts: Vec<&str> = tag.split('/').collect();
    matches!(
        *parts,
        ["key"]
            | ["salt", "key" | "auth" | "presence" | "run" | "wheel" | "cloud" | "cluster", ..]
            | ["salt", "fileserver" | "stats" | "netapi" | "batch" | "queue", ..]
            | ["salt", "job", _, "new" | "publish" | "return" | "error", ..]
            | ["cluster", ..]
    )
}

/// Tells whether a minion may use a tag: not the master's, and no other minion's.
fn may_use(tag: &str, id: &MinionId) -> bool {
    let own = |named: &str| named == id.as_str();
    if tag.is_empty() || tag.contains('\n') || is_masters(tag) {
        return false;
    }
    let parts: Vec<&str> = tag.split('/').collect();
    match *parts {
        ["salt", "minion" | "beacon" | "syndic", named, ..] => own(named),
        ["salt", "job", _, "ret" | "prog" | "start" | "sub", named, ..] => own(named),
        ["salt", "job", ..] => false,
        ["salt", "state_result", _, named, ..] => own(named),
        ["minion" | "resource", "refresh", named] => own(named),
        ["syndic", named, ..] => own(named),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minions_keep_to_their_own_tags() {
        let id = MinionId::new("web1").unwrap();
        for allowed in [
            "my/own/tag",
            "minion_start",
            "minion_ping",
            "_salt_error",
            "salt/minion/web1/start",
            "salt/beacon/web1/load/",
            "salt/job/20261115224046354303/prog/web1/1",
            "salt/job/20261115224046354303/start/web1",
            "salt/state_result/2026/web1/x",
            "salt/engines/hook/x",
            "state_True_True",
            "syndic_start",
        ] {
            assert!(may_use(allowed, &id), "{allowed}");
        }
        for refused in [
            "",
            "a\n\nb",
            "key",
            "salt/key",
            "salt/auth",
            "salt/presence/change",
            "salt/run/1/ret",
            "salt/wheel/1/new",
            "salt/cloud/vm/created",
            "salt/cluster/x",
            "cluster/peer/x",
            "salt/job/1/new",
            "salt/job/1/publish",
            "salt/job/1/ret/web2",
            "salt/job/1",
            "salt/minion/web2/start",
            "salt/beacon/web2/load/",
            "minion/refresh/web2",
            "syndic/web2/salt/job/1/new",
        ] {
            assert!(!may_use(refused, &id), "{refused}");
        }
    }
}
