//! `mysql`: databases, users and rights of a MySQL or MariaDB server.
//!
//! Everything goes through the client program `mysql` (or `mariadb`). Salt 3008 needs a Python
//! driver for this module and has moved its states out; trees use both, so both are here.
//!
//! `client.rs` asks and changes; `databases.rs`, `users.rs`, `grants.rs` and `server.rs` hold the
//! functions. As in Salt, a function whose server refuses answers False (or an empty value) and
//! logs the reason; states get the reason itself.

mod client;
mod databases;
mod grants;
mod server;
mod statements;
mod users;

use halite_spec::module;

pub use client::{Answer, Conn, Executed, Refused, Table, identifier, literal, text_of};
pub use databases::*;
pub use grants::*;
pub use server::*;
pub use statements::*;
pub use users::*;

module! {
    /// Manage databases, users and rights of a MySQL or MariaDB server.
    "mysql": alter_db, db_check, db_create, db_exists, db_get, db_list, db_optimize, db_remove,
    db_repair, db_tables, file_query, free_slave, get_master_status, get_slave_status, grant_add,
    grant_exists, grant_revoke, plugin_add, plugin_remove, plugin_status, plugins_list,
    processlist, query, quote_identifier, showglobal, showvariables, slave_lag, status,
    tokenize_grant, user_chpass, user_create, user_exists, user_grants, user_info, user_list,
    user_remove, verify_login, version_,
}
