//! The back end `git`: branches and tags of `gitfs_remotes` are environments.
//!
//! The branch `gitfs_base` is the environment `base`; what `gitfs_saltenv` maps by hand is not
//! mapped by its name as well. An environment consists of one folder for each remote that has it,
//! in the order of the remotes, and is served as folders are. Remotes are fetched at first use and
//! then every `gitfs_update_interval` seconds, when somebody asks for something.

use std::{
    collections::{BTreeSet, HashMap},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use halite_pyregex::{Flags, PyRegex};
use halite_spec::{Host, host::Result};
use halite_target::fnmatch::fnmatch;
use halite_value::{Dict, Value};
use parking_lot::Mutex;

use super::{
    remote::{Remote, flat, texts},
    repo::{Ref, RefKind, Repo},
};
use crate::{
    RelPath,
    backend::{Backend, Found, Lists},
    hash::Kind,
    options::Options,
    roots::Roots,
};

/// The back end.
pub struct GitFs {
    host: Arc<dyn Host>,
    options: Options,
    sources: Vec<Source>,
    whitelist: Vec<String>,
    blacklist: Vec<String>,
    /// Reads and hashes what was found.
    plain: Roots,
    served: Mutex<HashMap<String, Served>>,
}

/// When each remote was fetched.
type Stamps = Vec<Option<f64>>;

/// An environment as it was when the remotes were fetched.
struct Served {
    stamps: Stamps,
    folders: Vec<PathBuf>,
    roots: Arc<Roots>,
}

struct Source {
    repo: Repo,
    remote: Remote,
    /// Environments with settings of their own: `ref`, `root`, `mountpoint`.
    envs: Dict,
    interval: Duration,
}

impl GitFs {
    /// Makes the back end a configuration describes.
    pub fn new(host: Arc<dyn Host>, opts: &Dict) -> Self {
        let cachedir = opts.get("cachedir").map(|dir| dir.to_str().to_string());
        let cache =
            Path::new(cachedir.as_deref().unwrap_or("/var/cache/salt/minion")).join("gitfs");
        let sources = Remote::all(opts.get("gitfs_remotes").as_ref(), "gitfs", opts)
            .into_iter()
            .map(|remote| Source::new(&host, remote, opts, &cache))
            .collect();
        let list = |name: &str| texts(opts.get(name).as_ref());
        let options = Options { file_roots: Vec::new(), ..Options::from_opts(opts) };
        Self {
            plain: Roots::new(host.clone(), options.clone()),
            host,
            options,
            sources,
            whitelist: list("gitfs_saltenv_whitelist"),
            blacklist: list("gitfs_saltenv_blacklist"),
            served: Mutex::default(),
        }
    }

    /// Fetches what is due. Errors are logged: a remote that is away leaves its files served.
    fn update(&self) {
        for source in &self.sources {
            if let Err(error) = source.repo.update(source.interval) {
                tracing::error!("gitfs: {error}");
            }
        }
    }

    /// Fetches all remotes now; returns those that failed, with the error.
    pub fn fetch(&self) -> Vec<(String, String)> {
        let failed = |source: &Source| match source.repo.update(Duration::ZERO) {
            Ok(_) => None,
            Err(error) => Some((source.remote.id.clone(), error.to_string())),
        };
        self.sources.iter().filter_map(failed).collect()
    }

    fn is_shown(&self, env: &str) -> bool {
        let matches = |list: &[String]| list.iter().any(|pattern| is_match(pattern, env));
        (self.whitelist.is_empty() || matches(&self.whitelist)) && !matches(&self.blacklist)
    }

    /// Returns the folders of an environment.
    fn folders(&self, saltenv: &str) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        for source in self.sources.iter().filter(|_| self.is_shown(saltenv)) {
            match source.tree(saltenv) {
                Ok(folder) => folders.extend(folder),
                Err(error) => tracing::error!("gitfs: {error}"),
            }
        }
        folders
    }

    /// Returns what serves an environment now.
    fn roots(&self, saltenv: &str) -> Arc<Roots> {
        self.update();
        let stamps: Stamps = self.sources.iter().map(|source| source.repo.fetched()).collect();
        if let Some(known) = self.served.lock().get(saltenv)
            && known.stamps == stamps
        {
            return known.roots.clone();
        }
        let folders = self.folders(saltenv);
        let mut served = self.served.lock();
        // Lists and hashes stay known as long as nothing was pushed.
        let same = served.get(saltenv).filter(|known| known.folders == folders);
        let roots = same.map_or_else(
            || {
                let file_roots = vec![(saltenv.into(), folders.clone())];
                let options = Options { file_roots, ..self.options.clone() };
                Arc::new(Roots::new(self.host.clone(), options))
            },
            |known| known.roots.clone(),
        );
        served.insert(saltenv.to_owned(), Served { stamps, folders, roots: roots.clone() });
        roots
    }
}

impl Source {
    fn new(host: &Arc<dyn Host>, remote: Remote, opts: &Dict, cache: &Path) -> Self {
        let envs = Dict::new();
        for list in [opts.get("gitfs_saltenv"), remote.own("saltenv")].into_iter().flatten() {
            for (env, own) in flat(&list).entries() {
                envs.insert(env.to_str().as_str(), flat(&own));
            }
        }
        let interval = remote.get("update_interval").and_then(|value| value.to_int());
        let interval = interval.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(60);
        Self {
            repo: Repo::new(host.clone(), &remote.id, remote.access(), cache),
            remote,
            envs,
            interval: Duration::from_secs(interval),
        }
    }

    fn setting(&self, saltenv: &str, name: &str) -> String {
        let own = self.envs.get(saltenv).and_then(|own| own.get(name)).filter(Value::truthy);
        own.map_or_else(|| self.remote.text(name), |value| value.to_str().to_string())
    }

    fn base(&self) -> String {
        let base = self.remote.text("base");
        if base.is_empty() { "master".into() } else { base }
    }

    fn takes(&self, kind: &str) -> bool {
        let kinds = self.remote.list("ref_types");
        kinds.is_empty() || kinds.iter().any(|own| own == kind)
    }

    fn envs(&self) -> Result<BTreeSet<String>> {
        let mut envs: BTreeSet<String> =
            self.envs.keys().iter().map(|env| env.to_str().to_string()).collect();
        let base = self.base();
        if self.remote.flag("disable_saltenv_mapping", false) {
            envs.insert("base".into());
            return Ok(envs);
        }
        let by_hand = |name: &str| {
            let own = self.envs.entries();
            own.iter().any(|(_, own)| own.get("ref").is_some_and(|own| own.to_str() == name))
        };
        for own in self.repo.refs()? {
            let kind = if own.kind == RefKind::Branch { "branch" } else { "tag" };
            if !self.takes(kind) || by_hand(&own.name) {
                continue;
            }
            envs.insert(if own.name == base { "base".into() } else { own.name });
        }
        Ok(envs)
    }

    /// Returns the commit an environment stands for.
    fn commit(&self, saltenv: &str) -> Result<Option<String>> {
        let refs = self.repo.refs()?;
        let refs: Vec<Ref> = refs
            .into_iter()
            .filter(|own| self.takes(if own.kind == RefKind::Branch { "branch" } else { "tag" }))
            .collect();
        let find = |name: &str| {
            let is_ref = refs.iter().any(|own| own.name == name);
            if is_ref || self.takes("sha") { self.repo.commit(name, &refs) } else { Ok(None) }
        };
        let all = self.remote.text("all_saltenvs");
        let by_hand = self.envs.get(saltenv).and_then(|own| own.get("ref"));
        let name = match by_hand {
            _ if !all.is_empty() => Some(all),
            Some(name) => Some(name.to_str().to_string()),
            None if saltenv == "base" => Some(self.base()),
            None if self.remote.flag("disable_saltenv_mapping", false) => None,
            None => Some(saltenv.to_owned()),
        };
        if let Some(found) = name.map(|name| find(&name)).transpose()?.flatten() {
            return Ok(Some(found));
        }
        let fallback = self.remote.text("fallback");
        if fallback.is_empty() { Ok(None) } else { find(&fallback) }
    }

    fn tree(&self, saltenv: &str) -> Result<Option<PathBuf>> {
        let Some(commit) = self.commit(saltenv)? else { return Ok(None) };
        let mountpoint = self.setting(saltenv, "mountpoint");
        let mountpoint = mountpoint.strip_prefix("salt://").unwrap_or(&mountpoint);
        let root = self.setting(saltenv, "root");
        self.repo.tree(&commit, &root, mountpoint).map(Some)
    }
}

/// A shell pattern, or a regular expression for the whole name.
fn is_match(pattern: &str, env: &str) -> bool {
    fnmatch(env, pattern)
        || PyRegex::cached(pattern, Flags::NONE)
            .is_ok_and(|re| re.full_match(env).is_ok_and(|found| found.is_some()))
}

impl Backend for GitFs {
    fn name(&self) -> &str {
        "git"
    }

    fn envs(&self) -> Result<Vec<String>> {
        self.update();
        let mut envs = BTreeSet::new();
        for source in &self.sources {
            envs.extend(source.envs()?);
        }
        Ok(envs.into_iter().filter(|env| self.is_shown(env)).collect())
    }

    fn find(&self, path: &RelPath, saltenv: &str, index: Option<usize>) -> Result<Option<Found>> {
        self.roots(saltenv).find(path, saltenv, index)
    }

    fn hash(&self, found: &Found) -> Result<(Kind, String)> {
        self.plain.hash(found)
    }

    fn read(&self, found: &Found, offset: u64, length: usize) -> Result<Vec<u8>> {
        self.plain.read(found, offset, length)
    }

    fn lists(&self, saltenv: &str) -> Result<Arc<Lists>> {
        self.roots(saltenv).lists(saltenv)
    }

    fn clear_lists(&self, saltenvs: Option<&[String]>) -> Vec<String> {
        let served = self.served.lock();
        let cleared = served.values().flat_map(|known| known.roots.clear_lists(saltenvs));
        cleared.collect()
    }
}
