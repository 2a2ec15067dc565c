//! Versions as states ask for them: `1.2`, `>=1.2,<2`, `1.20.*`.

use halite_modules::pkg::{
    Provider,
    version::{satisfies, split_comparison},
};

/// Operator and version of each condition.
fn conditions(text: &str) -> Vec<(String, String)> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    let one = |part: &str| {
        let (operator, version) = split_comparison(part.trim());
        let operator = if matches!(operator, "" | "=") { "==" } else { operator };
        (operator.to_owned(), version.to_owned())
    };
    text.split(',').map(one).collect()
}

/// Tells whether an exact version is asked for.
pub(super) fn is_exact(text: &str) -> bool {
    conditions(text).iter().any(|(operator, _)| operator == "==")
}

/// Tells whether one of the versions meets all conditions.
pub(super) fn fulfils(
    provider: &dyn Provider,
    versions: &[String],
    text: &str,
    ignore_epoch: Option<bool>,
    allow_updates: bool,
) -> bool {
    let conditions = conditions(text);
    versions.iter().any(|own| {
        conditions.iter().all(|(operator, wanted)| {
            let newer_will_do = allow_updates && conditions.len() == 1 && operator == "==";
            let operator = if newer_will_do { ">=" } else { operator };
            // Without an epoch in the condition, an exact match need not have one either.
            let ignore =
                ignore_epoch.unwrap_or(!operator.contains(['<', '>']) && !wanted.contains(':'));
            (operator == "==" && glob(own, wanted))
                || satisfies(provider.order(own, wanted, ignore), operator)
        })
    })
}

/// Shell-style matching; most versions hold none.
fn glob(version: &str, pattern: &str) -> bool {
    let (version, pattern): (Vec<char>, Vec<char>) =
        (version.chars().collect(), pattern.chars().collect());
    matches(&version, &pattern)
}

fn matches(text: &[char], pattern: &[char]) -> bool {
    let Some((first, rest)) = pattern.split_first() else { return text.is_empty() };
    match first {
        '*' => (0..=text.len()).any(|at| matches(&text[at..], rest)),
        '?' => text.split_first().is_some_and(|(_, more)| matches(more, rest)),
        char => text.split_first().is_some_and(|(own, more)| own == char && matches(more, rest)),
    }
}

#[cfg(test)]
mod tests {
    use halite_testkit::Kit;

    use super::*;

    fn check(versions: &[&str], text: &str, ignore: Option<bool>, updates: bool, expected: bool) {
        let kit = Kit::new();
        let provider = halite_modules::pkg::provider(&kit.cx).unwrap();
        let versions: Vec<String> = versions.iter().map(|text| (*text).to_owned()).collect();
        assert_eq!(fulfils(provider, &versions, text, ignore, updates), expected, "{text}");
    }

    #[test]
    fn versions() {
        check(&["1.2-1"], "1.2-1", None, false, true);
        check(&["1.2-1"], "1.2", None, false, false);
        check(&["1.2-1"], "1.2*", None, false, true);
        check(&["1.2-1"], "=1.2-1", None, false, true);
        check(&["1.2-1"], ">=1.2", None, false, true);
        check(&["1.2-1"], ">=1.2,<1.3", None, false, true);
        check(&["1.3"], ">=1.2,<1.3", None, false, false);
        check(&["1:1.2"], "1.2", None, false, true);
        check(&["1:1.2"], "1.2", Some(false), false, false);
        check(&["1.3"], "1.2", None, true, true);
        check(&["1.3", "1.2"], "1.2", None, false, true);
        check(&[], "1.2", None, false, false);
    }
}
