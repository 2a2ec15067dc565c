//! `aliases`: mail aliases, in `/etc/aliases` or the file the option `aliases.file` names.

use std::path::PathBuf;

use halite_spec::{Command, Cx, Error, Result, function, host::Write, module};
use halite_value::{Dict, Value};

use crate::file::text::read_to_edit_if_there;

module! {
    /// Mail aliases.
    "aliases": list_aliases, get_target, has_target, set_target, rm_alias,
}

/// A line of the file: an alias, or anything else.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Line {
    Alias { name: String, target: String, comment: String },
    Other(String),
}

impl Line {
    fn read(line: &str) -> Self {
        let other = || Self::Other(line.trim().to_owned());
        let Some((name, rest)) = line.split_once(':') else { return other() };
        let rest = rest.trim_start();
        let (target, comment) = match rest.find('#') {
            Some(at) => {
                let end = rest.get(..at).map_or(0, |before| before.trim_end().len());
                rest.split_at(end)
            }
            None => (rest.trim_end(), ""),
        };
        if name.is_empty() || name.contains([' ', '\t', '#']) || target.is_empty() {
            return other();
        }
        Self::Alias { name: name.into(), target: target.into(), comment: comment.trim_end().into() }
    }

    fn write(&self) -> String {
        match self {
            Self::Alias { name, target, comment } => format!("{name}: {target}{comment}\n"),
            Self::Other(line) => format!("{line}\n"),
        }
    }
}

fn file(cx: &Cx) -> PathBuf {
    let named = cx.opt_str("aliases.file").filter(|file| !file.is_empty());
    PathBuf::from(named.as_deref().unwrap_or("/etc/aliases"))
}

fn load(cx: &Cx) -> Result<Vec<Line>> {
    let text = read_to_edit_if_there(cx, &file(cx))?.unwrap_or_default();
    Ok(text.lines().map(Line::read).collect())
}

fn save(cx: &Cx, lines: &[Line]) -> Result<()> {
    let path = file(cx);
    let text: String = lines.iter().map(Line::write).collect();
    let mode = if cx.host.exists(&path)? { None } else { Some(0o644) };
    cx.host.write(&path, text.as_bytes(), &Write { mode, ..Write::default() })?;
    if cx.host.which("newaliases").is_some() {
        cx.host.run(&Command::line(["newaliases"]))?;
    }
    Ok(())
}

/// Return all aliases.
///
/// ```console
/// $ salt web1 aliases.list_aliases
/// ```
#[function]
pub fn list_aliases(cx: &Cx) -> Result<Dict> {
    let pairs = load(cx)?.into_iter().filter_map(|line| match line {
        Line::Alias { name, target, .. } => Some((name, target)),
        Line::Other(_) => None,
    });
    Ok(pairs.collect())
}

/// Return where an alias leads, or an empty text.
///
/// ```console
/// $ salt web1 aliases.get_target ops
/// ```
#[function]
pub fn get_target(
    cx: &Cx,
    /// The alias.
    alias: String,
) -> Result<String> {
    Ok(list_aliases(cx)?.get(alias.as_str()).map(|target| target.to_string()).unwrap_or_default())
}

/// A target is a text, or a list.
pub fn target_text(target: &Value) -> Result<String> {
    let text = match target.items_of_sequence() {
        Some(items) => items.iter().map(Value::to_string).collect::<Vec<_>>().join(", "),
        None => target.to_string(),
    };
    if text.is_empty() {
        return Err(Error::invalid("target can not be an empty string"));
    }
    if text.contains('\n') {
        return Err(Error::invalid("a target is one line"));
    }
    Ok(text)
}

/// Tell whether an alias leads somewhere.
///
/// ```console
/// $ salt web1 aliases.has_target ops ada@example.org
/// ```
#[function]
pub fn has_target(
    cx: &Cx,
    /// The alias.
    alias: String,
    /// The target, or a list.
    target: Value,
) -> Result<bool> {
    let wanted = target_text(&target)?;
    Ok(list_aliases(cx)?.get(alias.as_str()).is_some_and(|own| own == wanted.as_str()))
}

/// Set where an alias leads.
///
/// ```console
/// $ salt web1 aliases.set_target ops ada@example.org
/// ```
#[function]
pub fn set_target(
    cx: &Cx,
    /// The alias.
    alias: String,
    /// The target, or a list.
    target: Value,
) -> Result<bool> {
    if alias.is_empty() {
        return Err(Error::invalid("alias can not be an empty string"));
    }
    let wanted = target_text(&target)?;
    if get_target(cx, alias.clone())? == wanted {
        return Ok(true);
    }
    let mut lines = Vec::new();
    let mut placed = false;
    for line in load(cx)? {
        match line {
            Line::Alias { name, comment, .. } if name == alias => {
                if !placed {
                    lines.push(Line::Alias { name, target: wanted.clone(), comment });
                    placed = true;
                }
            }
            other => lines.push(other),
        }
    }
    if !placed {
        lines.push(Line::Alias { name: alias, target: wanted, comment: String::new() });
    }
    save(cx, &lines)?;
    Ok(true)
}

/// Remove an alias.
///
/// ```console
/// $ salt web1 aliases.rm_alias ops
/// ```
#[function]
pub fn rm_alias(
    cx: &Cx,
    /// The alias.
    alias: String,
) -> Result<bool> {
    let own = |line: &Line| matches!(line, Line::Alias { name, .. } if *name == alias);
    let mut lines = load(cx)?;
    if lines.iter().any(own) {
        lines.retain(|line| !own(line));
        save(cx, &lines)?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_comments() {
        for text in ["root: me # why\n", "# only a comment\n", "a: b, c\n", "\n"] {
            assert_eq!(Line::read(text).write(), text);
        }
        assert!(matches!(Line::read("root: me"), Line::Alias { .. }));
    }
}
