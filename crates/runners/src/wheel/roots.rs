//! What `file_roots` and `pillar_roots` share: trees of folders named by an option.

use std::path::{Path, PathBuf};

use halite_spec::{Cx, Result, host::Write};
use halite_value::{Dict, Value, dict};

/// Folders deeper than this are not shown.
const DEPTH: usize = 64;

/// The roots of an environment, in order.
fn roots_of(cx: &Cx, option: &str, saltenv: &str) -> Option<Vec<PathBuf>> {
    let roots = cx.opt(option)?.get(saltenv)?.items_of_sequence()?;
    Some(roots.iter().map(|root| PathBuf::from(root.to_str().as_str())).collect())
}

/// The place of a path below a root; `None` if it would be elsewhere.
fn below(cx: &Cx, root: &Path, path: &str) -> Option<PathBuf> {
    use std::path::Component;
    let parts = Path::new(path).components();
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if path.is_empty() || path.contains('\0') || !parts.clone().all(is_plain) {
        return None;
    }
    let full = root.join(path);
    // A link inside the tree must not lead out of it, nor a folder on the way.
    let real_root = cx.host.real_path(root).ok()?;
    let mut known = full.as_path();
    while cx.host.real_path(known).is_err() {
        known = known.parent()?;
    }
    let real = cx.host.real_path(known).ok()?;
    real.starts_with(&real_root).then_some(full)
}

fn files(cx: &Cx, option: &str, path: &str, saltenv: &str) -> Vec<PathBuf> {
    let roots = roots_of(cx, option, saltenv).unwrap_or_default();
    let place = |root: &PathBuf| below(cx, root, path);
    roots.iter().filter_map(place).filter(|full| cx.host.is_file(full).unwrap_or(false)).collect()
}

pub(super) fn find(cx: &Cx, option: &str, path: &str, saltenv: &str) -> Result<Value> {
    let mut found = Vec::new();
    for full in files(cx, option, path, saltenv) {
        let content = cx.host.read(&full)?;
        let kind = if std::str::from_utf8(&content).is_ok() { "txt" } else { "bin" };
        found.push(dict! { full.to_string_lossy().into_owned() => kind });
    }
    Ok(found.into())
}

pub(super) fn read(cx: &Cx, option: &str, path: &str, saltenv: &str) -> Result<Value> {
    let mut found = Vec::new();
    for full in files(cx, option, path, saltenv) {
        let content = cx.host.read(&full)?;
        if let Ok(text) = String::from_utf8(content) {
            found.push(dict! { full.to_string_lossy().into_owned() => text });
        }
    }
    Ok(found.into())
}

fn tree(cx: &Cx, folder: &Path, depth: usize) -> Dict {
    let shown = Dict::new();
    if depth == 0 {
        return shown;
    }
    for name in cx.host.read_dir(folder).unwrap_or_default() {
        let path = folder.join(&name);
        let name = name.to_string_lossy().into_owned();
        let is_dir = |follow| {
            let stat = cx.host.stat(&path, follow);
            stat.is_ok_and(|stat| stat.kind == halite_spec::host::Kind::Dir)
        };
        if is_dir(false) {
            shown.insert(name, tree(cx, &path, depth - 1));
        } else if is_dir(true) {
            // Links to folders are shown, not followed.
            shown.insert(name, Dict::new());
        } else {
            shown.insert(name, "f");
        }
    }
    shown
}

pub(super) fn list_env(cx: &Cx, option: &str, saltenv: &str) -> Result<Dict> {
    let roots = roots_of(cx, option, saltenv).unwrap_or_default();
    let shown = |root: PathBuf| (root.to_string_lossy().into_owned(), tree(cx, &root, DEPTH));
    Ok(roots.into_iter().map(shown).collect())
}

pub(super) fn list_roots(cx: &Cx, option: &str) -> Result<Dict> {
    let all = Dict::new();
    let envs = cx.opt(option).and_then(|envs| envs.as_dict().cloned()).unwrap_or_default();
    for env in envs.keys() {
        let env = env.to_str();
        all.insert(&*env, Value::list([list_env(cx, option, &env)?]));
    }
    Ok(all)
}

pub(super) fn write(
    cx: &Cx,
    option: &str,
    data: &str,
    path: &str,
    saltenv: &str,
    index: i64,
) -> Result<Value> {
    let Some(roots) = roots_of(cx, option, saltenv) else {
        return Ok(format!("Named environment {saltenv} is not present").into());
    };
    let Some(root) = usize::try_from(index).ok().and_then(|index| roots.get(index)) else {
        let text = format!("Specified index {index} in environment {saltenv} is not present");
        return Ok(text.into());
    };
    if Path::new(path).is_absolute() {
        let text = format!("The path passed in {path} is not relative to the environment base");
        return Ok(text.into());
    }
    let Some(full) = below(cx, root, path) else {
        return Ok(format!("Invalid path: {path}").into());
    };
    if let Some(folder) = full.parent() {
        cx.host.create_dirs(folder, None)?;
    }
    cx.host.write(&full, data.as_bytes(), &Write::default())?;
    Ok(format!("Wrote data to file {}", full.display()).into())
}
