//! `json`: one document per return.
//!
//! Four spaces per level unless told otherwise; negative or null is one line. What JSON cannot hold
//! is written as Python's `repr` in a text; a key that cannot be one makes the document `{}`.

use halite_value::{Dict, Value, json};

use crate::{Indent, Style, Unfit, python};

pub(crate) fn render(ret: &Value, style: &Style, out: &mut String) -> Result<(), Unfit> {
    if document(ret, &style.output_indent, out).is_none() {
        out.clear();
        out.push_str("{}");
    }
    Ok(())
}

/// Writes the document into an empty text; `None` if there can be none.
fn document(ret: &Value, indent: &Indent, out: &mut String) -> Option<()> {
    let spaces = match indent {
        Indent::Unset | Indent::Pretty => Some(4),
        Indent::Null => None,
        Indent::Spaces(spaces) => usize::try_from(*spaces).ok(),
        Indent::Text(_) => Some(1),
    };
    let sort_keys = *indent == Indent::Pretty;
    if sort_keys && !sortable(ret) {
        return None;
    }
    let style =
        json::Style { indent: spaces, sort_keys, ensure_ascii: false, ..Default::default() };
    let written = match json::write(ret, &style, out) {
        Err(json::WriteError::Type(_)) => {
            out.clear();
            json::write(&with_reprs(ret), &style, out)
        }
        done => done,
    };
    written.ok()?;
    if let Indent::Text(unit) = indent {
        *out = reindented(out, unit);
    }
    Some(())
}

/// Replaces what JSON has no words for by its `repr`.
fn with_reprs(value: &Value) -> Value {
    match value {
        Value::Bytes(_) | Value::Timestamp(_) | Value::Object(_) => Value::from(value.repr()),
        Value::List(list) => Value::list(list.read().iter().map(with_reprs)),
        Value::Tuple(items) => Value::list(items.iter().map(with_reprs)),
        Value::Dict(dict) => {
            let dict: Dict = dict.into_iter().map(|(key, item)| (key, with_reprs(&item))).collect();
            dict.into()
        }
        other => other.clone(),
    }
}

/// Tells whether all dicts have keys of one order, as sorting demands.
fn sortable(value: &Value) -> bool {
    match value {
        Value::List(list) => list.read().iter().all(sortable),
        Value::Tuple(items) => items.iter().all(sortable),
        Value::Dict(dict) => {
            python::sorted_entries(dict).is_some() && dict.read().values().all(sortable)
        }
        _ => true,
    }
}

/// Gives each level of a document written with one space its own unit. Texts in JSON hold no line
/// ends, so spaces that start a line are indentation.
fn reindented(text: &str, unit: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (index, line) in text.split('\n').enumerate() {
        let content = line.trim_start_matches(' ');
        if index > 0 {
            out.push('\n');
        }
        out.push_str(&unit.repeat(line.len() - content.len()));
        out.push_str(content);
    }
    out
}
