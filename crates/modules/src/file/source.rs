//! Where the content of a file comes from: addresses, and choosing from a list of them.

use std::path::Path;

use halite_spec::{Call, Cx, Error, Fetch, Result, function};
use halite_value::{Dict, Value};

use super::paths::is_abs;

pub const REMOTE_PROTOCOLS: [&str; 5] = ["http", "https", "ftp", "swift", "s3"];
pub const VALID_PROTOCOLS: [&str; 7] = ["salt", "file", "http", "https", "ftp", "swift", "s3"];

/// Returns what stands before the colon of an address, in lower case; empty if it has none.
pub fn scheme_of(address: &str) -> String {
    match address.split_once(':') {
        Some((scheme, _))
            if scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)) =>
        {
            scheme.to_lowercase()
        }
        _ => String::new(),
    }
}

/// Splits `salt://path?saltenv=env`.
pub fn parse_salt(address: &str) -> (String, Option<String>) {
    let Some(rest) = address.strip_prefix("salt://") else { return (address.to_owned(), None) };
    let (path, saltenv) = if let Some((path, _)) = rest.split_once("?env=") {
        (path, None)
    } else if let Some((path, env)) = rest.split_once("?saltenv=") {
        (path, Some(env.to_owned()))
    } else {
        (rest, None)
    };
    (path.trim_start_matches('/').to_owned(), saltenv)
}

/// The path of a local source: plain, or behind `file://`.
pub fn local_path(address: &str) -> String {
    address.strip_prefix("file://").unwrap_or(address).to_owned()
}

/// The address without a password in it.
pub fn redacted(address: &str) -> String {
    let lower = address.to_lowercase();
    for scheme in ["https://", "http://"] {
        if let Some(at) = lower.find(scheme)
            && let Some(end) = address[at..].rfind('@')
        {
            let from = at + scheme.len();
            return format!("{}<redacted>{}", &address[..from], &address[at + end..]);
        }
    }
    address.to_owned()
}

/// What a source from elsewhere must show before it is believed.
#[derive(Clone, Debug)]
pub struct Trust {
    /// Check the certificate of the server.
    pub verify_ssl: bool,
    /// The signature of the file of digests, where `source_hash` names one.
    pub digests: Option<Signature>,
}

impl Default for Trust {
    fn default() -> Self {
        Self { verify_ssl: true, digests: None }
    }
}

impl Trust {
    /// How files are fetched that must show this.
    pub fn fetch(&self) -> Fetch {
        Fetch { verify_ssl: self.verify_ssl, ..Fetch::default() }
    }
}

/// Checks a signature with the module that can (`gpg.verify` …).
#[derive(Clone, Debug)]
pub struct Signature {
    pub signature: Value,
    pub signed_by_any: Option<Value>,
    pub signed_by_all: Option<Value>,
    pub keyring: Option<String>,
    pub gnupghome: Option<String>,
    pub backend: String,
}

impl Signature {
    pub fn verify(&self, cx: &Cx, file: &Path, saltenv: &str) -> Result<()> {
        let function = format!("{}.verify", self.backend);
        if !cx.runtime.has(cx, &function) {
            return Err(Error::failed(format!(
                "Signature verification requires the {} module, which could not be found. Make \
                 sure you have the necessary tools and libraries intalled",
                self.backend
            )));
        }
        let cached = |address: &str| match cx.files.cache(address, saltenv)? {
            Some(path) => Ok(path.display().to_string()),
            None => Err(Error::failed(format!("Detached signature file {address} not found"))),
        };
        let signature = match &self.signature {
            Value::Str(address) => Value::from(cached(address)?),
            other => match other.items_of_sequence() {
                Some(addresses) => {
                    let paths = addresses.iter().map(|address| cached(&address.to_str()));
                    paths.collect::<Result<Vec<String>>>()?.into()
                }
                // The file carries its signature itself.
                None => Value::Null,
            },
        };
        let signatures: Vec<String> = match &signature {
            Value::Str(path) => vec![path.to_string()],
            other => {
                other.items_of_sequence().unwrap_or_default().iter().map(Value::to_string).collect()
            }
        };
        let call = Call::default()
            .with("filename", file.display().to_string())
            .with("signature", signature)
            .with("keyring", self.keyring.clone())
            .with("gnupghome", self.gnupghome.clone())
            .with("signed_by_any", self.signed_by_any.clone())
            .with("signed_by_all", self.signed_by_all.clone());
        let ret = cx.call(&function, call)?;
        if ret.get("res") == Some(Value::Bool(true)) {
            return Ok(());
        }
        // What nobody vouches for does not stay in the cache for the next to find.
        cx.files.forget(file)?;
        for path in signatures {
            cx.files.forget(Path::new(&path))?;
        }
        let message = ret.get("message").unwrap_or_default();
        Err(Error::failed(format!("The file's signature could not be verified: {message}")))
    }
}

/// Tells whether the file server has a path in an environment; the list is asked for once a job.
fn is_served(cx: &Cx, path: &str, saltenv: &str) -> Result<bool> {
    let key = format!("file.served {saltenv}");
    let known = match cx.context.get(key.as_str()) {
        Some(Value::Dict(known)) => known,
        _ => {
            let files = cx.files.list(saltenv, "")?;
            let dirs = cx.files.list_dirs(saltenv, "")?;
            let known: Dict = files.into_iter().chain(dirs).map(|path| (path, true)).collect();
            cx.context.insert(key, &known);
            known
        }
    };
    Ok(known.contains(path))
}

/// Tells whether one source of a list can be had.
fn is_available(cx: &Cx, source: &str, saltenv: &str) -> Result<bool> {
    let scheme = scheme_of(source);
    match scheme.as_str() {
        "salt" => {
            let (path, env) = parse_salt(source);
            is_served(cx, &path, env.as_deref().unwrap_or(saltenv))
        }
        "file" => Ok(cx.host.exists(Path::new(&local_path(source)))?),
        "" if is_abs(source) => Ok(cx.host.exists(Path::new(source))?),
        "" => is_served(cx, source, saltenv),
        scheme if scheme.starts_with("http") || scheme == "ftp" => {
            Ok(cx.files.cache(source, saltenv).is_ok_and(|path| path.is_some()))
        }
        _ => Ok(false),
    }
}

/// Chooses the first source of a list that can be had, with the hash that goes with it.
pub fn choose(
    cx: &Cx,
    source: &Value,
    source_hash: &Value,
    saltenv: &str,
) -> Result<(Option<String>, Value)> {
    let Some(list) = source.items_of_sequence() else {
        let source = source.truthy().then(|| source.to_str().to_string());
        return Ok((source, source_hash.clone()));
    };
    for item in list {
        let (source, hash) = match &item {
            Value::Dict(dict) => match dict.entries().as_slice() {
                [(source, hash)] if hash.truthy() => (source.to_str(), hash.clone()),
                [(source, _)] => (source.to_str(), source_hash.clone()),
                _ => continue,
            },
            other => (other.to_str(), source_hash.clone()),
        };
        if is_available(cx, &source, saltenv)? {
            return Ok((Some(source.to_string()), hash));
        }
    }
    Err(Error::failed("none of the specified sources were found"))
}

/// Choose the first source of a list that exists, and return it with its hash.
///
/// ```console
/// $ salt web1 file.source_list salt://app/app.conf salt://app/app.conf.sha256 base
/// ```
#[function]
pub fn source_list(
    cx: &Cx,
    /// A source, or a list of them; one may be a dict of the source and its hash.
    source: Value,
    /// The hash for those that bring none.
    source_hash: Value,
    /// The environment of `salt://` files.
    saltenv: String,
) -> Result<Value> {
    if source.items_of_sequence().is_none() {
        return Ok(Value::tuple([source, source_hash]));
    }
    let (source, hash) = choose(cx, &source, &source_hash, &saltenv)?;
    Ok(Value::tuple([source.into(), hash]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        assert_eq!(scheme_of("salt://a"), "salt");
        assert_eq!(scheme_of("HTTPS://a"), "https");
        assert_eq!(scheme_of("/a:b"), "");
        assert_eq!(scheme_of("md5=aa"), "");
        assert_eq!(parse_salt("salt://a/b?saltenv=dev"), ("a/b".into(), Some("dev".into())));
        assert_eq!(redacted("http://u:p@h/x"), "http://<redacted>@h/x");
    }
}
