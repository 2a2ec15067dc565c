//! Which framing a listener on the event bus expects.
//!
//! Salt 3006.26 and later 3006 releases want four bytes of length before each event; every other
//! release stops at them. A listener says nothing, so the only way to know is to look who it is: the
//! kernel names the process at the other end of a unix socket, the libraries that process has mapped
//! tell where its Python packages are, and there a folder `salt-<version>.dist-info` tells the rest.
//! Whoever cannot be recognised (another program, another host, no rights to look) gets the framing
//! that serves all other releases.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Tells whether the process expects a length before each event. Reads a few files.
pub(crate) fn wants_prefix(pid: i32) -> bool {
    let root = PathBuf::from(format!("/proc/{pid}"));
    let maps = std::fs::read_to_string(root.join("maps")).unwrap_or_default();
    packages(&maps).into_iter().any(|folder| {
        // As the process sees it: it may live in a container.
        let inside = root.join("root").join(folder.strip_prefix("/").unwrap_or(&folder));
        version_in(&inside).is_some_and(|version| is_prefixed(&version))
    })
}

/// The folders of Python packages among the mapped files.
fn packages(maps: &str) -> BTreeSet<PathBuf> {
    let folder = |line: &str| {
        let path = &line[line.find('/')?..];
        let name = ["/site-packages/", "/dist-packages/"]
            .into_iter()
            .find_map(|name| path.find(name).map(|at| at + name.len() - 1))?;
        Some(PathBuf::from(&path[..name]))
    };
    maps.lines().filter_map(folder).collect()
}

/// The version of Salt installed in a folder of packages.
fn version_in(folder: &Path) -> Option<String> {
    std::fs::read_dir(folder).ok()?.flatten().find_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let version = name.strip_prefix("salt-")?;
        let version =
            version.strip_suffix(".dist-info").or_else(|| version.strip_suffix(".egg-info"))?;
        version.starts_with(|first: char| first.is_ascii_digit()).then(|| version.to_owned())
    })
}

fn is_prefixed(version: &str) -> bool {
    let mut numbers =
        version.split(|letter: char| !letter.is_ascii_digit()).map(|part| part.parse::<u32>().ok());
    matches!((numbers.next().flatten(), numbers.next().flatten()), (Some(3006), Some(26..)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        for (version, expected) in [
            ("3006.25", false),
            ("3006.26", true),
            ("3006.28", true),
            ("3006.30+12.gabc", true),
            ("3006", false),
            ("3007.15", false),
            ("3008.3", false),
            ("rubbish", false),
        ] {
            assert_eq!(is_prefixed(version), expected, "{version}");
        }
    }

    #[test]
    fn folders_of_packages() {
        let maps = "7f00-7f10 r-xp 00000000 08:01 12 /usr/lib/x86_64-linux-gnu/libc.so.6\n\
                    7f10-7f20 r-xp 00000000 08:01 13 /opt/s/lib/python3.11/site-packages/zmq/a.so\n\
                    7f20-7f30 r-xp 00000000 08:01 13 /opt/s/lib/python3.11/site-packages/msgpack/b.so\n\
                    7f30-7f40 rw-p 00000000 00:00 0\n";
        let found = packages(maps);
        assert_eq!(found.len(), 1);
        assert!(found.contains(Path::new("/opt/s/lib/python3.11/site-packages")));
        let none = i32::try_from(std::process::id()).is_ok_and(wants_prefix);
        assert!(!none, "this is no Salt");
    }
}
