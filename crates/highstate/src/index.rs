//! Ids by what is said of them, so that an edit finds its target without a search.
//!
//! Each map is made when it is first asked for: most trees name ids only. An edit may change
//! arguments, so those found by value are candidates, and are looked at again; new values are
//! noted ([`Index::note`]).

use std::collections::HashMap;

use halite_value::{Key, List, Value};
use indexmap::IndexMap;

use crate::{High, parse::only_word};

/// Ids by what is said of them.
#[derive(Default)]
pub(crate) struct Index {
    /// state → value of an argument → positions
    by_value: Option<HashMap<String, IndexMap<Key, Vec<usize>>>>,
    by_sls: Option<IndexMap<Key, Vec<usize>>>,
    /// `name` → position and state; the last one counts.
    by_name: Option<IndexMap<Key, (usize, String)>>,
}

impl Index {
    /// Returns the ids of which `state` has an argument of that value, once for each argument.
    pub(crate) fn with_value(&mut self, high: &High, state: &str, value: &Key) -> Vec<usize> {
        if self.by_value.is_none() {
            self.by_value = Some(HashMap::new());
            for (position, _, body) in high.states() {
                for (state, args) in body.lists() {
                    self.note(position, state, args);
                }
            }
        }
        let known = self.by_value.as_ref().and_then(|known| known.get(state)?.get(value));
        let mut candidates = known.cloned().unwrap_or_default();
        candidates.sort_unstable();
        candidates.dedup();
        let is_it = |arg: &Value| only_word(arg).is_some_and(|(_, own)| own == *value.value());
        let times = |position: usize| {
            let args = high.body_at(position).and_then(|body| body.list(state));
            args.map_or(0, |args| args.read().iter().filter(|arg| is_it(arg)).count())
        };
        candidates.into_iter().flat_map(|id| std::iter::repeat_n(id, times(id))).collect()
    }

    /// Notes the arguments a state was given.
    pub(crate) fn note(&mut self, position: usize, state: &str, args: &List) {
        let Some(known) = &mut self.by_value else { return };
        if !known.contains_key(state) {
            known.insert(state.to_owned(), IndexMap::new());
        }
        let Some(known) = known.get_mut(state) else { return };
        for (_, value) in args.read().iter().filter_map(only_word) {
            // What cannot be a key cannot be named either.
            if let Ok(value) = Key::try_from(value) {
                known.entry(value).or_default().push(position);
            }
        }
    }

    /// Returns the ids an SLS declares.
    pub(crate) fn of_sls(&mut self, high: &High, sls: &Key) -> Vec<usize> {
        let known = self.by_sls.get_or_insert_with(|| {
            let mut known: IndexMap<Key, Vec<usize>> = IndexMap::new();
            for (position, _, body) in high.states() {
                if let Some(Ok(sls)) = body.origin.sls.clone().map(Key::try_from) {
                    known.entry(sls).or_default().push(position);
                }
            }
            known
        });
        known.get(sls).cloned().unwrap_or_default()
    }

    /// Returns the last state with that `name`.
    pub(crate) fn with_name(&mut self, high: &High, name: &Key) -> Option<(usize, String)> {
        let known = self.by_name.get_or_insert_with(|| {
            let mut known = IndexMap::new();
            for (position, _, body) in high.states() {
                for (state, args) in body.lists() {
                    let names =
                        args.read().iter().filter_map(|arg| arg.get("name")).collect::<Vec<_>>();
                    for name in names.into_iter().filter_map(|name| Key::try_from(name).ok()) {
                        known.insert(name, (position, state.to_owned()));
                    }
                }
            }
            known
        });
        known.get(name).cloned()
    }
}
