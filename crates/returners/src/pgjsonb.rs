//! `pgjsonb`: returns, jobs and events in PostgreSQL, as JSON; by the program `psql`.
//!
//! The tables are those of genuine Salt. What is read comes as one JSON document, made by the
//! server: rows of `psql` cannot be told apart once a value has line ends in it.

use halite_spec::{Cx, Result, host::Command};
use halite_value::{Dict, Value};

use crate::{
    Options,
    cache::{Cache, Kept, Record, Refused, parsed},
    line, returner,
};

returner! {
    /// Keep returns, jobs and events in PostgreSQL, as JSON.
    "pgjsonb": ret, events = events, cache = CACHE
}

static CACHE: Cache = Cache { save, load, returns, loads, last, minions, clean: Some(clean) };

/// Where the options of this returner stand.
const NAME: &str = "returner.pgjsonb";

/// A server, and what its options are called.
pub(crate) struct Server<'a> {
    pub(crate) name: &'a str,
    pub(crate) password: &'a str,
}

const SERVER: Server = Server { name: NAME, password: "pass" };

/// What has no place in a JSON document of PostgreSQL is left out.
fn json(value: &Value) -> String {
    let text = line(value);
    if !text.contains("\\u0000") {
        return text;
    }
    let (mut kept, mut rest) = (String::with_capacity(text.len()), text.as_str());
    while let Some(at) = rest.find('\\') {
        let (before, after) = rest.split_at(at);
        kept.push_str(before);
        // What follows a backslash is ASCII.
        let length = if after.starts_with("\\u0000") { 6 } else { 2.min(after.len()) };
        if length == 2 {
            kept.push_str(&after[..2]);
        }
        rest = &after[length..];
    }
    kept + rest
}

/// Text as a literal, whatever `standard_conforming_strings` says.
pub(crate) fn literal(text: &str) -> String {
    format!("E'{}'", text.replace('\0', "").replace('\\', "\\\\").replace('\'', "''"))
}

impl Server<'_> {
    /// Runs statements as one transaction; returns what the last one said.
    pub(crate) fn run(&self, cx: &Cx, options: &Options, statements: &str) -> Kept<String> {
        let preset = |option: &str, preset: &str| options.text_of(cx, self.name, option, preset);
        let mut command = Command::line(["psql", "-X", "-q", "-t", "-A", "-1"])
            .args(["-v", "ON_ERROR_STOP=1", "-h", &preset("host", "salt")])
            .args(["-p", &preset("port", "5432"), "-U", &preset("user", "salt")])
            .args(["-d", &preset("db", "salt"), "-f", "-"])
            .env("PGPASSWORD", preset(self.password, "salt"))
            .env("PGCLIENTENCODING", "UTF8")
            .env("PGCONNECT_TIMEOUT", "10");
        for (option, variable) in [
            ("sslmode", "PGSSLMODE"),
            ("sslcert", "PGSSLCERT"),
            ("sslkey", "PGSSLKEY"),
            ("sslrootcert", "PGSSLROOTCERT"),
            ("sslcrl", "PGSSLCRL"),
        ] {
            let value = preset(option, "");
            if !value.is_empty() {
                command = command.env(variable, value);
            }
        }
        // By way of standard input: an argument has a limit, and everybody sees it.
        command.stdin = Some(statements.as_bytes().to_vec());
        let output = cx.host.run(&command).map_err(halite_spec::Error::from)?;
        if output.ok() {
            return Ok(output.stdout_text().trim().to_owned());
        }
        let said = format!("psql: {}", output.stderr_text().trim());
        // 2: no connection, or a bad one. 3: an error in the script.
        Err(match output.code {
            3 => Refused::Rejected(said),
            _ => Refused::Unreachable(said),
        })
    }

    /// Asks for rows of two columns.
    pub(crate) fn pairs(
        &self,
        cx: &Cx,
        options: &Options,
        select: &str,
    ) -> Kept<Vec<(String, Value)>> {
        let ask = format!("SELECT json_agg(json_build_array(a, b)) FROM ({select}) AS t (a, b);\n");
        let rows = parsed(&self.run(cx, options, &ask)?).items_of_sequence().unwrap_or_default();
        let pair = |row: Value| -> Option<(String, Value)> {
            let mut columns = row.items_of_sequence()?.into_iter();
            Some((columns.next()?.to_str().to_string(), columns.next()?))
        };
        Ok(rows.into_iter().filter_map(pair).collect())
    }
}

/// A dict of rows whose second column is a JSON document, as such or as text.
pub(crate) fn documents(rows: Vec<(String, Value)>) -> Dict {
    let read = |value: Value| match value {
        Value::Str(text) => parsed(&text),
        document => document,
    };
    rows.into_iter().map(|(key, value)| (key, read(value))).collect()
}

/// The columns of a return that all tables have.
pub(crate) fn columns(ret: &Dict, json: impl Fn(&Value) -> String) -> [String; 6] {
    let text = |key: &str| literal(&ret.get(key).unwrap_or_default().to_str());
    let success = ret.get("success").is_some_and(|success| success.truthy());
    [
        text("fun"),
        text("jid"),
        literal(&json(&ret.get("return").unwrap_or_default())),
        text("id"),
        format!("'{success}'"),
        literal(&json(&ret.into())),
    ]
}

/// The statement that keeps a record in tables of the usual shape.
pub(crate) fn statement(record: &Record, json: impl Fn(&Value) -> String) -> String {
    match record {
        Record::Load { jid, load } => format!(
            "INSERT INTO jids (jid, load) VALUES ({}, {}) \
             ON CONFLICT (jid) DO UPDATE SET load = excluded.load;\n",
            literal(jid),
            literal(&json(&load.into())),
        ),
        Record::Return(ret) => format!(
            "INSERT INTO salt_returns (fun, jid, return, id, success, full_ret) VALUES ({});\n",
            columns(ret, json).join(", "),
        ),
    }
}

/// The statements that keep events.
pub(crate) fn event_statements(
    cx: &Cx,
    events: &[Value],
    json: impl Fn(&Value) -> String,
) -> String {
    let master = literal(&cx.id());
    let each = events.iter().map(|event| {
        let tag = literal(&event.get_str("tag").unwrap_or_default());
        let data = literal(&json(&event.get("data").unwrap_or_default()));
        format!(
            "INSERT INTO salt_events (tag, data, master_id) VALUES ({tag}, {data}, {master});\n"
        )
    });
    each.collect()
}

fn save(cx: &Cx, options: &Options, records: &[Record]) -> Kept<()> {
    let script: String = records.iter().map(|record| statement(record, json)).collect();
    SERVER.run(cx, options, &script).map(drop)
}

fn ret(cx: &Cx, options: &Options, ret: &Dict) -> Result<()> {
    Ok(save(cx, options, &[Record::Return(ret.clone())])?)
}

fn events(cx: &Cx, options: &Options, events: &[Value]) -> Result<()> {
    SERVER.run(cx, options, &event_statements(cx, events, json))?;
    Ok(())
}

fn load(cx: &Cx, options: &Options, jid: &str) -> Kept<Option<Value>> {
    load_of(&SERVER, cx, options, jid)
}

fn returns(cx: &Cx, options: &Options, jid: &str) -> Kept<Dict> {
    returns_of(&SERVER, cx, options, jid)
}

fn loads(cx: &Cx, options: &Options) -> Kept<Dict> {
    loads_of(&SERVER, cx, options)
}

fn last(cx: &Cx, options: &Options, fun: &str) -> Kept<Dict> {
    last_of(&SERVER, cx, options, fun)
}

fn minions(cx: &Cx, options: &Options) -> Kept<Vec<Value>> {
    minions_of(&SERVER, cx, options)
}

pub(crate) fn load_of(
    server: &Server,
    cx: &Cx,
    options: &Options,
    jid: &str,
) -> Kept<Option<Value>> {
    let select = format!("SELECT jid, load FROM jids WHERE jid = {}", literal(jid));
    let found = documents(server.pairs(cx, options, &select)?);
    Ok(found.values().into_iter().next())
}

pub(crate) fn returns_of(server: &Server, cx: &Cx, options: &Options, jid: &str) -> Kept<Dict> {
    let select = format!("SELECT id, full_ret FROM salt_returns WHERE jid = {}", literal(jid));
    Ok(documents(server.pairs(cx, options, &select)?))
}

pub(crate) fn loads_of(server: &Server, cx: &Cx, options: &Options) -> Kept<Dict> {
    Ok(documents(server.pairs(cx, options, "SELECT jid, load FROM jids ORDER BY jid")?))
}

pub(crate) fn last_of(server: &Server, cx: &Cx, options: &Options, fun: &str) -> Kept<Dict> {
    let fun = literal(fun);
    let select = format!("SELECT id, max(jid) FROM salt_returns WHERE fun = {fun} GROUP BY id");
    Ok(server.pairs(cx, options, &select)?.into_iter().collect())
}

pub(crate) fn minions_of(server: &Server, cx: &Cx, options: &Options) -> Kept<Vec<Value>> {
    let rows = server.pairs(cx, options, "SELECT DISTINCT id, true FROM salt_returns")?;
    Ok(rows.into_iter().map(|(id, _)| id.into()).collect())
}

fn clean(cx: &Cx, options: &Options, seconds: i64) -> Kept<()> {
    let old = format!("alter_time < now() - interval '{seconds} seconds'");
    let script = format!(
        "DELETE FROM jids WHERE jid IN (SELECT jid FROM salt_returns WHERE {old});\n\
         DELETE FROM salt_returns WHERE {old};\nDELETE FROM salt_events WHERE {old};\n"
    );
    SERVER.run(cx, options, &script).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_postgres_cannot_hold_is_left_out() {
        let kept = |text: &str| json(&Value::from(text));
        assert_eq!(kept("a\0b"), r#""ab""#);
        assert_eq!(kept("a\\u0000\0\\"), r#""a\\u0000\\""#);
        assert_eq!(kept("\"\0"), r#""\"""#);
    }

    #[test]
    fn literals_are_quoted() {
        assert_eq!(literal(r"it's \n"), r"E'it''s \\n'");
    }
}
