//! RedHat and its relatives: dnf, dnf5, tdnf or yum, above rpm.

use std::{cmp::Ordering, path::Path};

use halite_spec::{Cx, Error, Result};
use halite_value::{Dict, List, Value, dict, entries};

use super::{
    Checked, Done, Install, Latest, Lock, Pkgs, Provider, Trouble, Uninstall, Upgrade, Which,
    differences, scope, version, yum_repos,
};
use crate::{
    cmd::{self, Options, Ran},
    lowpkg::rpm,
    pkg_resource::{self, Request, Targets},
};

/// dnf, dnf5, tdnf or yum.
#[derive(Debug)]
pub(super) struct Yum;

/// The tool there is, the newest first.
fn tool(cx: &Cx) -> Result<&'static str> {
    let tools = ["dnf5", "dnf", "tdnf", "yum"];
    let found = tools.into_iter().find(|tool| cx.host.which(tool).is_some());
    found.ok_or_else(|| Error::failed("DNF nor YUM found"))
}

fn is_dnf(tool: &str) -> bool {
    tool.starts_with("dnf")
}

fn call<T: Into<String>>(
    cx: &Cx,
    words: impl IntoIterator<Item = T>,
    options: Options,
) -> Result<Ran> {
    let mut all = if options.query { Vec::new() } else { scope(cx, None) };
    all.push(tool(cx)?.to_owned());
    all.extend(words.into_iter().map(Into::into));
    cmd::plain(cx, all, Options { output_loglevel: Some("trace".into()), ..options })
}

fn looking() -> Options {
    Options { query: true, ignore_retcode: true, ..Options::default() }
}

/// Options that choose repositories.
fn repo_options(fromrepo: Option<&str>, extra: &Dict) -> Vec<String> {
    let list = |name: &str| {
        extra
            .get(name)
            .filter(Value::truthy)
            .map(|given| cmd::split_input(&given))
            .unwrap_or_default()
    };
    let mut words = Vec::new();
    let repo = extra.get("repo").filter(Value::truthy).map(|repo| repo.to_string());
    match fromrepo.map(str::to_owned).or(repo).filter(|repo| !repo.is_empty()) {
        Some(repo) => words.extend(["--disablerepo=*".to_owned(), format!("--enablerepo={repo}")]),
        None => {
            words.extend(list("disablerepo").iter().map(|repo| format!("--disablerepo={repo}")));
            words.extend(list("enablerepo").iter().map(|repo| format!("--enablerepo={repo}")));
        }
    }
    for name in ["disableexcludes", "branch"] {
        if let Some(value) = extra.get(name).filter(Value::truthy) {
            words.push(format!("--{name}={value}"));
        }
    }
    words.extend(list("setopt").iter().map(|item| format!("--setopt={item}")));
    words
}

/// Reads `yum list`: name.arch, version, repository; a long name breaks the line.
fn listed(text: &str, osarch: &str) -> Vec<(String, String, String)> {
    const HEADERS: [&str; 5] = [
        "installed packages",
        "available packages",
        "available upgrades",
        "updated packages",
        "upgraded packages",
    ];
    let words: Vec<&str> = text
        .lines()
        .filter(|line| !HEADERS.contains(&line.trim().to_lowercase().as_str()))
        .flat_map(str::split_whitespace)
        .collect();
    words
        .chunks_exact(3)
        .filter_map(|chunk| {
            let [name, version, repo] = chunk else { return None };
            let (name, arch) = name.rsplit_once('.').unwrap_or((name, osarch));
            let version = version.strip_prefix("0:").unwrap_or(version);
            Some((
                rpm::resolve_name(name, arch, osarch),
                version.trim_end_matches('-').to_owned(),
                repo.trim_start_matches('@').to_owned(),
            ))
        })
        .collect()
}

impl Provider for Yum {
    fn has(&self, function: &str) -> bool {
        !matches!(
            function,
            "get_selections" | "show" | "autoremove" | "check_db" | "resolve_capabilities"
        )
    }

    fn list_pkgs(&self, cx: &Cx, which: Which, extra: &Dict) -> Result<Pkgs> {
        installed(cx, which, extra)
    }

    fn latest_version(
        &self,
        cx: &Cx,
        names: &[String],
        how: &Latest,
    ) -> Result<Vec<(String, String)>> {
        if how.refresh {
            self.refresh_db(cx, &how.extra)?;
        }
        let pkgs = self.list_pkgs(cx, Which::Installed, &Dict::new())?;
        let mut words = vec!["--quiet".to_owned()];
        words.extend(repo_options(how.fromrepo.as_deref(), &how.extra));
        words.extend(["list".to_owned(), "available".into()]);
        words.extend(names.iter().cloned());
        let ran = call(cx, words, looking())?;
        let mut offers =
            if ran.ok() { listed(&ran.stdout, &cx.grain_str("osarch")) } else { Vec::new() };
        offers.sort_by(|one, other| version::compare_rpm(&other.1, &one.1));
        let newest = |name: &String| -> String {
            let wanted = self.normalize_name(cx, name);
            let offer = offers.iter().find(|(own, _, _)| *own == *name || *own == wanted);
            let Some((own, offered, _)) = offer else { return String::new() };
            let there = pkgs.get(own).map_or(&[][..], Vec::as_slice);
            let has = there.iter().any(|there| version::compare_rpm(there, offered).is_ge());
            if has { String::new() } else { offered.clone() }
        };
        Ok(names.iter().map(|name| (name.clone(), newest(name))).collect())
    }

    fn refresh_db(&self, cx: &Cx, extra: &Dict) -> Result<Value> {
        super::refreshed(cx);
        let options = repo_options(
            extra.get("fromrepo").filter(Value::truthy).map(|repo| repo.to_string()).as_deref(),
            extra,
        );
        let words = ["--quiet", "--assumeyes", "clean", "expire-cache"].map(str::to_owned);
        call(cx, words.into_iter().chain(options.clone()), looking())?;
        if extra.get("check_update").is_some_and(|check| !check.truthy()) {
            return Ok(Value::Bool(true));
        }
        let mut words: Vec<String> =
            ["--quiet", "--assumeyes", "check-update"].map(str::to_owned).into();
        if cx.grain_str("os_family") == "RedHat"
            && cx.grain("osmajorrelease") == Some(Value::Int(7))
        {
            words.push("--setopt=autocheck_running_kernel=false".into());
        }
        words.extend(options);
        Ok(match call(cx, words, looking())?.retcode {
            Some(100) => Value::Bool(true),
            Some(0) => Value::Null,
            _ => Value::Bool(false),
        })
    }

    fn install(&self, cx: &Cx, request: &Install) -> Result<Done> {
        install(self, cx, request)
    }

    fn uninstall(&self, cx: &Cx, request: &Uninstall) -> Result<Done> {
        let named = pkg_resource::targets(
            cx,
            &Request {
                name: request.name.as_deref(),
                pkgs: Some(&request.pkgs),
                normalize: true,
                ..Request::default()
            },
        )?;
        let Targets::Repository(named) = named else { return Ok(Done::default()) };
        let none = Dict::new();
        let old = self.list_pkgs(cx, Which::Installed, &none)?;
        let mut targets = Vec::new();
        for (name, wanted) in &named {
            match wanted.as_deref().filter(|version| !version.is_empty()) {
                None => targets.extend(super::matching(&old, &[(name.clone(), None)])),
                Some(version) => {
                    if old.get(name).is_some_and(|own| own.iter().any(|own| own == version)) {
                        targets.push(nevra(cx, name, version, request.extra.get("split_arch")));
                    }
                }
            }
        }
        if targets.is_empty() {
            return Ok(Done::default());
        }
        let words = ["-y".to_owned(), "remove".into()].into_iter().chain(targets);
        let ran = call(cx, words, Options::default())?;
        let errors: Vec<String> = Some(ran.stderr.clone())
            .filter(|text| !ran.ok() && !text.is_empty())
            .into_iter()
            .collect();
        let changes = differences(&old, &self.list_pkgs(cx, Which::Installed, &none)?);
        Ok(Done::with_errors(changes, "Error occurred removing package(s)", errors))
    }

    fn upgrade(&self, cx: &Cx, request: &Upgrade) -> Result<Done> {
        let extra = &request.extra;
        let obsoletes = extra.get("obsoletes").is_none_or(|flag| flag.truthy());
        let minimal = extra.get("minimal").is_some_and(|flag| flag.truthy());
        let dnf = is_dnf(tool(cx)?);
        if request.refresh {
            self.refresh_db(cx, extra)?;
        }
        let none = Dict::new();
        let old = self.list_pkgs(cx, Which::Installed, &none)?;
        let name = extra.get("name").filter(Value::truthy).map(|name| name.to_string());
        let named = if name.is_some() || request.pkgs.truthy() {
            let pkgs = Some(&request.pkgs);
            let asked =
                Request { name: name.as_deref(), pkgs, normalize: true, ..Request::default() };
            pkg_resource::targets(cx, &asked)?
        } else {
            Targets::Nothing
        };
        let mut words = vec!["--quiet".to_owned(), "-y".into()];
        words.extend(repo_options(
            extra.get("fromrepo").filter(Value::truthy).map(|repo| repo.to_string()).as_deref(),
            extra,
        ));
        words.extend((dnf && !obsoletes).then(|| "--setopt=obsoletes=False".to_owned()));
        if extra.get("skip_verify").is_some_and(|flag| flag.truthy()) {
            words.push("--nogpgcheck".into());
        }
        let action = if obsoletes || dnf { "upgrade" } else { "update" };
        words.push(if minimal { format!("{action}-minimal") } else { action.to_owned() });
        if let Targets::Repository(named) = named {
            words.extend(named.into_iter().map(|(name, _)| name));
        }
        let ran = call(cx, words, Options::default())?;
        let changes = differences(&old, &self.list_pkgs(cx, Which::Installed, &none)?);
        let trouble = (!ran.ok()).then(|| Trouble {
            message: "Problem encountered upgrading packages".into(),
            info: entries! { "result" => ran.to_value() },
        });
        Ok(Done { changes, trouble })
    }

    fn list_upgrades(&self, cx: &Cx, request: &Upgrade) -> Result<Dict> {
        if request.refresh {
            let extra = request.extra.shallow_copy();
            extra.insert("check_update", false);
            self.refresh_db(cx, &extra)?;
        }
        let fromrepo =
            request.extra.get("fromrepo").filter(Value::truthy).map(|repo| repo.to_string());
        let mut words = vec!["--quiet".to_owned()];
        words.extend(repo_options(fromrepo.as_deref(), &request.extra));
        let what = if is_dnf(tool(cx)?) { "--upgrades" } else { "updates" };
        words.extend(["list".to_owned(), what.to_owned()]);
        let ran = call(cx, words, looking())?;
        let found = listed(&ran.stdout, &cx.grain_str("osarch"));
        Ok(found.into_iter().map(|(name, version, _)| (name, version)).collect())
    }

    fn compare(&self, one: &str, other: &str) -> Ordering {
        version::compare_rpm(one, other)
    }

    fn normalize_name(&self, cx: &Cx, name: &str) -> String {
        normalized(cx, name)
    }

    fn parse_arch(&self, name: &str) -> (String, Option<String>) {
        split_arch(name)
    }

    fn set_hold(&self, cx: &Cx, names: &[String], hold: bool) -> Result<Dict> {
        check_versionlock(self, cx)?;
        let locks = self.locks(cx)?.unwrap_or_default();
        let ret = Dict::new();
        for name in names {
            let held = locks.iter().any(|lock| lock.name == *name);
            let one = entries! {
                "name" => name.as_str(), "changes" => Value::dict(), "result" => true, "comment" => "",
            };
            let comment = if held == hold {
                if hold { "is already set to be held." } else { "is not being held." }
            } else if cx.opt_bool("test") {
                one.insert("result", Value::Null);
                if hold { "is set to be held." } else { "is set to be unheld." }
            } else {
                let action = if hold { "add" } else { "delete" };
                let ran = call(cx, ["versionlock", action, name], Options::default())?;
                if ran.ok() {
                    let (new, old) = if hold { ("hold", "") } else { ("", "hold") };
                    one.insert("changes", dict! { "new" => new, "old" => old });
                    if hold { "is now being held." } else { "is no longer held." }
                } else {
                    one.insert("result", false);
                    if hold { "was unable to be held." } else { "was unable to be unheld." }
                }
            };
            one.insert("comment", format!("Package {name} {comment}"));
            ret.insert(name.as_str(), one);
        }
        Ok(ret)
    }

    fn locks(&self, cx: &Cx) -> Result<Option<Vec<Lock>>> {
        let tool = tool(cx)?;
        if tool == "dnf5" {
            let path = Path::new("/etc/dnf/versionlock.toml");
            let text = cx.host.read_text_if_there(path)?.unwrap_or_default();
            return Ok(Some(dnf5_locks(&text)));
        }
        let ran = cmd::plain(cx, [tool, "versionlock", "list"], looking())?;
        Ok(Some(ran.stdout.lines().filter_map(|line| lock_of(line.trim())).collect()))
    }

    fn list_repo_pkgs(&self, cx: &Cx, names: &[String], extra: &Dict) -> Result<Dict> {
        let list = |name: &str| {
            extra
                .get(name)
                .filter(Value::truthy)
                .map(|given| cmd::split_input(&given))
                .unwrap_or_default()
        };
        let (only, off, on) = (list("fromrepo"), list("disablerepo"), list("enablerepo"));
        let repos: Vec<String> = if only.is_empty() {
            let is_on = |name: &str, repo: &Value| {
                on.iter().any(|own| own == name)
                    || (!off.iter().any(|own| own == name)
                        && repo.get("enabled").is_none_or(|flag| flag.to_str() == "1"))
            };
            let all = yum_repos::all(cx, extra)?;
            let kept = all.into_iter().filter(|(name, repo)| is_on(&name.to_str(), repo));
            kept.map(|(name, _)| name.to_string()).collect()
        } else {
            only
        };
        let byrepo = extra.get("byrepo").is_some_and(|flag| flag.truthy());
        let mut found: Vec<(String, String, String)> = Vec::new();
        for repo in &repos {
            let mut words: Vec<String> = if tool(cx)? == "tdnf" {
                vec!["--quiet".into(), format!("--enablerepo={repo}"), "list".into()]
            } else {
                ["--quiet", "--showduplicates", "repository-packages", repo, "list"]
                    .map(str::to_owned)
                    .into()
            };
            words.extend(
                extra.get("cacheonly").is_some_and(|flag| flag.truthy()).then(|| "-C".to_owned()),
            );
            words.extend(names.iter().cloned());
            let ran = call(cx, words, looking())?;
            if ran.ok() || !ran.stdout.contains("Error:") {
                found.extend(listed(&ran.stdout, &cx.grain_str("osarch")));
            }
        }
        found.sort_by(|one, other| version::compare_rpm(&other.1, &one.1));
        let ret = Dict::new();
        for (name, version, repo) in found {
            let at = if byrepo {
                let inner = ret.get_or_insert_with(repo, Value::dict);
                inner.as_dict().cloned().unwrap_or_default()
            } else {
                ret.clone()
            };
            if let Value::List(versions) = at.get_or_insert_with(name, || List::new().into())
                && !versions.contains(&version.as_str().into())
            {
                versions.push(version);
            }
        }
        Ok(ret)
    }

    fn check_db(&self, _: &Cx, _: &[String], _: &Dict) -> Result<Option<Checked>> {
        Ok(None)
    }

    fn owner(&self, cx: &Cx, paths: &[String]) -> Result<Value> {
        rpm::owner(cx, paths, &Dict::new())
    }

    fn list_downloaded(&self, cx: &Cx, _: &Dict) -> Result<Dict> {
        super::downloaded(cx, &format!("/var/cache/{}", tool(cx)?), ".rpm")
    }

    fn list_repos(&self, cx: &Cx, extra: &Dict) -> Result<Dict> {
        yum_repos::all(cx, extra)
    }

    fn get_repo(&self, cx: &Cx, repo: &str, extra: &Dict) -> Result<Dict> {
        yum_repos::get(cx, repo, extra)
    }

    fn mod_repo(&self, cx: &Cx, repo: &str, options: &Dict) -> Result<Dict> {
        yum_repos::modify(cx, repo, options)
    }

    fn repo_change(&self, cx: &Cx, repo: &str, options: &Dict) -> Result<(Dict, Dict)> {
        let before = yum_repos::get(cx, repo, options)?;
        let after = yum_repos::given(options);
        let before = if before.is_empty() { before } else { yum_repos::only(&before, &after) };
        Ok((before, after))
    }

    fn del_repo(&self, cx: &Cx, repo: &str, extra: &Dict) -> Result<String> {
        yum_repos::delete(cx, repo, extra)
    }

    fn info_installed(&self, cx: &Cx, names: &[String], extra: &Dict) -> Result<Value> {
        info_installed(cx, names, extra)
    }

    fn group_list(&self, cx: &Cx) -> Result<Dict> {
        let ran = cmd::plain(cx, [tool(cx)?, "grouplist", "hidden"], looking())?;
        Ok(groups(&ran.stdout))
    }

    fn group_info(&self, cx: &Cx, name: &str, expand: bool) -> Result<Dict> {
        group_info(cx, name, expand, &mut Vec::new())
    }

    fn list_patches(&self, cx: &Cx, installed_only: bool, refresh: bool) -> Result<Dict> {
        if refresh {
            self.refresh_db(cx, &Dict::new())?;
        }
        let ran = call(cx, ["--quiet", "updateinfo", "list", "all"], looking())?;
        Ok(patches(&ran.stdout, installed_only))
    }

    fn verify(&self, cx: &Cx, names: &[String], extra: &Dict) -> Result<Dict> {
        rpm::verify(cx, names, extra)
    }
}

/// The packages of the rpm database; nothing is ever only half there.
pub(super) fn installed(cx: &Cx, which: Which, extra: &Dict) -> Result<Pkgs> {
    let mut pkgs = Pkgs::new();
    if which == Which::Installed {
        for package in rpm::installed(cx, extra)? {
            pkgs.entry(package.name).or_default().push(package.version);
        }
    }
    for versions in pkgs.values_mut() {
        versions.sort_by(|one, other| version::compare_rpm(one, other));
    }
    Ok(pkgs)
}

pub(super) fn normalized(cx: &Cx, name: &str) -> String {
    match name.rsplit_once('.') {
        Some((plain, arch)) if rpm::is_arch(arch) => {
            if rpm::resolve_name(plain, arch, &cx.grain_str("osarch")) == plain {
                plain.to_owned()
            } else {
                name.to_owned()
            }
        }
        _ => name.to_owned(),
    }
}

pub(super) fn split_arch(name: &str) -> (String, Option<String>) {
    match name.rsplit_once('.') {
        Some((plain, arch)) if rpm::is_arch(arch) => (plain.to_owned(), Some(arch.to_owned())),
        _ => (name.to_owned(), None),
    }
}

pub(super) fn info_installed(cx: &Cx, names: &[String], extra: &Dict) -> Result<Value> {
    let ret = rpm::info(cx, names, extra)?;
    for (_, info) in &ret {
        let entries = info.items_of_sequence().unwrap_or_else(|| vec![info.clone()]);
        for entry in entries {
            if let Value::Dict(entry) = entry
                && let Some(source) = entry.remove("source_rpm")
            {
                entry.insert("source", source);
            }
        }
    }
    Ok(ret.into())
}

/// `name-version.arch`, as yum wants it: the architecture last, no epoch.
fn nevra(cx: &Cx, name: &str, version: &str, split: Option<Value>) -> String {
    let version = version::without_epoch(version);
    match name.rsplit_once('.') {
        Some((plain, arch))
            if rpm::is_arch(arch)
                && (arch != cx.grain_str("osarch") || split.is_none_or(|flag| flag.truthy())) =>
        {
            format!("{plain}-{version}.{arch}")
        }
        _ => format!("{name}-{version}"),
    }
}

fn check_versionlock(yum: &Yum, cx: &Cx) -> Result<()> {
    let plugin = match tool(cx)? {
        "tdnf" => return Err(Error::invalid("Cannot proceed, no versionlock for tdnf")),
        "yum" => "yum-plugin-versionlock",
        _ => "python3-dnf-plugin-versionlock",
    };
    if yum.list_pkgs(cx, Which::Installed, &Dict::new())?.contains_key(plugin)
        || tool(cx)? == "dnf5"
    {
        return Ok(());
    }
    Err(Error::invalid(format!("Cannot proceed, {plugin} is not installed.")))
}

/// Reads `0:bash-5.1-1.el9.*` (yum) or `bash-0:5.1-1.el9.*` (dnf).
fn lock_of(line: &str) -> Option<Lock> {
    let line = line.strip_suffix(".*").unwrap_or(line);
    if line.contains(' ') || !line.contains('-') {
        return None;
    }
    let (rest, release) = line.rsplit_once('-')?;
    let (name, version) = rest.rsplit_once('-')?;
    let (name, epoch) = match name.split_once(':') {
        Some((epoch, name)) => (name, Some(epoch)),
        None => (name, None),
    };
    let (epoch, version) = match version.split_once(':') {
        Some((epoch, version)) => (Some(epoch), version),
        None => (epoch, version),
    };
    let epoch = epoch.filter(|epoch| *epoch != "0").map(|epoch| format!("{epoch}:"));
    Some(Lock {
        name: name.to_owned(),
        version: Some(format!("{}{version}-{release}", epoch.unwrap_or_default())),
        kind: None,
    })
}

/// Reads dnf5's `versionlock.toml`, as far as it names packages and exact versions.
fn dnf5_locks(text: &str) -> Vec<Lock> {
    let mut locks: Vec<Lock> = Vec::new();
    let mut exact = false;
    for line in text.lines().map(str::trim) {
        let value =
            |line: &str| line.split_once('=').map(|(_, v)| v.trim().trim_matches('"').to_owned());
        if line == "[[packages]]" {
            locks.push(Lock::default());
        } else if let Some(lock) = locks.last_mut() {
            if line.starts_with("name") {
                lock.name = value(line).unwrap_or_default();
            } else if line.starts_with("key") {
                exact = value(line).as_deref() == Some("evr");
            } else if line.starts_with("comparator") {
                exact &= value(line).as_deref() == Some("=");
            } else if line.starts_with("value") && exact {
                lock.version = value(line);
            }
        }
    }
    locks.retain(|lock| !lock.name.is_empty());
    locks
}

fn groups(text: &str) -> Dict {
    let ret = entries! {
        "installed" => List::new(), "available" => List::new(),
        "installed environments" => List::new(), "available environments" => List::new(),
        "available languages" => Value::dict(),
    };
    let mut current: Option<&str> = None;
    for line in text.lines() {
        let key = match line.trim().to_lowercase().as_str() {
            "done" => break,
            "installed groups:" => Some("installed"),
            "available groups:" => Some("available"),
            "installed environment groups:" => Some("installed environments"),
            "available environment groups:" => Some("available environments"),
            "available language groups:" => Some("available languages"),
            _ => None,
        };
        if key.is_some() {
            current = key;
        } else if let Some(current) = current {
            match ret.get(current) {
                Some(Value::List(list)) => list.push(line.trim()),
                Some(Value::Dict(languages)) => {
                    if let Some((name, rest)) = line.trim().split_once(" [") {
                        let language = rest.trim_end_matches(']');
                        languages
                            .insert(line.trim(), dict! { "name" => name, "language" => language });
                    }
                }
                _ => {}
            }
        }
    }
    ret
}

const KINDS: [&str; 4] = ["mandatory", "optional", "default", "conditional"];

fn group_info(cx: &Cx, name: &str, expand: bool, done: &mut Vec<String>) -> Result<Dict> {
    let tool = tool(cx)?;
    let mut words = vec![tool, "--quiet"];
    words.extend(if tool == "dnf5" {
        vec!["group", "info", name]
    } else {
        vec!["groupinfo", name]
    });
    let text = cmd::plain(cx, words, looking())?.stdout;
    let field = |key: &str| {
        text.lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(own, value)| own.trim().to_lowercase() == key && !value.contains(':'))
            .map(|(_, value)| value.trim().to_owned())
            .filter(|value| !value.is_empty())
    };
    let environment = field("environment group");
    let group = environment.clone().or_else(|| field("group")).or_else(|| field("name"));
    let id = field("environment-id").or_else(|| field("group-id")).or_else(|| field("id"));
    if group.is_none() && id.is_none() {
        return Err(Error::failed(format!("Group '{name}' not found")));
    }
    let ret = Dict::new();
    let mut members: Vec<(&str, Vec<String>)> = KINDS.map(|kind| (kind, Vec::new())).into();
    let mut current: Option<&str> = None;
    for line in text.lines() {
        let line = line.trim().trim_start_matches(|char: char| char.is_ascii_punctuation()).trim();
        let lower = line.to_lowercase();
        let mut member = line.to_owned();
        if let Some(kind) = KINDS.into_iter().find(|kind| {
            lower.starts_with(&format!("{kind} packages"))
                || lower.starts_with(&format!("{kind} groups"))
        }) && let Some((_, rest)) = line.split_once(':')
        {
            current = Some(kind);
            member = rest.trim().to_owned();
        }
        let Some(kind) = current.filter(|_| !member.is_empty()) else { continue };
        if expand && environment.is_some() {
            if done.contains(&member) {
                continue;
            }
            done.push(member.clone());
            let inner = group_info(cx, &format!("@{member}"), true, done)
                .or_else(|_| group_info(cx, &member, true, done))?;
            for (kind, list) in &mut members {
                let found = inner.get(*kind).and_then(|list| list.items_of_sequence());
                list.extend(found.unwrap_or_default().iter().map(Value::to_string));
            }
        } else if let Some((_, list)) = members.iter_mut().find(|(own, _)| *own == kind) {
            list.push(member);
        }
    }
    for (kind, mut list) in members {
        list.sort();
        list.dedup();
        ret.insert(kind, list);
    }
    let kind = if environment.is_some() { "environment group" } else { "package group" };
    ret.insert("type", kind);
    ret.insert("group", group);
    ret.insert("id", id);
    ret.insert("description", field("description").unwrap_or_default());
    Ok(ret)
}

fn patches(text: &str, installed_only: bool) -> Dict {
    let ret = Dict::new();
    for line in text.lines() {
        let installed = line.starts_with("i ");
        let rest = line.strip_prefix("i ").unwrap_or(line);
        let words: Vec<&str> = rest.split_whitespace().collect();
        let [id, _, package] = words.as_slice() else { continue };
        let entry = ret.get_or_insert_with(*id, || {
            dict! { "installed" => installed, "summary" => List::new() }
        });
        if let Value::Dict(entry) = entry {
            if !installed {
                entry.insert("installed", false);
            }
            if let Some(Value::List(summary)) = entry.get("summary") {
                summary.push(*package);
            }
        }
    }
    if installed_only {
        let is_there = |(_, entry): &(halite_value::Key, Value)| {
            entry.get("installed").is_some_and(|flag| flag.truthy())
        };
        return ret.into_iter().filter(is_there).collect();
    }
    ret
}

fn install(yum: &Yum, cx: &Cx, request: &Install) -> Result<Done> {
    if request.refresh {
        yum.refresh_db(cx, &request.extra)?;
    }
    let advisory = request.extra.get("advisory_ids").map(|ids| cmd::split_input(&ids));
    let targets = pkg_resource::targets(
        cx,
        &Request {
            name: request.name.as_deref(),
            pkgs: Some(&request.pkgs),
            sources: Some(&request.sources),
            normalize: request.normalize && request.split_arch,
            version: request.version.as_deref(),
            advisory_ids: advisory,
            ..Request::default()
        },
    )?;
    let none = Dict::new();
    let old = yum.list_pkgs(cx, Which::Installed, &none)?;
    let mut errors: Vec<String> = Vec::new();
    // Package and what stands on the command line for it.
    let (mut plain, mut down, mut again): (Vec<_>, Vec<_>, Vec<_>) = Default::default();
    let mut is_advisory = false;
    let mut place = |name: String, word: String, wanted: Option<&str>| {
        let current = old.get(&name).cloned().unwrap_or_default();
        let order = |own: &String| {
            let provider: &dyn Provider = yum;
            provider.order(wanted.unwrap_or_default(), own, request.ignore_epoch)
        };
        let pair = (name.clone(), word);
        match wanted {
            None if request.reinstall && !current.is_empty() => again.push(pair),
            None => plain.push(pair),
            Some(_) if request.reinstall && current.iter().any(|own| order(own).is_eq()) => {
                again.push(pair);
            }
            Some(_) if current.is_empty() || current.iter().any(|own| order(own).is_ge()) => {
                plain.push(pair);
            }
            // Kernels are installed beside each other.
            Some(_) if name == "kernel" || name == "kernel-devel" => plain.push(pair),
            Some(_) => down.push(pair),
        }
    };
    match targets {
        Targets::Nothing => return Ok(Done::default()),
        Targets::Advisory(ids) => {
            is_advisory = true;
            let known = yum.list_patches(cx, false, false)?;
            for id in ids {
                if !known.contains(id.as_str()) {
                    return Err(Error::failed(format!("Advisory id \"{id}\" not found")));
                }
                place(id.clone(), format!("--advisory={id}"), None);
            }
        }
        Targets::Files(files) => {
            for file in files {
                let word = file.display().to_string();
                match rpm::bin_pkg_info(cx, &word)? {
                    Some(info) => place(info.name, word, Some(&info.version)),
                    None => place(word.clone(), word, None),
                }
            }
        }
        Targets::Repository(named) => {
            let needs = |version: &Option<String>| {
                version
                    .as_ref()
                    .is_some_and(|text| text.starts_with(['<', '>']) || text.contains('*'))
            };
            let names: Vec<String> =
                named.iter().filter(|(_, v)| needs(v)).map(|(name, _)| name.clone()).collect();
            let offers = if names.is_empty() {
                Dict::new()
            } else {
                yum.list_repo_pkgs(cx, &names, &request.extra)?
            };
            for (name, wanted) in named {
                let Some(wanted) = wanted else {
                    place(name.clone(), name, None);
                    continue;
                };
                let wanted = wanted.trim_start_matches('=').to_owned();
                let versions: Vec<String> = offers
                    .get(name.as_str())
                    .and_then(|list| list.items_of_sequence())
                    .unwrap_or_default()
                    .iter()
                    .map(Value::to_string)
                    .collect();
                let chosen = if wanted.starts_with(['<', '>']) {
                    let provider: &dyn Provider = yum;
                    let found = provider.match_version(&wanted, &versions, request.ignore_epoch);
                    let shown =
                        if versions.is_empty() { "None".into() } else { versions.join(", ") };
                    found.cloned().ok_or_else(|| {
                        format!(
                            "No version matching '{name}{wanted}' could be found (available: \
                             {shown})"
                        )
                    })
                } else if wanted.contains('*') {
                    let fits = |own: &&String| halite_target::fnmatch::fnmatch(own, &wanted);
                    let shown =
                        if versions.is_empty() { "none".into() } else { versions.join(", ") };
                    versions.iter().find(fits).cloned().ok_or_else(|| {
                        format!(
                            "No version matching '{wanted}' found for package '{name}' \
                             (available: {shown})"
                        )
                    })
                } else {
                    Ok(wanted)
                };
                match chosen {
                    Ok(version) => {
                        let split = Some(Value::Bool(request.split_arch));
                        let word = nevra(cx, &name, &version, split);
                        place(name, word, Some(&version));
                    }
                    Err(error) => errors.push(error),
                }
            }
        }
    }
    let holds: Vec<String> = match check_versionlock(yum, cx) {
        Ok(()) => yum.locks(cx)?.unwrap_or_default().into_iter().map(|lock| lock.name).collect(),
        Err(_) => Vec::new(),
    };
    let mut prevented: Vec<String> = Vec::new();
    let dnf = tool(cx)?;
    for (action, pairs) in [("install", &plain), ("downgrade", &down), ("reinstall", &again)] {
        let held: Vec<String> = pairs
            .iter()
            .map(|(name, _)| name.clone())
            .filter(|name| holds.contains(name))
            .collect();
        if !request.update_holds {
            prevented.extend(held.iter().cloned());
        }
        let words: Vec<String> = pairs
            .iter()
            .filter(|(name, _)| request.update_holds || !held.contains(name))
            .map(|(_, word)| word.clone())
            .collect();
        if words.is_empty() {
            continue;
        }
        let release = request.update_holds && !held.is_empty();
        if release {
            yum.set_hold(cx, &held, false)?;
        }
        let best = ["--best".to_owned(), "--allowerasing".into()];
        let mut all = vec!["-y".to_owned()];
        if dnf == "dnf" && action == "install" {
            all.extend(best.clone());
        }
        all.extend(repo_options(request.fromrepo.as_deref(), &request.extra));
        all.extend(request.skip_verify.then(|| "--nogpgcheck".to_owned()));
        all.extend((request.downloadonly && dnf != "dnf5").then(|| "--downloadonly".to_owned()));
        all.push(if is_advisory { "update" } else { action }.to_owned());
        if dnf == "dnf5" && action == "install" {
            all.extend(best);
        }
        all.extend(words);
        let ran = call(cx, all, Options { redirect_stderr: true, ..Options::default() })?;
        if !ran.ok() {
            errors.push(ran.stdout);
        }
        if release {
            yum.set_hold(cx, &held, true)?;
        }
    }
    let new = yum.list_pkgs(cx, Which::Installed, &none)?;
    let changes = differences(&old, &new);
    for (name, _) in &again {
        let versions = |pkgs: &Pkgs| pkgs.get(name).map(|v| v.join(",")).unwrap_or_default();
        changes.insert(name.as_str(), dict! { "old" => versions(&old), "new" => versions(&new) });
    }
    if !prevented.is_empty() {
        errors.push(format!(
            "The following package(s) could not be updated because they are being held: {}. Set \
             'update_holds' to True to temporarily unhold these packages so that they can be \
             updated.",
            prevented.join(", ")
        ));
    }
    let again = if again.is_empty() { "" } else { "/reinstalling" };
    Ok(Done::with_errors(changes, &format!("Error occurred installing{again} package(s)"), errors))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists() {
        let text = "Available Packages\nbash.x86_64   5.1-1.el9   baseos\n\
                    a-very-long-name.noarch\n      0:1.2-3   appstream\nglibc.i686 2.34-1 @anaconda\n";
        let found = listed(text, "x86_64");
        let at = |index: usize| found.get(index).unwrap().clone();
        assert_eq!(at(0), ("bash".into(), "5.1-1.el9".into(), "baseos".into()));
        assert_eq!(at(1), ("a-very-long-name".into(), "1.2-3".into(), "appstream".into()));
        assert_eq!(at(2), ("glibc.i686".into(), "2.34-1".into(), "anaconda".into()));
    }

    #[test]
    fn locks() {
        let lock = |name: &str, version: &str| {
            Some(Lock { name: name.into(), version: Some(version.into()), kind: None })
        };
        assert_eq!(lock_of("0:bash-5.1-1.el9.*"), lock("bash", "5.1-1.el9"));
        assert_eq!(lock_of("vim-minimal-2:8.2-1.el9.*"), lock("vim-minimal", "2:8.2-1.el9"));
        assert_eq!(lock_of("Last metadata expiration check: now"), None);
        let toml = "version = \"1.0\"\n[[packages]]\nname = \"bash\"\n[[packages.conditions]]\n\
                    key = \"evr\"\ncomparator = \"=\"\nvalue = \"5.1-1\"\n";
        assert_eq!(dnf5_locks(toml).first().cloned(), lock("bash", "5.1-1"));
    }

    #[test]
    fn advisories() {
        let text =
            "i FEDORA-1 security bash-5.1\n  FEDORA-2 bugfix zsh-1\n  FEDORA-1 security b-1\n";
        let all = patches(text, false);
        assert_eq!(all.len(), 2);
        assert_eq!(all.get("FEDORA-1").unwrap().get("installed"), Some(Value::Bool(false)));
        assert!(patches("i A x y\n", true).contains("A"));
    }
}
