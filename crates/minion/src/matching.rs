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

/// Returns a minion as targets see it.
pub(crate) fn minion<'a>(id: &'a str, grains: &'a Dict, pillar: &'a Dict) -> Minion<'a> {
    Minion { id, grains: Some(grains), pillar: Some(pillar), data: None, resources: None }
}

/// Runs with this minion as targets see it.
pub(crate) fn with_minion<T>(cx: &Cx, run: impl FnOnce(Minion<'_>) -> T) -> T {
    let id = cx.id();
    run(minion(&id, &cx.grains, &cx.pillar))
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
