//! `at`: jobs for later, over the programs of that family.
//!
//! A tag is a comment in the job's script: `### SALT: tag`.

use halite_spec::{Command, Cx, Need, Rest, Result, function, module};
use halite_value::{Dict, List, Value, dict, entries};

module! {
    /// Jobs for later.
    "at", needs = [
        Need::program(&["at"], "The at module could not be loaded: at command not found; The at module could not be loaded: unsupported platform"),
    ]: atq, atc, atrm, at, jobcheck,
}

fn look(cx: &Cx, words: &[&str]) -> Result<String> {
    Ok(cx.host.run(&Command::line(words.iter().copied()).query())?.stdout_text())
}

fn tag_of(cx: &Cx, job: &str) -> Result<String> {
    let text = look(cx, &["at", "-c", job])?;
    let line = text.lines().find_map(|line| line.strip_prefix("### SALT: "));
    Ok(line.unwrap_or_default().trim().to_owned())
}

/// The jobs that wait; only those with a number or a tag, if one is given.
fn waiting(cx: &Cx, tag: Option<&Value>) -> Result<Vec<Value>> {
    let mut found = Vec::new();
    // `1  Mon Nov 16 02:11:00 2026 a root`
    for line in look(cx, &["atq"])?.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [job, _, month, day, time, year, queue, user, ..] = words.as_slice() else { continue };
        let own = tag_of(cx, job)?;
        let wanted = tag.is_none_or(|tag| {
            let tag = tag.to_string();
            tag == *job || tag == own
        });
        if !wanted {
            continue;
        }
        let months = "JanFebMarAprMayJunJulAugSepOctNovDec";
        let month = months.find(month).map_or(0, |at| at / 3 + 1);
        let clock: Vec<&str> = time.split(':').take(2).collect();
        let number = job.parse::<i64>().map_or_else(|_| Value::from(*job), Value::from);
        found.push(dict! {
            "job" => number, "date" => format!("{year}-{month:02}-{day:0>2}"),
            "time" => clock.join(":"), "queue" => *queue, "user" => *user, "tag" => own,
        });
    }
    Ok(found)
}

/// Return the jobs that wait.
///
/// ```console
/// $ salt web1 at.atq tag=report
/// ```
#[function]
pub fn atq(
    cx: &Cx,
    /// Only those with this tag or number.
    tag: Option<Value>,
) -> Result<Dict> {
    Ok(entries! { "jobs" => Value::list(waiting(cx, tag.as_ref())?) })
}

/// Return the script of a job.
///
/// ```console
/// $ salt '*' at.atc 10
/// ```
#[function]
pub fn atc(
    cx: &Cx,
    /// The job.
    jobid: Value,
) -> Result<String> {
    let job = jobid.to_string();
    let output = cx.host.run(&Command::line(["at", "-c", &job]).query())?;
    if !output.ok() || job.parse::<u64>().is_err() {
        return Ok(format!("invalid job id '{job}'"));
    }
    Ok(output.stdout_text().trim_end().to_owned())
}

/// Remove jobs, by number or tag; `all` removes everything.
///
/// ```console
/// $ salt web1 at.atrm
/// ```
#[function]
pub fn atrm(
    cx: &Cx,
    /// Numbers and tags.
    args: Rest,
) -> Result<Value> {
    if args.args.is_empty() {
        let jobs = Dict::new();
        jobs.insert("removed", List::new());
        jobs.insert("tag", Value::Null);
        return Ok(Value::Dict(entries! { "jobs" => jobs }));
    }
    let all = args.args.iter().any(|arg| arg.as_str() == Some("all"));
    let mut numbers = Vec::new();
    for job in waiting(cx, None)? {
        let number = job.get("job").unwrap_or_default();
        let tag = job.get_str("tag").unwrap_or_default();
        let named = args.args.iter().any(|arg| {
            arg.to_string() == number.to_string() || (!tag.is_empty() && arg.to_str() == tag)
        });
        if all || named {
            numbers.push(number);
        }
    }
    if !numbers.is_empty() {
        cx.host.run(&Command::line(["at", "-d"]).args(numbers.iter().map(Value::to_string)))?;
    }
    let left = waiting(cx, None)?;
    let gone: Vec<Value> = numbers
        .into_iter()
        .filter(|number| !left.iter().any(|job| job.get("job").as_ref() == Some(number)))
        .collect();
    let tag = args.args.first().cloned().unwrap_or_default();
    let jobs = entries! { "removed" => Value::list(gone), "tag" => tag };
    Ok(Value::Dict(entries! { "jobs" => jobs }))
}

/// Leave a job: when, then the command.
///
/// ```console
/// $ salt web1 at.at
/// ```
#[function]
pub fn at(
    cx: &Cx,
    /// When, and the words of the command; `tag` and `runas`.
    args: Rest,
) -> Result<Dict> {
    let [when, words @ ..] = args.args.as_slice() else {
        return Ok(entries! { "jobs" => List::new() });
    };
    if words.is_empty() {
        return Ok(entries! { "jobs" => List::new() });
    }
    let script: Vec<String> = words.iter().map(Value::to_string).collect();
    let mut script = script.join(" ");
    let tag = args.kwargs.get("tag").filter(Value::truthy).map(|tag| tag.to_string());
    if let Some(tag) = &tag {
        script = format!("### SALT: {tag}\n{script}");
    }
    let mut command = Command::line(["at", &when.to_string()]);
    command.user = args.kwargs.get("runas").filter(Value::truthy).map(|user| user.to_string());
    command.stdin = Some(format!("{script}\n").into_bytes());
    let output = cx.host.run(&command)?;
    let mut text = output.stderr_text();
    text += &output.stdout_text();
    if text.contains("Garbled time") || !output.ok() {
        let error = if text.contains("Garbled") { "invalid timespec" } else { text.trim() };
        return Ok(entries! { "jobs" => List::new(), "error" => error });
    }
    // `job 5 at Mon Nov 16 02:11:00 2026`
    let line = text.lines().find(|line| line.starts_with("job "));
    let number = line.and_then(|line| line.split_whitespace().nth(1)).map(Value::from);
    Ok(entries! { "jobs" => Value::list(waiting(cx, number.as_ref())?) })
}

/// Return the jobs that fit: `job`, `tag`, `user`, `hour`, `minute`, `day`, `month`, `year`.
///
/// ```console
/// $ salt web1 at.jobcheck
/// ```
#[function]
pub fn jobcheck(
    cx: &Cx,
    /// What must fit.
    kwargs: Rest,
) -> Result<Value> {
    if kwargs.kwargs.is_empty() {
        return Ok(entries! { "error" => "You have given a condition" }.into());
    }
    let mut found = waiting(cx, None)?;
    found.retain(|job| {
        let text = |key: &str| job.get(key).map(|value| value.to_string()).unwrap_or_default();
        let part = |key: &str, by: char, at: usize| {
            text(key).split(by).nth(at).map(|part| part.trim_start_matches('0').to_owned())
        };
        kwargs.kwargs.entries().iter().all(|(key, wanted)| {
            let wanted = wanted.to_string();
            let short = wanted.trim_start_matches('0').to_owned();
            match key.to_str().as_str() {
                "runas" | "user" => text("user") == wanted,
                "tag" | "job" | "queue" => text(&key.to_str()) == wanted,
                "year" => part("date", '-', 0) == Some(short),
                "month" => part("date", '-', 1) == Some(short),
                "day" => part("date", '-', 2) == Some(short),
                "hour" => part("time", ':', 0) == Some(short),
                "minute" => part("time", ':', 1) == Some(short),
                _ => true,
            }
        })
    });
    let ret = Dict::new();
    ret.insert("note", "No match jobs or time format error");
    if !found.is_empty() {
        ret.remove("note");
    }
    ret.insert("jobs", Value::list(found));
    Ok(ret.into())
}
