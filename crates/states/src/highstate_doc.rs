//! `highstate_doc`: notes for whoever reads the documentation of a highstate.

use halite_spec::{Applied, Args, Cx, Keys, Plan, Rest, Result, State, states};
use halite_value::Value;

states! {
    /// Notes for whoever reads the documentation of a highstate.
    "highstate_doc": "note" => Note,
}

/// Say something, and do nothing.
#[derive(Args)]
pub struct Note {
    /// Any name.
    #[expect(dead_code, reason = "the state has a name like every state")]
    name: String,
    /// Set by the engine.
    #[expect(dead_code, reason = "Salt's name for where the note comes from")]
    source: Option<Value>,
    /// What to say.
    contents: Option<String>,
    /// Anything else.
    #[expect(dead_code, reason = "Salt takes anything here")]
    kwargs: Rest,
}

impl State for Note {
    type Seen = ();
    const KEYS: Keys = Keys(["name", "result", "comment", "changes"]);

    fn observe(&self, _: &Cx) -> Result<()> {
        Ok(())
    }

    fn plan(&self, (): &()) -> Result<Plan> {
        Ok(Plan::nothing(self.contents.clone().unwrap_or_default()))
    }

    fn apply(&self, _: &Cx, (): ()) -> Result<Applied> {
        Ok(Applied::as_planned())
    }
}
