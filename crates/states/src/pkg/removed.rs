//! `pkg.removed` and `pkg.purged`.

use halite_modules::{
    pkg::{self, Uninstall, Which},
    pkg_resource::{self, Request, Targets},
};
use halite_spec::{Applied, Args, Cx, Error, Outcome, Plan, Rest, Result, State};
use halite_value::{Dict, Value, dict};

use super::{Wanted, conditions, explained, normalized, one_name, troubled};

/// Make sure that packages are not installed.
#[derive(Args)]
pub(super) struct Removed {
    /// The package, if there is no list of them.
    #[arg(required)]
    name: Option<String>,
    /// Only this version.
    #[default(Value::Null)]
    version: Value,
    /// Several packages, with versions.
    #[default(Value::Null)]
    pkgs: Value,
    /// Strip the architecture from names.
    #[default(true)]
    normalize: bool,
    /// Compare versions without epochs.
    ignore_epoch: Option<bool>,
    /// Options of the package manager.
    rest: Rest,
}

/// What looking told.
pub(super) struct Seen {
    named: Wanted,
    targets: Vec<String>,
    /// Why there is nothing to do.
    nothing: String,
}

impl Removed {
    fn version(&self) -> Option<String> {
        (!self.version.is_null()).then(|| self.version.to_string())
    }

    fn look(&self, cx: &Cx, purge: bool) -> Result<Seen> {
        let provider = pkg::provider(cx)?;
        let extra = &self.rest.kwargs;
        let version = self.version();
        let request = Request {
            name: self.name.as_deref(),
            pkgs: Some(&self.pkgs),
            normalize: self.normalize,
            version: version.as_deref(),
            ..Request::default()
        };
        let named = match pkg_resource::targets(cx, &request)? {
            Targets::Repository(named) => named,
            _ => Vec::new(),
        };
        let wanted = if self.pkgs.truthy() {
            normalized(cx, &self.pkgs, self.normalize)?
        } else {
            vec![(provider.normalize_name(cx, one_name(self.name.as_ref())?), version)]
        };
        if wanted.is_empty() {
            return Err(Error::failed("Invalidly formatted \"pkgs\" parameter. See minion log."));
        }
        let current = provider.list_pkgs(cx, Which::Installed, extra)?;
        let mut targets = Vec::new();
        let mut has_version = false;
        for (name, version) in wanted {
            let Some(there) = current.get(&name) else { continue };
            match version {
                None => targets.push(name),
                Some(version) => {
                    has_version = true;
                    if conditions::fulfils(provider, there, &version, self.ignore_epoch, false) {
                        targets.push(name);
                    }
                }
            }
        }
        let nothing = if purge {
            "None of the targeted packages are installed or partially installed".to_owned()
        } else {
            let matching = if has_version { " (matching specified versions)" } else { "" };
            format!("All specified packages{matching} are already absent")
        };
        if purge {
            let left = provider.list_pkgs(cx, Which::Removed, extra)?;
            targets.extend(named.iter().map(|(n, _)| n.clone()).filter(|n| left.contains_key(n)));
        }
        targets.sort();
        Ok(Seen { named, targets, nothing })
    }

    fn planned(seen: &Seen, action: &str) -> Plan {
        if seen.targets.is_empty() {
            return Plan::nothing(&seen.nothing);
        }
        let change = dict! { "new" => format!("{action}d"), "old" => "" };
        let changes: Dict =
            seen.targets.iter().map(|name| (name.as_str(), change.deep_copy())).collect();
        Plan::changes(changes).pending(format!(
            "The following packages will be {action}d: {}.",
            seen.targets.join(", ")
        ))
    }

    fn uninstall(&self, cx: &Cx, seen: &Seen, purge: bool) -> Result<Applied> {
        let (action, doing) =
            if purge { ("purge", "purging package(s)") } else { ("remove", "removing package(s)") };
        let provider = pkg::provider(cx)?;
        let extra = self.rest.kwargs.shallow_copy();
        extra.insert("split_arch", false);
        let request = Uninstall {
            name: self.name.clone(),
            pkgs: self.pkgs.clone(),
            version: self.version(),
            purge,
            extra,
        };
        let done = provider.uninstall(cx, &request).map_err(|error| explained(error, doing))?;
        if let Some(trouble) = &done.trouble {
            return Ok(troubled(done.changes, trouble));
        }
        let new = provider.list_pkgs(cx, Which::Installed, &self.rest.kwargs)?;
        let by_version = matches!(cx.grain_str("os_family").as_str(), "Suse" | "RedHat");
        let mut failed: Vec<String> = Vec::new();
        for (name, version) in &seen.named {
            match (new.get(name), version.as_deref().filter(|version| !version.is_empty())) {
                (Some(there), Some(version)) if by_version => {
                    if there.iter().any(|own| own == version) {
                        failed.push(format!("{name}-{version}"));
                    }
                }
                (Some(_), _) => failed.push(name.clone()),
                (None, _) => {}
            }
        }
        if purge {
            let left = provider.list_pkgs(cx, Which::Removed, &self.rest.kwargs)?;
            failed
                .extend(seen.named.iter().map(|(n, _)| n.clone()).filter(|n| left.contains_key(n)));
        }
        failed.sort();
        if !failed.is_empty() {
            let comment =
                format!("The following packages failed to {action}: {}.", failed.join(", "));
            return Ok(Applied::failed(done.changes, comment));
        }
        let mut absent: Vec<&str> = seen
            .named
            .iter()
            .map(|(name, _)| name.as_str())
            .filter(|name| !seen.targets.iter().any(|own| own == name))
            .collect();
        absent.sort_unstable();
        let comment = if absent.is_empty() {
            format!("All targeted packages were {action}d.")
        } else {
            format!(
                "The following packages were not installed: {} The following packages were \
                 {action}d: {}.",
                absent.join(", "),
                seen.targets.join(", ")
            )
        };
        Ok(Applied::changes(done.changes).comment(comment))
    }
}

impl State for Removed {
    type Seen = Seen;
    const WATCHES: bool = true;

    fn observe(&self, cx: &Cx) -> Result<Seen> {
        self.look(cx, false)
    }

    fn plan(&self, seen: &Seen) -> Result<Plan> {
        Ok(Self::planned(seen, "remove"))
    }

    fn apply(&self, cx: &Cx, seen: Seen) -> Result<Applied> {
        self.uninstall(cx, &seen, false)
    }

    fn watch(&self, cx: &Cx, test: bool) -> Result<Outcome> {
        halite_spec::run(self, cx, test)
    }
}

/// Make sure that packages are not installed, nor anything of their configuration.
#[derive(Args)]
pub(super) struct Purged(Removed);

impl State for Purged {
    type Seen = Seen;
    const WATCHES: bool = true;

    fn observe(&self, cx: &Cx) -> Result<Seen> {
        self.0.look(cx, true)
    }

    fn plan(&self, seen: &Seen) -> Result<Plan> {
        Ok(Removed::planned(seen, "purge"))
    }

    fn apply(&self, cx: &Cx, seen: Seen) -> Result<Applied> {
        self.0.uninstall(cx, &seen, true)
    }

    fn watch(&self, cx: &Cx, test: bool) -> Result<Outcome> {
        halite_spec::run(self, cx, test)
    }
}
