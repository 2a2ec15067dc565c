//! What outlives a run: requests for one, states that are disabled, pauses of those that run.

use std::path::{Path, PathBuf};

use halite_spec::{Args, Call, Cx, Error, Rest, Result, Strings, function, host};
use halite_value::{
    Dict, Value, dict, msgpack,
    msgpack::{Dialect, Text},
};

use super::apply;

fn cache_path(cx: &Cx, name: &str) -> PathBuf {
    Path::new(cx.opt_str("cachedir").unwrap_or_default().as_str()).join(name)
}

/// What a file of this folder keeps; empty if it is not there or says nothing.
fn read_dict(cx: &Cx, path: &Path) -> Result<Dict> {
    let bytes = cx.host.read_if_there(path)?.unwrap_or_default();
    match msgpack::from_slice(&bytes, Text::Typed) {
        Ok(Value::Dict(kept)) => Ok(kept),
        _ => Ok(Dict::new()),
    }
}

fn write_dict(cx: &Cx, path: &Path, kept: &Dict, mode: Option<u32>) -> Result<()> {
    let bytes = msgpack::to_vec(&kept.into(), Dialect::Modern)
        .map_err(|error| Error::failed(error.to_string()))?;
    Ok(cx.host.write(path, &bytes, &host::Write { mode, ..host::Write::default() })?)
}

fn read_requests(cx: &Cx) -> Result<Dict> {
    read_dict(cx, &cache_path(cx, "req_state.p"))
}

fn write_requests(cx: &Cx, requests: &Dict) -> Result<()> {
    write_dict(cx, &cache_path(cx, "req_state.p"), requests, Some(0o600))
}

/// Show what states would do, and remember the request for `state.run_request`.
///
/// ```console
/// $ salt web1 state.request
/// ```
#[function(name = "request")]
pub fn request_(
    cx: &Cx,
    /// SLS names; none: the highstate.
    mods: Option<Value>,
    /// As for `state.apply`; `name` is the request's.
    rest: Rest,
) -> Result<Value> {
    let kwargs = rest.kwargs.shallow_copy();
    kwargs.insert("test", true);
    let ret = apply(cx, mods.clone(), Rest { args: Vec::new(), kwargs: kwargs.shallow_copy() })?;
    let name = kwargs.remove("name").map_or_else(|| "default".to_owned(), |name| name.to_string());
    kwargs.remove("test");
    let requests = read_requests(cx)?;
    requests.insert(
        name,
        dict! { "test_run" => &ret, "mods" => mods.unwrap_or_default(), "kwargs" => kwargs },
    );
    write_requests(cx, &requests)?;
    Ok(ret)
}

/// Return the remembered requests, or one of them.
///
/// ```console
/// $ salt web1 state.check_request
/// ```
#[function]
pub fn check_request(
    cx: &Cx,
    /// The request's name.
    name: Option<String>,
) -> Result<Value> {
    let requests = read_requests(cx)?;
    Ok(match name {
        Some(name) => requests.get(name.as_str()).unwrap_or_else(Value::dict),
        None => requests.into(),
    })
}

/// Forget the remembered requests, or one of them.
///
/// ```console
/// $ salt web1 state.clear_request
/// ```
#[function]
pub fn clear_request(
    cx: &Cx,
    /// The request's name.
    name: Option<String>,
) -> Result<bool> {
    let requests = read_requests(cx)?;
    match name {
        Some(name) if requests.remove(name.as_str()).is_none() => return Ok(false),
        Some(_) => {}
        None => requests.write().clear(),
    }
    write_requests(cx, &requests)?;
    Ok(true)
}

/// Run a remembered request.
///
/// ```console
/// $ salt web1 state.run_request
/// ```
#[function]
pub fn run_request(
    cx: &Cx,
    /// The request's name.
    #[default("default".to_owned())]
    name: String,
    /// Over the request's own arguments.
    rest: Rest,
) -> Result<Value> {
    let requests = read_requests(cx)?;
    let Some(request) = requests.remove(name.as_str()) else { return Ok(Value::dict()) };
    let kwargs = match request.get("kwargs") {
        Some(Value::Dict(kwargs)) => kwargs,
        _ => Dict::new(),
    };
    kwargs.update(&rest.kwargs);
    let ret = apply(cx, request.get("mods"), Rest { args: Vec::new(), kwargs })?;
    write_requests(cx, &requests)?;
    Ok(ret)
}

/// Return the states that are disabled.
///
/// ```console
/// $ salt web1 state.list_disabled
/// ```
#[function]
pub fn list_disabled(cx: &Cx) -> Result<Value> {
    Ok(cx.grain("state_runs_disabled").unwrap_or_else(|| "".into()))
}

/// Changes the list of disabled states, one state after the other, and says what came of each.
fn switch(
    cx: &Cx,
    states: &Strings,
    word: &str,
    change: impl Fn(&mut Vec<Value>, Value) -> bool,
) -> Result<Value> {
    let mut list = list_disabled(cx)?.items_of_sequence().unwrap_or_default();
    let before = list.clone();
    let messages = states.0.iter().map(|state| {
        let already = if change(&mut list, state.into()) { "" } else { "already " };
        format!("Info: {state} state {already}{word}.")
    });
    let messages: Vec<String> = messages.collect();
    if list == before {
        return Ok(dict! { "res" => true, "msg" => messages.join("\n") });
    }
    let list = Value::from(list);
    cx.call("grains.setval", Call::of([Value::from("state_runs_disabled"), list.clone()]))?;
    cx.grains.insert("state_runs_disabled", list);
    Ok(dict! { "res" => true, "msg" => messages.join("\n") })
}

/// Disable states, by name or glob (`pkg.*`).
///
/// ```console
/// $ salt web1 state.disable web.nginx
/// ```
#[function]
pub fn disable(
    cx: &Cx,
    /// The states.
    states: Strings,
) -> Result<Value> {
    switch(cx, &states, "disabled", |list, state| {
        let enabled = !list.contains(&state);
        if enabled {
            list.push(state);
        }
        enabled
    })
}

/// Enable states that were disabled.
///
/// ```console
/// $ salt web1 state.enable web.nginx
/// ```
#[function]
pub fn enable(
    cx: &Cx,
    /// The states.
    states: Strings,
) -> Result<Value> {
    switch(cx, &states, "enabled", |list, state| {
        let before = list.len();
        list.retain(|disabled| *disabled != state);
        list.len() < before
    })
}

fn pause_path(cx: &Cx, jid: &str) -> PathBuf {
    cache_path(cx, "state_pause").join(jid.replace('/', "_"))
}

/// Where a run pauses.
#[derive(Args)]
pub struct Place {
    /// The run's job id.
    jid: String,
    /// The state's id.
    state_id: Option<String>,
}

impl Place {
    /// Changes what is kept of the run's pauses, given the state's id.
    fn change(self, cx: &Cx, change: impl FnOnce(&Dict, String)) -> Result<()> {
        let path = pause_path(cx, &self.jid);
        let pauses = read_dict(cx, &path)?;
        change(&pauses, self.state_id.unwrap_or_else(|| EVERY_STATE.to_owned()));
        if let Some(folder) = path.parent() {
            cx.host.create_dirs(folder, Some(0o700))?;
        }
        write_dict(cx, &path, &pauses, None)
    }
}

const EVERY_STATE: &str = "__all__";

/// Pause a running state run, at once or before one of its states.
///
/// ```console
/// $ salt web1 state.pause 20300101120000000000
/// ```
#[function]
pub fn pause(
    cx: &Cx,
    #[group] place: Place,
    /// Seconds; without it, until `state.resume`.
    duration: Option<i64>,
) -> Result<()> {
    place.change(cx, |pauses, id| {
        let pause = Dict::new();
        pause.insert("duration", duration);
        pauses.insert(id, pause);
    })
}

/// Go on with a paused state run.
///
/// ```console
/// $ salt web1 state.resume 20300101120000000000
/// ```
#[function]
pub fn resume(cx: &Cx, #[group] place: Place) -> Result<()> {
    place.change(cx, |pauses, id| {
        if id == EVERY_STATE {
            pauses.write().clear();
        } else {
            pauses.remove(id.as_str());
        }
    })
}

/// End a state run before its next state, or before the state named.
///
/// ```console
/// $ salt web1 state.soft_kill 20300101120000000000
/// ```
#[function]
pub fn soft_kill(cx: &Cx, #[group] place: Place) -> Result<()> {
    place.change(cx, |pauses, id| {
        pauses.insert(id, dict! { "kill" => true });
    })
}

/// Return which runs are paused, and where.
///
/// ```console
/// $ salt '*' state.get_pauses
/// ```
#[function]
pub fn get_pauses(
    cx: &Cx,
    /// Only of this job.
    jid: Option<String>,
) -> Result<Dict> {
    let folder = cache_path(cx, "state_pause");
    let names = match jid {
        Some(jid) => vec![jid.into()],
        None => cx.host.read_dir(&folder).unwrap_or_default(),
    };
    let pauses = Dict::new();
    for name in names {
        if let Ok(bytes) = cx.host.read(&folder.join(&name))
            && let Ok(value) = msgpack::from_slice(&bytes, Text::Typed)
        {
            pauses.insert(name.to_string_lossy().into_owned(), value);
        }
    }
    Ok(pauses)
}

/// Forget compiled states, so that the next run compiles them anew.
///
/// ```console
/// $ salt web1 state.clear_cache
/// ```
#[function]
pub fn clear_cache(cx: &Cx) -> Result<Vec<String>> {
    let folder = cache_path(cx, "");
    let mut removed = Vec::new();
    for name in cx.host.read_dir(&folder).unwrap_or_default() {
        let name = name.to_string_lossy().into_owned();
        if name.ends_with(".cache.p") {
            cx.host.remove_file(&folder.join(&name))?;
            removed.push(name);
        }
    }
    Ok(removed)
}
