//! `mysql_query`: statements run on a MySQL or MariaDB server.
//!
//! They run each time, unless what they are to leave behind (a file, a grain) is there and shall
//! not be overwritten. Where the database is missing nothing is run and nothing fails.

use std::path::Path;

use halite_modules::{
    grains,
    mysql::{self, Answer, Conn},
};
use halite_spec::{Applied, Args, Cx, Error, Plan, Rest, Result, State, host::Write, states};
use halite_value::{Dict, Value};

states! {
    /// Run statements on a MySQL or MariaDB server.
    "mysql_query": "run" => Run,
    "run_file" => RunFile,
}

/// Where a result goes.
enum Output<'a> {
    Nowhere,
    Grain(&'a str, Option<&'a str>),
    File(&'a str),
}

impl<'a> Output<'a> {
    fn of(output: Option<&'a str>, grain: Option<&'a str>, key: Option<&'a str>) -> Result<Self> {
        match (output, grain) {
            (Some("grain"), None) => {
                Err(Error::failed("Error: output type 'grain' needs the grain parameter\n"))
            }
            (Some("grain"), Some(grain)) => Ok(Self::Grain(grain, key)),
            (Some(path), _) => Ok(Self::File(path)),
            (None, _) => Ok(Self::Nowhere),
        }
    }

    /// `Grain x:y`, `File x`: what is there already.
    fn taken(&self, cx: &Cx) -> Result<Option<String>> {
        Ok(match self {
            Self::Nowhere => None,
            Self::File(path) => cx.host.exists(Path::new(path))?.then(|| format!("File {path}")),
            Self::Grain(grain, None) => {
                cx.grains.contains(*grain).then(|| format!("Grain {grain}"))
            }
            Self::Grain(grain, Some(key)) => {
                let own = cx.grains.get(*grain);
                let own = own.is_some_and(|own| own.get(key).is_some());
                own.then(|| format!("Grain {grain}:{key}"))
            }
        })
    }

    fn plan(&self) -> Plan {
        let (would, done) = match self {
            Self::Nowhere => ("not storing result".to_owned(), "Executed".to_owned()),
            Self::File(path) => {
                (format!("storing result in file: {path}"), format!("Executed. Output into {path}"))
            }
            Self::Grain(grain, key) => {
                let key = key.map(|key| format!(":{key}")).unwrap_or_default();
                (
                    format!("storing result in grain: {grain}{key}"),
                    format!("Executed. Output into grain: {grain}{key}"),
                )
            }
        };
        Plan::change("query", done).pending(format!("Query would execute, {would}"))
    }

    fn store(&self, cx: &Cx, told: &Dict) -> Result<()> {
        let result = told.get("results").unwrap_or_else(|| told.into());
        match self {
            Self::Nowhere => {}
            Self::File(path) => {
                let mut text = String::new();
                match told.get("results").and_then(|rows| rows.items_of_sequence()) {
                    Some(rows) => {
                        for row in rows {
                            for (column, value) in row.as_dict().into_iter().flatten() {
                                text.push_str(&format!("{column}:{value}\n"));
                            }
                        }
                    }
                    None => text = Value::from(told).to_string(),
                }
                cx.host.write(Path::new(path), text.as_bytes(), &Write::default())?;
            }
            Self::Grain(grain, None) => {
                grains::setval(cx, (*grain).to_owned(), result, false, true)?;
            }
            Self::Grain(grain, Some(key)) => {
                let all = match cx.grains.get(*grain) {
                    Some(Value::Dict(own)) => own.deep_copy(),
                    _ => Dict::new(),
                };
                all.insert(*key, result);
                grains::setval(cx, (*grain).to_owned(), all.into(), false, true)?;
            }
        }
        Ok(())
    }
}

/// Rows as dicts, which is how this module tells them.
fn with_dicts(told: Dict) -> Dict {
    let columns = told.get("columns").and_then(|list| list.items_of_sequence()).unwrap_or_default();
    if let Some(rows) = told.get("results").and_then(|rows| rows.items_of_sequence())
        && rows
            .iter()
            .all(|row| row.items_of_sequence().is_some_and(|row| row.len() == columns.len()))
    {
        let dict = |row: &Value| {
            let values = row.items_of_sequence().unwrap_or_default();
            columns.iter().map(Value::to_string).zip(values).collect::<Dict>()
        };
        told.insert("results", Value::list(rows.iter().map(dict)));
    }
    told
}

fn finished(cx: &Cx, output: &Output<'_>, answer: Answer<Dict>) -> Result<Applied> {
    let told = with_dicts(answer?);
    output.store(cx, &told)?;
    Ok(Applied::as_planned().comment(Value::from(told).to_string()))
}

/// What was found.
pub enum Seen {
    Ready,
    NoDatabase,
    Taken(String),
}

impl Seen {
    fn look(
        cx: &Cx,
        conn: &Conn,
        database: &str,
        check: bool,
        overwrite: bool,
        output: &Output<'_>,
    ) -> Result<Self> {
        if check && !conn.has_database(cx, database)?? {
            return Ok(Self::NoDatabase);
        }
        let taken = if overwrite { None } else { output.taken(cx)? };
        Ok(taken.map_or(Self::Ready, Self::Taken))
    }

    fn plan(&self, named: &str, output: &Output<'_>) -> Plan {
        match self {
            Self::Ready => output.plan(),
            // differs: Salt's result is None here even without test=True.
            Self::NoDatabase => Plan::nothing(format!("Database {named} is not present")),
            Self::Taken(what) => Plan::nothing(format!("No execution needed. {what} already set")),
        }
    }
}

/// Run a statement.
#[derive(Args)]
pub struct Run {
    /// A name for the state.
    name: String,
    /// The database.
    database: String,
    /// The statement.
    query: String,
    /// Where the result goes: `grain`, or a file.
    output: Option<String>,
    /// The grain.
    grain: Option<String>,
    /// A key of the grain.
    key: Option<String>,
    /// Run again when the result is there.
    #[default(true)]
    overwrite: bool,
    /// Do nothing when the database is not there.
    #[default(true)]
    check_db_exists: bool,
    /// Kept for Salt's sake.
    #[default(Value::Null)]
    client_flags: Value,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    connection: Rest,
}

impl Run {
    fn output(&self) -> Result<Output<'_>> {
        Output::of(self.output.as_deref(), self.grain.as_deref(), self.key.as_deref())
    }
}

impl State for Run {
    type Seen = Seen;
    const REPEATS: bool = true;

    fn observe(&self, cx: &Cx) -> Result<Seen> {
        let _ = &self.client_flags;
        let conn = Conn::of(cx, &self.connection);
        let (check, again) = (self.check_db_exists, self.overwrite);
        Seen::look(cx, &conn, &self.database, check, again, &self.output()?)
    }

    fn plan(&self, seen: &Seen) -> Result<Plan> {
        Ok(seen.plan(&self.name, &self.output()?))
    }

    fn apply(&self, cx: &Cx, _: Seen) -> Result<Applied> {
        let conn = Conn::of(cx, &self.connection).in_database(&self.database);
        finished(cx, &self.output()?, conn.told(cx, &self.query)?)
    }
}

/// Run the statements of a file.
#[derive(Args)]
pub struct RunFile {
    /// A name for the state.
    name: String,
    /// The database.
    database: String,
    /// The file: of this machine, or of the file server (`salt://`).
    query_file: Option<String>,
    /// Where the result goes: `grain`, or a file.
    output: Option<String>,
    /// The grain.
    grain: Option<String>,
    /// A key of the grain.
    key: Option<String>,
    /// Run again when the result is there.
    #[default(true)]
    overwrite: bool,
    /// The environment of the file.
    saltenv: Option<String>,
    /// Do nothing when the database is not there.
    #[default(true)]
    check_db_exists: bool,
    /// Kept for Salt's sake.
    #[default(Value::Null)]
    client_flags: Value,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    connection: Rest,
}

impl RunFile {
    fn output(&self) -> Result<Output<'_>> {
        Output::of(self.output.as_deref(), self.grain.as_deref(), self.key.as_deref())
    }

    fn file(&self) -> &str {
        self.query_file.as_deref().unwrap_or(&self.name)
    }

    fn text(&self, cx: &Cx) -> Result<String> {
        let saltenv = self.saltenv.as_deref().unwrap_or("base");
        let text = mysql::script(cx, self.file(), saltenv)?;
        text.ok_or_else(|| Error::failed(format!("File {} does not exist", self.file())))
    }
}

impl State for RunFile {
    type Seen = Seen;
    const REPEATS: bool = true;

    fn observe(&self, cx: &Cx) -> Result<Seen> {
        let _ = &self.client_flags;
        self.text(cx)?;
        let conn = Conn::of(cx, &self.connection);
        let (check, again) = (self.check_db_exists, self.overwrite);
        Seen::look(cx, &conn, &self.database, check, again, &self.output()?)
    }

    fn plan(&self, seen: &Seen) -> Result<Plan> {
        Ok(seen.plan(&self.database, &self.output()?))
    }

    fn apply(&self, cx: &Cx, _: Seen) -> Result<Applied> {
        let conn = Conn::of(cx, &self.connection).in_database(&self.database);
        finished(cx, &self.output()?, conn.told_all(cx, &self.text(cx)?)?)
    }
}
