//! The requisite graph: who must run before whom, and the order that follows.
//!
//! A node is a low chunk. A state that is the target of a `prereq` has a second node, its
//! *check*: the same chunk, run with `test=True` before the state that asks. The order is a
//! topological one; among states that may run next, the smallest `order` wins, where a state
//! counts as early as the states that wait for it. Cost is linear in states and requisites (times
//! a logarithm for the queue).

use std::{
    cmp::{Ordering, Reverse},
    collections::{BinaryHeap, HashMap},
};

use halite_target::fnmatch;
use halite_value::{Dict, Place, Value, entries, suggest};
use indexmap::IndexMap;

use crate::{
    Low, Problem, States,
    gather::Places,
    keywords::{REQUISITES, Requisite},
    low::{Settings, tag, text},
};

/// `order: last`, and negative orders, come behind everything else by this much.
const LAST: i64 = 1_000_000;
/// States aggregated into one call at most.
const MAX_GROUP: usize = 500;

/// Low chunks and the requisites between them.
#[derive(Default)]
pub struct Graph {
    nodes: Vec<Node>,
    by_tag: HashMap<String, usize>,
    /// state module (or `id`) → name or id → nodes
    known: HashMap<String, IndexMap<String, Vec<usize>>>,
    by_sls: IndexMap<String, Vec<usize>>,
    order: Vec<usize>,
    /// Group of each aggregated node.
    groups: Vec<Vec<usize>>,
    /// Returns of states that were disabled.
    disabled: Vec<(String, Dict)>,
}

struct Node {
    tag: String,
    low: Low,
    /// The node is the check of a `prereq` target.
    check: bool,
    may_aggregate: bool,
    group: Option<usize>,
    /// The check of this node, if it has one.
    check_node: Option<usize>,
    out: IndexMap<usize, Vec<Requisite>>,
    into: IndexMap<usize, Vec<Requisite>>,
}

impl Graph {
    /// Adds a chunk. The same tag twice is one node: the later chunk replaces the earlier.
    pub(crate) fn add(&mut self, low: Low, may_aggregate: bool) {
        let tag = tag(&low);
        if let Some(&index) = self.by_tag.get(&tag) {
            self.nodes[index].low = low;
            self.nodes[index].may_aggregate = may_aggregate;
            return;
        }
        let index = self.push(tag.clone(), low.clone(), false, may_aggregate);
        self.by_tag.insert(tag, index);
        let (state, id, name) = (text(&low, "state"), text(&low, "__id__"), text(&low, "name"));
        for module in [state.as_str(), "id"] {
            let known = self.known.entry(module.to_owned()).or_default();
            for word in [&name, &id] {
                let nodes = known.entry(word.clone()).or_default();
                if nodes.last() != Some(&index) {
                    nodes.push(index);
                }
            }
        }
        let mut sls: Vec<String> = low.get("__sls__").iter().map(Value::to_string).collect();
        let included = low.get("__sls_included_from__").and_then(|list| list.items_of_sequence());
        sls.extend(included.unwrap_or_default().iter().map(Value::to_string));
        for sls in sls {
            let nodes = self.by_sls.entry(sls).or_default();
            if nodes.last() != Some(&index) {
                nodes.push(index);
            }
        }
    }

    fn push(&mut self, tag: String, low: Low, check: bool, may_aggregate: bool) -> usize {
        self.nodes.push(Node {
            tag,
            low,
            check,
            may_aggregate,
            group: None,
            check_node: None,
            out: IndexMap::new(),
            into: IndexMap::new(),
        });
        self.nodes.len() - 1
    }

    pub(crate) fn disable(&mut self, low: &Low, comment: &str) {
        let ret = entries! {
            "changes" => Value::dict(), "result" => false, "comment" => comment,
            "__run_num__" => self.disabled.len(), "__sls__" => low.get("__sls__"),
        };
        self.disabled.push((tag(low), ret));
    }

    /// Returns a graph of chunks given as low data.
    pub fn of_chunks(chunks: &[Low]) -> Self {
        let mut graph = Self::default();
        for chunk in chunks {
            let chunk = chunk.deep_copy();
            // Hand-written low data may leave out what SLS files imply.
            for (key, from) in [("__id__", "name"), ("name", "__id__")] {
                if !chunk.contains(key)
                    && let Some(value) = chunk.get(from)
                {
                    chunk.insert(key, value);
                }
            }
            chunk.get_or_insert_with("__sls__", || Value::Null);
            graph.add(chunk, false);
        }
        graph
    }

    /// Resolves requisites and orders the chunks, or tells what is wrong.
    pub fn order(
        &mut self,
        states: &dyn States,
        places: &Places,
        settings: &Settings,
    ) -> Result<(), Vec<Problem>> {
        let problems = self.resolve(states, places, &settings.disabled_requisites);
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// Leaves out of the run every chunk that is neither wanted nor needed by a wanted one; tells
    /// whether any was wanted.
    pub fn keep_only(&mut self, wanted: impl Fn(&Low) -> bool) -> bool {
        let mut keep = vec![false; self.nodes.len()];
        let mut open: Vec<usize> =
            (0..self.nodes.len()).filter(|node| wanted(&self.nodes[*node].low)).collect();
        let found = !open.is_empty();
        while let Some(node) = open.pop() {
            if !std::mem::replace(&mut keep[node], true) {
                open.extend(self.nodes[node].into.keys());
            }
        }
        self.order.retain(|node| keep[*node]);
        found
    }

    pub(crate) fn disabled(&self) -> &[(String, Dict)] {
        &self.disabled
    }

    /// Turns the requisites of every chunk into edges and orders the chunks.
    pub(crate) fn resolve(
        &mut self,
        states: &dyn States,
        places: &Places,
        disabled: &[String],
    ) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut cap: i64 = 1;
        for index in 0..self.nodes.len() {
            if self.nodes[index].check {
                continue;
            }
            let low = self.nodes[index].low.clone();
            watch_as_require(&low, states);
            if let Err(problem) = self.link(index, places, disabled) {
                problems.push(problem);
            } else if let Some(Value::Int(order)) = low.get("order")
                && order >= cap
            {
                cap = order + 100;
            }
        }
        if !self.sort(cap) {
            let cycle = self.cycle();
            let shown: Vec<_> = cycle.iter().map(|step| self.show_step(step)).collect();
            let text = format!("Recursive requisites were found: {}", shown.join(", "));
            let mut problem = Problem::new(text);
            if let Some((_, _, node)) = cycle.first() {
                let low = &self.nodes[*node].low;
                problem = problem
                    .at(places.of_state(&text_of(low, "__id__"), &text_of(low, "state")))
                    .help(self.show_path(&cycle));
            }
            problems.push(problem);
        }
        problems
    }

    /// Adds the edges of one chunk's requisites.
    fn link(&mut self, index: usize, places: &Places, disabled: &[String]) -> Result<(), Problem> {
        for kind in REQUISITES {
            let low = self.nodes[index].low.clone();
            let list = low.get(kind.word());
            let Some(targets) = list.as_ref().and_then(halite_value::Value::items_of_sequence)
            else {
                continue;
            };
            if disabled.iter().any(|off| off == kind.word()) {
                tracing::warn!("The {} requisite has been disabled, Ignoring.", kind.word());
                continue;
            }
            let place_of = |number| match &list {
                Some(Value::List(list)) => list.place_of(number).cloned(),
                _ => None,
            };
            for (number, target) in targets.iter().enumerate() {
                self.link_one(index, kind, target)
                    .map_err(|wrong| wrong.describe(&low, kind, places, place_of(number)))?;
            }
        }
        Ok(())
    }

    fn link_one(&mut self, index: usize, kind: Requisite, target: &Value) -> Result<(), Wrong> {
        let (module, name) = match target {
            Value::Dict(pair) => match pair.entries().into_iter().next() {
                Some((module, name)) => {
                    let module = module.to_string();
                    (module.split('.').next().unwrap_or_default().to_owned(), name)
                }
                None => return Ok(()),
            },
            bare => ("id".to_owned(), bare.clone()),
        };
        let name = match name {
            Value::Null => return Ok(()),
            Value::Str(name) => name,
            _ => return Err(Wrong::NotText { module }),
        };
        let nodes = self.find(&module, &name).ok_or_else(|| Wrong::Missing {
            near: self.nearest(&module, &name),
            module,
            name: name.to_string(),
        })?;
        for node in nodes {
            self.require(index, kind, node);
        }
        Ok(())
    }

    /// Finds the states a requisite names; `None` if there is none.
    fn find(&self, module: &str, name: &str) -> Option<Vec<usize>> {
        let is_glob = name.contains(['*', '?', '[', ']']);
        if module == "sls" {
            if is_glob {
                let matching = self.by_sls.iter().filter(|(sls, _)| fnmatch::fnmatch(sls, name));
                // A glob over SLS names may match nothing, as in Salt.
                return Some(matching.flat_map(|(_, nodes)| nodes.iter().copied()).collect());
            }
            return self.by_sls.get(name).cloned();
        }
        let known = self.known.get(module)?;
        if !is_glob {
            return known.get(name).cloned();
        }
        let matching = known.iter().filter(|(own, _)| fnmatch::fnmatch(own, name));
        let nodes: Vec<usize> = matching.flat_map(|(_, nodes)| nodes.iter().copied()).collect();
        (!nodes.is_empty()).then_some(nodes)
    }

    fn nearest(&self, module: &str, name: &str) -> Option<String> {
        if module == "sls" {
            return suggest::nearest(name, self.by_sls.keys().map(String::as_str)).map(Into::into);
        }
        let Some(known) = self.known.get(module) else {
            // The id may exist under another module: the commonest slip.
            let ids = self.known.get("id")?;
            let low = &self.nodes[*ids.get(name)?.first()?].low;
            return Some(format!("{}: {name}", text(low, "state")));
        };
        suggest::nearest(name, known.keys().map(String::as_str))
            .map(|near| format!("{module}: {near}"))
    }

    fn require(&mut self, index: usize, kind: Requisite, target: usize) {
        if kind == Requisite::Prereq {
            return self.prereq(index, target);
        }
        if let Some(check) = self.nodes[index].check_node {
            self.edge(target, check, kind);
        }
        self.edge(target, index, kind);
    }

    /// `asker` runs only if `target` would change: the target's check goes first, the target last.
    fn prereq(&mut self, asker: usize, target: usize) {
        self.nodes[asker].low.insert("__prerequiring__", true);
        self.nodes[target].low.insert("__prereq__", true);
        let check = match self.nodes[target].check_node {
            Some(check) => check,
            None => {
                let low = self.nodes[target].low.clone();
                let tag = format!("{}_|-__prereq_test__", self.nodes[target].tag);
                let check = self.push(tag, low, true, false);
                self.nodes[target].check_node = Some(check);
                let needs: Vec<_> = self.nodes[target]
                    .into
                    .iter()
                    .map(|(node, kinds)| (*node, kinds.clone()))
                    .collect();
                for (node, kinds) in needs {
                    for kind in kinds.into_iter().filter(|kind| *kind != Requisite::Prereq) {
                        self.edge(node, check, kind);
                    }
                }
                check
            }
        };
        self.edge(check, asker, Requisite::Prereq);
        self.edge(asker, target, Requisite::Require);
        if let Some(own) = self.nodes[asker].check_node {
            self.edge(check, own, Requisite::Prereq);
        }
    }

    fn edge(&mut self, from: usize, to: usize, kind: Requisite) {
        let add = |kinds: &mut Vec<Requisite>| {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        };
        add(self.nodes[from].out.entry(to).or_default());
        add(self.nodes[to].into.entry(from).or_default());
    }

    /// Orders the nodes; false if they form a cycle.
    fn sort(&mut self, cap: i64) -> bool {
        let mut waiting: Vec<usize> =
            self.nodes.iter().map(|node| node.into.values().map(Vec::len).sum()).collect();
        let mut ready = BinaryHeap::new();
        for (index, count) in waiting.iter().enumerate() {
            if *count == 0 {
                ready.push(Reverse((self.position(index, cap), index)));
            }
        }
        let mut order = Vec::with_capacity(self.nodes.len());
        while let Some(Reverse((_, index))) = ready.pop() {
            order.push(index);
            for (to, kinds) in self.nodes[index].out.clone() {
                waiting[to] -= kinds.len();
                if waiting[to] == 0 {
                    ready.push(Reverse((self.position(to, cap), to)));
                }
            }
        }
        let complete = order.len() == self.nodes.len();
        self.order = order;
        self.group();
        complete
    }

    /// Settles the `order` of a chunk and returns its place in the queue.
    fn position(&self, index: usize, cap: i64) -> Position {
        let node = &self.nodes[index];
        let own = settle_order(&node.low, cap);
        let mut earliest = f64::INFINITY;
        let mut heaviest = None;
        for (to, kinds) in &node.out {
            for kind in kinds {
                if heaviest.is_none_or(|heaviest| heaviest <= *kind) {
                    heaviest = Some(*kind);
                    earliest = earliest.min(raw_order(&self.nodes[*to].low, cap));
                }
            }
        }
        let low = &node.low;
        let label = format!("{}{}{}", text(low, "state"), text(low, "name"), text(low, "fun"));
        Position { order: own.min(earliest), own, label, tag: node.tag.clone() }
    }

    /// Puts states that may be joined into groups: same module, none depending on another.
    fn group(&mut self) {
        let mut by_module: HashMap<String, Vec<usize>> = HashMap::new();
        for index in self.order.clone() {
            if !self.nodes[index].may_aggregate {
                continue;
            }
            let module = text(&self.nodes[index].low, "state");
            let groups = by_module.entry(module).or_default();
            let fitting = groups.iter().copied().find(|group| {
                let members = &self.groups[*group];
                members.len() < MAX_GROUP && !members.iter().any(|from| self.reaches(*from, index))
            });
            let group = fitting.unwrap_or_else(|| {
                self.groups.push(Vec::new());
                groups.push(self.groups.len() - 1);
                self.groups.len() - 1
            });
            self.groups[group].push(index);
            self.nodes[index].group = Some(group);
        }
    }

    fn reaches(&self, from: usize, to: usize) -> bool {
        let mut stack = vec![from];
        let mut seen = vec![false; self.nodes.len()];
        while let Some(at) = stack.pop() {
            if at == to {
                return true;
            }
            if !std::mem::replace(&mut seen[at], true) {
                stack.extend(self.nodes[at].out.keys().copied());
            }
        }
        false
    }

    /// Finds one cycle, as (from, requisite, to) edges.
    fn cycle(&self) -> Vec<(usize, Requisite, usize)> {
        #[derive(Clone, Copy, PartialEq)]
        enum Mark {
            New,
            Open,
            Done,
        }
        let mut marks = vec![Mark::New; self.nodes.len()];
        for start in 0..self.nodes.len() {
            if marks[start] != Mark::New {
                continue;
            }
            // The path from the start, each with the edges still to follow.
            let mut path: Vec<(usize, usize)> = vec![(start, 0)];
            marks[start] = Mark::Open;
            while let Some((at, next)) = path.last_mut() {
                let Some((to, _)) = self.nodes[*at].out.get_index(*next) else {
                    marks[*at] = Mark::Done;
                    path.pop();
                    continue;
                };
                *next += 1;
                let to = *to;
                match marks[to] {
                    Mark::Done => {}
                    Mark::New => {
                        marks[to] = Mark::Open;
                        path.push((to, 0));
                    }
                    Mark::Open => {
                        let begin = path.iter().position(|(at, _)| *at == to).unwrap_or(0);
                        let mut ring: Vec<usize> =
                            path[begin..].iter().map(|(at, _)| *at).collect();
                        ring.push(to);
                        return ring
                            .windows(2)
                            .map(|pair| (pair[0], self.nodes[pair[0]].out[&pair[1]][0], pair[1]))
                            .collect();
                    }
                }
            }
        }
        Vec::new()
    }

    fn show_step(&self, (from, kind, to): &(usize, Requisite, usize)) -> String {
        let show = |node: usize| {
            let low = &self.nodes[node].low;
            let shown = Dict::new();
            shown.insert("SLS", low.get("__sls__"));
            shown.insert("ID", low.get("__id__"));
            if low.get("__id__") != low.get("name") {
                shown.insert("NAME", low.get("name"));
            }
            Value::Dict(shown).to_string()
        };
        let low = &self.nodes[*to].low;
        let kind = if *kind == Requisite::Require && !low.contains("require") {
            Requisite::Prereq
        } else {
            *kind
        };
        format!("({}, '{}', {})", show(*to), kind.word(), show(*from))
    }

    fn show_path(&self, cycle: &[(usize, Requisite, usize)]) -> String {
        let name = |node: usize| {
            let low = &self.nodes[node].low;
            format!("{}: {}", text(low, "state"), text(low, "__id__"))
        };
        let mut path: Vec<String> = cycle.iter().rev().map(|(_, _, to)| name(*to)).collect();
        if let Some((_, _, to)) = cycle.last() {
            path.push(name(*to));
        }
        format!("each waits for the next: {}", path.join(" → "))
    }

    /// Returns the chunks in the order of the run; the target of a `prereq` comes twice.
    pub fn chunks(&self) -> Vec<Low> {
        self.order.iter().map(|index| self.nodes[*index].low.clone()).collect()
    }

    pub(crate) fn steps(&self) -> Vec<Step> {
        self.order.iter().map(|&node| Step { node, check: self.nodes[node].check }).collect()
    }

    pub(crate) fn low(&self, node: usize) -> &Low {
        &self.nodes[node].low
    }

    pub(crate) fn tag(&self, node: usize) -> String {
        tag(&self.nodes[node].low)
    }

    /// Returns the states a node depends on, with the requisite of each edge.
    pub(crate) fn needs(&self, node: usize) -> Vec<(Requisite, usize)> {
        let edges = self.nodes[node].into.iter();
        edges.flat_map(|(from, kinds)| kinds.iter().map(|kind| (*kind, *from))).collect()
    }

    /// Returns the tags of states that deal with the failure of one (`onfail`), unless they say
    /// that it counts all the same (`onfail_stop: False`).
    pub fn onfail_of(&self, tag: &str) -> Vec<String> {
        let Some(&node) = self.by_tag.get(tag) else { return Vec::new() };
        let handlers = self.nodes[node].out.iter().filter(|(to, kinds)| {
            let stops = self.nodes[**to].low.get("onfail_stop");
            stops != Some(Value::Bool(false))
                && kinds.iter().any(|kind| {
                    matches!(kind, Requisite::Onfail | Requisite::OnfailAny | Requisite::OnfailAll)
                })
        });
        handlers.map(|(to, _)| self.nodes[*to].tag.clone()).collect()
    }

    /// Returns the chunks that may be joined with a node's.
    pub(crate) fn group_of(&self, node: usize) -> Vec<Low> {
        let Some(group) = self.nodes[node].group else { return Vec::new() };
        self.groups[group].iter().map(|index| self.nodes[*index].low.clone()).collect()
    }

    /// Draws the graph in Graphviz' language, as `state.graph` returns it.
    pub fn to_dot(&self) -> String {
        let mut lines = vec!["digraph G {".to_owned()];
        for node in &self.nodes {
            let low = &node.low;
            let (id, name) = (text(low, "__id__"), text(low, "name"));
            let mut label = format!("{}.{}\\n{id}", text(low, "state"), text(low, "fun"));
            if name != id {
                label += &format!("\\n({name})");
            }
            lines.push(format!("  \"{}\" [label=\"{label}\"];", node.tag));
        }
        for node in &self.nodes {
            for (to, kinds) in &node.out {
                for kind in kinds {
                    let to = &self.nodes[*to].tag;
                    lines.push(format!(
                        "  \"{}\" -> \"{to}\" [label=\"{}\"];",
                        node.tag,
                        kind.word()
                    ));
                }
            }
        }
        lines.push("}".to_owned());
        lines.join("\n")
    }
}

/// One entry of the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) node: usize,
    /// Run with `test=True`, for a `prereq`.
    pub(crate) check: bool,
}

fn text_of(low: &Low, key: &str) -> String {
    text(low, key)
}

/// A requisite that cannot be resolved.
enum Wrong {
    NotText { module: String },
    Missing { module: String, name: String, near: Option<String> },
}

impl Wrong {
    /// `item` is where the requisite itself stands, if that is known.
    fn describe(self, low: &Low, kind: Requisite, places: &Places, item: Option<Place>) -> Problem {
        let (state, sls) = (text(low, "name"), text(low, "__sls__"));
        let word = kind.word();
        let argument = places.of_arg(&text(low, "__id__"), &text(low, "state"), word);
        let place = item.as_ref().or(argument);
        match self {
            Self::NotText { module } => Problem::new(format!(
                "Requisite [{word}: {module}] in state [{state}] in SLS [{sls}] must have a string \
                 as the value"
            ))
            .at(place),
            Self::Missing { module, name, near } => {
                let problem = Problem::new(format!(
                    "Referenced state does not exist for requisite [{word}: ({module}: {name})] in \
                     state [{state}] in SLS [{sls}]"
                ))
                .at(place);
                match near {
                    Some(near) => problem.help(format!("did you mean `{near}`?")),
                    None => problem,
                }
            }
        }
    }
}

/// `watch` on a module that does not react to it is a `require`.
fn watch_as_require(low: &Low, states: &dyn States) {
    for (watch, require) in [("watch", "require"), ("watch_any", "require_any")] {
        if !low.contains(watch) || states.watches(&text(low, "state")) {
            continue;
        }
        let Some(Value::List(moved)) = low.remove(watch) else { continue };
        match low.get_or_insert_with(require, || Value::list(Vec::<Value>::new())) {
            Value::List(list) => list.extend(moved.to_vec()),
            _ => {
                low.insert(require, moved);
            }
        }
    }
}

/// Reads `order` as a number, where words and nonsense have their Salt meaning.
fn raw_order(low: &Low, cap: i64) -> f64 {
    let order = low.get("order");
    let settled = match order.as_ref() {
        Some(Value::Int(_) | Value::Float(_) | Value::Bool(_)) => {
            return order.and_then(|order| order.as_float()).unwrap_or(f64::INFINITY);
        }
        Some(Value::Str(word)) if word == "last" => cap + LAST,
        Some(Value::Str(word)) if word == "first" => 0,
        _ => cap,
    };
    low.insert("order", settled);
    settled as f64
}

/// Writes the final `order` into the chunk: `names` in their order, negative ones at the end.
fn settle_order(low: &Low, cap: i64) -> f64 {
    let mut order = raw_order(low, cap);
    if let Some(position) = low.remove("name_order").and_then(|order| order.as_float())
        && position != 0.0
    {
        order += position / 10_000.0;
        low.insert("order", order);
    }
    if order < 0.0 {
        order += (cap + LAST) as f64;
        let settled = match low.get("order") {
            Some(Value::Int(own)) => Value::Int(own + cap + LAST),
            _ => Value::Float(order),
        };
        low.insert("order", settled);
    }
    order
}

/// A node's place in the queue.
#[derive(PartialEq)]
struct Position {
    /// Its own order, or that of the earliest state waiting for it.
    order: f64,
    own: f64,
    label: String,
    tag: String,
}

impl Eq for Position {}

impl PartialOrd for Position {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Position {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order
            .total_cmp(&other.order)
            .then_with(|| self.own.total_cmp(&other.own))
            .then_with(|| self.label.cmp(&other.label))
            .then_with(|| self.tag.cmp(&other.tag))
    }
}
