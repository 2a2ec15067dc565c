//! `survey`: the same question to many minions, the answers grouped.

use halite_client::Job;
use halite_modules::file::diff::{Layout, unified_lines};
use halite_spec::{Cx, Error, Rest, Result, function, module};
use halite_value::{Dict, Value, dict};

use crate::master;

module! {
    /// The same question to many minions, the answers grouped.
    "survey": hash, diff,
}

/// One answer, and who gave it.
struct Pool {
    ids: Vec<String>,
    result: String,
}

/// Asks, and groups equal answers; the smallest group first (`survey_sort=up`), or the largest.
fn pools(cx: &Cx, rest: &Rest) -> Result<Vec<Pool>> {
    let [tgt, fun, arg @ ..] = rest.args.as_slice() else {
        return Err(Error::invalid("a target and a function are needed"));
    };
    let option = |name: &str| rest.kwargs.get(name).map(|value| value.to_str());
    let kind =
        if option("tgt_type").is_some_and(|kind| kind == "pcre") { "pcre" } else { "compound" };
    let is_up = option("survey_sort").is_some_and(|order| order == "up");
    let mut arg = arg.to_vec();
    let kwargs: Dict = rest
        .kwargs
        .entries()
        .into_iter()
        .filter(|(name, _)| {
            let name = name.to_str();
            !name.starts_with("__") && !matches!(name.as_str(), "survey_sort" | "tgt_type")
        })
        .collect();
    if !kwargs.is_empty() {
        kwargs.insert("__kwarg__", true);
        arg.push(kwargs.into());
    }
    let job = Job { arg, ..Job::new(tgt.clone(), kind, fun.clone()) };
    let mut returned = master::run(cx, &job, None)?.returned;
    returned.sort_by(|one, other| one.0.cmp(&other.0));
    let mut pools: Vec<Pool> = Vec::new();
    for (id, load) in returned {
        // What is compared, and shown, is its text.
        let result = load.get("return").unwrap_or_default().to_str().to_string();
        match pools.iter_mut().find(|pool| pool.result == result) {
            Some(pool) => pool.ids.push(id.to_string()),
            None => pools.push(Pool { ids: vec![id.to_string()], result }),
        }
    }
    // Groups of one size stay in the order of their first minions.
    match is_up {
        true => pools.sort_by_key(|pool| pool.ids.len()),
        false => pools.sort_by_key(|pool| std::cmp::Reverse(pool.ids.len())),
    }
    Ok(pools)
}

fn shown(pool: &Pool) -> Value {
    dict! { "pool" => Value::list(&pool.ids), "result" => &pool.result }
}

/// Return equal answers with the minions that gave them.
///
/// ```console
/// $ salt-run survey.hash survey_sort=up '*' file.get_hash /etc/resolv.conf
/// ```
#[function]
pub fn hash(cx: &Cx, rest: Rest) -> Result<Value> {
    Ok(Value::list(pools(cx, &rest)?.iter().map(shown)))
}

/// Print how the answers differ from the first one, and return them.
///
/// ```console
/// $ salt-run survey.diff 'web*' file.read /srv/app/app.conf
/// ```
#[function]
pub fn diff(cx: &Cx, rest: Rest) -> Result<Value> {
    let pools = pools(cx, &rest)?;
    for (at, pool) in pools.iter().enumerate() {
        let (ids, size) = (Value::list(&pool.ids).repr(), pool.ids.len());
        master::say(cx, format!("minion pool :\n------------\n{ids}"))?;
        master::say(cx, format!("pool size :\n----------\n    {size}"))?;
        let text = match at {
            0 => format!("pool result :\n------------\n    {}\n", pool.result),
            _ => differences(&pools[0], pool),
        };
        master::say(cx, text)?;
    }
    Ok(Value::list(pools.iter().map(shown)))
}

/// Says how an answer differs from the first.
fn differences(first: &Pool, other: &Pool) -> String {
    let name = |pool: &Pool| pool.ids.first().cloned().unwrap_or_default();
    let lines = |pool: &Pool| -> Vec<String> {
        pool.result.lines().map(|line| format!("{line}\n")).collect()
    };
    let (from, to) = (name(first), name(other));
    let layout = Layout { from: &from, to: &to, around: 0, ..Layout::default() };
    let changes = unified_lines(&lines(first), &lines(other), layout).concat();
    let title = format!("differences from \"{from}\" results :");
    format!("{title}\n{}\n{changes}\n", "-".repeat(title.chars().count() - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_equal_is_not_shown() {
        let pool = |id: &str, result: &str| Pool { ids: vec![id.into()], result: result.into() };
        let told = differences(&pool("m1", "a\nb\nc"), &pool("m2", "a\nB\nc"));
        assert_eq!(
            told,
            "differences from \"m1\" results :\n------------------------------\n\
             --- m1\n+++ m2\n@@ -2 +2 @@\n-b\n+B\n\n"
        );
    }
}
