//! `lvm`: physical volumes, volume groups and logical volumes.
//!
//! Over LVM's own programs. What they print to people goes into the texts; what is read back is their
//! colon-separated form.

use halite_spec::{Command, Cx, Error, Need, Output, Rest, Result, Strings, function, module};
use halite_value::{Dict, Value};

module! {
    /// Physical volumes, volume groups and logical volumes.
    "lvm", needs = [
        Need::program(&["lvm"], "The linux_lvm execution module cannot be loaded: the lvm binary is not in the path."),
    ]: version, fullversion, pvdisplay, vgdisplay, lvdisplay, pvcreate, pvremove, pvresize,
    vgcreate, vgextend, vgremove, lvcreate, lvremove, lvresize, lvextend,
}

const PV: [&str; 11] = [
    "Physical Volume Device",
    "Volume Group Name",
    "Physical Volume Size (kB)",
    "Internal Physical Volume Number",
    "Physical Volume Status",
    "Physical Volume (not) Allocatable",
    "Current Logical Volumes Here",
    "Physical Extent Size (kB)",
    "Total Physical Extents",
    "Free Physical Extents",
    "Allocated Physical Extents",
];

const VG: [&str; 17] = [
    "Volume Group Name",
    "Volume Group Access",
    "Volume Group Status",
    "Internal Volume Group Number",
    "Maximum Logical Volumes",
    "Current Logical Volumes",
    "Open Logical Volumes",
    "Maximum Logical Volume Size",
    "Maximum Physical Volumes",
    "Current Physical Volumes",
    "Actual Physical Volumes",
    "Volume Group Size (kB)",
    "Physical Extent Size (kB)",
    "Total Physical Extents",
    "Allocated Physical Extents",
    "Free Physical Extents",
    "UUID",
];

const LV: [&str; 13] = [
    "Logical Volume Name",
    "Volume Group Name",
    "Logical Volume Access",
    "Logical Volume Status",
    "Internal Logical Volume Number",
    "Open Logical Volumes",
    "Logical Volume Size",
    "Current Logical Extents Associated",
    "Allocated Logical Extents",
    "Allocation Policy",
    "Read Ahead Sectors",
    "Major Device Number",
    "Minor Device Number",
];

/// Options of the programs callers may give by name, with a value.
const PV_OPTIONS: &[&str] = &[
    "metadatasize",
    "dataalignment",
    "dataalignmentoffset",
    "pvmetadatacopies",
    "metadatacopies",
    "metadataignore",
    "restorefile",
    "norestorefile",
    "labelsector",
    "setphysicalvolumesize",
];
const VG_OPTIONS: &[&str] = &[
    "addtag",
    "alloc",
    "autobackup",
    "clustered",
    "maxlogicalvolumes",
    "maxphysicalvolumes",
    "metadatacopies",
    "vgmetadatacopies",
    "physicalextentsize",
    "zero",
];
const LV_OPTIONS: &[&str] = &[
    "activate",
    "chunksize",
    "contiguous",
    "discards",
    "stripes",
    "stripesize",
    "minor",
    "persistent",
    "mirrors",
    "nosync",
    "noudevsync",
    "monitor",
    "ignoremonitoring",
    "permission",
    "poolmetadatasize",
    "readahead",
    "regionsize",
    "type",
    "virtualsize",
    "zero",
    "wipesignatures",
    "config",
    "trackchanges",
    "setactivationskip",
];

fn run(cx: &Cx, words: &[String]) -> Result<Output> {
    let program = words.first().map_or("", String::as_str);
    if cx.host.which(program).is_none() {
        return Err(Error::failed(format!("Command '{program}' cannot be found")));
    }
    Ok(cx.host.run(&Command::line(words))?)
}

fn texts<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

/// The options a caller gave by name; those nobody knows are left out.
fn options(kwargs: &Dict, known: &[&str]) -> Vec<String> {
    let mut words = Vec::new();
    for (name, value) in kwargs {
        let name = name.to_string();
        if !known.contains(&name.as_str()) || value.is_null() {
            continue;
        }
        words.push(format!("--{name}"));
        if !value.to_string().is_empty() && !matches!(value, Value::Bool(true)) {
            words.push(value.to_string());
        }
    }
    words
}

/// Reads lines of colon-separated fields: name → field → value.
fn table(text: &str, fields: &[&str]) -> Dict {
    let ret = Dict::new();
    for line in text.lines() {
        let parts: Vec<&str> = line.trim().split(':').collect();
        // A note, or a volume that is no part of LVM yet.
        let Some(name) = parts.first().filter(|_| parts.len() >= 2) else { continue };
        let own = Dict::new();
        for (field, value) in fields.iter().zip(&parts) {
            own.insert(*field, *value);
        }
        ret.insert(*name, own);
    }
    ret
}

fn display(cx: &Cx, program: &str, name: &str, fields: &[&str]) -> Result<Dict> {
    let mut words = texts([program, "-c"]);
    if !name.is_empty() {
        words.push(name.to_owned());
    }
    if cx.host.which(program).is_none() {
        return Err(Error::failed(format!("Command '{program}' cannot be found")));
    }
    let output = cx.host.run(&Command::line(words).query())?;
    Ok(if output.ok() { table(&output.stdout_text(), fields) } else { Dict::new() })
}

/// What a program said, or what it would have said had it not been told to be quiet.
fn verdict(output: &Output, done: &str) -> String {
    if output.ok() { done.to_owned() } else { output.stderr_text().trim().to_owned() }
}

fn quiet_or_yes(force: bool) -> String {
    if force { "--yes" } else { "-qq" }.to_owned()
}

fn only_one(size: Option<&Value>, extents: Option<&Value>) -> Option<&'static str> {
    match (size, extents) {
        (Some(_), Some(_)) => Some("Error: Please specify only one of size or extents"),
        (None, None) => Some("Error: Either size or extents must be specified"),
        _ => None,
    }
}

/// Return the version of LVM.
///
/// ```console
/// $ salt web1 lvm.version
/// ```
#[function]
pub fn version(cx: &Cx) -> Result<String> {
    let about = fullversion(cx)?;
    Ok(about.get("LVM version").map(|version| version.to_string()).unwrap_or_default())
}

/// Return all versions.
///
/// ```console
/// $ salt web1 lvm.fullversion
/// ```
#[function]
pub fn fullversion(cx: &Cx) -> Result<Dict> {
    let text = cx.host.run(&Command::line(["lvm", "version"]).query())?.stdout_text();
    let ret = Dict::new();
    for (name, value) in text.lines().filter_map(|line| line.split_once(':')) {
        ret.insert(name.trim(), value.trim());
    }
    Ok(ret)
}

/// Return physical volumes.
///
/// ```console
/// $ salt web1 lvm.pvdisplay /dev/vdb
/// ```
#[function]
pub fn pvdisplay(
    cx: &Cx,
    /// One of them.
    #[default(String::new())]
    pvname: String,
    /// Show the device behind a link, too.
    #[default(false)]
    real: bool,
    /// Not complain when there is none.
    #[default(false)]
    quiet: bool,
) -> Result<Dict> {
    let _ = quiet;
    let ret = display(cx, "pvdisplay", &pvname, &PV)?;
    if real {
        for (name, own) in &ret {
            let path = cx.host.real_path(std::path::Path::new(name.to_str().as_str()));
            let path = path.map_or_else(|_| name.to_string(), |path| path.display().to_string());
            if let Value::Dict(own) = own {
                own.insert("Real Physical Volume Device", path);
            }
        }
    }
    Ok(ret)
}

/// Return volume groups.
///
/// ```console
/// $ salt web1 lvm.vgdisplay vg0
/// ```
#[function]
pub fn vgdisplay(
    cx: &Cx,
    /// One of them.
    #[default(String::new())]
    vgname: String,
    /// Not complain when there is none.
    #[default(false)]
    quiet: bool,
) -> Result<Dict> {
    let _ = quiet;
    display(cx, "vgdisplay", &vgname, &VG)
}

/// Return logical volumes.
///
/// ```console
/// $ salt web1 lvm.lvdisplay /dev/vg0/data
/// ```
#[function]
pub fn lvdisplay(
    cx: &Cx,
    /// One of them.
    #[default(String::new())]
    lvname: String,
    /// Not complain when there is none.
    #[default(false)]
    quiet: bool,
) -> Result<Dict> {
    let _ = quiet;
    display(cx, "lvdisplay", &lvname, &LV)
}

/// Make devices physical volumes.
///
/// ```console
/// $ salt '*' lvm.pvcreate /dev/sdb1,/dev/sdb2
/// ```
#[function]
pub fn pvcreate(
    cx: &Cx,
    /// The devices: a list, or a text with commas.
    devices: Strings,
    /// Pass over those that are done already.
    #[default(true)]
    r#override: bool,
    /// Ask nothing.
    #[default(true)]
    force: bool,
    /// Options of pvcreate: `dataalignment=1m`.
    kwargs: Rest,
) -> Result<Value> {
    let mut todo = Vec::new();
    for device in devices.iter() {
        if !cx.host.exists(std::path::Path::new(device))? {
            return Err(Error::failed(format!("{device} does not exist")));
        }
        if pvdisplay(cx, device.clone(), false, true)?.is_empty() {
            todo.push(device.clone());
        } else if !r#override {
            let text = format!("Device \"{device}\" is already an LVM physical volume.");
            return Err(Error::failed(text));
        }
    }
    if todo.is_empty() {
        return Ok(true.into());
    }
    let mut words = vec!["pvcreate".to_owned()];
    words.push(if force { "--yes".into() } else { "-qq".into() });
    words.extend(todo.iter().cloned());
    words.extend(options(&kwargs.kwargs, PV_OPTIONS));
    let output = run(cx, &words)?;
    if !output.ok() {
        return Ok(output.stderr_text().trim().into());
    }
    for device in todo {
        if pvdisplay(cx, device.clone(), false, true)?.is_empty() {
            return Ok(format!("Device \"{device}\" was not affected.").into());
        }
    }
    Ok(true.into())
}

/// Runs a command on those of the devices that are physical volumes; `None` if none is.
fn on_volumes(
    cx: &Cx,
    program: &str,
    devices: &Strings,
    pass_over: bool,
    force: bool,
) -> Result<Option<(Output, Vec<String>)>> {
    let mut todo = Vec::new();
    for device in devices.iter() {
        if !pvdisplay(cx, device.clone(), false, true)?.is_empty() {
            todo.push(device.clone());
        } else if !pass_over {
            return Err(Error::failed(format!("{device} is not a physical volume")));
        }
    }
    if todo.is_empty() {
        return Ok(None);
    }
    let mut words = texts([program, if force { "--yes" } else { "-qq" }]);
    words.extend(todo.iter().cloned());
    Ok(Some((run(cx, &words)?, todo)))
}

/// Make physical volumes plain devices again.
///
/// ```console
/// $ salt '*' lvm.pvremove /dev/sdb1,/dev/sdb2
/// ```
#[function]
pub fn pvremove(
    cx: &Cx,
    /// The devices: a list, or a text with commas.
    devices: Strings,
    /// Pass over those that are done already.
    #[default(true)]
    r#override: bool,
    /// Ask nothing.
    #[default(true)]
    force: bool,
) -> Result<Value> {
    let Some((output, removed)) = on_volumes(cx, "pvremove", &devices, r#override, force)? else {
        return Ok(true.into());
    };
    if !output.ok() {
        return Ok(output.stderr_text().trim().into());
    }
    for device in removed {
        if !pvdisplay(cx, device.clone(), false, true)?.is_empty() {
            return Ok(format!("Device \"{device}\" was not affected.").into());
        }
    }
    Ok(true.into())
}

/// Let physical volumes fill their devices.
///
/// ```console
/// $ salt '*' lvm.pvresize /dev/sdb1,/dev/sdb2
/// ```
#[function]
pub fn pvresize(
    cx: &Cx,
    /// The devices: a list, or a text with commas.
    devices: Strings,
    /// Pass over those that are done already.
    #[default(true)]
    r#override: bool,
    /// Ask nothing.
    #[default(true)]
    force: bool,
) -> Result<Value> {
    Ok(match on_volumes(cx, "pvresize", &devices, r#override, force)? {
        Some((output, _)) if !output.ok() => output.stderr_text().trim().into(),
        _ => true.into(),
    })
}

/// Make a volume group.
///
/// ```console
/// $ salt '*' lvm.vgcreate my_vg /dev/sdb1,/dev/sdb2
/// ```
#[function]
pub fn vgcreate(
    cx: &Cx,
    /// The volume group.
    vgname: String,
    /// The devices: a list, or a text with commas.
    devices: Strings,
    /// Ask nothing.
    #[default(false)]
    force: bool,
    /// Options of vgcreate: `physicalextentsize=4M`.
    kwargs: Rest,
) -> Result<Value> {
    if vgname.is_empty() || devices.is_empty() {
        return Ok("Error: vgname and device(s) are both required".into());
    }
    let mut words = texts(["vgcreate", &vgname]);
    words.extend(devices.iter().cloned());
    words.push(quiet_or_yes(force));
    words.extend(options(&kwargs.kwargs, VG_OPTIONS));
    let output = run(cx, &words)?;
    let text = verdict(&output, &format!("Volume group \"{vgname}\" successfully created"));
    let ret = vgdisplay(cx, vgname, true)?;
    ret.insert("Output from vgcreate", text);
    Ok(ret.into())
}

/// Add devices to a volume group.
///
/// ```console
/// $ salt '*' lvm.vgextend my_vg /dev/sdb1,/dev/sdb2
/// ```
#[function]
pub fn vgextend(
    cx: &Cx,
    /// The volume group.
    vgname: String,
    /// The devices: a list, or a text with commas.
    devices: Strings,
    /// Ask nothing.
    #[default(false)]
    force: bool,
) -> Result<Value> {
    if vgname.is_empty() || devices.is_empty() {
        return Ok("Error: vgname and device(s) are both required".into());
    }
    let mut words = texts(["vgextend", &vgname]);
    words.push(quiet_or_yes(force));
    words.extend(devices.iter().cloned());
    let output = run(cx, &words)?;
    let ret = Dict::new();
    let text = verdict(&output, &format!("Volume group \"{vgname}\" successfully extended"));
    ret.insert("Output from vgextend", text);
    Ok(ret.into())
}

/// Remove a volume group.
///
/// ```console
/// $ salt '*' lvm.vgremove vgname
/// ```
#[function]
pub fn vgremove(
    cx: &Cx,
    /// The volume group.
    vgname: String,
    /// Ask nothing.
    #[default(true)]
    force: bool,
) -> Result<String> {
    let words = [texts(["vgremove", &vgname]), vec![quiet_or_yes(force)]].concat();
    let output = run(cx, &words)?;
    Ok(verdict(&output, &format!("Volume group \"{vgname}\" successfully removed")))
}

/// Make a logical volume.
///
/// ```console
/// $ salt web1 lvm.lvcreate data vg0 size=20G
/// ```
#[function]
pub fn lvcreate(
    cx: &Cx,
    /// The logical volume.
    lvname: String,
    /// The volume group.
    vgname: String,
    /// The size: `10G`.
    size: Option<Value>,
    /// The number of extents, or a share: `100%FREE`.
    extents: Option<Value>,
    /// A snapshot of this volume.
    snapshot: Option<String>,
    /// On these devices only.
    pv: Option<String>,
    /// A thin volume; its name is pool/volume.
    #[default(false)]
    thinvolume: bool,
    /// A pool of thin volumes.
    #[default(false)]
    thinpool: bool,
    /// Ask nothing.
    #[default(false)]
    force: bool,
    /// Options of lvcreate: `stripes=3`.
    kwargs: Rest,
) -> Result<Value> {
    if let Some(text) = only_one(size.as_ref(), extents.as_ref()) {
        return Ok(text.into());
    }
    if thinvolume && thinpool {
        return Ok("Error: Please set only one of thinvolume or thinpool to True".into());
    }
    let mut words = match (thinvolume, thinpool) {
        (true, _) => texts(["lvcreate", "--thin", "-n", &lvname]),
        (_, true) => texts(["lvcreate", "--thinpool", &lvname]),
        _ => texts(["lvcreate", "-n", &lvname]),
    };
    match &snapshot {
        Some(origin) => words.extend(["-s".to_owned(), format!("{vgname}/{origin}")]),
        None => words.push(vgname.clone()),
    }
    if let Some(size) = size {
        let option = if thinvolume { "-V" } else { "-L" };
        words.extend([option.to_owned(), size.to_string()]);
    } else if let Some(extents) = extents {
        words.extend(["-l".to_owned(), extents.to_string()]);
    }
    words.extend(pv.filter(|pv| !pv.is_empty()));
    words.extend(options(&kwargs.kwargs, LV_OPTIONS));
    words.push(quiet_or_yes(force));
    let output = run(cx, &words)?;
    let text = verdict(&output, &format!("Logical volume \"{lvname}\" created."));
    let ret = lvdisplay(cx, format!("/dev/{vgname}/{lvname}"), true)?;
    ret.insert("Output from lvcreate", text);
    Ok(ret.into())
}

/// Remove a logical volume.
///
/// ```console
/// $ salt '*' lvm.lvremove lvname vgname
/// ```
#[function]
pub fn lvremove(
    cx: &Cx,
    /// The logical volume.
    lvname: String,
    /// The volume group.
    vgname: String,
    /// Ask nothing.
    #[default(true)]
    force: bool,
) -> Result<String> {
    let words = vec!["lvremove".to_owned(), format!("{vgname}/{lvname}"), quiet_or_yes(force)];
    let output = run(cx, &words)?;
    Ok(verdict(&output, &format!("Logical volume \"{lvname}\" successfully removed")))
}

/// Both ways to change a size; they differ in the program only.
fn resize(
    cx: &Cx,
    (program, done): (&str, &str),
    size: Option<Value>,
    lvpath: Option<String>,
    extents: Option<Value>,
    (force, resizefs): (bool, bool),
) -> Result<Value> {
    if let Some(text) = only_one(size.as_ref(), extents.as_ref()) {
        return Ok(text.into());
    }
    let lvpath = lvpath.unwrap_or_default();
    let mut words = vec![program.to_owned(), quiet_or_yes(force)];
    words.extend(resizefs.then(|| "--resizefs".to_owned()));
    if let Some(size) = size {
        words.extend(["-L".to_owned(), size.to_string()]);
    } else if let Some(extents) = extents {
        words.extend(["-l".to_owned(), extents.to_string()]);
    }
    words.push(lvpath.clone());
    let output = run(cx, &words)?;
    let ret = Dict::new();
    let text = verdict(&output, &format!("Logical volume \"{lvpath}\" successfully {done}."));
    ret.insert(format!("Output from {program}"), text);
    Ok(ret.into())
}

/// Set the size of a logical volume.
///
/// ```console
/// $ salt web1 lvm.lvresize 5G /dev/vg0/data
/// ```
#[function]
pub fn lvresize(
    cx: &Cx,
    /// The size: `10G`.
    size: Option<Value>,
    /// The path of the volume.
    lvpath: Option<String>,
    /// The number of extents, or a share: `100%FREE`.
    extents: Option<Value>,
    /// Ask nothing.
    #[default(false)]
    force: bool,
    /// The file system on it, too.
    #[default(false)]
    resizefs: bool,
) -> Result<Value> {
    resize(cx, ("lvresize", "resized"), size, lvpath, extents, (force, resizefs))
}

/// Make a logical volume larger.
///
/// ```console
/// $ salt web1 lvm.lvextend 5G /dev/vg0/data
/// ```
#[function]
pub fn lvextend(
    cx: &Cx,
    /// The size: `10G`.
    size: Option<Value>,
    /// The path of the volume.
    lvpath: Option<String>,
    /// The number of extents, or a share: `100%FREE`.
    extents: Option<Value>,
    /// Ask nothing.
    #[default(false)]
    force: bool,
    /// The file system on it, too.
    #[default(false)]
    resizefs: bool,
) -> Result<Value> {
    resize(cx, ("lvextend", "extended"), size, lvpath, extents, (force, resizefs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_colon_separated_fields() {
        let text = "  /dev/vg0/lv0:vg0:3:1:-1:0:2080768:254:-1:0:-1:253:0\n  a note\n";
        let volumes = table(text, &LV);
        let volume = volumes.get("/dev/vg0/lv0").unwrap();
        assert_eq!(volume.get_str("Logical Volume Size").as_deref(), Some("2080768"));
        assert_eq!(volume.get_str("Minor Device Number").as_deref(), Some("0"));
        assert_eq!(volumes.len(), 1);
    }
}
