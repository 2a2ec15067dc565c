//! `mysql`: returns and events in MySQL or MariaDB, by the program `mysql`.

use halite_spec::{Cx, Error, Result, host::Command};
use halite_value::{Dict, Value};

use crate::{Options, line, returner};

returner! {
    /// Keep returns and events in MySQL.
    "mysql": ret, events = events
}

/// Text as a literal. Bytes in hexadecimal need no quoting, whatever the server's mode.
fn literal(text: &str) -> String {
    if text.is_empty() {
        return "''".into();
    }
    let digits: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("CONVERT(X'{digits}' USING utf8mb4)")
}

fn run(cx: &Cx, options: &Options, statement: String) -> Result<()> {
    let preset = |option: &str, preset: &str| options.text(cx, option, preset);
    let mut command = Command::line(["mysql", "--batch", "--default-character-set=utf8mb4"])
        .args(["-h", &preset("host", "salt"), "-P", &preset("port", "3306")])
        .args(["-u", &preset("user", "salt"), &preset("db", "salt")])
        .env("MYSQL_PWD", preset("pass", "salt"));
    command.stdin = Some(statement.into_bytes());
    let output = cx.host.run(&command)?;
    if output.ok() {
        Ok(())
    } else {
        Err(Error::failed(format!("mysql: {}", output.stderr_text().trim())))
    }
}

fn ret(cx: &Cx, options: &Options, ret: &Dict) -> Result<()> {
    let text = |key: &str| literal(&ret.get(key).unwrap_or_default().to_str());
    let success = ret.get("success").is_some_and(|success| success.truthy());
    let statement = format!(
        "INSERT INTO salt_returns (fun, jid, `return`, id, success, full_ret) \
         VALUES ({}, {}, {}, {}, {}, {});\n",
        text("fun"),
        text("jid"),
        literal(&line(&ret.get("return").unwrap_or_default())),
        text("id"),
        i32::from(success),
        literal(&line(&Value::from(ret))),
    );
    run(cx, options, statement)
}

fn events(cx: &Cx, options: &Options, events: &[Value]) -> Result<()> {
    let master = literal(&cx.id());
    let mut script = String::new();
    for event in events {
        let tag = literal(&event.get_str("tag").unwrap_or_default());
        let data = literal(&line(&event.get("data").unwrap_or_default()));
        script.push_str(&format!(
            "INSERT INTO salt_events (tag, data, master_id) VALUES ({tag}, {data}, {master});\n"
        ));
    }
    run(cx, options, script)
}
