//! `environ`: the environment of the minion's process, and of what it starts.

use std::ffi::{OsStr, OsString};

use halite_spec::{Cx, Event, Result, function, module};
use halite_value::{Dict, Value, dict};

module! {
    /// The environment of the minion's process.
    "environ": setval, setenv, get, has_value, item, items,
}

/// Returns a variable, if it is set.
pub fn value_of(cx: &Cx, name: &str) -> Option<String> {
    cx.host.env(OsStr::new(name)).map(text)
}

fn text(value: OsString) -> String {
    value.to_string_lossy().into_owned()
}

/// Set one variable.
///
/// Returns the value set, None if the variable was removed, False if the value is no text.
///
/// ```console
/// $ salt web1 environ.setval APP_ENV live
/// ```
#[function]
pub fn setval(
    cx: &Cx,
    /// The variable.
    key: String,
    /// Its value; False empties it.
    val: Value,
    /// False removes it.
    #[default(false)]
    false_unsets: bool,
    /// For Windows: keep it in the registry.
    #[default(Value::Bool(false))]
    permanent: Value,
) -> Result<Value> {
    let _ = permanent;
    let value = match &val {
        Value::Bool(false) if false_unsets => {
            cx.host.set_env(OsStr::new(&key), None)?;
            return Ok(Value::Null);
        }
        Value::Bool(false) => "",
        Value::Str(text) => text.as_str(),
        other => {
            tracing::debug!("the value of {key} is no text: {other}");
            return Ok(false.into());
        }
    };
    if key.is_empty() || key.contains(['=', '\0']) || value.contains('\0') {
        tracing::error!("cannot set the environment variable {key:?}");
        return Ok(false.into());
    }
    cx.host.set_env(OsStr::new(&key), Some(OsStr::new(value)))?;
    Ok(value.into())
}

/// Set several variables.
///
/// ```console
/// $ salt web1 environ.setenv '{APP_ENV: live}'
/// ```
#[function]
pub fn setenv(
    cx: &Cx,
    /// Names and values.
    environ: Value,
    /// A value of False removes the variable, it is emptied otherwise.
    #[default(false)]
    false_unsets: bool,
    /// Empty or remove all other variables.
    #[default(false)]
    clear_all: bool,
    /// Have the minion's daemon follow.
    #[default(false)]
    update_minion: bool,
    /// For Windows: keep them in the registry.
    #[default(Value::Bool(false))]
    permanent: Value,
) -> Result<Value> {
    let Value::Dict(wanted) = environ else { return Ok(false.into()) };
    let done = Dict::new();
    if clear_all {
        for (name, _) in cx.host.env_all() {
            let name = text(name);
            if !wanted.contains(name.as_str()) {
                let ret = setval(cx, name.clone(), false.into(), false_unsets, permanent.clone())?;
                done.insert(name, ret);
            }
        }
    }
    for (name, value) in &wanted {
        if !matches!(value, Value::Str(_) | Value::Bool(false)) {
            return Ok(false.into());
        }
        let ret = setval(cx, name.to_string(), value, false_unsets, permanent.clone())?;
        done.insert(name, ret);
    }
    if update_minion {
        let data = dict! {
            "environ" => wanted, "false_unsets" => false_unsets, "clear_all" => clear_all,
            "permanent" => permanent,
        };
        let tag = "environ_setenv".to_owned();
        cx.runtime.fire(cx, Event { tag, data, pretag: None, local: true })?;
    }
    Ok(done.into())
}

/// Return one variable.
///
/// ```console
/// $ salt web1 environ.get APP_ENV
/// ```
#[function]
pub fn get(
    cx: &Cx,
    /// The variable.
    key: Value,
    /// What to return when it is not set.
    #[default(Value::from(""))]
    default: Value,
) -> Result<Value> {
    let Value::Str(key) = key else { return Ok(false.into()) };
    Ok(value_of(cx, &key).map_or(default, Into::into))
}

/// Tell whether a variable is set, or set to a value.
///
/// ```console
/// $ salt web1 environ.has_value APP_ENV
/// ```
#[function]
pub fn has_value(
    cx: &Cx,
    /// The variable.
    key: Value,
    /// The value it must have.
    value: Option<Value>,
) -> Result<bool> {
    let Value::Str(key) = key else { return Ok(false) };
    let own = value_of(cx, &key);
    Ok(match (own, value) {
        (Some(own), Some(value)) => Value::from(own) == value,
        (own, _) => own.is_some(),
    })
}

/// Return some variables by name.
///
/// ```console
/// $ salt web1 environ.item '[APP_ENV]'
/// ```
#[function]
pub fn item(
    cx: &Cx,
    /// A name, or a list of names.
    keys: Vec<String>,
    /// What to return for those that are not set.
    #[default(Value::from(""))]
    default: Value,
) -> Result<Dict> {
    let find = |key: &String| value_of(cx, key).map_or_else(|| default.clone(), Into::into);
    Ok(keys.iter().map(|key| (key.as_str(), find(key))).collect())
}

/// Return all variables.
///
/// ```console
/// $ salt web1 environ.items
/// ```
#[function]
pub fn items(cx: &Cx) -> Result<Dict> {
    Ok(cx.host.env_all().into_iter().map(|(name, value)| (text(name), text(value))).collect())
}
