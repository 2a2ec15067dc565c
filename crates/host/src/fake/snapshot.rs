//! A fake machine at one moment, for comparing.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
};

use halite_spec::host::Kind;

use super::tree::{Body, ROOT, Tree};

/// Everything a look at the machine can tell, but the change times.
#[derive(Clone, PartialEq)]
pub struct Snapshot {
    entries: BTreeMap<PathBuf, Entry>,
    env: BTreeMap<OsString, OsString>,
}

#[derive(Clone, Debug, PartialEq)]
struct Entry {
    kind: Kind,
    mode: u32,
    uid: u32,
    gid: u32,
    /// Text, or what a link or device leads to.
    content: Vec<u8>,
    mtime: f64,
    atime: f64,
    links: u64,
    xattrs: BTreeMap<String, Vec<u8>>,
}

impl Snapshot {
    pub(super) fn of(tree: &Tree, env: &BTreeMap<OsString, OsString>) -> Self {
        let mut entries = BTreeMap::new();
        collect(tree, ROOT, Path::new("/"), &mut entries);
        Self { entries, env: env.clone() }
    }

    /// Returns the paths there are.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.entries.keys().map(PathBuf::as_path)
    }

    /// Returns what differs in the other one, a line each: `+ /new`, `- /gone`,
    /// `~ /etc/x mode: 0644 -> 0600`. The times of a folder are not mentioned: they only repeat
    /// that something in it was made or removed.
    pub fn diff(&self, other: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        for (path, old) in &self.entries {
            match other.entries.get(path) {
                None => lines.push(format!("- {}", path.display())),
                Some(new) => {
                    let changes = old.changes(new);
                    let changes =
                        changes.into_iter().map(|change| format!("~ {} {change}", path.display()));
                    lines.extend(changes);
                }
            }
        }
        let new = other.entries.keys().filter(|path| !self.entries.contains_key(*path));
        lines.extend(new.map(|path| format!("+ {}", path.display())));
        for name in self.env.keys().chain(other.env.keys()) {
            let (old, new) = (self.env.get(name), other.env.get(name));
            let line = format!("~ ${}: {old:?} -> {new:?}", name.to_string_lossy());
            if old != new && !lines.contains(&line) {
                lines.push(line);
            }
        }
        lines
    }
}

fn collect(tree: &Tree, inode: u64, path: &Path, entries: &mut BTreeMap<PathBuf, Entry>) {
    let node = &tree.nodes[&inode];
    let mut links = tree.links(inode);
    let content = match &node.body {
        Body::File(content) => content.clone(),
        Body::Link(target) => target.as_os_str().as_encoded_bytes().to_vec(),
        Body::Node(_, rdev) => format!("{rdev:#x}").into(),
        Body::Dir(below) => {
            for (name, inode) in below {
                collect(tree, *inode, &path.join(name), entries);
            }
            links = 0;
            Vec::new()
        }
    };
    let entry = Entry {
        kind: node.body.kind(),
        mode: node.mode,
        uid: node.uid,
        gid: node.gid,
        content,
        mtime: node.mtime,
        atime: node.atime,
        links,
        xattrs: node.xattrs.clone(),
    };
    entries.insert(path.to_owned(), entry);
}

impl Entry {
    fn changes(&self, new: &Self) -> Vec<String> {
        let text = |bytes: &[u8]| format!("{:?}", String::from_utf8_lossy(bytes));
        let times = self.kind != Kind::Dir || new.kind != Kind::Dir;
        let mut changes = Vec::new();
        let mut note = |differs: bool, what: &str, old: String, new: String| {
            if differs {
                changes.push(format!("{what}: {old} -> {new}"));
            }
        };
        note(self.kind != new.kind, "kind", self.kind.word().into(), new.kind.word().into());
        note(self.content != new.content, "content", text(&self.content), text(&new.content));
        let octal = |mode| format!("{mode:04o}");
        note(self.mode != new.mode, "mode", octal(self.mode), octal(new.mode));
        note(self.uid != new.uid, "user", self.uid.to_string(), new.uid.to_string());
        note(self.gid != new.gid, "group", self.gid.to_string(), new.gid.to_string());
        note(
            times && self.mtime != new.mtime,
            "mtime",
            self.mtime.to_string(),
            new.mtime.to_string(),
        );
        note(
            times && self.atime != new.atime,
            "atime",
            self.atime.to_string(),
            new.atime.to_string(),
        );
        note(self.links != new.links, "links", self.links.to_string(), new.links.to_string());
        note(
            self.xattrs != new.xattrs,
            "attributes",
            format!("{:?}", self.xattrs),
            format!("{:?}", new.xattrs),
        );
        changes
    }
}

/// Short: a failing `assert_eq!` would print the whole machine twice. Compare [`Snapshot::diff`].
impl fmt::Debug for Snapshot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Snapshot of {} paths; see diff()", self.entries.len())
    }
}
