//! `sdb://profile/key` in configuration files: replaced by what is kept there, before a program runs.
//!
//! A value whose profile is not configured stays as it is, as in Salt. Users' own drivers are Python,
//! which is started only if some value needs one.

use halite_config::Opts;
use halite_spec::{Call, Cx};
use halite_value::{Dict, Value};

use crate::programs::master::own_context;

const SCHEME: &str = "sdb://";

/// Replaces every such value.
pub(crate) fn resolve(opts: &Opts) {
    let wanted: Vec<_> =
        opts.values().entries().into_iter().filter(|(_, value)| is_one(value)).collect();
    if wanted.is_empty() {
        return;
    }
    let (cx, _) = own_context(opts.values());
    for (name, value) in wanted {
        opts.set(&name.to_str(), resolved(&cx, &value));
    }
}

/// Tells whether a value is or holds an address.
fn is_one(value: &Value) -> bool {
    match value {
        Value::Str(text) => text.starts_with(SCHEME),
        Value::Dict(dict) => dict.entries().iter().any(|(_, value)| is_one(value)),
        Value::List(_) | Value::Tuple(_) => {
            value.items_of_sequence().unwrap_or_default().iter().any(is_one)
        }
        _ => false,
    }
}

fn resolved(cx: &Cx, value: &Value) -> Value {
    if !is_one(value) {
        return value.clone();
    }
    match value {
        Value::Str(text) => {
            let found = cx.call("sdb.get", Call::of([Value::from(text)]));
            // differs: a driver that is not there yet ends Salt's programs, so that it could never be synced.
            found.unwrap_or_else(|error| {
                tracing::error!("{text} in the configuration: {error}");
                value.clone()
            })
        }
        Value::Dict(dict) => {
            let entries = dict.entries().into_iter();
            entries.map(|(key, value)| (key, resolved(cx, &value))).collect::<Dict>().into()
        }
        _ => {
            let items = value.items_of_sequence().unwrap_or_default();
            Value::list(items.iter().map(|item| resolved(cx, item)).collect::<Vec<_>>())
        }
    }
}
