//! `swapusage`: an event when more swap is in use than allowed.

use halite_spec::{Cx, Result};
use halite_value::{Dict, entries};

use crate::{
    Config, Problem, Watch, beacon,
    config::{percent, share},
    memusage::field,
};

beacon! {
    /// Tell when more swap is in use than allowed.
    "swapusage": SwapUsage
}

#[derive(Default)]
pub struct SwapUsage;

impl Watch for SwapUsage {
    fn validate(config: &Config) -> Result<(), Problem> {
        config.list()?;
        percent(config, "percent").map(drop)
    }

    fn look(&mut self, cx: &Cx, config: &Config) -> Result<Vec<Dict>> {
        let text = cx.host.read_text("/proc/meminfo".as_ref())?;
        let total = field(&text, "SwapTotal");
        let used = share(total - field(&text, "SwapFree"), total);
        let limit = percent(config, "percent").unwrap_or(f64::MAX);
        Ok(if used >= limit { vec![entries! { "swapusage" => used }] } else { Vec::new() })
    }
}
