//! `sqlite3`: databases in a file, over the program of that name.
//!
//! The program is asked to print values as SQL would write them, so that `1`, `'1'` and NULL stay
//! what they are. Its own commands, which begin with a dot and can do anything, are refused.

use halite_spec::{Cx, Error, Need, Result, function, module};
use halite_value::Value;

use crate::cmd::{Options, plain};

module! {
    /// Databases in a file.
    "sqlite3", needs = [
        Need::for_library(&["sqlite3"], "The sqlite3 execution module failed to load: the sqlite3 python library is not available."),
    ]: version, sqlite_version, modify, fetch, tables, indices, indexes,
}

/// The version of Python's binding that Salt reports; the last there was.
const BINDING: &str = "2.6.0";

/// Reads rows of SQL literals.
fn rows(text: &str) -> Vec<Value> {
    let (mut rows, mut row) = (Vec::new(), Vec::new());
    let mut rest = text;
    while !rest.is_empty() {
        let (value, after) = literal(rest);
        row.push(value);
        rest = after.strip_prefix(',').unwrap_or(after);
        if let Some(next) = after.strip_prefix('\n') {
            rows.push(Value::list(std::mem::take(&mut row)));
            rest = next;
        } else if after.is_empty() {
            break;
        }
    }
    if !row.is_empty() {
        rows.push(Value::list(row));
    }
    rows
}

/// Reads one literal; returns it and what comes after.
fn literal(text: &str) -> (Value, &str) {
    let (hex, quoted) = match text.strip_prefix(['X', 'x']) {
        Some(quoted) if quoted.starts_with('\'') => (true, quoted),
        _ => (false, text),
    };
    if let Some(mut rest) = quoted.strip_prefix('\'') {
        let mut word = String::new();
        while let Some((part, after)) = rest.split_once('\'') {
            word.push_str(part);
            rest = after;
            match after.strip_prefix('\'') {
                Some(more) => {
                    word.push('\'');
                    rest = more;
                }
                None => break,
            }
        }
        return (if hex { bytes(&word) } else { word.into() }, rest);
    }
    let end = text.find([',', '\n']).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    let value = match (word.parse::<i64>(), word.parse::<f64>()) {
        _ if word.eq_ignore_ascii_case("null") => Value::Null,
        (Ok(number), _) => number.into(),
        (_, Ok(number)) => number.into(),
        _ => word.into(),
    };
    (value, rest)
}

fn bytes(digits: &str) -> Value {
    let pair = |at: usize| digits.get(at..at + 2).and_then(|two| u8::from_str_radix(two, 16).ok());
    Value::bytes((0..digits.len()).step_by(2).filter_map(pair).collect::<Vec<u8>>())
}

fn run(cx: &Cx, db: &str, sql: &str, query: bool) -> Result<String> {
    if sql.trim_start().starts_with('.') {
        return Err(Error::raised("OperationalError", "near \".\": syntax error"));
    }
    // The program knows no end of options: what begins like one gets something before it.
    let db = if db.starts_with('-') { format!("./{db}") } else { db.to_owned() };
    let sql = if sql.starts_with('-') { format!("\n{sql}") } else { sql.to_owned() };
    let words = ["sqlite3", "-init", "/dev/null", "-batch", "-bail", "-quote", &db, &sql];
    // Nothing is stripped: text may end in white space.
    let options = Options { query, rstrip: false, ..Options::default() };
    let ran = plain(cx, words, options)?;
    if ran.ok() && ran.stderr.is_empty() {
        return Ok(ran.stdout);
    }
    let said = ran.stderr.lines().next().unwrap_or_default();
    let said = ["Error: in prepare, ", "Parse error: ", "Runtime error: ", "Error: "]
        .iter()
        .find_map(|prefix| said.strip_prefix(prefix))
        .unwrap_or(said);
    Err(Error::raised("OperationalError", said))
}

fn asked(cx: &Cx, db: Option<&String>, sql: Option<&String>, query: bool) -> Result<Value> {
    let Some(db) = db else { return Ok(false.into()) };
    let Some(sql) = sql else {
        let text = "execute() argument 1 must be str, not None";
        return Err(Error::raised("TypeError", text));
    };
    Ok(Value::list(rows(&run(cx, db, sql, query)?)))
}

fn named(cx: &Cx, db: Option<&String>, kind: &str) -> Result<Value> {
    let sql = format!("SELECT name FROM sqlite_master WHERE type='{kind}' ORDER BY name;");
    asked(cx, db, Some(&sql), true)
}

/// Return the version of Python's binding, as Salt has it.
///
/// ```console
/// $ salt '*' sqlite3.version
/// ```
#[function]
pub fn version(cx: &Cx) -> Result<String> {
    let _ = cx;
    Ok(BINDING.to_owned())
}

/// Return the version of SQLite.
///
/// ```console
/// $ salt '*' sqlite3.sqlite_version
/// ```
#[function]
pub fn sqlite_version(cx: &Cx) -> Result<String> {
    let options = Options { query: true, ..Options::default() };
    let ran = plain(cx, ["sqlite3", "-version"], options)?;
    Ok(ran.stdout.split_whitespace().next().unwrap_or_default().to_owned())
}

/// Change something; nothing is returned but True.
///
/// ```console
/// $ salt '*' sqlite3.modify /root/test.db 'CREATE TABLE test(id INT, testdata TEXT);'
/// ```
#[function]
pub fn modify(
    cx: &Cx,
    /// The file.
    db: Option<String>,
    /// The statement.
    sql: Option<String>,
) -> Result<bool> {
    Ok(asked(cx, db.as_ref(), sql.as_ref(), false)? != Value::Bool(false))
}

/// Return all rows of an answer.
///
/// ```console
/// $ salt '*' sqlite3.fetch /root/test.db 'SELECT * FROM test;'
/// ```
#[function]
pub fn fetch(
    cx: &Cx,
    /// The file.
    db: Option<String>,
    /// The question.
    sql: Option<String>,
) -> Result<Value> {
    asked(cx, db.as_ref(), sql.as_ref(), false)
}

/// Return the tables.
///
/// ```console
/// $ salt '*' sqlite3.tables /root/test.db
/// ```
#[function]
pub fn tables(
    cx: &Cx,
    /// The file.
    db: Option<String>,
) -> Result<Value> {
    named(cx, db.as_ref(), "table")
}

/// Return the indices.
///
/// ```console
/// $ salt '*' sqlite3.indices /root/test.db
/// ```
#[function]
pub fn indices(
    cx: &Cx,
    /// The file.
    db: Option<String>,
) -> Result<Value> {
    named(cx, db.as_ref(), "index")
}

/// Return the indices, as `sqlite3.indices`.
///
/// ```console
/// $ salt '*' sqlite3.indexes /root/test.db
/// ```
#[function]
pub fn indexes(
    cx: &Cx,
    /// The file.
    db: Option<String>,
) -> Result<Value> {
    named(cx, db.as_ref(), "index")
}

#[cfg(test)]
mod tests {
    use super::*;
    use halite_value::json;

    #[test]
    fn literals() {
        let check = |text: &str, expected: &str| {
            assert_eq!(Value::list(rows(text)), json::from_str(expected).unwrap(), "{text}");
        };
        check("", "[]");
        check(
            "1,'a',NULL\n2,'it''s, so\nand so',1.5\n",
            r#"[[1, "a", null], [2, "it's, so\nand so", 1.5]]"#,
        );
        check("''\n", r#"[[""]]"#);
        check("-7,1.0e+100\n", "[[-7, 1.0e100]]");
        assert_eq!(rows("X'6869'\n"), [Value::list([Value::bytes(b"hi".to_vec())])]);
    }
}
