//! `firewall`: checks that a port of another machine can be reached.

use halite_modules::network;
use halite_spec::{Applied, Args, Cx, Error, Keys, Plan, Rest, Result, State, states};
use halite_value::{Dict, Value};

states! {
    /// Checks that a port of another machine can be reached.
    "firewall": "check" => Check,
}

/// Check that somebody listens on a port.
#[derive(Args)]
pub struct Check {
    /// The machine.
    name: String,
    /// The port.
    port: Option<Value>,
    /// `proto`, `timeout`, `family`, as of `network.connect`.
    kwargs: Rest,
}

impl State for Check {
    type Seen = Dict;
    const KEYS: Keys = Keys(["name", "result", "changes", "comment"]);

    fn observe(&self, cx: &Cx) -> Result<Dict> {
        network::connect(cx, self.name.clone(), self.port.clone(), self.kwargs.clone())
    }

    fn plan(&self, answer: &Dict) -> Result<Plan> {
        let comment = answer.get("comment").map(|text| text.to_string()).unwrap_or_default();
        match answer.get("result") {
            Some(Value::Bool(true)) => Ok(Plan::nothing(comment)),
            _ => Err(Error::failed(comment)),
        }
    }

    fn apply(&self, _: &Cx, _: Dict) -> Result<Applied> {
        Ok(Applied::as_planned())
    }
}
