//! `postgres_local_cache`: a master's jobs in PostgreSQL, each part of a job in a column of its
//! own; by the program `psql`.
//!
//! Its options are `master_job_cache.postgres.*`. The column `kwargs` holds what Python prints of
//! them, as genuine Salt leaves it there; everything else is text or JSON.

use halite_spec::{Cx, Result};
use halite_value::{Dict, Value, dict};

use crate::{
    Options,
    cache::{Cache, Kept, Record},
    line,
    pgjsonb::{Server, columns, documents, event_statements, last_of, literal, minions_of},
    returner,
};

returner! {
    /// Keep a master's jobs in PostgreSQL.
    "postgres_local_cache": ret, events = events, cache = CACHE
}

static CACHE: Cache = Cache {
    save,
    load,
    returns,
    loads,
    last: |cx, options, fun| last_of(&SERVER, cx, options, fun),
    minions: |cx, options| minions_of(&SERVER, cx, options),
    clean: Some(clean),
};

const SERVER: Server = Server { name: "master_job_cache.postgres", password: "passwd" };

fn statement(record: &Record) -> String {
    match record {
        Record::Load { jid, load } => {
            let of = |key: &str| load.get(key).unwrap_or_default();
            let text = |key: &str| literal(&of(key).to_str());
            let started = started(jid).map_or_else(|| "now()".into(), |text| literal(&text));
            let json = |key: &str| literal(&line(&of(key)));
            let target = match of("tgt") {
                Value::Str(text) => literal(&text),
                list => literal(&line(&list)),
            };
            format!(
                "INSERT INTO jids \
                 (jid, started, tgt_type, cmd, tgt, kwargs, ret, username, arg, fun) \
                 VALUES ({}, {started}, {}, {}, {target}, {}, {}, {}, {}, {}) \
                 ON CONFLICT (jid) DO UPDATE SET tgt = excluded.tgt, tgt_type = excluded.tgt_type;\n",
                literal(jid),
                text("tgt_type"),
                text("cmd"),
                literal(&of("kwargs").repr()),
                text("ret"),
                text("user"),
                json("arg"),
                text("fun"),
            )
        }
        Record::Return(ret) => {
            let [fun, jid, returned, id, success, _] = columns(ret, line);
            format!(
                "INSERT INTO salt_returns (fun, jid, return, id, success) \
                 VALUES ({fun}, {jid}, {returned}, {id}, {success});\n"
            )
        }
    }
}

/// `20240131120000123456` → `2024-01-31 12:00:00.123456`
fn started(jid: &str) -> Option<String> {
    let digits = jid.get(..20).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    let part = |from: usize, to: usize| &digits[from..to];
    let (date, time) = ([part(0, 4), part(4, 6), part(6, 8)], [part(8, 10), part(10, 12)]);
    Some(format!("{} {}:{}.{}", date.join("-"), time.join(":"), part(12, 14), part(14, 20)))
}

fn save(cx: &Cx, options: &Options, records: &[Record]) -> Kept<()> {
    SERVER.run(cx, options, &records.iter().map(statement).collect::<String>()).map(drop)
}

fn ret(cx: &Cx, options: &Options, ret: &Dict) -> Result<()> {
    Ok(save(cx, options, &[Record::Return(ret.clone())])?)
}

fn events(cx: &Cx, options: &Options, events: &[Value]) -> Result<()> {
    SERVER.run(cx, options, &event_statements(cx, events, line))?;
    Ok(())
}

const JOB: &str = "SELECT jid, json_build_object('jid', jid, 'tgt_type', tgt_type, 'cmd', cmd, \
                   'tgt', tgt, 'ret', ret, 'user', username, 'arg', arg, 'fun', fun) FROM jids";

fn jobs(cx: &Cx, options: &Options, which: &str) -> Kept<Dict> {
    let found = documents(SERVER.pairs(cx, options, &format!("{JOB} {which}"))?);
    for job in found.values() {
        if let (Value::Dict(job), Some(Value::Str(arg))) = (&job, job.get("arg")) {
            job.insert("arg", crate::cache::parsed(&arg));
        }
    }
    Ok(found)
}

fn load(cx: &Cx, options: &Options, jid: &str) -> Kept<Option<Value>> {
    let found = jobs(cx, options, &format!("WHERE jid = {}", literal(jid)))?;
    Ok(found.values().into_iter().next())
}

fn loads(cx: &Cx, options: &Options) -> Kept<Dict> {
    jobs(cx, options, "ORDER BY jid")
}

fn returns(cx: &Cx, options: &Options, jid: &str) -> Kept<Dict> {
    let select = format!("SELECT id, return FROM salt_returns WHERE jid = {}", literal(jid));
    let found = documents(SERVER.pairs(cx, options, &select)?);
    Ok(found.entries().into_iter().map(|(id, ret)| (id, dict! { "return" => ret })).collect())
}

fn clean(cx: &Cx, options: &Options, seconds: i64) -> Kept<()> {
    let old = format!("SELECT jid FROM jids WHERE started < now() - interval '{seconds} seconds'");
    let script = format!(
        "DELETE FROM salt_returns WHERE jid IN ({old});\n\
         DELETE FROM jids WHERE jid IN ({old});\n"
    );
    SERVER.run(cx, options, &script).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_id_is_a_time() {
        assert_eq!(started("20240131120000123456").unwrap(), "2024-01-31 12:00:00.123456");
        assert_eq!(started("20240131120000123456_7").unwrap(), "2024-01-31 12:00:00.123456");
        assert!(started("soon").is_none());
    }
}
