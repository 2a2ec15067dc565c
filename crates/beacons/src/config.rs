//! A beacon's configuration: a list of one-key dicts, as Salt wants it, read as one dict.

use std::{fmt, time::Duration};

use halite_value::{Dict, Place, Value};

// gen:pub

/// Keys every beacon may have; they are not the beacon's own.
const COMMON: [&str; 8] = [
    "interval",
    "enabled",
    "beacon_module",
    "disable_during_state_run",
    "onchangeonly",
    "emitatstartup",
    "run_once",
    "_beacon_name",
];

/// What is wrong with a configuration, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub text: String,
    pub place: Option<Place>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{} ({place})", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// The configuration of one beacon.
#[derive(Clone, Debug)]
pub struct Config {
    /// The name it goes by; with `beacon_module`, not its kind.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// All entries of the list as one dict.
    pub all: Dict,
    /// The list as it stands.
    pub value: Value,
}

impl Config {
    /// Takes the list apart. What is no list is left to [`Config::list`].
    pub fn read(name: &str, value: &Value) -> Self {
        let all = Dict::new();
        let places = Dict::new();
        match value {
            Value::Dict(dict) => all.update(dict),
            other => {
                for item in other.items_of_sequence().unwrap_or_default() {
                    if let Value::Dict(item) = item {
                        all.update(&item);
                        for key in item.keys() {
                            places.insert(key, &item);
                        }
                    }
                }
            }
        }
        let kind = all.get("beacon_module").filter(Value::truthy);
        let kind = kind.map_or_else(|| name.to_owned(), |kind| kind.to_str().to_string());
        Self { name: name.into(), kind, all, value: value.clone() }
    }

    /// Fails, with the place where the list stands.
    pub fn problem(&self, text: impl Into<String>) -> Problem {
        Problem { text: text.into(), place: self.place() }
    }

    /// Fails, with the place of one of the entries.
    pub fn problem_at(&self, key: &str, text: impl Into<String>) -> Problem {
        Problem { text: text.into(), place: self.place_of(key).or_else(|| self.place()) }
    }

    fn place(&self) -> Option<Place> {
        match &self.value {
            Value::Dict(dict) => dict.place().cloned(),
            Value::List(list) => list.place_of(0).cloned(),
            _ => None,
        }
    }

    fn place_of(&self, key: &str) -> Option<Place> {
        let items = self.value.items_of_sequence().unwrap_or_default();
        items.iter().find_map(|item| item.as_dict()?.place_of(key).cloned())
    }

    /// Fails unless it is a list.
    pub fn list(&self) -> Result<Vec<Value>, Problem> {
        match &self.value {
            Value::List(list) => Ok(list.to_vec()),
            _ => {
                Err(self.problem(format!("Configuration for {} beacon must be a list.", self.kind)))
            }
        }
    }

    pub fn get(&self, key: &str) -> Option<Value> {
        self.all.get(key)
    }

    pub fn flag(&self, key: &str, preset: bool) -> bool {
        self.get(key).filter(|value| !value.is_null()).map_or(preset, |value| value.truthy())
    }

    /// Returns the beacon's own entries, without those every beacon may have.
    pub fn own(&self) -> Vec<(String, Value)> {
        let entries = self.all.entries().into_iter();
        let own = entries.map(|(key, value)| (key.to_str().to_string(), value));
        own.filter(|(key, _)| !COMMON.contains(&key.as_str())).collect()
    }

    pub fn is_enabled(&self) -> bool {
        self.flag("enabled", true)
    }

    /// Returns how often it looks, if it says so.
    pub fn interval(&self) -> Option<Duration> {
        let seconds = self.get("interval").and_then(|every| number(&every))?;
        Duration::try_from_secs_f64(seconds).ok().filter(|every| !every.is_zero())
    }
}

/// Reads a number, or one with `%` behind it.
pub(crate) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Str(text) => text.trim().trim_end_matches('%').trim().parse().ok(),
        other => other.as_float(),
    }
}

/// Reads a share: `90%` or 90.
pub(crate) fn percent(config: &Config, key: &str) -> Result<f64, Problem> {
    let Some(value) = config.get(key) else {
        let text = format!("Configuration for {} beacon requires {key}.", config.kind);
        return Err(config.problem(text));
    };
    number(&value).ok_or_else(|| {
        let text = format!("Configuration for {} beacon: {key} is no number: {value}", config.kind);
        config.problem_at(key, text)
    })
}

/// With one digit behind the point, as psutil gives shares.
pub(crate) fn share(part: f64, whole: f64) -> f64 {
    if whole <= 0.0 { 0.0 } else { (part * 1000.0 / whole).round() / 10.0 }
}
