//! The `account` rules of a PAM service, as far as they can be judged without PAM.
//!
//! `/etc/pam.d/<service>` (`auth.pam.service`, preset `login`) is read with its includes and walked as
//! PAM walks it: `required`, `requisite`, `sufficient`, `optional`, and actions in brackets with
//! their jumps. Known are `pam_unix` (asked before we get here), `pam_permit`, `pam_deny`, `pam_nologin`,
//! `pam_rootok` and `pam_listfile` for users. Rules that exist to keep people out and need PAM to be
//! judged (`pam_access`, `pam_time`, `pam_wheel`) keep everybody out when they are required; any other
//! module has no say, which is logged (`docs/decisions/0015-pam-account-rules.md`).

use std::path::Path;

/// How deep files may include each other.
const DEEP: usize = 8;

/// What a module says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    Success,
    Failure,
    Nothing,
}

/// What follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Ignore,
    Ok,
    Done,
    Bad,
    Die,
    Jump(usize),
}

#[derive(Clone, Copy, Debug)]
struct Rule<'a> {
    success: Then,
    failure: Then,
    module: &'a str,
    args: &'a str,
}

/// Tells whether a user may have an account by the rules of a service. Without a file everybody may.
pub(crate) fn allow(root: &Path, service: &str, user: &str, uid: u32) -> bool {
    if service.is_empty() || service.contains('/') || service.starts_with('.') {
        tracing::error!("eauth `pam`: `{service}` is no name of a PAM service");
        return false;
    }
    let text = stack(root, service, DEEP);
    let rules: Vec<Rule<'_>> = text.lines().filter_map(rule).collect();
    // A stack without an opinion is none: the password and the dates were right.
    let (mut bad, mut at) = (false, 0);
    while let Some(rule) = rules.get(at) {
        at += 1;
        let then = match judge(root, rule, user, uid) {
            Says::Success => rule.success,
            Says::Failure => rule.failure,
            Says::Nothing => continue,
        };
        match then {
            Then::Ignore | Then::Ok => {}
            Then::Done if bad => {}
            Then::Done => return true,
            Then::Bad => bad = true,
            Then::Die => return false,
            Then::Jump(count) => at += count,
        }
    }
    !bad
}

/// Returns the account lines of a service, those of included files in their place.
fn stack(root: &Path, service: &str, deep: usize) -> String {
    let path = root.join("etc/pam.d").join(service);
    let Ok(text) = std::fs::read_to_string(&path) else { return String::new() };
    let mut all = String::new();
    for line in text.replace("\\\n", " ").lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        let include = match first.trim_start_matches('-') {
            "@include" => words.next(),
            "account" => match words.next() {
                Some("include" | "substack") => words.next(),
                _ => {
                    all.push_str(line);
                    all.push('\n');
                    None
                }
            },
            _ => None,
        };
        let plain = |name: &&str| !name.contains('/') && !name.starts_with('.');
        if let Some(name) = include.filter(plain)
            && deep > 0
        {
            all.push_str(&stack(root, name, deep - 1));
        }
    }
    all
}

/// Reads `account <control> <module> <arguments>`.
fn rule(line: &str) -> Option<Rule<'_>> {
    let rest = line.split_once(char::is_whitespace)?.1.trim_start();
    let (control, rest) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
    };
    let (path, args) = rest.trim().split_once(char::is_whitespace).unwrap_or((rest.trim(), ""));
    let file = path.rsplit('/').next().unwrap_or(path);
    let module = file.strip_suffix(".so").unwrap_or(file);
    let (success, failure) = match control {
        "required" => (Then::Ok, Then::Bad),
        "requisite" => (Then::Ok, Then::Die),
        "sufficient" => (Then::Done, Then::Ignore),
        "optional" => (Then::Ok, Then::Ignore),
        actions => {
            let action = |name: &str| {
                let found = actions.split_whitespace().find_map(|one| one.strip_prefix(name));
                found.and_then(|one| one.strip_prefix('=')).map(then)
            };
            let preset = action("default").unwrap_or(Then::Bad);
            (action("success").unwrap_or(preset), preset)
        }
    };
    Some(Rule { success, failure, module, args })
}

fn then(word: &str) -> Then {
    match word {
        "ignore" => Then::Ignore,
        "ok" => Then::Ok,
        "done" => Then::Done,
        "die" => Then::Die,
        number => number.parse().map_or(Then::Bad, Then::Jump),
    }
}

fn judge(root: &Path, rule: &Rule<'_>, user: &str, uid: u32) -> Says {
    let says = |good: bool| if good { Says::Success } else { Says::Failure };
    match rule.module {
        "pam_unix" | "pam_permit" => Says::Success,
        "pam_deny" => Says::Failure,
        "pam_rootok" => says(uid == 0),
        "pam_nologin" => {
            let closed = ["etc/nologin", "var/run/nologin", "run/nologin"];
            says(uid == 0 || !closed.iter().any(|file| root.join(file).exists()))
        }
        "pam_listfile" => says(listed(root, rule.args, user)),
        module @ ("pam_access" | "pam_time" | "pam_wheel") => {
            tracing::error!(
                "eauth `pam`: the rule {module} cannot be judged without PAM, and so counts against {user}"
            );
            Says::Failure
        }
        module => {
            tracing::debug!("eauth `pam`: the rule {module} is left out");
            Says::Nothing
        }
    }
}

fn listed(root: &Path, args: &str, user: &str) -> bool {
    let option = |name: &str| {
        args.split_whitespace().find_map(|arg| arg.strip_prefix(name)?.strip_prefix('='))
    };
    let (Some(file), Some("user")) = (option("file"), option("item")) else { return false };
    let text = std::fs::read_to_string(root.join(file.trim_start_matches('/')));
    match (text, option("sense")) {
        (Ok(text), Some("allow")) => text.lines().any(|line| line.trim() == user),
        (Ok(text), Some("deny")) => !text.lines().any(|line| line.trim() == user),
        (Err(_), _) => option("onerr") == Some("succeed"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)], uid: u32, expected: bool) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        assert_eq!(allow(dir.path(), "login", "ann", uid), expected, "{files:?}");
    }

    const DEBIAN: &str = "account [success=1 new_authtok_reqd=done default=ignore] pam_unix.so\n\
                          account requisite pam_deny.so\naccount required pam_permit.so\n";

    #[test]
    fn no_rules_forbid_nothing() {
        check(&[], 1000, true);
        check(
            &[("etc/pam.d/login", "auth required pam_deny.so\n# account required pam_deny\n")],
            1,
            true,
        );
    }

    #[test]
    fn jumps_are_taken() {
        check(&[("etc/pam.d/login", DEBIAN)], 1000, true);
        check(&[("etc/pam.d/login", "account requisite pam_deny.so\n")], 1000, false);
        let rules = "@include common-account\n";
        check(&[("etc/pam.d/login", rules), ("etc/pam.d/common-account", DEBIAN)], 1000, true);
        let denied = "account required pam_deny.so\naccount sufficient pam_permit.so\n";
        check(&[("etc/pam.d/login", denied)], 1000, false);
        let first = "account sufficient pam_permit.so\naccount required pam_deny.so\n";
        check(&[("etc/pam.d/login", first)], 1000, true);
    }

    #[test]
    fn a_closed_machine_is_closed_to_all_but_root() {
        let rules = "account required pam_nologin.so\naccount include system-auth\n";
        let files =
            [("etc/pam.d/login", rules), ("etc/pam.d/system-auth", "account required pam_unix.so")];
        check(&files, 1000, true);
        let closed = [files[0], files[1], ("etc/nologin", "")];
        check(&closed, 1000, false);
        check(&closed, 0, true);
    }

    #[test]
    fn lists_and_what_cannot_be_judged() {
        let rule = "account required pam_listfile.so item=user sense=allow file=/etc/users\n";
        check(&[("etc/pam.d/login", rule), ("etc/users", "bob\nann\n")], 1000, true);
        check(&[("etc/pam.d/login", rule), ("etc/users", "bob\n")], 1000, false);
        check(&[("etc/pam.d/login", rule)], 1000, false);
        check(&[("etc/pam.d/login", "account required pam_access.so\n")], 1000, false);
        check(&[("etc/pam.d/login", "account optional pam_access.so\n")], 1000, true);
        check(&[("etc/pam.d/login", "account required pam_sss.so\n")], 1000, true);
        // A file that includes itself ends.
        check(&[("etc/pam.d/login", "@include login\naccount required pam_permit.so\n")], 1, true);
    }

    #[test]
    fn a_service_is_a_name() {
        for name in ["", "../x", ".hidden", "a/b"] {
            assert!(!allow(Path::new("/"), name, "root", 0), "{name}");
        }
    }
}
