//! `defaults`: default values of formulas, and merging them with pillar.

use halite_spec::{Cx, Error, Result, function, module};
use halite_value::{Dict, Value, json, merge as deep, yaml};

module! {
    /// Default values of formulas.
    "defaults": get, merge, deepcopy, update,
}

/// Return a value of the pillar over the defaults of the formula (`<formula>/defaults.yaml`).
///
/// ```console
/// $ salt '*' defaults.get core:users:root
/// ```
#[function]
pub fn get(
    cx: &Cx,
    /// The path; its first step names the formula.
    key: String,
    /// What to return when it stands nowhere.
    #[default(Value::from(""))]
    default: Value,
) -> Result<Value> {
    let pillar = Value::from(&cx.pillar);
    let defaults = match key.split_once(':') {
        Some((formula, rest)) => {
            load(cx, formula)?.and_then(|all| halite_value::lookup::traverse(&all, rest, ":"))
        }
        None => load(cx, &key)?,
    };
    let value = halite_value::lookup::traverse(&pillar, &key, ":");
    Ok(match (defaults, value) {
        (Some(Value::Dict(defaults)), Some(Value::Dict(own))) => {
            let merged = defaults.deep_copy();
            deep::update(&merged, &own, false);
            merged.into()
        }
        (_, Some(value)) => value,
        (Some(defaults), None) => defaults,
        (None, None) => default,
    })
}

/// Reads the defaults of a formula: `defaults.yaml`, or `.json`.
fn load(cx: &Cx, formula: &str) -> Result<Option<Value>> {
    for (end, is_json) in [("yaml", false), ("json", true)] {
        let url = format!("salt://{}/defaults.{end}", formula.replace('.', "/"));
        let Some(file) = cx.files.cache(&url, &cx.saltenv())? else { continue };
        let text = cx.host.read_text(&file)?;
        let wrong = |error: &dyn std::fmt::Display| Error::failed(format!("{url}: {error}"));
        return if is_json {
            json::from_str(&text).map(Some).map_err(|error| wrong(&error))
        } else {
            yaml::load_str(&text).map(Some).map_err(|error| wrong(&error))
        };
    }
    Ok(None)
}

fn dict_of(value: Value, convert_none: bool) -> Result<Dict> {
    match value {
        Value::Dict(dict) => Ok(dict),
        Value::Null if convert_none => Ok(Dict::new()),
        _ => Err(Error::Raised {
            class: "TypeError".into(),
            message: "Cannot update using non-dict types in dictupdate.update()".into(),
            traceback: None,
        }),
    }
}

/// Merge a dict into another, at every depth.
///
/// ```console
/// $ salt '*' defaults.merge '{a: b}' '{d: e}'
/// ```
#[function]
pub fn merge(
    _cx: &Cx,
    /// The dict merged into.
    dest: Value,
    /// The dict that wins.
    src: Value,
    /// Join lists instead of replacing them.
    #[default(false)]
    merge_lists: bool,
    /// Change `dest` itself; otherwise a copy.
    #[default(true)]
    in_place: bool,
    /// None counts as an empty dict.
    #[default(true)]
    convert_none: bool,
) -> Result<Dict> {
    let dest = dict_of(dest, convert_none)?;
    let src = dict_of(src, convert_none)?;
    let merged = if in_place { dest } else { dest.deep_copy() };
    deep::update(&merged, &src, merge_lists);
    Ok(merged)
}

/// Return a copy that shares nothing with the original.
///
/// ```console
/// $ salt '*' defaults.deepcopy '{a: [1]}'
/// ```
#[function]
pub fn deepcopy(
    _cx: &Cx,
    /// What to copy.
    source: Value,
) -> Result<Value> {
    Ok(source.deep_copy())
}

/// Let every entry of a dict have the defaults it does not set itself.
///
/// ```console
/// $ salt '*' defaults.update '{a: {}, b: {x: 1}}' '{x: 0}'
/// ```
#[function]
pub fn update(
    _cx: &Cx,
    /// The entries.
    dest: Value,
    /// Defaults for each of them.
    defaults: Value,
    /// Join lists instead of replacing them.
    #[default(true)]
    merge_lists: bool,
    /// Change `dest` itself; otherwise a copy.
    #[default(true)]
    in_place: bool,
    /// None counts as an empty dict.
    #[default(true)]
    convert_none: bool,
) -> Result<Dict> {
    let dest = dict_of(dest, convert_none)?;
    let defaults = dict_of(defaults, convert_none)?;
    let nodes = if in_place { dest } else { dest.deep_copy() };
    for (name, vars) in &nodes {
        let own = dict_of(vars, convert_none)?;
        let filled = defaults.deep_copy();
        deep::update(&filled, &own, merge_lists);
        nodes.insert(name, filled);
    }
    Ok(nodes)
}
