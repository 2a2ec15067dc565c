//! Python's operators.
//!
//! Every result that could be large is measured before it is made: a template of ten characters can
//! ask for ten gigabytes.

use std::{cmp::Ordering, sync::Arc};

use halite_value::{BigInt, Key, List, SmolStr, Value};
use num_traits::{Signed, ToPrimitive, Zero};

use super::{
    ast::{Cmp, Op},
    error::{Class, Error, type_error},
    eval::Interp,
    filters::text::escape,
    objects::*,
};

type Result<T> = std::result::Result<T, Error>;

/// Integers grow up to this many bits. Python has no such limit, and nobody needs it.
const MAX_BITS: u64 = 1 << 17;
/// Python refuses to print longer ones.
const MAX_DIGITS: usize = 4300;
const MAX_TUPLES: usize = 200;

impl Interp<'_> {
    pub(crate) fn undefined_error(&self, undefined: &Undefined) -> Error {
        let error = Error::new(undefined.class(), undefined.message());
        self.explain(error, undefined)
    }

    /// Notes that an undefined value is behind an error, for hints.
    pub(crate) fn blame(&self, error: Error, value: &Value) -> Error {
        match undefined(value) {
            Some(undefined) => self.explain(error, undefined),
            None => error,
        }
    }

    pub(crate) fn truthy(&mut self, value: &Value) -> Result<bool> {
        if let Value::Object(_) = value {
            if let Some(undefined) = undefined(value) {
                if undefined.strict {
                    return Err(self.undefined_error(undefined));
                }
                return Ok(false);
            }
            if let Some(own) = value.as_object::<Loop>() {
                return Ok(self.loop_length(own)? > 0);
            }
        }
        Ok(value.truthy())
    }

    /// `str(value)`.
    pub(crate) fn str_of(&mut self, value: &Value) -> Result<SmolStr> {
        Ok(match value {
            Value::Str(text) => text.clone(),
            Value::Int(int) => SmolStr::new(itoa::Buffer::new().format(*int)),
            Value::BigInt(int) => big_str(int)?.into(),
            Value::Object(object) => {
                if let Some(undefined) = undefined(value) {
                    if undefined.strict {
                        return Err(self.undefined_error(undefined));
                    }
                    return Ok(SmolStr::default());
                }
                match text_of(value) {
                    Some(text) => text.clone(),
                    None => object.str().into(),
                }
            }
            Value::Dict(_) | Value::List(_) | Value::Tuple(_) => {
                let text = value.repr_by_kind();
                self.burn(text.len() / 16)?;
                text.into()
            }
            other => {
                let text = other.to_str();
                self.burn(text.len() / 16)?;
                text
            }
        })
    }

    pub(crate) fn key(&mut self, value: Value) -> Result<Key> {
        let value = match &value {
            Value::Object(object) => {
                if let Some(undefined) = undefined(&value)
                    && undefined.strict
                {
                    return Err(self.undefined_error(undefined));
                }
                if object.as_any().is::<Set>() || object.as_any().is::<Namespace>() {
                    let name = object.type_name();
                    return Err(type_error(format!("unhashable type: '{name}'")));
                }
                match text_of(&value) {
                    Some(text) => Value::Str(text.clone()),
                    None => value,
                }
            }
            _ => value,
        };
        Key::try_from(value).map_err(|error| type_error(error.to_string()))
    }

    // ---- comparison

    pub(crate) fn eq(&mut self, a: &Value, b: &Value) -> Result<bool> {
        self.eq_deep(a, b, 0)
    }

    fn eq_deep(&mut self, a: &Value, b: &Value, depth: usize) -> Result<bool> {
        if depth > 200 {
            return Err(recursion("in comparison"));
        }
        Ok(match (a, b) {
            (Value::List(a), Value::List(b)) => {
                if a.is_same(b) {
                    return Ok(true);
                }
                let (a, b) = (a.read(), b.read());
                self.eq_items(&a, &b, depth)?
            }
            (Value::Tuple(a), Value::Tuple(b)) => self.eq_items(a, b, depth)?,
            (Value::Dict(a), Value::Dict(b)) => {
                if a.is_same(b) {
                    return Ok(true);
                }
                let (a, b) = (a.read(), b.read());
                self.burn(a.len())?;
                if a.len() != b.len() {
                    return Ok(false);
                }
                for (key, value) in a.iter() {
                    match b.get(key) {
                        Some(other) if self.same_or_eq(value, other, depth)? => {}
                        _ => return Ok(false),
                    }
                }
                true
            }
            (Value::Object(_), _) | (_, Value::Object(_)) => {
                for side in [a, b] {
                    if let Some(undefined) = undefined(side)
                        && undefined.strict
                    {
                        return Err(self.undefined_error(undefined));
                    }
                }
                a == b
            }
            _ => a == b,
        })
    }

    fn same_or_eq(&mut self, a: &Value, b: &Value, depth: usize) -> Result<bool> {
        Ok((matches!(a, Value::Object(_)) && a.is_same(b)) || self.eq_deep(a, b, depth + 1)?)
    }

    fn eq_items(&mut self, a: &[Value], b: &[Value], depth: usize) -> Result<bool> {
        if a.len() != b.len() {
            return Ok(false);
        }
        self.burn(a.len())?;
        for (a, b) in a.iter().zip(b) {
            if !self.same_or_eq(a, b, depth)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(crate) fn compare(&mut self, op: Cmp, a: &Value, b: &Value) -> Result<bool> {
        match op {
            Cmp::Eq => self.eq(a, b),
            Cmp::Ne => Ok(!self.eq(a, b)?),
            Cmp::In => self.contains(b, a),
            Cmp::NotIn => Ok(!self.contains(b, a)?),
            _ => self.order(op, a, b, 0),
        }
    }

    /// `<`, `<=`, `>`, `>=`.
    fn order(&mut self, op: Cmp, a: &Value, b: &Value, depth: usize) -> Result<bool> {
        if depth > 200 {
            return Err(recursion("in comparison"));
        }
        if let (Value::Int(a), Value::Int(b)) = (a, b) {
            return Ok(decide(op, a.cmp(b)));
        }
        for side in [a, b] {
            if let Some(undefined) = undefined(side) {
                return Err(self.undefined_error(undefined));
            }
        }
        if let (Some(a), Some(b)) = (text_of(a), text_of(b)) {
            return Ok(decide(op, a.as_str().cmp(b.as_str())));
        }
        match (a, b) {
            (Value::List(a), Value::List(b)) => {
                return self.order_items(op, &a.to_vec(), &b.to_vec(), depth);
            }
            (Value::Tuple(a), Value::Tuple(b)) => return self.order_items(op, a, b, depth),
            _ => {}
        }
        if let (Some(a), Some(b)) = (set_like(a), set_like(b)) {
            return self.order_sets(op, &a, &b);
        }
        match a.compare(b) {
            Some(ordering) => Ok(decide(op, ordering)),
            // Only NaN compares with nothing.
            None if a.as_float().is_some() && b.as_float().is_some() => Ok(false),
            None => {
                let sign = match op {
                    Cmp::Lt => "<",
                    Cmp::Le => "<=",
                    Cmp::Gt => ">",
                    _ => ">=",
                };
                let (a, b) = (a.type_name(), b.type_name());
                Err(type_error(format!(
                    "'{sign}' not supported between instances of '{a}' and '{b}'"
                )))
            }
        }
    }

    fn order_items(&mut self, op: Cmp, a: &[Value], b: &[Value], depth: usize) -> Result<bool> {
        for (a, b) in a.iter().zip(b) {
            self.step()?;
            if !self.same_or_eq(a, b, depth)? {
                return self.order(op, a, b, depth + 1);
            }
        }
        Ok(decide(op, a.len().cmp(&b.len())))
    }

    fn order_sets(&mut self, op: Cmp, a: &[Value], b: &[Value]) -> Result<bool> {
        let within = |a: &[Value], b: &[Value]| a.iter().all(|item| b.contains(item));
        self.burn(a.len() * b.len())?;
        Ok(match op {
            Cmp::Lt => a.len() < b.len() && within(a, b),
            Cmp::Le => within(a, b),
            Cmp::Gt => b.len() < a.len() && within(b, a),
            _ => within(b, a),
        })
    }

    /// `a < b`, as sorting asks it.
    pub(crate) fn less(&mut self, a: &Value, b: &Value) -> Result<bool> {
        self.order(Cmp::Lt, a, b, 0)
    }

    /// `item in container`.
    pub(crate) fn contains(&mut self, container: &Value, item: &Value) -> Result<bool> {
        match container {
            Value::List(list) => {
                // One by one: comparing could run long.
                let mut at = 0;
                while let Some(own) = list.get(at) {
                    if self.is_or_eq(&own, item)? {
                        return Ok(true);
                    }
                    at += 1;
                }
                Ok(false)
            }
            Value::Tuple(items) => {
                for own in items.iter() {
                    if self.is_or_eq(own, item)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Value::Dict(dict) => {
                if let Value::Str(text) = item {
                    return Ok(dict.contains(text.as_str()));
                }
                Ok(dict.contains(&self.key(item.clone())?))
            }
            Value::Bytes(bytes) => match item {
                Value::Bytes(part) => {
                    Ok(part.is_empty() || bytes.windows(part.len()).any(|window| *window == **part))
                }
                Value::Int(int) => match u8::try_from(*int) {
                    Ok(byte) => Ok(bytes.contains(&byte)),
                    Err(_) => Err(Error::new(Class::ValueError, "byte must be in range(0, 256)")),
                },
                other => {
                    let name = other.type_name();
                    Err(type_error(format!("a bytes-like object is required, not '{name}'")))
                }
            },
            Value::Str(_) | Value::Object(_) => self.contains_object(container, item),
            other => {
                Err(type_error(format!("argument of type '{}' is not iterable", other.type_name())))
            }
        }
    }

    fn is_or_eq(&mut self, own: &Value, item: &Value) -> Result<bool> {
        self.step()?;
        Ok((matches!(own, Value::Object(_)) && own.is_same(item)) || self.eq(own, item)?)
    }

    fn contains_object(&mut self, container: &Value, item: &Value) -> Result<bool> {
        if let Some(text) = text_of(container) {
            let Some(part) = text_of(item) else {
                let name = item.type_name();
                return Err(type_error(format!(
                    "'in <string>' requires string as left operand, not {name}"
                )));
            };
            self.burn(text.len() / 64)?;
            return Ok(text.contains(part.as_str()));
        }
        if let Some(lookup) = container.as_object::<HostLookup>() {
            return Ok(text_of(item).is_some_and(|key| lookup.0.contains(key)));
        }
        if let Some(view) = container.as_object::<View>()
            && view.kind == ViewKind::Keys
        {
            let key = self.key(item.clone())?;
            return Ok(view.dict.contains(&key));
        }
        if let Some(range) = container.as_object::<Range>()
            && let Some(int) = item.to_int()
            && Value::Int(int) == *item
        {
            let offset = int.wrapping_sub(range.start);
            return Ok(offset % range.step == 0
                && usize::try_from(offset / range.step).is_ok_and(|index| index < range.len()));
        }
        if let Some(set) = container.as_object::<Set>() {
            let key = self.key(item.clone())?;
            return Ok(set.contains(&key));
        }
        let mut iter = match self.iter(container) {
            Ok(iter) => iter,
            Err(error) if *error.class() == Class::TypeError => {
                let name = container.type_name();
                return Err(type_error(format!("argument of type '{name}' is not iterable")));
            }
            Err(error) => return Err(error),
        };
        while let Some(own) = self.next(&mut iter)? {
            if self.is_or_eq(&own, item)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    // ---- arithmetic

    pub(crate) fn binary(&mut self, op: Op, a: &Value, b: &Value) -> Result<Value> {
        if let (Value::Int(a), Value::Int(b)) = (a, b)
            && let Some(result) = small(op, *a, *b)
        {
            return Ok(Value::Int(result));
        }
        for side in [a, b] {
            if let Some(undefined) = undefined(side) {
                // `'%s' % undefined` formats it; everything else is an error at once.
                if op == Op::Mod && text_of(a).is_some() {
                    break;
                }
                return Err(self.undefined_error(undefined));
            }
        }
        match (op, a, b) {
            (Op::Add, Value::Str(a), Value::Str(b)) => {
                self.room(a.len() + b.len())?;
                return Ok(Value::from(format!("{a}{b}")));
            }
            (Op::Add, Value::List(x), Value::List(y)) => {
                self.room((x.len() + y.len()) * 8)?;
                let mut items = x.to_vec();
                items.extend(y.to_vec());
                return Ok(Value::from(items));
            }
            (Op::Add, Value::Tuple(x), Value::Tuple(y)) => {
                self.room((x.len() + y.len()) * 8)?;
                return self.tuple(x.iter().chain(y.iter()).cloned().collect());
            }
            (Op::Add, Value::Bytes(x), Value::Bytes(y)) => {
                self.room(x.len() + y.len())?;
                return Ok(Value::bytes([&**x, &**y].concat()));
            }
            (Op::Mod, _, _) if text_of(a).is_some() => return self.percent(a, b),
            (Op::Mul, _, _) => {
                if let Some(repeated) = self.repeat(a, b)? {
                    return Ok(repeated);
                }
            }
            (Op::Sub, _, _) => {
                if let (Some(x), Some(y)) = (set_like(a), set_like(b)) {
                    let kept = x.into_iter().filter(|item| !y.contains(item));
                    let keys: Result<Vec<Key>> = kept.map(|item| self.key(item)).collect();
                    return Ok(set_of(keys?));
                }
            }
            _ => {}
        }
        if op == Op::Add
            && (is_markup(a) || is_markup(b))
            && text_of(a).is_some()
            && text_of(b).is_some()
        {
            let (a, b) = (escape(self, a)?, escape(self, b)?);
            return Ok(markup(format!("{a}{b}")));
        }
        match numbers(a, b) {
            Some((Num::Float(x), y)) => float_op(op, x, y.to_float()?),
            Some((x, Num::Float(y))) => float_op(op, x.to_float()?, y),
            Some((Num::Int(x), Num::Int(y))) => int_op(op, &x, &y),
            None => Err(unsupported(op, a, b)),
        }
    }

    fn repeat(&mut self, a: &Value, b: &Value) -> Result<Option<Value>> {
        let (sequence, count) = match (a, b) {
            (
                Value::List(_)
                | Value::Tuple(_)
                | Value::Bytes(_)
                | Value::Str(_)
                | Value::Object(_),
                _,
            ) if is_sequence(a) => (a, b),
            (_, _) if is_sequence(b) => (b, a),
            _ => return Ok(None),
        };
        let count = match count {
            Value::Int(int) => usize::try_from(*int).unwrap_or(0),
            Value::Bool(flag) => usize::from(*flag),
            Value::BigInt(int) if int.is_negative() => 0,
            Value::BigInt(_) => {
                return Err(Error::new(
                    Class::OverflowError,
                    "cannot fit 'int' into an index-sized integer",
                ));
            }
            other => {
                let name = other.type_name();
                return Err(type_error(format!(
                    "can't multiply sequence by non-int of type '{name}'"
                )));
            }
        };
        let length = match sequence {
            Value::List(list) => list.len() * 24,
            Value::Tuple(items) => items.len() * 24,
            Value::Bytes(bytes) => bytes.len(),
            other => text_of(other).map_or(0, SmolStr::len),
        };
        self.room(length.saturating_mul(count))?;
        Ok(Some(match sequence {
            Value::List(list) => {
                let items = list.to_vec();
                let total = items.len() * count;
                Value::List(items.into_iter().cycle().take(total).collect::<List>())
            }
            Value::Tuple(items) => {
                Value::Tuple(items.iter().cycle().take(items.len() * count).cloned().collect())
            }
            Value::Bytes(bytes) => Value::bytes(bytes.repeat(count)),
            other => {
                let text = text_of(other).map(|text| text.repeat(count)).unwrap_or_default();
                if is_markup(other) { markup(text) } else { Value::from(text) }
            }
        }))
    }

    pub(crate) fn negate(&mut self, value: &Value) -> Result<Value> {
        if let Some(undefined) = undefined(value) {
            return Err(self.undefined_error(undefined));
        }
        match value {
            Value::Float(float) => Ok(Value::Float(-float)),
            Value::Int(int) => Ok(int
                .checked_neg()
                .map_or_else(|| Value::from_bigint(-BigInt::from(*int)), Value::Int)),
            Value::Bool(flag) => Ok(Value::Int(-i64::from(*flag))),
            Value::BigInt(int) => Ok(Value::from_bigint(-&**int)),
            other => {
                Err(type_error(format!("bad operand type for unary -: '{}'", other.type_name())))
            }
        }
    }

    pub(crate) fn positive(&mut self, value: &Value) -> Result<Value> {
        if let Some(undefined) = undefined(value) {
            return Err(self.undefined_error(undefined));
        }
        match value {
            Value::Float(_) | Value::Int(_) | Value::BigInt(_) => Ok(value.clone()),
            Value::Bool(flag) => Ok(Value::Int(i64::from(*flag))),
            other => {
                Err(type_error(format!("bad operand type for unary +: '{}'", other.type_name())))
            }
        }
    }

    /// Makes a tuple. Tuples in tuples in tuples … are bounded: dropping them recurses.
    pub(crate) fn tuple(&mut self, items: Vec<Value>) -> Result<Value> {
        fn depth(items: &[Value], left: usize) -> bool {
            left > 0
                && items.iter().all(|item| match item {
                    Value::Tuple(items) => depth(items, left - 1),
                    _ => true,
                })
        }
        if items.iter().any(|item| matches!(item, Value::Tuple(_))) && !depth(&items, MAX_TUPLES) {
            return Err(recursion("in a tuple"));
        }
        Ok(Value::Tuple(items.into()))
    }
}

pub(crate) fn recursion(place: &str) -> Error {
    Error::new(Class::RecursionError, format!("maximum recursion depth exceeded {place}"))
}

fn decide(op: Cmp, ordering: Ordering) -> bool {
    match op {
        Cmp::Lt => ordering.is_lt(),
        Cmp::Le => ordering.is_le(),
        Cmp::Gt => ordering.is_gt(),
        _ => ordering.is_ge(),
    }
}

/// Returns the items of what Python treats as a set.
fn set_like(value: &Value) -> Option<Vec<Value>> {
    if let Some(set) = value.as_object::<Set>() {
        return Some(set_items(set));
    }
    value.as_object::<View>().filter(|view| view.kind != ViewKind::Values).map(View::to_vec)
}

fn is_sequence(value: &Value) -> bool {
    matches!(value, Value::List(_) | Value::Tuple(_) | Value::Bytes(_)) || text_of(value).is_some()
}

/// Small integers, where nothing overflows and nothing is special.
fn small(op: Op, a: i64, b: i64) -> Option<i64> {
    match op {
        Op::Add => a.checked_add(b),
        Op::Sub => a.checked_sub(b),
        Op::Mul => a.checked_mul(b),
        Op::FloorDiv if b != 0 => {
            let quotient = a.checked_div(b)?;
            Some(if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
        }
        Op::Mod if b != 0 => {
            let rest = a.checked_rem(b)?;
            Some(if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest })
        }
        Op::Pow if b >= 0 => a.checked_pow(u32::try_from(b).ok()?),
        _ => None,
    }
}

enum Num {
    Int(BigInt),
    Float(f64),
}

impl Num {
    fn to_float(&self) -> Result<f64> {
        match self {
            Self::Float(float) => Ok(*float),
            Self::Int(int) => match int.to_f64() {
                Some(float) if float.is_finite() => Ok(float),
                _ => Err(Error::new(Class::OverflowError, "int too large to convert to float")),
            },
        }
    }
}

fn numbers(a: &Value, b: &Value) -> Option<(Num, Num)> {
    fn number(value: &Value) -> Option<Num> {
        Some(match value {
            Value::Bool(flag) => Num::Int(i64::from(*flag).into()),
            Value::Int(int) => Num::Int((*int).into()),
            Value::BigInt(int) => Num::Int((**int).clone()),
            Value::Float(float) => Num::Float(*float),
            _ => return None,
        })
    }
    Some((number(a)?, number(b)?))
}

fn zero_division<T>(message: &str) -> Result<T> {
    Err(Error::new(Class::ZeroDivisionError, message))
}

fn float_op(op: Op, a: f64, b: f64) -> Result<Value> {
    Ok(Value::Float(match op {
        Op::Add => a + b,
        Op::Sub => a - b,
        Op::Mul => a * b,
        Op::Div if b == 0.0 => return zero_division("float division by zero"),
        Op::Div => a / b,
        Op::FloorDiv if b == 0.0 => return zero_division("float floor division by zero"),
        Op::FloorDiv => {
            let rest = float_mod(a, b);
            ((a - rest) / b).round()
        }
        Op::Mod if b == 0.0 => return zero_division("float modulo"),
        Op::Mod => float_mod(a, b),
        Op::Pow if a == 0.0 && b < 0.0 => {
            return zero_division("0.0 cannot be raised to a negative power");
        }
        Op::Pow => {
            let result = a.powf(b);
            if result.is_infinite() && a.is_finite() && b.is_finite() {
                return Err(Error::new(
                    Class::OverflowError,
                    "(34, 'Numerical result out of range')",
                ));
            }
            // differs: a negative number to a fractional power is complex in Python; here NaN.
            result
        }
    }))
}

fn float_mod(a: f64, b: f64) -> f64 {
    let rest = a % b;
    if rest != 0.0 && (rest < 0.0) != (b < 0.0) {
        rest + b
    } else if rest == 0.0 {
        0.0_f64.copysign(b)
    } else {
        rest
    }
}

fn int_op(op: Op, a: &BigInt, b: &BigInt) -> Result<Value> {
    let too_big = || Error::new(Class::MemoryError, "integer too large");
    Ok(match op {
        Op::Add => Value::from_bigint(a + b),
        Op::Sub => Value::from_bigint(a - b),
        Op::Mul if a.bits() + b.bits() > MAX_BITS => return Err(too_big()),
        Op::Mul => Value::from_bigint(a * b),
        Op::Div if b.is_zero() => return zero_division("division by zero"),
        Op::Div => match (a.to_f64(), b.to_f64()) {
            (Some(x), Some(y)) if x.is_finite() && y.is_finite() => Value::Float(x / y),
            _ => {
                // Both are shortened by the same amount, so that they fit a float.
                let shift = a.bits().min(b.bits()).saturating_sub(64);
                let (x, y) = ((a >> shift).to_f64(), (b >> shift).to_f64());
                match (x, y) {
                    (Some(x), Some(y)) if x.is_finite() && (x / y).is_finite() => {
                        Value::Float(x / y)
                    }
                    _ => {
                        return Err(Error::new(
                            Class::OverflowError,
                            "integer division result too large for a float",
                        ));
                    }
                }
            }
        },
        Op::FloorDiv if b.is_zero() => return zero_division("integer division or modulo by zero"),
        Op::Mod if b.is_zero() => return zero_division("integer modulo by zero"),
        Op::FloorDiv | Op::Mod => {
            let (mut quotient, mut rest) = (a / b, a % b);
            if !rest.is_zero() && rest.is_negative() != b.is_negative() {
                quotient -= 1;
                rest += b;
            }
            Value::from_bigint(if op == Op::Mod { rest } else { quotient })
        }
        Op::Pow if b.is_negative() => {
            let (Some(x), Some(y)) = (a.to_f64(), b.to_f64()) else {
                return Err(Error::new(Class::OverflowError, "int too large to convert to float"));
            };
            return float_op(Op::Pow, x, y);
        }
        Op::Pow => {
            let exponent = u32::try_from(b).map_err(|_| too_big());
            if a.is_zero() || *a == BigInt::from(1) {
                return Ok(Value::from_bigint(if b.is_zero() { 1.into() } else { a.clone() }));
            }
            if *a == BigInt::from(-1) {
                return Ok(Value::Int(if (b % 2u8).is_zero() { 1 } else { -1 }));
            }
            let exponent = exponent?;
            if a.bits() * u64::from(exponent) > MAX_BITS {
                return Err(too_big());
            }
            Value::from_bigint(a.pow(exponent))
        }
    })
}

fn unsupported(op: Op, a: &Value, b: &Value) -> Error {
    let (left, right) = (a.type_name(), b.type_name());
    if op == Op::Add {
        let concatenated = match a {
            Value::List(_) => Some("list"),
            Value::Tuple(_) => Some("tuple"),
            Value::Bytes(_) => return type_error(format!("can't concat {right} to bytes")),
            _ if text_of(a).is_some() => Some("str"),
            _ => None,
        };
        if let Some(name) = concatenated {
            return type_error(format!("can only concatenate {name} (not \"{right}\") to {name}"));
        }
    }
    let sign = match op {
        Op::Add => "+",
        Op::Sub => "-",
        Op::Mul => "*",
        Op::Div => "/",
        Op::FloorDiv => "//",
        Op::Mod => "%",
        Op::Pow => "** or pow()",
    };
    type_error(format!("unsupported operand type(s) for {sign}: '{left}' and '{right}'"))
}

pub(crate) fn push_int(out: &mut String, int: i64) {
    out.push_str(itoa::Buffer::new().format(int));
}

pub(crate) fn big_str(int: &Arc<BigInt>) -> Result<String> {
    // A digit is a little more than 3.3 bits.
    if int.bits() as usize > MAX_DIGITS * 10 / 3 + 10 {
        return Err(Error::new(
            Class::ValueError,
            "Exceeds the limit (4300 digits) for integer string conversion; use \
             sys.set_int_max_str_digits() to increase the limit",
        ));
    }
    Ok(int.to_string())
}
