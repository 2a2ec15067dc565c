//! Certificate requests.

use halite_spec::{Cx, Error, Result};
use halite_value::{Dict, entries};

use super::{
    certificate::seal,
    colons, der,
    extensions::{self, About, Extension},
    keys::{self, Private, Public},
    name::Name,
    source::{self, Encoding},
};

const EXTENSION_REQUEST: &str = "1.2.840.113549.1.9.14";

/// A certificate request, or one that lacks its signature yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub der: Vec<u8>,
    pub signed: Vec<u8>,
    pub algorithm: Vec<u8>,
    pub subject: Name,
    pub key: Public,
    pub extensions: Vec<Extension>,
}

/// Reads the DER of a request, and how it was written.
pub fn load(bytes: &[u8]) -> Result<(Vec<u8>, Encoding)> {
    let kinds = ["CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST"];
    let (class, what) = ("CSRDeserializationError", "certificate signing request");
    let (der, encoding) = source::single(bytes, &kinds, class, what)?;
    if Request::read(&der).is_none() {
        let form = if encoding == Encoding::Pem { "PEM" } else { "DER" };
        return Err(source::raised(class, &format!("Could not load {form}-encoded {what}.")));
    }
    Ok((der, encoding))
}

/// The digest of the signature: `algorithm` is its old name.
pub fn digest(given: &Dict, digest: &str) -> String {
    let old = given.get("algorithm").filter(|old| !old.is_null());
    old.map_or_else(|| digest.to_owned(), |old| old.to_str().to_string())
}

impl Request {
    pub fn read(der: &[u8]) -> Option<Self> {
        let mut parts = der::only(der, der::SEQUENCE)?.items();
        let signed = parts.tagged(der::SEQUENCE)?;
        let algorithm = parts.tagged(der::SEQUENCE)?.whole.to_vec();
        parts.tagged(der::BITS)?;
        let mut inner = signed.items();
        inner.tagged(der::INTEGER)?;
        let subject = Name { der: inner.tagged(der::SEQUENCE)?.whole.to_vec() };
        let key = Public::read(inner.tagged(der::SEQUENCE)?.whole)?;
        let attributes = inner.tagged(der::context(0));
        let wanted = attributes.into_iter().flat_map(der::Item::items).find_map(|attribute| {
            let mut parts = attribute.items();
            (parts.next()?.oid()? == EXTENSION_REQUEST).then_some(())?;
            parts.tagged(der::SET)?.items().next()
        });
        Some(Self {
            der: der.to_vec(),
            signed: signed.whole.to_vec(),
            algorithm,
            subject,
            key,
            extensions: wanted.map(extensions::read_all).unwrap_or_default(),
        })
    }

    /// Makes one, without its signature.
    pub fn build(given: &Dict, key: &Private, digest: &str) -> Result<Self> {
        let algorithm = key.signature_algorithm(digest)?;
        let subject = Name::given(given)?;
        let about = About { key: &key.public.der, signing_key: &key.public.der, signing: None };
        let extensions = extensions::given(given, &extensions::REQUEST, &about)?;
        let attributes = match extensions.is_empty() {
            true => Vec::new(),
            false => der::sequence(&[
                &der::known(EXTENSION_REQUEST),
                &der::element(der::SET, &extensions::write_all(&extensions)),
            ]),
        };
        let signed = der::sequence(&[
            &der::small(0),
            &subject.der,
            &key.public.der,
            &der::element(der::context(0), &attributes),
        ]);
        let key = key.public.clone();
        Ok(Self { der: Vec::new(), signed, algorithm, subject, key, extensions })
    }

    pub fn sign(mut self, cx: &Cx, key: &Private, digest: &str) -> Result<Self> {
        self.der = seal(cx, &self.signed, &self.algorithm, key, digest)?;
        Ok(self)
    }

    pub fn encode(&self, encoding: Encoding) -> Vec<u8> {
        match encoding {
            Encoding::Der => self.der.clone(),
            _ => source::pem("CERTIFICATE REQUEST", &self.der).into_bytes(),
        }
    }

    pub fn digest(&self) -> Option<&'static str> {
        keys::digest_of(&self.algorithm)
    }

    /// What users are shown.
    pub fn shown(&self) -> Dict {
        entries! {
            "key_size" => self.key.size(),
            "key_type" => self.key.algo(),
            "subject" => self.subject.to_dict(),
            "subject_hash" => self.subject.hash(),
            "subject_str" => self.subject.shown(),
            "public_key_hash" => colons(&extensions::key_identifier(&self.key.der)),
            "extensions" => extensions::shown(&self.extensions),
        }
    }
}

/// Reads the request of a source.
pub fn of(cx: &Cx, source: &halite_value::Value) -> Result<Request> {
    let (der, _) = load(&source::load(cx, source)?)?;
    Request::read(&der).ok_or_else(|| Error::failed("The request cannot be read"))
}
