//! Extensions of certificates, requests and revocation lists: written from what trees say of them,
//! read into what users are shown.
//!
//! Trees write them in OpenSSL's words (`critical, CA:true`), as lists or as dictionaries. Each has
//! a row in [`TABLE`]; its order is the one they stand in, both in what is made and in what is shown.

use halite_spec::{Error, Result};
use halite_value::{Dict, Value, dict};
use sha1::{Digest, Sha1};

use super::{
    certificate::Certificate,
    colons,
    der::{self, Item},
    from_hex,
    general::{self, Given},
    name, stamp,
};

/// An extension as it stands in a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// Its number.
    pub oid: String,
    pub critical: bool,
    /// Its value, DER.
    pub value: Vec<u8>,
}

/// What some extensions are made from.
pub struct About<'a> {
    /// The key certified, as `SubjectPublicKeyInfo`.
    pub key: &'a [u8],
    /// The key that signs.
    pub signing_key: &'a [u8],
    /// The certificate that signs; none if it is the new one itself.
    pub signing: Option<&'a Certificate>,
}

/// Name and number, in order; those of certificates first.
const TABLE: [(&str, &str); 20] = [
    ("basicConstraints", "2.5.29.19"),
    ("keyUsage", "2.5.29.15"),
    ("extendedKeyUsage", "2.5.29.37"),
    ("subjectKeyIdentifier", SUBJECT_KEY),
    ("authorityKeyIdentifier", "2.5.29.35"),
    ("issuerAltName", "2.5.29.18"),
    ("authorityInfoAccess", "1.3.6.1.5.5.7.1.1"),
    ("subjectAltName", SUBJECT_NAMES),
    ("crlDistributionPoints", "2.5.29.31"),
    ("issuingDistributionPoint", "2.5.29.28"),
    ("certificatePolicies", "2.5.29.32"),
    ("policyConstraints", "2.5.29.36"),
    ("inhibitAnyPolicy", "2.5.29.54"),
    ("nameConstraints", "2.5.29.30"),
    ("noCheck", "1.3.6.1.5.5.7.48.1.5"),
    ("tlsfeature", "1.3.6.1.5.5.7.1.24"),
    ("cRLNumber", "2.5.29.20"),
    ("deltaCRLIndicator", "2.5.29.27"),
    ("freshestCRL", "2.5.29.46"),
    ("certificateIssuer", "2.5.29.29"),
];

/// Extensions of an entry of a revocation list, in order.
const ENTRY: [(&str, &str); 3] = [
    ("certificateIssuer", "2.5.29.29"),
    ("CRLReason", "2.5.29.21"),
    ("invalidityDate", "2.5.29.24"),
];

const SUBJECT_KEY: &str = "2.5.29.14";
const SUBJECT_NAMES: &str = "2.5.29.17";

/// What a certificate may have.
pub const CERTIFICATE: [&str; 16] = [
    "basicConstraints",
    "keyUsage",
    "extendedKeyUsage",
    "subjectKeyIdentifier",
    "authorityKeyIdentifier",
    "issuerAltName",
    "authorityInfoAccess",
    "subjectAltName",
    "crlDistributionPoints",
    "certificatePolicies",
    "policyConstraints",
    "inhibitAnyPolicy",
    "nameConstraints",
    "noCheck",
    "tlsfeature",
    "nsComment",
];

/// What a request may have: not what is the signer's business.
pub const REQUEST: [&str; 11] = [
    "basicConstraints",
    "keyUsage",
    "extendedKeyUsage",
    "subjectKeyIdentifier",
    "subjectAltName",
    "certificatePolicies",
    "policyConstraints",
    "inhibitAnyPolicy",
    "nameConstraints",
    "noCheck",
    "tlsfeature",
];

/// What a revocation list may have.
pub const LIST: [&str; 7] = [
    "authorityKeyIdentifier",
    "issuerAltName",
    "authorityInfoAccess",
    "issuingDistributionPoint",
    "cRLNumber",
    "deltaCRLIndicator",
    "freshestCRL",
];

const KEY_USAGE: [&str; 9] = [
    "digitalSignature",
    "nonRepudiation",
    "keyEncipherment",
    "dataEncipherment",
    "keyAgreement",
    "keyCertSign",
    "cRLSign",
    "encipherOnly",
    "decipherOnly",
];

/// Uses of a key; the last ones are understood, but shown as their number.
const EXTENDED: [(&str, &str); 13] = [
    ("serverAuth", "1.3.6.1.5.5.7.3.1"),
    ("clientAuth", "1.3.6.1.5.5.7.3.2"),
    ("codeSigning", "1.3.6.1.5.5.7.3.3"),
    ("emailProtection", "1.3.6.1.5.5.7.3.4"),
    ("timeStamping", "1.3.6.1.5.5.7.3.8"),
    ("OCSPSigning", "1.3.6.1.5.5.7.3.9"),
    ("msSmartcardLogin", "1.3.6.1.4.1.311.20.2.2"),
    ("pkInitKDC", "1.3.6.1.5.2.3.5"),
    ("msCodeInd", "1.3.6.1.4.1.311.2.1.21"),
    ("msCodeCom", "1.3.6.1.4.1.311.2.1.22"),
    ("msCTLSign", "1.3.6.1.4.1.311.10.3.1"),
    ("msEFS", "1.3.6.1.4.1.311.10.3.4"),
    ("ipsecIKE", "1.3.6.1.5.5.7.3.17"),
];
const EXTENDED_SHOWN: usize = 8;

const ACCESS: [(&str, &str); 2] =
    [("OCSP", "1.3.6.1.5.5.7.48.1"), ("caIssuers", "1.3.6.1.5.5.7.48.2")];

/// Reasons with their number in a list's entry and their bit in a distribution point.
const REASONS: [(&str, u8, Option<usize>); 10] = [
    ("unspecified", 0, None),
    ("keyCompromise", 1, Some(1)),
    ("cACompromise", 2, Some(2)),
    ("affiliationChanged", 3, Some(3)),
    ("superseded", 4, Some(4)),
    ("cessationOfOperation", 5, Some(5)),
    ("certificateHold", 6, Some(6)),
    ("removeFromCRL", 8, None),
    ("privilegeWithdrawn", 9, Some(7)),
    ("aACompromise", 10, Some(8)),
];

const TLS_FEATURES: [(&str, u64); 2] = [("status_request", 5), ("status_request_v2", 17)];

const CPS: &str = "1.3.6.1.5.5.7.2.1";
const NOTICE: &str = "1.3.6.1.5.5.7.2.2";

/// The identifier of a key: the SHA-1 of its bits.
pub fn key_identifier(key: &[u8]) -> Vec<u8> {
    let bits = der::only(key, der::SEQUENCE).and_then(|key| key.items().nth(1));
    let bits = bits.and_then(|bits| bits.content.get(1..)).unwrap_or_default();
    Sha1::digest(bits).to_vec()
}

impl Extension {
    pub fn name(&self) -> Option<&'static str> {
        TABLE.iter().find(|(_, own)| *own == self.oid).map(|(name, _)| *name)
    }

    pub fn written(&self) -> Vec<u8> {
        let critical = match self.critical {
            true => der::element(der::BOOLEAN, &[0xff]),
            false => Vec::new(),
        };
        der::sequence(&[&der::known(&self.oid), &critical, &der::element(der::OCTETS, &self.value)])
    }

    fn read(item: Item) -> Option<Self> {
        let mut parts = item.items();
        let oid = parts.next()?.oid()?;
        let critical = parts.tagged(der::BOOLEAN).is_some_and(|item| item.content != [0]);
        let value = parts.tagged(der::OCTETS)?.content.to_vec();
        Some(Self { oid, critical, value })
    }
}

/// Reads the extensions in a sequence.
pub fn read_all(item: Item) -> Vec<Extension> {
    item.items().filter_map(Extension::read).collect()
}

/// Writes a sequence of extensions.
pub fn write_all(extensions: &[Extension]) -> Vec<u8> {
    let all: Vec<Vec<u8>> = extensions.iter().map(Extension::written).collect();
    der::element(der::SEQUENCE, &all.concat())
}

/// Makes the extensions among some arguments that are allowed here, in order.
pub fn given(given: &Dict, allowed: &[&str], about: &About) -> Result<Vec<Extension>> {
    for name in ["nsComment", "nsCertType"] {
        if allowed.contains(&"nsComment") && given.get(name).is_some_and(|value| !value.is_null()) {
            return Err(Error::invalid(format!("{name} is currently not implemented.")));
        }
    }
    let mut all = Vec::new();
    let given = super::policy::short_names(given);
    for (name, oid) in TABLE.iter().filter(|(name, _)| allowed.contains(name)) {
        let Some(value) = given.get(*name).filter(|value| !value.is_null()) else { continue };
        let (critical, value) = write(name, &value, about)?;
        all.push(Extension { oid: (*oid).to_owned(), critical, value });
    }
    Ok(all)
}

/// What a request may not ask for: they tell of the one who signs.
pub const SIGNERS_OWN: [&str; 4] =
    ["authorityInfoAccess", "authorityKeyIdentifier", "issuerAltName", "crlDistributionPoints"];

/// The names openssl shows extensions by, which older trees use, too.
const LONG_NAMES: [(&str, &str); 16] = [
    ("X509v3 Basic Constraints", "basicConstraints"),
    ("X509v3 Key Usage", "keyUsage"),
    ("X509v3 Extended Key Usage", "extendedKeyUsage"),
    ("X509v3 Subject Key Identifier", "subjectKeyIdentifier"),
    ("X509v3 Authority Key Identifier", "authorityKeyIdentifier"),
    ("X509v3 Issuer Alternative Name", "issuerAltName"),
    ("X509v3 Authority Info Access", "authorityInfoAccess"),
    ("X509v3 Subject Alternative Name", "subjectAltName"),
    ("X509v3 CRL Distribution Points", "crlDistributionPoints"),
    ("X509v3 Certificate Policies", "certificatePolicies"),
    ("X509v3 Policy Constraints", "policyConstraints"),
    ("X509v3 Inhibit Any Policy", "inhibitAnyPolicy"),
    ("X509v3 Name Constraints", "nameConstraints"),
    ("X509v3 OCSP No Check", "noCheck"),
    ("X509v3 TLS Feature", "tlsfeature"),
    ("Netscape Comment", "nsComment"),
];

/// The argument a long name stands for.
pub fn short(name: &str) -> Option<&'static str> {
    LONG_NAMES.iter().find(|(long, _)| *long == name).map(|(_, short)| *short)
}

/// Makes the extensions of an entry of a revocation list.
pub fn of_entry(given: &Dict) -> Result<Vec<Extension>> {
    for (name, _) in given.entries() {
        let name = name.to_str();
        if !ENTRY.iter().any(|(known, _)| *known == name) {
            tracing::warn!("Ignoring invalid CRL entry extension: {name}");
        }
    }
    let mut all = Vec::new();
    for (name, oid) in ENTRY {
        let Some(value) = given.get(name).filter(|value| !value.is_null()) else { continue };
        let words = Words::of(&value);
        let value = match name {
            "certificateIssuer" => der::element(der::SEQUENCE, &general::write_all(&words.items)?),
            "CRLReason" => {
                let text = words.text();
                let reason = REASONS.iter().find(|(own, ..)| *own == text);
                let (_, number, _) = reason.ok_or_else(|| no_reason(&text))?;
                der::element(der::ENUMERATED, &[*number])
            }
            _ => {
                let time = stamp::parse(&words.text())
                    .map_err(|error| Error::invalid(error.to_string()))?;
                der::element(der::GENERALIZED_TIME, stamp::long(time).as_bytes())
            }
        };
        all.push(Extension { oid: oid.to_owned(), critical: words.critical, value });
    }
    Ok(all)
}

fn no_reason(text: &str) -> Error {
    Error::invalid(format!("'{text}' is not a valid ReasonFlags"))
}

/// A value taken apart: `critical`, and the rest.
struct Words {
    critical: bool,
    items: Vec<Value>,
    dict: Option<Dict>,
}

impl Words {
    fn of(value: &Value) -> Self {
        if let Value::Dict(given) = value {
            let critical = given.get("critical").is_some_and(|critical| critical.truthy());
            let rest = given.shallow_copy();
            rest.remove("critical");
            return Self { critical, items: Vec::new(), dict: Some(rest) };
        }
        let mut critical = false;
        let mut items = match value {
            Value::Str(text) => {
                let text = text.trim();
                // «critical CA:true» is as good as «critical, CA:true».
                let rest = text.strip_prefix("critical");
                critical = rest.is_some();
                let rest = rest.unwrap_or(text).trim_start_matches([',', ' ']);
                rest.split(',').map(|word| Value::from(word.trim())).collect()
            }
            _ => value.items_of_sequence().unwrap_or_else(|| vec![value.clone()]),
        };
        items.retain(|item| {
            let marks = matches!(item, Value::Str(word) if word == "critical");
            critical |= marks;
            !marks
        });
        Self { critical, items, dict: None }
    }

    fn text(&self) -> String {
        let words: Vec<String> = self.items.iter().map(|item| item.to_str().to_string()).collect();
        words.join(",")
    }

    fn has(&self, word: &str) -> bool {
        match &self.dict {
            Some(dict) => dict.get(word).is_some_and(|value| value.truthy()),
            None => self.items.iter().any(|item| item.to_str() == word),
        }
    }

    /// `CA:true` among the words, or an entry of the dictionary.
    fn get(&self, key: &str) -> Option<Value> {
        if let Some(dict) = &self.dict {
            return dict.get(key).filter(|value| !value.is_null());
        }
        self.items.iter().find_map(|item| {
            let text = item.to_str();
            let (name, value) = text.split_once(':')?;
            (name.trim().eq_ignore_ascii_case(key)).then(|| Value::from(value.trim()))
        })
    }

    fn number(&self, key: &str) -> Result<Option<u64>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        number_of(&value).map(Some)
    }
}

fn number_of(value: &Value) -> Result<u64> {
    let wrong =
        || Error::invalid(format!("invalid literal for int() with base 10: {}", value.repr()));
    value.to_str().trim().parse().map_err(|_| wrong())
}

fn list_of(value: &Value) -> Vec<Value> {
    match value {
        Value::Str(_) => vec![value.clone()],
        _ => value.items_of_sequence().unwrap_or_else(|| vec![value.clone()]),
    }
}

fn write(name: &str, value: &Value, about: &About) -> Result<(bool, Vec<u8>)> {
    let words = Words::of(value);
    let plain = |what: &str| Error::invalid(format!("{what} must be marked as non-critical"));
    let written = match name {
        "basicConstraints" => basic_constraints(&words)?,
        "keyUsage" => key_usage(&words)?,
        "extendedKeyUsage" => extended_usage(&words)?,
        "subjectKeyIdentifier" | "authorityKeyIdentifier" if words.critical => {
            return Err(plain(name));
        }
        "subjectKeyIdentifier" => subject_key(&words, about)?,
        "authorityKeyIdentifier" => authority_key(&words, about)?,
        "issuerAltName" | "subjectAltName" | "certificateIssuer" => names(&words, about)?,
        "authorityInfoAccess" => return Ok((false, access(&words)?)),
        "crlDistributionPoints" | "freshestCRL" => points(&words)?,
        "issuingDistributionPoint" => issuing_point(&words)?,
        "certificatePolicies" => policies(&words)?,
        "policyConstraints" => policy_constraints(&words)?,
        "inhibitAnyPolicy" => {
            let value = words.get("value").unwrap_or_else(|| words.text().into());
            der::small(number_of(&value)?)
        }
        "nameConstraints" => name_constraints(&words)?,
        "noCheck" => vec![5, 0],
        "tlsfeature" => tls_feature(&words)?,
        _ => {
            let value = words.get("value").unwrap_or_else(|| words.text().into());
            let number = number_of(&value).ok().filter(|_| name != "cRLNumber" || !words.critical);
            let Some(number) = number else {
                return Err(Error::invalid(format!(
                    "{name} must be an integer and must be marked as non-critical"
                )));
            };
            der::small(number)
        }
    };
    Ok((words.critical, written))
}

fn basic_constraints(words: &Words) -> Result<Vec<u8>> {
    let wrong =
        |why: &str| Error::invalid(format!("Invalid configuration for basicContraints: {why}"));
    let ca = words.get("ca").ok_or_else(|| wrong("'ca'"))?;
    let ca = match &ca {
        Value::Str(text) => text.eq_ignore_ascii_case("true"),
        other => other.truthy(),
    };
    let length = words.number("pathlen").map_err(|error| wrong(&error.to_string()))?;
    if length.is_some() && !ca {
        return Err(Error::invalid("path_length must be None when ca is False"));
    }
    let flag = if ca { der::element(der::BOOLEAN, &[0xff]) } else { Vec::new() };
    Ok(der::sequence(&[&flag, &length.map(der::small).unwrap_or_default()]))
}

fn key_usage(words: &Words) -> Result<Vec<u8>> {
    let set: Vec<bool> = KEY_USAGE.iter().map(|usage| words.has(usage)).collect();
    let only = words.has("encipherOnly") || words.has("decipherOnly");
    if only && !words.has("keyAgreement") {
        return Err(Error::invalid(
            "encipher_only and decipher_only can only be true when key_agreement is true",
        ));
    }
    Ok(der::flags(&set))
}

fn extended_usage(words: &Words) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    for word in &words.items {
        let word = word.to_str();
        let known = EXTENDED.iter().find(|(name, _)| *name == word);
        let number = known.map_or(word.as_str(), |(_, number)| number);
        all.extend(der::oid(number).ok_or_else(|| Error::failed(format!("Invalid oid: {word}")))?);
    }
    Ok(der::element(der::SEQUENCE, &all))
}

fn subject_key(words: &Words, about: &About) -> Result<Vec<u8>> {
    let [Value::Str(text)] = words.items.as_slice() else {
        return Err(Error::invalid("Value must be a (hex-)digest or pubkey"));
    };
    let identifier = match text.as_str() {
        "hash" => key_identifier(about.key),
        text => from_hex(text).ok_or_else(|| Error::invalid("Value must be precomputed hash"))?,
    };
    Ok(der::element(der::OCTETS, &identifier))
}

fn authority_key(words: &Words, about: &About) -> Result<Vec<u8>> {
    let asked = |key: &str| match words.get(key) {
        Some(value) => Some(value.to_str().to_string()),
        None => words.has(key).then(String::new),
    };
    let mut all = Vec::new();
    let identifier = asked("keyid").map(|_| {
        let own = about.signing.and_then(|signing| signing.extension(SUBJECT_KEY));
        let own = own.and_then(|own| Some(der::only(&own.value, der::OCTETS)?.content.to_vec()));
        own.unwrap_or_else(|| key_identifier(about.signing_key))
    });
    if let Some(identifier) = &identifier {
        all.extend(der::element(der::context_plain(0), identifier));
    }
    let issuer = asked("issuer");
    let always = issuer.as_deref() == Some("always");
    if issuer.is_some() && (always || identifier.is_none()) {
        match about.signing {
            Some(signing) => {
                let name = der::element(der::context(4), &signing.subject.der);
                all.extend(der::element(der::context(1), &name));
                let mut serial = der::integer(&signing.serial);
                if let Some(tag) = serial.first_mut() {
                    *tag = der::context_plain(2);
                }
                all.extend(serial);
            }
            None if always => {
                return Err(Error::failed(
                    "Could not add authority_cert_issuer and authority_cert_serial_number, but \
                     was set to always.",
                ));
            }
            None => {}
        }
    }
    Ok(der::element(der::SEQUENCE, &all))
}

fn names(words: &Words, about: &About) -> Result<Vec<u8>> {
    let items = match &words.dict {
        Some(dict) => dict
            .entries()
            .into_iter()
            .flat_map(|(kind, value)| {
                let pair = move |value: Value| dict! { kind.to_str() => value };
                list_of(&value).into_iter().map(pair).collect::<Vec<_>>()
            })
            .collect(),
        None => words.items.clone(),
    };
    let mut all = Vec::new();
    for item in &items {
        let given = Given::of(item);
        if !given.is_copy() {
            all.extend(given.write()?);
            continue;
        }
        let copied = about.signing.and_then(|signing| signing.extension(SUBJECT_NAMES));
        let copied = copied.ok_or_else(|| {
            Error::failed("The signing certificate has no subjectAltName to copy")
        })?;
        if let Some(copied) = der::only(&copied.value, der::SEQUENCE) {
            all.extend_from_slice(copied.content);
        }
    }
    Ok(der::element(der::SEQUENCE, &all))
}

fn access(words: &Words) -> Result<Vec<u8>> {
    let of_dict = |dict: &Dict| {
        let all = dict.entries().into_iter().flat_map(|(method, value)| {
            let pair = move |value: Value| (method.to_str().to_string(), value);
            list_of(&value).into_iter().map(pair).collect::<Vec<_>>()
        });
        all.collect::<Vec<(String, Value)>>()
    };
    let mut pairs = words.dict.as_ref().map(of_dict).unwrap_or_default();
    for item in &words.items {
        if let Value::Dict(pair) = item {
            pairs.extend(of_dict(pair));
            continue;
        }
        let text = item.to_str();
        let (method, value) = text.split_once(';').ok_or_else(|| {
            Error::invalid(format!("authorityInfoAccess needs a method and a name, not {text}"))
        })?;
        pairs.push((method.trim().to_owned(), value.into()));
    }
    let mut all = Vec::new();
    for (method, value) in pairs {
        let known = ACCESS.iter().find(|(name, _)| *name == method);
        let number = der::oid(known.map_or(method.as_str(), |(_, number)| number))
            .ok_or_else(|| Error::failed(format!("Unknown access OID: {method}")))?;
        all.extend(der::sequence(&[&number, &Given::of(&value).write()?]));
    }
    Ok(der::element(der::SEQUENCE, &all))
}

/// `fullname` or `relativename` of a distribution point.
fn point_name(point: &Dict) -> Result<Option<Vec<u8>>> {
    let part = |key: &str| point.get(key).filter(Value::truthy);
    if let Some(full) = part("fullname") {
        let names = general::write_all(&list_of(&full))?;
        return Ok(Some(der::element(der::context(0), &names)));
    }
    let Some(relative) = part("relativename") else { return Ok(None) };
    Ok(Some(der::element(der::context(1), &name::relative(&relative.to_str())?)))
}

fn reason_flags(reasons: &Value) -> Result<Vec<u8>> {
    let mut set = [false; 9];
    for reason in list_of(reasons) {
        let text = reason.to_str();
        let known = REASONS.iter().find(|(name, ..)| *name == text);
        let (_, _, bit) = known.ok_or_else(|| no_reason(&text))?;
        let bit = bit.ok_or_else(|| {
            Error::invalid(
                "unspecified and remove_from_crl are not valid reasons in a DistributionPoint",
            )
        })?;
        if let Some(flag) = set.get_mut(bit) {
            *flag = true;
        }
    }
    Ok(der::flags(&set))
}

/// The same element under another tag.
fn retagged(mut element: Vec<u8>, tag: u8) -> Vec<u8> {
    if let Some(first) = element.first_mut() {
        *first = tag;
    }
    element
}

fn points(words: &Words) -> Result<Vec<u8>> {
    let items = match &words.dict {
        Some(dict) => vec![Value::from(dict.clone())],
        None => words.items.clone(),
    };
    let mut all = Vec::new();
    for item in items {
        let point = match item {
            Value::Dict(point) => point,
            other => {
                let point = Dict::new();
                point.insert("fullname", other);
                point
            }
        };
        let mut parts = Vec::new();
        if let Some(name) = point_name(&point)? {
            parts.extend(der::element(der::context(0), &name));
        }
        if let Some(reasons) = point.get("reasons").filter(Value::truthy) {
            parts.extend(retagged(reason_flags(&reasons)?, der::context_plain(1)));
        }
        if let Some(issuer) = point.get("crlissuer").filter(Value::truthy) {
            parts.extend(der::element(der::context(2), &general::write_all(&list_of(&issuer))?));
        }
        if parts.is_empty() {
            return Err(Error::invalid(
                "Either full_name, relative_name or crl_issuer must be provided.",
            ));
        }
        all.extend(der::element(der::SEQUENCE, &parts));
    }
    Ok(der::element(der::SEQUENCE, &all))
}

fn issuing_point(words: &Words) -> Result<Vec<u8>> {
    let Some(point) = &words.dict else {
        return Err(Error::invalid("issuingDistributionPoint must be a dictionary"));
    };
    let mut parts = Vec::new();
    if let Some(name) = point_name(point)? {
        parts.extend(der::element(der::context(0), &name));
    }
    let mut flag = |key: &str, number: u8| {
        if point.get(key).is_some_and(|value| value.truthy()) {
            parts.extend(der::element(der::context_plain(number), &[0xff]));
        }
    };
    flag("onlyuser", 1);
    flag("onlyCA", 2);
    if let Some(reasons) = point.get("onlysomereasons").filter(Value::truthy) {
        parts.extend(retagged(reason_flags(&reasons)?, der::context_plain(3)));
    }
    let mut flag = |key: &str, number: u8| {
        if point.get(key).is_some_and(|value| value.truthy()) {
            parts.extend(der::element(der::context_plain(number), &[0xff]));
        }
    };
    flag("indirectCRL", 4);
    flag("onlyAA", 5);
    if parts.is_empty() {
        return Err(Error::invalid(
            "Cannot create empty extension: if only_contains_user_certs, only_contains_ca_certs, \
             indirect_crl, and only_contains_attribute_certs are all False, then either \
             full_name, relative_name, or only_some_reasons must have a value.",
        ));
    }
    Ok(der::element(der::SEQUENCE, &parts))
}

fn policies(words: &Words) -> Result<Vec<u8>> {
    let wrong = || {
        Error::invalid(
            "certificatePolicies defined as string must be a comma-separated list of OID.",
        )
    };
    let mut all = Vec::new();
    for item in &words.items {
        let Value::Str(number) = item else {
            return Err(Error::invalid("certificatePolicies must be a string or a dictionary"));
        };
        all.extend(der::sequence(&[&der::oid(number).ok_or_else(wrong)?]));
    }
    for (number, qualifiers) in words.dict.iter().flat_map(Dict::entries) {
        let number = number.to_str();
        let number =
            der::oid(&number).ok_or_else(|| Error::failed(format!("Invalid oid: {number}")))?;
        let mut written = Vec::new();
        for qualifier in list_of(&qualifiers) {
            written.extend(policy_qualifier(&qualifier)?);
        }
        let written = match written.is_empty() {
            true => written,
            false => der::element(der::SEQUENCE, &written),
        };
        all.extend(der::sequence(&[&number, &written]));
    }
    Ok(der::element(der::SEQUENCE, &all))
}

fn policy_qualifier(given: &Value) -> Result<Vec<u8>> {
    let Value::Dict(notice) = given else {
        let text = der::element(der::IA5, given.to_str().as_bytes());
        return Ok(der::sequence(&[&der::known(CPS), &text]));
    };
    // Salt leaves a notice out that has no numbers.
    let Some(numbers) = notice.get("noticeNumbers").filter(Value::truthy) else {
        return Ok(Vec::new());
    };
    let wrong = || Error::failed("notice_numbers must be a list of integers");
    let numbers = numbers.items_of_sequence().ok_or_else(wrong)?;
    let mut written = Vec::new();
    for number in numbers {
        let number = number.to_int().and_then(|number| u64::try_from(number).ok());
        written.extend(der::small(number.ok_or_else(wrong)?));
    }
    let utf8 = |text: Value| der::element(der::UTF8, text.to_str().as_bytes());
    let organization = notice
        .get("organization")
        .ok_or_else(|| Error::invalid("noticeNumbers need an organization"))?;
    let reference = der::sequence(&[&utf8(organization), &der::element(der::SEQUENCE, &written)]);
    let text = notice.get("text").filter(|text| !text.is_null()).map(utf8).unwrap_or_default();
    Ok(der::sequence(&[&der::known(NOTICE), &der::sequence(&[&reference, &text])]))
}

fn policy_constraints(words: &Words) -> Result<Vec<u8>> {
    let explicit = words.number("requireExplicitPolicy")?;
    let mapping = words.number("inhibitPolicyMapping")?;
    if explicit.is_none() && mapping.is_none() {
        return Err(Error::invalid(
            "At least one of require_explicit_policy and inhibit_policy_mapping must not be None",
        ));
    }
    let part = |value: Option<u64>, number: u8| {
        value
            .map(|value| retagged(der::small(value), der::context_plain(number)))
            .unwrap_or_default()
    };
    Ok(der::sequence(&[&part(explicit, 0), &part(mapping, 1)]))
}

fn name_constraints(words: &Words) -> Result<Vec<u8>> {
    let mut trees = [Vec::new(), Vec::new()];
    let kinds = ["permitted", "excluded"];
    for (kind, tree) in kinds.iter().zip(&mut trees) {
        if let Some(dict) = &words.dict {
            if let Some(names) = dict.get(*kind).filter(Value::truthy) {
                tree.extend(list_of(&names));
            }
            continue;
        }
        for item in &words.items {
            let text = item.to_str();
            if let Some((own, name)) = text.split_once(';')
                && own.trim() == *kind
            {
                tree.push(name.into());
            }
        }
    }
    if trees.iter().all(Vec::is_empty) {
        return Err(Error::invalid("nameConstraints needs at least one definition"));
    }
    let mut all = Vec::new();
    for (number, tree) in trees.iter().enumerate().filter(|(_, tree)| !tree.is_empty()) {
        let mut names = Vec::new();
        for name in tree {
            let written = Given::of(name).write()?;
            // An address alone is no network.
            if written.first() == Some(&der::context_plain(7))
                && written.len() != 10
                && written.len() != 34
            {
                return Err(Error::invalid(
                    "IPAddress name constraints must be an IPv4Network or IPv6Network object",
                ));
            }
            names.extend(der::sequence(&[&written]));
        }
        all.extend(der::element(der::context(number as u8), &names));
    }
    Ok(der::element(der::SEQUENCE, &all))
}

fn tls_feature(words: &Words) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    for word in &words.items {
        let word = word.to_str();
        let known = TLS_FEATURES.iter().find(|(name, _)| *name == word);
        let (_, number) =
            known.ok_or_else(|| Error::invalid(format!("Unknown TLS feature: {word}")))?;
        all.extend(der::small(*number));
    }
    Ok(der::element(der::SEQUENCE, &all))
}

/// Shows the extensions that have a name here, by it.
pub fn shown(extensions: &[Extension]) -> Dict {
    shown_by(extensions, &TABLE)
}

/// Shows the extensions of an entry of a revocation list.
pub fn shown_of_entry(extensions: &[Extension]) -> Dict {
    shown_by(extensions, &ENTRY)
}

fn shown_by(extensions: &[Extension], table: &[(&str, &str)]) -> Dict {
    let all = Dict::new();
    for (name, oid) in table {
        let Some(extension) = extensions.iter().find(|extension| extension.oid == *oid) else {
            continue;
        };
        let shown = Dict::new();
        shown.insert("critical", extension.critical);
        if let Some(item) = der::Items::of(&extension.value).next() {
            show(name, item, &shown);
        }
        all.insert(*name, shown);
    }
    all
}

fn texts(item: Item) -> Value {
    Value::list(item.items().map(general::shown).collect::<Vec<_>>())
}

fn put(shown: &Dict, key: &str, value: impl Into<Value>) {
    shown.insert(key, value);
}

fn show(name: &str, item: Item, shown: &Dict) {
    match name {
        "basicConstraints" => {
            let mut parts = item.items();
            put(shown, "ca", parts.tagged(der::BOOLEAN).is_some_and(|ca| ca.content != [0]));
            put(shown, "pathlen", parts.next().and_then(Item::small).map(Value::from));
        }
        "keyUsage" => {
            let mut usages: Vec<(usize, &str)> = KEY_USAGE.into_iter().enumerate().collect();
            usages.sort_by_key(|(_, usage)| *usage);
            for (bit, usage) in usages {
                put(shown, usage, der::flag(item.content, bit));
            }
        }
        "extendedKeyUsage" => {
            let known = |number: &String| {
                EXTENDED.iter().take(EXTENDED_SHOWN).find(|(_, own)| own == number)
            };
            let uses = item.items().filter_map(Item::oid);
            let uses = uses.map(|number| {
                known(&number).map_or(number.clone(), |(name, _)| (*name).to_owned())
            });
            put(shown, "value", Value::list(uses.collect::<Vec<_>>()));
        }
        "subjectKeyIdentifier" => put(shown, "value", colons(item.content)),
        "authorityKeyIdentifier" => {
            let part = |tag: u8| item.items().find(|part| part.tag == tag);
            put(
                shown,
                "keyid",
                part(der::context_plain(0)).map(|id| Value::from(colons(id.content))),
            );
            put(shown, "issuer", part(der::context(1)).map(texts));
            let serial =
                part(der::context_plain(2)).map(|serial| Value::from(colons(serial.number())));
            put(shown, "issuer_sn", serial);
        }
        "issuerAltName" | "subjectAltName" | "certificateIssuer" => {
            put(shown, "value", texts(item));
        }
        "authorityInfoAccess" => put(shown, "value", show_access(item)),
        "crlDistributionPoints" | "freshestCRL" => {
            put(shown, "value", Value::list(item.items().map(show_point).collect::<Vec<_>>()));
        }
        "issuingDistributionPoint" => show_issuing_point(item, shown),
        "certificatePolicies" => {
            put(shown, "value", Value::list(item.items().map(show_policy).collect::<Vec<_>>()));
        }
        "policyConstraints" => {
            let part = |tag: u8| item.items().find(|part| part.tag == der::context_plain(tag));
            put(shown, "inhibitPolicyMapping", part(1).and_then(Item::small).map(Value::from));
            put(shown, "requireExplicitPolicy", part(0).and_then(Item::small).map(Value::from));
        }
        "nameConstraints" => {
            let part = |number: u8| {
                let tree = item.items().find(|part| part.tag == der::context(number));
                let names = tree.into_iter().flat_map(Item::items);
                let names = names.filter_map(|name| Some(general::shown(name.items().next()?)));
                Value::list(names.collect::<Vec<_>>())
            };
            put(shown, "excluded", part(1));
            put(shown, "permitted", part(0));
        }
        "noCheck" => put(shown, "value", true),
        "tlsfeature" => {
            let known = |number: i64| {
                TLS_FEATURES.iter().find(|(_, own)| i64::try_from(*own) == Ok(number))
            };
            let features = item.items().filter_map(Item::small);
            let features = features.filter_map(|number| known(number).map(|(name, _)| *name));
            put(shown, "value", Value::list(features.collect::<Vec<_>>()));
        }
        "CRLReason" => {
            let number = item.small();
            let known = REASONS.iter().find(|(_, own, _)| Some(i64::from(*own)) == number);
            put(shown, "value", known.map(|(name, ..)| Value::from(*name)));
        }
        "invalidityDate" => put(shown, "value", stamp::read(item).map(stamp::shown)),
        _ => put(shown, "value", item.small().map(Value::from)),
    }
}

fn show_access(item: Item) -> Value {
    let one = |description: Item| {
        let mut parts = description.items();
        let method = parts.next()?.oid()?;
        let known = ACCESS.iter().find(|(_, own)| *own == method);
        let method = known.map_or(method.as_str(), |(name, _)| name);
        Some(dict! { method => general::bare(parts.next()?) })
    };
    Value::list(item.items().filter_map(one).collect::<Vec<_>>())
}

fn show_reasons(item: Option<Item>) -> Value {
    let set = |bit: usize| item.is_some_and(|item| der::flag(item.content, bit));
    let names = REASONS.iter().filter(|(_, _, bit)| bit.is_some_and(set));
    let mut names: Vec<&str> = names.map(|(name, ..)| *name).collect();
    names.sort_unstable();
    Value::list(names)
}

/// Full and relative name of a distribution point.
fn show_point_name(item: Option<Item>) -> (Value, Value) {
    let name = item.and_then(|item| item.items().next());
    let full = name.filter(|name| name.tag == der::context(0)).map(texts);
    let relative = name.filter(|name| name.tag == der::context(1));
    let relative = relative.map(|name| Value::from(name::relative_of(name)));
    (full.unwrap_or_else(|| Value::list(Vec::<Value>::new())), relative.unwrap_or_default())
}

fn show_point(item: Item) -> Value {
    let part = |tag: u8| item.items().find(|part| part.tag == tag);
    let (full, relative) = show_point_name(part(der::context(0)));
    let issuer = part(der::context(2)).map(texts);
    dict! {
        "crlissuer" => issuer.unwrap_or_else(|| Value::list(Vec::<Value>::new())),
        "fullname" => full,
        "reasons" => show_reasons(part(der::context_plain(1))),
        "relativename" => relative,
    }
}

fn show_issuing_point(item: Item, shown: &Dict) {
    let part = |tag: u8| item.items().find(|part| part.tag == tag);
    let flag =
        |number: u8| part(der::context_plain(number)).is_some_and(|flag| flag.content != [0]);
    let (full, relative) = show_point_name(part(der::context(0)));
    shown.insert("fullname", full);
    // The name is spelt so in Salt.
    shown.insert("onysomereasons", show_reasons(part(der::context_plain(3))));
    shown.insert("relativename", relative);
    shown.insert("onlyuser", flag(1));
    shown.insert("onlyCA", flag(2));
    shown.insert("onlyAA", flag(5));
    shown.insert("indirectCRL", flag(4));
}

fn show_policy(item: Item) -> Value {
    let mut parts = item.items();
    let number = parts.next().and_then(Item::oid).unwrap_or_default();
    let qualifiers = parts.next().into_iter().flat_map(Item::items);
    dict! { number => Value::list(qualifiers.map(show_qualifier).collect::<Vec<_>>()) }
}

fn show_qualifier(item: Item) -> Value {
    let mut parts = item.items();
    let kind = parts.next().and_then(Item::oid);
    let Some(value) = parts.next() else { return Value::Null };
    if kind.as_deref() != Some(NOTICE) {
        return dict! { "practice_statement" => value.text() };
    }
    let reference = value.items().find(|part| part.tag == der::SEQUENCE);
    let text =
        value.items().find(|part| part.tag != der::SEQUENCE).map(|text| Value::from(text.text()));
    let mut parts = reference.into_iter().flat_map(Item::items);
    let organization = parts.next().map(|name| Value::from(name.text()));
    let numbers = parts
        .next()
        .map(|numbers| Value::list(numbers.items().filter_map(Item::small).collect::<Vec<_>>()));
    dict! {
        // The name is spelt so in Salt.
        "organizataion" => organization,
        "notice_numbers" => numbers,
        "explicit_text" => text,
    }
}
