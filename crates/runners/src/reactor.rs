//! `reactor`: what events lead to, seen and changed while the master runs.

use halite_client::Request;
use halite_spec::{Cx, Error, Result, function, module};
use halite_value::{Dict, Value, entries};

use crate::master;

module! {
    /// What events lead to.
    "reactor": list, add, delete, is_leader, set_leader, status, dead_letters, retry, test,
}

fn ask(cx: &Cx, action: &str, load: Dict) -> Result<Value> {
    load.insert("action", action);
    master::ask(cx, &Request::Ask { what: "reactor".into(), load })
}

/// Tells whether the engine `reactor` runs, as far as the options know. The option of that name
/// starts it, too, but where there are engines Salt believes their list alone.
fn runs(engines: Option<Value>, reactor: Option<Value>) -> bool {
    let is_it = |engine: &Value| match engine {
        Value::Dict(engine) => engine.contains("reactor"),
        other => *other == "reactor",
    };
    match engines.filter(Value::truthy).and_then(|engines| engines.items_of_sequence()) {
        Some(engines) => engines.iter().any(is_it),
        None => reactor.is_some_and(|table| table.truthy()),
    }
}

/// What is asked of the reactor is asked of its engine.
fn must_run(cx: &Cx) -> Result<()> {
    if runs(cx.opt("engines"), cx.opt("reactor")) {
        return Ok(());
    }
    Err(Error::Raised {
        class: "salt.exceptions.CommandExecutionError".into(),
        message: "Reactor system is not running.".into(),
        traceback: Some(String::new()),
    })
}

/// List the reactors: tags with their files.
///
/// ```console
/// $ salt-run reactor.list
/// ```
#[function]
pub fn list(
    cx: &Cx,
    /// Taken as Salt takes it; reactors have no environment here.
    #[default("base".to_owned())]
    saltenv: String,
    /// Taken as Salt takes it.
    test: Option<Value>,
) -> Result<Value> {
    let _ = (saltenv, test);
    must_run(cx)?;
    ask(cx, "list", Dict::new())
}

/// Add a reactor, until the master ends.
///
/// ```console
/// $ salt-run reactor.add 'shop/*' reactors='[salt://react/shop.sls]'
/// ```
#[function]
pub fn add(
    cx: &Cx,
    /// A glob for tags.
    event: String,
    /// Files, as a list or with commas.
    reactors: Value,
    /// The environment of the files.
    #[default("base".to_owned())]
    saltenv: String,
    /// Only tell what would be done.
    test: Option<bool>,
) -> Result<Value> {
    let _ = (saltenv, test);
    must_run(cx)?;
    ask(cx, "add", entries! { "event" => event, "reactors" => reactors })
}

/// Remove a reactor, until the master ends.
///
/// ```console
/// $ salt-run reactor.delete 'shop/*'
/// ```
#[function]
pub fn delete(
    cx: &Cx,
    /// The glob, as `list` shows it.
    event: String,
    /// Taken as Salt takes it; reactors have no environment here.
    #[default("base".to_owned())]
    saltenv: String,
    /// Taken as Salt takes it.
    test: Option<Value>,
) -> Result<Value> {
    let _ = (saltenv, test);
    must_run(cx)?;
    ask(cx, "delete", entries! { "event" => event })
}

/// Tell whether this master reacts.
///
/// ```console
/// $ salt-run reactor.is_leader
/// ```
#[function]
pub fn is_leader(cx: &Cx) -> Result<Value> {
    must_run(cx)?;
    ask(cx, "is_leader", Dict::new())
}

/// Make this master react, or not.
///
/// ```console
/// $ salt-run reactor.set_leader value=True
/// ```
#[function]
pub fn set_leader(
    cx: &Cx,
    /// Whether it does.
    #[default(true)]
    value: bool,
) -> Result<Value> {
    must_run(cx)?;
    ask(cx, "set_leader", entries! { "value" => value })
}

/// Show how much was done, and how much waits.
///
/// ```console
/// $ salt-run reactor.status
/// ```
#[function]
pub fn status(cx: &Cx) -> Result<Value> {
    ask(cx, "status", Dict::new())
}

/// List the events whose reaction failed, and why.
///
/// ```console
/// $ salt-run reactor.dead_letters
/// $ salt-run reactor.dead_letters clear=True
/// ```
#[function]
pub fn dead_letters(
    cx: &Cx,
    /// Forget them, and tell how many they were.
    #[default(false)]
    clear: bool,
) -> Result<Value> {
    ask(cx, if clear { "forget_dead" } else { "dead" }, Dict::new())
}

/// Do once more what failed: of each event only the reactions that did, as their files say now.
///
/// ```console
/// $ salt-run reactor.retry
/// ```
#[function]
pub fn retry(cx: &Cx) -> Result<Value> {
    ask(cx, "retry_dead", Dict::new())
}

/// Show what an event would lead to, and do nothing.
///
/// ```console
/// $ salt-run reactor.test 'salt/minion/web1/start' '{"id": "web1"}'
/// ```
#[function]
pub fn test(
    cx: &Cx,
    /// Its tag.
    tag: String,
    /// Its data.
    data: Option<Dict>,
) -> Result<Value> {
    ask(cx, "test", entries! { "tag" => tag, "data" => data.unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use halite_value::{dict, list};

    use super::*;

    #[test]
    fn a_list_of_engines_has_to_name_the_reactor() {
        let table = || Some(list![dict! { "a/*" => list!["/srv/a.sls"] }]);
        assert!(runs(None, table()) && runs(Some(list![]), table()));
        assert!(!runs(None, None) && !runs(None, Some(list![])));
        assert!(!runs(Some(list!["script"]), table()));
        assert!(runs(Some(list!["script", dict! { "reactor" => Value::Null }]), None));
    }
}
