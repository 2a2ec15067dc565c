//! Replacing what a regular expression matches in a file.

use std::path::Path;

use halite_spec::{
    Cx, Error, FromArg, Result, ToDefault, function,
    host::{self, Write},
};
use halite_value::Value;

use super::{
    diff,
    paths::{expand_user, real},
    perms::stat_of,
    regex::{self, MULTILINE, Re, escape},
    text::{byte_lines, decode, decode_as, encode, is_binary, text_lines},
};

/// Flags of Python's `re`: a number, a name, or a list of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(pub u32);

impl FromArg for Flags {
    const KIND: &'static str = "flags of Python's `re`: a number, a name or a list of names";

    fn from_arg(value: Value) -> Result<Self, String> {
        let named = |name: &Value| {
            let name = name.to_str().to_uppercase();
            Ok(match name.as_str() {
                "I" | "IGNORECASE" => regex::IGNORECASE,
                "L" | "LOCALE" => 4,
                "M" | "MULTILINE" => MULTILINE,
                "S" | "DOTALL" => regex::DOTALL,
                "U" | "UNICODE" => regex::UNICODE,
                "X" | "VERBOSE" => regex::VERBOSE,
                "A" | "ASCII" => regex::ASCII,
                _ => return Err(format!("a flag of Python's `re`, not {name}")),
            })
        };
        match &value {
            Value::Int(bits) => u32::try_from(*bits).map(Self).map_err(|_| String::new()),
            Value::Str(text) if text.chars().all(|c| c.is_ascii_digit()) && !text.is_empty() => {
                text.parse().map(Self).map_err(|_| String::new())
            }
            Value::Str(_) => named(&value).map(Self),
            Value::List(_) | Value::Tuple(_) => {
                let names = value.items_of_sequence().unwrap_or_default();
                names.iter().try_fold(0, |all, name| Ok(all | named(name)?)).map(Self)
            }
            Value::Null => Ok(Self(0)),
            _ => Err(String::new()),
        }
    }
}

impl ToDefault for Flags {
    fn to_default(&self) -> Value {
        self.0.into()
    }
}

/// What the copy of the file before the change is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup(pub Option<String>);

impl FromArg for Backup {
    const KIND: &'static str = "an ending, or False";

    fn from_arg(value: Value) -> Result<Self, String> {
        Ok(Self(match value {
            Value::Null | Value::Bool(false) => None,
            Value::Bool(true) => Some("True".to_owned()),
            other => Some(String::from_arg(other)?).filter(|ending| !ending.is_empty()),
        }))
    }
}

impl ToDefault for Backup {
    fn to_default(&self) -> Value {
        match &self.0 {
            Some(ending) => ending.into(),
            None => false.into(),
        }
    }
}

pub(super) fn bad_pattern(error: regex::Error) -> Error {
    Error::raised("error", error.to_string())
}

pub(super) fn binary_refused(path: &str) -> Error {
    Error::invalid(format!("Cannot perform string replacements on a binary file: {path}"))
}

/// Reads a file to look for a pattern in it. To Salt, a folder is not text either.
pub fn read_to_search(cx: &Cx, path: &str) -> Result<Vec<u8>> {
    if cx.host.is_dir(Path::new(path))? {
        return Err(binary_refused(path));
    }
    Ok(cx.host.read(Path::new(path))?)
}

/// What to replace by what.
#[derive(Clone, Debug)]
pub struct Edit {
    pub pattern: String,
    pub repl: String,
    /// No more than this many; all if 0.
    pub count: usize,
    pub flags: u32,
    pub append_if_not_found: bool,
    pub prepend_if_not_found: bool,
    pub not_found_content: Option<String>,
    pub backslash_literal: bool,
    pub encoding: Option<String>,
}

/// A file as it is and as it will be.
#[derive(Clone, Debug)]
pub struct Edited {
    pub old: Vec<u8>,
    pub new: Vec<u8>,
    pub diff: String,
}

impl Edited {
    pub fn changed(&self) -> bool {
        self.old != self.new
    }
}

impl Edit {
    /// Works on the file's content; nothing is written.
    pub fn run(&self, path: &str, old: Vec<u8>) -> Result<Edited> {
        if self.encoding.is_none() && is_binary(&old[..old.len().min(512)]) {
            return Err(binary_refused(path));
        }
        if self.append_if_not_found && self.prepend_if_not_found {
            return Err(Error::invalid("Only one of append and prepend_if_not_found is permitted"));
        }
        match &self.encoding {
            Some(encoding) => self.run_encoded(path, old, encoding),
            None => self.run_bytes(old),
        }
    }

    fn template(&self) -> String {
        if self.backslash_literal { self.repl.replace('\\', r"\\") } else { self.repl.clone() }
    }

    fn wants_line(&self) -> bool {
        self.append_if_not_found || self.prepend_if_not_found
    }

    /// The line to look for, and to add.
    fn line(&self) -> &str {
        self.not_found_content.as_deref().filter(|text| !text.is_empty()).unwrap_or(&self.repl)
    }

    fn there(&self) -> String {
        format!("^{}($|(?=\r\n))", escape(self.line()))
    }

    fn run_bytes(&self, old: Vec<u8>) -> Result<Edited> {
        let re = Re::bytes(&self.pattern, self.flags).map_err(bad_pattern)?;
        let (mut new, count) =
            re.replace_bytes(&old, &self.template(), self.count).map_err(bad_pattern)?;
        if self.wants_line() && count == 0 {
            let there = Re::bytes(&self.there(), self.flags).map_err(bad_pattern)?;
            if !there.found_in_bytes(&old).map_err(bad_pattern)? {
                let added = self.not_found_content.as_deref().unwrap_or(&self.repl);
                new = with_line(new, added.as_bytes(), self.prepend_if_not_found);
            }
        }
        let lines = |bytes| -> Vec<_> { byte_lines(bytes).into_iter().map(decode).collect() };
        let diff =
            if old == new { String::new() } else { diff::unified(&lines(&old), &lines(&new)) };
        Ok(Edited { old, new, diff })
    }

    fn run_encoded(&self, path: &str, old: Vec<u8>, encoding: &str) -> Result<Edited> {
        let text = decode_as(&old, encoding).ok_or_else(|| {
            Error::failed(format!(
                "Unable to open file '{path}'. It is not in the encoding {encoding}"
            ))
        })?;
        let re = Re::new(&self.pattern, self.flags).map_err(bad_pattern)?;
        let (mut result, count) =
            re.replace(&text, &self.template(), self.count).map_err(bad_pattern)?;
        if self.wants_line() && count == 0 {
            let there = Re::new(&self.there(), self.flags).map_err(bad_pattern)?;
            if !there.found_in(&text).map_err(bad_pattern)? {
                let added = self.not_found_content.as_deref().unwrap_or(&self.repl);
                let bytes =
                    with_line(result.into_bytes(), added.as_bytes(), self.prepend_if_not_found);
                result = String::from_utf8_lossy(&bytes).into_owned();
            }
        }
        if text == result {
            return Ok(Edited { new: old.clone(), old, diff: String::new() });
        }
        let new = encode(&result, encoding, "strict")
            .map_err(|error| Error::failed(error.to_string()))?;
        let diff = diff::unified(&text_lines(&text), &text_lines(&result));
        Ok(Edited { old, new, diff })
    }
}

fn with_line(content: Vec<u8>, line: &[u8], first: bool) -> Vec<u8> {
    if first {
        return [line, b"\n", &content].concat();
    }
    let newline: &[u8] = if content.is_empty() || content.ends_with(b"\n") { b"" } else { b"\n" };
    [&content, newline, line, b"\n"].concat()
}

/// Writes an edited file; the old one is kept under another ending if asked.
///
/// `path` is as the caller gave it: the copy of a link's target is linked, too.
pub fn commit(cx: &Cx, path: &str, new: &[u8], backup: Option<&str>) -> Result<()> {
    let target = real(cx, path)?;
    if let Some(ending) = backup {
        let stat = stat_of(cx, Path::new(&target), true)?;
        let copy = format!("{target}{ending}");
        super::backup::copy_whole(cx, Path::new(&target), Path::new(&copy), &stat)?;
        cx.host.set_times(Path::new(&copy), Some(stat.atime), Some(stat.mtime))?;
        if cx.host.is_link(Path::new(path))? {
            let points_to = cx.host.read_link(Path::new(path))?;
            let link = format!("{path}{ending}");
            if cx.host.is_there(Path::new(&link))? {
                cx.host.remove_file(Path::new(&link))?;
            }
            let points_to = format!("{}{ending}", points_to.to_string_lossy());
            cx.host.symlink(Path::new(&points_to), Path::new(&link))?;
        }
    }
    cx.host.write(Path::new(&target), new, &Write::default()).map_err(|error| match error {
        host::Error::Cancelled => Error::Cancelled,
        error => Error::failed(format!("Unable to write file '{target}'. Exception: {error}")),
    })
}

/// Replace what a regular expression matches in a file; returns the difference.
///
/// ```console
/// $ salt web1 file.replace /srv/app/app.conf '^port=' 'port=8080'
/// ```
#[function]
pub fn replace(
    cx: &Cx,
    /// The file.
    path: String,
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
    /// Write nothing.
    #[default(false)]
    dry_run: bool,
    /// Only tell whether the pattern matches.
    #[default(false)]
    search_only: bool,
    /// Return the difference, not only whether there is one.
    #[default(true)]
    show_changes: bool,
    /// Return False if there is no such file.
    #[default(false)]
    ignore_if_missing: bool,
    /// Taken for compatibility; files are always replaced as one step.
    #[default(true)]
    preserve_inode: bool,
    /// A backslash in `repl` is a backslash.
    #[default(false)]
    backslash_literal: bool,
    /// The file's encoding, if not UTF-8.
    encoding: Option<String>,
) -> Result<Value> {
    let _ = (bufsize, preserve_inode);
    let given = expand_user(cx, &path);
    let path = real(cx, &given)?;
    if !cx.host.exists(Path::new(&path))? {
        if ignore_if_missing {
            return Ok(false.into());
        }
        return Err(Error::invalid(format!("File not found: {path}")));
    }
    if search_only && (append_if_not_found || prepend_if_not_found) {
        return Err(Error::invalid("search_only cannot be used with append/prepend_if_not_found"));
    }
    if search_only {
        return super::read::search(cx, path, pattern, flags, Value::Null, false, false)
            .map(Value::from);
    }
    let edit = Edit {
        pattern,
        repl: repl.to_str().to_string(),
        count: usize::try_from(count).unwrap_or(usize::MAX),
        flags: flags.0,
        append_if_not_found,
        prepend_if_not_found,
        not_found_content: text_or_none(not_found_content.as_ref()),
        backslash_literal,
        encoding,
    };
    let edited = edit.run(&path, read_to_search(cx, &path)?)?;
    if edited.changed() && !dry_run {
        commit(cx, &given, &edited.new, backup.0.as_deref())?;
    }
    Ok(if show_changes { edited.diff.into() } else { edited.changed().into() })
}

pub fn text_or_none(value: Option<&Value>) -> Option<String> {
    value.filter(|value| !value.is_null()).map(|value| value.to_str().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(pattern: &str, repl: &str) -> Edit {
        Edit {
            pattern: pattern.into(),
            repl: repl.into(),
            count: 0,
            flags: MULTILINE,
            append_if_not_found: false,
            prepend_if_not_found: false,
            not_found_content: None,
            backslash_literal: false,
            encoding: None,
        }
    }

    fn check(edit: &Edit, old: &str, new: &str) {
        let edited = edit.run("/f", old.as_bytes().to_vec()).unwrap();
        assert_eq!(String::from_utf8(edited.new).unwrap(), new);
    }

    #[test]
    fn lines_are_added_when_nothing_matches() {
        check(&edit("^a=.*", "a=1"), "a=0\nb\n", "a=1\nb\n");
        let append = Edit { append_if_not_found: true, ..edit("^a=.*", "a=1") };
        check(&append, "b", "b\na=1\n");
        check(&append, "", "a=1\n");
        let other = Edit { not_found_content: Some("x y".into()), ..append.clone() };
        check(&other, "b\n", "b\nx y\n");
        check(&other, "x y\n", "x y\n");
        let prepend = Edit { append_if_not_found: false, prepend_if_not_found: true, ..append };
        check(&prepend, "b\n", "a=1\nb\n");
    }

    #[test]
    fn binary_files_are_refused() {
        let error = edit("a", "b").run("/f", b"a\0".to_vec()).unwrap_err();
        assert_eq!(error.to_string(), "Cannot perform string replacements on a binary file: /f");
    }
}
