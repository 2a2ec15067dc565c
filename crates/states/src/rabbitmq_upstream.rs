//! `rabbitmq_upstream`: upstreams of a federation of RabbitMQ servers.

use halite_modules::rabbitmq::{self, Upstream};
use halite_spec::{Applied, Args, Cx, Need, Plan, Result, State, states};
use halite_value::{Value, json};

states! {
    /// Upstreams of a federation of RabbitMQ servers.
    "rabbitmq_upstream", needs = [
        Need::function("rabbitmq.list_upstreams", "rabbitmq module could not be loaded"),
    ]: "present" => Present,
    "absent" => Absent,
}

/// Make sure that an upstream is as it should be.
#[derive(Args)]
pub struct Present {
    /// Its name.
    name: String,
    #[group]
    upstream: Upstream,
}

impl State for Present {
    type Seen = Option<Value>;

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let all = rabbitmq::list_upstreams(cx, self.upstream.runas.clone())?;
        let text = all.get(self.name.as_str()).map(|text| text.to_string());
        Ok(text.map(|text| json::from_str(&text).unwrap_or_default()))
    }

    fn plan(&self, now: &Self::Seen) -> Result<Plan> {
        let (name, wanted) = (&self.name, Value::from(self.upstream.parameters()));
        let verb = match now {
            Some(now) if *now == wanted => {
                let comment = format!("Upstream \"{name}\" already present as specified.");
                return Ok(Plan::nothing(comment));
            }
            Some(_) => "updated",
            None => "created",
        };
        Ok(Plan::change("old", now.clone().unwrap_or_default())
            .and("new", wanted)
            .pending(format!("Upstream \"{name}\" would have been {verb}."))
            .done(format!("Upstream \"{name}\" {verb}.")))
    }

    fn apply(&self, cx: &Cx, _: Self::Seen) -> Result<Applied> {
        self.upstream.set(cx, &self.name)?;
        Ok(Applied::as_planned())
    }
}

/// Make sure that there is no such upstream.
#[derive(Args)]
pub struct Absent {
    /// Its name.
    name: String,
    /// The user to run as.
    runas: Option<String>,
}

impl State for Absent {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        rabbitmq::upstream_exists(cx, self.name.clone(), self.runas.clone())
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let name = &self.name;
        if !there {
            return Ok(Plan::nothing(format!("The upstream \"{name}\" is already absent.")));
        }
        Ok(Plan::change("old", name)
            .and("new", Value::Null)
            .pending(format!("Upstream \"{name}\" would have been deleted."))
            .done(format!("Upstream \"{name}\" has been deleted.")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        rabbitmq::delete_upstream(cx, self.name.clone(), self.runas.clone())?;
        Ok(Applied::as_planned())
    }
}
