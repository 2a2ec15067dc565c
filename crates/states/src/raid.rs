//! `raid`: software RAID.
//!
//! An array whose members belong together already is assembled, otherwise it is made; an array that
//! runs gets the devices that are new to it.

use std::path::Path;

use halite_modules::raid;
use halite_spec::{Applied, Args, Cx, Error, Need, Plan, Rest, Result, State, Strings, states};
use halite_value::{Dict, Value};

states! {
    /// Software RAID.
    "raid", needs = [
        Need::program(&["mdadm"], "Unable to locate command: mdadm"),
    ]: "present" => Present,
    "absent" => Absent,
}

/// Make sure that an array runs.
#[derive(Args)]
pub struct Present {
    /// The array: `/dev/md0`.
    name: String,
    /// The RAID level.
    level: String,
    /// Its members.
    devices: Strings,
    /// `metadata`, and further options of `mdadm`.
    kwargs: Rest,
}

/// What is to be done.
pub enum Work {
    Nothing,
    /// Give it these devices.
    Add(Vec<String>),
    /// Start it with these.
    Assemble(Vec<String>, String),
    Create(String),
}

pub struct Seen {
    work: Work,
    missing: Vec<String>,
}

fn shown(names: &[String]) -> String {
    Value::from(names.to_vec()).repr()
}

impl Present {
    fn noted(&self, text: String, missing: &[String]) -> String {
        if missing.is_empty() {
            text
        } else {
            format!("{text} Missing devices: {}", shown(missing))
        }
    }

    fn create(&self, cx: &Cx, test: bool) -> Result<String> {
        let kwargs = self.kwargs.clone();
        let metadata = kwargs.kwargs.remove("metadata").map(|version| version.to_string());
        let metadata = metadata.unwrap_or_else(|| "default".to_owned());
        let (name, level) = (self.name.clone(), self.level.clone());
        raid::create(cx, name, level, self.devices.clone(), metadata, test, kwargs)
    }

    fn assemble(&self, cx: &Cx, devices: &[String], test: bool) -> Result<Value> {
        let none = Rest { args: Vec::new(), kwargs: Dict::new() };
        raid::assemble(cx, self.name.clone(), Strings(devices.to_vec()), test, none)
    }
}

impl State for Present {
    type Seen = Seen;

    fn observe(&self, cx: &Cx) -> Result<Seen> {
        let runs = raid::list(cx)?.get(self.name.as_str());
        let own = runs.as_ref().and_then(|array| array.get_str("uuid"));
        let (mut missing, mut uuids) = (Vec::new(), Vec::<String>::new());
        let (mut members, mut new) = (Vec::new(), Vec::new());
        for device in self.devices.iter() {
            if device == "missing" || !cx.host.exists(Path::new(device))? {
                missing.push(device.clone());
                continue;
            }
            let said = Value::from(raid::examine(cx, device.clone(), true)?);
            match said.get_str("MD_UUID") {
                Some(uuid) => {
                    members.push(device.clone());
                    if !uuids.iter().any(|known| *known == uuid) {
                        uuids.push(uuid.into());
                    }
                }
                None => new.push(device.clone()),
            }
        }
        if uuids.len() > 1 {
            return Err(Error::failed(format!(
                "Devices are a mix of RAID constituents with multiple MD_UUIDs: {}.",
                shown(&uuids)
            )));
        }
        if let (Some(own), Some(uuid)) = (&own, uuids.first())
            && own != uuid
        {
            return Err(Error::failed(format!(
                "Devices MD_UUIDs: {} differs from present RAID uuid {own}.",
                shown(&uuids)
            )));
        }
        let work = if runs.is_some() {
            if new.is_empty() { Work::Nothing } else { Work::Add(new) }
        } else if missing.len() == self.devices.len() {
            return Err(Error::failed(format!("All devices are missing: {}.", shown(&missing))));
        } else if members.is_empty() {
            Work::Create(self.create(cx, true)?)
        } else {
            let command = self.assemble(cx, &members, true)?.repr();
            Work::Assemble(members, command)
        };
        Ok(Seen { work, missing })
    }

    fn plan(&self, seen: &Seen) -> Result<Plan> {
        let (name, missing) = (&self.name, &seen.missing);
        let present = format!("Raid {name} already present.");
        Ok(match &seen.work {
            Work::Nothing => Plan::nothing(self.noted(present, missing)),
            Work::Add(devices) => {
                let would: String = devices
                    .iter()
                    .map(|new| format!(" {new} will be added to {name}.\n"))
                    .collect();
                let done: String = devices
                    .iter()
                    .map(|new| format!(" Added new device {new} to {name}.\n"))
                    .collect();
                Plan::change("added", devices.clone())
                    .pending(format!("{present}{would}"))
                    .done(format!("{present}{done}"))
            }
            Work::Assemble(_, command) => Plan::change("uuid", Value::Null)
                .pending(self.noted(format!("Raid will be assembled with: {command}"), missing))
                .done(self.noted(format!("Raid {name} assembled."), missing)),
            Work::Create(command) => Plan::change("uuid", Value::Null)
                .pending(self.noted(format!("Raid will be created with: {command}"), missing))
                .done(self.noted(format!("Raid {name} created."), missing)),
        })
    }

    fn apply(&self, cx: &Cx, seen: Seen) -> Result<Applied> {
        let (name, missing) = (&self.name, &seen.missing);
        let verb = match &seen.work {
            Work::Nothing => return Ok(Applied::as_planned()),
            Work::Add(devices) => {
                let (mut added, mut failed) = (Vec::new(), Vec::new());
                for device in devices {
                    let ok = raid::add(cx, name.clone(), device.clone())?;
                    if ok { added.push(device.clone()) } else { failed.push(device.clone()) }
                }
                if failed.is_empty() {
                    return Ok(Applied::as_planned());
                }
                let changes: Dict = [("added", Value::from(added))].into_iter().collect();
                return Ok(Applied::failed(
                    changes,
                    format!("Raid {name} already present. Failed to add {}.", shown(&failed)),
                ));
            }
            Work::Assemble(devices, _) => {
                self.assemble(cx, devices, false)?;
                "assembled"
            }
            Work::Create(_) => {
                self.create(cx, false)?;
                "created"
            }
        };
        let array = raid::list(cx)?.get(name.as_str());
        let Some(uuid) = array.and_then(|array| array.get("uuid")) else {
            let text = format!("Raid {name} failed to be {verb}.");
            return Err(Error::failed(self.noted(text, missing)));
        };
        raid::save_config(cx)?;
        Ok(Applied::changes([("uuid", uuid)].into_iter().collect()))
    }
}

/// Make sure that an array does not exist.
#[derive(Args)]
pub struct Absent {
    /// The array: `/dev/md0`.
    name: String,
}

impl State for Absent {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        Ok(raid::list(cx)?.contains(self.name.as_str()))
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let name = &self.name;
        if !there {
            return Ok(Plan::nothing(format!("Raid {name} already absent")));
        }
        Ok(Plan::unknown()
            .pending(format!("Raid {name} is set to be destroyed"))
            .done(format!("Raid {name} has been destroyed")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        Applied::if_done(raid::destroy(cx, self.name.clone())?, || {
            format!("Raid {} failed to be destroyed", self.name)
        })
    }
}
