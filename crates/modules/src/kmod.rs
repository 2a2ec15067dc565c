//! `kmod`: modules of the Linux kernel.

use std::path::{Path, PathBuf};

use halite_spec::{Command, Cx, Result, function, host::Write, module};
use halite_value::{Value, dict};

use crate::file::text::{read_to_edit, read_to_edit_if_there};

module! {
    /// Modules of the Linux kernel.
    "kmod": available, check_available, lsmod, mod_list, load, is_loaded, remove,
}

/// The file of modules loaded at every start.
fn conf(cx: &Cx) -> PathBuf {
    let systemd = cx.grains.contains("systemd");
    PathBuf::from(if systemd { "/etc/modules-load.d/salt_managed.conf" } else { "/etc/modules" })
}

fn files_below(cx: &Cx, folder: &Path, found: &mut Vec<String>) {
    for name in cx.host.read_dir(folder).unwrap_or_default() {
        let path = folder.join(&name);
        let Ok(stat) = cx.host.stat(&path, false) else { continue };
        if stat.kind == halite_spec::host::Kind::Dir {
            files_below(cx, &path, found);
        } else if let Some((module, _)) = name.to_string_lossy().split_once(".ko") {
            found.push(module.replace('-', "_"));
        }
    }
}

/// Return the modules that could be loaded.
///
/// ```console
/// $ salt web1 kmod.available
/// ```
#[function]
pub fn available(cx: &Cx) -> Result<Vec<String>> {
    let folder = Path::new("/lib/modules").join(cx.host.uname().release);
    let built_in = cx.host.read_text_if_there(&folder.join("modules.builtin"))?.unwrap_or_default();
    let mut found: Vec<String> = built_in
        .lines()
        .filter_map(|line| line.rsplit('/').next()?.strip_suffix(".ko").map(str::to_owned))
        .collect();
    files_below(cx, &folder, &mut found);
    found.sort();
    Ok(found)
}

/// Tell whether a module could be loaded.
///
/// ```console
/// $ salt web1 kmod.check_available usb_storage
/// ```
#[function]
pub fn check_available(
    cx: &Cx,
    /// The module.
    r#mod: String,
) -> Result<bool> {
    Ok(available(cx)?.contains(&r#mod))
}

/// Return what `lsmod` shows.
///
/// ```console
/// $ salt web1 kmod.lsmod
/// ```
#[function]
pub fn lsmod(cx: &Cx) -> Result<Value> {
    let output = cx.host.run(&Command::line(["lsmod"]).query()).map_err(|error| match error {
        halite_spec::host::Error::Spawn { .. } => {
            halite_spec::Error::failed("Command 'lsmod' cannot be found")
        }
        other => other.into(),
    })?;
    let text = output.stdout_text();
    let rows = text.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [module, size, count, rest @ ..] = words.as_slice() else { return None };
        if *module == "Module" {
            return None;
        }
        let deps: Vec<&str> =
            rest.first().map(|deps| deps.split(',').collect()).unwrap_or_default();
        Some(dict! {
            "size" => *size, "module" => *module, "depcount" => *count, "deps" => Value::list(deps),
        })
    });
    Ok(Value::list(rows))
}

/// Return the names of loaded modules, or of those loaded at every start.
///
/// ```console
/// $ salt web1 kmod.mod_list
/// ```
#[function]
pub fn mod_list(
    cx: &Cx,
    /// Those loaded at every start.
    #[default(false)]
    only_persist: bool,
) -> Result<Vec<String>> {
    let mut names: Vec<String> = if only_persist {
        let text = cx.host.read_text_if_there(&conf(cx))?.unwrap_or_default();
        let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
        lines.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
    } else {
        let rows = lsmod(cx)?.items_of_sequence().unwrap_or_default();
        rows.iter().filter_map(|row| row.get_str("module")).map(Into::into).collect()
    };
    names.sort();
    names.dedup();
    Ok(names)
}

fn keep(cx: &Cx, name: &str) -> Result<bool> {
    let Some(module) = name.split_whitespace().next() else { return Ok(false) };
    let path = conf(cx);
    let text = read_to_edit_if_there(cx, &path)?.unwrap_or_default();
    let known = mod_list(cx, true)?.iter().any(|own| own == module);
    if known || !available(cx)?.iter().any(|own| own == module) {
        return Ok(false);
    }
    let commented = |line: &&str| {
        line.strip_prefix('#').is_some_and(|rest| rest.trim_matches(['\t', ' ', '\n']) == name)
    };
    let mut new = String::new();
    let mut placed = false;
    for line in text.split_inclusive('\n') {
        if commented(&line) {
            new += &format!("{name}\n");
            placed = true;
        } else {
            new += line;
        }
    }
    if !placed {
        if !new.is_empty() && !new.ends_with('\n') {
            new.push('\n');
        }
        new += &format!("{name}\n");
    }
    if let Some(folder) = path.parent() {
        cx.host.create_dirs(folder, None)?;
    }
    cx.host.write(&path, new.as_bytes(), &Write::default())?;
    Ok(true)
}

fn forget(cx: &Cx, name: &str, comment: bool) -> Result<bool> {
    let Some(module) = name.split_whitespace().next() else { return Ok(false) };
    if !mod_list(cx, true)?.iter().any(|own| own == module) {
        return Ok(false);
    }
    let path = conf(cx);
    let text = read_to_edit(cx, &path)?;
    let mut new = String::new();
    for line in text.split_inclusive('\n') {
        let own = line.trim() == name || line.split_whitespace().next() == Some(module);
        match own {
            true if comment => new += &format!("#{line}"),
            true => {}
            false => new += line,
        }
    }
    cx.host.write(&path, new.as_bytes(), &Write::default())?;
    Ok(true)
}

/// Calls a loader; the modules that came or went, or its complaint.
fn change(cx: &Cx, line: &[&str], went: bool) -> Result<std::result::Result<Vec<String>, String>> {
    let before = mod_list(cx, false)?;
    let output = cx.host.run(&Command::line(line.iter().copied()))?;
    if !output.ok() {
        return Ok(Err(output.stderr_text().trim_end().to_owned()));
    }
    let after = mod_list(cx, false)?;
    let (from, to) = if went { (before, after) } else { (after, before) };
    Ok(Ok(from.into_iter().filter(|name| !to.contains(name)).collect()))
}

/// Loads a module; the modules that came, or why not.
pub fn insert(
    cx: &Cx,
    name: &str,
    persist: bool,
) -> Result<std::result::Result<Vec<String>, String>> {
    let words: Vec<&str> = ["modprobe", "--"].into_iter().chain(name.split_whitespace()).collect();
    let mut loaded = match change(cx, &words, false)? {
        Ok(loaded) => loaded,
        Err(text) => return Ok(Err(format!("Error loading module {name}: {text}"))),
    };
    if persist && keep(cx, name)? {
        loaded.extend(name.split_whitespace().next().map(str::to_owned));
        loaded.sort();
        loaded.dedup();
    }
    Ok(Ok(loaded))
}

/// Takes a module out; the modules that went, or why not.
pub fn take(
    cx: &Cx,
    name: &str,
    persist: bool,
    comment: bool,
) -> Result<std::result::Result<Vec<String>, String>> {
    let mut gone = match change(cx, &["rmmod", "--", name], true)? {
        Ok(gone) => gone,
        Err(text) => return Ok(Err(format!("Error removing module {name}: {text}"))),
    };
    if persist && forget(cx, name, comment)? {
        gone.extend(name.split_whitespace().next().map(str::to_owned));
        gone.sort();
        gone.dedup();
    }
    Ok(Ok(gone))
}

fn list_or_text(answer: std::result::Result<Vec<String>, String>) -> Value {
    match answer {
        Ok(names) => Value::list(names),
        Err(text) => text.into(),
    }
}

/// Load a module; returns the modules that came with it, or a text that says why not.
///
/// ```console
/// $ salt web1 kmod.load usb_storage
/// ```
#[function]
pub fn load(
    cx: &Cx,
    /// The module.
    r#mod: String,
    /// At every start, too.
    #[default(false)]
    persist: bool,
) -> Result<Value> {
    insert(cx, &r#mod, persist).map(list_or_text)
}

/// Tell whether a module is loaded.
///
/// ```console
/// $ salt web1 kmod.is_loaded usb_storage
/// ```
#[function]
pub fn is_loaded(
    cx: &Cx,
    /// The module.
    r#mod: String,
) -> Result<bool> {
    Ok(mod_list(cx, false)?.contains(&r#mod))
}

/// Take a module out; returns the modules that went with it, or a text that says why not.
///
/// ```console
/// $ salt web1 kmod.remove usb_storage
/// ```
#[function]
pub fn remove(
    cx: &Cx,
    /// The module.
    r#mod: String,
    /// From every start, too.
    #[default(false)]
    persist: bool,
    /// Comment its line out, do not delete it.
    #[default(true)]
    comment: bool,
) -> Result<Value> {
    take(cx, &r#mod, persist, comment).map(list_or_text)
}
