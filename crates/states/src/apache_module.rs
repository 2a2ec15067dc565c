//! `apache_module`: modules of the Apache web server, on Debian.

use halite_modules::apache::{self, Switch};
use halite_spec::{Applied, Args, Cx, Error, Need, Plan, Result, State, states};
use halite_value::Value;

states! {
    /// Modules of the Apache web server.
    "apache_module", needs = [
        Need::function("apache.a2enmod", "apache module could not be loaded"),
    ]: "enabled" => Enabled,
    "disabled" => Disabled,
}

/// Make sure that a module is on.
#[derive(Args)]
pub struct Enabled {
    /// Its name.
    name: String,
}

impl State for Enabled {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        Ok(apache::is_on(cx, Switch::Mod, &self.name))
    }

    fn plan(&self, on: &bool) -> Result<Plan> {
        let name = &self.name;
        if *on {
            return Ok(Plan::nothing(format!("{name} already enabled.")));
        }
        let pending = format!("Apache module {name} is set to be enabled.");
        Ok(Plan::change("old", Value::Null).and("new", name).pending(pending))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let name = &self.name;
        let status = apache::turn(cx, Switch::Mod, name, true)?.get("Status").unwrap_or_default();
        if status.to_string().contains("enabled") {
            return Ok(Applied::as_planned());
        }
        Err(Error::failed(format!("Failed to enable {name} Apache module ({status})")))
    }
}

/// Make sure that a module is off.
#[derive(Args)]
pub struct Disabled {
    /// Its name.
    name: String,
}

impl State for Disabled {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        Ok(apache::is_on(cx, Switch::Mod, &self.name))
    }

    fn plan(&self, on: &bool) -> Result<Plan> {
        let name = &self.name;
        if !on {
            return Ok(Plan::nothing(format!("{name} already disabled.")));
        }
        let pending = format!("Apache module {name} is set to be disabled.");
        Ok(Plan::change("old", name).and("new", Value::Null).pending(pending))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let name = &self.name;
        let status = apache::turn(cx, Switch::Mod, name, false)?.get("Status").unwrap_or_default();
        if status.to_string().contains("disabled") {
            return Ok(Applied::as_planned());
        }
        Err(Error::failed(format!("Failed to disable {name} Apache module ({status})")))
    }
}
