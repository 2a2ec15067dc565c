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
    let items = given.items_of_sequence().unwrap_or_else(|| vec![given]);
    let mut calls = Vec::new();
    for item in items {
        let Value::Dict(item) = item else {
            calls.push((item.to_str().to_string(), Call::default()));
            continue;
        };
        for (function, arguments) in &item {
            let mut call = Call::default();
            let parts = match &arguments {
                Value::Dict(parts) => parts.entries(),
                list => {
                    let parts = list.items_of_sequence().unwrap_or_default();
                    let parts = parts.iter().map(|part| part.as_dict().map(Dict::entries));
                    parts
                        .collect::<Option<Vec<_>>>()
                        .ok_or("arguments must be args or kwargs")?
                        .concat()
                }
            };
            for (key, value) in parts {
                match key.to_str().as_str() {
                    "args" => call.args = value.items_of_sequence().unwrap_or_default(),
                    "kwargs" => {
                        let Value::List(pairs) = value else {
                            return Err(format!(
                                "kwargs key for fun {function} must be list of key value pairs"
                            ));
                        };
                        for pair in pairs.to_vec() {
                            if let Value::Dict(pair) = pair {
                                call.kwargs.update(&pair);
                            }
                        }
                    }
                    other => return Err(format!("key {other} not allowed under fun {function}")),
                }
            }
            calls.push((function.to_str().to_string(), call));
        }
    }
    Ok(calls)
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
