//! `git`: working copies and repositories, by the program git.
//!
//! Functions are thin: each is one command line, built as words. `run.rs` says how git is run.
//! Their last arguments are always the same, so they are written once, in [`git!`]. Configuration,
//! remotes and linked working copies have a file each.

mod args;
mod config;
mod remote;
mod run;
mod worktree;

use std::path::PathBuf;

use halite_spec::{Cx, Error, Need, Rest, Result, function, module};
use halite_value::{Dict, Value, dict};

pub use self::run::{Git, Ran, redacted, with_auth, without_command};
use crate::cmd::shlex;

module! {
    /// Working copies and repositories.
    "git", needs = [
        Need::program(&["git"], "The git execution module cannot be loaded: git unavailable."),
    ]: add, archive, branch, checkout, clone, commit, config_get, config_get_regexp,
    config_get_regex, config_set, config_unset, current_branch, describe, diff,
    discard_local_changes, fetch, init, is_worktree, list_branches, list_tags, ls_remote, merge,
    merge_base, pull, push, rebase, remote_get, remote_refs, remote_set, remotes, reset, rev_parse,
    revision, rm, stash, status, submodule, symbolic_ref, tag, version, list_worktrees,
    worktree_add, worktree_prune, worktree_rm, merge_tree,
}

/// Options as a list, or a text of words.
pub fn options(value: &Value) -> Result<Vec<String>> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::List(list) => Ok(list.into_iter().map(|item| item.to_string()).collect()),
        other => shlex::split(&other.to_str()).map_err(Error::invalid),
    }
}

fn here(cx: &Cx, cwd: &str, user: Option<&String>) -> Result<PathBuf> {
    let home = |name: &str| cx.host.user_named(name).ok().flatten().map(|user| user.home);
    let path = match cwd.strip_prefix('~') {
        Some(rest) => {
            let (name, rest) = rest.split_once('/').unwrap_or((rest, ""));
            let own = user.cloned().unwrap_or_else(|| "root".into());
            let name = if name.is_empty() { own.as_str() } else { name };
            PathBuf::from(home(name).unwrap_or_else(|| format!("~{name}"))).join(rest)
        }
        None => PathBuf::from(cwd),
    };
    if path.is_absolute() {
        return Ok(path);
    }
    Err(Error::invalid(format!("{} is not an absolute path", path.display())))
}

pub use self::{
    args::{Abroad, Https, Keyed, Local, Login, Options, Output, Plain, Who},
    config::{Config, config_get, config_get_regex, config_get_regexp, config_set, config_unset},
    remote::{
        ls_remote, refs_of, remote_get, remote_refs, remote_set, remotes, remotes_of, set_remote,
    },
    worktree::{
        is_worktree, list_worktrees, merge_tree, worktree_add, worktree_prune, worktree_rm,
    },
};

fn words(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
}

/// Add a file to what is committed next.
///
/// ```console
/// $ salt web1 git.add /srv/app app.conf
/// ```
#[function]
pub fn add(
    cx: &Cx,
    /// The working copy.
    cwd: String,
    /// The file.
    filename: String,
    #[group] with: Local,
) -> Result<String> {
    let (git, opts) = with.options.at(cx, Some(&cwd))?;
    let mut line = words(&["add", "--verbose"]);
    line.extend(opts.into_iter().filter(|word| word != "-v" && word != "--verbose"));
    line.extend(words(&["--", &filename]));
    git.run(cx, line)
}

/// List, make or remove branches.
///
/// ```console
/// $ salt web1 git.branch /srv/app release
/// ```
#[function]
pub fn branch(
    cx: &Cx,
    /// The working copy.
    cwd: String,
    /// The branch.
    name: Option<String>,
    #[group] with: Local,
) -> Result<bool> {
    let (git, opts) = with.options.at(cx, Some(&cwd))?;
    let mut line = words(&["branch"]);
    line.extend(opts);
    line.extend(name);
    git.run(cx, line)?;
    Ok(true)
}

/// Check a revision out.
///
/// ```console
/// $ salt web1 git.checkout /srv/app rev=release
/// ```
#[function]
pub fn checkout(
    cx: &Cx,
    /// The working copy.
    cwd: String,
    /// The revision.
    rev: Option<String>,
    /// Throw local changes away.
    #[default(false)]
    force: bool,
    #[group] with: Local,
) -> Result<String> {
    let (git, opts) = with.options.at(cx, Some(&cwd))?;
    let mut line = words(&["checkout"]);
    if force {
        line.push("--force".into());
    }
    let branches = opts.iter().any(|word| word == "-b" || word == "-B");
    line.extend(opts.into_iter().filter(|word| word != "-f" && word != "--force"));
    match rev.filter(|rev| !rev.is_empty()) {
        Some(rev) => line.push(rev),
        None if branches => {}
        None => {
            return Err(Error::invalid("'rev' argument is required unless -b or -B in opts"));
        }
    }
    git.run_merged(cx, line)
}

/// Return the name of the branch checked out.
///
/// ```console
/// $ salt web1 git.current_branch /srv/app
/// ```
#[function]
pub fn current_branch(
    cx: &Cx,
    /// The working copy.
    cwd: String,
    #[group] with: Plain,
) -> Result<String> {
    let git = with.who.at(cx, &cwd)?;
    git.ask(cx, ["rev-parse", "--abbrev-ref", "HEAD"])
}

/// Describe a revision by the nearest tag.
///
/// ```console
/// $ salt web1 git.describe /srv/app
/// ```
#[function]
pub fn describe(
    cx: &Cx,
    /// The working copy.
    cwd: String,
    /// The revision.
    #[default("HEAD".to_owned())]
    rev: String,
    #[group] with: Plain,
) -> Result<String> {
    let git = with.who.at(cx, &cwd)?;
    git.ask(cx, words(&["describe", "--always", &rev]))
}

/// Throw local changes away.
///
/// ```console
/// $ salt web1 git.discard_local_changes /srv/app
/// ```
#[function]
pub fn discard_local_changes(
    cx: &Cx,
    /// The working copy.
    cwd: String,
    /// Below this path.
    #[default(".".to_owned())]
    path: String,
    #[group] with: Plain,
) -> Result<String> {
    let git = with.who.at(cx, &cwd)?;
    git.run(cx, words(&["checkout", "--", &path]))
}

/// Fetch from a remote repository.
///
/// ```console
/// $ salt myminion git.fetch /path/to/repo upstream identity=/root/.ssh/id_rsa
/// ```
#[function]
pub fn fetch(
    cx: &Cx,
    /// The working copy.
    cwd: String,
    /// The remote.
    remote: Option<String>,
    /// Also what is not a fast-forward.
    #[default(false)]
    force: bool,
    /// What to fetch.
    refspecs: Option<Vec<String>>,
    #[group] with: Abroad,
) -> Result<Dict> {
    let (git, opts) = with.at(cx, &cwd)?;
    let refspecs: Vec<String> = refspecs
        .unwrap_or_default()
        .iter()
        .flat_map(|spec| spec.split(','))
        .map(str::to_owned)
        .collect();
    fetched(cx, &git, remote.as_deref(), force, &opts, &refspecs)
}

/// Return the names of branches.
///
/// ```console
/// $ salt web1 git.list_branches /srv/app
/// ```
#[function]
pub fn list_branches(
    cx: &Cx,
    /// The working copy.
    cwd: String,
    /// Those of remotes.
    #[default(false)]
    remote: bool,
    #[group] with: Plain,
) -> Result<Vec<String>> {
    let git = with.who.at(cx, &cwd)?;
    let place = if remote { "refs/remotes/" } else { "refs/heads/" };
    let text = git.ask(cx, ["for-each-ref", "--format", "%(refname:short)", place])?;
    Ok(lines(&text))
}

/// Return the names of tags.
///
/// ```console
/// $ salt web1 git.list_tags /srv/app
/// ```
#[function]
pub fn list_tags(
    cx: &Cx,
    /// The working copy.
    cwd: String,
    #[group] with: Plain,
) -> Result<Vec<String>> {
    let git = with.who.at(cx, &cwd)?;
    let text = git.ask(cx, ["for-each-ref", "--format", "%(refname:short)", "refs/tags/"])?;
    Ok(lines(&text))
}

/// Merge a revision.
///
/// ```console
/// $ salt myminion git.merge /path/to/repo @{upstream}
/// ```
#[function]
pub fn merge(
    cx: &Cx,
    /// The working copy.
    cwd: String,
    /// The revision.
    rev: Option<String>,
    #[group] with: Keyed,
    /// None is known.
    kwargs: Rest,
) -> Result<String> {
    kwargs.only(&[])?;
    let (git, opts) = with.at(cx, &cwd)?;
    let mut line = words(&["merge"]);
    line.extend(opts);
    line.extend(rev.filter(|rev| !rev.is_empty()));
    git.run(cx, line)
}

/// Fetch and merge.
///
/// ```console
/// $ salt web1 git.pull /srv/app
/// ```
#[function]
pub fn pull(
    cx: &Cx,
    /// The working copy.
    cwd: String,
    #[group] with: Abroad,
) -> Result<String> {
    let (git, opts) = with.at(cx, &cwd)?;
    git.run(cx, words(&["pull"]).into_iter().chain(opts))
}

/// Push to a remote repository.
///
/// ```console
/// $ salt myminion git.push /path/to/repo upstream issue21
/// ```
#[function]
pub fn push(
    cx: &Cx,
    /// The working copy.
    cwd: String,
    /// The remote.
    remote: Option<String>,
    /// What to push.
    r#ref: Option<String>,
    #[group] with: Abroad,
    /// None is known.
    kwargs: Rest,
) -> Result<String> {
    kwargs.only(&[])?;
    let (git, opts) = with.at(cx, &cwd)?;
    let mut line = words(&["push"]);
    line.extend(opts);
    line.extend(remote);
    line.extend(r#ref);
    git.run(cx, line)
}

/// Rebase onto a revision.
///
/// ```console
/// $ salt web1 git.rebase /srv/app rev=main
/// ```
#[function]
pub fn rebase(
    cx: &Cx,
    /// The working copy.
    cwd: String,
    /// The revision.
    #[default("master".to_owned())]
    rev: String,
    #[group] with: Local,
) -> Result<String> {
    let (git, opts) = with.options.at(cx, Some(&cwd))?;
    let mut line = words(&["rebase"]);
    line.extend(opts);
    line.extend(shlex::split(&rev).map_err(Error::invalid)?);
    git.run(cx, line)
}

/// Reset the working copy.
///
/// ```console
/// $ salt web1 git.reset /srv/app
/// ```
#[function]
pub fn reset(
    cx: &Cx,
    /// The working copy.
    cwd: String,
    #[group] with: Keyed,
) -> Result<String> {
    let (git, opts) = with.at(cx, &cwd)?;
    git.run(cx, words(&["reset"]).into_iter().chain(opts))
}

/// Return what a revision means.
///
/// ```console
/// $ salt web1 git.rev_parse /srv/app main
/// ```
#[function]
pub fn rev_parse(
    cx: &Cx,
    /// The working copy.
    cwd: String,
    /// The revision.
    rev: Option<String>,
    #[group] with: Local,
) -> Result<String> {
    let (git, opts) = with.options.at(cx, Some(&cwd))?;
    git.ask(cx, words(&["rev-parse"]).into_iter().chain(opts).chain(rev))
}

/// Return the full name of a revision.
///
/// ```console
/// $ salt web1 git.revision /srv/app
/// ```
#[function]
pub fn revision(
    cx: &Cx,
    /// The working copy.
    cwd: String,
    /// The revision.
    #[default("HEAD".to_owned())]
    rev: String,
    /// Only its first digits.
    #[default(false)]
    short: bool,
    #[group] with: Plain,
) -> Result<String> {
    let git = with.who.at(cx, &cwd)?;
    let short = short.then(|| "--short".to_owned());
    git.ask(cx, words(&["rev-parse"]).into_iter().chain(short).chain([rev]))
}

/// Remove a file.
///
/// ```console
/// $ salt web1 git.rm /srv/app old.conf
/// ```
#[function]
pub fn rm(
    cx: &Cx,
    /// The working copy.
    cwd: String,
    /// The file.
    filename: String,
    #[group] with: Local,
) -> Result<String> {
    let (git, opts) = with.options.at(cx, Some(&cwd))?;
    let mut line = words(&["rm"]);
    line.extend(opts);
    line.extend(words(&["--", &filename]));
    git.run(cx, line)
}

/// Put local changes aside.
///
/// ```console
/// $ salt myminion git.stash /path/to/repo pop
/// ```
#[function]
pub fn stash(
    cx: &Cx,
    /// The working copy.
    cwd: String,
    /// What to do.
    #[default("save".to_owned())]
    action: String,
    #[group] with: Local,
) -> Result<String> {
    let (git, opts) = with.options.at(cx, Some(&cwd))?;
    git.run(cx, words(&["stash", &action]).into_iter().chain(opts))
}

/// Return the changed files, by kind of change.
///
/// ```console
/// $ salt web1 git.status /srv/app
/// ```
#[function]
pub fn status(
    cx: &Cx,
    /// The working copy.
    cwd: String,
    #[group] with: Plain,
) -> Result<Dict> {
    let git = with.who.at(cx, &cwd)?;
    let text = git.ask(cx, ["status", "-z", "--porcelain"])?;
    let found = Dict::new();
    for item in text.split('\0').filter(|item| item.len() > 3) {
        let (state, name) = item.split_at(3);
        let word = match state.trim() {
            "M" => "modified",
            "A" => "new",
            "D" => "deleted",
            "??" => "untracked",
            other => other,
        };
        let list = found.get_or_insert_with(word, || Value::list(Vec::<Value>::new()));
        if let Value::List(list) = list {
            list.push(name);
        }
    }
    Ok(found)
}

/// Run a command on submodules.
///
/// ```console
/// $ salt myminion git.submodule /path/to/repo update opts='--init --recursive'
/// ```
#[function]
pub fn submodule(
    cx: &Cx,
    /// The working copy.
    cwd: String,
    /// What to do.
    command: String,
    #[group] with: Abroad,
    /// None is known.
    kwargs: Rest,
) -> Result<String> {
    kwargs.only(&[])?;
    let (git, opts) = with.at(cx, &cwd)?;
    git.run(cx, words(&["submodule", &command]).into_iter().chain(opts))
}

/// Read or set a symbolic reference.
///
/// ```console
/// $ salt web1 git.symbolic_ref /srv/app HEAD
/// ```
#[function]
pub fn symbolic_ref(
    cx: &Cx,
    /// The working copy.
    cwd: String,
    /// The reference.
    r#ref: String,
    /// What it shall mean.
    value: Option<String>,
    #[group] with: Local,
) -> Result<String> {
    let (git, opts) = with.options.at(cx, Some(&cwd))?;
    let looks = value.is_none() && !opts.iter().any(|word| word == "-d" || word == "--delete");
    let line = words(&["symbolic-ref"]).into_iter().chain(opts).chain([r#ref]).chain(value);
    if looks { git.ask(cx, line) } else { git.run(cx, line) }
}

/// Make or remove a tag.
///
/// ```console
/// $ salt web1 git.tag /srv/app v7
/// ```
#[function]
pub fn tag(
    cx: &Cx,
    /// The working copy.
    cwd: String,
    /// The tag.
    name: String,
    /// What to tag.
    #[default("HEAD".to_owned())]
    r#ref: String,
    /// A message.
    message: Option<String>,
    #[group] with: Local,
) -> Result<String> {
    let (git, opts) = with.options.at(cx, Some(&cwd))?;
    let deletes = opts.iter().any(|word| word == "-d" || word == "--delete");
    let message = message.map(|text| words(&["-m", &text])).unwrap_or_default();
    let target = (!deletes).then_some(r#ref);
    let line = words(&["tag"]).into_iter().chain(opts).chain(message).chain([name]);
    git.run(cx, line.chain(target))
}

/// Fetches; tells what came, as `git.fetch` returns it.
pub fn fetched(
    cx: &Cx,
    git: &Git,
    remote: Option<&str>,
    force: bool,
    opts: &[String],
    refspecs: &[String],
) -> Result<Dict> {
    let mut line = words(&["fetch"]);
    if force {
        line.push("--force".into());
    }
    line.extend(opts.iter().filter(|word| *word != "-f" && *word != "--force").cloned());
    line.extend(remote.map(str::to_owned));
    line.extend(refspecs.iter().cloned());
    Ok(updates(&git.run_merged(cx, line)?))
}

/// Reads the lines of a fetch that tell of something new.
fn updates(text: &str) -> Dict {
    let found = Dict::new();
    let add = |key: &str, name: &str| {
        let list = found.get_or_insert_with(key, || Value::list(Vec::<Value>::new()));
        if let Value::List(list) = list {
            list.push(name);
        }
    };
    for line in text.lines() {
        let Some((left, _)) = line.split_once("->") else { continue };
        let left = left.trim_start_matches([' ', '\t', '*']);
        let (mark, name) = match left.strip_prefix('[') {
            Some(rest) => match rest.split_once(']') {
                Some((mark, name)) => (mark, name.trim()),
                None => continue,
            },
            None => match left.split_once(char::is_whitespace) {
                Some((mark, name)) => (mark, name.trim()),
                None => continue,
            },
        };
        let hex =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match mark {
            "new tag" => add("new tags", name),
            "new branch" => add("new branches", name),
            "tag update" => add("updated tags", name),
            mark => {
                if let Some((old, new)) =
                    mark.split_once("..").filter(|(old, new)| hex(old) && hex(new))
                {
                    let all = found.get_or_insert_with("updated branches", Value::dict);
                    if let Value::Dict(all) = all {
                        all.insert(name, dict! { "old" => old, "new" => new });
                    }
                }
            }
        }
    }
    found
}

/// Make an archive of a revision.
///
/// ```console
/// $ salt myminion git.archive /path/to/repo /path/to/archive.tar prefix=foo/
/// ```
#[function]
pub fn archive(
    cx: &Cx,
    /// The working copy.
    cwd: String,
    /// The file to write.
    output: String,
    /// The revision.
    #[default("HEAD".to_owned())]
    rev: String,
    /// What every name in the archive begins with.
    prefix: Option<String>,
    /// Options of git itself.
    #[default(Value::from(""))]
    git_opts: Value,
    #[group] with: Plain,
    /// `format`.
    kwargs: Rest,
) -> Result<bool> {
    kwargs.only(&["format"])?;
    let git = Git { before: options(&git_opts)?, ..with.who.at(cx, &cwd)? };
    let folder = git
        .cwd
        .as_ref()
        .and_then(|cwd| cwd.file_name())
        .map(|name| format!("{}/", name.to_string_lossy()));
    let prefix = prefix.or(folder).unwrap_or_default();
    let mut line = words(&["archive"]);
    if !prefix.is_empty() {
        line.extend(words(&["--prefix", &prefix]));
    }
    if let Some(format) = kwargs.kwargs.get("format").filter(Value::truthy) {
        line.extend(words(&["--format", &format.to_str()]));
    }
    line.extend(words(&["--output", &output, &rev]));
    git.run(cx, line)?;
    Ok(true)
}

/// Clone a repository.
///
/// ```console
/// $ salt web1 git.clone /srv/app https://example.org/shop.git
/// ```
#[function]
pub fn clone(
    cx: &Cx,
    /// Where to; with `name`, the folder above.
    cwd: String,
    /// Where from.
    url: Option<String>,
    /// The name of the working copy below `cwd`.
    name: Option<String>,
    #[group] options: Options,
    #[group] login: Login,
    /// Do not log a failure as an error.
    #[default(false)]
    ignore_retcode: bool,
    /// The environment `salt://` keys come from.
    #[default("base".to_owned())]
    saltenv: String,
    /// The encoding of the output.
    output_encoding: Option<String>,
) -> Result<bool> {
    let _ = (ignore_retcode, output_encoding);
    let (git, opts) = options.at(cx, Some(&cwd))?;
    let cwd = git.cwd.clone().unwrap_or_default();
    let url = url.filter(|url| !url.is_empty());
    let url = url.ok_or_else(|| Error::invalid("Missing 'url' argument"))?;
    let url = login.https.url(&url)?;
    let mut line = words(&["clone"]);
    line.extend(opts);
    line.extend(words(&["--", &url]));
    let from = match name {
        Some(name) => {
            line.push(name);
            cx.host.create_dirs(&cwd, None)?;
            cwd
        }
        None => {
            line.push(cwd.to_string_lossy().into_owned());
            PathBuf::from("/tmp")
        }
    };
    Git { cwd: Some(from), identity: login.identity, saltenv: Some(saltenv), ..git }
        .run(cx, line)?;
    Ok(true)
}

/// Make a repository.
///
/// ```console
/// $ salt web1 git.init /srv/app
/// ```
#[function]
pub fn init(
    cx: &Cx,
    /// Where.
    cwd: String,
    /// Without a working copy.
    #[default(false)]
    bare: bool,
    /// The template folder.
    template: Option<String>,
    /// Where the repository itself goes.
    separate_git_dir: Option<String>,
    /// Who may write to it.
    shared: Option<Value>,
    #[group] with: Local,
) -> Result<String> {
    let (git, opts) = with.options.at(cx, Some(&cwd))?;
    let cwd = git.cwd.clone().unwrap_or_default();
    let mut line = words(&["init"]);
    if bare {
        line.push("--bare".into());
    }
    line.extend(template.map(|template| format!("--template={template}")));
    line.extend(separate_git_dir.map(|dir| format!("--separate-git-dir={dir}")));
    match shared {
        None | Some(Value::Null | Value::Bool(false)) => {}
        Some(Value::Bool(true)) => line.push("--shared".into()),
        Some(Value::Int(mode)) => line.push(format!("--shared=0{mode}")),
        Some(word) => line.push(format!("--shared={word}")),
    }
    line.extend(opts);
    line.push("--".into());
    line.push(cwd.to_string_lossy().into_owned());
    Git { cwd: Some("/tmp".into()), ..git }.run(cx, line)
}

/// Return the common ancestor of revisions, or tell whether one is another's ancestor.
///
/// ```console
/// $ salt web1 git.merge_base /srv/app refs='[main, release]'
/// ```
#[function]
pub fn merge_base(
    cx: &Cx,
    /// The working copy.
    cwd: String,
    /// The revisions.
    refs: Option<halite_spec::Strings>,
    /// The best ancestor of all.
    #[default(false)]
    octopus: bool,
    /// Tell whether the first is an ancestor of the second.
    #[default(false)]
    is_ancestor: bool,
    /// Those that no other one reaches.
    #[default(false)]
    independent: bool,
    /// The point a branch left another at.
    fork_point: Option<String>,
    #[group] with: Local,
    /// A list of all of them, not only the first.
    #[default(false)]
    #[arg(by_name)]
    all: bool,
) -> Result<Value> {
    if all && (independent || is_ancestor || fork_point.is_some()) {
        return Err(Error::invalid(
            "The 'all' argument is not compatible with 'independent', 'is_ancestor', or \
             'fork_point'",
        ));
    }
    let modes = [octopus, independent, is_ancestor, fork_point.is_some()];
    if modes.iter().filter(|&&mode| mode).count() > 1 {
        return Err(Error::invalid(
            "Only one of 'octopus', 'independent', 'is_ancestor', and 'fork_point' is permitted",
        ));
    }
    let mut refs = refs.map(|refs| refs.0).unwrap_or_default();
    if is_ancestor && refs.len() != 2 {
        return Err(Error::invalid("Two refs/commits are required if 'is_ancestor' is True"));
    }
    if fork_point.is_some() {
        if refs.len() > 1 {
            return Err(Error::invalid(
                "At most one ref/commit can be passed if 'fork_point' is specified",
            ));
        }
        if refs.is_empty() {
            refs.push("HEAD".to_owned());
        }
    }
    let (git, opts) = with.options.at(cx, Some(&cwd))?;
    let mut line = words(&["merge-base"]);
    line.extend(opts);
    line.extend(all.then(|| "--all".to_owned()));
    for (wanted, word) in
        [(octopus, "--octopus"), (is_ancestor, "--is-ancestor"), (independent, "--independent")]
    {
        if wanted {
            line.push(word.to_owned());
        }
    }
    if let Some(point) = fork_point {
        line.extend(words(&["--fork-point", &point]));
    }
    line.extend(refs);
    if is_ancestor {
        return Ok((git.ask_all(cx, line)?.code == 0).into());
    }
    let bases = git.ask(cx, line)?;
    if all {
        return Ok(Value::list(lines(&bases)));
    }
    // git fails where there is none.
    Ok(bases.lines().next().unwrap_or_default().into())
}

/// Return git's version.
///
/// ```console
/// $ salt web1 git.version
/// ```
#[function]
pub fn version(
    cx: &Cx,
    /// As a list of numbers.
    #[default(false)]
    versioninfo: bool,
) -> Result<Value> {
    let text = Git::default().ask(cx, ["--version"])?;
    let version = text.split_whitespace().nth(2).unwrap_or_default().to_owned();
    if !versioninfo {
        return Ok(version.into());
    }
    let part = |part: &str| part.parse::<i64>().map_or_else(|_| Value::from(part), Value::Int);
    Ok(Value::list(version.split('.').map(part)))
}

/// Commit.
///
/// ```console
/// $ salt web1 git.commit /srv/app 'Another port'
/// ```
#[function]
pub fn commit(
    cx: &Cx,
    /// The working copy.
    cwd: String,
    /// The message.
    message: String,
    #[group] options: Options,
    /// Only this file.
    filename: Option<String>,
    #[group] output: Output,
) -> Result<String> {
    let _ = output;
    let (git, opts) = options.at(cx, Some(&cwd))?;
    let mut line = words(&["commit", "-m", &message]);
    line.extend(opts);
    if let Some(file) = filename {
        line.extend(["--".to_owned(), file]);
    }
    git.run(cx, line)
}

/// Show what differs.
///
/// ```console
/// $ salt myminion git.diff /path/to/repo branch1 branch2
/// ```
#[function]
pub fn diff(
    cx: &Cx,
    /// The working copy.
    cwd: String,
    /// A revision.
    item1: Option<String>,
    /// Another one.
    item2: Option<String>,
    #[group] options: Options,
    /// Compare two paths that need not be in a working copy.
    #[default(false)]
    no_index: bool,
    /// What is staged.
    #[default(false)]
    cached: bool,
    /// Only these paths.
    paths: Option<halite_spec::Strings>,
    /// The encoding of the output.
    output_encoding: Option<String>,
) -> Result<String> {
    let _ = output_encoding;
    let (git, opts) = options.at(cx, Some(&cwd))?;
    let paths = paths.unwrap_or_default();
    if no_index && cached {
        return Err(Error::failed("The 'no_index' and 'cached' options cannot be used together"));
    }
    if no_index && paths.len() != 2 {
        return Err(Error::failed(
            "The 'no_index' option requires that exactly two paths be specified for 'paths'",
        ));
    }
    let mut line = words(&["diff"]);
    line.extend(opts);
    for (wanted, word) in [(no_index, "--no-index"), (cached, "--cached")] {
        line.extend(wanted.then(|| word.to_owned()));
    }
    line.extend(item1);
    line.extend(item2);
    if !paths.is_empty() {
        line.push("--".to_owned());
        line.extend(paths.0);
    }
    let ran = git.ask_all(cx, line.clone())?;
    // Without an index, 1 means that there are differences.
    if ran.code == 0 || (no_index && ran.code == 1) {
        return Ok(ran.stdout);
    }
    git.ask(cx, line)
}

#[cfg(test)]
mod tests {
    use halite_value::entries;

    use super::*;

    #[test]
    fn fetches_are_read() {
        let text = "From /tmp/a\n * [new branch]      x          -> origin/x\n   1b2c3d4..2c3d4e5  \
                    master     -> origin/master\n * [new tag]         v1         -> v1\n";
        let expected = entries! {
            "new branches" => Value::list(["x"]),
            "updated branches" => dict! { "master" => dict! { "old" => "1b2c3d4", "new" => "2c3d4e5" } },
            "new tags" => Value::list(["v1"]),
        };
        assert_eq!(Value::Dict(updates(text)), Value::Dict(expected));
    }
}
