//! Working copies beside the main one.

use std::path::Path;

use halite_spec::{Cx, Error, Result, function};
use halite_value::{Dict, Value};

use super::{Git, Local, Plain, Who, here, words};

/// Tell whether a folder is the top of a linked working copy.
///
/// ```console
/// $ salt web1 git.is_worktree /srv/app
/// ```
#[function]
pub fn is_worktree(
    cx: &Cx,
    /// The folder.
    cwd: String,
    #[group] who: Who,
    /// The encoding of the output.
    output_encoding: Option<String>,
) -> Result<bool> {
    let _ = output_encoding;
    let git = who.at(cx, &cwd)?;
    let cwd = git.cwd.clone().unwrap_or_default();
    if !cx.host.is_dir(&cwd)? {
        return Ok(false);
    }
    let Ok(top) = git.ask(cx, ["rev-parse", "--show-toplevel"]) else { return Ok(false) };
    Ok(cx.host.is_file(&Path::new(&top).join(".git"))?)
}

/// The working copies of a repository: path → `stale`, `HEAD`, `detached`, `branch`.
fn worktrees(cx: &Cx, git: &Git) -> Result<Vec<(String, Dict)>> {
    let mut found: Vec<(String, Dict)> = Vec::new();
    for line in git.ask(cx, ["worktree", "list", "--porcelain"])?.lines() {
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        if key == "worktree" {
            let own = Dict::new();
            own.insert("stale", !cx.host.exists(std::path::Path::new(value))?);
            own.insert("HEAD", "");
            own.insert("detached", false);
            own.insert("branch", Value::Null);
            found.push((value.to_owned(), own));
        }
        let Some((_, own)) = found.last() else { continue };
        match key {
            "HEAD" => own.insert("HEAD", value),
            "branch" => own.insert("branch", value.strip_prefix("refs/heads/").unwrap_or(value)),
            "detached" => own.insert("detached", true),
            "prunable" => own.insert("stale", true),
            _ => None,
        };
    }
    Ok(found)
}

/// Return the working copies of a repository.
///
/// ```console
/// $ salt web1 git.list_worktrees /srv/app
/// ```
#[function]
pub fn list_worktrees(
    cx: &Cx,
    /// A working copy.
    cwd: String,
    /// Only those whose folder is gone.
    #[default(false)]
    stale: bool,
    #[group] who: Who,
    /// The encoding of the output.
    output_encoding: Option<String>,
    /// `all`: those whose folder is gone, too.
    kwargs: halite_spec::Rest,
) -> Result<Dict> {
    let _ = output_encoding;
    let git = who.at(cx, &cwd)?;
    let all = kwargs.kwargs.get("all").is_some_and(|all| all.truthy());
    if all && stale {
        return Err(Error::failed("'all' and 'stale' cannot both be set to True"));
    }
    let found = worktrees(cx, &git)?.into_iter();
    Ok(found.filter(|(_, own)| all || own.get("stale") == Some(stale.into())).collect())
}

/// Make another working copy of a repository.
///
/// ```console
/// $ salt myminion git.worktree_add /path/to/repo/main ../hotfix ref=origin/main
/// ```
#[function]
pub fn worktree_add(
    cx: &Cx,
    /// The working copy.
    cwd: String,
    /// Its folder.
    worktree_path: String,
    /// What to check out.
    r#ref: Option<String>,
    /// Set the branch back if it exists.
    #[default(false)]
    #[shown(None::<bool>)]
    reset_branch: bool,
    /// Even if the branch is checked out elsewhere.
    #[default(false)]
    #[shown(None::<bool>)]
    force: bool,
    /// Without a branch.
    #[default(false)]
    detach: bool,
    #[group] with: Local,
    /// Its branch; by default named after the folder.
    #[arg(by_name)]
    branch: Option<String>,
) -> Result<String> {
    let (git, opts) = with.options.at(cx, Some(&cwd))?;
    let mut line = words(&["worktree", "add"]);
    if detach {
        if branch.is_some() {
            return Err(Error::invalid("Only one of 'branch' and 'detach' is allowed"));
        }
        line.push("--detach".to_owned());
    } else {
        let folder = worktree_path.trim_end_matches('/').rsplit('/').next();
        let branch = branch.or_else(|| folder.map(str::to_owned)).unwrap_or_default();
        line.extend([if reset_branch { "-B" } else { "-b" }.to_owned(), branch]);
    }
    line.extend(force.then(|| "--force".to_owned()));
    line.extend(opts);
    line.push(worktree_path);
    line.extend(r#ref);
    git.run_merged(cx, line)
}

/// Forget the working copies whose folders are gone.
///
/// ```console
/// $ salt web1 git.worktree_prune /srv/app
/// ```
#[function]
pub fn worktree_prune(
    cx: &Cx,
    /// The working copy.
    cwd: String,
    /// Only tell.
    #[default(false)]
    dry_run: bool,
    /// Tell what goes.
    #[default(true)]
    verbose: bool,
    /// Only those older than this.
    expire: Option<String>,
    #[group] with: Local,
) -> Result<String> {
    let (git, opts) = with.options.at(cx, Some(&cwd))?;
    let mut line = words(&["worktree", "prune"]);
    line.extend(dry_run.then(|| "--dry-run".to_owned()));
    line.extend(verbose.then(|| "--verbose".to_owned()));
    if let Some(expire) = expire {
        line.extend(["--expire".to_owned(), expire]);
    }
    line.extend(opts);
    git.run_merged(cx, line)
}

/// Show what a merge would do.
///
/// ```console
/// $ salt web1 git.merge_tree /srv/app main release
/// ```
#[function]
pub fn merge_tree(
    cx: &Cx,
    /// The working copy.
    cwd: String,
    /// A revision.
    ref1: String,
    /// Another one.
    ref2: String,
    /// Their common ancestor; found if not given.
    base: Option<String>,
    #[group] with: Plain,
) -> Result<String> {
    let git = with.who.at(cx, &cwd)?;
    let base = match base {
        Some(base) => base,
        None => git.ask(cx, ["merge-base", &ref1, &ref2]).map_err(|_| {
            Error::failed(format!("Unable to determine merge base for {ref1} and {ref2}"))
        })?,
    };
    git.ask(cx, ["merge-tree", &base, &ref1, &ref2])
}

/// Remove the folder of a working copy that is not the main one.
///
/// ```console
/// $ salt web1 git.worktree_rm /srv/app-release
/// ```
#[function]
pub fn worktree_rm(
    cx: &Cx,
    /// The working copy.
    cwd: String,
    /// Who runs git.
    user: Option<String>,
    /// The encoding of the output.
    output_encoding: Option<String>,
) -> Result<bool> {
    let _ = output_encoding;
    let path = here(cx, &cwd, user.as_ref())?;
    if !cx.host.exists(&path)? {
        return Err(Error::failed(format!("{cwd} does not exist")));
    }
    // Of a further working copy, `.git` is a file.
    if !cx.host.is_file(&path.join(".git"))? {
        return Err(Error::failed(format!("{cwd} is not a git worktree")));
    }
    cx.host.remove_all(&path)?;
    Ok(true)
}
