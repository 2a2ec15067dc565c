//! `listen` and `listen_in`: watch actions after the whole run.
//!
//! Both say the same from two sides, so both become [`Listening`]s: if the source changed, the
//! listener's watch action runs. Names are looked up in an index made once.

use std::collections::{BTreeSet, HashMap};

use halite_value::{Key, Value, suggest};

use crate::{Graph, Low, graph::StepId, low::text};

/// A state as a requisite names it: module, and id or name.
pub(super) type Named = (String, Value);

/// Who listens to whom.
#[derive(Debug, PartialEq)]
pub(super) struct Listening {
    pub(super) listener: Named,
    pub(super) source: Named,
    /// Who says so: the id, the module, and the word.
    pub(super) said: (String, String, &'static str),
}

/// Tells whether anybody listens: most runs need no index.
pub(super) fn is_wanted(graph: &Graph) -> bool {
    let listens = |low: &Low| low.contains("listen") || low.contains("listen_in");
    graph.steps().iter().any(|step| listens(graph.low(*step)))
}

/// The steps of a run by the names they answer to.
pub(super) struct Index<'g> {
    graph: &'g Graph,
    by_module: HashMap<(String, Key), Vec<StepId>>,
    /// The last step that answers to a name, whatever its module.
    last: HashMap<Key, StepId>,
}

impl<'g> Index<'g> {
    pub(super) fn new(graph: &'g Graph) -> Self {
        let mut index = Self { graph, by_module: HashMap::new(), last: HashMap::new() };
        for &step in graph.steps() {
            let low = graph.low(step);
            for key in ["__id__", "name"] {
                let Some(Ok(name)) = low.get(key).map(Key::try_from) else { continue };
                let named = index.by_module.entry((text(low, "state"), name.clone())).or_default();
                if named.last() != Some(&step) {
                    named.push(step);
                }
                index.last.insert(name, step);
            }
        }
        index
    }

    /// Returns the steps of one name, in the order of the run.
    pub(super) fn named(&self, (state, name): &Named) -> &[StepId] {
        let key = Key::try_from(name.clone()).ok().map(|name| (state.clone(), name));
        key.and_then(|key| self.by_module.get(&key)).map_or(&[], Vec::as_slice)
    }

    /// Returns the name a misspelt one may have been meant to be.
    pub(super) fn near(&self, (state, name): &Named) -> Option<String> {
        let names = self.by_module.keys().filter(|(own, _)| own == state);
        let names: BTreeSet<String> = names.map(|(_, name)| name.to_string()).collect();
        let near = suggest::nearest(&name.to_str(), names.iter().map(String::as_str))?;
        Some(format!("{state}: {near}"))
    }

    /// Returns everything anyone listens to, in the order of the run.
    pub(super) fn listenings(&self) -> Vec<Listening> {
        self.graph.steps().iter().flat_map(|step| self.of(self.graph.low(*step))).collect()
    }

    fn of(&self, low: &Low) -> Vec<Listening> {
        let entries = |word: &str| {
            low.get(word).and_then(|list| list.items_of_sequence()).unwrap_or_default().into_iter()
        };
        let own = || (text(low, "state"), low.get("__id__").unwrap_or_default());
        let said = |word| (text(low, "__id__"), text(low, "state"), word);
        let to = entries("listen").flat_map(|entry| self.meant(&entry)).map(|source| Listening {
            listener: own(),
            source,
            said: said("listen"),
        });
        let from = entries("listen_in").flat_map(|entry| pairs(&entry)).map(|listener| Listening {
            listener,
            source: own(),
            said: said("listen_in"),
        });
        to.chain(from).collect()
    }

    /// Reads an entry of `listen`; a bare name means the last state that has it.
    fn meant(&self, entry: &Value) -> Vec<Named> {
        if entry.as_dict().is_some() {
            return pairs(entry);
        }
        let step = Key::try_from(entry.clone()).ok().and_then(|name| self.last.get(&name));
        let low = step.map(|step| self.graph.low(*step));
        low.map(|low| (text(low, "state"), low.get("__id__").unwrap_or_default()))
            .into_iter()
            .collect()
    }
}

fn pairs(entry: &Value) -> Vec<Named> {
    let pairs = entry.as_dict().into_iter().flatten();
    pairs.map(|(state, name)| (state.to_string(), name)).collect()
}
