//! `postgres_schema`: schemas of a PostgreSQL database.

use halite_modules::postgres::Conn;
use halite_spec::{Applied, Args, Cx, Need, Plan, Result, State, states};
use halite_value::entries;

use crate::postgres::Account;

states! {
    /// Schemas of a PostgreSQL database.
    "postgres_schema", needs = [
        Need::function("postgres.schema_exists", "Unable to load postgres module.  Make sure `postgres.bins_dir` is set."),
    ]: "present" => Present,
    "absent" => Absent,
}

/// The return names the database, too.
fn told(plan: Plan, dbname: &str) -> Plan {
    Plan { extra: entries! { "dbname" => dbname }, ..plan }
}

/// Make sure that a database has a schema.
#[derive(Args)]
pub struct Present {
    /// The database.
    dbname: String,
    /// The schema.
    name: String,
    /// The role it belongs to, if it has to be made.
    owner: Option<String>,
    /// The user of this machine that runs the client.
    user: Option<String>,
    #[group]
    account: Account,
}

impl Present {
    fn conn(&self, cx: &Cx) -> Conn {
        self.account.conn(cx, self.user.as_ref(), Some(&self.dbname))
    }
}

impl State for Present {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        Ok(self.conn(cx).schema(cx, &self.name)?.is_some())
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let Self { name, dbname, .. } = self;
        if *there {
            let plan = Plan::nothing(format!("Schema {name} already exists in database {dbname}"));
            return Ok(told(plan, dbname));
        }
        let plan = Plan::change(name.as_str(), "Present")
            .pending(format!("Schema {name} is set to be created in database {dbname}."))
            .done(format!("Schema {name} has been created in database {dbname}"));
        Ok(told(plan, dbname))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let Self { name, dbname, .. } = self;
        Applied::if_done(self.conn(cx).create_schema(cx, name, self.owner.as_deref())?, || {
            format!("Failed to create schema {name} in database {dbname}")
        })
    }
}

/// Make sure that a schema is not there.
#[derive(Args)]
pub struct Absent {
    /// The database.
    dbname: String,
    /// Its name.
    name: String,
    /// The user of this machine that runs the client.
    user: Option<String>,
    #[group]
    account: Account,
}

impl Absent {
    fn conn(&self, cx: &Cx) -> Conn {
        self.account.conn(cx, self.user.as_ref(), Some(&self.dbname))
    }
}

impl State for Absent {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        Ok(self.conn(cx).schema(cx, &self.name)?.is_some())
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let Self { name, dbname, .. } = self;
        if !there {
            let plan = Plan::nothing(format!(
                "Schema {name} is not present in database {dbname}, so it cannot be removed"
            ));
            return Ok(told(plan, dbname));
        }
        let plan = Plan::change(name.as_str(), "Absent")
            .pending(format!("Schema {name} is set to be removed from database {dbname}"))
            .done(format!("Schema {name} has been removed from database {dbname}"));
        Ok(told(plan, dbname))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let Self { name, dbname, .. } = self;
        Applied::if_done(self.conn(cx).drop_schema(cx, name)?, || {
            format!("Schema {name} failed to be removed from database {dbname}")
        })
    }
}
