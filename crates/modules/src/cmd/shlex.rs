//! Splitting a command line into words, as Python's `shlex.split` does, and quoting one word.

/// Splits by POSIX rules: quotes, backslashes, no comments, no expansions.
pub fn split(text: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            ' ' | '\t' | '\r' | '\n' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some('\'') => break,
                        Some(char) => word.push(char),
                        None => return Err("No closing quotation"),
                    }
                }
            }
            '"' => double_quoted(&mut chars, word.get_or_insert_default())?,
            '\\' => match chars.next() {
                Some(char) => word.get_or_insert_default().push(char),
                None => return Err("No escaped character"),
            },
            char => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    Ok(words)
}

fn double_quoted(chars: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), &'static str> {
    loop {
        match chars.next() {
            Some('"') => return Ok(()),
            Some('\\') => match chars.next() {
                Some(char @ ('"' | '\\')) => word.push(char),
                Some(char) => word.extend(['\\', char]),
                None => return Err("No escaped character"),
            },
            Some(char) => word.push(char),
            None => return Err("No closing quotation"),
        }
    }
}

/// Quotes a word for a POSIX shell, if it needs quotes.
pub fn quote(word: &str) -> String {
    let is_safe = |char: char| char.is_ascii_alphanumeric() || "@%+=:,./-_".contains(char);
    if !word.is_empty() && word.chars().all(is_safe) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\"'\"'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(split(text).unwrap(), expected, "{text}");
    }

    #[test]
    fn words() {
        check("", &[]);
        check("  a  b\tc\nd ", &["a", "b", "c", "d"]);
        check(r#"a "b c" 'd e'f"#, &["a", "b c", "d ef"]);
        check(r#""a\"b\n" 'c\d' e\ f"#, &[r#"a"b\n"#, r"c\d", "e f"]);
        check("a '' \"\"", &["a", "", ""]);
        check("a # b", &["a", "#", "b"]);
        assert_eq!(split("a 'b").unwrap_err(), "No closing quotation");
        assert_eq!(split("a\\").unwrap_err(), "No escaped character");
    }

    #[test]
    fn quoting() {
        assert_eq!(quote("a/b.c"), "a/b.c");
        assert_eq!(quote("a b"), "'a b'");
        assert_eq!(quote(""), "''");
        assert_eq!(quote("it's"), r#"'it'"'"'s'"#);
    }
}
