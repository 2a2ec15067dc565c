//! `newline_values_only`: the values of all minions, one per line, without names.

use halite_value::Value;

use crate::{Style, Unfit};

pub(crate) fn render(ret: &Value, _: &Style, out: &mut String) -> Result<(), Unfit> {
    let Value::Dict(minions) = ret else { return Err(Unfit) };
    let mut values = Vec::new();
    for ret in minions.values() {
        match ret {
            Value::List(list) => values.extend(list.to_vec()),
            other => values.push(other),
        }
    }
    let lines: Vec<_> = values.iter().map(Value::to_str).collect();
    out.push_str(&lines.join("\n"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use halite_value::{dict, list};

    use super::*;

    #[test]
    fn lists_are_taken_apart() {
        let mut out = String::new();
        let ret = dict! { "a" => list!["x", 1], "b" => 8, "c" => dict! { "k" => 1 } };
        render(&ret, &Style::default(), &mut out).expect("a dict");
        assert_eq!(out, "x\n1\n8\n{'k': 1}");
    }
}
