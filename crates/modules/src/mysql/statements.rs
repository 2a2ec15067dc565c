//! Statements of the user's own: `mysql.query` and `mysql.file_query`.

use std::{path::Path, time::Duration};

use halite_spec::{Cx, Error, Rest, Result, function};
use halite_value::{Dict, Value, entries, float_repr};

use super::client::{Answer, Conn, Executed};

fn rounded(number: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (number * scale).round() / scale
}

/// `{human: 39.0ms, raw: '0.03899'}`
fn query_time(time: Duration) -> Dict {
    let seconds = time.as_secs_f64();
    let human = if seconds < 0.5 {
        format!("{}ms", float_repr(rounded(seconds * 1000.0, 1)))
    } else {
        format!("{}s", float_repr(rounded(seconds, 2)))
    };
    entries! { "human" => human, "raw" => float_repr(rounded(seconds, 5)) }
}

impl Conn {
    /// The same server, another database.
    #[must_use]
    pub fn in_database(&self, name: &str) -> Self {
        Self { database: Some(name.to_owned()), ..self.clone() }
    }

    /// Runs a statement and tells about it as `mysql.query` does.
    pub fn told(&self, cx: &Cx, statement: &str) -> Result<Answer<Dict>> {
        let began = cx.host.now();
        let executed = match self.execute(cx, statement)? {
            Ok(executed) => executed,
            Err(refused) => return Ok(Err(refused)),
        };
        let time = cx.host.now().duration_since(began).unwrap_or_default();
        let ret = entries! { "query time" => query_time(time) };
        match executed {
            Executed::Touched(count) => {
                ret.insert("rows affected", count);
            }
            Executed::Found(table) => {
                ret.insert("rows returned", table.rows.len() as i64);
                ret.insert("columns", Value::tuple(table.columns));
                ret.insert("results", Value::tuple(table.rows.into_iter().map(Value::tuple)));
            }
        }
        Ok(Ok(ret))
    }

    /// Runs the statements of a text one after another; the first that fails ends it.
    pub fn told_all(&self, cx: &Cx, text: &str) -> Result<Answer<Dict>> {
        let ret = Dict::new();
        let began = cx.host.now();
        let add = |key: &str, more: i64| {
            let own = ret.get(key).and_then(|count| count.as_int()).unwrap_or(0);
            ret.insert(key, own + more);
        };
        for statement in split(text) {
            let one = match self.told(cx, &statement)? {
                Ok(one) => one,
                Err(refused) => return Ok(Err(refused)),
            };
            for key in ["rows affected", "rows returned"] {
                if let Some(count) = one.get(key).and_then(|count| count.as_int()) {
                    add(key, count);
                }
            }
            for key in ["columns", "results"] {
                if let Some(found) = one.get(key) {
                    let all = ret.get_or_insert_with(key, || Value::list(Vec::<Value>::new()));
                    if let Value::List(all) = all {
                        all.push(found);
                    }
                }
            }
        }
        let time = cx.host.now().duration_since(began).unwrap_or_default().as_secs_f64();
        let human = format!("{}s", float_repr(rounded(time, 2)));
        let time = entries! { "raw" => rounded(time, 5), "human" => human };
        ret.insert("query time", time);
        Ok(Ok(ret))
    }
}

/// Splits a script into statements: at semicolons outside quotes and comments. A `DELIMITER` line,
/// as dumps of procedures have, sets another end. Comments that stand alone are dropped.
pub fn split(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut end = ";".to_owned();
    let mut statement = String::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let at_line = statement.is_empty() || statement.ends_with('\n');
        if at_line && let Some(word) = delimiter(rest) {
            end = word.to_owned();
            rest = rest.split_once('\n').map_or("", |(_, more)| more);
            continue;
        }
        if rest.starts_with(end.as_str()) {
            all.push(std::mem::take(&mut statement));
            rest = rest.get(end.len()..).unwrap_or_default();
            continue;
        }
        let length = match letter {
            '\'' | '"' | '`' => quoted(rest, letter),
            '#' => line(rest),
            '-' if rest.starts_with("-- ") || rest.starts_with("--\n") => line(rest),
            // `/*! … */` is for the server, which reads it as text of the statement.
            '/' if rest.starts_with("/*") => {
                rest.find("*/").map_or(rest.len(), |at| at + "*/".len())
            }
            other => other.len_utf8(),
        };
        let (piece, more) = rest.split_at(length.min(rest.len()));
        let comment = matches!(letter, '#' | '-' | '/') && length > 1 && !piece.starts_with("/*!");
        if !comment {
            statement.push_str(piece);
        }
        rest = more;
    }
    all.push(statement);
    all.retain(|statement| !statement.trim().is_empty());
    all.iter().map(|statement| statement.trim().to_owned()).collect()
}

/// `DELIMITER //` at the begin of a line.
fn delimiter(rest: &str) -> Option<&str> {
    let line = rest.lines().next()?;
    let (word, end) = line.trim().split_once(char::is_whitespace)?;
    word.eq_ignore_ascii_case("delimiter").then(|| end.trim()).filter(|end| !end.is_empty())
}

/// The length of a quoted piece with its quotes.
fn quoted(rest: &str, quote: char) -> usize {
    let mut letters = rest.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        if letter == '\\' && quote != '`' {
            letters.next();
        } else if letter == quote {
            return at + letter.len_utf8();
        }
    }
    rest.len()
}

/// The length of the rest of the line, without its end.
fn line(rest: &str) -> usize {
    rest.find('\n').unwrap_or(rest.len())
}

/// Run a statement and return its rows, or how many rows it touched.
///
/// ```console
/// $ salt db1 mysql.query mydb 'SELECT id, name FROM users LIMIT 3'
/// ```
///
/// Values come back as texts. An empty dict means that the server could not be reached, False that
/// it refused the statement.
#[function]
pub fn query(
    cx: &Cx,
    /// The database.
    database: String,
    /// The statement.
    query: String,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    #[arg(by_name)]
    connection: Rest,
) -> Result<Value> {
    answered(Conn::of(cx, &connection).in_database(&database).told(cx, &query)?)
}

/// A database that is not there is no connection.
fn answered(answer: Answer<Dict>) -> Result<Value> {
    const NO_DATABASE: u32 = 1049;
    Ok(match answer {
        Ok(told) => told.into(),
        Err(refused) if refused.is_connection() || refused.code == NO_DATABASE => Value::dict(),
        Err(_) => false.into(),
    })
}

/// Run the statements of a file and return how many rows they touched.
///
/// ```console
/// $ salt db1 mysql.file_query mydb file_name=salt://schema.sql
/// ```
#[function]
pub fn file_query(
    cx: &Cx,
    /// The database.
    database: String,
    /// A file of this machine, or of the file server (`salt://`).
    file_name: String,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    #[arg(by_name)]
    connection: Rest,
) -> Result<Value> {
    let saltenv =
        connection.kwargs.get("saltenv").map_or("base".into(), |saltenv| saltenv.to_string());
    let Some(text) = script(cx, &file_name, &saltenv)? else {
        tracing::error!("File {file_name} does not exist");
        return Ok(false.into());
    };
    answered(Conn::of(cx, &connection).in_database(&database).told_all(cx, &text)?)
}

/// Returns the text of a script; `None` if there is no such file.
pub fn script(cx: &Cx, name: &str, saltenv: &str) -> Result<Option<String>> {
    let is_remote = ["salt://", "http://", "https://", "ftp://"];
    let path = if is_remote.iter().any(|begin| name.starts_with(begin)) {
        match cx.files.cache(name, saltenv)? {
            Some(path) => path,
            None => return Ok(None),
        }
    } else {
        Path::new(name).to_owned()
    };
    cx.host.read_text_if_there(&path).map_err(Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(split(text), expected, "{text}");
    }

    #[test]
    fn statements() {
        check("a;b ;\n\n;c", &["a", "b", "c"]);
        check("insert 'x;y', \"a\\\";\" ; b", &["insert 'x;y', \"a\\\";\"", "b"]);
        check("-- no; \na; # no; 'x\nb /* ; */ c;", &["a", "b  c"]);
        check("/*!40101 SET x=1 */;\nselect 1-1", &["/*!40101 SET x=1 */", "select 1-1"]);
        check(
            "DELIMITER //\ncreate begin; end//\ndelimiter ;\na;b",
            &["create begin; end", "a", "b"],
        );
        check("'it''s;' ; `a;b`", &["'it''s;'", "`a;b`"]);
        check("'never ended;", &["'never ended;"]);
        check("", &[]);
    }

    #[test]
    fn times() {
        let shown = |ms: u64| query_time(Duration::from_micros(ms * 1000 + 570));
        assert_eq!(shown(150).get("human").unwrap(), Value::str("150.6ms"));
        assert_eq!(shown(150).get("raw").unwrap(), Value::str("0.15057"));
        assert_eq!(shown(1236).get("human").unwrap(), Value::str("1.24s"));
        assert_eq!(query_time(Duration::ZERO).get("human").unwrap(), Value::str("0.0ms"));
    }
}
