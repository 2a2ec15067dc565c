//! `manage`: who is up, who is down, who runs which version.

use std::time::Duration;

use halite_client::{Job, Patience, Request};
use halite_spec::{Args, Call, Cx, Error, Rest, Result, alias, function, module};
use halite_value::{Dict, Value, dict, entries};

use crate::{master, wheel};

module! {
    /// Who is up, who is down, who runs which version.
    "manage": status, up, down, present, not_present, alived, not_alived, reaped, not_reaped,
    joined, not_joined, allowed, not_allowed, list_state, list_not_state, versions, safe_accept,
    key_regen, bootstrap, bootstrap_psexec,
}

alias! {
    alived = present,
    reaped = present,
    joined = present,
    allowed = present,
    list_state = present,
    not_alived = not_present,
    not_reaped = not_present,
    not_joined = not_present,
    not_allowed = not_present,
    list_not_state = not_present,
}

/// Whom to ask whether they are there, and for how long to wait.
#[derive(Args)]
pub struct Asked {
    /// Whom to ask.
    #[default(Value::from("*"))]
    tgt: Value,
    /// How the target is read.
    #[default("glob".to_owned())]
    tgt_type: String,
    /// Seconds to wait.
    timeout: Option<f64>,
    /// Seconds to wait for those who were asked again.
    gather_job_timeout: Option<f64>,
}

/// Which of the minions to name, and how.
#[derive(Args)]
#[arg(defaults)]
pub struct Named {
    /// Only among these.
    subset: Option<Vec<String>>,
    /// With their addresses.
    #[default(false)]
    show_ip: bool,
}

/// Pings, and returns who answers and who does not, each sorted.
fn ping(cx: &Cx, asked: Asked) -> Result<[Vec<String>; 2]> {
    let Asked { tgt, tgt_type, timeout, gather_job_timeout } = asked;
    let mut patience = Patience::from_opts(&cx.opts);
    let seconds = |given: Option<f64>, usual| {
        let given = given.filter(|seconds| *seconds > 0.0 && *seconds < 1e9);
        given.map_or(usual, Duration::from_secs_f64)
    };
    patience.timeout = seconds(timeout, patience.timeout);
    patience.gather_job_timeout = seconds(gather_job_timeout, patience.gather_job_timeout);
    let job = Job::new(tgt, &tgt_type, "test.ping");
    let outcome = master::run_named(cx, &job, Some(patience))?;
    let mut up: Vec<String> = outcome.returned.iter().map(|(id, _)| id.to_string()).collect();
    let mut down: Vec<String> = outcome.missing.iter().map(|(id, _)| id.to_string()).collect();
    up.sort();
    down.sort();
    Ok([up, down])
}

/// Return who is up and who is down, by asking everybody.
///
/// ```console
/// $ salt-run manage.status
/// ```
#[function]
pub fn status(
    cx: &Cx,
    /// Not used any more.
    #[default(true)]
    output: bool,
    #[group] asked: Asked,
) -> Result<Value> {
    let _ = output;
    let [up, down] = ping(cx, asked)?;
    Ok(dict! { "up" => up, "down" => down })
}

/// Return who is up, by asking everybody.
///
/// ```console
/// $ salt-run manage.up
/// ```
#[function]
pub fn up(cx: &Cx, #[group] asked: Asked) -> Result<Value> {
    let [up, _] = ping(cx, asked)?;
    Ok(up.into())
}

/// Return who is down, by asking everybody.
///
/// ```console
/// $ salt-run manage.down
/// ```
#[function]
pub fn down(
    cx: &Cx,
    /// Delete their keys.
    #[default(false)]
    removekeys: bool,
    #[group] asked: Asked,
) -> Result<Value> {
    let [_, down] = ping(cx, asked)?;
    if removekeys && !down.is_empty() {
        wheel::key::delete_dict(cx, entries! { "minions" => down.clone() })?;
    }
    Ok(down.into())
}

/// Returns who is connected (or known and not connected), without asking minions; with their
/// addresses if `show_ip`.
fn connected(cx: &Cx, named: Named, wanted: bool) -> Result<Value> {
    let Named { subset, show_ip } = named;
    let minions = master::ask(cx, &Request::Minions)?;
    let ids =
        |name: &str| minions.get(name).and_then(|ids| ids.items_of_sequence()).unwrap_or_default();
    let connected = ids("connected");
    let from = if wanted { connected.clone() } else { ids("known") };
    let subset = subset.unwrap_or_default();
    let mut found: Vec<String> = from
        .iter()
        .filter(|id| wanted || !connected.contains(id))
        .map(std::string::ToString::to_string)
        .filter(|id| subset.is_empty() || subset.contains(id))
        .collect();
    found.sort();
    if !show_ip || !wanted {
        return Ok(found.into());
    }
    let addresses = minions.get("addresses").unwrap_or_default();
    let with: Dict = found
        .into_iter()
        .map(|id| {
            let address = addresses.get(&id).unwrap_or_default();
            (id, address)
        })
        .collect();
    Ok(with.into())
}

/// Return who is connected, without asking minions.
///
/// ```console
/// $ salt-run manage.present
/// ```
#[function]
pub fn present(cx: &Cx, #[group] named: Named) -> Result<Value> {
    connected(cx, named, true)
}

/// Return who is not connected, without asking minions.
///
/// ```console
/// $ salt-run manage.not_present
/// ```
#[function]
pub fn not_present(cx: &Cx, #[group] named: Named) -> Result<Value> {
    connected(cx, named, false)
}

/// Return the versions of the minions, compared with the master's.
///
/// ```console
/// $ salt-run manage.versions
/// ```
#[function]
pub fn versions(cx: &Cx) -> Result<Dict> {
    let own = cx.call("test.version", Call::default())?.to_str();
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

/// Accept the keys of minions whose fingerprint, asked by ssh, is the one that waits here.
///
/// ```console
/// $ salt-run manage.safe_accept web1,web2 tgt_type=list
/// ```
#[function]
pub fn safe_accept(
    _: &Cx,
    /// Whose.
    target: String,
    /// How the target is read.
    #[default("glob".to_owned())]
    tgt_type: String,
) -> Result<Value> {
    let _ = (target, tgt_type);
    Err(Error::failed(
        "manage.safe_accept needs salt-ssh, which Halite does not have yet: compare `salt-key -f ID` with \
         `salt-call --local key.finger` on the machine, then `salt-key -a ID`",
    ))
}

/// Have all minions make new keys: theirs are deleted here, and they are asked to start anew.
///
/// ```console
/// $ salt-run manage.key_regen
/// ```
#[function]
pub fn key_regen(cx: &Cx) -> Result<Value> {
    // Asked before the keys go; who has no key is not heard.
    master::run(cx, &Job::new("*", "glob", "saltutil.regen_keys"), None)?;
    wheel::key::delete(cx, "*".into())?;
    Ok("The keys of all minions were deleted, and the minions were asked to make new ones. Those \
        will wait to be accepted (salt-key -A). Minions that are not connected now need \
        `salt-call saltutil.regen_keys` on their own machine."
        .into())
}

/// Install Salt on hosts by ssh.
///
/// ```console
/// $ salt-run manage.bootstrap hosts='web1,web2'
/// ```
#[function]
pub fn bootstrap(_: &Cx, _rest: Rest) -> Result<Value> {
    Err(Error::failed(
        "manage.bootstrap would fetch a script from the network and run it over salt-ssh, which Halite \
         does not have: copy the one file `halite` to the host and run `halite install-links`",
    ))
}

/// Install Salt on Windows hosts.
///
/// ```console
/// $ salt-run manage.bootstrap_psexec hosts='win1'
/// ```
#[function]
pub fn bootstrap_psexec(_: &Cx, _rest: Rest) -> Result<Value> {
    Err(Error::failed("manage.bootstrap_psexec is not part of Halite"))
}

/// `3008.3` → 3008, 3
fn numbers(version: &str) -> Vec<u64> {
    let parts = version.split(|letter: char| !letter.is_ascii_digit());
    parts.filter(|part| !part.is_empty()).filter_map(|part| part.parse().ok()).collect()
}
