//! Reference pages from the declarations. There is nothing to write them from yet: the registry
//! crates (`modules`, `states`) do not exist.

use std::path::Path;

use anyhow::{Result, bail};

/// Writes `docs/reference/`; says so when there is nothing to write it from.
pub(crate) fn run(root: &Path) -> Result<()> {
    if !root.join("crates/modules").is_dir() {
        println!(
            "docs: no function is declared yet (crates/modules does not exist): nothing written"
        );
        return Ok(());
    }
    bail!("the reference pages are not written yet");
}
