//! What `clean: True` spares: what other states, named by `require`, manage below a folder.

use std::{collections::BTreeSet, path::Path};

use halite_modules::{
    cp::is_included,
    file::{
        paths::{joined, normalized, parent, relative},
        tree::walk,
    },
};
use halite_spec::{Cx, Result};
use halite_value::{Dict, Value};

use super::recursed;

fn is_below(path: &str, folder: &str) -> bool {
    !relative(path, folder).starts_with("..")
}

/// Returns the paths that required states manage.
pub(super) fn required(cx: &Cx, folder: &str, require: &Value) -> Result<Vec<String>> {
    let mut keep = Vec::new();
    let chunks = cx.context.get("__lowstate__").and_then(|list| list.items_of_sequence());
    let chunks = chunks.unwrap_or_default();
    for entry in require.items_of_sequence().unwrap_or_default() {
        let Some(wanted) = entry.get("file") else { continue };
        for low in chunks.iter().filter_map(Value::as_dict) {
            let named = |key: &str| low.get(key).as_ref() == Some(&wanted);
            if (named("name") || named("__id__"))
                && low.get("state").is_some_and(|state| state.to_str() == "file")
            {
                managed_by(cx, folder, low, &mut keep)?;
            }
        }
    }
    Ok(keep)
}

fn managed_by(cx: &Cx, folder: &str, low: &Dict, keep: &mut Vec<String>) -> Result<()> {
    let text = |key: &str| low.get(key).unwrap_or_default().to_str().to_string();
    let name = text("name");
    if !cx.host.is_dir(Path::new(&name))? {
        keep.push(name);
        return Ok(());
    }
    if !is_below(&name, folder) {
        return Ok(());
    }
    if text("fun") == "recurse" {
        // Without knowing what it manages, cleaning would remove what it keeps.
        keep.extend(recursed::managed_paths(cx, low)?);
        return Ok(());
    }
    for visited in walk(cx, Path::new(&name), &|_| true)? {
        keep.push(visited.path.display().to_string());
        for inside in visited.dirs.iter().chain(&visited.files) {
            keep.push(visited.path.join(inside).display().to_string());
        }
    }
    Ok(())
}

/// Returns what stands in a folder and nobody keeps; a folder kept keeps those above it.
pub(super) fn unkept(
    cx: &Cx,
    folder: &str,
    keep: impl IntoIterator<Item = String>,
    exclude: &[String],
) -> Result<Vec<String>> {
    let mut kept = BTreeSet::from([folder.to_owned()]);
    for path in keep {
        let mut path = normalized(&path);
        while kept.insert(path.clone()) {
            let above = parent(&path).to_owned();
            if above == path || above.is_empty() {
                break;
            }
            path = above;
        }
    }
    let mut found = Vec::new();
    for visited in walk(cx, Path::new(folder), &|_| true)? {
        let at = visited.path.display().to_string();
        for name in visited.dirs.iter().chain(&visited.files) {
            let path = joined(&at, name);
            if !kept.contains(&path) && is_included(&relative(&path, folder), &[], exclude)? {
                found.push(path);
            }
        }
    }
    Ok(found)
}

/// Returns those paths that do not go with another one: Salt names a removed folder, not what was
/// in it.
pub(super) fn tops(paths: &[String]) -> Vec<String> {
    let removed: BTreeSet<&str> = paths.iter().map(String::as_str).collect();
    let alone = |path: &&String| {
        let mut above = parent(path);
        while above.len() > 1 {
            if removed.contains(above) {
                return false;
            }
            above = parent(above);
        }
        true
    };
    paths.iter().filter(alone).cloned().collect()
}

/// Removes paths; one that went with its folder already is fine.
pub(super) fn remove(cx: &Cx, paths: &[String]) -> Result<()> {
    for path in paths {
        match cx.host.remove_all(Path::new(path)) {
            Err(error) if !error.is_missing() => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}
