//! `mount`: file systems that are mounted, and those to be at every start.
//!
//! What is mounted is read from `/proc`, the table is edited line by line (comments and odd lines
//! stay), mounting is done by `mount`, `umount`, `swapon` and `swapoff`. A small file in the cache
//! remembers the options a mount was made with, for options that cannot be seen afterwards.

use std::path::{Path, PathBuf};

use halite_spec::{Command, Cx, Error, Rest, Result, function, host::Write, module};
use halite_value::{Dict, Value, dict, entries, yaml};

use crate::file::text::{read_to_edit, read_to_edit_if_there};

module! {
    /// File systems that are mounted, and those to be.
    "mount": active, fstab, rm_fstab, set_fstab, mount, remount, umount, is_mounted, is_fuse_exec,
    swaps, swapon, swapoff, get_mount_from_path, get_device_from_path, read_mount_cache,
    write_mount_cache, delete_mount_cache,
}

/// A file system that is mounted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mounted {
    /// As the kernel writes it: a space is `\040`.
    pub name: String,
    pub device: String,
    pub fstype: String,
    pub opts: Vec<String>,
    pub superopts: Vec<String>,
    pub uuid: Option<String>,
    pub label: Option<String>,
    ids: [String; 5],
}

fn split(options: &str) -> Vec<String> {
    options.split(',').map(|option| option.replace("\\040", "\\ ")).collect()
}

/// Reads `/proc/self/mountinfo`; of two mounts in one place the last is seen.
pub fn read_mountinfo(text: &str) -> Vec<Mounted> {
    let mut found: Vec<Mounted> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(end) = words.iter().position(|word| *word == "-") else { continue };
        let (Some(&[id, parent, number, root, name, opts]), Some(&[fstype, device, superopts])) =
            (words.first_chunk(), words.get(end + 1..end + 4).and_then(|rest| rest.first_chunk()))
        else {
            continue;
        };
        let (major, minor) = number.split_once(':').unwrap_or((number, ""));
        found.retain(|own| own.name != name);
        found.push(Mounted {
            name: name.into(),
            device: device.replace("\\040", "\\ "),
            fstype: fstype.into(),
            opts: split(opts),
            superopts: split(superopts),
            uuid: None,
            label: None,
            ids: [id, parent, major, minor, root].map(str::to_owned),
        });
    }
    found
}

/// Reads `blkid`: device, then its marks.
pub fn read_blkid(text: &str) -> Vec<(String, Dict)> {
    let devices = text.lines().filter_map(|line| {
        let (device, rest) = line.split_once(':')?;
        let marks = Dict::new();
        let mut rest = rest.trim_start();
        while let Some((name, after)) = rest.split_once("=\"") {
            let (value, after) = after.split_once('"')?;
            marks.insert(name.trim(), value);
            rest = after;
        }
        Some((device.to_owned(), marks))
    });
    devices.collect()
}

/// Returns what is mounted, with the marks of the devices.
pub fn mounts(cx: &Cx) -> Result<Vec<Mounted>> {
    let mut found = read_mountinfo(&cx.host.read_text(Path::new("/proc/self/mountinfo"))?);
    if cx.host.which("blkid").is_some() {
        let devices = read_blkid(&cx.host.run(&Command::line(["blkid"]).query())?.stdout_text());
        for own in &mut found {
            let marks = devices.iter().find(|(device, _)| *device == own.device);
            let mark =
                |name: &str| marks.and_then(|(_, marks)| marks.get(name)).map(|m| m.to_string());
            own.uuid = mark("UUID").map(|uuid| uuid.to_lowercase());
            own.label = mark("LABEL");
        }
    }
    Ok(found)
}

/// Return what is mounted, by place.
///
/// ```console
/// $ salt web1 mount.active
/// ```
#[function]
pub fn active(
    cx: &Cx,
    /// All that the kernel tells.
    #[default(false)]
    extended: bool,
) -> Result<Dict> {
    if !extended {
        let text = cx.host.read_text(Path::new("/proc/self/mounts"))?;
        let found = Dict::new();
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [device, name, fstype, opts, ..] = words.as_slice() else { continue };
            found.insert(
                *name,
                dict! {
                    "device" => *device, "alt_device" => *device, "fstype" => *fstype,
                    "opts" => Value::list(split(opts)),
                },
            );
        }
        return Ok(found);
    }
    let found = Dict::new();
    for own in mounts(cx)? {
        let [id, parent, major, minor, root] = own.ids;
        found.insert(
            own.name,
            dict! {
                "mountid" => id, "parentid" => parent, "major" => major, "minor" => minor,
                "root" => root, "opts" => Value::list(own.opts), "fstype" => own.fstype,
                "device" => &own.device, "alt_device" => own.device,
                "superopts" => Value::list(own.superopts), "device_uuid" => own.uuid,
                "device_label" => own.label,
            },
        );
    }
    Ok(found)
}

/// A line of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub device: String,
    pub name: String,
    pub fstype: String,
    pub opts: String,
    pub dump: String,
    pub pass: String,
}

impl Entry {
    pub fn read(line: &str) -> Option<Self> {
        if line.starts_with('#') {
            return None;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let (device, name, fstype, opts, rest) = match words.as_slice() {
            [device, name, fstype, opts, rest @ ..] if rest.len() <= 2 => {
                (device, name, fstype, opts, rest)
            }
            _ => return None,
        };
        let number = |at: usize| rest.get(at).map_or("0", |word| *word).to_owned();
        Some(Self {
            device: (*device).into(),
            name: (*name).into(),
            fstype: (*fstype).into(),
            opts: (*opts).into(),
            dump: number(0),
            pass: number(1),
        })
    }

    fn line(&self) -> String {
        let Self { device, name, fstype, opts, dump, pass } = self;
        format!("{device}\t\t{name}\t{fstype}\t{opts}\t{dump} {pass}\n")
    }

    /// Two names of one folder differ by slashes at the end.
    fn same(&self, other: &Self, key: &str) -> bool {
        let path = |text: &str| {
            let trimmed = text.trim_end_matches('/');
            if trimmed.is_empty() { text.to_owned() } else { trimmed.to_owned() }
        };
        match key {
            "name" => path(&self.name) == path(&other.name),
            "device" => path(&self.device) == path(&other.device),
            "fstype" => self.fstype == other.fstype,
            "opts" => self.opts == other.opts,
            "dump" => self.dump == other.dump,
            "pass_num" => self.pass == other.pass,
            _ => false,
        }
    }
}

const KEYS: [&str; 6] = ["device", "name", "fstype", "opts", "dump", "pass_num"];

/// Return the table, by place.
///
/// ```console
/// $ salt web1 mount.fstab
/// ```
#[function]
pub fn fstab(
    cx: &Cx,
    /// The file.
    #[default("/etc/fstab".to_owned())]
    config: String,
) -> Result<Dict> {
    let found = Dict::new();
    for entry in table(cx, &config)? {
        let mut name = entry.name;
        while found.contains(name.as_str()) {
            name.push('_');
        }
        let opts = Value::list(entry.opts.split(','));
        found.insert(
            name,
            dict! {
                "device" => entry.device, "fstype" => entry.fstype, "opts" => opts,
                "dump" => entry.dump, "pass" => entry.pass,
            },
        );
    }
    Ok(found)
}

/// Returns the lines of the table.
pub fn table(cx: &Cx, config: &str) -> Result<Vec<Entry>> {
    let text = cx.host.read_text_if_there(Path::new(config))?.unwrap_or_default();
    Ok(text.lines().filter_map(Entry::read).collect())
}

/// Removes the lines of a place (and device, if given) from the table.
pub fn forget(cx: &Cx, name: &str, device: Option<&str>, config: &str) -> Result<bool> {
    let path = Path::new(config);
    let text = read_to_edit(cx, path)?;
    let wanted = Entry {
        device: device.unwrap_or_default().into(),
        name: name.into(),
        fstype: String::new(),
        opts: String::new(),
        dump: String::new(),
        pass: String::new(),
    };
    let goes = |line: &&str| {
        Entry::read(line).is_some_and(|own| {
            own.same(&wanted, "name") && (device.is_none() || own.same(&wanted, "device"))
        })
    };
    let kept: String = text.split_inclusive('\n').filter(|line| !goes(line)).collect();
    if kept != text {
        cx.host.write(path, kept.as_bytes(), &Write::default())?;
    }
    Ok(true)
}

/// Remove a line from the table.
///
/// ```console
/// $ salt web1 mount.rm_fstab /srv/data /dev/vdb
/// ```
#[function]
pub fn rm_fstab(
    cx: &Cx,
    /// The place.
    name: String,
    /// The device.
    #[arg(required)]
    device: Option<String>,
    /// The file.
    #[default("/etc/fstab".to_owned())]
    config: String,
) -> Result<bool> {
    forget(cx, &name, device.as_deref(), &config)
}

/// What has to be done to the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Present,
    New,
    Change,
}

impl Status {
    pub fn word(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::New => "new",
            Self::Change => "change",
        }
    }
}

/// By what a line is recognised.
pub fn keys_of(match_on: &Value, fstype: &str) -> Result<Vec<String>> {
    const SPECIAL: [&str; 14] = [
        "btrfs",
        "ceph",
        "cgroup",
        "debugfs",
        "devtmpfs",
        "fusectl",
        "glusterfs",
        "nfs",
        "nfs4",
        "none",
        "proc",
        "securityfs",
        "sysfs",
        "tmpfs",
    ];
    let keys = match match_on {
        Value::List(list) => list.into_iter().map(|key| key.to_string()).collect(),
        Value::Str(word) if word == "auto" => {
            vec![if SPECIAL.contains(&fstype) { "name" } else { "device" }.to_owned()]
        }
        Value::Str(word) => vec![word.to_string()],
        _ => return Err(Error::failed("match_on must be a string or list of strings")),
    };
    match keys.iter().find(|key| !KEYS.contains(&key.as_str())) {
        Some(key) => Err(Error::failed(format!("Unrecognized keys in match_on: \"{key}\""))),
        None => Ok(keys),
    }
}

/// Works out the new table.
pub fn with_entry(text: &str, entry: &Entry, keys: &[String], keep: bool) -> (String, Status) {
    let (mut new, mut status) = (String::new(), None);
    for line in text.split_inclusive('\n') {
        let own = Entry::read(line).filter(|own| keys.iter().all(|key| own.same(entry, key)));
        match own {
            Some(own) if keep || KEYS.iter().all(|key| own.same(entry, key)) => {
                status = status.or(Some(Status::Present));
                new += line;
            }
            Some(_) => {
                status = Some(Status::Change);
                new += &entry.line();
            }
            None => new += line,
        }
    }
    let status = status.unwrap_or_else(|| {
        if !new.is_empty() && !new.ends_with('\n') {
            new.push('\n');
        }
        new += &entry.line();
        Status::New
    });
    (new, status)
}

/// Puts a line into the table, or only tells what that would do.
pub fn remember(
    cx: &Cx,
    entry: &Entry,
    match_on: &Value,
    config: &str,
    keep: bool,
    test: bool,
) -> Result<Status> {
    let path = Path::new(config);
    let keys = keys_of(match_on, &entry.fstype)?;
    let Some(text) = read_to_edit_if_there(cx, path)? else {
        return Err(Error::failed(format!("Bad config file \"{config}\"")));
    };
    let (new, status) = with_entry(&text, entry, &keys, keep);
    if status != Status::Present && !test {
        cx.host.write(path, new.as_bytes(), &Write::default())?;
    }
    Ok(status)
}

/// Put a line into the table: `new`, `change` or `present`.
///
/// ```console
/// $ salt web1 mount.set_fstab /srv/data /dev/vdb xfs
/// ```
#[function]
#[expect(clippy::too_many_arguments, reason = "they are Salt's")]
pub fn set_fstab(
    cx: &Cx,
    /// The place.
    name: String,
    /// The device.
    device: String,
    /// The kind of file system.
    fstype: String,
    /// The options.
    #[default(vec!["defaults".to_owned()])]
    #[shown("defaults".to_owned())]
    opts: Vec<String>,
    /// Whether `dump` saves it.
    #[default("0".to_owned())]
    #[shown(0i64)]
    dump: String,
    /// When it is checked.
    #[default("0".to_owned())]
    #[shown(0i64)]
    pass_num: String,
    /// The file.
    #[default("/etc/fstab".to_owned())]
    config: String,
    /// Only tell what would be done.
    #[default(false)]
    test: bool,
    /// By what a line is recognised: `auto`, a column, or a list of them.
    #[default(Value::from("auto"))]
    match_on: Value,
    /// Leave a line that is there as it is.
    #[default(false)]
    not_change: bool,
    /// Accepted for old callers.
    kwargs: Rest,
) -> Result<&'static str> {
    let _ = kwargs;
    let spaces = |text: &str| text.replace("\\ ", "\\040");
    let entry = Entry {
        device: spaces(&device),
        name,
        fstype,
        opts: spaces(&opts.join(",")),
        dump,
        pass: pass_num,
    };
    Ok(remember(cx, &entry, &match_on, &config, not_change, test)?.word())
}

/// Runs a command; True, or what it complained of.
fn outcome(cx: &Cx, line: Vec<String>, user: Option<String>) -> Result<Value> {
    let mut command = Command::line(line);
    command.user = user;
    let output = cx.host.run(&command)?;
    cx.job.set_retcode(output.code.into());
    Ok(if output.ok() { true.into() } else { output.stderr_text().trim_end().into() })
}

fn checked(word: &str) -> Result<()> {
    if word.starts_with('-') {
        return Err(Error::invalid(format!("'{word}' looks like an option")));
    }
    Ok(())
}

fn mount_line(
    name: &str,
    device: Option<&str>,
    fstype: &str,
    opts: &[String],
) -> Result<Vec<String>> {
    checked(name)?;
    let mut line = vec!["mount".to_owned()];
    if let Some(device) = device {
        checked(device)?;
        if !opts.is_empty() {
            line.extend(["-o".to_owned(), opts.join(",")]);
        }
        if !fstype.is_empty() {
            line.extend(["-t".to_owned(), fstype.to_owned()]);
        }
        line.push(device.to_owned());
    }
    line.push(name.to_owned());
    Ok(line)
}

/// Mount a device. Returns True, or a text that says why not.
///
/// ```console
/// $ salt web1 mount.mount /srv/data /dev/vdb
/// ```
#[function]
pub fn mount(
    cx: &Cx,
    /// The place.
    name: String,
    /// The device; as the table says if none is given.
    #[default(Value::Bool(false))]
    device: Value,
    /// Make the folder.
    #[default(false)]
    mkmnt: bool,
    /// The kind of file system.
    #[default(String::new())]
    fstype: String,
    /// The options.
    #[default(vec!["defaults".to_owned()])]
    #[shown("defaults".to_owned())]
    opts: Vec<String>,
    /// Who mounts.
    user: Option<String>,
    /// The tool; only `mount` is known.
    #[default("mount".to_owned())]
    util: String,
) -> Result<Value> {
    if util != "mount" {
        return Ok(false.into());
    }
    let path = Path::new(&name);
    if mkmnt && !cx.host.exists(path)? {
        cx.host.create_dirs(path, None)?;
        if let Some(user) =
            user.as_deref().map(|user| cx.host.user_named(user)).transpose()?.flatten()
        {
            cx.host.set_owner(path, Some(user.uid), Some(user.gid), true)?;
        }
    }
    let device = device.truthy().then(|| device.to_string());
    outcome(cx, mount_line(&name, device.as_deref(), &fstype, &opts)?, user)
}

/// Mount a device anew, with other options. Returns True, or a text that says why not.
///
/// ```console
/// $ salt web1 mount.remount /srv/data /dev/vdb
/// ```
#[function]
pub fn remount(
    cx: &Cx,
    /// The place.
    name: String,
    /// The device.
    device: String,
    /// Make the folder.
    #[default(false)]
    mkmnt: bool,
    /// The kind of file system.
    #[default(String::new())]
    fstype: String,
    /// The options.
    #[default(vec!["defaults".to_owned()])]
    #[shown("defaults".to_owned())]
    opts: Vec<String>,
    /// Who mounts.
    user: Option<String>,
) -> Result<Value> {
    if !is_mounted(cx, name.clone())? {
        return mount(cx, name, device.into(), mkmnt, fstype, opts, user, "mount".into());
    }
    let mut opts = opts;
    if !opts.iter().any(|own| own == "remount") {
        opts.push("remount".into());
    }
    outcome(cx, mount_line(&name, Some(&device), &fstype, &opts)?, user)
}

/// Unmount a place. Returns True, or a text that says why not.
///
/// ```console
/// $ salt web1 mount.umount /srv/data
/// ```
#[function]
pub fn umount(
    cx: &Cx,
    /// The place.
    name: String,
    /// The device, in place of the place.
    device: Option<String>,
    /// Who unmounts.
    user: Option<String>,
    /// The tool; only `mount` is known.
    #[default("mount".to_owned())]
    util: String,
    /// Also while it is in use: it goes when nobody uses it any more.
    #[default(false)]
    lazy: bool,
) -> Result<Value> {
    let _ = util;
    if !is_mounted(cx, name.clone())? {
        return Ok(format!("{name} does not have anything mounted").into());
    }
    let what = device.filter(|device| !device.is_empty()).unwrap_or(name);
    checked(&what)?;
    let mut line = vec!["umount".to_owned()];
    if lazy {
        line.push("-l".into());
    }
    line.push(what);
    outcome(cx, line, user)
}

/// Tell whether something is mounted in a place.
///
/// ```console
/// $ salt web1 mount.is_mounted /srv/data
/// ```
#[function]
pub fn is_mounted(
    cx: &Cx,
    /// The place.
    name: String,
) -> Result<bool> {
    let text = cx.host.read_text(Path::new("/proc/self/mounts"))?;
    let wanted = name.replace(' ', "\\040");
    Ok(text.lines().any(|line| line.split_whitespace().nth(1) == Some(wanted.as_str())))
}

/// Tell whether a program uses FUSE.
///
/// ```console
/// $ salt web1 mount.is_fuse_exec rclone
/// ```
#[function]
pub fn is_fuse_exec(
    cx: &Cx,
    /// The program.
    cmd: String,
) -> Result<bool> {
    let Some(path) = cx.host.which(&cmd) else { return Ok(false) };
    if cx.host.which("ldd").is_none() {
        return Err(Error::failed("ldd"));
    }
    let output = cx.host.run(&Command::line(["ldd"]).arg(path).query())?;
    Ok(output.stdout_text().contains("libfuse"))
}

/// Return the swap space in use.
///
/// ```console
/// $ salt web1 mount.swaps
/// ```
#[function]
pub fn swaps(cx: &Cx) -> Result<Dict> {
    let text = cx.host.read_text(Path::new("/proc/swaps"))?;
    let found = Dict::new();
    for line in text.lines().filter(|line| !line.starts_with("Filename")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let &[name, kind, size, used, priority] = words.as_slice() else { continue };
        found.insert(
            name,
            dict! {
                "type" => kind, "size" => size, "used" => used, "priority" => priority,
            },
        );
    }
    Ok(found)
}

/// Use a swap space.
///
/// ```console
/// $ salt web1 mount.swapon /srv/swap
/// ```
#[function]
pub fn swapon(
    cx: &Cx,
    /// The device or file.
    name: String,
    /// Its priority.
    priority: Option<i64>,
) -> Result<Dict> {
    checked(&name)?;
    if let Some(stats) = swaps(cx)?.get(name.as_str()) {
        return Ok(entries! { "stats" => stats, "new" => false });
    }
    let mut line = vec!["swapon".to_owned(), name.clone()];
    if let Some(priority) = priority {
        line.extend(["-p".to_owned(), priority.to_string()]);
    }
    let output = cx.host.run(&Command::line(line))?;
    cx.job.set_retcode(output.code.into());
    Ok(match swaps(cx)?.get(name.as_str()) {
        Some(stats) => entries! { "stats" => stats, "new" => true },
        None => Dict::new(),
    })
}

/// Stop using a swap space; None if it is not used.
///
/// ```console
/// $ salt web1 mount.swapoff /srv/swap
/// ```
#[function]
pub fn swapoff(
    cx: &Cx,
    /// The device or file.
    name: String,
) -> Result<Option<bool>> {
    checked(&name)?;
    if !swaps(cx)?.contains(name.as_str()) {
        return Ok(None);
    }
    let output = cx.host.run(&Command::line(["swapoff", &name]))?;
    cx.job.set_retcode(output.code.into());
    Ok(Some(!swaps(cx)?.contains(name.as_str())))
}

/// Return the place of the mount a path is on.
///
/// ```console
/// $ salt web1 mount.get_mount_from_path /srv/data/shop
/// ```
#[function]
pub fn get_mount_from_path(
    cx: &Cx,
    /// The path.
    path: String,
) -> Result<String> {
    let mut path = cx.host.real_path(Path::new(&path)).unwrap_or_else(|_| PathBuf::from(&path));
    let mounted = active(cx, false)?;
    while path.parent().is_some() {
        let name = path.to_string_lossy().replace(' ', "\\040");
        if mounted.contains(name.as_str()) {
            break;
        }
        path.pop();
    }
    Ok(path.to_string_lossy().into_owned())
}

/// Return the device a path is on.
///
/// ```console
/// $ salt web1 mount.get_device_from_path /srv/data
/// ```
#[function]
pub fn get_device_from_path(
    cx: &Cx,
    /// The path.
    path: String,
) -> Result<Option<Value>> {
    let place = get_mount_from_path(cx, path)?;
    Ok(active(cx, false)?.get(place.as_str()).and_then(|own| own.get("device")))
}

fn cache_file(cx: &Cx) -> PathBuf {
    PathBuf::from(cx.opt_str("cachedir").unwrap_or_default().as_str()).join("mounts")
}

fn cached(cx: &Cx) -> Dict {
    let text = cx.host.read_text(&cache_file(cx)).unwrap_or_default();
    match yaml::load_str(&text) {
        Ok(Value::Dict(all)) => all,
        _ => Dict::new(),
    }
}

fn write_cache(cx: &Cx, mounts: &Dict) -> Result<()> {
    let all = dict! { "mounts" => mounts };
    let text = yaml::dump(&all, &yaml::DumpOptions::block())
        .map_err(|_| Error::failed("Unable to write mount cache."))?;
    let path = cache_file(cx);
    if let Some(folder) = path.parent() {
        cx.host.create_dirs(folder, None)?;
    }
    Ok(cx.host.write(&path, text.as_bytes(), &Write { mode: Some(0o600), ..Write::default() })?)
}

fn cached_mounts(cx: &Cx) -> Dict {
    match cached(cx).get("mounts") {
        Some(Value::Dict(mounts)) => mounts,
        _ => Dict::new(),
    }
}

/// Return how a place was mounted last.
///
/// ```console
/// $ salt web1 mount.read_mount_cache /srv/data
/// ```
#[function]
pub fn read_mount_cache(
    cx: &Cx,
    /// The place.
    name: String,
) -> Result<Dict> {
    Ok(match cached_mounts(cx).get(name.as_str()) {
        Some(Value::Dict(own)) => own,
        _ => Dict::new(),
    })
}

/// Remember how a place was mounted.
///
/// ```console
/// $ salt '*' mount.write_mount_cache /mnt/share /dev/sda1 False ext4 defaults
/// ```
#[function]
pub fn write_mount_cache(
    cx: &Cx,
    /// The place.
    real_name: String,
    /// The device.
    device: String,
    /// The folder was made.
    mkmnt: bool,
    /// The kind of file system.
    fstype: String,
    /// The options.
    mount_opts: Vec<String>,
) -> Result<bool> {
    let mounts = cached_mounts(cx);
    mounts.insert(real_name, dict! {
        "device" => device, "fstype" => fstype, "mkmnt" => mkmnt, "opts" => Value::list(mount_opts),
    });
    write_cache(cx, &mounts)?;
    Ok(true)
}

/// Forget how a place was mounted.
///
/// ```console
/// $ salt web1 mount.delete_mount_cache /srv/data
/// ```
#[function]
pub fn delete_mount_cache(
    cx: &Cx,
    /// The place.
    real_name: String,
) -> Result<bool> {
    let mounts = cached_mounts(cx);
    if mounts.remove(real_name.as_str()).is_some() {
        write_cache(cx, &mounts)?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mountinfo() {
        let text =
            "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n";
        let found = read_mountinfo(text);
        assert_eq!(found[0].name, "/mnt2");
        assert_eq!(found[0].device, "/dev/root");
        assert_eq!(found[0].opts, ["rw", "noatime"]);
        assert_eq!(found[0].superopts, ["rw", "errors=continue"]);
    }

    #[test]
    fn blkid() {
        let found = read_blkid("/dev/vda1: LABEL=\"my root\" UUID=\"AB-C\" TYPE=\"ext4\"\n");
        assert_eq!(found[0].0, "/dev/vda1");
        assert_eq!(found[0].1.get("LABEL").unwrap(), "my root");
        assert_eq!(found[0].1.get("UUID").unwrap(), "AB-C");
    }

    #[test]
    fn the_table() {
        let entry = Entry::read("/dev/sda1 /mnt ext4 defaults").unwrap();
        assert_eq!(entry.line(), "/dev/sda1\t\t/mnt\text4\tdefaults\t0 0\n");
        let keys = ["device".to_owned()];
        let text = "# c\n/dev/sda1 /mnt ext4 rw 0 0\n";
        let (new, status) = with_entry(text, &entry, &keys, false);
        assert_eq!(
            (new.as_str(), status),
            ("# c\n/dev/sda1\t\t/mnt\text4\tdefaults\t0 0\n", Status::Change)
        );
        assert_eq!(with_entry(&new, &entry, &keys, false).1, Status::Present);
        assert_eq!(with_entry("", &entry, &keys, false).1, Status::New);
    }
}
