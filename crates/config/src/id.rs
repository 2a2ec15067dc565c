//! The minion id: from the files, from the remembered one, or from the machine's names.

use halite_value::Value;

use crate::{Error, Machine, Opts, paths};

/// The id, and whether it is nothing but an address (which then gets no domain).
pub(crate) struct Id {
    pub(crate) name: String,
    pub(crate) is_address: bool,
}

/// Returns the id of a machine whose configuration names none.
///
/// Salt looks for the remembered id below `root_dir`, at the *default* configuration folder, even
/// when `-c` names another.
pub(crate) fn find(opts: &Opts, machine: &dyn Machine, remember: bool) -> Result<Id, Error> {
    let root = opts.opt_str("root_dir").unwrap_or_else(|| "/".into());
    let file = paths::os_join(&root, "etc/salt/minion_id");
    let caching = opts.get("minion_id_caching").is_none_or(|value| value.truthy());
    if caching && let Some(name) = remembered(&file, machine) {
        return Ok(Id { name, is_address: false });
    }
    if opts.bool("id_function") {
        return Err(Error::Invalid {
            option: "id_function",
            message: "id_function is not supported yet: set `id` instead".into(),
        });
    }
    let mut name = generated(machine);
    if opts.bool("minion_id_lowercase") {
        name = name.to_lowercase();
    }
    if let Some(domain) = opts.get("minion_id_remove_domain").filter(Value::truthy) {
        name = without_domain(&name, &domain);
    }
    if remember && caching {
        // A read-only configuration folder is no reason to stop: the id is found again next time.
        let _ = machine.write(&file, &name);
    }
    let is_address = name.parse::<std::net::Ipv4Addr>().is_ok();
    Ok(Id { name, is_address })
}

fn remembered(file: &str, machine: &dyn Machine) -> Option<String> {
    let bytes = machine.read(file).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    // differs: Salt keeps a UTF-8 byte order mark as part of the id.
    let name = text.trim_start_matches('\u{feff}').lines().next().unwrap_or_default().trim();
    (!name.is_empty() && name != "localhost").then(|| name.into())
}

fn generated(machine: &dyn Machine) -> String {
    machine
        .host_names()
        .find(|name| !name.is_empty() && !means_any_machine(name))
        .unwrap_or_else(|| "localhost".into())
}

/// Tells whether a name says nothing about which machine it is.
fn means_any_machine(name: &str) -> bool {
    const STARTS: [&str; 7] = ["localhost", "ip6-", "0.0.0.0", "::1", "ipv6-", "fe00::", "fe02::"];
    STARTS.iter().any(|start| name.starts_with(start))
        || name.strip_prefix("127.").is_some_and(|rest| rest.starts_with(|c: char| c.is_numeric()))
        || (name.starts_with("1.0.0") && name.contains("ip6.arpa"))
}

fn without_domain(name: &str, domain: &Value) -> String {
    match domain {
        Value::Bool(true) => name.split('.').next().unwrap_or(name).into(),
        Value::Str(domain) => {
            let tail = format!(".{domain}");
            match name.len().checked_sub(tail.len()).and_then(|at| name.split_at_checked(at)) {
                Some((head, end)) if end.to_uppercase() == tail.to_uppercase() => head.into(),
                _ => name.into(),
            }
        }
        _ => name.into(),
    }
}

/// Adds `append_domain` to an id that lacks it.
pub(crate) fn with_domain(id: &str, domain: &str) -> String {
    // A trailing dot ends a fully qualified name.
    if id.ends_with(domain) || id.ends_with('.') { id.into() } else { format!("{id}.{domain}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_meaning() {
        for name in ["localhost", "localhost.localdomain", "127.0.1.1", "ip6-loopback", "::1"] {
            assert!(means_any_machine(name), "{name}");
        }
        for name in ["web1", "128.0.0.1", "local", "127.x"] {
            assert!(!means_any_machine(name), "{name}");
        }
    }

    #[test]
    fn domains() {
        assert_eq!(without_domain("a.b.c", &true.into()), "a");
        assert_eq!(without_domain("a.B.c", &"b.C".into()), "a");
        assert_eq!(without_domain("a.b.c", &"x.c".into()), "a.b.c");
        assert_eq!(with_domain("a", "b.c"), "a.b.c");
        assert_eq!(with_domain("a.b.c", "b.c"), "a.b.c");
        assert_eq!(with_domain("a.", "b.c"), "a.");
    }
}
