//! `x509`: private keys, requests, certificates and revocation lists kept in files.
//!
//! What has to be made is decided here; the file is `file.managed`'s business, which gets all
//! arguments this module does not know (`user`, `mode`, `makedirs`, `backup` …). What is there is
//! compared with what the arguments would make, before it is signed, so every extension counts.
//! A file that is not there is not made for a test: its key may be another state's, still to come.

use std::path::Path;

use halite_modules::x509::{
    self, CERTIFICATE_ENCODINGS, KEY_ENCODINGS, PLAIN_ENCODINGS, Packing, appended,
    certificate::{Built, Certificate},
    extension_changes,
    keys::{Private, Public, default_size, public_of, verify},
    remote,
    request::{self, Request},
    revocation::{self, List, Revoked, Wanted},
    source::{self, Encoding},
    stamp,
};
use halite_spec::{
    Applied, Args, Binder, Call, Cx, Error, Outcome, Plan, Rest, Result, State, host::Write, states,
};
use halite_value::{Dict, Value, dict, entries};

use crate::file::Managed;

states! {
    /// Keep private keys, requests, certificates and revocation lists in files.
    "x509": "certificate_managed" => CertificateManaged,
    "crl_managed" => CrlManaged,
    "csr_managed" => CsrManaged,
    "pem_managed" => PemManaged,
    "private_key_managed" => PrivateKeyManaged,
}

/// The arguments of `file.managed` among those given.
fn file_arguments(given: &Dict) -> Dict {
    let mine = ["name", "contents", "source", "replace", "show_changes", "text"];
    let kept = Dict::new();
    for param in Managed::PARAMS.iter().filter(|param| !param.rest && !mine.contains(&param.name)) {
        if let Some(value) = given.get(param.name) {
            kept.insert(param.name, value);
        }
    }
    kept
}

/// `file.managed` with this content; without one it keeps what is there and sees to the rest.
fn managed(name: &str, content: Option<&str>, given: &Dict, mode: Option<&str>) -> Result<Managed> {
    let kwargs = file_arguments(given);
    kwargs.insert("name", name);
    if let Some(mode) = mode {
        // `mode: null` says nothing, either.
        let given = kwargs.get("mode").filter(|given| !given.is_null());
        kwargs.insert("mode", given.unwrap_or_else(|| mode.into()));
    }
    match content {
        Some(content) => {
            kwargs.insert("contents", content);
            kwargs.insert("show_changes", false);
        }
        None => {
            kwargs.insert("replace", false);
        }
    }
    let mut binder = Binder::new(Call { args: Vec::new(), kwargs }, Managed::PARAMS);
    Managed::bind(&mut binder)
}

/// A file that holds something made, and the arguments for it.
pub(crate) struct Target<'a> {
    /// What it holds: `certificate`.
    pub(crate) what: &'static str,
    pub(crate) name: &'a str,
    pub(crate) given: &'a Dict,
    pub(crate) mode: Option<&'a str>,
}

impl Target<'_> {
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.given.get(name).is_none_or(|flag| flag.truthy())
    }

    /// Sees to the file, with this content or whatever it has; the return tells of it as a part
    /// of the state, as Salt's does.
    pub(crate) fn part(
        &self,
        cx: &Cx,
        content: Option<&str>,
        test: bool,
    ) -> Result<(Outcome, Dict)> {
        let file = managed(self.name, content, self.given, self.mode)?;
        let outcome = match halite_spec::run(&file, cx, test) {
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            Err(error) => Outcome::failed(error.to_string()),
            Ok(outcome) => outcome,
        };
        let id = cx.low.get("__id__").unwrap_or_else(|| self.name.into());
        let low = dict! {
            "name" => self.name, "state" => "file", "__id__" => id.clone(), "fun" => "managed",
        };
        let part = dict! {
            "changes" => outcome.changes.clone(), "comment" => outcome.comment.as_str(),
            "name" => self.name, "result" => outcome.result,
            "__sls__" => cx.low.get("__sls__").unwrap_or_default(), "__id__" => id, "low" => low,
        };
        Ok((outcome, entries! { "sub_state_run" => Value::list([part]) }))
    }

    fn is_right(&self) -> String {
        format!("The {} is in the correct state", self.what)
    }

    /// Decides by what differs.
    pub(crate) fn seen(&self, changes: Dict, new: bool) -> Seen {
        if changes.is_empty() { Seen::Right } else { Seen::Make { changes, new } }
    }

    /// What is in the file, or what is to be done since it cannot be kept.
    pub(crate) fn content(&self, cx: &Cx) -> Result<std::result::Result<Vec<u8>, Seen>> {
        let path = Path::new(self.name);
        if !path.is_absolute() || cx.host.is_dir(path)? {
            return Err(Error::failed(
                "Problem while testing file.managed changes, see its output",
            ));
        }
        let created = || Seen::Make { changes: entries! { "created" => self.name }, new: true };
        if !self.flag("follow_symlinks") && cx.host.is_link(path)? {
            return Ok(Err(created()));
        }
        let own = cx.host.read_if_there(path)?;
        Ok(own.ok_or_else(|| if self.flag("create") { created() } else { Seen::Right }))
    }

    pub(crate) fn plan(&self, seen: &Seen) -> Plan {
        match seen {
            // The file's owner and mode are seen to in any case.
            Seen::Right => Plan::unknown().pending(self.is_right()).done(self.is_right()),
            Seen::Make { changes, new } => {
                let verb = if *new { "created" } else { "recreated" };
                Plan::changes(changes.clone())
                    .pending(format!("The {} would have been {verb}", self.what))
                    .done(format!("The {} has been {verb}", self.what))
            }
        }
    }

    /// The return of a test.
    pub(crate) fn rehearsed(&self, cx: &Cx, seen: &Seen) -> Result<Option<Outcome>> {
        let Plan { changes, pending, .. } = self.plan(seen);
        let (file, extra) = self.part(cx, None, true)?;
        let result = if changes.is_empty() { Some(true) } else { None };
        let outcome = match file.result {
            Some(false) => {
                Outcome::failed("Problem while testing file.managed changes, see its output")
            }
            _ => Outcome::new(result, changes, pending),
        };
        Ok(Some(Outcome { extra, ..outcome }))
    }

    /// Sees to a file whose content is right.
    pub(crate) fn keep(&self, cx: &Cx) -> Result<Applied> {
        let (file, extra) = self.part(cx, None, false)?;
        let result = file.result.filter(|result| !result);
        let comment = match result {
            Some(_) => "Could not create file, see file.managed output".to_owned(),
            None => self.is_right(),
        };
        Ok(Applied { result, extra, ..Applied::changes(Dict::new()).comment(comment) })
    }

    /// Writes what was made.
    pub(crate) fn write(&self, cx: &Cx, made: &[u8], encoding: Encoding) -> Result<Applied> {
        let path = Path::new(self.name);
        let text = encoding.is_text().then(|| String::from_utf8_lossy(made).into_owned());
        if text.is_none() && !self.flag("follow_symlinks") && cx.host.is_link(path)? {
            cx.host.remove_file(path)?;
        }
        let (file, extra) = self.part(cx, text.as_deref(), false)?;
        if file.result == Some(false) {
            let failed =
                Applied::failed(Dict::new(), "Could not create file, see file.managed output");
            return Ok(Applied { extra, ..failed });
        }
        if text.is_none() {
            // `file.managed` writes texts only.
            let backup = self.given.get("backup").filter(Value::truthy);
            let backup = backup.map(|backup| backup.to_str().to_string()).unwrap_or_default();
            halite_modules::file::backup::keep_copy(cx, path, &backup)?;
            cx.host.write(path, made, &Write::default())?;
        }
        Ok(Applied { extra, ..Applied::as_planned() })
    }
}

/// What was found: nothing to make, or what to make and why.
pub enum Seen {
    Right,
    Make { changes: Dict, new: bool },
}

impl Seen {
    /// Tells whether nothing but these changes.
    pub(crate) fn only(&self, names: &[&str]) -> bool {
        match self {
            Self::Right => false,
            Self::Make { changes, .. } => {
                changes.keys().iter().all(|key| names.contains(&key.to_str().as_str()))
            }
        }
    }
}

/// Make sure that a file holds a private key.
#[derive(Args)]
pub struct PrivateKeyManaged {
    /// The file.
    name: String,
    /// `rsa`, `ec`, `ed25519` or `ed448`.
    #[default("rsa".into())]
    algo: String,
    /// Its size in bits; 2048 for RSA and 256 for EC unless said.
    #[default(Value::Null)]
    keysize: Value,
    /// Its passphrase.
    passphrase: Option<String>,
    /// `pem`, `der` or `pkcs12`.
    #[default("pem".into())]
    encoding: String,
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
    fn size(&self) -> Value {
        let size = self.rest.kwargs.get("bits").unwrap_or_else(|| self.keysize.clone());
        if size.is_null() { default_size(&self.algo).into() } else { size }
    }

    fn target(&self) -> Target<'_> {
        Target {
            what: "private key",
            name: &self.name,
            given: &self.rest.kwargs,
            mode: Some("0400"),
        }
    }

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

impl State for PrivateKeyManaged {
    type Seen = Seen;

    fn observe(&self, cx: &Cx) -> Result<Seen> {
        let name = self.name.as_str();
        let changes = Dict::new();
        let own = match self.target().content(cx)? {
            Ok(own) => own,
            Err(seen) => return Ok(seen),
        };
        // What is replaced anyway need not be readable.
        if self.new {
            changes.insert("replaced", name);
            return Ok(self.target().seen(changes, false));
        }
        let mut opened = Private::open(cx, &own, self.passphrase.as_deref());
        if matches!(&opened, Err(error) if error.class() == "SuperfluousPassword") {
            changes.insert("passphrase", true);
            opened = Private::open(cx, &own, None);
        }
        match opened {
            Err(error @ Error::Raised { .. }) => self.unopened(&error, &changes)?,
            Err(error) => return Err(error),
            Ok(own) => {
                if own.public.algo() != self.algo {
                    changes.insert("algo", self.algo.as_str());
                } else if own.public.size().map(Value::from).unwrap_or_default() != self.size() {
                    changes.insert("keysize", self.size());
                }
                if own.encoding.name() != self.encoding {
                    changes.insert("encoding", self.encoding.as_str());
                }
            }
        }
        Ok(self.target().seen(changes, false))
    }

    fn plan(&self, seen: &Seen) -> Result<Plan> {
        Ok(self.target().plan(seen))
    }

    fn rehearse(&self, cx: &Cx) -> Result<Option<Outcome>> {
        let seen = self.observe(&cx.looking_only())?;
        self.target().rehearsed(cx, &seen)
    }

    fn apply(&self, cx: &Cx, seen: Seen) -> Result<Applied> {
        let target = self.target();
        let Seen::Make { .. } = seen else { return target.keep(cx) };
        // Another form does not make another key.
        let own = match seen.only(&["encoding", "passphrase"]) {
            true => cx.host.read_if_there(Path::new(&self.name))?,
            false => None,
        };
        let key = match own {
            None => Private::make(cx, &self.algo, Some(&self.size()))?,
            Some(own) => Private::open(cx, &own, self.passphrase.as_deref())
                .or_else(|_| Private::open(cx, &own, None))?,
        };
        let encoding = Encoding::of(&self.encoding, &KEY_ENCODINGS)?;
        let passphrase = self.passphrase.as_deref();
        let made = key.encode(cx, encoding, passphrase, self.pkcs12_encryption_compat)?;
        target.write(cx, &made, encoding)
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
    /// The passphrase of a PKCS 12.
    pkcs12_passphrase: Option<String>,
    /// Encrypt a PKCS 12 so that old programs can read it.
    #[default(false)]
    pkcs12_encryption_compat: bool,
    /// The name a PKCS 12 gives the certificate.
    pkcs12_friendlyname: Option<String>,
    /// Subject (`CN` …), extensions (`basicConstraints` …), and arguments of `file.managed`.
    rest: Rest,
}

impl CertificateManaged {
    fn target(&self) -> Target<'_> {
        Target { what: "certificate", name: &self.name, given: &self.rest.kwargs, mode: None }
    }

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
        let given = self.given();
        if given.get("signing_private_key").is_none() && self.signing_policy.is_none() {
            return Err(Error::failed(source::NO_SOURCE));
        }
        remote::under_policy(cx, self.signing_policy.as_deref(), &given)?.build(cx)
    }

    fn signed(&self, cx: &Cx) -> Result<Certificate> {
        match (&self.ca_server, &self.signing_policy) {
            (Some(server), Some(policy)) => remote::request(cx, server, policy, &self.given()),
            (Some(_), None) => Err(Error::failed(
                "signing_policy must be specified to request a certificate from a remote ca_server",
            )),
            (None, _) => self.built(cx)?.sign(cx),
        }
    }

    /// The certificate that is there, if only what is round it changes.
    fn kept(&self, cx: &Cx, seen: &Seen) -> Result<Option<Certificate>> {
        if !seen.only(&["encoding", "additional_certs", "pkcs12_friendlyname"]) {
            return Ok(None);
        }
        let Some(own) = cx.host.read_if_there(Path::new(&self.name))? else { return Ok(None) };
        let found = source::certificates(cx, &own, self.pkcs12_passphrase.as_deref())?;
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
        let merged = remote::expected(cx, server, policy, &given)?.given;
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

impl State for CertificateManaged {
    type Seen = Seen;

    fn observe(&self, cx: &Cx) -> Result<Seen> {
        let name = self.name.as_str();
        let changes = Dict::new();
        let own = match self.target().content(cx)? {
            Ok(own) => own,
            Err(seen) => return Ok(seen),
        };
        let mut new = false;
        match source::certificates(cx, &own, self.pkcs12_passphrase.as_deref()) {
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
                    if found.friendly_name != self.pkcs12_friendlyname {
                        changes.insert("pkcs12_friendlyname", self.pkcs12_friendlyname.clone());
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
        Ok(self.target().seen(changes, new))
    }

    fn plan(&self, seen: &Seen) -> Result<Plan> {
        Ok(self.target().plan(seen))
    }

    fn rehearse(&self, cx: &Cx) -> Result<Option<Outcome>> {
        let seen = self.observe(&cx.looking_only())?;
        self.target().rehearsed(cx, &seen)
    }

    fn apply(&self, cx: &Cx, seen: Seen) -> Result<Applied> {
        let target = self.target();
        let Seen::Make { .. } = seen else { return target.keep(cx) };
        let encoding = Encoding::of(&self.encoding, &CERTIFICATE_ENCODINGS)?;
        let certificate = self.kept(cx, &seen)?;
        let certificate = match certificate {
            Some(own) => own,
            None => {
                let made = self.signed(cx)?;
                x509::keep_copy(cx, &made, &self.rest.kwargs)?;
                made
            }
        };
        let packing = Packing {
            passphrase: self.pkcs12_passphrase.clone(),
            compatible: self.pkcs12_encryption_compat,
            friendly_name: self.pkcs12_friendlyname.clone(),
            key: x509::embedded_key(cx, encoding, &certificate, &self.given())?,
        };
        let others = appended(cx, &self.append_certs)?;
        let made = x509::pack(cx, encoding, &certificate.der, &others, &packing)?;
        target.write(cx, &made, encoding)
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
    /// The certificate that signs.
    #[default(Value::Null)]
    signing_cert: Value,
    /// The key's passphrase.
    signing_private_key_passphrase: Option<String>,
    /// List certificates that have ended, too.
    #[default(false)]
    include_expired: bool,
    /// How many days it counts; 100 unless said.
    days_valid: Option<i64>,
    /// The digest of the signature.
    #[default("sha256".into())]
    digest: String,
    /// `pem` or `der`.
    #[default("pem".into())]
    encoding: String,
    /// Extensions. `cRLNumber: auto` counts up.
    extensions: Option<Dict>,
    /// Arguments of `file.managed`.
    rest: Rest,
}

impl CrlManaged {
    fn target(&self) -> Target<'_> {
        Target {
            what: "certificate revocation list",
            name: &self.name,
            given: &self.rest.kwargs,
            mode: None,
        }
    }

    /// The list wanted, with the number after this one where it counts by itself.
    fn built(&self, cx: &Cx, number: u64) -> Result<(List, Private)> {
        let passphrase = self.signing_private_key_passphrase.as_deref();
        let key = Private::load(cx, &self.signing_private_key, passphrase)?;
        let signing = match &self.signing_cert {
            Value::Null => None,
            source => Some(Certificate::load(cx, source)?),
        };
        let extensions = self.extensions.as_ref().map(Dict::shallow_copy).unwrap_or_default();
        if self.counts() {
            extensions.insert("cRLNumber", number);
        }
        let wanted = Wanted {
            revoked: &self.revoked,
            include_expired: self.include_expired,
            days_valid: self.days_valid.unwrap_or(100),
            digest: &self.digest,
            extensions: &extensions,
        };
        Ok((List::build(cx, &wanted, &key, signing.as_ref())?, key))
    }

    fn counts(&self) -> bool {
        let number = self.extensions.as_ref().and_then(|all| all.get("cRLNumber"));
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
        let signed_by = match &self.signing_cert {
            Value::Null => true,
            source => own.verify(cx, &Certificate::load(cx, source)?)?,
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

/// Tells what differs between two lists of certificates: `added`, `changed`, `removed`.
fn revocation_changes(own: &[Revoked], wanted: &[Revoked]) -> Option<Dict> {
    let find =
        |all: &[Revoked], serial: &[u8]| all.iter().find(|entry| entry.serial == serial).cloned();
    let (mut added, mut changed, mut removed) = (Vec::new(), Vec::new(), Vec::new());
    for entry in wanted {
        match find(own, &entry.serial) {
            None => added.push(entry.number()),
            Some(old) => {
                let dated = entry.dated && old.date != entry.date;
                if dated || old.extensions != entry.extensions {
                    changed.push(entry.number());
                }
            }
        }
    }
    removed.extend(
        own.iter().filter(|entry| find(wanted, &entry.serial).is_none()).map(Revoked::number),
    );
    if added.is_empty() && changed.is_empty() && removed.is_empty() {
        return None;
    }
    Some(entries! {
        "added" => Value::list(added), "changed" => Value::list(changed),
        "removed" => Value::list(removed),
    })
}

impl State for CrlManaged {
    type Seen = Seen;

    fn observe(&self, cx: &Cx) -> Result<Seen> {
        let name = self.name.as_str();
        let changes = Dict::new();
        let own = match self.target().content(cx)? {
            Ok(own) => own,
            Err(seen) => return Ok(seen),
        };
        let mut new = true;
        match revocation::load(&own) {
            Err(_) => {
                changes.insert("replaced", name);
            }
            Ok((own, encoding)) => {
                // Salt calls an empty list none.
                new = own.revoked.is_empty();
                self.differences(cx, &own, &changes)?;
                if encoding.name() != self.encoding {
                    changes.insert("encoding", self.encoding.as_str());
                }
            }
        }
        Ok(self.target().seen(changes, new))
    }

    fn plan(&self, seen: &Seen) -> Result<Plan> {
        Ok(self.target().plan(seen))
    }

    fn rehearse(&self, cx: &Cx) -> Result<Option<Outcome>> {
        let seen = self.observe(&cx.looking_only())?;
        self.target().rehearsed(cx, &seen)
    }

    fn apply(&self, cx: &Cx, seen: Seen) -> Result<Applied> {
        let target = self.target();
        let Seen::Make { .. } = seen else { return target.keep(cx) };
        let encoding = Encoding::of(&self.encoding, &PLAIN_ENCODINGS)?;
        let own = cx.host.read_if_there(Path::new(&self.name))?;
        let own = own.and_then(|own| revocation::load(&own).ok());
        if seen.only(&["encoding"])
            && let Some((own, _)) = &own
        {
            return target.write(cx, &own.encode(encoding), encoding);
        }
        let number = own.map_or(0, |(own, _)| Self::number_of(&own)) + 1;
        let (list, key) = self.built(cx, number)?;
        let made = list.sign(cx, &key, &self.digest)?.encode(encoding);
        target.write(cx, &made, encoding)
    }
}

/// Make sure that a file holds a certificate request that is as asked.
#[derive(Args)]
pub struct CsrManaged {
    /// The file.
    name: String,
    /// The key it is for: a file or a text.
    private_key: Value,
    /// The key's passphrase.
    private_key_passphrase: Option<String>,
    /// The digest of the signature.
    #[default("sha256".into())]
    digest: String,
    /// `pem` or `der`.
    #[default("pem".into())]
    encoding: String,
    /// Who it is for: a dictionary, a list or a text; or single arguments (`CN` …).
    #[default(Value::Null)]
    subject: Value,
    /// Subject (`CN`, `O` …), extensions (`subjectAltName` …), and arguments of `file.managed`.
    rest: Rest,
}

impl CsrManaged {
    fn digest(&self) -> String {
        request::digest(&self.rest.kwargs, &self.digest)
    }

    fn target(&self) -> Target<'_> {
        Target {
            what: "certificate signing request",
            name: &self.name,
            given: &self.rest.kwargs,
            mode: None,
        }
    }

    fn built(&self, cx: &Cx) -> Result<(Request, Private)> {
        let given = self.rest.kwargs.shallow_copy();
        given.insert("subject", &self.subject);
        let key = Private::load(cx, &self.private_key, self.private_key_passphrase.as_deref())?;
        Ok((Request::build(&given, &key, &self.digest())?, key))
    }
}

impl State for CsrManaged {
    type Seen = Seen;

    fn observe(&self, cx: &Cx) -> Result<Seen> {
        let name = self.name.as_str();
        let changes = Dict::new();
        let own = match self.target().content(cx)? {
            Ok(own) => own,
            Err(seen) => return Ok(seen),
        };
        let read = request::load(&own).ok();
        let read = read.and_then(|(der, encoding)| Some((Request::read(&der)?, encoding)));
        let Some((own, encoding)) = read else {
            changes.insert("replaced", name);
            return Ok(self.target().seen(changes, true));
        };
        let (wanted, _) = self.built(cx)?;
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
        if encoding.name() != self.encoding {
            changes.insert("encoding", self.encoding.as_str());
        }
        if let Some(differ) = extension_changes(&own.extensions, &wanted.extensions) {
            changes.insert("extensions", differ);
        }
        Ok(self.target().seen(changes, false))
    }

    fn plan(&self, seen: &Seen) -> Result<Plan> {
        Ok(self.target().plan(seen))
    }

    fn rehearse(&self, cx: &Cx) -> Result<Option<Outcome>> {
        let seen = self.observe(&cx.looking_only())?;
        self.target().rehearsed(cx, &seen)
    }

    fn apply(&self, cx: &Cx, seen: Seen) -> Result<Applied> {
        let target = self.target();
        let Seen::Make { .. } = seen else { return target.keep(cx) };
        let encoding = Encoding::of(&self.encoding, &PLAIN_ENCODINGS)?;
        let own = match seen.only(&["encoding"]) {
            true => cx.host.read_if_there(Path::new(&self.name))?,
            false => None,
        };
        if let Some((der, _)) = own.and_then(|own| request::load(&own).ok())
            && let Some(own) = Request::read(&der)
        {
            return target.write(cx, &own.encode(encoding), encoding);
        }
        let (wanted, key) = self.built(cx)?;
        let made = wanted.sign(cx, &key, &self.digest())?.encode(encoding);
        target.write(cx, &made, encoding)
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
