//! `survey`: the same question to many minions, the answers grouped.

use halite_client::Job;
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
    let kind = option("tgt_type").unwrap_or_else(|| "compound".into());
    let order = option("survey_sort").unwrap_or_else(|| "down".into());
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
    let job = Job { arg, ..Job::new(tgt.clone(), &kind, fun.clone()) };
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
    if order == "up" || order == "down" {
        pools.sort_by_key(|pool| pool.ids.len());
    }
    if order == "down" {
        pools.reverse();
    }
    Ok(pools)
}

/// Return equal answers with the minions that gave them.
///
/// ```console
/// $ salt-run survey.hash survey_sort=up '*' file.get_hash /etc/resolv.conf
/// ```
#[function]
pub fn hash(cx: &Cx, rest: Rest) -> Result<Value> {
    let shown = |pool: Pool| dict! { "pool" => pool.ids, "result" => pool.result };
    Ok(Value::list(pools(cx, &rest)?.into_iter().map(shown)))
}

/// Return how the answers differ from the first one.
///
/// ```console
/// $ salt-run survey.diff 'web*' file.read /srv/app/app.conf
/// ```
#[function]
pub fn diff(cx: &Cx, rest: Rest) -> Result<Value> {
    let mut shown = Vec::new();
    let mut first: Option<String> = None;
    for pool in pools(cx, &rest)? {
        let text = pool.result;
        let result = match &first {
            None => text.clone(),
            Some(first) => {
                let lines = |text: &str| -> Vec<String> {
                    text.split_inclusive('\n').map(str::to_owned).collect()
                };
                halite_modules::file::diff::unified(&lines(first), &lines(&text))
            }
        };
        first.get_or_insert(text);
        let (ids, size) = (Value::list(&pool.ids).repr(), pool.ids.len());
        let what = if shown.is_empty() { "pool result" } else { "pool differences" };
        master::say(cx, format!("minion pool :\n------------\n{ids}"))?;
        master::say(cx, format!("pool size :\n----------\n    {size}"))?;
        let rule = "-".repeat(what.len() + 1);
        master::say(cx, format!("{what} :\n{rule}\n    {result}\n"))?;
        shown.push(dict! { "pool" => pool.ids, "result" => result });
    }
    Ok(shown.into())
}
