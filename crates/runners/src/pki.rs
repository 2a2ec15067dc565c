//! `pki`: how many minions' keys there are.

use halite_spec::{Cx, Error, Result, function, module};

use crate::wheel;

module! {
    /// How many keys there are.
    "pki": status, migrate_to_mmap,
}

/// Count the keys, by what was decided about them.
///
/// ```console
/// $ salt-run pki.status
/// ```
#[function]
pub fn status(cx: &Cx) -> Result<String> {
    let keys = wheel::key::list_all(cx)?;
    let count = |name: &str| {
        let ids = keys.get(name).and_then(|ids| ids.items_of_sequence());
        ids.map_or(0, |ids| ids.len())
    };
    let parts = ["minions", "minions_pre", "minions_rejected", "minions_denied"].map(count);
    let [accepted, pending, rejected, denied] = parts;
    Ok(format!(
        "PKI migration dry-run (no changes written):\n  Accepted: {accepted}\n  Pending:  {pending}\n  Rejected: {rejected}\n  Denied:   {denied}\n  Total:    {}",
        parts.iter().sum::<usize>()
    ))
}

/// Put the keys into Salt's memory-mapped store, which Halite does not have: its keys are files, and
/// an index of them is kept in memory.
///
/// ```console
/// $ salt-run pki.migrate_to_mmap
/// ```
#[function]
pub fn migrate_to_mmap(
    cx: &Cx,
    /// Only count.
    #[default(false)]
    dry_run: bool,
) -> Result<String> {
    if dry_run {
        return status(cx);
    }
    // differs: there is no such store.
    Err(Error::failed("pki.migrate_to_mmap: Halite keeps keys in files only; nothing was changed"))
}
