//! `postgres_language`: languages of a PostgreSQL database.

use halite_modules::postgres::{Conn, identifier};
use halite_spec::{Applied, Args, Cx, Need, Plan, Result, State, states};

use crate::postgres::Server;

states! {
    /// Languages of a PostgreSQL database.
    "postgres_language", needs = [
        Need::function("postgres.language_create", "Unable to load postgres module.  Make sure `postgres.bins_dir` is set."),
    ]: "present" => Present,
    "absent" => Absent,
}

/// Make sure that a database has a language.
#[derive(Args)]
pub struct Present {
    /// The language.
    name: String,
    /// The database.
    maintenance_db: String,
    /// The user of this machine that runs the client.
    user: Option<String>,
    #[group]
    server: Server,
}

impl Present {
    fn conn(&self, cx: &Cx) -> Conn {
        self.server.conn(cx, self.user.as_ref(), Some(&self.maintenance_db))
    }
}

impl State for Present {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        Ok(self.conn(cx).languages(cx)?.is_some_and(|all| all.contains(self.name.as_str())))
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let name = &self.name;
        if *there {
            return Ok(Plan::nothing(format!("Language {name} is already installed")));
        }
        Ok(Plan::change(name.as_str(), "Present")
            .pending(format!("Language {name} is set to be installed"))
            .done(format!("Language {name} has been installed")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let name = &self.name;
        Applied::if_done(
            self.conn(cx).change(cx, &format!("CREATE LANGUAGE {}", identifier(name)))?,
            || format!("Failed to install language {name}"),
        )
    }
}

/// Make sure that a language is not there.
#[derive(Args)]
pub struct Absent {
    /// Its name.
    name: String,
    /// The database.
    maintenance_db: String,
    /// The user of this machine that runs the client.
    user: Option<String>,
    #[group]
    server: Server,
}

impl Absent {
    fn conn(&self, cx: &Cx) -> Conn {
        self.server.conn(cx, self.user.as_ref(), Some(&self.maintenance_db))
    }
}

impl State for Absent {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        Ok(self.conn(cx).languages(cx)?.is_some_and(|all| all.contains(self.name.as_str())))
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let name = &self.name;
        if !there {
            return Ok(Plan::nothing(format!(
                "Language {name} is not present so it cannot be removed"
            )));
        }
        Ok(Plan::change(name.as_str(), "Absent")
            .pending(format!("Language {name} is set to be removed"))
            .done(format!("Language {name} has been removed")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let name = &self.name;
        Applied::if_done(
            self.conn(cx).change(cx, &format!("DROP LANGUAGE {}", identifier(name)))?,
            || format!("Failed to remove language {name}"),
        )
    }
}
