//! The order of a run: a topological one; of the steps that may come next, the earliest does.
//!
//! How early a step is follows from `order` alone and is known before anything is sorted: its own,
//! or that of a step directly behind it, if that is earlier. Equal ones go by name. So each step
//! gets a rank first, a plain number, and the queue compares numbers.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
};

use halite_value::Value;

use super::{
    Chunk,
    edges::{Net, StepId},
};
use crate::{Low, low::text};

/// `order: last`, and negative orders, come behind everything else by this much.
const LAST: i64 = 1_000_000;

/// Returns where chunks without an `order` begin: well behind the greatest that is written.
pub(super) fn behind_all<'l>(lows: impl Iterator<Item = &'l Low>) -> i64 {
    lows.fold(1, |end, low| match low.get("order") {
        Some(Value::Int(order)) if order >= end => order.saturating_add(100),
        _ => end,
    })
}

/// Orders the steps. Those on a cycle, or behind one, are left out.
pub(super) fn sort(net: &Net, chunks: &[Chunk], behind_all: i64) -> Vec<StepId> {
    let rank = ranks(net, chunks, behind_all);
    let mut missing: Vec<usize> = net.into.iter().map(|edges| edges.ends().count()).collect();
    let start = (0..missing.len()).filter(|step| missing[*step] == 0);
    let mut ready: BinaryHeap<_> = start.map(|step| Reverse((rank[step], step))).collect();
    let mut order = Vec::with_capacity(missing.len());
    while let Some(Reverse((_, step))) = ready.pop() {
        order.push(step);
        for behind in net.out[step].ends() {
            missing[behind] -= 1;
            if missing[behind] == 0 {
                ready.push(Reverse((rank[behind], behind)));
            }
        }
    }
    order
}

/// Numbers the steps by their place in the queue.
fn ranks(net: &Net, chunks: &[Chunk], behind_all: i64) -> Vec<usize> {
    let orders: Vec<Order> = chunks.iter().map(|chunk| settle(&chunk.low, behind_all)).collect();
    let mut places: Vec<Place> =
        (0..net.steps.len()).map(|step| place(net, chunks, &orders, step)).collect();
    places.sort_by(Place::compare);
    let mut ranks = vec![0; places.len()];
    for (rank, place) in places.iter().enumerate() {
        ranks[place.step] = rank;
    }
    ranks
}

/// The `order` of a chunk.
struct Order {
    /// As the author wrote it, words and nonsense read as Salt reads them.
    written: f64,
    /// As it counts for the chunk itself.
    settled: f64,
}

/// Reads the `order` of a chunk and writes it back as it counts: `names` one after the other,
/// negative ones at the end.
fn settle(low: &Low, behind_all: i64) -> Order {
    let order = match low.get("order") {
        Some(number @ (Value::Int(_) | Value::Float(_) | Value::Bool(_))) => number,
        word => {
            let order = match word.as_ref().and_then(Value::as_str) {
                Some("last") => behind_all.saturating_add(LAST),
                Some("first") => 0,
                _ => behind_all,
            };
            low.insert("order", order);
            Value::Int(order)
        }
    };
    let written = order.as_float().unwrap_or(f64::INFINITY);
    let among_names = low.remove("name_order").and_then(|number| number.as_float());
    let settled = match among_names.filter(|number| *number != 0.0) {
        Some(number) => Value::Float(written + number / 10_000.0),
        None => order.clone(),
    };
    let end = behind_all.saturating_add(LAST);
    let settled = match settled {
        Value::Int(order) if order < 0 => Value::Int(order.saturating_add(end)),
        Value::Float(order) if order < 0.0 => Value::Float(order + end as f64),
        other => other,
    };
    if settled != order {
        low.insert("order", &settled);
    }
    Order { written, settled: settled.as_float().unwrap_or(f64::INFINITY) }
}

/// Where a step stands in the queue: what is compared, in this order.
struct Place {
    /// Its own order, or that of a step behind it.
    order: f64,
    own: f64,
    label: String,
    tag: String,
    step: StepId,
}

impl Place {
    fn compare(&self, other: &Self) -> Ordering {
        self.order
            .total_cmp(&other.order)
            .then_with(|| self.own.total_cmp(&other.own))
            .then_with(|| self.label.cmp(&other.label))
            .then_with(|| self.tag.cmp(&other.tag))
            .then_with(|| self.step.cmp(&other.step))
    }
}

fn place(net: &Net, chunks: &[Chunk], orders: &[Order], step: StepId) -> Place {
    let own = orders[net.steps[step].chunk].settled;
    let chunk = &chunks[net.steps[step].chunk];
    let label = ["state", "name", "fun"].map(|key| text(&chunk.low, key)).concat();
    let order = own.min(earliest_behind(net, orders, step));
    Place { order, own, label, tag: super::tag_of(chunk, net.steps[step].pass), step }
}

/// Returns the earliest order of the steps right behind one. Along its edges, a lighter requisite
/// than one before it does not count, as in Salt.
fn earliest_behind(net: &Net, orders: &[Order], step: StepId) -> f64 {
    let mut heaviest = None;
    let mut earliest = f64::INFINITY;
    for (behind, kind) in net.out[step].edges() {
        let order = &orders[net.steps[behind].chunk];
        // Behind its `prereq`, a chunk has been looked at already and its order is settled.
        let order = if net.asks_about(step, behind) { order.settled } else { order.written };
        if heaviest <= Some(kind) {
            heaviest = Some(kind);
            earliest = earliest.min(order);
        }
    }
    earliest
}

#[cfg(test)]
mod tests {
    use halite_value::{Value, entries};

    use super::*;

    #[track_caller]
    fn check(order: impl Into<Value>, name: i64, written: f64, settled: impl Into<Value>) {
        let low = entries! { "order" => order.into(), "name_order" => name };
        let read = settle(&low, 101);
        assert_eq!(read.written, written);
        assert_eq!(low.get("order"), Some(settled.into()));
        assert!(!low.contains("name_order"));
    }

    #[test]
    fn orders_are_settled() {
        check(7, 0, 7.0, 7);
        check(7, 2, 7.0, 7.0002);
        check(-1, 0, -1.0, 1_000_100);
        check("first", 0, 0.0, 0);
        check("last", 0, 1_000_101.0, 1_000_101);
        check("nonsense", 0, 101.0, 101);
        check(Value::Null, 1, 101.0, 101.0001);
        check(true, 0, 1.0, true);
    }

    #[test]
    fn unordered_chunks_begin_behind_the_greatest_order() {
        let lows = [1, 5, 50].map(|order| entries! { "order" => order });
        assert_eq!(behind_all(lows.iter()), 101);
    }
}
