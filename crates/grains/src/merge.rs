//! How fragments become one set of grains.

use std::time::Duration;

use halite_target::{Regex, fnmatch::fnmatch};
use halite_value::{Dict, Key, Value, merge};

use crate::Report;

pub(crate) struct Merging {
    pub(crate) grains: Dict,
    pub(crate) timings: Vec<(String, Duration)>,
    pub(crate) problems: Vec<String>,
    deep: bool,
    blacklist: Vec<String>,
}

impl Merging {
    pub(crate) fn new(opts: &Dict) -> Self {
        let blacklist = opts.get("grains_blacklist").and_then(|list| list.items_of_sequence());
        Self {
            grains: Dict::new(),
            timings: Vec::new(),
            problems: Vec::new(),
            // Anything but a true «true» means no.
            deep: opts.get("grains_deep_merge").and_then(|value| value.as_bool()) == Some(true),
            blacklist: blacklist
                .unwrap_or_default()
                .iter()
                .filter_map(|item| item.as_str().map(str::to_owned))
                .collect(),
        }
    }

    fn is_blocked(&self, key: &Key) -> bool {
        let Some(name) = key.value().as_str() else { return false };
        self.blacklist.iter().any(|pattern| {
            fnmatch(name, pattern)
                || Regex::new(&format!(r"(?:{pattern})\Z")).is_ok_and(|regex| regex.matches(name))
        })
    }

    pub(crate) fn add(&mut self, fragment: &Dict) {
        for (key, value) in fragment {
            if self.is_blocked(&key) {
                continue;
            }
            let value = match (self.grains.get(&key), &value) {
                (Some(old @ Value::Dict(_)), Value::Dict(_)) if self.deep => {
                    merge::merge(&old, &value, merge::Strategy::Recurse, false).unwrap_or(value)
                }
                _ => value,
            };
            self.grains.insert(key, value);
        }
    }

    /// What the configuration says is neither blocked nor merged deeply: it replaces.
    pub(crate) fn finish(self, configured: Option<&Dict>) -> Report {
        if let Some(configured) = configured {
            self.grains.update(configured);
        }
        Report { grains: self.grains, timings: self.timings, problems: self.problems }
    }
}
