//! `redis`: returns in a Redis server, by the program `redis-cli`.

use halite_spec::{Cx, Error, Result, host::Command};
use halite_value::{Dict, Value};

use crate::{Options, line, returner};

returner! {
    /// Keep returns in Redis.
    "redis": ret
}

/// Salt keeps jobs this long unless told otherwise.
const KEEP_HOURS: i64 = 24;

fn quoted(text: &str) -> String {
    format!(
        "\"{}\"",
        text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\r', "\\r")
    )
}

fn ret(cx: &Cx, options: &Options, ret: &Dict) -> Result<()> {
    let text = |key: &str| ret.get(key).unwrap_or_default().to_str();
    let (jid, id, fun) = (text("jid"), text("id"), text("fun"));
    let hours = cx.opt("keep_jobs").and_then(|hours| hours.to_int()).unwrap_or(KEEP_HOURS);
    let key = quoted(&format!("ret:{jid}"));
    let script = format!(
        "HSET {key} {} {}\nEXPIRE {key} {}\nSET {} {}\nSADD minions {}\n",
        quoted(&id),
        quoted(&line(&Value::from(ret))),
        hours * 3600,
        quoted(&format!("{id}:{fun}")),
        quoted(&jid),
        quoted(&id),
    );
    let mut command = Command::line(["redis-cli"]);
    match options.text(cx, "unix_socket_path", "").as_str() {
        "" => {
            let (host, port) = (options.text(cx, "host", "salt"), options.text(cx, "port", "6379"));
            command = command.args(["-h", &host, "-p", &port]);
        }
        socket => command = command.args(["-s", socket]),
    }
    command = command.args(["-n", &options.text(cx, "db", "0")]);
    let password = options.text(cx, "password", "");
    if !password.is_empty() {
        command = command.env("REDISCLI_AUTH", password);
    }
    command.stdin = Some(script.into_bytes());
    let output = cx.host.run(&command)?;
    let said = output.stdout_text();
    if output.ok() && !said.contains("ERR ") && !said.contains("NOAUTH") {
        Ok(())
    } else {
        Err(Error::failed(format!("redis-cli: {} {}", output.stderr_text().trim(), said.trim())))
    }
}
