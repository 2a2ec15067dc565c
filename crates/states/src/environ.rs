//! `environ`: variables of the minion's process, and of what it starts.

use halite_modules::environ;
use halite_spec::{Applied, Args, Cx, Error, Plan, Result, State, states};
use halite_value::{Dict, Value, entries};

states! {
    /// Variables of the minion's process.
    "environ": "setenv" => Setenv,
}

/// Set environment variables of the minion, for states that follow and commands they run.
#[derive(Args)]
pub struct Setenv {
    /// The variable, if `value` is a text.
    name: String,
    /// Its value; False empties or removes it; a dict sets several.
    value: Value,
    /// False removes a variable, it is emptied otherwise.
    #[default(false)]
    false_unsets: bool,
    /// Empty or remove all other variables.
    #[default(false)]
    clear_all: bool,
    /// Have the minion's daemon follow.
    #[default(false)]
    update_minion: bool,
    /// For Windows: keep them in the registry.
    #[default(Value::Bool(false))]
    permanent: Value,
}

impl Setenv {
    fn wanted(&self) -> Result<Dict> {
        match &self.value {
            Value::Str(_) | Value::Bool(false) => {
                Ok(entries! { self.name.as_str() => &self.value })
            }
            Value::Dict(several) => Ok(several.clone()),
            _ => Err(Error::failed("Environ value must be string, dict or False")),
        }
    }
}

impl State for Setenv {
    type Seen = Dict;

    fn observe(&self, cx: &Cx) -> Result<Dict> {
        environ::items(cx)
    }

    fn plan(&self, current: &Dict) -> Result<Plan> {
        let wanted = self.wanted()?;
        let gone = || if self.false_unsets { Value::Null } else { Value::from("") };
        let mut differs = false;
        let changes = Dict::new();
        if self.clear_all {
            for (name, value) in current {
                if !wanted.contains(&name) {
                    // An empty one stays as it is.
                    differs |= self.false_unsets || value != "";
                    changes.insert(name, gone());
                }
            }
        }
        for (name, value) in &wanted {
            let own = current.get(&name);
            let (new, right) = match &value {
                Value::Bool(false) if self.false_unsets => (Value::Null, own.is_none()),
                Value::Bool(false) => ("".into(), own.is_some_and(|own| own == "")),
                text => (text.clone(), own.unwrap_or_else(|| "".into()) == *text),
            };
            differs |= !right;
            changes.insert(name, new);
        }
        if !differs {
            return Ok(Plan::nothing("Environ values are already set with the correct values")
                .done("Environ values were already set with the correct values"));
        }
        // differs: with `test=True` genuine Salt says True here, although a run would change it.
        let plan = Plan::changes(changes).pending("Environ values will be changed");
        Ok(plan.done("Environ values were set"))
    }

    fn apply(&self, cx: &Cx, _: Dict) -> Result<Applied> {
        let wanted = Value::Dict(self.wanted()?);
        let permanent = self.permanent.clone();
        let (unsets, clear, update) = (self.false_unsets, self.clear_all, self.update_minion);
        match environ::setenv(cx, wanted, unsets, clear, update, permanent)? {
            Value::Dict(done) if !done.is_empty() => Ok(Applied::changes(done)),
            _ => Ok(Applied::failed(Dict::new(), "Failed to set environ variables")),
        }
    }
}
