//! Showing returns: which outputter, in which style, and where to.

use std::io::{self, IsTerminal as _, Write as _};

use halite_output::{Colors, Style, select};
use halite_value::{Dict, Value, entries};

use crate::{programs::Context, terminal};

/// Writes a return the way the command line and the function want it.
pub fn show(
    cx: &Context,
    ret: &Value,
    fun: &str,
    declared: Option<&str>,
    retcode: i64,
) -> io::Result<()> {
    show_at_once(cx, ret, fun, declared, retcode, false)
}

/// As [`show`]; told whether these are all returns at once (`--static`).
pub fn show_at_once(
    cx: &Context,
    ret: &Value,
    fun: &str,
    declared: Option<&str>,
    retcode: i64,
    all_at_once: bool,
) -> io::Result<()> {
    let opts = cx.opts.values();
    let mut style = Style::from_opts(opts, &Dict::new());
    style.retcode = retcode;
    let asked = |name: &str| cx.parsed.str(name).filter(|text| !text.is_empty());
    let file = asked("output_file");
    let use_color = select::use_color(
        cx.parsed.bool("force_color"),
        cx.parsed.bool("no_color"),
        opts.get("color").and_then(|color| color.as_bool()),
        file.is_none() && io::stdout().is_terminal(),
    );
    if !use_color {
        style.colors = Colors::off();
    } else if style.colors.end().is_empty() {
        style.colors = Colors::new(&Dict::new());
    }
    let output = asked("output");
    let request = select::Request { output: output.as_deref(), all_at_once, fun, progress: false };
    let name = select::choose(declared.or_else(|| select::declared_for(fun)), &request);
    let text = match users_outputter(opts, name, ret, retcode) {
        Some(shown) => shown + "\n",
        None => {
            if halite_output::by_name(name).is_none()
                && let Some(notice) = select::invalid_notice(name)
            {
                tracing::error!("{notice}");
            }
            halite_output::display(name, ret, &style)
        }
    };
    match file {
        Some(path) => {
            let append = cx.parsed.bool("output_file_append");
            let mut options = std::fs::OpenOptions::new();
            options.create(true).write(true).append(append).truncate(!append);
            options.open(path)?.write_all(text.as_bytes())
        }
        None => terminal::try_out(&text),
    }
}

/// Shows a return by an outputter of the user's, if there is one of that name.
fn users_outputter(opts: &Dict, name: &str, ret: &Value, retcode: i64) -> Option<String> {
    opts.get("extension_modules").filter(Value::truthy)?;
    let settings = halite_bridge::Settings::from_opts(opts);
    if !settings.has_files("output") {
        return None;
    }
    let bridge = halite_bridge::Bridge::new(settings, Dict::new());
    let empty = Dict::new();
    let session = halite_bridge::Session {
        opts,
        grains: &empty,
        pillar: &empty,
        low: &empty,
        jid: "",
        saltenv: "base",
        extra: Dict::new(),
        callbacks: &halite_bridge::Nobody,
        limit: None,
    };
    let listing = match bridge.listing(&session, "output") {
        Ok(listing) => listing,
        Err(error) => {
            tracing::error!("{error}");
            return None;
        }
    };
    if !listing.has(&format!("{name}.output")) {
        return None;
    }
    let given = entries! { "_retcode" => retcode };
    let args = vec![name.into(), ret.clone(), given.into()];
    match bridge.ask(&session, &format!("the outputter {name}"), "output", args) {
        Ok(answer) => Some(answer.value.to_str().into()),
        Err(error) => {
            tracing::error!("{error}");
            None
        }
    }
}
