//! Grains and pillar of a machine without a master.

use halite_spec::{Cx, Result};
use halite_value::Dict;

use crate::Sources;

/// Collects grains here and compiles pillar from `pillar_roots`.
#[derive(Default)]
pub struct Masterless;

impl Masterless {
    pub fn new() -> Self {
        Self
    }
}

impl Sources for Masterless {
    fn grains(&self, cx: &Cx) -> Result<Dict> {
        Ok(halite_grains::collect(&*cx.host, &cx.opts))
    }

    fn pillar(&self, _: &Cx, overrides: &Dict, _: Option<&str>) -> Result<Dict> {
        Ok(overrides.shallow_copy())
    }
}
