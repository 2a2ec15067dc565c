//! `disk`: space, file systems and settings of disks.
//!
//! Space is what `df` says, kept as its texts: callers compare and print them.

use std::path::Path;

use halite_spec::{Command, Cx, Error, Rest, Result, function, host::Kind, module};
use halite_value::{Dict, Value, dict};

module! {
    /// Space, file systems and settings of disks.
    "disk": usage, inodeusage, percent, blkid, fstype, get_fstype_from_path, dump, tune, wipe,
    resize2fs, format, hdparms, hpa, smart_attributes, iostat,
}

fn look(cx: &Cx, words: &[&str]) -> Result<String> {
    let output = cx.host.run(&Command::line(words.iter().copied()).query())?;
    // As with every command that Salt runs itself: its failure is the job's.
    cx.job.set_retcode(output.code.into());
    Ok(output.stdout_text())
}

/// The flags of `df` a caller gave; only letters that do not change its table are let through.
fn flags(args: Option<&str>, function: &str) -> Result<String> {
    let Some(args) = args.filter(|args| !args.is_empty()) else { return Ok(String::new()) };
    if args.chars().all(|letter| "aHhikLlmPTx".contains(letter)) && !args.starts_with('-') {
        return Ok(args.to_owned());
    }
    Err(Error::failed(format!("Invalid flag passed to {function}")))
}

/// The lines of `df -P`, with a file system's name that holds blanks left in one piece.
fn table(text: &str) -> Vec<Vec<String>> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with("Filesystem"));
    lines
        .map(|line| {
            let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            while words.len() > 6
                && words
                    .get(1)
                    .is_some_and(|word| !word.starts_with(|c: char| c.is_ascii_digit() || c == '-'))
            {
                let more = words.remove(1);
                if let Some(first) = words.first_mut() {
                    *first = format!("{first} {more}");
                }
            }
            // A mount point may hold blanks, too.
            while words.len() > 6 {
                let more = words.remove(6);
                if let Some(last) = words.last_mut() {
                    *last = format!("{last} {more}");
                }
            }
            words
        })
        .filter(|words| words.len() == 6)
        .collect()
}

fn is_device(cx: &Cx, device: &str) -> bool {
    cx.host.stat(Path::new(device), true).is_ok_and(|stat| stat.kind == Kind::Block)
}

/// Return the space of mounted file systems.
///
/// ```console
/// $ salt '*' disk.usage h
/// ```
#[function]
pub fn usage(
    cx: &Cx,
    /// Flags of `df`: `h`, `l`, `m` …
    args: Option<String>,
) -> Result<Dict> {
    // differs: genuine Salt tells of nothing where there is no `/etc/mtab`, as in some containers; `df` does without.
    let flags = flags(args.as_deref(), "disk.usage")?;
    let ret = Dict::new();
    for words in table(&look(
        cx,
        &["df", &format!("-P{}{flags}", if flags.contains(['h', 'm', 'H']) { "" } else { "k" })],
    )?) {
        let [filesystem, blocks, used, available, capacity, mount] = words.as_slice() else {
            continue;
        };
        let own = dict! {
            "filesystem" => filesystem, "1K-blocks" => blocks, "used" => used,
            "available" => available, "capacity" => capacity,
        };
        ret.insert(mount, own);
    }
    Ok(ret)
}

/// Return the inodes of mounted file systems.
///
/// ```console
/// $ salt web1 disk.inodeusage
/// ```
#[function]
pub fn inodeusage(
    cx: &Cx,
    /// Flags of `df`: `h`, `l`, `m` …
    args: Option<String>,
) -> Result<Dict> {
    let flags = flags(args.as_deref(), "disk.inodeusage")?;
    let ret = Dict::new();
    for words in table(&look(cx, &["df", &format!("-iP{flags}")])?) {
        let [filesystem, inodes, used, free, share, mount] = words.as_slice() else { continue };
        let own = dict! {
            "inodes" => inodes, "used" => used, "free" => free, "use" => share,
            "filesystem" => filesystem,
        };
        ret.insert(mount, own);
    }
    Ok(ret)
}

/// Return how full file systems are; with a mount point, how full that one is.
///
/// ```console
/// $ salt web1 disk.percent
/// ```
#[function]
pub fn percent(
    cx: &Cx,
    /// A mount point.
    args: Option<String>,
) -> Result<Value> {
    let ret = Dict::new();
    for words in table(&look(cx, &["df", "-P"])?) {
        if let [.., capacity, mount] = words.as_slice() {
            ret.insert(mount, capacity);
        }
    }
    match args.filter(|mount| !mount.is_empty()) {
        Some(mount) => Ok(ret.get(mount.as_str()).unwrap_or_else(|| Value::Dict(Dict::new()))),
        None => Ok(ret.into()),
    }
}

/// Return what block devices hold.
///
/// ```console
/// $ salt web1 disk.blkid
/// ```
#[function]
pub fn blkid(
    cx: &Cx,
    /// One device.
    device: Option<String>,
    /// Only those with this: `UUID=…`.
    token: Option<String>,
) -> Result<Dict> {
    let mut words = vec!["blkid"];
    match (&token, &device) {
        (Some(token), _) => words.extend(["-t", token]),
        (None, Some(device)) => words.push(device),
        (None, None) => {}
    }
    let ret = Dict::new();
    let output = cx.host.run(&Command::line(words).query())?;
    if !output.ok() {
        cx.job.set_retcode(output.code.into());
        return Ok(ret);
    }
    for (name, rest) in output.stdout_text().lines().filter_map(|line| line.split_once(": ")) {
        let own = Dict::new();
        let mut rest = rest.trim();
        while let Some((key, after)) = rest.split_once("=\"") {
            let (value, after) = after.split_once('"').unwrap_or((after, ""));
            own.insert(key.trim(), value);
            rest = after;
        }
        ret.insert(name, own);
    }
    Ok(ret)
}

/// Return the file system on a device.
///
/// ```console
/// $ salt web1 disk.fstype /dev/vdb
/// ```
#[function]
pub fn fstype(
    cx: &Cx,
    /// The device.
    device: String,
) -> Result<String> {
    if cx.host.which("lsblk").is_some() {
        let text = look(cx, &["lsblk", "-o", "fstype", "-n", "--", &device])?;
        if let Some(kind) = text.lines().map(str::trim).find(|kind| !kind.is_empty()) {
            return Ok(kind.to_owned());
        }
    }
    // The whole line, as in Salt.
    let text = look(cx, &["df", "-T", &device])?;
    Ok(text.lines().nth(1).unwrap_or_default().to_owned())
}

/// Return the file system a path is on.
///
/// ```console
/// $ salt web1 disk.get_fstype_from_path /srv/app
/// ```
#[function]
pub fn get_fstype_from_path(
    cx: &Cx,
    /// The path.
    path: String,
) -> Result<String> {
    let text = look(cx, &["df", "-T", "--", &path])?;
    Ok(text.lines().nth(1).unwrap_or_default().to_owned())
}

/// Return what `blockdev` knows of a device; False when it is none.
///
/// ```console
/// $ salt web1 disk.dump /dev/vdb
/// ```
#[function]
pub fn dump(
    cx: &Cx,
    /// The device.
    device: String,
    /// Only these: a list.
    args: Option<Value>,
) -> Result<Value> {
    const ALL: [&str; 11] = [
        "getro",
        "getdiscardzeroes",
        "getss",
        "getpbsz",
        "getiomin",
        "getioopt",
        "getalignoff",
        "getmaxsect",
        "getsize",
        "getsize64",
        "getra",
    ];
    let output = cx.host.run(
        &Command::line(["blockdev"])
            .args(ALL.iter().map(|name| format!("--{name}")).chain(["--getfra".to_owned()]))
            .arg(&device)
            .query(),
    )?;
    if !output.ok() {
        return Ok(false.into());
    }
    let wanted: Option<Vec<String>> = args
        .filter(Value::truthy)
        .map(|args| args.items_of_sequence().unwrap_or_else(|| vec![args]))
        .map(|list| list.iter().map(Value::to_string).collect());
    let ret = Dict::new();
    let names = ALL.into_iter().chain(["getfra"]);
    for (name, value) in names.zip(output.stdout_text().lines()) {
        if wanted.as_ref().is_none_or(|wanted| wanted.iter().any(|own| own == name)) {
            ret.insert(name, value);
        }
    }
    Ok(ret.into())
}

/// Set options of a device: `read-ahead=1024 read-write=True`.
///
/// ```console
/// $ salt web1 disk.tune /dev/vdb
/// ```
#[function]
pub fn tune(
    cx: &Cx,
    /// The device.
    device: String,
    /// The options.
    kwargs: Rest,
) -> Result<Value> {
    let mut words = vec!["blockdev".to_owned()];
    let mut asked = Vec::new();
    for (key, value) in &kwargs.kwargs {
        let key = key.to_string();
        let (option, get) = match key.as_str() {
            "read-ahead" => ("setra", "getra"),
            "filesystem-read-ahead" => ("setfra", "getfra"),
            "read-only" => ("setro", "getro"),
            "read-write" => ("setrw", "getro"),
            name if name.starts_with("__") => continue,
            name => {
                let text = format!("Invalid keyword arguments: {name}={value}");
                return Err(Error::invalid(text));
            }
        };
        words.push(format!("--{option}"));
        if option.ends_with("ra") {
            words.push(value.to_string());
        }
        asked.push(Value::from(get));
    }
    words.push(device.clone());
    let output = cx.host.run(&Command::line(words))?;
    if !output.ok() {
        return Err(Error::failed(output.stderr_text().trim_end()));
    }
    dump(cx, device, Some(Value::from(asked)))
}

/// Remove the signatures of file systems from a device.
///
/// ```console
/// $ salt web1 disk.wipe /dev/vdb
/// ```
#[function]
pub fn wipe(
    cx: &Cx,
    /// The device.
    device: String,
) -> Result<bool> {
    let output = cx.host.run(&Command::line(["wipefs", "-a", "--", &device]))?;
    if !output.ok() {
        tracing::error!("Error wiping device {device}: {}", output.stderr_text().trim_end());
    }
    cx.job.set_retcode(output.code.into());
    Ok(output.ok())
}

/// Let a file system fill its device.
///
/// ```console
/// $ salt web1 disk.resize2fs /dev/vdb
/// ```
#[function]
pub fn resize2fs(
    cx: &Cx,
    /// The device.
    device: String,
) -> Result<Value> {
    let output = cx.host.run(&Command::line(["resize2fs", &device]))?;
    cx.job.set_retcode(output.code.into());
    // Salt says nothing of a failure but its code.
    Ok(if output.ok() { true.into() } else { Value::Null })
}

/// What one can wish of a new file system.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wish {
    Fat,
    Force,
    InodeSize,
    Lazy,
}

/// How a wish is told to `mkfs` of which file systems; `{}` is its value. Others do not hear of it.
const MKFS: &[(Wish, &str, &[&str])] = &[
    (Wish::InodeSize, "ext*", &["-i", "{}"]),
    (Wish::InodeSize, "xfs*", &["-i", "size={}"]),
    (Wish::Lazy, "ext*", &["-E", "lazy_itable_init={}"]),
    (Wish::Fat, "*fat", &["-F", "{}"]),
    (Wish::Force, "ext*", &["-F"]),
    (Wish::Force, "xfs", &["-f"]),
];

/// The options of `mkfs` for a file system.
fn mkfs_options(fs_type: &str, wishes: &[(Wish, Option<Value>)]) -> Vec<String> {
    let value_of = |wish: Wish| {
        let value =
            wishes.iter().find(|(own, _)| *own == wish).and_then(|(_, value)| value.clone());
        value.map(|value| match value {
            Value::Bool(flag) => i64::from(flag).to_string(),
            other => other.to_string(),
        })
    };
    let mut words = Vec::new();
    for (wish, kind, option) in MKFS {
        if let Some(value) = value_of(*wish)
            && halite_target::fnmatch::fnmatch(fs_type, kind)
        {
            words.extend(option.iter().map(|word| word.replace("{}", &value)));
        }
    }
    words
}

/// Make a file system on a device.
///
/// ```console
/// $ salt web1 disk.format /dev/vdb
/// ```
#[function]
pub fn format(
    cx: &Cx,
    /// The device.
    device: String,
    /// The file system.
    #[default("ext4".to_owned())]
    fs_type: String,
    /// Bytes of an inode; ext and xfs.
    inode_size: Option<Value>,
    /// Set inodes up later; ext.
    lazy_itable_init: Option<Value>,
    /// Bits of an entry; FAT.
    fat: Option<Value>,
    /// Although there is something.
    #[default(false)]
    force: bool,
) -> Result<bool> {
    let wishes = [
        (Wish::Fat, fat),
        (Wish::Force, force.then_some(Value::Bool(true))),
        (Wish::InodeSize, inode_size),
        (Wish::Lazy, lazy_itable_init),
    ];
    let mkfs = Command::line(["mkfs", "-t", &fs_type]).args(mkfs_options(&fs_type, &wishes));
    let made = cx.host.run(&mkfs.arg(&device))?.ok();
    let synced = cx.host.run(&Command::line(["sync"]))?.ok();
    Ok(made && synced)
}

/// Return the settings of disks as hdparm shows them.
///
/// ```console
/// $ salt '*' disk.hdparms sda,sdb
/// ```
#[function]
pub fn hdparms(
    cx: &Cx,
    /// The disks.
    disks: halite_spec::Strings,
    /// Letters of hdparm.
    #[default("aAbBcCdgHiJkMmNnQrRuW".to_owned())]
    args: String,
) -> Result<Dict> {
    if cx.host.which("hdparm").is_none() {
        return Err(Error::no_program(&["hdparm"]));
    }
    let ret = Dict::new();
    for disk in disks.iter() {
        let path = if disk.starts_with('/') { disk.clone() } else { format!("/dev/{disk}") };
        if !is_device(cx, &path) {
            continue;
        }
        let own = Dict::new();
        let text = look(cx, &["hdparm", &format!("-{args}"), &path])?;
        for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
            let value = value.trim();
            let number = value.split_whitespace().next().and_then(|word| word.parse::<i64>().ok());
            own.insert(key.trim(), number.map_or_else(|| Value::from(value), Value::from));
        }
        ret.insert(disk, own);
    }
    Ok(ret)
}

/// Return, or set, the part of disks that is hidden.
///
/// ```console
/// $ salt web1 disk.hpa /dev/vdb
/// ```
#[function]
pub fn hpa(
    cx: &Cx,
    /// The disks.
    disks: halite_spec::Strings,
    /// The size to show: a number, or a share.
    size: Option<Value>,
) -> Result<Dict> {
    if cx.host.which("hdparm").is_none() {
        return Err(Error::no_program(&["hdparm"]));
    }
    let ret = Dict::new();
    for disk in disks.iter() {
        let path = if disk.starts_with('/') { disk.clone() } else { format!("/dev/{disk}") };
        let text = look(cx, &["hdparm", "--yes-i-know-what-i-am-doing", "-N", &path])?;
        let sizes = text.split('=').nth(1).and_then(|rest| rest.split(',').next());
        let Some((visible, total)) = sizes.and_then(|sizes| sizes.trim().split_once('/')) else {
            return Err(Error::failed(format!("Error reading the hidden part of {disk}")));
        };
        let number = |text: &str| text.trim().parse::<i64>().unwrap_or(0);
        let (visible, total) = (number(visible), number(total));
        if let Some(size) = &size {
            let asked = size.to_string();
            let wanted = match asked.strip_suffix('%') {
                Some(share) => total * number(share) / 100,
                None => number(&asked),
            };
            cx.host.run(&Command::line([
                "hdparm".to_owned(),
                "--yes-i-know-what-i-am-doing".to_owned(),
                format!("-Np{wanted}"),
                path,
            ]))?;
        } else {
            let own = dict! {
                "visible" => visible, "total" => total, "hidden" => total - visible,
            };
            ret.insert(disk, own);
        }
    }
    Ok(ret)
}

/// Return what a disk says about its health.
///
/// ```console
/// $ salt web1 disk.smart_attributes /dev/vdb
/// ```
#[function]
pub fn smart_attributes(
    cx: &Cx,
    /// The disk.
    dev: String,
    /// Only these numbers.
    attributes: Option<halite_spec::Strings>,
    /// Only these columns.
    values: Option<halite_spec::Strings>,
) -> Result<Dict> {
    let path = if dev.starts_with('/') { dev } else { format!("/dev/{dev}") };
    let text = look(cx, &["smartctl", "--attributes", &path])?;
    let mut lines = text.lines().skip_while(|line| !line.trim_start().starts_with("ID#"));
    let ret = Dict::new();
    let Some(heading) = lines.next() else { return Ok(ret) };
    let fields: Vec<String> = heading.split_whitespace().skip(1).map(str::to_lowercase).collect();
    for line in lines {
        let mut words = line.split_whitespace();
        let Some(number) = words.next().and_then(|word| word.parse::<i64>().ok()) else { break };
        let listed = |list: &Option<halite_spec::Strings>, item: &str| {
            list.as_ref().is_none_or(|list| list.iter().any(|own| own == item))
        };
        if !listed(&attributes, &number.to_string()) {
            continue;
        }
        let own = Dict::new();
        let words: Vec<&str> = words.collect();
        for (at, field) in fields.iter().enumerate() {
            // The last column may hold blanks.
            let value = match at + 1 == fields.len() {
                true => words.get(at..).map(|rest| rest.join(" ")),
                false => words.get(at).map(|word| (*word).to_owned()),
            };
            if let Some(value) = value.filter(|_| listed(&values, field)) {
                let parsed = value.parse::<i64>();
                own.insert(field, parsed.map_or_else(|_| Value::from(value), Value::from));
            }
        }
        ret.insert(number, own);
    }
    Ok(ret)
}

/// Return how busy disks are.
///
/// ```console
/// $ salt web1 disk.iostat
/// ```
#[function]
pub fn iostat(
    cx: &Cx,
    /// Seconds between two looks.
    #[default(1)]
    interval: i64,
    /// How often to look.
    #[default(5)]
    count: i64,
    /// Only these.
    disks: Option<halite_spec::Strings>,
) -> Result<Value> {
    if cx.host.which("iostat").is_none() {
        return Err(Error::no_program(&["iostat"]));
    }
    let (interval, count) = (interval.to_string(), count.to_string());
    let mut words = vec!["iostat", "-dxy", &interval, &count];
    let disks = disks.unwrap_or_default();
    words.extend(disks.iter().map(String::as_str));
    let text = look(cx, &words)?;
    let mut fields: Vec<String> = Vec::new();
    let sums: Dict = Dict::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some((first, rest)) = words.split_first() else { continue };
        if first.trim_end_matches(':') == "Device" {
            fields = rest.iter().map(|word| (*word).to_owned()).collect();
        } else if !fields.is_empty() && rest.len() == fields.len() {
            let Value::Dict(own) = sums.get_or_insert_with(*first, Value::dict) else { continue };
            for (field, value) in fields.iter().zip(rest) {
                let value: f64 = value.replace(',', ".").parse().unwrap_or(0.0);
                let sum = own.get(field.as_str()).and_then(|sum| sum.as_float()).unwrap_or(0.0);
                own.insert(field, sum + value);
            }
        }
    }
    let rounds = count.parse::<f64>().unwrap_or(1.0).max(1.0);
    let ret = Dict::new();
    for (name, own) in &sums {
        let mean = Dict::new();
        for (field, sum) in own.as_dict().into_iter().flatten() {
            let value = sum.as_float().unwrap_or(0.0) / rounds;
            mean.insert(field, (value * 10000.0).round() / 10000.0);
        }
        ret.insert(name, mean);
    }
    Ok(ret.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_mkfs() {
        let check = |fs_type: &str, expected: &str| {
            let wishes = [
                (Wish::Fat, Some(Value::Int(32))),
                (Wish::Force, Some(Value::Bool(true))),
                (Wish::InodeSize, Some(Value::Int(256))),
                (Wish::Lazy, Some(Value::Bool(false))),
            ];
            assert_eq!(mkfs_options(fs_type, &wishes).join(" "), expected);
        };
        check("ext4", "-i 256 -E lazy_itable_init=0 -F");
        check("xfs", "-i size=256 -f");
        check("vfat", "-F 32");
        check("btrfs", "");
    }

    #[test]
    fn blanks_in_names_are_kept() {
        let text = "Filesystem 1024-blocks Used Available Capacity Mounted on\n\
            /dev/vda 100 60 40 60% /\nmap auto home 0 0 0 100% /my home\n";
        let rows = table(text);
        assert_eq!(rows[0], ["/dev/vda", "100", "60", "40", "60%", "/"]);
        assert_eq!(rows[1], ["map auto home", "0", "0", "0", "100%", "/my home"]);
    }

    #[test]
    fn options_are_no_flags() {
        assert!(flags(Some("-h"), "disk.usage").is_err());
        assert_eq!(flags(Some("h"), "disk.usage").unwrap(), "h");
    }
}
