//! `minions`: who is connected.

use halite_spec::{Cx, Result, function, module};
use halite_value::Value;

use crate::manage;

module! {
    /// Who is connected.
    "minions": connected,
}

/// Return the minions that are connected.
///
/// ```console
/// $ curl … -d client=wheel -d fun=minions.connected
/// ```
#[function]
pub fn connected(cx: &Cx) -> Result<Value> {
    manage::present(cx, manage::Named::default())
}
