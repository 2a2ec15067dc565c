//! Running `psql`, and reading what it prints.

use halite_spec::{Args, Cx, Error, Result};
use halite_value::{Dict, Value};

use crate::cmd::{self, Options, Ran};

/// How to reach a server.
#[derive(Clone, Debug, Default)]
pub struct Conn {
    pub user: Option<String>,
    pub host: Option<String>,
    pub port: Option<String>,
    pub database: Option<String>,
    pub password: Option<String>,
    pub runas: Option<String>,
}

/// A server and a database of it; each argument may come from the configuration instead.
#[derive(Args)]
pub struct Server {
    /// The role to connect as.
    user: Option<String>,
    /// The server.
    host: Option<String>,
    /// Its port.
    #[default(Value::Null)]
    port: Value,
    /// The database to connect to.
    maintenance_db: Option<String>,
    /// The password of the role.
    password: Option<String>,
}

impl Server {
    pub(super) fn conn(&self, cx: &Cx, runas: Option<&String>) -> Conn {
        let Self { user, host, port, maintenance_db, password } = self;
        Conn::with(cx, [user, password, host], port, maintenance_db.as_ref(), runas)
    }
}

/// How most functions connect.
#[derive(Args)]
pub struct Connection {
    #[group]
    server: Server,
    /// The user of this machine that runs the client.
    runas: Option<String>,
}

impl Connection {
    pub(super) fn conn(&self, cx: &Cx) -> Conn {
        self.server.conn(cx, self.runas.as_ref())
    }
}

/// How functions connect that name the database themselves.
#[derive(Args)]
pub struct Account {
    /// The role to connect as.
    user: Option<String>,
    /// The server.
    host: Option<String>,
    /// Its port.
    #[default(Value::Null)]
    port: Value,
    /// The password of the role.
    password: Option<String>,
    /// The user of this machine that runs the client.
    runas: Option<String>,
}

impl Account {
    pub(super) fn conn(&self, cx: &Cx, database: Option<&String>) -> Conn {
        let Self { user, host, port, password, runas } = self;
        Conn::with(cx, [user, password, host], port, database, runas.as_ref())
    }
}

/// How the functions about schemas connect: they name the arguments differently.
#[derive(Args)]
pub struct SchemaAccount {
    /// The user of this machine that runs the client.
    user: Option<String>,
    /// The role to connect as.
    db_user: Option<String>,
    /// Its password.
    db_password: Option<String>,
    /// The server.
    db_host: Option<String>,
    /// Its port.
    #[default(Value::Null)]
    db_port: Value,
}

impl SchemaAccount {
    pub(super) fn conn(&self, cx: &Cx, database: Option<&String>) -> Conn {
        let Self { user, db_user, db_password, db_host, db_port } = self;
        let role = [db_user, db_password, db_host];
        Conn::with(cx, role, db_port, database, user.as_ref())
    }
}

/// A row: column and value.
pub type Row = Vec<(String, String)>;

fn option(cx: &Cx, name: &str) -> Option<String> {
    let found = cx.opt(name).or_else(|| cx.pillar.get(name));
    found.filter(Value::truthy).map(|value| value.to_string())
}

/// A name in double quotes.
pub fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text in single quotes.
pub fn literal(text: &str) -> String {
    let escaped = text.replace('\'', "''");
    // A backslash means itself only in this form.
    if escaped.contains('\\') {
        return format!("E'{}'", escaped.replace('\\', "\\\\"));
    }
    format!("'{escaped}'")
}

/// Returns the client: on the `PATH`, or where the configuration says.
pub(super) fn psql(cx: &Cx) -> String {
    match option(cx, "postgres.bins_dir") {
        Some(folder) => format!("{}/psql", folder.trim_end_matches('/')),
        None => "psql".to_owned(),
    }
}

impl Conn {
    /// Takes what was given; what is missing comes from the configuration.
    pub fn with(
        cx: &Cx,
        [user, password, host]: [&Option<String>; 3],
        port: &Value,
        database: Option<&String>,
        runas: Option<&String>,
    ) -> Self {
        let or_configured = |given: Option<&String>, name: &str| {
            given.filter(|text| !text.is_empty()).cloned().or_else(|| option(cx, name))
        };
        let port = Some(port).filter(|port| port.truthy()).map(|port| port.to_string());
        Self {
            user: or_configured(user.as_ref(), "postgres.user"),
            host: or_configured(host.as_ref(), "postgres.host"),
            port: or_configured(port.as_ref(), "postgres.port"),
            database: or_configured(database, "postgres.maintenance_db"),
            password: or_configured(password.as_ref(), "postgres.pass"),
            runas: or_configured(runas, "postgres.runas"),
        }
    }

    /// The same server, another database.
    #[must_use]
    pub fn in_database(&self, name: &str) -> Self {
        Self { database: Some(name.to_owned()), ..self.clone() }
    }

    fn run(&self, cx: &Cx, more: &[&str], query: bool) -> Result<Ran> {
        let program = psql(cx);
        if cx.host.which(&program).is_none() {
            return Err(Error::failed(format!(
                "Unable to find {program}: is the client installed?"
            )));
        }
        let mut words =
            vec![program, "--no-align".into(), "--no-readline".into(), "--no-psqlrc".into()];
        words.push("--no-password".into());
        for (name, value) in
            [("--username", &self.user), ("--host", &self.host), ("--port", &self.port)]
        {
            if let Some(value) = value {
                words.extend([name.to_owned(), value.clone()]);
            }
        }
        let database = self.database.clone().unwrap_or_else(|| "postgres".into());
        words.extend(["--dbname".to_owned(), database]);
        words.extend(more.iter().map(|word| (*word).to_owned()));
        let env = Dict::new();
        if let Some(password) = &self.password {
            env.insert("PGPASSWORD", password.as_str());
        }
        let local = self.host.as_deref().is_none_or(|host| host.starts_with('/'));
        let runas = self.runas.clone().or_else(|| local.then(|| "postgres".to_owned()));
        let runas = runas.filter(|user| cx.host.user_named(user).is_ok_and(|user| user.is_some()));
        let options = Options {
            runas,
            env: env.into(),
            query,
            reset_system_locale: false,
            ..Options::default()
        };
        cmd::plain(cx, words, options)
    }

    /// Asks; `None` when the server does not answer, with the reason in the log.
    pub fn ask(&self, cx: &Cx, query: &str) -> Result<Option<Vec<Row>>> {
        self.copied(cx, &format!("COPY ({query}) TO STDOUT WITH CSV HEADER"), true)
    }

    /// Asks with a query that may change something.
    pub fn ask_writing(&self, cx: &Cx, query: &str) -> Result<Option<Vec<Row>>> {
        let text = format!(
            "START TRANSACTION READ WRITE; COPY ({query}) TO STDOUT WITH CSV HEADER; COMMIT \
             TRANSACTION;"
        );
        self.copied(cx, &text, false)
    }

    fn copied(&self, cx: &Cx, text: &str, query: bool) -> Result<Option<Vec<Row>>> {
        let ran = self.run(cx, &["-v", "datestyle=ISO,MDY", "-c", text], query)?;
        if !ran.ok() {
            tracing::error!("Error connecting to Postgresql server: {}", ran.stderr);
            return Ok(None);
        }
        Ok(Some(rows(&ran.stdout)))
    }

    /// Changes something; false, with the reason in the log, if the server refuses.
    pub fn change(&self, cx: &Cx, statement: &str) -> Result<bool> {
        let ran = self.run(cx, &["-c", statement], false)?;
        if !ran.ok() {
            tracing::error!("{}", ran.stderr);
        }
        Ok(ran.ok())
    }

    pub fn version(&self, cx: &Cx) -> Result<Option<String>> {
        let query = "SELECT setting FROM pg_catalog.pg_settings WHERE name = 'server_version'";
        let ran = self.run(cx, &["-c", query, "-t"], true)?;
        Ok(ran.stdout.lines().next().filter(|_| ran.ok()).map(str::to_owned))
    }
}

/// Reads CSV with a header.
pub(super) fn rows(text: &str) -> Vec<Row> {
    let mut records = records(text).into_iter();
    let Some(header) = records.next() else { return Vec::new() };
    records.map(|record| header.iter().cloned().zip(record).collect()).collect()
}

fn records(text: &str) -> Vec<Vec<String>> {
    let (mut all, mut record, mut field) = (Vec::new(), Vec::new(), String::new());
    let mut quoted = false;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                field.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => record.push(std::mem::take(&mut field)),
            '\n' if !quoted => {
                record.push(std::mem::take(&mut field));
                all.push(std::mem::take(&mut record));
            }
            other => field.push(other),
        }
    }
    if !field.is_empty() || !record.is_empty() {
        record.push(field);
        all.push(record);
    }
    all
}

/// The items of PostgreSQL's text form of an array: `{a,"b c"}`.
pub(super) fn array(text: &str) -> Vec<String> {
    let inner = text.trim().trim_start_matches('{').trim_end_matches('}');
    if inner.is_empty() {
        return Vec::new();
    }
    let (mut items, mut item, mut quoted) = (Vec::new(), String::new(), false);
    let mut letters = inner.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => item.extend(letters.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => items.push(std::mem::take(&mut item)),
            other => item.push(other),
        }
    }
    items.push(item);
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv() {
        let found = rows("a,b\n1,\"x, \"\"y\"\"\nz\"\n,2\n");
        assert_eq!(found.len(), 2);
        assert_eq!(found.first().unwrap().get(1).unwrap().1, "x, \"y\"\nz");
        assert_eq!(found.get(1).unwrap().first().unwrap().1, "");
        assert!(rows("").is_empty());
    }

    #[test]
    fn arrays() {
        assert_eq!(array("{a,\"b c\",\"d\\\"e\"}"), ["a", "b c", "d\"e"]);
        assert!(array("{}").is_empty() && array("").is_empty());
    }

    #[test]
    fn quoting() {
        assert_eq!(identifier("a\"b"), "\"a\"\"b\"");
        assert_eq!(literal("it's"), "'it''s'");
        assert_eq!(literal("a\\'b"), "E'a\\\\''b'");
    }
}
