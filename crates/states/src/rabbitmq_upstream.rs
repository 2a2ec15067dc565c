//! `rabbitmq_upstream`: upstreams of a federation of RabbitMQ servers.

use halite_modules::rabbitmq;
use halite_spec::{Applied, Args, Cx, Need, Plan, Result, State, states};
use halite_value::{Dict, Value, json};

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
    /// Its address, or several.
    uri: Value,
    /// How many messages may be on the way.
    prefetch_count: Option<Value>,
    /// Seconds before connecting again.
    reconnect_delay: Option<Value>,
    /// `on-confirm`, `on-publish` or `no-ack`.
    ack_mode: Option<Value>,
    /// Keep the user of messages.
    trust_user_id: Option<Value>,
    /// The exchange over there.
    exchange: Option<Value>,
    /// How far messages may go.
    max_hops: Option<Value>,
    /// How long the queue lives.
    expires: Option<Value>,
    /// How long messages live.
    message_ttl: Option<Value>,
    /// The policy of the queue.
    ha_policy: Option<Value>,
    /// The queue over there.
    queue: Option<Value>,
    /// The user to run as.
    runas: Option<String>,
}

impl Present {
    fn wanted(&self) -> Dict {
        let wanted = Dict::new();
        wanted.insert("uri", self.uri.clone());
        let parts = [
            ("prefetch-count", &self.prefetch_count),
            ("reconnect-delay", &self.reconnect_delay),
            ("ack-mode", &self.ack_mode),
            ("trust-user-id", &self.trust_user_id),
            ("exchange", &self.exchange),
            ("max-hops", &self.max_hops),
            ("expires", &self.expires),
            ("message-ttl", &self.message_ttl),
            ("ha-policy", &self.ha_policy),
            ("queue", &self.queue),
        ];
        for (key, value) in parts {
            if let Some(value) = value {
                wanted.insert(key, value.clone());
            }
        }
        wanted
    }
}

impl State for Present {
    type Seen = Option<Value>;

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let all = rabbitmq::list_upstreams(cx, self.runas.clone())?;
        let text = all.get(self.name.as_str()).map(|text| text.to_string());
        Ok(text.map(|text| json::from_str(&text).unwrap_or_default()))
    }

    fn plan(&self, now: &Self::Seen) -> Result<Plan> {
        let (name, wanted) = (&self.name, Value::from(self.wanted()));
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
        rabbitmq::set_upstream(
            cx,
            self.name.clone(),
            self.uri.clone(),
            self.prefetch_count.clone(),
            self.reconnect_delay.clone(),
            self.ack_mode.clone(),
            self.trust_user_id.clone(),
            self.exchange.clone(),
            self.max_hops.clone(),
            self.expires.clone(),
            self.message_ttl.clone(),
            self.ha_policy.clone(),
            self.queue.clone(),
            self.runas.clone(),
        )?;
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
