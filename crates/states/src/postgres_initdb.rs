//! `postgres_initdb`: the data folder of a PostgreSQL server.

use halite_modules::postgres;
use halite_spec::{Applied, Args, Cx, Need, Plan, Result, State, states};

states! {
    /// The data folder of a PostgreSQL server.
    "postgres_initdb", needs = [
        Need::function("postgres.datadir_init", "Unable to load postgres module.  Make sure `postgres.bins_dir` is set."),
    ]: "present" => Present,
}

/// Make sure that a folder holds the data of a server.
#[derive(Args)]
pub struct Present {
    /// The folder.
    name: String,
    /// The first role.
    user: Option<String>,
    /// Its password.
    password: Option<String>,
    /// How local users prove who they are.
    #[default("password".to_owned())]
    auth: String,
    /// How letters are stored.
    #[default("UTF8".to_owned())]
    encoding: String,
    /// The locale.
    locale: Option<String>,
    /// The user of this machine the server will run as.
    runas: Option<String>,
    /// The folder of the write-ahead log.
    waldir: Option<String>,
    /// Check data pages.
    #[default(false)]
    checksums: bool,
}

impl State for Present {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        postgres::datadir_exists(cx, self.name.clone())
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let name = &self.name;
        if *there {
            return Ok(Plan::nothing(format!("Postgres data directory {name} is already present")));
        }
        Ok(Plan::change(name.as_str(), "Present")
            .pending(format!("Postgres data directory {name} is set to be initialized"))
            .done(format!("Postgres data directory {name} has been initialized")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let done = postgres::datadir_init(
            cx,
            self.name.clone(),
            self.auth.clone(),
            self.user.clone(),
            self.password.clone(),
            self.encoding.clone(),
            self.locale.clone(),
            self.waldir.clone(),
            self.checksums,
            self.runas.clone(),
        )?;
        Applied::if_done(done, || {
            format!("Postgres data directory {} initialization failed", self.name)
        })
    }
}
