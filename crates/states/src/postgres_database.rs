//! `postgres_database`: databases of a PostgreSQL server.

use halite_modules::postgres::Database;
use halite_spec::{Applied, Args, Cx, Error, Need, Plan, Result, State, states};
use halite_value::Dict;

use crate::postgres::{Client, removal, removed};

states! {
    /// Databases of a PostgreSQL server.
    "postgres_database", needs = [
        Need::function("postgres.user_exists", "Unable to load postgres module.  Make sure `postgres.bins_dir` is set."),
    ]: "present" => Present,
    "absent" => Absent,
}

/// Make sure that a database is there, and belongs to whom it should.
#[derive(Args)]
pub struct Present {
    /// The database.
    name: String,
    /// Where it is kept.
    tablespace: Option<String>,
    /// How letters are stored; cannot be changed later.
    encoding: Option<String>,
    /// How texts are sorted; cannot be changed later.
    lc_collate: Option<String>,
    /// What letters are; cannot be changed later.
    lc_ctype: Option<String>,
    /// The role it belongs to.
    owner: Option<String>,
    /// Give what is in it to the owner, too.
    #[default(false)]
    owner_recurse: bool,
    /// The database it is copied from.
    template: Option<String>,
    #[group]
    client: Client,
}

impl State for Present {
    type Seen = Option<Dict>;

    fn observe(&self, cx: &Cx) -> Result<Option<Dict>> {
        let all = self.client.conn(cx).databases(cx)?;
        let found = all.and_then(|all| all.get(self.name.as_str()));
        Ok(found.and_then(|found| found.as_dict().cloned()))
    }

    fn plan(&self, seen: &Option<Dict>) -> Result<Plan> {
        let name = &self.name;
        let Some(seen) = seen else {
            return Ok(Plan::change(name.as_str(), "Present")
                .pending(format!("Database {name} is set to be created"))
                .done(format!("The database {name} has been created")));
        };
        let differs = |key: &str, wanted: &Option<String>| {
            let own = seen.get(key).unwrap_or_default().to_string();
            wanted.as_ref().is_some_and(|wanted| {
                let wanted = if key == "Encoding" { wanted.to_uppercase() } else { wanted.clone() };
                !wanted.is_empty() && wanted != own
            })
        };
        let fixed = differs("Encoding", &self.encoding)
            || differs("Collate", &self.lc_collate)
            || differs("Ctype", &self.lc_ctype);
        if fixed {
            return Err(Error::failed(format!(
                "Database {name} has wrong parameters which couldn't be changed on fly."
            )));
        }
        if differs("Owner", &self.owner) || differs("Tablespace", &self.tablespace) {
            return Ok(Plan::change(name.as_str(), "Parameters changed")
                .pending(format!("Database {name} exists, but parameters need to be changed"))
                .done(format!("Parameters for database {name} have been changed")));
        }
        Ok(Plan::nothing(format!("Database {name} is already present")))
    }

    fn apply(&self, cx: &Cx, seen: Option<Dict>) -> Result<Applied> {
        let name = &self.name;
        let conn = self.client.conn(cx);
        if seen.is_none() {
            let how = Database {
                tablespace: self.tablespace.clone(),
                encoding: self.encoding.clone(),
                lc_collate: self.lc_collate.clone(),
                lc_ctype: self.lc_ctype.clone(),
                owner: self.owner.clone(),
                template: self.template.clone(),
            };
            return Applied::if_done(conn.create_database(cx, name, &how)?, || {
                format!("Failed to create database {name}")
            });
        }
        let (owner, space) = (self.owner.as_deref(), self.tablespace.as_deref());
        Applied::if_done(conn.alter_database(cx, name, owner, space, self.owner_recurse)?, || {
            format!("Failed to change parameters for database {name}")
        })
    }
}

/// Make sure that a database is not there.
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
        Ok(self.client.conn(cx).databases(cx)?.is_some_and(|all| all.contains(self.name.as_str())))
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        Ok(removal("Database", &self.name, *there))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let done = self.client.conn(cx).drop_database(cx, &self.name)?;
        removed("Database", &self.name, done)
    }
}
