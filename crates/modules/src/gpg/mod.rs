//! `gpg`: keys, signatures and encrypted texts of GnuPG.
//!
//! Everything is done by the program `gpg`, in batch mode. What it did is read from its status
//! lines (`[GNUPG:] …`, asked for on standard error), never from its words for people.
//!
//! Surprising: a signature is good only if its own status line says so. A file may carry several;
//! a good one does not vouch for a bad one beside it, nor does a key that is missing count as one
//! that signed. Genuine Salt needs python-gnupg for all this; here the program is enough.

use std::path::Path;

use halite_spec::{
    Args, Command, Cx, Error, Need, Result, Strings, function,
    host::{Output, Write},
    module,
};
use halite_value::{Dict, List, Value, dict, entries};

mod listing;
mod signatures;

use listing::keys_in;
use signatures::{Seal, seals_in};

module! {
    /// Work with GnuPG.
    "gpg", needs = [
        Need::program(&["gpg"], "The gpg execution module cannot be loaded: gpg binary is not in the path."),
    ]: create_key, decrypt, delete_key, encrypt, export_key, get_key, get_secret_key,
    import_key, list_keys, list_secret_keys, read_key, receive_keys, search_keys, sign, trust_key,
    verify,
}

const NO_INPUT: &str = "filename or text must be passed.";

/// Whose keys, and where they are.
#[derive(Args, Clone, Debug, Default)]
pub struct Ring {
    /// Whose keys; those of the user we run as if not given, Salt's own for `salt`.
    pub user: Option<String>,
    /// The folder of GnuPG.
    pub gnupghome: Option<String>,
    /// Only this file of keys.
    pub keyring: Option<String>,
}

impl Ring {
    /// The folder of GnuPG: the one given, Salt's own for the user `salt`, or the user's.
    fn home(&self, cx: &Cx) -> Result<String> {
        if let Some(home) = &self.gnupghome {
            return Ok(home.clone());
        }
        if self.user.as_deref() == Some("salt") {
            let folder = cx.opt_str("config_dir").unwrap_or_else(|| "/etc/salt".into());
            return Ok(format!("{}/gpgkeys", folder.trim_end_matches('/')));
        }
        let users = cx.host.users()?;
        let own = cx.host.uid();
        let found = match &self.user {
            Some(name) => users.into_iter().find(|user| &user.name == name),
            None => users.into_iter().find(|user| user.uid == own),
        };
        let found = found.ok_or_else(|| {
            let name = self.user.clone().unwrap_or_else(|| own.to_string());
            Error::invalid(format!("User {name} does not exist"))
        })?;
        Ok(format!("{}/.gnupg", found.home.trim_end_matches('/')))
    }

    fn command(&self, cx: &Cx, words: &[&str]) -> Result<Command> {
        if cx.host.which("gpg").is_none() {
            return Err(Error::failed("Unable to find the program gpg: is it installed?"));
        }
        let mut command = Command::line([
            "gpg",
            "--batch",
            "--no-tty",
            "--status-fd",
            "2",
            "--display-charset",
            "utf-8",
            "--homedir",
        ])
        .arg(self.home(cx)?);
        if let Some(keyring) = &self.keyring {
            command = command.args(["--no-default-keyring", "--keyring", keyring.as_str()]);
        }
        let own = cx.host.uid();
        let users = cx.host.users()?;
        let other = self.user.as_ref().filter(|name| {
            name.as_str() != "salt"
                && users.iter().any(|user| &user.name == *name && user.uid != own)
        });
        command.user = other.cloned();
        Ok(command.args(words.iter().copied()))
    }

    /// Makes the folder, as GnuPG wants it, if it is not there.
    fn make_home(&self, cx: &Cx) -> Result<()> {
        let home = self.home(cx)?;
        let path = Path::new(&home);
        if !cx.host.is_dir(path)? {
            crate::file::tree::make_folders(cx, &home, (None, None), None)?;
            cx.host.set_mode(path, 0o700)?;
        }
        Ok(())
    }

    /// Ends the agent of a folder that is about to go.
    fn stop_agent(&self, cx: &Cx) {
        if let Ok(home) = self.home(cx) {
            let command = Command::line(["gpgconf", "--homedir", &home, "--kill", "all"]);
            if let Err(error) = cx.host.run(&command) {
                tracing::debug!("the agent of {home} was not ended: {error}");
            }
        }
    }

    /// Runs what only looks.
    fn ask(&self, cx: &Cx, words: &[&str], input: Option<&[u8]>) -> Result<Output> {
        let mut command = self.command(cx, words)?.query();
        command.stdin = input.map(<[u8]>::to_vec);
        Ok(cx.host.run(&command)?)
    }

    fn run(&self, cx: &Cx, words: &[&str], input: Option<&[u8]>) -> Result<Output> {
        self.make_home(cx)?;
        let mut command = self.command(cx, words)?;
        command.stdin = input.map(<[u8]>::to_vec);
        Ok(cx.host.run(&command)?)
    }

    /// The keys of the ring, as functions return them.
    pub fn keys(&self, cx: &Cx, secret: bool) -> Result<Vec<Dict>> {
        if !cx.host.is_dir(Path::new(&self.home(cx)?))? {
            return Ok(Vec::new());
        }
        let what = if secret { "--list-secret-keys" } else { "--list-keys" };
        let words = ["--with-colons", "--fixed-list-mode", "--fingerprint", "--fingerprint", what];
        let output = self.ask(cx, &words, None)?;
        let now = cx.host.now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Ok(keys_in(&output.stdout_text(), now.as_secs().cast_signed()))
    }

    /// The key of this fingerprint or id.
    fn key(&self, cx: &Cx, wanted: &Wanted, secret: bool) -> Result<Option<Dict>> {
        Ok(self.keys(cx, secret)?.into_iter().find(|key| wanted.fits(key)))
    }
}

/// A key by its fingerprint or its id.
#[derive(Args)]
pub struct Wanted {
    /// The key, by its id.
    pub keyid: Option<String>,
    /// The key, by its fingerprint.
    pub fingerprint: Option<String>,
}

impl Wanted {
    fn is_none(&self) -> bool {
        self.keyid.is_none() && self.fingerprint.is_none()
    }

    fn fits(&self, key: &Dict) -> bool {
        let ends = |name: &str, wanted: &str| {
            key.get(name).is_some_and(|text| text.to_str().ends_with(&wanted.to_uppercase()))
        };
        match (&self.fingerprint, &self.keyid) {
            (Some(fingerprint), _) => ends("fingerprint", fingerprint),
            (None, Some(keyid)) => {
                let long = keyid.len() > 16;
                ends(if long { "fingerprint" } else { "keyid" }, keyid.trim_start_matches("0x"))
            }
            (None, None) => false,
        }
    }
}

/// The status lines of a run, each as its words.
fn statuses(output: &Output) -> Vec<Vec<String>> {
    let text = output.stderr_text();
    let lines = text.lines().filter_map(|line| line.strip_prefix("[GNUPG:] "));
    lines.map(|line| line.split(' ').map(str::to_owned).collect()).collect()
}

fn has_status(output: &Output, word: &str) -> bool {
    statuses(output).iter().any(|words| words.first().is_some_and(|first| first == word))
}

fn passphrase(cx: &Cx, use_passphrase: bool) -> Result<Option<String>> {
    if !use_passphrase {
        return Ok(None);
    }
    let found = halite_value::lookup::traverse(&Value::from(&cx.pillar), "gpg_passphrase", ":");
    let found = found.filter(Value::truthy);
    let missing = || Error::invalid("gpg_passphrase not available in pillar.");
    found.map(|text| Some(text.to_str().to_string())).ok_or_else(missing)
}

/// The words that hand a passphrase over. It stands before the text on standard input, so that
/// nobody sees it in a list of processes.
fn with_passphrase<'a>(words: &[&'a str], passphrase: Option<&String>) -> Vec<&'a str> {
    let mut all = Vec::new();
    if passphrase.is_some() {
        all.extend(["--pinentry-mode", "loopback", "--passphrase-fd", "0"]);
    }
    all.extend(words);
    all
}

fn input_of(passphrase: Option<&String>, text: &[u8]) -> Vec<u8> {
    let mut input = Vec::new();
    if let Some(passphrase) = passphrase {
        input.extend(passphrase.as_bytes());
        input.push(b'\n');
    }
    input.extend(text);
    input
}

/// The bytes given as a text or as the name of a file.
fn given(cx: &Cx, text: Option<&Value>, filename: Option<&String>) -> Result<Vec<u8>> {
    match (text.filter(|text| text.truthy()), filename.filter(|name| !name.is_empty())) {
        (Some(text), _) => Ok(match text.as_bytes() {
            Some(bytes) => bytes.to_vec(),
            None => text.to_str().as_bytes().to_vec(),
        }),
        (None, Some(path)) => Ok(cx.host.read(Path::new(path))?),
        (None, None) => Err(Error::invalid(NO_INPUT)),
    }
}

/// List the public keys.
///
/// ```console
/// $ salt web1 gpg.list_keys user=deploy
/// ```
#[function]
pub fn list_keys(cx: &Cx, #[group] ring: Ring) -> Result<List> {
    Ok(listed(ring.keys(cx, false)?))
}

fn listed(keys: Vec<Dict>) -> List {
    keys.into_iter().map(Value::from).collect()
}

/// List the secret keys.
///
/// ```console
/// $ salt web1 gpg.list_secret_keys user=deploy
/// ```
#[function]
pub fn list_secret_keys(cx: &Cx, #[group] ring: Ring) -> Result<List> {
    Ok(listed(ring.keys(cx, true)?))
}

fn one_key(cx: &Cx, ring: &Ring, wanted: &Wanted, secret: bool) -> Result<Value> {
    Ok(ring.key(cx, wanted, secret)?.map_or(Value::Bool(false), Value::from))
}

/// Return one public key; False if there is none.
///
/// ```console
/// $ salt web1 gpg.get_key keyid=3FAD9F1E
/// ```
#[function]
pub fn get_key(cx: &Cx, #[group] wanted: Wanted, #[group] ring: Ring) -> Result<Value> {
    one_key(cx, &ring, &wanted, false)
}

/// Return one secret key; False if there is none.
///
/// ```console
/// $ salt web1 gpg.get_secret_key keyid=3FAD9F1E
/// ```
#[function]
pub fn get_secret_key(cx: &Cx, #[group] wanted: Wanted, #[group] ring: Ring) -> Result<Value> {
    one_key(cx, &ring, &wanted, true)
}

/// Make a key pair.
///
/// ```console
/// $ salt web1 gpg.create_key key_length=4096 name_real='Build' name_email=build@example.com
/// ```
#[function]
pub fn create_key(
    cx: &Cx,
    /// `RSA` or `DSA`.
    #[default("RSA".to_owned())]
    key_type: String,
    /// Its size in bits.
    #[default(1024)]
    key_length: i64,
    /// The name of its owner.
    #[default("Autogenerated Key".to_owned())]
    name_real: String,
    /// A comment.
    #[default("Generated by SaltStack".to_owned())]
    name_comment: String,
    /// The address; made of user and host if not given.
    name_email: Option<String>,
    /// The kind of a second key.
    subkey_type: Option<String>,
    /// The size of a second key.
    subkey_length: Option<i64>,
    /// When it ends: `2030-01-01`, `30d`, `1y` …
    expire_date: Option<Value>,
    /// Protect it with `gpg_passphrase` of the pillar.
    #[default(false)]
    use_passphrase: bool,
    #[group] ring: Ring,
) -> Result<Dict> {
    let secret = passphrase(cx, use_passphrase)?;
    let email = name_email.unwrap_or_else(|| format!("salt@{}", cx.id()));
    let mut lines = vec![
        format!("Key-Type: {key_type}"),
        format!("Key-Length: {key_length}"),
        format!("Name-Real: {name_real}"),
        format!("Name-Comment: {name_comment}"),
        format!("Name-Email: {email}"),
    ];
    if let Some(kind) = subkey_type {
        lines.push(format!("Subkey-Type: {kind}"));
        if let Some(length) = subkey_length {
            lines.push(format!("Subkey-Length: {length}"));
        }
    }
    lines.push(format!(
        "Expire-Date: {}",
        expire_date.filter(Value::truthy).map_or_else(|| "0".into(), |date| date.to_str())
    ));
    lines.push(match &secret {
        Some(secret) => format!("Passphrase: {secret}"),
        None => "%no-protection".to_owned(),
    });
    // A line end in a name would be the next instruction.
    if lines.iter().any(|line| line.contains('\n')) {
        return Err(Error::invalid("Names and passphrases of keys have no line ends"));
    }
    let text = format!("{}\n%commit\n", lines.join("\n"));
    let output = ring.run(cx, &["--gen-key"], Some(text.as_bytes()))?;
    let made = statuses(&output).into_iter().find(|words| words[0] == "KEY_CREATED");
    let fingerprint = made.and_then(|words| words.get(2).cloned());
    Ok(entries! {
        "res" => fingerprint.is_some(),
        "fingerprint" => fingerprint.clone().unwrap_or_default(),
        "message" => match fingerprint {
            Some(_) => "GPG key pair successfully generated.",
            None => "Unable to generate GPG key pair.",
        },
    })
}

/// Remove a key.
///
/// ```console
/// $ salt web1 gpg.delete_key keyid=3FAD9F1E
/// ```
#[function]
pub fn delete_key(
    cx: &Cx,
    #[group] wanted: Wanted,
    /// Remove the secret key too.
    #[default(false)]
    delete_secret: bool,
    /// Whose keys.
    user: Option<String>,
    /// The folder of GnuPG.
    gnupghome: Option<String>,
    /// The secret key is protected with `gpg_passphrase` of the pillar.
    #[default(true)]
    use_passphrase: bool,
    /// Only this file of keys.
    keyring: Option<String>,
) -> Result<Dict> {
    let refused = |text: &str| Ok(entries! { "res" => false, "message" => text });
    if wanted.keyid.is_some() && wanted.fingerprint.is_some() {
        return refused("Only specify one argument, fingerprint or keyid");
    }
    if wanted.is_none() {
        return refused("Required argument, fingerprint or keyid");
    }
    let ring = Ring { user, gnupghome, keyring };
    let Some(key) = ring.key(cx, &wanted, false)? else {
        return refused("Key not available in keychain.");
    };
    let fingerprint = key.get("fingerprint").unwrap_or_default().to_str();
    let mut said = Vec::new();
    if ring.key(cx, &wanted, true)?.is_some() {
        if !delete_secret {
            return refused("Secret key exists, delete first or pass delete_secret=True.");
        }
        let secret = passphrase(cx, use_passphrase)?;
        let words = ["--yes", "--delete-secret-keys", fingerprint.as_str()];
        let words = with_passphrase(&words, secret.as_ref());
        let output = ring.run(cx, &words, Some(&input_of(secret.as_ref(), b"")))?;
        if !output.ok() {
            let text = format!("Failed to delete secret key for {fingerprint}: {}", why(&output));
            return refused(&text);
        }
        said.push(format!("Secret key for {fingerprint} deleted"));
    }
    let output = ring.run(cx, &["--yes", "--delete-keys", fingerprint.as_str()], None)?;
    if !output.ok() {
        said.push(format!("Failed to delete public key for {fingerprint}: {}", why(&output)));
    } else {
        said.push(format!("Public key for {fingerprint} deleted"));
    }
    Ok(entries! { "res" => output.ok(), "message" => said.join("\n") })
}

/// The last thing said to people.
fn why(output: &Output) -> String {
    let text = output.stderr_text();
    let said = text.lines().rfind(|line| !line.starts_with("[GNUPG:]"));
    said.map(|line| line.trim_start_matches("gpg: ").to_owned()).unwrap_or_default()
}

/// Import keys.
///
/// ```console
/// $ salt web1 gpg.import_key filename=/root/release.asc
/// ```
#[function]
pub fn import_key(
    cx: &Cx,
    /// The keys.
    text: Option<Value>,
    /// The file that holds them.
    filename: Option<String>,
    #[group] ring: Ring,
    /// Only those that GnuPG finds by these: fingerprints, ids, addresses.
    select: Option<Strings>,
) -> Result<Dict> {
    if let (None, Some(path)) = (&text, &filename)
        && !cx.host.is_file(Path::new(path))?
    {
        return Err(Error::invalid("filename does not exist."));
    }
    let content = given(cx, text.as_ref(), filename.as_ref())?;
    let content = match &select {
        Some(names) => only(cx, &content, &names.0)?,
        None => content,
    };
    let output = ring.run(cx, &["--import"], Some(&content))?;
    let (fingerprints, mut fresh) = (List::new(), false);
    for words in statuses(&output) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["IMPORT_OK", _, fingerprint, ..] => fingerprints.push(Value::str(*fingerprint)),
            // Read, without a name, imported, of these RSA; the eleventh: secret ones imported.
            ["IMPORT_RES", _, _, public, rsa, _, _, _, _, _, _, secret, ..] => {
                fresh = [public, rsa, secret].iter().any(|count| **count != "0");
            }
            _ => {}
        }
    }
    let res = !fingerprints.is_empty();
    let message = match (res, fresh) {
        (true, true) => "Successfully imported key(s).",
        (true, false) => "Key(s) already exist in keychain.",
        _ => "Unable to import key.",
    };
    Ok(entries! { "res" => res, "message" => message, "fingerprints" => fingerprints })
}

/// The keys of a text that GnuPG finds by these names; they pass through a ring of their own.
fn only(cx: &Cx, content: &[u8], names: &[String]) -> Result<Vec<u8>> {
    let folder = crate::temp::fresh_path(cx, "/tmp", "gpg", "");
    cx.host.create_dir(&folder, Some(0o700))?;
    let ring = Ring { gnupghome: Some(folder.display().to_string()), ..Ring::default() };
    let found = ring.run(cx, &["--import"], Some(content)).and_then(|_| {
        let mut found = Vec::new();
        for what in ["--export", "--export-secret-keys"] {
            let mut words = vec!["--pinentry-mode", "loopback", "--passphrase", "", what, "--"];
            words.extend(names.iter().map(String::as_str));
            found.extend(ring.run(cx, &words, None)?.stdout);
        }
        Ok(found)
    });
    ring.stop_agent(cx);
    cx.host.remove_all(&folder)?;
    found
}

/// Export keys as text.
///
/// ```console
/// $ salt web1 gpg.export_key keyids=3FAD9F1E secret=True
/// ```
#[function]
pub fn export_key(
    cx: &Cx,
    /// Their ids.
    keyids: Option<Strings>,
    /// The secret ones.
    #[default(false)]
    secret: bool,
    /// Whose keys.
    user: Option<String>,
    /// The folder of GnuPG.
    gnupghome: Option<String>,
    /// They are protected with `gpg_passphrase` of the pillar.
    #[default(false)]
    use_passphrase: bool,
    /// The file to write.
    output: Option<String>,
    /// Return the text alone.
    #[default(false)]
    bare: bool,
    /// Only this file of keys.
    keyring: Option<String>,
) -> Result<Value> {
    let ring = Ring { user, gnupghome, keyring };
    let phrase = passphrase(cx, use_passphrase)?;
    let what = if secret { "--export-secret-keys" } else { "--export" };
    let mut words = with_passphrase(&["--armor", what, "--"], phrase.as_ref());
    let keyids = keyids.unwrap_or_default().0;
    words.extend(keyids.iter().map(String::as_str));
    let made = ring.ask(cx, &words, Some(&input_of(phrase.as_ref(), b"")))?;
    let text = made.stdout_text();
    let res = !text.is_empty();
    if let Some(path) = output.as_ref().filter(|_| res) {
        let how = Write { mode: Some(0o600), ..Write::default() };
        cx.host.write(Path::new(path), text.as_bytes(), &how)?;
    }
    if bare {
        return Ok(if output.is_some() { Value::Bool(res) } else { text.into() });
    }
    Ok(match (res, &output) {
        (false, _) => dict! { "res" => false },
        (true, Some(path)) => dict! {
            "res" => true, "comment" => format!("Exported key data has been written to {path}"),
        },
        (true, None) => dict! { "res" => true, "comment" => text },
    })
}

/// Show the keys in a file or a text without importing them.
///
/// ```console
/// $ salt web1 gpg.read_key path=/root/release.asc
/// ```
#[function]
pub fn read_key(
    cx: &Cx,
    /// The file.
    path: Option<String>,
    /// The text.
    text: Option<Value>,
    /// Only the key of this fingerprint.
    fingerprint: Option<String>,
    /// Only the key of this id.
    keyid: Option<String>,
    /// Whose GnuPG.
    user: Option<String>,
    /// The folder of GnuPG.
    gnupghome: Option<String>,
) -> Result<List> {
    let wanted = Wanted { keyid, fingerprint };
    if path.is_some() == text.is_some() {
        return Err(Error::invalid("Exactly one of either path or text is required."));
    }
    let content = given(cx, text.as_ref(), path.as_ref())?;
    let ring = Ring { user, gnupghome, keyring: None };
    let words = ["--with-colons", "--fixed-list-mode", "--import-options", "show-only", "--import"];
    let output = ring.ask(cx, &words, Some(&content))?;
    let now = cx.host.now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let keys = keys_in(&output.stdout_text(), now.as_secs().cast_signed());
    for key in &keys {
        // Genuine names the fingerprint of the key itself only.
        if let Some(Value::List(subkeys)) = key.get("subkeys") {
            for subkey in &subkeys {
                if let Value::Dict(subkey) = subkey {
                    subkey.remove("fingerprint");
                }
            }
        }
    }
    Ok(keys
        .into_iter()
        .filter(|key| wanted.is_none() || wanted.fits(key))
        .map(Value::from)
        .collect())
}

/// Say how far a key is trusted.
///
/// ```console
/// $ salt web1 gpg.trust_key keyid=3FAD9F1E trust_level=marginally
/// ```
#[function]
pub fn trust_key(
    cx: &Cx,
    #[group] wanted: Wanted,
    /// `expired`, `unknown`, `not_trusted`, `marginally`, `fully` or `ultimately`.
    trust_level: Option<String>,
    #[group] ring: Ring,
) -> Result<Dict> {
    if wanted.keyid.is_some() == wanted.fingerprint.is_some() {
        return Err(Error::invalid("Exactly one of keyid or fingerprint is required"));
    }
    let level = trust_level.unwrap_or_default();
    let Some((_, number, title)) = LEVELS.iter().find(|(name, ..)| *name == level) else {
        let names: Vec<&str> = LEVELS.iter().map(|(name, ..)| *name).collect();
        return Err(Error::invalid(format!("ERROR: Valid trust levels - {}", names.join(","))));
    };
    let Some(key) = ring.key(cx, &wanted, false)? else {
        let name = wanted.fingerprint.or(wanted.keyid).unwrap_or_default();
        let message = format!("Key {name} not in GPG keychain");
        return Ok(entries! { "res" => false, "message" => message });
    };
    let fingerprint = key.get("fingerprint").unwrap_or_default();
    let old = key.get("ownerTrust").unwrap_or_default().to_str();
    let line = format!("{fingerprint}:{number}:\n");
    let output = ring.run(cx, &["--import-ownertrust"], Some(line.as_bytes()))?;
    if !output.ok() {
        return Ok(entries! { "res" => false, "message" => why(&output) });
    }
    let message = match old.as_str() {
        "" | "Unknown" => format!("Setting ownership trust to {title}."),
        old if old == *title => format!("Setting ownership trust to {title}."),
        old => format!("Changing ownership trust from {old} to {title}."),
    };
    Ok(entries! { "res" => true, "message" => message, "fingerprint" => fingerprint })
}

/// Names of trust, the numbers GnuPG has for them, and what people read.
const LEVELS: [(&str, u8, &str); 6] = [
    ("expired", 1, "Expired"),
    ("unknown", 2, "Unknown"),
    ("not_trusted", 3, "Not Trusted"),
    ("marginally", 4, "Marginally Trusted"),
    ("fully", 5, "Fully Trusted"),
    ("ultimately", 6, "Ultimately Trusted"),
];

/// Sign a text or a file.
///
/// ```console
/// $ salt web1 gpg.sign text='Hello there.'
/// ```
#[function]
pub fn sign(
    cx: &Cx,
    /// Whose keys.
    user: Option<String>,
    /// The key to sign with.
    keyid: Option<String>,
    /// The text.
    text: Option<Value>,
    /// The file.
    filename: Option<String>,
    /// The file to write.
    output: Option<String>,
    /// The key is protected with `gpg_passphrase` of the pillar.
    #[default(false)]
    use_passphrase: bool,
    /// The folder of GnuPG.
    gnupghome: Option<String>,
    /// Only this file of keys.
    keyring: Option<String>,
) -> Result<Value> {
    let ring = Ring { user, gnupghome, keyring };
    let content = given(cx, text.as_ref(), filename.as_ref())?;
    let secret = passphrase(cx, use_passphrase)?;
    let mut words = with_passphrase(&["--armor"], secret.as_ref());
    if let Some(keyid) = &keyid {
        words.extend(["--default-key", keyid]);
    }
    words.push("--clearsign");
    let made = ring.run(cx, &words, Some(&input_of(secret.as_ref(), &content)))?;
    if let Some(path) = output.filter(|_| made.ok()) {
        cx.host.write(Path::new(&path), &made.stdout, &Write::default())?;
    }
    Ok(Value::bytes(made.stdout))
}

/// Check the signatures of a text or a file.
///
/// ```console
/// $ salt web1 gpg.verify filename=/root/release.tar.gz signature=/root/release.tar.gz.asc
/// ```
#[function]
pub fn verify(
    cx: &Cx,
    /// The text.
    text: Option<Value>,
    /// Whose keys.
    user: Option<String>,
    /// The file.
    filename: Option<String>,
    /// The folder of GnuPG.
    gnupghome: Option<String>,
    /// The file of the signature, where that stands apart.
    signature: Option<String>,
    /// `pgp`, `classic`, `tofu`, `tofu+pgp`, `direct`, `always` or `auto`.
    trustmodel: Option<String>,
    /// One of these keys must have signed.
    signed_by_any: Option<Value>,
    /// All of these keys must have signed.
    signed_by_all: Option<Value>,
    /// Only this file of keys.
    keyring: Option<String>,
) -> Result<Dict> {
    const MODELS: [&str; 7] = ["pgp", "classic", "tofu", "tofu+pgp", "direct", "always", "auto"];
    if let Some(model) = trustmodel.as_ref().filter(|model| !MODELS.contains(&model.as_str())) {
        let models = MODELS.join(", ");
        let message = format!("Invalid trustmodel defined: {model}. Use one of: {models}");
        return Ok(entries! { "res" => false, "message" => message });
    }
    let ring = Ring { user, gnupghome, keyring };
    let mut words = Vec::new();
    if let Some(model) = &trustmodel {
        words.extend(["--trust-model", model.as_str()]);
    }
    words.extend(["--verify", "--"]);
    let content = given(cx, text.as_ref(), filename.as_ref())?;
    if let Some(signature) = &signature {
        words.extend([signature.as_str(), "-"]);
    }
    let mut command = ring.command(cx, &words)?.query();
    // In batch mode the first bad signature would be the last one looked at.
    command.argv.retain(|word| word != "--batch");
    command.stdin = Some(content);
    let output = cx.host.run(&command)?;
    let seals = seals_in(&statuses(&output));
    let names = |given: Option<Value>| given.filter(Value::truthy).map(signatures::names);
    let (any, all) = (names(signed_by_any), names(signed_by_all));
    if any.is_some() || all.is_some() {
        return Ok(signatures::required(&seals, any.as_deref(), all.as_deref()));
    }
    // Of several signatures the last one counts, and none may be bad.
    let good = seals.iter().all(Seal::is_good).then(|| seals.last()).flatten();
    Ok(match good {
        Some(seal) => entries! {
            "res" => true, "username" => seal.username.as_str(), "key_id" => seal.keyid.as_str(),
            "trust_level" => seal.trust.unwrap_or("Undefined"),
            "message" => "The signature is verified.",
        },
        None => entries! { "res" => false, "message" => "The signature could not be verified." },
    })
}

/// What encrypting and decrypting return.
fn worked(cx: &Cx, made: Output, to: Option<String>, bare: bool, did: &str) -> Result<Value> {
    let word = if did == "Encrypted" { "END_ENCRYPTION" } else { "DECRYPTION_OKAY" };
    if !made.ok() || !has_status(&made, word) {
        let reason = if has_status(&made, "INV_RECP") {
            "invalid recipient"
        } else if has_status(&made, "NO_SECKEY") {
            "no secret key"
        } else if has_status(&made, "BAD_PASSPHRASE") || has_status(&made, "MISSING_PASSPHRASE") {
            "bad passphrase"
        } else if did == "Encrypted" {
            "encryption failed"
        } else {
            "decryption failed"
        };
        let comment = format!("{reason}.\nPlease check the salt-minion log.");
        return Ok(dict! { "res" => false, "comment" => comment });
    }
    if let Some(path) = to {
        cx.host.write(Path::new(&path), &made.stdout, &Write::default())?;
        let comment = format!("{did} data has been written to {path}");
        return Ok(match bare {
            true => Value::bytes(Vec::new()),
            false => dict! { "res" => true, "comment" => comment },
        });
    }
    let data = Value::bytes(made.stdout);
    Ok(if bare {
        data
    } else {
        dict! { "res" => true, "comment" => data }
    })
}

/// Encrypt a text or a file.
///
/// ```console
/// $ salt web1 gpg.encrypt text='Hello there.' recipients=3FAD9F1E
/// ```
#[function]
pub fn encrypt(
    cx: &Cx,
    /// Whose keys.
    user: Option<String>,
    /// The keys that can decrypt it.
    recipients: Option<Strings>,
    /// The text.
    text: Option<Value>,
    /// The file.
    filename: Option<String>,
    /// The file to write.
    output: Option<String>,
    /// Sign it too: with this key, or with the usual one (True).
    sign: Option<Value>,
    /// The key is protected with `gpg_passphrase` of the pillar.
    #[default(false)]
    use_passphrase: bool,
    /// Do not ask whether the keys are trusted.
    #[default(false)]
    always_trust: bool,
    /// The folder of GnuPG.
    gnupghome: Option<String>,
    /// Return the text alone.
    #[default(false)]
    bare: bool,
    /// Only this file of keys.
    keyring: Option<String>,
) -> Result<Value> {
    let ring = Ring { user, gnupghome, keyring };
    let content = given(cx, text.as_ref(), filename.as_ref())?;
    let secret = passphrase(cx, use_passphrase)?;
    let mut words = with_passphrase(&["--armor"], secret.as_ref());
    let recipients = recipients.unwrap_or_default().0;
    for recipient in &recipients {
        words.extend(["--recipient", recipient.as_str()]);
    }
    if always_trust {
        words.extend(["--trust-model", "always"]);
    }
    let signer = sign.filter(Value::truthy);
    let name = signer.as_ref().and_then(|key| key.as_str());
    if let Some(key) = name {
        words.extend(["--default-key", key]);
    }
    if signer.is_some() {
        words.push("--sign");
    }
    words.push("--encrypt");
    let made = ring.run(cx, &words, Some(&input_of(secret.as_ref(), &content)))?;
    worked(cx, made, output, bare, "Encrypted")
}

/// Decrypt a text or a file.
///
/// ```console
/// $ salt web1 gpg.decrypt filename=/root/secret.asc
/// ```
#[function]
pub fn decrypt(
    cx: &Cx,
    /// Whose keys.
    user: Option<String>,
    /// The text.
    text: Option<Value>,
    /// The file.
    filename: Option<String>,
    /// The file to write.
    output: Option<String>,
    /// The key is protected with `gpg_passphrase` of the pillar.
    #[default(false)]
    use_passphrase: bool,
    /// The folder of GnuPG.
    gnupghome: Option<String>,
    /// Return the text alone.
    #[default(false)]
    bare: bool,
    /// Only this file of keys.
    keyring: Option<String>,
) -> Result<Value> {
    let ring = Ring { user, gnupghome, keyring };
    let content = given(cx, text.as_ref(), filename.as_ref())?;
    let secret = passphrase(cx, use_passphrase)?;
    let words = with_passphrase(&["--decrypt"], secret.as_ref());
    let made = ring.ask(cx, &words, Some(&input_of(secret.as_ref(), &content)))?;
    worked(cx, made, output, bare, "Decrypted")
}

const KEYSERVER: &str = "pgp.mit.edu";

/// Fetch keys from a server.
///
/// ```console
/// $ salt web1 gpg.receive_keys keys=3FAD9F1E keyserver=keys.openpgp.org
/// ```
#[function]
pub fn receive_keys(
    cx: &Cx,
    /// The server.
    keyserver: Option<String>,
    /// Their ids.
    keys: Option<Strings>,
    #[group] ring: Ring,
) -> Result<Dict> {
    let server = keyserver.unwrap_or_else(|| KEYSERVER.to_owned());
    let keys = keys.unwrap_or_default().0;
    let mut words = vec!["--keyserver", server.as_str(), "--recv-keys", "--"];
    words.extend(keys.iter().map(String::as_str));
    let output = ring.run(cx, &words, None)?;
    let messages = List::new();
    let mut res = false;
    for words in statuses(&output) {
        if words[0] == "IMPORT_OK"
            && let [_, how, fingerprint, ..] = words.as_slice()
        {
            res = true;
            messages.push(Value::from(match how.as_str() {
                "0" => format!("Key {fingerprint} already exists in keychain"),
                _ => format!("Key {fingerprint} added to keychain"),
            }));
        }
    }
    if !res {
        messages.push(Value::str("Unable to add key to keychain: Other failure"));
        messages.push(Value::from(format!("GPG reported failure: {}", output.stderr_text())));
    }
    Ok(entries! { "res" => res, "message" => messages })
}

/// Look for keys on a server.
///
/// ```console
/// $ salt web1 gpg.search_keys user@example.com
/// ```
#[function]
pub fn search_keys(
    cx: &Cx,
    /// The id or address.
    text: String,
    /// The server.
    keyserver: Option<String>,
    /// Whose GnuPG.
    user: Option<String>,
    /// The folder of GnuPG.
    gnupghome: Option<String>,
) -> Result<List> {
    let ring = Ring { user, gnupghome, keyring: None };
    let server = keyserver.unwrap_or_else(|| KEYSERVER.to_owned());
    let words = ["--with-colons", "--keyserver", server.as_str(), "--search-keys", "--", &text];
    let output = ring.ask(cx, &words, None)?;
    Ok(listed(listing::found_in(&output.stdout_text())))
}
