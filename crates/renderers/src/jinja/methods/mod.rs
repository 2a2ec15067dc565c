//! Methods of Python's built-in types, as templates call them.

/// The methods of a type: the question whether it has one, and the list for hints. The question is
/// a `match`, because constants compare without a call.
macro_rules! method_names {
    ($($name:literal)+) => {
        pub(crate) const METHODS: &[&str] = &[$($name),+];

        /// Tells whether the type has this method.
        pub(crate) fn is_method(name: &str) -> bool {
            matches!(name, $($name)|+)
        }
    };
}

mod bytes;
mod dict;
mod list;
mod number;
mod other;
pub(crate) mod str;

use halite_value::{Value, suggest};

use super::{
    call::Args,
    error::{Error, type_error},
    eval::{Interp, Result},
    objects::*,
};

/// Tells whether the object's type has this method.
pub(crate) fn has(object: &Value, name: &str) -> bool {
    match object {
        Value::Str(_) => str::is_method(name),
        Value::List(_) => list::is_method(name),
        Value::Dict(_) => dict::is_method(name),
        Value::Tuple(_) => matches!(name, "count" | "index"),
        Value::Int(_) | Value::BigInt(_) | Value::Bool(_) => number::INT.contains(&name),
        Value::Float(_) => number::FLOAT.contains(&name),
        Value::Bytes(_) => bytes::is_method(name),
        Value::Timestamp(_) => other::TIME.contains(&name),
        Value::Object(_) => other::has(object, name),
        Value::Null => false,
    }
}

/// Returns the methods of the object's type that a misspelt word may have meant: those one slip
/// away. What is further off is more likely a key.
pub(crate) fn like(object: &Value, word: &str) -> Vec<&'static str> {
    let methods = match object {
        Value::Str(_) => str::METHODS,
        Value::List(_) => list::METHODS,
        Value::Dict(_) => dict::METHODS,
        _ => &[],
    };
    methods.iter().copied().filter(|method| suggest::is_one_slip(word, method)).collect()
}

pub(crate) fn call(
    interp: &mut Interp<'_>,
    object: &Value,
    name: &str,
    args: Args,
) -> Result<Value> {
    match object {
        Value::Str(text) => str::call(interp, text, name, args),
        Value::List(list) => list::call(interp, list, name, args),
        Value::Dict(dict) => dict::call(interp, dict, name, args),
        Value::Tuple(items) => list::of_tuple(interp, items, name, args),
        Value::Int(_) | Value::BigInt(_) | Value::Bool(_) | Value::Float(_) => {
            number::call(interp, object, name, args)
        }
        Value::Bytes(bytes) => bytes::call(interp, bytes, name, args),
        Value::Timestamp(time) => other::of_time(time, name, args),
        Value::Object(_) => other::call(interp, object, name, args),
        Value::Null => Err(type_error("'NoneType' object is not callable")),
    }
}

/// Positional arguments of a method written in C: Python's messages for them differ from those of
/// functions written in Python.
pub(crate) struct Pos {
    name: &'static str,
    of: &'static str,
    values: std::vec::IntoIter<Value>,
    pub(crate) given: usize,
}

impl Pos {
    /// Takes `min` to `max` arguments and no keywords.
    pub(crate) fn new(
        of: &'static str,
        name: &'static str,
        args: Args,
        min: usize,
        max: usize,
    ) -> Result<Self> {
        if !args.keyword.is_empty() {
            return Err(type_error(format!("{of}.{name}() takes no keyword arguments")));
        }
        let given = args.positional.len();
        if given < min || given > max {
            return Err(type_error(count_message(of, name, given, min, max)));
        }
        Ok(Self { name, of, values: args.positional.into_iter(), given })
    }

    /// The arguments of `find` and its like: what, from where, up to where.
    pub(crate) fn find(name: &'static str, args: Args) -> Result<Self> {
        let given = args.positional.len();
        if args.keyword.is_empty() && !(1..=3).contains(&given) {
            let limit = if given == 0 { "least 1 argument" } else { "most 3 arguments" };
            return Err(type_error(format!("{name}() takes at {limit} ({given} given)")));
        }
        Self::new("str", name, args, 1, 3)
    }

    pub(crate) fn next(&mut self) -> Option<Value> {
        self.values.next()
    }

    pub(crate) fn take(&mut self) -> Value {
        self.values.next().unwrap_or_default()
    }

    /// Takes an integer argument; `None` if it is absent or None.
    pub(crate) fn int(&mut self) -> Result<Option<i64>> {
        match self.next() {
            None | Some(Value::Null) => Ok(None),
            Some(value) => index(&value).map(Some),
        }
    }

    /// Takes the bound of a slice; `None` if it is absent or None.
    pub(crate) fn bound(&mut self) -> Result<Option<i64>> {
        super::attrs::slice_bound(&self.take())
    }

    pub(crate) fn text(
        &mut self,
        message: impl FnOnce(&str) -> String,
    ) -> Result<halite_value::SmolStr> {
        let value = self.take();
        let _ = (self.name, self.of);
        text_of(&value).cloned().ok_or_else(|| type_error(message(&value.type_name())))
    }
}

fn count_message(of: &str, name: &str, given: usize, min: usize, max: usize) -> String {
    match (min, max) {
        (0, 0) => format!("{of}.{name}() takes no arguments ({given} given)"),
        (1, 1) => format!("{of}.{name}() takes exactly one argument ({given} given)"),
        _ if min == max => {
            let noun = if min == 1 { "argument" } else { "arguments" };
            format!("{name} expected {min} {noun}, got {given}")
        }
        _ if given < min => {
            let noun = if min == 1 { "argument" } else { "arguments" };
            format!("{name} expected at least {min} {noun}, got {given}")
        }
        _ => {
            let noun = if max == 1 { "argument" } else { "arguments" };
            format!("{name} expected at most {max} {noun}, got {given}")
        }
    }
}

/// An argument that must be an integer.
pub(crate) fn index(value: &Value) -> Result<i64> {
    match value {
        Value::Int(int) => Ok(*int),
        Value::Bool(flag) => Ok(i64::from(*flag)),
        Value::BigInt(_) => Err(Error::new(
            super::error::Class::OverflowError,
            "Python int too large to convert to C ssize_t",
        )),
        other => {
            let name = other.type_name();
            Err(type_error(format!("'{name}' object cannot be interpreted as an integer")))
        }
    }
}

pub(crate) use dict::update as update_dict;
