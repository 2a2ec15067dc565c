//! Private keys and what is done with them: made, opened, signed with.
//!
//! All of it is the program `openssl`'s work. A key is held as unencrypted PKCS 8 in memory, never
//! in a scratch file; for signing it goes to the program through a pipe, with the data behind it.

use halite_spec::{Args, Command, Cx, Error, Rest, Result};
use halite_value::Value;

use super::{
    certificate::Certificate,
    der::{self, Item},
    openssl, reason_of,
    source::{self, Encoding, Piece},
};
use crate::hashutil;

/// A public key, as `SubjectPublicKeyInfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Public {
    pub der: Vec<u8>,
}

const CURVES: [(&str, i64); 4] = [
    ("1.2.840.10045.3.1.7", 256),
    ("1.3.132.0.34", 384),
    ("1.3.132.0.35", 521),
    ("1.3.132.0.33", 224),
];

impl Public {
    pub fn read(der: &[u8]) -> Option<Self> {
        let mut parts = der::only(der, der::SEQUENCE)?.items();
        parts.tagged(der::SEQUENCE)?.items().next()?.oid()?;
        parts.tagged(der::BITS)?;
        Some(Self { der: der.to_vec() })
    }

    fn algorithm(&self) -> Option<(String, Option<Item<'_>>)> {
        let mut algorithm = der::only(&self.der, der::SEQUENCE)?.items().next()?.items();
        Some((algorithm.next()?.oid()?, algorithm.next()))
    }

    /// `rsa`, `ec`, `ed25519` or `ed448`.
    pub fn algo(&self) -> &'static str {
        match self.algorithm().map(|(number, _)| number).as_deref() {
            Some("1.2.840.113549.1.1.1" | "1.2.840.113549.1.1.10") => "rsa",
            Some("1.2.840.10045.2.1") => "ec",
            Some("1.3.101.112") => "ed25519",
            Some("1.3.101.113") => "ed448",
            _ => "unknown",
        }
    }

    /// In bits; `None` where the algorithm has but one size.
    pub fn size(&self) -> Option<i64> {
        match self.algo() {
            "rsa" => {
                let bits = der::only(&self.der, der::SEQUENCE)?.items().nth(1)?;
                let key = der::only(bits.content.get(1..)?, der::SEQUENCE)?;
                let modulus = key.items().next()?.number();
                let top = modulus.first().map_or(0, |byte| byte.leading_zeros());
                i64::try_from(modulus.len() * 8).ok().map(|bits| bits - i64::from(top))
            }
            "ec" => {
                let curve = self.algorithm()?.1?.oid()?;
                CURVES.iter().find(|(own, _)| *own == curve).map(|(_, bits)| *bits)
            }
            _ => None,
        }
    }

    pub fn pem(&self) -> String {
        source::pem("PUBLIC KEY", &self.der)
    }
}

/// The size a new key has unless told otherwise.
fn default_size(algo: &str) -> Option<i64> {
    match algo {
        "rsa" => Some(2048),
        "ec" => Some(256),
        _ => None,
    }
}

/// What a new key shall be.
#[derive(Args)]
pub struct NewKey {
    /// `rsa`, `ec`, `ed25519` or `ed448`.
    #[default("rsa".into())]
    pub algo: String,
    /// Its size in bits; 2048 for RSA and 256 for EC unless said.
    #[default(Value::Null)]
    keysize: Value,
    /// Its passphrase.
    pub passphrase: Option<String>,
    /// `pem`, `der` or `pkcs12`.
    #[default("pem".into())]
    pub encoding: String,
}

impl NewKey {
    /// `bits` is the old name of `keysize`.
    pub fn size(&self, rest: &Rest) -> Value {
        let size = rest.kwargs.get("bits").unwrap_or_else(|| self.keysize.clone());
        if size.is_null() { default_size(&self.algo).into() } else { size }
    }

    pub fn make(&self, cx: &Cx, rest: &Rest) -> Result<Private> {
        Private::make(cx, &self.algo, &self.size(rest))
    }

    /// Writes a key as it shall be.
    pub fn encode(&self, cx: &Cx, key: &Private, compatible: bool) -> Result<(Vec<u8>, Encoding)> {
        let encoding = Encoding::of(&self.encoding, &super::KEY_ENCODINGS)?;
        Ok((key.encode(cx, encoding, self.passphrase.as_deref(), compatible)?, encoding))
    }
}

/// A private key, opened.
#[derive(Clone, Debug)]
pub struct Private {
    /// PKCS 8, not encrypted.
    pub der: Vec<u8>,
    pub public: Public,
    /// How it was written where it came from.
    pub encoding: Encoding,
}

impl Private {
    /// Makes a new one.
    pub fn make(cx: &Cx, algo: &str, size: &Value) -> Result<Self> {
        let size = size.to_int();
        let option;
        let mut words = vec!["genpkey", "-algorithm"];
        match (algo, size) {
            ("rsa", Some(size @ (2048 | 3072 | 4096))) => {
                option = format!("rsa_keygen_bits:{size}");
                words.extend(["RSA", "-pkeyopt", &option]);
            }
            ("ec", Some(size @ (256 | 384 | 521))) => {
                option = format!("ec_paramgen_curve:P-{size}");
                words.extend(["EC", "-pkeyopt", &option, "-pkeyopt", "ec_param_enc:named_curve"]);
            }
            ("ed25519", _) => words.push("ED25519"),
            ("ed448", _) => words.push("ED448"),
            ("rsa", _) => {
                return Err(Error::invalid("RSA key size must be either 2048, 3072 or 4096 bits."));
            }
            ("ec", _) => {
                return Err(Error::invalid("EC key size must be either 256, 384, 521 bits."));
            }
            (other, _) => {
                return Err(Error::invalid(format!(
                    "Invalid algorithm specified for generating private key: {other}. Valid: rsa, \
                     ec, ed25519, ed448"
                )));
            }
        }
        let made = openssl(cx, &words, b"", &[])?;
        Self::open(cx, &made, None)
    }

    /// Opens a key given as a file, text or bytes.
    pub fn load(cx: &Cx, source: &Value, passphrase: Option<&str>) -> Result<Self> {
        Self::open(cx, &source::load(cx, source)?, passphrase)
    }

    pub fn open(cx: &Cx, bytes: &[u8], passphrase: Option<&str>) -> Result<Self> {
        let class = "PrivDeserializationError";
        let passphrase = passphrase.filter(|passphrase| !passphrase.is_empty());
        let text = String::from_utf8_lossy(bytes);
        let piece = Piece::all(&text).into_iter().find(|piece| piece.kind.ends_with("PRIVATE KEY"));
        let (encoding, form, encrypted) = match (&piece, text.contains("-----BEGIN ")) {
            (Some(piece), _) => {
                let encrypted =
                    piece.kind.starts_with("ENCRYPTED") || piece.head.contains("ENCRYPTED");
                (Encoding::Pem, "PEM", encrypted)
            }
            (None, true) => {
                return Err(Error::raised(class, "Could not load PEM-encoded private key"));
            }
            (None, false) if source::is_pkcs12(bytes) => {
                let found = source::pkcs12(cx, bytes, passphrase)?;
                let key = found.key.ok_or_else(|| {
                    Error::raised(class, "PKCS#12-encoded blob does not contain a private key")
                })?;
                return Ok(Self { encoding: Encoding::Pkcs12, ..Self::open(cx, &key, None)? });
            }
            (None, false) => {
                let first = der::only(bytes, der::SEQUENCE).and_then(|key| key.items().next());
                let encrypted = match first.map(|first| first.tag) {
                    Some(der::SEQUENCE) => true,
                    Some(der::INTEGER) => false,
                    _ => {
                        return Err(Error::raised(
                            class,
                            "Could not deserialize binary data, neither as DER nor PKCS#12.",
                        ));
                    }
                };
                (Encoding::Der, "DER", encrypted)
            }
        };
        let superfluous = "Private key is unencrypted. Please remove the password.";
        source::check_passphrase(encrypted, passphrase.is_some(), superfluous)?;
        let written = piece.map(|piece| piece.written().into_bytes());
        let input = written.as_deref().unwrap_or(bytes);
        // Without the option an encrypted key would ask the terminal.
        let secrets = [("HALITE_PASSPHRASE", passphrase.unwrap_or_default())];
        let words = ["pkey", "-inform", form, "-passin", "env:HALITE_PASSPHRASE"];
        let opened = match openssl(cx, &words, input, &secrets) {
            Ok(opened) => opened,
            Err(Error::Failed(_)) if encrypted => {
                return Err(Error::raised("InvalidPassword", source::BAD_PASSPHRASE));
            }
            Err(Error::Failed(_)) if encoding == Encoding::Pem => {
                return Err(Error::raised(class, "Could not load PEM-encoded private key"));
            }
            Err(Error::Failed(_)) => {
                return Err(Error::raised(
                    class,
                    "Could not deserialize binary data, neither as DER nor PKCS#12.",
                ));
            }
            Err(error) => return Err(error),
        };
        // Only PEM is PKCS 8 for every kind of key; as DER the program writes older forms.
        let pem = String::from_utf8_lossy(&opened).into_owned();
        let der = source::pem_entry(&pem, None).ok().and_then(|piece| piece.der());
        let public = openssl(cx, &["pkey", "-pubout"], &opened, &[])?;
        let public = public_only(&public).ok();
        let unreadable = || Error::raised(class, "Could not load PEM-encoded private key");
        let (der, public) = der.zip(public).ok_or_else(unreadable)?;
        Ok(Self { der, public, encoding })
    }

    /// Writes it, encrypted if there is a passphrase.
    pub fn encode(
        &self,
        cx: &Cx,
        encoding: Encoding,
        passphrase: Option<&str>,
        compatible: bool,
    ) -> Result<Vec<u8>> {
        let passphrase = passphrase.filter(|passphrase| !passphrase.is_empty());
        if encoding == Encoding::Pkcs12 {
            return source::to_pkcs12(cx, Some(&self.der), &[], passphrase, None, compatible);
        }
        let Some(passphrase) = passphrase else {
            return Ok(source::written(encoding, "PRIVATE KEY", &self.der));
        };
        let input = source::pem("PRIVATE KEY", &self.der);
        let words = ["pkcs8", "-topk8", "-v2", "aes-256-cbc", "-passout", "env:HALITE_PASSPHRASE"];
        let secrets = [("HALITE_PASSPHRASE", passphrase)];
        let pem = openssl(cx, &words, input.as_bytes(), &secrets)?;
        if encoding != Encoding::Der {
            return Ok(pem);
        }
        let piece = source::pem_entry(&String::from_utf8_lossy(&pem), None)?;
        piece.der().ok_or_else(|| Error::failed("The key made cannot be read"))
    }

    /// The algorithm a signature with this key has, as a certificate names it.
    pub fn signature_algorithm(&self, digest: &str) -> Result<Vec<u8>> {
        let digest = digest.to_lowercase();
        let row = DIGESTS.iter().find(|(name, ..)| *name == digest).ok_or_else(|| {
            let names: Vec<&str> = DIGESTS.iter().map(|(name, ..)| *name).collect();
            Error::failed(format!(
                "Invalid value '{digest}' for digest. Valid: {}",
                names.join(", ")
            ))
        })?;
        let number = match self.public.algo() {
            "rsa" => row.1,
            "ec" => row.2,
            "ed25519" => "1.3.101.112",
            _ => "1.3.101.113",
        };
        if number.is_empty() {
            return Err(Error::raised(
                "UnsupportedAlgorithm",
                format!(
                    "Hash algorithm \"{}\" not supported for signatures",
                    digest.replace('_', "-")
                ),
            ));
        }
        let null: &[u8] = if self.public.algo() == "rsa" { &[5, 0] } else { &[] };
        Ok(der::sequence(&[&der::known(number), null]))
    }

    /// Signs data, with the plain padding if the key is RSA.
    pub fn sign(&self, cx: &Cx, digest: &str, data: &[u8]) -> Result<Vec<u8>> {
        self.sign_padded(cx, digest, data, &[])
    }

    /// Signs data; the options say how an RSA key pads it.
    pub fn sign_padded(
        &self,
        cx: &Cx,
        digest: &str,
        data: &[u8],
        padding: &[&str],
    ) -> Result<Vec<u8>> {
        let key = source::pem("PRIVATE KEY", &self.der);
        let option = format!("-{}", digest.to_lowercase().replace('_', "-"));
        // The key stands before the data, so that neither is an argument or in a file. Ed25519
        // wants to know the length of its data beforehand, hence the file, which holds no secret.
        let script = match self.public.algo() {
            "rsa" | "ec" => {
                r#"exec 3<&0; key=$(dd bs=1 count="$1" 2>/dev/null); shift
                printf '%s\n' "$key" | openssl dgst "$@" -sign /dev/stdin -binary /dev/fd/3"#
            }
            _ => {
                r#"key=$(dd bs=1 count="$1" 2>/dev/null); data=$(mktemp) || exit 1
                trap 'rm -f "$data"' EXIT; cat >"$data"
                printf '%s\n' "$key" | openssl pkeyutl -sign -rawin -inkey /dev/stdin -in "$data""#
            }
        };
        let padding = if self.public.algo() == "rsa" { padding } else { &[] };
        piped(cx, script, &key, data, &[&[option.as_str()], padding].concat(), &[])
    }
}

/// Runs a script that gets a key before its other input; the key's length is its first argument.
pub fn piped(
    cx: &Cx,
    script: &str,
    key: &str,
    data: &[u8],
    options: &[&str],
    secrets: &[(&str, &str)],
) -> Result<Vec<u8>> {
    let length = key.len().to_string();
    let words = [&["sh", "-c", script, "sh", &length], options].concat();
    let mut command = Command::line(words).query();
    for (name, value) in secrets {
        command = command.env(*name, *value);
    }
    command.stdin = Some([key.as_bytes(), data].concat());
    let output = cx.host.run(&command)?;
    if output.ok() && !output.stdout.is_empty() {
        return Ok(output.stdout);
    }
    Err(Error::failed(reason_of(&output.stderr_text())))
}

/// Digests with the algorithm's number for RSA and for EC; none where it cannot sign.
pub(crate) const DIGESTS: [(&str, &str, &str); 11] = [
    ("sha1", "", ""),
    ("sha224", "1.2.840.113549.1.1.14", "1.2.840.10045.4.3.1"),
    ("sha256", "1.2.840.113549.1.1.11", "1.2.840.10045.4.3.2"),
    ("sha384", "1.2.840.113549.1.1.12", "1.2.840.10045.4.3.3"),
    ("sha512", "1.2.840.113549.1.1.13", "1.2.840.10045.4.3.4"),
    ("sha512_224", "", ""),
    ("sha512_256", "", ""),
    ("sha3_224", "2.16.840.1.101.3.4.3.13", "2.16.840.1.101.3.4.3.9"),
    ("sha3_256", "2.16.840.1.101.3.4.3.14", "2.16.840.1.101.3.4.3.10"),
    ("sha3_384", "2.16.840.1.101.3.4.3.15", "2.16.840.1.101.3.4.3.11"),
    ("sha3_512", "2.16.840.1.101.3.4.3.16", "2.16.840.1.101.3.4.3.12"),
];

const PSS: &str = "1.2.840.113549.1.1.10";

/// The digest of a signature's algorithm; none for Ed25519 and its like.
pub fn digest_of(algorithm: &[u8]) -> Option<&'static str> {
    let number = der::only(algorithm, der::SEQUENCE)?.items().next()?.oid()?;
    let old = [
        ("1.2.840.113549.1.1.5", "sha1"),
        ("1.2.840.10045.4.1", "sha1"),
        ("1.2.840.113549.1.1.4", "md5"),
    ];
    let row = DIGESTS.iter().find(|(_, rsa, ec)| *rsa == number || *ec == number);
    let old = || old.iter().find(|(own, _)| *own == number).map(|(_, digest)| *digest);
    row.map(|(name, ..)| *name).or_else(old)
}

/// The name users see.
pub fn algorithm_shown(algorithm: &[u8]) -> String {
    let number = der::only(algorithm, der::SEQUENCE).and_then(|all| all.items().next()?.oid());
    let name = match number.as_deref().unwrap_or_default() {
        "1.2.840.113549.1.1.4" => "md5WithRSAEncryption",
        "1.2.840.113549.1.1.5" => "sha1WithRSAEncryption",
        "1.2.840.113549.1.1.11" => "sha256WithRSAEncryption",
        "1.2.840.113549.1.1.12" => "sha384WithRSAEncryption",
        "1.2.840.113549.1.1.13" => "sha512WithRSAEncryption",
        "1.2.840.113549.1.1.14" => "sha224WithRSAEncryption",
        PSS => "rsassaPss",
        "1.2.840.10045.4.1" => "ecdsa-with-SHA1",
        "1.2.840.10045.4.3.1" => "ecdsa-with-SHA224",
        "1.2.840.10045.4.3.2" => "ecdsa-with-SHA256",
        "1.2.840.10045.4.3.3" => "ecdsa-with-SHA384",
        "1.2.840.10045.4.3.4" => "ecdsa-with-SHA512",
        "1.3.101.112" => "ed25519",
        "1.3.101.113" => "ed448",
        _ => "Unknown OID",
    };
    name.to_owned()
}

/// Tells whether a signature is right.
pub fn verify(
    cx: &Cx,
    public: &Public,
    algorithm: &[u8],
    signature: &[u8],
    data: &[u8],
) -> Result<bool> {
    let number = der::only(algorithm, der::SEQUENCE).and_then(|all| all.items().next()?.oid());
    let pss = number.as_deref() == Some(PSS);
    let digest = digest_of(algorithm).or_else(|| pss.then_some("sha256"));
    verify_by(cx, public, digest, pss, signature, data)
}

/// Tells whether a signature made with this digest is right; without one the key brings its own.
pub fn verify_by(
    cx: &Cx,
    public: &Public,
    digest: Option<&str>,
    pss: bool,
    signature: &[u8],
    data: &[u8],
) -> Result<bool> {
    // Nothing here is secret: the program wants three inputs, so two of them become files.
    let script = r#"dir=$(mktemp -d) || exit 3; trap 'rm -rf "$dir"' EXIT
        printf '%s' "$1" >"$dir/key"; printf '%s' "$2" | openssl base64 -d -A >"$dir/signature"
        cat >"$dir/data"; shift 2
        case $1 in
        pkeyutl) openssl pkeyutl -verify -rawin -pubin -inkey "$dir/key" \
            -sigfile "$dir/signature" -in "$dir/data" ;;
        *) openssl dgst "$@" -verify "$dir/key" -signature "$dir/signature" "$dir/data" ;;
        esac"#;
    let option = digest.map(|digest| format!("-{}", digest.replace('_', "-")));
    let (pem, signature) = (public.pem(), hashutil::base64(signature));
    let mut words = vec!["sh", "-c", script, "sh", &pem, &signature];
    match &option {
        Some(option) if matches!(public.algo(), "rsa" | "ec") => words.push(option),
        Some(_) => return Ok(false),
        None => words.push("pkeyutl"),
    }
    if pss {
        words.extend(["-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:auto"]);
    }
    let mut command = Command::line(words).query();
    command.stdin = Some(data.to_vec());
    Ok(cx.host.run(&command)?.ok())
}

/// The public key of a private key, a certificate, a request or a public key.
pub fn public_of(cx: &Cx, source: &Value, passphrase: Option<&str>) -> Result<Public> {
    let nothing =
        || Error::failed("Could not load key as certificate, public key, private key or CSR");
    let Ok(bytes) = source::load(cx, source) else { return Err(nothing()) };
    if let Ok(public) = public_only(&bytes) {
        return Ok(public);
    }
    if let Ok(found) = source::certificates(cx, &bytes, passphrase) {
        let first = found.certificates.first().and_then(|der| Certificate::read(der));
        return first.map(|certificate| certificate.key).ok_or_else(nothing);
    }
    if let Ok((request, _)) = super::request::load(&bytes) {
        return Ok(request.key);
    }
    match Private::open(cx, &bytes, passphrase) {
        Ok(key) => Ok(key.public),
        Err(Error::Raised { class, message, .. }) if class != "PrivDeserializationError" => {
            Err(Error::failed(message))
        }
        Err(Error::Raised { .. }) => Err(nothing()),
        Err(error) => Err(error),
    }
}

/// Reads a public key and nothing else.
pub fn public_only(bytes: &[u8]) -> Result<Public> {
    let text = String::from_utf8_lossy(bytes);
    let der = match text.contains("-----BEGIN ") {
        true => {
            let pieces = Piece::all(&text);
            pieces.iter().find(|piece| piece.kind == "PUBLIC KEY").and_then(Piece::der)
        }
        false => Some(bytes.to_vec()),
    };
    der.as_deref().and_then(Public::read).ok_or_else(|| {
        Error::raised("PubDeserializationError", "Could not load PEM-encoded public key.")
    })
}
