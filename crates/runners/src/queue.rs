//! `queue`: lists of items that wait, kept in the master's store.
//!
//! differs: Salt's backends (`sqlite`, `pgjsonb`) keep files of their own; here `backend` names
//! nothing.

use halite_client::Request;
use halite_spec::{Cx, Error, Event, Result, function, module};
use halite_value::{Dict, Value, dict, entries};

use crate::master;

module! {
    /// Lists of items that wait.
    "queue": insert, insert_runner, delete, list_queues, list_length, list_items, pop,
    process_queue, process_runner,
}

fn ask(cx: &Cx, action: &str, load: Dict) -> Result<Value> {
    load.insert("action", action);
    master::ask(cx, &Request::Ask { what: "queue".into(), load })
}

/// Which of Salt's back ends is named does not matter, but it has to be one.
fn known(backend: &str, function: &str) -> Result<()> {
    match backend {
        "sqlite" | "pgjsonb" => Ok(()),
        _ => Err(Error::invalid(format!("Function \"{backend}.{function}\" is not available"))),
    }
}

/// Add an item, or a list of items.
///
/// ```console
/// $ salt-run queue.insert deploy web1
/// ```
#[function]
pub fn insert(
    cx: &Cx,
    /// The queue.
    queue: String,
    /// One item, or a list.
    items: Value,
    /// Kept for Salt's sake.
    #[default("sqlite".to_owned())]
    backend: String,
) -> Result<Value> {
    known(&backend, "insert")?;
    ask(cx, "insert", entries! { "queue" => queue, "items" => items })
}

/// Add a call of a runner, for `process_runner`.
///
/// ```console
/// $ salt-run queue.insert_runner test.stdout_print queue=myqueue
/// ```
#[function]
pub fn insert_runner(
    cx: &Cx,
    /// The runner function.
    fun: String,
    /// Its arguments.
    args: Option<Vec<Value>>,
    /// Its arguments by name.
    kwargs: Option<Dict>,
    /// The queue.
    queue: Option<String>,
    /// Kept for Salt's sake.
    backend: Option<String>,
) -> Result<Value> {
    let _ = backend;
    let item = dict! {
        "fun" => fun, "args" => args.unwrap_or_default(), "kwargs" => kwargs.unwrap_or_default(),
    };
    let queue = queue.unwrap_or_else(|| "runner_queue".into());
    ask(cx, "insert", entries! { "queue" => queue, "items" => Value::list([item]) })
}

/// Remove an item, or a list of items.
///
/// ```console
/// $ salt-run queue.delete deploy web1
/// ```
#[function]
pub fn delete(
    cx: &Cx,
    /// The queue.
    queue: String,
    /// One item, or a list.
    items: Value,
    /// Kept for Salt's sake.
    #[default("sqlite".to_owned())]
    backend: String,
) -> Result<Value> {
    known(&backend, "delete")?;
    ask(cx, "delete", entries! { "queue" => queue, "items" => items })
}

/// List the queues that have items.
///
/// ```console
/// $ salt-run queue.list_queues
/// ```
#[function]
pub fn list_queues(
    cx: &Cx,
    /// Kept for Salt's sake.
    #[default("sqlite".to_owned())]
    backend: String,
) -> Result<Value> {
    known(&backend, "list_queues")?;
    ask(cx, "list_queues", Dict::new())
}

/// Tell how many items a queue has.
///
/// ```console
/// $ salt-run queue.list_length deploy
/// ```
#[function]
pub fn list_length(
    cx: &Cx,
    /// The queue.
    queue: String,
    /// Kept for Salt's sake.
    #[default("sqlite".to_owned())]
    backend: String,
) -> Result<Value> {
    known(&backend, "list_length")?;
    ask(cx, "list_length", entries! { "queue" => queue })
}

/// List the items of a queue.
///
/// ```console
/// $ salt-run queue.list_items deploy
/// ```
#[function]
pub fn list_items(
    cx: &Cx,
    /// The queue.
    queue: String,
    /// Kept for Salt's sake.
    #[default("sqlite".to_owned())]
    backend: String,
) -> Result<Value> {
    known(&backend, "list_items")?;
    ask(cx, "list_items", entries! { "queue" => queue })
}

/// Take items out of a queue, oldest first.
///
/// ```console
/// $ salt-run queue.pop deploy
/// ```
#[function]
pub fn pop(
    cx: &Cx,
    /// The queue.
    queue: String,
    /// How many, or `all`.
    #[default(Value::from(1))]
    quantity: Value,
    /// Kept for Salt's sake.
    #[default("sqlite".to_owned())]
    backend: String,
    /// The items are calls of runners.
    #[default(false)]
    is_runner: bool,
) -> Result<Value> {
    let _ = is_runner;
    known(&backend, "pop")?;
    ask(cx, "pop", entries! { "queue" => queue, "quantity" => quantity })
}

/// Take items out of a queue, and fire an event with them for a reactor:
/// `salt/queue/<queue>/process`.
///
/// ```console
/// $ salt-run queue.process_queue myqueue all
/// ```
#[function]
pub fn process_queue(
    cx: &Cx,
    /// The queue.
    queue: String,
    /// How many, or `all`.
    #[default(Value::from(1))]
    quantity: Value,
    /// Kept for Salt's sake.
    #[default("sqlite".to_owned())]
    backend: String,
    /// The items are calls of runners.
    #[default(false)]
    is_runner: bool,
) -> Result<Value> {
    let _ = is_runner;
    known(&backend, "pop")?;
    let taken = ask(cx, "pop", entries! { "queue" => queue.as_str(), "quantity" => quantity });
    let items = match taken {
        Ok(items) => items,
        Err(error) => {
            let data = dict! { "errors" => error.to_string() };
            let event = Event { tag: "progress".into(), data, pretag: None, local: false };
            cx.runtime.fire(cx, event)?;
            return Ok(false.into());
        }
    };
    let data = entries! { "items" => items, "backend" => backend, "queue" => queue.as_str() };
    let tag = format!("salt/queue/{queue}/process");
    master::ask(cx, &Request::Fire { tag: tag.into(), data })
}

/// Take calls of runners out of a queue, and run them.
///
/// ```console
/// $ salt-run queue.process_runner quantity=all
/// ```
#[function]
pub fn process_runner(
    cx: &Cx,
    /// How many, or `all`.
    #[default(Value::from(1))]
    quantity: Value,
    /// The queue.
    queue: Option<String>,
    /// Kept for Salt's sake.
    backend: Option<String>,
) -> Result<Value> {
    let _ = backend;
    let queue = queue.unwrap_or_else(|| "runner_queue".into());
    let items = ask(cx, "pop", entries! { "queue" => queue, "quantity" => quantity })?;
    let returns = items.items_of_sequence().unwrap_or_default().into_iter().map(|item| {
        let kwarg = match item.get("kwargs") {
            Some(Value::Dict(kwargs)) => kwargs,
            _ => Dict::new(),
        };
        let request = Request::Runner {
            fun: item.get_str("fun").unwrap_or_default(),
            arg: item.get("args").and_then(|args| args.items_of_sequence()).unwrap_or_default(),
            kwarg,
            asynchronous: false,
        };
        let answer = master::ask(cx, &request)?;
        Ok(answer.get("return").unwrap_or_default())
    });
    Ok(Value::list(returns.collect::<Result<Vec<_>>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_ends_are_those_of_salt() {
        assert!(known("sqlite", "insert").is_ok() && known("pgjsonb", "pop").is_ok());
        let error = known("nosuch", "list_queues").unwrap_err();
        assert_eq!(error.to_string(), "Function \"nosuch.list_queues\" is not available");
    }
}
