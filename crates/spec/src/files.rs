//! The file client as content sees it: `salt://` files, wherever they are served from.

use std::path::PathBuf;

use halite_value::Value;

use crate::Result;

/// How a remote source is brought into the cache.
#[derive(Clone, Debug)]
pub struct Fetch {
    /// A hash (`sha256=…` or the digits): a cached copy that has it is not fetched again.
    pub source_hash: Option<String>,
    pub verify_ssl: bool,
    /// Ask the server whether the cached copy is still good.
    pub use_etag: bool,
    /// Another cache folder; relative to the configured one.
    pub cachedir: Option<PathBuf>,
}

impl Default for Fetch {
    fn default() -> Self {
        Self { source_hash: None, verify_ssl: true, use_etag: false, cachedir: None }
    }
}

/// A client of the file server: local roots, or a master across the wire.
pub trait Files: Send + Sync {
    /// Returns the environments served.
    fn envs(&self) -> Result<Vec<String>>;

    /// Brings a `salt://`, `http(s)://`, `ftp://`, `file://` or plain path source into the cache
    /// (or finds it in place); `None` when a `salt://` file does not exist.
    fn cache(&self, source: &str, saltenv: &str) -> Result<Option<PathBuf>>;

    /// As [`Files::cache`], told more about how.
    fn cache_with(&self, source: &str, saltenv: &str, _how: &Fetch) -> Result<Option<PathBuf>> {
        self.cache(source, saltenv)
    }

    /// Takes a file out of the cache again, because it cannot be trusted; others stay.
    fn forget(&self, _cached: &std::path::Path) -> Result<()> {
        Ok(())
    }

    /// Returns the hash of a `salt://` file with its kind: `("sha256", "ab12…")`.
    fn hash(&self, path: &str, saltenv: &str) -> Result<Option<(String, String)>>;

    /// Lists files of an environment, as paths relative to its root, sorted.
    fn list(&self, saltenv: &str, prefix: &str) -> Result<Vec<String>>;

    fn list_dirs(&self, saltenv: &str, prefix: &str) -> Result<Vec<String>>;

    fn list_empty_dirs(&self, saltenv: &str, prefix: &str) -> Result<Vec<String>>;

    /// Returns the links of an environment: link → destination.
    fn list_links(&self, saltenv: &str, prefix: &str) -> Result<Vec<(String, String)>>;

    /// Returns mode and times of a served file as `stat` gives them, if the back end knows them.
    fn stat(&self, path: &str, saltenv: &str) -> Result<Option<Value>>;

    /// Sends a file of this machine to the master (`cp.push`).
    fn push(&self, path: &std::path::Path, as_path: &str) -> Result<bool>;

    /// Returns what the master says about itself and the top file (`_master_opts`).
    fn master_opts(&self) -> Result<Value>;

    /// Returns what `master_tops` adds to the top file: environment → list of SLS.
    fn master_tops(&self) -> Result<Value>;
}
