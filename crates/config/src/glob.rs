//! Shell patterns for one part of a path: `*`, `?` and `[a-z]`.

/// Tells whether a name fits a shell pattern.
#[must_use]
pub fn fits(pattern: &str, name: &str) -> bool {
    let chars = |text: &str| text.chars().collect::<Vec<_>>();
    matches(&chars(pattern), &chars(name))
}

fn matches(pattern: &[char], name: &[char]) -> bool {
    match pattern {
        [] => name.is_empty(),
        ['*', rest @ ..] => (0..=name.len()).any(|at| matches(rest, &name[at..])),
        ['?', rest @ ..] => !name.is_empty() && matches(rest, &name[1..]),
        ['[', rest @ ..] => {
            // A bracket may hold one as its first letter; without an end it is just a bracket.
            let skip = usize::from(rest.first() == Some(&'!'));
            let end = (skip + 1..rest.len()).find(|&at| rest[at] == ']');
            match (end, name.split_first()) {
                (Some(end), Some((first, others))) => {
                    in_set(&rest[skip..end], *first) != (skip == 1)
                        && matches(&rest[end + 1..], others)
                }
                (None, Some(('[', others))) => matches(rest, others),
                _ => false,
            }
        }
        [letter, rest @ ..] => name.first() == Some(letter) && matches(rest, &name[1..]),
    }
}

fn in_set(set: &[char], letter: char) -> bool {
    match set {
        [] => false,
        [from, '-', to, rest @ ..] => (*from..=*to).contains(&letter) || in_set(rest, letter),
        [one, rest @ ..] => *one == letter || in_set(rest, letter),
    }
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn patterns() {
        assert!(fits("*.conf", "a.conf") && !fits("*.conf", "a.conf.bak"));
        assert!(fits("[a-c]?.conf", "b1.conf") && !fits("[!a-c]*", "b"));
        assert!(fits("[]]x", "]x") && fits("[x", "[x") && fits("a*b*c", "aXbYc"));
    }
}
