//! Methods of times, sets, views and the engine's own objects.

use halite_value::{DateTime, Key, Value};

use super::{Pos, list, str};
use crate::jinja::{
    call::{Args, Signature},
    error::{Class, Error, type_error},
    eval::{Interp, Result},
    filters::time::strftime,
    objects::*,
};

pub(crate) const TIME: [&str; 6] =
    ["strftime", "isoformat", "timestamp", "weekday", "isoweekday", "toordinal"];

const SET: [&str; 13] = [
    "add",
    "clear",
    "copy",
    "difference",
    "discard",
    "intersection",
    "isdisjoint",
    "issubset",
    "issuperset",
    "pop",
    "remove",
    "symmetric_difference",
    "union",
];

pub(crate) fn has(value: &Value, name: &str) -> bool {
    let Value::Object(object) = value else { return false };
    let any = object.as_any();
    if any.is::<Markup>() {
        return str::is_method(name) || matches!(name, "striptags" | "unescape" | "escape");
    }
    if any.is::<Loop>() {
        return matches!(name, "cycle" | "changed");
    }
    if any.is::<Set>() {
        return SET.contains(&name);
    }
    if any.is::<Cycler>() {
        return matches!(name, "next" | "reset");
    }
    if let Some(lookup) = any.downcast_ref::<HostLookup>() {
        // A module's own function comes first: `salt.pillar.get`.
        return matches!(name, "get" | "keys") && lookup.0.attribute(name).is_none();
    }
    if any.is::<Range>() {
        return matches!(name, "count" | "index");
    }
    if let Some(view) = any.downcast_ref::<View>() {
        return name == "isdisjoint" && view.kind != ViewKind::Values;
    }
    if let Some(builtin) = any.downcast_ref::<Builtin>() {
        return builtin.name == "dict" && name == "fromkeys";
    }
    any.is::<Group>() && matches!(name, "count" | "index")
}

pub(crate) fn call(
    interp: &mut Interp<'_>,
    value: &Value,
    name: &str,
    args: Args,
) -> Result<Value> {
    let Value::Object(object) = value else { return Ok(Value::Null) };
    let any = object.as_any();
    if let Some(own) = any.downcast_ref::<Markup>() {
        return of_markup(interp, own, name, args);
    }
    if let Some(own) = any.downcast_ref::<Loop>() {
        return interp.loop_method(own, name, args);
    }
    if let Some(own) = any.downcast_ref::<Set>() {
        return of_set(interp, own, name, &args);
    }
    if let Some(own) = any.downcast_ref::<Cycler>() {
        let mut at = own.at.lock();
        if name == "reset" {
            *at = 0;
            return Ok(Value::Null);
        }
        let item = own.items.get(*at).cloned().unwrap_or_default();
        *at = (*at + 1) % own.items.len().max(1);
        return Ok(item);
    }
    if let Some(own) = any.downcast_ref::<HostLookup>() {
        if name == "keys" {
            return Ok(Value::list(own.0.keys()));
        }
        let mut bound = Signature::new("Mapping.get(key, default=)").bind(args)?;
        let key = bound.take(0);
        let found = text_of(&key).and_then(|key| own.0.item(key));
        return Ok(found.unwrap_or_else(|| bound.take(1)));
    }
    if any.is::<View>() {
        let own = interp.collect(value)?;
        let other = Pos::new("dict_keys", "isdisjoint", args, 1, 1)?.take();
        let other = interp.collect(&other)?;
        return Ok(Value::Bool(!own.iter().any(|item| other.contains(item))));
    }
    if any.is::<Builtin>() {
        return super::dict::call(interp, &halite_value::Dict::new(), "fromkeys", args);
    }
    let items = interp.collect(value)?;
    list::of_tuple(interp, &items.into(), name, args)
}

/// A safe text stays safe through its methods; what is put into it is escaped.
fn of_markup(interp: &mut Interp<'_>, own: &Markup, name: &str, args: Args) -> Result<Value> {
    use crate::jinja::filters::text;
    match name {
        "striptags" => return Ok(Value::from(text::strip_tags(&own.0))),
        "unescape" => return Ok(Value::from(text::unescape_html(&own.0))),
        "escape" => {
            let value = args.positional.into_iter().next().unwrap_or_default();
            return Ok(markup(text::escape(interp, &value)?));
        }
        _ => {}
    }
    let escapes = matches!(name, "replace" | "join" | "format" | "ljust" | "rjust" | "center");
    let args = if escapes { text::escape_args(interp, args)? } else { args };
    Ok(match str::call(interp, &own.0, name, args)? {
        Value::Str(text) => markup(text),
        Value::List(list) => Value::list(list.to_vec().iter().map(safe)),
        Value::Tuple(items) => Value::tuple(items.iter().map(safe)),
        other => other,
    })
}

fn safe(value: &Value) -> Value {
    match value {
        Value::Str(text) => markup(text),
        other => other.clone(),
    }
}

fn of_set(interp: &mut Interp<'_>, own: &Set, name: &str, args: &Args) -> Result<Value> {
    let mut others: Vec<Vec<Key>> = Vec::new();
    let single = matches!(name, "add" | "discard" | "remove");
    for arg in &args.positional {
        let items = if single { vec![arg.clone()] } else { interp.collect(arg)? };
        let keys: Result<Vec<Key>> = items.into_iter().map(|item| interp.key(item)).collect();
        others.push(keys?);
    }
    let first = others.first().cloned().unwrap_or_default();
    if first.is_empty() && (single || name.starts_with("is")) && others.is_empty() {
        return Err(type_error(format!("set.{name}() takes exactly one argument (0 given)")));
    }
    let keys: Vec<Key> = own.to_vec();
    interp.burn(keys.len())?;
    Ok(match name {
        "add" => {
            first.into_iter().for_each(|key| own.insert(key));
            Value::Null
        }
        "discard" | "remove" => {
            let gone = first.first().is_some_and(|key| own.remove(key));
            if !gone && name == "remove" {
                return Err(Error::key(&args.positional[0]));
            }
            Value::Null
        }
        "clear" => {
            own.clear();
            Value::Null
        }
        "pop" => match keys.first() {
            Some(key) => {
                own.remove(key);
                key.value().clone()
            }
            None => return Err(Error::new(Class::KeyError, "'pop from an empty set'")),
        },
        "copy" => set_of(keys),
        "union" => set_of(keys.into_iter().chain(others.into_iter().flatten())),
        "intersection" => {
            set_of(keys.into_iter().filter(|key| others.iter().all(|other| other.contains(key))))
        }
        "difference" => {
            set_of(keys.into_iter().filter(|key| !others.iter().any(|other| other.contains(key))))
        }
        "symmetric_difference" => {
            let new: Vec<Key> = first.iter().filter(|key| !keys.contains(key)).cloned().collect();
            set_of(keys.into_iter().filter(|key| !first.contains(key)).chain(new))
        }
        "issubset" => Value::Bool(keys.iter().all(|key| first.contains(key))),
        "issuperset" => Value::Bool(first.iter().all(|key| keys.contains(key))),
        _ => Value::Bool(!keys.iter().any(|key| first.contains(key))),
    })
}

pub(crate) fn of_time(time: &DateTime, name: &str, args: Args) -> Result<Value> {
    Ok(match name {
        "strftime" => {
            let format = Pos::new("datetime", "strftime", args, 1, 1)?
                .text(|got| format!("strftime() argument 1 must be str, not {got}"))?;
            Value::from(strftime(time, &format)?)
        }
        "isoformat" => {
            let mut bound = Signature::new("isoformat(sep=, timespec=)").bind(args)?;
            let separator = bound.opt(0);
            let separator = separator.as_ref().and_then(text_of).map_or("T", |text| text.as_str());
            Value::from(Value::Timestamp(*time).to_str().replacen(' ', separator, 1))
        }
        "timestamp" => {
            let zoned = time.to_zoned(jiff::tz::TimeZone::system());
            Value::Float(zoned.map_or(0.0, |zoned| zoned.timestamp().as_nanosecond() as f64 / 1e9))
        }
        "weekday" => Value::Int(i64::from(time.weekday().to_monday_zero_offset())),
        "isoweekday" => Value::Int(i64::from(time.weekday().to_monday_one_offset())),
        _ => {
            let epoch = jiff::civil::date(1, 1, 1);
            let days = epoch.until(time.date()).map_or(0, |span| span.get_days());
            Value::Int(i64::from(days) + 1)
        }
    })
}
