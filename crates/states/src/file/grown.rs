//! `file.append` and `file.prepend`: texts at the end or the start of a file.

use std::path::Path;

use halite_modules::file::{
    content::{is_binary_file, names_of, render},
    diff::{self, Layout},
    edit::appendix,
    paths::{is_abs, parent},
    regex::{MULTILINE, Re, escape},
    text::{bare_lines, decode, text_lines},
    tree::make_folders,
};
use halite_spec::{Applied, Args, Cx, Error, Plan, Result, State, host::Write};
use halite_value::{Dict, Value};

use super::{Found, given, texts};

/// Files whose content is a text to add.
#[derive(Args)]
pub(super) struct Sources {
    /// A file whose content is the text.
    pub(super) source: Option<Value>,
    /// Its hash.
    pub(super) source_hash: Option<Value>,
    /// The template engine for sources.
    #[default(Some("jinja".to_owned()))]
    pub(super) template: Option<String>,
    /// Several such files.
    pub(super) sources: Option<Value>,
    /// Their hashes.
    pub(super) source_hashes: Option<Value>,
    /// Names for the templates where `context` has none.
    pub(super) defaults: Option<Value>,
    /// Names for the templates.
    pub(super) context: Option<Value>,
}

fn is_given(value: Option<&Value>) -> bool {
    value.is_some_and(Value::truthy)
}

impl Sources {
    pub(super) fn check(&self) -> Result<()> {
        if is_given(self.source.as_ref()) && is_given(self.sources.as_ref()) {
            return Err(Error::failed("source and sources are mutually exclusive"));
        }
        if is_given(self.source_hash.as_ref()) && is_given(self.source_hashes.as_ref()) {
            return Err(Error::failed("source_hash and source_hashes are mutually exclusive"));
        }
        Ok(())
    }

    /// The rendered texts; `None` if no source is named.
    pub(super) fn texts(&self, cx: &Cx) -> Result<Option<Vec<String>>> {
        let list = match (&self.source, &self.sources) {
            (Some(source), _) if source.truthy() => vec![source.to_str().to_string()],
            (_, Some(sources)) if sources.truthy() => texts(sources),
            _ => return Ok(None),
        };
        let saltenv = cx.saltenv();
        let mut out = Vec::new();
        for source in list {
            let missing = || Error::failed(format!("Failed to load template file {source}"));
            let cached = cx.files.cache(&source, &saltenv)?.ok_or_else(missing)?;
            let names = names_of(self.defaults.as_ref(), "Defaults")?.shallow_copy();
            names.update(&names_of(self.context.as_ref(), "Context")?);
            let text = cx.host.read_text(&cached)?;
            let text = match self.template.as_deref().filter(|engine| !engine.is_empty()) {
                Some(engine) => render(cx, engine, text, Some(&source), &saltenv, names)?,
                None => text,
            };
            if text.is_empty() {
                return Err(Error::failed(format!(
                    "Failed to read rendered template file {} ({source})",
                    cached.display()
                )));
            }
            out.push(text);
        }
        Ok(Some(out))
    }
}

/// An expression that finds a text whatever its white space: words may be apart by any.
fn loosely(text: &str) -> String {
    const GAP: &str = r"(?:[\s]+)?";
    let mut regex = String::new();
    for line in bare_lines(text) {
        let words: Vec<String> = words(line, text).iter().map(|word| escape(word)).collect();
        regex.push_str(&format!("{GAP}{}{GAP}", words.join(GAP)));
    }
    format!("(?m)^{regex}$")
}

/// The words of a line; one in quotes is one word, with the quotes that `text` can have.
fn words(line: &str, text: &str) -> Vec<String> {
    let quotes = if text.contains("'\\\"") {
        ""
    } else if text.contains('\'') {
        "\""
    } else if text.contains('"') {
        "'"
    } else {
        "'\""
    };
    let mut words = Vec::new();
    let mut word = String::new();
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c.is_ascii_whitespace() {
            if !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
        } else if word.is_empty() && quotes.contains(c) {
            word.push(c);
            for inner in chars.by_ref() {
                word.push(inner);
                if inner == c {
                    break;
                }
            }
            words.push(std::mem::take(&mut word));
        } else {
            word.push(c);
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

fn found(content: &[u8], pattern: &str) -> Result<bool> {
    let bad = |error| Error::failed(format!("{error}: {pattern}"));
    Re::bytes(pattern, MULTILINE).and_then(|re| re.found_in_bytes(content)).map_err(bad)
}

/// What is to be written.
pub struct Work {
    name: String,
    is_new: bool,
    makedirs: bool,
    new: Vec<u8>,
    changes: Dict,
    comment: String,
}

impl Work {
    fn apply(work: Option<Self>, cx: &Cx) -> Result<Applied> {
        let Some(work) = work else { return Ok(Applied::as_planned()) };
        let folder = parent(&work.name);
        if !cx.host.is_dir(Path::new(folder))? {
            if !work.makedirs {
                return Err(Error::failed(format!("{}: file not found", work.name)));
            }
            make_folders(cx, folder, (None, None), None)?;
        }
        cx.host.write(Path::new(&work.name), &work.new, &Write::default())?;
        Ok(Applied::changes(work.changes).comment(work.comment))
    }
}

/// What a test says of a file that is not there: only that it will be made.
fn creation(name: &str) -> Plan {
    Plan::change("new", name).pending(format!("File {name} is set to be created"))
}

fn shown(cx: &Cx, name: &str, is_new: bool, show: bool, diff: impl FnOnce() -> String) -> String {
    if !is_new && is_binary_file(cx, Path::new(name)) {
        "Replace binary file".to_owned()
    } else if show {
        diff()
    } else {
        "<show_changes=False>".to_owned()
    }
}

/// Keep texts at the end of a file: what is not in it is added.
#[derive(Args)]
pub struct Append {
    /// The file.
    name: String,
    /// A text or a list of them.
    text: Option<Value>,
    /// Make the folders above it.
    #[default(false)]
    makedirs: bool,
    #[group]
    sources: Sources,
    /// White space does not count when a text is looked for.
    #[default(true)]
    ignore_whitespace: bool,
    /// Show the difference, not only that there is one.
    #[default(true)]
    show_changes: bool,
}

impl State for Append {
    type Seen = Found<Work>;

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let name = given(cx, &self.name, "append")?;
        self.sources.check()?;
        if !is_abs(&name) {
            return Err(Error::failed(format!("Specified file {name} is not an absolute path")));
        }
        let is_new = !cx.host.exists(Path::new(&name))?;
        let pieces = match self.sources.texts(cx)? {
            Some(texts) => texts,
            None => texts(self.text.as_ref().unwrap_or(&Value::Null)),
        };
        let content = if is_new { Vec::new() } else { cx.host.read(Path::new(&name))? };
        let mut lines: Vec<String> = Vec::new();
        for piece in &pieces {
            let pattern = if self.ignore_whitespace { loosely(piece) } else { piece.clone() };
            if !found(&content, &pattern)? {
                lines.extend(bare_lines(piece).into_iter().map(str::to_owned));
            }
        }
        let added = if lines.is_empty() { Vec::new() } else { appendix(&content, &lines) };
        let new = [content.as_slice(), &added].concat();
        let (old_text, new_text) = (decode(&content).into_owned(), decode(&new).into_owned());
        let (before, after) = (bare_lines(&old_text), bare_lines(&new_text));
        let changes = Dict::new();
        if before != after {
            let diff = shown(cx, &name, is_new, self.show_changes, || {
                diff::unified_lines(&before, &after, Layout::default()).join("\n")
            });
            changes.insert("diff", diff);
        }
        let comment = match lines.len() {
            0 => format!("File {name} is in correct state"),
            added => format!("Appended {added} lines"),
        };
        let work =
            Work { name: name.clone(), is_new, makedirs: self.makedirs, new, changes, comment };
        if work.is_new {
            return Ok(Found::todo(creation(&name), work));
        }
        if lines.is_empty() {
            return Ok(Found::right(format!("File {name} is in correct state")));
        }
        let plan = Plan::changes(work.changes.clone())
            .pending(format!("File {name} is set to be updated"));
        Ok(Found::todo(Plan { unknown: true, ..plan }, work))
    }

    fn plan(&self, seen: &Self::Seen) -> Result<Plan> {
        Ok(seen.plan.clone())
    }

    fn apply(&self, cx: &Cx, seen: Self::Seen) -> Result<Applied> {
        Work::apply(seen.work, cx)
    }
}

/// Keep texts at the start of a file: what is not in it is added.
#[derive(Args)]
pub struct Prepend {
    /// The file.
    name: String,
    /// A text or a list of them.
    text: Option<Value>,
    /// Make the folders above it.
    #[default(false)]
    makedirs: bool,
    #[group]
    sources: Sources,
    /// The texts must be the first lines, wherever else they are.
    #[default(false)]
    #[shown(None::<bool>)]
    header: bool,
    /// Show the difference, not only that there is one.
    #[default(true)]
    show_changes: bool,
}

impl State for Prepend {
    type Seen = Found<Work>;

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let name = given(cx, &self.name, "prepend")?;
        self.sources.check()?;
        if !is_abs(&name) {
            return Err(Error::failed(format!("Specified file {name} is not an absolute path")));
        }
        let is_new = !cx.host.exists(Path::new(&name))?;
        let pieces = match self.sources.texts(cx)? {
            Some(texts) => texts,
            None => texts(self.text.as_ref().unwrap_or(&Value::Null)),
        };
        let content = if is_new { Vec::new() } else { cx.host.read(Path::new(&name))? };
        let mut lines: Vec<String> = Vec::new();
        for piece in &pieces {
            if self.header || !found(&content, &loosely(piece))? {
                lines.extend(bare_lines(piece).into_iter().map(str::to_owned));
            }
        }
        let old_text = decode(&content).into_owned();
        if self.header {
            // differs: in a test, genuine Salt says that a header already there would be added.
            let head = bare_lines(&old_text);
            let there = head.len() >= lines.len() && head.iter().zip(&lines).all(|(a, b)| a == b);
            if there {
                lines.clear();
            }
        }
        let new = [appendix(b"", &lines), content.clone()].concat();
        let new_text = decode(&new).into_owned();
        let changes = Dict::new();
        if content != new {
            let diff = shown(cx, &name, is_new, self.show_changes, || {
                diff::unified(&text_lines(&old_text), &text_lines(&new_text))
            });
            changes.insert("diff", diff);
        }
        let comment = if lines.is_empty() {
            format!("File {name} is in correct state")
        } else {
            format!("Prepended {} lines", lines.len())
        };
        let work =
            Work { name: name.clone(), is_new, makedirs: self.makedirs, new, changes, comment };
        if work.is_new {
            return Ok(Found::todo(creation(&name), work));
        }
        if work.changes.is_empty() {
            return Ok(Found::right(format!("File {name} is in correct state")));
        }
        let plan = Plan::changes(work.changes.clone())
            .pending(format!("File {name} is set to be updated"));
        Ok(Found::todo(plan, work))
    }

    fn plan(&self, seen: &Self::Seen) -> Result<Plan> {
        Ok(seen.plan.clone())
    }

    fn apply(&self, cx: &Cx, seen: Self::Seen) -> Result<Applied> {
        Work::apply(seen.work, cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_does_not_count() {
        let pattern = loosely("a  b\nc");
        assert!(found(b"x\na b\n\tc\ny\n", &pattern).unwrap());
        assert!(!found(b"x\na c\n", &pattern).unwrap());
        assert!(found(b"a.b\n", &loosely("a.b")).unwrap());
        assert!(!found(b"axb\n", &loosely("a.b")).unwrap());
    }

    #[test]
    fn quoted_words() {
        let text = "it's \"a b\" c";
        assert_eq!(words(text, text), ["it's", "\"a b\"", "c"]);
        assert_eq!(words("\"a b\"", "\"a b\""), ["\"a", "b\""]);
    }
}
