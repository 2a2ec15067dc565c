//! Which values an option accepts, with Salt's leniency.
//!
//! Salt tries to convert a value to the declared type and complains only when that fails, or when
//! it would "succeed" in a way nobody wants (a text turned into a list of letters). So `"5"` is
//! fine for a number, any scalar is fine for a text, and nothing but a bool is fine for a bool.

use halite_value::Value;

use crate::{Opt, Type};

/// Returns what is wrong with a value for an option, in Salt's words; `None` if nothing is.
pub(crate) fn mismatch(opt: &Opt, value: &Value) -> Option<String> {
    if !opt.checked || accepts(opt.types, value) {
        return None;
    }
    Some(format!(
        "Config option '{}' with value {} has an invalid type of {}, a {} is required for this option",
        opt.name,
        value,
        value.type_name(),
        expected(opt.types),
    ))
}

/// Returns the accepted types as a phrase: `str`, `str or list`, `dict, bool or NoneType`.
pub(crate) fn expected(types: &[Type]) -> String {
    match types {
        [] => "value".into(),
        [only] => only.name().into(),
        [first @ .., last] => {
            let first: Vec<_> = first.iter().map(|t| t.name()).collect();
            format!("{} or {}", first.join(", "), last.name())
        }
    }
}

fn accepts(types: &[Type], value: &Value) -> bool {
    types.is_empty()
        || types.iter().any(|&t| is(value, t))
        || value.as_str().is_some_and(|text| text.starts_with("sdb://"))
        || match types {
            [only] => converts(value, *only, &[]),
            many => many.iter().any(|&t| t != Type::Dict && converts(value, t, many)),
        }
}

/// Tells whether the value is of the type already.
fn is(value: &Value, kind: Type) -> bool {
    match kind {
        Type::None => value.is_null(),
        Type::Bool => matches!(value, Value::Bool(_)),
        Type::Int => matches!(value, Value::Int(_) | Value::BigInt(_)),
        Type::Float => matches!(value, Value::Float(_)),
        Type::Str => matches!(value, Value::Str(_)),
        Type::List => matches!(value, Value::List(_)),
        Type::Tuple => matches!(value, Value::Tuple(_)),
        Type::Dict => matches!(value, Value::Dict(_)),
    }
}

/// Tells whether Python's conversion works and is harmless. Types in `also` are harmless anyway.
fn converts(value: &Value, kind: Type, also: &[Type]) -> bool {
    let harmful = |types: &[Type]| types.iter().any(|t| !also.contains(t) && is(value, *t));
    match kind {
        Type::None => false,
        Type::Str => !harmful(&[Type::List, Type::Tuple, Type::Dict]),
        Type::List | Type::Tuple => {
            matches!(value, Value::List(_) | Value::Tuple(_) | Value::Dict(_) | Value::Str(_))
                && !harmful(&[Type::Dict, Type::Str])
        }
        Type::Bool => !harmful(&[
            Type::List,
            Type::Tuple,
            Type::Str,
            Type::Int,
            Type::Float,
            Type::Dict,
            Type::None,
        ]),
        Type::Int => {
            (value.as_str().is_some_and(is_int) || value.as_float().is_some())
                && !harmful(&[Type::Bool, Type::Float])
        }
        Type::Float => {
            (value.as_str().is_some_and(is_float) || value.as_float().is_some())
                && !harmful(&[Type::Bool])
        }
        Type::Dict => is_pairs(value),
    }
}

fn is_int(text: &str) -> bool {
    let text = text.trim();
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    !digits.is_empty()
        && !digits.starts_with('_')
        && !digits.ends_with('_')
        && !digits.contains("__")
        && digits.bytes().all(|b| b.is_ascii_digit() || b == b'_')
}

fn is_float(text: &str) -> bool {
    text.trim().replace('_', "").parse::<f64>().is_ok()
}

/// Tells whether Python's `dict()` takes the value: a sequence of pairs, or something empty.
fn is_pairs(value: &Value) -> bool {
    let length = |item: &Value| match item {
        Value::List(list) => Some(list.len()),
        Value::Tuple(items) => Some(items.len()),
        Value::Dict(dict) => Some(dict.len()),
        Value::Str(text) => Some(text.chars().count()),
        _ => None,
    };
    match value {
        Value::Str(text) => text.is_empty(),
        other => {
            other.items_of_sequence().is_some_and(|all| all.iter().all(|i| length(i) == Some(2)))
        }
    }
}

#[cfg(test)]
mod tests {
    use halite_value::{dict, list};

    use super::*;
    use crate::option::{BOOL, DICT, FLOAT, INT, LIST, STR};

    fn check(types: &[Type], value: impl Into<Value>, expected: bool) {
        let value = value.into();
        assert_eq!(accepts(types, &value), expected, "{value:?} for {types:?}");
    }

    #[test]
    fn one_type() {
        check(STR, 5, true);
        check(STR, true, true);
        check(STR, (), true);
        check(STR, list![1], false);
        check(INT, "5", true);
        check(INT, "five", false);
        check(INT, 5.0, false);
        check(INT, true, false);
        check(INT, (), false);
        check(FLOAT, 5, true);
        check(FLOAT, "0.5", true);
        check(FLOAT, false, false);
        check(BOOL, "yes", false);
        check(BOOL, 1, false);
        check(BOOL, (), false);
        check(LIST, "a", false);
        check(LIST, dict! {}, false);
        check(LIST, 5, false);
        check(DICT, list![], true);
        check(DICT, list![list![1, 2]], true);
        check(DICT, list!["abc"], false);
        check(DICT, "x", false);
        check(DICT, "sdb://vault/x", true);
    }

    #[test]
    fn several_types() {
        check(&[Type::Str, Type::Int], 5.5, true);
        check(&[Type::Str, Type::Int], list![1], false);
        check(&[Type::None, Type::Int], "5", true);
        check(&[Type::None, Type::Int], 5.5, false);
        check(&[Type::None, Type::Int], true, false);
        check(&[Type::None, Type::Dict], list![], false);
        check(&[Type::Dict, Type::Bool], "x", false);
        check(&[Type::List, Type::Str], dict! {}, false);
        check(&[Type::List, Type::Str], 5, true);
        check(&[Type::Dict, Type::List], "x", false);
        check(&[Type::Dict, Type::List], (), false);
        check(&[Type::Tuple, Type::Str], list![1], true);
        check(&[Type::Bool, Type::Int], "5", true);
    }

    #[test]
    fn phrases() {
        assert_eq!(expected(&[Type::Dict, Type::Bool, Type::None]), "dict, bool or NoneType");
        assert_eq!(expected(&[Type::Str, Type::List]), "str or list");
    }
}
