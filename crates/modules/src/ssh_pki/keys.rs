//! Private keys as OpenSSH writes them.
//!
//! A key is held as `x509` holds it, so that making it and signing with it are the same work there;
//! here it is only written and read. Encryption with a passphrase is the program `ssh-keygen`'s
//! business: the key passes through a folder nobody else can enter, the passphrase through the
//! environment, and neither is an argument.

use halite_spec::{Args, Command, Cx, Error, Result};
use halite_value::Value;
use num_bigint::BigUint;

use super::{
    load,
    wire::{Public, Reader, Writer},
};
use crate::{
    random,
    x509::{
        der,
        keys::{Private as Opened, Public as Spki},
        source::{self, BAD_PASSPHRASE, Encoding, Piece},
    },
};

const MAGIC: &[u8] = b"openssh-key-v1\0";
const KIND: &str = "OPENSSH PRIVATE KEY";

pub const UNREADABLE: &str = "Could not load OpenSSH private key";

/// A private key.
#[derive(Clone, Debug)]
pub struct Private {
    pub public: Public,
    /// PKCS 8.
    pub key: Opened,
}

/// What a new key shall be.
#[derive(Args)]
pub struct NewKey {
    /// `rsa`, `ec` or `ed25519`.
    #[default("rsa".into())]
    pub algo: String,
    /// Its size in bits; 3072 for RSA and 256 for EC unless said.
    #[default(Value::Null)]
    keysize: Value,
    /// Its passphrase.
    pub passphrase: Option<String>,
}

impl NewKey {
    pub fn size(&self) -> Value {
        match (&self.keysize, self.algo.as_str()) {
            (Value::Null, "rsa") => 3072.into(),
            (Value::Null, "ec") => 256.into(),
            (size, _) => size.clone(),
        }
    }

    pub fn make(&self, cx: &Cx) -> Result<Private> {
        if self.algo == "ed448" {
            return Err(Error::invalid(
                "Invalid algorithm specified for generating private key: ed448. Valid: rsa, ec, \
                 ed25519, ed448",
            ));
        }
        let key = Opened::make(cx, &self.algo, &self.size())?;
        let public = Public::of_spki(&key.public);
        let public = public.ok_or_else(|| Error::failed(UNREADABLE))?;
        Ok(Private { public, key })
    }
}

/// What stands between the lines of a private key.
fn blob_of(bytes: &[u8]) -> Option<Vec<u8>> {
    let pieces = Piece::all(&String::from_utf8_lossy(bytes));
    pieces.iter().find(|piece| piece.kind == KIND)?.der()
}

impl Private {
    /// Opens a key given as a file, text or bytes.
    pub fn load(cx: &Cx, source: &Value, passphrase: Option<&str>) -> Result<Self> {
        Self::open(cx, &load(cx, source)?, passphrase)
    }

    pub fn open(cx: &Cx, bytes: &[u8], passphrase: Option<&str>) -> Result<Self> {
        let passphrase = passphrase.filter(|passphrase| !passphrase.is_empty());
        let unreadable = || Error::raised("PrivDeserializationError", UNREADABLE);
        let blob = blob_of(bytes).ok_or_else(unreadable)?;
        let encrypted = Container::read(&blob).ok_or_else(unreadable)?.cipher != "none";
        let superfluous = "Password was given but private key is not encrypted";
        source::check_passphrase(encrypted, passphrase.is_some(), superfluous)?;
        let blob = match passphrase {
            None => blob,
            Some(passphrase) => {
                let opened = change_passphrase(cx, bytes, Some(passphrase), None)?;
                blob_of(&opened).ok_or_else(unreadable)?
            }
        };
        let (public, der) =
            Container::read(&blob).and_then(|read| read.key()).ok_or_else(unreadable)?;
        let spki = public.spki().ok_or_else(unreadable)?;
        Ok(Self { public, key: Opened { der, public: spki, encoding: Encoding::Pem } })
    }

    /// Writes it, encrypted if there is a passphrase.
    pub fn encode(&self, cx: &Cx, passphrase: Option<&str>) -> Result<Vec<u8>> {
        let check: [u8; 4] = random::bytes(cx, 4)?.try_into().unwrap_or_default();
        let blob = Container::write(&self.public, &self.key.der, check);
        let blob = blob.ok_or_else(|| Error::failed(UNREADABLE))?;
        let plain = Piece::new(KIND, &blob).written().into_bytes();
        match passphrase.filter(|passphrase| !passphrase.is_empty()) {
            None => Ok(plain),
            Some(passphrase) => change_passphrase(cx, &plain, None, Some(passphrase)),
        }
    }

    /// Signs data, as a certificate carries it.
    pub fn sign(&self, cx: &Cx, data: &[u8]) -> Result<Vec<u8>> {
        let (name, digest) = self.scheme();
        let made = self.key.sign(cx, digest, data)?;
        let mut writer = Writer::default();
        writer.string(name);
        match self.public.algo() {
            "ec" => {
                let mut inner = Writer::default();
                let numbers = der::only(&made, der::SEQUENCE).map(der::Item::items);
                for number in numbers.into_iter().flatten() {
                    inner.big(number.number());
                }
                writer.string(inner.0);
            }
            _ => {
                writer.string(made);
            }
        }
        Ok(writer.0)
    }

    fn scheme(&self) -> (&str, &'static str) {
        match self.public.kind.as_str() {
            "ssh-rsa" => ("rsa-sha2-512", "sha512"),
            "ecdsa-sha2-nistp384" => ("ecdsa-sha2-nistp384", "sha384"),
            "ecdsa-sha2-nistp521" => ("ecdsa-sha2-nistp521", "sha512"),
            other => (other, "sha256"),
        }
    }
}

/// Tells whether a signature of a certificate's kind is right.
pub fn verify(cx: &Cx, key: &Public, signature: &[u8], data: &[u8]) -> Result<bool> {
    let mut reader = Reader(signature);
    let (Some(scheme), Some(value)) = (reader.text(), reader.string()) else { return Ok(false) };
    let Some(spki) = key.spki() else { return Ok(false) };
    let (digest, value) = match scheme {
        "ssh-rsa" => (Some("sha1"), value.to_vec()),
        "rsa-sha2-256" => (Some("sha256"), value.to_vec()),
        "rsa-sha2-512" => (Some("sha512"), value.to_vec()),
        "ssh-ed25519" => (None, value.to_vec()),
        "ecdsa-sha2-nistp256" | "ecdsa-sha2-nistp384" | "ecdsa-sha2-nistp521" => {
            let mut numbers = Reader(value);
            let (Some(one), Some(other)) = (numbers.string(), numbers.string()) else {
                return Ok(false);
            };
            let digest = match key.size() {
                Some(384) => "sha384",
                Some(521) => "sha512",
                _ => "sha256",
            };
            (Some(digest), der::sequence(&[&der::integer(one), &der::integer(other)]))
        }
        _ => return Ok(false),
    };
    let fits = match key.algo() {
        "rsa" => scheme.contains("rsa"),
        _ => scheme == key.kind,
    };
    Ok(fits && crate::x509::keys::verify_by(cx, &spki, digest, false, &value, data)?)
}

/// A private key as [`blob_of`] returns it.
struct Container<'a> {
    cipher: &'a str,
    private: &'a [u8],
}

impl<'a> Container<'a> {
    fn read(blob: &'a [u8]) -> Option<Self> {
        let mut reader = Reader(blob.strip_prefix(MAGIC)?);
        let cipher = reader.text()?;
        // How the passphrase is used, and with what.
        reader.string()?;
        reader.string()?;
        if reader.number()? != 1 {
            return None;
        }
        reader.string()?;
        Some(Self { cipher, private: reader.string()? })
    }

    /// The key of a container that is not encrypted: public, and as PKCS 8.
    fn key(&self) -> Option<(Public, Vec<u8>)> {
        let mut reader = Reader(self.private);
        if reader.number()? != reader.number()? {
            return None;
        }
        let kind = reader.text()?.to_owned();
        match kind.as_str() {
            "ssh-ed25519" => {
                let public = reader.string()?.to_vec();
                let seed = reader.string()?.get(..32)?.to_vec();
                let der = pkcs8(&der::sequence(&[&der::known("1.3.101.112")]), &octets(&seed));
                Some((Public { kind, fields: vec![public] }, der))
            }
            "ssh-rsa" => {
                let mut numbers = Vec::new();
                for _ in 0..6 {
                    numbers.push(reader.string()?.to_vec());
                }
                let [n, e, d, iqmp, p, q] = numbers.as_slice() else { return None };
                let der = rsa(n, e, d, iqmp, p, q)?;
                Some((Public { kind, fields: vec![e.clone(), n.clone()] }, der))
            }
            _ => {
                let curve = reader.string()?.to_vec();
                let point = reader.string()?.to_vec();
                let secret = reader.string()?.to_vec();
                let public = Public { kind, fields: vec![curve, point] };
                let der = ec(&public, &secret)?;
                Some((public, der))
            }
        }
    }

    fn write(public: &Public, pkcs8: &[u8], check: [u8; 4]) -> Option<Vec<u8>> {
        let mut parts = der::only(pkcs8, der::SEQUENCE)?.items();
        parts.tagged(der::INTEGER)?;
        parts.tagged(der::SEQUENCE)?;
        let inner = parts.tagged(der::OCTETS)?.content;
        let mut private = Writer::default();
        private.0.extend(check);
        private.0.extend(check);
        private.string(&public.kind);
        match public.algo() {
            "ed25519" => {
                let seed = der::only(inner, der::OCTETS)?.content;
                let key = public.fields.first()?;
                private.string(key).string([seed, key].concat());
            }
            "rsa" => {
                let numbers: Vec<&[u8]> =
                    der::only(inner, der::SEQUENCE)?.items().map(der::Item::number).collect();
                let [_, n, e, d, p, q, _, _, iqmp] = numbers.as_slice() else { return None };
                for number in [n, e, d, iqmp, p, q] {
                    private.big(number);
                }
            }
            _ => {
                let mut key = der::only(inner, der::SEQUENCE)?.items();
                key.tagged(der::INTEGER)?;
                let secret = key.tagged(der::OCTETS)?.content;
                for field in &public.fields {
                    private.string(field);
                }
                private.big(secret);
            }
        }
        // The comment, and the padding: 1, 2, 3 …
        private.string("");
        for byte in (1..).take((8 - private.0.len() % 8) % 8) {
            private.0.push(byte);
        }
        let mut writer = Writer(MAGIC.to_vec());
        writer.string("none").string("none").string("").number(1);
        writer.string(public.blob()).string(private.0);
        Some(writer.0)
    }
}

fn octets(content: &[u8]) -> Vec<u8> {
    der::element(der::OCTETS, content)
}

fn pkcs8(algorithm: &[u8], key: &[u8]) -> Vec<u8> {
    der::sequence(&[&der::small(0), algorithm, &octets(key)])
}

/// OpenSSH leaves out what can be calculated.
fn rsa(n: &[u8], e: &[u8], d: &[u8], iqmp: &[u8], p: &[u8], q: &[u8]) -> Option<Vec<u8>> {
    let one = BigUint::from(1u8);
    let exponent = BigUint::from_bytes_be(d);
    let left = |prime: &[u8]| {
        let prime = BigUint::from_bytes_be(prime);
        (prime > one).then(|| (&exponent % (prime - &one)).to_bytes_be())
    };
    let (dp, dq) = (left(p)?, left(q)?);
    let numbers: Vec<Vec<u8>> =
        [n, e, d, p, q, &dp, &dq, iqmp].into_iter().map(der::integer).collect();
    let mut parts = vec![der::small(0)];
    parts.extend(numbers);
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    let algorithm = der::sequence(&[&der::known("1.2.840.113549.1.1.1"), &[5, 0]]);
    Some(pkcs8(&algorithm, &der::sequence(&parts)))
}

fn ec(public: &Public, secret: &[u8]) -> Option<Vec<u8>> {
    let spki: Spki = public.spki()?;
    let algorithm = der::only(&spki.der, der::SEQUENCE)?.items().next()?;
    let algorithm = der::element(algorithm.tag, algorithm.content);
    // The secret has the width of the curve; OpenSSH drops zeros before it and adds one.
    let width = usize::try_from(public.size()?).ok()?.div_ceil(8);
    let first = secret.iter().position(|byte| *byte != 0).unwrap_or(secret.len());
    let bare = secret.get(first..)?;
    let mut fixed = vec![0; width.checked_sub(bare.len())?];
    fixed.extend(bare);
    let point = der::element(der::BITS, &[&[0], public.fields.get(1)?.as_slice()].concat());
    let key =
        der::sequence(&[&der::small(1), &octets(&fixed), &der::element(der::context(1), &point)]);
    Some(pkcs8(&algorithm, &key))
}

/// Encrypts a key, or takes its encryption away.
fn change_passphrase(cx: &Cx, key: &[u8], old: Option<&str>, new: Option<&str>) -> Result<Vec<u8>> {
    if cx.host.which("ssh-keygen").is_none() {
        return Err(Error::Unavailable {
            function: "ssh_pki".into(),
            reason: "encrypted keys need the program ssh-keygen: is it installed?".into(),
        });
    }
    // The program asks for passphrases by running another one.
    let script = r#"umask 077; dir=$(mktemp -d) || exit 3; trap 'rm -rf "$dir"' EXIT
        cat >"$dir/key"
        cat >"$dir/ask" <<'ASK'
#!/bin/sh
case $1 in
*old*) printf '%s\n' "$HALITE_OLD" ;;
*) printf '%s\n' "$HALITE_NEW" ;;
esac
ASK
        chmod 700 "$dir/ask"
        SSH_ASKPASS="$dir/ask" SSH_ASKPASS_REQUIRE=force DISPLAY=none \
            ssh-keygen -q -p -f "$dir/key" >&2 </dev/null || exit 4
        cat "$dir/key""#;
    let mut command = Command::line(["sh", "-c", script]).query();
    command = command.env("HALITE_OLD", old.unwrap_or_default());
    command = command.env("HALITE_NEW", new.unwrap_or_default());
    let mut key = key.to_vec();
    // The program does not take a key whose last line has no end, as pillars often hold them.
    if !key.ends_with(b"\n") {
        key.push(b'\n');
    }
    command.stdin = Some(key);
    let output = cx.host.run(&command)?;
    if output.ok() && !output.stdout.is_empty() {
        return Ok(output.stdout);
    }
    match old {
        Some(_) => Err(Error::raised("InvalidPassword", BAD_PASSPHRASE)),
        None => Err(Error::failed(format!(
            "Could not encrypt the private key: {}",
            output.stderr_text().trim()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hashutil;

    /// Writes a key and reads it again; the numbers need not be a working key for that.
    fn check(public: &Public, der: &[u8]) {
        let blob = Container::write(public, der, [1, 2, 3, 4]).unwrap();
        let (own, again) = Container::read(&blob).unwrap().key().unwrap();
        assert_eq!(own, *public);
        assert_eq!(hashutil::hex(&again), hashutil::hex(der));
    }

    #[test]
    fn keys_go_there_and_back() {
        let ed = Public { kind: "ssh-ed25519".into(), fields: vec![vec![7; 32]] };
        let seed = octets(&[9; 32]);
        check(&ed, &pkcs8(&der::sequence(&[&der::known("1.3.101.112")]), &seed));
        // p = 61, q = 53: the example of every textbook.
        let key = rsa(&[0x0c, 0xa1], &[17], &[0x0a, 0xc1], &[38], &[61], &[53]).unwrap();
        let public = Public { kind: "ssh-rsa".into(), fields: vec![vec![17], vec![0x0c, 0xa1]] };
        check(&public, &key);
        let point = [&[4u8] as &[u8], &[5; 64]].concat();
        let ec_key = Public {
            kind: "ecdsa-sha2-nistp256".into(),
            fields: vec![b"nistp256".to_vec(), point],
        };
        let der = ec(&ec_key, &[0, 0x80, 1]).unwrap();
        check(&ec_key, &der);
    }

    #[test]
    fn what_is_cut_short_is_no_key() {
        let ed = Public { kind: "ssh-ed25519".into(), fields: vec![vec![7; 32]] };
        let der = pkcs8(&der::sequence(&[&der::known("1.3.101.112")]), &octets(&[9; 32]));
        let blob = Container::write(&ed, &der, [0; 4]).unwrap();
        for end in 0..blob.len() - 8 {
            assert!(Container::read(&blob[..end]).and_then(|read| read.key()).is_none(), "{end}");
        }
    }
}
