//! Deep merging, with Salt's strategies.
//!
//! Pillar files, defaults and `grains.filter_by` are merged by these. The second value wins;
//! neither input is changed.

use crate::{Dict, List, Value};

/// How two dicts become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Dicts are merged at every depth; other values are replaced.
    Recurse,
    /// A key both sides have becomes the list of both values; keys only in the second are dropped.
    List,
    /// Values of the second replace those of the first as wholes.
    Overwrite,
    /// As `Overwrite`; values tagged by the `yamlex` renderer would be joined.
    Aggregate,
}

impl Strategy {
    /// Returns the strategy of a configured name. `smart` depends on the renderer; unknown names
    /// mean `recurse` (Salt logs a warning then).
    pub fn named(name: &str, renderer: &str) -> Option<Self> {
        Some(match name {
            "smart" if renderer.split('|').any(|part| part.trim().starts_with("yamlex")) => {
                Self::Aggregate
            }
            "smart" | "recurse" | "none" => Self::Recurse,
            "list" => Self::List,
            "overwrite" => Self::Overwrite,
            "aggregate" => Self::Aggregate,
            _ => return None,
        })
    }
}

/// The two values cannot be merged.
#[derive(Debug, thiserror::Error)]
#[error("cannot merge a {second} into a {first}: both must be dicts")]
pub struct NotDicts {
    first: String,
    second: String,
}

/// Returns the merge of two dicts. With `merge_lists`, lists are joined without repeats.
pub fn merge(
    first: &Value,
    second: &Value,
    strategy: Strategy,
    merge_lists: bool,
) -> Result<Value, NotDicts> {
    let (Value::Dict(a), Value::Dict(b)) = (first, second) else {
        return Err(NotDicts {
            first: first.type_name().into_owned(),
            second: second.type_name().into_owned(),
        });
    };
    Ok(Value::Dict(match strategy {
        Strategy::Recurse => recurse(a, b, merge_lists),
        Strategy::List => list(a, b),
        // Templates may see it: what the first dict has is overwritten in place, and only what it
        // lacks is left to the copy that is returned.
        Strategy::Overwrite => {
            for (key, new) in b {
                if a.contains(&key) {
                    a.insert(key, new);
                }
            }
            recurse(a, b, merge_lists)
        }
        Strategy::Aggregate => {
            let merged = a.shallow_copy();
            for (key, new) in b {
                let new = if a.contains(&key) { new.deep_copy() } else { new };
                merged.insert(key, new);
            }
            merged
        }
    }))
}

/// Puts the second dict into the first, in place and at every depth. Templates rely on the change
/// being seen through every handle on the first.
pub fn update(dest: &Dict, src: &Dict, merge_lists: bool) {
    if dest.is_same(src) {
        return;
    }
    for (key, new) in src {
        match (dest.get(&key), &new) {
            (Some(Value::Dict(old)), Value::Dict(new)) => update(&old, new, merge_lists),
            (Some(Value::List(old)), Value::List(new)) if merge_lists => {
                dest.insert(key, joined(&old, new));
            }
            _ => {
                dest.insert(key, new);
            }
        }
    }
}

fn recurse(a: &Dict, b: &Dict, merge_lists: bool) -> Dict {
    let merged = a.shallow_copy();
    for (key, new) in b {
        let value = match (merged.get(&key), &new) {
            (Some(Value::Dict(old)), Value::Dict(new)) => {
                Value::Dict(recurse(&old, new, merge_lists))
            }
            (Some(Value::List(old)), Value::List(new)) if merge_lists => {
                Value::List(joined(&old, new))
            }
            _ => new,
        };
        merged.insert(key, value);
    }
    merged
}

fn joined(a: &List, b: &List) -> List {
    let all: List = a.to_vec().into();
    // Compared with the first list only: repeats within the second stay, as in Salt.
    all.extend(b.into_iter().filter(|item| !a.contains(item)));
    all
}

fn list(a: &Dict, b: &Dict) -> Dict {
    a.into_iter()
        .map(|(key, value)| match b.get(&key) {
            Some(other) => (key, Value::from(vec![value, other])),
            None => (key, value),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{dict, list};

    fn check(strategy: &str, merge_lists: bool, expected: &Value) {
        let a = dict! { "a" => 1, "l" => list![1, 2], "d" => dict! { "x" => 1 }, "only" => 5 };
        let b = dict! { "a" => 2, "l" => list![2, 3], "d" => dict! { "y" => 2 }, "new" => 6 };
        let strategy = Strategy::named(strategy, "jinja|yaml").expect("known");
        assert_eq!(&merge(&a, &b, strategy, merge_lists).expect("dicts"), expected);
        let after = if strategy == Strategy::Overwrite { 2 } else { 1 };
        assert_eq!(a.get("a"), Some(Value::Int(after)), "only overwriting changes the first input");
        assert!(!a.get("d").is_some_and(|d| d.get("x").is_some() && d.get("y").is_some()));
    }

    #[test]
    fn strategies() {
        let both = dict! { "x" => 1, "y" => 2 };
        check(
            "smart",
            false,
            &dict! { "a" => 2, "l" => list![2, 3], "d" => &both, "only" => 5, "new" => 6 },
        );
        check(
            "recurse",
            true,
            &dict! { "a" => 2, "l" => list![1, 2, 3], "d" => &both, "only" => 5, "new" => 6 },
        );
        check(
            "overwrite",
            false,
            &dict! { "a" => 2, "l" => list![2, 3], "d" => dict! { "y" => 2 }, "only" => 5, "new" => 6 },
        );
        let d = list![dict! { "x" => 1 }, dict! { "y" => 2 }];
        check(
            "list",
            false,
            &dict! { "a" => list![1, 2], "l" => list![list![1, 2], list![2, 3]], "d" => d, "only" => 5 },
        );
    }

    #[test]
    fn only_dicts_merge() {
        let error = merge(&Value::Int(1), &Value::dict(), Strategy::Recurse, false).unwrap_err();
        assert_eq!(error.to_string(), "cannot merge a dict into a int: both must be dicts");
    }
}
