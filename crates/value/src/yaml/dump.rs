//! Writing YAML as Salt's `safe_dump` does.
//!
//! Values become nodes as PyYAML's representer makes them (sorted keys, `null`, `1.0e+16`,
//! `&id001` for a container met twice), and `emit` lays them out.
//!
//! Surprising: a dict is sorted by key unless it is an ordered one ([`Dict::is_ordered`]) or its
//! keys cannot be compared, in which case the order of insertion stays; a run-time object is written as `NULL`; with no flow style asked for, a
//! container of scalars only is written in flow style, every other in block style.

use std::{borrow::Cow, collections::HashMap, fmt::Write as _};

use super::{
    emit::{Emitter, Props, Scalar},
    scalar::{Tag, resolve},
};
use crate::{Dict, Key, Value, float_repr, less, set::Set, sorted};

/// Containers inside each other; beyond it the value is most likely endless.
const MAX_DEPTH: usize = 500;

/// Why a value could not be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DumpError {
    #[error("nested deeper than {MAX_DEPTH} levels")]
    Depth,
    #[error("{0}")]
    Emitter(&'static str),
    /// An option that PyYAML's `dump` does not have.
    #[error("dump_all() got an unexpected keyword argument '{0}'")]
    UnknownOption(String),
    #[error("the option '{name}' of the YAML writer cannot be {value}")]
    BadOption { name: &'static str, value: String },
}

/// How every scalar is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    SingleQuoted,
    DoubleQuoted,
    Literal,
    Folded,
}

/// What `safe_dump` takes; the default is what Salt passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpOptions {
    /// `Some(true)`: all in flow style; `Some(false)`: all in block style; `None`: containers of
    /// scalars in flow style.
    pub default_flow_style: Option<bool>,
    pub default_style: Option<Style>,
    /// Columns per level; only 2 to 9 count.
    pub indent: i32,
    /// Where long texts are folded; 0 is the usual 80, negative is never.
    pub width: i32,
    pub allow_unicode: bool,
    pub sort_keys: bool,
    /// Whether ordered dicts keep their order all the same.
    pub keep_ordered: bool,
    pub explicit_start: bool,
    pub explicit_end: bool,
    pub canonical: bool,
    pub line_break: LineBreak,
    /// A `%YAML` directive.
    pub version: Option<(i32, i32)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineBreak {
    #[default]
    Lf,
    Cr,
    CrLf,
}

impl LineBreak {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::Cr => "\r",
            Self::CrLf => "\r\n",
        }
    }
}

impl Default for DumpOptions {
    fn default() -> Self {
        Self {
            default_flow_style: None,
            default_style: None,
            indent: 0,
            width: 0,
            allow_unicode: true,
            sort_keys: true,
            keep_ordered: true,
            explicit_start: false,
            explicit_end: false,
            canonical: false,
            line_break: LineBreak::Lf,
            version: None,
        }
    }
}

impl DumpOptions {
    /// The options for a readable file: everything in block style.
    pub fn block() -> Self {
        Self { default_flow_style: Some(false), ..Self::default() }
    }

    /// The options for one line: everything in flow style.
    pub fn flow() -> Self {
        Self { default_flow_style: Some(true), ..Self::default() }
    }

    /// Sets an option by PyYAML's name, as users give them to `file.serialize` and its like.
    pub fn set(&mut self, name: &str, value: &Value) -> Result<(), DumpError> {
        let bad = |name| Err(DumpError::BadOption { name, value: value.repr() });
        match name {
            "default_flow_style" => {
                self.default_flow_style = (!value.is_null()).then(|| value.truthy());
            }
            "default_style" => {
                self.default_style = match value.as_str() {
                    Some("'") => Some(Style::SingleQuoted),
                    Some("\"") => Some(Style::DoubleQuoted),
                    Some("|") => Some(Style::Literal),
                    Some(">") => Some(Style::Folded),
                    _ => None,
                }
            }
            "indent" | "width" => {
                let number = match value.to_int().map(i32::try_from) {
                    Some(Ok(number)) => number,
                    None if value.is_null() => 0,
                    _ => return bad(if name == "indent" { "indent" } else { "width" }),
                };
                *(if name == "indent" { &mut self.indent } else { &mut self.width }) = number;
            }
            "allow_unicode" => self.allow_unicode = value.truthy(),
            "sort_keys" => self.sort_keys = value.truthy(),
            "explicit_start" => self.explicit_start = value.truthy(),
            "explicit_end" => self.explicit_end = value.truthy(),
            "canonical" => self.canonical = value.truthy(),
            "line_break" => {
                self.line_break = match value.as_str() {
                    Some("\r") => LineBreak::Cr,
                    Some("\r\n") => LineBreak::CrLf,
                    _ => LineBreak::Lf,
                }
            }
            "version" => {
                let parts: Vec<_> = value
                    .items_of_sequence()
                    .unwrap_or_default()
                    .iter()
                    .filter_map(|part| part.as_int().and_then(|int| i32::try_from(int).ok()))
                    .collect();
                self.version = match parts[..] {
                    [major, minor] => Some((major, minor)),
                    [] if value.is_null() => None,
                    _ => return bad("version"),
                };
            }
            // We always write UTF-8; what carries bytes encodes itself.
            "encoding" | "tags" | "Dumper" | "stream" => {}
            other => return Err(DumpError::UnknownOption(other.into())),
        }
        Ok(())
    }

    /// Sets all options of a dict.
    pub fn set_all(&mut self, options: &Dict) -> Result<(), DumpError> {
        options.into_iter().try_for_each(|(name, value)| self.set(&name.to_str(), &value))
    }
}

/// Writes a value as one document.
pub fn dump(value: &Value, options: &DumpOptions) -> Result<String, DumpError> {
    let version = match options.version {
        None => None,
        Some((1, 1)) => Some(1),
        Some((1, 2)) => Some(2),
        Some(_) => return Err(DumpError::Emitter("incompatible %YAML directive")),
    };
    let mut aliases = Aliases::default();
    aliases.count(value, 0)?;
    let mut writer = Writer { emitter: Emitter::new(options), options, aliases, depth: 0 };
    writer.emitter.begin_document(version, options.explicit_start);
    writer.node(value, Role::default())?;
    writer.emitter.end_document(options.explicit_end);
    Ok(writer.emitter.out)
}

/// Which containers are met more than once, and the names they get.
#[derive(Default)]
struct Aliases {
    /// By identity: how often met, and the number of its anchor once met twice.
    seen: HashMap<usize, Seen>,
    last: usize,
}

#[derive(Default)]
struct Seen {
    number: usize,
    written: bool,
}

/// Returns what tells a container from others, if something else may hold it too.
fn identity(value: &Value) -> Option<usize> {
    match value {
        Value::List(list) => list.is_shared().then(|| list.identity()),
        Value::Dict(dict) => dict.is_shared().then(|| dict.identity()),
        Value::Tuple(items) if !items.is_empty() => Some(items.as_ptr().addr()),
        Value::Object(object) => Some((&raw const **object).cast::<()>().addr()),
        _ => None,
    }
}

impl Aliases {
    /// Numbers are given in the order in which things are met for the second time.
    fn count(&mut self, value: &Value, depth: usize) -> Result<(), DumpError> {
        if depth > MAX_DEPTH {
            return Err(DumpError::Depth);
        }
        if let Some(identity) = identity(value) {
            if let Some(seen) = self.seen.get_mut(&identity) {
                if seen.number == 0 {
                    self.last += 1;
                    seen.number = self.last;
                }
                return Ok(());
            }
            self.seen.insert(identity, Seen::default());
        }
        match value {
            Value::List(list) => {
                list.read().iter().try_for_each(|item| self.count(item, depth + 1))
            }
            Value::Tuple(items) => items.iter().try_for_each(|item| self.count(item, depth + 1)),
            Value::Dict(dict) => dict.read().iter().try_for_each(|(key, value)| {
                self.count(key, depth + 1)?;
                self.count(value, depth + 1)
            }),
            _ => Ok(()),
        }
    }
}

/// Where a node stands, as far as its layout depends on it.
#[derive(Clone, Copy, Default)]
struct Role {
    /// It is a key or a value.
    mapping: bool,
    /// It is a key without `?`.
    simple_key: bool,
}

const ITEM: Role = Role { mapping: false, simple_key: false };
const VALUE: Role = Role { mapping: true, simple_key: false };
const SIMPLE_KEY: Role = Role { mapping: true, simple_key: true };

/// What becomes of an anchor: its first mention defines it.
enum Name {
    None,
    Anchor(String),
    Alias(String),
}

struct Writer<'o> {
    emitter: Emitter,
    options: &'o DumpOptions,
    aliases: Aliases,
    depth: usize,
}

impl Writer<'_> {
    fn name(&mut self, value: &Value) -> Name {
        let seen = identity(value).and_then(|id| self.aliases.seen.get_mut(&id));
        match seen.filter(|seen| seen.number > 0) {
            None => Name::None,
            Some(seen) => {
                let name = format!("id{:03}", seen.number);
                match std::mem::replace(&mut seen.written, true) {
                    true => Name::Alias(name),
                    false => Name::Anchor(name),
                }
            }
        }
    }

    fn node(&mut self, value: &Value, role: Role) -> Result<(), DumpError> {
        let name = self.name(value);
        let anchor = match &name {
            Name::Alias(name) => {
                self.emitter.alias(name, role.simple_key);
                return Ok(());
            }
            Name::Anchor(name) => Some(name.as_str()),
            Name::None => None,
        };
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(DumpError::Depth);
        }
        match value {
            Value::List(list) => self.sequence(&list.read(), anchor, role),
            Value::Tuple(items) => self.sequence(items, anchor, role),
            Value::Dict(dict) => {
                let entries = dict.read();
                let mut entries: Vec<(&Key, &Value)> = entries.iter().collect();
                if self.options.sort_keys && !(self.options.keep_ordered && dict.is_ordered()) {
                    sort(&mut entries);
                }
                self.mapping("map", &entries, anchor)
            }
            Value::Object(object) => match object.as_any().downcast_ref::<Set>() {
                Some(set) => {
                    let keys = set.to_vec();
                    let mut entries: Vec<_> = keys.iter().map(|key| (key, &Value::Null)).collect();
                    sort(&mut entries);
                    self.mapping("set", &entries, anchor)
                }
                None => {
                    self.scalar(value, anchor, role);
                    Ok(())
                }
            },
            scalar => {
                self.scalar(scalar, anchor, role);
                Ok(())
            }
        }?;
        self.depth -= 1;
        Ok(())
    }

    fn scalar(&mut self, value: &Value, anchor: Option<&str>, role: Role) {
        let (tag, text) = represent(value);
        let scalar = self.prepare(value, &tag, &text);
        let props = Props { anchor, tag: self.scalar_tag(&scalar, &tag) };
        self.emitter.scalar(&scalar, props, role.simple_key);
    }

    fn prepare<'t>(&self, value: &Value, tag: &Tag, text: &'t str) -> Scalar<'t> {
        Scalar {
            text,
            plain_implicit: resolve(text) == *tag,
            quoted_implicit: *tag == Tag::Str,
            style: match value {
                Value::Bytes(_) => Some(Style::Literal),
                _ => self.options.default_style,
            },
            looks: self.emitter.looks(text),
        }
    }

    /// Returns the tag to write: one that reading could not find out, or any in canonical style.
    fn scalar_tag(&self, scalar: &Scalar<'_>, tag: &Tag) -> Option<&'static str> {
        let needed = !scalar.plain_implicit && !scalar.quoted_implicit;
        (needed || self.options.canonical).then(|| tag.short_name())
    }

    fn sequence(
        &mut self,
        items: &[Value],
        anchor: Option<&str>,
        role: Role,
    ) -> Result<(), DumpError> {
        let tag = self.options.canonical.then_some("seq");
        self.emitter.props(Props { anchor, tag });
        if items.is_empty() || self.is_flow(items.iter()) {
            let outer = self.begin_flow("[");
            for (index, item) in items.iter().enumerate() {
                self.separate(index);
                self.node(item, ITEM)?;
            }
            self.end_flow("]", outer, items.is_empty());
            return Ok(());
        }
        let indentless = role.mapping && !self.emitter.at_indention();
        let outer = self.emitter.enter(false, indentless);
        for item in items {
            self.emitter.write_indent();
            self.emitter.indicator("-", true, false, true);
            self.node(item, ITEM)?;
        }
        self.emitter.leave(outer);
        Ok(())
    }

    fn mapping(
        &mut self,
        tag: &'static str,
        entries: &[(&Key, &Value)],
        anchor: Option<&str>,
    ) -> Result<(), DumpError> {
        let shown = self.options.canonical || tag != "map";
        self.emitter.props(Props { anchor, tag: shown.then_some(tag) });
        let values = entries.iter().flat_map(|(key, value)| [key.value(), *value]);
        if entries.is_empty() || self.is_flow(values) {
            let outer = self.begin_flow("{");
            for (index, (key, value)) in entries.iter().enumerate() {
                self.separate(index);
                if !self.options.canonical && self.key(key)? {
                    self.emitter.indicator(":", false, false, false);
                } else {
                    self.emitter.indicator("?", true, false, false);
                    self.node(key, VALUE)?;
                    self.emitter.flow_break();
                    self.emitter.indicator(":", true, false, false);
                }
                self.node(value, VALUE)?;
            }
            self.end_flow("}", outer, entries.is_empty());
            return Ok(());
        }
        let outer = self.emitter.enter(false, false);
        for (key, value) in entries {
            self.emitter.write_indent();
            if self.key(key)? {
                self.emitter.indicator(":", false, false, false);
            } else {
                self.emitter.indicator("?", true, false, true);
                self.node(key, VALUE)?;
                self.emitter.write_indent();
                self.emitter.indicator(":", true, false, true);
            }
            self.node(value, VALUE)?;
        }
        self.emitter.leave(outer);
        Ok(())
    }

    /// Writes a key that is short and on one line, and tells so; others need a `?` first.
    fn key(&mut self, key: &Value) -> Result<bool, DumpError> {
        match key {
            Value::Tuple(items) if !items.is_empty() => {
                // An alias is short whatever it stands for.
                let id = identity(key);
                let written =
                    id.and_then(|id| self.aliases.seen.get(&id)).is_some_and(|s| s.written);
                if written {
                    self.node(key, SIMPLE_KEY)?;
                }
                Ok(written)
            }
            Value::Tuple(_) | Value::List(_) | Value::Dict(_) | Value::Object(_) => {
                let simple = !matches!(key, Value::Object(_));
                if simple {
                    self.node(key, SIMPLE_KEY)?;
                }
                Ok(simple)
            }
            scalar => {
                let (tag, text) = represent(scalar);
                let scalar = self.prepare(scalar, &tag, &text);
                let props = Props { anchor: None, tag: self.scalar_tag(&scalar, &tag) };
                let simple = Emitter::is_simple(scalar.looks.multiline, text.len(), props);
                if simple {
                    self.emitter.scalar(&scalar, props, true);
                }
                Ok(simple)
            }
        }
    }

    fn begin_flow(&mut self, mark: &str) -> Option<usize> {
        self.emitter.indicator(mark, true, true, false);
        self.emitter.flow_level += 1;
        self.emitter.enter(true, false)
    }

    fn separate(&mut self, index: usize) {
        if index > 0 {
            self.emitter.indicator(",", false, false, false);
        }
        self.emitter.flow_break();
    }

    fn end_flow(&mut self, mark: &str, outer: Option<usize>, empty: bool) {
        self.emitter.flow_level -= 1;
        self.emitter.leave(outer);
        if self.options.canonical && !empty {
            self.emitter.indicator(",", false, false, false);
            self.emitter.write_indent();
        }
        self.emitter.indicator(mark, false, false, false);
    }

    fn is_flow<'v>(&self, mut items: impl Iterator<Item = &'v Value>) -> bool {
        let plain = |value: &Value| match value {
            Value::List(_) | Value::Tuple(_) | Value::Dict(_) | Value::Bytes(_) => false,
            Value::Object(object) => !object.as_any().is::<Set>(),
            _ => true,
        };
        self.emitter.flow_level > 0
            || self.options.canonical
            || self
                .options
                .default_flow_style
                .unwrap_or_else(|| self.options.default_style.is_none() && items.all(plain))
    }
}

/// Returns the tag and the text of a scalar.
fn represent(value: &Value) -> (Tag, Cow<'_, str>) {
    match value {
        Value::Null => (Tag::Null, "null".into()),
        Value::Bool(true) => (Tag::Bool, "true".into()),
        Value::Bool(false) => (Tag::Bool, "false".into()),
        Value::Int(int) => (Tag::Int, int.to_string().into()),
        Value::BigInt(int) => (Tag::Int, int.to_string().into()),
        Value::Float(float) => (Tag::Float, float_text(*float).into()),
        Value::Str(text) => (Tag::Str, text.as_str().into()),
        Value::Bytes(bytes) => (Tag::Binary, base64_lines(bytes).into()),
        Value::Timestamp(_) => (Tag::Timestamp, value.to_str().to_string().into()),
        // Salt's dumper writes what it does not know as this.
        Value::Object(_) | Value::List(_) | Value::Tuple(_) | Value::Dict(_) => {
            (Tag::Null, "NULL".into())
        }
    }
}

/// Sorts as Python does, and not at all when two keys cannot be compared.
fn sort(entries: &mut Vec<(&Key, &Value)>) {
    if let Some(sorted) = sorted(entries.clone(), &|(a, _), (b, _)| less(a, b)) {
        *entries = sorted;
    }
}

fn float_text(float: f64) -> String {
    if float.is_nan() {
        return ".nan".into();
    }
    if float.is_infinite() {
        return if float > 0.0 { ".inf" } else { "-.inf" }.into();
    }
    let text = float_repr(float);
    // `1e+16` would be read back as text.
    if text.contains('.') { text } else { text.replacen('e', ".0e", 1) }
}

/// Encodes in lines of 76, each ended: Python's `encodebytes`.
fn base64_lines(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len() * 4 / 3 + bytes.len() / 57 + 5);
    for line in bytes.chunks(57) {
        for three in line.chunks(3) {
            let byte = |index: usize| u32::from(three.get(index).copied().unwrap_or(0));
            let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            for (index, shift) in [18, 12, 6, 0].into_iter().enumerate() {
                let letter = LETTERS[(bits >> shift & 0x3f) as usize];
                out.push(if index > three.len() { '=' } else { char::from(letter) });
            }
        }
        out.push('\n');
    }
    out
}

/// Writes a text as one double-quoted scalar on one line, in ASCII: the filter `yaml_dquote`.
pub fn dquote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => escape(c, &mut out),
            ' '..='~' => out.push(c),
            c => escape(c, &mut out),
        }
    }
    out.push('"');
    out
}

/// Writes the escape of a character in double quotes.
pub(super) fn escape(c: char, out: &mut String) {
    out.push('\\');
    out.push(match c {
        '\0' => '0',
        '\x07' => 'a',
        '\x08' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\x0b' => 'v',
        '\x0c' => 'f',
        '\r' => 'r',
        '\x1b' => 'e',
        '"' => '"',
        '\\' => '\\',
        '\u{85}' => 'N',
        '\u{a0}' => '_',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        _ => {
            let code = u32::from(c);
            let _ = match code {
                0..=0xff => write!(out, "x{code:02X}"),
                0x100..=0xffff => write!(out, "u{code:04X}"),
                _ => write!(out, "U{code:08X}"),
            };
            return;
        }
    });
}

/// Writes a text as a single-quoted scalar, unfolded: the filter `yaml_squote`.
pub fn squote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('\'');
    let mut breaks = false;
    for c in text.chars() {
        let is_break = matches!(c, '\n' | '\u{85}' | '\u{2028}' | '\u{2029}');
        // A run of breaks that begins with a newline needs one more, which reading folds away.
        if is_break && !breaks && c == '\n' {
            out.push('\n');
        }
        breaks = is_break;
        match c {
            '\'' => out.push_str("''"),
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

/// Writes a scalar value, text in double quotes: the filter `yaml_encode`. `None` for containers.
pub fn encode_scalar(value: &Value) -> Option<String> {
    Some(match value {
        Value::Null => "null".into(),
        Value::Bool(flag) => flag.to_string(),
        Value::Int(_) | Value::BigInt(_) | Value::Timestamp(_) => value.to_str().to_string(),
        Value::Float(float) => float_text(*float),
        Value::Str(text) => dquote(text),
        Value::Bytes(bytes) => base64_lines(bytes),
        Value::List(_) | Value::Tuple(_) | Value::Dict(_) | Value::Object(_) => return None,
    })
}
