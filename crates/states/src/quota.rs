//! `quota`: whether the limits of a file system are on.

use halite_modules::quota;
use halite_spec::{Applied, Args, Cx, Error, Need, Plan, Result, State, states};
use halite_value::Value;

states! {
    /// Whether the limits of a file system are on.
    "quota", needs = [
        Need::function("quota.report", "quota module could not be loaded"),
    ]: "mode" => Mode,
}

/// Turn the limits of a file system on or off.
#[derive(Args)]
pub struct Mode {
    /// The file system.
    name: String,
    /// `on` or `off`.
    mode: Value,
    /// `user` or `group`.
    quotatype: String,
}

impl Mode {
    // differs: the text `on` means on; Salt understands only YAML's True.
    fn wanted(&self) -> &'static str {
        let on = self.mode == Value::Bool(true) || self.mode.as_str() == Some("on");
        if on { "on" } else { "off" }
    }
}

impl State for Mode {
    type Seen = String;

    fn observe(&self, cx: &Cx) -> Result<String> {
        let found = quota::get_mode(cx, self.name.clone())?.get(self.name.as_str());
        let now = found.and_then(|found| found.get_str(&self.quotatype));
        now.map(Into::into).ok_or_else(|| {
            Error::failed(format!("There are no {} quotas for {}", self.quotatype, self.name))
        })
    }

    fn plan(&self, now: &String) -> Result<Plan> {
        let (name, wanted) = (&self.name, self.wanted());
        if now == wanted {
            return Ok(Plan::nothing(format!("Quota for {name} already set to {wanted}")));
        }
        Ok(Plan::change("quota", name)
            .pending(format!("Quota for {name} needs to be set to {wanted}"))
            .done(format!("Set quota for {name} to {wanted}")))
    }

    fn apply(&self, cx: &Cx, _: String) -> Result<Applied> {
        let name = self.name.clone();
        let done = if self.wanted() == "on" { quota::on(cx, name)? } else { quota::off(cx, name)? };
        Applied::if_done(done, || {
            format!("Failed to set quota for {} to {}", self.name, self.wanted())
        })
    }
}
