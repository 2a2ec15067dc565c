//! Python's regular expressions, as far as file editing needs them.
//!
//! A pattern is rewritten for the engine below: `\Z`, `$`, `.`, quantifier-like braces, brackets
//! inside brackets, octal escapes, flags and verbose layout mean what they mean in Python.
//!
//! Salt edits files as bytes. [`Re::bytes`] therefore takes the pattern's UTF-8 bytes and the
//! file's bytes each as one character (Latin-1), with ASCII-only classes: exactly what Python's
//! byte patterns do, and no byte of the file is lost.

use std::{borrow::Cow, fmt::Write as _};

/// Python's flag values, as users give them in numbers.
pub const IGNORECASE: u32 = 2;
pub const MULTILINE: u32 = 8;
pub const DOTALL: u32 = 16;
pub const UNICODE: u32 = 32;
pub const VERBOSE: u32 = 64;
pub const ASCII: u32 = 256;

/// The pattern is wrong, or a text needs endless backtracking.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Pattern(String),
    #[error("the pattern needs too many steps on this text")]
    Steps,
    #[error("{0}")]
    Template(String),
}

/// A compiled pattern.
#[derive(Debug)]
pub struct Re(fancy_regex::Regex);

/// A text with bytes for characters.
fn latin(bytes: &[u8]) -> Cow<'_, str> {
    if bytes.is_ascii()
        && let Ok(text) = std::str::from_utf8(bytes)
    {
        return Cow::Borrowed(text);
    }
    Cow::Owned(bytes.iter().map(|&byte| char::from(byte)).collect())
}

fn from_latin(text: &str) -> Vec<u8> {
    text.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect()
}

/// Python's `re.escape`.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if "()[]{}?*+-|^$\\.&~# \t\n\r\x0b\x0c".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

impl Re {
    /// Compiles a pattern for texts.
    pub fn new(pattern: &str, flags: u32) -> Result<Self, Error> {
        let rewritten = Rewriter::new(pattern, flags).run()?;
        // Files are long; the default of a million steps is meant for words.
        fancy_regex::RegexBuilder::new(&rewritten)
            .backtrack_limit(100_000_000)
            .build()
            .map(Self)
            .map_err(|error| Error::Pattern(format!("{error}")))
    }

    /// Compiles a pattern for the bytes of a file, given to the functions named `…_bytes`.
    pub fn bytes(pattern: &str, flags: u32) -> Result<Self, Error> {
        Self::new(&latin(pattern.as_bytes()), (flags | ASCII) & !UNICODE)
    }

    /// `re.search`
    pub fn found_in(&self, text: &str) -> Result<bool, Error> {
        self.0.is_match(text).map_err(|_| Error::Steps)
    }

    /// `re.match`: at the start only.
    pub fn starts(&self, text: &str) -> Result<bool, Error> {
        let first = self.0.find(text).map_err(|_| Error::Steps)?;
        Ok(first.is_some_and(|found| found.start() == 0))
    }

    pub fn found_in_bytes(&self, bytes: &[u8]) -> Result<bool, Error> {
        self.found_in(&latin(bytes))
    }

    /// Returns the groups of the first match, the whole of it first.
    pub fn groups<'t>(&self, text: &'t str) -> Result<Option<Vec<Option<&'t str>>>, Error> {
        let captures = self.0.captures(text).map_err(|_| Error::Steps)?;
        Ok(captures.map(|captures| {
            captures.iter().map(|group| group.map(|group| group.as_str())).collect()
        }))
    }

    /// `re.subn`: replaces the first `count` matches (all if 0); returns how many there were.
    pub fn replace(
        &self,
        text: &str,
        template: &str,
        count: usize,
    ) -> Result<(String, usize), Error> {
        let template = Piece::parse(template, &self.0)?;
        let mut out = String::with_capacity(text.len());
        let (mut at, mut copied, mut done) = (0, 0, 0);
        while at <= text.len() && (count == 0 || done < count) {
            let found = self.0.captures_from_pos(text, at).map_err(|_| Error::Steps)?;
            let Some(captures) = found else { break };
            let Some(whole) = captures.get(0) else { break };
            out.push_str(&text[copied..whole.start()]);
            for piece in &template {
                match piece {
                    Piece::Text(piece) => out.push_str(piece),
                    Piece::Group(group) => {
                        out.push_str(captures.get(*group).map_or("", |group| group.as_str()));
                    }
                }
            }
            done += 1;
            copied = whole.end();
            at = whole.end();
            if whole.start() == whole.end() {
                let step = text[at..].chars().next().map_or(1, char::len_utf8);
                at += step;
            }
        }
        out.push_str(text.get(copied..).unwrap_or_default());
        Ok((out, done))
    }

    /// As [`Re::replace`], for bytes; the template's bytes too.
    pub fn replace_bytes(
        &self,
        bytes: &[u8],
        template: &str,
        count: usize,
    ) -> Result<(Vec<u8>, usize), Error> {
        let (text, done) = self.replace(&latin(bytes), &latin(template.as_bytes()), count)?;
        Ok((from_latin(&text), done))
    }
}

/// A part of a replacement.
enum Piece {
    Text(String),
    Group(usize),
}

impl Piece {
    fn parse(template: &str, regex: &fancy_regex::Regex) -> Result<Vec<Self>, Error> {
        let groups = regex.captures_len();
        let check = |group: usize| {
            if group < groups {
                Ok(Self::Group(group))
            } else {
                Err(Error::Template(format!("invalid group reference {group}")))
            }
        };
        let mut pieces = Vec::new();
        let mut text = String::new();
        let mut chars = template.chars().peekable();
        while let Some(c) = chars.next() {
            if c != '\\' {
                text.push(c);
                continue;
            }
            let Some(next) = chars.next() else {
                return Err(Error::Template("bad escape (end of pattern)".into()));
            };
            let group = match next {
                'g' => {
                    let name: String = match chars.next() {
                        Some('<') => chars.by_ref().take_while(|&c| c != '>').collect(),
                        _ => return Err(Error::Template("missing <".into())),
                    };
                    Some(match name.parse() {
                        Ok(group) => check(group)?,
                        Err(_) => {
                            let group = regex
                                .capture_names()
                                .position(|own| own == Some(name.as_str()))
                                .ok_or_else(|| {
                                    Error::Template(format!("unknown group name '{name}'"))
                                })?;
                            Self::Group(group)
                        }
                    })
                }
                '0' => {
                    let mut code = 0;
                    for _ in 0..2 {
                        if let Some(digit) = chars.peek().and_then(|c| c.to_digit(8)) {
                            code = code * 8 + digit;
                            chars.next();
                        }
                    }
                    text.extend(char::from_u32(code));
                    None
                }
                '1'..='9' => {
                    let mut digits = vec![next];
                    if let Some(second) = chars.next_if(char::is_ascii_digit) {
                        digits.push(second);
                        let octal = digits.iter().all(|c| c.is_digit(8));
                        if octal && let Some(third) = chars.next_if(|c| c.is_digit(8)) {
                            digits.push(third);
                        }
                    }
                    let digits: String = digits.into_iter().collect();
                    if digits.len() == 3 {
                        let code = u32::from_str_radix(&digits, 8).unwrap_or_default();
                        text.extend(char::from_u32(code & 0xff));
                        None
                    } else {
                        Some(check(digits.parse().unwrap_or(usize::MAX))?)
                    }
                }
                'a' => push(&mut text, '\x07'),
                'b' => push(&mut text, '\x08'),
                'f' => push(&mut text, '\x0c'),
                'n' => push(&mut text, '\n'),
                'r' => push(&mut text, '\r'),
                't' => push(&mut text, '\t'),
                'v' => push(&mut text, '\x0b'),
                '\\' => push(&mut text, '\\'),
                letter if letter.is_ascii_alphabetic() => {
                    return Err(Error::Template(format!("bad escape \\{letter}")));
                }
                other => {
                    text.push('\\');
                    push(&mut text, other)
                }
            };
            if let Some(group) = group {
                pieces.push(Self::Text(std::mem::take(&mut text)));
                pieces.push(group);
            }
        }
        pieces.push(Self::Text(text));
        Ok(pieces)
    }
}

fn push(text: &mut String, c: char) -> Option<Piece> {
    text.push(c);
    None
}

/// Rewrites a pattern from Python's syntax.
struct Rewriter {
    chars: Vec<char>,
    at: usize,
    flags: u32,
    out: String,
    /// Something a quantifier can stand behind.
    atom: bool,
}

const WORD: &str = "0-9A-Za-z_";
const SPACE: &str = r" \t\n\r\x0b\x0c";

impl Rewriter {
    fn new(pattern: &str, flags: u32) -> Self {
        Self { chars: pattern.chars().collect(), at: 0, flags, out: String::new(), atom: false }
    }

    fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    fn run(mut self) -> Result<String, Error> {
        self.leading_flags();
        while let Some(&c) = self.chars.get(self.at) {
            self.at += 1;
            self.one(c)?;
        }
        Ok(if self.has(IGNORECASE) { format!("(?i){}", self.out) } else { self.out })
    }

    /// `(?im)` at the start holds for the whole pattern.
    fn leading_flags(&mut self) {
        while let [b'(', b'?', ..] = self.ascii_ahead().as_slice() {
            let letters: String =
                self.chars[self.at + 2..].iter().take_while(|c| c.is_ascii_alphabetic()).collect();
            let end = self.at + 2 + letters.len();
            if letters.is_empty() || letters == "P" || self.chars.get(end) != Some(&')') {
                return;
            }
            for letter in letters.chars() {
                self.flags |= match letter {
                    'i' => IGNORECASE,
                    'm' => MULTILINE,
                    's' => DOTALL,
                    'x' => VERBOSE,
                    'a' => ASCII,
                    _ => 0,
                };
            }
            self.at = end + 1;
        }
    }

    fn ascii_ahead(&self) -> Vec<u8> {
        let ahead = self.chars.get(self.at..).unwrap_or_default();
        ahead.iter().take(2).map(|c| u8::try_from(u32::from(*c)).unwrap_or(0)).collect()
    }

    fn atom(&mut self, text: &str) {
        self.out.push_str(text);
        self.atom = true;
    }

    fn literal(&mut self, c: char) {
        if r"\.+*?()|[]{}^$#&-~ ".contains(c) {
            self.out.push('\\');
        }
        self.out.push(c);
        self.atom = true;
    }

    fn one(&mut self, c: char) -> Result<(), Error> {
        match c {
            '\\' => self.escape(false)?,
            '[' => self.class()?,
            '.' if self.has(DOTALL) => self.atom("(?s:.)"),
            '.' => self.atom(r"[^\n]"),
            '^' => {
                self.out.push_str(if self.has(MULTILINE) { "(?m:^)" } else { r"\A" });
                self.atom = false;
            }
            '$' => {
                self.out.push_str(if self.has(MULTILINE) { "(?m:$)" } else { r"(?=\n?\z)" });
                self.atom = false;
            }
            '(' => self.group()?,
            ')' => self.atom(")"),
            '|' => {
                self.out.push('|');
                self.atom = false;
            }
            '*' | '+' | '?' => self.out.push(c),
            '{' => self.braces(),
            '}' | ']' => self.literal(c),
            '#' if self.has(VERBOSE) => {
                while self.chars.get(self.at).is_some_and(|&c| c != '\n') {
                    self.at += 1;
                }
            }
            c if self.has(VERBOSE) && c.is_whitespace() => {}
            c => self.literal(c),
        }
        Ok(())
    }

    /// `{2,3}` is a quantifier only behind an atom and only in these forms.
    fn braces(&mut self) {
        let inner: String = self.chars[self.at..].iter().take_while(|&&c| c != '}').collect();
        let closed = self.chars.get(self.at + inner.chars().count()) == Some(&'}');
        let (low, high) = match inner.split_once(',') {
            Some((low, high)) => (low, Some(high)),
            None => (inner.as_str(), None),
        };
        let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
        let is_quantifier = closed
            && self.atom
            && digits(low)
            && high.is_none_or(digits)
            && !(low.is_empty() && high.is_none());
        if !is_quantifier {
            self.literal('{');
            return;
        }
        self.at += inner.chars().count() + 1;
        let low = if low.is_empty() { "0" } else { low };
        let _ = match high {
            Some(high) => write!(self.out, "{{{low},{high}}}"),
            None => write!(self.out, "{{{low}}}"),
        };
    }

    fn group(&mut self) -> Result<(), Error> {
        self.atom = false;
        if self.chars.get(self.at) != Some(&'?') {
            self.out.push('(');
            return Ok(());
        }
        let ahead: String = self.chars[self.at..].iter().take(4).collect();
        if ahead.starts_with("?#") {
            while self.chars.get(self.at).is_some_and(|&c| c != ')') {
                self.at += 1;
            }
            self.at += 1;
        } else if ahead.starts_with("?P=") {
            self.at += 3;
            let name: String = self.chars[self.at..].iter().take_while(|&&c| c != ')').collect();
            self.at += name.chars().count() + 1;
            self.atom(&format!(r"\k<{name}>"));
        } else if ahead.starts_with("?P<") {
            self.at += 3;
            self.out.push_str("(?P<");
        } else if ahead.starts_with("?P") {
            return Err(Error::Pattern(format!("unknown extension {ahead}")));
        } else {
            // Lookaround, non-capturing, atomic, conditional, scoped flags: the same syntax, but
            // for flags that mean nothing here.
            self.out.push('(');
            self.out.push('?');
            self.at += 1;
            while let Some(&c) = self.chars.get(self.at) {
                if matches!(c, 'a' | 'L' | 'u') {
                    self.at += 1;
                } else if matches!(c, 'i' | 'm' | 's' | 'x' | '-') {
                    self.out.push(c);
                    self.at += 1;
                } else {
                    break;
                }
            }
            while let Some(&c) = self.chars.get(self.at) {
                if !matches!(c, ':' | '=' | '!' | '<' | '>') {
                    break;
                }
                self.out.push(c);
                self.at += 1;
            }
        }
        Ok(())
    }

    fn class(&mut self) -> Result<(), Error> {
        self.out.push('[');
        if self.chars.get(self.at) == Some(&'^') {
            self.out.push('^');
            self.at += 1;
        }
        let start = self.at;
        loop {
            let Some(&c) = self.chars.get(self.at) else {
                return Err(Error::Pattern("unterminated character set".into()));
            };
            self.at += 1;
            match c {
                ']' if self.at - 1 > start => break,
                '\\' => self.escape(true)?,
                '-' => {
                    let edge = self.at - 1 == start || self.chars.get(self.at) == Some(&']');
                    self.out.push_str(if edge { r"\-" } else { "-" });
                }
                '[' | ']' | '&' | '~' | '^' | '#' | ' ' => {
                    self.out.push('\\');
                    self.out.push(c);
                }
                c => self.out.push(c),
            }
        }
        self.out.push(']');
        self.atom = true;
        Ok(())
    }

    fn escape(&mut self, in_class: bool) -> Result<(), Error> {
        let Some(&c) = self.chars.get(self.at) else {
            return Err(Error::Pattern("bad escape (end of pattern)".into()));
        };
        self.at += 1;
        let ascii = self.has(ASCII);
        let set = |members: &str, negated: bool| match (in_class, negated) {
            (true, false) => members.to_owned(),
            (_, true) => format!("[^{members}]"),
            (false, false) => format!("[{members}]"),
        };
        match c {
            'A' if !in_class => {
                self.out.push_str(r"\A");
                self.atom = false;
            }
            'Z' if !in_class => {
                self.out.push_str(r"\z");
                self.atom = false;
            }
            'b' if in_class => self.out.push_str(r"\x08"),
            'b' | 'B' if ascii => {
                let (w, not) = (format!("[{WORD}]"), c == 'B');
                self.out.push_str(&if not {
                    format!("(?:(?<={w})(?={w})|(?<!{w})(?!{w}))")
                } else {
                    format!("(?:(?<={w})(?!{w})|(?<!{w})(?={w}))")
                });
            }
            'b' | 'B' => {
                self.out.push('\\');
                self.out.push(c);
            }
            'd' if ascii => self.atom(&set("0-9", false)),
            'D' if ascii => self.atom(&set("0-9", true)),
            'w' if ascii => self.atom(&set(WORD, false)),
            'W' if ascii => self.atom(&set(WORD, true)),
            's' if ascii => self.atom(&set(SPACE, false)),
            'S' if ascii => self.atom(&set(SPACE, true)),
            'd' | 'D' | 'w' | 'W' | 's' | 'S' => {
                self.out.push('\\');
                self.out.push(c);
                self.atom = true;
            }
            'a' => self.atom(r"\x07"),
            'f' | 'n' | 'r' | 't' | 'v' => {
                self.out.push('\\');
                self.out.push(c);
                self.atom = true;
            }
            'x' | 'u' | 'U' => {
                let length = match c {
                    'x' => 2,
                    'u' => 4,
                    _ => 8,
                };
                let digits: String = self.chars[self.at..].iter().take(length).collect();
                let code = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                match code {
                    Some(_) if digits.chars().count() == length => {
                        self.at += length;
                        self.atom(&format!(r"\x{{{digits}}}"));
                    }
                    _ => {
                        return Err(Error::Pattern(format!("incomplete escape \\{c}{digits}")));
                    }
                }
            }
            '0'..='9' => {
                let mut digits = c.to_string();
                while digits.len() < 3
                    && let Some(next) = self.chars.get(self.at).filter(|c| c.is_ascii_digit())
                {
                    digits.push(*next);
                    self.at += 1;
                }
                let octal = digits.chars().all(|c| c.is_digit(8));
                if in_class || c == '0' || (digits.len() == 3 && octal) {
                    let code = u32::from_str_radix(&digits, 8).unwrap_or_default();
                    self.atom(&format!(r"\x{{{code:x}}}"));
                } else {
                    self.at -= digits.len().saturating_sub(2);
                    digits.truncate(2);
                    // A literal digit behind the reference must not become part of it.
                    self.atom(&format!(r"(?:\{digits})"));
                }
            }
            c if c.is_ascii_alphabetic() => {
                return Err(Error::Pattern(format!("bad escape \\{c}")));
            }
            c if in_class => {
                self.out.push('\\');
                self.out.push(c);
            }
            c => self.literal(c),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sub(pattern: &str, flags: u32, template: &str, text: &str) -> String {
        let re = Re::bytes(pattern, flags).unwrap_or_else(|error| panic!("{pattern}: {error}"));
        let (out, _) = re.replace_bytes(text.as_bytes(), template, 0).expect("replaced");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn replaces_as_python_does() {
        assert_eq!(sub("x*", 0, "-", "abxd"), "-a-b--d-");
        assert_eq!(sub("^a$", MULTILINE, "b", "a\naa\na"), "b\naa\nb");
        assert_eq!(sub("a$", 0, "b", "a\na\n"), "a\nb\n");
        assert_eq!(sub(r"(\w+)=(\w+)", 0, r"\2=\1", "k=v"), "v=k");
        assert_eq!(sub(r"(?P<n>a+)", 0, r"<\g<n>>\g<0>", "aa"), "<aa>aa");
        assert_eq!(sub(r"é", 0, "e", "né"), "ne");
        assert_eq!(sub(r"^.{3}$", 0, "e", "né"), "e", "bytes, not characters");
        assert_eq!(sub(r"[[:space:]]", 0, "_", "a:]b"), "a_b");
        assert_eq!(sub(r"a{,2}b", 0, "_", "aab"), "_");
        assert_eq!(sub(r"{{ x }}", 0, "_", "{{ x }}"), "_");
        assert_eq!(sub(r"^#?\s*(Port) .*", MULTILINE, r"\1 22", "# Port 1\n"), "Port 22\n");
        assert_eq!(sub(r"\Ax|y\Z", 0, "_", "xy"), "__");
        assert_eq!(sub(r"(?i)ABC", 0, "_", "abc"), "_");
        assert_eq!(sub(r"(?x) a b # c", 0, "_", "ab"), "_");
        assert_eq!(sub(r"\bfoo\b", 0, "_", "foo foobar"), "_ foobar");
        assert_eq!(sub(r"[^\w-]", 0, "_", "a-b c"), "a-b_c");
        assert_eq!(sub(r"[\w.-]+@[a&&b]", 0, "_", "x.y-z@&"), "_");
        assert_eq!(sub("a.b", DOTALL, "_", "a\nb"), "_");
        assert_eq!(sub("a.b", 0, "_", "a\nb"), "a\nb");
        assert_eq!(sub(r"(a)\1", 0, r"\\1", "aa"), r"\1");
        assert_eq!(sub(r"\.\/\-\'", 0, "_", "./-'"), "_");
    }

    #[test]
    fn count_and_anchors() {
        let re = Re::bytes("a", 0).unwrap();
        assert_eq!(re.replace_bytes(b"aaa", "b", 2).unwrap(), (b"bba".to_vec(), 2));
        assert!(Re::new("b", 0).unwrap().starts("ab").is_ok_and(|found| !found));
        assert!(Re::new("(", 0).is_err());
    }

    #[test]
    fn escapes() {
        assert_eq!(escape("a.b*c d"), r"a\.b\*c\ d");
        let re = Re::new(&escape("a.b*[c]-{d} #&~"), 0).unwrap();
        assert!(re.found_in("a.b*[c]-{d} #&~").unwrap());
    }
}
