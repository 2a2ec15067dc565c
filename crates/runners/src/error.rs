//! `error`: to see what a failing runner looks like.

use halite_spec::{Cx, Error, Result, function, module};
use halite_value::Dict;

module! {
    /// To see what a failing runner looks like.
    "error": error,
}

/// Fail with an exception of that name; without one, return an empty dict.
///
/// ```console
/// $ salt-run error.error name=ValueError message=hello
/// ```
#[function]
pub fn error(
    _: &Cx,
    /// The exception.
    name: Option<String>,
    /// What it says.
    #[default(String::new())]
    message: String,
) -> Result<Dict> {
    match name {
        Some(class) => Err(Error::Raised { class, message, traceback: None }),
        None => Ok(Dict::new()),
    }
}
