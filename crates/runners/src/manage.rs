//! `manage`: who is up, who is down, who runs which version.

use std::time::Duration;

use halite_client::{Job, Patience, Request};
use halite_spec::{Cx, Result, function, module};
use halite_value::{Dict, Value, dict, entries};

use crate::master;

module! {
    /// Who is up, who is down, who runs which version.
    "manage": status, up, down, present, not_present, alived, not_alived, joined, not_joined,
    list_state, list_not_state, versions,
}

/// Pings, and returns who answers and who does not, each sorted.
fn ping(cx: &Cx, tgt: &str, tgt_type: &str, timeout: Option<f64>) -> Result<[Value; 2]> {
    let mut patience = Patience::from_opts(&cx.opts);
    if let Some(timeout) = timeout.filter(|seconds| *seconds > 0.0 && *seconds < 1e9) {
        patience.timeout = Duration::from_secs_f64(timeout);
    }
    let outcome = master::run(cx, &Job::new(tgt, tgt_type, "test.ping"), Some(patience))?;
    let mut up: Vec<String> = outcome.returned.iter().map(|(id, _)| id.to_string()).collect();
    let mut down: Vec<String> = outcome.missing.iter().map(|(id, _)| id.to_string()).collect();
    up.sort();
    down.sort();
    Ok([up.into(), down.into()])
}

/// Return who is up and who is down, by asking everybody.
///
/// ```console
/// $ salt-run manage.status
/// ```
#[function]
pub fn status(
    cx: &Cx,
    /// Whom to ask.
    #[default("*".to_owned())]
    tgt: String,
    /// How the target is read.
    #[default("glob".to_owned())]
    tgt_type: String,
    /// Seconds to wait.
    timeout: Option<f64>,
) -> Result<Value> {
    let [up, down] = ping(cx, &tgt, &tgt_type, timeout)?;
    Ok(dict! { "up" => up, "down" => down })
}

/// Return who is up, by asking everybody.
///
/// ```console
/// $ salt-run manage.up
/// ```
#[function]
pub fn up(
    cx: &Cx,
    /// Whom to ask.
    #[default("*".to_owned())]
    tgt: String,
    /// How the target is read.
    #[default("glob".to_owned())]
    tgt_type: String,
    /// Seconds to wait.
    timeout: Option<f64>,
) -> Result<Value> {
    let [up, _] = ping(cx, &tgt, &tgt_type, timeout)?;
    Ok(up)
}

/// Return who is down, by asking everybody.
///
/// ```console
/// $ salt-run manage.down
/// ```
#[function]
pub fn down(
    cx: &Cx,
    /// Whom to ask.
    #[default("*".to_owned())]
    tgt: String,
    /// How the target is read.
    #[default("glob".to_owned())]
    tgt_type: String,
    /// Seconds to wait.
    timeout: Option<f64>,
) -> Result<Value> {
    let [_, down] = ping(cx, &tgt, &tgt_type, timeout)?;
    Ok(down)
}

/// Returns who is connected (or known and not connected), without asking minions.
fn connected(cx: &Cx, subset: &[String], wanted: bool) -> Result<Value> {
    let minions = master::ask(cx, &Request::Minions)?;
    let ids =
        |name: &str| minions.get(name).and_then(|ids| ids.items_of_sequence()).unwrap_or_default();
    let connected = ids("connected");
    let from = if wanted { connected.clone() } else { ids("known") };
    let mut found: Vec<String> = from
        .iter()
        .filter(|id| wanted || !connected.contains(id))
        .map(std::string::ToString::to_string)
        .filter(|id| subset.is_empty() || subset.contains(id))
        .collect();
    found.sort();
    Ok(found.into())
}

/// Return who is connected, without asking minions.
///
/// ```console
/// $ salt-run manage.present
/// ```
#[function]
pub fn present(
    cx: &Cx,
    /// Only among these.
    subset: Option<Vec<String>>,
) -> Result<Value> {
    connected(cx, &subset.unwrap_or_default(), true)
}

/// Return who is not connected, without asking minions.
///
/// ```console
/// $ salt-run manage.not_present
/// ```
#[function]
pub fn not_present(
    cx: &Cx,
    /// Only among these.
    subset: Option<Vec<String>>,
) -> Result<Value> {
    connected(cx, &subset.unwrap_or_default(), false)
}

/// Return who is connected, without asking minions.
///
/// ```console
/// $ salt-run manage.alived
/// ```
#[function]
pub fn alived(
    cx: &Cx,
    /// Only among these.
    subset: Option<Vec<String>>,
) -> Result<Value> {
    present(cx, subset)
}

/// Return who is not connected, without asking minions.
///
/// ```console
/// $ salt-run manage.not_alived
/// ```
#[function]
pub fn not_alived(
    cx: &Cx,
    /// Only among these.
    subset: Option<Vec<String>>,
) -> Result<Value> {
    not_present(cx, subset)
}

/// Return who is connected, without asking minions.
///
/// ```console
/// $ salt-run manage.joined
/// ```
#[function]
pub fn joined(
    cx: &Cx,
    /// Only among these.
    subset: Option<Vec<String>>,
) -> Result<Value> {
    present(cx, subset)
}

/// Return who is not connected, without asking minions.
///
/// ```console
/// $ salt-run manage.not_joined
/// ```
#[function]
pub fn not_joined(
    cx: &Cx,
    /// Only among these.
    subset: Option<Vec<String>>,
) -> Result<Value> {
    not_present(cx, subset)
}

/// Return who is connected, without asking minions.
///
/// ```console
/// $ salt-run manage.list_state
/// ```
#[function]
pub fn list_state(
    cx: &Cx,
    /// Only among these.
    subset: Option<Vec<String>>,
) -> Result<Value> {
    present(cx, subset)
}

/// Return who is not connected, without asking minions.
///
/// ```console
/// $ salt-run manage.list_not_state
/// ```
#[function]
pub fn list_not_state(
    cx: &Cx,
    /// Only among these.
    subset: Option<Vec<String>>,
) -> Result<Value> {
    not_present(cx, subset)
}

/// Return the versions of the minions, compared with the master's.
///
/// ```console
/// $ salt-run manage.versions
/// ```
#[function]
pub fn versions(cx: &Cx) -> Result<Dict> {
    let hello = master::ask(cx, &Request::Hello)?;
    let own = hello.get_str("version").unwrap_or_default();
    let outcome = master::run(cx, &Job::new("*", "glob", "test.version"), None)?;
    let versions = entries! { "Master" => &own };
    let file = |label: &str, id: &str, version: Value| {
        if let Value::Dict(found) = versions.get_or_insert_with(label, Value::dict) {
            found.insert(id, version);
        }
    };
    let mut returned = outcome.returned;
    returned.sort_by(|one, other| one.0.cmp(&other.0));
    for (id, load) in returned {
        let version = load.get("return").unwrap_or_default();
        let label = match numbers(&version.to_str()).cmp(&numbers(&own)) {
            std::cmp::Ordering::Less => "Minion requires update",
            std::cmp::Ordering::Equal => "Up to date",
            std::cmp::Ordering::Greater => "Minion newer than master",
        };
        file(label, &id, version);
    }
    for (id, _) in outcome.missing {
        file("Minion offline", &id, false.into());
    }
    Ok(versions)
}

/// `3008.3` → 3008, 3
fn numbers(version: &str) -> Vec<u64> {
    let parts = version.split(|letter: char| !letter.is_ascii_digit());
    parts.filter(|part| !part.is_empty()).filter_map(|part| part.parse().ok()).collect()
}
