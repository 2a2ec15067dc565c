//! `asymmetric`: sign and verify with bare keys (RSA, EC, Ed25519, Ed448), without certificates.
//!
//! Keys and the program that works with them are `x509`'s. RSA signs with PSS and the longest salt,
//! as Salt does, so either end can check what the other signed. `verify` has the arguments and the
//! return of `gpg.verify`: states take one or the other (`sig_backend`).

use std::path::{Path, PathBuf};

use halite_spec::{Cx, Error, Rest, Result, function, host::Write, module};
use halite_value::{Dict, Value, entries};

use crate::{
    cp, hashutil,
    x509::{
        keys::{self, DIGESTS, Private, Public},
        source,
    },
};

module! {
    /// Sign and verify with bare keys.
    "asymmetric": sign, verify,
}

const PSS: [&str; 4] = ["-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:max"];

/// The digest by the name Salt knows; it counts for RSA and EC only.
fn digest_of(name: Option<&str>) -> Result<String> {
    let name = name.unwrap_or("sha256").to_lowercase();
    if DIGESTS.iter().any(|(own, ..)| *own == name) {
        return Ok(name);
    }
    Err(Error::failed(
        "The selected hashing algorithm does not exist in the cryptography python library",
    ))
}

fn bytes_of(text: &Value) -> Vec<u8> {
    match text {
        Value::Bytes(bytes) => bytes.to_vec(),
        text => text.to_str().as_bytes().to_vec(),
    }
}

/// Sign a text or a file, and return the signature as base64.
///
/// ```console
/// $ salt web1 asymmetric.sign /root/my.key text='I like you'
/// $ salt web1 asymmetric.sign /root/my.key filename=/data/release.tar path=/data/release.sig
/// ```
#[function]
pub fn sign(
    cx: &Cx,
    /// The key: a file or a text.
    privkey: Value,
    /// Its passphrase.
    passphrase: Option<String>,
    /// The text.
    text: Option<Value>,
    /// The file.
    filename: Option<String>,
    /// The digest, for RSA and EC; `sha256` unless said.
    digest: Option<String>,
    /// Bytes, not base64; a file is written so unless said.
    raw: Option<bool>,
    /// The file to write.
    path: Option<String>,
) -> Result<Value> {
    let data = match (&text, &filename) {
        (Some(text), _) => bytes_of(text),
        (None, Some(file)) => cx.host.read(Path::new(file))?,
        (None, None) => {
            return Err(Error::invalid("Either `text` or `filename` is required"));
        }
    };
    let key = Private::load(cx, &privkey, passphrase.as_deref())?;
    let made = key.sign_padded(cx, &digest_of(digest.as_deref())?, &data, &PSS)?;
    let Some(path) = path else {
        return Ok(match raw {
            Some(true) => Value::bytes(made),
            _ => hashutil::base64(&made).into(),
        });
    };
    let written = if raw == Some(false) { hashutil::base64(&made).into_bytes() } else { made };
    cx.host.write(Path::new(&path), &written, &Write::default())?;
    Ok(format!("Signature written to '{path}'").into())
}

/// A key or signature that may be on a server: brought here.
fn fetched(cx: &Cx, source: &Value) -> Result<Value> {
    let Value::Str(text) = source else { return Ok(source.clone()) };
    if !text.contains("://") || text.contains('\n') {
        return Ok(source.clone());
    }
    let failed = || Error::failed(format!("Failed fetching {}", source.repr()));
    let found = cp::cache_file(cx, text.to_string(), None, None, true, false);
    match found.map_err(|_| failed())? {
        Value::Str(path) => Ok(Value::Str(path)),
        _ => Err(failed()),
    }
}

/// A signature: a file, base64 or bytes. What is none of it is no signature of anything.
fn signature_of(cx: &Cx, source: &Value) -> Result<Vec<u8>> {
    let Value::Str(text) = source else { return Ok(bytes_of(source)) };
    let path = PathBuf::from(text.as_str());
    let content = match cx.host.is_file(&path).unwrap_or_default() {
        true => cx.host.read(&path)?,
        false => text.as_bytes().to_vec(),
    };
    let printed: Vec<u8> =
        content.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
    Ok(match hashutil::from_base64(&printed) {
        Ok(decoded) if printed.iter().all(is_base64) => decoded,
        _ => content,
    })
}

/// A public key.
fn public_of(cx: &Cx, source: &Value) -> Result<Public> {
    let bytes = source::load(cx, &fetched(cx, source)?)?;
    keys::public_only(&bytes).map_err(|error| match String::from_utf8_lossy(&bytes) {
        text if text.contains("-----BEGIN ") => error,
        _ => Error::raised("PubDeserializationError", "Could not load DER-encoded public key."),
    })
}

/// Checks one key against signatures, of which one must be its own.
fn check(
    cx: &Cx,
    key: &Value,
    signatures: &[Vec<u8>],
    data: &[u8],
    digest: Option<&str>,
) -> Result<()> {
    let public = public_of(cx, key)?;
    let digest = match public.algo() {
        "rsa" | "ec" => Some(digest_of(digest)?),
        _ => None,
    };
    let pss = public.algo() == "rsa";
    for signature in signatures.iter().filter(|signature| !signature.is_empty()) {
        if keys::verify_by(cx, &public, digest.as_deref(), pss, signature, data)? {
            return Ok(());
        }
    }
    let id = hashutil::Kind::Sha256.of(&public.der);
    Err(Error::raised("InvalidSignature", format!("Invalid signature for key {id}")))
}

/// One or several.
fn several(given: Option<Value>) -> Option<Vec<Value>> {
    let given = given.filter(Value::truthy)?;
    Some(match &given {
        Value::Str(_) | Value::Bytes(_) => vec![given],
        _ => given.items_of_sequence().unwrap_or_else(|| vec![given.clone()]),
    })
}

/// Check the signature of a text or a file.
///
/// ```console
/// $ salt web1 asymmetric.verify text='I like you' pubkey=/root/my.pub signature=/root/my.sig
/// $ salt web1 asymmetric.verify filename=/data/x signature='[/data/x.a, /data/x.b]' \
///     signed_by_all='[/root/a.pub, /root/b.pub]'
/// ```
#[function]
pub fn verify(
    cx: &Cx,
    /// The text.
    text: Option<Value>,
    /// The file.
    filename: Option<String>,
    /// The key that signed: a file, an address or a text.
    pubkey: Option<Value>,
    /// The signature: a file, an address, base64 or bytes; several of them for `signed_by_any` and
    /// `signed_by_all`.
    signature: Option<Value>,
    /// The digest, for RSA and EC; `sha256` unless said.
    digest: Option<String>,
    /// One of these keys must have signed.
    signed_by_any: Option<Value>,
    /// All of these keys must have signed.
    signed_by_all: Option<Value>,
    /// What `gpg.verify` takes beyond this counts for nothing.
    rest: Rest,
) -> Result<Dict> {
    let _ = rest;
    if text.is_some() && filename.is_some() {
        return Err(Error::invalid("`text` and `filename` arguments are mutually exclusive"));
    }
    let signature = signature.filter(Value::truthy);
    let signature = signature.ok_or_else(|| Error::invalid("Missing `signature` parameter"))?;
    let pubkey = pubkey.filter(Value::truthy);
    let (any, all) = (several(signed_by_any), several(signed_by_all));
    match (&pubkey, any.is_some() || all.is_some()) {
        (Some(_), true) => {
            return Err(Error::invalid("Either specify pubkey + signature or signed_by_(any|all)"));
        }
        (None, false) => return Err(Error::invalid("Missing pubkey(s) to check against")),
        (Some(_), false) if !matches!(signature, Value::Str(_) | Value::Bytes(_)) => {
            return Err(Error::invalid(
                "`signature` must be a string or bytes when verifying a single signing `pubkey`",
            ));
        }
        _ => {}
    }
    let mut signatures = Vec::new();
    for one in several(Some(signature)).unwrap_or_default() {
        match fetched(cx, &one).and_then(|one| signature_of(cx, &one)) {
            Ok(one) => signatures.push(one),
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            Err(error) if pubkey.is_some() => return Ok(refused("checking signature", &error)),
            Err(error) => tracing::error!("{error}"),
        }
    }
    if signatures.is_empty() {
        return Err(Error::failed("Unable to locate any of the provided signatures"));
    }
    let data = match (&text, &filename) {
        (Some(text), _) => bytes_of(text),
        (None, Some(file)) if !cx.host.is_file(Path::new(file))? => {
            return Err(Error::failed(format!("Path '{file}' does not exist")));
        }
        (None, Some(file)) => cx.host.read(Path::new(file))?,
        (None, None) => {
            return Err(Error::invalid("Missing data to verify. Pass either `text` or `filename`"));
        }
    };
    let digest = digest.as_deref();
    if let Some(key) = &pubkey {
        return match check(cx, key, &signatures, &data, digest) {
            Ok(()) => Ok(entries! { "res" => true, "message" => "The signature is valid" }),
            Err(Error::Cancelled) => Err(Error::Cancelled),
            Err(error) => Ok(refused("checking signature", &error)),
        };
    }
    for key in all.iter().flatten() {
        if let Err(error) = check(cx, key, &signatures, &data, digest) {
            return Ok(refused("while checking `signed_by_all`", &error));
        }
    }
    if let Some(any) = any {
        let signed = any.iter().any(|key| {
            check(cx, key, &signatures, &data, digest)
                .inspect_err(|error| tracing::error!("{error}"))
                .is_ok()
        });
        if !signed {
            let text = "None of the public keys listed in signed_by_any provided a valid signature";
            return Ok(entries! { "res" => false, "message" => text });
        }
    }
    Ok(entries! { "res" => true, "message" => "All required keys have provided a signature" })
}

fn refused(doing: &str, error: &Error) -> Dict {
    tracing::error!("{error}");
    entries! { "res" => false, "message" => format!("Failed {doing}: {error}") }
}
