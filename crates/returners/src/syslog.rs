//! `syslog`: returns and events as messages of the system's log.

use halite_spec::{Cx, Error, Result, host::Command};
use halite_value::{Dict, Value};

use crate::{Options, line, returner};

returner! {
    /// Write returns and events to syslog.
    "syslog": ret, events = events
}

fn send(cx: &Cx, options: &Options, message: &str) -> Result<()> {
    let word = |option: &str, prefix: &str, preset: &str| {
        let text = options.text(cx, option, preset);
        text.trim_start_matches(prefix).to_ascii_lowercase()
    };
    let priority =
        format!("{}.{}", word("facility", "LOG_", "user"), word("level", "LOG_", "info"));
    let tag = options.text(cx, "tag", "salt-minion");
    let mut command = Command::line(["logger", "-p", &priority, "-t", &tag]);
    command.stdin = Some(message.as_bytes().to_vec());
    let output = cx.host.run(&command)?;
    if output.ok() {
        Ok(())
    } else {
        Err(Error::failed(format!("logger: {}", output.stderr_text().trim())))
    }
}

fn ret(cx: &Cx, options: &Options, ret: &Dict) -> Result<()> {
    send(cx, options, &line(&Value::from(ret)))
}

fn events(cx: &Cx, options: &Options, events: &[Value]) -> Result<()> {
    events.iter().try_for_each(|event| send(cx, options, &line(event)))
}
