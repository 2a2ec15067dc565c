//! Dead letters: events whose reaction failed, kept for people, the newest few thousand.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use halite_store::{Op, Store};
use halite_value::{Dict, SmolStr, Value, entries};
use parking_lot::Mutex;

use super::Reaction;

/// The bank of dead letters.
pub const DEAD: &str = "reactor_dead";

const MOST: usize = 5000;

pub(super) struct Letters {
    store: Arc<dyn Store>,
    keys: Mutex<VecDeque<String>>,
    next: AtomicU64,
}

impl Letters {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, keys: Mutex::default(), next: AtomicU64::new(1) }
    }

    /// Finds what is there already. Blocking.
    pub(super) fn load(&self) {
        let Ok(all) = self.store.all(DEAD) else { return };
        let last = all.last().and_then(|(key, _)| key.parse::<u64>().ok()).unwrap_or(0);
        self.next.fetch_max(last + 1, Ordering::Relaxed);
        let mut keys = self.keys.lock();
        for (key, _) in all.into_iter().rev() {
            keys.push_front(key);
        }
    }

    /// Keeps what failed: a reaction of a file, or (`id` is none) all of it.
    pub(super) fn add(&self, tag: &str, data: &Dict, sls: &str, id: Option<&str>, error: &str) {
        let key = format!("{:020}", self.next.fetch_add(1, Ordering::Relaxed));
        let letter = entries! { "tag" => tag, "data" => data, "sls" => sls, "error" => error };
        if let Some(id) = id {
            letter.insert("reaction", id);
        }
        let mut ops = vec![Op::Put { bank: DEAD, key: key.clone(), value: letter.into() }];
        let mut keys = self.keys.lock();
        keys.push_back(key);
        if keys.len() > MOST {
            ops.extend(keys.pop_front().map(|key| Op::Delete { bank: DEAD, key }));
        }
        drop(self.store.write(ops));
    }

    pub(super) fn len(&self) -> u64 {
        self.keys.lock().len() as u64
    }

    /// Returns the letters, oldest first.
    pub(super) fn list(&self) -> Value {
        Value::list(self.store.all(DEAD).unwrap_or_default().into_iter().map(|(_, letter)| letter))
    }

    /// Removes all; returns how many.
    pub(super) fn clear(&self) -> u64 {
        let keys = std::mem::take(&mut *self.keys.lock());
        let count = keys.len() as u64;
        drop(
            self.store.write(keys.into_iter().map(|key| Op::Delete { bank: DEAD, key }).collect()),
        );
        count
    }

    /// Removes all and returns their events, each with what failed of it.
    pub(super) fn take(&self) -> Vec<(String, Dict, Failed)> {
        let letters = self.store.all(DEAD).unwrap_or_default();
        self.clear();
        let mut events: Vec<(String, Dict, Failed)> = Vec::new();
        for (_, letter) in letters {
            let (Some(Value::Dict(data)), Some(tag)) = (letter.get("data"), letter.get_str("tag"))
            else {
                continue;
            };
            let what = (letter.get_str("sls").unwrap_or_default(), letter.get_str("reaction"));
            // Several failures of one event are one event.
            let is_it = |(own, other, _): &&mut (String, Dict, Failed)| {
                *own == *tag && Value::from(other) == Value::from(&data)
            };
            match events.iter_mut().find(is_it) {
                Some((_, _, failed)) => failed.0.push(what),
                None => events.push((tag.to_string(), data, Failed(vec![what]))),
            }
        }
        events
    }
}

/// What failed of an event: files, and reactions of files.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Failed(Vec<(SmolStr, Option<SmolStr>)>);

impl Failed {
    /// The event itself was lost: all of it is to be done.
    pub(super) fn is_all(&self) -> bool {
        self.0.iter().any(|(sls, _)| sls.is_empty())
    }

    /// Tells whether a file, or the entry of the table that led to it, failed as a whole.
    pub(super) fn has_file(&self, sls: &str) -> bool {
        self.0.iter().any(|(own, id)| own == sls && id.is_none())
    }

    fn has(&self, reaction: &Reaction) -> bool {
        self.0.iter().any(|(sls, id)| {
            *sls == reaction.sls && id.as_ref().is_none_or(|id| *id == reaction.id)
        })
    }

    /// Tells whether any of these files is concerned.
    pub(super) fn concerns(&self, files: &[(String, Value)]) -> bool {
        files.iter().any(|(file, _)| self.0.iter().any(|(sls, _)| sls == file))
    }

    /// Adds files that failed as a whole.
    pub(super) fn add_files(&mut self, files: &[(String, Value)]) {
        self.0.extend(files.iter().map(|(file, _)| (file.into(), None)));
    }

    /// Returns those of an event's reactions that failed. What they needed and what went well need
    /// not be done again.
    pub(super) fn of(&self, all: Vec<Reaction>) -> Vec<Reaction> {
        let mut places = Vec::with_capacity(all.len());
        let mut left: Vec<Reaction> = Vec::new();
        for mut reaction in all {
            if !self.has(&reaction) {
                places.push(None);
                continue;
            }
            let still = |places: &[Option<usize>], before: &[usize]| -> Vec<usize> {
                before.iter().filter_map(|at| places.get(*at).copied().flatten()).collect()
            };
            reaction.needs = still(&places, &reaction.needs);
            reaction.after_failure = still(&places, &reaction.after_failure);
            places.push(Some(left.len()));
            left.push(reaction);
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use halite_store::{Embedded, Options};
    use halite_value::{dict, list};

    use super::*;
    use crate::reactor::reaction::compile;

    #[test]
    fn only_what_failed_is_done_again() {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(Embedded::open(folder.path(), Options::default()).unwrap());
        let letters = Letters::new(store.clone());
        let data = entries! { "_stamp" => "now" };
        letters.add("a", &data, "x.sls", Some("second"), "no");
        letters.add("a", &data, "x.sls", Some("third"), "a required reaction failed");
        letters.add("b", &data, "y.sls", None, "missing");
        store.write(Vec::new()).wait().unwrap();
        let events = letters.take();
        assert_eq!((events.len(), letters.len()), (2, 0));
        let run = |id: &str| {
            dict! { "runner.test.arg" => list![dict! {
                "require" => list![dict! { "runner" => id }],
            }] }
        };
        let high = dict! {
            "first" => dict! { "runner.test.arg" => list![] },
            "second" => run("first"), "third" => run("second"),
        };
        let all = compile(&[("x.sls".to_owned(), high.clone())]).unwrap();
        let left = events[0].2.of(all);
        let ids: Vec<_> = left.iter().map(|one| (one.id.as_str(), one.needs.clone())).collect();
        assert_eq!(ids, [("second", vec![]), ("third", vec![0])]);
        let failed = &events[1].2;
        assert!(failed.has_file("y.sls") && !failed.has_file("x.sls") && !failed.is_all());
        let all = compile(&[("y.sls".to_owned(), high)]).unwrap();
        assert_eq!(failed.of(all).len(), 3, "a file that could not be read is done as a whole");
    }
}
