//! `service`: an event with the state of services, always or when it changes.

use std::{
    collections::HashMap,
    path::Path,
    time::{Duration, SystemTime},
};

use halite_spec::{Cx, Result};
use halite_value::{Dict, Value, entries};

use crate::{Config, Problem, Watch, beacon, config::number};

beacon! {
    /// Tell whether services run.
    "service": Service
}

#[derive(Default)]
pub struct Service {
    /// What was told last of each.
    told: HashMap<String, bool>,
    /// Changes that wait for their `delay`.
    pending: HashMap<String, (bool, SystemTime)>,
}

impl Watch for Service {
    fn validate(config: &Config) -> Result<(), Problem> {
        config.list()?;
        let Some(services) = config.get("services") else {
            return Err(config.problem("Configuration for service beacon requires services."));
        };
        let Value::Dict(services) = services else {
            return Err(config.problem_at(
                "services",
                "Services configuration item for service beacon must be a dictionary.",
            ));
        };
        let plain = |options: &Value| options.as_dict().is_some() || options.is_null();
        if services.values().iter().all(plain) {
            Ok(())
        } else {
            Err(config.problem_at(
                "services",
                "Configuration for service beacon must be a list of dictionaries.",
            ))
        }
    }

    fn look(&mut self, cx: &Cx, config: &Config) -> Result<Vec<Dict>> {
        let Some(Value::Dict(services)) = config.get("services") else { return Ok(Vec::new()) };
        let mut events = Vec::new();
        for (name, options) in &services {
            let name = name.to_str().to_string();
            let status = halite_modules::service::status(cx, name.clone(), None)?;
            let running = status.truthy();
            if !self.is_news(&name, running, &options, config, cx.host.now()) {
                continue;
            }
            let state = entries! { "running" => running };
            if !running && let Some(pidfile) = options.get_str("uncleanshutdown") {
                state.insert("uncleanshutdown", cx.host.exists(Path::new(pidfile.as_str()))?);
            }
            events.push(entries! {
                name.as_str() => state, "service_name" => name.as_str(), "tag" => name.as_str(),
            });
        }
        Ok(events)
    }
}

impl Service {
    fn is_news(
        &mut self,
        name: &str,
        running: bool,
        options: &Value,
        config: &Config,
        now: SystemTime,
    ) -> bool {
        let flag = |key: &str, preset: bool| {
            let own = options.get(key).map(|value| value.truthy());
            own.unwrap_or_else(|| config.flag(key, preset))
        };
        let delay = options.get("delay").and_then(|delay| number(&delay)).unwrap_or(0.0);
        let known = self.told.get(name).copied();
        let changed = known != Some(running);
        if !changed {
            self.pending.remove(name);
            return !flag("onchangeonly", false);
        }
        if known.is_some() && delay > 0.0 {
            // A change counts once it has lasted.
            let (state, since) = *self.pending.entry(name.into()).or_insert((running, now));
            let lasted = now.duration_since(since).unwrap_or_default();
            if state != running {
                self.pending.insert(name.into(), (running, now));
                return false;
            }
            if lasted < Duration::from_secs_f64(delay) {
                return false;
            }
            self.pending.remove(name);
        }
        self.told.insert(name.into(), running);
        known.is_some() || flag("emitatstartup", true)
    }
}
