//! The real machine.
//!
//! Files go through the standard library, except for replacing one ([`write`]); processes are in
//! [`process`], users and groups in [`accounts`], network interfaces in [`netlink`], the resolver in
//! [`names`], HTTP in [`web`], [`memory`] for daemons at rest. The environment set through a host is an overlay
//! kept here and given to children: the process's own environment is never touched, because other
//! threads may read it at any time.
//!
//! Once the token is cancelled, whatever would change the machine or start a command is refused,
//! so that a job ends at its next step; looking still works, for the report.

mod accounts;
mod inotify;
mod mail;
pub(crate) mod memory;
mod names;
mod netlink;
mod process;
mod web;
mod write;

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Read, Seek, Write as _},
    net::IpAddr,
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, lchown},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::{Duration, SystemTime},
};

use halite_spec::host::{
    Command, Error, FileWatch, Group, Host, HttpRequest, HttpResponse, Interface, Kind, Mail,
    Output, Resolved, Result, Space, Stat, Uname, User, Write as How,
};
use nix::{
    fcntl::AT_FDCWD,
    sys::{
        stat::{Mode, SFlag, UtimensatFlags, makedev, mknod, utimensat},
        time::TimeSpec,
    },
};
use parking_lot::Mutex;

use crate::Cancel;

/// The real machine, as one job sees it.
#[derive(Default)]
pub struct Os {
    cancel: Cancel,
    /// Set (or, with `None`, removed) over the process's environment.
    overlay: Arc<Mutex<BTreeMap<OsString, Option<OsString>>>>,
    umask: OnceLock<u32>,
    /// A umask to work under instead of the process's. The process's own stays as it is: all
    /// threads share it.
    mask: Option<u32>,
}

impl Os {
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the machine for a job that ends when the token says so.
    pub fn with_cancel(cancel: Cancel) -> Self {
        Self { cancel, ..Self::default() }
    }

    pub fn cancel_token(&self) -> &Cancel {
        &self.cancel
    }

    fn goes_on(&self) -> Result<()> {
        if self.cancel.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Returns the umask. It cannot be asked for without setting it, which other threads would
    /// notice; so it is read from the process's status, once: we never change it.
    fn umask(&self) -> u32 {
        self.mask.unwrap_or_else(|| self.own_umask())
    }

    fn own_umask(&self) -> u32 {
        *self.umask.get_or_init(|| {
            let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
            let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
            line.and_then(|text| u32::from_str_radix(text.trim(), 8).ok()).unwrap_or(0o022)
        })
    }
}

fn kind_of(file_type: fs::FileType) -> Kind {
    use std::os::unix::fs::FileTypeExt;
    match file_type {
        kind if kind.is_dir() => Kind::Dir,
        kind if kind.is_symlink() => Kind::Link,
        kind if kind.is_block_device() => Kind::Block,
        kind if kind.is_char_device() => Kind::Char,
        kind if kind.is_fifo() => Kind::Fifo,
        kind if kind.is_socket() => Kind::Socket,
        _ => Kind::File,
    }
}

fn seconds(whole: i64, nanos: i64) -> f64 {
    whole as f64 + nanos as f64 * 1e-9
}

fn time_spec(time: Option<f64>) -> TimeSpec {
    time.map_or(TimeSpec::UTIME_OMIT, |time| {
        let whole = time.floor();
        // A fraction of almost one must not become a whole second of nanoseconds.
        let nanos = (((time - whole) * 1e9).round() as i64).min(999_999_999);
        TimeSpec::new(whole as i64, nanos)
    })
}

#[cfg(target_arch = "x86_64")]
fn hypervisor() -> Option<String> {
    use std::arch::x86_64::__cpuid;
    const UNDER_A_HYPERVISOR: u32 = 1 << 31;
    if __cpuid(1).ecx & UNDER_A_HYPERVISOR == 0 {
        return None;
    }
    let answer = __cpuid(0x4000_0000);
    let bytes = [answer.ebx, answer.ecx, answer.edx].map(u32::to_le_bytes).concat();
    Some(String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned())
}

#[cfg(not(target_arch = "x86_64"))]
fn hypervisor() -> Option<String> {
    None
}

impl Host for Os {
    fn watch_files(&self) -> Result<Box<dyn FileWatch>> {
        Ok(Box::new(inotify::Inotify::new()?))
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Read + Send>> {
        let file = File::open(path).map_err(|error| Error::io("read", path, error))?;
        Ok(Box::new(file))
    }

    fn open_at(&self, path: &Path, offset: u64) -> Result<Box<dyn Read + Send>> {
        let failed = |error| Error::io("read", path, error);
        let mut file = File::open(path).map_err(failed)?;
        file.seek(io::SeekFrom::Start(offset)).map_err(failed)?;
        Ok(Box::new(file))
    }

    fn stat(&self, path: &Path, follow: bool) -> Result<Stat> {
        let found = if follow { fs::metadata(path) } else { fs::symlink_metadata(path) };
        let found = found.map_err(|error| Error::io("look at", path, error))?;
        Ok(Stat {
            kind: kind_of(found.file_type()),
            mode: found.mode() & 0o7777,
            uid: found.uid(),
            gid: found.gid(),
            size: found.size(),
            inode: found.ino(),
            links: found.nlink(),
            device: found.dev(),
            rdev: found.rdev(),
            atime: seconds(found.atime(), found.atime_nsec()),
            mtime: seconds(found.mtime(), found.mtime_nsec()),
            ctime: seconds(found.ctime(), found.ctime_nsec()),
        })
    }

    fn read_link(&self, path: &Path) -> Result<PathBuf> {
        fs::read_link(path).map_err(|error| Error::io("read the link", path, error))
    }

    fn read_dir(&self, path: &Path) -> Result<Vec<OsString>> {
        let names = fs::read_dir(path).and_then(|entries| {
            entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()
        });
        let mut names = names.map_err(|error| Error::io("list", path, error))?;
        names.sort_unstable();
        Ok(names)
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf> {
        fs::canonicalize(path).map_err(|error| Error::io("resolve", path, error))
    }

    fn users(&self) -> Result<Vec<User>> {
        Ok(accounts::users())
    }

    fn groups(&self) -> Result<Vec<Group>> {
        Ok(accounts::groups())
    }

    fn user_named(&self, name: &str) -> Result<Option<User>> {
        accounts::user_named(name)
    }

    fn user_with_id(&self, uid: u32) -> Result<Option<User>> {
        accounts::user_with_id(uid)
    }

    fn group_named(&self, name: &str) -> Result<Option<Group>> {
        accounts::group_named(name)
    }

    fn group_with_id(&self, gid: u32) -> Result<Option<Group>> {
        accounts::group_with_id(gid)
    }

    fn env(&self, name: &OsStr) -> Option<OsString> {
        match self.overlay.lock().get(name) {
            Some(value) => value.clone(),
            None => std::env::var_os(name),
        }
    }

    fn env_all(&self) -> Vec<(OsString, OsString)> {
        let mut all: BTreeMap<_, _> =
            std::env::vars_os().map(|(name, value)| (name, Some(value))).collect();
        all.extend(self.overlay.lock().clone());
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    fn uid(&self) -> u32 {
        nix::unistd::geteuid().as_raw()
    }

    fn gid(&self) -> u32 {
        nix::unistd::getegid().as_raw()
    }

    fn uname(&self) -> Uname {
        let Ok(name) = nix::sys::utsname::uname() else { return Uname::default() };
        let text = |part: &OsStr| part.to_string_lossy().into_owned();
        Uname {
            sysname: text(name.sysname()),
            nodename: text(name.nodename()),
            release: text(name.release()),
            version: text(name.version()),
            machine: text(name.machine()),
        }
    }

    fn hypervisor(&self) -> Option<String> {
        hypervisor()
    }

    fn interfaces(&self) -> Result<Vec<Interface>> {
        netlink::interfaces()
            .map_err(|error| Error::Other(format!("cannot list network interfaces: {error}")))
    }

    fn resolve(&self, name: &str) -> Result<Resolved> {
        Ok(names::resolve(name))
    }

    fn names_of(&self, address: IpAddr) -> Result<Vec<String>> {
        Ok(names::names_of(address))
    }

    fn ask_socket(&self, path: &Path, question: &[u8], _: bool) -> Result<Vec<u8>> {
        use std::io::{Read as _, Write as _};
        let ask = || -> std::io::Result<Vec<u8>> {
            let mut socket = std::os::unix::net::UnixStream::connect(path)?;
            let patience = Some(std::time::Duration::from_secs(10));
            socket.set_read_timeout(patience)?;
            socket.set_write_timeout(patience)?;
            socket.write_all(question)?;
            let mut answer = Vec::new();
            // Whoever answers without end is cut off.
            socket.take(64 << 20).read_to_end(&mut answer)?;
            Ok(answer)
        };
        ask().map_err(|error| Error::io("ask", path, error))
    }

    fn space(&self, path: &Path) -> Result<Space> {
        let found = nix::sys::statvfs::statvfs(path)
            .map_err(|error| Error::io("measure", path, error.into()))?;
        let unit = found.fragment_size();
        Ok(Space {
            total: found.blocks() * unit,
            free: found.blocks_free() * unit,
            available: found.blocks_available() * unit,
            block_size: found.block_size(),
            inodes: found.files(),
            inodes_free: found.files_free(),
        })
    }

    fn get_xattr(&self, path: &Path, name: &str) -> Result<Option<Vec<u8>>> {
        xattr::get(path, name).map_err(|error| Error::io("read an attribute of", path, error))
    }

    fn list_xattr(&self, path: &Path) -> Result<Vec<String>> {
        let names =
            xattr::list(path).map_err(|error| Error::io("list the attributes of", path, error))?;
        let mut names: Vec<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        Ok(names)
    }

    fn sleep(&self, time: Duration) -> Result<()> {
        self.cancel.wait(time).map_err(|error| Error::Other(format!("cannot wait: {error}")))?;
        Ok(())
    }

    fn cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    fn connect(&self, host: &str, port: u16, udp: bool, timeout: Duration) -> Result<()> {
        web::connect(host, port, udp, timeout)
    }

    fn send_datagram(&self, host: &str, port: u16, body: &[u8]) -> Result<()> {
        web::send_datagram(host, port, body)
    }

    fn http(&self, request: &HttpRequest) -> Result<HttpResponse> {
        web::ask(request)
    }

    fn mail(&self, mail: &Mail) -> Result<()> {
        self.goes_on()?;
        mail::send(mail)
    }

    fn with_umask(&self, mask: u32) -> Option<Arc<dyn Host>> {
        Some(Arc::new(Self {
            cancel: self.cancel.clone(),
            overlay: self.overlay.clone(),
            umask: OnceLock::new(),
            mask: Some(mask & 0o777),
        }))
    }

    fn run(&self, command: &Command) -> Result<Output> {
        self.goes_on()?;
        let overlay = self.overlay.lock().clone();
        match self.mask.filter(|_| command.umask.is_none()) {
            None => process::run(command, &overlay, &self.cancel),
            mask => {
                let command = Command { umask: mask, ..command.clone() };
                process::run(&command, &overlay, &self.cancel)
            }
        }
    }

    fn write_from(&self, path: &Path, content: &mut dyn Read, how: &How) -> Result<()> {
        self.goes_on()?;
        write::replace(path, content, how, self.umask(), &|_| Ok(()))
            .map_err(|error| Error::io("write", path, error))
    }

    fn append(&self, path: &Path, content: &[u8]) -> Result<()> {
        self.goes_on()?;
        let new = self.mask.filter(|_| !path.exists());
        let file = OpenOptions::new().append(true).create(true).open(path);
        file.and_then(|mut file| {
            if let Some(mask) = new {
                file.set_permissions(Permissions::from_mode(0o666 & !mask))?;
            }
            file.write_all(content)
        })
        .map_err(|error| Error::io("append to", path, error))
    }

    fn create_dir(&self, path: &Path, mode: Option<u32>) -> Result<()> {
        self.goes_on()?;
        let mode = mode.or(self.mask.map(|mask| 0o777 & !mask));
        let made = fs::DirBuilder::new().mode(mode.unwrap_or(0o777)).create(path);
        // Once more, because the umask has had its say.
        made.and_then(|()| match mode {
            Some(mode) => fs::set_permissions(path, Permissions::from_mode(mode)),
            None => Ok(()),
        })
        .map_err(|error| Error::io("create", path, error))
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        self.goes_on()?;
        fs::remove_file(path).map_err(|error| Error::io("remove", path, error))
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.goes_on()?;
        fs::remove_dir(path).map_err(|error| Error::io("remove", path, error))
    }

    fn remove_all(&self, path: &Path) -> Result<()> {
        self.goes_on()?;
        // The standard library works with descriptors below the top, so that nobody can put a
        // link in the way.
        fs::symlink_metadata(path)
            .and_then(
                |found| {
                    if found.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
                },
            )
            .map_err(|error| Error::io("remove", path, error))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.goes_on()?;
        fs::rename(from, to).map_err(|error| Error::io("rename", from, error))
    }

    fn symlink(&self, target: &Path, link: &Path) -> Result<()> {
        self.goes_on()?;
        std::os::unix::fs::symlink(target, link).map_err(|error| Error::io("link", link, error))
    }

    fn hard_link(&self, target: &Path, link: &Path) -> Result<()> {
        self.goes_on()?;
        fs::hard_link(target, link).map_err(|error| Error::io("link", link, error))
    }

    fn set_mode(&self, path: &Path, mode: u32) -> Result<()> {
        self.goes_on()?;
        fs::set_permissions(path, Permissions::from_mode(mode))
            .map_err(|error| Error::io("change the mode of", path, error))
    }

    fn set_owner(
        &self,
        path: &Path,
        uid: Option<u32>,
        gid: Option<u32>,
        follow: bool,
    ) -> Result<()> {
        self.goes_on()?;
        if follow { std::os::unix::fs::chown(path, uid, gid) } else { lchown(path, uid, gid) }
            .map_err(|error| Error::io("change the owner of", path, error))
    }

    fn set_times(&self, path: &Path, atime: Option<f64>, mtime: Option<f64>) -> Result<()> {
        self.goes_on()?;
        let (atime, mtime) = (time_spec(atime), time_spec(mtime));
        utimensat(AT_FDCWD, path, &atime, &mtime, UtimensatFlags::FollowSymlink)
            .map_err(|error| Error::io("change the times of", path, error.into()))
    }

    fn make_node(&self, path: &Path, kind: Kind, major: u32, minor: u32, mode: u32) -> Result<()> {
        self.goes_on()?;
        let kind = match kind {
            Kind::Block => SFlag::S_IFBLK,
            Kind::Char => SFlag::S_IFCHR,
            Kind::Fifo => SFlag::S_IFIFO,
            Kind::Socket => SFlag::S_IFSOCK,
            Kind::File => SFlag::S_IFREG,
            Kind::Dir | Kind::Link => {
                return Err(Error::Other(format!("a {} is no node", kind.word())));
            }
        };
        mknod(path, kind, Mode::from_bits_truncate(mode), makedev(major.into(), minor.into()))
            .map_err(io::Error::from)
            .and_then(|()| fs::set_permissions(path, Permissions::from_mode(mode)))
            .map_err(|error| Error::io("create", path, error))
    }

    fn set_xattr(&self, path: &Path, name: &str, value: &[u8]) -> Result<()> {
        self.goes_on()?;
        xattr::set(path, name, value).map_err(|error| Error::io("set an attribute of", path, error))
    }

    fn remove_xattr(&self, path: &Path, name: &str) -> Result<()> {
        self.goes_on()?;
        xattr::remove(path, name).map_err(|error| Error::io("remove an attribute of", path, error))
    }

    fn set_env(&self, name: &OsStr, value: Option<&OsStr>) -> Result<()> {
        self.overlay.lock().insert(name.to_owned(), value.map(OsStr::to_owned));
        Ok(())
    }

    fn kill(&self, pid: u32, signal: i32) -> Result<()> {
        // 0 and what looks negative would mean whole groups.
        let target = i32::try_from(pid).ok().filter(|pid| *pid > 0);
        let target = target.ok_or_else(|| Error::Other(format!("{pid} is no process")))?;
        let signal = match signal {
            0 => None,
            number => Some(
                nix::sys::signal::Signal::try_from(number)
                    .map_err(|_| Error::Other(format!("{number} is no signal")))?,
            ),
        };
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(target), signal)
            .map_err(|error| Error::Other(format!("cannot signal {pid}: {}", error.desc())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_folder(check: impl FnOnce(&dyn Host, &Path)) {
        let folder = tempfile::tempdir().unwrap();
        check(&Os::new(), folder.path());
    }

    #[test]
    fn write_read_append() {
        with_folder(|host, folder| {
            let path = folder.join("f");
            host.write(&path, b"one", &How::default()).unwrap();
            host.append(&path, b" two").unwrap();
            assert_eq!(host.read_text(&path).unwrap(), "one two");
            assert!(host.read(&folder.join("none")).unwrap_err().is_missing());
            assert_eq!(host.read_text_if_there(&path.join("below")).unwrap(), None);
        });
    }

    #[test]
    fn another_umask_for_what_has_no_mode() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let host = Os::new();
        host.set_env(OsStr::new("SEEN"), Some(OsStr::new("yes"))).unwrap();
        for (mask, file, dir) in [(0o077, 0o600, 0o700), (0, 0o666, 0o777)] {
            let name = |kind: &str| at(&format!("{kind}{mask:o}"));
            let host = host.with_umask(mask).unwrap();
            host.write(&name("written"), b"", &How::default()).unwrap();
            host.append(&name("appended"), b"x").unwrap();
            host.create_dirs(&name("folder").join("below"), None).unwrap();
            let text = format!("touch {}; test $SEEN = yes", name("touched").display());
            assert!(host.run(&Command::shell("/bin/sh", text)).unwrap().ok());
            let own = How { mode: Some(0o604), ..How::default() };
            host.write(&name("own"), b"", &own).unwrap();
            let mode = |path: &Path| host.stat(path, true).unwrap().mode;
            for kind in ["written", "appended", "touched"] {
                assert_eq!(mode(&name(kind)), file, "{kind}");
            }
            assert_eq!(mode(&name("folder")), dir);
            assert_eq!(mode(&name("folder").join("below")), dir);
            assert_eq!(mode(&name("own")), 0o604);
        }
    }

    #[test]
    fn folders_and_links() {
        with_folder(|host, folder| {
            host.create_dirs(&folder.join("a/b"), Some(0o777)).unwrap();
            assert_eq!(host.stat(&folder.join("a/b"), true).unwrap().mode, 0o777);
            host.write(&folder.join("a/b/f"), b"", &How::default()).unwrap();
            host.symlink(Path::new("b"), &folder.join("a/l")).unwrap();
            host.hard_link(&folder.join("a/b/f"), &folder.join("a/b/e")).unwrap();
            assert_eq!(host.read_dir(&folder.join("a/l")).unwrap(), ["e", "f"]);
            assert_eq!(host.stat(&folder.join("a/l"), false).unwrap().kind, Kind::Link);
            assert_eq!(host.read_link(&folder.join("a/l")).unwrap(), Path::new("b"));
            assert_eq!(
                host.real_path(&folder.join("a/l/../l")).unwrap(),
                host.real_path(&folder.join("a/b")).unwrap()
            );
            host.remove_all(&folder.join("a/l")).unwrap();
            assert!(host.exists(&folder.join("a/b/f")).unwrap(), "only the link is removed");
            assert!(host.remove_dir(&folder.join("a/b")).is_err(), "not empty");
            host.remove_all(&folder.join("a")).unwrap();
            assert!(host.remove_all(&folder.join("a")).unwrap_err().is_missing());
        });
    }

    #[test]
    fn times() {
        with_folder(|host, folder| {
            let path = folder.join("f");
            host.write(&path, b"", &How::default()).unwrap();
            host.set_times(&path, Some(1.5), Some(1_700_000_000.25)).unwrap();
            host.set_times(&path, None, Some(2.75)).unwrap();
            let stat = host.stat(&path, true).unwrap();
            assert_eq!((stat.atime, stat.mtime), (1.5, 2.75));
            host.set_times(&path, Some(-0.5), None).unwrap();
            assert_eq!(host.stat(&path, true).unwrap().atime, -0.5);
        });
    }

    #[test]
    fn nodes() {
        with_folder(|host, folder| {
            host.make_node(&folder.join("p"), Kind::Fifo, 0, 0, 0o622).unwrap();
            let stat = host.stat(&folder.join("p"), false).unwrap();
            assert_eq!((stat.kind, stat.mode), (Kind::Fifo, 0o622));
            assert!(host.make_node(&folder.join("d"), Kind::Dir, 0, 0, 0o622).is_err());
        });
    }

    #[test]
    fn the_environment_is_an_overlay() {
        let host = Os::new();
        let name = OsStr::new("HALITE_TEST_OVERLAY");
        host.set_env(name, Some(OsStr::new("x"))).unwrap();
        assert_eq!(host.env(name), Some("x".into()));
        assert!(std::env::var_os(name).is_none());
        let output = host.run(&Command::shell("/bin/sh", "echo $HALITE_TEST_OVERLAY")).unwrap();
        assert_eq!(output.stdout_text(), "x\n");
        host.set_env(OsStr::new("PATH"), None).unwrap();
        assert_eq!(host.env(OsStr::new("PATH")), None);
        assert!(host.env_all().iter().all(|(name, _)| name != "PATH"));
        assert!(host.env_all().contains(&(name.into(), "x".into())));
    }

    #[test]
    fn a_cancelled_job_changes_nothing_more() {
        let token = Cancel::new();
        let os = Os::with_cancel(token.clone());
        let folder = tempfile::tempdir().unwrap();
        token.cancel();
        let host: &dyn Host = &os;
        assert!(host.cancelled());
        let refused = host.write(&folder.path().join("f"), b"", &How::default());
        assert!(matches!(refused, Err(Error::Cancelled)));
        assert!(matches!(host.run(&Command::new("true")), Err(Error::Cancelled)));
        host.sleep(Duration::from_secs(60)).unwrap();
        assert_eq!(host.read_dir(folder.path()).unwrap().len(), 0);
    }
}
