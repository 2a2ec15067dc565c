//! `highstate`: what a state run did, state by state, and a summary per minion.
//!
//! A return is a dict of minions, perhaps inside the envelopes of the job cache and of runners
//! ([`unwrapped`]). Per minion ([`host`]) it is a dict of states keyed `module_|-id_|-name_|-fun`,
//! or a list of compile errors, or a text or number from an orchestrated function. States print in
//! the order of `__run_num__`, in full or on one line (`terse.rs`), by `state_output`; IDs with many
//! names can be rolled up first (`compress.rs`).
//!
//! Surprising: changes are shown by `nested`, unless they are the return of another state run
//! (`{"out": "highstate", "ret": …}` from `salt.state`, or a `state.sls` inside): then this
//! outputter shows them again, indented. A state that lacks what is to be shown makes the whole
//! return unfit, and `nested` takes over, showing the marks that the attempt has left ([`marked`]).

mod compress;
mod terse;

use halite_value::{Dict, Key, Value};
use smol_str::SmolStr;

use crate::{Color, Colors, Style, Unfit, nested, pprint, python, strip_escapes, textwrap};

/// The columns before the value of `Comment:` and its like.
const INDENT: usize = 14;

pub(crate) fn render(ret: &Value, style: &Style, out: &mut String) -> Result<(), Unfit> {
    match minions(ret, Job { style, marking: false }, 1) {
        Ok(text) => out.push_str(&text),
        Err(Unfit) => nested::render(&marked(ret, style), style, out)?,
    }
    Ok(())
}

/// Returns a copy of an unfit return as Salt leaves it behind after trying: durations of the states
/// it got through read `1.5 ms`, their comments are text, an orchestration's exit code is gone.
fn marked(ret: &Value, style: &Style) -> Value {
    let copy = ret.deep_copy();
    let _ = minions(&copy, Job { style, marking: true }, 1);
    copy
}

/// What stays the same throughout a return.
#[derive(Clone, Copy)]
struct Job<'a> {
    style: &'a Style,
    /// The data is our own copy, and to be marked.
    marking: bool,
}

/// Returns the reports of all minions in a return. `level` counts orchestrations within each other.
fn minions(ret: &Value, job: Job<'_>, level: usize) -> Result<String, Unfit> {
    let data = unwrapped(ret)?;
    let dict = match &data {
        Value::Str(text) => return Ok(text.to_string()),
        Value::Null => return Ok("None".into()),
        Value::Dict(dict) => dict,
        _ => return Err(Unfit),
    };
    let mut minions = Vec::with_capacity(dict.len());
    for (key, value) in dict {
        minions.push((SmolStr::new(key.as_str().ok_or(Unfit)?), value));
    }
    // An orchestration returns its exit code beside its one master.
    if minions.iter().filter(|(id, _)| id.ends_with("_master")).count() == 1 {
        minions.retain(|(id, _)| id != "retcode");
        if job.marking {
            dict.remove("retcode");
        }
    }
    if job.style.state_compress_ids {
        minions = compress::by_id(minions, job.marking);
    }
    let reports = minions.iter().map(|(id, data)| Ok(host(id, data, job, level)?.0));
    Ok(reports.collect::<Result<Vec<_>, Unfit>>()?.join("\n"))
}

/// Takes off the envelopes that runners and the job cache put around a return.
fn unwrapped(ret: &Value) -> Result<Value, Unfit> {
    let mut data = ret.clone();
    for name in ["return", "data"] {
        if let Some(inner) = data.get(name) {
            data = inner;
        }
    }
    if let Some(dict) = data.as_dict()
        && dict.len() == 1
        && let Some(Value::Dict(job)) = dict.values().first()
        && job.contains("jid")
        && job.contains("fun")
    {
        return match job.get("return") {
            None => Ok(data),
            Some(Value::Dict(ret)) => Ok(ret.get("data").unwrap_or(data)),
            Some(_) => Err(Unfit),
        };
    }
    Ok(data)
}

/// Returns the report of one minion, and whether anything changed on it.
fn host(id: &str, data: &Value, job: Job<'_>, level: usize) -> Result<(String, bool), Unfit> {
    let (style, colors) = (job.style, &job.style.colors);
    let mut report = Report::new(job, level);
    match data {
        Value::Int(_) | Value::Bool(_) | Value::BigInt(_) => report.value(&data.to_str()),
        Value::Str(text) => python::lines(text).for_each(|line| report.value(line)),
        Value::List(errors) => report.errors(&errors.to_vec())?,
        Value::Dict(states) => {
            report.states(states)?;
            report.summary(id);
        }
        _ => {}
    }
    if matches!(data, Value::Int(_) | Value::Bool(_) | Value::BigInt(_) | Value::Str(_)) {
        // From an orchestrated function: always a change, and the name in cyan.
        (report.changed, report.color) = (1, Color::Cyan);
    }
    let id = if style.strip_colors { strip_escapes(id) } else { id.into() };
    let title = format!("{}{id}:{}", colors.get(report.color), colors.end());
    report.lines.insert(0, title);
    Ok((report.lines.join("\n"), report.changed > 0))
}

/// The report of one minion while it grows.
struct Report<'a> {
    job: Job<'a>,
    style: &'a Style,
    colors: &'a Colors,
    level: usize,
    lines: Vec<String>,
    /// The colour of the minion's name: that of the last state which failed or would change.
    color: Color,
    /// How many states made changes.
    changed: usize,
    /// How many states had each result. Python's dict: `1` counts as `True`.
    results: Vec<(Key, usize)>,
    warnings: usize,
    /// In milliseconds; states in parallel count with the longest only.
    duration: f64,
    parallel: Option<f64>,
}

/// One state on its way to the report.
struct State<'a> {
    ret: &'a Dict,
    /// Module, ID, name, function.
    parts: Vec<SmolStr>,
    result: Value,
    changes: Value,
    changed: bool,
    color: Color,
}

impl State<'_> {
    fn part(&self, index: usize) -> Result<&str, Unfit> {
        self.parts.get(index).map(SmolStr::as_str).ok_or(Unfit)
    }
}

impl<'a> Report<'a> {
    fn new(job: Job<'a>, level: usize) -> Self {
        Self {
            job,
            style: job.style,
            colors: &job.style.colors,
            level,
            lines: Vec::new(),
            color: Color::Green,
            changed: 0,
            results: Vec::new(),
            warnings: 0,
            duration: 0.0,
            parallel: None,
        }
    }

    fn colored(&mut self, color: Color, text: &str) {
        let line = [self.colors.get(color), text, self.colors.end()].concat();
        self.lines.push(line);
    }

    fn value(&mut self, line: &str) {
        self.colored(Color::Green, &format!("    {line}"));
    }

    fn errors(&mut self, errors: &[Value]) -> Result<(), Unfit> {
        self.color = Color::LightRed;
        let (red, end) = (self.colors.get(Color::LightRed), self.colors.end());
        self.lines.push(format!("    {red}Data failed to compile:{end}"));
        for error in errors {
            let text = if self.style.strip_colors {
                strip_escapes(&python::decoded(error)?.to_str()).into()
            } else {
                error.to_str()
            };
            self.lines.push(format!("{red}----------\n    {text}{end}"));
        }
        Ok(())
    }

    fn states(&mut self, states: &Dict) -> Result<(), Unfit> {
        let mut order = Vec::with_capacity(states.len());
        for (tag, value) in states {
            let Value::Dict(ret) = value else { continue };
            if *tag.value() != *"changes" && !ret.is_empty() && !ret.contains("__run_num__") {
                let missing = "The State execution failed to record the order in which all states \
                               were executed. The state return missing data is:";
                let data = pprint::pformat(&Value::Dict(ret.clone()), 1);
                self.lines.splice(0..0, [missing.to_owned(), data]);
            }
            if ret.contains("result") {
                let number = ret.get("__run_num__").unwrap_or(Value::Int(0));
                order.push((number, tag, ret));
            }
        }
        let order = python::sorted(order, &|(a, ..), (b, ..)| python::less(a, b)).ok_or(Unfit)?;
        order.iter().try_for_each(|(_, tag, ret)| self.state(tag.as_str().ok_or(Unfit)?, ret))
    }

    fn state(&mut self, tag: &str, ret: &Dict) -> Result<(), Unfit> {
        let result = ret.get("result").ok_or(Unfit)?;
        let times = if self.style.state_compress_ids { compress::times(tag)? } else { 1 };
        self.count(&result, times)?;
        self.time(ret)?;
        let changes = ret.get("changes").ok_or(Unfit)?;
        let (changed, text) = self.changes(ret, &changes, times)?;
        let quiet = !self.style.state_verbose || self.style.state_output_diff;
        if quiet && result.truthy() && !changed {
            return Ok(());
        }
        let color = match result {
            Value::Bool(false) => Color::Red,
            Value::Null => Color::LightYellow,
            _ if changed => Color::Cyan,
            _ => Color::Green,
        };
        if matches!(result, Value::Bool(false) | Value::Null) {
            self.color = color;
        }
        let mode = self.style.state_output.to_lowercase();
        let mut parts: Vec<SmolStr> = tag.split("_|-").map(SmolStr::new).collect();
        if mode.ends_with("_id") {
            let id = parts.get(1).cloned().ok_or(Unfit)?;
            *parts.get_mut(2).ok_or(Unfit)? = id;
        }
        let state = State { ret, parts, result, changes, changed, color };
        match self.view(&mode, &state)? {
            View::Nothing => {}
            View::Terse => self.lines.push(terse::line(&state, self.style)?),
            View::Full => self.full(&state, &text)?,
        }
        Ok(())
    }

    fn count(&mut self, result: &Value, times: usize) -> Result<(), Unfit> {
        match self.results.iter_mut().find(|(own, _)| own.value() == result) {
            Some((_, count)) => *count += times,
            None => {
                let key = Key::try_from(result.clone()).map_err(|_| Unfit)?;
                self.results.push((key, times));
            }
        }
        Ok(())
    }

    fn time(&mut self, ret: &Dict) -> Result<(), Unfit> {
        let duration = match ret.get("duration") {
            None => 0.0,
            Some(Value::Str(text)) => {
                let number = text.split(" ms").next().unwrap_or("");
                let Some(float) = python::parse_float(&text).or(python::parse_float(number)) else {
                    return Ok(());
                };
                float
            }
            Some(value) => value.as_float().ok_or(Unfit)?,
        };
        if ret.contains("__parallel__") {
            self.parallel = Some(self.parallel.map_or(duration, |most| most.max(duration)));
        } else {
            self.duration += duration;
        }
        Ok(())
    }

    /// Tells whether the state changed anything, and returns the text behind `Changes:`.
    fn changes(
        &mut self,
        ret: &Dict,
        changes: &Value,
        times: usize,
    ) -> Result<(bool, String), Unfit> {
        let orchestration = ret.get("name").is_some_and(|name| {
            ["state.orch", "state.orchestrate", "state.sls"].iter().any(|own| name == *own)
        });
        if orchestration {
            self.changed += 1;
            let inner = minions(changes, self.job, self.level + 1)?;
            let margin = " ".repeat(INDENT * self.level);
            return Ok((true, indented_lines(&inner, &margin)));
        }
        let (changed, text) = self.changes_text(changes)?;
        if changed {
            self.changed += match changes {
                _ if times == 1 => 1,
                Value::Dict(dict) => compress::changes_in(dict)?,
                _ => return Err(Unfit),
            };
        }
        Ok((changed, text))
    }

    fn changes_text(&self, changes: &Value) -> Result<(bool, String), Unfit> {
        if !changes.truthy() {
            return Ok((false, String::new()));
        }
        let Value::Dict(dict) = changes else {
            return Ok((true, format!("Invalid Changes data: {changes}")));
        };
        match dict.get("ret").filter(|ret| !ret.is_null()) {
            Some(ret) if dict.get("out").is_some_and(|out| out == "highstate") => {
                let mut any = false;
                let mut text = String::new();
                for (id, data) in ret.as_dict().ok_or(Unfit)? {
                    let (report, changed) = host(&id.to_str(), &data, self.job, 1)?;
                    any |= changed;
                    text.push('\n');
                    for (index, line) in python::lines(&report).enumerate() {
                        if index > 0 {
                            text.push('\n');
                        }
                        python::pad(&mut text, INDENT);
                        text.push_str(line);
                    }
                }
                Ok((any, text))
            }
            _ => {
                let mut outline = String::new();
                nested::outline(changes, self.style, INDENT, 0, &mut outline);
                Ok((true, format!("\n{}", python::trim_end(&outline))))
            }
        }
    }

    fn view(&self, mode: &str, state: &State<'_>) -> Result<View, Unfit> {
        if mode.starts_with("filter") {
            return self.filtered(&state.result.to_str());
        }
        let failed = matches!(state.result, Value::Bool(false));
        let short = mode.starts_with("terse")
            || (mode.starts_with("mixed") && !failed)
            || (mode.starts_with("changes") && state.result.truthy() && !state.changed);
        Ok(if short { View::Terse } else { View::Full })
    }

    fn filtered(&self, result: &str) -> Result<View, Unfit> {
        let argument = |name: &str| {
            let kwargs = self.style.arg.iter().rev().find(|arg| arg.get("__kwarg__").is_some())?;
            kwargs.get(name)
        };
        let listed = |name: &str, option: &Value| match argument(name).unwrap_or(option.clone()) {
            Value::Str(text) => Ok(text.split(',').any(|item| item == result)),
            other => python::contains(&other, result),
        };
        if listed("terse", &self.style.state_output_terse)? {
            return Ok(View::Terse);
        }
        let excluded = listed("exclude", &self.style.state_output_exclude)?;
        Ok(if excluded { View::Nothing } else { View::Full })
    }

    fn full(&mut self, state: &State<'_>, changes: &str) -> Result<(), Unfit> {
        let ret = state.ret;
        let color = state.color;
        let (id, name) = (state.part(1)?, state.part(2)?);
        self.colored(color, "----------");
        self.detail(color, "      ID", id);
        self.detail(color, "Function", &format!("{}.{}", state.part(0)?, state.part(3)?));
        if id != name {
            self.detail(color, "    Name", name);
        }
        self.detail(color, "  Result", &state.result.to_str());
        self.detail(color, " Comment", &comment(ret)?);
        if let Some(start) = ret.get("start_time").filter(|_| self.style.state_output_profile) {
            self.detail(color, " Started", &start.to_str());
            let duration = match ret.get("duration") {
                Some(duration) if duration != *"" => format!("{duration} ms"),
                _ => String::new(),
            };
            self.detail(color, "Duration", &duration);
        }
        self.colored(color, &format!("     Changes:   {changes}"));
        if self.job.marking {
            mark(ret);
        }
        if let Some(warnings) = ret.get("warnings") {
            self.warnings += 1;
            let text = textwrap::fill(&joined(&warnings)?, 80, INDENT);
            let text = text.trim_start_matches(python::is_space);
            let (red, end) = (self.colors.get(Color::LightRed), self.colors.end());
            self.lines.push(format!("   {red} Warnings: {text}{end}"));
        }
        Ok(())
    }

    fn detail(&mut self, color: Color, label: &str, text: &str) {
        let (color, end) = (self.colors.get(color), self.colors.end());
        self.lines.push(format!("    {color}{label}: {text}{end}"));
    }

    fn count_of(&self, result: &Value) -> usize {
        let found = self.results.iter().find(|(own, _)| own.value() == result);
        found.map_or(0, |(_, count)| *count)
    }

    fn summary(&mut self, id: &str) {
        let would_change = self.count_of(&Value::Null);
        let succeeded = self.count_of(&Value::Bool(true)) + would_change;
        let failed = self.count_of(&Value::Bool(false));
        let total: usize = self.results.iter().map(|(_, count)| count).sum();
        let counts = self.results.iter().map(|(_, count)| *count);
        let counts = counts.chain((self.warnings > 0).then_some(self.warnings));
        let digits = counts.map(|count| count.to_string().len()).max().unwrap_or(0);
        // The longest label, a colon, a space, the longest count.
        let width = "Succeeded".len() + 2 + digits;
        let rule = "-".repeat(width);
        let row = |label: &str, count: &str| {
            format!("{label}: {count:>0$}", width.saturating_sub(label.len() + 2))
        };
        let failure = if failed > 0 { Color::Red } else { Color::Cyan };

        self.colored(Color::Cyan, &format!("\nSummary for {id}\n{rule}"));
        self.colored(Color::Green, &row("Succeeded", &succeeded.to_string()));
        let notes = self.notes(would_change);
        if let Some(line) = self.lines.last_mut() {
            line.push_str(&notes);
        }
        self.colored(failure, &row("Failed", &failed.to_string()));
        if self.style.state_output_pct && total > 0 {
            let percent = |count: usize| {
                let percent = python::round(count as f64 / total as f64 * 100.0, 2);
                halite_value::float_repr(percent)
            };
            self.colored(Color::Green, &row("Success %", &percent(succeeded)));
            self.colored(failure, &row("Failure %", &percent(failed)));
        }
        if self.warnings > 0 {
            self.colored(Color::LightRed, &row("Warnings", &self.warnings.to_string()));
        }
        let total = format!("{rule}\nTotal states run: {total:>0$}", width.saturating_sub(7));
        self.colored(Color::Cyan, &total);
        if self.style.state_output_profile {
            let time = self.run_time(width.saturating_sub(5));
            self.colored(Color::Cyan, &time);
        }
    }

    /// Returns ` (unchanged=1, changed=2)`, or nothing.
    fn notes(&self, would_change: usize) -> String {
        let note = |color, word: &str, count: usize| {
            let (color, end) = (self.colors.get(color), self.colors.end());
            (count > 0).then(|| format!("{color}{word}={count}{end}"))
        };
        let notes: Vec<String> = [
            note(Color::LightYellow, "unchanged", would_change),
            note(Color::Green, "changed", self.changed),
        ]
        .into_iter()
        .flatten()
        .collect();
        if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) }
    }

    fn run_time(&self, width: usize) -> String {
        let total = self.duration + self.parallel.unwrap_or(0.0);
        let (time, unit) = if total > 999.0 { (total / 1000.0, "s") } else { (total, "ms") };
        let time = if time.is_nan() { "nan".to_owned() } else { format!("{time:.3}") };
        format!("Total run time: {time:>width$} {unit}")
    }
}

fn mark(ret: &Dict) {
    ret.insert("comment", ret.get("comment").unwrap_or_default().to_str());
    for name in ["start_time", "duration"] {
        ret.get_or_insert_with(name, || Value::from(""));
    }
    if let Some(duration) = ret.get("duration").filter(|duration| *duration != *"") {
        ret.insert("duration", format!("{duration} ms"));
    }
}

enum View {
    Nothing,
    Terse,
    Full,
}

/// Returns the comment and, behind it, what states put into `data`.
fn comment(ret: &Dict) -> Result<String, Unfit> {
    use std::fmt::Write as _;
    let text = ret.get("comment").ok_or(Unfit)?.to_str();
    let mut comment = python::trim(&text).replace('\n', &format!("\n{}", " ".repeat(INDENT)));
    let written = match ret.get("data") {
        None => Ok(()),
        Some(Value::List(items)) => {
            (&items).into_iter().try_for_each(|item| write!(comment, " {item}"))
        }
        Some(Value::Dict(dict)) => {
            (&dict).into_iter().try_for_each(|(key, value)| write!(comment, "\n\t\t{key}: {value}"))
        }
        Some(other) => write!(comment, " {other}"),
    };
    written.map_err(|_| Unfit)?;
    Ok(comment)
}

/// Joins lines as Python's `"\n".join` does, which takes a text for a list of letters.
fn joined(lines: &Value) -> Result<String, Unfit> {
    let line = |value: &Value| value.as_str().map(str::to_owned).ok_or(Unfit);
    let lines: Vec<String> = match lines {
        Value::Str(text) => text.chars().map(String::from).collect(),
        Value::Dict(dict) => dict.keys().iter().map(|key| line(key)).collect::<Result<_, _>>()?,
        other => {
            let items = other.items_of_sequence().ok_or(Unfit)?;
            items.iter().map(line).collect::<Result<_, _>>()?
        }
    };
    Ok(lines.join("\n"))
}

/// Puts a margin before a line end, and before each line that follows.
fn indented_lines(text: &str, margin: &str) -> String {
    let mut out = margin.to_owned();
    for line in text.split('\n') {
        out.push('\n');
        out.push_str(margin);
        out.push_str(line);
    }
    out
}
