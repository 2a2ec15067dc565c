//! A shared, mutable list: Python's `list`.

use std::sync::Arc;

use once_cell::race::OnceBox;
use parking_lot::{
    RecursiveRwLock as RwLock, RecursiveRwLockReadGuard as RwLockReadGuard,
    RecursiveRwLockWriteGuard as RwLockWriteGuard,
};

use crate::{Place, Value};

/// A handle on a list. Clones share the items.
#[derive(Clone, Default)]
pub struct List(Arc<Inner>);

#[derive(Default)]
struct Inner {
    items: RwLock<Vec<Value>>,
    places: OnceBox<Vec<Place>>,
}

impl List {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn len(&self) -> usize {
        self.read().len()
    }

    pub fn is_empty(&self) -> bool {
        self.read().is_empty()
    }

    pub fn get(&self, index: usize) -> Option<Value> {
        self.read().get(index).cloned()
    }

    pub fn push(&self, item: impl Into<Value>) {
        self.write().push(item.into());
    }

    pub fn extend(&self, items: impl IntoIterator<Item = Value>) {
        // Collected first: the source may be this very list.
        let items: Vec<_> = items.into_iter().collect();
        self.write().extend(items);
    }

    pub fn contains(&self, item: &Value) -> bool {
        self.read().iter().any(|own| own == item)
    }

    /// Returns the items as they are now.
    pub fn to_vec(&self) -> Vec<Value> {
        self.read().clone()
    }

    /// Locks the items for reading. Hold it for a moment only, and run no foreign code meanwhile.
    pub fn read(&self) -> RwLockReadGuard<'_, Vec<Value>> {
        // Recursive: comparing or printing a list that contains itself must not wait for a writer
        // that waits for us.
        self.0.items.read()
    }

    /// Locks the items for writing; the same rule as for [`List::read`].
    pub fn write(&self) -> RwLockWriteGuard<'_, Vec<Value>> {
        self.0.items.write()
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

    /// Returns a copy that shares no container with this one, as Python's `copy.deepcopy`.
    pub fn deep_copy(&self) -> Self {
        match Value::List(self.clone()).deep_copy() {
            Value::List(copy) => copy,
            _ => Self::new(),
        }
    }

    /// Takes over where the items of another list stood.
    pub(crate) fn copy_places(&self, from: &Self) {
        if let Some(places) = from.0.places.get() {
            self.set_places(places.clone());
        }
    }

    /// Remembers where the items stood, in their order; only the first call counts.
    pub fn set_places(&self, places: Vec<Place>) {
        let _ = self.0.places.set(Box::new(places));
    }

    /// Returns where the item stood in its source.
    pub fn place_of(&self, index: usize) -> Option<&Place> {
        self.0.places.get()?.get(index)
    }
}

impl From<Vec<Value>> for List {
    fn from(items: Vec<Value>) -> Self {
        Self(Arc::new(Inner { items: RwLock::new(items), places: OnceBox::new() }))
    }
}

impl<T: Into<Value>> FromIterator<T> for List {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        items.into_iter().map(Into::into).collect::<Vec<Value>>().into()
    }
}

/// Iterates over the items as they were when the loop began.
impl IntoIterator for &List {
    type Item = Value;
    type IntoIter = std::vec::IntoIter<Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.to_vec().into_iter()
    }
}

/// Containers nested very deeply (a template can build them in a loop) are taken apart in a loop:
/// the compiler's recursive drop would exhaust the stack.
impl Drop for Inner {
    fn drop(&mut self) {
        drop_flat(std::mem::take(self.items.get_mut()));
    }
}

/// Drops values without recursion, as far as this is their last handle.
pub(crate) fn drop_flat(mut pending: Vec<Value>) {
    if !pending.iter().any(|item| matches!(item, Value::List(_) | Value::Dict(_))) {
        return;
    }
    while let Some(value) = pending.pop() {
        match value {
            Value::List(mut list) => {
                if let Some(inner) = Arc::get_mut(&mut list.0) {
                    pending.append(inner.items.get_mut());
                }
            }
            Value::Dict(mut dict) => dict.take_values_if_last(&mut pending),
            _ => {}
        }
    }
}
