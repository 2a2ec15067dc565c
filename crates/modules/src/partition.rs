//! `partition`: partitions of disks, over `parted`.
//!
//! Every function that touches a disk wants a block device; names, flags and units are checked before
//! parted sees them, because its scripts take anything for a command.

use std::path::Path;

use halite_spec::{Args, Command, Cx, Error, Need, Rest, Result, function, host::Kind, module};
use halite_value::{Dict, Value, entries};

module! {
    /// Partitions of disks.
    "partition", needs = [
        Need::program(&["parted"], "The parted execution module failed to load parted binary is not in the path."),
        Need::program(&["lsblk"], "The parted execution module failed to load lsblk binary is not in the path."),
        Need::program(&["partprobe"], "The parted execution module failed to load partprobe binary is not in the path."),
    ]: list, probe, mklabel, mkpart, mkpartfs, rm, resize, rescue, name, set, toggle,
    disk_set, disk_toggle, align_check, check, cp, get_id, set_id, system_types, mkfs,
    get_block_device, exists,
}

const UNITS: &[&str] =
    &["s", "B", "kB", "MB", "MiB", "GB", "GiB", "TB", "TiB", "%", "cyl", "chs", "compact"];
const LABELS: &[&str] =
    &["aix", "amiga", "atari", "bsd", "dvh", "gpt", "loop", "mac", "msdos", "pc98", "sun"];
const FLAGS: &[&str] = &[
    "bios_grub",
    "legacy_boot",
    "boot",
    "lba",
    "root",
    "swap",
    "hidden",
    "raid",
    "LVM",
    "lvm",
    "PALO",
    "PREP",
    "DIAG",
    "esp",
    "msftres",
    "diag",
    "irst",
    "pmbr_boot",
];
const SYSTEMS: &[&str] = &[
    "ext2",
    "ext3",
    "ext4",
    "fat16",
    "fat32",
    "linux-swap",
    "reiserfs",
    "hfs",
    "hfs+",
    "hfsx",
    "NTFS",
    "ntfs",
    "ufs",
    "xfs",
    "zfs",
    "btrfs",
    "udf",
];

fn invalid<T>(what: &str, function: &str) -> Result<T> {
    Err(Error::failed(format!("Invalid {what} passed to partition.{function}")))
}

fn checked(cx: &Cx, device: &str) -> Result<()> {
    match cx.host.stat(Path::new(device), true) {
        Ok(stat) if stat.kind == Kind::Block => Ok(()),
        _ => Err(Error::failed("Invalid device passed to partition module.")),
    }
}

/// A number with or without a unit: `1`, `10%`, `512MB`, `-1s`.
fn is_boundary(text: &str) -> bool {
    let digits = text.trim_start_matches('-');
    let end = digits.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(digits.len());
    let (number, unit) = digits.split_at(end);
    !number.is_empty() && (unit.is_empty() || UNITS.contains(&unit))
}

fn boundaries(start: &Value, end: &Value, function: &str) -> Result<[String; 2]> {
    let (start, end) = (start.to_string(), end.to_string());
    if !is_boundary(&start) || !is_boundary(&end) {
        return invalid("start or end", function);
    }
    Ok([start, end])
}

fn minor_of(value: &Value, function: &str) -> Result<String> {
    let text = value.to_string();
    if text.parse::<u32>().is_ok() { Ok(text) } else { invalid("minor", function) }
}

/// Runs a program; its lines.
fn ran(cx: &Cx, words: &[&str], looks: bool) -> Result<Vec<String>> {
    let command = Command::line(words.iter().copied());
    let output = cx.host.run(&if looks { command.query() } else { command })?;
    let mut text = output.stdout_text();
    if !output.ok() {
        text += &output.stderr_text();
    }
    Ok(text.trim_end().lines().map(str::to_owned).collect())
}

fn parted(cx: &Cx, device: &str, words: &[&str]) -> Result<Vec<String>> {
    let line: Vec<&str> =
        ["parted", "-m", "-s", device].into_iter().chain(words.iter().copied()).collect();
    ran(cx, &line, false)
}

/// With a terminator: a start may be negative.
fn parted_open(cx: &Cx, device: &str, words: &[&str]) -> Result<Vec<String>> {
    let line: Vec<&str> =
        ["parted", "-m", "-s", "--", device].into_iter().chain(words.iter().copied()).collect();
    ran(cx, &line, false)
}

/// Reads what `parted -m … print` prints.
fn read_list(text: &str) -> Dict {
    let (info, partitions) = (Dict::new(), Dict::new());
    let disk = [
        "disk",
        "size",
        "interface",
        "logical sector",
        "physical sector",
        "partition table",
        "model",
        "disk flags",
    ];
    let part = ["number", "start", "end", "size", "file system", "name", "flags"];
    for line in text.lines().map(|line| line.trim_end_matches(';')) {
        let fields: Vec<&str> = line.split(':').collect();
        let Some(first) = fields.first() else { continue };
        if first.starts_with('/') {
            for (name, value) in disk.iter().zip(&fields) {
                info.insert(*name, *value);
            }
        } else if first.parse::<u32>().is_ok() {
            let own = Dict::new();
            for (name, value) in part.iter().zip(&fields) {
                own.insert(*name, *value);
            }
            partitions.insert(*first, own);
        }
    }
    entries! { "info" => info, "partitions" => partitions }
}

/// Return what is on a disk.
///
/// ```console
/// $ salt '*' partition.list /dev/sda s
/// ```
#[function]
pub fn list(
    cx: &Cx,
    /// The disk.
    device: String,
    /// The unit of sizes.
    unit: Option<String>,
) -> Result<Dict> {
    checked(cx, &device)?;
    let mut words = vec!["parted", "-m", "-s", &device];
    if let Some(unit) = &unit {
        if !UNITS.contains(&unit.as_str()) {
            return invalid("unit", "part_list");
        }
        words.extend(["unit", unit]);
    }
    words.push("print");
    let output = cx.host.run(&Command::line(words).query())?;
    Ok(read_list(&output.stdout_text()))
}

/// Let the kernel look at partition tables again.
///
/// ```console
/// $ salt web1 partition.probe
/// ```
#[function]
pub fn probe(
    cx: &Cx,
    /// The disks; all unless given.
    args: Rest,
) -> Result<Vec<String>> {
    let devices: Vec<String> = args.args.iter().map(Value::to_string).collect();
    for device in &devices {
        checked(cx, device)?;
    }
    let line: Vec<&str> =
        ["partprobe", "--"].into_iter().chain(devices.iter().map(String::as_str)).collect();
    ran(cx, &line, false)
}

/// Make a partition table; what was on the disk is lost.
///
/// ```console
/// $ salt web1 partition.mklabel /dev/vdb gpt
/// ```
#[function]
pub fn mklabel(
    cx: &Cx,
    /// The disk.
    device: String,
    /// `gpt`, `msdos` …
    label_type: String,
) -> Result<Vec<String>> {
    if !LABELS.contains(&label_type.as_str()) {
        return invalid("label_type", "mklabel");
    }
    parted(cx, &device, &["mklabel", &label_type])
}

/// A partition to be made.
#[derive(Args)]
pub struct New {
    /// The disk.
    device: String,
    /// `primary`, `logical` or `extended`.
    part_type: String,
    /// The file system it is for.
    fs_type: Option<String>,
    /// Where it begins.
    start: Option<Value>,
    /// Where it ends.
    end: Option<Value>,
}

impl New {
    fn make(&self, cx: &Cx, function: &str) -> Result<Vec<String>> {
        checked(cx, &self.device)?;
        if !["primary", "logical", "extended"].contains(&self.part_type.as_str()) {
            return invalid("part_type", function);
        }
        if self.fs_type.as_deref().is_some_and(|own| !SYSTEMS.contains(&own)) {
            return invalid("fs_type", function);
        }
        let mut words = vec!["mkpart", &self.part_type];
        words.extend(self.fs_type.as_deref());
        let places;
        if let (Some(start), Some(end)) = (&self.start, &self.end) {
            places = boundaries(start, end, function)?;
            words.extend(places.iter().map(String::as_str));
        }
        parted_open(cx, &self.device, &words)
    }
}

/// Make a partition.
///
/// ```console
/// $ salt web1 partition.mkpart /dev/vdb primary ext4 1MiB 2GiB
/// ```
#[function]
pub fn mkpart(cx: &Cx, #[group] new: New) -> Result<Vec<String>> {
    new.make(cx, "mkpart")
}

/// Make a partition for a file system.
///
/// ```console
/// $ salt web1 partition.mkpartfs /dev/vdb primary ext2 1MiB 2GiB
/// ```
#[function]
pub fn mkpartfs(cx: &Cx, #[group] new: New) -> Result<Vec<String>> {
    new.make(cx, "mkpartfs")
}

/// Remove a partition.
///
/// ```console
/// $ salt web1 partition.rm /dev/vdb 2
/// ```
#[function]
pub fn rm(
    cx: &Cx,
    /// The disk.
    device: String,
    /// The partition.
    minor: Value,
) -> Result<Vec<String>> {
    checked(cx, &device)?;
    parted(cx, &device, &["rm", &minor_of(&minor, "rm")?])
}

/// Move the ends of a partition.
///
/// ```console
/// $ salt web1 partition.resize /dev/vdb 2 1MiB 2GiB
/// ```
#[function]
pub fn resize(
    cx: &Cx,
    /// The disk.
    device: String,
    /// The partition.
    minor: Value,
    /// Where it begins.
    start: Value,
    /// Where it ends.
    end: Value,
) -> Result<Vec<String>> {
    checked(cx, &device)?;
    let [start, end] = boundaries(&start, &end, "resize")?;
    parted_open(cx, &device, &["resize", &minor_of(&minor, "resize")?, &start, &end])
}

/// Find a lost partition.
///
/// ```console
/// $ salt web1 partition.rescue /dev/vdb 1MiB 2GiB
/// ```
#[function]
pub fn rescue(
    cx: &Cx,
    /// The disk.
    device: String,
    /// From here.
    start: Value,
    /// To here.
    end: Value,
) -> Result<Vec<String>> {
    checked(cx, &device)?;
    let [start, end] = boundaries(&start, &end, "rescue")?;
    parted(cx, &device, &["rescue", &start, &end])
}

/// Name a partition.
///
/// ```console
/// $ salt web1 partition.name /dev/vdb 2 data
/// ```
#[function]
pub fn name(
    cx: &Cx,
    /// The disk.
    device: String,
    /// The partition.
    partition: Value,
    /// The name.
    name: String,
) -> Result<Vec<String>> {
    checked(cx, &device)?;
    if !name.chars().all(|c| c.is_alphanumeric() || " _-".contains(c)) {
        return invalid("characters", "name");
    }
    parted(cx, &device, &["name", &minor_of(&partition, "name")?, &format!("'{name}'")])
}

/// Set a flag of a partition.
///
/// ```console
/// $ salt web1 partition.set /dev/vdb 2 lvm on
/// ```
#[function]
pub fn set(
    cx: &Cx,
    /// The disk.
    device: String,
    /// The partition.
    minor: Value,
    /// The flag.
    flag: String,
    /// On or off.
    state: Value,
) -> Result<Vec<String>> {
    checked(cx, &device)?;
    if !FLAGS.contains(&flag.as_str()) {
        return invalid("flag", "set");
    }
    let state = if matches!(state.to_string().to_lowercase().as_str(), "on" | "true") {
        "on"
    } else {
        "off"
    };
    parted(cx, &device, &["set", &minor_of(&minor, "set")?, &flag, state])
}

/// Turn a flag of a partition over.
///
/// ```console
/// $ salt web1 partition.toggle /dev/vdb 2 lvm
/// ```
#[function]
pub fn toggle(
    cx: &Cx,
    /// The disk.
    device: String,
    /// The partition.
    partition: Value,
    /// The flag.
    flag: String,
) -> Result<Vec<String>> {
    checked(cx, &device)?;
    if !FLAGS.contains(&flag.as_str()) {
        return invalid("flag", "toggle");
    }
    parted(cx, &device, &["toggle", &minor_of(&partition, "toggle")?, &flag])
}

/// Set a flag of a disk.
///
/// ```console
/// $ salt web1 partition.disk_set /dev/vdb pmbr_boot off
/// ```
#[function]
pub fn disk_set(
    cx: &Cx,
    /// The disk.
    device: String,
    /// The flag.
    flag: String,
    /// On or off.
    state: Value,
) -> Result<Vec<String>> {
    checked(cx, &device)?;
    if flag != "pmbr_boot" {
        return invalid("flag", "disk_set");
    }
    let state = if matches!(state.to_string().to_lowercase().as_str(), "on" | "true") {
        "on"
    } else {
        "off"
    };
    parted(cx, &device, &["disk_set", &flag, state])
}

/// Turn a flag of a disk over.
///
/// ```console
/// $ salt web1 partition.disk_toggle /dev/vdb pmbr_boot
/// ```
#[function]
pub fn disk_toggle(
    cx: &Cx,
    /// The disk.
    device: String,
    /// The flag.
    flag: String,
) -> Result<Vec<String>> {
    checked(cx, &device)?;
    if flag != "pmbr_boot" {
        return invalid("flag", "disk_toggle");
    }
    parted(cx, &device, &["disk_toggle", &flag])
}

/// Tell whether a partition lies well on its disk.
///
/// ```console
/// $ salt web1 partition.align_check /dev/vdb optimal 2
/// ```
#[function]
pub fn align_check(
    cx: &Cx,
    /// The disk.
    device: String,
    /// `minimal` or `optimal`.
    part_type: String,
    /// The partition.
    partition: Value,
) -> Result<Vec<String>> {
    checked(cx, &device)?;
    if !["minimal", "optimal"].contains(&part_type.as_str()) {
        return invalid("part_type", "align_check");
    }
    let number = minor_of(&partition, "align_check")?;
    ran(cx, &["parted", "-m", &device, "align-check", &part_type, &number], true)
}

/// Check a partition.
///
/// ```console
/// $ salt '*' partition.check /dev/sda 1
/// ```
#[function]
pub fn check(
    cx: &Cx,
    /// The disk.
    device: String,
    /// The partition.
    minor: Value,
) -> Result<Vec<String>> {
    checked(cx, &device)?;
    parted(cx, &device, &["check", &minor_of(&minor, "check")?])
}

/// Copy a file system to another partition.
///
/// ```console
/// $ salt web1 partition.cp /dev/vdb 1 2
/// ```
#[function]
pub fn cp(
    cx: &Cx,
    /// The disk.
    device: String,
    /// From this partition.
    from_minor: Value,
    /// To this one.
    to_minor: Value,
) -> Result<Vec<String>> {
    checked(cx, &device)?;
    let (from, to) = (minor_of(&from_minor, "cp")?, minor_of(&to_minor, "cp")?);
    parted(cx, &device, &["cp", &from, &to])
}

/// Return the kind of a partition, as a number in hex.
///
/// ```console
/// $ salt web1 partition.get_id /dev/vdb 2
/// ```
#[function]
pub fn get_id(
    cx: &Cx,
    /// The disk.
    device: String,
    /// The partition.
    minor: Value,
) -> Result<Vec<String>> {
    checked(cx, &device)?;
    ran(cx, &["sfdisk", "--print-id", &device, &minor_of(&minor, "get_id")?], true)
}

/// Set the kind of a partition, as a number in hex.
///
/// ```console
/// $ salt web1 partition.set_id /dev/vdb 2 8e
/// ```
#[function]
pub fn set_id(
    cx: &Cx,
    /// The disk.
    device: String,
    /// The partition.
    minor: Value,
    /// The kind.
    system_id: Value,
) -> Result<Vec<String>> {
    checked(cx, &device)?;
    let kind = system_id.to_string();
    if !system_types(cx)?.contains(kind.as_str()) {
        return invalid("system_id", "set_id");
    }
    ran(cx, &["sfdisk", "--change-id", &device, &minor_of(&minor, "set_id")?, &kind], false)
}

/// Return the kinds of partitions: number → name.
///
/// ```console
/// $ salt web1 partition.system_types
/// ```
#[function]
pub fn system_types(cx: &Cx) -> Result<Dict> {
    let ret = Dict::new();
    for line in ran(cx, &["sfdisk", "-T"], true)? {
        let line = line.trim();
        if let Some((number, name)) = line.split_once(char::is_whitespace)
            && number.chars().all(|c| c.is_ascii_hexdigit())
        {
            ret.insert(number, name.trim());
        }
    }
    Ok(ret)
}

/// Make a file system on a partition.
///
/// ```console
/// $ salt '*' partition.mkfs /dev/sda2 fs_type=fat32
/// ```
#[function]
pub fn mkfs(
    cx: &Cx,
    /// The disk.
    device: String,
    /// The file system.
    fs_type: String,
) -> Result<Vec<String>> {
    checked(cx, &device)?;
    if !SYSTEMS.contains(&fs_type.as_str()) {
        return invalid("fs_type", "mkfs");
    }
    let program = match fs_type.as_str() {
        "linux-swap" => "mkswap".to_owned(),
        "fat16" | "fat32" => "mkfs.fat".to_owned(),
        "NTFS" => "mkfs.ntfs".to_owned(),
        "hfs" => "mkfs.hfs".to_owned(),
        own => format!("mkfs.{own}"),
    };
    let mut words = vec![program.as_str()];
    match fs_type.as_str() {
        "fat16" => words.extend(["-F", "16"]),
        "fat32" => words.extend(["-F", "32"]),
        _ => {}
    }
    words.push(&device);
    ran(cx, &words, false)
}

/// Return the disks of the machine.
///
/// ```console
/// $ salt web1 partition.get_block_device
/// ```
#[function]
pub fn get_block_device(cx: &Cx) -> Result<Vec<String>> {
    ran(cx, &["lsblk", "-n", "-io", "KNAME", "-d", "-e", "1,7,11"], true)
}

/// Tell whether there is a block device.
///
/// ```console
/// $ salt '*' partition.exists /dev/sda1
/// ```
#[function]
pub fn exists(
    cx: &Cx,
    /// The device.
    #[default(String::new())]
    device: String,
) -> Result<bool> {
    Ok(checked(cx, &device).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boundaries_are_numbers_with_units() {
        assert!(["1", "10%", "512MB", "-1s", "1.5GiB"].iter().all(|text| is_boundary(text)));
        assert!(!["", "x", "1; rm", "-"].iter().any(|text| is_boundary(text)));
    }

    #[test]
    fn reads_the_list() {
        let text = "BYT;\n/dev/sdz:1000B:scsi:512:4096:gpt:ATA X:;\n\
            1:17408B:1000B:900B:ext4:Linux filesystem:boot;\n";
        let list = read_list(text);
        let first = list.get("partitions").unwrap().get("1").unwrap();
        assert_eq!(first.get_str("file system").as_deref(), Some("ext4"));
        assert_eq!(list.get("info").unwrap().get_str("model").as_deref(), Some("ATA X"));
    }
}
