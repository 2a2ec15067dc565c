//! `pkg`: packages.
//!
//! What is to be done is found out beforehand and is the same with `test=True`; what changed is
//! what the package manager says afterwards (dependencies come along), so the predicted changes
//! name the packages asked for only, as Salt's do.
//!
//! Surprising: looking may fetch the lists of packages (once in a job, unless `refresh: False`).
//! That changes no package, and Salt does it with `test=True`, too.

mod conditions;
mod held;
mod installed;
mod latest;
mod others;
mod removed;

use halite_modules::{
    pkg::{self, Provider, Trouble},
    pkg_resource,
};
use halite_spec::{Applied, Cx, Error, Outcome, Result, states};
use halite_value::{Dict, List, Value, dict};

use crate::beacon::{self, Watched};

use self::{
    held::{Held, Unheld},
    installed::Installed,
    latest::Latest,
    others::{Downloaded, GroupInstalled, PatchDownloaded, PatchInstalled, Uptodate},
    removed::{Purged, Removed},
};

states! {
    /// Install and remove packages.
    "pkg", aggregate = join:
    "installed" => Installed,
    "downloaded" => Downloaded,
    "patch_installed" => PatchInstalled,
    "patch_downloaded" => PatchDownloaded,
    "latest" => Latest,
    "removed" => Removed,
    "purged" => Purged,
    "uptodate" => Uptodate,
    "group_installed" => GroupInstalled,
    "held" => Held,
    "unheld" => Unheld,
    "mod_beacon" => Watched<beacon::Packages>,
}

/// Packages with the version asked for, in order.
type Wanted = Vec<(String, Option<String>)>;

/// The one package of a state without a list of them.
fn one_name(name: Option<&String>) -> Result<&str> {
    name.map(String::as_str)
        .ok_or_else(|| Error::invalid("argument `name` must be text, not NoneType"))
}

fn get<'w>(wanted: &'w Wanted, name: &str) -> Option<&'w Option<String>> {
    wanted.iter().find(|(own, _)| own == name).map(|(_, version)| version)
}

fn contains(wanted: &Wanted, name: &str) -> bool {
    get(wanted, name).is_some()
}

fn joined(wanted: &Wanted) -> String {
    wanted.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
}

/// `name=1.2`, `name>=1.2`, `name`.
fn shown((name, version): &(String, Option<String>)) -> String {
    match version.as_deref().filter(|version| !version.is_empty()) {
        None => name.clone(),
        Some(version) if version.starts_with(['<', '>', '=']) => format!("{name}{version}"),
        Some(version) => format!("{name}={version}"),
    }
}

fn shown_all(names: &[String], desired: &Wanted) -> String {
    let one = |name: &String| {
        let version = get(desired, name).cloned().unwrap_or_default();
        shown(&(name.clone(), version))
    };
    names.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// What a package manager answered where something went wrong.
fn troubled(changes: Dict, trouble: &Trouble) -> Applied {
    Applied::failed(changes, trouble.text())
}

/// An error of the package manager, with a state's own words before it.
fn explained(error: Error, doing: &str) -> Error {
    match error {
        Error::Failed(text) => {
            Error::Failed(format!("An error was encountered while {doing}: {text}"))
        }
        other => other,
    }
}

/// A state as the engine runs it: with `test=True` first tried, otherwise applied.
fn outcome_of(applied: Applied) -> Outcome {
    Outcome {
        extra: applied.extra,
        ..Outcome::new(
            Some(applied.result.unwrap_or(true)),
            applied.changes.unwrap_or_default(),
            applied.comment.unwrap_or_default(),
        )
    }
}

/// Reads a list of packages a state was given, names as they are.
fn repacked(pkgs: &Value) -> Result<Wanted> {
    pkg_resource::repack(pkgs, &str::to_owned)
}

/// Reads a list of packages a state was given.
fn normalized(cx: &Cx, pkgs: &Value, normalize: bool) -> Result<Wanted> {
    pkg_resource::repack(pkgs, &*pkg_resource::normalizer(cx, normalize))
}

fn is_empty_list(value: &Value) -> bool {
    value.as_list().is_some_and(List::is_empty)
}

/// The versions that could be installed: what `test=True` predicts.
fn installable(
    cx: &Cx,
    provider: &dyn Provider,
    targets: &Wanted,
    current: &dyn Fn(&str) -> String,
) -> Result<Dict> {
    let found = Dict::new();
    let newest: Vec<String> = targets
        .iter()
        .filter(|(_, version)| version.as_deref().is_none_or(str::is_empty))
        .map(|(name, _)| name.clone())
        .collect();
    if !newest.is_empty() {
        for (name, version) in provider.latest_version(cx, &newest, &pkg::Latest::default())? {
            found.insert(name, version);
        }
    }
    let exact: Vec<String> =
        targets.iter().filter(|(name, _)| !newest.contains(name)).map(shown).collect();
    if !exact.is_empty()
        && let Ok(offers) = provider.list_repo_pkgs(cx, &exact, &Dict::new())
    {
        for (name, versions) in &offers {
            if let Some(first) = versions.items_of_sequence().unwrap_or_default().first() {
                found.insert(name, first);
            }
        }
    }
    let change = |name: &str| {
        let new = found.get(name).filter(Value::truthy).unwrap_or_else(|| "installed".into());
        dict! { "new" => new, "old" => current(name) }
    };
    let changes: Dict = targets.iter().map(|(name, _)| (name.as_str(), change(name))).collect();
    // Salt's prediction also names what the lists answered under another name.
    for (name, version) in &found {
        if !changes.contains(&name)
            && !targets.iter().any(|(own, _)| shown(&(own.clone(), None)) == name.to_str())
        {
            changes.insert(name, version);
        }
    }
    Ok(changes)
}

/// Joins states of the same kind into one, so that one transaction does it all.
fn join(low: &Dict, rest: &[Dict]) -> Dict {
    let text = |dict: &Dict, key: &str| dict.get(key).map(|value| value.to_string());
    let fun = text(low, "fun");
    if !["installed", "latest", "removed", "purged"].contains(&fun.as_deref().unwrap_or_default()) {
        return low.clone();
    }
    let from_sources = low.contains("sources");
    let key = if from_sources { "sources" } else { "pkgs" };
    let mut wanted: Vec<(String, Value)> = Vec::new();
    let mut add =
        |name: String, version: Value| match wanted.iter_mut().find(|(own, _)| *own == name) {
            Some((_, own)) => {
                if own.is_null() {
                    *own = version;
                }
            }
            None => wanted.push((name, version)),
        };
    let mut take = |chunk: &Dict| match chunk.get(key).filter(Value::truthy) {
        Some(list) => {
            for item in list.items_of_sequence().unwrap_or_default() {
                match item.as_dict() {
                    Some(one) => one.into_iter().for_each(|(name, v)| add(name.to_string(), v)),
                    None => add(item.to_string(), Value::Null),
                }
            }
        }
        None if !from_sources => {
            let name = chunk.get("name").unwrap_or_default();
            add(name.to_string(), chunk.get("version").unwrap_or_default());
        }
        None => {}
    };
    take(low);
    let mut others = 0;
    for chunk in rest {
        let fits = text(chunk, "state").as_deref() == Some("pkg")
            && !chunk.contains("__agg__")
            && text(chunk, "fun") == fun
            && text(chunk, "fromrepo") == text(low, "fromrepo")
            && !chunk.contains("hold")
            && chunk.contains("sources") == from_sources;
        if fits {
            take(chunk);
            chunk.insert("__agg__", true);
            others += 1;
        }
    }
    if others == 0 {
        return low.clone();
    }
    let joined = low.shallow_copy();
    joined.remove("version");
    let items = wanted.into_iter().map(|(name, version)| {
        if version.is_null() {
            Value::from(name)
        } else {
            dict! { name => version }
        }
    });
    joined.insert(key, Value::list(items));
    joined
}

#[cfg(test)]
mod tests {
    use halite_value::{entries, list};

    use super::*;

    #[test]
    fn one_transaction() {
        let chunk = |name: &str, fun: &str| {
            entries! { "state" => "pkg", "fun" => fun, "name" => name, "__id__" => name }
        };
        let first = chunk("a", "installed");
        first.insert("version", "1.2");
        let second = chunk("b", "installed");
        let list = chunk("list", "installed");
        list.insert("pkgs", list!["c", dict! { "d" => "2" }, "a"]);
        let other = chunk("e", "removed");
        let held = chunk("f", "installed");
        held.insert("hold", true);
        let low = join(&first, &[second.clone(), list, other, held]);
        assert_eq!(
            low.get("pkgs"),
            Some(list![dict! { "a" => "1.2" }, "b", "c", dict! { "d" => "2" }])
        );
        assert!(!low.contains("version") && second.contains("__agg__"));
        assert!(join(&second, &[]).is_same(&second));
    }
}
