//! Every native function and state takes the arguments genuine Salt's takes: the same names, in the
//! same order, with the same defaults (recorded by `data/record_argspecs.py`).
//!
//! Callers write arguments by position and by name, and tools read `sys.argspec`; a name of our own
//! would break both. What Salt's function takes among `**kwargs` may have a name here, after those
//! it shares; what differs otherwise is listed with its reason, and the list may only shrink.

use halite_minion::registry;
use halite_spec::Param;

/// Where we differ, and why.
const DIFFERS: &[(&str, &str)] = &include!("data/differs.in");

/// `a, b=None`: the arguments that `sys.argspec` lists.
fn shown(params: &[Param]) -> String {
    let named = params.iter().filter(|param| param.is_listed());
    let parts = named.map(|param| match param.default {
        Some(make) => format!("{}={}", param.name, make().repr()),
        None => param.name.to_owned(),
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// A recorded line: name, arguments, and whether the function takes others by name.
fn recorded(line: &str) -> Option<(&str, String, bool)> {
    let (name, rest) = line.split_once('(')?;
    let rest = rest.strip_suffix(')')?;
    let cut = |rest: &str, end: &str| -> Option<String> {
        let rest = rest.strip_suffix(end)?;
        Some(rest.strip_suffix(", ").unwrap_or(rest).to_owned())
    };
    let open = rest.ends_with("**kwargs");
    let rest = cut(rest, "**kwargs").unwrap_or_else(|| rest.to_owned());
    let rest = cut(&rest, "*args").unwrap_or(rest);
    // The shell of the machine it was recorded on; None means the same.
    Some((name, rest.replace("shell='/bin/bash'", "shell=None"), open))
}

/// Ours may name more than theirs, if theirs takes anything, and if nobody has to give it.
fn fits(ours: &str, theirs: &str, open: bool) -> bool {
    let more = match (theirs.is_empty(), ours.strip_prefix(theirs)) {
        (_, Some("")) => return true,
        (true, more) => more,
        (false, more) => more.and_then(|more| more.strip_prefix(", ")),
    };
    open && more.is_some_and(|more| more.split(", ").all(|arg| arg.contains('=')))
}

fn compare(
    kind: &str,
    data: &str,
    ours: impl Fn(&str) -> Option<&'static [Param]>,
) -> (usize, Vec<String>) {
    let mut count = 0;
    let mut wrong = Vec::new();
    for (name, theirs, open) in data.lines().filter_map(recorded) {
        let Some(params) = ours(name) else { continue };
        count += 1;
        let known = DIFFERS.iter().any(|(own, _)| *own == format!("{kind}{name}"));
        let ours = shown(params);
        if fits(&ours, &theirs, open) == known {
            wrong.push(format!("{name}\n    ours   ({ours})\n    theirs ({theirs})"));
        }
    }
    (count, wrong)
}

#[test]
fn functions_take_what_salts_take() {
    let (count, wrong) = compare("", include_str!("data/functions.txt"), |name| {
        registry::function(name).map(|function| function.params)
    });
    assert!(wrong.is_empty(), "{} of {count} functions:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 800, "only {count} functions compared");
}

#[test]
fn states_take_what_salts_take() {
    let (count, wrong) = compare("state ", include_str!("data/states.txt"), |name| {
        registry::state(name).map(|state| (state.params)())
    });
    assert!(wrong.is_empty(), "{} of {count} states:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 140, "only {count} states compared");
}

#[test]
fn what_differs_has_a_reason() {
    for (name, reason) in DIFFERS {
        assert!(!reason.is_empty(), "{name}");
    }
}
