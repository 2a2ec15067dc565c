//! `gpg`: keys in a keychain of GnuPG.
//!
//! A key that is there may still be of no use: it, or a key below it, may have ended. Then the
//! sources are asked for a newer one. What they gave is judged by the list of keys afterwards.

use std::{collections::HashSet, path::Path};

use halite_modules::gpg::{self, Ring, Wanted};
use halite_spec::{Applied, Args, Cx, Error, Plan, Result, State, Strings, states};
use halite_value::{Dict, Value, entries};

states! {
    /// Keys of GnuPG.
    "gpg": "present" => Present,
    "absent" => Absent,
}

const LEVELS: [&str; 6] =
    ["expired", "unknown", "not_trusted", "marginally", "fully", "ultimately"];

/// Finds a key by its id, long or short, or its fingerprint.
fn find(keys: &[Dict], wanted: &str) -> Option<Dict> {
    let wanted = wanted.trim_start_matches("0x").to_uppercase();
    let fits = |key: &&Dict| {
        key.get("fingerprint").is_some_and(|text| text.to_str().ends_with(&wanted))
            || key.get("keyid").is_some_and(|text| text.to_str().ends_with(&wanted))
    };
    keys.iter().find(fits).cloned()
}

fn is_expired(key: &Dict) -> bool {
    key.get("expired") == Some(Value::Bool(true))
        || key.get("trust").is_some_and(|trust| trust.as_str() == Some("Expired"))
}

fn subkeys(key: &Dict) -> Vec<Dict> {
    let list = key.get("subkeys").and_then(|list| list.items_of_sequence()).unwrap_or_default();
    list.into_iter().filter_map(|item| item.as_dict().cloned()).collect()
}

fn text(key: &Dict, name: &str) -> String {
    key.get(name).map(|value| value.to_str().to_string()).unwrap_or_default()
}

/// Days since 1970 of `2026-11-16`.
fn day_of(date: &str) -> Option<i64> {
    let mut parts = date.split('-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

/// Make sure that keys are in the keychain, and how far they are trusted.
#[derive(Args)]
#[arg(open)]
pub struct Present {
    /// The id of the key, unless `keys` are given.
    name: String,
    /// The ids of the keys.
    keys: Option<Strings>,
    /// Whose keychain.
    user: Option<String>,
    /// The server to ask.
    keyserver: Option<String>,
    /// The folder of GnuPG.
    gnupghome: Option<String>,
    /// `expired`, `unknown`, `not_trusted`, `marginally`, `fully` or `ultimately`.
    trust: Option<String>,
    /// Only this file of keys.
    keyring: Option<String>,
    /// Files that hold the keys; the first that has a key counts.
    source: Option<Strings>,
    /// Do not ask a server.
    #[default(false)]
    skip_keyserver: bool,
    /// A text that holds the keys, instead of sources and servers.
    text: Option<String>,
    /// Look for newer keys below a key that ended at most so many days ago; False: never.
    #[default(Value::Int(100))]
    subkey_maxage: Value,
}

/// What has to be done with one key.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Need {
    Nothing,
    Add,
    /// It ended.
    Renew,
    /// Keys below it ended: their ids, and when.
    RenewSubkeys(Vec<(String, String)>),
}

#[derive(Debug)]
pub struct Item {
    id: String,
    need: Need,
    before: Option<Dict>,
    trusts: bool,
}

impl Present {
    fn ring(&self) -> Ring {
        Ring {
            user: self.user.clone(),
            gnupghome: self.gnupghome.clone(),
            keyring: self.keyring.clone(),
        }
    }

    fn ids(&self) -> Vec<String> {
        self.keys.as_ref().map_or_else(|| vec![self.name.clone()], |keys| keys.0.clone())
    }

    fn need(&self, cx: &Cx, key: Option<&Dict>) -> Need {
        let Some(key) = key else { return Need::Add };
        if is_expired(key) {
            return Need::Renew;
        }
        let Some(days) = self.subkey_maxage.as_int().filter(|_| self.subkey_maxage.truthy()) else {
            return Need::Nothing;
        };
        let now = cx.host.now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let today = now.as_secs().cast_signed() / 86_400;
        let ended: Vec<(String, String)> = subkeys(key)
            .iter()
            .filter(|subkey| is_expired(subkey))
            .filter(|subkey| {
                day_of(&text(subkey, "expires")).is_some_and(|day| today - day <= days)
            })
            .map(|subkey| (text(subkey, "keyid"), text(subkey, "expires")))
            .collect();
        if ended.is_empty() { Need::Nothing } else { Need::RenewSubkeys(ended) }
    }

    /// Gets a key from where it may be; an error says why that failed.
    fn fetch(&self, cx: &Cx, item: &Item, changes: &Dict) -> Result<Vec<String>, Vec<String>> {
        let failed = |error: Error| vec![error.to_string()];
        let wanted = |text: Option<Value>, path: Option<String>| {
            let (user, home) = (self.user.clone(), self.gnupghome.clone());
            let found = gpg::read_key(cx, path, text, None, None, user, home);
            let found = found.ok()?.items_of_keys();
            find(&found, &item.id)
        };
        let import = |content: Option<Value>, path: Option<String>, key: &Dict| {
            let only = Some(Strings(vec![text(key, "fingerprint")]));
            gpg::import_key(cx, content, path, self.ring(), only).map_err(failed)
        };
        let id = &item.id;
        let mut expired = None;
        if let Some(given) = &self.text {
            let content = Value::str(given.as_str());
            let Some(key) = wanted(Some(content.clone()), None) else {
                return Err(vec![format!("Passed text did not contain the requested key {id}")]);
            };
            if is_expired(&key) && item.before.is_some() {
                return Err(vec![format!(
                    "Passed text contained the requested key {id}, but it's expired"
                )]);
            }
            import(Some(content), None, &key)?;
            expired = is_expired(&key).then_some(());
        } else {
            let mut done = false;
            let mut fallback = None;
            let sources = self.source.as_ref().map(|list| list.0.as_slice()).unwrap_or_default();
            for source in sources {
                let Ok(Some(path)) = cx.files.cache(source, &cx.saltenv()) else { continue };
                let path = path.display().to_string();
                let Some(key) = wanted(None, Some(path.clone())) else { continue };
                if is_expired(&key) {
                    fallback.get_or_insert((path, key));
                    continue;
                }
                import(None, Some(path), &key)?;
                done = true;
                break;
            }
            if !done && !self.skip_keyserver {
                let keys = Some(Strings(vec![id.clone()]));
                let server = self.keyserver.clone();
                let ret = gpg::receive_keys(cx, server, keys, self.ring()).map_err(failed)?;
                if ret.get("res") != Some(Value::Bool(true)) {
                    let said = ret.get("message").and_then(|list| list.items_of_sequence());
                    let said = said.unwrap_or_default();
                    let lines = said.iter().flat_map(|text| {
                        text.to_str().trim_end().lines().map(str::to_owned).collect::<Vec<_>>()
                    });
                    return Err(lines.collect());
                }
                done = true;
            }
            if !done {
                let Some((path, key)) = fallback.filter(|_| item.before.is_none()) else {
                    return Err(vec![format!(
                        "none of the specified sources were found or contained the (unexpired) \
                         key {id}."
                    )]);
                };
                import(None, Some(path), &key)?;
                expired = Some(());
            }
        }
        let own = Dict::new();
        if item.before.is_none() {
            own.insert("added", true);
            changes.insert(id.as_str(), &own);
        }
        if expired.is_some() {
            return Err(vec![
                "Successfully imported key(s).".to_owned(),
                format!("The new key {id} is expired though."),
            ]);
        }
        Ok(self.judged(cx, item, &own, changes))
    }

    /// What came of it, by the list of keys.
    fn judged(&self, cx: &Cx, item: &Item, own: &Dict, changes: &Dict) -> Vec<String> {
        let id = &item.id;
        let Some(before) = &item.before else {
            return vec![format!("Added {id} to GPG keychain")];
        };
        let after = self.ring().keys(cx, false).ok().and_then(|keys| find(&keys, id));
        let (old, new) = (subkeys(before), after.as_ref().map(subkeys).unwrap_or_default());
        let known: HashSet<String> = old.iter().map(|key| text(key, "keyid")).collect();
        let mut added = Vec::new();
        let mut extended = Vec::new();
        for subkey in &new {
            let name = text(subkey, "keyid");
            let ended =
                old.iter().find(|key| text(key, "keyid") == name).map(|key| text(key, "expires"));
            if !known.contains(&name) {
                added.push(name);
            } else if ended.is_some_and(|ended| ended != text(subkey, "expires"))
                || (is_expired_in(&old, &name) && !is_expired(subkey))
            {
                extended.push(name);
            }
        }
        let report = Dict::new();
        if !added.is_empty() {
            report.insert("added", added);
        }
        if !extended.is_empty() {
            report.insert("extended", extended);
        }
        let renewed = matches!(item.need, Need::Renew);
        if report.is_empty() && !renewed {
            return vec![format!(
                "Attempted to update {id} because it has expired subkeys, but no new signatures or \
                 keys were found"
            )];
        }
        own.insert("refresh", true);
        if !report.is_empty() {
            own.insert("subkeys", report);
        }
        changes.insert(id.as_str(), own);
        vec![match renewed {
            true => format!("Updated {id} because it was expired"),
            false => format!("Updated {id} because it had expired subkeys."),
        }]
    }
}

fn is_expired_in(keys: &[Dict], id: &str) -> bool {
    keys.iter().any(|key| text(key, "keyid") == id && is_expired(key))
}

/// The dicts of a list of keys.
trait Keys {
    fn items_of_keys(self) -> Vec<Dict>;
}

impl Keys for halite_value::List {
    fn items_of_keys(self) -> Vec<Dict> {
        self.into_iter().filter_map(|item| item.as_dict().cloned()).collect()
    }
}

fn bulleted(id: &str, lines: &[String]) -> String {
    let lines = lines.iter().map(|line| format!("\n  * {line}"));
    format!("Key {id}:{}", lines.collect::<String>())
}

impl State for Present {
    type Seen = Vec<Item>;
    const KEYS: halite_spec::Keys = halite_spec::Keys(["name", "result", "changes", "comment"]);
    const REPEATS: bool = true;

    fn observe(&self, cx: &Cx) -> Result<Vec<Item>> {
        if let Some(level) = self.trust.as_ref().filter(|level| !LEVELS.contains(&level.as_str())) {
            return Err(Error::failed(format!("Invalid trust level {level}")));
        }
        if self.skip_keyserver && self.source.is_none() && self.text.is_none() {
            return Err(Error::failed(
                "When skipping keyservers, you must provide at least one source",
            ));
        }
        let keys = self.ring().keys(cx, false)?;
        let items = self.ids().into_iter().map(|id| {
            let before = find(&keys, &id);
            let trusts = self.trust.as_ref().is_some_and(|level| {
                let has = before.as_ref().map(|key| text(key, "ownerTrust")).unwrap_or_default();
                !has.to_lowercase().replace(' ', "_").starts_with(level.as_str())
            });
            Item { need: self.need(cx, before.as_ref()), id, before, trusts }
        });
        Ok(items.collect())
    }

    fn plan(&self, items: &Vec<Item>) -> Result<Plan> {
        let changes = Dict::new();
        let mut comments = Vec::new();
        for item in items {
            let id = &item.id;
            let own = Dict::new();
            let mut lines = Vec::new();
            match &item.need {
                Need::Nothing => lines.push(format!("GPG Public Key {id} already in keychain")),
                Need::Add => {
                    lines.push(format!("Would have added {id} to GPG keychain"));
                    own.insert("added", true);
                }
                Need::Renew => {
                    lines
                        .push(format!("Would have attempted to update {id} because it is expired"));
                    own.insert("refresh", true);
                }
                Need::RenewSubkeys(ended) => {
                    lines.push(format!(
                        "Would have attempted to update {id} because it has expired subkeys:"
                    ));
                    let ended =
                        ended.iter().map(|(id, day)| format!("  - {id} (expired on {day})"));
                    lines.extend(ended);
                    own.insert("refresh", true);
                }
            }
            if let Some(level) = &self.trust {
                if item.trusts {
                    lines.push(format!("Would have set trust level for {id} to {level}"));
                    own.insert("trust", level.as_str());
                } else {
                    lines.push(format!("GPG Public Key {id} already in correct trust state"));
                }
            }
            if !own.is_empty() {
                changes.insert(id.as_str(), own);
            }
            comments.push(bulleted(id, &lines));
        }
        Ok(Plan::changes(changes).pending(comments.join("\n")))
    }

    fn apply(&self, cx: &Cx, items: Vec<Item>) -> Result<Applied> {
        let changes = Dict::new();
        let mut comments = Vec::new();
        let mut result = true;
        for item in &items {
            let id = &item.id;
            let mut lines = Vec::new();
            let mut there = true;
            if item.need == Need::Nothing {
                lines.push(format!("GPG Public Key {id} already in keychain"));
            } else {
                match self.fetch(cx, item, &changes) {
                    Ok(said) => lines.extend(said),
                    Err(said) => {
                        if item.need == Need::Renew {
                            let text = "Existing key is expired, tried to fetch updated one";
                            lines.push(text.to_owned());
                        }
                        lines.extend(said);
                        (result, there) = (false, item.before.is_some());
                    }
                }
            }
            if let Some(level) = self.trust.as_ref().filter(|_| there) {
                if item.trusts {
                    let ring = self.ring();
                    let fingerprint =
                        find(&ring.keys(cx, false)?, id).map(|key| text(&key, "fingerprint"));
                    let wanted = Wanted { keyid: None, fingerprint };
                    let ret = gpg::trust_key(cx, wanted, Some(level.clone()), ring)?;
                    if ret.get("res") == Some(Value::Bool(true)) {
                        lines.push(format!("Set trust level for {id} to {level}"));
                        match changes.get(id.as_str()) {
                            Some(Value::Dict(own)) => drop(own.insert("trust", level.as_str())),
                            _ => {
                                let own = entries! { "trust" => level.as_str() };
                                changes.insert(id.as_str(), own);
                            }
                        }
                    } else {
                        lines.push(text(&ret, "message"));
                        result = false;
                    }
                } else {
                    lines.push(format!("GPG Public Key {id} already in correct trust state"));
                }
            }
            comments.push(bulleted(id, &lines));
        }
        Ok(Applied {
            changes: Some(changes),
            comment: Some(comments.join("\n")),
            result: Some(result),
            extra: Dict::new(),
        })
    }
}

/// Make sure that keys are not in the keychain.
#[derive(Args)]
#[arg(open)]
pub struct Absent {
    /// The id of the key, unless `keys` are given.
    name: String,
    /// The ids of the keys.
    keys: Option<Strings>,
    /// Whose keychain.
    user: Option<String>,
    /// The folder of GnuPG.
    gnupghome: Option<String>,
    /// Only this file of keys.
    keyring: Option<String>,
    /// Remove that file once it holds no keys.
    #[default(false)]
    keyring_absent_if_empty: bool,
}

#[derive(Debug)]
pub struct Gone {
    there: Vec<String>,
    missing: Vec<String>,
    /// The file of keys, which is empty already.
    empty: Option<String>,
}

impl Absent {
    fn ring(&self) -> Ring {
        Ring {
            user: self.user.clone(),
            gnupghome: self.gnupghome.clone(),
            keyring: self.keyring.clone(),
        }
    }

    /// The file of keys, if it shall go with the last one and is there.
    fn file(&self, cx: &Cx) -> Result<Option<String>> {
        let Some(path) = self.keyring.as_ref().filter(|_| self.keyring_absent_if_empty) else {
            return Ok(None);
        };
        Ok(cx.host.is_there(Path::new(path))?.then(|| path.clone()))
    }
}

impl State for Absent {
    type Seen = Gone;
    const KEYS: halite_spec::Keys = halite_spec::Keys(["name", "result", "changes", "comment"]);

    fn observe(&self, cx: &Cx) -> Result<Gone> {
        let file = self.file(cx)?;
        // GnuPG makes the file it is told to look into.
        let looks = self
            .keyring
            .as_ref()
            .is_none_or(|path| cx.host.is_there(Path::new(path)).unwrap_or(true));
        let keys = if looks { self.ring().keys(cx, false)? } else { Vec::new() };
        let ids = self.keys.as_ref().map_or_else(|| vec![self.name.clone()], |keys| keys.0.clone());
        let (there, missing) = ids.into_iter().partition(|id| find(&keys, id).is_some());
        Ok(Gone { there, missing, empty: file.filter(|_| keys.is_empty()) })
    }

    fn plan(&self, seen: &Gone) -> Result<Plan> {
        let changes = Dict::new();
        if !seen.there.is_empty() {
            changes.insert("deleted", seen.there.clone());
        }
        if let Some(file) = &seen.empty {
            changes.insert("removed", file.as_str());
        }
        let mut lines: Vec<String> =
            seen.missing.iter().map(|id| format!("{id} not found in GPG keychain")).collect();
        lines.extend(
            seen.there.iter().map(|id| format!("Would have deleted {id} from GPG keychain")),
        );
        if let Some(file) = &seen.empty {
            lines.push(format!("Would have removed empty keyring file {file}"));
        }
        Ok(Plan::changes(changes).pending(lines.join("\n")))
    }

    fn apply(&self, cx: &Cx, seen: Gone) -> Result<Applied> {
        let mut lines: Vec<String> =
            seen.missing.iter().map(|id| format!("{id} not found in GPG keychain")).collect();
        let changes = Dict::new();
        let mut deleted: Vec<String> = Vec::new();
        let mut result = true;
        for id in &seen.there {
            let fingerprint =
                find(&self.ring().keys(cx, false)?, id).map(|key| text(&key, "fingerprint"));
            let (user, home) = (self.user.clone(), self.gnupghome.clone());
            let (wanted, ring) = (Wanted { keyid: None, fingerprint }, self.keyring.clone());
            let ret = gpg::delete_key(cx, wanted, false, user, home, false, ring)?;
            if ret.get("res") == Some(Value::Bool(true)) {
                lines.push(format!("Deleted {id} from GPG keychain"));
                deleted.push(id.clone());
            } else {
                lines.push(text(&ret, "message"));
                result = false;
            }
        }
        if !deleted.is_empty() {
            changes.insert("deleted", deleted);
        }
        if let Some(file) = self.file(cx)?.filter(|_| result)
            && self.ring().keys(cx, false)?.is_empty()
        {
            cx.host.remove_file(Path::new(&file))?;
            lines.push(format!("Removed empty keyring file {file}"));
            changes.insert("removed", file);
        }
        Ok(Applied {
            changes: Some(changes),
            comment: Some(lines.join("\n")),
            result: Some(result),
            extra: Dict::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_by_ids_of_every_length() {
        let key =
            entries! { "keyid" => "50A683663A37CA7A", "fingerprint" => "9FEB50A683663A37CA7A" };
        let keys = [key];
        for id in ["3A37CA7A", "50a683663a37ca7a", "9FEB50A683663A37CA7A", "0x3A37CA7A"] {
            assert!(find(&keys, id).is_some(), "{id}");
        }
        assert!(find(&keys, "AAAABBBB").is_none());
    }

    #[test]
    fn days() {
        assert_eq!(day_of("1970-01-01"), Some(0));
        assert_eq!(day_of("2000-02-29"), Some(11_016));
        assert_eq!(day_of("never"), None);
    }
}
