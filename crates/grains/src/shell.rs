//! Words as a POSIX shell splits them; what Python calls `shlex.split`.

/// Splits a text into words, quotes and backslashes taken off. What is not closed at the end is
/// taken as if it were.
pub(crate) fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (Some(open), _) if letter == open => quote = None,
            (None, '\\') => word.get_or_insert_default().extend(letters.next()),
            // Within double quotes a backslash only escapes these two.
            (Some('"'), '\\') if letters.peek().is_some_and(|next| matches!(next, '"' | '\\')) => {
                word.get_or_insert_default().extend(letters.next());
            }
            (None, _) if letter.is_ascii_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::split;

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(split(text), expected, "{text}");
    }

    #[test]
    fn words() {
        check(" a  b\n", &["a", "b"]);
        check(r#"a="b c" 'd e'f"#, &["a=b c", "d ef"]);
        check(r#"a\ b "c\"d\e""#, &["a b", r#"c"d\e"#]);
        check(r#"'' x"#, &["", "x"]);
        check(r#"a 'b"#, &["a", "b"]);
        check("", &[]);
    }
}
