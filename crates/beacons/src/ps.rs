//! `ps`: an event while a process runs, or does not.

use std::path::Path;

use halite_spec::{Cx, Result};
use halite_value::{Dict, Value, entries};

use crate::{Config, Problem, Watch, beacon};

beacon! {
    /// Tell of processes that run, or that do not.
    "ps": Ps
}

#[derive(Default)]
pub struct Ps;

impl Watch for Ps {
    fn validate(config: &Config) -> Result<(), Problem> {
        config.list()?;
        match config.get("processes") {
            None => Err(config.problem("Configuration for ps beacon requires processes.")),
            Some(Value::Dict(_)) => Ok(()),
            Some(_) => {
                Err(config.problem_at("processes", "Processes for ps beacon must be a dictionary."))
            }
        }
    }

    fn look(&mut self, cx: &Cx, config: &Config) -> Result<Vec<Dict>> {
        let names = names(cx)?;
        let Some(Value::Dict(wanted)) = config.get("processes") else { return Ok(Vec::new()) };
        let mut events = Vec::new();
        for (name, state) in &wanted {
            let name = name.to_str();
            let runs = names.iter().any(|own| *own == name);
            match (state.to_str().as_str(), runs) {
                ("running", true) => events.push(entries! { name => "Running" }),
                ("stopped", false) => events.push(entries! { name => "Stopped" }),
                _ => {}
            }
        }
        Ok(events)
    }
}

/// Returns the names of all processes.
fn names(cx: &Cx) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in cx.host.read_dir(Path::new("/proc"))? {
        let entry = entry.to_string_lossy().into_owned();
        if !entry.starts_with(|c: char| c.is_ascii_digit()) {
            continue;
        }
        let folder = Path::new("/proc").join(entry);
        // It may have ended meanwhile.
        let Ok(name) = cx.host.read_text(&folder.join("comm")) else { continue };
        let mut name = name.trim_end_matches('\n').to_owned();
        // The kernel keeps 15 letters only.
        if name.len() >= 15
            && let Ok(line) = cx.host.read_text(&folder.join("cmdline"))
            && let Some(program) = line.split('\0').next()
            && let Some(long) = program.rsplit('/').next()
            && long.starts_with(&name)
        {
            name = long.to_owned();
        }
        names.push(name);
    }
    Ok(names)
}
