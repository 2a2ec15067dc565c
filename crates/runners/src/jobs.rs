//! `jobs`: jobs that run and jobs that have run.

use halite_client::{Job, Request};
use halite_spec::{Cx, Result, Strings, function, module};
use halite_target::fnmatch::fnmatch;
use halite_value::{Dict, Value, dict, entries};

use crate::master;

module! {
    /// Jobs that run and jobs that have run.
    "jobs": active, lookup_jid, list_job, list_jobs, list_jobs_filter, print_job, exit_success,
    last_run,
}

/// Returns a job as the master remembers it.
fn stored(cx: &Cx, jid: &str) -> Result<Dict> {
    let job = master::ask(cx, &Request::Job { jid: jid.into() })?;
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
pub fn active(cx: &Cx) -> Result<Dict> {
    let outcome = master::run(cx, &Job::new("*", "glob", "saltutil.running"), None)?;
    let jobs = Dict::new();
    for (minion, load) in outcome.returned {
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
    let _ = display_progress;
    let job = list_job(cx, jid)?;
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
) -> Result<Dict> {
    let job = stored(cx, &jid)?;
    let load = job.get("load").and_then(|load| load.as_dict().cloned());
    let shown = entries! { "jid" => &jid };
    let described = described(&jid, load.as_ref());
    if let Some(minions) = job.get("minions").filter(Value::truthy)
        && load.is_some()
    {
        let start = described.remove("StartTime").unwrap_or_default();
        described.insert("Minions", minions);
        described.insert("StartTime", start);
    }
    shown.update(&described);
    shown.insert("Result", job.get("returns").unwrap_or_else(Value::dict));
    Ok(shown)
}

/// Return the jobs the master remembers, by job id; all given filters must fit.
///
/// ```console
/// $ salt-run jobs.list_jobs search_function='test.*,pkg.install' search_target='db*'
/// ```
#[function]
pub fn list_jobs(
    cx: &Cx,
    /// The outputter to show them with.
    outputter: Option<String>,
    /// One of these must be in the job's metadata.
    search_metadata: Option<Dict>,
    /// Globs for the function.
    search_function: Option<Strings>,
    /// Globs for the target.
    search_target: Option<Strings>,
) -> Result<Value> {
    let jobs = master::ask(cx, &Request::Jobs { limit: None, filter: Dict::new() })?;
    let mut found: Vec<(String, Dict)> = Vec::new();
    for job in jobs.items_of_sequence().unwrap_or_default() {
        let (Some(jid), Some(load)) = (job.get_str("jid"), job.as_dict()) else { continue };
        let shown = described(&jid, Some(load));
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
            found.push((jid.to_string(), shown));
        }
    }
    found.sort_by(|one, other| one.0.cmp(&other.0));
    let found: Dict = found.into_iter().collect();
    Ok(match outputter {
        Some(outputter) => dict! { "outputter" => outputter, "data" => found },
        None => found.into(),
    })
}

/// Return the last few jobs, by job id.
///
/// ```console
/// $ salt-run jobs.list_jobs_filter 50
/// ```
#[function]
pub fn list_jobs_filter(
    cx: &Cx,
    /// How many.
    count: u64,
    /// Leave out questions about other jobs.
    #[default(true)]
    filter_find_job: bool,
) -> Result<Dict> {
    let all = list_jobs(cx, None, None, None, None)?;
    let entries = all.as_dict().map(Dict::entries).unwrap_or_default();
    let wanted = entries.into_iter().rev().filter(|(_, job)| {
        !filter_find_job || job.get_str("Function").as_deref() != Some("saltutil.find_job")
    });
    let mut last: Vec<_> = wanted.take(usize::try_from(count).unwrap_or(usize::MAX)).collect();
    last.reverse();
    Ok(last.into_iter().collect())
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
) -> Result<Dict> {
    let job = list_job(cx, jid.clone())?;
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
) -> Result<Dict> {
    let job = list_job(cx, jid)?;
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
    /// One of these must be in the job's metadata.
    metadata: Option<Dict>,
    /// Globs for the function.
    function: Option<Strings>,
    /// Globs for the target.
    target: Option<Strings>,
) -> Result<Value> {
    let jobs = list_jobs(cx, None, metadata, function, target)?;
    let last = jobs.as_dict().and_then(|jobs| jobs.keys().pop());
    match last {
        Some(jid) => Ok(print_job(cx, jid.to_str().into())?.into()),
        None => Ok(false.into()),
    }
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
