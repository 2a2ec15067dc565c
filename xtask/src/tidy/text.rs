//! Checks on the text of files: headers, unfinished work, paths that exist on one machine only.

use std::path::Path;

use anyhow::Result;

use super::Findings;
use crate::tree;

pub(super) fn check(root: &Path) -> Result<Findings> {
    let here = paths_of_this_machine(root);
    let mut findings = Findings::new();
    for file in tree::files(root)? {
        let Some(text) = tree::text(&file)? else { continue };
        let name = tree::shown(root, &file);
        let rust = name.ends_with(".rs");
        if rust && !text.starts_with("//!") {
            findings.push(format!("{name}:1: say in a `//!` comment what the file is for"));
        }
        for (number, line) in (1..).zip(text.lines()) {
            if let Some(mark) = unfinished(line).filter(|_| rust) {
                findings.push(format!("{name}:{number}: unfinished: `{mark}`"));
            }
            if let Some(path) = here.iter().find(|path| mentions(line, path)) {
                findings.push(format!("{name}:{number}: `{path}` exists on this machine only"));
            }
        }
    }
    Ok(findings)
}

/// Returns the mark of work left undone, if the line has one outside of a comment.
fn unfinished(line: &str) -> Option<&'static str> {
    const MARKS: [&str; 3] =
        [concat!("todo", "!("), concat!("unimplemented", "!("), concat!("#[", "ignore")];
    let code = line.split("//").next().unwrap_or(line);
    MARKS.into_iter().find(|mark| code.contains(mark))
}

/// Returns path prefixes that mean nothing elsewhere: where the tree, the build and cargo's own
/// files lie, and what `TIDY_PATHS` adds (with colons between).
fn paths_of_this_machine(root: &Path) -> Vec<String> {
    // A clone right below the root, in `/src` say, has a name that means something elsewhere, too.
    let deep = root.components().count() > 2;
    let mut paths: Vec<String> = deep.then(|| root.display().to_string()).into_iter().collect();
    for name in ["CARGO_HOME", "CARGO_TARGET_DIR", "RUSTUP_HOME", "TIDY_PATHS"] {
        let value = std::env::var(name).unwrap_or_default();
        paths.extend(value.split(':').filter(|path| path.len() > 4).map(str::to_owned));
    }
    paths
}

/// Tells whether `line` names the path, not one that only contains it further in.
fn mentions(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        line[..at].chars().next_back().is_none_or(|before| {
            !before.is_alphanumeric() && !matches!(before, '/' | '.' | '_' | '-' | '}' | '$' | '*')
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_in_comments_do_not_count() {
        assert!(unfinished(concat!("    todo", "!()")).is_some());
        assert!(unfinished(concat!("#[", "ignore]")).is_some());
        assert!(unfinished(concat!("// never todo", "!() in code")).is_none());
    }

    #[test]
    fn a_short_path_betrays_nothing() {
        let found = |root: &str| paths_of_this_machine(Path::new(root)).contains(&root.to_owned());
        assert!(found("/home/ann/halite") && !found("/src"));
    }

    #[test]
    fn a_path_is_named_from_its_root() {
        assert!(mentions("see /builds/x", "/builds/"));
        assert!(mentions("\"/builds/x\"", "/builds/"));
        assert!(!mentions("$HOME/builds/x and ci/builds/y", "/builds/"));
    }
}
