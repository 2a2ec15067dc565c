//! `state.pause`, `state.resume` and `state.soft_kill`: files in the minion's cache, read before each
//! state.

use std::{path::Path, time::Duration};

use halite_spec::Cx;
use halite_value::{Value, msgpack};

/// Waits while the run is held at a state; true if the run ends there.
pub(super) fn ends_at(cx: &Cx, id: &str) -> bool {
    let jid = &cx.job.jid;
    let Some(cache) = cx.opt_str("cachedir").filter(|_| !jid.is_empty()) else { return false };
    let path = Path::new(cache.as_str()).join("state_pause").join(jid.as_str());
    let started = cx.host.now();
    while let Some(pause) = pause_of(cx, &path, id) {
        if pause.get("kill").is_some_and(|kill| kill.truthy()) {
            return true;
        }
        let limit = pause.get("duration").and_then(|seconds| seconds.to_int());
        let waited = cx.host.now().duration_since(started).unwrap_or_default();
        if limit.is_some_and(|limit| waited.as_secs() >= limit.unsigned_abs()) {
            return false;
        }
        if cx.sleep(Duration::from_secs(1)).is_err() {
            return true;
        }
    }
    false
}

/// Returns what is asked of an id, or of all.
fn pause_of(cx: &Cx, path: &Path, id: &str) -> Option<Value> {
    let bytes = cx.host.read(path).ok()?;
    let Ok(Value::Dict(pauses)) = msgpack::from_slice(&bytes, msgpack::Text::Typed) else {
        return None;
    };
    pauses.get(id).or_else(|| pauses.get("__all__"))
}
