//! The index requisites are looked up in: which chunks answer to a name.
//!
//! A chunk answers to its id and to its name, under its state module and under the word `id` (for
//! requisites that name no module), and to every SLS it came through.

use std::collections::HashMap;

use halite_target::fnmatch;
use halite_value::{Value, suggest};
use indexmap::IndexMap;

use crate::{Low, low::text};

/// Name → chunks, in the order of their declaration.
type Register = IndexMap<String, Vec<usize>>;

/// Who answers to which name.
#[derive(Default)]
pub(super) struct Names {
    /// By state module, and by `id`.
    modules: HashMap<String, Register>,
    sls: Register,
}

impl Names {
    pub(super) fn add(&mut self, chunk: usize, low: &Low) {
        let (state, id, name) = (text(low, "state"), text(low, "__id__"), text(low, "name"));
        for module in [state.as_str(), "id"] {
            let register = self.modules.entry(module.to_owned()).or_default();
            enter(register, chunk, [name.clone(), id.clone()]);
        }
        let own = low.get("__sls__");
        let included = low.get("__sls_included_from__").and_then(|list| list.items_of_sequence());
        let all = own.into_iter().chain(included.unwrap_or_default());
        enter(&mut self.sls, chunk, all.map(|sls| Value::to_string(&sls)));
    }

    /// Returns the chunks a requisite names; `None` if it names nothing.
    pub(super) fn find(&self, module: &str, name: &str) -> Option<Vec<usize>> {
        let register = self.register(module)?;
        if !name.contains(['*', '?', '[', ']']) {
            return register.get(name).cloned();
        }
        let fitting = register.iter().filter(|(own, _)| fnmatch::fnmatch(own, name));
        let found: Vec<usize> = fitting.flat_map(|(_, chunks)| chunks.iter().copied()).collect();
        // A glob over SLS names may match nothing, as in Salt.
        (module == "sls" || !found.is_empty()).then_some(found)
    }

    /// Returns what may have been meant by a requisite that names nothing, but never the chunk it
    /// stands in (`own`); `low` knows the chunks.
    pub(super) fn nearest<'l>(
        &self,
        module: &str,
        name: &str,
        own: usize,
        low: impl Fn(usize) -> &'l Low,
    ) -> Option<String> {
        let Some(register) = self.register(module) else {
            // The id may exist under another module: the commonest slip.
            let chunk = *self.modules.get("id")?.get(name)?.first()?;
            return Some(format!("{}: {name}", text(low(chunk), "state")));
        };
        let others = register.iter().filter(|(_, chunks)| chunks.as_slice() != [own]);
        let near = suggest::nearest(name, others.map(|(name, _)| name.as_str()))?;
        Some(if module == "sls" { near.to_owned() } else { format!("{module}: {near}") })
    }

    fn register(&self, module: &str) -> Option<&Register> {
        if module == "sls" { Some(&self.sls) } else { self.modules.get(module) }
    }
}

fn enter(register: &mut Register, chunk: usize, names: impl IntoIterator<Item = String>) {
    for name in names {
        let chunks = register.entry(name).or_default();
        if chunks.last() != Some(&chunk) {
            chunks.push(chunk);
        }
    }
}
