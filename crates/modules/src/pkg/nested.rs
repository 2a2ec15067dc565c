//! What Salt's `nested` outputter makes of the details of an error, for the text of the error.

use halite_value::{Dict, Value};

/// Renders without colours; keys sorted, as the outputter does.
pub(crate) fn nested(value: &Dict) -> String {
    let mut lines = Vec::new();
    dict(value, 0, &mut lines);
    lines.join("\n")
}

fn dict(value: &Dict, indent: usize, lines: &mut Vec<String>) {
    let pad = " ".repeat(indent);
    if indent > 0 {
        lines.push(format!("{pad}----------"));
    }
    let mut entries = value.entries();
    entries.sort_by_key(|(key, _)| key.to_str());
    for (key, value) in entries {
        lines.push(format!("{pad}{key}:"));
        match &value {
            Value::Dict(inner) => dict(inner, indent + 4, lines),
            Value::List(items) => list(&items.to_vec(), indent + 4, lines),
            other => text(other, &" ".repeat(indent + 4), "", lines),
        }
    }
}

fn list(items: &[Value], indent: usize, lines: &mut Vec<String>) {
    let pad = " ".repeat(indent);
    for item in items {
        match item {
            Value::Dict(inner) => {
                lines.push(format!("{pad}|_"));
                dict(inner, indent + 2, lines);
            }
            Value::List(inner) => {
                lines.push(format!("{pad}|_"));
                list(&inner.to_vec(), indent + 2, lines);
            }
            other => text(other, &pad, "- ", lines),
        }
    }
}

fn text(value: &Value, pad: &str, prefix: &str, lines: &mut Vec<String>) {
    let shown = value.to_str();
    for (at, line) in shown.lines().enumerate() {
        let lead = if at == 0 { prefix.to_owned() } else { " ".repeat(prefix.len()) };
        lines.push(format!("{pad}{lead}{line}"));
    }
    if shown.is_empty() {
        lines.push(pad.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use halite_value::{dict, entries, list};

    use super::*;

    #[test]
    fn an_error() {
        let info = entries! {
            "errors" => list!["E: one\nW: two"], "changes" => dict! {},
        };
        assert_eq!(nested(&info), "changes:\n    ----------\nerrors:\n    - E: one\n      W: two");
    }
}
