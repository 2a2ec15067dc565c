//! A machine in memory, for tests.
//!
//! A [`Fake`] is a handle: clones share the machine, so a test keeps one and gives another away.
//! It has a file tree with owners, modes, links, times and attributes; a clock that only moves
//! when told (sleeping moves it); an environment; and scripted commands: one that nobody scripted
//! ends with 127, as in a shell. Users and groups are whatever its `/etc/passwd` and `/etc/group`
//! say, so that a scripted `useradd` adds a line there, and nothing can disagree.
//!
//! [`Fake::snapshot`] is for «unchanged» tests; it holds everything a look can tell, but not the
//! change times. Absent: permission checks (it is root's machine), and programs of its own.

mod snapshot;
mod tree;

use std::{
    collections::{BTreeMap, HashMap},
    ffi::{OsStr, OsString},
    io::{self, Cursor, Read},
    net::IpAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use halite_spec::host::{
    Command, Error, Group, Host, HttpRequest, HttpResponse, Interface, Kind, Mail, Output,
    Resolved, Result, Space, Stat, Uname, User, Write,
};
use parking_lot::Mutex;

pub use self::snapshot::Snapshot;
use self::tree::{Body, Tree};

type Script = Arc<dyn Fn(&Command, &Fake) -> Output + Send + Sync>;
type Predicate = Arc<dyn Fn(&Command) -> bool + Send + Sync>;

/// A machine in memory.
#[derive(Clone)]
pub struct Fake(Arc<Mutex<Machine>>);

struct Machine {
    tree: Tree,
    env: BTreeMap<OsString, OsString>,
    /// Since 1970.
    clock: Duration,
    uid: u32,
    gid: u32,
    scripts: Vec<(Predicate, Script)>,
    commands: Vec<Command>,
    mails: Vec<Mail>,
    datagrams: Vec<(String, u16, Vec<u8>)>,
    changes: usize,
    uname: Uname,
    hypervisor: Option<String>,
    interfaces: Vec<Interface>,
    resolver: HashMap<String, Resolved>,
    names: HashMap<IpAddr, Vec<String>>,
    signals: Vec<(u32, i32)>,
    /// What servers say, by the begin of the address.
    web: Vec<(String, HttpResponse)>,
    asked: Vec<HttpRequest>,
    cancelled: bool,
}

impl Default for Fake {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the output of a command that printed this and ended well.
pub fn prints(text: impl Into<Vec<u8>>) -> Output {
    Output { stdout: text.into(), ..Output::default() }
}

/// Returns the output of a command that complained and ended with this code.
pub fn fails(code: i32, text: impl Into<Vec<u8>>) -> Output {
    Output { code, stderr: text.into(), ..Output::default() }
}

/// Setting up and looking; everything here panics when the test itself is wrong.
impl Fake {
    /// Returns a machine with root, a few empty folders, and a clock at the start of 2026.
    pub fn new() -> Self {
        let clock = Duration::from_secs(1_767_225_600);
        let fake = Self(Arc::new(Mutex::new(Machine {
            tree: Tree::new(clock.as_secs_f64()),
            env: BTreeMap::from([("PATH".into(), "/usr/sbin:/usr/bin:/sbin:/bin".into())]),
            clock,
            uid: 0,
            gid: 0,
            scripts: Vec::new(),
            commands: Vec::new(),
            mails: Vec::new(),
            datagrams: Vec::new(),
            changes: 0,
            uname: Uname {
                sysname: "Linux".into(),
                nodename: "fake".into(),
                release: "6.1.0".into(),
                version: "#1 SMP".into(),
                machine: "x86_64".into(),
            },
            hypervisor: None,
            interfaces: Vec::new(),
            resolver: HashMap::new(),
            names: HashMap::new(),
            signals: Vec::new(),
            web: Vec::new(),
            asked: Vec::new(),
            cancelled: false,
        })));
        for folder in ["/root", "/tmp", "/usr/bin", "/var/tmp"] {
            fake.dir(folder);
        }
        fake.mode("/tmp", 0o1777).mode("/var/tmp", 0o1777).mode("/root", 0o700);
        fake.file("/etc/passwd", "root:x:0:0:root:/root:/bin/bash\n");
        fake.file("/etc/group", "root:x:0:\n");
        fake
    }

    fn host(&self) -> &dyn Host {
        self
    }

    /// Puts a file there (mode 0644, root's), with the folders above it.
    pub fn file(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> &Self {
        let path = path.as_ref();
        if let Some(parent) = path.parent() {
            self.dir(parent);
        }
        self.host().write(path, content.as_ref(), &Write::default()).expect("a place for the file");
        self
    }

    /// Puts a program there, for `which` to find; what it does is up to [`Fake::on`].
    pub fn program(&self, path: impl AsRef<Path>) -> &Self {
        self.file(&path, "").mode(&path, 0o755)
    }

    /// Makes a folder and those above it.
    pub fn dir(&self, path: impl AsRef<Path>) -> &Self {
        self.host().create_dirs(path.as_ref(), None).expect("a place for the folder");
        self
    }

    pub fn link(&self, path: impl AsRef<Path>, target: impl AsRef<Path>) -> &Self {
        if let Some(parent) = path.as_ref().parent() {
            self.dir(parent);
        }
        self.symlink(target.as_ref(), path.as_ref()).expect("a place for the link");
        self
    }

    pub fn mode(&self, path: impl AsRef<Path>, mode: u32) -> &Self {
        self.set_mode(path.as_ref(), mode).expect("it is there");
        self
    }

    pub fn owner(&self, path: impl AsRef<Path>, uid: u32, gid: u32) -> &Self {
        self.set_owner(path.as_ref(), Some(uid), Some(gid), false).expect("it is there");
        self
    }

    pub fn xattr(&self, path: impl AsRef<Path>, name: &str, value: impl AsRef<[u8]>) -> &Self {
        self.set_xattr(path.as_ref(), name, value.as_ref()).expect("it is there");
        self
    }

    /// Adds a user (home `/home/name`, not created; shell `/bin/sh`).
    pub fn user(&self, name: &str, uid: u32, gid: u32) -> &Self {
        let line = format!("{name}:x:{uid}:{gid}::/home/{name}:/bin/sh\n");
        self.host().append(Path::new("/etc/passwd"), line.as_bytes()).expect("/etc/passwd");
        self
    }

    pub fn group(&self, name: &str, gid: u32, members: &[&str]) -> &Self {
        let line = format!("{name}:x:{gid}:{}\n", members.join(","));
        self.host().append(Path::new("/etc/group"), line.as_bytes()).expect("/etc/group");
        self
    }

    pub fn var(&self, name: &str, value: &str) -> &Self {
        self.0.lock().env.insert(name.into(), value.into());
        self
    }

    /// Runs as somebody else; permissions are not checked all the same.
    pub fn as_user(&self, uid: u32, gid: u32) -> &Self {
        let mut machine = self.0.lock();
        (machine.uid, machine.gid) = (uid, gid);
        drop(machine);
        self
    }

    pub fn set_uname(&self, uname: Uname) -> &Self {
        self.0.lock().uname = uname;
        self
    }

    pub fn set_hypervisor(&self, signature: &str) -> &Self {
        self.0.lock().hypervisor = Some(signature.into());
        self
    }

    pub fn set_interfaces(&self, interfaces: Vec<Interface>) -> &Self {
        self.0.lock().interfaces = interfaces;
        self
    }

    /// Lets the resolver know a name; an address is known by its names, too.
    pub fn resolves(&self, name: &str, canonical: &str, addresses: &[IpAddr]) -> &Self {
        let mut machine = self.0.lock();
        for address in addresses {
            machine.names.entry(*address).or_default().push(canonical.into());
        }
        let resolved =
            Resolved { canonical: Some(canonical.into()), addresses: addresses.to_vec() };
        machine.resolver.insert(name.into(), resolved);
        drop(machine);
        self
    }

    /// Scripts every command that begins with these words. Of several scripts that fit, the one
    /// given last runs.
    pub fn on<T: AsRef<OsStr>>(
        &self,
        words: &[T],
        script: impl Fn(&Command, &Fake) -> Output + Send + Sync + 'static,
    ) -> &Self {
        let words: Vec<OsString> = words.iter().map(|word| word.as_ref().to_owned()).collect();
        self.on_if(move |command| command.argv.starts_with(&words), script)
    }

    /// Scripts the commands a test picks itself.
    pub fn on_if(
        &self,
        fits: impl Fn(&Command) -> bool + Send + Sync + 'static,
        script: impl Fn(&Command, &Fake) -> Output + Send + Sync + 'static,
    ) -> &Self {
        self.0.lock().scripts.push((Arc::new(fits), Arc::new(script)));
        self
    }

    /// Lets a server answer every address that begins so; the last one said wins.
    pub fn serves(&self, url: &str, answer: HttpResponse) -> &Self {
        self.0.lock().web.push((url.to_owned(), answer));
        self
    }

    /// Returns what servers were asked so far.
    pub fn asked(&self) -> Vec<HttpRequest> {
        self.0.lock().asked.clone()
    }

    /// Moves the clock.
    pub fn advance(&self, time: Duration) {
        self.0.lock().clock += time;
    }

    pub fn cancel(&self) {
        self.0.lock().cancelled = true;
    }

    /// Returns a file's text.
    pub fn text(&self, path: impl AsRef<Path>) -> String {
        self.host().read_text(path.as_ref()).expect("the file is there")
    }

    pub fn has(&self, path: impl AsRef<Path>) -> bool {
        self.host().stat(path.as_ref(), false).is_ok()
    }

    /// Returns every command run so far.
    pub fn commands(&self) -> Vec<Command> {
        self.0.lock().commands.clone()
    }

    /// Returns the datagrams sent so far: machine, port, content.
    pub fn datagrams(&self) -> Vec<(String, u16, Vec<u8>)> {
        self.0.lock().datagrams.clone()
    }

    /// Returns the mails sent so far.
    pub fn mails(&self) -> Vec<Mail> {
        self.0.lock().mails.clone()
    }

    /// Returns the command lines run so far.
    pub fn command_lines(&self) -> Vec<String> {
        self.0.lock().commands.iter().map(Command::shown).collect()
    }

    /// Returns the signals sent so far: process and signal.
    pub fn signals(&self) -> Vec<(u32, i32)> {
        self.0.lock().signals.clone()
    }

    /// Returns how many calls have changed the machine, its setting up among them. A file written
    /// again with the same content counts, though no snapshot shows it.
    pub fn changes(&self) -> usize {
        self.0.lock().changes
    }

    /// Returns the machine as it is, for comparing.
    pub fn snapshot(&self) -> Snapshot {
        let machine = self.0.lock();
        Snapshot::of(&machine.tree, &machine.env)
    }

    fn look<T>(
        &self,
        action: &'static str,
        path: &Path,
        work: impl FnOnce(&Tree) -> io::Result<T>,
    ) -> Result<T> {
        work(&self.0.lock().tree).map_err(|error| Error::io(action, path, error))
    }

    fn change<T>(
        &self,
        action: &'static str,
        path: &Path,
        work: impl FnOnce(&mut Tree) -> io::Result<T>,
    ) -> Result<T> {
        let mut machine = self.0.lock();
        if machine.cancelled {
            return Err(Error::Cancelled);
        }
        machine.tree.now = machine.clock.as_secs_f64();
        machine.tree.maker = (machine.uid, machine.gid);
        let done = work(&mut machine.tree).map_err(|error| Error::io(action, path, error))?;
        machine.changes += 1;
        Ok(done)
    }

    /// Returns the lines of an account file, cut at the colons.
    fn accounts(&self, path: &str) -> Result<Vec<Vec<String>>> {
        let text = self.host().read_text_if_there(Path::new(path))?.unwrap_or_default();
        let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
        Ok(lines.map(|line| line.split(':').map(str::to_owned).collect()).collect())
    }
}

fn errno(code: i32) -> io::Error {
    io::Error::from_raw_os_error(code)
}

impl Host for Fake {
    fn open(&self, path: &Path) -> Result<Box<dyn Read + Send>> {
        let content = self.look("read", path, |tree| tree.content(path))?;
        Ok(Box::new(Cursor::new(content)))
    }

    fn stat(&self, path: &Path, follow: bool) -> Result<Stat> {
        self.look("look at", path, |tree| tree.stat(path, follow))
    }

    fn read_link(&self, path: &Path) -> Result<PathBuf> {
        self.look("read the link", path, |tree| match &tree.node(path, false)?.body {
            Body::Link(target) => Ok(target.clone()),
            _ => Err(errno(libc::EINVAL)),
        })
    }

    fn read_dir(&self, path: &Path) -> Result<Vec<OsString>> {
        self.look("list", path, |tree| match &tree.node(path, true)?.body {
            Body::Dir(entries) => Ok(entries.keys().cloned().collect()),
            _ => Err(errno(libc::ENOTDIR)),
        })
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf> {
        self.look("resolve", path, |tree| tree.real_path(path))
    }

    fn users(&self) -> Result<Vec<User>> {
        let lines = self.accounts("/etc/passwd")?;
        let user = |line: Vec<String>| {
            let [name, passwd, uid, gid, gecos, home, shell] = line.try_into().ok()?;
            let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
            Some(User { name, uid, gid, gecos, home, shell, passwd })
        };
        Ok(lines.into_iter().filter_map(user).collect())
    }

    fn groups(&self) -> Result<Vec<Group>> {
        let lines = self.accounts("/etc/group")?;
        let group = |line: Vec<String>| {
            let [name, passwd, gid, members] = line.try_into().ok()?;
            let members: String = members;
            let members = members.split(',').filter(|name| !name.is_empty());
            let members = members.map(str::to_owned).collect();
            Some(Group { name, gid: gid.parse().ok()?, members, passwd })
        };
        Ok(lines.into_iter().filter_map(group).collect())
    }

    fn user_named(&self, name: &str) -> Result<Option<User>> {
        Ok(self.users()?.into_iter().find(|user| user.name == name))
    }

    fn user_with_id(&self, uid: u32) -> Result<Option<User>> {
        Ok(self.users()?.into_iter().find(|user| user.uid == uid))
    }

    fn group_named(&self, name: &str) -> Result<Option<Group>> {
        Ok(self.groups()?.into_iter().find(|group| group.name == name))
    }

    fn group_with_id(&self, gid: u32) -> Result<Option<Group>> {
        Ok(self.groups()?.into_iter().find(|group| group.gid == gid))
    }

    fn env(&self, name: &OsStr) -> Option<OsString> {
        self.0.lock().env.get(name).cloned()
    }

    fn env_all(&self) -> Vec<(OsString, OsString)> {
        self.0.lock().env.clone().into_iter().collect()
    }

    fn now(&self) -> SystemTime {
        UNIX_EPOCH + self.0.lock().clock
    }

    fn uid(&self) -> u32 {
        self.0.lock().uid
    }

    fn gid(&self) -> u32 {
        self.0.lock().gid
    }

    fn uname(&self) -> Uname {
        self.0.lock().uname.clone()
    }

    fn hypervisor(&self) -> Option<String> {
        self.0.lock().hypervisor.clone()
    }

    fn interfaces(&self) -> Result<Vec<Interface>> {
        Ok(self.0.lock().interfaces.clone())
    }

    fn resolve(&self, name: &str) -> Result<Resolved> {
        Ok(self.0.lock().resolver.get(name).cloned().unwrap_or_default())
    }

    fn names_of(&self, address: IpAddr) -> Result<Vec<String>> {
        Ok(self.0.lock().names.get(&address).cloned().unwrap_or_default())
    }

    fn space(&self, path: &Path) -> Result<Space> {
        self.look("measure", path, |tree| tree.node(path, true).map(drop))?;
        let (total, free) = (100 << 30, 40 << 30);
        Ok(Space {
            total,
            free,
            available: free,
            block_size: 4096,
            inodes: 1 << 20,
            inodes_free: 1 << 19,
        })
    }

    fn get_xattr(&self, path: &Path, name: &str) -> Result<Option<Vec<u8>>> {
        self.look("read an attribute of", path, |tree| {
            Ok(tree.node(path, false)?.xattrs.get(name).cloned())
        })
    }

    fn list_xattr(&self, path: &Path) -> Result<Vec<String>> {
        self.look("list the attributes of", path, |tree| {
            Ok(tree.node(path, false)?.xattrs.keys().cloned().collect())
        })
    }

    fn sleep(&self, time: Duration) -> Result<()> {
        self.advance(time);
        Ok(())
    }

    fn cancelled(&self) -> bool {
        self.0.lock().cancelled
    }

    /// A host that serves the web listens on the port of its address; nobody else does.
    fn connect(&self, host: &str, port: u16, udp: bool, _: Duration) -> Result<()> {
        let address = format!("http://{host}:{port}/");
        let listens = udp || self.0.lock().web.iter().any(|(url, _)| url.starts_with(&address));
        if listens { Ok(()) } else { Err(Error::Other("[Errno 111] Connection refused".into())) }
    }

    fn send_datagram(&self, host: &str, port: u16, body: &[u8]) -> Result<()> {
        self.0.lock().datagrams.push((host.to_owned(), port, body.to_vec()));
        Ok(())
    }

    fn http(&self, request: &HttpRequest) -> Result<HttpResponse> {
        let mut machine = self.0.lock();
        machine.asked.push(request.clone());
        let mut web = machine.web.iter().rev();
        let answer = web.find(|(url, _)| request.url.starts_with(url.as_str()));
        let refused = || Error::Other("[Errno 111] Connection refused".into());
        answer.map(|(_, answer)| answer.clone()).ok_or_else(refused)
    }

    fn mail(&self, mail: &Mail) -> Result<()> {
        self.0.lock().mails.push(mail.clone());
        Ok(())
    }

    fn run(&self, command: &Command) -> Result<Output> {
        let script = {
            let mut machine = self.0.lock();
            if machine.cancelled {
                return Err(Error::Cancelled);
            }
            machine.commands.push(command.clone());
            // Scripts run, and predicates are asked, without the lock: they may use the machine.
            machine.scripts.clone()
        };
        let script = script.into_iter().rev().find(|(fits, _)| fits(command));
        let output = script.map_or_else(
            || fails(127, format!("{}: command not found\n", command.shown())),
            |(_, script)| script(command, self),
        );
        let pid = 1000 + self.0.lock().commands.len() as u32;
        let quiet = Output { pid, ..Output::default() };
        Ok(if command.background { quiet } else { Output { pid, ..output } })
    }

    fn write_from(&self, path: &Path, content: &mut dyn Read, how: &Write) -> Result<()> {
        let mut bytes = Vec::new();
        content.read_to_end(&mut bytes).map_err(|error| Error::io("write", path, error))?;
        self.change("write", path, |tree| tree.replace(path, bytes, how))
    }

    fn append(&self, path: &Path, content: &[u8]) -> Result<()> {
        self.change("append to", path, |tree| tree.append(path, content))
    }

    fn create_dir(&self, path: &Path, mode: Option<u32>) -> Result<()> {
        self.change("create", path, |tree| {
            tree.create(path, Body::Dir(BTreeMap::new()), mode.unwrap_or(0o755))
        })
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        self.change("remove", path, |tree| match tree.node(path, false)?.body {
            Body::Dir(_) => Err(errno(libc::EISDIR)),
            _ => tree.unlink(path),
        })
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.change("remove", path, |tree| match &tree.node(path, false)?.body {
            Body::Dir(entries) if entries.is_empty() => tree.unlink(path),
            Body::Dir(_) => Err(errno(libc::ENOTEMPTY)),
            _ => Err(errno(libc::ENOTDIR)),
        })
    }

    fn remove_all(&self, path: &Path) -> Result<()> {
        self.change("remove", path, |tree| tree.unlink(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.change("rename", from, |tree| tree.rename(from, to))
    }

    fn symlink(&self, target: &Path, link: &Path) -> Result<()> {
        self.change("link", link, |tree| tree.create(link, Body::Link(target.into()), 0o777))
    }

    fn hard_link(&self, target: &Path, link: &Path) -> Result<()> {
        self.change("link", link, |tree| tree.hard_link(target, link))
    }

    fn set_mode(&self, path: &Path, mode: u32) -> Result<()> {
        self.change("change the mode of", path, |tree| {
            tree.touch(path, true)?.mode = mode & 0o7777;
            Ok(())
        })
    }

    fn set_owner(
        &self,
        path: &Path,
        uid: Option<u32>,
        gid: Option<u32>,
        follow: bool,
    ) -> Result<()> {
        self.change("change the owner of", path, |tree| {
            let node = tree.touch(path, follow)?;
            node.uid = uid.unwrap_or(node.uid);
            node.gid = gid.unwrap_or(node.gid);
            if matches!(node.body, Body::File(_)) {
                // As the kernel does, so that nobody forgets to set the mode last.
                node.mode &= !0o6000;
            }
            Ok(())
        })
    }

    fn set_times(&self, path: &Path, atime: Option<f64>, mtime: Option<f64>) -> Result<()> {
        self.change("change the times of", path, |tree| {
            let node = tree.touch(path, true)?;
            node.atime = atime.unwrap_or(node.atime);
            node.mtime = mtime.unwrap_or(node.mtime);
            Ok(())
        })
    }

    fn make_node(&self, path: &Path, kind: Kind, major: u32, minor: u32, mode: u32) -> Result<()> {
        let body = match kind {
            Kind::File => Body::File(Vec::new()),
            Kind::Dir | Kind::Link => {
                return Err(Error::Other(format!("a {} is no node", kind.word())));
            }
            _ => Body::Node(kind, libc::makedev(major, minor)),
        };
        self.change("create", path, |tree| tree.create(path, body, mode))
    }

    fn set_xattr(&self, path: &Path, name: &str, value: &[u8]) -> Result<()> {
        self.change("set an attribute of", path, |tree| {
            tree.touch(path, false)?.xattrs.insert(name.into(), value.into());
            Ok(())
        })
    }

    fn remove_xattr(&self, path: &Path, name: &str) -> Result<()> {
        self.change("remove an attribute of", path, |tree| {
            let removed = tree.touch(path, false)?.xattrs.remove(name);
            removed.map(drop).ok_or_else(|| errno(libc::ENODATA))
        })
    }

    fn set_env(&self, name: &OsStr, value: Option<&OsStr>) -> Result<()> {
        let mut machine = self.0.lock();
        match value {
            Some(value) => machine.env.insert(name.into(), value.into()),
            None => machine.env.remove(name),
        };
        machine.changes += 1;
        Ok(())
    }

    fn kill(&self, pid: u32, signal: i32) -> Result<()> {
        self.0.lock().signals.push((pid, signal));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
