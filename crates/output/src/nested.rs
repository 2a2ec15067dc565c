//! `nested`: the default, an indented outline.
//!
//! Keys are sorted. What Salt has no case for (a date, bytes that are not UTF-8) shows as nothing
//! under its key, and so does an empty text.

use halite_value::{Dict, Value};

use crate::{Color, Style, Unfit, python, strip_escapes};

pub(crate) fn render(ret: &Value, style: &Style, out: &mut String) -> Result<(), Unfit> {
    outline(ret, style, style.nested_indent, style.retcode, out);
    Ok(())
}

/// Appends the outline of a value, indented; the lines have no line end after the last one.
pub(crate) fn outline(value: &Value, style: &Style, indent: usize, retcode: i64, out: &mut String) {
    let frame = |ok| if retcode == 0 { ok } else { Color::Red };
    let mut nested = Nested {
        style,
        begun: false,
        key: style.colors.get(frame(Color::Cyan)),
        item: style.colors.get(frame(Color::Green)),
        out,
    };
    nested.value(value, indent, "");
}

struct Nested<'a> {
    style: &'a Style,
    out: &'a mut String,
    /// Whether a line stands there already; it may be an empty one.
    begun: bool,
    key: &'a str,
    item: &'a str,
}

impl Nested<'_> {
    fn line(&mut self, indent: usize, color: &str, text: [&str; 2], suffix: &str) {
        if std::mem::replace(&mut self.begun, true) {
            self.out.push('\n');
        }
        python::pad(self.out, indent);
        self.out.push_str(color);
        text.iter().for_each(|part| self.out.push_str(part));
        self.out.push_str(self.style.colors.end());
        self.out.push_str(suffix);
    }

    fn value(&mut self, value: &Value, indent: usize, prefix: &str) {
        match value {
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::BigInt(_) | Value::Float(_) => {
                let color = self.style.colors.get(Color::LightYellow);
                self.line(indent, color, [prefix, &value.repr()], "");
            }
            Value::Str(text) => self.text(text, indent, prefix),
            Value::Bytes(bytes) => {
                if let Ok(text) = std::str::from_utf8(bytes) {
                    self.text(text, indent, prefix);
                }
            }
            Value::List(list) => self.items(&list.to_vec(), indent),
            Value::Tuple(items) => self.items(items, indent),
            Value::Dict(dict) => self.dict(dict, indent, prefix),
            Value::Timestamp(_) | Value::Object(_) => {}
        }
    }

    fn text(&mut self, text: &str, indent: usize, prefix: &str) {
        let color = self.style.colors.get(Color::Green);
        let continued = " ".repeat(prefix.len());
        for (index, line) in python::lines(text).enumerate() {
            let prefix = if index == 0 { prefix } else { &continued };
            let line = if self.style.strip_colors { strip_escapes(line) } else { line.into() };
            self.line(indent, color, [prefix, &line], "");
        }
    }

    fn items(&mut self, items: &[Value], indent: usize) {
        for item in items {
            if matches!(item, Value::List(_) | Value::Tuple(_) | Value::Dict(_)) {
                self.line(indent, self.item, ["|_", ""], "");
                self.value(item, indent + 2, "");
            } else {
                self.value(item, indent, "- ");
            }
        }
    }

    fn dict(&mut self, dict: &Dict, indent: usize, prefix: &str) {
        if indent > 0 {
            self.line(indent, self.key, ["----------", ""], "");
        }
        let entries = python::sorted_entries(dict).unwrap_or_else(|| by_text(dict));
        for (key, value) in entries {
            self.line(indent, self.key, [prefix, &key.to_str()], ":");
            self.value(&value, indent + 4, "");
        }
    }
}

/// Keys without a common order are made text first; of two that read alike, the later value stays.
fn by_text(dict: &Dict) -> Vec<(halite_value::Key, Value)> {
    let texts: Dict = dict.into_iter().map(|(key, value)| (key.to_str(), value)).collect();
    python::sorted_entries(&texts).unwrap_or_default()
}
