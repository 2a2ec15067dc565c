//! `no_return`: the notice about minions that stayed silent, in red.

use halite_value::Value;

use crate::{Color, Style, Unfit, python};

pub(crate) fn render(ret: &Value, style: &Style, out: &mut String) -> Result<(), Unfit> {
    notice(ret, style, 0, out)
}

fn notice(ret: &Value, style: &Style, indent: usize, out: &mut String) -> Result<(), Unfit> {
    let line = |color, text: &str, suffix: &str, out: &mut String| {
        out.push_str(style.colors.get(color));
        python::pad(out, indent);
        out.push_str(text);
        out.push_str(style.colors.end());
        out.push_str(suffix);
    };
    match ret {
        Value::Str(text) => text.split('\n').for_each(|text| line(Color::Red, text, "\n", out)),
        Value::Dict(dict) => {
            for (key, value) in python::sorted_entries(dict).ok_or(Unfit)? {
                line(Color::Cyan, &key.to_str(), ":\n", out);
                notice(&value, style, indent + 4, out)?;
            }
        }
        _ => {}
    }
    Ok(())
}
