//! `pkgrepo`: where packages come from.
//!
//! What a source will look like once it is written is worked out beforehand
//! ([`Provider::repo_change`](pkg::Provider::repo_change)), so `test=True` predicts what applying
//! does. Keys are fetched only when the source itself has to be written, as Salt does.

use std::path::Path;

use halite_modules::pkg::{self, apt};
use halite_spec::{Applied, Args, Cx, Error, Plan, Rest, Result, State, host::Write, states};
use halite_value::{Dict, Value, dict};

states! {
    /// Where packages come from.
    "pkgrepo": "managed" => Managed,
    "absent" => Absent,
}

const MIND: &str = "This may cause pkg states to behave differently than stated if this action is \
                    repeated without test=True, due to the differences in the configured \
                    repositories.";

/// Make sure that a package repository is configured.
#[derive(Args)]
pub struct Managed {
    /// The source line (apt), or the name of the repository.
    name: String,
    /// A personal package archive of Launchpad: `owner/name`.
    ppa: Option<String>,
    /// A repository of Fedora's Copr: `owner/project`.
    copr: Option<String>,
    /// Add keys with `apt-key` where there is one.
    #[default(true)]
    aptkey: bool,
    /// `file`, `key_url`, `keyid`, `keyserver`, `comps`, `dist`, `architectures`, `refresh`,
    /// `clean_file`, `enabled`, `disabled`; `humanname`, `baseurl`, `gpgcheck` and whatever else
    /// the package manager knows.
    rest: Rest,
}

/// What looking told.
pub struct Seen {
    before: Dict,
    after: Dict,
    /// What `mod_repo` is to be called with.
    settings: Dict,
}

fn is_apt(cx: &Cx) -> bool {
    cx.grain_str("os_family") == "Debian"
}

fn repo_of<'r>(name: &'r str, ppa: Option<&str>, copr: Option<&str>) -> std::borrow::Cow<'r, str> {
    match (ppa, copr) {
        (Some(ppa), _) => format!("ppa:{ppa}").into(),
        (None, Some(copr)) => format!("copr:{copr}").into(),
        (None, None) => name.into(),
    }
}

impl Managed {
    fn settings(&self, cx: &Cx) -> Result<Dict> {
        let settings = self.rest.kwargs.shallow_copy();
        for (name, _) in &settings.shallow_copy() {
            if name.to_str().starts_with("__") {
                settings.remove(&name);
            }
        }
        let apt = is_apt(cx);
        let switches = (settings.remove("enabled"), settings.remove("disabled"));
        let enabled = match switches {
            (Some(_), Some(_)) => {
                return Err(Error::failed("Only one of enabled/disabled is allowed"));
            }
            (Some(enabled), None) => pkg::is_true(&enabled),
            (None, Some(disabled)) => !pkg::is_true(&disabled),
            (None, None) => true,
        };
        let humanname = settings.remove("humanname").filter(Value::truthy);
        if apt {
            settings.insert("aptkey", self.aptkey);
            settings.insert("disabled", !enabled);
        } else {
            let shown = humanname.unwrap_or_else(|| self.name.as_str().into());
            settings.insert("name", shown);
            settings.insert("enabled", enabled);
        }
        Ok(settings)
    }

    fn repo(&self, cx: &Cx) -> String {
        let copr = self.copr.as_deref().filter(|_| !is_apt(cx));
        repo_of(&self.name, self.ppa.as_deref(), copr).into_owned()
    }
}

fn differing(before: &Dict, after: &Dict) -> Dict {
    let ret = Dict::new();
    let nothing = |value: &Value| matches!(value, Value::Null | Value::Str(_)) && !value.truthy();
    for (key, new) in after {
        let old = before.get(&key).unwrap_or_default();
        if old != new && !(nothing(&old) && nothing(&new)) {
            ret.insert(key, dict! { "new" => new, "old" => old });
        }
    }
    ret
}

impl State for Managed {
    type Seen = Seen;

    fn observe(&self, cx: &Cx) -> Result<Seen> {
        let settings = self.settings(cx)?;
        let provider = pkg::provider(cx)?;
        let repo = self.repo(cx);
        let change = provider.repo_change(cx, &repo, &settings);
        let (before, after) = change.map_err(|error| match error {
            Error::Failed(text) => {
                Error::Failed(format!("Failed to examine repo '{}': {text}", self.name))
            }
            other => other,
        })?;
        Ok(Seen { before, after, settings })
    }

    fn plan(&self, seen: &Seen) -> Result<Plan> {
        let name = &self.name;
        let changes = if seen.before.is_empty() {
            let changes = Dict::new();
            changes.insert("repo", name.as_str());
            changes
        } else {
            differing(&seen.before, &seen.after)
        };
        if changes.is_empty() {
            return Ok(Plan::nothing(format!("Package repo '{name}' already configured")));
        }
        Ok(Plan::changes(changes)
            .pending(format!("Package repo '{name}' would be configured. {MIND}"))
            .done(format!("Configured package repo '{name}'")))
    }

    fn apply(&self, cx: &Cx, seen: Seen) -> Result<Applied> {
        let name = &self.name;
        let failed = |error: Error| match error {
            Error::Cancelled => Error::Cancelled,
            other => Error::Failed(format!("Failed to configure repo '{name}': {other}")),
        };
        let settings = seen.settings;
        let clean = settings.remove("clean_file").is_some_and(|flag| pkg::is_true(&flag));
        if clean && let Some(file) = settings.get("file").filter(Value::truthy) {
            let file = file.to_string();
            // Salt makes the file if it is not there.
            cx.host
                .write(Path::new(&file), b"", &Write::default())
                .map_err(|e| failed(e.into()))?;
        }
        pkg::provider(cx)?.mod_repo(cx, &self.repo(cx), &settings).map_err(failed)?;
        Ok(Applied::as_planned())
    }
}

/// Make sure that a package repository is not configured.
#[derive(Args)]
pub struct Absent {
    /// The source line (apt), or the name of the repository.
    name: String,
    /// A personal package archive of Launchpad: `owner/name`.
    #[arg(by_name)]
    ppa: Option<String>,
    /// A repository of Fedora's Copr: `owner/project`.
    #[arg(by_name)]
    copr: Option<String>,
    /// Remove this key, too.
    #[arg(by_name)]
    keyid: Option<String>,
    /// Remove keys with `apt-key` where there is one.
    #[default(true)]
    #[arg(by_name)]
    aptkey: bool,
    /// The folder of the keyrings.
    #[arg(by_name)]
    keydir: Option<String>,
    /// Options of the package manager.
    rest: Rest,
}

impl Absent {
    fn repo(&self, cx: &Cx) -> String {
        let copr = self.copr.as_deref().filter(|_| !is_apt(cx));
        // Elsewhere there are none, and Salt goes by the name.
        let has_ppas = matches!(cx.grain_str("os").as_str(), "Ubuntu" | "Mint" | "neon");
        let ppa = self.ppa.as_deref().filter(|_| has_ppas);
        repo_of(&self.name, ppa, copr).into_owned()
    }

    fn is_there(&self, cx: &Cx, repo: &str) -> Result<bool> {
        if is_apt(cx) {
            return apt::has_repo(cx, repo, &self.rest.kwargs);
        }
        Ok(!pkg::provider(cx)?.get_repo(cx, repo, &self.rest.kwargs)?.is_empty())
    }
}

impl State for Absent {
    /// The name, and whether it is there.
    type Seen = (String, bool);

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let repo = self.repo(cx);
        let there = self.is_there(cx, &repo).map_err(|error| match error {
            Error::Failed(text) => {
                Error::Failed(format!("Failed to configure repo '{repo}': {text}"))
            }
            other => other,
        })?;
        Ok((repo, there))
    }

    fn plan(&self, (repo, there): &Self::Seen) -> Result<Plan> {
        if !there {
            return Ok(Plan::nothing(format!("Package repo {repo} is absent")));
        }
        let mut plan = Plan::change("repo", repo.as_str())
            .pending(format!("Package repo '{repo}' will be removed. {MIND}"))
            .done(format!("Removed repo {repo}"));
        if let Some(id) = &self.keyid {
            plan = plan.and("keyid", id.as_str());
            plan.done.push_str(&format!(", and keyid {id}"));
        }
        Ok(plan)
    }

    fn apply(&self, cx: &Cx, (repo, _): Self::Seen) -> Result<Applied> {
        let deleted = pkg::provider(cx)?.del_repo(cx, &repo, &self.rest.kwargs);
        let gone = !self.is_there(cx, &repo)?;
        let changes = Dict::new();
        if gone {
            changes.insert("repo", repo.as_str());
        }
        if let Err(error) = deleted {
            return Ok(Applied::failed(changes, error.to_string()));
        }
        if !gone {
            return Ok(Applied::failed(changes, format!("Failed to remove repo {repo}")));
        }
        let Some(id) = &self.keyid else { return Ok(Applied::as_planned()) };
        let folder = self.keydir.as_deref().map(Path::new);
        match apt::delete_key(cx, id, self.aptkey, folder) {
            Ok(done) if done.truthy() => Ok(Applied::as_planned()),
            Ok(_) => Ok(Applied::failed(
                changes,
                format!("Removed repo {repo}, but failed to remove keyid {id}"),
            )),
            Err(error) => Ok(Applied::failed(
                changes,
                format!("Removed repo {repo}, but failed to remove keyid {id}: {error}"),
            )),
        }
    }
}
