//! `udev`: what udev knows about devices, over `udevadm`.

use halite_spec::{Cx, Error, Need, Result, function, module};
use halite_value::{Dict, List, Value};

use crate::cmd::{Options, plain};

module! {
    /// What udev knows about devices.
    "udev", needs = [
        Need::program(&["udevadm"], ""),
    ]: info, env, name, path, links, exportdb,
}

fn run(cx: &Cx, words: &[&str]) -> Result<String> {
    let words = ["udevadm", "info"].into_iter().chain(words.iter().copied());
    let ran = plain(cx, words, Options { query: true, ..Options::default() })?;
    if ran.ok() { Ok(ran.stdout) } else { Err(Error::failed(ran.stderr)) }
}

fn number_or_text(text: &str) -> Value {
    text.parse::<i64>().map_or_else(|_| text.into(), Value::from)
}

/// Lines such as `E: MAJOR=1`; what may be there several times is a list.
fn read(text: &str) -> Dict {
    let ret = Dict::new();
    for line in text.lines() {
        let Some((key, value)) = line.split_once(": ") else { continue };
        match (key, value.split_once('=')) {
            ("E", Some((name, value))) => {
                if let Value::Dict(own) = ret.get_or_insert_with("E", Value::dict) {
                    own.insert(name, number_or_text(value.trim()));
                }
            }
            ("S", _) => {
                if let Value::List(own) = ret.get_or_insert_with("S", || List::new().into()) {
                    own.push(value.trim());
                }
            }
            _ => {
                ret.insert(key, value.trim());
            }
        }
    }
    ret
}

fn part(cx: &Cx, dev: &str, key: &str) -> Result<Value> {
    Ok(about(cx, dev)?.get(key).unwrap_or_default())
}

fn about(cx: &Cx, dev: &str) -> Result<Dict> {
    let by = if dev.starts_with("/sys") { "path" } else { "name" };
    Ok(read(&run(cx, &["--export", "--query=all", &format!("--{by}={dev}")])?))
}

/// Return all that is known about a device.
///
/// ```console
/// $ salt web1 udev.info /dev/vdb
/// ```
#[function]
pub fn info(
    cx: &Cx,
    /// The device.
    dev: String,
) -> Result<Dict> {
    about(cx, &dev)
}

/// Return the properties of a device.
///
/// ```console
/// $ salt web1 udev.env /dev/vdb
/// ```
#[function]
pub fn env(
    cx: &Cx,
    /// The device.
    dev: String,
) -> Result<Value> {
    part(cx, &dev, "E")
}

/// Return the name of a device.
///
/// ```console
/// $ salt '*' udev.name /dev/sda
/// ```
#[function]
pub fn name(
    cx: &Cx,
    /// The device.
    dev: String,
) -> Result<Value> {
    part(cx, &dev, "N")
}

/// Return where a device is below `/sys`.
///
/// ```console
/// $ salt web1 udev.path /dev/vdb
/// ```
#[function]
pub fn path(
    cx: &Cx,
    /// The device.
    dev: String,
) -> Result<Value> {
    part(cx, &dev, "P")
}

/// Return the links to a device.
///
/// ```console
/// $ salt web1 udev.links /dev/vdb
/// ```
#[function]
pub fn links(
    cx: &Cx,
    /// The device.
    dev: String,
) -> Result<Value> {
    part(cx, &dev, "S")
}

/// Return all that is known about all devices, or about those of some subsystems.
///
/// ```console
/// $ salt '*' udev.exportdb subsystems="['block']"
/// ```
#[function]
pub fn exportdb(
    cx: &Cx,
    /// The subsystems.
    #[default(Vec::new())]
    subsystems: Vec<String>,
) -> Result<Vec<Value>> {
    let text = run(cx, &["--export-db"])?;
    let mut found = Vec::new();
    for block in text.split("\n\n").filter(|block| !block.trim().is_empty()) {
        let own = Value::from(read(block));
        let subsystem = own.get("E").and_then(|env| env.get_str("SUBSYSTEM")).unwrap_or_default();
        if subsystems.is_empty() || subsystems.iter().any(|wanted| *wanted == subsystem) {
            found.push(own);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_device() {
        let text = "P: /devices/virtual/mem/null\nN: null\nL: 0\nS: a/b\nS: c\nE: DEVNAME=/dev/null\n\
                    E: MAJOR=1\n";
        let expected = "{'P': '/devices/virtual/mem/null', 'N': 'null', 'L': '0', \
                        'S': ['a/b', 'c'], 'E': {'DEVNAME': '/dev/null', 'MAJOR': 1}}";
        assert_eq!(Value::from(read(text)).repr(), expected);
    }
}
