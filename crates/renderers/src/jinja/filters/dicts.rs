//! Salt's filters on dicts.

use halite_value::{Dict, Value, lookup};

use super::{Row, words::class_of};
use crate::jinja::{
    call::Bound,
    error::{Class, Error, type_error},
    eval::{Interp, Result},
    methods,
    objects::*,
};

pub(crate) const FILTERS: &[Row] = &[
    ("traverse", "traverse_dict_and_list(data, key, default=, delimiter=)", traverse),
    (
        "set_dict_key_value",
        "set_dict_key_value(in_dict, keys, value, delimiter=, ordered_dict=)",
        |interp, args| change(interp, args, Change::Set),
    ),
    (
        "update_dict_key_value",
        "update_dict_key_value(in_dict, keys, value, delimiter=, ordered_dict=)",
        |interp, args| change(interp, args, Change::Update),
    ),
    (
        "append_dict_key_value",
        "append_dict_key_value(in_dict, keys, value, delimiter=, ordered_dict=)",
        |interp, args| change(interp, args, Change::Append),
    ),
    (
        "extend_dict_key_value",
        "extend_dict_key_value(in_dict, keys, value, delimiter=, ordered_dict=)",
        |interp, args| change(interp, args, Change::Extend),
    ),
    ("to_entries", "to_entries(data)", to_entries),
    ("from_entries", "from_entries(entries)", from_entries),
    ("mysql_to_dict", "mysql_to_dict(data, key)", mysql_to_dict),
    (
        "json_encode_dict",
        "encode_dict(data, encoding=, errors=, keep=, preserve_dict_class=, preserve_tuples=)",
        encode_dict,
    ),
    (
        "json_decode_dict",
        "encode_dict(data, encoding=, errors=, keep=, preserve_dict_class=, preserve_tuples=)",
        encode_dict,
    ),
    (
        "json_encode_list",
        "encode_list(data, encoding=, errors=, keep=, preserve_dict_class=, preserve_tuples=)",
        encode_list,
    ),
    (
        "json_decode_list",
        "encode_list(data, encoding=, errors=, keep=, preserve_dict_class=, preserve_tuples=)",
        encode_list,
    ),
];

fn traverse(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let (data, key) = (args.take(0), args.take(1));
    let default = args.take(2);
    let delimiter = match args.opt(3) {
        Some(delimiter) => interp.str_of(&delimiter)?,
        None => ":".into(),
    };
    let path: Vec<Value> = match &key {
        Value::Int(_) => vec![key],
        other => match text_of(other) {
            Some(text) => text.split(delimiter.as_str()).map(Value::str).collect(),
            None => interp.collect(other)?,
        },
    };
    let mut at = data;
    for step in path {
        let next = match (&at, &step) {
            (Value::Dict(dict), Value::Int(_)) => {
                let key = interp.key(step)?;
                dict.get(&key)
            }
            (Value::Dict(_) | Value::List(_), _) => {
                let text = interp.str_of(&step)?;
                // One step at a time: the step itself may hold the usual delimiter.
                lookup::traverse(&at, &text, "\u{0}")
            }
            _ => match methods_item(interp, &at, &step)? {
                Some(item) => Some(item),
                None => return Ok(default),
            },
        };
        match next {
            Some(next) => at = next,
            None => return Ok(default),
        }
    }
    Ok(at)
}

/// Steps into something that is neither dict nor list: only what Python's `[]` takes.
fn methods_item(interp: &mut Interp<'_>, at: &Value, step: &Value) -> Result<Option<Value>> {
    if undefined(at).is_some() {
        return Ok(None);
    }
    interp.own_item(at, step)
}

#[derive(Clone, Copy, PartialEq)]
enum Change {
    Set,
    Update,
    Append,
    Extend,
}

fn invocation_error(message: String) -> Error {
    Error::other("SaltInvocationError", message)
}

/// Sets, updates or extends what stands at a path of keys, making dicts on the way.
fn change(interp: &mut Interp<'_>, args: &mut Bound, change: Change) -> Result<Value> {
    let (data, keys, value) = (args.take(0), args.take(1), args.take(2));
    let delimiter = match args.opt(3) {
        Some(delimiter) => interp.str_of(&delimiter)?,
        None => ":".into(),
    };
    if let Some(undefined) = undefined(&data).or_else(|| undefined(&keys)) {
        return Err(interp.undefined_error(undefined));
    }
    let keys = interp.str_of(&keys)?;
    let Value::Dict(root) = &data else {
        return Err(type_error(format!(
            "'{}' object does not support item assignment",
            data.type_name()
        )));
    };
    let steps: Vec<&str> = keys.split(delimiter.as_str()).collect();
    let Some((last, path)) = steps.split_last() else { return Ok(data) };
    let mut dict = root.clone();
    for step in path {
        let next = match dict.get(*step) {
            Some(Value::Dict(next)) => next,
            _ => {
                let next = Dict::new();
                dict.insert(*step, Value::Dict(next.clone()));
                next
            }
        };
        dict = next;
    }
    if change == Change::Set {
        dict.insert(*last, value);
        return Ok(data);
    }
    let empty =
        || if change == Change::Update { Value::dict() } else { Value::from(Vec::<Value>::new()) };
    if dict.get(*last).is_none_or(|value| value.is_null()) {
        dict.insert(*last, empty());
    }
    let target = dict.get(*last).unwrap_or_default();
    let verb = match change {
        Change::Update => "update",
        Change::Append => "append",
        _ => "extend",
    };
    let refused = || {
        invocation_error(format!(
            "The last key contains a {}, which cannot {verb}.",
            class_of(&target)
        ))
    };
    match (change, &target) {
        (Change::Update, Value::Dict(_)) | (Change::Append | Change::Extend, Value::List(_)) => {
            let result = methods::call(
                interp,
                &target,
                verb,
                crate::jinja::call::Args::new(vec![value.clone()]),
            );
            result.map_err(|error| match error.class() {
                Class::TypeError | Class::ValueError => invocation_error(format!(
                    "Cannot {verb} {} with a {}.",
                    class_of(&target),
                    class_of(&value)
                )),
                _ => error,
            })?;
        }
        _ => return Err(refused()),
    }
    Ok(data)
}

fn to_entries(_: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let entry = |key: Value, value: Value| {
        Value::Dict([("key", key), ("value", value)].into_iter().collect())
    };
    match args.take(0) {
        Value::Dict(dict) => Ok(Value::list(
            dict.entries().into_iter().map(|(key, value)| entry(key.into_value(), value)),
        )),
        Value::List(list) => Ok(Value::list(
            list.to_vec().into_iter().enumerate().map(|(at, value)| entry(Value::from(at), value)),
        )),
        _ => Err(Error::other("SaltException", "Input data must be a dict or list")),
    }
}

fn from_entries(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let entries = interp.collect(&args.take(0))?;
    let result = Dict::new();
    for entry in entries {
        let Value::Dict(entry) = entry else { continue };
        let find = |name: &str| {
            let found = entry
                .entries()
                .into_iter()
                .find(|(key, _)| text_of(key).is_some_and(|key| key.to_lowercase() == name));
            found.map(|(_, value)| value)
        };
        for name in ["key", "name"] {
            if let Some(key) = find(name).filter(Value::truthy) {
                result.insert(interp.key(key)?, find("value").unwrap_or_default());
                break;
            }
        }
    }
    Ok(Value::Dict(result))
}

/// Reads the table that the `mysql` client draws.
fn mysql_to_dict(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let lines = interp.collect(&args.take(0))?;
    let key = args.take(1);
    let mut headers: Vec<String> = Vec::new();
    let result = Dict::new();
    for line in lines {
        let line = interp.str_of(&line)?;
        if line.is_empty() || line.starts_with('+') {
            continue;
        }
        let cells: Vec<String> = line.split('|').map(|cell| cell.trim().to_owned()).collect();
        if headers.len() <= 1 {
            headers = cells;
            continue;
        }
        let row = Dict::new();
        for (header, cell) in headers.iter().zip(&cells).take(headers.len() - 1).skip(1) {
            let value = super::words::parse_int(cell, 10)
                .or_else(|| super::words::parse_float(cell).map(Value::Float))
                .unwrap_or_else(|| Value::str(cell));
            row.insert(header.as_str(), value);
        }
        let row_key = interp.key(key.clone())?;
        let Some(name) = row.get(&row_key) else { return Err(Error::key(&key)) };
        result.insert(interp.key(name)?, Value::Dict(row));
    }
    Ok(Value::Dict(result))
}

/// Turns every text in the data into bytes.
fn encode_dict(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let data = args.take(0);
    if !matches!(data, Value::Dict(_)) {
        let name = data.type_name();
        return Err(Error::new(
            crate::jinja::error::Class::AttributeError,
            format!("'{name}' object has no attribute 'items'"),
        ));
    }
    encode(interp, &data, 0)
}

fn encode_list(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let items = Value::from(interp.collect(&args.take(0))?);
    encode(interp, &items, 0)
}

/// Texts become bytes, at every depth.
fn encode(interp: &mut Interp<'_>, value: &Value, depth: usize) -> Result<Value> {
    if depth > 200 {
        return Err(crate::jinja::ops::recursion("while encoding data"));
    }
    interp.step()?;
    Ok(match value {
        Value::Dict(dict) => {
            let new = Dict::new();
            for (key, value) in dict {
                let key = encode(interp, &key, depth + 1)?;
                let value = encode(interp, &value, depth + 1)?;
                new.insert(interp.key(key)?, value);
            }
            Value::Dict(new)
        }
        Value::List(_) | Value::Tuple(_) => {
            let items = interp.collect(value)?;
            let items: Result<Vec<Value>> =
                items.iter().map(|item| encode(interp, item, depth + 1)).collect();
            Value::from(items?)
        }
        other => match text_of(other) {
            Some(text) => Value::bytes(text.as_bytes()),
            None => other.clone(),
        },
    })
}
