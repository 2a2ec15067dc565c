//! `x509`: private keys, requests, certificates and revocation lists kept in files.
//!
//! What has to be made is decided here; the rest is [`pki`](crate::pki)'s. What is there is compared
//! with what the arguments would make, before it is signed, so every extension counts.

use std::path::Path;

use halite_modules::{
    pki,
    x509::{
        self, CERTIFICATE_ENCODINGS, PLAIN_ENCODINGS, Packing, appended,
        certificate::{Builder, Built, Certificate},
        extension_changes,
        keys::{NewKey, Private, Public, public_of, verify},
        old, request,
        revocation::{self, List, Revoked},
        source::{self, Encoding},
        stamp,
    },
};
use halite_spec::{Applied, Args, Cx, Error, Plan, Rest, Result, State, states};
use halite_value::{Dict, Value};

use crate::{
    file::Managed,
    pki::{Kept, Made, Seen, Target, managed},
};

states! {
    /// Keep private keys, requests, certificates and revocation lists in files.
    "x509": "certificate_managed" => Kept<CertificateManaged>,
    "crl_managed" => Kept<CrlManaged>,
    "csr_managed" => Kept<CsrManaged>,
    "pem_managed" => PemManaged,
    "private_key_managed" => Kept<PrivateKeyManaged>,
}

/// Make sure that a file holds a private key.
#[derive(Args)]
pub struct PrivateKeyManaged {
    /// The file.
    name: String,
    #[group]
    wanted: NewKey,
    /// Make a new key each time.
    #[default(false)]
    new: bool,
    /// Write over a file that holds no key, or one whose passphrase differs.
    #[default(false)]
    overwrite: bool,
    /// Encrypt a PKCS 12 so that old programs can read it.
    #[default(false)]
    pkcs12_encryption_compat: bool,
    /// Arguments of `file.managed`, and the old names `bits` and `cipher`.
    rest: Rest,
}

impl PrivateKeyManaged {
    /// Why a key cannot be opened, and what is done about it.
    fn unopened(&self, error: &Error, changes: &Dict) -> Result<()> {
        let (passphrase, text) = match error.class() {
            "MissingPassword" => (
                true,
                "The existing file is encrypted. Pass overwrite: true to force regeneration \
                 without passphrase",
            ),
            "InvalidPassword" => (
                true,
                "The provided passphrase cannot decrypt the private key. Pass overwrite: true to \
                 force regeneration",
            ),
            _ => (
                false,
                "The existing file does not seem to be a private key formatted as DER, PEM or \
                 embedded in PKCS12. Pass overwrite: true to force regeneration",
            ),
        };
        if !self.overwrite {
            return Err(Error::failed(text));
        }
        if passphrase {
            changes.insert("passphrase", true);
        }
        changes.insert("created", self.name.as_str());
        Ok(())
    }
}

impl Made for PrivateKeyManaged {
    fn target(&self) -> Target<'_> {
        Target { mode: Some("0400"), ..Target::of("private key", &self.name, &self.rest) }
    }

    fn warn(&self) {
        old::key(&self.rest.kwargs);
    }

    fn compare(&self, cx: &Cx, own: &[u8]) -> Result<Seen> {
        let name = self.name.as_str();
        let changes = Dict::new();
        // What is replaced anyway need not be readable.
        if self.new {
            changes.insert("replaced", name);
            return Ok(Seen::of(changes, false));
        }
        let mut opened = Private::open(cx, own, self.wanted.passphrase.as_deref());
        if matches!(&opened, Err(error) if error.class() == "SuperfluousPassword") {
            changes.insert("passphrase", true);
            opened = Private::open(cx, own, None);
        }
        match opened {
            Err(error @ Error::Raised { .. }) => self.unopened(&error, &changes)?,
            Err(error) => return Err(error),
            Ok(own) => {
                if own.public.algo() != self.wanted.algo {
                    changes.insert("algo", self.wanted.algo.as_str());
                } else if own.public.size().map(Value::from).unwrap_or_default()
                    != self.wanted.size(&self.rest)
                {
                    changes.insert("keysize", self.wanted.size(&self.rest));
                }
                if own.encoding.name() != self.wanted.encoding {
                    changes.insert("encoding", self.wanted.encoding.as_str());
                }
            }
        }
        Ok(Seen::of(changes, false))
    }

    fn make(&self, cx: &Cx, seen: &Seen) -> Result<(Vec<u8>, Encoding)> {
        // Another form does not make another key.
        let own = match seen.only(&["encoding", "passphrase"]) {
            true => cx.host.read_if_there(Path::new(&self.name))?,
            false => None,
        };
        let key = match own {
            None => self.wanted.make(cx, &self.rest)?,
            Some(own) => Private::open(cx, &own, self.wanted.passphrase.as_deref())
                .or_else(|_| Private::open(cx, &own, None))?,
        };
        self.wanted.encode(cx, &key, self.pkcs12_encryption_compat)
    }
}

/// Make sure that a file holds a certificate that is as asked and does not end soon.
#[derive(Args)]
pub struct CertificateManaged {
    /// The file.
    name: String,
    /// Make a new one when the old one ends within these days; 90 unless said.
    days_remaining: Option<i64>,
    /// The minion that signs; it is asked through the master.
    ca_server: Option<String>,
    /// The name of a set of arguments in `x509_signing_policies`, which win over those given.
    signing_policy: Option<String>,
    /// `pem`, `der`, `pkcs7_pem`, `pkcs7_der` or `pkcs12`.
    #[default("pem".into())]
    encoding: String,
    /// Certificates that follow in the file: files or texts.
    #[default(Value::Null)]
    append_certs: Value,
    /// The digest of the signature.
    #[default("sha256".into())]
    digest: Value,
    /// The key that signs: a file or a text.
    #[default(Value::Null)]
    signing_private_key: Value,
    /// That key's passphrase.
    #[default(Value::Null)]
    signing_private_key_passphrase: Value,
    /// The certificate that signs; none for one that signs itself.
    #[default(Value::Null)]
    signing_cert: Value,
    /// The key to certify.
    #[default(Value::Null)]
    public_key: Value,
    /// The key to certify, as private key.
    #[default(Value::Null)]
    private_key: Value,
    /// That key's passphrase.
    #[default(Value::Null)]
    private_key_passphrase: Value,
    /// The request: its key and extensions count.
    #[default(Value::Null)]
    csr: Value,
    /// Who it is for: a dictionary, a list or a text; or single arguments (`CN` …).
    #[default(Value::Null)]
    subject: Value,
    /// Its number.
    #[default(Value::Null)]
    serial_number: Value,
    /// From when it counts: `2024-01-31 12:00:00`.
    #[default(Value::Null)]
    not_before: Value,
    /// Until when it counts.
    #[default(Value::Null)]
    not_after: Value,
    /// How many days it counts; 365 unless said.
    #[default(Value::Null)]
    days_valid: Value,
    #[group]
    packing: Packing,
    /// Subject (`CN` …), extensions (`basicConstraints` …), and arguments of `file.managed`.
    rest: Rest,
}

impl CertificateManaged {
    /// What the certificate is made from.
    fn given(&self) -> Dict {
        let given = self.rest.kwargs.shallow_copy();
        for (name, value) in [
            ("digest", &self.digest),
            ("signing_private_key", &self.signing_private_key),
            ("signing_private_key_passphrase", &self.signing_private_key_passphrase),
            ("signing_cert", &self.signing_cert),
            ("public_key", &self.public_key),
            ("private_key", &self.private_key),
            ("private_key_passphrase", &self.private_key_passphrase),
            ("csr", &self.csr),
            ("subject", &self.subject),
            ("serial_number", &self.serial_number),
            ("not_before", &self.not_before),
            ("not_after", &self.not_after),
            ("days_valid", &self.days_valid),
        ] {
            if !value.is_null() {
                given.insert(name, value);
            }
        }
        given
    }

    fn built(&self, cx: &Cx) -> Result<Built> {
        let given = self.signable()?;
        let given = pki::under::<Certificate>(cx, self.signing_policy.as_deref(), None, &given)?;
        Builder { given }.build(cx)
    }

    /// What the certificate is made from, a key that signs it among it, or a policy that may have one.
    fn signable(&self) -> Result<Dict> {
        let given = self.given();
        if given.get("signing_private_key").is_none() && self.signing_policy.is_none() {
            return Err(Error::failed(source::NO_SOURCE));
        }
        Ok(given)
    }

    fn signed(&self, cx: &Cx) -> Result<Certificate> {
        let (server, policy) = (self.ca_server.as_deref(), self.signing_policy.as_deref());
        let given = if server.is_some() { self.given() } else { self.signable()? };
        pki::make(cx, server, policy, &given)
    }

    /// The certificate that is there, if only what is round it changes.
    fn kept(&self, cx: &Cx, seen: &Seen) -> Result<Option<Certificate>> {
        if !seen.only(&["encoding", "additional_certs", "pkcs12_friendlyname"]) {
            return Ok(None);
        }
        let Some(own) = cx.host.read_if_there(Path::new(&self.name))? else { return Ok(None) };
        let found = source::certificates(cx, &own, self.packing.pkcs12_passphrase.as_deref())?;
        Ok(found.certificates.first().and_then(|der| Certificate::read(der)))
    }

    /// What differs between the certificate there and the one wanted.
    fn differences(&self, cx: &Cx, own: &Certificate, changes: &Dict) -> Result<()> {
        if own.ends_within(stamp::now(cx), self.days_remaining.unwrap_or(90))? {
            changes.insert("expiration", true);
        }
        let (Some(server), Some(policy)) = (&self.ca_server, &self.signing_policy) else {
            let wanted = self.built(cx)?;
            compare(own, &wanted.certificate, &self.given(), changes);
            if !signed_by(cx, own, &wanted.signer.public)? {
                changes.insert("signing_private_key", true);
            }
            return Ok(());
        };
        // Another minion has the key: what its policy says is compared, not what it would sign.
        let given = self.given();
        let key = given.get("private_key").or_else(|| given.get("public_key"));
        if let Some(key) = key.or_else(|| given.get("csr")) {
            let passphrase = given.get("private_key_passphrase").map(|text| text.to_str());
            if public_of(cx, &key, passphrase.as_deref())? != own.key {
                changes.insert("private_key", true);
            }
        }
        let merged = pki::under::<Certificate>(cx, Some(policy), Some(server), &given)?;
        let subject = x509::Name::given(&merged)?;
        if subject != own.subject {
            changes.insert("subject_name", subject.shown());
        }
        let signing = merged.get("signing_cert").filter(|source| !source.is_null());
        let signing = signing.map(|source| Certificate::load(cx, &source)).transpose()?;
        if let Some(signing) = &signing {
            if signing.subject != own.issuer {
                changes.insert("issuer_name", signing.subject.shown());
            }
            if !signed_by(cx, own, &signing.key)? {
                changes.insert("signing_private_key", true);
            }
            let about = x509::extensions::About {
                key: &own.key.der,
                signing_key: &signing.key.der,
                signing: Some(signing),
            };
            let allowed = x509::extensions::CERTIFICATE;
            let wanted = x509::extensions::given(&merged, &allowed, &about)?;
            if let Some(differ) = extension_changes(&own.extensions, &wanted) {
                changes.insert("extensions", differ);
            }
        }
        Ok(())
    }
}

fn signed_by(cx: &Cx, own: &Certificate, key: &Public) -> Result<bool> {
    verify(cx, key, &own.algorithm, &own.signature, &own.signed)
}

/// Tells what has to change for one certificate to become the other.
fn compare(own: &Certificate, wanted: &Certificate, given: &Dict, changes: &Dict) {
    if own.key != wanted.key {
        changes.insert("private_key", true);
    }
    if own.digest() != wanted.digest()
        && let Some(digest) = wanted.digest()
    {
        changes.insert("digest", digest);
    }
    if let Some(serial) = given.get("serial_number").filter(|serial| !serial.is_null())
        && own.serial != wanted.serial
    {
        changes.insert("serial_number", serial);
    }
    if own.subject != wanted.subject {
        changes.insert("subject_name", wanted.subject.shown());
    }
    if own.issuer != wanted.issuer {
        changes.insert("issuer_name", wanted.issuer.shown());
    }
    if let Some(differ) = extension_changes(&own.extensions, &wanted.extensions) {
        changes.insert("extensions", differ);
    }
}

impl Made for CertificateManaged {
    fn target(&self) -> Target<'_> {
        Target::of("certificate", &self.name, &self.rest)
    }

    fn warn(&self) {
        old::managed_certificate(&self.given());
        if self.days_remaining.is_none() {
            old::changing("days_remaining", 7);
        }
    }

    fn warn_of_making(&self) {
        old::ignored(&self.rest.kwargs, &old::CERTIFICATE);
    }

    fn compare(&self, cx: &Cx, own: &[u8]) -> Result<Seen> {
        let name = self.name.as_str();
        let changes = Dict::new();
        let mut new = false;
        match source::certificates(cx, own, self.packing.pkcs12_passphrase.as_deref()) {
            Err(Error::Raised { class, .. }) => {
                new = true;
                match class.as_str() {
                    "InvalidPassword" => changes.insert("pkcs12_passphrase", true),
                    _ => changes.insert("replaced", name),
                };
            }
            Err(error) => return Err(error),
            Ok(found) => {
                let first = found.certificates.first().and_then(|der| Certificate::read(der));
                if found.encoding.name() != self.encoding {
                    changes.insert("encoding", self.encoding.as_str());
                } else if found.encoding == Encoding::Pkcs12 {
                    if found.friendly_name != self.packing.pkcs12_friendlyname {
                        changes.insert(
                            "pkcs12_friendlyname",
                            self.packing.pkcs12_friendlyname.clone(),
                        );
                    }
                    let signs_itself = self.signing_cert.is_null()
                        && !self.signing_private_key.is_null()
                        && self.signing_policy.is_none();
                    if found.key.is_none() && (!self.private_key.is_null() || signs_itself) {
                        changes.insert("private_key", true);
                    }
                }
                match first {
                    Some(own) => self.differences(cx, &own, &changes)?,
                    None => {
                        changes.insert("replaced", name);
                    }
                }
                let mut there: Vec<_> = found.certificates.into_iter().skip(1).collect();
                let mut wanted = appended(cx, &self.append_certs)?;
                // Only a text keeps the order.
                if found.encoding != Encoding::Pem {
                    there.sort();
                    wanted.sort();
                }
                if there != wanted {
                    changes.insert("additional_certs", true);
                }
            }
        }
        Ok(Seen::of(changes, new))
    }

    fn make(&self, cx: &Cx, seen: &Seen) -> Result<(Vec<u8>, Encoding)> {
        let encoding = Encoding::of(&self.encoding, &CERTIFICATE_ENCODINGS)?;
        let certificate = match self.kept(cx, seen)? {
            Some(own) => own,
            None => self.signed(cx)?,
        };
        let key = x509::embedded_key(cx, encoding, &certificate, &self.given())?;
        let others = appended(cx, &self.append_certs)?;
        let (der, key) = (&certificate.der, key.as_deref());
        Ok((x509::pack(cx, encoding, der, &others, &self.packing, key)?, encoding))
    }
}

/// Make sure that a file holds a revocation list that is as asked and does not end soon.
#[derive(Args)]
pub struct CrlManaged {
    /// The file.
    name: String,
    /// The key that signs: a file or a text.
    signing_private_key: Value,
    /// What is revoked: `serial_number` or `certificate`, `revocation_date`, `not_after`,
    /// `extensions`.
    revoked: Vec<Value>,
    /// Make a new one when the old one ends within these days; 30 unless said.
    days_remaining: Option<i64>,
    #[group]
    wanted: revocation::Wanted,
    /// Arguments of `file.managed`.
    rest: Rest,
}

impl CrlManaged {
    /// The list wanted, with the number after this one where it counts by itself.
    fn built(&self, cx: &Cx, number: u64) -> Result<(List, Private)> {
        let extensions = self.wanted.extensions.as_ref().map(Dict::shallow_copy);
        let extensions = extensions.unwrap_or_default();
        if self.counts() {
            extensions.insert("cRLNumber", number);
        }
        self.wanted.build(cx, &self.signing_private_key, &self.revoked, &extensions)
    }

    fn counts(&self) -> bool {
        let number = self.wanted.extensions.as_ref().and_then(|all| all.get("cRLNumber"));
        number.is_some_and(|number| number.to_str() == "auto")
    }

    /// The number of a list.
    fn number_of(list: &List) -> u64 {
        let shown =
            list.shown().get("extensions").and_then(|all| all.get("cRLNumber")?.get("value"));
        shown.and_then(|number| u64::try_from(number.to_int()?).ok()).unwrap_or_default()
    }

    fn differences(&self, cx: &Cx, own: &List, changes: &Dict) -> Result<()> {
        let (wanted, _) = self.built(cx, Self::number_of(own))?;
        if own.digest() != wanted.digest()
            && let Some(digest) = wanted.digest()
        {
            changes.insert("digest", digest);
        }
        let soon = stamp::after_days(stamp::now(cx), self.days_remaining.unwrap_or(30))?;
        if own.next_update.is_none_or(|end| end <= soon) {
            changes.insert("expiration", true);
        }
        if own.issuer != wanted.issuer {
            changes.insert("issuer_name", wanted.issuer.shown());
        }
        let signed_by = match self.wanted.signing(cx)? {
            None => true,
            Some(signing) => own.verify(cx, &signing)?,
        };
        if !signed_by {
            changes.insert("public_key", true);
        }
        if let Some(differ) = revocation_changes(&own.revoked, &wanted.revoked) {
            changes.insert("revocations", differ);
        }
        if let Some(differ) = extension_changes(&own.extensions, &wanted.extensions) {
            changes.insert("extensions", differ);
        }
        Ok(())
    }
}

/// Tells what differs between two lists of certificates.
fn revocation_changes(own: &[Revoked], wanted: &[Revoked]) -> Option<Dict> {
    let differs = |old: &Revoked, new: &Revoked| {
        new.dated && old.date != new.date || old.extensions != new.extensions
    };
    pki::differences(own, wanted, |entry| entry.serial.clone(), differs, Revoked::number)
}

impl Made for CrlManaged {
    fn target(&self) -> Target<'_> {
        Target::of("certificate revocation list", &self.name, &self.rest)
    }

    fn warn(&self) {
        old::list(&self.rest.kwargs, self.wanted.days_valid, &self.revoked);
        if self.days_remaining.is_none() {
            old::changing("days_remaining", 3);
        }
    }

    fn compare(&self, cx: &Cx, own: &[u8]) -> Result<Seen> {
        let name = self.name.as_str();
        let changes = Dict::new();
        let mut new = true;
        match revocation::load(own) {
            Err(_) => {
                changes.insert("replaced", name);
            }
            Ok((own, encoding)) => {
                // Salt calls an empty list none.
                new = own.revoked.is_empty();
                self.differences(cx, &own, &changes)?;
                if encoding.name() != self.wanted.encoding {
                    changes.insert("encoding", self.wanted.encoding.as_str());
                }
            }
        }
        Ok(Seen::of(changes, new))
    }

    fn make(&self, cx: &Cx, seen: &Seen) -> Result<(Vec<u8>, Encoding)> {
        let encoding = Encoding::of(&self.wanted.encoding, &PLAIN_ENCODINGS)?;
        let own = cx.host.read_if_there(Path::new(&self.name))?;
        let own = own.and_then(|own| revocation::load(&own).ok());
        if seen.only(&["encoding"])
            && let Some((own, _)) = &own
        {
            return Ok((own.encode(encoding), encoding));
        }
        let number = own.map_or(0, |(own, _)| Self::number_of(&own)) + 1;
        let (list, key) = self.built(cx, number)?;
        Ok((list.sign(cx, &key, &self.wanted.digest)?.encode(encoding), encoding))
    }
}

/// Make sure that a file holds a certificate request that is as asked.
#[derive(Args)]
pub struct CsrManaged {
    /// The file.
    name: String,
    #[group]
    wanted: request::Wanted,
    /// Who it is for: a dictionary, a list or a text; or single arguments (`CN` …).
    #[default(Value::Null)]
    subject: Value,
    /// Subject (`CN`, `O` …), extensions (`subjectAltName` …), and arguments of `file.managed`.
    rest: Rest,
}

impl CsrManaged {
    /// Subject and extensions.
    fn given(&self) -> Dict {
        let given = self.rest.kwargs.shallow_copy();
        given.insert("subject", &self.subject);
        given
    }
}

impl Made for CsrManaged {
    fn target(&self) -> Target<'_> {
        Target::of("certificate signing request", &self.name, &self.rest)
    }

    fn warn(&self) {
        old::signed(&self.rest.kwargs);
    }

    fn compare(&self, cx: &Cx, own: &[u8]) -> Result<Seen> {
        let name = self.name.as_str();
        let changes = Dict::new();
        let Ok((own, encoding)) = request::load(own) else {
            changes.insert("replaced", name);
            return Ok(Seen::of(changes, true));
        };
        let (wanted, _) = self.wanted.build(cx, &self.given())?;
        if own.digest() != wanted.digest()
            && let Some(digest) = wanted.digest()
        {
            changes.insert("digest", digest);
        }
        if own.key != wanted.key {
            changes.insert("private_key", true);
        }
        if own.subject != wanted.subject {
            changes.insert("subject_name", wanted.subject.shown());
        }
        if encoding.name() != self.wanted.encoding {
            changes.insert("encoding", self.wanted.encoding.as_str());
        }
        if let Some(differ) = extension_changes(&own.extensions, &wanted.extensions) {
            changes.insert("extensions", differ);
        }
        Ok(Seen::of(changes, false))
    }

    fn make(&self, cx: &Cx, seen: &Seen) -> Result<(Vec<u8>, Encoding)> {
        let encoding = Encoding::of(&self.wanted.encoding, &PLAIN_ENCODINGS)?;
        let own = match seen.only(&["encoding"]) {
            true => cx.host.read_if_there(Path::new(&self.name))?,
            false => None,
        };
        let own = match own.and_then(|own| request::load(&own).ok()) {
            Some((own, _)) => own,
            None => {
                old::ignored(&self.rest.kwargs, &old::REQUEST);
                self.wanted.sign(cx, &self.given())?
            }
        };
        Ok((own.encode(encoding), encoding))
    }
}

/// Make sure that a file holds a piece of PEM, written evenly.
#[derive(Args)]
pub struct PemManaged {
    /// The file.
    name: String,
    /// The text, or a file that holds it.
    text: Value,
    /// Arguments of `file.managed`.
    rest: Rest,
}

/// What the file shall be, and how it is.
pub struct SeenPem {
    file: Managed,
    seen: <Managed as State>::Seen,
}

impl State for PemManaged {
    type Seen = SeenPem;

    fn observe(&self, cx: &Cx) -> Result<SeenPem> {
        let text = x509::pem_of(cx, &self.text, None)?;
        let file = managed(&self.name, Some(&text), &self.rest.kwargs, None)?;
        let seen = file.observe(cx)?;
        Ok(SeenPem { file, seen })
    }

    fn plan(&self, seen: &SeenPem) -> Result<Plan> {
        seen.file.plan(&seen.seen)
    }

    fn apply(&self, cx: &Cx, seen: SeenPem) -> Result<Applied> {
        seen.file.apply(cx, seen.seen)
    }
}
