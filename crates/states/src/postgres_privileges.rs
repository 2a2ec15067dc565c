//! `postgres_privileges`: who may do what in a PostgreSQL database.

use halite_modules::postgres::{Conn, Rights};
use halite_spec::{Applied, Args, Cx, Error, Need, Plan, Result, State, states};
use halite_value::Value;

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
    /// The role.
    name: String,
    /// The thing the rights are about; `ALL` for all of a schema.
    object_name: String,
    /// `table`, `sequence`, `schema`, `database`, `function`, `language`, `tablespace` or `group`.
    object_type: String,
    /// The rights.
    #[default(Value::Null)]
    privileges: Value,
    /// The role may pass them on.
    #[default(false)]
    #[shown(None::<bool>)]
    grant_option: bool,
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

impl Present {
    fn conn(&self, cx: &Cx) -> Conn {
        self.server.conn(cx, self.user.as_ref(), self.maintenance_db.as_ref())
    }
}

impl Present {
    fn rights(&self) -> Result<Rights> {
        Rights::new(
            &self.name,
            &self.object_name,
            &self.object_type,
            &self.privileges,
            &self.prepend,
            self.grant_option,
        )
    }
}

impl State for Present {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        self.conn(cx).has_rights(cx, &self.rights()?)
    }

    fn plan(&self, has: &bool) -> Result<Plan> {
        if *has {
            return Ok(Plan::nothing("The requested privilege(s) are already set"));
        }
        let (name, shown) = (&self.name, self.rights()?.shown());
        Ok(Plan::change(name.as_str(), "Present")
            .pending(format!("The privilege(s): {shown} are set to be granted to {name}"))
            .done(format!("The privilege(s): {shown} have been granted to {name}")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let rights = self.rights()?;
        if self.conn(cx).grant(cx, &rights)? {
            return Ok(Applied::as_planned());
        }
        let (name, shown) = (&self.name, rights.shown());
        Err(Error::failed(format!("Failed to grant privilege(s): {shown} to {name}")))
    }
}

/// Make sure that a role does not have rights.
#[derive(Args)]
pub struct Absent {
    /// The role.
    name: String,
    /// The thing the rights are about; `ALL` for all of a schema.
    object_name: String,
    /// `table`, `sequence`, `schema`, `database`, `function`, `language`, `tablespace` or `group`.
    object_type: String,
    /// The rights.
    #[default(Value::Null)]
    privileges: Value,
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
}

impl Absent {
    fn rights(&self) -> Result<Rights> {
        Rights::new(
            &self.name,
            &self.object_name,
            &self.object_type,
            &self.privileges,
            &self.prepend,
            false,
        )
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
        let (name, shown) = (&self.name, self.rights()?.shown());
        Ok(Plan::change(name.as_str(), "Absent")
            .pending(format!("The privilege(s): {shown} are set to be revoked from {name}"))
            .done(format!("The privilege(s): {shown} have been revoked from {name}")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let rights = self.rights()?;
        if self.conn(cx).revoke(cx, &rights)? {
            return Ok(Applied::as_planned());
        }
        let (name, shown) = (&self.name, rights.shown());
        Err(Error::failed(format!("Failed to revoke privilege(s): {shown} from {name}")))
    }
}
