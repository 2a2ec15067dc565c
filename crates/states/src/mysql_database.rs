//! `mysql_database`: databases of a MySQL or MariaDB server.

use halite_modules::mysql::{Conn, is_system};
use halite_spec::{Applied, Args, Cx, Error, Plan, Rest, Result, State, states};
use halite_value::{Dict, entries};

states! {
    /// Databases of a MySQL or MariaDB server.
    "mysql_database": "present" => Present,
    "absent" => Absent,
}

/// Make sure that a database is there, with its character set and collation.
#[derive(Args)]
pub struct Present {
    /// The database.
    name: String,
    /// Its character set, if not the server's.
    character_set: Option<String>,
    /// Its collation, if not the character set's.
    collate: Option<String>,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    connection: Rest,
}

impl Present {
    /// What has to change about a database that is there, and the words for it.
    fn differences(&self, set: &str, collate: &str) -> (Dict, Vec<String>) {
        let changes = Dict::new();
        let mut words = Vec::new();
        for (key, title, own, wanted) in [
            ("character_set", "character set", set, &self.character_set),
            ("collate", "collate", collate, &self.collate),
        ] {
            if let Some(wanted) = wanted
                && wanted != own
            {
                changes.insert(key, entries! { "before" => own, "now" => wanted.as_str() });
                words.push(format!("Database {title} {wanted} != {own} needs to be updated"));
            }
        }
        (changes, words)
    }
}

impl State for Present {
    type Seen = Option<(String, String)>;

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        Ok(Conn::of(cx, &self.connection).database(cx, &self.name)??)
    }

    fn plan(&self, seen: &Self::Seen) -> Result<Plan> {
        let name = &self.name;
        let Some((set, collate)) = seen else {
            return Ok(Plan::change(name.as_str(), "Present")
                .pending(format!("Database {name} is not present and needs to be created"))
                .done(format!("The database {name} has been created")));
        };
        let there = format!("Database {name} is already present");
        let (changes, words) = self.differences(set, collate);
        if changes.is_empty() {
            return Ok(Plan::nothing(there));
        }
        let comment = format!("{there}\n{}", words.join("\n"));
        Ok(Plan::changes(changes).pending(comment.as_str()).done(comment))
    }

    fn apply(&self, cx: &Cx, seen: Self::Seen) -> Result<Applied> {
        let name = &self.name;
        let conn = Conn::of(cx, &self.connection);
        let (set, collate) = (self.character_set.as_deref(), self.collate.as_deref());
        let (done, doing) = match seen {
            None => (conn.create_database(cx, name, set, collate)?, "create"),
            // differs: Salt calls it a success when the server refuses.
            Some(_) => (conn.alter_database(cx, name, set, collate)?, "alter"),
        };
        match done {
            Ok(()) => Ok(Applied::as_planned()),
            Err(refused) => Err(Error::failed(format!(
                "Failed to {doing} database {name} ({})",
                refused.message()
            ))),
        }
    }
}

/// Make sure that a database is not there. The server's own ones are never removed.
#[derive(Args)]
pub struct Absent {
    /// The database.
    name: String,
    /// How to connect: `connection_host`, `connection_user`, `connection_pass` …
    connection: Rest,
}

impl State for Absent {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        Ok(Conn::of(cx, &self.connection).has_database(cx, &self.name)??)
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let name = &self.name;
        if !there || is_system(name) {
            return Ok(Plan::nothing(format!(
                "Database {name} is not present, so it cannot be removed"
            )));
        }
        Ok(Plan::change(name.as_str(), "Absent")
            .pending(format!("Database {name} is present and needs to be removed"))
            .done(format!("Database {name} has been removed")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        match Conn::of(cx, &self.connection).drop_database(cx, &self.name)? {
            Ok(()) => Ok(Applied::as_planned()),
            Err(refused) => {
                Err(Error::failed(format!("Unable to remove database ({})", refused.message())))
            }
        }
    }
}
