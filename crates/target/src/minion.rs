//! Matching one minion: what a minion asks itself when a job arrives, and a top file for each line.

use halite_value::{Dict, Value};

use crate::{
    expr::{Bank, Expr, Node},
    fnmatch::fnmatch,
};

/// A minion to be matched. What is absent matches nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Minion<'a> {
    pub id: &'a str,
    /// Addresses are taken from the grains `ipv4` and `ipv6`.
    pub grains: Option<&'a Dict>,
    pub pillar: Option<&'a Dict>,
    /// The minion's data store, for `data` targets.
    pub data: Option<&'a Dict>,
    /// Resources the minion manages: type → list of ids.
    pub resources: Option<&'a Dict>,
}

impl Expr {
    /// Tells whether the target means this minion.
    pub fn matches(&self, minion: &Minion<'_>) -> bool {
        matches(&self.node, minion)
    }
}

fn matches(node: &Node, minion: &Minion<'_>) -> bool {
    match node {
        Node::Glob(glob) => glob.matches(minion.id),
        Node::Pcre(regex) => regex.matches(minion.id),
        Node::List(ids) => ids.iter().any(|id| id == minion.id),
        Node::Path(Bank::Grains, pattern) => {
            minion.grains.is_some_and(|data| pattern.matches(data))
        }
        Node::Path(Bank::Pillar, pattern) => {
            minion.pillar.is_some_and(|data| pattern.matches(data))
        }
        Node::Address(net) => minion
            .grains
            .and_then(|grains| grains.get(net.grain()))
            .is_some_and(|addresses| net.contains_any(&addresses)),
        Node::Data { key, value } => minion
            .data
            .and_then(|data| data.get(key.as_str()))
            .is_some_and(|found| data_matches(&found, value)),
        Node::Resource(kind, id) => minion
            .resources
            .and_then(|resources| resources.get(kind.as_str()))
            .is_some_and(|ids| has_resource(&ids, id.as_deref())),
        Node::Managing(id) => id == minion.id,
        Node::Never => false,
        Node::Not(inner) => !matches(inner, minion),
        Node::And(nodes) => nodes.iter().all(|node| matches(node, minion)),
        Node::Or(nodes) => nodes.iter().any(|node| matches(node, minion)),
    }
}

fn data_matches(found: &Value, pattern: &str) -> bool {
    match found {
        Value::Null => false,
        Value::List(items) => {
            let pattern = pattern.to_lowercase();
            items.into_iter().any(|item| fnmatch(&item.to_str().to_lowercase(), &pattern))
        }
        Value::Dict(dict) => dict.contains(pattern),
        other => fnmatch(&other.to_str(), pattern),
    }
}

fn has_resource(ids: &Value, wanted: Option<&str>) -> bool {
    match wanted {
        None => ids.truthy(),
        Some(wanted) => ids.items_of_sequence().unwrap_or_default().iter().any(|id| *id == *wanted),
    }
}
