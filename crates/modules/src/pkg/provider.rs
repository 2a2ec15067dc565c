//! The seam between `pkg` and the package managers.
//!
//! A [`Provider`] is one package manager. What it cannot do it does not override: the default
//! answers that the function is not available here, as Salt does for a function its module lacks.
//! Everything users see of a change goes through [`Done`]: what changed, and what went wrong
//! nevertheless.

use std::{cmp::Ordering, collections::BTreeMap};

use halite_spec::{Cx, Error, Result};
use halite_value::{Dict, Value, dict, entries};

use super::{nested::nested, version};

/// Package → installed versions, sorted.
pub type Pkgs = BTreeMap<String, Vec<String>>;

/// Which packages to list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Which {
    #[default]
    Installed,
    /// Removed, with configuration left.
    Removed,
    /// Installed, but marked to be purged.
    PurgeDesired,
}

/// What to install, and how.
#[derive(Clone, Debug)]
pub struct Install {
    pub name: Option<String>,
    pub refresh: bool,
    pub fromrepo: Option<String>,
    pub skip_verify: bool,
    pub debconf: Option<String>,
    pub pkgs: Value,
    pub sources: Value,
    pub reinstall: bool,
    pub downloadonly: bool,
    pub ignore_epoch: bool,
    pub normalize: bool,
    pub update_holds: bool,
    pub version: Option<String>,
    /// False when a state calls: names stay as they were resolved.
    pub split_arch: bool,
    /// Options of one package manager.
    pub extra: Dict,
}

impl Default for Install {
    fn default() -> Self {
        Self {
            name: None,
            refresh: false,
            fromrepo: None,
            skip_verify: false,
            debconf: None,
            pkgs: Value::Null,
            sources: Value::Null,
            reinstall: false,
            downloadonly: false,
            ignore_epoch: false,
            normalize: true,
            update_holds: false,
            version: None,
            split_arch: true,
            extra: Dict::new(),
        }
    }
}

impl Install {
    /// Returns an option of one package manager.
    pub fn flag(&self, name: &str) -> bool {
        self.extra.get(name).is_some_and(|value| value.truthy())
    }
}

/// What to remove.
#[derive(Clone, Debug, Default)]
pub struct Uninstall {
    pub name: Option<String>,
    pub pkgs: Value,
    pub version: Option<String>,
    pub purge: bool,
    pub extra: Dict,
}

/// How to bring everything up to date.
#[derive(Clone, Debug, Default)]
pub struct Upgrade {
    pub refresh: bool,
    pub dist_upgrade: bool,
    pub pkgs: Value,
    pub extra: Dict,
}

/// What asking for the newest versions takes.
#[derive(Clone, Debug, Default)]
pub struct Latest {
    pub refresh: bool,
    /// Tell the newest version also of a package that has it.
    pub show_installed: bool,
    pub fromrepo: Option<String>,
    pub extra: Dict,
}

/// A package that may not be changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lock {
    pub name: String,
    pub version: Option<String>,
    /// `package`, `patch` …
    pub kind: Option<String>,
}

/// What was done, and what went wrong.
#[derive(Clone, Debug, Default)]
pub struct Done {
    pub changes: Dict,
    pub trouble: Option<Trouble>,
}

/// Salt's `CommandExecutionError` with details.
#[derive(Clone, Debug)]
pub struct Trouble {
    pub message: String,
    /// Details beside the changes: `errors`, `result`.
    pub info: Dict,
}

impl Done {
    pub fn changes(changes: Dict) -> Self {
        Self { changes, trouble: None }
    }

    /// Nothing went wrong if the list is empty.
    pub fn with_errors(changes: Dict, message: &str, errors: Vec<String>) -> Self {
        let trouble = (!errors.is_empty()).then(|| Trouble {
            message: message.to_owned(),
            info: entries! { "errors" => Value::list(errors) },
        });
        Self { changes, trouble }
    }

    /// The return of an execution function: the changes, or an error that shows them, too.
    pub fn into_return(self) -> Result<Dict> {
        match self.trouble {
            None => Ok(self.changes),
            Some(trouble) => {
                trouble.info.insert("changes", self.changes);
                Err(Error::failed(trouble.text()))
            }
        }
    }
}

impl Trouble {
    /// The message and the details, as a state shows them.
    pub fn text(&self) -> String {
        if self.info.is_empty() {
            return self.message.clone();
        }
        let dot = if self.message.ends_with(['.', '?', '!']) { "" } else { "." };
        format!("{}{dot} Additional info follows:\n\n{}", self.message, nested(&self.info))
    }
}

/// Compares what was with what is: name → `{old, new}`.
pub fn differences(old: &Pkgs, new: &Pkgs) -> Dict {
    let joined = |versions: &Vec<String>| versions.join(",");
    let ret = Dict::new();
    let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
    names.sort();
    names.dedup();
    for name in names {
        let change = match (old.get(name), new.get(name)) {
            (None, Some(new)) => dict! { "old" => "", "new" => joined(new) },
            (Some(old), None) => dict! { "new" => "", "old" => joined(old) },
            (Some(old), Some(new)) if old != new => {
                dict! { "old" => joined(old), "new" => joined(new) }
            }
            _ => continue,
        };
        ret.insert(name.as_str(), change);
    }
    ret
}

fn unavailable<T>(function: &str) -> Result<T> {
    Err(Error::NotFound(format!("pkg.{function}")))
}

/// A package manager.
#[expect(unused_variables, reason = "the defaults refuse")]
pub trait Provider: Sync {
    /// Tells whether there is a function of this name.
    fn has(&self, function: &str) -> bool;

    fn list_pkgs(&self, cx: &Cx, which: Which, extra: &Dict) -> Result<Pkgs>;

    /// Returns the newest version of each package, empty where there is none newer.
    fn latest_version(
        &self,
        cx: &Cx,
        names: &[String],
        how: &Latest,
    ) -> Result<Vec<(String, String)>>;

    /// Returns what `pkg.latest_version` does: the version of one package, or a dict of several.
    fn latest_return(&self, cx: &Cx, names: &[String], how: &Latest) -> Result<Value> {
        let found = self.latest_version(cx, names, how)?;
        Ok(match found.as_slice() {
            [(_, version)] => version.into(),
            _ => found.into_iter().collect::<Dict>().into(),
        })
    }

    fn refresh_db(&self, cx: &Cx, extra: &Dict) -> Result<Value>;

    fn install(&self, cx: &Cx, request: &Install) -> Result<Done>;

    fn uninstall(&self, cx: &Cx, request: &Uninstall) -> Result<Done>;

    fn upgrade(&self, cx: &Cx, request: &Upgrade) -> Result<Done>;

    fn list_upgrades(&self, cx: &Cx, request: &Upgrade) -> Result<Dict>;

    fn compare(&self, one: &str, other: &str) -> Ordering;

    /// The name without the architecture, if that is this machine's.
    fn normalize_name(&self, cx: &Cx, name: &str) -> String {
        name.to_owned()
    }

    /// Name and architecture.
    fn parse_arch(&self, name: &str) -> (String, Option<String>) {
        (name.to_owned(), None)
    }

    /// Holds or releases packages; returns a state-like dict for each.
    fn set_hold(&self, cx: &Cx, names: &[String], hold: bool) -> Result<Dict> {
        unavailable(if hold { "hold" } else { "unhold" })
    }

    /// What may not be changed; `None` when this package manager knows no such thing.
    fn locks(&self, cx: &Cx) -> Result<Option<Vec<Lock>>> {
        Ok(None)
    }

    /// Locks name a version.
    fn locks_versions(&self) -> bool {
        false
    }

    fn unpurge(&self, cx: &Cx, names: &[String]) -> Result<Dict> {
        unavailable("unpurge")
    }

    /// Returns all versions of packages that can be had, newest first.
    fn list_repo_pkgs(&self, cx: &Cx, names: &[String], extra: &Dict) -> Result<Dict> {
        unavailable("list_repo_pkgs")
    }

    /// Tells which packages exist: name → (found, suggestions). `None`: cannot tell.
    fn check_db(&self, cx: &Cx, names: &[String], extra: &Dict) -> Result<Option<Checked>> {
        Ok(None)
    }

    fn owner(&self, cx: &Cx, paths: &[String]) -> Result<Value> {
        unavailable("owner")
    }

    fn list_downloaded(&self, cx: &Cx, extra: &Dict) -> Result<Dict> {
        unavailable("list_downloaded")
    }

    fn list_repos(&self, cx: &Cx, extra: &Dict) -> Result<Dict> {
        unavailable("list_repos")
    }

    fn get_repo(&self, cx: &Cx, repo: &str, extra: &Dict) -> Result<Dict> {
        unavailable("get_repo")
    }

    fn mod_repo(&self, cx: &Cx, repo: &str, options: &Dict) -> Result<Dict> {
        unavailable("mod_repo")
    }

    fn del_repo(&self, cx: &Cx, repo: &str, extra: &Dict) -> Result<String> {
        unavailable("del_repo")
    }

    /// What there is of a repository now, and what [`Provider::get_repo`] will answer once
    /// [`Provider::mod_repo`] has been called with these options.
    fn repo_change(&self, cx: &Cx, repo: &str, options: &Dict) -> Result<(Dict, Dict)> {
        unavailable("mod_repo")
    }

    fn info_installed(&self, cx: &Cx, names: &[String], extra: &Dict) -> Result<Value> {
        unavailable("info_installed")
    }

    /// What the repositories say of packages.
    fn info_available(&self, cx: &Cx, names: &[String], refresh: bool) -> Result<Dict> {
        unavailable("info_available")
    }

    fn search(&self, cx: &Cx, criteria: &str, refresh: bool, how: &Dict) -> Result<Dict> {
        unavailable("search")
    }

    fn autoremove(&self, cx: &Cx, list_only: bool, purge: bool) -> Result<Value> {
        unavailable("autoremove")
    }

    fn show(&self, cx: &Cx, names: &[String], extra: &Dict) -> Result<Dict> {
        unavailable("show")
    }

    fn services_need_restart(&self, cx: &Cx) -> Result<Vec<String>> {
        unavailable("services_need_restart")
    }

    /// The packages of a group by kind: mandatory, default, optional, conditional.
    fn group_info(&self, cx: &Cx, name: &str, expand: bool) -> Result<Dict> {
        unavailable("group_info")
    }

    fn group_list(&self, cx: &Cx) -> Result<Dict> {
        unavailable("group_list")
    }

    fn list_patches(&self, cx: &Cx, installed_only: bool, refresh: bool) -> Result<Dict> {
        unavailable("list_patches")
    }

    /// Files of a package that were changed.
    fn verify(&self, cx: &Cx, names: &[String], extra: &Dict) -> Result<Dict> {
        unavailable("verify")
    }
}

/// What [`Provider::check_db`] found: name, whether it exists, similar names.
pub type Checked = Vec<(String, bool, Vec<String>)>;

impl dyn Provider + '_ {
    /// Compares, without epochs if asked.
    pub fn order(&self, one: &str, other: &str, ignore_epoch: bool) -> Ordering {
        if ignore_epoch {
            self.compare(version::without_epoch(one), version::without_epoch(other))
        } else {
            self.compare(one, other)
        }
    }

    /// The first version that satisfies a condition such as `>=1.2`.
    pub fn match_version<'v>(
        &self,
        condition: &str,
        versions: &'v [String],
        ignore_epoch: bool,
    ) -> Option<&'v String> {
        let (operator, wanted) = version::split_comparison(condition);
        versions
            .iter()
            .find(|own| version::satisfies(self.order(own, wanted, ignore_epoch), operator))
    }
}
