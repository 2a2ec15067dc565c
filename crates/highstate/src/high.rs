//! High data, and its way to an ordered graph.
//!
//! [`High`] is what all SLS files declare together. It is read from files ([`crate::gather`]) or
//! from a dict (`state.high`), and turned into a dict only to be shown. Compiling it is four steps,
//! each in a file of its own: extensions ([`crate::edits`]), the checks of form ([`crate::check`]),
//! what states ask of others (`edits` again), chunks ([`crate::low`]). The steps in between see the
//! problems of all ids, not of the first: one run shows an author everything.

use std::collections::HashMap;

use halite_value::{Dict, Key, List, SmolStr, Value};

use crate::{
    Graph, Places, Problem, States, check, edits, low,
    parse::{Bodies, Body, EXCLUDE, EXTEND, Entry, Ids, Sls},
    tree,
};

/// All ids with their states, and what is still to be done to them.
#[derive(Clone, Debug, Default)]
pub struct High {
    pub(crate) ids: Ids,
    pub(crate) bodies: Bodies,
    pub(crate) extends: Vec<(Key, usize)>,
    pub(crate) excludes: Vec<Value>,
}

/// Takes a dict as high data, as `state.high` does.
impl From<&Dict> for High {
    fn from(dict: &Dict) -> Self {
        let mut high = Self::default();
        let mut known = HashMap::new();
        // Aliases share, here too.
        let mut read = |high: &mut Self, dict: &Dict| {
            *known.entry(dict.identity()).or_insert_with(|| {
                high.bodies.push(Body::read(dict));
                high.bodies.len() - 1
            })
        };
        // A copy, because edits change the lists.
        let dict = dict.deep_copy();
        for (key, value) in &dict {
            let entry = match (key.as_str(), value) {
                (Some(EXTEND), Value::List(extends)) => {
                    for (id, body) in extends.to_vec().iter().filter_map(Value::as_dict).flatten() {
                        if let Value::Dict(body) = body {
                            let body = read(&mut high, &body);
                            high.extends.push((id, body));
                        }
                    }
                    Entry::Extends
                }
                (Some(EXCLUDE), Value::List(items)) => {
                    high.excludes = items.to_vec();
                    Entry::Excludes
                }
                (_, Value::Dict(body)) => Entry::Body(read(&mut high, &body)),
                (_, other) => Entry::Misfit(other),
            };
            high.ids.insert(key, entry);
        }
        high
    }
}

/// What `state.show_highstate` and `state.show_sls` show.
impl From<&High> for Dict {
    fn from(high: &High) -> Self {
        let entries = high.ids.iter().map(|(id, entry)| {
            let value = match entry {
                Entry::Body(body) => high.bodies[*body].to_dict().into(),
                Entry::Misfit(other) => other.clone(),
                Entry::Extends => {
                    Value::List(high.extends.iter().map(|one| high.shown(one)).collect())
                }
                Entry::Excludes => List::from(high.excludes.clone()).into(),
            };
            (id.clone(), value)
        });
        entries.collect()
    }
}

impl High {
    /// Takes a template that is no SLS as high data, as `state.template` does.
    pub(crate) fn of_template(rendered: &Dict, path: Option<&str>) -> (Self, Vec<Problem>) {
        let mut bodies = Bodies::new();
        let (ids, problems) = Sls::read_template(rendered, path, &mut bodies);
        // The states of a file run as they are written, those of a text by their names.
        if path.is_some() {
            tree::number_template(&ids, &bodies);
        }
        (Self { ids, bodies, ..Self::default() }, problems)
    }

    fn shown(&self, (id, body): &(Key, usize)) -> Value {
        let one: Dict = [(id.clone(), self.bodies[*body].to_dict())].into_iter().collect();
        one.into()
    }

    /// Excludes more than the files do: the `exclude` of a command line.
    pub fn exclude(&mut self, items: impl IntoIterator<Item = Value>) {
        self.ids.entry(EXCLUDE.into()).or_insert(Entry::Excludes);
        self.excludes.extend(items);
    }

    pub(crate) fn body(&self, id: &Key) -> Option<&Body> {
        match self.ids.get(id)? {
            Entry::Body(index) => self.bodies.get(*index),
            _ => None,
        }
    }

    /// Returns the ids that stand for states, each with its body's place.
    pub(crate) fn state_ids(&self) -> Vec<(SmolStr, usize)> {
        let ids = self.ids.iter().filter_map(|(id, entry)| match (id.as_str()?, entry) {
            (id, Entry::Body(body)) if !id.starts_with("__") && *body < self.bodies.len() => {
                Some((id.into(), *body))
            }
            _ => None,
        });
        ids.collect()
    }

    pub(crate) fn body_at(&self, position: usize) -> Option<&Body> {
        match self.ids.get_index(position)?.1 {
            Entry::Body(index) => self.bodies.get(*index),
            _ => None,
        }
    }

    pub(crate) fn body_at_mut(&mut self, position: usize) -> Option<&mut Body> {
        match self.ids.get_index(position)?.1 {
            Entry::Body(index) => self.bodies.get_mut(*index),
            _ => None,
        }
    }

    /// Returns the ids that stand for states, with their positions; without Salt's own entries.
    pub(crate) fn states(&self) -> impl Iterator<Item = (usize, &str, &Body)> {
        self.ids.iter().enumerate().filter_map(|(position, (id, entry))| {
            match (id.as_str()?, entry) {
                (id, Entry::Body(body)) if !id.starts_with("__") => {
                    Some((position, id, self.bodies.get(*body)?))
                }
                _ => None,
            }
        })
    }
}

/// Applies the edits to high data, checks it and compiles it into an ordered graph, or tells what
/// is wrong.
pub fn compile_high(
    mut high: High,
    places: &Places,
    states: &dyn States,
    settings: &low::Settings,
) -> Result<Graph, Vec<Problem>> {
    let mut problems = edits::apply_extends(&mut high, places);
    problems.extend(check::all(&high, places));
    none_of(problems)?;
    for doubt in check::doubts(&high, places) {
        tracing::warn!("{doubt}");
    }
    none_of(edits::apply_requisites(&mut high, places, &settings.disabled_requisites))?;
    edits::apply_excludes(&mut high);
    order(high, places, states, settings)
}

/// Compiles high data as it was written, without its edits: what `state.show_low_sls` shows, in
/// Salt and so here.
pub fn compile_unfolded(
    high: High,
    places: &Places,
    states: &dyn States,
    settings: &low::Settings,
) -> Result<Graph, Vec<Problem>> {
    none_of(check::all(&high, places))?;
    order(high, places, states, settings)
}

/// Returns what is wrong with the form of high data, before its edits.
#[must_use]
pub fn form_problems(high: &High, places: &Places) -> Vec<Problem> {
    check::all(high, places)
}

/// Returns all that is wrong with high data: its edits, and its form after them.
#[must_use]
pub fn folded_problems(mut high: High, places: &Places, settings: &low::Settings) -> Vec<Problem> {
    let mut problems = edits::apply_extends(&mut high, places);
    problems.extend(check::all(&high, places));
    problems.extend(edits::apply_requisites(&mut high, places, &settings.disabled_requisites));
    problems
}

fn order(
    high: High,
    places: &Places,
    states: &dyn States,
    settings: &low::Settings,
) -> Result<Graph, Vec<Problem>> {
    let mut graph = low::compile(high, states, settings);
    none_of(graph.resolve(states, places, &settings.disabled_requisites))?;
    Ok(graph)
}

fn none_of(problems: Vec<Problem>) -> Result<(), Vec<Problem>> {
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}
