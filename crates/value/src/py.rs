//! Python's semantics: equality, hashing, ordering, truth, `str` and `repr`.

use std::{
    borrow::Cow,
    cmp::Ordering,
    fmt::{self, Write as _},
    hash::{Hash, Hasher},
    ops::Deref,
};

use indexmap::Equivalent;
use num_bigint::BigInt;
use num_traits::{FromPrimitive, ToPrimitive};
use smol_str::SmolStr;
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

use crate::{Dict, List, Value};

/// Nesting beyond this is cut when comparing and printing; it also ends cycles that pass through
/// comparison. No honest data is that deep.
const MAX_DEPTH: usize = 400;

/// A value that can be the key of a dict.
#[derive(Clone)]
pub struct Key(Value);

/// The value is mutable, so it cannot be a key.
#[derive(Debug, thiserror::Error)]
#[error("unhashable type: '{0}'")]
pub struct Unhashable(pub String);

impl Key {
    pub fn value(&self) -> &Value {
        &self.0
    }

    pub fn into_value(self) -> Value {
        self.0
    }
}

impl Deref for Key {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0
    }
}

impl TryFrom<Value> for Key {
    type Error = Unhashable;

    fn try_from(value: Value) -> Result<Self, Unhashable> {
        fn check(value: &Value) -> Result<(), Unhashable> {
            match value {
                Value::List(_) | Value::Dict(_) => Err(Unhashable(value.type_name().into_owned())),
                Value::Tuple(items) => items.iter().try_for_each(check),
                _ => Ok(()),
            }
        }
        check(&value).map(|()| Self(value))
    }
}

impl From<&str> for Key {
    fn from(text: &str) -> Self {
        Self(Value::str(text))
    }
}

impl From<String> for Key {
    fn from(text: String) -> Self {
        Self(Value::from(text))
    }
}

impl From<&String> for Key {
    fn from(text: &String) -> Self {
        Self(Value::str(text))
    }
}

impl From<SmolStr> for Key {
    fn from(text: SmolStr) -> Self {
        Self(Value::Str(text))
    }
}

impl From<&SmolStr> for Key {
    fn from(text: &SmolStr) -> Self {
        Self(Value::Str(text.clone()))
    }
}

impl From<i64> for Key {
    fn from(int: i64) -> Self {
        Self(Value::Int(int))
    }
}

impl From<&Key> for Key {
    fn from(key: &Key) -> Self {
        key.clone()
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

/// NaN is not equal to itself, and Python accepts it as a key all the same: each one is another key.
impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash(&self.0, state);
    }
}

impl Equivalent<Key> for str {
    fn equivalent(&self, key: &Key) -> bool {
        key.as_str() == Some(self)
    }
}

/// Equal values hash alike: `1`, `1.0` and `True` are one key. Text hashes as `str` does, so that
/// look-ups by `&str` need no allocation.
fn hash<H: Hasher>(value: &Value, state: &mut H) {
    match value {
        Value::Null => state.write_u8(0),
        Value::Bool(flag) => state.write_i64(i64::from(*flag)),
        Value::Int(int) => state.write_i64(*int),
        Value::BigInt(int) => int.hash(state),
        Value::Float(float) => match integral(*float) {
            Some(int) => match i64::try_from(&int) {
                Ok(small) => state.write_i64(small),
                Err(_) => int.hash(state),
            },
            None => state.write_u64(float.to_bits()),
        },
        Value::Str(text) => text.as_str().hash(state),
        Value::Bytes(bytes) => bytes.hash(state),
        Value::Tuple(items) => items.iter().for_each(|item| hash(item, state)),
        Value::Timestamp(time) => time.hash(state),
        Value::Object(object) => state.write_usize((&raw const **object).addr()),
        // Unreachable for a `Key`, harmless otherwise.
        Value::List(_) | Value::Dict(_) => state.write_u8(1),
    }
}

fn integral(float: f64) -> Option<BigInt> {
    (float.is_finite() && float.fract() == 0.0).then(|| BigInt::from_f64(float)).flatten()
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        equal(self, other, 0)
    }
}

impl PartialEq for Dict {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || equal_dicts(self, other, 0)
    }
}

impl PartialEq for List {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || equal_lists(self, other, 0)
    }
}

impl PartialEq<str> for Value {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == Some(other)
    }
}

impl PartialEq<&str> for Value {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == Some(*other)
    }
}

fn equal(a: &Value, b: &Value, depth: usize) -> bool {
    if depth > MAX_DEPTH {
        return false;
    }
    match (a, b) {
        (Value::Str(a), Value::Str(b)) => a == b,
        (Value::Null, Value::Null) => true,
        (Value::Bytes(a), Value::Bytes(b)) => a == b,
        (Value::Timestamp(a), Value::Timestamp(b)) => a == b,
        (Value::List(a), Value::List(b)) => a.is_same(b) || equal_lists(a, b, depth),
        (Value::Tuple(a), Value::Tuple(b)) => equal_items(a, b, depth),
        (Value::Dict(a), Value::Dict(b)) => a.is_same(b) || equal_dicts(a, b, depth),
        (Value::Object(object), other) | (other, Value::Object(object)) => {
            a.is_same(b) || object.equals(other)
        }
        _ => compare_numbers(a, b) == Some(Ordering::Equal),
    }
}

fn equal_lists(a: &List, b: &List, depth: usize) -> bool {
    let (a, b) = (a.read(), b.read());
    equal_items(&a, &b, depth)
}

fn equal_items(a: &[Value], b: &[Value], depth: usize) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b, depth + 1))
}

fn equal_dicts(a: &Dict, b: &Dict, depth: usize) -> bool {
    let (a, b) = (a.read(), b.read());
    a.len() == b.len()
        && a.iter().all(|(key, value)| b.get(key).is_some_and(|b| equal(value, b, depth + 1)))
}

/// Compares two numbers exactly (a float is not rounded to compare with a big int); `None` when
/// one is no number or is NaN.
fn compare_numbers(a: &Value, b: &Value) -> Option<Ordering> {
    enum Num<'a> {
        Small(i64),
        Big(&'a BigInt),
        Float(f64),
    }
    fn num(value: &Value) -> Option<Num<'_>> {
        Some(match value {
            Value::Bool(flag) => Num::Small((*flag).into()),
            Value::Int(int) => Num::Small(*int),
            Value::BigInt(int) => Num::Big(int),
            Value::Float(float) => Num::Float(*float),
            _ => return None,
        })
    }
    fn big_to_float(int: &BigInt, float: f64) -> Option<Ordering> {
        if float.is_nan() {
            return None;
        }
        if float.is_infinite() {
            return Some(if float > 0.0 { Ordering::Less } else { Ordering::Greater });
        }
        let whole = BigInt::from_f64(float.trunc())?;
        let by_fraction = || 0.0_f64.partial_cmp(&float.fract()).unwrap_or(Ordering::Equal);
        Some(int.cmp(&whole).then_with(by_fraction))
    }
    match (num(a)?, num(b)?) {
        (Num::Small(a), Num::Small(b)) => Some(a.cmp(&b)),
        (Num::Float(a), Num::Float(b)) => a.partial_cmp(&b),
        (Num::Small(a), Num::Big(b)) => Some(BigInt::from(a).cmp(b)),
        (Num::Big(a), Num::Small(b)) => Some(a.cmp(&BigInt::from(b))),
        (Num::Big(a), Num::Big(b)) => Some(a.cmp(b)),
        (Num::Small(a), Num::Float(b)) if a.unsigned_abs() < 1 << 53 => (a as f64).partial_cmp(&b),
        (Num::Float(a), Num::Small(b)) if b.unsigned_abs() < 1 << 53 => a.partial_cmp(&(b as f64)),
        (Num::Small(a), Num::Float(b)) => big_to_float(&a.into(), b),
        (Num::Float(a), Num::Small(b)) => big_to_float(&b.into(), a).map(Ordering::reverse),
        (Num::Big(a), Num::Float(b)) => big_to_float(a, b),
        (Num::Float(a), Num::Big(b)) => big_to_float(b, a).map(Ordering::reverse),
    }
}

impl Value {
    /// Orders as Python's `<` and `>`; `None` where Python raises a `TypeError` (or for NaN).
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Str(a), Self::Str(b)) => Some(a.as_str().cmp(b.as_str())),
            (Self::Bytes(a), Self::Bytes(b)) => Some(a.cmp(b)),
            (Self::Timestamp(a), Self::Timestamp(b)) => Some(a.cmp(b)),
            (Self::List(a), Self::List(b)) => compare_items(&a.to_vec(), &b.to_vec()),
            (Self::Tuple(a), Self::Tuple(b)) => compare_items(a, b),
            _ => compare_numbers(self, other),
        }
    }

    /// Tells whether two values are the same in kind, order and content, where Python's equality
    /// takes `1` for `True`. Those that contain themselves are not.
    pub fn is_identical(&self, other: &Self) -> bool {
        identical(self, other, 0)
    }

    /// Tells truth as Python does: zero, the empty and None are false.
    pub fn truthy(&self) -> bool {
        match self {
            Self::Null => false,
            Self::Bool(flag) => *flag,
            Self::Int(int) => *int != 0,
            Self::BigInt(_) | Self::Timestamp(_) => true,
            Self::Float(float) => *float != 0.0,
            Self::Str(text) => !text.is_empty(),
            Self::Bytes(bytes) => !bytes.is_empty(),
            Self::List(list) => !list.is_empty(),
            Self::Tuple(items) => !items.is_empty(),
            Self::Dict(dict) => !dict.is_empty(),
            Self::Object(object) => object.truthy(),
        }
    }

    /// Returns Python's name of the type: `str`, `NoneType` …
    pub fn type_name(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Null => "NoneType",
            Self::Bool(_) => "bool",
            Self::Int(_) | Self::BigInt(_) => "int",
            Self::Float(_) => "float",
            Self::Str(_) => "str",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "list",
            Self::Tuple(_) => "tuple",
            Self::Dict(_) => "dict",
            Self::Timestamp(_) => "datetime.datetime",
            Self::Object(object) => return Cow::Owned(object.type_name().to_owned()),
        })
    }

    /// Returns Python's `repr`.
    pub fn repr(&self) -> String {
        let mut out = String::new();
        write_repr(self, &mut out, &mut Vec::new(), Kinds::Alike);
        out
    }

    /// Returns Python's `repr` with ordered dicts as `OrderedDict([…])`.
    pub fn repr_by_kind(&self) -> String {
        let mut out = String::new();
        write_repr(self, &mut out, &mut Vec::new(), Kinds::Told);
        out
    }

    /// Returns Python's `str`.
    pub fn to_str(&self) -> SmolStr {
        match self {
            Self::Str(text) => text.clone(),
            Self::Object(object) => object.str().into(),
            Self::Timestamp(time) => datetime_str(time).into(),
            other => other.repr().into(),
        }
    }
}

fn identical(a: &Value, b: &Value, depth: usize) -> bool {
    if depth > MAX_DEPTH {
        return false;
    }
    let all = |a: &[Value], b: &[Value]| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| identical(a, b, depth + 1))
    };
    match (a, b) {
        (Value::List(a), Value::List(b)) => a.is_same(b) || all(&a.to_vec(), &b.to_vec()),
        (Value::Tuple(a), Value::Tuple(b)) => all(a, b),
        (Value::Dict(a), Value::Dict(b)) => {
            let same = |((a, x), (b, y)): (&(Key, Value), &(Key, Value))| {
                identical(a, b, depth + 1) && identical(x, y, depth + 1)
            };
            a.is_same(b) || a.len() == b.len() && a.entries().iter().zip(&b.entries()).all(same)
        }
        (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
        _ => std::mem::discriminant(a) == std::mem::discriminant(b) && a == b,
    }
}

fn compare_items(a: &[Value], b: &[Value]) -> Option<Ordering> {
    match a.iter().zip(b).find(|(a, b)| a != b) {
        Some((a, b)) => a.compare(b),
        None => Some(a.len().cmp(&b.len())),
    }
}

/// Sorts as Python's `sorted` does, stably; `None` as soon as two items have no order (`TypeError`).
///
/// Not the standard library's sort: an order with gaps and circles (numbers, bytes and bools by the
/// names of their types) would make that one panic.
pub fn sorted<T: Clone>(
    mut items: Vec<T>,
    less: &impl Fn(&T, &T) -> Option<bool>,
) -> Option<Vec<T>> {
    let sorted_pair = |pair: &[T]| matches!(pair, [a, b] if less(b, a) == Some(false));
    if items.windows(2).all(sorted_pair) {
        return Some(items);
    }
    let right = sorted(items.split_off(items.len() / 2), less)?;
    let left = sorted(items, less)?;
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        let next = if less(b, a)? { right.next() } else { left.next() };
        merged.extend(next);
    }
    merged.extend(left);
    merged.extend(right);
    Some(merged)
}

/// Tells Python's `a < b`; `None` where that is a `TypeError`.
pub fn less(a: &Value, b: &Value) -> Option<bool> {
    match a.compare(b) {
        Some(order) => Some(order == Ordering::Less),
        // NaN has no order, and Python says so with False.
        None => (a.as_float().is_some() && b.as_float().is_some()).then_some(false),
    }
}

/// Python's `str`: what a template prints.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.to_str())
    }
}

/// Python's `repr`: tests print it.
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.repr())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Dict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Value::from(self).repr())
    }
}

impl fmt::Debug for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Value::List(self.clone()).repr())
    }
}

/// Whether a `repr` tells ordered dicts from others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kinds {
    Alike,
    Told,
}

/// `open` holds the identities of the containers being printed: Python shows a cycle as `[...]`.
fn write_repr(value: &Value, out: &mut String, open: &mut Vec<usize>, kinds: Kinds) {
    match value {
        Value::Null => out.push_str("None"),
        Value::Bool(flag) => out.push_str(if *flag { "True" } else { "False" }),
        Value::Int(int) => {
            let _ = write!(out, "{int}");
        }
        Value::BigInt(int) => {
            let _ = write!(out, "{int}");
        }
        Value::Float(float) => out.push_str(&float_repr(*float)),
        Value::Str(text) => out.push_str(&str_repr(text)),
        Value::Bytes(bytes) => out.push_str(&bytes_repr(bytes)),
        Value::Timestamp(time) => out.push_str(&datetime_repr(time)),
        Value::Object(object) => out.push_str(&object.repr()),
        Value::Tuple(items) => {
            out.push('(');
            write_items(items, out, open, kinds);
            out.push_str(if items.len() == 1 { ",)" } else { ")" });
        }
        Value::List(list) => {
            if open.contains(&list.identity()) || open.len() > MAX_DEPTH {
                out.push_str("[...]");
                return;
            }
            open.push(list.identity());
            out.push('[');
            write_items(&list.to_vec(), out, open, kinds);
            out.push(']');
            open.pop();
        }
        Value::Dict(dict) => {
            let told = kinds == Kinds::Told && dict.is_ordered();
            if open.contains(&dict.identity()) || open.len() > MAX_DEPTH {
                out.push_str(if told { "..." } else { "{...}" });
                return;
            }
            open.push(dict.identity());
            if told {
                out.push_str("OrderedDict(");
                if !dict.is_empty() {
                    let items: Vec<Value> = dict
                        .into_iter()
                        .map(|(key, value)| Value::tuple([key.into_value(), value]))
                        .collect();
                    out.push('[');
                    write_items(&items, out, open, kinds);
                    out.push(']');
                }
                out.push(')');
                open.pop();
                return;
            }
            out.push('{');
            for (index, (key, value)) in dict.into_iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write_repr(&key, out, open, kinds);
                out.push_str(": ");
                write_repr(&value, out, open, kinds);
            }
            out.push('}');
            open.pop();
        }
    }
}

fn write_items(items: &[Value], out: &mut String, open: &mut Vec<usize>, kinds: Kinds) {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        write_repr(item, out, open, kinds);
    }
}

/// Returns Python's `repr` of a float: the shortest digits that read back the same.
pub fn float_repr(float: f64) -> String {
    if float.is_nan() {
        return "nan".into();
    }
    if float.is_infinite() {
        return if float > 0.0 { "inf" } else { "-inf" }.into();
    }
    if float == 0.0 {
        return if float.is_sign_negative() { "-0.0" } else { "0.0" }.into();
    }
    let mut scientific = format!("{float:e}");
    // Where two shortest forms are equally near (only numbers of 16 digits and more can be), Python
    // takes the even one; so does rounding to that many digits.
    if let Some(point) = scientific.find('.') {
        let places = scientific.find('e').unwrap_or(scientific.len()) - point - 1;
        if places >= 15 {
            let rounded = format!("{float:.places$e}");
            if rounded.parse() == Ok(float) {
                scientific = rounded;
            }
        }
    }
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        return plain_decimal(digits, exponent);
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// Writes `1.5` and an exponent of 1 as `15.0`.
fn plain_decimal(digits: &str, exponent: i32) -> String {
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", digits),
    };
    let all: String = digits.chars().filter(char::is_ascii_digit).collect();
    let Ok(whole) = usize::try_from(exponent + 1) else {
        let zeros = "0".repeat(exponent.unsigned_abs() as usize - 1);
        return format!("{sign}0.{zeros}{all}");
    };
    match all.split_at_checked(whole) {
        None | Some((_, "")) => format!("{sign}{all:0<whole$}.0"),
        Some(("", fraction)) => format!("{sign}0.{fraction}"),
        Some((whole, fraction)) => format!("{sign}{whole}.{fraction}"),
    }
}

/// Returns Python's `repr` of a text.
pub fn str_repr(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if is_printable(c) => out.push(c),
            c => {
                let code = u32::from(c);
                let _ = match code {
                    0..=0xff => write!(out, "\\x{code:02x}"),
                    0x100..=0xffff => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }
    out.push(quote);
    out
}

/// Tells what Python's `str.isprintable` tells for one character.
fn is_printable(c: char) -> bool {
    use GeneralCategory as G;
    if c.is_ascii() {
        return (' '..='~').contains(&c);
    }
    !matches!(
        c.general_category(),
        G::Control
            | G::Format
            | G::Surrogate
            | G::PrivateUse
            | G::Unassigned
            | G::LineSeparator
            | G::ParagraphSeparator
            | G::SpaceSeparator
    )
}

fn bytes_repr(bytes: &[u8]) -> String {
    let quote = if bytes.contains(&b'\'') && !bytes.contains(&b'"') { '"' } else { '\'' };
    let mut out = format!("b{quote}");
    for &byte in bytes {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            byte if char::from(byte) == quote => {
                out.push('\\');
                out.push(quote);
            }
            b' '..=b'~' => out.push(char::from(byte)),
            byte => {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
    out.push(quote);
    out
}

fn datetime_str(time: &crate::DateTime) -> String {
    let micros = time.subsec_nanosecond() / 1000;
    let base = time.strftime("%Y-%m-%d %H:%M:%S").to_string();
    if micros == 0 { base } else { format!("{base}.{micros:06}") }
}

fn datetime_repr(time: &crate::DateTime) -> String {
    let micros = time.subsec_nanosecond() / 1000;
    let mut parts = vec![time.year().to_string(), time.month().to_string(), time.day().to_string()];
    parts.extend([time.hour().to_string(), time.minute().to_string()]);
    if time.second() != 0 || micros != 0 {
        parts.push(time.second().to_string());
    }
    if micros != 0 {
        parts.push(micros.to_string());
    }
    format!("datetime.datetime({})", parts.join(", "))
}

impl Value {
    /// Converts to an integer where Python's `int()` of a number would; text is not parsed.
    pub fn to_int(&self) -> Option<i64> {
        match self {
            Self::Int(int) => Some(*int),
            Self::Bool(flag) => Some(i64::from(*flag)),
            Self::Float(float) => float.trunc().to_i64(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{dict, list};

    #[test]
    fn identity_is_stricter_than_equality() {
        let value = |flag: Value| dict! { "a" => list![1, flag], "b" => 2 };
        assert_eq!(value(1.into()), value(true.into()));
        assert!(!value(1.into()).is_identical(&value(true.into())));
        assert!(value(1.into()).is_identical(&value(1.into())));
        let turned = dict! { "b" => 2, "a" => list![1, 1] };
        assert_eq!(value(1.into()), turned);
        assert!(!value(1.into()).is_identical(&turned));
    }

    #[test]
    fn sorting_is_stable_and_gives_up_on_mixed_kinds() {
        let first_less = |a: &(i32, char), b: &(i32, char)| Some(a.0 < b.0);
        let items = vec![(2, 'a'), (1, 'a'), (2, 'b'), (1, 'b'), (0, 'x')];
        let expected = [(0, 'x'), (1, 'a'), (1, 'b'), (2, 'a'), (2, 'b')];
        assert_eq!(sorted(items, &first_less).as_deref(), Some(&expected[..]));
        assert!(sorted(vec![Value::Int(1), Value::from("a")], &less).is_none());
        assert!(sorted(vec![Value::Null], &less).is_some());
    }

    fn repr(value: impl Into<Value>, expected: &str) {
        assert_eq!(value.into().repr(), expected);
    }

    #[test]
    fn floats_print_as_python_prints_them() {
        repr(1.0, "1.0");
        repr(0.1, "0.1");
        repr(1e15, "1000000000000000.0");
        repr(1e16, "1e+16");
        repr(1.5e-7, "1.5e-07");
        repr(0.0001, "0.0001");
        repr(0.00001, "1e-05");
        repr(-0.0, "-0.0");
        repr(1e300, "1e+300");
        repr(727_278_732_062_006.0 + 0.25, "727278732062006.2");
        repr(-201_878_154_679_806.0 - 0.625, "-201878154679806.62");
        repr(0.000_123, "0.000123");
        repr(-12.5, "-12.5");
        repr(123_456_789.0, "123456789.0");
        repr(f64::NEG_INFINITY, "-inf");
    }

    #[test]
    fn texts_print_as_python_prints_them() {
        repr("it's", r#""it's""#);
        repr("it's \"x\"", r#"'it\'s "x"'"#);
        repr("a\u{7f}\u{e9}\u{a0}\u{1F600}\u{200b}", "'a\\x7fé\\xa0😀\\u200b'");
        repr(Value::bytes(*b"a'\xff"), r#"b"a'\xff""#);
    }

    #[test]
    fn containers_print_as_python_prints_them() {
        repr(dict! { "a" => list![1, true, ()], 2 => 1.5 }, "{'a': [1, True, None], 2: 1.5}");
        repr(Value::tuple([1]), "(1,)");
        let list = List::new();
        list.push(list.clone());
        repr(list, "[[...]]");
    }

    #[test]
    fn equal_numbers_are_one_key() {
        let dict = Dict::new();
        for key in [Value::Int(1), Value::Float(1.0), Value::Bool(true)] {
            dict.insert(Key::try_from(key).expect("hashable"), "x");
        }
        assert_eq!(dict.len(), 1);
        assert!(Key::try_from(list![1]).is_err());
        assert!(Key::try_from(Value::tuple([list![1]])).is_err());
    }

    #[test]
    fn big_ints_and_floats_compare_exactly() {
        let big = Value::from_bigint(BigInt::from(1u8) << 60);
        assert_eq!(big, Value::Int(1 << 60));
        let (a, b) = (Value::Int((1 << 60) + 1), Value::Float((1i64 << 60) as f64));
        assert_eq!(a.compare(&b), Some(Ordering::Greater));
        assert_ne!(a, b);
        assert_ne!(Value::Float(f64::NAN), Value::Float(f64::NAN));
    }

    #[test]
    fn order_is_defined_only_within_a_kind() {
        assert_eq!(list![1, 2].compare(&list![1, 3]), Some(Ordering::Less));
        assert_eq!(Value::from("a").compare(&Value::Int(1)), None);
        assert_eq!(Value::Null.compare(&Value::Null), None);
        assert_eq!(Value::Bool(true).compare(&Value::Int(2)), Some(Ordering::Less));
    }

    #[test]
    fn deep_nesting_is_dropped_without_a_stack_overflow() {
        let mut value = Value::Null;
        for _ in 0..200_000 {
            value = list![value];
        }
        assert!(value.repr().contains("[...]"));
    }

    #[test]
    fn handles_share_and_copies_do_not() {
        let (a, b) = (List::new(), List::new());
        a.push(b.clone());
        let copy = a.deep_copy();
        b.push(1);
        assert_eq!(Value::List(a), list![list![1]]);
        assert_eq!(Value::List(copy), list![list![]]);
    }
}
