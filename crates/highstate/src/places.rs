//! Where the author wrote what: every id, state and argument of the rendered SLS files.
//!
//! Problems are found long after rendering, in data that extensions and requisites have changed;
//! so the places are noted once, from each file as it was rendered. What is written first counts:
//! the same id in two files is itself a problem, and the first place is the better one to show.

use std::collections::HashMap;

use halite_value::{Dict, Key, Place, SmolStr, Value};
use indexmap::IndexMap;

/// Where ids, and the states below them, stand in their sources.
#[derive(Clone, Debug, Default)]
pub struct Places {
    ids: HashMap<String, IdPlaces>,
    /// Ids in `extend`, with what is said of them there.
    extended: HashMap<String, IdPlaces>,
    /// Where an id is written a second time.
    again: HashMap<String, Place>,
}

/// Rows, not tables: an id has a state or two, a state a handful of arguments.
#[derive(Clone, Debug, Default)]
struct IdPlaces {
    own: Option<Place>,
    states: Vec<(SmolStr, StatePlaces)>,
}

#[derive(Clone, Debug, Default)]
struct StatePlaces {
    own: Option<Place>,
    args: Vec<(SmolStr, Place)>,
}

fn row<'a, T>(rows: &'a [(SmolStr, T)], name: &str) -> Option<&'a T> {
    rows.iter().find(|(own, _)| own == name).map(|(_, found)| found)
}

impl Places {
    pub fn of_id(&self, id: &str) -> Option<&Place> {
        self.ids.get(id)?.own.as_ref()
    }

    /// Returns the second place of an id that two files declare.
    pub(crate) fn of_id_again(&self, id: &str) -> Option<&Place> {
        self.again.get(id)
    }

    /// Returns the place where an `extend` names an id.
    pub fn of_extend(&self, id: &str) -> Option<&Place> {
        self.extended.get(id)?.own.as_ref()
    }

    /// Returns the place of a state declaration, or of its id.
    pub fn of_state(&self, id: &str, state: &str) -> Option<&Place> {
        let places = self.ids.get(id)?;
        row(&places.states, state).and_then(|state| state.own.as_ref()).or(places.own.as_ref())
    }

    /// Returns the place of an argument, or of its state.
    pub fn of_arg(&self, id: &str, state: &str, arg: &str) -> Option<&Place> {
        let own = self.ids.get(id).and_then(|places| places.of_arg(state, arg));
        let extended = || self.extended.get(id)?.of_arg(state, arg);
        own.or_else(extended).or_else(|| self.of_state(id, state))
    }

    /// Notes the places of a rendered SLS.
    pub(crate) fn note(&mut self, rendered: &Dict) {
        let written = by_key(rendered);
        for (key, body) in rendered {
            let id = key.to_string();
            if id == "extend"
                && let Value::Dict(extended) = &body
            {
                let written = by_key(extended);
                for (id, body) in extended {
                    let places = self.extended.entry(id.to_string()).or_default();
                    if let Some(&place) = written.get(&id) {
                        places.own.get_or_insert_with(|| place.clone());
                    }
                    if let Value::Dict(body) = &body {
                        places.note(body);
                    }
                }
            }
            let places = self.ids.entry(id.clone()).or_default();
            if let Some(&place) = written.get(&key)
                && places.own.get_or_insert_with(|| place.clone()) != place
            {
                self.again.entry(id).or_insert_with(|| place.clone());
            }
            if let Value::Dict(body) = &body {
                places.note(body);
            }
        }
    }
}

impl IdPlaces {
    fn of_arg(&self, state: &str, arg: &str) -> Option<&Place> {
        row(&row(&self.states, state)?.args, arg)
    }

    fn note(&mut self, body: &Dict) {
        for (state, args) in body {
            let full = state.to_str();
            let module = full.split('.').next().unwrap_or_default();
            let places = self.state(module);
            if let Some(place) = body.place_of(full.as_str()) {
                places.own.get_or_insert_with(|| place.clone());
            }
            let Value::List(args) = args else { continue };
            places.args.reserve_exact(args.len());
            for arg in &args {
                let Value::Dict(arg) = arg else { continue };
                for word in arg.keys() {
                    let Some(place) = arg.place_of(&word) else { continue };
                    let word = word.to_str();
                    if row(&places.args, &word).is_none() {
                        places.args.push((word, place.clone()));
                    }
                }
            }
        }
    }

    fn state(&mut self, module: &str) -> &mut StatePlaces {
        let known = self.states.iter().position(|(own, _)| own == module);
        let index = known.unwrap_or_else(|| {
            self.states.reserve_exact(1);
            self.states.push((module.into(), StatePlaces::default()));
            self.states.len() - 1
        });
        &mut self.states[index].1
    }
}

/// An SLS may have thousands of ids, and [`Dict::place_of`] scans.
fn by_key(dict: &Dict) -> IndexMap<&Key, &Place> {
    // A key written twice stands where its value was written: the last time.
    dict.places().iter().map(|(key, place)| (key, place)).collect()
}
