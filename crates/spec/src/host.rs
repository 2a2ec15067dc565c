//! The machine as content sees it: files, processes, users, clock.
//!
//! [`Host`] is the only door. `host::Os` is the real one, `host::Fake` lives in memory,
//! `host::Failing` fails the nth call; [`ReadOnly`] here refuses every change, and is what a state
//! gets to observe with. A command that only looks says so ([`Command::query`]), so that
//! observing may run it.

use std::{
    ffi::{OsStr, OsString},
    io::{self, Read},
    net::{IpAddr, Ipv4Addr},
    os::fd::BorrowedFd,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The machine refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// «cannot read /etc/x: No such file or directory»
    #[error("cannot {action} {}: {}", path.display(), io_text(source))]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error("{}", spawn_text(program, reason))]
    Spawn { program: String, reason: String },
    /// A change was asked of a host that may only look.
    #[error("refused to {action} {what} while only looking")]
    ReadOnly { action: &'static str, what: String },
    /// The job was told to end; nothing more will be changed.
    #[error("the job was cancelled")]
    Cancelled,
    #[error("{0}")]
    Other(String),
}

/// The system's numbers on Linux, for errors that have no stable [`io::ErrorKind`].
const ENAMETOOLONG: i32 = 36;
const ELOOP: i32 = 40;

/// Who a program is to run as and where is told in Salt's words, whatever the program.
fn spawn_text(program: &str, reason: &str) -> String {
    match reason.ends_with(" is not available") || reason.starts_with("Specified cwd ") {
        true => reason.to_owned(),
        false => format!("cannot run {program}: {reason}"),
    }
}

/// The system's words without Rust's `(os error 2)`.
fn io_text(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

impl Error {
    pub fn io(action: &'static str, path: impl AsRef<Path>, source: io::Error) -> Self {
        Self::Io { action, path: path.as_ref().to_owned(), source }
    }

    /// Says what the system refused in Python's words, where they are part of Salt's answers:
    /// `[Errno 2] No such file or directory: '/etc/x'`.
    pub fn python_words(&self) -> Option<String> {
        let Self::Io { path, source, .. } = self else { return None };
        let path = halite_value::str_repr(&path.to_string_lossy());
        Some(format!("[Errno {}] {}: {path}", source.raw_os_error()?, io_text(source)))
    }

    pub fn kind(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Io { source, .. } => Some(source.kind()),
            _ => None,
        }
    }

    /// The file (or a folder on the way to it) is not there. Links that lead in a circle and names
    /// that no file can have name nothing either.
    pub fn is_missing(&self) -> bool {
        let Self::Io { source, .. } = self else { return false };
        let nothing = matches!(source.raw_os_error(), Some(ELOOP | ENAMETOOLONG));
        nothing || matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
    }
}

/// What a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    File,
    Dir,
    Link,
    Block,
    Char,
    Fifo,
    Socket,
}

impl Kind {
    /// As Salt writes it: `file`, `dir`, `link`, `block`, `char`, `pipe`, `socket`.
    pub fn word(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Dir => "dir",
            Self::Link => "link",
            Self::Block => "block",
            Self::Char => "char",
            Self::Fifo => "pipe",
            Self::Socket => "socket",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Stat {
    pub kind: Kind,
    /// The permission bits: `0o755`.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub size: u64,
    pub inode: u64,
    pub links: u64,
    pub device: u64,
    /// What a device file stands for.
    pub rdev: u64,
    /// Seconds since 1970, with a fraction.
    pub atime: f64,
    pub mtime: f64,
    pub ctime: f64,
}

impl Stat {
    /// The mode as Salt writes it: `0755`.
    pub fn mode_text(&self) -> String {
        format!("{:04o}", self.mode)
    }
}

/// How a file is to be written. What is `None` is kept from the file replaced, or left to the
/// umask and the running user.
#[derive(Clone, Debug, Default)]
pub struct Write {
    pub mode: Option<u32>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
    /// The comment field, with its commas.
    pub gecos: String,
    pub home: String,
    pub shell: String,
    pub passwd: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub name: String,
    pub gid: u32,
    pub members: Vec<String>,
    pub passwd: String,
}

/// What to run.
#[derive(Clone, Debug)]
pub struct Command {
    pub argv: Vec<OsString>,
    pub cwd: Option<PathBuf>,
    /// Set (or, with `None`, removed) over the inherited environment.
    pub env: Vec<(OsString, Option<OsString>)>,
    pub clear_env: bool,
    pub stdin: Option<Vec<u8>>,
    pub timeout: Option<Duration>,
    pub user: Option<String>,
    pub group: Option<String>,
    pub umask: Option<u32>,
    /// Output beyond this many bytes is dropped and [`Output::truncated`] set.
    pub output_limit: usize,
    /// stderr goes into stdout, in the order written.
    pub merge_stderr: bool,
    /// Do not wait for the end; the output is empty.
    pub background: bool,
    /// It changes nothing, so it may run while a state only looks.
    pub query: bool,
}

impl Command {
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            argv: vec![program.into()],
            cwd: None,
            env: Vec::new(),
            clear_env: false,
            stdin: None,
            timeout: None,
            user: None,
            group: None,
            umask: None,
            output_limit: 64 << 20,
            merge_stderr: false,
            background: false,
            query: false,
        }
    }

    /// Runs these words, the first of them the program, in the C locale: what other modules do
    /// with programs whose output they read.
    pub fn line<T: Into<OsString>>(words: impl IntoIterator<Item = T>) -> Self {
        let mut command = Self::new("");
        command.argv = words.into_iter().map(Into::into).collect();
        command.env("LC_ALL", "C").env("LANGUAGE", "C")
    }

    /// Runs a text in a shell.
    pub fn shell(shell: impl Into<OsString>, text: impl Into<OsString>) -> Self {
        Self::new(shell).arg("-c").arg(text)
    }

    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.argv.push(arg.into());
        self
    }

    #[must_use]
    pub fn args<T: Into<OsString>>(mut self, args: impl IntoIterator<Item = T>) -> Self {
        self.argv.extend(args.into_iter().map(Into::into));
        self
    }

    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), Some(value.into())));
        self
    }

    /// Declares that the command changes nothing.
    #[must_use]
    pub fn query(mut self) -> Self {
        self.query = true;
        self
    }

    #[must_use]
    pub fn timeout(mut self, time: Duration) -> Self {
        self.timeout = Some(time);
        self
    }

    /// The command line for messages.
    pub fn shown(&self) -> String {
        let words = self.argv.iter().map(|word| word.to_string_lossy());
        words.collect::<Vec<_>>().join(" ")
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    pub pid: u32,
    /// The exit code; minus the signal's number if one ended it.
    pub code: i32,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub timed_out: bool,
    pub truncated: bool,
}

impl Output {
    pub fn ok(&self) -> bool {
        self.code == 0
    }

    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

/// What the kernel says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uname {
    /// `Linux`
    pub sysname: String,
    pub nodename: String,
    pub release: String,
    pub version: String,
    /// `x86_64`
    pub machine: String,
}

/// A network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    pub name: String,
    pub up: bool,
    /// `52:54:00:12:34:56`
    pub hwaddr: Option<String>,
    pub addresses: Vec<Address>,
    /// As the kernel counts them, with those that say whether anybody is at the other end.
    pub flags: u32,
    /// How many ask for all that passes by.
    pub promiscuity: u32,
    /// What sorts that which is to be sent: `noqueue`, `fq_codel`.
    pub qdisc: Option<String>,
    /// `veth`, `bridge`; hardware has none.
    pub kind: Option<String>,
    pub tx_queues: u32,
    pub rx_queues: u32,
}

/// An address of an [`Interface`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub ip: IpAddr,
    pub prefix: u8,
    pub broadcast: Option<Ipv4Addr>,
    /// The other end of a point-to-point link.
    pub peer: Option<IpAddr>,
    /// The address's own name: `eth0:1`.
    pub label: Option<String>,
    /// An address of a subnet the interface has another one of.
    pub secondary: bool,
}

/// What the resolver knows of a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolved {
    /// The full name.
    pub canonical: Option<String>,
    /// In the resolver's order, without repeats.
    pub addresses: Vec<IpAddr>,
}

/// The space of a file system; sizes in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    pub total: u64,
    /// Free for root.
    pub free: u64,
    /// Free for others.
    pub available: u64,
    pub block_size: u64,
    pub inodes: u64,
    pub inodes_free: u64,
}

/// A change to a watched file, as the kernel tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEvent {
    /// The watch it belongs to; -1 when events were lost.
    pub watch: i32,
    /// Bits of inotify: `IN_CREATE` and its like.
    pub mask: u32,
    /// The entry of a watched folder.
    pub name: Option<OsString>,
}

/// Tells of changes to files.
pub trait FileWatch: Send {
    /// Watches a path for these bits; returns the number its events carry.
    fn add(&mut self, path: &Path, mask: u32) -> Result<i32>;

    fn remove(&mut self, watch: i32) -> Result<()>;

    /// Returns what happened since. Never waits.
    fn events(&mut self) -> Result<Vec<FileEvent>>;

    /// Returns what becomes readable when something happened.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;
}

/// A mail, and who is to bring it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    pub server: String,
    pub port: u16,
    /// Speak TLS from the first byte on.
    pub tls: bool,
    /// Name and password, where the server wants them.
    pub login: Option<(String, String)>,
    pub sender: String,
    pub recipients: Vec<String>,
    /// Headers and body; lines end as they like.
    pub message: String,
}

/// Says why a server could not be asked, in the words people know from Python and search for;
/// what the network's own layers say about certificates and names is theirs alone.
pub fn network_words(text: &str) -> String {
    if let Some(name) = text.strip_prefix("failed to lookup address information: ") {
        return match name {
            "Name or service not known" => format!("[Errno -2] {name}"),
            "Temporary failure in name resolution" => format!("[Errno -3] {name}"),
            "No address associated with hostname" => format!("[Errno -5] {name}"),
            _ => name.to_owned(),
        };
    }
    let Some(reason) = text.strip_prefix("invalid peer certificate: ") else {
        return text.to_owned();
    };
    let starts = |word: &str| reason.starts_with(word);
    let reason = if reason.contains("CaUsedAsEndEntity") {
        "self-signed certificate"
    } else if starts("UnknownIssuer") {
        "unable to get local issuer certificate"
    } else if starts("certificate expired") || starts("Expired") {
        "certificate has expired"
    } else if starts("certificate not valid yet") || starts("NotValidYet") {
        "certificate is not yet valid"
    } else if starts("certificate not valid for name") || starts("NotValidForName") {
        "Hostname mismatch"
    } else {
        reason
    };
    format!("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: {reason}")
}

/// A question to an HTTP server.
#[derive(Clone, Debug)]
pub struct HttpRequest {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<Vec<u8>>,
    /// User and password.
    pub basic_auth: Option<(String, String)>,
    pub verify: bool,
    /// Takes the place of the system's certificates.
    pub ca_bundle: Option<PathBuf>,
    /// PEM files that say who we are: certificate and key, in one or more files.
    pub client_cert: Vec<PathBuf>,
    /// `http://user:password@host:port`
    pub proxy: Option<String>,
    pub connect_timeout: Duration,
    pub timeout: Duration,
    pub follow_redirects: bool,
    /// A longer body is an error.
    pub max_body: u64,
}

impl HttpRequest {
    pub fn new(method: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            method: method.into(),
            url: url.into(),
            headers: Vec::new(),
            body: None,
            basic_auth: None,
            verify: true,
            ca_bundle: None,
            client_cert: Vec::new(),
            proxy: None,
            connect_timeout: Duration::from_secs(20),
            timeout: Duration::from_secs(3600),
            follow_redirects: true,
            max_body: 100 << 30,
        }
    }

    /// It asks only, as far as the protocol can say.
    pub fn is_query(&self) -> bool {
        matches!(self.method.as_str(), "GET" | "HEAD" | "OPTIONS")
    }
}

/// What an HTTP server said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpResponse {
    pub status: u16,
    pub reason: String,
    /// In the server's order.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl HttpResponse {
    /// Returns a header, whatever the case of its name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut own = self.headers.iter().filter(|(own, _)| own.eq_ignore_ascii_case(name));
        own.next().map(|(_, value)| value.as_str())
    }
}

/// A machine.
pub trait Host: Send + Sync {
    // Looking.

    fn open(&self, path: &Path) -> Result<Box<dyn Read + Send>>;

    /// As [`Host::open`], from a position on; beyond the end there is nothing to read.
    fn open_at(&self, path: &Path, offset: u64) -> Result<Box<dyn Read + Send>> {
        let mut file = self.open(path)?;
        io::copy(&mut file.by_ref().take(offset), &mut io::sink())
            .map_err(|error| Error::io("read", path, error))?;
        Ok(file)
    }

    /// Follows links if asked.
    fn stat(&self, path: &Path, follow: bool) -> Result<Stat>;

    fn read_link(&self, path: &Path) -> Result<PathBuf>;

    /// Returns the names in a folder, sorted.
    fn read_dir(&self, path: &Path) -> Result<Vec<OsString>>;

    /// Returns the path with every link resolved.
    fn real_path(&self, path: &Path) -> Result<PathBuf>;

    fn users(&self) -> Result<Vec<User>>;

    fn groups(&self) -> Result<Vec<Group>>;

    fn user_named(&self, name: &str) -> Result<Option<User>>;

    fn user_with_id(&self, uid: u32) -> Result<Option<User>>;

    fn group_named(&self, name: &str) -> Result<Option<Group>>;

    fn group_with_id(&self, gid: u32) -> Result<Option<Group>>;

    fn env(&self, name: &OsStr) -> Option<OsString>;

    fn env_all(&self) -> Vec<(OsString, OsString)>;

    fn now(&self) -> SystemTime;

    /// Returns the user id we run as.
    fn uid(&self) -> u32;

    fn get_xattr(&self, path: &Path, name: &str) -> Result<Option<Vec<u8>>>;

    fn list_xattr(&self, path: &Path) -> Result<Vec<String>>;

    /// Waits, or returns early when the job is cancelled.
    fn sleep(&self, time: Duration) -> Result<()>;

    /// The job shall end.
    fn cancelled(&self) -> bool {
        false
    }

    /// Returns the group id we run as.
    fn gid(&self) -> u32 {
        0
    }

    fn uname(&self) -> Uname {
        Uname::default()
    }

    /// Returns how the hypervisor under us signs itself to the processor: `KVMKVMKVM`.
    fn hypervisor(&self) -> Option<String> {
        None
    }

    fn interfaces(&self) -> Result<Vec<Interface>> {
        Ok(Vec::new())
    }

    /// Asks the resolver for a name; an empty answer when it knows none.
    fn resolve(&self, _name: &str) -> Result<Resolved> {
        Ok(Resolved::default())
    }

    /// Asks the resolver for the names of an address, the main one first.
    fn names_of(&self, _address: IpAddr) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// Returns the space of the file system a path is on.
    fn space(&self, path: &Path) -> Result<Space> {
        Err(Error::io("measure", path, io::ErrorKind::Unsupported.into()))
    }

    /// Sends a question to a program that listens on a Unix socket, and returns all it answers.
    /// `query` tells that nothing is changed by it.
    fn ask_socket(&self, path: &Path, question: &[u8], query: bool) -> Result<Vec<u8>> {
        let _ = (question, query);
        Err(Error::io("ask", path, io::ErrorKind::Unsupported.into()))
    }

    /// Begins to watch files for changes.
    fn watch_files(&self) -> Result<Box<dyn FileWatch>> {
        Err(Error::Other("files cannot be watched here".into()))
    }

    /// Opens a connection and closes it again; an error in the system's words when nobody answers.
    /// Datagrams are sent into the dark: they fail only when the address cannot be.
    fn connect(&self, host: &str, port: u16, _udp: bool, _timeout: Duration) -> Result<()> {
        Err(Error::Other(format!("cannot connect to {host}:{port} here")))
    }

    /// Sends one datagram, to all of a network if that is the address.
    fn send_datagram(&self, host: &str, port: u16, _body: &[u8]) -> Result<()> {
        Err(Error::Other(format!("cannot send to {host}:{port} here")))
    }

    /// Returns this machine for work under another umask: what is made without a mode of its own,
    /// and by commands without a umask of their own, is made with this one. `None` where nothing
    /// is made with a umask.
    fn with_umask(&self, mask: u32) -> Option<Arc<dyn Host>> {
        let _ = mask;
        None
    }

    // Both: it depends on the command.

    fn run(&self, command: &Command) -> Result<Output>;

    /// Asks an HTTP server. What it says is an answer whatever the status; an error means that it
    /// said nothing.
    fn http(&self, request: &HttpRequest) -> Result<HttpResponse> {
        Err(Error::Other(format!("cannot ask {} here", request.url)))
    }

    /// Hands a mail to a server; an error when it does not take it.
    fn mail(&self, mail: &Mail) -> Result<()> {
        Err(Error::Other(format!("cannot send mail by {} here", mail.server)))
    }

    // Changing.

    /// Replaces a file as one step: at every moment the path holds the old file or the new one,
    /// whole, with its owner and mode.
    fn write_from(&self, path: &Path, content: &mut dyn Read, how: &Write) -> Result<()>;

    fn append(&self, path: &Path, content: &[u8]) -> Result<()>;

    /// The parent must exist.
    fn create_dir(&self, path: &Path, mode: Option<u32>) -> Result<()>;

    fn remove_file(&self, path: &Path) -> Result<()>;

    /// The folder must be empty.
    fn remove_dir(&self, path: &Path) -> Result<()>;

    /// Removes a file, a link, or a folder with everything in it.
    fn remove_all(&self, path: &Path) -> Result<()>;

    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    fn symlink(&self, target: &Path, link: &Path) -> Result<()>;

    fn hard_link(&self, target: &Path, link: &Path) -> Result<()>;

    fn set_mode(&self, path: &Path, mode: u32) -> Result<()>;

    fn set_owner(
        &self,
        path: &Path,
        uid: Option<u32>,
        gid: Option<u32>,
        follow: bool,
    ) -> Result<()>;

    /// Seconds since 1970.
    fn set_times(&self, path: &Path, atime: Option<f64>, mtime: Option<f64>) -> Result<()>;

    fn make_node(&self, path: &Path, kind: Kind, major: u32, minor: u32, mode: u32) -> Result<()>;

    fn set_xattr(&self, path: &Path, name: &str, value: &[u8]) -> Result<()>;

    fn remove_xattr(&self, path: &Path, name: &str) -> Result<()>;

    /// For this process and those it starts.
    fn set_env(&self, name: &OsStr, value: Option<&OsStr>) -> Result<()>;

    /// Sends a signal to a process; signal 0 only asks whether it is there.
    fn kill(&self, pid: u32, _signal: i32) -> Result<()> {
        Err(Error::Other(format!("cannot send a signal to process {pid} here")))
    }
}

/// Conveniences over the primitives; the same for every host.
impl dyn Host + '_ {
    pub fn read(&self, path: &Path) -> Result<Vec<u8>> {
        let mut content = Vec::new();
        self.open(path)?
            .read_to_end(&mut content)
            .map_err(|error| Error::io("read", path, error))?;
        Ok(content)
    }

    /// As [`Self::read`]; `None` when there is no such file.
    pub fn read_if_there(&self, path: &Path) -> Result<Option<Vec<u8>>> {
        match self.read(path) {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Bytes that are not UTF-8 are replaced.
    pub fn read_text(&self, path: &Path) -> Result<String> {
        let content = self.read(path)?;
        Ok(String::from_utf8(content)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// As [`Self::read_text`]; `None` when there is no such file.
    pub fn read_text_if_there(&self, path: &Path) -> Result<Option<String>> {
        match self.read_text(path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// As [`Host::stat`]; `None` when nothing is there.
    pub fn stat_if_there(&self, path: &Path, follow: bool) -> Result<Option<Stat>> {
        match self.stat(path, follow) {
            Ok(stat) => Ok(Some(stat)),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error),
        }
    }

    // These answer with an error, not with `false`, when the look itself failed: a state that took
    // a broken disk for an absent file would write over what it could not see.

    /// Follows links; a dangling one does not exist.
    pub fn exists(&self, path: &Path) -> Result<bool> {
        Ok(self.stat_if_there(path, true)?.is_some())
    }

    /// Does not follow links: a dangling one is there.
    pub fn is_there(&self, path: &Path) -> Result<bool> {
        Ok(self.stat_if_there(path, false)?.is_some())
    }

    pub fn is_file(&self, path: &Path) -> Result<bool> {
        self.is_kind(path, true, Kind::File)
    }

    pub fn is_dir(&self, path: &Path) -> Result<bool> {
        self.is_kind(path, true, Kind::Dir)
    }

    pub fn is_link(&self, path: &Path) -> Result<bool> {
        self.is_kind(path, false, Kind::Link)
    }

    fn is_kind(&self, path: &Path, follow: bool, kind: Kind) -> Result<bool> {
        Ok(self.stat_if_there(path, follow)?.is_some_and(|stat| stat.kind == kind))
    }

    pub fn write(&self, path: &Path, content: &[u8], how: &Write) -> Result<()> {
        self.write_from(path, &mut &*content, how)
    }

    /// Makes a folder and those above it; fine if it exists.
    pub fn create_dirs(&self, path: &Path, mode: Option<u32>) -> Result<()> {
        if self.is_dir(path)? {
            return Ok(());
        }
        if let Some(parent) = path.parent() {
            self.create_dirs(parent, mode)?;
        }
        match self.create_dir(path, mode) {
            Err(error) if error.kind() == Some(io::ErrorKind::AlreadyExists) => Ok(()),
            other => other,
        }
    }

    /// Makes a folder that has its owner and mode from its first moment: it is made under another
    /// name beside its place and then renamed, so that a fault on the way leaves nothing that a
    /// later run would take for finished.
    pub fn create_dir_owned(&self, path: &Path, how: &Write) -> Result<()> {
        if how.uid.is_none() && how.gid.is_none() {
            return self.create_dir(path, how.mode);
        }
        if self.is_there(path)? {
            return Err(Error::io("create", path, io::ErrorKind::AlreadyExists.into()));
        }
        let mut name = OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        name.push(".new");
        let beside = path.with_file_name(name);
        if self.is_there(&beside)? {
            self.remove_dir(&beside)?;
        }
        let made = self
            .create_dir(&beside, how.mode)
            .and_then(|()| self.set_owner(&beside, how.uid, how.gid, false))
            // Changing the owner takes the set-id bits away.
            .and_then(|()| how.mode.map_or(Ok(()), |mode| self.set_mode(&beside, mode)))
            .and_then(|()| self.rename(&beside, path));
        if made.is_err() {
            let _ = self.remove_dir(&beside);
        }
        made
    }

    /// Finds a program on `PATH` (or takes a path as it is).
    pub fn which(&self, program: &str) -> Option<PathBuf> {
        let is_program = |path: &Path| {
            self.stat(path, true)
                .is_ok_and(|stat| stat.kind == Kind::File && stat.mode & 0o111 != 0)
        };
        if program.contains('/') {
            return Some(PathBuf::from(program)).filter(|path| is_program(path));
        }
        let path = self.env(OsStr::new("PATH"));
        let path = path.unwrap_or_else(|| {
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into()
        });
        let usual = ["/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin"].map(PathBuf::from);
        std::env::split_paths(&path)
            .chain(usual)
            .map(|folder| folder.join(program))
            .find(|path| is_program(path))
    }
}

/// Passes every look through and refuses every change.
pub struct ReadOnly(pub Arc<dyn Host>);

fn refuse<T>(action: &'static str, what: impl AsRef<Path>) -> Result<T> {
    Err(Error::ReadOnly { action, what: what.as_ref().display().to_string() })
}

impl Host for ReadOnly {
    fn open(&self, path: &Path) -> Result<Box<dyn Read + Send>> {
        self.0.open(path)
    }
    fn open_at(&self, path: &Path, offset: u64) -> Result<Box<dyn Read + Send>> {
        self.0.open_at(path, offset)
    }
    fn stat(&self, path: &Path, follow: bool) -> Result<Stat> {
        self.0.stat(path, follow)
    }
    fn read_link(&self, path: &Path) -> Result<PathBuf> {
        self.0.read_link(path)
    }
    fn read_dir(&self, path: &Path) -> Result<Vec<OsString>> {
        self.0.read_dir(path)
    }
    fn real_path(&self, path: &Path) -> Result<PathBuf> {
        self.0.real_path(path)
    }
    fn users(&self) -> Result<Vec<User>> {
        self.0.users()
    }
    fn groups(&self) -> Result<Vec<Group>> {
        self.0.groups()
    }
    fn user_named(&self, name: &str) -> Result<Option<User>> {
        self.0.user_named(name)
    }
    fn user_with_id(&self, uid: u32) -> Result<Option<User>> {
        self.0.user_with_id(uid)
    }
    fn group_named(&self, name: &str) -> Result<Option<Group>> {
        self.0.group_named(name)
    }
    fn group_with_id(&self, gid: u32) -> Result<Option<Group>> {
        self.0.group_with_id(gid)
    }
    fn env(&self, name: &OsStr) -> Option<OsString> {
        self.0.env(name)
    }
    fn env_all(&self) -> Vec<(OsString, OsString)> {
        self.0.env_all()
    }
    fn now(&self) -> SystemTime {
        self.0.now()
    }
    fn uid(&self) -> u32 {
        self.0.uid()
    }
    fn get_xattr(&self, path: &Path, name: &str) -> Result<Option<Vec<u8>>> {
        self.0.get_xattr(path, name)
    }
    fn list_xattr(&self, path: &Path) -> Result<Vec<String>> {
        self.0.list_xattr(path)
    }
    fn sleep(&self, time: Duration) -> Result<()> {
        self.0.sleep(time)
    }
    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }
    fn gid(&self) -> u32 {
        self.0.gid()
    }
    fn uname(&self) -> Uname {
        self.0.uname()
    }
    fn hypervisor(&self) -> Option<String> {
        self.0.hypervisor()
    }
    fn interfaces(&self) -> Result<Vec<Interface>> {
        self.0.interfaces()
    }
    fn resolve(&self, name: &str) -> Result<Resolved> {
        self.0.resolve(name)
    }
    fn names_of(&self, address: IpAddr) -> Result<Vec<String>> {
        self.0.names_of(address)
    }
    fn space(&self, path: &Path) -> Result<Space> {
        self.0.space(path)
    }
    fn ask_socket(&self, path: &Path, question: &[u8], query: bool) -> Result<Vec<u8>> {
        if query {
            self.0.ask_socket(path, question, query)
        } else {
            refuse("ask", path.display().to_string())
        }
    }
    fn watch_files(&self) -> Result<Box<dyn FileWatch>> {
        self.0.watch_files()
    }

    fn connect(&self, host: &str, port: u16, udp: bool, timeout: Duration) -> Result<()> {
        self.0.connect(host, port, udp, timeout)
    }
    fn send_datagram(&self, host: &str, _: u16, _: &[u8]) -> Result<()> {
        refuse("send to", host)
    }
    fn http(&self, request: &HttpRequest) -> Result<HttpResponse> {
        if request.is_query() { self.0.http(request) } else { refuse("ask", &request.url) }
    }
    fn mail(&self, mail: &Mail) -> Result<()> {
        refuse("send mail by", &mail.server)
    }
    fn run(&self, command: &Command) -> Result<Output> {
        if command.query { self.0.run(command) } else { refuse("run", command.shown()) }
    }
    fn write_from(&self, path: &Path, _: &mut dyn Read, _: &Write) -> Result<()> {
        refuse("write", path)
    }
    fn append(&self, path: &Path, _: &[u8]) -> Result<()> {
        refuse("append to", path)
    }
    fn create_dir(&self, path: &Path, _: Option<u32>) -> Result<()> {
        refuse("create", path)
    }
    fn remove_file(&self, path: &Path) -> Result<()> {
        refuse("remove", path)
    }
    fn remove_dir(&self, path: &Path) -> Result<()> {
        refuse("remove", path)
    }
    fn remove_all(&self, path: &Path) -> Result<()> {
        refuse("remove", path)
    }
    fn rename(&self, from: &Path, _: &Path) -> Result<()> {
        refuse("rename", from)
    }
    fn symlink(&self, _: &Path, link: &Path) -> Result<()> {
        refuse("link", link)
    }
    fn hard_link(&self, _: &Path, link: &Path) -> Result<()> {
        refuse("link", link)
    }
    fn set_mode(&self, path: &Path, _: u32) -> Result<()> {
        refuse("change the mode of", path)
    }
    fn set_owner(&self, path: &Path, _: Option<u32>, _: Option<u32>, _: bool) -> Result<()> {
        refuse("change the owner of", path)
    }
    fn set_times(&self, path: &Path, _: Option<f64>, _: Option<f64>) -> Result<()> {
        refuse("change the times of", path)
    }
    fn make_node(&self, path: &Path, _: Kind, _: u32, _: u32, _: u32) -> Result<()> {
        refuse("create", path)
    }
    fn set_xattr(&self, path: &Path, _: &str, _: &[u8]) -> Result<()> {
        refuse("set an attribute of", path)
    }
    fn remove_xattr(&self, path: &Path, _: &str) -> Result<()> {
        refuse("remove an attribute of", path)
    }
    fn set_env(&self, name: &OsStr, _: Option<&OsStr>) -> Result<()> {
        refuse("set", name)
    }
    fn kill(&self, pid: u32, signal: i32) -> Result<()> {
        if signal == 0 { self.0.kill(pid, 0) } else { refuse("signal", pid.to_string()) }
    }
}
