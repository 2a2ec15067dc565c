//! The folders pillar is read from: `pillar_roots`.
//!
//! As the file server's roots, but read in place, with links followed, and with one difference
//! kept from Salt: `file_ignore_glob` and its like do not count here. It is also the file client
//! that templates in pillar see ([`Files`]): their imports come from the pillar's own folders.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use halite_fileserver::{
    Options, RelPath,
    backend::stat_list,
    hash::Kind,
    url::{Url, parse_salt},
};
use halite_spec::{Error, Files, Host, Result, host::Kind as FileKind, utf8};
use halite_value::{Dict, SmolStr, Value};
use parking_lot::Mutex;

use crate::inputs::{Input, Inputs};

const MAX_DEPTH: usize = 200;

/// The roots of one compilation, with what was read from them.
pub struct PillarFiles {
    host: Arc<dyn Host>,
    roots: Vec<(SmolStr, Vec<PathBuf>)>,
    hash_type: Kind,
    inputs: Arc<Inputs>,
    states: Mutex<Vec<(SmolStr, Arc<Vec<String>>)>>,
}

/// An SLS that was found.
pub struct Sls {
    pub path: PathBuf,
    pub text: String,
    /// It is the `init.sls` of its folder.
    pub is_init: bool,
}

impl PillarFiles {
    /// Takes `pillar_roots`; `env` is what a root named `__env__` stands for.
    pub fn new(host: Arc<dyn Host>, opts: &Dict, env: &str, inputs: Arc<Inputs>) -> Self {
        let options = Options::with_roots(opts, "pillar_roots");
        let has = |name: &str| options.file_roots.iter().any(|(own, _)| own == name);
        let mut roots: Vec<_> =
            options.file_roots.iter().filter(|(own, _)| own != "__env__").cloned().collect();
        if has("__env__") && !has(env) {
            roots.push((env.into(), options.roots(env)));
        }
        let hash_type = options.hash_type;
        Self { host, roots, hash_type, inputs, states: Mutex::default() }
    }

    pub fn host(&self) -> &Arc<dyn Host> {
        &self.host
    }

    pub fn inputs(&self) -> &Arc<Inputs> {
        &self.inputs
    }

    /// Returns `base`, then the other environments in the order configured.
    pub fn environments(&self) -> Vec<SmolStr> {
        let base = SmolStr::new_static("base");
        let others = self.roots.iter().map(|(env, _)| env).filter(|env| **env != base).cloned();
        std::iter::once(base.clone()).chain(others).collect()
    }

    /// Returns the folders of an environment; `None` if it is not configured.
    pub fn roots(&self, saltenv: &str) -> Option<&[PathBuf]> {
        self.roots.iter().find(|(env, _)| env == saltenv).map(|(_, roots)| &**roots)
    }

    /// Finds a file in the first root that has it.
    fn find(&self, saltenv: &str, path: &RelPath) -> Result<Option<PathBuf>> {
        for root in self.roots(saltenv).unwrap_or_default() {
            let full = path.below(root);
            match self.host.stat_if_there(&full, true)? {
                Some(stat) if stat.kind == FileKind::File => return Ok(Some(full)),
                _ => self.inputs.add_file(&full, None),
            }
        }
        Ok(None)
    }

    /// Reads a file of an environment, if it is there.
    pub fn read(&self, saltenv: &str, path: &str) -> Result<Option<(PathBuf, String)>> {
        let Some(path) = RelPath::new(path.trim_start_matches('/')) else { return Ok(None) };
        let Some(full) = self.find(saltenv, &path)? else { return Ok(None) };
        let content = self.host.read(&full)?;
        self.inputs.add_file(&full, Some(&content));
        let text = utf8(content).map_err(|error| error.in_file(&full.to_string_lossy()))?;
        Ok(Some((full, text)))
    }

    /// Reads an SLS by its dotted name.
    pub fn sls(&self, saltenv: &str, sls: &str) -> Result<Option<Sls>> {
        let path = sls.replace('.', "/");
        for (name, is_init) in [(format!("{path}.sls"), false), (format!("{path}/init.sls"), true)]
        {
            if let Some((path, text)) = self.read(saltenv, &name)? {
                return Ok(Some(Sls { path, text, is_init }));
            }
        }
        Ok(None)
    }

    /// Returns the names of all SLS of an environment, sorted; `None` if it is not configured.
    pub fn states(&self, saltenv: &str) -> Option<Arc<Vec<String>>> {
        let known = |states: &[(SmolStr, Arc<Vec<String>>)]| {
            states.iter().find(|(env, _)| env == saltenv).map(|(_, list)| list.clone())
        };
        if let Some(list) = known(&self.states.lock()) {
            return Some(list);
        }
        // `base` is an environment even when nobody configured it.
        let roots = match self.roots(saltenv) {
            Some(roots) => roots,
            None if saltenv == "base" => &[],
            None => return None,
        };
        let mut list = Vec::new();
        for root in roots {
            let names = sls_below(&*self.host, root);
            self.inputs.add(Input::Listing { root: root.clone(), hash: hash_of(&names) });
            list.extend(names);
        }
        list.sort();
        list.dedup();
        let list = Arc::new(list);
        self.states.lock().push((saltenv.into(), list.clone()));
        Some(list)
    }
}

/// Returns the dotted names of the SLS below a folder, sorted.
fn sls_below(host: &dyn Host, root: &Path) -> Vec<String> {
    let mut names: Vec<String> = files_below(host, root)
        .into_iter()
        .filter_map(|path| {
            let path = path.strip_suffix(".sls")?;
            Some(path.strip_suffix("/init").unwrap_or(path).replace('/', "."))
        })
        .collect();
    names.sort();
    names
}

fn files_below(host: &dyn Host, root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    walk(host, root, "", &mut Vec::new(), &mut found);
    found.sort();
    found
}

fn walk(
    host: &dyn Host,
    root: &Path,
    rel: &str,
    above: &mut Vec<(u64, u64)>,
    found: &mut Vec<String>,
) {
    let here = if rel.is_empty() { root.to_owned() } else { root.join(rel) };
    let (Ok(names), Ok(own)) = (host.read_dir(&here), host.stat(&here, true)) else { return };
    let id = (own.device, own.inode);
    if above.len() > MAX_DEPTH || (id != (0, 0) && above.contains(&id)) {
        return;
    }
    above.push(id);
    for name in names {
        let name = name.to_string_lossy();
        let path = if rel.is_empty() { name.into_owned() } else { format!("{rel}/{name}") };
        if host.is_dir(&root.join(&path)).unwrap_or(false) {
            walk(host, root, &path, above, found);
        } else {
            found.push(path);
        }
    }
    above.pop();
}

fn hash_of(names: &[String]) -> String {
    crate::inputs::hash(names.join("\n").as_bytes())
}

pub(crate) fn listing_hash(host: &dyn Host, root: &Path) -> String {
    hash_of(&sls_below(host, root))
}

/// The file client of templates in pillar.
impl Files for PillarFiles {
    fn envs(&self) -> Result<Vec<String>> {
        Ok(self.roots.iter().map(|(env, _)| env.to_string()).collect())
    }

    fn cache(&self, source: &str, saltenv: &str) -> Result<Option<PathBuf>> {
        if let Some(url) = parse_salt(source) {
            let saltenv = url.saltenv.as_deref().unwrap_or(saltenv);
            let Some(path) = RelPath::new(&url.path) else { return Ok(None) };
            let Some(full) = self.find(saltenv, &path)? else { return Ok(None) };
            let content = self.host.read(&full)?;
            self.inputs.add_file(&full, Some(&content));
            return Ok(Some(full));
        }
        let url = Url::parse(source);
        match url.scheme.as_str() {
            "" | "file" if url.path.starts_with('/') => {
                let path = PathBuf::from(url.path);
                self.inputs.add_file(&path, self.host.read(&path).ok().as_deref());
                Ok(Some(path))
            }
            _ => Err(Error::failed(format!("pillar cannot read from {source}"))),
        }
    }

    fn hash(&self, path: &str, saltenv: &str) -> Result<Option<(String, String)>> {
        let source =
            if path.starts_with("salt://") { path.to_owned() } else { format!("salt://{path}") };
        let Some(full) = self.cache(&source, saltenv)? else { return Ok(None) };
        let digits = self.hash_type.of_bytes(&self.host.read(&full)?);
        Ok(Some((self.hash_type.name().to_owned(), digits)))
    }

    fn list(&self, saltenv: &str, prefix: &str) -> Result<Vec<String>> {
        let prefix = prefix.trim_matches('/');
        self.inputs.add(Input::Volatile(format!("list of {saltenv}")));
        let roots = self.roots(saltenv).unwrap_or_default();
        let mut files: Vec<String> = roots
            .iter()
            .flat_map(|root| files_below(&*self.host, root))
            .filter(|path| path.starts_with(prefix))
            .collect();
        files.sort();
        files.dedup();
        Ok(files)
    }

    fn list_dirs(&self, saltenv: &str, prefix: &str) -> Result<Vec<String>> {
        let mut dirs: Vec<String> = self
            .list(saltenv, prefix)?
            .iter()
            .flat_map(|file| {
                Path::new(file)
                    .ancestors()
                    .skip(1)
                    .map(|dir| dir.to_string_lossy().into_owned())
                    .filter(|dir| !dir.is_empty())
                    .collect::<Vec<_>>()
            })
            .collect();
        dirs.sort();
        dirs.dedup();
        Ok(dirs)
    }

    fn list_empty_dirs(&self, _: &str, _: &str) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn list_links(&self, _: &str, _: &str) -> Result<Vec<(String, String)>> {
        Ok(Vec::new())
    }

    fn stat(&self, path: &str, saltenv: &str) -> Result<Option<Value>> {
        let path = path.strip_prefix("salt://").unwrap_or(path);
        let Some(path) = RelPath::new(path) else { return Ok(None) };
        let Some(full) = self.find(saltenv, &path)? else { return Ok(None) };
        Ok(Some(stat_list(&self.host.stat(&full, true)?)))
    }

    fn push(&self, _: &Path, _: &str) -> Result<bool> {
        Ok(false)
    }

    fn master_opts(&self) -> Result<Value> {
        Ok(Value::dict())
    }

    fn master_tops(&self) -> Result<Value> {
        Ok(Value::dict())
    }
}
