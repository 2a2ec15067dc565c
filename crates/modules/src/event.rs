//! `event`: tell the master, or programs on this machine, that something happened.

use halite_spec::{Cx, Error, Event, Rest, Result, function, module};
use halite_value::{Dict, Value, entries};

module! {
    /// Tell the master, or programs on this machine, that something happened.
    "event": fire, fire_master, send,
}

/// There is no master to tell.
fn is_alone(cx: &Cx) -> bool {
    (cx.opt_bool("local")
        || cx.opt_str("file_client").as_deref() == Some("local")
        || cx.opt_str("master_type").as_deref() == Some("disable"))
        && !cx.opt_bool("use_master_when_local")
}

/// Fire an event on the bus of this machine's minion.
///
/// ```console
/// $ salt web1 event.fire '{colour: blue}' shop/deployed
/// ```
#[function]
pub fn fire(
    cx: &Cx,
    /// What happened: a dict.
    data: Value,
    /// The event's name.
    tag: String,
) -> Result<bool> {
    cx.runtime.fire(cx, Event { tag, data, pretag: None, local: true })
}

/// Fire an event on the master's bus.
///
/// ```console
/// $ salt web1 event.fire_master '{colour: blue}' shop/deployed
/// ```
#[function]
pub fn fire_master(
    cx: &Cx,
    /// What happened: a dict.
    data: Value,
    /// The event's name.
    tag: String,
    /// Further fields of the message.
    preload: Option<Value>,
) -> Result<bool> {
    if is_alone(cx) {
        tracing::warn!("Local mode detected. Event with tag {tag} will NOT be sent.");
        return Ok(false);
    }
    let pretag = preload.as_ref().and_then(|fields| fields.get_str("pretag"));
    if let Some(Value::Dict(fields)) = &preload
        && fields.keys().iter().any(|name| *name.value() != "pretag")
    {
        // The fields stand beside the data, in the message itself.
        let load = fields.shallow_copy();
        load.update(&entries! { "cmd" => "_minion_event", "tag" => &tag, "data" => data });
        if pretag.is_some() {
            load.insert("pretag", pretag);
        }
        return match cx.runtime.ask_master(cx, load.into()) {
            Ok(_) => Ok(true),
            Err(Error::Cancelled) => Err(Error::Cancelled),
            Err(error) => {
                tracing::error!("the event {tag} did not reach the master: {error}");
                Ok(false)
            }
        };
    }
    cx.runtime.fire(cx, Event { tag, data, pretag: pretag.map(String::from), local: false })
}

/// Fire an event on the master's bus, with keywords as its data.
///
/// ```console
/// $ salt web1 event.send shop/deployed '{version: 7}'
/// ```
#[function]
pub fn send(
    cx: &Cx,
    /// The event's name.
    tag: String,
    /// What happened: a dict, which overrides everything else.
    data: Option<Value>,
    /// Further fields of the message.
    preload: Option<Value>,
    /// Add the environment, all of it or the names listed.
    #[default(Value::Bool(false))]
    with_env: Value,
    /// Add grains, all of them or the names listed.
    #[default(Value::Bool(false))]
    with_grains: Value,
    /// Add pillar, all of it or the names listed.
    #[default(Value::Bool(false))]
    with_pillar: Value,
    /// Add `saltenv` and `pillarenv`.
    #[default(false)]
    with_env_opts: bool,
    /// Further data.
    rest: Rest,
) -> Result<bool> {
    let all = Dict::new();
    let environ = || -> Dict {
        let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        cx.host.env_all().into_iter().map(|(name, value)| (text(name), text(value))).collect()
    };
    for (name, wanted, source) in [
        ("environ", &with_env, &environ as &dyn Fn() -> Dict),
        ("grains", &with_grains, &|| cx.grains.clone()),
        ("pillar", &with_pillar, &|| cx.pillar.clone()),
    ] {
        if let Some(part) = chosen(wanted, source) {
            all.insert(name, part);
        }
    }
    if with_env_opts {
        all.insert("saltenv", cx.opt("saltenv").unwrap_or_else(|| "base".into()));
        all.insert("pillarenv", cx.opt("pillarenv").unwrap_or_default());
    }
    all.update(&rest.kwargs);
    if let Some(Value::Dict(data)) = &data {
        all.update(data);
    }
    if is_alone(cx) { fire(cx, all.into(), tag) } else { fire_master(cx, all.into(), tag, preload) }
}

/// Returns the wanted part of a dict: nothing, all, or the keys listed.
fn chosen(wanted: &Value, source: &dyn Fn() -> Dict) -> Option<Dict> {
    if !wanted.truthy() {
        return None;
    }
    let all = source();
    match wanted.items_of_sequence() {
        Some(names) => {
            let wanted = |key: &halite_value::Key| names.iter().any(|name| *name == *key.to_str());
            Some(all.entries().into_iter().filter(|(key, _)| wanted(key)).collect())
        }
        None => Some(all),
    }
}
