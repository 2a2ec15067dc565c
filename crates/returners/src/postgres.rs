//! `postgres`: returns in PostgreSQL, as text; by the program `psql`.

use halite_spec::{Cx, Result};
use halite_value::Dict;

use crate::{
    Options,
    pgjsonb::{psql, variables},
    returner,
};

returner! {
    /// Keep returns in PostgreSQL.
    "postgres": ret
}

fn ret(cx: &Cx, options: &Options, ret: &Dict) -> Result<()> {
    // The options of this returner have longer names.
    let mut own = options.clone();
    own.kwargs = own.kwargs.shallow_copy();
    for (long, short) in [("passwd", "pass")] {
        if let Some(value) = options.get(cx, long) {
            own.kwargs.insert(short, value);
        }
    }
    let statement = "INSERT INTO salt_returns (fun, jid, return, id, success, full_ret) \
                     VALUES (:'fun', :'jid', :'ret', :'id', :'success', :'full')";
    psql(cx, &own, statement, &variables(ret))
}
