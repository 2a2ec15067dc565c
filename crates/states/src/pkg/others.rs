//! `pkg.downloaded`, `pkg.uptodate`, `pkg.group_installed`, and the patches.

use halite_modules::pkg::{self, Install, Pkgs, Upgrade, Which};
use halite_spec::{Applied, Args, Cx, Error, Plan, Rest, Result, State};
use halite_value::{Dict, Value, dict};

use super::{
    Wanted, conditions, explained, installed, is_empty_list, joined, normalized, shown_all,
    troubled,
};

/// Make sure that the files of packages are in the cache, without installing them.
#[derive(Args)]
pub(super) struct Downloaded {
    /// The package, if there is no list of them.
    #[arg(required)]
    name: Option<String>,
    /// The version.
    #[default(Value::Null)]
    version: Value,
    /// Several packages, with versions.
    #[default(Value::Null)]
    pkgs: Value,
    /// The repository to take packages from.
    fromrepo: Option<String>,
    /// Compare versions without epochs.
    ignore_epoch: Option<bool>,
    /// Options of the package manager.
    rest: Rest,
}

impl Downloaded {
    fn list(&self) -> Value {
        let name = self.name.as_deref().unwrap_or_default();
        if self.pkgs.truthy() {
            self.pkgs.clone()
        } else if self.version.truthy() {
            Value::list([dict! { name => self.version.to_str() }])
        } else {
            Value::list([name])
        }
    }
}

fn versions_of(downloaded: &Dict, name: &str) -> Vec<String> {
    let found = downloaded.get(name).unwrap_or_default();
    found.as_dict().map(Dict::keys).unwrap_or_default().iter().map(ToString::to_string).collect()
}

impl State for Downloaded {
    /// What is to be fetched, or why nothing is.
    type Seen = Result<Wanted, String>;

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let provider = pkg::provider(cx)?;
        if !provider.has("list_downloaded") {
            let text = "The pkg.downloaded state is not available on this platform";
            return Err(Error::failed(text));
        }
        if is_empty_list(&self.pkgs) {
            return Ok(Err("No packages to download provided".into()));
        }
        let wanted = normalized(cx, &self.list(), true)?;
        if wanted.is_empty() {
            return Err(Error::failed("Invalidly formatted pkgs parameter. See minion log."));
        }
        let there = provider.list_downloaded(cx, &self.rest.kwargs)?;
        let mut has_version = false;
        let mut targets = Vec::new();
        for (name, version) in wanted {
            let own = versions_of(&there, &name);
            let fits = match &version {
                _ if own.is_empty() => false,
                None => true,
                Some(version) => {
                    has_version = true;
                    conditions::fulfils(provider, &own, version, self.ignore_epoch, false)
                }
            };
            if !fits {
                targets.push((name, version));
            }
        }
        if targets.is_empty() {
            let matching = if has_version { " (matching specified versions)" } else { "" };
            return Ok(Err(format!("All specified packages{matching} are already downloaded")));
        }
        Ok(Ok(targets))
    }

    fn plan(&self, seen: &Self::Seen) -> Result<Plan> {
        Ok(match seen {
            Err(comment) => Plan::nothing(comment),
            Ok(targets) => Plan::unknown().pending(format!(
                "The following packages would be downloaded: {}",
                joined(targets)
            )),
        })
    }

    fn apply(&self, cx: &Cx, seen: Self::Seen) -> Result<Applied> {
        let Ok(targets) = seen else { return Ok(Applied::as_planned()) };
        let provider = pkg::provider(cx)?;
        let extra = self.rest.kwargs.shallow_copy();
        let refresh = extra.remove("refresh").is_some_and(|flag| pkg::is_true(&flag));
        let request = Install {
            name: self.name.clone(),
            pkgs: self.list(),
            refresh,
            downloadonly: true,
            fromrepo: self.fromrepo.clone(),
            ignore_epoch: self.ignore_epoch.unwrap_or(false),
            extra,
            ..Install::default()
        };
        let done = provider
            .install(cx, &request)
            .map_err(|error| explained(error, "downloading package(s)"))?;
        if let Some(trouble) = &done.trouble {
            return Ok(troubled(done.changes, trouble));
        }
        let there = provider.list_downloaded(cx, &self.rest.kwargs)?;
        let pkgs: Pkgs = there
            .keys()
            .iter()
            .map(|name| (name.to_string(), versions_of(&there, &name.to_str())))
            .collect();
        let failed: Vec<String> = targets
            .iter()
            .filter(|(name, version)| {
                let version = version.as_deref();
                !installed::is_there(cx, provider, &pkgs, name, version, self.ignore_epoch)
            })
            .map(|(name, _)| name.clone())
            .collect();
        if !failed.is_empty() {
            let comment = format!(
                "The following packages failed to download: {}",
                shown_all(&failed, &targets)
            );
            return Ok(Applied::failed(done.changes, comment));
        }
        let comment = if done.changes.is_empty() {
            format!("Packages downloaded: {}", joined(&targets))
        } else {
            String::new()
        };
        Ok(Applied::changes(done.changes).comment(comment))
    }
}

/// Bring all packages up to date.
#[derive(Args)]
pub(super) struct Uptodate {
    /// A name, for people.
    #[expect(dead_code, reason = "only shown by the engine")]
    name: Value,
    /// Fetch the lists of packages first.
    #[default(Value::Bool(false))]
    refresh: Value,
    /// Only these packages.
    #[default(Value::Null)]
    pkgs: Value,
    /// Options of the package manager: `dist_upgrade`, `fromrepo` …
    rest: Rest,
}

impl Uptodate {
    fn request(&self, refresh: bool, full: bool) -> Upgrade {
        let extra = self.rest.kwargs.shallow_copy();
        let dist_upgrade = extra.remove("dist_upgrade").map_or(full, |flag| flag.truthy());
        Upgrade { refresh, dist_upgrade, pkgs: self.pkgs.clone(), extra }
    }
}

impl State for Uptodate {
    /// Package → `{new, old}`.
    type Seen = Dict;

    fn observe(&self, cx: &Cx) -> Result<Dict> {
        let Value::Bool(refresh) = self.refresh else {
            return Err(Error::failed("refresh must be either True or False"));
        };
        let provider = pkg::provider(cx)?;
        if !provider.has("list_upgrades") {
            return Err(Error::failed("State pkg.uptodate is not available"));
        }
        let plainly = |error: Error| Error::Failed(error.to_string());
        let upgrades = provider.list_upgrades(cx, &self.request(refresh, true)).map_err(plainly)?;
        let current = provider.list_pkgs(cx, Which::Installed, &self.rest.kwargs)?;
        let only: Option<Vec<String>> =
            self.pkgs.as_list().map(|list| list.into_iter().map(|name| name.to_string()).collect());
        let expected = Dict::new();
        for (name, version) in &upgrades {
            let name = name.to_str();
            if only.as_ref().is_none_or(|only| only.iter().any(|own| *own == *name)) {
                let old = current.get(name.as_str()).map(|versions| versions.join(","));
                let change = dict! { "new" => version, "old" => old.unwrap_or_default() };
                expected.insert(name, change);
            }
        }
        Ok(expected)
    }

    fn plan(&self, seen: &Dict) -> Result<Plan> {
        Ok(if seen.is_empty() {
            Plan::nothing("System is already up-to-date")
        } else {
            Plan::changes(seen.deep_copy()).pending("System update will be performed")
        })
    }

    fn apply(&self, cx: &Cx, seen: Dict) -> Result<Applied> {
        let refresh = self.refresh.truthy();
        let done = pkg::provider(cx)?
            .upgrade(cx, &self.request(refresh, false))
            .map_err(|error| explained(error, "updating packages"))?;
        if let Some(trouble) = &done.trouble {
            return Ok(troubled(done.changes, trouble));
        }
        let missing: Vec<String> = seen
            .keys()
            .iter()
            .filter(|name| self.pkgs.as_list().is_some() && !done.changes.contains(*name))
            .map(ToString::to_string)
            .collect();
        if !missing.is_empty() {
            let comment =
                format!("The following package(s) failed to update: {}", missing.join(", "));
            return Ok(Applied::failed(done.changes, comment));
        }
        Ok(Applied::changes(done.changes).comment("Upgrade ran successfully"))
    }
}

/// Make sure that a group of packages is installed (yum and dnf).
#[derive(Args)]
pub(super) struct GroupInstalled {
    /// The group.
    name: String,
    /// Packages to leave out.
    #[default(Value::Null)]
    skip: Value,
    /// Optional packages to install, too.
    #[default(Value::Null)]
    include: Value,
    /// Options of the package manager.
    rest: Rest,
}

/// What looking at a group told.
pub(super) struct Group {
    mandatory: Vec<String>,
    targets: Vec<String>,
    partly: bool,
}

fn list_of(value: &Value, name: &str) -> Result<Vec<String>> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::List(list) => Ok(list.into_iter().map(|item| item.to_string()).collect()),
        _ => Err(Error::failed(format!("{name} must be formatted as a list"))),
    }
}

impl State for GroupInstalled {
    type Seen = Group;

    fn observe(&self, cx: &Cx) -> Result<Group> {
        if !pkg::provider(cx)?.has("group_diff") {
            return Err(Error::failed("pkg.group_install not available for this platform"));
        }
        let (skip, include) = (list_of(&self.skip, "skip")?, list_of(&self.include, "include")?);
        let name = &self.name;
        let diff = pkg::group_diff(cx, name.clone(), Rest::default()).map_err(|error| {
            Error::failed(format!(
                "An error was encountered while installing/updating group '{name}': {error}."
            ))
        })?;
        let list = |kind: &str, key: &str| -> Vec<String> {
            let found = diff.get(kind).and_then(|kind| kind.get(key));
            let found = found.and_then(|list| list.items_of_sequence()).unwrap_or_default();
            found.iter().map(Value::to_string).collect()
        };
        let mandatory = list("mandatory", "not installed");
        let must: Vec<String> =
            list("mandatory", "installed").into_iter().chain(mandatory.clone()).collect();
        let wrong: Vec<String> = must.into_iter().filter(|name| skip.contains(name)).collect();
        if !wrong.is_empty() {
            return Err(Error::failed(format!(
                "The following mandatory packages cannot be skipped: {}",
                wrong.join(", ")
            )));
        }
        let mut targets = mandatory.clone();
        targets.extend(list("default", "not installed").into_iter().filter(|n| !skip.contains(n)));
        targets.extend(include);
        let partly = ["mandatory", "default", "optional"]
            .iter()
            .any(|kind| !list(kind, "installed").is_empty());
        Ok(Group { mandatory, targets, partly })
    }

    fn plan(&self, seen: &Group) -> Result<Plan> {
        let name = &self.name;
        Ok(if seen.targets.is_empty() {
            Plan::nothing(format!("Group '{name}' is already installed"))
        } else if seen.partly {
            let text = format!("Group '{name}' is partially installed and will be updated");
            Plan::unknown().pending(text)
        } else {
            Plan::unknown().pending(format!("Group '{name}' will be installed"))
        })
    }

    fn apply(&self, cx: &Cx, seen: Group) -> Result<Applied> {
        let name = &self.name;
        let provider = pkg::provider(cx)?;
        let request = Install {
            pkgs: Value::list(seen.targets),
            extra: self.rest.kwargs.shallow_copy(),
            ..Install::default()
        };
        let doing = format!("installing/updating group '{name}'");
        let done = provider.install(cx, &request).map_err(|error| explained(error, &doing))?;
        if let Some(trouble) = &done.trouble {
            return Ok(troubled(done.changes, trouble));
        }
        let there = provider.list_pkgs(cx, Which::Installed, &Dict::new())?;
        let mut required = seen.mandatory;
        required.extend(list_of(&self.include, "include")?);
        let failed: Vec<String> =
            required.into_iter().filter(|name| !there.contains_key(name)).collect();
        if !failed.is_empty() {
            let comment =
                format!("Failed to install the following packages: {}", failed.join(", "));
            return Ok(Applied::failed(done.changes, comment));
        }
        let word = if seen.partly { "updated" } else { "installed" };
        Ok(Applied::changes(done.changes).comment(format!("Group '{name}' was {word}")))
    }
}

/// Make sure that advisory patches are installed.
#[derive(Args)]
pub(super) struct PatchInstalled {
    /// The patch, if there is no list of them.
    name: String,
    /// Several patches.
    #[default(Value::Null)]
    advisory_ids: Value,
    /// Only fetch what they bring.
    #[default(false)]
    #[shown(Value::Null)]
    downloadonly: bool,
    /// Options of the package manager.
    rest: Rest,
}

impl PatchInstalled {
    fn look(&self, cx: &Cx, state: &str) -> Result<Result<Vec<String>, String>> {
        let provider = pkg::provider(cx)?;
        if !provider.has("list_patches") {
            let text = format!("The pkg.{state} state is not available on this platform");
            return Err(Error::failed(text));
        }
        if is_empty_list(&self.advisory_ids) {
            return Ok(Err("No advisory ids provided".into()));
        }
        let there = provider.list_patches(cx, true, false)?;
        let wanted: Vec<String> = match self.advisory_ids.items_of_sequence() {
            Some(ids) => ids.iter().map(Value::to_string).collect(),
            None => {
                if there.contains(self.name.as_str()) {
                    let text = format!("Advisory patch {} is already installed", self.name);
                    return Ok(Err(text));
                }
                vec![self.name.clone()]
            }
        };
        let targets: Vec<String> =
            wanted.into_iter().filter(|id| !there.contains(id.as_str())).collect();
        if targets.is_empty() {
            return Ok(Err("All specified advisory patches are already installed".into()));
        }
        Ok(Ok(targets))
    }

    fn install(&self, cx: &Cx, downloadonly: bool) -> Result<Applied> {
        let extra = self.rest.kwargs.shallow_copy();
        let ids = if self.advisory_ids.is_null() {
            Value::list([self.name.as_str()])
        } else {
            self.advisory_ids.clone()
        };
        extra.insert("advisory_ids", ids);
        let name = Some(self.name.clone());
        let request = Install { name, downloadonly, extra, ..Install::default() };
        let done = pkg::provider(cx)?
            .install(cx, &request)
            .map_err(|error| explained(error, "downloading package(s)"))?;
        if let Some(trouble) = &done.trouble {
            return Ok(troubled(done.changes, trouble));
        }
        let comment = if done.changes.is_empty() {
            let status = if downloadonly { "downloaded" } else { "installed" };
            format!("Advisory patch is not needed or related packages are already {status}")
        } else {
            String::new()
        };
        Ok(Applied::changes(done.changes).comment(comment))
    }
}

fn patch_plan(seen: &Result<Vec<String>, String>) -> Plan {
    match seen {
        Err(comment) => Plan::nothing(comment),
        Ok(targets) => Plan::unknown().pending(format!(
            "The following advisory patches would be downloaded: {}",
            targets.join(", ")
        )),
    }
}

impl State for PatchInstalled {
    type Seen = Result<Vec<String>, String>;

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        self.look(cx, "patch_installed")
    }

    fn plan(&self, seen: &Self::Seen) -> Result<Plan> {
        Ok(patch_plan(seen))
    }

    fn apply(&self, cx: &Cx, _: Self::Seen) -> Result<Applied> {
        self.install(cx, self.downloadonly)
    }
}

/// Make sure that what advisory patches bring is in the cache.
#[derive(Args)]
pub(super) struct PatchDownloaded(PatchInstalled);

impl State for PatchDownloaded {
    type Seen = Result<Vec<String>, String>;

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        self.0.look(cx, "patch_downloaded")
    }

    fn plan(&self, seen: &Self::Seen) -> Result<Plan> {
        Ok(patch_plan(seen))
    }

    fn apply(&self, cx: &Cx, _: Self::Seen) -> Result<Applied> {
        self.0.install(cx, true)
    }
}
