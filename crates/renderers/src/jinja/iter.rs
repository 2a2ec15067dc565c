//! Iteration, as Python does it.
//!
//! A list is iterated live (an item appended in the loop is reached), a dict refuses to change its
//! size meanwhile, a generator can be read once only.

use std::{fmt, sync::Arc};

use halite_value::{Dict, List, Object, SmolStr, Value};

use super::{
    error::{Class, Error, type_error},
    eval::Interp,
    objects::*,
};

type Result<T> = std::result::Result<T, Error>;

/// A stream of values made by a filter or a loop condition.
pub(crate) trait Stream: Send {
    fn next(&mut self, interp: &mut Interp<'_>) -> Result<Option<Value>>;
}

pub(crate) enum PyIter {
    Vec(std::vec::IntoIter<Value>),
    List {
        list: List,
        at: usize,
    },
    Tuple {
        items: Arc<[Value]>,
        at: usize,
    },
    Str {
        text: SmolStr,
        at: usize,
    },
    Bytes {
        bytes: Arc<[u8]>,
        at: usize,
    },
    Range {
        range: Range,
        at: usize,
    },
    Dict {
        dict: Dict,
        at: usize,
        len: usize,
        kind: ViewKind,
    },
    /// Another generator, shared with whoever else holds it.
    Shared(Arc<dyn Object>),
    Stream(Box<dyn Stream>),
}

impl fmt::Debug for PyIter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<iterator>")
    }
}

impl PyIter {
    pub(crate) fn empty() -> Self {
        Self::Vec(Vec::new().into_iter())
    }

    /// Whether finding the next item runs code of the template.
    pub(crate) fn calls_back(&self) -> bool {
        matches!(self, Self::Shared(_) | Self::Stream(_))
    }

    fn depth(&self) -> u16 {
        match self {
            Self::Shared(object) => {
                object.as_any().downcast_ref::<Generator>().map_or(0, |generator| generator.depth)
            }
            _ => 0,
        }
    }
}

const MAX_STREAMS: u16 = 100;

impl Interp<'_> {
    /// `iter(value)`.
    pub(crate) fn iter(&mut self, value: &Value) -> Result<PyIter> {
        Ok(match value {
            Value::List(list) => PyIter::List { list: list.clone(), at: 0 },
            Value::Tuple(items) => PyIter::Tuple { items: items.clone(), at: 0 },
            Value::Str(text) => PyIter::Str { text: text.clone(), at: 0 },
            Value::Bytes(bytes) => PyIter::Bytes { bytes: bytes.clone(), at: 0 },
            Value::Dict(dict) => dict_iter(dict, ViewKind::Keys),
            Value::Object(object) => return self.iter_object(object, value),
            other => {
                return Err(type_error(format!("'{}' object is not iterable", other.type_name())));
            }
        })
    }

    fn iter_object(&mut self, object: &Arc<dyn Object>, value: &Value) -> Result<PyIter> {
        let any = object.as_any();
        if let Some(undefined) = any.downcast_ref::<Undefined>() {
            if undefined.strict {
                return Err(self.undefined_error(undefined));
            }
            return Ok(PyIter::empty());
        }
        if let Some(view) = any.downcast_ref::<View>() {
            return Ok(dict_iter(&view.dict, view.kind));
        }
        if let Some(range) = any.downcast_ref::<Range>() {
            return Ok(PyIter::Range { range: *range, at: 0 });
        }
        if any.is::<Generator>() {
            return Ok(PyIter::Shared(object.clone()));
        }
        if let Some(text) = text_of(value) {
            return Ok(PyIter::Str { text: text.clone(), at: 0 });
        }
        if let Some(set) = any.downcast_ref::<Set>() {
            return Ok(PyIter::Vec(set_items(set).into_iter()));
        }
        if let Some(group) = any.downcast_ref::<Group>() {
            return Ok(PyIter::Vec(vec![group.grouper.clone(), group.list.clone()].into_iter()));
        }
        if let Some(lookup) = any.downcast_ref::<HostLookup>() {
            let keys: Vec<Value> = lookup.0.keys().into_iter().map(Value::from).collect();
            return Ok(PyIter::Vec(keys.into_iter()));
        }
        let error = type_error(format!("'{}' object is not iterable", object.type_name()));
        Err(match any.downcast_ref::<BoundMethod>() {
            Some(method) => error.with_note(format!("call it: `{}()`", method.name)),
            None => error,
        })
    }

    /// Returns the next item; `None` at the end.
    pub(crate) fn next(&mut self, iter: &mut PyIter) -> Result<Option<Value>> {
        self.step()?;
        Ok(match iter {
            PyIter::Vec(items) => items.next(),
            PyIter::List { list, at } => {
                let item = list.get(*at);
                *at += 1;
                item
            }
            PyIter::Tuple { items, at } => {
                let item = items.get(*at).cloned();
                *at += 1;
                item
            }
            PyIter::Str { text, at } => {
                let c = text[*at..].chars().next();
                *at += c.map_or(0, char::len_utf8);
                c.map(|c| Value::Str(SmolStr::new(c.encode_utf8(&mut [0; 4]))))
            }
            PyIter::Bytes { bytes, at } => {
                let item = bytes.get(*at).map(|byte| Value::from(*byte));
                *at += 1;
                item
            }
            PyIter::Range { range, at } => {
                let item = range.get(*at).map(Value::Int);
                *at += 1;
                item
            }
            PyIter::Dict { dict, at, len, kind } => {
                let map = dict.read();
                if map.len() != *len {
                    return Err(Error::new(
                        Class::RuntimeError,
                        "dictionary changed size during iteration",
                    ));
                }
                let entry = map.get_index(*at);
                *at += 1;
                entry.map(|(key, value)| match kind {
                    ViewKind::Keys => key.value().clone(),
                    ViewKind::Values => value.clone(),
                    ViewKind::Items => Value::Tuple(Arc::new([key.value().clone(), value.clone()])),
                })
            }
            PyIter::Stream(stream) => stream.next(self)?,
            PyIter::Shared(object) => {
                let object = object.clone();
                let Some(generator) = object.as_any().downcast_ref::<Generator>() else {
                    return Ok(None);
                };
                // Not held while it runs: it may be asked again from inside.
                let Some(mut inner) = generator.state.lock().take() else {
                    return Err(Error::new(Class::ValueError, "generator already executing"));
                };
                let item = self.next(&mut inner);
                // An exhausted or failed generator stays empty.
                let rest = if matches!(item, Ok(Some(_))) { inner } else { PyIter::empty() };
                *generator.state.lock() = Some(rest);
                item?
            }
        })
    }

    /// `list(value)`.
    pub(crate) fn collect(&mut self, value: &Value) -> Result<Vec<Value>> {
        match value {
            Value::List(list) => {
                let items = list.to_vec();
                self.burn(items.len() / 8)?;
                Ok(items)
            }
            Value::Tuple(items) => Ok(items.to_vec()),
            other => {
                let iter = self.iter(other)?;
                self.collect_iter(iter)
            }
        }
    }

    pub(crate) fn collect_iter(&mut self, mut iter: PyIter) -> Result<Vec<Value>> {
        let mut items = Vec::new();
        while let Some(item) = self.next(&mut iter)? {
            items.push(item);
        }
        Ok(items)
    }

    /// Makes a generator of a stream over other iterators.
    pub(crate) fn generator(
        &mut self,
        name: &'static str,
        over: &[&PyIter],
        stream: impl Stream + 'static,
    ) -> Result<Value> {
        let depth = over.iter().map(|iter| iter.depth()).max().unwrap_or(0) + 1;
        if depth > MAX_STREAMS {
            return Err(Error::new(Class::RecursionError, "maximum recursion depth exceeded"));
        }
        let state = parking_lot::Mutex::new(Some(PyIter::Stream(Box::new(stream))));
        Ok(object(Generator { name, depth, state }))
    }

    pub(crate) fn generator_of(&mut self, name: &'static str, items: Vec<Value>) -> Value {
        let state = parking_lot::Mutex::new(Some(PyIter::Vec(items.into_iter())));
        object(Generator { name, depth: 1, state })
    }

    /// `len(value)`, or `None` if it has no length.
    pub(crate) fn length(&mut self, value: &Value) -> Result<Option<usize>> {
        Ok(Some(match value {
            Value::Str(text) => char_count(text),
            Value::Bytes(bytes) => bytes.len(),
            Value::List(list) => list.len(),
            Value::Tuple(items) => items.len(),
            Value::Dict(dict) => dict.len(),
            Value::Object(object) => {
                let any = object.as_any();
                if let Some(undefined) = any.downcast_ref::<Undefined>() {
                    if undefined.strict {
                        return Err(self.undefined_error(undefined));
                    }
                    return Ok(Some(0));
                }
                if let Some(text) = text_of(value) {
                    char_count(text)
                } else if let Some(view) = any.downcast_ref::<View>() {
                    view.dict.len()
                } else if let Some(range) = any.downcast_ref::<Range>() {
                    range.len()
                } else if let Some(set) = any.downcast_ref::<Set>() {
                    set.len()
                } else if any.is::<Group>() {
                    2
                } else if let Some(own) = any.downcast_ref::<Loop>() {
                    return self.loop_length(own).map(|length| usize::try_from(length).ok());
                } else {
                    return Ok(None);
                }
            }
            _ => return Ok(None),
        }))
    }

    pub(crate) fn len(&mut self, value: &Value) -> Result<usize> {
        self.length(value)?.ok_or_else(|| {
            type_error(format!("object of type '{}' has no len()", value.type_name()))
        })
    }
}

pub(crate) fn dict_iter(dict: &Dict, kind: ViewKind) -> PyIter {
    PyIter::Dict { dict: dict.clone(), at: 0, len: dict.len(), kind }
}

/// Counts characters; bytes where that is the same.
pub(crate) fn char_count(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}
