//! `state`: orchestrations, and events as they happen.
//!
//! An orchestration is a state run of the master itself, with the states of `saltmod.rs` beside the
//! usual ones. In a running master it is written down step by step (`steps.rs`).

use std::{sync::Arc, time::Duration};

use halite_client::{EventItem, Job, Patience, Request};
use halite_modules::pillar::decrypted;
use halite_spec::{
    Call, Cx, Error, Event, Rest, Result, StateRequest, Strings, What, alias, function, module,
};
use halite_target::fnmatch::fnmatch;
use halite_value::{Dict, Value, dict, entries, json};

use crate::{master, minion_bus::MinionBus, steps::Journal};

module! {
    /// Orchestrations, and events as they happen.
    "state": event, orchestrate, orch, sls, orchestrate_single, single, orchestrate_high, high,
    orchestrate_show_sls, orch_show_sls, pause, set_pause, resume, rm_pause, soft_kill, graph,
    graph_highstate,
}

alias! { rm_pause = resume, set_pause = pause }

/// Runs what was asked for, from the journal if an earlier master began it.
fn run(cx: &Cx, request: StateRequest) -> Result<Value> {
    let opened = Journal::open(cx);
    let states = cx.runtime.states();
    let high = match opened.as_ref().and_then(|(_, plan)| plan.clone()) {
        Some(high) => high,
        None => {
            let extra = request.extra.shallow_copy();
            extra.insert("form", "high");
            let shown = states.show(cx, &StateRequest { extra, ..request.clone() })?;
            let Value::Dict(high) = shown else { return Ok(shown) };
            if let Some((journal, _)) = &opened {
                journal.set_plan(&high)?;
            }
            high
        }
    };
    let journal = opened.map(|(journal, _)| Arc::new(journal) as Arc<dyn halite_spec::Journal>);
    states.apply(cx, &StateRequest { what: What::High(high.into()), journal, ..request })
}

/// The return of an orchestration: under the master's name, with the code for the shell.
fn told(cx: &Cx, returns: Value) -> Value {
    // Also a failure that an `onfail` dealt with: whoever deploys has to know of it.
    let failed = |states: &Dict| {
        states.values().iter().any(|state| state.get("result") == Some(Value::Bool(false)))
    };
    let well = returns.as_dict().is_some_and(|states| !failed(states)) && cx.job.retcode() == 0;
    dict! {
        "data" => entries! { cx.id() => returns }, "outputter" => "highstate",
        "retcode" => i64::from(!well),
    }
}

struct Options {
    saltenv: Option<String>,
    test: Option<bool>,
    exclude: Option<Value>,
    pillar: Option<Dict>,
    pillarenv: Option<String>,
    orchestration_jid: Option<Value>,
}

fn request(cx: &Cx, what: What, options: Options) -> StateRequest {
    let extra = Dict::new();
    let jid = options.orchestration_jid.unwrap_or_else(|| cx.job.jid.as_str().into());
    extra.insert("orchestration_jid", jid);
    StateRequest {
        saltenv: options.saltenv,
        test: options.test,
        exclude: options.exclude.unwrap_or_default(),
        // The master's own pillar, compiled anew for each run.
        pillar: Some(options.pillar.unwrap_or_default()),
        pillarenv: options.pillarenv,
        concurrent: true,
        extra,
        ..StateRequest::new(what)
    }
}

/// Run an orchestration: states of the master, with steps on minions.
///
/// ```console
/// $ salt-run state.orchestrate orch.deploy pillar='{"version": "1.4.2"}'
/// ```
///
/// A step succeeds only if every minion it was meant for returned, and well, or the step permits
/// otherwise. In a running master every step is written down: after a crash the run goes on with
/// the next step.
#[function]
pub fn orchestrate(
    cx: &Cx,
    /// SLS files.
    mods: Strings,
    /// The environment of the files.
    #[default("base".to_owned())]
    saltenv: String,
    /// Only tell what would be done.
    test: Option<bool>,
    /// SLS files or ids to leave out.
    exclude: Option<Value>,
    /// Pillar for this run.
    pillar: Option<Value>,
    /// The environment of the pillar.
    pillarenv: Option<String>,
    /// How the pillar given is encrypted.
    pillar_enc: Option<String>,
    /// The orchestration this belongs to.
    orchestration_jid: Option<Value>,
) -> Result<Value> {
    let pillar = given_pillar(cx, pillar, pillar_enc.as_deref())?;
    let saltenv = Some(saltenv);
    let options = Options { saltenv, test, exclude, pillar, pillarenv, orchestration_jid };
    let returns = run(cx, request(cx, What::Sls(mods.0), options))?;
    Ok(told(cx, returns))
}

/// Run an orchestration: the short name of `orchestrate`.
///
/// ```console
/// $ salt-run state.orch orch.deploy
/// ```
#[function]
pub fn orch(cx: &Cx, rest: Rest) -> Result<Value> {
    (orchestrate::SPEC.call)(cx, Call { args: rest.args, kwargs: rest.kwargs })
}

/// Run an orchestration: the old name of `orchestrate`.
///
/// ```console
/// $ salt-run state.sls orch.deploy
/// ```
#[function]
pub fn sls(cx: &Cx, rest: Rest) -> Result<Value> {
    (orchestrate::SPEC.call)(cx, Call { args: rest.args, kwargs: rest.kwargs })
}

/// Tells whether there is such a state: one of orchestrations, of this machine, or a user's.
fn is_state(cx: &Cx, module: &str, function: &str) -> bool {
    let name = format!("{module}.{function}");
    cx.runtime.state(cx, &name).is_some()
        || cx.runtime.state_names(cx).contains(&name)
        || !cx.runtime.described("states", &[name]).is_empty()
}

/// Tells of what was done, as an event of the run, and returns it.
fn shown_at_once(cx: &Cx, returns: Value) -> Result<Value> {
    let all = Value::from(entries! { cx.id() => returns });
    let data = dict! { "data" => all.clone(), "outputter" => "highstate" };
    cx.runtime.fire(cx, Event { tag: "progress".into(), data, pretag: None, local: false })?;
    Ok(all)
}

/// Run a single state on the master.
///
/// ```console
/// $ salt-run state.orchestrate_single fun=salt.function name=test.ping tgt='web*'
/// ```
#[function]
pub fn orchestrate_single(
    cx: &Cx,
    /// The state.
    fun: String,
    /// What it is about.
    name: String,
    /// Only tell what would be done.
    test: Option<bool>,
    /// Wait for other runs.
    queue: Option<Value>,
    /// Pillar for this run.
    pillar: Option<Dict>,
    /// Its arguments.
    rest: Rest,
) -> Result<Value> {
    let _ = queue;
    let body: Vec<Value> = rest
        .kwargs
        .entries()
        .into_iter()
        .filter(|(key, _)| !key.to_str().starts_with("__"))
        .map(|(key, value)| Value::from(entries! { key => value }))
        .collect();
    let (state, function) = fun.split_once('.').ok_or_else(|| {
        Error::failed(format!("`{fun}` is no state: module.function is expected"))
    })?;
    if !is_state(cx, state, function) {
        let unknown = format!("Specified state '{fun}' was not found");
        return shown_at_once(cx, Value::list([unknown]));
    }
    let mut arguments = vec![Value::from(function)];
    arguments.extend(body);
    let high = entries! { name => entries! {
        state => arguments, "__sls__" => Value::Null, "__env__" => "base",
    } };
    let options = Options {
        saltenv: None,
        test,
        exclude: None,
        pillar,
        pillarenv: None,
        orchestration_jid: None,
    };
    let returns = run(cx, request(cx, What::High(high.into()), options))?;
    shown_at_once(cx, returns)
}

/// Run a single state on the master: the short name of `orchestrate_single`.
///
/// ```console
/// $ salt-run state.single fun=test.nop name=foo
/// ```
#[function]
pub fn single(cx: &Cx, rest: Rest) -> Result<Value> {
    (orchestrate_single::SPEC.call)(cx, Call { args: rest.args, kwargs: rest.kwargs })
}

/// Run high data on the master.
///
/// ```console
/// $ salt-run state.orchestrate_high '{stage_one: {salt.state: [{tgt: "db*"}, {sls: [stage_one]}]}}'
/// ```
#[function]
pub fn orchestrate_high(
    cx: &Cx,
    /// The data: id → state → arguments.
    data: Dict,
    /// Only tell what would be done.
    test: Option<bool>,
    /// Wait for other runs.
    queue: Option<Value>,
    /// Pillar for this run.
    pillar: Option<Dict>,
) -> Result<Value> {
    let _ = queue;
    let high = Dict::new();
    for (id, body) in &data {
        let Value::Dict(body) = body else {
            high.insert(id, body);
            continue;
        };
        let unfolded = Dict::new();
        for (state, arguments) in &body {
            let name = state.to_str();
            // `salt.state: [...]` is written `salt: [state, ...]` in high data.
            match (name.split_once('.'), arguments.items_of_sequence()) {
                (Some((module, function)), Some(arguments)) => {
                    let mut list = vec![Value::from(function)];
                    list.extend(arguments);
                    unfolded.insert(module, list);
                }
                _ => {
                    unfolded.insert(state, arguments);
                }
            }
        }
        for (key, value) in [("__sls__", Value::Null), ("__env__", "base".into())] {
            if !unfolded.contains(key) {
                unfolded.insert(key, value);
            }
        }
        high.insert(id, unfolded);
    }
    let options = Options {
        saltenv: None,
        test,
        exclude: None,
        pillar,
        pillarenv: None,
        orchestration_jid: None,
    };
    let returns = run(cx, request(cx, What::High(high.into()), options))?;
    shown_at_once(cx, returns)
}

/// Run high data on the master: the short name of `orchestrate_high`.
///
/// ```console
/// $ salt-run state.high '{x: {test.nop: []}}'
/// ```
#[function]
pub fn high(cx: &Cx, rest: Rest) -> Result<Value> {
    (orchestrate_high::SPEC.call)(cx, Call { args: rest.args, kwargs: rest.kwargs })
}

/// Show what an orchestration consists of, and run nothing.
///
/// ```console
/// $ salt-run state.orchestrate_show_sls orch.deploy
/// ```
#[function]
pub fn orchestrate_show_sls(
    cx: &Cx,
    /// SLS files.
    mods: Strings,
    /// The environment of the files.
    #[default("base".to_owned())]
    saltenv: String,
    /// Only tell what would be done.
    test: Option<bool>,
    /// Wait for other runs.
    queue: Option<Value>,
    /// Pillar for this run.
    pillar: Option<Value>,
    /// The environment of the pillar.
    pillarenv: Option<String>,
    /// How the pillar given is encrypted.
    pillar_enc: Option<String>,
) -> Result<Value> {
    let _ = queue;
    let pillar = given_pillar(cx, pillar, pillar_enc.as_deref())?;
    let options = Options {
        saltenv: Some(saltenv),
        test,
        exclude: None,
        pillar,
        pillarenv,
        orchestration_jid: None,
    };
    let request = request(cx, What::Sls(mods.0), options);
    request.extra.insert("form", "high");
    let high = cx.runtime.states().show(cx, &request)?;
    Ok(entries! { cx.id() => high }.into())
}

/// Show what an orchestration consists of: the short name of `orchestrate_show_sls`.
///
/// ```console
/// $ salt-run state.orch_show_sls orch.deploy
/// ```
#[function]
pub fn orch_show_sls(cx: &Cx, rest: Rest) -> Result<Value> {
    (orchestrate_show_sls::SPEC.call)(cx, Call { args: rest.args, kwargs: rest.kwargs })
}

fn on_run(
    cx: &Cx,
    function: &str,
    jid: &str,
    state_id: Option<String>,
    more: Dict,
) -> Result<Value> {
    if let Some(id) = state_id {
        more.insert("state_id", id);
    }
    cx.call(function, Call { args: vec![jid.into()], kwargs: more })
}

/// Pause an orchestration before its next step, or before one step.
///
/// ```console
/// $ salt-run state.pause 20171130110407769519
/// $ salt-run state.pause 20171130110407769519 vim
/// ```
#[function]
pub fn pause(
    cx: &Cx,
    /// The run.
    jid: String,
    /// The id of a state.
    state_id: Option<String>,
    /// Seconds, after which it goes on by itself.
    duration: Option<i64>,
) -> Result<Value> {
    let more = Dict::new();
    if let Some(duration) = duration {
        more.insert("duration", duration);
    }
    on_run(cx, "state.pause", &jid, state_id, more)
}

/// Asks minions for a graph, or draws that of the master's own files.
fn drawn(
    cx: &Cx,
    fun: &str,
    args: Vec<Value>,
    tgt: Option<Value>,
    tgt_type: &str,
    timeout: Option<f64>,
    kwargs: Dict,
) -> Result<Value> {
    let Some(tgt) = tgt.filter(Value::truthy) else {
        return cx.call(fun, Call { args, kwargs });
    };
    let mut job = Job::new(tgt, tgt_type, fun);
    job.arg = args;
    if !kwargs.is_empty() {
        kwargs.insert("__kwarg__", true);
        job.arg.push(kwargs.into());
    }
    let mut patience = Patience::from_opts(&cx.opts);
    if let Some(seconds) = timeout.filter(|seconds| *seconds > 0.0 && *seconds < 1e9) {
        patience.timeout = std::time::Duration::from_secs_f64(seconds);
    }
    Ok(master::run(cx, &job, Some(patience))?.returns().into())
}

/// Returns those of the options that were given.
fn given<const N: usize>(options: [(&'static str, Option<Value>); N]) -> Dict {
    let has = |(name, value): (&'static str, Option<Value>)| Some((name, value?));
    options.into_iter().filter_map(has).filter(|(_, value)| !value.is_null()).collect()
}

/// Draw the requisite graph of SLS files in Graphviz' language: of minions, or of the master.
///
/// ```console
/// $ salt-run state.graph webserver tgt='web*'
/// ```
#[function]
pub fn graph(
    cx: &Cx,
    /// The SLS files.
    mods: Value,
    /// The minions to ask; the master's own machine if absent.
    tgt: Option<Value>,
    /// How the target is read.
    #[default("glob".to_owned())]
    tgt_type: String,
    /// The environment.
    #[default("base".to_owned())]
    saltenv: String,
    /// As for a test run.
    test: Option<Value>,
    /// More pillar.
    pillar: Option<Value>,
    /// The pillar's environment.
    pillarenv: Option<Value>,
    /// How the pillar is encrypted.
    pillar_enc: Option<Value>,
    /// Seconds to wait.
    timeout: Option<f64>,
) -> Result<Value> {
    let kwargs = given([
        ("saltenv", Some(saltenv.into())),
        ("test", test),
        ("pillar", pillar),
        ("pillarenv", pillarenv),
        ("pillar_enc", pillar_enc),
    ]);
    drawn(cx, "state.graph", vec![mods], tgt, &tgt_type, timeout, kwargs)
}

/// Draw the requisite graph of the highstate in Graphviz' language: of minions, or of the master.
///
/// ```console
/// $ salt-run state.graph_highstate tgt='web*'
/// ```
#[function]
pub fn graph_highstate(
    cx: &Cx,
    /// The minions to ask; the master's own machine if absent.
    tgt: Option<Value>,
    /// How the target is read.
    #[default("glob".to_owned())]
    tgt_type: String,
    /// More pillar.
    pillar: Option<Value>,
    /// The pillar's environment.
    pillarenv: Option<Value>,
    /// How the pillar is encrypted.
    pillar_enc: Option<Value>,
    /// Seconds to wait.
    timeout: Option<f64>,
) -> Result<Value> {
    let kwargs = given([("pillar", pillar), ("pillarenv", pillarenv), ("pillar_enc", pillar_enc)]);
    drawn(cx, "state.graph_highstate", Vec::new(), tgt, &tgt_type, timeout, kwargs)
}

/// Let a paused orchestration go on.
///
/// ```console
/// $ salt-run state.resume 20171130110407769519
/// ```
#[function]
pub fn resume(
    cx: &Cx,
    /// The run.
    jid: String,
    /// The id of a state.
    state_id: Option<String>,
) -> Result<Value> {
    on_run(cx, "state.resume", &jid, state_id, Dict::new())
}

/// End an orchestration before its next step, or before one step.
///
/// ```console
/// $ salt-run state.soft_kill 20171130110407769519
/// ```
#[function]
pub fn soft_kill(
    cx: &Cx,
    /// The run.
    jid: String,
    /// The id of a state.
    state_id: Option<String>,
) -> Result<Value> {
    on_run(cx, "state.soft_kill", &jid, state_id, Dict::new())
}

/// Print events of the master's bus as they happen.
///
/// ```console
/// $ salt-run state.event pretty=True
/// $ salt-run state.event 'salt/job/*/new' count=1
/// ```
#[function]
pub fn event(
    cx: &Cx,
    /// A glob for tags.
    #[default("*".to_owned())]
    tagmatch: String,
    /// End after this many; -1: never.
    #[default(-1)]
    count: i64,
    /// Print nothing.
    #[default(false)]
    quiet: bool,
    /// Where the sockets are.
    sock_dir: Option<String>,
    /// Print the data on several lines.
    #[default(false)]
    pretty: bool,
    /// Whose bus: `master`, or `minion` for that of this machine's minion.
    #[default("master".to_owned())]
    node: String,
) -> Result<()> {
    if node == "minion" {
        let mut bus = MinionBus::connect(cx, sock_dir.as_deref())?;
        let mut left = count;
        while left != 0 {
            if cx.host.cancelled() {
                return Err(Error::Cancelled);
            }
            let Some(event) = bus.next()? else { continue };
            if !fnmatch(&event.tag, &tagmatch) {
                continue;
            }
            if !quiet {
                print_event(cx, &event.tag, event.data, pretty)?;
            }
            left -= 1;
        }
        return Ok(());
    }
    if node != "master" {
        let text = format!("state.event: node={node}: there are the buses `master` and `minion`");
        return Err(Error::failed(text));
    }
    let cx = &match sock_dir {
        None => cx.clone(),
        Some(folder) => {
            let opts = cx.opts.shallow_copy();
            opts.insert("sock_dir", folder);
            Cx { opts, ..cx.clone() }
        }
    };
    let mut client = master::connect(cx)?;
    let request = Request::Events { tag: "".into(), after: None };
    let stream = client.send(&request).map_err(master::failed)?;
    let mut left = count;
    while left != 0 {
        if cx.host.cancelled() {
            return Err(Error::Cancelled);
        }
        let until = std::time::Instant::now() + Duration::from_secs(3600);
        let Some(item) = client.event(stream, Some(until)).map_err(master::failed)? else {
            continue;
        };
        let EventItem::Event { tag, data, .. } = item else {
            if let EventItem::Gap { missed } = item {
                tracing::warn!("{missed} events were too many for this terminal");
            }
            continue;
        };
        if !fnmatch(&tag, &tagmatch) {
            continue;
        }
        if !quiet {
            print_event(cx, &tag, data, pretty)?;
        }
        left -= 1;
    }
    Ok(())
}

fn print_event(cx: &Cx, tag: &str, data: Dict, pretty: bool) -> Result<()> {
    let style = match pretty {
        true => json::Style {
            indent: Some(4),
            sort_keys: true,
            bytes_as_text: true,
            ..json::Style::default()
        },
        false => json::Style { bytes_as_text: true, ..json::Style::default() },
    };
    let text = json::to_string_styled(&data.into(), &style)
        .map_err(|error| Error::failed(error.to_string()))?;
    master::say(cx, format!("{tag}\t{text}"))
}

/// Reads the pillar given on the command line; `encrypted` names the renderers that open it.
fn given_pillar(cx: &Cx, pillar: Option<Value>, encrypted: Option<&str>) -> Result<Option<Dict>> {
    let pillar = match (pillar, encrypted.filter(|name| !name.is_empty())) {
        (None | Some(Value::Null), _) => return Ok(None),
        (Some(pillar), None) => pillar,
        (Some(pillar), Some(renderer)) => decrypted(cx, &pillar, renderer)?,
    };
    match pillar {
        Value::Dict(pillar) => Ok(Some(pillar)),
        _ => Err(Error::invalid("Pillar data must be formatted as a dictionary")),
    }
}
