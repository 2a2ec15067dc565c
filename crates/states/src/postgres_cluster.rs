//! `postgres_cluster`: clusters of PostgreSQL servers on Debian.
//!
//! Salt 3008 has these states, but no longer the functions they need; trees still use them.

use halite_modules::postgres::{self, NewCluster, clusters};
use halite_spec::{Applied, Args, Cx, Error, Need, Plan, Result, State, states};
use halite_value::{Dict, Value};

const MISSING: &str = "Unable to load postgres module.  Make sure `postgres.bins_dir` is set.";

states! {
    /// Clusters of PostgreSQL servers on Debian.
    "postgres_cluster", needs = [
        Need::function("postgres.cluster_exists", MISSING),
        Need::program(&["pg_createcluster"], MISSING),
    ]: "present" => Present,
    "absent" => Absent,
}

/// The cluster a state is about, if it is there.
fn find(cx: &Cx, id: &str) -> Result<Option<Dict>> {
    Ok(clusters(cx)?.get(id).and_then(|cluster| cluster.as_dict().cloned()))
}

/// Make sure that a cluster is there. One that is there with another port or folder is a failure.
///
/// ```yaml
/// main:
///   postgres_cluster.present:
///     - version: 15
///     - port: 5433
/// ```
#[derive(Args)]
pub struct Present {
    /// The version of the server.
    version: Value,
    /// The cluster.
    name: String,
    /// Its port; the next free one if not given.
    #[default(Value::Null)]
    port: Value,
    /// How letters are stored.
    encoding: Option<String>,
    /// The locale.
    locale: Option<String>,
    /// Where its data is kept.
    datadir: Option<String>,
    /// Let the group of its owner read the data.
    allow_group_access: Option<bool>,
    /// Check data pages.
    data_checksums: Option<bool>,
    /// The size of a segment of the write-ahead log, in megabytes.
    #[default(Value::Null)]
    wal_segsize: Value,
}

impl Present {
    fn id(&self) -> String {
        format!("{}/{}", self.version, self.name)
    }

    fn fits(&self, seen: &Dict) -> bool {
        let text = |key: &str| seen.get(key).unwrap_or_default().to_string();
        let port = self.port.to_string();
        (!self.port.truthy() || text("port") == port)
            && self.datadir.as_deref().is_none_or(|folder| text("datadir") == folder)
    }
}

impl State for Present {
    type Seen = Option<Dict>;

    fn observe(&self, cx: &Cx) -> Result<Option<Dict>> {
        find(cx, &self.id())
    }

    fn plan(&self, seen: &Option<Dict>) -> Result<Plan> {
        let id = self.id();
        match seen {
            None => Ok(Plan::change(id.as_str(), "Present")
                .pending(format!("Cluster {id} is set to be created"))
                .done(format!("The cluster {id} has been created"))),
            Some(seen) if self.fits(seen) => {
                Ok(Plan::nothing(format!("Cluster {id} is already present")))
            }
            Some(_) => Err(Error::failed(format!(
                "Cluster {id} has wrong parameters which couldn't be changed on fly."
            ))),
        }
    }

    fn apply(&self, cx: &Cx, _: Option<Dict>) -> Result<Applied> {
        let how = NewCluster {
            port: self.port.clone(),
            locale: self.locale.clone(),
            encoding: self.encoding.clone(),
            datadir: self.datadir.clone(),
            allow_group_access: self.allow_group_access,
            data_checksums: self.data_checksums,
            wal_segsize: self.wal_segsize.clone(),
        };
        let done = postgres::cluster_create(cx, self.version.clone(), self.name.clone(), how)?;
        Applied::if_done(done.truthy(), || format!("Failed to create cluster {}", self.id()))
    }
}

/// Make sure that a cluster is not there; its data goes with it.
///
/// ```yaml
/// main:
///   postgres_cluster.absent:
///     - version: 13
/// ```
#[derive(Args)]
pub struct Absent {
    /// The version of the server.
    version: Value,
    /// The cluster.
    name: String,
}

impl Absent {
    fn id(&self) -> String {
        format!("{}/{}", self.version, self.name)
    }
}

impl State for Absent {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        Ok(find(cx, &self.id())?.is_some())
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let id = self.id();
        if !there {
            return Ok(Plan::nothing(format!(
                "Cluster {id} is not present, so it cannot be removed"
            )));
        }
        Ok(Plan::change(self.name.as_str(), "Absent")
            .pending(format!("Cluster {id} is set to be removed"))
            .done(format!("Cluster {id} has been removed")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let done = postgres::cluster_remove(cx, self.version.clone(), self.name.clone(), true)?;
        Applied::if_done(done.truthy(), || format!("Failed to remove cluster {}", self.id()))
    }
}
