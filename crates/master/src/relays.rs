//! Syndics: masters below this one (`order_masters`).
//!
//! An id is a syndic's once it said so (`syndic_start`) or returned for others; `cachedir/syndics`
//! remembers them, where Salt's clients look too. A syndic gets every job, whatever its target, and
//! never answers for itself: it tells who answers below it (an event `syndic/<id>/salt/job/<jid>/new`
//! with `minions`), and then their returns.
//!
//! A syndic further down is named by its path, `mid/low`. One of ours tells besides which minions it
//! keeps an eye on, and which of them went away: a list entry with the tag `halite/relay/<jid>`, which
//! is no event and goes no further than here.

use std::{collections::BTreeSet, fs, path::Path, sync::Arc};

use halite_client::Progress;
use halite_store::{Op, State};
use halite_value::{Dict, SmolStr, Value};
use halite_wire::{Jid, MinionId, Tag};
use parking_lot::RwLock;

use crate::{Master, blocking, presence::Kind};

/// The tag of what one of our syndics tells beside Salt's events.
const ASIDE: &str = "halite/relay/";

/// The ids that are syndics'.
#[derive(Default)]
pub(crate) struct Relays {
    ids: RwLock<BTreeSet<SmolStr>>,
    /// Held while the minions of a stored job are added to.
    pub(crate) extending: tokio::sync::Mutex<()>,
}

impl Relays {
    /// Reads what an earlier life knew. Blocking.
    pub(crate) fn load(folder: &Path) -> Self {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let ids = names.filter_map(|name| MinionId::new(&name).ok());
        let ids = ids.map(|id| SmolStr::from(id.as_str())).collect();
        Self { ids: RwLock::new(ids), ..Self::default() }
    }

    pub(crate) fn contains(&self, id: &str) -> bool {
        self.ids.read().contains(id)
    }

    fn add(&self, id: &str) -> bool {
        !self.contains(id) && self.ids.write().insert(id.into())
    }

    fn all(&self) -> Vec<SmolStr> {
        self.ids.read().iter().cloned().collect()
    }
}

/// What is known about the syndics as a job is published.
#[derive(Default)]
pub(crate) struct Below {
    /// Those that will tell, or may.
    pub(crate) relays: Vec<SmolStr>,
    /// Those of them that are ours, and connected.
    pub(crate) connected: Vec<SmolStr>,
    /// Those that certainly do not get the job.
    pub(crate) absent: Vec<SmolStr>,
}

impl Master {
    /// Notes that an id is a syndic's, as clients of Salt look for it.
    pub(crate) fn mark_syndic(&self, id: &MinionId) {
        if !self.relays.add(id.as_str()) {
            return;
        }
        let folder = self.settings.cachedir.join("syndics");
        let made =
            fs::create_dir_all(&folder).and_then(|()| fs::write(folder.join(id.as_str()), b""));
        if let Err(error) = made {
            tracing::warn!("Unable to note the syndic {id}: {error}");
        }
    }

    /// Sorts the syndics by what is known about their connection.
    pub(crate) fn below(&self) -> Below {
        let mut below = Below::default();
        if !self.settings.order_masters {
            return below;
        }
        let index = self.index.read();
        for id in self.relays.all().into_iter().filter(|id| index.is_accepted(id)) {
            if self.hub.is_connected(&id) {
                if self.presence.kind(&id) == Some(Kind::Named) {
                    below.connected.push(id.clone());
                }
                below.relays.push(id);
            } else if self.arriving.is_coming(&id) || self.presence.kind(&id).is_none() {
                below.relays.push(id);
            } else {
                below.absent.push(id);
            }
        }
        below
    }
}

/// Splits `syndic/mid/syndic/low/rest` into the path `mid/low` and the rest; `id` is the sender.
fn path<'a>(id: &str, mut tag: &'a str) -> (SmolStr, &'a str) {
    let mut path = id.to_owned();
    while let Some((name, rest)) = tag.strip_prefix("syndic/").and_then(|tag| tag.split_once('/')) {
        path = format!("{path}/{name}");
        tag = rest;
    }
    (path.into(), tag)
}

fn ids(data: &Dict, name: &str) -> Vec<SmolStr> {
    let items = data.get(name).and_then(|ids| ids.items_of_sequence()).unwrap_or_default();
    items.iter().map(Value::to_str).filter(|id| MinionId::new(id).is_ok()).collect()
}

/// Takes what a syndic tells of a job: true if it was meant for the master alone.
pub(crate) fn hear(master: &Arc<Master>, id: &MinionId, tag: &str, data: &Dict) -> bool {
    let (path, tag) = path(id.as_str(), tag);
    if let Some(jid) = tag.strip_prefix(ASIDE) {
        if let Ok(jid) = Jid::new(jid) {
            aside(master, &jid, data);
        }
        return true;
    }
    let Tag::JobNew(jid) = Tag::from(tag) else { return false };
    let Ok(jid) = Jid::new(&jid) else { return false };
    let below = ids(data, "relays");
    let minions: Vec<_> =
        ids(data, "minions").into_iter().filter(|id| !below.contains(id)).collect();
    let below: Vec<_> = below.iter().map(|id| SmolStr::from(format!("{path}/{id}"))).collect();
    master.jobs.expect(&jid, &minions, &path, &below);
    extend(master, jid, minions);
    false
}

/// What one of our syndics knows of the minions below it.
fn aside(master: &Master, jid: &Jid, data: &Dict) {
    let sure = ids(data, "sure");
    if !sure.is_empty() {
        master.jobs.tell(jid, &Progress::Sure { ids: sure });
    }
    for id in ids(data, "started") {
        master.jobs.step(jid, &id, State::Started);
    }
    for id in ids(data, "back") {
        master.jobs.step(jid, &id, State::Started);
        master.jobs.tell(jid, &Progress::Back { id });
    }
    let lost = ids(data, "lost");
    for id in &lost {
        master.jobs.lost_one(jid, id, "its master lost it");
    }
    let state = |id: SmolStr| Op::State {
        jid: jid.to_string(),
        minion: id.to_string(),
        state: State::Lost,
    };
    if !lost.is_empty() {
        let _stored_later = master.store.write(lost.into_iter().map(state).collect());
    }
}

/// Adds minions below a syndic to a stored job.
pub(crate) fn extend(master: &Arc<Master>, jid: Jid, more: Vec<SmolStr>) {
    if more.is_empty() {
        return;
    }
    let master = master.clone();
    tokio::spawn(async move {
        let _alone = master.relays.extending.lock().await;
        let (owner, wanted) = (master.clone(), jid.clone());
        let stored = blocking(move || owner.store.job(&wanted)).await;
        let Ok(Ok(Some(stored))) = stored else { return };
        let Value::Dict(load) = stored.load else { return };
        let known = load.get("minions").and_then(|ids| ids.items_of_sequence()).unwrap_or_default();
        let mut all: Vec<SmolStr> = known.iter().map(Value::to_str).collect();
        let before = all.len();
        all.extend(more.into_iter().filter(|id| !known.iter().any(|known| *known == **id)));
        if all.len() == before {
            return;
        }
        load.insert("minions", Value::list(all));
        let job = Op::Job { jid: jid.to_string(), load: load.into() };
        if let Err(error) = master.store.write(vec![job]).await {
            tracing::warn!("The minions below a syndic are not kept with the job {jid}: {error}");
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_syndics_below_syndics() {
        let of = |tag| {
            let (path, rest) = path("mid", tag);
            format!("{path} {rest}")
        };
        assert_eq!(of("salt/job/1/new"), "mid salt/job/1/new");
        assert_eq!(of("syndic/low/salt/job/1/new"), "mid/low salt/job/1/new");
        assert_eq!(of("syndic/low/syndic/x/my/tag"), "mid/low/x my/tag");
        assert_eq!(of("syndic/low"), "mid syndic/low");
    }

    #[test]
    fn what_is_remembered_must_be_an_id() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["low", "..hidden", "a b"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let relays = Relays::load(folder.path());
        assert!(relays.contains("low"));
        assert!(!relays.contains("../low"));
        assert!(Relays::load(&folder.path().join("nosuch")).all().is_empty());
    }
}
