//! Templates by name: what `include`, `import` and `extends` ask for.

use std::sync::Arc;

use halite_value::{SmolStr, Value};

use super::{error::Error, eval::Vars, filters::normal_path};
use crate::sls_context::first_of;

/// A template as the loader found it.
#[derive(Clone, Debug)]
pub struct Source {
    pub text: Arc<str>,
    /// The file on disk, for messages.
    pub file: Option<Arc<str>>,
}

/// The variables that every template of one rendering sees. A loader may change them.
#[derive(Debug)]
pub struct Globals {
    pub(crate) vars: Arc<Vars>,
}

impl Globals {
    pub fn get(&self, name: &str) -> Option<Value> {
        self.vars.get(name).cloned()
    }

    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        Arc::make_mut(&mut self.vars).insert(SmolStr::new(name), value.into());
    }
}

/// Finds templates. Asked once per name and rendering.
pub trait Loader: Send + Sync {
    /// Returns the template of a name; `None` if there is none.
    fn load(&self, name: &str, globals: &mut Globals) -> Result<Option<Source>, Error>;

    /// Returns the names there are, for a hint where one was not found.
    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A loader that finds nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLoader;

impl Loader for NoLoader {
    fn load(&self, _: &str, _: &mut Globals) -> Result<Option<Source>, Error> {
        Ok(None)
    }
}

/// The files of one Salt environment.
pub trait Files: Send + Sync {
    /// Returns a file by its path below `salt://`; `None` if there is none.
    fn read(&self, path: &str) -> Result<Option<Source>, Error>;

    /// Returns the paths there are.
    fn list(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Finds templates by Salt's rules: names are paths below `salt://`; `./` and `../` are relative to
/// the template that was loaded last. As a side effect it sets `tpldir`, `tplfile` and `tpldot`, and
/// formulas rely on that.
#[derive(Debug)]
pub struct SaltLoader<F> {
    pub files: F,
    /// The file client is local: an absolute `tpldir` is then cut off again.
    pub local: bool,
}

impl<F: Files> Loader for SaltLoader<F> {
    fn load(&self, name: &str, globals: &mut Globals) -> Result<Option<Source>, Error> {
        let first = name.split('/').next().unwrap_or_default();
        let relative = matches!(first, "." | "..");
        let mut path = name.to_owned();
        let base = globals.get("tpldir");
        let base = base.as_ref().map(Value::to_str);
        if relative {
            let Some(base) = &base else { return Ok(None) };
            path = normal_path(&format!("{base}/{name}"));
            if path.split('/').next() == Some("..") {
                return Ok(None);
            }
            if self.local && base.starts_with('/') {
                path = relative_path(&path, base);
            }
        }
        let dir = path.rsplit_once('/').map_or("", |(dir, _)| dir);
        let (dir, file) = if relative {
            (base.as_ref().map_or(dir, |base| base.as_str()), name)
        } else {
            (dir, path.as_str())
        };
        if !name.is_empty() {
            globals.set("tplfile", file);
            globals.set("tpldot", dir.replace('/', "."));
            globals.set("tpldir", if dir.is_empty() { "." } else { dir });
            globals.set("tplroot", first_of(dir));
        }
        self.files.read(&path)
    }

    fn names(&self) -> Vec<String> {
        self.files.list()
    }
}

/// Python's `os.path.relpath` of two absolute, normal paths.
fn relative_path(path: &str, start: &str) -> String {
    let parts = |path: &str| -> Vec<String> {
        path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect()
    };
    let (path, start) = (parts(path), parts(&normal_path(start)));
    let common = path.iter().zip(&start).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("..".to_owned(), start.len() - common);
    let relative: Vec<String> = up.chain(path[common..].iter().cloned()).collect();
    if relative.is_empty() { ".".to_owned() } else { relative.join("/") }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Everything;

    impl Files for Everything {
        fn read(&self, path: &str) -> Result<Option<Source>, Error> {
            Ok(Some(Source { text: path.into(), file: None }))
        }
    }

    fn check(tpldir: &str, name: &str, path: Option<&str>, tpldir_after: &str) {
        let mut globals = Globals { vars: Arc::default() };
        globals.set("tpldir", tpldir);
        let loader = SaltLoader { files: Everything, local: true };
        let found = loader.load(name, &mut globals).expect("loads").map(|source| source.text);
        assert_eq!(found.as_deref(), path, "{name}");
        assert_eq!(globals.get("tpldir"), Some(Value::str(tpldir_after)), "{name}");
    }

    #[test]
    fn names_are_resolved_as_salt_does() {
        check("a/b", "c/d.jinja", Some("c/d.jinja"), "c");
        check("a/b", "d.jinja", Some("d.jinja"), ".");
        check("a/b", "./d.jinja", Some("a/b/d.jinja"), "a/b");
        check("a/b", "../d.jinja", Some("a/d.jinja"), "a/b");
        check("a", "../../d.jinja", None, "a");
    }
}
