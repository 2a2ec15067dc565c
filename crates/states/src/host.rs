//! `host`: names in `/etc/hosts`.

use std::net::IpAddr;

use halite_modules::hosts::{self, Hosts, Line};
use halite_spec::{Applied, Args, Cx, Error, Plan, Result, State, states};
use halite_value::{Dict, List, Value, dict, entries};

states! {
    /// Names in `/etc/hosts`.
    "host": "present" => Present,
    "absent" => Absent,
    "only" => Only,
}

/// Make sure that a name has an address.
#[derive(Args)]
pub struct Present {
    /// The name.
    name: String,
    /// The address, or several.
    ip: Vec<String>,
    /// A comment on the line.
    #[default(String::new())]
    comment: String,
    /// Remove the name from all other addresses.
    #[default(false)]
    clean: bool,
}

/// What `present` has to do.
#[derive(Default)]
struct Work {
    add: Vec<String>,
    comment: Vec<String>,
    remove: Vec<String>,
    /// Texts about what is right, or cannot be.
    notes: Vec<String>,
    invalid: bool,
    warnings: Vec<String>,
}

impl Present {
    fn work(&self, hosts: &Hosts) -> Work {
        let name = &self.name;
        let mut work = Work::default();
        for address in &self.ip {
            if hosts.find(address).is_none() && !work.add.contains(address) {
                work.add.push(address.clone());
                if !self.comment.is_empty() {
                    work.comment.push(address.clone());
                }
            }
        }
        for line in &hosts.0 {
            let Line::Host { ip, aliases, comment } = line else { continue };
            let named = aliases.contains(name);
            if !self.ip.contains(ip) {
                if named && self.clean {
                    work.remove.push(ip.clone());
                } else if named {
                    work.warnings.push(format!(
                        "Host {name} present for IP address {ip}. To get rid of this warning, \
                         either run this state with 'clean' set to True to remove {name} from \
                         {ip}, or add {ip} to the 'ip' argument."
                    ));
                }
            } else if named {
                if self.comment.is_empty() || comment.as_ref() == Some(&self.comment) {
                    work.notes.push(format!("Host {name} ({ip}) already present"));
                } else {
                    work.comment.push(ip.clone());
                }
            } else if ip.parse::<IpAddr>().is_ok() {
                work.add.push(ip.clone());
                if !self.comment.is_empty() {
                    work.comment.push(ip.clone());
                }
            } else {
                work.invalid = true;
                work.notes.push(format!("Invalid IP Address for {name} ({ip})"));
            }
        }
        work
    }
}

impl State for Present {
    type Seen = Hosts;

    fn observe(&self, cx: &Cx) -> Result<Hosts> {
        hosts::load(cx)
    }

    fn plan(&self, seen: &Hosts) -> Result<Plan> {
        let (name, note) = (&self.name, &self.comment);
        let work = self.work(seen);
        let changes = Dict::new();
        let (mut pending, mut done) = (work.notes.clone(), work.notes.clone());
        let tell = |key: &str, addresses: &[String], text: &str| {
            if addresses.is_empty() {
                return;
            }
            let list = |_: &String| Value::from(List::from_iter([text]));
            let entries: Dict = addresses.iter().map(|ip| (ip.as_str(), list(ip))).collect();
            changes.insert(key, entries);
        };
        tell("added", &work.add, name);
        tell("comment_added", &work.comment, note);
        tell("removed", &work.remove, name);
        for ip in &work.add {
            pending.push(format!("Host {name} ({ip}) would be added"));
            done.push(format!("Added host {name} ({ip})"));
        }
        for ip in &work.comment {
            pending.push(format!("Comment for {ip} ({note}) would be added"));
            done.push(format!("Set comment for host {ip} ({note})"));
        }
        for ip in &work.remove {
            pending.push(format!("Host {name} ({ip}) would be removed"));
            done.push(format!("Removed host {name} ({ip})"));
        }
        if work.invalid && changes.is_empty() {
            return Err(Error::failed(pending.join("\n")));
        }
        let mut plan = Plan::changes(changes).pending(pending.join("\n")).done(done.join("\n"));
        plan.warnings = work.warnings;
        Ok(plan)
    }

    fn apply(&self, cx: &Cx, seen: Hosts) -> Result<Applied> {
        let work = self.work(&seen);
        for ip in work.add {
            hosts::add_host(cx, ip, self.name.clone())?;
        }
        for ip in work.comment {
            hosts::set_comment(cx, ip, self.comment.clone())?;
        }
        for ip in work.remove {
            hosts::rm_host(cx, ip, self.name.clone())?;
        }
        Ok(Applied { result: work.invalid.then_some(false), ..Applied::default() })
    }
}

/// Make sure that a name does not have an address.
#[derive(Args)]
pub struct Absent {
    /// The name.
    name: String,
    /// The address, or several.
    ip: Vec<String>,
}

impl State for Absent {
    /// The addresses that have the name.
    type Seen = Vec<String>;

    fn observe(&self, cx: &Cx) -> Result<Vec<String>> {
        let hosts = hosts::load(cx)?;
        let has =
            |ip: &&String| hosts.find(ip).is_some_and(|(aliases, _)| aliases.contains(&self.name));
        Ok(self.ip.iter().filter(has).cloned().collect())
    }

    fn plan(&self, seen: &Vec<String>) -> Result<Plan> {
        let name = &self.name;
        let (mut pending, mut done) = (Vec::new(), Vec::new());
        for ip in &self.ip {
            if seen.contains(ip) {
                pending.push(format!("Host {name} ({ip}) needs to be removed"));
                done.push(format!("Removed host {name} ({ip})"));
            } else {
                pending.push(format!("Host {name} ({ip}) already absent"));
                done.push(format!("Host {name} ({ip}) already absent"));
            }
        }
        let plan = if seen.is_empty() { Plan::default() } else { Plan::change("host", name) };
        Ok(plan.pending(pending.join("\n")).done(done.join("\n")))
    }

    fn apply(&self, cx: &Cx, seen: Vec<String>) -> Result<Applied> {
        for ip in seen {
            hosts::rm_host(cx, ip, self.name.clone())?;
        }
        Ok(Applied::as_planned())
    }
}

/// Make sure that an address has exactly these names.
#[derive(Args)]
pub struct Only {
    /// The address.
    name: String,
    /// Its names.
    hostnames: Vec<String>,
}

impl Only {
    fn wanted(&self) -> String {
        self.hostnames.iter().map(|name| name.trim()).collect::<Vec<_>>().join(" ")
    }
}

impl State for Only {
    type Seen = String;

    fn observe(&self, cx: &Cx) -> Result<String> {
        Ok(hosts::get_alias(cx, self.name.clone())?.join(" "))
    }

    fn plan(&self, old: &String) -> Result<Plan> {
        let (name, new) = (&self.name, self.wanted());
        if *old == new {
            return Ok(Plan::nothing(format!("IP address {name} already set to \"{new}\"")));
        }
        let change = dict! { "old" => old, "new" => &new };
        Ok(Plan::changes(entries! { name => change })
            .pending(format!("Would change {name} from \"{old}\" to \"{new}\""))
            .done(format!("successfully changed {name} from \"{old}\" to \"{new}\"")))
    }

    fn apply(&self, cx: &Cx, _: String) -> Result<Applied> {
        hosts::set_host(cx, self.name.clone(), self.wanted(), None)?;
        Ok(Applied::as_planned())
    }
}
