//! From what authors write to [`Wish`]es: this chunk, by this requisite, names that chunk.
//!
//! Names and globs are looked up here, once; whatever comes after knows chunks by number only. The
//! first name of a chunk that leads nowhere ends the reading of that chunk: one mistake, one message.

use halite_value::{List, Place, Value};

use super::{Chunk, edges::Wish, names::Names};
use crate::{
    Low, Problem, States,
    keywords::{REQUISITES, Requisite},
    low::text,
    places::Places,
};

/// What reading a requisite needs to know.
pub(super) struct Reader<'a> {
    pub(super) chunks: &'a [Chunk],
    pub(super) names: &'a Names,
    pub(super) places: &'a Places,
    /// `disabled_requisites`
    pub(super) disabled: &'a [String],
}

impl Reader<'_> {
    /// Adds the wishes of one chunk, and marks the chunks that a `prereq` ties together.
    pub(super) fn read(&self, asker: usize, wishes: &mut Vec<Wish>) -> Result<(), Problem> {
        for kind in REQUISITES {
            let low = &self.chunks[asker].low;
            let Some(written) = low.get(kind.word()) else { continue };
            let Some(entries) = written.items_of_sequence() else { continue };
            if self.disabled.iter().any(|off| off == kind.word()) {
                tracing::warn!("The {} requisite has been disabled, Ignoring.", kind.word());
                continue;
            }
            for (number, entry) in entries.iter().enumerate() {
                let targets = self.targets(asker, entry).map_err(|wrong| {
                    wrong.describe(low, kind, self.places, place_in(&written, number))
                })?;
                for target in targets {
                    if kind == Requisite::Prereq {
                        // Seen in `state.show_lowstate`, and by states that ask for it.
                        low.insert("__prerequiring__", true);
                        self.chunks[target].low.insert("__prereq__", true);
                    }
                    wishes.push(Wish { asker, kind, target });
                }
            }
        }
        Ok(())
    }

    /// Returns the chunks one entry of a requisite of `asker` means: `file: /etc/x`, or a bare id.
    fn targets(&self, asker: usize, entry: &Value) -> Result<Vec<usize>, Wrong> {
        let (module, name) = match entry {
            Value::Dict(pair) => {
                let Some((module, name)) = pair.entries().into_iter().next() else {
                    return Ok(Vec::new());
                };
                let module = module.to_string();
                (module.split('.').next().unwrap_or_default().to_owned(), name)
            }
            bare => ("id".to_owned(), bare.clone()),
        };
        match name {
            Value::Null => Ok(Vec::new()),
            Value::Str(name) => self.names.find(&module, &name).ok_or_else(|| Wrong::Missing {
                near: self.names.nearest(&module, &name, asker, |chunk| &self.chunks[chunk].low),
                module,
                name: name.to_string(),
            }),
            _ => Err(Wrong::NotText { module }),
        }
    }
}

/// Where an entry of a requisite stands, if that is known.
fn place_in(written: &Value, number: usize) -> Option<Place> {
    written.as_list().and_then(|list| list.place_of(number).cloned())
}

/// A requisite that names nothing.
enum Wrong {
    NotText { module: String },
    Missing { module: String, name: String, near: Option<String> },
}

impl Wrong {
    /// `own` is the place of the entry; without it, that of the requisite or its state serves.
    fn describe(self, low: &Low, kind: Requisite, places: &Places, own: Option<Place>) -> Problem {
        let word = kind.word();
        let place =
            own.as_ref().or_else(|| places.of_arg(&text(low, "__id__"), &text(low, "state"), word));
        let by = format!("in state [{}] in SLS [{}]", text(low, "name"), text(low, "__sls__"));
        let (problem, near) = match self {
            Self::NotText { module } => {
                (format!("Requisite [{word}: {module}] {by} must have a string as the value"), None)
            }
            Self::Missing { module, name, near } => {
                let what = format!("[{word}: ({module}: {name})]");
                (format!("Referenced state does not exist for requisite {what} {by}"), near)
            }
        };
        let problem = Problem::new(problem).at(place);
        match near {
            Some(near) => problem.help(format!("did you mean `{near}`?")),
            None => problem,
        }
    }
}

/// Makes `watch` a `require` where the module does not react to it.
pub(super) fn watch_as_require(low: &Low, states: &dyn States) {
    for (watch, require) in [("watch", "require"), ("watch_any", "require_any")] {
        if !low.contains(watch) || states.watches(&text(low, "state")) {
            continue;
        }
        let Some(Value::List(moved)) = low.remove(watch) else { continue };
        match low.get_or_insert_with(require, || List::new().into()) {
            Value::List(list) => list.extend(moved.to_vec()),
            _ => {
                low.insert(require, moved);
            }
        }
    }
}
