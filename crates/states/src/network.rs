//! `network`: interfaces, routes and settings of the network, as Debian's `ifupdown` keeps them.
//!
//! Salt says only in the comment what a test would change; we name the changes, too.

use halite_modules::{file::diff, ip, network};
use halite_spec::{Applied, Args, Cx, Error, Plan, Rest, Result, State, states};
use halite_value::{Dict, Value};

states! {
    /// Interfaces, routes and settings of the network.
    "network": "managed" => Managed,
    "routes" => Routes,
    "system" => System,
}

/// The difference as Salt shows it: the lines bring their own ends.
fn shown(old: &[String], new: &[String]) -> String {
    let ended = |lines: &[String]| -> Vec<String> {
        lines.iter().map(|line| format!("{line}\n")).collect()
    };
    let text = diff::unified(&ended(old), &ended(new));
    text.strip_suffix('\n').map_or(text.clone(), str::to_owned)
}

/// Only what is about the network: the rest are words of the state engine.
fn settings(kwargs: &Dict) -> Rest {
    let kwargs = kwargs.shallow_copy();
    kwargs.remove("test");
    Rest { args: Vec::new(), kwargs }
}

/// Make sure that an interface has these settings, and is up or down.
#[derive(Args)]
pub struct Managed {
    /// The interface.
    name: String,
    /// Bring it up, now and at the start.
    #[default(true)]
    enabled: bool,
    /// `type`, `proto`, `ipaddr`, `netmask`, `gateway`, `dns`, `mtu`, `noifupdown` …
    kwargs: Rest,
}

/// An interface and its bond, as kept.
pub struct Kept {
    interface: Vec<String>,
    bond: Option<Vec<String>>,
    up: bool,
}

impl Managed {
    /// `type` in lower case.
    fn kind(&self) -> Result<String> {
        let kind = self.kwargs.kwargs.get("type").filter(Value::truthy);
        kind.map(|kind| kind.to_string().to_lowercase()).ok_or_else(|| {
            Error::failed(format!("the state of the interface {} needs a type", self.name))
        })
    }

    fn switches(&self) -> bool {
        !self.kwargs.kwargs.get("noifupdown").is_some_and(|value| value.truthy())
    }

    fn wanted(&self) -> Result<Vec<String>> {
        ip::lines_for(&self.name, &self.kind()?, self.enabled, &self.kwargs.kwargs)
    }
}

fn lines_of(value: &Value) -> Vec<String> {
    value.items_of_sequence().unwrap_or_default().iter().map(Value::to_string).collect()
}

impl State for Managed {
    type Seen = Kept;

    fn observe(&self, cx: &Cx) -> Result<Kept> {
        let bond = match self.kind()?.as_str() {
            "bond" => Some(lines_of(&ip::get_bond(cx, self.name.clone())?)),
            _ => None,
        };
        let interfaces = cx.host.interfaces().unwrap_or_default();
        let up = interfaces.iter().any(|own| own.name == self.name && own.up);
        Ok(Kept { interface: ip::get_interface(cx, self.name.clone())?, bond, up })
    }

    fn plan(&self, kept: &Kept) -> Result<Plan> {
        let name = &self.name;
        let new = self.wanted()?;
        let changes = Dict::new();
        let (mut pending, mut done) = (Vec::new(), Vec::new());
        if kept.interface.is_empty() {
            changes.insert("interface", "Added network interface.");
            pending.push(format!("Interface {name} is set to be added."));
            done.push(format!("Interface {name} added."));
        } else if kept.interface != new {
            let text = shown(&kept.interface, &new);
            pending.push(format!("Interface {name} is set to be updated:\n{text}"));
            changes.insert("interface", text);
            done.push(format!("Interface {name} updated."));
        }
        if let Some(old) = &kept.bond {
            let new = ip::bond_lines(name, &self.kwargs.kwargs)?;
            if old.is_empty() {
                changes.insert("bond", format!("Added bond {name}."));
                pending.push(format!("Bond interface {name} is set to be added."));
                done.push(format!("Bond interface {name} added."));
            } else if *old != new {
                let text = shown(old, &new);
                pending.push(format!("Bond interface {name} is set to be updated:\n{text}"));
                changes.insert("bond", text);
                done.push(format!("Bond interface {name} updated."));
            }
        }
        if changes.is_empty() {
            return Ok(Plan::nothing(format!("Interface {name} is up to date.")));
        }
        if self.switches() && (self.enabled || kept.up) {
            let word = match (self.enabled, kept.up) {
                (true, true) => "restarted to validate",
                (true, false) => "up",
                _ => "down",
            };
            let kind = self.kind()?;
            if kind != "slave" && kind != "source" {
                let text = if word.starts_with("restarted") {
                    format!("Interface {name} restart to validate")
                } else {
                    format!("Interface {name} is {word}")
                };
                changes.insert("status", text);
            }
        }
        Ok(Plan::changes(changes).pending(pending.join("\n")).done(done.join("\n")))
    }

    fn apply(&self, cx: &Cx, kept: Kept) -> Result<Applied> {
        let (name, kind) = (self.name.clone(), self.kind()?);
        if kept.bond.is_some() {
            ip::build_bond(cx, name.clone(), settings(&self.kwargs.kwargs))?;
        }
        let kwargs = settings(&self.kwargs.kwargs);
        ip::build_interface(cx, name.clone(), kind.clone(), self.enabled, kwargs)?;
        if self.switches() {
            if kept.up {
                ip::down(cx, name.clone(), kind.clone())?;
            }
            if self.enabled {
                ip::up(cx, name, kind)?;
            }
        }
        Ok(Applied::as_planned())
    }
}

/// Make sure that an interface brings these routes with it.
#[derive(Args)]
pub struct Routes {
    /// The interface.
    name: String,
    /// `routes`: a list of `name`, `ipaddr`, `netmask`, `gateway`.
    kwargs: Rest,
}

impl State for Routes {
    type Seen = Vec<String>;

    fn observe(&self, cx: &Cx) -> Result<Vec<String>> {
        Ok(lines_of(&ip::get_routes(cx, self.name.clone())?))
    }

    fn plan(&self, old: &Vec<String>) -> Result<Plan> {
        let name = &self.name;
        let new = ip::route_lines(name, &self.kwargs.kwargs)?.concat();
        if *old == new {
            return Ok(Plan::nothing(format!("Interface {name} routes are up to date.")));
        }
        if old.is_empty() {
            let text = format!("Added interface {name} routes.");
            return Ok(Plan::change("network_routes", text)
                .pending(format!("Interface {name} routes are set to be added."))
                .done(format!("Interface {name} routes added.")));
        }
        let text = shown(old, &new);
        Ok(Plan::change("network_routes", text.as_str())
            .pending(format!("Interface {name} routes are set to be updated:\n{text}"))
            .done(format!("Interface {name} routes updated.")))
    }

    fn apply(&self, cx: &Cx, _: Vec<String>) -> Result<Applied> {
        ip::build_routes(cx, self.name.clone(), settings(&self.kwargs.kwargs))?;
        Ok(Applied::as_planned())
    }
}

/// Make sure of the settings of the network as a whole, and of the name of the machine.
#[derive(Args)]
pub struct System {
    /// Any name.
    #[expect(dead_code, reason = "the state has a name like every state")]
    name: String,
    /// `enabled`, `hostname`, `apply_hostname`, `retain_settings` …
    kwargs: Rest,
}

/// Settings as they are, as they shall be, and the name in use.
pub struct Settings {
    old: Vec<String>,
    new: Vec<String>,
    hostname: String,
}

impl System {
    fn flag(&self, name: &str) -> bool {
        self.kwargs.kwargs.get(name).is_some_and(|value| value.truthy())
    }

    fn hostname(&self) -> Option<String> {
        let name = self.kwargs.kwargs.get("hostname").filter(Value::truthy);
        name.map(|name| name.to_string())
    }
}

impl State for System {
    type Seen = Settings;

    fn observe(&self, cx: &Cx) -> Result<Settings> {
        Ok(Settings {
            old: ip::get_network_settings(cx)?,
            new: ip::wanted_settings(cx, &self.kwargs.kwargs)?,
            hostname: network::get_hostname(cx)?,
        })
    }

    fn plan(&self, seen: &Settings) -> Result<Plan> {
        let changes = Dict::new();
        let mut pending = "Global network settings are up to date.".to_owned();
        if seen.old != seen.new {
            let text = shown(&seen.old, &seen.new);
            pending = format!("Global network settings are set to be updated:\n{text}");
            changes.insert("network_settings", text);
        }
        if self.flag("apply_hostname")
            && let Some(name) = self.hostname()
            && name != seen.hostname
        {
            changes.insert("hostname", name);
        }
        if changes.is_empty() {
            return Ok(Plan::nothing("Global network settings are up to date."));
        }
        Ok(Plan::changes(changes).pending(pending).done("Global network settings are up to date."))
    }

    fn apply(&self, cx: &Cx, seen: Settings) -> Result<Applied> {
        if seen.old != seen.new {
            ip::build_network_settings(cx, settings(&self.kwargs.kwargs))?;
        }
        if let (true, Some(name)) = (self.flag("apply_hostname"), self.hostname())
            && name != seen.hostname
        {
            network::mod_hostname(cx, Some(name))?;
        }
        Ok(Applied::as_planned())
    }
}
