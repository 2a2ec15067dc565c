//! `out`: data as the outputters would show it, for mails, files and comments.
//!
//! The options are the configuration's, unless the caller gives others. As in Salt the outputter
//! that `--out` or the option `output` names goes before the one asked for here. Whether there is a
//! terminal is not known here: colours are used where an option says so.

use halite_output::{Colors, Style, select};
use halite_spec::{Cx, Rest, Result, function, module};
use halite_value::{Dict, Value};

module! {
    /// Data as the outputters would show it.
    "out": out_format, string_format, html_format,
}

/// An outputter and how it is to write.
struct Wanted {
    name: String,
    style: Style,
}

impl Wanted {
    fn new(cx: &Cx, out: Option<&Value>, opts: Option<&Dict>, kwargs: &Dict) -> Self {
        let opts = opts.unwrap_or(&cx.opts);
        let on = |name: &str| opts.get(name).is_some_and(|value| value.truthy());
        let color = opts.get("color").map(|color| color.truthy());
        let use_color = select::use_color(on("force_color"), on("no_color"), color, false);
        let given = Dict::new();
        for (name, value) in kwargs {
            given.insert(format!("out.table.{name}"), &value);
            if name.as_str() == Some("nested_indent") {
                given.insert(name, value);
            }
        }
        let all = opts.shallow_copy();
        all.update(&given);
        let mut style = Style::from_opts(&all, &Dict::new());
        if !use_color {
            style.colors = Colors::off();
        } else if style.colors.end().is_empty() {
            style.colors = Colors::new(&Dict::new());
        }
        style.retcode = kwargs.get("_retcode").and_then(|code| code.as_int()).unwrap_or(0);
        let text = |value: Option<&Value>| {
            value.filter(|value| !value.is_null()).map(|value| value.to_str().to_string())
        };
        let (output, out) = (text(opts.get("output").as_ref()), text(out));
        let request = select::Request { output: output.as_deref(), ..select::Request::default() };
        let name = select::choose(out.as_deref(), &request).to_owned();
        if halite_output::by_name(&name).is_none()
            && let Some(notice) = select::invalid_notice(&name)
        {
            tracing::error!("{notice}");
        }
        Self { name, style }
    }
}

/// Return the text an outputter makes of data.
///
/// ```console
/// $ salt web1 out.out_format '{colour: [red, blue]}' out=yaml
/// ```
#[function]
pub fn out_format(
    cx: &Cx,
    /// The data.
    data: Value,
    /// The outputter.
    #[default(Some(Value::from("nested")))]
    out: Option<Value>,
    /// Options instead of the configuration's: `color`, `output_indent` …
    opts: Option<Dict>,
    /// What the outputter takes: `nested_indent`, and the settings of tables.
    kwargs: Rest,
) -> Result<String> {
    let wanted = Wanted::new(cx, out.as_ref(), opts.as_ref(), &kwargs.kwargs);
    Ok(halite_output::format(&wanted.name, &data, &wanted.style))
}

/// Return the text an outputter makes of data, without colours.
///
/// ```console
/// $ salt web1 out.string_format '{colour: [red, blue]}' out=table
/// ```
#[function]
pub fn string_format(
    cx: &Cx,
    /// The data.
    data: Value,
    /// The outputter.
    #[default(Some(Value::from("nested")))]
    out: Option<Value>,
    /// Options instead of the configuration's: `color`, `output_indent` …
    opts: Option<Dict>,
    /// What the outputter takes: `nested_indent`, and the settings of tables.
    kwargs: Rest,
) -> Result<String> {
    let wanted = Wanted::new(cx, out.as_ref(), opts.as_ref(), &kwargs.kwargs);
    Ok(halite_output::string_format(&wanted.name, &data, &wanted.style))
}

/// Return the text an outputter makes of data, with spaces and line ends as HTML has them.
///
/// ```console
/// $ salt web1 out.html_format '{colour: [red, blue]}' out=yaml
/// ```
#[function]
pub fn html_format(
    cx: &Cx,
    /// The data.
    data: Value,
    /// The outputter.
    #[default(Some(Value::from("nested")))]
    out: Option<Value>,
    /// Options instead of the configuration's: `color`, `output_indent` …
    opts: Option<Dict>,
    /// What the outputter takes: `nested_indent`, and the settings of tables.
    kwargs: Rest,
) -> Result<String> {
    let wanted = Wanted::new(cx, out.as_ref(), opts.as_ref(), &kwargs.kwargs);
    Ok(halite_output::html_format(&wanted.name, &data, &wanted.style))
}
