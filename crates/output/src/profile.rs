//! `profile`: the durations of a state run, as a table, the quickest first.

use halite_value::{Dict, Value, dict, list};

use crate::{Style, Unfit, python, table};

const NAME_MAX: usize = 60;
const DURATION: &str = "duration (ms)";

pub(crate) fn render(ret: &Value, style: &Style, out: &mut String) -> Result<(), Unfit> {
    let mut rows = Vec::new();
    for (_, states) in ret.as_dict().ok_or(Unfit)? {
        for (tag, state) in states.as_dict().ok_or(Unfit)? {
            rows.push(row(tag.as_str().ok_or(Unfit)?, state.as_dict().ok_or(Unfit)?)?);
        }
    }
    let width = rows.iter().map(|row| row.0.len()).fold(DURATION.len(), usize::max);
    let mut rows: Vec<_> =
        rows.into_iter().map(|row| (format!("{:>width$}", row.0), row.1, row.2)).collect();
    // As text: the padding makes that the order of the numbers, but for negative ones.
    rows.sort();
    let rows = rows.into_iter().map(|(duration, name, fun)| list![name, fun, duration]);
    let mut style = style.clone();
    style.table.rows_key = Some("rows".into());
    style.table.labels_key = Some("labels".into());
    let shown =
        dict! { "labels" => list!["name", "mod.fun", DURATION], "rows" => Value::list(rows) };
    table::render(&shown, &style, out)
}

/// Returns duration, name and function of one state.
fn row(tag: &str, state: &Dict) -> Result<(String, String, String), Unfit> {
    let duration = match state.get("duration") {
        None => -1.0,
        Some(Value::Str(text)) => python::parse_float(&text).ok_or(Unfit)?,
        Some(number) => number.as_float().ok_or(Unfit)?,
    };
    let name = state.get("name").or_else(|| state.get("__id__")).unwrap_or_default();
    let name = match &name {
        Value::Null => "<>".to_owned(),
        name if python::len(name.as_str().ok_or(Unfit)?) > NAME_MAX => {
            name.to_str().chars().take(NAME_MAX - 3).collect::<String>() + "..."
        }
        name => name.to_str().into(),
    };
    let module = tag.split("_|-").next().unwrap_or_default();
    let fun = tag.rsplit("_|-").next().unwrap_or_default();
    Ok((format!("{duration:.4}"), name, format!("{module}.{fun}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quickest_first() {
        let ret = dict! { "m" => dict! {
            "file_|-b_|-/etc/b_|-managed" => dict! { "name" => "/etc/b", "duration" => 63.145 },
            "test_|-a_|-a_|-nop" => dict! { "__id__" => "a", "duration" => 1.12 },
        } };
        let mut style = Style::default();
        style.table.separate_rows = false;
        style.table.justify = "left".into();
        style.table.delim = "  ".into();
        style.table.prefix = "".into();
        style.table.suffix = "".into();
        let mut out = String::new();
        render(&ret, &style, &mut out).expect("fits");
        let lines = [
            "    name    mod.fun       duration (ms)",
            "    -----------------------------------",
            "    a       test.nop             1.1200",
            "    /etc/b  file.managed        63.1450",
        ];
        assert_eq!(out, lines.join("\n"));
    }
}
