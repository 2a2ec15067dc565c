//! Filters that convert and classify single values: numbers, names, paths.

use halite_pyregex::{Flags, PyRegex, from_glob};
use halite_value::{BigInt, SmolStr, Value};
use num_traits::FromPrimitive;

use super::Row;
use crate::jinja::{
    call::Bound,
    error::{Class, Error, type_error, value_error},
    eval::{Interp, Result},
    methods,
    objects::*,
};

pub(crate) const FILTERS: &[Row] = &[
    ("abs", "abs(x)", |interp, args| {
        let value = args.take(0);
        if let Some(undefined) = undefined(&value) {
            return Err(interp.undefined_error(undefined));
        }
        match &value {
            Value::Float(float) => Ok(Value::Float(float.abs())),
            Value::Int(int) if *int < 0 => interp.negate(&value),
            Value::BigInt(int) if **int < BigInt::from(0) => interp.negate(&value),
            Value::Int(_) | Value::BigInt(_) | Value::Bool(_) => interp.positive(&value),
            other => {
                Err(type_error(format!("bad operand type for abs(): '{}'", other.type_name())))
            }
        }
    }),
    ("int", "do_int(value, default=, base=)", int),
    ("float", "do_float(value, default=)", float),
    ("round", "do_round(value, precision=, method=)", round),
    ("to_num", "to_num(text)", to_num),
    ("str_to_num", "to_num(text)", to_num),
    ("to_bool", "to_bool(val)", to_bool),
    ("to_bytes", "to_bytes(s, encoding=, errors=)", to_bytes),
    ("is_hex", "is_hex(value)", |_, args| {
        let value = args.take(0);
        Ok(Value::Bool(text_of(&value).is_some_and(|text| parse_int(text, 16).is_some())))
    }),
    ("contains_whitespace", "contains_whitespace(text)", |interp, args| {
        let items = interp.collect(&args.take(0))?;
        for item in items {
            let Some(text) = text_of(&item) else {
                let name = item.type_name();
                return Err(Error::new(
                    Class::AttributeError,
                    format!("'{name}' object has no attribute 'isspace'"),
                ));
            };
            if text.chars().all(methods::str::is_space) {
                return Ok(Value::Bool(true));
            }
        }
        Ok(Value::Bool(false))
    }),
    ("human_to_bytes", "human_to_bytes(size, default_unit=, handle_metric=)", human_to_bytes),
    (
        "check_whitelist_blacklist",
        "check_whitelist_blacklist(value, whitelist=, blacklist=)",
        check_whitelist_blacklist,
    ),
    ("to_snake_case", "camel_to_snake_case(camel_input)", to_snake_case),
    ("to_camelcase", "snake_to_camel_case(snake_input, uppercamel=)", to_camelcase),
    ("quote", "quote(txt)", |interp, args| {
        let text = text_arg(interp, &args.take(0), "expected string or bytes-like object")?;
        Ok(Value::from(shell_quote(&text)))
    }),
    ("skip", "skip_filter(data)", |_, _| Ok(Value::str(""))),
    ("sequence", "ensure_sequence_filter(data)", |_, args| {
        let value = args.take(0);
        let is_sequence = matches!(value, Value::List(_) | Value::Tuple(_) | Value::Dict(_))
            || value.as_object::<Set>().is_some()
            || value.as_object::<Group>().is_some();
        Ok(if is_sequence { value } else { Value::from(vec![value]) })
    }),
    ("is_list", "is_list(value)", |_, args| {
        Ok(Value::Bool(matches!(args.take(0), Value::List(_))))
    }),
    ("is_iter", "is_iter(thing, ignore=)", |interp, args| {
        let value = args.take(0);
        if text_of(&value).is_some() {
            return Ok(Value::Bool(false));
        }
        match interp.iter(&value) {
            Ok(_) => Ok(Value::Bool(true)),
            Err(error) if *error.class() == Class::TypeError => Ok(Value::Bool(false)),
            Err(error) => Err(error),
        }
    }),
    ("method_call", "method_call(obj, f_name, *f_args, **f_kwargs)", |interp, args| {
        let value = args.take(0);
        let name = args.take(1);
        let Some(name) = text_of(&name).cloned() else {
            return Err(type_error(format!(
                "attribute name must be string, not '{}'",
                name.type_name()
            )));
        };
        match interp.own_attribute(&value, &name)? {
            Some(found) => interp.call(&found, args.others()),
            None => Ok(Value::Null),
        }
    }),
    ("path_join", "join(*parts, **kwargs)", path_join),
    (
        "substring_in_list",
        "substr_in_list(string_to_search_for, list_to_search)",
        |interp, args| {
            let wanted = args.take(0);
            let list = interp.collect(&args.take(1))?;
            for item in list {
                if interp.contains(&item, &wanted)? {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        },
    ),
];

pub(crate) fn text_arg(interp: &Interp<'_>, value: &Value, message: &str) -> Result<SmolStr> {
    text_of(value).cloned().ok_or_else(|| {
        let error = type_error(format!("{message}, got '{}'", value.type_name()));
        interp.blame(error, value)
    })
}

// ---- numbers

/// Reads an integer as Python's `int(text, base)` does.
pub(crate) fn parse_int(text: &str, base: u32) -> Option<Value> {
    let text = text.trim_matches(methods::str::is_space);
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let prefixed = |base: u32| match base {
        2 => Some(["0b", "0B"]),
        8 => Some(["0o", "0O"]),
        16 => Some(["0x", "0X"]),
        _ => None,
    };
    let strip = |base: u32| prefixed(base)?.iter().find_map(|prefix| digits.strip_prefix(prefix));
    let (base, digits) = if base == 0 {
        match [2, 8, 16].into_iter().find_map(|base| Some((base, strip(base)?))) {
            Some(found) => found,
            None if digits.starts_with('0') && digits.chars().any(|c| c != '0' && c != '_') => {
                return None;
            }
            None => (10, digits),
        }
    } else {
        // After a prefix an underscore may follow at once.
        match strip(base) {
            Some(rest) => (base, rest.strip_prefix('_').unwrap_or(rest)),
            None => (base, digits),
        }
    };
    if digits.is_empty()
        || digits.starts_with('_')
        || digits.ends_with('_')
        || digits.contains("__")
    {
        return None;
    }
    // Digits of other scripts count too.
    let digits: Option<String> = digits
        .chars()
        .filter(|c| *c != '_')
        .map(|c| if c.is_digit(base) { Some(c) } else { None })
        .collect();
    let digits = digits?;
    if let Ok(int) = i64::from_str_radix(&digits, base) {
        return Some(Value::Int(if negative { -int } else { int }));
    }
    if digits.len() > 4300 && !base.is_power_of_two() {
        return None;
    }
    let big = BigInt::parse_bytes(digits.as_bytes(), base)?;
    Some(Value::from_bigint(if negative { -big } else { big }))
}

/// Reads a float as Python's `float(text)` does.
pub(crate) fn parse_float(text: &str) -> Option<f64> {
    let text = text.trim_matches(methods::str::is_space);
    let lower = text.to_ascii_lowercase();
    match lower.trim_start_matches(['+', '-']) {
        "inf" | "infinity" | "nan"
            if lower.len() - lower.trim_start_matches(['+', '-']).len() <= 1 =>
        {
            let negative = lower.starts_with('-');
            let value = if lower.ends_with("nan") { f64::NAN } else { f64::INFINITY };
            return Some(if negative { -value } else { value });
        }
        _ => {}
    }
    let fine =
        text.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-' | '_'));
    if !fine || text.starts_with('_') || text.ends_with('_') || text.contains("__") {
        return None;
    }
    // Underscores stand between digits only.
    let bytes = text.as_bytes();
    let between = |at: usize| {
        at > 0
            && bytes[at - 1].is_ascii_digit()
            && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)
    };
    if bytes.iter().enumerate().any(|(at, byte)| *byte == b'_' && !between(at)) {
        return None;
    }
    text.replace('_', "").parse().ok()
}

/// `float(value)`.
pub(crate) fn to_float(interp: &mut Interp<'_>, value: &Value) -> Result<f64> {
    if let Some(undefined) = undefined(value) {
        return Err(interp.undefined_error(undefined));
    }
    if let Some(text) = text_of(value) {
        return parse_float(text).ok_or_else(|| {
            value_error(format!(
                "could not convert string to float: {}",
                halite_value::str_repr(text)
            ))
        });
    }
    match value {
        Value::BigInt(_) => match value.as_float() {
            Some(float) if float.is_finite() => Ok(float),
            _ => Err(Error::new(Class::OverflowError, "int too large to convert to float")),
        },
        _ => value.as_float().ok_or_else(|| {
            let name = value.type_name();
            type_error(format!("float() argument must be a string or a real number, not '{name}'"))
        }),
    }
}

/// `int(value)` of something that is no text; `None` where Python raises.
fn number_to_int(value: &Value) -> Option<Value> {
    match value {
        Value::Int(_) | Value::BigInt(_) => Some(value.clone()),
        Value::Bool(flag) => Some(Value::Int(i64::from(*flag))),
        Value::Float(float) => BigInt::from_f64(float.trunc()).map(Value::from_bigint),
        _ => None,
    }
}

fn int(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let value = args.take(0);
    let default = args.opt(1).unwrap_or(Value::Int(0));
    let base = args.opt(2).map(|base| methods::index(&base)).transpose()?.unwrap_or(10);
    if let Some(undefined) = undefined(&value) {
        return Err(interp.undefined_error(undefined));
    }
    let base = u32::try_from(base).unwrap_or(1);
    let found = match text_of(&value) {
        Some(text) if base == 0 || (2..=36).contains(&base) => parse_int(text, base),
        Some(_) => None,
        None => match &value {
            Value::Bytes(bytes) => {
                std::str::from_utf8(bytes).ok().and_then(|text| parse_int(text, 10))
            }
            other => number_to_int(other),
        },
    };
    if let Some(found) = found {
        return Ok(found);
    }
    let as_float = match text_of(&value) {
        Some(text) => parse_float(text),
        None => match &value {
            Value::Float(_) | Value::Bytes(_) => None,
            other => other.as_float(),
        },
    };
    Ok(as_float.and_then(|float| number_to_int(&Value::Float(float))).unwrap_or(default))
}

fn float(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let value = args.take(0);
    let default = args.opt(1).unwrap_or(Value::Float(0.0));
    match to_float(interp, &value) {
        Ok(float) => Ok(Value::Float(float)),
        Err(error) if matches!(error.class(), Class::TypeError | Class::ValueError) => Ok(default),
        Err(error) => Err(error),
    }
}

fn round(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let value = args.take(0);
    let precision =
        args.opt(1).map(|precision| methods::index(&precision)).transpose()?.unwrap_or(0);
    let method = args.opt(2);
    let method = method.as_ref().and_then(text_of).map_or("common", |method| method.as_str());
    if !matches!(method, "common" | "ceil" | "floor") {
        return Err(super::argument_error("method must be common, ceil or floor"));
    }
    if let Some(undefined) = undefined(&value) {
        return Err(interp.undefined_error(undefined));
    }
    if method == "common" {
        return match &value {
            Value::Int(_) | Value::BigInt(_) | Value::Bool(_) if precision >= 0 => {
                interp.positive(&value)
            }
            Value::Int(int) => Ok(Value::Int(round_int(*int, precision.unsigned_abs()))),
            Value::Float(float) => Ok(Value::Float(round_float(*float, precision))),
            other => Err(type_error(format!(
                "type {} doesn't define __round__ method",
                other.type_name()
            ))),
        };
    }
    let factor = 10f64.powi(i32::try_from(precision).unwrap_or(0));
    let Some(float) = value.as_float() else {
        // Python multiplies by 10 to that power before it looks: an int, unless it is negative.
        let name = value.type_name();
        let sequence = text_of(&value).is_some()
            || matches!(value, Value::List(_) | Value::Tuple(_) | Value::Bytes(_));
        return Err(type_error(match (sequence, precision < 0) {
            (true, false) => format!("must be real number, not {name}"),
            (true, true) => "can't multiply sequence by non-int of type 'float'".to_owned(),
            (false, whole) => {
                let by = if whole { "float" } else { "int" };
                format!("unsupported operand type(s) for *: '{name}' and '{by}'")
            }
        }));
    };
    let scaled = float * factor;
    let whole = if method == "ceil" { scaled.ceil() } else { scaled.floor() };
    Ok(Value::Float(whole / factor))
}

/// Rounds half to even, on the exact value, as Python does.
fn round_float(float: f64, precision: i64) -> f64 {
    if !float.is_finite() || precision > 320 {
        return float;
    }
    if precision >= 0 {
        let digits = usize::try_from(precision).unwrap_or(0);
        return format!("{float:.digits$}").parse().unwrap_or(float);
    }
    let factor = 10f64.powi(i32::try_from(-precision).unwrap_or(i32::MAX).min(400));
    let scaled = float / factor;
    format!("{scaled:.0}").parse::<f64>().unwrap_or(0.0) * factor
}

fn round_int(int: i64, places: u64) -> i64 {
    let Some(factor) = u32::try_from(places).ok().and_then(|places| 10i64.checked_pow(places))
    else {
        return 0;
    };
    let (rest, half) = (int.rem_euclid(factor), factor / 2);
    let down = int - rest;
    let up = rest > half || (rest == half && factor > 1 && (down / factor) % 2 != 0);
    if up { down.saturating_add(factor) } else { down }
}

fn to_num(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let value = args.take(0);
    if let Some(undefined) = undefined(&value) {
        return Err(interp.undefined_error(undefined));
    }
    match text_of(&value) {
        Some(text) => Ok(parse_int(text, 10)
            .or_else(|| parse_float(text).map(Value::Float))
            .unwrap_or_else(|| value.clone())),
        None => number_to_int(&value).ok_or_else(|| {
            let name = value.type_name();
            type_error(format!(
                "int() argument must be a string, a bytes-like object or a real number, not '{name}'"
            ))
        }),
    }
}

fn to_bool(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let value = args.take(0);
    if let Some(text) = text_of(&value) {
        return Ok(Value::Bool(matches!(text.to_lowercase().as_str(), "yes" | "1" | "true")));
    }
    Ok(Value::Bool(match &value {
        Value::Bool(flag) => *flag,
        Value::Int(int) => *int > 0,
        Value::BigInt(int) => **int > BigInt::from(0),
        Value::List(_) | Value::Dict(_) => value.truthy(),
        other if other.as_object::<Set>().is_some() => interp.len(other)? > 0,
        other => match undefined(other) {
            Some(undefined) if undefined.strict => return Err(interp.undefined_error(undefined)),
            _ => false,
        },
    }))
}

fn to_bytes(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let value = args.take(0);
    let encoding = args.opt(1);
    let errors = args.opt(2);
    let name = |value: &Option<Value>, default: &str| {
        value.as_ref().and_then(text_of).map_or_else(|| default.to_owned(), ToString::to_string)
    };
    match &value {
        Value::Bytes(_) => Ok(value.clone()),
        other => match text_of(other) {
            Some(text) => {
                methods::str::encode_text(text, &name(&encoding, "utf-8"), &name(&errors, "strict"))
                    .map(Value::bytes)
            }
            None => {
                let error = type_error(format!(
                    "expected str, bytes, or bytearray not {}",
                    class_of(other)
                ));
                Err(interp.blame(error, other))
            }
        },
    }
}

/// How Python prints the class of a value.
pub(crate) fn class_of(value: &Value) -> String {
    format!(
        "<class '{}'>",
        type_repr(value).trim_end_matches(" object").replace("None", "NoneType")
    )
}

// ---- names and sizes

fn human_to_bytes(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let size = interp.str_of(&args.take(0))?;
    let default_unit = match args.opt(1) {
        Some(unit) => interp.str_of(&unit)?.to_lowercase(),
        None => "b".to_owned(),
    };
    let metric = args.take(2).truthy();
    let size = size.trim_matches(methods::str::is_space);
    let digits =
        size.len() - size.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
    let (number, unit) = size.split_at(digits);
    let unit = unit.trim_start().to_lowercase();
    let unit = if unit.is_empty() { default_unit } else { unit };
    let number = match (number.parse::<i64>(), number.parse::<f64>()) {
        (Ok(int), _) => Value::Int(int),
        (_, Ok(float)) => Value::Float(float),
        _ => return Ok(Value::Int(0)),
    };
    let first = unit.chars().next().unwrap_or('b');
    let Some(power) = "bkmgtpezy".find(first) else { return Ok(Value::Int(0)) };
    let tail = &unit[first.len_utf8()..];
    let decimal = match (first, tail) {
        ('b', "") => false,
        ('b', _) => return Ok(Value::Int(0)),
        (_, "b") => metric,
        (_, "" | "ib") => false,
        _ => return Ok(Value::Int(0)),
    };
    let power = i64::try_from(power).unwrap_or(0);
    let (base, exponent) = if decimal { (10, power * 3) } else { (2, power * 10) };
    use crate::jinja::ast::Op;
    let factor = interp.binary(Op::Pow, &Value::Int(base), &Value::Int(exponent))?;
    let bytes = interp.binary(Op::Mul, &number, &factor)?;
    Ok(number_to_int(&bytes).unwrap_or(Value::Int(0)))
}

/// Tells whether a text matches a shell pattern or, failing that, a regular expression.
fn expression_matches(text: &str, expression: &str) -> bool {
    let runs = |pattern: &str| {
        PyRegex::cached(pattern, Flags::NONE)
            .and_then(|regex| Ok(regex.full_match(text)?.is_some()))
            .unwrap_or(false)
    };
    runs(&from_glob(expression)) || runs(expression)
}

fn check_whitelist_blacklist(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let value = args.take(0);
    let mut list = |value: Option<Value>, name: &str| -> Result<Vec<Value>> {
        let Some(value) = value.filter(Value::truthy) else { return Ok(Vec::new()) };
        if text_of(&value).is_some() {
            return Ok(vec![value]);
        }
        interp.collect(&value).map_err(|error| match error.class() {
            Class::TypeError => {
                let shown = value.to_str();
                type_error(format!(
                    "Expecting iterable {name}, but got {} ({shown})",
                    value.type_name()
                ))
            }
            _ => error,
        })
    };
    let whitelist = list(args.opt(1), "whitelist")?;
    let blacklist = list(args.opt(2), "blacklist")?;
    let any = |list: &[Value]| {
        list.iter().any(|expression| match (text_of(&value), text_of(expression)) {
            (Some(value), Some(expression)) => expression_matches(value, expression),
            _ => false,
        })
    };
    Ok(Value::Bool(match (whitelist.is_empty(), blacklist.is_empty()) {
        (true, true) => true,
        (true, false) => !any(&blacklist),
        (false, true) => any(&whitelist),
        (false, false) => !any(&blacklist) && any(&whitelist),
    }))
}

fn to_snake_case(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let text = text_arg(interp, &args.take(0), "expected str")?;
    let chars: Vec<char> = text.chars().collect();
    if chars.is_empty() {
        return Err(Error::new(Class::IndexError, "string index out of range"));
    }
    let mut out = String::new();
    for (at, c) in chars.iter().enumerate() {
        let next_lower = chars.get(at + 1).is_some_and(|c| c.is_lowercase());
        if at > 0 && c.is_uppercase() && (chars[at - 1].is_lowercase() || next_lower) {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    Ok(Value::from(out))
}

fn to_camelcase(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let text = text_arg(interp, &args.take(0), "expected str")?;
    let upper = args.take(1).truthy();
    let words = text.split('_').enumerate().map(|(index, word)| {
        if index == 0 && !upper { word.to_owned() } else { methods::str::capitalize(word) }
    });
    Ok(Value::from(words.collect::<String>()))
}

/// Quotes a text for a POSIX shell, as Python's `shlex.quote`.
fn shell_quote(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "@%+=:,./-_".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\"'\"'"))
}

fn path_join(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let mut parts = Vec::new();
    for part in &args.rest {
        let part = match part {
            Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            other => match text_of(other) {
                Some(text) => text.to_string(),
                None => {
                    if let Some(undefined) = undefined(other) {
                        return Err(interp.undefined_error(undefined));
                    }
                    return Err(type_error(format!(
                        "expected str, bytes, or bytearray not {}",
                        class_of(other)
                    )));
                }
            },
        };
        parts.push(normal_path(&part));
    }
    let unknown =
        args.more.iter().find(|(name, _)| name != "use_posixpath" && !name.starts_with("__"));
    if let Some((name, value)) = unknown {
        return Err(Error::other(
            "SaltInvocationError",
            format!("The following keyword arguments are not valid: {name}={value}"),
        ));
    }
    let mut parts = parts.into_iter();
    let Some(mut path) = parts.next() else { return Ok(Value::str("")) };
    for part in parts {
        if !path.ends_with('/') {
            path.push('/');
        }
        path.push_str(part.trim_start_matches('/'));
    }
    Ok(Value::from(normal_path(&path)))
}

/// Python's `posixpath.normpath`.
pub(crate) fn normal_path(path: &str) -> String {
    if path.is_empty() {
        return ".".to_owned();
    }
    // Exactly two slashes at the start mean something else to POSIX.
    let root = match path.len() - path.trim_start_matches('/').len() {
        0 => "",
        2 => "//",
        _ => "/",
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if !root.is_empty() => {}
            part => parts.push(part),
        }
    }
    let path = format!("{root}{}", parts.join("/"));
    if path.is_empty() { ".".to_owned() } else { path }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_as_python_reads_them() {
        for (text, base, expected) in [
            (" 42 ", 10, Some(42)),
            ("-0x1f", 16, Some(-31)),
            ("1_000", 10, Some(1000)),
            ("1__0", 10, None),
            ("0b11", 0, Some(3)),
            ("010", 0, None),
            ("", 10, None),
            ("4.2", 10, None),
        ] {
            assert_eq!(parse_int(text, base), expected.map(Value::Int), "{text}");
        }
    }

    #[test]
    fn paths_are_normalised() {
        for (path, expected) in [
            ("/a/../b//c/.", "/b/c"),
            ("a/..", "."),
            ("//x", "//x"),
            ("///x", "/x"),
            ("../a", "../a"),
        ] {
            assert_eq!(normal_path(path), expected);
        }
    }

    #[test]
    fn floats_round_half_to_even() {
        assert_eq!(round_float(2.5, 0), 2.0);
        assert_eq!(round_float(42.55, 1), 42.5);
        assert_eq!(round_float(1234.0, -2), 1200.0);
        assert_eq!(round_int(1250, 2), 1200);
    }
}
