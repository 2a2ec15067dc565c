//! `mine`: results of functions that the master keeps for other minions to ask for.
//!
//! Without a master they are kept in this minion's data store, under `mine_cache`.

use halite_spec::{Call, Cx, Error, Rest, Result, Strings, function, module};
use halite_value::{Dict, Value, dict, entries};

use crate::{config, data};

module! {
    /// Results of functions that the master keeps for other minions to ask for.
    "mine": delete, flush, get, get_docker, send, update, valid,
}

const STORE: &str = "mine_cache";
/// Marks a result that only some minions may read.
const ACL_ID: &str = "__saltmine_acl__";
const ACL_DATA: &str = "__data__";
const ACL_VERSION: i64 = 1;

fn is_local(cx: &Cx) -> bool {
    cx.opt_str("file_client").as_deref() == Some("local")
}

/// A function of `mine_functions`, taken apart.
struct Definition {
    function: String,
    call: Call,
    allow: Dict,
    /// It goes by another name than its own.
    renamed: bool,
}

impl Definition {
    fn read(alias: &str, definition: &Value) -> Self {
        let mut args = Vec::new();
        let kwargs = Dict::new();
        match definition {
            Value::Dict(map) => kwargs.update(map),
            other => {
                for item in other.items_of_sequence().unwrap_or_default() {
                    match item {
                        Value::Dict(map) => kwargs.update(&map),
                        other => args.push(other),
                    }
                }
            }
        }
        let name = kwargs.remove("mine_function").filter(Value::truthy);
        let allow = Dict::new();
        for key in ["allow_tgt", "allow_tgt_type"] {
            if let Some(value) = kwargs.remove(key).filter(Value::truthy) {
                allow.insert(key, value);
            }
        }
        Self {
            renamed: name.is_some(),
            function: name.map_or_else(|| alias.to_owned(), |name| name.to_str().to_string()),
            call: Call { args, kwargs },
            allow,
        }
    }

    fn is_available(&self, cx: &Cx) -> bool {
        let there = cx.runtime.has(cx, &self.function);
        if !there {
            tracing::error!("Function {} in mine_functions not available", self.function);
        }
        there
    }
}

fn wrapped(result: Value, allow: &Dict) -> Value {
    if !allow.contains("allow_tgt") {
        return result;
    }
    let wrapped = entries! { ACL_DATA => result, ACL_ID => ACL_VERSION };
    wrapped.update(allow);
    wrapped.into()
}

fn configured(cx: &Cx) -> Result<Option<Dict>> {
    let merged =
        config::merge(cx, "mine_functions".to_owned(), Value::dict(), false, false, false)?;
    Ok(match merged {
        Value::Dict(functions) if !functions.is_empty() => Some(functions),
        Value::List(list) if !list.is_empty() => {
            Some(list.to_vec().iter().map(|name| (name.to_str(), Value::dict())).collect())
        }
        _ => None,
    })
}

fn store(cx: &Cx, results: Dict, clear: bool) -> Result<bool> {
    if is_local(cx) {
        if !clear && let Value::Dict(old) = data::get(cx, STORE.into(), None)? {
            old.update(&results);
            return data::update(cx, STORE.into(), old.into());
        }
        return data::update(cx, STORE.into(), results.into());
    }
    // Genuine masters fail on `clear`; flushing first does the same.
    if clear {
        ask(cx, dict! { "cmd" => "_mine_flush", "id" => cx.id() })?;
    }
    ask(cx, dict! { "cmd" => "_mine", "id" => cx.id(), "data" => results, "clear" => false })
}

/// Sends to the master; tells whether it was heard.
fn ask(cx: &Cx, load: Value) -> Result<bool> {
    match cx.runtime.ask_master(cx, load) {
        Ok(_) => Ok(true),
        Err(Error::Cancelled) => Err(Error::Cancelled),
        Err(error) => {
            tracing::error!("the mine did not reach the master: {error}");
            Ok(false)
        }
    }
}

/// Run the configured functions and give their results to the mine.
///
/// ```console
/// $ salt web1 mine.update 'db*'
/// ```
#[function]
pub fn update(
    cx: &Cx,
    /// Remove what the mine held before.
    #[default(false)]
    clear: bool,
    /// Only these functions: as `mine_functions` has them, or a list of names.
    mine_functions: Option<Value>,
) -> Result<Value> {
    let functions = match mine_functions.filter(Value::truthy) {
        None => match configured(cx)? {
            Some(functions) => functions,
            None => return Ok(Value::Null),
        },
        Some(Value::Dict(functions)) => functions,
        Some(Value::List(list)) => {
            list.to_vec().iter().map(|name| (name.to_str(), Value::dict())).collect()
        }
        Some(_) => return Ok(Value::Null),
    };
    let results = Dict::new();
    for (alias, definition) in &functions {
        let definition = Definition::read(&alias.to_str(), &definition);
        if !definition.is_available(cx) {
            continue;
        }
        match cx.call(&definition.function, definition.call) {
            Ok(result) => {
                results.insert(alias, wrapped(result, &definition.allow));
            }
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            Err(error) => {
                tracing::error!("the mine gets nothing of {}: {error}", definition.function);
            }
        }
    }
    store(cx, results, clear).map(Into::into)
}

/// Run one function and give its result to the mine.
///
/// ```console
/// $ salt '*' mine.send network.ip_addrs eth0
/// $ salt '*' mine.send eth0_ip_addrs mine_function=network.ip_addrs eth0
/// ```
#[function]
pub fn send(
    cx: &Cx,
    /// The function, or with `mine_function` any name for its result.
    name: String,
    /// Its arguments, and `mine_function`, `allow_tgt`, `allow_tgt_type`.
    args: Rest,
) -> Result<bool> {
    let own = |key: &halite_value::Key| key.to_str().starts_with("__");
    let kwargs: Dict = args.kwargs.entries().into_iter().filter(|(key, _)| !own(key)).collect();
    let definition = Definition::read(&name, &kwargs.into());
    let call = Call { args: args.args, kwargs: definition.call.kwargs };
    match cx.call(&definition.function, call) {
        Ok(result) => {
            let results = Dict::new();
            results.insert(name, wrapped(result, &definition.allow));
            store(cx, results, false)
        }
        Err(Error::Cancelled) => Err(Error::Cancelled),
        Err(error) => {
            tracing::error!("nothing to send to the mine of {}: {error}", definition.function);
            Ok(false)
        }
    }
}

/// Get what the mine holds of other minions.
///
/// ```console
/// $ salt web1 mine.get 'db*' network.ip_addrs
/// ```
#[function]
pub fn get(
    cx: &Cx,
    /// The minions asked about.
    tgt: Value,
    /// The function, several with commas, or a list.
    fun: Value,
    /// How `tgt` is read.
    #[default("glob".to_owned())]
    tgt_type: String,
    /// Leave this minion out.
    #[default(false)]
    exclude_minion: bool,
) -> Result<Value> {
    if is_local(cx) {
        return get_here(cx, &tgt, &fun, &tgt_type);
    }
    let load = dict! {
        "cmd" => "_mine_get", "id" => cx.id(), "tgt" => tgt, "fun" => fun, "tgt_type" => tgt_type,
    };
    let found = cx.runtime.ask_master(cx, load)?;
    if exclude_minion && let Value::Dict(found) = &found {
        found.remove(cx.id().as_str());
    }
    Ok(found)
}

fn get_here(cx: &Cx, tgt: &Value, fun: &Value, tgt_type: &str) -> Result<Value> {
    let ret = Dict::new();
    if !cx.runtime.matches(cx, &tgt.to_str(), tgt_type)? {
        return Ok(ret.into());
    }
    let Value::Dict(held) = data::get(cx, STORE.into(), None)? else { return Ok(ret.into()) };
    let names: Vec<String> = match fun {
        Value::Str(text) => text.split(',').map(str::to_owned).collect(),
        other => {
            let items = other.items_of_sequence().unwrap_or_default();
            items.iter().map(|name| name.to_str().to_string()).collect()
        }
    };
    let by_function = fun.as_str().is_none() || names.len() > 1;
    for name in names {
        let Some(value) = held.get(name.as_str()) else { continue };
        let value = match &value {
            Value::Dict(map) if map.contains(ACL_ID) => map.get(ACL_DATA).unwrap_or_default(),
            _ => value,
        };
        if by_function {
            ret.insert(name, dict! { cx.id() => value });
        } else {
            ret.insert(cx.id(), value);
        }
    }
    Ok(ret.into())
}

/// Remove one function's result from the mine.
///
/// ```console
/// $ salt web1 mine.delete network.ip_addrs
/// ```
#[function]
pub fn delete(
    cx: &Cx,
    /// The function.
    fun: String,
) -> Result<bool> {
    if is_local(cx) {
        let held = data::get(cx, STORE.into(), None)?;
        if let Value::Dict(held) = &held {
            held.remove(fun.as_str());
        }
        return data::update(cx, STORE.into(), held);
    }
    ask(cx, dict! { "cmd" => "_mine_delete", "id" => cx.id(), "fun" => fun })
}

/// Remove everything of this minion from the mine.
///
/// ```console
/// $ salt web1 mine.flush
/// ```
#[function]
pub fn flush(cx: &Cx) -> Result<bool> {
    if is_local(cx) {
        return data::update(cx, STORE.into(), Value::dict());
    }
    ask(cx, dict! { "cmd" => "_mine_flush", "id" => cx.id() })
}

/// List the configured functions that this minion has.
///
/// ```console
/// $ salt web1 mine.valid
/// ```
#[function]
pub fn valid(cx: &Cx) -> Result<Value> {
    let Some(functions) = configured(cx)? else { return Ok(Value::Null) };
    let ret = Dict::new();
    for (alias, given) in &functions {
        let definition = Definition::read(&alias.to_str(), &given);
        if !definition.is_available(cx) {
            continue;
        }
        if definition.renamed {
            let mut args = definition.call.args;
            let named = definition.call.kwargs.entries().into_iter();
            args.extend(named.map(|(key, value)| entries! { key => value }.into()));
            ret.insert(alias, dict! { definition.function => args });
        } else {
            ret.insert(alias, given);
        }
    }
    Ok(ret.into())
}

/// Get the containers of all minions by image and port, from the mine's `docker.ps`.
///
/// ```console
/// $ salt web1 mine.get_docker
/// ```
#[function]
pub fn get_docker(
    cx: &Cx,
    /// Interfaces whose addresses stand for a host.
    interfaces: Option<Strings>,
    /// Networks the addresses must be in.
    cidrs: Option<Strings>,
    /// Add the container's id.
    #[default(false)]
    with_container_id: bool,
) -> Result<Value> {
    let hosts = get(cx, "*".into(), "docker.ps".into(), "glob".into(), false)?;
    let ret = Dict::new();
    let Value::Dict(hosts) = hosts else { return Ok(ret.into()) };
    for containers in hosts.values() {
        let Value::Dict(containers) = containers else { continue };
        let host = containers.remove("host").unwrap_or_default();
        let addresses = addresses_of(&host, interfaces.as_deref(), cidrs.as_deref());
        for container in containers.values() {
            add_container(&ret, &container, &addresses, with_container_id);
        }
    }
    Ok(ret.into())
}

fn addresses_of(
    host: &Value,
    interfaces: Option<&Vec<String>>,
    cidrs: Option<&Vec<String>>,
) -> Vec<String> {
    let Some(Value::Dict(all)) = host.get("interfaces") else { return Vec::new() };
    let wanted = |name: &str| interfaces.is_none_or(|names| names.iter().any(|own| own == name));
    let mut found = Vec::new();
    for (name, info) in &all {
        let inet = info.get("inet").and_then(|inet| inet.items_of_sequence()).unwrap_or_default();
        for address in inet.iter().filter(|_| wanted(&name.to_str())) {
            let Some(address) = address.get_str("address") else { continue };
            let inside = cidrs.is_none_or(|cidrs| {
                cidrs.iter().any(|cidr| {
                    cidr.parse::<halite_target::Net>()
                        .is_ok_and(|net| net.contains_any(&Value::from(&address)))
                })
            });
            if inside && !found.iter().any(|own| own == address.as_str()) {
                found.push(address.to_string());
            }
        }
    }
    found
}

fn add_container(ret: &Dict, container: &Value, host: &[String], with_id: bool) {
    let text = |key: &str| container.get(key).unwrap_or_default().to_str();
    let id = container.get("Info").and_then(|info| info.get("Id")).unwrap_or_default();
    let image = ret.get_or_insert_with(text("Image"), Value::dict);
    let ports = container.get("Ports").and_then(|ports| ports.items_of_sequence());
    for port in ports.unwrap_or_default() {
        let Some(address) = port.get_str("IP").filter(|address| !address.is_empty()) else {
            continue;
        };
        let public = port.get("PublicPort").unwrap_or_default();
        let own = [address.to_string()];
        let addresses = if address == "0.0.0.0" { host } else { &own };
        for address in addresses {
            let Value::Dict(image) = &image else { continue };
            let Value::Dict(ipv4) = image.get_or_insert_with("ipv4", Value::dict) else { continue };
            let private = port.get("PrivatePort").unwrap_or_default();
            let Ok(private) = halite_value::Key::try_from(private) else { continue };
            let Value::List(list) =
                ipv4.get_or_insert_with(private, || Value::list(Vec::<Value>::new()))
            else {
                continue;
            };
            let footprint = Value::from(format!("{address}:{public}"));
            let value = if with_id { Value::tuple([footprint, id.clone()]) } else { footprint };
            if !list.contains(&value) {
                list.push(value);
            }
        }
    }
}
