//! `config`: the master's configuration.

use halite_spec::{Cx, Result, function, module};
use halite_value::Dict;

module! {
    /// The master's configuration.
    "config": values,
}

/// Return the master's configuration.
///
/// ```console
/// $ curl … -d client=wheel -d fun=config.values
/// ```
#[function]
pub fn values(cx: &Cx) -> Result<Dict> {
    Ok(cx.opts.clone())
}
