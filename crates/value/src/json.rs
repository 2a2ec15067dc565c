//! JSON as Python's `json` module reads and writes it.
//!
//! Our own reader and writer, not serde_json's: Python's spacing, `ensure_ascii`, NaN, unlimited
//! integers and error texts are what scripts and templates see.

use std::fmt::Write as _;

use num_bigint::BigInt;

use crate::{Dict, Key, List, Value, float_repr};

const MAX_DEPTH: usize = 512;

/// The text is not JSON. `Display` is Python's message.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{message}: line {line} column {column} (char {offset})")]
pub struct Error {
    pub message: String,
    pub line: usize,
    pub column: usize,
    /// In characters, from 0.
    pub offset: usize,
}

/// The value cannot be written as JSON.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum WriteError {
    #[error("Object of type {0} is not JSON serializable")]
    Type(String),
    #[error("keys must be str, int, float, bool or None, not {0}")]
    Key(String),
    #[error("Circular reference detected")]
    TooDeep,
}

/// How to write.
#[derive(Clone, Debug)]
pub struct Style {
    /// Spaces per level; `None` is one line.
    pub indent: Option<usize>,
    pub sort_keys: bool,
    pub ensure_ascii: bool,
    /// Bytes are written as text (with replacement); otherwise they are an error.
    pub bytes_as_text: bool,
    /// Between items on one line.
    pub item_separator: &'static str,
    pub key_separator: &'static str,
}

impl Default for Style {
    fn default() -> Self {
        Self {
            indent: None,
            sort_keys: false,
            ensure_ascii: true,
            bytes_as_text: false,
            item_separator: ", ",
            key_separator: ": ",
        }
    }
}

/// Reads one JSON document.
pub fn from_str(text: &str) -> Result<Value, Error> {
    let mut reader = Reader { text, at: 0, depth: 0 };
    reader.skip_space();
    let value = reader.value()?;
    reader.skip_space();
    if reader.at < text.len() {
        return Err(reader.error("Extra data", reader.at));
    }
    Ok(value)
}

/// Writes on one line, as `json.dumps(value)`.
pub fn to_string(value: &Value) -> Result<String, WriteError> {
    to_string_styled(value, &Style::default())
}

pub fn to_string_styled(value: &Value, style: &Style) -> Result<String, WriteError> {
    let mut out = String::new();
    write(value, style, &mut out)?;
    Ok(out)
}

/// Writes after what a buffer holds already.
pub fn write(value: &Value, style: &Style, out: &mut String) -> Result<(), WriteError> {
    // At once: memory that is not written to costs nothing, a text that grows is copied.
    out.reserve(room(value, style.indent.unwrap_or_default(), 1));
    write_at(value, style, 0, out)
}

/// Returns about how long the text of a value is; rather more, and less only if it has many escapes.
fn room(value: &Value, indent: usize, depth: usize) -> usize {
    const PUNCTUATION: usize = 4;
    let line = PUNCTUATION + indent * depth;
    let below = |item: &Value| if depth > MAX_DEPTH { 0 } else { room(item, indent, depth + 1) };
    match value {
        Value::Str(text) => text.len() + PUNCTUATION,
        Value::List(list) => {
            line + list.read().iter().map(|item| line + below(item)).sum::<usize>()
        }
        Value::Tuple(items) => line + items.iter().map(|item| line + below(item)).sum::<usize>(),
        Value::Dict(dict) => {
            let key = |key: &Key| line + room(key, indent, depth);
            line + dict.read().iter().map(|(own, item)| key(own) + below(item)).sum::<usize>()
        }
        _ => 24,
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn error(&self, message: &str, at: usize) -> Error {
        let before = &self.text[..at.min(self.text.len())];
        let line_start = before.rfind('\n').map_or(0, |index| index + 1);
        Error {
            message: message.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            offset: before.chars().count(),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self) -> Result<Value, Error> {
        const WORDS: [(&str, Value); 6] = [
            ("null", Value::Null),
            ("true", Value::Bool(true)),
            ("false", Value::Bool(false)),
            ("NaN", Value::Float(f64::NAN)),
            ("Infinity", Value::Float(f64::INFINITY)),
            ("-Infinity", Value::Float(f64::NEG_INFINITY)),
        ];
        for (word, value) in WORDS {
            if self.rest().starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        match self.peek() {
            Some(b'"') => self.string().map(Value::from),
            Some(b'[') => self.nested(Self::array),
            Some(b'{') => self.nested(Self::object),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.error("Expecting value", self.at)),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Value, Error>) -> Result<Value, Error> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error("nesting too deep", self.at));
        }
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn array(&mut self) -> Result<Value, Error> {
        self.at += 1;
        let mut items = Vec::new();
        self.skip_space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(items.into());
        }
        loop {
            self.skip_space();
            items.push(self.value()?);
            self.skip_space();
            match self.peek() {
                Some(b',') => {
                    let comma = self.at;
                    self.at += 1;
                    self.skip_space();
                    if self.peek() == Some(b']') {
                        // The wording changed in Python 3.13; older ones point behind the comma.
                        return Err(self.error("Expecting value", comma + 1));
                    }
                }
                Some(b']') => {
                    self.at += 1;
                    return Ok(List::from(items).into());
                }
                _ => return Err(self.error("Expecting ',' delimiter", self.at)),
            }
        }
    }

    fn object(&mut self) -> Result<Value, Error> {
        const NAME: &str = "Expecting property name enclosed in double quotes";
        self.at += 1;
        let dict = Dict::new();
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(dict.into());
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.error(NAME, self.at));
            }
            let key = self.string()?;
            self.skip_space();
            if self.peek() != Some(b':') {
                return Err(self.error("Expecting ':' delimiter", self.at));
            }
            self.at += 1;
            self.skip_space();
            dict.insert(key, self.value()?);
            self.skip_space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(dict.into());
                }
                _ => return Err(self.error("Expecting ',' delimiter", self.at)),
            }
        }
    }

    fn number(&mut self) -> Result<Value, Error> {
        let start = self.at;
        let digits = |reader: &mut Self| {
            let from = reader.at;
            while matches!(reader.peek(), Some(b'0'..=b'9')) {
                reader.at += 1;
            }
            reader.at > from
        };
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else if !digits(self) {
            return Err(self.error("Expecting value", start));
        }
        let mut float = false;
        let whole = self.at;
        if self.peek() == Some(b'.') {
            self.at += 1;
            if digits(self) { float = true } else { self.at = whole }
        }
        let before_exponent = self.at;
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if digits(self) { float = true } else { self.at = before_exponent }
        }
        let text = &self.text[start..self.at];
        if float {
            return Ok(Value::Float(text.parse().unwrap_or(f64::NAN)));
        }
        Ok(match text.parse::<i64>() {
            Ok(int) => Value::Int(int),
            Err(_) => text.parse::<BigInt>().map_or(Value::Null, Value::from_bigint),
        })
    }

    fn string(&mut self) -> Result<String, Error> {
        let start = self.at;
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = self.rest();
            let plain = rest
                .find(|c: char| c == '"' || c == '\\' || c < ' ')
                .ok_or_else(|| self.error("Unterminated string starting at", start))?;
            out.push_str(&rest[..plain]);
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => self.escape(start, &mut out)?,
                _ => return Err(self.error("Invalid control character at", self.at)),
            }
        }
    }

    fn escape(&mut self, start: usize, out: &mut String) -> Result<(), Error> {
        let at = self.at;
        self.at += 2;
        let c = match self.text.as_bytes().get(at + 1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let high = self.hex(at)?;
                let low = (0xd800..0xdc00).contains(&high) && self.rest().starts_with("\\u");
                if low {
                    let back = self.at;
                    self.at += 2;
                    let low = self.hex(back)?;
                    if (0xdc00..0xe000).contains(&low) {
                        let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                        out.push(char::from_u32(code).unwrap_or('\u{fffd}'));
                        return Ok(());
                    }
                    self.at = back;
                }
                // A lone surrogate cannot be in our text; Python would keep it.
                char::from_u32(high).unwrap_or('\u{fffd}')
            }
            None => return Err(self.error("Unterminated string starting at", start)),
            Some(_) => return Err(self.error("Invalid \\escape", at)),
        };
        out.push(c);
        Ok(())
    }

    fn hex(&mut self, at: usize) -> Result<u32, Error> {
        let digits = self.text.get(self.at..self.at + 4);
        let code = digits
            .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .ok_or_else(|| self.error("Invalid \\uXXXX escape", at + 1))?;
        self.at += 4;
        Ok(code)
    }
}

fn write_at(
    value: &Value,
    style: &Style,
    depth: usize,
    out: &mut String,
) -> Result<(), WriteError> {
    if depth > MAX_DEPTH {
        return Err(WriteError::TooDeep);
    }
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Int(int) => {
            let _ = write!(out, "{int}");
        }
        Value::BigInt(_) => out.push_str(&value.repr()),
        Value::Float(float) => out.push_str(&float_text(*float)),
        Value::Str(text) => write_text(text, style, out),
        Value::Bytes(bytes) if style.bytes_as_text => {
            write_text(&String::from_utf8_lossy(bytes), style, out);
        }
        Value::List(list) => write_items(&list.read(), style, depth, out)?,
        Value::Tuple(items) => write_items(items, style, depth, out)?,
        Value::Dict(dict) => write_dict(dict, style, depth, out)?,
        Value::Bytes(_) | Value::Timestamp(_) | Value::Object(_) => {
            let name = value.type_name();
            let name = name.rsplit('.').next().unwrap_or(&name);
            return Err(WriteError::Type(name.to_owned()));
        }
    }
    Ok(())
}

fn float_text(float: f64) -> String {
    if float.is_nan() {
        "NaN".into()
    } else if float.is_infinite() {
        if float > 0.0 { "Infinity" } else { "-Infinity" }.into()
    } else {
        float_repr(float)
    }
}

fn new_line(style: &Style, depth: usize, out: &mut String) {
    if let Some(indent) = style.indent {
        const SPACES: &str = "                                                                ";
        out.push('\n');
        let mut missing = indent * depth;
        while missing > 0 {
            let some = missing.min(SPACES.len());
            out.push_str(&SPACES[..some]);
            missing -= some;
        }
    }
}

/// With an indent, Python drops the space after the comma.
fn separator<'a>(style: &'a Style, out: &mut String) {
    let text: &'a str = style.item_separator;
    out.push_str(if style.indent.is_some() { text.trim_end() } else { text });
}

fn write_items(
    items: &[Value],
    style: &Style,
    depth: usize,
    out: &mut String,
) -> Result<(), WriteError> {
    if items.is_empty() {
        out.push_str("[]");
        return Ok(());
    }
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            separator(style, out);
        }
        new_line(style, depth + 1, out);
        write_at(item, style, depth + 1, out)?;
    }
    new_line(style, depth, out);
    out.push(']');
    Ok(())
}

fn write_dict(
    dict: &Dict,
    style: &Style,
    depth: usize,
    out: &mut String,
) -> Result<(), WriteError> {
    let map = dict.read();
    if map.is_empty() {
        out.push_str("{}");
        return Ok(());
    }
    let mut entries: Vec<(&Key, &Value)> = Vec::new();
    if style.sort_keys {
        entries.extend(map.iter());
        entries
            .sort_by(|(a, _), (b, _)| a.compare(b).unwrap_or_else(|| a.to_str().cmp(&b.to_str())));
    }
    out.push('{');
    let in_order = map.iter().take(if style.sort_keys { 0 } else { map.len() });
    for (index, (key, item)) in entries.into_iter().chain(in_order).enumerate() {
        if index > 0 {
            separator(style, out);
        }
        new_line(style, depth + 1, out);
        match key.value() {
            Value::Str(text) => write_text(text, style, out),
            Value::Null => out.push_str("\"null\""),
            Value::Bool(flag) => out.push_str(if *flag { "\"true\"" } else { "\"false\"" }),
            Value::Float(float) => {
                let _ = write!(out, "\"{}\"", float_text(*float));
            }
            Value::Int(_) | Value::BigInt(_) => {
                let _ = write!(out, "\"{key}\"");
            }
            Value::Bytes(bytes) if style.bytes_as_text => {
                write_text(&String::from_utf8_lossy(bytes), style, out);
            }
            other => return Err(WriteError::Key(other.type_name().into_owned())),
        }
        out.push_str(style.key_separator);
        write_at(item, style, depth + 1, out)?;
    }
    new_line(style, depth, out);
    out.push('}');
    Ok(())
}

fn write_text(text: &str, style: &Style, out: &mut String) {
    out.push('"');
    // Most texts are as they are.
    let is_plain = |byte: u8| {
        byte >= b' ' && byte != b'"' && byte != b'\\' && (byte.is_ascii() || !style.ensure_ascii)
    };
    if text.bytes().all(is_plain) {
        out.push_str(text);
        out.push('"');
        return;
    }
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            // DEL is left alone by Python, ASCII or not.
            c if style.ensure_ascii && !c.is_ascii() => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{dict, list};

    #[test]
    fn reads_what_python_reads() {
        let text = r#" {"a": [1, -2.5, 1e3, true, null, "\u00e9\n\ud83d\ude00"], "b": {}} "#;
        let expected = dict! {
            "a" => list![1, -2.5, 1000.0, true, (), "é\n😀"], "b" => Value::dict(),
        };
        assert_eq!(from_str(text), Ok(expected));
        let big = from_str("123456789012345678901234567890").expect("int");
        assert_eq!(big.repr(), "123456789012345678901234567890");
    }

    fn fails(text: &str, message: &str) {
        assert_eq!(from_str(text).expect_err(text).to_string(), message, "{text}");
    }

    #[test]
    fn errors_are_pythons() {
        fails("", "Expecting value: line 1 column 1 (char 0)");
        fails("{\"a\" 1}", "Expecting ':' delimiter: line 1 column 6 (char 5)");
        fails("[1 2]", "Expecting ',' delimiter: line 1 column 4 (char 3)");
        fails("[1]\n x", "Extra data: line 2 column 2 (char 5)");
        fails(
            "{a: 1}",
            "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
        );
        fails("\"abc", "Unterminated string starting at: line 1 column 1 (char 0)");
        fails("\"a\\q\"", "Invalid \\escape: line 1 column 3 (char 2)");
        fails("\"a\tb\"", "Invalid control character at: line 1 column 3 (char 2)");
        fails(&"[".repeat(100_000), "nesting too deep: line 1 column 513 (char 512)");
    }

    #[test]
    fn writes_as_python_writes() {
        let value = dict! { "b" => list![1, 1.0, ()], "a" => "é\u{7f}\"", 3 => list![] };
        assert_eq!(
            to_string(&value).as_deref(),
            Ok("{\"b\": [1, 1.0, null], \"a\": \"\\u00e9\u{7f}\\\"\", \"3\": []}")
        );
        let style = Style { indent: Some(2), sort_keys: true, ..Style::default() };
        let value = dict! { "b" => list![1], "a" => Value::dict() };
        assert_eq!(
            to_string_styled(&value, &style).as_deref(),
            Ok("{\n  \"a\": {},\n  \"b\": [\n    1\n  ]\n}")
        );
    }
}
