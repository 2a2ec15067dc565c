//! Certificates: read from DER, and made from what trees say of them.
//!
//! A certificate is first built without its signature ([`Builder::build`]); that is all a state
//! needs for comparing. Signing is a step of its own.

use halite_spec::{Cx, Error, Result};
use halite_value::{Dict, Value, dict};
use jiff::Timestamp;

use super::{
    colons, der,
    extensions::{self, About, Extension},
    from_hex,
    keys::{self, Private, Public},
    name::Name,
    request::{self, Request},
    source, stamp,
};
use crate::{hashutil, pki, random};

/// A certificate, or one that lacks its signature yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The whole of it.
    pub der: Vec<u8>,
    /// The part that is signed.
    pub signed: Vec<u8>,
    pub version: i64,
    /// Without leading zeros.
    pub serial: Vec<u8>,
    pub algorithm: Vec<u8>,
    pub issuer: Name,
    pub not_before: Timestamp,
    pub not_after: Timestamp,
    pub subject: Name,
    pub key: Public,
    pub extensions: Vec<Extension>,
    pub signature: Vec<u8>,
}

impl Certificate {
    pub fn read(der: &[u8]) -> Option<Self> {
        let mut parts = der::only(der, der::SEQUENCE)?.items();
        let signed = parts.tagged(der::SEQUENCE)?;
        let algorithm = parts.tagged(der::SEQUENCE)?.whole.to_vec();
        let signature = parts.tagged(der::BITS)?.content.get(1..)?.to_vec();
        let mut inner = signed.items();
        let version = inner.tagged(der::context(0));
        let version = version.and_then(|version| version.items().next()?.small()).unwrap_or(0) + 1;
        let serial = inner.tagged(der::INTEGER)?.number().to_vec();
        inner.tagged(der::SEQUENCE)?;
        let issuer = Name { der: inner.tagged(der::SEQUENCE)?.whole.to_vec() };
        let mut validity = inner.tagged(der::SEQUENCE)?.items();
        let not_before = stamp::read(validity.next()?)?;
        let not_after = stamp::read(validity.next()?)?;
        let subject = Name { der: inner.tagged(der::SEQUENCE)?.whole.to_vec() };
        let key = Public::read(inner.tagged(der::SEQUENCE)?.whole)?;
        let extensions = inner.find(|item| item.tag == der::context(3));
        let extensions = extensions.and_then(|item| item.items().next());
        let extensions = extensions.map(extensions::read_all).unwrap_or_default();
        Some(Self {
            der: der.to_vec(),
            signed: signed.whole.to_vec(),
            version,
            serial,
            algorithm,
            issuer,
            not_before,
            not_after,
            subject,
            key,
            extensions,
            signature,
        })
    }

    /// Reads the first certificate of a source.
    pub fn load(cx: &Cx, source: &Value) -> Result<Self> {
        let found = source::certificates(cx, &source::load(cx, source)?, None)?;
        let first = found.certificates.first().and_then(|der| Self::read(der));
        first.ok_or_else(|| Error::failed("Could not load PEM-encoded certificate."))
    }

    pub fn extension(&self, oid: &str) -> Option<&Extension> {
        self.extensions.iter().find(|extension| extension.oid == oid)
    }

    pub fn ends_within(&self, now: Timestamp, days: i64) -> Result<bool> {
        Ok(self.not_after <= stamp::after_days(now, days)?)
    }

    pub fn digest(&self) -> Option<&'static str> {
        keys::digest_of(&self.algorithm)
    }

    /// What users are shown.
    pub fn shown(&self) -> Dict {
        let print = |kind: &str| {
            let hex = hashutil::Kind::named(kind).map(|kind| kind.of(&self.der));
            colons(&from_hex(&hex.unwrap_or_default()).unwrap_or_default())
        };
        halite_value::entries! {
            "version" => self.version,
            "key_size" => self.key.size(),
            "key_type" => self.key.algo(),
            "serial_number" => colons(&self.serial),
            "fingerprints" => dict! {
                "sha1" => print("sha1"), "sha256" => print("sha256"), "md5" => print("md5"),
            },
            "subject" => self.subject.to_dict(),
            "subject_hash" => self.subject.hash(),
            "subject_str" => self.subject.shown(),
            "issuer" => self.issuer.to_dict(),
            "issuer_hash" => self.issuer.hash(),
            "issuer_str" => self.issuer.shown(),
            "not_before" => stamp::shown(self.not_before),
            "not_after" => stamp::shown(self.not_after),
            "public_key" => self.key.pem(),
            "extensions" => extensions::shown(&self.extensions),
            "signature_algorithm" => keys::algorithm_shown(&self.algorithm),
        }
    }

    /// Signs it: the same certificate with a signature.
    pub fn sign(self, cx: &Cx, key: &Private, digest: &str) -> Result<Self> {
        let der = seal(cx, &self.signed, &self.algorithm, key, digest)?;
        Self::read(&der).ok_or_else(|| Error::failed("The certificate made cannot be read"))
    }
}

/// Puts a signature to something.
pub fn seal(
    cx: &Cx,
    signed: &[u8],
    algorithm: &[u8],
    key: &Private,
    digest: &str,
) -> Result<Vec<u8>> {
    let signature = key.sign(cx, digest, signed)?;
    let bits = der::element(der::BITS, &[&[0], signature.as_slice()].concat());
    Ok(der::sequence(&[signed, algorithm, &bits]))
}

/// Reads a serial number: `AA:BB`, or a number. Without leading zeros.
pub fn serial(value: &Value) -> Result<Vec<u8>> {
    let wrong = || Error::failed(format!("Could not parse serial number {}", value.to_str()));
    let bytes = match value {
        Value::Int(number) => u64::try_from(*number)
            .map_err(|_| Error::invalid("Negative integers are not supported"))?
            .to_be_bytes()
            .to_vec(),
        _ => {
            let digits = value.to_str().replace(':', "");
            let digits = if digits.len() % 2 == 1 { format!("0{digits}") } else { digits };
            from_hex(&digits).filter(|bytes| !bytes.is_empty()).ok_or_else(wrong)?
        }
    };
    let first = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
    Ok(bytes.get(first..).unwrap_or_default().to_vec())
}

fn random_serial(cx: &Cx) -> Result<Vec<u8>> {
    let mut bytes = random::bytes(cx, 20)?;
    if let Some(top) = bytes.first_mut() {
        *top &= 0x7f;
    }
    serial(&hashutil::hex(&bytes).into())
}

/// What a certificate is made from: the arguments of the functions and states.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    pub given: Dict,
}

/// A certificate made, and the key to sign it with.
pub struct Built {
    pub certificate: Certificate,
    pub signer: Private,
    pub digest: String,
}

impl Builder {
    fn value(&self, name: &str) -> Option<Value> {
        pki::set(&self.given, name)
    }

    fn text(&self, name: &str) -> Option<String> {
        pki::text(&self.given, name)
    }

    fn digest(&self) -> String {
        let digest = self.text("algorithm").or_else(|| self.text("digest"));
        digest.unwrap_or_else(|| "sha256".into())
    }

    fn time(&self, name: &str) -> Result<Option<Timestamp>> {
        self.text(name).map(|text| stamp::parse(&text)).transpose()
    }

    /// The key that is certified.
    fn key(&self, cx: &Cx) -> Result<Option<Public>> {
        if let Some(key) = self.value("public_key") {
            return keys::public_only(&source::load(cx, &key)?).map(Some);
        }
        if let Some(key) = pki::key(cx, &self.given, "private_key", Private::load)? {
            return Ok(Some(key.public));
        }
        Ok(self.request(cx)?.map(|request| request.key))
    }

    fn request(&self, cx: &Cx) -> Result<Option<Request>> {
        self.value("csr").map(|source| request::of(cx, &source)).transpose()
    }

    /// Makes the certificate, without its signature.
    pub fn build(&self, cx: &Cx) -> Result<Built> {
        let signer = pki::key(cx, &self.given, "signing_private_key", Private::load)?
            .ok_or_else(|| Error::invalid(pki::NO_SIGNER))?;
        let signing =
            self.value("signing_cert").map(|source| Certificate::load(cx, &source)).transpose()?;
        let key = match &signing {
            None => signer.public.clone(),
            Some(signing) if signing.key != signer.public => {
                return Err(Error::invalid(
                    "Signing private key does not match the certificate's public key",
                ));
            }
            Some(_) => self.key(cx)?.ok_or_else(|| {
                Error::invalid(
                    "This certificate is not self-signed (signing_cert is set) and thus needs \
                     public_key, private_key or csr to derive public key to sign",
                )
            })?,
        };
        let digest = self.digest();
        let algorithm = signer.signature_algorithm(&digest)?;
        let now = stamp::now(cx);
        let days = match self.value("days_valid") {
            Some(days) => days.to_int().ok_or_else(|| {
                Error::invalid(format!("days_valid has to be a number, not {}", days.repr()))
            })?,
            None => 365,
        };
        let not_before = self.time("not_before")?.unwrap_or(now);
        let not_after = match self.time("not_after")? {
            Some(time) => time,
            None => stamp::after_days(now, days)?,
        };
        if not_after < not_before {
            return Err(Error::invalid(
                "The not valid after date must be after the not valid before date.",
            ));
        }
        let serial = match self.value("serial_number") {
            Some(number) => serial(&number)?,
            None => random_serial(cx)?,
        };
        let subject = Name::given(&self.given)?;
        let issuer = signing.as_ref().map_or(&subject, |signing| &signing.subject).clone();
        let about =
            About { key: &key.der, signing_key: &signer.public.der, signing: signing.as_ref() };
        let mut all = extensions::given(&self.given, &extensions::CERTIFICATE, &about)?;
        // What the request asks for is granted where nothing else is said.
        for asked in self.request(cx)?.into_iter().flat_map(|request| request.extensions) {
            let grantable =
                asked.name().is_some_and(|name| !extensions::SIGNERS_OWN.contains(&name));
            if grantable && !all.iter().any(|own| own.oid == asked.oid) {
                all.push(asked);
            }
        }
        let written = match all.is_empty() {
            true => Vec::new(),
            false => der::element(der::context(3), &extensions::write_all(&all)),
        };
        let signed = der::sequence(&[
            &der::element(der::context(0), &der::small(2)),
            &der::integer(&serial),
            &algorithm,
            &issuer.der,
            &der::sequence(&[&stamp::write(not_before), &stamp::write(not_after)]),
            &subject.der,
            &key.der,
            &written,
        ]);
        let certificate = Certificate {
            der: Vec::new(),
            signed,
            version: 3,
            serial,
            algorithm,
            issuer,
            not_before,
            not_after,
            subject,
            key,
            extensions: all,
            signature: Vec::new(),
        };
        Ok(Built { certificate, signer, digest })
    }
}

impl Built {
    pub fn sign(self, cx: &Cx) -> Result<Certificate> {
        self.certificate.sign(cx, &self.signer, &self.digest)
    }
}

/// Tells names of extensions that differ: `added`, `changed`, `removed`; nothing if none do.
pub fn extension_changes(own: &[Extension], wanted: &[Extension]) -> Option<Dict> {
    // Salt calls these two otherwise here.
    let name = |one: &Extension| match one.name() {
        Some("tlsfeature") => "TLSFeature".to_owned(),
        Some("noCheck") => "OCSPNoCheck".to_owned(),
        Some(name) => name.to_owned(),
        None => one.oid.clone(),
    };
    pki::differences(own, wanted, |one| one.oid.clone(), |old, new| old != new, name)
}
