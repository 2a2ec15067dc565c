//! `postgres`: returns, jobs and events in PostgreSQL, as text; by the program `psql`.

use halite_spec::{Cx, Result};
use halite_value::{Dict, Value};

use crate::{
    Options,
    cache::{Cache, Kept, Record},
    line,
    pgjsonb::{
        Server, event_statements, last_of, load_of, loads_of, minions_of, returns_of, statement,
    },
    returner,
};

returner! {
    /// Keep returns, jobs and events in PostgreSQL.
    "postgres": ret, events = events, cache = CACHE
}

static CACHE: Cache = Cache {
    save,
    load: |cx, options, jid| load_of(&SERVER, cx, options, jid),
    returns: |cx, options, jid| returns_of(&SERVER, cx, options, jid),
    loads: |cx, options| loads_of(&SERVER, cx, options),
    last: |cx, options, fun| last_of(&SERVER, cx, options, fun),
    minions: |cx, options| minions_of(&SERVER, cx, options),
    // Its table of returns knows no time.
    clean: None,
};

const SERVER: Server = Server { name: "returner.postgres", password: "passwd" };

fn save(cx: &Cx, options: &Options, records: &[Record]) -> Kept<()> {
    let script: String = records.iter().map(|record| statement(record, line)).collect();
    SERVER.run(cx, options, &script).map(drop)
}

fn ret(cx: &Cx, options: &Options, ret: &Dict) -> Result<()> {
    Ok(save(cx, options, &[Record::Return(ret.clone())])?)
}

fn events(cx: &Cx, options: &Options, events: &[Value]) -> Result<()> {
    SERVER.run(cx, options, &event_statements(cx, events, line))?;
    Ok(())
}
