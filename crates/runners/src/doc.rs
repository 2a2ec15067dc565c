//! `doc`: what can be called, and how.

use halite_client::Job;
use halite_spec::{Cx, Function, Result, function, module};
use halite_value::Dict;

use crate::master;

module! {
    /// What can be called, and how.
    "doc": runner, wheel, execution,
}

fn texts(functions: Vec<(String, &'static Function)>) -> Dict {
    let help = |(name, function): (String, &Function)| {
        let text = function.help("salt-run", &name);
        (name, text)
    };
    functions.into_iter().map(help).collect()
}

/// Return the documentation of all runners.
///
/// ```console
/// $ salt-run doc.runner
/// ```
#[function]
pub fn runner(_: &Cx) -> Result<Dict> {
    Ok(texts(crate::runners()))
}

/// Return the documentation of all wheel functions.
///
/// ```console
/// $ salt-run doc.wheel
/// ```
#[function]
pub fn wheel(_: &Cx) -> Result<Dict> {
    Ok(texts(crate::wheel_functions()))
}

/// Return the documentation of all functions the minions have.
///
/// ```console
/// $ salt-run doc.execution
/// ```
#[function]
pub fn execution(cx: &Cx) -> Result<Dict> {
    let outcome = master::run(cx, &Job::new("*", "glob", "sys.doc"), None)?;
    let docs = Dict::new();
    for (_, load) in outcome.returned {
        if let Some(own) = load.get("return").as_ref().and_then(|ret| ret.as_dict()) {
            docs.update(own);
        }
    }
    Ok(docs)
}
