//! `btmp`: an event for each login that failed.

use std::path::Path;

use halite_spec::{Cx, Result};
use halite_value::Dict;

use crate::{
    Config, Problem, Watch, beacon,
    wtmp::{Records, is_wanted, validate},
};

beacon! {
    /// Tell of logins that failed.
    "btmp": Btmp
}

#[derive(Default)]
pub struct Btmp {
    records: Records,
}

impl Watch for Btmp {
    fn validate(config: &Config) -> Result<(), Problem> {
        validate(config)
    }

    fn look(&mut self, cx: &Cx, config: &Config) -> Result<Vec<Dict>> {
        let mut events = self.records.new_ones(cx, Path::new("/var/log/btmp"))?;
        events.retain(|record| is_wanted(cx, config, record));
        Ok(events)
    }
}
