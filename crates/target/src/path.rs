//! `a:b:c` matches into grains and pillar: a path into nested data, then a pattern for what is there.
//!
//! Which part is path and which is pattern is not marked: `a:b:c` may mean "`c` under `a:b`", or
//! "`b:c` under `a`". Every split is tried, the longest path first. The pattern is compared with
//! text (`True` for true), without regard to case; with each member of a list; and with the keys of
//! a dict, or further down its values when the pattern begins with `*:`.
//!
//! Surprising, and kept because targets in the field rely on it: in a dict found on the way the
//! rest is split at `:` whatever delimiter was asked for; the pattern is put in lower case before
//! it is compiled, so that `\D` in a regular expression means `\d`.

use std::{borrow::Cow, cell::Cell, sync::OnceLock};

use halite_value::{Dict, Value, lookup};

use crate::{fnmatch::Glob, re::Regex};

/// Comparisons after which a match is given up. Wildcards over deep data multiply, and the data
/// comes from minions.
const FUEL: u32 = 200_000;

/// Steps in a path at most; what follows is one step. Each may cost a level of the stack.
const MAX_STEPS: usize = 64;

/// How the last part is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Glob,
    Regex,
    Exact,
}

/// A compiled `a:b:c` pattern.
#[derive(Debug)]
pub struct PathPattern {
    parts: Vec<String>,
    colons: bool,
    how: How,
    /// One for each part: what stands from it to the end.
    tails: Vec<Tail>,
}

/// The end of a pattern, compiled when first needed: most are not.
#[derive(Debug)]
struct Tail {
    text: String,
    test: OnceLock<Test>,
    /// The same text split at `:`, when the pattern as a whole was split elsewhere.
    with_colons: OnceLock<Box<PathPattern>>,
}

#[derive(Debug)]
enum Test {
    Glob(Glob),
    Regex(Regex),
    Exact(String),
    /// A regular expression that does not compile.
    Never,
}

impl Test {
    fn new(pattern: &str, how: How) -> Self {
        let pattern = pattern.to_lowercase();
        match how {
            How::Glob => Self::Glob(Glob::new(&pattern)),
            How::Regex => Regex::new(&pattern).map_or(Self::Never, Self::Regex),
            How::Exact => Self::Exact(pattern),
        }
    }

    fn takes(&self, lower: &str) -> bool {
        match self {
            Self::Glob(glob) => glob.matches(lower),
            Self::Regex(regex) => regex.matches(lower),
            Self::Exact(own) => own == lower,
            Self::Never => false,
        }
    }
}

impl PathPattern {
    pub fn new(pattern: &str, delimiter: &str, how: How) -> Self {
        let parts: Vec<String> = if delimiter.is_empty() {
            vec![pattern.to_owned()]
        } else {
            pattern.splitn(MAX_STEPS, delimiter).map(str::to_owned).collect()
        };
        let tail = |text| Tail { text, test: OnceLock::new(), with_colons: OnceLock::new() };
        let tails = (0..parts.len()).map(|from| tail(parts[from..].join(delimiter))).collect();
        Self { parts, colons: delimiter == ":", how, tails }
    }

    /// Tells whether the pattern can match anything: it holds the delimiter.
    pub fn has_value(&self) -> bool {
        self.parts.len() > 1
    }

    /// Returns the first step, which every match must find at the top of the data; `None` if it is
    /// a wildcard.
    pub fn first(&self) -> Option<&str> {
        self.parts.first().map(String::as_str).filter(|first| *first != "*")
    }

    /// Tells whether the pattern is one key and one value: then [`Self::value_matches`] alone
    /// decides about texts and lists of texts under that key.
    pub fn is_flat(&self) -> bool {
        self.parts.len() == 2 && self.first().is_some()
    }

    /// Tells whether the last part of a flat pattern takes a value, given as lower-case text.
    pub fn value_matches(&self, lower: &str) -> bool {
        self.tails.last().is_some_and(|tail| self.test(tail).takes(lower))
    }

    /// Returns the value of a flat pattern if only this very text (in lower case) can match.
    pub fn value_literal(&self) -> Option<&str> {
        match self.test(self.tails.last()?) {
            Test::Exact(text) => Some(text),
            Test::Glob(glob) => glob.literal(),
            Test::Regex(_) | Test::Never => None,
        }
    }

    pub fn matches(&self, data: &Dict) -> bool {
        let fuel = Cell::new(FUEL);
        self.anywhere(data, 0, &fuel)
    }

    fn test<'a>(&self, tail: &'a Tail) -> &'a Test {
        tail.test.get_or_init(|| Test::new(&tail.text, self.how))
    }

    /// Tries every split of the parts from `from` on.
    fn anywhere(&self, data: &Dict, from: usize, fuel: &Cell<u32>) -> bool {
        let count = self.parts.len() - from;
        (1..count).rev().any(|steps| {
            if steps == 1 && self.parts[from] == "*" {
                return self.under_dict(data, from, fuel);
            }
            let tail = from + steps;
            match at(data, &self.parts[from..tail]) {
                None => false,
                Some(Value::Dict(dict)) => !dict.is_empty() && self.under_dict(&dict, tail, fuel),
                Some(found) => match found.items_of_sequence() {
                    Some(members) => members.iter().any(|member| {
                        member.as_dict().is_some_and(|dict| self.under_dict(dict, tail, fuel))
                            || self.takes(member, tail, fuel)
                    }),
                    None => self.takes(&found, tail, fuel),
                },
            }
        })
    }

    fn under_dict(&self, dict: &Dict, tail: usize, fuel: &Cell<u32>) -> bool {
        if self.colons {
            self.under_dict_by_colons(dict, tail, fuel)
        } else {
            let tail = &self.tails[tail];
            let make = || Box::new(Self::new(&tail.text, ":", self.how));
            tail.with_colons.get_or_init(make).under_dict_by_colons(dict, 0, fuel)
        }
    }

    fn under_dict_by_colons(&self, dict: &Dict, from: usize, fuel: &Cell<u32>) -> bool {
        let wildcard = self.parts[from] == "*" && from + 1 < self.parts.len();
        let from = if wildcard { from + 1 } else { from };
        let text = self.tails[from].text.as_str();
        if !spend(fuel) {
            return false;
        }
        text == "*"
            || dict.contains(text)
            || dict.read().keys().any(|key| self.takes(key, from, fuel))
            || self.anywhere(dict, from, fuel)
            || (wildcard && dict.values().iter().any(|value| self.below(value, from, fuel)))
    }

    fn below(&self, value: &Value, from: usize, fuel: &Cell<u32>) -> bool {
        match value {
            Value::Dict(dict) => self.under_dict_by_colons(dict, from, fuel),
            Value::List(list) => list.into_iter().any(|item| self.takes(&item, from, fuel)),
            other => self.takes(other, from, fuel),
        }
    }

    fn takes(&self, value: &Value, tail: usize, fuel: &Cell<u32>) -> bool {
        spend(fuel) && self.test(&self.tails[tail]).takes(&lower_text(value))
    }
}

/// Returns what stands at a path; a first step that is a plain key needs no copy of the data.
fn at(data: &Dict, path: &[String]) -> Option<Value> {
    let (first, rest) = path.split_first()?;
    let rest = rest.iter().map(String::as_str);
    match data.get(first.as_str()) {
        Some(found) => lookup::traverse_steps(&found, rest),
        None => {
            let path = std::iter::once(first.as_str()).chain(rest);
            lookup::traverse_steps(&Value::from(data), path)
        }
    }
}

/// Returns a value as patterns see it: Python's `str`, in lower case.
pub(crate) fn lower_text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Str(text) if text.bytes().all(|b| b.is_ascii() && !b.is_ascii_uppercase()) => {
            Cow::Borrowed(text)
        }
        other => Cow::Owned(other.to_str().to_lowercase()),
    }
}

fn spend(fuel: &Cell<u32>) -> bool {
    match fuel.get().checked_sub(1) {
        Some(left) => {
            fuel.set(left);
            true
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use halite_value::{dict, list};

    use super::*;

    fn check(pattern: &str, how: How, expected: bool) {
        let data = dict! {
            "os" => "Ubuntu",
            "nested" => dict! { "a" => dict! { "b" => list!["x", 2], "c" => true } },
            "path" => "a:b:c",
        };
        let pattern_ = PathPattern::new(pattern, ":", how);
        assert_eq!(pattern_.matches(data.as_dict().expect("dict")), expected, "{pattern}");
    }

    #[test]
    fn splits_are_tried_from_the_end() {
        check("os:ubuntu", How::Glob, true);
        check("nested:a:b:2", How::Exact, true);
        check("nested:a:c:True", How::Glob, true);
        check("nested:*:b", How::Glob, true);
        check("path:a:b:c", How::Exact, true);
        check("path:a:b", How::Exact, false);
        check("path:a:b", How::Regex, true);
        check("os:[", How::Regex, false);
    }

    #[test]
    fn wildcards_over_deep_data_end() {
        let mut data = dict! { "k" => "v" };
        for _ in 0..14 {
            data = dict! { "a" => &data, "b" => &data, "c" => data };
        }
        let pattern = PathPattern::new(&"*:".repeat(40), ":", How::Glob);
        let start = std::time::Instant::now();
        assert!(!pattern.matches(data.as_dict().expect("dict")));
        assert!(start.elapsed().as_secs() < 3);
    }
}
