//! Text → tokens.
//!
//! The grammar of YAML hides in one question: does a `:` follow this scalar on the same line? Until
//! that is known, the tokens wait in a queue, because a `Key` and perhaps the start of a mapping
//! have to go before them. [`Scanner`] keeps such *simple keys*, one per flow level.
//!
//! We follow libyaml's scanner in what is accepted and in the words of its errors, since that is what
//! genuine Salt reads with. It differs in how: scalars are slices of the text wherever the text
//! is the value, and columns are computed from positions.

use std::{borrow::Cow, collections::VecDeque};

use super::{Error, ErrorKind, Mark};

pub(super) struct Token<'a> {
    pub(super) kind: Kind<'a>,
    pub(super) start: Mark,
    pub(super) end: Mark,
}

pub(super) enum Kind<'a> {
    StreamEnd,
    VersionDirective {
        major: u32,
        minor: u32,
    },
    /// The suffix is the prefix that the handle stands for.
    TagDirective(Box<TagName<'a>>),
    DocumentStart,
    DocumentEnd,
    BlockSequenceStart,
    BlockMappingStart,
    BlockEnd,
    FlowSequenceStart,
    FlowSequenceEnd,
    FlowMappingStart,
    FlowMappingEnd,
    BlockEntry,
    FlowEntry,
    Key,
    Value,
    Alias(&'a str),
    Anchor(&'a str),
    Tag(Box<TagName<'a>>),
    Scalar {
        value: Cow<'a, str>,
        plain: bool,
    },
}

/// A tag as written; boxed in tokens, which are moved about a lot.
#[derive(Default)]
pub(super) struct TagName<'a> {
    /// Empty for a verbatim tag.
    pub(super) handle: Cow<'a, str>,
    pub(super) suffix: Cow<'a, str>,
}

impl<'a> TagName<'a> {
    fn boxed(handle: &'a str, suffix: Cow<'a, str>) -> Box<Self> {
        Box::new(Self { handle: Cow::Borrowed(handle), suffix })
    }
}

/// A place where a key may have begun.
#[derive(Clone, Copy, Default)]
struct SimpleKey {
    possible: bool,
    /// In block context at the indentation, nothing but a key can stand.
    required: bool,
    token_number: usize,
    mark: Mark,
}

pub(super) struct Scanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    pos: usize,
    line: u32,
    /// Where the line begins, and how many bytes since then are not the first of a character.
    line_start: usize,
    wide: usize,
    tokens: VecDeque<Token<'a>>,
    tokens_parsed: usize,
    flow_level: usize,
    /// The column of the current block; -1 before the first.
    indent: i64,
    indents: Vec<i64>,
    simple_key_allowed: bool,
    /// One per flow level, the first for the block context.
    simple_keys: Vec<SimpleKey>,
    /// Whether the first token may be taken.
    available: bool,
    ended: bool,
}

/// Bytes that end a run of ordinary characters in a plain scalar.
static PLAIN_STOP: [bool; 256] = {
    let mut table = [false; 256];
    let stops = b" \t\r\n:,[]{}\xc2\xe2";
    let mut index = 0;
    while index < stops.len() {
        table[stops[index] as usize] = true;
        index += 1;
    }
    table
};

fn is_alpha(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        // A byte order mark before everything is not part of the text, not even of its columns.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        Self {
            text,
            bytes: text.as_bytes(),
            pos: 0,
            line: 0,
            line_start: 0,
            wide: 0,
            tokens: VecDeque::with_capacity(32),
            tokens_parsed: 0,
            flow_level: 0,
            indent: -1,
            indents: Vec::with_capacity(16),
            simple_key_allowed: true,
            simple_keys: vec![SimpleKey::default()],
            available: false,
            ended: false,
        }
    }

    /// Returns the next token without taking it.
    pub(super) fn peek(&mut self) -> Result<&mut Token<'a>, Error> {
        while !self.available && self.needs_more()? && !self.ended {
            self.fetch()?;
        }
        self.available = true;
        if self.tokens.is_empty() {
            // Beyond the end there is only the end.
            let mark = self.mark();
            self.tokens.push_back(Token { kind: Kind::StreamEnd, start: mark, end: mark });
        }
        Ok(&mut self.tokens[0])
    }

    /// Takes the token that was peeked at.
    pub(super) fn skip(&mut self) {
        self.tokens.pop_front();
        self.tokens_parsed += 1;
        self.available = false;
    }

    fn needs_more(&mut self) -> Result<bool, Error> {
        if self.tokens.is_empty() {
            return Ok(true);
        }
        if self.simple_keys.iter().all(|key| !key.possible) {
            return Ok(false);
        }
        self.stale_simple_keys()?;
        let head = self.tokens_parsed;
        Ok(self.simple_keys.iter().any(|key| key.possible && key.token_number == head))
    }

    // ---- positions

    fn column(&self) -> usize {
        self.pos - self.line_start - self.wide
    }

    fn mark(&self) -> Mark {
        Mark { line: self.line, column: self.column() as u32 }
    }

    fn error<T>(
        &self,
        context: &'static str,
        start: Mark,
        problem: &'static str,
    ) -> Result<T, Error> {
        let context = (!context.is_empty()).then_some((context, start));
        Err(Error::new(ErrorKind::Scanner, context, problem, self.mark()))
    }

    /// Returns the byte at a distance; 0 beyond the end, which no text contains.
    fn at(&self, distance: usize) -> u8 {
        self.bytes.get(self.pos + distance).copied().unwrap_or(0)
    }

    fn is_end(&self) -> bool {
        self.pos >= self.bytes.len()
    }

    /// Returns the length of the line break at a distance; 0 when there is none.
    fn break_len(&self, distance: usize) -> usize {
        match self.at(distance) {
            b'\n' => 1,
            b'\r' if self.at(distance + 1) == b'\n' => 2,
            b'\r' => 1,
            0xc2 if self.at(distance + 1) == 0x85 => 2,
            0xe2 if self.at(distance + 1) == 0x80
                && matches!(self.at(distance + 2), 0xa8 | 0xa9) =>
            {
                3
            }
            _ => 0,
        }
    }

    fn is_break(&self) -> bool {
        self.break_len(0) > 0
    }

    fn is_blank(&self) -> bool {
        matches!(self.at(0), b' ' | b'\t')
    }

    fn is_blankz(&self, distance: usize) -> bool {
        matches!(self.at(distance), b' ' | b'\t' | 0) || self.break_len(distance) > 0
    }

    fn is_breakz(&self) -> bool {
        self.is_end() || self.is_break()
    }

    /// Passes one character.
    fn advance(&mut self) {
        let width = match self.at(0) {
            0..0x80 => 1,
            0x80..0xe0 => 2,
            0xe0..0xf0 => 3,
            0xf0.. => 4,
        };
        self.pos += width;
        self.wide += width - 1;
    }

    /// Passes ASCII characters.
    fn advance_by(&mut self, count: usize) {
        self.pos += count;
    }

    /// Passes everything up to a position on this line.
    fn advance_to(&mut self, pos: usize) {
        let passed = &self.bytes[self.pos..pos];
        if !passed.is_ascii() {
            self.wide += passed.iter().filter(|byte| (0x80..0xc0).contains(*byte)).count();
        }
        self.pos = pos;
    }

    fn advance_break(&mut self) {
        self.pos += self.break_len(0);
        self.line += 1;
        self.line_start = self.pos;
        self.wide = 0;
    }

    /// Passes a line break and adds what it stands for.
    fn read_break(&mut self, into: &mut String) {
        match self.break_len(0) {
            0 => return,
            3 => into.push_str(&self.text[self.pos..self.pos + 3]),
            _ => into.push('\n'),
        }
        self.advance_break();
    }

    fn skip_blanks(&mut self) {
        while self.is_blank() {
            self.pos += 1;
        }
    }

    fn skip_comment(&mut self) {
        if self.at(0) == b'#' {
            self.advance_to(self.end_of_line());
        }
    }

    /// Returns where the line's break begins.
    fn end_of_line(&self) -> usize {
        let mut pos = self.pos;
        while let Some(&byte) = self.bytes.get(pos) {
            let ends = match byte {
                b'\n' | b'\r' => true,
                0xc2 | 0xe2 => self.break_len(pos - self.pos) > 0,
                _ => false,
            };
            if ends {
                break;
            }
            pos += 1;
        }
        pos
    }

    fn push(&mut self, kind: Kind<'a>, start: Mark) {
        let end = self.mark();
        self.tokens.push_back(Token { kind, start, end });
    }

    // ---- simple keys and indentation

    /// Forgets keys whose line is over or that have become too long.
    fn stale_simple_keys(&mut self) -> Result<(), Error> {
        let now = self.mark();
        for key in &mut self.simple_keys {
            let stale = key.mark.line < now.line || key.mark.column + 1024 < now.column;
            if key.possible && stale {
                if key.required {
                    let (mark, problem) = (key.mark, "could not find expected ':'");
                    return self.error("while scanning a simple key", mark, problem);
                }
                key.possible = false;
            }
        }
        Ok(())
    }

    fn save_simple_key(&mut self) -> Result<(), Error> {
        if self.simple_key_allowed {
            let key = SimpleKey {
                possible: true,
                required: self.flow_level == 0 && self.indent == self.column() as i64,
                token_number: self.tokens_parsed + self.tokens.len(),
                mark: self.mark(),
            };
            self.remove_simple_key()?;
            *self.simple_key() = key;
        }
        Ok(())
    }

    fn remove_simple_key(&mut self) -> Result<(), Error> {
        let key = *self.simple_key();
        if key.possible && key.required {
            let problem = "could not find expected ':'";
            return self.error("while scanning a simple key", key.mark, problem);
        }
        self.simple_key().possible = false;
        Ok(())
    }

    fn simple_key(&mut self) -> &mut SimpleKey {
        self.simple_keys.last_mut().expect("the block context has a key of its own")
    }

    /// Opens a block at the column when it is deeper than the current one; the token goes to its
    /// place in the queue.
    fn roll_indent(&mut self, column: u32, place: Option<usize>, kind: Kind<'a>, mark: Mark) {
        let column = i64::from(column);
        if self.flow_level == 0 && self.indent < column {
            self.indents.push(self.indent);
            self.indent = column;
            let token = Token { kind, start: mark, end: mark };
            match place {
                None => self.tokens.push_back(token),
                Some(place) => self.insert(place, token),
            }
        }
    }

    /// Puts a token before the one with this number.
    fn insert(&mut self, number: usize, token: Token<'a>) {
        let index = number.saturating_sub(self.tokens_parsed).min(self.tokens.len());
        self.tokens.insert(index, token);
    }

    fn unroll_indent(&mut self, column: i64) {
        if self.flow_level > 0 {
            return;
        }
        while self.indent > column {
            let mark = self.mark();
            self.push(Kind::BlockEnd, mark);
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }

    // ---- tokens

    fn fetch(&mut self) -> Result<(), Error> {
        self.scan_to_next_token();
        self.stale_simple_keys()?;
        let column = self.column();
        self.unroll_indent(column as i64);
        if self.is_end() {
            return self.fetch_stream_end();
        }
        let byte = self.at(0);
        if column == 0 {
            if byte == b'%' {
                return self.fetch_directive();
            }
            if let Some(kind) = self.document_indicator() {
                return self.fetch_document_indicator(kind);
            }
        }
        let flow = self.flow_level > 0;
        match byte {
            b'[' => self.fetch_flow_start(Kind::FlowSequenceStart),
            b'{' => self.fetch_flow_start(Kind::FlowMappingStart),
            b']' => self.fetch_flow_end(Kind::FlowSequenceEnd),
            b'}' => self.fetch_flow_end(Kind::FlowMappingEnd),
            b',' => self.fetch_flow_entry(),
            b'-' if self.is_blankz(1) => self.fetch_block_entry(),
            b'?' if flow || self.is_blankz(1) => self.fetch_key(),
            b':' if flow || self.is_blankz(1) => self.fetch_value(),
            b'*' => self.fetch_anchor("while scanning an alias", Kind::Alias),
            b'&' => self.fetch_anchor("while scanning an anchor", Kind::Anchor),
            b'!' => self.fetch_tag(),
            b'|' if !flow => self.fetch_block_scalar(true),
            b'>' if !flow => self.fetch_block_scalar(false),
            b'\'' => self.fetch_quoted(true),
            b'"' => self.fetch_quoted(false),
            b'#' | b'|' | b'>' | b'%' | b'@' | b'`' | b'\t' => {
                let mark = self.mark();
                let problem = "found character that cannot start any token";
                self.error("while scanning for the next token", mark, problem)
            }
            _ => self.fetch_plain(),
        }
    }

    fn document_indicator(&self) -> Option<Kind<'a>> {
        let kind = match self.bytes.get(self.pos..self.pos + 3)? {
            b"---" => Kind::DocumentStart,
            b"..." => Kind::DocumentEnd,
            _ => return None,
        };
        self.is_blankz(3).then_some(kind)
    }

    fn scan_to_next_token(&mut self) {
        loop {
            if self.at(0) == 0xef
                && self.column() == 0
                && self.text[self.pos..].starts_with('\u{feff}')
            {
                self.advance();
            }
            let tabs = self.flow_level > 0 || !self.simple_key_allowed;
            while self.at(0) == b' ' || tabs && self.at(0) == b'\t' {
                self.pos += 1;
            }
            self.skip_comment();
            if !self.is_break() {
                return;
            }
            self.advance_break();
            if self.flow_level == 0 {
                self.simple_key_allowed = true;
            }
        }
    }

    fn fetch_stream_end(&mut self) -> Result<(), Error> {
        // An unfinished line counts as a line.
        if self.column() > 0 {
            self.line += 1;
            self.line_start = self.pos;
            self.wide = 0;
        }
        self.unroll_indent(-1);
        self.remove_simple_key()?;
        self.simple_key_allowed = false;
        let mark = self.mark();
        self.push(Kind::StreamEnd, mark);
        self.ended = true;
        Ok(())
    }

    fn fetch_directive(&mut self) -> Result<(), Error> {
        self.unroll_indent(-1);
        self.remove_simple_key()?;
        self.simple_key_allowed = false;
        let token = self.scan_directive()?;
        self.tokens.push_back(token);
        Ok(())
    }

    fn fetch_document_indicator(&mut self, kind: Kind<'a>) -> Result<(), Error> {
        self.unroll_indent(-1);
        self.remove_simple_key()?;
        self.simple_key_allowed = false;
        self.fetch_indicator(kind, 3)
    }

    fn fetch_indicator(&mut self, kind: Kind<'a>, len: usize) -> Result<(), Error> {
        let start = self.mark();
        self.advance_by(len);
        self.push(kind, start);
        Ok(())
    }

    fn fetch_flow_start(&mut self, kind: Kind<'a>) -> Result<(), Error> {
        self.save_simple_key()?;
        self.simple_keys.push(SimpleKey::default());
        self.flow_level += 1;
        self.simple_key_allowed = true;
        self.fetch_indicator(kind, 1)
    }

    fn fetch_flow_end(&mut self, kind: Kind<'a>) -> Result<(), Error> {
        self.remove_simple_key()?;
        if self.flow_level > 0 {
            self.flow_level -= 1;
            self.simple_keys.pop();
        }
        self.simple_key_allowed = false;
        self.fetch_indicator(kind, 1)
    }

    fn fetch_flow_entry(&mut self) -> Result<(), Error> {
        self.remove_simple_key()?;
        self.simple_key_allowed = true;
        self.fetch_indicator(Kind::FlowEntry, 1)
    }

    fn fetch_block_entry(&mut self) -> Result<(), Error> {
        // In flow context it is wrong too, but the parser says so.
        self.open_block(
            Kind::BlockSequenceStart,
            "block sequence entries are not allowed in this context",
        )?;
        self.remove_simple_key()?;
        self.simple_key_allowed = true;
        self.fetch_indicator(Kind::BlockEntry, 1)
    }

    fn open_block(&mut self, kind: Kind<'a>, problem: &'static str) -> Result<(), Error> {
        let mark = self.mark();
        if self.flow_level == 0 {
            if !self.simple_key_allowed {
                return self.error("", mark, problem);
            }
            self.roll_indent(mark.column, None, kind, mark);
        }
        Ok(())
    }

    fn fetch_key(&mut self) -> Result<(), Error> {
        let problem = "mapping keys are not allowed in this context";
        self.open_block(Kind::BlockMappingStart, problem)?;
        self.remove_simple_key()?;
        self.simple_key_allowed = self.flow_level == 0;
        self.fetch_indicator(Kind::Key, 1)
    }

    fn fetch_value(&mut self) -> Result<(), Error> {
        let key = *self.simple_key();
        if key.possible {
            self.simple_key().possible = false;
            let token = Token { kind: Kind::Key, start: key.mark, end: key.mark };
            self.insert(key.token_number, token);
            let place = Some(key.token_number);
            self.roll_indent(key.mark.column, place, Kind::BlockMappingStart, key.mark);
            self.simple_key_allowed = false;
        } else {
            let problem = "mapping values are not allowed in this context";
            self.open_block(Kind::BlockMappingStart, problem)?;
            self.simple_key_allowed = self.flow_level == 0;
        }
        self.fetch_indicator(Kind::Value, 1)
    }

    fn fetch_anchor(
        &mut self,
        context: &'static str,
        kind: impl Fn(&'a str) -> Kind<'a>,
    ) -> Result<(), Error> {
        self.save_simple_key()?;
        self.simple_key_allowed = false;
        let start = self.mark();
        self.advance_by(1);
        let name = self.scan_alpha();
        let ends = self.is_blankz(0)
            || matches!(self.at(0), b'?' | b':' | b',' | b']' | b'}' | b'%' | b'@' | b'`');
        if name.is_empty() || !ends {
            let problem = "did not find expected alphabetic or numeric character";
            return self.error(context, start, problem);
        }
        self.push(kind(name), start);
        Ok(())
    }

    fn scan_alpha(&mut self) -> &'a str {
        let start = self.pos;
        while is_alpha(self.at(0)) {
            self.pos += 1;
        }
        &self.text[start..self.pos]
    }

    // ---- directives and tags

    fn scan_directive(&mut self) -> Result<Token<'a>, Error> {
        const CONTEXT: &str = "while scanning a directive";
        let start = self.mark();
        self.advance_by(1);
        let name = self.scan_alpha();
        if name.is_empty() {
            return self.error(CONTEXT, start, "could not find expected directive name");
        }
        if !self.is_blankz(0) {
            return self.error(CONTEXT, start, "found unexpected non-alphabetical character");
        }
        let kind = match name {
            "YAML" => {
                const CONTEXT: &str = "while scanning a %YAML directive";
                self.skip_blanks();
                let major = self.scan_version_number(start)?;
                if self.at(0) != b'.' {
                    let problem = "did not find expected digit or '.' character";
                    return self.error(CONTEXT, start, problem);
                }
                self.advance_by(1);
                Kind::VersionDirective { major, minor: self.scan_version_number(start)? }
            }
            "TAG" => self.scan_tag_directive(start)?,
            _ => return self.error(CONTEXT, start, "found unknown directive name"),
        };
        let end = self.mark();
        self.skip_blanks();
        self.skip_comment();
        if !self.is_breakz() {
            return self.error(CONTEXT, start, "did not find expected comment or line break");
        }
        if self.is_break() {
            self.advance_break();
        }
        Ok(Token { kind, start, end })
    }

    fn scan_version_number(&mut self, start: Mark) -> Result<u32, Error> {
        const CONTEXT: &str = "while scanning a %YAML directive";
        let (mut value, mut len) = (0, 0);
        while self.at(0).is_ascii_digit() {
            len += 1;
            if len > 9 {
                return self.error(CONTEXT, start, "found extremely long version number");
            }
            value = value * 10 + u32::from(self.at(0) - b'0');
            self.advance_by(1);
        }
        if len == 0 {
            return self.error(CONTEXT, start, "did not find expected version number");
        }
        Ok(value)
    }

    fn scan_tag_directive(&mut self, start: Mark) -> Result<Kind<'a>, Error> {
        const CONTEXT: &str = "while scanning a %TAG directive";
        self.skip_blanks();
        let handle = self.scan_tag_handle(true, start)?;
        if !self.is_blank() {
            return self.error(CONTEXT, start, "did not find expected whitespace");
        }
        self.skip_blanks();
        let prefix = self.scan_tag_uri(true, true, "", start)?;
        if !self.is_blankz(0) {
            return self.error(CONTEXT, start, "did not find expected whitespace or line break");
        }
        Ok(Kind::TagDirective(TagName::boxed(handle, prefix)))
    }

    fn fetch_tag(&mut self) -> Result<(), Error> {
        const CONTEXT: &str = "while scanning a tag";
        self.save_simple_key()?;
        self.simple_key_allowed = false;
        let start = self.mark();
        let kind = if self.at(1) == b'<' {
            self.advance_by(2);
            let suffix = self.scan_tag_uri(true, false, "", start)?;
            if self.at(0) != b'>' {
                return self.error(CONTEXT, start, "did not find the expected '>'");
            }
            self.advance_by(1);
            Kind::Tag(TagName::boxed("", suffix))
        } else {
            let handle = self.scan_tag_handle(false, start)?;
            if handle.len() > 1 && handle.ends_with('!') {
                let suffix = self.scan_tag_uri(false, false, "", start)?;
                Kind::Tag(TagName::boxed(handle, suffix))
            } else {
                // What looked like a handle is the beginning of the name; `!` alone is a tag too.
                let suffix = self.scan_tag_uri(false, false, handle, start)?;
                match suffix.is_empty() {
                    true => Kind::Tag(TagName::boxed("", "!".into())),
                    false => Kind::Tag(TagName::boxed("!", suffix)),
                }
            }
        };
        let ends = self.is_blankz(0) || self.flow_level > 0 && self.at(0) == b',';
        if !ends {
            return self.error(CONTEXT, start, "did not find expected whitespace or line break");
        }
        self.push(kind, start);
        Ok(())
    }

    fn scan_tag_handle(&mut self, directive: bool, start: Mark) -> Result<&'a str, Error> {
        let from = self.pos;
        if self.at(0) != b'!' {
            let context =
                if directive { "while scanning a tag directive" } else { "while scanning a tag" };
            return self.error(context, start, "did not find expected '!'");
        }
        self.advance_by(1);
        self.scan_alpha();
        if self.at(0) == b'!' {
            self.advance_by(1);
        } else if directive && self.pos - from > 1 {
            let context = "while parsing a tag directive";
            return self.error(context, start, "did not find expected '!'");
        }
        Ok(&self.text[from..self.pos])
    }

    /// Reads the rest of a tag; `head` is what was taken for a handle.
    fn scan_tag_uri(
        &mut self,
        brackets: bool,
        directive: bool,
        head: &str,
        start: Mark,
    ) -> Result<Cow<'a, str>, Error> {
        let context =
            if directive { "while parsing a %TAG directive" } else { "while parsing a tag" };
        let mut uri = head.get(1..).unwrap_or_default().as_bytes().to_vec();
        let mut any = !head.is_empty();
        loop {
            let byte = self.at(0);
            let accepted = is_alpha(byte)
                || b";/?:@&=+$.%!~*'()".contains(&byte)
                || brackets && b",[]".contains(&byte);
            if !accepted {
                break;
            }
            any = true;
            if byte == b'%' {
                self.scan_uri_escape(context, start, &mut uri)?;
            } else {
                uri.push(byte);
                self.advance_by(1);
            }
        }
        if !any {
            return self.error(context, start, "did not find expected tag URI");
        }
        Ok(Cow::Owned(String::from_utf8_lossy(&uri).into_owned()))
    }

    /// Reads the octets of one escaped character.
    fn scan_uri_escape(
        &mut self,
        context: &'static str,
        start: Mark,
        uri: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let hex = |byte: u8| char::from(byte).to_digit(16);
        let mut left = 0;
        loop {
            let digits = hex(self.at(1)).zip(hex(self.at(2)));
            let (b'%', Some((high, low))) = (self.at(0), digits) else {
                return self.error(context, start, "did not find URI escaped octet");
            };
            let octet = (high << 4 | low) as u8;
            if left == 0 {
                left = match octet {
                    0..0x80 => 1,
                    0xc0..0xe0 => 2,
                    0xe0..0xf0 => 3,
                    0xf0..0xf8 => 4,
                    _ => {
                        let problem = "found an incorrect leading UTF-8 octet";
                        return self.error(context, start, problem);
                    }
                };
            } else if octet & 0xc0 != 0x80 {
                return self.error(context, start, "found an incorrect trailing UTF-8 octet");
            }
            uri.push(octet);
            self.advance_by(3);
            left -= 1;
            if left == 0 {
                return Ok(());
            }
        }
    }

    // ---- scalars

    fn fetch_block_scalar(&mut self, literal: bool) -> Result<(), Error> {
        const CONTEXT: &str = "while scanning a block scalar";
        self.remove_simple_key()?;
        self.simple_key_allowed = true;
        let start = self.mark();
        self.advance_by(1);
        let (mut chomping, mut increment) = (None, 0);
        // Both hints in either order, each once.
        for _ in 0..2 {
            match self.at(0) {
                hint @ (b'+' | b'-') if chomping.is_none() => chomping = Some(hint),
                b'0' if increment == 0 => {
                    let problem = "found an indentation indicator equal to 0";
                    return self.error(CONTEXT, start, problem);
                }
                digit @ b'1'..=b'9' if increment == 0 => increment = i64::from(digit - b'0'),
                _ => break,
            }
            self.advance_by(1);
        }
        self.skip_blanks();
        self.skip_comment();
        if !self.is_breakz() {
            return self.error(CONTEXT, start, "did not find expected comment or line break");
        }
        if self.is_break() {
            self.advance_break();
        }
        let mut end = self.mark();
        let mut indent = if increment > 0 { self.indent.max(0) + increment } else { 0 };
        let (mut value, mut leading_break, mut breaks) =
            (String::new(), String::new(), String::new());
        self.scan_block_breaks(&mut indent, &mut breaks, start, &mut end)?;
        let mut leading_blank = false;
        while self.column() as i64 == indent && !self.is_end() {
            let blank = self.is_blank();
            // Two text lines are joined by a space, unless one of them is indented further.
            if !literal && leading_break.starts_with('\n') && !leading_blank && !blank {
                if breaks.is_empty() {
                    value.push(' ');
                }
            } else {
                value.push_str(&leading_break);
            }
            leading_break.clear();
            value.push_str(&breaks);
            breaks.clear();
            leading_blank = blank;
            let line_end = self.end_of_line();
            value.push_str(&self.text[self.pos..line_end]);
            self.advance_to(line_end);
            self.read_break(&mut leading_break);
            self.scan_block_breaks(&mut indent, &mut breaks, start, &mut end)?;
        }
        if chomping != Some(b'-') {
            value.push_str(&leading_break);
        }
        if chomping == Some(b'+') {
            value.push_str(&breaks);
        }
        let kind = Kind::Scalar { value: value.into(), plain: false };
        self.tokens.push_back(Token { kind, start, end });
        Ok(())
    }

    /// Passes indentation and empty lines; finds out the indentation when it is not known (0).
    fn scan_block_breaks(
        &mut self,
        indent: &mut i64,
        breaks: &mut String,
        start: Mark,
        end: &mut Mark,
    ) -> Result<(), Error> {
        let mut deepest = 0;
        *end = self.mark();
        loop {
            while (*indent == 0 || (self.column() as i64) < *indent) && self.at(0) == b' ' {
                self.pos += 1;
            }
            let column = self.column() as i64;
            deepest = deepest.max(column);
            if (*indent == 0 || column < *indent) && self.at(0) == b'\t' {
                let problem = "found a tab character where an indentation space is expected";
                return self.error("while scanning a block scalar", start, problem);
            }
            if !self.is_break() {
                break;
            }
            self.read_break(breaks);
            *end = self.mark();
        }
        if *indent == 0 {
            *indent = deepest.max(self.indent + 1).max(1);
        }
        Ok(())
    }

    fn fetch_quoted(&mut self, single: bool) -> Result<(), Error> {
        self.save_simple_key()?;
        self.simple_key_allowed = false;
        let start = self.mark();
        self.advance_by(1);
        let value = match self.scan_simple_quoted(single) {
            Some(value) => Cow::Borrowed(value),
            None => Cow::Owned(self.scan_quoted(single, start)?),
        };
        self.advance_by(1);
        self.push(Kind::Scalar { value, plain: false }, start);
        Ok(())
    }

    /// Takes a quoted text that is its own value: one line, no escapes.
    fn scan_simple_quoted(&mut self, single: bool) -> Option<&'a str> {
        let quote = if single { b'\'' } else { b'"' };
        let rest = &self.bytes[self.pos..];
        let len = rest.iter().position(|&byte| {
            byte == quote || matches!(byte, b'\\' | b'\n' | b'\r' | 0xc2 | 0xe2)
        })?;
        let stopped_by = rest[len];
        if single && stopped_by == b'\\' || stopped_by != quote {
            return None;
        }
        if single && rest.get(len + 1) == Some(&b'\'') {
            return None;
        }
        let value = &self.text[self.pos..self.pos + len];
        self.advance_to(self.pos + len);
        Some(value)
    }

    /// Reads up to the closing quote.
    fn scan_quoted(&mut self, single: bool, start: Mark) -> Result<String, Error> {
        const CONTEXT: &str = "while scanning a quoted scalar";
        let quote = if single { b'\'' } else { b'"' };
        let mut value = String::new();
        let mut leading_break = String::new();
        let mut breaks = String::new();
        loop {
            if self.column() == 0 && self.document_indicator().is_some() {
                return self.error(CONTEXT, start, "found unexpected document indicator");
            }
            if self.is_end() {
                return self.error(CONTEXT, start, "found unexpected end of stream");
            }
            let mut leading_blanks = false;
            while !self.is_blankz(0) {
                let byte = self.at(0);
                if byte == quote {
                    if !single || self.at(1) != b'\'' {
                        return Ok(value);
                    }
                    value.push('\'');
                    self.advance_by(2);
                } else if !single && byte == b'\\' {
                    if self.break_len(1) > 0 {
                        self.advance_by(1);
                        self.advance_break();
                        leading_blanks = true;
                        break;
                    }
                    self.scan_escape(&mut value, start)?;
                } else {
                    let from = self.pos;
                    self.advance();
                    value.push_str(&self.text[from..self.pos]);
                }
            }
            // Blanks inside a line are kept, around a break they go.
            let blanks = self.pos;
            let mut blanks_end = blanks;
            while self.is_blank() || self.is_break() {
                if self.is_blank() {
                    self.pos += 1;
                    if !leading_blanks {
                        blanks_end = self.pos;
                    }
                } else if leading_blanks {
                    self.read_break(&mut breaks);
                } else {
                    blanks_end = blanks;
                    self.read_break(&mut leading_break);
                    leading_blanks = true;
                }
            }
            if leading_blanks {
                join_lines(&mut value, &mut leading_break, &mut breaks);
            } else {
                value.push_str(&self.text[blanks..blanks_end]);
            }
        }
    }

    fn scan_escape(&mut self, value: &mut String, start: Mark) -> Result<(), Error> {
        const CONTEXT: &str = "while parsing a quoted scalar";
        let digits = match self.at(1) {
            b'x' => 2,
            b'u' => 4,
            b'U' => 8,
            byte => {
                value.push(match byte {
                    b'0' => '\0',
                    b'a' => '\x07',
                    b'b' => '\x08',
                    b't' | b'\t' => '\t',
                    b'n' => '\n',
                    b'v' => '\x0b',
                    b'f' => '\x0c',
                    b'r' => '\r',
                    b'e' => '\x1b',
                    b' ' => ' ',
                    b'"' => '"',
                    b'/' => '/',
                    b'\\' => '\\',
                    b'N' => '\u{85}',
                    b'_' => '\u{a0}',
                    b'L' => '\u{2028}',
                    b'P' => '\u{2029}',
                    _ => return self.error(CONTEXT, start, "found unknown escape character"),
                });
                self.advance_by(2);
                return Ok(());
            }
        };
        self.advance_by(2);
        let mut code = 0u32;
        for index in 0..digits {
            let Some(digit) = char::from(self.at(index)).to_digit(16) else {
                return self.error(CONTEXT, start, "did not find expected hexdecimal number");
            };
            code = code << 4 | digit;
        }
        let Some(c) = char::from_u32(code) else {
            return self.error(CONTEXT, start, "found invalid Unicode character escape code");
        };
        value.push(c);
        self.advance_by(digits);
        Ok(())
    }

    fn fetch_plain(&mut self) -> Result<(), Error> {
        self.save_simple_key()?;
        self.simple_key_allowed = false;
        let start = self.mark();
        let from = self.pos;
        let (len, end) = self.scan_plain_line(start)?;
        let first = &self.text[from..from + len];
        // The common case: the value ends on its line, and what follows is no continuation.
        if !self.is_break() {
            let kind = Kind::Scalar { value: Cow::Borrowed(first), plain: true };
            self.tokens.push_back(Token { kind, start, end });
            return Ok(());
        }
        self.continue_plain(first, start, end)
    }

    /// Takes the text up to the end of the line, a comment, or an indicator; passes the blanks
    /// behind it. Returns the length without them, and where it ended.
    fn scan_plain_line(&mut self, start: Mark) -> Result<(usize, Mark), Error> {
        let from = self.pos;
        let flow = self.flow_level > 0;
        let (mut len, mut end) = (0, self.mark());
        loop {
            let mut pos = self.pos;
            loop {
                while self.bytes.get(pos).is_some_and(|byte| !PLAIN_STOP[*byte as usize]) {
                    pos += 1;
                }
                let distance = pos - self.pos;
                let Some(&byte) = self.bytes.get(pos) else { break };
                let stops = match byte {
                    b':' => {
                        let next = self.at(distance + 1);
                        if flow && matches!(next, b',' | b'?' | b'[' | b']' | b'{' | b'}') {
                            self.advance_to(pos);
                            let context = "while scanning a plain scalar";
                            return self.error(context, start, "found unexpected ':'");
                        }
                        self.is_blankz(distance + 1)
                    }
                    b',' | b'[' | b']' | b'{' | b'}' => flow,
                    0xc2 | 0xe2 => self.break_len(distance) > 0,
                    _ => true,
                };
                if stops {
                    break;
                }
                pos += 1;
            }
            if pos > self.pos {
                self.advance_to(pos);
                len = pos - from;
                end = self.mark();
            }
            if !self.is_blank() {
                return Ok((len, end));
            }
            self.skip_blanks();
            // A comment needs a blank before it; an indicator after blanks ends the text as well.
            if self.at(0) == b'#' || self.is_breakz() || self.ends_plain() {
                return Ok((len, end));
            }
        }
    }

    /// Tells whether the character here ends a plain scalar.
    fn ends_plain(&self) -> bool {
        match self.at(0) {
            b':' => {
                // An error in flow context is found when the loop looks again.
                let next = self.at(1);
                let wrong =
                    self.flow_level > 0 && matches!(next, b',' | b'?' | b'[' | b']' | b'{' | b'}');
                !wrong && self.is_blankz(1)
            }
            b',' | b'[' | b']' | b'{' | b'}' => self.flow_level > 0,
            _ => false,
        }
    }

    /// Goes on after a line break: the text continues as long as the lines are indented.
    fn continue_plain(&mut self, first: &'a str, start: Mark, end: Mark) -> Result<(), Error> {
        let indent = self.indent + 1;
        let mut value = Cow::Borrowed(first);
        let mut end = end;
        let mut leading_break = String::new();
        let mut breaks = String::new();
        let mut leading_blanks = false;
        while self.is_break() {
            leading_blanks = true;
            leading_break.clear();
            breaks.clear();
            self.read_break(&mut leading_break);
            while self.is_blank() || self.is_break() {
                if self.is_break() {
                    self.read_break(&mut breaks);
                } else if self.at(0) == b'\t' && (self.column() as i64) < indent {
                    let context = "while scanning a plain scalar";
                    let problem = "found a tab character that violates indentation";
                    return self.error(context, start, problem);
                } else {
                    self.pos += 1;
                }
            }
            let outside = self.flow_level == 0 && (self.column() as i64) < indent;
            let marker = self.column() == 0 && self.document_indicator().is_some();
            if outside || marker || self.is_end() || self.at(0) == b'#' {
                break;
            }
            let from = self.pos;
            let (len, line_end) = self.scan_plain_line(start)?;
            if len == 0 {
                break;
            }
            join_lines(value.to_mut(), &mut leading_break, &mut breaks);
            value.to_mut().push_str(&self.text[from..from + len]);
            end = line_end;
            leading_blanks = false;
        }
        if leading_blanks {
            self.simple_key_allowed = true;
        }
        self.tokens.push_back(Token { kind: Kind::Scalar { value, plain: true }, start, end });
        Ok(())
    }
}

/// Joins two lines: one newline becomes a space, further ones stay.
fn join_lines(value: &mut String, leading_break: &mut String, breaks: &mut String) {
    if !leading_break.starts_with('\n') {
        value.push_str(leading_break);
        value.push_str(breaks);
    } else if breaks.is_empty() {
        value.push(' ');
    } else {
        value.push_str(breaks);
    }
    leading_break.clear();
    breaks.clear();
}
