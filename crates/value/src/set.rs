//! A set, as YAML's `!!set` and Salt's set filters make them: Python's `set`.
//!
//! It is an [`Object`], not a variant of [`Value`]: hardly any data holds one, and every `match`
//! would have to name it. It keeps the order of insertion, where Python's order is arbitrary.

use std::{any::Any, sync::Arc};

use indexmap::IndexSet;
use parking_lot::RwLock;

use crate::{Key, Object, Value};

/// A mutable set of hashable values.
#[derive(Default)]
pub struct Set(RwLock<IndexSet<Key, foldhash::fast::RandomState>>);

impl Set {
    pub fn insert(&self, key: impl Into<Key>) {
        self.0.write().insert(key.into());
    }

    pub fn contains(&self, key: &Key) -> bool {
        self.0.read().contains(key)
    }

    /// Removes a member; tells whether it was there.
    pub fn remove(&self, key: &Key) -> bool {
        self.0.write().shift_remove(key)
    }

    pub fn clear(&self) {
        self.0.write().clear();
    }

    pub fn len(&self) -> usize {
        self.0.read().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the members as they are now.
    pub fn to_vec(&self) -> Vec<Key> {
        self.0.read().iter().cloned().collect()
    }
}

impl FromIterator<Key> for Set {
    fn from_iter<I: IntoIterator<Item = Key>>(keys: I) -> Self {
        Self(RwLock::new(keys.into_iter().collect()))
    }
}

impl From<Set> for Value {
    fn from(set: Set) -> Self {
        Self::Object(Arc::new(set))
    }
}

impl std::fmt::Debug for Set {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.repr())
    }
}

impl Object for Set {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn type_name(&self) -> &str {
        "set"
    }

    fn repr(&self) -> String {
        if self.is_empty() {
            return "set()".into();
        }
        let members: Vec<String> = self.to_vec().iter().map(|key| key.repr()).collect();
        format!("{{{}}}", members.join(", "))
    }

    fn truthy(&self) -> bool {
        !self.is_empty()
    }

    fn equals(&self, other: &Value) -> bool {
        other.as_object::<Self>().is_some_and(|other| {
            self.len() == other.len() && self.to_vec().iter().all(|key| other.contains(key))
        })
    }
}
