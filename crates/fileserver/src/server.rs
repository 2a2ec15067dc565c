//! The file server: several back ends as one, answering in the shapes that travel.
//!
//! A path may carry options (`a/b?saltenv=dev&index=1`), unless it begins with `|`, which makes
//! all of it a name.

use std::{collections::BTreeSet, io::Write, sync::Arc};

use halite_spec::{Host, host::Result};
use halite_value::{Dict, Value, dict, list, suggest};

use crate::{
    RelPath,
    backend::{Backend, Found, Lists, stat_list},
    git::GitFs,
    hash::Kind,
    roots::Roots,
};

/// Serves files from its back ends; the first that has a file wins.
pub struct FileServer {
    backends: Vec<Arc<dyn Backend>>,
    buffer_size: usize,
}

/// A path as it was asked for, options taken off.
struct Asked {
    path: RelPath,
    saltenv: String,
    index: Option<usize>,
}

impl Asked {
    /// `None` for what can be no file: absolute, stepping upwards …
    fn new(path: &str, saltenv: &str) -> Option<Self> {
        if let Some(name) = path.strip_prefix('|') {
            let path = RelPath::new(name.trim_start_matches('|'))?;
            return Some(Self { path, saltenv: saltenv.to_owned(), index: None });
        }
        let (path, options) = path.split_once('?').unwrap_or((path, ""));
        let mut asked =
            Self { path: RelPath::new(path)?, saltenv: saltenv.to_owned(), index: None };
        for (name, value) in options.split('&').filter_map(|option| option.split_once('=')) {
            match name {
                "saltenv" => asked.saltenv = value.to_owned(),
                "index" => asked.index = Some(value.parse().ok()?),
                _ => {}
            }
        }
        Some(asked)
    }
}

impl FileServer {
    pub fn new(backends: Vec<Arc<dyn Backend>>, buffer_size: usize) -> Self {
        Self { backends, buffer_size }
    }

    /// Makes the server a configuration describes: the back ends of `fileserver_backend`, with
    /// `roots` given. Those we do not know are told in the log.
    pub fn from_opts(host: &Arc<dyn Host>, opts: &Dict, roots: Arc<Roots>) -> Self {
        let buffer_size = roots.options().buffer_size;
        let names = opts.get("fileserver_backend").and_then(|list| list.items_of_sequence());
        let mut backends: Vec<Arc<dyn Backend>> = Vec::new();
        for name in names.unwrap_or_default() {
            match name.to_str().as_str() {
                "roots" => backends.push(roots.clone()),
                "git" | "gitfs" => backends.push(Arc::new(GitFs::new(host.clone(), opts))),
                other => {
                    let help = suggest::help(other, ["roots", "git", "gitfs"]);
                    tracing::warn!("the file server has no back end `{other}`{help}");
                }
            }
        }
        if backends.is_empty() {
            backends.push(roots);
        }
        Self::new(backends, buffer_size)
    }

    /// Returns the back ends meant by a `fsbackend` option: names, or `-name` for all but those.
    fn backends(&self, asked: Option<&Value>) -> Vec<&Arc<dyn Backend>> {
        let names: Vec<String> = match asked {
            Some(Value::Str(text)) if !text.is_empty() => {
                text.split(',').map(|name| name.trim().to_owned()).collect()
            }
            Some(other) => {
                let items = other.items_of_sequence().unwrap_or_default();
                items.iter().map(|item| item.to_str().to_string()).collect()
            }
            None => Vec::new(),
        };
        let named = |prefix: &str, backend: &dyn Backend| {
            names.iter().any(|name| name.strip_prefix(prefix) == Some(backend.name()))
        };
        let all_but = names.iter().all(|name| name.starts_with('-'));
        let is_meant = |backend: &&Arc<dyn Backend>| {
            if all_but { !named("-", &***backend) } else { named("", &***backend) }
        };
        self.backends.iter().filter(is_meant).collect()
    }

    /// Returns the environments, sorted.
    pub fn envs(&self) -> Result<Vec<String>> {
        let mut envs = BTreeSet::new();
        for backend in &self.backends {
            envs.extend(backend.envs()?);
        }
        Ok(envs.into_iter().collect())
    }

    /// Finds a file, with the back end that has it.
    pub fn find(&self, path: &str, saltenv: &str) -> Result<Option<(&dyn Backend, Found)>> {
        let Some(asked) = Asked::new(path, saltenv) else { return Ok(None) };
        for backend in &self.backends {
            if let Some(found) = backend.find(&asked.path, &asked.saltenv, asked.index)? {
                return Ok(Some((&**backend, found)));
            }
        }
        Ok(None)
    }

    /// Returns the hash of a file; `None` if there is no such file.
    pub fn hash(&self, path: &str, saltenv: &str) -> Result<Option<(Kind, String)>> {
        let found = self.find(path, saltenv)?;
        found.map(|(backend, found)| backend.hash(&found)).transpose()
    }

    /// Returns one piece of a file: `{data, dest}`, and `gzip` if it is compressed.
    pub fn serve(
        &self,
        path: &str,
        saltenv: &str,
        offset: u64,
        gzip: Option<u32>,
    ) -> Result<Value> {
        let Some((backend, found)) = self.find(path, saltenv)? else {
            return Ok(dict! { "data" => "", "dest" => "" });
        };
        let piece = backend.read(&found, offset, self.buffer_size)?;
        let reply = Dict::new();
        reply.insert("data", Value::Null);
        reply.insert("dest", found.rel.as_str());
        match gzip {
            Some(level @ 1..=9) if !piece.is_empty() => {
                reply.insert("data", Value::bytes(compressed(&piece, level)));
                reply.insert("gzip", level);
            }
            _ => {
                reply.insert("data", Value::bytes(piece));
            }
        }
        Ok(reply.into())
    }

    /// Returns lists joined over back ends, limited to what begins with `prefix`.
    fn listed(
        &self,
        saltenv: &str,
        prefix: &str,
        fsbackend: Option<&Value>,
        which: fn(&Lists) -> &Vec<String>,
    ) -> Result<Vec<String>> {
        let prefix = prefix.trim_matches('/');
        let mut all = BTreeSet::new();
        for backend in self.backends(fsbackend) {
            let lists = backend.lists(saltenv)?;
            let begins = |path: &&String| path.starts_with(prefix);
            all.extend(which(&lists).iter().filter(begins).cloned());
        }
        Ok(all.into_iter().collect())
    }

    pub fn files(&self, saltenv: &str, prefix: &str) -> Result<Vec<String>> {
        self.listed(saltenv, prefix, None, |lists| &lists.files)
    }

    pub fn dirs(&self, saltenv: &str, prefix: &str) -> Result<Vec<String>> {
        self.listed(saltenv, prefix, None, |lists| &lists.dirs)
    }

    pub fn empty_dirs(&self, saltenv: &str, prefix: &str) -> Result<Vec<String>> {
        self.listed(saltenv, prefix, None, |lists| &lists.empty_dirs)
    }

    pub fn links(&self, saltenv: &str, prefix: &str) -> Result<Vec<(String, String)>> {
        self.links_of(saltenv, prefix, None)
    }

    fn links_of(
        &self,
        saltenv: &str,
        prefix: &str,
        fsbackend: Option<&Value>,
    ) -> Result<Vec<(String, String)>> {
        let prefix = prefix.trim_matches('/');
        let mut all = std::collections::BTreeMap::new();
        for backend in self.backends(fsbackend) {
            let lists = backend.lists(saltenv)?;
            let begins = |(path, _): &&(String, String)| path.starts_with(prefix);
            all.extend(lists.links.iter().filter(begins).cloned());
        }
        Ok(all.into_iter().collect())
    }

    /// Forgets lists, as `fileserver.clear_file_list_cache` does: back end → environments.
    pub fn clear_lists(&self, saltenvs: Option<&[String]>) -> Dict {
        self.backends
            .iter()
            .map(|backend| (backend.name(), backend.clear_lists(saltenvs)))
            .filter(|(_, cleared)| !cleared.is_empty())
            .collect()
    }

    /// Answers a request of a file client; `None` if the command is none of ours. A request that
    /// lacks what it needs is answered as Salt does: with nothing.
    pub fn answer(&self, command: &str, load: &Value) -> Option<Result<Value>> {
        let text = |name: &str| load.get(name).map(|value| value.to_str());
        let (path, saltenv) = (text("path"), text("saltenv"));
        let prefix = text("prefix").unwrap_or_default();
        let fsbackend = load.get("fsbackend");
        let env = saltenv.as_deref().unwrap_or_default();
        let list = |which| self.listed(env, &prefix, fsbackend.as_ref(), which).map(Value::from);
        Some(match command {
            "_file_envs" => self.envs().map(Value::from),
            "_file_list" => list(|lists| &lists.files),
            "_file_list_emptydirs" => list(|lists| &lists.empty_dirs),
            "_dir_list" => list(|lists| &lists.dirs),
            "_symlink_list" => self
                .links_of(env, &prefix, fsbackend.as_ref())
                .map(|links| links.into_iter().collect::<Dict>().into()),
            "_file_find" => self
                .found(path.as_deref().unwrap_or_default(), saltenv.as_deref().unwrap_or("base")),
            "_file_hash" => match (path, saltenv) {
                (Some(path), Some(saltenv)) => {
                    self.hash_and_stat(&path, &saltenv).map(|both| both.0)
                }
                _ => Ok("".into()),
            },
            "_file_hash_and_stat" => match (path, saltenv) {
                (Some(path), Some(saltenv)) => {
                    self.hash_and_stat(&path, &saltenv).map(|(hash, stat)| list![hash, stat])
                }
                _ => Ok(list!["", ()]),
            },
            "_serve_file" => {
                let offset = load.get("loc").and_then(|loc| loc.to_int());
                let offset = offset.and_then(|loc| u64::try_from(loc).ok());
                let gzip = load.get("gzip").and_then(|level| level.to_int());
                let gzip = gzip.and_then(|level| u32::try_from(level).ok());
                match (path, saltenv, offset) {
                    (Some(path), Some(saltenv), Some(offset)) => {
                        self.serve(&path, &saltenv, offset, gzip)
                    }
                    _ => Ok(dict! { "data" => "", "dest" => "" }),
                }
            }
            _ => return None,
        })
    }

    fn found(&self, path: &str, saltenv: &str) -> Result<Value> {
        Ok(match self.find(path, saltenv)? {
            Some((backend, found)) => dict! {
                "path" => found.path.to_string_lossy().into_owned(),
                "rel" => found.rel.as_str(),
                "stat" => stat_list(&found.stat),
                "back" => backend.name(),
            },
            None => dict! { "path" => "", "rel" => "" },
        })
    }

    fn hash_and_stat(&self, path: &str, saltenv: &str) -> Result<(Value, Value)> {
        let Some((backend, found)) = self.find(path, saltenv)? else {
            return Ok(("".into(), Value::Null));
        };
        let (kind, digits) = backend.hash(&found)?;
        let hash = dict! { "hash_type" => kind.name(), "hsum" => digits };
        Ok((hash, stat_list(&found.stat)))
    }
}

/// A whole gzip stream.
fn compressed(piece: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(
        Vec::with_capacity(piece.len() / 2),
        flate2::Compression::new(level),
    );
    encoder.write_all(piece).and_then(|()| encoder.finish()).expect("memory can be written")
}
