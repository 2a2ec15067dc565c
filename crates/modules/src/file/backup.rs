//! Copies kept of files that were replaced (`backup: minion`), below `file_backup` in the cache.

use std::path::{Path, PathBuf};

use halite_spec::{Cx, Error, Result, Stat, alias, function, host::Write};
use halite_value::{Dict, Key, Value, dict, entries};
use jiff::{Timestamp, tz::TimeZone};

use super::paths::{expand_user, split};

alias! { list_backup = list_backups, remove_backup = delete_backup }

fn root(cx: &Cx) -> PathBuf {
    Path::new(cx.opt_str("cachedir").unwrap_or_default().as_str()).join("file_backup")
}

fn folder_of(cx: &Cx, path: &str) -> PathBuf {
    root(cx).join(split(path).0.trim_start_matches('/'))
}

/// Copies a file with its owner and mode, in pieces.
pub(super) fn copy_whole(cx: &Cx, from: &Path, to: &Path, stat: &Stat) -> Result<()> {
    let how = Write { mode: Some(stat.mode), uid: Some(stat.uid), gid: Some(stat.gid) };
    Ok(cx.host.write_from(to, &mut *cx.host.open(from)?, &how)?)
}

/// Tells whether a backup mode asks for copies.
pub(super) fn wanted(cx: &Cx, mode: &str) -> bool {
    let configured = || cx.opt_str("backup_mode").unwrap_or_default().to_string();
    let mode = if mode.is_empty() { configured() } else { mode.to_owned() };
    matches!(mode.as_str(), "minion" | "both")
}

/// Keeps a copy of a file if the backup mode says so; an empty one asks the configuration.
pub fn keep_copy(cx: &Cx, path: &Path, mode: &str) -> Result<()> {
    if wanted(cx, mode) && cx.host.is_file(path)? {
        copy_now(cx, path)?;
    }
    Ok(())
}

fn copy_now(cx: &Cx, path: &Path) -> Result<()> {
    let stat = cx.host.stat(path, true)?;
    let text = path.display().to_string();
    let now = Timestamp::try_from(cx.host.now())
        .map_err(|error| Error::failed(format!("the clock is out of range: {error}")))?;
    let micros = now.subsec_nanosecond() / 1000;
    let now = now.to_zoned(TimeZone::system());
    let stamp = now.strftime("%a_%b_%d_%H:%M:%S");
    let name = format!("{}_{stamp}_{micros:06}_{}", split(&text).1, now.year());
    let folder = folder_of(cx, &text);
    cx.host.create_dirs(&folder, None)?;
    copy_whole(cx, path, &folder.join(name), &stat)
}

/// The time in a copy's name, as a sort key and as people read it.
fn time_in(copy: &str, name: &str) -> Option<(String, String)> {
    let stamp = copy.strip_prefix(name)?.strip_prefix('_')?;
    let [weekday, month, day, clock, micros, year] = *stamp.split('_').collect::<Vec<_>>() else {
        return None;
    };
    let digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let number =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
            .iter()
            .position(|name| *name == month)?;
    if !digits(day) || !digits(micros) || !digits(year) || clock.split(':').count() != 3 {
        return None;
    }
    let key = format!("{year}{number:02}{day:0>2}{clock}{micros:0>6}");
    Some((key, format!("{weekday} {month} {day} {year} {clock}.{micros}")))
}

/// The copies of a file, the newest first.
fn copies(cx: &Cx, folder: &Path, name: &str, limit: Option<usize>) -> Result<Vec<Value>> {
    let mut found = Vec::new();
    for copy in cx.host.read_dir(folder)? {
        let copy = copy.to_string_lossy().into_owned();
        let location = folder.join(&copy);
        let (Some((key, shown)), Ok(stat)) = (time_in(&copy, name), cx.host.stat(&location, true))
        else {
            continue;
        };
        let entry = dict! {
            "Backup Time" => shown, "Size" => stat.size,
            "Location" => location.display().to_string(),
        };
        found.push((key, entry));
    }
    found.sort_by(|a, b| b.0.cmp(&a.0));
    Ok(found.into_iter().map(|(_, entry)| entry).take(limit.unwrap_or(usize::MAX)).collect())
}

fn limit_of(limit: Option<&Value>) -> Option<usize> {
    limit.and_then(|limit| limit.to_str().parse().ok())
}

fn listed(cx: &Cx, path: &str, limit: Option<&Value>) -> Result<Dict> {
    let folder = folder_of(cx, path);
    if !cx.host.is_dir(&folder)? {
        return Ok(Dict::new());
    }
    let copies = copies(cx, &folder, split(path).1, limit_of(limit))?;
    Ok(copies.into_iter().enumerate().map(|(id, copy)| (id_key(id), copy)).collect())
}

fn id_key(id: usize) -> Key {
    Key::try_from(Value::from(id)).unwrap_or_else(|_| Key::from("0"))
}

/// List the copies kept of a file, the newest first.
///
/// ```console
/// $ salt web1 file.list_backups /srv/app/app.conf
/// ```
#[function]
pub fn list_backups(
    cx: &Cx,
    /// The file.
    path: String,
    /// No more than this many.
    limit: Option<Value>,
) -> Result<Dict> {
    listed(cx, &expand_user(cx, &path), limit.as_ref())
}

/// List the copies kept of every file of a folder.
///
/// ```console
/// $ salt web1 file.list_backups_dir /srv/app
/// ```
#[function]
pub fn list_backups_dir(
    cx: &Cx,
    /// The folder, with a slash at its end.
    path: String,
    /// No more than this many of each file.
    limit: Option<Value>,
) -> Result<Dict> {
    let path = expand_user(cx, &path);
    let folder = folder_of(cx, &path);
    if !cx.host.is_dir(&folder)? {
        return Ok(Dict::new());
    }
    let ret = Dict::new();
    for copy in cx.host.read_dir(&folder)? {
        let copy = copy.to_string_lossy().into_owned();
        let name = copy.split('_').next().unwrap_or_default();
        if ret.contains(name) {
            continue;
        }
        let copies = copies(cx, &folder, name, limit_of(limit.as_ref()))?;
        let copies: Dict =
            copies.into_iter().enumerate().map(|(id, copy)| (id_key(id), copy)).collect();
        ret.insert(name, copies);
    }
    Ok(ret)
}

/// The copy of an id, or what to say.
fn copy_of(cx: &Cx, path: &str, id: &Value) -> Result<std::result::Result<String, Dict>> {
    let failed = |comment: String| entries! { "result" => false, "comment" => comment };
    let Ok(number) = id.to_str().parse::<usize>() else {
        return Ok(Err(failed(format!("Invalid backup_id '{id}'"))));
    };
    let copy = listed(cx, path, None)?.get(&id_key(number));
    Ok(copy
        .and_then(|copy| copy.get_str("Location"))
        .map(|location| location.to_string())
        .ok_or_else(|| failed(format!("backup_id '{id}' does not exist for {path}"))))
}

/// Bring back a copy of a file; the file as it is now is kept as another copy.
///
/// ```console
/// $ salt web1 file.restore_backup /srv/app/app.conf 0
/// ```
#[function]
pub fn restore_backup(
    cx: &Cx,
    /// The file.
    path: String,
    /// The number `file.list_backups` shows.
    backup_id: Value,
) -> Result<Dict> {
    let path = expand_user(cx, &path);
    let location = match copy_of(cx, &path, &backup_id)? {
        Ok(location) => location,
        Err(ret) => return Ok(ret),
    };
    let at = Path::new(&path);
    if cx.host.is_file(at)? {
        copy_now(cx, at)?;
    }
    let copied = cx
        .host
        .open(Path::new(&location))
        .and_then(|mut reader| cx.host.write_from(at, &mut *reader, &Write::default()));
    Ok(match copied {
        Ok(()) => entries! {
            "result" => true, "comment" => format!("Successfully restored {location} to {path}"),
        },
        Err(error) => entries! {
            "result" => false,
            "comment" => format!("Unable to restore {location} to {path}: {error}"),
        },
    })
}

/// Delete a copy of a file.
///
/// ```console
/// $ salt web1 file.delete_backup /srv/app/app.conf 0
/// ```
#[function]
pub fn delete_backup(
    cx: &Cx,
    /// The file.
    path: String,
    /// The number `file.list_backups` shows.
    backup_id: Value,
) -> Result<Dict> {
    let path = expand_user(cx, &path);
    let location = match copy_of(cx, &path, &backup_id)? {
        Ok(location) => location,
        Err(ret) => return Ok(ret),
    };
    Ok(match cx.host.remove_file(Path::new(&location)) {
        Ok(()) => entries! {
            "result" => true, "comment" => format!("Successfully removed {location}"),
        },
        Err(error) => entries! {
            "result" => false, "comment" => format!("Unable to remove {location}: {error}"),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_names() {
        let (key, shown) = time_in("a.txt_Sun_Mar_01_10:20:30_000123_2026", "a.txt").unwrap();
        assert_eq!(shown, "Sun Mar 01 2026 10:20:30.000123");
        assert!(key > time_in("a.txt_Sat_Feb_28_23:59:59_999999_2026", "a.txt").unwrap().0);
        assert!(time_in("a.txt.bak", "a.txt").is_none());
    }
}
