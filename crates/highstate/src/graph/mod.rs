//! The requisite graph: who must run before whom, and the order that follows.
//!
//! - [`names`]: which chunks answer to a name;
//! - [`wishes`]: requisites as authors write them, looked up;
//! - [`edges`]: what they mean for the steps of the run;
//! - [`order`]: the order of the steps;
//! - [`cycle`]: why there is none.
//!
//! A chunk that some `prereq` names is run twice, so it has two steps: its check and its applying.
//! Cost is linear in states and requisites (times a logarithm for sorting).

mod cycle;
mod edges;
mod names;
mod order;
mod wishes;

use std::collections::HashMap;

use halite_value::{Dict, SmolStr, Value, entries};

pub(crate) use self::edges::{Pass, StepId};
use self::{
    edges::{Net, Step},
    names::Names,
    wishes::Reader,
};
use crate::{
    Low, Problem, States,
    keywords::Requisite,
    low::{Settings, tag, text},
    places::Places,
};

/// States aggregated into one call at most.
const MAX_GROUP: usize = 500;

/// Low chunks and the requisites between them.
#[derive(Default)]
pub struct Graph {
    chunks: Vec<Chunk>,
    by_tag: HashMap<SmolStr, usize>,
    names: Names,
    net: Net,
    order: Vec<StepId>,
    /// Chunks that may be joined into one call.
    groups: Vec<Vec<usize>>,
    /// Returns of states that were disabled.
    disabled: Vec<(String, Dict)>,
}

struct Chunk {
    tag: SmolStr,
    low: Low,
    may_aggregate: bool,
    group: Option<usize>,
}

/// The name of a step: of two steps of one chunk, the check has its own.
fn tag_of(chunk: &Chunk, pass: Pass) -> String {
    match pass {
        Pass::Apply => chunk.tag.to_string(),
        Pass::Check => format!("{}_|-__prereq_test__", chunk.tag),
    }
}

impl Graph {
    /// Adds a chunk. The same tag twice is one chunk: the later replaces the earlier.
    pub(crate) fn add(&mut self, low: Low, may_aggregate: bool) {
        let tag = SmolStr::from(tag(&low));
        if let Some(&known) = self.by_tag.get(&tag) {
            self.chunks[known].low = low;
            self.chunks[known].may_aggregate = may_aggregate;
            return;
        }
        self.names.add(self.chunks.len(), &low);
        self.by_tag.insert(tag.clone(), self.chunks.len());
        self.chunks.push(Chunk { tag, low, may_aggregate, group: None });
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

    /// Turns the requisites of every chunk into edges and orders the steps.
    pub(crate) fn resolve(
        &mut self,
        states: &dyn States,
        places: &Places,
        disabled: &[String],
    ) -> Vec<Problem> {
        let reader = Reader { chunks: &self.chunks, names: &self.names, places, disabled };
        let (mut wishes, mut problems) = (Vec::new(), Vec::new());
        for (number, chunk) in self.chunks.iter().enumerate() {
            wishes::watch_as_require(&chunk.low, states);
            problems.extend(reader.read(number, &mut wishes).err());
        }
        self.net = Net::new(self.chunks.len(), &wishes);
        let behind_all = order::behind_all(self.chunks.iter().map(|chunk| &chunk.low));
        self.order = order::sort(&self.net, &self.chunks, behind_all);
        if self.order.len() < self.net.steps.len() {
            problems.push(cycle::problem(self, places));
        }
        self.group();
        // All that is asked for by name has been found.
        self.names = Names::default();
        problems
    }

    /// Puts chunks that may be joined into groups: same module, none depending on another.
    fn group(&mut self) {
        let mut by_module: HashMap<String, Vec<usize>> = HashMap::new();
        for &step in &self.order {
            let Step { chunk, pass } = self.net.steps[step];
            if pass == Pass::Check || !self.chunks[chunk].may_aggregate {
                continue;
            }
            let fits = |group: &usize| {
                let members = &self.groups[*group];
                members.len() < MAX_GROUP
                    && !members.iter().any(|member| self.net.reaches(*member, step))
            };
            let groups = by_module.entry(text(&self.chunks[chunk].low, "state")).or_default();
            let group = groups.iter().copied().find(fits).unwrap_or_else(|| {
                self.groups.push(Vec::new());
                groups.push(self.groups.len() - 1);
                self.groups.len() - 1
            });
            self.groups[group].push(chunk);
            self.chunks[chunk].group = Some(group);
        }
    }

    /// Leaves out of the run every chunk that is neither wanted nor needed by a wanted one; tells
    /// whether any was wanted.
    pub fn keep_only(&mut self, wanted: impl Fn(&Low) -> bool) -> bool {
        let all = 0..self.net.steps.len();
        let wanted: Vec<StepId> = all.filter(|step| wanted(self.low(*step))).collect();
        let found = !wanted.is_empty();
        let kept = self.net.with_needs(wanted);
        self.order.retain(|step| kept[*step]);
        found
    }

    pub(crate) fn disabled(&self) -> &[(String, Dict)] {
        &self.disabled
    }

    /// Returns the chunks in the order of the run; the target of a `prereq` comes twice.
    pub fn chunks(&self) -> Vec<Low> {
        self.order.iter().map(|step| self.low(*step).clone()).collect()
    }

    /// Returns the steps in the order of the run.
    pub(crate) fn steps(&self) -> &[StepId] {
        &self.order
    }

    pub(crate) fn is_check(&self, step: StepId) -> bool {
        self.net.steps[step].pass == Pass::Check
    }

    /// Returns the chunk of a step. Both steps of a chunk share it.
    pub(crate) fn low(&self, step: StepId) -> &Low {
        &self.chunks[self.net.steps[step].chunk].low
    }

    /// Returns the name under which returns of a step are filed.
    pub(crate) fn tag(&self, step: StepId) -> &SmolStr {
        &self.chunks[self.net.steps[step].chunk].tag
    }

    /// Returns the steps a step waits for, with the requisite of each edge.
    pub(crate) fn needs(&self, step: StepId) -> impl Iterator<Item = (Requisite, StepId)> {
        self.net.into[step].edges().map(|(first, kind)| (kind, first))
    }

    /// Returns the tags of states that deal with the failure of one (`onfail`), unless they say
    /// that it counts all the same (`onfail_stop: False`).
    pub fn onfail_of(&self, tag: &str) -> Vec<String> {
        let Some(edges) = self.by_tag.get(tag).and_then(|chunk| self.net.out.get(*chunk)) else {
            return Vec::new();
        };
        let deals_with = |(step, kind): &(StepId, Requisite)| {
            kind.is_onfail() && self.low(*step).get("onfail_stop") != Some(Value::Bool(false))
        };
        edges.edges().filter(deals_with).map(|(step, _)| self.tag(step).to_string()).collect()
    }

    /// Returns tag and chunk of those that may be joined with a step's.
    pub(crate) fn group_of(&self, step: StepId) -> Vec<(&str, &Low)> {
        let Step { chunk, pass } = self.net.steps[step];
        let Some(group) = self.chunks[chunk].group.filter(|_| pass == Pass::Apply) else {
            return Vec::new();
        };
        let members = self.groups[group].iter().map(|member| &self.chunks[*member]);
        members.map(|chunk| (chunk.tag.as_str(), &chunk.low)).collect()
    }

    /// Draws the graph in Graphviz' language, as `state.graph` returns it.
    pub fn to_dot(&self) -> String {
        let steps = self.net.steps.iter();
        let tags: Vec<String> =
            steps.map(|step| tag_of(&self.chunks[step.chunk], step.pass)).collect();
        let mut lines = vec!["digraph G {".to_owned()];
        for (step, tag) in tags.iter().enumerate() {
            let field = |key: &str| text(self.low(step), key);
            let (id, name) = (field("__id__"), field("name"));
            let mut label = format!("{}.{}\\n{id}", field("state"), field("fun"));
            if name != id {
                label += &format!("\\n({name})");
            }
            lines.push(format!("  \"{tag}\" [label=\"{label}\"];"));
        }
        for (edges, first) in self.net.out.iter().zip(&tags) {
            for (behind, kind) in edges.edges() {
                let (behind, word) = (&tags[behind], kind.word());
                lines.push(format!("  \"{first}\" -> \"{behind}\" [label=\"{word}\"];"));
            }
        }
        lines.push("}".to_owned());
        lines.join("\n")
    }
}
