//! Replacing a file as one step.
//!
//! The content goes into a temporary file beside the target, which gets the owner, the mode and
//! the extended attributes, is forced to disk and renamed over the target; then the folder is
//! forced to disk. Whoever looks, and whoever pulls the plug, finds the old file or the new one.
//!
//! Surprising:
//! - A link is written through: its target is replaced, the link stays.
//! - A device, pipe or socket is written into, never replaced.
//! - A file that is itself a mount point (`/etc/hosts` in a container) cannot be renamed over; its
//!   content is overwritten in place then, as the next best.
//!
//! Every step is announced to a watcher first, which may refuse: so tests fail each step in turn.

use std::{
    collections::hash_map::RandomState,
    ffi::OsStr,
    fs::{self, File, Metadata, OpenOptions, Permissions},
    hash::{BuildHasher, Hasher},
    io::{self, ErrorKind, Read, Seek, Write},
    os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown},
    path::{Path, PathBuf},
};

use halite_spec::host::Write as How;
use xattr::FileExt;

/// What happens, in this order; the last two only if something failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Create,
    Fill,
    Attributes,
    Owner,
    Mode,
    SyncFile,
    Rename,
    SyncFolder,
    Overwrite,
    Clean,
}

pub(super) type Watcher<'a> = &'a dyn Fn(Step) -> io::Result<()>;

pub(super) fn replace(
    path: &Path,
    content: &mut dyn Read,
    how: &How,
    umask: u32,
    watch: Watcher<'_>,
) -> io::Result<()> {
    let path = follow(path)?;
    let old = match fs::symlink_metadata(&path) {
        Ok(old) if old.is_dir() => return Err(ErrorKind::IsADirectory.into()),
        Ok(old) if !old.is_file() => return pour_into(&path, &old, content),
        Ok(old) => Some(old),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };

    watch(Step::Create)?;
    let mut temp = Temp::create(folder, watch)?;
    watch(Step::Fill)?;
    pour(content, &mut temp.file)?;
    if let Some(old) = &old {
        watch(Step::Attributes)?;
        copy_attributes(&path, old, &temp.file)?;
    }
    watch(Step::Owner)?;
    set_owner(&temp.file, how, old.as_ref())?;
    watch(Step::Mode)?;
    let mode = how.mode.or_else(|| old.as_ref().map(|old| old.mode() & 0o7777));
    temp.file.set_permissions(Permissions::from_mode(mode.unwrap_or(0o666 & !umask)))?;
    watch(Step::SyncFile)?;
    temp.file.sync_all()?;
    watch(Step::Rename)?;
    match fs::rename(&temp.path, &path) {
        Ok(()) => temp.kept = true,
        Err(error) if error.kind() == ErrorKind::ResourceBusy => {
            watch(Step::Overwrite)?;
            return overwrite(&mut temp.file, &path);
        }
        Err(error) => return Err(error),
    }
    watch(Step::SyncFolder)?;
    match File::open(folder)?.sync_all() {
        // Some file systems cannot; the new file is there all the same.
        Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => {
            Ok(())
        }
        other => other,
    }
}

/// Returns the path at the end of a chain of links; the last one need not exist.
fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    // As many as the kernel allows.
    for _ in 0..40 {
        match fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("")).join(target),
            // EINVAL: it is there and no link.
            Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::NotFound) => {
                return Ok(path);
            }
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::from_raw_os_error(libc::ELOOP))
}

/// As `io::copy`, which takes small bites from a reader it does not know.
fn pour(content: &mut dyn Read, file: &mut File) -> io::Result<()> {
    let mut buffer = vec![0; 128 << 10];
    loop {
        match content.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => file.write_all(&buffer[..count])?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn pour_into(path: &Path, old: &Metadata, content: &mut dyn Read) -> io::Result<()> {
    if old.file_type().is_socket() {
        return Err(io::Error::from_raw_os_error(libc::ENXIO));
    }
    let mut file = OpenOptions::new().write(true).open(path)?;
    pour(content, &mut file)
}

fn overwrite(temp: &mut File, path: &Path) -> io::Result<()> {
    temp.rewind()?;
    let mut file = OpenOptions::new().write(true).truncate(true).open(path)?;
    pour(temp, &mut file)?;
    let like = temp.metadata()?;
    fchown(&file, Some(like.uid()), Some(like.gid()))?;
    file.set_permissions(like.permissions())?;
    file.sync_all()
}

/// What was asked must work; what is only kept may be refused to a user who does not own it.
fn set_owner(temp: &File, how: &How, old: Option<&Metadata>) -> io::Result<()> {
    let now = temp.metadata()?;
    let uid = how.uid.or(old.map(MetadataExt::uid)).filter(|uid| *uid != now.uid());
    let gid = how.gid.or(old.map(MetadataExt::gid)).filter(|gid| *gid != now.gid());
    if uid.is_none() && gid.is_none() {
        return Ok(());
    }
    let asked = (how.uid.is_some() && uid.is_some()) || (how.gid.is_some() && gid.is_some());
    match fchown(temp, uid, gid) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied && !asked => Ok(()),
        other => other,
    }
}

/// Copies the extended attributes, among them SELinux contexts and access lists. Those that speak
/// about the old content are left out, and those we may not set are none of our business.
fn copy_attributes(from: &Path, old: &Metadata, to: &File) -> io::Result<()> {
    const ABOUT_CONTENT: [&str; 3] = ["security.capability", "security.ima", "security.evm"];
    let from = match File::open(from) {
        Ok(file) if file.metadata()?.ino() == old.ino() => file,
        _ => return Ok(()),
    };
    let Ok(names) = from.list_xattr() else { return Ok(()) };
    for name in names.filter(|name| !ABOUT_CONTENT.iter().any(|skip| OsStr::new(skip) == name)) {
        if let Ok(Some(value)) = from.get_xattr(&name) {
            let _ = to.set_xattr(&name, &value);
        }
    }
    Ok(())
}

/// A file that is gone again unless it was renamed.
struct Temp<'a> {
    path: PathBuf,
    file: File,
    kept: bool,
    watch: Watcher<'a>,
}

impl<'a> Temp<'a> {
    fn create(folder: &Path, watch: Watcher<'a>) -> io::Result<Self> {
        loop {
            // Each state is seeded from the system's randomness. The dot keeps the file away from
            // programs that read every file of a folder (cron.d, sudoers.d …).
            let chance = RandomState::new().build_hasher().finish();
            let path = folder.join(format!(".halite-{chance:016x}"));
            let file =
                OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path);
            match file {
                Ok(file) => return Ok(Self { path, file, kept: false, watch }),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Temp<'_> {
    fn drop(&mut self) {
        if !self.kept && (self.watch)(Step::Clean).is_ok() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn write(path: &Path, text: &str) -> io::Result<()> {
        replace(path, &mut text.as_bytes(), &How::default(), 0o022, &|_| Ok(()))
    }

    const ORDER: [Step; 8] = [
        Step::Create,
        Step::Fill,
        Step::Attributes,
        Step::Owner,
        Step::Mode,
        Step::SyncFile,
        Step::Rename,
        Step::SyncFolder,
    ];

    #[test]
    fn both_syncs_happen_and_around_the_rename() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        fs::write(&path, "old").unwrap();
        let log = RefCell::new(Vec::new());
        let watch = |step| {
            log.borrow_mut().push(step);
            Ok(())
        };
        replace(&path, &mut &b"new"[..], &How::default(), 0o022, &watch).unwrap();
        assert_eq!(*log.borrow(), ORDER);
    }

    /// Fails (or, without cleaning, dies) before each step, for a replaced and for a new file.
    #[test]
    fn at_every_step_the_old_or_the_new_file_is_whole() {
        for (replaces, dies) in [(true, false), (true, true), (false, false), (false, true)] {
            for fatal in ORDER {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("f");
                if replaces {
                    fs::write(&path, "old").unwrap();
                    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
                } else if fatal == Step::Attributes {
                    continue;
                }
                let watch = |step| {
                    let fails = step == fatal || (dies && step == Step::Clean);
                    if fails { Err(io::Error::other("boom")) } else { Ok(()) }
                };
                let content = "new".repeat(100_000);
                let result =
                    replace(&path, &mut content.as_bytes(), &How::default(), 0o022, &watch);
                assert!(result.is_err(), "{fatal:?}");
                let renamed = fatal == Step::SyncFolder;
                match fs::read_to_string(&path) {
                    Ok(text) if renamed => assert_eq!(text, content),
                    Ok(text) => assert_eq!(text, "old", "{fatal:?}"),
                    Err(_) => assert!(!replaces && !renamed, "{fatal:?}"),
                }
                if replaces {
                    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o640);
                }
                if !dies {
                    let left = names(folder.path());
                    assert!(left.iter().all(|name| name == "f"), "{fatal:?} left {left:?}");
                }
            }
        }
    }

    #[test]
    fn a_broken_source_changes_nothing() {
        struct Broken(bool);
        impl Read for Broken {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                if std::mem::replace(&mut self.0, true) {
                    return Err(io::Error::other("line cut"));
                }
                buffer[..4].copy_from_slice(b"half");
                Ok(4)
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        fs::write(&path, "old").unwrap();
        let error =
            replace(&path, &mut Broken(false), &How::default(), 0o022, &|_| Ok(())).unwrap_err();
        assert_eq!(error.to_string(), "line cut");
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(names(folder.path()), ["f"]);
    }

    #[test]
    fn mode_of_new_and_replaced_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let mode = || fs::metadata(&path).unwrap().mode() & 0o7777;
        write(&path, "1").unwrap();
        assert_eq!(mode(), 0o644);
        fs::set_permissions(&path, Permissions::from_mode(0o4750)).unwrap();
        write(&path, "2").unwrap();
        assert_eq!(mode(), 0o4750, "kept");
        let how = How { mode: Some(0o600), ..How::default() };
        replace(&path, &mut &b"3"[..], &how, 0o022, &|_| Ok(())).unwrap();
        assert_eq!(mode(), 0o600, "asked");
    }

    #[test]
    fn the_owner_is_kept() {
        if !nix::unistd::geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        fs::write(&path, "old").unwrap();
        std::os::unix::fs::chown(&path, Some(12), Some(34)).unwrap();
        write(&path, "new").unwrap();
        let found = fs::metadata(&path).unwrap();
        assert_eq!((found.uid(), found.gid()), (12, 34));
        let how = How { uid: Some(56), mode: Some(0o4755), ..How::default() };
        replace(&path, &mut &b"3"[..], &how, 0o022, &|_| Ok(())).unwrap();
        let found = fs::metadata(&path).unwrap();
        assert_eq!((found.uid(), found.gid(), found.mode() & 0o7777), (56, 34, 0o4755));
    }

    #[test]
    fn attributes_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        fs::write(&path, "old").unwrap();
        if xattr::set(&path, "user.note", b"keep").is_err() {
            return; // not every file system has them
        }
        write(&path, "new").unwrap();
        assert_eq!(xattr::get(&path, "user.note").unwrap().unwrap(), b"keep");
    }

    #[test]
    fn links_are_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("d")).unwrap();
        fs::write(at("d/real"), "old").unwrap();
        std::os::unix::fs::symlink("d/real", at("one")).unwrap();
        std::os::unix::fs::symlink("one", at("two")).unwrap();
        write(&at("two"), "new").unwrap();
        assert!(at("two").is_symlink() && at("one").is_symlink());
        assert_eq!(fs::read_to_string(at("d/real")).unwrap(), "new");

        std::os::unix::fs::symlink("d/fresh", at("dangling")).unwrap();
        write(&at("dangling"), "made").unwrap();
        assert!(at("dangling").is_symlink());
        assert_eq!(fs::read_to_string(at("d/fresh")).unwrap(), "made");

        std::os::unix::fs::symlink("loop", at("loop")).unwrap();
        assert_eq!(write(&at("loop"), "x").unwrap_err().raw_os_error(), Some(libc::ELOOP));
    }

    #[test]
    fn what_is_no_file_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let error = write(folder.path(), "x").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::IsADirectory);
        write(Path::new("/dev/null"), "x").unwrap();
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    }

    #[test]
    fn overwriting_in_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        fs::write(&path, "something long").unwrap();
        let mut temp = Temp::create(folder.path(), &|_| Ok(())).unwrap();
        temp.file.write_all(b"new").unwrap();
        temp.file.set_permissions(Permissions::from_mode(0o604)).unwrap();
        overwrite(&mut temp.file, &path).unwrap();
        drop(temp);
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o604);
        assert_eq!(names(folder.path()), ["f"]);
    }
}
