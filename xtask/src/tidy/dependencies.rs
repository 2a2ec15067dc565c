//! Other people's crates: none that is forbidden in the tree, and a line in
//! `docs/dependencies.md` for each one we name.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, Result, bail};

use super::Findings;

const PAGE: &str = "docs/dependencies.md";

/// One crypto library only (aws-lc), and no build that needs libclang. (`cmake` is named by
/// aws-lc-sys, which builds without it.)
const FORBIDDEN: [&str; 5] = ["ring", "openssl-sys", "openssl", "native-tls", "bindgen"];

pub(super) fn check(root: &Path) -> Result<Findings> {
    let mut findings = forbidden(&tree_of(root)?);
    let page = fs::read_to_string(root.join(PAGE)).unwrap_or_default();
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
    for name in named(&manifest) {
        if !page.contains(&format!("`{name}`")) {
            findings.push(format!("{PAGE}: `{name}` has no line: need, why not std, licence"));
        }
    }
    Ok(findings)
}

/// Returns every crate that is built into what we ship, as `cargo tree` lists them.
fn tree_of(root: &Path) -> Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["tree", "--workspace", "--edges", "normal,build", "--prefix", "none"])
        .current_dir(root)
        .output()
        .context("starting cargo tree")?;
    if !output.status.success() {
        bail!("cargo tree: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn forbidden(tree: &str) -> Findings {
    let names: Vec<_> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    FORBIDDEN
        .iter()
        .filter(|name| names.contains(name))
        .map(|name| format!("Cargo.lock: `{name}` is in the tree: see `cargo tree -i {name}`"))
        .collect()
}

/// Returns the crates named under `[workspace.dependencies]` that are not ours.
fn named(manifest: &str) -> Vec<&str> {
    manifest
        .lines()
        .skip_while(|line| line.trim() != "[workspace.dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once('='))
        .filter(|(_, what)| !what.contains("path ="))
        .map(|(name, _)| name.trim())
        .filter(|name| !name.starts_with('#'))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forbidden_crates_are_found_by_their_whole_name() {
        assert_eq!(forbidden("halite v0.1.0 (/x)\nring v0.17.8\n").len(), 1);
        assert!(forbidden("spring v1.0.0\nopenssl-probe v0.1.0\n").is_empty());
    }

    #[test]
    fn our_own_crates_need_no_line() {
        let manifest = "[workspace]\nx = 1\n[workspace.dependencies]\n# ours\nhalite-value = \
                        { path = \"crates/value\" }\nbytes = \"1\"\n\n[profile.dev]\ny = 2\n";
        assert_eq!(named(manifest), ["bytes"]);
    }
}
