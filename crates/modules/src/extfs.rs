//! `extfs`: file systems of the ext family.

use halite_spec::{Command, Cx, Error, Rest, Result, function, module};
use halite_value::{Dict, Value, entries};

module! {
    /// File systems of the ext family.
    "extfs": mkfs, tune, attributes, blocks, dump,
}

/// Options by name, with the letter of the program; those without a value are flags.
const MKFS: &[(&str, &str)] = &[
    ("block_size", "-b"),
    ("check", "-c"),
    ("fragment_size", "-f"),
    ("group_size", "-g"),
    ("number_of_groups", "-G"),
    ("bytes_per_inode", "-i"),
    ("inode_size", "-I"),
    ("journal", "-j"),
    ("journal_options", "-J"),
    ("blocks_file", "-l"),
    ("label", "-L"),
    ("reserved", "-m"),
    ("last_dir", "-M"),
    ("test", "-n"),
    ("number_of_inodes", "-N"),
    ("creator_os", "-o"),
    ("opts", "-O"),
    ("revision", "-r"),
    ("super", "-S"),
    ("usage_type", "-T"),
    ("uuid", "-U"),
    ("ext_options", "-E"),
];
const TUNE: &[(&str, &str)] = &[
    ("max", "-c"),
    ("count", "-C"),
    ("error", "-e"),
    ("extended_opts", "-E"),
    ("force", "-f"),
    ("group", "-g"),
    ("interval", "-i"),
    ("inode_size", "-I"),
    ("journal", "-j"),
    ("journal_opts", "-J"),
    ("label", "-L"),
    ("reserved", "-m"),
    ("last_dir", "-M"),
    ("opts", "-o"),
    ("feature", "-O"),
    ("mmp_check", "-p"),
    ("reserved_percentage", "-r"),
    ("quota_opts", "-Q"),
    ("time", "-T"),
    ("user", "-u"),
    ("uuid", "-U"),
];

fn options(kwargs: &Dict, known: &[(&str, &str)]) -> Vec<String> {
    let mut words = Vec::new();
    for (name, value) in kwargs {
        let name = name.to_str();
        let Some((_, letter)) = known.iter().find(|(own, _)| *own == name.as_str()) else {
            continue;
        };
        match &value {
            Value::Bool(false) | Value::Null => {}
            Value::Bool(true) => words.push((*letter).to_owned()),
            value => words.extend([(*letter).to_owned(), value.to_string()]),
        }
    }
    words
}

/// What a program said: its lines, or everything `cmd.run_all` returns.
fn answer(cx: &Cx, words: Vec<String>, full_return: bool) -> Result<Value> {
    let output = cx.host.run(&Command::line(words))?;
    let (stdout, stderr) = (output.stdout_text(), output.stderr_text());
    if !full_return {
        let text = if stdout.trim().is_empty() { stderr } else { stdout };
        return Ok(Value::list(text.trim_end().lines()));
    }
    let notes = stderr.lines().filter(|line| !line.starts_with("mke2fs") && !line.is_empty());
    Ok(Value::Dict(entries! {
        "pid" => output.pid, "retcode" => output.code, "stdout" => stdout.trim_end(),
        "stderr" => stderr.trim_end(), "comment" => Value::list(notes),
    }))
}

fn dumped(cx: &Cx, device: &str) -> Result<String> {
    let output = cx.host.run(&Command::line(["dumpe2fs", device]).query())?;
    if output.ok() {
        return Ok(output.stdout_text());
    }
    Err(Error::failed(output.stderr_text().trim().to_owned()))
}

/// Make a file system on a device.
///
/// ```console
/// $ salt web1 extfs.mkfs /dev/vdb ext4
/// ```
#[function]
pub fn mkfs(
    cx: &Cx,
    /// The device.
    device: String,
    /// `ext2`, `ext3` or `ext4`.
    fs_type: String,
    /// Return the code, too.
    #[default(false)]
    full_return: bool,
    /// Options: `label`, `block_size`, `reserved` …
    kwargs: Rest,
) -> Result<Value> {
    let mut words = vec!["mke2fs".to_owned(), "-F".to_owned(), "-t".to_owned(), fs_type];
    words.extend(options(&kwargs.kwargs, MKFS));
    words.push(device);
    answer(cx, words, full_return)
}

/// Set options of a file system.
///
/// ```console
/// $ salt '*' extfs.tune /dev/sda1 force=True label=wildstallyns
/// ```
#[function]
pub fn tune(
    cx: &Cx,
    /// The device.
    device: String,
    /// Return the code, too.
    #[default(false)]
    full_return: bool,
    /// Options: `label`, `reserved`, `max` …
    kwargs: Rest,
) -> Result<Value> {
    let mut words = vec!["tune2fs".to_owned()];
    words.extend(options(&kwargs.kwargs, TUNE));
    words.push(device);
    answer(cx, words, full_return)
}

/// Return the attributes of a file system.
///
/// ```console
/// $ salt web1 extfs.attributes /dev/vdb
/// ```
#[function]
pub fn attributes(
    cx: &Cx,
    /// The device.
    device: String,
    /// Options of dumpe2fs; not looked at.
    args: Option<Value>,
) -> Result<Value> {
    Ok(dump(cx, device, args)?.get("attributes").unwrap_or_else(Value::dict))
}

/// Return the groups of blocks of a file system.
///
/// ```console
/// $ salt web1 extfs.blocks /dev/vdb
/// ```
#[function]
pub fn blocks(
    cx: &Cx,
    /// The device.
    device: String,
    /// Options of dumpe2fs; not looked at.
    args: Option<Value>,
) -> Result<Value> {
    Ok(dump(cx, device, args)?.get("blocks").unwrap_or_else(Value::dict))
}

/// Return everything about a file system: `attributes` and `blocks`.
///
/// ```console
/// $ salt web1 extfs.dump /dev/vdb
/// ```
#[function]
pub fn dump(
    cx: &Cx,
    /// The device.
    device: String,
    /// Options of dumpe2fs; not looked at.
    args: Option<Value>,
) -> Result<Dict> {
    let _ = args;
    let (attributes, blocks) = (Dict::new(), Dict::new());
    let mut group = Dict::new();
    for line in dumped(cx, &device)?.lines() {
        if let Some(rest) = line.strip_prefix("Group ") {
            let name = rest.split(':').next().unwrap_or_default();
            group = Dict::new();
            group.insert("group", name);
            blocks.insert(name, &group);
        } else if line.starts_with([' ', '\t']) {
            if let Some((name, value)) = line.trim().split_once(" at ") {
                group.insert(name, value);
            }
        } else if let Some((name, value)) = line.split_once(':') {
            let value = value.trim();
            match name {
                "Filesystem features" => {
                    attributes.insert(name, Value::list(value.split_whitespace()))
                }
                _ => attributes.insert(name, value),
            };
        }
    }
    Ok(entries! { "attributes" => attributes, "blocks" => blocks })
}
