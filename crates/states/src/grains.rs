//! `grains`: custom grains of a minion, kept in its grains file.
//!
//! What a state here reports as changed is what `grains.set` reports: the whole top-level grain
//! as it is afterwards; with `test=True` the same.

use halite_modules::grains;
use halite_spec::{Applied, Args, Cx, Error, Keys, Plan, Result, State, states};
use halite_value::{Dict, List, Value, dict, entries, lookup};

states! {
    /// Custom grains of a minion.
    "grains": "exists" => Exists,
    "present" => Present,
    "list_present" => ListPresent,
    "list_absent" => ListAbsent,
    "absent" => Absent,
    "append" => Append,
}

fn path(name: &str, delimiter: &str) -> String {
    if delimiter.is_empty() { name.to_owned() } else { name.replace(delimiter, ":") }
}

fn grain(cx: &Cx, path: &str) -> Option<Value> {
    lookup::traverse(&Value::from(&cx.grains), path, ":")
}

/// Check that a grain exists.
#[derive(Args)]
pub struct Exists {
    /// The path of the grain.
    name: String,
    /// What stands between its steps.
    #[default(":".to_owned())]
    delimiter: String,
}

impl State for Exists {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        Ok(grain(cx, &path(&self.name, &self.delimiter)).is_some())
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        if *there {
            Ok(Plan::nothing("Grain exists"))
        } else {
            Err(Error::failed("Grain does not exist"))
        }
    }

    fn apply(&self, _: &Cx, _: bool) -> Result<Applied> {
        Ok(Applied::as_planned())
    }
}

/// Make sure that a grain has a value.
#[derive(Args)]
pub struct Present {
    /// The path of the grain.
    name: String,
    /// Its value.
    value: Value,
    /// What stands between its steps.
    #[default(":".to_owned())]
    delimiter: String,
    /// Replace dicts and lists too.
    #[default(false)]
    force: bool,
}

/// What setting a grain would do: the changes, or why not.
type Foretold = std::result::Result<Dict, String>;

/// Tells what `grains.set` will answer.
fn foretell(cx: &Cx, path: &str, value: &Value, force: bool, destructive: bool) -> Foretold {
    if let Some(refusal) = grains::refusal(&cx.grains, path, value, force, ":") {
        return Err(refusal);
    }
    let removes = value.is_null() && destructive;
    let mut steps: Vec<&str> = path.split(':').collect();
    let first = steps.remove(0);
    let Some(last) = steps.pop() else { return Ok(entries! { first => value }) };
    let root = match cx.grains.get(first) {
        Some(Value::Dict(dict)) => dict.deep_copy(),
        _ => Dict::new(),
    };
    let mut at = root.clone();
    for step in steps {
        let next = match at.get(step) {
            Some(Value::Dict(dict)) => dict,
            _ => Dict::new(),
        };
        at.insert(step, &next);
        at = next;
    }
    if removes {
        at.remove(last);
    } else {
        at.insert(last, value);
    }
    Ok(entries! { first => root })
}

/// The order of what `grains.set` returns, and then the name.
const SET: Keys = Keys(["comment", "changes", "result", "name"]);

impl State for Present {
    type Seen = (Option<Value>, Foretold);
    const KEYS_APPLIED: Keys = SET;

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let path = path(&self.name, &self.delimiter);
        Ok((grain(cx, &path), foretell(cx, &path, &self.value, self.force, false)))
    }

    fn plan(&self, (own, foretold): &Self::Seen) -> Result<Plan> {
        if own.as_ref() == Some(&self.value) {
            return Ok(Plan::nothing("Grain is already set"));
        }
        let path = path(&self.name, &self.delimiter);
        let changes = foretold.clone().map_err(Error::Failed)?;
        let how = if own.is_some() { "changed" } else { "added" };
        // What YAML says is an `OrderedDict` in Salt's texts.
        let shown = match &self.value {
            Value::Dict(_) | Value::List(_) => self.value.repr_by_kind(),
            other => other.to_str().to_string(),
        };
        Ok(Plan::changes(changes)
            .pending(format!("Grain {path} is set to be {how}"))
            .done(format!("Set grain {path} to {shown}")))
    }

    fn apply(&self, cx: &Cx, _: Self::Seen) -> Result<Applied> {
        let path = path(&self.name, &self.delimiter);
        set(cx, path, self.value.clone(), self.force, false)
    }
}

/// Calls `grains.set` and takes its verdict.
fn set(cx: &Cx, path: String, value: Value, force: bool, destructive: bool) -> Result<Applied> {
    let answer = grains::set(cx, path, value, force, destructive, ":".into())?;
    if answer.get("result") == Some(Value::Bool(false)) {
        return Err(Error::failed(answer.get_str("comment").unwrap_or_default()));
    }
    Ok(Applied::as_planned())
}

/// Make sure that a grain is gone, or empty.
#[derive(Args)]
pub struct Absent {
    /// The path of the grain.
    name: String,
    /// Remove the name too.
    #[default(false)]
    destructive: bool,
    /// What stands between its steps.
    #[default(":".to_owned())]
    delimiter: String,
    /// Remove dicts and lists too.
    #[default(false)]
    force: bool,
}

impl State for Absent {
    type Seen = (Option<Value>, Foretold);
    const KEYS_APPLIED: Keys = SET;

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let path = path(&self.name, &self.delimiter);
        let foretold = foretell(cx, &path, &Value::Null, self.force, self.destructive);
        Ok((grain(cx, &path), foretold))
    }

    fn plan(&self, (own, foretold): &Self::Seen) -> Result<Plan> {
        let path = path(&self.name, &self.delimiter);
        let Some(own) = own else {
            return Ok(Plan::nothing(format!("Grain {path} does not exist")));
        };
        if own.is_null() && !self.destructive {
            return Ok(Plan::nothing("").done("Grain is already set"));
        }
        foretold.as_ref().map_err(|refusal| Error::failed(refusal.as_str()))?;
        if self.destructive {
            return Ok(Plan::change("deleted", &path)
                .pending(format!("Grain {path} is set to be deleted"))
                .done(format!("Grain {path} was deleted")));
        }
        Ok(Plan::change("grain", &path)
            .and("value", Value::Null)
            .pending(format!("Value for grain {path} is set to be deleted (None)"))
            .done(format!("Value for grain {path} was set to None")))
    }

    fn apply(&self, cx: &Cx, (own, _): Self::Seen) -> Result<Applied> {
        let path = path(&self.name, &self.delimiter);
        if own.is_some_and(|own| own.is_null()) {
            // An empty grain counts as set to None already: only its name is left to go.
            grains::delete_at(cx, &path)?;
            return Ok(Applied::as_planned());
        }
        set(cx, path, Value::Null, self.force, self.destructive)
    }
}

/// Make sure that a grain that is a list holds some values.
#[derive(Args)]
pub struct ListPresent {
    /// The path of the grain.
    name: String,
    /// A value, or a list of values.
    value: Value,
    /// What stands between its steps.
    #[default(":".to_owned())]
    delimiter: String,
}

fn items(value: &Value) -> Vec<Value> {
    value.items_of_sequence().unwrap_or_else(|| vec![value.clone()])
}

impl ListPresent {
    /// The values that are missing, in the form they were given: a list, or one.
    fn missing(&self, own: &[Value]) -> (Vec<Value>, Vec<Value>) {
        items(&self.value).into_iter().partition(|value| !own.contains(value))
    }

    fn shown(&self, missing: &[Value]) -> Value {
        match self.value {
            Value::List(_) | Value::Tuple(_) => Value::list(missing.to_vec()),
            ref one => one.clone(),
        }
    }
}

impl State for ListPresent {
    type Seen = (Option<Value>, Foretold);

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let path = path(&self.name, &self.delimiter);
        let own = grain(cx, &path).filter(Value::truthy);
        if own.as_ref().is_some_and(|own| own.as_list().is_none()) {
            return Err(Error::failed(format!("Grain {path} is not a valid list")));
        }
        let mut all = own.as_ref().map(items).unwrap_or_default();
        all.extend(self.missing(&all).0);
        Ok((own, foretell(cx, &path, &Value::list(all), true, false)))
    }

    fn plan(&self, (own, foretold): &Self::Seen) -> Result<Plan> {
        let path = path(&self.name, &self.delimiter);
        let have = own.as_ref().map(items).unwrap_or_default();
        let (missing, known) = self.missing(&have);
        if missing.is_empty() {
            let value = &self.value;
            return Ok(Plan::nothing(format!(
                "Value {value} is already in grain {path} (or pending)"
            )));
        }
        let shown = self.shown(&missing);
        let left_out = if known.is_empty() {
            String::new()
        } else {
            let known = Value::list(known);
            format!(
                "Removed value {known} from update due to value found in \"{path}\" (or pending).\n"
            )
        };
        let pending = if own.is_some() {
            format!("Value {shown} is set to be appended to grain {path}")
        } else {
            format!("Grain {path} is set to be added")
        };
        let changes = foretold.clone().map_err(Error::Failed)?;
        Ok(Plan::change("new", changes)
            .pending(pending)
            .done(format!("{left_out}Append value {shown} to grain {path}")))
    }

    fn apply(&self, cx: &Cx, (own, _): Self::Seen) -> Result<Applied> {
        let path = path(&self.name, &self.delimiter);
        let have = own.as_ref().map(items).unwrap_or_default();
        let missing = self.missing(&have).0;
        let all: List = have.into_iter().chain(missing.iter().cloned()).collect();
        grains::set(cx, path.clone(), all.into(), true, false, ":".into())?;
        let now = grain(cx, &path).as_ref().map(items).unwrap_or_default();
        if missing.iter().any(|value| !now.contains(value)) {
            let shown = self.shown(&missing);
            return Err(Error::failed(format!("Failed append value {shown} to grain {path}")));
        }
        Ok(Applied::as_planned())
    }
}

/// Make sure that a grain that is a list does not hold some values.
#[derive(Args)]
pub struct ListAbsent {
    /// The path of the grain.
    name: String,
    /// A value, or a list of values.
    value: Value,
    /// What stands between its steps.
    #[default(":".to_owned())]
    delimiter: String,
}

impl State for ListAbsent {
    type Seen = Option<Value>;

    fn observe(&self, cx: &Cx) -> Result<Option<Value>> {
        let path = path(&self.name, &self.delimiter);
        let own = grain(cx, &path).filter(Value::truthy);
        if own.as_ref().is_some_and(|own| own.as_list().is_none()) {
            return Err(Error::failed(format!("Grain {path} is not a valid list")));
        }
        Ok(own)
    }

    fn plan(&self, own: &Option<Value>) -> Result<Plan> {
        let path = path(&self.name, &self.delimiter);
        let Some(own) = own else {
            return Ok(Plan::nothing(format!("Grain {path} does not exist")));
        };
        let have = items(own);
        let (mut pending, mut done, mut gone) = (Vec::new(), Vec::new(), Vec::new());
        for value in items(&self.value) {
            if have.contains(&value) {
                pending.push(format!("Value {value} in grain {path} is set to be deleted"));
                done.push(format!("Value {value} was deleted from grain {path}"));
                gone.push(value);
            } else {
                let text = format!("Value {value} is absent from grain {path}");
                pending.push(text.clone());
                done.push(text);
            }
        }
        let plan = if gone.is_empty() {
            Plan::default()
        } else {
            Plan::change("deleted", Value::list(gone))
        };
        Ok(plan.pending(pending.join("\n")).done(done.join("\n")))
    }

    fn apply(&self, cx: &Cx, own: Option<Value>) -> Result<Applied> {
        let have = own.as_ref().map(items).unwrap_or_default();
        for value in items(&self.value) {
            if have.contains(&value) {
                grains::remove(cx, path(&self.name, &self.delimiter), value, ":".into())?;
            }
        }
        Ok(Applied::as_planned())
    }
}

/// Append a value to a grain that is a list.
#[derive(Args)]
pub struct Append {
    /// The path of the grain.
    name: String,
    /// The value.
    value: Value,
    /// Make a grain that is no list the first item of one.
    #[default(false)]
    convert: bool,
    /// What stands between its steps.
    #[default(":".to_owned())]
    delimiter: String,
}

impl State for Append {
    type Seen = Option<Value>;

    fn observe(&self, cx: &Cx) -> Result<Option<Value>> {
        Ok(grain(cx, &path(&self.name, &self.delimiter)))
    }

    fn plan(&self, own: &Option<Value>) -> Result<Plan> {
        let (path, value) = (path(&self.name, &self.delimiter), &self.value);
        let pending = match own {
            None => return Err(Error::failed(format!("Grain {path} does not exist"))),
            Some(Value::List(list)) if list.contains(value) => {
                return Ok(Plan::nothing(format!(
                    "Value {value} is already in the list for grain {path}"
                )));
            }
            Some(Value::List(_)) => format!("Value {value} in grain {path} is set to be added"),
            Some(_) if self.convert => format!(
                "Grain {path} is set to be converted to list and value {value} will be added"
            ),
            Some(_) => return Err(Error::failed(format!("Grain {path} is not a valid list"))),
        };
        Ok(Plan::change("added", value)
            .pending(pending)
            .done(format!("Value {value} was added to grain {path}")))
    }

    fn apply(&self, cx: &Cx, own: Option<Value>) -> Result<Applied> {
        let path = path(&self.name, &self.delimiter);
        match own {
            Some(Value::List(_)) => {
                grains::append(cx, path, self.value.clone(), false, ":".into())?;
            }
            own => {
                let mut list: Vec<Value> = own.into_iter().filter(|own| !own.is_null()).collect();
                list.push(self.value.clone());
                let grain = dict! { path => Value::list(list) };
                grains::setvals(cx, grain, false, true)?;
            }
        }
        Ok(Applied::as_planned())
    }
}
