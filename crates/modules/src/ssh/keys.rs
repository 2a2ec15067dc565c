//! Lines of `authorized_keys`, as data.

use halite_spec::{Error, Result};

use crate::hashutil;

/// A public key with what stands around it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Key {
    pub enc: String,
    pub key: String,
    pub comment: String,
    pub options: Vec<String>,
}

/// Where words begin that are not inside quotes. `\\"` in quotes does not end them.
fn word_starts(line: &str) -> Vec<usize> {
    let mut starts = Vec::new();
    let (mut quoted, mut escaped, mut between) = (false, false, true);
    for (at, char) in line.char_indices() {
        if between && !quoted && !char.is_whitespace() {
            starts.push(at);
        }
        if char == '"' && !escaped {
            quoted = !quoted;
        }
        escaped = char == '\\' && !escaped;
        between = char.is_whitespace();
    }
    starts
}

fn first_word(text: &str) -> &str {
    text.split(char::is_whitespace).next().unwrap_or_default()
}

/// Tells whether a word names a kind of key: `ssh-ed25519`, `sk-ecdsa-sha2-nistp256@openssh.com`.
fn is_kind(word: &str) -> bool {
    let plain = word.strip_prefix("sk-").unwrap_or(word);
    let name = ["ssh-", "ecds"].iter().find_map(|start| plain.strip_prefix(start));
    let sign = |char: char| char.is_alphanumeric() || "_@.-".contains(char);
    name.is_some_and(|name| !name.is_empty() && name.chars().all(sign))
}

impl Key {
    /// Reads a whole line; `None` if it holds no key.
    ///
    /// The kind of the key is the first word outside quotes that can be one: options stand before
    /// it, the key and its comment behind it.
    // differs: Salt takes a kind inside the quotes of an option (`command="ssh-add"`) for the key's.
    pub fn read(line: &str) -> Option<Self> {
        let line = line.trim();
        let start =
            word_starts(line).into_iter().find(|start| is_kind(first_word(&line[*start..])))?;
        let (options, rest) = line.split_at(start);
        let options = options.strip_suffix(char::is_whitespace).unwrap_or(options);
        let mut words = rest.split_whitespace().map(str::to_owned);
        let (enc, key) = (words.next()?, words.next()?);
        let options = if options.is_empty() { vec![] } else { options.split(',').collect() };
        Some(Self {
            enc,
            key,
            comment: words.collect::<Vec<_>>().join(" "),
            options: options.into_iter().map(str::to_owned).collect(),
        })
    }

    /// The line of the file, with its end.
    pub fn line(&self) -> String {
        let Self { enc, key, comment, options } = self;
        let options = if options.is_empty() { String::new() } else { options.join(",") + " " };
        format!("{options}{enc} {key} {comment}\n")
    }
}

/// Returns a key's fingerprint; `None` if it is no key.
pub fn fingerprint(key: &str, kind: Option<&str>) -> Result<Option<String>> {
    let kind = kind.filter(|kind| !kind.is_empty()).unwrap_or("sha256").to_lowercase();
    let hash = hashutil::Kind::named(&kind).ok_or_else(|| {
        Error::failed(format!("The fingerprint_hash_type {kind} is not supported."))
    })?;
    let digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    if key.is_empty() || !key.len().is_multiple_of(4) || !key.bytes().all(digit) {
        return Ok(None);
    }
    let Ok(raw) = hashutil::from_base64(key.as_bytes()) else { return Ok(None) };
    let digits = hash.of(&raw);
    let pairs: Vec<&str> =
        (0..digits.len()).step_by(2).filter_map(|at| digits.get(at..at + 2)).collect();
    Ok(Some(pairs.join(":")))
}

/// Returns the keys of a file; of one that stands there twice, the last.
pub fn read_all(text: &str, kind: Option<&str>) -> Result<Vec<(Key, String)>> {
    let mut keys: Vec<(Key, String)> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        let Some(key) = Key::read(line) else { continue };
        let Some(print) = fingerprint(&key.key, kind)? else { continue };
        match keys.iter_mut().find(|(own, _)| own.key == key.key) {
            Some(own) => *own = (key, print),
            None => keys.push((key, print)),
        }
    }
    Ok(keys)
}

/// Puts another line in place of a key's.
pub fn replaced(text: &str, key: &Key) -> String {
    edited(text, |own| if own.key == key.key { Some(key.line()) } else { None })
}

/// Takes a key's line out.
pub fn removed(text: &str, key: &str) -> String {
    edited(text, |own| (own.key == key).then(String::new))
}

/// Empty lines go, as Salt does; lines that hold no key stay.
// differs: Salt throws lines away that it cannot read.
fn edited(text: &str, edit: impl Fn(&Key) -> Option<String>) -> String {
    let mut new = String::with_capacity(text.len());
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let key = if line.starts_with('#') { None } else { Key::read(line) };
        match key.as_ref().and_then(&edit) {
            Some(line) => new += &line,
            None => new += &format!("{line}\n"),
        }
    }
    new
}

/// Returns the full name of a kind of key.
pub fn refined(enc: &str) -> Result<String> {
    const ALLOWED: [&str; 13] = [
        "ecdsa-sha2-nistp256-cert-v01@openssh.com",
        "ecdsa-sha2-nistp384-cert-v01@openssh.com",
        "ecdsa-sha2-nistp521-cert-v01@openssh.com",
        "rsa-sha2-256",
        "rsa-sha2-256-cert-v01@openssh.com",
        "rsa-sha2-512",
        "rsa-sha2-512-cert-v01@openssh.com",
        "sk-ecdsa-sha2-nistp256-cert-v01@openssh.com",
        "sk-ecdsa-sha2-nistp256@openssh.com",
        "sk-ssh-ed25519-cert-v01@openssh.com",
        "sk-ssh-ed25519@openssh.com",
        "ssh-ed25519-cert-v01@openssh.com",
        "ssh-rsa-cert-v01@openssh.com",
    ];
    Ok(match enc {
        "r" | "rsa" | "ssh-rsa" => "ssh-rsa",
        "d" | "dsa" | "dss" | "ssh-dss" => "ssh-dss",
        "e" | "ecdsa" | "ecdsa-sha2-nistp256" => "ecdsa-sha2-nistp256",
        "ecdsa-sha2-nistp384" | "ecdsa-sha2-nistp521" => enc,
        "ed25519" | "ssh-ed25519" => "ssh-ed25519",
        other if ALLOWED.contains(&other) => other,
        other => return Err(Error::failed(format!("Incorrect encryption key type '{other}'."))),
    }
    .to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let key = Key::read("no-pty,from=\"10.0.0.1\" ssh-rsa AAAA me@home  x").unwrap();
        assert_eq!(key.options, ["no-pty", "from=\"10.0.0.1\""]);
        assert_eq!((key.enc.as_str(), key.key.as_str()), ("ssh-rsa", "AAAA"));
        assert_eq!(key.line(), "no-pty,from=\"10.0.0.1\" ssh-rsa AAAA me@home x\n");
        let key = Key::read("sk-ssh-ed25519@openssh.com BBBB").unwrap();
        assert_eq!(key.line(), "sk-ssh-ed25519@openssh.com BBBB \n");
        assert_eq!(Key::read("AAAA me"), None);
        assert_eq!(Key::read("ssh-rsa"), None);
        let key = Key::read("command=\"ssh-add -l \\\"x ssh-y z\" ssh-dss CCCC c").unwrap();
        assert_eq!(key.options, ["command=\"ssh-add -l \\\"x ssh-y z\""]);
        assert_eq!((key.enc.as_str(), key.comment.as_str()), ("ssh-dss", "c"));
    }

    #[test]
    fn edits() {
        let text = "# mine\n\nssh-rsa AAAA a\nodd\nssh-rsa BBBB b\n";
        let key =
            Key { enc: "ssh-rsa".into(), key: "AAAA".into(), comment: "z".into(), options: vec![] };
        assert_eq!(replaced(text, &key), "# mine\nssh-rsa AAAA z\nodd\nssh-rsa BBBB b\n");
        assert_eq!(removed(text, "BBBB"), "# mine\nssh-rsa AAAA a\nodd\n");
    }

    #[test]
    fn fingerprints() {
        assert_eq!(
            fingerprint("AAAA", Some("md5")).unwrap().as_deref(),
            Some("69:3e:9a:f8:4d:3d:fc:c7:1e:64:0e:00:5b:dc:5e:2e")
        );
        assert_eq!(fingerprint("AA A", None).unwrap(), None);
        assert!(fingerprint("AAAA", Some("crc")).is_err());
    }
}
