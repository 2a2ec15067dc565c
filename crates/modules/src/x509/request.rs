//! Certificate requests.

use halite_spec::{Args, Cx, Result};
use halite_value::{Dict, Value, entries};

use super::{
    certificate::seal,
    colons, der,
    extensions::{self, About, Extension},
    keys::{self, Private, Public},
    name::Name,
    source::{self, Encoding},
};
use crate::pki;

const KIND: &str = "CERTIFICATE REQUEST";
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

/// Reads a request, and how it was written.
pub fn load(bytes: &[u8]) -> Result<(Request, Encoding)> {
    let kinds = [KIND, "NEW CERTIFICATE REQUEST"];
    let what = "certificate signing request";
    source::single(bytes, &kinds, "CSRDeserializationError", what, Request::read)
}

/// What a request is made from, besides its subject and its extensions.
#[derive(Args)]
pub struct Wanted {
    /// The key it is for: a file or a text.
    private_key: Value,
    /// The key's passphrase.
    private_key_passphrase: Option<String>,
    /// The digest of the signature.
    #[default("sha256".into())]
    digest: String,
    /// `pem` or `der`.
    #[default("pem".into())]
    pub encoding: String,
}

impl Wanted {
    /// The digest of the signature: `algorithm` is its old name.
    fn digest(&self, given: &Dict) -> String {
        pki::text(given, "algorithm").unwrap_or_else(|| self.digest.clone())
    }

    /// Makes a request, without its signature, and the key to sign it with.
    pub fn build(&self, cx: &Cx, given: &Dict) -> Result<(Request, Private)> {
        let key = Private::load(cx, &self.private_key, self.private_key_passphrase.as_deref())?;
        Ok((Request::build(given, &key, &self.digest(given))?, key))
    }

    pub fn sign(&self, cx: &Cx, given: &Dict) -> Result<Request> {
        let (request, key) = self.build(cx, given)?;
        let der = seal(cx, &request.signed, &request.algorithm, &key, &self.digest(given))?;
        Ok(Request { der, ..request })
    }
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

    fn build(given: &Dict, key: &Private, digest: &str) -> Result<Self> {
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

    pub fn pem(&self) -> String {
        source::pem(KIND, &self.der)
    }

    pub fn encode(&self, encoding: Encoding) -> Vec<u8> {
        source::written(encoding, KIND, &self.der)
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
pub fn of(cx: &Cx, source: &Value) -> Result<Request> {
    Ok(load(&source::load(cx, source)?)?.0)
}
