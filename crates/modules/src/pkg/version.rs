//! Comparing package versions as dpkg, rpm, pacman and apk do.
//!
//! Each scheme cuts a version into runs of digits and of other characters; they differ in what
//! sorts before what. Nothing here runs a program.

use std::cmp::Ordering;

/// Compares two Debian versions: `[epoch:]upstream[-revision]`.
pub fn compare_deb(one: &str, other: &str) -> Ordering {
    let (one, other) = (Deb::of(one), Deb::of(other));
    one.epoch
        .cmp(&other.epoch)
        .then_with(|| deb_part(one.upstream, other.upstream))
        .then_with(|| deb_part(one.revision, other.revision))
}

struct Deb<'a> {
    epoch: u64,
    upstream: &'a str,
    revision: &'a str,
}

impl<'a> Deb<'a> {
    fn of(text: &'a str) -> Self {
        let text = text.trim();
        let (epoch, rest) = text.split_once(':').unwrap_or(("0", text));
        let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, ""));
        Self { epoch: epoch.parse().unwrap_or(0), upstream, revision }
    }
}

/// A tilde sorts before the end, the end before letters, letters before everything else.
fn deb_weight(byte: Option<u8>) -> i32 {
    match byte {
        Some(b'~') => -1,
        None => 0,
        Some(byte) if byte.is_ascii_digit() => 0,
        Some(byte) if byte.is_ascii_alphabetic() => i32::from(byte),
        Some(byte) => i32::from(byte) + 256,
    }
}

fn deb_part(one: &str, other: &str) -> Ordering {
    let (mut one, mut other) = (one.as_bytes(), other.as_bytes());
    let is_text = |bytes: &[u8]| bytes.first().is_some_and(|byte| !byte.is_ascii_digit());
    while !one.is_empty() || !other.is_empty() {
        while is_text(one) || is_text(other) {
            let order = deb_weight(one.first().copied()).cmp(&deb_weight(other.first().copied()));
            if order.is_ne() {
                return order;
            }
            one = one.get(1..).unwrap_or_default();
            other = other.get(1..).unwrap_or_default();
        }
        let (a, b) = (digits(&mut one), digits(&mut other));
        let order = number_order(a, b);
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

/// Takes the digits in front.
fn digits<'a>(bytes: &mut &'a [u8]) -> &'a [u8] {
    let end = bytes.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(bytes.len());
    let (number, rest) = bytes.split_at(end);
    *bytes = rest;
    number
}

/// Compares numbers of any length.
fn number_order(one: &[u8], other: &[u8]) -> Ordering {
    let strip = |mut number: &[u8]| -> Vec<u8> {
        while let Some((b'0', rest)) = number.split_first() {
            number = rest;
        }
        number.to_vec()
    };
    let (one, other) = (strip(one), strip(other));
    one.len().cmp(&other.len()).then_with(|| one.cmp(&other))
}

/// Compares two rpm versions: `[epoch:]version[-release]`. A release only one of them has does not
/// count, so that `3.2` is satisfied by `3.2-1`.
pub fn compare_rpm(one: &str, other: &str) -> Ordering {
    let parts = |text: &str| -> (u64, String, Option<String>) {
        let text = text.trim();
        let (epoch, rest) = text.split_once(':').unwrap_or(("0", text));
        let (version, release) = match rest.rsplit_once('-') {
            Some((version, release)) => (version.to_owned(), Some(release.to_owned())),
            None => (rest.to_owned(), None),
        };
        (epoch.parse().unwrap_or(0), version, release.filter(|release| !release.is_empty()))
    };
    let (one, other) = (parts(one), parts(other));
    one.0.cmp(&other.0).then_with(|| rpm_part(&one.1, &other.1)).then_with(|| {
        match (&one.2, &other.2) {
            (Some(one), Some(other)) => rpm_part(one, other),
            _ => Ordering::Equal,
        }
    })
}

/// `rpmvercmp`: tilde before everything, caret after the end, numbers after letters.
pub fn rpm_part(one: &str, other: &str) -> Ordering {
    if one == other {
        return Ordering::Equal;
    }
    let (mut one, mut other) = (one.as_bytes(), other.as_bytes());
    let matters = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'~' || byte == b'^';
    let skip = |bytes: &mut &[u8]| {
        while let Some((byte, rest)) = bytes.split_first() {
            if matters(*byte) {
                break;
            }
            *bytes = rest;
        }
    };
    loop {
        skip(&mut one);
        skip(&mut other);
        match (one.first(), other.first()) {
            (Some(b'~'), Some(b'~')) => {}
            (Some(b'~'), _) => return Ordering::Less,
            (_, Some(b'~')) => return Ordering::Greater,
            (Some(b'^'), Some(b'^')) => {}
            (Some(b'^'), None) => return Ordering::Greater,
            (None, Some(b'^')) => return Ordering::Less,
            (Some(b'^'), _) => return Ordering::Less,
            (_, Some(b'^')) => return Ordering::Greater,
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(a), Some(b)) => {
                let order = match (a.is_ascii_digit(), b.is_ascii_digit()) {
                    (true, true) => number_order(digits(&mut one), digits(&mut other)),
                    (true, false) => Ordering::Greater,
                    (false, true) => Ordering::Less,
                    (false, false) => letters(&mut one).cmp(letters(&mut other)),
                };
                if order.is_ne() {
                    return order;
                }
                continue;
            }
        }
        one = one.get(1..).unwrap_or_default();
        other = other.get(1..).unwrap_or_default();
    }
}

fn letters<'a>(bytes: &mut &'a [u8]) -> &'a [u8] {
    let end = bytes.iter().position(|byte| !byte.is_ascii_alphabetic()).unwrap_or(bytes.len());
    let (word, rest) = bytes.split_at(end);
    *bytes = rest;
    word
}

/// Compares two apk versions: dotted numbers, a letter, `_alpha` … `_p`, `-rN`.
pub fn compare_apk(one: &str, other: &str) -> Ordering {
    let parts = |text: &str| -> (String, Vec<(i32, String)>, u64) {
        let (rest, revision) = match text.rsplit_once("-r") {
            Some((rest, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                (rest, number.parse().unwrap_or(0))
            }
            _ => (text, 0),
        };
        let mut pieces = rest.split('_');
        let base = pieces.next().unwrap_or_default().to_owned();
        let suffixes = pieces.map(|piece| {
            let word = piece.trim_end_matches(|char: char| char.is_ascii_digit());
            let weight = match word {
                "alpha" => -4,
                "beta" => -3,
                "pre" => -2,
                "rc" => -1,
                _ => 1,
            };
            (weight, piece[word.len()..].to_owned())
        });
        (base, suffixes.collect(), revision)
    };
    let (one, other) = (parts(one), parts(other));
    deb_part(&one.0, &other.0)
        .then_with(|| {
            let longest = one.1.len().max(other.1.len());
            (0..longest)
                .map(|at| {
                    let none = (0, String::new());
                    let (a, b) = (one.1.get(at).unwrap_or(&none), other.1.get(at).unwrap_or(&none));
                    a.0.cmp(&b.0).then_with(|| number_order(a.1.as_bytes(), b.1.as_bytes()))
                })
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal)
        })
        .then_with(|| one.2.cmp(&other.2))
}

/// Splits `>=1.2` into operator and version, as Salt reads it.
pub fn split_comparison(text: &str) -> (&str, &str) {
    const OPERATORS: [&str; 10] = ["<=>", "!=", ">=", "<=", ">>", "<<", "<>", ">", "<", "="];
    for operator in OPERATORS {
        if let Some(rest) = text.strip_prefix(operator) {
            let rest = rest.strip_prefix(char::is_whitespace).unwrap_or(rest);
            if !rest.is_empty() && !rest.contains(['<', '>', '=']) {
                return (operator, rest);
            }
        }
    }
    ("", text)
}

/// Tells whether an order satisfies an operator. An operator Salt does not know is never satisfied.
pub fn satisfies(order: Ordering, operator: &str) -> bool {
    match operator {
        "==" | "=" | "" => order.is_eq(),
        "!=" => order.is_ne(),
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        ">=" => order.is_ge(),
        _ => false,
    }
}

/// The version without `epoch:`.
pub fn without_epoch(version: &str) -> &str {
    version.split_once(':').map_or(version, |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(compare: fn(&str, &str) -> Ordering, cases: &[(&str, &str, Ordering)]) {
        for (one, other, expected) in cases {
            assert_eq!(compare(one, other), *expected, "{one} {other}");
            assert_eq!(compare(other, one), expected.reverse(), "{other} {one}");
        }
    }

    #[test]
    fn debian() {
        use Ordering::{Equal, Greater, Less};
        check(
            compare_deb,
            &[
                ("1.0", "1.0", Equal),
                ("1.0", "1.0-0", Equal),
                ("0.2-001", "0.2.0.1-002", Less),
                ("1.0~rc1", "1.0", Less),
                ("1.0~rc1", "1.0~rc1+b1", Less),
                ("1:1.0", "2.0", Greater),
                ("1.2.3", "1.10", Less),
                ("1.0a", "1.0", Greater),
                ("1.0a", "1.0+", Less),
                ("2.10-3", "2.10-3+b1", Less),
                ("1.0-1ubuntu2", "1.0-1ubuntu10", Less),
                ("007", "7", Equal),
                ("1.0-", "1.0", Equal),
                ("9999999999999999999999", "10000000000000000000000", Less),
            ],
        );
    }

    #[test]
    fn rpm() {
        use Ordering::{Equal, Greater, Less};
        check(
            compare_rpm,
            &[
                ("1.0", "1.0", Equal),
                ("3.2", "3.2-1", Equal),
                ("1:1.0-1", "2.0-1", Greater),
                ("0:1.0-1", "1.0-1", Equal),
                ("1.0-1.el8", "1.0-2.el8", Less),
                ("2.0.1", "2.0.1a", Less),
                ("5.5p1", "5.5p10", Less),
                ("xyz10", "xyz10.1", Less),
                ("xyz.4", "8", Less),
                ("1.0~rc1", "1.0", Less),
                ("1.0^git1", "1.0", Greater),
                ("1.0^git1", "1.01", Less),
                ("1.0010", "1.9", Greater),
                ("1.05", "1.5", Equal),
            ],
        );
    }

    #[test]
    fn apk() {
        use Ordering::{Greater, Less};
        check(
            compare_apk,
            &[
                ("1.2.3-r0", "1.2.3-r1", Less),
                ("1.2_alpha1", "1.2", Less),
                ("1.2_p1", "1.2", Greater),
                ("1.10", "1.9", Greater),
                ("1.2a", "1.2b", Less),
            ],
        );
    }

    #[test]
    fn operators() {
        assert_eq!(split_comparison(">=1.2"), (">=", "1.2"));
        assert_eq!(split_comparison("> 1.2"), (">", "1.2"));
        assert_eq!(split_comparison("=1.2"), ("=", "1.2"));
        assert_eq!(split_comparison("1.2"), ("", "1.2"));
        assert_eq!(split_comparison("==1.2"), ("", "==1.2"));
        assert!(satisfies(Ordering::Less, "!=") && !satisfies(Ordering::Less, "~"));
    }
}
