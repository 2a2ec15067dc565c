//! `load`: an event when a load average leaves its range.

use halite_spec::{Cx, Error, Result};
use halite_value::{Dict, Value};

use crate::{Config, Problem, Watch, beacon, config::number};

beacon! {
    /// Tell when a load average is outside of its range.
    "load": Load
}

const AVERAGES: [&str; 3] = ["1m", "5m", "15m"];

#[derive(Default)]
pub struct Load {
    /// Whether each average was outside at the last look.
    outside: Option<Vec<bool>>,
}

fn range(value: &Value) -> Option<(f64, f64)> {
    match *value.items_of_sequence()? {
        [ref low, ref high] => Some((number(low)?, number(high)?)),
        _ => None,
    }
}

impl Watch for Load {
    fn validate(config: &Config) -> Result<(), Problem> {
        config.list()?;
        for option in ["emitatstartup", "onchangeonly"] {
            if config.get(option).is_some_and(|value| !matches!(value, Value::Bool(_))) {
                let text =
                    format!("Configuration for load beacon option {option} must be a boolean.");
                return Err(config.problem_at(option, text));
            }
        }
        let Some(averages) = config.get("averages") else {
            return Err(config.problem("Averages configuration is required for load beacon."));
        };
        let wrong = |text: &str| Err(config.problem_at("averages", text));
        let none = Dict::new();
        let averages = match &averages {
            Value::Dict(averages) => averages,
            // Texts and lists are searched for the names by genuine Salt.
            Value::Str(_) | Value::List(_) => &none,
            _ => return wrong("Averages configuration for load beacon must be a dictionary."),
        };
        if !AVERAGES.iter().any(|name| averages.contains(*name)) {
            return wrong(
                "Averages configuration for load beacon must contain 1m, 5m or 15m items.",
            );
        }
        // differs: genuine Salt fails unless all three are there.
        for range in AVERAGES.iter().filter_map(|name| averages.get(*name)) {
            match range.items_of_sequence() {
                None => {
                    return wrong(
                        "Averages configuration for load beacon: 1m, 5m and 15m items must be a \
                         list of two items.",
                    );
                }
                Some(_) if self::range(&range).is_none() => {
                    return wrong(
                        "Configuration for load beacon: 1m, 5m and 15m items must be a list of \
                         two items.",
                    );
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    fn look(&mut self, cx: &Cx, config: &Config) -> Result<Vec<Dict>> {
        let text = cx.host.read_text("/proc/loadavg".as_ref())?;
        let numbers: Vec<f64> =
            text.split_whitespace().take(3).filter_map(|word| word.parse().ok()).collect();
        if numbers.len() < 3 {
            return Err(Error::failed(format!("/proc/loadavg cannot be understood: {text}")));
        }
        let Some(Value::Dict(averages)) = config.get("averages") else { return Ok(Vec::new()) };
        let is_outside = |(name, now): (&&str, &f64)| {
            let range = averages.get(*name).and_then(|value| range(&value));
            range.is_some_and(|(low, high)| *now < low || *now > high)
        };
        let outside: Vec<bool> = AVERAGES.iter().zip(&numbers).map(is_outside).collect();
        let before = self.outside.replace(outside.clone());
        let any = outside.contains(&true);
        let tell = match before {
            None => any && config.flag("emitatstartup", true),
            Some(before) if config.flag("onchangeonly", false) => before != outside,
            Some(_) => any,
        };
        let event: Dict = AVERAGES.iter().zip(numbers).map(|(name, now)| (*name, now)).collect();
        Ok(if tell { vec![event] } else { Vec::new() })
    }
}
