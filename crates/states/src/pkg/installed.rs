//! `pkg.installed`.

use halite_modules::{
    lowpkg,
    pkg::{self, Done, Install, Pkgs, Provider, Which},
    pkg_resource,
};
use halite_spec::{Applied, Args, Cx, Error, Outcome, Plan, Rest, Result, State};
use halite_value::{Dict, Value, dict};

use super::{
    Wanted, conditions, contains, explained, installable, is_empty_list, joined, normalized,
    outcome_of, shown, shown_all, troubled,
};

/// Make sure that packages are installed, in the version asked for.
#[derive(Args)]
pub(super) struct Installed {
    /// The package, if there is no list of them.
    #[arg(required)]
    name: Option<String>,
    /// The version: exact, with an operator (`>=1.2`), with wildcards, or `latest`.
    #[default(Value::Null)]
    version: Value,
    /// Fetch the lists of packages first; once in a job if not given.
    #[default(Value::Null)]
    refresh: Value,
    /// The repository to take packages from.
    fromrepo: Option<String>,
    /// Do not check signatures.
    #[default(false)]
    skip_verify: bool,
    /// Do not look for similar names of packages that do not exist.
    #[default(false)]
    skip_suggestions: bool,
    /// Several packages, with versions.
    #[default(Value::Null)]
    pkgs: Value,
    /// Several packages, with the place of their files.
    #[default(Value::Null)]
    sources: Value,
    /// A newer version than the one asked for will do.
    #[default(false)]
    allow_updates: bool,
    /// Install again what has files that were changed (rpm only).
    #[default(Value::Bool(false))]
    pkg_verify: Value,
    /// Strip the architecture from names.
    #[default(true)]
    normalize: bool,
    /// Compare versions without epochs.
    ignore_epoch: Option<bool>,
    /// Install again what is there.
    #[default(false)]
    reinstall: bool,
    /// Change packages that are held, too.
    #[default(false)]
    update_holds: bool,
    /// Hold the packages afterwards, or release them.
    #[arg(by_name)]
    hold: Option<bool>,
    /// Options of the package manager.
    rest: Rest,
}

/// What is to be done.
pub(super) struct Todo {
    desired: Wanted,
    targets: Wanted,
    unpurge: Vec<String>,
    again: Wanted,
    altered: Vec<(String, Dict)>,
    warnings: Vec<String>,
    refresh: bool,
}

/// A package asked for, with what is known of it.
struct Asked {
    name: String,
    /// The version, or the place of the file.
    wanted: Option<String>,
    /// The versions that are installed.
    there: Option<Vec<String>>,
    /// What the version must fulfil; an error if that cannot be told.
    condition: std::result::Result<Option<String>, String>,
}

/// What is to be done about one package.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// Install it.
    Missing,
    /// Install it again.
    Again,
    Fits,
    /// It depends on whether files were changed.
    Verify,
    Problem(String),
}

/// What looking told.
pub(super) enum Seen {
    /// Nothing to do, with the comment (but perhaps to hold).
    Settled(String, Vec<String>),
    Wrong(String),
    Todo(Todo),
}

impl Installed {
    fn list(&self) -> Value {
        if self.pkgs.truthy() || self.sources.truthy() {
            return self.pkgs.clone();
        }
        let name = self.name.as_deref().unwrap_or_default();
        if self.version.truthy() {
            Value::list([dict! { name => self.version.to_str() }])
        } else {
            Value::list([name])
        }
    }

    fn uses_sources(&self) -> bool {
        self.sources.truthy()
    }

    fn verify_options(&self) -> Dict {
        let options = Dict::new();
        for item in self.pkg_verify.items_of_sequence().unwrap_or_default() {
            if let Value::Dict(item) = item {
                options.update(&item);
            }
        }
        options
    }

    fn verifies(&self) -> bool {
        matches!(self.pkg_verify, Value::Bool(true) | Value::List(_))
    }

    /// Resolves `latest` in the versions asked for.
    fn resolve_latest(
        &self,
        cx: &Cx,
        provider: &dyn Provider,
        desired: &mut Wanted,
        current: &Pkgs,
        refresh: &mut bool,
    ) -> Result<()> {
        let names: Vec<String> = desired
            .iter()
            .filter(|(_, version)| version.as_deref() == Some("latest"))
            .map(|(name, _)| name.clone())
            .collect();
        if names.is_empty() || self.uses_sources() {
            return Ok(());
        }
        let how = pkg::Latest {
            refresh: *refresh,
            fromrepo: self.fromrepo.clone(),
            extra: self.rest.kwargs.shallow_copy(),
            ..pkg::Latest::default()
        };
        let found = provider.latest_version(cx, &names, &how)?;
        *refresh = false;
        for (name, newest) in found {
            let version = if newest.is_empty() {
                current.get(&name).and_then(|versions| versions.last().cloned())
            } else {
                Some(newest)
            };
            if let Some(entry) = desired.iter_mut().find(|(own, _)| *own == name) {
                entry.1 = version;
            }
        }
        Ok(())
    }

    fn look(&self, cx: &Cx) -> Result<Seen> {
        if is_empty_list(&self.pkgs) {
            return Ok(Seen::Settled("No packages to install provided".into(), Vec::new()));
        }
        if self.pkgs.truthy() && self.sources.truthy() {
            return Ok(Seen::Wrong("Only one of \"pkgs\" and \"sources\" is permitted.".into()));
        }
        let provider = pkg::provider(cx)?;
        if self.verifies() && !provider.has("verify") {
            return Ok(Seen::Wrong("pkg.verify not implemented".into()));
        }
        let mut refresh = pkg::wants_refresh(cx, &self.refresh);
        let current = provider.list_pkgs(cx, Which::Installed, &self.rest.kwargs)?;
        let mut desired = self.desired(cx)?;
        if desired.is_empty() {
            let which = if self.uses_sources() { "sources" } else { "pkgs" };
            let comment = format!("Invalidly formatted '{which}' parameter. See minion log.");
            return Ok(Seen::Wrong(comment));
        }
        let purging = provider.list_pkgs(cx, Which::PurgeDesired, &self.rest.kwargs)?;
        if let Some(problem) = self.missing(cx, provider, &desired, &current)? {
            return Ok(Seen::Wrong(problem));
        }
        self.resolve_latest(cx, provider, &mut desired, &current, &mut refresh)?;
        let names = desired.iter().map(|(name, _)| name);
        let mut todo = Todo {
            unpurge: names.filter(|name| purging.contains_key(*name)).cloned().collect(),
            desired,
            targets: Vec::new(),
            again: Vec::new(),
            altered: Vec::new(),
            warnings: Vec::new(),
            refresh,
        };
        let mut problems = Vec::new();
        let mut has_version = false;
        let fulfils = |there: &[String], condition: &str| {
            let updates = self.allow_updates && !self.uses_sources();
            conditions::fulfils(provider, there, condition, self.ignore_epoch, updates)
        };
        for (name, wanted) in todo.desired.clone() {
            let asked = self.asked(cx, provider, &current, name, wanted)?;
            has_version |= matches!(asked.condition, Ok(Some(_)));
            let verdict = match self.judge(&asked, &fulfils) {
                Verdict::Verify => self.verified(cx, provider, &asked.name, &mut todo.altered)?,
                settled => settled,
            };
            match verdict {
                Verdict::Missing => todo.targets.push((asked.name, asked.wanted)),
                Verdict::Again => todo.again.push((asked.name, asked.wanted)),
                Verdict::Problem(text) => problems.push(text),
                Verdict::Fits | Verdict::Verify => {}
            }
        }
        if !problems.is_empty() {
            return Ok(Seen::Wrong(problems.join(" ")));
        }
        if [todo.targets.len(), todo.again.len(), todo.unpurge.len()] != [0; 3] {
            return Ok(Seen::Todo(todo));
        }
        let versions = has_version && !self.uses_sources();
        let end = if versions { " and are at the desired version" } else { "" };
        let comment = format!("All specified packages are already installed{end}");
        Ok(Seen::Settled(comment, todo.warnings))
    }

    /// The packages asked for, each with its version or the place of its file.
    fn desired(&self, cx: &Cx) -> Result<Wanted> {
        if !self.uses_sources() {
            return normalized(cx, &self.list(), false);
        }
        let normalize = pkg_resource::normalizer(cx, self.normalize);
        let packed = pkg_resource::pack(&self.sources, &*normalize);
        Ok(packed.into_iter().map(|(name, place)| (name, Some(place))).collect())
    }

    /// Finds out what there is to know of one package before it is judged.
    fn asked(
        &self,
        cx: &Cx,
        provider: &dyn Provider,
        current: &Pkgs,
        name: String,
        wanted: Option<String>,
    ) -> Result<Asked> {
        let there = current
            .get(&name)
            .or_else(|| current.get(&provider.normalize_name(cx, &name)))
            .cloned();
        let condition = if there.is_none() || self.reinstall {
            // The version plays no part, so no file has to be fetched for it.
            Ok(None)
        } else if self.uses_sources() {
            match self.version_of_source(cx, wanted.as_deref().unwrap_or_default()) {
                Ok(version) => Ok(Some(version)),
                Err(Error::Failed(problem)) => Err(problem),
                Err(other) => return Err(other),
            }
        } else {
            Ok(wanted.clone().filter(|version| !version.is_empty()))
        };
        Ok(Asked { name, wanted, there, condition })
    }

    /// Decides about one package. Looks at nothing but what it is given.
    fn judge(&self, asked: &Asked, fulfils: &dyn Fn(&[String], &str) -> bool) -> Verdict {
        match (&asked.there, &asked.condition) {
            (None, _) => Verdict::Missing,
            (Some(_), _) if self.reinstall => Verdict::Again,
            (Some(_), Err(problem)) => Verdict::Problem(problem.clone()),
            (Some(_), Ok(None)) if self.verifies() => Verdict::Verify,
            (Some(_), Ok(None)) => Verdict::Fits,
            (Some(there), Ok(Some(condition))) if fulfils(there, condition) => Verdict::Fits,
            (Some(_), Ok(Some(condition)))
                if self.verifies() && conditions::is_exact(condition) =>
            {
                Verdict::Verify
            }
            (Some(_), Ok(Some(_))) => Verdict::Missing,
        }
    }

    /// Settles [`Verdict::Verify`]; the files that were changed go to `altered`.
    fn verified(
        &self,
        cx: &Cx,
        provider: &dyn Provider,
        name: &str,
        altered: &mut Vec<(String, Dict)>,
    ) -> Result<Verdict> {
        match provider.verify(cx, &[name.to_owned()], &self.verify_options()) {
            Ok(files) if files.is_empty() => Ok(Verdict::Fits),
            Ok(files) => {
                altered.push((name.to_owned(), files));
                Ok(Verdict::Again)
            }
            Err(Error::Failed(text) | Error::Invalid(text)) => Ok(Verdict::Problem(text)),
            Err(other) => Err(other),
        }
    }

    /// What to say of packages that do not exist, where the package manager can tell.
    fn missing(
        &self,
        cx: &Cx,
        provider: &dyn Provider,
        desired: &Wanted,
        current: &Pkgs,
    ) -> Result<Option<String>> {
        if self.uses_sources() || self.skip_suggestions {
            return Ok(None);
        }
        let fits = |name: &String, wanted: Option<&str>| {
            current.get(name).is_some_and(|there| {
                wanted.is_none_or(|wanted| {
                    conditions::fulfils(provider, there, wanted, self.ignore_epoch, false)
                })
            })
        };
        let unmet: Vec<String> = desired
            .iter()
            .filter(|(name, wanted)| !fits(name, wanted.as_deref()))
            .map(|(name, _)| name.clone())
            .collect();
        if unmet.is_empty() {
            return Ok(None);
        }
        match provider.check_db(cx, &unmet, &self.rest.kwargs) {
            Ok(Some(checked)) => Ok(unknown_packages(&checked)),
            _ => Ok(None),
        }
    }

    fn version_of_source(&self, cx: &Cx, place: &str) -> Result<String> {
        let saltenv = cx.saltenv();
        let cached = cx
            .files
            .cache(place, &saltenv)
            .map_err(|error| Error::failed(format!("Unable to cache {place}: {error}")))?;
        let Some(cached) = cached else {
            return Err(Error::failed(format!("Unable to cache {place}: file not found")));
        };
        if !cx.host.exists(&cached)? {
            return Err(Error::failed(format!("{place} does not exist on minion")));
        }
        let path = cached.display().to_string();
        let info = lowpkg::bin_pkg_info(cx, path, saltenv)?;
        Ok(info.get("version").unwrap_or_default().to_string())
    }

    fn predict(&self, cx: &Cx, todo: &Todo) -> Result<Outcome> {
        let provider = pkg::provider(cx)?;
        let changes = Dict::new();
        let mut comment: Vec<String> = Vec::new();
        let fresh = || dict! { "new" => "installed", "old" => "" };
        if !todo.targets.is_empty() {
            if self.uses_sources() {
                for (name, _) in &todo.targets {
                    changes.insert(name.as_str(), fresh());
                }
            } else {
                changes.update(&installable(cx, provider, &todo.targets, &|_| String::new())?);
            }
            comment.push(format!(
                "The following packages would be installed/updated: {}",
                joined(&todo.targets)
            ));
        }
        if !todo.unpurge.is_empty() {
            comment.push(format!(
                "The following packages would have their selection status changed from 'purge' \
                 to 'install': {}",
                todo.unpurge.join(", ")
            ));
            for name in &todo.unpurge {
                changes.insert(name.as_str(), fresh());
            }
        }
        let word = |item: &(String, Option<String>)| {
            if self.uses_sources() { item.0.clone() } else { shown(item) }
        };
        if !todo.again.is_empty() && self.reinstall {
            let words: Vec<String> = todo.again.iter().map(word).collect();
            for word in &words {
                changes.insert(word.as_str(), fresh());
            }
            comment
                .push(format!("The following packages would be reinstalled: {}", words.join(", ")));
        } else {
            for item in &todo.again {
                comment.push(format!(
                    "Package '{}' would be reinstalled because the following files have been \
                     altered:",
                    word(item)
                ));
                changes.insert(item.0.as_str(), Value::dict());
                comment.push(altered_text(todo, &item.0));
            }
        }
        Ok(Outcome::new(None, changes, comment.join("\n")))
    }

    fn request(&self, todo: &Todo) -> Install {
        let mut request = Install {
            refresh: todo.refresh,
            fromrepo: self.fromrepo.clone(),
            skip_verify: self.skip_verify,
            reinstall: !todo.again.is_empty(),
            normalize: self.normalize,
            update_holds: self.update_holds,
            ignore_epoch: self.ignore_epoch.unwrap_or(false),
            split_arch: false,
            extra: self.rest.kwargs.shallow_copy(),
            ..Install::default()
        };
        let all = || todo.targets.iter().chain(&todo.again);
        if self.uses_sources() {
            let wanted = |item: &Value| {
                let name = item.as_dict().and_then(|one| one.keys().first().cloned());
                name.is_some_and(|name| all().any(|(own, _)| name.to_str() == *own))
            };
            let sources = self.sources.items_of_sequence().unwrap_or_default();
            request.sources = Value::list(sources.into_iter().filter(wanted));
        } else {
            let one = |(name, version): &(String, Option<String>)| {
                dict! { name.as_str() => version.clone() }
            };
            request.pkgs = Value::list(all().map(one));
        }
        request
    }

    /// Holds or releases what was asked for; returns what each package says.
    fn set_hold(&self, cx: &Cx, names: &[String]) -> Result<Vec<Dict>> {
        let Some(hold) = self.hold else { return Ok(Vec::new()) };
        let ret = pkg::provider(cx)?.set_hold(cx, names, hold)?;
        Ok(ret.values().iter().filter_map(|one| one.as_dict().cloned()).collect())
    }

    fn names(&self, cx: &Cx) -> Result<Vec<String>> {
        if self.uses_sources() {
            let packed = pkg_resource::pack(&self.sources, &str::to_owned);
            return Ok(packed.into_iter().map(|(name, _)| name).collect());
        }
        Ok(normalized(cx, &self.list(), false)?.into_iter().map(|(name, _)| name).collect())
    }

    /// Everything is installed; only holding may be left to do.
    fn hold_only(&self, cx: &Cx, comment: &str) -> Result<Applied> {
        let changes = Dict::new();
        let mut comment = comment.to_owned();
        let mut result = true;
        for one in self.set_hold(cx, &self.names(cx)?)? {
            let text = |key: &str| one.get(key).unwrap_or_default().to_string();
            comment.push_str(&format!(".\n{}", text("comment")));
            if let Some(Value::Dict(own)) = one.get("changes")
                && !own.is_empty()
            {
                changes.insert(text("name"), own);
            }
            result &= one.get("result") != Some(Value::Bool(false));
        }
        Ok(Applied { result: Some(result), ..Applied::changes(changes).comment(comment) })
    }

    /// Finishes what installing began: holds, and the story of it all.
    fn finish(&self, cx: &Cx, todo: &Todo, installed: &Dict) -> Result<Applied> {
        let provider = pkg::provider(cx)?;
        let changes = installed.shallow_copy();
        let mut comment: Vec<String> = Vec::new();
        let names: Vec<String> = todo.desired.iter().map(|(name, _)| name.clone()).collect();
        let holds = match self.set_hold(cx, &names) {
            Ok(holds) => holds,
            Err(error @ (Error::Failed(_) | Error::Invalid(_))) => {
                return Ok(Applied::failed(changes, error.to_string()));
            }
            Err(other) => return Err(other),
        };
        if !todo.unpurge.is_empty() {
            changes.insert("purge_desired", provider.unpurge(cx, &todo.unpurge)?);
        }
        let is_target = |name: &String| contains(&todo.targets, name);
        let is_again = |name: &String| contains(&todo.again, name);
        let (modified, unmodified, failed): (Vec<String>, Vec<String>, Vec<String>) =
            if self.uses_sources() {
                let modified: Vec<String> = todo
                    .targets
                    .iter()
                    .map(|(name, _)| name.clone())
                    .filter(|name| changes.contains(name.as_str()))
                    .collect();
                let failed = todo.targets.iter().map(|(name, _)| name.clone());
                let failed = failed.filter(|name| !modified.contains(name)).collect();
                let others = names.iter().filter(|name| !is_target(name) && !is_again(name));
                (modified, others.cloned().collect(), failed)
            } else {
                let new = provider.list_pkgs(cx, Which::Installed, &self.rest.kwargs)?;
                let (ok, bad): (Vec<String>, Vec<String>) =
                    todo.desired.iter().map(|(name, _)| name.clone()).partition(|name| {
                        let wanted = super::get(&todo.desired, name).cloned().unwrap_or_default();
                        is_there(cx, provider, &new, name, wanted.as_deref(), self.ignore_epoch)
                    });
                let others = ok.iter().filter(|name| !is_target(name) && !is_again(name));
                (
                    ok.iter().filter(|name| is_target(name)).cloned().collect(),
                    others.cloned().collect(),
                    bad.into_iter().filter(|name| is_target(name)).collect(),
                )
            };
        let summary = |names: &[String]| {
            if self.uses_sources() { names.join(", ") } else { shown_all(names, &todo.desired) }
        };
        let many = |count: usize| if count > 1 { ("s", "were") } else { ("", "was") };
        if !modified.is_empty() {
            let text = summary(&modified);
            comment.push(if text.chars().count() < 20 {
                format!("The following packages were installed/updated: {text}")
            } else {
                let (s, were) = many(modified.len());
                format!("{} targeted package{s} {were} installed/updated.", modified.len())
            });
        }
        let text = |one: &Dict, key: &str| one.get(key).unwrap_or_default().to_string();
        let change_of = |one: &Dict| {
            one.get("changes").and_then(|own| own.as_dict().cloned()).filter(|own| !own.is_empty())
        };
        for one in &holds {
            let Some(own) = change_of(one) else { continue };
            comment.push(text(one, "comment"));
            let name = text(one, "name");
            match changes.get(name.as_str()) {
                Some(Value::Dict(change)) => {
                    for key in ["new", "old"] {
                        let before = text(&change, key);
                        let gap = if before.is_empty() { "" } else { "\n" };
                        change.insert(key, format!("{before}{gap}{}", text(&own, key)));
                    }
                }
                _ => {
                    changes.insert(name, dict! { "new" => text(&own, "new") });
                }
            }
        }
        if !unmodified.is_empty() {
            comment.push(if unmodified.len() <= 20 {
                format!("The following packages were already installed: {}", summary(&unmodified))
            } else {
                let (s, were) = many(unmodified.len());
                format!("{} targeted package{s} {were} already installed", unmodified.len())
            });
        }
        let held_fine = |one: &&Dict| one.get("result") != Some(Value::Bool(false));
        for one in holds.iter().filter(held_fine).filter(|one| change_of(one).is_none()) {
            comment.push(text(one, "comment"));
        }
        let mut result = true;
        if !failed.is_empty() {
            comment.insert(
                0,
                format!("The following packages failed to install/update: {}", summary(&failed)),
            );
            result = false;
        }
        for one in holds.iter().filter(|one| !held_fine(one)) {
            comment.push(text(one, "comment"));
            result = false;
        }
        for (name, _) in &todo.again {
            let word = summary(std::slice::from_ref(name));
            let altered = todo.altered.iter().any(|(own, _)| own == name);
            let done = if self.reinstall {
                installed.contains(name.as_str())
            } else {
                provider
                    .verify(cx, std::slice::from_ref(name), &self.verify_options())
                    .is_ok_and(|left| left.is_empty())
            };
            let (said, files) = if done {
                (
                    format!("Package {word} was reinstalled."),
                    " The following files were remediated:",
                )
            } else {
                result = false;
                (
                    format!("Reinstall was not successful for package {word}."),
                    " The following files could not be remediated:",
                )
            };
            if altered {
                comment.push(format!("{said}{files}"));
                comment.push(altered_text(todo, name));
            } else {
                comment.push(said);
            }
        }
        Ok(Applied {
            result: Some(result),
            ..Applied::changes(changes).comment(comment.join("\n"))
        })
    }
}

/// Tells which packages the package manager does not know, and what comes near their names.
fn unknown_packages(checked: &[(String, bool, Vec<String>)]) -> Option<String> {
    let unknown = || checked.iter().filter(|(_, found, _)| !found);
    let mut lost: Vec<&str> = unknown()
        .filter(|(_, _, similar)| similar.is_empty())
        .map(|(name, _, _)| name.as_str())
        .collect();
    lost.sort_unstable();
    let lost = (!lost.is_empty()).then(|| {
        format!(
            "The following package(s) were not found, and no possible matches were found in the \
             package db: {}",
            lost.join(", ")
        )
    });
    let near = unknown().filter(|(_, _, similar)| !similar.is_empty()).map(|(name, _, similar)| {
        format!("Package '{name}' not found (possible matches: {})", similar.join(", "))
    });
    let sentences: Vec<String> = lost.into_iter().chain(near).collect();
    // One sentence stands without a full stop, several have one each.
    match &*sentences {
        [] => None,
        [one] => Some(one.trim_end().to_owned()),
        many => Some(many.join(". ") + "."),
    }
}

fn altered_text(todo: &Todo, name: &str) -> String {
    let found = todo.altered.iter().find(|(own, _)| own == name);
    found
        .map(|(_, altered)| {
            let lines = altered.into_iter().map(|(path, what)| format!("{path}:\n    {what}"));
            lines.collect::<Vec<_>>().join("\n")
        })
        .unwrap_or_default()
}

/// Tells whether a package is installed as asked for.
pub(super) fn is_there(
    cx: &Cx,
    provider: &dyn Provider,
    pkgs: &Pkgs,
    name: &str,
    wanted: Option<&str>,
    ignore_epoch: Option<bool>,
) -> bool {
    let plain = name.split('=').next().unwrap_or(name);
    let there = pkgs.get(plain).or_else(|| pkgs.get(&provider.normalize_name(cx, plain)));
    let Some(there) = there.filter(|there| !there.is_empty()) else { return false };
    match wanted {
        None | Some("" | "latest") => true,
        Some(wanted) => {
            let starts = wanted
                .strip_suffix('*')
                .is_some_and(|start| there.first().is_some_and(|own| own.starts_with(start)));
            starts || conditions::fulfils(provider, there, wanted, ignore_epoch, false)
        }
    }
}

impl State for Installed {
    type Seen = Seen;
    const WATCHES: bool = true;

    fn observe(&self, cx: &Cx) -> Result<Seen> {
        self.look(cx)
    }

    fn plan(&self, seen: &Seen) -> Result<Plan> {
        match seen {
            Seen::Wrong(comment) => Err(Error::failed(comment)),
            Seen::Settled(comment, warnings) => {
                let plan = match self.hold {
                    Some(_) => Plan::unknown().pending(comment).done(comment),
                    None => Plan::nothing(comment),
                };
                Ok(Plan { warnings: warnings.clone(), ..plan })
            }
            Seen::Todo(todo) => Ok(Plan { warnings: todo.warnings.clone(), ..Plan::unknown() }),
        }
    }

    fn apply(&self, cx: &Cx, seen: Seen) -> Result<Applied> {
        let todo = match seen {
            Seen::Wrong(comment) => return Err(Error::failed(comment)),
            Seen::Settled(comment, _) => return self.hold_only(cx, &comment),
            Seen::Todo(todo) => todo,
        };
        let mut changes = Dict::new();
        if !todo.targets.is_empty() || !todo.again.is_empty() {
            let provider = pkg::provider(cx)?;
            let done: Done = provider
                .install(cx, &self.request(&todo))
                .map_err(|error| explained(error, "installing package(s)"))?;
            if let Some(trouble) = &done.trouble {
                return Ok(troubled(done.changes, trouble));
            }
            changes = done.changes;
        }
        self.finish(cx, &todo, &changes)
    }

    fn rehearse(&self, cx: &Cx) -> Result<Option<Outcome>> {
        let looking = cx.looking_only();
        let seen = self.look(&looking)?;
        match &seen {
            Seen::Wrong(_) => Ok(None),
            Seen::Settled(_, _) if self.hold.is_none() => Ok(None),
            Seen::Settled(comment, _) => {
                let opts = cx.opts.shallow_copy();
                opts.insert("test", true);
                let applied = self.hold_only(&Cx { opts, ..looking }, comment)?;
                let mut outcome = outcome_of(applied);
                let hold = self.hold == Some(true);
                let pending = if hold { "is set to be held" } else { "is set not to be held" };
                if outcome.comment.contains(pending)
                    || outcome.comment.contains("is set to be unheld")
                {
                    outcome.result = None;
                }
                Ok(Some(outcome))
            }
            Seen::Todo(todo) => {
                let mut outcome = self.predict(&looking, todo)?;
                outcome.warnings.extend(todo.warnings.iter().cloned());
                Ok(Some(outcome))
            }
        }
    }

    fn watch(&self, cx: &Cx, test: bool) -> Result<Outcome> {
        halite_spec::run(self, cx, test)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown(checked: &[(&str, bool, &[&str])]) -> Option<String> {
        let owned = |(name, found, similar): &(&str, bool, &[&str])| {
            ((*name).to_owned(), *found, similar.iter().map(|own| (*own).to_owned()).collect())
        };
        unknown_packages(&checked.iter().map(owned).collect::<Vec<_>>())
    }

    #[test]
    fn several_sentences_have_a_full_stop_each() {
        assert_eq!(unknown(&[("a", true, &[])]), None);
        let one = "Package 'b' not found (possible matches: bb, bc)";
        assert_eq!(unknown(&[("b", false, &["bb", "bc"])]).unwrap(), one);
        let lost = "The following package(s) were not found, and no possible matches were found \
                    in the package db: x, y";
        let all = unknown(&[("y", false, &[]), ("b", false, &["bb", "bc"]), ("x", false, &[])]);
        assert_eq!(all.unwrap(), format!("{lost}. {one}."));
    }
}
