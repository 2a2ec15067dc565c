//! `journald`: an event for each new entry of the journal whose fields match.

use halite_spec::{Cx, Error, Result, host::Command};
use halite_value::{Dict, Value, json};

use crate::{Config, Problem, Watch, beacon};

beacon! {
    /// Tell of new entries of systemd's journal.
    "journald": Journald
}

#[derive(Default)]
pub struct Journald {
    cursor: Option<String>,
}

impl Watch for Journald {
    fn validate(config: &Config) -> Result<(), Problem> {
        config.list()?;
        let wrong = |text: &str| Err(config.problem_at("services", text));
        match config.get("services").filter(Value::truthy) {
            None => Ok(()),
            Some(Value::Dict(services)) => {
                if services.values().iter().all(|fields| fields.as_dict().is_some()) {
                    return Ok(());
                }
                wrong("Services configuration for journald beacon must be a list of dictionaries.")
            }
            Some(_) => wrong("Services configuration for journald beacon must be a dictionary."),
        }
    }

    fn look(&mut self, cx: &Cx, config: &Config) -> Result<Vec<Dict>> {
        let command = Command::line(["journalctl", "--no-pager", "-o", "json"]).query();
        let command = match &self.cursor {
            Some(cursor) => command.arg(format!("--after-cursor={cursor}")),
            None => command.args(["-n", "1"]),
        };
        let output = cx.host.run(&command)?;
        if !output.ok() {
            return Err(Error::failed(format!("journalctl: {}", output.stderr_text().trim())));
        }
        let first = self.cursor.is_none();
        let mut events = Vec::new();
        for line in output.stdout_text().lines() {
            let Ok(Value::Dict(entry)) = json::from_str(line) else { continue };
            if let Some(Value::Str(cursor)) = entry.get("__CURSOR") {
                self.cursor = Some(cursor.to_string());
            }
            if !first {
                events.extend(matched(config, &entry));
            }
        }
        Ok(events)
    }
}

fn matched(config: &Config, entry: &Dict) -> Vec<Dict> {
    let Some(Value::Dict(services)) = config.get("services") else { return Vec::new() };
    let mut events = Vec::new();
    for (service, fields) in &services {
        let Value::Dict(fields) = fields else { continue };
        let same = |(key, wanted): &(halite_value::Key, Value)| {
            entry.get(key).is_some_and(|found| found.to_str() == wanted.to_str())
        };
        if fields.entries().iter().all(same) {
            let event = entry.shallow_copy();
            event.insert("tag", service.to_str());
            events.push(event);
        }
    }
    events
}
