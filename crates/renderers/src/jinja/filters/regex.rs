//! Filters and helpers for regular expressions.

use std::sync::Arc;

use halite_pyregex::{Flags, PyRegex, escape};
use halite_value::Value;

use super::{Row, words::text_arg};
use crate::jinja::{
    call::Bound,
    error::{Error, type_error},
    eval::{Interp, Result},
    objects::*,
};

pub(crate) const FILTERS: &[Row] = &[
    ("regex_escape", "regex_escape(value)", |interp, args| {
        let text = text_arg(interp, &args.take(0), "decoding to str: need a bytes-like object")?;
        Ok(Value::from(escape(&text)))
    }),
    ("regex_search", "regex_search(txt, rgx, ignorecase=, multiline=)", |interp, args| {
        find(interp, args, false)
    }),
    ("regex_match", "regex_match(txt, rgx, ignorecase=, multiline=)", |interp, args| {
        find(interp, args, true)
    }),
    ("regex_replace", "regex_replace(txt, rgx, val, ignorecase=, multiline=)", replace),
];

#[expect(clippy::needless_pass_by_value, reason = "the shape that `map_err` wants")]
fn failure(error: halite_pyregex::Error) -> Error {
    // `re.error` is called plain `error` in Python.
    Error::other("error", error.to_string())
}

pub(crate) fn compile(
    interp: &mut Interp<'_>,
    pattern: &Value,
    ignore_case: bool,
    multi_line: bool,
) -> Result<Arc<PyRegex>> {
    if let Some(undefined) = undefined(pattern) {
        return Err(interp.undefined_error(undefined));
    }
    let Some(pattern) = text_of(pattern) else {
        return Err(type_error("first argument must be string or compiled pattern"));
    };
    PyRegex::cached(pattern, Flags { ignore_case, multi_line, ..Flags::NONE }).map_err(failure)
}

fn subject(interp: &mut Interp<'_>, value: &Value) -> Result<halite_value::SmolStr> {
    let text = text_arg(interp, value, "expected string or bytes-like object")?;
    interp.burn(text.len() / 8)?;
    Ok(text)
}

fn find(interp: &mut Interp<'_>, args: &mut Bound, at_start: bool) -> Result<Value> {
    let (text, pattern) = (args.take(0), args.take(1));
    let (ignore_case, multi_line) = (args.take(2).truthy(), args.take(3).truthy());
    let regex = compile(interp, &pattern, ignore_case, multi_line)?;
    let text = subject(interp, &text)?;
    let found = if at_start { regex.match_start(&text) } else { regex.search(&text) };
    let Some(found) = found.map_err(failure)? else { return Ok(Value::Null) };
    if regex.groups() == 0 {
        return Ok(Value::tuple([found.as_str()]));
    }
    Ok(Value::tuple(found.groups()))
}

fn replace(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let (text, pattern, to) = (args.take(0), args.take(1), args.take(2));
    let (ignore_case, multi_line) = (args.take(3).truthy(), args.take(4).truthy());
    let regex = compile(interp, &pattern, ignore_case, multi_line)?;
    let to = text_arg(interp, &to, "decoding to str: need a bytes-like object")?;
    let text = subject(interp, &text)?;
    let template = regex.template(&to).map_err(failure)?;
    interp.room(text.len().saturating_add(1).saturating_mul(to.len().saturating_add(1)) / 16)?;
    let (replaced, _) = regex.sub(&template, &text, 0).map_err(failure)?;
    interp.room(replaced.len())?;
    Ok(Value::from(replaced))
}

/// The test `match`.
pub(crate) fn test_match(interp: &mut Interp<'_>, args: &mut Bound) -> Result<bool> {
    let (text, pattern) = (args.take(0), args.take(1));
    let (ignore_case, multi_line) = (args.take(2).truthy(), args.take(3).truthy());
    let regex = compile(interp, &pattern, ignore_case, multi_line)?;
    let text = subject(interp, &text)?;
    Ok(regex.match_start(&text).map_err(failure)?.is_some())
}
