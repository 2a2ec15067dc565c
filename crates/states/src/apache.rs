//! `apache`: configuration files of the Apache web server, made from data; and what the states of
//! the things Debian switches on and off (`apache_conf`, `apache_module`, `apache_site`) share.

use std::path::Path;

use halite_modules::apache::{self, Switch};
use halite_spec::{Applied, Args, Cx, Need, Plan, Result, State, host::Write, states};
use halite_value::Value;

states! {
    /// Configuration files of the Apache web server.
    "apache", needs = [
        Need::function("apache.config", "apache module could not be loaded"),
    ]: "configfile" => Configfile,
}

/// Make sure that a configuration file says this.
#[derive(Args)]
pub struct Configfile {
    /// The file.
    name: String,
    /// Containers and directives.
    config: Vec<Value>,
}

impl State for Configfile {
    type Seen = String;

    fn observe(&self, cx: &Cx) -> Result<String> {
        Ok(cx.host.read_text_if_there(Path::new(&self.name))?.unwrap_or_default())
    }

    fn plan(&self, old: &String) -> Result<Plan> {
        let new = apache::written(&self.config)?;
        if old.trim() == new.trim() {
            return Ok(Plan::nothing("Configuration is up to date."));
        }
        Ok(Plan::change("old", old)
            .and("new", new)
            .pending("Configuration will update.")
            .done("Successfully created configuration."))
    }

    fn apply(&self, cx: &Cx, _: String) -> Result<Applied> {
        let text = format!("{}\n", apache::written(&self.config)?);
        cx.host.write(Path::new(&self.name), text.as_bytes(), &Write::default())?;
        Ok(Applied::as_planned())
    }
}

/// The plan that a thing be on, or off.
pub(crate) fn switching(noun: &str, name: &str, on: bool, wanted: bool) -> Plan {
    let word = if wanted { "enabled" } else { "disabled" };
    if on == wanted {
        return Plan::nothing(format!("{name} already {word}."));
    }
    let (old, new) = if wanted { (Value::Null, name.into()) } else { (name.into(), Value::Null) };
    let pending = format!("Apache {noun} {name} is set to be {word}.");
    Plan::change("old", old).and("new", new).pending(pending)
}

/// Switches a thing on, or off.
pub(crate) fn switch(
    cx: &Cx,
    switch: Switch,
    noun: &str,
    name: &str,
    wanted: bool,
) -> Result<Applied> {
    let verb = if wanted { "enable" } else { "disable" };
    let status = apache::turn(cx, switch, name, wanted)?.get("Status").unwrap_or_default();
    Applied::if_done(status.to_string().contains(&format!("{verb}d")), || {
        format!("Failed to {verb} {name} Apache {noun} ({status})")
    })
}

/// Declares the two states of a thing that is switched: its kind, its noun, on and off.
macro_rules! switched {
    (
        $switch:expr, $noun:literal,
        $(#[$on_doc:meta])* $on:ident,
        $(#[$off_doc:meta])* $off:ident $(,)?
    ) => {
        $crate::apache::switched! { @one $switch, $noun, true, $(#[$on_doc])* $on }
        $crate::apache::switched! { @one $switch, $noun, false, $(#[$off_doc])* $off }
    };
    (@one $switch:expr, $noun:literal, $wanted:literal, $(#[$doc:meta])* $state:ident) => {
        $(#[$doc])*
        #[derive(halite_spec::Args)]
        pub struct $state {
            /// Its name.
            name: String,
        }

        impl halite_spec::State for $state {
            type Seen = bool;

            fn observe(&self, cx: &halite_spec::Cx) -> halite_spec::Result<bool> {
                Ok(halite_modules::apache::is_on(cx, $switch, &self.name))
            }

            fn plan(&self, on: &bool) -> halite_spec::Result<halite_spec::Plan> {
                Ok($crate::apache::switching($noun, &self.name, *on, $wanted))
            }

            fn apply(
                &self,
                cx: &halite_spec::Cx,
                _: bool,
            ) -> halite_spec::Result<halite_spec::Applied> {
                $crate::apache::switch(cx, $switch, $noun, &self.name, $wanted)
            }
        }
    };
}

pub(crate) use switched;
