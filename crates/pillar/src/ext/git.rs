//! `git`: pillar files from git repositories.
//!
//! Each remote is `BRANCH ADDRESS`, with settings of its own if need be. Its files are the pillar of
//! one environment: the one `env` names, `base` for the branch `git_pillar_base`, otherwise that of
//! the branch's name; `__env__` in place of a branch stands for the environment asked for. Every
//! remote is compiled by itself, as pillar files are, and the results are merged in order; with
//! `git_pillar_includes` a remote may include the files of the others of its environment.

use std::{path::PathBuf, sync::Arc, time::Duration};

use halite_fileserver::git::{Remote, Repo};
use halite_spec::{Error, Host, Result};
use halite_value::{Dict, Value};

use super::{ExtArgs, ExtCx, ExtPillar};
use crate::{Request, compile::Merging};

pub(super) struct GitPillar;

/// The files of a remote.
struct Checkout {
    env: String,
    folder: PathBuf,
}

impl ExtPillar for GitPillar {
    fn name(&self) -> &str {
        "git"
    }

    fn pillar(&self, cx: &ExtCx<'_>, args: &ExtArgs<'_>) -> Result<Value> {
        let mut checkouts = Vec::new();
        for remote in Remote::all(Some(args.0), "git_pillar", &cx.request.opts) {
            checkouts.extend(checkout(cx, &remote)?);
        }
        let merging = Merging::new(cx.request);
        let shared = cx.request.opt_flag("git_pillar_includes", true);
        let mut all = Dict::new();
        for (at, own) in checkouts.iter().enumerate() {
            // What another environment than the one asked for holds is not wanted.
            if cx.pillarenv.is_some_and(|wanted| wanted != own.env) {
                continue;
            }
            let others = checkouts.iter().enumerate();
            let others =
                others.filter(|(other, own_of)| shared && *other != at && own_of.env == own.env);
            let folders = std::iter::once(own).chain(others.map(|(_, own)| own));
            let folders = folders.map(|own| own.folder.display().to_string());
            let roots: Dict = [(own.env.as_str(), Value::list(folders))].into_iter().collect();
            all = merging.dicts(&all, &compiled(cx, &roots, &own.env));
        }
        Ok(all.into())
    }
}

/// Compiles the pillar of these folders alone.
fn compiled(cx: &ExtCx<'_>, roots: &Dict, env: &str) -> Dict {
    let opts = cx.request.opts.shallow_copy();
    opts.insert("pillar_roots", roots.clone());
    opts.remove("ext_pillar");
    let pillarenv = cx.pillarenv.map(|_| env.to_owned());
    let request =
        Request { opts, pillarenv, pillar_override: Dict::new(), ext: None, ..cx.request.clone() };
    let done = cx.compiler.compile(&request);
    for failure in &done.failures {
        let (sls, saltenv, error) = (&failure.sls, &failure.saltenv, &failure.error);
        tracing::error!("the pillar file {sls} of {saltenv} does not render: {error}");
    }
    done.pillar
}

/// A remote's branch, as it is written, and its repository.
fn repo_of(host: &Arc<dyn Host>, opts: &Dict, remote: &Remote) -> (String, Repo) {
    let (branch, address) = match remote.id.trim().split_once(char::is_whitespace) {
        Some((branch, address)) => (branch.to_owned(), address.trim()),
        None => (remote.text("branch"), remote.id.trim()),
    };
    let cachedir = opts.get("cachedir").map(|dir| dir.to_str().to_string());
    let cache = PathBuf::from(cachedir.unwrap_or_else(|| "/var/cache/salt/master".into()));
    let repo = Repo::new(host.clone(), address, remote.access(), &cache.join("git_pillar"));
    (branch, repo)
}

/// Fetches every remote of the configuration now; returns which of them could be.
pub(crate) fn update(host: &Arc<dyn Host>, opts: &Dict) -> Vec<(String, Result<()>)> {
    let sources = opts.get("ext_pillar").and_then(|list| list.items_of_sequence());
    let lists = sources.unwrap_or_default().into_iter().filter_map(|source| source.get("git"));
    let remotes = lists.flat_map(|list| Remote::all(Some(&list), "git_pillar", opts));
    let fetched = remotes.map(|remote| {
        let (_, repo) = repo_of(host, opts, &remote);
        (remote.id, repo.update(Duration::ZERO).map(drop).map_err(Error::from))
    });
    fetched.collect()
}

/// Fetches a remote and takes its files out; `None` if it has no such branch.
fn checkout(cx: &ExtCx<'_>, remote: &Remote) -> Result<Option<Checkout>> {
    let (branch, repo) = repo_of(cx.host, &cx.request.opts, remote);
    let base = Some(remote.text("base")).filter(|base| !base.is_empty());
    let base = base.unwrap_or_else(|| "master".into());
    let asked = cx.pillarenv.or(cx.request.saltenv.as_deref()).unwrap_or("base");
    let is_dynamic = branch == "__env__";
    let branch = match (is_dynamic, asked) {
        (false, _) => branch,
        (true, "base") => base.clone(),
        (true, asked) => asked.to_owned(),
    };
    let interval = remote.get("update_interval").and_then(|value| value.to_int());
    let interval = interval.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(60);
    // What was never fetched is tried every time: the pillar cannot be without it.
    let interval = if repo.fetched().is_some() { interval } else { 0 };
    if let Err(error) = repo.update(Duration::from_secs(interval)) {
        if repo.fetched().is_none() {
            return Err(error.into());
        }
        tracing::error!("git_pillar: {error}");
    }
    let refs = repo.refs()?;
    let mut commit = repo.commit(&branch, &refs)?;
    let fallback = remote.text("fallback");
    if commit.is_none() && !fallback.is_empty() {
        commit = repo.commit(&fallback, &refs)?;
    }
    let Some(commit) = commit else {
        tracing::error!("git_pillar: {} has no `{branch}`", repo.url());
        return Ok(None);
    };
    let env = match remote.text("env") {
        env if !env.is_empty() => env,
        _ if is_dynamic => asked.to_owned(),
        _ if branch == base => "base".into(),
        _ => branch,
    };
    let folder = repo.tree(&commit, &remote.text("root"), &remote.text("mountpoint"))?;
    Ok(Some(Checkout { env, folder }))
}
