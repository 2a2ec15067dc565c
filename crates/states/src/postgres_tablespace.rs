//! `postgres_tablespace`: tablespaces of a PostgreSQL server.

use halite_modules::postgres::{AlterTablespace, Conn, identifier};
use halite_spec::{Applied, Args, Cx, Error, Need, Plan, Result, State, states};
use halite_value::{Dict, Value};

use crate::postgres::{Account, Client, removal, removed};

states! {
    /// Tablespaces of a PostgreSQL server.
    "postgres_tablespace", needs = [
        Need::function("postgres.tablespace_exists", "Unable to load postgres module.  Make sure `postgres.bins_dir` is set."),
    ]: "present" => Present,
    "absent" => Absent,
}

/// Make sure that a tablespace is there, and as it should be.
#[derive(Args)]
pub struct Present {
    /// The tablespace.
    name: String,
    /// Its folder; it must exist and belong to the server's user.
    directory: String,
    /// Its options.
    #[default(Dict::new())]
    #[shown(None::<bool>)]
    options: Dict,
    /// The role it belongs to.
    owner: Option<String>,
    #[group]
    client: Client,
}

impl Present {
    fn options_differ(&self, seen: &Dict) -> bool {
        let own = seen.get("Opts").unwrap_or_default().to_string();
        let own: Vec<&str> = own.trim_matches(['{', '}']).split(',').collect();
        let has = |(name, value): (halite_value::Key, Value)| {
            own.contains(&format!("{name}={value}").as_str())
        };
        !(&self.options).into_iter().all(has)
    }
}

impl State for Present {
    type Seen = Option<Dict>;

    fn observe(&self, cx: &Cx) -> Result<Option<Dict>> {
        let all = self.client.conn(cx).tablespaces(cx)?;
        let found = all.and_then(|all| all.get(self.name.as_str()));
        Ok(found.and_then(|found| found.as_dict().cloned()))
    }

    fn plan(&self, seen: &Option<Dict>) -> Result<Plan> {
        let name = &self.name;
        let Some(seen) = seen else {
            return Ok(Plan::change(name.as_str(), "Present")
                .pending(format!("Tablespace {name} is set to be created"))
                .done(format!("The tablespace {name} has been created")));
        };
        let text = |key: &str| seen.get(key).unwrap_or_default().to_string();
        if text("Location") != self.directory {
            return Err(Error::failed(format!(
                "Tablespace {name} is not at the right location. This is\n            unfixable \
                 without dropping and recreating the tablespace."
            )));
        }
        let changes = Dict::new();
        let mut pending = Vec::new();
        let mut done = Vec::new();
        if let Some(owner) = self.owner.as_deref().filter(|owner| *owner != text("Owner")) {
            changes.insert("owner", owner);
            pending.push(format!("Tablespace {name} owner to be altered"));
            done.push(format!("Tablespace {name} owner altered"));
        }
        if self.options_differ(seen) {
            changes.insert("options", &self.options);
            pending.push(format!("Tablespace {name} opts to be altered"));
            done.push(format!("Tablespace {name} opts altered"));
        }
        if changes.is_empty() {
            return Ok(Plan::nothing(format!("Tablespace {name} is already present")));
        }
        Ok(Plan::change(name.as_str(), changes).pending(pending.join("\n")).done(done.join("\n")))
    }

    fn apply(&self, cx: &Cx, seen: Option<Dict>) -> Result<Applied> {
        let name = &self.name;
        let conn = self.client.conn(cx);
        let owner = self.owner.as_deref();
        let Some(seen) = seen else {
            return Applied::if_done(
                conn.create_tablespace(cx, name, &self.directory, &self.options, owner)?,
                || format!("Failed to create tablespace {name}"),
            );
        };
        let own = seen.get("Owner").unwrap_or_default().to_string();
        let how = AlterTablespace {
            new_owner: self.owner.clone().filter(|owner| *owner != own),
            set_option: if self.options_differ(&seen) { self.options.clone() } else { Dict::new() },
            ..AlterTablespace::default()
        };
        Applied::if_done(conn.alter_tablespace(cx, name, &how)?, || {
            format!("Failed to change tablespace {name}")
        })
    }
}

/// Make sure that a tablespace is not there.
#[derive(Args)]
pub struct Absent {
    /// Its name.
    name: String,
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
        Ok(self.conn(cx).tablespaces(cx)?.is_some_and(|all| all.contains(self.name.as_str())))
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        Ok(removal("Tablespace", &self.name, *there))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let done =
            self.conn(cx).change(cx, &format!("DROP TABLESPACE {}", identifier(&self.name)))?;
        removed("Tablespace", &self.name, done)
    }
}
