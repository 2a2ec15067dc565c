//! Methods of `list` and `tuple`.

use std::sync::Arc;

use halite_value::{List, Value};

use super::{Pos, index};
use crate::jinja::{
    attrs::index_of,
    call::{Args, Signature},
    error::{Class, Error, value_error},
    eval::{Interp, Result},
};

method_names! {
    "append" "clear" "copy" "count" "extend" "index" "insert" "pop" "remove" "reverse" "sort"
}

pub(crate) fn call(interp: &mut Interp<'_>, list: &List, name: &str, args: Args) -> Result<Value> {
    match name {
        "append" => {
            let item = Pos::new("list", "append", args, 1, 1)?.take();
            list.push(item);
        }
        "extend" => {
            let items = Pos::new("list", "extend", args, 1, 1)?.take();
            let items = interp.collect(&items)?;
            interp.room((list.len() + items.len()).saturating_mul(24))?;
            list.extend(items);
        }
        "insert" => {
            let mut pos = Pos::new("list", "insert", args, 2, 2)?;
            let at = index(&pos.take())?;
            let item = pos.take();
            let mut items = list.write();
            let length = items.len() as i64;
            let at = if at < 0 { (at + length).max(0) } else { at.min(length) };
            items.insert(usize::try_from(at).unwrap_or(0), item);
        }
        "pop" => {
            let mut pos = Pos::new("list", "pop", args, 0, 1)?;
            let at = match pos.next() {
                Some(at) => index(&at)?,
                None => -1,
            };
            let mut items = list.write();
            if items.is_empty() {
                return Err(Error::new(Class::IndexError, "pop from empty list"));
            }
            return match index_of(&Value::Int(at), items.len()) {
                Some(at) => Ok(items.remove(at)),
                None => Err(Error::new(Class::IndexError, "pop index out of range")),
            };
        }
        "remove" => {
            let item = Pos::new("list", "remove", args, 1, 1)?.take();
            match position(interp, &list.to_vec(), &item, 0, usize::MAX)? {
                Some(at) => {
                    let mut items = list.write();
                    if at < items.len() {
                        items.remove(at);
                    }
                }
                None => return Err(value_error("list.remove(x): x not in list")),
            }
        }
        "clear" => {
            Pos::new("list", "clear", args, 0, 0)?;
            // Taken out first: dropping runs no code under the lock.
            let items = std::mem::take(&mut *list.write());
            drop(items);
        }
        "copy" => {
            Pos::new("list", "copy", args, 0, 0)?;
            let items = interp.collect(&Value::List(list.clone()))?;
            return Ok(Value::from(items));
        }
        "reverse" => {
            Pos::new("list", "reverse", args, 0, 0)?;
            list.write().reverse();
        }
        "sort" => {
            let mut bound = Signature::new("sort(*, key=, reverse=)").bind(args)?;
            let key = bound.opt(0).filter(|key| !key.is_null());
            let reverse = bound.take(1);
            let reverse = interp.truthy(&reverse)?;
            let items = list.to_vec();
            let mut keyed = Vec::with_capacity(items.len());
            for item in items {
                let sort_key = match &key {
                    Some(key) => interp.call(key, Args::new(vec![item.clone()]))?,
                    None => item.clone(),
                };
                keyed.push((sort_key, item));
            }
            let sorted = interp.sort(keyed, reverse)?;
            *list.write() = sorted;
        }
        "count" | "index" => return of_items(interp, &list.to_vec(), name, "list", args),
        _ => {}
    }
    Ok(Value::Null)
}

pub(crate) fn of_tuple(
    interp: &mut Interp<'_>,
    items: &Arc<[Value]>,
    name: &str,
    args: Args,
) -> Result<Value> {
    of_items(interp, items, name, "tuple", args)
}

fn of_items(
    interp: &mut Interp<'_>,
    items: &[Value],
    name: &str,
    of: &'static str,
    args: Args,
) -> Result<Value> {
    if name == "count" {
        let item = Pos::new(of, "count", args, 1, 1)?.take();
        let mut count = 0;
        for own in items {
            count += i64::from(interp.eq(own, &item)?);
        }
        return Ok(Value::Int(count));
    }
    let mut pos = Pos::new(of, "index", args, 1, 3)?;
    let item = pos.take();
    let bound = |at: i64| {
        let at = if at < 0 { (at + items.len() as i64).max(0) } else { at };
        usize::try_from(at).unwrap_or(0)
    };
    let start = pos.int()?.map_or(0, bound);
    let end = pos.int()?.map_or(usize::MAX, bound);
    match position(interp, items, &item, start, end)? {
        Some(at) => Ok(Value::from(at)),
        None if of == "list" => Err(value_error(format!("{} is not in list", item.repr()))),
        None => Err(value_error("tuple.index(x): x not in tuple")),
    }
}

fn position(
    interp: &mut Interp<'_>,
    items: &[Value],
    item: &Value,
    start: usize,
    end: usize,
) -> Result<Option<usize>> {
    for (at, own) in items.iter().enumerate().take(end).skip(start) {
        if (matches!(own, Value::Object(_)) && own.is_same(item)) || interp.eq(own, item)? {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

impl Interp<'_> {
    /// Sorts by the first of each pair, as Python does: stable, asking only `later < earlier`.
    pub(crate) fn sort(
        &mut self,
        mut items: Vec<(Value, Value)>,
        reverse: bool,
    ) -> Result<Vec<Value>> {
        if reverse {
            // Python reverses before and after, so that equal items keep their order.
            items.reverse();
        }
        let mut sorted = self.merge_sort(items)?;
        if reverse {
            sorted.reverse();
        }
        Ok(sorted.into_iter().map(|(_, item)| item).collect())
    }

    // Our own: the standard library's sorts may panic when an order contradicts itself, and
    // Python's order can (NaN, mixed containers).
    fn merge_sort(&mut self, items: Vec<(Value, Value)>) -> Result<Vec<(Value, Value)>> {
        if items.len() <= 8 {
            let mut sorted: Vec<(Value, Value)> = Vec::with_capacity(items.len());
            for item in items {
                let mut at = sorted.len();
                while at > 0 && self.less(&item.0, &sorted[at - 1].0)? {
                    at -= 1;
                }
                sorted.insert(at, item);
            }
            return Ok(sorted);
        }
        let mut left = items;
        let right = left.split_off(left.len() / 2);
        let left = self.merge_sort(left)?;
        let right = self.merge_sort(right)?;
        let mut merged = Vec::with_capacity(left.len() + right.len());
        let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            self.step()?;
            let next = if self.less(&b.0, &a.0)? { right.next() } else { left.next() };
            merged.extend(next);
        }
        merged.extend(left);
        merged.extend(right);
        Ok(merged)
    }
}
