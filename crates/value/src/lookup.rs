//! `a:b:c` look-ups into nested data, as pillar, grains and config keys are written.

use crate::{Dict, Key, Value, suggest};

/// Returns what stands at a path of dict keys and list positions; `None` if nothing does.
///
/// On a list, a step is looked up in the dicts of the list (as a number, if it is one), then taken
/// as a position. On a dict, a step that is not found as text is tried as the number, bool or None
/// it spells.
pub fn traverse(data: &Value, path: &str, delimiter: &str) -> Option<Value> {
    traverse_steps(data, path.split(delimiter))
}

/// As [`traverse`], for a path already in pieces.
pub fn traverse_steps<'a>(data: &Value, steps: impl IntoIterator<Item = &'a str>) -> Option<Value> {
    steps.into_iter().try_fold(data.clone(), |at, step| match &at {
        Value::Dict(dict) => from_dict(dict, step),
        Value::List(_) | Value::Tuple(_) => from_sequence(&at.items_of_sequence()?, step),
        _ => None,
    })
}

/// As [`traverse`], through dicts only.
pub fn traverse_dict(data: &Value, path: &str, delimiter: &str) -> Option<Value> {
    path.split(delimiter).try_fold(data.clone(), |at, step| at.as_dict()?.get(step))
}

/// Returns the path that one where nothing stands was most likely meant to be: its first step that
/// leads nowhere, replaced by the nearest key.
pub fn near_path(data: &Value, path: &str, delimiter: &str) -> Option<String> {
    let steps: Vec<&str> = path.split(delimiter).collect();
    let wrong = (0..steps.len())
        .find(|end| traverse_steps(data, steps[..=*end].iter().copied()).is_none())?;
    let at = traverse_steps(data, steps[..wrong].iter().copied())?;
    let keys: Vec<String> = at.as_dict()?.keys().iter().map(ToString::to_string).collect();
    let near = suggest::nearest(steps[wrong], keys.iter().map(String::as_str))?;
    let meant: Vec<&str> = steps[..wrong]
        .iter()
        .copied()
        .chain([near])
        .chain(steps[wrong + 1..].iter().copied())
        .collect();
    traverse_steps(data, meant.iter().copied()).map(|_| meant.join(delimiter))
}

fn from_dict(dict: &Dict, step: &str) -> Option<Value> {
    dict.get(step).or_else(|| dict.get(&spelt(step)?))
}

fn from_sequence(items: &[Value], step: &str) -> Option<Value> {
    match step.trim().parse::<i64>() {
        Ok(index) => {
            let key = Key::from(index);
            let embedded = items.iter().find_map(|item| item.as_dict()?.get(&key));
            if embedded.is_some() {
                return embedded;
            }
            let index = if index < 0 { index + items.len() as i64 } else { index };
            items.get(usize::try_from(index).ok()?).cloned()
        }
        Err(_) => items.iter().find_map(|item| item.get(step)),
    }
}

fn spelt(step: &str) -> Option<Key> {
    let value = match step {
        "True" | "true" | "TRUE" | "Yes" | "yes" | "YES" | "On" | "on" | "ON" => Value::Bool(true),
        "False" | "false" | "FALSE" | "No" | "no" | "NO" | "Off" | "off" | "OFF" => {
            Value::Bool(false)
        }
        "None" | "null" | "Null" | "NULL" | "~" => Value::Null,
        _ => step
            .parse::<i64>()
            .map(Value::Int)
            .or_else(|_| step.parse::<f64>().map(Value::Float))
            .ok()?,
    };
    Key::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{dict, list};

    fn check(path: &str, expected: impl Into<Value>) {
        let data = dict! {
            "a" => dict! { "b" => list![dict! { "c" => 5 }, dict! { "e" => 6 }, list![1]],
                           2 => dict! { "q" => 2 } },
            "s" => "str",
            "n" => list![dict! { 7 => "seven" }],
        };
        assert_eq!(
            traverse(&data, path, ":").unwrap_or(Value::from("DEF")),
            expected.into(),
            "{path}"
        );
    }

    #[test]
    fn paths() {
        check("a:b:0:c", 5);
        check("a:b:c", 5);
        check("a:b:e", 6);
        check("a:b:-1", list![1]);
        check("a:b:01", dict! { "e" => 6 });
        check("a:b:9", "DEF");
        check("n:7", "seven");
        check("n:0", dict! { 7 => "seven" });
        check("a:2:q", 2);
        check("s", "str");
        check("s:0", "DEF");
        check("", "DEF");
        check("nope", "DEF");
    }

    #[test]
    fn slips_in_paths() {
        let data = dict! { "nginx" => dict! { "conf" => 1, "site" => dict! { "port" => 2 } } };
        let near = |path| near_path(&data, path, ":");
        assert_eq!(near("nginx:cnof").as_deref(), Some("nginx:conf"));
        assert_eq!(near("ngnix:site:port").as_deref(), Some("nginx:site:port"));
        assert_eq!(near("nginx:conf:deep"), None);
        assert_eq!(near("zebra"), None);
    }
}
