//! `gpg`: OpenPGP keys, signatures and encrypted texts.
//!
//! The program `gpg` does the work. What it did is read from its status lines, which are meant for
//! programs and stay the same in every language; data is what it prints. Keys belong to a user's
//! keyring (`user`, `gnupghome`, `keyring`), and passphrases come from the pillar
//! (`gpg_passphrase`), never from arguments.

mod keyring;
mod messages;

use std::path::{Path, PathBuf};

use halite_spec::{Command, Cx, Error, Result, host, module};
use halite_value::{Dict, Value};

pub use self::{
    keyring::{
        Key, create_key, delete_key, export_key, get_key, get_secret_key, import_key, list_keys,
        list_secret_keys, read_key, receive_keys, search_keys, shown_keys, trust_key, trust_shown,
    },
    messages::{decrypt, encrypt, sign, verify},
};

module! {
    /// OpenPGP keys, signatures and encrypted texts.
    "gpg": create_key, decrypt, delete_key, encrypt, export_key, get_key, get_secret_key,
    import_key, list_keys, list_secret_keys, read_key, receive_keys, search_keys, sign, trust_key,
    verify,
}

/// Whose keys are meant.
#[derive(Clone, Debug, Default)]
pub struct Ring {
    pub user: Option<String>,
    pub home: Option<String>,
    pub keyring: Option<String>,
}

impl Ring {
    /// The keys of a user; those of the user the minion runs as unless said.
    pub fn new(user: Option<String>, home: Option<String>, keyring: Option<String>) -> Self {
        Self { user, home, keyring }
    }

    /// Where the keys lie.
    fn folder(&self, cx: &Cx) -> Result<PathBuf> {
        if let Some(home) = &self.home {
            return Ok(home.into());
        }
        if self.user.as_deref() == Some("salt") {
            let config = cx.opt_str("config_dir").unwrap_or_else(|| "/etc/salt".into());
            return Ok(Path::new(config.as_str()).join("gpgkeys"));
        }
        let user = match &self.user {
            Some(name) => cx
                .host
                .user_named(name)?
                .ok_or_else(|| Error::invalid(format!("User {name} does not exist")))?,
            None => cx
                .host
                .user_with_id(cx.host.uid())?
                .ok_or_else(|| Error::invalid("The user the minion runs as does not exist"))?,
        };
        Ok(Path::new(&user.home).join(".gnupg"))
    }

    /// Runs the program; `input` is its standard input.
    fn run(
        &self,
        cx: &Cx,
        words: &[&str],
        input: &[u8],
        passphrase: Option<&str>,
        query: bool,
    ) -> Result<Answer> {
        if cx.host.which("gpg").is_none() {
            return Err(Error::Unavailable {
                function: "gpg".into(),
                reason: "unable to find the program gpg: is it installed?".into(),
            });
        }
        let folder = self.folder(cx)?;
        let mut command = Command::line(["gpg", "--status-fd", "2", "--no-tty", "--batch"]);
        command = command.arg("--homedir").arg(folder.as_os_str());
        if let Some(keyring) = &self.keyring {
            command = command.args(["--no-default-keyring", "--keyring", keyring]);
        }
        let mut stdin = Vec::new();
        if let Some(passphrase) = passphrase {
            command = command.args(["--pinentry-mode", "loopback", "--passphrase-fd", "0"]);
            stdin.extend_from_slice(passphrase.as_bytes());
            stdin.push(b'\n');
        }
        stdin.extend_from_slice(input);
        command = command.args(words.iter().copied());
        command.stdin = Some(stdin);
        command.query = query;
        let own = cx.host.user_with_id(cx.host.uid())?.map(|user| user.name);
        command.user =
            self.user.clone().filter(|user| user != "salt" && Some(user) != own.as_ref());
        let output = cx.host.run(&command)?;
        Ok(Answer::of(&output))
    }
}

/// What the program said.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub ok: bool,
    pub data: Vec<u8>,
    /// `KEYWORD rest` of each status line.
    pub status: Vec<(String, String)>,
    /// What it told people.
    pub said: Vec<String>,
}

impl Answer {
    fn of(output: &host::Output) -> Self {
        let mut answer = Self { ok: output.ok(), data: output.stdout.clone(), ..Self::default() };
        for line in output.stderr_text().lines() {
            match line.strip_prefix("[GNUPG:] ") {
                Some(status) => {
                    let (word, rest) = status.split_once(' ').unwrap_or((status, ""));
                    answer.status.push((word.to_owned(), rest.to_owned()));
                }
                None => answer.said.push(line.to_owned()),
            }
        }
        answer
    }

    fn has(&self, word: &str) -> bool {
        self.status.iter().any(|(own, _)| own == word)
    }

    fn first(&self, word: &str) -> Option<&str> {
        self.status.iter().find(|(own, _)| own == word).map(|(_, rest)| rest.as_str())
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.data).into_owned()
    }

    /// Why it failed, in few words.
    fn reason(&self) -> &'static str {
        const REASONS: [(&str, &str); 8] = [
            ("INV_RECP", "invalid recipient"),
            ("NO_SECKEY", "no secret key"),
            ("BAD_PASSPHRASE", "bad passphrase"),
            ("MISSING_PASSPHRASE", "need passphrase"),
            ("NODATA", "no data was provided"),
            ("DECRYPTION_FAILED", "decryption failed"),
            ("INV_SGNR", "invalid signer"),
            ("KEYEXPIRED", "key expired"),
        ];
        let known = REASONS.iter().find(|(word, _)| self.has(word));
        known.map_or("gpg failed", |(_, reason)| reason)
    }
}

/// The passphrase in the pillar.
fn passphrase(cx: &Cx, wanted: bool) -> Result<Option<String>> {
    if !wanted {
        return Ok(None);
    }
    let found = cx.pillar.get("gpg_passphrase").filter(Value::truthy);
    let found = found.map(|text| text.to_str().to_string());
    found.map(Some).ok_or_else(|| Error::invalid("gpg_passphrase not available in pillar."))
}

/// A text given, or the content of a file.
fn input(cx: &Cx, text: Option<String>, filename: Option<&str>) -> Result<Vec<u8>> {
    match (text.filter(|text| !text.is_empty()), filename) {
        (Some(text), _) => Ok(text.into_bytes()),
        (None, Some(name)) => {
            let content = cx.host.read_if_there(Path::new(name))?;
            content.ok_or_else(|| Error::invalid("filename does not exist."))
        }
        (None, None) => Err(Error::invalid("filename or text must be passed.")),
    }
}

/// One name, several separated by commas, or a list.
fn several(names: &Value) -> Vec<String> {
    match names {
        Value::Null => Vec::new(),
        Value::Str(text) => text.split(',').map(|name| name.trim().to_owned()).collect(),
        _ => {
            let names = names.items_of_sequence().unwrap_or_default();
            names.iter().map(Value::to_string).collect()
        }
    }
}

fn answer(ok: bool, key: &str, text: impl Into<Value>) -> Dict {
    halite_value::entries! { "res" => ok, key => text }
}
