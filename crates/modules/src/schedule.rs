//! `schedule`: the jobs a minion runs by itself.
//!
//! The daemon holds the schedule; these functions ask it over the local bus, as genuine Salt's do,
//! and it writes `_schedule.conf` beside the other configuration files. With `offline=True` the
//! file is changed directly, for a minion that does not run.

use std::path::{Path, PathBuf};

use halite_spec::{Call, Cx, Error, Rest, Result, function, host::Write, module};
use halite_value::{Dict, Key, Value, entries, yaml};
use jiff::fmt::strtime;

module! {
    /// The jobs a minion runs by itself.
    "schedule": add, build_schedule_item, copy, delete, disable, disable_job, enable, enable_job,
    is_enabled, job_status, list, modify, move_to, postpone_job, purge, reload, run_job, save,
    show_next_fire_time, skip_job,
}

const INTERVALS: [&str; 4] = ["seconds", "minutes", "hours", "days"];
/// Options that are taken over as they are, in this order.
const TAKEN: [&str; 15] = [
    "range",
    "when",
    "once",
    "once_fmt",
    "cron",
    "returner",
    "after",
    "return_config",
    "return_kwargs",
    "until",
    "run_on_start",
    "skip_during_range",
    // beyond genuine Salt's function, which loses them
    "run_after_skip_range",
    "dry_run",
    "invert",
];
const NO_INTERVAL_WITH_TIMES: &str = "Unable to use \"seconds\", \"minutes\", \"hours\", or \
                                      \"days\" with \"when\" or \"cron\" options.";
const NO_WHEN_WITH_CRON: &str = "Unable to use \"when\" and \"cron\" options together.  Ignoring.";

/// Returns the file a schedule is kept in, by the configuration of minion or master.
pub fn conf_path(opts: &Dict) -> PathBuf {
    conf_folder(opts).join("_schedule.conf")
}

/// Returns the folder of further configuration files.
pub fn conf_folder(opts: &Dict) -> PathBuf {
    let text = |name: &str| opts.get(name).unwrap_or_default().to_str();
    let file = text("conf_file");
    let folder = Path::new(file.as_str()).parent().unwrap_or(Path::new("/etc/salt")).to_owned();
    let include = text("default_include");
    match Path::new(include.as_str()).parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => folder.join(parent),
        None => folder.join("minion.d"),
    }
}

/// Returns the text of the file for a schedule.
pub fn conf_text(schedule: &Dict) -> String {
    let value = Value::from(entries! { "schedule" => schedule });
    yaml::dump(&value, &yaml::DumpOptions::block()).unwrap_or_default()
}

/// The schedule of the file; empty if there is none.
fn from_file(cx: &Cx) -> Result<Dict> {
    let Some(text) = cx.host.read_text_if_there(&conf_path(&cx.opts))? else {
        return Ok(Dict::new());
    };
    let value = yaml::load_str(&text).map_err(|error| Error::failed(error.to_string()))?;
    Ok(value.get("schedule").and_then(|jobs| jobs.as_dict().cloned()).unwrap_or_default())
}

fn to_file(cx: &Cx, schedule: &Dict) -> Result<()> {
    let path = conf_path(&cx.opts);
    if let Some(folder) = path.parent() {
        cx.host.create_dirs(folder, None)?;
    }
    Ok(cx.host.write(&path, conf_text(schedule).as_bytes(), &Write::default())?)
}

/// Asks the daemon; `None` when there is none.
fn ask(cx: &Cx, func: &str, more: Dict, reply: Option<&str>) -> Result<Option<Dict>> {
    let request = more;
    request.insert("func", func);
    let reply = reply.map(|reply| format!("/salt/minion/minion_schedule_{reply}"));
    cx.runtime.ask_daemon(cx, "manage_schedule", &request, reply.as_deref())
}

/// Returns the daemon's schedule, or that of the file.
fn current(cx: &Cx, place: Option<&str>, offline: bool) -> Result<Dict> {
    if offline {
        return from_file(cx);
    }
    let answer = ask(cx, "list", entries! { "where" => place }, Some("list_complete"))?;
    let schedule = answer.and_then(|answer| answer.get("schedule"));
    Ok(schedule.and_then(|schedule| schedule.as_dict().cloned()).unwrap_or_default())
}

/// A job as it is shown: without the daemon's notes.
fn shown(job: &Dict) -> Dict {
    let is_note = |key: &Key| key.to_str().starts_with('_') || key.to_str() == "run";
    let entries = job.entries().into_iter();
    let shown: Dict = entries
        .filter(|(key, value)| !(is_note(key) || key.to_str() == "splay" && value.is_null()))
        .collect();
    if !shown.contains("enabled") {
        shown.insert("enabled", true);
    }
    shown
}

fn is_hidden(name: &str) -> bool {
    name.starts_with("__")
}

/// Returns the jobs, without hidden ones unless asked for.
fn jobs(cx: &Cx, show_all: bool, place: Option<&str>, offline: bool) -> Result<Dict> {
    let jobs = Dict::new();
    for (name, job) in &current(cx, place, offline)? {
        if is_hidden(&name.to_str()) && !show_all {
            continue;
        }
        match &job {
            Value::Dict(job) => jobs.insert(name, shown(job)),
            _ => jobs.insert(name, job),
        };
    }
    Ok(jobs)
}

fn job_named(cx: &Cx, name: &str, offline: bool) -> Result<Option<Dict>> {
    Ok(jobs(cx, true, None, offline)?.get(name).and_then(|job| job.as_dict().cloned()))
}

/// List the jobs.
///
/// ```console
/// $ salt web1 schedule.list
/// ```
#[function]
pub fn list(
    cx: &Cx,
    /// With the minion's own jobs.
    #[default(false)]
    show_all: bool,
    /// With those that are disabled.
    #[default(true)]
    show_disabled: bool,
    /// Only those of the `pillar`, or of the configuration: `opts`.
    r#where: Option<String>,
    /// As text.
    #[default(true)]
    return_yaml: bool,
    /// Those of the file, without asking the daemon.
    #[default(false)]
    offline: bool,
) -> Result<Value> {
    let listed = jobs(cx, show_all, r#where.as_deref(), offline)?;
    if !show_disabled {
        for (name, job) in listed.entries() {
            if job.get("enabled").is_some_and(|enabled| !enabled.truthy()) {
                listed.remove(&name);
            }
        }
    }
    if !return_yaml {
        return Ok(listed.into());
    }
    let saved = from_file(cx)?;
    let configured = cx.opt("schedule");
    for (name, job) in &listed {
        let Value::Dict(job) = job else { continue };
        let in_config = configured.as_ref().is_some_and(|all| all.get(&name.to_str()).is_some());
        if !is_hidden(&name.to_str()) {
            job.insert("saved", saved.contains(&name) || in_config);
        }
    }
    Ok(conf_text(&listed).into())
}

fn answer(result: bool, comment: impl Into<Value>) -> Dict {
    entries! { "comment" => comment.into(), "result" => result }
}

fn with_changes(result: bool, comment: impl Into<Value>, changes: Dict) -> Value {
    let ret = answer(result, comment);
    ret.insert("changes", changes);
    ret.into()
}

/// What every function that changes the schedule understands.
struct How {
    test: bool,
    persist: bool,
    offline: bool,
    rest: Dict,
}

impl How {
    fn read(rest: Rest) -> Self {
        let rest = rest.kwargs.shallow_copy();
        for key in rest.keys() {
            if key.to_str().starts_with("__") {
                rest.remove(&key);
            }
        }
        let flag =
            |name: &str, preset: bool| rest.remove(name).map_or(preset, |value| value.truthy());
        let (test, persist, offline) =
            (flag("test", false), flag("persist", true), flag("offline", false));
        Self { test, persist, offline, rest }
    }

    /// Tells the daemon, or changes the file.
    fn change(
        &self,
        cx: &Cx,
        func: &str,
        request: Dict,
        reply: &str,
        file: impl FnOnce(&Dict),
    ) -> Result<bool> {
        if self.offline {
            let schedule = from_file(cx)?;
            file(&schedule);
            to_file(cx, &schedule)?;
            return Ok(true);
        }
        request.insert("persist", self.persist);
        Ok(ask(cx, func, request, Some(reply))?.is_some())
    }
}

/// Make a job of options; what is wrong with them is told in Salt's words.
///
/// ```console
/// $ salt web1 schedule.build_schedule_item nightly function=state.apply hours=24
/// ```
#[function]
pub fn build_schedule_item(
    cx: &Cx,
    /// The job.
    name: String,
    /// Its options.
    rest: Rest,
) -> Result<Value> {
    let _ = cx;
    Ok(match built(cx, &name, &How::read(rest).rest)? {
        Ok(job) => job.into(),
        Err(comment) => answer(false, comment).into(),
    })
}

/// Returns the job, or why there is none.
fn built(cx: &Cx, name: &str, given: &Dict) -> Result<Result<Dict, String>> {
    if name.is_empty() {
        return Ok(Err("Job name is required.".into()));
    }
    let has = |key: &str| given.get(key).is_some_and(|value| !value.is_null());
    if has("when") && has("cron") {
        return Ok(Err(NO_WHEN_WITH_CRON.into()));
    }
    if INTERVALS.iter().any(|key| has(key)) && (has("when") || has("cron")) {
        return Ok(Err(NO_INTERVAL_WITH_TIMES.into()));
    }
    if let Some(wrong) = given.get("when").and_then(|when| no_time(cx, &when)) {
        return Ok(Err(format!("Schedule item {wrong} for \"when\" in invalid.")));
    }
    let Some(function) = given.get("function").filter(Value::truthy) else {
        return Err(Error::invalid("argument `function` is required: what shall the job run?"));
    };
    let job = entries! { "function" => function };
    for key in INTERVALS {
        if let Some(value) = given.get(key) {
            job.insert(key, value);
        }
    }
    if let Some(args) = given.get("job_args") {
        if args.items_of_sequence().is_none() {
            return Ok(Err("job_args is not a list. please correct and try again.".into()));
        }
        job.insert("args", args);
    }
    if let Some(kwargs) = given.get("job_kwargs") {
        if kwargs.as_dict().is_none() {
            return Ok(Err("job_kwargs is not a dict. please correct and try again.".into()));
        }
        job.insert("kwargs", kwargs);
    }
    for key in ["metadata", "return_job"] {
        if let Some(value) = given.get(key) {
            job.insert(key, value);
        }
    }
    job.insert("maxrunning", given.get("maxrunning").unwrap_or_else(|| 1.into()));
    job.insert("name", name);
    job.insert("enabled", given.get("enabled").unwrap_or(Value::Bool(true)));
    job.insert("jid_include", given.get("jid_include").unwrap_or(Value::Bool(true)));
    if let Some(splay) = given.get("splay") {
        let is_range = |dict: &Dict| dict.contains("start") && dict.contains("end");
        if let Value::Dict(range) = &splay
            && !is_range(range)
        {
            return Ok(Err(format!(
                "Splay for job, {name}, must be a number or a dict with start and end."
            )));
        }
        job.insert("splay", splay);
    }
    for key in TAKEN {
        if let Some(value) = given.get(key) {
            job.insert(key, value);
        }
    }
    Ok(Ok(job))
}

/// Returns the first of these times that is none: neither a date nor a name of `whens`.
fn no_time(cx: &Cx, when: &Value) -> Option<String> {
    let today = jiff::Timestamp::try_from(cx.host.now()).unwrap_or_default();
    let today = today.to_zoned(jiff::tz::TimeZone::system()).date();
    let named = |name: &str| {
        let has = |place: &Dict| place.get("whens").is_some_and(|whens| whens.get(name).is_some());
        has(&cx.pillar) || has(&cx.grains)
    };
    let items = when.items_of_sequence().unwrap_or_else(|| vec![when.clone()]);
    let is_time = |item: &Value| {
        let text = item.to_str();
        named(&text) || halite_schedule::parse_when(&text, today).is_ok()
    };
    items
        .into_iter()
        .filter(|item| !item.is_null())
        .find(|item| !is_time(item))
        .map(|item| item.to_string())
}

/// Add a job.
///
/// ```console
/// $ salt '*' schedule.add job2 function='cmd.run' job_args="['date >> /tmp/date.log']" cron='*/5 * * * *'
/// ```
#[function]
pub fn add(
    cx: &Cx,
    /// The job.
    name: String,
    /// Its options; `test`, `persist`, `offline`.
    rest: Rest,
) -> Result<Value> {
    let how = How::read(rest);
    if name.is_empty() {
        return Ok(answer(false, "Job name is required.").into());
    }
    if job_named(cx, &name, how.offline)?.is_some() {
        return Ok(with_changes(
            false,
            format!("Job {name} already exists in schedule."),
            Dict::new(),
        ));
    }
    let job = match built(cx, &name, &how.rest)? {
        Ok(job) => job,
        Err(why) if why == NO_INTERVAL_WITH_TIMES => {
            return Ok(with_changes(false, format!("Error: {why}"), Dict::new()));
        }
        Err(why) => return Ok(with_changes(false, why, Dict::new())),
    };
    if how.test {
        let comment = format!("Job: {name} would be added to schedule.");
        return Ok(with_changes(true, comment, Dict::new()));
    }
    let request =
        entries! { "name" => name.as_str(), "schedule" => entries! { name.as_str() => &job } };
    let done = how.change(cx, "add", request, "add_complete", |schedule| {
        schedule.insert(name.as_str(), &job);
    })?;
    if !done {
        let comment = format!("Failed to add job {name} to schedule.");
        return Ok(with_changes(false, comment, Dict::new()));
    }
    let changes = entries! { name.as_str() => "added" };
    Ok(with_changes(true, format!("Added job: {name} to schedule."), changes))
}

/// Give a job other options; of the old ones only the function stays.
///
/// ```console
/// $ salt web1 schedule.modify nightly hours=12
/// ```
#[function]
pub fn modify(
    cx: &Cx,
    /// The job.
    name: String,
    /// The options to change; `test`, `persist`, `offline`.
    rest: Rest,
) -> Result<Value> {
    let how = How::read(rest);
    let told = |result: bool, comment: String, changes: Dict| -> Value {
        entries! { "comment" => comment, "changes" => changes, "result" => result }.into()
    };
    let Some(old) = job_named(cx, &name, how.offline)? else {
        return Ok(told(false, format!("Job {name} does not exist in schedule."), Dict::new()));
    };
    let given = &how.rest;
    let has = |key: &str| given.get(key).is_some_and(|value| !value.is_null());
    let by_interval = INTERVALS.iter().any(|key| has(key));
    if by_interval && (has("when") || has("cron")) {
        // Genuine Salt has another text here than when it adds.
        let comment = "Error: Unable to use \"seconds\", \"minutes\", \"hours\", or \"days\" with \
                       \"when\" option.";
        return Ok(told(false, comment.into(), Dict::new()));
    }
    // As in Salt, only the function stays; what is not given is taken away. `schedule.present`
    // relies on it: an option that went from the state has to go from the job.
    let options = given.shallow_copy();
    if !options.contains("function")
        && let Some(function) = old.get("function")
    {
        options.insert("function", function);
    }
    let new = match built(cx, &name, &options)? {
        Ok(job) => job,
        Err(why) => return Ok(told(false, why, Dict::new())),
    };
    if old == new {
        return Ok(told(true, format!("Job {name} in correct state"), Dict::new()));
    }
    let changes = entries! { name.as_str() => entries! { "old" => &old, "new" => &new } };
    if how.test {
        return Ok(told(true, format!("Job: {name} would be modified in schedule."), changes));
    }
    let request = entries! { "name" => name.as_str(), "schedule" => &new };
    let done = how.change(cx, "modify", request, "delete_complete", |schedule| {
        schedule.insert(name.as_str(), &new);
    })?;
    if !done {
        return Ok(told(false, format!("Failed to modify job {name} in schedule."), Dict::new()));
    }
    Ok(told(true, format!("Modified job: {name} in schedule."), changes))
}

/// Remove a job.
///
/// ```console
/// $ salt web1 schedule.delete nightly
/// ```
#[function]
pub fn delete(
    cx: &Cx,
    /// The job.
    name: String,
    /// `test`, `persist`, `offline`.
    rest: Rest,
) -> Result<Value> {
    let how = How::read(rest);
    if how.test {
        let comment = format!("Job: {name} would be deleted from schedule.");
        return Ok(with_changes(true, comment, Dict::new()));
    }
    if !is_in(cx, &name, "opts", how.offline)? {
        let comment = if !how.offline && is_in(cx, &name, "pillar", false)? {
            format!("Job {name} is in the pillar, and can only be removed there.")
        } else {
            format!("Job {name} does not exist.")
        };
        return Ok(with_changes(false, comment, Dict::new()));
    }
    if !remove(cx, &name, &how)? {
        let comment = format!("Failed to delete job {name} from schedule.");
        return Ok(with_changes(false, comment, Dict::new()));
    }
    let changes = entries! { name.as_str() => "removed" };
    Ok(with_changes(true, format!("Deleted Job {name} from schedule."), changes))
}

fn is_in(cx: &Cx, name: &str, place: &str, offline: bool) -> Result<bool> {
    let jobs = jobs(cx, true, Some(place), offline)?;
    Ok(jobs.get(name).is_some_and(|job| job.as_dict().is_some()))
}

fn remove(cx: &Cx, name: &str, how: &How) -> Result<bool> {
    how.change(cx, "delete", entries! { "name" => name }, "delete_complete", |schedule| {
        schedule.remove(name);
    })
}

/// Remove all jobs of the configuration.
///
/// ```console
/// $ salt web1 schedule.purge
/// ```
#[function]
pub fn purge(
    cx: &Cx,
    /// `test`, `persist`, `offline`.
    rest: Rest,
) -> Result<Value> {
    let how = How::read(rest);
    let (mut comments, changes) = (Vec::new(), Dict::new());
    let mut result = true;
    for (name, job) in &jobs(cx, false, Some("opts"), how.offline)? {
        if job.as_dict().is_none() {
            continue;
        }
        let name = name.to_str();
        if how.test {
            comments.push(Value::from(format!("Job: {name} would be deleted from schedule.")));
        } else if remove(cx, &name, &how)? {
            comments.push(format!("Deleted job: {name} from schedule.").into());
            changes.insert(name, "removed");
        } else {
            comments.push(format!("Failed to delete job {name} from schedule.").into());
            result = false;
        }
    }
    Ok(entries! { "comment" => comments, "changes" => changes, "result" => result }.into())
}

fn switch_job(cx: &Cx, name: &str, rest: Rest, enable: bool) -> Result<Value> {
    let how = How::read(rest);
    let (word, title) = if enable { ("enabled", "Enabled") } else { ("disabled", "Disabled") };
    if job_named(cx, name, how.offline)?.is_none() {
        let comment = format!("Job {name} does not exist.");
        return Ok(with_changes(false, comment, Dict::new()));
    }
    if how.test {
        let comment = format!("Job: {name} would be {word} in schedule.");
        return Ok(with_changes(true, comment, Dict::new()));
    }
    let func = if enable { "enable_job" } else { "disable_job" };
    let reply = format!("{word}_job_complete");
    let done = how.change(cx, func, entries! { "name" => name }, &reply, |schedule| {
        if let Some(Value::Dict(job)) = schedule.get(name) {
            job.insert("enabled", enable);
        }
    })?;
    if !done {
        let comment = format!(
            "Failed to {} job {name} in schedule.",
            if enable { "enable" } else { "disable" }
        );
        return Ok(with_changes(false, comment, Dict::new()));
    }
    Ok(with_changes(true, format!("{title} Job {name} in schedule."), entries! { name => word }))
}

/// Let a job run again.
///
/// ```console
/// $ salt web1 schedule.enable_job nightly
/// ```
#[function]
pub fn enable_job(
    cx: &Cx,
    /// The job.
    name: String,
    /// `test`, `persist`, `offline`.
    rest: Rest,
) -> Result<Value> {
    switch_job(cx, &name, rest, true)
}

/// Keep a job from running.
///
/// ```console
/// $ salt web1 schedule.disable_job nightly
/// ```
#[function]
pub fn disable_job(
    cx: &Cx,
    /// The job.
    name: String,
    /// `test`, `persist`, `offline`.
    rest: Rest,
) -> Result<Value> {
    switch_job(cx, &name, rest, false)
}

fn switch(cx: &Cx, rest: Rest, enable: bool) -> Result<Value> {
    let how = How::read(rest);
    let (word, title) = if enable { ("enabled", "Enabled") } else { ("disabled", "Disabled") };
    let told = |result: bool, comment: String, changes: Dict| -> Value {
        entries! { "comment" => comment, "changes" => changes, "result" => result }.into()
    };
    if how.test {
        return Ok(told(true, format!("Schedule would be {word}."), Dict::new()));
    }
    let func = if enable { "enable" } else { "disable" };
    let reply = format!("{word}_complete");
    let done = how.change(cx, func, Dict::new(), &reply, |schedule| {
        schedule.insert("enabled", enable);
    })?;
    if !done {
        return Ok(told(false, format!("Failed to {func} schedule on minion."), Dict::new()));
    }
    Ok(told(true, format!("{title} schedule on minion."), entries! { "schedule" => word }))
}

/// Let the schedule run.
///
/// ```console
/// $ salt web1 schedule.enable
/// ```
#[function]
pub fn enable(
    cx: &Cx,
    /// `test`, `persist`, `offline`.
    rest: Rest,
) -> Result<Value> {
    switch(cx, rest, true)
}

/// Stop the whole schedule.
///
/// ```console
/// $ salt web1 schedule.disable
/// ```
#[function]
pub fn disable(
    cx: &Cx,
    /// `test`, `persist`, `offline`.
    rest: Rest,
) -> Result<Value> {
    switch(cx, rest, false)
}

/// Tell whether the schedule is on; or give a job, if there is one of that name.
///
/// ```console
/// $ salt web1 schedule.is_enabled
/// ```
#[function]
pub fn is_enabled(
    cx: &Cx,
    /// The job.
    name: Option<String>,
) -> Result<Value> {
    let jobs = jobs(cx, false, None, false)?;
    Ok(match name.filter(|name| !name.is_empty()) {
        Some(name) => jobs.get(name.as_str()).unwrap_or_else(Value::dict),
        None => jobs.get("enabled").is_none_or(|enabled| enabled.truthy()).into(),
    })
}

/// Run a job now.
///
/// ```console
/// $ salt web1 schedule.run_job nightly
/// ```
#[function]
pub fn run_job(
    cx: &Cx,
    /// The job.
    name: String,
    /// Though it is disabled.
    #[default(false)]
    force: bool,
) -> Result<Value> {
    let Some(job) = job_named(cx, &name, false)? else {
        return Ok(answer(false, format!("Job {name} does not exist.")).into());
    };
    if !force && job.get("enabled").is_some_and(|enabled| !enabled.truthy()) {
        return Ok(answer(true, format!("Job {name} is disabled.")).into());
    }
    let heard = ask(cx, "run_job", entries! { "name" => name.as_str() }, None)?.is_some();
    let comment = if heard {
        format!("Scheduling Job {name} on minion.")
    } else {
        format!("Failed to run job {name} on minion.")
    };
    Ok(answer(heard, comment).into())
}

/// Write the schedule to its file.
///
/// ```console
/// $ salt web1 schedule.save
/// ```
#[function]
pub fn save(
    cx: &Cx,
    /// `test`.
    rest: Rest,
) -> Result<Value> {
    if How::read(rest).test {
        return Ok(answer(true, "Schedule would be saved.").into());
    }
    let saved = ask(cx, "save_schedule", Dict::new(), Some("saved"))?.is_some();
    let comment = if saved {
        "Schedule (non-pillar items) saved."
    } else {
        "Failed to save schedule on minion."
    };
    Ok(answer(saved, comment).into())
}

/// Read the schedule from its file again.
///
/// ```console
/// $ salt web1 schedule.reload
/// ```
#[function]
pub fn reload(cx: &Cx) -> Result<Value> {
    let schedule = match cx.opt("schedule") {
        Some(Value::Dict(configured)) => configured.deep_copy(),
        _ => Dict::new(),
    };
    schedule.update(&from_file(cx)?);
    let heard = ask(cx, "reload", entries! { "schedule" => schedule }, None)?.is_some();
    let comments: Vec<Value> =
        if heard { Vec::new() } else { vec!["Reload of schedule failed.".into()] };
    Ok(answer(heard, comments).into())
}

/// Show a job's options and what became of it.
///
/// ```console
/// $ salt web1 schedule.job_status nightly
/// ```
#[function]
pub fn job_status(
    cx: &Cx,
    /// The job.
    name: String,
    /// How times are written.
    #[default("%Y-%m-%dT%H:%M:%S".to_owned())]
    time_fmt: String,
) -> Result<Value> {
    let request = entries! { "name" => name.as_str(), "fire_event" => true };
    let Some(told) = ask(cx, "job_status", request, Some("job_status_complete"))? else {
        return Ok(Value::Null);
    };
    let Some(Value::Dict(status)) = told.get("data") else { return Ok(Value::dict()) };
    for (key, value) in status.entries() {
        if let Value::Timestamp(time) = value {
            status.insert(key, strtime::format(&time_fmt, time).unwrap_or_default());
        }
    }
    Ok(status.into())
}

/// Show when a job runs next.
///
/// ```console
/// $ salt web1 schedule.show_next_fire_time nightly
/// ```
#[function]
pub fn show_next_fire_time(
    cx: &Cx,
    /// The job.
    name: String,
    /// How times are written: `time_fmt`.
    rest: Rest,
) -> Result<Value> {
    let _ = rest;
    if name.is_empty() {
        let ret = answer(false, "Job name is required.");
        let ret = entries! { "result" => false, "comment" => ret.get("comment"), "next_fire_time" => Value::Null };
        return Ok(ret.into());
    }
    let request = entries! { "name" => name.as_str() };
    let told = ask(cx, "get_next_fire_time", request, Some("next_fire_time_complete"))?;
    let next = told.as_ref().and_then(|told| told.get("next_fire_time"));
    Ok(entries! { "result" => told.is_some(), "next_fire_time" => next }.into())
}

/// Reads a time as people give it, by its format.
fn time(value: &Value, format: &str) -> Option<String> {
    let text = match value {
        Value::Timestamp(time) => strtime::format(format, *time).ok()?,
        other => other.to_str().to_string(),
    };
    strtime::parse(format, &text).ok()?.to_datetime().ok()?;
    Some(text)
}

/// Leave out one run of a job.
///
/// ```console
/// $ salt '*' schedule.skip_job job_name current_time=2026-12-01T17:00:00
/// ```
#[function]
pub fn skip_job(
    cx: &Cx,
    /// The job.
    name: String,
    /// When it would run; its next time if not given.
    #[arg(required)]
    current_time: Option<Value>,
    /// `time_fmt`.
    rest: Rest,
) -> Result<Value> {
    let format = rest.kwargs.get("time_fmt").filter(Value::truthy);
    let format = format.map_or_else(|| "%Y-%m-%dT%H:%M:%S".into(), |format| format.to_str());
    if job_named(cx, &name, false)?.is_none() {
        return Ok(answer(false, format!("Job {name} does not exist.")).into());
    }
    let given = match current_time.filter(Value::truthy) {
        Some(given) => given,
        None => {
            let next = show_next_fire_time(cx, name.clone(), Rest::default())?;
            next.get("next_fire_time").unwrap_or_default()
        }
    };
    let Some(time) = time(&given, &format) else {
        return Ok(answer(false, "Date string could not be parsed.").into());
    };
    let request = entries! { "name" => name.as_str(), "time" => time, "time_fmt" => format };
    let done = ask(cx, "skip_job", request, Some("skip_job_complete"))?.is_some();
    let comment = if done {
        format!("Added Skip Job {name} in schedule.")
    } else {
        format!("Failed to skip job {name} in schedule.")
    };
    Ok(answer(done, comment).into())
}

/// Put off one run of a job.
///
/// ```console
/// $ salt '*' schedule.postpone_job job current_time=2026-12-01T17:00:00 new_time=2026-12-01T18:00:00
/// ```
#[function]
pub fn postpone_job(
    cx: &Cx,
    /// The job.
    name: String,
    /// When it would run.
    #[arg(required)]
    current_time: Option<Value>,
    /// When it shall run.
    #[arg(required)]
    new_time: Option<Value>,
    /// `time_fmt`.
    rest: Rest,
) -> Result<Value> {
    let format = rest.kwargs.get("time_fmt").filter(Value::truthy);
    let format = format.map_or_else(|| "%Y-%m-%dT%H:%M:%S".into(), |format| format.to_str());
    let refused = |text: &str| Ok(answer(false, text).into());
    if name.is_empty() {
        return refused("Job name is required.");
    }
    let Some(current) = current_time.filter(Value::truthy) else {
        return refused("Job current time is required.");
    };
    let Some(new) = new_time.filter(Value::truthy) else {
        return refused("Job new_time is required.");
    };
    let (Some(current), Some(new)) = (time(&current, &format), time(&new, &format)) else {
        return refused("Date string could not be parsed.");
    };
    if job_named(cx, &name, false)?.is_none() {
        return refused(&format!("Job {name} does not exist."));
    }
    let request = entries! {
        "name" => name.as_str(), "time" => current, "new_time" => new, "time_fmt" => format,
    };
    let done = ask(cx, "postpone_job", request, Some("postpone_job_complete"))?.is_some();
    let comment = if done {
        format!("Postponed Job {name} in schedule.")
    } else {
        format!("Failed to postpone job {name} in schedule.")
    };
    Ok(answer(done, comment).into())
}

/// Gives a job to other minions; returns who took it.
fn give(cx: &Cx, name: &str, target: &str) -> Result<Option<Dict>> {
    let Some(job) = job_named(cx, name, false)? else { return Ok(None) };
    let mut args = vec![Value::from(name)];
    for (key, value) in &job {
        let key = match key.to_str().as_str() {
            "name" => continue,
            "args" => "job_args".into(),
            "kwargs" => "job_kwargs".into(),
            other => other.to_owned(),
        };
        args.push(entries! { "__kwarg__" => true, key => value }.into());
    }
    let call = Call::of([Value::from(target), "schedule.add".into(), Value::list(args)]);
    let answered = cx.call("publish.publish", call)?;
    let minions = answered.as_dict().map(Dict::keys).unwrap_or_default();
    let minions: Vec<Value> = minions.into_iter().map(Key::into_value).collect();
    Ok(Some(entries! { "minions" => minions }))
}

fn given(cx: &Cx, name: &str, target: &str, rest: Rest, moved: bool) -> Result<Value> {
    let how = How::read(rest);
    let (word, title) = if moved { ("moved", "Moved") } else { ("copied", "Copied") };
    if job_named(cx, name, false)?.is_none() {
        return Ok(answer(false, format!("Job {name} does not exist.")).into());
    }
    if how.test {
        return Ok(answer(true, format!("Job: {name} would be {word} from schedule.")).into());
    }
    let Some(taken) = give(cx, name, target)? else {
        return Ok(answer(false, format!("Job {name} does not exist.")).into());
    };
    let minions = taken.get("minions").unwrap_or_default();
    if !minions.truthy() {
        let comment = format!("no valid servers answered the {word} request of job {name}");
        return Ok(answer(false, comment).into());
    }
    let comment = if moved {
        remove(cx, name, &how)?;
        format!("{title} Job {name} from schedule.")
    } else {
        format!("{title} Job {name} from schedule to minion(s).")
    };
    let ret = answer(true, comment);
    ret.insert("minions", minions);
    Ok(ret.into())
}

/// Give a job to other minions, and remove it here.
///
/// ```console
/// $ salt web1 schedule.move nightly web2
/// ```
#[function(name = "move")]
pub fn move_to(
    cx: &Cx,
    /// The job.
    name: String,
    /// The minions.
    target: String,
    /// `test`, `persist`.
    rest: Rest,
) -> Result<Value> {
    given(cx, &name, &target, rest, true)
}

/// Give a job to other minions, too.
///
/// ```console
/// $ salt web1 schedule.copy nightly web2
/// ```
#[function]
pub fn copy(
    cx: &Cx,
    /// The job.
    name: String,
    /// The minions.
    target: String,
    /// `test`.
    rest: Rest,
) -> Result<Value> {
    given(cx, &name, &target, rest, false)
}
