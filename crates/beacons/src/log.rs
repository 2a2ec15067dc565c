//! `log`: an event for each new line of a file that matches.

use std::{io::Read as _, path::PathBuf};

use halite_pyregex::{Flags, PyRegex as Regex};
use halite_spec::{Cx, Error, Result};
use halite_value::{Dict, Value, entries};

use crate::{Config, Problem, Watch, beacon};

beacon! {
    /// Tell of new lines in a log that match a pattern.
    "log": Log
}

/// What is read at a look; the rest waits for the next one.
const MOST: u64 = 4 << 20;

#[derive(Default)]
pub struct Log {
    /// Inode and how far it was read.
    at: Option<(u64, u64)>,
}

impl Watch for Log {
    fn validate(config: &Config) -> Result<(), Problem> {
        config.list()?;
        if config.get("file").is_none() {
            return Err(config.problem("Configuration for log beacon must contain file option."));
        }
        for (tag, pattern) in patterns(config) {
            if let Err(error) = Regex::cached(&pattern, Flags::default()) {
                let text = format!("the regex of tag {tag} of log beacon: {error}");
                return Err(config.problem_at("tags", text));
            }
        }
        Ok(())
    }

    fn look(&mut self, cx: &Cx, config: &Config) -> Result<Vec<Dict>> {
        let path = PathBuf::from(config.get("file").unwrap_or_default().to_str().as_str());
        let stat = cx.host.stat(&path, true)?;
        let Some((inode, seen)) = self.at else {
            self.at = Some((stat.inode, stat.size));
            return Ok(Vec::new());
        };
        // A new file, or one cut short, begins at its beginning.
        let from = if inode == stat.inode && seen <= stat.size { seen } else { 0 };
        let mut bytes = Vec::new();
        let file = cx.host.open_at(&path, from)?;
        file.take(MOST)
            .read_to_end(&mut bytes)
            .map_err(|error| Error::failed(error.to_string()))?;
        // A line that is still being written waits for its end.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        bytes.truncate(whole);
        self.at = Some((stat.inode, from + whole as u64));
        let text = String::from_utf8_lossy(&bytes);
        let mut events = Vec::new();
        for (tag, pattern) in patterns(config) {
            let Ok(regex) = Regex::cached(&pattern, Flags::default()) else { continue };
            for line in text.lines() {
                if regex.match_start(line).is_ok_and(|found| found.is_some()) {
                    events.push(entries! {
                        "tag" => tag.as_str(), "match" => "yes", "raw" => line, "error" => "",
                    });
                }
            }
        }
        Ok(events)
    }
}

fn patterns(config: &Config) -> Vec<(String, String)> {
    let Some(Value::Dict(tags)) = config.get("tags") else { return Vec::new() };
    let pattern = |(tag, options): (halite_value::Key, Value)| {
        Some((tag.to_str().to_string(), options.get_str("regex")?.to_string()))
    };
    tags.entries().into_iter().filter_map(pattern).collect()
}
