//! The `roots` back end: folders of this machine, several for each environment, the first wins.
//!
//! A path from outside is a [`RelPath`], so it cannot step out of a root by itself. Links can
//! lead out: by default they may (`fileserver_followsymlinks`), since whoever writes the tree put
//! them there; when they may not, the real place of a file must lie below the real place of its
//! root. Only regular files are served; a pipe would block the reader.
//!
//! Lists are believed for `fileserver_list_cache_time`; hashes for as long as the file is the same.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    io::Read,
    path::{Component, Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use halite_spec::{
    Host,
    host::{Error, Kind as FileKind, Result},
};
use parking_lot::Mutex;

use crate::{
    RelPath,
    backend::{Backend, Found, Lists},
    cache::HashCache,
    hash::Kind,
    options::Options,
};

/// Folders below folders deeper than this are not walked: links can make a circle of any length.
const MAX_DEPTH: usize = 200;

/// The back end.
pub struct Roots {
    host: Arc<dyn Host>,
    options: Options,
    hashes: Arc<HashCache>,
    lists: Mutex<HashMap<String, (SystemTime, Arc<Lists>)>>,
}

impl Roots {
    pub fn new(host: Arc<dyn Host>, options: Options) -> Self {
        let (hashes, lists) = (Arc::default(), Mutex::default());
        Self { host, options, hashes, lists }
    }

    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Returns the remembered hashes, to be shared with a client on the same machine.
    pub(crate) fn hashes(&self) -> Arc<HashCache> {
        self.hashes.clone()
    }

    fn find_below(&self, root: &Path, path: &RelPath) -> Result<Option<Found>> {
        let full = path.below(root);
        let Some(stat) = self.host.stat_if_there(&full, true)? else { return Ok(None) };
        if stat.kind != FileKind::File || self.options.ignore.has(&full.to_string_lossy()) {
            return Ok(None);
        }
        if self.options.follow_links {
            return Ok(Some(Found { real: full.clone(), path: full, rel: path.clone(), stat }));
        }
        // What was checked is what is read: the resolved path.
        let (real_root, real) = (self.host.real_path(root)?, self.host.real_path(&full)?);
        let found = || Found { path: full, real: real.clone(), rel: path.clone(), stat };
        Ok(real.starts_with(&real_root).then(found))
    }

    fn walk(&self, saltenv: &str) -> Lists {
        let mut walk = Walk { roots: self, found: Sets::default() };
        for root in self.options.roots(saltenv) {
            let real_root = self.host.real_path(&root).unwrap_or_else(|_| root.clone());
            walk.folder(&root, &real_root, "", &mut Vec::new());
        }
        let Sets { files, dirs, empty_dirs, links } = walk.found;
        Lists {
            files: files.into_iter().collect(),
            dirs: dirs.into_iter().collect(),
            empty_dirs: empty_dirs.into_iter().collect(),
            links: links.into_iter().collect(),
        }
    }
}

impl Backend for Roots {
    fn name(&self) -> &str {
        "roots"
    }

    fn envs(&self) -> Result<Vec<String>> {
        let mut envs: Vec<String> =
            self.options.file_roots.iter().map(|(env, _)| env.to_string()).collect();
        envs.sort();
        Ok(envs)
    }

    fn find(&self, path: &RelPath, saltenv: &str, index: Option<usize>) -> Result<Option<Found>> {
        let roots = self.options.roots(saltenv);
        let roots: &[PathBuf] = match index {
            None => &roots,
            Some(index) => roots.get(index..=index).unwrap_or_default(),
        };
        for root in roots {
            match self.find_below(root, path) {
                Ok(None) => {}
                Err(error) if error.is_missing() => {}
                other => return other,
            }
        }
        Ok(None)
    }

    fn hash(&self, found: &Found) -> Result<(Kind, String)> {
        let kind = self.options.hash_type;
        let digits = self.hashes.hash(&*self.host, &found.real, &found.stat, kind)?;
        Ok((kind, digits))
    }

    fn read(&self, found: &Found, offset: u64, length: usize) -> Result<Vec<u8>> {
        let mut piece = Vec::with_capacity(length.min(found.stat.size as usize));
        self.host
            .open_at(&found.real, offset)?
            .take(length as u64)
            .read_to_end(&mut piece)
            .map_err(|error| Error::io("read", &found.real, error))?;
        Ok(piece)
    }

    fn lists(&self, saltenv: &str) -> Result<Arc<Lists>> {
        let now = self.host.now();
        if let Some((made, lists)) = self.lists.lock().get(saltenv)
            && now.duration_since(*made).is_ok_and(|age| age < self.options.list_cache_time)
        {
            return Ok(lists.clone());
        }
        let lists = Arc::new(self.walk(saltenv));
        if !self.options.roots(saltenv).is_empty() {
            self.lists.lock().insert(saltenv.to_owned(), (now, lists.clone()));
        }
        Ok(lists)
    }

    fn clear_lists(&self, saltenvs: Option<&[String]>) -> Vec<String> {
        let mut lists = self.lists.lock();
        let is_meant = |env: &&String| saltenvs.is_none_or(|meant| meant.contains(env));
        let mut cleared: Vec<String> = lists.keys().filter(is_meant).cloned().collect();
        cleared.iter().for_each(|env| drop(lists.remove(env)));
        cleared.sort();
        cleared
    }
}

#[derive(Default)]
struct Sets {
    files: BTreeSet<String>,
    dirs: BTreeSet<String>,
    empty_dirs: BTreeSet<String>,
    links: BTreeMap<String, String>,
}

struct Walk<'a> {
    roots: &'a Roots,
    found: Sets,
}

impl Walk<'_> {
    /// Lists a folder. What cannot be read is passed over, as a walk in Python does.
    fn folder(&mut self, root: &Path, real_root: &Path, rel: &str, above: &mut Vec<(u64, u64)>) {
        let host = self.roots.host.clone();
        let here = if rel.is_empty() { root.to_owned() } else { root.join(rel) };
        let (Ok(names), Ok(own)) = (host.read_dir(&here), host.stat(&here, true)) else { return };
        // A link to a folder above would be walked for ever.
        let id = (own.device, own.inode);
        if above.len() > MAX_DEPTH || (id != (0, 0) && above.contains(&id)) {
            return;
        }
        above.push(id);
        for name in names {
            let name = name.to_string_lossy();
            let path = if rel.is_empty() { name.into_owned() } else { format!("{rel}/{name}") };
            let full = root.join(&path);
            let Ok(stat) = host.stat(&full, false) else { continue };
            let is_link = stat.kind == FileKind::Link;
            let is_dir = if is_link {
                host.is_dir(&full).unwrap_or(false)
            } else {
                stat.kind == FileKind::Dir
            };
            self.entry(root, real_root, &path, is_link, is_dir);
            if is_dir && (!is_link || self.roots.options.follow_links) {
                self.folder(root, real_root, &path, above);
            }
        }
        above.pop();
    }

    fn entry(&mut self, root: &Path, real_root: &Path, rel: &str, is_link: bool, is_dir: bool) {
        let options = &self.roots.options;
        if (is_link && options.ignore_links) || options.ignore.has(rel) {
            return;
        }
        let full = root.join(rel);
        if is_dir {
            self.found.dirs.insert(rel.to_owned());
            if self.roots.host.read_dir(&full).is_ok_and(|names| names.is_empty()) {
                self.found.empty_dirs.insert(rel.to_owned());
            }
        } else {
            self.found.files.insert(rel.to_owned());
        }
        if is_link && let Ok(target) = self.roots.host.read_link(&full) {
            // Salt reads a target that begins with `..` from the link itself, not from its folder.
            let from = if target.starts_with("..") { Some(full.as_path()) } else { full.parent() };
            let joined = normalised(&from.unwrap_or(root).join(&target));
            let inside = real_as_far_as_known(&*self.roots.host, &joined).starts_with(real_root);
            if inside || !options.follow_links {
                let target = target.to_string_lossy().into_owned();
                self.found.links.insert(rel.to_owned(), target);
            }
        }
    }
}

/// Drops `.` and takes `..` literally, without asking the disk.
fn normalised(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            part => clean.push(part),
        }
    }
    clean
}

/// Resolves links in the part of a path that exists.
fn real_as_far_as_known(host: &dyn Host, path: &Path) -> PathBuf {
    for known in path.ancestors() {
        if let Ok(real) = host.real_path(known) {
            let rest = path.strip_prefix(known).unwrap_or(Path::new(""));
            return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        }
    }
    path.to_owned()
}
