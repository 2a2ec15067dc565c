//! Reference pages from the declarations. They are written by `xtask/reference`, which links all
//! functions; this only starts it.

use std::path::Path;

use anyhow::Result;

use crate::shell;

/// Writes the pages below the build folder: they are part of a release, not of the repository.
pub(crate) fn run(root: &Path) -> Result<()> {
    shell::run(
        shell::cargo()
            .args(["run", "--quiet", "--package", "halite-reference", "--"])
            .arg(shell::target_dir(root).join("reference"))
            .current_dir(root),
    )
}
