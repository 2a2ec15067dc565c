//! `timezone`: the time zone of the machine.

use halite_modules::timezone;
use halite_spec::{Applied, Args, Cx, Error, Plan, Result, State, states};
use halite_value::{Dict, Value};

states! {
    /// The time zone of the machine.
    "timezone": "system" => System,
}

/// Make sure that the machine is in a time zone, and its hardware clock in UTC.
#[derive(Args)]
pub struct System {
    /// The zone: `Europe/Berlin`.
    name: String,
    /// The hardware clock shows UTC.
    #[default(true)]
    utc: bool,
}

impl State for System {
    /// Whether the zone is right, and whether the hardware clock shows UTC.
    type Seen = (bool, bool);

    fn observe(&self, cx: &Cx) -> Result<(bool, bool)> {
        let name = &self.name;
        let zone = timezone::zone_compare(cx, name.clone()).map_err(|error| match error {
            Error::Failed(text) | Error::Invalid(text) => Error::failed(format!(
                "Unable to compare desired timezone '{name}' to system timezone: {text}"
            )),
            other => other,
        })?;
        Ok((zone, timezone::get_hwclock(cx)?.as_deref() != Some("localtime")))
    }

    fn plan(&self, (zone, utc): &(bool, bool)) -> Result<Plan> {
        let name = &self.name;
        let changes = Dict::new();
        let (mut right, mut pending, mut done) = (Vec::new(), Vec::new(), Vec::new());
        if *zone {
            right.push(format!("Timezone {name} already set"));
        } else {
            changes.insert("timezone", name);
            pending.push(format!("Timezone {name} needs to be set"));
            done.push(format!("Set timezone {name}"));
        }
        if self.utc && *utc {
            right.push(format!("UTC already set to {name}"));
        } else if self.utc {
            changes.insert("utc", true);
            pending.push("UTC needs to be set to True".into());
            done.push("Set UTC to True".into());
        }
        if changes.is_empty() {
            return Ok(Plan::nothing(right.join(", ")));
        }
        Ok(Plan::changes(changes).pending(pending.join(", ")).done(done.join(", ")))
    }

    fn apply(&self, cx: &Cx, (zone, utc): (bool, bool)) -> Result<Applied> {
        let (changes, mut texts, mut result) = (Dict::new(), Vec::new(), true);
        if !zone {
            // Salt takes the text about a zone that does not exist for success; we do not.
            // differs: a zone that does not exist fails.
            match timezone::set_zone(cx, self.name.clone())? {
                Value::Bool(true) => {
                    changes.insert("timezone", &self.name);
                    texts.push(format!("Set timezone {}", self.name));
                }
                _ => {
                    result = false;
                    texts.push("Failed to set timezone".to_owned());
                }
            }
        }
        if self.utc && !utc {
            if timezone::set_hwclock(cx, "UTC".into())? {
                changes.insert("utc", true);
                texts.push("Set UTC to True".into());
            } else {
                result = false;
                texts.push("Failed to set UTC to True".into());
            }
        }
        Ok(Applied {
            changes: Some(changes),
            comment: Some(texts.join(", ")),
            result: Some(result),
            extra: Dict::new(),
        })
    }
}
