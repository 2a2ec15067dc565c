//! Editing a single line: `file.line`.
//!
//! Lines keep their own ends while they are moved about, so that a file with `\r\n` keeps them.
//! Several rules look odd, and trees rely on them: an expression that is no regular expression for
//! a line still finds it as plain text, the first matching line stands for all lines equal to it,
//! and an added line takes the indentation of its neighbour.

use std::path::Path;

use halite_spec::{Cx, Error, Result, function, host::Write};
use halite_value::Value;
use jiff::{Timestamp, tz::TimeZone};

use super::{
    diff,
    paths::{expand_user, real},
    regex::{DOTALL, Re},
    text::{read_to_edit, text_lines},
};

/// What to do with which line.
#[derive(Clone, Debug, Default)]
pub struct LineEdit {
    pub content: Option<String>,
    pub matching: Option<String>,
    pub mode: String,
    pub location: Option<String>,
    pub before: Option<String>,
    pub after: Option<String>,
    pub indent: bool,
}

/// The lines an expression finds; `None` if there is no expression or no line.
fn matching(lines: &[String], expression: Option<&str>) -> Result<Option<Vec<usize>>> {
    let Some(expression) = expression.filter(|text| !text.is_empty() && !lines.is_empty()) else {
        return Ok(None);
    };
    let bad = |error| Error::failed(format!("{error}: '{expression}'"));
    let re = Re::new(expression, DOTALL).map_err(bad)?;
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if re.found_in(line).map_err(bad)? || line.contains(expression) {
            found.push(at);
        }
    }
    Ok(Some(found))
}

fn exactly_one(found: &[usize], which: &str) -> Result<()> {
    let word = match found.len() {
        1 => return Ok(()),
        0 => "less than",
        _ => "more than",
    };
    Err(Error::failed(format!("Found {word} expected occurrences in \"{which}\" expression")))
}

fn end_of(line: &str) -> &str {
    if line.ends_with("\r\n") {
        "\r\n"
    } else if line.ends_with('\n') {
        "\n"
    } else if line.ends_with('\r') {
        "\r"
    } else {
        ""
    }
}

fn without_end(line: &str) -> &str {
    line.trim_end_matches(['\r', '\n'])
}

impl LineEdit {
    fn indented(&self, neighbour: &str) -> String {
        let content = self.content.as_deref().unwrap_or_default();
        if !self.indent {
            return content.to_owned();
        }
        let lead: String = neighbour.chars().take_while(|c| matches!(c, '\t' | ' ')).collect();
        format!("{lead}{}", content.trim_start())
    }

    /// Checks what needs no file.
    pub fn check(&self) -> Result<()> {
        match self.mode.as_str() {
            "insert" | "ensure" | "delete" | "replace" => {}
            "" => {
                return Err(Error::failed("Mode was not defined. How to process the file?"));
            }
            mode => return Err(Error::failed(format!("Unknown mode: \"{mode}\""))),
        }
        if self.mode != "delete" && self.content.is_none() {
            return Err(Error::failed("Content can only be empty if mode is \"delete\""));
        }
        Ok(())
    }

    /// Returns the file's new text.
    pub fn run(&self, text: &str) -> Result<String> {
        self.check()?;
        let mut lines: Vec<String> = text_lines_at_newline(text);
        if lines.last().is_some_and(|line| !end_of(line).is_empty()) {
            lines.push(String::new());
        }
        if text.is_empty() && matches!(self.mode.as_str(), "delete" | "replace") {
            lines.clear();
        }
        let mut lines = self.edited(lines)?;
        for at in 0..lines.len().saturating_sub(1) {
            if end_of(&lines[at]).is_empty() {
                let neighbour = if at == 0 { 1 } else { at - 1 };
                let end = match end_of(&lines[neighbour]) {
                    "" => "\n",
                    end => end,
                };
                lines[at] = format!("{}{end}", lines[at].trim_end());
            }
        }
        if lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        Ok(lines.concat())
    }

    fn edited(&self, mut lines: Vec<String>) -> Result<Vec<String>> {
        let content = self.content.as_deref();
        let whole = self.before.is_none() && self.after.is_none();
        let wanted = self.matching.as_deref().filter(|text| !text.is_empty());
        let wanted = wanted.or(if whole { content } else { None });
        let after = matching(&lines, self.after.as_deref())?;
        let before = matching(&lines, self.before.as_deref())?;
        let found = matching(&lines, wanted)?;
        let first = found.as_ref().and_then(|found| found.first().copied());
        match self.mode.as_str() {
            "delete" => {
                if let Some(first) = first {
                    let line = lines[first].clone();
                    lines.retain(|other| *other != line);
                }
            }
            "replace" => {
                if let Some(first) = first {
                    // The first of equal lines.
                    let line = lines[first].clone();
                    let at = lines.iter().position(|other| *other == line).unwrap_or(first);
                    lines[at] = self.indented(&line);
                }
            }
            "insert" => self.insert(&mut lines, before, after)?,
            _ => self.ensure(&mut lines, before, after)?,
        }
        Ok(lines)
    }

    fn insert(
        &self,
        lines: &mut Vec<String>,
        before: Option<Vec<usize>>,
        after: Option<Vec<usize>>,
    ) -> Result<()> {
        let location = self.location.as_deref().filter(|word| !word.is_empty());
        if before.is_none() && after.is_none() && location.is_none() {
            return Err(Error::failed(
                "On insert either \"location\" or \"before/after\" conditions are required.",
            ));
        }
        let spot = match (location, Anchors::of(before, after)) {
            (Some("start"), _) => {
                let first = self.first_line(lines);
                lines.insert(0, first);
                Spot::Nowhere
            }
            (Some("end"), _) => Spot::New { at: lines.len(), like: lines.len().checked_sub(1) },
            (Some(_), _) => Spot::Nowhere,
            (None, Anchors::Both { before, after }) => {
                let at = only(lines, &before, "before")?;
                only(lines, &after, "after")?;
                Spot::New { at, like: Some(at) }
            }
            (None, Anchors::After(found)) => self.below(lines, only(lines, &found, "after")?),
            (None, Anchors::Before(found)) => {
                let at = only(lines, &found, "before")?;
                // Before the first line comes the last one, as in Python's lists.
                let previous = at.checked_sub(1).or(lines.len().checked_sub(1));
                self.unless_there(lines, previous, Spot::New { at, like: Some(at) })
            }
            (None, Anchors::Neither) => {
                return Err(Error::failed("Neither before or after was found in file"));
            }
        };
        self.put(lines, spot);
        Ok(())
    }

    /// The content as the first line, with the end its successor has.
    fn first_line(&self, lines: &[String]) -> String {
        let content = self.content.as_deref().unwrap_or_default();
        match lines.first().map(|line| end_of(line)) {
            None => format!("{content}\n"),
            Some("") => format!("{}\n", content.trim_end()),
            Some(end) => format!("{}{end}", content.trim_end()),
        }
    }

    /// Below a line, unless it stands there.
    fn below(&self, lines: &[String], at: usize) -> Spot {
        self.unless_there(lines, Some(at + 1), Spot::New { at: at + 1, like: Some(at) })
    }

    /// A spot, unless the content stands beside it already.
    fn unless_there(&self, lines: &[String], beside: Option<usize>, spot: Spot) -> Spot {
        let content = without_end(self.content.as_deref().unwrap_or_default());
        match beside.and_then(|at| lines.get(at)) {
            Some(line) if without_end(line) == content => Spot::Nowhere,
            _ => spot,
        }
    }

    /// Puts the content into its place.
    fn put(&self, lines: &mut Vec<String>, spot: Spot) {
        match spot {
            Spot::Nowhere => {}
            Spot::New { at, like } => {
                let content = || self.content.clone().unwrap_or_default();
                let line = like.map_or_else(content, |like| self.indented(&lines[like]));
                lines.insert(at, line);
            }
            Spot::Instead { at, like } => lines[at] = self.indented(&lines[like]),
        }
    }

    fn ensure(
        &self,
        lines: &mut Vec<String>,
        before: Option<Vec<usize>>,
        after: Option<Vec<usize>>,
    ) -> Result<()> {
        let spot = match Anchors::of(before, after) {
            Anchors::Both { before, after } => {
                let after = only(lines, &after, "after")?;
                let before = only(lines, &before, "before")?;
                let content = self.content.as_deref().unwrap_or_default();
                let there = lines.iter().any(|line| line.trim_start() == content);
                // The one line between the two is taken to be the old content.
                match before.checked_sub(after) {
                    _ if there => Spot::Nowhere,
                    Some(1) => Spot::New { at: before, like: Some(after) },
                    Some(2) => Spot::Instead { at: after + 1, like: after },
                    _ => {
                        return Err(Error::failed(
                            "Found more than one line between boundaries \"before\" and \"after\".",
                        ));
                    }
                }
            }
            Anchors::Before(found) => {
                let at = only(lines, &found, "before")?;
                let previous = at.checked_sub(1);
                let like = previous.or(lines.len().checked_sub(1));
                self.unless_there(lines, previous, Spot::New { at, like })
            }
            Anchors::After(found) => self.below(lines, only(lines, &found, "after")?),
            Anchors::Neither => {
                return Err(Error::failed(
                    "Wrong conditions? Unable to ensure line without knowing where to put it \
                     before and/or after.",
                ));
            }
        };
        self.put(lines, spot);
        Ok(())
    }
}

/// The lines found that an edit may go by.
enum Anchors {
    Neither,
    Before(Vec<usize>),
    After(Vec<usize>),
    Both { before: Vec<usize>, after: Vec<usize> },
}

impl Anchors {
    fn of(before: Option<Vec<usize>>, after: Option<Vec<usize>>) -> Self {
        let [before, after] = [before, after].map(|found| found.filter(|own| !own.is_empty()));
        match (before, after) {
            (None, None) => Self::Neither,
            (Some(before), None) => Self::Before(before),
            (None, Some(after)) => Self::After(after),
            (Some(before), Some(after)) => Self::Both { before, after },
        }
    }
}

/// Where a line goes; it is indented like another.
enum Spot {
    /// It is there already.
    Nowhere,
    New {
        at: usize,
        like: Option<usize>,
    },
    Instead {
        at: usize,
        like: usize,
    },
}

/// The place of the only line found.
fn only(lines: &[String], found: &[usize], which: &str) -> Result<usize> {
    exactly_one(found, which)?;
    Ok(place(lines, found[0]))
}

/// The first of the lines equal to the one found.
fn place(lines: &[String], found: usize) -> usize {
    let line = &lines[found];
    lines.iter().position(|other| other == line).unwrap_or(found)
}

/// Lines as Python's text files give them when line ends are left alone: cut at `\n`, `\r`, `\r\n`.
fn text_lines_at_newline(text: &str) -> Vec<String> {
    super::text::byte_lines(text.as_bytes())
        .into_iter()
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .collect()
}

/// The difference as `file.line` shows it.
pub fn line_diff(old: &str, new: &str) -> String {
    diff::unified(
        &text_lines(old),
        &text_lines_at_newline(new).iter().map(String::as_str).collect::<Vec<_>>(),
    )
}

/// Keeps a copy with the time in its name.
pub fn keep_dated_copy(cx: &Cx, path: &str) -> Result<()> {
    let now = Timestamp::try_from(cx.host.now())
        .map_err(|error| Error::failed(format!("the clock is out of range: {error}")))?;
    let stamp = now.to_zoned(TimeZone::system()).strftime("%Y-%m-%d-%H-%M-%S").to_string();
    let stat = cx.host.stat(Path::new(path), true)?;
    let copy = format!("{path}.{stamp}");
    super::backup::copy_whole(cx, Path::new(path), Path::new(&copy), &stat)
}

/// Edit a line of a file: delete, replace, insert it, or ensure that it is at its place.
///
/// ```console
/// $ salt '*' file.line /etc/nsswitch.conf 'networks: files dns' after='hosts:.*?' mode='ensure'
/// ```
#[function]
pub fn line(
    cx: &Cx,
    /// The file.
    path: String,
    /// The line.
    content: Option<String>,
    /// An expression for the line to change.
    r#match: Option<String>,
    /// `ensure`, `replace`, `insert` or `delete`.
    mode: Option<String>,
    /// `start` or `end`, for `insert`.
    location: Option<String>,
    /// The line goes before the one that matches this.
    before: Option<String>,
    /// The line goes after the one that matches this.
    after: Option<String>,
    /// Return the difference, not only whether there is one.
    #[default(true)]
    show_changes: bool,
    /// Keep a copy with the time in its name.
    #[default(false)]
    backup: bool,
    /// No error if there is no such file.
    #[default(false)]
    quiet: bool,
    /// Take the indentation of the line beside it.
    #[default(true)]
    indent: bool,
) -> Result<Value> {
    let path = real(cx, &expand_user(cx, &path))?;
    if !cx.host.is_file(Path::new(&path))? {
        if quiet {
            return Ok(false.into());
        }
        return Err(Error::failed(format!("File \"{path}\" does not exists or is not a file.")));
    }
    let mode = mode.unwrap_or_default().to_lowercase();
    let edit = LineEdit { content, matching: r#match, mode, location, before, after, indent };
    let old = read_to_edit(cx, Path::new(&path))?;
    let new = edit.run(&old)?;
    if old == new {
        return Ok(false.into());
    }
    if !cx.opt_bool("test") {
        if backup {
            keep_dated_copy(cx, &path)?;
        }
        cx.host.write(Path::new(&path), new.as_bytes(), &Write::default())?;
    }
    Ok(if show_changes { line_diff(&old, &new).into() } else { true.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(mode: &str, content: &str) -> LineEdit {
        LineEdit {
            content: Some(content.into()),
            mode: mode.into(),
            indent: true,
            ..LineEdit::default()
        }
    }

    fn check(edit: &LineEdit, old: &str, new: &str) {
        assert_eq!(edit.run(old).unwrap(), new);
    }

    #[test]
    fn delete_and_replace() {
        check(&edit("delete", "b"), "a\nb\nc\nb\n", "a\nc\n");
        let replace = LineEdit { matching: Some("^b".into()), ..edit("replace", "x") };
        check(&replace, "a\n  b\nb\n", "a\n  b\nx\n");
        check(&LineEdit { matching: Some("b".into()), ..replace }, "a\n  b\n", "a\n  x\n");
    }

    #[test]
    fn insert_and_ensure() {
        let end = LineEdit { location: Some("end".into()), ..edit("insert", "z") };
        check(&end, "a", "a\nz");
        check(&end, "a\n", "a\n\nz");
        let start = LineEdit { location: Some("start".into()), ..edit("insert", "z") };
        check(&start, "a\r\n", "z\r\na\r\n");
        let after = LineEdit { after: Some("^a".into()), ..edit("ensure", "z") };
        check(&after, "a\nb\n", "a\nz\nb\n");
        check(&after, "a\nz\nb\n", "a\nz\nb\n");
        let both = LineEdit { before: Some("^c".into()), ..after };
        check(&both, "a\nb\nc\n", "a\nz\nc\n");
        assert!(both.run("a\nb\nb\nc\n").is_err());
        let before = LineEdit { before: Some("^b".into()), ..edit("insert", "z") };
        check(&before, "a\nb\n", "a\nz\nb\n");
        assert_eq!(
            before.run("b\nb1\n").unwrap_err().to_string(),
            "Found more than expected occurrences in \"before\" expression"
        );
    }
}
