//! `logrotate`: the configuration of the program of that name.

use halite_modules::logrotate;
use halite_spec::{Applied, Args, Cx, Plan, Result, State, states};
use halite_value::Value;

states! {
    /// The configuration of logrotate.
    "logrotate": "set" => Set,
}

/// Make sure that a setting has a value, at the top or in a block.
#[derive(Args)]
pub struct Set {
    /// Any name.
    #[expect(dead_code, reason = "the state has a name like every state")]
    name: String,
    /// The setting, or the block.
    key: String,
    /// Its value, or the setting of the block.
    value: Value,
    /// Its value.
    setting: Option<Value>,
    /// The file.
    #[default("/etc/logrotate.conf".to_owned())]
    conf_file: String,
}

impl Set {
    fn wanted(&self) -> &Value {
        self.setting.as_ref().unwrap_or(&self.value)
    }
}

impl State for Set {
    type Seen = Value;

    fn observe(&self, cx: &Cx) -> Result<Value> {
        let name = self.setting.as_ref().map(|_| self.value.to_string());
        logrotate::get(cx, self.key.clone(), name, self.conf_file.clone())
    }

    fn plan(&self, is: &Value) -> Result<Plan> {
        let wanted = self.wanted();
        let what = match &self.setting {
            Some(_) => format!("Block '{}' command '{}'", self.key, self.value),
            None => format!("Command '{}'", self.key),
        };
        if is.to_string() == wanted.to_string() {
            return Ok(Plan::nothing(format!("{what} already has value: {wanted}")));
        }
        let lower = match &self.setting {
            Some(_) => format!("block '{}' command '{}'", self.key, self.value),
            None => format!("command '{}'", self.key),
        };
        Ok(Plan::change("old", is)
            .and("new", wanted)
            .pending(format!("{what} will be set to value: {wanted}"))
            .done(format!("Set {lower} value: {wanted}")))
    }

    fn apply(&self, cx: &Cx, _: Value) -> Result<Applied> {
        let (key, value) = (self.key.clone(), self.value.clone());
        logrotate::set(cx, key, value, self.setting.clone(), self.conf_file.clone())?;
        Ok(Applied::as_planned())
    }
}
