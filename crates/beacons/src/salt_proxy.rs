//! `salt_proxy`: keeps proxy minions running on this machine, and tells of each.

use std::path::Path;

use halite_spec::{Cx, Result, host::Command};
use halite_value::{Dict, Value, entries};

use crate::{Config, Problem, Watch, beacon};

beacon! {
    /// Start proxy minions that do not run.
    "salt_proxy": SaltProxy
}

#[derive(Default)]
pub struct SaltProxy;

impl Watch for SaltProxy {
    fn validate(config: &Config) -> Result<(), Problem> {
        config.list()?;
        match config.get("proxies") {
            None => Err(config.problem("Configuration for salt_proxy beacon requires proxies.")),
            Some(Value::Dict(_)) => Ok(()),
            Some(_) => {
                Err(config
                    .problem_at("proxies", "Proxies for salt_proxy beacon must be a dictionary."))
            }
        }
    }

    fn look(&mut self, cx: &Cx, config: &Config) -> Result<Vec<Dict>> {
        let Some(Value::Dict(proxies)) = config.get("proxies") else { return Ok(Vec::new()) };
        let mut events = Vec::new();
        for name in proxies.keys() {
            let name = name.to_str();
            let told = if runs(cx, &name)? {
                format!("Proxy {name} is already running")
            } else {
                let id = format!("--proxyid={name}");
                cx.host.run(&Command::line(["salt-proxy", &id, "-l", "info", "-d"]))?;
                format!("Proxy {name} was started")
            };
            events.push(entries! { name => told });
        }
        Ok(events)
    }
}

/// Tells whether a proxy minion of that name runs, genuine Salt's or ours.
fn runs(cx: &Cx, name: &str) -> Result<bool> {
    let id = format!("--proxyid={name}");
    for entry in cx.host.read_dir(Path::new("/proc"))? {
        if !entry.to_string_lossy().starts_with(|c: char| c.is_ascii_digit()) {
            continue;
        }
        // It may have ended meanwhile.
        let folder = Path::new("/proc").join(entry);
        let Ok(line) = cx.host.read_text(&folder.join("cmdline")) else { continue };
        let words: Vec<&str> = line.split(['\0', ' ']).collect();
        let named = words.contains(&id.as_str())
            || words.windows(2).any(|pair| matches!(pair, ["--proxyid", own] if *own == name));
        let is_proxy =
            words.iter().take(3).any(|word| word.ends_with("salt-proxy") || *word == "proxy");
        if named && is_proxy {
            return Ok(true);
        }
    }
    Ok(false)
}
