//! `ini`: options of INI files.
//!
//! A [`File`] keeps every line: options, and the comments and other lines between them. Writing one
//! puts each option into one form, `name = value`, with an empty line before each section, as Salt
//! does. An option's value goes on in lines that begin with white space. A section that stands twice
//! is one section; so is an option that stands twice, and the last value counts.

use std::path::Path;

use halite_spec::{Cx, Error, Result, function, host::Write, module};
use halite_value::{Dict, Value, entries};

use crate::file::{paths::expand_user, text::utf8};

module! {
    /// Options of INI files.
    "ini": get_ini, get_section, get_option, set_option, remove_option, remove_section,
}

/// A line of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Line {
    Option(String, String),
    /// A comment, or a line we cannot read; it stays as it is.
    Other(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Section {
    name: String,
    lines: Vec<Line>,
}

impl Section {
    fn value(&self, option: &str) -> Option<&str> {
        self.lines.iter().find_map(|line| match line {
            Line::Option(name, value) if name == option => Some(value.as_str()),
            _ => None,
        })
    }

    fn set(&mut self, option: &str, new: &str) {
        for line in &mut self.lines {
            if let Line::Option(name, value) = line
                && name == option
            {
                new.clone_into(value);
                return;
            }
        }
        self.lines.push(Line::Option(option.to_owned(), new.to_owned()));
    }

    fn options(&self) -> Dict {
        let options = Dict::new();
        for line in &self.lines {
            if let Line::Option(name, value) = line {
                options.insert(name.as_str(), value.as_str());
            }
        }
        options
    }
}

/// How a file is written.
#[derive(Clone, Debug)]
pub struct Form {
    /// What stands between an option and its value.
    pub separator: String,
    /// No blanks around the separator.
    pub no_spaces: bool,
    /// `None`: UTF-8.
    pub encoding: Option<String>,
}

impl Form {
    fn is_latin(&self) -> Result<bool> {
        let name = self.encoding.as_deref().unwrap_or("utf-8").to_lowercase().replace('_', "-");
        match name.as_str() {
            "" | "utf-8" | "utf8" | "ascii" | "us-ascii" => Ok(false),
            "latin-1" | "latin1" | "iso-8859-1" | "iso8859-1" => Ok(true),
            _ => Err(Error::failed(format!("unknown encoding: {name}"))),
        }
    }

    fn decode(&self, bytes: Vec<u8>) -> Result<String> {
        if self.is_latin()? {
            return Ok(bytes.into_iter().map(char::from).collect());
        }
        utf8(bytes)
    }

    fn encode(&self, text: String) -> Result<Vec<u8>> {
        if !self.is_latin()? {
            return Ok(text.into_bytes());
        }
        let byte = |char: char| {
            u8::try_from(char).map_err(|_| {
                Error::failed(format!("'latin-1' codec can't encode character {char:?}"))
            })
        };
        text.chars().map(byte).collect()
    }
}

/// An INI file; the first section, without a name, holds what stands above all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    sections: Vec<Section>,
}

impl File {
    /// Reads a file; one that is not there is empty.
    pub fn read(cx: &Cx, path: &str, form: &Form) -> Result<Self> {
        let bytes = cx.host.read_if_there(Path::new(path))?.unwrap_or_default();
        Ok(Self::parse(&form.decode(bytes)?, &form.separator))
    }

    pub fn write(&self, cx: &Cx, path: &str, form: &Form) -> Result<()> {
        let content = form.encode(self.text(form))?;
        cx.host.write(Path::new(path), &content, &Write::default()).map_err(|error| {
            Error::failed(format!("Unable to write file '{path}'. Exception: {error}"))
        })
    }

    fn parse(text: &str, separator: &str) -> Self {
        let mut file = Self { sections: vec![Section::default()] };
        let mut at = 0;
        // Whether the last line was an option, so that the next may go on with its value.
        let mut goes_on = false;
        for line in text.lines() {
            let trimmed = line.trim();
            if trimmed.is_empty() {
                goes_on = false;
            } else if trimmed.starts_with(['#', ';']) {
                file.sections[at].lines.push(Line::Other(line.to_owned()));
                goes_on = false;
            } else if let Some(name) = header(trimmed) {
                at = file.place(name);
                goes_on = false;
            } else if goes_on && line.starts_with([' ', '\t']) {
                if let Some(Line::Option(_, value)) = file.sections[at].lines.last_mut() {
                    value.push('\n');
                    value.push_str(line.trim_end());
                }
            } else if let Some((name, value)) = line.split_once(separator)
                && !name.trim().is_empty()
            {
                let (name, value) = (name.trim(), value.trim());
                let section = &mut file.sections[at];
                section.lines.retain(|line| !matches!(line, Line::Option(own, _) if own == name));
                section.lines.push(Line::Option(name.to_owned(), value.to_owned()));
                goes_on = true;
            } else {
                file.sections[at].lines.push(Line::Other(line.to_owned()));
                goes_on = false;
            }
        }
        file
    }

    fn text(&self, form: &Form) -> String {
        let between = match form.no_spaces {
            true => form.separator.clone(),
            false => format!(" {} ", form.separator),
        };
        let mut text = String::new();
        for section in &self.sections {
            if !section.name.is_empty() {
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(&format!("[{}]\n", section.name));
            }
            for line in &section.lines {
                match line {
                    Line::Option(name, value) => {
                        text.push_str(&format!("{name}{between}{value}\n"));
                    }
                    Line::Other(line) => {
                        text.push_str(line);
                        text.push('\n');
                    }
                }
            }
        }
        text
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.sections.iter().position(|section| section.name == name)
    }

    /// The section of a name, new at the end if there is none.
    fn place(&mut self, name: &str) -> usize {
        self.find(name).unwrap_or_else(|| {
            self.sections.push(Section { name: name.to_owned(), lines: Vec::new() });
            self.sections.len() - 1
        })
    }

    /// Returns an option's value; the empty section is the one above all others.
    pub fn value(&self, section: &str, option: &str) -> Option<&str> {
        self.sections[self.find(section)?].value(option)
    }

    /// Returns the options of a section.
    pub fn section(&self, name: &str) -> Option<Dict> {
        self.find(name).map(|at| self.sections[at].options())
    }

    /// Returns all options: `{option: value, section: {option: value}}`.
    pub fn all(&self) -> Dict {
        let all = Dict::new();
        for section in &self.sections {
            if section.name.is_empty() {
                all.update(&section.options());
            } else {
                all.insert(section.name.as_str(), section.options());
            }
        }
        all
    }

    /// Sets options, `{section: {option: value}, option: value}`; returns what changes.
    pub fn set(&mut self, wanted: &Dict) -> Dict {
        let changes = Dict::new();
        for (name, value) in wanted {
            let name = name.to_str();
            let Value::Dict(options) = &value else {
                let text = value.to_str();
                let before = self.sections[0].value(&name).map(str::to_owned);
                if before.as_deref() != Some(text.as_str()) {
                    self.sections[0].set(&name, &text);
                    changes.insert(name, changed(before, &text));
                }
                continue;
            };
            let is_new = self.find(&name).is_none();
            let at = self.place(&name);
            let own = Dict::new();
            for (option, value) in options {
                let (option, text) = (option.to_str(), value.to_str());
                let before = self.sections[at].value(&option).map(str::to_owned);
                if before.as_deref() != Some(text.as_str()) {
                    self.sections[at].set(&option, &text);
                    own.insert(option, changed(before, &text));
                }
            }
            if is_new {
                let after = self.sections[at].options();
                changes.insert(name, entries! { "before" => Value::Null, "after" => after });
            } else if !own.is_empty() {
                changes.insert(name, own);
            }
        }
        changes
    }

    /// Takes an option out; returns its value.
    pub fn take(&mut self, section: &str, option: &str) -> Option<String> {
        let at = self.find(section)?;
        let lines = &mut self.sections[at].lines;
        let place = lines
            .iter()
            .position(|line| matches!(line, Line::Option(name, _) if name == option))?;
        match lines.remove(place) {
            Line::Option(_, value) => Some(value),
            Line::Other(_) => None,
        }
    }

    /// Takes a section out; returns its options.
    pub fn take_section(&mut self, name: &str) -> Option<Dict> {
        let at = self.find(name).filter(|at| *at > 0)?;
        Some(self.sections.remove(at).options())
    }
}

fn changed(before: Option<String>, after: &str) -> Dict {
    entries! { "before" => before.map_or(Value::Null, Value::from), "after" => after }
}

fn header(line: &str) -> Option<&str> {
    line.strip_prefix('[')?.split_once(']').map(|(name, _)| name)
}

fn form(separator: String, encoding: Option<String>, no_spaces: bool) -> Form {
    Form { separator, no_spaces, encoding }
}

/// Return all sections and options of a file.
///
/// ```console
/// $ salt web1 ini.get_ini /srv/app/app.ini
/// ```
#[function]
pub fn get_ini(
    cx: &Cx,
    /// The file.
    file_name: String,
    /// What stands between an option and its value.
    #[default("=".to_owned())]
    separator: String,
    /// The encoding of the file; UTF-8 if none is given.
    encoding: Option<String>,
) -> Result<Dict> {
    let path = expand_user(cx, &file_name);
    Ok(File::read(cx, &path, &form(separator, encoding, false))?.all())
}

/// Return the options of a section.
///
/// ```console
/// $ salt web1 ini.get_section /srv/app/app.ini server
/// ```
#[function]
pub fn get_section(
    cx: &Cx,
    /// The file.
    file_name: String,
    /// The section.
    section: String,
    /// What stands between an option and its value.
    #[default("=".to_owned())]
    separator: String,
    /// The encoding of the file; UTF-8 if none is given.
    encoding: Option<String>,
) -> Result<Dict> {
    let path = expand_user(cx, &file_name);
    let file = File::read(cx, &path, &form(separator, encoding, false))?;
    Ok(file.section(&section).unwrap_or_default())
}

/// Return the value of an option; None if there is no such option.
///
/// ```console
/// $ salt web1 ini.get_option /srv/app/app.ini server port
/// ```
#[function]
pub fn get_option(
    cx: &Cx,
    /// The file.
    file_name: String,
    /// The section; empty for options above all sections.
    section: Value,
    /// The option.
    option: Value,
    /// What stands between an option and its value.
    #[default("=".to_owned())]
    separator: String,
    /// The encoding of the file; UTF-8 if none is given.
    encoding: Option<String>,
) -> Result<Option<String>> {
    let path = expand_user(cx, &file_name);
    let file = File::read(cx, &path, &form(separator, encoding, false))?;
    let section = if section.truthy() { section.to_str() } else { "".into() };
    Ok(file.value(&section, &option.to_str()).map(str::to_owned))
}

/// Set options, and return what was changed.
///
/// ```console
/// $ salt web1 ini.set_option /srv/app/app.ini '{server: {port: 8080}}'
/// ```
#[function]
pub fn set_option(
    cx: &Cx,
    /// The file.
    file_name: String,
    /// The options by section.
    sections: Option<Value>,
    /// What stands between an option and its value.
    #[default("=".to_owned())]
    separator: String,
    /// The encoding of the file; UTF-8 if none is given.
    encoding: Option<String>,
    /// Write no blanks around the separator.
    #[default(false)]
    no_spaces: bool,
) -> Result<Dict> {
    let path = expand_user(cx, &file_name);
    let form = form(separator, encoding, no_spaces);
    let mut file = File::read(cx, &path, &form)?;
    let changes = match sections.filter(Value::truthy) {
        None => Dict::new(),
        Some(Value::Dict(sections)) => file.set(&sections),
        Some(_) => return Err(Error::invalid("sections must be a dict of sections")),
    };
    file.write(cx, &path, &form)?;
    Ok(changes)
}

/// Remove an option, and return its value.
///
/// ```console
/// $ salt web1 ini.remove_option /srv/app/app.ini server port
/// ```
#[function]
pub fn remove_option(
    cx: &Cx,
    /// The file.
    file_name: String,
    /// The section; empty for options above all sections.
    section: Value,
    /// The option.
    option: Value,
    /// What stands between an option and its value.
    #[default("=".to_owned())]
    separator: String,
    /// The encoding of the file; UTF-8 if none is given.
    encoding: Option<String>,
) -> Result<Option<String>> {
    let path = expand_user(cx, &file_name);
    let form = form(separator, encoding, false);
    let mut file = File::read(cx, &path, &form)?;
    let section = if section.truthy() { section.to_str() } else { "".into() };
    let value = file.take(&section, &option.to_str());
    // differs: genuine Salt writes the file anew even if nothing was removed.
    if value.is_some() {
        file.write(cx, &path, &form)?;
    }
    Ok(value)
}

/// Remove a section, and return its options.
///
/// ```console
/// $ salt web1 ini.remove_section /srv/app/app.ini server
/// ```
#[function]
pub fn remove_section(
    cx: &Cx,
    /// The file.
    file_name: String,
    /// The section.
    section: String,
    /// What stands between an option and its value.
    #[default("=".to_owned())]
    separator: String,
    /// The encoding of the file; UTF-8 if none is given.
    encoding: Option<String>,
) -> Result<Option<Dict>> {
    let path = expand_user(cx, &file_name);
    let form = form(separator, encoding, false);
    let mut file = File::read(cx, &path, &form)?;
    let options = file.take_section(&section);
    if options.is_some() {
        file.write(cx, &path, &form)?;
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "top = 0\n# head\n[s1]\na = 1\nb: two\n; note\nc=3\n  d = 4\nnoval\n\n[s2]\n\
                        #x=1\nc=3\nlong = a = b\n[s 3]\nk =\n";

    fn equals() -> Form {
        form("=".into(), None, false)
    }

    #[test]
    fn every_line_is_kept() {
        let written = "top = 0\n# head\n\n[s1]\na = 1\nb: two\n; note\nc = 3\n  d = 4\nnoval\n\n[s2]\n\
                       #x=1\nc = 3\nlong = a = b\n\n[s 3]\nk = \n";
        assert_eq!(File::parse(TEXT, "=").text(&equals()), written);
    }

    #[test]
    fn another_separator_leaves_the_others_alone() {
        let mut file = File::parse("[s]\na = 1\nb: two\n", ":");
        file.set(&entries! { "s" => entries! { "a" => 5, "b" => "z" } });
        let text = file.text(&form(":".into(), None, false));
        assert_eq!(text, "[s]\na = 1\nb : z\na : 5\n");
    }

    #[test]
    fn values_go_on_in_further_lines() {
        let file = File::parse(TEXT, "=");
        assert_eq!(file.value("s1", "c"), Some("3\n  d = 4"));
        assert_eq!(file.value("s2", "long"), Some("a = b"));
        assert_eq!(file.value("", "top"), Some("0"));
        assert_eq!(file.value("s1", "b"), None);
    }

    #[test]
    fn a_section_that_stands_twice_is_one() {
        let file = File::parse("[a]\nb=1\n[b]\n[a]\nz=1\nb=2\n", "=");
        assert_eq!(file.text(&equals()), "[a]\nz = 1\nb = 2\n\n[b]\n");
    }

    #[test]
    fn changes_are_told() {
        let mut file = File::parse(TEXT, "=");
        let changes = file.set(&entries! {
            "s1" => entries! { "a" => "9" }, "new" => entries! { "k" => true }, "top" => 0,
        });
        let expected = entries! {
            "s1" => entries! { "a" => entries! { "before" => "1", "after" => "9" } },
            "new" => entries! { "before" => Value::Null, "after" => entries! { "k" => "True" } },
        };
        assert_eq!(Value::from(&changes), Value::from(&expected));
        assert!(file.set(&entries! { "s1" => entries! { "a" => 9 } }).is_empty());
    }
}
