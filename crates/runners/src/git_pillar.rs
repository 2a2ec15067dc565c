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
pub fn update(_: &Cx, _rest: Rest) -> Result<Value> {
    Err(Error::failed("git_pillar is not part of Halite yet"))
}
