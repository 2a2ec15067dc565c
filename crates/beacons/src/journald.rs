//! `journald`: an event for each new entry of the journal whose fields match.
//!
// differs: times and ids are told as the journal writes them; genuine Salt tells how Python shows
// them, `datetime.datetime(…)` and `UUID('…')`.

use halite_spec::{Cx, Error, Result, host::Command};
use halite_value::{Dict, Value, json};

use crate::{Config, Problem, Watch, beacon};

beacon! {
    /// Tell of new entries of systemd's journal.
    "journald": Journald
}

/// Fields that are numbers, so that a reactor can compare them.
const NUMBERS: [&str; 14] = [
    "CODE_LINE",
    "ERRNO",
    "EXIT_STATUS",
    "INITRD_USEC",
    "KERNEL_USEC",
    "LEADER",
    "PRIORITY",
    "SYSLOG_FACILITY",
    "SYSLOG_PID",
    "USERSPACE_USEC",
    "_AUDIT_LOGINUID",
    "_GID",
    "_PID",
    "_UID",
];

#[derive(Default)]
pub struct Journald {
    /// Whether it looked before: an empty journal has no cursor, and what comes then is new.
    begun: bool,
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
            None if self.begun => command,
            None => command.args(["-n", "1"]),
        };
        let output = cx.host.run(&command)?;
        if !output.ok() {
            return Err(Error::failed(format!("journalctl: {}", output.stderr_text().trim())));
        }
        let first = !std::mem::replace(&mut self.begun, true);
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
            for field in NUMBERS {
                if let Some(Value::Str(text)) = entry.get(field)
                    && let Ok(number) = text.parse::<i64>()
                {
                    event.insert(field, number);
                }
            }
            event.insert("tag", service.to_str());
            events.push(event);
        }
    }
    events
}
