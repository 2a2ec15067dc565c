//! `git_pillar`: pillar from git repositories. Not here yet; the names answer clearly.

use halite_spec::{Cx, Error, Rest, Result, function, module};
use halite_value::Value;

module! {
    /// Pillar from git repositories.
    "git_pillar": update,
}

/// Fetch the repositories of `git_pillar`.
///
/// ```console
/// $ salt-run git_pillar.update
/// ```
#[function]
pub fn update(cx: &Cx, _rest: Rest) -> Result<Value> {
    let sources = cx.opt("ext_pillar").and_then(|all| all.items_of_sequence()).unwrap_or_default();
    if !sources.iter().any(|source| source.get("git").is_some()) {
        return Err(Error::failed("No git_pillar remotes are configured"));
    }
    Err(Error::failed("git_pillar is not part of Halite yet"))
}
