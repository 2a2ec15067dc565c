//! `mine`: what minions publish for each other.

use halite_client::{Job, Request};
use halite_spec::{Cx, Result, function, module};
use halite_value::{Dict, SmolStr, Value};

use crate::master;

module! {
    /// What minions publish for each other.
    "mine": get, update,
}

/// Return what minions put into the mine, of one function or of several.
///
/// ```console
/// $ salt-run mine.get 'db*' network.ip_addrs
/// ```
#[function]
pub fn get(
    cx: &Cx,
    /// Whose.
    tgt: Value,
    /// The function; several with commas or as a list.
    fun: Value,
    /// How the target is read.
    #[default("glob".to_owned())]
    tgt_type: String,
) -> Result<Dict> {
    let (functions, several): (Vec<SmolStr>, bool) = match fun.items_of_sequence() {
        Some(names) => (names.iter().map(Value::to_str).collect(), true),
        None => {
            let names: Vec<SmolStr> = fun.to_str().split(',').map(SmolStr::new).collect();
            let several = names.len() > 1;
            (names, several)
        }
    };
    let request = Request::Mine { tgt, tgt_type: tgt_type.into(), functions: functions.clone() };
    let all = master::ask(cx, &request)?;
    let found = Dict::new();
    for (id, own) in all.as_dict().map(Dict::entries).unwrap_or_default() {
        for function in &functions {
            let Some(value) = own.get(function) else { continue };
            let value = unwrapped(value);
            if several {
                let of = found.get_or_insert_with(function.as_str(), Value::dict);
                if let Value::Dict(of) = of {
                    of.insert(id.clone(), value);
                }
            } else {
                found.insert(id.clone(), value);
            }
        }
    }
    Ok(found)
}

/// An entry may carry permissions beside its data; the master may read all.
fn unwrapped(entry: Value) -> Value {
    match entry.get("__saltmine_acl__") {
        Some(_) => entry.get("__data__").unwrap_or_default(),
        None => entry,
    }
}

/// Have minions put their data into the mine anew.
///
/// ```console
/// $ salt-run mine.update 'db*'
/// ```
#[function]
pub fn update(
    cx: &Cx,
    /// Whose.
    tgt: Value,
    /// How the target is read.
    #[default("glob".to_owned())]
    tgt_type: String,
    /// Forget what is there before.
    #[default(false)]
    clear: bool,
    /// The functions to run in place of the configured ones.
    mine_functions: Option<Value>,
) -> Result<Dict> {
    let arg = vec![clear.into(), mine_functions.unwrap_or_default()];
    let job = Job { arg, ..Job::new(tgt, &tgt_type, "mine.update") };
    let returned = master::run(cx, &job, None)?.returned;
    Ok(returned
        .into_iter()
        .map(|(id, load)| (id, load.get("return").unwrap_or_default()))
        .collect())
}

#[cfg(test)]
mod tests {
    use halite_value::dict;

    use super::*;

    #[test]
    fn permissions_stay_behind() {
        assert_eq!(unwrapped(5.into()), Value::from(5));
        let entry = dict! { "__saltmine_acl__" => 1, "__data__" => "x", "allow_tgt" => "*" };
        assert_eq!(unwrapped(entry), Value::from("x"));
    }
}
