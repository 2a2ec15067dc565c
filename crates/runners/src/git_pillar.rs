//! `git_pillar`: the repositories pillar comes from, fetched now rather than when they are due.

use halite_spec::{Cx, Error, Result, function, module};
use halite_value::Dict;

module! {
    /// Pillar from git repositories.
    "git_pillar": update,
}

/// Fetch the repositories of `git_pillar`; return which of them could be.
///
/// ```console
/// $ salt-run git_pillar.update
/// ```
#[function]
pub fn update(
    cx: &Cx,
    /// Only this branch.
    branch: Option<String>,
    /// Only this address.
    repo: Option<String>,
) -> Result<Dict> {
    let ret = Dict::new();
    for (remote, fetched) in halite_pillar::ext::update_git(&cx.host, &cx.opts) {
        let mut words = remote.split_whitespace();
        let (own_branch, address) = (words.next(), words.next());
        let is_meant = branch.as_deref().is_none_or(|branch| own_branch == Some(branch))
            && repo.as_deref().is_none_or(|repo| address == Some(repo));
        if !is_meant {
            continue;
        }
        if let Err(error) = &fetched {
            tracing::error!("{error}");
        }
        ret.insert(remote.as_str(), fetched.is_ok());
    }
    match (ret.is_empty(), branch.is_some() || repo.is_some()) {
        (false, _) => Ok(ret),
        (true, true) => {
            Err(Error::failed("Specified git branch/repo not found in ext_pillar config"))
        }
        (true, false) => Err(Error::failed("No git_pillar remotes are configured")),
    }
}
