//! `memusage`: an event when more memory is in use than allowed.

use halite_spec::{Cx, Result};
use halite_value::{Dict, entries};

use crate::{
    Config, Problem, Watch, beacon,
    config::{percent, share},
};

beacon! {
    /// Tell when more memory is in use than allowed.
    "memusage": MemUsage
}

#[derive(Default)]
pub struct MemUsage;

impl Watch for MemUsage {
    fn validate(config: &Config) -> Result<(), Problem> {
        config.list()?;
        percent(config, "percent").map(drop)
    }

    fn look(&mut self, cx: &Cx, config: &Config) -> Result<Vec<Dict>> {
        let text = cx.host.read_text("/proc/meminfo".as_ref())?;
        let total = field(&text, "MemTotal");
        let used = share(total - field(&text, "MemAvailable"), total);
        let limit = percent(config, "percent").unwrap_or(f64::MAX);
        Ok(if used >= limit { vec![entries! { "memusage" => used }] } else { Vec::new() })
    }
}

/// Returns a number of `/proc/meminfo`.
pub(crate) fn field(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0.0)
}
