//! What the `postgres_*` states share: how they reach the server, and the plans that differ by a
//! word only.
//!
//! Salt orders the arguments of the connection in two ways, so there are two groups of them.

use halite_modules::postgres::{Conn, Encryption, Role, password_fits};
use halite_spec::{Applied, Args, Cx, Plan, Result};
use halite_value::{Dict, Value};

/// The server, the role to connect as last.
#[derive(Args)]
pub(crate) struct Server {
    /// Its password.
    db_password: Option<String>,
    /// The server.
    db_host: Option<String>,
    /// Its port.
    #[default(Value::Null)]
    db_port: Value,
    /// The role to connect as.
    db_user: Option<String>,
}

/// The server, the role to connect as first.
#[derive(Args)]
pub(crate) struct Account {
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

/// How most states reach the server; each argument may come from the configuration instead.
#[derive(Args)]
pub(crate) struct Client {
    /// The user of this machine that runs the client.
    user: Option<String>,
    /// The database to connect to.
    maintenance_db: Option<String>,
    #[group]
    server: Server,
}

impl Client {
    pub(crate) fn conn(&self, cx: &Cx) -> Conn {
        self.server.conn(cx, self.user.as_ref(), self.maintenance_db.as_ref())
    }
}

impl Server {
    pub(crate) fn conn(&self, cx: &Cx, runas: Option<&String>, database: Option<&String>) -> Conn {
        let Self { db_password, db_host, db_port, db_user } = self;
        Conn::with(cx, [db_user, db_password, db_host], db_port, database, runas)
    }
}

impl Account {
    pub(crate) fn conn(&self, cx: &Cx, runas: Option<&String>, database: Option<&String>) -> Conn {
        let Self { db_password, db_host, db_port, db_user } = self;
        Conn::with(cx, [db_user, db_password, db_host], db_port, database, runas)
    }
}

/// What has to change about a role that is there.
pub(crate) fn differences(name: &str, role: &Role, seen: &Dict, refresh_password: bool) -> Dict {
    let changes = Dict::new();
    for (name, key, wanted) in [
        ("createdb", "can create databases", role.createdb),
        ("inherit", "inherits privileges", role.inherit),
        ("login", "can login", role.login),
        ("createroles", "can create roles", role.createroles),
        ("replication", "replication", role.replication),
        ("superuser", "superuser", role.superuser),
    ] {
        if let Some(wanted) = wanted
            && seen.get(key) != Some(Value::Bool(wanted))
        {
            changes.insert(name, wanted);
        }
    }
    if let Some(password) = &role.password {
        let stored = seen.get("password").unwrap_or_default().to_string();
        let how = Encryption::of(&role.encrypted);
        if refresh_password || !password_fits(name, &stored, password, how) {
            changes.insert("password", true);
        }
    }
    if let Some(until) = &role.valid_until {
        let own = seen.get("expiry time").unwrap_or_default().to_string();
        if !same_time(&own, until) {
            changes.insert("valid_until", until.as_str());
        }
    }
    let own = seen.get("groups").and_then(|list| list.items_of_sequence()).unwrap_or_default();
    let mut missing = role.group_list();
    missing.retain(|group| !own.iter().any(|own| own.to_str() == group.as_str()));
    missing.sort();
    if !missing.is_empty() {
        changes.insert("groups", Value::list(missing));
    }
    changes
}

/// `2030-01-01` is `2030-01-01 00:00:00`.
fn same_time(own: &str, wanted: &str) -> bool {
    own == wanted || own.strip_suffix(" 00:00:00") == Some(wanted)
}

/// A kind of roles: those that sign in, and those that others are in.
pub(crate) struct Kind {
    /// `User`
    noun: &'static str,
    is_group: bool,
}

pub(crate) const USER: Kind = Kind { noun: "User", is_group: false };
pub(crate) const GROUP: Kind = Kind { noun: "Group", is_group: true };

impl Kind {
    /// The plan that a role be there, given what has to change about one that is.
    pub(crate) fn plan(&self, name: &str, changes: Option<Dict>) -> Plan {
        let noun = self.noun;
        let (word, changes) = match changes {
            None => ("created", "Present".into()),
            Some(changes) if changes.is_empty() => {
                return Plan::nothing(format!("{noun} {name} is already present"));
            }
            Some(changes) => ("updated", Value::from(changes)),
        };
        Plan::change(name, changes)
            .pending(format!("{noun} {name} is set to be {word}"))
            .done(format!("The {} {name} has been {word}", noun.to_lowercase()))
    }

    /// Makes a role, or changes one that is there.
    pub(crate) fn apply(
        &self,
        cx: &Cx,
        conn: &Conn,
        name: &str,
        role: &Role,
        there: bool,
    ) -> Result<Applied> {
        let (done, doing) = match there {
            false => (conn.create_role(cx, name, role, self.is_group)?, "create"),
            true => (conn.alter_role(cx, name, role, self.is_group)?, "update"),
        };
        Applied::if_done(done, || format!("Failed to {doing} {} {name}", self.noun.to_lowercase()))
    }
}

/// The plan that a thing be gone: `Tablespace`, `User`.
pub(crate) fn removal(noun: &str, name: &str, there: bool) -> Plan {
    if !there {
        return Plan::nothing(format!("{noun} {name} is not present, so it cannot be removed"));
    }
    Plan::change(name, "Absent")
        .pending(format!("{noun} {name} is set to be removed"))
        .done(format!("{noun} {name} has been removed"))
}

/// What came of it.
pub(crate) fn removed(noun: &str, name: &str, done: bool) -> Result<Applied> {
    Applied::if_done(done, || format!("{noun} {name} failed to be removed"))
}
