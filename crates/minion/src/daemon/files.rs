//! The file client over the wire: `salt://` files of a master, kept in `cachedir/files/<env>`.
//!
//! A copy whose hash is the master's is used as it is. Otherwise the file is fetched in chunks into
//! a part beside its place, named after its hash: if the master goes away in the middle, the next
//! attempt goes on where this one stopped. A finished part is checked against the hash and only
//! then takes its name. Two jobs that want one file wait for each other instead of fetching twice.
//!
//! What comes from elsewhere (`http://` …) does not concern the master: the local client does it.

use std::{
    collections::HashMap,
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use halite_fileserver::{Local, RelPath, hash::Kind, url::parse_salt};
use halite_spec::{Error, Fetch, Files, Host, Result, host};
use halite_value::{Dict, Value, entries};
use nix::fcntl::{Flock, FlockArg};
use parking_lot::Mutex;

use super::{link::of_ask, session::Master};

/// What `cp.push` sends at a time, and the most we believe a chunk of the master to be.
const CHUNK: usize = 1 << 20;
const MAX_CHUNK: u64 = 64 << 20;

/// A client of one master's file server.
pub struct Remote {
    master: Arc<Master>,
    local: Local,
    opts: Dict,
    cachedir: PathBuf,
    hash_type: Kind,
    /// Hashes of cached files, by what would change with them.
    hashes: Mutex<HashMap<PathBuf, (Stamp, Kind, String)>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    size: u64,
    seconds: i64,
    nanos: i64,
}

impl Stamp {
    fn of(meta: &fs::Metadata) -> Self {
        Self {
            inode: meta.ino(),
            size: meta.size(),
            seconds: meta.mtime(),
            nanos: meta.mtime_nsec(),
        }
    }
}

impl Remote {
    pub fn new(master: Arc<Master>, host: Arc<dyn Host>, opts: &Dict) -> Self {
        let text = |name: &str| opts.get(name).unwrap_or_default().to_str();
        Self {
            master,
            local: Local::new(host, opts),
            cachedir: PathBuf::from(text("cachedir").as_str()),
            hash_type: Kind::named(&text("hash_type").to_lowercase()).unwrap_or(Kind::Sha256),
            opts: opts.clone(),
            hashes: Mutex::default(),
        }
    }

    fn ask(&self, command: &str, load: &Dict) -> Result<Value> {
        load.insert("cmd", command);
        self.master.ask_now(load, &|| false).map_err(of_ask)
    }

    fn ask_list(&self, command: &str, saltenv: &str, prefix: &str) -> Result<Vec<String>> {
        let answer = self.ask(command, &entries! { "saltenv" => saltenv, "prefix" => prefix })?;
        let items = answer.items_of_sequence().unwrap_or_default();
        Ok(items.iter().map(|item| item.to_str().to_string()).collect())
    }

    fn hash_of(&self, path: &str, saltenv: &str) -> Result<Option<(Kind, String)>> {
        let answer = self.ask("_file_hash", &entries! { "path" => path, "saltenv" => saltenv })?;
        let (Some(kind), Some(digits)) = (answer.get_str("hash_type"), answer.get_str("hsum"))
        else {
            return Ok(None);
        };
        let kind = Kind::named(&kind)
            .ok_or_else(|| Error::failed(format!("the master hashes with {kind}")))?;
        Ok((!digits.is_empty()).then(|| (kind, digits.to_string())))
    }

    fn has_same(&self, path: &Path, kind: Kind, digits: &str) -> bool {
        let Ok(meta) = fs::symlink_metadata(path) else { return false };
        if !meta.is_file() {
            return false;
        }
        let stamp = Stamp::of(&meta);
        if let Some((known, of, hash)) = self.hashes.lock().get(path)
            && *known == stamp
            && *of == kind
        {
            return hash == digits;
        }
        let hash = File::open(path).and_then(|mut file| kind.of(&mut file));
        let Ok(hash) = hash else { return false };
        let same = hash == digits;
        self.hashes.lock().insert(path.to_owned(), (stamp, kind, hash));
        same
    }

    fn cache_salt(&self, source: &str, saltenv: &str, how: &Fetch) -> Result<Option<PathBuf>> {
        let (path, saltenv) = asked(source, saltenv)?;
        let Some((kind, digits)) = self.hash_of(&path, &saltenv)? else { return Ok(None) };
        let invalid = || Error::failed(format!("`{path}` in `{saltenv}` is no path of a file"));
        let name = RelPath::new(path.trim_start_matches('|')).ok_or_else(invalid)?;
        let env = RelPath::new(&saltenv).ok_or_else(invalid)?;
        let folder = match &how.cachedir {
            Some(other) => self.cachedir.join(other),
            None => self.cachedir.clone(),
        };
        let dest = name.below(&env.below(&folder.join("files")));
        if self.has_same(&dest, kind, &digits) {
            return Ok(Some(dest));
        }
        make_room(&dest)?;
        let part = part_of(&dest, &digits);
        let locked = open_part(&part)?;
        // Somebody may have brought it while we waited for the lock.
        if self.has_same(&dest, kind, &digits) {
            let _ = fs::remove_file(&part);
            return Ok(Some(dest));
        }
        let found = self.fetch(&path, &saltenv, &part, &locked, (kind, &digits))?;
        if !found {
            let _ = fs::remove_file(&part);
            return Ok(None);
        }
        fs::rename(&part, &dest).map_err(|error| host::Error::io("write", &dest, error))?;
        Ok(Some(dest))
    }

    /// Brings a file into its part; false if the master has it no more.
    fn fetch(
        &self,
        path: &str,
        saltenv: &str,
        part: &Path,
        file: &Flock<File>,
        wanted: (Kind, &str),
    ) -> Result<bool> {
        let failed = |error| Error::from(host::Error::io("write", part, error));
        let (kind, digits) = wanted;
        // Twice at most: a part of an earlier attempt may be damaged, a file may change under us.
        for attempt in 0..2 {
            let mut file: &File = file;
            if attempt > 0 {
                file.set_len(0).map_err(failed)?;
            }
            let mut at = file.seek(SeekFrom::End(0)).map_err(failed)?;
            loop {
                let load = entries! {
                    "cmd" => "_serve_file", "path" => path, "saltenv" => saltenv, "loc" => at,
                };
                let answer =
                    self.master.wait(self.master.ask_raw(&load), &|| false).map_err(of_ask)?;
                let Some(chunk) = chunk_of(&answer)? else { return Ok(false) };
                if chunk.is_empty() {
                    break;
                }
                file.write_all(&chunk).map_err(failed)?;
                at += chunk.len() as u64;
            }
            file.seek(SeekFrom::Start(0)).map_err(failed)?;
            if kind.of(&mut file).map_err(failed)? == digits {
                return Ok(true);
            }
        }
        Err(Error::failed(format!(
            "salt://{path} changes while it is fetched, or arrives damaged: its hash is not {digits}"
        )))
    }
}

/// Takes the bytes out of a chunk; `None` if there is no such file.
fn chunk_of(answer: &Value) -> Result<Option<Vec<u8>>> {
    let bytes =
        |field: &str| answer.get(field).and_then(|value| value.as_bytes().map(<[u8]>::to_vec));
    let (Some(data), Some(dest)) = (bytes("data"), bytes("dest")) else {
        return Err(Error::failed("the master's answer is no piece of a file"));
    };
    if dest.is_empty() {
        return Ok(None);
    }
    if answer.get("gzip").is_none_or(|level| !level.truthy()) || data.is_empty() {
        return Ok(Some(data));
    }
    let mut plain = Vec::new();
    let mut reader = flate2::read::GzDecoder::new(data.as_slice()).take(MAX_CHUNK + 1);
    let read = reader.read_to_end(&mut plain);
    match read {
        Ok(_) if plain.len() as u64 > MAX_CHUNK => {
            Err(Error::failed("a piece of a file unpacks to more than any piece may hold"))
        }
        Ok(_) => Ok(Some(plain)),
        Err(error) => Err(Error::failed(format!("a piece of a file cannot be unpacked: {error}"))),
    }
}

fn part_of(dest: &Path, digits: &str) -> PathBuf {
    let start = digits.get(..16).unwrap_or(digits);
    let name = dest.file_name().unwrap_or_default().to_string_lossy();
    // Names may be as long as the file system allows already.
    let name: String = name.chars().take(100).collect();
    dest.with_file_name(format!(".{name}.{start}.part"))
}

fn open_part(part: &Path) -> Result<Flock<File>> {
    let failed = |error| Error::from(host::Error::io("write", part, error));
    let open = || {
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(part)
    };
    loop {
        let file = open().map_err(failed)?;
        let locked = Flock::lock(file, FlockArg::LockExclusive)
            .map_err(|(_, errno)| failed(io::Error::from(errno)))?;
        // The one before us has moved it away: what we locked is the finished file.
        let same = fs::metadata(part).ok().zip(locked.metadata().ok());
        if same.is_some_and(|(named, held)| (named.dev(), named.ino()) == (held.dev(), held.ino()))
        {
            return Ok(locked);
        }
    }
}

/// Makes the folder of a cached file; what stands in the way is a leftover of the cache.
fn make_room(dest: &Path) -> Result<()> {
    let failed = |error| Error::from(host::Error::io("make room for", dest, error));
    if let Some(parent) = dest.parent() {
        if parent.is_file() {
            fs::remove_file(parent).map_err(failed)?;
        }
        fs::DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(failed)?;
    }
    if dest.is_dir() && !dest.is_symlink() {
        fs::remove_dir_all(dest).map_err(failed)?;
    }
    Ok(())
}

/// Returns path and environment of a `salt://` URL.
fn asked(source: &str, saltenv: &str) -> Result<(String, String)> {
    let url =
        parse_salt(source).ok_or_else(|| Error::failed(format!("Unsupported path: {source}")))?;
    let path = if url.escaped { format!("|{}", url.path) } else { url.path };
    Ok((path, url.saltenv.unwrap_or_else(|| saltenv.to_owned())))
}

fn path_and_env(path: &str, saltenv: &str) -> Result<(String, String)> {
    if path.starts_with("salt://") {
        asked(path, saltenv)
    } else {
        Ok((path.to_owned(), saltenv.to_owned()))
    }
}

impl Files for Remote {
    fn envs(&self) -> Result<Vec<String>> {
        let answer = self.ask("_file_envs", &Dict::new())?;
        let items = answer.items_of_sequence().unwrap_or_default();
        Ok(items.iter().map(|item| item.to_str().to_string()).collect())
    }

    fn cache(&self, source: &str, saltenv: &str) -> Result<Option<PathBuf>> {
        self.cache_with(source, saltenv, &Fetch::default())
    }

    fn cache_with(&self, source: &str, saltenv: &str, how: &Fetch) -> Result<Option<PathBuf>> {
        if source.starts_with("salt://") {
            self.cache_salt(source, saltenv, how)
        } else {
            self.local.cache_with(source, saltenv, how)
        }
    }

    fn forget(&self, cached: &Path) -> Result<()> {
        self.local.forget(cached)
    }

    fn hash(&self, path: &str, saltenv: &str) -> Result<Option<(String, String)>> {
        if path.starts_with('/') {
            let named = |hash| (self.hash_type.name().to_owned(), hash);
            return match File::open(path) {
                Ok(mut file) => {
                    let hash = self.hash_type.of(&mut file);
                    let hash = hash.map_err(|error| host::Error::io("read", path, error))?;
                    Ok(Some(named(hash)))
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(host::Error::io("read", path, error).into()),
            };
        }
        let (path, saltenv) = path_and_env(path, saltenv)?;
        let hash = self.hash_of(&path, &saltenv)?;
        Ok(hash.map(|(kind, digits)| (kind.name().to_owned(), digits)))
    }

    fn list(&self, saltenv: &str, prefix: &str) -> Result<Vec<String>> {
        self.ask_list("_file_list", saltenv, prefix)
    }

    fn list_dirs(&self, saltenv: &str, prefix: &str) -> Result<Vec<String>> {
        self.ask_list("_dir_list", saltenv, prefix)
    }

    fn list_empty_dirs(&self, saltenv: &str, prefix: &str) -> Result<Vec<String>> {
        self.ask_list("_file_list_emptydirs", saltenv, prefix)
    }

    fn list_links(&self, saltenv: &str, prefix: &str) -> Result<Vec<(String, String)>> {
        let load = entries! { "saltenv" => saltenv, "prefix" => prefix };
        let Value::Dict(links) = self.ask("_symlink_list", &load)? else { return Ok(Vec::new()) };
        let links = links.entries().into_iter();
        Ok(links.map(|(link, target)| (link.to_string(), target.to_str().to_string())).collect())
    }

    fn stat(&self, path: &str, saltenv: &str) -> Result<Option<Value>> {
        let (path, saltenv) = path_and_env(path, saltenv)?;
        let load = entries! { "path" => path, "saltenv" => saltenv };
        let answer = self.ask("_file_hash_and_stat", &load)?;
        let stat = answer.items_of_sequence().and_then(|both| both.get(1).cloned());
        Ok(stat.filter(|stat| !stat.is_null()))
    }

    fn push(&self, path: &Path, as_path: &str) -> Result<bool> {
        let failed = |error| Error::from(host::Error::io("read", path, error));
        let mut file = File::open(path).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        let parts = as_path.split('/').filter(|part| !part.is_empty());
        let parts = Value::list(parts);
        let (mut at, mut buffer) = (0_u64, vec![0; CHUNK]);
        loop {
            let read = fill(&mut file, &mut buffer).map_err(failed)?;
            // An empty file is one empty piece.
            if read == 0 && at > 0 {
                return Ok(true);
            }
            let data = buffer.get(..read).unwrap_or_default().to_vec();
            let load = entries! {
                "path" => &parts, "size" => size, "loc" => at, "data" => Value::bytes(data),
            };
            if self.ask("_file_recv", &load)? != Value::Bool(true) {
                tracing::error!(
                    "the master did not take the file. Does it allow `file_recv`, and is the file \
                     within its `file_recv_max_size`?"
                );
                return Ok(false);
            }
            at += read as u64;
            if read < buffer.len() {
                return Ok(true);
            }
        }
    }

    fn master_opts(&self) -> Result<Value> {
        self.ask("_master_opts", &Dict::new())
    }

    fn master_tops(&self) -> Result<Value> {
        self.ask("_master_tops", &entries! { "opts" => &self.opts })
    }
}

fn fill(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut at = 0;
    while let Some(rest) = buffer.get_mut(at..).filter(|rest| !rest.is_empty()) {
        match file.read(rest)? {
            0 => break,
            read => at += read,
        }
    }
    Ok(at)
}
