//! `cache`: what the master remembers, of minions and for whoever asks.
//!
//! Grains, pillar and mine of minions are the master's business and asked from it. Banks of other
//! names are folders in `cachedir`, one file per key, as Salt's `localfs` cache has them.

use std::path::{Path, PathBuf};

use halite_client::Request;
use halite_spec::{Args, Cx, Error, Rest, Result, function, host::Write, module};
use halite_value::{
    Dict, Value,
    msgpack::{self, Dialect, Text},
};

use crate::master;

module! {
    /// What the master remembers.
    "cache": grains, pillar, mine, clear_grains, clear_pillar, clear_mine, clear_mine_func,
    clear_all, clear_git_lock, cloud, migrate, store, fetch, list_keys, flush,
}

/// Returns one kind of data of the minions a target means.
pub(crate) fn data(cx: &Cx, tgt: Value, tgt_type: &str, kind: &str) -> Result<Dict> {
    let data = master::ask(cx, &Request::MinionData { tgt, tgt_type: tgt_type.into() })?;
    let entries = data.as_dict().map(Dict::entries).unwrap_or_default();
    Ok(entries
        .into_iter()
        .map(|(id, own)| (id, own.get(kind).filter(|data| !data.is_null())))
        .map(|(id, own)| (id, own.unwrap_or_else(Value::dict)))
        .collect())
}

/// Return the grains the master remembers.
///
/// ```console
/// $ salt-run cache.grains tgt='db*'
/// ```
#[function]
pub fn grains(
    cx: &Cx,
    /// Whose.
    #[default(Value::from("*"))]
    tgt: Value,
    /// How the target is read.
    #[default("glob".to_owned())]
    tgt_type: String,
) -> Result<Dict> {
    data(cx, tgt, &tgt_type, "grains")
}

/// Return the pillar the master remembers.
///
/// ```console
/// $ salt-run cache.pillar tgt='db*'
/// ```
#[function]
pub fn pillar(
    cx: &Cx,
    /// Whose.
    #[default(Value::from("*"))]
    tgt: Value,
    /// How the target is read.
    #[default("glob".to_owned())]
    tgt_type: String,
) -> Result<Dict> {
    data(cx, tgt, &tgt_type, "pillar")
}

/// Return what minions put into the mine.
///
/// ```console
/// $ salt-run cache.mine tgt='db*'
/// ```
#[function]
pub fn mine(
    cx: &Cx,
    /// Whose.
    #[default(Value::from("*"))]
    tgt: Value,
    /// How the target is read.
    #[default("glob".to_owned())]
    tgt_type: String,
) -> Result<Value> {
    master::ask(cx, &Request::Mine { tgt, tgt_type: tgt_type.into(), functions: Vec::new() })
}

/// Whose data to forget; there is no usual target.
#[derive(Args)]
#[arg(defaults)]
pub struct Whose {
    /// Whose.
    pub tgt: Option<Value>,
    /// How the target is read.
    #[default("glob".to_owned())]
    pub tgt_type: String,
}

fn forget(cx: &Cx, whose: &Whose, what: &str, fun: &str) -> Result<bool> {
    let Whose { tgt, tgt_type } = whose;
    let Some(tgt) = tgt.clone().filter(Value::truthy) else {
        return Err(Error::invalid("a target is needed, so that nothing is forgotten by accident"));
    };
    let request =
        Request::Forget { tgt, tgt_type: tgt_type.into(), what: what.into(), function: fun.into() };
    master::ask(cx, &request)?;
    Ok(true)
}

/// Forget the grains of minions.
///
/// ```console
/// $ salt-run cache.clear_grains tgt='*'
/// ```
#[function]
pub fn clear_grains(cx: &Cx, #[group] whose: Whose) -> Result<bool> {
    forget(cx, &whose, "grains", "")
}

/// Forget the pillar of minions.
///
/// ```console
/// $ salt-run cache.clear_pillar tgt='*'
/// ```
#[function]
pub fn clear_pillar(cx: &Cx, #[group] whose: Whose) -> Result<bool> {
    forget(cx, &whose, "pillar", "")
}

/// Forget what minions put into the mine.
///
/// ```console
/// $ salt-run cache.clear_mine tgt='*'
/// ```
#[function]
pub fn clear_mine(cx: &Cx, #[group] whose: Whose) -> Result<bool> {
    forget(cx, &whose, "mine", "")
}

/// Forget one function of what minions put into the mine.
///
/// ```console
/// $ salt-run cache.clear_mine_func tgt='*' clear_mine_func_flag=network.ip_addrs
/// ```
#[function]
pub fn clear_mine_func(
    cx: &Cx,
    #[group] whose: Whose,
    /// The function.
    clear_mine_func_flag: Option<String>,
) -> Result<bool> {
    let Some(function) = clear_mine_func_flag else {
        return Err(Error::invalid("clear_mine_func_flag must name a function"));
    };
    forget(cx, &whose, "mine_func", &function)
}

/// Forget grains, pillar and mine of minions.
///
/// ```console
/// $ salt-run cache.clear_all tgt='*'
/// ```
#[function]
pub fn clear_all(cx: &Cx, #[group] whose: Whose) -> Result<bool> {
    let mut any = false;
    for what in ["grains", "pillar", "mine"] {
        any |= forget(cx, &whose, what, "")?;
    }
    Ok(any)
}

/// Remove the locks of git remotes.
///
/// ```console
/// $ salt-run cache.clear_git_lock gitfs type=update
/// ```
#[function]
pub fn clear_git_lock(
    _: &Cx,
    /// `gitfs`, `git_pillar` or `winrepo`.
    role: String,
    _rest: Rest,
) -> Result<Value> {
    match role.as_str() {
        "gitfs" | "git_pillar" | "winrepo" => {
            // None of them is there yet, so there is nothing to unlock.
            Ok("No locks were removed".into())
        }
        _ => Err(Error::invalid(format!("Invalid role '{role}'"))),
    }
}

/// Return what is remembered of cloud machines.
///
/// ```console
/// $ salt-run cache.cloud 'web*'
/// ```
#[function]
pub fn cloud(
    _: &Cx,
    /// Which machines.
    tgt: String,
    /// Only those of this provider.
    provider: Option<String>,
) -> Result<Value> {
    let _ = (tgt, provider);
    // No machine was made by salt-cloud yet, so none is remembered.
    Ok(Value::dict())
}

/// Move cached data from one driver to another. Halite has one.
///
/// ```console
/// $ salt-run cache.migrate
/// ```
#[function]
pub fn migrate(_: &Cx, _rest: Rest) -> Result<Value> {
    Err(Error::failed("Halite keeps its data in one store; there is nothing to migrate"))
}

/// The folder of a bank. A bank is a path of plain names below the cache folder.
fn bank_dir(cx: &Cx, bank: &str, cachedir: Option<String>) -> Result<PathBuf> {
    let base = cachedir.or_else(|| cx.opt_str("cachedir").map(Into::into)).unwrap_or_default();
    let mut folder = PathBuf::from(base);
    for part in bank.split('/') {
        folder.push(plain(part)?);
    }
    Ok(folder)
}

/// A name that stays where it is put.
fn plain(name: &str) -> Result<&str> {
    if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\\', '\0']) {
        return Err(Error::invalid(format!("`{name}` cannot be the name of a bank or key")));
    }
    Ok(name)
}

fn key_file(folder: &Path, key: &str) -> Result<PathBuf> {
    Ok(folder.join(format!("{}.p", plain(key)?)))
}

/// What the master itself remembers under the names Salt's caches have for it.
fn own_bank(cx: &Cx, bank: &str) -> Result<Option<Dict>> {
    Ok(match bank {
        "grains" | "pillar" => {
            let all = data(cx, "*".into(), "glob", bank)?;
            Some(all.entries().into_iter().filter(|(_, own)| own.truthy()).collect())
        }
        "mine" => {
            let request =
                Request::Mine { tgt: "*".into(), tgt_type: "glob".into(), functions: Vec::new() };
            Some(master::ask(cx, &request)?.as_dict().cloned().unwrap_or_default())
        }
        _ => None,
    })
}

/// Store a value in the cache.
///
/// ```console
/// $ salt-run cache.store shop colour blue
/// ```
#[function]
pub fn store(
    cx: &Cx,
    /// The bank.
    bank: String,
    /// The key.
    key: String,
    /// The value.
    data: Value,
    /// The folder of the cache; the master's if absent.
    cachedir: Option<String>,
) -> Result<Value> {
    let folder = bank_dir(cx, &bank, cachedir)?;
    let file = key_file(&folder, &key)?;
    let bytes =
        msgpack::to_vec(&data, Dialect::Modern).map_err(|e| Error::failed(e.to_string()))?;
    cx.host.create_dirs(&folder, Some(0o700))?;
    cx.host.write(&file, &bytes, &Write { mode: Some(0o600), ..Write::default() })?;
    Ok(Value::Null)
}

/// Return a value from the cache; an empty dict if there is none.
///
/// ```console
/// $ salt-run cache.fetch mycache mykey
/// ```
#[function]
pub fn fetch(
    cx: &Cx,
    /// The bank.
    bank: String,
    /// The key.
    key: String,
    /// The folder of the cache; the master's if absent.
    cachedir: Option<String>,
) -> Result<Value> {
    if cachedir.is_none()
        && let Some(own) = own_bank(cx, &bank)?
    {
        return Ok(own.get(key.as_str()).unwrap_or_else(Value::dict));
    }
    let file = key_file(&bank_dir(cx, &bank, cachedir)?, &key)?;
    if !cx.host.is_file(&file)? {
        return Ok(Value::dict());
    }
    let bytes = cx.host.read(&file)?;
    msgpack::from_slice(&bytes, Text::Typed).map_err(|error| Error::failed(error.to_string()))
}

/// Return the keys of a bank.
///
/// ```console
/// $ salt-run cache.list mycache
/// ```
#[function(name = "list")]
pub fn list_keys(
    cx: &Cx,
    /// The bank.
    bank: String,
    /// The folder of the cache; the master's if absent.
    cachedir: Option<String>,
) -> Result<Value> {
    if cachedir.is_none()
        && let Some(own) = own_bank(cx, &bank)?
    {
        return Ok(Value::list(own.keys().into_iter().map(Value::from)));
    }
    let folder = bank_dir(cx, &bank, cachedir)?;
    let mut names: Vec<String> = Vec::new();
    for name in cx.host.read_dir(&folder).unwrap_or_default() {
        let name = name.to_string_lossy().into_owned();
        let is_folder = cx.host.is_dir(&folder.join(&name))?;
        match name.strip_suffix(".p") {
            Some(key) => names.push(key.to_owned()),
            None if is_folder => names.push(name),
            None => {}
        }
    }
    names.sort();
    Ok(names.into())
}

/// Remove a key from the cache, or a whole bank.
///
/// ```console
/// $ salt-run cache.flush mycache mykey
/// ```
#[function]
pub fn flush(
    cx: &Cx,
    /// The bank.
    bank: String,
    /// The key; all of them if absent.
    key: Option<String>,
    /// The folder of the cache; the master's if absent.
    cachedir: Option<String>,
) -> Result<bool> {
    if cachedir.is_none() && matches!(bank.as_str(), "grains" | "pillar" | "mine") {
        let tgt = key.as_deref().map_or_else(|| Value::from("*"), |key| Value::list([key]));
        let tgt_type = if key.is_some() { "list" } else { "glob" }.to_owned();
        return forget(cx, &Whose { tgt: Some(tgt), tgt_type }, &bank, "");
    }
    let folder = bank_dir(cx, &bank, cachedir)?;
    let path = match key {
        Some(key) => key_file(&folder, &key)?,
        None => folder,
    };
    if cx.host.is_file(&path)? || cx.host.is_dir(&path)? {
        cx.host.remove_all(&path)?;
        return Ok(true);
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_where_they_are_put() {
        for hostile in ["", ".", "..", "a/b", "a\\b", "a\0b"] {
            assert!(plain(hostile).is_err(), "{hostile:?}");
        }
        assert!(plain("web1.example").is_ok());
    }
}
