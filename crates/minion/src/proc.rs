//! Records of running jobs: `cachedir/proc/<jid>`, as genuine Salt keeps them.
//!
//! A record is msgpack with the job's function, arguments and process id. It is removed when the
//! job ends; one whose process is gone is stale and is removed by whoever finds it.

use std::path::{Path, PathBuf};

use halite_spec::{Call, Cx, Error, Host, Result, host::Write};
use halite_value::{
    Value, dict,
    msgpack::{self, Dialect, Text},
};

use crate::caller::proc_dir;

/// A running job's record.
pub(crate) struct Record {
    path: PathBuf,
}

impl Record {
    pub(crate) fn begin(cx: &Cx, function: &str, call: &Call) -> Result<Self> {
        let folder = proc_dir(cx)?;
        cx.host.create_dirs(&folder, Some(0o755))?;
        let mut args = call.args.clone();
        if !call.kwargs.is_empty() {
            let named = call.kwargs.shallow_copy();
            named.insert("__kwarg__", true);
            args.push(named.into());
        }
        let record = dict! {
            "fun" => function, "fun_args" => args.clone(), "arg" => args, "tgt" => cx.id(),
            "jid" => &cx.job.jid, "ret" => "", "tgt_type" => "glob", "user" => &cx.job.user,
            "pid" => std::process::id(),
        };
        let path = folder.join(cx.job.jid.as_str());
        // Arguments that cannot be written (a function object) are no reason not to run.
        if let Ok(bytes) = msgpack::to_vec(&record, Dialect::Modern) {
            cx.host.write(&path, &bytes, &Write { mode: Some(0o600), ..Write::default() })?;
        }
        Ok(Self { path })
    }

    pub(crate) fn end(self, cx: &Cx) {
        if let Err(error) = cx.host.remove_file(&self.path)
            && !error.is_missing()
        {
            tracing::warn!("the job's record stays behind: {error}");
        }
    }
}

/// Sends a signal to a job by its record; empty if no such job runs.
///
/// A job inside a daemon is a thread: a signal would end the daemon, so `tell` has to pass it on.
pub(crate) fn signal(
    host: &dyn Host,
    folder: &Path,
    jid: &str,
    signal: i32,
    tell: impl FnOnce() -> bool,
) -> Result<Value> {
    let job =
        running(host, folder).into_iter().find(|job| job.get("jid").is_some_and(|own| own == *jid));
    let Some(job) = job else { return Ok("".into()) };
    let pid = job.get("pid").and_then(|pid| pid.as_int()).unwrap_or(0);
    let sent = format!("Signal {signal} sent to job {jid} at pid {pid}");
    if job.get("thread").is_some_and(|thread| thread.truthy()) {
        return if tell() {
            Ok(sent.into())
        } else {
            Err(Error::failed(format!("the minion that runs job {jid} cannot be reached")))
        };
    }
    let pid = u32::try_from(pid).map_err(|_| Error::failed(format!("{pid} is no process id")))?;
    host.kill(pid, signal)?;
    Ok(sent.into())
}

/// Returns the records of jobs that run now, on this machine.
pub(crate) fn running(host: &dyn Host, folder: &Path) -> Vec<Value> {
    let mut jobs = Vec::new();
    for name in host.read_dir(folder).unwrap_or_default() {
        let path = folder.join(&name);
        let Ok(bytes) = host.read(&path) else { continue };
        let Ok(job) = msgpack::from_slice(&bytes, Text::Typed) else { continue };
        let pid = job.get("pid").and_then(|pid| pid.as_int()).unwrap_or(0);
        if host.exists(&Path::new("/proc").join(pid.to_string())).unwrap_or(true) {
            jobs.push(job);
        } else {
            // Its process died without cleaning up; nobody else will.
            let _ = host.remove_file(&path);
        }
    }
    jobs
}
