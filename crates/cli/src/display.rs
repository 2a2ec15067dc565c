//! Showing returns: which outputter, in which style, and where to.

use std::io::{self, IsTerminal as _, Write as _};

use halite_output::{Colors, Style, select};
use halite_value::{Dict, Value};

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
    if halite_output::by_name(name).is_none()
        && let Some(notice) = select::invalid_notice(name)
    {
        tracing::error!("{notice}");
    }
    let mut text = Vec::new();
    halite_output::display(name, ret, &style, &mut text)?;
    match file {
        Some(path) => {
            let append = cx.parsed.bool("output_file_append");
            let mut options = std::fs::OpenOptions::new();
            options.create(true).write(true).append(append).truncate(!append);
            options.open(path)?.write_all(&text)
        }
        None => {
            terminal::out(&String::from_utf8_lossy(&text));
            Ok(())
        }
    }
}
