//! `defaults`: the `defaults.yaml` of formulas, and dicts merged over them.

use halite_spec::{Cx, Error, Result, function, module};
use halite_value::{Dict, Value, json, lookup, yaml};

use crate::slsutil::update_dict;

module! {
    /// The defaults of formulas.
    "defaults": deepcopy, get, merge, update,
}

/// The content of `defaults.yaml` or `defaults.json` of a formula.
fn load(cx: &Cx, formula: &str) -> Result<Value> {
    let saltenv = cx.opt_str("saltenv").filter(|env| !env.is_empty());
    let saltenv = saltenv.map_or_else(|| "base".to_owned(), |env| env.to_string());
    for ending in ["yaml", "json"] {
        let address = format!("salt://{formula}/defaults.{ending}");
        let Some(cached) = cx.files.cache(&address, &saltenv)? else { continue };
        let text = cx.host.read_text(&cached)?;
        let data = if ending == "yaml" {
            yaml::load_str(&text).map_err(|error| Error::failed(error.to_string()))?
        } else {
            json::from_str(&text).map_err(|error| Error::failed(error.to_string()))?
        };
        return Ok(if data.truthy() { data } else { Value::dict() });
    }
    Ok(Value::Null)
}

/// Return a value of a formula's defaults: `formula:key:key`.
///
/// ```console
/// $ salt web1 defaults.get shop:port
/// ```
#[function]
pub fn get(
    cx: &Cx,
    /// The formula, and the way to the value.
    key: String,
    /// What to return if there is none.
    #[default(Value::str(""))]
    default: Value,
) -> Result<Value> {
    let (formula, path) = match key.split_once(':') {
        Some((formula, path)) => (formula, Some(path).filter(|path| !path.is_empty())),
        None => (key.as_str(), None),
    };
    let data = load(cx, formula)?;
    Ok(match path {
        Some(path) => lookup::traverse(&data, path, ":").unwrap_or(default),
        None => data,
    })
}

fn type_error(message: &str) -> Error {
    Error::raised("TypeError", message)
}

fn as_dict(value: Value, name: &str) -> Result<Dict> {
    match value {
        Value::Dict(dict) => Ok(dict),
        other => Err(type_error(&format!(
            "Cannot update using non-dict types in dictupdate.update(): {name} is a {}",
            other.type_name()
        ))),
    }
}

/// Merge one dict into another; in place unless said otherwise.
///
/// ```console
/// $ salt web1 defaults.merge '{port: 80}' '{host: db1}'
/// ```
#[function]
pub fn merge(
    _cx: &Cx,
    /// The dict to merge into.
    dest: Value,
    /// What to merge; it wins.
    src: Value,
    /// Join lists instead of replacing them.
    #[default(false)]
    merge_lists: bool,
    /// Change `dest` itself.
    #[default(true)]
    in_place: bool,
    /// None counts as an empty dict.
    #[default(true)]
    convert_none: bool,
) -> Result<Value> {
    let src = if src.is_null() && convert_none { Value::dict() } else { src };
    let dest = match dest {
        Value::Null if convert_none && in_place => {
            return Err(type_error("Can't perform in-place merge into NoneType"));
        }
        Value::Null if convert_none => Value::dict(),
        other if in_place => other,
        other => other.deep_copy(),
    };
    let dest = as_dict(dest, "dest")?;
    update_dict(&dest, &as_dict(src, "src")?, true, merge_lists);
    Ok(dest.into())
}

/// Return a copy that shares nothing with the original.
///
/// ```console
/// $ salt '*' defaults.deepcopy '{a: b}'
/// ```
#[function]
pub fn deepcopy(
    _cx: &Cx,
    /// The value.
    source: Value,
) -> Result<Value> {
    Ok(source.deep_copy())
}

/// Put defaults under every value of a dict: what the value says itself wins.
///
/// ```console
/// $ salt '*' defaults.update '{node1: {a: 1}}' '{a: 0, b: 2}'
/// ```
#[function]
pub fn update(
    cx: &Cx,
    /// A dict of dicts.
    dest: Value,
    /// The defaults.
    defaults: Value,
    /// Join lists instead of replacing them.
    #[default(true)]
    merge_lists: bool,
    /// Change `dest` itself.
    #[default(true)]
    in_place: bool,
    /// None counts as an empty dict.
    #[default(true)]
    convert_none: bool,
) -> Result<Value> {
    let nodes = match dest {
        Value::Null if in_place => {
            return Err(type_error("Can't perform in-place update into NoneType"));
        }
        Value::Null if convert_none => Value::dict(),
        other if in_place => other,
        other => other.deep_copy(),
    };
    let nodes = as_dict(nodes, "dest")?;
    let defaults = if defaults.is_null() && convert_none { Value::dict() } else { defaults };
    for (name, node) in &nodes {
        let node = merge(cx, defaults.deep_copy(), node, merge_lists, true, convert_none)?;
        nodes.insert(name, node);
    }
    Ok(nodes.into())
}
