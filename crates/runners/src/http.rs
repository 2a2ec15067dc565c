//! `http`: ask web servers, from the master.

use halite_spec::{Call, Cx, Error, Rest, Result, function, module};
use halite_value::Value;

module! {
    /// Ask web servers.
    "http": query, update_ca_bundle,
}

/// Ask a web server, and return what it answers. Takes what the execution function takes.
///
/// ```console
/// $ salt-run http.query http://somelink.com/ text=True
/// ```
#[function]
pub fn query(
    cx: &Cx,
    /// The address.
    url: String,
    /// Kept for old callers.
    #[default(true)]
    output: bool,
    rest: Rest,
) -> Result<Value> {
    let given = rest.kwargs.entries().into_iter();
    let kwargs: halite_value::Dict =
        given.filter(|(name, _)| !name.to_str().starts_with("__")).collect();
    if !output && !kwargs.contains("node") {
        tracing::warn!("Output option has been deprecated. Please use --quiet.");
    }
    kwargs.get_or_insert_with("node", || "master".into());
    cx.call("http.query", Call { args: vec![url.into()], kwargs }).map_err(named)
}

/// Fetch the certificates of the authorities anew.
///
/// ```console
/// $ salt-run http.update_ca_bundle
/// ```
#[function]
pub fn update_ca_bundle(
    cx: &Cx,
    /// The file.
    target: Option<String>,
    /// Where from.
    source: Option<String>,
    /// Files to add to it.
    merge_files: Option<Value>,
) -> Result<Value> {
    let kwargs = halite_value::entries! {
        "target" => target, "source" => source, "merge_files" => merge_files,
    };
    cx.call("http.update_ca_bundle", Call { args: Vec::new(), kwargs }).map_err(named)
}

fn named(error: Error) -> Error {
    match error {
        Error::NotFound(name) => Error::failed(format!("`{name}` is not part of Halite yet")),
        other => other,
    }
}
