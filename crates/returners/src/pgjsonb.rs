//! `pgjsonb`: returns and events in PostgreSQL, by the program `psql`.
//!
//! Values are handed over as variables that `psql` quotes, never as text of the statement.

use halite_spec::{Cx, Error, Result, host::Command};
use halite_value::{Dict, Value};

use crate::{Options, line, returner};

returner! {
    /// Keep returns and events in PostgreSQL, as JSON.
    "pgjsonb": ret, events = events
}

/// Runs a statement with these variables.
pub(crate) fn psql(
    cx: &Cx,
    options: &Options,
    statement: &str,
    variables: &[(&str, String)],
) -> Result<()> {
    let preset = |option: &str, preset: &str| options.text(cx, option, preset);
    let mut command = Command::line(["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1"])
        .args(["-h", &preset("host", "salt"), "-p", &preset("port", "5432")])
        .args(["-U", &preset("user", "salt"), "-d", &preset("db", "salt")])
        .env("PGPASSWORD", preset("pass", "salt"));
    // By way of standard input: an argument has a limit, and everybody sees it.
    let mut script = String::new();
    for (name, value) in variables {
        let value = value.replace('\\', "\\\\").replace('\'', "''").replace('\n', "\\n");
        script.push_str(&format!("\\set {name} '{value}'\n"));
    }
    script.push_str(statement);
    script.push_str(";\n");
    command.stdin = Some(script.into_bytes());
    let output = cx.host.run(&command)?;
    if output.ok() {
        Ok(())
    } else {
        Err(Error::failed(format!("psql: {}", output.stderr_text().trim())))
    }
}

/// The values of a return.
pub(crate) fn variables(ret: &Dict) -> Vec<(&'static str, String)> {
    let text = |key: &str| ret.get(key).unwrap_or_default().to_str().to_string();
    let success = ret.get("success").is_some_and(|success| success.truthy());
    vec![
        ("fun", text("fun")),
        ("jid", text("jid")),
        ("ret", line(&ret.get("return").unwrap_or_default())),
        ("id", text("id")),
        ("success", success.to_string()),
        ("full", line(&Value::from(ret))),
    ]
}

fn ret(cx: &Cx, options: &Options, ret: &Dict) -> Result<()> {
    let statement = "INSERT INTO salt_returns (fun, jid, return, id, success, full_ret, alter_time) \
                     VALUES (:'fun', :'jid', :'ret', :'id', :'success', :'full', now())";
    psql(cx, options, statement, &variables(ret))
}

fn events(cx: &Cx, options: &Options, events: &[Value]) -> Result<()> {
    let master = cx.id().to_string();
    for event in events {
        let tag = event.get_str("tag").unwrap_or_default().to_string();
        let data = line(&event.get("data").unwrap_or_default());
        let variables = [("tag", tag), ("data", data), ("master", master.clone())];
        let statement = "INSERT INTO salt_events (tag, data, master_id, alter_time) \
                         VALUES (:'tag', :'data', :'master', now())";
        psql(cx, options, statement, &variables)?;
    }
    Ok(())
}
