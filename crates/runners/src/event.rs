//! `event`: events on the master's bus.

use halite_client::Request;
use halite_spec::{Cx, Result, function, module};
use halite_value::Dict;

use crate::master;

module! {
    /// Events on the master's bus.
    "event": send,
}

/// Fire an event on the master's bus.
///
/// ```console
/// $ salt-run event.send my/tag '{"answer": 42}'
/// ```
#[function]
pub fn send(
    cx: &Cx,
    /// Its tag.
    tag: String,
    /// Its data.
    data: Option<Dict>,
) -> Result<bool> {
    let request = Request::Fire { tag: tag.into(), data: data.unwrap_or_default() };
    master::ask(cx, &request).map(|done| done.truthy())
}
