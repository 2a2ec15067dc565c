//! `network_info`: an event when a counter of an interface reaches a value.

use halite_spec::{Cx, Result};
use halite_value::{Dict, Value, entries};

use crate::{Config, Problem, Watch, beacon, config::number};

beacon! {
    /// Tell when an interface has sent or received more than a value.
    "network_info": NetworkInfo
}

/// What may be said of an interface.
const KNOWN: [&str; 9] = [
    "type",
    "bytes_sent",
    "bytes_recv",
    "packets_sent",
    "packets_recv",
    "errin",
    "errout",
    "dropin",
    "dropout",
];

#[derive(Default)]
pub struct NetworkInfo;

impl Watch for NetworkInfo {
    fn validate(config: &Config) -> Result<(), Problem> {
        config.list()?;
        let wrong = |text: &str| Err(config.problem_at("interfaces", text));
        let interfaces = match config.get("interfaces") {
            None => return Ok(()),
            Some(Value::Dict(interfaces)) => interfaces,
            Some(_) => {
                return wrong(
                    "Configuration for network_info beacon: interfaces must be a dictionary.",
                );
            }
        };
        for options in interfaces.values() {
            match options {
                Value::Dict(options) if !KNOWN.iter().any(|key| options.contains(*key)) => {
                    return wrong("Invalid configuration item in Beacon configuration.");
                }
                Value::Dict(_) => {}
                _ => {
                    return wrong(
                        "Configuration for network_info beacon must be a list of dictionaries.",
                    );
                }
            }
        }
        Ok(())
    }

    fn look(&mut self, cx: &Cx, config: &Config) -> Result<Vec<Dict>> {
        let counters = counters(&cx.host.read_text("/proc/net/dev".as_ref())?);
        let Some(Value::Dict(interfaces)) = config.get("interfaces") else { return Ok(Vec::new()) };
        let mut events = Vec::new();
        for (name, options) in &interfaces {
            let name = name.to_str();
            let Some((_, now)) = counters.iter().find(|(own, _)| *own == name) else { continue };
            let Value::Dict(options) = options else { continue };
            let kind = options.get("type").unwrap_or_default().to_str();
            let reached = options.entries().iter().any(|(key, limit)| {
                let now = now.get(key).and_then(|now| now.as_float());
                match (now, number(limit), kind.as_str()) {
                    (Some(now), Some(limit), "greater") => now > limit,
                    (Some(now), Some(limit), "equal") => now == limit,
                    _ => false,
                }
            });
            if reached {
                events.push(entries! { "interface" => name, "network_info" => now });
            }
        }
        Ok(events)
    }
}

/// Reads `/proc/net/dev`.
pub(crate) fn counters(text: &str) -> Vec<(String, Dict)> {
    let line = |line: &str| {
        let (name, numbers) = line.split_once(':')?;
        let numbers: Vec<i64> =
            numbers.split_whitespace().map(|n| n.parse().unwrap_or(0)).collect();
        let at = |place: usize| numbers.get(place).copied().unwrap_or(0);
        let counters = entries! {
            "bytes_sent" => at(8), "bytes_recv" => at(0), "packets_sent" => at(9),
            "packets_recv" => at(1), "errin" => at(2), "errout" => at(10), "dropin" => at(3),
            "dropout" => at(11),
        };
        Some((name.trim().to_owned(), counters))
    };
    text.lines().filter_map(line).collect()
}
