//! `x509`: private keys, certificate requests, certificates and revocation lists.
//!
//! What they look like inside is written and read here ([`der`], [`extensions`], [`certificate`] …);
//! what needs a key, the program `openssl` does ([`keys`], decisions 0012 and 0016). It is handed
//! its input by pipes and passphrases by the environment, so nothing secret lies in a scratch file.

pub mod certificate;
pub mod der;
pub mod extensions;
pub mod general;
pub mod keys;
pub mod name;
pub mod old;
pub mod policy;
pub mod request;
pub mod revocation;
pub mod source;
pub mod stamp;

use std::path::Path;

use halite_spec::{Args, Command, Cx, Error, Rest, Result, function, host::Write, module};
use halite_value::{Dict, Value, entries};

use self::{certificate::Certificate, keys::Private, source::Encoding};
pub use self::{
    certificate::extension_changes,
    name::{Name, is_part},
    policy::{get_signing_policy, sign_remote_certificate},
};
use crate::{
    file, hashutil,
    pki::{self, set},
};

module! {
    /// Make and read private keys, requests, certificates and revocation lists.
    "x509": create_certificate, create_crl, create_csr, create_private_key, encode_certificate,
    encode_crl, encode_csr, encode_private_key, expired, expires, get_pem_entries, get_pem_entry,
    get_private_key_size, get_public_key, get_signing_policy, read_certificate,
    read_certificates, read_crl, read_csr, sign_remote_certificate, verify_crl,
    verify_private_key, verify_signature, will_expire, write_pem,
}

/// What a certificate may be written as.
pub const CERTIFICATE_ENCODINGS: [Encoding; 5] =
    [Encoding::Der, Encoding::Pem, Encoding::Pkcs7Der, Encoding::Pkcs7Pem, Encoding::Pkcs12];
/// What a key may be written as.
pub const KEY_ENCODINGS: [Encoding; 3] = [Encoding::Der, Encoding::Pem, Encoding::Pkcs12];
/// What a request or a list may be written as.
pub const PLAIN_ENCODINGS: [Encoding; 2] = [Encoding::Der, Encoding::Pem];

pub(crate) fn openssl(
    cx: &Cx,
    words: &[&str],
    input: &[u8],
    secrets: &[(&str, &str)],
) -> Result<Vec<u8>> {
    if cx.host.which("openssl").is_none() {
        return Err(Error::Unavailable {
            function: "x509".into(),
            reason: "unable to find the program openssl: is it installed?".into(),
        });
    }
    let mut command = Command::line(["openssl"]).args(words.iter().copied()).query();
    for (name, value) in secrets {
        command = command.env(*name, *value);
    }
    command.stdin = Some(input.to_vec());
    let output = cx.host.run(&command)?;
    if output.ok() {
        return Ok(output.stdout);
    }
    Err(Error::failed(reason_of(&output.stderr_text())))
}

/// The words of `80:error:11:X509 V3 routines:f:error in extension:file.c:48:name=keyUsage`.
fn reason_of(said: &str) -> String {
    let line =
        said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("openssl failed").trim();
    let fields: Vec<&str> = line.splitn(9, ':').collect();
    match *fields {
        [_, "error", _, _, _, reason, _, _] => reason.to_owned(),
        [_, "error", _, _, _, reason, _, _, data] => format!("{reason}: {data}"),
        _ => line.to_owned(),
    }
}

/// `AA:BB`
pub(crate) fn colons(bytes: &[u8]) -> String {
    let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    pairs.join(":")
}

/// Reads hexadecimal digits, with or without colons.
pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.replace(':', "");
    if digits.is_empty() || !digits.len().is_multiple_of(2) || !digits.is_ascii() {
        return None;
    }
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// What was made, as users get it: text, or base64 of what is none; bytes if asked for.
fn handed(made: Vec<u8>, encoding: Encoding, raw: bool) -> Value {
    if raw {
        Value::bytes(made)
    } else if encoding.is_text() {
        String::from_utf8_lossy(&made).into_owned().into()
    } else {
        hashutil::base64(&made).into()
    }
}

/// Writes what was made, if a path is given, and says so.
fn kept(
    cx: &Cx,
    made: Vec<u8>,
    encoding: Encoding,
    path: Option<&String>,
    raw: bool,
    what: Option<&str>,
) -> Result<Value> {
    let Some(path) = path else { return Ok(handed(made, encoding, raw)) };
    let pem = encoding == Encoding::Pem;
    // Salt leaves what is not PEM readable for all; a key is nobody's business in any form.
    // differs: a key that is not PEM is written with mode 0600, too.
    let mode = if pem || what.is_none() { 0o600 } else { 0o644 };
    cx.host.write(Path::new(path), &made, &Write { mode: Some(mode), ..Write::default() })?;
    Ok(match what {
        _ if pem => format!("PEM written to {path}").into(),
        Some(what) => format!("{what} written to {path}").into(),
        None => Value::Null,
    })
}

/// Refuses arguments nobody knows; those of old times are passed over.
fn refuse_unknown(rest: &Rest, old: &[&str]) -> Result<()> {
    let names = rest.kwargs.keys();
    let unknown = names.iter().map(|name| name.to_str().to_string());
    let unknown: Vec<String> = unknown
        .filter(|name| !name.starts_with("__pub_") && !old.contains(&name.as_str()))
        .collect();
    if unknown.is_empty() {
        return Ok(());
    }
    Err(Error::invalid(format!("Unrecognized keyword arguments: {}", Value::list(unknown).repr())))
}

/// Further certificates: one source or several.
pub fn appended(cx: &Cx, sources: &Value) -> Result<Vec<Vec<u8>>> {
    let sources = match sources {
        Value::Null => Vec::new(),
        Value::Str(_) | Value::Bytes(_) => vec![sources.clone()],
        _ => sources.items_of_sequence().unwrap_or_default(),
    };
    sources.iter().map(|source| Ok(Certificate::load(cx, source)?.der)).collect()
}

/// How certificates are packed as PKCS 12.
#[derive(Args)]
pub struct Packing {
    /// The passphrase of a PKCS 12.
    pub pkcs12_passphrase: Option<String>,
    /// Encrypt a PKCS 12 so that old programs can read it.
    #[default(false)]
    pkcs12_encryption_compat: bool,
    /// The name a PKCS 12 gives the certificate.
    pub pkcs12_friendlyname: Option<String>,
}

/// Writes a certificate and those that go with it; a PKCS 12 may hold its key (as PKCS 8), too.
pub fn pack(
    cx: &Cx,
    encoding: Encoding,
    certificate: &[u8],
    others: &[Vec<u8>],
    packing: &Packing,
    key: Option<&[u8]>,
) -> Result<Vec<u8>> {
    let all = [std::slice::from_ref(&certificate.to_vec()), others].concat();
    if key.is_some() && encoding != Encoding::Pkcs12 {
        return Err(Error::invalid("Embedding private keys is only supported for pkcs12 encoding"));
    }
    Ok(match encoding {
        Encoding::Der if !others.is_empty() => {
            return Err(Error::invalid("Cannot encode a certificate chain in DER"));
        }
        Encoding::Der => certificate.to_vec(),
        Encoding::Pem => {
            all.iter().map(|der| source::pem("CERTIFICATE", der)).collect::<String>().into_bytes()
        }
        Encoding::Pkcs7Der => source::to_pkcs7(&all),
        Encoding::Pkcs7Pem => source::pem("PKCS7", &source::to_pkcs7(&all)).into_bytes(),
        Encoding::Pkcs12 => source::to_pkcs12(
            cx,
            key,
            &all,
            packing.pkcs12_passphrase.as_deref(),
            packing.pkcs12_friendlyname.as_deref(),
            packing.pkcs12_encryption_compat,
        )?,
    })
}

/// Make a certificate and return it, or write it to a file.
///
/// ```console
/// $ salt web1 x509.create_certificate signing_private_key=/etc/pki/ca.key CN=ca days_valid=3650
/// ```
#[function]
pub fn create_certificate(
    cx: &Cx,
    /// The minion that signs; it is asked through the master.
    ca_server: Option<String>,
    /// The name of a set of arguments in `x509_signing_policies`, which win over those given.
    signing_policy: Option<String>,
    /// `pem`, `der`, `pkcs7_pem`, `pkcs7_der` or `pkcs12`.
    #[default("pem".into())]
    encoding: String,
    /// Certificates that follow: files or texts.
    #[default(Value::Null)]
    append_certs: Value,
    #[group] packing: Packing,
    /// The file to write.
    path: Option<String>,
    /// Write over a file that is there.
    #[default(true)]
    overwrite: bool,
    /// Return bytes.
    #[default(false)]
    raw: bool,
    /// Keys (`private_key`, `signing_private_key`), `signing_cert`, `csr`, subject (`CN` …),
    /// extensions (`basicConstraints` …), `days_valid`, `digest`, `serial_number`.
    rest: Rest,
) -> Result<Value> {
    old::certificate(&rest.kwargs);
    let encoding = Encoding::of(&encoding, &CERTIFICATE_ENCODINGS)?;
    if let Some(path) = path.as_ref().filter(|_| !overwrite)
        && cx.host.exists(Path::new(path))?
    {
        return Ok(format!("The file at {path} exists and overwrite was set to false").into());
    }
    let others = appended(cx, &append_certs)?;
    // Genuine Salt does not look whether the policy has one.
    if ca_server.is_none() && set(&rest.kwargs, "signing_private_key").is_none() {
        return Err(Error::invalid(pki::NO_SIGNER));
    }
    let (server, policy) = (ca_server.as_deref(), signing_policy.as_deref());
    let certificate: Certificate = pki::make(cx, server, policy, &rest.kwargs)?;
    let key = embedded_key(cx, encoding, &certificate, &rest.kwargs)?;
    let made = pack(cx, encoding, &certificate.der, &others, &packing, key.as_deref())?;
    kept(cx, made, encoding, path.as_ref(), raw, Some("Certificate"))
}

/// The key a PKCS 12 carries: the certificate's own, if it was given. One that signs itself has
/// the key that signs.
pub fn embedded_key(
    cx: &Cx,
    encoding: Encoding,
    certificate: &Certificate,
    given: &Dict,
) -> Result<Option<Vec<u8>>> {
    if encoding != Encoding::Pkcs12 {
        return Ok(None);
    }
    let name = match set(given, "private_key") {
        None if set(given, "signing_cert").is_none() => "signing_private_key",
        _ => "private_key",
    };
    let key = pki::key(cx, given, name, Private::load)?;
    Ok(key.filter(|key| key.public == certificate.key).map(|key| key.der))
}

/// Make a revocation list and return it, or write it to a file.
///
/// ```console
/// $ salt ca x509.create_crl /etc/pki/ca.key '[{"serial_number": "AA:BB"}]' signing_cert=/etc/pki/ca.crt
/// ```
#[function]
pub fn create_crl(
    cx: &Cx,
    /// The key that signs.
    signing_private_key: Value,
    /// What is revoked: `serial_number` or `certificate`, `revocation_date`, `not_after`,
    /// `extensions`.
    revoked: Vec<Value>,
    #[group] wanted: revocation::Wanted,
    /// The file to write.
    path: Option<String>,
    /// Return bytes.
    #[default(false)]
    raw: bool,
    /// Arguments of old times.
    rest: Rest,
) -> Result<Value> {
    old::list(&rest.kwargs, wanted.days_valid, &revoked);
    refuse_unknown(&rest, &old::LIST)?;
    let encoding = Encoding::of(&wanted.encoding, &PLAIN_ENCODINGS)?;
    let extensions = wanted.extensions.clone().unwrap_or_default();
    let (list, key) = wanted.build(cx, &signing_private_key, &revoked, &extensions)?;
    let made = list.sign(cx, &key, &wanted.digest)?.encode(encoding);
    kept(cx, made, encoding, path.as_ref(), raw, Some("CRL"))
}

/// Make a certificate request and return it, or write it to a file.
///
/// ```console
/// $ salt web1 x509.create_csr private_key=/etc/pki/my.key CN=www.example.com
/// ```
#[function]
pub fn create_csr(
    cx: &Cx,
    #[group] wanted: request::Wanted,
    /// The file to write.
    path: Option<String>,
    /// Return bytes.
    #[default(false)]
    raw: bool,
    /// Subject (`CN`, `O` …) and extensions (`subjectAltName` …).
    rest: Rest,
) -> Result<Value> {
    old::request(&rest.kwargs);
    let encoding = Encoding::of(&wanted.encoding, &PLAIN_ENCODINGS)?;
    let made = wanted.sign(cx, &rest.kwargs)?;
    kept(cx, made.encode(encoding), encoding, path.as_ref(), raw, Some("CSR"))
}

/// Make a private key and return it, or write it to a file.
///
/// ```console
/// $ salt web1 x509.create_private_key algo=ec keysize=384
/// ```
#[function]
pub fn create_private_key(
    cx: &Cx,
    #[group] wanted: keys::NewKey,
    /// Encrypt a PKCS 12 so that old programs can read it.
    #[default(false)]
    pkcs12_encryption_compat: bool,
    /// The file to write.
    path: Option<String>,
    /// Return bytes.
    #[default(false)]
    raw: bool,
    /// `bits`, the old name of `keysize`, and others of old times.
    rest: Rest,
) -> Result<Value> {
    old::key(&rest.kwargs);
    refuse_unknown(&rest, &[&["bits"][..], &old::KEY].concat())?;
    let key = wanted.make(cx, &rest)?;
    let (made, encoding) = wanted.encode(cx, &key, pkcs12_encryption_compat)?;
    kept(cx, made, encoding, path.as_ref(), raw, None)
}

/// Return a certificate in another encoding.
///
/// ```console
/// $ salt web1 x509.encode_certificate /etc/pki/my.crt pkcs12 private_key=/etc/pki/my.key
/// ```
#[function]
pub fn encode_certificate(
    cx: &Cx,
    /// The certificate: a file or a text.
    certificate: Value,
    /// `pem`, `der`, `pkcs7_pem`, `pkcs7_der` or `pkcs12`.
    #[default("pem".into())]
    encoding: String,
    /// Certificates that follow.
    #[default(Value::Null)]
    append_certs: Value,
    /// A key to pack with it (PKCS 12).
    #[default(Value::Null)]
    private_key: Value,
    /// That key's passphrase.
    private_key_passphrase: Option<String>,
    #[group] packing: Packing,
    /// Return bytes.
    #[default(false)]
    raw: bool,
) -> Result<Value> {
    let encoding = Encoding::of(&encoding, &CERTIFICATE_ENCODINGS)?;
    let certificate = Certificate::load(cx, &certificate)?;
    let others = appended(cx, &append_certs)?;
    let key = match &private_key {
        Value::Null => None,
        source => Some(Private::load(cx, source, private_key_passphrase.as_deref())?),
    };
    if encoding == Encoding::Pkcs12 && key.as_ref().is_some_and(|key| key.public != certificate.key)
    {
        return Err(Error::invalid("Certificate public key and provided private key do not match"));
    }
    let key = key.as_ref().map(|key| key.der.as_slice());
    Ok(handed(pack(cx, encoding, &certificate.der, &others, &packing, key)?, encoding, raw))
}

/// Return a revocation list in another encoding.
///
/// ```console
/// $ salt ca x509.encode_crl /etc/pki/my.crl der
/// ```
#[function]
pub fn encode_crl(
    cx: &Cx,
    /// The list: a file or a text.
    crl: Value,
    /// `pem` or `der`.
    #[default("pem".into())]
    encoding: String,
    /// Return bytes.
    #[default(false)]
    raw: bool,
) -> Result<Value> {
    let encoding = Encoding::of(&encoding, &PLAIN_ENCODINGS)?;
    let (list, _) = revocation::load(&source::load(cx, &crl)?)?;
    Ok(handed(list.encode(encoding), encoding, raw))
}

/// Return a certificate request in another encoding.
///
/// ```console
/// $ salt web1 x509.encode_csr /etc/pki/my.csr der
/// ```
#[function]
pub fn encode_csr(
    cx: &Cx,
    /// The request: a file or a text.
    csr: Value,
    /// `pem` or `der`.
    #[default("pem".into())]
    encoding: String,
    /// Return bytes.
    #[default(false)]
    raw: bool,
) -> Result<Value> {
    let encoding = Encoding::of(&encoding, &PLAIN_ENCODINGS)?;
    Ok(handed(request::of(cx, &csr)?.encode(encoding), encoding, raw))
}

/// Return a private key in another encoding.
///
/// ```console
/// $ salt web1 x509.encode_private_key /etc/pki/my.key der
/// ```
#[function]
pub fn encode_private_key(
    cx: &Cx,
    /// The key: a file or a text.
    private_key: Value,
    /// `pem`, `der` or `pkcs12`.
    #[default("pem".into())]
    encoding: String,
    /// Encrypt the outcome.
    passphrase: Option<String>,
    /// The passphrase the key has now.
    private_key_passphrase: Option<String>,
    /// Encrypt a PKCS 12 so that old programs can read it.
    #[default(false)]
    pkcs12_encryption_compat: bool,
    /// Return bytes.
    #[default(false)]
    raw: bool,
) -> Result<Value> {
    let encoding = Encoding::of(&encoding, &KEY_ENCODINGS)?;
    let key = Private::load(cx, &private_key, private_key_passphrase.as_deref())?;
    let made = key.encode(cx, encoding, passphrase.as_deref(), pkcs12_encryption_compat)?;
    Ok(handed(made, encoding, raw))
}

/// Tell whether a certificate has ended.
///
/// ```console
/// $ salt web1 x509.expired /etc/pki/my.crt
/// ```
#[function]
pub fn expired(
    cx: &Cx,
    /// The certificate: a file or a text.
    certificate: Value,
) -> Result<Value> {
    ending(cx, &certificate, None)
}

/// Tell whether a certificate ends within some days, and what it is for.
///
/// ```console
/// $ salt web1 x509.will_expire /etc/pki/my.crt days=30
/// ```
#[function]
pub fn will_expire(
    cx: &Cx,
    /// The certificate: a file or a text.
    certificate: Value,
    /// How many days from now.
    days: i64,
) -> Result<Value> {
    ending(cx, &certificate, Some(days))
}

fn ending(cx: &Cx, source: &Value, days: Option<i64>) -> Result<Value> {
    let certificate = Certificate::load(cx, source)?;
    let ends = certificate.ends_within(stamp::now(cx), days.unwrap_or_default())?;
    let shown = Dict::new();
    if let Some(days) = days {
        shown.insert("check_days", days);
    }
    if cx.host.exists(Path::new(source.to_str().as_str())).unwrap_or_default() {
        shown.insert("path", source.clone());
    }
    if let Some(name) = certificate.subject.common_name() {
        shown.insert("cn", name);
    }
    shown.insert(if days.is_some() { "will_expire" } else { "expired" }, ends);
    Ok(shown.into())
}

/// Tell whether a certificate ends within some days.
///
/// ```console
/// $ salt web1 x509.expires /etc/pki/my.crt days=7
/// ```
#[function]
pub fn expires(
    cx: &Cx,
    /// The certificate: a file or a text.
    certificate: Value,
    /// How many days from now.
    #[default(0)]
    days: i64,
) -> Result<bool> {
    Certificate::load(cx, &certificate)?.ends_within(stamp::now(cx), days)
}

/// The first piece of PEM in a source.
pub fn pem_of(cx: &Cx, source: &Value, kind: Option<&str>) -> Result<String> {
    let text = String::from_utf8_lossy(&source::load(cx, source)?).into_owned();
    Ok(source::pem_entry(&text, kind)?.written())
}

/// Return the first piece of PEM in every file that matches.
///
/// ```console
/// $ salt web1 x509.get_pem_entries '/etc/pki/*.crt'
/// ```
#[function]
pub fn get_pem_entries(
    cx: &Cx,
    /// Files, with `*`.
    glob_path: String,
) -> Result<Dict> {
    let found = Dict::new();
    for path in file::paths::glob(cx, &glob_path)? {
        if let Ok(pem) = pem_of(cx, &path.as_str().into(), None) {
            found.insert(path, Value::bytes(pem.into_bytes()));
        }
    }
    Ok(found)
}

/// Return the first piece of PEM in a text, written evenly.
///
/// ```console
/// $ salt web1 x509.get_pem_entry "-----BEGIN CERTIFICATE REQUEST-----MIICyzCC..."
/// ```
#[function]
pub fn get_pem_entry(
    cx: &Cx,
    /// The text, or a file.
    text: Value,
    /// What it shall be: `CERTIFICATE`, `PRIVATE KEY` …
    pem_type: Option<String>,
) -> Result<Value> {
    Ok(Value::bytes(pem_of(cx, &text, pem_type.as_deref())?.into_bytes()))
}

/// Return the size of a private key in bits.
///
/// ```console
/// $ salt web1 x509.get_private_key_size /etc/pki/my.key
/// ```
#[function]
pub fn get_private_key_size(
    cx: &Cx,
    /// The key: a file or a text.
    private_key: Value,
    /// Its passphrase.
    passphrase: Option<String>,
) -> Result<Value> {
    Ok(Private::load(cx, &private_key, passphrase.as_deref())?.public.size().into())
}

/// Return the public key of a private key, a certificate or a request.
///
/// ```console
/// $ salt web1 x509.get_public_key /etc/pki/my.crt
/// ```
#[function]
pub fn get_public_key(
    cx: &Cx,
    /// The key, certificate or request: a file or a text.
    key: Value,
    /// The passphrase of a private key.
    passphrase: Option<String>,
    /// Kept for Salt's sake.
    #[default(Value::Null)]
    #[arg(name = "asObj")]
    as_obj: Value,
) -> Result<String> {
    if !as_obj.is_null() {
        old::ignored(&entries! { "asObj" => as_obj }, &["asObj"]);
    }
    Ok(keys::public_of(cx, &key, passphrase.as_deref())?.pem())
}

/// Return what is in a certificate.
///
/// ```console
/// $ salt web1 x509.read_certificate /etc/pki/my.crt
/// ```
#[function]
pub fn read_certificate(
    cx: &Cx,
    /// The certificate: a file or a text.
    certificate: Value,
) -> Result<Dict> {
    Ok(Certificate::load(cx, &certificate)?.shown())
}

/// Return what is in the certificates of every file that matches.
///
/// ```console
/// $ salt web1 x509.read_certificates '/etc/pki/*.crt'
/// ```
#[function]
pub fn read_certificates(
    cx: &Cx,
    /// Files, with `*`.
    glob_path: String,
) -> Result<Dict> {
    let found = Dict::new();
    for path in file::paths::glob(cx, &glob_path)? {
        if let Ok(certificate) = Certificate::load(cx, &path.as_str().into()) {
            found.insert(path, certificate.shown());
        }
    }
    Ok(found)
}

/// Return what is in a revocation list.
///
/// ```console
/// $ salt ca x509.read_crl /etc/pki/my.crl
/// ```
#[function]
pub fn read_crl(
    cx: &Cx,
    /// The list: a file or a text.
    crl: Value,
) -> Result<Dict> {
    Ok(revocation::load(&source::load(cx, &crl)?)?.0.shown())
}

/// Return what is in a certificate request.
///
/// ```console
/// $ salt web1 x509.read_csr /etc/pki/my.csr
/// ```
#[function]
pub fn read_csr(
    cx: &Cx,
    /// The request: a file or a text.
    csr: Value,
) -> Result<Dict> {
    Ok(request::of(cx, &csr)?.shown())
}

/// Tell whether a certificate signed a revocation list.
///
/// ```console
/// $ salt ca x509.verify_crl /etc/pki/my.crl /etc/pki/ca.crt
/// ```
#[function]
pub fn verify_crl(
    cx: &Cx,
    /// The list: a file or a text.
    crl: Value,
    /// The certificate: a file or a text.
    cert: Value,
) -> Result<bool> {
    let (list, _) = revocation::load(&source::load(cx, &crl)?)?;
    list.verify(cx, &Certificate::load(cx, &cert)?)
}

/// Tell whether a private key belongs to a certificate or public key.
///
/// ```console
/// $ salt web1 x509.verify_private_key /etc/pki/my.key /etc/pki/my.crt
/// ```
#[function]
pub fn verify_private_key(
    cx: &Cx,
    /// The key: a file or a text.
    private_key: Value,
    /// The certificate, request or public key: a file or a text.
    public_key: Value,
    /// The passphrase of the key.
    passphrase: Option<String>,
) -> Result<bool> {
    let own = Private::load(cx, &private_key, passphrase.as_deref())?.public;
    Ok(own == keys::public_of(cx, &public_key, None)?)
}

/// Tell whether a key signed a certificate: its own, or another one.
///
/// ```console
/// $ salt web1 x509.verify_signature /etc/pki/my.crt signing_pub_key=/etc/pki/ca.crt
/// ```
#[function]
pub fn verify_signature(
    cx: &Cx,
    /// The certificate: a file or a text.
    certificate: Value,
    /// The key, or a certificate that has it.
    #[default(Value::Null)]
    signing_pub_key: Value,
    /// The passphrase, if it is a private key.
    signing_pub_key_passphrase: Option<String>,
) -> Result<bool> {
    let certificate = Certificate::load(cx, &certificate)?;
    let key = match &signing_pub_key {
        Value::Null => certificate.key.clone(),
        source => keys::public_of(cx, source, signing_pub_key_passphrase.as_deref())?,
    };
    let Certificate { algorithm, signature, signed, .. } = &certificate;
    keys::verify(cx, &key, algorithm, signature, signed)
}

/// Write the first piece of PEM in a text to a file.
///
/// ```console
/// $ salt web1 x509.write_pem "-----BEGIN CERTIFICATE-----MIIG..." path=/etc/pki/my.crt
/// ```
#[function]
pub fn write_pem(
    cx: &Cx,
    /// The text, or a file.
    text: Value,
    /// The file to write.
    path: String,
    /// Kept for Salt's sake.
    #[default(true)]
    overwrite: bool,
    /// What it shall be: `CERTIFICATE`, `PRIVATE KEY` …
    pem_type: Option<String>,
) -> Result<Value> {
    let _ = overwrite;
    let made = pem_of(cx, &text, pem_type.as_deref())?.into_bytes();
    kept(cx, made, Encoding::Pem, Some(&path), false, None)
}

/// The named arguments a certificate is made from, for those who only pass them on.
pub fn is_certificate_argument(name: &str) -> bool {
    const OWN: [&str; 17] = [
        "ca_server",
        "signing_policy",
        "digest",
        "algorithm",
        "signing_private_key",
        "signing_private_key_passphrase",
        "signing_cert",
        "public_key",
        "private_key",
        "private_key_passphrase",
        "csr",
        "subject",
        "serial_number",
        "not_before",
        "not_after",
        "days_valid",
        "nsCertType",
    ];
    OWN.contains(&name) || is_part(name) || extensions::CERTIFICATE.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons() {
        let line = "80:error:11:X509 V3 routines:f:error in extension:../v3.c:48:name=keyUsage";
        assert_eq!(reason_of(line), "error in extension: name=keyUsage");
        assert_eq!(reason_of("plain\n\n"), "plain");
    }

    #[test]
    fn digits() {
        assert_eq!(from_hex("AA:bb").as_deref(), Some(&[0xaa, 0xbb][..]));
        assert_eq!((from_hex("abc"), from_hex("zz"), from_hex("")), (None, None, None));
        assert_eq!(colons(&[1, 0xff]), "01:FF");
    }
}
