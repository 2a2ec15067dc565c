//! `salt-key` and `wheel.key`: what they do with keys, without a terminal.
//!
//! Lists are dicts from Salt's names of states (`minions`, `minions_pre` …) to ids, in Salt's order:
//! that is what outputters, `--out json` and API clients see. Ids are sorted without regard to case.

use std::{
    fs,
    path::{Path, PathBuf},
};

use halite_crypt::{
    Hash, KeyOptions, PkiDir, PrivateKey, PublicKey, SigAlgo, file, fingerprint_of_text,
    pki::sign_pubkey,
};
use halite_target::fnmatch::Glob;
use halite_value::{Dict, Value, entries};
use halite_wire::MinionId;

use crate::{Error, KeyState, Keyring};

/// The states in the order Salt lists them.
const ORDER: [KeyState; 4] =
    [KeyState::Pending, KeyState::Rejected, KeyState::Accepted, KeyState::Denied];

/// The keys of a master.
pub struct Keys {
    ring: Keyring,
    dir: PathBuf,
    hash: Hash,
}

/// Which keys are meant.
#[derive(Clone, Debug)]
pub enum Match {
    /// Globs over ids; one of them must fit.
    Globs(Vec<String>),
    /// Exactly these, by state.
    Dict(Dict),
}

impl Match {
    /// Reads what users give: one glob, several with commas, or a list.
    pub fn of(given: &Value) -> Self {
        match given {
            Value::Dict(dict) => Self::Dict(dict.clone()),
            Value::Str(text) => Self::Globs(text.split(',').map(str::to_owned).collect()),
            other => match other.items_of_sequence() {
                Some(items) => {
                    Self::Globs(items.iter().map(std::string::ToString::to_string).collect())
                }
                None => Self::Globs(vec![other.to_string()]),
            },
        }
    }
}

/// Which states are considered besides the waiting keys.
#[derive(Clone, Copy, Debug, Default)]
pub struct Include {
    pub accepted: bool,
    pub rejected: bool,
    pub denied: bool,
}

/// What a change did.
#[derive(Debug, Default)]
pub struct Changed {
    /// The keys that were meant, under the states they have now.
    pub keys: Dict,
    /// For `salt/key` on the master's bus.
    pub events: Vec<Dict>,
    /// Files that hold no key; they stay where they are.
    pub invalid: Vec<MinionId>,
}

/// What to sign, and where the signature goes.
#[derive(Debug)]
pub struct Signature<'a> {
    pub private: Option<&'a Path>,
    pub public: Option<&'a Path>,
    /// The folder to write to; the `pki_dir` if none.
    pub folder: Option<&'a Path>,
    /// Make the signing pair if there is none.
    pub auto_create: bool,
    /// The name of that pair (`master_sign_key_name`).
    pub sign_name: &'a str,
    pub passphrase: Option<&'a str>,
    pub bits: u32,
    pub algo: SigAlgo,
    /// The name of the file (`master_pubkey_signature`).
    pub file_name: &'a str,
}

impl Keys {
    /// Names a `pki_dir`; nothing is touched yet.
    pub fn new(dir: &Path, group_may_read: bool, hash: Hash) -> Self {
        Self { ring: Keyring::new(dir, group_may_read), dir: dir.to_owned(), hash }
    }

    /// Reads the options that matter: `pki_dir` (or the cluster's), `permissive_pki_access`,
    /// `hash_type`.
    pub fn from_opts(opts: &Dict) -> Self {
        let text = |name: &str| {
            opts.get(name).filter(Value::truthy).map(|value| value.to_string()).unwrap_or_default()
        };
        let clustered = opts.get("cluster_id").is_some_and(|id| !id.is_null());
        let dir = text(if clustered { "cluster_pki_dir" } else { "pki_dir" });
        let group = opts.get("permissive_pki_access").is_some_and(|value| value.truthy());
        Self::new(Path::new(&dir), group, text("hash_type").parse().unwrap_or_default())
    }

    pub fn ring(&self) -> &Keyring {
        &self.ring
    }

    fn ids(&self, state: KeyState) -> Result<Vec<MinionId>, Error> {
        let mut ids = self.ring.list(state)?;
        // They are sorted already but for case, which few ids have.
        let may_be_upper = |byte: u8| byte.is_ascii_uppercase() || !byte.is_ascii();
        if ids.iter().any(|id| id.bytes().any(may_be_upper)) {
            ids.sort_by_cached_key(|id| id.to_lowercase());
        }
        Ok(ids)
    }

    /// Returns the ids by state.
    pub fn list(&self) -> Result<Dict, Error> {
        let lists = Dict::new();
        for state in ORDER {
            lists.insert(state.folder(), Value::list(&self.ids(state)?));
        }
        Ok(lists)
    }

    /// Returns the master's own key files. Links (`master.pem`) are left out, as in Salt 3008.
    pub fn local(&self) -> Result<Vec<String>, Error> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(Error::io(&self.dir, source)),
        };
        let mut names: Vec<String> = entries
            .filter_map(Result::ok)
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| !name.starts_with('.'))
            .filter(|name| {
                Path::new(name).extension().is_some_and(|end| end == "pem" || end == "pub")
            })
            .collect();
        names.sort_by_cached_key(|name| name.to_lowercase());
        Ok(names)
    }

    /// Returns the ids by state, and the master's own files under `local`.
    pub fn all(&self) -> Result<Dict, Error> {
        let all = self.list()?;
        all.insert("local", Value::list(self.local()?));
        Ok(all)
    }

    /// Returns the ids of one state, named as `salt-key -l` names it.
    pub fn list_status(&self, status: &str) -> Result<Dict, Error> {
        let one = |state: KeyState| {
            let ids = self.ids(state)?;
            Ok(entries! { state.folder() => Value::list(&ids) })
        };
        match status {
            _ if status.starts_with("acc") => one(KeyState::Accepted),
            _ if status.starts_with("pre") || status.starts_with("un") => one(KeyState::Pending),
            _ if status.starts_with("rej") => one(KeyState::Rejected),
            _ if status.starts_with("den") => one(KeyState::Denied),
            _ if status.starts_with("all") => self.all(),
            _ => Ok(Dict::new()),
        }
    }

    /// Returns what matches, by state; states without a match are left out.
    pub fn matching(&self, what: &Match) -> Result<Dict, Error> {
        Ok(match what {
            Match::Globs(globs) => filter(&self.list()?, globs),
            Match::Dict(dict) => dict.clone(),
        })
    }

    /// Accepts waiting keys.
    pub fn accept(&self, what: &Match, include: Include) -> Result<Changed, Error> {
        self.shift(what, KeyState::Accepted, include)
    }

    /// Rejects waiting keys. The caller asks for a new session key ([`request_rotation`]).
    pub fn reject(&self, what: &Match, include: Include) -> Result<Changed, Error> {
        self.shift(what, KeyState::Rejected, include)
    }

    fn shift(&self, what: &Match, to: KeyState, include: Include) -> Result<Changed, Error> {
        let meant = self.matching(what)?;
        self.ring.make_folders()?;
        let mut changed = Changed::default();
        let from = [
            (KeyState::Pending, true),
            (KeyState::Rejected, include.rejected),
            (KeyState::Denied, include.denied),
            (KeyState::Accepted, include.accepted),
        ];
        for (from, _) in from.into_iter().filter(|(_, asked)| *asked) {
            for id in ids_in(&meant, from) {
                // Gone since it was listed: somebody else was quicker.
                let Some(text) = self.ring.text(from, &id) else { continue };
                if PublicKey::from_pem(text.as_bytes()).is_err() {
                    tracing::error!("Invalid RSA public key: {id}");
                    changed.invalid.push(id);
                    continue;
                }
                if from == KeyState::Denied {
                    // The denied key may stand beside another one, which it replaces.
                    self.ring.put(to, &id, &text)?;
                    self.ring.delete(&id, KeyState::Denied)?;
                } else if from != to {
                    self.ring.shift(&id, from, to)?;
                }
                changed.events.push(event(to.word(), &id, Some(&text)));
            }
        }
        changed.keys = self.now(what, &meant)?;
        Ok(changed)
    }

    /// Deletes keys. The caller asks for a new session key ([`request_rotation`]).
    pub fn delete(&self, what: &Match) -> Result<Changed, Error> {
        let meant = self.matching(what)?;
        let mut changed = Changed::default();
        for state in KeyState::ALL {
            for id in ids_in(&meant, state) {
                if self.ring.delete(&id, state)? {
                    changed.events.push(event("delete", &id, None));
                }
            }
        }
        changed.keys = self.now(what, &meant)?;
        Ok(changed)
    }

    /// Returns the states that the meant keys have now.
    fn now(&self, what: &Match, meant: &Dict) -> Result<Dict, Error> {
        if let Match::Globs(globs) = what {
            return Ok(filter(&self.list()?, globs));
        }
        let now = Dict::new();
        for (_, ids) in meant.entries() {
            for id in ids.items_of_sequence().unwrap_or_default() {
                let Ok(id) = MinionId::new(&id.to_str()) else { continue };
                for state in KeyState::ALL {
                    if self.ring.text(state, &id).is_some() {
                        add(&now, state.folder(), &id);
                    }
                }
            }
        }
        Ok(now)
    }

    /// Returns the texts of the keys that match, by state.
    pub fn texts(&self, what: &Match) -> Result<Dict, Error> {
        self.described(&self.matching(what)?, |_, text| text.into())
    }

    /// Returns the fingerprints of the keys that match, by state; the master's own among them.
    pub fn fingers(&self, what: &Match, hash: Option<Hash>) -> Result<Dict, Error> {
        let hash = hash.unwrap_or(self.hash);
        let meant = match what {
            Match::Globs(globs) => filter(&self.all()?, globs),
            Match::Dict(dict) => dict.clone(),
        };
        self.described(&meant, |_, text| fingerprint_of_text(text.as_bytes(), hash).into())
    }

    fn described(
        &self,
        meant: &Dict,
        describe: impl Fn(&str, &str) -> Value,
    ) -> Result<Dict, Error> {
        let described = Dict::new();
        for (status, ids) in meant.entries() {
            let of_status = Dict::new();
            for id in ids.items_of_sequence().unwrap_or_default() {
                let id = id.to_str();
                let text =
                    match KeyState::ALL.into_iter().find(|state| status.to_str() == state.folder())
                    {
                        Some(state) => {
                            MinionId::new(&id).ok().and_then(|id| self.ring.text(state, &id))
                        }
                        None => self.local_text(&id)?,
                    };
                if let Some(text) = text {
                    of_status.insert(id.as_str(), describe(&id, &text));
                }
            }
            described.insert(status, of_status);
        }
        Ok(described)
    }

    fn local_text(&self, name: &str) -> Result<Option<String>, Error> {
        if MinionId::new(name).is_err() {
            return Ok(None);
        }
        let text = file::read(&self.dir.join(name))?;
        Ok(text.map(|text| String::from_utf8_lossy(&text).into_owned()))
    }

    /// Stores a new key as accepted; `false` if there is one and `force` is not.
    pub fn put_accepted(&self, id: &MinionId, text: &str, force: bool) -> Result<bool, Error> {
        if !force && self.ring.find(id).is_some() {
            return Ok(false);
        }
        self.ring.make_folders()?;
        self.ring.put(KeyState::Accepted, id, text)?;
        Ok(true)
    }

    /// Makes a pair `<folder>/<name>.{pem,pub}`, or finds it there, and returns its fingerprint.
    pub fn make_pair(
        &self,
        folder: Option<&Path>,
        name: &str,
        options: &KeyOptions<'_>,
    ) -> Result<String, Error> {
        let folder = PkiDir::new(folder.unwrap_or(&self.dir));
        let key = folder.load_or_create(name, options)?;
        Ok(fingerprint_of_text(key.public().to_pem().as_bytes(), self.hash))
    }

    /// Signs the master's public key. The text is Salt's word on what is missing.
    pub fn sign(&self, request: &Signature<'_>) -> Result<Result<bool, String>, Error> {
        let missing =
            |what: &str, path: &Path| Ok(Err(format!("{what} {} does not exist", path.display())));
        let public = match request.public {
            Some(path) if !path.is_file() => return missing("Public-key", path),
            Some(path) => Some(path.to_owned()),
            None => Some(self.dir.join("master.pub")).filter(|path| path.is_file()),
        };
        let private = match request.private {
            Some(path) if !path.is_file() => return missing("Private-key", path),
            Some(path) => Some(path.to_owned()),
            None => Some(self.dir.join("master_sign.pem")).filter(|path| path.is_file()),
        };
        let key = match private {
            Some(path) => {
                let pem = file::read(&path)?.unwrap_or_default();
                PrivateKey::from_pem(&pem, request.passphrase)?
            }
            None if request.auto_create => {
                let options = KeyOptions {
                    bits: request.bits,
                    passphrase: request.passphrase,
                    ..KeyOptions::default()
                };
                PkiDir::new(&self.dir).load_or_create(request.sign_name, &options)?
            }
            None => return Ok(Err("No usable private-key found".into())),
        };
        let Some(public) = public else { return Ok(Err("No usable public-key found".into())) };
        let text = file::read(&public)?.unwrap_or_default();
        let public = PublicKey::from_pem(&text)?;
        let signature = sign_pubkey(&key, request.algo, public.text())?;
        let folder = PkiDir::new(request.folder.unwrap_or(&self.dir));
        Ok(Ok(folder.write_pubkey_signature(request.file_name, &signature)?))
    }
}

/// Names the file with the stored signature of a master's key: as configured
/// (`master_pubkey_signature`), or after the master's id. Who writes and who reads must agree.
pub fn signature_file(configured: Option<&str>, id: &str) -> String {
    let configured = configured.filter(|name| !name.is_empty());
    configured.map_or_else(|| format!("{id}_pubkey_signature"), str::to_owned)
}

/// Asks a running master for a new session key, by the file Salt uses for that.
pub fn request_rotation(cachedir: &Path, master_id: &str, owner: Option<u32>) -> Result<(), Error> {
    if !cachedir.is_dir() {
        // No master ever ran here, so there is no session to end.
        return Ok(());
    }
    file::create(&cachedir.join(".dfn"), master_id.as_bytes(), 0o400, owner)?;
    Ok(())
}

fn event(act: &str, id: &MinionId, text: Option<&str>) -> Dict {
    let event = entries! { "result" => true, "act" => act, "id" => id };
    if let Some(text) = text {
        event.insert("pub", text);
    }
    event
}

fn add(lists: &Dict, status: &str, id: &MinionId) {
    let list = lists.get_or_insert_with(status, || Value::list(Vec::<Value>::new()));
    if let Some(list) = list.as_list()
        && !list.contains(&id.into())
    {
        list.push(id);
    }
}

fn ids_in(lists: &Dict, state: KeyState) -> Vec<MinionId> {
    let ids = lists.get(state.folder()).and_then(|ids| ids.items_of_sequence());
    ids.unwrap_or_default().iter().filter_map(|id| MinionId::new(&id.to_str()).ok()).collect()
}

/// Keeps what one of the globs matches, each once, and no empty lists.
fn filter(lists: &Dict, globs: &[String]) -> Dict {
    let globs: Vec<Glob> = globs.iter().map(|glob| Glob::new(glob)).collect();
    let kept = Dict::new();
    for (status, ids) in lists.entries() {
        let ids: Vec<Value> = ids
            .items_of_sequence()
            .unwrap_or_default()
            .into_iter()
            .filter(|id| globs.iter().any(|glob| glob.matches(&id.to_str())))
            .collect();
        if !ids.is_empty() {
            kept.insert(status, ids);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use halite_value::dict;

    use super::*;

    fn keys(folder: &tempfile::TempDir) -> Keys {
        let keys = Keys::new(folder.path(), false, Hash::Sha256);
        keys.ring.make_folders().unwrap();
        let key = PrivateKey::generate(2048).unwrap();
        let text = key.public().to_pem();
        for (state, id) in [
            (KeyState::Pending, "web1"),
            (KeyState::Pending, "Web2"),
            (KeyState::Accepted, "db1"),
            (KeyState::Rejected, "old"),
            (KeyState::Denied, "odd"),
        ] {
            keys.ring.put(state, &MinionId::new(id).unwrap(), text).unwrap();
        }
        keys.ring.put(KeyState::Pending, &MinionId::new("bad").unwrap(), "no key").unwrap();
        keys
    }

    fn globs(text: &str) -> Match {
        Match::of(&text.into())
    }

    #[test]
    fn lists_are_in_salts_order() {
        let folder = tempfile::tempdir().unwrap();
        let keys = keys(&folder);
        fs::write(folder.path().join("m.pem"), "x").unwrap();
        let expected = dict! {
            "minions_pre" => Value::list(["bad", "web1", "Web2"]),
            "minions_rejected" => Value::list(["old"]),
            "minions" => Value::list(["db1"]),
            "minions_denied" => Value::list(["odd"]),
            "local" => Value::list(["m.pem"]),
        };
        let all = keys.all().unwrap();
        assert_eq!(Value::from(&all), expected);
        assert_eq!(all.keys()[2].to_str(), "minions");
        assert_eq!(keys.list_status("unaccepted").unwrap().len(), 1);
        let none = Keys::new(&folder.path().join("nowhere"), false, Hash::Sha256);
        assert_eq!(none.all().unwrap().len(), 5);
    }

    #[test]
    fn accepting_and_rejecting() {
        let folder = tempfile::tempdir().unwrap();
        let keys = keys(&folder);
        let changed = keys.accept(&globs("web*,bad,old,odd"), Include::default()).unwrap();
        assert_eq!(changed.events.len(), 1, "Web2 has another case");
        assert_eq!(changed.invalid.len(), 1);
        let include = Include { denied: true, rejected: true, ..Include::default() };
        let changed = keys.accept(&globs("o*"), include).unwrap();
        assert_eq!(Value::from(&changed.keys), dict! { "minions" => Value::list(["odd", "old"]) });
        let meant = Match::Dict(entries! { "minions" => Value::list(["db1", "gone"]) });
        let include = Include { accepted: true, ..Include::default() };
        let changed = keys.reject(&meant, include).unwrap();
        assert_eq!(
            Value::from(&changed.keys),
            dict! { "minions_rejected" => Value::list(["db1"]) }
        );
        assert_eq!(changed.events[0].get("act"), Some("rejected".into()));
    }

    #[test]
    fn deleting() {
        let folder = tempfile::tempdir().unwrap();
        let keys = keys(&folder);
        let changed = keys.delete(&globs("*")).unwrap();
        assert_eq!((changed.events.len(), changed.keys.len()), (6, 0));
        request_rotation(folder.path(), "m", None).unwrap();
        request_rotation(folder.path(), "again", None).unwrap();
        assert_eq!(fs::read_to_string(folder.path().join(".dfn")).unwrap(), "m");
    }

    #[test]
    fn pairs_and_signatures() {
        let folder = tempfile::tempdir().unwrap();
        let keys = Keys::new(folder.path(), false, Hash::Sha256);
        let mut request = Signature {
            private: None,
            public: None,
            folder: None,
            auto_create: false,
            sign_name: "master_sign",
            passphrase: None,
            bits: 2048,
            algo: SigAlgo::default(),
            file_name: &signature_file(None, "m_master"),
        };
        assert_eq!(request.file_name, "m_master_pubkey_signature");
        assert_eq!(signature_file(Some("given"), "m_master"), "given");
        assert_eq!(keys.sign(&request).unwrap(), Err("No usable private-key found".into()));
        request.auto_create = true;
        assert_eq!(keys.sign(&request).unwrap(), Err("No usable public-key found".into()));
        let options = KeyOptions::default();
        let finger = keys.make_pair(None, "master", &options).unwrap();
        assert_eq!(finger.len(), 95);
        assert_eq!(keys.make_pair(None, "master", &options).unwrap(), finger);
        assert_eq!(keys.sign(&request).unwrap(), Ok(true));
        let fingers = keys.fingers(&globs("master.pub"), None).unwrap();
        assert_eq!(fingers.get("local").unwrap().get_str("master.pub").unwrap(), finger);
    }
}
