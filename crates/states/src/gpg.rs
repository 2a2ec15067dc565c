//! `gpg`: OpenPGP keys that are in a keyring, or are not.

use std::path::Path;

use halite_modules::gpg::{self, Key, Ring};
use halite_spec::{Applied, Args, Cx, Error, Plan, Rest, Result, State, states};
use halite_value::{Dict, Value, entries};

states! {
    /// Keep OpenPGP keys in keyrings.
    "gpg": "absent" => Absent, "present" => Present,
}

/// The keys meant: `keys`, or the name.
fn wanted(name: &str, keys: &Value) -> Vec<String> {
    match keys {
        Value::Null => vec![name.to_owned()],
        Value::Str(key) => vec![key.to_string()],
        _ => keys.items_of_sequence().unwrap_or_default().iter().map(Value::to_string).collect(),
    }
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Null => Vec::new(),
        Value::Str(text) => vec![text.to_string()],
        _ => value.items_of_sequence().unwrap_or_default().iter().map(Value::to_string).collect(),
    }
}

/// Make sure that keys are in a keyring, and how much their owners are trusted.
#[derive(Args)]
pub struct Present {
    /// The key, unless `keys` names some.
    name: String,
    /// The ids or fingerprints.
    #[default(Value::Null)]
    keys: Value,
    /// Whose keyring; that of the minion's user unless said.
    user: Option<String>,
    /// The server to get them from.
    keyserver: Option<String>,
    /// The folder the keyring lies in.
    gnupghome: Option<String>,
    /// `expired`, `unknown`, `not_trusted`, `marginally`, `fully` or `ultimately`.
    trust: Option<String>,
    /// A keyring of its own.
    keyring: Option<String>,
    /// Files that hold the keys, tried before the server.
    #[default(Value::Null)]
    source: Value,
    /// Do not ask a server.
    #[default(false)]
    skip_keyserver: bool,
    /// Texts that hold the keys, tried first.
    #[default(Value::Null)]
    text: Value,
    /// Look for new subkeys when the newest is as many days old. Kept for Salt's sake.
    #[default(100)]
    subkey_maxage: i64,
    /// Further arguments are passed over.
    rest: Rest,
}

impl Present {
    fn ring(&self) -> Ring {
        Ring::new(self.user.clone(), self.gnupghome.clone(), self.keyring.clone())
    }

    /// The comments and changes for what is in the keyring.
    fn outlook(&self, have: &[Key], done: bool) -> (Vec<String>, Dict) {
        let (mut lines, changes) = (Vec::new(), Dict::new());
        for id in wanted(&self.name, &self.keys) {
            lines.push(format!("Key {id}:"));
            let own = have.iter().find(|key| key.is(&id));
            let change = Dict::new();
            if own.is_some() {
                lines.push(format!(" * GPG Public Key {id} already in keychain"));
            } else {
                change.insert("added", true);
                let verb = if done { "Added" } else { "Would have added" };
                lines.push(format!(" * {verb} {id} to GPG keychain"));
            }
            if let Some(level) = &self.trust {
                let shown = gpg::trust_shown(level);
                if own.is_some_and(|key| Some(key.owner_trust) == shown) {
                    lines.push(format!(" * GPG Public Key {id} already in correct trust state"));
                } else {
                    change.insert("trust", level.as_str());
                    let verb = if done { "Set" } else { "Would have set" };
                    lines.push(format!(" * {verb} trust level for {id} to {level}"));
                }
            }
            if !change.is_empty() {
                changes.insert(id, change);
            }
        }
        (lines, changes)
    }

    /// Takes in the first of some data that holds the key; says why none does.
    fn import(&self, cx: &Cx, id: &str) -> Result<Option<String>> {
        let ring = self.ring();
        let mut reasons = Vec::new();
        let mut take = |data: &[u8], what: &str| -> Result<bool> {
            if !gpg::shown_keys(cx, &ring, data)?.iter().any(|key| key.is(id)) {
                reasons.push(format!("Passed {what} did not contain the requested key {id}"));
                return Ok(false);
            }
            let text = String::from_utf8_lossy(data).into_owned();
            let Ring { user, home, keyring } = ring.clone();
            let done = gpg::import_key(cx, Some(text), None, user, home, keyring, Value::Null)?;
            let ok = done.get("res").is_some_and(|ok| ok.truthy());
            if !ok {
                reasons.push(done.get("message").unwrap_or_default().to_string());
            }
            Ok(ok)
        };
        for text in texts(&self.text) {
            if take(text.as_bytes(), "text")? {
                return Ok(None);
            }
        }
        for source in texts(&self.source) {
            let Some(path) = cx.files.cache(&source, &cx.saltenv())? else {
                continue;
            };
            let data = cx.host.read_if_there(&path)?.unwrap_or_default();
            if take(&data, &format!("source {source}"))? {
                return Ok(None);
            }
        }
        if self.skip_keyserver {
            if reasons.is_empty() {
                reasons.push(format!("None of the sources holds the key {id}"));
            }
            return Ok(Some(reasons.join("\n * ")));
        }
        let Ring { user, home, keyring } = self.ring();
        let server = self.keyserver.clone();
        let done = gpg::receive_keys(cx, server, id.into(), user, home, keyring)?;
        if done.get("res").is_some_and(|ok| ok.truthy()) {
            return Ok(None);
        }
        let lines = done.get("message").and_then(|lines| lines.items_of_sequence());
        let lines = lines.unwrap_or_default();
        reasons.extend(lines.iter().map(Value::to_string));
        Ok(Some(reasons.join("\n * ")))
    }
}

impl State for Present {
    type Seen = Vec<Key>;

    fn observe(&self, cx: &Cx) -> Result<Vec<Key>> {
        if let Some(level) = self.trust.as_ref().filter(|level| gpg::trust_shown(level).is_none()) {
            return Err(Error::failed(format!("Invalid trust level {level}")));
        }
        if self.skip_keyserver && self.source.is_null() && self.text.is_null() {
            return Err(Error::failed(
                "When skipping keyservers, you must provide at least one source",
            ));
        }
        let _ = (self.subkey_maxage, &self.rest);
        Key::of(cx, &self.ring(), false)
    }

    fn plan(&self, have: &Vec<Key>) -> Result<Plan> {
        let (lines, changes) = self.outlook(have, false);
        let (done, _) = self.outlook(have, true);
        if changes.is_empty() {
            return Ok(Plan::nothing(lines.join("\n")));
        }
        Ok(Plan::changes(changes).pending(lines.join("\n")).done(done.join("\n")))
    }

    fn apply(&self, cx: &Cx, have: Vec<Key>) -> Result<Applied> {
        let (mut lines, changes) = (Vec::new(), Dict::new());
        let mut ok = true;
        for id in wanted(&self.name, &self.keys) {
            lines.push(format!("Key {id}:"));
            let own = have.iter().find(|key| key.is(&id));
            let change = Dict::new();
            if own.is_some() {
                lines.push(format!(" * GPG Public Key {id} already in keychain"));
            } else if let Some(reason) = self.import(cx, &id)? {
                lines.push(format!(" * {reason}"));
                ok = false;
                continue;
            } else {
                change.insert("added", true);
                lines.push(format!(" * Added {id} to GPG keychain"));
            }
            if let Some(level) = &self.trust {
                let shown = gpg::trust_shown(level);
                if own.is_some_and(|key| Some(key.owner_trust) == shown) {
                    lines.push(format!(" * GPG Public Key {id} already in correct trust state"));
                } else {
                    let Ring { user, home, keyring } = self.ring();
                    let level = Some(level.clone());
                    let set = gpg::trust_key(
                        cx,
                        Some(id.clone()),
                        None,
                        level.clone(),
                        user,
                        home,
                        keyring,
                    )?;
                    let level = level.unwrap_or_default();
                    if set.get("res").is_some_and(|ok| ok.truthy()) {
                        change.insert("trust", level.as_str());
                        lines.push(format!(" * Set trust level for {id} to {level}"));
                    } else {
                        ok = false;
                        let reason = set.get("message").unwrap_or_default();
                        lines.push(format!(" * {reason}"));
                    }
                }
            }
            if !change.is_empty() {
                changes.insert(id, change);
            }
        }
        if !ok {
            return Ok(Applied::failed(changes, lines.join("\n")));
        }
        Ok(Applied::changes(changes).comment(lines.join("\n")))
    }
}

/// Make sure that keys are not in a keyring.
#[derive(Args)]
pub struct Absent {
    /// The key, unless `keys` names some.
    name: String,
    /// The ids or fingerprints.
    #[default(Value::Null)]
    keys: Value,
    /// Whose keyring; that of the minion's user unless said.
    user: Option<String>,
    /// The folder the keyring lies in.
    gnupghome: Option<String>,
    /// A keyring of its own.
    keyring: Option<String>,
    /// Remove that keyring when nothing is left in it.
    #[default(false)]
    keyring_absent_if_empty: bool,
    /// Further arguments are passed over.
    rest: Rest,
}

impl Absent {
    fn ring(&self) -> Ring {
        Ring::new(self.user.clone(), self.gnupghome.clone(), self.keyring.clone())
    }

    fn outlook(&self, have: &[Key], verb: &str) -> (Vec<String>, Vec<String>) {
        let (mut lines, mut gone) = (Vec::new(), Vec::new());
        for id in wanted(&self.name, &self.keys) {
            if have.iter().any(|key| key.is(&id)) {
                lines.push(format!("{verb} {id} from GPG keychain"));
                gone.push(id);
            } else {
                lines.push(format!("{id} not found in GPG keychain"));
            }
        }
        (lines, gone)
    }
}

impl State for Absent {
    type Seen = Vec<Key>;

    fn observe(&self, cx: &Cx) -> Result<Vec<Key>> {
        let _ = &self.rest;
        Key::of(cx, &self.ring(), false)
    }

    fn plan(&self, have: &Vec<Key>) -> Result<Plan> {
        let (lines, gone) = self.outlook(have, "Would have deleted");
        if gone.is_empty() {
            return Ok(Plan::nothing(lines.join("\n")));
        }
        let (done, _) = self.outlook(have, "Deleted");
        let changes = entries! { "deleted" => Value::list(gone) };
        Ok(Plan::changes(changes).pending(lines.join("\n")).done(done.join("\n")))
    }

    fn apply(&self, cx: &Cx, have: Vec<Key>) -> Result<Applied> {
        let (mut lines, mut gone, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
        for id in wanted(&self.name, &self.keys) {
            if !have.iter().any(|key| key.is(&id)) {
                lines.push(format!("{id} not found in GPG keychain"));
                continue;
            }
            let Ring { user, home, keyring } = self.ring();
            let done =
                gpg::delete_key(cx, Some(id.clone()), None, false, user, home, true, keyring)?;
            if done.get("res").is_some_and(|ok| ok.truthy()) {
                lines.push(format!("Deleted {id} from GPG keychain"));
                gone.push(id);
            } else {
                wrong.push(done.get("message").unwrap_or_default().to_string());
            }
        }
        let changes = Dict::new();
        if !gone.is_empty() {
            changes.insert("deleted", Value::list(gone));
        }
        if let Some(keyring) = self.keyring.as_ref().filter(|_| self.keyring_absent_if_empty)
            && wrong.is_empty()
            && Key::of(cx, &self.ring(), false)?.is_empty()
            && cx.host.exists(Path::new(keyring))?
        {
            cx.host.remove_file(Path::new(keyring))?;
            lines.push(format!("Removed empty keyring file {keyring}"));
            changes.insert("removed", keyring.as_str());
        }
        lines.extend(wrong.iter().cloned());
        if wrong.is_empty() {
            return Ok(Applied::changes(changes).comment(lines.join("\n")));
        }
        Ok(Applied::failed(changes, lines.join("\n")))
    }
}
