//! `pkg`: an event for each package that can be upgraded.

use halite_spec::{Cx, Rest, Result};
use halite_value::{Dict, Value, entries};

use crate::{Config, Problem, Watch, beacon};

beacon! {
    /// Tell of packages that can be upgraded.
    "pkg": Pkg
}

#[derive(Default)]
pub struct Pkg;

impl Watch for Pkg {
    fn validate(config: &Config) -> Result<(), Problem> {
        config.list()?;
        match config.get("pkgs") {
            Some(Value::List(_)) => Ok(()),
            _ => Err(config.problem("Configuration for pkg beacon requires list of pkgs.")),
        }
    }

    fn look(&mut self, cx: &Cx, config: &Config) -> Result<Vec<Dict>> {
        let refresh = config.flag("refresh", false);
        let names =
            config.get("pkgs").and_then(|names| names.items_of_sequence()).unwrap_or_default();
        let mut events = Vec::new();
        for (number, name) in names.iter().enumerate() {
            // Once for all of them.
            let kwargs = entries! { "refresh" => refresh && number == 0 };
            let asked = Rest { args: vec![name.clone()], kwargs };
            let version = halite_modules::pkg::latest_version(cx, asked)?;
            if version.truthy() {
                events.push(entries! { "pkg" => name, "version" => version });
            }
        }
        Ok(events)
    }
}
