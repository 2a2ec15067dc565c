//! The shape of a state's return: the dicts outputters, job caches and reactors know.
//!
//! What a state itself answers is an [`Outcome`]; this file makes the returns of states that never
//! got that far, and asks the few questions the run has about a return.

use std::time::Duration;

use halite_spec::{Error, Outcome};
use halite_value::{Dict, Place, Value, entries};

use super::listen::Named;
use crate::{Low, Problem, tag};

/// Tells whether a field of a return or a chunk is there and true.
pub(super) fn is_set(dict: &Dict, key: &str) -> bool {
    dict.get(key).is_some_and(|value| value.truthy())
}

pub(super) fn has_changes(ret: &Dict) -> bool {
    is_set(ret, "changes")
}

pub(super) fn is_failure(ret: &Dict) -> bool {
    ret.get("result") == Some(Value::Bool(false))
}

/// Writes whose return it is.
pub(super) fn sign(ret: &Dict, low: &Low) {
    for key in ["__sls__", "__id__", "name"] {
        ret.insert(key, low.get(key));
    }
}

/// The return of a state that its requisites kept from running.
pub(super) fn not_run(low: &Low, result: bool, comment: &str, number: i64) -> Dict {
    let ret = entries! {
        "changes" => Value::dict(), "result" => result, "duration" => 0.0,
        "start_time" => time_of_day(), "comment" => comment, "__state_ran__" => false,
        "__run_num__" => number,
    };
    sign(&ret, low);
    ret
}

/// The return of a state that its guards kept from running.
pub(super) fn not_wanted(low: &Low, comment: &str) -> Dict {
    entries! {
        "result" => true, "name" => low.get("name").unwrap_or_default(),
        "changes" => Value::dict(), "comment" => comment, "__sls__" => low.get("__sls__"),
        "__id__" => low.get("__id__"), "skip_watch" => true,
    }
}

/// The return of a state that the engine could not run.
pub(super) fn failed(low: &Low, comment: &str) -> Dict {
    let ret = Outcome::failed(comment).to_value(&low.get("name").unwrap_or_default());
    for key in ["__sls__", "__id__"] {
        if let Some(value) = low.get(key) {
            ret.insert(key, value);
        }
    }
    ret
}

/// The return of one part of a state (`sub_state_run`), with the tag it is filed under.
pub(super) fn part(
    part: &Value,
    low: &Low,
    number: impl FnOnce() -> i64,
) -> Option<(String, Dict)> {
    let Some(Value::Dict(own)) = part.get("low") else { return None };
    let or = |key: &str, usual: Value| part.get(key).unwrap_or(usual);
    let ret = entries! {
        "name" => own.get("name"), "changes" => part.get("changes"),
        "result" => part.get("result"), "duration" => or("duration", Value::Float(0.0)),
        "start_time" => or("start_time", time_of_day().into()), "comment" => or("comment", "".into()),
        "__state_ran__" => true, "__run_num__" => number(),
        "__sls__" => low.get("__sls__"), "__id__" => low.get("__id__"),
    };
    Some((tag(&own), ret))
}

/// The return that stands for a `listen` that names no state, with its tag.
pub(super) fn listens_to_nothing(
    (state, name): &Named,
    place: Option<&Place>,
    near: Option<String>,
) -> (String, Dict) {
    let tag = format!("Listen_Error_|-listen_{name}_|-listen_{state}_|-Listen_Error");
    let problem = Problem::new(format!("Referenced state {state}: {name} does not exist"));
    let problem = problem.at(place);
    let problem = match near {
        Some(near) => problem.help(format!("did you mean `{near}`?")),
        None => problem,
    };
    let ret = entries! {
        "comment" => problem.to_string(),
        "name" => format!("listen_{state}:{name}"), "result" => false, "changes" => Value::dict(),
    };
    (tag, ret)
}

/// What stands for a value nobody may see.
const HIDDEN: &str = "**********";

/// `no_log`: of the return only its form may be seen, as in Salt: whoever reads the changes still
/// finds their names.
pub(super) fn hide(ret: &Dict) {
    for key in ["name", "changes", "comment"] {
        if let Some(value) = ret.get(key) {
            ret.insert(key, hidden(&value));
        }
    }
}

fn hidden(value: &Value) -> Value {
    match value {
        Value::Dict(dict) => {
            Value::Dict(dict.into_iter().map(|(key, value)| (key, hidden(&value))).collect())
        }
        Value::List(_) | Value::Tuple(_) => {
            Value::list(value.items_of_sequence().unwrap_or_default().iter().map(hidden))
        }
        other if other.truthy() => HIDDEN.into(),
        other => other.clone(),
    }
}

/// What the log says of a return: its changes, or its comment where there are none.
fn log_text(ret: &Dict) -> String {
    let changes = ret.get("changes").unwrap_or_default();
    if !changes.truthy() {
        return match ret.get("comment").filter(Value::truthy) {
            Some(comment) => comment.to_string(),
            None => format!("No changes made for {}", ret.get("name").unwrap_or_default()),
        };
    }
    let Value::Dict(dict) = &changes else { return changes.to_string() };
    if let Some(Value::Str(diff)) = dict.get("diff") {
        return format!("File changed:\n{diff}");
    }
    let shown = |value: &Value| match value {
        Value::Bool(_) | Value::Null | Value::Int(_) | Value::Float(_) => value.to_string(),
        other if other.truthy() => other.to_string(),
        // A package that was not there has an empty version.
        _ => "absent".into(),
    };
    let mut text = String::from("Made the following changes:\n");
    for (key, value) in dict {
        let (Some(old), Some(new)) = (value.get("old"), value.get("new")) else {
            return changes.to_string();
        };
        text += &format!("'{key}' changed from '{}' to '{}'\n", shown(&old), shown(&new));
    }
    text
}

/// Logs what came of a state, as an error if it failed; `place` is where a failure was written.
pub(super) fn log(ret: &Dict, place: Option<String>) {
    if is_failure(ret) {
        match place {
            Some(place) => tracing::error!("{}\n  --> {place}", log_text(ret)),
            None => tracing::error!("{}", log_text(ret)),
        }
    } else if tracing::enabled!(tracing::Level::INFO) {
        tracing::info!("{}", log_text(ret));
    }
}

/// What a state says that ended with an error. Expected failures speak for themselves.
pub(super) fn error_text(error: &Error) -> String {
    let told = match error {
        Error::Failed(text) | Error::Invalid(text) => return text.clone(),
        Error::Source { message, place, help, .. } => {
            let place = place.as_ref().map(|place| format!("\n  --> {place}")).unwrap_or_default();
            let help = help.as_ref().map(|help| format!("\n   = help: {help}")).unwrap_or_default();
            return format!("{message}{place}{help}");
        }
        // A traceback ends with the class and the message.
        Error::Raised { traceback: Some(trace), .. } => trace.trim_end().to_owned(),
        Error::Raised { class, message, traceback: None } => format!("{class}: {message}"),
        other => other.to_string(),
    };
    format!("An exception occurred in this state: {told}")
}

pub(super) fn duration(ret: &Dict) -> f64 {
    ret.get("duration").and_then(|time| time.as_float()).unwrap_or(0.0)
}

pub(super) fn milliseconds(time: Duration) -> f64 {
    (time.as_micros() as f64) / 1000.0
}

pub(super) fn time_of_day() -> String {
    jiff::Zoned::now().strftime("%H:%M:%S%.6f").to_string()
}

#[cfg(test)]
mod tests {
    use halite_value::{dict, list};

    use super::*;

    fn check(changes: Value, comment: Value, expected: &str) {
        let ret = entries! { "name" => "n", "changes" => changes, "comment" => comment };
        assert_eq!(log_text(&ret), expected);
    }

    #[test]
    fn the_log_tells_changes_or_the_comment() {
        check(dict! {}, "All is well".into(), "All is well");
        check(dict! {}, list!["a", "b"], "['a', 'b']");
        check(dict! {}, "".into(), "No changes made for n");
        check(dict! { "diff" => "+x", "mode" => "0644" }, "c".into(), "File changed:\n+x");
        check(dict! { "pid" => 1, "stdout" => "hi" }, "c".into(), "{'pid': 1, 'stdout': 'hi'}");
        check("text".into(), "c".into(), "text");
        check(dict! { "a" => dict! { "old" => 1 } }, "c".into(), "{'a': {'old': 1}}");
        check(
            dict! {
                "vim" => dict! { "old" => "", "new" => "9" },
                "b" => dict! { "old" => Value::Null, "new" => false },
                "c" => dict! { "old" => 0, "new" => list![1, "x"] },
            },
            "c".into(),
            "Made the following changes:\n'vim' changed from 'absent' to '9'\n\
             'b' changed from 'None' to 'False'\n'c' changed from '0' to '[1, 'x']'\n",
        );
    }
}
