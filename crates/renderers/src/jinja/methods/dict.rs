//! Methods of `dict`.

use halite_value::{Dict, Value};

use super::Pos;
use crate::jinja::{
    call::Args,
    error::{Class, Error, type_error, value_error},
    eval::{Interp, Result},
    objects::*,
};

method_names! {
    "clear" "copy" "fromkeys" "get" "items" "keys" "pop" "popitem" "setdefault" "update" "values"
}

pub(crate) fn call(interp: &mut Interp<'_>, dict: &Dict, name: &str, args: Args) -> Result<Value> {
    let view = |kind| object(View { dict: dict.clone(), kind });
    match name {
        "get" => {
            let mut pos = Pos::new("dict", "get", args, 1, 2)?;
            let key = pos.take();
            if let Value::Str(key) = &key {
                return Ok(dict.get(key.as_str()).unwrap_or_else(|| pos.take()));
            }
            let key = interp.key(key)?;
            Ok(dict.get(&key).unwrap_or_else(|| pos.take()))
        }
        "keys" => Pos::new("dict", "keys", args, 0, 0).map(|_| view(ViewKind::Keys)),
        "values" => Pos::new("dict", "values", args, 0, 0).map(|_| view(ViewKind::Values)),
        "items" => Pos::new("dict", "items", args, 0, 0).map(|_| view(ViewKind::Items)),
        "update" => {
            update(interp, dict, args, "update")?;
            Ok(Value::Null)
        }
        "pop" => {
            let mut pos = Pos::new("dict", "pop", args, 1, 2)?;
            let wanted = pos.take();
            let key = interp.key(wanted.clone())?;
            match dict.remove(&key) {
                Some(value) => Ok(value),
                None => pos.next().ok_or_else(|| Error::key(&wanted)),
            }
        }
        "popitem" => {
            Pos::new("dict", "popitem", args, 0, 0)?;
            let last = dict.write().pop();
            match last {
                Some((key, value)) => Ok(Value::tuple([key.into_value(), value])),
                None => Err(Error::new(Class::KeyError, "'popitem(): dictionary is empty'")),
            }
        }
        "setdefault" => {
            let mut pos = Pos::new("dict", "setdefault", args, 1, 2)?;
            let key = pos.take();
            let key = interp.key(key)?;
            Ok(dict.get_or_insert_with(key, || pos.take()))
        }
        "clear" => {
            Pos::new("dict", "clear", args, 0, 0)?;
            let entries = std::mem::take(&mut *dict.write());
            drop(entries);
            Ok(Value::Null)
        }
        "copy" => {
            Pos::new("dict", "copy", args, 0, 0)?;
            interp.burn(dict.len())?;
            Ok(Value::Dict(dict.shallow_copy()))
        }
        _ => {
            let mut pos = Pos::new("dict", "fromkeys", args, 1, 2)?;
            let keys = pos.take();
            let keys = interp.collect(&keys)?;
            let value = pos.take();
            let new = Dict::new();
            for key in keys {
                new.insert(interp.key(key)?, value.clone());
            }
            Ok(Value::Dict(new))
        }
    }
}

/// `dict.update(…)`, and `dict(…)` on a new one.
pub(crate) fn update(interp: &mut Interp<'_>, dict: &Dict, args: Args, name: &str) -> Result<()> {
    if args.positional.len() > 1 {
        let given = args.positional.len();
        return Err(type_error(format!("{name} expected at most 1 argument, got {given}")));
    }
    if let Some(source) = args.positional.first() {
        match source {
            Value::Dict(source) => {
                interp.burn(source.len())?;
                dict.update(source);
            }
            source => update_from_pairs(interp, dict, source)?,
        }
    }
    for (key, value) in args.keyword {
        dict.insert(key, value);
    }
    Ok(())
}

fn update_from_pairs(interp: &mut Interp<'_>, dict: &Dict, source: &Value) -> Result<()> {
    if let Some(lookup) = source.as_object::<HostLookup>() {
        for key in lookup.0.keys() {
            if let Some(value) = lookup.0.item(&key) {
                dict.insert(key, value);
            }
        }
        return Ok(());
    }
    let pairs = interp.collect(source)?;
    for (at, pair) in pairs.iter().enumerate() {
        let items = interp.collect(pair).map_err(|error| {
            if *error.class() == Class::TypeError {
                type_error(format!(
                    "cannot convert dictionary update sequence element #{at} to a sequence"
                ))
            } else {
                error
            }
        })?;
        let [key, value] = &items[..] else {
            let length = items.len();
            return Err(value_error(format!(
                "dictionary update sequence element #{at} has length {length}; 2 is required"
            )));
        };
        dict.insert(interp.key(key.clone())?, value.clone());
    }
    Ok(())
}
