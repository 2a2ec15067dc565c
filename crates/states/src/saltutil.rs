//! `saltutil`: bring the users' own modules onto this machine, in the course of a run.

use halite_spec::{Applied, Args, Call, Cx, Error, Plan, Rest, Result, State, states};
use halite_value::{Dict, Value};

states! {
    /// Bring the users' own modules onto this machine.
    "saltutil": "sync_all" => Sync,
    "sync_beacons" => Sync,
    "sync_clouds" => Sync,
    "sync_engines" => Sync,
    "sync_executors" => Sync,
    "sync_grains" => Sync,
    "sync_log_handlers" => Sync,
    "sync_matchers" => Sync,
    "sync_modules" => Sync,
    "sync_output" => Sync,
    "sync_outputters" => Sync,
    "sync_pillar" => Sync,
    "sync_proxymodules" => Sync,
    "sync_renderers" => Sync,
    "sync_resources" => Sync,
    "sync_returners" => Sync,
    "sync_sdb" => Sync,
    "sync_serializers" => Sync,
    "sync_states" => Sync,
    "sync_thorium" => Sync,
    "sync_tops" => Sync,
    "sync_utils" => Sync,
    "sync_wrapper" => Sync,
}

/// Bring modules of the kind the state is named after, or all.
#[derive(Args)]
pub struct Sync {
    /// Any name.
    #[expect(dead_code, reason = "the state has a name like every state")]
    name: String,
    /// `refresh`, `saltenv` and the lists, as of the function.
    kwargs: Rest,
}

impl Sync {
    /// Which of the states this is: the low chunk knows.
    fn function(cx: &Cx) -> Result<String> {
        let function = cx.low.get("fun").map(|fun| fun.to_string());
        function.ok_or_else(|| Error::failed("the state does not know its own name"))
    }
}

impl State for Sync {
    type Seen = String;

    const REPEATS: bool = true;

    fn observe(&self, cx: &Cx) -> Result<String> {
        Self::function(cx)
    }

    fn plan(&self, function: &String) -> Result<Plan> {
        let pending = format!("saltutil.{function} would have been run");
        Ok(Plan::unknown().pending(pending))
    }

    fn apply(&self, cx: &Cx, function: String) -> Result<Applied> {
        let known = ["refresh", "saltenv", "extmod_whitelist", "extmod_blacklist"];
        let kwargs = Dict::new();
        for name in known {
            if let Some(value) = self.kwargs.kwargs.get(name) {
                kwargs.insert(name, value);
            }
        }
        let ret = cx.call(&format!("saltutil.{function}"), Call { args: Vec::new(), kwargs })?;
        let kind = function.strip_prefix("sync_").unwrap_or(&function);
        let changes = Dict::new();
        match &ret {
            Value::Dict(kinds) => {
                for (kind, names) in kinds {
                    if names.truthy() {
                        changes.insert(kind, names);
                    }
                }
            }
            names if names.truthy() => {
                changes.insert(kind, names);
            }
            _ => {}
        }
        let comment = match (changes.is_empty(), kind) {
            (true, _) => "No updates to sync".to_owned(),
            (false, "all") => "Sync performed".to_owned(),
            (false, kind) => format!("Updated {kind}."),
        };
        Ok(Applied::changes(changes).comment(comment))
    }
}
