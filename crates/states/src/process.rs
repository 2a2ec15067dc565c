//! `process`: programs that shall not run.

use halite_modules::ps;
use halite_spec::{Applied, Args, Cx, Plan, Result, State, states};
use halite_value::{Dict, Value};

states! {
    /// Programs that shall not run.
    "process": "absent" => Absent,
}

/// Make sure that no process has this in its command line.
#[derive(Args)]
pub struct Absent {
    /// What to look for.
    name: String,
    /// Only processes of this user.
    user: Option<String>,
    /// The signal; 15 unless given.
    signal: Option<i64>,
}

impl State for Absent {
    type Seen = Vec<u32>;

    fn observe(&self, cx: &Cx) -> Result<Vec<u32>> {
        let own = ps::own_and_above(cx);
        let found = ps::processes(cx)?.into_iter().filter(|process| {
            process.shown().contains(&self.name)
                && !own.contains(&process.pid)
                && self.user.as_ref().is_none_or(|user| ps::user_name(cx, process.uid) == *user)
        });
        Ok(found.map(|process| process.pid).collect())
    }

    fn plan(&self, pids: &Vec<u32>) -> Result<Plan> {
        if pids.is_empty() {
            return Ok(Plan::nothing("No matching processes running"));
        }
        let count = pids.len();
        Ok(Plan::change("killed", Value::list(pids.iter().copied()))
            .pending(format!("{count} processes will be killed"))
            .done(format!("Killed {count} processes")))
    }

    fn apply(&self, cx: &Cx, pids: Vec<u32>) -> Result<Applied> {
        let signal = self.signal.and_then(|signal| i32::try_from(signal).ok()).unwrap_or(15);
        let mut killed = Vec::new();
        for pid in pids {
            // One that ended meanwhile is as absent as one that was killed.
            if cx.host.kill(pid, signal).is_ok() {
                killed.push(pid);
            }
        }
        let text = format!("Killed {} processes", killed.len());
        let changes = Dict::new();
        changes.insert("killed", Value::list(killed));
        Ok(Applied::changes(changes).comment(text))
    }
}
