//! One argument as a person types it, or a program sends it in its place.
//!
//! It is read as YAML, with many exceptions made for what people type: a dict or list must be in
//! brackets, digits with underscores stay text, and text that YAML would shorten stays as it is.
//! `name=value` is a keyword argument if the name could be a Python name, roughly. The command line
//! reads arguments so, and a minion those of the form `name=value` that arrive as texts.

use halite_value::{Value, yaml};
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory as _};

/// Splits `name=value`, if that is what an argument looks like.
///
/// `a==b` is none, nor is anything with a line break before the last letter.
#[must_use]
pub fn keyword(arg: &str) -> Option<(&str, &str)> {
    let (name, value) = arg.split_once('=')?;
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut letters = name.chars();
    let first = letters.next()?;
    if !word(first) || is_digit(first) || !letters.all(|c| word(c) || c == '.' || c == '-') {
        return None;
    }
    let value = value.strip_suffix('\n').unwrap_or(value);
    (!value.starts_with('=') && !value.contains('\n')).then_some((name, value))
}

/// Tells whether Python's `\d` matches: digits of all scripts, but neither `²` nor `½`.
fn is_digit(letter: char) -> bool {
    letter.general_category() == GeneralCategory::DecimalNumber
}

/// Reads one argument as YAML, where that makes sense.
#[must_use]
pub fn yamlify(arg: &str) -> Value {
    meant(arg).unwrap_or_else(|| Value::from(arg))
}

/// Returns what an argument means; `None` if it is the text it is.
fn meant(arg: &str) -> Option<Value> {
    let trimmed = arg.trim();
    let digits = arg.contains('_') && trimmed.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    if matches!(trimmed, "" | "---" | "...") || digits || arg.contains(['\t', '\r', '\n']) {
        return None;
    }
    if arg == "None" {
        return Some(Value::Null);
    }
    let value = yaml::load_str(arg).ok()?;
    if arg.contains('#') {
        // A comment sign in a text is part of the text.
        return (!value.is_null() && value.as_str().is_none()).then_some(value);
    }
    let keep = match &value {
        Value::Dict(_) => arg.starts_with('{'),
        Value::List(_) => arg.starts_with('['),
        Value::Str(text) => !(text.is_empty() && matches!(arg, "|" | "!")),
        Value::Null => arg != "!",
        Value::Bool(_) | Value::Int(_) | Value::BigInt(_) | Value::Float(_) => true,
        _ => false,
    };
    keep.then_some(value)
}
