//! SUSE: zypper, above rpm.

use std::{cmp::Ordering, path::Path, time::Duration};

use halite_spec::{Cx, Error, Result};
use halite_value::{Dict, List, Value, dict, entries};

use super::{
    Checked, Done, Install, Latest, Lock, Pkgs, Provider, Trouble, Uninstall, Upgrade, Which,
    differences, scope, version, yum, yum_repos,
};
use crate::{
    cmd::{self, Options, Ran},
    lowpkg::rpm,
    pkg_resource::{self, Request, Targets},
};

/// zypper.
#[derive(Debug)]
pub(super) struct Zypper;

const REPOS: &str = "/etc/zypp/repos.d";
const LOCKS: &str = "/etc/zypp/locks";

/// Exit codes that are no failure: patches to be had, reboot wanted, another zypper wanted …
const FINE: [i64; 9] = [0, 6, 7, 100, 101, 102, 103, 106, 107];

/// Runs zypper; waits while another one holds the lock.
fn call<T: Into<String>>(
    cx: &Cx,
    words: impl IntoIterator<Item = T>,
    refreshing: bool,
    options: Options,
) -> Result<Ran> {
    let words: Vec<String> = words.into_iter().map(Into::into).collect();
    let mut all = if options.query { Vec::new() } else { scope(cx, None) };
    all.extend(["zypper".to_owned(), "--non-interactive".into()]);
    if !refreshing && !words.iter().any(|word| word == "--no-refresh") {
        all.push("--no-refresh".into());
    }
    all.extend(words);
    let env = if options.query && !refreshing {
        dict! { "ZYPP_READONLY_HACK" => "1" }
    } else {
        Value::Null
    };
    let how = Options { output_loglevel: Some("trace".into()), env, ..options };
    let mut ran = cmd::plain(cx, all.clone(), how.clone())?;
    while ran.retcode == Some(7) {
        tracing::warn!("Waiting for another zypper to end");
        cx.sleep(Duration::from_secs(5))?;
        ran = cmd::plain(cx, all.clone(), how.clone())?;
    }
    if !FINE.contains(&ran.retcode.unwrap_or_default()) {
        let text = format!("{}{}", ran.stderr.trim(), ran.stdout.trim());
        let text = if text.is_empty() { "Check Zypper's logs.".to_owned() } else { text };
        return Err(Error::failed(format!("Zypper command failure: {text}")));
    }
    Ok(ran)
}

fn looking() -> Options {
    Options { query: true, ignore_retcode: true, ..Options::default() }
}

/// Reads `zypper info`: package → fields in lower case.
fn informed(text: &str) -> Dict {
    let ret = Dict::new();
    for part in text.split("Information for package") {
        let info = Dict::new();
        for line in part.lines().filter(|line| !line.starts_with("-----")) {
            if let Some((key, value)) = line.split_once(':')
                && !value.trim().is_empty()
            {
                info.insert(key.trim().to_lowercase(), value.trim());
            }
        }
        if let Some(name) = info.remove("name") {
            ret.insert(name.to_str(), info);
        }
    }
    ret
}

/// Reads the elements `solvable` of `zypper --xmlout search`: package → its attributes.
fn found(text: &str) -> Dict {
    let ret = Dict::new();
    for element in text.split("<solvable").skip(1) {
        let fields = Dict::new();
        let mut rest = element;
        while let Some((name, after)) = rest.split_once("=\"") {
            if name.contains('>') {
                break;
            }
            let Some((value, after)) = after.split_once('"') else { break };
            fields.insert(name.trim(), unescaped(value));
            rest = after;
        }
        if let Some(name) = fields.get("name") {
            ret.insert(name.to_str(), fields);
        }
    }
    ret
}

/// Puts characters in place of XML's five entities.
fn unescaped(text: &str) -> String {
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")]
        .iter()
        .fold(text.to_owned(), |text, (entity, character)| text.replace(entity, character))
}

/// The options of `zypper search` by their names here; naming one is enough, as in Salt.
const SEARCH: [(&str, &str); 12] = [
    ("provides", "--provides"),
    ("recommends", "--recommends"),
    ("requires", "--requires"),
    ("suggests", "--suggests"),
    ("conflicts", "--conflicts"),
    ("obsoletes", "--obsoletes"),
    ("file_list", "--file-list"),
    ("search_descriptions", "--search-descriptions"),
    ("case_sensitive", "--case-sensitive"),
    ("installed_only", "--installed-only"),
    ("not_installed_only", "-u"),
    ("details", "--details"),
];

impl Provider for Zypper {
    fn info_available(&self, cx: &Cx, names: &[String], refresh: bool) -> Result<Dict> {
        if refresh {
            self.refresh_db(cx, &Dict::new())?;
        }
        let all = Dict::new();
        for batch in names.chunks(200) {
            let words = ["info", "-t", "package"].map(str::to_owned);
            let ran = call(cx, words.into_iter().chain(batch.iter().cloned()), false, looking())?;
            all.update(&informed(&ran.stdout));
        }
        Ok(all)
    }

    fn search(&self, cx: &Cx, criteria: &str, refresh: bool, how: &Dict) -> Result<Dict> {
        if refresh {
            self.refresh_db(cx, &Dict::new())?;
        }
        let mut words = vec!["--xmlout", "search"];
        match how.get("match").as_ref().and_then(Value::as_str) {
            Some("exact") => words.push("--match-exact"),
            Some("words") => words.push("--match-words"),
            Some("substrings") => words.push("--match-substrings"),
            _ => {}
        }
        words.extend(SEARCH.iter().filter(|(name, _)| how.contains(*name)).map(|(_, word)| word));
        words.push(criteria);
        // 104: nothing was found, which is told below.
        let how = Options { success_retcodes: halite_value::list![104], ..looking() };
        let packages = found(&call(cx, words, false, how)?.stdout);
        if packages.is_empty() {
            return Err(Error::failed(format!("No packages found matching '{criteria}'")));
        }
        Ok(packages)
    }

    fn has(&self, function: &str) -> bool {
        !matches!(function, "get_selections" | "show" | "autoremove" | "group_diff")
    }

    fn list_pkgs(&self, cx: &Cx, which: Which, extra: &Dict) -> Result<Pkgs> {
        yum::installed(cx, which, extra)
    }

    fn latest_version(
        &self,
        cx: &Cx,
        names: &[String],
        how: &Latest,
    ) -> Result<Vec<(String, String)>> {
        let known = self.info_available(cx, names, how.refresh)?;
        let newest = |name: &String| -> String {
            let info = known.get(name.as_str()).unwrap_or_default();
            let status = info.get("status").unwrap_or_default().to_str().to_lowercase();
            let newer = status.contains("not installed") || status.contains("out-of-date");
            let version = info.get("version").unwrap_or_default();
            if newer && !version.is_null() { version.to_string() } else { String::new() }
        };
        Ok(names.iter().map(|name| (name.clone(), newest(name))).collect())
    }

    fn refresh_db(&self, cx: &Cx, extra: &Dict) -> Result<Value> {
        super::refreshed(cx);
        let force = extra
            .get("force")
            .filter(|force| !force.is_null())
            .or_else(|| cx.pillar.get("zypper").and_then(|zypper| zypper.get("refreshdb_force")));
        let mut words = Vec::new();
        if extra.get("gpgautoimport").is_some_and(|flag| flag.truthy()) {
            words.push("--gpg-auto-import-keys".to_owned());
        }
        words.push("refresh".into());
        words.extend(force.is_none_or(|force| force.truthy()).then(|| "--force".to_owned()));
        if let Some(repos) = extra.get("repos").filter(Value::truthy) {
            words.extend(cmd::split_input(&repos));
        }
        let how = Options { success_retcodes: halite_value::list![0, 6], ..looking() };
        let ran = call(cx, words, true, how)?;
        let ret = Dict::new();
        for line in ran.stdout.lines().map(str::trim) {
            let Some(name) = line.split('\'').nth(1) else { continue };
            if line.starts_with("Repository") && line.contains("is up to date") {
                ret.insert(name.trim(), false);
            } else if line.starts_with("Building") && line.contains("done") {
                ret.insert(name.trim(), true);
            }
        }
        Ok(ret.into())
    }

    fn install(&self, cx: &Cx, request: &Install) -> Result<Done> {
        if request.refresh {
            self.refresh_db(cx, &request.extra)?;
        }
        let advisory = request.extra.get("advisory_ids").map(|ids| cmd::split_input(&ids));
        let targets = pkg_resource::targets(
            cx,
            &Request {
                name: request.name.as_deref(),
                pkgs: Some(&request.pkgs),
                sources: Some(&request.sources),
                normalize: request.normalize,
                version: request.version.as_deref(),
                advisory_ids: advisory,
                ..Request::default()
            },
        )?;
        let words: Vec<String> = match targets {
            Targets::Nothing => return Ok(Done::default()),
            Targets::Advisory(ids) => {
                let known = self.list_patches(cx, false, false)?;
                if let Some(id) = ids.iter().find(|id| !known.contains(id.as_str())) {
                    return Err(Error::failed(format!("Advisory id \"{id}\" not found")));
                }
                ids.iter().map(|id| format!("patch:{id}")).collect()
            }
            Targets::Files(files) => files.iter().map(|file| file.display().to_string()).collect(),
            Targets::Repository(named) => {
                let word = |(name, wanted): (String, Option<String>)| match wanted {
                    None => name,
                    Some(wanted) => {
                        let (operator, version) = version::split_comparison(&wanted);
                        let operator = if operator.is_empty() { "=" } else { operator };
                        format!("{name}{operator}{version}")
                    }
                };
                named.into_iter().map(word).collect()
            }
        };
        let none = Dict::new();
        let old = self.list_pkgs(cx, Which::Installed, &none)?;
        let mut prefix: Vec<String> = Vec::new();
        prefix.extend(request.skip_verify.then(|| "--no-gpg-checks".to_owned()));
        prefix.extend((!request.refresh).then(|| "--no-refresh".to_owned()));
        prefix.extend(["install".to_owned(), "--auto-agree-with-licenses".into()]);
        let by = if request.flag("resolve_capabilities") { "--capability" } else { "--name" };
        prefix.push(by.into());
        prefix.extend(request.downloadonly.then(|| "--download-only".to_owned()));
        if let Some(repo) = request.fromrepo.as_deref().filter(|repo| !repo.is_empty()) {
            prefix.extend(["--force", "--force-resolution", "--from", repo].map(str::to_owned));
        }
        prefix.extend(request.flag("no_recommends").then(|| "--no-recommends".to_owned()));
        let mut downgrades: Vec<String> = Vec::new();
        for batch in words.chunks(500) {
            let all = prefix.iter().cloned().chain(batch.iter().cloned());
            let ran = call(cx, all, request.refresh, Options::default())?;
            downgrades.extend(
                ran.stdout
                    .lines()
                    .filter(|line| {
                        line.starts_with("The selected package '")
                            && line.contains("has lower version")
                    })
                    .filter_map(|line| line.split('\'').nth(1).map(str::to_owned)),
            );
        }
        if !downgrades.is_empty() {
            let force = ["--force".to_owned()];
            let all = prefix.into_iter().chain(force).chain(downgrades);
            call(cx, all, request.refresh, Options::default())?;
        }
        let changes = differences(&old, &self.list_pkgs(cx, Which::Installed, &none)?);
        Ok(Done::changes(changes))
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
        let none = Dict::new();
        let old = self.list_pkgs(cx, Which::Installed, &none)?;
        let mut targets = Vec::new();
        for (name, wanted) in &named {
            match wanted {
                Some(wanted) if old.get(name).is_some_and(|own| own.contains(wanted)) => {
                    targets.push(format!("{name}-{wanted}"));
                }
                Some(_) => {}
                None => targets.extend(super::matching(&old, &[(name.clone(), None)])),
            }
        }
        if targets.is_empty() {
            return Ok(Done::default());
        }
        let mut errors = Vec::new();
        for batch in targets.chunks(500) {
            let mut words = vec!["remove".to_owned()];
            words.extend(request.purge.then(|| "-u".to_owned()));
            words.extend(batch.iter().cloned());
            if let Err(error) = call(cx, words, false, Options::default()) {
                errors.push(error.to_string());
            }
        }
        let changes = differences(&old, &self.list_pkgs(cx, Which::Installed, &none)?);
        Ok(Done::with_errors(changes, "Problem encountered removing package(s)", errors))
    }

    fn upgrade(&self, cx: &Cx, request: &Upgrade) -> Result<Done> {
        let flag = |name: &str| request.extra.get(name).is_some_and(|flag| flag.truthy());
        if request.refresh {
            self.refresh_db(cx, &request.extra)?;
        }
        let none = Dict::new();
        let old = self.list_pkgs(cx, Which::Installed, &none)?;
        let mut words: Vec<String> = Vec::new();
        words.extend(flag("skip_verify").then(|| "--no-gpg-checks".to_owned()));
        words.push(if request.dist_upgrade { "dist-upgrade" } else { "update" }.into());
        words.push("--auto-agree-with-licenses".into());
        words.extend(flag("dryrun").then(|| "--dry-run".to_owned()));
        if let Some(repo) = request.extra.get("fromrepo").filter(Value::truthy) {
            for repo in cmd::split_input(&repo) {
                let option = if request.dist_upgrade { "--from" } else { "--repo" };
                words.extend([option.to_owned(), repo]);
            }
        }
        if request.dist_upgrade && flag("novendorchange") {
            words.push("--no-allow-vendor-change".into());
        }
        words.extend(flag("no_recommends").then(|| "--no-recommends".to_owned()));
        if request.pkgs.truthy() && !request.dist_upgrade {
            words.extend(cmd::split_input(&request.pkgs));
        }
        let ran = call(cx, words, true, Options::default());
        let changes = differences(&old, &self.list_pkgs(cx, Which::Installed, &none)?);
        let trouble = ran.err().map(|error| Trouble {
            message: "Problem encountered upgrading packages".into(),
            info: entries! { "result" => error.to_string() },
        });
        Ok(Done { changes, trouble })
    }

    fn list_upgrades(&self, cx: &Cx, request: &Upgrade) -> Result<Dict> {
        if request.refresh {
            self.refresh_db(cx, &request.extra)?;
        }
        let mut words = vec!["list-updates".to_owned()];
        if let Some(repo) = request.extra.get("fromrepo").filter(Value::truthy) {
            words.extend(["--repo".to_owned(), repo.to_string()]);
        }
        let ran = call(cx, words, false, looking())?;
        let ret = Dict::new();
        // S | Repository | Name | Current Version | Available Version | Arch
        for line in ran.stdout.lines() {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            if let [state, _, name, _, version, _] = cells.as_slice()
                && state.starts_with('v')
            {
                ret.insert(*name, *version);
            }
        }
        Ok(ret)
    }

    fn compare(&self, one: &str, other: &str) -> Ordering {
        version::compare_rpm(one, other)
    }

    fn normalize_name(&self, cx: &Cx, name: &str) -> String {
        yum::normalized(cx, name)
    }

    fn parse_arch(&self, name: &str) -> (String, Option<String>) {
        yum::split_arch(name)
    }

    fn set_hold(&self, cx: &Cx, names: &[String], hold: bool) -> Result<Dict> {
        let locks = self.locks(cx)?.unwrap_or_default();
        let ret = Dict::new();
        let mut wanted = Vec::new();
        for name in names {
            let held = locks.iter().any(|lock| lock.name == *name);
            let one = entries! {
                "name" => name.as_str(), "changes" => Value::dict(), "result" => true, "comment" => "",
            };
            let comment = if held == hold {
                if hold { "is already set to be held." } else { "unable to be unheld." }
            } else if cx.opt_bool("test") {
                one.insert("result", Value::Null);
                if hold { "is set to be held." } else { "is set to be unheld." }
            } else {
                wanted.push(name.clone());
                let (new, old) = if hold { ("hold", "") } else { ("", "hold") };
                one.insert("changes", dict! { "new" => new, "old" => old });
                if hold { "is now being held." } else { "is no longer held." }
            };
            if held == hold && !hold {
                one.insert("result", false);
            }
            one.insert("comment", format!("Package {name} {comment}"));
            ret.insert(name.as_str(), one);
        }
        if !wanted.is_empty() {
            let mut words = vec![if hold { "al" } else { "rl" }.to_owned()];
            words.extend(wanted);
            call(cx, words, false, Options::default())?;
        }
        Ok(ret)
    }

    fn locks(&self, cx: &Cx) -> Result<Option<Vec<Lock>>> {
        let text = cx.host.read_text_if_there(Path::new(LOCKS))?.unwrap_or_default();
        Ok(Some(read_locks(&text)))
    }

    fn locks_versions(&self) -> bool {
        true
    }

    fn list_repo_pkgs(&self, cx: &Cx, names: &[String], _: &Dict) -> Result<Dict> {
        let ret = Dict::new();
        let targets: Vec<Option<&String>> =
            if names.is_empty() { vec![None] } else { names.iter().map(Some).collect() };
        for name in targets {
            let mut words: Vec<String> =
                ["search", "-s", "-t", "package"].map(str::to_owned).into();
            if let Some(name) = name {
                words.extend(["--match-exact".to_owned(), name.clone()]);
            }
            let how = Options { success_retcodes: halite_value::list![104], ..looking() };
            let ran = call(cx, words, false, how)?;
            // S | Name | Type | Version | Arch | Repository
            for line in ran.stdout.lines() {
                let cells: Vec<&str> = line.split('|').map(str::trim).collect();
                if let [_, name, "package", version, _, _] = cells.as_slice()
                    && let Value::List(list) = ret.get_or_insert_with(*name, || List::new().into())
                    && !list.contains(&(*version).into())
                {
                    list.push(*version);
                }
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
        super::downloaded(cx, "/var/cache/zypp/packages", ".rpm")
    }

    fn list_repos(&self, cx: &Cx, _: &Dict) -> Result<Dict> {
        let repos = yum_repos::list(cx, &[REPOS.to_owned()])?;
        for (alias, repo) in &repos {
            if let Value::Dict(repo) = repo {
                repo.remove("file");
                repo.insert("alias", alias);
                for (key, value) in &repo {
                    match value.as_str() {
                        Some("0") => repo.insert(key, false),
                        Some("1") => repo.insert(key, true),
                        Some("NONE") => repo.insert(key, Value::Null),
                        _ => None,
                    };
                }
            }
        }
        Ok(repos)
    }

    fn get_repo(&self, cx: &Cx, repo: &str, extra: &Dict) -> Result<Dict> {
        let found = self.list_repos(cx, extra)?.get(repo);
        Ok(found.and_then(|repo| repo.as_dict().cloned()).unwrap_or_default())
    }

    fn mod_repo(&self, cx: &Cx, repo: &str, options: &Dict) -> Result<Dict> {
        let none = Dict::new();
        let text =
            |name: &str| options.get(name).filter(Value::truthy).map(|value| value.to_string());
        let current = self.get_repo(cx, repo, &none)?;
        let mut added = current.is_empty();
        if added {
            let url = text("url").or_else(|| text("mirrorlist")).or_else(|| text("baseurl"));
            let url = url.ok_or_else(|| {
                Error::failed(format!(
                    "Repository '{repo}' not found, and neither 'baseurl' nor 'mirrorlist' was \
                     specified"
                ))
            })?;
            if !url.contains(':') {
                return Err(Error::failed(format!(
                    "Repository '{repo}' not found and URL for baseurl/mirrorlist is malformed"
                )));
            }
            call(cx, ["ar", &url, repo], false, Options::default())?;
        } else if let Some(url) = text("baseurl")
            && current.get("baseurl") != Some(url.as_str().into())
        {
            self.del_repo(cx, repo, &none)?;
            call(cx, ["ar", &url, repo], false, Options::default())?;
            added = true;
        }
        let mut words = Vec::new();
        for (name, on, off) in [
            ("enabled", "--enable", "--disable"),
            ("refresh", "--refresh", "--no-refresh"),
            ("cache", "--keep-packages", "--no-keep-packages"),
            ("gpgcheck", "--gpgcheck", "--no-gpgcheck"),
        ] {
            if let Some(flag) = options.get(name) {
                words.push(if super::is_true(&flag) { on } else { off }.to_owned());
            }
        }
        if let Some(priority) = text("priority") {
            words.push(format!("--priority={priority}"));
        }
        if let Some(name) = text("name").or_else(|| text("humanname")) {
            words.extend(["--name".to_owned(), name]);
        }
        let changed = !words.is_empty();
        if changed {
            let all = ["mr".to_owned()].into_iter().chain(words).chain([repo.to_owned()]);
            call(cx, all, true, Options::default())?;
        }
        if options.get("gpgautoimport") == Some(Value::Bool(true)) {
            let extra = entries! { "repos" => repo, "gpgautoimport" => true };
            self.refresh_db(cx, &extra)?;
        }
        let found = self.get_repo(cx, repo, &none)?;
        if !added && !changed {
            found.insert("comment", "Specified arguments did not result in modification of repo");
        }
        Ok(found)
    }

    fn repo_change(&self, cx: &Cx, repo: &str, options: &Dict) -> Result<(Dict, Dict)> {
        let after = Dict::new();
        for (key, value) in options {
            let name = match key.to_str().as_str() {
                "refresh" => "autorefresh",
                "cache" => "keeppackages",
                "humanname" => "name",
                "baseurl" | "mirrorlist" | "enabled" | "gpgcheck" | "priority" | "name" => {
                    after.insert(key, value);
                    continue;
                }
                _ => continue,
            };
            after.insert(name, value);
        }
        for name in ["enabled", "autorefresh", "keeppackages", "gpgcheck"] {
            if let Some(flag) = after.get(name) {
                after.insert(name, super::is_true(&flag));
            }
        }
        if let Some(priority) = after.get("priority") {
            after.insert("priority", priority.to_str());
        }
        let before = self.get_repo(cx, repo, &Dict::new())?;
        let before = if before.is_empty() { before } else { yum_repos::only(&before, &after) };
        Ok((before, after))
    }

    fn del_repo(&self, cx: &Cx, repo: &str, extra: &Dict) -> Result<String> {
        if self.get_repo(cx, repo, extra)?.is_empty() {
            return Err(Error::failed(format!("Repository '{repo}' not found.")));
        }
        call(cx, ["rr", "--loose-auth", "--loose-query", repo], false, Options::default())?;
        Ok(format!("Repository '{repo}' has been removed."))
    }

    fn info_installed(&self, cx: &Cx, names: &[String], extra: &Dict) -> Result<Value> {
        yum::info_installed(cx, names, extra)
    }

    fn list_patches(&self, cx: &Cx, installed_only: bool, refresh: bool) -> Result<Dict> {
        if refresh {
            self.refresh_db(cx, &Dict::new())?;
        }
        let words = if installed_only {
            vec!["search", "--installed-only", "-t", "patch"]
        } else {
            vec!["search", "-t", "patch"]
        };
        let ran = call(cx, words, false, looking())?;
        let ret = Dict::new();
        // S | Name | Summary | Type
        for line in ran.stdout.lines() {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            if let [state, name, summary, "patch"] = cells.as_slice() {
                let installed = state.starts_with('i');
                ret.insert(*name, dict! { "installed" => installed, "summary" => *summary });
            }
        }
        Ok(ret)
    }

    fn verify(&self, cx: &Cx, names: &[String], extra: &Dict) -> Result<Dict> {
        rpm::verify(cx, names, extra)
    }
}

/// Reads `/etc/zypp/locks`: blocks of `key: value`.
fn read_locks(text: &str) -> Vec<Lock> {
    let mut locks = Vec::new();
    let mut lock = Lock::default();
    for line in text.lines().chain([""]) {
        let line = line.trim();
        if line.is_empty() {
            let done = std::mem::take(&mut lock);
            if !done.name.is_empty() {
                locks.push(done);
            }
        } else if let Some((key, value)) = line.split_once(':').filter(|_| !line.starts_with('#')) {
            let value = value.trim().to_owned();
            match key.trim() {
                "solvable_name" => lock.name = value,
                "type" => lock.kind = Some(value),
                "version" => lock.version = Some(value.trim_start_matches(['=', ' ']).to_owned()),
                _ => {}
            }
        }
    }
    locks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks() {
        let text = "\ntype: package\nmatch_type: glob\ncase_sensitive: on\nsolvable_name: vim\n\n\
                    # c\ntype: package\nsolvable_name: curl\nversion: = 1.2-3\n";
        let found = read_locks(text);
        assert_eq!(found.len(), 2);
        assert_eq!(found.first().unwrap().name, "vim");
        assert_eq!(found.get(1).unwrap().version.as_deref(), Some("1.2-3"));
    }

    #[test]
    fn packages_that_were_found() {
        let text = "<?xml version='1.0'?>\n<stream>\n<search-result version=\"0.0\">\n<solvable-list>\n\
                    <solvable status=\"installed\" name=\"vim\" summary=\"Vi &quot;IMproved&quot; &amp;c\" kind=\"package\"/>\n\
                    <solvable status=\"not-installed\" name=\"vim-data\" kind=\"package\"></solvable>\n\
                    </solvable-list>\n</search-result>\n</stream>\n";
        let found = found(text);
        assert_eq!(found.len(), 2);
        let vim = entries! {
            "status" => "installed", "name" => "vim", "summary" => "Vi \"IMproved\" &c",
            "kind" => "package",
        };
        assert_eq!(found.get("vim"), Some(vim.into()));
        assert_eq!(found.get("vim-data").unwrap().get_str("kind").unwrap(), "package");
    }

    #[test]
    fn information() {
        let text = "Information for package vim:\n------------------------\nRepository     : Main\n\
                    Name           : vim\nVersion        : 9.1-1\nStatus         : out-of-date (version 9.0-1 installed)\n";
        let found = informed(text);
        let vim = found.get("vim").unwrap();
        assert_eq!(vim.get_str("version").unwrap(), "9.1-1");
        assert!(vim.get_str("status").unwrap().starts_with("out-of-date"));
    }
}
