//! `state`: apply states, and show what would be applied.
//!
//! The functions read their arguments and hand a [`StateRequest`] to the state engine behind the
//! context; what is compiled and run, and how, is decided there. One state run at a time: a second
//! one is refused with the first one's description, or waits (`queue=True`).

use std::{path::PathBuf, time::Duration};

use halite_spec::{Args, Call, Cx, Error, Rest, Result, StateRequest, What, function, module};
use halite_value::{Dict, List, Value, dict, entries, suggest};

use crate::pillar;

mod kept;
mod packed;
mod queued;
mod show;

pub use self::{
    kept::{
        check_request, clear_cache, clear_request, disable, enable, get_pauses, list_disabled,
        pause, request_, resume, run_request, soft_kill,
    },
    packed::pkg,
    queued::{Queued, clear_queues, queue_folder},
    show::{
        graph, graph_highstate, id_exists, show_highstate, show_low_sls, show_lowstate, show_sls,
        show_state_usage, show_states, show_top, sls_exists,
    },
};

module! {
    /// Apply states, and show what would be applied.
    "state": apply, sls, highstate, sls_id, single, high, low, template, template_str, test, top,
    show_sls, show_low_sls, show_highstate, show_lowstate, show_top, show_states, show_state_usage,
    sls_exists, id_exists, graph, graph_highstate, running, request_, check_request, clear_request,
    run_request, list_disabled, disable, enable, pause, resume, soft_kill, get_pauses, clear_cache,
    pkg, orchestrate,
}

/// The run failed before any state ran.
const COMPILE_ERROR: i64 = 1;
const PILLAR_ERROR: i64 = 5;

/// Decrypts the pillar that comes with a run. What cannot be decrypted is taken as it is, as in Salt.
fn deciphered(cx: &Cx, pillar: Value, renderer: &str) -> Option<Dict> {
    let pillar = pillar::decrypted(cx, &pillar, renderer).unwrap_or_else(|error| {
        tracing::error!("{error}");
        pillar
    });
    let Value::Dict(pillar) = pillar else {
        tracing::error!("Pillar override was not passed as a dictionary");
        return None;
    };
    Some(pillar)
}

/// Reads what the functions of this module have in common out of their further arguments.
fn request(cx: &Cx, what: What, test: Option<bool>, rest: &Dict) -> Result<StateRequest> {
    let text = |name: &str| rest.get(name).filter(Value::truthy).map(|value| value.to_string());
    let pillar = match (rest.get("pillar"), text("pillar_enc")) {
        (None | Some(Value::Null), _) => None,
        (Some(pillar), Some(renderer)) => deciphered(cx, pillar, &renderer),
        (Some(Value::Dict(pillar)), None) => Some(pillar),
        (Some(_), None) => {
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

/// How to run or to show states.
#[derive(Args)]
pub struct How {
    /// Only say what would change; of what is shown: rendered with `test=True`.
    pub test: Option<bool>,
    /// Wait while a state run is in progress.
    pub queue: Option<bool>,
    /// As for `state.sls`.
    pub rest: Rest,
}

/// The same of functions that take `test` among the further arguments only.
#[derive(Args)]
pub struct Later {
    /// Wait while a state run is in progress.
    pub queue: Option<bool>,
    /// As for `state.sls`.
    pub rest: Rest,
}

impl Later {
    fn tested(self) -> Result<How> {
        Ok(How { test: test_flag(&self.rest)?, ..self.untested() })
    }

    /// For what is shown without regard to it.
    fn untested(self) -> How {
        How { test: None, queue: self.queue, rest: self.rest }
    }
}

impl How {
    fn run(&self, cx: &Cx, what: What) -> Result<Value> {
        run(cx, self.queue, &request(cx, what, self.test, &self.rest.kwargs)?)
    }

    /// Compiles, and returns it in a form: `high`, `low`, `top`, `states` or `dot`.
    fn show(&self, cx: &Cx, what: What, form: &str) -> Result<Value> {
        let request = request(cx, what, self.test, &self.rest.kwargs)?;
        request.extra.insert("form", form);
        if let Some(others) = conflict(cx, self.queue, &request)? {
            return Ok(others);
        }
        cx.runtime.states().show(cx, &request)
    }
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
    let mut shown = None;
    loop {
        let others = state_runs(cx.runtime.ahead(&cx.job.jid, queue));
        if others.is_empty() {
            return Ok(None);
        }
        if !queue {
            cx.job.set_retcode(COMPILE_ERROR);
            return Ok(Some(Value::list(others)));
        }
        shown = shown.or_else(|| show_waiting(cx));
        cx.sleep(Duration::from_millis(200))?;
    }
}

/// Lets the disk tell that this run waits.
fn show_waiting(cx: &Cx) -> Option<Queued> {
    let cachedir = PathBuf::from(cx.opt_str("cachedir")?.as_str());
    let is_own = |job: &Value| job.get_str("jid").is_some_and(|jid| jid == cx.job.jid);
    let load = cx.runtime.running().into_iter().find(is_own)?;
    let folder = queue_folder(&cachedir, cx.opt("master").as_ref(), "state_queue");
    Some(Queued::new(&cx.host, &folder, &cx.job.jid, &load))
}

/// Describes the state runs among jobs.
fn state_runs(jobs: Vec<Value>) -> Vec<String> {
    let is_state = |job: &Value| job.get_str("fun").is_some_and(|fun| fun.starts_with("state."));
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
    jobs.into_iter().filter(is_state).map(describe).collect()
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

fn error_code(errors: &List) -> i64 {
    let first = errors.get(0).unwrap_or_default();
    if first.to_str().starts_with("Pillar failed to render") { PILLAR_ERROR } else { COMPILE_ERROR }
}

/// Apply the states named, or those the top file gives this minion.
///
/// ```console
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
    warn_of_slips(&rest);
    let test = test_flag(&rest)?;
    let queue = queue_flag(&rest);
    let what = match mods.as_ref().map(names) {
        Some(mods) if !mods.is_empty() => What::Sls(mods),
        _ => What::Highstate,
    };
    let ret = run(cx, queue, &request(cx, what, test, &rest.kwargs)?)?;
    Ok(terse(ret, &rest))
}

/// With `terse`, only the returns of states that changed something or failed.
fn terse(ret: Value, rest: &Rest) -> Value {
    let Value::Dict(returns) = &ret else { return ret };
    if !rest.kwargs.get("terse").is_some_and(|terse| terse.truthy()) {
        return ret;
    }
    let part = |ret: &Value, key: &str| ret.get(key).unwrap_or_default();
    let is_told =
        |ret: &Value| part(ret, "changes").truthy() || part(ret, "result") != Value::Bool(true);
    returns.into_iter().filter(|(_, ret)| is_told(ret)).collect::<Dict>().into()
}

/// What a run of SLS files may be told besides the arguments of its function.
const OPTIONS: [&str; 14] = [
    "test",
    "queue",
    "saltenv",
    "pillarenv",
    "pillar",
    "pillar_enc",
    "exclude",
    "concurrent",
    "failhard",
    "localconfig",
    "whitelist",
    "terse",
    "sync_mods",
    "state_events",
];

/// Warns of an option that is misspelt: Salt takes any, and `tset=True` changes the machine.
fn warn_of_slips(rest: &Rest) {
    for word in rest.kwargs.keys() {
        let word = word.to_str();
        if OPTIONS.contains(&word.as_str()) {
            continue;
        }
        if let Some(near) = OPTIONS.iter().find(|near| suggest::is_one_slip(&word, near)) {
            tracing::warn!("`{word}` is no option of a state run; did you mean `{near}`?");
        }
    }
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
    warn_of_slips(&rest);
    let mods = names(&mods);
    if let Some(exclude) = exclude {
        rest.kwargs.insert("exclude", exclude);
    }
    let rest = with_events(rest, state_events);
    for kind in names(&sync_mods.unwrap_or_default()) {
        let sync = format!("saltutil.sync_{kind}");
        if cx.runtime.has(cx, &sync) {
            cx.call(&sync, Call::default())?;
        } else {
            tracing::warn!("Invalid custom module type '{kind}', ignoring");
        }
    }
    let ret = run(cx, queue, &request(cx, What::Sls(mods), test, &rest.kwargs)?)?;
    Ok(terse(ret, &rest))
}

/// Run an orchestration on a minion without a master: `salt.state` applies its states here.
///
/// ```console
/// $ salt-call --local state.orchestrate orch.deploy test=True
/// ```
#[function]
pub fn orchestrate(
    cx: &Cx,
    /// SLS names, as a list or one text with commas.
    mods: Value,
    /// The environment of the files.
    #[default("base".to_owned())]
    saltenv: String,
    /// Only show what would change.
    test: Option<bool>,
    /// SLS names or `{"id": …}` to leave out.
    exclude: Option<Value>,
    /// Pillar for this run.
    pillar: Option<Value>,
    /// The environment of the pillar.
    pillarenv: Option<String>,
) -> Result<Value> {
    let options = entries! {
        "saltenv" => saltenv, "exclude" => exclude, "pillar" => pillar, "pillarenv" => pillarenv,
    };
    let options: Dict = options.into_iter().filter(|(_, value)| !value.is_null()).collect();
    let ret = run(cx, None, &request(cx, What::Sls(names(&mods)), test, &options)?)?;
    // The code of an orchestration is told as data; the function itself has done its work.
    let code = i64::from(cx.job.retcode() != 0);
    cx.job.set_retcode(0);
    Ok(dict! {
        "data" => entries! { cx.id() => ret }, "outputter" => "highstate", "retcode" => code,
    })
}

/// Apply the states the top file gives this minion.
///
/// ```console
/// $ salt web1 state.highstate
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
    warn_of_slips(&rest);
    let rest = with_events(rest, state_events);
    if cx.opt("disable_saltenv_mapping").is_some_and(|off| off.truthy()) {
        tracing::debug!("disable_saltenv_mapping is set");
    }
    let ret = run(cx, queue, &request(cx, What::Highstate, test, &rest.kwargs)?)?;
    Ok(terse(ret, &rest))
}

/// Apply one id, or several, out of SLS files, with what they require.
///
/// ```console
/// $ salt web1 state.sls_id app_conf web.nginx
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
    let ret = run(cx, queue, &request(cx, what, test, &rest.kwargs)?)?;
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
/// $ salt web1 state.single file.directory name=/srv/app
/// ```
#[function]
pub fn single(
    cx: &Cx,
    /// The state: `pkg.installed`.
    fun: String,
    /// Its name.
    name: Value,
    #[group] how: How,
) -> Result<Value> {
    let Some((state, function)) = fun.split_once('.') else {
        cx.job.set_retcode(COMPILE_ERROR);
        return Ok("Invalid function passed".into());
    };
    if name.truthy() && !matches!(name, Value::Str(_)) {
        cx.job.set_retcode(COMPILE_ERROR);
        return Ok(Value::list([format!(
            "ID '{name}' is not formed as a string, but is a {}",
            name.type_name()
        )]));
    }
    if !is_state(cx, &fun) {
        cx.job.set_retcode(COMPILE_ERROR);
        return Ok(Value::list([no_such_state(cx, &fun)]));
    }
    if let Some(known) = cx.runtime.state(cx, &fun) {
        let given = &how.rest.kwargs;
        let missing = (known.params)().iter().filter(|param| {
            let has = |name: &str| name == "name" || given.contains(name);
            param.default.is_none()
                && !param.rest
                && !has(param.name)
                && !param.aliases.iter().any(|alias| has(alias))
        });
        let missing: Vec<String> = missing
            .map(|param| format!("Missing parameter {} for state {fun}", param.name))
            .collect();
        if !missing.is_empty() {
            cx.job.set_retcode(COMPILE_ERROR);
            return Ok(Value::list(missing));
        }
    }
    let low = how.rest.kwargs.shallow_copy();
    for own in ["pillar", "pillarenv", "concurrent", "localconfig", "state_events"] {
        low.remove(own);
    }
    low.insert("state", state);
    low.insert("fun", function);
    low.insert("__id__", &name);
    low.insert("name", name);
    let what = What::Low(Value::list([Value::Dict(low)]));
    how.run(cx, what)
}

/// Says that there is no state of that name, and which may have been meant.
fn no_such_state(cx: &Cx, name: &str) -> String {
    let names = cx.runtime.state_names(cx);
    let near = suggest::nearest(name, names.iter().map(String::as_str))
        .map(|near| format!("\n   = help: did you mean `{near}`?"));
    format!("Specified state '{name}' was not found{}", near.unwrap_or_default())
}

/// Says what is wrong with a chunk that cannot be run at all.
fn chunk_errors(cx: &Cx, low: &Dict) -> Vec<String> {
    let part = |word: &str| low.get(word).map(|value| value.to_string());
    match (part("state"), part("fun")) {
        (Some(state), Some(fun)) => {
            let name = format!("{state}.{fun}");
            if is_state(cx, &name) { Vec::new() } else { vec![no_such_state(cx, &name)] }
        }
        (state, fun) => {
            let missing = [("state", state.is_none()), ("fun", fun.is_none())];
            let missing = missing.into_iter().filter(|(_, is_missing)| *is_missing);
            missing.map(|(word, _)| format!("Missing \"{word}\" data")).collect()
        }
    }
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
/// $ salt web1 state.high '{/srv/app: {file: [directory]}}'
/// ```
#[function]
pub fn high(
    cx: &Cx,
    /// The high data.
    data: Value,
    #[group] how: How,
) -> Result<Value> {
    how.run(cx, What::High(data))
}

/// Apply one low chunk.
///
/// ```console
/// $ salt web1 state.low '{state: file, fun: directory, name: /srv/app}'
/// ```
#[function]
pub fn low(
    cx: &Cx,
    /// The chunk.
    data: Value,
    #[group] later: Later,
) -> Result<Value> {
    let how = later.tested()?;
    if let Value::Dict(low) = &data {
        let errors = chunk_errors(cx, low);
        if !errors.is_empty() {
            cx.job.set_retcode(COMPILE_ERROR);
            return Ok(Value::list(errors));
        }
    }
    let ret = how.run(cx, What::Low(data.clone()))?;
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
    #[group] later: Later,
) -> Result<Value> {
    let path = match tem.starts_with('/') {
        true if tem.ends_with(".sls") => tem,
        true => tem + ".sls",
        false => format!("{}.sls", tem.replace('.', "/")),
    };
    let found = if path.starts_with('/') {
        let path = PathBuf::from(&path);
        if cx.host.is_file(&path)? { Some(path) } else { None }
    } else {
        cx.files.cache(&format!("salt://{path}"), &cx.saltenv())?
    };
    let Some(path) = found else {
        cx.job.set_retcode(COMPILE_ERROR);
        let text = format!("Specified SLS {path} on local filesystem cannot be found.");
        return Ok(Value::list([text]));
    };
    let text = cx.host.read_text(&path)?;
    let how = later.tested()?;
    how.run(cx, What::TemplateText { text, path: Some(path.display().to_string()) })
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
    #[group] later: Later,
) -> Result<Value> {
    let how = later.tested()?;
    how.run(cx, What::TemplateText { text: tem, path: None })
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
    args: Rest,
) -> Result<Value> {
    let rest = args;
    let mods = rest.args.first().cloned().or_else(|| rest.kwargs.remove("mods"));
    rest.kwargs.insert("test", true);
    let rest = Rest { args: Vec::new(), kwargs: rest.kwargs };
    apply(cx, mods, rest)
}

/// Apply the states another top file gives this minion.
///
/// ```console
/// $ salt web1 state.top other_top.sls
/// ```
#[function]
pub fn top(
    cx: &Cx,
    /// The top file's name on the file server.
    topfn: String,
    #[group] how: How,
) -> Result<Value> {
    let opts = cx.opts.shallow_copy();
    opts.insert("state_top", format!("salt://{}", topfn.trim_start_matches("salt://")));
    let cx = Cx { opts, ..cx.clone() };
    how.run(&cx, What::Highstate)
}

/// Tell which other state runs are in progress.
///
/// ```console
/// $ salt web1 state.running
/// ```
#[function]
pub fn running(
    cx: &Cx,
    /// Runs side by side are wanted: return nothing.
    #[default(false)]
    concurrent: bool,
) -> Result<Vec<String>> {
    if concurrent {
        return Ok(Vec::new());
    }
    let is_other = |job: &Value| job.get_str("jid").is_none_or(|jid| jid != cx.job.jid);
    Ok(state_runs(cx.runtime.running().into_iter().filter(is_other).collect()))
}
