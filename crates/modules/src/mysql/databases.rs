//! Databases and their tables.

use halite_spec::{Args, Cx, Error, Rest, Result, function};
use halite_value::{Dict, Value, entries};

use super::client::{Answer, Conn, Table, identifier, literal};

/// Databases that belong to the server.
const SYSTEM: [&str; 2] = ["mysql", "information_schema"];

/// Tells whether a database belongs to the server, and is never removed.
pub fn is_system(name: &str) -> bool {
    SYSTEM.contains(&name)
}

impl Conn {
    pub fn databases(&self, cx: &Cx) -> Result<Answer<Vec<String>>> {
        Ok(self.ask(cx, "SHOW DATABASES")?.map(|table| table.texts()))
    }

    pub fn has_database(&self, cx: &Cx, name: &str) -> Result<Answer<bool>> {
        Ok(self.database(cx, name)?.map(|found| found.is_some()))
    }

    /// Returns character set and collation of a database.
    // Salt asks `SHOW DATABASES LIKE`, where an underscore stands for any letter.
    pub fn database(&self, cx: &Cx, name: &str) -> Result<Answer<Option<(String, String)>>> {
        let statement = format!(
            "SELECT DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM \
             information_schema.SCHEMATA WHERE SCHEMA_NAME = {}",
            literal(name)
        );
        Ok(self.ask(cx, &statement)?.map(|table| {
            let row = table.rows.into_iter().next()?;
            let mut texts = row.iter().map(Value::to_string);
            Some((texts.next()?, texts.next()?))
        }))
    }

    pub fn create_database(
        &self,
        cx: &Cx,
        name: &str,
        character_set: Option<&str>,
        collate: Option<&str>,
    ) -> Result<Answer<()>> {
        let how = how_stored(character_set, collate);
        self.change(cx, &format!("CREATE DATABASE IF NOT EXISTS {}{how}", identifier(name)))
    }

    pub fn alter_database(
        &self,
        cx: &Cx,
        name: &str,
        character_set: Option<&str>,
        collate: Option<&str>,
    ) -> Result<Answer<()>> {
        let how = how_stored(character_set, collate);
        self.change(cx, &format!("ALTER DATABASE {}{how}", identifier(name)))
    }

    pub fn drop_database(&self, cx: &Cx, name: &str) -> Result<Answer<()>> {
        self.change(cx, &format!("DROP DATABASE {}", identifier(name)))
    }

    fn tables_of(&self, cx: &Cx, name: &str) -> Result<Answer<Option<Vec<String>>>> {
        match self.has_database(cx, name)? {
            Ok(true) => {}
            Ok(false) => {
                tracing::info!("Database '{name}' does not exist");
                return Ok(Ok(None));
            }
            Err(refused) => return Ok(Err(refused)),
        }
        let tables = self.ask(cx, &format!("SHOW TABLES IN {}", identifier(name)))?;
        Ok(tables.map(|table| Some(table.texts())))
    }

    /// `CHECK`, `REPAIR` or `OPTIMIZE` one table, or all of a database.
    fn maintain(&self, cx: &Cx, verb: &str, name: &str, table: Option<&str>) -> Result<Value> {
        let one = |table: &str| -> Result<Value> {
            let statement = format!("{verb} TABLE {}.{}", identifier(name), identifier(table));
            // It reports in a table, and is no mere question for all that.
            Ok(match self.execute_table(cx, &statement)? {
                Ok(found) => Value::list(found.dicts()),
                Err(_) => Value::list(Vec::<Value>::new()),
            })
        };
        if let Some(table) = table.filter(|table| !table.is_empty()) {
            return one(table);
        }
        match self.tables_of(cx, name)? {
            Ok(Some(tables)) => {
                let all: Result<Vec<Value>> = tables.iter().map(|table| one(table)).collect();
                Ok(Value::list(all?))
            }
            Ok(None) => Err(Error::failed(format!("Database '{name}' does not exist"))),
            Err(refused) => Err(refused.into()),
        }
    }

    fn execute_table(&self, cx: &Cx, statement: &str) -> Result<Answer<Table>> {
        Ok(self.execute(cx, statement)?.map(|executed| match executed {
            super::Executed::Found(table) => table,
            super::Executed::Touched(_) => Table::default(),
        }))
    }
}

fn how_stored(character_set: Option<&str>, collate: Option<&str>) -> String {
    let set = character_set.map(|set| format!(" CHARACTER SET {}", literal(set)));
    let collate = collate.map(|collate| format!(" COLLATE {}", literal(collate)));
    format!("{}{}", set.unwrap_or_default(), collate.unwrap_or_default())
}

/// Return the names of all databases.
///
/// ```console
/// $ salt db1 mysql.db_list
/// ```
#[function]
pub fn db_list(
    cx: &Cx,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    #[arg(by_name)]
    connection: Rest,
) -> Result<Vec<String>> {
    Ok(Conn::of(cx, &connection).databases(cx)?.unwrap_or_default())
}

/// Tell whether a database is there.
///
/// ```console
/// $ salt db1 mysql.db_exists shop
/// ```
#[function]
pub fn db_exists(
    cx: &Cx,
    /// The database.
    name: String,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    #[arg(by_name)]
    connection: Rest,
) -> Result<bool> {
    Ok(Conn::of(cx, &connection).has_database(cx, &name)?.unwrap_or(false))
}

/// Return character set and collation of a database; an empty dict if it is not there.
///
/// ```console
/// $ salt db1 mysql.db_get shop
/// ```
#[function]
pub fn db_get(
    cx: &Cx,
    /// The database.
    name: String,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    #[arg(by_name)]
    connection: Rest,
) -> Result<Dict> {
    let found = Conn::of(cx, &connection).database(cx, &name)?.ok().flatten();
    Ok(found
        .map(|(set, collate)| entries! { "character_set" => set, "collate" => collate })
        .unwrap_or_default())
}

/// Return the names of a database's tables; False if there is no such database.
///
/// ```console
/// $ salt db1 mysql.db_tables shop
/// ```
#[function]
pub fn db_tables(
    cx: &Cx,
    /// The database.
    name: String,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    #[arg(by_name)]
    connection: Rest,
) -> Result<Value> {
    Ok(match Conn::of(cx, &connection).tables_of(cx, &name)? {
        Ok(Some(tables)) => Value::list(tables),
        Ok(None) => false.into(),
        Err(_) => Value::list(Vec::<Value>::new()),
    })
}

/// Create a database; False if it is there already.
///
/// ```console
/// $ salt db1 mysql.db_create shop character_set=utf8mb4 collate=utf8mb4_general_ci
/// ```
#[function]
pub fn db_create(
    cx: &Cx,
    /// The database.
    name: String,
    /// Its character set, if not the server's.
    character_set: Option<String>,
    /// Its collation, if not the character set's.
    collate: Option<String>,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    #[arg(by_name)]
    connection: Rest,
) -> Result<bool> {
    let conn = Conn::of(cx, &connection);
    match conn.has_database(cx, &name)? {
        Ok(false) => {}
        Ok(true) => {
            tracing::info!("DB '{name}' already exists");
            return Ok(false);
        }
        Err(_) => return Ok(false),
    }
    let made = conn.create_database(cx, &name, character_set.as_deref(), collate.as_deref())?;
    Ok(made.is_ok())
}

/// Change character set or collation of a database.
///
/// ```console
/// $ salt db1 mysql.alter_db shop character_set=utf8mb4
/// ```
// differs: Salt adds the present collation when only a character set is given, which every server
// refuses; here the server picks the one that belongs to the set.
#[function]
pub fn alter_db(
    cx: &Cx,
    /// The database.
    name: String,
    /// Its new character set.
    character_set: Option<String>,
    /// Its new collation.
    collate: Option<String>,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    #[arg(by_name)]
    connection: Rest,
) -> Result<bool> {
    let conn = Conn::of(cx, &connection);
    if character_set.is_none() && collate.is_none() {
        return Ok(conn.has_database(cx, &name)?.unwrap_or(false));
    }
    let altered = conn.alter_database(cx, &name, character_set.as_deref(), collate.as_deref())?;
    Ok(altered.is_ok())
}

/// Remove a database with everything in it. The server's own ones are never removed.
///
/// ```console
/// $ salt db1 mysql.db_remove shop
/// ```
#[function]
pub fn db_remove(
    cx: &Cx,
    /// The database.
    name: String,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    #[arg(by_name)]
    connection: Rest,
) -> Result<bool> {
    let conn = Conn::of(cx, &connection);
    if is_system(&name) || !conn.has_database(cx, &name)?.unwrap_or(false) {
        tracing::info!("DB '{name}' may not be removed, or does not exist");
        return Ok(false);
    }
    Ok(conn.drop_database(cx, &name)?.is_ok())
}

/// A table, or all of a database.
#[derive(Args)]
pub struct Tables {
    /// The database.
    name: String,
    /// One of its tables; all if not given.
    table: Option<String>,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    #[arg(by_name)]
    connection: Rest,
}

impl Tables {
    fn maintain(&self, cx: &Cx, verb: &str) -> Result<Value> {
        Conn::of(cx, &self.connection).maintain(cx, verb, &self.name, self.table.as_deref())
    }
}

/// Check a table, or all tables of a database, for damage.
///
/// ```console
/// $ salt db1 mysql.db_check shop
/// $ salt db1 mysql.db_check shop orders
/// ```
#[function]
pub fn db_check(cx: &Cx, #[group] tables: Tables) -> Result<Value> {
    tables.maintain(cx, "CHECK")
}

/// Repair a table, or all tables of a database.
///
/// ```console
/// $ salt db1 mysql.db_repair shop orders
/// ```
#[function]
pub fn db_repair(cx: &Cx, #[group] tables: Tables) -> Result<Value> {
    tables.maintain(cx, "REPAIR")
}

/// Give the unused space of a table, or of all tables of a database, back.
///
/// ```console
/// $ salt db1 mysql.db_optimize shop
/// ```
#[function]
pub fn db_optimize(cx: &Cx, #[group] tables: Tables) -> Result<Value> {
    tables.maintain(cx, "OPTIMIZE")
}
