//! The tree of SLS files and what they include, and how it becomes one high data.
//!
//! The tree is finished before anything is decided about it, so each question is a walk of its own:
//! which number a state gets (a state without an `order` gets the next one, included files before
//! the file that includes them), who includes whom, and which ids there are. Ids are joined from
//! the leaves up; one declared twice is a problem, told where the two meet. Problems come in the
//! order in which a reader who follows the includes would meet them.

use halite_value::{List, Value, dict};

use crate::{
    High, Places, Problem,
    parse::{Arguments, Bodies, Body, EXCLUDE, EXTEND, Entry, Ids, Sls, has_word},
};

/// The first automatic `order`; numbers an author writes are usually far below.
const FIRST_ORDER: i64 = 10_000;

/// The node of what was asked for. It is no SLS and declares nothing.
pub(crate) const ROOT: usize = 0;

/// An SLS in the tree of includes.
#[derive(Default)]
pub(crate) struct Node {
    pub(crate) sls: String,
    pub(crate) env: String,
    pub(crate) is_init: bool,
    /// The node that includes it.
    pub(crate) parent: usize,
    pub(crate) own: Sls,
    /// What went wrong in it, and what it includes, as written.
    pub(crate) steps: Vec<Step>,
}

pub(crate) enum Step {
    Problem(Problem),
    Include(usize),
}

/// SLS files with what they include, and the bodies of their ids.
pub(crate) struct Tree {
    pub(crate) nodes: Vec<Node>,
    pub(crate) bodies: Bodies,
}

impl Default for Tree {
    fn default() -> Self {
        Self { nodes: vec![Node::default()], bodies: Bodies::new() }
    }
}

impl Tree {
    /// Joins the files into high data; `is_numbered` if states run as they are written.
    pub(crate) fn into_high(mut self, places: &Places, is_numbered: bool) -> (High, Vec<Problem>) {
        if is_numbered {
            number(&self.nodes, &self.bodies);
        }
        note_includers(&self.nodes, &mut self.bodies);
        let Self { mut nodes, bodies } = self;
        let mut joiner = Joiner { bodies: &bodies, places, problems: Vec::new() };
        let Sls { ids, extends, excludes, .. } = joiner.join(&mut nodes, ROOT);
        let problems = joiner.problems;
        (High { ids, bodies, extends, excludes }, problems)
    }
}

/// Gives every state without an `order` the next number.
fn number(nodes: &[Node], bodies: &[Body]) {
    let mut next = FIRST_ORDER;
    for node in in_running_order(nodes) {
        number_ids(&nodes[node].own.ids, bodies, &mut next);
    }
}

/// Numbers the states of a template that is no SLS.
pub(crate) fn number_template(ids: &Ids, bodies: &[Body]) {
    let mut next = FIRST_ORDER;
    number_ids(ids, bodies, &mut next);
}

fn number_ids(ids: &Ids, bodies: &[Body], next: &mut i64) {
    for entry in ids.values() {
        let Entry::Body(body) = entry else { continue };
        for (state, args) in &bodies[*body].states {
            let Arguments::List(args) = args else { continue };
            let is_state = state.as_str().is_some_and(|state| !state.starts_with('_'));
            let is_ordered = || args.read().iter().any(|arg| has_word(arg, "order"));
            if is_state && !is_ordered() {
                args.push(dict! { "order" => *next });
                *next += 1;
            }
        }
    }
}

/// Returns the nodes as their states run: what is included first.
fn in_running_order(nodes: &[Node]) -> Vec<usize> {
    // From the back: a file, then its includes from the last on.
    let (mut order, mut open) = (Vec::with_capacity(nodes.len()), vec![ROOT]);
    while let Some(node) = open.pop() {
        order.push(node);
        open.extend(nodes[node].steps.iter().filter_map(|step| match step {
            Step::Include(node) => Some(*node),
            Step::Problem(_) => None,
        }));
    }
    order.reverse();
    order
}

/// Tells every id which files include it, from the nearest on.
fn note_includers(nodes: &[Node], bodies: &mut [Body]) {
    for node in nodes {
        let mut includer = node.parent;
        while includer != ROOT {
            for (id, entry) in &node.own.ids {
                let is_id = id.as_str().is_some_and(|id| !id.starts_with("__"));
                let (Entry::Body(body), true) = (entry, is_id) else { continue };
                let list =
                    bodies[*body].origin.included_from.get_or_insert_with(|| List::new().into());
                if let Value::List(list) = list {
                    list.push(&nodes[includer].sls);
                }
            }
            includer = nodes[includer].parent;
        }
    }
}

/// Joins the ids of a tree.
struct Joiner<'a> {
    bodies: &'a [Body],
    places: &'a Places,
    problems: Vec<Problem>,
}

impl Joiner<'_> {
    /// Returns what a node declares together with what it includes.
    fn join(&mut self, nodes: &mut [Node], node: usize) -> Sls {
        let mut all = std::mem::take(&mut nodes[node].own);
        for step in std::mem::take(&mut nodes[node].steps) {
            match step {
                Step::Problem(problem) => self.problems.push(problem),
                Step::Include(included) => {
                    let included = self.join(nodes, included);
                    self.insert(&mut all, included);
                }
            }
        }
        all
    }

    fn insert(&mut self, into: &mut Sls, from: Sls) {
        let Sls { mut ids, extends, excludes, .. } = from;
        into.extends.extend(extends);
        into.excludes.extend(excludes);
        // Salt shows these before the ids of the first file that brings them.
        for mark in [EXTEND, EXCLUDE] {
            if let Some(entry) = ids.shift_remove(mark) {
                into.ids.entry(mark.into()).or_insert(entry);
            }
        }
        for (id, entry) in ids {
            if let Some(Entry::Body(old)) = into.ids.get(&id) {
                let text = format!(
                    "Detected conflicting IDs, SLS IDs need to be globally unique.\n    The \
                     conflicting ID is '{id}' and is found in SLS '{}' and SLS '{}'",
                    self.source(&Entry::Body(*old)),
                    self.source(&entry)
                );
                let problem = Problem::new(text).at(self.places.of_id(&id.to_str()));
                let other = self.places.of_id_again(&id.to_str());
                let problem = match other {
                    Some(place) => problem.help(format!("the other is at {place}")),
                    None => problem,
                };
                tracing::error!("{problem}");
                self.problems.push(problem);
            }
            into.ids.insert(id, entry);
        }
    }

    /// Returns `env:sls`.
    fn source(&self, entry: &Entry) -> String {
        let origin = match entry {
            Entry::Body(body) => Some(&self.bodies[*body].origin),
            _ => None,
        };
        let text =
            |field: Option<&Value>| field.and_then(Value::as_str).unwrap_or_default().to_owned();
        let env = text(origin.and_then(|origin| origin.env.as_ref()));
        format!("{env}:{}", text(origin.and_then(|origin| origin.sls.as_ref())))
    }
}
