//! External authentication: is this user who they say they are?
//!
//! A system is used only if `external_auth` names it. `auto` believes everybody (for tests, as in
//! Salt), `sharedsecret` compares with the option of that name, `file` looks the user up in a
//! file of passwords. `pam` and others come through [`Authenticator`]s given at start.

use std::collections::HashMap;

use halite_crypt::{Hash, same};
use halite_value::{Dict, SmolStr, Value};

use crate::Settings;

/// Checks credentials of one system. Called on blocking threads.
pub trait Authenticator: Send + Sync {
    /// Tells whether the credentials are good.
    fn check(&self, settings: &Settings, fields: &Dict) -> bool;

    /// Returns the groups of a user who was checked.
    fn groups(&self, _settings: &Settings, _user: &str) -> Vec<SmolStr> {
        Vec::new()
    }
}

/// The known systems by name.
pub type Systems = HashMap<&'static str, Box<dyn Authenticator>>;

/// Returns the systems that are built in.
pub fn built_in() -> Systems {
    let mut systems: Systems = HashMap::new();
    systems.insert("auto", Box::new(Auto));
    systems.insert("sharedsecret", Box::new(SharedSecret));
    systems.insert("file", Box::new(PasswordFile));
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
