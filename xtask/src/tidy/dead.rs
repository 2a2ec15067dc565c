//! Dead files: `.rs` files of a member that no `mod` line leads to. The compiler never sees them,
//! so they rot.
//!
//! The scan reads `mod x;`, `#[path = "…"]` and `include!("…")` line by line. That is coarser than a
//! parser, and errs on the side of calling a file alive.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::Result;

use super::{Findings, Package};
use crate::tree;

pub(super) fn check(root: &Path, packages: &[Package]) -> Result<Findings> {
    let mut findings = Findings::new();
    let mut alive = BTreeSet::new();
    for target in packages.iter().flat_map(|package| &package.roots) {
        reach(target, true, &mut alive)?;
    }
    for package in packages {
        for file in tree::rust_files(&package.folder)? {
            if !alive.contains(&file) {
                let name = tree::shown(root, &file);
                findings.push(format!("{name}: no `mod` line leads to this file"));
            }
        }
    }
    Ok(findings)
}

/// Adds `file` and what its `mod` lines lead to. A crate's first file and `mod.rs` have their
/// children beside them, others in the folder of their name.
fn reach(file: &Path, first: bool, alive: &mut BTreeSet<PathBuf>) -> Result<()> {
    if !file.is_file() || !alive.insert(file.to_owned()) {
        return Ok(());
    }
    let folder = file.parent().unwrap_or(Path::new("")).to_owned();
    let children =
        if first || file.ends_with("mod.rs") { folder.clone() } else { file.with_extension("") };
    for link in links(&fs::read_to_string(file)?) {
        match link {
            Link::Mod(name) => {
                reach(&children.join(format!("{name}.rs")), false, alive)?;
                reach(&children.join(name).join("mod.rs"), false, alive)?;
            }
            Link::Path(path) => reach(&folder.join(path), false, alive)?,
        }
    }
    Ok(())
}

#[derive(Debug, PartialEq)]
enum Link {
    Mod(String),
    Path(String),
}

fn links(source: &str) -> Vec<Link> {
    source.lines().map(str::trim).filter_map(link).collect()
}

fn link(line: &str) -> Option<Link> {
    for opening in ["#[path = \"", "include!(\""] {
        if let Some(rest) = line.split(opening).nth(1) {
            return Some(Link::Path(rest.split('"').next()?.to_owned()));
        }
    }
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(')')?.1.trim_start(),
        Some(rest) => rest.trim_start(),
        None => line,
    };
    let name = line.strip_prefix("mod ")?.split_once(';')?.0.trim();
    Some(Link::Mod(name.trim_start_matches("r#").to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_read_from_lines() {
        let source = "pub(crate) mod a;\n  mod r#match; // x\nmod inline {\n}\n// mod no;\n\
                      #[path = \"other/b.rs\"]\npub mod b;\ninclude!(\"c.rs\");\n";
        let is = |name: &str| Link::Mod(name.to_owned());
        let at = |path: &str| Link::Path(path.to_owned());
        assert_eq!(links(source), [is("a"), is("match"), at("other/b.rs"), is("b"), at("c.rs")]);
    }
}
