//! Queues of `salt-run queue.*`: lists of items by name, in the store.
//!
//! An item is in a queue once; items come out in the order they went in.

use halite_store::{Op, Store};
use halite_value::{Dict, Value};
use parking_lot::Mutex;

use crate::Error;

/// The bank of queues: `<name> <number>`.
const BANK: &str = "queues";

/// One change at a time: what is popped is popped once.
#[derive(Debug, Default)]
pub(crate) struct Queues(Mutex<()>);

fn key(name: &str, number: u64) -> String {
    format!("{name} {number:020}")
}

/// Returns the items of a queue with their keys.
fn items(store: &dyn Store, name: &str) -> Result<Vec<(String, Value)>, Error> {
    let prefix = format!("{name} ");
    let mut found = Vec::new();
    let mut after = prefix.clone();
    loop {
        let page = store.some(BANK, &after, 1000)?;
        let Some((last, _)) = page.last() else { return Ok(found) };
        after.clone_from(last);
        for (key, item) in page {
            if !key.starts_with(&prefix) {
                return Ok(found);
            }
            found.push((key, item));
        }
    }
}

impl Queues {
    /// Does what a runner asks for. Blocking.
    pub(crate) fn answer(&self, store: &dyn Store, load: &Dict) -> Result<Value, Error> {
        let _one = self.0.lock();
        let text = |name: &str| load.get(name).map(|value| value.to_str()).unwrap_or_default();
        let name = text("queue");
        if name.contains(' ') {
            return Err(Error::Other(format!("`{name}` is no name of a queue")));
        }
        let given = || -> Vec<Value> {
            match load.get("items") {
                None | Some(Value::Null) => Vec::new(),
                Some(list) => list.items_of_sequence().unwrap_or_else(|| vec![list.clone()]),
            }
        };
        match text("action").as_str() {
            "insert" => insert(store, &name, given()),
            "delete" => {
                let unwanted = given();
                let gone =
                    items(store, &name)?.into_iter().filter(|(_, item)| unwanted.contains(item));
                remove(store, gone.map(|(key, _)| key).collect())?;
                Ok(true.into())
            }
            "list_queues" => {
                let mut names: Vec<String> = Vec::new();
                for (key, _) in store.all(BANK)? {
                    let name = key.split(' ').next().unwrap_or_default().to_owned();
                    if names.last() != Some(&name) {
                        names.push(name);
                    }
                }
                Ok(names.into())
            }
            "list_items" => Ok(Value::list(items(store, &name)?.into_iter().map(|(_, item)| item))),
            "list_length" => Ok((items(store, &name)?.len() as i64).into()),
            "pop" => pop(store, &name, &load.get("quantity").unwrap_or_else(|| 1.into())),
            other => Err(Error::Other(format!("queues: `{other}` is unknown"))),
        }
    }
}

fn insert(store: &dyn Store, name: &str, new: Vec<Value>) -> Result<Value, Error> {
    if name.is_empty() {
        return Err(Error::Other("the queue has no name".into()));
    }
    let there = items(store, name)?;
    let known: Vec<Value> =
        new.iter().filter(|item| there.iter().any(|(_, own)| own == *item)).cloned().collect();
    if !known.is_empty() {
        let known: Vec<String> = known.iter().map(Value::to_string).collect();
        return Ok(format!("Item(s) already exists: {}", known.join(", ")).into());
    }
    let last = there.last().and_then(|(key, _)| key.rsplit(' ').next()?.parse::<u64>().ok());
    let first = last.unwrap_or(0) + 1;
    let mut seen: Vec<&Value> = Vec::new();
    let mut ops = Vec::new();
    for item in &new {
        if seen.contains(&item) {
            continue;
        }
        seen.push(item);
        let key = key(name, first + ops.len() as u64);
        ops.push(Op::Put { bank: BANK, key, value: item.clone() });
    }
    store.write(ops).wait()?;
    Ok(true.into())
}

fn remove(store: &dyn Store, keys: Vec<String>) -> Result<(), Error> {
    store.write(keys.into_iter().map(|key| Op::Delete { bank: BANK, key }).collect()).wait()?;
    Ok(())
}

fn pop(store: &dyn Store, name: &str, quantity: &Value) -> Result<Value, Error> {
    let wanted = match quantity {
        Value::Str(word) if word == "all" => usize::MAX,
        other => match other.to_int().and_then(|count| usize::try_from(count).ok()) {
            Some(count) => count,
            None => {
                return Err(Error::Other(format!(
                    "Quantity must be an integer or \"all\".\nError: \"{other}\"."
                )));
            }
        },
    };
    let mut taken = items(store, name)?;
    taken.truncate(wanted);
    let (keys, items): (Vec<String>, Vec<Value>) = taken.into_iter().unzip();
    // Gone from disk before anybody has them: an item may be lost, never come twice.
    remove(store, keys)?;
    Ok(items.into())
}

#[cfg(test)]
mod tests {
    use halite_store::{Embedded, Options};
    use halite_value::{dict, entries, list};

    use super::*;

    #[test]
    fn first_in_first_out_and_once() {
        let folder = tempfile::tempdir().unwrap();
        let store = Embedded::open(folder.path(), Options::default()).unwrap();
        let queues = Queues::default();
        let ask = |action: &str, more: Dict| {
            more.insert("action", action);
            more.insert("queue", "q");
            queues.answer(&store, &more).unwrap()
        };
        assert_eq!(ask("insert", entries! { "items" => list!["a", "b", "c"] }), Value::from(true));
        assert_eq!(
            ask("insert", entries! { "items" => "b" }),
            Value::from("Item(s) already exists: b")
        );
        assert_eq!(ask("list_queues", Dict::new()), list!["q"]);
        assert_eq!(ask("list_length", Dict::new()), Value::from(3));
        assert_eq!(ask("delete", entries! { "items" => list!["b"] }), Value::from(true));
        assert_eq!(ask("pop", Dict::new()), list!["a"]);
        assert_eq!(
            ask("insert", entries! { "items" => dict! { "fun" => "x" } }),
            Value::from(true)
        );
        assert_eq!(
            ask("pop", entries! { "quantity" => "all" }),
            list!["c", dict! { "fun" => "x" }]
        );
        assert_eq!(ask("list_items", Dict::new()), list![]);
        assert_eq!(ask("pop", Dict::new()), list![]);
        let bad = queues
            .answer(&store, &entries! { "action" => "pop", "queue" => "q", "quantity" => "x" });
        assert!(bad.is_err());
    }
}
