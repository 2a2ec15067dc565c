//! Texts and files: signed, checked, encrypted, decrypted.

use std::path::Path;

use halite_spec::{Cx, Error, Result, function, host::Write};
use halite_value::{Dict, Value, entries};

use super::{Answer, Ring, answer, input, passphrase, several};

/// Sign a text or a file, readable.
///
/// ```console
/// $ salt '*' gpg.sign text='Hello there.' keyid=3FAD9F1E
/// ```
#[function]
pub fn sign(
    cx: &Cx,
    /// Whose keys; those of the minion's user unless said.
    user: Option<String>,
    /// The key to sign with.
    keyid: Option<String>,
    /// The text.
    text: Option<String>,
    /// The file.
    filename: Option<String>,
    /// The file to write.
    output: Option<String>,
    /// The key has the pillar's `gpg_passphrase`.
    #[default(false)]
    use_passphrase: bool,
    /// The folder the keys lie in.
    gnupghome: Option<String>,
    /// A keyring of its own.
    keyring: Option<String>,
) -> Result<Value> {
    let secret = passphrase(cx, use_passphrase)?;
    let data = input(cx, text, filename.as_deref())?;
    let ring = Ring::new(user, gnupghome, keyring);
    let mut words = vec!["--armor"];
    if let Some(key) = &keyid {
        words.extend(["--default-key", key]);
    }
    words.push("--clearsign");
    let made = ring.run(cx, &words, &data, secret.as_deref(), true)?;
    if let Some(path) = output.filter(|_| !made.data.is_empty()) {
        cx.host.write(Path::new(&path), &made.data, &Write::default())?;
    }
    Ok(Value::bytes(made.data))
}

/// One signature as it was found.
#[derive(Clone, Debug, Default)]
struct Signature {
    user: String,
    key: String,
    fingerprint: String,
    trust: Option<&'static str>,
    valid: bool,
    status: &'static str,
}

impl Signature {
    /// Reads the status lines of `--verify`.
    fn all(answer: &Answer) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for (word, rest) in &answer.status {
            let (first, more) = rest.split_once(' ').unwrap_or((rest, ""));
            let status = match word.as_str() {
                "GOODSIG" => "signature good",
                "EXPSIG" => "signature expired",
                "EXPKEYSIG" => "key expired",
                "REVKEYSIG" => "key revoked",
                "BADSIG" => "signature bad",
                "ERRSIG" => "signature error",
                "NO_PUBKEY" => {
                    if let Some(last) = all.last_mut() {
                        last.status = "no public key";
                    }
                    continue;
                }
                "VALIDSIG" => {
                    // The last field is the primary key's.
                    let primary = more.rsplit(' ').next().filter(|print| print.len() >= 40);
                    if let Some(last) = all.last_mut() {
                        last.fingerprint = primary.unwrap_or(first).to_owned();
                        last.valid = last.status == "signature good";
                        if last.valid {
                            last.status = "signature valid";
                        }
                    }
                    continue;
                }
                _ => {
                    let trust = trust_of(word);
                    if let Some(last) = all.last_mut()
                        && trust.is_some()
                    {
                        last.trust = trust;
                    }
                    continue;
                }
            };
            let user = if word == "ERRSIG" { "" } else { more };
            let (user, key) = (user.to_owned(), first.to_owned());
            all.push(Self { user, key, status, ..Self::default() });
        }
        all
    }

    fn shown(&self) -> Dict {
        entries! {
            "username" => self.user.as_str(), "key_id" => self.key.as_str(),
            "fingerprint" => self.fingerprint.as_str(), "trust_level" => self.trust,
            "status" => self.status,
        }
    }

    fn is_by(&self, key: &str) -> bool {
        let key = key.replace(' ', "").to_uppercase();
        self.valid && !key.is_empty() && self.fingerprint.ends_with(&key)
    }
}

fn trust_of(word: &str) -> Option<&'static str> {
    Some(match word {
        "TRUST_EXPIRED" => "Expired",
        "TRUST_UNDEFINED" => "Undefined",
        "TRUST_NEVER" => "Never",
        "TRUST_MARGINAL" => "Marginal",
        "TRUST_FULLY" => "Fully",
        "TRUST_ULTIMATE" => "Ultimate",
        _ => return None,
    })
}

const MODELS: [&str; 7] = ["pgp", "classic", "tofu", "tofu+pgp", "direct", "always", "auto"];

/// Tell whether a signature is right, and whose it is.
///
/// ```console
/// $ salt '*' gpg.verify filename='/path/to/important.file' signature='/path/to/important.sig'
/// ```
#[function]
pub fn verify(
    cx: &Cx,
    /// The signed text.
    text: Option<String>,
    /// Whose keys; those of the minion's user unless said.
    user: Option<String>,
    /// The file.
    filename: Option<String>,
    /// The folder the keys lie in.
    gnupghome: Option<String>,
    /// The file with the signature, if it is another one.
    signature: Option<String>,
    /// Who is trusted: `pgp`, `classic`, `tofu`, `tofu+pgp`, `direct`, `always` or `auto`.
    trustmodel: Option<String>,
    /// One of these keys has to have signed.
    #[default(Value::Null)]
    signed_by_any: Value,
    /// All of these keys have to have signed.
    #[default(Value::Null)]
    signed_by_all: Value,
    /// A keyring of its own.
    keyring: Option<String>,
) -> Result<Dict> {
    let ring = Ring::new(user, gnupghome, keyring);
    let mut words = Vec::new();
    if let Some(model) = &trustmodel {
        if !MODELS.contains(&model.as_str()) {
            let text =
                format!("Invalid trustmodel defined: {model}. Use one of: {}", MODELS.join(", "));
            return Ok(answer(false, "message", text));
        }
        words.extend(["--trust-model", model]);
    }
    words.push("--verify");
    let found = match (&signature, &filename) {
        (Some(signature), Some(file)) => {
            words.extend(["--", signature, file]);
            ring.run(cx, &words, b"", None, true)?
        }
        (Some(signature), None) => {
            words.extend(["--", signature, "-"]);
            ring.run(cx, &words, &input(cx, text, None)?, None, true)?
        }
        _ => ring.run(cx, &words, &input(cx, text, filename.as_deref())?, None, true)?,
    };
    let all = Signature::all(&found);
    let (any, every) = (several(&signed_by_any), several(&signed_by_all));
    if !any.is_empty() || !every.is_empty() {
        return Ok(required(&all, &any, &every));
    }
    let Some(good) = all.iter().find(|signature| signature.valid) else {
        return Ok(answer(false, "message", "The signature could not be verified."));
    };
    Ok(entries! {
        "res" => true, "username" => good.user.as_str(), "key_id" => good.key.as_str(),
        "trust_level" => good.trust, "message" => "The signature is verified.",
    })
}

/// Tells whether those have signed who have to.
fn required(all: &[Signature], any: &[String], every: &[String]) -> Dict {
    let signed = |key: &String| all.iter().any(|signature| signature.is_by(key));
    let (ok, message) = if let Some(missing) = every.iter().find(|key| !signed(key)) {
        let text = format!(
            "Public key {missing} has not provided a valid signature, but was listed in \
             signed_by_all"
        );
        (false, text)
    } else if !any.is_empty() && !any.iter().any(signed) {
        let text = "None of the public keys listed in signed_by_any provided a valid signature";
        (false, text.to_owned())
    } else {
        (true, "All required keys have provided a signature".to_owned())
    };
    let shown = Value::list(all.iter().map(Signature::shown).collect::<Vec<_>>());
    entries! { "res" => ok, "message" => message, "signatures" => shown }
}

/// What was made: returned, or written to a file.
fn handed(cx: &Cx, made: Answer, output: Option<String>, bare: bool, what: &str) -> Result<Value> {
    if !made.ok {
        if bare {
            return Ok(false.into());
        }
        let text = format!("{}.\nPlease check the salt-minion log.", made.reason());
        return Ok(answer(false, "comment", text).into());
    }
    let Some(path) = output else {
        let data = Value::bytes(made.data);
        return Ok(if bare { data } else { answer(true, "comment", data).into() });
    };
    cx.host.write(Path::new(&path), &made.data, &Write::default())?;
    if bare {
        return Ok(true.into());
    }
    Ok(answer(true, "comment", format!("{what} data has been written to {path}")).into())
}

/// Encrypt a text or a file.
///
/// ```console
/// $ salt '*' gpg.encrypt text='Hello there.' recipients=recipient@example.com
/// ```
#[function]
pub fn encrypt(
    cx: &Cx,
    /// Whose keys; those of the minion's user unless said.
    user: Option<String>,
    /// For whom: one, several separated by commas, or a list.
    #[default(Value::Null)]
    recipients: Value,
    /// The text.
    text: Option<String>,
    /// The file.
    filename: Option<String>,
    /// The file to write.
    output: Option<String>,
    /// Sign it, too: true, or the key to sign with.
    #[default(Value::Null)]
    sign: Value,
    /// The key has the pillar's `gpg_passphrase`.
    #[default(false)]
    use_passphrase: bool,
    /// Encrypt for keys nobody vouches for.
    #[default(false)]
    always_trust: bool,
    /// The folder the keys lie in.
    gnupghome: Option<String>,
    /// Return the outcome alone.
    #[default(false)]
    bare: bool,
    /// A keyring of its own.
    keyring: Option<String>,
) -> Result<Value> {
    let secret = passphrase(cx, use_passphrase)?;
    let data = input(cx, text, filename.as_deref())?;
    let people = several(&recipients);
    if people.is_empty() {
        return Err(Error::invalid(
            "No recipients or hidden recipients specified with asymmetric encryption",
        ));
    }
    let signer = match &sign {
        Value::Str(key) => Some(key.to_string()),
        _ => None,
    };
    let mut words = vec!["--armor", "--encrypt"];
    for person in &people {
        words.extend(["--recipient", person]);
    }
    if sign.truthy() {
        words.push("--sign");
    }
    if let Some(key) = &signer {
        words.extend(["--default-key", key]);
    }
    if always_trust {
        words.extend(["--trust-model", "always"]);
    }
    let ring = Ring::new(user, gnupghome, keyring);
    let made = ring.run(cx, &words, &data, secret.as_deref(), true)?;
    handed(cx, made, output, bare, "Encrypted")
}

/// Decrypt a text or a file.
///
/// ```console
/// $ salt '*' gpg.decrypt filename='/path/to/important.file.gpg'
/// ```
#[function]
pub fn decrypt(
    cx: &Cx,
    /// Whose keys; those of the minion's user unless said.
    user: Option<String>,
    /// The text.
    text: Option<String>,
    /// The file.
    filename: Option<String>,
    /// The file to write.
    output: Option<String>,
    /// The key has the pillar's `gpg_passphrase`.
    #[default(false)]
    use_passphrase: bool,
    /// The folder the keys lie in.
    gnupghome: Option<String>,
    /// Return the outcome alone.
    #[default(false)]
    bare: bool,
    /// A keyring of its own.
    keyring: Option<String>,
) -> Result<Value> {
    let secret = passphrase(cx, use_passphrase)?;
    let data = input(cx, text, filename.as_deref())?;
    let ring = Ring::new(user, gnupghome, keyring);
    let made = ring.run(cx, &["--decrypt"], &data, secret.as_deref(), true)?;
    handed(cx, made, output, bare, "Decrypted")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures() {
        let line = |word: &str, rest: &str| (word.to_owned(), rest.to_owned());
        let print = "9A1E13AA0FD3762D6AA539E0C9E9C36E804819DF";
        let valid = format!("{print} 2026-11-16 1794816000 0 4 0 1 10 01 {print}");
        let status = vec![
            line("NEWSIG", ""),
            line("GOODSIG", "C9E9C36E804819DF Test User <t@example.com>"),
            line("VALIDSIG", &valid),
            line("TRUST_ULTIMATE", "0 pgp"),
            line("ERRSIG", "1111111111111111 1 8 00 1794816000 9 -"),
            line("NO_PUBKEY", "1111111111111111"),
        ];
        let answer = Answer { status, ..Answer::default() };
        let all = Signature::all(&answer);
        assert_eq!(all.len(), 2);
        assert!(all[0].valid && all[0].is_by(print) && all[0].is_by("c9e9c36e804819df"));
        assert_eq!(
            (all[0].user.as_str(), all[0].trust),
            ("Test User <t@example.com>", Some("Ultimate"))
        );
        assert!(!all[1].valid && all[1].status == "no public key");
        let met = required(&all, &[print.to_owned()], &[]);
        assert_eq!(met.get("res"), Some(true.into()));
        let unmet = required(&all, &[], &["A".repeat(40)]);
        assert_eq!(unmet.get("res"), Some(false.into()));
    }
}
