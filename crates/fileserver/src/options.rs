//! What the configuration says about serving files.

use std::{path::PathBuf, sync::Arc, time::Duration};

use halite_pyregex::{Flags, PyRegex};
use halite_target::fnmatch::Glob;
use halite_value::{Dict, SmolStr, Value};

use crate::hash::Kind;

/// The options of the `roots` back end.
#[derive(Clone, Debug)]
pub struct Options {
    /// Environments with their folders; `__env__` stands for any environment not named.
    pub file_roots: Vec<(SmolStr, Vec<PathBuf>)>,
    /// Links lead where they lead; otherwise a link that leaves its root is not served.
    pub follow_links: bool,
    /// Links are not listed.
    pub ignore_links: bool,
    pub ignore: Ignore,
    pub hash_type: Kind,
    /// Bytes per served piece.
    pub buffer_size: usize,
    /// How long a list of files is believed.
    pub list_cache_time: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            file_roots: vec![("base".into(), vec!["/srv/salt".into()])],
            follow_links: true,
            ignore_links: false,
            ignore: Ignore::default(),
            hash_type: Kind::Sha256,
            buffer_size: 1 << 20,
            list_cache_time: Duration::from_secs(20),
        }
    }
}

impl Options {
    /// Reads the options of a master or minion. What is absent or of a wrong type has its default.
    pub fn from_opts(opts: &Dict) -> Self {
        Self::with_roots(opts, "file_roots")
    }

    /// As [`Options::from_opts`], for another set of roots (`pillar_roots`).
    pub fn with_roots(opts: &Dict, roots: &str) -> Self {
        let mut options = Self::default();
        if let Some(Value::Dict(roots)) = opts.get(roots) {
            options.file_roots = roots_of(&roots);
        }
        let flag = |name: &str, default| opts.get(name).map_or(default, |value| value.truthy());
        options.follow_links = flag("fileserver_followsymlinks", true);
        options.ignore_links = flag("fileserver_ignoresymlinks", false);
        options.ignore = Ignore::new(
            &texts(opts.get("file_ignore_regex").as_ref()),
            &texts(opts.get("file_ignore_glob").as_ref()),
        );
        let hash = opts.get("hash_type").map(|name| name.to_str().to_lowercase());
        options.hash_type = hash.and_then(|name| Kind::named(&name)).unwrap_or(Kind::Sha256);
        let number = |name: &str| opts.get(name).and_then(|value| value.to_int());
        if let Some(size) = number("file_buffer_size").and_then(|size| usize::try_from(size).ok())
            && size > 0
        {
            options.buffer_size = size.min(64 << 20);
        }
        if let Some(time) = number("fileserver_list_cache_time") {
            options.list_cache_time = Duration::from_secs(u64::try_from(time).unwrap_or(0));
        }
        options
    }

    /// Returns the folders of an environment; empty if it is not served.
    pub fn roots(&self, saltenv: &str) -> Vec<PathBuf> {
        let of = |env: &str| self.file_roots.iter().find(|(own, _)| own == env);
        if let Some((_, roots)) = of(saltenv) {
            return roots.clone();
        }
        // The name becomes part of a path, and it comes from outside.
        let is_name = !saltenv.is_empty()
            && !saltenv.contains(['/', '\\', '\0'])
            && saltenv != "."
            && saltenv != "..";
        match of("__env__") {
            Some((_, roots)) if is_name => roots
                .iter()
                .map(|root| root.to_string_lossy().replace("__env__", saltenv).into())
                .collect(),
            _ => Vec::new(),
        }
    }
}

fn roots_of(roots: &Dict) -> Vec<(SmolStr, Vec<PathBuf>)> {
    roots
        .into_iter()
        .map(|(env, folders)| {
            let folders = texts(Some(&folders)).into_iter().map(PathBuf::from).collect();
            (env.to_str(), folders)
        })
        .collect()
}

/// A list of texts, or one.
fn texts(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::Str(text)) => vec![text.to_string()],
        Some(other) => {
            let items = other.items_of_sequence().unwrap_or_default();
            items.iter().map(|item| item.to_str().to_string()).collect()
        }
        None => Vec::new(),
    }
}

/// Files that are never served: `file_ignore_regex` and `file_ignore_glob`.
#[derive(Clone, Debug, Default)]
pub struct Ignore {
    regexes: Vec<Arc<PyRegex>>,
    globs: Vec<Glob>,
    /// Expressions that do not compile.
    pub invalid: Vec<String>,
}

impl Ignore {
    pub fn new(regexes: &[String], globs: &[String]) -> Self {
        let mut ignore = Self::default();
        for regex in regexes {
            match PyRegex::cached(regex, Flags::NONE) {
                Ok(regex) => ignore.regexes.push(regex),
                Err(_) => ignore.invalid.push(regex.clone()),
            }
        }
        ignore.globs = globs.iter().map(|glob| Glob::new(glob)).collect();
        ignore
    }

    /// Tells whether a path is to be ignored. A regular expression may match anywhere in it.
    pub fn has(&self, path: &str) -> bool {
        self.regexes.iter().any(|regex| regex.is_match(path).unwrap_or(false))
            || self.globs.iter().any(|glob| glob.matches(path))
    }
}

#[cfg(test)]
mod tests {
    use halite_value::{dict, list};

    use super::*;

    #[test]
    fn any_environment_maps_to_the_pattern_unless_it_is_a_path() {
        let opts = dict! { "file_roots" => dict! {
            "base" => list!["/srv/salt"], "__env__" => list!["/srv/__env__/salt"],
        }, "hash_type" => "MD5", "file_ignore_glob" => list!["*.pyc"], "file_ignore_regex" => "/\\.git($|/)" };
        let options = Options::from_opts(opts.as_dict().expect("dict"));
        assert_eq!(options.roots("base"), [PathBuf::from("/srv/salt")]);
        assert_eq!(options.roots("dev"), [PathBuf::from("/srv/dev/salt")]);
        for hostile in ["..", ".", "", "a/b", "../x", "a\0"] {
            assert!(options.roots(hostile).is_empty(), "{hostile:?}");
        }
        assert_eq!(options.hash_type, Kind::Md5);
        assert!(options.ignore.has("a/b.pyc") && options.ignore.has("x/.git/config"));
        assert!(!options.ignore.has("a/b.py"));
    }
}
