//! The one data type of Halite.
//!
//! YAML, JSON, msgpack, Jinja, the state compiler, outputters and the Python bridge all use
//! [`Value`], so that data never changes its nature on the way through. It behaves as the Python
//! object of the same kind would: `1 == 1.0 == True`, dicts keep their order, lists and dicts are
//! shared and mutable (a clone is another handle on the same container, as a Python name is).
//!
//! Surprising on first sight:
//! - `clone()` never copies a container; [`Value::deep_copy`] does.
//! - containers hand out values, not references: they are locked only for the moment of a call,
//!   so that no callback ever runs under a lock.
//! - a container that came from a source file remembers where each of its items stood
//!   ([`Dict::place_of`], [`List::place_of`]), for error messages.
//!
//! Absent on purpose: I/O, and any knowledge of Salt's files.

mod copy;
mod dict;
pub mod json;
mod list;
pub mod lookup;
mod map;
pub mod merge;
pub mod msgpack;
mod object;
mod place;
mod py;
pub mod set;
pub mod suggest;
pub mod yaml;

use std::sync::Arc;

pub use dict::Dict;
pub use jiff::civil::DateTime;
pub use list::List;
pub use map::Map;
pub use num_bigint::BigInt;
pub use object::Object;
pub use place::Place;
pub use py::{Key, Unhashable, float_repr, less, sorted, str_repr};
pub use smol_str::SmolStr;

/// Data, with Python's semantics.
// The layout is the plain one, a tag and what it tells beside it: left to itself the compiler puts the
// tag among the bytes of a short text, and every move of a value then goes through overlapping stores
// that the processor has to wait for (templates ran a third slower). The price is 8 bytes a value.
#[derive(Clone, Default)]
#[repr(C, u8)]
pub enum Value {
    /// Python's `None`.
    #[default]
    Null,
    Bool(bool),
    Int(i64),
    /// An integer that does not fit [`Value::Int`]; made by [`Value::from_bigint`] only.
    BigInt(Arc<BigInt>),
    Float(f64),
    Str(SmolStr),
    Bytes(Arc<[u8]>),
    List(List),
    /// Immutable, hashable; templates make them, codecs write them as lists.
    Tuple(Arc<[Value]>),
    Dict(Dict),
    /// A naive date and time, as Python's `datetime` without a zone.
    Timestamp(DateTime),
    /// Something that only exists while a program runs: a function, a macro, an undefined.
    Object(Arc<dyn Object>),
}

impl Value {
    /// Returns a string value.
    pub fn str(text: impl AsRef<str>) -> Self {
        Self::Str(SmolStr::new(text))
    }

    /// Returns a byte-string value.
    pub fn bytes(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self::Bytes(bytes.into())
    }

    /// Returns a new list.
    pub fn list<T: Into<Value>>(items: impl IntoIterator<Item = T>) -> Self {
        Self::List(items.into_iter().map(Into::into).collect())
    }

    /// Returns a tuple.
    pub fn tuple<T: Into<Value>>(items: impl IntoIterator<Item = T>) -> Self {
        Self::Tuple(items.into_iter().map(Into::into).collect())
    }

    /// Returns an empty dict.
    pub fn dict() -> Self {
        Self::Dict(Dict::new())
    }

    /// Returns the integer in its smallest form: [`Value::Int`] whenever it fits.
    pub fn from_bigint(int: BigInt) -> Self {
        match i64::try_from(&int) {
            Ok(small) => Self::Int(small),
            Err(_) => Self::BigInt(Arc::new(int)),
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Returns the text of a string; `None` for anything else.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Str(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the integer of an `Int`; not of a bool, not of a float.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(int) => Some(*int),
            _ => None,
        }
    }

    /// Returns a number as a float: int, float or bool, as Python's arithmetic sees them.
    pub fn as_float(&self) -> Option<f64> {
        match self {
            Self::Int(int) => Some(*int as f64),
            Self::Float(float) => Some(*float),
            Self::Bool(flag) => Some(f64::from(u8::from(*flag))),
            Self::BigInt(int) => num_traits::ToPrimitive::to_f64(&**int),
            _ => None,
        }
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(flag) => Some(*flag),
            _ => None,
        }
    }

    pub fn as_list(&self) -> Option<&List> {
        match self {
            Self::List(list) => Some(list),
            _ => None,
        }
    }

    pub fn as_dict(&self) -> Option<&Dict> {
        match self {
            Self::Dict(dict) => Some(dict),
            _ => None,
        }
    }

    /// Returns bytes or the UTF-8 bytes of text. Wire fields need both: a genuine peer turns bytes
    /// that happen to be valid UTF-8 into text.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Str(text) => Some(text.as_bytes()),
            _ => None,
        }
    }

    pub fn as_object<T: Object>(&self) -> Option<&T> {
        match self {
            Self::Object(object) => object.as_any().downcast_ref(),
            _ => None,
        }
    }

    /// Returns the items of a list or tuple, as a snapshot.
    pub fn items_of_sequence(&self) -> Option<Vec<Value>> {
        match self {
            Self::List(list) => Some(list.to_vec()),
            Self::Tuple(items) => Some(items.to_vec()),
            _ => None,
        }
    }

    /// Returns the value under a text key of a dict; `None` if absent or if this is no dict.
    pub fn get(&self, key: &str) -> Option<Value> {
        self.as_dict().and_then(|dict| dict.get(key))
    }

    /// Returns the text under a key of a dict, when it is text.
    pub fn get_str(&self, key: &str) -> Option<SmolStr> {
        match self.get(key) {
            Some(Self::Str(text)) => Some(text),
            _ => None,
        }
    }

    /// Returns a copy that shares no container with this one. Objects are shared still.
    pub fn deep_copy(&self) -> Self {
        copy::deep_copy(self)
    }

    /// Tells whether both are handles on the same object, as Python's `is`.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Str(a), Self::Str(b)) => a == b,
            (Self::List(a), Self::List(b)) => a.is_same(b),
            (Self::Dict(a), Self::Dict(b)) => a.is_same(b),
            (Self::Tuple(a), Self::Tuple(b)) => Arc::ptr_eq(a, b),
            (Self::Bytes(a), Self::Bytes(b)) => Arc::ptr_eq(a, b),
            (Self::Object(a), Self::Object(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

macro_rules! from {
    ($($type:ty => |$name:ident| $make:expr;)*) => {
        $(impl From<$type> for Value {
            fn from($name: $type) -> Self { $make }
        })*
    };
}

from! {
    bool => |flag| Self::Bool(flag);
    i64 => |int| Self::Int(int);
    i32 => |int| Self::Int(int.into());
    u32 => |int| Self::Int(int.into());
    u16 => |int| Self::Int(int.into());
    u8 => |int| Self::Int(int.into());
    u64 => |int| i64::try_from(int).map_or_else(|_| Self::from_bigint(int.into()), Self::Int);
    usize => |int| Self::from(int as u64);
    f64 => |float| Self::Float(float);
    &str => |text| Self::str(text);
    String => |text| Self::Str(SmolStr::from(text));
    &String => |text| Self::str(text);
    SmolStr => |text| Self::Str(text);
    &SmolStr => |text| Self::Str(text.clone());
    Vec<Value> => |items| Self::List(List::from(items));
    List => |list| Self::List(list);
    Dict => |dict| Self::Dict(dict);
    &Dict => |dict| Self::Dict(dict.clone());
    DateTime => |time| Self::Timestamp(time);
    BigInt => |int| Self::from_bigint(int);
    &Value => |value| value.clone();
    Key => |key| key.into_value();
    () => |_unit| Self::Null;
}

impl From<Vec<String>> for Value {
    fn from(items: Vec<String>) -> Self {
        Self::list(items)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(option: Option<T>) -> Self {
        option.map_or(Self::Null, Into::into)
    }
}

/// Builds a dict value: `dict! { "a" => 1, "b" => list![1, 2] }`.
#[macro_export]
macro_rules! dict {
    ($($key:expr => $value:expr),* $(,)?) => {
        $crate::Value::Dict($crate::entries! { $($key => $value),* })
    };
}

/// As [`dict!`], for a [`Dict`] itself.
#[macro_export]
macro_rules! entries {
    ($($key:expr => $value:expr),* $(,)?) => {{
        let dict = $crate::Dict::with_capacity(0 $(+ { let _ = stringify!($key); 1 })*);
        $(dict.insert($key, $value);)*
        dict
    }};
}

/// Builds a list value: `list![1, "two", 3.0]`.
#[macro_export]
macro_rules! list {
    ($($item:expr),* $(,)?) => {
        $crate::Value::List($crate::List::from(vec![$($crate::Value::from($item)),*]))
    };
}
