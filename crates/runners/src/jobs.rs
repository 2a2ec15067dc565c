//! `jobs`: jobs that run and jobs that have run.

use std::path::Path;

use halite_client::{Client, Job, Request};
use halite_spec::{Call, Cx, Error, Result, Strings, function, module};
use halite_store::{Embedded, history};
use halite_target::fnmatch::fnmatch;
use halite_value::{Dict, SmolStr, Value, dict, entries};

use crate::master;

module! {
    /// Jobs that run and jobs that have run.
    "jobs": active, lookup_jid, list_job, list_jobs, list_jobs_filter, print_job, exit_success,
    last_run, on_master,
}

/// Where jobs are looked up.
enum Source {
    /// The master's own store.
    Own,
    /// A returner: `master_job_cache`, or another by name.
    Returner(String),
}

impl Source {
    /// Chooses: `ext_job_cache` before what the caller names, and that before `master_job_cache`.
    fn of(cx: &Cx, named: Option<&str>) -> Self {
        let option = |name: &str| cx.opt_str(name).map(|name| name.to_string());
        let all = [option("ext_job_cache"), named.map(str::to_owned), option("master_job_cache")];
        match all.into_iter().flatten().find(|name| !name.is_empty()) {
            Some(name) if !matches!(name.as_str(), "local_cache" | "salt_cache") => {
                Self::Returner(name)
            }
            _ => Self::Own,
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Own => "local_cache",
            Self::Returner(name) => name,
        }
    }

    /// Returns what is known of a job: `load`, `minions`, `returns`, each if there is any.
    fn job(&self, cx: &Cx, jid: &str) -> Result<Dict> {
        let Self::Returner(name) = self else { return stored(cx, jid) };
        flush(cx);
        let load = read(cx, name, "get_load", vec![jid.into()])?;
        let returns = read(cx, name, "get_jid", vec![jid.into()])?;
        let job = entries! { "returns" => returns };
        if load.truthy() {
            job.insert("load", load);
        }
        Ok(job)
    }

    /// Returns all jobs, each with its id.
    fn jobs(&self, cx: &Cx) -> Result<Vec<(String, Dict)>> {
        if let Self::Returner(name) = self {
            flush(cx);
            let jobs = read(cx, name, "get_jids", Vec::new())?;
            let jobs = jobs.as_dict().map(Dict::entries).unwrap_or_default();
            let pair = |(jid, load): (halite_value::Key, Value)| {
                Some((jid.to_str().to_string(), load.as_dict()?.clone()))
            };
            return Ok(jobs.into_iter().filter_map(pair).collect());
        }
        let jobs = match connected(cx) {
            Reached::Master(mut client) => client
                .call(&Request::Jobs { limit: None, filter: Dict::new() })
                .map_err(master::failed)?,
            Reached::Disk(store) => {
                history::jobs(&store, usize::MAX, |_| true).map_err(unreadable)?
            }
            Reached::Nothing => return Ok(Vec::new()),
        };
        let pair = |job: Value| Some((job.get_str("jid")?.to_string(), job.as_dict()?.clone()));
        Ok(jobs.items_of_sequence().unwrap_or_default().into_iter().filter_map(pair).collect())
    }
}

/// Calls a function of a returner.
fn read(cx: &Cx, returner: &str, function: &str, args: Vec<Value>) -> Result<Value> {
    let function = format!("{returner}.{function}");
    let call = Call { args, kwargs: Dict::new() };
    let answer = cx.runtime.call_extension(cx, "returners", &function, call)?;
    answer.ok_or_else(|| {
        Error::failed(format!("jobs cannot be read back: '{function}' is not available."))
    })
}

/// What the master has shown is to be found in a database too. Without a master there is nothing
/// to wait for.
fn flush(cx: &Cx) {
    let _ = master::ask(cx, &Request::Ask { what: "flush_jobs".into(), load: Dict::new() });
}

/// Whom jobs are asked of.
enum Reached {
    Master(Client),
    /// The master does not run: what it has left.
    Disk(Embedded),
    /// It never ran here, or ends or starts just now. Scripts that look for a return while the
    /// master restarts must not take that for a failure.
    Nothing,
}

fn connected(cx: &Cx) -> Reached {
    let error = match master::connect(cx) {
        Ok(client) => return Reached::Master(client),
        Err(error) => error,
    };
    let cachedir = cx.opt_str("cachedir").unwrap_or_default();
    match Embedded::frozen(&Path::new(cachedir.as_str()).join("halite")) {
        Ok(store) => Reached::Disk(store),
        Err(unread) => {
            tracing::error!("No jobs are shown: {error}; {unread}");
            Reached::Nothing
        }
    }
}

fn unreadable(error: halite_store::Error) -> Error {
    Error::failed(error.to_string())
}

/// Returns a job as the master remembers it.
fn stored(cx: &Cx, jid: &str) -> Result<Dict> {
    let job = match connected(cx) {
        Reached::Master(mut client) => {
            client.call(&Request::Job { jid: jid.into() }).map_err(master::failed)?
        }
        Reached::Disk(store) => history::job(&store, jid).map_err(unreadable)?,
        Reached::Nothing => Value::Null,
    };
    Ok(job.as_dict().cloned().unwrap_or_default())
}

/// Describes a job in Salt's words.
fn described(jid: &str, load: Option<&Dict>) -> Dict {
    let shown = match load {
        None => entries! { "Error" => "Cannot contact returner or no job with this jid" },
        Some(load) => {
            let or =
                |name: &str, default: &str| load.get(name).unwrap_or_else(|| Value::from(default));
            let shown = entries! {
                "Function" => or("fun", "unknown-function"),
                "Arguments" => load.get("arg").unwrap_or_else(|| Value::list(Vec::<Value>::new())),
                "Target" => or("tgt", "unknown-target"),
                "Target-type" => or("tgt_type", "list"),
                "User" => or("user", "root"),
            };
            if let Some(metadata) = metadata(load) {
                shown.insert("Metadata", metadata);
            }
            if let Some(minions) = load.get("Minions") {
                shown.insert("Minions", minions);
            }
            shown
        }
    };
    shown.insert("StartTime", start_time(jid));
    shown
}

fn metadata(load: &Dict) -> Option<Value> {
    let in_kwargs = || load.get("kwargs")?.get("metadata");
    let in_args = || {
        let args = load.get("arg")?.items_of_sequence()?;
        args.iter().filter(|arg| arg.get("__kwarg__").is_some()).find_map(|arg| arg.get("metadata"))
    };
    load.get("metadata").or_else(in_kwargs).or_else(in_args)
}

/// `20240131120000123456` → `2024, Jan 31 12:00:00.123456`
fn start_time(jid: &str) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let digits = jid.split('_').next().unwrap_or_default();
    if digits.len() != 20 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return String::new();
    }
    let month =
        digits[4..6].parse::<usize>().ok().and_then(|month| MONTHS.get(month.wrapping_sub(1)));
    format!(
        "{}, {} {} {}:{}:{}.{}",
        &digits[..4],
        month.unwrap_or(&"Jan"),
        &digits[6..8],
        &digits[8..10],
        &digits[10..12],
        &digits[12..14],
        &digits[14..]
    )
}

/// Return the jobs that minions are at, by job id.
///
/// ```console
/// $ salt-run jobs.active
/// ```
#[function]
pub fn active(
    cx: &Cx,
    /// Tell whom it asks and who answers.
    #[default(false)]
    display_progress: bool,
) -> Result<Dict> {
    let outcome = master::run(cx, &Job::new("*", "glob", "saltutil.running"), None)?;
    let jobs = Dict::new();
    if display_progress {
        let asked = Value::list(&outcome.published.minions).repr();
        let message = format!("Attempting to contact minions: {asked}");
        master::progress(cx, entries! { "message" => message })?;
    }
    for (minion, load) in outcome.returned {
        if display_progress {
            let message = format!("Received reply from minion {minion}");
            master::progress(cx, entries! { "message" => message })?;
        }
        let running = load.get("return").and_then(|ret| ret.items_of_sequence());
        for job in running.unwrap_or_default() {
            let (Some(jid), Some(data)) = (job.get_str("jid"), job.as_dict()) else { continue };
            let shown = jobs.get_or_insert_with(jid.as_str(), || {
                let shown = described(&jid, Some(data));
                shown.insert("Running", Value::list(Vec::<Value>::new()));
                shown.insert("Returned", Value::list(Vec::<Value>::new()));
                shown.into()
            });
            if let Some(Value::List(running)) = shown.get("Running") {
                running.push(dict! { minion.as_str() => job.get("pid").unwrap_or_default() });
            }
        }
    }
    for (jid, shown) in jobs.entries() {
        let returns = stored(cx, &jid.to_str())?.get("returns");
        if let (Some(Value::List(list)), Some(Value::Dict(returns))) =
            (shown.get("Returned"), returns)
        {
            list.extend(returns.keys().into_iter().map(Value::from));
        }
    }
    Ok(jobs)
}

/// Return what the minions returned to a job.
///
/// ```console
/// $ salt-run jobs.lookup_jid 20240131120000123456
/// ```
#[function]
pub fn lookup_jid(
    cx: &Cx,
    /// The job.
    jid: String,
    /// The returner to ask; the master's own cache if absent.
    ext_source: Option<String>,
    /// Show who returned.
    #[default(true)]
    returned: bool,
    /// Show who did not.
    #[default(false)]
    missing: bool,
    /// Tell how far the search is; it is too quick for that.
    #[default(false)]
    display_progress: bool,
) -> Result<Value> {
    let job = list_job(cx, jid, ext_source, display_progress)?;
    let returns = job.get("Result").and_then(|all| all.as_dict().cloned()).unwrap_or_default();
    let shown = Dict::new();
    if returned {
        for (minion, ret) in returns.entries() {
            shown.insert(minion, ret.get("return").unwrap_or_default());
        }
    }
    if missing {
        let minions = job.get("Minions").and_then(|ids| ids.items_of_sequence());
        for id in minions.unwrap_or_default() {
            if !returns.contains(id.to_str().as_str()) {
                shown.insert(id.to_str(), "Minion did not return");
            }
        }
    }
    let first = returns.values().into_iter().next();
    match first.and_then(|ret| ret.get_str("out")).filter(|out| !out.is_empty()) {
        Some(out) => Ok(dict! { "outputter" => out, "data" => shown }),
        None => Ok(shown.into()),
    }
}

/// Return everything about a job.
///
/// ```console
/// $ salt-run jobs.list_job 20240131120000123456
/// ```
#[function]
pub fn list_job(
    cx: &Cx,
    /// The job.
    jid: String,
    /// The returner to ask; the master's own cache if absent.
    ext_source: Option<String>,
    /// Tell what it asks.
    #[default(false)]
    display_progress: bool,
) -> Result<Dict> {
    let source = Source::of(cx, ext_source.as_deref());
    if display_progress {
        let message = format!("Querying returner: {}", source.name());
        master::progress(cx, entries! { "message" => message })?;
    }
    let job = source.job(cx, &jid)?;
    let load = job.get("load").and_then(|load| load.as_dict().cloned());
    let shown = entries! { "jid" => &jid };
    let described = described(&jid, load.as_ref());
    if let Some(minions) = job.get("minions").filter(Value::truthy)
        && load.is_some()
    {
        let start = described.remove("StartTime").unwrap_or_default();
        let mut minions: Vec<SmolStr> =
            minions.items_of_sequence().unwrap_or_default().iter().map(Value::to_str).collect();
        minions.sort();
        described.insert("Minions", Value::list(minions));
        described.insert("StartTime", start);
    }
    shown.update(&described);
    let result = match source {
        Source::Own => results(&job),
        // As it was written there, whole.
        Source::Returner(_) => {
            job.get("returns").and_then(|all| all.as_dict().cloned()).unwrap_or_default()
        }
    };
    shown.insert("Result", result);
    if cx.opt_bool("job_cache_store_endtime")
        && let Some(end) = end_time(&job)
    {
        shown.insert("EndTime", end);
    }
    Ok(shown)
}

/// Returns when the last return came, as the beginning of a job is told.
fn end_time(job: &Dict) -> Option<String> {
    let returns = job.get("returns")?.as_dict()?.values();
    let last = returns.iter().filter_map(|ret| ret.get_str("_stamp")).max()?;
    let digits: String = last.chars().take(26).filter(char::is_ascii_digit).collect();
    Some(start_time(&digits)).filter(|text| !text.is_empty())
}

/// Returns what is shown of the returns; the rest of them is known from the job.
fn results(job: &Dict) -> Dict {
    let Some(Value::Dict(returns)) = job.get("returns") else { return Dict::new() };
    let part = |load: &Value, name: &'static str| Some((name, load.get(name)?));
    let shown = |load: &Value| -> Dict {
        ["return", "retcode", "success", "out"].into_iter().filter_map(|n| part(load, n)).collect()
    };
    returns.entries().into_iter().map(|(id, load)| (id, shown(&load))).collect()
}

/// Return the jobs the master remembers, by job id; all given filters must fit.
///
/// ```console
/// $ salt-run jobs.list_jobs search_function='test.*,pkg.install' search_target='db*'
/// ```
#[function]
#[expect(clippy::too_many_arguments, reason = "Salt's own signature")]
pub fn list_jobs(
    cx: &Cx,
    /// The returner to ask; the master's own cache if absent.
    ext_source: Option<String>,
    /// The outputter to show them with.
    outputter: Option<String>,
    /// One of these must be in the job's metadata.
    search_metadata: Option<Dict>,
    /// Globs for the function.
    search_function: Option<Strings>,
    /// Globs for the target.
    search_target: Option<Strings>,
    /// Only jobs that began after this.
    start_time: Option<String>,
    /// Only jobs that began before this.
    end_time: Option<String>,
    /// Tell what it asks.
    #[default(false)]
    display_progress: bool,
) -> Result<Value> {
    let source = Source::of(cx, ext_source.as_deref());
    if display_progress {
        let message = format!("Querying returner {} for jobs.", source.name());
        master::progress(cx, entries! { "message" => message })?;
    }
    let start = start_time.as_deref().map(|text| time(cx, text)).transpose()?;
    let end = end_time.as_deref().map(|text| time(cx, text)).transpose()?;
    let mut found: Vec<(String, Dict)> = Vec::new();
    for (jid, load) in source.jobs(cx)? {
        // Job ids are times, and compare as such.
        if start.as_deref().is_some_and(|start| *jid < *start)
            || end.as_deref().is_some_and(|end| *jid > *end)
        {
            continue;
        }
        // A returner in Python describes them itself.
        let shown = if load.contains("Function") { load } else { described(&jid, Some(&load)) };
        let fits = |globs: &Option<Strings>, name: &str| {
            let Some(globs) = globs else { return true };
            let own = shown.get(name).unwrap_or_default();
            let own = own.items_of_sequence().unwrap_or_else(|| vec![own]);
            own.iter().any(|own| globs.iter().any(|glob| fnmatch(&own.to_str(), glob)))
        };
        let same = search_metadata.as_ref().is_none_or(|wanted| {
            let own = shown.get("Metadata").unwrap_or_default();
            wanted
                .entries()
                .iter()
                .any(|(name, value)| own.get(&name.to_str()).as_ref() == Some(value))
        });
        if same && fits(&search_target, "Target") && fits(&search_function, "Function") {
            found.push((jid, shown));
        }
    }
    found.sort_by(|one, other| one.0.cmp(&other.0));
    let found: Dict = found.into_iter().collect();
    Ok(match outputter {
        Some(outputter) => dict! { "outputter" => outputter, "data" => found },
        None => found.into(),
    })
}

/// Return the last few jobs.
///
/// ```console
/// $ salt-run jobs.list_jobs_filter 5
/// ```
#[function]
pub fn list_jobs_filter(
    cx: &Cx,
    /// How many.
    count: u64,
    /// Leave out questions about other jobs.
    #[default(true)]
    filter_find_job: bool,
    /// The returner to ask; the master's own cache if absent.
    ext_source: Option<String>,
    /// The outputter to show them with.
    outputter: Option<String>,
    /// Tell what it asks.
    #[default(false)]
    display_progress: bool,
) -> Result<Value> {
    let all = list_jobs(cx, ext_source, None, None, None, None, None, None, display_progress)?;
    let entries = all.as_dict().map(Dict::entries).unwrap_or_default();
    let wanted = entries.into_iter().rev().filter(|(_, job)| {
        !filter_find_job || job.get_str("Function").as_deref() != Some("saltutil.find_job")
    });
    let mut last: Vec<_> = wanted.take(usize::try_from(count).unwrap_or(usize::MAX)).collect();
    last.reverse();
    let named = |(jid, job): (halite_value::Key, Value)| {
        if let Value::Dict(job) = &job {
            job.insert("JID", jid.to_str());
        }
        job
    };
    let last = Value::list(last.into_iter().map(named));
    Ok(match outputter {
        Some(outputter) => dict! { "outputter" => outputter, "data" => last },
        None => last,
    })
}

/// Return everything about a job, under its id.
///
/// ```console
/// $ salt-run jobs.print_job 20240131120000123456
/// ```
#[function]
pub fn print_job(
    cx: &Cx,
    /// The job.
    jid: String,
    /// The returner to ask; the master's own cache if absent.
    ext_source: Option<String>,
) -> Result<Dict> {
    let job = list_job(cx, jid.clone(), ext_source, false)?;
    job.remove("jid");
    Ok(entries! { jid.as_str() => job })
}

/// Tell for each minion whether it returned something that counts as true.
///
/// ```console
/// $ salt-run jobs.exit_success 20240131120000123456
/// ```
#[function]
pub fn exit_success(
    cx: &Cx,
    /// The job.
    jid: String,
    /// The returner to ask; the master's own cache if absent.
    ext_source: Option<String>,
) -> Result<Dict> {
    let job = list_job(cx, jid, ext_source, false)?;
    let results = Dict::new();
    for id in job.get("Minions").and_then(|ids| ids.items_of_sequence()).unwrap_or_default() {
        results.insert(id.to_str(), false);
    }
    let returns = job.get("Result").and_then(|all| all.as_dict().map(Dict::entries));
    for (id, ret) in returns.unwrap_or_default() {
        results.insert(id, ret.get("return").is_some_and(|ret| ret.truthy()));
    }
    Ok(results)
}

/// Return the last job that fits; False if none does.
///
/// ```console
/// $ salt-run jobs.last_run function=cmd.run target=web1
/// ```
#[function]
pub fn last_run(
    cx: &Cx,
    /// The returner to ask; the master's own cache if absent.
    ext_source: Option<String>,
    /// The outputter to show it with.
    outputter: Option<String>,
    /// One of these must be in the job's metadata.
    metadata: Option<Dict>,
    /// Globs for the function.
    function: Option<Strings>,
    /// Globs for the target.
    target: Option<Strings>,
    /// Tell what it asks.
    #[default(false)]
    display_progress: bool,
) -> Result<Value> {
    let jobs = list_jobs(
        cx,
        ext_source.clone(),
        outputter,
        metadata,
        function,
        target,
        None,
        None,
        display_progress,
    )?;
    let jobs = jobs.get("data").filter(|_| jobs.get("outputter").is_some()).unwrap_or(jobs);
    let last = jobs.as_dict().and_then(|jobs| jobs.keys().pop());
    match last {
        Some(jid) => Ok(print_job(cx, jid.to_str().into(), ext_source)?.into()),
        None => Ok(false.into()),
    }
}

/// Return the runner jobs that run now.
///
/// ```console
/// $ salt-run jobs.master
/// ```
#[function(name = "master")]
pub fn on_master(cx: &Cx) -> Result<Value> {
    let own = format!("runner.{}", cx.job.fun);
    let mut running = cx.runtime.running();
    if !running.iter().any(|job| job.get_str("jid").is_some_and(|jid| *jid == *cx.job.jid)) {
        let user = if cx.job.user.is_empty() { "root" } else { cx.job.user.as_str() };
        running.push(halite_value::dict! {
            "fun" => own, "jid" => &cx.job.jid, "user" => user, "fun_args" => Vec::<Value>::new(),
            "_stamp" => stamp(&cx.job.jid), "pid" => std::process::id(),
        });
    }
    Ok(Value::list(running))
}

/// `20240131120000123456` → `2024-01-31T12:00:00.123456+00:00`
fn stamp(jid: &str) -> String {
    let part = |from: usize, to: usize| jid.get(from..to).unwrap_or_default();
    format!(
        "{}-{}-{}T{}:{}:{}.{}+00:00",
        part(0, 4),
        part(4, 6),
        part(6, 8),
        part(8, 10),
        part(10, 12),
        part(12, 14),
        part(14, 20)
    )
}

/// Reads a time people write, and returns the job id of that moment.
fn time(cx: &Cx, text: &str) -> Result<String> {
    if text.len() == 20 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(text.to_owned());
    }
    let _ = cx;
    moment(text).ok_or_else(|| Error::invalid(format!("`{text}` is not a time")))
}

/// `2024, Jan 31`, `2024-01-31 12:00`, `2024 Jan 31 12:00:01` → `20240131…`
fn moment(text: &str) -> Option<String> {
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let cleaned = text.replace([',', '-', '/', 'T'], " ");
    let (mut date, mut clock) = (Vec::new(), vec![0u32; 3]);
    for word in cleaned.split_whitespace() {
        if word.contains(':') {
            for (at, part) in word.split(':').take(3).enumerate() {
                clock[at] = part.split('.').next()?.parse().ok()?;
            }
        } else if let Ok(number) = word.parse::<u32>() {
            date.push(number);
        } else {
            let lower = word.to_lowercase();
            let month = MONTHS.iter().position(|name| lower.starts_with(name))?;
            date.push(u32::try_from(month + 1).ok()?);
        }
    }
    let [year, month, day] = match date.as_slice() {
        [year, month, day] if *year > 31 => [*year, *month, *day],
        [day, month, year] => [*year, *month, *day],
        _ => return None,
    };
    let valid = (1..=12).contains(&month) && (1..=31).contains(&day);
    valid.then(|| {
        format!("{year:04}{month:02}{day:02}{:02}{:02}{:02}000000", clock[0], clock[1], clock[2])
    })
}

#[cfg(test)]
mod tests {
    use halite_value::list;

    use super::*;

    #[test]
    fn job_ids_tell_the_time() {
        assert_eq!(start_time("20240131120001123456"), "2024, Jan 31 12:00:01.123456");
        assert_eq!(start_time("20240131120001123456_77"), "2024, Jan 31 12:00:01.123456");
        assert_eq!(start_time("soon"), "");
        assert_eq!(stamp("20240131120001123456"), "2024-01-31T12:00:01.123456+00:00");
    }

    #[test]
    fn the_last_return_ends_a_job() {
        let at = |stamp: &str| dict! { "return" => 1, "_stamp" => stamp };
        let returns = dict! {
            "a" => at("2024-01-31T12:00:01.123456+00:00"),
            "b" => at("2024-01-31T12:00:01.023456+00:00"),
        };
        let end = end_time(&entries! { "returns" => returns });
        assert_eq!(end.as_deref(), Some("2024, Jan 31 12:00:01.123456"));
        assert_eq!(end_time(&Dict::new()), None);
    }

    #[test]
    fn times_become_job_ids() {
        assert_eq!(moment("2024, Jan 31").unwrap(), "20240131000000000000");
        assert_eq!(moment("2024-01-31 12:05").unwrap(), "20240131120500000000");
        assert_eq!(moment("31 January 2024 12:05:09").unwrap(), "20240131120509000000");
        assert!(moment("soon").is_none() && moment("2024 13 1").is_none());
    }

    #[test]
    fn jobs_are_described() {
        let arg = list![1, dict! { "__kwarg__" => true, "metadata" => dict! { "a" => 1 } }];
        let load =
            entries! { "fun" => "test.arg", "arg" => arg, "tgt" => "*", "tgt_type" => "glob" };
        let shown = described("20240131120001123456", Some(&load));
        assert_eq!(shown.get("User"), Some("root".into()));
        assert_eq!(shown.get("Metadata"), Some(dict! { "a" => 1 }));
        assert!(described("x", None).contains("Error"));
    }
}
