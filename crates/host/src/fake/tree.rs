//! The file tree of a fake machine.
//!
//! As on a real one, names lead to numbered nodes, so that hard links share one. Errors carry the
//! system's own numbers: messages read as they would outside.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    io,
    path::{Component, Path, PathBuf},
};

use halite_spec::host::{Kind, Stat, Write};

use super::errno;

pub(super) enum Body {
    File(Vec<u8>),
    Dir(BTreeMap<OsString, u64>),
    Link(PathBuf),
    /// A device, a pipe or a socket, and what it stands for.
    Node(Kind, u64),
}

impl Body {
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::File(_) => Kind::File,
            Self::Dir(_) => Kind::Dir,
            Self::Link(_) => Kind::Link,
            Self::Node(kind, _) => *kind,
        }
    }

    fn size(&self) -> u64 {
        match self {
            Self::File(content) => content.len() as u64,
            Self::Dir(_) => 4096,
            Self::Link(target) => target.as_os_str().len() as u64,
            Self::Node(..) => 0,
        }
    }
}

pub(super) struct Node {
    pub(super) body: Body,
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) atime: f64,
    pub(super) mtime: f64,
    pub(super) ctime: f64,
    pub(super) xattrs: BTreeMap<String, Vec<u8>>,
}

pub(super) struct Tree {
    pub(super) nodes: BTreeMap<u64, Node>,
    next: u64,
    /// Stamps what is changed.
    pub(super) now: f64,
    /// Owns what is made.
    pub(super) maker: (u32, u32),
}

pub(super) const ROOT: u64 = 2;

/// Where a path leads: the folder, the name in it, and the node if it is there.
struct Spot {
    folder: u64,
    name: OsString,
    node: Option<u64>,
}

impl Tree {
    pub(super) fn new(now: f64) -> Self {
        let mut tree = Self { nodes: BTreeMap::new(), next: ROOT, now, maker: (0, 0) };
        tree.add(Body::Dir(BTreeMap::new()), 0o755);
        tree
    }

    fn add(&mut self, body: Body, mode: u32) -> u64 {
        let (uid, gid) = self.maker;
        let (atime, mtime, ctime) = (self.now, self.now, self.now);
        let xattrs = BTreeMap::new();
        let node = Node { body, mode: mode & 0o7777, uid, gid, atime, mtime, ctime, xattrs };
        self.next += 1;
        self.nodes.insert(self.next - 1, node);
        self.next - 1
    }

    fn entries(&self, folder: u64) -> io::Result<&BTreeMap<OsString, u64>> {
        match self.nodes.get(&folder).map(|node| &node.body) {
            Some(Body::Dir(entries)) => Ok(entries),
            Some(_) => Err(errno(libc::ENOTDIR)),
            None => Err(errno(libc::ENOENT)),
        }
    }

    fn entries_mut(&mut self, folder: u64) -> io::Result<&mut BTreeMap<OsString, u64>> {
        let now = self.now;
        match self.nodes.get_mut(&folder) {
            Some(Node { body: Body::Dir(entries), mtime, ctime, .. }) => {
                (*mtime, *ctime) = (now, now);
                Ok(entries)
            }
            Some(_) => Err(errno(libc::ENOTDIR)),
            None => Err(errno(libc::ENOENT)),
        }
    }

    /// Walks a path. The last name need not be there; whether it is followed, if it is a link, is
    /// up to the caller. Relative paths start at the root.
    fn walk(
        &self,
        path: &Path,
        follow: bool,
        trail: &mut Vec<(OsString, u64)>,
        depth: u32,
    ) -> io::Result<Spot> {
        if path.as_os_str().is_empty() {
            return Err(errno(libc::ENOENT));
        }
        if path.is_absolute() {
            trail.clear();
        }
        let here = |trail: &[(OsString, u64)]| trail.last().map_or(ROOT, |(_, node)| *node);
        // «name/» means the folder itself.
        let slash = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        let mut parts = path.components().peekable();
        while let Some(part) = parts.next() {
            let name = match part {
                Component::Normal(name) => name,
                Component::ParentDir => {
                    self.entries(here(trail))?;
                    trail.pop();
                    continue;
                }
                _ => continue,
            };
            let folder = here(trail);
            let last = parts.peek().is_none();
            let Some(&node) = self.entries(folder)?.get(name) else {
                let error = errno(libc::ENOENT);
                let spot = Spot { folder, name: name.into(), node: None };
                return if last { Ok(spot) } else { Err(error) };
            };
            if let Body::Link(target) = &self.nodes[&node].body
                && (!last || follow || slash)
            {
                if depth == 0 {
                    return Err(errno(libc::ELOOP));
                }
                let rest: PathBuf = target.iter().chain(parts.map(Component::as_os_str)).collect();
                return self.walk(&rest, follow, trail, depth - 1);
            }
            trail.push((name.into(), node));
        }
        if slash {
            self.entries(here(trail))?;
        }
        let node = Some(here(trail));
        let name = trail.pop().map(|(name, _)| name).unwrap_or_default();
        Ok(Spot { folder: here(trail), name, node })
    }

    fn spot(&self, path: &Path, follow: bool) -> io::Result<Spot> {
        self.walk(path, follow, &mut Vec::new(), 40)
    }

    fn find(&self, path: &Path, follow: bool) -> io::Result<u64> {
        self.spot(path, follow)?.node.ok_or_else(|| errno(libc::ENOENT))
    }

    pub(super) fn node(&self, path: &Path, follow: bool) -> io::Result<&Node> {
        Ok(&self.nodes[&self.find(path, follow)?])
    }

    /// Returns a node that is about to be changed.
    pub(super) fn touch(&mut self, path: &Path, follow: bool) -> io::Result<&mut Node> {
        let found = self.find(path, follow)?;
        let node = self.nodes.get_mut(&found).ok_or_else(|| errno(libc::ENOENT))?;
        node.ctime = self.now;
        Ok(node)
    }

    pub(super) fn content(&self, path: &Path) -> io::Result<Vec<u8>> {
        match &self.node(path, true)?.body {
            Body::File(content) => Ok(content.clone()),
            Body::Dir(_) => Err(errno(libc::EISDIR)),
            _ => Ok(Vec::new()),
        }
    }

    pub(super) fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        let mut trail = Vec::new();
        let spot = self.walk(path, true, &mut trail, 40)?;
        let mut real = PathBuf::from("/");
        real.extend(trail.iter().map(|(name, _)| name));
        real.push(spot.name);
        spot.node.map(|_| real.components().collect()).ok_or_else(|| errno(libc::ENOENT))
    }

    pub(super) fn links(&self, inode: u64) -> u64 {
        let folders = self.nodes.values().filter_map(|node| match &node.body {
            Body::Dir(entries) => Some(entries),
            _ => None,
        });
        folders.flat_map(BTreeMap::values).filter(|entry| **entry == inode).count() as u64
    }

    pub(super) fn stat(&self, path: &Path, follow: bool) -> io::Result<Stat> {
        let inode = self.find(path, follow)?;
        let node = &self.nodes[&inode];
        let rdev = if let Body::Node(_, rdev) = node.body { rdev } else { 0 };
        let links = match &node.body {
            Body::Dir(entries) => {
                let is_dir = |entry: &&u64| matches!(self.nodes[entry].body, Body::Dir(_));
                2 + entries.values().filter(is_dir).count() as u64
            }
            _ => self.links(inode),
        };
        Ok(Stat {
            kind: node.body.kind(),
            mode: node.mode,
            uid: node.uid,
            gid: node.gid,
            size: node.body.size(),
            inode,
            links,
            device: 1,
            rdev,
            atime: node.atime,
            mtime: node.mtime,
            ctime: node.ctime,
        })
    }

    fn put(&mut self, folder: u64, name: &OsStr, inode: u64) -> io::Result<()> {
        let old = self.entries_mut(folder)?.insert(name.into(), inode);
        if let Some(old) = old {
            self.forget(old);
        }
        Ok(())
    }

    /// Drops a node (and what is below it) that no name leads to any more.
    fn forget(&mut self, inode: u64) {
        if self.links(inode) > 0 {
            return;
        }
        if let Some(Node { body: Body::Dir(entries), .. }) = self.nodes.remove(&inode) {
            for below in entries.into_values() {
                self.forget(below);
            }
        }
    }

    pub(super) fn create(&mut self, path: &Path, body: Body, mode: u32) -> io::Result<()> {
        let spot = self.spot(path, false)?;
        if spot.node.is_some() {
            return Err(errno(libc::EEXIST));
        }
        let inode = self.add(body, mode);
        self.put(spot.folder, &spot.name, inode)
    }

    pub(super) fn replace(&mut self, path: &Path, content: Vec<u8>, how: &Write) -> io::Result<()> {
        let spot = self.spot(path, true)?;
        let old = spot.node.map(|inode| &self.nodes[&inode]);
        let (mut mode, (mut uid, mut gid), mut xattrs) = (0o644, self.maker, BTreeMap::new());
        match old.map(|node| &node.body) {
            Some(Body::Dir(_)) => return Err(errno(libc::EISDIR)),
            Some(Body::Node(..)) => return Ok(()),
            _ => {}
        }
        if let Some(old) = old {
            (mode, uid, gid, xattrs) = (old.mode, old.uid, old.gid, old.xattrs.clone());
        }
        let inode = self.add(Body::File(content), how.mode.unwrap_or(mode));
        let node = self.nodes.get_mut(&inode).ok_or_else(|| errno(libc::ENOENT))?;
        node.uid = how.uid.unwrap_or(uid);
        node.gid = how.gid.unwrap_or(gid);
        node.xattrs = xattrs;
        self.put(spot.folder, &spot.name, inode)
    }

    pub(super) fn append(&mut self, path: &Path, content: &[u8]) -> io::Result<()> {
        if self.spot(path, true)?.node.is_none() {
            return self.replace(path, content.into(), &Write::default());
        }
        let now = self.now;
        let node = self.touch(path, true)?;
        match &mut node.body {
            Body::File(old) => old.extend_from_slice(content),
            Body::Dir(_) => return Err(errno(libc::EISDIR)),
            _ => return Ok(()),
        }
        node.mtime = now;
        Ok(())
    }

    /// Removes a name, and what only it led to.
    pub(super) fn unlink(&mut self, path: &Path) -> io::Result<()> {
        let spot = self.spot(path, false)?;
        let inode = spot.node.ok_or_else(|| errno(libc::ENOENT))?;
        if inode == ROOT {
            return Err(errno(libc::EBUSY));
        }
        self.entries_mut(spot.folder)?.remove(&spot.name);
        self.forget(inode);
        Ok(())
    }

    pub(super) fn hard_link(&mut self, target: &Path, link: &Path) -> io::Result<()> {
        let inode = self.find(target, false)?;
        if matches!(self.nodes[&inode].body, Body::Dir(_)) {
            return Err(errno(libc::EPERM));
        }
        let spot = self.spot(link, false)?;
        if spot.node.is_some() {
            return Err(errno(libc::EEXIST));
        }
        self.put(spot.folder, &spot.name, inode)
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let source = self.spot(from, false)?;
        let inode = source.node.ok_or_else(|| errno(libc::ENOENT))?;
        let target = self.spot(to, false)?;
        let is_dir = matches!(self.nodes[&inode].body, Body::Dir(_));
        if is_dir && self.is_below(target.folder, inode) {
            return Err(errno(libc::EINVAL));
        }
        match target.node.map(|node| &self.nodes[&node].body) {
            Some(_) if target.node == Some(inode) => return Ok(()),
            Some(Body::Dir(_)) if !is_dir => return Err(errno(libc::EISDIR)),
            Some(Body::Dir(entries)) if !entries.is_empty() => return Err(errno(libc::ENOTEMPTY)),
            Some(Body::Dir(_)) | None => {}
            Some(_) if is_dir => return Err(errno(libc::ENOTDIR)),
            Some(_) => {}
        }
        self.put(target.folder, &target.name, inode)?;
        self.entries_mut(source.folder)?.remove(&source.name);
        Ok(())
    }

    fn is_below(&self, folder: u64, top: u64) -> bool {
        folder == top
            || self
                .entries(top)
                .is_ok_and(|entries| entries.values().any(|below| self.is_below(folder, *below)))
    }
}
