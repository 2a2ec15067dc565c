//! `postgres_privileges`: who may do what in a PostgreSQL database.

use halite_modules::postgres::{Conn, Granted, Rights, Wanted};
use halite_spec::{Applied, Args, Cx, Need, Plan, Result, State, states};

use crate::postgres::Server;

states! {
    /// Who may do what in a PostgreSQL database.
    "postgres_privileges", needs = [
        Need::function("postgres.privileges_grant", "Unable to load postgres module.  Make sure `postgres.bins_dir` is set."),
    ]: "present" => Present,
    "absent" => Absent,
}

/// Make sure that a role has rights.
#[derive(Args)]
pub struct Present {
    #[group]
    granted: Granted,
    /// The database to connect to.
    maintenance_db: Option<String>,
    /// The user of this machine that runs the client.
    user: Option<String>,
    #[group]
    server: Server,
}

impl Present {
    fn conn(&self, cx: &Cx) -> Conn {
        self.server.conn(cx, self.user.as_ref(), self.maintenance_db.as_ref())
    }
}

impl State for Present {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        self.conn(cx).has_rights(cx, &self.granted.rights()?)
    }

    fn plan(&self, has: &bool) -> Result<Plan> {
        if *has {
            return Ok(Plan::nothing("The requested privilege(s) are already set"));
        }
        let (name, shown) = (&self.granted.wanted.name, self.granted.rights()?.shown());
        Ok(Plan::change(name.as_str(), "Present")
            .pending(format!("The privilege(s): {shown} are set to be granted to {name}"))
            .done(format!("The privilege(s): {shown} have been granted to {name}")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let rights = self.granted.rights()?;
        let (name, shown) = (&self.granted.wanted.name, rights.shown());
        Applied::if_done(self.conn(cx).grant(cx, &rights)?, || {
            format!("Failed to grant privilege(s): {shown} to {name}")
        })
    }
}

/// Make sure that a role does not have rights.
#[derive(Args)]
pub struct Absent {
    #[group]
    wanted: Wanted,
    /// The schema the thing is in.
    #[default("public".to_owned())]
    prepend: String,
    /// The database to connect to.
    maintenance_db: Option<String>,
    /// The user of this machine that runs the client.
    user: Option<String>,
    #[group]
    server: Server,
}

impl Absent {
    fn conn(&self, cx: &Cx) -> Conn {
        self.server.conn(cx, self.user.as_ref(), self.maintenance_db.as_ref())
    }

    fn rights(&self) -> Result<Rights> {
        self.wanted.rights(&self.prepend, false)
    }
}

impl State for Absent {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        self.conn(cx).has_rights(cx, &self.rights()?)
    }

    fn plan(&self, has: &bool) -> Result<Plan> {
        if !*has {
            return Ok(Plan::nothing(
                "The requested privilege(s) are not set so cannot be revoked",
            ));
        }
        let (name, shown) = (&self.wanted.name, self.rights()?.shown());
        Ok(Plan::change(name.as_str(), "Absent")
            .pending(format!("The privilege(s): {shown} are set to be revoked from {name}"))
            .done(format!("The privilege(s): {shown} have been revoked from {name}")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let rights = self.rights()?;
        let (name, shown) = (&self.wanted.name, rights.shown());
        Applied::if_done(self.conn(cx).revoke(cx, &rights)?, || {
            format!("Failed to revoke privilege(s): {shown} from {name}")
        })
    }
}
