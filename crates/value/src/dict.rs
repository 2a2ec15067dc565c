//! A shared, mutable, ordered dict: Python's `dict`.

use std::{
    hash::Hash,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use indexmap::Equivalent;
use once_cell::race::OnceBox;
use parking_lot::{
    RecursiveRwLock as RwLock, RecursiveRwLockReadGuard as RwLockReadGuard,
    RecursiveRwLockWriteGuard as RwLockWriteGuard,
};

use crate::{Key, Map, Place, Value, list::drop_flat};

/// A handle on a dict. Clones share the entries.
#[derive(Clone, Default)]
pub struct Dict(Arc<Inner>);

#[derive(Default)]
struct Inner {
    map: RwLock<Map>,
    /// A word where there are none: most dicts were never written in a file.
    places: OnceBox<Vec<(Key, Place)>>,
    /// See [`Dict::is_ordered`].
    ordered: AtomicBool,
}

impl Dict {
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns an empty dict with room for so many entries.
    pub fn with_capacity(entries: usize) -> Self {
        Map::with_capacity(entries).into()
    }

    pub fn len(&self) -> usize {
        self.read().len()
    }

    pub fn is_empty(&self) -> bool {
        self.read().is_empty()
    }

    /// Returns the value under a key, which may be a `&str` or a [`Key`].
    pub fn get<Q: ?Sized + Hash + Equivalent<Key>>(&self, key: &Q) -> Option<Value> {
        self.read().get(key).cloned()
    }

    pub fn contains<Q: ?Sized + Hash + Equivalent<Key>>(&self, key: &Q) -> bool {
        self.read().contains_key(key)
    }

    /// Sets an entry; an existing key keeps its position, as in Python. Returns the old value.
    pub fn insert(&self, key: impl Into<Key>, value: impl Into<Value>) -> Option<Value> {
        self.write().insert(key.into(), value.into())
    }

    /// Removes an entry, keeping the order of the others.
    pub fn remove<Q: ?Sized + Hash + Equivalent<Key>>(&self, key: &Q) -> Option<Value> {
        self.write().shift_remove(key)
    }

    /// Returns the value under the key, after setting it when absent.
    pub fn get_or_insert_with(&self, key: impl Into<Key>, make: impl FnOnce() -> Value) -> Value {
        let key = key.into();
        if let Some(value) = self.get(&key) {
            return value;
        }
        let value = make();
        self.write().get_or_insert(key, value).clone()
    }

    /// Sets every entry of the other dict, as Python's `update`.
    pub fn update(&self, other: &Dict) {
        let entries = other.entries();
        self.write().extend(entries);
    }

    pub fn keys(&self) -> Vec<Key> {
        self.read().keys().cloned().collect()
    }

    pub fn values(&self) -> Vec<Value> {
        self.read().values().cloned().collect()
    }

    /// Returns the entries as they are now.
    pub fn entries(&self) -> Vec<(Key, Value)> {
        self.read().iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// Locks the entries for reading. Hold it for a moment only, and run no foreign code meanwhile.
    pub fn read(&self) -> RwLockReadGuard<'_, Map> {
        self.0.map.read()
    }

    /// Locks the entries for writing; the same rule as for [`Dict::read`].
    pub fn write(&self) -> RwLockWriteGuard<'_, Map> {
        self.0.map.write()
    }

    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Tells whether another handle exists. Where none does, nothing else can refer to it.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Returns a number that tells this container from every other living one.
    pub fn identity(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Returns a new dict with the same values, as Python's `copy`.
    pub fn shallow_copy(&self) -> Self {
        let copy = Self::from(self.read().clone());
        copy.copy_nature(self);
        copy
    }

    /// Returns a copy that shares no container with this one, as Python's `copy.deepcopy`.
    pub fn deep_copy(&self) -> Self {
        match Value::Dict(self.clone()).deep_copy() {
            Value::Dict(copy) => copy,
            _ => Self::new(),
        }
    }

    /// Takes over what another dict is besides its entries: its kind, and where its keys stood.
    pub(crate) fn copy_nature(&self, from: &Self) {
        if let Some(places) = from.0.places.get() {
            self.set_places(places.clone());
        }
        if from.is_ordered() {
            self.set_ordered();
        }
    }

    /// Tells whether Python would call this an `OrderedDict`, as it does what the renderer `yaml`
    /// makes of an SLS. Every dict keeps its order; but such a one keeps it also where others are
    /// sorted by key, as by the Jinja filter `yaml`, and copies of it are of its kind.
    pub fn is_ordered(&self) -> bool {
        self.0.ordered.load(Relaxed)
    }

    /// Makes this an `OrderedDict`.
    pub fn set_ordered(&self) {
        self.0.ordered.store(true, Relaxed);
    }

    /// Remembers where the keys stood; only the first call counts.
    pub fn set_places(&self, places: Vec<(Key, Place)>) {
        let _ = self.0.places.set(Box::new(places));
    }

    /// Returns the places of all keys, as written; for a key written twice the last one counts.
    pub fn places(&self) -> &[(Key, Place)] {
        self.0.places.get().map_or(&[], Vec::as_slice)
    }

    /// Returns where the key stood in its source.
    pub fn place_of<Q: ?Sized + Equivalent<Key>>(&self, key: &Q) -> Option<&Place> {
        // The last one wins, as its value did. A scan: asked only when an error is reported.
        let places = self.0.places.get()?;
        places.iter().rev().find(|(own, _)| key.equivalent(own)).map(|(_, place)| place)
    }

    /// Returns where the first key stood: the best answer to "where is this dict".
    pub fn place(&self) -> Option<&Place> {
        self.0.places.get()?.first().map(|(_, place)| place)
    }

    pub(crate) fn take_values_if_last(&mut self, into: &mut Vec<Value>) {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            into.extend(std::mem::take(inner.map.get_mut()).into_values());
        }
    }
}

impl From<Map> for Dict {
    fn from(map: Map) -> Self {
        Self(Arc::new(Inner {
            map: RwLock::new(map),
            places: OnceBox::new(),
            ordered: AtomicBool::new(false),
        }))
    }
}

impl<K: Into<Key>, V: Into<Value>> FromIterator<(K, V)> for Dict {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        entries.into_iter().map(|(key, value)| (key.into(), value.into())).collect::<Map>().into()
    }
}

/// Iterates over the entries as they were when the loop began.
impl IntoIterator for &Dict {
    type Item = (Key, Value);
    type IntoIter = std::vec::IntoIter<(Key, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries().into_iter()
    }
}

/// As for lists: deep nesting is taken apart in a loop.
impl Drop for Inner {
    fn drop(&mut self) {
        let map = std::mem::take(self.map.get_mut());
        if map.values().any(|item| matches!(item, Value::List(_) | Value::Dict(_))) {
            drop_flat(map.into_values().collect());
        }
    }
}
