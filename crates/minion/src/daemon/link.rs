//! The way to the master as a job sees it: `Link` over a session.
//!
//! Behind `salt-minion` it knows the daemon's jobs and bus; behind `salt-call` it knows the records
//! other processes leave in `cachedir/proc`, and reaches the daemon, if one runs, over the local bus.

use std::{
    path::PathBuf,
    sync::{Arc, Weak},
};

use halite_spec::{Cx, Error, Event, Host, Refresh, Result, ahead_of};
use halite_transport::ipc::Address;
use halite_value::{Dict, Value, entries};

use super::{
    bus::{self, Bus},
    jobs::Jobs,
    session::{AskError, Master},
};
use crate::{Link, proc};

/// Told what a job loaded anew.
pub(crate) trait Follow: Send + Sync {
    fn refreshed(&self, cx: &Cx, what: Refresh);

    /// Does what an event on the local bus asks (`manage_schedule`); returns the answer.
    fn manage(&self, tag: &str, request: &Dict) -> Option<Dict>;

    /// Returns the other masters this minion serves at the same time.
    fn other_masters(&self) -> Vec<Arc<Master>> {
        Vec::new()
    }
}

/// A link to one master.
pub struct MasterLink {
    master: Arc<Master>,
    host: Arc<dyn Host>,
    proc: PathBuf,
    side: Side,
}

enum Side {
    Daemon { jobs: Arc<Jobs>, bus: Arc<Bus>, follow: Weak<dyn Follow> },
    Caller { handle: tokio::runtime::Handle, daemon: Address, listen: Address },
}

impl MasterLink {
    pub(crate) fn of_daemon(
        master: Arc<Master>,
        host: Arc<dyn Host>,
        proc: PathBuf,
        jobs: Arc<Jobs>,
        bus: Arc<Bus>,
        follow: Weak<dyn Follow>,
    ) -> Self {
        Self { master, host, proc, side: Side::Daemon { jobs, bus, follow } }
    }

    /// The link of `salt-call`; `bus` is where a running daemon hands out and takes events.
    pub fn of_caller(
        master: Arc<Master>,
        host: Arc<dyn Host>,
        proc: PathBuf,
        handle: tokio::runtime::Handle,
        bus: (Address, Address),
    ) -> Self {
        let (listen, daemon) = bus;
        Self { master, host, proc, side: Side::Caller { handle, daemon, listen } }
    }

    /// Jobs of this process, in the order they came.
    fn own_jobs(&self) -> Vec<Value> {
        match &self.side {
            Side::Daemon { jobs, .. } => jobs.list(),
            Side::Caller { .. } => Vec::new(),
        }
    }

    /// Jobs that left their record, without those known already.
    fn foreign_jobs(&self, known: &[Value]) -> Vec<Value> {
        let is_known = |job: &Value| known.iter().any(|own| own.get("jid") == job.get("jid"));
        let jobs = proc::running(&*self.host, &self.proc);
        jobs.into_iter().filter(|job| !is_known(job)).collect()
    }

    fn fire_here(&self, tag: &str, data: &Dict) -> bool {
        match &self.side {
            Side::Daemon { bus, .. } => bus.fire(tag, data),
            Side::Caller { handle, daemon, .. } => {
                let told = handle.block_on(bus::tell_daemon(daemon, tag, data));
                told.inspect_err(|error| tracing::debug!("no daemon to tell of {tag}: {error}"))
                    .is_ok()
            }
        }
    }
}

/// Builds the load of an event for the master.
pub(crate) fn event_load(tag: &str, data: Value, pretag: Option<&str>) -> Dict {
    entries! { "cmd" => "_minion_event", "pretag" => pretag, "tag" => tag, "data" => data }
}

/// Keeps what came before a job: of its own process by the order they came in, so that of two that
/// come together the later one gives way and never both.
fn ahead(own: Vec<Value>, foreign: Vec<Value>, jid: &str, waits: bool) -> Vec<Value> {
    let is_it = |job: &Value| job.get_str("jid").is_some_and(|other| other == jid);
    let before = own.into_iter().take_while(|job| !is_it(job));
    before.chain(ahead_of(foreign, jid, waits)).collect()
}

impl Link for MasterLink {
    fn fire(&self, cx: &Cx, event: Event) -> Result<bool> {
        if event.local {
            let data = match &event.data {
                Value::Dict(data) => data.clone(),
                other => entries! { "data" => other },
            };
            return Ok(self.fire_here(&event.tag, &data));
        }
        let load = event_load(&event.tag, event.data, event.pretag.as_deref());
        let jid = cx.job.jid.as_str();
        let own = |begin: &str| {
            let rest = event.tag.strip_prefix(begin).and_then(|rest| rest.strip_prefix(jid));
            !jid.is_empty() && rest.is_some_and(|rest| rest.starts_with('/'))
        };
        if own("salt/state_result/") || own("salt/job/") {
            // What a state run tells of itself names its job in the message, too.
            load.insert("jid", jid);
            load.remove("pretag");
        }
        if event.pretag.is_none() && matches!(self.side, Side::Caller { .. }) {
            // Only what passed a minion's own bus has room for one.
            load.remove("pretag");
        }
        if let Side::Daemon { follow, .. } = &self.side {
            // All masters hear of it, as in Salt; whether the others are there is no matter here.
            for other in follow.upgrade().iter().flat_map(|follow| follow.other_masters()) {
                other.tell(load.shallow_copy());
            }
        }
        match self.master.ask_now(&load, &|| cx.host.cancelled()) {
            Ok(_) => Ok(true),
            Err(AskError::Cancelled) => Err(Error::Cancelled),
            Err(error) => {
                tracing::error!("the event {} did not reach the master: {error}", event.tag);
                Ok(false)
            }
        }
    }

    fn ask(&self, cx: &Cx, load: Value) -> Result<Value> {
        let Value::Dict(load) = load else {
            return Err(Error::invalid("a request to the master must be a dict"));
        };
        self.master.ask_now(&load, &|| cx.host.cancelled()).map_err(of_ask)
    }

    fn running(&self, _: Option<&Cx>) -> Vec<Value> {
        let mut jobs = self.own_jobs();
        jobs.extend(self.foreign_jobs(&jobs));
        jobs
    }

    fn ahead(&self, jid: &str, waits: bool) -> Vec<Value> {
        let own = self.own_jobs();
        let foreign = self.foreign_jobs(&own);
        ahead(own, foreign, jid, waits)
    }

    fn signal_job(&self, jid: &str, signal: i32) -> Result<Value> {
        if let Side::Daemon { jobs, .. } = &self.side
            && let Some(thread) = jobs.end(jid, signal)
        {
            return Ok(format!("Signal {signal} sent to job {jid} at pid {thread}").into());
        }
        proc::signal(&*self.host, &self.proc, jid, signal, || {
            self.fire_here(SIGNAL, &entries! { "jid" => jid, "signal" => signal })
        })
    }

    fn ask_daemon(
        &self,
        _: &Cx,
        tag: &str,
        request: &Dict,
        reply: Option<&str>,
    ) -> Result<Option<Dict>> {
        match &self.side {
            Side::Daemon { follow, .. } => {
                Ok(follow.upgrade().and_then(|follow| follow.manage(tag, request)))
            }
            Side::Caller { handle, daemon, listen } => {
                let asked = bus::ask_daemon(daemon, listen, tag, request, reply, PATIENCE);
                let asked = handle.block_on(asked);
                Ok(asked.unwrap_or_else(|error| {
                    tracing::debug!("no daemon to ask {tag}: {error}");
                    None
                }))
            }
        }
    }

    fn refreshed(&self, cx: &Cx, what: Refresh) -> Result<()> {
        match &self.side {
            Side::Daemon { follow, .. } => {
                if let Some(follow) = follow.upgrade() {
                    follow.refreshed(cx, what);
                }
            }
            Side::Caller { .. } => {
                self.fire_here(refresh_tag(what), &Dict::new());
            }
        }
        Ok(())
    }
}

/// How long a program waits for the daemon's answer; genuine tools wait as long.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);

/// A program asks the daemon to end one of its jobs: a thread takes no signals.
pub(crate) const SIGNAL: &str = "halite/signal_job";

/// The tag by which a daemon is told to load something anew.
pub(crate) fn refresh_tag(what: Refresh) -> &'static str {
    match what {
        Refresh::Grains => "grains_refresh",
        Refresh::Pillar { .. } => "pillar_refresh",
        Refresh::Modules => "module_refresh",
        Refresh::Beacons => "beacons_refresh",
        Refresh::Schedule => "manage_schedule",
        Refresh::Matchers => "matchers_refresh",
    }
}

/// Turns a failed question into a function's error.
pub(crate) fn of_ask(error: AskError) -> Error {
    match error {
        AskError::Cancelled => Error::Cancelled,
        other => Error::failed(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use halite_value::dict;

    use super::*;

    #[test]
    fn of_two_jobs_that_come_together_one_gives_way() {
        let jobs = |jids: &[&str]| jids.iter().map(|jid| dict! { "jid" => *jid }).collect();
        let seen = |jid: &str, waits: bool| {
            let found = ahead(jobs(&["20", "30", "10"]), jobs(&["15", "40"]), jid, waits);
            found.iter().map(|job| job.get_str("jid").unwrap().into()).collect::<Vec<String>>()
        };
        assert_eq!(seen("20", false), ["15", "40"]);
        assert_eq!(seen("30", false), ["20", "15", "40"]);
        // It came last, whatever its number says.
        assert_eq!(seen("10", false), ["20", "30", "15", "40"]);
        assert_eq!(seen("30", true), ["20", "15"]);
        assert_eq!(
            seen("10", true),
            ["20", "30"],
            "who waits does not wait for who may wait for it"
        );
    }
}
