//! `ssh`: keys that may sign in, and keys of hosts.
//!
//! `keys.rs` knows the lines of `authorized_keys`, `known.rs` the files of host keys. Files are
//! replaced as a whole and keep their owner and mode.

mod keys;
mod known;

use std::path::{Path, PathBuf};

use halite_spec::{Args, Command, Cx, Error, Rest, Result, Strings, function, host::Write, module};
use halite_value::{Dict, Value, dict, entries};

pub use self::{
    keys::{Key, fingerprint, read_all, refined, removed, replaced},
    known::{Change, Entry, SILENT, Store, Wanted, described},
};
use crate::{
    file::text::{read_to_edit, read_to_edit_if_there},
    user,
};

module! {
    /// Keys that may sign in, and keys of hosts.
    "ssh": host_keys, auth_keys, check_key_file, check_key, rm_auth_key_from_file, rm_auth_key,
    set_auth_key_from_file, set_auth_key, get_known_host_entries, recv_known_host_entries,
    check_known_host, rm_known_host, set_known_host, user_keys, hash_known_hosts, key_is_encrypted,
}

const USUAL: &str = ".ssh/authorized_keys";

/// Expands `%u`, `%h` and `%%`, as sshd does.
fn expanded(path: &str, user: &str, home: &str) -> Result<String> {
    let mut text = String::new();
    let mut chars = path.chars();
    while let Some(char) = chars.next() {
        if char != '%' {
            text.push(char);
            continue;
        }
        match chars.next() {
            Some('%') => text.push('%'),
            Some('u') => text += user,
            Some('h') => text += home,
            Some(other) => {
                return Err(Error::failed(format!(
                    "AuthorizedKeysFile path: unknown token character \"%{other}\""
                )));
            }
            None => {
                return Err(Error::failed(
                    "AuthorizedKeysFile path: Last character can't be escape character",
                ));
            }
        }
    }
    Ok(text)
}

/// Returns a user's file of keys.
pub fn file_of(cx: &Cx, name: &str, config: &str) -> Result<PathBuf> {
    let missing = || Error::failed(format!("User '{name}' does not exist"));
    let user = user::find(cx, name, None)?.ok_or_else(missing)?;
    Ok(Path::new(&user.home).join(expanded(config, name, &user.home)?))
}

/// How a key stands to a user's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Add,
    Update,
    Exists,
}

impl Status {
    pub fn word(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Update => "update",
            Self::Exists => "exists",
        }
    }
}

/// Returns the keys of a user; none if there is no such user or no file.
pub fn keys_of(
    cx: &Cx,
    name: &str,
    config: &str,
    kind: Option<&str>,
) -> Result<Vec<(Key, String)>> {
    let path = match file_of(cx, name, config) {
        Ok(path) => path,
        Err(error @ Error::Host(_)) => return Err(error),
        Err(_) => return Ok(Vec::new()),
    };
    match cx.host.read_text_if_there(&path)? {
        Some(text) => read_all(&text, kind),
        None => Ok(Vec::new()),
    }
}

/// Tells whether a key has to be added or changed.
pub fn status_of(cx: &Cx, name: &str, key: &Key, config: &str) -> Result<Status> {
    let wanted = Key { enc: refined(&key.enc)?, ..key.clone() };
    let current = keys_of(cx, name, config, None)?;
    Ok(match current.iter().find(|(own, _)| own.key == key.key) {
        None => Status::Add,
        Some((own, _)) if own.line() == wanted.line() => Status::Exists,
        Some(_) => Status::Update,
    })
}

/// Puts a key into a user's file; the word callers are told for what happened.
pub fn put_key(
    cx: &Cx,
    name: &str,
    key: &Key,
    config: &str,
    kind: Option<&str>,
) -> Result<&'static str> {
    if key.key.split_whitespace().nth(1).is_some() {
        return Ok("invalid");
    }
    let key = Key { enc: refined(&key.enc)?, ..key.clone() };
    let Some(user) = user::find(cx, name, None)? else { return Ok("fail") };
    let lines = key.line().trim_end().split(['\n', '\r']).count();
    if fingerprint(&key.key, kind)?.is_none() || lines > 1 {
        return Ok("Invalid public key");
    }
    let path = file_of(cx, name, config)?;
    match status_of(cx, name, &key, config)? {
        Status::Exists => Ok("no change"),
        Status::Update => {
            let text = replaced(&read_to_edit(cx, &path)?, &key);
            cx.host.write(&path, text.as_bytes(), &Write::default())?;
            Ok("replace")
        }
        // A home that is not there (yet: it may be mounted later) is not made for a key.
        Status::Add if path.starts_with(&user.home) && !cx.host.is_dir(user.home.as_ref())? => {
            Ok("fail")
        }
        Status::Add => {
            append(cx, &path, &key, &user)?;
            Ok("new")
        }
    }
}

/// Writes a key below the others; what has to be made for it belongs to the user alone.
fn append(cx: &Cx, path: &Path, key: &Key, user: &halite_spec::host::User) -> Result<()> {
    let private = |mode: u32| match cx.host.uid() {
        0 => Write { mode: Some(mode), uid: Some(user.uid), gid: Some(user.gid) },
        _ => Write { mode: Some(mode), ..Write::default() },
    };
    if let Some(folder) = path.parent()
        && !cx.host.is_dir(folder)?
    {
        if let Some(above) = folder.parent() {
            cx.host.create_dirs(above, None)?;
        }
        cx.host.create_dir_owned(folder, &private(0o700))?;
        restore_context(cx, folder)?;
    }
    let Some(old) = read_to_edit_if_there(cx, path)? else {
        cx.host.write(path, key.line().as_bytes(), &private(0o600))?;
        return restore_context(cx, path);
    };
    let gap = if old.is_empty() || old.ends_with('\n') { "" } else { "\n" };
    let text = format!("{old}{gap}{}", key.line());
    Ok(cx.host.write(path, text.as_bytes(), &Write::default())?)
}

/// Gives a new path its `SELinux` context.
fn restore_context(cx: &Cx, path: &Path) -> Result<()> {
    if cx.host.which("restorecon").is_some() {
        cx.host.run(&Command::line(["restorecon"]).arg(path))?;
    }
    Ok(())
}

/// Takes a key out of a user's file; Salt's words for what happened.
pub fn take_key(cx: &Cx, name: &str, key: &str, config: &str) -> Result<String> {
    let current = keys_of(cx, name, config, None)?;
    if !current.iter().any(|(own, _)| own.key == key) {
        return Ok("Key not present".into());
    }
    let path = file_of(cx, name, config)?;
    let text = removed(&read_to_edit(cx, &path)?, key);
    cx.host.write(&path, text.as_bytes(), &Write::default())?;
    Ok("Key removed".into())
}

/// What a source file of keys holds.
pub enum Source {
    /// There is no such file.
    Missing,
    /// It holds none; the message says so.
    Empty(String),
    Keys(Vec<Key>),
}

/// Reads the keys of a source file.
pub fn source(cx: &Cx, source: &str, saltenv: &str, kind: Option<&str>) -> Result<Source> {
    let Some(path) = cx.files.cache(source, saltenv)? else { return Ok(Source::Missing) };
    let Some(text) = cx.host.read_text_if_there(&path)? else { return Ok(Source::Missing) };
    let keys: Vec<Key> = read_all(&text, kind)?.into_iter().map(|(key, _)| key).collect();
    if keys.is_empty() {
        let message = format!("No keys detected in {source}. Is file properly formatted?");
        tracing::error!("{message}");
        return Ok(Source::Empty(message));
    }
    Ok(Source::Keys(keys))
}

/// Return the keys of this host.
///
/// ```console
/// $ salt '*' ssh.host_keys private=False
/// ```
#[function]
pub fn host_keys(
    cx: &Cx,
    /// Their folder.
    keydir: Option<String>,
    /// The private ones too.
    #[default(true)]
    private: bool,
    /// Certificates too.
    #[default(true)]
    certs: bool,
) -> Result<Dict> {
    let folder = PathBuf::from(keydir.unwrap_or_else(|| "/etc/ssh".into()));
    let found = Dict::new();
    for file in cx.host.read_dir(&folder)? {
        let name = file.to_string_lossy();
        let Some(rest) = name.strip_prefix("ssh_host_") else { continue };
        let Some((kind, end)) = rest.rsplit_once("_key") else { continue };
        let end = if end.starts_with("-cert.pub") {
            "-cert.pub"
        } else if end.starts_with(".pub") {
            ".pub"
        } else {
            ""
        };
        if (end.is_empty() && !private) || (end == "-cert.pub" && !certs) {
            continue;
        }
        let text = cx.host.read_text(&folder.join(&file))?;
        found.insert(format!("{kind}{end}"), text.trim());
    }
    Ok(found)
}

fn shown(keys: &[(Key, String)]) -> Dict {
    let one = |(key, print): &(Key, String)| {
        let value = dict! {
            "enc" => &key.enc, "comment" => &key.comment,
            "options" => Value::list(key.options.clone()), "fingerprint" => print,
        };
        (key.key.clone(), value)
    };
    keys.iter().map(one).collect()
}

/// Return the keys that may sign in.
///
/// ```console
/// $ salt web1 ssh.auth_keys
/// ```
#[function]
pub fn auth_keys(
    cx: &Cx,
    /// A user, or a list; all if none is given.
    user: Option<Value>,
    /// The file, relative to the home folder.
    #[default(USUAL.to_owned())]
    config: String,
    /// The hash of fingerprints: `sha256` if none is given.
    fingerprint_hash_type: Option<String>,
) -> Result<Dict> {
    let kind = fingerprint_hash_type.as_deref();
    let users = match user.filter(Value::truthy) {
        None => user::list_users(cx, None)?,
        Some(Value::List(users)) => users.into_iter().map(|user| user.to_string()).collect(),
        Some(one) => return Ok(shown(&keys_of(cx, &one.to_str(), &config, kind)?)),
    };
    let found = Dict::new();
    for name in users {
        let Ok(path) = file_of(cx, &name, &config) else { continue };
        let there = cx.host.is_file(&path)?;
        if there {
            found.insert(&name, shown(&keys_of(cx, &name, &config, kind)?));
        }
    }
    Ok(found)
}

/// A source file of keys, and the file of a user.
#[derive(Args)]
pub struct KeyFile {
    /// The user.
    user: String,
    /// The file of keys.
    source: String,
    /// The user's file, relative to the home folder.
    #[default(USUAL.to_owned())]
    config: String,
    /// The environment of the source.
    #[default("base".to_owned())]
    saltenv: String,
    /// The hash of fingerprints.
    fingerprint_hash_type: Option<String>,
}

/// Tell for each key of a source file whether a user has it.
///
/// ```console
/// $ salt web1 ssh.check_key_file ada salt://keys/ada.pub
/// ```
#[function]
pub fn check_key_file(cx: &Cx, #[group] file: KeyFile) -> Result<Dict> {
    let KeyFile { user, source, config, saltenv, .. } = &file;
    match self::source(cx, source, saltenv, file.fingerprint_hash_type.as_deref())? {
        Source::Keys(keys) => keys
            .iter()
            .map(|key| Ok((key.key.clone(), status_of(cx, user, key, config)?.word())))
            .collect(),
        _ => Ok(Dict::new()),
    }
}

/// Tell whether a user has a key: `add`, `update` or `exists`.
///
/// ```console
/// $ salt web1 ssh.check_key ada AAAAC3Nza ssh-ed25519 ada@web1 '[]'
/// ```
#[function]
#[expect(clippy::too_many_arguments, reason = "they are Salt's")]
pub fn check_key(
    cx: &Cx,
    /// The user.
    user: String,
    /// The key.
    key: String,
    /// Its kind.
    enc: String,
    /// Its comment.
    comment: String,
    /// Its options.
    #[arg(required)]
    options: Option<Strings>,
    /// The user's file, relative to the home folder.
    #[default(USUAL.to_owned())]
    config: String,
    /// Accepted for old callers.
    cache_keys: Option<Value>,
    /// The hash of fingerprints.
    fingerprint_hash_type: Option<String>,
) -> Result<&'static str> {
    let _ = (cache_keys, fingerprint_hash_type);
    let options = options.map(|options| options.0).unwrap_or_default();
    Ok(status_of(cx, &user, &Key { enc, key, comment, options }, &config)?.word())
}

fn from_source(cx: &Cx, path: &str, saltenv: &str, kind: Option<&str>) -> Result<Option<Vec<Key>>> {
    match source(cx, path, saltenv, kind)? {
        Source::Missing => Err(Error::failed("Failed to pull key file from salt file server")),
        Source::Empty(_) => Ok(None),
        Source::Keys(keys) => Ok(Some(keys)),
    }
}

/// Remove the keys of a source file from a user's.
///
/// ```console
/// $ salt web1 ssh.rm_auth_key_from_file ada salt://keys/ada.pub
/// ```
#[function]
pub fn rm_auth_key_from_file(cx: &Cx, #[group] file: KeyFile) -> Result<String> {
    let kind = file.fingerprint_hash_type.as_deref();
    let Some(keys) = from_source(cx, &file.source, &file.saltenv, kind)? else {
        return Ok("fail".into());
    };
    let mut removed = false;
    for key in keys {
        removed |= take_key(cx, &file.user, &key.key, &file.config)? == "Key removed";
    }
    Ok(if removed { "Key removed" } else { "Key not present" }.into())
}

/// Remove a key from a user's file.
///
/// ```console
/// $ salt web1 ssh.rm_auth_key ada AAAAC3Nza
/// ```
#[function]
pub fn rm_auth_key(
    cx: &Cx,
    /// The user.
    user: String,
    /// The key.
    key: String,
    /// The user's file, relative to the home folder.
    #[default(USUAL.to_owned())]
    config: String,
    /// The hash of fingerprints.
    fingerprint_hash_type: Option<String>,
) -> Result<String> {
    let _ = fingerprint_hash_type;
    take_key(cx, &user, &key, &config)
}

/// Add the keys of a source file to a user's.
///
/// ```console
/// $ salt web1 ssh.set_auth_key_from_file ada salt://keys/ada.pub
/// ```
#[function]
pub fn set_auth_key_from_file(
    cx: &Cx,
    #[group] file: KeyFile,
    /// `options`, for all of them.
    kwargs: Rest,
) -> Result<&'static str> {
    let KeyFile { user, source, config, saltenv, .. } = &file;
    let options = kwargs.kwargs.get("options").and_then(|list| list.items_of_sequence());
    let options = options.unwrap_or_default().iter().map(Value::to_string).collect::<Vec<_>>();
    put_keys(cx, user, source, config, saltenv, &options, file.fingerprint_hash_type.as_deref())
}

/// Adds the keys of a source file; options replace those of the file.
pub fn put_keys(
    cx: &Cx,
    user: &str,
    source: &str,
    config: &str,
    saltenv: &str,
    options: &[String],
    kind: Option<&str>,
) -> Result<&'static str> {
    let Some(keys) = from_source(cx, source, saltenv, kind)? else { return Ok("fail") };
    let mut results = Vec::new();
    for mut key in keys {
        if !options.is_empty() {
            key.options = options.to_vec();
        }
        results.push(put_key(cx, user, &key, config, kind)?);
    }
    let first = ["fail", "replace", "new"].into_iter().find(|word| results.contains(word));
    Ok(first.unwrap_or("no change"))
}

/// Add a key to a user's file.
///
/// ```console
/// $ salt web1 ssh.set_auth_key ada AAAAC3Nza enc=ssh-ed25519
/// ```
#[function]
#[expect(clippy::too_many_arguments, reason = "they are Salt's")]
pub fn set_auth_key(
    cx: &Cx,
    /// The user.
    user: String,
    /// The key.
    key: String,
    /// Its kind.
    #[default("ssh-rsa".to_owned())]
    enc: String,
    /// Its comment.
    #[default(String::new())]
    comment: String,
    /// Its options.
    options: Option<Strings>,
    /// The user's file, relative to the home folder.
    #[default(USUAL.to_owned())]
    config: String,
    /// Accepted for old callers.
    cache_keys: Option<Value>,
    /// The hash of fingerprints.
    fingerprint_hash_type: Option<String>,
) -> Result<&'static str> {
    let _ = cache_keys;
    let options = options.map(|options| options.0).unwrap_or_default();
    let key = Key { enc, key, comment, options };
    put_key(cx, &user, &key, &config, fingerprint_hash_type.as_deref())
}

/// Return the known keys of a host.
///
/// ```console
/// $ salt web1 ssh.get_known_host_entries ada db1.example.org
/// ```
#[function]
pub fn get_known_host_entries(
    cx: &Cx,
    /// Whose file.
    #[arg(required)]
    user: Option<String>,
    /// The host.
    hostname: String,
    /// The file.
    config: Option<String>,
    /// Its port.
    port: Option<i64>,
    /// The hash of fingerprints.
    fingerprint_hash_type: Option<String>,
) -> Result<Value> {
    let store = Store { user, config, port, hash_type: fingerprint_hash_type };
    match store.entries(cx, &hostname) {
        Ok(entries) => Ok(described(&entries)),
        Err(Error::Failed(text)) => Ok(known::failure(&text).into()),
        Err(error) => Err(error),
    }
}

/// Ask a host for its keys.
///
/// ```console
/// $ salt web1 ssh.recv_known_host_entries db1.example.org
/// ```
#[function]
pub fn recv_known_host_entries(
    cx: &Cx,
    /// The host.
    hostname: String,
    /// The kind of key.
    enc: Option<String>,
    /// Its port.
    port: Option<i64>,
    /// Hash the name.
    #[default(true)]
    hash_known_hosts: bool,
    /// Seconds to wait.
    #[default(5)]
    timeout: i64,
    /// The hash of fingerprints.
    fingerprint_hash_type: Option<String>,
) -> Result<Value> {
    let store = Store { port, hash_type: fingerprint_hash_type, ..Store::default() };
    let found = store.receive(cx, &hostname, enc.as_deref(), hash_known_hosts, timeout)?;
    Ok(described(&found))
}

/// Tell whether a host's key is known: `add`, `update` or `exists`.
///
/// ```console
/// $ salt web1 ssh.check_known_host ada db1.example.org
/// ```
#[function]
#[expect(clippy::too_many_arguments, reason = "they are Salt's")]
pub fn check_known_host(
    cx: &Cx,
    /// Whose file.
    user: Option<String>,
    /// The host.
    hostname: Option<String>,
    /// Its key.
    key: Option<String>,
    /// Its key's fingerprint.
    fingerprint: Option<String>,
    /// The file.
    config: Option<String>,
    /// Its port.
    port: Option<i64>,
    /// The hash of fingerprints.
    fingerprint_hash_type: Option<String>,
) -> Result<Value> {
    let store = Store { user, config, port, hash_type: fingerprint_hash_type };
    let entries = match store.entries(cx, &hostname.unwrap_or_default()) {
        Ok(entries) => entries,
        Err(Error::Failed(text)) => return Ok(known::failure(&text).into()),
        Err(error) => return Err(error),
    };
    let known = match (&key, &fingerprint) {
        (Some(key), _) => entries.iter().any(|entry| entry.key == *key),
        (None, Some(print)) => {
            entries.iter().any(|entry| entry.fingerprint.as_ref() == Some(print))
        }
        (None, None) => true,
    };
    Ok(match (entries.is_empty(), known) {
        (true, _) => "add",
        (false, true) => "exists",
        (false, false) => "update",
    }
    .into())
}

/// Forget a host.
///
/// ```console
/// $ salt web1 ssh.rm_known_host ada db1.example.org
/// ```
#[function]
pub fn rm_known_host(
    cx: &Cx,
    /// Whose file.
    user: Option<String>,
    /// The host.
    hostname: Option<String>,
    /// The file.
    config: Option<String>,
    /// Its port.
    port: Option<i64>,
) -> Result<Dict> {
    let store = Store { user, config, port, hash_type: None };
    match store.remove(cx, &hostname.unwrap_or_default()) {
        Ok(comment) => Ok(entries! { "status" => "removed", "comment" => comment }),
        Err(Error::Failed(text)) => Ok(known::failure(&text)),
        Err(error) => Err(error),
    }
}

/// How a host is to be known.
#[derive(Args)]
pub struct KnownHost {
    /// The fingerprint its key must have.
    pub fingerprint: Option<String>,
    /// Its key.
    pub key: Option<String>,
    /// Its port.
    port: Option<i64>,
    /// The kind of key.
    pub enc: Option<String>,
    /// The file.
    pub config: Option<String>,
    /// Hash the name.
    #[default(true)]
    hash_known_hosts: bool,
    /// Seconds to wait for the host.
    #[default(5)]
    timeout: i64,
    /// The hash of fingerprints.
    fingerprint_hash_type: Option<String>,
}

impl KnownHost {
    pub fn store(&self, user: Option<&String>, config: Option<String>) -> Store {
        let hash_type = self.fingerprint_hash_type.clone();
        Store { user: user.cloned(), config, port: self.port, hash_type }
    }

    pub fn wanted(&self, hostname: &str) -> Wanted {
        Wanted {
            hostname: hostname.to_owned(),
            fingerprint: self.fingerprint.clone(),
            key: self.key.clone(),
            enc: self.enc.clone(),
            hashed: self.hash_known_hosts,
            timeout: self.timeout,
        }
    }
}

/// Know a host's key; asks the host for it where none is given.
///
/// ```console
/// $ salt '*' ssh.set_known_host <user> fingerprint='xx:xx:..:xx' enc='ssh-rsa'
/// ```
#[function]
pub fn set_known_host(
    cx: &Cx,
    /// Whose file.
    user: Option<String>,
    /// The host.
    hostname: Option<String>,
    #[group] host: KnownHost,
) -> Result<Dict> {
    let store = host.store(user.as_ref(), host.config.clone());
    let wanted = host.wanted(&hostname.unwrap_or_default());
    Ok(match store.compare(cx, &wanted)? {
        Change::Exists(keys) => entries! { "status" => "exists", "keys" => Value::list(keys) },
        Change::Silent(_) => known::failure(SILENT),
        Change::Refused(text) => known::failure(&text),
        Change::Update { old, new } => {
            store.update(cx, &wanted, &new)?;
            entries! { "status" => "updated", "old" => described(&old), "new" => described(&new) }
        }
    })
}

/// Return the key pairs of users.
///
/// ```console
/// $ salt '*' ssh.user_keys user="['user1','user2']" prvfile=False
/// ```
#[function]
pub fn user_keys(
    cx: &Cx,
    /// A user, or a list; all if none is given.
    user: Option<Value>,
    /// A file of a public key; False for none.
    pubfile: Option<Value>,
    /// A file of a private key; False for none.
    prvfile: Option<Value>,
) -> Result<Dict> {
    let users = match user.filter(Value::truthy) {
        None => user::list_users(cx, None)?,
        Some(Value::List(users)) => users.into_iter().map(|user| user.to_string()).collect(),
        Some(one) => vec![one.to_string()],
    };
    let kinds = ["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"];
    let names = |given: &Option<Value>, end: &str| match given {
        Some(Value::Bool(false)) => Vec::new(),
        Some(file) if file.truthy() => vec![file.to_string()],
        _ => kinds.iter().map(|kind| format!("{kind}{end}")).collect(),
    };
    let mut files = names(&pubfile, ".pub");
    files.extend(names(&prvfile, ""));
    let found = Dict::new();
    for name in users {
        let Some(user) = user::find(cx, &name, None)? else { continue };
        let keys = Dict::new();
        for file in &files {
            let path = Path::new(&user.home).join(".ssh").join(file);
            if let Some(text) = cx.host.read_text_if_there(&path)? {
                let shown = file.rsplit('/').next().unwrap_or(file);
                keys.insert(shown, text.trim());
            }
        }
        if !keys.is_empty() {
            found.insert(name, keys);
        }
    }
    Ok(found)
}

/// Hash the names in a file of known hosts.
///
/// ```console
/// $ salt '*' ssh.hash_known_hosts <user>
/// ```
#[function]
pub fn hash_known_hosts(
    cx: &Cx,
    /// Whose file.
    user: Option<String>,
    /// The file.
    config: Option<String>,
) -> Result<Dict> {
    let store = Store { user, config, ..Store::default() };
    match store.hash(cx) {
        Ok(comment) => Ok(entries! { "status" => "updated", "comment" => comment }),
        Err(Error::Failed(text)) => Ok(known::failure(&text)),
        Err(error) => Err(error),
    }
}

/// Tell whether a private key needs a passphrase.
///
/// ```console
/// $ salt web1 ssh.key_is_encrypted /srv/home/ada/.ssh/id_ed25519
/// ```
#[function]
pub fn key_is_encrypted(
    cx: &Cx,
    /// The file of the key.
    key: String,
) -> Result<bool> {
    let text = cx.host.read_text(Path::new(&key))?;
    if text.contains("ENCRYPTED") {
        return Ok(true);
    }
    // The new format names its cipher first; «none» is no cipher.
    let body: String =
        text.lines().map(str::trim).filter(|line| !line.starts_with("-----")).collect();
    let raw = crate::hashutil::from_base64(body.as_bytes()).unwrap_or_default();
    let magic = b"openssh-key-v1\0";
    Ok(raw.strip_prefix(magic).is_some_and(|rest| rest.get(4..8) != Some(b"none")))
}
