//! Keys: listed, made, taken in, given out, trusted, removed.

use std::path::Path;

use halite_spec::{Cx, Error, Result, function, host::Write};
use halite_value::{Dict, Value, entries};
use jiff::{Timestamp, tz::TimeZone};

use super::{Ring, answer, input, passphrase, several};

/// A key as it is listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Key {
    pub keyid: String,
    pub uids: Vec<String>,
    pub fingerprint: String,
    pub created: Option<String>,
    pub expires: Option<String>,
    pub expired: bool,
    pub length: String,
    pub owner_trust: &'static str,
    pub trust: &'static str,
}

/// Letter of the listing, name of an argument, what users see, and the number gpg stores.
const TRUST: [(&str, &str, &str, u8); 6] = [
    ("e", "expired", "Expired", 1),
    ("q", "unknown", "Unknown", 2),
    ("n", "not_trusted", "Not Trusted", 3),
    ("m", "marginally", "Marginally", 4),
    ("f", "fully", "Fully Trusted", 5),
    ("u", "ultimately", "Ultimately Trusted", 6),
];

fn trust_of(letter: &str) -> &'static str {
    let known = TRUST.iter().find(|(own, ..)| *own == letter);
    known.map_or(if letter == "r" { "Revoked" } else { "Unknown" }, |(_, _, shown, _)| shown)
}

/// What users see of a trust level given by its name; `None` if there is no such level.
pub fn trust_shown(level: &str) -> Option<&'static str> {
    TRUST.iter().find(|(_, own, ..)| *own == level).map(|(_, _, shown, _)| *shown)
}

/// `2024-01-31` of seconds since 1970.
fn date(seconds: &str) -> Option<String> {
    let time = Timestamp::from_second(seconds.parse().ok()?).ok()?;
    Some(time.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d").to_string())
}

/// Undoes `\x3a`.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let code = after.strip_prefix(b"x").and_then(|code| code.get(..2));
        let code =
            code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok());
        match (first, code) {
            (b'\\', Some(byte)) => {
                bytes.push(byte);
                rest = rest.get(4..).unwrap_or_default();
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Key {
    /// Reads a listing `--with-colons`.
    pub fn read_all(text: &str) -> Vec<Self> {
        let mut keys: Vec<Self> = Vec::new();
        for line in text.lines() {
            let fields: Vec<&str> = line.split(':').collect();
            let field = |index: usize| fields.get(index).copied().unwrap_or_default();
            match field(0) {
                "pub" | "sec" => keys.push(Self {
                    keyid: field(4).to_owned(),
                    length: field(2).to_owned(),
                    created: date(field(5)),
                    expires: date(field(6)),
                    expired: field(1) == "e",
                    owner_trust: trust_of(field(8)),
                    trust: trust_of(field(1)),
                    ..Self::default()
                }),
                "fpr" => {
                    if let Some(key) = keys.last_mut().filter(|key| key.fingerprint.is_empty()) {
                        key.fingerprint = field(9).to_owned();
                    }
                }
                "uid" => {
                    if let Some(key) = keys.last_mut() {
                        key.uids.push(unescaped(field(9)));
                    }
                }
                _ => {}
            }
        }
        keys
    }

    pub fn of(cx: &Cx, ring: &Ring, secret: bool) -> Result<Vec<Self>> {
        let what = if secret { "--list-secret-keys" } else { "--list-keys" };
        let words = ["--fixed-list-mode", "--with-colons", "--fingerprint", what];
        Ok(Self::read_all(&ring.run(cx, &words, b"", None, true)?.text()))
    }

    /// Tells whether this is the key of an id or fingerprint, spaces and case aside.
    pub fn is(&self, id: &str) -> bool {
        let id: String = id.chars().filter(|letter| !letter.is_whitespace()).collect();
        let id = id.trim_start_matches("0x").to_uppercase();
        id.len() >= 8 && (self.keyid == id || self.fingerprint.ends_with(&id))
    }

    fn shown(&self) -> Dict {
        let shown = entries! {
            "keyid" => self.keyid.as_str(), "uids" => Value::list(self.uids.clone()),
            "fingerprint" => self.fingerprint.as_str(),
        };
        if let Some(expires) = &self.expires {
            shown.insert("expires", expires.as_str());
            shown.insert("expired", self.expired);
        }
        if let Some(created) = &self.created {
            shown.insert("created", created.as_str());
        }
        shown.insert("keyLength", self.length.as_str());
        shown.insert("ownerTrust", self.owner_trust);
        shown.insert("trust", self.trust);
        shown
    }
}

fn all_shown(keys: &[Key]) -> Value {
    Value::list(keys.iter().map(Key::shown).collect::<Vec<_>>())
}

/// One key of a ring.
fn find(cx: &Cx, ring: &Ring, id: &str, secret: bool) -> Result<Option<Key>> {
    Ok(Key::of(cx, ring, secret)?.into_iter().find(|key| key.is(id)))
}

/// Return the public keys in a keyring.
///
/// ```console
/// $ salt '*' gpg.list_keys
/// ```
#[function]
pub fn list_keys(
    cx: &Cx,
    /// Whose keys; those of the minion's user unless said. `salt` means the minion's own.
    user: Option<String>,
    /// The folder they lie in.
    gnupghome: Option<String>,
    /// A keyring of its own.
    keyring: Option<String>,
) -> Result<Value> {
    Ok(all_shown(&Key::of(cx, &Ring::new(user, gnupghome, keyring), false)?))
}

/// Return the secret keys in a keyring.
///
/// ```console
/// $ salt '*' gpg.list_secret_keys
/// ```
#[function]
pub fn list_secret_keys(
    cx: &Cx,
    /// Whose keys; those of the minion's user unless said. `salt` means the minion's own.
    user: Option<String>,
    /// The folder they lie in.
    gnupghome: Option<String>,
    /// A keyring of its own.
    keyring: Option<String>,
) -> Result<Value> {
    Ok(all_shown(&Key::of(cx, &Ring::new(user, gnupghome, keyring), true)?))
}

fn one(cx: &Cx, ring: &Ring, ids: [Option<String>; 2], secret: bool) -> Result<Value> {
    for id in ids.into_iter().flatten() {
        if let Some(key) = find(cx, ring, &id, secret)? {
            return Ok(key.shown().into());
        }
    }
    Ok(false.into())
}

/// Return a public key, or false.
///
/// ```console
/// $ salt '*' gpg.get_key keyid=3FAD9F1E
/// ```
#[function]
pub fn get_key(
    cx: &Cx,
    /// Its id.
    keyid: Option<String>,
    /// Its fingerprint.
    fingerprint: Option<String>,
    /// Whose keys; those of the minion's user unless said.
    user: Option<String>,
    /// The folder they lie in.
    gnupghome: Option<String>,
    /// A keyring of its own.
    keyring: Option<String>,
) -> Result<Value> {
    one(cx, &Ring::new(user, gnupghome, keyring), [fingerprint, keyid], false)
}

/// Return what is known of a secret key, or false.
///
/// ```console
/// $ salt '*' gpg.get_secret_key keyid=3FAD9F1E
/// ```
#[function]
pub fn get_secret_key(
    cx: &Cx,
    /// Its id.
    keyid: Option<String>,
    /// Its fingerprint.
    fingerprint: Option<String>,
    /// Whose keys; those of the minion's user unless said.
    user: Option<String>,
    /// The folder they lie in.
    gnupghome: Option<String>,
    /// A keyring of its own.
    keyring: Option<String>,
) -> Result<Value> {
    one(cx, &Ring::new(user, gnupghome, keyring), [fingerprint, keyid], true)
}

/// Make a key pair.
///
/// ```console
/// $ salt '*' gpg.create_key key_length=4096 name_real='Backup' name_email=backup@example.com
/// ```
#[function]
pub fn create_key(
    cx: &Cx,
    /// `RSA`, `DSA` …
    #[default("RSA".into())]
    key_type: String,
    /// Its size in bits.
    #[default(1024)]
    key_length: i64,
    /// Whose key it is.
    #[default("Autogenerated Key".into())]
    name_real: String,
    /// What it is for.
    #[default("Generated by SaltStack".into())]
    name_comment: String,
    /// The mail address; the minion's unless said.
    name_email: Option<String>,
    /// The kind of a key below it.
    subkey_type: Option<String>,
    /// The size of that key.
    subkey_length: Option<i64>,
    /// When it ends: `2024-01-31`, `1y`, `30d`.
    expire_date: Option<String>,
    /// Protect it with the pillar's `gpg_passphrase`.
    #[default(false)]
    use_passphrase: bool,
    /// Whose keys; those of the minion's user unless said.
    user: Option<String>,
    /// The folder they lie in.
    gnupghome: Option<String>,
    /// A keyring of its own.
    keyring: Option<String>,
) -> Result<Dict> {
    let secret = match passphrase(cx, use_passphrase) {
        Ok(secret) => secret,
        Err(error) => {
            return Ok(entries! {
                "res" => false, "fingerprint" => "", "message" => error.to_string(),
            });
        }
    };
    let email = name_email.unwrap_or_else(|| {
        let own = user.clone().unwrap_or_else(|| "root".into());
        format!("{own}@{}", cx.grain("fqdn").unwrap_or_default().to_str())
    });
    let mut lines = vec![format!("Key-Type: {key_type}"), format!("Key-Length: {key_length}")];
    if let Some(kind) = subkey_type {
        lines.push(format!("Subkey-Type: {kind}"));
        lines.extend(subkey_length.map(|length| format!("Subkey-Length: {length}")));
    }
    lines.push(format!("Name-Real: {name_real}"));
    lines.push(format!("Name-Comment: {name_comment}"));
    lines.push(format!("Name-Email: {email}"));
    lines.extend(expire_date.map(|date| format!("Expire-Date: {date}")));
    if lines.iter().any(|line| line.contains(['\n', '\r'])) {
        return Err(Error::invalid("A value of a key is one line"));
    }
    let lead = if secret.is_some() { "" } else { "%no-protection\n" };
    let parameters = format!("{lead}{}\n%commit\n", lines.join("\n"));
    let ring = Ring::new(user, gnupghome, keyring);
    let words = ["--full-generate-key"];
    let made = ring.run(cx, &words, parameters.as_bytes(), secret.as_deref(), false)?;
    let fingerprint = made.first("KEY_CREATED").and_then(|rest| rest.split(' ').nth(1));
    Ok(match fingerprint {
        Some(fingerprint) => entries! {
            "res" => true, "fingerprint" => fingerprint,
            "message" => "GPG key pair successfully generated.",
        },
        None => entries! {
            "res" => false, "fingerprint" => "", "message" => "Unable to generate GPG key pair.",
        },
    })
}

/// Remove a key.
///
/// ```console
/// $ salt '*' gpg.delete_key keyid=3FAD9F1E
/// ```
#[function]
pub fn delete_key(
    cx: &Cx,
    /// Its id.
    keyid: Option<String>,
    /// Its fingerprint.
    fingerprint: Option<String>,
    /// Remove a secret key, too.
    #[default(false)]
    delete_secret: bool,
    /// Whose keys; those of the minion's user unless said.
    user: Option<String>,
    /// The folder they lie in.
    gnupghome: Option<String>,
    /// The secret key has the pillar's `gpg_passphrase`.
    #[default(true)]
    use_passphrase: bool,
    /// A keyring of its own.
    keyring: Option<String>,
) -> Result<Dict> {
    let Some(id) = fingerprint.or(keyid) else {
        return Ok(answer(false, "message", "Required argument, fingerprint or keyid"));
    };
    let ring = Ring::new(user, gnupghome, keyring);
    let Some(key) = find(cx, &ring, &id, false)? else {
        return Ok(answer(false, "message", "Key not available in keychain."));
    };
    let print = key.fingerprint.as_str();
    let mut done = Vec::new();
    if find(cx, &ring, print, true)?.is_some() {
        if !delete_secret {
            let text = "Secret key exists, delete first or pass delete_secret=True.";
            return Ok(answer(false, "message", text));
        }
        let failed = |reason: String| {
            let text = format!("Failed to delete secret key for {print}: {reason}");
            Ok(answer(false, "message", text))
        };
        let secret = match passphrase(cx, use_passphrase) {
            Ok(secret) => secret,
            Err(error) => return failed(error.to_string()),
        };
        let words = ["--yes", "--delete-secret-keys", print];
        let removed = ring.run(cx, &words, b"", secret.as_deref(), false)?;
        if !removed.ok {
            return failed(removed.said.last().cloned().unwrap_or_default());
        }
        done.push(format!("Secret key for {print} deleted"));
    }
    let removed = ring.run(cx, &["--yes", "--delete-keys", print], b"", None, false)?;
    if !removed.ok {
        let reason = removed.said.last().cloned().unwrap_or_default();
        let text = format!("Failed to delete public key for {print}: {reason}");
        return Ok(answer(false, "message", text));
    }
    done.push(format!("Public key for {print} deleted"));
    Ok(answer(true, "message", done.join("\n")))
}

/// Take keys into a keyring.
///
/// ```console
/// $ salt '*' gpg.import_key filename='/tmp/key.asc'
/// ```
#[function]
pub fn import_key(
    cx: &Cx,
    /// The keys.
    text: Option<String>,
    /// The file they are in.
    filename: Option<String>,
    /// Whose keys; those of the minion's user unless said.
    user: Option<String>,
    /// The folder they lie in.
    gnupghome: Option<String>,
    /// A keyring of its own.
    keyring: Option<String>,
    /// Only those with these ids or fingerprints.
    #[default(Value::Null)]
    select: Value,
) -> Result<Dict> {
    let keys = input(cx, text, filename.as_deref())?;
    let ring = Ring::new(user, gnupghome, keyring);
    let wanted = several(&select);
    let mut words: Vec<String> = Vec::new();
    for id in &wanted {
        if !id.chars().all(|letter| letter.is_ascii_hexdigit()) {
            return Err(Error::invalid(format!("Not a key id or fingerprint: {id}")));
        }
        words.push("--import-filter".into());
        words.push(format!("keep-uid=keyid=~{0}||fpr=~{0}", id.to_uppercase()));
    }
    words.push("--import".into());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = ring.run(cx, &words, &keys, None, false)?;
    let mut prints: Vec<String> = Vec::new();
    for (word, rest) in &done.status {
        let print = rest.split(' ').nth(1).unwrap_or_default();
        if word == "IMPORT_OK" && !prints.iter().any(|own| own == print) {
            prints.push(print.to_owned());
        }
    }
    let counts: Vec<u64> = done
        .first("IMPORT_RES")
        .map(|rest| rest.split(' ').map(|count| count.parse().unwrap_or(0)).collect())
        .unwrap_or_default();
    let count = |index: usize| counts.get(index).copied().unwrap_or(0);
    let (ok, message) = if count(2) > 0 || count(10) > 0 {
        (true, "Successfully imported key(s).")
    } else if !prints.is_empty() {
        (true, "Key(s) already exist in keychain.")
    } else {
        (false, "Unable to import key.")
    };
    Ok(entries! { "res" => ok, "message" => message, "fingerprints" => Value::list(prints) })
}

/// Return a key as text, or write it to a file.
///
/// ```console
/// $ salt '*' gpg.export_key keyids=3FAD9F1E
/// ```
#[function]
pub fn export_key(
    cx: &Cx,
    /// Ids or fingerprints: one, several separated by commas, or a list.
    #[default(Value::Null)]
    keyids: Value,
    /// The secret key.
    #[default(false)]
    secret: bool,
    /// Whose keys; those of the minion's user unless said.
    user: Option<String>,
    /// The folder they lie in.
    gnupghome: Option<String>,
    /// The secret key has the pillar's `gpg_passphrase`.
    #[default(false)]
    use_passphrase: bool,
    /// The file to write.
    output: Option<String>,
    /// Return the text alone.
    #[default(false)]
    bare: bool,
    /// A keyring of its own.
    keyring: Option<String>,
) -> Result<Value> {
    let own = passphrase(cx, use_passphrase && secret)?;
    let ring = Ring::new(user, gnupghome, keyring);
    let what = if secret { "--export-secret-keys" } else { "--export" };
    let ids = several(&keyids);
    let mut words = vec!["--armor", what, "--"];
    words.extend(ids.iter().map(String::as_str));
    let made = ring.run(cx, &words, b"", own.as_deref(), true)?;
    if made.data.is_empty() {
        return Ok(if bare { false.into() } else { entries! { "res" => false }.into() });
    }
    let text = made.text();
    let Some(path) = output else {
        return Ok(if bare { text.into() } else { answer(true, "comment", text).into() });
    };
    let how = Write { mode: secret.then_some(0o600), ..Write::default() };
    cx.host.write(Path::new(&path), text.as_bytes(), &how)?;
    if bare {
        return Ok(true.into());
    }
    let text = format!("Exported key data has been written to {path}");
    Ok(answer(true, "comment", text).into())
}

/// Return what is in a text or file of keys, without taking them in.
///
/// ```console
/// $ salt '*' gpg.read_key path=/tmp/my.asc
/// ```
#[function]
pub fn read_key(
    cx: &Cx,
    /// The file.
    path: Option<String>,
    /// The keys.
    text: Option<String>,
    /// Only the one with this fingerprint.
    fingerprint: Option<String>,
    /// Only the one with this id.
    keyid: Option<String>,
    /// Whose keyring; that of the minion's user unless said.
    user: Option<String>,
    /// The folder it lies in.
    gnupghome: Option<String>,
) -> Result<Value> {
    let keys = input(cx, text, path.as_deref())?;
    let keys = shown_keys(cx, &Ring::new(user, gnupghome, None), &keys)?;
    let wanted = fingerprint.or(keyid);
    let keys: Vec<Key> =
        keys.into_iter().filter(|key| wanted.as_ref().is_none_or(|id| key.is(id))).collect();
    Ok(all_shown(&keys))
}

/// The keys in some data.
pub fn shown_keys(cx: &Cx, ring: &Ring, data: &[u8]) -> Result<Vec<Key>> {
    let words = ["--fixed-list-mode", "--with-colons", "--fingerprint", "--show-keys"];
    Ok(Key::read_all(&ring.run(cx, &words, data, None, true)?.text()))
}

/// Get keys from a key server.
///
/// ```console
/// $ salt '*' gpg.receive_keys keys=3FAD9F1E keyserver=keyserver.ubuntu.com
/// ```
#[function]
pub fn receive_keys(
    cx: &Cx,
    /// The server.
    keyserver: Option<String>,
    /// Ids or fingerprints: one, several separated by commas, or a list.
    #[default(Value::Null)]
    keys: Value,
    /// Whose keys; those of the minion's user unless said.
    user: Option<String>,
    /// The folder they lie in.
    gnupghome: Option<String>,
    /// A keyring of its own.
    keyring: Option<String>,
) -> Result<Dict> {
    let ring = Ring::new(user, gnupghome, keyring);
    let server = keyserver.unwrap_or_else(|| "keys.openpgp.org".into());
    let ids = several(&keys);
    let mut words = vec!["--keyserver", &server, "--recv-keys", "--"];
    words.extend(ids.iter().map(String::as_str));
    let done = ring.run(cx, &words, b"", None, false)?;
    let mut lines = Vec::new();
    for (word, rest) in &done.status {
        let (flags, print) = rest.split_once(' ').unwrap_or((rest, ""));
        match (word.as_str(), flags) {
            ("IMPORT_OK", "0") => lines.push(format!("Key {print} already exists in keychain")),
            ("IMPORT_OK", _) => lines.push(format!("Key {print} added to keychain")),
            _ => {}
        }
    }
    let ok = done.ok && !lines.is_empty();
    if !ok {
        lines.push("Unable to add key to keychain: Other failure".into());
        let failures = done.status.iter().filter(|(word, _)| word == "FAILURE");
        lines.extend(
            failures.map(|(_, rest)| format!("GPG reported failure: [GNUPG:] FAILURE {rest}")),
        );
        lines.extend(done.said.last().cloned());
    }
    Ok(answer(ok, "message", Value::list(lines)))
}

/// Search a key server.
///
/// ```console
/// $ salt '*' gpg.search_keys user@example.com
/// ```
#[function]
pub fn search_keys(
    cx: &Cx,
    /// What to look for: a mail address, a name, an id.
    text: String,
    /// The server.
    keyserver: Option<String>,
    /// Whose keyring; that of the minion's user unless said.
    user: Option<String>,
    /// The folder it lies in.
    gnupghome: Option<String>,
) -> Result<Value> {
    let ring = Ring::new(user, gnupghome, None);
    let server = keyserver.unwrap_or_else(|| "keys.openpgp.org".into());
    let words = ["--with-colons", "--keyserver", &server, "--search-keys", "--", &text];
    let found = ring.run(cx, &words, b"", None, true)?;
    let mut all: Vec<Dict> = Vec::new();
    for line in found.text().lines() {
        let fields: Vec<&str> = line.split(':').collect();
        match *fields {
            ["pub", id, _, length, created, expires, ..] => {
                let shown = entries! { "keyid" => id };
                if let Some(created) = date(created) {
                    shown.insert("created", created);
                }
                if let Some(expires) = date(expires) {
                    shown.insert("expires", expires);
                }
                shown.insert("keyLength", length);
                shown.insert("uids", Value::list(Vec::<Value>::new()));
                all.push(shown);
            }
            ["uid", name, ..] => {
                if let Some(Value::List(uids)) = all.last().and_then(|key| key.get("uids")) {
                    uids.push(unescaped(name));
                }
            }
            _ => {}
        }
    }
    Ok(Value::list(all))
}

/// Set how much a key's owner is trusted.
///
/// ```console
/// $ salt '*' gpg.trust_key keyid=3FAD9F1E trust_level=marginally
/// ```
#[function]
pub fn trust_key(
    cx: &Cx,
    /// Its id.
    keyid: Option<String>,
    /// Its fingerprint.
    fingerprint: Option<String>,
    /// `expired`, `unknown`, `not_trusted`, `marginally`, `fully` or `ultimately`.
    trust_level: Option<String>,
    /// Whose keys; those of the minion's user unless said.
    user: Option<String>,
    /// The folder they lie in.
    gnupghome: Option<String>,
    /// A keyring of its own.
    keyring: Option<String>,
) -> Result<Dict> {
    let ring = Ring::new(user, gnupghome, keyring);
    let id = match (keyid, fingerprint) {
        (Some(id), None) | (None, Some(id)) => id,
        _ => return Err(Error::invalid("Exactly one of keyid or fingerprint is required")),
    };
    let level = TRUST.iter().find(|(_, name, ..)| Some(*name) == trust_level.as_deref());
    let (_, _, shown, number) = level.ok_or_else(|| {
        let names: Vec<&str> = TRUST.iter().map(|(_, name, ..)| *name).collect();
        Error::invalid(format!("ERROR: Valid trust levels - {}", names.join(",")))
    })?;
    let Some(key) = find(cx, &ring, &id, false)? else {
        return Ok(answer(false, "message", format!("Key {id} not in GPG keychain")));
    };
    let print = key.fingerprint;
    let line = format!("{print}:{number}:\n");
    let done = ring.run(cx, &["--import-ownertrust"], line.as_bytes(), None, false)?;
    let message = match done.ok {
        true => format!("Setting ownership trust to {shown}."),
        false => done.said.last().cloned().unwrap_or_default(),
    };
    Ok(entries! { "res" => done.ok, "message" => message, "fingerprint" => print })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTING: &str = "tru::1:1763280000:0:3:1:5\n\
        pub:u:2048:1:FA18A05C27868E24:1794816000:1857888000::u:::scESC::::::23::0:\n\
        fpr:::::::::326DF00516C5B992D682E0A7FA18A05C27868E24:\n\
        uid:u::::1794816000::ABC::Test User (a\\x3ab) <t@example.com>::::::::::0:\n\
        sub:u:2048:1:1111111111111111:1794816000::::::e::::::23:\n\
        fpr:::::::::AAAAAAAAAAAAAAAAAAAAAAAA1111111111111111:\n\
        pub:-:4096:1:75337AB308F9B53D:1794816000:::-:::scSC:::::::0:\n\
        fpr:::::::::BF9FFA3A90AB39ED47DC9E7875337AB308F9B53D:\n";

    #[test]
    fn listings() {
        let keys = Key::read_all(LISTING);
        assert_eq!(keys.len(), 2);
        assert_eq!(keys[0].fingerprint, "326DF00516C5B992D682E0A7FA18A05C27868E24");
        assert_eq!(keys[0].uids, ["Test User (a:b) <t@example.com>"]);
        assert_eq!(
            (keys[0].trust, keys[0].owner_trust),
            ("Ultimately Trusted", "Ultimately Trusted")
        );
        assert_eq!(keys[0].created.as_deref(), Some("2026-11-16"));
        assert_eq!((keys[1].expires.clone(), keys[1].trust), (None, "Unknown"));
        assert!(keys[0].is("fa18a05c27868e24") && keys[0].is("27868E24") && !keys[0].is("24"));
        assert!(keys[0].is("326D F005 16C5 B992 D682  E0A7 FA18 A05C 2786 8E24"));
        assert!(Key::read_all("junk\n:::\n").is_empty());
    }

    #[test]
    fn levels() {
        assert_eq!(trust_shown("fully"), Some("Fully Trusted"));
        assert_eq!(trust_shown("never"), None);
    }
}
