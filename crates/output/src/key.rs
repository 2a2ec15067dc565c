//! `key`: what `salt-key` lists, one heading per state of keys.
//!
//! Data without these headings (the return of another key command) is left to `nested`.

use halite_value::Value;

use crate::{Color, Style, Unfit, python, strip_escapes};

pub(crate) fn render(ret: &Value, style: &Style, out: &mut String) -> Result<(), Unfit> {
    let Value::Dict(lists) = ret else { return Err(Unfit) };
    let end = style.colors.end();
    let mut line = |color: Color, parts: &[&str]| {
        if !out.is_empty() {
            out.push('\n');
        }
        python::pad(out, if style.multi_key { 4 } else { 0 });
        out.push_str(style.colors.get(color));
        parts.iter().for_each(|part| out.push_str(part));
        out.push_str(end);
    };
    for (status, keys) in python::sorted_entries(lists).ok_or(Unfit)? {
        let (title, title_color, color) = heading(status.as_str().ok_or(Unfit)?, style)?;
        line(title_color, &[title, " Keys:"]);
        let shown = |key: &Value| {
            let key = python::decoded(key).unwrap_or_else(|_| key.clone()).to_str();
            if style.strip_colors { strip_escapes(&key).into() } else { key }
        };
        match &keys {
            Value::List(list) => {
                let sorted = python::sorted(list.to_vec(), &|a, b| python::less(a, b));
                sorted.ok_or(Unfit)?.iter().for_each(|key| line(color, &[&shown(key)]));
            }
            Value::Dict(dict) => {
                for (key, value) in python::sorted_entries(dict).ok_or(Unfit)? {
                    line(color, &[&shown(&key), ":  ", &value.to_str()]);
                }
            }
            Value::Tuple(_) | Value::Str(_) | Value::Bytes(_) => {}
            _ => return Err(Unfit),
        }
    }
    Ok(())
}

/// Returns the title, its colour and the colour of the keys under it.
fn heading(status: &str, style: &Style) -> Result<(&'static str, Color, Color), Unfit> {
    let ours = matches!(style.transport.as_str(), "zeromq" | "tcp" | "ws");
    Ok(match (status, ours) {
        ("minions_pre", true) | ("pending", false) => ("Unaccepted", Color::LightRed, Color::Red),
        ("minions", true) | ("accepted", false) => ("Accepted", Color::LightGreen, Color::Green),
        ("minions_denied", true) => ("Denied", Color::LightMagenta, Color::Magenta),
        ("minions_rejected", true) | ("rejected", false) => {
            ("Rejected", Color::LightBlue, Color::Blue)
        }
        ("local", _) => ("Local", Color::LightMagenta, Color::Magenta),
        _ => return Err(Unfit),
    })
}
