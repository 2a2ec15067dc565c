//! Execution modules that a minion is told not to have: `disable_modules`, `whitelist_modules`.
//!
//! Salt names the ones to disable by their file (`cmdmod`), and the ones to keep by the word that
//! functions begin with (`cmd`). Either word is understood for both: whoever wrote `cmd` among the
//! disabled meant `cmd`.

use halite_spec::Cx;
use halite_value::{SmolStr, Value};

/// Files of Salt whose functions begin with another word than the file's name.
const FILES: &[(&str, &[&str])] = &[
    ("acl", &["linux_acl"]),
    ("cmd", &["cmdmod"]),
    ("group", &["groupadd"]),
    ("ip", &["debian_ip", "rh_ip"]),
    ("locale", &["localemod"]),
    ("lowpkg", &["dpkg_lowpkg", "rpm_lowpkg"]),
    ("lvm", &["linux_lvm"]),
    ("pkg", &["aptpkg", "yumpkg", "zypperpkg", "pacmanpkg", "apkpkg"]),
    ("random", &["mod_random"]),
    ("service", &["systemd_service", "debian_service", "rh_service", "gentoo_service", "openrc"]),
    ("shadow", &["linux_shadow"]),
    ("sys", &["sysmod"]),
    ("sysctl", &["linux_sysctl"]),
    ("user", &["useradd"]),
    ("virtualenv", &["virtualenv_mod"]),
];

fn texts(value: Option<Value>) -> Vec<SmolStr> {
    let Some(value) = value.filter(Value::truthy) else { return Vec::new() };
    let items = value.items_of_sequence().unwrap_or_else(|| vec![value]);
    items.iter().map(Value::to_str).collect()
}

/// A module by every word it is known by.
fn named(function: &str) -> impl Fn(&SmolStr) -> bool {
    let module = function.split('.').next().unwrap_or(function);
    let files = FILES.iter().find(|(name, _)| *name == module).map_or(&[][..], |(_, files)| files);
    move |name| name == module || files.contains(&name.as_str())
}

/// Tells whether the configuration bars a function from jobs and templates.
pub(crate) fn is_barred(cx: &Cx, function: &str) -> bool {
    let allowed = texts(cx.opt("whitelist_modules"));
    if !allowed.is_empty() && !allowed.iter().any(named(function)) {
        let shown = Value::list(&allowed).repr();
        let module = function.split('.').next().unwrap_or(function);
        tracing::error!(
            "Failed to load function {function} because its module ({module}) is not in the whitelist: {shown}"
        );
        return true;
    }
    is_disabled(cx, function)
}

/// Tells whether the configuration takes a function away from everybody. What is merely not on the
/// list is there for the modules that are: a module of the user's may call it.
pub(crate) fn is_disabled(cx: &Cx, function: &str) -> bool {
    texts(cx.opt("disable_modules")).iter().any(named(function))
}
