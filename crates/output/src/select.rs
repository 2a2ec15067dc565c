//! Which outputter, and whether in colour: pure decisions for the programs to call.
//!
//! What the user asks for with `--out` wins, except `highstate`, which cannot be forced on data that
//! is no state run; then what the function declares ([`declared_for`], or `out` in the return); then
//! `nested`.

use halite_value::{Value, suggest};
use smol_str::SmolStr;

/// What the user asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    /// `--out`, or `output` in the configuration.
    pub output: Option<&'a str>,
    /// `--static`: all returns at once, so that none of them said how it wants to be shown.
    pub all_at_once: bool,
    /// The function that ran.
    pub fun: &'a str,
    /// `--progress`.
    pub progress: bool,
}

/// Returns the name of the outputter for a return that declares one, or none.
pub fn choose<'a>(declared: Option<&'a str>, request: &Request<'a>) -> &'a str {
    if request.progress {
        return "progress";
    }
    // An empty wish is one, too: it hides what the function declares.
    let wish = request.output.filter(|name| *name != "highstate");
    let name = match wish.or(declared) {
        None | Some("") if request.all_at_once => request.for_all(),
        named => named.unwrap_or_default(),
    };
    match name {
        "" => "nested",
        "text" => "txt",
        name => name,
    }
}

impl<'a> Request<'a> {
    /// Returns the outputter for many returns at once, none of which has a say; empty for the usual.
    fn for_all(&self) -> &'a str {
        let of_states = self.fun == "state" || self.fun.starts_with("state.");
        match self.output {
            Some(name) if !name.is_empty() => name,
            _ if of_states => "highstate",
            _ => "",
        }
    }
}

/// Returns what to log when an outputter is not found and `nested` stands in.
pub fn invalid_notice(name: &str) -> Option<String> {
    // Old minions ask for `grains`, which is long gone and looked like `nested`.
    (name != "grains").then(|| {
        let help = suggest::help(name, crate::names());
        format!("Invalid outputter {name} specified, fall back to nested{help}")
    })
}

/// Returns the outputter that an execution function declares for its returns.
pub fn declared_for(fun: &str) -> Option<&'static str> {
    let (module, function) = fun.split_once('.')?;
    Some(match (module, function) {
        (
            "state",
            "sls" | "sls_id" | "pkg" | "top" | "single" | "highstate" | "template" | "template_str"
            | "apply" | "apply_" | "test" | "request" | "check_request" | "run_request",
        ) => "highstate",
        ("grains", "items" | "item" | "setval") => "nested",
        ("aliases", "rm_alias" | "has_target" | "get_target" | "set_target") => "txt",
        ("aliases", "list_aliases") => "yaml",
        ("alternatives", "display" | "install" | "remove") => "txt",
        _ => return None,
    })
}

/// Takes a runner's return apart: some wrap their data as `{"data": …, "outputter": …}`.
pub fn unwrap_runner(ret: &Value) -> (Value, Option<SmolStr>) {
    if let Some(dict) = ret.as_dict()
        && dict.len() == 2
        && let (Some(data), Some(outputter)) = (dict.get("data"), dict.get("outputter"))
    {
        return (data, outputter.as_str().map(SmolStr::new));
    }
    // With more beside it (`retcode`), the wrapping stays: `highstate` knows it.
    (ret.clone(), ret.get_str("outputter"))
}

/// Tells whether to use colours: forced, forbidden, configured, or by what stdout is.
pub fn use_color(force: bool, forbid: bool, configured: Option<bool>, terminal: bool) -> bool {
    force || (!forbid && !cfg!(windows) && configured.unwrap_or(terminal))
}

#[cfg(test)]
mod tests {
    use halite_value::dict;

    use super::*;

    fn check(declared: &str, output: Option<&str>, expected: &str) {
        let declared = Some(declared).filter(|name| !name.is_empty());
        assert_eq!(choose(declared, &Request { output, ..Request::default() }), expected);
    }

    #[test]
    fn the_user_wins_but_for_highstate() {
        check("", None, "nested");
        check("highstate", None, "highstate");
        check("highstate", Some("json"), "json");
        check("", Some("highstate"), "nested");
        check("txt", Some("highstate"), "txt");
        check("highstate", Some(""), "nested");
        check("", Some("text"), "txt");
    }

    #[test]
    fn static_and_progress() {
        let request = Request { all_at_once: true, fun: "state.apply", ..Request::default() };
        assert_eq!(choose(None, &request), "highstate");
        assert_eq!(choose(None, &Request { fun: "statex.apply", ..request }), "nested");
        let asked = Request { output: Some("highstate"), fun: "x.y", ..request };
        assert_eq!(choose(None, &asked), "highstate");
        assert_eq!(choose(Some("txt"), &Request { progress: true, ..request }), "progress");
    }

    #[test]
    fn declarations_and_wrappings() {
        assert_eq!(declared_for("state.apply"), Some("highstate"));
        assert_eq!(declared_for("state.show_sls"), None);
        let (data, outputter) = unwrap_runner(&dict! { "data" => 1, "outputter" => "highstate" });
        assert_eq!((data, outputter.as_deref()), (Value::Int(1), Some("highstate")));
        let orchestration = dict! { "data" => 1, "outputter" => "highstate", "retcode" => 0 };
        assert_eq!(unwrap_runner(&orchestration), (orchestration, Some("highstate".into())));
        assert_eq!(invalid_notice("grains"), None);
    }

    #[test]
    fn colours() {
        assert!(use_color(true, true, Some(false), false));
        assert!(!use_color(false, true, Some(true), true));
        assert!(use_color(false, false, None, true));
        assert!(!use_color(false, false, None, false));
    }
}
