//! Running the client program, and reading what it prints.
//!
//! Statements go in by standard input, never on the command line, where everybody could read them;
//! the password goes in by the environment. `--binary-mode` takes the client's own commands
//! (`\!`, `source`) out of the reach of a statement's text, and a delimiter of our own keeps a
//! statement with semicolons whole. Answers come as `--xml`: the one form that tells NULL from the
//! word, and that shows a result without rows.

use halite_spec::{Cx, Error, Rest, Result, host::Command};
use halite_value::{Dict, Value};

/// How to reach a server.
#[derive(Clone, Debug, Default)]
pub struct Conn {
    pub host: Option<String>,
    pub port: Option<String>,
    pub user: Option<String>,
    pub password: Option<String>,
    pub socket: Option<String>,
    pub charset: Option<String>,
    /// An option file to take the rest from.
    pub default_file: Option<String>,
    pub default_group: Option<String>,
    pub database: Option<String>,
}

/// Why the server (or the way to it) refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub code: u32,
    pub text: String,
}

impl Refused {
    /// As Salt writes it.
    pub fn message(&self) -> String {
        format!("MySQL Error {}: {}", self.code, self.text)
    }

    /// The server was not reached, or did not let us in.
    pub fn is_connection(&self) -> bool {
        (2000..3000).contains(&self.code) || matches!(self.code, 1040 | 1044 | 1045 | 1698)
    }
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        Self::failed(refused.message())
    }
}

/// What the server answered: an error of its own is an answer, too.
pub type Answer<T> = Result<T, Refused>;

/// A result with its rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Unknown when there are no rows.
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Value>>,
}

/// A column of a row as text; nothing for NULL and for what is not there.
pub fn text_of(row: &Dict, column: &str) -> String {
    row.get(column)
        .filter(|value| !value.is_null())
        .map(|value| value.to_string())
        .unwrap_or_default()
}

impl Table {
    /// Returns the rows as dicts.
    pub fn dicts(&self) -> Vec<Dict> {
        let row = |row: &Vec<Value>| {
            let columns = self.columns.iter().map(String::as_str);
            columns.zip(row.iter().cloned()).collect::<Dict>()
        };
        self.rows.iter().map(row).collect()
    }

    /// Returns the first column as texts.
    pub fn texts(&self) -> Vec<String> {
        self.rows.iter().filter_map(|row| row.first()).map(Value::to_string).collect()
    }
}

/// Not a text that anybody writes in a statement.
const DELIMITER: &str = "$$HALITE$$";

/// A text in quotes.
///
/// Quotes are doubled rather than escaped: that holds in every mode of the server.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// A name in backticks.
pub fn identifier(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

impl Conn {
    /// Reads the arguments every function takes (`connection_host` …); what is missing comes from
    /// the configuration (`mysql.host` …).
    pub fn of(cx: &Cx, given: &Rest) -> Self {
        Self::read(cx, &given.kwargs)
    }

    pub fn read(cx: &Cx, given: &Dict) -> Self {
        let text = |name: &str| {
            let own = given.get(format!("connection_{name}").as_str());
            let own = own.filter(|value| !value.is_null()).map(|value| value.to_string());
            own.or_else(|| {
                let key = format!("mysql.{name}");
                let found = cx.opt(&key).or_else(|| cx.pillar.get(key.as_str()));
                found.filter(Value::truthy).map(|value| value.to_string())
            })
            .filter(|text| !text.is_empty())
        };
        Self {
            host: text("host"),
            port: text("port"),
            user: text("user"),
            password: text("pass"),
            socket: text("unix_socket"),
            charset: text("charset"),
            default_file: text("default_file"),
            default_group: text("default_group"),
            database: text("db"),
        }
    }

    fn command(&self, cx: &Cx, form: &[&str]) -> Result<Command> {
        let program = ["mysql", "mariadb"].into_iter().find(|name| cx.host.which(name).is_some());
        let program = program.ok_or_else(|| {
            Error::failed("Unable to find the program mysql: is the client installed?")
        })?;
        // An option file has to be named first, and would win over the environment's password:
        // without one of the user's choice none is read.
        let mut command = Command::line([program]);
        command = match &self.default_file {
            Some(file) => command.arg(format!("--defaults-file={file}")),
            None => command.arg("--no-defaults"),
        };
        if let Some(group) = self.default_group.as_deref().filter(|group| *group != "client") {
            command = command.arg(format!("--defaults-group-suffix={group}"));
        }
        command = command.args(form);
        let charset = self.charset.as_deref().unwrap_or("utf8mb4");
        command = command.arg(format!("--default-character-set={charset}"));
        for (option, value) in [
            ("host", &self.host),
            ("port", &self.port),
            ("user", &self.user),
            ("socket", &self.socket),
        ] {
            if let Some(value) = value {
                command = command.arg(format!("--{option}={value}"));
            }
        }
        // The client takes `localhost` for the socket, whatever port was asked for.
        let local = self.host.as_deref().is_none_or(|host| host == "localhost");
        if local && self.socket.is_none() && self.port.as_deref().is_some_and(|port| port != "3306")
        {
            command = command.arg("--protocol=TCP");
        }
        if let Some(database) = &self.database {
            command = command.arg(format!("--database={database}"));
        }
        if let Some(password) = &self.password {
            command = command.env("MYSQL_PWD", password);
        }
        Ok(command)
    }

    fn run(&self, cx: &Cx, script: String, query: bool) -> Result<Answer<Vec<u8>>> {
        let delimiter = format!("--delimiter={DELIMITER}");
        let mut command =
            self.command(cx, &["--xml", "--quick", "--binary-mode", delimiter.as_str()])?;
        command.stdin = Some(script.into_bytes());
        command.query = query;
        let output = cx.host.run(&command)?;
        if output.ok() {
            return Ok(Ok(output.stdout));
        }
        let refused = refusal(&output.stderr_text(), output.code);
        tracing::error!("{}", refused.message());
        Ok(Err(refused))
    }

    /// Asks; the statement must not change anything.
    pub fn ask(&self, cx: &Cx, statement: &str) -> Result<Answer<Table>> {
        let answer = self.run(cx, statement.to_owned(), true)?;
        Ok(answer.map(|said| tables(&said).into_iter().next().unwrap_or_default()))
    }

    /// Changes something.
    pub fn change(&self, cx: &Cx, statement: &str) -> Result<Answer<()>> {
        Ok(self.run(cx, statement.to_owned(), false)?.map(|_| ()))
    }

    /// Runs a user's statement: a table, or the number of rows it touched.
    pub fn execute(&self, cx: &Cx, statement: &str) -> Result<Answer<Executed>> {
        let script = format!("{statement}\n{DELIMITER}\nSELECT ROW_COUNT()\n{DELIMITER}\n");
        let answer = self.run(cx, script, false)?;
        let mut found = match answer {
            Ok(said) => tables(&said),
            Err(refused) => return Ok(Err(refused)),
        };
        let count = found.pop().unwrap_or_default();
        if found.is_empty() {
            let count = count.texts().first().and_then(|text| text.parse().ok()).unwrap_or(0);
            return Ok(Ok(Executed::Touched(count)));
        }
        let mut table = found.swap_remove(0);
        if table.rows.is_empty() && is_reading(statement) {
            table.columns = self.columns(cx, statement)?;
        }
        Ok(Ok(Executed::Found(table)))
    }

    /// The columns of a result without rows: only this form of output names them.
    fn columns(&self, cx: &Cx, statement: &str) -> Result<Vec<String>> {
        let delimiter = format!("--delimiter={DELIMITER}");
        let mut command = self
            .command(cx, &["--table", "--column-type-info", "--binary-mode", delimiter.as_str()])?;
        command.stdin = Some(statement.as_bytes().to_vec());
        let output = cx.host.run(&command.query())?;
        Ok(output.stdout_text().lines().filter_map(field_name).collect())
    }
}

/// What a user's statement did.
#[derive(Clone, Debug, PartialEq)]
pub enum Executed {
    Found(Table),
    Touched(i64),
}

/// The statement may be run twice without harm.
fn is_reading(statement: &str) -> bool {
    let word: String = statement
        .trim_start()
        .chars()
        .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
        .collect();
    matches!(
        word.to_ascii_lowercase().as_str(),
        "select" | "show" | "describe" | "desc" | "explain"
    )
}

/// ``Field   1:  `id` `` is `id`.
fn field_name(line: &str) -> Option<String> {
    let (number, name) = line.strip_prefix("Field ")?.split_once(':')?;
    number.trim().parse::<u32>().ok()?;
    Some(name.trim().strip_prefix('`')?.strip_suffix('`')?.to_owned())
}

/// `ERROR 1054 (42S22) at line 1: Unknown column`
fn refusal(said: &str, code: i32) -> Refused {
    for line in said.lines() {
        let Some((number, rest)) =
            line.strip_prefix("ERROR ").and_then(|rest| rest.split_once(' '))
        else {
            continue;
        };
        if let (Ok(code), Some((_, text))) = (number.parse(), rest.split_once(": ")) {
            return Refused { code, text: text.trim().to_owned() };
        }
    }
    let text = match said.trim() {
        "" => format!("the client ended with code {code}"),
        other => other.to_owned(),
    };
    // The client's own number for what it cannot name.
    Refused { code: 2000, text }
}

/// Reads the tables of `--xml`. Not a parser of XML: the client writes control characters and
/// bytes that no text has just as they are.
pub(super) fn tables(said: &[u8]) -> Vec<Table> {
    let mut all: Vec<Table> = Vec::new();
    let mut rest = said;
    while let Some(at) = find(rest, b"<") {
        rest = rest.get(at..).unwrap_or_default();
        if rest.starts_with(b"<resultset ") {
            all.push(Table::default());
            // The statement it answers to stands in an attribute, escaped.
            rest = after(rest, b">");
        } else if rest.starts_with(b"<row>") {
            if let Some(table) = all.last_mut() {
                table.rows.push(Vec::new());
            }
            rest = after(rest, b">");
        } else if rest.starts_with(b"<field name=\"") {
            rest = after(rest, b"\"");
            let end = find(rest, b"\"").unwrap_or(rest.len());
            let name = text(rest.get(..end).unwrap_or_default()).to_string();
            rest = rest.get(end..).unwrap_or_default();
            let value = if rest.starts_with(b"\" xsi:nil=\"true\"") {
                rest = after(rest, b"/>");
                Value::Null
            } else {
                rest = after(rest, b">");
                let end = find(rest, b"</field>").unwrap_or(rest.len());
                let value = text(rest.get(..end).unwrap_or_default());
                rest = rest.get(end..).unwrap_or_default();
                value
            };
            if let Some(table) = all.last_mut() {
                if table.rows.len() == 1 {
                    table.columns.push(name);
                }
                if let Some(row) = table.rows.last_mut() {
                    row.push(value);
                }
            }
        } else {
            rest = rest.get(1..).unwrap_or_default();
        }
    }
    all
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

fn after<'a>(bytes: &'a [u8], mark: &[u8]) -> &'a [u8] {
    find(bytes, mark).and_then(|at| bytes.get(at + mark.len()..)).unwrap_or_default()
}

/// Bytes that are no text are shown as Python shows them, as Salt does.
fn text(bytes: &[u8]) -> Value {
    let mut plain = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    const ENTITIES: [(&[u8], u8); 5] =
        [(b"&lt;", b'<'), (b"&gt;", b'>'), (b"&amp;", b'&'), (b"&quot;", b'"'), (b"&apos;", b'\'')];
    while let Some((&first, more)) = rest.split_first() {
        let entity = ENTITIES.iter().find(|(entity, _)| rest.starts_with(entity));
        match entity {
            Some((entity, byte)) => {
                plain.push(*byte);
                rest = rest.get(entity.len()..).unwrap_or_default();
            }
            None => {
                plain.push(first);
                rest = more;
            }
        }
    }
    match String::from_utf8(plain) {
        Ok(text) => text.into(),
        Err(error) => Value::Bytes(error.into_bytes().into()).repr().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers() {
        let said = b"<?xml version=\"1.0\"?>\n\n<resultset statement=\"select n &lt; 1\n\" \
            xmlns:xsi=\"http://x\">\n  <row>\n\t<field name=\"n\">a&lt;b\n\\n&amp;\x01</field>\n\t\
            <field name=\"NULL\" xsi:nil=\"true\" />\n\t<field name=\"\"></field>\n  </row>\n\n  \
            <row>\n\t<field name=\"n\">\xff</field>\n\t<field name=\"NULL\" xsi:nil=\"true\" />\n\t\
            <field name=\"\">NULL</field>\n  </row>\n</resultset>\n<?xml version=\"1.0\"?>\n\n\
            <resultset statement=\"x\" xmlns:xsi=\"http://x\"></resultset>\n";
        let found = tables(said);
        assert_eq!(found.len(), 2);
        let first = found.first().unwrap();
        assert_eq!(first.columns, ["n", "NULL", ""]);
        assert_eq!(first.rows.first().unwrap(), &["a<b\n\\n&\x01".into(), Value::Null, "".into()]);
        assert_eq!(first.rows.get(1).unwrap(), &[r"b'\xff'".into(), Value::Null, "NULL".into()]);
        assert!(found.get(1).unwrap().rows.is_empty());
        assert!(tables(b"").is_empty());
    }

    #[test]
    fn refusals() {
        let said = "--------------\nselect x\n--------------\n\nERROR 1054 (42S22) at line 1: \
                    Unknown column 'x' in 'SELECT'\n";
        let refused = refusal(said, 1);
        assert_eq!(refused.message(), "MySQL Error 1054: Unknown column 'x' in 'SELECT'");
        let said = "ERROR 2002 (HY000): Can't connect to server on '127.0.0.1' (115)\n";
        assert!(refusal(said, 1).is_connection());
        assert_eq!(refusal("mysql: unknown option '--x'\n", 7).code, 2000);
    }

    #[test]
    fn names_and_texts() {
        assert_eq!(literal("o'x\\y"), "'o''x\\\\y'");
        assert_eq!(identifier("a`b"), "`a``b`");
        assert_eq!(field_name("Field   1:  `id`").as_deref(), Some("id"));
        assert_eq!(field_name("Org_field:  `id`"), None);
        assert!(is_reading(" SELECT 1") && !is_reading("select_x") && !is_reading("insert"));
    }
}
