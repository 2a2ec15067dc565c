//! `wtmp`: an event for each login and logout.
//!
//! `btmp` reads the same records from another file, by [`Records`].

use std::{io::Read as _, path::Path};

use halite_spec::{Cx, Error, Result};
use halite_value::{Dict, Value, entries};

use crate::{Config, Problem, Watch, beacon};

beacon! {
    /// Tell of logins and logouts.
    "wtmp": Wtmp
}

/// The size of a record on Linux.
const SIZE: usize = 384;
const LOGIN: i64 = 7;
const LOGOUT: i64 = 8;
const MOST: u64 = 4 << 20;

#[derive(Default)]
pub struct Wtmp {
    records: Records,
}

impl Watch for Wtmp {
    fn validate(config: &Config) -> Result<(), Problem> {
        validate(config)
    }

    fn look(&mut self, cx: &Cx, config: &Config) -> Result<Vec<Dict>> {
        let mut events = Vec::new();
        for record in self.records.new_ones(cx, Path::new("/var/log/wtmp"))? {
            let kind = record.get("type").and_then(|kind| kind.to_int());
            match kind {
                Some(LOGIN) => record.insert("action", "login"),
                Some(LOGOUT) => record.insert("action", "logout"),
                _ => continue,
            };
            if is_wanted(cx, config, &record) {
                events.push(record);
            }
        }
        Ok(events)
    }
}

/// Reads a file of login records as it grows.
#[derive(Default)]
pub(crate) struct Records {
    seen: Option<u64>,
}

impl Records {
    pub(crate) fn new_ones(&mut self, cx: &Cx, path: &Path) -> Result<Vec<Dict>> {
        let size = cx.host.stat(path, true)?.size;
        let Some(seen) = self.seen else {
            self.seen = Some(size);
            return Ok(Vec::new());
        };
        let from = if seen <= size { seen } else { 0 };
        let mut bytes = Vec::new();
        let file = cx.host.open_at(path, from)?;
        file.take(MOST)
            .read_to_end(&mut bytes)
            .map_err(|error| Error::failed(error.to_string()))?;
        let whole = bytes.len() / SIZE * SIZE;
        self.seen = Some(from + whole as u64);
        Ok(bytes.chunks_exact(SIZE).map(record).collect())
    }
}

/// Takes a record apart.
// differs: genuine Salt reads `session`, `time` and `addr` one field too early on 64-bit machines.
fn record(bytes: &[u8]) -> Dict {
    let number = |at: usize, size: usize| {
        let part = bytes.get(at..at + size).unwrap_or_default();
        part.iter().rev().fold(0_i64, |all, byte| all << 8 | i64::from(*byte))
    };
    let text = |at: usize, size: usize| {
        let part = bytes.get(at..at + size).unwrap_or_default();
        let end = part.iter().position(|byte| *byte == 0).unwrap_or(part.len());
        String::from_utf8_lossy(part.get(..end).unwrap_or_default()).into_owned()
    };
    entries! {
        "type" => number(0, 2), "PID" => number(4, 4), "line" => text(8, 32),
        "inittab" => text(40, 4), "user" => text(44, 32), "hostname" => text(76, 256),
        "exit_status" => number(334, 2), "session" => number(336, 4), "time" => number(340, 4),
        "addr" => number(348, 4),
    }
}

/// Checks the configuration of both beacons.
pub(crate) fn validate(config: &Config) -> Result<(), Problem> {
    config.list()?;
    for (key, name) in [("users", "User"), ("groups", "Group"), ("defaults", "Defaults")] {
        let part = match config.get(key) {
            None => continue,
            Some(Value::Dict(part)) => part,
            Some(_) => {
                let text = format!(
                    "{name} configuration for {} beacon must be a dictionary.",
                    config.kind
                );
                return Err(config.problem_at(key, text));
            }
        };
        let options = if key == "defaults" { vec![Value::from(part)] } else { part.values() };
        for options in options {
            let Some(range) = options.get("time_range").filter(Value::truthy) else { continue };
            let complete = range.get("start").is_some() && range.get("end").is_some();
            if range.as_dict().is_none() || !complete {
                let text = format!(
                    "The time_range parameter for {} beacon must contain start & end options.",
                    config.kind
                );
                return Err(config.problem_at(key, text));
            }
        }
    }
    Ok(())
}

/// Tells whether a record is of a watched user, and at a watched time.
pub(crate) fn is_wanted(cx: &Cx, config: &Config, record: &Dict) -> bool {
    let user = record.get("user").unwrap_or_default().to_str();
    let users = config.get("users").and_then(|users| users.as_dict().cloned());
    let groups = config.get("groups").and_then(|groups| groups.as_dict().cloned());
    let mut options = users.as_ref().and_then(|users| users.get(user.as_str()));
    if options.is_none()
        && let Some(groups) = &groups
    {
        options = groups.entries().into_iter().find_map(|(group, options)| {
            let group = cx.host.group_named(&group.to_str()).ok()??;
            group.members.iter().any(|member| **member == *user).then_some(options)
        });
    }
    if options.is_none() && (users.is_some() || groups.is_some()) {
        return false;
    }
    let range = options.as_ref().and_then(|options| options.get("time_range"));
    let range = range.or_else(|| config.get("defaults")?.get("time_range"));
    range.is_none_or(|range| within(cx, &range))
}

fn within(cx: &Cx, range: &Value) -> bool {
    let now = jiff::Timestamp::try_from(cx.host.now()).unwrap_or_default();
    let now = now.to_zoned(jiff::tz::TimeZone::system()).datetime();
    let at = |key: &str| {
        let text = range.get(key)?.to_str();
        halite_schedule::parse_when(&text, now.date()).ok()
    };
    match (at("start"), at("end")) {
        (Some(start), Some(end)) => (start..=end).contains(&now),
        _ => {
            tracing::error!("beacon: the time range {range} cannot be understood");
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records() {
        let mut bytes = vec![0; SIZE];
        bytes[0] = 7;
        bytes[4..8].copy_from_slice(&1234_u32.to_le_bytes());
        bytes[8..13].copy_from_slice(b"pts/3");
        bytes[44..48].copy_from_slice(b"root");
        bytes[340..344].copy_from_slice(&1_794_794_612_u32.to_le_bytes());
        let record = record(&bytes);
        assert_eq!(record.get("PID"), Some(1234.into()));
        assert_eq!(record.get("line"), Some("pts/3".into()));
        assert_eq!(record.get("user"), Some("root".into()));
        assert_eq!(record.get("time"), Some(1_794_794_612_i64.into()));
    }
}
