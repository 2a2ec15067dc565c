//! `cache`: what the master remembers of minions.

use halite_client::Request;
use halite_spec::{Cx, Result, function, module};
use halite_value::{Dict, Value};

use crate::master;

module! {
    /// What the master remembers of minions.
    "cache": grains, pillar,
}

/// Returns one kind of data of the minions a target means.
pub(crate) fn data(cx: &Cx, tgt: Value, tgt_type: &str, kind: &str) -> Result<Dict> {
    let data = master::ask(cx, &Request::MinionData { tgt, tgt_type: tgt_type.into() })?;
    let entries = data.as_dict().map(Dict::entries).unwrap_or_default();
    Ok(entries.into_iter().map(|(id, own)| (id, own.get(kind).unwrap_or_default())).collect())
}

/// Return the grains the master remembers.
///
/// ```console
/// $ salt-run cache.grains '*'
/// ```
#[function]
pub fn grains(
    cx: &Cx,
    /// Whose.
    #[default(Value::from("*"))]
    tgt: Value,
    /// How the target is read.
    #[default("glob".to_owned())]
    tgt_type: String,
) -> Result<Dict> {
    data(cx, tgt, &tgt_type, "grains")
}

/// Return the pillar the master remembers.
///
/// ```console
/// $ salt-run cache.pillar '*'
/// ```
#[function]
pub fn pillar(
    cx: &Cx,
    /// Whose.
    #[default(Value::from("*"))]
    tgt: Value,
    /// How the target is read.
    #[default("glob".to_owned())]
    tgt_type: String,
) -> Result<Dict> {
    data(cx, tgt, &tgt_type, "pillar")
}
