//! The small Python habits that show in output: what a line end is, what white space is, how things
//! sort, centre and round.

use halite_value::{Dict, Key, Value};
pub(crate) use halite_value::{less, sorted};

use crate::Unfit;

/// Deeper data than this is no honest return; the number is that of `halite-value`'s printing.
const MAX_DEPTH: usize = 400;

/// Refuses data that contains itself or is nested too deeply for the recursive outputters.
pub(crate) fn check_depth(value: &Value) -> Result<(), Unfit> {
    fn check(value: &Value, open: &mut Vec<usize>) -> Result<(), Unfit> {
        let identity = match value {
            Value::List(list) => list.identity(),
            Value::Dict(dict) => dict.identity(),
            Value::Tuple(_) => 0,
            _ => return Ok(()),
        };
        if open.len() >= MAX_DEPTH || (identity != 0 && open.contains(&identity)) {
            return Err(Unfit);
        }
        open.push(identity);
        match value {
            Value::List(list) => list.read().iter().try_for_each(|item| check(item, open))?,
            Value::Dict(dict) => dict.read().values().try_for_each(|item| check(item, open))?,
            Value::Tuple(items) => items.iter().try_for_each(|item| check(item, open))?,
            _ => {}
        }
        open.pop();
        Ok(())
    }
    check(value, &mut Vec::new())
}

/// Tells what Python's `str.isspace` tells: Unicode's white space and four separators.
pub(crate) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

pub(crate) fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}

pub(crate) fn trim_end(text: &str) -> &str {
    text.trim_end_matches(is_space)
}

fn is_line_end(c: char) -> bool {
    matches!(c, '\n'..='\r' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Returns the lines as Python's `splitlines` does: eleven kinds of line end, no empty last line.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = &str> {
    lines_with_ends(text).map(|line| match line.strip_suffix("\r\n") {
        Some(line) => line,
        None => line.strip_suffix(is_line_end).unwrap_or(line),
    })
}

/// As [`lines`], each with its line end.
pub(crate) fn lines_with_ends(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = match rest.char_indices().find(|(_, c)| is_line_end(*c)) {
            Some((at, '\r')) if rest[at + 1..].starts_with('\n') => at + 2,
            Some((at, c)) => at + c.len_utf8(),
            None => rest.len(),
        };
        let (line, after) = rest.split_at(end);
        rest = after;
        Some(line)
    })
}

/// Returns the length as Python counts it.
pub(crate) fn len(text: &str) -> usize {
    text.chars().count()
}

/// Appends spaces.
pub(crate) fn pad(out: &mut String, width: usize) {
    out.extend(std::iter::repeat_n(' ', width));
}

/// Returns the entries in the order of their keys; `None` when the keys have no common order.
pub(crate) fn sorted_entries(dict: &Dict) -> Option<Vec<(Key, Value)>> {
    let mut entries = dict.entries();
    if entries.iter().all(|(key, _)| key.as_str().is_some()) {
        entries.sort_by(|(a, _), (b, _)| a.as_str().cmp(&b.as_str()));
        return Some(entries);
    }
    sorted(entries, &|(a, _), (b, _)| less(a, b))
}

/// Returns the text in the middle of `width` columns. An odd space goes left when the width is odd.
pub(crate) fn center(text: &str, width: usize) -> String {
    let spare = width.saturating_sub(len(text));
    let left = spare / 2 + (spare & width & 1);
    format!("{}{text}{}", " ".repeat(left), " ".repeat(spare - left))
}

/// Reads a float as Python's `float(text)`.
pub(crate) fn parse_float(text: &str) -> Option<f64> {
    let text = trim(text);
    if !text.contains('_') {
        return text.parse().ok();
    }
    let bytes = text.as_bytes();
    let digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let between_digits = |at: usize| digit(at.checked_sub(1)) && digit(Some(at + 1));
    let fine = text.match_indices('_').all(|(at, _)| between_digits(at));
    fine.then(|| text.replace('_', "").parse().ok()).flatten()
}

/// Rounds to decimals as Python's `round`: by the exact binary value, halves to even.
pub(crate) fn round(float: f64, decimals: usize) -> f64 {
    format!("{float:.decimals$}").parse().unwrap_or(float)
}

/// Makes bytes into text, tuples into lists and dates into ISO's form, all the way down, as Salt
/// does before it shows some things. A tuple that is a key would become a list, which none can be.
pub(crate) fn decoded(value: &Value) -> Result<Value, Unfit> {
    Ok(match value {
        Value::Bytes(bytes) => std::str::from_utf8(bytes).map_or(value.clone(), Value::from),
        Value::Timestamp(_) => Value::from(value.to_str().replacen(' ', "T", 1)),
        Value::List(list) => decoded_items(&list.to_vec())?,
        Value::Tuple(items) => decoded_items(items)?,
        Value::Dict(dict) => {
            let entry = |(key, item): (Key, Value)| {
                let key = Key::try_from(decoded(&key)?).map_err(|_| Unfit)?;
                Ok((key, decoded(&item)?))
            };
            dict.into_iter().map(entry).collect::<Result<Dict, Unfit>>()?.into()
        }
        other => other.clone(),
    })
}

fn decoded_items(items: &[Value]) -> Result<Value, Unfit> {
    Ok(items.iter().map(decoded).collect::<Result<Vec<_>, _>>()?.into())
}

/// Tells Python's `needle in haystack` for the containers a setting may hold.
pub(crate) fn contains(haystack: &Value, needle: &str) -> Result<bool, Unfit> {
    match haystack {
        Value::List(list) => Ok(list.read().iter().any(|item| item == needle)),
        Value::Tuple(items) => Ok(items.iter().any(|item| item == needle)),
        Value::Dict(dict) => Ok(dict.contains(needle)),
        _ => Err(Unfit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_where_python_says() {
        let split = |text| lines(text).collect::<Vec<_>>();
        assert_eq!(split("a\r\nb\rc\n\nd\u{2028}e\x0bf"), ["a", "b", "c", "", "d", "e", "f"]);
        assert_eq!(split("a\n"), ["a"]);
        assert_eq!(split("\r\n\n"), ["", ""]);
        assert!(split("").is_empty());
        assert_eq!(lines_with_ends("a\r\nb").collect::<String>(), "a\r\nb");
    }

    #[test]
    fn centring() {
        assert_eq!(center("ab", 5), "  ab ");
        assert_eq!(center("abc", 6), " abc  ");
        assert_eq!(center("abcd", 3), "abcd");
    }

    #[test]
    fn floats() {
        assert_eq!(parse_float(" 1_000.5 "), Some(1000.5));
        assert_eq!(parse_float("_1"), None);
        assert_eq!(parse_float("1 ms"), None);
        assert_eq!(round(2.675, 2), 2.67);
        assert_eq!(round(66.666_666, 2), 66.67);
    }
}
