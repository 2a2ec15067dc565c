//! Slots: `__slot__:salt:test.echo(text).key ~ suffix` is replaced by a function's return just
//! before the state runs.
//!
//! Looked for in texts, in the values of dicts, and in the items of lists and the dicts therein;
//! deeper ones stay, as in Salt. A malformed slot stays as it is.

use halite_spec::{Call, Cx, Result};
use halite_value::{Dict, Value, lookup};

const MARK: &str = "__slot__:";

/// Fills every slot of a call.
pub(crate) fn fill(cx: &Cx, call: Call) -> Result<Call> {
    if !has_slot(&call) {
        return Ok(call);
    }
    let args = call.args.iter().map(|arg| fill_value(cx, arg)).collect::<Result<_>>()?;
    let kwargs = Dict::new();
    for (name, value) in &call.kwargs {
        kwargs.insert(name, fill_value(cx, &value)?);
    }
    Ok(Call { args, kwargs })
}

/// Almost no state has slots: a look costs less than copying every argument.
fn has_slot(call: &Call) -> bool {
    fn within(value: &Value, depth: usize) -> bool {
        match value {
            Value::Str(text) => text.starts_with(MARK),
            Value::Dict(dict) if depth < 3 => dict.read().values().any(|v| within(v, depth + 1)),
            Value::List(list) if depth < 2 => list.read().iter().any(|v| within(v, depth + 1)),
            _ => false,
        }
    }
    call.args.iter().any(|arg| within(arg, 0))
        || call.kwargs.read().values().any(|value| within(value, 0))
}

fn fill_value(cx: &Cx, value: &Value) -> Result<Value> {
    match value {
        Value::Str(_) => fill_text(cx, value),
        Value::Dict(dict) => fill_dict(cx, dict),
        Value::List(list) => {
            let items = list.into_iter().map(|item| match &item {
                Value::Str(_) => fill_text(cx, &item),
                Value::Dict(dict) => fill_dict(cx, dict),
                _ => Ok(item),
            });
            Ok(items.collect::<Result<Vec<_>>>()?.into())
        }
        other => Ok(other.clone()),
    }
}

fn fill_dict(cx: &Cx, dict: &Dict) -> Result<Value> {
    let filled = Dict::new();
    for (key, value) in dict {
        filled.insert(key, fill_text(cx, &value)?);
    }
    Ok(filled.into())
}

fn fill_text(cx: &Cx, value: &Value) -> Result<Value> {
    let Some(text) = value.as_str().filter(|text| text.starts_with(MARK)) else {
        return Ok(value.clone());
    };
    let Some(slot) = text.strip_prefix("__slot__:salt:").and_then(Slot::parse) else {
        tracing::warn!("Malformed slot: {text}");
        return Ok(value.clone());
    };
    if !cx.runtime.has(cx, &slot.function) {
        tracing::warn!("Malformed slot: {text}: there is no function {}", slot.function);
        return Ok(value.clone());
    }
    let mut result = cx.call(&slot.function, slot.call)?;
    if let Some(path) = &slot.path {
        result = lookup::traverse(&result, path, ".").unwrap_or_default();
    }
    Ok(match (&slot.suffix, &result) {
        (Some(suffix), Value::Str(text)) => format!("{text}{suffix}").into(),
        _ => result,
    })
}

/// A parsed slot.
struct Slot {
    function: String,
    call: Call,
    path: Option<String>,
    suffix: Option<String>,
}

impl Slot {
    fn parse(text: &str) -> Option<Self> {
        let open = text.find('(')?;
        let function = text[..open].trim().to_owned();
        let (args, rest) = split_call(&text[open + 1..])?;
        let call = Call::default();
        let mut positional = Vec::new();
        for arg in args {
            match arg.split_once('=') {
                Some((name, value)) if is_name(name.trim()) => {
                    call.kwargs.insert(name.trim(), literal(value));
                }
                _ => positional.push(literal(&arg)),
            }
        }
        let (path, suffix) = match rest.split_once('~') {
            Some((path, suffix)) => (path, Some(unquoted(suffix.trim()).to_owned())),
            None => (rest, None),
        };
        let path = path.trim().strip_prefix('.').map(|path| path.trim().to_owned());
        Some(Self { function, call: Call { args: positional, kwargs: call.kwargs }, path, suffix })
    }
}

/// Splits `a, 'b, c')rest` at the commas outside of quotes and brackets.
fn split_call(text: &str) -> Option<(Vec<String>, &str)> {
    let mut args = Vec::new();
    let mut arg = String::new();
    let mut quote = None;
    let mut depth = 0usize;
    for (index, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')') if depth == 0 => {
                if !arg.trim().is_empty() {
                    args.push(arg.trim().to_owned());
                }
                return Some((args, &text[index + 1..]));
            }
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                args.push(std::mem::take(&mut arg).trim().to_owned());
                continue;
            }
            _ => {}
        }
        arg.push(c);
    }
    None
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

fn unquoted(text: &str) -> &str {
    let quoted = ['"', '\'']
        .iter()
        .find_map(|quote| text.strip_prefix(*quote).and_then(|text| text.strip_suffix(*quote)));
    quoted.unwrap_or(text)
}

/// Reads an argument: quoted text, a literal YAML understands, or bare text.
fn literal(text: &str) -> Value {
    let text = text.trim();
    let bare = unquoted(text);
    if bare.len() != text.len() {
        return bare.into();
    }
    halite_value::yaml::load_str(text).unwrap_or_else(|_| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, function: &str, args: &str, path: Option<&str>, suffix: Option<&str>) {
        let slot = Slot::parse(text).expect(text);
        assert_eq!(slot.function, function);
        assert_eq!(format!("{:?} {:?}", slot.call.args, slot.call.kwargs), args);
        assert_eq!((slot.path.as_deref(), slot.suffix.as_deref()), (path, suffix));
    }

    #[test]
    fn slots_are_read_as_calls() {
        check("test.echo(hi)", "test.echo", "['hi'] {}", None, None);
        check("a.b(1, 'x, y', k=[1, 2])", "a.b", "[1, 'x, y'] {'k': [1, 2]}", None, None);
        check("a.b().c.d ~ /tail", "a.b", "[] {}", Some("c.d"), Some("/tail"));
        check("a.b() ~ ' x'", "a.b", "[] {}", None, Some(" x"));
        assert!(Slot::parse("no call").is_none());
        assert!(Slot::parse("a.b(1, ").is_none());
    }
}
