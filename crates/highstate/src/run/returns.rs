//! The shape of a state's return: the dicts outputters, job caches and reactors know.
//!
//! What a state itself answers is an [`Outcome`]; this file makes the returns of states that never
//! got that far, and asks the few questions the run has about a return.

use std::time::Duration;

use halite_spec::{Error, Outcome};
use halite_value::{Dict, Value, entries};

use crate::{Low, tag};

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
pub(super) fn listens_to_nothing(state: &str, name: &Value) -> (String, Dict) {
    let tag = format!("Listen_Error_|-listen_{name}_|-listen_{state}_|-Listen_Error");
    let ret = entries! {
        "comment" => format!("Referenced state {state}: {name} does not exist"),
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
