//! What is inside a dict: entries in the order of their insertion.
//!
//! Most dicts are small and there are many of them (the arguments of a state, its return, each of its
//! requisites), so memory counts more than anything: up to [`SMALL`] entries stand alone and are found
//! by looking at each. A larger map has a table beside them that tells where a key stands.

use std::{
    hash::{BuildHasher as _, Hash},
    sync::LazyLock,
};

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use indexmap::Equivalent;

use crate::{Key, Value};

/// Entries that are found without a table.
const SMALL: usize = 12;

/// An ordered map from keys to values.
#[derive(Clone, Default)]
pub struct Map {
    entries: Vec<(Key, Value)>,
    /// Where each key stands, once there are many. Boxed: few maps have one.
    table: Option<Box<HashTable<u32>>>,
}

type Shown<'a> = fn(&'a (Key, Value)) -> (&'a Key, &'a Value);

/// The entries of a [`Map`], in order.
pub(crate) type Iter<'a> = std::iter::Map<std::slice::Iter<'a, (Key, Value)>, Shown<'a>>;

fn hash_of<Q: ?Sized + Hash>(key: &Q) -> u64 {
    static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::default);
    SEED.hash_one(key)
}

impl Map {
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns an empty map with room for exactly so many entries.
    pub fn with_capacity(entries: usize) -> Self {
        Self { entries: Vec::with_capacity(entries), table: None }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn iter(&self) -> Iter<'_> {
        self.entries.iter().map(|(key, value)| (key, value))
    }

    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &Key> + ExactSizeIterator {
        self.entries.iter().map(|(key, _)| key)
    }

    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Value> + ExactSizeIterator {
        self.entries.iter().map(|(_, value)| value)
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Value> {
        self.entries.iter_mut().map(|(_, value)| value)
    }

    pub fn into_values(self) -> impl ExactSizeIterator<Item = Value> {
        self.entries.into_iter().map(|(_, value)| value)
    }

    /// Returns the entry at a position.
    pub fn get_index(&self, at: usize) -> Option<(&Key, &Value)> {
        self.entries.get(at).map(|(key, value)| (key, value))
    }

    pub fn first(&self) -> Option<(&Key, &Value)> {
        self.get_index(0)
    }

    pub fn get<Q: ?Sized + Hash + Equivalent<Key>>(&self, key: &Q) -> Option<&Value> {
        Some(&self.entries[self.position(key)?].1)
    }

    pub fn get_mut<Q: ?Sized + Hash + Equivalent<Key>>(&mut self, key: &Q) -> Option<&mut Value> {
        let at = self.position(key)?;
        Some(&mut self.entries[at].1)
    }

    pub fn contains_key<Q: ?Sized + Hash + Equivalent<Key>>(&self, key: &Q) -> bool {
        self.position(key).is_some()
    }

    fn position<Q: ?Sized + Hash + Equivalent<Key>>(&self, key: &Q) -> Option<usize> {
        let Some(table) = &self.table else {
            return self.entries.iter().position(|(own, _)| key.equivalent(own));
        };
        let is_it = |at: &u32| key.equivalent(&self.entries[*at as usize].0);
        table.find(hash_of(key), is_it).map(|at| *at as usize)
    }

    /// Sets an entry; an existing key keeps its position. Returns the old value.
    pub fn insert(&mut self, key: Key, value: Value) -> Option<Value> {
        if let Some(at) = self.position(&key) {
            return Some(std::mem::replace(&mut self.entries[at].1, value));
        }
        self.append(key, value);
        None
    }

    /// Returns the value under a key, after setting it when absent.
    pub fn get_or_insert(&mut self, key: Key, value: Value) -> &mut Value {
        let at = self.position(&key).unwrap_or_else(|| {
            self.append(key, value);
            self.len() - 1
        });
        &mut self.entries[at].1
    }

    /// Adds an entry whose key is new.
    fn append(&mut self, key: Key, value: Value) {
        let len = self.len();
        if len == self.entries.capacity() {
            // By halves: what a small dict has room for and does not use would be much of its memory.
            self.entries.reserve_exact((len / 2).max(3));
        }
        let hash = self.table.as_ref().map(|_| hash_of(&key));
        self.entries.push((key, value));
        match (&mut self.table, hash) {
            (Some(table), Some(hash)) => {
                let entries = &self.entries;
                table.insert_unique(hash, len as u32, |at| hash_of(&entries[*at as usize].0));
            }
            _ if len >= SMALL => self.index(),
            _ => {}
        }
    }

    /// Makes the table anew, where one is wanted.
    fn index(&mut self) {
        if self.len() <= SMALL {
            self.table = None;
            return;
        }
        let entries = &self.entries;
        let mut table = HashTable::with_capacity(entries.len());
        for (at, (key, _)) in entries.iter().enumerate() {
            let again = |at: &u32| hash_of(&entries[*at as usize].0);
            table.insert_unique(hash_of(key), at as u32, again);
        }
        self.table = Some(Box::new(table));
    }

    /// Makes room for so many more entries.
    pub fn reserve(&mut self, more: usize) {
        self.entries.reserve_exact(more);
    }

    /// Removes an entry; the others keep their order.
    pub fn shift_remove<Q: ?Sized + Hash + Equivalent<Key>>(&mut self, key: &Q) -> Option<Value> {
        let at = self.position(key)?;
        if let Some(table) = &mut self.table {
            if let Ok(slot) = table.find_entry(hash_of(key), |own| *own as usize == at) {
                slot.remove();
            }
            if at + 1 < self.entries.len() {
                table.iter_mut().filter(|own| **own as usize > at).for_each(|own| *own -= 1);
            }
        }
        Some(self.entries.remove(at).1)
    }

    /// Removes the last entry.
    pub fn pop(&mut self) -> Option<(Key, Value)> {
        let at = self.len().checked_sub(1)?;
        if let Some(table) = &mut self.table
            && let Ok(slot) =
                table.find_entry(hash_of(&self.entries[at].0), |own| *own as usize == at)
        {
            slot.remove();
        }
        self.entries.pop()
    }

    /// Keeps the entries that are wanted.
    pub fn retain(&mut self, mut is_wanted: impl FnMut(&Key, &mut Value) -> bool) {
        self.entries.retain_mut(|(key, value)| is_wanted(key, value));
        self.index();
    }

    /// Sorts the entries.
    pub fn sort_by(
        &mut self,
        mut order: impl FnMut(&Key, &Value, &Key, &Value) -> std::cmp::Ordering,
    ) {
        self.entries.sort_by(|(key, value), (other, its)| order(key, value, other, its));
        self.index();
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Extend<(Key, Value)> for Map {
    fn extend<I: IntoIterator<Item = (Key, Value)>>(&mut self, entries: I) {
        let entries = entries.into_iter();
        if self.is_empty() {
            self.reserve(entries.size_hint().0);
        }
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl FromIterator<(Key, Value)> for Map {
    fn from_iter<I: IntoIterator<Item = (Key, Value)>>(entries: I) -> Self {
        let mut map = Self::default();
        map.extend(entries);
        map
    }
}

impl IntoIterator for Map {
    type Item = (Key, Value);
    type IntoIter = std::vec::IntoIter<(Key, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

impl<'a> IntoIterator for &'a Map {
    type Item = (&'a Key, &'a Value);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: i64) -> Key {
        Value::Int(number).try_into().expect("a number is a key")
    }

    /// Thousands of changes, beside a plain list with the same rules.
    #[test]
    fn it_is_as_a_list_of_pairs() {
        let (mut map, mut model) = (Map::new(), Vec::<(i64, i64)>::new());
        let mut random: u64 = 1;
        for step in 0..20_000_i64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let number = (random >> 33) as i64 % 40;
            let at = model.iter().position(|(own, _)| *own == number);
            match (random >> 60) % 8 {
                0..4 => {
                    let old = map.insert(key(number), Value::Int(step));
                    match at {
                        Some(at) => {
                            assert_eq!(old, Some(Value::Int(model[at].1)));
                            model[at].1 = step;
                        }
                        None => model.push((number, step)),
                    }
                }
                4..6 => {
                    let old = at.map(|at| Value::Int(model.remove(at).1));
                    assert_eq!(map.shift_remove(&key(number)), old);
                }
                6 => {
                    let last = model.pop().map(|(number, value)| (key(number), Value::Int(value)));
                    assert_eq!(map.pop().map(|(_, value)| value), last.map(|(_, value)| value));
                }
                _ if step % 50 == 0 => {
                    map.retain(|own, _| own.value() != &Value::Int(number));
                    model.retain(|(own, _)| *own != number);
                }
                _ => {
                    let value = at.map_or(step, |at| model[at].1);
                    assert_eq!(*map.get_or_insert(key(number), step.into()), Value::Int(value));
                    if at.is_none() {
                        model.push((number, step));
                    }
                }
            }
            let pairs = map.iter().map(|(own, value)| (own.value().clone(), value.clone()));
            let wanted = model.iter().map(|(own, value)| (Value::Int(*own), Value::Int(*value)));
            assert!(pairs.eq(wanted), "after step {step}");
            for (own, value) in &model {
                assert_eq!(map.get(&key(*own)), Some(&Value::Int(*value)));
            }
            assert!(!map.contains_key(&key(77)));
        }
    }

    #[test]
    fn small_ones_take_no_more_than_their_entries() {
        let map: Map = (0..SMALL as i64).map(|number| (key(number), Value::Null)).collect();
        assert!(map.table.is_none() && map.entries.capacity() == SMALL);
        assert_eq!(size_of::<(Key, Value)>(), 64);
        assert_eq!(size_of::<Map>(), 32);
    }
}
