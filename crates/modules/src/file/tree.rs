//! Making, copying, moving and removing files, folders, links and device files.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use halite_spec::{
    Cx, Error, Rest, Result, Stat, function,
    host::{self, Kind, Write},
};
use halite_value::{Dict, Value, entries, list};

use super::{
    backup::copy_whole,
    paths::{expand_user, expand_vars, is_abs, joined, normalized, parent, real, split},
    perms::{Mode, Owner, Wanted, stat_of},
};

/// One folder of a walk: its path, and the names in it; a link to a folder counts as a folder.
#[derive(Clone, Debug)]
pub struct Visited {
    pub path: PathBuf,
    pub dirs: Vec<String>,
    pub files: Vec<String>,
}

/// Visits a folder and those below it, the upper ones first; links are not followed.
///
/// `descend` says, by the depth below the top, whether to go on.
/// What vanishes meanwhile is passed over; a folder that cannot be listed is an error.
pub fn walk(cx: &Cx, top: &Path, descend: &dyn Fn(usize) -> bool) -> Result<Vec<Visited>> {
    let mut visited = Vec::new();
    let mut pending = vec![(top.to_owned(), 0)];
    while let Some((path, depth)) = pending.pop() {
        let names = match cx.host.read_dir(&path) {
            Ok(names) => names,
            Err(error) if error.is_missing() => continue,
            Err(error) => return Err(error.into()),
        };
        let mut here = Visited { path: path.clone(), dirs: Vec::new(), files: Vec::new() };
        let mut below = Vec::new();
        for name in names {
            let at = path.join(&name);
            let name = name.to_string_lossy().into_owned();
            match cx.host.stat_if_there(&at, false)? {
                Some(stat) if stat.kind == Kind::Dir => {
                    here.dirs.push(name);
                    below.push((at, depth + 1));
                }
                Some(stat) if stat.kind == Kind::Link && cx.host.is_dir(&at)? => {
                    here.dirs.push(name);
                }
                _ => here.files.push(name),
            }
        }
        visited.push(here);
        if descend(depth + 1) {
            below.reverse();
            pending.append(&mut below);
        }
    }
    Ok(visited)
}

/// Makes a folder and those missing above it, each with this owner and mode.
pub fn make_folders(
    cx: &Cx,
    path: &str,
    (user, group): (Option<&Owner>, Option<&Owner>),
    mode: Option<&Mode>,
) -> Result<()> {
    let path = normalized(path);
    if cx.host.is_dir(Path::new(&path))? {
        return Ok(());
    }
    let above = parent(&path);
    if !above.is_empty() && above != path {
        make_folders(cx, above, (user, group), mode)?;
    }
    let bits = mode.map(Mode::checked).transpose()?;
    let at = Path::new(&path);
    let how = Write {
        mode: bits,
        uid: Owner::given(user).map(|user| user.look_up_uid(cx)).transpose()?.flatten(),
        gid: Owner::given(group).map(|group| group.look_up_gid(cx)).transpose()?.flatten(),
    };
    match cx.host.create_dir_owned(at, &how) {
        // Somebody else made it meanwhile; a file in its place is an error.
        Err(error) if error.kind() == Some(ErrorKind::AlreadyExists) && cx.host.is_dir(at)? => {
            Ok(())
        }
        other => Ok(other?),
    }
}

/// Make a folder, and those above it.
///
/// ```console
/// $ salt web1 file.mkdir /srv/app
/// ```
#[function]
pub fn mkdir(
    cx: &Cx,
    /// The folder.
    dir_path: String,
    /// Its user.
    user: Option<Owner>,
    /// Its group.
    group: Option<Owner>,
    /// Its mode.
    mode: Option<Mode>,
) -> Result<bool> {
    let path = expand_user(cx, &dir_path);
    make_folders(cx, &path, (user.as_ref(), group.as_ref()), mode.as_ref())?;
    Ok(true)
}

/// Make the folders above a path: without a slash at its end, the last part is taken for a file.
///
/// ```console
/// $ salt web1 file.makedirs /srv/app/app.conf
/// ```
#[function]
pub fn makedirs(
    cx: &Cx,
    /// The path.
    path: String,
    /// The user of folders made.
    user: Option<Owner>,
    /// The group of folders made.
    group: Option<Owner>,
    /// The mode of folders made.
    mode: Option<Mode>,
) -> Result<Value> {
    let path = expand_user(cx, &path);
    let folder = normalized(parent(&path));
    let at = Path::new(&folder);
    if cx.host.is_dir(at)? {
        return Ok(format!("Directory '{folder}' already exists").into());
    }
    if cx.host.exists(at)? {
        return Ok(format!("The path '{folder}' already exists and is not a directory").into());
    }
    if !is_abs(&folder) {
        return Err(Error::invalid(format!(
            "Recursive creation for path '{folder}' would result in an infinite loop. Please use \
             an absolute path."
        )));
    }
    make_folders(cx, &folder, (user.as_ref(), group.as_ref()), mode.as_ref())?;
    Ok(Value::Null)
}

/// Make a folder and those above it, with owner and mode.
///
/// ```console
/// $ salt web1 file.makedirs_perms /srv/app/logs/old
/// ```
#[function]
pub fn makedirs_perms(
    cx: &Cx,
    /// The folder.
    name: String,
    /// The user of folders made.
    user: Option<Owner>,
    /// The group of folders made.
    group: Option<Owner>,
    /// The mode of folders made.
    #[default(Some(Mode::new("0755")))]
    mode: Option<Mode>,
) -> Result<Value> {
    let name = expand_user(cx, &name);
    if cx.host.exists(Path::new(&name))? {
        return Err(host::Error::io("create", &name, ErrorKind::AlreadyExists.into()).into());
    }
    make_folders(cx, &name, (user.as_ref(), group.as_ref()), mode.as_ref())?;
    Ok(Value::Null)
}

/// Remove a file, a link, or a folder with everything in it; False if nothing is there.
///
/// ```console
/// $ salt web1 file.remove /srv/app/app.conf
/// ```
#[function]
pub fn remove(
    cx: &Cx,
    /// The path.
    path: String,
    /// Taken for compatibility.
    rest: Rest,
) -> Result<bool> {
    let _ = rest;
    let path = expand_user(cx, &path);
    if !is_abs(&path) {
        return Err(Error::invalid(format!("File path must be absolute: {path}")));
    }
    remove_any(cx, Path::new(&path))
}

pub(crate) fn remove_any(cx: &Cx, path: &Path) -> Result<bool> {
    if cx.host.stat_if_there(path, false)?.is_none() {
        return Ok(false);
    }
    cx.host.remove_all(path).map_err(|error| match error {
        host::Error::Cancelled => Error::Cancelled,
        error => Error::failed(format!("Could not remove '{}': {error}", path.display())),
    })?;
    Ok(true)
}

/// Remove empty folders.
///
/// ```console
/// $ salt '*' file.rmdir /tmp/foo/ recurse=True
/// ```
#[function]
pub fn rmdir(
    cx: &Cx,
    /// The folder.
    path: String,
    /// Remove empty folders below it first.
    #[default(false)]
    recurse: bool,
    /// Return what was removed and what went wrong.
    #[default(false)]
    verbose: bool,
    /// Only folders last changed more than this many days ago.
    older_than: Option<Value>,
) -> Result<Value> {
    let path = expand_user(cx, &path);
    if !is_abs(&path) {
        return Err(Error::invalid("File path must be absolute."));
    }
    if !cx.host.is_dir(Path::new(&path))? {
        return Err(Error::invalid(format!("A valid directory was not specified: {path}")));
    }
    let now = cx.host.now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
    let limit = older_than
        .filter(Value::truthy)
        .and_then(|days| days.to_str().parse::<f64>().ok())
        .map(|days| now - days * 86400.0);
    let is_old = |path: &Path| {
        limit.is_none_or(|limit| cx.host.stat(path, true).is_ok_and(|stat| stat.mtime < limit))
    };
    let (mut deleted, mut errors) = (Vec::new(), Vec::new());
    let mut try_remove = |path: &Path| match cx.host.remove_dir(path) {
        Ok(()) => deleted.push(path.display().to_string()),
        Err(error) => {
            let words = error.python_words().unwrap_or_else(|| error.to_string());
            errors.push(list![path.display().to_string(), words]);
        }
    };
    if recurse {
        let mut visited = walk(cx, Path::new(&path), &|_| true)?;
        visited.reverse();
        for folder in visited {
            for name in &folder.dirs {
                let at = folder.path.join(name);
                if is_old(&at) {
                    try_remove(&at);
                }
            }
        }
    }
    if is_old(Path::new(&path)) {
        try_remove(Path::new(&path));
    }
    let result = errors.is_empty() && (recurse || !deleted.is_empty());
    Ok(if verbose {
        Value::Dict(entries! {
            "deleted" => deleted, "errors" => errors, "result" => result,
        })
    } else {
        result.into()
    })
}

/// Touches: makes an empty file if there is none, and sets the times.
pub fn touch_at(cx: &Cx, path: &Path, atime: Option<f64>, mtime: Option<f64>) -> Result<()> {
    if !cx.host.exists(path)? {
        cx.host.write(path, b"", &Write::default())?;
    }
    let now = cx.host.now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
    cx.host.set_times(path, Some(atime.unwrap_or(now)), Some(mtime.unwrap_or(now)))?;
    Ok(())
}

/// A time given as a number or in digits.
pub fn time_of(value: Option<&Value>) -> Result<Option<f64>> {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(None) };
    let number = value.as_float().or_else(|| {
        value.as_str().filter(|text| text.chars().all(|c| c.is_ascii_digit()))?.parse().ok()
    });
    number.map(Some).ok_or_else(|| Error::invalid("atime and mtime must be integers"))
}

/// Set the times of a file, making an empty one if it is not there.
///
/// ```console
/// $ salt web1 file.touch /srv/app/app.conf
/// ```
#[function]
pub fn touch(
    cx: &Cx,
    /// The file.
    name: String,
    /// When it was last read, in seconds since 1970; now, if not given.
    atime: Option<Value>,
    /// When it was last changed.
    mtime: Option<Value>,
) -> Result<bool> {
    let path = expand_user(cx, &name);
    let (atime, mtime) = (time_of(atime.as_ref())?, time_of(mtime.as_ref())?);
    touch_at(cx, Path::new(&path), atime, mtime).map_err(|error| match error {
        Error::Host(host::Error::Io { source, .. }) => {
            let text = source.to_string();
            Error::failed(text.split(" (os error").next().unwrap_or(&text))
        }
        other => other,
    })?;
    Ok(true)
}

/// Make a hard link.
///
/// ```console
/// $ salt web1 file.link /srv/app/app.conf /srv/app/same.conf
/// ```
#[function]
pub fn link(
    cx: &Cx,
    /// The file.
    src: String,
    /// The link to make.
    path: String,
) -> Result<bool> {
    let src = expand_user(cx, &src);
    if !is_abs(&src) {
        return Err(Error::invalid("File path must be absolute."));
    }
    cx.host.hard_link(Path::new(&src), Path::new(&path)).map_err(|error| {
        let reason = match Error::from(error).python_words() {
            // Python names both paths.
            words if words.ends_with('\'') => {
                let words = words.rsplit_once(": ").map_or(words.as_str(), |(words, _)| words);
                format!("{words}: '{src}' -> '{path}'")
            }
            words => words,
        };
        Error::failed(format!("Could not create '{path}': {reason}"))
    })?;
    Ok(true)
}

/// Make a symbolic link.
///
/// ```console
/// $ salt web1 file.symlink /srv/app/v7 /srv/app/current
/// ```
#[function]
pub fn symlink(
    cx: &Cx,
    /// What it points to.
    src: String,
    /// The link to make.
    path: String,
    /// Replace what stands there.
    #[default(false)]
    force: bool,
    /// Replace in one step.
    #[default(false)]
    atomic: bool,
    /// A link whose target is missing does not count as there.
    #[default(true)]
    follow_symlinks: bool,
) -> Result<bool> {
    let path = expand_user(cx, &path);
    let at = Path::new(&path);
    if !is_abs(&path) {
        return Err(Error::invalid(format!("Link path must be absolute: {path}")));
    }
    let could_not = || Error::failed(format!("Could not create '{path}'"));
    let is_link = cx.host.is_link(at)?;
    if is_link {
        let target = cx.host.read_link(at)?;
        if normalized(&target.to_string_lossy()) == normalized(&src) {
            return Ok(true);
        }
        if !force && !atomic {
            return Err(Error::failed(format!("Found existing symlink: {path}")));
        }
    }
    let there = cx.host.stat_if_there(at, follow_symlinks)?.is_some();
    if there && !force && !atomic {
        return Err(Error::failed(format!("Existing path is not a symlink: {path}")));
    }
    if atomic || is_link || (there && !cx.host.is_dir(at)?) {
        let beside = crate::temp::fresh_path(cx, parent(&path), ".salt", "");
        cx.host.symlink(Path::new(&src), &beside).map_err(|_| could_not())?;
        return match cx.host.rename(&beside, at) {
            Ok(()) => Ok(true),
            Err(_) => {
                let _ = cx.host.remove_file(&beside);
                Err(could_not())
            }
        };
    }
    if there {
        cx.host.remove_file(at)?;
    }
    cx.host.symlink(Path::new(&src), at).map_err(|_| could_not())?;
    Ok(true)
}

/// Rename a file or a folder within a file system.
///
/// ```console
/// $ salt web1 file.rename /srv/app/app.conf /srv/app/copy.conf
/// ```
#[function]
pub fn rename(
    cx: &Cx,
    /// What to rename.
    src: String,
    /// Its new name.
    dst: String,
) -> Result<bool> {
    let (src, dst) = (expand_user(cx, &src), expand_user(cx, &dst));
    if !is_abs(&src) {
        return Err(Error::invalid("File path must be absolute."));
    }
    cx.host
        .rename(Path::new(&src), Path::new(&dst))
        .map_err(|_| Error::failed(format!("Could not rename '{src}' to '{dst}'")))?;
    Ok(true)
}

/// Moves as Python's `shutil.move`: into a folder that is there, across file systems by copying.
pub fn move_any(cx: &Cx, src: &str, dst: &str) -> Result<String> {
    let to = if cx.host.is_dir(Path::new(dst))? && !cx.host.is_link(Path::new(dst))? {
        joined(dst, split(src.trim_end_matches('/')).1)
    } else {
        dst.to_owned()
    };
    let (from, at) = (Path::new(src), Path::new(&to));
    if to != dst && cx.host.is_there(at)? {
        return Err(Error::failed(format!("Destination path '{to}' already exists")));
    }
    match cx.host.rename(from, at) {
        Err(error) if error.kind() == Some(ErrorKind::CrossesDevices) => {
            copy_tree(cx, from, at, true)?;
            cx.host.remove_all(from)?;
        }
        // Python goes on to copy, and fails at the folder that is not there.
        Err(host::Error::Io { action, source, .. })
            if source.kind() == ErrorKind::NotFound && cx.host.is_there(from)? =>
        {
            return Err(host::Error::io(action, at, source).into());
        }
        other => other?,
    }
    Ok(to)
}

/// Move a file or a folder.
///
/// ```console
/// $ salt web1 file.move /srv/app/app.conf /srv/app/copy.conf
/// ```
#[function(name = "move")]
pub fn move_(
    cx: &Cx,
    /// What to move.
    src: String,
    /// Where to; into it, if it is a folder.
    dst: String,
    /// Only within a file system, in one step.
    #[default(false)]
    disallow_copy_and_unlink: bool,
) -> Result<Value> {
    if disallow_copy_and_unlink {
        return rename(cx, src, dst).map(Value::from);
    }
    let (src, dst) = (expand_user(cx, &src), expand_user(cx, &dst));
    if !is_abs(&src) {
        return Err(Error::invalid("Source path must be absolute."));
    }
    if !is_abs(&dst) {
        return Err(Error::invalid("Destination path must be absolute."));
    }
    move_any(cx, &src, &dst).map_err(|error| {
        let words = error.python_words();
        Error::failed(format!("Unable to move '{src}' to '{dst}': {words}"))
    })?;
    Ok(Value::Dict(entries! {
        "result" => true, "comment" => format!("'{src}' moved to '{dst}'"),
    }))
}

/// Copies a file, a link, or a folder with everything in it. `keep` keeps owner and times too.
pub fn copy_tree(cx: &Cx, from: &Path, to: &Path, keep: bool) -> Result<()> {
    let stat = cx.host.stat(from, false)?;
    match stat.kind {
        Kind::Link => {
            if cx.host.is_link(to)? {
                cx.host.remove_file(to)?;
            }
            cx.host.symlink(&cx.host.read_link(from)?, to)?;
        }
        Kind::Dir => {
            if !cx.host.is_dir(to)? {
                cx.host.create_dir(to, Some(stat.mode))?;
            }
            for name in cx.host.read_dir(from)? {
                copy_tree(cx, &from.join(&name), &to.join(&name), keep)?;
            }
            keep_meta(cx, to, &stat, keep)?;
        }
        Kind::File => {
            let how = Write { mode: Some(stat.mode), ..Write::default() };
            cx.host.write_from(to, &mut *cx.host.open(from)?, &how)?;
            keep_meta(cx, to, &stat, keep)?;
        }
        Kind::Fifo | Kind::Char | Kind::Block => {
            let (major, minor) = device_numbers(stat.rdev);
            cx.host.make_node(to, stat.kind, major, minor, stat.mode)?;
        }
        Kind::Socket => {}
    }
    Ok(())
}

fn keep_meta(cx: &Cx, to: &Path, stat: &Stat, keep: bool) -> Result<()> {
    cx.host.set_mode(to, stat.mode)?;
    if keep {
        cx.host.set_owner(to, Some(stat.uid), Some(stat.gid), false)?;
    }
    cx.host.set_times(to, Some(stat.atime), Some(stat.mtime))?;
    Ok(())
}

/// Copy a file, or with `recurse` a folder; the copy gets the owner and mode of the original.
///
/// ```console
/// $ salt web1 file.copy /srv/app/app.conf /srv/app/copy.conf
/// ```
#[function]
pub fn copy(
    cx: &Cx,
    /// What to copy.
    src: String,
    /// Where to.
    dst: String,
    /// Copy a folder with everything in it.
    #[default(false)]
    recurse: bool,
    /// Remove the folder that is there first.
    #[default(false)]
    remove_existing: bool,
) -> Result<bool> {
    let (src, dst) = (expand_user(cx, &src), expand_user(cx, &dst));
    if !is_abs(&src) {
        return Err(Error::invalid("File path must be absolute."));
    }
    let (from, to) = (Path::new(&src), Path::new(&dst));
    if !cx.host.exists(from)? {
        return Err(Error::failed(format!("No such file or directory '{src}'")));
    }
    let stat = stat_of(cx, from, true)?;
    let failed = |error: Error| match error {
        Error::Cancelled => error,
        _ => Error::failed(format!("Could not copy '{src}' to '{dst}'")),
    };
    if cx.host.is_dir(to)? || cx.host.is_dir(from)? {
        if !recurse {
            return Err(Error::invalid(
                "Cannot copy overwriting a directory without recurse flag set to true!",
            ));
        }
        if remove_existing {
            remove_any(cx, to)?;
        }
        copy_tree(cx, from, to, false).map_err(failed)?;
        let owner = Wanted::new(
            Some(Owner::Id(stat.uid)),
            Some(Owner::Id(stat.gid)),
            Some(Mode::of(stat.mode)),
        );
        owner.enforce(cx, to, false)?;
    } else {
        let there = cx.host.stat_if_there(to, true)?;
        if there.is_some_and(|there| {
            there.inode != 0 && (there.device, there.inode) == (stat.device, stat.inode)
        }) {
            return Err(failed(Error::failed("the same file")));
        }
        copy_whole(cx, from, to, &stat).map_err(failed)?;
    }
    Ok(true)
}

/// Returns major and minor of a device number, as Linux packs them.
pub(crate) fn device_numbers(rdev: u64) -> (u32, u32) {
    let major = (rdev >> 8 & 0xfff) | (rdev >> 32 & 0xffff_f000);
    let minor = (rdev & 0xff) | (rdev >> 12 & 0xffff_ff00);
    (major as u32, minor as u32)
}

fn is_kind(cx: &Cx, name: &str, kind: Kind) -> Result<bool> {
    let path = expand_user(cx, name);
    Ok(cx.host.stat_if_there(Path::new(&path), true)?.is_some_and(|stat| stat.kind == kind))
}

/// Return major and minor number of a device file; zeros if it is none.
///
/// ```console
/// $ salt web1 file.get_devmm /srv/app/app.conf
/// ```
#[function]
pub fn get_devmm(
    cx: &Cx,
    /// The path.
    name: String,
) -> Result<Value> {
    let path = expand_user(cx, &name);
    let (major, minor) = match cx.host.stat_if_there(Path::new(&path), true)? {
        Some(stat) if matches!(stat.kind, Kind::Char | Kind::Block) => device_numbers(stat.rdev),
        _ => (0, 0),
    };
    Ok(Value::tuple([major, minor]))
}

/// Tell whether a path is a character device.
///
/// ```console
/// $ salt web1 file.is_chrdev /dev/null
/// ```
#[function]
pub fn is_chrdev(
    cx: &Cx,
    /// The path.
    name: String,
) -> Result<bool> {
    is_kind(cx, &name, Kind::Char)
}

/// Tell whether a path is a block device.
///
/// ```console
/// $ salt web1 file.is_blkdev /dev/vdb
/// ```
#[function]
pub fn is_blkdev(
    cx: &Cx,
    /// The path.
    name: String,
) -> Result<bool> {
    is_kind(cx, &name, Kind::Block)
}

/// Tell whether a path is a named pipe.
///
/// ```console
/// $ salt web1 file.is_fifo /srv/app/pipe
/// ```
#[function]
pub fn is_fifo(
    cx: &Cx,
    /// The path.
    name: String,
) -> Result<bool> {
    is_kind(cx, &name, Kind::Fifo)
}

/// What a device file is, and how it is called.
fn make_node(
    cx: &Cx,
    name: &str,
    kind: Kind,
    (major, minor): (i64, i64),
    owner: (Option<Owner>, Option<Owner>),
    mode: &Mode,
) -> Result<Dict> {
    let name = expand_user(cx, name);
    let what = match kind {
        Kind::Char => "Character device",
        Kind::Block => "Block device",
        _ => "Fifo pipe",
    };
    let ret = entries! {
        "name" => &name, "changes" => Value::dict(), "comment" => "", "result" => false,
    };
    let changes = Value::Dict(entries! { "new" => format!("{what} {name} created.") });
    if cx.opt_bool("test") {
        ret.insert("changes", changes);
        ret.insert("result", Value::Null);
        return Ok(ret);
    }
    let number = |number: i64| {
        u32::try_from(number).map_err(|_| Error::invalid(format!("invalid device number {number}")))
    };
    let at = Path::new(&name);
    match cx.host.make_node(at, kind, number(major)?, number(minor)?, mode.checked()?) {
        Ok(()) => {
            ret.insert("changes", changes);
            ret.insert("result", true);
        }
        Err(error) if error.kind() == Some(ErrorKind::AlreadyExists) => {
            ret.insert("comment", format!("File {name} exists and cannot be overwritten"));
        }
        Err(error) => return Err(error.into()),
    }
    Wanted::new(owner.0, owner.1, Some(mode.clone())).enforce(cx, at, false)?;
    Ok(ret)
}

/// Make a character device.
///
/// ```console
/// $ salt web1 file.mknod_chrdev /srv/app/null 1 3
/// ```
#[function]
pub fn mknod_chrdev(
    cx: &Cx,
    /// The path.
    name: String,
    /// The major number.
    major: i64,
    /// The minor number.
    minor: i64,
    /// The user.
    user: Option<Owner>,
    /// The group.
    group: Option<Owner>,
    /// The mode.
    #[default(Mode::new("0660"))]
    mode: Mode,
) -> Result<Dict> {
    make_node(cx, &name, Kind::Char, (major, minor), (user, group), &mode)
}

/// Make a block device.
///
/// ```console
/// $ salt web1 file.mknod_blkdev /srv/app/disk 7 1
/// ```
#[function]
pub fn mknod_blkdev(
    cx: &Cx,
    /// The path.
    name: String,
    /// The major number.
    major: i64,
    /// The minor number.
    minor: i64,
    /// The user.
    user: Option<Owner>,
    /// The group.
    group: Option<Owner>,
    /// The mode.
    #[default(Mode::new("0660"))]
    mode: Mode,
) -> Result<Dict> {
    make_node(cx, &name, Kind::Block, (major, minor), (user, group), &mode)
}

/// Make a named pipe.
///
/// ```console
/// $ salt web1 file.mknod_fifo /srv/app/pipe
/// ```
#[function]
pub fn mknod_fifo(
    cx: &Cx,
    /// The path.
    name: String,
    /// The user.
    user: Option<Owner>,
    /// The group.
    group: Option<Owner>,
    /// The mode.
    #[default(Mode::new("0660"))]
    mode: Mode,
) -> Result<Dict> {
    make_node(cx, &name, Kind::Fifo, (0, 0), (user, group), &mode)
}

/// Make a device file or a named pipe, and the folders above it.
///
/// ```console
/// $ salt web1 file.mknod /srv/app/pipe p
/// ```
#[function]
pub fn mknod(
    cx: &Cx,
    /// The path.
    name: String,
    /// `c` for a character device, `b` for a block device, `p` for a pipe.
    ntype: String,
    /// The major number.
    #[default(0)]
    major: i64,
    /// The minor number.
    #[default(0)]
    minor: i64,
    /// The user.
    user: Option<Owner>,
    /// The group.
    group: Option<Owner>,
    /// The mode.
    #[default(Mode::new("0600"))]
    mode: Mode,
) -> Result<Dict> {
    let kind = match ntype.as_str() {
        "c" => Kind::Char,
        "b" => Kind::Block,
        "p" => Kind::Fifo,
        _ => {
            return Err(Error::invalid(format!(
                "Node type unavailable: '{ntype}'. Available node types are character ('c'), \
                 block ('b'), and pipe ('p')."
            )));
        }
    };
    if !cx.opt_bool("test") {
        makedirs(cx, name.clone(), user.clone(), group.clone(), None)?;
    }
    make_node(cx, &name, kind, (major, minor), (user, group), &mode)
}

/// Return what a symbolic link points to.
///
/// ```console
/// $ salt web1 file.readlink /srv/app/current
/// ```
#[function]
pub fn readlink(
    cx: &Cx,
    /// The link.
    path: String,
    /// Follow every link on the way.
    #[default(false)]
    canonicalize: bool,
) -> Result<String> {
    let path = expand_vars(cx, &expand_user(cx, &path));
    if !is_abs(&path) {
        return Err(Error::invalid(format!("Path to link must be absolute: {path}")));
    }
    if !cx.host.is_link(Path::new(&path))? {
        return Err(Error::invalid(format!("A valid link was not specified: {path}")));
    }
    if canonicalize {
        return real(cx, &path);
    }
    Ok(cx.host.read_link(Path::new(&path))?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_are_unpacked() {
        assert_eq!(device_numbers(0x0103), (1, 3));
        assert_eq!(device_numbers(0x0801), (8, 1));
        assert_eq!(device_numbers((300 & 0xff) | (300 >> 8) << 20 | 8 << 8), (8, 300));
    }
}
