//! `mysql_user`: users of a MySQL or MariaDB server.

use halite_modules::mysql::{Account, Conn, Login, Secret, text_of};
use halite_spec::{Applied, Args, Cx, Error, Plan, Rest, Result, State, states};
use halite_value::Dict;

states! {
    /// Users of a MySQL or MariaDB server.
    "mysql_user": "present" => Present,
    "absent" => Absent,
}

/// Make sure that a user is there, and signs in as it should.
#[derive(Args)]
pub struct Present {
    /// The user.
    name: String,
    /// The host it comes from.
    #[default("localhost".into())]
    host: String,
    #[group]
    login: Login,
}

/// What is known about a user.
pub enum Seen {
    Missing,
    /// It signs in as it should.
    Right,
    /// It does not.
    Wrong(Dict),
}

impl Present {
    fn account(&self) -> Account {
        Account { user: self.name.clone(), host: self.host.clone() }
    }

    fn secret(&self) -> Result<Secret> {
        self.login.secret().ok_or_else(|| {
            Error::failed(
                "Either password or password_hash must be specified, unless allow_passwordless is \
                 True",
            )
        })
    }
}

impl State for Present {
    type Seen = Seen;

    fn observe(&self, cx: &Cx) -> Result<Seen> {
        let (conn, account) = (Conn::of(cx, &self.login.connection), self.account());
        let secret = self.secret()?;
        let Some(row) = conn.user(cx, &account)?? else { return Ok(Seen::Missing) };
        let fits = conn.fits(cx, &row, &account, &secret, self.login.password_column.as_deref())?;
        Ok(if fits { Seen::Right } else { Seen::Wrong(row) })
    }

    fn plan(&self, seen: &Seen) -> Result<Plan> {
        let user = format!("{}@{}", self.name, self.host);
        let secret = self.secret()?;
        Ok(match seen {
            Seen::Right => {
                let how = match secret {
                    Secret::Password(_) => "the desired password",
                    Secret::Hash(_) => "the desired password hash",
                    Secret::Nothing | Secret::Socket => "passwordless login",
                };
                Plan::nothing(format!("User {user} is already present with {how}"))
            }
            Seen::Missing => {
                let how = match secret {
                    Secret::Nothing => " with passwordless login",
                    Secret::Socket => " with passwordless login using unix_socket",
                    _ => "",
                };
                Plan::change(self.name.as_str(), "Present")
                    .pending(format!("User {user} is set to be added{how}"))
                    .done(format!("The user {user} has been added{how}"))
            }
            Seen::Wrong(_) => {
                let what = match secret {
                    Secret::Nothing | Secret::Socket => "cleared",
                    _ => "changed",
                };
                Plan::change(self.name.as_str(), "Updated")
                    .pending(format!("Password for user {user} is set to be {what}"))
                    .done(format!("Password for user {user} has been {what}"))
            }
        })
    }

    fn apply(&self, cx: &Cx, seen: Seen) -> Result<Applied> {
        let user = format!("{}@{}", self.name, self.host);
        let (conn, account, secret) =
            (Conn::of(cx, &self.login.connection), self.account(), self.secret()?);
        let (done, doing) = match seen {
            Seen::Right => return Ok(Applied::as_planned()),
            Seen::Missing => {
                let done = conn.create_user(cx, &account, &secret, &self.login.auth_plugin)?;
                (done, format!("create user {user}"))
            }
            Seen::Wrong(row) => {
                let plugin = text_of(&row, "plugin");
                let done = conn.change_secret(cx, &account, &secret, &plugin)?;
                (done, format!("change password for user {user}"))
            }
        };
        match done {
            Ok(()) => Ok(Applied::as_planned()),
            Err(refused) => {
                Err(Error::failed(format!("Failed to {doing} ({})", refused.message())))
            }
        }
    }
}

/// Make sure that a user is not there.
#[derive(Args)]
pub struct Absent {
    /// The user.
    name: String,
    /// The host it comes from.
    #[default("localhost".into())]
    host: String,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    connection: Rest,
}

impl Absent {
    fn account(&self) -> Account {
        Account { user: self.name.clone(), host: self.host.clone() }
    }
}

impl State for Absent {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        Ok(Conn::of(cx, &self.connection).user(cx, &self.account())??.is_some())
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let user = format!("{}@{}", self.name, self.host);
        if !there {
            return Ok(Plan::nothing(format!(
                "User {user} is not present, so it cannot be removed"
            )));
        }
        Ok(Plan::change(self.name.as_str(), "Absent")
            .pending(format!("User {user} is set to be removed"))
            .done(format!("User {user} has been removed")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let user = format!("{}@{}", self.name, self.host);
        match Conn::of(cx, &self.connection).drop_user(cx, &self.account())? {
            Ok(()) => Ok(Applied::as_planned()),
            Err(refused) => Err(Error::failed(format!(
                "User {user} has been found, but could not be removed ({})",
                refused.message()
            ))),
        }
    }
}
