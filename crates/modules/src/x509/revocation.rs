//! Revocation lists.

use halite_spec::{Args, Cx, Error, Result};
use halite_value::{Dict, Value, dict, entries};
use jiff::Timestamp;

use super::{
    certificate::{self, Certificate, seal},
    der,
    extensions::{self, About, Extension},
    keys::{self, Private},
    name::Name,
    old,
    source::{self, Encoding},
    stamp,
};
use crate::hashutil;

/// One certificate that counts no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revoked {
    pub serial: Vec<u8>,
    pub date: Timestamp,
    /// Whether the date was given, or is just now.
    pub dated: bool,
    pub extensions: Vec<Extension>,
}

impl Revoked {
    /// `AABB`
    pub fn number(&self) -> String {
        match self.serial.is_empty() {
            true => "00".into(),
            false => hashutil::hex(&self.serial).to_uppercase(),
        }
    }
}

/// A revocation list, or one that lacks its signature yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    pub der: Vec<u8>,
    pub signed: Vec<u8>,
    pub algorithm: Vec<u8>,
    pub issuer: Name,
    pub last_update: Timestamp,
    pub next_update: Option<Timestamp>,
    pub revoked: Vec<Revoked>,
    pub extensions: Vec<Extension>,
    pub signature: Vec<u8>,
}

/// Reads a list, and how it was written.
pub fn load(bytes: &[u8]) -> Result<(List, Encoding)> {
    let what = "certificate revocation list";
    source::single(bytes, &["X509 CRL"], "CRLDeserializationError", what, List::read)
}

/// What a list is made from, besides its key and what is revoked.
#[derive(Args)]
pub struct Wanted {
    /// The certificate that signs.
    #[default(Value::Null)]
    pub signing_cert: Value,
    /// The key's passphrase.
    signing_private_key_passphrase: Option<String>,
    /// List certificates that have ended, too.
    #[default(false)]
    include_expired: bool,
    /// How many days it counts; 100 unless said.
    pub days_valid: Option<i64>,
    /// The digest of the signature.
    #[default("sha256".into())]
    pub digest: String,
    /// `pem` or `der`.
    #[default("pem".into())]
    pub encoding: String,
    /// Extensions: `cRLNumber`, `authorityKeyIdentifier` … A state counts `cRLNumber: auto` up.
    pub extensions: Option<Dict>,
}

impl Wanted {
    /// The certificate that signs, if there is one.
    pub fn signing(&self, cx: &Cx) -> Result<Option<Certificate>> {
        match &self.signing_cert {
            Value::Null => Ok(None),
            source => Certificate::load(cx, source).map(Some),
        }
    }

    /// Makes a list, without its signature, and the key to sign it with.
    pub fn build(
        &self,
        cx: &Cx,
        signing_private_key: &Value,
        revoked: &[Value],
        extensions: &Dict,
    ) -> Result<(List, Private)> {
        let passphrase = self.signing_private_key_passphrase.as_deref();
        let key = Private::load(cx, signing_private_key, passphrase)?;
        Ok((List::build(cx, self, &key, revoked, extensions)?, key))
    }
}

fn revoked_of(cx: &Cx, given: &Value, include_expired: bool) -> Result<Option<Revoked>> {
    let Value::Dict(given) = given else {
        return Err(Error::invalid("An entry of `revoked` has to be a dictionary"));
    };
    let entry = old::entry(given);
    let part = |name: &str| entry.get(name).filter(|value| !value.is_null());
    let now = stamp::now(cx);
    let time = |value: Value| stamp::parse(&value.to_str());
    let mut end = part("not_after").map(time).transpose()?;
    let serial = match (part("serial_number"), part("certificate")) {
        (Some(number), _) => certificate::serial(&number)?,
        (None, Some(source)) => {
            let certificate = Certificate::load(cx, &source)?;
            end = end.or(Some(certificate.not_after));
            certificate.serial
        }
        (None, None) => return Err(Error::invalid("Need serial_number or certificate")),
    };
    if !include_expired && end.is_some_and(|end| end < now) {
        return Ok(None);
    }
    let date = part("revocation_date").map(time).transpose()?;
    let extensions = match part("extensions") {
        Some(Value::Dict(extensions)) => extensions::of_entry(&extensions)?,
        _ => Vec::new(),
    };
    Ok(Some(Revoked { serial, date: date.unwrap_or(now), dated: date.is_some(), extensions }))
}

impl List {
    pub fn read(der: &[u8]) -> Option<Self> {
        let mut parts = der::only(der, der::SEQUENCE)?.items();
        let signed = parts.tagged(der::SEQUENCE)?;
        let algorithm = parts.tagged(der::SEQUENCE)?.whole.to_vec();
        let signature = parts.tagged(der::BITS)?.content.get(1..)?.to_vec();
        let mut inner = signed.items();
        inner.tagged(der::INTEGER);
        inner.tagged(der::SEQUENCE)?;
        let issuer = Name { der: inner.tagged(der::SEQUENCE)?.whole.to_vec() };
        let last_update = stamp::read(inner.next()?)?;
        let next_update =
            inner.tagged(der::UTC_TIME).or_else(|| inner.tagged(der::GENERALIZED_TIME));
        let entries = inner.tagged(der::SEQUENCE);
        let revoked = entries.into_iter().flat_map(der::Item::items).filter_map(|entry| {
            let mut parts = entry.items();
            Some(Revoked {
                serial: parts.tagged(der::INTEGER)?.number().to_vec(),
                date: stamp::read(parts.next()?)?,
                dated: true,
                extensions: parts.next().map(extensions::read_all).unwrap_or_default(),
            })
        });
        let revoked = revoked.collect();
        let extensions = inner.tagged(der::context(0)).and_then(|all| all.items().next());
        Some(Self {
            der: der.to_vec(),
            signed: signed.whole.to_vec(),
            algorithm,
            issuer,
            last_update,
            next_update: next_update.and_then(stamp::read),
            revoked,
            extensions: extensions.map(extensions::read_all).unwrap_or_default(),
            signature,
        })
    }

    fn build(
        cx: &Cx,
        wanted: &Wanted,
        key: &Private,
        given: &[Value],
        wanted_extensions: &Dict,
    ) -> Result<Self> {
        let signing = wanted.signing(cx)?;
        let signing = signing.ok_or_else(|| Error::invalid("A CRL must have an issuer name"))?;
        if signing.key != key.public {
            return Err(Error::invalid(
                "Signing private key does not match the certificate's public key",
            ));
        }
        let algorithm = key.signature_algorithm(&wanted.digest)?;
        let now = stamp::now(cx);
        let next = stamp::after_days(now, wanted.days_valid.unwrap_or(100))?;
        if next < now {
            return Err(Error::invalid("The next update date must be after the last update date."));
        }
        let mut revoked = Vec::new();
        for given in given {
            revoked.extend(revoked_of(cx, given, wanted.include_expired)?);
        }
        for (name, _) in wanted_extensions.entries() {
            let name = name.to_str();
            if !extensions::LIST.contains(&name.as_str()) {
                tracing::warn!("Ignoring invalid CRL extension: {name}");
            }
        }
        let about =
            About { key: &key.public.der, signing_key: &key.public.der, signing: Some(&signing) };
        let extensions = extensions::given(wanted_extensions, &extensions::LIST, &about)?;
        let entries: Vec<Vec<u8>> = revoked
            .iter()
            .map(|entry| {
                let extensions = match entry.extensions.is_empty() {
                    true => Vec::new(),
                    false => extensions::write_all(&entry.extensions),
                };
                der::sequence(&[
                    &der::integer(&entry.serial),
                    &stamp::write(entry.date),
                    &extensions,
                ])
            })
            .collect();
        let entries = match entries.is_empty() {
            true => Vec::new(),
            false => der::element(der::SEQUENCE, &entries.concat()),
        };
        let written = match extensions.is_empty() {
            true => Vec::new(),
            false => der::element(der::context(0), &extensions::write_all(&extensions)),
        };
        let signed = der::sequence(&[
            &der::small(1),
            &algorithm,
            &signing.subject.der,
            &stamp::write(now),
            &stamp::write(next),
            &entries,
            &written,
        ]);
        Ok(Self {
            der: Vec::new(),
            signed,
            algorithm,
            issuer: signing.subject.clone(),
            last_update: now,
            next_update: Some(next),
            revoked,
            extensions,
            signature: Vec::new(),
        })
    }

    pub fn sign(mut self, cx: &Cx, key: &Private, digest: &str) -> Result<Self> {
        self.der = seal(cx, &self.signed, &self.algorithm, key, digest)?;
        Ok(self)
    }

    pub fn encode(&self, encoding: Encoding) -> Vec<u8> {
        source::written(encoding, "X509 CRL", &self.der)
    }

    pub fn digest(&self) -> Option<&'static str> {
        keys::digest_of(&self.algorithm)
    }

    pub fn verify(&self, cx: &Cx, signing: &Certificate) -> Result<bool> {
        keys::verify(cx, &signing.key, &self.algorithm, &self.signature, &self.signed)
    }

    /// What users are shown.
    pub fn shown(&self) -> Dict {
        let revoked = Dict::new();
        for entry in &self.revoked {
            let shown = dict! {
                "revocation_date" => stamp::shown(entry.date),
                "extensions" => extensions::shown_of_entry(&entry.extensions),
            };
            revoked.insert(entry.number(), shown);
        }
        entries! {
            "issuer" => self.issuer.to_dict(),
            "last_update" => stamp::shown(self.last_update),
            "next_update" => self.next_update.map(stamp::shown),
            "revoked_certificates" => revoked,
            "extensions" => extensions::shown(&self.extensions),
            "signature_algorithm" => keys::algorithm_shown(&self.algorithm),
        }
    }
}
