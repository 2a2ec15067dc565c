//! `haproxy`: an event when a server of a backend has more sessions than a limit.

use halite_spec::{Call, Cx, Result};
use halite_value::{Dict, Value, entries};

use crate::{Config, Problem, Watch, beacon, config::number};

beacon! {
    /// Tell of servers behind haproxy that have too many sessions.
    "haproxy": Haproxy
}

#[derive(Default)]
pub struct Haproxy;

impl Watch for Haproxy {
    fn validate(config: &Config) -> Result<(), Problem> {
        config.list()?;
        let wrong = |text: &str| Err(config.problem_at("backends", text));
        let Some(backends) = config.get("backends") else {
            return wrong("Configuration for haproxy beacon requires backends.");
        };
        let Value::Dict(backends) = backends else {
            return wrong("Backends for haproxy beacon must be a dictionary.");
        };
        for options in backends.values() {
            match options.get("servers") {
                None => return wrong("Backends for haproxy beacon require servers."),
                Some(Value::List(_)) => {}
                Some(_) => return wrong("Servers for haproxy beacon must be a list."),
            }
        }
        Ok(())
    }

    fn look(&mut self, cx: &Cx, config: &Config) -> Result<Vec<Dict>> {
        let Some(Value::Dict(backends)) = config.get("backends") else { return Ok(Vec::new()) };
        let mut events = Vec::new();
        for (backend, options) in &backends {
            let threshold = options.get("threshold").unwrap_or_default();
            let Some(limit) = number(&threshold) else { continue };
            let servers = options.get("servers").and_then(|list| list.items_of_sequence());
            for server in servers.unwrap_or_default() {
                // The module may be the user's own.
                let call = Call::of([server.clone(), backend.to_str().into()]);
                let sessions = cx.call("haproxy.get_sessions", call)?;
                if number(&sessions).is_some_and(|sessions| sessions > limit) {
                    events.push(entries! {
                        "server" => server, "scur" => sessions, "threshold" => &threshold,
                    });
                }
            }
        }
        Ok(events)
    }
}
