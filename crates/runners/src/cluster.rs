//! `cluster`: masters that share one fleet, as genuine Salt 3008 calls them.
//!
//! Halite has no clusters: one master serves what a cluster is made for, and a minion may have
//! several. So this tells what genuine Salt tells of a master on its own, and what would change a
//! cluster is skipped, with the reason in Salt's words. Where `cluster_id` is set, that is an error.

use std::path::Path;

use halite_spec::{Cx, Error, Rest, Result, function, module};
use halite_value::{Dict, Value, dict};

module! {
    /// Masters that share one fleet.
    "cluster": members, rings, routes, ring_info, shed_status, ring_create, ring_set, ring_destroy,
    route_set, route_clear, sync_roots, collect_from_peers, shed_unowned, shed_unowned_all,
    migrate_jobs_to_cache,
}

/// Says that a master with `cluster_id` asks for something that is not there.
fn alone(cx: &Cx) -> Result<()> {
    match cx.opt_str("cluster_id").filter(|id| !id.is_empty()) {
        None => Ok(()),
        Some(id) => Err(Error::failed(format!(
            "this master is to be a member of the cluster `{id}` (cluster_id), but Halite masters \
             form no clusters; give the minions several masters instead"
        ))),
    }
}

fn skipped(cx: &Cx) -> Result<Value> {
    alone(cx)?;
    Ok(dict! {
        "status" => "skipped",
        "reason" => "no cluster_id configured; this master is not a cluster member",
    })
}

/// Return who belongs to the cluster.
///
/// ```console
/// $ salt-run cluster.members
/// ```
#[function]
pub fn members(cx: &Cx) -> Result<Value> {
    alone(cx)?;
    let none = || Value::list(Vec::<Value>::new());
    Ok(dict! {
        "node_id" => cx.id(), "voters" => none(), "learners" => none(),
        "membership_version" => -1, "voter_count" => 0, "learner_count" => 0,
        "leader_id" => Value::Null, "term" => 0, "unhealthy_voters" => none(),
        "recently_demoted" => none(),
    })
}

/// Return the rings that share data out among masters.
///
/// ```console
/// $ salt-run cluster.rings
/// ```
#[function]
pub fn rings(cx: &Cx) -> Result<Value> {
    alone(cx)?;
    Ok(dict! {
        "node_id" => cx.id(), "rings" => Dict::new(),
        "active_rings" => Value::list(Vec::<Value>::new()), "registry_version" => -1,
    })
}

/// Return which ring has which kind of data.
///
/// ```console
/// $ salt-run cluster.routes
/// ```
#[function]
pub fn routes(cx: &Cx) -> Result<Value> {
    alone(cx)?;
    Ok(dict! {
        "node_id" => cx.id(), "routes" => Dict::new(), "routing_version" => -1,
        "drop_stats" => Dict::new(),
    })
}

/// Return how this master sees its ring.
///
/// ```console
/// $ salt-run cluster.ring_info
/// ```
#[function]
pub fn ring_info(cx: &Cx) -> Result<Value> {
    alone(cx)?;
    Ok(dict! {
        "is_clustered" => false, "node_count" => 0, "nodes" => Value::list(Vec::<Value>::new()),
        "vnodes" => 0,
    })
}

/// Return what became of the last removal of data that belongs to other masters.
///
/// ```console
/// $ salt-run cluster.shed_status
/// ```
#[function]
pub fn shed_status(cx: &Cx) -> Result<Value> {
    alone(cx)?;
    let folder = cx.opt_str("cachedir").unwrap_or_default();
    let path = Path::new(folder.as_str()).join("cluster-shed-status.json");
    Ok(dict! { "status" => "missing", "path" => path.display().to_string() })
}

/// Make a ring.
///
/// ```console
/// $ salt-run cluster.ring_create jobs voters='[m1, m2]'
/// ```
#[function]
pub fn ring_create(
    cx: &Cx,
    /// Its name.
    name: String,
    /// The masters in it.
    voters: Value,
) -> Result<Value> {
    let _ = (name, voters);
    skipped(cx)
}

/// Change a ring.
///
/// ```console
/// $ salt-run cluster.ring_set jobs replicas=2
/// ```
#[function]
pub fn ring_set(
    cx: &Cx,
    /// Its name.
    name: Option<String>,
    /// The masters in it.
    members: Option<Value>,
    /// On how many of them each thing is kept.
    replicas: Option<Value>,
) -> Result<Value> {
    let _ = (name, members, replicas);
    skipped(cx)
}

/// Remove a ring.
///
/// ```console
/// $ salt-run cluster.ring_destroy jobs
/// ```
#[function]
pub fn ring_destroy(
    cx: &Cx,
    /// Its name.
    name: String,
) -> Result<Value> {
    let _ = name;
    skipped(cx)
}

/// Give a kind of data to a ring.
///
/// ```console
/// $ salt-run cluster.route_set jobs ring1
/// ```
#[function]
pub fn route_set(
    cx: &Cx,
    /// The kind of data.
    data_type: String,
    /// The ring.
    ring: String,
) -> Result<Value> {
    let _ = (data_type, ring);
    skipped(cx)
}

/// Give a kind of data to all masters again.
///
/// ```console
/// $ salt-run cluster.route_clear jobs
/// ```
#[function]
pub fn route_clear(
    cx: &Cx,
    /// The kind of data.
    data_type: String,
) -> Result<Value> {
    let _ = data_type;
    skipped(cx)
}

/// Send files and pillars to the other masters.
///
/// ```console
/// $ salt-run cluster.sync_roots
/// ```
#[function]
pub fn sync_roots(
    cx: &Cx,
    /// `file_roots`, `pillar_roots` or both.
    #[default("both".to_owned())]
    roots: String,
) -> Result<Value> {
    let _ = roots;
    skipped(cx)
}

/// Fetch what the other masters keep.
///
/// ```console
/// $ salt-run cluster.collect_from_peers
/// ```
#[function]
pub fn collect_from_peers(cx: &Cx, _rest: Rest) -> Result<Value> {
    skipped(cx)
}

fn shed(cx: &Cx, ring: &str, dry_run: bool) -> Result<Value> {
    alone(cx)?;
    Ok(dict! {
        "status" => "skipped", "reason" => format!("ring '{ring}' is not active in the registry"),
        "ring" => ring, "dropped" => 0, "kept" => 0, "subbanks_dropped" => 0,
        "dry_run" => dry_run,
    })
}

/// Remove data that belongs to other masters.
///
/// ```console
/// $ salt-run cluster.shed_unowned jobs dry_run=True
/// ```
#[function]
pub fn shed_unowned(
    cx: &Cx,
    /// The ring.
    ring: String,
    /// Only tell what would go.
    #[default(false)]
    dry_run: bool,
    _rest: Rest,
) -> Result<Value> {
    shed(cx, &ring, dry_run)
}

/// Remove data that belongs to other masters, on all of them.
///
/// ```console
/// $ salt-run cluster.shed_unowned_all jobs
/// ```
#[function]
pub fn shed_unowned_all(cx: &Cx, _rest: Rest) -> Result<Value> {
    skipped(cx)
}

/// Bring jobs from Salt's folder into the cache that clusters share. Here all of them are in the
/// master's store, so there is nothing to bring.
///
/// ```console
/// $ salt-run cluster.migrate_jobs_to_cache
/// ```
#[function]
pub fn migrate_jobs_to_cache(
    cx: &Cx,
    /// Only tell what would be done.
    #[default(false)]
    dry_run: bool,
) -> Result<Value> {
    alone(cx)?;
    let folder = cx.opt_str("cachedir").unwrap_or_default();
    let jobs = Path::new(folder.as_str()).join("jobs").display().to_string();
    Ok(dict! {
        "status" => "ok", "scanned" => 0, "migrated" => 0, "skipped" => 0,
        "returns_migrated" => 0, "dry_run" => dry_run, "jobs_root" => jobs,
    })
}
