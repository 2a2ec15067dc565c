//! `out`: data as the outputters would show it, for mails, files and comments.
//!
//! The options are the configuration's, unless the caller gives others. As in Salt the outputter
//! that `--out` or the option `output` names goes before the one asked for here, but for `highstate`. Whether there is a
//! terminal is not known here: colours are used where an option says so.

use halite_output::{Colors, Style, select};
use halite_spec::{Cx, Rest, Result, function, module};
use halite_value::{Dict, Value};

module! {
    /// Data as the outputters would show it.
    "out": out_format, string_format, html_format,
}

/// What a call says about how the data are to look.
struct Look<'a> {
    out: Option<&'a Value>,
    opts: &'a Dict,
    /// For the outputter itself.
    settings: &'a Dict,
}

impl<'a> Look<'a> {
    fn new(cx: &'a Cx, out: Option<&'a Value>, opts: Option<&'a Dict>, rest: &'a Rest) -> Self {
        let own = opts.filter(|opts| !opts.is_empty());
        Self { out, opts: own.unwrap_or(&cx.opts), settings: &rest.kwargs }
    }

    /// Has one of the outputters' forms (plain, without colours, for a web page) write the data.
    fn write(&self, form: fn(&str, &Value, &Style) -> String, data: &Value) -> String {
        let name = self.outputter();
        if halite_output::by_name(&name).is_none()
            && let Some(notice) = select::invalid_notice(&name)
        {
            tracing::error!("{notice}");
        }
        form(&name, data, &self.style())
    }

    fn outputter(&self) -> String {
        // The option counts as soon as it is there; with nothing in it, it asks for the usual.
        let option = self.opts.get("output").map(|name| text_or_empty(&name));
        let out = self.out.map(text_or_empty);
        let request = select::Request { output: option.as_deref(), ..select::Request::default() };
        select::choose(out.as_deref(), &request).to_owned()
    }

    fn style(&self) -> Style {
        let opts = self.opts.shallow_copy();
        for (name, value) in self.settings {
            opts.insert(format!("out.table.{name}"), &value);
        }
        if let Some(columns) = self.settings.get("nested_indent") {
            opts.insert("nested_indent", columns);
        }
        let style = Style::from_opts(&opts, &Dict::new());
        let code = self.settings.get("_retcode").and_then(|code| code.as_int());
        Style { colors: self.colors(&style), retcode: code.unwrap_or(0), ..style }
    }

    fn colors(&self, style: &Style) -> Colors {
        let is_on = |name: &str| self.opts.get(name).is_some_and(|value| value.truthy());
        let color = self.opts.get("color").map(|color| color.truthy());
        if !select::use_color(is_on("force_color"), is_on("no_color"), color, false) {
            Colors::off()
        } else if style.colors.end().is_empty() {
            Colors::new(&Dict::new())
        } else {
            style.colors.clone()
        }
    }
}

/// The name a value gives; nothing is an empty one.
fn text_or_empty(name: &Value) -> String {
    if name.truthy() { name.to_str().to_string() } else { String::new() }
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
    let look = Look::new(cx, out.as_ref(), opts.as_ref(), &kwargs);
    Ok(look.write(halite_output::format, &data))
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
    let look = Look::new(cx, out.as_ref(), opts.as_ref(), &kwargs);
    Ok(look.write(halite_output::string_format, &data))
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
    let look = Look::new(cx, out.as_ref(), opts.as_ref(), &kwargs);
    Ok(look.write(halite_output::html_format, &data))
}
