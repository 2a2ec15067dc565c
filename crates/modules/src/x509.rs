//! `x509`: private keys, certificate requests and certificates.
//!
//! Everything is made and read by the program `openssl` (decision 0012). It is handed its
//! configuration on standard input and prints what it makes, so nothing secret lies in a scratch
//! file. Keys and certificates given as texts reach it through pipes of a shell ([`Tool`]). A
//! certificate is judged by making the one
//! wanted and comparing the two ([`Shown`]): subject, issuer, key and extensions, whatever these are.

use std::path::Path;

use halite_spec::{Command, Cx, Error, Rest, Result, function, host::Write, module};
use halite_value::{Dict, Value, entries};

module! {
    /// Make private keys, certificate requests and certificates.
    "x509": create_certificate, create_csr, create_private_key, encode_certificate, encode_csr,
    encode_private_key, expired, expires, get_pem_entries, get_pem_entry, get_private_key_size,
    get_public_key, get_signing_policy, verify_private_key, verify_signature, will_expire,
    write_pem,
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
    Err(Error::failed(last_words(&output.stderr_text())))
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

/// A call of `openssl` under construction.
#[derive(Default)]
struct Tool {
    words: Vec<String>,
    input: Vec<u8>,
    secrets: Vec<(&'static str, String)>,
    /// Texts that it reads as `/dev/fd/3` and on.
    handed: Vec<String>,
}

impl Tool {
    fn new(words: &[&str]) -> Self {
        Self { words: words.iter().map(|word| (*word).to_owned()).collect(), ..Self::default() }
    }

    fn words(&mut self, words: &[&str]) {
        self.words.extend(words.iter().map(|word| (*word).to_owned()));
    }

    /// Adds what it reads: a file's name, or the name of the pipe the text comes through.
    fn reads(&mut self, source: &Source) {
        match source {
            Source::File(path) => self.words.push(path.clone()),
            Source::Text(text) => {
                self.words.push(format!("/dev/fd/{}", self.handed.len() + 3));
                self.handed.push(text.clone());
            }
        }
    }

    fn secret(&mut self, name: &'static str, value: Option<String>) {
        self.secrets.push((name, value.unwrap_or_default()));
    }

    fn run(&self, cx: &Cx) -> Result<Vec<u8>> {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        let secrets: Vec<(&str, &str)> =
            self.secrets.iter().map(|(name, value)| (*name, value.as_str())).collect();
        if self.handed.is_empty() {
            return openssl(cx, &words, &self.input, &secrets);
        }
        // A shell's here-documents are pipes; what a variable holds is not read again, so the
        // texts may hold anything.
        let mut script = r#"exec openssl "$@""#.to_owned();
        let mut bodies = String::new();
        let mut command = Command::line(["sh", "-c"]).query();
        let mut env: Vec<(String, String)> = Vec::new();
        for (at, text) in self.handed.iter().enumerate() {
            let number = at + 3;
            script.push_str(&format!(" {number}<<HALITE_END_{number}"));
            bodies.push_str(&format!("$HALITE_TEXT_{number}\nHALITE_END_{number}\n"));
            env.push((format!("HALITE_TEXT_{number}"), text.trim_end().to_owned()));
        }
        command = command.arg(format!("{script}\n{bodies}")).arg("openssl").args(words);
        for (name, value) in env {
            command = command.env(name, value);
        }
        for (name, value) in secrets {
            command = command.env(name, value);
        }
        command.stdin = Some(self.input.clone());
        let output = cx.host.run(&command)?;
        if output.ok() {
            return Ok(output.stdout);
        }
        Err(Error::failed(last_words(&output.stderr_text())))
    }
}

/// Where a key or a certificate is.
#[derive(Clone, Debug)]
enum Source {
    File(String),
    Text(String),
}

impl Source {
    /// The PEM text.
    fn text(&self, cx: &Cx) -> Result<String> {
        Ok(match self {
            Self::File(path) => cx.host.read_text(Path::new(path))?,
            Self::Text(text) => text.clone(),
        })
    }
}

/// What is read, and how `openssl` is told to read it in binary form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Key,
    Certificate,
    Request,
    PublicKey,
}

/// The bytes of a text in Base64 or hexadecimal digits, if they begin as binary forms do.
fn encoded(text: &str) -> Option<Vec<u8>> {
    let bare: String = text.chars().filter(|one| !one.is_whitespace()).collect();
    let hex: String = bare.chars().filter(|one| *one != ':').collect();
    let bytes = if !hex.is_empty() && hex.len() % 2 == 0 && hex.bytes().all(|b| b.is_ascii_hexdigit())
    {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).ok()).collect()
    } else {
        crate::hashutil::from_base64(bare.as_bytes()).ok()
    }?;
    let bytes: Vec<u8> = bytes;
    (bytes.first() == Some(&0x30)).then_some(bytes)
}

/// Finds a source: a PEM text, a file, or either in a binary form.
fn find(cx: &Cx, given: &str, what: What, passphrase: Option<&str>) -> Result<Source> {
    if given.contains("-----BEGIN ") {
        return Ok(Source::Text(given.to_owned()));
    }
    let content = match given.is_empty() {
        true => None,
        false => cx.host.read_if_there(Path::new(given)).unwrap_or(None),
    };
    let binary = match content {
        Some(bytes) if bytes.windows(11).any(|part| part == b"-----BEGIN ") => {
            return Ok(Source::File(given.to_owned()));
        }
        Some(bytes) => bytes,
        None => encoded(given).ok_or_else(|| Error::failed(NO_SOURCE))?,
    };
    let secrets = [("HALITE_PASSPHRASE", passphrase.unwrap_or_default())];
    let passin = ["-passin", "env:HALITE_PASSPHRASE"];
    let ways: &[&[&str]] = match what {
        What::Key => {
            &[&["pkey", "-inform", "DER"], &["pkcs12", "-nodes", "-nocerts"]]
        }
        What::Certificate => &[
            &["x509", "-inform", "DER"],
            &["pkcs7", "-inform", "DER", "-print_certs"],
            &["pkcs12", "-nokeys", "-clcerts"],
        ],
        What::Request => &[&["req", "-inform", "DER"]],
        What::PublicKey => &[
            &["pkey", "-pubin", "-inform", "DER"],
            &["x509", "-inform", "DER", "-noout", "-pubkey"],
            &["req", "-inform", "DER", "-noout", "-pubkey"],
            &["pkey", "-inform", "DER", "-pubout"],
        ],
    };
    for way in ways {
        let mut words = way.to_vec();
        if matches!(way.first(), Some(&"pkcs12")) || (what == What::Key) {
            words.extend(passin);
        }
        if let Ok(pem) = openssl(cx, &words, &binary, &secrets)
            && pem.windows(11).any(|part| part == b"-----BEGIN ")
        {
            let text = text_of(pem);
            return Ok(Source::Text(pem_entry(&text, None).unwrap_or(text)));
        }
    }
    Err(Error::failed(NO_SOURCE))
}

/// The form something has in a file, and its PEM text.
fn opened(cx: &Cx, content: &[u8], ways: &[(&'static str, &[&str])], passphrase: Option<&str>) -> Option<(&'static str, String)> {
    let secrets = [("HALITE_PASSPHRASE", passphrase.unwrap_or_default())];
    ways.iter().find_map(|(form, words)| {
        let pem = text_of(openssl(cx, words, content, &secrets).ok()?);
        pem.contains("-----BEGIN ").then_some((*form, pem))
    })
}

/// The form a private key has in a file, and its PEM text.
pub fn opened_key(cx: &Cx, content: &[u8], passphrase: Option<&str>) -> Option<(&'static str, String)> {
    if let Ok(text) = std::str::from_utf8(content)
        && text.contains("-----BEGIN ")
    {
        return Some(("pem", text.to_owned()));
    }
    let ways: [(&str, &[&str]); 2] = [
        ("der", &["pkey", "-inform", "DER", "-passin", "env:HALITE_PASSPHRASE"]),
        ("pkcs12", &["pkcs12", "-nodes", "-nocerts", "-passin", "env:HALITE_PASSPHRASE"]),
    ];
    opened(cx, content, &ways, passphrase)
}

/// The form certificates have in a file, and their PEM texts.
pub fn opened_certificates(
    cx: &Cx,
    content: &[u8],
    passphrase: Option<&str>,
) -> Option<(&'static str, String)> {
    if let Ok(text) = std::str::from_utf8(content)
        && text.contains("-----BEGIN CERTIFICATE-----")
    {
        return Some(("pem", text.to_owned()));
    }
    let ways: [(&str, &[&str]); 4] = [
        ("pkcs7_pem", &["pkcs7", "-print_certs"]),
        ("der", &["x509", "-inform", "DER"]),
        ("pkcs7_der", &["pkcs7", "-inform", "DER", "-print_certs"]),
        ("pkcs12", &["pkcs12", "-nokeys", "-passin", "env:HALITE_PASSPHRASE"]),
    ];
    opened(cx, content, &ways, passphrase)
}

/// The form a request has in a file, and its PEM text.
pub fn opened_request(cx: &Cx, content: &[u8]) -> Option<(&'static str, String)> {
    let ways: [(&str, &[&str]); 2] = [("pem", &["req"]), ("der", &["req", "-inform", "DER"])];
    opened(cx, content, &ways, None)
}

fn last_words(said: &str) -> String {
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    if lines.iter().any(|line| line.contains("private key do not match")) {
        return "Signing private key does not match the certificate".into();
    }
    reason_of(lines.last().unwrap_or(&"openssl failed").trim())
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
const SUBJECT: [(&str, &str); 25] = [
    ("C", "C"),
    ("countryName", "C"),
    ("ST", "ST"),
    ("SP", "ST"),
    ("stateOrProvinceName", "ST"),
    ("L", "L"),
    ("localityName", "L"),
    ("STREET", "street"),
    ("streetAddress", "street"),
    ("O", "O"),
    ("organizationName", "O"),
    ("OU", "OU"),
    ("organizationalUnitName", "OU"),
    ("GN", "GN"),
    ("givenName", "GN"),
    ("SN", "SN"),
    ("surname", "SN"),
    ("CN", "CN"),
    ("commonName", "CN"),
    ("MAIL", "emailAddress"),
    ("Email", "emailAddress"),
    ("emailAddress", "emailAddress"),
    ("UID", "UID"),
    ("SERIALNUMBER", "serialNumber"),
    ("serialNumber", "serialNumber"),
];

/// The extensions that may be given, in the order they are written: Salt's name is OpenSSL's.
const EXTENSIONS: [(&str, &str); 16] = [
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
    ("policyConstraints", "Policy Constraints"),
    ("inhibitAnyPolicy", "Inhibit Any Policy"),
    ("noCheck", "OCSP No Check"),
    ("tlsfeature", "TLS Feature"),
];

/// What a request may ask for, but only the issuer may say.
const NEVER_COPIED: [&str; 3] = ["issuerAltName", "authorityInfoAccess", "crlDistributionPoints"];

/// A certificate or a request as wanted: the arguments of the functions and states.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub given: Dict,
}

impl Wanted {
    pub fn text(&self, name: &str) -> Option<String> {
        let value = self.given.get(name).filter(Value::truthy)?;
        Some(value.to_string())
    }

    fn days(&self, name: &str, preset: i64) -> i64 {
        self.given.get(name).and_then(|days| days.to_int()).unwrap_or(preset)
    }

    /// The arguments with what a signing policy lays down, which nobody can override.
    pub fn policed(&self, cx: &Cx) -> Result<Self> {
        let Some(name) = self.text("signing_policy") else { return Ok(self.clone()) };
        let policy = policy(cx, &name)?.ok_or_else(|| {
            Error::failed(format!("signing_policy {name} not found."))
        })?;
        let given = self.given.shallow_copy();
        let is_name = |key: &str| key == "subject" || SUBJECT.iter().any(|(own, _)| *own == key);
        // Who is named as a whole by one side is not named in parts by the other.
        if policy.contains("subject") {
            for key in given.keys().into_iter().filter(|key| is_name(key.to_str().as_str())) {
                given.remove(&key);
            }
        } else if policy.keys().iter().any(|key| is_name(key.to_str().as_str())) {
            given.remove("subject");
        }
        given.update(&policy);
        given.remove("signing_policy");
        Ok(Self { given })
    }

    /// Refuses what is not made here rather than leaving it out.
    fn check(&self) -> Result<()> {
        for name in ["ca_server", "not_before", "not_after"] {
            if self.text(name).is_some() {
                return Err(Error::failed(format!(
                    "x509: the argument '{name}' is not supported yet"
                )));
            }
        }
        Ok(())
    }

    /// `/O=Org/CN=x`
    fn subject(&self) -> String {
        let source = match self.given.get("subject").filter(Value::truthy) {
            Some(Value::Dict(subject)) => subject,
            Some(Value::Str(text)) => {
                // Written from the inside out.
                let mut parts: Vec<String> = text.split(',').map(str::to_owned).collect();
                parts.reverse();
                return named(&parts);
            }
            Some(list) if list.items_of_sequence().is_some() => {
                let items = list.items_of_sequence().unwrap_or_default();
                return named(&items.iter().map(Value::to_string).collect::<Vec<_>>());
            }
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
            let Some(value) = self.extension(name) else { continue };
            // Nothing has to be said about it.
            let (name, value) = match name {
                "noCheck" => {
                    let critical = extension(&value).contains("critical");
                    let value = if critical { "critical, ignored" } else { "ignored" };
                    ("noCheck", value.to_owned())
                }
                _ => (name, extension(&value)),
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
        EXTENSIONS.iter().any(|(name, _)| self.extension(name).is_some())
    }

    /// An extension by its name, or by the title old trees know it by.
    fn extension(&self, name: &str) -> Option<Value> {
        let title = EXTENSIONS.iter().find(|(own, _)| *own == name).map(|(_, title)| *title)?;
        let given = self.given.get(name).or_else(|| self.given.get(format!("X509v3 {title}").as_str()));
        given.filter(|value| value.truthy() || value.as_int().is_some())
    }

    fn source(&self, cx: &Cx, name: &str, what: What) -> Result<Option<Source>> {
        let Some(given) = self.text(name) else { return Ok(None) };
        let passphrase = self.text(&format!("{name}_passphrase"));
        find(cx, &given, what, passphrase.as_deref()).map(Some)
    }

    fn run(&self, cx: &Cx, mut tool: Tool) -> Result<String> {
        tool.secret("HALITE_PASSPHRASE", self.text("private_key_passphrase"));
        tool.secret("HALITE_SIGNING_PASSPHRASE", self.text("signing_private_key_passphrase"));
        tool.input = self.configuration().into_bytes();
        Ok(text_of(tool.run(cx)?))
    }

    fn digest(&self) -> String {
        let digest = self.text("digest").or_else(|| self.text("algorithm"));
        format!("-{}", digest.unwrap_or_else(|| "sha256".into()).replace('_', "-"))
    }

    /// Makes a request, as PEM.
    pub fn request(&self, cx: &Cx) -> Result<String> {
        self.check()?;
        let key = self.source(cx, "private_key", What::Key)?;
        let key = key.ok_or_else(|| Error::failed(NO_SOURCE))?;
        let mut tool = Tool::new(&["req", "-new", "-utf8", "-config", "/dev/stdin", "-key"]);
        tool.reads(&key);
        tool.words(&["-passin", "env:HALITE_PASSPHRASE", "-subj", &self.subject(), &self.digest()]);
        if self.has_extensions() {
            tool.words(&["-reqexts", "ext"]);
        }
        self.run(cx, tool)
    }

    /// Makes a certificate, as PEM: signed by itself, or by `signing_cert`.
    pub fn certificate(&self, cx: &Cx) -> Result<String> {
        let wanted = self.policed(cx)?;
        wanted.check()?;
        wanted.signed(cx)
    }

    fn signed(&self, cx: &Cx) -> Result<String> {
        let signing = self.source(cx, "signing_private_key", What::Key)?;
        let signing = signing.ok_or_else(|| Error::failed(NO_SOURCE))?;
        let issuer = self.source(cx, "signing_cert", What::Certificate)?;
        let mut tool = match &issuer {
            None => self.by_itself(&signing),
            Some(issuer) => self.by_issuer(cx, issuer, &signing)?,
        };
        let days = self.days("days_valid", 365).to_string();
        tool.words(&["-days", &days, &self.digest()]);
        if let Some(serial) = self.given.get("serial_number").filter(|serial| !serial.is_null()) {
            let serial = match serial {
                Value::Int(number) => format!("0x{number:x}"),
                text => format!("0x{}", text.to_str().trim_start_matches("0x").replace(':', "")),
            };
            tool.words(&["-set_serial", &serial]);
        }
        self.run(cx, tool)
    }

    /// The key that signs is the one certified.
    fn by_itself(&self, signing: &Source) -> Tool {
        let mut tool = Tool::new(&["req", "-new", "-x509", "-utf8", "-config", "/dev/stdin"]);
        tool.words(&["-extensions", "ext", "-key"]);
        tool.reads(signing);
        tool.words(&["-passin", "env:HALITE_SIGNING_PASSPHRASE", "-subj", &self.subject()]);
        tool
    }

    fn by_issuer(&self, cx: &Cx, issuer: &Source, signing: &Source) -> Result<Tool> {
        let public = match (self.text("private_key"), self.text("public_key")) {
            (Some(key), _) => {
                Some(get_public_key(cx, key, self.text("private_key_passphrase"), Rest::default())?)
            }
            (None, Some(key)) => Some(get_public_key(cx, key, None, Rest::default())?),
            (None, None) => None,
        };
        let request = self.source(cx, "csr", What::Request)?;
        let mut tool = match (&public, &request) {
            (Some(public), _) => {
                let mut tool = Tool::new(&["x509", "-new", "-force_pubkey"]);
                tool.reads(&Source::Text(public.clone()));
                tool.words(&["-subj", &self.subject()]);
                tool
            }
            (None, Some(request)) => {
                let mut tool = Tool::new(&["x509", "-req", "-in"]);
                tool.reads(request);
                if self.subject() != "/" {
                    tool.words(&["-subj", &self.subject()]);
                }
                let asked = Shown::of(cx, "req", request.text(cx)?.as_bytes())?;
                let refused = asked.extensions.iter().find(|(name, _)| {
                    NEVER_COPIED.contains(&name.as_str()) && self.extension(name).is_none()
                });
                if let Some((name, _)) = refused {
                    return Err(Error::failed(format!(
                        "x509: the request asks for {name}, which only the issuer may say"
                    )));
                }
                // Those given win over those asked for.
                tool.words(&["-copy_extensions", "copy"]);
                tool
            }
            (None, None) => return Err(Error::failed(NO_SOURCE)),
        };
        tool.words(&["-CA"]);
        tool.reads(issuer);
        tool.words(&["-CAkey"]);
        tool.reads(signing);
        tool.words(&["-passin", "env:HALITE_SIGNING_PASSPHRASE"]);
        tool.words(&["-extfile", "/dev/stdin", "-extensions", "ext"]);
        Ok(tool)
    }

    /// The certificate in the form asked for, with those appended that go with it.
    pub fn in_form(&self, cx: &Cx, pem: &str, appended: &str) -> Result<Vec<u8>> {
        let form = self.text("encoding").unwrap_or_else(|| "pem".into());
        let all = format!("{pem}{appended}");
        if form == "pem" {
            return Ok(all.into_bytes());
        }
        if form == "der" {
            if !appended.is_empty() {
                return Err(Error::failed("Cannot encode a certificate chain in DER"));
            }
            return openssl(cx, &["x509", "-outform", "DER"], pem.as_bytes(), &[]);
        }
        if let Some(way) = form.strip_prefix("pkcs7_") {
            let way = way.to_uppercase();
            let words = ["crl2pkcs7", "-nocrl", "-certfile", "/dev/stdin", "-outform", &way];
            return openssl(cx, &words, all.as_bytes(), &[]);
        }
        if form != "pkcs12" {
            return Err(Error::failed(format!(
                "Invalid value '{form}' for encoding. Valid: der, pem, pkcs7_der, pkcs7_pem, pkcs12"
            )));
        }
        let mut tool = Tool::new(&["pkcs12", "-export", "-in", "/dev/stdin"]);
        // Who signs for himself has but one key.
        let whose = match self.text("signing_cert") {
            None if self.text("private_key").is_none() => "signing_private_key",
            _ => "private_key",
        };
        match self.source(cx, whose, What::Key)? {
            Some(key) => {
                tool.words(&["-inkey"]);
                tool.reads(&key);
                tool.words(&["-passin", "env:HALITE_PASSPHRASE"]);
            }
            None => tool.words(&["-nokeys"]),
        }
        if let Some(name) = self.text("pkcs12_friendlyname") {
            let option = if self.text(whose).is_some() { "-name" } else { "-caname" };
            tool.words(&[option, &name]);
        }
        let passphrase = self.text("pkcs12_passphrase");
        if passphrase.is_none() {
            tool.words(&["-keypbe", "NONE", "-certpbe", "NONE", "-nomaciter"]);
        } else if self.given.get("pkcs12_encryption_compat").is_some_and(|flag| flag.truthy()) {
            tool.words(&["-legacy"]);
        }
        tool.words(&["-passout", "env:HALITE_PKCS12"]);
        tool.secret("HALITE_PASSPHRASE", self.text(&format!("{whose}_passphrase")));
        tool.secret("HALITE_PKCS12", passphrase);
        tool.input = all.into_bytes();
        tool.run(cx)
    }

    /// Leaves a copy of a new certificate where those of a CA are kept.
    pub fn keep_copy(&self, cx: &Cx, pem: &str) -> Result<()> {
        let Some(folder) = self.text("copypath") else { return Ok(()) };
        let mut name = format!("{}.crt", serial_of(cx, pem)?);
        if self.given.get("prepend_cn").is_some_and(|flag| flag.truthy())
            && let Some(cn) = common_name(cx, pem)?
        {
            name = format!("{cn}-{name}");
        }
        let path = Path::new(&folder).join(name);
        Ok(cx.host.write(&path, pem.as_bytes(), &Write::default())?)
    }
}

/// `/C=US/CN=x` of `C=US` and `CN=x`.
fn named(parts: &[String]) -> String {
    let parts = parts.iter().map(|part| {
        let (name, value) = part.split_once('=').unwrap_or((part.as_str(), ""));
        let name = name.trim();
        let short = SUBJECT.iter().find(|(own, _)| *own == name).map_or(name, |(_, short)| short);
        format!("/{short}={}", value.trim().replace('/', "\\/"))
    });
    parts.collect()
}

/// An extension as OpenSSL writes it: a text, or a list or dict that says the same.
fn extension(value: &Value) -> String {
    let pair = |key: &str, value: &Value| match (key, value) {
        ("critical", value) => (value.truthy()).then(|| "critical".to_owned()),
        (key, Value::Bool(flag)) => Some(format!("{}:{}", key.to_uppercase(), flag.to_string().to_uppercase())),
        (key, value) => Some(format!("{key}:{value}")),
    };
    if let Value::Dict(parts) = value {
        let parts = parts.entries().into_iter().filter_map(|(key, value)| {
            pair(key.to_str().as_str(), &value)
        });
        return parts.collect::<Vec<_>>().join(",");
    }
    let Some(items) = value.items_of_sequence() else { return value.to_string() };
    let items = items.iter().filter_map(|item| match item {
        Value::Dict(parts) => {
            let parts = parts.entries().into_iter().filter_map(|(key, value)| {
                pair(key.to_str().as_str(), &value)
            });
            Some(parts.collect::<Vec<_>>().join(","))
        }
        other => Some(other.to_string()),
    });
    items.collect::<Vec<_>>().join(",")
}

/// What a policy of the configuration or the pillar lays down.
fn policy(cx: &Cx, name: &str) -> Result<Option<Dict>> {
    let found = cx.opt("x509_signing_policies").filter(|all| all.as_dict().is_some());
    let all = found.or_else(|| cx.pillar.get("x509_signing_policies")).unwrap_or_default();
    Ok(match all.get(name) {
        Some(Value::Dict(policy)) => Some(policy),
        // Old trees write a list of dicts.
        Some(list) => list.items_of_sequence().map(|items| {
            let policy = Dict::new();
            for item in items {
                if let Value::Dict(item) = item {
                    policy.update(&item);
                }
            }
            policy
        }),
        None => None,
    })
}

/// The number of a certificate, in hexadecimal digits.
fn serial_of(cx: &Cx, pem: &str) -> Result<String> {
    let said = text_of(openssl(cx, &["x509", "-noout", "-serial"], pem.as_bytes(), &[])?);
    Ok(said.trim().trim_start_matches("serial=").trim_start_matches('0').to_lowercase())
}

/// Tells whether a certificate has a number, written in decimal or hexadecimal digits.
pub fn serial_is(cx: &Cx, pem: &str, wanted: &str) -> Result<bool> {
    let serial = serial_of(cx, pem)?;
    let hex = wanted.trim_start_matches("0x").replace(':', "").to_lowercase();
    let decimal = wanted.parse::<u128>().ok().map(|number| format!("{number:x}"));
    Ok(hex.trim_start_matches('0') == serial || decimal.is_some_and(|number| number == serial))
}

fn common_name(cx: &Cx, pem: &str) -> Result<Option<String>> {
    let shown = Shown::of(cx, "x509", pem.as_bytes())?;
    let part = shown.subject.split(',').find_map(|part| part.trim().strip_prefix("CN="));
    Ok(part.map(str::to_owned))
}

/// What can be compared of a certificate or a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// `CN=x,O=y`
    pub subject: String,
    pub issuer: String,
    /// `sha256WithRSAEncryption`
    pub algorithm: String,
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
            } else if let Some(name) = trimmed.strip_prefix("Signature Algorithm: ") {
                shown.algorithm = name.to_owned();
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
        if self.algorithm != wanted.algorithm {
            changes.insert("digest", wanted.algorithm.as_str());
        }
        if self.key != wanted.key {
            changes.insert("private_key", true);
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

/// Writes what was made, if a path is given, and says so; else returns it: a text as it is, what
/// is binary in Base64, or bytes if `raw`.
fn handed(
    cx: &Cx,
    made: Vec<u8>,
    what: &str,
    path: Option<&String>,
    mode: u32,
    raw: bool,
) -> Result<Value> {
    if let Some(path) = path {
        let how = Write { mode: Some(mode), ..Write::default() };
        cx.host.write(Path::new(path), &made, &how)?;
        return Ok(format!("{what} written to {path}").into());
    }
    if raw {
        return Ok(Value::bytes(made));
    }
    Ok(match String::from_utf8(made) {
        Ok(text) if text.starts_with("-----BEGIN ") => text.into(),
        Ok(text) => crate::hashutil::base64(text.as_bytes()).into(),
        Err(error) => crate::hashutil::base64(error.as_bytes()).into(),
    })
}

/// A private key in the form asked for.
pub fn key_in_form(
    cx: &Cx,
    pem: &str,
    form: &str,
    passphrase: Option<&str>,
    own: Option<&str>,
    compatible: bool,
) -> Result<Vec<u8>> {
    let secrets = [
        ("HALITE_PASSPHRASE", own.unwrap_or_default()),
        ("HALITE_NEW", passphrase.unwrap_or_default()),
    ];
    let mut words = match form {
        "pem" | "der" => vec!["pkcs8", "-topk8", "-outform", if form == "der" { "DER" } else { "PEM" }],
        "pkcs12" => vec!["pkcs12", "-export", "-nocerts", "-inkey", "/dev/stdin"],
        other => {
            return Err(Error::failed(format!(
                "Invalid value '{other}' for encoding. Valid: der, pem, pkcs12"
            )));
        }
    };
    words.extend(["-passin", "env:HALITE_PASSPHRASE"]);
    match (passphrase, form) {
        (None, "pkcs12") => words.extend(["-keypbe", "NONE", "-certpbe", "NONE"]),
        (None, _) => words.push("-nocrypt"),
        (Some(_), "pkcs12") if compatible => words.push("-legacy"),
        (Some(_), "pkcs12") => {}
        (Some(_), _) => words.extend(["-v2", "aes-256-cbc"]),
    }
    words.extend(["-passout", "env:HALITE_NEW"]);
    openssl(cx, &words, pem.as_bytes(), &secrets)
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
    /// `pem`, `der` or `pkcs12`.
    #[default("pem".into())]
    encoding: String,
    /// Encrypt a PKCS12 container so that old programs can read it.
    #[default(false)]
    pkcs12_encryption_compat: bool,
    /// The file to write.
    path: Option<String>,
    /// Return bytes.
    #[default(false)]
    raw: bool,
    /// `bits`, the old name of `keysize`, and `text`.
    rest: Rest,
) -> Result<Value> {
    let size = keysize.or_else(|| rest.kwargs.get("bits").and_then(|bits| bits.to_int()));
    let key = Key { algo, size };
    let made = match encoding.as_str() {
        "pem" => key.make(cx, passphrase.as_deref())?.into_bytes(),
        form => {
            let pem = key.make(cx, None)?;
            let compatible = pkcs12_encryption_compat;
            key_in_form(cx, &pem, form, passphrase.as_deref(), None, compatible)?
        }
    };
    handed(cx, made, "Private key", path.as_ref(), 0o600, raw)
}

/// Make a certificate request and return it, or write it to a file.
///
/// ```console
/// $ salt web1 x509.create_csr private_key=/etc/pki/my.key CN=www.example.com
/// ```
#[function]
pub fn create_csr(
    cx: &Cx,
    /// The key it is for: a file or a PEM text.
    private_key: String,
    /// The file to write.
    path: Option<String>,
    /// Return bytes.
    #[default(false)]
    raw: bool,
    /// Subject (`CN`, `O` …), extensions (`subjectAltName` …), `digest`, `encoding`,
    /// `private_key_passphrase`.
    rest: Rest,
) -> Result<Value> {
    let given = rest.kwargs.shallow_copy();
    given.insert("private_key", private_key);
    let wanted = Wanted { given };
    let made = request_in_form(cx, &wanted.request(cx)?, wanted.text("encoding").as_deref())?;
    handed(cx, made, "CSR", path.as_ref(), 0o644, raw)
}

/// A request in the form asked for.
pub fn request_in_form(cx: &Cx, pem: &str, form: Option<&str>) -> Result<Vec<u8>> {
    match form.unwrap_or("pem") {
        "pem" => Ok(pem.as_bytes().to_vec()),
        "der" => openssl(cx, &["req", "-outform", "DER"], pem.as_bytes(), &[]),
        other => {
            Err(Error::failed(format!("Invalid value '{other}' for encoding. Valid: der, pem")))
        }
    }
}

/// Certificates that follow another: files or PEM texts.
pub fn appended(cx: &Cx, given: &Value) -> Result<String> {
    let sources = match given.items_of_sequence() {
        Some(items) => items,
        None if given.truthy() => vec![given.clone()],
        None => Vec::new(),
    };
    let mut all = String::new();
    for source in sources {
        let text = find(cx, &source.to_str(), What::Certificate, None)?.text(cx)?;
        all.push_str(&pem_entry(&text, Some("CERTIFICATE"))?);
    }
    Ok(all)
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
    /// Write over a file that is there.
    #[default(true)]
    overwrite: bool,
    /// Return bytes.
    #[default(false)]
    raw: bool,
    /// Certificates that follow: files or PEM texts.
    append_certs: Option<Value>,
    /// Keys (`private_key`, `public_key`, `signing_private_key`), `signing_cert`, `csr`,
    /// `signing_policy`, subject (`CN` …), extensions (`basicConstraints` …), `days_valid`,
    /// `digest`, `serial_number`, `encoding`, `copypath`.
    rest: Rest,
) -> Result<Value> {
    if let Some(path) = path.as_ref().filter(|_| !overwrite)
        && cx.host.exists(Path::new(path))?
    {
        return Ok(format!("The file at {path} exists and overwrite was set to false").into());
    }
    let wanted = Wanted { given: rest.kwargs };
    let pem = wanted.certificate(cx)?;
    wanted.keep_copy(cx, &pem)?;
    let more = appended(cx, &append_certs.unwrap_or_default())?;
    let made = wanted.in_form(cx, &pem, &more)?;
    handed(cx, made, "Certificate", path.as_ref(), 0o644, raw)
}

/// Write a private key in another form.
///
/// ```console
/// $ salt web1 x509.encode_private_key /etc/pki/my.key encoding=der
/// ```
#[function]
pub fn encode_private_key(
    cx: &Cx,
    /// The key: a file or a PEM text.
    private_key: String,
    /// `pem`, `der` or `pkcs12`.
    #[default("pem".into())]
    encoding: String,
    /// Encrypt it.
    passphrase: Option<String>,
    /// The passphrase it has.
    private_key_passphrase: Option<String>,
    /// Encrypt a PKCS12 container so that old programs can read it.
    #[default(false)]
    pkcs12_encryption_compat: bool,
    /// Return bytes.
    #[default(false)]
    raw: bool,
) -> Result<Value> {
    let own = private_key_passphrase.as_deref();
    let pem = find(cx, &private_key, What::Key, own)?.text(cx)?;
    let compatible = pkcs12_encryption_compat;
    let made = key_in_form(cx, &pem, &encoding, passphrase.as_deref(), own, compatible)?;
    handed(cx, made, "", None, 0, raw)
}

/// Write a certificate request in another form.
///
/// ```console
/// $ salt web1 x509.encode_csr /etc/pki/my.csr encoding=der
/// ```
#[function]
pub fn encode_csr(
    cx: &Cx,
    /// The request: a file or a PEM text.
    csr: String,
    /// `pem` or `der`.
    #[default("pem".into())]
    encoding: String,
    /// Return bytes.
    #[default(false)]
    raw: bool,
) -> Result<Value> {
    let pem = find(cx, &csr, What::Request, None)?.text(cx)?;
    handed(cx, request_in_form(cx, &pem_entry(&pem, None)?, Some(&encoding))?, "", None, 0, raw)
}

/// Write a certificate in another form.
///
/// ```console
/// $ salt web1 x509.encode_certificate /etc/pki/my.crt encoding=der
/// ```
#[function]
pub fn encode_certificate(
    cx: &Cx,
    /// The certificate: a file or a PEM text.
    certificate: String,
    /// `pem`, `der`, `pkcs7_pem`, `pkcs7_der` or `pkcs12`.
    #[default("pem".into())]
    encoding: String,
    /// Certificates that follow: files or PEM texts.
    append_certs: Option<Value>,
    /// The key that a PKCS12 container holds, too.
    private_key: Option<String>,
    /// Its passphrase.
    private_key_passphrase: Option<String>,
    /// The passphrase of the container.
    pkcs12_passphrase: Option<String>,
    /// Encrypt a PKCS12 container so that old programs can read it.
    #[default(false)]
    pkcs12_encryption_compat: bool,
    /// The name of the certificate in the container.
    pkcs12_friendlyname: Option<String>,
    /// Return bytes.
    #[default(false)]
    raw: bool,
) -> Result<Value> {
    let pem = find(cx, &certificate, What::Certificate, None)?.text(cx)?;
    let more = appended(cx, &append_certs.unwrap_or_default())?;
    let given = entries! {
        "encoding" => encoding, "private_key" => private_key,
        "private_key_passphrase" => private_key_passphrase,
        "pkcs12_passphrase" => pkcs12_passphrase,
        "pkcs12_encryption_compat" => pkcs12_encryption_compat,
        "pkcs12_friendlyname" => pkcs12_friendlyname,
    };
    let made = Wanted { given }.in_form(cx, &pem_entry(&pem, None)?, &more)?;
    handed(cx, made, "", None, 0, raw)
}

/// Return what a signing policy lays down.
///
/// ```console
/// $ salt ca x509.get_signing_policy www
/// ```
#[function]
pub fn get_signing_policy(
    cx: &Cx,
    /// Its name.
    signing_policy: String,
    /// The minion that has it; this one if not given.
    ca_server: Option<String>,
) -> Result<Dict> {
    if ca_server.is_some() {
        return Err(Error::failed("x509: the argument 'ca_server' is not supported yet"));
    }
    let missing = || Error::failed(format!("signing_policy {signing_policy} not found."));
    let policy = policy(cx, &signing_policy)?.ok_or_else(missing)?;
    if let Some(path) = policy.get("signing_cert").and_then(|path| path.as_str().map(str::to_owned)) {
        let policy = policy.shallow_copy();
        policy.insert("signing_cert", find(cx, &path, What::Certificate, None)?.text(cx)?);
        return Ok(policy);
    }
    Ok(policy)
}

fn ends(cx: &Cx, certificate: &str, days: i64) -> Result<(Dict, bool)> {
    let pem = find(cx, certificate, What::Certificate, None)?.text(cx)?;
    let told = Dict::new();
    if !certificate.contains("-----BEGIN ") {
        told.insert("path", certificate);
    }
    if let Some(name) = common_name(cx, &pem)? {
        told.insert("cn", name);
    }
    Ok((told, ends_within(cx, pem.as_bytes(), days)?))
}

/// Tell whether a certificate has ended.
///
/// ```console
/// $ salt web1 x509.expired /etc/pki/my.crt
/// ```
#[function]
pub fn expired(
    cx: &Cx,
    /// The certificate: a file or a PEM text.
    certificate: String,
) -> Result<Dict> {
    let (told, ended) = ends(cx, &certificate, 0)?;
    told.insert("expired", ended);
    Ok(told)
}

/// Tell whether a certificate ends within some days.
///
/// ```console
/// $ salt web1 x509.will_expire /etc/pki/my.crt days=30
/// ```
#[function]
pub fn will_expire(
    cx: &Cx,
    /// The certificate: a file or a PEM text.
    certificate: String,
    /// How many days from now.
    days: i64,
) -> Result<Dict> {
    let (told, ends) = ends(cx, &certificate, days)?;
    let all = entries! { "check_days" => days };
    all.update(&told);
    all.insert("will_expire", ends);
    Ok(all)
}

/// Return the pieces of PEM in all files of a pattern.
///
/// ```console
/// $ salt web1 x509.get_pem_entries '/etc/pki/*.crt'
/// ```
#[function]
pub fn get_pem_entries(
    cx: &Cx,
    /// The pattern.
    glob_path: String,
) -> Result<Dict> {
    let found = Dict::new();
    for path in crate::file::paths::glob(cx, &glob_path)? {
        if let Ok(Some(text)) = cx.host.read_text_if_there(Path::new(&path))
            && let Ok(entry) = pem_entry(&text, None)
        {
            found.insert(path, entry);
        }
    }
    Ok(found)
}

/// Tell whether a certificate was signed with a key.
///
/// ```console
/// $ salt web1 x509.verify_signature /etc/pki/my.crt signing_pub_key=/etc/pki/ca.crt
/// ```
#[function]
pub fn verify_signature(
    cx: &Cx,
    /// The certificate: a file or a PEM text.
    certificate: String,
    /// The certificate of the issuer; itself if not given.
    signing_pub_key: Option<String>,
    /// The passphrase, if that is a private key.
    signing_pub_key_passphrase: Option<String>,
) -> Result<bool> {
    let own = find(cx, &certificate, What::Certificate, None)?;
    let issuer = match &signing_pub_key {
        Some(key) => find(cx, key, What::Certificate, signing_pub_key_passphrase.as_deref())?,
        None => own.clone(),
    };
    if !issuer.text(cx)?.contains("-----BEGIN CERTIFICATE-----") {
        return Err(Error::failed("x509: signatures are verified with a certificate only"));
    }
    let mut tool = Tool::new(&["verify", "-partial_chain", "-no_check_time", "-trusted"]);
    tool.reads(&issuer);
    tool.reads(&own);
    Ok(tool.run(cx).is_ok())
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
    /// `asObj`, which is not used any more.
    rest: Rest,
) -> Result<String> {
    drop(rest);
    let pem = match find(cx, &key, What::PublicKey, passphrase.as_deref()) {
        Ok(source) => source.text(cx)?.into_bytes(),
        Err(_) => load(cx, &key)?,
    };
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
    let own = get_public_key(cx, private_key, passphrase, Rest::default())?;
    Ok(own == get_public_key(cx, public_key, None, Rest::default())?)
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
) -> Result<Value> {
    let _ = overwrite;
    let pem = get_pem_entry(cx, text, pem_type)?;
    handed(cx, pem.into_bytes(), "PEM", Some(&path), 0o600, false)
}

#[cfg(test)]
mod tests {
    use halite_value::{dict, list};

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
    fn subjects_in_three_shapes() {
        let check = |given: Dict, expected: &str| {
            assert_eq!(Wanted { given }.subject(), expected);
        };
        check(entries! { "CN" => "a/b", "C" => "US", "commonNam" => 1 }, "/C=US/CN=a\\/b");
        check(entries! { "subject" => "CN=x,O=y,C=US", "L" => "no" }, "/C=US/O=y/CN=x");
        check(entries! { "subject" => list!["C=US", "MAIL=a@b"] }, "/C=US/emailAddress=a@b");
        check(entries! { "subject" => dict! { "CN" => "x" }, "O" => "no" }, "/CN=x");
        check(Dict::new(), "/");
    }

    #[test]
    fn extensions_in_three_shapes() {
        let dict = dict! { "critical" => true, "ca" => true, "pathlen" => 1 };
        assert_eq!(extension(&dict), "critical,CA:TRUE,pathlen:1");
        let san = list!["email:me@x", dict! { "DNS" => "x" }];
        assert_eq!(extension(&san), "email:me@x,DNS:x");
        assert_eq!(extension(&Value::str("critical, CA:TRUE")), "critical, CA:TRUE");
        let old = Wanted { given: entries! { "X509v3 Key Usage" => "cRLSign" } };
        assert!(old.configuration().ends_with("keyUsage=cRLSign\n"));
    }

    #[test]
    fn binary_forms_in_text() {
        assert_eq!(encoded("30 03:0"), None);
        assert_eq!(encoded("3003 0201"), Some(vec![0x30, 3, 2, 1]));
        assert_eq!(encoded("MAMC\nAQ=="), Some(vec![0x30, 3, 2, 1]));
        assert_eq!(encoded("/etc/pki/no"), None);
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
