//! `rawfile_json`: one line of JSON per return or event, appended to a file.

use std::path::PathBuf;

use halite_spec::{Cx, Result};
use halite_value::{Dict, Value};

use crate::{Options, line, returner};

returner! {
    /// Append returns and events to a file, a line of JSON each.
    "rawfile_json": ret, events = events
}

fn file(cx: &Cx, options: &Options) -> PathBuf {
    options.text(cx, "filename", "/var/log/salt/events").into()
}

fn ret(cx: &Cx, options: &Options, ret: &Dict) -> Result<()> {
    let line = line(&Value::from(ret)) + "\n";
    Ok(cx.host.append(&file(cx, options), line.as_bytes())?)
}

fn events(cx: &Cx, options: &Options, events: &[Value]) -> Result<()> {
    let lines: String = events.iter().map(|event| line(event) + "\n").collect();
    Ok(cx.host.append(&file(cx, options), lines.as_bytes())?)
}
