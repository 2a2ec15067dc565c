//! `sysctl`: settings of the kernel, now and after the next start.

use halite_modules::sysctl;
use halite_spec::{Applied, Args, Cx, Error, Keys, Plan, Result, State, states};
use halite_value::{Dict, Value};

states! {
    /// Settings of the kernel.
    "sysctl": "present" => Present,
}

/// Make sure that a kernel setting has a value, now and after the next start.
#[derive(Args)]
pub struct Present {
    /// The setting.
    name: String,
    /// Its value.
    value: Value,
    /// The file it is kept in; the usual one if none is given.
    config: Option<String>,
}

/// What the file says, and what the kernel has.
pub struct Seen {
    kept: Dict,
    current: String,
}

impl Present {
    fn text(&self) -> String {
        self.value.to_string()
    }
}

impl State for Present {
    type Seen = Seen;
    const KEYS: Keys = Keys(["name", "result", "changes", "comment"]);

    fn observe(&self, cx: &Cx) -> Result<Seen> {
        let config = match &self.config {
            Some(config) => config.clone(),
            None => sysctl::default_config(cx)?.to_owned(),
        };
        let kept = match sysctl::show(cx, config.into())? {
            Value::Dict(kept) => kept,
            _ => Dict::new(),
        };
        Ok(Seen { kept, current: sysctl::get(cx, self.name.clone())? })
    }

    fn plan(&self, seen: &Seen) -> Result<Plan> {
        let (name, value) = (&self.name, self.text());
        let kept = seen.kept.get(name.as_str()).map(|kept| sysctl::normal(&kept.to_str()));
        let wanted = sysctl::normal(&value);
        let now = sysctl::normal(&seen.current) == wanted;
        let pending = match kept {
            Some(kept) if kept == wanted && now => {
                return Ok(Plan::nothing(format!("Sysctl value {name} = {value} is already set")));
            }
            Some(_) if seen.current.is_empty() => format!(
                "Sysctl value {name} is present in configuration file but is not present in the \
                 running config. The value {name} is set to be changed to {value}"
            ),
            Some(_) => format!("Sysctl option {name} would be changed to {value}"),
            None if seen.current.is_empty() => {
                format!("Sysctl option {name} would be changed to {value}")
            }
            None if now => format!(
                "Sysctl value is currently set on the running system but not in a config file. \
                 Sysctl option {name} set to be changed to {value} in config file."
            ),
            None => format!("Sysctl option {name} set to be changed to {value}"),
        };
        Ok(Plan::change(name, &self.value)
            .pending(pending)
            .done(format!("Updated sysctl value {name} = {value}")))
    }

    fn apply(&self, cx: &Cx, _: Seen) -> Result<Applied> {
        let (name, value) = (&self.name, self.text());
        match sysctl::persist(cx, name.clone(), value.clone(), self.config.clone()) {
            Ok(_) => Ok(Applied::as_planned()),
            Err(Error::Failed(text)) => {
                Err(Error::failed(format!("Failed to set {name} to {value}: {text}")))
            }
            Err(error) => Err(error),
        }
    }
}
