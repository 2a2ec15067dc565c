//! `sysfs`: attributes of the kernel's `/sys`.

use std::path::{Path, PathBuf};

use halite_spec::{Cx, Error, Result, function, host::Kind, module};
use halite_value::{Dict, List, Value};

module! {
    /// Attributes of the kernel's `/sys`.
    "sysfs": attr, write, read, target, interfaces,
}

fn path(root: &str, key: &str) -> Result<PathBuf> {
    let joined = format!("{}/{}", root.trim_end_matches('/'), key.trim_start_matches('/'));
    let inside = joined.strip_prefix("/sys/").unwrap_or(&joined).trim_start_matches('/');
    if inside.split('/').any(|part| part == "..") {
        return Err(Error::invalid(format!("'{key}' leads out of /sys")));
    }
    Ok(Path::new("/sys").join(inside))
}

fn value_of(text: &str) -> Value {
    let text = text.trim();
    let int = text.parse::<i64>().map(Value::from);
    int.or_else(|_| text.parse::<f64>().map(Value::from)).unwrap_or_else(|_| text.into())
}

/// Return an attribute (of a folder: its real path), or set it; False when there is none.
///
/// ```console
/// $ salt web1 sysfs.attr block/vdb/size
/// ```
#[function]
pub fn attr(
    cx: &Cx,
    /// The attribute.
    key: String,
    /// Its new value.
    value: Option<Value>,
) -> Result<Value> {
    let at = path("", &key)?;
    if cx.host.is_dir(&at)? && value.is_none() {
        return target(cx, key, true);
    }
    if !cx.host.is_file(&at)? {
        return Ok(false.into());
    }
    match value {
        Some(value) => write(cx, key, value).map(Value::from),
        None => read(cx, Value::from(key), String::new()),
    }
}

/// Set an attribute.
///
/// ```console
/// $ salt web1 sysfs.write block/vdb/queue/scheduler none
/// ```
#[function]
pub fn write(
    cx: &Cx,
    /// The attribute.
    key: String,
    /// Its new value.
    value: Value,
) -> Result<bool> {
    // The kernel wants it in one piece, and nothing but the value; renaming is not for /sys.
    Ok(cx.host.append(&path("", &key)?, format!("{value}\n").as_bytes()).is_ok())
}

/// Return an attribute, or all of a folder; False when there is none.
///
/// ```console
/// $ salt web1 sysfs.read block/vdb/queue/scheduler
/// ```
#[function]
pub fn read(
    cx: &Cx,
    /// The attribute, or several.
    key: Value,
    /// The folder they are in.
    #[default(String::new())]
    root: String,
) -> Result<Value> {
    if let Some(keys) = key.items_of_sequence() {
        let ret = Dict::new();
        for key in keys {
            let name = key.to_string();
            let value = read(cx, key, root.clone())?;
            ret.insert(name.rsplit('/').next().unwrap_or(&name), value);
        }
        return Ok(ret.into());
    }
    let at = path(&root, &key.to_string())?;
    if cx.host.is_dir(&at)? {
        let ret = Dict::new();
        for name in cx.host.read_dir(&at)? {
            let file = at.join(&name);
            let readable = cx
                .host
                .stat(&file, false)
                .is_ok_and(|stat| stat.kind == Kind::File && stat.mode & 0o444 != 0);
            if let (true, Ok(text)) = (readable, cx.host.read_text(&file)) {
                ret.insert(name.to_string_lossy().into_owned(), value_of(&text));
            }
        }
        return Ok(ret.into());
    }
    Ok(cx.host.read_text(&at).map_or(false.into(), |text| value_of(&text)))
}

/// Return what a link points to; False when it is none.
///
/// ```console
/// $ salt '*' sysfs.target class/ttyS0
/// ```
#[function]
pub fn target(
    cx: &Cx,
    /// The link.
    key: String,
    /// The whole path, not only the name.
    #[default(true)]
    full: bool,
) -> Result<Value> {
    let Ok(real) = cx.host.real_path(&path("", &key)?) else { return Ok(false.into()) };
    Ok(match full {
        true => real.display().to_string().into(),
        false => real.file_name().map(|name| name.to_string_lossy().into_owned()).into(),
    })
}

/// Return what can be read and written below a folder: `r`, `w`, `rw`.
///
/// ```console
/// $ salt web1 sysfs.interfaces block/vdb/queue
/// ```
#[function]
pub fn interfaces(
    cx: &Cx,
    /// The folder.
    root: String,
) -> Result<Dict> {
    let root = path("", &root)?;
    let ret = Dict::new();
    let lists = [List::new(), List::new(), List::new()];
    for (name, list) in ["r", "w", "rw"].into_iter().zip(&lists) {
        ret.insert(name, list.clone());
    }
    for name in cx.host.read_dir(&root)? {
        let Ok(stat) = cx.host.stat(&root.join(&name), false) else { continue };
        let (reads, writes) = (stat.mode & 0o400 != 0, stat.mode & 0o200 != 0);
        let place = match (reads, writes) {
            _ if stat.kind != Kind::File || name == "uevent" => None,
            (true, true) => Some(2),
            (true, false) => Some(0),
            (false, true) => Some(1),
            (false, false) => None,
        };
        if let Some(list) = place.and_then(|place: usize| lists.get(place)) {
            list.push(name.to_string_lossy().into_owned());
        }
    }
    Ok(ret)
}
