//! Whether a target means this minion.

use halite_spec::{Cx, Error, Result};
use halite_target::{Expr, Minion, Options, TargetType};
use halite_value::{Dict, Value};

/// The configured node groups.
pub(crate) fn nodegroups(cx: &Cx) -> Option<Dict> {
    match cx.opt("nodegroups") {
        Some(Value::Dict(groups)) => Some(groups),
        _ => None,
    }
}

/// Runs with this minion as targets see it.
pub(crate) fn with_minion<T>(cx: &Cx, run: impl FnOnce(Minion<'_>) -> T) -> T {
    let id = cx.id();
    run(Minion {
        id: &id,
        grains: Some(&cx.grains),
        pillar: Some(&cx.pillar),
        data: None,
        resources: None,
    })
}

pub(crate) fn matches(cx: &Cx, expression: &str, kind: &str) -> Result<bool> {
    let kind: TargetType = kind.parse().map_err(invalid)?;
    let groups = nodegroups(cx);
    let options = Options { nodegroups: groups.as_ref(), delimiter: None };
    let expr = Expr::parse(&Value::str(expression), kind, &options).map_err(invalid)?;
    Ok(with_minion(cx, |minion| expr.matches(&minion)))
}

fn invalid(error: halite_target::Error) -> Error {
    Error::invalid(error.to_string())
}
