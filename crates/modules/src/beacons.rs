//! `beacons`: what a minion watches.
//!
//! The daemon runs the beacons; these functions ask it over the local bus, as genuine Salt's do.
//! What is added stays until the daemon ends, or for good with `beacons.save`, which writes
//! `beacons.conf` beside the other configuration files.

use halite_spec::{Cx, Error, Rest, Result, function, host::Write, module};
use halite_value::{Dict, Value, entries, yaml};

use crate::schedule::conf_folder;

module! {
    /// What a minion watches.
    "beacons": add, delete, disable, disable_beacon, enable, enable_beacon, list, list_available,
    modify, reset, save,
}

/// Asks the daemon; `None` when there is none.
fn ask(cx: &Cx, func: &str, more: Dict, reply: &str) -> Result<Option<Dict>> {
    let request = more;
    request.insert("func", func);
    let reply = format!("/salt/minion/{reply}");
    cx.runtime.ask_daemon(cx, "manage_beacons", &request, Some(&reply))
}

fn configured(cx: &Cx, include_pillar: bool, include_opts: bool) -> Result<Option<Dict>> {
    let request = entries! { "include_pillar" => include_pillar, "include_opts" => include_opts };
    let told = ask(cx, "list", request, "minion_beacons_list_complete")?;
    Ok(told.and_then(|told| told.get("beacons")?.as_dict().cloned()))
}

fn answer(result: bool, comment: impl Into<String>) -> Dict {
    entries! { "comment" => comment.into(), "result" => result }
}

fn is_test(rest: &Rest) -> bool {
    rest.kwargs.get("test").is_some_and(|test| test.truthy())
}

fn text_of(value: impl Into<Value>) -> Value {
    let value = entries! { "beacons" => value.into() };
    yaml::dump(&value.into(), &yaml::DumpOptions::block()).unwrap_or_default().into()
}

/// List the configured beacons.
///
/// ```console
/// $ salt web1 beacons.list
/// ```
#[function]
pub fn list(
    cx: &Cx,
    /// As text.
    #[default(true)]
    return_yaml: bool,
    /// With those of the pillar.
    #[default(true)]
    include_pillar: bool,
    /// With those of the configuration.
    #[default(true)]
    include_opts: bool,
    /// Accepted, as in Salt.
    rest: Rest,
) -> Result<Value> {
    let _ = rest;
    let beacons = configured(cx, include_pillar, include_opts)?;
    let beacons = beacons.map_or(Value::Null, Value::from);
    Ok(if return_yaml { text_of(beacons) } else { beacons })
}

/// List the beacons that can be configured.
///
/// ```console
/// $ salt web1 beacons.list_available
/// ```
#[function]
pub fn list_available(
    cx: &Cx,
    /// As text.
    #[default(true)]
    return_yaml: bool,
    /// Accepted, as in Salt.
    rest: Rest,
) -> Result<Value> {
    let _ = rest;
    let Some(names) = available(cx)? else {
        return Ok(entries! { "beacons" => Dict::new() }.into());
    };
    let names = Value::list(names);
    Ok(if return_yaml { text_of(names) } else { names })
}

fn available(cx: &Cx) -> Result<Option<Vec<Value>>> {
    let told = ask(cx, "list_available", Dict::new(), "minion_beacons_list_available_complete")?;
    Ok(told.and_then(|told| told.get("beacons")?.items_of_sequence()))
}

/// Says what is wrong with a configuration.
fn refused(cx: &Cx, name: &str, data: &Value) -> Result<Option<String>> {
    let request = entries! { "name" => name, "beacon_data" => data };
    let reply = "minion_beacon_validation_complete";
    let told = ask(cx, "validate_beacon", request, reply)?;
    let Some(told) = told else { return Err(no_daemon()) };
    let valid = told.get("valid").is_some_and(|valid| valid.truthy());
    Ok((!valid).then(|| told.get("vcomment").unwrap_or_default().to_str().to_string()))
}

fn no_daemon() -> Error {
    Error::failed("no minion runs here that could be asked about its beacons")
}

/// Reads the data of a beacon: the list Salt wants, or a dict that becomes one.
fn data_of(given: Value) -> Value {
    match given {
        Value::Dict(options) => {
            Value::list(options.entries().into_iter().map(|(key, value)| entries! { key => value }))
        }
        other => other,
    }
}

/// Add a beacon.
///
/// ```console
/// $ salt web1 beacons.add load '[{interval: 30}]'
/// ```
#[function]
pub fn add(
    cx: &Cx,
    /// The beacon.
    name: String,
    /// Its configuration: a list, or a dict.
    beacon_data: Value,
    /// `test`, `force`.
    rest: Rest,
) -> Result<Value> {
    let data = data_of(beacon_data);
    let Some(known) = configured(cx, true, true)? else { return Err(no_daemon()) };
    let force = rest.kwargs.get("force").is_some_and(|force| force.truthy());
    if known.contains(name.as_str()) && !force {
        return Ok(answer(true, format!("Beacon {name} is already configured.")).into());
    }
    let kind = data.items_of_sequence().unwrap_or_default();
    let kind = kind.iter().find_map(|item| item.get_str("beacon_module"));
    let kind = kind.unwrap_or_else(|| name.as_str().into());
    let names = available(cx)?.unwrap_or_default();
    if !names.iter().any(|own| *own == *kind) {
        return Ok(answer(false, format!("Beacon \"{name}\" is not available.")).into());
    }
    if is_test(&rest) {
        return Ok(answer(true, format!("Beacon: {name} would be added.")).into());
    }
    if let Some(why) = refused(cx, &name, &data)? {
        let comment = format!("Beacon {name} configuration invalid, not adding.\n{why}");
        return Ok(answer(false, comment).into());
    }
    let request = entries! { "name" => name.as_str(), "beacon_data" => &data };
    let told = ask(cx, "add", request, "minion_beacon_add_complete")?;
    Ok(match told {
        Some(told) if told.get("complete").is_some_and(|done| done.truthy()) => {
            answer(true, format!("Added beacon: {name}.")).into()
        }
        Some(told) => answer(false, told.get("comment").unwrap_or_default().to_str()).into(),
        None => {
            answer(false, "Did not receive the beacon add complete event before the timeout of 30s")
                .into()
        }
    })
}

/// Change a beacon's configuration.
///
/// ```console
/// $ salt '*' beacons.modify ps "[{'processes': {'salt-master': 'stopped', 'apache2': 'stopped'}}]"
/// ```
#[function]
pub fn modify(
    cx: &Cx,
    /// The beacon.
    name: String,
    /// Its configuration: a list, or a dict.
    beacon_data: Value,
    /// `test`.
    rest: Rest,
) -> Result<Value> {
    let data = data_of(beacon_data);
    let Some(known) = configured(cx, true, true)? else { return Err(no_daemon()) };
    let Some(old) = known.get(name.as_str()) else {
        return Ok(answer(true, format!("Beacon {name} is not configured.")).into());
    };
    if let Some(why) = refused(cx, &name, &data)? {
        let comment = format!("Beacon {name} configuration invalid, not modifying.\n{why}");
        return Ok(answer(false, comment).into());
    }
    if old == data {
        return Ok(answer(true, format!("Job {name} in correct state")).into());
    }
    if is_test(&rest) {
        return Ok(answer(true, format!("Beacon: {name} would be modified.")).into());
    }
    let request = entries! { "name" => name.as_str(), "beacon_data" => &data };
    if ask(cx, "modify", request, "minion_beacon_modify_complete")?.is_none() {
        return Ok(answer(false, format!("Failed to modify beacon {name}.")).into());
    }
    let ret = answer(true, format!("Modified beacon: {name}."));
    ret.insert("changes", entries! { "diff" => difference(&old, &data) });
    Ok(ret.into())
}

/// The lines Salt compares: `key:value` of each entry.
fn lines_of(data: &Value) -> Vec<String> {
    let items = data.items_of_sequence().unwrap_or_default();
    let entries = items.iter().filter_map(|item| item.as_dict().map(Dict::entries)).flatten();
    entries.map(|(key, value)| format!("{key}:{value}\n")).collect()
}

/// The difference between two configurations, as Salt shows it.
pub fn difference(old: &Value, new: &Value) -> String {
    let (old, new) = (lines_of(old), lines_of(new));
    crate::file::diff::unified(&old, &new)
}

/// Remove a beacon.
///
/// ```console
/// $ salt web1 beacons.delete load
/// ```
#[function]
pub fn delete(
    cx: &Cx,
    /// The beacon.
    name: String,
    /// `test`.
    rest: Rest,
) -> Result<Value> {
    if is_test(&rest) {
        return Ok(answer(true, format!("Beacon: {name} would be deleted.")).into());
    }
    let Some(_) = configured(cx, false, true)? else { return Err(no_daemon()) };
    let request = entries! { "name" => name.as_str() };
    let told = ask(cx, "delete", request, "minion_beacon_delete_complete")?;
    let gone = told.is_some_and(|told| told.get("complete").is_some_and(|done| done.truthy()));
    let comment = if gone {
        format!("Deleted beacon: {name}.")
    } else {
        format!("Cannot delete beacon item {name}, it is configured in pillar.")
    };
    Ok(answer(gone, comment).into())
}

/// Write the beacons of the configuration to `beacons.conf`.
///
/// ```console
/// $ salt web1 beacons.save
/// ```
#[function]
pub fn save(
    cx: &Cx,
    /// Accepted, as in Salt.
    rest: Rest,
) -> Result<Value> {
    let _ = rest;
    let Some(beacons) = configured(cx, false, true)? else { return Err(no_daemon()) };
    let path = conf_folder(&cx.opts).join("beacons.conf");
    let shown = path.display().to_string();
    let text =
        if beacons.is_empty() { String::new() } else { text_of(beacons).to_str().to_string() };
    if let Some(folder) = path.parent() {
        cx.host.create_dirs(folder, None)?;
    }
    match cx.host.write(&path, text.as_bytes(), &Write::default()) {
        Ok(()) => Ok(answer(true, format!("Beacons saved to {shown}.")).into()),
        Err(error) => {
            tracing::error!("{error}");
            let comment = format!("Unable to write to beacons file at {shown}. Check permissions.");
            Ok(answer(false, comment).into())
        }
    }
}

/// Returns the beacons of `beacons.conf`.
pub fn saved(cx: &Cx) -> Result<Dict> {
    let path = conf_folder(&cx.opts).join("beacons.conf");
    let Some(text) = cx.host.read_text_if_there(&path)? else { return Ok(Dict::new()) };
    let value = yaml::load_str(&text).unwrap_or_default();
    Ok(value.get("beacons").and_then(|beacons| beacons.as_dict().cloned()).unwrap_or_default())
}

fn switch(cx: &Cx, rest: &Rest, enable: bool) -> Result<Value> {
    let (word, title) = if enable { ("enabled", "Enabled") } else { ("disabled", "Disabled") };
    if is_test(rest) {
        return Ok(answer(true, format!("Beacons would be {word}.")).into());
    }
    let func = if enable { "enable" } else { "disable" };
    let reply = format!("minion_beacons_{word}_complete");
    let told = ask(cx, func, Dict::new(), &reply)?;
    let comment = match told {
        Some(_) => format!("{title} beacons on minion."),
        None => format!("Failed to {func} beacons on minion."),
    };
    Ok(answer(told.is_some(), comment).into())
}

/// Let the beacons run.
///
/// ```console
/// $ salt web1 beacons.enable
/// ```
#[function]
pub fn enable(
    cx: &Cx,
    /// `test`.
    rest: Rest,
) -> Result<Value> {
    switch(cx, &rest, true)
}

/// Stop all beacons.
///
/// ```console
/// $ salt web1 beacons.disable
/// ```
#[function]
pub fn disable(
    cx: &Cx,
    /// `test`.
    rest: Rest,
) -> Result<Value> {
    switch(cx, &rest, false)
}

fn switch_one(cx: &Cx, name: &str, rest: &Rest, enable: bool) -> Result<Value> {
    let (word, title) = if enable { ("enabled", "Enabled") } else { ("disabled", "Disabled") };
    if name.is_empty() {
        return Ok(answer(false, "Beacon name is required.").into());
    }
    if is_test(rest) {
        let comment = if enable {
            format!("Beacon {name} would be enabled.")
        } else {
            "Beacons would be disabled.".into()
        };
        return Ok(answer(true, comment).into());
    }
    let Some(known) = configured(cx, true, true)? else { return Err(no_daemon()) };
    if !known.contains(name) {
        let comment = format!("Beacon {name} is not currently configured.");
        return Ok(answer(false, comment).into());
    }
    let func = if enable { "enable_beacon" } else { "disable_beacon" };
    let reply = format!("minion_beacon_{word}_complete");
    let told = ask(cx, func, entries! { "name" => name }, &reply)?;
    let done = told.is_some_and(|told| told.get("complete").is_some_and(|done| done.truthy()));
    let comment = if done {
        format!("{title} beacon {name} on minion.")
    } else {
        format!("Failed to {} beacon {name} on minion.", if enable { "enable" } else { "disable" })
    };
    Ok(answer(done, comment).into())
}

/// Let a beacon run.
///
/// ```console
/// $ salt web1 beacons.enable_beacon load
/// ```
#[function]
pub fn enable_beacon(
    cx: &Cx,
    /// The beacon.
    name: String,
    /// `test`.
    rest: Rest,
) -> Result<Value> {
    switch_one(cx, &name, &rest, true)
}

/// Stop a beacon.
///
/// ```console
/// $ salt web1 beacons.disable_beacon load
/// ```
#[function]
pub fn disable_beacon(
    cx: &Cx,
    /// The beacon.
    name: String,
    /// `test`.
    rest: Rest,
) -> Result<Value> {
    switch_one(cx, &name, &rest, false)
}

/// Remove all beacons of the configuration.
///
/// ```console
/// $ salt web1 beacons.reset
/// ```
#[function]
pub fn reset(
    cx: &Cx,
    /// `test`.
    rest: Rest,
) -> Result<Value> {
    if is_test(&rest) {
        return Ok(answer(true, "Beacons would be reset.").into());
    }
    let told = ask(cx, "reset", Dict::new(), "minion_beacon_reset_complete")?;
    let comment =
        if told.is_some() { "Beacon configuration reset." } else { "Failed to reset beacons." };
    Ok(answer(told.is_some(), comment).into())
}
