//! `apache`: configuration files of the Apache web server, made from data.

use std::path::Path;

use halite_modules::apache;
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
