//! How `{{ … }}` prints a value.
//!
//! Salt prints dicts so that YAML reads them back: as Python writes them, but text with line breaks
//! in a dict becomes a double-quoted YAML scalar. Everything else prints as Python's `str`.

use std::fmt::Write as _;

use halite_value::{Dict, Value, float_repr, str_repr};

use super::{
    error::{Error, type_error},
    eval::Interp,
    objects::*,
    ops::{big_str, push_int, recursion},
};

type Result<T> = std::result::Result<T, Error>;

const MAX_DEPTH: usize = 300;

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Str,
    Repr,
}

impl Interp<'_> {
    /// Appends what printing the value writes.
    pub(crate) fn finalize(&mut self, value: &Value, out: &mut String) -> Result<()> {
        match value {
            Value::Str(text) => out.push_str(text),
            Value::Int(int) => push_int(out, *int),
            Value::List(_) | Value::Dict(_) | Value::Tuple(_) => {
                self.pretty(value, Mode::Str, 0, out)?;
            }
            Value::Object(object) => {
                self.refuse_groups(value)?;
                if object.as_any().is::<Set>() {
                    self.pretty(value, Mode::Str, 0, out)?;
                } else {
                    let text = self.str_of(value)?;
                    out.push_str(&text);
                }
            }
            other => {
                let text = self.str_of(other)?;
                out.push_str(&text);
            }
        }
        Ok(())
    }

    /// Salt's copy of a list breaks on the named pairs of `groupby`; so printing them is an error.
    fn refuse_groups(&self, value: &Value) -> Result<()> {
        if value.as_object::<Group>().is_some() {
            return Err(type_error(
                "_GroupTuple.__new__() missing 1 required positional argument: 'list'",
            ));
        }
        Ok(())
    }

    fn pretty(&mut self, value: &Value, mode: Mode, depth: usize, out: &mut String) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err(recursion("while calling a Python object"));
        }
        self.step()?;
        match value {
            Value::Dict(dict) => self.pretty_dict(dict, mode, depth, out)?,
            Value::List(list) => {
                out.push('[');
                self.pretty_items(&list.to_vec(), depth, out)?;
                out.push(']');
            }
            Value::Tuple(items) => {
                out.push('(');
                self.pretty_items(items, depth, out)?;
                out.push_str(if items.len() == 1 { ",)" } else { ")" });
            }
            Value::Str(text) if mode == Mode::Repr => out.push_str(&str_repr(text)),
            Value::Str(text) => out.push_str(text),
            Value::Int(int) => push_int(out, *int),
            Value::BigInt(int) => out.push_str(&big_str(int)?),
            Value::Float(float) => out.push_str(&float_repr(*float)),
            Value::Object(object) => {
                self.refuse_groups(value)?;
                if let Some(set) = object.as_any().downcast_ref::<Set>() {
                    let items = set_items(set);
                    if items.is_empty() {
                        out.push_str("set()");
                    } else {
                        out.push('{');
                        self.pretty_items(&items, depth, out)?;
                        out.push('}');
                    }
                } else if mode == Mode::Str {
                    let text = self.str_of(value)?;
                    out.push_str(&text);
                } else {
                    out.push_str(&object.repr());
                }
            }
            other if mode == Mode::Repr => out.push_str(&other.repr()),
            other => out.push_str(&other.to_str()),
        }
        self.room(out.len() / 8)
    }

    fn pretty_items(&mut self, items: &[Value], depth: usize, out: &mut String) -> Result<()> {
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                out.push_str(", ");
            }
            self.pretty(item, Mode::Repr, depth + 1, out)?;
        }
        Ok(())
    }

    fn pretty_dict(
        &mut self,
        dict: &Dict,
        mode: Mode,
        depth: usize,
        out: &mut String,
    ) -> Result<()> {
        out.push('{');
        for (index, (key, value)) in dict.into_iter().enumerate() {
            if index > 0 {
                out.push_str(", ");
            }
            out.push_str(&key.repr());
            out.push_str(": ");
            match text_of(&value) {
                Some(text) if text.contains(['\n', '\r', '\t']) => quote_yaml(text, out),
                Some(_) => out.push_str(&value.repr()),
                None => self.pretty(&value, mode, depth + 1, out)?,
            }
        }
        out.push('}');
        Ok(())
    }
}

/// Appends a text as a double-quoted YAML scalar on one line.
pub(crate) fn quote_yaml(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\0' => out.push_str("\\0"),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\x0b' => out.push_str("\\v"),
            '\x0c' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\x1b' => out.push_str("\\e"),
            '\u{85}' => out.push_str("\\N"),
            '\u{a0}' => out.push_str("\\_"),
            '\u{2028}' => out.push_str("\\L"),
            '\u{2029}' => out.push_str("\\P"),
            '\u{feff}' => out.push_str("\\uFEFF"),
            c if c.is_control() => {
                let _ = write!(out, "\\x{:02X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
