//! Users of the server. A user is a name and the host it comes from.
//!
//! What MySQL and MariaDB store, and how they are told to change it, differs with kind and
//! version; one look at the user's row in `mysql.user` answers every question about it.

use std::fmt;

use halite_spec::{Args, Cx, Rest, Result, function};
use halite_value::{Dict, Value};
use sha1::{Digest, Sha1};

use super::{
    client::{Answer, Conn, literal, text_of},
    server::{Version, with_numbers},
};

/// `'frank'@'localhost'`
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The user.
    pub user: String,
    /// The host it comes from.
    #[default("localhost".into())]
    pub host: String,
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", literal(&self.user), literal(&self.host))
    }
}

/// How a user signs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Secret {
    Password(String),
    Hash(String),
    /// Anybody who can reach the server is let in.
    Nothing,
    /// The user of the machine that has the same name.
    Socket,
}

impl Secret {
    /// Reads the arguments; `None` if they allow no way in. A password goes before a hash.
    pub fn of(
        password: Option<&str>,
        hash: Option<&str>,
        allow_passwordless: bool,
        socket: bool,
    ) -> Option<Self> {
        let given = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
        if let Some(password) = given(password) {
            return Some(Self::Password(password));
        }
        if let Some(hash) = given(hash) {
            return Some(Self::Hash(hash));
        }
        match (allow_passwordless, socket) {
            (true, true) => Some(Self::Socket),
            (true, false) => Some(Self::Nothing),
            (false, _) => None,
        }
    }
}

/// The server's own hash of a password: `mysql_native_password`.
pub fn native_hash(password: &str) -> String {
    let hex = Sha1::digest(Sha1::digest(password.as_bytes()));
    let hex: String = hex.iter().map(|byte| format!("{byte:02X}")).collect();
    format!("*{hex}")
}

/// `CREATE USER … IDENTIFIED` and its relatives came and went.
impl Version {
    fn is_new_mysql(&self) -> bool {
        !self.is_mariadb && self.number >= (8, 0, 11)
    }

    fn created(&self, secret: &Secret, plugin: &str) -> String {
        let with = format!(" IDENTIFIED WITH {}", literal(plugin));
        match secret {
            Secret::Password(text) if self.is_new_mysql() => format!("{with} BY {}", literal(text)),
            Secret::Password(text) => format!(" IDENTIFIED BY {}", literal(text)),
            Secret::Hash(hash) if self.is_new_mysql() => format!("{with} AS {}", literal(hash)),
            Secret::Hash(hash) => format!(" IDENTIFIED BY PASSWORD {}", literal(hash)),
            Secret::Nothing => String::new(),
            Secret::Socket if self.is_mariadb => " IDENTIFIED VIA unix_socket".into(),
            Secret::Socket => " IDENTIFIED WITH auth_socket".into(),
        }
    }

    /// The statement that changes how a user signs in.
    fn changed(&self, account: &Account, secret: &Secret, plugin: &str) -> String {
        let alter = format!("ALTER USER {account} IDENTIFIED");
        let native = literal("mysql_native_password");
        let hash = match secret {
            Secret::Password(text) => native_hash(text),
            Secret::Hash(hash) => hash.clone(),
            Secret::Nothing => String::new(),
            Secret::Socket if self.is_mariadb => return format!("{alter} VIA unix_socket"),
            Secret::Socket => return format!("{alter} WITH auth_socket"),
        };
        if self.is_mariadb && self.number >= (10, 2, 0) {
            return format!("{alter} VIA {native} USING {}", literal(&hash));
        }
        if !self.is_mariadb && self.number >= (5, 7, 6) {
            let plugin = if plugin.is_empty() { "mysql_native_password" } else { plugin };
            let with = format!("{alter} WITH {}", literal(plugin));
            return match secret {
                Secret::Password(text) => format!("{with} BY {}", literal(text)),
                _ => format!("{with} AS {}", literal(&hash)),
            };
        }
        format!("SET PASSWORD FOR {account} = {}", literal(&hash))
    }
}

impl Conn {
    /// Returns the user's row of `mysql.user`.
    pub fn user(&self, cx: &Cx, account: &Account) -> Result<Answer<Option<Dict>>> {
        let statement = format!(
            "SELECT * FROM mysql.user WHERE User = {} AND Host = {}",
            literal(&account.user),
            literal(&account.host)
        );
        let numbers = ["max_questions", "max_updates", "max_connections", "max_user_connections"];
        Ok(self.ask(cx, &statement)?.map(|table| with_numbers(&table, &numbers).into_iter().next()))
    }

    /// Tells whether a user signs in like this.
    pub fn fits(
        &self,
        cx: &Cx,
        row: &Dict,
        account: &Account,
        secret: &Secret,
        column: Option<&str>,
    ) -> Result<bool> {
        let text = |name: &str| text_of(row, name);
        let stored = match column {
            Some(column) => text(column),
            // MariaDB of some years kept it in the second and left the first empty.
            None => Some(text("Password"))
                .filter(|stored| !stored.is_empty())
                .unwrap_or_else(|| text("authentication_string")),
        };
        Ok(match secret {
            Secret::Hash(hash) => stored == *hash,
            Secret::Nothing => stored.is_empty(),
            Secret::Socket => matches!(text("plugin").as_str(), "unix_socket" | "auth_socket"),
            // Other hashes have a salt only the server knows how to use.
            Secret::Password(password)
                if matches!(
                    text("plugin").as_str(),
                    "caching_sha2_password" | "sha256_password" | "ed25519"
                ) =>
            {
                self.lets_in(cx, &account.user, Some(password))?
            }
            Secret::Password(password) => stored.eq_ignore_ascii_case(&native_hash(password)),
        })
    }

    /// Tries to sign in.
    pub fn lets_in(&self, cx: &Cx, user: &str, password: Option<&str>) -> Result<bool> {
        let other = Self {
            user: Some(user.to_owned()),
            password: password.map(str::to_owned),
            default_file: None,
            database: None,
            ..self.clone()
        };
        Ok(other.ask(cx, "SELECT 1")?.is_ok())
    }

    pub fn create_user(
        &self,
        cx: &Cx,
        account: &Account,
        secret: &Secret,
        plugin: &str,
    ) -> Result<Answer<()>> {
        let version = match self.version(cx)? {
            Ok(version) => version,
            Err(refused) => return Ok(Err(refused)),
        };
        self.change(cx, &format!("CREATE USER {account}{}", version.created(secret, plugin)))
    }

    pub fn change_secret(
        &self,
        cx: &Cx,
        account: &Account,
        secret: &Secret,
        plugin: &str,
    ) -> Result<Answer<()>> {
        let version = match self.version(cx)? {
            Ok(version) => version,
            Err(refused) => return Ok(Err(refused)),
        };
        self.change(cx, &version.changed(account, secret, plugin))
    }

    pub fn drop_user(&self, cx: &Cx, account: &Account) -> Result<Answer<()>> {
        self.change(cx, &format!("DROP USER {account}"))
    }
}

/// Return every user with its host.
///
/// ```console
/// $ salt db1 mysql.user_list
/// ```
#[function]
pub fn user_list(
    cx: &Cx,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    #[arg(by_name)]
    connection: Rest,
) -> Result<Value> {
    let table = Conn::of(cx, &connection).ask(cx, "SELECT User,Host FROM mysql.user")?;
    Ok(Value::list(table.unwrap_or_default().dicts()))
}

/// Tell whether a user is there and, if asked, signs in with this password.
///
/// ```console
/// $ salt db1 mysql.user_exists frank localhost secret
/// $ salt db1 mysql.user_exists frank passwordless=True
/// ```
#[function]
pub fn user_exists(
    cx: &Cx,
    #[group] account: Account,
    /// Its password.
    password: Option<String>,
    /// Its password, as the server stores it.
    password_hash: Option<String>,
    /// It needs no password.
    #[default(false)]
    passwordless: bool,
    /// It signs in by the user of the machine.
    #[default(false)]
    unix_socket: bool,
    /// The column of `mysql.user` that holds the password.
    password_column: Option<String>,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    #[arg(by_name)]
    connection: Rest,
) -> Result<bool> {
    let conn = Conn::of(cx, &connection);
    let Ok(Some(row)) = conn.user(cx, &account)? else { return Ok(false) };
    let secret =
        Secret::of(password.as_deref(), password_hash.as_deref(), passwordless, unix_socket);
    match secret {
        Some(secret) => conn.fits(cx, &row, &account, &secret, password_column.as_deref()),
        None => Ok(true),
    }
}

/// Return all that the server stores about a user; None if there is none.
///
/// ```console
/// $ salt db1 mysql.user_info root localhost
/// ```
#[function]
pub fn user_info(
    cx: &Cx,
    #[group] account: Account,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    #[arg(by_name)]
    connection: Rest,
) -> Result<Value> {
    Ok(match Conn::of(cx, &connection).user(cx, &account)? {
        Ok(row) => row.map_or(Value::Null, Value::from),
        Err(_) => false.into(),
    })
}

const NO_WAY_IN: &str =
    "password or password_hash must be specified, unless allow_passwordless=True";

/// How a user signs in, and how we do.
#[derive(Args)]
pub struct Login {
    /// Its password.
    password: Option<String>,
    /// Its password, as the server stores it.
    password_hash: Option<String>,
    /// It may do without a password.
    #[default(false)]
    allow_passwordless: bool,
    /// Without a password: it signs in by the user of the machine.
    #[default(false)]
    unix_socket: bool,
    /// The column of `mysql.user` that holds the password; found out unless said.
    pub password_column: Option<String>,
    /// How MySQL 8 stores the password.
    #[default("mysql_native_password".into())]
    pub auth_plugin: String,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    #[arg(by_name)]
    pub connection: Rest,
}

impl Login {
    /// What it signs in with; `None` where nothing is said.
    pub fn secret(&self) -> Option<Secret> {
        let (password, hash) = (self.password.as_deref(), self.password_hash.as_deref());
        Secret::of(password, hash, self.allow_passwordless, self.unix_socket)
    }
}

/// Create a user; False if it is there already.
///
/// ```console
/// $ salt db1 mysql.user_create frank localhost secret
/// $ salt db1 mysql.user_create frank '%' password_hash='*6C8989366EAF75BB670AD8EA7A7FC1176A95CEF4'
/// ```
#[function]
pub fn user_create(cx: &Cx, #[group] account: Account, #[group] login: Login) -> Result<bool> {
    let conn = Conn::of(cx, &login.connection);
    match conn.user(cx, &account)? {
        Ok(None) => {}
        Ok(Some(_)) => {
            tracing::info!("User {account} already exists");
            return Ok(false);
        }
        Err(_) => return Ok(false),
    }
    let Some(secret) = login.secret() else {
        tracing::error!("{NO_WAY_IN}");
        return Ok(false);
    };
    Ok(conn.create_user(cx, &account, &secret, &login.auth_plugin)?.is_ok())
}

/// Change a user's password.
///
/// ```console
/// $ salt db1 mysql.user_chpass frank localhost newsecret
/// ```
#[function]
pub fn user_chpass(
    cx: &Cx,
    #[group] account: Account,
    /// Its new password.
    password: Option<String>,
    /// Its new password, as the server stores it.
    password_hash: Option<String>,
    /// It may do without a password.
    #[default(false)]
    allow_passwordless: bool,
    /// Without a password: it signs in by the user of the machine.
    #[default(Value::Null)]
    unix_socket: Value,
    /// Kept for Salt's sake; the column is found out.
    password_column: Option<String>,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    #[arg(by_name)]
    connection: Rest,
) -> Result<bool> {
    let _ = password_column;
    let conn = Conn::of(cx, &connection);
    let secret = Secret::of(
        password.as_deref(),
        password_hash.as_deref(),
        allow_passwordless,
        unix_socket.truthy(),
    );
    let Some(secret) = secret else {
        tracing::error!("{NO_WAY_IN}");
        return Ok(false);
    };
    let Ok(Some(row)) = conn.user(cx, &account)? else {
        tracing::info!("User {account} does not exist");
        return Ok(false);
    };
    let plugin = text_of(&row, "plugin");
    Ok(conn.change_secret(cx, &account, &secret, &plugin)?.is_ok())
}

/// Remove a user; False if there is none.
///
/// ```console
/// $ salt db1 mysql.user_remove frank localhost
/// ```
#[function]
pub fn user_remove(
    cx: &Cx,
    #[group] account: Account,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    #[arg(by_name)]
    connection: Rest,
) -> Result<bool> {
    let conn = Conn::of(cx, &connection);
    let Ok(Some(_)) = conn.user(cx, &account)? else {
        tracing::info!("User {account} does not exist");
        return Ok(false);
    };
    Ok(conn.drop_user(cx, &account)?.is_ok())
}

/// Tell whether the server lets a user in.
///
/// ```console
/// $ salt db1 mysql.verify_login frank secret
/// ```
#[function]
pub fn verify_login(
    cx: &Cx,
    /// The user.
    user: String,
    /// Its password.
    password: Option<String>,
    /// How to connect: `connection_host`, `connection_port` …
    #[arg(by_name)]
    connection: Rest,
) -> Result<bool> {
    Conn::of(cx, &connection).lets_in(cx, &user, password.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(server: &str, secret: &Secret, created: &str, changed: &str) {
        let version = Version::read(server);
        let account = Account { user: "u".into(), host: "%".into() };
        assert_eq!(version.created(secret, "p"), created, "{server}");
        assert_eq!(version.changed(&account, secret, "p"), changed, "{server}");
    }

    #[test]
    fn dialects() {
        let password = Secret::Password("pw".into());
        let hash = Secret::Hash("*AB".into());
        check(
            "10.11.1-MariaDB",
            &password,
            " IDENTIFIED BY 'pw'",
            "ALTER USER 'u'@'%' IDENTIFIED VIA 'mysql_native_password' USING \
             '*D821809F681A40A6E379B50D0463EFAE20BDD122'",
        );
        check(
            "10.1.1-MariaDB",
            &hash,
            " IDENTIFIED BY PASSWORD '*AB'",
            "SET PASSWORD FOR 'u'@'%' = '*AB'",
        );
        check(
            "8.0.36",
            &password,
            " IDENTIFIED WITH 'p' BY 'pw'",
            "ALTER USER 'u'@'%' IDENTIFIED WITH 'p' BY 'pw'",
        );
        check(
            "8.0.36",
            &hash,
            " IDENTIFIED WITH 'p' AS '*AB'",
            "ALTER USER 'u'@'%' IDENTIFIED WITH 'p' AS '*AB'",
        );
        check(
            "10.11.1-MariaDB",
            &Secret::Socket,
            " IDENTIFIED VIA unix_socket",
            "ALTER USER 'u'@'%' IDENTIFIED VIA unix_socket",
        );
    }

    #[test]
    fn hashes() {
        // As `SELECT PASSWORD('mypass')` says.
        assert_eq!(native_hash("mypass"), "*6C8989366EAF75BB670AD8EA7A7FC1176A95CEF4");
    }
}
