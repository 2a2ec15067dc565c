//! `txt`: lines as a command on the minion would print them, each after its minion's name.

use std::fmt::Write as _;

use halite_value::Value;

use crate::{Style, Unfit, pprint, python};

pub(crate) fn render(ret: &Value, _: &Style, out: &mut String) -> Result<(), Unfit> {
    let Value::Dict(minions) = ret else {
        match ret {
            Value::Str(text) => out.push_str(text),
            other => out.push_str(&pprint::pformat(other, 1)),
        }
        out.push('\n');
        return Ok(());
    };
    for (minion, ret) in minions {
        let mut line = |text: &str| writeln!(out, "{minion}: {text}").map_err(|_| Unfit);
        match &ret {
            Value::Str(text) => python::lines(text).try_for_each(line)?,
            Value::Bytes(bytes) => {
                byte_lines(bytes).try_for_each(|bytes| line(&Value::bytes(bytes).repr()))?;
            }
            other => line(&other.to_str())?,
        }
    }
    Ok(())
}

/// Bytes know two line ends only.
fn byte_lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.iter().position(|b| matches!(b, b'\n' | b'\r')).unwrap_or(rest.len());
        let (line, after) = rest.split_at(end);
        let skip = if after.starts_with(b"\r\n") { 2 } else { 1 };
        rest = after.get(skip..).unwrap_or_default();
        Some(line)
    })
}
