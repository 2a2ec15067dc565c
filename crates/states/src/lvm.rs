//! `lvm`: physical volumes, volume groups and logical volumes.
//!
//! Salt names no changes beforehand; the comment says what will happen.

use halite_modules::lvm;
use halite_spec::{Applied, Args, Cx, Error, Need, Plan, Rest, Result, State, Strings, states};
use halite_value::{Dict, Value};

states! {
    /// Physical volumes, volume groups and logical volumes.
    "lvm", needs = [
        Need::program(&["lvm"], "lvm command not found"),
    ]: "pv_present" => PvPresent,
    "pv_absent" => PvAbsent,
    "vg_present" => VgPresent,
    "vg_absent" => VgAbsent,
    "lv_present" => LvPresent,
    "lv_absent" => LvAbsent,
}

fn strings(items: impl IntoIterator<Item = String>) -> Strings {
    Strings(items.into_iter().collect())
}

fn done(key: &str, value: Value, comment: String) -> Applied {
    let changes = Dict::new();
    changes.insert(key, value);
    Applied::changes(changes).comment(comment)
}

fn is_pv(cx: &Cx, device: &str) -> Result<bool> {
    Ok(!lvm::pvdisplay(cx, device.to_owned(), false, true)?.is_empty())
}

/// Make sure that a device is a physical volume.
#[derive(Args)]
pub struct PvPresent {
    /// The device.
    name: String,
    /// Options of pvcreate.
    kwargs: Rest,
}

impl State for PvPresent {
    type Seen = bool;

    const REPEATS: bool = true;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        is_pv(cx, &self.name)
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let name = &self.name;
        if *there {
            return Ok(Plan::nothing(format!("Physical Volume {name} already present")));
        }
        Ok(Plan::unknown().pending(format!("Physical Volume {name} is set to be created")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let name = &self.name;
        let failed = format!("Failed to create Physical Volume {name}");
        let made = lvm::pvcreate(cx, strings([name.clone()]), true, true, self.kwargs.clone());
        match made {
            Ok(_) if is_pv(cx, name)? => {}
            Ok(_) | Err(Error::Failed(_)) => return Err(Error::failed(failed)),
            Err(error) => return Err(error),
        }
        let about = lvm::pvdisplay(cx, name.clone(), false, true)?;
        Ok(done("created", about.into(), format!("Created Physical Volume {name}")))
    }
}

/// Make sure that a device is no physical volume.
#[derive(Args)]
pub struct PvAbsent {
    /// The device.
    name: String,
}

impl State for PvAbsent {
    type Seen = bool;

    const REPEATS: bool = true;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        is_pv(cx, &self.name)
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let name = &self.name;
        if !there {
            return Ok(Plan::nothing(format!("Physical Volume {name} does not exist")));
        }
        Ok(Plan::unknown().pending(format!("Physical Volume {name} is set to be removed")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let name = &self.name;
        let ret = lvm::pvremove(cx, strings([name.clone()]), true, true)?;
        if is_pv(cx, name)? {
            return Err(Error::failed(format!("Failed to remove Physical Volume {name}")));
        }
        Ok(done("removed", ret, format!("Removed Physical Volume {name}")))
    }
}

/// Make sure that a volume group exists and has these devices.
#[derive(Args)]
pub struct VgPresent {
    /// The volume group.
    name: String,
    /// The devices: a list, or a text with commas.
    devices: Option<Strings>,
    /// Options of vgcreate.
    kwargs: Rest,
}

/// A volume group as found.
#[derive(Default)]
pub struct Group {
    there: bool,
    /// What is to say of each device that needs nothing.
    texts: Vec<String>,
    add: Vec<String>,
    wrong: bool,
}

impl State for VgPresent {
    type Seen = Group;

    const REPEATS: bool = true;

    fn observe(&self, cx: &Cx) -> Result<Group> {
        let name = &self.name;
        let mut group = Group {
            there: !lvm::vgdisplay(cx, name.clone(), true)?.is_empty(),
            ..Group::default()
        };
        if !group.there {
            return Ok(group);
        }
        group.texts.push(format!("Volume Group {name} already present"));
        for device in self.devices.iter().flat_map(|devices| devices.iter()) {
            let about = lvm::pvdisplay(cx, device.clone(), true, true)?;
            let Some(about) = about.values().into_iter().next() else {
                group.texts.push(format!("pv {device} is not present"));
                group.wrong = true;
                continue;
            };
            let owner = about.get_str("Volume Group Name").unwrap_or_default();
            if owner == name.as_str() {
                group.texts.push(format!("{device} is part of Volume Group"));
            } else if owner.is_empty() || owner == "#orphans_lvm2" {
                group.add.push(device.clone());
            } else {
                group.texts.push(format!("{device} is part of {owner}"));
                group.wrong = true;
            }
        }
        Ok(group)
    }

    fn plan(&self, group: &Group) -> Result<Plan> {
        let name = &self.name;
        if !group.there {
            return Ok(Plan::unknown().pending(format!("Volume Group {name} is set to be created")));
        }
        if group.wrong && group.add.is_empty() {
            return Err(Error::failed(group.texts.join("\n")));
        }
        if group.add.is_empty() {
            return Ok(Plan::nothing(group.texts.join("\n")));
        }
        let mut texts = group.texts.clone();
        texts.extend(
            group.add.iter().map(|device| format!("{device} will be added to Volume Group")),
        );
        Ok(Plan::unknown().pending(texts.join("\n")))
    }

    fn apply(&self, cx: &Cx, group: Group) -> Result<Applied> {
        let name = &self.name;
        if !group.there {
            let devices = self.devices.clone().unwrap_or_default();
            lvm::vgcreate(cx, name.clone(), devices, false, self.kwargs.clone())?;
            let about = lvm::vgdisplay(cx, name.clone(), true)?;
            if about.is_empty() {
                return Err(Error::failed(format!("Failed to create Volume Group {name}")));
            }
            return Ok(done("created", about.into(), format!("Created Volume Group {name}")));
        }
        let mut texts = group.texts;
        let changes = Dict::new();
        let mut wrong = group.wrong;
        for device in group.add {
            lvm::vgextend(cx, name.clone(), strings([device.clone()]), false)?;
            let about = lvm::pvdisplay(cx, device.clone(), true, true)?;
            let owner = about.values().first().and_then(|about| about.get_str("Volume Group Name"));
            if owner.as_deref() == Some(name) {
                changes.insert(device.as_str(), format!("added to {name}"));
                texts.push(format!("{device} was added to Volume Group"));
            } else {
                texts.push(format!("{device} could not be added to Volume Group"));
                wrong = true;
            }
        }
        let mut applied = Applied::changes(changes).comment(texts.join("\n"));
        applied.result = Some(!wrong);
        Ok(applied)
    }
}

/// Make sure that a volume group does not exist.
#[derive(Args)]
pub struct VgAbsent {
    /// The volume group.
    name: String,
}

impl State for VgAbsent {
    type Seen = bool;

    const REPEATS: bool = true;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        Ok(!lvm::vgdisplay(cx, self.name.clone(), true)?.is_empty())
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let name = &self.name;
        if !there {
            return Ok(Plan::nothing(format!("Volume Group {name} already absent")));
        }
        Ok(Plan::unknown().pending(format!("Volume Group {name} is set to be removed")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let name = &self.name;
        let said = lvm::vgremove(cx, name.clone(), true)?;
        if !lvm::vgdisplay(cx, name.clone(), true)?.is_empty() {
            return Err(Error::failed(format!("Failed to remove Volume Group {name}")));
        }
        Ok(done("removed", said.into(), format!("Removed Volume Group {name}")))
    }
}

/// Megabytes of a size as LVM writes it: `10G`; sectors and bytes have letters of their own.
fn megabytes(size: &str) -> Result<f64> {
    let text = size.trim().to_lowercase();
    let (number, unit) = match text.char_indices().last() {
        Some((at, unit)) if unit.is_ascii_alphabetic() => (text.get(..at).unwrap_or(""), unit),
        _ => (text.as_str(), 'm'),
    };
    let number: f64 = number
        .trim()
        .parse()
        .map_err(|_| Error::failed(format!("Size {size} is no number with a unit.")))?;
    let bytes = match unit {
        'b' => 1.0,
        's' => 512.0,
        'k' => 1024.0,
        'm' => 1048576.0,
        'g' => 1073741824.0,
        't' => 1099511627776.0,
        'p' => 1125899906842624.0,
        _ => return Err(Error::failed(format!("Unit {unit} is invalid."))),
    };
    Ok(number * bytes / 1048576.0)
}

/// Make sure that a logical volume exists, with this size.
#[derive(Args)]
pub struct LvPresent {
    /// The logical volume.
    name: String,
    /// Its volume group.
    vgname: Option<String>,
    /// The size: `10G`.
    size: Option<Value>,
    /// The number of extents, or a share: `100%FREE`.
    extents: Option<Value>,
    /// A snapshot of this volume.
    snapshot: Option<String>,
    /// On these devices only.
    #[default(String::new())]
    pv: String,
    /// A thin volume.
    #[default(false)]
    thinvolume: bool,
    /// A pool of thin volumes.
    #[default(false)]
    thinpool: bool,
    /// Make it smaller, if need be.
    #[default(false)]
    force: bool,
    /// Change the file system on it, too.
    #[default(false)]
    resizefs: bool,
    /// Options of lvcreate.
    kwargs: Rest,
}

/// Extents and sectors of a volume.
pub struct Volume {
    extents: i64,
    sectors: f64,
}

impl LvPresent {
    fn path(&self) -> String {
        let vgname = self.vgname.clone().unwrap_or_default();
        if self.thinvolume {
            let name = self.name.rsplit('/').next().unwrap_or(&self.name);
            return format!("/dev/{vgname}/{name}");
        }
        format!("/dev/{vgname}/{}", self.name)
    }

    fn look(&self, cx: &Cx) -> Result<Option<Volume>> {
        let about = lvm::lvdisplay(cx, self.path(), true)?;
        let Some(about) = about.values().into_iter().next() else { return Ok(None) };
        let number =
            |key: &str| about.get_str(key).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
        Ok(Some(Volume {
            extents: number("Current Logical Extents Associated") as i64,
            sectors: number("Logical Volume Size"),
        }))
    }

    /// Smaller, larger, or as it should be; and the text when a share is not looked at.
    fn order(&self, volume: &Volume) -> Result<std::cmp::Ordering> {
        if let Some(size) = &self.size {
            let is = volume.sectors / 2048.0;
            let wanted = megabytes(&size.to_string())?;
            return Ok(wanted.total_cmp(&is));
        }
        let extents = self.extents.as_ref().map(Value::to_string);
        match extents.and_then(|extents| extents.parse::<i64>().ok()) {
            Some(wanted) => Ok(wanted.cmp(&volume.extents)),
            None => Ok(std::cmp::Ordering::Equal),
        }
    }
}

impl State for LvPresent {
    type Seen = Option<Volume>;

    const REPEATS: bool = true;

    fn observe(&self, cx: &Cx) -> Result<Option<Volume>> {
        self.look(cx)
    }

    fn plan(&self, seen: &Option<Volume>) -> Result<Plan> {
        let name = &self.name;
        if self.size.is_some() && self.extents.is_some() {
            return Err(Error::failed("Only one of extents or size can be specified."));
        }
        if self.thinvolume && self.thinpool {
            let text = "Only one of thinvolume or thinpool can be set to True.";
            return Err(Error::failed(text));
        }
        if let Some(size) = &self.size {
            megabytes(&size.to_string())?;
        }
        let Some(volume) = seen else {
            let text = if self.snapshot.is_some() { "Snapshot" } else { "Logical Volume" };
            return Ok(Plan::unknown().pending(format!("{text} {name} is set to be created")));
        };
        if let Some(share) =
            self.extents.as_ref().map(Value::to_string).filter(|text| text.contains('%'))
        {
            let text = format!("Logical Volume {name} already present, {share} won't be resized.");
            return Ok(Plan::nothing(text));
        }
        match self.order(volume)? {
            std::cmp::Ordering::Equal => {
                Ok(Plan::nothing(format!("Logical Volume {name} already present")))
            }
            std::cmp::Ordering::Less if !self.force => {
                Err(Error::failed("To reduce a Logical Volume option 'force' must be True."))
            }
            _ => Ok(Plan::unknown().pending(format!("Logical Volume {name} is set to be resized"))),
        }
    }

    fn apply(&self, cx: &Cx, seen: Option<Volume>) -> Result<Applied> {
        let name = &self.name;
        let said = |ret: &Value, program: &str| {
            ret.get_str(&format!("Output from {program}")).unwrap_or_else(|| ret.to_str())
        };
        let Some(volume) = seen else {
            let ret = lvm::lvcreate(
                cx,
                name.clone(),
                self.vgname.clone().unwrap_or_default(),
                self.size.clone(),
                self.extents.clone(),
                self.snapshot.clone(),
                Some(self.pv.clone()),
                self.thinvolume,
                self.thinpool,
                self.force,
                self.kwargs.clone(),
            )?;
            let about = lvm::lvdisplay(cx, self.path(), true)?;
            if about.is_empty() {
                let said = said(&ret, "lvcreate");
                let text = format!("Failed to create Logical Volume {name}. Error: {said}");
                return Err(Error::failed(text));
            }
            return Ok(done("created", about.into(), format!("Created Logical Volume {name}")));
        };
        let ret = lvm::lvresize(
            cx,
            self.size.clone(),
            Some(self.path()),
            self.extents.clone(),
            self.force,
            self.resizefs,
        )?;
        let now = self.look(cx)?.map_or(volume.sectors, |now| now.sectors);
        if now == volume.sectors {
            let said = said(&ret, "lvresize");
            let text = format!("Failed to resize Logical Volume {name}.\nError: {said}");
            return Err(Error::failed(text));
        }
        Ok(done("resized", said(&ret, "lvresize").into(), format!("Resized Logical Volume {name}")))
    }
}

/// Make sure that a logical volume does not exist.
#[derive(Args)]
pub struct LvAbsent {
    /// The logical volume.
    name: String,
    /// Its volume group.
    vgname: Option<String>,
}

impl LvAbsent {
    fn there(&self, cx: &Cx) -> Result<bool> {
        let path = format!("/dev/{}/{}", self.vgname.as_deref().unwrap_or_default(), self.name);
        Ok(!lvm::lvdisplay(cx, path, true)?.is_empty())
    }
}

impl State for LvAbsent {
    type Seen = bool;

    const REPEATS: bool = true;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        self.there(cx)
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let name = &self.name;
        if !there {
            return Ok(Plan::nothing(format!("Logical Volume {name} already absent")));
        }
        Ok(Plan::unknown().pending(format!("Logical Volume {name} is set to be removed")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let name = &self.name;
        let vgname = self.vgname.clone().unwrap_or_default();
        let said = lvm::lvremove(cx, name.clone(), vgname, true)?;
        if self.there(cx)? {
            return Err(Error::failed(format!("Failed to remove Logical Volume {name}")));
        }
        Ok(done("removed", said.into(), format!("Removed Logical Volume {name}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_in_megabytes() {
        assert_eq!(megabytes("1G").unwrap(), 1024.0);
        assert_eq!(megabytes("1016M").unwrap(), 1016.0);
        assert_eq!(megabytes("512").unwrap(), 512.0);
        assert_eq!(megabytes("1Q").unwrap_err().to_string(), "Unit q is invalid.");
    }
}
