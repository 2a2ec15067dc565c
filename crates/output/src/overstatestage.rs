//! `overstatestage`: the stages of an overstate run, each with its settings.

use std::fmt::Write as _;

use halite_value::Value;

use crate::{Color, Style, Unfit, python};

pub(crate) fn render(ret: &Value, style: &Style, out: &mut String) -> Result<(), Unfit> {
    let (blue, end) = (style.colors.get(Color::LightBlue), style.colors.end());
    for stages in ret.items_of_sequence().ok_or(Unfit)? {
        for (name, stage) in stages.as_dict().ok_or(Unfit)? {
            writeln!(out, "{blue}{name}: {end}").map_err(|_| Unfit)?;
            let settings = python::sorted_entries(stage.as_dict().ok_or(Unfit)?).ok_or(Unfit)?;
            for (key, value) in settings {
                writeln!(out, "    {blue}{key}: {value}{end}").map_err(|_| Unfit)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use halite_value::{dict, list};

    use super::*;

    #[test]
    fn a_stage() {
        let mut out = String::new();
        let stage = dict! { "sls" => list!["nginx"], "match" => "web*" };
        render(&list![dict! { "web" => stage }], &Style::default(), &mut out).expect("stages");
        assert_eq!(out, "web: \n    match: web*\n    sls: ['nginx']\n");
    }
}
