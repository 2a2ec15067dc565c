//! High data into low chunks: one dict per state to run.

use std::fmt::Write as _;

use halite_target::fnmatch;
use halite_value::{Dict, List, Value};

use crate::{Graph, High, Low, States};

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

/// Splits verified high data into chunks and puts them into a graph, without edges yet.
pub(crate) fn compile(high: &High, states: &dyn States, settings: &Settings) -> Graph {
    let mut graph = Graph::default();
    for (id, body) in high {
        let (Some(name), Value::Dict(body)) = (id.as_str(), body) else { continue };
        if name.starts_with("__") {
            continue;
        }
        for (module, args) in &body {
            let (Some(module), Value::List(args)) = (module.as_str(), args) else { continue };
            if module.starts_with("__") {
                continue;
            }
            for chunk in chunks(name, &body, module, &args, settings) {
                add(&mut graph, chunk, states, settings);
            }
        }
    }
    graph
}

/// Makes the chunks of one declaration: one, or one for each of its `names`.
fn chunks(id: &str, body: &Dict, module: &str, args: &List, settings: &Settings) -> Vec<Low> {
    let chunk = Dict::new();
    chunk.insert("state", module);
    chunk.insert("name", id);
    if let Some(jid) = &settings.orchestration_jid {
        chunk.insert("__orchestration_jid__", jid);
    }
    for key in ["__sls__", "__env__", "__sls_included_from__"] {
        if let Some(value) = body.get(key) {
            chunk.insert(key, value);
        }
    }
    chunk.insert("__id__", id);
    let mut names: Vec<Value> = Vec::new();
    let mut function = None;
    for arg in args {
        match arg {
            Value::Str(name) => function = Some(name),
            Value::Dict(arg) => {
                for (word, value) in &arg {
                    match word.as_str() {
                        Some("names") => {
                            for name in value.items_of_sequence().unwrap_or_default() {
                                if !names.contains(&name) {
                                    names.push(name);
                                }
                            }
                        }
                        Some("state") => {}
                        Some("name") if value.as_str().is_none() => {
                            chunk.insert("name", id);
                        }
                        _ => {
                            chunk.insert(word, value);
                        }
                    }
                }
            }
            _ => {}
        }
    }
    let Some(function) = function else { return Vec::new() };
    if names.is_empty() {
        let chunk = chunk.deep_copy();
        chunk.insert("fun", function);
        return vec![chunk];
    }
    let named = names.into_iter().enumerate().map(|(index, name)| {
        let chunk = chunk.deep_copy();
        match name {
            // `names: [{/etc/x: [{mode: 600}]}]` gives that one its own arguments.
            Value::Dict(own) => {
                for (name, args) in own.into_iter().take(1) {
                    chunk.insert("name", name.into_value());
                    for arg in args.items_of_sequence().unwrap_or_default() {
                        if let Value::Dict(arg) = arg {
                            chunk.update(&arg);
                        }
                    }
                }
            }
            name => {
                chunk.insert("name", name);
            }
        }
        chunk.insert("name_order", index + 1);
        chunk.insert("fun", &function);
        chunk
    });
    named.collect()
}

fn add(graph: &mut Graph, chunk: Low, states: &dyn States, settings: &Settings) {
    let full = format!("{}.{}", text(&chunk, "state"), text(&chunk, "fun"));
    if let Some(glob) = settings.disabled_states.iter().find(|glob| fnmatch::fnmatch(&full, glob)) {
        let comment = format!(
            "The state function \"{full}\" is currently disabled by \"{glob}\", to re-enable, run \
             state.enable {glob}."
        );
        graph.disable(&chunk, &comment);
        return;
    }
    let aggregate = may_aggregate(&chunk, &settings.aggregate, states);
    graph.add(chunk, aggregate);
}

fn may_aggregate(chunk: &Low, configured: &Value, states: &dyn States) -> bool {
    let wanted = chunk.get("aggregate").unwrap_or_else(|| configured.clone());
    let module = text(chunk, "state");
    let asked = match &wanted {
        Value::Bool(flag) => *flag,
        Value::List(modules) => modules.contains(&Value::from(&module)),
        _ => false,
    };
    asked && states.can_aggregate(&module)
}
