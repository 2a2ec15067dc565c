//! `manage`: who is up, who is down, who runs which version.

use std::time::Duration;

use halite_client::{Job, Patience, Request};
use halite_modules::{cmd::shlex, random};
use halite_spec::{Args, Call, Cx, Error, Rest, Result, alias, function, module};
use halite_value::{Dict, SmolStr, Value, dict, entries, json};

use crate::{
    master,
    ssh::{self, Ran, Roster, Target},
    wheel,
};

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
/// The hosts are those of the roster (`/etc/salt/roster`); each is asked with `salt-call --local
/// key.finger`. Returned are the keys that were accepted, and what is wrong with the others.
///
/// ```console
/// $ salt-run manage.safe_accept web1,web2 tgt_type=list
/// ```
#[function]
pub fn safe_accept(
    cx: &Cx,
    /// Whose.
    target: String,
    /// How the target is read: `glob`, `list`, `pcre` or `nodegroup` (of `ssh_list_nodegroups`).
    #[default("glob".to_owned())]
    tgt_type: String,
) -> Result<Value> {
    let roster = Roster::read(cx, None, &Dict::new())?;
    let hosts = roster.targets(cx, &target, &tgt_type)?;
    if hosts.is_empty() {
        tracing::error!("{NOT_IN_ROSTER}");
    }
    let (accepted, failures) = (Dict::new(), Dict::new());
    for (id, finger) in ssh::each(cx, hosts, |host| finger_of(cx, host)) {
        match finger.map_err(|error| error.to_string()).and_then(|finger| admit(cx, &id, finger)) {
            Ok(Some(finger)) => drop(accepted.insert(id, finger)),
            Ok(None) => {}
            // differs: a host that fails ends Salt's function with an exception.
            Err(reason) => drop(failures.insert(id, reason)),
        }
    }
    if !failures.is_empty() {
        master::say(cx, "safe_accept failed on the following minions:")?;
        for (id, reason) in failures.entries() {
            let id = id.to_str();
            let line = "-".repeat(id.chars().count());
            master::say(cx, format!("{id}\n{line}\n{reason}\n"))?;
        }
    }
    master::progress(cx, entries! { "message" => format!("Accepted {} keys", accepted.len()) })?;
    Ok(Value::list([Value::from(accepted), failures.into()]))
}

const NOT_IN_ROSTER: &str = "No matching targets found in roster.";

fn hash_type(cx: &Cx) -> SmolStr {
    cx.opt_str("hash_type").unwrap_or("sha256".into())
}

/// Asks a host for the fingerprint of its minion's key, hashed as ours are.
fn finger_of(cx: &Cx, host: &Target) -> Result<String> {
    let hash = format!("hash_type={}", hash_type(cx));
    let asked = ["salt-call", "--local", "--log-level=quiet", "--out=json", "key.finger", &hash];
    let ran = host.run(cx, &asked, None, Duration::from_secs(120))?;
    // Other things a login writes stand before it.
    let data = ran.stdout.find('{').and_then(|at| ran.stdout.get(at..));
    let data = data.and_then(|text| json::from_str(text.trim_end()).ok());
    let finger = data
        .and_then(|data| data.get("local"))
        .and_then(|finger| Some(finger.as_str()?.to_owned()));
    match finger {
        Some(finger) if is_finger(&finger) => Ok(finger),
        Some(finger) if finger.is_empty() => Err(Error::failed("The minion there has no key yet")),
        _ => {
            let said =
                [ran.stderr.trim(), ran.stdout.trim()].into_iter().find(|said| !said.is_empty());
            Err(Error::failed(format!(
                "`salt-call key.finger` ended with {} there: {}",
                ran.code,
                said.unwrap_or("it said nothing")
            )))
        }
    }
}

/// `ab:cd:…`
fn is_finger(text: &str) -> bool {
    let is_pair =
        |pair: &str| pair.len() == 2 && pair.bytes().all(|digit| digit.is_ascii_hexdigit());
    text.contains(':') && text.split(':').all(is_pair)
}

/// Accepts a waiting key that has this fingerprint, and returns it; `None` if it was accepted before.
fn admit(cx: &Cx, id: &str, finger: String) -> Result<Option<String>, String> {
    let texts = wheel::key::print(cx, id.into()).map_err(|error| error.to_string())?;
    let hash = hash_type(cx).parse().unwrap_or_default();
    // differs: Salt compares with what `salt-key -f` says, which in 3008 is a hash of other bytes than
    // `key.finger` takes, so that no key is ever the same.
    let of = |state: &str| {
        let text = texts.get(state)?.get(id)?.to_str();
        Some(halite_crypt::fingerprint(text.as_bytes(), hash))
    };
    if of("minions").is_some() {
        return Ok(None);
    }
    match of("minions_pre") {
        None => Err(format!("Minion key {id} not found by salt-key")),
        Some(waiting) if waiting != finger => {
            Err(format!("Minion key {finger} does not match the key in salt-key: {waiting}"))
        }
        Some(_) => {
            let this = entries! { "minions_pre" => Value::list([id]) };
            let changed = wheel::key::accept_dict(cx, this, false, false);
            let changed = changed.map_err(|error| error.to_string())?;
            let accepted = changed.get("minions").and_then(|ids| ids.items_of_sequence());
            if accepted.unwrap_or_default().iter().any(|own| own.as_str() == Some(id)) {
                Ok(Some(finger))
            } else {
                Err(format!("The key of {id} was taken away meanwhile"))
            }
        }
    }
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

/// Run a script that installs Salt on hosts of the roster, by ssh.
///
/// The script is fetched here, sent to each host, run by `sh` in a folder of its own and removed. What
/// it wrote is returned for each host; the log names those on which it failed.
///
/// ```console
/// $ salt-run manage.bootstrap hosts=web1,web2 script=salt://bootstrap/install.sh script_args='-X stable'
/// ```
#[function]
pub fn bootstrap(
    cx: &Cx,
    /// Not used, as in Salt: `script_args` tell the script what to install.
    #[default("develop".to_owned())]
    version: String,
    /// The script: `/path`, `salt://…`, `http://…` or `https://…`.
    script: Option<String>,
    /// Globs of ids in the roster, with commas.
    #[default(String::new())]
    hosts: String,
    /// Arguments for the script.
    #[default(String::new())]
    script_args: String,
    /// The kind of roster; there is `flat`.
    #[default("flat".to_owned())]
    roster: String,
    /// User for hosts whose entry has none.
    ssh_user: Option<String>,
    /// Password for hosts whose entry has none; refused, keys are used.
    ssh_password: Option<String>,
    /// File of the private key for hosts whose entry has none.
    ssh_priv_key: Option<String>,
    /// The script's folder on the host; its name is continued to one that nobody has.
    #[default("/tmp/.bootstrap".to_owned())]
    tmp_dir: String,
    /// Kept for old callers.
    #[default("tornado".to_owned())]
    http_backend: String,
) -> Result<Value> {
    let _ = (version, http_backend);
    // differs: Salt fetches its vendor's script; nothing here asks a vendor's host unasked.
    let Some(script) = script.filter(|script| !script.is_empty()) else {
        return Err(Error::failed(
            "manage.bootstrap fetches nothing by itself: name the script to run, \
             `script=/path/to/install.sh` or an address (salt://, https://). To install Halite, copy \
             the one file `halite` to the host and run `halite install-links`",
        ));
    };
    let args = shlex::split(&script_args)
        .map_err(|error| Error::invalid(format!("script_args: {error}: {script_args}")))?;
    let given = [("user", ssh_user), ("passwd", ssh_password), ("priv", ssh_priv_key)];
    let given: Dict = given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    let roster = Roster::read(cx, Some(&roster), &given)?;
    let mut targets = Vec::new();
    for host in hosts.split(',').map(str::trim) {
        let found = roster.targets(cx, host, "glob")?;
        if found.is_empty() {
            targets.push((host.to_owned(), Err(Error::failed(NOT_IN_ROSTER))));
        }
        targets.extend(found);
    }
    let cached = cx.files.cache(&script, &cx.saltenv())?;
    let cached = cached.ok_or_else(|| Error::failed(format!("There is no {script}")))?;
    let text = cx.host.read(&cached)?;
    let results = Dict::new();
    for (id, ran) in ssh::each(cx, targets, |host| deploy(cx, host, &text, &tmp_dir, &args)) {
        let (output, ok) = match ran {
            Ok(ran) => {
                let output = format!("{}{}", ran.stdout, ran.stderr);
                (output.trim_end().to_owned(), ran.code == 0)
            }
            Err(error) => (error.to_string(), false),
        };
        if !ok {
            tracing::error!("{id}: the script failed or did not run");
            cx.job.set_retcode(1);
        }
        results.insert(id, output);
    }
    // differs: Salt prints what each host wrote, and returns nothing.
    Ok(results.into())
}

/// Takes a script from standard input into a new folder, `$1`.
const RECEIVE: &str =
    r#"umask 077; mkdir -p -- "${1%/*}/" && mkdir -- "$1" && cat > "$1/deploy.sh""#;
/// Runs the script in the folder `$1` with the other arguments, and removes it.
const DEPLOY: &str =
    r#"d=$1; shift; sh "$d/deploy.sh" "$@" </dev/null; code=$?; rm -rf -- "$d"; exit $code"#;

/// Sends a script to a host and runs it there, for an hour at most.
fn deploy(cx: &Cx, host: &Target, script: &[u8], folder: &str, args: &[String]) -> Result<Ran> {
    let unique: String = random::bytes(cx, 16)?.iter().map(|byte| format!("{byte:02x}")).collect();
    let folder = format!("{}-{unique}", folder.trim_end_matches('/'));
    if !folder.starts_with('/') {
        return Err(Error::invalid(format!("tmp_dir is no absolute path: {folder}")));
    }
    // A terminal would echo the script and never end it, and who needs one for sudo goes without.
    let sender = Target { sudo: host.sudo && !host.tty, tty: false, ..host.clone() };
    let receive = ["sh", "-c", RECEIVE, "sh", &folder];
    let sent = sender.run(cx, &receive, Some(script.to_vec()), Duration::from_secs(300))?;
    if sent.code != 0 {
        return Ok(sent);
    }
    let mut words = vec!["sh", "-c", DEPLOY, "sh", &folder];
    words.extend(args.iter().map(String::as_str));
    host.run(cx, &words, None, Duration::from_secs(3600))
}

/// Install Salt on Windows hosts.
///
/// ```console
/// $ salt-run manage.bootstrap_psexec hosts='win1'
/// ```
#[function]
pub fn bootstrap_psexec(_: &Cx, _rest: Rest) -> Result<Value> {
    Err(Error::failed(
        "manage.bootstrap_psexec runs PsExec, which is there on Windows only: a master of Halite has none",
    ))
}

/// `3008.3` → 3008, 3
fn numbers(version: &str) -> Vec<u64> {
    let parts = version.split(|letter: char| !letter.is_ascii_digit());
    parts.filter(|part| !part.is_empty()).filter_map(|part| part.parse().ok()).collect()
}
