//! Scalars: which tag a plain one has, and what value a tag makes of the text.
//!
//! The implicit types are decided by the first byte and a hand-written matcher each; most scalars
//! of an SLS begin with a letter that starts no keyword and are text at once.

use num_bigint::BigInt;
use num_traits::Num as _;

use super::{Dialect, Error};
use crate::{DateTime, Value, str_repr};

/// The type of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    Null,
    Bool,
    Int,
    Float,
    Str,
    Timestamp,
    Binary,
    /// `<<`
    Merge,
    /// `=`
    Value,
    Seq,
    Map,
    Set,
    Omap,
    Pairs,
    PythonUnicode,
    /// Nothing we construct.
    Other(Box<str>),
}

const PREFIX: &str = "tag:yaml.org,2002:";

impl Tag {
    const NAMES: [(Self, &'static str); 15] = [
        (Self::Null, "null"),
        (Self::Bool, "bool"),
        (Self::Int, "int"),
        (Self::Float, "float"),
        (Self::Str, "str"),
        (Self::Timestamp, "timestamp"),
        (Self::Binary, "binary"),
        (Self::Merge, "merge"),
        (Self::Value, "value"),
        (Self::Seq, "seq"),
        (Self::Map, "map"),
        (Self::Set, "set"),
        (Self::Omap, "omap"),
        (Self::Pairs, "pairs"),
        (Self::PythonUnicode, "python/unicode"),
    ];

    /// Returns the tag with this full name.
    pub(super) fn named(name: &str) -> Self {
        name.strip_prefix(PREFIX)
            .and_then(|short| Self::NAMES.iter().find(|(_, own)| *own == short))
            .map_or_else(|| Self::Other(name.into()), |(tag, _)| tag.clone())
    }

    /// Returns the name after `!!`; empty for what we do not know.
    pub(super) fn short_name(&self) -> &'static str {
        Self::NAMES.iter().find(|(own, _)| own == self).map_or("", |(_, name)| name)
    }

    /// Returns the full name.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Other(name) => name.to_string(),
            tag => format!("{PREFIX}{}", tag.short_name()),
        }
    }
}

/// Returns the type a plain scalar has by its looks.
pub(super) fn resolve(text: &str) -> Tag {
    // Python's `$` also matches before a final newline, which `! |` can bring here.
    let text = text.strip_suffix('\n').unwrap_or(text);
    let bytes = text.as_bytes();
    let Some(&first) = bytes.first() else { return Tag::Null };
    match first {
        b'0'..=b'9' | b'-' | b'+' | b'.' => number(bytes),
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' => word(text),
        b'~' if bytes.len() == 1 => Tag::Null,
        b'<' if text == "<<" => Tag::Merge,
        b'=' if bytes.len() == 1 => Tag::Value,
        _ => Tag::Str,
    }
}

fn word(text: &str) -> Tag {
    match text {
        "yes" | "Yes" | "YES" | "no" | "No" | "NO" | "true" | "True" | "TRUE" | "false"
        | "False" | "FALSE" | "on" | "On" | "ON" | "off" | "Off" | "OFF" => Tag::Bool,
        "null" | "Null" | "NULL" => Tag::Null,
        _ => Tag::Str,
    }
}

fn number(bytes: &[u8]) -> Tag {
    if is_float(bytes) {
        Tag::Float
    } else if is_int(bytes) {
        Tag::Int
    } else if bytes[0].is_ascii_digit() && is_timestamp(bytes) {
        Tag::Timestamp
    } else {
        Tag::Str
    }
}

/// Returns the length of the longest prefix that consists of such bytes.
fn span(bytes: &[u8], accept: impl Fn(u8) -> bool) -> usize {
    bytes.iter().position(|&byte| !accept(byte)).unwrap_or(bytes.len())
}

fn unsigned(bytes: &[u8]) -> &[u8] {
    match bytes {
        [b'-' | b'+', rest @ ..] => rest,
        all => all,
    }
}

fn digit_or_underscore(byte: u8) -> bool {
    byte.is_ascii_digit() || byte == b'_'
}

/// Matches `:[0-5]?[0-9]`, once or more, and returns what is left.
fn sixtieths(mut bytes: &[u8]) -> Option<&[u8]> {
    let mut any = false;
    while let [b':', rest @ ..] = bytes {
        bytes = match rest {
            [b'0'..=b'5', b'0'..=b'9', rest @ ..] => rest,
            [b'0'..=b'9', rest @ ..] => rest,
            _ => return None,
        };
        any = true;
    }
    any.then_some(bytes)
}

fn is_int(bytes: &[u8]) -> bool {
    match unsigned(bytes) {
        [b'0'] => true,
        [b'0', b'b', rest @ ..] if !rest.is_empty() => {
            span(rest, |byte| matches!(byte, b'0' | b'1' | b'_')) == rest.len()
        }
        [b'0', b'x', rest @ ..] if !rest.is_empty() => {
            span(rest, |byte| byte.is_ascii_hexdigit() || byte == b'_') == rest.len()
        }
        [b'0', rest @ ..] => span(rest, |byte| matches!(byte, b'0'..=b'7' | b'_')) == rest.len(),
        digits @ [b'1'..=b'9', ..] => {
            let rest = &digits[span(digits, digit_or_underscore)..];
            rest.is_empty() || sixtieths(rest).is_some_and(<[u8]>::is_empty)
        }
        _ => false,
    }
}

fn is_float(bytes: &[u8]) -> bool {
    let digits = unsigned(bytes);
    match digits {
        [b'.', b'0'..=b'9', rest @ ..] => {
            // A sign is not accepted before a bare point: `-.5` is text.
            digits.len() == bytes.len() && is_exponent(&rest[span(rest, digit_or_underscore)..])
        }
        [b'.', rest @ ..] => match rest {
            b"inf" | b"Inf" | b"INF" => true,
            b"nan" | b"NaN" | b"NAN" => digits.len() == bytes.len(),
            _ => false,
        },
        [b'0'..=b'9', ..] => {
            let rest = &digits[span(digits, digit_or_underscore)..];
            match rest {
                [b'.', fraction @ ..] => {
                    is_exponent(&fraction[span(fraction, digit_or_underscore)..])
                }
                [b':', ..] => matches!(sixtieths(rest), Some([b'.', fraction @ ..])
                    if span(fraction, digit_or_underscore) == fraction.len()),
                _ => false,
            }
        }
        _ => false,
    }
}

/// Nothing, or an exponent, whose sign is not optional.
fn is_exponent(bytes: &[u8]) -> bool {
    match bytes {
        [] => true,
        [b'e' | b'E', b'-' | b'+', digits @ ..] => {
            !digits.is_empty() && span(digits, |byte| byte.is_ascii_digit()) == digits.len()
        }
        _ => false,
    }
}

fn is_timestamp(bytes: &[u8]) -> bool {
    fn digits(bytes: &[u8], least: usize, most: usize) -> Option<&[u8]> {
        let len = span(bytes, |byte| byte.is_ascii_digit());
        (least..=most).contains(&len).then(|| &bytes[len..])
    }
    fn after(bytes: &[u8], byte: u8) -> Option<&[u8]> {
        bytes.split_first().filter(|(first, _)| **first == byte).map(|(_, rest)| rest)
    }
    fn time(bytes: &[u8]) -> Option<()> {
        let blank = |byte: u8| matches!(byte, b' ' | b'\t');
        let clock = match bytes {
            [b'T' | b't', rest @ ..] => rest,
            [b' ' | b'\t', ..] => &bytes[span(bytes, blank)..],
            _ => return None,
        };
        let minute = after(digits(clock, 1, 2)?, b':')?;
        let second = after(digits(minute, 2, 2)?, b':')?;
        let mut rest = digits(second, 2, 2)?;
        if let Some(fraction) = after(rest, b'.') {
            rest = &fraction[span(fraction, |byte| byte.is_ascii_digit())..];
        }
        if rest.is_empty() {
            return Some(());
        }
        let zone = match &rest[span(rest, blank)..] {
            [] => return None,
            [b'Z', rest @ ..] => rest,
            [b'-' | b'+', offset @ ..] => {
                let rest = digits(offset, 1, 2)?;
                match after(rest, b':') {
                    Some(minutes) => digits(minutes, 2, 2)?,
                    None => rest,
                }
            }
            _ => return None,
        };
        zone.is_empty().then_some(())
    }
    fn whole(bytes: &[u8]) -> Option<()> {
        let month = after(digits(bytes, 4, 4)?, b'-')?;
        let day = after(digits(month, 1, 2)?, b'-')?;
        let rest = digits(day, 1, 2)?;
        if rest.is_empty() { (bytes.len() == 10).then_some(()) } else { time(rest) }
    }
    whole(bytes).is_some()
}

/// Makes the value of a bool. PyYAML looks the lower-cased word up in a dict.
pub(super) fn bool_of(text: &str) -> Result<Value, Error> {
    // The words are ASCII, but Python's `lower` sees more: there is no other spelling, though.
    match text.to_lowercase().as_str() {
        "yes" | "true" | "on" => Ok(Value::Bool(true)),
        "no" | "false" | "off" => Ok(Value::Bool(false)),
        other => Err(Error::python("KeyError", str_repr(other))),
    }
}

/// Makes the value of an int. With Salt's rule, leading zeros mean nothing; by PyYAML's own they
/// mean base 8.
pub(super) fn int_of(text: &str, dialect: Dialect) -> Result<Value, Error> {
    let bytes = text.as_bytes();
    let zeros = bytes.first() == Some(&b'0') && bytes.len() > 1;
    let salt = dialect == Dialect::Salt;
    // The plain case first: no sign rules, no underscores, no overflow.
    if (1..18).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_digit) && (salt || !zeros) {
        return Ok(Value::Int(bytes.iter().fold(0, |sum, byte| sum * 10 + i64::from(byte - b'0'))));
    }
    let text = if salt && zeros && !text.starts_with("0b") && !text.starts_with("0x") {
        match text.trim_start_matches('0') {
            "" => "0",
            rest => rest,
        }
    } else {
        text
    };
    let text = text.replace('_', "");
    let (negative, digits) = match text.as_bytes().first() {
        None => return Err(Error::python("IndexError", "string index out of range")),
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        Some(_) => (false, text.as_str()),
    };
    let int = if digits == "0" {
        BigInt::ZERO
    } else if let Some(digits) = digits.strip_prefix("0b") {
        python_int(digits, 2)?
    } else if let Some(digits) = digits.strip_prefix("0x") {
        python_int(digits, 16)?
    } else if digits.starts_with('0') {
        python_int(digits, 8)?
    } else if digits.is_empty() {
        return Err(Error::python("IndexError", "string index out of range"));
    } else if digits.contains(':') {
        let mut sum = BigInt::ZERO;
        for part in parts(digits)? {
            sum = sum * 60 + python_int(part, 10)?;
        }
        sum
    } else {
        python_int(digits, 10)?
    };
    Ok(Value::from_bigint(if negative { -int } else { int }))
}

/// Splits a sexagesimal number. Adding up is quadratic in the parts, so their number is limited.
fn parts(digits: &str) -> Result<impl Iterator<Item = &str>, Error> {
    const MOST: usize = 500;
    if digits.matches(':').count() > MOST {
        return Err(Error::python("ValueError", "too many parts in a number of base 60"));
    }
    Ok(digits.split(':'))
}

/// Python's `int(text, base)`; the caller has removed the underscores.
fn python_int(text: &str, base: u32) -> Result<BigInt, Error> {
    const MOST_DIGITS: usize = 4300;
    let invalid = || {
        let shown = str_repr(text);
        Error::python("ValueError", format!("invalid literal for int() with base {base}: {shown}"))
    };
    let trimmed = text.trim();
    let (negative, digits) = match trimmed.as_bytes().first() {
        Some(b'-') => (true, &trimmed[1..]),
        Some(b'+') => (false, &trimmed[1..]),
        _ => (false, trimmed),
    };
    // `int('0x1f', 16)` and its like accept the prefix.
    let digits = match (base, digits.as_bytes()) {
        (2, [b'0', b'b' | b'B', ..])
        | (8, [b'0', b'o' | b'O', ..])
        | (16, [b'0', b'x' | b'X', ..]) => &digits[2..],
        _ => digits,
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(base)) {
        return Err(invalid());
    }
    if base == 10 && digits.len() > MOST_DIGITS {
        let count = digits.len();
        return Err(Error::python(
            "ValueError",
            format!(
                "Exceeds the limit ({MOST_DIGITS} digits) for integer string conversion: value has {count} digits; use sys.set_int_max_str_digits() to increase the limit"
            ),
        ));
    }
    let int = BigInt::from_str_radix(digits, base).map_err(|_| invalid())?;
    Ok(if negative { -int } else { int })
}

/// Makes the value of a float.
pub(super) fn float_of(text: &str) -> Result<Value, Error> {
    let text = text.replace('_', "").to_lowercase();
    let (sign, digits) = match text.as_bytes().first() {
        None => return Err(Error::python("IndexError", "string index out of range")),
        Some(b'-') => (-1.0, &text[1..]),
        Some(b'+') => (1.0, &text[1..]),
        Some(_) => (1.0, text.as_str()),
    };
    let float = match digits {
        ".inf" => f64::INFINITY,
        ".nan" => f64::NAN,
        _ if digits.contains(':') => {
            // From the last part on, as PyYAML adds: the rounding is the same then.
            let all = parts(digits)?.map(python_float).collect::<Result<Vec<f64>, Error>>()?;
            let (mut sum, mut base) = (0.0, 1.0);
            for part in all.into_iter().rev() {
                sum += part * base;
                base *= 60.0;
            }
            sum
        }
        _ => python_float(digits)?,
    };
    Ok(Value::Float(sign * float))
}

/// Python's `float(text)`; the caller has removed underscores and capitals.
fn python_float(text: &str) -> Result<f64, Error> {
    // The grammars agree but for surrounding blanks.
    text.trim().parse().map_err(|_| {
        let shown = str_repr(text);
        Error::python("ValueError", format!("could not convert string to float: {shown}"))
    })
}

/// Makes the value of a timestamp, where it is not text.
///
/// differs: a date alone is midnight, and a time with a zone is the same moment in UTC; Python has
/// types of their own for them.
pub(super) fn timestamp_of(text: &str) -> Result<Value, Error> {
    fn parse(text: &str) -> Option<DateTime> {
        let number = |part: Option<&str>| part?.parse::<i16>().ok();
        let (date, time) = match text.find(['T', 't', ' ', '\t']) {
            Some(at) => (&text[..at], text[at + 1..].trim_start()),
            None => (text, ""),
        };
        let mut parts = date.splitn(3, '-');
        let year = number(parts.next())?;
        let month = i8::try_from(number(parts.next())?).ok()?;
        let day = i8::try_from(number(parts.next())?).ok()?;
        let date = jiff::civil::Date::new(year, month, day).ok()?;
        if time.is_empty() {
            return Some(date.to_datetime(jiff::civil::Time::midnight()));
        }
        let (clock, zone) = match time.find(['Z', '+', '-', ' ', '\t']) {
            Some(at) => (&time[..at], time[at..].trim_start()),
            None => (time, ""),
        };
        let (whole, fraction) = clock.split_once('.').unwrap_or((clock, ""));
        let mut parts = whole.splitn(3, ':').map(|part| part.parse::<i8>().ok());
        let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
        let micros: String = fraction.chars().chain("000000".chars()).take(6).collect();
        let nanos = micros.parse::<i32>().ok()? * 1000;
        let time = jiff::civil::Time::new(hour, minute, second, nanos).ok()?;
        let local = date.to_datetime(time);
        let Some(offset) = zone.strip_prefix(['+', '-']) else { return Some(local) };
        let (hours, minutes) = offset.split_once(':').unwrap_or((offset, "0"));
        let minutes = hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?;
        let east = if zone.starts_with('-') { -minutes } else { minutes };
        local.checked_sub(jiff::Span::new().minutes(east)).ok()
    }
    let text = text.trim_end();
    parse(text).map(Value::Timestamp).ok_or_else(|| {
        Error::python("ValueError", format!("{} is no date or time", str_repr(text)))
    })
}

/// Makes the bytes of a `!!binary`: base64 as Python's lenient decoder reads it; Salt adds missing
/// padding first.
pub(super) fn binary_of(text: &str, dialect: Dialect) -> Result<Value, String> {
    if let Some((index, c)) = text.chars().enumerate().find(|(_, c)| !c.is_ascii()) {
        let code = u32::from(c);
        let shown = match code {
            0..=0xff => format!("\\x{code:02x}"),
            0x100..=0xffff => format!("\\u{code:04x}"),
            _ => format!("\\U{code:08x}"),
        };
        // Python names a run of them as a range.
        let run = text.chars().skip(index).take_while(|c| !c.is_ascii()).count();
        let what = match run {
            1 => format!("character '{shown}' in position {index}"),
            _ => format!("characters in position {index}-{}", index + run - 1),
        };
        return Err(format!(
            "failed to convert base64 data into ascii: 'ascii' codec can't encode {what}: ordinal not in range(128)"
        ));
    }
    let padding = if dialect == Dialect::Salt { (4 - text.len() % 4) % 4 } else { 0 };
    let input = text.bytes().chain(std::iter::repeat_n(b'=', padding));
    let bytes =
        decode_base64(input).map_err(|why| format!("failed to decode base64 data: {why}"))?;
    Ok(Value::bytes(bytes))
}

/// Characters outside the alphabet are skipped; the first complete padding ends the data.
fn decode_base64(input: impl Iterator<Item = u8>) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let (mut quad, mut left, mut pads, mut count) = (0u8, 0u8, 0u8, 0usize);
    for byte in input {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' => {
                pads += 1;
                if quad >= 2 && quad + pads >= 4 {
                    return Ok(out);
                }
                continue;
            }
            _ => continue,
        };
        pads = 0;
        count += 1;
        match quad {
            0 => left = six,
            1 => {
                out.push(left << 2 | six >> 4);
                left = six & 0x0f;
            }
            2 => {
                out.push(left << 4 | six >> 2);
                left = six & 0x03;
            }
            _ => out.push(left << 6 | six),
        }
        quad = (quad + 1) % 4;
    }
    match quad {
        0 => Ok(out),
        1 => Err(format!(
            "Invalid base64-encoded string: number of data characters ({count}) cannot be 1 more than a multiple of 4"
        )),
        _ => Err("Incorrect padding".into()),
    }
}
