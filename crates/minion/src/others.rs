//! Functions and states that are not a minion's: what `sys` shows of returners and runners, the states
//! of orchestrations, and how a master on the same machine is asked.
//!
//! They belong to the master's side, which this crate does not know; a program that has them says so
//! once, by [`has_runners`], [`has_steps`] and [`has_master`].

use std::sync::OnceLock;

use halite_modules::sys::spec_of;
use halite_spec::{Cx, Function, Result, StateModule};
use halite_value::{Dict, Value, dict};

/// Returns all functions by name, sorted.
pub type All = fn() -> Vec<(String, &'static Function)>;

static RUNNERS: OnceLock<All> = OnceLock::new();

/// Says which runners this program has.
pub fn has_runners(all: All) {
    // The same again does no harm.
    let _ = RUNNERS.set(all);
}

static STEPS: OnceLock<&'static StateModule> = OnceLock::new();

/// Says which states of orchestrations this program has.
pub fn has_steps(module: &'static StateModule) {
    let _ = STEPS.set(module);
}

pub(crate) fn steps() -> Option<&'static StateModule> {
    STEPS.get().copied()
}

/// Asks the master on this machine; `None` if the question is not one for it.
pub type Ask = fn(&Cx, &Value) -> Option<Result<Value>>;

static MASTER: OnceLock<Ask> = OnceLock::new();

/// Says how a master on this machine is asked.
pub fn has_master(ask: Ask) {
    let _ = MASTER.set(ask);
}

pub(crate) fn ask_beside(cx: &Cx, load: &Value) -> Option<Result<Value>> {
    MASTER.get()?(cx, load)
}

pub(crate) fn runners() -> Option<Dict> {
    let all = RUNNERS.get()?();
    let about = |name: &str, function: &Function| {
        dict! { "doc" => function.help("salt-run", name), "spec" => spec_of(function.params) }
    };
    Some(all.into_iter().map(|(name, function)| (name.clone(), about(&name, function))).collect())
}

/// The functions of a returner, with the arguments genuine Salt's have.
const FUNCTIONS: [(&str, &[&str], &[Value]); 10] = [
    ("returner", &["ret"], &[]),
    ("event_return", &["events"], &[]),
    ("clean_old_jobs", &[], &[]),
    ("get_fun", &["fun"], &[]),
    ("get_jid", &["jid"], &[]),
    ("get_jids", &[], &[]),
    ("get_load", &["jid"], &[]),
    ("get_minions", &[], &[]),
    ("prep_jid", &["nocache", "passed_jid"], &[Value::Bool(false), Value::Null]),
    ("save_load", &["jid", "load", "minions"], &[Value::Null]),
];

pub(crate) fn returners() -> Dict {
    let mut all: Vec<(String, Value)> = Vec::new();
    for returner in halite_returners::ALL {
        for (function, args, defaults) in FUNCTIONS {
            let is_there = match function {
                "returner" => true,
                "event_return" => returner.events.is_some(),
                "clean_old_jobs" => returner.cache.is_some_and(|cache| cache.clean.is_some()),
                _ => returner.cache.is_some(),
            };
            if is_there {
                let spec = dict! {
                    "args" => Value::list(args.iter().copied()),
                    "defaults" => Value::list(defaults.iter().cloned()),
                };
                let about = dict! { "doc" => returner.doc, "spec" => spec };
                all.push((format!("{}.{function}", returner.name), about));
            }
        }
    }
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returners_have_what_they_can_do() {
        let all = returners();
        assert!(all.contains("mysql.get_jid") && all.contains("local.returner"));
        assert!(!all.contains("syslog.get_jid") && !all.contains("redis.event_return"));
    }
}
