//! `x509`: private keys, certificate requests and certificates.
//!
//! Everything is made and read by the program `openssl` (decision 0012). It is handed its
//! configuration on standard input and prints what it makes, so nothing secret lies in a scratch
//! file: keys are therefore given as files, as trees do. A certificate is judged by making the one
//! wanted and comparing the two ([`Shown`]): subject, issuer, key and extensions, whatever these are.

use std::path::Path;

use halite_spec::{Command, Cx, Error, Rest, Result, function, host::Write, module};
use halite_value::{Dict, Value};

module! {
    /// Make private keys, certificate requests and certificates.
    "x509": create_certificate, create_csr, create_private_key, expires, get_pem_entry,
    get_private_key_size, get_public_key, verify_private_key, write_pem,
}

const NO_SOURCE: &str = "Could not load provided source. You need to pass an existing file, \
                         (PEM|hex|base64)-encoded string or raw bytes.";

fn openssl(cx: &Cx, words: &[&str], input: &[u8], secrets: &[(&str, &str)]) -> Result<Vec<u8>> {
    if cx.host.which("openssl").is_none() {
        return Err(Error::failed("Unable to find the program openssl: is it installed?"));
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
    let said = output.stderr_text();
    let reason = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("openssl failed");
    Err(Error::failed(reason_of(reason.trim())))
}

/// The words of `80:error:11:X509 V3 routines:f:error in extension:file.c:48:name=keyUsage`.
fn reason_of(line: &str) -> String {
    let fields: Vec<&str> = line.splitn(9, ':').collect();
    match *fields {
        [_, "error", _, _, _, reason, _, _] => reason.to_owned(),
        [_, "error", _, _, _, reason, _, _, data] => format!("{reason}: {data}"),
        _ => line.to_owned(),
    }
}

fn text_of(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A PEM text, or the content of the file named.
fn load(cx: &Cx, source: &str) -> Result<Vec<u8>> {
    if source.contains("-----BEGIN ") {
        return Ok(source.as_bytes().to_vec());
    }
    let content = match source.is_empty() {
        true => None,
        false => cx.host.read_if_there(Path::new(source))?,
    };
    content.ok_or_else(|| Error::failed(NO_SOURCE))
}

/// What a private key is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// `rsa`, `ec`, `ed25519` or `ed448`.
    pub algo: String,
    /// In bits; `None` where the algorithm has but one size.
    pub size: Option<i64>,
}

impl Key {
    /// The size a new key has unless told otherwise.
    pub fn default_size(algo: &str) -> Option<i64> {
        match algo {
            "rsa" => Some(2048),
            "ec" => Some(256),
            _ => None,
        }
    }

    /// Reads what `openssl pkey -text_pub` prints.
    fn read(text: &str) -> Option<Self> {
        let first = text.lines().find(|line| line.contains("Public-Key:"))?;
        let size = first.split_once('(').and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
        let algo = if text.contains("Modulus:") {
            "rsa"
        } else if first.starts_with("ED25519") {
            "ed25519"
        } else if first.starts_with("ED448") {
            "ed448"
        } else {
            "ec"
        };
        let size = if algo.starts_with("ed") { None } else { size };
        Some(Self { algo: algo.into(), size })
    }

    /// Looks at a private key; an error if it is none, or the passphrase is wrong.
    pub fn of(cx: &Cx, pem: &[u8], passphrase: Option<&str>) -> Result<Self> {
        // Without the option an encrypted key would ask the terminal.
        let secrets = [("HALITE_PASSPHRASE", passphrase.unwrap_or_default())];
        let words = ["pkey", "-noout", "-text_pub", "-passin", "env:HALITE_PASSPHRASE"];
        let text = text_of(openssl(cx, &words, pem, &secrets)?);
        Self::read(&text).ok_or_else(|| Error::failed("Could not load PEM-encoded private key."))
    }

    /// Makes a new one, as PEM (PKCS 8).
    pub fn make(&self, cx: &Cx, passphrase: Option<&str>) -> Result<String> {
        let size = self.size.or_else(|| Self::default_size(&self.algo));
        let mut words: Vec<String> = vec!["genpkey".into(), "-algorithm".into()];
        match (self.algo.as_str(), size) {
            ("rsa", Some(size)) => {
                words.extend(["RSA".into(), "-pkeyopt".into(), format!("rsa_keygen_bits:{size}")]);
            }
            ("ec", Some(size @ (256 | 384 | 521))) => words.extend([
                "EC".into(),
                "-pkeyopt".into(),
                format!("ec_paramgen_curve:P-{size}"),
                "-pkeyopt".into(),
                "ec_param_enc:named_curve".into(),
            ]),
            ("ed25519" | "ed448", _) => words.push(self.algo.to_uppercase()),
            ("ec", _) => return Err(Error::failed("Invalid keysize. Valid values: 256, 384, 521")),
            (other, _) => {
                return Err(Error::failed(format!(
                    "Invalid algorithm specified for generating private key: {other}. Valid: rsa, \
                     ec, ed25519, ed448"
                )));
            }
        }
        let secrets = [("HALITE_PASSPHRASE", passphrase.unwrap_or_default())];
        if passphrase.is_some() {
            words.extend(["-aes-256-cbc".into(), "-pass".into(), "env:HALITE_PASSPHRASE".into()]);
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        Ok(text_of(openssl(cx, &words, b"", &secrets)?))
    }
}

/// The parts of a subject, in the order they are written.
const SUBJECT: [(&str, &str); 12] = [
    ("C", "C"),
    ("ST", "ST"),
    ("SP", "ST"),
    ("L", "L"),
    ("STREET", "street"),
    ("O", "O"),
    ("OU", "OU"),
    ("GN", "GN"),
    ("SN", "SN"),
    ("CN", "CN"),
    ("Email", "emailAddress"),
    ("serialNumber", "serialNumber"),
];

/// The extensions that may be given, in the order they are written: Salt's name is OpenSSL's.
const EXTENSIONS: [(&str, &str); 12] = [
    ("basicConstraints", "Basic Constraints"),
    ("keyUsage", "Key Usage"),
    ("extendedKeyUsage", "Extended Key Usage"),
    ("subjectKeyIdentifier", "Subject Key Identifier"),
    ("authorityKeyIdentifier", "Authority Key Identifier"),
    ("issuerAltName", "Issuer Alternative Name"),
    ("authorityInfoAccess", "Authority Information Access"),
    ("subjectAltName", "Subject Alternative Name"),
    ("crlDistributionPoints", "CRL Distribution Points"),
    ("certificatePolicies", "Certificate Policies"),
    ("nameConstraints", "Name Constraints"),
    ("nsComment", "Netscape Comment"),
];

/// A certificate or a request as wanted: the arguments of the functions and states.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub given: Dict,
}

impl Wanted {
    fn text(&self, name: &str) -> Option<String> {
        let value = self.given.get(name).filter(Value::truthy)?;
        Some(value.to_string())
    }

    fn days(&self, name: &str, preset: i64) -> i64 {
        self.given.get(name).and_then(|days| days.to_int()).unwrap_or(preset)
    }

    /// Refuses what is not made here rather than leaving it out.
    fn check(&self) -> Result<()> {
        for name in ["ca_server", "signing_policy", "not_before", "not_after", "public_key"] {
            if self.text(name).is_some() {
                return Err(Error::failed(format!(
                    "x509: the argument '{name}' is not supported yet"
                )));
            }
        }
        match self.text("encoding").as_deref() {
            None | Some("pem") => Ok(()),
            Some(other) => {
                Err(Error::failed(format!("x509: the encoding '{other}' is not supported yet")))
            }
        }
    }

    /// `/O=Org/CN=x`
    fn subject(&self) -> String {
        let source = match self.given.get("subject") {
            Some(Value::Dict(subject)) => subject,
            _ => self.given.clone(),
        };
        let mut all = String::new();
        for (name, short) in SUBJECT {
            let Some(value) = source.get(name).filter(Value::truthy) else { continue };
            let value = value.to_string().replace('\\', "\\\\").replace('/', "\\/");
            all.push_str(&format!("/{short}={value}"));
        }
        if all.is_empty() { "/".into() } else { all }
    }

    /// The configuration with its extensions.
    fn configuration(&self) -> String {
        let mut text = "[req]\ndistinguished_name=dn\nstring_mask=utf8only\nprompt=no\n[dn]\n\
                        [ext]\n"
            .to_owned();
        for (name, _) in EXTENSIONS {
            let Some(value) = self.given.get(name).filter(Value::truthy) else { continue };
            let value = match value.items_of_sequence() {
                Some(items) => items.iter().map(Value::to_string).collect::<Vec<_>>().join(","),
                None => value.to_string(),
            };
            // Trees write `critical CA:true`, too.
            let value = match value.trim().strip_prefix("critical") {
                Some(rest) => format!("critical, {}", rest.trim_start_matches([',', ' '])),
                None => value,
            };
            // A line is one setting, and a dollar sign would be a variable.
            let value = value.replace(['\n', '\r'], " ").replace('$', "\\$");
            text.push_str(&format!("{name}={value}\n"));
        }
        text
    }

    fn has_extensions(&self) -> bool {
        EXTENSIONS.iter().any(|(name, _)| self.given.get(*name).is_some_and(|value| value.truthy()))
    }

    /// A key's file.
    fn key_file(&self, cx: &Cx, name: &str) -> Result<Option<String>> {
        let Some(path) = self.text(name) else { return Ok(None) };
        if path.contains("-----BEGIN ") {
            return Err(Error::failed(format!("x509: '{name}' has to be the name of a file")));
        }
        match cx.host.exists(Path::new(&path))? {
            true => Ok(Some(path)),
            false => Err(Error::failed(NO_SOURCE)),
        }
    }

    fn secrets(&self) -> [(&'static str, String); 2] {
        let text = |name: &str| self.text(name).unwrap_or_default();
        [
            ("HALITE_PASSPHRASE", text("private_key_passphrase")),
            ("HALITE_SIGNING_PASSPHRASE", text("signing_private_key_passphrase")),
        ]
    }

    fn run(&self, cx: &Cx, words: &[String]) -> Result<String> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let secrets = self.secrets();
        let secrets: Vec<(&str, &str)> =
            secrets.iter().map(|(name, value)| (*name, value.as_str())).collect();
        Ok(text_of(openssl(cx, &words, self.configuration().as_bytes(), &secrets)?))
    }

    /// Makes a request, as PEM.
    pub fn request(&self, cx: &Cx) -> Result<String> {
        self.check()?;
        let key = self.key_file(cx, "private_key")?.ok_or_else(|| Error::failed(NO_SOURCE))?;
        let digest = format!("-{}", self.text("digest").unwrap_or_else(|| "sha256".into()));
        let words = ["req", "-new", "-utf8", "-config", "/dev/stdin", "-key", &key, "-passin"];
        let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        words.extend(["env:HALITE_PASSPHRASE".into(), "-subj".into(), self.subject(), digest]);
        if self.has_extensions() {
            words.extend(["-reqexts".into(), "ext".into()]);
        }
        self.run(cx, &words)
    }

    /// Makes a certificate, as PEM: signed by itself, or by `signing_cert`.
    pub fn certificate(&self, cx: &Cx) -> Result<String> {
        self.check()?;
        let signing = self.key_file(cx, "signing_private_key")?;
        let signing = signing.ok_or_else(|| Error::failed(NO_SOURCE))?;
        let issuer = self.key_file(cx, "signing_cert")?;
        let request = self.key_file(cx, "csr")?;
        let key = self.key_file(cx, "private_key")?.unwrap_or_else(|| signing.clone());
        let digest = format!("-{}", self.text("digest").unwrap_or_else(|| "sha256".into()));
        let days = self.days("days_valid", 365).to_string();
        let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let mut words = match (&request, &issuer) {
            (Some(request), Some(issuer)) => own(&[
                "x509",
                "-req",
                "-in",
                request,
                "-CA",
                issuer,
                "-CAkey",
                &signing,
                "-passin",
                "env:HALITE_SIGNING_PASSPHRASE",
                "-extfile",
                "/dev/stdin",
                "-extensions",
                "ext",
            ]),
            (Some(_), None) => {
                return Err(Error::failed("x509: a request is signed with signing_cert only"));
            }
            (None, issuer) => {
                let mut words = own(&[
                    "req",
                    "-new",
                    "-x509",
                    "-utf8",
                    "-config",
                    "/dev/stdin",
                    "-extensions",
                    "ext",
                    "-key",
                    &key,
                    "-passin",
                    "env:HALITE_PASSPHRASE",
                    "-subj",
                ]);
                words.push(self.subject());
                if let Some(issuer) = issuer {
                    words.extend(own(&["-CA", issuer, "-CAkey", &signing]));
                } else if key != signing {
                    return Err(Error::failed("x509: another key signs with signing_cert only"));
                }
                words
            }
        };
        words.extend(own(&["-days", &days, &digest]));
        if let Some(serial) = self.text("serial_number") {
            let serial = serial.replace(':', "");
            words.extend(own(&["-set_serial", &format!("0x{serial}")]));
        }
        self.run(cx, &words)
    }
}

/// What can be compared of a certificate or a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// `CN=x,O=y`
    pub subject: String,
    pub issuer: String,
    pub key: String,
    /// Name and text.
    pub extensions: Vec<(String, String)>,
}

impl Shown {
    /// Looks at a certificate (`x509`) or a request (`req`).
    pub fn of(cx: &Cx, kind: &str, pem: &[u8]) -> Result<Self> {
        let words = [kind, "-noout", "-text", "-pubkey", "-nameopt", "RFC2253"];
        Ok(Self::read(&text_of(openssl(cx, &words, pem, &[])?)))
    }

    fn read(text: &str) -> Self {
        let mut shown = Self::default();
        let mut inside = false;
        let mut depth = 0;
        let mut in_key = false;
        for line in text.lines() {
            let trimmed = line.trim();
            let indent = line.len() - line.trim_start().len();
            if let Some(name) = trimmed.strip_prefix("Subject: ") {
                shown.subject = name.to_owned();
            } else if let Some(name) = trimmed.strip_prefix("Issuer: ") {
                shown.issuer = name.to_owned();
            } else if trimmed == "-----BEGIN PUBLIC KEY-----" || in_key {
                in_key = trimmed != "-----END PUBLIC KEY-----";
                shown.key.push_str(trimmed);
            } else if trimmed == "X509v3 extensions:" || trimmed == "Requested Extensions:" {
                inside = true;
                depth = indent;
            } else if inside && indent <= depth {
                inside = false;
            } else if inside && indent == depth + 4 {
                let (name, critical) = trimmed.split_once(':').unwrap_or((trimmed, ""));
                let name = name.trim_start_matches("X509v3 ");
                let known = EXTENSIONS.iter().find(|(_, title)| *title == name);
                let name = known.map_or(name, |(own, _)| own).to_owned();
                shown.extensions.push((name, critical.trim().to_owned()));
            } else if let Some((_, text)) = shown.extensions.last_mut()
                && inside
            {
                text.push('\n');
                text.push_str(trimmed);
            }
        }
        shown
    }

    /// What has to change for this one to become the other.
    pub fn differences(&self, wanted: &Self) -> Dict {
        let changes = Dict::new();
        if self.subject != wanted.subject {
            changes.insert("subject_name", wanted.subject.as_str());
        }
        if self.issuer != wanted.issuer {
            changes.insert("issuer_name", wanted.issuer.as_str());
        }
        if self.key != wanted.key {
            changes.insert("public_key", true);
        }
        let names = |own: &Self, other: &Self, differ: bool| {
            let find = |name: &str| other.extensions.iter().find(|(own, _)| own == name);
            let all = own.extensions.iter().filter(|(name, text)| match find(name) {
                Some((_, other)) => differ && other != text,
                None => !differ,
            });
            Value::list(all.map(|(name, _)| name.clone()).collect::<Vec<_>>())
        };
        let sorted = |shown: &Self| {
            let mut all = shown.extensions.clone();
            all.sort();
            all
        };
        if sorted(self) != sorted(wanted) {
            let extensions = Dict::new();
            extensions.insert("added", names(wanted, self, false));
            extensions.insert("changed", names(wanted, self, true));
            extensions.insert("removed", names(self, wanted, false));
            changes.insert("extensions", extensions);
        }
        changes
    }
}

/// Tells whether a certificate ends within these days.
pub fn ends_within(cx: &Cx, pem: &[u8], days: i64) -> Result<bool> {
    Shown::of(cx, "x509", pem)?;
    let seconds = (days * 24 * 60 * 60).to_string();
    // Only the program's own «no» counts: one that could not be run says nothing.
    let words = ["openssl", "x509", "-noout", "-checkend", &seconds];
    let mut command = Command::line(words).query();
    command.stdin = Some(pem.to_vec());
    Ok(!cx.host.run(&command)?.ok())
}

/// The first piece of PEM in a text (of a kind, if one is asked for), written evenly.
pub fn pem_entry(text: &str, kind: Option<&str>) -> Result<String> {
    let missing = || {
        let shown = kind.map_or("PEM".to_owned(), |kind| format!("PEM type {kind}"));
        Error::failed(format!("No valid {shown} found in the text"))
    };
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("-----BEGIN ") {
        let (own, body) = after.split_once("-----").ok_or_else(missing)?;
        let end = format!("-----END {own}-----");
        let (body, more) = body.split_once(&end).ok_or_else(missing)?;
        if kind.is_none_or(|kind| kind == own) {
            // Texts from pillars have lost their lines now and then.
            let (head, data) = body.rsplit_once("\n\n").unwrap_or(("", body));
            let data: Vec<char> = data.chars().filter(|letter| !letter.is_whitespace()).collect();
            let lines: Vec<String> =
                data.chunks(64).map(|line| line.iter().collect::<String>()).collect();
            let head = match head.trim() {
                "" => String::new(),
                head => format!("{head}\n\n"),
            };
            return Ok(format!("-----BEGIN {own}-----\n{head}{}\n{end}\n", lines.join("\n")));
        }
        rest = more;
    }
    Err(missing())
}

/// Writes what was made, if a path is given, and says so.
fn handed(cx: &Cx, made: String, what: &str, path: Option<&String>, mode: u32) -> Result<String> {
    let Some(path) = path else { return Ok(made) };
    let how = Write { mode: Some(mode), ..Write::default() };
    cx.host.write(Path::new(path), made.as_bytes(), &how)?;
    Ok(format!("{what} written to {path}"))
}

/// Make a private key and return it, or write it to a file.
///
/// ```console
/// $ salt web1 x509.create_private_key algo=ec keysize=384
/// ```
#[function]
pub fn create_private_key(
    cx: &Cx,
    /// `rsa`, `ec`, `ed25519` or `ed448`.
    #[default("rsa".into())]
    algo: String,
    /// Its size in bits.
    keysize: Option<i64>,
    /// Encrypt it.
    passphrase: Option<String>,
    /// `pem`.
    #[default("pem".into())]
    encoding: String,
    /// The file to write.
    path: Option<String>,
    /// `bits`, the old name of `keysize`, and `text`.
    rest: Rest,
) -> Result<String> {
    if encoding != "pem" {
        return Err(Error::failed(format!("x509: the encoding '{encoding}' is not supported yet")));
    }
    let size = keysize.or_else(|| rest.kwargs.get("bits").and_then(|bits| bits.to_int()));
    let made = Key { algo, size }.make(cx, passphrase.as_deref())?;
    handed(cx, made, "Private key", path.as_ref(), 0o600)
}

/// Make a certificate request and return it, or write it to a file.
///
/// ```console
/// $ salt web1 x509.create_csr private_key=/etc/pki/my.key CN=www.example.com
/// ```
#[function]
pub fn create_csr(
    cx: &Cx,
    /// The file of the key it is for.
    private_key: String,
    /// The file to write.
    path: Option<String>,
    /// Subject (`CN`, `O` …), extensions (`subjectAltName` …), `digest`, `private_key_passphrase`.
    rest: Rest,
) -> Result<String> {
    let given = rest.kwargs.shallow_copy();
    given.insert("private_key", private_key);
    let made = Wanted { given }.request(cx)?;
    handed(cx, made, "CSR", path.as_ref(), 0o644)
}

/// Make a certificate and return it, or write it to a file.
///
/// ```console
/// $ salt web1 x509.create_certificate signing_private_key=/etc/pki/ca.key CN=ca days_valid=3650
/// ```
#[function]
pub fn create_certificate(
    cx: &Cx,
    /// The file to write.
    path: Option<String>,
    /// Keys (`private_key`, `signing_private_key`), `signing_cert`, `csr`, subject (`CN` …),
    /// extensions (`basicConstraints` …), `days_valid`, `digest`, `serial_number`.
    rest: Rest,
) -> Result<String> {
    let made = Wanted { given: rest.kwargs }.certificate(cx)?;
    handed(cx, made, "Certificate", path.as_ref(), 0o644)
}

/// Return the size of a private key in bits.
///
/// ```console
/// $ salt web1 x509.get_private_key_size /etc/pki/my.key
/// ```
#[function]
pub fn get_private_key_size(
    cx: &Cx,
    /// The key: a file or a PEM text.
    private_key: String,
    /// Its passphrase.
    passphrase: Option<String>,
) -> Result<Value> {
    let key = Key::of(cx, &load(cx, &private_key)?, passphrase.as_deref())?;
    Ok(key.size.map_or(Value::Null, Value::from))
}

/// Return the public key of a private key, a certificate or a request.
///
/// ```console
/// $ salt web1 x509.get_public_key /etc/pki/my.crt
/// ```
#[function]
pub fn get_public_key(
    cx: &Cx,
    /// The key, certificate or request: a file or a PEM text.
    key: String,
    /// The passphrase of a private key.
    passphrase: Option<String>,
) -> Result<String> {
    let pem = load(cx, &key)?;
    let text = String::from_utf8_lossy(&pem);
    let secrets = [("HALITE_PASSPHRASE", passphrase.as_deref().unwrap_or_default())];
    let words: &[&str] = if text.contains("BEGIN CERTIFICATE REQUEST") {
        &["req", "-noout", "-pubkey"]
    } else if text.contains("BEGIN CERTIFICATE") {
        &["x509", "-noout", "-pubkey"]
    } else if text.contains("BEGIN PUBLIC KEY") {
        &["pkey", "-pubin", "-pubout"]
    } else {
        &["pkey", "-pubout", "-passin", "env:HALITE_PASSPHRASE"]
    };
    Ok(text_of(openssl(cx, words, &pem, &secrets)?))
}

/// Tell whether a private key belongs to a certificate or public key.
///
/// ```console
/// $ salt web1 x509.verify_private_key /etc/pki/my.key /etc/pki/my.crt
/// ```
#[function]
pub fn verify_private_key(
    cx: &Cx,
    /// The key: a file or a PEM text.
    private_key: String,
    /// The certificate, request or public key: a file or a PEM text.
    public_key: String,
    /// The passphrase of the key.
    passphrase: Option<String>,
) -> Result<bool> {
    let own = get_public_key(cx, private_key, passphrase)?;
    Ok(own == get_public_key(cx, public_key, None)?)
}

/// Tell whether a certificate ends within some days.
///
/// ```console
/// $ salt web1 x509.expires /etc/pki/my.crt days=7
/// ```
#[function]
pub fn expires(
    cx: &Cx,
    /// The certificate: a file or a PEM text.
    certificate: String,
    /// How many days from now.
    #[default(0)]
    days: i64,
) -> Result<bool> {
    ends_within(cx, &load(cx, &certificate)?, days)
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
    text: String,
    /// What it shall be: `CERTIFICATE`, `PRIVATE KEY` …
    pem_type: Option<String>,
) -> Result<String> {
    let text = String::from_utf8_lossy(&load(cx, &text)?).into_owned();
    pem_entry(&text, pem_type.as_deref())
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
    text: String,
    /// The file to write.
    path: String,
    /// Kept for Salt's sake.
    #[default(true)]
    overwrite: bool,
    /// What it shall be: `CERTIFICATE`, `PRIVATE KEY` …
    pem_type: Option<String>,
) -> Result<String> {
    let _ = overwrite;
    let pem = get_pem_entry(cx, text, pem_type)?;
    handed(cx, pem, "PEM", Some(&path), 0o600)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys() {
        let rsa = "Public-Key: (2048 bit)\nModulus:\n    00:ae\nExponent: 65537 (0x10001)\n";
        assert_eq!(Key::read(rsa).unwrap(), Key { algo: "rsa".into(), size: Some(2048) });
        let ec = "Public-Key: (384 bit)\npub:\n    04:01\nASN1 OID: secp384r1\n";
        assert_eq!(Key::read(ec).unwrap(), Key { algo: "ec".into(), size: Some(384) });
        let ed = "ED25519 Public-Key:\npub:\n    ab\n";
        assert_eq!(Key::read(ed).unwrap(), Key { algo: "ed25519".into(), size: None });
        assert_eq!(Key::read("junk"), None);
    }

    #[test]
    fn pieces_of_pem() {
        let long = "A".repeat(70);
        let text = format!(
            "x\n-----BEGIN A-----{long}-----END A-----\n-----BEGIN B-----\nQ\n-----END B-----\n"
        );
        let first = pem_entry(&text, None).unwrap();
        assert_eq!(
            first,
            format!("-----BEGIN A-----\n{}\nAAAAAA\n-----END A-----\n", "A".repeat(64))
        );
        assert_eq!(pem_entry(&text, Some("B")).unwrap(), "-----BEGIN B-----\nQ\n-----END B-----\n");
        assert!(pem_entry(&text, Some("C")).is_err() && pem_entry("junk", None).is_err());
    }

    #[test]
    fn certificates_are_compared() {
        let text = "Certificate:\n    Data:\n        Issuer: CN=ca\n        Subject: CN=a,O=b\n        \
                    X509v3 extensions:\n            X509v3 Key Usage: critical\n                \
                    Digital Signature\n            X509v3 Subject Alternative Name: \n                \
                    DNS:a\n    Signature Algorithm: x\n         ab:cd\n-----BEGIN PUBLIC KEY-----\nQ\n\
                    -----END PUBLIC KEY-----\n";
        let shown = Shown::read(text);
        assert_eq!((shown.subject.as_str(), shown.issuer.as_str()), ("CN=a,O=b", "CN=ca"));
        assert_eq!(
            shown.extensions,
            [
                ("keyUsage".to_owned(), "critical\nDigital Signature".to_owned()),
                ("subjectAltName".to_owned(), "\nDNS:a".to_owned())
            ]
        );
        let mut other = shown.clone();
        assert!(shown.differences(&other).is_empty());
        other.extensions.pop();
        other.subject = "CN=z".into();
        let changes = shown.differences(&other);
        assert_eq!(changes.get("subject_name"), Some("CN=z".into()));
        let removed = changes.get("extensions").and_then(|all| all.get("removed"));
        assert_eq!(removed, Some(Value::list(["subjectAltName"])));
    }

    #[test]
    fn reasons() {
        let line = "80:error:11:X509 V3 routines:f:error in extension:../v3.c:48:name=keyUsage";
        assert_eq!(reason_of(line), "error in extension: name=keyUsage");
        assert_eq!(reason_of("plain"), "plain");
    }

    #[test]
    fn subjects() {
        let given = Dict::new();
        given.insert("CN", "a/b");
        given.insert("O", "Org");
        given.insert("subjectAltName", Value::list(["DNS:a", "IP:::1"]));
        given.insert("basicConstraints", "critical CA:true");
        let wanted = Wanted { given };
        assert_eq!(wanted.subject(), "/O=Org/CN=a\\/b");
        assert!(
            wanted.configuration().ends_with(
                "[ext]\nbasicConstraints=critical, CA:true\nsubjectAltName=DNS:a,IP:::1\n"
            )
        );
    }
}
