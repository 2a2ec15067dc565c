//! `state`: apply states, and show what would be applied.
//!
//! The functions read their arguments and hand a [`StateRequest`] to the state engine behind the
//! context; what is compiled and run, and how, is decided there. One state run at a time: a second
//! one is refused with the first one's description, or waits (`queue=True`).

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use halite_spec::{
    Call, Cx, Error, Rest, Result, StateRequest, Strings, What, function, host, module,
};
use halite_value::{
    Dict, List, Value, dict, msgpack,
    msgpack::{Dialect, Text},
};

module! {
    /// Apply states, and show what would be applied.
    "state": apply, sls, highstate, sls_id, single, high, low, template, template_str, test, top,
    show_sls, show_low_sls, show_highstate, show_lowstate, show_top, show_states, show_state_usage,
    sls_exists, id_exists, graph, graph_highstate, running, request_, check_request, clear_request,
    run_request, list_disabled, disable, enable, pause, resume, soft_kill, get_pauses, clear_cache,
    pkg,
}

/// The run failed before any state ran.
const COMPILE_ERROR: i64 = 1;
const PILLAR_ERROR: i64 = 5;

/// Reads what the functions of this module have in common out of their further arguments.
fn request(what: What, test: Option<bool>, rest: &Dict) -> Result<StateRequest> {
    let text = |name: &str| rest.get(name).filter(Value::truthy).map(|value| value.to_string());
    let pillar = match rest.get("pillar") {
        Some(Value::Dict(pillar)) => Some(pillar),
        None | Some(Value::Null) => None,
        Some(_) => {
            return Err(Error::invalid(
                "Pillar data must be formatted as a dictionary, unless pillar_enc is specified.",
            ));
        }
    };
    let extra = Dict::new();
    for name in
        ["force", "mock", "whitelist", "orchestration_jid", "cache", "localconfig", "state_events"]
    {
        if let Some(value) = rest.get(name) {
            extra.insert(name, value);
        }
    }
    let flag = |name: &str| rest.get(name).is_some_and(|value| value.truthy());
    Ok(StateRequest {
        test,
        saltenv: text("saltenv").or_else(|| text("env")),
        pillarenv: text("pillarenv"),
        pillar,
        exclude: rest.get("exclude").unwrap_or_default(),
        concurrent: flag("concurrent"),
        failhard: rest.get("failhard").map(|hard| hard.truthy()),
        extra,
        ..StateRequest::new(what)
    })
}

/// Puts `state_events`, which three functions declare, where the others have it.
fn with_events(rest: Rest, state_events: Option<bool>) -> Rest {
    if let Some(wanted) = state_events {
        rest.kwargs.insert("state_events", wanted);
    }
    rest
}

/// Takes `mods` in the forms users give it: a list, or one text with commas.
fn names(mods: &Value) -> Vec<String> {
    match mods {
        Value::Str(text) => text
            .split(',')
            .map(|name| name.trim().to_owned())
            .filter(|name| !name.is_empty())
            .collect(),
        Value::Null => Vec::new(),
        other => match other.items_of_sequence() {
            Some(items) => items.iter().map(Value::to_string).collect(),
            None => vec![other.to_string()],
        },
    }
}

/// Waits for other state runs, or reports them; `Some` ends the call.
fn conflict(cx: &Cx, queue: Option<bool>, request: &StateRequest) -> Result<Option<Value>> {
    if request.concurrent {
        return Ok(None);
    }
    let queue = queue.unwrap_or_else(|| cx.opt_bool("state_queue"));
    loop {
        let others = running_texts(cx, queue);
        if others.is_empty() {
            return Ok(None);
        }
        if !queue {
            cx.job.set_retcode(COMPILE_ERROR);
            return Ok(Some(Value::list(others)));
        }
        cx.sleep(Duration::from_millis(200))?;
    }
}

/// Describes the state runs of others; with `earlier`, of those only that came before this one: of
/// two that wait for each other neither would ever begin.
fn running_texts(cx: &Cx, earlier: bool) -> Vec<String> {
    let is_other_state = |job: &Value| {
        let jid = job.get("jid").unwrap_or_default().to_str();
        let counts = if earlier { jid < cx.job.jid } else { jid != cx.job.jid };
        counts && job.get_str("fun").is_some_and(|fun| fun.starts_with("state."))
    };
    let describe = |job: Value| {
        let text = |key: &str| job.get(key).unwrap_or_default().to_str();
        format!(
            "The function \"{}\" is running as PID {} and was started at {} with jid {}",
            text("fun"),
            text("pid"),
            start_of(&text("jid")),
            text("jid")
        )
    };
    cx.runtime.running().into_iter().filter(is_other_state).map(describe).collect()
}

/// The time in a job id, as Salt shows it: `2026, Nov 15 22:40:46.354303`.
fn start_of(jid: &str) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let part = |from: usize, to: usize| jid.get(from..to).unwrap_or("");
    let month =
        part(4, 6).parse::<usize>().ok().and_then(|month| MONTHS.get(month.wrapping_sub(1)));
    match month {
        Some(month) if jid.len() >= 20 => format!(
            "{}, {month} {} {}:{}:{}.{}",
            part(0, 4),
            part(6, 8),
            part(8, 10),
            part(10, 12),
            part(12, 14),
            part(14, 20)
        ),
        _ => String::new(),
    }
}

/// Runs a request. The engine sets the return code of a run; here only what kept it from running.
fn run(cx: &Cx, queue: Option<bool>, request: &StateRequest) -> Result<Value> {
    if let Some(others) = conflict(cx, queue, request)? {
        return Ok(others);
    }
    if matches!(request.what, What::Highstate) {
        crate::saltutil::before_highstate(cx)?;
    }
    let ret = cx.runtime.states().apply(cx, request)?;
    if let Value::List(errors) = &ret {
        cx.job.set_retcode(error_code(errors));
    }
    Ok(ret)
}

fn show(cx: &Cx, queue: Option<bool>, request: &StateRequest) -> Result<Value> {
    if let Some(others) = conflict(cx, queue, request)? {
        return Ok(others);
    }
    cx.runtime.states().show(cx, request)
}

fn error_code(errors: &List) -> i64 {
    let first = errors.get(0).unwrap_or_default();
    if first.to_str().starts_with("Pillar failed to render") { PILLAR_ERROR } else { COMPILE_ERROR }
}

/// Apply the states named, or those the top file gives this minion.
///
/// ```console
/// $ salt '*' state.apply
/// $ salt '*' state.apply web,db test=True
/// $ salt '*' state.apply web pillar='{"foo": "bar"}'
/// ```
#[function]
pub fn apply(
    cx: &Cx,
    /// SLS names, as a list or one text with commas; none: the highstate.
    mods: Option<Value>,
    /// As for `state.sls` and `state.highstate`.
    rest: Rest,
) -> Result<Value> {
    let test = test_flag(&rest)?;
    let queue = queue_flag(&rest);
    let what = match mods.as_ref().map(names) {
        Some(mods) if !mods.is_empty() => What::Sls(mods),
        _ => What::Highstate,
    };
    run(cx, queue, &request(what, test, &rest.kwargs)?)
}

fn test_flag(rest: &Rest) -> Result<Option<bool>> {
    Ok(match rest.kwargs.get("test") {
        None | Some(Value::Null) => None,
        Some(Value::Str(word)) => match word.to_lowercase().as_str() {
            "true" | "yes" | "on" => Some(true),
            "false" | "no" | "off" => Some(false),
            _ => return Err(Error::invalid(format!("test must be True or False, not '{word}'"))),
        },
        Some(other) => Some(other.truthy()),
    })
}

fn queue_flag(rest: &Rest) -> Option<bool> {
    rest.kwargs.get("queue").filter(|queue| !queue.is_null()).map(|queue| queue.truthy())
}

/// Apply the states of one or more SLS files.
///
/// ```console
/// $ salt '*' state.sls core,edit.vim dev
/// $ salt '*' state.sls web exclude='[{"id": "nginx"}]'
/// ```
#[function]
pub fn sls(
    cx: &Cx,
    /// SLS names, as a list or one text with commas.
    mods: Value,
    /// Only show what would change.
    test: Option<bool>,
    /// SLS names or `{"id": …}` to leave out.
    exclude: Option<Value>,
    /// Wait while another state run is in progress.
    queue: Option<bool>,
    /// Module types to bring over before the run.
    sync_mods: Option<Value>,
    /// Tell the master of each state.
    state_events: Option<bool>,
    /// `saltenv`, `pillarenv`, `pillar`, `concurrent`, `localconfig`, `failhard` …
    rest: Rest,
) -> Result<Value> {
    let mods = names(&mods);
    if let Some(exclude) = exclude {
        rest.kwargs.insert("exclude", exclude);
    }
    let rest = with_events(rest, state_events);
    for kind in names(&sync_mods.unwrap_or_default()) {
        cx.call(&format!("saltutil.sync_{kind}"), Call::default())?;
    }
    run(cx, queue, &request(What::Sls(mods), test, &rest.kwargs)?)
}

/// Apply the states the top file gives this minion.
///
/// ```console
/// $ salt '*' state.highstate
/// $ salt '*' state.highstate whitelist=sls1_to_run,sls2_to_run
/// ```
#[function]
pub fn highstate(
    cx: &Cx,
    /// Only show what would change.
    test: Option<bool>,
    /// Wait while another state run is in progress.
    queue: Option<bool>,
    /// Tell the master of each state.
    state_events: Option<bool>,
    /// `saltenv`, `pillarenv`, `pillar`, `exclude`, `whitelist` …
    rest: Rest,
) -> Result<Value> {
    let rest = with_events(rest, state_events);
    if cx.opt("disable_saltenv_mapping").is_some_and(|off| off.truthy()) {
        tracing::debug!("disable_saltenv_mapping is set");
    }
    run(cx, queue, &request(What::Highstate, test, &rest.kwargs)?)
}

/// Apply one id, or several, out of SLS files, with what they require.
///
/// ```console
/// $ salt '*' state.sls_id my_state my_module
/// ```
#[function]
pub fn sls_id(
    cx: &Cx,
    /// The id, or ids with commas.
    #[arg(name = "id_", alias = "id")]
    id: Value,
    /// The SLS it stands in.
    mods: Value,
    /// Only show what would change.
    test: Option<bool>,
    /// Wait while another state run is in progress.
    queue: Option<bool>,
    /// Tell the master of each state.
    state_events: Option<bool>,
    /// As for `state.sls`.
    rest: Rest,
) -> Result<Value> {
    let rest = with_events(rest, state_events);
    let what = What::SlsId { ids: names(&id), mods: names(&mods) };
    let ret = run(cx, queue, &request(what, test, &rest.kwargs)?)?;
    match ret.as_list().and_then(|errors| errors.get(0)) {
        Some(error) if error.to_str().starts_with("No matches for ID") => {
            Err(Error::invalid(error.to_string()))
        }
        _ => Ok(ret),
    }
}

/// Apply a single state given on the command line.
///
/// ```console
/// $ salt '*' state.single pkg.installed name=vim
/// ```
#[function]
pub fn single(
    cx: &Cx,
    /// The state: `pkg.installed`.
    fun: String,
    /// Its name.
    name: Value,
    /// Only show what would change.
    test: Option<bool>,
    /// Wait while another state run is in progress.
    queue: Option<bool>,
    /// The state's own arguments.
    rest: Rest,
) -> Result<Value> {
    let Some((state, function)) = fun.split_once('.') else {
        cx.job.set_retcode(COMPILE_ERROR);
        return Ok("Invalid function passed".into());
    };
    if !is_state(cx, &fun) {
        cx.job.set_retcode(COMPILE_ERROR);
        return Ok(Value::list([format!("Specified state '{fun}' was not found")]));
    }
    let low = rest.kwargs.shallow_copy();
    for own in ["pillar", "pillarenv", "concurrent", "localconfig", "state_events"] {
        low.remove(own);
    }
    low.insert("state", state);
    low.insert("fun", function);
    low.insert("__id__", &name);
    low.insert("name", name);
    let what = What::Low(Value::list([Value::Dict(low)]));
    run(cx, queue, &request(what, test, &rest.kwargs)?)
}

/// Tells whether anybody has a state of that name: the binary, the user, or an installed package.
fn is_state(cx: &Cx, name: &str) -> bool {
    cx.runtime.state(cx, name).is_some()
        || cx.runtime.state_names(cx).iter().any(|known| known == name)
        || !cx.runtime.described("states", &[name.to_owned()]).is_empty()
}

/// Apply high data given as a dict.
///
/// ```console
/// $ salt '*' state.high '{"vim": {"pkg": ["installed"]}}'
/// ```
#[function]
pub fn high(
    cx: &Cx,
    /// The high data.
    data: Value,
    /// Only show what would change.
    test: Option<bool>,
    /// Wait while another state run is in progress.
    queue: Option<bool>,
    /// As for `state.sls`.
    rest: Rest,
) -> Result<Value> {
    run(cx, queue, &request(What::High(data), test, &rest.kwargs)?)
}

/// Apply one low chunk.
///
/// ```console
/// $ salt '*' state.low '{"state": "pkg", "fun": "installed", "name": "vi"}'
/// ```
#[function]
pub fn low(
    cx: &Cx,
    /// The chunk.
    data: Value,
    /// Wait while another state run is in progress.
    queue: Option<bool>,
    /// `test` and others, as for `state.sls`.
    rest: Rest,
) -> Result<Value> {
    let test = test_flag(&rest)?;
    let ret = run(cx, queue, &request(What::Low(data.clone()), test, &rest.kwargs)?)?;
    // One chunk in, one return out.
    match (&data, &ret) {
        (Value::Dict(_), Value::Dict(returns)) if returns.len() == 1 => {
            Ok(returns.values().pop().unwrap_or_default())
        }
        _ => Ok(ret),
    }
}

/// Apply the states of a template file on this machine.
///
/// ```console
/// $ salt '*' state.template '/tmp/test.sls'
/// ```
#[function]
pub fn template(
    cx: &Cx,
    /// The file.
    tem: String,
    /// Wait while another state run is in progress.
    queue: Option<bool>,
    /// As for `state.sls`.
    rest: Rest,
) -> Result<Value> {
    let path = if tem.starts_with('/') { tem } else { format!("{}.sls", tem.replace('.', "/")) };
    let path = if path.starts_with('/') {
        PathBuf::from(path)
    } else {
        let url = format!("salt://{path}");
        let cached = cx.files.cache(&url, &cx.saltenv())?;
        cached.ok_or_else(|| Error::failed(format!("the template {url} does not exist")))?
    };
    let text = cx.host.read_text(&path)?;
    let test = test_flag(&rest)?;
    run(cx, queue, &request(What::TemplateText(text), test, &rest.kwargs)?)
}

/// Apply the states of a template given as text.
///
/// ```console
/// $ salt '*' state.template_str '<template text>'
/// ```
#[function]
pub fn template_str(
    cx: &Cx,
    /// The text.
    tem: String,
    /// Wait while another state run is in progress.
    queue: Option<bool>,
    /// As for `state.sls`.
    rest: Rest,
) -> Result<Value> {
    let test = test_flag(&rest)?;
    run(cx, queue, &request(What::TemplateText(tem), test, &rest.kwargs)?)
}

/// Show what `state.apply` would change.
///
/// ```console
/// $ salt '*' state.test web
/// ```
#[function]
pub fn test(
    cx: &Cx,
    /// As for `state.apply`.
    rest: Rest,
) -> Result<Value> {
    let mods = rest.args.first().cloned().or_else(|| rest.kwargs.remove("mods"));
    rest.kwargs.insert("test", true);
    let rest = Rest { args: Vec::new(), kwargs: rest.kwargs };
    apply(cx, mods, rest)
}

/// Apply the states another top file gives this minion.
///
/// ```console
/// $ salt '*' state.top reverse_top.sls exclude=sls_to_exclude
/// ```
#[function]
pub fn top(
    cx: &Cx,
    /// The top file's name on the file server.
    topfn: String,
    /// Only show what would change.
    test: Option<bool>,
    /// Wait while another state run is in progress.
    queue: Option<bool>,
    /// As for `state.highstate`.
    rest: Rest,
) -> Result<Value> {
    let opts = cx.opts.shallow_copy();
    opts.insert("state_top", format!("salt://{}", topfn.trim_start_matches("salt://")));
    let cx = Cx { opts, ..cx.clone() };
    run(&cx, queue, &request(What::Highstate, test, &rest.kwargs)?)
}

fn shown(what: What, form: &str, test: Option<bool>, rest: &Rest) -> Result<StateRequest> {
    let request = request(what, test, &rest.kwargs)?;
    request.extra.insert("form", form);
    Ok(request)
}

/// Turns the engine's errors into the return code they mean.
fn told(cx: &Cx, ret: Value, is_data: bool) -> Value {
    if let Value::List(errors) = &ret
        && !is_data
    {
        cx.job.set_retcode(error_code(errors));
    }
    ret
}

/// Tells whether a list holds low chunks rather than error texts.
fn is_chunks(ret: &Value) -> bool {
    ret.as_list().is_some_and(|list| list.into_iter().all(|item| item.as_dict().is_some()))
}

/// Show the high data of SLS files.
///
/// ```console
/// $ salt '*' state.show_sls core,edit.vim saltenv=dev
/// ```
#[function]
pub fn show_sls(
    cx: &Cx,
    /// SLS names.
    mods: Value,
    /// Rendered with `test=True`.
    test: Option<bool>,
    /// Wait while a state run is in progress.
    queue: Option<bool>,
    /// As for `state.sls`.
    rest: Rest,
) -> Result<Value> {
    let ret = show(cx, queue, &shown(What::Sls(names(&mods)), "high", test, &rest)?)?;
    Ok(told(cx, ret, false))
}

/// Show the low data of SLS files, in the order of a run.
///
/// ```console
/// $ salt '*' state.show_low_sls foo
/// ```
#[function]
pub fn show_low_sls(
    cx: &Cx,
    /// SLS names.
    mods: Value,
    /// Rendered with `test=True`.
    test: Option<bool>,
    /// Wait while a state run is in progress.
    queue: Option<bool>,
    /// As for `state.sls`.
    rest: Rest,
) -> Result<Value> {
    let ret = show(cx, queue, &shown(What::Sls(names(&mods)), "low", test, &rest)?)?;
    let data = is_chunks(&ret);
    Ok(told(cx, ret, data))
}

/// Show the high data the top file leads to.
///
/// ```console
/// $ salt '*' state.show_highstate
/// ```
#[function]
pub fn show_highstate(
    cx: &Cx,
    /// Wait while a state run is in progress.
    queue: Option<bool>,
    /// As for `state.highstate`.
    rest: Rest,
) -> Result<Value> {
    let test = test_flag(&rest)?;
    let ret = show(cx, queue, &shown(What::Highstate, "high", test, &rest)?)?;
    Ok(told(cx, ret, false))
}

/// Show the low data the top file leads to, in the order of a run.
///
/// ```console
/// $ salt '*' state.show_lowstate
/// ```
#[function]
pub fn show_lowstate(
    cx: &Cx,
    /// Wait while a state run is in progress.
    queue: Option<bool>,
    /// As for `state.highstate`.
    rest: Rest,
) -> Result<Value> {
    let test = test_flag(&rest)?;
    let ret = show(cx, queue, &shown(What::Highstate, "low", test, &rest)?)?;
    let data = is_chunks(&ret);
    Ok(told(cx, ret, data))
}

/// Show which SLS the top file gives this minion, by environment.
///
/// ```console
/// $ salt '*' state.show_top
/// ```
#[function]
pub fn show_top(
    cx: &Cx,
    /// Wait while a state run is in progress.
    queue: Option<bool>,
    /// As for `state.highstate`.
    rest: Rest,
) -> Result<Value> {
    let ret = show(cx, queue, &shown(What::Top, "top", None, &rest)?)?;
    Ok(told(cx, ret, false))
}

/// Show the SLS this minion gets, includes and all.
///
/// ```console
/// $ salt '*' state.show_states
/// ```
#[function]
pub fn show_states(
    cx: &Cx,
    /// Wait while a state run is in progress.
    queue: Option<bool>,
    /// As for `state.highstate`.
    rest: Rest,
) -> Result<Value> {
    show(cx, queue, &shown(What::States, "states", None, &rest)?)
}

/// Show which SLS of the file server this minion uses, and which it does not.
///
/// ```console
/// $ salt '*' state.show_state_usage
/// ```
#[function]
pub fn show_state_usage(
    cx: &Cx,
    /// Wait while a state run is in progress.
    queue: Option<bool>,
    /// As for `state.highstate`.
    rest: Rest,
) -> Result<Value> {
    let top = show(cx, queue, &shown(What::Top, "top", None, &rest)?)?;
    let Value::Dict(top) = top else { return Ok(told(cx, top, false)) };
    let usage = Dict::new();
    for env in cx.files.envs()? {
        let used: Vec<Value> =
            top.get(env.as_str()).and_then(|used| used.items_of_sequence()).unwrap_or_default();
        let all = sls_names(cx, &env)?;
        let unused: Vec<Value> =
            all.iter().map(Value::from).filter(|sls| !used.contains(sls)).collect();
        usage.insert(
            env.as_str(),
            dict! {
                "count_all" => all.len(), "count_unused" => unused.len(),
                "count_used" => used.len(), "unused" => Value::from(unused),
                "used" => Value::from(used),
            },
        );
    }
    Ok(usage.into())
}

fn sls_names(cx: &Cx, env: &str) -> Result<Vec<String>> {
    let paths = cx.files.list(env, "")?;
    let names = paths
        .iter()
        .filter_map(|path| path.strip_suffix(".sls"))
        .map(|path| path.strip_suffix("/init").unwrap_or(path).replace('/', "."));
    Ok(names.collect())
}

/// Tell whether SLS files exist and render.
///
/// ```console
/// $ salt '*' state.sls_exists core,edit.vim saltenv=dev
/// ```
#[function]
pub fn sls_exists(
    cx: &Cx,
    /// SLS names.
    mods: Value,
    /// Rendered with `test=True`.
    test: Option<bool>,
    /// Wait while a state run is in progress.
    queue: Option<bool>,
    /// As for `state.sls`.
    rest: Rest,
) -> Result<bool> {
    let ret = show(cx, queue, &shown(What::Sls(names(&mods)), "high", test, &rest)?)?;
    let exists = ret.as_dict().is_some();
    if !exists {
        cx.job.set_retcode(1);
    }
    Ok(exists)
}

/// Tell whether ids exist in SLS files.
///
/// ```console
/// $ salt '*' state.id_exists create_myfile,update_template filestate saltenv=dev
/// ```
#[function]
pub fn id_exists(
    cx: &Cx,
    /// The ids.
    ids: Value,
    /// SLS names.
    mods: Value,
    /// Rendered with `test=True`.
    test: Option<bool>,
    /// Wait while a state run is in progress.
    queue: Option<bool>,
    /// As for `state.sls`.
    rest: Rest,
) -> Result<bool> {
    let ret = show(cx, queue, &shown(What::Sls(names(&mods)), "low", test, &rest)?)?;
    let chunks = ret.items_of_sequence().unwrap_or_default();
    let has =
        |id: &String| chunks.iter().any(|chunk| chunk.get_str("__id__").as_deref() == Some(id));
    Ok(names(&ids).iter().all(has))
}

/// Draw the requisite graph of SLS files, in Graphviz' language.
///
/// ```console
/// $ salt '*' state.graph my_sls --out=txt
/// ```
#[function]
pub fn graph(
    cx: &Cx,
    /// SLS names.
    mods: Value,
    /// Rendered with `test=True`.
    test: Option<bool>,
    /// Wait while a state run is in progress.
    queue: Option<bool>,
    /// As for `state.sls`.
    rest: Rest,
) -> Result<Value> {
    let ret = show(cx, queue, &shown(What::Sls(names(&mods)), "dot", test, &rest)?)?;
    Ok(told(cx, ret, false))
}

/// Draw the requisite graph of the highstate, in Graphviz' language.
///
/// ```console
/// $ salt '*' state.graph_highstate --out=txt
/// ```
#[function]
pub fn graph_highstate(
    cx: &Cx,
    /// Wait while a state run is in progress.
    queue: Option<bool>,
    /// As for `state.highstate`.
    rest: Rest,
) -> Result<Value> {
    let ret = show(cx, queue, &shown(What::Highstate, "dot", None, &rest)?)?;
    Ok(told(cx, ret, false))
}

/// Tell which other state runs are in progress.
///
/// ```console
/// $ salt '*' state.running
/// ```
#[function]
pub fn running(
    cx: &Cx,
    /// Runs side by side are wanted: return nothing.
    #[default(false)]
    concurrent: bool,
) -> Result<Vec<String>> {
    Ok(if concurrent { Vec::new() } else { running_texts(cx, false) })
}

fn cache_path(cx: &Cx, name: &str) -> PathBuf {
    Path::new(cx.opt_str("cachedir").unwrap_or_default().as_str()).join(name)
}

fn read_requests(cx: &Cx) -> Result<Dict> {
    let path = cache_path(cx, "req_state.p");
    match cx.host.read(&path) {
        Ok(bytes) => match msgpack::from_slice(&bytes, Text::Typed) {
            Ok(Value::Dict(requests)) => Ok(requests),
            _ => Ok(Dict::new()),
        },
        Err(error) if error.is_missing() => Ok(Dict::new()),
        Err(error) => Err(error.into()),
    }
}

fn write_requests(cx: &Cx, requests: &Dict) -> Result<()> {
    let bytes = msgpack::to_vec(&requests.into(), Dialect::Modern)
        .map_err(|error| Error::failed(error.to_string()))?;
    let how = host::Write { mode: Some(0o600), ..host::Write::default() };
    Ok(cx.host.write(&cache_path(cx, "req_state.p"), &bytes, &how)?)
}

/// Show what states would do, and remember the request for `state.run_request`.
///
/// ```console
/// $ salt '*' state.request stuff
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
/// $ salt '*' state.check_request
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
/// $ salt '*' state.clear_request
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
/// $ salt '*' state.run_request
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
/// $ salt '*' state.list_disabled
/// ```
#[function]
pub fn list_disabled(cx: &Cx) -> Result<Value> {
    Ok(cx.grain("state_runs_disabled").unwrap_or_else(|| Value::list(Vec::<Value>::new())))
}

fn set_disabled(cx: &Cx, list: &[Value]) -> Result<()> {
    let call = Call::of([Value::from("state_runs_disabled"), Value::from(list.to_vec())]);
    cx.call("grains.setval", call)?;
    cx.grains.insert("state_runs_disabled", list.to_vec());
    Ok(())
}

/// Disable states, by name or glob (`pkg.*`).
///
/// ```console
/// $ salt '*' state.disable highstate
/// $ salt '*' state.disable highstate,test.succeed_without_changes
/// ```
#[function]
pub fn disable(
    cx: &Cx,
    /// The states.
    states: Strings,
) -> Result<Value> {
    let mut list = list_disabled(cx)?.items_of_sequence().unwrap_or_default();
    let mut messages = Vec::new();
    for state in &states.0 {
        let value = Value::from(state);
        if list.contains(&value) {
            messages.push(format!("Info: {state} state already disabled."));
        } else {
            messages.push(format!("Info: {state} state disabled."));
            list.push(value);
        }
    }
    set_disabled(cx, &list)?;
    Ok(dict! { "res" => true, "msg" => messages.join("\n") })
}

/// Enable states that were disabled.
///
/// ```console
/// $ salt '*' state.enable highstate
/// ```
#[function]
pub fn enable(
    cx: &Cx,
    /// The states.
    states: Strings,
) -> Result<Value> {
    let mut list = list_disabled(cx)?.items_of_sequence().unwrap_or_default();
    let mut messages = Vec::new();
    for state in &states.0 {
        let before = list.len();
        list.retain(|disabled| *disabled != *state.as_str());
        messages.push(if list.len() < before {
            format!("Info: {state} state enabled.")
        } else {
            format!("Info: {state} state already enabled.")
        });
    }
    set_disabled(cx, &list)?;
    Ok(dict! { "res" => true, "msg" => messages.join("\n") })
}

fn pause_path(cx: &Cx, jid: &str) -> PathBuf {
    cache_path(cx, "state_pause").join(jid.replace('/', "_"))
}

fn change_pauses(cx: &Cx, jid: &str, change: impl FnOnce(&Dict)) -> Result<()> {
    let path = pause_path(cx, jid);
    let pauses = match cx.host.read(&path) {
        Ok(bytes) => match msgpack::from_slice(&bytes, Text::Typed) {
            Ok(Value::Dict(pauses)) => pauses,
            _ => Dict::new(),
        },
        Err(_) => Dict::new(),
    };
    change(&pauses);
    if let Some(folder) = path.parent() {
        cx.host.create_dirs(folder, Some(0o700))?;
    }
    let bytes = msgpack::to_vec(&pauses.into(), Dialect::Modern)
        .map_err(|error| Error::failed(error.to_string()))?;
    Ok(cx.host.write(&path, &bytes, &host::Write::default())?)
}

const EVERY_STATE: &str = "__all__";

/// Pause a running state run, at once or before one of its states.
///
/// ```console
/// $ salt '*' state.pause 20171130110407769519
/// $ salt '*' state.pause 20171130110407769519 vim
/// ```
#[function]
pub fn pause(
    cx: &Cx,
    /// The run's job id.
    jid: String,
    /// The state's id.
    state_id: Option<String>,
    /// Seconds; without it, until `state.resume`.
    duration: Option<i64>,
) -> Result<()> {
    let id = state_id.unwrap_or_else(|| EVERY_STATE.to_owned());
    change_pauses(cx, &jid, |pauses| {
        let pause = Dict::new();
        pause.insert("duration", duration);
        pauses.insert(id, pause);
    })
}

/// Go on with a paused state run.
///
/// ```console
/// $ salt '*' state.resume 20171130110407769519
/// ```
#[function]
pub fn resume(
    cx: &Cx,
    /// The run's job id.
    jid: String,
    /// The state's id.
    state_id: Option<String>,
) -> Result<()> {
    let id = state_id.unwrap_or_else(|| EVERY_STATE.to_owned());
    change_pauses(cx, &jid, |pauses| {
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
/// $ salt '*' state.soft_kill 20171130110407769519
/// ```
#[function]
pub fn soft_kill(
    cx: &Cx,
    /// The run's job id.
    jid: String,
    /// The state's id.
    state_id: Option<String>,
) -> Result<()> {
    let id = state_id.unwrap_or_else(|| EVERY_STATE.to_owned());
    change_pauses(cx, &jid, |pauses| {
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
/// $ salt '*' state.clear_cache
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

/// Run a packed state tree, as salt-ssh sends it.
///
/// ```console
/// $ salt '*' state.pkg /tmp/salt_state.tgz 760a9353810e36f6d81416366fc426dc md5
/// ```
#[function]
pub fn pkg(
    _cx: &Cx,
    /// The archive.
    pkg_path: String,
    /// Its hash.
    pkg_sum: String,
    /// The hash's kind.
    hash_type: String,
    /// Only show what would change.
    test: Option<bool>,
    /// As for `state.sls`.
    rest: Rest,
) -> Result<Value> {
    let _ = (pkg_path, pkg_sum, hash_type, test, rest);
    Err(Error::Unavailable {
        function: "state.pkg".into(),
        reason: "packed state trees are not supported yet".into(),
    })
}
