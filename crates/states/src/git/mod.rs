//! `git`: working copies, repositories and their configuration.
//!
//! `latest` is in a file of its own: it has most of the arguments and nearly all of the cases.

mod latest;

use std::path::Path;

use halite_modules::git::{self, Config, Git};
use halite_spec::{Applied, Args, Cx, Error, Keys, Need, Plan, Result, State, states};
use halite_value::{Dict, Value, dict, entries};

pub use self::latest::Latest;

states! {
    /// Working copies, repositories and their configuration.
    "git", needs = [
        Need::function("git.version", "git module could not be loaded"),
    ]: "latest" => Latest,
    "present" => Present,
    "detached" => Detached,
    "cloned" => Cloned,
    "config_set" => ConfigSet,
    "config_unset" => ConfigUnset,
}

/// Joins what was done into one text, as Salt does.
fn joined(comments: &[String]) -> String {
    let end = if comments.len() > 1 { "." } else { "" };
    format!("{}{end}", comments.join(". "))
}

/// A failure's text, with what was done before it.
fn failure(text: &str, comments: &[String]) -> String {
    if comments.is_empty() {
        return text.to_owned();
    }
    format!("{text}\n\nChanges already made: {}", joined(comments))
}

fn is_repository(cx: &Cx, git: &Git, target: &str) -> Result<bool> {
    if cx.host.is_dir(&Path::new(target).join(".git"))? {
        return Ok(true);
    }
    is_worktree(cx, target, git.user.as_ref())
}

fn is_worktree(cx: &Cx, target: &str, user: Option<&String>) -> Result<bool> {
    let who = git::Who { user: user.cloned(), ..git::Who::default() };
    git::is_worktree(cx, target.to_owned(), who, None)
}

/// The folder where a working copy is to be made.
enum Place {
    Free,
    /// `force_clone`: what is in it goes.
    Emptied,
}

/// Looks at the folder a working copy is to be made in.
fn place(cx: &Cx, target: &str, force: bool) -> Result<Place> {
    let path = Path::new(target);
    if !cx.host.is_dir(path)? {
        return Ok(Place::Free);
    }
    if force {
        return Ok(Place::Emptied);
    }
    if cx.host.read_dir(path)?.is_empty() {
        return Ok(Place::Free);
    }
    Err(Error::failed(format!(
        "Target '{target}' exists, is non-empty and is not a git repository. Set the 'force_clone' \
         option to True to remove this directory's contents and proceed with cloning the remote \
         repository"
    )))
}

fn empty(cx: &Cx, target: &str) -> Result<()> {
    let path = Path::new(target);
    for name in cx.host.read_dir(path)? {
        cx.host.remove_all(&path.join(name))?;
    }
    Ok(())
}

/// Checks the identities as far as that can be done beforehand.
fn checked_identities(identity: &[String], word: &str) -> Result<()> {
    for path in identity {
        if !path.contains("://") && !Path::new(path).is_absolute() && !path.starts_with('~') {
            return Err(Error::failed(format!("{word} '{path}' is not an absolute path")));
        }
    }
    Ok(())
}

/// Make sure that a repository is there.
#[derive(Args)]
pub struct Present {
    /// Its path.
    name: String,
    /// Remove what is there already.
    #[default(false)]
    force: bool,
    /// Without a working copy.
    #[default(true)]
    bare: bool,
    /// The template folder.
    template: Option<String>,
    /// Where the repository itself goes.
    separate_git_dir: Option<String>,
    /// Who may write to it.
    shared: Option<Value>,
    /// Who runs git.
    user: Option<String>,
    /// For Windows.
    #[expect(dead_code, reason = "for Windows")]
    password: Option<String>,
    /// The encoding of git's output.
    #[expect(dead_code, reason = "UTF-8 is assumed")]
    output_encoding: Option<String>,
}

/// What is at a path.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Found {
    Repository,
    /// Something that goes with `force`.
    Other,
    Nothing,
}

impl State for Present {
    type Seen = Found;
    const KEYS: Keys = Keys(["name", "result", "comment", "changes"]);

    fn observe(&self, cx: &Cx) -> Result<Found> {
        let path = Path::new(&self.name);
        if !cx.host.is_dir(path)? {
            return Ok(Found::Nothing);
        }
        let git = Git { user: self.user.clone(), ..Git::at(path) };
        let there = if self.bare {
            cx.host.is_file(&path.join("HEAD"))?
        } else {
            is_repository(cx, &git, &self.name)?
        };
        if there {
            return Ok(Found::Repository);
        }
        if self.force {
            return Ok(Found::Other);
        }
        if cx.host.read_dir(path)?.is_empty() {
            return Ok(Found::Nothing);
        }
        Err(Error::failed(format!(
            "Target '{}' exists, is non-empty, and is not a git repository. Set the 'force' option \
             to True to remove this directory's contents and proceed with initializing a repository",
            self.name
        )))
    }

    fn plan(&self, found: &Found) -> Result<Plan> {
        let name = &self.name;
        let kind = if self.bare { "bare " } else { "" };
        let mut done = vec![format!("Initialized {kind}repository in {name}")];
        done.extend(self.template.as_ref().map(|path| format!("Template directory set to {path}")));
        done.extend(self.separate_git_dir.as_ref().map(|path| format!("Gitdir set to {path}")));
        Ok(match found {
            Found::Repository => Plan::nothing(""),
            Found::Nothing => Plan::change("new", name)
                .pending(format!("New {kind}repository would be created"))
                .done(joined(&done)),
            Found::Other => Plan::change("forced init", true)
                .and("new", name)
                .pending(format!(
                    "Target directory {name} exists. Since force=True, the contents of {name} would \
                     be deleted, and a {kind}repository would be initialized in its place."
                ))
                .done(joined(&done)),
        })
    }

    fn apply(&self, cx: &Cx, found: Found) -> Result<Applied> {
        let path = Path::new(&self.name);
        if found == Found::Other {
            cx.host.remove_all(path)?;
        }
        let mut with = git::Local::default();
        with.options.who.user.clone_from(&self.user);
        git::init(
            cx,
            self.name.clone(),
            self.bare,
            self.template.clone(),
            self.separate_git_dir.clone(),
            self.shared.clone(),
            with,
        )?;
        Ok(Applied::as_planned())
    }
}

/// How the remote repository lets us in.
#[derive(Args)]
struct Access {
    /// Private keys for ssh.
    #[default(Vec::new())]
    #[shown(halite_value::Value::Null)]
    identity: Vec<String>,
    /// The user for https.
    https_user: Option<String>,
    /// The password for https.
    https_pass: Option<String>,
    /// The encoding of git's output.
    #[expect(dead_code, reason = "UTF-8 is assumed")]
    output_encoding: Option<String>,
}

/// Make sure that a working copy is there; what is in it is left alone.
#[derive(Args)]
pub struct Cloned {
    /// The URL of the repository.
    name: String,
    /// Where the working copy is.
    #[arg(required)]
    target: Option<String>,
    /// The branch checked out.
    branch: Option<String>,
    /// Who runs git.
    user: Option<String>,
    /// For Windows.
    #[expect(dead_code, reason = "for Windows")]
    password: Option<String>,
    #[group]
    access: Access,
}

impl Cloned {
    fn target(&self) -> Result<&str> {
        let target = self.target.as_deref();
        let target = target.ok_or_else(|| Error::failed("'target' argument is required"))?;
        if !Path::new(target).is_absolute() {
            return Err(Error::failed("'target' path must be absolute"));
        }
        Ok(target)
    }

    fn git(&self, cx: &Cx, target: &str) -> Git {
        Git {
            user: self.user.clone(),
            identity: self.access.identity.clone(),
            saltenv: Some(cx.saltenv()),
            ..Git::at(target)
        }
    }
}

impl State for Cloned {
    const KEYS: Keys = Keys(["name", "result", "comment", "changes"]);
    /// The branch checked out; `None` without a working copy.
    type Seen = Option<String>;

    fn observe(&self, cx: &Cx) -> Result<Option<String>> {
        let target = self.target()?;
        if self.branch.as_deref() == Some("") {
            return Err(Error::failed("Invalid 'branch' argument"));
        }
        if !cx.host.exists(Path::new(target))? {
            return Ok(None);
        }
        let git = Git { identity: Vec::new(), ..self.git(cx, target) };
        git.ask(cx, ["status", "-z", "--porcelain"])?;
        if self.branch.is_none() {
            return Ok(Some(String::new()));
        }
        git.ask(cx, ["rev-parse", "--abbrev-ref", "HEAD"]).map(Some)
    }

    fn plan(&self, seen: &Option<String>) -> Result<Plan> {
        let (name, target) = (&self.name, self.target()?);
        let with = self.branch.as_ref().map(|branch| format!(" with branch '{branch}'"));
        let with = with.unwrap_or_default();
        Ok(match (seen, &self.branch) {
            (None, _) => Plan::change("new", format!("{name} => {target}"))
                .pending(format!("{name} would be cloned to {target}{with}"))
                .done(format!("{name} cloned to {target}{with}")),
            (Some(_), None) => Plan::nothing(format!("Repository already exists at {target}")),
            (Some(current), Some(branch)) if current == branch => Plan::nothing(format!(
                "Repository already exists at {target} and is checked out to branch '{branch}'"
            )),
            (Some(current), Some(branch)) => {
                Plan::change("branch", dict! { "old" => current, "new" => branch })
                    .pending(format!("Branch would be changed to '{branch}'"))
                    .done(format!("Branch changed to '{branch}'"))
            }
        })
    }

    fn apply(&self, cx: &Cx, seen: Option<String>) -> Result<Applied> {
        let target = self.target()?;
        let git = self.git(cx, target);
        if seen.is_none() {
            let (user, password) =
                (self.access.https_user.as_deref(), self.access.https_pass.as_deref());
            let url = git::with_auth(&self.name, user, password)?;
            let branch = self.branch.iter().flat_map(|branch| ["--branch", branch]);
            let line = std::iter::once("clone").chain(branch).chain(["--", &url, target]);
            let git = Git { cwd: Some("/tmp".into()), ..git };
            git.run(cx, line).map_err(|error| {
                Error::failed(format!("Clone failed: {}", git::without_command(&error)))
            })?;
            return Ok(Applied::as_planned());
        }
        let branch = self.branch.as_deref().unwrap_or_default();
        let remote = format!("origin/{branch}");
        let line = match git.ask(cx, ["rev-parse", branch]) {
            Ok(_) => vec!["checkout", branch],
            Err(_) => vec!["checkout", "-b", branch, &remote],
        };
        git.run_merged(cx, line).map_err(|error| {
            Error::failed(format!("Failed to change branch to '{branch}': {error}"))
        })?;
        Ok(Applied::as_planned())
    }
}

/// Make sure that a working copy has a revision checked out, on no branch.
#[derive(Args)]
#[arg(open)]
pub struct Detached {
    /// The URL of the repository.
    name: String,
    /// The branch, tag or commit.
    rev: String,
    /// Where the working copy is.
    target: String,
    /// The remote's name.
    #[default("origin".to_owned())]
    remote: String,
    /// Who runs git.
    user: Option<String>,
    /// For Windows.
    #[expect(dead_code, reason = "for Windows")]
    password: Option<String>,
    /// Remove what is in the target.
    #[default(false)]
    force_clone: bool,
    /// Throw local changes away.
    #[default(false)]
    force_checkout: bool,
    /// Fetch before.
    #[default(true)]
    fetch_remote: bool,
    /// Reset to HEAD before.
    #[default(false)]
    hard_reset: bool,
    /// Update submodules.
    #[default(false)]
    submodules: bool,
    #[group]
    access: Access,
}

/// How the working copy stands.
pub struct Copy {
    place: Option<Place>,
    local: Option<String>,
    /// The commit asked for is there already.
    known: bool,
    /// The remote's URL, where it is another one.
    other_url: Option<String>,
}

impl Detached {
    fn is_hash(&self) -> bool {
        self.rev.len() <= 40 && self.rev.bytes().all(|byte| byte.is_ascii_hexdigit())
    }

    fn git(&self, cx: &Cx) -> Git {
        Git {
            user: self.user.clone(),
            identity: self.access.identity.clone(),
            saltenv: Some(cx.saltenv()),
            ..Git::at(&self.target)
        }
    }

    fn quiet(&self) -> Git {
        Git { user: self.user.clone(), ..Git::at(&self.target) }
    }
}

impl State for Detached {
    type Seen = Copy;
    const KEYS: Keys = Keys(["name", "result", "comment", "changes"]);
    /// Unless the commit is known to be there, only fetching can tell.
    const REPEATS: bool = true;

    fn observe(&self, cx: &Cx) -> Result<Copy> {
        let target = &self.target;
        if self.rev.is_empty() {
            return Err(Error::failed("'' is not a valid value for the 'rev' argument"));
        }
        if !Path::new(target).is_absolute() {
            return Err(Error::failed(format!("Target '{target}' is not an absolute path")));
        }
        checked_identities(&self.access.identity, "Identity")?;
        if cx.host.is_file(Path::new(target))? {
            return Err(Error::failed(format!(
                "Target '{target}' exists and is a regular file, cannot proceed"
            )));
        }
        let git = self.quiet();
        if !is_repository(cx, &git, target)? {
            let place = Some(place(cx, target, self.force_clone)?);
            return Ok(Copy { place, local: None, known: false, other_url: None });
        }
        let local = git.ask(cx, ["rev-parse", "HEAD"]).ok();
        if self.is_hash() {
            let known = git.ask(cx, ["describe", "--always", &self.rev.to_lowercase()]).is_ok();
            return Ok(Copy { place: None, local, known, other_url: None });
        }
        let remotes = git::remotes_of(cx, &git)?;
        let own = remotes.into_iter().find(|(name, ..)| *name == self.remote);
        let other_url = match own {
            Some((_, fetch, _)) if fetch.contains(&self.name) => None,
            Some((_, fetch, _)) => Some(fetch),
            None => Some("None".to_owned()),
        };
        Ok(Copy { place: None, local, known: false, other_url })
    }

    fn plan(&self, seen: &Copy) -> Result<Plan> {
        let (name, target) = (&self.name, &self.target);
        let rev = self.rev.to_lowercase();
        let right = seen.known && seen.local.as_ref().is_some_and(|local| *local == rev);
        if right && !self.hard_reset && !self.submodules {
            return Ok(Plan::nothing("Already checked out at correct revision"));
        }
        if seen.known && !right && !self.hard_reset {
            let change = dict! { "old" => seen.local.clone(), "new" => &rev };
            return Ok(Plan::change("HEAD", change)
                .pending(format!("Commit ID {rev} would be checked out at {target}")));
        }
        Ok(Plan::unknown().pending(match (&seen.place, &seen.other_url) {
            (Some(Place::Emptied), _) => format!(
                "Target directory {target} exists. Since force_clone=True, the contents of \
                 {target} would be deleted, and {name} would be cloned into this directory."
            ),
            (Some(Place::Free), _) => format!("Repository {name} would be cloned to {target}"),
            (None, Some(_)) => format!("Remote {} would be set to {name}", self.remote),
            (None, None) if !seen.known && self.fetch_remote => {
                format!("Repository remote {} would be fetched", self.remote)
            }
            _ => format!("Hard reset to HEAD would be performed on {target}"),
        }))
    }

    fn apply(&self, cx: &Cx, seen: Copy) -> Result<Applied> {
        let (name, target, remote) = (&self.name, &self.target, &self.remote);
        let (git, quiet) = (self.git(cx), self.quiet());
        let auth = (self.access.https_user.as_deref(), self.access.https_pass.as_deref());
        let (changes, mut comments) = (Dict::new(), Vec::new());
        if let Some(place) = &seen.place {
            if matches!(place, Place::Emptied) {
                empty(cx, target)?;
                changes.insert("forced clone", true);
            }
            let url = git::with_auth(name, auth.0, auth.1)?;
            let mut line = vec!["clone", "--no-checkout"];
            if remote != "origin" {
                line.extend(["--origin", remote.as_str()]);
            }
            line.extend(["--", url.as_str(), target.as_str()]);
            let git = Git { cwd: Some("/tmp".into()), ..git.clone() };
            git.run(cx, line).map_err(|error| Error::failed(git::without_command(&error)))?;
            comments.push(format!("{name} cloned to {target}"));
        }
        if let Some(old) = &seen.other_url {
            let url = git::with_auth(name, auth.0, auth.1)?;
            git::set_remote(cx, &quiet, remote, &url, None)?;
            comments.push(format!("Remote {remote} updated from '{old}' to '{name}'"));
        }
        if !seen.known && self.fetch_remote {
            let refspecs = [
                format!("refs/heads/*:refs/remotes/{remote}/*"),
                "+refs/tags/*:refs/tags/*".into(),
            ];
            match git::fetched(cx, &git, Some(remote), true, &[], &refspecs) {
                Ok(new) if new.is_empty() => {}
                Ok(_) => {
                    comments
                        .push(format!("Remote {remote} was fetched, resulting in updated refs"));
                }
                Err(error) => {
                    let text = failure(&format!("Fetch failed:\n\n{error}"), &comments);
                    return Ok(Applied::failed(changes, text));
                }
            }
        }
        let missing = || failure(&format!("Revision '{}' does not exist", self.rev), &[]);
        let commit = if self.is_hash() {
            let rev = self.rev.to_lowercase();
            match quiet.ask(cx, ["describe", "--always", &rev]) {
                Ok(_) => rev,
                Err(_) => return Ok(Applied::failed(changes, missing())),
            }
        } else {
            let refs = git::refs_of(cx, &quiet, target)?;
            let find = |wanted: String| refs.iter().find(|(own, _)| *own == wanted);
            let found = find(format!("refs/remotes/{remote}/{}", self.rev))
                .or_else(|| find(format!("refs/tags/{}", self.rev)));
            match found {
                Some((_, commit)) => commit.clone(),
                None => return Ok(Applied::failed(changes, missing())),
            }
        };
        if self.hard_reset {
            quiet.run(cx, ["reset", "--hard", "HEAD"])?;
            comments.push("Repository was reset to HEAD before checking out revision".into());
        }
        let mut new = None;
        if seen.local.as_ref() != Some(&commit) {
            let force = self.force_checkout.then_some("--force");
            quiet.run_merged(
                cx,
                std::iter::once("checkout").chain(force).chain([commit.as_str()]),
            )?;
            comments.push(format!("Commit ID {commit} was checked out at {target}"));
            new = quiet.ask(cx, ["rev-parse", "HEAD"]).ok();
        }
        if self.submodules {
            git.run(cx, ["submodule", "update", "--init", "--recursive"])?;
            comments.push("Submodules were updated".into());
        }
        match new {
            Some(new) => {
                changes.insert("HEAD", dict! { "old" => seen.local, "new" => new });
            }
            None => comments.push("Already checked out at correct revision".into()),
        }
        Ok(Applied::changes(changes).comment(joined(&comments)))
    }
}

/// Where a value is configured.
#[derive(Args)]
struct Kept {
    /// The working copy.
    repo: Option<String>,
    /// Whose configuration.
    user: Option<String>,
    /// For Windows.
    #[expect(dead_code, reason = "for Windows")]
    password: Option<String>,
    /// The encoding of git's output.
    #[expect(dead_code, reason = "UTF-8 is assumed")]
    output_encoding: Option<String>,
    /// The user's configuration, not the working copy's.
    #[default(false)]
    #[arg(by_name)]
    global: bool,
}

impl Kept {
    fn config(&self) -> Result<Config> {
        if !self.global && self.repo.as_ref().is_none_or(String::is_empty) {
            return Err(Error::failed(
                "Non-global config options require the 'repo' argument to be set",
            ));
        }
        let cwd = self.repo.as_ref().map(Into::into);
        let git = Git { cwd, user: self.user.clone(), ..Git::default() };
        Ok(Config { git, global: self.global })
    }
}

/// Make sure that a configured value is set.
#[derive(Args)]
#[arg(open)]
pub struct ConfigSet {
    /// The key.
    name: String,
    /// The value.
    value: Option<String>,
    /// Several values.
    multivar: Option<halite_spec::Strings>,
    #[group]
    place: Kept,
}

impl ConfigSet {
    fn wanted(&self) -> (Vec<String>, String) {
        match (&self.value, &self.multivar) {
            (Some(value), _) => (vec![value.clone()], format!("'{value}'")),
            (None, several) => {
                let values = several.as_ref().map(|several| several.0.clone()).unwrap_or_default();
                let shown = Value::list(values.clone()).to_string();
                (values, shown)
            }
        }
    }
}

impl State for ConfigSet {
    type Seen = Option<Vec<String>>;

    fn observe(&self, cx: &Cx) -> Result<Option<Vec<String>>> {
        if self.value.is_some() && self.multivar.is_some() {
            return Err(Error::failed("Only one of 'value' and 'multivar' is permitted"));
        }
        self.place.config()?.get(cx, &self.name)
    }

    fn plan(&self, old: &Option<Vec<String>>) -> Result<Plan> {
        let (wanted, shown) = self.wanted();
        let kind = if self.place.global { "Global key " } else { "" };
        let name = &self.name;
        if old.as_ref() == Some(&wanted) {
            return Ok(Plan::nothing(format!("{kind}'{name}' is already set to {shown}")));
        }
        let how = if old.is_none() { "added as" } else { "set to" };
        // What would change is told without the key, what did change under it.
        let changes =
            entries! { "old" => old.clone().map(Value::list), "new" => Value::list(wanted) };
        Ok(Plan::changes(changes)
            .pending(format!("{kind}'{name}' would be {how} {shown}"))
            .done(format!("{kind}'{name}' was {how} {shown}")))
    }

    fn apply(&self, cx: &Cx, old: Option<Vec<String>>) -> Result<Applied> {
        let (wanted, shown) = self.wanted();
        let config = self.place.config()?;
        let kind = if self.place.global { "global key " } else { "" };
        let failed = format!("Failed to set {kind}'{}' to {shown}", self.name);
        config.set(cx, &self.name, &wanted, false).map_err(|error| {
            Error::failed(format!("{failed}: {}", git::without_command(&error)))
        })?;
        let new = config.get(cx, &self.name)?;
        let changes = Dict::new();
        if new != old {
            let change =
                dict! { "old" => old.map(Value::list), "new" => new.clone().map(Value::list) };
            changes.insert(self.name.as_str(), change);
        }
        Ok(if new.as_ref() == Some(&wanted) {
            Applied::changes(changes)
        } else {
            Applied::failed(changes, failed)
        })
    }
}

/// Make sure that a configured value is not set.
#[derive(Args)]
#[arg(open)]
pub struct ConfigUnset {
    /// The key; an expression.
    name: String,
    /// Only values that fit.
    value_regex: Option<String>,
    #[group]
    place: Kept,
    /// Also where there are several values.
    #[default(false)]
    #[arg(by_name)]
    all: bool,
}

impl State for ConfigUnset {
    type Seen = Vec<(String, Vec<String>)>;

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let config = self.place.config()?;
        let key = format!("^{}$", self.name.trim_start_matches('^').trim_end_matches('$'));
        config.matching(cx, &key, self.value_regex.as_deref())
    }

    fn plan(&self, found: &Self::Seen) -> Result<Plan> {
        if found.is_empty() {
            return Ok(Plan::nothing("No matching keys are set"));
        }
        let show = |(key, values): &(String, Vec<String>)| format!("{key} ({})", values.join(", "));
        let many: Vec<String> =
            found.iter().filter(|(_, values)| values.len() > 1).map(show).collect();
        if !many.is_empty() && !self.all {
            let what = match self.value_regex {
                Some(_) => {
                    "Multiple values are matched by value_regex for the following keys (set 'all' to \
                     True to force removal)"
                }
                None => {
                    "Multivar(s) matched by the key expression (set 'all' to True to force removal)"
                }
            };
            return Err(Error::failed(format!("{what}: {}", many.join("; "))));
        }
        let changes: Dict =
            found.iter().map(|(key, values)| (key, Value::list(values.clone()))).collect();
        Ok(Plan::changes(changes)
            .pending(format!("{} key(s) would have value(s) unset", found.len()))
            .done("Value(s) successfully unset"))
    }

    fn apply(&self, cx: &Cx, found: Self::Seen) -> Result<Applied> {
        let config = self.place.config()?;
        let mut failed = Vec::new();
        for (key, _) in &found {
            if let Err(error) = config.unset(cx, key, self.value_regex.as_deref(), self.all) {
                tracing::error!("Failed to unset '{key}': {error}");
                failed.push(key.clone());
            }
        }
        Applied::if_done(failed.is_empty(), || {
            format!(
                "Error(s) occurred unsetting values for the following keys (see the minion log for \
             details): {}",
                failed.join(", ")
            )
        })
    }
}
