//! Salt's filters on lists: sets, comparison, flattening, and Python's `itertools`.

use std::sync::Arc;

use halite_value::{Dict, Key, Value};

use super::{Row, first_undefined};
use crate::jinja::{
    ast::Op,
    call::Bound,
    error::{Class, Error, type_error, value_error},
    eval::{Interp, Result},
    iter::{PyIter, Stream},
    methods,
    objects::*,
};

pub(crate) const FILTERS: &[Row] = &[
    ("unique", "unique(values)", |interp, args| unique(interp, &args.take(0))),
    ("union", "union(lst1, lst2)", union),
    ("intersect", "intersect(lst1, lst2)", |interp, args| keep(interp, args, true)),
    ("difference", "difference(lst1, lst2)", |interp, args| keep(interp, args, false)),
    ("symmetric_difference", "symmetric_difference(lst1, lst2)", symmetric_difference),
    ("min", "lst_min(obj)", |interp, args| extreme(interp, &args.take(0), "min")),
    ("max", "lst_max(obj)", |interp, args| extreme(interp, &args.take(0), "max")),
    ("avg", "lst_avg(lst)", avg),
    ("sorted_ignorecase", "sorted_ignorecase(to_sort)", sorted_ignorecase),
    ("flatten", "flatten(data, levels=, preserve_nulls=, _ids=)", |interp, args| {
        let data = args.take(0);
        let levels = args.opt(1).filter(|levels| !levels.is_null());
        let levels = levels.map(|levels| methods::index(&levels)).transpose()?;
        let nulls = args.take(2).truthy();
        let mut out = Vec::new();
        flatten(interp, &data, levels, nulls, 0, &mut out)?;
        Ok(Value::from(out))
    }),
    ("compare_lists", "compare_lists(old=, new=)", compare_lists),
    ("compare_dicts", "compare_dicts(old=, new=)", compare_dicts),
    ("exactly_n_true", "exactly_n(iterable, amount=)", |interp, args| {
        let value = args.take(0);
        let amount = args.opt(1).map(|amount| methods::index(&amount)).transpose()?.unwrap_or(1);
        exactly(interp, &value, amount)
    }),
    ("exactly_one_true", "exactly_one(iterable)", |interp, args| exactly(interp, &args.take(0), 1)),
    ("combinations", "combinations(iterable, r)", |interp, args| {
        choose(interp, args, "itertools.combinations", Choice::Combinations)
    }),
    (
        "combinations_with_replacement",
        "combinations_with_replacement(iterable, r)",
        |interp, args| {
            choose(interp, args, "itertools.combinations_with_replacement", Choice::WithReplacement)
        },
    ),
    ("permutations", "permutations(iterable, r=)", |interp, args| {
        choose(interp, args, "itertools.permutations", Choice::Permutations)
    }),
    ("product", "product(*iterables, repeat=)", product),
    ("compress", "compress(data, selectors)", compress),
    ("zip", "zip(*iterables, strict=)", zip),
    ("zip_longest", "zip_longest(*iterables, fillvalue=)", zip_longest),
];

fn is_hashable(value: &Value) -> bool {
    !matches!(value, Value::List(_) | Value::Dict(_)) && value.as_object::<Set>().is_none()
}

fn keys_of(interp: &mut Interp<'_>, value: &Value) -> Result<Vec<Key>> {
    let items = interp.collect(value)?;
    items.into_iter().map(|item| interp.key(item)).collect()
}

fn unique(interp: &mut Interp<'_>, value: &Value) -> Result<Value> {
    if is_hashable(value) {
        return Ok(set_of(keys_of(interp, value)?));
    }
    let items = interp.collect(value)?;
    unique_items(interp, items).map(Value::from)
}

fn unique_items(interp: &mut Interp<'_>, items: Vec<Value>) -> Result<Vec<Value>> {
    let mut seen: indexmap::IndexSet<Key, foldhash::fast::RandomState> = Default::default();
    let mut odd: Vec<Value> = Vec::new();
    let mut out = Vec::new();
    for item in items {
        // Hashing finds equal items at once; only unhashable ones are compared one by one.
        match Key::try_from(item.clone()) {
            Ok(key) if undefined(&item).is_none() => {
                if seen.insert(key) {
                    out.push(item);
                }
            }
            _ => {
                let mut known = false;
                for own in &odd {
                    known |= interp.eq(own, &item)?;
                }
                if !known {
                    odd.push(item.clone());
                    out.push(item);
                }
            }
        }
    }
    Ok(out)
}

fn union(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let (a, b) = (args.take(0), args.take(1));
    if is_hashable(&a) && is_hashable(&b) {
        let mut keys = keys_of(interp, &a)?;
        keys.extend(keys_of(interp, &b)?);
        return Ok(set_of(keys));
    }
    let joined = interp.binary(Op::Add, &a, &b)?;
    unique(interp, &joined)
}

fn keep(interp: &mut Interp<'_>, args: &mut Bound, common: bool) -> Result<Value> {
    let (a, b) = (args.take(0), args.take(1));
    if is_hashable(&a) && is_hashable(&b) {
        let (own, other) = (keys_of(interp, &a)?, keys_of(interp, &b)?);
        return Ok(set_of(own.into_iter().filter(|key| other.contains(key) == common)));
    }
    let items = interp.collect(&a)?;
    let mut out = Vec::new();
    for item in items {
        if interp.contains(&b, &item)? == common {
            out.push(item);
        }
    }
    unique_items(interp, out).map(Value::from)
}

fn symmetric_difference(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let (a, b) = (args.take(0), args.take(1));
    if is_hashable(&a) && is_hashable(&b) {
        let (x, y) = (keys_of(interp, &a)?, keys_of(interp, &b)?);
        let only_y: Vec<Key> = y.iter().filter(|key| !x.contains(key)).cloned().collect();
        return Ok(set_of(x.into_iter().filter(|key| !y.contains(key)).chain(only_y)));
    }
    let joined = interp.binary(Op::Add, &a, &b)?;
    let items = interp.collect(&joined)?;
    let mut out = Vec::new();
    for item in items {
        if !(interp.contains(&a, &item)? && interp.contains(&b, &item)?) {
            out.push(item);
        }
    }
    unique_items(interp, out).map(Value::from)
}

fn extreme(interp: &mut Interp<'_>, value: &Value, which: &str) -> Result<Value> {
    let mut iter = interp.iter(value)?;
    let Some(mut best) = interp.next(&mut iter)? else {
        return Err(value_error(format!("{which}() arg is an empty sequence")));
    };
    while let Some(item) = interp.next(&mut iter)? {
        let better = if which == "min" {
            interp.less(&item, &best)?
        } else {
            interp.compare(crate::jinja::ast::Cmp::Gt, &item, &best)?
        };
        if better {
            best = item;
        }
    }
    Ok(best)
}

fn avg(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let value = args.take(0);
    if is_hashable(&value) {
        return super::words::to_float(interp, &value).map(Value::Float);
    }
    let items = interp.collect(&value)?;
    let mut total = Value::Int(0);
    for item in &items {
        total = interp.binary(Op::Add, &total, item)?;
    }
    let mean = interp.binary(Op::Div, &total, &Value::from(items.len()))?;
    super::words::to_float(interp, &mean).map(Value::Float)
}

fn sorted_ignorecase(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let items = interp.collect(&args.take(0))?;
    let mut keyed = Vec::with_capacity(items.len());
    for item in items {
        let Some(text) = text_of(&item) else {
            let name = item.type_name();
            return Err(Error::new(
                Class::AttributeError,
                format!("'{name}' object has no attribute 'lower'"),
            ));
        };
        keyed.push((Value::from(text.to_lowercase()), item));
    }
    interp.sort(keyed, false).map(Value::from)
}

fn flatten(
    interp: &mut Interp<'_>,
    data: &Value,
    levels: Option<i64>,
    nulls: bool,
    depth: usize,
    out: &mut Vec<Value>,
) -> Result<()> {
    if depth > 200 {
        return Err(Error::new(
            Class::RecursionError,
            "Reference cycle detected. Check input list.",
        ));
    }
    let mut iter = interp.iter(data)?;
    while let Some(item) = interp.next(&mut iter)? {
        let null = item.is_null()
            || text_of(&item).is_some_and(|text| matches!(text.as_str(), "None" | "null"));
        if null && !nulls {
            continue;
        }
        let nested =
            text_of(&item).is_none() && undefined(&item).is_none() && interp.iter(&item).is_ok();
        if nested && levels.is_none_or(|levels| levels >= 1) {
            flatten(interp, &item, levels.map(|levels| levels - 1), nulls, depth + 1, out)?;
        } else {
            out.push(item);
        }
    }
    Ok(())
}

fn compare_lists(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let (old, new) = (args.take(0), args.take(1));
    let result = Dict::new();
    for (name, items, other) in [("new", &new, &old), ("old", &old, &new)] {
        for item in interp.collect(items)? {
            if !interp.contains(other, &item)? {
                let list = result.get_or_insert_with(name, || Value::from(Vec::<Value>::new()));
                if let Value::List(list) = list {
                    list.push(item);
                }
            }
        }
    }
    Ok(Value::Dict(result))
}

fn compare_dicts(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let (old, new) = (args.take(0), args.take(1));
    let side = |value: &Value| -> Result<Dict> {
        match value {
            Value::Dict(dict) => Ok(dict.clone()),
            Value::Null => Ok(Dict::new()),
            other => {
                Err(type_error(format!("argument of type '{}' is not iterable", other.type_name())))
            }
        }
    };
    let (old, new) = (side(&old)?, side(&new)?);
    let result = Dict::new();
    let mut keys = new.keys();
    keys.extend(old.keys().into_iter().filter(|key| !new.contains(key)));
    for key in keys {
        let entry = match (old.get(&key), new.get(&key)) {
            (None, Some(new)) => [("old", Value::str("")), ("new", new)],
            (Some(old), None) => [("new", Value::str("")), ("old", old)],
            (Some(old), Some(new)) => {
                if interp.eq(&new, &old)? {
                    continue;
                }
                [("old", old), ("new", new)]
            }
            (None, None) => continue,
        };
        result.insert(key, Value::Dict(entry.into_iter().collect()));
    }
    Ok(Value::Dict(result))
}

fn exactly(interp: &mut Interp<'_>, value: &Value, amount: i64) -> Result<Value> {
    let mut iter = interp.iter(value)?;
    let mut count = 0;
    while let Some(item) = interp.next(&mut iter)? {
        count += i64::from(interp.truthy(&item)?);
        if count > amount {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(count == amount))
}

// ---- itertools

#[derive(Clone, Copy, PartialEq)]
enum Choice {
    Combinations,
    WithReplacement,
    Permutations,
}

/// Picks `picked.len()` of the items, one way after the other.
struct Choose {
    items: Arc<[Value]>,
    picked: Vec<usize>,
    kind: Choice,
    started: bool,
    done: bool,
    // For permutations: Python's own bookkeeping, which decides the order.
    order: Vec<usize>,
    cycles: Vec<usize>,
}

impl Choose {
    fn advance(&mut self) -> bool {
        let (n, r) = (self.items.len(), self.picked.len());
        match self.kind {
            Choice::Combinations => {
                let Some(at) = (0..r).rev().find(|at| self.picked[*at] != at + n - r) else {
                    return false;
                };
                self.picked[at] += 1;
                for next in at + 1..r {
                    self.picked[next] = self.picked[next - 1] + 1;
                }
                true
            }
            Choice::WithReplacement => {
                let Some(at) = (0..r).rev().find(|at| self.picked[*at] != n - 1) else {
                    return false;
                };
                let next = self.picked[at] + 1;
                self.picked[at..].fill(next);
                true
            }
            Choice::Permutations => {
                for at in (0..r).rev() {
                    self.cycles[at] -= 1;
                    if self.cycles[at] == 0 {
                        let moved = self.order.remove(at);
                        self.order.push(moved);
                        self.cycles[at] = n - at;
                    } else {
                        let other = n - self.cycles[at];
                        self.order.swap(at, other);
                        self.picked.copy_from_slice(&self.order[..r]);
                        return true;
                    }
                }
                false
            }
        }
    }
}

impl Stream for Choose {
    fn next(&mut self, interp: &mut Interp<'_>) -> Result<Option<Value>> {
        interp.burn(cost(self.picked.len()))?;
        if self.done || (self.started && !self.advance()) {
            self.done = true;
            return Ok(None);
        }
        self.started = true;
        interp.tuple(self.picked.iter().map(|at| self.items[*at].clone()).collect()).map(Some)
    }
}

fn choose(
    interp: &mut Interp<'_>,
    args: &mut Bound,
    name: &'static str,
    kind: Choice,
) -> Result<Value> {
    let value = args.take(0);
    if let Some(undefined) = first_undefined(interp, &value) {
        return Ok(undefined);
    }
    let items: Arc<[Value]> = interp.collect(&value)?.into();
    let r = match args.opt(1) {
        Some(r) if !(r.is_null() && kind == Choice::Permutations) => methods::index(&r)?,
        _ => items.len() as i64,
    };
    let r = usize::try_from(r).map_err(|_| value_error("r must be non-negative"))?;
    let n = items.len();
    let none = match kind {
        Choice::WithReplacement => n == 0 && r > 0,
        _ => r > n,
    };
    interp.room(r.saturating_mul(24))?;
    let picked = match kind {
        _ if none => Vec::new(),
        Choice::WithReplacement => vec![0; r],
        _ => (0..r).collect(),
    };
    let cycles = if none { Vec::new() } else { (0..r.min(n)).map(|at| n - at).collect() };
    let choose =
        Choose { items, picked, kind, started: false, done: none, order: (0..n).collect(), cycles };
    interp.generator(name, &[], choose)
}

struct Product {
    pools: Vec<Arc<[Value]>>,
    at: Vec<usize>,
    started: bool,
    done: bool,
}

impl Stream for Product {
    fn next(&mut self, interp: &mut Interp<'_>) -> Result<Option<Value>> {
        interp.burn(cost(self.pools.len()))?;
        if self.done || self.pools.iter().any(|pool| pool.is_empty()) {
            return Ok(None);
        }
        if self.started {
            let moved = (0..self.at.len()).rev().find(|index| {
                self.at[*index] += 1;
                let carried = self.at[*index] == self.pools[*index].len();
                if carried {
                    self.at[*index] = 0;
                }
                !carried
            });
            if moved.is_none() {
                self.done = true;
                return Ok(None);
            }
        }
        self.started = true;
        let items = self.pools.iter().zip(&self.at).map(|(pool, at)| pool[*at].clone()).collect();
        interp.tuple(items).map(Some)
    }
}

fn product(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let repeat = args.opt(0).map(|repeat| methods::index(&repeat)).transpose()?.unwrap_or(1);
    if let Some(undefined) = args.rest.first().and_then(|value| first_undefined(interp, value)) {
        return Ok(undefined);
    }
    let mut pools: Vec<Arc<[Value]>> = Vec::new();
    for value in &args.rest {
        pools.push(interp.collect(value)?.into());
    }
    let repeat =
        usize::try_from(repeat).map_err(|_| value_error("repeat argument cannot be negative"))?;
    interp.room(repeat.saturating_mul(pools.len() * 16))?;
    let total = pools.len() * repeat;
    let pools: Vec<_> = pools.iter().cycle().take(total).cloned().collect();
    let at = vec![0; pools.len()];
    interp.generator("itertools.product", &[], Product { pools, at, started: false, done: false })
}

/// Reads several iterables in step.
struct Zip {
    iters: Vec<PyIter>,
    /// `None`: ends with the shortest; otherwise fills up to the longest.
    fill: Option<Value>,
    ended: Vec<bool>,
}

impl Stream for Zip {
    fn next(&mut self, interp: &mut Interp<'_>) -> Result<Option<Value>> {
        let mut items = Vec::with_capacity(self.iters.len());
        let mut any = false;
        for (iter, ended) in self.iters.iter_mut().zip(&mut self.ended) {
            let item = if *ended { None } else { interp.next(iter)? };
            match (item, &self.fill) {
                (Some(item), _) => {
                    any = true;
                    items.push(item);
                }
                (None, None) => return Ok(None),
                (None, Some(fill)) => {
                    *ended = true;
                    items.push(fill.clone());
                }
            }
        }
        if !any {
            return Ok(None);
        }
        interp.tuple(items).map(Some)
    }
}

fn zip_all(
    interp: &mut Interp<'_>,
    rest: &[Value],
    fill: Option<Value>,
    name: &'static str,
) -> Result<Value> {
    if let Some(undefined) = rest.first().and_then(|value| first_undefined(interp, value)) {
        return Ok(undefined);
    }
    let mut iters = Vec::new();
    for (at, value) in rest.iter().enumerate() {
        iters.push(interp.iter(value).map_err(|error| match error.class() {
            Class::TypeError if name == "zip" => {
                type_error(format!("'{}' object is not iterable", value.type_name()))
            }
            Class::TypeError => {
                type_error(format!("zip_longest argument #{} must support iteration", at + 1))
            }
            _ => error,
        })?);
    }
    let over: Vec<PyIter> = rest
        .iter()
        .filter_map(|value| match value {
            Value::Object(object) if object.as_any().is::<Generator>() => {
                Some(PyIter::Shared(object.clone()))
            }
            _ => None,
        })
        .collect();
    let over: Vec<&PyIter> = over.iter().collect();
    let ended = vec![false; iters.len()];
    interp.generator(name, &over, Zip { iters, fill, ended })
}

fn zip(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    zip_all(interp, &args.rest, None, "zip")
}

fn zip_longest(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let fill = args.take(0);
    zip_all(interp, &args.rest, Some(fill), "itertools.zip_longest")
}

struct Compress {
    data: PyIter,
    selectors: PyIter,
}

impl Stream for Compress {
    fn next(&mut self, interp: &mut Interp<'_>) -> Result<Option<Value>> {
        loop {
            let Some(item) = interp.next(&mut self.data)? else { return Ok(None) };
            let Some(selector) = interp.next(&mut self.selectors)? else { return Ok(None) };
            if interp.truthy(&selector)? {
                return Ok(Some(item));
            }
        }
    }
}

fn compress(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let (data, selectors) = (args.take(0), args.take(1));
    if let Some(undefined) = first_undefined(interp, &data) {
        return Ok(undefined);
    }
    let compress = Compress { data: interp.iter(&data)?, selectors: interp.iter(&selectors)? };
    let over = [interp.iter(&data)?, interp.iter(&selectors)?];
    interp.generator("itertools.compress", &[&over[0], &over[1]], compress)
}

/// The fuel for one choice of so many. More than for a round of a loop: there are as many as nobody
/// expects, and whoever makes a list of them needs the memory, too.
fn cost(picked: usize) -> usize {
    8 * (picked + 1)
}
