//! Shell-style patterns as Python's `fnmatch` reads them.
//!
//! Not the shell's globs: `*` and `?` match every character, `/` and newline included, a leading
//! dot is nothing special, `[!x]` negates and `[^x]` does not, and a backslash is an ordinary
//! character. Case counts. Compiling is linear and matching needs no regular expression, so
//! patterns need no cache: keep a [`Glob`] where one pattern meets many names.

/// A compiled pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    tokens: Vec<Token>,
    /// The pattern has no special character: plain comparison.
    literal: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Char(char),
    /// `?`
    Any,
    /// `*`
    Star,
    /// `[…]`: inclusive ranges; a set that holds nothing matches nothing (or, negated, anything).
    Set {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

impl Token {
    fn takes(&self, c: char) -> bool {
        match self {
            Self::Char(own) => *own == c,
            Self::Any => true,
            Self::Star => false,
            Self::Set { negated, ranges } => {
                ranges.iter().any(|(from, to)| (*from..=*to).contains(&c)) != *negated
            }
        }
    }
}

/// Tells whether a name matches a pattern.
pub fn fnmatch(name: &str, pattern: &str) -> bool {
    if !is_pattern(pattern) { name == pattern } else { Glob::new(pattern).matches(name) }
}

/// Tells whether a text holds any of `*`, `?`, `[`.
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

impl Glob {
    pub fn new(pattern: &str) -> Self {
        let chars: Vec<char> = pattern.chars().collect();
        let mut tokens = Vec::with_capacity(chars.len());
        let mut at = 0;
        while let Some(&c) = chars.get(at) {
            at += 1;
            match c {
                '*' if tokens.last() == Some(&Token::Star) => {}
                '*' => tokens.push(Token::Star),
                '?' => tokens.push(Token::Any),
                '[' => match closing_bracket(&chars, at) {
                    Some(end) => {
                        tokens.push(set(&chars[at..end]));
                        at = end + 1;
                    }
                    None => tokens.push(Token::Char('[')),
                },
                c => tokens.push(Token::Char(c)),
            }
        }
        let plain = tokens.iter().all(|token| matches!(token, Token::Char(_)));
        Self { tokens, literal: plain.then(|| pattern.to_owned()) }
    }

    pub fn matches(&self, name: &str) -> bool {
        match (&self.literal, self.tokens.as_slice()) {
            (Some(literal), _) => name == literal,
            (None, [Token::Star]) => true,
            (None, tokens) => walk(tokens, name),
        }
    }

    /// Returns the name this pattern stands for, if it can match no other.
    pub fn literal(&self) -> Option<&str> {
        self.literal.as_deref()
    }
}

/// Walks greedily and returns to the last star only: no exponential case.
fn walk(tokens: &[Token], name: &str) -> bool {
    let (mut token, mut at) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    loop {
        let next = name[at..].chars().next();
        match (tokens.get(token), next) {
            (Some(Token::Star), _) => {
                star = Some((token + 1, at));
                token += 1;
                continue;
            }
            (None, None) => return true,
            (Some(own), Some(c)) if own.takes(c) => {
                token += 1;
                at += c.len_utf8();
                continue;
            }
            _ => {}
        }
        let Some((after_star, from)) = star else { return false };
        let Some(c) = name[from..].chars().next() else { return false };
        star = Some((after_star, from + c.len_utf8()));
        (token, at) = (after_star, from + c.len_utf8());
    }
}

/// Finds the bracket that closes the set beginning at `from`; one that comes first is a member.
fn closing_bracket(chars: &[char], from: usize) -> Option<usize> {
    let mut at = from;
    if chars.get(at) == Some(&'!') {
        at += 1;
    }
    if chars.get(at) == Some(&']') {
        at += 1;
    }
    (at..chars.len()).find(|&index| chars[index] == ']')
}

fn set(inside: &[char]) -> Token {
    let (negated, mut rest) = match inside {
        ['!', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let mut ranges = Vec::new();
    loop {
        rest = match rest {
            [from, '-', to, rest @ ..] => {
                // A backward range is empty, not an error.
                if from <= to {
                    ranges.push((*from, *to));
                }
                rest
            }
            [one, rest @ ..] => {
                ranges.push((*one, *one));
                rest
            }
            [] => break,
        };
    }
    Token::Set { negated, ranges }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, name: &str, expected: bool) {
        assert_eq!(fnmatch(name, pattern), expected, "{pattern} on {name}");
    }

    #[test]
    fn patterns() {
        check("*", "", true);
        check("a*/c", "a/b/c", true);
        check("a*b*c", "axbxbxc", true);
        check("a*b*c", "axbxbx", false);
        check("[!a]", "^", true);
        check("[^a]", "b", false);
        check("[]-]", "]", true);
        check("[b-a]", "a", false);
        check("[!b-a]", "a", true);
        check("[abc", "[abc", true);
        check("\\*", "\\x", true);
    }

    #[test]
    fn many_stars_stay_quick() {
        let pattern = "*a".repeat(500);
        let name = "a".repeat(2000) + "b";
        check(&pattern, &name, false);
    }
}
