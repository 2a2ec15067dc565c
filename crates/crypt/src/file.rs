//! Writing key files so that nobody ever sees half of one, or one with the wrong mode.
//!
//! A file is made under an unpredictable name in its final directory, exclusively (a planted link is not followed), gets
//! mode and owner while still nameless to others, is synced, and only then takes its final name. The umask plays no part.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, fchown, symlink};
use std::path::{Path, PathBuf};

use crate::key::random;
use crate::{Error, Result, algo};

/// Writes `path` atomically with exactly this mode, replacing what was there. `owner` is a user id.
pub fn write(path: &Path, bytes: &[u8], mode: u32, owner: Option<u32>) -> Result<()> {
    let place = |temp: &Path| fs::rename(temp, path);
    staged(path, |temp| fill(temp, bytes, mode, owner), place).map_err(Error::io(path))
}

/// Like [`write()`], but leaves an existing file alone. Tells whether it was ours that won.
pub fn create(path: &Path, bytes: &[u8], mode: u32, owner: Option<u32>) -> Result<bool> {
    let place = |temp: &Path| match fs::hard_link(temp, path) {
        Ok(()) => fs::remove_file(temp),
        // A file system without hard links: a small window remains in which the other one is overwritten.
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists && path.symlink_metadata().is_err() => {
            fs::rename(temp, path)
        }
        Err(e) => Err(e),
    };
    match staged(path, |temp| fill(temp, bytes, mode, owner), place) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(e) => Err(Error::io(path)(e)),
    }
}

/// Makes `path` a symbolic link to `target` atomically, replacing what was there.
pub fn link(path: &Path, target: &Path) -> Result<()> {
    let place = |temp: &Path| fs::rename(temp, path);
    staged(path, |temp| symlink(target, temp), place).map_err(Error::io(path))
}

/// Reads a file; `None` if there is none.
pub fn read(path: &Path) -> Result<Option<zeroize::Zeroizing<Vec<u8>>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(zeroize::Zeroizing::new(bytes))),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io(path)(e)),
    }
}

fn fill(temp: &Path, bytes: &[u8], mode: u32, owner: Option<u32>) -> io::Result<()> {
    // 0200 until it is complete: not readable by anyone, whatever the umask.
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o200).open(temp)?;
    file.write_all(bytes)?;
    if owner.is_some() {
        fchown(&file, owner, None)?;
    }
    file.set_permissions(Permissions::from_mode(mode))?;
    file.sync_all()
}

/// Makes something under a temporary name, gives it its place, syncs the directory; cleans up after a failure.
fn staged(
    path: &Path,
    make: impl FnOnce(&Path) -> io::Result<()>,
    place: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let temp = temporary(path)?;
    if let Err(e) = make(&temp).and_then(|()| place(&temp)) {
        // Already gone, or never there; the first error is the one that matters.
        let _ = fs::remove_file(&temp);
        return Err(e);
    }
    let dir = temp.parent().unwrap_or(Path::new("."));
    File::open(dir)?.sync_all()
}

fn temporary(path: &Path) -> io::Result<PathBuf> {
    // Not derived from the final name, which may already be as long as the file system allows.
    let unguessable = algo::hex(&*random::<16>(), "");
    let dir = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    Ok(dir.join(format!(".halite-{unguessable}")))
}
