//! `pprint`: Python's pretty printer at 80 columns.
//!
//! What fits on the rest of its line stays on one line; otherwise a container takes a line per item,
//! and a text or byte string is cut into pieces that Python would join again. Dicts are sorted by
//! key, keys of different kinds by the names of their types. «Allowance» is the room that closing
//! brackets and a comma will need behind the value.

use std::{cmp::Ordering, fmt::Write as _};

use halite_value::{Dict, Key, Value, str_repr};

use crate::{Indent, Style, Unfit, python};

const WIDTH: usize = 80;

pub(crate) fn render(ret: &Value, style: &Style, out: &mut String) -> Result<(), Unfit> {
    let indent = match style.output_indent {
        Indent::Unset => 1,
        Indent::Spaces(spaces) => usize::try_from(spaces).unwrap_or(1),
        _ => return Err(Unfit),
    };
    out.push_str(&pformat(ret, indent));
    Ok(())
}

/// Returns what Python's `pprint.pformat(value, indent)` returns.
pub fn pformat(value: &Value, indent: usize) -> String {
    let mut printer = Printer { indent, out: String::new() };
    printer.place(value, 0, 0, true);
    printer.out
}

struct Printer {
    indent: usize,
    out: String,
}

impl Printer {
    fn place(&mut self, value: &Value, column: usize, allowance: usize, top: bool) {
        let mut line = String::new();
        one_line(value, &mut line);
        if python::len(&line) + column + allowance <= WIDTH {
            self.out.push_str(&line);
            return;
        }
        match value {
            Value::Dict(dict) => self.dict(dict, column, allowance),
            Value::List(list) => self.items(["[", "]"], &list.to_vec(), column, allowance),
            Value::Tuple(items) => {
                let close = if items.len() == 1 { ",)" } else { ")" };
                self.items(["(", close], items, column, allowance);
            }
            Value::Str(text) if !text.is_empty() => self.text(text, column, allowance, top),
            Value::Bytes(bytes) if bytes.len() > 4 => self.bytes(bytes, column, allowance, top),
            _ => self.out.push_str(&line),
        }
    }

    fn open(&mut self, bracket: &str) {
        self.out.push_str(bracket);
        python::pad(&mut self.out, self.indent.saturating_sub(1));
    }

    fn new_line(&mut self, column: usize) {
        self.out.push('\n');
        python::pad(&mut self.out, column);
    }

    fn dict(&mut self, dict: &Dict, column: usize, allowance: usize) {
        self.open("{");
        let column = column + self.indent;
        let entries = sorted_entries(dict);
        let last = entries.len().saturating_sub(1);
        for (index, (key, value)) in entries.iter().enumerate() {
            if index > 0 {
                self.out.push(',');
                self.new_line(column);
            }
            let mut name = String::new();
            one_line(key, &mut name);
            let _ = write!(self.out, "{name}: ");
            let allowance = if index == last { allowance + 1 } else { 1 };
            self.place(value, column + python::len(&name) + 2, allowance, false);
        }
        self.out.push('}');
    }

    fn items(
        &mut self,
        [open, close]: [&str; 2],
        items: &[Value],
        column: usize,
        allowance: usize,
    ) {
        self.open(open);
        let column = column + self.indent;
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.out.push(',');
                self.new_line(column);
            }
            let last = index + 1 == items.len();
            self.place(item, column, if last { allowance + close.len() } else { 1 }, false);
        }
        self.out.push_str(close);
    }

    /// Only the outermost text gets parentheses, for want of brackets to hold its pieces together.
    fn text(&mut self, text: &str, column: usize, allowance: usize, top: bool) {
        let column = column + usize::from(top);
        let allowance = allowance + usize::from(top);
        let pieces = pieces_of_text(text, WIDTH.saturating_sub(column), allowance);
        if let [whole] = pieces.as_slice() {
            self.out.push_str(whole);
            return;
        }
        self.pieces(&pieces, column, top);
    }

    /// Unlike a text, bytes in one piece get their parentheses too.
    fn bytes(&mut self, bytes: &[u8], column: usize, allowance: usize, top: bool) {
        let column = column + usize::from(top);
        let allowance = allowance + usize::from(top);
        let pieces = pieces_of_bytes(bytes, WIDTH.saturating_sub(column), allowance);
        self.pieces(&pieces, column, top);
    }

    fn pieces(&mut self, pieces: &[String], column: usize, parentheses: bool) {
        if parentheses {
            self.out.push('(');
        }
        for (index, piece) in pieces.iter().enumerate() {
            if index > 0 {
                self.new_line(column);
            }
            self.out.push_str(piece);
        }
        if parentheses {
            self.out.push(')');
        }
    }
}

/// Cuts behind line ends, and within a line that is too long behind white space.
fn pieces_of_text(text: &str, width: usize, allowance: usize) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut lines = python::lines_with_ends(text).peekable();
    while let Some(line) = lines.next() {
        let end_allowance = if lines.peek().is_none() { allowance } else { 0 };
        let fits = |text: &str, allowance: usize| python::len(&str_repr(text)) + allowance <= width;
        if fits(line, end_allowance) {
            pieces.push(str_repr(line));
            continue;
        }
        // `start..end` is the piece so far; words are added while they fit.
        let (mut start, mut end) = (0, 0);
        for word_end in word_ends(line) {
            let allowance = if word_end == line.len() { end_allowance } else { 0 };
            if !fits(&line[start..word_end], allowance) && end > start {
                pieces.push(str_repr(&line[start..end]));
                start = end;
            }
            end = word_end;
        }
        pieces.push(str_repr(&line[start..]));
    }
    pieces
}

/// Returns where each word with the white space behind it ends.
fn word_ends(line: &str) -> impl Iterator<Item = usize> {
    let mut before_is_space = false;
    let starts = line.char_indices().filter_map(move |(at, c)| {
        let space = python::is_space(c);
        let new_word = before_is_space && !space;
        before_is_space = space;
        new_word.then_some(at)
    });
    starts.chain(std::iter::once(line.len()))
}

/// Bytes are cut at multiples of four.
fn pieces_of_bytes(bytes: &[u8], width: usize, allowance: usize) -> Vec<String> {
    let repr = |bytes: &[u8]| Value::bytes(bytes).repr();
    let mut pieces = Vec::new();
    let (mut start, mut end) = (0, 0);
    // A last group of less than four counts as last; after a full one, nothing does.
    let last = bytes.len() / 4 * 4;
    while end < bytes.len() {
        let next = (end + 4).min(bytes.len());
        let allowance = if end == last { allowance } else { 0 };
        if repr(&bytes[start..next]).len() + allowance > width && end > start {
            pieces.push(repr(&bytes[start..end]));
            start = end;
        }
        end = next;
    }
    pieces.push(repr(&bytes[start..]));
    pieces
}

/// Appends the `repr` with all dicts sorted.
fn one_line(value: &Value, out: &mut String) {
    let mut list = |open: &str, items: &[Value], close: &str| {
        out.push_str(open);
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                out.push_str(", ");
            }
            one_line(item, out);
        }
        out.push_str(close);
    };
    match value {
        Value::List(items) => list("[", &items.to_vec(), "]"),
        Value::Tuple(items) => list("(", items, if items.len() == 1 { ",)" } else { ")" }),
        Value::Dict(dict) => {
            out.push('{');
            for (index, (key, item)) in sorted_entries(dict).iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                one_line(key, out);
                out.push_str(": ");
                one_line(item, out);
            }
            out.push('}');
        }
        other => out.push_str(&other.repr()),
    }
}

/// Keys without a common order go by the name of their type.
fn sorted_entries(dict: &Dict) -> Vec<(Key, Value)> {
    let type_of = |key: &Key| format!("<class '{}'>", key.type_name());
    let less = |a: &Key, b: &Key| {
        python::less(a, b).unwrap_or_else(|| type_of(a).cmp(&type_of(b)) == Ordering::Less)
    };
    python::sorted_entries(dict).unwrap_or_else(|| {
        python::sorted(dict.entries(), &|(a, _), (b, _)| Some(less(a, b))).unwrap_or_default()
    })
}
