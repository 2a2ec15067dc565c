//! `rabbitmq_user`: users of a RabbitMQ server.

use halite_modules::rabbitmq;
use halite_spec::{Applied, Args, Cx, Need, Plan, Result, State, states};
use halite_value::{Dict, Value, dict};

states! {
    /// Users of a RabbitMQ server.
    "rabbitmq_user", needs = [
        Need::program(&["rabbitmqctl"], "Command not found: rabbitmqctl"),
    ]: "present" => Present,
    "absent" => Absent,
}

/// Make sure that a user exists.
#[derive(Args)]
pub struct Present {
    /// The user.
    name: String,
    /// The password.
    password: Option<String>,
    /// Set the password of a user there is, even if it is the same.
    #[default(false)]
    force: bool,
    /// The tags: a list, or one.
    tags: Option<Vec<String>>,
    /// What the user may do: virtual host → [configure, write, read].
    #[default(Vec::new())]
    perms: Vec<Value>,
    /// The user to run as.
    runas: Option<String>,
}

/// A user as found.
#[derive(Default)]
pub struct Seen {
    there: bool,
    wrong_password: bool,
    tags: Vec<String>,
    perms: Dict,
}

impl Present {
    /// Virtual host → what is wanted there.
    fn wanted(&self) -> Vec<(String, Vec<String>)> {
        let entries = self.perms.iter().filter_map(Value::as_dict).flatten();
        entries
            .map(|(vhost, rights)| {
                let rights = rights.items_of_sequence().unwrap_or_default();
                (vhost.to_string(), rights.iter().map(Value::to_string).collect())
            })
            .collect()
    }

    fn missing(&self, seen: &Seen) -> Vec<(String, Vec<String>)> {
        let mut wanted = self.wanted();
        wanted.retain(|(vhost, rights)| {
            let own = seen.perms.get(vhost.as_str());
            let own = |key: &str| own.as_ref().and_then(|own| own.get_str(key));
            let own = [own("configure"), own("write"), own("read")];
            own.iter().zip(rights).any(|(own, wanted)| own.as_deref() != Some(wanted))
        });
        wanted
    }

    fn wrong_tags(&self, seen: &Seen) -> bool {
        let Some(wanted) = &self.tags else { return false };
        let sorted = |list: &[String]| {
            let mut list = list.to_vec();
            list.sort();
            list.dedup();
            list
        };
        sorted(wanted) != sorted(&seen.tags)
    }
}

impl State for Present {
    type Seen = Seen;

    fn observe(&self, cx: &Cx) -> Result<Seen> {
        let users = rabbitmq::list_users(cx, self.runas.clone())?;
        let Some(tags) = users.get(self.name.as_str()) else { return Ok(Seen::default()) };
        let mut seen = Seen { there: true, ..Seen::default() };
        let tags = tags.items_of_sequence().unwrap_or_default();
        seen.tags = tags.iter().map(Value::to_string).collect();
        if let Some(password) = &self.password {
            let (name, runas) = (self.name.clone(), self.runas.clone());
            let right = rabbitmq::check_password(cx, name, password.clone(), runas)?;
            seen.wrong_password = self.force || !right;
        }
        if !self.perms.is_empty() {
            let (name, runas) = (self.name.clone(), self.runas.clone());
            seen.perms = rabbitmq::list_user_permissions(cx, name, runas)?;
        }
        Ok(seen)
    }

    fn plan(&self, seen: &Seen) -> Result<Plan> {
        let name = &self.name;
        let changes = Dict::new();
        if !seen.there {
            changes.insert("user", dict! { "old" => "", "new" => name });
        }
        if seen.wrong_password {
            changes.insert("password", dict! { "old" => "", "new" => "Set password." });
        }
        if self.wrong_tags(seen) {
            let new = self.tags.clone().unwrap_or_default();
            changes.insert("tags", dict! { "old" => seen.tags.clone(), "new" => new });
        }
        let missing = self.missing(seen);
        if !missing.is_empty() {
            let (old, new) = (Dict::new(), Dict::new());
            for (vhost, rights) in &missing {
                let mut rights = rights.iter().cloned();
                let mut right = || rights.next().unwrap_or_default();
                let own = dict! { "configure" => right(), "write" => right(), "read" => right() };
                new.insert(vhost, own);
                if let Some(own) = seen.perms.get(vhost.as_str()) {
                    old.insert(vhost, own);
                }
            }
            let perms = Dict::new();
            if !old.is_empty() {
                perms.insert("old", old);
            }
            perms.insert("new", new);
            changes.insert("perms", perms);
        }
        if changes.is_empty() {
            let asked = self.force || self.tags.is_some() || !self.perms.is_empty();
            return Ok(Plan::nothing(if asked {
                format!("'{name}' is already in the desired state.")
            } else {
                format!("User '{name}' is already present.")
            }));
        }
        let pending = if seen.there {
            format!("Configuration for '{name}' will change.")
        } else {
            format!("User '{name}' is set to be created.")
        };
        Ok(Plan::changes(changes).pending(pending).done(format!("'{name}' was configured.")))
    }

    fn apply(&self, cx: &Cx, seen: Seen) -> Result<Applied> {
        let (name, runas) = (|| self.name.clone(), || self.runas.clone());
        if !seen.there {
            rabbitmq::add_user(cx, name(), self.password.clone(), runas())?;
        } else if let (Some(password), true) = (&self.password, seen.wrong_password) {
            rabbitmq::change_password(cx, name(), password.clone(), runas())?;
        }
        if self.wrong_tags(&seen) {
            rabbitmq::set_user_tags(cx, name(), self.tags.clone().unwrap_or_default(), runas())?;
        }
        for (vhost, rights) in self.missing(&seen) {
            let mut rights = rights.into_iter();
            let mut right = || rights.next().unwrap_or_default();
            let (configure, write, read) = (right(), right(), right());
            rabbitmq::set_permissions(cx, vhost, name(), configure, write, read, runas())?;
        }
        Ok(Applied::as_planned())
    }
}

/// Make sure that a user does not exist.
#[derive(Args)]
pub struct Absent {
    /// The user.
    name: String,
    /// The user to run as.
    runas: Option<String>,
}

impl State for Absent {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        rabbitmq::user_exists(cx, self.name.clone(), self.runas.clone())
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let name = &self.name;
        if !there {
            return Ok(Plan::nothing(format!("The user '{name}' is not present.")));
        }
        Ok(Plan::change("name", dict! { "old" => name, "new" => "" })
            .pending(format!("The user '{name}' will be removed."))
            .done(format!("The user '{name}' was removed.")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        rabbitmq::delete_user(cx, self.name.clone(), self.runas.clone())?;
        Ok(Applied::as_planned())
    }
}
