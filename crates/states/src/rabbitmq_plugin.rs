//! `rabbitmq_plugin`: plugins of a RabbitMQ server.

use halite_modules::rabbitmq;
use halite_spec::{Applied, Args, Cx, Need, Plan, Result, State, states};

states! {
    /// Plugins of a RabbitMQ server.
    "rabbitmq_plugin", needs = [
        Need::program(&["rabbitmqctl"], "Command not found: rabbitmqctl"),
    ]: "enabled" => Enabled,
    "disabled" => Disabled,
}

/// Make sure that a plugin is enabled.
#[derive(Args)]
pub struct Enabled {
    /// The plugin.
    name: String,
    /// The user to run as.
    runas: Option<String>,
}

impl State for Enabled {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        rabbitmq::plugin_is_enabled(cx, self.name.clone(), self.runas.clone())
    }

    fn plan(&self, enabled: &bool) -> Result<Plan> {
        let name = &self.name;
        if *enabled {
            return Ok(Plan::nothing(format!("Plugin '{name}' is already enabled.")));
        }
        Ok(Plan::change("old", "")
            .and("new", name)
            .pending(format!("Plugin '{name}' is set to be enabled."))
            .done(format!("Plugin '{name}' was enabled.")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        rabbitmq::enable_plugin(cx, self.name.clone(), self.runas.clone())?;
        Ok(Applied::as_planned())
    }
}

/// Make sure that a plugin is disabled.
#[derive(Args)]
pub struct Disabled {
    /// The plugin.
    name: String,
    /// The user to run as.
    runas: Option<String>,
}

impl State for Disabled {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        rabbitmq::plugin_is_enabled(cx, self.name.clone(), self.runas.clone())
    }

    fn plan(&self, enabled: &bool) -> Result<Plan> {
        let name = &self.name;
        if !enabled {
            return Ok(Plan::nothing(format!("Plugin '{name}' is already disabled.")));
        }
        Ok(Plan::change("old", name)
            .and("new", "")
            .pending(format!("Plugin '{name}' is set to be disabled."))
            .done(format!("Plugin '{name}' was disabled.")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        rabbitmq::disable_plugin(cx, self.name.clone(), self.runas.clone())?;
        Ok(Applied::as_planned())
    }
}
