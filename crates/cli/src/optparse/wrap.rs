//! Breaking text into lines, as Python's `textwrap` does.
//!
//! Lines break at blanks, after the hyphen of a compound word, and around a dash of two or more
//! hyphens. A word longer than a line is cut.

/// Returns the lines of a paragraph, none longer than `width`.
#[must_use]
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    let mut length = 0;
    for piece in pieces(text) {
        let mut piece: Vec<char> = piece.chars().collect();
        if piece.len() + length > width {
            finish(&mut lines, &mut line);
            length = 0;
        }
        if line.is_empty() && piece.first() == Some(&' ') && !lines.is_empty() {
            continue;
        }
        while piece.len() > width.max(1) {
            let rest = piece.split_off(width.max(1));
            lines.push(piece.into_iter().collect());
            piece = rest;
        }
        length += piece.len();
        line.extend(piece);
    }
    finish(&mut lines, &mut line);
    lines
}

fn finish(lines: &mut Vec<String>, line: &mut String) {
    let text = line.trim_end_matches(' ');
    if !text.is_empty() {
        lines.push(text.into());
    }
    line.clear();
}

/// Splits a text into pieces that may stand at the end of a line. Each blank becomes a space.
fn pieces(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
    let mut pieces = Vec::new();
    let mut start = 0;
    for at in 1..=chars.len() {
        if at == chars.len() || breaks(&chars, start, at) {
            pieces.push(chars[start..at].iter().collect());
            start = at;
        }
    }
    pieces
}

/// Tells whether a piece that began at `start` ends before `at`.
fn breaks(chars: &[char], start: usize, at: usize) -> bool {
    let (last, next) = (chars[at - 1], chars[at]);
    if (last == ' ') != (next == ' ') {
        return true;
    }
    let letter = |i: usize| chars.get(i).is_some_and(|c| c.is_alphabetic() || *c == '_');
    let punct = |c: char| c.is_alphanumeric() || "_!\"'&.,?".contains(c);
    if next == '-' && last != '-' {
        // Before a dash: `word--word`.
        let end = (at..chars.len()).find(|&i| chars[i] != '-').unwrap_or(chars.len());
        return end - at >= 2
            && punct(last)
            && chars.get(end).is_some_and(|c| c.is_alphanumeric() || *c == '_');
    }
    if last != '-' || next == '-' {
        return false;
    }
    let is_dash = chars[start..at].iter().all(|c| *c == '-');
    if is_dash {
        // After a dash, if something stood before it.
        return at - start >= 2 && start > 0 && punct(chars[start - 1]);
    }
    // After the hyphen of a compound word: two letters (or `a-b-`) before it, two after.
    let before = at >= 2
        && letter(at - 2)
        && at - 2 >= start
        && ((at >= 3 && at - 3 >= start && letter(at - 3))
            || (at >= 4 && at - 4 >= start && chars[at - 3] == '-' && letter(at - 4)));
    let after =
        letter(at) && (letter(at + 1) || (chars.get(at + 1) == Some(&'-') && letter(at + 2)));
    before && after
}

#[cfg(test)]
mod tests {
    use super::wrap;

    fn check(text: &str, width: usize, expected: &[&str]) {
        assert_eq!(wrap(text, width), expected, "{text:?}");
    }

    // Answers of Python's textwrap.
    #[test]
    fn as_python() {
        check("a bb ccc dddd", 6, &["a bb", "ccc", "dddd"]);
        check("use batch-safe-limit now", 12, &["use batch-", "safe-limit", "now"]);
        check("see --include-denied here", 16, &["see --include-", "denied here"]);
        check("use \"--include-all\" and", 8, &["use \"--", "include-", "all\" and"]);
        check("abcdefghij", 4, &["abcd", "efgh", "ij"]);
        check("", 10, &[]);
        check("a  b", 10, &["a  b"]);
        check("x-y z-1 -l", 4, &["x-y", "z-1", "-l"]);
    }
}
