//! `file.accumulated`: texts collected for a file that another state writes.
//!
//! They live in the job's context, by file and by accumulator: `file.managed` hands them to its
//! template as `accumulator`, `file.blockreplace` adds them to its content. Collecting changes
//! nothing on the machine, so it happens in a test as well.

use halite_spec::{Applied, Args, Cx, Error, Plan, Result, State};
use halite_value::{Dict, List, Value};

const TEXTS: &str = "file.accumulators";
const DEPENDENTS: &str = "file.accumulators_deps";

fn table(cx: &Cx, name: &str) -> Dict {
    match cx.context.get_or_insert_with(name, Value::dict) {
        Value::Dict(table) => table,
        _ => Dict::new(),
    }
}

fn below(dict: &Dict, key: &str) -> Dict {
    match dict.get_or_insert_with(key, Value::dict) {
        Value::Dict(inner) => inner,
        _ => Dict::new(),
    }
}

/// Returns what was collected for a file: accumulator → list of texts.
pub(super) fn collected(cx: &Cx, file: &str) -> Option<Dict> {
    match table(cx, TEXTS).get(file) {
        Some(Value::Dict(texts)) => Some(texts),
        _ => None,
    }
}

/// Returns the lines meant for the state that runs now; all, if none names it.
pub(super) fn lines_for_this_state(cx: &Cx, file: &str) -> Vec<String> {
    let Some(texts) = collected(cx, file) else { return Vec::new() };
    let id = cx.low.get("__id__").unwrap_or_default();
    let dependents = table(cx, DEPENDENTS).get(file);
    let dependents = dependents.as_ref().and_then(Value::as_dict);
    let names_us = |name: &halite_value::Key| match dependents.and_then(|all| all.get(name)) {
        Some(Value::List(ids)) => ids.contains(&id),
        _ => false,
    };
    let chosen: Vec<_> = texts.into_iter().filter(|(name, _)| names_us(name)).collect();
    let chosen = if chosen.is_empty() { texts.entries() } else { chosen };
    chosen
        .into_iter()
        .flat_map(|(_, list)| list.items_of_sequence().unwrap_or_default())
        .map(|line| line.to_str().to_string())
        .collect()
}

/// Collect texts for a file that a state, which requires this one, writes.
#[derive(Args)]
#[arg(open)]
pub struct Accumulated {
    /// The name of the accumulator.
    name: String,
    /// The file that will hold the texts.
    filename: String,
    /// A text or a list of them.
    #[arg(required)]
    text: Option<Value>,
}

impl State for Accumulated {
    type Seen = String;

    fn observe(&self, cx: &Cx) -> Result<String> {
        if self.name.is_empty() {
            return Err(Error::failed("Must provide name to file.accumulated"));
        }
        let Some(text) = &self.text else {
            return Err(Error::failed("No text supplied for accumulator"));
        };
        let mut needed_by = Vec::new();
        for word in ["require_in", "watch_in"] {
            let list = cx.low.get(word).and_then(|list| list.items_of_sequence());
            needed_by.extend(list.unwrap_or_default());
        }
        let is_file = |entry: &Value| match entry {
            Value::Dict(dict) => dict.contains("file"),
            Value::Str(text) => text.contains("file"),
            _ => false,
        };
        if !needed_by.iter().any(is_file) {
            let part = |key: &str| cx.low.get(key).unwrap_or_default().to_str();
            return Err(Error::failed(format!(
                "Orphaned accumulator {} in {}:{}",
                self.name,
                part("__sls__"),
                part("__id__")
            )));
        }
        let dependents = below(&table(cx, DEPENDENTS), &self.filename);
        let ids = dependents.get_or_insert_with(self.name.as_str(), || List::new().into());
        if let Value::List(ids) = ids {
            for entry in &needed_by {
                ids.extend(entry.as_dict().map(Dict::values).unwrap_or_default());
            }
        }
        let texts = below(&table(cx, TEXTS), &self.filename);
        let texts = texts.get_or_insert_with(self.name.as_str(), || List::new().into());
        let mut comment = String::new();
        if let Value::List(texts) = texts {
            for piece in text.items_of_sequence().unwrap_or_else(|| vec![text.clone()]) {
                if !texts.contains(&piece) {
                    texts.push(piece);
                    comment = format!(
                        "Accumulator {} for file {} was charged by text",
                        self.name, self.filename
                    );
                }
            }
        }
        Ok(comment)
    }

    fn plan(&self, comment: &String) -> Result<Plan> {
        Ok(Plan::nothing(comment))
    }

    fn apply(&self, _: &Cx, _: String) -> Result<Applied> {
        Ok(Applied::as_planned())
    }
}
