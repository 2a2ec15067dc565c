//! `pkg`: packages, whatever the package manager.
//!
//! A virtual module: [`provider`] picks the package manager by grains, and each function asks it.
//! `provider.rs` is the seam; one file (or folder) per package manager stands behind it. Functions
//! that only some package managers have are here all the same, and answer that they are not
//! available where they are not.

mod apk;
pub mod apt;
mod nested;
mod pacman;
mod provider;
pub mod version;
mod yum;
mod yum_repos;
mod zypper;

use std::{collections::BTreeMap, path::Path};

use halite_spec::{Cx, Error, Rest, Result, alias, function, module};
use halite_value::{Dict, List, Value, dict, entries};

use crate::{
    cmd, lowpkg,
    pkg_resource::{self, Target},
};

pub use provider::{
    Checked, Done, Install, Latest, Lock, Pkgs, Provider, Trouble, Uninstall, Upgrade, Which,
    differences,
};

module! {
    /// Install and look at packages.
    "pkg": add_repo_key, autoremove, available_version, check_db, clean_metadata, del_repo,
    del_repo_key, file_dict, file_list, get_repo, get_repo_keys, get_selections, group_diff,
    group_info, group_install, group_list, hold, info_available, info_installed, install,
    latest_version,
    list_downloaded, list_holds, list_installed_patches, list_patches, list_pkgs, list_repo_pkgs,
    list_repos, list_updates, list_upgrades, mod_repo, modified, normalize_name, owner, parse_arch,
    purge, refresh_db, remove, search, services_need_restart, set_selections, show, unhold, update,
    upgrade, upgrade_available, verify, version_, version_cmp, which,
}

alias! { available_version = latest_version, clean_metadata = refresh_db }

/// Systems with rpm that are not of the families RedHat or Suse.
pub(crate) const RPM_SYSTEMS: [&str; 8] = [
    "amazon",
    "xcp",
    "xenserver",
    "virtuozzolinux",
    "virtuozzo",
    "issabel pbx",
    "openeuler",
    "vmware photon os",
];

/// Returns the package manager of this machine.
pub fn provider(cx: &Cx) -> Result<&'static dyn Provider> {
    let os = cx.grain_str("os").to_lowercase();
    match cx.grain_str("os_family").to_lowercase().as_str() {
        "debian" => Ok(&apt::Apt),
        "redhat" => Ok(&yum::Yum),
        _ if RPM_SYSTEMS.contains(&os.as_str()) => Ok(&yum::Yum),
        "suse" => Ok(&zypper::Zypper),
        "arch" => Ok(&pacman::Pacman),
        "alpine" => Ok(&apk::Apk),
        family => Err(Error::Unavailable {
            function: "pkg".into(),
            reason: format!("there is no package manager we know for the OS family '{family}'"),
        }),
    }
}

/// The words that put a command into a scope of its own, so that it survives a restart of the
/// minion's service; none without systemd.
fn scope(cx: &Cx, description: Option<&str>) -> Vec<String> {
    let wanted = cx.opt("systemd.scope").is_none_or(|flag| flag.truthy());
    let booted = cx.host.is_dir(Path::new("/run/systemd/system")).unwrap_or(false);
    if !wanted || !booted || cx.host.which("systemd-run").is_none() {
        return Vec::new();
    }
    let mut words = vec!["systemd-run".to_owned(), "--scope".into()];
    if let Some(text) = description {
        words.extend(["--description".into(), text.to_owned()]);
    }
    words
}

const REFRESHED: &str = "pkg.refreshed";

/// Notes that the lists were fetched in this job.
fn refreshed(cx: &Cx) {
    cx.context.insert(REFRESHED, true);
}

/// Decides for a state whether to fetch the lists: as told, or once in a job.
pub fn wants_refresh(cx: &Cx, refresh: &Value) -> bool {
    match refresh {
        Value::Null => !cx.context.contains(REFRESHED),
        other => is_true(other),
    }
}

/// Salt's `is_true`: numbers above zero, and the word.
pub fn is_true(value: &Value) -> bool {
    match value {
        Value::Str(text) => text.to_lowercase() == "true",
        Value::Int(number) => *number > 0,
        other => other.truthy(),
    }
}

/// The packages that names (with wildcards) mean, of those there are.
fn matching(pkgs: &Pkgs, named: &[Target]) -> Vec<String> {
    let mut found = Vec::new();
    for (name, _) in named {
        if name.contains('*') {
            let fits = |own: &&String| halite_target::fnmatch::fnmatch(own, name);
            found.extend(pkgs.keys().filter(fits).cloned());
        } else if pkgs.contains_key(name) {
            found.push(name.clone());
        }
    }
    found
}

/// Package files below a folder: name → version → where, how big and when.
fn downloaded(cx: &Cx, folder: &str, end: &str) -> Result<Dict> {
    let ret = Dict::new();
    let mut folders = vec![Path::new(folder).to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(names) = cx.host.read_dir(&folder) else { continue };
        for name in names {
            let path = folder.join(&name);
            let shown = path.display().to_string();
            if cx.host.is_dir(&path)? && !cx.host.is_link(&path)? {
                folders.push(path);
                continue;
            }
            if !shown.ends_with(end) {
                continue;
            }
            let (name, version) = if end == ".deb" {
                let info = lowpkg::dpkg::bin_pkg_info(cx, &shown)?;
                (info.name, info.version)
            } else {
                match lowpkg::rpm::bin_pkg_info(cx, &shown)? {
                    Some(info) => (info.name, info.version),
                    None => continue,
                }
            };
            let stat = cx.host.stat(&path, true)?;
            let time = stat.ctime as i64;
            let text = jiff::Timestamp::from_second(time)
                .map(|time| time.strftime("%Y-%m-%dT%H:%M:%S").to_string())
                .unwrap_or_default();
            let info = dict! {
                "path" => shown, "size" => stat.size, "creation_date_time_t" => time,
                "creation_date_time" => text,
            };
            if let Value::Dict(versions) = ret.get_or_insert_with(name, Value::dict) {
                versions.insert(version, info);
            }
        }
    }
    Ok(ret)
}

fn names_of(rest: &Rest) -> Vec<String> {
    rest.args.iter().map(Value::to_string).collect()
}

fn text(dict: &Dict, name: &str) -> Option<String> {
    dict.get(name).filter(|value| !value.is_null()).map(|value| value.to_string())
}

fn flag(dict: &Dict, name: &str, usual: bool) -> bool {
    dict.get(name).map_or(usual, |value| is_true(&value))
}

fn only_apt(cx: &Cx, function: &str) -> Result<()> {
    if cx.grain_str("os_family") == "Debian" {
        return Ok(());
    }
    Err(Error::NotFound(format!("pkg.{function}")))
}

/// Return the newest version of packages that can be had; empty where what is installed is as new.
///
/// ```console
/// $ salt '*' pkg.latest_version bash vim
/// ```
#[function]
pub fn latest_version(
    cx: &Cx,
    /// Packages; `refresh`, `fromrepo`, `show_installed`, `cache_valid_time`.
    names: Rest,
) -> Result<Value> {
    if names.kwargs.contains("repo") && cx.grain_str("os_family") == "Debian" {
        return Err(Error::invalid("The 'repo' argument is invalid, use 'fromrepo' instead"));
    }
    let packages = names_of(&names);
    if packages.is_empty() {
        return Ok("".into());
    }
    let how = Latest {
        refresh: flag(&names.kwargs, "refresh", true),
        show_installed: flag(&names.kwargs, "show_installed", false),
        fromrepo: text(&names.kwargs, "fromrepo"),
        extra: names.kwargs.shallow_copy(),
    };
    provider(cx)?.latest_return(cx, &packages, &how)
}

/// Tell whether there is a newer version of a package.
///
/// ```console
/// $ salt '*' pkg.upgrade_available bash
/// ```
#[function]
pub fn upgrade_available(
    cx: &Cx,
    /// The package.
    name: String,
    /// Accepted, as Salt does.
    rest: Rest,
) -> Result<bool> {
    let names = Rest { args: vec![name.into()], kwargs: rest.kwargs };
    Ok(latest_version(cx, names)?.truthy())
}

/// Return the installed version of packages.
///
/// ```console
/// $ salt '*' pkg.version bash 'vim*'
/// ```
#[function(name = "version")]
pub fn version_(
    cx: &Cx,
    /// Packages, and `versions_as_list`.
    names: Rest,
) -> Result<Value> {
    pkg_resource::version(cx, names)
}

/// Fetch the lists of packages.
///
/// ```console
/// $ salt web1 pkg.refresh_db
/// ```
#[function]
pub fn refresh_db(
    cx: &Cx,
    /// Do nothing when the lists are younger than this, in seconds.
    #[default(Value::Int(0))]
    cache_valid_time: Value,
    /// Fail when a source cannot be reached.
    #[default(false)]
    failhard: bool,
    /// Options of the package manager.
    #[arg(by_name)]
    options: Rest,
) -> Result<Value> {
    options.kwargs.insert("cache_valid_time", cache_valid_time);
    options.kwargs.insert("failhard", failhard);
    provider(cx)?.refresh_db(cx, &options.kwargs)
}

/// Install packages and return what changed.
///
/// ```console
/// $ salt '*' pkg.install foo
/// $ salt '*' pkg.install pkgs='["foo", {"bar": ">=1.2"}]'
/// $ salt '*' pkg.install sources='[{"foo": "salt://foo.deb"}]'
/// ```
#[function]
pub fn install(
    cx: &Cx,
    /// One package, or several with commas.
    name: Option<String>,
    /// Fetch the lists first.
    #[default(Value::Bool(false))]
    refresh: Value,
    /// The repository to take packages from.
    fromrepo: Option<String>,
    /// Do not check signatures.
    #[default(false)]
    skip_verify: bool,
    /// A file with answers for debconf.
    debconf: Option<String>,
    /// Several packages, with versions.
    #[default(Value::Null)]
    pkgs: Value,
    /// Several packages, with locations.
    #[default(Value::Null)]
    sources: Value,
    /// Install again what is there.
    #[default(false)]
    reinstall: bool,
    /// Fetch, but do not install.
    #[default(false)]
    downloadonly: bool,
    /// Compare versions without epochs.
    #[default(false)]
    ignore_epoch: bool,
    /// Strip the architecture from names.
    #[default(true)]
    normalize: bool,
    /// Change packages that are held, too.
    #[default(false)]
    #[arg(by_name)]
    update_holds: bool,
    /// The version of a single package.
    #[arg(by_name)]
    version: Option<String>,
    /// Options of the package manager.
    rest: Rest,
) -> Result<Dict> {
    let request = Install {
        name,
        refresh: is_true(&refresh),
        fromrepo,
        skip_verify,
        debconf,
        pkgs,
        sources,
        reinstall,
        downloadonly,
        ignore_epoch,
        normalize,
        update_holds,
        version,
        split_arch: flag(&rest.kwargs, "split_arch", true),
        extra: rest.kwargs,
    };
    provider(cx)?.install(cx, &request)?.into_return()
}

/// Remove packages and return what changed.
///
/// ```console
/// $ salt '*' pkg.remove foo,bar
/// ```
#[function]
pub fn remove(
    cx: &Cx,
    /// One package, or several with commas.
    name: Option<String>,
    /// Several packages.
    #[default(Value::Null)]
    pkgs: Value,
    /// Options of the package manager.
    rest: Rest,
) -> Result<Dict> {
    let version = text(&rest.kwargs, "version");
    let request = Uninstall { name, pkgs, version, purge: false, extra: rest.kwargs };
    provider(cx)?.uninstall(cx, &request)?.into_return()
}

/// Remove packages with their configuration and return what changed.
///
/// ```console
/// $ salt '*' pkg.purge foo,bar
/// ```
#[function]
pub fn purge(
    cx: &Cx,
    /// One package, or several with commas.
    name: Option<String>,
    /// Several packages.
    #[default(Value::Null)]
    pkgs: Value,
    /// Options of the package manager.
    rest: Rest,
) -> Result<Dict> {
    let version = text(&rest.kwargs, "version");
    let request = Uninstall { name, pkgs, version, purge: true, extra: rest.kwargs };
    provider(cx)?.uninstall(cx, &request)?.into_return()
}

/// Remove packages nobody needs any more.
///
/// ```console
/// $ salt web1 pkg.autoremove
/// ```
#[function]
pub fn autoremove(
    cx: &Cx,
    /// Only tell which.
    #[default(false)]
    list_only: bool,
    /// Remove their configuration, too.
    #[default(false)]
    purge: bool,
) -> Result<Value> {
    provider(cx)?.autoremove(cx, list_only, purge)
}

/// Bring all packages (or some) up to date and return what changed.
///
/// ```console
/// $ salt '*' pkg.upgrade dist_upgrade=True
/// ```
#[function]
pub fn upgrade(
    cx: &Cx,
    /// Fetch the lists first.
    #[default(Value::Bool(true))]
    refresh: Value,
    /// Install and remove packages where that is needed.
    #[default(false)]
    dist_upgrade: bool,
    /// Only these packages, where the package manager can.
    #[default(Value::Null)]
    #[arg(by_name)]
    pkgs: Value,
    /// Options of the package manager.
    rest: Rest,
) -> Result<Dict> {
    let request = Upgrade { refresh: is_true(&refresh), dist_upgrade, pkgs, extra: rest.kwargs };
    provider(cx)?.upgrade(cx, &request)?.into_return()
}

/// Bring packages up to date without obsoleting others; `pkg.upgrade` with yum's `update`.
///
/// ```console
/// $ salt web1 pkg.update nginx
/// ```
#[function]
pub fn update(
    cx: &Cx,
    /// One package.
    name: Option<String>,
    /// Several packages.
    #[default(Value::Null)]
    pkgs: Value,
    /// Fetch the lists first.
    #[default(true)]
    refresh: bool,
    /// Options of the package manager.
    rest: Rest,
) -> Result<Dict> {
    rest.kwargs.insert("obsoletes", false);
    if let Some(name) = name {
        rest.kwargs.insert("name", name);
    }
    let request = Upgrade { refresh, dist_upgrade: false, pkgs, extra: rest.kwargs };
    provider(cx)?.upgrade(cx, &request)?.into_return()
}

/// Return the packages that have a newer version.
///
/// ```console
/// $ salt web1 pkg.list_upgrades
/// ```
#[function]
pub fn list_upgrades(
    cx: &Cx,
    /// Fetch the lists first.
    #[default(Value::Bool(true))]
    refresh: Value,
    /// As a full upgrade would do it.
    #[default(true)]
    dist_upgrade: bool,
    /// Options of the package manager.
    rest: Rest,
) -> Result<Dict> {
    let request =
        Upgrade { refresh: is_true(&refresh), dist_upgrade, pkgs: Value::Null, extra: rest.kwargs };
    provider(cx)?.list_upgrades(cx, &request)
}

/// Return the packages that have a newer version; another name of `pkg.list_upgrades`.
///
/// ```console
/// $ salt '*' pkg.list_updates
/// ```
#[function]
pub fn list_updates(
    cx: &Cx,
    /// Fetch the lists first.
    #[default(Value::Bool(true))]
    refresh: Value,
    /// Options of the package manager.
    rest: Rest,
) -> Result<Dict> {
    list_upgrades(cx, refresh, true, rest)
}

fn held_names(name: Option<String>, pkgs: &Value, sources: &Value) -> Result<Vec<String>> {
    let (pkgs, sources) = (pkgs.truthy().then_some(pkgs), sources.truthy().then_some(sources));
    let first = |item: &Value| match item.as_dict() {
        Some(one) => one.keys().first().map(ToString::to_string).unwrap_or_default(),
        None => item.to_string(),
    };
    let listed = |list: &Value| -> Vec<String> {
        match list {
            Value::Dict(dict) => dict.keys().iter().map(ToString::to_string).collect(),
            other => other.items_of_sequence().unwrap_or_default().iter().map(first).collect(),
        }
    };
    match (name, pkgs, sources) {
        (_, Some(_), Some(_)) => {
            Err(Error::invalid("Only one of pkgs or sources can be specified."))
        }
        (_, Some(list), None) | (_, None, Some(list)) => Ok(listed(list)),
        (Some(name), None, None) if !name.is_empty() => Ok(vec![name]),
        _ => Err(Error::invalid("One of name, pkgs, or sources must be specified.")),
    }
}

/// Keep packages at their version.
///
/// ```console
/// $ salt '*' pkg.hold foo
/// ```
#[function]
pub fn hold(
    cx: &Cx,
    /// One package.
    name: Option<String>,
    /// Several packages.
    #[default(Value::Null)]
    pkgs: Value,
    /// Several packages, with locations.
    #[default(Value::Null)]
    sources: Value,
    /// Accepted, as Salt does.
    rest: Rest,
) -> Result<Dict> {
    let _ = rest;
    provider(cx)?.set_hold(cx, &held_names(name, &pkgs, &sources)?, true)
}

/// Let packages change again.
///
/// ```console
/// $ salt '*' pkg.unhold foo
/// ```
#[function]
pub fn unhold(
    cx: &Cx,
    /// One package.
    name: Option<String>,
    /// Several packages.
    #[default(Value::Null)]
    pkgs: Value,
    /// Several packages, with locations.
    #[default(Value::Null)]
    sources: Value,
    /// Accepted, as Salt does.
    rest: Rest,
) -> Result<Dict> {
    let _ = rest;
    provider(cx)?.set_hold(cx, &held_names(name, &pkgs, &sources)?, false)
}

/// Return the packages that are kept at their version; yum and dnf.
///
/// ```console
/// $ salt web1 pkg.list_holds
/// ```
#[function]
pub fn list_holds(
    cx: &Cx,
    /// Taken for the sake of callers.
    #[default(String::new())]
    pattern: String,
    /// Return version and architecture, too.
    #[default(true)]
    full: bool,
) -> Result<Vec<String>> {
    let _ = pattern;
    if cx.grain_str("os_family") == "Debian" {
        return Err(Error::NotFound("pkg.list_holds".into()));
    }
    let locks = provider(cx)?.locks(cx)?.unwrap_or_default();
    let shown = |lock: Lock| match lock.version.filter(|_| full) {
        Some(version) => format!("{}-{version}.*", lock.name),
        None => lock.name,
    };
    Ok(locks.into_iter().map(shown).collect())
}

/// Return the installed packages with their versions.
///
/// ```console
/// $ salt web1 pkg.list_pkgs
/// ```
#[function]
pub fn list_pkgs(
    cx: &Cx,
    /// Versions as a list, not joined by commas.
    #[default(Value::Bool(false))]
    versions_as_list: Value,
    /// Those removed with configuration left.
    #[default(Value::Bool(false))]
    removed: Value,
    /// Those marked to be purged.
    #[default(Value::Bool(false))]
    purge_desired: Value,
    /// Options of the package manager.
    rest: Rest,
) -> Result<Dict> {
    let which = if is_true(&removed) {
        Which::Removed
    } else if is_true(&purge_desired) {
        Which::PurgeDesired
    } else {
        Which::Installed
    };
    let as_list = is_true(&versions_as_list);
    let pkgs = provider(cx)?.list_pkgs(cx, which, &rest.kwargs)?;
    let shown = |versions: Vec<String>| -> Value {
        if as_list { Value::list(versions) } else { versions.join(",").into() }
    };
    Ok(pkgs.into_iter().map(|(name, versions)| (name, shown(versions))).collect())
}

/// Compare two versions: -1, 0 or 1.
///
/// ```console
/// $ salt web1 pkg.version_cmp 1.2-3 1.2-4
/// ```
#[function]
pub fn version_cmp(
    cx: &Cx,
    /// The one.
    pkg1: Value,
    /// The other.
    pkg2: Value,
    /// Leave epochs out.
    #[default(false)]
    ignore_epoch: bool,
    /// Accepted, as Salt does.
    rest: Rest,
) -> Result<i64> {
    let _ = rest;
    Ok(provider(cx)?.order(&pkg1.to_str(), &pkg2.to_str(), ignore_epoch) as i64)
}

/// Return a package's name without the architecture, if that is this machine's.
///
/// ```console
/// $ salt web1 pkg.normalize_name nginx:arm64
/// ```
#[function]
pub fn normalize_name(
    cx: &Cx,
    /// The package.
    name: String,
) -> Result<String> {
    Ok(provider(cx)?.normalize_name(cx, &name))
}

/// Return name and architecture of a package's full name.
///
/// ```console
/// $ salt web1 pkg.parse_arch nginx:arm64
/// ```
#[function]
pub fn parse_arch(
    cx: &Cx,
    /// The package.
    name: String,
) -> Result<Value> {
    let (name, arch) = provider(cx)?.parse_arch(&name);
    Ok(dict! { "name" => name, "arch" => arch })
}

/// Return all versions of packages that can be had.
///
/// ```console
/// $ salt '*' pkg.list_repo_pkgs foo bar
/// ```
#[function]
pub fn list_repo_pkgs(
    cx: &Cx,
    /// Packages; all if none is given.
    names: Rest,
) -> Result<Dict> {
    provider(cx)?.list_repo_pkgs(cx, &names_of(&names), &names.kwargs)
}

/// Tell which packages exist, with similar names of those that do not.
///
/// ```console
/// $ salt '*' pkg.check_db foo bar
/// ```
#[function]
pub fn check_db(
    cx: &Cx,
    /// Packages.
    names: Rest,
) -> Result<Dict> {
    let found = provider(cx)?.check_db(cx, &names_of(&names), &names.kwargs)?;
    let found = found.ok_or_else(|| Error::NotFound("pkg.check_db".into()))?;
    let shown = |(name, found, suggestions): (String, bool, Vec<String>)| {
        (name, dict! { "found" => found, "suggestions" => suggestions })
    };
    Ok(found.into_iter().map(shown).collect())
}

/// Return the sources packages come from.
///
/// ```console
/// $ salt web1 pkg.list_repos
/// ```
#[function]
pub fn list_repos(
    cx: &Cx,
    /// Options of the package manager.
    options: Rest,
) -> Result<Dict> {
    if let Some(folder) = options.args.first() {
        options.kwargs.insert("basedir", folder);
    }
    provider(cx)?.list_repos(cx, &options.kwargs)
}

/// Return one source; empty if there is none like it.
///
/// ```console
/// $ salt '*' pkg.get_repo 'deb http://deb.debian.org/debian bookworm main'
/// ```
#[function]
pub fn get_repo(
    cx: &Cx,
    /// The source line, or the name of the repository.
    repo: String,
    /// Options of the package manager.
    #[arg(by_name)]
    options: Rest,
) -> Result<Dict> {
    provider(cx)?.get_repo(cx, &repo, &options.kwargs)
}

/// Add a source, or change the one there is.
///
/// ```console
/// $ salt '*' pkg.mod_repo 'deb http://a.example/debian stable main' file=/etc/apt/sources.list.d/a.list
/// ```
#[function]
pub fn mod_repo(
    cx: &Cx,
    /// The source line, or the name of the repository.
    repo: String,
    /// The environment a key comes from.
    #[default("base".to_owned())]
    saltenv: String,
    /// Use `apt-key` for keys, where it is there.
    #[default(true)]
    aptkey: bool,
    /// What it shall be like.
    #[arg(by_name)]
    options: Rest,
) -> Result<Dict> {
    if saltenv != "base" {
        options.kwargs.insert("saltenv", saltenv);
    }
    if !aptkey {
        options.kwargs.insert("aptkey", aptkey);
    }
    provider(cx)?.mod_repo(cx, &repo, &options.kwargs)
}

/// Remove a source.
///
/// ```console
/// $ salt '*' pkg.del_repo 'deb http://a.example/debian stable main'
/// ```
#[function]
pub fn del_repo(
    cx: &Cx,
    /// The source line, or the name of the repository.
    repo: String,
    /// Options of the package manager.
    #[arg(by_name)]
    options: Rest,
) -> Result<String> {
    provider(cx)?.del_repo(cx, &repo, &options.kwargs)
}

/// Return the keys apt trusts.
///
/// ```console
/// $ salt web1 pkg.get_repo_keys
/// ```
#[function]
pub fn get_repo_keys(
    cx: &Cx,
    /// Ask `apt-key`, where it is there.
    #[default(true)]
    aptkey: bool,
    /// The folder of keyrings.
    keydir: Option<String>,
) -> Result<Value> {
    only_apt(cx, "get_repo_keys")?;
    apt::keys::list(cx, aptkey, keydir.as_deref().map(Path::new))
}

/// Let apt trust a key.
///
/// ```console
/// $ salt web1 pkg.add_repo_key salt://keys/shop.asc
/// ```
#[function]
pub fn add_repo_key(
    cx: &Cx,
    /// Where the key's file is.
    path: Option<String>,
    /// The key itself.
    text: Option<String>,
    /// A key server.
    keyserver: Option<String>,
    /// The id of the key there.
    keyid: Option<String>,
    /// The environment the file comes from.
    #[default("base".to_owned())]
    saltenv: String,
    /// Use `apt-key`, where it is there.
    #[default(true)]
    aptkey: bool,
    /// The folder of keyrings.
    keydir: Option<String>,
    /// The name of the file in it.
    keyfile: Option<String>,
) -> Result<bool> {
    only_apt(cx, "add_repo_key")?;
    let how = apt::keys::Add {
        path,
        text,
        keyserver,
        keyid,
        saltenv,
        aptkey,
        folder: keydir.map(Into::into),
        file: keyfile.map(Into::into),
    };
    apt::keys::add(cx, &how)
}

/// Let apt trust a key no longer.
///
/// ```console
/// $ salt web1 pkg.del_repo_key keyid=5E000053
/// ```
#[function]
pub fn del_repo_key(
    cx: &Cx,
    /// A `ppa:`, with `keyid_ppa`.
    name: Option<String>,
    /// Use `apt-key`, where it is there.
    #[default(true)]
    aptkey: bool,
    /// The folder of keyrings.
    keydir: Option<String>,
    /// `keyid`.
    rest: Rest,
) -> Result<Value> {
    only_apt(cx, "del_repo_key")?;
    let _ = name;
    let id = text(&rest.kwargs, "keyid")
        .ok_or_else(|| Error::invalid("keyid or keyid_ppa and PPA name must be passed"))?;
    apt::keys::delete(cx, &id, aptkey, keydir.as_deref().map(Path::new))
}

/// Return the files of packages.
///
/// ```console
/// $ salt web1 pkg.file_list
/// ```
#[function]
pub fn file_list(
    cx: &Cx,
    /// Packages; all if none is given.
    packages: Rest,
) -> Result<Value> {
    lowpkg::file_list(cx, packages)
}

/// Return the files of packages, by package.
///
/// ```console
/// $ salt web1 pkg.file_dict
/// ```
#[function]
pub fn file_dict(
    cx: &Cx,
    /// Packages; all if none is given.
    packages: Rest,
) -> Result<Value> {
    lowpkg::file_dict(cx, packages)
}

/// Return the package that owns a file; a dict for several files.
///
/// ```console
/// $ salt web1 pkg.owner
/// ```
#[function]
pub fn owner(
    cx: &Cx,
    /// Paths.
    paths: Rest,
) -> Result<Value> {
    if paths.args.is_empty() {
        return Ok("".into());
    }
    provider(cx)?.owner(cx, &names_of(&paths))
}

/// Return the package that owns a file that exists.
///
/// ```console
/// $ salt '*' pkg.which /usr/bin/passwd
/// ```
#[function]
pub fn which(
    cx: &Cx,
    /// The path.
    path: String,
) -> Result<Value> {
    only_apt(cx, "which")?;
    apt::which(cx, &path)
}

/// Return what is known of installed packages.
///
/// ```console
/// $ salt '*' pkg.info_installed bash
/// ```
#[function]
pub fn info_installed(
    cx: &Cx,
    /// Packages, `failhard`, `attr`, `all_versions`.
    names: Rest,
) -> Result<Value> {
    provider(cx)?.info_installed(cx, &names_of(&names), &names.kwargs)
}

/// Return what the repositories say of packages, by field; known to zypper.
///
/// ```console
/// $ salt '*' pkg.info_available bash vim
/// ```
#[function]
pub fn info_available(
    cx: &Cx,
    /// Packages; `refresh=False` to go by the lists that are here.
    names: Rest,
) -> Result<Dict> {
    let refresh = names.kwargs.get("refresh").is_none_or(|refresh| refresh.truthy());
    let mut names = names_of(&names);
    names.sort();
    names.dedup();
    if names.is_empty() {
        return Ok(Dict::new());
    }
    provider(cx)?.info_available(cx, &names, refresh)
}

/// Return the packages that fit what is looked for: name → fields; known to zypper.
///
/// ```console
/// $ salt '*' pkg.search bash match=exact details=True
/// ```
#[function]
pub fn search(
    cx: &Cx,
    /// What to look for.
    criteria: String,
    /// Fetch the lists first.
    #[default(false)]
    refresh: bool,
    /// `match` (`exact`, `words`, `substrings`), and where or how to look: `provides`, `requires`,
    /// `recommends`, `suggests`, `conflicts`, `obsoletes`, `file_list`, `search_descriptions`,
    /// `case_sensitive`, `installed_only`, `not_installed_only`, `details`.
    how: Rest,
) -> Result<Dict> {
    provider(cx)?.search(cx, &criteria, refresh, &how.kwargs)
}

/// Return what the lists say of packages.
///
/// ```console
/// $ salt '*' pkg.show bash filter=description,provides
/// ```
#[function]
pub fn show(
    cx: &Cx,
    /// Packages, `filter`, `refresh`.
    names: Rest,
) -> Result<Dict> {
    provider(cx)?.show(cx, &names_of(&names), &names.kwargs)
}

/// Return what dpkg shall do with packages, by state.
///
/// ```console
/// $ salt '*' pkg.get_selections 'python-*' state=hold
/// ```
#[function]
pub fn get_selections(
    cx: &Cx,
    /// A pattern of names.
    pattern: Option<String>,
    /// Only this state.
    state: Option<String>,
) -> Result<Dict> {
    only_apt(cx, "get_selections")?;
    let ret = Dict::new();
    for (own, name) in apt::selections(cx, pattern.as_deref())? {
        if let Value::List(list) = ret.get_or_insert_with(own, || List::new().into()) {
            list.push(name);
        }
    }
    Ok(match state {
        Some(state) => {
            let list = ret.get(state.as_str()).unwrap_or_else(|| List::new().into());
            entries! { state.as_str() => list }
        }
        None => ret,
    })
}

/// Tell dpkg what it shall do with packages.
///
/// ```console
/// $ salt web1 pkg.set_selections selection='{hold: [nginx]}'
/// ```
#[function]
pub fn set_selections(
    cx: &Cx,
    /// A file with selections, as `dpkg --get-selections` prints them.
    path: Option<String>,
    /// State → packages.
    #[default(Value::Null)]
    selection: Value,
    /// Forget all others.
    #[default(false)]
    clear: bool,
    /// The environment the file comes from.
    #[default("base".to_owned())]
    saltenv: String,
) -> Result<Dict> {
    only_apt(cx, "set_selections")?;
    let mut wanted: Vec<(String, String)> = Vec::new();
    match (&path, selection.truthy()) {
        (None, false) => return Ok(Dict::new()),
        (Some(_), true) => {
            return Err(Error::invalid(
                "The 'selection' and 'path' arguments to pkg.set_selections are mutually \
                 exclusive, and cannot be specified together",
            ));
        }
        (Some(path), false) => {
            let cached = cx.files.cache(path, &saltenv)?;
            let file = cached.ok_or_else(|| Error::failed(format!("{path} is not there")))?;
            wanted = apt::read_selections(&cx.host.read_text(&file)?);
        }
        (None, true) => {
            let given = match &selection {
                Value::Str(text) => halite_value::yaml::load_str(text).map_err(|error| {
                    Error::invalid(format!("Improperly-formatted selection: {error}"))
                })?,
                other => other.clone(),
            };
            for (state, names) in given.as_dict().into_iter().flatten() {
                let names = names.items_of_sequence().unwrap_or_else(|| vec![names.clone()]);
                wanted.extend(names.iter().map(|name| (state.to_string(), name.to_string())));
            }
        }
    }
    let known = ["install", "hold", "deinstall", "purge"];
    let mut bad: Vec<&str> = wanted
        .iter()
        .map(|(state, _)| state.as_str())
        .filter(|state| !known.contains(state))
        .collect();
    bad.dedup();
    if !bad.is_empty() {
        return Err(Error::invalid(format!("Invalid state(s): {}", bad.join(", "))));
    }
    if clear && !cx.opt_bool("test") {
        let words = ["dpkg", "--clear-selections"];
        let ran = cmd::plain(cx, words, apt::options(&Dict::new()))?;
        if !ran.ok() {
            return Err(Error::failed(format!(
                "Running dpkg --clear-selections failed: {}",
                ran.stderr
            )));
        }
    }
    apt::set_selections(cx, &wanted)
}

/// Return the package files that were fetched.
///
/// ```console
/// $ salt web1 pkg.list_downloaded
/// ```
#[function]
pub fn list_downloaded(
    cx: &Cx,
    /// Another root to look below.
    root: Option<String>,
    /// Options of the package manager.
    #[arg(by_name)]
    options: Rest,
) -> Result<Dict> {
    options.kwargs.insert("root", root);
    provider(cx)?.list_downloaded(cx, &options.kwargs)
}

/// Return the services that run with files that were replaced.
///
/// ```console
/// $ salt web1 pkg.services_need_restart
/// ```
#[function]
pub fn services_need_restart(
    cx: &Cx,
    /// Accepted, as Salt does.
    #[arg(by_name)]
    options: Rest,
) -> Result<Vec<String>> {
    let _ = options;
    provider(cx)?.services_need_restart(cx)
}

/// Return the groups of packages.
///
/// ```console
/// $ salt web1 pkg.group_list
/// ```
#[function]
pub fn group_list(cx: &Cx) -> Result<Dict> {
    provider(cx)?.group_list(cx)
}

/// Return the packages of a group.
///
/// ```console
/// $ salt web1 pkg.group_info 'Web Server'
/// ```
#[function]
pub fn group_info(
    cx: &Cx,
    /// The group.
    name: String,
    /// Look into groups of groups.
    #[default(false)]
    expand: bool,
    /// Accepted, as Salt does.
    rest: Rest,
) -> Result<Dict> {
    let _ = rest;
    provider(cx)?.group_info(cx, &name, expand)
}

/// Return which packages of a group are installed and which are not.
///
/// ```console
/// $ salt web1 pkg.group_diff 'Web Server'
/// ```
#[function]
pub fn group_diff(
    cx: &Cx,
    /// The group.
    name: String,
    /// Accepted, as Salt does.
    rest: Rest,
) -> Result<Dict> {
    let _ = rest;
    let provider = provider(cx)?;
    let info = provider.group_info(cx, &name, true)?;
    let pkgs: BTreeMap<String, Vec<String>> =
        provider.list_pkgs(cx, Which::Installed, &Dict::new())?;
    let ret = Dict::new();
    for kind in ["mandatory", "default", "optional", "conditional"] {
        let members = info.get(kind).and_then(|list| list.items_of_sequence()).unwrap_or_default();
        let (there, missing): (Vec<Value>, Vec<Value>) =
            members.into_iter().partition(|name| pkgs.contains_key(name.to_str().as_str()));
        ret.insert(
            kind,
            dict! { "installed" => Value::list(there), "not installed" => Value::list(missing) },
        );
    }
    Ok(ret)
}

/// Install the packages of a group.
///
/// ```console
/// $ salt web1 pkg.group_install 'Web Server'
/// ```
#[function]
pub fn group_install(
    cx: &Cx,
    /// The group, or several.
    name: Value,
    /// Packages to leave out.
    #[default(Value::Null)]
    skip: Value,
    /// Optional packages to install, too.
    #[default(Value::Null)]
    include: Value,
    /// Options of `pkg.install`.
    rest: Rest,
) -> Result<Dict> {
    let (skip, include) = (cmd::split_input(&skip), cmd::split_input(&include));
    let provider = provider(cx)?;
    let mut wanted = Vec::new();
    for group in cmd::split_input(&name) {
        let info = provider.group_info(cx, &group, false)?;
        let list = |kind: &str| -> Vec<String> {
            let found = info.get(kind).and_then(|list| list.items_of_sequence());
            found.unwrap_or_default().iter().map(Value::to_string).collect()
        };
        wanted.extend(list("mandatory"));
        wanted.extend(list("default").into_iter().filter(|name| !skip.contains(name)));
    }
    wanted.extend(include);
    let pkgs = provider.list_pkgs(cx, Which::Installed, &Dict::new())?;
    wanted.retain(|name| !pkgs.contains_key(name));
    wanted.sort();
    wanted.dedup();
    if wanted.is_empty() {
        return Ok(Dict::new());
    }
    let request = Install { pkgs: Value::list(wanted), extra: rest.kwargs, ..Install::default() };
    provider.install(cx, &request)?.into_return()
}

/// Return the patches that can be had.
///
/// ```console
/// $ salt web1 pkg.list_patches
/// ```
#[function]
pub fn list_patches(
    cx: &Cx,
    /// Fetch the lists first.
    #[default(false)]
    refresh: bool,
    /// Accepted, as Salt does.
    rest: Rest,
) -> Result<Dict> {
    let _ = rest;
    provider(cx)?.list_patches(cx, false, refresh)
}

/// Return the patches that are installed.
///
/// ```console
/// $ salt web1 pkg.list_installed_patches
/// ```
#[function]
pub fn list_installed_patches(
    cx: &Cx,
    /// Accepted, as Salt does.
    rest: Rest,
) -> Result<Dict> {
    let _ = rest;
    provider(cx)?.list_patches(cx, true, false)
}

/// Return the files of packages that differ from what was installed.
///
/// ```console
/// $ salt '*' pkg.verify httpd ignore_types='[config, doc]'
/// ```
#[function]
pub fn verify(
    cx: &Cx,
    /// Packages, `ignore_types`, `verify_options`.
    names: Rest,
) -> Result<Dict> {
    provider(cx)?.verify(cx, &names_of(&names), &names.kwargs)
}

/// Return the changed files of packages with the kind of change; rpm only.
///
/// ```console
/// $ salt web1 pkg.modified
/// ```
#[function]
pub fn modified(
    cx: &Cx,
    /// Packages, and kinds of change with yes or no.
    packages: Rest,
) -> Result<Value> {
    lowpkg::modified(cx, packages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truths() {
        assert!(is_true(&true.into()) && is_true(&"True".into()) && is_true(&2.into()));
        assert!(!is_true(&"yes".into()) && !is_true(&0.into()) && !is_true(&Value::Null));
    }

    #[test]
    fn wildcards() {
        let pkgs: Pkgs =
            ["a1", "a2", "b"].map(|name| (name.to_owned(), vec!["1".to_owned()])).into();
        let named = [("a*".to_owned(), None), ("b".to_owned(), None), ("c".to_owned(), None)];
        assert_eq!(matching(&pkgs, &named), ["a1", "a2", "b"]);
    }
}
