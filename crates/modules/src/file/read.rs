//! Looking at files: content, kind, place.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read},
    path::Path,
};

use halite_spec::{Command, Cx, Error, Rest, Result, function, host::Kind};
use halite_target::fnmatch::Glob;
use halite_value::{Dict, Value, entries};

use super::{
    paths::{expand_user, glob, is_abs, parent},
    regex::{MULTILINE, Re},
    replace::{self, Flags},
    text::is_binary,
    tree::walk,
};

/// Return the content of a file.
///
/// ```console
/// $ salt web1 file.read /srv/app/app.conf
/// ```
#[function]
pub fn read(
    cx: &Cx,
    /// The file.
    path: String,
    /// Return bytes, not text.
    #[default(false)]
    binary: bool,
) -> Result<Value> {
    let content = cx.host.read(Path::new(&path))?;
    if binary {
        return Ok(Value::bytes(content));
    }
    Ok(super::text::utf8(content)?.into())
}

/// Return the names in a folder, with `.` and `..`.
///
/// ```console
/// $ salt web1 file.readdir /srv/app
/// ```
#[function]
pub fn readdir(
    cx: &Cx,
    /// The folder.
    path: String,
) -> Result<Vec<String>> {
    let path = expand_user(cx, &path);
    if !is_abs(&path) {
        return Err(Error::invalid("Dir path must be absolute."));
    }
    if !cx.host.is_dir(Path::new(&path))? {
        return Err(Error::invalid(format!("A valid directory was not specified: {path}")));
    }
    let names = cx.host.read_dir(Path::new(&path))?;
    let names = names.into_iter().map(|name| name.to_string_lossy().into_owned());
    Ok([".".to_owned(), "..".to_owned()].into_iter().chain(names).collect())
}

/// Return what `lstat` tells of a path; an empty dict if nothing is there.
///
/// ```console
/// $ salt web1 file.lstat /srv/app/app.conf
/// ```
#[function]
pub fn lstat(
    cx: &Cx,
    /// The path.
    path: String,
) -> Result<Dict> {
    let path = expand_user(cx, &path);
    if !is_abs(&path) {
        return Err(Error::invalid("Path to file must be absolute."));
    }
    let Some(stat) = cx.host.stat_if_there(Path::new(&path), false)? else {
        return Ok(Dict::new());
    };
    let kind = match stat.kind {
        Kind::Fifo => 0o010_000,
        Kind::Char => 0o020_000,
        Kind::Dir => 0o040_000,
        Kind::Block => 0o060_000,
        Kind::File => 0o100_000,
        Kind::Link => 0o120_000,
        Kind::Socket => 0o140_000,
    };
    Ok(entries! {
        "st_atime" => stat.atime, "st_ctime" => stat.ctime, "st_gid" => stat.gid,
        "st_mode" => kind | stat.mode, "st_mtime" => stat.mtime, "st_nlink" => stat.links,
        "st_size" => stat.size, "st_uid" => stat.uid,
    })
}

/// Tell whether the minion may do something with a path: `f` exists, `r` read, `w` write, `x` run.
///
/// ```console
/// $ salt '*' file.access /path/to/file r
/// ```
#[function]
pub fn access(
    cx: &Cx,
    /// The path.
    path: String,
    /// One of `f`, `r`, `w`, `x`, or its number 0, 4, 2, 1.
    mode: Value,
) -> Result<bool> {
    let path = expand_user(cx, &path);
    if !is_abs(&path) {
        return Err(Error::invalid("Path to link must be absolute."));
    }
    let bit = match mode.to_str().as_str() {
        "f" | "0" => 0,
        "x" | "1" => 1,
        "w" | "2" => 2,
        "r" | "4" => 4,
        _ => return Err(Error::invalid("Invalid mode specified.")),
    };
    let Some(stat) = cx.host.stat_if_there(Path::new(&path), true)? else { return Ok(false) };
    if cx.host.uid() == 0 {
        return Ok(bit != 1 || stat.kind == Kind::Dir || stat.mode & 0o111 != 0);
    }
    let shift = if stat.uid == cx.host.uid() {
        6
    } else if stat.gid == cx.host.gid() {
        3
    } else {
        0
    };
    Ok(stat.mode >> shift & bit == bit)
}

/// Tell whether a path is a folder.
///
/// ```console
/// $ salt web1 file.directory_exists /srv/app
/// ```
#[function]
pub fn directory_exists(
    cx: &Cx,
    /// The path.
    path: String,
) -> Result<bool> {
    Ok(cx.host.is_dir(Path::new(&expand_user(cx, &path)))?)
}

/// Tell whether a path is a file.
///
/// ```console
/// $ salt web1 file.file_exists /srv/app/app.conf
/// ```
#[function]
pub fn file_exists(
    cx: &Cx,
    /// The path.
    path: String,
) -> Result<bool> {
    Ok(cx.host.is_file(Path::new(&expand_user(cx, &path)))?)
}

/// Tell whether any path matches a pattern.
///
/// ```console
/// $ salt web1 file.path_exists_glob '/srv/app/*.conf'
/// ```
#[function]
pub fn path_exists_glob(
    cx: &Cx,
    /// The pattern.
    path: String,
) -> Result<bool> {
    Ok(!glob(cx, &expand_user(cx, &path))?.is_empty())
}

/// Tell whether a path is a symbolic link.
///
/// ```console
/// $ salt web1 file.is_link /srv/app/current
/// ```
#[function]
pub fn is_link(
    cx: &Cx,
    /// The path.
    path: String,
    /// Look into the folder only, not at the path.
    #[default(false)]
    nostat: bool,
) -> Result<bool> {
    if nostat {
        cx.host.read_dir(Path::new(parent(&path)))?;
    }
    Ok(cx.host.is_link(Path::new(&expand_user(cx, &path)))?)
}

/// Tell whether a file has other hard links.
///
/// ```console
/// $ salt web1 file.is_hardlink /srv/app/app.conf
/// ```
#[function]
pub fn is_hardlink(
    cx: &Cx,
    /// The path.
    path: String,
) -> Result<Value> {
    let path = expand_user(cx, &path);
    if !path.starts_with('/') {
        return Err(Error::invalid("Path to file must be absolute."));
    }
    Ok(match cx.host.stat(Path::new(&path), false) {
        Ok(stat) => (stat.links > 1).into(),
        Err(_) => Value::dict(),
    })
}

/// Return what `statvfs` tells of the file system a path is on.
///
/// ```console
/// $ salt web1 file.statvfs /srv
/// ```
#[function]
pub fn statvfs(
    cx: &Cx,
    /// The path.
    path: String,
) -> Result<Dict> {
    let path = expand_user(cx, &path);
    if !is_abs(&path) {
        return Err(Error::invalid("File path must be absolute."));
    }
    let space = cx
        .host
        .space(Path::new(&path))
        .map_err(|_| Error::failed(format!("Could not statvfs '{path}'")))?;
    let block = space.block_size.max(1);
    Ok(entries! {
        "f_bavail" => space.available / block, "f_bfree" => space.free / block,
        "f_blocks" => space.total / block, "f_bsize" => block, "f_favail" => space.inodes_free,
        "f_ffree" => space.inodes_free, "f_files" => space.inodes, "f_flag" => 4096,
        "f_frsize" => block, "f_namemax" => 255,
    })
}

/// Add up the sizes of the files below a path.
///
/// ```console
/// $ salt web1 file.diskusage /srv/app
/// ```
#[function]
pub fn diskusage(
    cx: &Cx,
    /// The path.
    path: String,
) -> Result<u64> {
    let top = Path::new(&path);
    if cx.host.is_file(top)? {
        return Ok(cx.host.stat(top, true)?.size);
    }
    let mut seen = std::collections::HashSet::new();
    let mut total = 0;
    for folder in walk(cx, top, &|_| true)? {
        for name in &folder.files {
            let Some(stat) = cx.host.stat_if_there(&folder.path.join(name), true)? else {
                continue;
            };
            if seen.insert(stat.inode) {
                total += stat.size;
            }
        }
    }
    Ok(total)
}

/// Tell whether a text occurs in a file.
///
/// ```console
/// $ salt web1 file.contains /srv/app/app.conf 'some text'
/// ```
#[function]
pub fn contains(
    cx: &Cx,
    /// The file.
    path: String,
    /// The text; white space around it does not count.
    text: Value,
) -> Result<bool> {
    let path = expand_user(cx, &path);
    let text = text.to_str();
    let needle = text.trim().as_bytes();
    let Ok(reader) = cx.host.open(Path::new(&path)) else { return Ok(false) };
    Ok(stream_contains(reader, needle))
}

/// Searches a stream in pieces that overlap.
fn stream_contains(mut reader: Box<dyn Read + Send>, needle: &[u8]) -> bool {
    let mut window = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = match reader.read(&mut buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => return false,
        };
        window.extend_from_slice(&buffer[..count]);
        if needle.is_empty() {
            return !window.is_empty();
        }
        if window.windows(needle.len()).any(|piece| piece == needle) {
            return true;
        }
        if count == 0 {
            return false;
        }
        let keep = window.len().min(needle.len() - 1);
        window.drain(..window.len() - keep);
    }
}

/// Tell whether a line of a file matches a regular expression.
///
/// ```console
/// $ salt '*' file.contains_regex /etc/crontab '.*mymaintenance.sh'
/// ```
#[function]
pub fn contains_regex(
    cx: &Cx,
    /// The file.
    path: String,
    /// The regular expression.
    regex: String,
    /// Characters to take off the start of each line first.
    #[default(String::new())]
    lchar: String,
) -> Result<bool> {
    let path = expand_user(cx, &path);
    if !cx.host.exists(Path::new(&path))? {
        return Ok(false);
    }
    let re = Re::new(&regex, 0).map_err(replace::bad_pattern)?;
    let Ok(reader) = cx.host.open(Path::new(&path)) else { return Ok(false) };
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    loop {
        line.clear();
        match reader.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return Ok(false),
            Ok(_) => {}
        }
        let text = super::text::decode(&line);
        let text = text.trim_start_matches(|c| lchar.contains(c));
        if re.found_in(text).map_err(replace::bad_pattern)? {
            return Ok(true);
        }
    }
}

/// Tell whether a file's content matches a shell pattern.
///
/// ```console
/// $ salt web1 file.contains_glob /srv/app/app.conf 'port*'
/// ```
#[function]
pub fn contains_glob(
    cx: &Cx,
    /// The file.
    path: String,
    /// The pattern.
    glob_expr: String,
) -> Result<bool> {
    let path = expand_user(cx, &path);
    match cx.host.read_text(Path::new(&path)) {
        Ok(text) => Ok(!text.is_empty() && Glob::new(&glob_expr).matches(&text)),
        Err(_) => Ok(false),
    }
}

/// Tell whether a regular expression matches somewhere in a file.
///
/// ```console
/// $ salt web1 file.search /srv/app/app.conf '^port='
/// ```
#[function]
pub fn search(
    cx: &Cx,
    /// The file.
    path: String,
    /// The regular expression.
    pattern: String,
    /// Flags of Python's `re`: a number, a name, or a list of names.
    #[default(Flags(MULTILINE))]
    flags: Flags,
    /// Taken for compatibility; the file is always searched as a whole.
    #[default(Value::Int(1))]
    bufsize: Value,
    /// Return False if there is no such file.
    #[default(false)]
    ignore_if_missing: bool,
    /// `^` and `$` match at every line.
    #[default(false)]
    multiline: bool,
) -> Result<bool> {
    let _ = bufsize;
    let flags = if multiline { flags.0 | MULTILINE } else { flags.0 };
    let path = super::paths::real(cx, &expand_user(cx, &path))?;
    if !cx.host.exists(Path::new(&path))? {
        if ignore_if_missing {
            return Ok(false);
        }
        return Err(Error::invalid(format!("File not found: {path}")));
    }
    let content = replace::read_to_search(cx, &path)?;
    if is_binary(&content[..content.len().min(512)]) {
        return Err(replace::binary_refused(&path));
    }
    let re = Re::bytes(&pattern, flags).map_err(replace::bad_pattern)?;
    re.found_in_bytes(&content).map_err(replace::bad_pattern)
}

/// Search files with the `grep` program.
///
/// ```console
/// $ salt web1 file.grep /srv/app/app.conf '^port='
/// ```
#[function]
pub fn grep(
    cx: &Cx,
    /// A file or a pattern of files.
    path: String,
    /// What to look for.
    pattern: String,
    /// Options of `grep`, each on its own.
    #[arg(by_position)]
    opts: Rest,
) -> Result<Dict> {
    let path = expand_user(cx, &path);
    let mut files = glob(cx, &path)?;
    if files.is_empty() {
        files.push(path);
    }
    let mut words = Vec::new();
    for option in &opts.args {
        let option = option.to_str();
        let split = super::edit::shell_words(&option);
        if split.len() > 1 {
            return Err(Error::invalid(format!(
                "Passing multiple command line arguments in a single string is not supported, \
                 please pass the following arguments separately: {option}"
            )));
        }
        words.extend(split);
    }
    let command = Command::new("grep").args(words).arg(pattern).args(files).query();
    let output = cx.host.run(&command)?;
    Ok(run_all(cx, &output))
}

/// The shape of `cmd.run_all`, which also makes the program's return code that of the job.
pub(super) fn run_all(cx: &Cx, output: &halite_spec::Output) -> Dict {
    cx.job.set_retcode(output.code.into());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end_matches('\n').to_owned();
    entries! {
        "pid" => output.pid, "retcode" => output.code, "stdout" => text(&output.stdout),
        "stderr" => text(&output.stderr),
    }
}

/// Return the files processes have open: by file the process ids, or with `by_pid` the reverse.
///
/// ```console
/// $ salt web1 file.open_files
/// ```
#[function]
pub fn open_files(
    cx: &Cx,
    /// List by process.
    #[default(false)]
    by_pid: bool,
) -> Result<Value> {
    let mut files: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    let mut processes: BTreeMap<i64, Vec<String>> = BTreeMap::new();
    for name in cx.host.read_dir(Path::new("/proc"))? {
        let Ok(pid) = name.to_string_lossy().parse::<i64>() else { continue };
        let folder = Path::new("/proc").join(&name);
        let Ok(handles) = cx.host.read_dir(&folder.join("fd")) else { continue };
        let mut links: Vec<_> = handles.iter().map(|fd| folder.join("fd").join(fd)).collect();
        links.push(folder.join("exe"));
        let open = processes.entry(pid).or_default();
        for link in links {
            let Ok(target) = cx.host.real_path(&link) else { continue };
            let target = target.display().to_string();
            if !open.contains(&target) {
                open.push(target.clone());
                files.entry(target).or_default().push(pid);
            }
        }
        open.sort();
    }
    Ok(if by_pid {
        Value::Dict(
            processes
                .into_iter()
                .filter_map(|(pid, open)| {
                    let key = halite_value::Key::try_from(Value::from(pid)).ok()?;
                    Some((key, Value::from(open)))
                })
                .collect(),
        )
    } else {
        Value::Dict(files.into_iter().map(|(file, pids)| (file, Value::list(pids))).collect())
    })
}

/// Read a piece of a file.
///
/// ```console
/// $ salt web1 file.seek_read /srv/app/app.conf 64 0
/// ```
#[function]
pub fn seek_read(
    cx: &Cx,
    /// The file.
    path: String,
    /// How many bytes.
    size: u64,
    /// Where to begin.
    offset: u64,
) -> Result<Value> {
    let path = expand_user(cx, &path);
    let mut reader = cx.host.open(Path::new(&path))?;
    let io = |error| halite_spec::host::Error::io("read", &path, error);
    std::io::copy(&mut reader.by_ref().take(offset), &mut std::io::sink()).map_err(io)?;
    let mut data = Vec::new();
    reader.take(size).read_to_end(&mut data).map_err(io)?;
    Ok(match String::from_utf8(data) {
        Ok(text) => text.into(),
        Err(error) => Value::bytes(error.into_bytes()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_across_pieces_are_found() {
        let mut content = vec![b'x'; (64 << 10) - 2];
        content.extend_from_slice(b"needle");
        let reader = || Box::new(std::io::Cursor::new(content.clone()));
        assert!(stream_contains(reader(), b"needle"));
        assert!(!stream_contains(reader(), b"needless"));
    }
}
