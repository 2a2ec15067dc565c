//! Deep copies: Python's `copy.deepcopy`.
//!
//! Containers are copied from a queue, not by recursion, so that no depth is too much; and what is
//! met twice is copied once, so that sharing survives, cycles end, and a value that aliases make
//! huge is copied in the time its parts take.

use std::collections::{HashMap, VecDeque};

use crate::{Dict, List, Value};

#[derive(Default)]
struct Copier {
    /// Copies of containers that something else may mention, by identity.
    made: HashMap<usize, Value>,
    /// Copies that are still empty, with what they are copies of.
    queue: VecDeque<(Value, Value)>,
}

pub(crate) fn deep_copy(value: &Value) -> Value {
    let mut copier = Copier::default();
    let copy = copier.copy(value);
    while let Some((from, to)) = copier.queue.pop_front() {
        copier.fill(&from, &to);
    }
    copy
}

impl Copier {
    fn copy(&mut self, value: &Value) -> Value {
        let (identity, shared, empty) = match value {
            Value::List(list) => (list.identity(), list.is_shared(), Value::List(List::new())),
            Value::Dict(dict) => (dict.identity(), dict.is_shared(), Value::Dict(Dict::new())),
            Value::Tuple(items) => return Value::tuple(items.iter().map(|item| self.copy(item))),
            other => return other.clone(),
        };
        if shared {
            if let Some(copy) = self.made.get(&identity) {
                return copy.clone();
            }
            self.made.insert(identity, empty.clone());
        }
        self.queue.push_back((value.clone(), empty.clone()));
        empty
    }

    fn fill(&mut self, from: &Value, to: &Value) {
        match (from, to) {
            (Value::List(from), Value::List(to)) => {
                let items: Vec<Value> = from.read().iter().map(|item| self.copy(item)).collect();
                *to.write() = items;
                to.copy_places(from);
            }
            (Value::Dict(from), Value::Dict(to)) => {
                let entries = from
                    .read()
                    .iter()
                    .map(|(key, value)| (key.clone(), self.copy(value)))
                    .collect();
                *to.write() = entries;
                to.copy_nature(from);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{dict, list};

    #[test]
    fn sharing_and_cycles_survive() {
        let shared = list![1];
        let copy = dict! { "a" => &shared, "b" => &shared }.deep_copy();
        let (a, b) = (copy.get("a").expect("a"), copy.get("b").expect("b"));
        assert!(a.is_same(&b) && !a.is_same(&shared));
        let cycle = List::new();
        cycle.push(cycle.clone());
        let copy = cycle.deep_copy();
        assert!(copy.get(0).is_some_and(|inner| inner.is_same(&Value::List(copy.clone()))));
        assert!(!copy.is_same(&cycle));
    }

    #[test]
    fn copies_are_of_the_same_kind() {
        let inner = dict! { "b" => 1, "a" => 2 };
        let Value::Dict(dict) = &inner else { panic!("a dict") };
        dict.set_ordered();
        let copy = dict! { "in" => &inner }.deep_copy();
        let kind = |value: Option<Value>| {
            value.is_some_and(|value| matches!(&value, Value::Dict(dict) if dict.is_ordered()))
        };
        assert!(kind(copy.get("in")) && !kind(Some(copy)) && dict.shallow_copy().is_ordered());
    }

    #[test]
    fn depth_is_no_matter() {
        let mut value = Value::Null;
        for _ in 0..100_000 {
            value = list![value];
        }
        assert!(value.deep_copy().as_list().is_some_and(|list| list.len() == 1));
    }
}
