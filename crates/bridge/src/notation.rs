//! Values on the way to Python and back: JSON, with marks for what JSON does not have.
//!
//! Both sides read and write it fast without a library: Python's `json` is C, and ours is the one of
//! the value crate. A module must get and give exactly what it would in Salt, where nothing travels;
//! so tuples, sets, bytes, dates and dicts with other keys than text are an object with one member whose
//! name begins with a zero byte, which no real key does (a dict with such a key is sent as pairs):
//!
//! | value | written as |
//! |---|---|
//! | tuple | `{"\u0000t": [item, …]}` |
//! | set | `{"\u0000s": [item, …]}` |
//! | bytes | `{"\u0000b": "each byte as the character of that number"}` |
//! | date | `{"\u0000d": "2026-11-15T01:02:03.456000"}` |
//! | dict | `{"\u0000p": [[key, value], …]}` |
//!
//! Numbers are Python's: integers of any size, `NaN`, `Infinity`. Objects of templates (functions,
//! macros) become their text. The other side is `python/halite_wire.py`.
// differs: Salt's minion cannot send a duration, a fraction or a member of an enumeration that a user's
// function returns, and `salt-call` shows nothing in its place; here it is its text.

use halite_value::{
    DateTime, Dict, Key, List, Value,
    json::{self, Style},
    set::Set,
};

/// Levels of JSON, as the other side has it; its reader's limit is a little higher.
const MAX_DEPTH: usize = 480;
const STYLE: Style = Style {
    indent: None,
    sort_keys: false,
    ensure_ascii: false,
    bytes_as_text: false,
    item_separator: ",",
    key_separator: ":",
};

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Json(#[from] json::Error),
    #[error("{0}")]
    Write(#[from] json::WriteError),
    #[error("nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    #[error("a {0} cannot be a key")]
    Key(String),
    #[error("{0:?} is no mark, or what follows it is not what it says")]
    Mark(String),
    #[error("more than 2 GiB")]
    TooLong,
}

/// Writes a value after what a buffer holds already.
pub fn write(value: &Value, out: &mut String) -> Result<(), Error> {
    write_at(value, 0, out)
}

fn write_at(value: &Value, depth: usize, out: &mut String) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(Error::TooDeep);
    }
    match value {
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::BigInt(_)
        | Value::Float(_)
        | Value::Str(_) => json::write(value, &STYLE, out)?,
        Value::Bytes(bytes) => {
            let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
            marked('b', out, |out| Ok(json::write(&text.into(), &STYLE, out)?))?;
        }
        Value::List(list) => write_items(&list.to_vec(), depth, out)?,
        Value::Tuple(items) => marked('t', out, |out| write_items(items, depth + 1, out))?,
        Value::Dict(dict) => write_dict(dict, depth, out)?,
        Value::Timestamp(time) => {
            let text = time.strftime("%Y-%m-%dT%H:%M:%S.%6f").to_string();
            marked('d', out, |out| Ok(json::write(&text.into(), &STYLE, out)?))?;
        }
        Value::Object(object) => match object.as_any().downcast_ref::<Set>() {
            Some(set) => {
                let items: Vec<Value> = set.to_vec().into_iter().map(Key::into_value).collect();
                marked('s', out, |out| write_items(&items, depth + 1, out))?;
            }
            None => json::write(&object.str().into(), &STYLE, out)?,
        },
    }
    Ok(())
}

fn marked(
    mark: char,
    out: &mut String,
    write: impl FnOnce(&mut String) -> Result<(), Error>,
) -> Result<(), Error> {
    out.push_str("{\"\\u0000");
    out.push(mark);
    out.push_str("\":");
    write(out)?;
    out.push('}');
    Ok(())
}

fn write_items(items: &[Value], depth: usize, out: &mut String) -> Result<(), Error> {
    listed(items, out, |item, out| write_at(item, depth + 1, out))
}

fn listed<T>(
    items: &[T],
    out: &mut String,
    write: impl Fn(&T, &mut String) -> Result<(), Error>,
) -> Result<(), Error> {
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(item, out)?;
    }
    out.push(']');
    Ok(())
}

fn write_dict(dict: &Dict, depth: usize, out: &mut String) -> Result<(), Error> {
    let entries = dict.entries();
    let is_plain = |key: &Key| matches!(key.value(), Value::Str(text) if !text.starts_with('\0'));
    if !entries.iter().all(|(key, _)| is_plain(key)) {
        return marked('p', out, |out| {
            listed(&entries, out, |(key, item), out| {
                out.push('[');
                write_at(key.value(), depth + 3, out)?;
                out.push(',');
                write_at(item, depth + 3, out)?;
                out.push(']');
                Ok(())
            })
        });
    }
    out.push('{');
    for (index, (key, item)) in entries.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        json::write(key.value(), &STYLE, out)?;
        out.push(':');
        write_at(item, depth + 1, out)?;
    }
    out.push('}');
    Ok(())
}

/// Reads exactly one value.
pub fn from_slice(bytes: &[u8]) -> Result<Value, Error> {
    // Lone surrogates, which Python's file names may have, are no text here.
    let text = String::from_utf8_lossy(bytes);
    let value = json::from_str(&text)?;
    match text.contains("{\"\\u0000") {
        true => revived(value),
        false => Ok(value),
    }
}

/// Turns marks into what they stand for. The reader of JSON has bounded the depth.
fn revived(value: Value) -> Result<Value, Error> {
    match &value {
        Value::List(list) => revived_items(list),
        Value::Dict(dict) => {
            let entries = dict.entries();
            if let [(key, item)] = entries.as_slice()
                && let Some(mark) = key.value().as_str().and_then(|key| key.strip_prefix('\0'))
            {
                return meant(mark, item).ok_or_else(|| Error::Mark(mark.to_owned()))?;
            }
            for (key, item) in entries {
                dict.insert(key, revived(item)?);
            }
            Ok(value)
        }
        _ => Ok(value),
    }
}

fn revived_items(list: &List) -> Result<Value, Error> {
    let items = list.to_vec().into_iter().map(revived).collect::<Result<Vec<_>, _>>()?;
    Ok(List::from(items).into())
}

/// `None`: not what a mark says it is.
fn meant(mark: &str, item: &Value) -> Option<Result<Value, Error>> {
    Some(match (mark, item) {
        ("b", Value::Str(text)) => {
            let bytes = text.chars().map(|c| u8::try_from(u32::from(c)).ok());
            Ok(Value::bytes(bytes.collect::<Option<Vec<u8>>>()?))
        }
        ("d", Value::Str(text)) => Ok(Value::Timestamp(text.parse::<DateTime>().ok()?)),
        ("t", Value::List(list)) => {
            let items = list.to_vec().into_iter().map(revived).collect::<Result<Vec<_>, _>>();
            items.map(|items| Value::Tuple(items.into()))
        }
        ("s", Value::List(list)) => {
            let key =
                |item: Value| Key::try_from(revived(item)?).map_err(|error| Error::Key(error.0));
            list.to_vec().into_iter().map(key).collect::<Result<Set, _>>().map(Value::from)
        }
        ("p", Value::List(list)) => {
            let made = Dict::new();
            for pair in list.to_vec() {
                let [key, item] = <[Value; 2]>::try_from(pair.items_of_sequence()?).ok()?;
                let put = || {
                    let key = Key::try_from(revived(key)?).map_err(|error| Error::Key(error.0))?;
                    made.insert(key, revived(item)?);
                    Ok(())
                };
                if let Err(error) = put() {
                    return Some(Err(error));
                }
            }
            Ok(made.into())
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use halite_value::{dict, list};

    use super::*;

    fn written(value: &Value) -> String {
        let mut out = String::new();
        write(value, &mut out).expect("sendable");
        out
    }

    fn round_trip(value: &Value) {
        let text = written(value);
        assert_eq!(from_slice(text.as_bytes()).expect("own text").repr(), value.repr(), "{text}");
    }

    #[test]
    fn everything_keeps_its_type() {
        let big = |text: &str| Value::from_bigint(text.parse().expect("digits"));
        round_trip(&dict! {
            "text" => "é\u{7f}\0\"\\\n", "none" => (), 7 => true,
            Key::try_from(Value::tuple([1, 2])).unwrap() => 1.5,
            "bytes" => Value::bytes([0xff, 0, b'"']), "tuple" => Value::tuple(["a"]),
            "list" => list![0, -1, i64::MAX, i64::MIN, 1_i64 << 40, -(1_i64 << 33)],
            "big" => big("-123456789012345678901234567890"),
            "floats" => list![0.1, -0.0, 1e300, f64::INFINITY, f64::NEG_INFINITY, f64::NAN],
            "time" => DateTime::constant(2026, 11, 15, 1, 2, 3, 456_000_000),
            "set" => Value::from(["b", "a"].map(Key::from).into_iter().collect::<Set>()),
            "marks" => dict! { "\0t" => list![1] }, "empty" => list![dict! {}, Value::tuple::<Value>([])],
        });
    }

    #[test]
    fn plain_data_is_plain_json() {
        let value = dict! { "a" => list![1, (), 2.5, true], "é" => dict! { "b" => "x" } };
        assert_eq!(written(&value), r#"{"a":[1,null,2.5,true],"é":{"b":"x"}}"#);
        assert_eq!(written(&Value::tuple([2])), r#"{"\u0000t":[2]}"#);
        assert_eq!(
            written(&dict! { 1 => Value::bytes(*b"\xe9") }),
            r#"{"\u0000p":[[1,{"\u0000b":"é"}]]}"#
        );
    }

    #[test]
    fn depth_is_counted_as_it_is_written() {
        let wrapped = |levels: usize, wrap: fn(Value) -> Value| {
            (0..levels).fold(Value::Null, |inner, _| wrap(inner))
        };
        let check = |levels: usize, wrap: fn(Value) -> Value| {
            let value = wrapped(levels, wrap);
            round_trip(&value);
            let deeper = wrapped(levels + 1, wrap);
            assert_eq!(write(&deeper, &mut String::new()), Err(Error::TooDeep), "{levels}");
        };
        check(480, |inner| Value::list([inner]));
        check(480, |inner| dict! { "a" => inner });
        check(240, |inner| Value::tuple([inner]));
        check(160, |inner| dict! { 1 => inner });
    }

    #[test]
    fn what_is_no_message_is_an_error() {
        let read = |text: &str| from_slice(text.as_bytes());
        assert!(matches!(read("[1"), Err(Error::Json(_))));
        assert!(matches!(read("[1] 2"), Err(Error::Json(_))));
        assert!(matches!(read(&"[".repeat(100_000)), Err(Error::Json(_))));
        assert!(matches!(read(r#"{"\u0000x": 1}"#), Err(Error::Mark(_))));
        assert!(matches!(read(r#"{"\u0000b": "Ā"}"#), Err(Error::Mark(_))));
        assert!(matches!(read(r#"{"\u0000p": [[1]]}"#), Err(Error::Mark(_))));
        assert!(matches!(read(r#"{"\u0000p": [[[], 1]]}"#), Err(Error::Key(_))));
        assert!(matches!(read(r#"{"\u0000s": [[]]}"#), Err(Error::Key(_))));
        assert_eq!(read("[\"\\udc80\"]").unwrap(), list!["\u{fffd}"]);
    }
}
