//! The list of deviations from Salt in `docs/differences.md`, from the marks in the code.
//!
//! A deviation is marked where it is made, `// differs: why`; the text runs over the comment lines
//! that follow. The page groups them by file, without line numbers: those would make it stale with
//! every edit.

use std::{fmt::Write as _, fs, path::Path};

use anyhow::{Context, Result};

use crate::{
    generated::{Wanted, between},
    tree,
};

const PAGE: &str = "docs/differences.md";

/// Returns the page as it should be; nothing when there is no such page.
pub(crate) fn wanted(root: &Path) -> Result<Option<Wanted>> {
    let path = root.join(PAGE);
    let Ok(text) = fs::read_to_string(&path) else { return Ok(None) };
    let mut body = String::from("\n");
    for file in tree::rust_files(&root.join("crates"))? {
        let marks = marks(&fs::read_to_string(&file)?);
        if marks.is_empty() {
            continue;
        }
        writeln!(body, "`{}`\n", tree::shown(root, &file)).expect("a String takes all");
        for mark in marks {
            writeln!(body, "- {mark}").expect("a String takes all");
        }
        body.push('\n');
    }
    let new = between(&text, &body).context(PAGE)?;
    Ok(new.map(|text| Wanted { path, text }))
}

/// Returns the text of each mark, its lines joined.
fn marks(source: &str) -> Vec<String> {
    let mut marks = Vec::new();
    let mut lines = source.lines().map(str::trim).peekable();
    while let Some(line) = lines.next() {
        let Some((_, first)) = line.split_once("// differs:") else { continue };
        let mut mark = first.trim().to_owned();
        while let Some(next) = lines.next_if(|next| continues(next)) {
            mark.push(' ');
            mark.push_str(next.trim_start_matches('/').trim());
        }
        marks.push(mark);
    }
    marks
}

fn continues(line: &str) -> bool {
    line.starts_with("// ") && !line.contains("// differs:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_runs_over_the_comment_lines_that_follow() {
        let source =
            "x(); // differs: one\n    // differs: two\n    // and more\n    y();\n// no\n";
        assert_eq!(marks(source), ["one", "two and more"]);
    }
}
