//! `error`: to see what a failing wheel function looks like.

use halite_spec::{Cx, Result, function, module};
use halite_value::Dict;

module! {
    /// To see what a failing wheel function looks like.
    "error": error,
}

/// Fail with an exception of that name; without one, return an empty dict.
///
/// ```console
/// $ curl … -d client=wheel -d fun=error.error -d name=ValueError -d message=hello
/// ```
#[function]
pub fn error(
    cx: &Cx,
    /// The exception.
    name: Option<String>,
    /// What it says.
    #[default(String::new())]
    message: String,
) -> Result<Dict> {
    crate::error::error(cx, name, message)
}
