//! `saltutil`: what a minion knows and does about itself.
//!
//! Jobs and refreshing are the runtime's (the daemon's, or `salt-call`'s); here are their names. The
//! users' own modules are synced in [`sync`].

mod sync;

use std::{
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use halite_spec::{Cx, Error, Refresh, Rest, Result, alias, function, host::Kind, module};
use halite_target::fnmatch::fnmatch;
use halite_value::{
    Dict, Value, entries,
    msgpack::{self, Text},
};
pub(crate) use sync::before_highstate;
pub use sync::{
    Chosen, copy_modules, sync_all, sync_beacons, sync_clouds, sync_engines, sync_executors,
    sync_grains, sync_log_handlers, sync_matchers, sync_modules, sync_output, sync_outputters,
    sync_pillar, sync_proxymodules, sync_renderers, sync_resources, sync_returners, sync_sdb,
    sync_serializers, sync_states, sync_thorium, sync_tops, sync_utils, sync_wrapper,
};

use crate::file::tree::walk;

module! {
    /// What a minion knows and does about itself.
    "saltutil": clear_cache, clear_job_cache, cmd, cmd_iter, find_cached_job, find_job, is_running,
    kill_all_jobs, kill_job, list_extmods, mmodule, pillar_refresh, refresh_beacons, refresh_grains,
    refresh_matchers, refresh_modules, refresh_pillar, refresh_resources, regen_keys, revoke_auth,
    runner, running, signal_job, sync_all, sync_beacons, sync_clouds, sync_engines, sync_executors,
    sync_grains, sync_log_handlers, sync_matchers, sync_modules, sync_output, sync_outputters,
    sync_pillar, sync_proxymodules, sync_renderers, sync_resources, sync_returners, sync_sdb,
    sync_serializers, sync_states, sync_thorium, sync_tops, sync_utils, sync_wrapper, term_all_jobs,
    term_job, update, wheel,
}

alias! { pillar_refresh = refresh_pillar }

const SIGKILL: i64 = 9;
const SIGTERM: i64 = 15;

fn cachedir(cx: &Cx) -> Result<PathBuf> {
    let folder = cx.opt_str("cachedir").ok_or_else(|| Error::failed("cachedir is not set"))?;
    Ok(PathBuf::from(folder.as_str()))
}

/// Return the jobs that run on the minion now.
///
/// ```console
/// $ salt web1 saltutil.running
/// ```
#[function]
pub fn running(cx: &Cx) -> Result<Vec<Value>> {
    // The question itself is a job too; Salt does not list it.
    let own = |job: &Value| job.get("jid").is_some_and(|jid| jid == *cx.job.jid.as_str());
    Ok(cx.runtime.running().into_iter().filter(|job| !own(job)).collect())
}

/// Return the running jobs whose function fits a glob.
///
/// ```console
/// $ salt web1 saltutil.is_running 'state.*'
/// ```
#[function]
pub fn is_running(
    cx: &Cx,
    /// The function, or a glob of functions.
    fun: String,
) -> Result<Vec<Value>> {
    let fits = |job: &Value| job.get_str("fun").is_some_and(|name| fnmatch(&name, &fun));
    Ok(running(cx)?.into_iter().filter(fits).collect())
}

/// Return what is known of a running job: nothing if it does not run.
///
/// ```console
/// $ salt '*' saltutil.find_job 20130611195312123456
/// ```
#[function]
pub fn find_job(
    cx: &Cx,
    /// The job's id.
    jid: String,
) -> Result<Value> {
    let found = running(cx)?.into_iter().find(|job| job.get("jid").is_some_and(|own| own == *jid));
    Ok(found.unwrap_or_else(Value::dict))
}

/// Return a job's return from the minion's own cache (`cache_jobs`).
///
/// ```console
/// $ salt '*' saltutil.find_cached_job 20130611195312123456
/// ```
#[function]
pub fn find_cached_job(
    cx: &Cx,
    /// The job's id.
    jid: String,
) -> Result<Value> {
    if jid.is_empty() || jid.contains('/') || jid.starts_with('.') {
        return Err(Error::invalid(format!("'{jid}' is no job id")));
    }
    let folder = cachedir(cx)?.join("minion_jobs").join(&jid);
    if !cx.host.is_dir(&folder)? {
        let text = if cx.opt_bool("cache_jobs") {
            format!("Local jobs cache directory {} not found", folder.display())
        } else {
            "Local jobs cache directory not found; you may need to enable cache_jobs on this minion"
                .to_owned()
        };
        return Ok(text.into());
    }
    let bytes = cx.host.read(&folder.join("return.p"))?;
    match msgpack::from_slice(&bytes, Text::Guess) {
        Ok(ret @ Value::Dict(_)) => Ok(ret),
        _ => Ok(Value::Null),
    }
}

/// Send a signal to a job.
///
/// ```console
/// $ salt '*' saltutil.signal_job 20130611195312123456 15
/// ```
#[function]
pub fn signal_job(
    cx: &Cx,
    /// The job's id.
    jid: String,
    /// The signal's number.
    sig: i64,
) -> Result<Value> {
    let signal = i32::try_from(sig).map_err(|_| Error::invalid(format!("{sig} is no signal")))?;
    cx.runtime.signal_job(&jid, signal)
}

/// Ask a job to end (SIGTERM).
///
/// ```console
/// $ salt '*' saltutil.term_job 20130611195312123456
/// ```
#[function]
pub fn term_job(
    cx: &Cx,
    /// The job's id.
    jid: String,
) -> Result<Value> {
    signal_job(cx, jid, SIGTERM)
}

/// End a job (SIGKILL).
///
/// ```console
/// $ salt '*' saltutil.kill_job 20130611195312123456
/// ```
#[function]
pub fn kill_job(
    cx: &Cx,
    /// The job's id.
    jid: String,
) -> Result<Value> {
    signal_job(cx, jid, SIGKILL)
}

fn signal_all(cx: &Cx, signal: i64) -> Result<Vec<Value>> {
    let jobs = running(cx)?;
    let jids = jobs.iter().filter_map(|job| job.get("jid"));
    jids.map(|jid| signal_job(cx, jid.to_str().to_string(), signal)).collect()
}

/// Ask all jobs to end (SIGTERM).
///
/// ```console
/// $ salt web1 saltutil.term_all_jobs
/// ```
#[function]
pub fn term_all_jobs(cx: &Cx) -> Result<Vec<Value>> {
    signal_all(cx, SIGTERM)
}

/// End all jobs (SIGKILL).
///
/// ```console
/// $ salt web1 saltutil.kill_all_jobs
/// ```
#[function]
pub fn kill_all_jobs(cx: &Cx) -> Result<Vec<Value>> {
    signal_all(cx, SIGKILL)
}

/// Fetch the pillar anew.
///
/// ```console
/// $ salt web1 saltutil.refresh_pillar
/// ```
#[function]
pub fn refresh_pillar(
    cx: &Cx,
    /// Wait until it is there. It always is when this returns.
    #[default(false)]
    wait: bool,
    /// Seconds to wait.
    #[default(30)]
    timeout: i64,
    /// Have the master compile it afresh.
    #[default(true)]
    clean_cache: bool,
) -> Result<bool> {
    let _ = (wait, timeout);
    cx.runtime.refresh(cx, Refresh::Pillar { fresh: clean_cache })
}

/// Collect the grains anew.
///
/// ```console
/// $ salt web1 saltutil.refresh_grains
/// ```
#[function]
pub fn refresh_grains(
    cx: &Cx,
    /// Fetch the pillar too: it may depend on grains.
    #[default(true)]
    #[arg(by_name)]
    refresh_pillar: bool,
    /// Have the master compile the pillar afresh.
    #[default(false)]
    #[arg(by_name)]
    clean_pillar_cache: bool,
) -> Result<bool> {
    forget_stored_grains(cx)?;
    cx.runtime.refresh(cx, Refresh::Grains)?;
    let pillar = Refresh::Pillar { fresh: clean_pillar_cache };
    if refresh_pillar { cx.runtime.refresh(cx, pillar) } else { Ok(true) }
}

/// Stored grains would be taken for new ones.
fn forget_stored_grains(cx: &Cx) -> Result<()> {
    if !cx.opt_bool("grains_cache") {
        return Ok(());
    }
    match cx.host.remove_file(&cachedir(cx)?.join("grains.cache.p")) {
        Err(error) if !error.is_missing() => Err(error.into()),
        _ => Ok(()),
    }
}

/// Load modules anew, and with them the grains.
///
/// ```console
/// $ salt web1 saltutil.refresh_modules
/// ```
#[function]
pub fn refresh_modules(
    cx: &Cx,
    /// `async=False` waits; it is done when this returns in any case.
    rest: Rest,
) -> Result<bool> {
    let _ = rest;
    cx.runtime.refresh(cx, Refresh::Modules)
}

/// Load the beacons anew.
///
/// ```console
/// $ salt web1 saltutil.refresh_beacons
/// ```
#[function]
pub fn refresh_beacons(cx: &Cx) -> Result<bool> {
    cx.runtime.refresh(cx, Refresh::Beacons)
}

/// Load the matchers anew.
///
/// ```console
/// $ salt web1 saltutil.refresh_matchers
/// ```
#[function]
pub fn refresh_matchers(cx: &Cx) -> Result<bool> {
    cx.runtime.refresh(cx, Refresh::Matchers)
}

/// Look for managed resources anew.
///
/// ```console
/// $ salt web1 saltutil.refresh_resources
/// ```
#[function]
pub fn refresh_resources(cx: &Cx) -> Result<bool> {
    crate::event::fire(cx, Value::dict(), "resource_refresh".to_owned())
}

/// Remove every file of the minion's cache. What jobs and returns depend on stays.
///
/// ```console
/// $ salt web1 saltutil.clear_cache
/// ```
#[function]
pub fn clear_cache(cx: &Cx) -> Result<bool> {
    let cache = cachedir(cx)?;
    // differs: Salt removes the records of running jobs too, and we keep returns there that no
    // master has got yet.
    let kept = |folder: &Path, name: &str| {
        folder.starts_with(cache.join("proc")) || (folder == cache && name == "journal")
    };
    for visited in walk(cx, &cache, &|_| true)? {
        for name in visited.files.iter().filter(|name| !kept(&visited.path, name)) {
            let path = visited.path.join(name);
            if let Err(error) = cx.host.remove_file(&path) {
                tracing::error!("clear_cache stops at {}: {error}", path.display());
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Remove old returns from the minion's own cache (`cache_jobs`).
///
/// ```console
/// $ salt web1 saltutil.clear_job_cache
/// ```
#[function]
pub fn clear_job_cache(
    cx: &Cx,
    /// How old they must be, in hours.
    #[default(24.0)]
    #[shown(24i64)]
    hours: f64,
) -> Result<bool> {
    let now = cx.host.now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let before = now - hours * 3600.0;
    let folder = cachedir(cx)?.join("minion_jobs");
    let names = cx.host.read_dir(&folder).unwrap_or_default();
    for job in names.iter().map(|name| folder.join(name)) {
        let stat = cx.host.stat_if_there(&job, false)?;
        let old = stat.is_some_and(|stat| stat.kind == Kind::Dir && stat.mtime < before);
        if old && let Err(error) = cx.host.remove_all(&job) {
            tracing::error!("clear_job_cache stops at {}: {error}", job.display());
            return Ok(false);
        }
    }
    Ok(true)
}

/// List the users' own modules that were synced.
///
/// ```console
/// $ salt web1 saltutil.list_extmods
/// ```
#[function]
pub fn list_extmods(cx: &Cx) -> Result<Value> {
    let folder = cachedir(cx)?.join("extmods");
    let listed = entries! {};
    if !cx.host.is_dir(&folder)? {
        return Ok(listed.into());
    }
    for kind in cx.host.read_dir(&folder)? {
        let mut names: Vec<String> = walk(cx, &folder.join(&kind), &|_| true)?
            .into_iter()
            .flat_map(|visited| visited.files)
            .filter_map(|file| file.split('.').next().map(str::to_owned))
            .collect();
        names.sort();
        names.dedup();
        listed.insert(kind.to_string_lossy().into_owned(), names);
    }
    Ok(listed.into())
}

/// Tell the master to forget this minion's key.
///
/// ```console
/// $ salt web1 saltutil.revoke_auth
/// ```
#[function]
pub fn revoke_auth(
    cx: &Cx,
    /// Keep what the master remembers of the minion.
    #[default(false)]
    preserve_minion_cache: bool,
) -> Result<bool> {
    let load = entries! {
        "cmd" => "revoke_auth", "id" => cx.id(), "preserve_minion_cache" => preserve_minion_cache,
    };
    match cx.runtime.ask_master(cx, load.into()) {
        Ok(_) => Ok(true),
        Err(Error::Cancelled) => Err(Error::Cancelled),
        Err(error) => {
            tracing::error!("the master did not hear that our key is revoked: {error}");
            Ok(false)
        }
    }
}

/// Remove the minion's keys; new ones are made when it starts again.
///
/// ```console
/// $ salt web1 saltutil.regen_keys
/// ```
#[function]
pub fn regen_keys(cx: &Cx) -> Result<()> {
    let folder = cx.opt_str("pki_dir").ok_or_else(|| Error::failed("pki_dir is not set"))?;
    let folder = Path::new(folder.as_str());
    for name in cx.host.read_dir(folder)? {
        // What is no file stays, as in Salt.
        let _ = cx.host.remove_file(&folder.join(name));
    }
    Ok(())
}

/// Update the minion in place: only for builds that bring an updater, which this one does not.
///
/// ```console
/// $ salt web1 saltutil.update 3008.3
/// ```
#[function]
pub fn update(
    _cx: &Cx,
    /// The version to update to.
    version: Option<Value>,
) -> Result<Value> {
    let _ = version;
    Ok(entries! { "_error" => "Esky not available as import" }.into())
}

/// Asks the master whose process or machine this is.
fn ask_here(cx: &Cx, what: &str, load: Dict) -> Result<Value> {
    load.insert("cmd", format!("halite_{what}"));
    cx.runtime.ask_master(cx, load.into())
}

/// The arguments of a function of the master: `kwarg`, and what stands beside it.
fn named(kwarg: Option<Value>, rest: &Rest) -> Dict {
    let all = Dict::new();
    for (name, value) in &rest.kwargs {
        if !name.to_str().starts_with("__") {
            all.insert(name, value);
        }
    }
    if let Some(Value::Dict(kwarg)) = kwarg {
        all.update(&kwarg);
    }
    all
}

fn listed(arg: Option<Value>) -> Vec<Value> {
    match arg {
        None | Some(Value::Null) => Vec::new(),
        Some(one) => one.items_of_sequence().unwrap_or_else(|| vec![one.clone()]),
    }
}

/// Run a runner function of the master on this machine.
///
/// ```console
/// $ salt '*' saltutil.runner manage.up
/// ```
#[function]
pub fn runner(
    cx: &Cx,
    /// The runner function.
    name: String,
    /// Its positional arguments.
    arg: Option<Value>,
    /// Its keyword arguments.
    kwarg: Option<Value>,
    /// Return the whole event of the run.
    #[default(false)]
    full_return: bool,
    /// The environment.
    #[default("base".to_owned())]
    saltenv: String,
    /// The id of the orchestration this belongs to.
    jid: Option<Value>,
    /// Further keyword arguments.
    rest: Rest,
) -> Result<Value> {
    let _ = (saltenv, jid);
    let load = entries! {
        "fun" => name.as_str(), "arg" => listed(arg), "kwarg" => named(kwarg, &rest),
    };
    let none = format!("'{name}' is not available.");
    let data = ask_here(cx, "runner", load)?;
    if data.get("return").is_some_and(|ret| ret == *none.as_str()) {
        return Err(Error::failed(none));
    }
    Ok(if full_return { data } else { data.get("return").unwrap_or_default() })
}

/// Run a wheel function of the master on this machine.
///
/// ```console
/// $ salt '*' saltutil.wheel key.list_all
/// ```
#[function]
pub fn wheel(
    cx: &Cx,
    /// The wheel function.
    name: String,
    /// Its arguments.
    args: Rest,
) -> Result<Value> {
    let load =
        entries! { "fun" => name, "arg" => args.args.clone(), "kwarg" => named(None, &args) };
    let data = ask_here(cx, "wheel", load)?;
    if let Some(data) = data.as_dict()
        && data.get("success").is_some_and(|success| !success.truthy())
    {
        data.insert("retcode", 1);
        cx.job.set_retcode(1);
    }
    Ok(data)
}

/// Publish a job from this machine's master and return all returns.
///
/// ```console
/// $ salt '*' saltutil.cmd '*' test.ping
/// ```
#[function]
pub fn cmd(
    cx: &Cx,
    /// The minions meant.
    tgt: Value,
    /// The function.
    fun: Value,
    /// Its positional arguments.
    #[shown(Value::list::<Value>([]))]
    arg: Option<Value>,
    /// Seconds to wait.
    timeout: Option<Value>,
    /// How `tgt` is read.
    #[default("glob".to_owned())]
    tgt_type: String,
    /// Returners.
    #[default(String::new())]
    ret: String,
    /// Its keyword arguments.
    kwarg: Option<Value>,
    /// Use salt-ssh.
    #[default(false)]
    ssh: bool,
    /// Further options of the client.
    rest: Rest,
) -> Result<Value> {
    if ssh {
        return Err(Error::failed("saltutil.cmd: `ssh` is not built yet"));
    }
    let load = entries! {
        "tgt" => tgt, "fun" => fun, "arg" => listed(arg), "timeout" => timeout,
        "tgt_type" => tgt_type, "ret" => ret, "kwarg" => named(kwarg, &rest),
    };
    ask_here(cx, "cmd", load)
}

/// Publish a job from this machine's master and return the returns as they come.
///
/// ```console
/// $ salt '*' saltutil.cmd_iter '*' test.ping
/// ```
#[function]
pub fn cmd_iter(
    cx: &Cx,
    /// The minions meant.
    tgt: Value,
    /// The function.
    fun: Value,
    /// Its positional arguments.
    #[shown(Value::list::<Value>([]))]
    arg: Option<Value>,
    /// Seconds to wait.
    timeout: Option<Value>,
    /// How `tgt` is read.
    #[default("glob".to_owned())]
    tgt_type: String,
    /// Returners.
    #[default(String::new())]
    ret: String,
    /// Its keyword arguments.
    kwarg: Option<Value>,
    /// Use salt-ssh.
    #[default(false)]
    ssh: bool,
    /// Further options of the client.
    rest: Rest,
) -> Result<Value> {
    // What comes one by one from Python's function is a list once it is a return.
    let all = cmd(cx, tgt, fun, arg, timeout, tgt_type, ret, kwarg, ssh, rest)?;
    let one_by_one = all.as_dict().into_iter().flatten();
    Ok(Value::list(one_by_one.map(|(id, ret)| -> Value { entries! { id => ret }.into() })))
}

/// Call an execution function with the modules of an environment.
///
/// ```console
/// $ salt web1 saltutil.mmodule base test.version
/// ```
#[function]
pub fn mmodule(
    cx: &Cx,
    /// The environment.
    saltenv: String,
    /// The function.
    fun: String,
    /// Its arguments.
    args: Rest,
) -> Result<Value> {
    let _ = saltenv;
    cx.call(&fun, halite_spec::Call { args: args.args, kwargs: args.kwargs })
}
