//! `yaml`: block style; a negative indentation is flow style.
//!
//! Never with anchors: Salt copies a return before it prints it, so nothing in it is shared.

use halite_value::{Value, yaml};

use crate::{Indent, Style, Unfit};

pub(crate) fn render(ret: &Value, style: &Style, out: &mut String) -> Result<(), Unfit> {
    let block = yaml::DumpOptions::block();
    let options = match style.output_indent {
        Indent::Unset => block,
        Indent::Spaces(spaces) if spaces >= 0 => {
            yaml::DumpOptions { indent: i32::try_from(spaces).unwrap_or(0), ..block }
        }
        Indent::Spaces(_) => yaml::DumpOptions::flow(),
        _ => return Err(Unfit),
    };
    // What cannot be written shows as nothing, as in Salt.
    if let Ok(text) = yaml::dump(&unshared(ret, 0), &options) {
        out.push_str(&text);
    }
    Ok(())
}

/// Returns a copy in which nothing is shared: what is shared would be written as an anchor.
fn unshared(value: &Value, depth: usize) -> Value {
    match value {
        // Deeper than any data that can be written; a cycle ends here.
        _ if depth > 400 => Value::Null,
        Value::List(list) => Value::list(list.into_iter().map(|item| unshared(&item, depth + 1))),
        Value::Dict(dict) => {
            let entries = dict.into_iter().map(|(key, value)| (key, unshared(&value, depth + 1)));
            Value::Dict(entries.collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use halite_value::{dict, list};

    use super::*;

    #[test]
    fn no_anchors() {
        let shared = list![1];
        let mut out = String::new();
        let ret = dict! { "a" => &shared, "b" => &shared };
        render(&ret, &Style::default(), &mut out).expect("yaml");
        assert_eq!(out, "a:\n- 1\nb:\n- 1\n");
    }
}
