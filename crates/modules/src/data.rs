//! `data`: a small store of the minion's own, a file in its cache.

use std::path::PathBuf;

use halite_spec::{Cx, Result, alias, function, host::Write, module};
use halite_value::{Dict, Key, Value, msgpack};

module! {
    /// A small store of the minion's own.
    "data": clear, load, dump, update, cas, pop, get, keys, values, items, has_key,
}

alias! { items = load }

fn file(cx: &Cx) -> PathBuf {
    PathBuf::from(cx.opt_str("cachedir").unwrap_or_default().as_str()).join("datastore")
}

/// Empty the store.
///
/// ```console
/// $ salt web1 data.clear
/// ```
#[function]
pub fn clear(cx: &Cx) -> Result<bool> {
    match cx.host.remove_file(&file(cx)) {
        Err(error) if !error.is_missing() => Err(error.into()),
        _ => Ok(true),
    }
}

/// Return everything in the store.
///
/// ```console
/// $ salt web1 data.load
/// ```
#[function]
pub fn load(cx: &Cx) -> Result<Dict> {
    let Ok(bytes) = cx.host.read(&file(cx)) else { return Ok(Dict::new()) };
    Ok(match msgpack::from_slice(&bytes, msgpack::Text::Typed) {
        Ok(Value::Dict(store)) => store,
        _ => Dict::new(),
    })
}

fn save(cx: &Cx, store: &Dict) -> Result<bool> {
    let Ok(bytes) = msgpack::to_vec(&Value::from(store), msgpack::Dialect::Modern) else {
        return Ok(false);
    };
    cx.host.write(&file(cx), &bytes, &Write { mode: Some(0o600), ..Write::default() })?;
    Ok(true)
}

/// Replace the whole store.
///
/// ```console
/// $ salt web1 data.dump '{colour: red}'
/// ```
#[function]
pub fn dump(
    cx: &Cx,
    /// A dict, or the text of one.
    new_data: Value,
) -> Result<bool> {
    let data = match &new_data {
        Value::Str(text) => halite_value::yaml::load_str(text).unwrap_or_default(),
        other => other.clone(),
    };
    match data {
        Value::Dict(store) => save(cx, &store),
        _ => Ok(false),
    }
}

/// Set one entry.
///
/// ```console
/// $ salt web1 data.update colour red
/// ```
#[function]
pub fn update(
    cx: &Cx,
    /// Its key.
    key: Key,
    /// Its value.
    value: Value,
) -> Result<bool> {
    let store = load(cx)?;
    store.insert(key, value);
    save(cx, &store)?;
    Ok(true)
}

/// Set one entry if it has a certain value now.
///
/// ```console
/// $ salt web1 data.cas colour red blue
/// ```
#[function]
pub fn cas(
    cx: &Cx,
    /// Its key.
    key: Key,
    /// Its new value.
    value: Value,
    /// The value it must have.
    old_value: Value,
) -> Result<bool> {
    let store = load(cx)?;
    if store.get(&key) != Some(old_value) {
        return Ok(false);
    }
    store.insert(key, value);
    save(cx, &store)?;
    Ok(true)
}

/// Remove one entry and return its value.
///
/// ```console
/// $ salt '*' data.pop <key>
/// ```
#[function]
pub fn pop(
    cx: &Cx,
    /// Its key.
    key: Key,
    /// What to return when there is none.
    default: Option<Value>,
) -> Result<Value> {
    let store = load(cx)?;
    let value = store.remove(&key).or(default).unwrap_or_default();
    save(cx, &store)?;
    Ok(value)
}

/// Return one entry, or several.
///
/// ```console
/// $ salt web1 data.get colour
/// ```
#[function]
pub fn get(
    cx: &Cx,
    /// A key, or a list of keys.
    key: Value,
    /// What to return for those that are missing.
    default: Option<Value>,
) -> Result<Value> {
    let store = load(cx)?;
    let find = |key: Value| Key::try_from(key).ok().and_then(|key| store.get(&key));
    Ok(match key.items_of_sequence() {
        Some(keys) => {
            Value::list(keys.into_iter().filter_map(|key| find(key).or_else(|| default.clone())))
        }
        None => find(key).or(default).unwrap_or_default(),
    })
}

/// Return the keys of the store.
///
/// ```console
/// $ salt web1 data.keys
/// ```
#[function]
pub fn keys(cx: &Cx) -> Result<Value> {
    Ok(Value::list(load(cx)?.keys()))
}

/// Return the values of the store.
///
/// ```console
/// $ salt web1 data.values
/// ```
#[function]
pub fn values(cx: &Cx) -> Result<Value> {
    Ok(Value::list(load(cx)?.values()))
}

/// Tell whether the store has a key.
///
/// ```console
/// $ salt web1 data.has_key colour
/// ```
#[function]
pub fn has_key(
    cx: &Cx,
    /// The key.
    key: Key,
) -> Result<bool> {
    Ok(load(cx)?.contains(&key))
}
