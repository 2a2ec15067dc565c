//! `keyboard`: the layout of the keyboard.

use halite_modules::keyboard;
use halite_spec::{Applied, Args, Cx, Plan, Result, State, states};

states! {
    /// The layout of the keyboard.
    "keyboard": "system" => System,
    "xorg" => Xorg,
}

/// Make sure of the layout of the console.
#[derive(Args)]
pub struct System {
    /// The layout.
    name: String,
}

impl State for System {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        Ok(keyboard::get_sys(cx)? == self.name)
    }

    fn plan(&self, right: &bool) -> Result<Plan> {
        let name = &self.name;
        if *right {
            return Ok(Plan::nothing(format!("System layout {name} already set")));
        }
        Ok(Plan::change("layout", name)
            .pending(format!("System layout {name} needs to be set"))
            .done(format!("Set system keyboard layout {name}")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        keyboard::set_sys(cx, self.name.clone())?;
        Ok(Applied::as_planned())
    }
}

/// Make sure of the layout of X.
#[derive(Args)]
pub struct Xorg {
    /// The layout.
    name: String,
}

impl State for Xorg {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        Ok(keyboard::get_x(cx)? == self.name)
    }

    fn plan(&self, right: &bool) -> Result<Plan> {
        let name = &self.name;
        if *right {
            return Ok(Plan::nothing(format!("XOrg layout {name} already set")));
        }
        Ok(Plan::change("layout", name)
            .pending(format!("XOrg layout {name} needs to be set"))
            .done(format!("Set XOrg keyboard layout {name}")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        keyboard::set_x(cx, self.name.clone())?;
        Ok(Applied::as_planned())
    }
}
