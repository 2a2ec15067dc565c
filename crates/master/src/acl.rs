//! Who may run what where: Salt's lists of permissions.
//!
//! A list holds functions (regular expressions, allowed everywhere), `{target: functions}` and, for
//! runners and wheel, `@runner`, `@wheel`, `@module` or `{'@…': functions}`. A function may be
//! `{function: {args: […], kwargs: {…}}}`. What no entry allows is refused.

use halite_target::Regex;
use halite_value::{Dict, SmolStr, Value};

use crate::admission::fits;

/// A job as permissions see it.
pub struct Asked<'a> {
    pub functions: Vec<(SmolStr, Vec<Value>)>,
    /// The minions it would reach.
    pub minions: &'a [SmolStr],
}

/// Resolves a compound target to ids.
pub type Resolve<'a> = &'a dyn Fn(&str) -> Vec<SmolStr>;

/// Tells whether a list allows a job.
pub fn allows(list: &[Value], asked: &Asked<'_>, resolve: Resolve<'_>) -> bool {
    !asked.functions.is_empty()
        && asked.functions.iter().all(|(function, args)| {
            // Asking whether a job still runs is never forbidden.
            function == "saltutil.find_job"
                || list
                    .iter()
                    .any(|entry| allows_one(entry, function, args, asked.minions, resolve))
        })
}

fn allows_one(
    entry: &Value,
    function: &str,
    args: &[Value],
    minions: &[SmolStr],
    resolve: Resolve<'_>,
) -> bool {
    match entry {
        Value::Str(pattern) => !pattern.starts_with('@') && begins(pattern, function),
        Value::Dict(map) if map.len() == 1 => map.into_iter().any(|(target, functions)| {
            let target = target.to_str();
            covers(&target, minions, resolve) && function_fits(&functions, function, args)
        }),
        _ => false,
    }
}

/// Tells whether a target holds all these minions. «Nobody» is held by no target.
fn covers(target: &str, minions: &[SmolStr], resolve: Resolve<'_>) -> bool {
    if target == "*" {
        return true;
    }
    if target.starts_with('@') || minions.is_empty() {
        return false;
    }
    let held = resolve(target);
    minions.iter().all(|minion| held.contains(minion))
}

/// Tells whether a list allows a runner or wheel function (`form`).
pub fn allows_special(
    list: &[Value],
    form: &str,
    function: &str,
    args: &[Value],
    kwargs: &Dict,
) -> bool {
    let Some((module, name)) = function.split_once('.') else { return false };
    let means_form = |word: &str| word == form || word.strip_suffix('s') == Some(form);
    list.iter().any(|entry| match entry {
        Value::Str(text) => {
            text.strip_prefix('@').is_some_and(|word| word == module || means_form(word))
        }
        Value::Dict(map) if map.len() == 1 => map.into_iter().any(|(key, functions)| {
            let key = key.to_str();
            let Some(word) = key.strip_prefix('@') else { return false };
            let all = with_kwargs(args, kwargs);
            (word == module && function_fits(&functions, name, &all))
                || (means_form(word) && function_fits(&functions, function, &all))
        }),
        _ => false,
    })
}

fn with_kwargs(args: &[Value], kwargs: &Dict) -> Vec<Value> {
    let mut all = args.to_vec();
    if !kwargs.is_empty() {
        let marked = kwargs.shallow_copy();
        marked.insert("__kwarg__", true);
        all.push(marked.into());
    }
    all
}

fn function_fits(conditions: &Value, function: &str, args: &[Value]) -> bool {
    each(conditions).iter().any(|condition| match condition {
        Value::Str(pattern) => begins(pattern, function),
        Value::Dict(map) if map.len() == 1 => map.into_iter().any(|(pattern, wanted)| {
            begins(&pattern.to_str(), function) && args_fit(&wanted, args)
        }),
        _ => false,
    })
}

fn args_fit(conditions: &Value, args: &[Value]) -> bool {
    let call = halite_wire::Args::read(args);
    let fits = |wanted: &Value, given: Option<&Value>| match (wanted, given) {
        (_, None) => false,
        (Value::Null, Some(_)) => true,
        (wanted, Some(given)) => begins(&wanted.to_str(), &given.to_str()),
    };
    each(conditions).iter().any(|condition| {
        let Value::Dict(condition) = condition else { return false };
        let args = condition.get("args").map(|args| each(&args)).unwrap_or_default();
        let kwargs = match condition.get("kwargs") {
            Some(Value::Dict(kwargs)) => kwargs,
            _ => Dict::new(),
        };
        args.iter().enumerate().all(|(at, wanted)| fits(wanted, call.args.get(at)))
            && kwargs
                .into_iter()
                .all(|(name, wanted)| fits(&wanted, call.kwargs.get(&name).as_ref()))
    })
}

fn each(value: &Value) -> Vec<Value> {
    value.items_of_sequence().unwrap_or_else(|| vec![value.clone()])
}

/// Python's `re.match`: the expression fits the beginning.
fn begins(pattern: &str, text: &str) -> bool {
    Regex::new(pattern).is_ok_and(|regex| regex.matches(text))
}

/// Returns the permissions of a user: those under expressions that fit the name, and those of the
/// user's groups (`group%`); `*` only if nothing else fits, unless `permissive`.
pub fn list_for(config: &Dict, name: &str, groups: &[SmolStr], permissive: bool) -> Vec<Value> {
    let mut list = Vec::new();
    let mut named = false;
    for (key, entries) in config {
        let key = key.to_str();
        if key == "*" && !permissive {
            continue;
        }
        if let Some(group) = key.strip_suffix('%') {
            if groups.iter().any(|own| own == group) {
                list.extend(each(&entries));
            }
        } else if fits(name, &key) {
            named = true;
            list.extend(each(&entries));
        }
    }
    if !permissive
        && !named
        && let Some(entries) = config.get("*")
    {
        list.extend(each(&entries));
    }
    list
}

/// Returns what `publisher_acl` allows a local user; everything under any expression that fits.
pub fn publisher_list(config: &Dict, user: &str) -> Vec<Value> {
    config
        .into_iter()
        .filter(|(key, _)| fits(user, &key.to_str()))
        .flat_map(|(_, entries)| each(&entries))
        .collect()
}

/// Tells whether `publisher_acl_blacklist` names the user or one of the functions.
pub fn is_blacklisted(config: &Dict, user: &str, functions: &[SmolStr]) -> bool {
    let names = |name: &str| config.get(name).map(|list| each(&list)).unwrap_or_default();
    let hit = |list: &[Value], text: &str| list.iter().any(|entry| fits(text, &entry.to_str()));
    hit(&names("users"), user) || functions.iter().any(|function| hit(&names("modules"), function))
}

#[cfg(test)]
mod tests {
    use halite_value::{dict, entries, list};

    use super::*;

    fn may(list: &Value, function: &str, args: &[Value], minions: &[&str]) -> bool {
        let minions: Vec<SmolStr> = minions.iter().map(SmolStr::new).collect();
        let asked = Asked { functions: vec![(function.into(), args.to_vec())], minions: &minions };
        let resolve = |target: &str| match target {
            "web*" => vec!["web1".into(), "web2".into()],
            _ => Vec::new(),
        };
        allows(&list.items_of_sequence().unwrap(), &asked, &resolve)
    }

    #[test]
    fn functions_targets_and_arguments() {
        let acl = list![
            "test\\..*",
            dict! { "web*" => list!["pkg.install", dict! {
                "file.remove" => dict! { "args" => list!["/tmp/.*"] },
            }] }
        ];
        assert!(may(&acl, "test.ping", &[], &["db1"]));
        assert!(!may(&acl, "pkg.install", &[], &["db1"]));
        assert!(may(&acl, "pkg.install", &[], &["web1"]));
        assert!(!may(&acl, "pkg.install", &[], &["web1", "db1"]));
        assert!(!may(&acl, "pkg.install", &[], &[]), "nobody is not everybody");
        assert!(may(&acl, "file.remove", &["/tmp/x".into()], &["web1"]));
        assert!(!may(&acl, "file.remove", &["/etc/x".into()], &["web1"]));
        assert!(!may(&acl, "file.remove", &[], &["web1"]));
        assert!(may(&list![], "saltutil.find_job", &[], &["db1"]));
        assert!(!may(&list![], "test.ping", &[], &["db1"]));
        assert!(!may(&list!["@runner"], "@runner", &[], &["web1"]));
        assert!(!may(&list!["("], "test.ping", &[], &["web1"]), "no expression, no permission");
    }

    #[test]
    fn runners_and_wheel() {
        let none = Dict::new();
        let may = |list: &Value, form: &str, function: &str| {
            allows_special(&list.items_of_sequence().unwrap(), form, function, &[], &none)
        };
        assert!(may(&list!["@runner"], "runner", "jobs.active"));
        assert!(may(&list!["@runners"], "runner", "jobs.active"));
        assert!(!may(&list!["@runner"], "wheel", "key.list_all"));
        assert!(may(&list!["@jobs"], "runner", "jobs.active"));
        assert!(may(&list![dict! { "@jobs" => list!["active"] }], "runner", "jobs.active"));
        assert!(!may(&list![dict! { "@jobs" => list!["list"] }], "runner", "jobs.active"));
        assert!(may(&list![dict! { "@wheel" => "key\\.list.*" }], "wheel", "key.list_all"));
        assert!(!may(&list![".*"], "wheel", "key.accept"));
        assert!(!may(&list!["@wheel"], "wheel", "nodot"));
    }

    #[test]
    fn users_groups_and_the_rest() {
        let config = entries! {
            "ann" => list!["a"], "admins%" => list!["g"], "*" => list!["all"],
        };
        let of = |name: &str, groups: &[&str], permissive| {
            let groups: Vec<SmolStr> = groups.iter().map(SmolStr::new).collect();
            Value::from(list_for(&config, name, &groups, permissive))
        };
        assert_eq!(of("ann", &[], false), list!["a"]);
        assert_eq!(of("bob", &[], false), list!["all"]);
        assert_eq!(of("ann", &["admins"], true), list!["a", "g", "all"]);
        let black = entries! { "users" => list!["root?"], "modules" => list!["cmd.*"] };
        assert!(is_blacklisted(&black, "root1", &[]));
        assert!(is_blacklisted(&black, "ann", &["cmd.run".into()]));
        assert!(!is_blacklisted(&black, "ann", &["test.ping".into()]));
    }
}
