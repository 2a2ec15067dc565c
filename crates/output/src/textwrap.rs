//! Python's `textwrap`: paragraphs broken at white space, hyphens and em-dashes.
//!
//! Warnings under a state are wrapped this way, so the places where a line may break are those of
//! Python: behind the hyphen of a compound word (two letters before it, and a letter behind), and
//! around two or more dashes between words.

use crate::python;

/// Returns the text broken into lines of at most `width` columns, each indented.
pub(crate) fn fill(text: &str, width: usize, indent: usize) -> String {
    let text = plain_spaces(text);
    let mut chunks = chunks(&text);
    chunks.reverse();
    let room = width.saturating_sub(indent).max(1);
    let mut lines: Vec<String> = Vec::new();
    while !chunks.is_empty() {
        let mut line: Vec<&[char]> = Vec::new();
        let mut used = 0;
        if !lines.is_empty() && chunks.last().is_some_and(|chunk| is_blank(chunk)) {
            chunks.pop();
        }
        while let Some(chunk) = chunks.pop_if(|chunk| used + chunk.len() <= room) {
            used += chunk.len();
            line.push(chunk);
        }
        if let Some(long) = chunks.pop_if(|chunk| chunk.len() > room) {
            let (head, tail) = split_long(long, room - used);
            line.push(head);
            if !tail.is_empty() {
                chunks.push(tail);
            }
        }
        line.pop_if(|chunk| is_blank(chunk));
        if !line.is_empty() {
            let mut text = " ".repeat(indent);
            text.extend(line.iter().copied().flatten());
            lines.push(text);
        }
    }
    lines.join("\n")
}

fn is_blank(chunk: &[char]) -> bool {
    chunk.iter().all(|c| python::is_space(*c))
}

/// Cuts a word that no line can hold, behind a hyphen if there is one in reach.
fn split_long(word: &[char], room: usize) -> (&[char], &[char]) {
    let reach = &word[..room.min(word.len())];
    let hyphen = reach.iter().rposition(|c| *c == '-');
    let cut = match hyphen {
        Some(at) if at > 0 && reach[..at].iter().any(|c| *c != '-') => at + 1,
        _ => reach.len(),
    };
    word.split_at(cut)
}

/// Expands tabs to eight columns and makes ASCII white space into spaces.
fn plain_spaces(text: &str) -> Vec<char> {
    let mut out = Vec::with_capacity(text.len());
    let mut column = 0;
    for c in text.chars() {
        match c {
            '\t' => {
                let stop = 8 - column % 8;
                out.extend(std::iter::repeat_n(' ', stop));
                column += stop;
            }
            '\n' | '\r' => {
                out.push(' ');
                column = 0;
            }
            _ => {
                out.push(if is_ascii_space(c) { ' ' } else { c });
                column += 1;
            }
        }
    }
    out
}

fn is_ascii_space(c: char) -> bool {
    matches!(c, '\t'..='\r' | ' ')
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn is_letter(c: char) -> bool {
    is_word(c) && !c.is_numeric()
}

/// Tells whether a dash may follow: a word character or the punctuation that ends one.
fn is_word_or_mark(c: char) -> bool {
    is_word(c) || matches!(c, '!' | '"' | '\'' | '&' | '.' | ',' | '?')
}

/// Cuts a text into words, pieces of compound words, dashes and white space.
fn chunks(text: &[char]) -> Vec<&[char]> {
    let mut chunks = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let end = chunk_end(text, start);
        chunks.push(&text[start..end]);
        start = end;
    }
    chunks
}

fn chunk_end(text: &[char], start: usize) -> usize {
    let at = |index: usize| text.get(index).copied();
    let run = |from: usize, of: fn(char) -> bool| {
        text[from..].iter().position(|c| !of(*c)).map_or(text.len(), |length| from + length)
    };
    // Returns the end of two or more dashes that stand between words.
    let dashes = |from: usize| {
        if at(from) != Some('-') {
            return None;
        }
        let end = run(from, |c| c == '-');
        let before = from.checked_sub(1).and_then(at).is_some_and(is_word_or_mark);
        (before && end >= from + 2 && at(end).is_some_and(is_word)).then_some(end)
    };
    let letter = |index: Option<usize>| index.and_then(at).is_some_and(is_letter);
    // Tells whether the hyphen there joins a compound word.
    let hyphen = |index: usize| {
        if at(index) != Some('-') {
            return false;
        }
        let back = |n: usize| index.checked_sub(n);
        let pair = letter(back(1)) && letter(back(2));
        let short = back(1).and_then(at).is_some_and(is_word_or_mark)
            && back(2).and_then(at) == Some('-')
            && letter(back(3));
        let next = index + 1;
        let after = letter(Some(next))
            && (letter(Some(next + 1)) || (at(next + 1) == Some('-') && letter(Some(next + 2))));
        (pair || short) && after
    };
    if at(start).is_some_and(is_ascii_space) {
        return run(start, is_ascii_space);
    }
    if let Some(end) = dashes(start) {
        return end;
    }
    for (end, c) in text.iter().enumerate().skip(start + 1) {
        if hyphen(end) {
            return end + 1;
        }
        if is_ascii_space(*c) || dashes(end).is_some() {
            return end;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let text: Vec<char> = text.chars().collect();
        let found: Vec<String> = chunks(&text).iter().map(|chunk| chunk.iter().collect()).collect();
        assert_eq!(found, expected);
    }

    // Recorded from Python's TextWrapper()._split.
    #[test]
    fn words_break_where_python_breaks_them() {
        check(
            "Look, goof-ball -- use it!",
            &["Look,", " ", "goof-", "ball", " ", "--", " ", "use", " ", "it!"],
        );
        check("word--dash 'x'--y", &["word", "--", "dash", " ", "'x'", "--", "y"]);
        check(
            "a-b-c ab-cd 1-2 --long-option",
            &["a-b-c", " ", "ab-", "cd", " ", "1-2", " ", "--long-", "option"],
        );
    }

    #[test]
    fn long_words_are_cut() {
        assert_eq!(fill("aaaa bbbbbbbbbb", 8, 2), "  aaaa b\n  bbbbbb\n  bbb");
        assert_eq!(fill(" a\tb ", 20, 0), " a      b");
        assert_eq!(fill("", 20, 0), "");
    }
}
