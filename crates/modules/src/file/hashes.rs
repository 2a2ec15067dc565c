//! Digests of files, and what a `source_hash` says the digest shall be.

use std::path::Path;

use halite_spec::{Cx, Error, Result, function};
use halite_value::{Dict, Value, entries};

use super::{
    paths::{expand_user, file_name as last_part, is_abs},
    source::{Signature, Trust, VALID_PROTOCOLS, redacted, scheme_of},
    text::text_lines,
};
use crate::hashutil::Kind;

/// A digest with its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum {
    pub kind: Kind,
    /// In lower-case hexadecimal.
    pub digits: String,
}

impl From<&Sum> for Value {
    fn from(sum: &Sum) -> Self {
        Self::Dict(entries! { "hash_type" => sum.kind.name(), "hsum" => &sum.digits })
    }
}

impl Sum {
    /// Reads `{hash_type: …, hsum: …}`.
    pub fn from_dict(dict: &Dict) -> Option<Self> {
        let text = |key: &str| dict.get(key).map(|value| value.to_str());
        let kind = Kind::named(&text("hash_type")?)?;
        Some(Self { kind, digits: text("hsum")?.to_lowercase() })
    }
}

/// Returns the digest of a file by the kind's name.
pub(super) fn hash_of(cx: &Cx, path: &str, kind: &str) -> Result<String> {
    let kind = Kind::named(kind)
        .ok_or_else(|| Error::raised("ValueError", format!("Invalid hash type: {kind}")))?;
    Ok(kind.of_file(&*cx.host, Path::new(path))?)
}

/// Return the digest of a file, or `File not found`.
///
/// ```console
/// $ salt web1 file.get_sum /srv/app/app.conf
/// ```
#[function]
pub fn get_sum(
    cx: &Cx,
    /// The file.
    path: String,
    /// The kind of hash.
    #[default("sha256".to_owned())]
    form: String,
) -> Result<String> {
    let path = expand_user(cx, &path);
    if !cx.host.is_file(Path::new(&path))? {
        return Ok("File not found".to_owned());
    }
    hash_of(cx, &path, &form)
}

/// Return the digest of a file.
///
/// ```console
/// $ salt web1 file.get_hash /srv/app/app.conf
/// ```
#[function]
pub fn get_hash(
    cx: &Cx,
    /// The file.
    path: String,
    /// The kind of hash.
    #[default("sha256".to_owned())]
    form: String,
    /// Taken for compatibility; files are read in pieces of our own size.
    #[default(65536)]
    chunk_size: i64,
) -> Result<String> {
    let _ = chunk_size;
    hash_of(cx, &expand_user(cx, &path), &form)
}

fn kinds_by_length() -> String {
    let mut kinds = Kind::ALL;
    kinds.reverse();
    kinds.map(|kind| format!("{} ({})", kind.name(), kind.digits())).join(", ")
}

/// Tell whether a file has a digest, given as `kind=digest`, `kind:digest` or the digest alone.
///
/// ```console
/// $ salt '*' file.check_hash /etc/fstab sha256:fafa…
/// ```
#[function]
pub fn check_hash(
    cx: &Cx,
    /// The file.
    path: String,
    /// The digest.
    file_hash: Value,
) -> Result<bool> {
    let path = expand_user(cx, &path);
    let Some(given) = file_hash.as_str() else {
        return Err(Error::invalid("hash must be a string"));
    };
    let split = [':', '='].into_iter().find_map(|sign| given.split_once(sign));
    let (kind, digits) = match split {
        Some((kind, digits)) => (kind.to_owned(), digits),
        None => {
            let kind = Kind::with_digits(given.len()).ok_or_else(|| {
                Error::invalid(format!(
                    "Hash {given} (length: {}) could not be matched to a supported hash type. \
                     The supported hash types and lengths are: {}",
                    given.chars().count(),
                    kinds_by_length()
                ))
            })?;
            (kind.name().to_owned(), given)
        }
    };
    Ok(hash_of(cx, &path, &kind)? == digits)
}

fn bad_format(source_hash: &str) -> Error {
    Error::failed(format!(
        "Source hash {} format is invalid. The supported formats are: 1) a hash, 2) an expression \
         in the format <hash_type>=<hash>, or 3) either a path to a local file containing hashes, \
         or a URI of a remote hash file. Supported protocols for remote hash files are: {}. The \
         hash may also not be of a valid length, the following are supported hash types and \
         lengths: {}.",
        redacted(source_hash),
        VALID_PROTOCOLS.join(", "),
        kinds_by_length()
    ))
}

/// The class of the error when a list of digests cannot be fetched. Functions that answer with a
/// comment where the file is wrong fail with this one, as Salt's do.
pub const UNREACHABLE: &str = "MinionError";

/// Returns what a `source_hash` says: a digest, or a file (local or to be fetched) of digests in
/// which the line of this file is looked for.
pub fn sum_for(
    cx: &Cx,
    name: &str,
    source: &str,
    source_hash: &str,
    source_hash_name: Option<&str>,
    saltenv: &str,
    trust: &Trust,
) -> Result<Sum> {
    let scheme = scheme_of(source_hash);
    let list = if is_abs(source_hash) {
        Some(Path::new(source_hash).to_owned())
    } else if VALID_PROTOCOLS.contains(&scheme.as_str()) {
        let cached = cx.files.cache_with(source_hash, saltenv, &trust.fetch()).map_err(
            |error| match error {
                Error::Failed(message) => Error::raised(UNREACHABLE, message),
                other => other,
            },
        )?;
        Some(cached.ok_or_else(|| {
            Error::failed(format!("Source hash file {} not found", redacted(source_hash)))
        })?)
    } else if scheme.is_empty() {
        None
    } else {
        return Err(bad_format(source_hash));
    };
    if let Some(list) = list {
        if let Some(signature) = &trust.digests {
            signature.verify(cx, &list, saltenv)?;
        }
        let text = cx.host.read_text(&list)?;
        return find_sum(&text, None, name, source, source_hash_name)
            .ok_or_else(|| bad_format(source_hash));
    }
    let Some((kind, digits)) = source_hash.split_once('=') else {
        let hex = !source_hash.is_empty() && source_hash.chars().all(|c| c.is_ascii_hexdigit());
        let kind = Kind::with_digits(source_hash.len()).filter(|_| hex);
        let kind = kind.ok_or_else(|| bad_format(source_hash))?;
        return Ok(Sum { kind, digits: source_hash.to_lowercase() });
    };
    let (kind_name, digits) = (kind.trim(), digits.trim());
    let Some(kind) = Kind::named(kind_name) else {
        return Err(Error::failed(format!(
            "Invalid hash type '{kind_name}'. Supported hash types are: {}. Either remove the hash \
             type and simply use '{digits}' as the source_hash, or change the hash type to a \
             supported type.",
            Kind::ALL.map(Kind::name).join(", ")
        )));
    };
    match Kind::with_digits(digits.len()) {
        None => Err(bad_format(source_hash)),
        Some(other) if other != kind => Err(Error::failed(format!(
            "Invalid length ({}) for hash type '{kind_name}'. Either remove the hash type and \
             simply use '{digits}' as the source_hash, or change the hash type to '{}'",
            digits.len(),
            other.name()
        ))),
        Some(_) => Ok(Sum { kind, digits: digits.to_lowercase() }),
    }
}

/// Finds the digest in a list like those of `sha256sum` or `Release` files: on the line of
/// `source_hash_name`, else of the file's own name, else of the source's, else the first of all.
pub fn find_sum(
    list: &str,
    kind: Option<Kind>,
    name: &str,
    source: &str,
    source_hash_name: Option<&str>,
) -> Option<Sum> {
    let source_name = {
        let path = source.split_once("://").map_or(source, |(_, rest)| rest);
        let path = path.split(['?', '#']).next().unwrap_or(path);
        last_part(path)
    };
    let ends_with = |line: &str, name: &str, apart: fn(char) -> bool| {
        line.strip_suffix(name).and_then(|rest| rest.chars().next_back()).is_some_and(apart)
    };
    let begins_with = |line: &str, name: &str| {
        line.strip_prefix(name).is_some_and(|rest| rest.starts_with(char::is_whitespace))
    };
    let apart: fn(char) -> bool = |c| c.is_whitespace() || "\\/*".contains(c);
    let mut best: Option<(u8, Sum)> = None;
    for line in text_lines(list) {
        let line = line.trim();
        let Some(sum) = sum_in(line, kind) else { continue };
        let by_given = source_hash_name.is_some_and(|name| {
            ends_with(line, name, char::is_whitespace) || begins_with(line, name)
        });
        let by_name = !name.is_empty()
            && (ends_with(line, last_part(name), apart) || begins_with(line, name));
        let by_source = !source.is_empty()
            && (ends_with(line, source_name, apart) || begins_with(line, source));
        let rank = match (by_given, by_name, by_source) {
            (true, ..) => 3,
            (_, true, _) => 2,
            (.., true) => 1,
            _ => 0,
        };
        // The first line of the highest rank.
        if best.as_ref().is_none_or(|(other, _)| rank > *other) {
            best = Some((rank, sum));
        }
    }
    best.map(|(_, sum)| sum)
}

/// The first word of hexadecimal digits that is long enough for a digest.
fn sum_in(line: &str, kind: Option<Kind>) -> Option<Sum> {
    let fits = |word: &str| {
        word.chars().all(|c| c.is_ascii_hexdigit())
            && kind.map_or((32..=128).contains(&word.len()), |kind| kind.digits() == word.len())
    };
    let word = line.split(|c: char| !c.is_ascii_alphanumeric()).find(|word| fits(word))?;
    let kind = Kind::with_digits(word.len())?;
    Some(Sum { kind, digits: word.to_lowercase() })
}

/// Return the digest a `source_hash` stands for, with its kind.
///
/// ```console
/// $ salt web1 file.get_source_sum
/// ```
#[function]
pub fn get_source_sum(
    cx: &Cx,
    /// The file on this machine, whose name is looked for in a list of digests.
    #[default(String::new())]
    file_name: String,
    /// Where the file comes from, whose name is looked for too.
    #[default(String::new())]
    source: String,
    /// A digest, `kind=digest`, or a file of digests.
    source_hash: Option<String>,
    /// The name to look for instead.
    source_hash_name: Option<String>,
    /// The environment of `salt://` files.
    #[default("base".to_owned())]
    saltenv: String,
    /// Whether certificates are checked.
    #[default(true)]
    verify_ssl: bool,
    /// A signature of the file of digests.
    source_hash_sig: Option<Value>,
    /// Keys one of which must have signed.
    signed_by_any: Option<Value>,
    /// Keys all of which must have signed.
    signed_by_all: Option<Value>,
    /// The keyring.
    keyring: Option<String>,
    /// The home of GnuPG.
    gnupghome: Option<String>,
    /// The module that checks signatures.
    #[default("gpg".to_owned())]
    sig_backend: String,
) -> Result<Value> {
    let source_hash = source_hash.unwrap_or_default();
    let hash_name = source_hash_name.as_deref().filter(|name| !name.is_empty());
    let digests = source_hash_sig.filter(Value::truthy).map(|signature| Signature {
        signature,
        signed_by_any,
        signed_by_all,
        keyring,
        gnupghome,
        backend: sig_backend,
    });
    let trust = Trust { verify_ssl, digests };
    let sum = sum_for(cx, &file_name, &source, &source_hash, hash_name, &saltenv, &trust)?;
    Ok((&sum).into())
}

/// Find a file's digest in a file of digests.
///
/// ```console
/// $ salt web1 file.extract_hash /srv/app/SHA256SUMS file_name=app.conf
/// ```
#[function]
pub fn extract_hash(
    cx: &Cx,
    /// The file of digests.
    hash_fn: String,
    /// The kind of hash to look for; any, if empty.
    #[default("sha256".to_owned())]
    hash_type: String,
    /// The file whose name is looked for.
    #[default(String::new())]
    file_name: String,
    /// The source whose name is looked for.
    #[default(String::new())]
    source: String,
    /// The name to look for instead.
    source_hash_name: Option<String>,
) -> Result<Value> {
    let text = cx.host.read_text(Path::new(&hash_fn))?;
    let hash_name = source_hash_name.as_deref().filter(|name| !name.is_empty());
    let found = find_sum(&text, Kind::named(&hash_type), &file_name, &source, hash_name);
    Ok(found.map_or(Value::Null, |sum| (&sum).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MD5: [&str; 3] = [
        "d41d8cd98f00b204e9800998ecf8427e",
        "0cc175b9c0f1b6a831c399e269772661",
        "92eb5ffee6ae2fec3ad71c777531578f",
    ];

    fn check(list: &str, name: &str, source: &str, given: Option<&str>, expected: Option<&str>) {
        let found = find_sum(list, None, name, source, given);
        assert_eq!(found.as_ref().map(|sum| sum.digits.as_str()), expected);
    }

    #[test]
    fn lists_of_digests() {
        let [a, b, c] = MD5;
        let list = format!("{a}  first.tar\n{b} *sub/foo.tgz\n{c}  other\n");
        check(&list, "/opt/foo.tgz", "", None, Some(b));
        check(&list, "/opt/x", "http://h/other?x=1", None, Some(c));
        check(&list, "/opt/foo.tgz", "", Some("other"), Some(c));
        check(&list, "/opt/nothing", "", None, Some(a));
        check("no digest here", "/opt/foo", "", None, None);
        check(&format!("foo.tgz {}", a.to_uppercase()), "foo.tgz", "", None, Some(a));
    }
}
