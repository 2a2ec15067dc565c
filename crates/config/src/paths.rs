//! Paths as Salt computes them: `root_dir` and Python's way of joining.
//!
//! All of this is text; nothing here looks at a disk.

use halite_value::Value;

use crate::Opts;

/// Returns the path without `.`, `..` and doubled slashes, as Python's `normpath`.
#[must_use]
pub fn normalize(path: &str) -> String {
    if path.is_empty() {
        return ".".into();
    }
    // Two leading slashes, and only two, mean something else in POSIX: Python keeps them.
    let root = match path.bytes().take_while(|&b| b == b'/').count() {
        0 => "",
        2 => "//",
        _ => "/",
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if !root.is_empty() => {}
            part => parts.push(part),
        }
    }
    let path = format!("{root}{}", parts.join("/"));
    if path.is_empty() { ".".into() } else { path }
}

/// Joins two paths; the second is relative to the first even if it begins with a slash.
#[must_use]
pub fn join(root: &str, path: &str) -> String {
    let path = normalize(path);
    normalize(&os_join(&normalize(root), path.trim_start_matches('/')))
}

/// Joins two paths as Python does: an absolute second path stands alone.
#[must_use]
pub(crate) fn os_join(folder: &str, path: &str) -> String {
    if path.starts_with('/') {
        path.into()
    } else if folder.is_empty() || folder.ends_with('/') {
        format!("{folder}{path}")
    } else {
        format!("{folder}/{path}")
    }
}

/// Returns the part before the last slash, as Python's `dirname`.
#[must_use]
pub(crate) fn dirname(path: &str) -> &str {
    match path.rfind('/') {
        None => "",
        Some(at) => {
            let head = path[..at].trim_end_matches('/');
            if head.is_empty() { &path[..=at] } else { head }
        }
    }
}

/// Returns the part after the last slash.
#[must_use]
pub(crate) fn basename(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns an absolute path, starting from `current_dir`.
#[must_use]
pub fn abspath(path: &str, current_dir: &str) -> String {
    normalize(&os_join(current_dir, path))
}

/// Replaces a leading `~` by a home folder.
#[must_use]
pub(crate) fn expand_home(path: &str, home: &str) -> String {
    match path.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
        _ => path.into(),
    }
}

/// Tells whether a log target is an address (`udp://…`, `file:///dev/log`) instead of a path.
#[must_use]
pub(crate) fn is_url(target: &str) -> bool {
    let Some((scheme, _)) = target.split_once(':') else { return false };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
}

/// Puts `root_dir` before the named path options.
///
/// An absolute path gets it too: only a path that already lies *below* `root_dir` stays. (So a path
/// equal to `root_dir` is doubled; Salt does the same.)
pub fn prepend_root_dir(opts: &Opts, names: &[&str], current_dir: &str) {
    let root = abspath(&opts.str("root_dir"), current_dir);
    for name in names {
        let Some(Value::Str(path)) = opts.get(name) else { continue };
        let below = path.strip_prefix(root.as_str()).filter(|rest| rest.starts_with('/'));
        opts.set(name, join(&root, below.unwrap_or(&path)));
    }
}

/// Puts `root_dir` before the named log targets, unless they are addresses.
pub(crate) fn prepend_root_dir_to_logs(opts: &Opts, names: &[&str], current_dir: &str) {
    for name in names {
        if opts.get(name).and_then(|v| v.as_str().map(|s| !is_url(s))).unwrap_or(false) {
            prepend_root_dir(opts, &[name], current_dir);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalized() {
        for (path, expected) in [
            ("", "."),
            ("/", "/"),
            ("//", "//"),
            ("///a", "/a"),
            ("//a", "//a"),
            ("a//b/./c/..", "a/b"),
            ("/..", "/"),
            ("../a", "../a"),
            ("a/..", "."),
        ] {
            assert_eq!(normalize(path), expected, "{path}");
        }
    }

    #[test]
    fn joined() {
        assert_eq!(join("/top", "/var/log"), "/top/var/log");
        assert_eq!(join("/", "/var//log/"), "/var/log");
        assert_eq!(join("/r/", "x"), "/r/x");
        assert_eq!(os_join("/a", "/b"), "/b");
        assert_eq!(os_join("/a/", "b"), "/a/b");
        assert_eq!(dirname("/etc/salt/master"), "/etc/salt");
        assert_eq!(dirname("/master"), "/");
        assert_eq!(dirname("master"), "");
    }

    #[test]
    fn addresses() {
        assert!(is_url("file:///dev/log"));
        assert!(is_url("udp://loghost:10514"));
        assert!(!is_url("/var/log/salt/master"));
        assert!(!is_url("log/a:b"));
    }
}
