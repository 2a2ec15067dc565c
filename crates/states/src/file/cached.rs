//! `file.cached`, `file.not_cached` and `file.decode`.

use std::path::Path;

use halite_modules::{
    cp::cached_path,
    file::{
        hashes::{Sum, sum_for},
        paths::{expand_user, real},
        source::{REMOTE_PROTOCOLS, Signature, Trust, local_path, redacted, scheme_of},
    },
    hashutil::{Kind, from_base64},
};
use halite_spec::{Applied, Args, Cx, Error, Keys, Plan, Result, State, host::Write};
use halite_value::{Dict, Value, dict, entries, lookup};

use super::Found;

/// Keep a file in the minion's cache.
#[derive(Args)]
pub struct Cached {
    /// The address.
    name: String,
    /// The hash the file must have.
    #[default(Value::str(""))]
    source_hash: Value,
    /// The name to look for in a file of digests.
    source_hash_name: Option<String>,
    /// Do not compare hashes.
    #[default(false)]
    skip_verify: bool,
    /// The environment of `salt://` files.
    #[default("base".to_owned())]
    saltenv: String,
    /// Ask the server whether the file changed.
    #[default(false)]
    use_etag: bool,
    /// A detached signature of the file of digests.
    source_hash_sig: Option<Value>,
    /// Keys one of which must have signed.
    signed_by_any: Option<Value>,
    /// Keys all of which must have signed.
    signed_by_all: Option<Value>,
    /// The keyring.
    keyring: Option<String>,
    /// The home of GnuPG.
    gnupghome: Option<String>,
    /// The module that checks signatures.
    #[default("gpg".to_owned())]
    sig_backend: String,
}

impl Cached {
    fn sum(&self, cx: &Cx) -> Result<Option<Sum>> {
        if !self.source_hash.truthy() {
            return Ok(None);
        }
        let hash_name = self.source_hash_name.as_deref();
        let hash = self.source_hash.to_str();
        let signature = self.source_hash_sig.clone().filter(Value::truthy);
        let digests = signature.map(|signature| Signature {
            signature,
            signed_by_any: self.signed_by_any.clone(),
            signed_by_all: self.signed_by_all.clone(),
            keyring: self.keyring.clone(),
            gnupghome: self.gnupghome.clone(),
            backend: self.sig_backend.clone(),
        });
        let trust = Trust { digests, ..Trust::default() };
        sum_for(cx, "", &self.name, &hash, hash_name, &self.saltenv, &trust).map(Some)
    }

    /// A file of this machine is only looked at.
    fn local(&self, cx: &Cx, sum: Option<&Sum>) -> Result<String> {
        let path = real(cx, &expand_user(cx, &local_path(&self.name)))?;
        if !cx.host.exists(Path::new(&path))? {
            return Err(Error::failed(format!("File {path} is not present on the minion")));
        }
        let Some(sum) = sum.filter(|_| !self.skip_verify) else {
            return Ok(format!("File {path} is present on the minion"));
        };
        let hash = sum.kind.of_file(&*cx.host, Path::new(&path))?;
        if hash == sum.digits {
            Ok(format!("File {path} is present on the minion and has hash {hash}"))
        } else {
            Err(Error::failed(format!(
                "File {path} is present on the minion, but the hash ({hash}) does not match the \
                 specified hash ({})",
                sum.digits
            )))
        }
    }
}

impl State for Cached {
    type Seen = Found<Option<Sum>>;
    const KEYS: Keys = Keys(["changes", "comment", "name", "result"]);
    const REPEATS: bool = true;

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let name = &self.name;
        let scheme = scheme_of(name);
        if !self.skip_verify
            && !self.source_hash.truthy()
            && !self.use_etag
            && REMOTE_PROTOCOLS.contains(&scheme.as_str())
        {
            return Err(Error::failed(format!(
                "Unable to verify upstream hash of source file {}, please set source_hash or set \
                 skip_verify or use_etag to True",
                redacted(name)
            )));
        }
        let sum = self.sum(cx)?;
        // A file of this machine is not looked at before it is asked for.
        let mut plan = Plan::unknown();
        plan.pending = match (cached_path(cx, name, &self.saltenv)?, &sum) {
            (None, _) => format!("File will be cached: {name}"),
            (Some(_), None) => format!("No hash found. File will be cached: {name}"),
            (Some(path), Some(sum)) => {
                let hash = sum.kind.of_file(&*cx.host, &path)?;
                if hash == sum.digits {
                    format!("File already cached: {name}")
                } else {
                    format!("Hashes don't match.\nFile will be cached: {name}")
                }
            }
        };
        Ok(Found::todo(plan, sum))
    }

    fn plan(&self, seen: &Self::Seen) -> Result<Plan> {
        Ok(seen.plan.clone())
    }

    fn apply(&self, cx: &Cx, seen: Self::Seen) -> Result<Applied> {
        let Some(sum) = seen.work else { return Ok(Applied::as_planned()) };
        let name = &self.name;
        if matches!(scheme_of(name).as_str(), "" | "file") {
            let comment = self.local(cx, sum.as_ref())?;
            return Ok(Applied::changes(Dict::new()).comment(comment));
        }
        let configured = cx.opt_str("hash_type").and_then(|name| Kind::named(&name));
        let kind = sum.as_ref().map(|sum| sum.kind).or(configured).unwrap_or(Kind::Sha256);
        let hash_of = |path: &Path| kind.of_file(&*cx.host, path);
        let before = cached_path(cx, name, &self.saltenv)?;
        let before = before.map(|path| hash_of(&path).map(|hash| (path, hash))).transpose()?;
        if let (Some((path, hash)), Some(sum)) = (&before, &sum)
            && *hash == sum.digits
            && !self.skip_verify
        {
            return Ok(Applied::changes(Dict::new()).comment(format!(
                "File is already cached to {} with hash {hash}",
                path.display()
            )));
        }
        let path = cx
            .files
            .cache(name, &self.saltenv)
            .map_err(|error| Error::failed(redacted(&error.to_string())))?
            .ok_or_else(|| {
                Error::failed(format!(
                    "Failed to cache {}, check minion log for more information",
                    redacted(name)
                ))
            })?;
        let hash = hash_of(&path)?;
        let old = before.map(|(_, hash)| hash);
        let changes = Dict::new();
        if old.as_deref() != Some(hash.as_str()) {
            changes.insert("hash", dict! { "old" => old, "new" => &hash });
        }
        let shown = path.display();
        Ok(match sum.filter(|_| !self.skip_verify) {
            Some(sum) if sum.digits != hash => Applied::failed(
                changes,
                format!(
                    "File is cached to {shown}, but the hash ({hash}) does not match the specified \
                     hash ({})",
                    sum.digits
                ),
            ),
            Some(_) => Applied::changes(changes)
                .comment(format!("File is already cached to {shown} with hash {hash}")),
            None => Applied::changes(changes).comment(format!("File is cached to {shown}")),
        })
    }
}

/// Remove a file from the minion's cache.
#[derive(Args)]
pub struct NotCached {
    /// The address.
    name: String,
    /// The environment of `salt://` files.
    #[default("base".to_owned())]
    saltenv: String,
}

impl State for NotCached {
    type Seen = Found<std::path::PathBuf>;
    const KEYS: Keys = Keys(["changes", "comment", "name", "result"]);

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let name = &self.name;
        if matches!(scheme_of(name).as_str(), "" | "file") {
            let path = real(cx, &expand_user(cx, &local_path(name)))?;
            return Ok(Found::right(format!("File {path} is a local path, no action taken")));
        }
        match cached_path(cx, name, &self.saltenv)? {
            None => Ok(Found::right(format!("{name} is not cached"))),
            Some(path) => {
                let comment = format!("{} was deleted", path.display());
                // differs: genuine Salt deletes in a test, too.
                let plan = Plan::changes(entries! { "deleted" => true })
                    .pending(format!("{} is set to be deleted", path.display()))
                    .done(comment);
                Ok(Found::todo(plan, path))
            }
        }
    }

    fn plan(&self, seen: &Self::Seen) -> Result<Plan> {
        Ok(seen.plan.clone())
    }

    fn apply(&self, cx: &Cx, seen: Self::Seen) -> Result<Applied> {
        if let Some(path) = seen.work {
            cx.host.remove_file(&path).map_err(|error| {
                Error::failed(format!("Failed to delete {}: {error}", path.display()))
            })?;
        }
        Ok(Applied::as_planned())
    }
}

/// Write a file from base64.
#[derive(Args)]
pub struct Decode {
    /// The file.
    name: String,
    /// The base64 text.
    encoded_data: Option<String>,
    /// The pillar value that is the base64 text.
    contents_pillar: Option<String>,
    /// Only `base64`.
    #[expect(dead_code, reason = "there is only one")]
    #[default("base64".to_owned())]
    encoding_type: String,
    /// The kind of hash that is told.
    #[default("md5".to_owned())]
    checksum: String,
}

impl State for Decode {
    type Seen = Found<(Vec<u8>, Dict)>;

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let encoded = match (given(&self.encoded_data), given(&self.contents_pillar)) {
            (None, None) => {
                return Err(Error::failed(
                    "Specify either the 'encoded_data' or 'contents_pillar' argument.",
                ));
            }
            (Some(_), Some(_)) => {
                return Err(Error::failed(
                    "Specify only one 'encoded_data' or 'contents_pillar' argument.",
                ));
            }
            (Some(data), None) => data,
            (None, Some(key)) => lookup::traverse(&Value::from(&cx.pillar), &key, ":")
                .ok_or_else(|| Error::failed("Pillar data not found."))?
                .to_str()
                .to_string(),
        };
        let bytes = from_base64(encoded.as_bytes()).map_err(Error::failed)?;
        let Some(kind @ (Kind::Md5 | Kind::Sha256 | Kind::Sha512)) = Kind::named(&self.checksum)
        else {
            return Err(Error::failed(format!("Hash func '{}' is not supported.", self.checksum)));
        };
        let new = kind.of(&bytes);
        let at = Path::new(&self.name);
        let old = if cx.host.is_file(at)? { Some(kind.of_file(&*cx.host, at)?) } else { None };
        if old.as_ref() == Some(&new) {
            return Ok(Found::right("File is in the correct state."));
        }
        let changes = entries! { "old" => old.clone(), "new" => new };
        // Salt tells no changes of a new file in a test.
        let plan = match old {
            Some(_) => Plan::changes(changes.clone()),
            None => Plan::unknown(),
        };
        let plan = plan.pending("File is set to be updated.").done("File was updated.");
        Ok(Found::todo(plan, (bytes, changes)))
    }

    fn plan(&self, seen: &Self::Seen) -> Result<Plan> {
        Ok(seen.plan.clone())
    }

    fn apply(&self, cx: &Cx, seen: Self::Seen) -> Result<Applied> {
        let Some((bytes, changes)) = seen.work else { return Ok(Applied::as_planned()) };
        cx.host.write(Path::new(&self.name), &bytes, &Write::default())?;
        Ok(Applied::changes(changes))
    }
}
