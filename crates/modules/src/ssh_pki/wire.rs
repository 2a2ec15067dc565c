//! OpenSSH's way of writing data, public keys and certificates.
//!
//! Everything is a sequence of strings with a length before them, and numbers of fixed width. A
//! certificate is a public key with further fields and a signature over all of it. Nothing here
//! runs a program.

use crate::{
    hashutil,
    x509::{
        der::{self, Item},
        keys::Public as Spki,
    },
};

const CERTIFICATE: &str = "-cert-v01@openssh.com";

/// Writes.
#[derive(Clone, Debug, Default)]
pub struct Writer(pub Vec<u8>);

impl Writer {
    pub fn number(&mut self, number: u32) -> &mut Self {
        self.0.extend(number.to_be_bytes());
        self
    }

    pub fn long(&mut self, number: u64) -> &mut Self {
        self.0.extend(number.to_be_bytes());
        self
    }

    pub fn string(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let bytes = bytes.as_ref();
        // No field comes near 4 GiB: they are read from files that fit into memory many times.
        self.number(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        self.0.extend(bytes);
        self
    }

    /// A number of any size, without a sign.
    pub fn big(&mut self, bytes: &[u8]) -> &mut Self {
        let first = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
        let bytes = bytes.get(first..).unwrap_or_default();
        match bytes.first() {
            Some(top) if *top >= 0x80 => self.string([&[0], bytes].concat()),
            _ => self.string(bytes),
        }
    }
}

/// Reads; `None` where the data ends too early.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    pub fn number(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    pub fn long(&mut self) -> Option<u64> {
        Some(u64::from_be_bytes(self.take(8)?.try_into().ok()?))
    }

    pub fn string(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(length as usize)
    }

    pub fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.string()?).ok()
    }

    /// The strings up to the end.
    fn strings(mut self) -> Option<Vec<&'a [u8]>> {
        let mut all = Vec::new();
        while !self.0.is_empty() {
            all.push(self.string()?);
        }
        Some(all)
    }
}

/// A public key, as OpenSSH writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Public {
    /// `ssh-ed25519`
    pub kind: String,
    /// The fields after the kind.
    pub fields: Vec<Vec<u8>>,
}

/// How many fields a key of that kind has.
fn field_count(kind: &str) -> Option<usize> {
    match kind {
        "ssh-rsa" => Some(2),
        "ssh-ed25519" => Some(1),
        "ecdsa-sha2-nistp256" | "ecdsa-sha2-nistp384" | "ecdsa-sha2-nistp521" => Some(2),
        _ => None,
    }
}

/// Curves: OpenSSH's name, the object's number, bits.
const CURVES: [(&str, &str, i64); 3] = [
    ("nistp256", "1.2.840.10045.3.1.7", 256),
    ("nistp384", "1.3.132.0.34", 384),
    ("nistp521", "1.3.132.0.35", 521),
];

const RSA: &str = "1.2.840.113549.1.1.1";
const EC: &str = "1.2.840.10045.2.1";
const ED25519: &str = "1.3.101.112";

impl Public {
    fn read_fields(kind: &str, reader: &mut Reader) -> Option<Self> {
        let mut fields = Vec::new();
        for _ in 0..field_count(kind)? {
            fields.push(reader.string()?.to_vec());
        }
        Some(Self { kind: kind.to_owned(), fields })
    }

    /// Reads the data that stands as base64 in a `.pub` file.
    pub fn read(blob: &[u8]) -> Option<Self> {
        let mut reader = Reader(blob);
        let kind = reader.text()?.to_owned();
        let key = Self::read_fields(&kind, &mut reader)?;
        reader.0.is_empty().then_some(key)
    }

    fn write_fields(&self, writer: &mut Writer) {
        for field in &self.fields {
            writer.string(field);
        }
    }

    pub fn blob(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.string(&self.kind);
        self.write_fields(&mut writer);
        writer.0
    }

    /// `ssh-ed25519 AAAA…`
    pub fn line(&self) -> String {
        format!("{} {}", self.kind, hashutil::base64(&self.blob()))
    }

    /// `rsa`, `ec` or `ed25519`.
    pub fn algo(&self) -> &'static str {
        match self.kind.as_str() {
            "ssh-rsa" => "rsa",
            "ssh-ed25519" => "ed25519",
            _ => "ec",
        }
    }

    /// In bits; `None` where there is but one size.
    pub fn size(&self) -> Option<i64> {
        match self.algo() {
            "rsa" => {
                let modulus = self.fields.get(1)?;
                let first = modulus.iter().position(|byte| *byte != 0)?;
                let top = modulus.get(first)?.leading_zeros();
                i64::try_from((modulus.len() - first) * 8).ok().map(|bits| bits - i64::from(top))
            }
            "ec" => self.curve().map(|(_, _, bits)| bits),
            _ => None,
        }
    }

    fn curve(&self) -> Option<(&'static str, &'static str, i64)> {
        CURVES.iter().find(|(name, ..)| self.kind.ends_with(name)).copied()
    }

    /// The fingerprints users compare: `{sha256, md5}`.
    pub fn fingerprints(&self) -> (String, String) {
        let blob = self.blob();
        let digits =
            |kind: hashutil::Kind| crate::x509::from_hex(&kind.of(&blob)).unwrap_or_default();
        let sha256 = hashutil::base64(&digits(hashutil::Kind::Sha256));
        let md5 = crate::x509::colons(&digits(hashutil::Kind::Md5)).to_lowercase();
        (sha256, md5)
    }

    /// The key as certificates of the web have it, for the program that checks signatures.
    pub fn spki(&self) -> Option<Spki> {
        let bits = |content: &[u8]| der::element(der::BITS, &[&[0], content].concat());
        let field = |index: usize| self.fields.get(index).map(Vec::as_slice);
        let (algorithm, key) = match self.algo() {
            "rsa" => {
                let key = der::sequence(&[&der::integer(field(1)?), &der::integer(field(0)?)]);
                (der::sequence(&[&der::known(RSA), &[5, 0]]), bits(&key))
            }
            "ec" => {
                let number = self.curve()?.1;
                (der::sequence(&[&der::known(EC), &der::known(number)]), bits(field(1)?))
            }
            _ => (der::sequence(&[&der::known(ED25519)]), bits(field(0)?)),
        };
        Spki::read(&der::sequence(&[&algorithm, &key]))
    }

    /// The other way round.
    pub fn of_spki(key: &Spki) -> Option<Self> {
        let mut parts = der::only(&key.der, der::SEQUENCE)?.items();
        let mut algorithm = parts.next()?.items();
        let number = algorithm.next()?.oid()?;
        let bits = parts.tagged(der::BITS)?.content.get(1..)?;
        let (kind, fields) = match number.as_str() {
            RSA => {
                let mut numbers = der::only(bits, der::SEQUENCE)?.items();
                let (modulus, exponent) = (numbers.next()?, numbers.next()?);
                let big = |item: Item| {
                    let mut writer = Writer::default();
                    writer.big(item.number());
                    writer.0.split_off(4)
                };
                ("ssh-rsa".to_owned(), vec![big(exponent), big(modulus)])
            }
            EC => {
                let number = algorithm.next()?.oid()?;
                let (name, ..) = CURVES.iter().find(|(_, own, _)| *own == number)?;
                (format!("ecdsa-sha2-{name}"), vec![name.as_bytes().to_vec(), bits.to_vec()])
            }
            ED25519 => ("ssh-ed25519".to_owned(), vec![bits.to_vec()]),
            _ => return None,
        };
        Some(Self { kind, fields })
    }
}

/// What a line of a `.pub` file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    Key(Public),
    Certificate(Box<Certificate>),
}

impl Identity {
    /// Reads `kind base64 comment`.
    pub fn read(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let (kind, data) = (words.next()?, words.next()?);
        let blob = hashutil::from_base64(data.as_bytes()).ok()?;
        match kind.strip_suffix(CERTIFICATE) {
            Some(_) => Certificate::read(&blob).map(Box::new).map(Self::Certificate),
            None => Public::read(&blob).filter(|key| key.kind == kind).map(Self::Key),
        }
    }
}

/// What a certificate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum For {
    User = 1,
    Host = 2,
}

impl For {
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Host => "host",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        [Self::User, Self::Host].into_iter().find(|own| own.name() == name)
    }
}

/// Options and extensions: a name, and what it is set to unless it says all by itself.
pub type Options = Vec<(String, Option<String>)>;

/// A certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    pub key: Public,
    pub nonce: Vec<u8>,
    pub serial: u64,
    pub kind: For,
    pub key_id: String,
    /// Empty: for everybody.
    pub principals: Vec<String>,
    /// Seconds since 1970.
    pub after: u64,
    pub before: u64,
    pub critical: Options,
    pub extensions: Options,
    pub signer: Public,
    pub signature: Vec<u8>,
}

impl Certificate {
    /// What is signed.
    pub fn body(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.string(format!("{}{CERTIFICATE}", self.key.kind)).string(&self.nonce);
        self.key.write_fields(&mut writer);
        let mut principals = Writer::default();
        for name in &self.principals {
            principals.string(name);
        }
        writer
            .long(self.serial)
            .number(self.kind as u32)
            .string(&self.key_id)
            .string(principals.0)
            .long(self.after)
            .long(self.before)
            .string(packed(&self.critical))
            .string(packed(&self.extensions))
            .string("")
            .string(self.signer.blob());
        writer.0
    }

    pub fn line(&self) -> String {
        let mut writer = Writer(self.body());
        writer.string(&self.signature);
        format!("{}{CERTIFICATE} {}", self.key.kind, hashutil::base64(&writer.0))
    }

    pub fn read(blob: &[u8]) -> Option<Self> {
        let mut reader = Reader(blob);
        let kind = reader.text()?.strip_suffix(CERTIFICATE)?.to_owned();
        let nonce = reader.string()?.to_vec();
        let key = Public::read_fields(&kind, &mut reader)?;
        let serial = reader.long()?;
        let made_for = match reader.number()? {
            1 => For::User,
            2 => For::Host,
            _ => return None,
        };
        let key_id = String::from_utf8_lossy(reader.string()?).into_owned();
        let names = Reader(reader.string()?).strings()?;
        let principals =
            names.into_iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        let (after, before) = (reader.long()?, reader.long()?);
        let (critical, extensions) = (unpacked(reader.string()?)?, unpacked(reader.string()?)?);
        reader.string()?;
        let signer = Public::read(reader.string()?)?;
        let signature = reader.string()?.to_vec();
        reader.0.is_empty().then_some(Self {
            key,
            nonce,
            serial,
            kind: made_for,
            key_id,
            principals,
            after,
            before,
            critical,
            extensions,
            signer,
            signature,
        })
    }
}

/// Options in the order of their names, as the format wants them.
fn packed(options: &Options) -> Vec<u8> {
    let mut sorted: Vec<_> = options.iter().collect();
    sorted.sort_by(|one, other| one.0.cmp(&other.0));
    let mut writer = Writer::default();
    for (name, value) in sorted {
        let mut inner = Writer::default();
        if let Some(value) = value {
            inner.string(value);
        }
        writer.string(name).string(inner.0);
    }
    writer.0
}

fn unpacked(bytes: &[u8]) -> Option<Options> {
    let strings = Reader(bytes).strings()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let pairs = strings.chunks_exact(2).map(|pair| match pair {
        [name, []] => Some((text(name), None)),
        [name, value] => Some((text(name), Some(text(Reader(value).string()?)))),
        _ => None,
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ed25519(byte: u8) -> Public {
        Public { kind: "ssh-ed25519".into(), fields: vec![vec![byte; 32]] }
    }

    #[test]
    fn public_keys_go_there_and_back() {
        let key = ed25519(7);
        let line = key.line();
        assert!(line.starts_with("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI"));
        assert_eq!(Identity::read(&format!("{line} me@here\n")), Some(Identity::Key(key.clone())));
        assert_eq!(Public::of_spki(&key.spki().unwrap()), Some(key));
        let rsa = Public { kind: "ssh-rsa".into(), fields: vec![vec![1, 0, 1], vec![0, 0x80, 1]] };
        assert_eq!(Public::of_spki(&rsa.spki().unwrap()), Some(rsa.clone()));
        assert_eq!((rsa.algo(), rsa.size()), ("rsa", Some(16)));
        let point = [&[4u8] as &[u8], &[9; 96]].concat();
        let ec = Public {
            kind: "ecdsa-sha2-nistp384".into(),
            fields: vec![b"nistp384".to_vec(), point],
        };
        assert_eq!(Public::of_spki(&ec.spki().unwrap()), Some(ec.clone()));
        assert_eq!(ec.size(), Some(384));
    }

    #[test]
    fn certificates_go_there_and_back() {
        let certificate = Certificate {
            key: ed25519(1),
            nonce: vec![3; 32],
            serial: 255,
            kind: For::Host,
            key_id: "é".into(),
            principals: vec!["b".into(), "a,b".into()],
            after: 1,
            before: 2,
            critical: vec![("force-command".into(), Some("id".into()))],
            extensions: vec![("a".into(), None), ("b".into(), Some(String::new()))],
            signer: ed25519(2),
            signature: vec![9],
        };
        let line = certificate.line();
        let read = Identity::read(&line);
        assert_eq!(read, Some(Identity::Certificate(Box::new(certificate))));
    }

    #[test]
    fn what_is_cut_short_is_no_key() {
        let blob = ed25519(7).blob();
        for end in 0..blob.len() {
            assert_eq!(Public::read(&blob[..end]), None, "{end}");
        }
        assert_eq!(Identity::read("ssh-rsa AAAA"), None);
        assert_eq!(Identity::read(""), None);
        // A length beyond the end, and one beyond any memory.
        assert_eq!(Public::read(&[0xff, 0xff, 0xff, 0xff, 1]), None);
    }
}
