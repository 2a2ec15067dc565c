//! `config`: values of the configuration, wherever they stand.
//!
//! `config.get` looks into the minion's configuration, grains, pillar and the master's options, in
//! this order, as trees rely on.

use halite_spec::{Cx, Error, Result, function, module};
use halite_target::fnmatch;
use halite_value::{Dict, Value, lookup, merge as deep};

module! {
    /// Values of the configuration.
    "config": get, option, merge, items, dot_vals, manage_mode, valid_fileproto, backup_mode,
    gather_bootstrap_script,
}

/// Values execution modules have without being configured.
const DEFAULTS: [(&str, &str); 1] = [("test.foo", "unconfigured")];

/// The places a value may stand in, in the order they count.
fn places(cx: &Cx, omit: [bool; 4]) -> Vec<Value> {
    let [opts, grains, pillar, master] = omit;
    let mut places = Vec::new();
    if !opts {
        places.push(Value::from(&cx.opts));
    }
    if !grains {
        places.push(Value::from(&cx.grains));
    }
    if !pillar {
        places.push(Value::from(&cx.pillar));
    }
    if !master {
        places.extend(cx.pillar.get("master"));
    }
    places
}

/// Return a value from the configuration, grains, pillar or the master's options.
///
/// ```console
/// $ salt web1 config.get timeout
/// ```
#[function]
pub fn get(
    cx: &Cx,
    /// The path.
    key: String,
    /// What to return when it stands nowhere.
    #[default(Value::from(""))]
    default: Value,
    /// What stands between the steps of the path.
    #[default(":".to_owned())]
    delimiter: String,
    /// Merge what stands in several places: `recurse` or `overwrite`.
    merge: Option<String>,
    /// Leave out the configuration.
    #[default(false)]
    omit_opts: bool,
    /// Leave out the pillar.
    #[default(false)]
    omit_pillar: bool,
    /// Leave out the master's options.
    #[default(false)]
    omit_master: bool,
    /// Leave out the grains.
    #[default(false)]
    omit_grains: bool,
) -> Result<Value> {
    let places = places(cx, [omit_opts, omit_grains, omit_pillar, omit_master]);
    let found = places.iter().filter_map(|place| lookup::traverse(place, &key, &delimiter));
    let Some(how) = merge.filter(|how| !how.is_empty()) else {
        let built_in =
            || DEFAULTS.iter().find(|(name, _)| *name == key).map(|(_, value)| Value::from(*value));
        let mut found = found;
        return Ok(found.next().or_else(built_in).unwrap_or(default));
    };
    let strategy = match how.as_str() {
        "recurse" => deep::Strategy::Recurse,
        "overwrite" => deep::Strategy::Overwrite,
        other => {
            return Err(Error::invalid(format!(
                "Unsupported merge strategy '{other}'. Falling back to 'recurse'."
            )));
        }
    };
    // What counts most is merged last.
    let mut merged: Option<Value> = None;
    for value in found.collect::<Vec<_>>().into_iter().rev() {
        merged = Some(match (&merged, &value) {
            (Some(below @ Value::Dict(_)), Value::Dict(_)) => {
                deep::merge(&below.deep_copy(), &value, strategy, false)
                    .map_err(|error| Error::failed(error.to_string()))?
            }
            _ => value,
        });
    }
    Ok(merged.unwrap_or(default))
}

/// Return an option by its full name: configuration, grains, pillar, master.
///
/// ```console
/// $ salt web1 config.option timeout
/// ```
#[function]
pub fn option(
    cx: &Cx,
    /// The name.
    value: String,
    /// What to return when it stands nowhere.
    #[default(Value::from(""))]
    #[shown(halite_value::Value::Null)]
    default: Value,
    /// Leave out the configuration.
    #[default(false)]
    omit_opts: bool,
    /// Leave out the grains.
    #[default(false)]
    omit_grains: bool,
    /// Leave out the pillar.
    #[default(false)]
    omit_pillar: bool,
    /// Leave out the master's options.
    #[default(false)]
    omit_master: bool,
    /// Only built-in values.
    #[default(false)]
    omit_all: bool,
    /// The name is a glob; return all that match.
    #[default(false)]
    wildcard: bool,
) -> Result<Value> {
    let omit = [omit_opts, omit_grains, omit_pillar, omit_master].map(|omit| omit || omit_all);
    let places = places(cx, omit);
    if wildcard {
        let found = Dict::new();
        for (name, own) in places.iter().filter_map(Value::as_dict).flatten() {
            if fnmatch::fnmatch(&name.to_str(), &value) && !found.contains(&name) {
                found.insert(name, own);
            }
        }
        return Ok(if found.is_empty() { default } else { found.into() });
    }
    let found = places.iter().find_map(|place| place.get(&value));
    let built_in =
        || DEFAULTS.iter().find(|(name, _)| *name == value).map(|(_, value)| Value::from(*value));
    let default = if default.is_null() { "".into() } else { default };
    Ok(found.or_else(built_in).unwrap_or(default))
}

/// Return an option with what pillar and master add to it.
///
/// ```console
/// $ salt web1 config.merge schedule
/// ```
#[function]
pub fn merge(
    cx: &Cx,
    /// The name.
    value: String,
    /// What to return when it stands nowhere.
    #[default(Value::from(""))]
    default: Value,
    /// Leave out the configuration.
    #[default(false)]
    omit_opts: bool,
    /// Leave out the master's options.
    #[default(false)]
    omit_master: bool,
    /// Leave out the pillar.
    #[default(false)]
    omit_pillar: bool,
) -> Result<Value> {
    let mut result: Option<Value> = None;
    for place in places(cx, [omit_opts, true, omit_pillar, omit_master]) {
        let Some(found) = place.get(&value) else { continue };
        match (&result, &found) {
            (None, Value::Str(_) | Value::Int(_) | Value::Bool(_) | Value::Float(_)) => {
                return Ok(found);
            }
            (None, _) => result = Some(found.deep_copy()),
            (Some(Value::List(list)), Value::List(more)) => list.extend(more.to_vec()),
            (Some(Value::Dict(dict)), Value::Dict(more)) => {
                for (key, value) in more {
                    dict.get_or_insert_with(key, || value);
                }
            }
            _ => {}
        }
    }
    Ok(result.unwrap_or(default))
}

/// Return the whole configuration.
///
/// ```console
/// $ salt web1 config.items
/// ```
#[function]
pub fn items(cx: &Cx) -> Result<Dict> {
    Ok(cx.opts.shallow_copy())
}

/// Return the options whose names begin with a word and a dot.
///
/// ```console
/// $ salt web1 config.dot_vals shop
/// ```
#[function]
pub fn dot_vals(
    cx: &Cx,
    /// The word.
    value: String,
) -> Result<Dict> {
    let prefix = format!("{value}.");
    let found = Dict::new();
    let pillar = cx.pillar.get("master").unwrap_or_default();
    for place in [pillar, Value::from(&cx.opts)] {
        for (name, own) in place.as_dict().into_iter().flatten() {
            if name.as_str().is_some_and(|name| name.starts_with(&prefix)) {
                found.insert(name, own);
            }
        }
    }
    Ok(found)
}

/// Return a file mode as four octal digits.
///
/// ```console
/// $ salt '*' config.manage_mode 644
/// ```
#[function]
pub fn manage_mode(
    _cx: &Cx,
    /// The mode.
    mode: Value,
) -> Result<Value> {
    Ok(normal_mode(&mode))
}

/// Returns a mode as Salt writes it; None stays None.
pub fn normal_mode(mode: &Value) -> Value {
    if mode.is_null() {
        return Value::Null;
    }
    let text = mode.to_str();
    let digits = text.trim_matches('"').trim_start_matches("0o").trim_start_matches('0');
    Value::from(format!("{digits:0>4}"))
}

/// Tell whether a URL has a scheme files can come from.
///
/// ```console
/// $ salt web1 config.valid_fileproto salt://app/app.conf
/// ```
#[function]
pub fn valid_fileproto(
    _cx: &Cx,
    /// The URL.
    uri: String,
) -> Result<bool> {
    const SCHEMES: [&str; 6] = ["salt", "http", "https", "ftp", "s3", "swift"];
    let scheme = uri.split_once("://").map(|(scheme, _)| scheme);
    Ok(scheme.is_some_and(|scheme| SCHEMES.contains(&scheme) || scheme == "file"))
}

/// Return how files are backed up.
///
/// ```console
/// $ salt web1 config.backup_mode
/// ```
#[function]
pub fn backup_mode(
    cx: &Cx,
    /// A mode that goes before the configured one.
    #[default(String::new())]
    backup: String,
) -> Result<Value> {
    if !backup.is_empty() {
        return Ok(backup.into());
    }
    Ok(cx.opt("backup_mode").filter(Value::truthy).unwrap_or_else(|| "".into()))
}

/// Bring the bootstrap script of salt-cloud up to date.
///
/// ```console
/// $ salt web1 config.gather_bootstrap_script
/// ```
#[function]
pub fn gather_bootstrap_script(
    _cx: &Cx,
    /// Where from.
    bootstrap: Option<String>,
) -> Result<bool> {
    let _ = bootstrap;
    Err(Error::Unavailable {
        function: "config.gather_bootstrap_script".into(),
        reason: "salt-cloud is not built yet".into(),
    })
}
