//! `mysql_grants`: rights of the users of a MySQL or MariaDB server.

use halite_modules::mysql::{Account, Conn, Grant};
use halite_spec::{Applied, Args, Cx, Error, Plan, Rest, Result, State, states};
use halite_value::Value;

states! {
    /// Rights of the users of a MySQL or MariaDB server.
    "mysql_grants": "present" => Present,
    "absent" => Absent,
}

/// `SELECT on shop.* to frank@localhost`, in whatever words.
fn shown(grant: &Grant, to: &str) -> String {
    let Account { user, host } = &grant.account;
    format!("{} on {} {to} {user}@{host}", grant.privileges, grant.on)
}

fn needed(value: Option<&String>, name: &str) -> Result<String> {
    value.cloned().ok_or_else(|| Error::failed(format!("The argument '{name}' is required")))
}

/// Which rights, and whose. Salt lets all of them be absent, and fails then.
#[derive(Args)]
pub struct Rights {
    /// The rights, with commas: `SELECT,INSERT` or `ALL PRIVILEGES`.
    grant: Option<String>,
    /// On what: `database.table`, or `database.*`.
    database: Option<String>,
    /// The user.
    user: Option<String>,
    /// The host it comes from.
    #[default("localhost".into())]
    host: String,
    /// The right to pass them on, too.
    #[default(false)]
    grant_option: bool,
    /// Quote the names of `database`.
    #[default(true)]
    escape: bool,
}

impl Rights {
    fn given(&self) -> Result<Grant> {
        Ok(Grant {
            privileges: needed(self.grant.as_ref(), "grant")?,
            on: needed(self.database.as_ref(), "database")?,
            account: Account { user: needed(self.user.as_ref(), "user")?, host: self.host.clone() },
            grant_option: self.grant_option,
            escape: self.escape,
        })
    }
}

/// Make sure that a user has rights.
#[derive(Args)]
pub struct Present {
    /// A name for the state.
    name: String,
    #[group]
    rights: Rights,
    /// Take the rights away first, so that no others are left.
    #[default(false)]
    revoke_first: bool,
    /// What the connection has to be: `[{SSL: True}]`, `[{CIPHER: x}, {SUBJECT: y}]`.
    #[default(Value::Bool(false))]
    ssl_option: Value,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    connection: Rest,
}

impl State for Present {
    type Seen = Vec<String>;

    fn observe(&self, cx: &Cx) -> Result<Vec<String>> {
        let grants = Conn::of(cx, &self.connection).grants(cx, &self.rights.given()?.account)??;
        Ok(grants.unwrap_or_default())
    }

    fn plan(&self, held: &Vec<String>) -> Result<Plan> {
        let (name, wanted) = (&self.name, self.rights.given()?);
        // Nobody is there: the server says so when asked to grant.
        let there = if self.revoke_first { wanted.is_among(held) } else { wanted.is_held(held) };
        if !held.is_empty() && there {
            return Ok(Plan::nothing(format!("Grant {} is already present", shown(&wanted, "to"))));
        }
        Ok(Plan::change(name.as_str(), "Present")
            .pending(format!("MySQL grant {name} is set to be created"))
            .done(format!("Grant {} has been added", shown(&wanted, "to"))))
    }

    fn apply(&self, cx: &Cx, _: Vec<String>) -> Result<Applied> {
        let (conn, wanted) = (Conn::of(cx, &self.connection), self.rights.given()?);
        let Account { user, host } = &wanted.account;
        let failed = format!(
            "Failed to execute: \"GRANT {} ON {} TO {user}@{host}\"",
            wanted.privileges, wanted.on
        );
        if wanted.statement(&self.ssl_option).is_err() {
            return Err(Error::failed(failed));
        }
        if self.revoke_first {
            let all = Grant { privileges: "ALL".into(), grant_option: true, ..wanted.clone() };
            // There may be nothing to revoke.
            let _ = conn.revoke(cx, &all)?;
        }
        match conn.grant(cx, &wanted, &self.ssl_option)? {
            Ok(()) => Ok(Applied::as_planned()),
            Err(refused) => Err(Error::failed(format!("{failed} ({})", refused.message()))),
        }
    }
}

/// Make sure that a user does not have rights.
#[derive(Args)]
pub struct Absent {
    /// A name for the state.
    name: String,
    #[group]
    rights: Rights,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    connection: Rest,
}

impl State for Absent {
    type Seen = Vec<String>;

    fn observe(&self, cx: &Cx) -> Result<Vec<String>> {
        let unwanted = self.rights.given()?;
        let grants = Conn::of(cx, &self.connection).grants(cx, &unwanted.account)?;
        let grants = grants.map_err(|refused| {
            Error::failed(format!(
                "Unable to determine if grant {} exists ({})",
                shown(&unwanted, "for"),
                refused.message()
            ))
        })?;
        Ok(grants.unwrap_or_default())
    }

    fn plan(&self, held: &Vec<String>) -> Result<Plan> {
        let (name, unwanted) = (&self.name, self.rights.given()?);
        if !unwanted.is_among(held) {
            return Ok(Plan::nothing(format!(
                "Grant {} is not present, so it cannot be revoked",
                shown(&unwanted, "to")
            )));
        }
        Ok(Plan::change(name.as_str(), "Absent")
            .pending(format!("MySQL grant {name} is set to be revoked"))
            .done(format!("Grant {} has been revoked", shown(&unwanted, "for"))))
    }

    fn apply(&self, cx: &Cx, _: Vec<String>) -> Result<Applied> {
        let unwanted = self.rights.given()?;
        match Conn::of(cx, &self.connection).revoke(cx, &unwanted)? {
            Ok(()) => Ok(Applied::as_planned()),
            Err(refused) => Err(Error::failed(format!(
                "Unable to revoke grant {} ({})",
                shown(&unwanted, "for"),
                refused.message()
            ))),
        }
    }
}
