//! `postgres_group`: groups of a PostgreSQL server.

use halite_modules::postgres::{Conn, Encryption, Role, password_fits};
use halite_spec::{Applied, Args, Cx, Error, Need, Plan, Result, State, states};
use halite_value::{Dict, Value};

use crate::postgres_user::connection;

states! {
    /// Groups of a PostgreSQL server.
    "postgres_group", needs = [
        Need::function("postgres.user_exists", "Unable to load postgres module.  Make sure `postgres.bins_dir` is set."),
    ]: "present" => Present,
    "absent" => Absent,
}

/// Make sure that a group is there, and as it should be.
#[derive(Args)]
pub struct Present {
    /// The role.
    name: String,
    /// It may create databases.
    createdb: Option<bool>,
    /// It may create roles.
    createroles: Option<bool>,
    /// How the password is stored: True or `md5`, `scram-sha-256`, or False.
    #[default(Value::Null)]
    encrypted: Value,
    /// It may do everything.
    superuser: Option<bool>,
    /// It has the rights of the groups it is in.
    inherit: Option<bool>,
    /// It may sign in.
    login: Option<bool>,
    /// It may replicate.
    replication: Option<bool>,
    /// Its password.
    password: Option<String>,
    /// The groups it is in.
    #[default(Value::Null)]
    groups: Value,
    /// The user of this machine that runs the client.
    user: Option<String>,
    /// The database to connect to.
    maintenance_db: Option<String>,
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

impl Present {
    fn conn(&self, cx: &Cx) -> Conn {
        connection(
            cx,
            [&self.user, &self.db_user, &self.db_password, &self.db_host],
            &self.db_port,
            self.maintenance_db.as_deref(),
        )
    }
}

impl Present {
    fn role(&self) -> Role {
        Role {
            createdb: self.createdb,
            createroles: self.createroles,
            inherit: self.inherit,
            login: self.login,
            superuser: self.superuser,
            replication: self.replication,
            encrypted: self.encrypted.clone(),
            password: self.password.clone(),
            groups: self.groups.clone(),
            ..Role::default()
        }
    }

    /// What has to change about a role that is there.
    fn differences(&self, seen: &Dict) -> Dict {
        let changes = Dict::new();
        for (name, key, wanted) in [
            ("createdb", "can create databases", self.createdb),
            ("inherit", "inherits privileges", self.inherit),
            ("login", "can login", self.login),
            ("createroles", "can create roles", self.createroles),
            ("replication", "replication", self.replication),
            ("superuser", "superuser", self.superuser),
        ] {
            if let Some(wanted) = wanted
                && seen.get(key) != Some(Value::Bool(wanted))
            {
                changes.insert(name, wanted);
            }
        }
        if let Some(password) = &self.password {
            let stored = seen.get("password").unwrap_or_default().to_string();
            let how = Encryption::of(&self.encrypted);
            if !password_fits(&self.name, &stored, password, how) {
                changes.insert("password", true);
            }
        }
        let own = seen.get("groups").and_then(|list| list.items_of_sequence()).unwrap_or_default();
        let mut missing = self.role().group_list();
        missing.retain(|group| !own.iter().any(|own| own.to_str() == group.as_str()));
        missing.sort();
        if !missing.is_empty() {
            changes.insert("groups", Value::list(missing));
        }
        changes
    }
}

impl State for Present {
    type Seen = Option<Dict>;

    fn observe(&self, cx: &Cx) -> Result<Option<Dict>> {
        self.conn(cx).role(cx, &self.name, self.password.is_some())
    }

    fn plan(&self, seen: &Option<Dict>) -> Result<Plan> {
        let name = &self.name;
        let Some(seen) = seen else {
            return Ok(Plan::change(name.as_str(), "Present")
                .pending(format!("Group {name} is set to be created"))
                .done(format!("The group {name} has been created")));
        };
        let changes = self.differences(seen);
        if changes.is_empty() {
            return Ok(Plan::nothing(format!("Group {name} is already present")));
        }
        Ok(Plan::change(name.as_str(), changes)
            .pending(format!("Group {name} is set to be updated"))
            .done(format!("The group {name} has been updated")))
    }

    fn apply(&self, cx: &Cx, seen: Option<Dict>) -> Result<Applied> {
        let name = &self.name;
        let conn = self.conn(cx);
        let (done, doing) = match seen {
            None => {
                let role = self.role();
                (conn.create_role(cx, name, &role, true)?, "create")
            }
            Some(_) => (conn.alter_role(cx, name, &self.role(), true)?, "update"),
        };
        if done {
            return Ok(Applied::as_planned());
        }
        Err(Error::failed(format!("Failed to {doing} group {name}")))
    }
}

/// Make sure that a group is not there.
#[derive(Args)]
pub struct Absent {
    /// Its name.
    name: String,
    /// The user of this machine that runs the client.
    user: Option<String>,
    /// The database to connect to.
    maintenance_db: Option<String>,
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

impl Absent {
    fn conn(&self, cx: &Cx) -> Conn {
        connection(
            cx,
            [&self.user, &self.db_user, &self.db_password, &self.db_host],
            &self.db_port,
            self.maintenance_db.as_deref(),
        )
    }
}

impl State for Absent {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        Ok(self.conn(cx).role(cx, &self.name, false)?.is_some())
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let name = &self.name;
        if !there {
            return Ok(Plan::nothing(format!(
                "Group {name} is not present, so it cannot be removed"
            )));
        }
        Ok(Plan::change(name.as_str(), "Absent")
            .pending(format!("Group {name} is set to be removed"))
            .done(format!("Group {name} has been removed")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let name = &self.name;
        if self.conn(cx).drop_role(cx, name)? {
            return Ok(Applied::as_planned());
        }
        Err(Error::failed(format!("Group {name} failed to be removed")))
    }
}
