//! `alias`: mail aliases.

use halite_modules::aliases;
use halite_spec::{Applied, Args, Cx, Plan, Result, State, states};
use halite_value::Value;

states! {
    /// Mail aliases.
    "alias": "present" => Present,
    "absent" => Absent,
}

/// Make sure that an alias leads somewhere.
#[derive(Args)]
pub struct Present {
    /// The alias.
    name: String,
    /// The target, or a list.
    target: Value,
}

impl State for Present {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        aliases::has_target(cx, self.name.clone(), self.target.clone())
    }

    fn plan(&self, right: &bool) -> Result<Plan> {
        let (name, target) = (&self.name, &self.target);
        if *right {
            return Ok(Plan::nothing(format!("Alias {name} already present")));
        }
        Ok(Plan::change("alias", name)
            .pending(format!("Alias {name} -> {target} is set to be added"))
            .done(format!("Set email alias {name} -> {target}")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let (name, target) = (&self.name, &self.target);
        Applied::if_done(aliases::set_target(cx, name.clone(), target.clone())?, || {
            format!("Failed to set alias {name} -> {target}")
        })
    }
}

/// Make sure that there is no such alias.
#[derive(Args)]
pub struct Absent {
    /// The alias.
    name: String,
}

impl State for Absent {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        Ok(!aliases::get_target(cx, self.name.clone())?.is_empty())
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let name = &self.name;
        if !there {
            return Ok(Plan::nothing(format!("Alias {name} already absent")));
        }
        Ok(Plan::change("alias", name)
            .pending(format!("Alias {name} is set to be removed"))
            .done(format!("Removed alias {name}")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        Applied::if_done(aliases::rm_alias(cx, self.name.clone())?, || {
            format!("Failed to remove alias {}", self.name)
        })
    }
}
