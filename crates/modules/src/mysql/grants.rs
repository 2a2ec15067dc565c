//! Rights of users.
//!
//! The server tells a user's rights as statements (`SHOW GRANTS`); those are taken apart here and
//! compared piece by piece, as order, quotes and case carry no meaning.

use halite_spec::{Args, Cx, Error, Rest, Result, function};
use halite_value::{Dict, Value, entries};

use super::{
    client::{Answer, Conn, identifier, literal},
    users::Account,
};

/// The privileges MySQL 8 lists one by one where others say `ALL PRIVILEGES`.
const ALL_OF_MYSQL_8: [&str; 30] = [
    "SELECT",
    "INSERT",
    "UPDATE",
    "DELETE",
    "CREATE",
    "DROP",
    "RELOAD",
    "SHUTDOWN",
    "PROCESS",
    "FILE",
    "REFERENCES",
    "INDEX",
    "ALTER",
    "SHOW DATABASES",
    "SUPER",
    "CREATE TEMPORARY TABLES",
    "LOCK TABLES",
    "EXECUTE",
    "REPLICATION SLAVE",
    "REPLICATION CLIENT",
    "CREATE VIEW",
    "SHOW VIEW",
    "CREATE ROUTINE",
    "ALTER ROUTINE",
    "CREATE USER",
    "EVENT",
    "TRIGGER",
    "CREATE TABLESPACE",
    "CREATE ROLE",
    "DROP ROLE",
];

const ALL: &str = "ALL PRIVILEGES";

/// A privilege, perhaps for some columns only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Privilege {
    /// In capitals: `SELECT`, `ALL PRIVILEGES`.
    pub name: String,
    pub columns: Vec<String>,
}

/// What shall be granted.
#[derive(Args, Clone, Debug)]
pub struct Grant {
    /// The rights, with commas.
    #[arg(name = "grant")]
    pub privileges: String,
    /// On what: `database.table`, or `database.*`.
    #[arg(name = "database")]
    pub on: String,
    #[group]
    pub account: Account,
    /// The user may pass them on.
    #[default(false)]
    pub grant_option: bool,
    /// Quote the names of `database`.
    #[default(true)]
    pub escape: bool,
}

/// Splits at a letter outside quotes and brackets.
fn parts(text: &str, at: char) -> Vec<String> {
    let (mut all, mut part) = (Vec::new(), String::new());
    let (mut quote, mut depth) = (None, 0u32);
    for letter in text.chars() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"' | '`') => quote = Some(letter),
            (None, '(') => depth += 1,
            (None, ')') => depth = depth.saturating_sub(1),
            _ if letter == at && depth == 0 => {
                all.push(std::mem::take(&mut part));
                continue;
            }
            _ => {}
        }
        part.push(letter);
    }
    all.push(part);
    all
}

fn unquoted(name: &str) -> String {
    name.trim().trim_matches(['`', '\'', '"']).to_owned()
}

/// A name of a database as a pattern and as it is are the same to the reader.
fn plain_object(on: &str) -> String {
    on.chars().filter(|letter| !matches!(letter, '`' | '\\' | ' ')).collect()
}

/// Reads `SELECT, INSERT (a, b)`.
pub fn privileges(text: &str) -> Vec<Privilege> {
    let one = |part: String| {
        let (name, columns) = part.split_once('(').unwrap_or((&part, ""));
        let name = name.split_whitespace().collect::<Vec<_>>().join(" ").to_uppercase();
        let columns = columns.trim().trim_end_matches(')');
        Privilege {
            name: if name == "ALL" { ALL.to_owned() } else { name },
            columns: if columns.is_empty() {
                Vec::new()
            } else {
                parts(columns, ',').iter().map(|column| unquoted(column)).collect()
            },
        }
    };
    parts(text, ',').into_iter().filter(|part| !part.trim().is_empty()).map(one).collect()
}

/// A line of `SHOW GRANTS`, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    privileges: String,
    on: String,
    to: String,
    with_option: bool,
}

/// Finds a word between blanks, outside quotes and brackets.
fn around<'a>(words: &'a [String], word: &str) -> Option<(&'a [String], &'a [String])> {
    let at = words.iter().position(|own| own.eq_ignore_ascii_case(word))?;
    Some((words.get(..at)?, words.get(at + 1..)?))
}

impl Told {
    pub fn read(line: &str) -> Option<Self> {
        let words = parts(line.trim(), ' ');
        let (first, rest) = words.split_first()?;
        if !first.eq_ignore_ascii_case("grant") {
            return None;
        }
        let (privileges, rest) = around(rest, "ON")?;
        let (on, rest) = around(rest, "TO")?;
        let (to, more) = rest.split_first()?;
        let option = more.join(" ").to_uppercase().contains("GRANT OPTION");
        Some(Self {
            privileges: privileges.join(" "),
            on: on.join(" "),
            to: to.clone(),
            with_option: option,
        })
    }
}

impl Privilege {
    /// This one, held, includes the other.
    fn includes(&self, other: &Self) -> bool {
        let column = |name: &String| self.columns.iter().any(|own| own.eq_ignore_ascii_case(name));
        self.name == other.name
            && (self.columns.is_empty()
                || (!other.columns.is_empty() && other.columns.iter().all(column)))
    }

    fn statement(&self) -> Result<String> {
        let fine = |letter: char| letter.is_ascii_alphabetic() || matches!(letter, ' ' | '_');
        if self.name.is_empty() || !self.name.chars().all(fine) {
            return Err(Error::failed(format!("Invalid grant : '{}'", self.name)));
        }
        if self.columns.is_empty() {
            return Ok(self.name.clone());
        }
        let columns: Vec<String> = self.columns.iter().map(|name| identifier(name)).collect();
        Ok(format!("{} ({})", self.name, columns.join(", ")))
    }
}

impl Grant {
    /// The object in a statement's words.
    fn object(&self) -> String {
        if !self.escape {
            return self.on.clone();
        }
        let on = self.on.replace('`', "");
        let (database, table) = on.rsplit_once('.').unwrap_or(("", &on));
        let database = match database {
            "*" => "*".to_owned(),
            // In front of `.*` a name is a pattern.
            other if table == "*" => identifier(&pattern(other)),
            other => identifier(other),
        };
        let table = if table == "*" { "*".to_owned() } else { identifier(table) };
        format!("{database}.{table}")
    }

    fn named(&self) -> Result<String> {
        let all: Result<Vec<String>> =
            privileges(&self.privileges).iter().map(Privilege::statement).collect();
        let all = all?;
        if all.is_empty() {
            Err(Error::failed("Error during grant generation"))
        } else {
            Ok(all.join(", "))
        }
    }

    pub fn statement(&self, ssl_option: &Value) -> Result<String> {
        let require = ssl(ssl_option)?;
        let option = if self.grant_option { " WITH GRANT OPTION" } else { "" };
        let (named, object) = (self.named()?, self.object());
        Ok(format!("GRANT {named} ON {object} TO {}{require}{option}", self.account))
    }

    /// More than one, as `ALL PRIVILEGES, GRANT OPTION ON x` is no statement.
    pub fn revocations(&self) -> Result<Vec<String>> {
        let (named, object, account) = (self.named()?, self.object(), &self.account);
        if self.grant_option && named == ALL {
            return Ok(vec![
                format!("REVOKE {named} ON {object} FROM {account}"),
                format!("REVOKE GRANT OPTION ON {object} FROM {account}"),
            ]);
        }
        let option = if self.grant_option { ", GRANT OPTION" } else { "" };
        Ok(vec![format!("REVOKE {named}{option} ON {object} FROM {account}")])
    }

    /// The privileges a user holds on this object, and whether it may pass them on.
    fn held(&self, told: &[String]) -> (Vec<Privilege>, bool) {
        let object = plain_object(&self.object());
        let told = told.iter().filter_map(|line| Told::read(line));
        let (mut held, mut option) = (Vec::new(), false);
        for one in told.filter(|one| plain_object(&one.on) == object) {
            held.extend(privileges(&one.privileges));
            option |= one.with_option;
        }
        (held, option)
    }

    /// Tells whether exactly this is among a user's grants.
    pub fn is_among(&self, told: &[String]) -> bool {
        let (held, _) = self.held(told);
        let wanted = privileges(&self.privileges);
        !wanted.is_empty()
            && wanted.iter().all(|wanted| {
                held.iter().any(|own| own.includes(wanted))
                    || (wanted.name == ALL && lists_all(&held))
            })
    }

    /// Tells whether nothing would change by granting this.
    // differs: Salt takes a grant for missing when the user holds all privileges, and does not look
    // whether it may pass them on.
    pub fn is_held(&self, told: &[String]) -> bool {
        let (held, option) = self.held(told);
        let all = held.iter().any(|own| own.name == ALL) || lists_all(&held);
        let wanted = privileges(&self.privileges);
        let usage = |wanted: &Privilege| wanted.name == "USAGE";
        let held = self.is_among(told) || (all && !wanted.is_empty()) || wanted.iter().all(usage);
        held && (option || !self.grant_option)
    }
}

fn lists_all(held: &[Privilege]) -> bool {
    ALL_OF_MYSQL_8.iter().all(|name| held.iter().any(|own| own.name == *name))
}

fn pattern(name: &str) -> String {
    name.replace('\\', "\\\\").replace('_', "\\_").replace('%', "\\%")
}

/// ` REQUIRE SSL`, ` REQUIRE CIPHER 'x' AND SUBJECT 'y'`.
fn ssl(option: &Value) -> Result<String> {
    if !option.truthy() {
        return Ok(String::new());
    }
    let items = option.items_of_sequence().unwrap_or_else(|| vec![option.clone()]);
    let mut words = Vec::new();
    for item in items {
        let item = item.as_dict().cloned().unwrap_or_default();
        for (name, value) in &item {
            let name = name.to_string().to_uppercase();
            match name.as_str() {
                "SSL" | "X509" if value.truthy() => words.push(name),
                "SSL" | "X509" => {}
                "SUBJECT" | "ISSUER" | "CIPHER" => {
                    words.push(format!("{name} {}", literal(&value.to_string())));
                }
                _ => return Err(Error::failed(format!("Invalid SSL option '{name}'"))),
            }
        }
    }
    if words.is_empty() {
        return Ok(String::new());
    }
    Ok(format!(" REQUIRE {}", words.join(" AND ")))
}

impl Conn {
    /// Returns the grants of a user as statements; `None` if there is no such user.
    pub fn grants(&self, cx: &Cx, account: &Account) -> Result<Answer<Option<Vec<String>>>> {
        const NO_SUCH_USER: u32 = 1141;
        Ok(match self.ask(cx, &format!("SHOW GRANTS FOR {account}"))? {
            Ok(table) => Ok(Some(table.texts().iter().map(|line| told(line)).collect())),
            Err(refused) if refused.code == NO_SUCH_USER => Ok(None),
            Err(refused) => Err(refused),
        })
    }

    pub fn grant(&self, cx: &Cx, grant: &Grant, ssl_option: &Value) -> Result<Answer<()>> {
        self.change(cx, &grant.statement(ssl_option)?)
    }

    pub fn revoke(&self, cx: &Cx, grant: &Grant) -> Result<Answer<()>> {
        for statement in grant.revocations()? {
            if let Err(refused) = self.change(cx, &statement)? {
                return Ok(Err(refused));
            }
        }
        Ok(Ok(()))
    }
}

/// A grant without the password it may carry.
fn told(line: &str) -> String {
    match line.split_once(" IDENTIFIED BY ") {
        Some((grant, rest)) => {
            let option = rest.find(" WITH ").or_else(|| rest.find(" REQUIRE "));
            format!("{grant}{}", option.and_then(|at| rest.get(at..)).unwrap_or_default())
        }
        None => line.to_owned(),
    }
}

/// Return a user's rights as statements; False if there is no such user.
///
/// ```console
/// $ salt db1 mysql.user_grants frank localhost
/// ```
#[function]
pub fn user_grants(
    cx: &Cx,
    #[group] account: Account,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    #[arg(by_name)]
    connection: Rest,
) -> Result<Value> {
    Ok(match Conn::of(cx, &connection).grants(cx, &account)? {
        Ok(Some(grants)) => Value::list(grants),
        _ => false.into(),
    })
}

/// Tell whether a user has these rights.
///
/// ```console
/// $ salt db1 mysql.grant_exists 'SELECT,INSERT' 'shop.*' frank localhost
/// ```
#[function]
pub fn grant_exists(
    cx: &Cx,
    #[group] grant: Grant,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    #[arg(by_name)]
    connection: Rest,
) -> Result<bool> {
    let told = Conn::of(cx, &connection).grants(cx, &grant.account)?;
    Ok(told.is_ok_and(|told| told.is_some_and(|told| grant.is_among(&told))))
}

/// Give rights to a user.
///
/// ```console
/// $ salt db1 mysql.grant_add 'SELECT,INSERT' 'shop.*' frank localhost
/// ```
#[function]
pub fn grant_add(
    cx: &Cx,
    #[group] grant: Grant,
    /// What the connection has to be: `[{SSL: True}]`, `[{CIPHER: x}, {SUBJECT: y}]`.
    #[default(Value::Bool(false))]
    ssl_option: Value,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    #[arg(by_name)]
    connection: Rest,
) -> Result<bool> {
    match grant.statement(&ssl_option) {
        Ok(_) => Ok(Conn::of(cx, &connection).grant(cx, &grant, &ssl_option)?.is_ok()),
        Err(error) => {
            tracing::error!("{error}");
            Ok(false)
        }
    }
}

/// Take rights from a user.
///
/// ```console
/// $ salt db1 mysql.grant_revoke 'SELECT,INSERT' 'shop.*' frank localhost
/// ```
#[function]
pub fn grant_revoke(
    cx: &Cx,
    #[group] grant: Grant,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    #[arg(by_name)]
    connection: Rest,
) -> Result<bool> {
    match grant.revocations() {
        Ok(_) => Ok(Conn::of(cx, &connection).revoke(cx, &grant)?.is_ok()),
        Err(error) => {
            tracing::error!("{error}");
            Ok(false)
        }
    }
}

/// Take a `GRANT` statement apart.
///
/// ```console
/// $ salt db1 mysql.tokenize_grant "GRANT SELECT, INSERT ON shop.* TO 'frank'@'localhost'"
/// ```
#[function]
pub fn tokenize_grant(
    _cx: &Cx,
    /// The statement.
    grant: String,
) -> Result<Dict> {
    let told = Told::read(&grant).unwrap_or_default();
    let (user, host) = told.to.rsplit_once('@').unwrap_or((&told.to, ""));
    let bare = |text: &str| text.trim_matches('\'').to_owned();
    let mut all = Vec::new();
    for part in parts(&told.privileges, ',') {
        let (name, columns) = part.split_once('(').unwrap_or((&part, ""));
        let name = name.trim().to_uppercase();
        if name.is_empty() {
            continue;
        }
        let columns = parts(columns.trim().trim_end_matches(')'), ',');
        let columns =
            columns.iter().map(|column| column.trim()).filter(|column| !column.is_empty());
        let columns: Vec<String> = columns.map(|column| format!("{name}.{column}")).collect();
        all.push(name);
        all.extend(columns);
    }
    Ok(entries! {
        "user" => bare(user), "host" => bare(host), "grant" => Value::list(all),
        "database" => told.on,
    })
}

/// Return a name in the quotes of statements.
///
/// ```console
/// $ salt db1 mysql.quote_identifier 'foo`bar'
/// ```
#[function]
pub fn quote_identifier(
    _cx: &Cx,
    /// The name.
    identifier: String,
    /// It is a database in front of `.*`, where `_` and `%` have a meaning.
    #[default(false)]
    for_grants: bool,
) -> Result<String> {
    // Salt formats the result once more, and doubles percent signs for that.
    let name = identifier.replace('`', "``");
    let name = if for_grants { name.replace('_', "\\_") } else { name };
    Ok(format!("`{}`", name.replace('%', "%%")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(privileges: &str, on: &str) -> Grant {
        Grant {
            privileges: privileges.into(),
            on: on.into(),
            account: Account { user: "u".into(), host: "%".into() },
            grant_option: false,
            escape: true,
        }
    }

    fn check(privileges: &str, on: &str, told: &str, among: bool) {
        let told = [told.to_owned()];
        assert_eq!(grant(privileges, on).is_among(&told), among, "{privileges} on {on}");
    }

    #[test]
    fn comparing() {
        check("select,INSERT", "t1.*", "GRANT SELECT, INSERT ON `t1`.* TO `u`@`%`", true);
        check("UPDATE", "t1.*", "GRANT SELECT, INSERT ON `t1`.* TO `u`@`%`", false);
        check("ALL", "t_1.*", "GRANT ALL PRIVILEGES ON `t\\_1`.* TO `u`@`%`", true);
        check("all privileges", "t1.*", "GRANT ALL PRIVILEGES ON `t1`.* TO `u`@`%`", true);
        check("SELECT", "t1.*", "GRANT ALL PRIVILEGES ON `t1`.* TO `u`@`%`", false);
        check("SELECT", "t1.x", "GRANT SELECT (`a`) ON `t1`.`x` TO `u`@`%`", false);
        check("SELECT (A)", "t1.x", "GRANT SELECT (`a`, `b`) ON `t1`.`x` TO `u`@`%`", true);
        check("SELECT(a, c)", "t1.x", "GRANT SELECT (`a`, `b`) ON `t1`.`x` TO `u`@`%`", false);
        check("CREATE  USER", "*.*", "GRANT PROCESS, CREATE USER ON *.* TO 'u'@'%'", true);
        check("USAGE", "*.*", "GRANT USAGE ON *.* TO `u`@`%` IDENTIFIED VIA unix_socket", true);
        let mysql_8 = format!("GRANT {} ON *.* TO `u`@`%`", ALL_OF_MYSQL_8.join(", "));
        check("ALL", "*.*", &mysql_8, true);
    }

    #[test]
    fn holding() {
        let all = ["GRANT ALL PRIVILEGES ON `t1`.* TO `u`@`%`".to_owned()];
        assert!(grant("SELECT", "t1.*").is_held(&all));
        let passing = Grant { grant_option: true, ..grant("ALL", "t1.*") };
        assert!(!passing.is_held(&all));
        let all = ["GRANT ALL PRIVILEGES ON `t1`.* TO `u`@`%` WITH GRANT OPTION".to_owned()];
        assert!(passing.is_held(&all));
        assert!(grant("USAGE", "*.*").is_held(&[]));
    }

    #[test]
    fn statements() {
        let shown =
            |privileges: &str, on: &str| grant(privileges, on).statement(&Value::Null).unwrap();
        assert_eq!(shown("all", "t_1.*"), "GRANT ALL PRIVILEGES ON `t\\_1`.* TO 'u'@'%'");
        assert_eq!(
            shown("select (id,n)", "a.b_c"),
            "GRANT SELECT (`id`, `n`) ON `a`.`b_c` TO 'u'@'%'"
        );
        assert_eq!(shown("Process", "*.*"), "GRANT PROCESS ON *.* TO 'u'@'%'");
        assert!(grant("SELECT; DROP", "a.*").statement(&Value::Null).is_err());
        assert!(grant("", "a.*").statement(&Value::Null).is_err());
        let option = |text: &str| halite_value::json::from_str(text).unwrap();
        assert_eq!(ssl(&option(r#"[{"SSL": true}]"#)).unwrap(), " REQUIRE SSL");
        assert_eq!(
            ssl(&option(r#"[{"CIPHER": "x"}, {"SUBJECT": "/CN=y"}]"#)).unwrap(),
            " REQUIRE CIPHER 'x' AND SUBJECT '/CN=y'"
        );
        let both = Grant { grant_option: true, ..grant("ALL", "*.*") }.revocations().unwrap();
        assert_eq!(both.get(1).unwrap(), "REVOKE GRANT OPTION ON *.* FROM 'u'@'%'");
    }

    #[test]
    fn secrets_are_cut_out() {
        let line = "GRANT USAGE ON *.* TO `u`@`%` IDENTIFIED BY PASSWORD '*AB' WITH GRANT OPTION";
        assert_eq!(told(line), "GRANT USAGE ON *.* TO `u`@`%` WITH GRANT OPTION");
    }
}
