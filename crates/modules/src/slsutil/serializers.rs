//! Data to text and back, by the names and options of Salt's serializers: `yaml`, `json`, `toml`,
//! `configparser`, `msgpack`.
//!
//! Options are those of the Python libraries behind them. What those print is printed here, down
//! to the odd spaces of TOML lists, because files are compared with it.

use std::fmt::Write as _;

use halite_value::{
    Dict, Key, List, Value, float_repr,
    json::{self, Style},
    merge::{Strategy, merge},
    msgpack::{self, Dialect, Text},
    yaml,
};

/// A serializer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serializer {
    Yaml,
    Json,
    Toml,
    ConfigParser,
    Msgpack,
}

/// Data cannot be written, or a text cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Failed(String);

type Result<T> = std::result::Result<T, Failed>;

fn failed(error: impl std::fmt::Display) -> Failed {
    Failed(error.to_string())
}

impl Serializer {
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "yaml" | "yamlex" => Self::Yaml,
            "json" => Self::Json,
            "toml" => Self::Toml,
            "configparser" => Self::ConfigParser,
            "msgpack" => Self::Msgpack,
            _ => return None,
        })
    }

    /// Writes; only msgpack gives bytes.
    pub fn write(self, data: &Value, options: &Dict) -> Result<Value> {
        match self {
            Self::Yaml => write_yaml(data, options).map(Value::from),
            Self::Json => write_json(data, options).map(Value::from),
            Self::Toml => write_toml(data).map(Value::from),
            Self::ConfigParser => write_ini(data, options).map(Value::from),
            Self::Msgpack => {
                msgpack::to_vec(data, Dialect::Modern).map(Value::bytes).map_err(failed)
            }
        }
    }

    pub fn read(self, content: &[u8], options: &Dict) -> Result<Value> {
        let text = || std::str::from_utf8(content).map_err(failed);
        match self {
            Self::Yaml => yaml::load_str(text()?).map_err(failed),
            Self::Json => json::from_str(text()?).map_err(failed),
            Self::Toml => read_toml(text()?),
            Self::ConfigParser => read_ini(text()?, options),
            Self::Msgpack => msgpack::from_slice(content, Text::Typed).map_err(failed),
        }
    }
}

/// What `merge_if_exists` and the like do: the second wins, at every depth.
pub fn merged(first: &Value, second: &Value) -> Value {
    merge(first, second, Strategy::Recurse, false).unwrap_or_else(|_| second.clone())
}

fn write_yaml(data: &Value, options: &Dict) -> Result<String> {
    let mut how = yaml::DumpOptions {
        allow_unicode: false,
        keep_ordered: false,
        ..yaml::DumpOptions::default()
    };
    for (name, value) in options {
        how.set(&name.to_str(), &value).map_err(failed)?;
    }
    let text = yaml::dump(data, &how).map_err(failed)?;
    let bare = text.strip_suffix("\n...\n").or_else(|| text.strip_suffix('\n'));
    Ok(bare.unwrap_or(&text).to_owned())
}

fn write_json(data: &Value, options: &Dict) -> Result<String> {
    let mut style = Style { ensure_ascii: false, ..Style::default() };
    for (name, value) in options {
        match name.to_str().as_str() {
            "indent" => {
                style.indent = value.to_int().and_then(|width| usize::try_from(width).ok());
                if style.indent.is_some() && !options.contains("separators") {
                    style.item_separator = ",";
                }
            }
            "sort_keys" => style.sort_keys = value.truthy(),
            "ensure_ascii" => style.ensure_ascii = value.truthy(),
            "separators" => {
                let parts = value.items_of_sequence().unwrap_or_default();
                let [item, key] = parts.as_slice() else {
                    return Err(Failed("separators must be a pair".into()));
                };
                style.item_separator = known(&item.to_str());
                style.key_separator = known(&key.to_str());
            }
            "skipkeys" | "check_circular" | "allow_nan" | "cls" | "default" => {}
            other => {
                return Err(Failed(format!(
                    "JSONEncoder.__init__() got an unexpected keyword argument '{other}'"
                )));
            }
        }
    }
    json::to_string_styled(data, &style).map_err(failed)
}

/// The separators people use; the writer borrows them for good.
fn known(separator: &str) -> &'static str {
    match separator {
        "," => ",",
        ":" => ":",
        ": " => ": ",
        " : " => " : ",
        " ," => " ,",
        _ => ", ",
    }
}

fn write_toml(data: &Value) -> Result<String> {
    let Value::Dict(top) = data else {
        return Err(Failed("TOML can only hold a dict".into()));
    };
    let Section { text: mut out, tables, .. } = Section::of(String::new(), top)?;
    toml_tables(tables, &mut out, |out| {
        if !out.is_empty() && !out.ends_with("\n\n") {
            out.push('\n');
        }
    })?;
    Ok(out)
}

fn toml_key(key: &Key) -> String {
    let text = key.to_str();
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !text.is_empty() && text.chars().all(bare) { text.to_string() } else { toml_text(&text) }
}

fn toml_text(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out + "\""
}

fn toml_value(value: &Value) -> Result<String> {
    Ok(match value {
        Value::Str(text) => toml_text(text),
        Value::Bool(flag) => flag.to_string(),
        Value::Int(_) | Value::BigInt(_) => value.to_str().to_string(),
        Value::Float(float) => float_repr(*float).replace("e+0", "e+").replace("e-0", "e-"),
        Value::List(_) | Value::Tuple(_) => {
            let mut out = String::from("[");
            for item in value.items_of_sequence().unwrap_or_default() {
                let _ = write!(out, " {},", toml_value(&item)?);
            }
            out + "]"
        }
        Value::Dict(dict) => {
            let parts: Result<Vec<String>> = dict
                .into_iter()
                .map(|(key, value)| Ok(format!("{} = {}", toml_key(&key), toml_value(&value)?)))
                .collect();
            format!("{{ {} }}", parts?.join(", "))
        }
        Value::Timestamp(time) => time.to_string(),
        other => {
            return Err(Failed(format!("TOML cannot hold a {}", other.type_name())));
        }
    })
}

fn is_table_list(value: &Value) -> bool {
    value
        .items_of_sequence()
        .is_some_and(|items| !items.is_empty() && items.iter().all(|item| item.as_dict().is_some()))
}

/// A table of a document: what stands below its header, and its tables, whose headers come later.
struct Section {
    name: String,
    text: String,
    tables: Vec<(String, Dict)>,
}

impl Section {
    /// Simple values first, then lists of tables; None is left out, as the Python library does.
    fn of(name: String, table: &Dict) -> Result<Self> {
        let mut section = Self { name, text: String::new(), tables: Vec::new() };
        let mut lists = String::new();
        for (key, value) in table {
            let inner = match section.name.as_str() {
                "" => toml_key(&key),
                name => format!("{name}.{}", toml_key(&key)),
            };
            match &value {
                Value::Null => {}
                Value::Dict(table) => section.tables.push((inner, table.clone())),
                _ if is_table_list(&value) => toml_table_list(&inner, &value, &mut lists)?,
                _ => {
                    let _ = writeln!(section.text, "{} = {}", toml_key(&key), toml_value(&value)?);
                }
            }
        }
        section.text.push_str(&lists);
        Ok(section)
    }

    /// Those that hold nothing but further tables need no header: `[a.b]` says that there is an `a`.
    fn needs_header(&self) -> bool {
        !self.text.is_empty() || self.tables.is_empty()
    }
}

/// Writes tables level by level, as the Python library does: `[a]` and `[b]` before `[a.c]`.
fn toml_tables(
    mut level: Vec<(String, Dict)>,
    out: &mut String,
    mut gap: impl FnMut(&mut String),
) -> Result<()> {
    while !level.is_empty() {
        let mut next = Vec::new();
        for (name, table) in level {
            let section = Section::of(name, &table)?;
            if section.needs_header() {
                gap(out);
                let _ = writeln!(out, "[{}]", section.name);
                out.push_str(&section.text);
            }
            next.extend(section.tables);
        }
        level = next;
    }
    Ok(())
}

// differs: the Python library drops empty tables inside of a list of tables.
fn toml_table_list(name: &str, items: &Value, out: &mut String) -> Result<()> {
    for item in items.items_of_sequence().unwrap_or_default() {
        let Value::Dict(item) = item else { continue };
        let section = Section::of(name.to_owned(), &item)?;
        let _ = writeln!(out, "[[{name}]]");
        let (before, behind) = if section.text.starts_with('[') { ("\n", "") } else { ("", "\n") };
        let _ = write!(out, "{before}{}{behind}", section.text);
        toml_tables(section.tables, out, |_| {})?;
    }
    Ok(())
}

fn read_toml(text: &str) -> Result<Value> {
    let table: toml::Table = text.parse().map_err(failed)?;
    Ok(from_toml(&toml::Value::Table(table)))
}

fn from_toml(value: &toml::Value) -> Value {
    match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(int) => (*int).into(),
        toml::Value::Float(float) => (*float).into(),
        toml::Value::Boolean(flag) => (*flag).into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(items) => Value::List(items.iter().map(from_toml).collect::<List>()),
        toml::Value::Table(table) => {
            Value::Dict(table.iter().map(|(key, value)| (key.as_str(), from_toml(value))).collect())
        }
    }
}

fn allows_no_value(options: &Dict) -> bool {
    options.get("allow_no_value").is_some_and(|flag| flag.truthy())
}

/// What every section has unless it says otherwise: the option `defaults`.
fn defaults_of(options: &Dict) -> Dict {
    match options.get("defaults") {
        Some(Value::Dict(given)) => given
            .entries()
            .into_iter()
            .map(|(key, value)| (key.to_str().to_lowercase(), value))
            .collect(),
        _ => Dict::new(),
    }
}

fn write_ini(data: &Value, options: &Dict) -> Result<String> {
    let Value::Dict(sections) = data else {
        return Err(Failed(format!(
            "configparser can only serialize dictionaries, not <class '{}'>",
            data.type_name()
        )));
    };
    let defaults = defaults_of(options);
    let others = Dict::new();
    for (section, keys) in sections {
        match (section.to_str().as_str(), &keys) {
            ("DEFAULT", Value::Dict(more)) => defaults.update(more),
            _ => drop(others.insert(section, keys)),
        }
    }
    let sections = Dict::new();
    if !defaults.is_empty() {
        sections.insert("DEFAULT", defaults);
    }
    sections.update(&others);
    let mut out = String::new();
    for (section, keys) in &sections {
        let Value::Dict(keys) = keys else {
            return Err(Failed(format!("'{}' object has no attribute 'items'", keys.type_name())));
        };
        let _ = writeln!(out, "[{section}]");
        for (key, value) in &keys {
            let key = key.to_str().to_lowercase();
            if value.is_null() {
                if !allows_no_value(options) {
                    return Err(Failed("option values must be strings".into()));
                }
                let _ = writeln!(out, "{key}");
                continue;
            }
            let value = value.to_str();
            if options.get("interpolation").is_none() && has_stray_percent(&value) {
                return Err(Failed(format!(
                    "invalid interpolation syntax in '{value}' at position {}",
                    value.find('%').unwrap_or(0)
                )));
            }
            let _ = writeln!(out, "{key} = {}", value.replace('\n', "\n\t"));
        }
        out.push('\n');
    }
    Ok(out)
}

/// A percent sign that is neither doubled nor `%(name)s`.
fn has_stray_percent(text: &str) -> bool {
    let text = text.replace("%%", "");
    let mut rest = text.as_str();
    while let Some(at) = rest.find('%') {
        let after = &rest[at + 1..];
        let closed = after.strip_prefix('(').and_then(|inner| inner.find(")s"));
        if closed.is_none() {
            return true;
        }
        rest = after;
    }
    false
}

fn read_ini(text: &str, options: &Dict) -> Result<Value> {
    let sections = Dict::new();
    let mut current: Option<Dict> = None;
    let mut last: Option<String> = None;
    for (number, line) in text.lines().enumerate() {
        let bare = line.trim();
        if bare.starts_with(['#', ';']) {
            continue;
        }
        if bare.is_empty() {
            continue;
        }
        let indented = line.starts_with([' ', '\t']);
        if indented && let (Some(section), Some(key)) = (&current, &last) {
            let before = section.get(key.as_str()).unwrap_or_default().to_str();
            section.insert(key.as_str(), format!("{before}\n{bare}"));
            continue;
        }
        if let Some(name) = bare.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            let section = Dict::new();
            sections.insert(name, &section);
            current = Some(section);
            last = None;
            continue;
        }
        let Some(section) = &current else {
            return Err(Failed(format!(
                "File contains no section headers.\nfile: '<???>', line: {}\n{:?}",
                number + 1,
                format!("{line}\n")
            )));
        };
        match bare.split_once(['=', ':']) {
            Some((key, value)) => {
                let key = key.trim().to_lowercase();
                section.insert(key.as_str(), value.trim());
                last = Some(key);
            }
            None if allows_no_value(options) => {
                section.insert(bare.to_lowercase(), Value::Null);
            }
            None => {
                return Err(Failed(format!(
                    "Source contains parsing errors: '<???>'\n\t[line {:2}]: {:?}",
                    number + 1,
                    format!("{line}\n")
                )));
            }
        }
    }
    let defaults = defaults_of(options);
    if let Some(Value::Dict(more)) = sections.remove("DEFAULT") {
        defaults.update(&more);
    }
    let interpolates = options.get("interpolation").is_none();
    let read = Dict::new();
    for (name, own) in &sections {
        let raw = defaults.shallow_copy();
        if let Value::Dict(own) = own {
            raw.update(&own);
        }
        let section = Dict::new();
        for (key, value) in &raw {
            let value = match value {
                Value::Str(text) if interpolates => {
                    Value::from(interpolated(&text, (&name.to_str(), &key.to_str()), &raw, 1)?)
                }
                other => other,
            };
            section.insert(key, value);
        }
        read.insert(name, section);
    }
    Ok(read.into())
}

/// Puts other options of the section in the place of `%(name)s`; `%%` is a percent sign.
fn interpolated(text: &str, at: (&str, &str), section: &Dict, depth: usize) -> Result<String> {
    let (name, option) = at;
    if depth > MAX_DEPTH {
        return Err(Failed(format!(
            "Recursion limit exceeded in value substitution: option '{option}' in section \
             '{name}' contains an interpolation key which cannot be substituted in {MAX_DEPTH} \
             steps. Raw value: '{text}'"
        )));
    }
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        if let Some(after) = after.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let Some(inner) = after.strip_prefix('(') else {
            return Err(Failed(format!("'%' must be followed by '%' or '(', found: '%{after}'")));
        };
        let Some((key, after)) = inner.split_once(")s") else {
            return Err(Failed(format!("bad interpolation variable reference '%({inner}'")));
        };
        let Some(value) = section.get(key.to_lowercase().as_str()) else {
            return Err(Failed(format!(
                "Bad value substitution: option '{option}' in section '{name}' contains an \
                 interpolation key '{}' which is not a valid option name. Raw value: '{text}'",
                key.to_lowercase()
            )));
        };
        out.push_str(&interpolated(&value.to_str(), at, section, depth + 1)?);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

/// How many steps of substitution Python allows.
const MAX_DEPTH: usize = 10;

#[cfg(test)]
mod tests {
    use halite_value::{dict, entries, list};

    use super::*;

    fn check(serializer: Serializer, data: &Value, expected: &str) {
        let text = serializer.write(data, &Dict::new()).unwrap();
        assert_eq!(text.to_str(), expected);
        assert_eq!(&serializer.read(expected.as_bytes(), &Dict::new()).unwrap(), data);
    }

    #[test]
    fn both_ways() {
        let data = dict! { "a" => 1, "l" => list![1, "x"], "t" => dict! { "k" => "v" } };
        check(Serializer::Json, &data, r#"{"a": 1, "l": [1, "x"], "t": {"k": "v"}}"#);
        check(Serializer::Yaml, &data, "a: 1\nl: [1, x]\nt: {k: v}");
        check(Serializer::Toml, &data, "a = 1\nl = [ 1, \"x\",]\n\n[t]\nk = \"v\"\n");
        let ini = dict! { "s" => dict! { "k" => "v", "m" => "a\nb" } };
        check(Serializer::ConfigParser, &ini, "[s]\nk = v\nm = a\n\tb\n\n");
    }

    #[test]
    fn tables_of_toml_stand_where_the_python_library_puts_them() {
        let leaf = || dict! { "x" => 1 };
        let check = |data: &Value, expected| check(Serializer::Toml, data, expected);
        check(
            &dict! { "t" => dict! { "a" => leaf(), "b" => leaf() } },
            "[t.a]\nx = 1\n\n[t.b]\nx = 1\n",
        );
        check(
            &dict! { "a" => dict! { "c" => leaf() }, "b" => leaf() },
            "[b]\nx = 1\n\n[a.c]\nx = 1\n",
        );
        check(&dict! { "a" => dict! { "b" => dict! {} } }, "[a.b]\n");
        check(&dict! { "k" => list![leaf()], "t" => leaf() }, "[[k]]\nx = 1\n\n[t]\nx = 1\n");
        check(
            &dict! { "k" => list![dict! { "m" => 0, "n" => dict! { "x" => 1, "z" => leaf() }, "w" => leaf() }, leaf()] },
            "[[k]]\nm = 0\n\n[k.n]\nx = 1\n[k.w]\nx = 1\n[k.n.z]\nx = 1\n[[k]]\nx = 1\n\n",
        );
        check(
            &dict! { "k" => list![dict! { "j" => list![leaf()] }] },
            "[[k]]\n\n[[k.j]]\nx = 1\n\n",
        );
    }

    #[test]
    fn ini_values_refer_to_each_other() {
        let read = |text: &str, options: &Dict| {
            Serializer::ConfigParser
                .read(text.as_bytes(), options)
                .map_err(|error| error.to_string())
        };
        let given = entries! { "defaults" => dict! { "Z" => "5" } };
        let text = "[s]\nb = %(z)s%%\n";
        assert_eq!(read(text, &given).unwrap(), dict! { "s" => dict! { "z" => "5", "b" => "5%" } });
        assert!(read(text, &Dict::new()).unwrap_err().contains("interpolation key 'z'"));
        assert!(read("[s]\na = %(a)s\n", &Dict::new()).unwrap_err().contains("Recursion limit"));
        let raw = read(text, &entries! { "interpolation" => Value::Null }).unwrap();
        assert_eq!(raw, dict! { "s" => dict! { "b" => "%(z)s%%" } });
        let data = dict! { "s" => dict! { "k" => 1 }, "DEFAULT" => dict! { "x" => 2 } };
        let text = Serializer::ConfigParser.write(&data, &given).unwrap();
        assert_eq!(text.to_str(), "[DEFAULT]\nz = 5\nx = 2\n\n[s]\nk = 1\n\n");
    }

    #[test]
    fn options() {
        let data = dict! { "b" => 1, "a" => list![1] };
        let options = entries! { "indent" => 2, "sort_keys" => true };
        let text = Serializer::Json.write(&data, &options).unwrap();
        assert_eq!(text.to_str(), "{\n  \"a\": [\n    1\n  ],\n  \"b\": 1\n}");
        assert!(Serializer::Yaml.write(&data, &entries! { "nonsense" => 1 }).is_err());
    }
}
