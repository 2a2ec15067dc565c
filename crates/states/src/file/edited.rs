//! `file.replace`, `file.line`, `file.blockreplace`, `file.comment` and `file.uncomment`.

use std::path::Path;

use halite_modules::file::{
    block::Block,
    content::is_binary_file,
    diff,
    edit::comment_lines,
    line::{LineEdit, keep_dated_copy, line_diff},
    paths::real,
    perms::{Mode, Owner, Wanted},
    regex::{MULTILINE, Re},
    replace::{Backup, Edit, Flags, commit, read_to_search, text_or_none},
    text::{decode, read_to_edit, text_lines},
};
use halite_spec::{Applied, Args, Cx, Error, Plan, Result, State, host::Write};
use halite_value::{Dict, Value, entries};

use super::{Found, absolute, accumulated, existing, grown, unknown_owners};

/// A file to be written, with the copy to be kept.
pub struct Work {
    path: String,
    new: Vec<u8>,
    backup: Option<String>,
}

impl Work {
    fn apply(work: Option<Self>, cx: &Cx) -> Result<Applied> {
        if let Some(work) = work {
            commit(cx, &work.path, &work.new, work.backup.as_deref())?;
        }
        Ok(Applied::as_planned())
    }
}

fn changed(diff: Value, pending: &str) -> Plan {
    Plan::change("diff", diff).pending(pending).done("Changes were made")
}

fn unchanged<W>() -> Found<W> {
    Found::right("No changes needed to be made")
}

/// Replace what a regular expression matches in a file.
#[derive(Args)]
pub struct Replace {
    /// The file.
    name: String,
    /// The regular expression.
    pattern: String,
    /// What to put there; `\1` stands for the first group.
    repl: Value,
    /// No more than this many replacements; all if 0.
    #[default(0)]
    count: u64,
    /// Flags of Python's `re`: a number, a name, or a list of names.
    #[default(Flags(MULTILINE))]
    flags: Flags,
    /// Taken for compatibility; the file is always worked on as a whole.
    #[expect(dead_code, reason = "taken for compatibility")]
    #[default(Value::Int(1))]
    bufsize: Value,
    /// Add a line at the end if nothing matches.
    #[default(false)]
    append_if_not_found: bool,
    /// Add a line at the start if nothing matches.
    #[default(false)]
    prepend_if_not_found: bool,
    /// The line to add, if not `repl`.
    not_found_content: Option<Value>,
    /// The ending of the copy kept; False for none.
    #[default(Backup(Some(".bak".to_owned())))]
    backup: Backup,
    /// Show the difference, not only that there is one.
    #[default(true)]
    show_changes: bool,
    /// Fine if there is no such file.
    #[default(false)]
    ignore_if_missing: bool,
    /// A backslash in `repl` is a backslash.
    #[default(false)]
    backslash_literal: bool,
    /// The file's encoding, if not UTF-8.
    encoding: Option<String>,
}

impl State for Replace {
    type Seen = Found<Work>;

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let name = absolute(cx, &self.name, "replace")?;
        if !cx.host.exists(Path::new(&name))? {
            if self.ignore_if_missing {
                return Ok(unchanged());
            }
            return Err(Error::failed(format!("{name}: file not found")));
        }
        let edit = Edit {
            pattern: self.pattern.clone(),
            repl: self.repl.to_str().to_string(),
            count: usize::try_from(self.count).unwrap_or(usize::MAX),
            flags: self.flags.0,
            append_if_not_found: self.append_if_not_found,
            prepend_if_not_found: self.prepend_if_not_found,
            not_found_content: text_or_none(self.not_found_content.as_ref()),
            backslash_literal: self.backslash_literal,
            encoding: self.encoding.clone(),
        };
        let path = real(cx, &name)?;
        let edited = edit.run(&path, read_to_search(cx, &path)?)?;
        if !edited.changed() {
            return Ok(unchanged());
        }
        let diff = if self.show_changes { edited.diff.into() } else { Value::Bool(true) };
        let plan = changed(diff, "Changes would have been made");
        Ok(Found::todo(plan, Work { path: name, new: edited.new, backup: self.backup.0.clone() }))
    }

    fn plan(&self, seen: &Self::Seen) -> Result<Plan> {
        Ok(seen.plan.clone())
    }

    fn apply(&self, cx: &Cx, seen: Self::Seen) -> Result<Applied> {
        Work::apply(seen.work, cx)
    }
}

/// Edit a line of a file: delete, replace, insert it, or ensure that it is at its place.
#[derive(Args)]
pub struct Line {
    /// The file.
    name: String,
    /// The line.
    content: Option<Value>,
    /// An expression for the line to change.
    r#match: Option<Value>,
    /// `ensure`, `replace`, `insert` or `delete`.
    mode: Option<String>,
    /// `start` or `end`, for `insert`.
    location: Option<String>,
    /// The line goes before the one that matches this.
    before: Option<String>,
    /// The line goes after the one that matches this.
    after: Option<String>,
    /// Show the difference, not only that there is one.
    #[default(true)]
    show_changes: bool,
    /// Keep a copy with the time in its name.
    #[default(false)]
    backup: bool,
    /// Taken for compatibility.
    #[expect(dead_code, reason = "the file is checked before")]
    #[default(false)]
    quiet: bool,
    /// Take the indentation of the line beside it.
    #[default(true)]
    indent: bool,
    /// Make the file if it is not there.
    #[default(false)]
    create: bool,
    /// The user of a file made.
    user: Option<Owner>,
    /// The group of a file made.
    group: Option<Owner>,
    /// The mode of a file made.
    file_mode: Option<Mode>,
}

/// What `file.line` does.
pub struct LineWork {
    path: String,
    is_new: bool,
    old: String,
    new: String,
    refused: Option<String>,
}

impl State for Line {
    type Seen = Found<LineWork>;

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let name = absolute(cx, &self.name, "line")?;
        let at = Path::new(&name);
        let is_new = !cx.host.exists(at)?;
        if is_new && !self.create {
            return Err(Error::failed(format!("{name}: file not found")));
        }
        let mode = self.mode.clone().unwrap_or_default().to_lowercase();
        if mode.is_empty() {
            return Err(Error::failed("Mode was not defined. How to process the file?"));
        }
        if mode != "delete" && self.content.is_none() {
            return Err(Error::failed("Content can only be empty if mode is ['delete']"));
        }
        let edit = LineEdit {
            content: text_or_none(self.content.as_ref()),
            matching: text_or_none(self.r#match.as_ref()),
            mode,
            location: self.location.clone(),
            before: self.before.clone(),
            after: self.after.clone(),
            indent: self.indent,
        };
        let path = if is_new { name.clone() } else { real(cx, &name)? };
        let old = if is_new { String::new() } else { read_to_edit(cx, Path::new(&path))? };
        let new = edit.run(&old)?;
        if old == new && !is_new {
            return Ok(unchanged());
        }
        let diff = if self.show_changes { line_diff(&old, &new).into() } else { Value::Bool(true) };
        let plan = changed(diff, "Changes would be made");
        let refused = unknown_owners(cx, self.user.as_ref(), self.group.as_ref());
        Ok(Found::todo(plan, LineWork { path, is_new, old, new, refused }))
    }

    fn plan(&self, seen: &Self::Seen) -> Result<Plan> {
        Ok(seen.plan.clone())
    }

    fn apply(&self, cx: &Cx, seen: Self::Seen) -> Result<Applied> {
        let Some(work) = seen.work else { return Ok(Applied::as_planned()) };
        let at = Path::new(&work.path);
        if self.backup && !work.is_new && work.old != work.new {
            keep_dated_copy(cx, &work.path)?;
        }
        let mode = self.file_mode.as_ref().and_then(Mode::bits).filter(|_| work.is_new);
        cx.host.write(at, work.new.as_bytes(), &Write { mode, ..Write::default() })?;
        if work.is_new && work.refused.is_none() {
            let wanted = Wanted::new(self.user.clone(), self.group.clone(), self.file_mode.clone());
            wanted.enforce(cx, at, true)?;
        }
        Ok(Applied::as_planned())
    }
}

/// Keep a text between two marker lines of a file.
#[derive(Args)]
pub struct Blockreplace {
    /// The file.
    name: String,
    /// The line before the block.
    #[default("#-- start managed zone --".to_owned())]
    marker_start: String,
    /// The line after the block.
    #[default("#-- end managed zone --".to_owned())]
    marker_end: String,
    #[group]
    sources: grown::Sources,
    /// The text.
    #[default(Value::str(""))]
    content: Value,
    /// Add markers and block at the end if they are not there.
    #[default(false)]
    append_if_not_found: bool,
    /// Add markers and block at the start if they are not there.
    #[default(false)]
    prepend_if_not_found: bool,
    /// The ending of the copy kept; False for none.
    #[default(Backup(Some(".bak".to_owned())))]
    backup: Backup,
    /// Show the difference, not only that there is one.
    #[default(true)]
    show_changes: bool,
    /// End the text with a line end; None: if it has none.
    append_newline: Option<bool>,
    /// Add markers and block before the first line that matches, if they are not there.
    insert_before_match: Option<String>,
    /// Add markers and block after the first line that matches, if they are not there.
    insert_after_match: Option<String>,
}

impl State for Blockreplace {
    type Seen = Found<Work>;

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        self.sources.check()?;
        let name = existing(cx, &self.name, "blockreplace")?;
        let mut content = self.content.to_str().to_string();
        for line in accumulated::lines_for_this_state(cx, &name) {
            if !content.is_empty() {
                content.push('\n');
            }
            content.push_str(&line);
        }
        for text in self.sources.texts(cx)?.unwrap_or_default() {
            content.push_str(&text);
        }
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let block = Block {
            marker_start: self.marker_start.clone(),
            marker_end: self.marker_end.clone(),
            content,
            append_if_not_found: self.append_if_not_found,
            prepend_if_not_found: self.prepend_if_not_found,
            append_newline: self.append_newline,
            insert_before_match: given(&self.insert_before_match),
            insert_after_match: given(&self.insert_after_match),
        };
        let wrong = |error: Error| match error {
            Error::Cancelled => error,
            error => Error::failed(format!(
                "Encountered error managing block: {error}. See the log for details."
            )),
        };
        let old = block.check().and_then(|()| Block::read(cx, &name)).map_err(wrong)?;
        let new = block.run(&old).map_err(wrong)?;
        if old == new {
            return Ok(unchanged());
        }
        let diff =
            if self.show_changes { diff::unified(&old, &new).into() } else { Value::Bool(true) };
        let new = new.concat().into_bytes();
        let work = Work { path: name, new, backup: self.backup.0.clone() };
        Ok(Found::todo(changed(diff, "Changes would be made"), work))
    }

    fn plan(&self, seen: &Self::Seen) -> Result<Plan> {
        Ok(seen.plan.clone())
    }

    fn apply(&self, cx: &Cx, seen: Self::Seen) -> Result<Applied> {
        Work::apply(seen.work, cx)
    }
}

fn found(content: &[u8], pattern: &str) -> Result<bool> {
    let bad = |error| Error::failed(format!("{error}: {pattern}"));
    Re::bytes(pattern, MULTILINE).and_then(|re| re.found_in_bytes(content)).map_err(bad)
}

/// Lines of a file, commented out or in.
struct Commenting<'a> {
    name: String,
    regex: &'a str,
    char: &'a str,
    backup: &'a Backup,
    on: bool,
    /// Tells whether the file is as it shall be.
    expected: String,
}

impl Commenting<'_> {
    fn look(&self, cx: &Cx, content: &[u8]) -> Result<Found<(Option<Work>, Applied)>> {
        let name = &self.name;
        let path = real(cx, name)?;
        let done = comment_lines(content, self.regex, self.char, self.on)?;
        let changes = Dict::new();
        if done.new != content {
            let lines = |bytes: &[u8]| -> Vec<String> {
                text_lines(&decode(bytes)).into_iter().map(str::to_owned).collect()
            };
            let diff = if is_binary_file(cx, Path::new(&path)) {
                "Replace binary file".to_owned()
            } else {
                diff::unified(&lines(content), &lines(&done.new))
            };
            changes.insert("diff", diff);
        }
        let ok = found(&done.new, &self.expected)?;
        let (yes, no) = if self.on {
            ("Commented lines successfully", "Expected commented lines not found")
        } else {
            ("Uncommented lines successfully", "Expected uncommented lines not found")
        };
        let applied = Applied {
            changes: Some(changes),
            comment: Some(if ok { yes } else { no }.to_owned()),
            result: Some(ok),
            extra: Dict::new(),
        };
        let plan = Plan::changes(entries! { name.as_str() => "updated" })
            .pending(format!("File {name} is set to be updated"));
        // Where no line begins with the expression nothing is written, and no copy kept.
        let work = (done.new != content).then(|| {
            let backup = self.backup.0.clone();
            Work { path, new: done.new, backup }
        });
        Ok(Found::todo(plan, (work, applied)))
    }

    fn apply(cx: &Cx, work: Option<(Option<Work>, Applied)>) -> Result<Applied> {
        let Some((work, applied)) = work else { return Ok(Applied::as_planned()) };
        Work::apply(work, cx)?;
        Ok(applied)
    }
}

/// Comment lines of a file out.
#[derive(Args)]
pub struct Comment {
    /// The file.
    name: String,
    /// A regular expression for the lines.
    regex: String,
    /// What begins a comment.
    #[default("#".to_owned())]
    char: String,
    /// The ending of the copy kept; False for none.
    #[default(Backup(Some(".bak".to_owned())))]
    backup: Backup,
    /// Fine if no line matches.
    #[default(false)]
    ignore_missing: bool,
}

/// The expression without its anchors and leading flags.
fn unanchored(regex: &str) -> &str {
    let mut rest = regex;
    if let Some(after) = rest.strip_prefix("(?")
        && let Some((flag, after)) = after.split_once(')')
        && flag.len() == 1
        && "iLmsux".contains(flag)
    {
        rest = after;
    }
    let rest = rest.strip_prefix('^').unwrap_or(rest);
    rest.strip_suffix('$').unwrap_or(rest)
}

impl State for Comment {
    type Seen = Found<(Option<Work>, Applied)>;

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let name = existing(cx, &self.name, "comment")?;
        let bare = unanchored(&self.regex);
        let char = &self.char;
        let content = cx.host.read(Path::new(&name))?;
        let commented = format!("{char}{bare}");
        if !found(&content, &format!(r"^(?!\s*{char})\s*{bare}"))? {
            if found(&content, &commented)? {
                return Ok(Found::right("Pattern already commented"));
            }
            if self.ignore_missing {
                return Ok(Found::right("Pattern not found and ignore_missing set to True"));
            }
            return Err(Error::failed(format!("{bare}: Pattern not found")));
        }
        let work = Commenting {
            name,
            regex: &self.regex,
            char,
            backup: &self.backup,
            on: true,
            expected: commented,
        };
        work.look(cx, &content)
    }

    fn plan(&self, seen: &Self::Seen) -> Result<Plan> {
        Ok(seen.plan.clone())
    }

    fn apply(&self, cx: &Cx, seen: Self::Seen) -> Result<Applied> {
        Commenting::apply(cx, seen.work)
    }
}

/// Take the comment sign from lines of a file.
#[derive(Args)]
pub struct Uncomment {
    /// The file.
    name: String,
    /// A regular expression for the lines, without the sign.
    regex: String,
    /// What begins a comment.
    #[default("#".to_owned())]
    char: String,
    /// The ending of the copy kept; False for none.
    #[default(Backup(Some(".bak".to_owned())))]
    backup: Backup,
}

impl State for Uncomment {
    type Seen = Found<(Option<Work>, Applied)>;

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let name = existing(cx, &self.name, "uncomment")?;
        let bare = self.regex.trim_start_matches('^');
        let content = cx.host.read(Path::new(&name))?;
        let uncommented = format!("^[ \t]*{bare}");
        if !found(&content, &format!("{}[ \t]*{bare}", self.char))? {
            if found(&content, &uncommented)? {
                return Ok(Found::right("Pattern already uncommented"));
            }
            return Err(Error::failed(format!("{}: Pattern not found", self.regex)));
        }
        let work = Commenting {
            name,
            regex: &self.regex,
            char: &self.char,
            backup: &self.backup,
            on: false,
            expected: uncommented,
        };
        work.look(cx, &content)
    }

    fn plan(&self, seen: &Self::Seen) -> Result<Plan> {
        Ok(seen.plan.clone())
    }

    fn apply(&self, cx: &Cx, seen: Self::Seen) -> Result<Applied> {
        Commenting::apply(cx, seen.work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_taken_off() {
        for (regex, expected) in
            [("^a$", "a"), ("(?i)^a", "a"), ("a$", "a"), ("a", "a"), ("(?:x)^a", "(?:x)^a")]
        {
            assert_eq!(unanchored(regex), expected);
        }
    }
}
