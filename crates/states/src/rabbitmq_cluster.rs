//! `rabbitmq_cluster`: servers that belong together.

use halite_modules::rabbitmq;
use halite_spec::{Applied, Args, Cx, Need, Plan, Result, State, states};
use halite_value::Value;

states! {
    /// Servers that belong together.
    "rabbitmq_cluster", needs = [
        Need::program(&["rabbitmqctl"], "Command not found: rabbitmqctl"),
    ]: "joined" => Joined,
    "join" => Joined,
}

/// Make sure that this server is in the cluster of another.
#[derive(Args)]
pub struct Joined {
    /// Anything: it is only a name.
    #[expect(dead_code, reason = "the state has a name like every state")]
    name: String,
    /// The other machine.
    host: String,
    /// The user the server runs as there.
    #[default("rabbit".to_owned())]
    user: String,
    /// Keep the data in memory only.
    ram_node: Option<bool>,
    /// The user to run as.
    #[default("root".to_owned())]
    runas: String,
}

impl Joined {
    fn node(&self) -> String {
        format!("{}@{}", self.user, self.host)
    }
}

impl State for Joined {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        let status = rabbitmq::cluster_status(cx, Some(self.runas.clone()))?;
        Ok(status.contains(&self.node()))
    }

    fn plan(&self, joined: &bool) -> Result<Plan> {
        if *joined {
            return Ok(Plan::nothing("Already in cluster"));
        }
        let node = self.node();
        let pending = format!("Node is set to join cluster {node}");
        Ok(Plan::change("old", "").and("new", node).pending(pending))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let (host, user) = (self.host.clone(), self.user.clone());
        let ret = rabbitmq::join_cluster(cx, host, user, self.ram_node, Some(self.runas.clone()))?;
        let text = ret.values().first().map(Value::to_string).unwrap_or_default();
        Ok(Applied::as_planned().comment(text))
    }
}
