//! `pkg.latest`.

use halite_modules::pkg::{self, Install, Which};
use halite_spec::{Applied, Args, Cx, Error, Outcome, Plan, Rest, Result, State};
use halite_value::{Dict, Value};

use super::{Wanted, explained, installable, is_empty_list, normalized};

/// Make sure that packages are installed in their newest version.
#[derive(Args)]
pub(super) struct Latest {
    /// The package, if there is no list of them.
    #[arg(required)]
    name: Option<String>,
    /// Fetch the lists of packages first; once in a job if not given.
    #[default(Value::Null)]
    refresh: Value,
    /// The repository to take packages from.
    fromrepo: Option<String>,
    /// Do not check signatures.
    #[default(false)]
    skip_verify: bool,
    /// Several packages.
    #[default(Value::Null)]
    pkgs: Value,
    /// Of use on Gentoo only.
    #[default(true)]
    #[expect(dead_code, reason = "of use on Gentoo only")]
    watch_flags: bool,
    /// Options of the package manager.
    rest: Rest,
}

/// What looking told.
pub(super) struct Seen {
    desired: Vec<String>,
    /// Package → newest version, of those not up to date.
    targets: Wanted,
    current: Vec<(String, String)>,
    nothing: Option<String>,
}

fn sorted(names: impl IntoIterator<Item = String>) -> String {
    let mut names: Vec<String> = names.into_iter().collect();
    names.sort();
    names.join(", ")
}

impl Latest {
    fn up_to_date(&self, seen: &Seen) -> Vec<String> {
        if !self.pkgs.truthy() {
            return Vec::new();
        }
        let is_target = |name: &&String| super::contains(&seen.targets, name);
        seen.desired.iter().filter(|name| !is_target(name)).cloned().collect()
    }
}

impl State for Latest {
    type Seen = Seen;
    const WATCHES: bool = true;

    fn observe(&self, cx: &Cx) -> Result<Seen> {
        if self.rest.kwargs.get("sources").is_some_and(|sources| sources.truthy()) {
            return Err(Error::failed("The \"sources\" parameter is not supported."));
        }
        let mut seen =
            Seen { desired: Vec::new(), targets: Vec::new(), current: Vec::new(), nothing: None };
        if is_empty_list(&self.pkgs) {
            seen.nothing = Some("No packages to install provided".into());
            return Ok(seen);
        }
        seen.desired = if self.pkgs.truthy() {
            normalized(cx, &self.pkgs, true)?.into_iter().map(|(name, _)| name).collect()
        } else {
            vec![super::one_name(self.name.as_ref())?.to_owned()]
        };
        if seen.desired.is_empty() {
            return Err(Error::failed("Invalidly formatted \"pkgs\" parameter. See minion log."));
        }
        let provider = pkg::provider(cx)?;
        let how = pkg::Latest {
            refresh: pkg::wants_refresh(cx, &self.refresh),
            fromrepo: self.fromrepo.clone(),
            extra: self.rest.kwargs.shallow_copy(),
            ..pkg::Latest::default()
        };
        let newest = provider.latest_version(cx, &seen.desired, &how).map_err(|error| {
            explained(error, "checking the newest available version of package(s)")
        })?;
        let pkgs = provider.list_pkgs(cx, Which::Installed, &self.rest.kwargs)?;
        let mut problems = Vec::new();
        for name in &seen.desired {
            let current = pkgs.get(name).map(|versions| versions.join(",")).unwrap_or_default();
            let version = newest.iter().find(|(own, _)| own == name).map(|(_, v)| v.clone());
            match version.filter(|version| !version.is_empty()) {
                Some(version) => seen.targets.push((name.clone(), Some(version))),
                None if current.is_empty() => {
                    problems.push(format!("No information found for '{name}'."));
                }
                None => {}
            }
            seen.current.push((name.clone(), current));
        }
        if !problems.is_empty() {
            return Err(Error::failed(problems.join(" ")));
        }
        Ok(seen)
    }

    fn plan(&self, seen: &Seen) -> Result<Plan> {
        if let Some(comment) = &seen.nothing {
            return Ok(Plan::nothing(comment));
        }
        if !seen.targets.is_empty() {
            return Ok(Plan::unknown());
        }
        Ok(Plan::nothing(match seen.desired.as_slice() {
            [name] => format!("Package {name} is already up-to-date"),
            names if names.len() > 10 => format!("All {} packages are up-to-date.", names.len()),
            names => format!("All packages are up-to-date ({}).", sorted(names.to_vec())),
        }))
    }

    fn apply(&self, cx: &Cx, seen: Seen) -> Result<Applied> {
        let names: Vec<String> = seen.targets.iter().map(|(name, _)| name.clone()).collect();
        let request = Install {
            fromrepo: self.fromrepo.clone(),
            skip_verify: self.skip_verify,
            pkgs: Value::list(names.clone()),
            extra: self.rest.kwargs.shallow_copy(),
            ..Install::default()
        };
        let doing = "installing package(s)";
        let done =
            pkg::provider(cx)?.install(cx, &request).map_err(|error| explained(error, doing))?;
        if let Some(trouble) = done.trouble {
            trouble.info.insert("changes", done.changes);
            return Err(explained(Error::failed(trouble.text()), doing));
        }
        let changes = done.changes;
        let up_to_date = self.up_to_date(&seen);
        if changes.is_empty() {
            let mut comment = match names.as_slice() {
                [name] => format!("Package {name} failed to update."),
                names if names.len() > 10 => format!(
                    "{} targeted packages failed to update. See debug log for details.",
                    names.len()
                ),
                names => format!(
                    "The following targeted packages failed to update. See debug log for details: \
                     ({}).",
                    sorted(names.to_vec())
                ),
            };
            if up_to_date.len() > 10 {
                comment.push_str(&format!("{} packages were already up-to-date", up_to_date.len()));
            } else if !up_to_date.is_empty() {
                comment.push_str(&format!(
                    " The following packages were already up-to-date: {}",
                    sorted(up_to_date)
                ));
            }
            return Ok(Applied::failed(changes, comment));
        }
        let is_new = |name: &String| {
            let wanted = super::get(&seen.targets, name).cloned().flatten().unwrap_or_default();
            let new = changes.get(name.as_str()).and_then(|change| change.get("new"));
            match new {
                Some(new) => {
                    wanted == "latest" || new.to_str().split(',').any(|version| version == wanted)
                }
                None => false,
            }
        };
        let (good, bad): (Vec<String>, Vec<String>) = names.into_iter().partition(is_new);
        let mut comments = Vec::new();
        if !bad.is_empty() {
            comments
                .push(format!("The following packages failed to update: {}", sorted(bad.clone())));
        }
        if !good.is_empty() {
            comments.push(format!(
                "The following packages were successfully installed/upgraded: {}",
                sorted(good)
            ));
        }
        if up_to_date.len() > 10 {
            comments.push(format!("{} packages were already up-to-date ", up_to_date.len()));
        } else if !up_to_date.is_empty() {
            comments.push(format!(
                "The following packages were already up-to-date: {}",
                sorted(up_to_date)
            ));
        }
        Ok(Applied {
            result: Some(bad.is_empty()),
            ..Applied::changes(changes).comment(comments.join(" "))
        })
    }

    fn rehearse(&self, cx: &Cx) -> Result<Option<Outcome>> {
        let looking = cx.looking_only();
        let seen = self.observe(&looking)?;
        if seen.targets.is_empty() {
            return Ok(None);
        }
        let mut comments = vec![format!(
            "The following packages would be installed/upgraded: {}",
            sorted(seen.targets.iter().map(|(name, _)| name.clone()))
        )];
        let current = |name: &str| {
            let found = seen.current.iter().find(|(own, _)| own == name);
            found.map(|(_, version)| version.clone()).unwrap_or_default()
        };
        let mut up_to_date = self.up_to_date(&seen);
        up_to_date.sort();
        if up_to_date.len() > 10 {
            comments.push(format!("{} packages are already up-to-date", up_to_date.len()));
        } else if !up_to_date.is_empty() {
            let shown: Vec<String> =
                up_to_date.iter().map(|name| format!("{name} ({})", current(name))).collect();
            comments.push(format!(
                "The following packages are already up-to-date: {}",
                shown.join(", ")
            ));
        }
        let provider = pkg::provider(cx)?;
        let changes: Dict = installable(&looking, provider, &seen.targets, &current)?;
        Ok(Some(Outcome::new(None, changes, comments.join("\n"))))
    }

    fn watch(&self, cx: &Cx, test: bool) -> Result<Outcome> {
        halite_spec::run(self, cx, test)
    }
}
