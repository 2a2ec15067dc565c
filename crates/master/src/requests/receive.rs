//! Files that minions push (`cp.push`).
//!
//! A path arrives as components. Each must be a plain name, and the way down is walked folder by
//! folder without following links, so that nothing is written outside of the minion's own folder:
//! `cachedir/minions/<id>/files/`. A minion has a quota.

use std::{
    fs::{self, File, OpenOptions},
    io::{Seek as _, SeekFrom, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use halite_wire::MinionId;

use crate::Master;

const MOST_COMPONENTS: usize = 64;

/// Stores a piece of a file; false if it is not wanted. Blocking.
pub(crate) fn take(
    master: &Master,
    id: &MinionId,
    path: &[String],
    offset: u64,
    size: u64,
    data: &[u8],
) -> bool {
    let opts = &master.settings.opts;
    if !opts.bool("file_recv") {
        return false;
    }
    let most = u64::try_from(opts.opt_int("file_recv_max_size").unwrap_or(100)).unwrap_or(0) << 20;
    let end = offset.saturating_add(data.len() as u64);
    if size > most || end > most {
        tracing::error!(
            "Exceeding file_recv_max_size limit: {} in bytes {size} from {id}",
            most >> 20
        );
        return false;
    }
    let Some((folders, name)) = plain(path) else {
        tracing::warn!("{id} pushed a file with a path that leads elsewhere: {path:?}");
        return false;
    };
    let root = master.settings.cachedir.join("minions").join(id.as_str()).join("files");
    let quota = master.settings.own("file_recv_quota").and_then(|quota| quota.to_int());
    let quota = quota.and_then(|quota| u64::try_from(quota).ok()).unwrap_or(1 << 30);
    if offset == 0 && used(&root, 0).saturating_add(size.max(end)) > quota {
        tracing::error!("The quota of {quota} bytes for files of {id} is used up");
        return false;
    }
    match write(&root, &folders, name, offset, data) {
        Ok(()) => true,
        Err(error) => {
            tracing::error!("A file of {id} was not stored: {error}");
            false
        }
    }
}

/// Returns the folders and the name, if all of them are plain names.
fn plain(path: &[String]) -> Option<(Vec<&str>, &str)> {
    let is_plain = |part: &&str| {
        *part != "." && *part != ".." && part.len() <= 255 && !part.contains(['/', '\\', '\0'])
    };
    // `/etc/x` comes as ["", "etc", "x"].
    let parts: Vec<&str> =
        path.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    if parts.len() > MOST_COMPONENTS || !parts.iter().all(is_plain) {
        return None;
    }
    let (name, folders) = parts.split_last()?;
    Some((folders.to_vec(), name))
}

fn write(
    root: &Path,
    folders: &[&str],
    name: &str,
    offset: u64,
    data: &[u8],
) -> std::io::Result<()> {
    fs::create_dir_all(root)?;
    let mut at: PathBuf = root.to_owned();
    for folder in folders {
        at.push(folder);
        match fs::create_dir(&at) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        if !fs::symlink_metadata(&at)?.is_dir() {
            return Err(std::io::Error::other(format!("{} is not a folder", at.display())));
        }
    }
    at.push(name);
    let nofollow = nix::fcntl::OFlag::O_NOFOLLOW.bits();
    let mut file: File = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(offset == 0)
        .mode(0o600)
        .custom_flags(nofollow)
        .open(&at)?;
    if !file.metadata()?.is_file() || file.metadata()?.len() < offset {
        return Err(std::io::Error::other("a piece is missing before this one"));
    }
    file.seek(SeekFrom::Start(offset))?;
    file.write_all(data)
}

/// Returns the bytes below a folder.
fn used(folder: &Path, depth: usize) -> u64 {
    if depth > MOST_COMPONENTS {
        return 0;
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => used(&entry.path(), depth + 1),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below() {
        let parts = |path: &[&str]| path.iter().map(|&part| part.to_owned()).collect::<Vec<_>>();
        assert!(plain(&parts(&["", "etc", "hosts"])).is_some());
        for bad in [
            &["..", "x"][..],
            &["a", "..", "..", "x"],
            &["a/b"],
            &["/etc/passwd"],
            &["a", "b\\c"],
            &["a\0b"],
            &["."],
            &[],
            &[""],
        ] {
            assert!(plain(&parts(bad)).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("files");
        let outside = dir.path().join("outside");
        fs::create_dir_all(&root).unwrap();
        fs::create_dir_all(&outside).unwrap();
        std::os::unix::fs::symlink(&outside, root.join("link")).unwrap();
        std::os::unix::fs::symlink(outside.join("file"), root.join("direct")).unwrap();
        assert!(write(&root, &["link"], "x", 0, b"x").is_err());
        assert!(write(&root, &[], "direct", 0, b"x").is_err());
        assert!(fs::read_dir(&outside).unwrap().next().is_none());
        write(&root, &["a", "b"], "c", 0, b"one").unwrap();
        write(&root, &["a", "b"], "c", 3, b"two").unwrap();
        assert!(write(&root, &["a", "b"], "c", 9, b"x").is_err());
        assert_eq!(fs::read(root.join("a/b/c")).unwrap(), b"onetwo");
    }
}
