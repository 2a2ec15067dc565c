//! `jinja`: what a map file says, to see it from the command line.

use halite_spec::{Cx, Error, Result, Template, function, module};
use halite_value::{Value, entries, json};

module! {
    /// What a map file says.
    "jinja": load_map, import_yaml, import_json,
}

/// Renders a line that prints something as JSON, and reads it back.
fn shown(cx: &Cx, line: &str, name: &str) -> Result<Value> {
    let template = Template {
        engine: "jinja".into(),
        text: format!("{line}\n{{{{ {name} | tojson }}}}"),
        source: None,
        saltenv: cx.saltenv(),
        sls: None,
        // Salt renders this from a temporary file; maps begin with `tpldir.split('/')[0]`.
        context: entries! { "tpldir" => ".", "tpldot" => "", "tplfile" => "__salt.tmp.jinja" },
    };
    let text = cx.runtime.render(cx, &template)?;
    json::from_str(text.trim()).map_err(|error| Error::failed(error.to_string()))
}

fn quoted(path: &str) -> String {
    path.replace('\\', "\\\\").replace('"', "\\\"")
}

/// Return a variable of a map file.
///
/// ```console
/// $ salt '*' jinja.load_map path/to/map.jinja myvalue
/// ```
#[function]
pub fn load_map(
    cx: &Cx,
    /// The file, below the file roots.
    path: String,
    /// The variable.
    value: String,
) -> Result<Value> {
    let plain = value.chars().all(|c| c.is_alphanumeric() || c == '_');
    if !plain || value.is_empty() {
        return Err(Error::invalid(format!("'{value}' cannot be the name of a variable")));
    }
    shown(cx, &format!("{{% from \"{}\" import {value} with context %}}", quoted(&path)), &value)
}

/// Return what a YAML file says.
///
/// ```console
/// $ salt '*' jinja.import_yaml path/to/file.yaml
/// ```
#[function]
pub fn import_yaml(
    cx: &Cx,
    /// The file, below the file roots.
    path: String,
) -> Result<Value> {
    shown(cx, &format!("{{% import_yaml \"{}\" as imported %}}", quoted(&path)), "imported")
}

/// Return what a JSON file says.
///
/// ```console
/// $ salt '*' jinja.import_json path/to/file.json
/// ```
#[function]
pub fn import_json(
    cx: &Cx,
    /// The file, below the file roots.
    path: String,
) -> Result<Value> {
    shown(cx, &format!("{{% import_json \"{}\" as imported %}}", quoted(&path)), "imported")
}
