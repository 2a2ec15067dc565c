//! Nodegroups: names for compound targets, which may name each other as `N@other`.
//!
//! A definition without any operator, engine letter or `*` is a list of minion ids (`L@a,b`), or a
//! regular expression (`E@…`) when it holds characters only those use.

use halite_value::{Dict, Value, suggest};

use crate::error::{Error, Kind};

const OPERATORS: [&str; 5] = ["and", "or", "not", "(", ")"];

/// Returns the compound words a nodegroup stands for.
pub(crate) fn expand(name: &str, groups: &Dict) -> Result<Vec<String>, Error> {
    let (words, nested) = expand_within(name, groups, &mut Vec::new())?;
    if nested {
        return Ok(words);
    }
    // Without nesting the definition is used as it stands, not in parentheses.
    let words = words_of(name, groups)?;
    Ok(names_or_regex(&words).map_or(words, |one| vec![one]))
}

/// Returns the words in parentheses, and whether another group was named.
fn expand_within(
    name: &str,
    groups: &Dict,
    open: &mut Vec<String>,
) -> Result<(Vec<String>, bool), Error> {
    if open.iter().any(|outer| outer == name) {
        let path = format!("{} -> {name}", open.join(" -> "));
        return Err(failed(name, format!("illegal nested nodegroup \"{name}\" ({path})")));
    }
    open.push(name.to_owned());
    let words = words_of(name, groups)?;
    let mut nested = false;
    let mut expanded = vec!["(".to_owned()];
    for word in &words {
        match word.strip_prefix("N@").filter(|rest| !rest.is_empty()) {
            Some(inner) => {
                nested = true;
                let (inner_words, _) = expand_within(inner, groups, open)?;
                let inner_own = words_of(inner, groups)?;
                match names_or_regex(&inner_own) {
                    Some(one) => expanded.push(one),
                    None => expanded.extend(inner_words),
                }
            }
            None => expanded.push(word.clone()),
        }
    }
    expanded.push(")".to_owned());
    open.pop();
    Ok((expanded, nested))
}

fn words_of(name: &str, groups: &Dict) -> Result<Vec<String>, Error> {
    match groups.get(name) {
        Some(Value::Str(text)) => Ok(text.split_whitespace().map(str::to_owned).collect()),
        Some(list @ (Value::List(_) | Value::Tuple(_))) => {
            // differs: a number in the list is an id; genuine Salt fails on it.
            let items = list.items_of_sequence().unwrap_or_default();
            Ok(items.iter().map(|item| item.to_str().to_string()).collect())
        }
        Some(_) => Err(failed(name, format!("nodegroup \"{name}\" is neither a text nor a list"))),
        None => {
            let keys = groups.keys();
            let names = keys.iter().filter_map(|key| key.as_str());
            let error = failed(name, format!("unknown nodegroup \"{name}\""));
            Err(match suggest::nearest(name, names) {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None => error,
            })
        }
    }
}

fn failed(name: &str, why: String) -> Error {
    Error::new(Kind::Nodegroup(why), format!("N@{name}"))
}

fn names_or_regex(words: &[String]) -> Option<String> {
    let engine =
        |word: &str| matches!(word.as_bytes(), [letter, b'@', ..] if letter.is_ascii_uppercase());
    let is_expression =
        |word: &String| OPERATORS.contains(&&**word) || word.contains('*') || engine(word);
    if words.iter().any(is_expression) {
        return None;
    }
    let regex = words.iter().any(|word| word.contains(['(', '[', '{', '\\', '?', '}', ']', ')']));
    Some(format!("{}@{}", if regex { 'E' } else { 'L' }, words.join(",")))
}
