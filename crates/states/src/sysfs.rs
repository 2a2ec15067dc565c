//! `sysfs`: attributes of the kernel's `/sys`.

use halite_modules::sysfs;
use halite_spec::{Applied, Args, Cx, Error, Keys, Plan, Result, State, states};
use halite_value::{Dict, Value};

states! {
    /// Attributes of the kernel's `/sys`.
    "sysfs": "present" => Present,
}

/// Make sure that an attribute has a value, until the next start.
#[derive(Args)]
pub struct Present {
    /// The attribute.
    name: String,
    /// Its value; a dict names several attributes of the folder.
    value: Value,
    /// Not looked at.
    #[expect(dead_code, reason = "Salt takes it and does nothing with it")]
    config: Option<Value>,
}

impl Present {
    /// Attribute → wanted value.
    fn wanted(&self) -> Vec<(String, Value)> {
        match &self.value {
            Value::Dict(values) => {
                let entries = values.entries().into_iter();
                entries.map(|(key, value)| (format!("{}/{key}", self.name), value)).collect()
            }
            value => vec![(self.name.clone(), value.clone())],
        }
    }
}

impl State for Present {
    type Seen = Vec<(String, Value)>;
    const KEYS: Keys = Keys(["name", "result", "changes", "comment"]);

    fn observe(&self, cx: &Cx) -> Result<Vec<(String, Value)>> {
        let mut wrong = Vec::new();
        for (name, wanted) in self.wanted() {
            let is = sysfs::read(cx, name.as_str().into(), String::new())?;
            if matches!(is, Value::Bool(false)) {
                return Err(Error::failed(format!("SysFS attribute {name} doesn't exist.")));
            }
            // Several choices, the one in force in brackets: `[none] scan-time`.
            let text = is.to_string();
            let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
            let is = chosen.map_or(text.as_str(), |(chosen, _)| chosen);
            if is != wanted.to_str() {
                wrong.push((name, wanted));
            }
        }
        Ok(wrong)
    }

    fn plan(&self, wrong: &Vec<(String, Value)>) -> Result<Plan> {
        let name = &self.name;
        if wrong.is_empty() {
            return Ok(Plan::nothing(format!("SysFS attribute {name} is already set.")));
        }
        let changes = Dict::new();
        for (name, value) in wrong {
            changes.insert(name, value);
        }
        Ok(Plan::changes(changes)
            .pending(format!("SysFS attribute {name} set to be changed."))
            .done(format!("Updated SysFS attribute {name} to {}", self.value)))
    }

    fn apply(&self, cx: &Cx, wrong: Vec<(String, Value)>) -> Result<Applied> {
        for (name, value) in wrong {
            if !sysfs::write(cx, name.clone(), value.clone())? {
                return Err(Error::failed(format!("Failed to set {name} to {value}")));
            }
        }
        Ok(Applied::as_planned())
    }
}
