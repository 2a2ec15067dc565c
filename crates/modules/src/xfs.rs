//! `xfs`: file systems of the XFS kind, over their programs.

use std::path::Path;

use halite_spec::{Cx, Error, Result, function, module};
use halite_value::{Dict, Value, entries};

use crate::{
    cmd::{Options, Ran, plain},
    status,
};

module! {
    /// File systems of the XFS kind.
    "xfs": info, dump, inventory, prune_dump, devices, estimate, mkfs, modify, defragment,
}

fn run<'a>(cx: &Cx, words: impl IntoIterator<Item = &'a str>, query: bool) -> Result<Ran> {
    let words = words.into_iter().map(str::to_owned);
    plain(cx, words, Options { query, ignore_retcode: query, ..Options::default() })
}

/// A program that failed without a word is believed, as Salt does.
fn checked(ran: Ran) -> Result<String> {
    if !ran.ok() && !ran.stderr.is_empty() {
        return Err(Error::failed(ran.stderr));
    }
    Ok(ran.stdout)
}

fn single_spaced(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The `name=value` pairs of a line of `xfs_info`; values may have spaces, names have none.
fn pairs(line: &str) -> Vec<(String, String)> {
    let line = line.strip_prefix('=').unwrap_or(line).trim();
    // A section without a value of its own.
    let line = line.replace(" = ", "=*** ").replace(" =", "=");
    let mut found: Vec<String> = Vec::new();
    for word in line.split(' ') {
        match found.last_mut() {
            Some(last) if !word.contains('=') => {
                last.push(' ');
                last.push_str(word);
            }
            _ => found.push(word.to_owned()),
        }
    }
    let pair = |text: String| match text.split_once('=') {
        Some((name, value)) => (name.to_owned(), value.to_owned()),
        None => (text, String::new()),
    };
    found.into_iter().map(pair).collect()
}

/// Reads `xfs_info`: section → its values.
fn geometry(text: &str) -> Dict {
    let sections = Dict::new();
    let mut section = Dict::new();
    for line in text.lines() {
        let line = single_spaced(line).replace(", ", " ");
        if !line.contains('=') {
            continue;
        }
        let mut values = pairs(&line).into_iter();
        if !line.starts_with('=')
            && let Some((name, value)) = values.next()
        {
            let shown = if value == "***" { name.clone() } else { value };
            section = match sections.get(name.as_str()) {
                Some(Value::Dict(_)) | None => entries! { "section" => shown },
                Some(_) => continue,
            };
            sections.insert(name, &section);
        }
        for (name, value) in values {
            section.insert(name, value);
        }
    }
    sections
}

/// Return the geometry of a file system.
///
/// ```console
/// $ salt '*' xfs.info /dev/sda1
/// ```
#[function]
pub fn info(
    cx: &Cx,
    /// The device, or where it is mounted.
    device: String,
) -> Result<Dict> {
    let ran = run(cx, ["xfs_info", &device], true)?;
    if !ran.stderr.is_empty() {
        return Err(Error::failed(ran.stderr.replace("xfs_info:", "").trim()));
    }
    Ok(geometry(&ran.stdout))
}

/// Reads what `xfsdump` said of a dump.
fn dumped(text: &str) -> Dict {
    const KNOWN: [(&str, &str); 4] = [
        ("session label: ", "Session label"),
        ("media file size", "Media size"),
        ("dump complete:", "Dump complete"),
        ("Dump Status:", "Status"),
    ];
    let ret = Dict::new();
    for line in text.lines() {
        let line = line.trim();
        let line = line.strip_prefix("xfsdump: ").unwrap_or(line);
        if line.starts_with("session id:") {
            ret.insert("Session ID", line.rsplit(' ').next().unwrap_or_default());
        }
        for (prefix, name) in KNOWN {
            if let Some(rest) = line.strip_prefix(prefix) {
                ret.insert(name, rest.trim_start());
            }
        }
    }
    ret
}

/// Write a file system to a file or a tape.
///
/// ```console
/// $ salt '*' xfs.dump /dev/sda1 /srv/backup/sda1 label=weekly
/// ```
#[function]
pub fn dump(
    cx: &Cx,
    /// The device.
    device: String,
    /// Where to write.
    destination: String,
    /// From 0, everything, to 9.
    #[default(0)]
    level: i64,
    /// The name of the dump.
    label: Option<String>,
    /// Do not erase the medium first.
    noerase: Option<Value>,
) -> Result<Dict> {
    if cx.host.which("xfsdump").is_none() {
        return Err(Error::failed("Utility \"xfsdump\" has to be installed or missing."));
    }
    let label = match label.filter(|label| !label.is_empty()) {
        Some(label) => label,
        None => {
            let now = status::strftime(cx, status::now(cx), "%Y.%m.%d, %H:%M")?;
            format!("XFS dump for \"{device}\" of {now}").replace('\'', "\"")
        }
    };
    let level = level.to_string();
    let mut words = vec!["xfsdump", "-F"];
    if noerase.is_none_or(|noerase| !noerase.truthy()) {
        words.push("-E");
    }
    words.extend(["-L", &label, "-l", &level, "-f", &destination, &device]);
    Ok(dumped(&checked(run(cx, words, false)?)?))
}

/// Reads the inventory of dumps, which is nested by tabs.
fn inventoried(text: &str) -> Dict {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let ret = Dict::new();
    let Some((status, lines)) = lines.split_last() else { return ret };
    // The dict of each depth; a line belongs to that of the deepest heading above it.
    let mut open: Vec<(usize, Dict)> = vec![(0, ret.clone())];
    for line in lines {
        let depth = line.chars().filter(|char| *char == '\t').count();
        let line = line.trim();
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        if value.trim().is_empty() {
            while open.len() > 1 && open.last().is_some_and(|(own, _)| *own > depth) {
                open.pop();
            }
            let inner = Dict::new();
            if let Some((_, outer)) = open.last() {
                outer.insert(name.trim(), &inner);
            }
            open.push((depth + 1, inner));
        } else if let Some((_, own)) = open.last() {
            own.insert(name.trim(), value.trim());
        }
    }
    ret.insert("restore_status", *status);
    ret
}

/// Return the dumps made so far.
///
/// ```console
/// $ salt '*' xfs.inventory
/// ```
#[function]
pub fn inventory(cx: &Cx) -> Result<Dict> {
    Ok(inventoried(&checked(run(cx, ["xfsrestore", "-I"], true)?)?))
}

/// Reads the first block between lines of dashes.
fn pruned(text: &str) -> Dict {
    let mut lines = text.lines().map(str::trim).skip_while(|line| !line.starts_with('-')).skip(1);
    let block = lines.by_ref().take_while(|line| !line.starts_with('-')).skip(1);
    let pairs = block.filter_map(|line| line.split_once(':'));
    pairs
        .map(|(name, value)| (name.trim().to_lowercase().replace(' ', "_"), value.trim()))
        .collect()
}

/// Forget a dump.
///
/// ```console
/// $ salt '*' xfs.prune_dump b74a3586-e52e-4a4a-8775-c3334fa8ea2c
/// ```
#[function]
pub fn prune_dump(
    cx: &Cx,
    /// The id of its session.
    sessionid: String,
) -> Result<Dict> {
    let found = pruned(&checked(run(cx, ["xfsinvutil", "-s", &sessionid, "-F"], false)?)?);
    if found.get("uuid").is_some_and(|uuid| uuid == *sessionid.as_str()) {
        return Ok(found);
    }
    Err(Error::failed(format!("Session UUID \"{sessionid}\" was not found.")))
}

fn mounts(cx: &Cx) -> Result<Dict> {
    let found = Dict::new();
    for line in cx.host.read_text(Path::new("/proc/mounts"))?.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [device, point, "xfs", options, ..] = words.as_slice() {
            found.insert(
                *device,
                entries! { "mount_point" => *point, "options" => Value::list(options.split(',')) },
            );
        }
    }
    Ok(found)
}

/// Reads `blkid -o export`; only what is XFS.
fn blocks(cx: &Cx, text: &str) -> Result<Dict> {
    let found = Dict::new();
    let mounts = mounts(cx)?;
    for block in text.split("\n\n") {
        let device: Dict = block
            .lines()
            .filter_map(|line| line.split_once('='))
            .map(|(name, value)| (name.to_lowercase(), value))
            .collect();
        if device.remove("type").is_none_or(|kind| kind != *"xfs") {
            continue;
        }
        let Some(name) = device.remove("devname") else { continue };
        let label = device.get("label").unwrap_or_default();
        device.insert("label", label);
        let name = name.to_str();
        if let Some(Value::Dict(mount)) = mounts.get(name.as_str()) {
            device.update(&mount);
        }
        found.insert(name.as_str(), device);
    }
    Ok(found)
}

/// Return the devices with an XFS file system.
///
/// ```console
/// $ salt '*' xfs.devices
/// ```
#[function]
pub fn devices(cx: &Cx) -> Result<Dict> {
    let text = checked(run(cx, ["blkid", "-o", "export"], true)?)?;
    blocks(cx, &text)
}

/// Return how much space a folder would take on XFS.
///
/// ```console
/// $ salt '*' xfs.estimate /srv/data
/// ```
#[function]
pub fn estimate(
    cx: &Cx,
    /// The folder.
    path: String,
) -> Result<Dict> {
    if !cx.host.exists(Path::new(&path))? {
        return Err(Error::failed(format!("Path \"{path}\" was not found.")));
    }
    let text = checked(run(cx, ["xfs_estimate", "-v", &path], true)?)?;
    let ret = Dict::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()).skip(1) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [folder, size, blocks, megabytes, log] = words.as_slice() {
            ret.insert(
                *folder,
                // The space in the first name is Salt's.
                entries! {
                    "block _size" => *size, "blocks" => *blocks, "megabytes" => *megabytes,
                    "logsize" => *log,
                },
            );
        }
    }
    Ok(ret)
}

/// Make a file system. What is on the device is lost.
///
/// ```console
/// $ salt '*' xfs.mkfs /dev/sda1 dso='su=32k,sw=6'
/// ```
#[function]
pub fn mkfs(
    cx: &Cx,
    /// The device.
    device: String,
    /// Its label.
    label: Option<String>,
    /// The size of a sector.
    ssize: Option<String>,
    /// Keep a file system that is there.
    noforce: Option<Value>,
    /// Options for blocks.
    bso: Option<String>,
    /// Options for metadata.
    gmo: Option<String>,
    /// Options for inodes.
    ino: Option<String>,
    /// Options for the log.
    lso: Option<String>,
    /// Options for the realtime section.
    rso: Option<String>,
    /// Options for names.
    nmo: Option<String>,
    /// Options for data.
    dso: Option<String>,
) -> Result<Dict> {
    let mut words = vec!["mkfs.xfs".to_owned()];
    if let Some(label) = label.filter(|label| !label.is_empty()) {
        words.extend(["-L".to_owned(), label]);
    }
    if let Some(size) = ssize.filter(|size| !size.is_empty()) {
        words.extend(["-s".to_owned(), size]);
    }
    let switches =
        [("-b", bso), ("-m", gmo), ("-n", nmo), ("-i", ino), ("-d", dso), ("-l", lso), ("-r", rso)];
    for (switch, options) in switches {
        let Some(options) = options.filter(|options| options.contains('=')) else { continue };
        if options.split(',').any(|pair| pair.matches('=').count() != 1) {
            return Err(Error::failed(format!(
                "Wrong parameters \"{options}\" for option \"{switch}\""
            )));
        }
        words.extend([switch.to_owned(), options]);
    }
    if noforce.is_none_or(|noforce| !noforce.truthy()) {
        words.push("-f".into());
    }
    words.push(device);
    Ok(geometry(&checked(run(cx, words.iter().map(String::as_str), false)?)?))
}

/// Change the label, the counting or the id of a file system.
///
/// ```console
/// $ salt '*' xfs.modify /dev/sda1 label=backup lazy_counting=False
/// ```
#[function]
pub fn modify(
    cx: &Cx,
    /// The device.
    device: String,
    /// The new label.
    label: Option<String>,
    /// Count lazily, or not.
    lazy_counting: Option<bool>,
    /// A new id, or none.
    uuid: Option<bool>,
) -> Result<Dict> {
    let label = label.filter(|label| !label.is_empty());
    if label.is_none() && lazy_counting.is_none() && uuid.is_none() {
        return Err(Error::failed(format!(
            "Nothing specified for modification for \"{device}\" device"
        )));
    }
    let mut words = vec!["xfs_admin"];
    if let Some(label) = &label {
        words.extend(["-L", label]);
    }
    if let Some(lazy) = lazy_counting {
        words.extend(["-c", if lazy { "1" } else { "0" }]);
    }
    if let Some(uuid) = uuid {
        words.extend(["-U", if uuid { "generate" } else { "nil" }]);
    }
    words.push(&device);
    checked(run(cx, words, false)?)?;
    let text = checked(run(cx, ["blkid", "-o", "export", &device], true)?)?;
    blocks(cx, &text)
}

/// Put the parts of files together again.
///
/// ```console
/// $ salt '*' xfs.defragment /dev/sda1
/// ```
#[function]
pub fn defragment(
    cx: &Cx,
    /// The device; it must be mounted.
    device: String,
) -> Result<Dict> {
    if device == "/" {
        return Err(Error::failed("Root is not a device."));
    }
    if !mounts(cx)?.contains(device.as_str()) {
        return Err(Error::failed(format!("Device \"{device}\" is not mounted")));
    }
    Ok(entries! { "log" => checked(run(cx, ["xfs_fsr", &device], false)?)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use halite_value::json;

    fn same(own: Dict, expected: &str) {
        assert_eq!(Value::Dict(own), json::from_str(expected).unwrap());
    }

    #[test]
    fn geometries() {
        let text = "meta-data=/dev/vdb               isize=512    agcount=4, agsize=65536 blks\n\
                    \x20        =                       sectsz=512   attr=2, projid32bit=1\n\
                    data     =                       bsize=4096   blocks=262144, imaxpct=25\n\
                    log      =internal log           bsize=4096   blocks=2560, version=2\n";
        same(
            geometry(text),
            r#"{"meta-data": {"section": "/dev/vdb", "isize": "512", "agcount": "4",
                  "agsize": "65536 blks", "sectsz": "512", "attr": "2", "projid32bit": "1"},
                "data": {"section": "data", "bsize": "4096", "blocks": "262144", "imaxpct": "25"},
                "log": {"section": "internal log", "bsize": "4096", "blocks": "2560",
                  "version": "2"}}"#,
        );
    }

    #[test]
    fn inventories() {
        let text = "file system 0:\n\tfs id:\t\tabc\n\tsession 0:\n\t\tmount point:\t\tvm1:/mnt\n\
                    \t\tstream 0:\n\t\t\tpathname:\t\t/tmp/x\n\tsession 1:\n\t\tlevel:\t\t0\n\
                    xfsrestore: Restore Status: SUCCESS\n";
        same(
            inventoried(text),
            r#"{"file system 0": {"fs id": "abc",
                  "session 0": {"mount point": "vm1:/mnt", "stream 0": {"pathname": "/tmp/x"}},
                  "session 1": {"level": "0"}},
                "restore_status": "xfsrestore: Restore Status: SUCCESS"}"#,
        );
        same(
            inventoried("xfsrestore: Restore Status: SUCCESS\n"),
            r#"{"restore_status": "xfsrestore: Restore Status: SUCCESS"}"#,
        );
    }

    #[test]
    fn dumps() {
        same(
            dumped(
                "xfsdump: session label: \"x\"\nxfsdump: session id: e5d6\n\
                 xfsdump: media file size 21832 bytes\nxfsdump: dump complete: 0 seconds elapsed\n\
                 xfsdump: Dump Status: SUCCESS\n",
            ),
            r#"{"Session label": "\"x\"", "Session ID": "e5d6", "Media size": "21832 bytes",
                "Dump complete": "0 seconds elapsed", "Status": "SUCCESS"}"#,
        );
        same(
            pruned("x\n-----\nSession 0:\nUUID: e5\nmount point: /mnt\n-----\nmore: y\n"),
            r#"{"uuid": "e5", "mount_point": "/mnt"}"#,
        );
    }
}
