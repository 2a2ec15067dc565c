//! The server itself: version, status, variables, replication, plugins.

use halite_spec::{Cx, Rest, Result, function};
use halite_value::{Dict, Value};

use super::client::{Answer, Conn, Table, literal, text_of};

/// What a server calls itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Version {
    pub text: String,
    pub is_mariadb: bool,
    pub number: (u32, u32, u32),
}

impl Version {
    /// Reads `10.11.19-MariaDB-0+deb12u1` or `8.0.36`.
    pub fn read(text: &str) -> Self {
        // Old clients are shown MariaDB behind this prefix.
        let plain = text.strip_prefix("5.5.5-").unwrap_or(text);
        let mut parts =
            plain.split(['.', '-', '+', '~', ' ']).map(|part| part.parse().unwrap_or(0));
        let mut next = || parts.next().unwrap_or(0);
        Self {
            text: text.to_owned(),
            is_mariadb: text.to_lowercase().contains("mariadb"),
            number: (next(), next(), next()),
        }
    }
}

impl Conn {
    pub fn version(&self, cx: &Cx) -> Result<Answer<Version>> {
        let table = self.ask(cx, "SELECT VERSION()")?;
        Ok(table.map(|table| Version::read(table.texts().first().map_or("", String::as_str))))
    }

    pub fn plugin(&self, cx: &Cx, name: &str) -> Result<Answer<Option<String>>> {
        let statement = format!(
            "SELECT PLUGIN_STATUS FROM INFORMATION_SCHEMA.PLUGINS WHERE PLUGIN_NAME = {}",
            literal(name)
        );
        Ok(self.ask(cx, &statement)?.map(|table| table.texts().into_iter().next()))
    }

    /// A question whose answer is handed on; empty when the server refuses.
    fn listed(&self, cx: &Cx, statement: &str, numbers: &[&str]) -> Result<Vec<Dict>> {
        let table = self.ask(cx, statement)?.unwrap_or_default();
        Ok(with_numbers(&table, numbers))
    }
}

/// Rows as dicts; these columns as numbers.
pub(super) fn with_numbers(table: &Table, numbers: &[&str]) -> Vec<Dict> {
    let rows = table.dicts();
    for row in &rows {
        for column in numbers {
            let Some(Value::Str(text)) = row.get(*column) else { continue };
            if let Ok(number) = text.parse::<i64>() {
                row.insert(*column, number);
            } else if let Ok(number) = text.parse::<f64>() {
                row.insert(*column, number);
            }
        }
    }
    rows
}

/// The columns of `SHOW SLAVE STATUS` that are numbers.
const SLAVE_NUMBERS: [&str; 16] = [
    "Master_Port",
    "Connect_Retry",
    "Read_Master_Log_Pos",
    "Relay_Log_Pos",
    "Last_Errno",
    "Skip_Counter",
    "Exec_Master_Log_Pos",
    "Relay_Log_Space",
    "Until_Log_Pos",
    "Seconds_Behind_Master",
    "Last_IO_Errno",
    "Last_SQL_Errno",
    "Master_Server_Id",
    "SQL_Delay",
    "Slave_DDL_Groups",
    "Slave_Transactional_Groups",
];

/// Return the version of the server.
///
/// ```console
/// $ salt db1 mysql.version
/// ```
#[function(name = "version")]
pub fn version_(
    cx: &Cx,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    #[arg(by_name)]
    connection: Rest,
) -> Result<String> {
    Ok(Conn::of(cx, &connection).version(cx)?.unwrap_or_default().text)
}

/// Return the server's counters (`SHOW STATUS`).
///
/// ```console
/// $ salt db1 mysql.status
/// ```
#[function]
pub fn status(
    cx: &Cx,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    #[arg(by_name)]
    connection: Rest,
) -> Result<Dict> {
    let table = Conn::of(cx, &connection).ask(cx, "SHOW STATUS")?.unwrap_or_default();
    let pair = |row: Vec<Value>| {
        let mut row = row.into_iter();
        Some((row.next()?.to_string(), row.next()?))
    };
    Ok(table.rows.into_iter().filter_map(pair).collect())
}

/// Return the variables of the session (`SHOW VARIABLES`), a list of name and value.
///
/// ```console
/// $ salt db1 mysql.showvariables
/// ```
#[function]
pub fn showvariables(
    cx: &Cx,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    #[arg(by_name)]
    connection: Rest,
) -> Result<Value> {
    Conn::of(cx, &connection).listed(cx, "SHOW VARIABLES", &[]).map(Value::list)
}

/// Return the variables of the server (`SHOW GLOBAL VARIABLES`), a list of name and value.
///
/// ```console
/// $ salt db1 mysql.showglobal
/// ```
#[function]
pub fn showglobal(
    cx: &Cx,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    #[arg(by_name)]
    connection: Rest,
) -> Result<Value> {
    Conn::of(cx, &connection).listed(cx, "SHOW GLOBAL VARIABLES", &[]).map(Value::list)
}

/// Return what the server is doing, a dict for each connection.
///
/// ```console
/// $ salt db1 mysql.processlist
/// ```
#[function]
pub fn processlist(
    cx: &Cx,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    #[arg(by_name)]
    connection: Rest,
) -> Result<Value> {
    let numbers = ["Id", "Time", "Progress", "Rows_sent", "Rows_examined", "Rows_read"];
    Conn::of(cx, &connection).listed(cx, "SHOW FULL PROCESSLIST", &numbers).map(Value::list)
}

/// Return the position of the binary log, if the server keeps one.
///
/// ```console
/// $ salt db1 mysql.get_master_status
/// ```
#[function]
pub fn get_master_status(
    cx: &Cx,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    #[arg(by_name)]
    connection: Rest,
) -> Result<Value> {
    let rows = Conn::of(cx, &connection).listed(cx, "SHOW MASTER STATUS", &["Position"])?;
    Ok(first_or_empty(rows))
}

/// Return the state of the replication from a master, if there is one.
///
/// ```console
/// $ salt db1 mysql.get_slave_status
/// ```
#[function]
pub fn get_slave_status(
    cx: &Cx,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    #[arg(by_name)]
    connection: Rest,
) -> Result<Value> {
    let rows = Conn::of(cx, &connection).listed(cx, "SHOW SLAVE STATUS", &SLAVE_NUMBERS)?;
    Ok(first_or_empty(rows))
}

/// Salt's answer without rows is an empty list.
fn first_or_empty(rows: Vec<Dict>) -> Value {
    rows.into_iter().next().map_or_else(|| Value::list(Vec::<Value>::new()), Value::from)
}

/// Return by how many seconds a replica lags behind; -1 if the server is none, -2 if the
/// replication does not run, -3 if the server cannot be asked.
///
/// ```console
/// $ salt db1 mysql.slave_lag
/// ```
#[function]
pub fn slave_lag(
    cx: &Cx,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    #[arg(by_name)]
    connection: Rest,
) -> Result<i64> {
    let answer = Conn::of(cx, &connection).ask(cx, "SHOW SLAVE STATUS")?;
    let Ok(table) = answer else { return Ok(-3) };
    let Some(row) = with_numbers(&table, &SLAVE_NUMBERS).into_iter().next() else { return Ok(-1) };
    let running = text_of(&row, "Slave_IO_Running") == "Yes";
    let lag = row.get("Seconds_Behind_Master").and_then(|lag| lag.as_int());
    Ok(if running { lag.unwrap_or(-2) } else { -2 })
}

/// Make a replica forget its master.
///
/// ```console
/// $ salt db1 mysql.free_slave
/// ```
#[function]
pub fn free_slave(
    cx: &Cx,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    #[arg(by_name)]
    connection: Rest,
) -> Result<String> {
    let conn = Conn::of(cx, &connection);
    let Ok(table) = conn.ask(cx, "SHOW SLAVE STATUS")? else { return Ok(String::new()) };
    let master = table.dicts().first().map(|row| text_of(row, "Master_Host"));
    // differs: Salt breaks on a server that is no replica.
    if master.is_none_or(|master| master.is_empty()) {
        return Ok("failed".into());
    }
    for statement in ["STOP SLAVE", "RESET SLAVE ALL"] {
        if conn.change(cx, statement)?.is_err() {
            return Ok("failed".into());
        }
    }
    Ok("promoted".into())
}

/// Return the server's plugins with their status.
///
/// ```console
/// $ salt db1 mysql.plugins_list
/// ```
#[function]
pub fn plugins_list(
    cx: &Cx,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    #[arg(by_name)]
    connection: Rest,
) -> Result<Value> {
    let rows = Conn::of(cx, &connection).listed(cx, "SHOW PLUGINS", &[])?;
    let short = |row: &Dict| {
        let kept = Dict::new();
        kept.insert("name", row.get("Name").unwrap_or_default());
        kept.insert("status", row.get("Status").unwrap_or_default());
        kept
    };
    Ok(Value::list(rows.iter().map(short)))
}

/// Return the status of a plugin; nothing if it is not installed.
///
/// ```console
/// $ salt db1 mysql.plugin_status unix_socket
/// ```
#[function]
pub fn plugin_status(
    cx: &Cx,
    /// The plugin.
    name: String,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    #[arg(by_name)]
    connection: Rest,
) -> Result<String> {
    Ok(Conn::of(cx, &connection).plugin(cx, &name)?.ok().flatten().unwrap_or_default())
}

fn is_word(name: &str) -> bool {
    !name.is_empty()
        && name.chars().all(|letter| letter.is_alphanumeric() || "_.-".contains(letter))
}

/// Install a plugin.
///
/// ```console
/// $ salt db1 mysql.plugin_add auth_socket
/// ```
#[function]
pub fn plugin_add(
    cx: &Cx,
    /// The plugin.
    name: String,
    /// The file it is in; its name with `.so` if not given.
    soname: Option<String>,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    #[arg(by_name)]
    connection: Rest,
) -> Result<bool> {
    let conn = Conn::of(cx, &connection);
    if conn.plugin(cx, &name)?.is_ok_and(|status| status.is_some()) {
        tracing::error!("Plugin {name} is already installed.");
        return Ok(true);
    }
    if !is_word(&name) {
        return Ok(false);
    }
    let file = soname.unwrap_or_else(|| format!("{name}.so"));
    let statement = format!("INSTALL PLUGIN {name} SONAME {}", literal(&file));
    Ok(conn.change(cx, &statement)?.is_ok())
}

/// Remove a plugin.
///
/// ```console
/// $ salt db1 mysql.plugin_remove auth_socket
/// ```
#[function]
pub fn plugin_remove(
    cx: &Cx,
    /// The plugin.
    name: String,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    #[arg(by_name)]
    connection: Rest,
) -> Result<bool> {
    let conn = Conn::of(cx, &connection);
    match conn.plugin(cx, &name)? {
        Ok(Some(_)) if is_word(&name) => {
            Ok(conn.change(cx, &format!("UNINSTALL PLUGIN {name}"))?.is_ok())
        }
        Ok(_) => {
            tracing::error!("Plugin {name} is not installed.");
            Ok(true)
        }
        Err(_) => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        let maria = Version::read("10.11.19-MariaDB-0+deb12u1");
        assert!(maria.is_mariadb && maria.number == (10, 11, 19));
        assert_eq!(Version::read("5.5.5-10.3.39-MariaDB").number, (10, 3, 39));
        let mysql = Version::read("8.0.36-0ubuntu0.22.04.1");
        assert!(!mysql.is_mariadb && mysql.number == (8, 0, 36));
        assert_eq!(Version::read("").number, (0, 0, 0));
    }
}
