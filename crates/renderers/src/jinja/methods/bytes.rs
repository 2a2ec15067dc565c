//! Methods of `bytes`.
//!
//! Most do what the method of `str` does. Bytes are turned into text byte by byte (Latin-1), and
//! the result back; only what is special to bytes is written here.

use std::sync::Arc;

use halite_value::{SmolStr, Value};

use super::{Pos, str};
use crate::jinja::{
    call::{Args, Signature},
    error::{Class, Error, type_error},
    eval::{Interp, Result},
    objects::text_of,
};

/// Tells whether the type has this method. A `match`, because constants compare without a call.
pub(crate) fn is_method(name: &str) -> bool {
    matches!(
        name,
        "decode"
            | "hex"
            | "capitalize"
            | "center"
            | "count"
            | "endswith"
            | "expandtabs"
            | "find"
            | "index"
            | "isalnum"
            | "isalpha"
            | "isascii"
            | "isdigit"
            | "islower"
            | "isspace"
            | "istitle"
            | "isupper"
            | "join"
            | "ljust"
            | "lower"
            | "lstrip"
            | "partition"
            | "removeprefix"
            | "removesuffix"
            | "replace"
            | "rfind"
            | "rindex"
            | "rjust"
            | "rpartition"
            | "rsplit"
            | "rstrip"
            | "split"
            | "splitlines"
            | "startswith"
            | "strip"
            | "upper"
    )
}

pub(crate) fn call(
    interp: &mut Interp<'_>,
    bytes: &Arc<[u8]>,
    name: &str,
    args: Args,
) -> Result<Value> {
    match name {
        "decode" => {
            let mut bound = Signature::new("decode(encoding=, errors=)").bind(args)?;
            let text = |value: Option<Value>, default: &str| {
                value
                    .as_ref()
                    .and_then(text_of)
                    .map_or_else(|| default.to_owned(), ToString::to_string)
            };
            let encoding = text(bound.opt(0), "utf-8");
            let errors = text(bound.opt(1), "strict");
            decode(bytes, &encoding, &errors).map(Value::from)
        }
        "hex" => {
            Pos::new("bytes", "hex", args, 0, 2)?;
            Ok(Value::from(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()))
        }
        _ => {
            let prefixed = matches!(name, "startswith" | "endswith");
            if let Some(first) =
                args.positional.first().filter(|first| prefixed && text_of(first).is_some())
            {
                let got = first.type_name();
                return Err(type_error(format!(
                    "{name} first arg must be bytes or a tuple of bytes, not {got}"
                )));
            }
            let args = Args {
                positional: args.positional.iter().map(to_text).collect::<Result<_>>()?,
                keyword: args.keyword,
            };
            let text = SmolStr::from(latin(bytes));
            str::call(interp, &text, name, args).map(to_bytes)
        }
    }
}

fn latin(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

fn to_text(value: &Value) -> Result<Value> {
    Ok(match value {
        Value::Bytes(bytes) => Value::from(latin(bytes)),
        Value::Str(_) => return Err(type_error("a bytes-like object is required, not 'str'")),
        Value::List(_) | Value::Tuple(_) => {
            let items = value.items_of_sequence().unwrap_or_default();
            let items: Result<Vec<Value>> = items.iter().map(to_text).collect();
            if matches!(value, Value::Tuple(_)) {
                Value::tuple(items?)
            } else {
                Value::from(items?)
            }
        }
        other => other.clone(),
    })
}

fn to_bytes(value: Value) -> Value {
    match value {
        Value::Str(text) => Value::bytes(text.chars().map(|c| c as u8).collect::<Vec<u8>>()),
        Value::List(list) => Value::list(list.to_vec().into_iter().map(to_bytes)),
        Value::Tuple(items) => Value::tuple(items.iter().cloned().map(to_bytes)),
        other => other,
    }
}

pub(crate) fn decode(bytes: &[u8], encoding: &str, errors: &str) -> Result<String> {
    let own = match encoding.to_lowercase().replace(['_', ' '], "-").as_str() {
        "utf-8" | "utf8" | "u8" => "utf-8",
        "ascii" | "us-ascii" | "646" => "ascii",
        "latin-1" | "latin1" | "iso-8859-1" | "iso8859-1" | "l1" => return Ok(latin(bytes)),
        _ => return Err(Error::new(Class::LookupError, format!("unknown encoding: {encoding}"))),
    };
    let bad = match std::str::from_utf8(bytes) {
        Ok(text) if own == "utf-8" || text.is_ascii() => return Ok(text.to_owned()),
        Ok(_) => bytes.iter().position(|byte| !byte.is_ascii()).unwrap_or(0),
        Err(error) if own == "utf-8" => error.valid_up_to(),
        Err(_) => bytes.iter().position(|byte| !byte.is_ascii()).unwrap_or(0),
    };
    match errors {
        "ignore" if own == "ascii" => {
            Ok(bytes.iter().filter(|byte| byte.is_ascii()).map(|byte| char::from(*byte)).collect())
        }
        "replace" if own == "ascii" => Ok(bytes
            .iter()
            .map(|byte| if byte.is_ascii() { char::from(*byte) } else { '\u{fffd}' })
            .collect()),
        "ignore" => Ok(String::from_utf8_lossy(bytes).replace('\u{fffd}', "")),
        "replace" => Ok(String::from_utf8_lossy(bytes).into_owned()),
        _ => {
            let byte = bytes.get(bad).copied().unwrap_or_default();
            let reason = match own {
                "ascii" => "ordinal not in range(128)",
                _ if byte >= 0xc2 && bad + 1 >= bytes.len() => "unexpected end of data",
                _ if byte >= 0xc2 => "invalid continuation byte",
                _ => "invalid start byte",
            };
            Err(Error::new(
                Class::UnicodeDecodeError,
                format!("'{own}' codec can't decode byte 0x{byte:02x} in position {bad}: {reason}"),
            ))
        }
    }
}
