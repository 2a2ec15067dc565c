//! `salt-proxy`: what a minion that speaks for a device does besides.
//!
//! It is this daemon with an id and options of its own, and two moments: when it has its pillar it
//! connects with the device ([`begin`]), before it takes jobs; when it ends it disconnects
//! ([`end`]). In between a scheduled job looks after the connection.

use std::{sync::Arc, time::Duration};

use halite_host::Cancel;
use halite_spec::Job;
use halite_value::{Dict, SmolStr};
use tokio::sync::Mutex;

use super::{EX_GENERIC, node::Node, options::Reader, own::Ground};
use crate::proxy;

/// How long a device may take to say good-bye.
const FAREWELL: Duration = Duration::from_secs(10);

/// The device, and where the minion was when it connected with it.
#[derive(Default)]
pub(crate) struct Device(Mutex<Option<(SmolStr, Ground)>>);

impl Device {
    /// Returns the place for a device; `None` for an ordinary minion.
    pub(crate) fn of(opts: &Dict) -> Option<Self> {
        opts.get("proxyid").is_some_and(|id| id.truthy()).then(Self::default)
    }
}

/// Connects with the device of a proxy minion; ends the daemon, and returns false, if that fails.
// differs: where `init` of a proxy module fails, Salt's proxy minion stays and does nothing; ours ends with 1, so that whoever started it knows.
pub(crate) async fn begin(node: &Arc<Node>, ground: Ground) -> bool {
    let Some(device) = &node.device else { return true };
    let mut begun = device.0.lock().await;
    let own = Arc::clone(node);
    let place = ground.clone();
    let work = move || {
        let cx = place.cx(Job::default(), Cancel::new());
        proxy::begin(&cx, &[place.opts(), &own.opts], &*own.rendering)
    };
    let told = match tokio::task::spawn_blocking(work).await {
        Ok(Ok(device)) => {
            if device.has_alive {
                keep_alive(node, &device.module);
            }
            *begun = Some((device.module, ground));
            return true;
        }
        Ok(Err(error)) => error.to_string(),
        Err(panic) => panic.to_string(),
    };
    tracing::error!("{told}");
    node.exit(EX_GENERIC);
    false
}

/// Has the schedule look after the connection.
fn keep_alive(node: &Node, module: &str) {
    let reader = Reader(node.opts.clone());
    if reader.flag("proxy_keep_alive", true) {
        let minutes = reader.number("proxy_keep_alive_interval", 1.0);
        node.schedule.keep_device(module, minutes);
    }
}

/// Disconnects from the device.
// differs: Salt's proxy minion leaves the device without a word when it gets a signal; ours calls `shutdown`, as its manual says.
pub(crate) async fn end(node: &Arc<Node>) {
    let Some(device) = &node.device else { return };
    let Some((module, ground)) = device.0.lock().await.take() else { return };
    let Some(python) = node.rendering.python() else { return };
    let work = move || python.end_device(&ground.cx(Job::default(), Cancel::new()));
    let ended = tokio::time::timeout(FAREWELL, tokio::task::spawn_blocking(work)).await;
    if ended.is_err() {
        tracing::warn!("{module}.shutdown takes more than {} seconds", FAREWELL.as_secs());
    }
}
