//! `postgres`: databases, roles and rights of a PostgreSQL server.
//!
//! Everything goes through `psql`. Questions are asked as `COPY (…) TO STDOUT WITH CSV HEADER`, so
//! that values with any character come back whole. Without a host we are on the server's own
//! machine and run as its user `postgres`, who may do everything there.
//!
//! `queries.rs` asks and changes; `roles.rs`, `databases.rs` and `rights.rs` hold the functions;
//! `clusters.rs` those of Debian's clusters.

mod clusters;
mod databases;
mod queries;
mod rights;
mod roles;

use halite_spec::{Cx, Need, Result, function, module};
use halite_value::{Dict, Value};

pub use clusters::*;
pub use databases::*;
pub use queries::{Account, Conn, Connection, Row, SchemaAccount, Server, identifier, literal};
pub use rights::*;
pub use roles::*;

module! {
    /// Manage databases, roles and rights of a PostgreSQL server.
    "postgres", needs = [
        Need::test(has_psql, "psql was not found"),
    ]: available_extensions, cluster_create, cluster_exists, cluster_list, cluster_remove,
    create_extension, create_metadata, datadir_exists,
    datadir_init, db_alter, db_create, db_exists, db_list, db_remove, drop_extension,
    get_available_extension, get_installed_extension, group_create, group_remove, group_update,
    has_privileges, installed_extensions, is_available_extension, is_installed_extension,
    language_create, language_exists, language_list, language_remove, owner_to, privileges_grant,
    privileges_list, privileges_revoke, psql_query, role_get, schema_create, schema_exists,
    schema_get, schema_list, schema_remove, tablespace_alter, tablespace_create, tablespace_exists,
    tablespace_list, tablespace_remove, user_create, user_exists, user_list, user_remove,
    user_update, version_,
}

fn has_psql(cx: &Cx) -> bool {
    cx.host.which(&queries::psql(cx)).is_some()
}

/// Return the version of the server; None if it cannot be asked.
///
/// ```console
/// $ salt web1 postgres.version
/// ```
#[function(name = "version")]
pub fn version_(cx: &Cx, #[group] connection: Connection) -> Result<Option<String>> {
    connection.conn(cx).version(cx)
}

/// Run a query and return its rows as dicts.
///
/// ```console
/// $ salt web1 postgres.psql_query 'select 1'
/// ```
#[function]
pub fn psql_query(
    cx: &Cx,
    /// The query.
    query: String,
    #[group] connection: Connection,
    /// The query changes something.
    #[default(false)]
    write: bool,
) -> Result<Value> {
    let conn = connection.conn(cx);
    let rows = if write { conn.ask_writing(cx, &query)? } else { conn.ask(cx, &query)? };
    let rows = rows.unwrap_or_default().into_iter().map(|row| row.into_iter().collect::<Dict>());
    Ok(Value::list(rows))
}
