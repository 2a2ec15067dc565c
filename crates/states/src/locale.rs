//! `locale`: languages of the machine.

use halite_modules::locale;
use halite_spec::{Applied, Args, Cx, Error, Plan, Result, State, states};
use halite_value::Value;

states! {
    /// Languages of the machine.
    "locale": "system" => System,
    "present" => Present,
}

/// Make sure that the machine speaks a locale.
#[derive(Args)]
pub struct System {
    /// The locale: `en_US.UTF-8`.
    name: String,
}

fn refused(error: Error) -> Error {
    match error {
        Error::Failed(text) => Error::failed(format!("Failed to set system locale: {text}")),
        other => other,
    }
}

impl State for System {
    type Seen = String;

    fn observe(&self, cx: &Cx) -> Result<String> {
        locale::get_locale(cx).map_err(refused)
    }

    fn plan(&self, current: &String) -> Result<Plan> {
        let name = &self.name;
        if current == name {
            return Ok(Plan::nothing(format!("System locale {name} already set")));
        }
        Ok(Plan::change("locale", name)
            .pending(format!("System locale {name} needs to be set"))
            .done(format!("Set system locale {name}")))
    }

    fn apply(&self, cx: &Cx, _: String) -> Result<Applied> {
        Applied::if_done(locale::set_locale(cx, self.name.clone()).map_err(refused)?, || {
            format!("Failed to set system locale to {}", self.name)
        })
    }
}

/// Make sure that a locale is there.
#[derive(Args)]
pub struct Present {
    /// The locale: `en_US.UTF-8`.
    name: String,
}

impl State for Present {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        locale::avail(cx, self.name.clone())
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let name = &self.name;
        if *there {
            return Ok(Plan::nothing(format!("Locale {name} is already present")));
        }
        Ok(Plan::change("locale", name)
            .pending(format!("Locale {name} needs to be generated"))
            .done(format!("Generated locale {name}")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        match locale::gen_locale(cx, self.name.clone(), halite_spec::Rest::default())? {
            Value::Bool(true) => Ok(Applied::as_planned()),
            _ => Err(Error::failed(format!("Failed to generate locale {}", self.name))),
        }
    }
}
