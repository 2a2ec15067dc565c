//! `local`: shows the return. For trying returners out.

use halite_spec::{Cx, Result};
use halite_value::{Dict, Value};

use crate::{Options, returner};

returner! {
    /// Show returns in the minion's log.
    "local": ret, events = events
}

// differs: genuine Salt prints on the daemon's standard output, which nobody sees.
#[expect(clippy::unnecessary_wraps, reason = "the shape of a returner")]
fn ret(_: &Cx, _: &Options, ret: &Dict) -> Result<()> {
    let shown = Value::from(ret);
    tracing::warn!("return: {shown}");
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "the shape of a returner")]
fn events(_: &Cx, _: &Options, events: &[Value]) -> Result<()> {
    for event in events {
        tracing::warn!("event: {event}");
    }
    Ok(())
}
