//! `postgres_extension`: extensions of a PostgreSQL database.

use halite_modules::postgres::Conn;
use halite_spec::{Applied, Args, Cx, Error, Need, Plan, Result, State, states};

use crate::postgres::{Account, removal, removed};

states! {
    /// Extensions of a PostgreSQL database.
    "postgres_extension", needs = [
        Need::function("postgres.create_extension", "Unable to load postgres module.  Make sure `postgres.bins_dir` is set."),
    ]: "present" => Present,
    "absent" => Absent,
}

/// Make sure that a database has an extension.
#[derive(Args)]
pub struct Present {
    /// The extension.
    name: String,
    /// It is fine if it is there.
    #[default(true)]
    #[shown(None::<bool>)]
    if_not_exists: bool,
    /// The schema it goes to.
    schema: Option<String>,
    /// Its version.
    ext_version: Option<String>,
    /// Accepted, as Salt does: no server of today knows it.
    #[expect(dead_code, reason = "taken and ignored")]
    from_version: Option<String>,
    /// The user of this machine that runs the client.
    user: Option<String>,
    /// The database to connect to.
    maintenance_db: Option<String>,
    #[group]
    account: Account,
}

impl Present {
    fn conn(&self, cx: &Cx) -> Conn {
        self.account.conn(cx, self.user.as_ref(), self.maintenance_db.as_ref())
    }
}

impl State for Present {
    /// Whether it is there, and whether it is as it should be.
    type Seen = (bool, bool);

    fn observe(&self, cx: &Cx) -> Result<(bool, bool)> {
        let (version, schema) = (self.ext_version.as_deref(), self.schema.as_deref());
        let state = self.conn(cx).extension_state(cx, &self.name, version, schema)?;
        let there = !state.iter().any(|part| part.ends_with("NOT INSTALLED"));
        Ok((there, there && state.len() == 1))
    }

    fn plan(&self, (there, right): &(bool, bool)) -> Result<Plan> {
        let name = &self.name;
        if *right {
            return Ok(Plan::nothing(format!("Extension {name} is already present")));
        }
        let (how, doing) =
            if *there { ("Upgraded", "upgraded") } else { ("Installed", "installed") };
        Ok(Plan::change(name.as_str(), how)
            .pending(format!("Extension {name} is set to be {doing}"))
            .done(format!("The extension {name} has been {doing}")))
    }

    fn apply(&self, cx: &Cx, (there, _): (bool, bool)) -> Result<Applied> {
        let name = &self.name;
        let (version, schema) = (self.ext_version.as_deref(), self.schema.as_deref());
        if self.conn(cx).create_extension(cx, name, self.if_not_exists, schema, version)? {
            return Ok(Applied::as_planned());
        }
        let doing = if there { "upgrade" } else { "install" };
        Err(Error::failed(format!("Failed to {doing} extension {name}")))
    }
}

/// Make sure that an extension is not there.
#[derive(Args)]
pub struct Absent {
    /// Its name.
    name: String,
    /// It is fine if it is not there.
    #[expect(dead_code, reason = "whether it is there is looked at first")]
    if_exists: Option<bool>,
    /// Not if something needs it; the usual.
    #[expect(dead_code, reason = "the usual")]
    restrict: Option<bool>,
    /// With all that needs it.
    #[default(false)]
    #[shown(None::<bool>)]
    cascade: bool,
    /// The user of this machine that runs the client.
    user: Option<String>,
    /// The database to connect to.
    maintenance_db: Option<String>,
    #[group]
    account: Account,
}

impl Absent {
    fn conn(&self, cx: &Cx) -> Conn {
        self.account.conn(cx, self.user.as_ref(), self.maintenance_db.as_ref())
    }
}

impl State for Absent {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        Ok(self.conn(cx).extension(cx, &self.name)?.is_some())
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        Ok(removal("Extension", &self.name, *there))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let done = self.conn(cx).drop_extension(cx, &self.name, self.cascade)?;
        removed("Extension", &self.name, done)
    }
}
