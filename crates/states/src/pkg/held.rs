//! `pkg.held` and `pkg.unheld`.

use halite_modules::pkg::{self, Lock};
use halite_spec::{Applied, Args, Cx, Error, Plan, Rest, Result, State};
use halite_value::{Dict, Value};

use super::{Wanted, is_empty_list, repacked};

const NO_LOCKS: &str = "No any function to get the list of held packages available.\nCheck if the \
                        package manager supports package locking.";

/// What looking told: the locks, and whether they name versions.
pub(super) struct Seen {
    locks: Vec<Lock>,
    versions: bool,
    nothing: Option<&'static str>,
}

fn look(cx: &Cx) -> Result<Seen> {
    let provider = pkg::provider(cx)?;
    let locks = provider.locks(cx)?.ok_or_else(|| Error::failed(NO_LOCKS))?;
    Ok(Seen { locks, versions: provider.locks_versions(), nothing: None })
}

fn is_package(lock: &&Lock) -> bool {
    lock.kind.as_deref().is_none_or(|kind| kind == "package")
}

fn with_version(name: &str, version: Option<&str>) -> String {
    match version.filter(|version| !version.is_empty()) {
        Some(version) => format!("{name} (version = {version})"),
        None => name.to_owned(),
    }
}

fn said(ret: &Dict, name: &str) -> (bool, String) {
    let one = ret.get(name).unwrap_or_default();
    let result = one.get("result").is_some_and(|result| result.truthy());
    (result, one.get("comment").map(|text| text.to_string()).unwrap_or_default())
}

/// Make sure that packages keep their version.
#[derive(Args)]
pub(super) struct Held {
    /// The package, if there is no list of them.
    name: String,
    /// The version to hold, where the package manager can.
    #[default(Value::Null)]
    version: Value,
    /// Several packages, with versions.
    #[default(Value::Null)]
    pkgs: Value,
    /// Release all others.
    #[default(false)]
    replace: bool,
    /// Accepted, as Salt does.
    #[expect(dead_code, reason = "taken and ignored")]
    rest: Rest,
}

impl Held {
    fn wanted(&self) -> Result<Wanted> {
        if !self.pkgs.is_null() {
            return repacked(&self.pkgs);
        }
        let version = self.version.truthy().then(|| self.version.to_string());
        Ok(vec![(self.name.clone(), version)])
    }

    /// Packages to hold, and packages to release.
    fn todo(&self, seen: &Seen) -> Result<(Wanted, Vec<String>)> {
        let wanted = self.wanted()?;
        let is_open = |(name, version): &(String, Option<String>)| {
            let lock = seen.locks.iter().find(|lock| lock.name == *name);
            lock.is_none_or(|lock| seen.versions && lock.version != *version)
        };
        let others = seen.locks.iter().filter(is_package).map(|lock| lock.name.clone());
        let others = others.filter(|name| !super::contains(&wanted, name));
        let others = if self.replace { others.collect() } else { Vec::new() };
        Ok((wanted.into_iter().filter(is_open).collect(), others))
    }
}

impl State for Held {
    type Seen = Seen;

    fn observe(&self, cx: &Cx) -> Result<Seen> {
        if is_empty_list(&self.pkgs) && !self.replace {
            let nothing = Some("No packages to be held provided");
            return Ok(Seen { locks: Vec::new(), versions: false, nothing });
        }
        look(cx)
    }

    fn plan(&self, seen: &Seen) -> Result<Plan> {
        if let Some(nothing) = seen.nothing {
            return Ok(Plan::nothing(nothing));
        }
        let (hold, release) = self.todo(seen)?;
        if hold.is_empty() && release.is_empty() {
            return Ok(Plan::nothing("No changes made"));
        }
        let mut comments = Vec::new();
        for (name, version) in &hold {
            let shown = with_version(name, version.as_deref());
            let known = seen.locks.iter().any(|lock| lock.name == *name);
            comments.push(if known {
                format!("The following package's hold rule would be updated: {shown}")
            } else {
                format!("The following package would be held: {shown}")
            });
        }
        for name in &release {
            comments.push(format!("The following package would be unheld: {name}"));
        }
        // As Salt does: the result is True with `test=True`.
        Ok(Plan { test_result: Some(true), ..Plan::unknown().pending(comments.join("\n")) })
    }

    fn apply(&self, cx: &Cx, seen: Seen) -> Result<Applied> {
        let provider = pkg::provider(cx)?;
        let (hold, release) = self.todo(&seen)?;
        let changes = Dict::new();
        let mut comments = Vec::new();
        let mut result = true;
        for (name, _) in &hold {
            let names = std::slice::from_ref(name);
            let known = seen.locks.iter().any(|lock| lock.name == *name);
            let released =
                if known { said(&provider.set_hold(cx, names, false)?, name).0 } else { false };
            let ret = provider.set_hold(cx, names, true)?;
            let (done, _) = said(&ret, name);
            result &= done;
            comments.push(match (done, released) {
                (true, true) => format!("Package {name} was updated with hold rule"),
                (true, false) => format!("Package {name} is now being held"),
                (false, _) => format!("Package {name} was not held"),
            });
            changes.update(&ret);
        }
        for name in &release {
            let ret = provider.set_hold(cx, std::slice::from_ref(name), false)?;
            let (done, comment) = said(&ret, name);
            result &= done;
            comments.push(comment);
            changes.update(&ret);
        }
        Ok(Applied {
            result: Some(result),
            ..Applied::changes(changes).comment(comments.join("\n"))
        })
    }
}

/// Make sure that packages are not held.
#[derive(Args)]
pub(super) struct Unheld {
    /// The package, if there is no list of them.
    name: String,
    /// Only a hold of this version.
    #[default(Value::Null)]
    version: Value,
    /// Several packages, with versions.
    #[default(Value::Null)]
    pkgs: Value,
    /// Release all that are held.
    #[default(false)]
    all: bool,
    /// Accepted, as Salt does.
    #[expect(dead_code, reason = "taken and ignored")]
    rest: Rest,
}

impl Unheld {
    fn wanted(&self) -> Result<Wanted> {
        if !self.pkgs.is_null() {
            return repacked(&self.pkgs);
        }
        let version = self.version.truthy().then(|| self.version.to_string());
        Ok(vec![(self.name.clone(), version)])
    }

    fn todo<'s>(&self, seen: &'s Seen) -> Result<Vec<&'s Lock>> {
        let wanted = self.wanted()?;
        let is_meant = |lock: &&Lock| {
            let version = lock.version.as_ref().filter(|_| seen.versions);
            self.all
                || super::get(&wanted, &lock.name)
                    .is_some_and(|own| version.is_none() || version == own.as_ref())
        };
        Ok(seen.locks.iter().filter(is_package).filter(is_meant).collect())
    }
}

impl State for Unheld {
    type Seen = Seen;

    fn observe(&self, cx: &Cx) -> Result<Seen> {
        if is_empty_list(&self.pkgs) && !self.all {
            let nothing = Some("No packages to be unheld provided");
            return Ok(Seen { locks: Vec::new(), versions: false, nothing });
        }
        look(cx)
    }

    fn plan(&self, seen: &Seen) -> Result<Plan> {
        if let Some(nothing) = seen.nothing {
            return Ok(Plan::nothing(nothing));
        }
        let locks = self.todo(seen)?;
        if locks.is_empty() {
            return Ok(Plan::nothing("No changes made"));
        }
        let wanted = self.wanted()?;
        let comments: Vec<String> = locks
            .iter()
            .map(|lock| {
                let asked = super::get(&wanted, &lock.name).is_some_and(Option::is_some);
                let version = lock.version.as_deref().filter(|_| asked);
                let shown = with_version(&lock.name, version);
                format!("The following package would be unheld: {shown}")
            })
            .collect();
        Ok(Plan { test_result: Some(true), ..Plan::unknown().pending(comments.join("\n")) })
    }

    fn apply(&self, cx: &Cx, seen: Seen) -> Result<Applied> {
        let provider = pkg::provider(cx)?;
        let changes = Dict::new();
        let mut comments = Vec::new();
        let mut result = true;
        for lock in self.todo(&seen)? {
            let ret = provider.set_hold(cx, std::slice::from_ref(&lock.name), false)?;
            let (done, comment) = said(&ret, &lock.name);
            result &= done;
            comments.push(comment);
            changes.update(&ret);
        }
        Ok(Applied {
            result: Some(result),
            ..Applied::changes(changes).comment(comments.join("\n"))
        })
    }
}
