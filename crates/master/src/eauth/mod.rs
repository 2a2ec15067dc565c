//! External authentication: is this user who they say they are?
//!
//! A system is used only if `external_auth` names it. `auto` believes everybody (for tests, as in
//! Salt), `sharedsecret` compares with the option of that name, `file` looks the user up in a
//! file of passwords, `pam` asks `unix_chkpwd`, `ldap` a directory and `rest` a web service (files of
//! their own). Others come through [`Authenticator`]s given at start.
//!
//! `pam` here is PAM's own password checker, the program `pam_unix` uses: it knows every hash the
//! system's libcrypt knows, and locked and expired accounts, and it runs in a process of its own.
//! Accounts that live in LDAP or SSSD are not found by it. Only root may ask it about others
//! (`docs/decisions/0010-pam-by-unix_chkpwd.md`). The account rules of the PAM service are judged as far
//! as that is possible without PAM (`pam_rules.rs`).

mod ldap;
mod rest;

use std::{
    collections::HashMap,
    ffi::CString,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

use halite_crypt::{Hash, same};
use halite_value::{Dict, SmolStr, Value};

use crate::{Settings, pam_rules};

/// Checks credentials of one system. Called on blocking threads.
pub trait Authenticator: Send + Sync {
    /// Tells whether the credentials are good.
    fn check(&self, settings: &Settings, fields: &Dict) -> bool;

    /// Tells whether the account may still be used: asked again whenever a token is.
    fn is_alive(&self, _settings: &Settings, _user: &str) -> bool {
        true
    }

    /// Returns the groups of a user who was checked.
    fn groups(&self, _settings: &Settings, _fields: &Dict) -> Vec<SmolStr> {
        Vec::new()
    }

    /// Returns what a user may do, if the system itself knows; else the configuration says so.
    /// Of somebody who came with a token only the name is known.
    fn acl(&self, _settings: &Settings, _fields: &Dict) -> Option<Vec<Value>> {
        None
    }

    /// Replaces what only this system understands in the permissions the configuration gives.
    fn expand(&self, _settings: &Settings, list: Vec<Value>) -> Vec<Value> {
        list
    }
}

/// The known systems by name.
pub type Systems = HashMap<SmolStr, Box<dyn Authenticator>>;

/// Returns the systems that are built in.
pub fn built_in() -> Systems {
    let mut systems: Systems = HashMap::new();
    systems.insert("auto".into(), Box::new(Auto));
    systems.insert("sharedsecret".into(), Box::new(SharedSecret));
    systems.insert("file".into(), Box::new(PasswordFile));
    systems.insert("pam".into(), Box::new(Pam));
    systems.insert("ldap".into(), Box::new(ldap::Ldap));
    systems.insert("rest".into(), Box::new(rest::Rest));
    systems
}

struct Auto;

impl Authenticator for Auto {
    fn check(&self, _: &Settings, fields: &Dict) -> bool {
        text(fields, "username").is_some_and(|name| !name.is_empty())
    }
}

struct SharedSecret;

impl Authenticator for SharedSecret {
    fn check(&self, settings: &Settings, fields: &Dict) -> bool {
        let Some(secret) = settings.opts.opt_str("sharedsecret") else { return false };
        let given = text(fields, "sharedsecret").or_else(|| text(fields, "password"));
        text(fields, "username").is_some_and(|name| !name.is_empty())
            && given.is_some_and(|given| same(given.as_bytes(), secret.as_bytes()))
    }
}

/// Salt's `file`: lines of `name:password`, with `^filename` and `^hashtype` beside the users.
struct PasswordFile;

impl Authenticator for PasswordFile {
    fn check(&self, settings: &Settings, fields: &Dict) -> bool {
        let (Some(name), Some(password)) = (text(fields, "username"), text(fields, "password"))
        else {
            return false;
        };
        let Some(Value::Dict(config)) = settings.opts.dict("external_auth").get("file") else {
            return false;
        };
        let option = |name: &str, default: &str| {
            config.get(name).map_or_else(|| default.into(), |value| value.to_str())
        };
        let file = option("^filename", "");
        let kind = option("^hashtype", "plaintext");
        let separator = option("^field_separator", ":");
        if name.is_empty() || file.is_empty() {
            return false;
        }
        let Ok(content) = std::fs::read_to_string(file.as_str()) else {
            tracing::error!("eauth `file`: {file} cannot be read");
            return false;
        };
        let stored = content.lines().find_map(|line| {
            let (user, rest) = line.split_once(separator.as_str())?;
            (user == name).then(|| rest.split(separator.as_str()).next().unwrap_or_default())
        });
        let Some(stored) = stored else { return false };
        match kind.as_str() {
            "plaintext" => same(stored.as_bytes(), password.as_bytes()),
            hash => match hash.parse::<Hash>() {
                Ok(hash) => same(stored.as_bytes(), hash.hex(password.as_bytes()).as_bytes()),
                Err(_) => {
                    tracing::error!("eauth `file`: the hash type {kind} is not supported");
                    false
                }
            },
        }
    }
}

/// The system's accounts.
struct Pam;

/// Where the checker may be.
const CHECKERS: [&str; 3] = ["/usr/sbin/unix_chkpwd", "/sbin/unix_chkpwd", "/usr/bin/unix_chkpwd"];

impl Pam {
    /// Runs the checker: `nonull` compares the password, `chkexpiry` looks at the account's dates.
    fn asks(user: &str, what: &str, password: &str) -> bool {
        let Some(checker) = CHECKERS.iter().find(|path| Path::new(path).exists()) else {
            tracing::error!("eauth `pam`: unix_chkpwd is not installed");
            return false;
        };
        let child = Command::new(checker)
            .args([user, what])
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut child = match child {
            Ok(child) => child,
            Err(error) => {
                tracing::error!("eauth `pam`: {checker}: {error}");
                return false;
            }
        };
        if let Some(mut stdin) = child.stdin.take() {
            // One that has ended early has its answer already.
            let _ = stdin.write_all(password.as_bytes()).and_then(|()| stdin.write_all(b"\0"));
        }
        child.wait().is_ok_and(|status| status.success())
    }

    fn account(user: &str) -> Option<nix::unistd::User> {
        // A name that could be an option, or is none at all, is no account.
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-$@".contains(&byte);
        if user.is_empty() || user.starts_with('-') || !user.bytes().all(plain) {
            return None;
        }
        nix::unistd::User::from_name(user).ok().flatten()
    }
}

impl Authenticator for Pam {
    fn check(&self, settings: &Settings, fields: &Dict) -> bool {
        let (Some(name), Some(password)) = (text(fields, "username"), text(fields, "password"))
        else {
            return false;
        };
        // An account without a password is not one for the network.
        !password.is_empty()
            && !password.contains('\0')
            && Self::account(&name).is_some()
            && Self::asks(&name, "nonull", &password)
            && self.is_alive(settings, &name)
    }

    fn is_alive(&self, settings: &Settings, user: &str) -> bool {
        let Some(account) = Self::account(user) else { return false };
        let service = settings.opts.opt_str("auth.pam.service").unwrap_or_else(|| "login".into());
        Self::asks(user, "chkexpiry", "")
            && !is_locked(user)
            && pam_rules::allow(Path::new("/"), &service, user, account.uid.as_raw())
    }

    fn groups(&self, _: &Settings, fields: &Dict) -> Vec<SmolStr> {
        let user = text(fields, "username").unwrap_or_default();
        let Some(account) = Self::account(&user) else { return Vec::new() };
        let Ok(name) = CString::new(user.as_str()) else { return Vec::new() };
        let ids = nix::unistd::getgrouplist(&name, account.gid).unwrap_or_default();
        ids.into_iter()
            .filter_map(|id| nix::unistd::Group::from_gid(id).ok().flatten())
            .map(|group| group.name.into())
            .collect()
    }
}

/// A password that was locked (`usermod -L`): nobody could sign in with it now.
fn is_locked(user: &str) -> bool {
    let shadow = std::fs::read_to_string("/etc/shadow").unwrap_or_default();
    shadow.lines().any(|line| {
        let mut fields = line.split(':');
        fields.next() == Some(user) && fields.next().is_some_and(|hash| hash.starts_with('!'))
    })
}

fn text(fields: &Dict, name: &str) -> Option<SmolStr> {
    match fields.get(name) {
        Some(Value::Str(text)) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use halite_config::{Opts, Role};
    use halite_value::{dict, entries};

    use super::*;

    #[test]
    fn passwords_are_checked() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pw");
        std::fs::write(&file, "ann:secret\nbob:x:y\n").unwrap();
        let opts = entries! {
            "sharedsecret" => "s3", "transport" => "zeromq", "publish_port" => 1, "ret_port" => 2,
            "external_auth" => dict! { "file" => dict! { "^filename" => file.to_str().unwrap() } },
        };
        let settings = Settings::from_opts(&Opts::new(Role::Master, opts)).unwrap();
        let systems = built_in();
        let check = |system: &str, fields: Dict| systems[system].check(&settings, &fields);
        let user = |name: &str, password: &str| {
            entries! { "username" => name, "password" => password }
        };
        assert!(check("file", user("ann", "secret")) && check("file", user("bob", "x")));
        for (name, password) in [("ann", ""), ("ann", "x"), ("", ""), ("eve", "secret")] {
            assert!(!check("file", user(name, password)), "{name}");
        }
        assert!(!check("file", entries! { "username" => "ann" }));
        assert!(check("sharedsecret", user("x", "s3")) && !check("sharedsecret", user("x", "")));
        assert!(!check("sharedsecret", user("", "s3")));
    }
}
