//! `salt_monitor`: an event with what execution functions return.

use halite_spec::{Call, Cx, Result};
use halite_value::{Dict, Value, entries};

use crate::{Config, Problem, Watch, beacon};

beacon! {
    /// Call functions at every look and tell what they return.
    "salt_monitor": SaltMonitor
}

#[derive(Default)]
pub struct SaltMonitor;

/// Returns the functions to call, or what is wrong with the list.
fn calls(config: &Config) -> Result<Vec<(String, Call)>, String> {
    let given =
        config.get("salt_fun").ok_or("Configuration for salt_monitor beacon requires salt_fun.")?;
    let items = match &given {
        // Of a dict genuine Salt takes the names alone.
        Value::Dict(names) => names.keys().into_iter().map(|name| name.to_str().into()).collect(),
        _ => given.items_of_sequence().unwrap_or_else(|| vec![given]),
    };
    let mut calls = Vec::new();
    for item in items {
        let functions = match &item {
            Value::Dict(functions) => functions.entries(),
            Value::Str(name) => vec![(name.into(), Value::dict())],
            other => return Err(format!("{other} not in __salt__")),
        };
        for (function, arguments) in functions {
            let function = function.to_str().to_string();
            // Whether there is such a function is seen when it is called: it may be the user's own.
            if !function.contains('.') {
                return Err(format!("{function} not in __salt__"));
            }
            let call = arguments_of(&function, &arguments)?;
            calls.push((function, call));
        }
    }
    Ok(calls)
}

fn arguments_of(function: &str, arguments: &Value) -> Result<Call, String> {
    let mut call = Call::default();
    let parts = match arguments {
        Value::Dict(parts) => parts.entries(),
        other => {
            // No more than the first of them is looked at, and it is never right.
            let first = match other {
                Value::Str(text) => text.chars().next().map(|letter| letter.to_string()),
                other => {
                    other.items_of_sequence().and_then(|items| Some(items.first()?.to_string()))
                }
            };
            return match first.as_deref() {
                None | Some("args" | "kwargs") => Ok(call),
                Some(key) => Err(format!("key {key} not allowed under fun {function}")),
            };
        }
    };
    for (key, value) in parts {
        match (key.to_str().as_str(), value) {
            ("args", Value::List(args)) => call.args = args.to_vec(),
            ("args", _) => return Err(format!("args key for fun {function} must be list")),
            ("kwargs", Value::List(pairs)) => {
                for pair in pairs.to_vec() {
                    let Value::Dict(pair) = pair else {
                        return Err(format!("{pair} is not a key / value pair"));
                    };
                    call.kwargs.update(&pair);
                }
            }
            ("kwargs", _) => {
                return Err(format!(
                    "kwargs key for fun {function} must be list of key value pairs"
                ));
            }
            (other, _) => return Err(format!("key {other} not allowed under fun {function}")),
        }
    }
    Ok(call)
}

impl Watch for SaltMonitor {
    fn validate(config: &Config) -> Result<(), Problem> {
        calls(config).map(drop).map_err(|text| config.problem_at("salt_fun", text))
    }

    fn look(&mut self, cx: &Cx, config: &Config) -> Result<Vec<Dict>> {
        let mut events = Vec::new();
        for (function, call) in calls(config).unwrap_or_default() {
            let event = entries! { "salt_fun" => function.as_str() };
            if !call.args.is_empty() {
                event.insert("args", Value::list(call.args.clone()));
            }
            if !call.kwargs.is_empty() {
                event.insert("kwargs", &call.kwargs);
            }
            match cx.call(&function, call) {
                Ok(ret) => {
                    event.insert("ret", ret);
                    events.push(event);
                }
                Err(error) => tracing::warn!("beacon salt_monitor: {function}: {error}"),
            }
        }
        Ok(events)
    }
}
