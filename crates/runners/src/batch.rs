//! `batch`: jobs on a few minions at a time (`salt -b 2 …`), whoever drives them.

use halite_client::Request;
use halite_spec::{Cx, Result, function, module};
use halite_value::{Dict, Value, entries};

use crate::master;

module! {
    /// Jobs on a few minions at a time.
    "batch": list_active, status, stop,
}

fn ask(cx: &Cx, load: Dict) -> Result<Value> {
    master::ask(cx, &Request::Ask { what: "batch".into(), load })
}

/// Return what is known of each batch that goes on.
///
/// ```console
/// $ salt-run batch.list_active
/// ```
#[function]
pub fn list_active(cx: &Cx) -> Result<Value> {
    ask(cx, entries! { "do" => "list" })
}

/// Return how far a batch is; None if there is none of that id.
///
/// ```console
/// $ salt-run batch.status 20240131120000123456
/// ```
#[function]
pub fn status(
    cx: &Cx,
    /// The job.
    jid: String,
) -> Result<Value> {
    ask(cx, entries! { "do" => "status", "jid" => jid })
}

/// Stop a batch: no further minion gets the job. False if there is none that goes on.
///
/// ```console
/// $ salt-run batch.stop 20240131120000123456 kill=True
/// ```
#[function]
pub fn stop(
    cx: &Cx,
    /// The job.
    jid: String,
    /// End the job where it runs now, too.
    #[default(false)]
    kill: bool,
) -> Result<Value> {
    ask(cx, entries! { "do" => "stop", "jid" => jid, "kill" => kill })
}
