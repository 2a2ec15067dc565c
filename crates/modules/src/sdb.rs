//! `sdb`: values kept elsewhere, named `sdb://profile/key`.
//!
//! A profile is a dict of the configuration with a `driver`. Here are the drivers `env` (the
//! environment) and `yaml` (files); for others the user's own modules are asked.

use std::{ffi::OsStr, path::Path};

use halite_spec::{Call, Cx, Error, Result, function, module};
use halite_value::{Dict, Value, lookup, yaml};

use crate::random;

module! {
    /// Values kept elsewhere.
    "sdb": get, set, delete, get_or_set_hash,
}

/// Profile and key of `sdb://profile/key`; nothing when it is no such address.
fn taken_apart(cx: &Cx, uri: &str) -> Result<Option<(Dict, String)>> {
    let Some(rest) = uri.strip_prefix("sdb://") else { return Ok(None) };
    let (name, key) = rest.split_once(['/', '?']).unwrap_or((rest, ""));
    let profile = cx.opt(name).or_else(|| cx.pillar.get(name));
    match profile {
        Some(Value::Dict(profile)) => Ok(Some((profile, key.to_owned()))),
        _ => Ok(None),
    }
}

fn driver_of(profile: &Dict) -> Result<String> {
    let driver = profile.get("driver").map(|driver| driver.to_string());
    driver.ok_or_else(|| Error::invalid("the sdb profile names no driver"))
}

/// What the files of a profile say, one over the other.
fn from_yaml(cx: &Cx, profile: &Dict, key: &str) -> Result<Option<Value>> {
    let files = profile.get("files").unwrap_or_default();
    let files = files.items_of_sequence().unwrap_or_else(|| vec![files]);
    let mut all = Value::dict();
    for file in files.iter().filter(|file| !file.is_null()) {
        let path = file.to_string();
        let text = cx.host.read_text(Path::new(&path))?;
        let data = yaml::load_str(&text).map_err(|error| Error::failed(error.to_string()))?;
        if let (Value::Dict(all), Value::Dict(data)) = (&mut all, &data) {
            all.update(data);
        }
    }
    Ok(lookup::traverse(&all, key, ":"))
}

fn other(cx: &Cx, driver: &str, function: &str, call: Call) -> Result<Value> {
    let name = format!("{driver}.{function}");
    if let Some(value) = cx.runtime.call_extension(cx, "sdb", &name, call)? {
        return Ok(value);
    }
    Err(Error::failed(format!("the sdb driver '{driver}' is not available")))
}

/// Return a value; what is no address is returned as it is.
///
/// ```console
/// $ salt '*' sdb.get sdb://mymemcached/foo
/// ```
#[function]
pub fn get(
    cx: &Cx,
    /// `sdb://profile/key`.
    uri: String,
    /// An address nobody knows is an error.
    #[default(false)]
    strict: bool,
) -> Result<Value> {
    let Some((profile, key)) = taken_apart(cx, &uri)? else {
        if strict && uri.starts_with("sdb://") {
            let profile = uri.trim_start_matches("sdb://");
            let profile = profile.split(['/', '?']).next().unwrap_or_default();
            let text =
                format!("SDB profile \"{profile}\" wasnt found in the minion configuration.");
            return Err(Error::invalid(text));
        }
        return Ok(uri.into());
    };
    let driver = driver_of(&profile)?;
    match driver.as_str() {
        "env" => {
            let value = cx.host.env(OsStr::new(&key));
            Ok(value.map(|value| value.to_string_lossy().into_owned()).into())
        }
        "yaml" => Ok(from_yaml(cx, &profile, &key)?.unwrap_or_default()),
        _ => other(cx, &driver, "get", Call::of([Value::from(key)]).with("profile", profile)),
    }
}

/// Keep a value.
///
/// ```console
/// $ salt web1 sdb.set sdb://shop/colour blue
/// ```
#[function]
pub fn set(
    cx: &Cx,
    /// `sdb://profile/key`.
    uri: String,
    /// The value.
    value: Value,
) -> Result<Value> {
    let Some((profile, key)) = taken_apart(cx, &uri)? else { return Ok(false.into()) };
    let driver = driver_of(&profile)?;
    match driver.as_str() {
        "env" => {
            cx.host.set_env(OsStr::new(&key), Some(OsStr::new(value.to_str().as_str())))?;
            Ok(value)
        }
        _ => {
            other(cx, &driver, "set", Call::of([Value::from(key), value]).with("profile", profile))
        }
    }
}

/// Forget a value.
///
/// ```console
/// $ salt web1 sdb.delete sdb://shop/colour
/// ```
#[function]
pub fn delete(
    cx: &Cx,
    /// `sdb://profile/key`.
    uri: String,
) -> Result<Value> {
    let Some((profile, key)) = taken_apart(cx, &uri)? else { return Ok(false.into()) };
    let driver = driver_of(&profile)?;
    match driver.as_str() {
        "env" => {
            cx.host.set_env(OsStr::new(&key), None)?;
            Ok(true.into())
        }
        _ => other(cx, &driver, "delete", Call::of([Value::from(key)]).with("profile", profile)),
    }
}

/// Return a value, or make one by chance and keep it.
///
/// ```console
/// $ salt web1 sdb.get_or_set_hash sdb://shop/colour
/// ```
#[function]
pub fn get_or_set_hash(
    cx: &Cx,
    /// `sdb://profile/key`.
    uri: String,
    /// How long.
    #[default(8)]
    length: u64,
    /// Of which characters.
    #[default("abcdefghijklmnopqrstuvwxyz0123456789!@#$%^&*(-_=+)".to_owned())]
    chars: String,
) -> Result<Value> {
    let known = get(cx, uri.clone(), false)?;
    if !known.is_null() && known.as_str() != Some(uri.as_str()) {
        return Ok(known);
    }
    let value = random::text_of(cx, usize::try_from(length).unwrap_or(8), &chars)?;
    set(cx, uri, value.as_str().into())?;
    Ok(value.into())
}
