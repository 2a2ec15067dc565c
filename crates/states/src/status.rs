//! `status`: checks of the machine that change nothing.

use halite_modules::{ps, status};
use halite_spec::{Applied, Args, Cx, Error, Keys, Plan, Result, State, states};
use halite_value::Value;

states! {
    /// Checks of the machine that change nothing.
    "status": "loadavg" => Loadavg,
    "process" => Process,
}

/// Check that a load average is in a range.
#[derive(Args)]
pub struct Loadavg {
    /// `1-min`, `5-min` or `15-min`.
    name: String,
    /// The largest that is well.
    maximum: Option<Value>,
    /// The smallest that is well.
    minimum: Option<Value>,
}

impl State for Loadavg {
    type Seen = Option<f64>;
    const KEYS: Keys = Keys(["name", "result", "comment", "changes"]);

    fn observe(&self, cx: &Cx) -> Result<Option<f64>> {
        Ok(status::loadavg(cx)?.get(self.name.as_str()).and_then(|load| load.as_float()))
    }

    fn plan(&self, load: &Option<f64>) -> Result<Plan> {
        let Some(load) = load else {
            let text = format!("Requested load average {} not available ", self.name);
            return Err(Error::failed(text));
        };
        let shown = Value::from(*load);
        // A limit of nothing is no limit.
        let limit = |limit: &Option<Value>| limit.as_ref().filter(|limit| limit.truthy()).cloned();
        if let Some(minimum) = limit(&self.minimum)
            && minimum.as_float().is_some_and(|minimum| *load < minimum)
        {
            let text = format!("Load avg is below minimum of {minimum} at {shown}");
            return Err(Error::failed(text));
        }
        if let Some(maximum) = limit(&self.maximum)
            && maximum.as_float().is_some_and(|maximum| *load > maximum)
        {
            let text = format!("Load avg above maximum of {maximum} at {shown}");
            return Err(Error::failed(text));
        }
        Ok(Plan::nothing("Load avg in acceptable range"))
    }

    fn apply(&self, _: &Cx, _: Option<f64>) -> Result<Applied> {
        Ok(Applied::as_planned())
    }
}

/// Check that a process runs.
#[derive(Args)]
pub struct Process {
    /// What its command line holds.
    name: String,
}

impl State for Process {
    type Seen = bool;
    const KEYS: Keys = Keys(["name", "result", "comment", "changes"]);

    fn observe(&self, cx: &Cx) -> Result<bool> {
        let own = ps::own_and_above(cx);
        Ok(ps::processes(cx)?
            .iter()
            .any(|process| process.shown().contains(&self.name) && !own.contains(&process.pid)))
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let name = &self.name;
        if *there {
            return Ok(Plan::nothing(format!("Process signature \"{name}\" was found ")));
        }
        Err(Error::failed(format!("Process signature \"{name}\" not found ")))
    }

    fn apply(&self, _: &Cx, _: bool) -> Result<Applied> {
        Ok(Applied::as_planned())
    }
}
