//! Roles: users and groups of a PostgreSQL server.

use halite_spec::{Args, Cx, Result, function};
use halite_value::{Dict, Value, entries};
use hmac::{Hmac, KeyInit, Mac};
use md5::{Digest, Md5};
use sha2::Sha256;

use super::queries::{Conn, Connection, Server, array, identifier, literal};
use crate::cmd;

/// What a role shall be; `None` leaves it.
#[derive(Args, Clone, Debug)]
#[arg(defaults)]
pub struct Role {
    /// It may create databases.
    pub createdb: Option<bool>,
    /// It may create roles.
    pub createroles: Option<bool>,
    /// It has the rights of the groups it is in.
    pub inherit: Option<bool>,
    /// It may sign in.
    pub login: Option<bool>,
    /// How many connections it may have.
    pub connlimit: Option<i64>,
    /// How the password is stored: True or `md5`, `scram-sha-256`, or False.
    #[default(Value::Null)]
    pub encrypted: Value,
    /// It may do everything.
    pub superuser: Option<bool>,
    /// It may replicate.
    pub replication: Option<bool>,
    /// The password of the role.
    #[arg(name = "rolepassword")]
    pub password: Option<String>,
    /// Until when the password is good.
    pub valid_until: Option<String>,
    /// The groups it is in.
    #[default(Value::Null)]
    pub groups: Value,
}

/// What a user shall be, in the order `user_update` takes it.
#[derive(Args, Clone, Debug)]
pub struct UserUpdate {
    /// It may create databases.
    createdb: Option<bool>,
    /// It may create roles.
    createroles: Option<bool>,
    /// How the password is stored: True or `md5`, `scram-sha-256`, or False.
    encrypted: Option<Value>,
    /// It may do everything.
    superuser: Option<bool>,
    /// It has the rights of the groups it is in.
    inherit: Option<bool>,
    /// It may sign in.
    login: Option<bool>,
    /// How many connections it may have.
    connlimit: Option<i64>,
    /// It may replicate.
    replication: Option<bool>,
    /// The password of the role.
    rolepassword: Option<String>,
    /// Until when the password is good.
    valid_until: Option<String>,
    /// The groups it is in.
    groups: Option<Value>,
}

impl From<UserUpdate> for Role {
    fn from(given: UserUpdate) -> Self {
        Self {
            createdb: given.createdb,
            createroles: given.createroles,
            encrypted: given.encrypted.unwrap_or_default(),
            superuser: given.superuser,
            inherit: given.inherit,
            login: given.login,
            connlimit: given.connlimit,
            replication: given.replication,
            password: given.rolepassword,
            valid_until: given.valid_until,
            groups: given.groups.unwrap_or_default(),
        }
    }
}

/// What a group shall be, in the order `group_create` takes it.
#[derive(Args, Clone, Debug)]
pub struct GroupCreate {
    /// It may create databases.
    createdb: Option<bool>,
    /// It may create roles.
    createroles: Option<bool>,
    /// How the password is stored: True or `md5`, `scram-sha-256`, or False.
    encrypted: Option<Value>,
    /// It may sign in.
    login: Option<bool>,
    /// It has the rights of the groups it is in.
    inherit: Option<bool>,
    /// It may do everything.
    superuser: Option<bool>,
    /// It may replicate.
    replication: Option<bool>,
    /// The password of the role.
    rolepassword: Option<String>,
    /// The groups it is in.
    groups: Option<Value>,
}

impl From<GroupCreate> for Role {
    fn from(given: GroupCreate) -> Self {
        Self {
            createdb: given.createdb,
            createroles: given.createroles,
            encrypted: given.encrypted.unwrap_or_default(),
            login: given.login,
            inherit: given.inherit,
            superuser: given.superuser,
            replication: given.replication,
            password: given.rolepassword,
            groups: given.groups.unwrap_or_default(),
            ..Self::default()
        }
    }
}

/// What a group shall be, in the order `group_update` takes it.
#[derive(Args, Clone, Debug)]
pub struct GroupUpdate {
    /// It may create databases.
    createdb: Option<bool>,
    /// It may create roles.
    createroles: Option<bool>,
    /// How the password is stored: True or `md5`, `scram-sha-256`, or False.
    encrypted: Option<Value>,
    /// It has the rights of the groups it is in.
    inherit: Option<bool>,
    /// It may sign in.
    login: Option<bool>,
    /// It may do everything.
    superuser: Option<bool>,
    /// It may replicate.
    replication: Option<bool>,
    /// The password of the role.
    rolepassword: Option<String>,
    /// The groups it is in.
    groups: Option<Value>,
}

impl From<GroupUpdate> for Role {
    fn from(given: GroupUpdate) -> Self {
        Self {
            createdb: given.createdb,
            createroles: given.createroles,
            encrypted: given.encrypted.unwrap_or_default(),
            inherit: given.inherit,
            login: given.login,
            superuser: given.superuser,
            replication: given.replication,
            password: given.rolepassword,
            groups: given.groups.unwrap_or_default(),
            ..Self::default()
        }
    }
}

/// How a password is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encryption {
    No,
    Md5,
    Scram,
}

impl Encryption {
    /// Reads the argument `encrypted`: nothing said is md5, as in Salt.
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Md5,
            Value::Str(text) if text.eq_ignore_ascii_case("scram-sha-256") => Self::Scram,
            other if other.truthy() => Self::Md5,
            _ => Self::No,
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn md5_of(role: &str, password: &str) -> String {
    format!("md5{}", hex(&Md5::digest(format!("{password}{role}"))))
}

fn mac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

const ROUNDS: u32 = 4096;

/// The verifier PostgreSQL stores for SCRAM.
// differs: Salt prepares the password with SASLprep; plain text without odd letters is the same.
fn scram_of(password: &str, salt: &[u8]) -> String {
    let mut step = mac(password.as_bytes(), &[salt, &[0, 0, 0, 1]].concat());
    let mut salted = step.clone();
    for _ in 1..ROUNDS {
        step = mac(password.as_bytes(), &step);
        for (own, other) in salted.iter_mut().zip(&step) {
            *own ^= other;
        }
    }
    let client = mac(&salted, b"Client Key");
    let stored = Sha256::digest(&client);
    let server = mac(&salted, b"Server Key");
    let text = crate::hashutil::base64;
    format!("SCRAM-SHA-256${ROUNDS}:{}${}:{}", text(salt), text(&stored), text(&server))
}

/// Tells whether a stored password is this one.
pub fn password_fits(role: &str, stored: &str, password: &str, how: Encryption) -> bool {
    if is_hashed(password) {
        return stored == password;
    }
    match how {
        Encryption::No => stored == password,
        Encryption::Md5 => stored == md5_of(role, password),
        Encryption::Scram => {
            let salt = stored
                .split(['$', ':'])
                .nth(2)
                .and_then(|text| crate::hashutil::from_base64(text.as_bytes()).ok());
            salt.is_some_and(|salt| stored == scram_of(password, &salt))
        }
    }
}

fn is_hashed(password: &str) -> bool {
    let md5 = password.strip_prefix("md5").is_some_and(|rest| {
        rest.len() == 32 && rest.chars().all(|letter| letter.is_ascii_hexdigit())
    });
    md5 || password.starts_with("SCRAM-SHA-256$")
}

fn hashed(cx: &Cx, role: &str, password: &str, how: Encryption) -> String {
    if is_hashed(password) {
        return password.to_owned();
    }
    match how {
        Encryption::No => password.to_owned(),
        Encryption::Md5 => md5_of(role, password),
        Encryption::Scram => {
            // Not a secret; it only has to differ from others.
            let seed = format!("{:?}{}{role}", cx.host.now(), cx.id());
            scram_of(password, Sha256::digest(seed).get(..16).unwrap_or_default())
        }
    }
}

impl Role {
    /// The options behind `WITH`.
    fn options(&self, cx: &Cx, name: &str, creating: bool, group: bool) -> String {
        let mut words = Vec::new();
        let inherit = self.inherit.or(creating.then_some(true));
        let login = self.login.or((creating && !group).then_some(true));
        for (word, flag) in [
            ("INHERIT", inherit),
            ("CREATEDB", self.createdb),
            ("CREATEROLE", self.createroles),
            ("SUPERUSER", self.superuser),
            ("REPLICATION", self.replication),
            ("LOGIN", login),
        ] {
            match flag {
                Some(true) => words.push(word.to_owned()),
                Some(false) => words.push(format!("NO{word}")),
                None => {}
            }
        }
        if let Some(limit) = self.connlimit {
            words.push(format!("CONNECTION LIMIT {limit}"));
        }
        if let Some(password) = &self.password {
            let how = Encryption::of(&self.encrypted);
            let text = literal(&hashed(cx, name, password, how));
            words.push(match how {
                Encryption::No => format!("PASSWORD {text}"),
                _ => format!("ENCRYPTED PASSWORD {text}"),
            });
        }
        if let Some(until) = &self.valid_until {
            words.push(format!("VALID UNTIL {}", literal(until)));
        }
        words.join(" ")
    }

    pub fn group_list(&self) -> Vec<String> {
        if self.groups.truthy() { cmd::split_input(&self.groups) } else { Vec::new() }
    }
}

impl Conn {
    /// Name → what is known of the role; `None` when the server does not answer.
    pub fn roles(&self, cx: &Cx, passwords: bool) -> Result<Option<Dict>> {
        let (password, table) = if passwords {
            (", s.passwd AS password", "LEFT JOIN pg_shadow s ON s.usename = r.rolname")
        } else {
            ("", "")
        };
        let query = format!(
            "SELECT r.rolname AS name, r.rolsuper AS superuser, r.rolinherit AS inherit, \
             r.rolcreaterole AS createrole, r.rolcreatedb AS createdb, r.rolcanlogin AS login, \
             r.rolreplication AS replication, r.rolconnlimit AS connlimit, \
             r.rolvaliduntil::timestamp(0) AS until, r.rolconfig AS config, \
             (SELECT array_agg(g.rolname) FROM pg_catalog.pg_auth_members m JOIN \
             pg_catalog.pg_roles g ON m.roleid = g.oid WHERE m.member = r.oid) AS groups{password} \
             FROM pg_catalog.pg_roles r {table}"
        );
        let Some(rows) = self.ask(cx, &query)? else { return Ok(None) };
        let roles = Dict::new();
        for row in rows {
            let text = |name: &str| {
                let found = row.iter().find(|(own, _)| own == name);
                found.map(|(_, value)| value.clone()).unwrap_or_default()
            };
            let flag = |name: &str| text(name) == "t";
            let or_none = |text: String| if text.is_empty() { Value::Null } else { text.into() };
            let limit = text("connlimit").parse::<i64>().ok().filter(|limit| *limit >= 0);
            let role = entries! {
                "superuser" => flag("superuser"), "inherits privileges" => flag("inherit"),
                "can create roles" => flag("createrole"),
                "can create databases" => flag("createdb"),
                "can update system catalogs" => Value::Null, "can login" => flag("login"),
                "replication" => flag("replication"), "connections" => limit,
                "expiry time" => or_none(text("until")), "defaults variables" => text("config"),
            };
            if passwords {
                role.insert("password", text("password"));
            }
            role.insert("groups", Value::list(array(&text("groups"))));
            roles.insert(text("name"), role);
        }
        Ok(Some(roles))
    }

    pub fn role(&self, cx: &Cx, name: &str, passwords: bool) -> Result<Option<Dict>> {
        let roles = self.roles(cx, passwords)?;
        Ok(roles.and_then(|roles| roles.get(name)).and_then(|role| role.as_dict().cloned()))
    }

    fn grants(name: &str, role: &Role) -> String {
        let own = identifier(name);
        role.group_list()
            .iter()
            .map(|group| format!("; GRANT {} TO {own}", identifier(group)))
            .collect()
    }

    pub fn create_role(&self, cx: &Cx, name: &str, role: &Role, group: bool) -> Result<bool> {
        if self.role(cx, name, false)?.is_some() {
            tracing::info!("{} '{name}' already exists", if group { "Group" } else { "User" });
            return Ok(false);
        }
        let options = role.options(cx, name, true, group);
        let grants = Self::grants(name, role);
        self.change(cx, &format!("CREATE ROLE {} WITH {options}{grants}", identifier(name)))
    }

    pub fn alter_role(&self, cx: &Cx, name: &str, role: &Role, group: bool) -> Result<bool> {
        if self.role(cx, name, false)?.is_none() {
            tracing::info!("{} '{name}' does not exist", if group { "Group" } else { "User" });
            return Ok(false);
        }
        let options = role.options(cx, name, false, group);
        let grants = Self::grants(name, role);
        let own = identifier(name);
        // Without options only memberships change.
        let statement = if options.is_empty() {
            grants.trim_start_matches("; ").to_owned()
        } else {
            format!("ALTER ROLE {own} WITH {options}{grants}")
        };
        if statement.is_empty() {
            return Ok(true);
        }
        self.change(cx, &statement)
    }

    pub fn drop_role(&self, cx: &Cx, name: &str) -> Result<bool> {
        if self.role(cx, name, false)?.is_none() {
            tracing::info!("User '{name}' does not exist");
            return Ok(false);
        }
        self.change(cx, &format!("DROP ROLE {}", identifier(name)))?;
        Ok(self.role(cx, name, false)?.is_none())
    }
}

/// Return all roles: name → what is known of it.
///
/// ```console
/// $ salt web1 postgres.user_list
/// ```
#[function]
pub fn user_list(
    cx: &Cx,
    #[group] connection: Connection,
    /// With the stored passwords.
    #[default(false)]
    return_password: bool,
) -> Result<Dict> {
    Ok(connection.conn(cx).roles(cx, return_password)?.unwrap_or_default())
}

/// Return what is known of a role; None if there is none.
///
/// ```console
/// $ salt '*' postgres.role_get alice
/// ```
#[function]
pub fn role_get(
    cx: &Cx,
    /// The role.
    name: String,
    #[group] connection: Connection,
    /// With the stored password.
    #[default(false)]
    return_password: bool,
) -> Result<Option<Dict>> {
    connection.conn(cx).role(cx, &name, return_password)
}

/// Tell whether there is a role.
///
/// ```console
/// $ salt '*' postgres.user_exists alice
/// ```
#[function]
pub fn user_exists(
    cx: &Cx,
    /// The role.
    name: String,
    #[group] connection: Connection,
) -> Result<bool> {
    Ok(connection.conn(cx).role(cx, &name, false)?.is_some())
}

/// Create a user.
///
/// ```console
/// $ salt '*' postgres.user_create alice createdb=True
/// ```
#[function]
pub fn user_create(
    cx: &Cx,
    /// The role.
    username: String,
    #[group] server: Server,
    #[group] role: Role,
    /// The user of this machine that runs the client.
    runas: Option<String>,
) -> Result<bool> {
    server.conn(cx, runas.as_ref()).create_role(cx, &username, &role, false)
}

/// Change a user.
///
/// ```console
/// $ salt '*' postgres.user_update alice createdb=True
/// ```
#[function]
pub fn user_update(
    cx: &Cx,
    /// The role.
    username: String,
    #[group] server: Server,
    #[group] role: UserUpdate,
    /// The user of this machine that runs the client.
    runas: Option<String>,
) -> Result<bool> {
    server.conn(cx, runas.as_ref()).alter_role(cx, &username, &role.into(), false)
}

/// Remove a user.
///
/// ```console
/// $ salt '*' postgres.user_remove alice
/// ```
#[function]
pub fn user_remove(
    cx: &Cx,
    /// The role.
    username: String,
    #[group] connection: Connection,
) -> Result<bool> {
    connection.conn(cx).drop_role(cx, &username)
}

/// Create a group: a role that cannot sign in.
///
/// ```console
/// $ salt '*' postgres.group_create alice createdb=True
/// ```
#[function]
pub fn group_create(
    cx: &Cx,
    /// The role.
    groupname: String,
    #[group] server: Server,
    #[group] role: GroupCreate,
    /// The user of this machine that runs the client.
    runas: Option<String>,
) -> Result<bool> {
    server.conn(cx, runas.as_ref()).create_role(cx, &groupname, &role.into(), true)
}

/// Change a group.
///
/// ```console
/// $ salt '*' postgres.group_update alice createdb=True
/// ```
#[function]
pub fn group_update(
    cx: &Cx,
    /// The role.
    groupname: String,
    #[group] server: Server,
    #[group] role: GroupUpdate,
    /// The user of this machine that runs the client.
    runas: Option<String>,
) -> Result<bool> {
    server.conn(cx, runas.as_ref()).alter_role(cx, &groupname, &role.into(), true)
}

/// Remove a group.
///
/// ```console
/// $ salt '*' postgres.group_remove staff
/// ```
#[function]
pub fn group_remove(
    cx: &Cx,
    /// The role.
    groupname: String,
    #[group] connection: Connection,
) -> Result<bool> {
    connection.conn(cx).drop_role(cx, &groupname)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords() {
        let stored = "md578d32877be5b1cdc1537e0d54fb86b5f";
        assert!(password_fits("alice", stored, "pw2", Encryption::Md5));
        assert!(!password_fits("alice", stored, "pw1", Encryption::Md5));
        assert!(password_fits("alice", stored, stored, Encryption::Scram));
        // As PostgreSQL's own clients compute it.
        let stored = "SCRAM-SHA-256$4096:8Q1ce4i7VJyNc4Z3vWeHbg==$4zf55ZSuvmvyI5Zkk5Y7/l8a5pAbGICi67sPFl93t5I=:10Vd903pTOJAWG6TFhmNbbwiCNzyThrEI1ZU0pylveE=";
        assert!(password_fits("alice", stored, "pw2", Encryption::Scram));
        assert!(!password_fits("alice", stored, "pw3", Encryption::Scram));
    }
}
