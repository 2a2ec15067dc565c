//! `match`: whom a target means.

use halite_client::Request;
use halite_spec::{Cx, Result, function, module};
use halite_value::{Dict, entries};

use crate::master;

module! {
    /// Whom a target means.
    "match": compound_matches,
}

/// Tell whether a minion matches a compound target, by what the master remembers of it.
///
/// ```console
/// $ salt-run match.compound_matches 'G@os:Debian and web*' web1
/// ```
#[function]
pub fn compound_matches(
    cx: &Cx,
    /// The target.
    expr: String,
    /// The minion.
    minion_id: String,
) -> Result<Dict> {
    // Who may ask this as a peer must not learn pillar values by trying patterns.
    let request =
        Request::MinionData { tgt: expr.into(), tgt_type: "compound_pillar_exact".into() };
    let found = match master::connect(cx)?.call(&request) {
        Ok(found) => found,
        // Nobody matches what cannot be read.
        Err(error @ halite_client::Error::Refused { .. }) => {
            tracing::error!("{error}");
            return Ok(entries! { "res" => false });
        }
        Err(error) => return Err(master::failed(error)),
    };
    Ok(match found.get(&minion_id) {
        Some(_) => entries! { "res" => minion_id },
        None => entries! { "res" => false },
    })
}
