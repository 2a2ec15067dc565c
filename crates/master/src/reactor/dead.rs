//! Dead letters: events whose reaction failed, kept for people, the newest few thousand.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use halite_store::{Op, Store};
use halite_value::{Dict, Value, entries};
use parking_lot::Mutex;

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

    pub(super) fn add(&self, tag: &str, data: &Dict, sls: &str, error: &str) {
        let key = format!("{:020}", self.next.fetch_add(1, Ordering::Relaxed));
        let letter = entries! { "tag" => tag, "data" => data, "sls" => sls, "error" => error };
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

    /// Removes all and returns their events.
    pub(super) fn take(&self) -> Vec<(String, Dict)> {
        let letters = self.store.all(DEAD).unwrap_or_default();
        self.clear();
        letters
            .into_iter()
            .filter_map(|(_, letter)| {
                let Some(Value::Dict(data)) = letter.get("data") else { return None };
                Some((letter.get_str("tag")?.to_string(), data))
            })
            .collect()
    }
}
