//! The keys apt trusts.
//!
//! They live in one of two [`KeyStore`]s: a folder of keyring files (today's way) or what the
//! retired `apt-key` keeps. [`store`] picks: `apt-key` if the caller wants it and it is there.
//! Where a new key comes from is a [`KeySource`]. What goes wrong is said in the log; callers are
//! only told that it did.

use std::path::{Path, PathBuf};

use halite_spec::{Command, Cx, Error, Result, host::Write};
use halite_value::{Dict, Value, entries};

use super::{call, options};
use crate::cmd::{self, Options};

const KEYRINGS: &str = "/etc/apt/keyrings";

fn quiet() -> Options {
    Options { query: true, ..options(&Dict::new()) }
}

/// What a line of `gpg --with-colons` is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Key,
    Subkey,
    Fingerprint,
    User,
}

/// A line of `gpg --with-colons`; others than those we know are not read.
#[derive(Debug)]
struct Record<'t> {
    kind: Kind,
    fields: Vec<&'t str>,
}

impl<'t> Record<'t> {
    fn read(line: &'t str) -> Option<Self> {
        let fields: Vec<&str> = line.trim().split(':').map(str::trim).collect();
        let kind = match *fields.first()? {
            "pub" => Kind::Key,
            "sub" => Kind::Subkey,
            "fpr" => Kind::Fingerprint,
            "uid" => Kind::User,
            _ => return None,
        };
        let is_key = matches!(kind, Kind::Key | Kind::Subkey);
        (fields.len() > 1 || !is_key).then_some(Self { kind, fields })
    }

    /// A field by its number in gpg's `DETAILS`, less one: empty ones are null, digits numbers.
    fn field(&self, at: usize) -> Value {
        match self.fields.get(at) {
            None | Some(&"") => Value::Null,
            Some(text) => text.parse().map_or_else(|_| (*text).into(), Value::Int),
        }
    }

    /// What a key's or subkey's record tells of it.
    fn key(&self) -> Dict {
        entries! {
            "algorithm" => self.field(3), "bits" => self.field(2), "capability" => self.field(11),
            "date_creation" => self.field(5), "date_expiration" => self.field(6),
            "keyid" => self.field(4).to_str(), "validity" => self.field(1),
        }
    }
}

/// A key with the records that follow it.
struct Group {
    key: Dict,
    subkey: Option<Dict>,
}

impl Group {
    /// Takes in a record that belongs to the key, or to its newest subkey.
    fn add(&mut self, record: &Record<'_>) {
        match record.kind {
            Kind::Key => {}
            Kind::Subkey => self.subkey = Some(record.key()),
            Kind::Fingerprint => {
                let owner = self.subkey.as_ref().unwrap_or(&self.key);
                owner.insert("fingerprint", record.field(9));
            }
            Kind::User => {
                self.key.insert("uid", record.field(9));
                self.key.insert("uid_hash", record.field(7));
            }
        }
    }

    fn finished(self) -> (String, Dict) {
        if let Some(subkey) = self.subkey {
            self.key.insert("subkey", subkey);
        }
        (self.key.get("keyid").unwrap_or_default().to_string(), self.key)
    }
}

/// Reads `gpg --with-colons`: key id → what is known of it.
fn parse(text: &str) -> Dict {
    let mut groups: Vec<Group> = Vec::new();
    for record in text.lines().filter_map(Record::read) {
        match (record.kind, groups.last_mut()) {
            (Kind::Key, _) | (Kind::Subkey, None) => {
                groups.push(Group { key: record.key(), subkey: None });
            }
            (_, Some(group)) => group.add(&record),
            (_, None) => {}
        }
    }
    groups.into_iter().map(Group::finished).collect()
}

/// Tells whether one of the keys has an id that ends so.
fn holds(keys: &Dict, id: &str) -> bool {
    keys.keys().iter().any(|key| key.to_str().ends_with(id))
}

/// A place that keeps the keys apt trusts. `false` means: did not work, see the log.
trait KeyStore {
    /// All keys by id; `None` if the place does not exist.
    fn keys(&self, cx: &Cx) -> Result<Option<Dict>>;
    /// Makes the place, if it has to be made.
    fn prepare(&self, cx: &Cx) -> Result<()>;
    /// Takes in a key file, under its own name unless another is given.
    fn add_file(&self, cx: &Cx, file: &Path, name: Option<&Path>) -> Result<bool>;
    /// Fetches a key from a server.
    fn fetch(&self, cx: &Cx, server: &str, id: &str, name: Option<&Path>) -> Result<bool>;
    /// Drops a key; false if there is none.
    fn remove(&self, cx: &Cx, id: &str) -> Result<bool>;
}

fn store(cx: &Cx, aptkey: bool, folder: Option<&Path>) -> Box<dyn KeyStore> {
    if aptkey && cx.host.which("apt-key").is_some() {
        return Box::new(AptKey);
    }
    Box::new(Folder::at(folder))
}

/// A folder of keyring files.
struct Folder(PathBuf);

impl Folder {
    fn at(folder: Option<&Path>) -> Self {
        Self(folder.unwrap_or_else(|| Path::new(KEYRINGS)).to_owned())
    }

    /// The files with the keys in each, read as they are asked for.
    fn rings<'a>(
        &'a self,
        cx: &'a Cx,
    ) -> Result<impl Iterator<Item = Result<(PathBuf, Dict)>> + 'a> {
        let names = cx.host.read_dir(&self.0)?;
        Ok(names.into_iter().map(move |name| {
            let file = self.0.join(name);
            let shown = file.display().to_string();
            let words = gpg_at(&shown).into_iter().chain(["--list-keys", "--with-colons"]);
            let keys = parse(&cmd::plain(cx, words, quiet())?.stdout);
            Ok((file, keys))
        }))
    }
}

/// `gpg` on one keyring file.
fn gpg_at(ring: &str) -> [&str; 4] {
    ["gpg", "--no-default-keyring", "--keyring", ring]
}

/// Takes the armour off a key; `None` if that did not work.
fn bare(cx: &Cx, file: &Path, armoured: Vec<u8>) -> Result<Option<Vec<u8>>> {
    if cx.host.which("gpg").is_none() {
        tracing::error!("{} is armoured, and there is no gpg to unpack it", file.display());
        return Ok(None);
    }
    let gpg = Command::new("gpg").args(["--yes", "--dearmor"]);
    let output = cx.host.run(&Command { stdin: Some(armoured), ..gpg })?;
    if !output.ok() {
        tracing::error!("gpg could not take the armour off {}", file.display());
    }
    Ok(output.ok().then_some(output.stdout))
}

impl KeyStore for Folder {
    fn keys(&self, cx: &Cx) -> Result<Option<Dict>> {
        if !cx.host.is_dir(&self.0)? {
            tracing::error!("there is no folder of keyrings at {}", self.0.display());
            return Ok(None);
        }
        let all = Dict::new();
        for ring in self.rings(cx)? {
            all.update(&ring?.1);
        }
        Ok(Some(all))
    }

    fn prepare(&self, cx: &Cx) -> Result<()> {
        if !cx.host.is_dir(&self.0)? {
            cx.host.create_dirs(&self.0, Some(0o755))?;
        }
        Ok(())
    }

    // apt reads a name that ends in `.asc` as armoured, and everything else as bare.
    fn add_file(&self, cx: &Cx, file: &Path, name: Option<&Path>) -> Result<bool> {
        let own = file.file_name().map_or_else(|| Path::new(""), Path::new);
        let place = self.0.join(name.unwrap_or(own));
        let mut content = cx.host.read(file)?;
        let armoured = String::from_utf8_lossy(&content).trim_matches('-').starts_with("BEGIN PGP");
        if armoured && place.extension().is_none_or(|end| end != "asc") {
            let Some(unpacked) = bare(cx, file, content)? else { return Ok(false) };
            content = unpacked;
        }
        cx.host.write(&place, &content, &Write { mode: Some(0o644), ..Write::default() })?;
        Ok(true)
    }

    fn fetch(&self, cx: &Cx, server: &str, id: &str, name: Option<&Path>) -> Result<bool> {
        let Some(name) = name else {
            tracing::error!("a key from {server} needs a file to go to: give `keyfile`");
            return Ok(false);
        };
        let ring = self.0.join(name);
        let shown = ring.display().to_string();
        let words = gpg_at(&shown).into_iter().chain(["--keyserver", server, "--recv-keys", id]);
        let done = succeeds(cx, words, options(&Dict::new()))?;
        if done {
            // gpg makes the file for root alone; apt reads it as another user.
            cx.host.set_mode(&ring, 0o644)?;
        }
        Ok(done)
    }

    fn remove(&self, cx: &Cx, id: &str) -> Result<bool> {
        if !cx.host.is_dir(&self.0)? {
            return Ok(false);
        }
        if !matches!(id.len(), 8 | 16) {
            tracing::error!("'{id}' is no id of a key: those have 8 or 16 digits");
            return Ok(false);
        }
        for ring in self.rings(cx)? {
            let (file, keys) = ring?;
            if holds(&keys, id) {
                cx.host.remove_file(&file)?;
                return Ok(true);
            }
        }
        tracing::error!("no keyring in {} holds the key {id}", self.0.display());
        Ok(false)
    }
}

/// What `apt-key` keeps.
struct AptKey;

impl AptKey {
    fn add_text(cx: &Cx, text: &str) -> Result<bool> {
        let how = Options { stdin: Some(text.to_owned()), ..options(&Dict::new()) };
        succeeds(cx, ["apt-key", "add", "-"], how)
    }
}

impl KeyStore for AptKey {
    fn keys(&self, cx: &Cx) -> Result<Option<Dict>> {
        // The fingerprint is asked for twice: once for keys, once more for subkeys.
        let format = ["--with-fingerprint", "--with-fingerprint", "--with-colons"];
        let words = ["apt-key", "adv", "--batch", "--list-public-keys"].into_iter();
        let ran = call(cx, words.chain(format).chain(["--fixed-list-mode"]), quiet())?;
        if !ran.ok() {
            tracing::error!("apt-key could not list its keys: {}", ran.stderr);
            return Ok(Some(Dict::new()));
        }
        Ok(Some(parse(&ran.stdout)))
    }

    fn prepare(&self, _: &Cx) -> Result<()> {
        Ok(())
    }

    fn add_file(&self, cx: &Cx, file: &Path, _: Option<&Path>) -> Result<bool> {
        let file = file.display().to_string();
        succeeds(cx, ["apt-key", "add", &file], options(&Dict::new()))
    }

    fn fetch(&self, cx: &Cx, server: &str, id: &str, _: Option<&Path>) -> Result<bool> {
        let words = ["apt-key", "adv", "--batch", "--keyserver", server, "--recv", id];
        succeeds(cx, words, options(&Dict::new()))
    }

    fn remove(&self, cx: &Cx, id: &str) -> Result<bool> {
        let ran = call(cx, ["apt-key", "del", id], options(&Dict::new()))?;
        if ran.ok() {
            return Ok(true);
        }
        Err(Error::failed(format!("Failed to remove keyid {id}: {}", ran.stderr)))
    }
}

/// Runs what takes a key in.
fn succeeds<'a>(cx: &Cx, words: impl IntoIterator<Item = &'a str>, how: Options) -> Result<bool> {
    let ran = call(cx, words, how)?;
    if !ran.ok() {
        tracing::error!("the key was not taken in: {}", ran.stderr);
    }
    Ok(ran.ok())
}

/// All keys apt trusts; False if there is no folder of keyrings.
pub(crate) fn list(cx: &Cx, aptkey: bool, folder: Option<&Path>) -> Result<Value> {
    Ok(store(cx, aptkey, folder).keys(cx)?.map_or(Value::Bool(false), Value::from))
}

/// Puts a key file into the folder of keyrings, without its armour unless it is named `.asc`.
pub(crate) fn add_file(
    cx: &Cx,
    file: &Path,
    folder: Option<&Path>,
    name: Option<&Path>,
) -> Result<bool> {
    let folder = Folder::at(folder);
    folder.prepare(cx)?;
    folder.add_file(cx, file, name)
}

/// Fetches a key from a key server, unless it is here.
pub(super) fn receive(
    cx: &Cx,
    id: &str,
    server: &str,
    signedby: Option<&Path>,
    aptkey: bool,
) -> Result<()> {
    if aptkey {
        let here = cmd::plain(cx, ["apt-key", "export", id], quiet())?.stdout;
        if here.starts_with("-----BEGIN PGP") {
            return Ok(());
        }
        // gpg tells what went wrong on the log, and the caller is to hear of it.
        let words = ["apt-key", "adv", "--batch", "--keyserver", server, "--logger-fd", "1"];
        let words = words.into_iter().chain(["--recv-keys", id]);
        let ran = call(cx, words, options(&Dict::new()))?;
        return match ran.ok() {
            true => Ok(()),
            false => Err(Error::failed(format!("Error: key retrieval failed: {}", ran.stdout))),
        };
    }
    let folder = signedby.and_then(Path::parent);
    if Folder::at(folder).keys(cx)?.is_some_and(|known| known.contains(id)) {
        return Ok(());
    }
    let how = Add {
        keyserver: Some(server.to_owned()),
        keyid: Some(id.to_owned()),
        folder: folder.map(Path::to_owned),
        file: signedby.map(Path::to_owned),
        ..Add::default()
    };
    match add(cx, &how)? {
        true => Ok(()),
        false => Err(Error::failed(format!("Error: Could not add key: {id}"))),
    }
}

/// A key to add, as the caller describes it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Add {
    pub(crate) path: Option<String>,
    pub(crate) text: Option<String>,
    pub(crate) keyserver: Option<String>,
    pub(crate) keyid: Option<String>,
    pub(crate) saltenv: String,
    pub(crate) aptkey: bool,
    pub(crate) folder: Option<PathBuf>,
    pub(crate) file: Option<PathBuf>,
}

/// Where a key comes from.
enum KeySource<'a> {
    /// A file, perhaps of the master.
    File(&'a str),
    Text(&'a str),
    Server {
        server: &'a str,
        id: &'a str,
    },
}

impl<'a> KeySource<'a> {
    /// The first way there is: a file, a text, a server.
    fn of(how: &'a Add) -> Result<Self> {
        let wrong = match how {
            Add { path: Some(path), .. } => return Ok(Self::File(path)),
            Add { text: Some(text), .. } => return Ok(Self::Text(text)),
            Add { keyserver: Some(server), keyid: Some(id), .. } => {
                return Ok(Self::Server { server, id });
            }
            Add { keyserver: Some(server), .. } => {
                format!("No keyid or keyid too short for keyserver: {server}")
            }
            Add { keyid: Some(id), .. } => format!("No keyserver specified for keyid: {id}"),
            _ => "add_repo_key() takes at least 1 argument (0 given)".to_owned(),
        };
        Err(Error::invalid(wrong))
    }
}

/// Adds a key unless one of that id is here; false, with the reason in the log, if that fails.
pub(crate) fn add(cx: &Cx, how: &Add) -> Result<bool> {
    let store = store(cx, how.aptkey, how.folder.as_deref());
    store.prepare(cx)?;
    if let Some(id) = &how.keyid
        && store.keys(cx)?.is_some_and(|known| holds(&known, id))
    {
        return Ok(true);
    }
    let name = how.file.as_deref();
    match KeySource::of(how)? {
        KeySource::File(path) => match cx.files.cache(path, &how.saltenv)? {
            Some(cached) => store.add_file(cx, &cached, name),
            None => {
                tracing::error!("the key file {path} is nowhere to be had");
                Ok(false)
            }
        },
        // A text has no name a file could take: it goes to apt-key in any case.
        KeySource::Text(text) => AptKey::add_text(cx, text),
        KeySource::Server { server, id } => store.fetch(cx, server, id, name),
    }
}

/// Removes a key; returns its id, or False if it is not there.
pub(crate) fn delete(cx: &Cx, id: &str, aptkey: bool, folder: Option<&Path>) -> Result<Value> {
    let gone = store(cx, aptkey, folder).remove(cx, id)?;
    Ok(if gone { id.into() } else { Value::Bool(false) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colons() {
        let text = "tru::1:1\npub:-:4096:1:73C62A1B605C66EA:1610000000:::-:::scSC::::::23::0:\n\
                    fpr:::::::::B8B80B5B623EAB6AD8775C45B7C5D7D6350947F8:\n\
                    uid:-::::1610000000::ABC::Debian <d@e.org>::::::::::0:\n\
                    sub:-:4096:1:0E98404D386FA1D9:1610000000::::::e::::::23:\n\
                    fpr:::::::::FFFF:\n";
        let keys = parse(text);
        let key = keys.get("73C62A1B605C66EA").unwrap();
        assert_eq!(key.get_str("uid").unwrap(), "Debian <d@e.org>");
        assert_eq!(key.get("bits"), Some(Value::Int(4096)));
        assert!(key.get_str("fingerprint").unwrap().ends_with("350947F8"));
        let sub = key.get("subkey").unwrap();
        assert_eq!(sub.get_str("fingerprint").unwrap(), "FFFF");
    }
}
