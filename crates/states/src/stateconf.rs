//! `stateconf`: a place for parameters.
//!
//! These states do nothing: other states refer to what stands in them, and requisites to the
//! moment they mark.

use halite_spec::{Applied, Args, Cx, Keys, Plan, Rest, Result, State, states};

states! {
    /// A place for parameters.
    "stateconf": "set" => Set,
    "context" => Set,
}

/// Hold parameters for other states.
#[derive(Args)]
pub struct Set {
    /// Any name.
    #[expect(dead_code, reason = "the state has a name like every state")]
    name: String,
    /// The parameters.
    #[expect(dead_code, reason = "others look into the low chunk")]
    kwargs: Rest,
}

impl State for Set {
    type Seen = ();
    const KEYS: Keys = Keys(["name", "result", "changes", "comment"]);

    fn observe(&self, _: &Cx) -> Result<()> {
        Ok(())
    }

    fn plan(&self, (): &()) -> Result<Plan> {
        Ok(Plan::nothing(""))
    }

    fn apply(&self, _: &Cx, (): ()) -> Result<Applied> {
        Ok(Applied::as_planned())
    }
}
