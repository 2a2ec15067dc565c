//! A host whose nth call fails.
//!
//! Tests run a piece of work once to learn how many calls it makes, then again with each of them
//! failing, and check that it reports the failure and that a second run repairs. Only calls that
//! can fail are counted: asking for the time or an environment variable is not.

use std::{
    ffi::{OsStr, OsString},
    io::{self, Read},
    net::IpAddr,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use halite_spec::host::{
    Command, Error, FileWatch, Group, Host, HttpRequest, HttpResponse, Interface, Kind, Mail,
    Output, Resolved, Result, Space, Stat, Uname, User, Write,
};

/// Passes every call through, but fails one.
pub struct Failing {
    inner: Arc<dyn Host>,
    fail_at: Option<usize>,
    calls: AtomicUsize,
}

impl Failing {
    /// Fails the nth call, counted from 1; later ones work again.
    pub fn new(inner: Arc<dyn Host>, fail_at: usize) -> Self {
        Self { inner, fail_at: Some(fail_at), calls: AtomicUsize::new(0) }
    }

    /// Fails nothing, only counts.
    pub fn counting(inner: Arc<dyn Host>) -> Self {
        Self { inner, fail_at: None, calls: AtomicUsize::new(0) }
    }

    /// Returns how many calls were made so far.
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    fn fails(&self) -> bool {
        let call = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        self.fail_at == Some(call)
    }

    fn on_path(&self, action: &'static str, path: &Path) -> Result<()> {
        if self.fails() {
            return Err(Error::io(action, path, io::Error::from_raw_os_error(libc::EIO)));
        }
        Ok(())
    }

    fn other(&self, what: &str) -> Result<()> {
        if self.fails() {
            Err(Error::Other(format!("cannot {what}: made to fail")))
        } else {
            Ok(())
        }
    }
}

impl Host for Failing {
    fn open(&self, path: &Path) -> Result<Box<dyn Read + Send>> {
        self.on_path("read", path)?;
        self.inner.open(path)
    }
    fn open_at(&self, path: &Path, offset: u64) -> Result<Box<dyn Read + Send>> {
        self.on_path("read", path)?;
        self.inner.open_at(path, offset)
    }
    fn stat(&self, path: &Path, follow: bool) -> Result<Stat> {
        self.on_path("look at", path)?;
        self.inner.stat(path, follow)
    }
    fn read_link(&self, path: &Path) -> Result<PathBuf> {
        self.on_path("read the link", path)?;
        self.inner.read_link(path)
    }
    fn read_dir(&self, path: &Path) -> Result<Vec<OsString>> {
        self.on_path("list", path)?;
        self.inner.read_dir(path)
    }
    fn real_path(&self, path: &Path) -> Result<PathBuf> {
        self.on_path("resolve", path)?;
        self.inner.real_path(path)
    }
    fn users(&self) -> Result<Vec<User>> {
        self.other("list users")?;
        self.inner.users()
    }
    fn groups(&self) -> Result<Vec<Group>> {
        self.other("list groups")?;
        self.inner.groups()
    }
    fn user_named(&self, name: &str) -> Result<Option<User>> {
        self.other("look up a user")?;
        self.inner.user_named(name)
    }
    fn user_with_id(&self, uid: u32) -> Result<Option<User>> {
        self.other("look up a user")?;
        self.inner.user_with_id(uid)
    }
    fn group_named(&self, name: &str) -> Result<Option<Group>> {
        self.other("look up a group")?;
        self.inner.group_named(name)
    }
    fn group_with_id(&self, gid: u32) -> Result<Option<Group>> {
        self.other("look up a group")?;
        self.inner.group_with_id(gid)
    }
    fn env(&self, name: &OsStr) -> Option<OsString> {
        self.inner.env(name)
    }
    fn env_all(&self) -> Vec<(OsString, OsString)> {
        self.inner.env_all()
    }
    fn now(&self) -> SystemTime {
        self.inner.now()
    }
    fn uid(&self) -> u32 {
        self.inner.uid()
    }
    fn gid(&self) -> u32 {
        self.inner.gid()
    }
    fn uname(&self) -> Uname {
        self.inner.uname()
    }
    fn hypervisor(&self) -> Option<String> {
        self.inner.hypervisor()
    }
    fn cancelled(&self) -> bool {
        self.inner.cancelled()
    }
    fn get_xattr(&self, path: &Path, name: &str) -> Result<Option<Vec<u8>>> {
        self.on_path("read an attribute of", path)?;
        self.inner.get_xattr(path, name)
    }
    fn list_xattr(&self, path: &Path) -> Result<Vec<String>> {
        self.on_path("list the attributes of", path)?;
        self.inner.list_xattr(path)
    }
    fn interfaces(&self) -> Result<Vec<Interface>> {
        self.other("list network interfaces")?;
        self.inner.interfaces()
    }
    fn resolve(&self, name: &str) -> Result<Resolved> {
        self.other("resolve a name")?;
        self.inner.resolve(name)
    }
    fn names_of(&self, address: IpAddr) -> Result<Vec<String>> {
        self.other("resolve an address")?;
        self.inner.names_of(address)
    }
    fn ask_socket(&self, path: &Path, question: &[u8], query: bool) -> Result<Vec<u8>> {
        self.on_path("ask", path)?;
        self.inner.ask_socket(path, question, query)
    }
    fn space(&self, path: &Path) -> Result<Space> {
        self.on_path("measure", path)?;
        self.inner.space(path)
    }
    fn watch_files(&self) -> Result<Box<dyn FileWatch>> {
        self.inner.watch_files()
    }
    fn sleep(&self, time: Duration) -> Result<()> {
        self.other("wait")?;
        self.inner.sleep(time)
    }
    fn connect(&self, host: &str, port: u16, udp: bool, timeout: Duration) -> Result<()> {
        self.other("connect")?;
        self.inner.connect(host, port, udp, timeout)
    }
    fn send_datagram(&self, host: &str, port: u16, body: &[u8]) -> Result<()> {
        self.other("send to a machine")?;
        self.inner.send_datagram(host, port, body)
    }
    fn http(&self, request: &HttpRequest) -> Result<HttpResponse> {
        self.other("ask a server")?;
        self.inner.http(request)
    }
    fn mail(&self, mail: &Mail) -> Result<()> {
        self.other("send mail")?;
        self.inner.mail(mail)
    }
    fn run(&self, command: &Command) -> Result<Output> {
        if self.fails() {
            let program = command.argv.first().map(|word| word.to_string_lossy().into_owned());
            let reason = "made to fail".into();
            return Err(Error::Spawn { program: program.unwrap_or_default(), reason });
        }
        self.inner.run(command)
    }
    fn write_from(&self, path: &Path, content: &mut dyn Read, how: &Write) -> Result<()> {
        self.on_path("write", path)?;
        self.inner.write_from(path, content, how)
    }
    fn append(&self, path: &Path, content: &[u8]) -> Result<()> {
        self.on_path("append to", path)?;
        self.inner.append(path, content)
    }
    fn create_dir(&self, path: &Path, mode: Option<u32>) -> Result<()> {
        self.on_path("create", path)?;
        self.inner.create_dir(path, mode)
    }
    fn remove_file(&self, path: &Path) -> Result<()> {
        self.on_path("remove", path)?;
        self.inner.remove_file(path)
    }
    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.on_path("remove", path)?;
        self.inner.remove_dir(path)
    }
    fn remove_all(&self, path: &Path) -> Result<()> {
        self.on_path("remove", path)?;
        self.inner.remove_all(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.on_path("rename", from)?;
        self.inner.rename(from, to)
    }
    fn symlink(&self, target: &Path, link: &Path) -> Result<()> {
        self.on_path("link", link)?;
        self.inner.symlink(target, link)
    }
    fn hard_link(&self, target: &Path, link: &Path) -> Result<()> {
        self.on_path("link", link)?;
        self.inner.hard_link(target, link)
    }
    fn set_mode(&self, path: &Path, mode: u32) -> Result<()> {
        self.on_path("change the mode of", path)?;
        self.inner.set_mode(path, mode)
    }
    fn set_owner(
        &self,
        path: &Path,
        uid: Option<u32>,
        gid: Option<u32>,
        follow: bool,
    ) -> Result<()> {
        self.on_path("change the owner of", path)?;
        self.inner.set_owner(path, uid, gid, follow)
    }
    fn set_times(&self, path: &Path, atime: Option<f64>, mtime: Option<f64>) -> Result<()> {
        self.on_path("change the times of", path)?;
        self.inner.set_times(path, atime, mtime)
    }
    fn make_node(&self, path: &Path, kind: Kind, major: u32, minor: u32, mode: u32) -> Result<()> {
        self.on_path("create", path)?;
        self.inner.make_node(path, kind, major, minor, mode)
    }
    fn set_xattr(&self, path: &Path, name: &str, value: &[u8]) -> Result<()> {
        self.on_path("set an attribute of", path)?;
        self.inner.set_xattr(path, name, value)
    }
    fn remove_xattr(&self, path: &Path, name: &str) -> Result<()> {
        self.on_path("remove an attribute of", path)?;
        self.inner.remove_xattr(path, name)
    }
    fn set_env(&self, name: &OsStr, value: Option<&OsStr>) -> Result<()> {
        self.other("set a variable")?;
        self.inner.set_env(name, value)
    }
    fn kill(&self, pid: u32, signal: i32) -> Result<()> {
        self.other("send a signal")?;
        self.inner.kill(pid, signal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fake;

    /// Writes two files; stops at the first failure.
    fn work(host: &dyn Host) -> Result<()> {
        host.create_dirs(Path::new("/srv/a"), None)?;
        host.write(Path::new("/srv/a/1"), b"one", &Write::default())?;
        host.write(Path::new("/srv/a/2"), b"two", &Write::default())
    }

    #[test]
    fn each_call_can_fail_and_a_second_run_repairs() {
        let count = Failing::counting(Arc::new(Fake::new()));
        work(&count).unwrap();
        let whole = count.calls();
        assert!(whole >= 4, "{whole}");
        let mut failed = 0;
        for n in 1..=whole {
            let fake = Fake::new();
            let failing = Failing::new(Arc::new(fake.clone()), n);
            failed += usize::from(work(&failing).is_err());
            work(&failing).unwrap();
            assert_eq!(fake.text("/srv/a/2"), "two");
        }
        assert!(failed >= 3, "at least the changes are noticed");
        let failing = Failing::new(Arc::new(Fake::new()), whole + 1);
        work(&failing).unwrap();
    }

    #[test]
    fn the_error_names_the_path() {
        let failing = Failing::new(Arc::new(Fake::new()), 1);
        let error = failing.remove_file(Path::new("/etc/x")).unwrap_err();
        assert_eq!(error.to_string(), "cannot remove /etc/x: Input/output error");
    }
}
