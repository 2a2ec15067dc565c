//! The file client without a master: `salt://` from our own roots, the rest from where it is.
//!
//! As with a master, a `salt://` file is brought into the cache (`files/<env>/…`) and its path
//! there is returned: templates and users see that path. A copy that has the right hash is left
//! alone. Sources from other servers are kept under `extrn_files/<env>/<host>/…`; paths of this
//! machine are returned as they are.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use halite_spec::{
    Error, Fetch, Files, Host, Result,
    host::{Kind as FileKind, Write},
};
use halite_value::{Dict, Value};

use crate::{
    RelPath,
    backend::stat_list,
    cache::HashCache,
    fetch::{FetchError, Fetcher, Net, Request, Settings},
    hash::Kind,
    options::Options,
    roots::Roots,
    server::FileServer,
    source_hash,
    url::{self, Url, parse_salt},
};

/// Longer names are replaced by their hash: file systems stop at 255.
const MAX_NAME: usize = 255;

/// A client of the roots of this machine.
pub struct Local {
    host: Arc<dyn Host>,
    server: FileServer,
    hashes: Arc<HashCache>,
    hash_type: Kind,
    cachedir: PathBuf,
    fetcher: Arc<dyn Fetcher>,
    settings: Settings,
    opts: Dict,
}

impl Local {
    /// Makes the client a configuration describes.
    pub fn new(host: Arc<dyn Host>, opts: &Dict) -> Self {
        Self::with_fetcher(host, opts, Arc::new(Net))
    }

    /// As [`Local::new`], with another way to other servers.
    pub fn with_fetcher(host: Arc<dyn Host>, opts: &Dict, fetcher: Arc<dyn Fetcher>) -> Self {
        let options = Options::from_opts(opts);
        let hash_type = options.hash_type;
        let roots = Arc::new(Roots::new(host.clone(), options));
        let hashes = roots.hashes();
        let cachedir = opts.get("cachedir").map(|dir| dir.to_str().to_string());
        Self {
            server: FileServer::from_opts(&host, opts, roots),
            host,
            hashes,
            hash_type,
            cachedir: cachedir.unwrap_or_else(|| "/var/cache/salt/minion".into()).into(),
            fetcher,
            settings: Settings::from_opts(opts),
            opts: opts.clone(),
        }
    }

    /// Returns the server behind this client.
    pub fn server(&self) -> &FileServer {
        &self.server
    }

    fn cachedir(&self, how: &Fetch) -> PathBuf {
        how.cachedir.as_ref().map_or_else(|| self.cachedir.clone(), |dir| self.cachedir.join(dir))
    }

    /// Copies a served file into the cache, if it is not there already.
    fn cache_salt(&self, source: &str, saltenv: &str, how: &Fetch) -> Result<Option<PathBuf>> {
        let (path, saltenv) = asked(source, saltenv)?;
        let Some((backend, found)) = self.server.find(&path, &saltenv)? else { return Ok(None) };
        let env = RelPath::new(&saltenv)
            .ok_or_else(|| Error::invalid(format!("`{saltenv}` is no name of an environment")))?;
        let dest = found.rel.below(&env.below(&self.cachedir(how).join("files")));
        if self.has_same(&dest, backend.hash(&found)?)? {
            return Ok(Some(dest));
        }
        self.make_room(&dest, Some(0o700))?;
        let mut content = self.host.open(&found.real)?;
        self.host.write_from(&dest, &mut content, &Write::default())?;
        Ok(Some(dest))
    }

    fn has_same(&self, path: &Path, (kind, digits): (Kind, String)) -> Result<bool> {
        Ok(match self.host.stat_if_there(path, true)? {
            Some(stat) if stat.kind == FileKind::File => {
                self.hashes.hash(&*self.host, path, &stat, kind)? == digits
            }
            _ => false,
        })
    }

    /// Makes the folder of a cached file; what stands in the way is a leftover of the cache.
    fn make_room(&self, dest: &Path, mode: Option<u32>) -> Result<()> {
        if let Some(parent) = dest.parent() {
            if self.host.stat_if_there(parent, true)?.is_some_and(|s| s.kind != FileKind::Dir) {
                self.host.remove_file(parent)?;
            }
            self.host.create_dirs(parent, mode)?;
        }
        if self.host.is_dir(dest)? {
            self.host.remove_all(dest)?;
        }
        Ok(())
    }

    /// Returns where a source from another server is kept.
    pub fn extrn_path(&self, url: &Url, saltenv: &str, cachedir: &Path) -> Result<PathBuf> {
        let invalid = || Error::failed(format!("Invalid path in {}", url.without_credentials()));
        let mut name = url.path.trim_start_matches('/').to_owned();
        if !url.query.is_empty() {
            name = format!("{name}-{}", url.query);
        }
        if name.len() + 1 > MAX_NAME {
            let full = if url.query.is_empty() {
                url.path.clone()
            } else {
                format!("{}-{}", url.path, url.query)
            };
            name = Kind::Sha256.of_bytes(full.as_bytes());
        }
        if name.is_empty() {
            name = "index.html".into();
        }
        let host = match url.host_and_port() {
            (_, Some(_)) => url.host_port.replace(':', ""),
            _ => url.host_port.clone(),
        };
        let steps = [saltenv, &host, &name].map(RelPath::new);
        let [Some(env), Some(host), Some(name)] = steps else { return Err(invalid()) };
        Ok(name.below(&host.below(&env.below(&cachedir.join("extrn_files")))))
    }

    /// Downloads a source into the cache.
    fn cache_remote(&self, url: Url, saltenv: &str, how: &Fetch) -> Result<PathBuf> {
        let dest = self.extrn_path(&url, saltenv, &self.cachedir(how))?;
        if let Some(wanted) = how.source_hash.as_deref()
            && let Ok(sum) = source_hash::parse(wanted.rsplit('=').next().unwrap_or(wanted))
            && self.has_same(&dest, (sum.kind, sum.digits))?
        {
            return Ok(dest);
        }
        self.make_room(&dest, None)?;
        let mut etag_file = dest.clone().into_os_string();
        etag_file.push(".etag");
        let etag_file = PathBuf::from(etag_file);
        let mut headers = Vec::new();
        if how.use_etag
            && self.host.exists(&dest)?
            && let Some(etag) = self.host.read_text_if_there(&etag_file)?
        {
            headers.push(("If-None-Match".to_owned(), etag.replace('\n', "").trim().to_owned()));
        }
        let (path, scheme) = (url.path.clone(), url.scheme.clone());
        let verify_ssl = how.verify_ssl;
        let request = Request { url, headers, verify_ssl, settings: self.settings.clone() };
        let failed = |error: &dyn std::fmt::Display| match scheme.as_str() {
            "ftp" => Error::failed(format!(
                "Could not retrieve {} from FTP server. Exception: {error}",
                request.url.without_credentials()
            )),
            _ => Error::failed(format!("Error: {error} reading {path}")),
        };
        let mut response = self.fetcher.fetch(&request).map_err(|error| failed(&error))?;
        if how.use_etag && response.status == 304 {
            return Ok(dest);
        }
        let etag = response.header("etag").map(str::to_owned);
        // A failing reader leaves the old copy in place: the new one is put there as a whole.
        let mut seen: Option<FetchError> = None;
        let mut body = Watched { inner: &mut response.body, error: &mut seen };
        let written = self.host.write_from(&dest, &mut body, &Write::default());
        if let Some(error) = seen {
            return Err(failed(&error));
        }
        written?;
        if let (true, Some(etag)) = (how.use_etag, etag) {
            self.host.write(&etag_file, etag.as_bytes(), &Write::default())?;
        }
        Ok(dest)
    }
}

/// Remembers why reading failed, for a message better than the writer's.
struct Watched<'a> {
    inner: &'a mut (dyn std::io::Read + Send),
    error: &'a mut Option<FetchError>,
}

impl std::io::Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.inner.read(buffer).inspect_err(|error| *self.error = Some(FetchError::of_io(error)))
    }
}

/// Returns path and environment of a `salt://` URL.
fn asked(source: &str, saltenv: &str) -> Result<(String, String)> {
    let url =
        parse_salt(source).ok_or_else(|| Error::failed(format!("Unsupported path: {source}")))?;
    let path = if url.escaped { format!("|{}", url.path) } else { url.path };
    Ok((path, url.saltenv.unwrap_or_else(|| saltenv.to_owned())))
}

impl Files for Local {
    fn envs(&self) -> Result<Vec<String>> {
        Ok(self.server.envs()?)
    }

    fn cache(&self, source: &str, saltenv: &str) -> Result<Option<PathBuf>> {
        self.cache_with(source, saltenv, &Fetch::default())
    }

    fn cache_with(&self, source: &str, saltenv: &str, how: &Fetch) -> Result<Option<PathBuf>> {
        if source.starts_with("salt://") {
            return self.cache_salt(source, saltenv, how);
        }
        let url = Url::parse(source);
        match url.scheme.as_str() {
            "" | "file" => {
                let path = format!("{}{}", url.host_port, url.path);
                let path = path.trim_end_matches('/');
                if !path.starts_with('/') {
                    return Err(Error::failed(format!("Path '{path}' is not absolute")));
                }
                Ok(Some(path.into()))
            }
            "http" | "https" | "ftp" => self.cache_remote(url, saltenv, how).map(Some),
            // `salt:/path`, a slash too few.
            "salt" => Err(Error::failed(format!("Unsupported path: {source}"))),
            _ => Err(Error::failed(format!("Unsupported url scheme: {}", url::redacted(source)))),
        }
    }

    /// The hash of a `salt://` file, or of a file of this machine given by its path.
    fn hash(&self, path: &str, saltenv: &str) -> Result<Option<(String, String)>> {
        if path.starts_with('/') {
            let Some(stat) = self.host.stat_if_there(Path::new(path), true)? else {
                return Ok(None);
            };
            let kind = self.hash_type;
            let digits = self.hashes.hash(&*self.host, Path::new(path), &stat, kind)?;
            return Ok(Some((kind.name().to_owned(), digits)));
        }
        let (path, saltenv) = if path.starts_with("salt://") {
            asked(path, saltenv)?
        } else {
            (path.to_owned(), saltenv.to_owned())
        };
        let hash = self.server.hash(&path, &saltenv)?;
        Ok(hash.map(|(kind, digits)| (kind.name().to_owned(), digits)))
    }

    fn list(&self, saltenv: &str, prefix: &str) -> Result<Vec<String>> {
        Ok(self.server.files(saltenv, prefix)?)
    }

    fn list_dirs(&self, saltenv: &str, prefix: &str) -> Result<Vec<String>> {
        Ok(self.server.dirs(saltenv, prefix)?)
    }

    fn list_empty_dirs(&self, saltenv: &str, prefix: &str) -> Result<Vec<String>> {
        Ok(self.server.empty_dirs(saltenv, prefix)?)
    }

    fn list_links(&self, saltenv: &str, prefix: &str) -> Result<Vec<(String, String)>> {
        Ok(self.server.links(saltenv, prefix)?)
    }

    fn stat(&self, path: &str, saltenv: &str) -> Result<Option<Value>> {
        let (path, saltenv) = if path.starts_with("salt://") {
            asked(path, saltenv)?
        } else {
            (path.to_owned(), saltenv.to_owned())
        };
        Ok(self.server.find(&path, &saltenv)?.map(|(_, found)| stat_list(&found.stat)))
    }

    fn forget(&self, cached: &Path) -> Result<()> {
        if cached.starts_with(self.cachedir(&Fetch::default())) && self.host.is_file(cached)? {
            self.host.remove_file(cached)?;
        }
        Ok(())
    }

    fn push(&self, _: &Path, _: &str) -> Result<bool> {
        Err(Error::failed("cp.push needs a master, and file_client is local"))
    }

    fn master_opts(&self) -> Result<Value> {
        Ok(Value::from(&self.opts))
    }

    fn master_tops(&self) -> Result<Value> {
        Ok(Value::dict())
    }
}

/// Reads a list of hashes: what [`source_hash::resolve`] needs.
pub fn read_text(host: &dyn Host, path: &Path) -> Result<String> {
    // Lists of hashes are small; a huge file given by mistake must not fill the memory.
    const MAX: u64 = 16 << 20;
    let mut text = Vec::new();
    let read = host.open(path)?.take(MAX).read_to_end(&mut text);
    read.map_err(|error| halite_spec::host::Error::io("read", path, error))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
