//! `a.b`, `a['b']` and `a[1:2]`.
//!
//! A dot looks for an attribute first and then for an item; brackets the other way round. What is
//! not found is an undefined value, not yet an error. Attributes that Python objects have but the
//! sandbox forbids (`__class__` …) give an undefined that is an error in any use.

use halite_value::{List, SmolStr, Value};

use super::{
    error::{Error, type_error, value_error},
    eval::{Interp, Result},
    iter::char_count,
    methods,
    objects::*,
};

impl Interp<'_> {
    /// `object.name`.
    pub(crate) fn attribute(&mut self, object: &Value, name: &SmolStr) -> Result<Value> {
        if let Some(value) = self.own_attribute(object, name)? {
            return Ok(value);
        }
        let item = match object {
            Value::Dict(dict) => dict.get(name.as_str()),
            Value::Object(_) => object.as_object::<HostLookup>().and_then(|own| own.0.item(name)),
            _ => None,
        };
        Ok(item.unwrap_or_else(|| self.missing(object, Value::Str(name.clone()))))
    }

    fn missing(&self, object: &Value, key: Value) -> Value {
        Undefined::value(self.strict(), Missing::Of(object.clone(), key))
    }

    /// Finds an attribute proper: not an item.
    pub(crate) fn own_attribute(
        &mut self,
        object: &Value,
        name: &SmolStr,
    ) -> Result<Option<Value>> {
        if let Some(undefined) = undefined(object) {
            return Err(self.undefined_error(undefined));
        }
        if name.starts_with('_') && has_private(object, name) {
            return Ok(Some(self.forbidden(object, name)));
        }
        if methods::has(object, name) {
            let bound = BoundMethod { object: object.clone(), name: name.clone() };
            return Ok(Some(super::objects::object(bound)));
        }
        Ok(match object {
            Value::Int(_) | Value::BigInt(_) | Value::Bool(_) => match name.as_str() {
                "real" | "numerator" => Some(self.positive(object)?),
                "imag" => Some(Value::Int(0)),
                "denominator" => Some(Value::Int(1)),
                _ => None,
            },
            Value::Float(float) => match name.as_str() {
                "real" => Some(Value::Float(*float)),
                "imag" => Some(Value::Float(0.0)),
                _ => None,
            },
            Value::Timestamp(time) => Some(match name.as_str() {
                "year" => Value::from(i64::from(time.year())),
                "month" => Value::from(i64::from(time.month())),
                "day" => Value::from(i64::from(time.day())),
                "hour" => Value::from(i64::from(time.hour())),
                "minute" => Value::from(i64::from(time.minute())),
                "second" => Value::from(i64::from(time.second())),
                "microsecond" => Value::from(i64::from(time.subsec_nanosecond() / 1000)),
                "tzinfo" => Value::Null,
                _ => return Ok(None),
            }),
            Value::Object(_) => return self.object_attribute(object, name),
            _ => None,
        })
    }

    fn forbidden(&self, object: &Value, name: &str) -> Value {
        let hint = format!(
            "access to attribute {} of '{}' object is unsafe.",
            halite_value::str_repr(name),
            object.type_name()
        );
        let what = Missing::Hint(hint);
        super::objects::object(Undefined { strict: self.strict(), what, forbidden: true })
    }

    fn object_attribute(&mut self, value: &Value, name: &SmolStr) -> Result<Option<Value>> {
        let Value::Object(object) = value else { return Ok(None) };
        let any = object.as_any();
        if let Some(own) = any.downcast_ref::<Loop>() {
            return self.loop_attribute(own, name);
        }
        if let Some(own) = any.downcast_ref::<Namespace>() {
            return Ok(own.0.get(name.as_str()));
        }
        if let Some(own) = any.downcast_ref::<Module>() {
            return Ok(own.get(name));
        }
        if let Some(own) = any.downcast_ref::<HostLookup>() {
            return Ok(own.0.attribute(name));
        }
        if let Some(own) = any.downcast_ref::<Macro>() {
            let func = &own.template.code.funcs[own.func];
            let params = &func.params;
            return Ok(Some(match name.as_str() {
                "name" => own.name.clone().map_or(Value::Null, Value::Str),
                "arguments" => {
                    Value::tuple(params.names.iter().map(|name| Value::Str(name.clone())))
                }
                "catch_kwargs" => Value::Bool(params.kwargs.is_some()),
                "catch_varargs" => Value::Bool(params.varargs.is_some()),
                "caller" => Value::Bool(params.accesses_caller),
                "explicit_caller" => Value::Bool(params.explicit_caller),
                _ => return Ok(None),
            }));
        }
        if let Some(own) = any.downcast_ref::<Group>() {
            return Ok(match name.as_str() {
                "grouper" => Some(own.grouper.clone()),
                "list" => Some(own.list.clone()),
                _ => None,
            });
        }
        if let Some(own) = any.downcast_ref::<TemplateReference>() {
            return Ok(own.0.block(name, 0).map(|_| {
                let reference =
                    BlockReference { name: name.clone(), context: own.0.clone(), depth: 0 };
                super::objects::object(reference)
            }));
        }
        if let Some(own) = any.downcast_ref::<BlockReference>() {
            return Ok(
                (name == "super").then(|| self.super_of(&own.name, own.depth + 1, &own.context))
            );
        }
        if let Some(own) = any.downcast_ref::<Cycler>() {
            return Ok(match name.as_str() {
                "current" => own.items.get(*own.at.lock()).cloned(),
                "items" => Some(Value::tuple(own.items.clone())),
                "pos" => Some(Value::from(*own.at.lock())),
                _ => None,
            });
        }
        if let Some(own) = any.downcast_ref::<Joiner>() {
            return Ok(match name.as_str() {
                "sep" => Some(own.separator.clone()),
                "used" => Some(Value::Bool(*own.used.lock())),
                _ => None,
            });
        }
        if let Some(own) = any.downcast_ref::<Range>() {
            return Ok(match name.as_str() {
                "start" => Some(Value::Int(own.start)),
                "stop" => Some(Value::Int(own.stop)),
                "step" => Some(Value::Int(own.step)),
                _ => None,
            });
        }
        Ok(None)
    }

    /// `object[key]`.
    pub(crate) fn item(&mut self, object: &Value, key: &Value) -> Result<Value> {
        if let Some(value) = self.own_item(object, key)? {
            return Ok(value);
        }
        if let Some(name) = text_of(key) {
            let name = name.clone();
            if let Some(value) = self.own_attribute(object, &name)? {
                return Ok(value);
            }
            return Ok(self.missing(object, Value::Str(name)));
        }
        Ok(self.missing(object, key.clone()))
    }

    /// Finds an item proper; `None` where Python raises `KeyError`, `IndexError` or `TypeError`.
    pub(crate) fn own_item(&mut self, object: &Value, key: &Value) -> Result<Option<Value>> {
        if let Some(undefined) = undefined(object) {
            return Err(self.undefined_error(undefined));
        }
        match object {
            Value::Dict(dict) => {
                if let Value::Str(text) = key {
                    return Ok(dict.get(text.as_str()));
                }
                match self.key(key.clone()) {
                    Ok(key) => Ok(dict.get(&key)),
                    Err(error) if error.is_attribute_like() => Ok(None),
                    Err(error) => Err(error),
                }
            }
            Value::List(list) => Ok(index_of(key, list.len()).and_then(|at| list.get(at))),
            Value::Tuple(items) => {
                Ok(index_of(key, items.len()).and_then(|at| items.get(at).cloned()))
            }
            Value::Bytes(bytes) => Ok(index_of(key, bytes.len())
                .and_then(|at| bytes.get(at))
                .map(|byte| Value::from(*byte))),
            Value::Str(text) => {
                Ok(index_of(key, char_count(text)).and_then(|at| char_at(text, at)))
            }
            Value::Object(own) => {
                let any = own.as_any();
                if let Some(lookup) = any.downcast_ref::<HostLookup>() {
                    return Ok(text_of(key).and_then(|key| lookup.0.item(key)));
                }
                if let Some(text) = text_of(object) {
                    let found = index_of(key, char_count(text)).and_then(|at| char_at(text, at));
                    return Ok(found.map(|c| markup(c.to_str())));
                }
                if let Some(range) = any.downcast_ref::<Range>() {
                    let found = index_of(key, range.len()).and_then(|at| range.get(at));
                    return Ok(found.map(Value::Int));
                }
                if let Some(group) = any.downcast_ref::<Group>() {
                    return Ok(match index_of(key, 2) {
                        Some(0) => Some(group.grouper.clone()),
                        Some(_) => Some(group.list.clone()),
                        None => None,
                    });
                }
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// `object[start:stop:step]`.
    pub(crate) fn slice(&mut self, object: &Value, parts: &[Value; 3]) -> Result<Value> {
        if let Some(undefined) = undefined(object) {
            return Err(self.undefined_error(undefined));
        }
        for part in parts {
            if let Some(undefined) = undefined(part) {
                return Err(self.undefined_error(undefined));
            }
        }
        let pick = |length: usize| indices(length, parts);
        match object {
            Value::List(list) => {
                let items = list.to_vec();
                let picked = pick(items.len())?;
                self.burn(picked.len())?;
                Ok(Value::List(picked.into_iter().map(|at| items[at].clone()).collect::<List>()))
            }
            Value::Tuple(items) => Ok(Value::Tuple(
                pick(items.len())?.into_iter().map(|at| items[at].clone()).collect(),
            )),
            Value::Bytes(bytes) => {
                let picked: Vec<u8> = pick(bytes.len())?.into_iter().map(|at| bytes[at]).collect();
                Ok(Value::bytes(picked))
            }
            Value::Dict(_) => Err(type_error("unhashable type: 'slice'")),
            other => {
                if let Some(text) = text_of(other) {
                    self.burn(text.len() / 8)?;
                    let picked: String = if text.is_ascii() {
                        let bytes = text.as_bytes();
                        pick(bytes.len())?.into_iter().map(|at| char::from(bytes[at])).collect()
                    } else {
                        let chars: Vec<char> = text.chars().collect();
                        pick(chars.len())?.into_iter().map(|at| chars[at]).collect()
                    };
                    return Ok(if is_markup(other) { markup(picked) } else { Value::from(picked) });
                }
                if let Some(range) = other.as_object::<Range>() {
                    let picked = pick(range.len())?;
                    let step = parts[2].to_int().unwrap_or(1).saturating_mul(range.step);
                    let start = picked.first().and_then(|at| range.get(*at)).unwrap_or(range.start);
                    let stop = start.saturating_add(step.saturating_mul(picked.len() as i64));
                    return Ok(super::objects::object(Range { start, stop, step }));
                }
                if let Some(group) = other.as_object::<Group>() {
                    let items = [group.grouper.clone(), group.list.clone()];
                    return Ok(Value::tuple(pick(2)?.into_iter().map(|at| items[at].clone())));
                }
                let name = other.type_name();
                Err(type_error(format!("'{name}' object is not subscriptable")))
            }
        }
    }
}

/// Turns an index from either end into a position.
pub(crate) fn index_of(key: &Value, length: usize) -> Option<usize> {
    let index = match key {
        Value::Int(int) => *int,
        Value::Bool(flag) => i64::from(*flag),
        _ => return None,
    };
    let index = if index < 0 { index.checked_add(length as i64)? } else { index };
    usize::try_from(index).ok().filter(|index| *index < length)
}

fn char_at(text: &str, at: usize) -> Option<Value> {
    if text.is_ascii() {
        return text.get(at..at + 1).map(Value::str);
    }
    text.chars().nth(at).map(|c| Value::str(c.encode_utf8(&mut [0; 4])))
}

/// Reads one bound of a slice.
pub(crate) fn slice_bound(value: &Value) -> std::result::Result<Option<i64>, Error> {
    match value {
        Value::Null => Ok(None),
        Value::Int(int) => Ok(Some(*int)),
        Value::Bool(flag) => Ok(Some(i64::from(*flag))),
        Value::BigInt(int) => Ok(Some(if **int < 0.into() { i64::MIN + 1 } else { i64::MAX })),
        _ => Err(type_error("slice indices must be integers or None or have an __index__ method")),
    }
}

/// Returns the positions that a slice picks, in order.
fn indices(length: usize, parts: &[Value; 3]) -> std::result::Result<Vec<usize>, Error> {
    let int = slice_bound;
    let step = int(&parts[2])?.unwrap_or(1);
    if step == 0 {
        return Err(value_error("slice step cannot be zero"));
    }
    let length = length as i64;
    let clamp = |value: Option<i64>, default: i64| match value {
        None => default,
        Some(value) => {
            let value = if value < 0 { value.saturating_add(length) } else { value };
            if step > 0 { value.clamp(0, length) } else { value.clamp(-1, length - 1) }
        }
    };
    let (first, last) = if step > 0 { (0, length) } else { (length - 1, -1) };
    let (start, stop) = (clamp(int(&parts[0])?, first), clamp(int(&parts[1])?, last));
    let mut picked = Vec::new();
    let mut at = start;
    while (step > 0 && at < stop) || (step < 0 && at > stop) {
        picked.push(usize::try_from(at).unwrap_or(0));
        let Some(next) = at.checked_add(step) else { break };
        at = next;
    }
    Ok(picked)
}

/// Picks a slice of items, as a list.
pub(crate) fn slice_list(items: &[Value], parts: &[Value; 3]) -> Result<Value> {
    let picked = indices(items.len(), parts)?;
    Ok(Value::List(picked.into_iter().map(|at| items[at].clone()).collect::<List>()))
}

/// Tells whether the Python object has this attribute, whose name starts with an underscore.
fn has_private(value: &Value, name: &str) -> bool {
    const ANY: [&str; 24] = [
        "__class__",
        "__doc__",
        "__init__",
        "__new__",
        "__repr__",
        "__str__",
        "__eq__",
        "__ne__",
        "__lt__",
        "__le__",
        "__gt__",
        "__ge__",
        "__hash__",
        "__getattribute__",
        "__setattr__",
        "__delattr__",
        "__dir__",
        "__format__",
        "__reduce__",
        "__reduce_ex__",
        "__sizeof__",
        "__subclasshook__",
        "__init_subclass__",
        "__getstate__",
    ];
    const CONTAINER: [&str; 4] = ["__len__", "__iter__", "__contains__", "__getitem__"];
    const SEQUENCE: [&str; 4] = ["__add__", "__mul__", "__rmul__", "__getnewargs__"];
    const MUTABLE: [&str; 7] = [
        "__setitem__",
        "__delitem__",
        "__iadd__",
        "__imul__",
        "__reversed__",
        "__class_getitem__",
        "__ior__",
    ];
    const NUMBER: [&str; 40] = [
        "__abs__",
        "__add__",
        "__and__",
        "__bool__",
        "__ceil__",
        "__divmod__",
        "__float__",
        "__floor__",
        "__floordiv__",
        "__index__",
        "__int__",
        "__invert__",
        "__lshift__",
        "__mod__",
        "__mul__",
        "__neg__",
        "__or__",
        "__pos__",
        "__pow__",
        "__radd__",
        "__rand__",
        "__rdivmod__",
        "__rfloordiv__",
        "__rlshift__",
        "__rmod__",
        "__rmul__",
        "__ror__",
        "__round__",
        "__rpow__",
        "__rrshift__",
        "__rshift__",
        "__rsub__",
        "__rtruediv__",
        "__rxor__",
        "__sub__",
        "__truediv__",
        "__trunc__",
        "__xor__",
        "__getnewargs__",
        "__getformat__",
    ];
    const FUNCTION: [&str; 16] = [
        "__globals__",
        "__code__",
        "__closure__",
        "__defaults__",
        "__kwdefaults__",
        "__name__",
        "__qualname__",
        "__module__",
        "__dict__",
        "__call__",
        "__get__",
        "__annotations__",
        "__builtins__",
        "__self__",
        "__func__",
        "__text_signature__",
    ];
    const INSTANCE: [&str; 3] = ["__dict__", "__module__", "__weakref__"];
    if ANY.contains(&name) {
        return true;
    }
    match value {
        Value::Str(_) | Value::Bytes(_) => {
            CONTAINER.contains(&name)
                || SEQUENCE.contains(&name)
                || matches!(name, "__mod__" | "__rmod__")
        }
        Value::Tuple(_) => {
            CONTAINER.contains(&name) || SEQUENCE.contains(&name) || name == "__class_getitem__"
        }
        Value::List(_) => {
            CONTAINER.contains(&name)
                || SEQUENCE[..3].contains(&name)
                || MUTABLE[..6].contains(&name)
        }
        Value::Dict(_) => {
            CONTAINER.contains(&name)
                || matches!(
                    name,
                    "__setitem__" | "__delitem__" | "__reversed__" | "__class_getitem__"
                )
                || matches!(name, "__or__" | "__ror__" | "__ior__")
        }
        Value::Int(_) | Value::BigInt(_) | Value::Bool(_) | Value::Float(_) => {
            NUMBER.contains(&name)
        }
        Value::Null => name == "__bool__",
        Value::Object(object) => match object.type_name() {
            "function" | "builtin_function_or_method" | "type" => FUNCTION.contains(&name),
            "Macro" => {
                INSTANCE.contains(&name)
                    || matches!(name, "_func" | "_environment" | "_argument_count" | "__call__")
                    || matches!(name, "_default_autoescape" | "_invoke")
            }
            "Markup" => CONTAINER.contains(&name) || SEQUENCE.contains(&name) || name == "__html__",
            "TemplateModule" => {
                INSTANCE.contains(&name) || matches!(name, "_body_stream" | "__name__" | "__html__")
            }
            "Namespace" => value.as_object::<Namespace>().is_some_and(|own| own.0.contains(name)),
            "LoopContext" => {
                INSTANCE.contains(&name)
                    || matches!(
                        name,
                        "_iterable" | "_iterator" | "_undefined" | "_recurse" | "_length"
                    )
                    || matches!(name, "__call__" | "__iter__" | "__next__" | "__len__")
            }
            "generator" => {
                matches!(name, "__iter__" | "__next__" | "__name__" | "__qualname__" | "__del__")
            }
            _ => INSTANCE.contains(&name) || CONTAINER.contains(&name),
        },
        _ => false,
    }
}
