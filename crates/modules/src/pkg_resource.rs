//! `pkg_resource`: what every package manager's module has in common.
//!
//! Reading the package lists users write (`pkgs`, `sources`, `name: version`) and formatting the
//! lists we return. The functions are called by users' modules by name, by ours directly.

use std::path::{Path, PathBuf};

use halite_spec::{Cx, Error, Rest, Result, function, module};
use halite_value::{Dict, List, Value, dict, yaml};

use crate::pkg::{self, Which, version as versions};

module! {
    /// What every package manager's module has in common.
    "pkg_resource": pack_sources, parse_targets, version, add_pkg, sort_pkglist, stringify,
    version_clean, version_compare, check_extra_requirements, format_pkg_list, format_version,
}

/// A package with the version asked for.
pub type Target = (String, Option<String>);

/// What to install, as understood.
#[derive(Clone, Debug, PartialEq)]
pub enum Targets {
    Nothing,
    Repository(Vec<Target>),
    Files(Vec<PathBuf>),
    Advisory(Vec<String>),
}

/// Reads `pkgs`: names, and one-key dicts of name and version.
pub fn repack(pkgs: &Value, normalize: &dyn Fn(&str) -> String) -> Result<Vec<Target>> {
    let given = match pkgs {
        Value::Str(text) => {
            yaml::load_str(text).map_err(|error| Error::invalid(error.to_string()))?
        }
        other => other.clone(),
    };
    let items = match &given {
        Value::Dict(dict) => {
            dict.into_iter().map(|(name, version)| dict_of_one(&name.to_str(), version)).collect()
        }
        other => other.items_of_sequence().unwrap_or_default(),
    };
    let mut targets: Vec<Target> = Vec::new();
    for item in &items {
        let target = match item {
            Value::Str(_) | Value::Int(_) | Value::Float(_) => (item.to_string(), None),
            Value::Dict(one) if one.len() == 1 => {
                let (name, version) = one.entries().swap_remove(0);
                let version = (!version.is_null()).then(|| version.to_string());
                (name.to_string(), version)
            }
            _ => {
                tracing::error!(
                    "Invalid input: key/value pairs must contain only one value: {item}"
                );
                return Ok(Vec::new());
            }
        };
        let name = normalize(&target.0);
        if targets.iter().any(|(own, _)| *own == name) {
            return Err(Error::invalid(format!(
                "You are passing a list of packages that contains duplicated packages names: {}. \
                 This cannot be processed. In case you are targeting different versions of the \
                 same package, please target them individually",
                given.repr()
            )));
        }
        targets.push((name, target.1));
    }
    Ok(targets)
}

fn dict_of_one(name: &str, value: Value) -> Value {
    dict! { name => value }
}

/// The function that strips the architecture, or nothing if not asked to.
pub fn normalizer<'a>(cx: &'a Cx, normalize: bool) -> Box<dyn Fn(&str) -> String + 'a> {
    match pkg::provider(cx) {
        Ok(provider) if normalize => Box::new(move |name| provider.normalize_name(cx, name)),
        _ => Box::new(str::to_owned),
    }
}

/// Reads `sources`: one-key dicts of name and location.
pub fn pack(sources: &Value, normalize: &dyn Fn(&str) -> String) -> Vec<(String, String)> {
    let given = match sources {
        Value::Str(text) => yaml::load_str(text).unwrap_or_default(),
        other => other.clone(),
    };
    let mut packed = Vec::new();
    for source in given.items_of_sequence().unwrap_or_default() {
        match source.as_dict().map(Dict::entries).as_deref() {
            Some([(name, place)]) => packed.push((normalize(&name.to_str()), place.to_string())),
            _ => {
                tracing::error!("Invalid input: {given}");
                tracing::error!("Input must be a list of 1-element dicts");
                return Vec::new();
            }
        }
    }
    packed
}

/// Tells whether a location is one the file client fetches.
pub fn is_remote(place: &str) -> bool {
    const SCHEMES: [&str; 7] = ["salt", "http", "https", "ftp", "s3", "swift", "file"];
    place.split_once("://").is_some_and(|(scheme, _)| SCHEMES.contains(&scheme))
}

/// What a request names.
#[derive(Clone, Debug, Default)]
pub struct Request<'a> {
    pub name: Option<&'a str>,
    pub pkgs: Option<&'a Value>,
    pub sources: Option<&'a Value>,
    pub saltenv: Option<&'a str>,
    pub normalize: bool,
    pub version: Option<&'a str>,
    pub advisory_ids: Option<Vec<String>>,
}

/// Reads what a request names.
pub fn targets(cx: &Cx, request: &Request<'_>) -> Result<Targets> {
    let pkgs = request.pkgs.filter(|pkgs| pkgs.truthy());
    let sources = request.sources.filter(|sources| sources.truthy());
    let normalize = normalizer(cx, request.normalize);
    if pkgs.is_some() && sources.is_some() {
        tracing::error!("Only one of \"pkgs\" and \"sources\" can be used.");
        return Ok(Targets::Nothing);
    }
    if let Some(ids) = &request.advisory_ids {
        if pkgs.is_some() {
            tracing::error!("Cannot use \"advisory_ids\" and \"pkgs\" at the same time");
            return Ok(Targets::Nothing);
        }
        let name = request.name.map(str::to_owned).into_iter();
        return Ok(Targets::Advisory(if ids.is_empty() { name.collect() } else { ids.clone() }));
    }
    let ignored = || {
        if request.version.is_some() {
            tracing::warn!("'version' argument will be ignored for multiple package targets");
        }
    };
    if let Some(pkgs) = pkgs {
        ignored();
        let targets = repack(pkgs, &*normalize)?;
        let nothing = targets.is_empty();
        return Ok(if nothing { Targets::Nothing } else { Targets::Repository(targets) });
    }
    if let Some(sources) = sources {
        ignored();
        let saltenv = request.saltenv.map_or_else(|| cx.saltenv(), str::to_owned);
        let mut files = Vec::new();
        for (name, place) in pack(sources, &*normalize) {
            if is_remote(&place) {
                let cached = cx.files.cache(&place, &saltenv)?;
                files.push(cached.ok_or_else(|| {
                    Error::failed(format!("Unable to cache source {place} for package {name}"))
                })?);
            } else if Path::new(&place).is_absolute() {
                files.push(place.into());
            } else {
                return Err(Error::invalid(format!(
                    "Path {place} for package {name} is either not absolute or an invalid protocol"
                )));
            }
        }
        return Ok(if files.is_empty() { Targets::Nothing } else { Targets::Files(files) });
    }
    match request.name.filter(|name| !name.is_empty()) {
        Some(name) => {
            let version = request.version.map(str::to_owned);
            let named = name.split(',').map(|name| (normalize(name), version.clone()));
            Ok(Targets::Repository(named.collect()))
        }
        None => {
            tracing::error!("No package sources provided");
            Ok(Targets::Nothing)
        }
    }
}

/// Read a list of sources: name → location.
///
/// ```console
/// $ salt '*' pkg_resource.pack_sources '[{"foo": "salt://foo.rpm"}]'
/// ```
#[function]
pub fn pack_sources(
    cx: &Cx,
    /// The list: one-key dicts of name and location.
    sources: Value,
    /// Strip the architecture from names.
    #[default(true)]
    normalize: bool,
) -> Result<Dict> {
    Ok(pack(&sources, &*normalizer(cx, normalize)).into_iter().collect())
}

/// Read what a call to `pkg.install` names: the packages, and the kind of them.
///
/// ```console
/// $ salt '*' pkg_resource.parse_targets pkgs='[foo, {bar: 1.2}]'
/// ```
#[function]
pub fn parse_targets(
    cx: &Cx,
    /// One package, or several with commas.
    name: Option<String>,
    /// Several packages, with versions.
    #[default(Value::Null)]
    pkgs: Value,
    /// Several packages, with locations.
    #[default(Value::Null)]
    sources: Value,
    /// The environment files come from.
    #[default("base".to_owned())]
    saltenv: String,
    /// Strip the architecture from names.
    #[default(true)]
    normalize: bool,
    /// `version`, `advisory_ids`.
    rest: Rest,
) -> Result<Value> {
    let version = rest.kwargs.get("version").filter(|version| !version.is_null());
    let version = version.map(|version| version.to_string());
    let advisory = rest.kwargs.get("advisory_ids").map(|ids| {
        ids.items_of_sequence().unwrap_or_default().iter().map(Value::to_string).collect()
    });
    let request = Request {
        name: name.as_deref(),
        pkgs: Some(&pkgs),
        sources: Some(&sources),
        saltenv: Some(&saltenv),
        normalize,
        version: version.as_deref(),
        advisory_ids: advisory,
    };
    Ok(match targets(cx, &request)? {
        Targets::Nothing => Value::tuple([Value::Null, Value::Null]),
        Targets::Repository(targets) => {
            let targets: Dict = targets.into_iter().collect();
            Value::tuple([Value::Dict(targets), "repository".into()])
        }
        Targets::Files(files) => {
            let files = files.iter().map(|file| file.display().to_string());
            Value::tuple([Value::list(files), "file".into()])
        }
        Targets::Advisory(ids) => Value::tuple([Value::list(ids), "advisory".into()]),
    })
}

/// Return the installed versions of packages; a text for one package, a dict for several.
///
/// ```console
/// $ salt '*' pkg_resource.version 'bash' 'vim*'
/// ```
#[function]
pub fn version(
    cx: &Cx,
    /// Packages, and `versions_as_list`.
    names: Rest,
) -> Result<Value> {
    let as_list = names.kwargs.get("versions_as_list").is_some_and(|flag| flag.truthy());
    let given: Vec<String> = names.args.iter().map(Value::to_string).collect();
    installed(cx, &given, as_list, &names.kwargs)
}

/// The installed versions of packages, as `pkg.version` returns them.
pub fn installed(cx: &Cx, names: &[String], as_list: bool, extra: &Dict) -> Result<Value> {
    let ret = Dict::new();
    let mut has_glob = false;
    let show = |versions: &[String]| -> Value {
        if as_list { Value::list(versions.to_vec()) } else { versions.join(",").into() }
    };
    if !names.is_empty() {
        let pkgs = pkg::provider(cx)?.list_pkgs(cx, Which::Installed, extra)?;
        for name in names {
            if name.contains('*') {
                has_glob = true;
                for (own, versions) in &pkgs {
                    if halite_target::fnmatch::fnmatch(own, name) {
                        ret.insert(own.as_str(), show(versions));
                    }
                }
            } else {
                ret.insert(name.as_str(), show(pkgs.get(name).map_or(&[], Vec::as_slice)));
            }
        }
    }
    if ret.len() == 1 && !has_glob {
        return Ok(ret.values().swap_remove(0));
    }
    Ok(ret.into())
}

/// Add a version to a list of packages, in place.
///
/// ```console
/// $ salt web1 pkg_resource.add_pkg '{}' nginx 1.2
/// ```
#[function]
pub fn add_pkg(
    _cx: &Cx,
    /// The packages: name → versions.
    pkgs: Dict,
    /// The package.
    name: String,
    /// The version.
    pkgver: Value,
) -> Result<Value> {
    if let Value::List(list) = pkgs.get_or_insert_with(name.as_str(), || List::new().into()) {
        list.push(pkgver);
    }
    Ok(Value::Null)
}

/// Sort the versions of a list of packages and drop repeats, in place.
///
/// ```console
/// $ salt web1 pkg_resource.sort_pkglist "['1.10', '1.9']"
/// ```
#[function]
pub fn sort_pkglist(
    _cx: &Cx,
    /// The packages: name → versions.
    pkgs: Value,
) -> Result<Value> {
    for (name, versions) in pkgs.as_dict().into_iter().flatten() {
        let mut items: Vec<String> =
            versions.items_of_sequence().unwrap_or_default().iter().map(Value::to_string).collect();
        items.sort();
        items.dedup();
        if let Some(pkgs) = pkgs.as_dict() {
            pkgs.insert(name, Value::list(items));
        }
    }
    Ok(Value::Null)
}

/// Join the versions of a list of packages by commas, in place.
///
/// ```console
/// $ salt '*' pkg_resource.stringify '{"foo": ["1", "2"]}'
/// ```
#[function]
pub fn stringify(
    _cx: &Cx,
    /// The packages: name → versions.
    pkgs: Value,
) -> Result<Value> {
    for (name, versions) in pkgs.as_dict().into_iter().flatten() {
        let items: Vec<String> =
            versions.items_of_sequence().unwrap_or_default().iter().map(Value::to_string).collect();
        if let Some(pkgs) = pkgs.as_dict() {
            pkgs.insert(name, items.join(","));
        }
    }
    Ok(Value::Null)
}

/// Return a version without what the package manager ignores.
///
/// ```console
/// $ salt '*' pkg_resource.version_clean 1.2.3
/// ```
#[function]
pub fn version_clean(
    _cx: &Cx,
    /// The version.
    #[arg(required)]
    verstr: Value,
) -> Result<Value> {
    Ok(verstr)
}

/// Compare two versions.
///
/// ```console
/// $ salt '*' pkg_resource.version_compare 1.2 '>=' 1.1
/// ```
#[function]
pub fn version_compare(
    cx: &Cx,
    /// The one.
    ver1: String,
    /// `<`, `<=`, `==`, `!=`, `>=` or `>`.
    oper: String,
    /// The other.
    ver2: String,
    /// Leave epochs out.
    #[default(false)]
    ignore_epoch: bool,
) -> Result<bool> {
    let order = match pkg::provider(cx) {
        Ok(provider) => provider.order(&ver1, &ver2, ignore_epoch),
        Err(_) => versions::compare_deb(&ver1, &ver2),
    };
    Ok(versions::satisfies(order, &oper))
}

/// Tell whether an installed package meets further requirements; always, but on Gentoo.
///
/// ```console
/// $ salt '*' pkg_resource.check_extra_requirements foo 1.2
/// ```
#[function]
pub fn check_extra_requirements(
    _cx: &Cx,
    /// The package.
    pkgname: Value,
    /// The version.
    #[arg(required)]
    pkgver: Value,
) -> Result<bool> {
    let _ = (pkgname, pkgver);
    Ok(true)
}

/// Return a list of packages in the form a caller wants.
///
/// ```console
/// $ salt '*' pkg_resource.format_pkg_list '{"foo": [{"epoch": "", "version": "1", "release": "2"}]}' False ''
/// ```
#[function]
pub fn format_pkg_list(
    cx: &Cx,
    /// The packages: name → list of dicts with `epoch`, `version`, `release` …
    packages: Dict,
    /// Versions as a list, not joined by commas.
    versions_as_list: bool,
    /// Attributes to return instead: a list, or `all`.
    #[arg(required)]
    attr: Value,
) -> Result<Dict> {
    const KNOWN: [&str; 6] =
        ["epoch", "version", "release", "arch", "install_date", "install_date_time_t"];
    let ret = Dict::new();
    if attr.truthy() {
        let wanted: Vec<String> = match attr.as_str() {
            Some("all") => KNOWN.iter().map(|name| (*name).to_owned()).collect(),
            _ => crate::cmd::split_input(&attr),
        };
        for (name, versions) in &packages {
            let (plain, arch) = pkg::provider(cx)?.parse_arch(&name.to_str());
            let mut shown = name.to_string();
            let list = List::new();
            for entry in versions.items_of_sequence().unwrap_or_default() {
                let kept = Dict::new();
                for key in KNOWN {
                    let asked = wanted.iter().any(|own| own == key);
                    if let Some(value) =
                        entry.get(key).filter(|_| asked || key == "version" || key == "arch")
                    {
                        kept.insert(key, value);
                    }
                }
                if kept.get("arch") == Some(arch.clone().into()) {
                    shown.clone_from(&plain);
                }
                list.push(kept);
            }
            match ret.get(&*shown) {
                Some(Value::List(own)) => own.extend(&list),
                _ => {
                    ret.insert(shown, list);
                }
            }
        }
        return Ok(ret);
    }
    for (name, versions) in &packages {
        let texts: Vec<String> = versions
            .items_of_sequence()
            .unwrap_or_default()
            .iter()
            .map(|entry| {
                let part =
                    |key: &str| entry.get(key).filter(Value::truthy).map(|part| part.to_string());
                full_version(
                    part("epoch").as_deref(),
                    &part("version").unwrap_or_default(),
                    part("release").as_deref(),
                )
            })
            .collect();
        let value: Value =
            if versions_as_list { Value::list(texts) } else { texts.join(",").into() };
        ret.insert(name, value);
    }
    Ok(ret)
}

fn full_version(epoch: Option<&str>, version: &str, release: Option<&str>) -> String {
    let epoch = epoch.map(|epoch| format!("{epoch}:")).unwrap_or_default();
    let release = release.map(|release| format!("-{release}")).unwrap_or_default();
    format!("{epoch}{version}{release}")
}

/// Return a version from its parts.
///
/// ```console
/// $ salt '*' pkg_resource.format_version 1 2.3 4
/// ```
#[function]
pub fn format_version(
    _cx: &Cx,
    /// The epoch, or nothing.
    #[arg(required)]
    epoch: Value,
    /// The version.
    version: String,
    /// The release, or nothing.
    #[arg(required)]
    release: Value,
) -> Result<String> {
    let text = |value: &Value| value.truthy().then(|| value.to_string());
    Ok(full_version(text(&epoch).as_deref(), &version, text(&release).as_deref()))
}

#[cfg(test)]
mod tests {
    use halite_value::list;

    use super::*;

    fn same(name: &str) -> String {
        name.to_owned()
    }

    #[test]
    fn lists_of_packages() {
        let pkgs = list!["a", dict! { "b" => 1.5 }, dict! { "c" => Value::Null }];
        let expected =
            [("a".to_owned(), None), ("b".to_owned(), Some("1.5".into())), ("c".to_owned(), None)];
        assert_eq!(repack(&pkgs, &same).unwrap(), expected);
        assert_eq!(repack(&"[a]".into(), &same).unwrap(), [("a".to_owned(), None)]);
        let twice = list!["a", dict! { "a" => "1" }];
        let error = repack(&twice, &same).unwrap_err().to_string();
        assert!(error.contains("duplicated packages names: ['a', {'a': '1'}]"), "{error}");
        assert!(repack(&list![list!["a"]], &same).unwrap().is_empty());
    }

    #[test]
    fn lists_of_sources() {
        let sources = list![dict! { "a" => "salt://a.deb" }, dict! { "b" => "/b.deb" }];
        let expected =
            [("a".to_owned(), "salt://a.deb".to_owned()), ("b".to_owned(), "/b.deb".to_owned())];
        assert_eq!(pack(&sources, &same), expected);
        assert!(pack(&list!["a"], &same).is_empty());
    }
}
