//! `raid`: software RAID, over `mdadm`.

use std::path::Path;

use halite_spec::{Cx, Error, Need, Rest, Result, Strings, function, host::Write, module};
use halite_value::{Dict, Value, dict};

use crate::cmd::{Options, Ran, plain};

module! {
    /// Software RAID.
    "raid", needs = [
        Need::program(&["mdadm"], "The mdadm execution module cannot be loaded: the mdadm binary is not in the path."),
    ]: list, detail, destroy, stop, create, save_config, assemble, examine, add,
}

fn run(cx: &Cx, words: &[&str], query: bool) -> Result<Ran> {
    let words = ["mdadm"].into_iter().chain(words.iter().copied());
    plain(cx, words, Options { query, ignore_retcode: query, ..Options::default() })
}

/// Return the arrays: device, metadata, name, UUID.
///
/// ```console
/// $ salt web1 raid.list
/// ```
#[function]
pub fn list(cx: &Cx) -> Result<Dict> {
    let ret = Dict::new();
    // `ARRAY /dev/md0 metadata=1.2 name=x:0 UUID=aa:bb`
    for line in run(cx, &["--detail", "--scan"], true)?.stdout.lines() {
        let mut words = line.split_whitespace().skip(1);
        let Some(device) = words.next().filter(|_| line.contains(' ')) else { continue };
        let array = halite_value::entries! { "device" => device };
        for (key, value) in words.filter_map(|word| word.split_once('=')) {
            array.insert(key.to_lowercase(), value);
        }
        ret.insert(device, array);
    }
    Ok(ret)
}

/// Return what is known about an array, with its members.
///
/// ```console
/// $ salt web1 raid.detail /dev/md1
/// ```
#[function]
pub fn detail(
    cx: &Cx,
    /// The array.
    #[default("/dev/md0".to_owned())]
    device: String,
) -> Result<Dict> {
    if !cx.host.exists(Path::new(&device))? {
        return Err(Error::failed(format!("Device {device} doesn't exist!")));
    }
    Ok(read_detail(&run(cx, &["--detail", &device], true)?.stdout))
}

fn read_detail(text: &str) -> Dict {
    let (ret, members) = (Dict::new(), Dict::new());
    for line in text.lines().skip(1).filter(|line| !line.trim().is_empty()) {
        if let Some((key, value)) = line.split_once(" : ") {
            ret.insert(key.trim().to_lowercase().replace(' ', "_"), value.trim());
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let [number, major, minor, raid, state @ .., device] = words.as_slice() else { continue };
        if *number == "Number" || state.is_empty() {
            continue;
        }
        members.insert(
            *number,
            dict! {
                "device" => *device, "major" => *major, "minor" => *minor,
                "number" => *number, "raiddevice" => *raid, "state" => state.join(" "),
            },
        );
    }
    ret.insert("members", members);
    ret
}

/// Take an array apart, and forget it.
///
/// ```console
/// $ salt web1 raid.destroy /dev/md1
/// ```
#[function]
pub fn destroy(
    cx: &Cx,
    /// The array.
    device: String,
) -> Result<bool> {
    let Ok(known) = detail(cx, device.clone()) else { return Ok(false) };
    if !run(cx, &["--stop", &device], false)?.ok() {
        return Ok(false);
    }
    if let Some(Value::Dict(members)) = known.get("members") {
        for member in members.values() {
            let member = member.get_str("device").unwrap_or_default();
            if member.starts_with('/') {
                run(cx, &["--zero-superblock", &member], false)?;
            }
        }
    }
    if let Some(path) = config_of(cx)? {
        let text = cx.host.read_text(Path::new(path))?;
        let named = format!("ARRAY {device} ");
        let left = text.split_inclusive('\n').filter(|line| !line.starts_with(&named));
        let left: String = left.collect();
        if left != text {
            cx.host.write(Path::new(path), left.as_bytes(), &Write::default())?;
        }
    }
    Ok(!list(cx)?.contains(device.as_str()))
}

const DEBIAN_CONFIG: &str = "/etc/mdadm/mdadm.conf";

fn config_path(cx: &Cx) -> &'static str {
    match cx.grain_str("os_family").as_str() {
        "Debian" => DEBIAN_CONFIG,
        _ => "/etc/mdadm.conf",
    }
}

fn config_of(cx: &Cx) -> Result<Option<&'static str>> {
    let path = config_path(cx);
    Ok(cx.host.is_file(Path::new(path))?.then_some(path))
}

/// Stop all arrays; tell whether that was possible.
///
/// ```console
/// $ salt web1 raid.stop
/// ```
#[function]
pub fn stop(cx: &Cx) -> Result<bool> {
    let ran = run(cx, &["--stop", "--scan"], false)?;
    Ok(ran.ok() && list(cx)?.is_empty())
}

/// Options of `mdadm` beyond those with names of their own.
fn further(kwargs: &Dict) -> Vec<String> {
    let mut words = Vec::new();
    for (key, value) in kwargs.entries() {
        let key = key.to_str();
        if key.starts_with("__") {
            continue;
        }
        let dashes = if key.len() == 1 { "-" } else { "--" };
        words.push(format!("{dashes}{key}"));
        if value != Value::Bool(true) {
            words.push(value.to_string());
        }
    }
    words
}

/// Make an array.
///
/// ```console
/// $ salt '*' raid.create /dev/md0 level=1 devices="['/dev/xvdd', '/dev/xvde']" test_mode=True
/// ```
#[function]
pub fn create(
    cx: &Cx,
    /// The array.
    name: String,
    /// The RAID level.
    level: String,
    /// Its members; `missing` for one that comes later.
    devices: Strings,
    /// The version of the metadata.
    #[default("default".to_owned())]
    metadata: String,
    /// Return the command, do not run it.
    #[default(false)]
    test_mode: bool,
    /// Further options of `mdadm`: `chunk=256`, `spare-devices=1`.
    kwargs: Rest,
) -> Result<String> {
    let mut words: Vec<String> =
        ["-C", &name, "-R", "-v", "-l", &level].map(str::to_owned).to_vec();
    let spares = kwargs.kwargs.get("spare-devices").and_then(|spares| spares.to_int()).unwrap_or(0);
    words.extend(further(&kwargs.kwargs));
    let count = devices.len().saturating_sub(usize::try_from(spares).unwrap_or(0));
    words.extend(["-e".to_owned(), metadata, "-n".to_owned(), count.to_string()]);
    words.extend(devices.0);
    if test_mode {
        return Ok(format!("mdadm {}", words.join(" ")));
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ran = run(cx, &words, false)?;
    Ok(if ran.stdout.is_empty() { ran.stderr } else { ran.stdout })
}

/// Write the arrays of now into the configuration, so that they come back after a restart.
///
/// ```console
/// $ salt web1 raid.save_config
/// ```
#[function]
pub fn save_config(cx: &Cx) -> Result<String> {
    let scan = run(cx, &["--detail", "--scan"], true)?.stdout;
    let path = config_path(cx);
    let text = cx.host.read_text(Path::new(path))?;
    let mut new = text.clone();
    for line in scan.lines().filter(|line| line.starts_with("ARRAY ")) {
        let device = line.split_whitespace().nth(1).unwrap_or_default();
        let named = format!("ARRAY {device} ");
        if text.lines().any(|own| own == line) {
            continue;
        }
        let kept: String =
            new.split_inclusive('\n').filter(|own| !own.starts_with(&named)).collect();
        new = format!("{}{line}\n", if kept.is_empty() { String::new() } else { kept });
    }
    if new != text {
        cx.host.write(Path::new(path), new.as_bytes(), &Write::default())?;
    }
    if cx.grain_str("os_family") == "Debian" {
        let ran = plain(cx, ["update-initramfs", "-u"], Options::default())?;
        return Ok(ran.stdout);
    }
    Ok(String::new())
}

/// Start an array whose members exist.
///
/// ```console
/// $ salt web1 raid.assemble /dev/md1 '[/dev/vdb, /dev/vdc]'
/// ```
#[function]
pub fn assemble(
    cx: &Cx,
    /// The array.
    name: String,
    /// Its members.
    devices: Strings,
    /// Return the command, do not run it.
    #[default(false)]
    test_mode: bool,
    /// Further options of `mdadm`.
    kwargs: Rest,
) -> Result<Value> {
    let mut words: Vec<String> = ["mdadm", "-A", &name, "-v"].map(str::to_owned).to_vec();
    words.extend(further(&kwargs.kwargs));
    words.extend(devices.0);
    if test_mode {
        return Ok(words.into());
    }
    let ran = plain(cx, words, Options::default())?;
    Ok((if ran.stdout.is_empty() { ran.stderr } else { ran.stdout }).into())
}

/// Return what a member says about its array.
///
/// ```console
/// $ salt web1 raid.examine /dev/vdb
/// ```
#[function]
pub fn examine(
    cx: &Cx,
    /// The member.
    device: String,
    /// Do not complain about a device that is no member.
    #[default(false)]
    quiet: bool,
) -> Result<Dict> {
    let _ = quiet;
    let text = run(cx, &["-Y", "-E", &device], true)?.stdout;
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    Ok(pairs.collect())
}

/// Add a member to an array.
///
/// ```console
/// $ salt web1 raid.add /dev/md1 /dev/vdb
/// ```
#[function]
pub fn add(
    cx: &Cx,
    /// The array.
    name: String,
    /// The new member.
    device: String,
) -> Result<bool> {
    Ok(run(cx, &["--manage", &name, "--add", &device], false)?.ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_detail() {
        let text = "/dev/md0:\n        Raid Level : raid1\n             State : clean\n    \
            Number   Major   Minor   RaidDevice State\n       0       8        1        0      \
            active sync   /dev/sda1\n";
        let found = Value::from(read_detail(text));
        assert_eq!(found.get_str("raid_level").as_deref(), Some("raid1"));
        let first = found.get("members").and_then(|members| members.get("0")).unwrap_or_default();
        assert_eq!(first.get_str("device").as_deref(), Some("/dev/sda1"));
        assert_eq!(first.get_str("state").as_deref(), Some("active sync"));
    }
}
