//! Where keys and certificates come from: a file, a PEM text, hexadecimal digits, base64, bytes.
//!
//! All of it ends as DER. What lies in a PKCS 7 or PKCS 12 is found as well; the latter is opened
//! by the program `openssl`.

use std::path::Path;

use halite_spec::{Cx, Error, Result, host::Kind};
use halite_value::Value;

use super::{
    certificate::Certificate,
    der::{self, Item},
    from_hex, openssl,
};
use crate::hashutil;

pub const NO_SOURCE: &str = "Could not load provided source. You need to pass an existing file, \
                         (PEM|hex|base64)-encoded string or raw bytes.";

pub const BAD_PASSPHRASE: &str = "Bad decrypt - is the password correct?";

/// Tells whether a passphrase was given just when a key needs one.
pub fn check_passphrase(encrypted: bool, given: bool, superfluous: &str) -> Result<()> {
    match (encrypted, given) {
        (true, false) => Err(Error::raised(
            "MissingPassword",
            "Private key is encrypted. Please provide a password.",
        )),
        (false, true) => Err(Error::raised("SuperfluousPassword", superfluous)),
        _ => Ok(()),
    }
}

/// How something is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Pem,
    Der,
    Pkcs7Pem,
    Pkcs7Der,
    Pkcs12,
}

impl Encoding {
    const ALL: [(&'static str, Self); 5] = [
        ("der", Self::Der),
        ("pem", Self::Pem),
        ("pkcs7_der", Self::Pkcs7Der),
        ("pkcs7_pem", Self::Pkcs7Pem),
        ("pkcs12", Self::Pkcs12),
    ];

    /// Reads an encoding that is possible here.
    pub fn of(text: &str, possible: &[Self]) -> Result<Self> {
        let known = Self::ALL.iter().filter(|(_, own)| possible.contains(own));
        let found = known.clone().find(|(name, _)| *name == text).map(|(_, own)| *own);
        found.ok_or_else(|| {
            let names: Vec<&str> = known.map(|(name, _)| *name).collect();
            Error::failed(format!(
                "Invalid value '{text}' for encoding. Valid: {}",
                names.join(", ")
            ))
        })
    }

    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, own)| *own == self).map_or("", |(name, _)| name)
    }

    pub fn is_text(self) -> bool {
        matches!(self, Self::Pem | Self::Pkcs7Pem)
    }
}

fn looks_like_pem(bytes: &[u8]) -> bool {
    bytes.windows(11).any(|part| part == b"-----BEGIN ")
}

/// The bytes of a source: a PEM text stays one.
pub fn load(cx: &Cx, source: &Value) -> Result<Vec<u8>> {
    if let Value::Bytes(bytes) = source {
        return Ok(bytes.to_vec());
    }
    let text = source.to_str();
    if looks_like_pem(text.as_bytes()) {
        return Ok(text.as_bytes().to_vec());
    }
    let path = Path::new(text.as_str());
    if cx.host.stat(path, true).is_ok_and(|stat| stat.kind == Kind::File)
        && let Some(content) = cx.host.read_if_there(path)?
    {
        return Ok(content);
    }
    if let Some(bytes) = from_hex(&text) {
        return Ok(bytes);
    }
    // Python's base64 passes over what is not of its alphabet, so that some names of files that
    // are not there are read as data; the message is another one, then.
    hashutil::from_base64(text.as_bytes()).map_err(|_| Error::invalid(NO_SOURCE))
}

/// One piece of PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// `CERTIFICATE`
    pub kind: String,
    /// Lines before the data: `Proc-Type: 4,ENCRYPTED`.
    pub head: String,
    /// base64, without white space.
    pub data: String,
}

impl Piece {
    pub fn new(kind: &str, der: &[u8]) -> Self {
        Self { kind: kind.to_owned(), head: String::new(), data: hashutil::base64(der) }
    }

    /// All pieces of a text.
    pub fn all(text: &str) -> Vec<Self> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((_, after)) = rest.split_once("-----BEGIN ") {
            let Some((kind, body)) = after.split_once("-----") else { break };
            let Some((body, more)) = body.split_once(&format!("-----END {kind}-----")) else {
                rest = after;
                continue;
            };
            let (head, data) = match body.rsplit_once("\n\n") {
                Some((head, data)) if head.contains(':') => (head.trim(), data),
                _ => ("", body),
            };
            // Texts from pillars have lost their lines now and then.
            let data = data.chars().filter(|letter| !letter.is_whitespace()).collect();
            pieces.push(Self { kind: kind.to_owned(), head: head.to_owned(), data });
            rest = more;
        }
        pieces
    }

    pub fn der(&self) -> Option<Vec<u8>> {
        hashutil::from_base64(self.data.as_bytes()).ok()
    }

    /// Writes it evenly.
    pub fn written(&self) -> String {
        let Self { kind, head, data } = self;
        let data: Vec<char> = data.chars().collect();
        let lines: Vec<String> = data.chunks(64).map(|line| line.iter().collect()).collect();
        let head = if head.is_empty() { String::new() } else { format!("{head}\n\n") };
        format!("-----BEGIN {kind}-----\n{head}{}\n-----END {kind}-----\n", lines.join("\n"))
    }
}

/// Writes DER as PEM.
pub fn pem(kind: &str, der: &[u8]) -> String {
    Piece::new(kind, der).written()
}

/// Writes DER as it is, or as PEM.
pub fn written(encoding: Encoding, kind: &str, der: &[u8]) -> Vec<u8> {
    match encoding {
        Encoding::Der => der.to_vec(),
        _ => pem(kind, der).into_bytes(),
    }
}

/// The first piece of PEM in a text, of a kind if one is asked for.
pub fn pem_entry(text: &str, kind: Option<&str>) -> Result<Piece> {
    let found =
        Piece::all(text).into_iter().find(|piece| kind.is_none_or(|kind| kind == piece.kind));
    found.ok_or_else(|| {
        let kind = kind.map(|kind| format!(" of type {kind}")).unwrap_or_default();
        Error::invalid(format!("PEM does not contain a single entry{kind}:\n{text}"))
    })
}

/// What is in a source of certificates.
pub struct Found {
    /// The first one is the one meant.
    pub certificates: Vec<Vec<u8>>,
    pub encoding: Encoding,
    /// PKCS 8, if one lies with them.
    pub key: Option<Vec<u8>>,
    pub friendly_name: Option<String>,
}

impl Found {
    fn of(certificates: Vec<Vec<u8>>, encoding: Encoding) -> Self {
        Self { certificates, encoding, key: None, friendly_name: None }
    }
}

/// Reads certificates in any encoding.
pub fn certificates(cx: &Cx, bytes: &[u8], passphrase: Option<&str>) -> Result<Found> {
    let class = "CertDeserializationError";
    if looks_like_pem(bytes) {
        let pieces = Piece::all(&String::from_utf8_lossy(bytes));
        let kinds = ["CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE"];
        let plain = pieces.iter().filter(|piece| kinds.contains(&piece.kind.as_str()));
        let plain: Vec<Vec<u8>> = plain.filter_map(Piece::der).collect();
        let readable =
            !plain.is_empty() && plain.iter().all(|der| Certificate::read(der).is_some());
        if readable {
            return Ok(Found::of(plain, Encoding::Pem));
        }
        let packed = pieces.iter().find(|piece| piece.kind == "PKCS7").and_then(Piece::der);
        if let Some(all) = packed.as_deref().and_then(pkcs7) {
            return Ok(Found::of(all, Encoding::Pkcs7Pem));
        }
        return Err(Error::raised(class, "Could not load PEM-encoded certificate."));
    }
    if Certificate::read(bytes).is_some() {
        return Ok(Found::of(vec![bytes.to_vec()], Encoding::Der));
    }
    if let Some(all) = pkcs7(bytes) {
        return Ok(Found::of(all, Encoding::Pkcs7Der));
    }
    if is_pkcs12(bytes) {
        let found = pkcs12(cx, bytes, passphrase)?;
        if !found.certificates.is_empty() {
            return Ok(found);
        }
    }
    Err(Error::raised(
        class,
        "Could not deserialize binary data, neither as DER nor PKCS#7, PKCS#12.",
    ))
}

/// Reads a request or a revocation list, and how it was written.
pub fn single<T>(
    bytes: &[u8],
    kinds: &[&str],
    class: &str,
    what: &str,
    read: fn(&[u8]) -> Option<T>,
) -> Result<(T, Encoding)> {
    let (der, encoding, form) = match looks_like_pem(bytes) {
        true => {
            let pieces = Piece::all(&String::from_utf8_lossy(bytes));
            let piece = pieces.iter().find(|piece| kinds.contains(&piece.kind.as_str()));
            (piece.and_then(Piece::der), Encoding::Pem, "PEM")
        }
        false => (Some(bytes.to_vec()), Encoding::Der, "DER"),
    };
    let unreadable = || Error::raised(class, format!("Could not load {form}-encoded {what}."));
    der.as_deref().and_then(read).map(|own| (own, encoding)).ok_or_else(unreadable)
}

const SIGNED_DATA: &str = "1.2.840.113549.1.7.2";
const DATA: &str = "1.2.840.113549.1.7.1";

/// The certificates of a PKCS 7.
fn pkcs7(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut parts = der::only(bytes, der::SEQUENCE)?.items();
    (parts.next()?.oid()? == SIGNED_DATA).then_some(())?;
    let signed = parts.tagged(der::context(0))?.items().next()?;
    let certificates = signed.items().find(|part| part.tag == der::context(0))?;
    let mut all: Vec<Vec<u8>> = certificates.items().map(|item| item.whole.to_vec()).collect();
    // A set has no order: the one that signed no other is the one meant.
    let read: Vec<Option<Certificate>> = all.iter().map(|der| Certificate::read(der)).collect();
    let signs = |own: &Certificate| {
        let others = read.iter().flatten().filter(|other| other.der != own.der);
        others.into_iter().any(|other| other.issuer == own.subject)
    };
    let last = read.iter().position(|own| own.as_ref().is_some_and(|own| !signs(own)));
    if let Some(last) = last.filter(|last| *last < all.len()) {
        let own = all.remove(last);
        all.insert(0, own);
    }
    (!all.is_empty()).then_some(all)
}

/// Packs certificates as PKCS 7.
pub fn to_pkcs7(certificates: &[Vec<u8>]) -> Vec<u8> {
    let mut all = certificates.to_vec();
    // A set is sorted.
    all.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    let signed = der::sequence(&[
        &der::small(1),
        &der::element(der::SET, &[]),
        &der::sequence(&[&der::known(DATA)]),
        &der::element(der::context(0), &all.concat()),
        &der::element(der::SET, &[]),
    ]);
    der::sequence(&[&der::known(SIGNED_DATA), &der::element(der::context(0), &signed)])
}

pub fn is_pkcs12(bytes: &[u8]) -> bool {
    let parts = der::only(bytes, der::SEQUENCE).map(Item::items);
    parts.is_some_and(|mut parts| {
        let version = parts.next().and_then(Item::small);
        let inner = parts.next().and_then(|inner| inner.items().next()?.oid());
        version == Some(3) && inner.as_deref() == Some(DATA)
    })
}

/// Opens a PKCS 12.
pub fn pkcs12(cx: &Cx, bytes: &[u8], passphrase: Option<&str>) -> Result<Found> {
    let words = ["pkcs12", "-in", "/dev/stdin", "-nodes", "-passin", "env:HALITE_PASSPHRASE"];
    let secrets = [("HALITE_PASSPHRASE", passphrase.unwrap_or_default())];
    let text = match openssl(cx, &words, bytes, &secrets) {
        Ok(text) => String::from_utf8_lossy(&text).into_owned(),
        Err(Error::Failed(_)) => return Err(Error::raised("InvalidPassword", BAD_PASSPHRASE)),
        Err(error) => return Err(error),
    };
    let pieces = Piece::all(&text);
    let of_kind = |kind: &str| {
        pieces.iter().filter(|piece| piece.kind == kind).filter_map(Piece::der).collect::<Vec<_>>()
    };
    let name = text.lines().find_map(|line| line.trim().strip_prefix("friendlyName: "));
    Ok(Found {
        certificates: of_kind("CERTIFICATE"),
        encoding: Encoding::Pkcs12,
        key: of_kind("PRIVATE KEY").into_iter().next(),
        friendly_name: name.map(str::to_owned),
    })
}

/// Packs a key and certificates as PKCS 12.
pub fn to_pkcs12(
    cx: &Cx,
    key: Option<&[u8]>,
    certificates: &[Vec<u8>],
    passphrase: Option<&str>,
    friendly_name: Option<&str>,
    compatible: bool,
) -> Result<Vec<u8>> {
    let input: String = certificates.iter().map(|der| pem("CERTIFICATE", der)).collect();
    let mut words = vec!["pkcs12", "-export", "-passout", "env:HALITE_PASSPHRASE"];
    if certificates.is_empty() {
        words.push("-nocerts");
    }
    if let Some(name) = friendly_name {
        words.extend(["-name", name]);
    }
    if passphrase.is_none_or(str::is_empty) {
        words.extend(["-keypbe", "NONE", "-certpbe", "NONE"]);
    } else if compatible {
        words.extend(["-keypbe", "PBE-SHA1-3DES", "-certpbe", "PBE-SHA1-3DES", "-macalg", "sha1"]);
    }
    let secrets = [("HALITE_PASSPHRASE", passphrase.unwrap_or_default())];
    let Some(key) = key else {
        words.extend(["-nokeys", "-in", "/dev/stdin"]);
        return openssl(cx, &words, input.as_bytes(), &secrets);
    };
    // The program reads a single input twice, which a pipe does not allow.
    let script = r#"exec 3<&0; key=$(dd bs=1 count="$1" 2>/dev/null); shift
        printf '%s\n' "$key" | openssl "$@" -inkey /dev/stdin -in /dev/fd/3"#;
    let alone = r#"key=$(dd bs=1 count="$1" 2>/dev/null); shift
        printf '%s\n' "$key" | openssl "$@" -in /dev/stdin"#;
    let script = if certificates.is_empty() { alone } else { script };
    super::keys::piped(cx, script, &pem("PRIVATE KEY", key), input.as_bytes(), &words, &secrets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_pem() {
        let long = "A".repeat(70);
        let text = format!(
            "x\n-----BEGIN A-----{long}-----END A-----\n-----BEGIN B-----\nQ\n-----END B-----\n"
        );
        let first = pem_entry(&text, None).unwrap().written();
        assert_eq!(
            first,
            format!("-----BEGIN A-----\n{}\nAAAAAA\n-----END A-----\n", "A".repeat(64))
        );
        let second = pem_entry(&text, Some("B")).unwrap().written();
        assert_eq!(second, "-----BEGIN B-----\nQ\n-----END B-----\n");
        assert!(pem_entry(&text, Some("C")).is_err() && pem_entry("junk", None).is_err());
        assert!(Piece::all("-----BEGIN A-----\nxx").is_empty());
    }

    #[test]
    fn packed() {
        let one = der::sequence(&[&der::small(1)]);
        assert_eq!(pkcs7(&to_pkcs7(std::slice::from_ref(&one))), Some(vec![one.clone()]));
        assert_eq!(pkcs7(&one), None);
        assert!(!is_pkcs12(&one));
    }
}
