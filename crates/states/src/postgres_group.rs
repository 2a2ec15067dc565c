//! `postgres_group`: groups of a PostgreSQL server.

use halite_modules::postgres::Role;
use halite_spec::{Applied, Args, Cx, Need, Plan, Result, State, states};
use halite_value::{Dict, Value};

use crate::postgres::{Client, GROUP, differences, removal, removed};

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
    /// Set the password although we cannot tell whether it differs.
    #[default(false)]
    #[shown(None::<bool>)]
    refresh_password: bool,
    /// The groups it is in.
    #[default(Value::Null)]
    groups: Value,
    #[group]
    client: Client,
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
}

impl State for Present {
    type Seen = Option<Dict>;

    fn observe(&self, cx: &Cx) -> Result<Option<Dict>> {
        self.client.conn(cx).role(cx, &self.name, self.password.is_some())
    }

    fn plan(&self, seen: &Option<Dict>) -> Result<Plan> {
        let name = &self.name;
        let differ = |seen| differences(name, &self.role(), seen, self.refresh_password);
        Ok(GROUP.plan(name, seen.as_ref().map(differ)))
    }

    fn apply(&self, cx: &Cx, seen: Option<Dict>) -> Result<Applied> {
        GROUP.apply(cx, &self.client.conn(cx), &self.name, &self.role(), seen.is_some())
    }
}

/// Make sure that a group is not there.
#[derive(Args)]
pub struct Absent {
    /// Its name.
    name: String,
    #[group]
    client: Client,
}

impl State for Absent {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        Ok(self.client.conn(cx).role(cx, &self.name, false)?.is_some())
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        Ok(removal("Group", &self.name, *there))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let done = self.client.conn(cx).drop_role(cx, &self.name)?;
        removed("Group", &self.name, done)
    }
}
