//! `rabbitmq_policy`: policies of a RabbitMQ server.

use halite_modules::rabbitmq;
use halite_spec::{Applied, Args, Cx, Need, Plan, Result, State, states};
use halite_value::{Dict, Value, json};

states! {
    /// Policies of a RabbitMQ server.
    "rabbitmq_policy", needs = [
        Need::program(&["rabbitmqctl"], "Command not found: rabbitmqctl"),
    ]: "present" => Present,
    "absent" => Absent,
}

/// Make sure that a policy exists.
#[derive(Args)]
pub struct Present {
    /// The policy.
    name: String,
    /// Which queues and exchanges, as a pattern.
    pattern: String,
    /// What holds for them: JSON text, or a dict.
    definition: Value,
    /// Which policy wins.
    #[default(Value::from(0))]
    priority: Value,
    /// The virtual host.
    #[default("/".to_owned())]
    vhost: String,
    /// The user to run as.
    runas: Option<String>,
    /// `queues`, `exchanges` or `all`.
    apply_to: Option<String>,
}

/// JSON texts that mean the same are the same.
fn data_of(definition: &Value) -> Value {
    let parsed = definition.as_str().and_then(|text| json::from_str(text).ok());
    parsed.unwrap_or_else(|| definition.clone())
}

fn policy(cx: &Cx, vhost: &str, name: &str, runas: Option<String>) -> Result<Option<Value>> {
    let policies = rabbitmq::list_policies(cx, vhost.to_owned(), runas)?;
    Ok(policies.get(vhost).and_then(|policies| policies.get(name)))
}

impl State for Present {
    type Seen = Option<Value>;

    fn observe(&self, cx: &Cx) -> Result<Option<Value>> {
        policy(cx, &self.vhost, &self.name, self.runas.clone())
    }

    fn plan(&self, seen: &Option<Value>) -> Result<Plan> {
        let Self { vhost, name, pattern, .. } = self;
        let own = |key: &str| seen.as_ref().and_then(|seen| seen.get(key)).unwrap_or_default();
        let right = seen.is_some()
            && own("pattern").as_str() == Some(pattern)
            && data_of(&own("definition")) == data_of(&self.definition)
            && own("priority").to_string() == self.priority.to_string()
            && self
                .apply_to
                .as_deref()
                .is_none_or(|wanted| own("apply_to").as_str() == Some(wanted));
        if right {
            let text = format!("Policy {vhost} {name} is already present");
            return Ok(Plan::nothing(text));
        }
        Ok(Plan::change("old", Dict::new())
            .and("new", name)
            .pending(format!("Policy {vhost} {name} is set to be created"))
            .done(format!("Set policy {vhost} {name} {pattern}")))
    }

    fn apply(&self, cx: &Cx, _: Option<Value>) -> Result<Applied> {
        let ret = rabbitmq::set_policy(
            cx,
            self.vhost.clone(),
            self.name.clone(),
            self.pattern.clone(),
            self.definition.clone(),
            Some(self.priority.clone()),
            self.runas.clone(),
            self.apply_to.clone(),
        )?;
        let text = ret.values().first().map(Value::to_string).unwrap_or_default();
        Ok(Applied::as_planned().comment(text))
    }
}

/// Make sure that a policy does not exist.
#[derive(Args)]
pub struct Absent {
    /// The policy.
    name: String,
    /// The virtual host.
    #[default("/".to_owned())]
    vhost: String,
    /// The user to run as.
    runas: Option<String>,
}

impl State for Absent {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        Ok(policy(cx, &self.vhost, &self.name, self.runas.clone())?.is_some())
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let Self { vhost, name, .. } = self;
        if !there {
            return Ok(Plan::nothing(format!("Policy '{vhost} {name}' is not present.")));
        }
        Ok(Plan::change("new", "")
            .and("old", name)
            .pending(format!("Policy '{vhost} {name}' will be removed.")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let (vhost, name) = (self.vhost.clone(), self.name.clone());
        let ret = rabbitmq::delete_policy(cx, vhost, name, self.runas.clone())?;
        let text = ret.values().first().map(Value::to_string).unwrap_or_default();
        Ok(Applied::as_planned().comment(text))
    }
}
