//! One state on one line, for `terse` and the modes that use it.

use halite_value::Value;

use super::{State, joined};
use crate::{Color, Style, Tabular, Unfit, pyformat};

pub(super) fn line(state: &State<'_>, style: &Style) -> Result<String, Unfit> {
    let result = match state.result {
        Value::Bool(false) => "Failed",
        Value::Null => "Differs",
        _ if state.changes.truthy() => "Changed",
        _ => "Clean",
    };
    let last = state.parts.last().map_or("", smol_str::SmolStr::as_str);
    let args = [
        Value::from(style.colors.get(state.color)),
        Value::from(state.part(2)?),
        Value::from(state.part(0)?),
        Value::from(last),
        Value::from(result),
        Value::from(style.colors.end()),
        Value::Dict(state.ret.clone()),
    ];
    let timed = style.state_output_profile && state.ret.contains("start_time");
    let template = match &style.state_tabular {
        Tabular::Format(format) => format.to_string(),
        Tabular::Yes => {
            let times = "{6[start_time]!s} [{6[duration]!s:>7} ms] ";
            let times = if timed { times } else { "" };
            let mut warnings = warnings(state, style)?;
            if !warnings.is_empty() {
                warnings.push('\n');
            }
            warnings + "{0}" + times + "{2:>10}.{3:<10} {4:7}   Name: {1}{5}"
        }
        Tabular::No => {
            let times = " - Started: {6[start_time]!s} - Duration: {6[duration]!s} ms";
            let times = if timed { times } else { "" };
            let line = " {0} Name: {1} - Function: {2}.{3} - Result: {4}";
            warnings(state, style)? + line + times + "{5}"
        }
    };
    pyformat::format(&template, &args)
}

/// Returns the warnings as part of the format: Salt too fills in braces that stand in a warning.
fn warnings(state: &State<'_>, style: &Style) -> Result<String, Unfit> {
    let Some(warnings) = state.ret.get("warnings") else { return Ok(String::new()) };
    let (red, end) = (style.colors.get(Color::LightRed), style.colors.end());
    Ok(format!("{red}Warnings:\n{}{end}", joined(&warnings)?))
}
