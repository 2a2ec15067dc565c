//! Without a master: where events, requests and job records go then.

use std::{path::PathBuf, sync::Arc};

use halite_spec::{Cx, Error, Event, Host, Refresh, Result};
use halite_value::{Dict, Value};

use crate::{Link, daemon::bus, proc};

/// The link of a minion that has no master.
pub struct Alone {
    host: Arc<dyn Host>,
    folder: PathBuf,
    opts: Dict,
}

impl Alone {
    pub fn new(host: Arc<dyn Host>, opts: &Dict) -> Self {
        let cache = opts.get("cachedir").unwrap_or_default().to_str();
        Self { host, folder: PathBuf::from(cache.as_str()).join("proc"), opts: opts.clone() }
    }
}

impl Link for Alone {
    fn fire(&self, _: &Cx, event: Event) -> Result<bool> {
        tracing::debug!("no master to tell of {}", event.tag);
        Ok(false)
    }

    fn ask(&self, _: &Cx, load: Value) -> Result<Value> {
        let what = load.get_str("cmd").unwrap_or_default();
        Err(Error::failed(format!("there is no master to ask ({what}): file_client is local")))
    }

    fn running(&self, _: Option<&Cx>) -> Vec<Value> {
        proc::running(&*self.host, &self.folder)
    }

    fn signal_job(&self, jid: &str, signal: i32) -> Result<Value> {
        proc::signal(&*self.host, &self.folder, jid, signal, || false)
    }

    /// A daemon may run on this machine all the same.
    fn ask_daemon(
        &self,
        _: &Cx,
        tag: &str,
        request: &Dict,
        reply: Option<&str>,
    ) -> Result<Option<Dict>> {
        let asked = bus::ask_daemon_now(&self.opts, tag, request, reply);
        Ok(asked.unwrap_or_else(|error| {
            tracing::debug!("no daemon to ask {tag}: {error}");
            None
        }))
    }

    fn refreshed(&self, _: &Cx, _: Refresh) -> Result<()> {
        Ok(())
    }
}
