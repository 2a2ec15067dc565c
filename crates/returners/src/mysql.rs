//! `mysql`: returns, jobs and events in MySQL or MariaDB, by the program `mysql`.
//!
//! The tables are those of genuine Salt: `jids`, `salt_returns` and `salt_events`. Text goes to the
//! server and comes back in hexadecimal, which needs no quoting whatever the server's mode.

use halite_spec::{Cx, Result, host::Command};
use halite_value::{Dict, Value};

use crate::{
    Options,
    cache::{Cache, Kept, Record, Refused, parsed},
    line, returner,
};

returner! {
    /// Keep returns, jobs and events in MySQL.
    "mysql": ret, events = events, cache = CACHE
}

static CACHE: Cache = Cache { save, load, returns, loads, last, minions, clean: Some(clean) };

/// Text as a literal.
fn literal(text: &str) -> String {
    if text.is_empty() {
        return "''".into();
    }
    let digits: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("CONVERT(X'{digits}' USING utf8mb4)")
}

/// Runs statements as one transaction; returns the rows of the last one.
fn run(cx: &Cx, options: &Options, statements: &str) -> Kept<Vec<Vec<String>>> {
    let preset = |option: &str, preset: &str| options.text(cx, option, preset);
    let mut command = Command::line(["mysql", "--batch", "--raw", "--skip-column-names"])
        .args(["--default-character-set=utf8mb4", "-h", &preset("host", "salt")])
        .args(["-P", &preset("port", "3306"), "-u", &preset("user", "salt")])
        .env("MYSQL_PWD", preset("pass", "salt"));
    for (option, flag) in
        [("ssl_ca", "--ssl-ca"), ("ssl_cert", "--ssl-cert"), ("ssl_key", "--ssl-key")]
    {
        let path = preset(option, "");
        if !path.is_empty() {
            command = command.args([format!("{flag}={path}")]);
        }
    }
    command = command.args([&preset("db", "salt")]);
    let script = format!("START TRANSACTION;\n{statements}COMMIT;\n");
    command.stdin = Some(script.into_bytes());
    let output = cx.host.run(&command).map_err(halite_spec::Error::from)?;
    if output.ok() {
        let said = output.stdout_text();
        return Ok(said.lines().map(|row| row.split('\t').map(text).collect()).collect());
    }
    let said = format!("mysql: {}", output.stderr_text().trim());
    // Errors of the client (not reached, connection lost) have numbers from 2000 on; 1040 and 1203
    // are too many connections, 1045 and 1049 a user and a database somebody may still make.
    let is_passing = ["ERROR 2", "ERROR 1040", "ERROR 1045", "ERROR 1049", "ERROR 1203"];
    Err(match is_passing.iter().any(|number| said.contains(number)) {
        true => Refused::Unreachable(said),
        false => Refused::Rejected(said),
    })
}

/// Reads a column that was asked for by `HEX`.
fn text(digits: &str) -> String {
    let bytes = digits.as_bytes().chunks(2).filter_map(|pair| {
        u8::from_str_radix(std::str::from_utf8(pair).unwrap_or_default(), 16).ok()
    });
    String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
}

fn statement(record: &Record) -> String {
    match record {
        Record::Load { jid, load } => format!(
            "INSERT INTO jids (jid, `load`) VALUES ({}, {}) \
             ON DUPLICATE KEY UPDATE `load` = VALUES(`load`);\n",
            literal(jid),
            literal(&line(&load.into())),
        ),
        Record::Return(ret) => {
            let text = |key: &str| literal(&ret.get(key).unwrap_or_default().to_str());
            let success = ret.get("success").is_some_and(|success| success.truthy());
            format!(
                "INSERT INTO salt_returns (fun, jid, `return`, id, success, full_ret) \
                 VALUES ({}, {}, {}, {}, {}, {});\n",
                text("fun"),
                text("jid"),
                literal(&line(&ret.get("return").unwrap_or_default())),
                text("id"),
                i32::from(success),
                literal(&line(&ret.into())),
            )
        }
    }
}

fn save(cx: &Cx, options: &Options, records: &[Record]) -> Kept<()> {
    run(cx, options, &records.iter().map(statement).collect::<String>()).map(drop)
}

fn ret(cx: &Cx, options: &Options, ret: &Dict) -> Result<()> {
    Ok(save(cx, options, &[Record::Return(ret.clone())])?)
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
    run(cx, options, &script)?;
    Ok(())
}

/// Rows of two columns as a dict.
fn pairs(rows: Vec<Vec<String>>, value: impl Fn(&str) -> Value) -> Dict {
    rows.iter().filter_map(|row| Some((row.first()?.as_str(), value(row.get(1)?)))).collect()
}

fn load(cx: &Cx, options: &Options, jid: &str) -> Kept<Option<Value>> {
    let jid = literal(jid);
    let rows = run(cx, options, &format!("SELECT HEX(`load`) FROM jids WHERE jid = {jid};\n"))?;
    Ok(rows.first().and_then(|row| row.first()).map(|text| parsed(text)))
}

fn returns(cx: &Cx, options: &Options, jid: &str) -> Kept<Dict> {
    let jid = literal(jid);
    let ask = format!("SELECT HEX(id), HEX(full_ret) FROM salt_returns WHERE jid = {jid};\n");
    Ok(pairs(run(cx, options, &ask)?, parsed))
}

fn loads(cx: &Cx, options: &Options) -> Kept<Dict> {
    let rows = run(cx, options, "SELECT HEX(jid), HEX(`load`) FROM jids ORDER BY jid;\n")?;
    Ok(pairs(rows, parsed))
}

fn last(cx: &Cx, options: &Options, fun: &str) -> Kept<Dict> {
    let fun = literal(fun);
    let ask =
        format!("SELECT HEX(id), HEX(MAX(jid)) FROM salt_returns WHERE fun = {fun} GROUP BY id;\n");
    Ok(pairs(run(cx, options, &ask)?, |jid| jid.into()))
}

fn minions(cx: &Cx, options: &Options) -> Kept<Vec<Value>> {
    let rows = run(cx, options, "SELECT DISTINCT HEX(id) FROM salt_returns;\n")?;
    Ok(rows.into_iter().flatten().map(Value::from).collect())
}

fn clean(cx: &Cx, options: &Options, seconds: i64) -> Kept<()> {
    let old = format!("alter_time < DATE_SUB(NOW(), INTERVAL {seconds} SECOND)");
    let script = format!(
        "DELETE FROM jids WHERE jid IN (SELECT jid FROM salt_returns WHERE {old});\n\
         DELETE FROM salt_returns WHERE {old};\nDELETE FROM salt_events WHERE {old};\n"
    );
    run(cx, options, &script).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_goes_there_and_back() {
        assert_eq!(literal(""), "''");
        assert_eq!(literal("a'\n"), "CONVERT(X'61270a' USING utf8mb4)");
        assert_eq!(text("61270A"), "a'\n");
    }
}
