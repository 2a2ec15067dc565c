//! `git.latest`: a working copy that follows a remote branch, tag or commit.
//!
//! Looking asks the remote for its references (`ls-remote`) and the working copy for its own; from
//! both follows what has to be done, except where only a fetch can tell whether the way forward is
//! a fast-forward. Texts are Salt's, and so is what counts as a change: fetched references and a
//! new tracking branch alone do not, they are told in the comment.

use std::path::Path;

use halite_modules::git::{self, Git};
use halite_spec::{Applied, Args, Cx, Error, Keys, Plan, Result, State};
use halite_value::{Dict, Value, dict, entries};

use super::{Place, checked_identities, empty, failure, is_repository, is_worktree, joined, place};

/// Make sure that a working copy is there and up to date.
#[derive(Args)]
#[arg(open)]
pub struct Latest {
    /// The URL of the repository.
    name: String,
    /// Where the working copy is.
    #[arg(required)]
    target: Option<String>,
    /// The branch, tag or commit; the remote's HEAD by default.
    #[default(Some("HEAD".to_owned()))]
    rev: Option<String>,
    /// The local branch; whichever is checked out if none is given.
    branch: Option<String>,
    /// Who runs git.
    user: Option<String>,
    /// For Windows.
    #[expect(dead_code, reason = "for Windows")]
    password: Option<String>,
    /// Move the local HEAD; only fetch otherwise.
    #[default(true)]
    update_head: bool,
    /// Throw local changes away when changing the branch.
    #[default(false)]
    force_checkout: bool,
    /// Remove what is in the target.
    #[default(false)]
    force_clone: bool,
    /// Also fetch what is not a fast-forward.
    #[default(false)]
    force_fetch: bool,
    /// Throw local changes and commits away: True, or `remote-changes` for only when there is
    /// something new.
    #[default(Value::Bool(false))]
    force_reset: Value,
    /// Update submodules.
    #[default(false)]
    submodules: bool,
    /// Without a working copy.
    #[default(false)]
    bare: bool,
    /// As the remote is.
    #[default(false)]
    mirror: bool,
    /// The remote's name.
    #[default("origin".to_owned())]
    remote: String,
    /// Fetch tags.
    #[default(true)]
    fetch_tags: bool,
    /// Remove local tags the remote does not have.
    #[default(true)]
    sync_tags: bool,
    /// Clone only so many commits.
    depth: Option<i64>,
    /// Private keys for ssh.
    #[default(Vec::new())]
    #[shown(halite_value::Value::Null)]
    identity: Vec<String>,
    /// The user for https.
    https_user: Option<String>,
    /// The password for https.
    https_pass: Option<String>,
    /// Fetch only these branches.
    #[default("*".to_owned())]
    refspec_branch: String,
    /// Fetch only these tags.
    #[default("*".to_owned())]
    refspec_tag: String,
    /// The encoding of git's output.
    #[expect(dead_code, reason = "UTF-8 is assumed")]
    output_encoding: Option<String>,
}

/// What a revision is on the remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Commit,
    Branch,
    Tag,
}

/// The tracking branch wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Upstream {
    /// None at all.
    No,
    /// Whichever there is.
    Any,
    Is(String),
}

/// What the remote has.
struct Remote {
    refs: Vec<(String, String)>,
    head: Option<String>,
    default_branch: Option<String>,
    /// The commit wanted and what it is named by.
    rev: Option<(String, Kind)>,
    upstream: Upstream,
    /// The commit, for people.
    place: String,
}

/// What the working copy has.
struct Local {
    rev: Option<String>,
    branch: Option<String>,
    branches: Vec<String>,
    tags: Vec<String>,
    base_rev: Option<String>,
    remote_url: Option<String>,
    dirty: bool,
    /// The commit wanted is there already.
    has_rev: bool,
    /// Whether the way to it is a fast-forward, as far as known.
    forward: Option<bool>,
    /// `None`: no branch, so none is possible.
    upstream: Option<Option<String>>,
}

impl Local {
    /// What becomes of the working copy, as far as known.
    fn merge_action(&self) -> &'static str {
        match self.forward {
            Some(false) => "hard-reset",
            Some(true) => "fast-forwarded",
            None => "updated",
        }
    }
}

/// Everything seen.
pub struct Seen {
    remote: Remote,
    local: Option<Local>,
    place: Place,
}

/// The commit a name stands for, if it is here.
fn commit(cx: &Cx, git: &Git, name: &str) -> Option<String> {
    git.ask(cx, ["rev-parse", &format!("{name}^{{commit}}")]).ok()
}

fn short(rev: &str) -> &str {
    rev.get(..7).unwrap_or(rev)
}

fn shorter(rev: Option<&String>) -> &str {
    rev.map_or("None", |rev| short(rev))
}

fn equal(one: Option<&String>, other: Option<&(String, Kind)>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some((other, Kind::Commit))) => one.starts_with(other.as_str()),
        (Some(one), Some((other, _))) => one == other,
        _ => false,
    }
}

impl Latest {
    fn target(&self) -> Result<&str> {
        let target = self.target.as_deref().filter(|target| !target.is_empty());
        let target = target.ok_or_else(|| Error::failed("'target' argument is required"))?;
        if !Path::new(target).is_absolute() {
            return Err(Error::failed(format!("target '{target}' is not an absolute path")));
        }
        Ok(target)
    }

    fn is_bare(&self) -> bool {
        self.bare || self.mirror
    }

    fn resets(&self) -> bool {
        self.force_reset.truthy()
    }

    /// Only when the remote has something new.
    fn resets_for_news(&self) -> bool {
        self.force_reset == *"remote-changes"
    }

    fn url(&self) -> Result<String> {
        git::with_auth(&self.name, self.https_user.as_deref(), self.https_pass.as_deref())
            .map_err(|error| Error::failed(error.to_string()))
    }

    /// Git in the working copy, for what needs no network.
    fn quiet(&self) -> Result<Git> {
        Ok(Git { user: self.user.clone(), ..Git::at(self.target()?) })
    }

    fn abroad(&self, cx: &Cx, cwd: Option<&str>) -> Git {
        Git {
            cwd: cwd.map(Into::into),
            user: self.user.clone(),
            identity: self.identity.clone(),
            saltenv: Some(cx.saltenv()),
            ..Git::default()
        }
    }

    /// The revision; nothing is none (`rev: null`), and refused.
    fn rev(&self) -> &str {
        self.rev.as_deref().unwrap_or_default()
    }

    fn check(&self, cx: &Cx) -> Result<()> {
        let target = self.target()?;
        if self.remote.is_empty() {
            return Err(Error::failed("'remote' argument is required"));
        }
        if self.rev().is_empty() {
            let shown = if self.rev.is_some() { "" } else { "None" };
            return Err(Error::failed(format!(
                "'{shown}' is not a valid value for the 'rev' argument"
            )));
        }
        if !matches!(self.force_reset, Value::Bool(_)) && !self.resets_for_news() {
            return Err(Error::failed(
                "'force_reset' must be one of True, False, or 'remote-changes'",
            ));
        }
        checked_identities(&self.identity, "identity")?;
        if cx.host.is_file(Path::new(target))? {
            return Err(Error::failed(format!(
                "Target '{target}' exists and is a regular file, cannot proceed"
            )));
        }
        if self.rev() != "HEAD" && self.is_bare() {
            return Err(Error::failed(
                "'rev' is not compatible with the 'mirror' and 'bare' arguments",
            ));
        }
        Ok(())
    }

    fn look_abroad(&self, cx: &Cx) -> Result<Remote> {
        let refs = git::refs_of(cx, &self.abroad(cx, None), &self.url()?).map_err(|error| {
            Error::failed(format!("Failed to check remote refs: {}", git::without_command(&error)))
        })?;
        let find =
            |name: &str| refs.iter().find(|(own, _)| own == name).map(|(_, sha)| sha.clone());
        let head = find("HEAD");
        let default_branch = head.as_ref().and_then(|head| {
            let mut branches = refs.iter().filter(|(_, sha)| sha == head);
            branches.find_map(|(name, _)| name.strip_prefix("refs/heads/")).map(str::to_owned)
        });
        let rev = self.rev();
        let hash = rev.len() <= 40 && rev.bytes().all(|byte| byte.is_ascii_hexdigit());
        let (found, upstream) = if self.is_bare() {
            (None, Upstream::No)
        } else if rev == "HEAD" {
            (head.clone().map(|sha| (sha, Kind::Commit)), Upstream::Any)
        } else if let Some(sha) = find(&format!("refs/heads/{rev}")) {
            (Some((sha, Kind::Branch)), Upstream::Is(format!("{}/{rev}", self.remote)))
        } else if let Some(sha) =
            find(&format!("refs/tags/{rev}^{{}}")).or_else(|| find(&format!("refs/tags/{rev}")))
        {
            (Some((sha, Kind::Tag)), Upstream::No)
        } else if hash {
            (Some((rev.to_lowercase(), Kind::Commit)), Upstream::No)
        } else {
            (None, Upstream::No)
        };
        let kind = found.as_ref().map(|(_, kind)| *kind);
        if self.depth.is_some() && !matches!(kind, Some(Kind::Branch | Kind::Tag)) {
            return Err(Error::failed(
                "When 'depth' is used, 'rev' must be set to the name of a branch or tag on the \
                 remote repository",
            ));
        }
        if found.is_none() && !self.is_bare() && rev != "HEAD" {
            return Err(Error::failed(format!(
                "No revision matching '{rev}' exists in the remote repository"
            )));
        }
        let place = match (&found, &upstream) {
            (Some((sha, Kind::Commit)), _) if rev == "HEAD" => {
                format!("remote HEAD ({})", short(sha))
            }
            (Some((sha, Kind::Commit)), _) => short(sha).to_owned(),
            (Some((sha, Kind::Branch)), Upstream::Is(name)) => format!("{name} ({})", short(sha)),
            (Some((sha, _)), _) => format!("{rev} ({})", short(sha)),
            (None, _) => "None".to_owned(),
        };
        Ok(Remote { refs, head, default_branch, rev: found, upstream, place })
    }

    fn is_there(&self, cx: &Cx) -> Result<bool> {
        let target = self.target()?;
        if self.is_bare() {
            let refs = cx.host.is_dir(&Path::new(target).join("refs"))?;
            return Ok(refs || is_worktree(cx, target, self.user.as_ref())?);
        }
        is_repository(cx, &self.quiet()?, target)
    }

    fn changes_branch(&self, local: Option<&String>) -> bool {
        self.branch.is_some() && self.branch.as_ref() != local
    }

    fn look_here(&self, cx: &Cx, remote: &Remote) -> Result<Local> {
        let git = self.quiet()?;
        let names = |place: &str| -> Result<Vec<String>> {
            let text = git.ask(cx, ["for-each-ref", "--format", "%(refname:short)", place])?;
            Ok(text.lines().map(|line| line.trim().to_owned()).filter(|l| !l.is_empty()).collect())
        };
        let short_name = |rev: &str| git.ask(cx, ["rev-parse", "--abbrev-ref", rev]).ok();
        let mut local = Local {
            branches: names("refs/heads/")?,
            tags: names("refs/tags/")?,
            rev: git.ask(cx, ["rev-parse", "HEAD"]).ok(),
            branch: short_name("HEAD"),
            base_rev: None,
            remote_url: None,
            dirty: false,
            has_rev: false,
            forward: None,
            upstream: None,
        };
        if !self.is_bare() && remote.rev.is_none() && local.rev.is_some() {
            return Err(Error::failed(
                "Remote repository is empty, cannot update from a non-empty to an empty repository",
            ));
        }
        let base_branch;
        (local.base_rev, base_branch) = self.base(cx, &git, remote, &local);
        let mut remotes = git::remotes_of(cx, &git)?.into_iter();
        local.remote_url =
            remotes.find(|(name, ..)| *name == self.remote).map(|(_, fetch, _)| fetch);
        local.dirty =
            !self.is_bare() && git.ask(cx, ["diff", "HEAD"]).is_ok_and(|text| !text.is_empty());
        local.has_rev = self.has_wanted(cx, &git, remote, &local)?;
        local.forward = if local.dirty && !self.resets_for_news() {
            Some(false)
        } else if !local.has_rev {
            // Only a fetch can tell.
            None
        } else if let (Some(base), Some((sha, _))) = (&local.base_rev, &remote.rev) {
            Some(self.is_ancestor(cx, base, sha)?)
        } else {
            Some(true)
        };
        local.upstream = base_branch.map(|branch| short_name(&format!("{branch}@{{upstream}}")));
        Ok(local)
    }

    /// The commit and the branch that will be checked out before anything is merged.
    fn base(
        &self,
        cx: &Cx,
        git: &Git,
        remote: &Remote,
        local: &Local,
    ) -> (Option<String>, Option<String>) {
        match &self.branch {
            Some(wanted) if self.changes_branch(local.branch.as_ref()) => {
                if local.branches.contains(wanted) {
                    (commit(cx, git, wanted), Some(wanted.clone()))
                } else {
                    let sha = remote.rev.as_ref().map(|(sha, _)| sha.clone());
                    (sha, local.branch.clone())
                }
            }
            _ => (local.rev.clone(), local.branch.clone()),
        }
    }

    /// Tells whether the commit wanted is here already, under the name it should have.
    fn has_wanted(&self, cx: &Cx, git: &Git, remote: &Remote, local: &Local) -> Result<bool> {
        let Some((sha, kind)) = &remote.rev else { return Ok(false) };
        let known = || commit(cx, git, sha).is_some();
        match (kind, &remote.upstream) {
            (Kind::Commit, _) => {
                let base = local.base_rev.as_ref();
                Ok(base.is_some_and(|base| base.starts_with(sha.as_str())) || known())
            }
            (Kind::Branch, Upstream::Is(name)) => {
                let same = || git.ask(cx, ["rev-parse", name]).ok().as_ref() == Some(sha);
                Ok(local.remote_url.is_some() && known() && same())
            }
            (Kind::Branch, _) => Ok(false),
            (Kind::Tag, _) => {
                let has_tag = local.tags.iter().any(|tag| tag == self.rev());
                let own = has_tag.then(|| commit(cx, git, self.rev())).flatten();
                let (known, same) = (known(), own.as_ref() == Some(sha));
                if known && has_tag && !same && !self.resets() {
                    return Err(Error::failed(format!(
                        "'{}' is a tag, but the remote SHA1 for this tag ({}) doesn't match the \
                         local SHA1 ({}). Set 'force_reset' to True to force this update.",
                        self.rev(),
                        short(sha),
                        shorter(own.as_ref())
                    )));
                }
                Ok(known && same)
            }
        }
    }

    fn is_ancestor(&self, cx: &Cx, one: &str, other: &str) -> Result<bool> {
        let line = ["merge-base", "--is-ancestor", one, other];
        Ok(self.quiet()?.ask_all(cx, line)?.code == 0)
    }

    fn not_forward(&self, remote: &Remote, local: &Local) -> String {
        let pre = shorter(local.base_rev.as_ref());
        let post = remote.rev.as_ref().map_or("None", |(sha, _)| short(sha));
        let from = if local.dirty && pre != post { format!("from {pre} ") } else { String::new() };
        let after = self.branch.as_ref().filter(|_| self.changes_branch(local.branch.as_ref()));
        let after = after.map(|own| format!(" (after checking out local branch '{own}')"));
        let after = after.unwrap_or_default();
        let why = if local.dirty {
            "there are uncommitted changes. Set 'force_reset' to True (or 'remote-changes') to \
             force this update and discard these changes."
        } else {
            "this is not a fast-forward merge. Set 'force_reset' to True to force this update."
        };
        let hint = self.branch_hint(remote, local);
        format!("Repository would be updated {from}to {post}{after}, but {why}{hint}")
    }

    /// Another branch may be what was meant; with a space before it.
    fn branch_hint(&self, remote: &Remote, local: &Local) -> String {
        let branch = shorter_or_name(local.branch.as_ref());
        let follows_head = self.rev() == "HEAD";
        let meant = if follows_head { remote.default_branch.as_deref() } else { Some(self.rev()) };
        let Some(meant) = meant.filter(|own| self.branch.is_none() && *own != branch) else {
            return String::new();
        };
        if follows_head {
            format!(
                " The default remote branch ({meant}) differs from the local branch ({branch}). \
                 This could be caused by changing the default remote branch, or if the local \
                 branch was manually changed. Rather than forcing an update, it may be advisable \
                 to set the 'branch' argument to '{meant}' instead. To ensure that this state \
                 follows the '{meant}' branch instead of the remote HEAD, set the 'rev' argument \
                 to '{meant}'."
            )
        } else {
            format!(
                " The desired rev ({meant}) differs from the name of the local branch ({branch}), \
                 if the desired rev is a branch name then a forced update could possibly be \
                 avoided by setting the 'branch' argument to '{meant}' instead."
            )
        }
    }

    fn up_to_date(&self, actions: &[String], dirty: bool, would: bool) -> Result<String> {
        let changes = match dirty {
            true => {
                ", but with uncommitted changes. Set 'force_reset' to True to purge uncommitted \
                 changes."
            }
            false => "",
        };
        let made = match (actions, would) {
            ([], _) => String::new(),
            (_, true) => format!("\n\nChanges that would be made: {}", joined(actions)),
            (_, false) => format!("\n\nChanges made: {}", joined(actions)),
        };
        Ok(format!("Repository {} is up-to-date{changes}{made}", self.target()?))
    }

    /// What to do about the tracking branch, as (option, verb, name).
    fn tracking(remote: &Remote, local: &Local) -> Option<(Vec<String>, &'static str, String)> {
        let current = local.upstream.clone().flatten();
        match (&remote.upstream, current) {
            (Upstream::Is(wanted), None) => {
                Some((vec!["--set-upstream-to".into(), wanted.clone()], "set to", wanted.clone()))
            }
            (Upstream::Is(wanted), Some(own)) if own != *wanted => Some((
                vec!["--set-upstream-to".into(), wanted.clone()],
                "updated to",
                wanted.clone(),
            )),
            (Upstream::No, Some(_)) => {
                Some((vec!["--unset-upstream".into()], "unset", String::new()))
            }
            _ => None,
        }
    }

    /// Tags to come and to go.
    fn tag_changes(&self, remote: &Remote, local: &Local) -> (Vec<String>, Vec<String>) {
        let theirs: Vec<&str> = remote
            .refs
            .iter()
            .filter_map(|(name, _)| name.strip_prefix("refs/tags/"))
            .filter(|name| !name.ends_with("^{}"))
            .collect();
        let new = theirs.iter().filter(|name| !local.tags.iter().any(|own| own == *name));
        let gone = local.tags.iter().filter(|name| !theirs.contains(&name.as_str()));
        (new.map(|name| (*name).to_owned()).collect(), gone.cloned().collect())
    }

    /// The remote gets another address, and whatever is there afterwards is only told in short.
    fn plan_another_remote(&self, sha: &str, matches: bool, local: &Local) -> Result<Plan> {
        let changes = Dict::new();
        let old = local.remote_url.as_deref().map_or_else(|| "None".into(), git::redacted);
        let new = git::redacted(&self.url()?);
        let mut actions =
            vec![format!("Remote '{}' would be changed from {old} to {new}", self.remote)];
        if local.remote_url.is_none() {
            changes.insert("new", format!("{} => {}", self.name, self.remote));
        }
        if !local.has_rev {
            actions.push("Remote would be fetched".to_owned());
        }
        if !matches && self.update_head {
            changes.insert("revision", dict! { "old" => local.rev.clone(), "new" => sha });
            if local.forward == Some(false) {
                changes.insert("forced update", true);
            }
            let action = local.merge_action();
            actions.push(format!("Repository would be {action} to {}", short(sha)));
        }
        if !changes.is_empty() {
            return Ok(Plan { unknown: true, ..Plan::changes(changes).pending(joined(&actions)) });
        }
        let pending = match matches {
            true => self.up_to_date(&actions, false, true)?,
            false => joined(&actions),
        };
        Ok(Plan { test_result: Some(true), ..Plan::unknown().pending(pending) })
    }

    fn plan_update(&self, remote: &Remote, local: &Local) -> Result<Plan> {
        let target = self.target()?;
        if self.is_bare() {
            let text = format!("Bare repository at {target} would be fetched");
            let pending = self.up_to_date(&[text], false, true)?;
            return Ok(Plan { test_result: Some(true), ..Plan::unknown().pending(pending) });
        }
        let Some((sha, _)) = &remote.rev else {
            return Ok(Plan::nothing(self.up_to_date(&[], false, true)?));
        };
        let matches = equal(local.rev.as_ref(), remote.rev.as_ref());
        let switches = self.changes_branch(local.branch.as_ref());
        if local.dirty && matches {
            if self.force_reset != Value::Bool(true) {
                return Ok(Plan::nothing(self.up_to_date(&[], true, true)?));
            }
            return Ok(Plan { unknown: true, ..Plan::change("forced update", true) }.pending(format!(
                "{target} is up-to-date, but with uncommitted changes. Since 'force_reset' is set \
                 to True, these local changes would be reset. To only reset when there are changes \
                 in the remote repository, set 'force_reset' to 'remote-changes'."
            )));
        }
        if local.has_rev && !matches && !self.update_head && !switches {
            return Ok(Plan::nothing(self.left_behind(remote, local)));
        }
        if local.forward == Some(false) && !self.resets() {
            return Err(Error::failed(self.not_forward(remote, local)));
        }
        let changes = Dict::new();
        let mut actions = Vec::new();
        if local.remote_url.as_ref() != Some(&self.url()?) {
            return self.plan_another_remote(sha, matches, local);
        }
        let (new_tags, gone_tags) = self.tag_changes(remote, local);
        if !local.has_rev {
            actions.push(format!("Remote '{}' would be fetched", self.remote));
        }
        if !new_tags.is_empty() {
            changes.insert("new_tags", Value::list(new_tags.clone()));
        }
        if self.sync_tags && !gone_tags.is_empty() {
            let names = gone_tags.join(", ");
            actions.push(format!(
                "The following tags would be removed from the local checkout: {names}"
            ));
            changes.insert("deleted_tags", Value::list(gone_tags));
        }
        let branch = self.branch.as_deref().unwrap_or_default();
        let action = local.merge_action();
        if !matches && (self.update_head || switches) {
            if local.forward == Some(false) {
                changes.insert("forced update", true);
            }
            changes.insert("revision", dict! { "old" => local.rev.clone(), "new" => sha });
        }
        if switches {
            if local.branches.iter().any(|own| own == branch) {
                actions.push(format!(
                    "Branch '{branch}' would be checked out and {action} to {}",
                    short(sha)
                ));
            } else {
                actions.push(format!(
                    "New branch '{branch}' would be checked out, with {} as a starting point",
                    remote.place
                ));
            }
        } else if !matches {
            let (old, new) = (shorter(local.rev.as_ref()), short(sha));
            actions.push(if !self.update_head {
                format!(
                    "Local HEAD ({old}) does not match {} but update_head=False, HEAD would not be \
                     updated locally",
                    remote.place
                )
            } else {
                let action = match local.forward {
                    Some(true) => "fast-forwarded",
                    _ if self.resets() && local.has_rev => "hard-reset",
                    _ => "updated",
                };
                format!("Repository would be {action} from {old} to {new}")
            });
        }
        if let Some((_, verb, name)) = Self::tracking(remote, local) {
            actions.push(format!("Tracking branch would be {verb} {name}").trim_end().to_owned());
        }
        if actions.is_empty() && changes.is_empty() {
            return Ok(Plan::nothing(self.up_to_date(&[], false, true)?));
        }
        if changes.is_empty() {
            let pending = match matches || self.update_head {
                true => self.up_to_date(&actions, false, true)?,
                false => joined(&actions),
            };
            return Ok(Plan { test_result: Some(true), ..Plan::unknown().pending(pending) });
        }
        Ok(Plan { unknown: true, ..Plan::changes(changes).pending(joined(&actions)) })
    }

    /// What is said when the remote has moved on and the local HEAD shall not.
    fn left_behind(&self, remote: &Remote, local: &Local) -> String {
        let place = if self.rev() == "HEAD" {
            remote.place.replacen("remote HEAD", "Remote head", 1)
        } else {
            remote.place.clone()
        };
        format!(
            "{place} is already present and local HEAD ({}) does not match, but \
             update_head=False. HEAD has not been updated locally.",
            shorter(local.rev.as_ref())
        )
    }

    fn clone(&self, cx: &Cx, remote: &Remote, place: &Place) -> Result<Applied> {
        let (name, target) = (&self.name, self.target()?);
        let (changes, mut comments) = (Dict::new(), Vec::new());
        if matches!(place, Place::Emptied) {
            empty(cx, target)?;
            changes.insert("forced clone", true);
        }
        let mut line = vec!["clone".to_owned()];
        let mut as_what = "";
        if self.mirror {
            line.push("--mirror".into());
            as_what = " as mirror";
        } else if self.bare {
            line.push("--bare".into());
            as_what = " as bare repository";
        }
        if self.remote != "origin" {
            line.extend(["--origin".to_owned(), self.remote.clone()]);
        }
        if let Some(depth) = self.depth {
            line.extend([
                "--depth".into(),
                depth.to_string(),
                "--branch".into(),
                self.rev().to_owned(),
            ]);
        }
        line.extend(["--".to_owned(), self.url()?, target.to_owned()]);
        let abroad = self.abroad(cx, Some("/tmp"));
        if let Err(error) = abroad.run(cx, line) {
            let text = format!("Clone failed: {}", git::without_command(&error));
            return Ok(Applied::failed(changes, failure(&text, &comments)));
        }
        changes.insert("new", format!("{name} => {target}"));
        comments.push(format!("{name} cloned to {target}{as_what}"));
        let done = self.check_out(cx, remote, &mut comments);
        let git = self.quiet()?;
        if let Some(new) = git.ask(cx, ["rev-parse", "HEAD"]).ok().filter(|_| done.is_ok()) {
            changes.insert("revision", dict! { "old" => Value::Null, "new" => new });
        }
        Ok(match done {
            Ok(()) => Applied::changes(changes).comment(joined(&comments)),
            Err(error) => {
                let text = git::without_command(&error);
                Applied::failed(changes, failure(&text, &comments))
            }
        })
    }

    /// Brings a fresh clone to the branch and commit wanted.
    fn check_out(&self, cx: &Cx, remote: &Remote, comments: &mut Vec<String>) -> Result<()> {
        let git = self.quiet()?;
        if self.is_bare() {
            return Ok(());
        }
        let Some((sha, kind)) = &remote.rev else { return Ok(()) };
        let list = |place: &str| -> Result<Vec<String>> {
            let text = git.ask(cx, ["for-each-ref", "--format", "%(refname:short)", place])?;
            Ok(text.lines().map(str::to_owned).collect())
        };
        if *kind == Kind::Tag && !list("refs/tags/")?.iter().any(|tag| tag == self.rev()) {
            return Err(Error::failed(format!(
                "Revision '{}' does not exist in clone",
                self.rev()
            )));
        }
        if let Some(branch) = &self.branch
            && !list("refs/heads/")?.contains(branch)
        {
            let from = self.start(remote, sha);
            git.run_merged(cx, ["checkout", "-b", branch, &from])?;
            let place = &remote.place;
            comments
                .push(format!("Branch '{branch}' checked out, with {place} as a starting point"));
        }
        let local = git.ask(cx, ["rev-parse", "HEAD"]).ok();
        let branch = git.ask(cx, ["rev-parse", "--abbrev-ref", "HEAD"]).ok();
        if branch.is_none() && remote.head.is_none() {
            return Err(Error::failed(
                "Remote HEAD refers to a ref that does not exist. This can happen when the default \
                 branch on the remote repository is renamed or deleted. If you are unable to fix \
                 the remote repository, you can work around this by setting the 'branch' argument \
                 (which will ensure that the named branch is created if it does not already exist).",
            ));
        }
        if !equal(local.as_ref(), remote.rev.as_ref()) {
            git.run(cx, ["reset", "--hard", sha])?;
            comments.push(format!("Repository was reset to {}", remote.place));
        }
        let name = format!("{}@{{upstream}}", branch.clone().unwrap_or_default());
        let upstream = git.ask(cx, ["rev-parse", "--abbrev-ref", &name]).ok();
        let copy = Local {
            rev: local,
            branch,
            branches: list("refs/heads/")?,
            tags: Vec::new(),
            base_rev: None,
            remote_url: None,
            dirty: false,
            has_rev: true,
            forward: Some(true),
            upstream: Some(upstream),
        };
        self.track(cx, remote, &copy, comments)?;
        self.update_submodules(cx)
    }

    /// Where a new branch starts.
    fn start(&self, remote: &Remote, sha: &str) -> String {
        match &remote.upstream {
            _ if self.rev() == "HEAD" => sha.to_owned(),
            Upstream::Is(name) => name.clone(),
            _ => self.rev().to_owned(),
        }
    }

    fn track(
        &self,
        cx: &Cx,
        remote: &Remote,
        local: &Local,
        comments: &mut Vec<String>,
    ) -> Result<()> {
        let Some((options, verb, name)) = Self::tracking(remote, local) else { return Ok(()) };
        let known = self.branch.as_ref().is_none_or(|own| local.branches.contains(own));
        if !known && verb != "unset" {
            return Ok(());
        }
        if local.branch.is_none() {
            return Err(Error::failed(
                "Cannot set/unset upstream tracking branch, local HEAD refers to nonexistent \
                 branch. This may have been caused by cloning a remote repository for which the \
                 default branch was renamed or deleted. If you are unable to fix the remote \
                 repository, you can work around this by setting the 'branch' argument (which will \
                 ensure that the named branch is created if it does not already exist).",
            ));
        }
        self.quiet()?.run(cx, std::iter::once("branch".to_owned()).chain(options))?;
        comments.push(format!("Tracking branch was {verb} {name}").trim_end().to_owned());
        Ok(())
    }

    fn update_submodules(&self, cx: &Cx) -> Result<()> {
        if !self.submodules {
            return Ok(());
        }
        let git = self.abroad(cx, Some(self.target()?));
        match git.run(cx, ["submodule", "update", "--init", "--recursive"]) {
            Ok(_) => Ok(()),
            Err(error) => Err(Error::failed(format!(
                "Failed to update submodules: {}",
                git::without_command(&error)
            ))),
        }
    }

    fn fetch(&self, cx: &Cx, comments: &mut Vec<String>) -> Result<()> {
        let refspecs = if self.fetch_tags {
            let (branch, tag, remote) = (&self.refspec_branch, &self.refspec_tag, &self.remote);
            vec![
                format!("refs/heads/{branch}:refs/remotes/{remote}/{branch}"),
                format!("+refs/tags/{tag}:refs/tags/{tag}"),
            ]
        } else {
            Vec::new()
        };
        let git = self.abroad(cx, Some(self.target()?));
        let remote = Some(self.remote.as_str());
        let new = git::fetched(cx, &git, remote, self.force_fetch, &[], &refspecs).map_err(|error| {
            Error::failed(format!(
                "Fetch failed. Set 'force_fetch' to True to force the fetch if the failure was due \
                 to not being able to fast-forward. Output of the fetch command follows:\n\n{}",
                git::without_command(&error)
            ))
        })?;
        if self.is_bare() {
            let news = if new.is_empty() { "" } else { ", resulting in updated refs" };
            comments.push(format!("Bare repository at {} was fetched{news}", self.target()?));
        } else if !new.is_empty() {
            comments.push(format!("{} was fetched, resulting in updated refs", self.name));
        }
        Ok(())
    }

    /// Brings a working copy up to date; what was done goes into `comments` and `changes`.
    fn update(
        &self,
        cx: &Cx,
        remote: &Remote,
        local: &Local,
        comments: &mut Vec<String>,
        changes: &Dict,
    ) -> Result<()> {
        let git = self.quiet()?;
        if self.is_bare() {
            return self.fetch(cx, comments);
        }
        let Some((sha, _)) = &remote.rev else { return Ok(()) };
        let url = self.url()?;
        if local.remote_url.as_ref() != Some(&url) {
            git::set_remote(cx, &git, &self.remote, &url, None)?;
            let new = git::redacted(&url);
            match &local.remote_url {
                Some(old) => {
                    let old = git::redacted(old);
                    comments.push(format!("Remote '{}' changed from {old} to {new}", self.remote));
                }
                None => {
                    comments.push(format!("Remote '{}' set to {new}", self.remote));
                    changes.insert("new", format!("{} => {}", self.name, self.remote));
                }
            }
        }
        let (new_tags, gone_tags) = self.tag_changes(remote, local);
        let stale = !new_tags.is_empty() || !gone_tags.is_empty();
        if !new_tags.is_empty() {
            changes.insert("new_tags", Value::list(new_tags));
        }
        if self.sync_tags && !gone_tags.is_empty() {
            for tag in &gone_tags {
                git.run(cx, ["tag", "-d", tag])?;
            }
            let names = gone_tags.join(", ");
            comments
                .push(format!("The following tags were removed from the local checkout: {names}"));
            changes.insert("deleted_tags", Value::list(gone_tags));
        }
        let mut forward = local.forward;
        let matches = equal(local.rev.as_ref(), remote.rev.as_ref());
        let switches = self.changes_branch(local.branch.as_ref());
        if !local.has_rev || stale {
            self.fetch(cx, comments)?;
            let commit = format!("{sha}^{{commit}}");
            if let Err(error) = git.ask(cx, ["rev-parse", &commit]) {
                return Err(Error::failed(format!(
                    "Fetch did not successfully retrieve rev '{}' from {}: {error}",
                    self.rev(),
                    self.name
                )));
            }
            if !matches && !self.update_head && !switches {
                return Ok(());
            }
            forward = Some(match &local.base_rev {
                Some(base) => self.is_ancestor(cx, base, sha)?,
                None => true,
            });
            let blocked = forward == Some(false) || local.dirty;
            if blocked && !self.resets() {
                return Err(Error::failed(self.not_forward(remote, local)));
            }
        }
        if switches && let Some(branch) = &self.branch {
            if local.dirty && !self.force_checkout {
                return Err(Error::failed(format!(
                    "Local branch '{}' has uncommitted changes. Set 'force_checkout' to True to \
                     discard them and proceed.",
                    shorter_or_name(local.branch.as_ref())
                )));
            }
            let force = self.force_checkout.then(|| "--force".to_owned());
            let start = std::iter::once("checkout".to_owned()).chain(force);
            if local.branches.contains(branch) {
                git.run_merged(cx, start.chain([branch.clone()]))?;
                comments.push(format!("'{branch}' was checked out"));
            } else {
                let from = self.start(remote, sha);
                git.run_merged(cx, start.chain(["-b".to_owned(), branch.clone(), from]))?;
                let place = &remote.place;
                comments.push(format!(
                    "New branch '{branch}' was checked out, with {place} as a starting point"
                ));
            }
        }
        if forward == Some(false) {
            git.run(cx, ["reset", "--hard", sha])?;
            changes.insert("forced update", true);
            if local.dirty {
                comments.push("Uncommitted changes were discarded".into());
            }
            comments.push(format!("Repository was hard-reset to {}", remote.place));
        } else if local.dirty && self.resets() {
            git.run(cx, ["checkout", "--", "."])?;
            comments.push("Uncommitted changes were discarded".into());
        }
        self.track(cx, remote, local, comments)?;
        if forward == Some(true) && !equal(local.base_rev.as_ref(), remote.rev.as_ref()) {
            if remote.upstream != Upstream::No {
                if git.ask(cx, ["symbolic-ref", "--quiet", "HEAD"]).is_err() {
                    return Err(Error::failed("Unable to fast-forward, HEAD is detached"));
                }
                git.run(cx, ["merge", "--ff-only", sha])?;
                comments.push(format!("Repository was fast-forwarded to {}", remote.place));
            } else {
                git.run(cx, ["reset", "--hard", self.rev()])?;
                comments.push(format!("Repository was reset to {} (fast-forward)", self.rev()));
            }
        }
        self.update_submodules(cx)
    }
}

fn shorter_or_name(name: Option<&String>) -> &str {
    name.map_or("None", String::as_str)
}

impl State for Latest {
    type Seen = Seen;
    const KEYS: Keys = Keys(["name", "result", "comment", "changes"]);

    fn observe(&self, cx: &Cx) -> Result<Seen> {
        self.check(cx)?;
        let remote = self.look_abroad(cx)?;
        if self.is_there(cx)? {
            let local = self.look_here(cx, &remote)?;
            return Ok(Seen { remote, local: Some(local), place: Place::Free });
        }
        let place = place(cx, self.target()?, self.force_clone)?;
        Ok(Seen { remote, local: None, place })
    }

    fn plan(&self, seen: &Seen) -> Result<Plan> {
        let (name, target) = (&self.name, self.target()?);
        if let Some(local) = &seen.local {
            return self.plan_update(&seen.remote, local);
        }
        let changes = Dict::new();
        let pending = match seen.place {
            Place::Emptied => {
                changes.insert("forced clone", true);
                format!(
                    "Target directory {target} exists. Since force_clone=True, the contents of \
                     {target} would be deleted, and {name} would be cloned into this directory."
                )
            }
            Place::Free => format!("Repository {name} would be cloned to {target}"),
        };
        changes.insert("new", format!("{name} => {target}"));
        // What a clone would check out is told once it is done, as with Salt.
        Ok(Plan::changes(changes).pending(pending))
    }

    fn apply(&self, cx: &Cx, seen: Seen) -> Result<Applied> {
        let Some(local) = &seen.local else { return self.clone(cx, &seen.remote, &seen.place) };
        let (changes, mut comments) = (Dict::new(), Vec::new());
        if let Err(error) = self.update(cx, &seen.remote, local, &mut comments, &changes) {
            let text = failure(&git::without_command(&error), &comments);
            return Ok(Applied::failed(changes, text));
        }
        let new = self.quiet()?.ask(cx, ["rev-parse", "HEAD"]).ok();
        let stays = !self.update_head && !self.changes_branch(local.branch.as_ref());
        let right = self.is_bare() || stays || equal(new.as_ref(), seen.remote.rev.as_ref());
        if !right {
            let text = failure("Failed to update repository", &comments);
            return Ok(Applied::failed(changes, text));
        }
        let moved_on = !self.is_bare() && !equal(new.as_ref(), seen.remote.rev.as_ref());
        if new == local.rev && stays && moved_on {
            let comment = self.left_behind(&seen.remote, local);
            return Ok(Applied::changes(changes).comment(comment));
        }
        if new == local.rev {
            let comment = self.up_to_date(&comments, false, false)?;
            return Ok(Applied::changes(changes).comment(comment));
        }
        changes.update(&entries! {
            "revision" => dict! { "old" => local.rev.clone(), "new" => new },
        });
        Ok(Applied::changes(changes).comment(joined(&comments)))
    }
}
