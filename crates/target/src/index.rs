//! The master's view: which of many minions a target means, from what it remembers of them.
//!
//! Minions live in numbered slots; every operand becomes a set of slots (bits), and `and`, `or`,
//! `not` are set operations. A grain or pillar that was asked for once gets a table from its values
//! to the minions that have them, kept up to date from then on, so that the usual `os:Debian` costs
//! a few comparisons for any number of minions.
//!
//! A minion whose grains are not known cannot be judged. Salt 3008 leaves it out (older releases
//! took it in); [`Uncached`] says which. With [`Uncached::MayMatch`] the answer is everything that
//! is not known to be outside, also under a `not`: each operand yields what surely and what
//! possibly matches.

use std::collections::HashMap;

use halite_value::{Dict, SmolStr, Value};
use parking_lot::RwLock;

use crate::{
    bits::Bits,
    expr::{Bank, Expr, Node},
    fnmatch::{Glob, is_pattern},
    path::{PathPattern, lower_text},
};

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Tables of values kept at most, per bank. Targets name few grains; a script that walks through
/// all of them must not fill the memory.
const MAX_TABLES: usize = 64;

/// What a minion with unknown grains or pillar counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Uncached {
    /// As Salt 3008.
    #[default]
    DoesNotMatch,
    /// As Salt before: the minion itself decides.
    MayMatch,
}

/// How to look.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// Consider every accepted minion; otherwise grain and pillar operands consider only those
    /// with cached data, accepted or not.
    pub greedy: bool,
    pub uncached: Uncached,
}

impl Default for Search {
    fn default() -> Self {
        Self { greedy: true, uncached: Uncached::default() }
    }
}

/// What a target means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matched {
    /// In the order in which the minions became known; resources come last.
    pub ids: Vec<SmolStr>,
    /// Ids that a list names and nobody has.
    pub missing: Vec<SmolStr>,
}

/// All minions the master knows, ready for targets.
#[derive(Debug, Default)]
pub struct Index {
    slots: Vec<Option<Entry>>,
    free: Vec<u32>,
    by_id: Map<SmolStr, u32>,
    accepted: Bits,
    /// Slots with known grains.
    cached: Bits,
    grains: RwLock<Map<SmolStr, Table>>,
    pillar: RwLock<Map<SmolStr, Table>>,
}

#[derive(Debug, Default)]
struct Entry {
    id: SmolStr,
    grains: Option<Dict>,
    pillar: Option<Dict>,
    resources: Option<Dict>,
}

impl Entry {
    fn bank(&self, bank: Bank) -> Option<&Dict> {
        match bank {
            Bank::Grains => self.grains.as_ref(),
            Bank::Pillar => self.pillar.as_ref(),
        }
    }
}

/// Who has which value under one top-level key.
#[derive(Debug, Default)]
struct Table {
    /// By lower-case text; the members of a list each count.
    by_value: Map<SmolStr, Vec<u32>>,
    /// Dicts, and lists that hold containers: looked at one by one.
    nested: Bits,
    all: Bits,
    /// What each slot has, so that it can be taken out again.
    of: Vec<Own>,
}

/// The texts one minion has under a key.
#[derive(Clone, Debug, Default)]
enum Own {
    #[default]
    None,
    One(SmolStr),
    Many(Box<[SmolStr]>),
}

impl Own {
    fn texts(&self) -> &[SmolStr] {
        match self {
            Self::None => &[],
            Self::One(text) => std::slice::from_ref(text),
            Self::Many(texts) => texts,
        }
    }
}

impl Table {
    fn put(&mut self, slot: u32, value: &Value) {
        let is_container =
            |value: &Value| matches!(value, Value::Dict(_) | Value::List(_) | Value::Tuple(_));
        self.all.set(slot);
        let own = match value {
            Value::Dict(_) => {
                self.nested.set(slot);
                return;
            }
            Value::List(_) | Value::Tuple(_) => {
                let items = value.items_of_sequence().unwrap_or_default();
                if items.iter().any(is_container) {
                    self.nested.set(slot);
                    return;
                }
                Own::Many(items.iter().map(|item| SmolStr::new(lower_text(item))).collect())
            }
            scalar => Own::One(SmolStr::new(lower_text(scalar))),
        };
        for text in own.texts() {
            match self.by_value.get_mut(text) {
                Some(slots) if slots.last() == Some(&slot) => {}
                Some(slots) => slots.push(slot),
                None => drop(self.by_value.insert(text.clone(), vec![slot])),
            }
        }
        let at = slot as usize;
        if at >= self.of.len() {
            self.of.resize(at + 1, Own::None);
        }
        self.of[at] = own;
    }

    fn take(&mut self, slot: u32) {
        self.all.clear(slot);
        self.nested.clear(slot);
        let own = self.of.get_mut(slot as usize).map(std::mem::take).unwrap_or_default();
        for value in own.texts() {
            if let Some(slots) = self.by_value.get_mut(value) {
                slots.retain(|own| *own != slot);
                if slots.is_empty() {
                    self.by_value.remove(value);
                }
            }
        }
    }
}

/// What surely and what possibly matches; the first is part of the second.
struct Span {
    sure: Bits,
    may: Bits,
}

impl From<Bits> for Span {
    fn from(bits: Bits) -> Self {
        Self { sure: bits.clone(), may: bits }
    }
}

struct Looking<'a> {
    index: &'a Index,
    search: Search,
    missing: Vec<SmolStr>,
    /// Ids of resources that operands named.
    resources: Vec<SmolStr>,
}

impl Index {
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns how many accepted minions there are.
    pub fn len(&self) -> usize {
        self.accepted.iter().count()
    }

    pub fn is_empty(&self) -> bool {
        self.accepted.is_empty()
    }

    /// Makes a minion an accepted one (its key was accepted), or ends that.
    pub fn set_accepted(&mut self, id: &str, accepted: bool) {
        let slot = self.slot(id);
        if accepted {
            self.accepted.set(slot);
        } else {
            self.accepted.clear(slot);
            self.drop_if_unknown(slot);
        }
    }

    /// Remembers a minion's grains; `None` forgets them.
    pub fn set_grains(&mut self, id: &str, grains: Option<Dict>) {
        let slot = self.slot(id);
        if grains.is_some() {
            self.cached.set(slot);
        } else {
            self.cached.clear(slot);
        }
        update_tables(self.grains.get_mut(), slot, grains.as_ref());
        if let Some(entry) = self.entry_mut(slot) {
            entry.grains = grains;
        }
        self.drop_if_unknown(slot);
    }

    /// Remembers a minion's pillar; `None` forgets it.
    pub fn set_pillar(&mut self, id: &str, pillar: Option<Dict>) {
        let slot = self.slot(id);
        update_tables(self.pillar.get_mut(), slot, pillar.as_ref());
        if let Some(entry) = self.entry_mut(slot) {
            entry.pillar = pillar;
        }
        self.drop_if_unknown(slot);
    }

    /// Remembers the resources a minion manages: type → list of ids.
    pub fn set_resources(&mut self, id: &str, resources: Option<Dict>) {
        let slot = self.slot(id);
        if let Some(entry) = self.entry_mut(slot) {
            entry.resources = resources.filter(|resources| !resources.is_empty());
        }
        self.drop_if_unknown(slot);
    }

    /// Forgets a minion altogether.
    pub fn remove(&mut self, id: &str) {
        self.set_grains(id, None);
        self.set_pillar(id, None);
        self.set_resources(id, None);
        self.set_accepted(id, false);
    }

    pub fn is_accepted(&self, id: &str) -> bool {
        self.by_id.get(id).is_some_and(|slot| self.accepted.has(*slot))
    }

    pub fn grains(&self, id: &str) -> Option<&Dict> {
        self.entry(*self.by_id.get(id)?)?.grains.as_ref()
    }

    pub fn pillar(&self, id: &str) -> Option<&Dict> {
        self.entry(*self.by_id.get(id)?)?.pillar.as_ref()
    }

    /// Returns the ids of all accepted minions.
    pub fn accepted(&self) -> Vec<SmolStr> {
        self.ids(&self.accepted)
    }

    /// Returns how many minions are accepted.
    pub fn accepted_count(&self) -> usize {
        self.accepted.count()
    }

    /// Returns the minions a target means, as Salt 3008 would.
    pub fn candidates(&self, expr: &Expr, greedy: bool) -> Vec<SmolStr> {
        self.search(expr, Search { greedy, ..Search::default() }).ids
    }

    /// Returns the minions a target means, and the listed ids that nobody has.
    pub fn search(&self, expr: &Expr, search: Search) -> Matched {
        let mut looking =
            Looking { index: self, search, missing: Vec::new(), resources: Vec::new() };
        let found = looking.look(&expr.node, false).may;
        let mut ids = self.ids(&found);
        if let Node::Glob(glob) = &expr.node {
            looking.glob_resources(glob, &found);
        }
        let Looking { resources, missing, .. } = looking;
        for id in resources {
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        Matched { ids, missing }
    }

    fn ids(&self, slots: &Bits) -> Vec<SmolStr> {
        slots.iter().filter_map(|slot| Some(self.entry(slot)?.id.clone())).collect()
    }

    fn entry(&self, slot: u32) -> Option<&Entry> {
        self.slots.get(slot as usize)?.as_ref()
    }

    fn entry_mut(&mut self, slot: u32) -> Option<&mut Entry> {
        self.slots.get_mut(slot as usize)?.as_mut()
    }

    /// Returns the minion's slot, a new one if it was unknown.
    fn slot(&mut self, id: &str) -> u32 {
        if let Some(slot) = self.by_id.get(id) {
            return *slot;
        }
        let id = SmolStr::new(id);
        let entry = Some(Entry { id: id.clone(), ..Entry::default() });
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = entry;
                slot
            }
            None => {
                self.slots.push(entry);
                (self.slots.len() - 1) as u32
            }
        };
        self.by_id.insert(id, slot);
        slot
    }

    fn drop_if_unknown(&mut self, slot: u32) {
        let known = self.accepted.has(slot)
            || self.entry(slot).is_some_and(|entry| {
                entry.grains.is_some() || entry.pillar.is_some() || entry.resources.is_some()
            });
        if !known && let Some(entry) = self.slots[slot as usize].take() {
            self.by_id.remove(&entry.id);
            self.free.push(slot);
        }
    }

    fn tables(&self, bank: Bank) -> &RwLock<Map<SmolStr, Table>> {
        match bank {
            Bank::Grains => &self.grains,
            Bank::Pillar => &self.pillar,
        }
    }

    /// Returns who matches a pattern, among those whose data is known.
    fn with_path(&self, bank: Bank, pattern: &PathPattern) -> Bits {
        // A key such as `7` or `true` may stand for a number or a bool: no table for those.
        let first = pattern.first().filter(|first| is_word(first));
        let Some(key) = first else {
            let slots = 0..self.slots.len() as u32;
            return slots.filter(|slot| self.path_matches(bank, *slot, pattern)).collect();
        };
        if let Some(table) = self.tables(bank).read().get(key) {
            return self.with_table(bank, table, pattern);
        }
        let mut tables = self.tables(bank).write();
        if tables.len() >= MAX_TABLES {
            tables.clear();
        }
        let table = tables.entry(SmolStr::new(key)).or_insert_with(|| self.table(bank, key));
        self.with_table(bank, table, pattern)
    }

    fn table(&self, bank: Bank, key: &str) -> Table {
        let mut table = Table::default();
        for (slot, entry) in self.slots.iter().enumerate() {
            let data = entry.as_ref().and_then(|entry| entry.bank(bank));
            if let Some(value) = data.and_then(|data| data.get(key)) {
                table.put(slot as u32, &value);
            }
        }
        table
    }

    fn with_table(&self, bank: Bank, table: &Table, pattern: &PathPattern) -> Bits {
        let one_by_one = |slots: &Bits| -> Bits {
            slots.iter().filter(|slot| self.path_matches(bank, *slot, pattern)).collect()
        };
        if !pattern.is_flat() {
            return one_by_one(&table.all);
        }
        let mut found = one_by_one(&table.nested);
        match pattern.value_literal() {
            Some(value) => {
                let slots = table.by_value.get(value).into_iter().flatten();
                slots.for_each(|slot| found.set(*slot));
            }
            None => {
                let meant = table.by_value.iter().filter(|(value, _)| pattern.value_matches(value));
                meant.flat_map(|(_, slots)| slots).for_each(|slot| found.set(*slot));
            }
        }
        found
    }

    fn path_matches(&self, bank: Bank, slot: u32, pattern: &PathPattern) -> bool {
        self.entry(slot)
            .and_then(|entry| entry.bank(bank))
            .is_some_and(|data| pattern.matches(data))
    }
}

/// Tells whether a step can only mean the text it is, not a number, bool or null.
fn is_word(step: &str) -> bool {
    let begins_as_word = step.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let lower = step.to_lowercase();
    let spelt = ["true", "false", "yes", "no", "on", "off", "null", "none", "nan", "inf"];
    begins_as_word && !spelt.contains(&lower.as_str()) && lower != "infinity"
}

fn update_tables(tables: &mut Map<SmolStr, Table>, slot: u32, data: Option<&Dict>) {
    for (key, table) in tables {
        table.take(slot);
        if let Some(value) = data.and_then(|data| data.get(key.as_str())) {
            table.put(slot, &value);
        }
    }
}

impl Looking<'_> {
    fn look(&mut self, node: &Node, negated: bool) -> Span {
        let index = self.index;
        match node {
            Node::Glob(glob) => self.glob(glob).into(),
            Node::Managing(pattern) => self.glob(&Glob::new(pattern)).into(),
            Node::Pcre(regex) => self.by_id(|id| regex.matches(id)).into(),
            Node::List(ids) => self.list(ids, negated).into(),
            Node::Path(bank, pattern) => {
                let found = index.with_path(*bank, pattern);
                self.judged(found)
            }
            Node::Address(net) => {
                let has = |slot: &u32| {
                    let grains = index.entry(*slot).and_then(|entry| entry.grains.as_ref());
                    let addresses = grains.and_then(|grains| grains.get(net.grain()));
                    addresses.is_some_and(|addresses| net.contains_any(&addresses))
                };
                let mut found: Bits = index.cached.iter().filter(has).collect();
                if self.search.greedy && self.search.uncached == Uncached::DoesNotMatch {
                    // Kept from Salt 3008: for addresses it still takes in what it cannot judge.
                    found.add(&index.accepted.clone().without(&index.cached));
                }
                self.judged(found)
            }
            // The data store is the minion's own: it alone can tell.
            Node::Data { .. } => Span { sure: Bits::default(), may: index.accepted.clone() },
            Node::Resource(kind, id) => {
                self.resources(kind, id.as_deref());
                Bits::default().into()
            }
            Node::Never => Bits::default().into(),
            Node::Not(inner) => {
                let inner = self.look(inner, true);
                Span {
                    sure: index.accepted.clone().without(&inner.may),
                    may: index.accepted.clone().without(&inner.sure),
                }
            }
            Node::And(nodes) => self.joined(nodes, Bits::keep),
            Node::Or(nodes) => self.joined(nodes, Bits::add),
        }
    }

    fn joined(&mut self, nodes: &[Node], join: fn(&mut Bits, &Bits)) -> Span {
        let mut spans =
            nodes.iter().map(|node| self.look(node, false)).collect::<Vec<_>>().into_iter();
        let mut all = spans.next().unwrap_or_else(|| Bits::default().into());
        for span in spans {
            join(&mut all.sure, &span.sure);
            join(&mut all.may, &span.may);
        }
        all
    }

    /// Limits a grain or pillar match to those considered, and adds who cannot be judged.
    fn judged(&self, found: Bits) -> Span {
        if !self.search.greedy {
            return found.into();
        }
        let mut sure = found;
        sure.keep(&self.index.accepted);
        let mut may = sure.clone();
        if self.search.uncached == Uncached::MayMatch {
            may.add(&self.index.accepted.clone().without(&self.index.cached));
        }
        Span { sure, may }
    }

    fn glob(&self, glob: &Glob) -> Bits {
        match glob.literal() {
            Some(id) => self.known(id).into_iter().collect(),
            None => self.by_id(|id| glob.matches(id)),
        }
    }

    fn known(&self, id: &str) -> Option<u32> {
        self.index.by_id.get(id).copied().filter(|slot| self.index.accepted.has(*slot))
    }

    fn by_id(&self, is_meant: impl Fn(&str) -> bool) -> Bits {
        let index = self.index;
        let meant = |slot: &u32| index.entry(*slot).is_some_and(|entry| is_meant(&entry.id));
        index.accepted.iter().filter(meant).collect()
    }

    fn list(&mut self, ids: &[SmolStr], negated: bool) -> Bits {
        let mut found = Bits::default();
        for id in ids {
            match self.known(id) {
                Some(slot) => found.set(slot),
                None if self.is_resource(id) => self.resources.push(id.clone()),
                // What is excluded need not exist.
                None if negated => {}
                None => self.missing.push(id.clone()),
            }
        }
        found
    }

    fn all_resources(&self) -> impl Iterator<Item = (u32, SmolStr, SmolStr)> + '_ {
        let slots = self.index.slots.iter().enumerate();
        slots
            .filter_map(|(slot, entry)| Some((slot, entry.as_ref()?.resources.as_ref()?)))
            .flat_map(|(slot, resources)| {
                resources.entries().into_iter().flat_map(move |(kind, ids)| {
                    let kind = kind.to_str();
                    let ids = ids.items_of_sequence().unwrap_or_default();
                    ids.into_iter().map(move |id| (slot as u32, kind.clone(), id.to_str()))
                })
            })
    }

    fn is_resource(&self, id: &str) -> bool {
        self.all_resources().any(|(_, _, own)| own == id)
    }

    fn resources(&mut self, kind: &str, id: Option<&str>) {
        let found: Vec<SmolStr> = match id {
            Some(id) => vec![id.into()],
            None => {
                let all = self.all_resources();
                all.filter(|(_, own, _)| own == kind).map(|(_, _, id)| id).collect()
            }
        };
        self.resources.extend(found);
    }

    /// A glob with a wildcard also means the resources of the minions it means; a plain id may be
    /// a resource's.
    fn glob_resources(&mut self, glob: &Glob, found: &Bits) {
        let meant: Vec<SmolStr> = match glob.literal() {
            Some(id) if !is_pattern(id) => {
                let unknown = self.known(id).is_none() && self.is_resource(id);
                unknown.then(|| id.into()).into_iter().collect()
            }
            _ => {
                let all = self.all_resources();
                all.filter(|(slot, ..)| found.has(*slot)).map(|(.., id)| id).collect()
            }
        };
        self.resources.extend(meant);
    }
}

#[cfg(test)]
mod tests {
    use halite_value::{dict, list};

    use super::*;
    use crate::TargetType;

    fn fleet() -> Index {
        let mut index = Index::new();
        for (id, os) in [("a", "Debian"), ("b", "Ubuntu"), ("c", "Debian")] {
            index.set_accepted(id, true);
            let grains = dict! { "os" => os, "roles" => list![id, "all"] };
            index.set_grains(id, grains.as_dict().cloned());
        }
        index.set_accepted("dark", true);
        index
    }

    fn found(index: &Index, target: &str, uncached: Uncached) -> String {
        let expr = Expr::of(target, TargetType::Compound).expect("valid");
        let mut ids = index.search(&expr, Search { greedy: true, uncached }).ids;
        ids.sort();
        ids.join(" ")
    }

    #[test]
    fn uncached_minions_may_match_on_request() {
        let index = fleet();
        let (no, may) = (Uncached::DoesNotMatch, Uncached::MayMatch);
        assert_eq!(found(&index, "G@os:Debian", no), "a c");
        assert_eq!(found(&index, "G@os:Debian", may), "a c dark");
        assert_eq!(found(&index, "not G@os:Debian", no), "b dark");
        assert_eq!(found(&index, "not G@os:Debian", may), "b dark");
        assert_eq!(found(&index, "not ( not G@os:Debian )", may), "a c dark");
    }

    #[test]
    fn tables_follow_changes() {
        let mut index = fleet();
        let no = Uncached::DoesNotMatch;
        assert_eq!(found(&index, "G@roles:all", no), "a b c");
        index.set_grains("a", dict! { "roles" => "none" }.as_dict().cloned());
        assert_eq!(found(&index, "G@roles:all", no), "b c");
        assert_eq!(found(&index, "G@roles:NONE", no), "a");
        index.remove("b");
        assert_eq!(found(&index, "G@roles:*", no), "a c");
        index.set_accepted("new", true);
        index.set_grains("new", dict! { "roles" => dict! { "x" => 1 } }.as_dict().cloned());
        assert_eq!(found(&index, "G@roles:x", no), "new");
        assert_eq!(found(&index, "*", no), "a c dark new");
        assert_eq!(index.slots.len(), 4, "the freed slot is used again");
    }

    #[test]
    fn resources_are_named_by_type_id_and_glob() {
        let mut index = fleet();
        index.set_resources("a", dict! { "disk" => list!["d1", "d2"] }.as_dict().cloned());
        let no = Uncached::DoesNotMatch;
        assert_eq!(found(&index, "T@disk", no), "d1 d2");
        assert_eq!(found(&index, "T@disk:d9", no), "d9");
        assert_eq!(found(&index, "L@b,d1", no), "b d1");
        assert_eq!(found(&index, "d2", no), "d2");
        assert_eq!(found(&index, "[ab]", no), "a b d1 d2");
    }
}
