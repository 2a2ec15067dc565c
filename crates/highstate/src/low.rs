//! High data into low chunks: one dict per state to run.
//!
//! A [`Draft`] collects the arguments of a declaration; it yields one chunk, or one for each of its
//! `names`. The order of a chunk's keys is Salt's, because `state.show_lowstate` shows it. A
//! declaration without a function yields nothing: an edit can make one, of a state that an id does
//! not have.

use std::fmt::Write as _;

use halite_target::fnmatch;
use halite_value::{Dict, Key, List, SmolStr, Value};
use indexmap::IndexSet;

use crate::{Graph, High, Low, States, keywords::REQUISITE_WORDS, parse::Origin};

/// What the configuration says about compiling.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// `disabled_requisites`
    pub disabled_requisites: Vec<String>,
    /// `state_aggregate`: a flag or a list of modules.
    pub aggregate: Value,
    /// Globs of functions disabled by `state.disable`.
    pub disabled_states: Vec<String>,
    /// Set for states run by an orchestration.
    pub orchestration_jid: Option<Value>,
}

/// Returns the name under which a state's return is filed.
pub fn tag(low: &Low) -> String {
    let mut tag = String::new();
    for (index, key) in ["state", "__id__", "name", "fun"].into_iter().enumerate() {
        let separator = if index > 0 { "_|-" } else { "" };
        let _ = write!(tag, "{separator}{}", low.get(key).unwrap_or_default());
    }
    tag
}

/// Returns a text field of a chunk.
pub(crate) fn text(low: &Low, key: &str) -> String {
    low.get(key).map(|value| value.to_string()).unwrap_or_default()
}

/// Splits high data into chunks and puts them into a graph, without edges yet. What became chunks is
/// given up at once: a large tree is not kept twice.
pub(crate) fn compile(mut high: High, states: &dyn States, settings: &Settings) -> Graph {
    let mut graph = Graph::default();
    let ids = high.state_ids();
    let mut last_use = vec![0; high.bodies.len()];
    for (position, (_, body)) in ids.iter().enumerate() {
        last_use[*body] = position;
    }
    for (position, (id, body)) in ids.iter().enumerate() {
        let shared = &mut high.bodies[*body];
        let is_last = last_use[*body] == position;
        let body = if is_last { std::mem::take(shared) } else { shared.clone() };
        for (module, args) in body.lists() {
            let draft = Draft::new(id, module, &body.origin, settings).with(args);
            for chunk in draft.chunks() {
                settings.admit(&mut graph, chunk, states);
            }
        }
    }
    graph
}

/// A declaration on its way to chunks.
struct Draft {
    base: Low,
    function: Option<SmolStr>,
    names: Names,
}

impl Draft {
    fn new(id: &str, module: &str, origin: &Origin, settings: &Settings) -> Self {
        let base = Dict::new();
        base.insert("state", module);
        base.insert("name", id);
        if let Some(jid) = &settings.orchestration_jid {
            base.insert("__orchestration_jid__", jid);
        }
        for (key, value) in origin.entries() {
            base.insert(key, value);
        }
        base.insert("__id__", id);
        Self { base, function: None, names: Names::default() }
    }

    fn with(mut self, args: &List) -> Self {
        for arg in args {
            match arg {
                Value::Str(function) => self.function = Some(function),
                Value::Dict(arg) => {
                    arg.into_iter().for_each(|(word, value)| self.set(word, value));
                }
                _ => {}
            }
        }
        self
    }

    fn set(&mut self, word: Key, value: Value) {
        match word.as_str() {
            Some("names") => {
                let names = value.items_of_sequence().unwrap_or_default();
                names.into_iter().for_each(|name| self.names.add(name));
            }
            Some("state") => {}
            // A name that is no text is none: the id is.
            Some("name") if value.as_str().is_none() => {
                self.base.insert("name", self.base.get("__id__"));
            }
            Some(requisite) if REQUISITE_WORDS.contains(&requisite) => {
                self.base.insert(word, without_key_places(value));
            }
            _ => {
                self.base.insert(word, value);
            }
        }
    }

    fn chunks(self) -> Vec<Low> {
        let Self { base, function, names } = self;
        let Some(function) = function else { return Vec::new() };
        // Chunks are changed as they run, so none shares a list with another. The function comes before
        // the copy, which has room for what it holds and no more.
        if names.all.is_empty() {
            base.insert("fun", &function);
            return vec![base.deep_copy()];
        }
        let named = names.all.into_iter().enumerate().map(|(index, name)| {
            let chunk = base.deep_copy();
            give_name(&chunk, name);
            chunk.insert("name_order", index + 1);
            chunk.insert("fun", &function);
            chunk
        });
        named.collect()
    }
}

/// Forgets where the words of requisites stood: there are many, and their list knows where each entry is.
fn without_key_places(value: Value) -> Value {
    let Value::List(list) = &value else { return value };
    let entry = |entry: &Value| match entry {
        Value::Dict(entry) => Value::Dict(entry.read().clone().into()),
        bare => bare.clone(),
    };
    let copy: List = list.read().iter().map(entry).collect();
    copy.set_places((0..copy.len()).map_while(|at| list.place_of(at).cloned()).collect());
    copy.into()
}

/// `names: [{/etc/x: [{mode: 600}]}]` gives that one its own arguments.
fn give_name(chunk: &Low, name: Value) {
    let Value::Dict(own) = name else {
        chunk.insert("name", name);
        return;
    };
    let Some((name, args)) = own.entries().into_iter().next() else { return };
    chunk.insert("name", name.into_value());
    for arg in args.items_of_sequence().unwrap_or_default() {
        if let Value::Dict(arg) = arg {
            chunk.update(&arg);
        }
    }
}

/// The names of a declaration, each once.
#[derive(Default)]
struct Names {
    all: Vec<Value>,
    keys: IndexSet<Key>,
    /// Names with arguments of their own cannot be keys.
    others: Vec<Value>,
}

impl Names {
    fn add(&mut self, name: Value) {
        let is_new = match Key::try_from(name.clone()) {
            Ok(key) => self.keys.insert(key),
            Err(_) if self.others.contains(&name) => false,
            Err(_) => {
                self.others.push(name.clone());
                true
            }
        };
        if is_new {
            self.all.push(name);
        }
    }
}

impl Settings {
    /// Puts a chunk into the graph, unless its function is disabled.
    fn admit(&self, graph: &mut Graph, chunk: Low, states: &dyn States) {
        let full = format!("{}.{}", text(&chunk, "state"), text(&chunk, "fun"));
        let off = self.disabled_states.iter().find(|glob| fnmatch::fnmatch(&full, glob));
        if let Some(glob) = off {
            let comment = format!(
                "The state function \"{full}\" is currently disabled by \"{glob}\", to re-enable, \
                 run state.enable {glob}."
            );
            return graph.disable(&chunk, &comment);
        }
        let joins = self.wants_joined(&chunk) && states.can_aggregate(&text(&chunk, "state"));
        graph.add(chunk, joins);
    }

    fn wants_joined(&self, chunk: &Low) -> bool {
        match chunk.get("aggregate").as_ref().unwrap_or(&self.aggregate) {
            Value::Bool(flag) => *flag,
            Value::List(modules) => modules.contains(&text(chunk, "state").into()),
            _ => false,
        }
    }
}
