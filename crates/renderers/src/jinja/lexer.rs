//! From template text to tokens.
//!
//! The template is text with tags in it; inside a tag the language looks like Python. The rules
//! (what `-` and `+` strip, when `trim_blocks` eats a newline, which delimiter wins when two start at
//! the same place) are Jinja's.
//!
//! Surprising: a mistake becomes a token of its own ([`Tok::Bad`]) instead of ending the lexing.
//! Jinja lexes while it parses, so a syntax error further up must win over a bad character below.

use halite_value::{BigInt, SmolStr, Value, str_repr};

/// How templates are written: delimiters and what happens to white space around tags.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Syntax {
    pub block: (String, String),
    pub variable: (String, String),
    pub comment: (String, String),
    pub line_statement_prefix: Option<String>,
    pub line_comment_prefix: Option<String>,
    pub trim_blocks: bool,
    pub lstrip_blocks: bool,
    pub keep_trailing_newline: bool,
    /// What a line break becomes in text.
    pub newline: String,
}

impl Default for Syntax {
    fn default() -> Self {
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        Self {
            block: pair("{%", "%}"),
            variable: pair("{{", "}}"),
            comment: pair("{#", "#}"),
            line_statement_prefix: None,
            line_comment_prefix: None,
            trim_blocks: false,
            lstrip_blocks: false,
            keep_trailing_newline: false,
            newline: "\n".to_owned(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tok {
    /// An operator or bracket, as written.
    Op(&'static str),
    Name(SmolStr),
    Str(SmolStr),
    Int(Value),
    Float(f64),
    Data(String),
    BlockBegin,
    BlockEnd,
    VarBegin,
    VarEnd,
    Eof,
    /// The text is wrong here.
    Bad(String),
}

#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) line: u32,
    pub(crate) tok: Tok,
}

const OPERATORS: [&str; 26] = [
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}",
    ">", "<", "=", ".", ":", "|", ",", ";",
];

#[derive(Clone, Copy, PartialEq)]
enum Start {
    Raw,
    Comment,
    Block,
    Variable,
    LineStatement,
    LineComment,
}

/// Splits a template into tokens. Ends with [`Tok::Eof`] or [`Tok::Bad`].
pub(crate) fn lex(source: &str, syntax: &Syntax) -> Vec<Token> {
    let source = normalise(source, syntax.keep_trailing_newline);
    let mut lexer = Lexer::new(&source, syntax);
    if let Err(message) = lexer.run() {
        let line = lexer.line;
        lexer.tokens.push(Token { line, tok: Tok::Bad(message) });
    }
    let line = lexer.tokens.last().map_or(1, |token| token.line);
    lexer.tokens.push(Token { line, tok: Tok::Eof });
    lexer.tokens
}

/// Makes every line break `\n` and drops one at the very end.
fn normalise(source: &str, keep_trailing_newline: bool) -> String {
    let mut text = if source.contains('\r') {
        source.replace("\r\n", "\n").replace('\r', "\n")
    } else {
        source.to_owned()
    };
    if !keep_trailing_newline && text.ends_with('\n') {
        text.pop();
    }
    text
}

struct Lexer<'a> {
    source: &'a str,
    syntax: &'a Syntax,
    /// What can start a tag, best first where two match at the same place.
    starts: Vec<(Start, &'a str)>,
    first_bytes: [bool; 256],
    at: usize,
    line: u32,
    /// The last match ended a line.
    line_starting: bool,
    open: Vec<&'static str>,
    tokens: Vec<Token>,
}

impl<'a> Lexer<'a> {
    fn new(source: &'a str, syntax: &'a Syntax) -> Self {
        let mut starts: Vec<(Start, &str, &str)> = vec![
            (Start::Comment, "comment_begin", &syntax.comment.0),
            (Start::Block, "block_begin", &syntax.block.0),
            (Start::Variable, "variable_begin", &syntax.variable.0),
        ];
        if let Some(prefix) = &syntax.line_statement_prefix {
            starts.push((Start::LineStatement, "linestatement_begin", prefix));
        }
        if let Some(prefix) = &syntax.line_comment_prefix {
            starts.push((Start::LineComment, "linecomment_begin", prefix));
        }
        starts.sort_by_key(|(_, name, text)| std::cmp::Reverse((text.chars().count(), *name)));
        let mut first_bytes = [false; 256];
        for (start, _, text) in &starts {
            if let Some(byte) = text.bytes().next() {
                first_bytes[usize::from(byte)] = true;
            }
            if matches!(start, Start::LineStatement | Start::LineComment) {
                for byte in [b' ', b'\t', 0x0b, 0x0c] {
                    first_bytes[usize::from(byte)] = true;
                }
            }
        }
        Self {
            source,
            syntax,
            starts: starts.into_iter().map(|(start, _, text)| (start, text)).collect(),
            first_bytes,
            at: 0,
            line: 1,
            line_starting: true,
            open: Vec::new(),
            tokens: Vec::new(),
        }
    }

    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    fn push(&mut self, tok: Tok) {
        self.tokens.push(Token { line: self.line, tok });
    }

    /// Moves on over `length` bytes, counting their lines.
    fn advance(&mut self, length: usize) {
        let text = &self.source[self.at..self.at + length];
        self.line += newlines(text);
        if length > 0 {
            self.line_starting = text.ends_with('\n');
        }
        self.at += length;
    }

    fn run(&mut self) -> Result<(), String> {
        while self.at < self.source.len() {
            let Some((start, text_end, mark_end, sign)) = self.find_start() else {
                let rest = self.rest().to_owned();
                self.push_data(&rest);
                self.at = self.source.len();
                return Ok(());
            };
            let text = &self.source[self.at..text_end];
            let kept = self.strip_before(text, start, sign);
            self.push_data(&text[..kept]);
            self.line += newlines(text);
            let tag_line = self.line;
            let mark = &self.source[text_end..mark_end];
            self.line += newlines(mark);
            self.line_starting = mark.ends_with('\n');
            self.at = mark_end;
            let at_tag = |tok| Token { line: tag_line, tok };
            match start {
                Start::Comment => self.comment()?,
                Start::Raw => self.raw()?,
                Start::LineComment => {
                    let length = self.rest().find('\n').unwrap_or(self.rest().len());
                    self.advance(length);
                }
                Start::Block => {
                    self.tokens.push(at_tag(Tok::BlockBegin));
                    self.tag(start)?;
                }
                Start::LineStatement => {
                    self.tokens.push(at_tag(Tok::BlockBegin));
                    self.tag(start)?;
                }
                Start::Variable => {
                    self.tokens.push(at_tag(Tok::VarBegin));
                    self.tag(start)?;
                }
            }
        }
        Ok(())
    }

    fn push_data(&mut self, text: &str) {
        if !text.is_empty() {
            let text = match self.syntax.newline.as_str() {
                "\n" => text.to_owned(),
                newline => text.replace('\n', newline),
            };
            self.push(Tok::Data(text));
        }
    }

    /// Returns the next place where something starts: what, where the text before it ends, where
    /// the mark ends, and the sign (`-`, `+` or none) in it.
    fn find_start(&self) -> Option<(Start, usize, usize, Option<u8>)> {
        let bytes = self.source.as_bytes();
        (self.at..bytes.len()).filter(|at| self.first_bytes[usize::from(bytes[*at])]).find_map(
            |at| {
                if let Some((end, sign)) = self.raw_at(at) {
                    return Some((Start::Raw, at, end, sign));
                }
                self.starts.iter().find_map(|(start, mark)| {
                    let end = self.mark_at(at, *start, mark)?;
                    let sign = bytes.get(end).copied().filter(|byte| matches!(byte, b'-' | b'+'));
                    Some((*start, at, end + usize::from(sign.is_some()), sign))
                })
            },
        )
    }

    fn mark_at(&self, at: usize, start: Start, mark: &str) -> Option<usize> {
        let bytes = self.source.as_bytes();
        let line_start = at == 0 || bytes[at - 1] == b'\n';
        let blank = |from: usize, set: &[u8]| {
            bytes[from..].iter().take_while(|byte| set.contains(byte)).count()
        };
        let from = match start {
            Start::LineStatement if line_start => at + blank(at, b" \t\x0b"),
            Start::LineComment if line_start || !bytes[at - 1].is_ascii_whitespace() => {
                at + blank(at, b" \t\x0b\x0c")
            }
            Start::LineStatement | Start::LineComment => return None,
            _ => at,
        };
        bytes[from..].starts_with(mark.as_bytes()).then_some(from + mark.len())
    }

    fn raw_at(&self, at: usize) -> Option<(usize, Option<u8>)> {
        let rest = &self.source.as_bytes()[at..];
        let (begin, end) = (&self.syntax.block.0, &self.syntax.block.1);
        if !rest.starts_with(begin.as_bytes()) {
            return None;
        }
        let after = &self.source[at + begin.len()..];
        let sign = after.bytes().next().filter(|byte| matches!(byte, b'-' | b'+'));
        let word =
            after[usize::from(sign.is_some())..].trim_start().strip_prefix("raw")?.trim_start();
        let tail = match word.strip_prefix('-').and_then(|tail| tail.strip_prefix(end.as_str())) {
            Some(tail) => tail.trim_start(),
            None => word.strip_prefix(end.as_str())?,
        };
        Some((self.source.len() - tail.len(), sign))
    }

    /// Returns how much of the text before a tag is kept.
    fn strip_before(&self, text: &str, start: Start, sign: Option<u8>) -> usize {
        if sign == Some(b'-') {
            return text.trim_end().len();
        }
        if sign.is_none() && self.syntax.lstrip_blocks && start != Start::Variable {
            let line = text.rfind('\n').map_or(0, |at| at + 1);
            let tail = &text[line..];
            if (line > 0 || self.line_starting) && !tail.is_empty() && tail.trim().is_empty() {
                return line;
            }
        }
        text.len()
    }

    /// Returns the length of an end mark with what it swallows, if it stands here.
    fn end_mark(&self, at: usize, mark: &str, plus: bool, trims: bool) -> Option<usize> {
        let rest = &self.source[at..];
        if plus && let Some(tail) = rest.strip_prefix('+').and_then(|rest| rest.strip_prefix(mark))
        {
            return Some(rest.len() - tail.len());
        }
        if let Some(tail) = rest.strip_prefix('-').and_then(|rest| rest.strip_prefix(mark)) {
            return Some(rest.len() - tail.trim_start().len());
        }
        let tail = rest.strip_prefix(mark)?;
        let tail = if trims && self.syntax.trim_blocks {
            tail.strip_prefix('\n').unwrap_or(tail)
        } else {
            tail
        };
        Some(rest.len() - tail.len())
    }

    fn comment(&mut self) -> Result<(), String> {
        let mark = self.syntax.comment.1.as_str();
        let found = (self.at..=self.source.len())
            .filter(|at| self.source.is_char_boundary(*at))
            .find_map(|at| self.end_mark(at, mark, true, true).map(|length| at + length - self.at));
        match found {
            Some(length) => self.advance(length),
            None if self.at < self.source.len() => return Err("Missing end of comment tag".into()),
            None => {}
        }
        Ok(())
    }

    fn raw(&mut self) -> Result<(), String> {
        let begin = self.syntax.block.0.as_str();
        let mut from = self.at;
        while let Some(found) = self.source[from..].find(begin) {
            let at = from + found;
            if let Some((length, sign)) = self.endraw_at(at) {
                let text = &self.source[self.at..at];
                let kept = self.strip_before(text, Start::Raw, sign);
                self.push_data(&text[..kept]);
                self.advance(at + length - self.at);
                return Ok(());
            }
            from = at + begin.len().max(1);
        }
        if self.at < self.source.len() {
            return Err("Missing end of raw directive".into());
        }
        Ok(())
    }

    fn endraw_at(&self, at: usize) -> Option<(usize, Option<u8>)> {
        let after = self.source[at..].strip_prefix(self.syntax.block.0.as_str())?;
        let sign = after.bytes().next().filter(|byte| matches!(byte, b'-' | b'+'));
        let word =
            after[usize::from(sign.is_some())..].trim_start().strip_prefix("endraw")?.trim_start();
        let word_at = self.source.len() - word.len();
        let length = self.end_mark(word_at, &self.syntax.block.1, true, true)?;
        Some((word_at + length - at, sign))
    }

    /// Lexes the inside of a tag, up to and including its end mark.
    fn tag(&mut self, start: Start) -> Result<(), String> {
        loop {
            if self.open.is_empty() {
                let end = match start {
                    Start::Variable => {
                        self.end_mark(self.at, &self.syntax.variable.1, false, false)
                    }
                    Start::LineStatement => self.line_statement_end(),
                    _ => self.end_mark(self.at, &self.syntax.block.1, true, true),
                };
                if let Some(length) = end {
                    self.push(if start == Start::Variable { Tok::VarEnd } else { Tok::BlockEnd });
                    self.advance(length);
                    return Ok(());
                }
            }
            if self.at >= self.source.len() {
                return Ok(());
            }
            self.token()?;
        }
    }

    /// A line statement ends with its line, or with the last of the blank lines that follow.
    fn line_statement_end(&self) -> Option<usize> {
        let rest = self.rest();
        let blank = rest.len() - rest.trim_start().len();
        match rest[..blank].rfind('\n') {
            Some(newline) => Some(newline + 1),
            None => (blank == rest.len()).then_some(blank),
        }
    }

    fn token(&mut self) -> Result<(), String> {
        let rest = self.rest();
        let blank = rest.len() - rest.trim_start().len();
        if blank > 0 {
            self.advance(blank);
            return Ok(());
        }
        let bytes = rest.as_bytes();
        let (tok, length) = if let Some(length) = self.float_here() {
            let digits: String = rest[..length].chars().filter(|c| *c != '_').collect();
            (Tok::Float(digits.parse().unwrap_or(f64::INFINITY)), length)
        } else if let Some((value, length)) = integer_here(bytes) {
            (Tok::Int(value), length)
        } else if let Some(length) = name_here(rest) {
            let name = &rest[..length];
            if !is_identifier(name) {
                return Err("Invalid character in identifier".into());
            }
            (Tok::Name(SmolStr::new(name)), length)
        } else if let Some(length) = string_here(bytes) {
            (Tok::Str(unescape(&rest[1..length - 1])?.into()), length)
        } else if let Some(op) = OPERATORS.iter().find(|op| rest.starts_with(**op)) {
            self.balance(op)?;
            (Tok::Op(op), op.len())
        } else {
            let c = rest.chars().next().unwrap_or(' ');
            let at = self.source[..self.at].chars().count();
            return Err(format!("unexpected char {} at {at}", str_repr(&c.to_string())));
        };
        self.push(tok);
        self.advance(length);
        Ok(())
    }

    fn balance(&mut self, op: &'static str) -> Result<(), String> {
        match op {
            "{" => self.open.push("}"),
            "(" => self.open.push(")"),
            "[" => self.open.push("]"),
            "}" | ")" | "]" => match self.open.pop() {
                None => return Err(format!("unexpected '{op}'")),
                Some(expected) if expected != op => {
                    return Err(format!("unexpected '{op}', expected '{expected}'"));
                }
                Some(_) => {}
            },
            _ => {}
        }
        Ok(())
    }

    fn float_here(&self) -> Option<usize> {
        let bytes = self.rest().as_bytes();
        if !bytes.first()?.is_ascii_digit() || self.source[..self.at].ends_with('.') {
            return None;
        }
        let whole = digits(bytes, 0)?;
        let fraction =
            (bytes.get(whole) == Some(&b'.')).then(|| digits(bytes, whole + 1)).flatten();
        let mantissa = fraction.unwrap_or(whole);
        let exponent = matches!(bytes.get(mantissa), Some(b'e' | b'E')).then(|| {
            let sign = matches!(bytes.get(mantissa + 1), Some(b'+' | b'-'));
            digits(bytes, mantissa + 1 + usize::from(sign))
        });
        exponent.flatten().or(fraction)
    }
}

/// Returns the end of a run of digits with single underscores between them.
fn digits(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    if !digit(at) {
        return None;
    }
    loop {
        if digit(at) {
            at += 1;
        } else if bytes.get(at) == Some(&b'_') && digit(at + 1) {
            at += 2;
        } else {
            return Some(at);
        }
    }
}

fn integer_here(bytes: &[u8]) -> Option<(Value, usize)> {
    let radix = match (bytes.first()?, bytes.get(1)) {
        (b'0', Some(b'x' | b'X')) => 16,
        (b'0', Some(b'o' | b'O')) => 8,
        (b'0', Some(b'b' | b'B')) => 2,
        _ => 10,
    };
    let is_digit = |at: usize| bytes.get(at).is_some_and(|b| char::from(*b).is_digit(radix));
    let run = |mut at: usize, zero_only: bool| {
        let fits = |at: usize| is_digit(at) && (!zero_only || bytes[at] == b'0');
        while fits(at) || (bytes.get(at) == Some(&b'_') && fits(at + 1)) {
            at += 1;
        }
        at
    };
    if radix != 10 {
        let end = run(2, false);
        if end > 2 {
            return Some((parse_int(&bytes[2..end], radix), end));
        }
    }
    match bytes[0] {
        b'0' => {
            // Only zeros: `0644` is the number 0 and then the number 644.
            let mut end = 1;
            while bytes.get(end) == Some(&b'0')
                || (bytes.get(end) == Some(&b'_') && bytes.get(end + 1) == Some(&b'0'))
            {
                end += 1;
            }
            Some((Value::Int(0), end))
        }
        b'1'..=b'9' => {
            let end = digits(bytes, 0)?;
            Some((parse_int(&bytes[..end], 10), end))
        }
        _ => None,
    }
}

fn parse_int(digits: &[u8], radix: u32) -> Value {
    let text: String = digits.iter().filter(|b| **b != b'_').map(|b| char::from(*b)).collect();
    i64::from_str_radix(&text, radix).map_or_else(
        |_| Value::from_bigint(BigInt::parse_bytes(text.as_bytes(), radix).unwrap_or_default()),
        Value::Int,
    )
}

fn name_here(rest: &str) -> Option<usize> {
    let length: usize =
        rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').map(char::len_utf8).sum();
    (length > 0).then_some(length)
}

/// Tells what Python's `str.isidentifier` tells.
pub(crate) fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && chars.all(|c| c.is_alphanumeric() || c == '_')
}

fn string_here(bytes: &[u8]) -> Option<usize> {
    let quote = *bytes.first().filter(|byte| matches!(byte, b'\'' | b'"'))?;
    let mut at = 1;
    loop {
        match *bytes.get(at)? {
            b'\\' => {
                // One whole character is escaped.
                at += 2;
                while bytes.get(at).is_some_and(|byte| byte & 0xc0 == 0x80) {
                    at += 1;
                }
            }
            byte if byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
}

fn unescape(text: &str) -> Result<String, String> {
    if !text.contains('\\') {
        return Ok(text.to_owned());
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let Some(c) = after.chars().next() else {
            return Err("\\ at end of string".into());
        };
        rest = &after[c.len_utf8()..];
        let simple = match c {
            '\n' => continue,
            '\\' | '\'' | '"' => c,
            'a' => '\x07',
            'b' => '\x08',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            '0'..='7' => {
                let length =
                    after.bytes().take(3).take_while(|b| (b'0'..=b'7').contains(b)).count();
                rest = &after[length..];
                char::from_u32(u32::from_str_radix(&after[..length], 8).unwrap_or(0))
                    .unwrap_or('\u{fffd}')
            }
            'x' | 'u' | 'U' => {
                let (length, name) = match c {
                    'x' => (2, "\\xXX"),
                    'u' => (4, "\\uXXXX"),
                    _ => (8, "\\UXXXXXXXX"),
                };
                let code = rest
                    .get(..length)
                    .filter(|code| code.bytes().all(|b| b.is_ascii_hexdigit()))
                    .ok_or_else(|| format!("truncated {name} escape"))?;
                rest = &rest[length..];
                let code = u32::from_str_radix(code, 16).unwrap_or(u32::MAX);
                if code > 0x10_ffff {
                    return Err("illegal Unicode character".into());
                }
                // differs: half of a surrogate pair has no place in our strings.
                char::from_u32(code).unwrap_or('\u{fffd}')
            }
            // differs: we carry no table of character names.
            'N' if rest.starts_with('{') => return Err("unknown Unicode character name".into()),
            'N' => return Err("malformed \\N character escape".into()),
            other => {
                out.push('\\');
                other
            }
        };
        out.push(simple);
    }
    out.push_str(rest);
    Ok(out)
}

fn newlines(text: &str) -> u32 {
    u32::try_from(text.bytes().filter(|byte| *byte == b'\n').count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(source: &str) -> Vec<Tok> {
        lex(source, &Syntax::default()).into_iter().map(|token| token.tok).collect()
    }

    #[test]
    fn octal_looking_numbers_are_two_tokens() {
        let toks = kinds("{{ 0644 }}");
        assert_eq!(toks[1..3], [Tok::Int(Value::Int(0)), Tok::Int(Value::Int(644))]);
    }

    #[test]
    fn a_minus_strips_and_counts_the_lines_it_strips() {
        let tokens = lex("a\n\n{%- x -%}\n\nb", &Syntax::default());
        let lines: Vec<u32> = tokens.iter().map(|token| token.line).collect();
        assert_eq!(tokens[0].tok, Tok::Data("a".into()));
        assert_eq!(tokens[4].tok, Tok::Data("b".into()));
        assert_eq!(lines[..5], [1, 3, 3, 3, 5]);
    }

    #[test]
    fn strings_unescape_as_python_does() {
        assert_eq!(unescape(r"a\nb\q\x41\u00e9\101").as_deref(), Ok("a\nb\\qA\u{e9}A"));
        assert!(unescape(r"\x4").is_err());
    }

    #[test]
    fn the_closing_mark_counts_only_outside_brackets() {
        let toks = kinds("{{ {'a': {}} }}");
        assert_eq!(toks.last(), Some(&Tok::Eof));
        assert_eq!(toks[toks.len() - 2], Tok::VarEnd);
    }
}
