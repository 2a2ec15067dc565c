//! Paths as text, with the rules of Python's `posixpath`.
//!
//! Users see and compare these texts, so `//`, `.` and `..` are folded only where Salt folds them.

use std::{ffi::OsStr, path::Path};

use halite_spec::{Cx, Error, Rest, Result, function};
use halite_value::Value;

/// Returns the path with a leading `~` or `~user` replaced by the home folder, if it is known.
pub fn expand_user(cx: &Cx, path: &str) -> String {
    let Some(rest) = path.strip_prefix('~') else { return path.to_owned() };
    let (name, rest) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let home = if name.is_empty() {
        let from_env = cx.host.env(OsStr::new("HOME")).map(|home| home.to_string_lossy().into());
        from_env.or_else(|| cx.host.user_with_id(cx.host.uid()).ok()?.map(|user| user.home))
    } else {
        cx.host.user_named(name).ok().flatten().map(|user| user.home)
    };
    match home {
        Some(home) => {
            let expanded = format!("{}{rest}", home.trim_end_matches('/'));
            if expanded.is_empty() { "/".to_owned() } else { expanded }
        }
        None => path.to_owned(),
    }
}

/// Returns the path with `$NAME` and `${NAME}` replaced where they are set.
pub fn expand_vars(cx: &Cx, path: &str) -> String {
    let mut out = String::new();
    let mut rest = path;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let (name, length) = match after.strip_prefix('{') {
            Some(inner) => match inner.find('}') {
                Some(end) => (&inner[..end], end + 2),
                None => ("", 0),
            },
            None => {
                let word = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
                let end = after.find(word).unwrap_or(after.len());
                (&after[..end], end)
            }
        };
        match cx.host.env(OsStr::new(name)).filter(|_| !name.is_empty()) {
            Some(value) => out.push_str(&value.to_string_lossy()),
            None => out.push_str(&rest[at..at + 1 + length]),
        }
        rest = &after[length..];
    }
    out + rest
}

pub fn is_abs(path: &str) -> bool {
    path.starts_with('/')
}

/// Python's `os.path.normpath`.
pub fn normalized(path: &str) -> String {
    if path.is_empty() {
        return ".".to_owned();
    }
    // Exactly two leading slashes are kept: POSIX lets them mean something else.
    let lead = match path.bytes().take_while(|&byte| byte == b'/').count() {
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
            ".." if lead.is_empty() => parts.push(part),
            ".." => {}
            part => parts.push(part),
        }
    }
    let joined = format!("{lead}{}", parts.join("/"));
    if joined.is_empty() { ".".to_owned() } else { joined }
}

/// Python's `os.path.split`.
pub fn split(path: &str) -> (&str, &str) {
    let at = path.rfind('/').map_or(0, |at| at + 1);
    let (head, tail) = path.split_at(at);
    let trimmed = head.trim_end_matches('/');
    (if trimmed.is_empty() { head } else { trimmed }, tail)
}

pub fn parent(path: &str) -> &str {
    split(path).0
}

pub fn file_name(path: &str) -> &str {
    split(path).1
}

/// Python's `os.path.join` of two.
pub fn joined(base: &str, path: &str) -> String {
    if is_abs(path) {
        path.to_owned()
    } else if base.is_empty() || base.ends_with('/') {
        format!("{base}{path}")
    } else {
        format!("{base}/{path}")
    }
}

/// Python's `os.path.relpath` of two absolute paths.
pub fn relative(path: &str, base: &str) -> String {
    let (path, base) = (normalized(path), normalized(base));
    let split = |text: &str| -> Vec<String> {
        text.split('/').filter(|part| !part.is_empty() && *part != ".").map(str::to_owned).collect()
    };
    let (path, base) = (split(&path), split(&base));
    let common = path.iter().zip(&base).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("..", base.len() - common);
    let parts: Vec<&str> = up.chain(path[common..].iter().map(String::as_str)).collect();
    if parts.is_empty() { ".".to_owned() } else { parts.join("/") }
}

/// Returns the resolved path, as far as it can be resolved: what is missing stays as it is.
pub fn real(cx: &Cx, path: &str) -> Result<String> {
    let path = normalized(path);
    match cx.host.real_path(Path::new(&path)) {
        Ok(real) => return Ok(real.display().to_string()),
        Err(error) if error.is_missing() => {}
        Err(error) => return Err(error.into()),
    }
    // A link whose target is missing is followed all the same.
    if let Ok(target) = cx.host.read_link(Path::new(&path)) {
        let target = normalized(&joined(parent(&path), &target.to_string_lossy()));
        if target != path {
            return real(cx, &target);
        }
    }
    Ok(match split(&path) {
        (head, tail) if !tail.is_empty() && head != path => joined(&real(cx, head)?, tail),
        _ => path,
    })
}

/// Returns the names in a folder; none when it is none, or not there.
fn names_in(cx: &Cx, folder: &Path) -> Result<Vec<std::ffi::OsString>> {
    match cx.host.read_dir(folder) {
        Ok(names) => Ok(names),
        Err(error) if error.is_missing() => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

/// Matches a path against `*`, `?`, `[…]` on disk, as Python's `glob.glob`; sorted.
pub fn glob(cx: &Cx, pattern: &str) -> Result<Vec<String>> {
    if !halite_target::fnmatch::is_pattern(pattern) {
        let there = cx.host.is_there(Path::new(pattern))?;
        return Ok(if there { vec![pattern.to_owned()] } else { Vec::new() });
    }
    let (head, tail) = split(pattern);
    let folders = if head.is_empty() {
        vec![String::new()]
    } else if halite_target::fnmatch::is_pattern(head) {
        glob(cx, head)?
    } else {
        vec![head.to_owned()]
    };
    let mut found = Vec::new();
    for folder in folders {
        let at = if folder.is_empty() { "." } else { &folder };
        if tail.is_empty() {
            if cx.host.is_dir(Path::new(at))? {
                found.push(joined(&folder, ""));
            }
            continue;
        }
        if !halite_target::fnmatch::is_pattern(tail) {
            let path = joined(&folder, tail);
            if cx.host.is_there(Path::new(&path))? {
                found.push(path);
            }
            continue;
        }
        let matcher = halite_target::fnmatch::Glob::new(tail);
        for name in names_in(cx, Path::new(at))? {
            let name = name.to_string_lossy();
            let hidden = name.starts_with('.') && !tail.starts_with('.');
            if !hidden && matcher.matches(&name) {
                found.push(joined(&folder, &name));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Return the name of the parent folder: `..`.
///
/// ```console
/// $ salt web1 file.pardir
/// ```
#[function]
pub fn pardir(_cx: &Cx) -> Result<&'static str> {
    Ok("..")
}

/// Fold `.`, `..` and repeated slashes of a path.
///
/// ```console
/// $ salt web1 file.normpath /srv/app/app.conf
/// ```
#[function]
pub fn normpath(
    _cx: &Cx,
    /// The path.
    path: String,
) -> Result<String> {
    Ok(normalized(&path))
}

/// Return the last part of a path.
///
/// ```console
/// $ salt web1 file.basename /srv/app/app.conf
/// ```
#[function]
pub fn basename(
    _cx: &Cx,
    /// The path.
    path: String,
) -> Result<String> {
    Ok(file_name(&path).to_owned())
}

/// Return a path without its last part.
///
/// ```console
/// $ salt web1 file.dirname /srv/app/app.conf
/// ```
#[function]
pub fn dirname(
    _cx: &Cx,
    /// The path.
    path: String,
) -> Result<String> {
    Ok(parent(&path).to_owned())
}

/// Join parts to a path; an absolute part begins anew.
///
/// ```console
/// $ salt web1 file.join
/// ```
#[function]
pub fn join(
    _cx: &Cx,
    /// The parts.
    #[arg(by_position)]
    args: Rest,
) -> Result<String> {
    let mut parts = args.args.iter().map(Value::to_str);
    let first = parts
        .next()
        .ok_or_else(|| Error::invalid("join() missing 1 required positional argument: 'a'"))?;
    Ok(parts.fold(first.to_string(), |path, part| joined(&path, &part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalizes_as_python_does() {
        for (path, expected) in [
            ("", "."),
            ("/", "/"),
            ("//", "//"),
            ("///", "/"),
            ("/..", "/"),
            ("../a", "../a"),
            ("a/../..", ".."),
            ("a/./b//c/..", "a/b"),
        ] {
            assert_eq!(normalized(path), expected, "{path}");
        }
    }

    #[test]
    fn splits_and_joins() {
        assert_eq!(split("/a/b"), ("/a", "b"));
        assert_eq!(split("/a"), ("/", "a"));
        assert_eq!(split("a/"), ("a", ""));
        assert_eq!(split("a"), ("", "a"));
        assert_eq!(joined("/a", "b"), "/a/b");
        assert_eq!(joined("/a", "/b"), "/b");
        assert_eq!(relative("/a/b/c", "/a/d"), "../b/c");
        assert_eq!(relative("/a", "/a"), ".");
    }
}
