//! `ssh_pki`: OpenSSH private keys and certificates.
//!
//! What they look like inside is written and read here ([`wire`], [`keys`]); what needs a key,
//! `x509` has the program `openssl` do. Signing policies and minions that sign for others are `pki`'s,
//! with rules of their own for principals, options and lifetimes ([`policy`]).

pub mod keys;
pub mod policy;
pub mod wire;

use std::path::Path;

use halite_spec::{Cx, Error, Rest, Result, alias, function, host::Write, module};
use halite_value::{Dict, Value, entries};
use jiff::Timestamp;

use self::{
    keys::{NewKey, Private},
    wire::{Certificate, Identity, Options, Public},
};
pub use self::{
    policy::{get_signing_policy, sign_remote_certificate},
    wire::For,
};
use crate::{
    pki::{self, set, text},
    random,
    x509::{colons, from_hex, stamp},
};

module! {
    /// Make and read OpenSSH private keys and certificates.
    "ssh_pki": create_certificate, create_certificate_ssh, create_private_key, encode_private_key,
    expires, get_private_key_size, get_public_key, get_signing_policy, read_certificate,
    sign_remote_certificate, verify_private_key, verify_signature,
}

/// The bytes of a source: a text, or a file.
pub fn load(cx: &Cx, source: &Value) -> Result<Vec<u8>> {
    if let Value::Bytes(bytes) = source {
        return Ok(bytes.to_vec());
    }
    let text = source.to_str();
    let path = Path::new(text.as_str());
    let is_file = !text.contains('\n') && cx.host.is_file(path).unwrap_or_default();
    if is_file && let Some(content) = cx.host.read_if_there(path)? {
        return Ok(content);
    }
    Ok(text.as_bytes().to_vec())
}

fn identity(cx: &Cx, source: &Value) -> Result<Option<Identity>> {
    Ok(Identity::read(&String::from_utf8_lossy(&load(cx, source)?)))
}

/// Reads a certificate.
pub fn certificate_of(cx: &Cx, source: &Value) -> Result<Certificate> {
    match identity(cx, source)? {
        Some(Identity::Certificate(certificate)) => Ok(*certificate),
        Some(Identity::Key(key)) => {
            let class = match key.algo() {
                "rsa" => "RSAPublicKey",
                "ec" => "ECPublicKey",
                _ => "Ed25519PublicKey",
            };
            Err(Error::invalid(format!("The data decoded to a {class}, not SSHCertificate")))
        }
        None => Err(Error::failed("Could not load OpenSSH certificate.")),
    }
}

/// The public key of a public key, a certificate or a private key.
pub fn public_of(cx: &Cx, source: &Value, passphrase: Option<&str>) -> Result<Public> {
    match identity(cx, source)? {
        Some(Identity::Key(key)) => return Ok(key),
        Some(Identity::Certificate(certificate)) => return Ok(certificate.key),
        None => {}
    }
    match Private::load(cx, source, passphrase) {
        Ok(key) => Ok(key.public),
        Err(Error::Raised { .. }) => {
            Err(Error::failed("Could not load key as certificate, public key or private key"))
        }
        Err(error) => Err(error),
    }
}

/// Seconds: a number, or a text such as `30d` or `1.5h`.
pub fn seconds_of(value: &Value) -> Result<i64> {
    let wrong = || Error::raised("ValueError", format!("Invalid time string format: {value}"));
    let Value::Str(text) = value else {
        return value.to_int().ok_or_else(wrong);
    };
    let (number, factor) = match text.chars().last() {
        Some('s') => (text.strip_suffix('s'), 1.0),
        Some('m') => (text.strip_suffix('m'), 60.0),
        Some('h') => (text.strip_suffix('h'), 3600.0),
        Some('d') => (text.strip_suffix('d'), 86_400.0),
        _ => (Some(text.as_str()), 1.0),
    };
    let number = number.unwrap_or_default();
    let plain = number.chars().all(|letter| letter.is_ascii_digit() || letter == '.');
    let number = number.parse::<f64>().ok().filter(|_| plain).ok_or_else(wrong)?;
    Ok((number * factor) as i64)
}

/// A serial number: a number, or hexadecimal digits.
pub fn serial_of(value: &Value) -> Result<u64> {
    let wrong = || Error::failed(format!("Could not parse serial number {value}"));
    let number = match value {
        Value::Str(text) => {
            let digits = text.replace(':', "");
            let digits = if digits.len() % 2 == 1 { format!("0{digits}") } else { digits };
            let bytes = from_hex(&digits).ok_or_else(wrong)?;
            let first = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
            let bytes = bytes.get(first..).unwrap_or_default();
            (bytes.len() <= 8)
                .then(|| bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
        }
        _ => value.to_str().parse().ok(),
    };
    number.ok_or_else(|| Error::raised("ValueError", "serial must be between 0 and 2**64"))
}

/// `{force-command: id, verify-required: true, x: false}`
pub fn options_of(given: Option<Value>) -> Result<Options> {
    let Some(given) = given.filter(Value::truthy) else { return Ok(Vec::new()) };
    let Value::Dict(given) = given else {
        return Err(Error::invalid(
            "critical_options and extensions must be mappings of names to values",
        ));
    };
    let kept = given
        .entries()
        .into_iter()
        .filter(|(_, value)| !value.is_null() && *value != Value::Bool(false));
    let kept = kept.map(|(name, value)| {
        let value = match value {
            Value::Bool(true) => None,
            value => Some(value.to_str().to_string()),
        };
        (name.to_str().to_string(), value)
    });
    Ok(kept.collect())
}

fn shown_options(options: &Options) -> Dict {
    let mut sorted: Vec<_> = options.iter().collect();
    sorted.sort();
    let value = |value: &Option<String>| value.as_ref().map_or(Value::Bool(true), Value::from);
    sorted.into_iter().map(|(name, own)| (name.as_str(), value(own))).collect()
}

/// The arguments a certificate is made from.
pub const ARGUMENTS: [&str; 17] = [
    "cert_type",
    "signing_private_key",
    "signing_private_key_passphrase",
    "public_key",
    "private_key",
    "private_key_passphrase",
    "serial_number",
    "not_before",
    "not_after",
    "ttl",
    "critical_options",
    "extensions",
    "valid_principals",
    "all_principals",
    "key_id",
    "copypath",
    "max_ttl",
];

/// A certificate to be signed, and the key for it.
pub struct Built {
    pub certificate: Certificate,
    pub signer: Private,
}

/// What a certificate is for.
pub fn kind_of(given: &Dict) -> Result<For> {
    let kind = text(given, "cert_type").unwrap_or_else(|| "None".to_owned());
    For::named(&kind).ok_or_else(|| {
        Error::invalid(format!("Cert type needs to be either `user` or `host`, got '{kind}'"))
    })
}

/// Who a certificate is for; nobody named means everybody, which has to be said.
pub fn principals_of(given: &Dict) -> Result<Vec<String>> {
    let names = match set(given, "valid_principals") {
        None => Vec::new(),
        Some(Value::Str(one)) => vec![one.to_string()],
        Some(names) => {
            let names = names.items_of_sequence().unwrap_or_default();
            names.iter().map(|name| name.to_str().to_string()).collect()
        }
    };
    if names.is_empty() && !set(given, "all_principals").is_some_and(|all| all.truthy()) {
        return Err(Error::invalid(
            "Must either set all_principals to true or specify principals to allow",
        ));
    }
    Ok(names)
}

fn seconds(time: Timestamp) -> u64 {
    u64::try_from(time.as_second()).unwrap_or_default()
}

/// Makes a certificate from arguments, policy included; it lacks the signature.
pub fn build(cx: &Cx, given: &Dict) -> Result<Built> {
    let value = |name: &str| set(given, name);
    for name in given.keys() {
        let name = name.to_str();
        if !ARGUMENTS.contains(&name.as_str()) && !name.starts_with("__pub_") {
            return Err(Error::raised(
                "TypeError",
                format!("build_crt() got an unexpected keyword argument '{name}'"),
            ));
        }
    }
    let no_signer = || Error::invalid(pki::NO_SIGNER);
    value("signing_private_key").ok_or_else(no_signer)?;
    let kind = kind_of(given)?;
    let principals = principals_of(given)?;
    let key = match value("public_key") {
        Some(public) => match public_of(cx, &public, None) {
            Err(Error::Failed(_)) => {
                return Err(Error::failed("Could not load OpenSSH public key."));
            }
            key => key?,
        },
        None => {
            opened(cx, given, "private_key")?
                .ok_or_else(|| {
                    Error::invalid("Need public_key or private_key to derive public key to sign")
                })?
                .public
        }
    };
    let signer = opened(cx, given, "signing_private_key")?.ok_or_else(no_signer)?;
    let (after, before) = span(cx, given, kind)?;
    if after >= before {
        return Err(Error::raised("ValueError", "valid_after must be earlier than valid_before"));
    }
    let serial = match value("serial_number") {
        Some(serial) => serial_of(&serial)?,
        // Without the top bit: some programs read it as a sign.
        None => {
            let raw: [u8; 8] = random::bytes(cx, 8)?.try_into().unwrap_or_default();
            u64::from_be_bytes(raw) >> 1
        }
    };
    let certificate = Certificate {
        key,
        nonce: random::bytes(cx, 32)?,
        serial,
        kind,
        key_id: text(given, "key_id").unwrap_or_default(),
        principals,
        after,
        before,
        critical: options_of(value("critical_options"))?,
        extensions: options_of(value("extensions"))?,
        signer: signer.public.clone(),
        signature: Vec::new(),
    };
    Ok(Built { certificate, signer })
}

/// What a key cannot be opened for, as other functions report it.
fn plain(error: Error) -> Error {
    match error {
        Error::Raised { class, message, .. } if class == "PrivDeserializationError" => {
            Error::Failed(message)
        }
        Error::Raised { message, .. } => Error::Invalid(message),
        error => error,
    }
}

/// Opens the key an argument names.
fn opened(cx: &Cx, given: &Dict, name: &str) -> Result<Option<Private>> {
    pki::key(cx, given, name, Private::load).map_err(plain)
}

/// From when to when a certificate counts.
fn span(cx: &Cx, given: &Dict, kind: For) -> Result<(u64, u64)> {
    let value = |name: &str| set(given, name);
    let now = stamp::now(cx);
    let after = match value("not_before") {
        Some(time) => stamp::parse(&time.to_str()).map_err(value_error)?,
        None => now,
    };
    let most = value("max_ttl").map(|most| seconds_of(&most)).transpose()?;
    let before = match (value("not_after"), value("ttl")) {
        (Some(time), _) => stamp::parse(&time.to_str()).map_err(value_error)?.as_second(),
        (None, Some(ttl)) => now.as_second().saturating_add(seconds_of(&ttl)?),
        (None, None) => {
            let usual = if kind == For::Host { 30 * 86_400 } else { 86_400 };
            now.as_second().saturating_add(most.unwrap_or(usual))
        }
    };
    let before = match most {
        Some(most) => before.min(after.as_second().saturating_add(most)),
        None => before,
    };
    Ok((seconds(after), u64::try_from(before).unwrap_or_default()))
}

fn value_error(error: Error) -> Error {
    Error::raised("ValueError", error.to_string())
}

impl Built {
    pub fn sign(self, cx: &Cx) -> Result<Certificate> {
        let signature = self.signer.sign(cx, &self.certificate.body())?;
        Ok(Certificate { signature, ..self.certificate })
    }
}

fn refuse_file(cx: &Cx, path: Option<&String>, overwrite: bool) -> Result<()> {
    match path {
        Some(path) if !overwrite && cx.host.exists(Path::new(path))? => {
            Err(Error::failed(format!("The file at {path} exists and overwrite was set to false")))
        }
        _ => Ok(()),
    }
}

/// Make an OpenSSH certificate and return it, or write it to a file.
///
/// ```console
/// $ salt web1 ssh_pki.create_certificate cert_type=host private_key=/etc/ssh/ssh_host_rsa_key \
///     signing_private_key=/etc/pki/ssh/ca.key valid_principals='[web1.example]'
/// ```
#[function]
pub fn create_certificate(
    cx: &Cx,
    /// The minion that signs; it is asked through the master.
    ca_server: Option<String>,
    /// The name of a set of rules in `ssh_signing_policies`.
    signing_policy: Option<String>,
    /// The file to write.
    path: Option<String>,
    /// Write over a file that is there.
    #[default(false)]
    overwrite: bool,
    /// Return bytes.
    #[default(false)]
    raw: bool,
    /// `cert_type` (`user` or `host`), keys (`private_key` or `public_key`, `signing_private_key`
    /// and their passphrases), `serial_number`, `not_before`, `not_after`, `ttl`,
    /// `critical_options`, `extensions`, `valid_principals`, `all_principals`, `key_id`, `copypath`.
    rest: Rest,
) -> Result<Value> {
    refuse_file(cx, path.as_ref(), overwrite)?;
    let given = rest.kwargs.entries().into_iter();
    let given: Dict = given.filter(|(name, _)| !name.to_str().starts_with("__pub_")).collect();
    let made: Certificate = pki::make(cx, ca_server.as_deref(), signing_policy.as_deref(), &given)?;
    let line = made.line();
    Ok(match path {
        Some(path) => {
            cx.host.write(Path::new(&path), line.as_bytes(), &Write::default())?;
            format!("Certificate written to {path}").into()
        }
        None if raw => Value::bytes(line.into_bytes()),
        None => line.into(),
    })
}

alias! { create_certificate_ssh = create_certificate }

/// Make a private key and return it with its public key, or write both to files.
///
/// ```console
/// $ salt web1 ssh_pki.create_private_key algo=ed25519 path=/root/.ssh/id_ed25519
/// ```
#[function]
pub fn create_private_key(
    cx: &Cx,
    #[group] wanted: NewKey,
    /// The file to write.
    path: Option<String>,
    /// What the name of the public key's file has besides; False for no such file.
    #[default(Value::from(".pub"))]
    pubkey_suffix: Value,
    /// Write over a file that is there.
    #[default(false)]
    overwrite: bool,
    /// Return the private key alone, as bytes.
    #[default(false)]
    raw: bool,
) -> Result<Value> {
    refuse_file(cx, path.as_ref(), overwrite)?;
    let key = wanted.make(cx)?;
    let made = key.encode(cx, wanted.passphrase.as_deref())?;
    if let Some(path) = path {
        let mode = Write { mode: Some(0o600), ..Write::default() };
        cx.host.write(Path::new(&path), &made, &mode)?;
        if pubkey_suffix.truthy() {
            let public = format!("{path}{pubkey_suffix}");
            cx.host.write(Path::new(&public), key.public.line().as_bytes(), &mode)?;
        }
        return Ok(format!("Private key written to {path}").into());
    }
    if raw {
        return Ok(Value::bytes(made));
    }
    Ok(entries! {
        "private_key" => String::from_utf8_lossy(&made).into_owned(),
        "public_key" => key.public.line(),
    }
    .into())
}

/// Write a private key anew, with another passphrase or none.
///
/// ```console
/// $ salt web1 ssh_pki.encode_private_key /root/.ssh/id_rsa passphrase=hunter1
/// ```
#[function]
pub fn encode_private_key(
    cx: &Cx,
    /// The key: a file or a text.
    private_key: Value,
    /// Its passphrase.
    private_key_passphrase: Option<String>,
    /// The passphrase it shall have.
    passphrase: Option<String>,
    /// Return bytes.
    #[default(false)]
    raw: bool,
) -> Result<Value> {
    let key = Private::load(cx, &private_key, private_key_passphrase.as_deref()).map_err(plain)?;
    let made = key.encode(cx, passphrase.as_deref())?;
    Ok(match raw {
        true => Value::bytes(made),
        false => String::from_utf8_lossy(&made).into_owned().into(),
    })
}

/// Tell whether a certificate has ended, or will have ended after a while.
///
/// ```console
/// $ salt web1 ssh_pki.expires /etc/ssh/ssh_host_rsa_key-cert.pub ttl=7d
/// ```
#[function]
pub fn expires(
    cx: &Cx,
    /// The certificate: a file or a text.
    certificate: Value,
    /// How long from now: seconds, or `30d`, `1.5h` …
    #[default(Value::from(0))]
    ttl: Value,
) -> Result<bool> {
    ends_within(cx, &certificate_of(cx, &certificate)?, &ttl)
}

/// Tells whether a certificate ends within a time.
pub fn ends_within(cx: &Cx, certificate: &Certificate, ttl: &Value) -> Result<bool> {
    let then = stamp::now(cx).as_second().saturating_add(seconds_of(ttl)?);
    Ok(certificate.before <= u64::try_from(then).unwrap_or_default())
}

/// Return the size of a private key in bits.
///
/// ```console
/// $ salt web1 ssh_pki.get_private_key_size /root/.ssh/id_rsa
/// ```
#[function]
pub fn get_private_key_size(
    cx: &Cx,
    /// The key: a file or a text.
    private_key: Value,
    /// Its passphrase.
    passphrase: Option<String>,
) -> Result<Value> {
    let key = Private::load(cx, &private_key, passphrase.as_deref()).map_err(plain)?;
    Ok(key.public.size().into())
}

/// Return the public key of a private key or a certificate.
///
/// ```console
/// $ salt web1 ssh_pki.get_public_key /root/.ssh/id_rsa
/// ```
#[function]
pub fn get_public_key(
    cx: &Cx,
    /// The key or certificate: a file or a text.
    key: Value,
    /// The passphrase of a private key.
    passphrase: Option<String>,
) -> Result<String> {
    Ok(public_of(cx, &key, passphrase.as_deref())?.line())
}

fn time_shown(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|time| Timestamp::from_second(time).ok());
    time.map_or_else(|| "forever".to_owned(), stamp::shown)
}

/// Return what is in a certificate.
///
/// ```console
/// $ salt web1 ssh_pki.read_certificate /etc/ssh/ssh_host_rsa_key-cert.pub
/// ```
#[function]
pub fn read_certificate(
    cx: &Cx,
    /// The certificate: a file or a text.
    certificate: Value,
) -> Result<Dict> {
    let own = certificate_of(cx, &certificate)?;
    let digits = own.serial.to_be_bytes();
    let first = digits.iter().position(|byte| *byte != 0).unwrap_or(7);
    let principals = match own.principals.is_empty() {
        true => Value::from("all"),
        false => Value::list(own.principals.iter().map(String::as_str)),
    };
    let prints = |key: &Public| {
        let (sha256, md5) = key.fingerprints();
        entries! { "sha256" => sha256, "md5" => md5 }
    };
    Ok(entries! {
        "cert_type" => own.kind.name(),
        "valid_principals" => principals,
        "key_id" => own.key_id.as_str(),
        "key_size" => own.key.size(),
        "key_type" => own.key.algo(),
        "serial_number" => colons(digits.get(first..).unwrap_or_default()),
        "issuer_public_key" => own.signer.line(),
        "not_before" => time_shown(own.after),
        "not_after" => time_shown(own.before),
        "public_key" => own.key.line(),
        "critical_options" => shown_options(&own.critical),
        "extensions" => shown_options(&own.extensions),
        "issuer_public_key_fingerprints" => prints(&own.signer),
        "public_key_fingerprints" => prints(&own.key),
    })
}

/// Tell whether a private key belongs to a public key or a certificate.
///
/// ```console
/// $ salt web1 ssh_pki.verify_private_key /root/.ssh/id_rsa /root/.ssh/id_rsa.pub
/// ```
#[function]
pub fn verify_private_key(
    cx: &Cx,
    /// The private key: a file or a text.
    private_key: Value,
    /// The public key or certificate: a file or a text.
    public_key: Value,
    /// The passphrase of the private key.
    passphrase: Option<String>,
) -> Result<bool> {
    let public = public_of(cx, &public_key, None)?;
    let key = Private::load(cx, &private_key, passphrase.as_deref()).map_err(plain)?;
    Ok(key.public == public)
}

/// Tell whether a certificate was signed with a key.
///
/// ```console
/// $ salt web1 ssh_pki.verify_signature /etc/ssh/ssh_host_rsa_key-cert.pub /etc/pki/ssh/ca.pub
/// ```
#[function]
pub fn verify_signature(
    cx: &Cx,
    /// The certificate: a file or a text.
    certificate: Value,
    /// The key that signed, or its private key: a file or a text.
    signing_pub_key: Value,
    /// The passphrase of a private key.
    signing_pub_key_passphrase: Option<String>,
) -> Result<bool> {
    let own = certificate_of(cx, &certificate)?;
    let key = public_of(cx, &signing_pub_key, signing_pub_key_passphrase.as_deref())?;
    Ok(own.signer == key && keys::verify(cx, &key, &own.signature, &own.body())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        let check = |text: &str, expected: i64| {
            assert_eq!(seconds_of(&text.into()).unwrap(), expected, "{text}");
        };
        check("3600", 3600);
        check("30s", 30);
        check("1.5h", 5400);
        check("2d", 172_800);
        for wrong in ["", "x", "1w", "1 d", "1D", "-1d", "infd"] {
            let error = seconds_of(&wrong.into()).unwrap_err();
            assert_eq!(error.to_string(), format!("Invalid time string format: {wrong}"));
        }
    }

    #[test]
    fn serials() {
        let check = |value: Value, expected: u64| {
            assert_eq!(serial_of(&value).unwrap(), expected, "{value}");
        };
        check(3_735_928_559i64.into(), 0xdead_beef);
        check("DE:AD:BE:EF".into(), 0xdead_beef);
        check("deadbeef".into(), 0xdead_beef);
        check("00:ff:ff:ff:ff:ff:ff:ff:ff".into(), u64::MAX);
        let error = |value: Value| serial_of(&value).unwrap_err().to_string();
        assert_eq!(error("zz".into()), "Could not parse serial number zz");
        assert_eq!(error("010000000000000000".into()), "serial must be between 0 and 2**64");
    }

    #[test]
    fn options() {
        let given = entries! {
            "force-command" => "id", "verify-required" => true, "off" => false, "n" => 5,
        };
        let expected: Options = vec![
            ("force-command".into(), Some("id".into())),
            ("verify-required".into(), None),
            ("n".into(), Some("5".into())),
        ];
        assert_eq!(options_of(Some(given.into())).unwrap(), expected);
        assert!(options_of(Some(Value::list(["permit-pty"]))).is_err());
    }
}
