//! The layout of YAML text: quoting, folding, indentation, as libyaml lays it out.
//!
//! [`Emitter`] knows columns and scalars, nothing of values; `dump` walks the value and calls it.
//! The rules are those of libyaml 0.2.5, which genuine Salt writes with, and files that Salt manages
//! must not change when Halite writes them. So nothing here is a matter of taste: that characters
//! beyond U+FFFF are escaped, for instance, is libyaml's doing.
//!
//! Two flags carry most of the layout. `whitespace`: the last character was a blank, so an
//! indicator needs none before it. `indention`: nothing but indentation and `-`, `?`, `:` stands on
//! this line so far, so a nested block may begin right here.

use super::{LineBreak, Style};

pub(super) struct Emitter {
    pub(super) out: String,
    column: usize,
    /// The column of the current block; `None` before the first one.
    indent: Option<usize>,
    best_indent: usize,
    best_width: usize,
    unicode: bool,
    pub(super) canonical: bool,
    line_break: LineBreak,
    whitespace: bool,
    indention: bool,
    pub(super) flow_level: usize,
    /// A block scalar that keeps its final breaks was written last: the end must be marked.
    open_ended: bool,
}

/// A scalar and what its text allows.
pub(super) struct Scalar<'a> {
    pub(super) text: &'a str,
    /// Whether the plain text is read back with the right tag, and whether a quoted one is.
    pub(super) plain_implicit: bool,
    pub(super) quoted_implicit: bool,
    pub(super) style: Option<Style>,
    pub(super) looks: Looks,
}

/// What a text contains, as far as it limits the styles.
#[derive(Clone, Copy)]
pub(super) struct Looks {
    pub(super) multiline: bool,
    flow_plain: bool,
    block_plain: bool,
    single_quoted: bool,
    block: bool,
}

/// What stands before a node.
#[derive(Clone, Copy, Default)]
pub(super) struct Props<'a> {
    pub(super) anchor: Option<&'a str>,
    /// The part after `!!`.
    pub(super) tag: Option<&'a str>,
}

impl Props<'_> {
    /// Bytes that count towards the length of a simple key.
    fn len(self) -> usize {
        self.anchor.map_or(0, str::len) + self.tag.map_or(0, |tag| tag.len() + 2)
    }
}

impl Emitter {
    pub(super) fn new(options: &super::DumpOptions) -> Self {
        let best_indent = match options.indent {
            indent @ 2..=9 => indent as usize,
            _ => 2,
        };
        let best_width = match usize::try_from(options.width) {
            Err(_) => usize::MAX,
            Ok(width) if width <= best_indent * 2 => 80,
            Ok(width) => width,
        };
        Self {
            out: String::new(),
            column: 0,
            indent: None,
            best_indent,
            best_width,
            unicode: options.allow_unicode,
            canonical: options.canonical,
            line_break: options.line_break,
            whitespace: true,
            indention: true,
            flow_level: 0,
            open_ended: false,
        }
    }

    pub(super) fn begin_document(&mut self, version: Option<u8>, explicit: bool) {
        if let Some(minor) = version {
            self.out.push_str("%YAML 1.");
            self.out.push(char::from(b'0' + minor));
            self.put_break();
        }
        if explicit || version.is_some() || self.canonical {
            self.write_indent();
            self.indicator("---", true, false, false);
            if self.canonical {
                self.write_indent();
            }
        }
    }

    pub(super) fn end_document(&mut self, explicit: bool) {
        self.write_indent();
        if explicit || self.open_ended {
            self.indicator("...", true, false, false);
            self.write_indent();
        }
    }

    fn put(&mut self, c: char) {
        self.out.push(c);
        self.column += 1;
    }

    /// Adds text without breaks.
    fn put_str(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += if text.is_ascii() { text.len() } else { text.chars().count() };
    }

    fn put_break(&mut self) {
        self.out.push_str(self.line_break.text());
        self.column = 0;
    }

    /// Writes a break of the text; only the newline becomes the chosen line break.
    fn put_own_break(&mut self, c: char) {
        if c == '\n' {
            self.put_break();
        } else {
            self.out.push(c);
            self.column = 0;
        }
    }

    /// Moves to the indentation, on a new line unless this one is still free.
    pub(super) fn write_indent(&mut self) {
        let indent = self.indent.unwrap_or(0);
        if !self.indention || self.column > indent || self.column == indent && !self.whitespace {
            self.put_break();
        }
        if self.column < indent {
            self.out.extend(std::iter::repeat_n(' ', indent - self.column));
            self.column = indent;
        }
        self.whitespace = true;
        self.indention = true;
    }

    pub(super) fn indicator(
        &mut self,
        text: &str,
        spaced: bool,
        whitespace: bool,
        indention: bool,
    ) {
        if spaced && !self.whitespace {
            self.put(' ');
        }
        self.put_str(text);
        self.whitespace = whitespace;
        self.indention &= indention;
    }

    /// Enters a deeper level and returns what [`Emitter::leave`] needs.
    pub(super) fn enter(&mut self, flow: bool, indentless: bool) -> Option<usize> {
        let outer = self.indent;
        self.indent = Some(match outer {
            None if flow => self.best_indent,
            None => 0,
            Some(indent) if indentless => indent,
            Some(indent) => indent + self.best_indent,
        });
        outer
    }

    pub(super) fn leave(&mut self, outer: Option<usize>) {
        self.indent = outer;
    }

    /// Tells whether a sequence under a mapping key stays at the key's column.
    pub(super) fn at_indention(&self) -> bool {
        self.indention
    }

    /// Breaks the line inside a flow container when it is full.
    pub(super) fn flow_break(&mut self) {
        if self.canonical || self.column > self.best_width {
            self.write_indent();
        }
    }

    pub(super) fn alias(&mut self, name: &str, simple_key: bool) {
        self.indicator("*", true, false, false);
        self.put_str(name);
        // `*id001:` would be read as part of the name.
        if simple_key {
            self.put(' ');
        }
    }

    pub(super) fn props(&mut self, props: Props<'_>) {
        if let Some(anchor) = props.anchor {
            self.indicator("&", true, false, false);
            self.put_str(anchor);
        }
        if let Some(tag) = props.tag {
            self.indicator("!!", true, false, false);
            self.put_str(tag);
        }
    }

    /// Tells whether such a key needs no `?`.
    pub(super) fn is_simple(multiline: bool, len: usize, props: Props<'_>) -> bool {
        !multiline && len + props.len() <= 128
    }

    pub(super) fn scalar(&mut self, scalar: &Scalar<'_>, props: Props<'_>, simple_key: bool) {
        let style = self.style_of(scalar, props, simple_key);
        let untagged = props.tag.is_none() && !scalar.quoted_implicit && style.is_some();
        self.props(props);
        if untagged {
            // Quoted, it would be read as text; the bare mark says that it is not.
            self.indicator("!", true, false, false);
        }
        let outer = self.enter(true, false);
        match style {
            None => self.write_plain(scalar.text, !simple_key),
            Some(Style::SingleQuoted) => self.write_single_quoted(scalar.text, !simple_key),
            Some(Style::DoubleQuoted) => self.write_double_quoted(scalar.text, !simple_key),
            Some(Style::Literal) => self.write_literal(scalar.text),
            Some(Style::Folded) => self.write_folded(scalar.text),
        }
        self.leave(outer);
    }

    /// Picks the style: the one asked for, or the next more robust one that can hold the text.
    fn style_of(&self, scalar: &Scalar<'_>, props: Props<'_>, simple_key: bool) -> Option<Style> {
        let Scalar { text, looks, .. } = scalar;
        let mut style = scalar.style;
        if self.canonical || simple_key && looks.multiline {
            style = Some(Style::DoubleQuoted);
        }
        let flow = self.flow_level > 0;
        if style.is_none() {
            let allowed = if flow { looks.flow_plain } else { looks.block_plain };
            let invisible = text.is_empty() && (flow || simple_key);
            if !allowed || invisible || props.tag.is_none() && !scalar.plain_implicit {
                style = Some(Style::SingleQuoted);
            }
        }
        match style {
            Some(Style::SingleQuoted) if !looks.single_quoted => Some(Style::DoubleQuoted),
            Some(Style::Literal | Style::Folded) if !looks.block || flow || simple_key => {
                Some(Style::DoubleQuoted)
            }
            style => style,
        }
    }

    /// Looks at a text once, for everything [`Emitter::style_of`] wants to know.
    pub(super) fn looks(&self, text: &str) -> Looks {
        let mut looks = Looks {
            multiline: false,
            flow_plain: true,
            block_plain: true,
            single_quoted: true,
            block: true,
        };
        let bytes = text.as_bytes();
        if bytes.iter().all(|byte| HARMLESS[*byte as usize]) && is_harmless_start(bytes) {
            return looks;
        }
        if text.is_empty() {
            return Looks { flow_plain: false, block: false, ..looks };
        }
        let mut no_plain = |flow_only: bool| {
            looks.flow_plain = false;
            looks.block_plain &= flow_only;
        };
        if text.starts_with("---") || text.starts_with("...") {
            no_plain(false);
        }
        let mut previous = None;
        let mut chars = text.chars().peekable();
        let mut special = false;
        let (mut break_space, mut space_break, mut trailing_space) = (false, false, false);
        while let Some(c) = chars.next() {
            let next = chars.peek().copied();
            let first = previous.is_none();
            match c {
                ',' | '[' | ']' | '{' | '}' => no_plain(!first),
                '#' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`' if first => {
                    no_plain(false);
                }
                '?' if first => no_plain(!is_blank_or_end(next)),
                '?' => no_plain(true),
                ':' => no_plain(!is_blank_or_end(next)),
                '-' if first && is_blank_or_end(next) => no_plain(false),
                '#' if is_blank_or_end(previous) => no_plain(false),
                _ => {}
            }
            if c == ' ' {
                if first || next.is_none() {
                    no_plain(false);
                }
                trailing_space |= next.is_none();
                break_space |= previous.is_some_and(is_break);
            } else if is_break(c) {
                looks.multiline = true;
                no_plain(false);
                space_break |= previous == Some(' ');
            }
            special |= !is_printable(c) || !self.unicode && !c.is_ascii();
            previous = Some(c);
        }
        if break_space || space_break || special {
            no_plain(false);
            looks.single_quoted = false;
        }
        looks.block = !(trailing_space || space_break || special);
        looks
    }

    fn write_plain(&mut self, text: &str, may_fold: bool) {
        if !self.whitespace && (!text.is_empty() || self.flow_level > 0) {
            self.put(' ');
        }
        // A plain text has no breaks, so only folding looks inside.
        if !may_fold || self.column + text.len() <= self.best_width {
            self.put_str(text);
        } else {
            self.write_folding(text, false);
        }
        self.whitespace = false;
        self.indention = false;
    }

    fn write_single_quoted(&mut self, text: &str, may_fold: bool) {
        self.indicator("'", true, false, false);
        let short = !may_fold || self.column + text.len() <= self.best_width;
        if short && !text.contains(['\'', '\n', '\u{85}', '\u{2028}', '\u{2029}']) {
            self.put_str(text);
        } else if may_fold {
            self.write_folding(text, true);
        } else {
            // A key: nothing but the quotes is special.
            self.put_str(&text.replace('\'', "''"));
        }
        self.indicator("'", false, false, false);
    }

    /// Writes a plain or single-quoted text, breaking lines at single spaces beyond the width.
    fn write_folding(&mut self, text: &str, quoted: bool) {
        let (mut spaces, mut breaks) = (false, false);
        let mut chars = text.chars().peekable();
        let mut first = true;
        while let Some(c) = chars.next() {
            let next = chars.peek().copied();
            if c == ' ' {
                let inside = !quoted || !first && next.is_some();
                if !spaces && self.column > self.best_width && inside && next != Some(' ') {
                    self.write_indent();
                } else {
                    self.put(' ');
                }
                spaces = true;
            } else if is_break(c) {
                // One newline would be folded into a space when read.
                if !breaks && c == '\n' {
                    self.put_break();
                }
                self.put_own_break(c);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.write_indent();
                }
                if quoted && c == '\'' {
                    self.put('\'');
                }
                self.put(c);
                self.indention = false;
                spaces = false;
                breaks = false;
            }
            first = false;
        }
        if quoted && breaks {
            self.write_indent();
        }
    }

    fn write_double_quoted(&mut self, text: &str, may_fold: bool) {
        self.indicator("\"", true, false, false);
        let mut spaces = false;
        let mut chars = text.chars().peekable();
        let mut first = true;
        while let Some(c) = chars.next() {
            let next = chars.peek().copied();
            if !is_printable(c)
                || !self.unicode && !c.is_ascii()
                || is_break(c)
                || matches!(c, '"' | '\\' | '\u{feff}')
            {
                let before = self.out.len();
                super::dump::escape(c, &mut self.out);
                self.column += self.out.len() - before;
                spaces = false;
            } else if c == ' ' {
                let inside = !first && next.is_some();
                if may_fold && !spaces && self.column > self.best_width && inside {
                    self.write_indent();
                    if next == Some(' ') {
                        self.put('\\');
                    }
                } else {
                    self.put(' ');
                }
                spaces = true;
            } else {
                self.put(c);
                spaces = false;
            }
            first = false;
        }
        self.indicator("\"", false, false, false);
    }

    /// Begins a block scalar: indentation hint, chomping hint, break.
    fn begin_block(&mut self, mark: &str, text: &str) {
        self.indicator(mark, true, false, false);
        if text.starts_with(|c| c == ' ' || is_break(c)) {
            let hint = self.best_indent.to_string();
            self.indicator(&hint, false, false, false);
        }
        let mut last = text.chars().rev();
        self.open_ended = false;
        if !last.next().is_some_and(is_break) {
            self.indicator("-", false, false, false);
        } else if last.next().is_none_or(is_break) {
            self.indicator("+", false, false, false);
            self.open_ended = true;
        }
        self.put_break();
        self.indention = true;
        self.whitespace = true;
    }

    fn write_literal(&mut self, text: &str) {
        self.begin_block("|", text);
        let mut breaks = true;
        for c in text.chars() {
            if is_break(c) {
                self.put_own_break(c);
                self.indention = true;
            } else {
                if breaks {
                    self.write_indent();
                }
                self.put(c);
                self.indention = false;
            }
            breaks = is_break(c);
        }
    }

    fn write_folded(&mut self, text: &str) {
        self.begin_block(">", text);
        let (mut breaks, mut leading_spaces) = (true, true);
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            let next = rest.clone().next();
            if is_break(c) {
                // Lines that begin with a blank are not folded, so they need no second newline.
                if !breaks && !leading_spaces && c == '\n' {
                    let after = rest.clone().find(|c| !is_break(*c));
                    if !is_blank_or_end(after) {
                        self.put_break();
                    }
                }
                self.put_own_break(c);
                self.indention = true;
            } else {
                if breaks {
                    self.write_indent();
                    leading_spaces = matches!(c, ' ' | '\t');
                }
                if !breaks && c == ' ' && next != Some(' ') && self.column > self.best_width {
                    self.write_indent();
                } else {
                    self.put(c);
                }
                self.indention = false;
            }
            breaks = is_break(c);
        }
    }
}

/// Bytes that mean nothing anywhere in a text but at its beginning.
static HARMLESS: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        let c = byte as u8;
        table[byte] =
            c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'.' | b'/' | b'+' | b'=');
        byte += 1;
    }
    table
};

fn is_harmless_start(bytes: &[u8]) -> bool {
    match bytes {
        [] | b"-" => false,
        [b'-' | b'.', second, third, ..] => *second != bytes[0] || *third != bytes[0],
        _ => true,
    }
}

fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// NUL ends a text for libyaml's look-ahead.
fn is_blank_or_end(c: Option<char>) -> bool {
    c.is_none_or(|c| matches!(c, ' ' | '\t' | '\0') || is_break(c))
}

fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}')
        && c != '\u{feff}'
}
