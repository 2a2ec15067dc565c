//! `config`: values of the master's configuration.

use halite_spec::{Cx, Result, function, module};
use halite_value::{Value, lookup};

module! {
    /// Values of the master's configuration.
    "config": get,
}

/// Return a value of the master's configuration.
///
/// ```console
/// $ salt-run config.get timeout
/// ```
#[function]
pub fn get(
    cx: &Cx,
    /// The path.
    key: String,
    /// What to return when there is none.
    #[default(Value::from(""))]
    default: Value,
    /// What stands between the steps of the path.
    #[default(":".to_owned())]
    delimiter: String,
) -> Result<Value> {
    Ok(lookup::traverse(&Value::from(&cx.opts), &key, &delimiter).unwrap_or(default))
}
