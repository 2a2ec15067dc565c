//! The keys apt trusts: keyring files, and the old `apt-key`.

use std::path::{Path, PathBuf};

use halite_spec::{Cx, Error, Result, host::Write};
use halite_value::{Dict, Value, entries};

use super::{call, options};
use crate::cmd::{self, Options};

const KEYRINGS: &str = "/etc/apt/keyrings";

fn folder_or_usual(folder: Option<&Path>) -> PathBuf {
    folder.map_or_else(|| PathBuf::from(KEYRINGS), Path::to_owned)
}

fn quiet() -> Options {
    Options { query: true, ..options(&Dict::new()) }
}

/// Reads `gpg --with-colons`: key id → what is known of it.
fn parse(text: &str) -> Dict {
    let keys: Vec<Dict> = {
        let mut keys: Vec<Dict> = Vec::new();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let items: Vec<Value> = line
                .split(':')
                .map(|item| match item.trim() {
                    "" => Value::Null,
                    item => item.parse::<i64>().map_or_else(|_| item.into(), Value::Int),
                })
                .collect();
            let item = |at: usize| items.get(at).cloned().unwrap_or_default();
            match item(0).as_str() {
                Some(kind @ ("pub" | "sub")) if items.len() > 1 => {
                    let key = entries! {
                        "algorithm" => item(3), "bits" => item(2), "capability" => item(11),
                        "date_creation" => item(5), "date_expiration" => item(6),
                        "keyid" => item(4).to_str(), "validity" => item(1),
                    };
                    match keys.last().filter(|_| kind == "sub") {
                        Some(last) => {
                            last.insert("subkey", key);
                        }
                        None => keys.push(key),
                    }
                }
                Some("fpr") => {
                    if let Some(last) = keys.last() {
                        match last.get("subkey") {
                            Some(Value::Dict(sub)) => sub.insert("fingerprint", item(9)),
                            _ => last.insert("fingerprint", item(9)),
                        };
                    }
                }
                Some("uid") => {
                    if let Some(last) = keys.last() {
                        last.insert("uid", item(9));
                        last.insert("uid_hash", item(7));
                    }
                }
                _ => {}
            }
        }
        keys
    };
    keys.into_iter().map(|key| (key.get("keyid").unwrap_or_default().to_str(), key)).collect()
}

fn keys_in_file(cx: &Cx, file: &Path) -> Result<Dict> {
    let file = file.display().to_string();
    let words = ["gpg", "--no-default-keyring", "--keyring", &file, "--list-keys", "--with-colons"];
    Ok(parse(&cmd::plain(cx, words, quiet())?.stdout))
}

fn files_in(cx: &Cx, folder: &Path) -> Result<Vec<PathBuf>> {
    Ok(cx.host.read_dir(folder)?.iter().map(|name| folder.join(name)).collect())
}

/// All keys apt trusts; False if there is no folder of keyrings.
pub(crate) fn list(cx: &Cx, aptkey: bool, folder: Option<&Path>) -> Result<Value> {
    if !aptkey || cx.host.which("apt-key").is_none() {
        let folder = folder_or_usual(folder);
        if !cx.host.is_dir(&folder)? {
            tracing::error!(
                "The directory {} does not exist. Please create this directory only writable by \
                 root",
                folder.display()
            );
            return Ok(Value::Bool(false));
        }
        let all = Dict::new();
        for file in files_in(cx, &folder)? {
            all.update(&keys_in_file(cx, &file)?);
        }
        return Ok(all.into());
    }
    let words = [
        "apt-key",
        "adv",
        "--batch",
        "--list-public-keys",
        "--with-fingerprint",
        "--with-fingerprint",
        "--with-colons",
        "--fixed-list-mode",
    ];
    let ran = call(cx, words, quiet())?;
    if !ran.ok() {
        tracing::error!("{}", ran.stderr);
        return Ok(Value::dict());
    }
    Ok(parse(&ran.stdout).into())
}

/// Puts a key file into the folder of keyrings, without its armour unless it is named `.asc`.
pub(crate) fn add_file(
    cx: &Cx,
    file: &Path,
    folder: Option<&Path>,
    name: Option<&Path>,
) -> Result<bool> {
    let folder = folder_or_usual(folder);
    if !cx.host.is_dir(&folder)? {
        cx.host.create_dirs(&folder, Some(0o755))?;
    }
    let own = file.file_name().map(PathBuf::from).unwrap_or_default();
    let place = folder.join(name.map_or(own, Path::to_owned));
    let content = cx.host.read(file)?;
    let armoured = String::from_utf8_lossy(&content).trim_matches('-').starts_with("BEGIN PGP");
    let keeps = place.extension().is_some_and(|end| end == "asc");
    let content = if armoured && !keeps {
        if cx.host.which("gpg").is_none() {
            tracing::error!(
                "Detected an ASCII armored key {} and the gpg binary is not available. Not \
                 decrypting the key.",
                file.display()
            );
            return Ok(false);
        }
        let command = halite_spec::Command {
            stdin: Some(content.clone()),
            ..halite_spec::Command::new("gpg").args(["--yes", "--dearmor"])
        };
        let output = cx.host.run(&command)?;
        if output.ok() {
            output.stdout
        } else {
            tracing::error!("Failed to decrypt the key {}", file.display());
            return Ok(false);
        }
    } else {
        content
    };
    cx.host.write(&place, &content, &Write { mode: Some(0o644), ..Write::default() })?;
    Ok(true)
}

/// Fetches a key from a key server, unless it is here.
pub(super) fn receive(
    cx: &Cx,
    id: &str,
    server: &str,
    signedby: Option<&Path>,
    aptkey: bool,
) -> Result<()> {
    if aptkey {
        let ran = cmd::plain(cx, ["apt-key", "export", id], quiet())?;
        if ran.stdout.starts_with("-----BEGIN PGP") {
            return Ok(());
        }
        let words = [
            "apt-key",
            "adv",
            "--batch",
            "--keyserver",
            server,
            "--logger-fd",
            "1",
            "--recv-keys",
            id,
        ];
        let ran = call(cx, words, options(&Dict::new()))?;
        if !ran.ok() {
            return Err(Error::failed(format!("Error: key retrieval failed: {}", ran.stdout)));
        }
        return Ok(());
    }
    let folder = signedby.and_then(Path::parent);
    if let Value::Dict(known) = list(cx, false, folder)?
        && known.contains(id)
    {
        return Ok(());
    }
    let how = Add {
        keyserver: Some(server.to_owned()),
        keyid: Some(id.to_owned()),
        folder: folder.map(Path::to_owned),
        file: signedby.map(Path::to_owned),
        ..Add::default()
    };
    if add(cx, &how)? {
        return Ok(());
    }
    Err(Error::failed(format!("Error: Could not add key: {id}")))
}

/// A key to add: from a file, a text or a key server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Add {
    pub(crate) path: Option<String>,
    pub(crate) text: Option<String>,
    pub(crate) keyserver: Option<String>,
    pub(crate) keyid: Option<String>,
    pub(crate) saltenv: String,
    pub(crate) aptkey: bool,
    pub(crate) folder: Option<PathBuf>,
    pub(crate) file: Option<PathBuf>,
}

/// Adds a key; false, with the reason in the log, if that fails.
pub(crate) fn add(cx: &Cx, how: &Add) -> Result<bool> {
    let folder = folder_or_usual(how.folder.as_deref());
    let aptkey = how.aptkey && cx.host.which("apt-key").is_some();
    if !aptkey && !cx.host.is_dir(&folder)? {
        cx.host.create_dirs(&folder, Some(0o755))?;
    }
    if let Some(id) = &how.keyid
        && let Value::Dict(known) = list(cx, aptkey, Some(&folder))?
        && known.keys().iter().any(|key| key.to_str().ends_with(id.as_str()))
    {
        return Ok(true);
    }
    let mut settings = options(&Dict::new());
    let mut ring = None;
    let words: Vec<String> = if let Some(path) = &how.path {
        let Some(cached) = cx.files.cache(path, &how.saltenv)? else {
            tracing::error!("Unable to get cached copy of file: {path}");
            return Ok(false);
        };
        if !aptkey {
            return add_file(cx, &cached, Some(&folder), how.file.as_deref());
        }
        vec!["apt-key".into(), "add".into(), cached.display().to_string()]
    } else if let Some(text) = &how.text {
        settings.stdin = Some(text.clone());
        vec!["apt-key".into(), "add".into(), "-".into()]
    } else if let Some(server) = &how.keyserver {
        let Some(id) = &how.keyid else {
            return Err(Error::invalid(format!(
                "No keyid or keyid too short for keyserver: {server}"
            )));
        };
        if aptkey {
            ["apt-key", "adv", "--batch", "--keyserver", server, "--recv", id]
                .map(str::to_owned)
                .into()
        } else {
            let Some(file) = &how.file else {
                tracing::error!(
                    "You must define the name of the key file to save the key. See keyfile argument"
                );
                return Ok(false);
            };
            let file = folder.join(file);
            ring = Some(file.clone());
            let file = file.display().to_string();
            [
                "gpg",
                "--no-default-keyring",
                "--keyring",
                &file,
                "--keyserver",
                server,
                "--recv-keys",
                id,
            ]
            .map(str::to_owned)
            .into()
        }
    } else if let Some(id) = &how.keyid {
        return Err(Error::invalid(format!("No keyserver specified for keyid: {id}")));
    } else {
        return Err(Error::invalid("add_repo_key() takes at least 1 argument (0 given)"));
    };
    let ran = call(cx, words, settings)?;
    if ran.ok() {
        if let Some(ring) = ring {
            cx.host.set_mode(&ring, 0o644)?;
        }
        return Ok(true);
    }
    tracing::error!("Unable to add repo key: {}", ran.stderr);
    Ok(false)
}

/// Removes a key; returns its id, or False if it is not there.
pub(crate) fn delete(cx: &Cx, id: &str, aptkey: bool, folder: Option<&Path>) -> Result<Value> {
    let folder = folder_or_usual(folder);
    if !aptkey || cx.host.which("apt-key").is_none() {
        if !cx.host.is_dir(&folder)? {
            return Ok(Value::Bool(false));
        }
        if !matches!(id.len(), 8 | 16) {
            tracing::error!("The keyid needs to be either 8 or 16 characters");
            return Ok(Value::Bool(false));
        }
        for file in files_in(cx, &folder)? {
            let keys = keys_in_file(cx, &file)?;
            if keys.keys().iter().any(|key| key.to_str().ends_with(id)) {
                cx.host.remove_file(&file)?;
                return Ok(id.into());
            }
        }
        tracing::error!("Could not find the key file for keyid: {id}");
        return Ok(Value::Bool(false));
    }
    let ran = call(cx, ["apt-key", "del", id], options(&Dict::new()))?;
    if !ran.ok() {
        return Err(Error::failed(format!("Failed to remove keyid {id}: {}", ran.stderr)));
    }
    Ok(id.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colons() {
        let text = "tru::1:1\npub:-:4096:1:73C62A1B605C66EA:1610000000:::-:::scSC::::::23::0:\n\
                    fpr:::::::::B8B80B5B623EAB6AD8775C45B7C5D7D6350947F8:\n\
                    uid:-::::1610000000::ABC::Debian <d@e.org>::::::::::0:\n\
                    sub:-:4096:1:0E98404D386FA1D9:1610000000::::::e::::::23:\n\
                    fpr:::::::::FFFF:\n";
        let keys = parse(text);
        let key = keys.get("73C62A1B605C66EA").unwrap();
        assert_eq!(key.get_str("uid").unwrap(), "Debian <d@e.org>");
        assert_eq!(key.get("bits"), Some(Value::Int(4096)));
        assert!(key.get_str("fingerprint").unwrap().ends_with("350947F8"));
        let sub = key.get("subkey").unwrap();
        assert_eq!(sub.get_str("fingerprint").unwrap(), "FFFF");
    }
}
