//! Generated text between two markers, `gen:begin` and `gen:end`, in files that are otherwise
//! written by hand. It is committed, so that readers and `grep` see it; `--check` keeps it true.

use std::{fs, path::Path, path::PathBuf};

use anyhow::{Context, Result, bail};

use crate::{differences, lists, tree};

/// A file as it should be.
pub(crate) struct Wanted {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// Writes every generated part that is not up to date.
pub(crate) fn write(root: &Path) -> Result<()> {
    for wanted in stale(root)? {
        fs::write(&wanted.path, &wanted.text)
            .with_context(|| format!("writing {}", wanted.path.display()))?;
        println!("gen: wrote {}", tree::shown(root, &wanted.path));
    }
    Ok(())
}

/// Fails when something generated is not up to date.
pub(crate) fn check(root: &Path) -> Result<()> {
    let stale: Vec<_> = stale(root)?.iter().map(|file| tree::shown(root, &file.path)).collect();
    if !stale.is_empty() {
        bail!("stale, run `make gen`: {}", stale.join(", "));
    }
    Ok(())
}

/// Returns the files whose generated part differs from what the tree says.
pub(crate) fn stale(root: &Path) -> Result<Vec<Wanted>> {
    let mut wanted = lists::wanted(root)?;
    wanted.extend(differences::wanted(root)?);
    let mut stale = Vec::new();
    for file in wanted {
        if fs::read_to_string(&file.path).ok().as_deref() != Some(file.text.as_str()) {
            stale.push(file);
        }
    }
    Ok(stale)
}

/// Returns `text` with the lines between its markers replaced; None when it has no markers.
pub(crate) fn between(text: &str, body: &str) -> Result<Option<String>> {
    let is = |marker: &'static str| {
        move |line: &&str| {
            let line = line.trim_start_matches(['/', '<', '!', '-', ' ']);
            line.strip_prefix(marker).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
        }
    };
    let lines: Vec<_> = text.lines().collect();
    let Some(begin) = lines.iter().position(|line| is("gen:begin")(line)) else { return Ok(None) };
    let Some(end) = lines.iter().position(|line| is("gen:end")(line)).filter(|end| *end > begin)
    else {
        bail!("`gen:begin` without `gen:end`");
    };
    let mut new = lines[..=begin].join("\n");
    new.push('\n');
    new.push_str(body);
    new.push_str(&lines[end..].join("\n"));
    new.push('\n');
    Ok(Some(new))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_between_is_replaced() {
        let text = "a\n// gen:begin (by make gen)\nold\n// gen:end\nb\n";
        let new = between(text, "new\n").unwrap().unwrap();
        assert_eq!(new, "a\n// gen:begin (by make gen)\nnew\n// gen:end\nb\n");
        assert_eq!(between(&new, "new\n").unwrap().unwrap(), new);
    }

    #[test]
    fn markers_are_optional_but_come_in_pairs() {
        assert!(between("nothing here\n", "x").unwrap().is_none());
        assert!(between("<!-- gen:begin -->\n", "x").is_err());
    }
}
