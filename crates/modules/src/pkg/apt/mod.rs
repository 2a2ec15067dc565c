//! Debian and its descendants: apt and dpkg.
//!
//! What is installed is read from dpkg's status file; everything else is asked of the tools, as
//! Salt does, with the same options. While another apt holds the lock we wait: ten times, longer
//! each time.

pub(crate) mod keys;
mod repos;
pub(crate) mod sources;
mod status;

use std::{
    cmp::Ordering,
    collections::BTreeMap,
    path::Path,
    time::{Duration, UNIX_EPOCH},
};

use halite_spec::{Cx, Error, Rest, Result};
use halite_value::{Dict, List, Value, dict, entries};

use super::{
    Done, Install, Latest, Lock, Pkgs, Provider, Trouble, Uninstall, Upgrade, Which, differences,
    scope, version,
};
use crate::{
    cmd::{self, Options, Ran},
    lowpkg,
    pkg_resource::{self, Request, Target, Targets},
};

/// apt and dpkg.
#[derive(Debug)]
pub(super) struct Apt;

const ENVIRONMENT: [(&str, &str); 4] = [
    ("APT_LISTBUGS_FRONTEND", "none"),
    ("APT_LISTCHANGES_FRONTEND", "none"),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("UCF_FORCE_CONFFOLD", "1"),
];

const LISTS: &str = "/var/lib/apt/lists";

/// The options of a command that changes something.
pub(super) fn options(extra: &Dict) -> Options {
    let env = match extra.get("env") {
        Some(Value::Dict(env)) => env.shallow_copy(),
        Some(other) => other
            .items_of_sequence()
            .unwrap_or_default()
            .iter()
            .filter_map(|item| item.as_dict().map(Dict::entries))
            .flatten()
            .collect(),
        None => Dict::new(),
    };
    for (name, value) in ENVIRONMENT {
        env.insert(name, value);
    }
    Options { env: env.into(), output_loglevel: Some("trace".into()), ..Options::default() }
}

/// Removes a key apt trusts; returns its id, or False if it is not there.
pub fn delete_key(cx: &Cx, id: &str, aptkey: bool, folder: Option<&Path>) -> Result<Value> {
    keys::delete(cx, id, aptkey, folder)
}

/// Tells whether a source line is there, for the architectures it names.
pub fn has_repo(cx: &Cx, repo: &str, options: &Dict) -> Result<bool> {
    repos::holds(cx, repo, options)
}

/// The options of a command that only looks.
fn looking() -> Options {
    Options { query: true, ..options(&Dict::new()) }
}

/// Runs a command of the apt family, waiting for the lock.
pub(super) fn call<T: Into<String>>(
    cx: &Cx,
    words: impl IntoIterator<Item = T>,
    options: Options,
) -> Result<Ran> {
    let words: Vec<String> = words.into_iter().map(Into::into).collect();
    let mut ran = cmd::plain(cx, words.clone(), options.clone())?;
    for count in 1..=10_u32 {
        if !ran.stderr.contains("Could not get lock") {
            break;
        }
        tracing::warn!("another apt holds the lock; asking again ({count} of 10)");
        cx.sleep(Duration::from_secs(1 << count))?;
        let again = Options { timeout: Value::Null, ..options.clone() };
        ran = cmd::plain(cx, words.clone(), again)?;
    }
    drop(options);
    Ok(ran)
}

fn scoped(cx: &Cx) -> Vec<String> {
    scope(cx, Some("\"salt.loaded.int.module.aptpkg\""))
}

/// What `apt-get` is told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    DistUpgrade,
    Install,
    Purge,
    Remove,
    Upgrade,
}

/// An argument of ours that adds words to the command line.
struct Flag {
    argument: &'static str,
    verbs: &'static [Verb],
    /// If the argument is true.
    on: &'static [&'static str],
    /// If it is false.
    off: &'static [&'static str],
    /// If it is not given.
    absent: &'static [&'static str],
}

impl Flag {
    /// A flag that adds one word if it is true.
    const fn word(
        argument: &'static str,
        verbs: &'static [Verb],
        on: &'static [&'static str],
    ) -> Self {
        Self { argument, verbs, on, off: &[], absent: &[] }
    }
}

const NEW_PACKAGES: &[Verb] = &[Verb::Install, Verb::Upgrade, Verb::DistUpgrade];
const UPGRADES: &[Verb] = &[Verb::Upgrade, Verb::DistUpgrade];
const KEEP_CONFFILES: &[&str] =
    &["-o", "DPkg::Options::=--force-confold", "-o", "DPkg::Options::=--force-confdef"];

/// Every flag of the commands that change packages, in the order it is written.
const FLAGS: &[Flag] = &[
    Flag::word("force_yes", NEW_PACKAGES, &["--force-yes"]),
    Flag {
        argument: "force_conf_new",
        verbs: NEW_PACKAGES,
        on: &["-o", "DPkg::Options::=--force-confnew"],
        off: KEEP_CONFFILES,
        absent: KEEP_CONFFILES,
    },
    Flag {
        argument: "install_recommends",
        verbs: &[Verb::Install],
        on: &["--install-recommends"],
        off: &["--no-install-recommends"],
        absent: &[],
    },
    Flag::word("only_upgrade", &[Verb::Install], &["--only-upgrade"]),
    Flag::word("skip_verify", NEW_PACKAGES, &["--allow-unauthenticated"]),
    Flag::word("download_only", UPGRADES, &["--download-only"]),
    Flag::word("downloadonly", UPGRADES, &["--download-only"]),
    Flag::word("allow_downgrades", UPGRADES, &["--allow-downgrades"]),
];

impl Verb {
    fn upgrading(request: &Upgrade) -> Self {
        if request.dist_upgrade { Self::DistUpgrade } else { Self::Upgrade }
    }

    fn word(self) -> &'static str {
        match self {
            Self::DistUpgrade => "dist-upgrade",
            Self::Install => "install",
            Self::Purge => "purge",
            Self::Remove => "remove",
            Self::Upgrade => "upgrade",
        }
    }

    /// The command line up to the verb, with the flags that are given and belong to it.
    fn line(self, given: &Dict, more: &[&str]) -> Vec<String> {
        let flags = FLAGS.iter().filter(|flag| flag.verbs.contains(&self)).flat_map(|flag| {
            match given.get(flag.argument) {
                Some(value) if value.truthy() => flag.on,
                Some(_) => flag.off,
                None => flag.absent,
            }
        });
        let mut words: Vec<&str> = vec!["apt-get", "-q", "-y"];
        for word in flags.chain(more) {
            // Two arguments may ask for the same.
            if word.starts_with("--") && words.contains(word) {
                continue;
            }
            words.push(word);
        }
        words.push(self.word());
        words.into_iter().map(str::to_owned).collect()
    }
}

/// The words that prefer one release.
fn release(repo: Option<&str>) -> Vec<String> {
    repo.map(|repo| vec!["-o".into(), format!("APT::Default-Release={repo}")]).unwrap_or_default()
}

/// What dpkg knows at one time.
struct Snapshot {
    installed: Pkgs,
    /// Removed, but not purged.
    removed: Pkgs,
}

impl Snapshot {
    fn take(apt: &Apt, cx: &Cx) -> Result<Self> {
        let none = Dict::new();
        Ok(Self {
            installed: apt.list_pkgs(cx, Which::Installed, &none)?,
            removed: apt.list_pkgs(cx, Which::Removed, &none)?,
        })
    }

    /// What became different: of the installed and of the removed.
    fn differences(&self, later: &Self) -> (Dict, Dict) {
        (differences(&self.installed, &later.installed), differences(&self.removed, &later.removed))
    }
}

/// How many seconds ago the lists were fetched, if that can be told.
fn lists_age(cx: &Cx) -> Option<f64> {
    let now = cx.host.now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    match cx.host.stat(Path::new(LISTS), true) {
        Ok(stat) => Some(now - stat.mtime),
        Err(error) => {
            tracing::warn!("no telling how old the lists in {LISTS} are: {error}");
            None
        }
    }
}

/// Fetches the lists; once more, from nothing, if that took too long.
///
/// This changes no package: it is done with `test=True`, too.
fn fetch_lists(cx: &Cx, timeout: Value) -> Result<Ran> {
    let get = |verb: &str, how: Options| call(cx, ["apt-get", "-q", verb], how);
    let ran = get("update", Options { timeout, ..looking() })?;
    if !ran.stdout.contains("Timed out") {
        return Ok(ran);
    }
    get("clean", looking())?;
    get("update", looking())
}

fn extra_text(extra: &Dict, name: &str) -> Option<String> {
    extra.get(name).filter(Value::truthy).map(|value| value.to_string())
}

impl Provider for Apt {
    fn has(&self, function: &str) -> bool {
        !matches!(
            function,
            "check_db" | "list_patches" | "group_diff" | "verify" | "resolve_capabilities"
        )
    }

    fn list_pkgs(&self, cx: &Cx, which: Which, _: &Dict) -> Result<Pkgs> {
        let mut pkgs = Pkgs::new();
        for entry in status::entries(cx)? {
            let installed = entry.state.contains("installed")
                && (entry.want.contains("install") || entry.want.contains("hold"));
            let kept = if installed {
                which == Which::Installed
            } else if entry.want.contains("deinstall") {
                which == Which::Removed
            } else {
                // What is to be purged is still there.
                entry.want.contains("purge")
                    && entry.state == "installed"
                    && which != Which::Removed
            };
            if kept {
                let name = lowpkg::dpkg::qualified(cx, &entry.name, &entry.arch);
                pkgs.entry(name).or_default().push(entry.version);
            }
        }
        for versions in pkgs.values_mut() {
            versions.sort();
            versions.dedup();
        }
        Ok(pkgs)
    }

    fn latest_version(
        &self,
        cx: &Cx,
        names: &[String],
        how: &Latest,
    ) -> Result<Vec<(String, String)>> {
        let offers = Offers::of(self, cx, names, how)?;
        Ok(names.iter().map(|name| (name.clone(), offers.newest(name))).collect())
    }

    /// A name nobody offers does not count as one of those asked for: alone it makes a dict, and
    /// beside one other that one's version is all there is. One of another architecture stands for
    /// a name this machine's own has nothing of.
    fn latest_return(&self, cx: &Cx, names: &[String], how: &Latest) -> Result<Value> {
        let offers = Offers::of(self, cx, names, how)?;
        let (known, unknown): (Vec<&String>, Vec<&String>) =
            names.iter().partition(|name| offers.candidates.contains_key(*name));
        let foreign = unknown.iter().flat_map(|name| {
            let prefix = format!("{name}:");
            offers.candidates.keys().filter(move |own| own.starts_with(&prefix))
        });
        let offered: Vec<&String> = known.into_iter().chain(foreign).collect();
        if let [name] = offered.as_slice() {
            return Ok(offers.newest(name).into());
        }
        let all = names.iter().chain(offered);
        Ok(all.map(|name| (name.clone(), offers.newest(name))).collect::<Dict>().into())
    }

    fn refresh_db(&self, cx: &Cx, extra: &Dict) -> Result<Value> {
        super::refreshed(cx);
        let valid = extra.get("cache_valid_time").and_then(|time| time.as_float()).unwrap_or(0.0);
        if valid > 0.0 && lists_age(cx).is_some_and(|age| age < valid) {
            return Ok(Value::dict());
        }
        let timeout = extra.get("timeout").or_else(|| cx.opt("aptpkg_refresh_db_timeout"));
        let ran = fetch_lists(cx, timeout.unwrap_or(Value::Int(30)))?;
        if !ran.ok() {
            return Err(Error::failed(ran.stderr));
        }
        let (repos, failed) = updated(&ran.stdout);
        match extra.get("failhard") {
            Some(failhard) if failhard.truthy() && !failed.is_empty() => {
                Err(Error::failed(format!("Error getting repos: {}", failed.join(", "))))
            }
            _ => Ok(repos.into()),
        }
    }

    fn install(&self, cx: &Cx, request: &Install) -> Result<Done> {
        install(self, cx, request)
    }

    fn uninstall(&self, cx: &Cx, request: &Uninstall) -> Result<Done> {
        let asked = Request {
            name: request.name.as_deref(),
            pkgs: Some(&request.pkgs),
            normalize: true,
            ..Request::default()
        };
        let Targets::Repository(named) = pkg_resource::targets(cx, &asked)? else {
            return Ok(Done::default());
        };
        let verb = if request.purge { Verb::Purge } else { Verb::Remove };
        let before = Snapshot::take(self, cx)?;
        // What is removed but not purged has configuration files that purging takes.
        let mut names = super::matching(&before.installed, &named);
        if request.purge {
            names.extend(super::matching(&before.removed, &named));
        }
        if names.is_empty() {
            return Ok(Done::default());
        }
        let words = [scoped(cx), verb.line(&Dict::new(), &[]), names].concat();
        let ran = call(cx, words, options(&request.extra))?;
        let (installed, removed) = before.differences(&Snapshot::take(self, cx)?);
        let changes = match verb {
            Verb::Purge => entries! { "removed" => removed, "installed" => installed },
            _ => installed,
        };
        let errors = if ran.ok() || ran.stderr.is_empty() { vec![] } else { vec![ran.stderr] };
        Ok(Done::with_errors(changes, "Problem encountered removing package(s)", errors))
    }

    fn upgrade(&self, cx: &Cx, request: &Upgrade) -> Result<Done> {
        if request.refresh {
            self.refresh_db(cx, &request.extra)?;
        }
        let before = Snapshot::take(self, cx)?;
        let words = [scoped(cx), Verb::upgrading(request).line(&request.extra, &[])].concat();
        let ran = call(cx, words, options(&Dict::new()))?;
        let (changes, _) = before.differences(&Snapshot::take(self, cx)?);
        let trouble = (!ran.ok()).then(|| Trouble {
            message: "Problem encountered upgrading packages".into(),
            info: entries! { "result" => ran.to_value() },
        });
        Ok(Done { changes, trouble })
    }

    fn list_upgrades(&self, cx: &Cx, request: &Upgrade) -> Result<Dict> {
        if request.refresh {
            self.refresh_db(cx, &request.extra)?;
        }
        let verb = Verb::upgrading(request).word();
        let repo = extra_text(&request.extra, "fromrepo");
        let words = ["apt-get", "--just-print", verb].map(str::to_owned);
        let ran = call(cx, words.into_iter().chain(release(repo.as_deref())), looking())?;
        if ran.ok() {
            return Ok(upgrades(&ran.stdout));
        }
        let detail = [ran.stderr, ran.stdout].into_iter().find(|text| !text.is_empty());
        let detail = detail.map(|text| format!(": {text}")).unwrap_or_default();
        Err(Error::failed(format!("Failed to get upgrades{detail}")))
    }

    fn compare(&self, one: &str, other: &str) -> Ordering {
        version::compare_deb(one, other)
    }

    fn normalize_name(&self, cx: &Cx, name: &str) -> String {
        let Some((plain, arch)) = name.rsplit_once(':') else { return name.to_owned() };
        let own = cx.grain_str("osarch");
        if arch == own || arch == "all" || arch == "any" { plain.into() } else { name.to_owned() }
    }

    fn parse_arch(&self, name: &str) -> (String, Option<String>) {
        match name.rsplit_once(':') {
            Some((name, arch)) => (name.to_owned(), Some(arch.to_owned())),
            None => (name.to_owned(), None),
        }
    }

    fn set_hold(&self, cx: &Cx, names: &[String], hold: bool) -> Result<Dict> {
        let ret = Dict::new();
        let test = cx.opt_bool("test");
        for name in names {
            let selections = selections(cx, Some(name))?;
            let held = selections.iter().any(|(state, _)| state == "hold");
            let told = |result: Option<bool>, changes: Value, comment: String| {
                dict! {
                    "name" => name.as_str(), "changes" => changes, "result" => result,
                    "comment" => comment,
                }
            };
            let (now, set, already) = if hold {
                ("is now being held", "is set to be held", "is already set to be held")
            } else {
                (
                    "is no longer being held",
                    "is set not to be held",
                    "is already set not to be held",
                )
            };
            let one = if !hold && selections.is_empty() {
                told(Some(false), Value::dict(), format!("Package {name} does not have a state."))
            } else if held == hold {
                told(Some(true), Value::dict(), format!("Package {name} {already}."))
            } else if test {
                told(None, Value::dict(), format!("Package {name} {set}."))
            } else {
                let state = if hold { "hold" } else { "install" };
                let changed = set_selections(cx, &[(state.to_owned(), name.clone())])?;
                let change = changed.get(name.as_str()).unwrap_or_else(Value::dict);
                told(Some(true), change, format!("Package {name} {now}."))
            };
            ret.insert(name.as_str(), one);
        }
        Ok(ret)
    }

    fn locks(&self, cx: &Cx) -> Result<Option<Vec<Lock>>> {
        let held = selections(cx, None)?.into_iter().filter(|(state, _)| state == "hold");
        Ok(Some(held.map(|(_, name)| Lock { name, ..Lock::default() }).collect()))
    }

    fn unpurge(&self, cx: &Cx, names: &[String]) -> Result<Dict> {
        let none = Dict::new();
        let old = self.list_pkgs(cx, Which::PurgeDesired, &none)?;
        let lines: Vec<String> = names.iter().map(|name| format!("{name} install")).collect();
        let how = Options { stdin: Some(lines.join("\n")), ..options(&none) };
        cmd::plain(cx, ["dpkg", "--set-selections"], how)?;
        Ok(differences(&old, &self.list_pkgs(cx, Which::PurgeDesired, &none)?))
    }

    fn list_repo_pkgs(&self, cx: &Cx, names: &[String], _: &Dict) -> Result<Dict> {
        let mut words = vec!["apt-cache".to_owned()];
        if names.is_empty() {
            words.push("dump".into());
        } else {
            words.push("show".into());
            words.extend(names.iter().cloned());
        }
        let ran = call(cx, words, Options { ignore_retcode: true, ..looking() })?;
        Ok(available(&ran.stdout))
    }

    fn owner(&self, cx: &Cx, paths: &[String]) -> Result<Value> {
        let ret = Dict::new();
        for path in paths {
            let ran = cmd::plain(cx, ["dpkg", "-S", path.as_str()], looking())?;
            let owner = ran.stdout.split(':').next().unwrap_or_default();
            let owner = if owner.to_lowercase().contains("no path found") { "" } else { owner };
            ret.insert(path.as_str(), owner);
        }
        Ok(if ret.len() == 1 { ret.values().swap_remove(0) } else { ret.into() })
    }

    fn list_downloaded(&self, cx: &Cx, extra: &Dict) -> Result<Dict> {
        let root = extra_text(extra, "root").unwrap_or_default();
        super::downloaded(cx, &format!("{}/var/cache/apt", root.trim_end_matches('/')), ".deb")
    }

    fn list_repos(&self, cx: &Cx, _: &Dict) -> Result<Dict> {
        repos::list(cx)
    }

    fn get_repo(&self, cx: &Cx, repo: &str, extra: &Dict) -> Result<Dict> {
        repos::get(cx, repo, extra)
    }

    fn mod_repo(&self, cx: &Cx, repo: &str, options: &Dict) -> Result<Dict> {
        repos::modify(cx, repo, options)
    }

    fn repo_change(&self, cx: &Cx, repo: &str, options: &Dict) -> Result<(Dict, Dict)> {
        let before = repos::before(cx, repo, options)?;
        if before.is_empty() {
            return Ok((before, Dict::new()));
        }
        let mut after = repos::after(cx, repo, options)?;
        if after.is_empty() {
            // The change takes the address away from the section it was found by, so that nothing
            // of the name is left: Salt shows all of it as gone.
            let keys = before.keys().into_iter().filter(|key| key.as_str() != Some("file"));
            after = keys.map(|key| (key, Value::Null)).collect();
        }
        if repos::same(&before, &after) {
            return Ok((before.clone(), before));
        }
        for side in [&before, &after] {
            // Salt compares the file only where one is named; `enabled` is the other side of
            // `disabled`.
            side.remove("enabled");
            if options.get("file").is_none() {
                side.remove("file");
            }
        }
        Ok((before, after))
    }

    fn del_repo(&self, cx: &Cx, repo: &str, extra: &Dict) -> Result<String> {
        repos::delete(cx, repo, extra)
    }

    fn info_installed(&self, cx: &Cx, names: &[String], extra: &Dict) -> Result<Value> {
        Rest { kwargs: extra.shallow_copy(), ..Rest::default() }.only(&["failhard"])?;
        let failhard = extra.get("failhard").is_none_or(|flag| flag.truthy());
        let ret = Dict::new();
        for (name, info) in &lowpkg::dpkg::info(cx, names, failhard)? {
            let status = info.get_str("status").unwrap_or_else(|| "ii".into());
            if status.as_bytes().get(1) != Some(&b'i') {
                continue;
            }
            let shown = Dict::new();
            for (key, value) in info.as_dict().into_iter().flatten() {
                match key.to_str().as_str() {
                    "package" => shown.insert("name", value),
                    "origin" => shown.insert("vendor", value),
                    "section" => shown.insert("group", value),
                    "maintainer" => shown.insert("packager", value),
                    "homepage" => shown.insert("url", value),
                    "status" => None,
                    _ => shown.insert(key, value),
                };
            }
            ret.insert(name, shown);
        }
        Ok(ret.into())
    }

    fn autoremove(&self, cx: &Cx, list_only: bool, purge: bool) -> Result<Value> {
        let mut words = if list_only { Vec::new() } else { scoped(cx) };
        let answer = if list_only { "--assume-no" } else { "--assume-yes" };
        words.extend(["apt-get".to_owned(), answer.to_owned()]);
        words.extend(purge.then(|| "--purge".to_owned()));
        words.push("autoremove".into());
        if list_only {
            let ran = call(cx, words, Options { ignore_retcode: true, ..looking() })?;
            return Ok(Value::list(to_be_removed(&ran.stdout)));
        }
        let none = Dict::new();
        let old = self.list_pkgs(cx, Which::Installed, &none)?;
        call(cx, words, Options { ignore_retcode: true, ..options(&none) })?;
        Ok(differences(&old, &self.list_pkgs(cx, Which::Installed, &none)?).into())
    }

    fn show(&self, cx: &Cx, names: &[String], extra: &Dict) -> Result<Dict> {
        if extra.get("refresh").is_some_and(|flag| flag.truthy()) {
            self.refresh_db(cx, &Dict::new())?;
        }
        if names.is_empty() {
            return Ok(Dict::new());
        }
        let filter: Vec<String> = extra
            .get("filter")
            .map(|filter| cmd::split_input(&filter))
            .unwrap_or_default()
            .iter()
            .map(|key| key.to_lowercase())
            .collect();
        let mut words = vec!["apt-cache".to_owned(), "show".into()];
        words.extend(names.iter().cloned());
        Ok(shown(&call(cx, words, looking())?.stdout, &filter))
    }

    fn services_need_restart(&self, cx: &Cx) -> Result<Vec<String>> {
        if cx.host.which("checkrestart").is_none() {
            return Err(Error::failed(
                "'checkrestart' is needed. It is part of the 'debian-goodies' package which can \
                 be installed from official repositories.",
            ));
        }
        let ran = cmd::plain(cx, ["checkrestart", "--machine", "--package"], looking())?;
        let mut services: Vec<String> = ran
            .stdout
            .lines()
            .filter_map(|line| line.strip_prefix("SERVICE:"))
            .map(|line| line.split(',').next().unwrap_or(line).to_owned())
            .collect();
        services.sort();
        services.dedup();
        Ok(services)
    }
}

/// The package that owns a file: its name, None if there is none, False if there is no such file.
pub(super) fn which(cx: &Cx, path: &str) -> Result<Value> {
    if !path.starts_with('/') || !cx.host.exists(Path::new(path))? {
        return Ok(Value::Bool(false));
    }
    let ran = call(cx, ["dpkg", "-S", path], looking())?;
    if ran.stdout.contains("no path found matching pattern") {
        return Ok(Value::Null);
    }
    Ok(ran.stdout.split(':').next().unwrap_or_default().into())
}

/// What the archives offer beside what is installed.
struct Offers {
    installed: Pkgs,
    candidates: BTreeMap<String, String>,
    show_installed: bool,
}

impl Offers {
    fn of(apt: &Apt, cx: &Cx, names: &[String], how: &Latest) -> Result<Self> {
        let installed = apt.list_pkgs(cx, Which::Installed, &how.extra)?;
        if how.refresh {
            apt.refresh_db(cx, &how.extra)?;
        }
        let mut words = vec!["apt-cache".to_owned(), "-q".into(), "policy".into()];
        words.extend(names.iter().cloned());
        words.extend(release(how.fromrepo.as_deref()));
        let ran = call(cx, words, looking())?;
        let candidates = candidates(&ran.stdout);
        Ok(Self { installed, candidates, show_installed: how.show_installed })
    }

    /// The version to be had, empty where it is there already.
    fn newest(&self, name: &str) -> String {
        let Some(candidate) = self.candidates.get(name) else { return String::new() };
        let installed = self.installed.get(name).map_or(&[][..], Vec::as_slice);
        let is_there = |own: &String| version::compare_deb(own, candidate).is_ge();
        if !self.show_installed && installed.iter().any(is_there) {
            return String::new();
        }
        candidate.clone()
    }
}

/// Reads `apt-cache policy`: package → candidate.
fn candidates(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut current = None;
    for line in text.lines() {
        let line = line.trim();
        if let Some(name) = line.strip_suffix(':')
            && !line.starts_with("Version table")
        {
            current = Some(name.to_owned());
        } else if line.starts_with("Candidate")
            && let Some(name) = &current
        {
            let version = line.split_whitespace().nth(1).unwrap_or_default();
            let version = if version.eq_ignore_ascii_case("(none)") { "" } else { version };
            found.insert(name.clone(), version.to_owned());
        }
    }
    found
}

/// Reads `apt-get update`: source → True (new), None (as before) or False; and those that failed.
fn updated(text: &str) -> (Dict, Vec<String>) {
    let repos = Dict::new();
    let mut failed = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else { continue };
        let source = words.collect::<Vec<_>>().join(" ");
        if first.contains("Get") {
            let source = match source.rfind(" [") {
                Some(at) if source.ends_with("B]") => &source[..at],
                _ => &source,
            };
            repos.insert(source, true);
        } else if first.contains("Ign") {
            repos.insert(source, false);
        } else if first.contains("Hit") {
            repos.insert(source, Value::Null);
        } else if first.contains("Err") {
            repos.insert(source.as_str(), false);
            failed.push(source);
        }
    }
    (repos, failed)
}

/// Reads a simulated upgrade: `Conf bash (5.2 Debian:12 [amd64])`.
fn upgrades(text: &str) -> Dict {
    let ret = Dict::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("Conf ")
            && let Some((name, rest)) = rest.split_once(" (")
            && let Some(version) = rest.split(' ').next()
        {
            ret.insert(name, version);
        }
    }
    ret
}

/// Reads `apt-cache show` or `dump`: package → versions, in the order given.
fn available(text: &str) -> Dict {
    let ret = Dict::new();
    let mut current = String::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("Package: ") {
            current = name.to_owned();
        } else if let Some(version) = line.trim().strip_prefix("Version:")
            && let Value::List(list) =
                ret.get_or_insert_with(current.as_str(), || List::new().into())
        {
            list.push(version.trim());
        }
    }
    ret
}

/// Reads `apt-cache show`: package → version → fields.
fn shown(text: &str, filter: &[String]) -> Dict {
    let ret = Dict::new();
    let mut info = Dict::new();
    for line in text.lines().chain([""]) {
        let line = line.trim();
        if line.is_empty() {
            let done = std::mem::take(&mut info);
            if let (Some(name), Some(version)) = (done.remove("Package"), done.remove("Version")) {
                let versions = ret.get_or_insert_with(name.to_str(), Value::dict);
                if let Value::Dict(versions) = versions
                    && let Value::Dict(own) =
                        versions.get_or_insert_with(version.to_str(), Value::dict)
                {
                    own.update(&done);
                }
            }
            continue;
        }
        if let Some((key, value)) = line.split_once(':') {
            let lower = key.trim().to_lowercase();
            if filter.is_empty()
                || lower == "package"
                || lower == "version"
                || filter.contains(&lower)
            {
                info.insert(key.trim(), value.trim());
            }
        }
    }
    ret
}

fn to_be_removed(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut found = false;
    for line in text.lines() {
        if found && line.starts_with(' ') {
            names.extend(line.split_whitespace().map(str::to_owned));
        } else {
            found = line.contains("The following packages will be REMOVED:");
        }
    }
    names.sort();
    names
}

/// What dpkg shall do with packages: (state, package).
pub(super) fn selections(cx: &Cx, pattern: Option<&str>) -> Result<Vec<(String, String)>> {
    let words = ["dpkg", "--get-selections", pattern.unwrap_or("*")];
    let ran = cmd::plain(cx, words, looking())?;
    Ok(read_selections(&ran.stdout))
}

pub(super) fn read_selections(text: &str) -> Vec<(String, String)> {
    let pair = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next()?.to_owned();
        Some((words.next()?.to_owned(), name))
    };
    text.lines().filter_map(pair).collect()
}

/// Sets what dpkg shall do; returns package → `{old, new}`.
pub(super) fn set_selections(cx: &Cx, wanted: &[(String, String)]) -> Result<Dict> {
    let ret = Dict::new();
    let current = selections(cx, None)?;
    for (state, name) in wanted {
        let old = current.iter().find(|(_, own)| own == name).map(|(state, _)| state.clone());
        if old.as_ref() == Some(state) || cx.opt_bool("test") {
            continue;
        }
        let how = Options { stdin: Some(format!("{name} {state}")), ..options(&Dict::new()) };
        let ran = call(cx, ["dpkg", "--set-selections"], how)?;
        if ran.ok() {
            ret.insert(name.as_str(), dict! { "old" => old, "new" => state.as_str() });
        } else {
            tracing::error!("dpkg did not take the selection '{state}' of {name}");
        }
    }
    Ok(ret)
}

/// A package to install, with what stands on the command line for it.
struct Wish {
    name: String,
    word: String,
    version: Option<String>,
}

/// Sorts out what a request names; what cannot be had goes into `errors`.
fn wishes(
    apt: &Apt,
    cx: &Cx,
    request: &Install,
    targets: Targets,
    errors: &mut Vec<String>,
) -> Result<Vec<Wish>> {
    let mut wishes = Vec::new();
    match targets {
        Targets::Repository(named) => {
            let compared = |version: &Option<String>| {
                version.as_ref().is_some_and(|version| version.starts_with(['<', '>']))
            };
            let names: Vec<String> = named
                .iter()
                .filter(|(_, version)| compared(version))
                .map(|(name, _)| name.clone())
                .collect();
            let on_offer = if names.is_empty() {
                Dict::new()
            } else {
                apt.list_repo_pkgs(cx, &names, &request.extra)?
            };
            for (name, version) in named {
                let Some(version) = version else {
                    wishes.push(Wish { word: name.clone(), name, version: None });
                    continue;
                };
                let mut version = version.trim_start_matches('=').to_owned();
                if compared(&Some(version.clone())) {
                    let versions: Vec<String> = on_offer
                        .get(name.as_str())
                        .and_then(|list| list.items_of_sequence())
                        .unwrap_or_default()
                        .iter()
                        .map(Value::to_string)
                        .collect();
                    let provider: &dyn Provider = apt;
                    match provider.match_version(&version, &versions, request.ignore_epoch) {
                        Some(found) => version.clone_from(found),
                        None => {
                            let shown = if versions.is_empty() {
                                "None".to_owned()
                            } else {
                                versions.join(", ")
                            };
                            errors.push(format!(
                                "No version matching '{name}{version}' could be found (available: \
                                 {shown})"
                            ));
                            continue;
                        }
                    }
                }
                let word = format!("{name}={version}");
                wishes.push(Wish { name, word, version: Some(version) });
            }
        }
        Targets::Files(files) => {
            for file in files {
                let word = file.display().to_string();
                let info = lowpkg::dpkg::bin_pkg_info(cx, &word)?;
                wishes.push(Wish { name: info.name, word, version: Some(info.version) });
            }
        }
        Targets::Nothing | Targets::Advisory(_) => {}
    }
    Ok(wishes)
}

/// Decides whether the lists have to be fetched first: not if what is wanted is known already.
fn wants_refresh(apt: &Apt, cx: &Cx, request: &Install, named: &[Target]) -> Result<bool> {
    if !request.refresh {
        return Ok(false);
    }
    let newest = |name: &str| -> Result<String> {
        let how = Latest { show_installed: true, ..Latest::default() };
        let mut found = apt.latest_version(cx, &[name.to_owned()], &how)?;
        Ok(found.pop().map(|(_, version)| version).unwrap_or_default())
    };
    if request.pkgs.truthy() {
        for item in request.pkgs.items_of_sequence().unwrap_or_default() {
            let Some(one) = item.as_dict() else { return Ok(true) };
            for (name, version) in one {
                if newest(&name.to_str())? != version.to_str().as_str() {
                    return Ok(true);
                }
            }
        }
        return Ok(false);
    }
    if let (Some(version), Some((name, _))) = (&request.version, named.first()) {
        return Ok(newest(name)? != *version);
    }
    Ok(true)
}

fn install(apt: &Apt, cx: &Cx, request: &Install) -> Result<Done> {
    if let Some(file) = &request.debconf {
        crate::debconf::load(cx, file, &cx.saltenv())?;
    }
    let targets = pkg_resource::targets(
        cx,
        &Request {
            name: request.name.as_deref(),
            pkgs: Some(&request.pkgs),
            sources: Some(&request.sources),
            normalize: request.normalize && request.split_arch,
            version: request.version.as_deref(),
            ..Request::default()
        },
    )?;
    let (named, from_files) = match &targets {
        Targets::Nothing | Targets::Advisory(_) => return Ok(Done::default()),
        Targets::Repository(named) => (named.clone(), false),
        Targets::Files(_) => (Vec::new(), true),
    };
    let refresh = wants_refresh(apt, cx, request, &named)?;
    let old = apt.list_pkgs(cx, Which::Installed, &request.extra)?;
    let mut errors = Vec::new();
    let (mut plain, mut downgrades, mut again) = (Vec::new(), Vec::new(), Vec::new());
    for wish in wishes(apt, cx, request, targets, &mut errors)? {
        let current = old.get(&wish.name).map(|versions| versions.join(","));
        match (&wish.version, current) {
            (None, Some(_)) if request.reinstall => again.push(wish),
            (None, _) | (Some(_), None) => plain.push(wish),
            (Some(version), Some(current)) => match version::compare_deb(version, &current) {
                Ordering::Equal if request.reinstall => again.push(wish),
                Ordering::Less => downgrades.push(wish),
                _ => plain.push(wish),
            },
        }
    }
    let prefix = install_prefix(request, from_files);
    let mut commands: Vec<Vec<String>> = Vec::new();
    let words = |wishes: &[Wish]| wishes.iter().map(|wish| wish.word.clone()).collect::<Vec<_>>();
    if !plain.is_empty() {
        commands.push([prefix.clone(), words(&plain)].concat());
    }
    if !downgrades.is_empty() {
        let mut prefix = prefix.clone();
        if !from_files && !prefix.contains(&"--force-yes".to_owned()) {
            prefix.insert(prefix.len() - 1, "--force-yes".into());
        }
        commands.push([prefix, words(&downgrades)].concat());
    }
    if request.downloadonly
        && let Some(last) = commands.last_mut()
    {
        last.push("--download-only".into());
    }
    if !again.is_empty() {
        let mut prefix = prefix;
        prefix.extend((!from_files).then(|| "--reinstall".to_owned()));
        commands.push([prefix, words(&again)].concat());
    }
    let mut changes = Dict::new();
    if !commands.is_empty() {
        if refresh {
            apt.refresh_db(cx, &request.extra)?;
        }
        let names: Vec<&String> = plain.iter().chain(&again).map(|wish| &wish.name).collect();
        let held: Vec<String> = selections(cx, None)?
            .into_iter()
            .filter(|(state, name)| state == "hold" && names.contains(&name))
            .map(|(_, name)| name)
            .collect();
        if !held.is_empty() {
            apt.set_hold(cx, &held, false)?;
        }
        for words in commands {
            let ran = call(cx, [scoped(cx), words].concat(), options(&request.extra))?;
            if !ran.ok() && !ran.stderr.is_empty() {
                errors.push(ran.stderr);
            }
        }
        let new = apt.list_pkgs(cx, Which::Installed, &request.extra)?;
        changes = differences(&old, &new);
        for wish in &again {
            let versions =
                |pkgs: &Pkgs| pkgs.get(&wish.name).map(|v| v.join(",")).unwrap_or_default();
            let change = dict! { "old" => versions(&old), "new" => versions(&new) };
            changes.insert(wish.name.as_str(), change);
        }
        if !held.is_empty() {
            apt.set_hold(cx, &held, true)?;
        }
    }
    Ok(Done::with_errors(changes, "Problem encountered installing package(s)", errors))
}

/// What stands before the names of packages to install.
fn install_prefix(request: &Install, from_files: bool) -> Vec<String> {
    let given = request.extra.shallow_copy();
    given.insert("skip_verify", request.skip_verify);
    let repo = request.fromrepo.clone().or_else(|| extra_text(&request.extra, "repo"));
    match repo.filter(|repo| !repo.is_empty() && !from_files) {
        Some(repo) => Verb::Install.line(&given, &["-t", &repo]),
        None => Verb::Install.line(&given, &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies() {
        let text = "hello:\n  Installed: (none)\n  Candidate: 2.10-3\n  Version table:\n     \
                    2.10-3 500\n        500 http://deb.debian.org/debian bookworm/main amd64 \
                    Packages\ngone:\n  Installed: 1\n  Candidate: (none)\n  Version table:\n";
        let found = candidates(text);
        assert_eq!(found.get("hello").unwrap(), "2.10-3");
        assert_eq!(found.get("gone").unwrap(), "");
    }

    #[test]
    fn updates() {
        let text = "Hit:1 http://a bookworm InRelease\nGet:2 http://b sid InRelease [55.4 kB]\n\
                    Err:3 http://c x Release\nReading package lists...\n";
        let (repos, failed) = updated(text);
        assert_eq!(repos.get("http://a bookworm InRelease"), Some(Value::Null));
        assert_eq!(repos.get("http://b sid InRelease"), Some(Value::Bool(true)));
        assert_eq!(failed, ["http://c x Release"]);
    }

    #[test]
    fn simulated_upgrades() {
        let text = "Inst bash [5.1] (5.2 Debian:12 [amd64])\nConf bash (5.2 Debian:12 [amd64])\n";
        assert_eq!(upgrades(text), entries! { "bash" => "5.2" });
    }

    #[test]
    fn removals() {
        let text = "Reading...\nThe following packages will be REMOVED:\n  b a\n  c\n0 upgraded\n";
        assert_eq!(to_be_removed(text), ["a", "b", "c"]);
    }

    #[test]
    fn details() {
        let text = "Package: a\nVersion: 1\nSection: x\n\nPackage: a\nVersion: 2\nSection: y\n";
        let found = shown(text, &["section".into()]);
        let expected = dict! {
            "1" => dict! { "Section" => "x" }, "2" => dict! { "Section" => "y" },
        };
        assert_eq!(found.get("a"), Some(expected));
        assert_eq!(available(text).get("a"), Some(halite_value::list!["1", "2"]));
    }
}
