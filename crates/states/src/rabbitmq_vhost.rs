//! `rabbitmq_vhost`: virtual hosts of a RabbitMQ server.

use halite_modules::rabbitmq;
use halite_spec::{Applied, Args, Cx, Need, Plan, Result, State, states};
use halite_value::{Dict, Value};

states! {
    /// Virtual hosts of a RabbitMQ server.
    "rabbitmq_vhost", needs = [
        Need::program(&["rabbitmqctl"], "Command not found: rabbitmqctl"),
    ]: "present" => Present,
    "absent" => Absent,
}

/// The comment is what the server said.
fn said(ret: &Dict) -> Applied {
    let text = ret.values().first().map(Value::to_string).unwrap_or_default();
    Applied::as_planned().comment(text)
}

/// Make sure that a virtual host exists.
#[derive(Args)]
pub struct Present {
    /// The virtual host.
    name: String,
}

impl State for Present {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        rabbitmq::vhost_exists(cx, self.name.clone(), None)
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let name = &self.name;
        if *there {
            return Ok(Plan::nothing(format!("Virtual Host '{name}' already exists.")));
        }
        let pending = format!("Virtual Host '{name}' will be created.");
        Ok(Plan::change("old", "").and("new", name).pending(pending))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        Ok(said(&rabbitmq::add_vhost(cx, self.name.clone(), None)?))
    }
}

/// Make sure that a virtual host does not exist.
#[derive(Args)]
pub struct Absent {
    /// The virtual host.
    name: String,
}

impl State for Absent {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        rabbitmq::vhost_exists(cx, self.name.clone(), None)
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let name = &self.name;
        if !there {
            return Ok(Plan::nothing(format!("Virtual Host '{name}' is not present.")));
        }
        let pending = format!("Virtual Host '{name}' will be removed.");
        Ok(Plan::change("new", "").and("old", name).pending(pending))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        Ok(said(&rabbitmq::delete_vhost(cx, self.name.clone(), None)?))
    }
}
