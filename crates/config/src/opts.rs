//! The loaded options: values, where each came from, and what was odd about them.

use std::{collections::HashMap, fmt};

use halite_value::{Dict, Place, SmolStr, Value};

use crate::Role;

/// What a warning is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WarningKind {
    /// A value of a type the option does not accept.
    WrongType { option: String },
    /// A name no option has, but which resembles one.
    Unknown { option: String, suggestion: String },
    /// A name no option has. Users keep their own data in these files, so this is no complaint.
    Foreign { option: String },
    /// The main file is not there.
    Missing,
    /// An `include` that matches no file.
    NoMatch,
    /// An included file that could not be used.
    Skipped,
    /// A value that was replaced, renamed or ignored.
    Adjusted,
}

/// Something odd in the configuration that does not stop anything.
#[derive(Clone, Debug)]
pub struct Warning {
    pub kind: WarningKind,
    pub message: String,
    pub place: Option<Place>,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{place}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// The options of one program.
///
/// A clone shares the values with the original, as a Python name would; [`Opts::fork`] does not.
#[derive(Clone, Debug)]
pub struct Opts {
    role: Role,
    values: Dict,
    pub(crate) places: HashMap<SmolStr, Place>,
    pub(crate) warnings: Vec<Warning>,
}

impl Opts {
    /// Returns options made of nothing but the given values.
    #[must_use]
    pub fn new(role: Role, values: Dict) -> Self {
        Self { role, values, places: HashMap::new(), warnings: Vec::new() }
    }

    /// Notes that an option was replaced, renamed or ignored.
    pub(crate) fn adjusted(&mut self, option: &str, message: impl Into<String>) {
        self.warnings.push(Warning {
            kind: WarningKind::Adjusted,
            message: message.into(),
            place: self.places.get(option).cloned(),
        });
    }

    /// Returns options that share nothing with these.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self { values: self.values.deep_copy(), ..self.clone() }
    }

    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// Returns all options as one dict, as `__opts__` is in Salt.
    #[must_use]
    pub fn values(&self) -> &Dict {
        &self.values
    }

    #[must_use]
    pub fn get(&self, name: &str) -> Option<Value> {
        self.values.get(name)
    }

    /// Returns an option as text: empty when it is absent or None.
    #[must_use]
    pub fn str(&self, name: &str) -> SmolStr {
        match self.get(name) {
            None | Some(Value::Null) => SmolStr::default(),
            Some(value) => value.to_str(),
        }
    }

    /// Returns an option as text, or `None` when it is absent, None or empty.
    #[must_use]
    pub fn opt_str(&self, name: &str) -> Option<SmolStr> {
        Some(self.str(name)).filter(|text| !text.is_empty())
    }

    /// Returns an option as a whole number: 0 when it is absent or no number.
    #[must_use]
    pub fn int(&self, name: &str) -> i64 {
        self.opt_int(name).unwrap_or(0)
    }

    /// Returns an option as a whole number, also when it is written as text or as a fraction.
    #[must_use]
    pub fn opt_int(&self, name: &str) -> Option<i64> {
        match self.get(name)? {
            Value::Int(int) => Some(int),
            Value::Bool(flag) => Some(flag.into()),
            Value::Float(float) => Some(float as i64),
            Value::Str(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// Returns an option as a number: 0 when it is absent or no number.
    #[must_use]
    pub fn float(&self, name: &str) -> f64 {
        match self.get(name) {
            Some(Value::Str(text)) => text.trim().parse().unwrap_or(0.0),
            Some(value) => value.as_float().unwrap_or(0.0),
            None => 0.0,
        }
    }

    /// Tells whether an option is true, as Python sees it.
    #[must_use]
    pub fn bool(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.truthy())
    }

    /// Returns an option as a list: empty when it is absent, of one item when it is text.
    #[must_use]
    pub fn list(&self, name: &str) -> Vec<Value> {
        match self.get(name) {
            None | Some(Value::Null) => Vec::new(),
            Some(value) => value.items_of_sequence().unwrap_or_else(|| vec![value]),
        }
    }

    /// Returns an option as a list of texts.
    #[must_use]
    pub fn str_list(&self, name: &str) -> Vec<SmolStr> {
        self.list(name).iter().map(Value::to_str).collect()
    }

    /// Returns an option as a dict: empty when it is absent or something else.
    #[must_use]
    pub fn dict(&self, name: &str) -> Dict {
        match self.get(name) {
            Some(Value::Dict(dict)) => dict,
            _ => Dict::new(),
        }
    }

    pub fn set(&self, name: &str, value: impl Into<Value>) {
        self.values.insert(name, value);
    }

    pub fn remove(&self, name: &str) {
        self.values.remove(name);
    }

    /// Returns where a file set the option; `None` for presets.
    #[must_use]
    pub fn place_of(&self, name: &str) -> Option<&Place> {
        self.places.get(name)
    }

    /// Returns the options that files set, sorted by name.
    #[must_use]
    pub fn set_by_files(&self) -> Vec<(SmolStr, Place)> {
        let mut set: Vec<_> = self.places.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        set.sort();
        set
    }

    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }
}
