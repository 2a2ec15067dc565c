//! Parses a pattern in Python's syntax and writes it in ours.
//!
//! Everything is written out explicitly: literals escaped, `.` and `^` according to the flags in
//! force, classes with their members escaped. So nothing that only one of the dialects knows
//! (`&&` in a class, `{` as a literal) can slip through with another meaning.

use crate::{Error, Flags};

type Result<T> = std::result::Result<T, Error>;

const MAX_DEPTH: usize = 100;
/// Stands for `$` until it is known what kind of text is searched.
const DOLLAR: char = '\u{10fffd}';

pub(crate) struct Parsed {
    out: String,
    pub(crate) groups: usize,
    pub(crate) names: Vec<(String, usize)>,
    /// Needs the backtracking engine.
    pub(crate) fancy: bool,
    /// Has a `$` that may match before a final line break.
    pub(crate) dollar: bool,
}

impl Parsed {
    /// Returns the pattern, for texts that end with a line break or for all others.
    pub(crate) fn text(&self, at_break: bool) -> String {
        if !self.dollar {
            return self.out.clone();
        }
        self.out.replace(DOLLAR, if at_break { r"(?=\n?\z)" } else { r"\z" })
    }
}

pub(crate) fn translate(pattern: &str, flags: Flags) -> Result<Parsed> {
    let mut parser = Parser {
        chars: pattern.chars().collect(),
        at: 0,
        flags,
        depth: 0,
        open: Vec::new(),
        parsed: Parsed {
            out: String::new(),
            groups: 0,
            names: Vec::new(),
            fancy: false,
            dollar: false,
        },
    };
    // Flags for the whole pattern must stand at its start.
    parser.global_flags()?;
    if parser.flags.ignore_case {
        parser.parsed.out.push_str("(?i)");
    }
    parser.alternatives()?;
    if parser.peek() == Some(')') {
        return Err(Error::at("unbalanced parenthesis", parser.at));
    }
    Ok(parser.parsed)
}

struct Parser {
    chars: Vec<char>,
    at: usize,
    flags: Flags,
    depth: usize,
    /// Numbers of groups that are not closed yet.
    open: Vec<usize>,
    parsed: Parsed,
}

impl Parser {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn eat(&mut self, c: char) -> bool {
        let found = self.peek() == Some(c);
        self.at += usize::from(found);
        found
    }

    fn looking_at(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(offset, c)| self.chars.get(self.at + offset) == Some(&c))
    }

    fn push(&mut self, text: &str) {
        self.parsed.out.push_str(text);
    }

    fn literal(&mut self, c: char) {
        push_literal(&mut self.parsed.out, c);
    }

    fn global_flags(&mut self) -> Result<()> {
        while self.looking_at("(?") {
            let from = self.at + 2;
            let length = self.chars[from..].iter().take_while(|c| "aiLmsux".contains(**c)).count();
            if length == 0 || self.chars.get(from + length) != Some(&')') {
                return Ok(());
            }
            for at in from..from + length {
                self.set_flag(self.chars[at], true);
            }
            self.at = from + length + 1;
        }
        Ok(())
    }

    fn set_flag(&mut self, flag: char, on: bool) {
        match flag {
            'i' => self.flags.ignore_case = on,
            'm' => self.flags.multi_line = on,
            's' => self.flags.dot_all = on,
            'x' => self.flags.verbose = on,
            'a' => self.flags.ascii = on,
            _ => {}
        }
    }

    fn alternatives(&mut self) -> Result<()> {
        if self.depth > MAX_DEPTH {
            return Err(Error::Refused("the regular expression is nested too deeply".into()));
        }
        self.depth += 1;
        loop {
            self.sequence()?;
            if !self.eat('|') {
                break;
            }
            self.push("|");
        }
        self.depth -= 1;
        Ok(())
    }

    fn sequence(&mut self) -> Result<()> {
        // Whether something stands before a `*`, and whether it is repeated already.
        let mut can_repeat = false;
        let mut repeated = false;
        let mut start = self.parsed.out.len();
        while let Some(c) = self.peek() {
            if c == '|' || c == ')' {
                return Ok(());
            }
            if self.flags.verbose && self.skip_blank() {
                continue;
            }
            let position = self.at;
            if let Some((low, high)) = self.quantifier()? {
                if !can_repeat {
                    let message = if repeated { "multiple repeat" } else { "nothing to repeat" };
                    return Err(Error::at(message, position));
                }
                self.repeat(start, low, high);
                (can_repeat, repeated) = (false, true);
                continue;
            }
            start = self.parsed.out.len();
            can_repeat = self.item()?;
            repeated = false;
        }
        Ok(())
    }

    fn skip_blank(&mut self) -> bool {
        match self.peek() {
            Some(c) if c.is_whitespace() => {
                self.at += 1;
                true
            }
            Some('#') => {
                while self.peek().is_some_and(|c| c != '\n') {
                    self.at += 1;
                }
                true
            }
            _ => false,
        }
    }

    /// Reads `*`, `+`, `?` or `{m,n}`; anything else in braces is literal.
    fn quantifier(&mut self) -> Result<Option<(u32, Option<u32>)>> {
        let found = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => return self.braces(),
            _ => return Ok(None),
        };
        self.at += 1;
        Ok(Some(found))
    }

    fn braces(&mut self) -> Result<Option<(u32, Option<u32>)>> {
        let from = self.at;
        let Some(length) = self.chars[from..].iter().position(|c| *c == '}') else {
            return Ok(None);
        };
        let inner: String = self.chars[from + 1..from + length].iter().collect();
        let number = |text: &str| -> Option<Option<u32>> {
            if text.is_empty() {
                return Some(None);
            }
            text.bytes()
                .all(|byte| byte.is_ascii_digit())
                .then(|| text.parse().ok())
                .flatten()
                .map(Some)
        };
        let (low, high) = match inner.split_once(',') {
            Some((low, high)) => match (number(low), number(high)) {
                (Some(low), Some(high)) => (low.unwrap_or(0), high),
                _ => return Ok(None),
            },
            None => match number(&inner) {
                Some(Some(exact)) => (exact, Some(exact)),
                _ => return Ok(None),
            },
        };
        if high.is_some_and(|high| high < low) {
            return Err(Error::at("min repeat greater than max repeat", from + 1));
        }
        self.at = from + length + 1;
        Ok(Some((low, high)))
    }

    fn repeat(&mut self, start: usize, low: u32, high: Option<u32>) {
        let item = self.parsed.out.split_off(start);
        let sign = match (low, high) {
            (0, None) => "*".to_owned(),
            (1, None) => "+".to_owned(),
            (0, Some(1)) => "?".to_owned(),
            (low, None) => format!("{{{low},}}"),
            (low, Some(high)) => format!("{{{low},{high}}}"),
        };
        if self.eat('?') {
            self.push(&format!("(?:{item}){sign}?"));
        } else if self.eat('+') {
            self.parsed.fancy = true;
            self.push(&format!("(?>(?:{item}){sign})"));
        } else {
            self.push(&format!("(?:{item}){sign}"));
        }
    }

    /// Translates one item; tells whether it can be repeated.
    fn item(&mut self) -> Result<bool> {
        let position = self.at;
        let Some(c) = self.peek() else { return Ok(false) };
        self.at += 1;
        match c {
            '.' => self.push(if self.flags.dot_all { "(?s:.)" } else { r"[^\n]" }),
            '^' => {
                self.push(if self.flags.multi_line { "(?m:^)" } else { r"\A" });
                return Ok(true);
            }
            '$' => {
                if self.flags.multi_line {
                    self.push("(?m:$)");
                } else {
                    self.parsed.out.push(DOLLAR);
                    self.parsed.dollar = true;
                }
            }
            '(' => return self.group(position),
            '[' => self.class(position)?,
            '\\' => self.escape(position)?,
            c => self.literal(c),
        }
        Ok(true)
    }

    fn group(&mut self, position: usize) -> Result<bool> {
        let unterminated = || Error::at("missing ), unterminated subpattern", position);
        if !self.eat('?') {
            self.parsed.groups += 1;
            let number = self.parsed.groups;
            self.push("(");
            self.open.push(number);
            self.inside(position)?;
            self.open.pop();
            self.push(")");
            return Ok(true);
        }
        let Some(c) = self.peek() else {
            return Err(Error::at("unexpected end of pattern", self.at));
        };
        self.at += 1;
        match c {
            ':' => {
                self.push("(?:");
                self.inside(position)?;
                self.push(")");
            }
            'P' => {
                if self.eat('<') {
                    let (name, at) = self.name('>', position)?;
                    self.parsed.groups += 1;
                    let number = self.parsed.groups;
                    if let Some((_, old)) = self.parsed.names.iter().find(|(own, _)| *own == name) {
                        return Err(Error::at(
                            format!(
                                "redefinition of group name '{name}' as group {number}; was group {old}"
                            ),
                            at,
                        ));
                    }
                    self.parsed.names.push((name, number));
                    self.push("(");
                    self.open.push(number);
                    self.inside(position)?;
                    self.open.pop();
                    self.push(")");
                } else if self.eat('=') {
                    let (name, at) = self.name(')', position)?;
                    let Some((_, number)) = self.parsed.names.iter().find(|(own, _)| *own == name)
                    else {
                        return Err(Error::at(format!("unknown group name '{name}'"), at));
                    };
                    let number = *number;
                    self.back_reference(number, at)?;
                } else {
                    let got: String = self.peek().map(|c| format!("?P{c}")).unwrap_or_default();
                    if got.is_empty() {
                        return Err(Error::at("unexpected end of pattern", self.at));
                    }
                    return Err(Error::at(format!("unknown extension {got}"), position + 1));
                }
            }
            '#' => {
                while !self.eat(')') {
                    if self.peek().is_none() {
                        return Err(Error::at("missing ), unterminated comment", position));
                    }
                    self.at += 1;
                }
                return Ok(false);
            }
            '=' | '!' => {
                self.parsed.fancy = true;
                self.push(if c == '=' { "(?=" } else { "(?!" });
                self.inside(position)?;
                self.push(")");
            }
            '>' => {
                self.parsed.fancy = true;
                self.push("(?>");
                self.inside(position)?;
                self.push(")");
            }
            '<' => {
                let Some(c @ ('=' | '!')) = self.peek() else {
                    let Some(c) = self.peek() else {
                        return Err(Error::at("unexpected end of pattern", self.at));
                    };
                    return Err(Error::at(format!("unknown extension ?<{c}"), position + 1));
                };
                self.at += 1;
                self.parsed.fancy = true;
                self.push(if c == '=' { "(?<=" } else { "(?<!" });
                self.inside(position)?;
                self.push(")");
            }
            '(' => {
                let (name, at) = self.name(')', position)?;
                let number = match name.parse::<usize>() {
                    Ok(number) => number,
                    Err(_) => match self.parsed.names.iter().find(|(own, _)| *own == name) {
                        Some((_, number)) => *number,
                        None => return Err(Error::at(format!("unknown group name '{name}'"), at)),
                    },
                };
                self.parsed.fancy = true;
                self.push(&format!("(?({number})"));
                self.inside(position)?;
                self.push(")");
            }
            _ => return self.flag_group(position),
        }
        let _ = unterminated;
        Ok(true)
    }

    fn inside(&mut self, position: usize) -> Result<()> {
        let flags = self.flags;
        self.alternatives()?;
        self.flags = flags;
        if !self.eat(')') {
            return Err(Error::at("missing ), unterminated subpattern", position));
        }
        Ok(())
    }

    fn name(&mut self, end: char, _group: usize) -> Result<(String, usize)> {
        let from = self.at;
        let Some(length) = self.chars[from..].iter().position(|c| *c == end) else {
            return Err(Error::at(format!("missing {end}, unterminated name"), from));
        };
        let name: String = self.chars[from..from + length].iter().collect();
        if name.is_empty() {
            return Err(Error::at("missing group name", from));
        }
        let fine = name.chars().all(|c| c.is_alphanumeric() || c == '_');
        let digits = name.chars().all(|c| c.is_ascii_digit());
        if !fine || (name.starts_with(|c: char| c.is_ascii_digit()) && !(digits && end == ')')) {
            return Err(Error::at(format!("bad character in group name '{name}'"), from));
        }
        self.at = from + length + 1;
        Ok((name, from))
    }

    /// `(?i)`, `(?i:…)`, `(?-i:…)`.
    fn flag_group(&mut self, position: usize) -> Result<bool> {
        self.at = position + 2;
        let outer = self.flags;
        let mut on = true;
        loop {
            let Some(c) = self.peek() else { return Err(Error::at("missing -, : or )", self.at)) };
            self.at += 1;
            match c {
                'a' | 'i' | 'L' | 'm' | 's' | 'u' | 'x' => self.set_flag(c, on),
                '-' if on => on = false,
                ')' if on => {
                    return Err(Error::at(
                        "global flags not at the start of the expression",
                        position,
                    ));
                }
                ':' => break,
                c => {
                    if self.at == position + 3 {
                        return Err(Error::at(format!("unknown extension ?{c}"), position + 1));
                    }
                    return Err(Error::at("unknown flag", self.at - 1));
                }
            }
        }
        let inner = self.flags;
        self.push(match (inner.ignore_case, outer.ignore_case) {
            (true, false) => "(?i:",
            (false, true) => "(?-i:",
            _ => "(?:",
        });
        self.alternatives()?;
        self.flags = outer;
        if !self.eat(')') {
            return Err(Error::at("missing ), unterminated subpattern", position));
        }
        self.push(")");
        Ok(true)
    }

    fn back_reference(&mut self, number: usize, position: usize) -> Result<()> {
        if number > self.parsed.groups {
            return Err(Error::at(format!("invalid group reference {number}"), position));
        }
        if self.open.contains(&number) {
            return Err(Error::at("cannot refer to an open group", position));
        }
        self.parsed.fancy = true;
        self.push(&format!("(?:\\{number})"));
        Ok(())
    }

    fn escape(&mut self, position: usize) -> Result<()> {
        let Some(c) = self.peek() else {
            return Err(Error::at("bad escape (end of pattern)", position));
        };
        self.at += 1;
        match c {
            'A' => self.push(r"\A"),
            'Z' => self.push(r"\z"),
            'b' | 'B' => {
                let text = if self.flags.ascii { format!("(?-u:\\{c})") } else { format!("\\{c}") };
                // Only `\b` may look at ASCII in text that is UTF-8.
                let text = if c == 'B' { r"\B".to_owned() } else { text };
                self.push(&text);
            }
            'd' | 'D' | 's' | 'S' | 'w' | 'W' => {
                let class = self.class_escape(c);
                self.push(&class);
            }
            '0' => {
                let length =
                    self.chars[self.at..].iter().take(2).take_while(|c| is_octal(**c)).count();
                let c = code(&self.chars[self.at - 1..self.at + length], 8, position)?;
                self.at += length;
                self.literal(c);
            }
            '1'..='9' => {
                let digits: Vec<char> = self.chars[self.at - 1..].iter().take(3).copied().collect();
                if digits.len() == 3 && digits[0] < '4' && digits.iter().all(|c| is_octal(*c)) {
                    self.at += 2;
                    let c = code(&digits, 8, position)?;
                    self.literal(c);
                    return Ok(());
                }
                let mut number = c.to_digit(10).unwrap_or(0) as usize;
                if let Some(next) = self.peek().and_then(|c| c.to_digit(10)) {
                    number = number * 10 + next as usize;
                    self.at += 1;
                }
                self.back_reference(number, position + 1)?;
            }
            _ => {
                let c = self.char_escape(c, position)?;
                self.literal(c);
            }
        }
        Ok(())
    }

    fn class_escape(&self, c: char) -> String {
        if self.flags.ascii {
            return match c {
                'd' => "[0-9]",
                'D' => "[^0-9]",
                's' => r"[ \t\n\r\x0b\x0c]",
                'S' => r"[^ \t\n\r\x0b\x0c]",
                'w' => "[a-zA-Z0-9_]",
                _ => "[^a-zA-Z0-9_]",
            }
            .to_owned();
        }
        match c {
            's' => r"[\s\x1c-\x1f]".to_owned(),
            'S' => r"[^\s\x1c-\x1f]".to_owned(),
            c => format!("\\{c}"),
        }
    }

    /// Reads an escape that stands for one character.
    fn char_escape(&mut self, c: char, position: usize) -> Result<char> {
        let hex = |parser: &mut Self, length: usize| -> Result<char> {
            let digits: Vec<char> =
                parser.chars[parser.at..].iter().take(length).copied().collect();
            if digits.len() < length || !digits.iter().all(char::is_ascii_hexdigit) {
                let shown: String = digits.iter().take_while(|c| c.is_ascii_hexdigit()).collect();
                return Err(Error::at(format!("incomplete escape \\{c}{shown}"), position));
            }
            parser.at += length;
            code(&digits, 16, position)
        };
        Ok(match c {
            'a' => '\x07',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            'x' => hex(self, 2)?,
            'u' => hex(self, 4)?,
            'U' => hex(self, 8)?,
            c if c.is_ascii_alphabetic() => {
                return Err(Error::at(format!("bad escape \\{c}"), position));
            }
            c => c,
        })
    }

    fn class(&mut self, position: usize) -> Result<()> {
        let unterminated = || Error::at("unterminated character set", position);
        self.push("[");
        if self.eat('^') {
            self.push("^");
        }
        let mut first = true;
        loop {
            let Some(c) = self.peek() else { return Err(unterminated()) };
            if c == ']' && !first {
                self.at += 1;
                break;
            }
            first = false;
            let from = self.at;
            let Some(low) = self.class_member(position)? else {
                // A class in the class; it can start no range.
                if self.peek() == Some('-')
                    && !matches!(self.chars.get(self.at + 1), Some(']') | None)
                {
                    let shown: String =
                        self.chars[from..].iter().take(self.at - from + 2).collect();
                    return Err(Error::at(format!("bad character range {shown}"), from));
                }
                continue;
            };
            let is_range = self.peek() == Some('-') && self.chars.get(self.at + 1) != Some(&']');
            if !is_range {
                push_member(&mut self.parsed.out, low);
                continue;
            }
            self.at += 1;
            if self.peek().is_none() {
                return Err(unterminated());
            }
            let mark = self.parsed.out.len();
            let high = self.class_member(position)?;
            let bad = |parser: &Self| {
                let shown: String = parser.chars[from..parser.at].iter().collect();
                Error::at(format!("bad character range {shown}"), from)
            };
            match high {
                Some(high) if high >= low => {
                    push_member(&mut self.parsed.out, low);
                    self.push("-");
                    push_member(&mut self.parsed.out, high);
                }
                Some(_) => return Err(bad(self)),
                None => {
                    self.parsed.out.truncate(mark);
                    return Err(bad(self));
                }
            }
        }
        self.push("]");
        Ok(())
    }

    /// Reads one member of a class. A class escape is written at once, and `None` returned.
    fn class_member(&mut self, position: usize) -> Result<Option<char>> {
        let Some(c) = self.peek() else {
            return Err(Error::at("unterminated character set", position));
        };
        let at = self.at;
        self.at += 1;
        if c != '\\' {
            return Ok(Some(c));
        }
        let Some(c) = self.peek() else {
            return Err(Error::at("bad escape (end of pattern)", at));
        };
        self.at += 1;
        match c {
            'd' | 'D' | 's' | 'S' | 'w' | 'W' => {
                let class = self.class_escape(c);
                self.push(&class);
                Ok(None)
            }
            'b' => Ok(Some('\x08')),
            '0'..='7' => {
                let length =
                    self.chars[self.at..].iter().take(2).take_while(|c| is_octal(**c)).count();
                let c = code(&self.chars[self.at - 1..self.at + length], 8, at)?;
                self.at += length;
                Ok(Some(c))
            }
            '8' | '9' => Err(Error::at(format!("bad escape \\{c}"), at)),
            c => self.char_escape(c, at).map(Some),
        }
    }
}

fn is_octal(c: char) -> bool {
    ('0'..='7').contains(&c)
}

fn code(digits: &[char], radix: u32, position: usize) -> Result<char> {
    let text: String = digits.iter().collect();
    u32::from_str_radix(&text, radix)
        .ok()
        .and_then(char::from_u32)
        .ok_or_else(|| Error::at(format!("bad escape \\{text}"), position))
}

fn push_literal(out: &mut String, c: char) {
    if c == DOLLAR {
        // Our own mark; nobody writes it in earnest.
        out.push_str(r"\x{10FFFD}");
        return;
    }
    if r"\.+*?()|[]{}^$#&-~".contains(c) {
        out.push('\\');
    }
    out.push(c);
}

fn push_member(out: &mut String, c: char) {
    if c == DOLLAR {
        out.push_str(r"\x{10FFFD}");
        return;
    }
    if c.is_ascii_punctuation() {
        out.push('\\');
    }
    out.push(c);
}
