//! A remote repository: its mirror in the cache, its references, and trees taken out of it.
//!
//! The mirror is a bare repository. A tree is written once for each commit, into a folder of its
//! own which is renamed into place when it is whole, so that readers never see half of it and two
//! processes may share the cache. What fails to be fetched is served as it was before.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
    time::{Duration, SystemTime},
};

use halite_spec::{
    Command, Host,
    host::{Error, Kind as FileKind, Output, Result, Write},
};
use parking_lot::Mutex;

use crate::{RelPath, hash::Kind};

/// A fetch that takes longer than this is given up.
const FETCH_TIME: Duration = Duration::from_secs(600);
/// Trees of commits that no reference leads to any more are kept for readers who still have them.
const KEEP: Duration = Duration::from_secs(3600);

/// When each mirror was fetched last, in this process: several clients share it.
static FETCHED: LazyLock<Mutex<HashMap<PathBuf, SystemTime>>> = LazyLock::new(Mutex::default);
/// One fetch at a time for each mirror.
static LOCKS: LazyLock<Mutex<HashMap<PathBuf, Arc<Mutex<()>>>>> = LazyLock::new(Mutex::default);

/// How a remote is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    pub user: String,
    pub password: String,
    pub privkey: String,
    pub proxy: String,
    pub skip_tls_check: bool,
    pub refspecs: Vec<String>,
}

/// Kinds of references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefKind {
    Branch,
    Tag,
}

/// A branch or tag with its commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ref {
    pub kind: RefKind,
    pub name: String,
    pub commit: String,
}

/// A remote repository with its mirror.
#[derive(Clone)]
pub struct Repo {
    host: Arc<dyn Host>,
    url: String,
    access: Access,
    /// Holds `mirror.git` and `trees`.
    dir: PathBuf,
}

impl Repo {
    /// Names a remote; `cache` is where the mirrors of its kind lie.
    pub fn new(host: Arc<dyn Host>, url: &str, access: Access, cache: &Path) -> Self {
        let refspecs = access.refspecs.join(" ");
        let key = format!("{url} {} {refspecs}", access.user);
        let digits = Kind::Sha256.of(&mut key.as_bytes()).unwrap_or_default();
        let dir = cache.join(digits.get(..32).unwrap_or("repository"));
        Self { host, url: url.to_owned(), access, dir }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    fn mirror(&self) -> PathBuf {
        self.dir.join("mirror.git")
    }

    /// Written after each fetch: git's own `FETCH_HEAD` is new after a failed one too.
    fn stamp(&self) -> PathBuf {
        self.dir.join("fetched")
    }

    fn git(&self) -> Command {
        let mut dir = std::ffi::OsString::from("--git-dir=");
        dir.push(self.mirror());
        let mut command =
            Command::line(["git"]).arg(dir).env("GIT_TERMINAL_PROMPT", "0").timeout(FETCH_TIME);
        // Whoever calls us may stand in a repository of their own.
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
            command.env.push((name.into(), None));
        }
        command
    }

    /// Adds what the remote wants to know, out of sight of `ps`.
    fn with_access(&self, mut command: Command) -> Command {
        let Access { user, password, privkey, proxy, skip_tls_check, .. } = &self.access;
        let mut settings: Vec<(&str, String)> = Vec::new();
        if *skip_tls_check {
            settings.push(("http.sslVerify", "false".into()));
        }
        if !proxy.is_empty() {
            settings.push(("http.proxy", proxy.clone()));
        }
        if !user.is_empty() && self.url.starts_with("http") {
            let secret = base64(format!("{user}:{password}").as_bytes());
            settings.push(("http.extraHeader", format!("Authorization: Basic {secret}")));
        }
        command = command.env("GIT_CONFIG_COUNT", settings.len().to_string());
        for (at, (key, value)) in settings.into_iter().enumerate() {
            command = command
                .env(format!("GIT_CONFIG_KEY_{at}"), key)
                .env(format!("GIT_CONFIG_VALUE_{at}"), value);
        }
        let mut ssh = "ssh -o BatchMode=yes".to_owned();
        if !privkey.is_empty() {
            let quoted = privkey.replace('\'', "'\\''");
            ssh = format!("{ssh} -o IdentitiesOnly=yes -i '{quoted}'");
        }
        command.env("GIT_SSH_COMMAND", ssh)
    }

    fn run(&self, command: &Command) -> Result<Output> {
        let output = self.host.run(command)?;
        if output.ok() {
            return Ok(output);
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(Error::Other(format!("git failed for {}: {said}", self.url)))
    }

    /// Fetches, unless that was done less than `interval` ago. Tells whether it fetched.
    pub fn update(&self, interval: Duration) -> Result<bool> {
        let lock = LOCKS.lock().entry(self.dir.clone()).or_default().clone();
        let has_mirror = || self.fetched().is_some();
        let _one = match lock.try_lock() {
            Some(one) => one,
            // While one fetches the others go on with what there is.
            None if has_mirror() => return Ok(false),
            None => lock.lock(),
        };
        let now = self.host.now();
        if let Some(last) = FETCHED.lock().get(&self.dir)
            && now.duration_since(*last).is_ok_and(|age| age < interval)
        {
            return Ok(false);
        }
        // Also after a failure: a remote that is away is not asked with every file.
        FETCHED.lock().insert(self.dir.clone(), now);
        if self.host.stat_if_there(&self.mirror().join("HEAD"), true)?.is_none() {
            self.host.create_dirs(&self.dir, Some(0o700))?;
            let command = Command::line(["git", "init", "--quiet", "--bare"]).arg(self.mirror());
            self.run(&command.timeout(FETCH_TIME))?;
        }
        let command = self.with_access(self.git()).args(["fetch", "--quiet", "--prune", "--force"]);
        let command = command.args(["--no-auto-gc", "--"]).arg(&self.url);
        self.run(&command.args(&self.access.refspecs))?;
        self.host.write(&self.stamp(), b"", &Write::default())?;
        self.sweep();
        Ok(true)
    }

    /// When it was fetched last, by whomever: what was looked up before that may be outdated.
    pub fn fetched(&self) -> Option<f64> {
        let stat = self.host.stat_if_there(&self.stamp(), true).ok()??;
        Some(stat.mtime)
    }

    /// Returns the branches and tags of the mirror.
    pub fn refs(&self) -> Result<Vec<Ref>> {
        if self.host.stat_if_there(&self.mirror().join("HEAD"), true)?.is_none() {
            return Ok(Vec::new());
        }
        let format = "--format=%(objectname) %(*objectname) %(refname)";
        let output = self.run(&self.git().args(["for-each-ref", format]).query())?;
        let text = output.stdout_text();
        Ok(text.lines().filter_map(read_ref).collect())
    }

    /// Returns the commit of a branch, a tag, or one named by its digits, in that order.
    pub fn commit(&self, name: &str, refs: &[Ref]) -> Result<Option<String>> {
        let of = |kind| refs.iter().find(|own| own.kind == kind && own.name == name);
        if let Some(found) = of(RefKind::Branch).or_else(|| of(RefKind::Tag)) {
            return Ok(Some(found.commit.clone()));
        }
        let is_digits = (7..=64).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        if !is_digits {
            return Ok(None);
        }
        let words = ["rev-parse", "--quiet", "--verify"];
        let command = self.git().args(words).arg(format!("{name}^{{commit}}")).query();
        let output = self.host.run(&command)?;
        Ok(output.ok().then(|| output.stdout_text().trim().to_owned()))
    }

    /// Returns a folder with the files of a commit: those below `root`, put below `mountpoint`.
    pub fn tree(&self, commit: &str, root: &str, mountpoint: &str) -> Result<PathBuf> {
        let invalid = |what: &str| Error::Other(format!("`{what}` is no path in a repository"));
        let (root, mountpoint) = (root.trim_matches('/'), mountpoint.trim_matches('/'));
        let checked = |path: &str| match path {
            "" => Ok(()),
            path => RelPath::new(path).map(drop).ok_or_else(|| invalid(path)),
        };
        checked(root)?;
        checked(mountpoint)?;
        let key = format!("{root}\n{mountpoint}");
        let digits = Kind::Sha256.of(&mut key.as_bytes()).unwrap_or_default();
        let name = format!("{commit}-{}", digits.get(..12).unwrap_or_default());
        let place = self.dir.join("trees").join(&name);
        if self.host.stat_if_there(&place, true)?.is_some() {
            return Ok(place);
        }
        let unique = format!("{name}.{}.{:?}", std::process::id(), std::thread::current().id());
        let beside = self.dir.join("trees").join(format!(".{unique}"));
        let index = self.dir.join(format!("index.{unique}"));
        let made = self.write_tree(commit, root, &beside.join(mountpoint), &index);
        let _ = self.host.remove_file(&index);
        let placed = made.and_then(|()| self.host.rename(&beside, &place));
        if let Err(error) = placed {
            let _ = self.host.remove_all(&beside);
            // Another process was quicker.
            if self.host.stat_if_there(&place, true)?.is_none() {
                return Err(error);
            }
        }
        Ok(place)
    }

    fn write_tree(&self, commit: &str, root: &str, into: &Path, index: &Path) -> Result<()> {
        self.host.create_dirs(into, Some(0o700))?;
        let read = self.git().env("GIT_INDEX_FILE", index).args(["read-tree"]);
        self.run(&read.arg(format!("{commit}:{root}")))?;
        let mut work = std::ffi::OsString::from("--work-tree=");
        work.push(into);
        let write = self.git().arg(work).env("GIT_INDEX_FILE", index);
        self.run(&write.args(["checkout-index", "--all", "--force", "--quiet"])).map(drop)
    }

    /// Removes trees nothing leads to any more.
    fn sweep(&self) {
        let Ok(refs) = self.refs() else { return };
        let trees = self.dir.join("trees");
        let Ok(names) = self.host.read_dir(&trees) else { return };
        for name in names {
            let text = name.to_string_lossy();
            let is_used = refs.iter().any(|own| text.starts_with(own.commit.as_str()));
            let path = trees.join(&name);
            let is_old = self.host.stat_if_there(&path, false).is_ok_and(|stat| {
                stat.is_some_and(|stat| stat.kind == FileKind::Dir && self.is_older(stat.ctime))
            });
            if !is_used && is_old {
                let _ = self.host.remove_all(&path);
            }
        }
    }

    fn is_older(&self, seconds: f64) -> bool {
        let Ok(age) = Duration::try_from_secs_f64(seconds) else { return false };
        let made = SystemTime::UNIX_EPOCH + age;
        self.host.now().duration_since(made).is_ok_and(|age| age > KEEP)
    }
}

/// `<object> <commit of a tag, or nothing> <name>`.
fn read_ref(line: &str) -> Option<Ref> {
    let mut words = line.splitn(3, ' ');
    let (object, peeled, name) = (words.next()?, words.next()?, words.next()?);
    let commit = if peeled.is_empty() { object } else { peeled }.to_owned();
    let (kind, name) = match name.strip_prefix("refs/tags/") {
        Some(name) => (RefKind::Tag, name),
        None => (RefKind::Branch, name.strip_prefix("refs/remotes/origin/")?),
    };
    (name != "HEAD").then(|| Ref { kind, name: name.to_owned(), commit })
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for piece in bytes.chunks(3) {
        let bits = piece.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - piece.len()));
        for at in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= piece.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{RefKind, base64, read_ref};

    #[test]
    fn references_are_read() {
        let branch = read_ref("11  refs/remotes/origin/feature/baz").unwrap();
        assert_eq!((branch.kind, branch.name.as_str()), (RefKind::Branch, "feature/baz"));
        assert_eq!(branch.commit, "11");
        let tag = read_ref("11 22 refs/tags/v1").unwrap();
        assert_eq!((tag.kind, tag.commit.as_str()), (RefKind::Tag, "22"));
        assert_eq!(read_ref("11  refs/remotes/origin/HEAD"), None);
        assert_eq!(read_ref("11  refs/notes/x"), None);
    }

    #[test]
    fn secrets_are_encoded() {
        assert_eq!(base64(b"a:b"), "YTpi");
        assert_eq!(base64(b"user:pw"), "dXNlcjpwdw==");
        assert_eq!(base64(b"user:pass"), "dXNlcjpwYXNz");
        assert_eq!(base64(b"ab"), "YWI=");
    }
}
