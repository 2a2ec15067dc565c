//! `blockdev`: file systems on devices, and settings of devices.

use std::path::Path;

use halite_modules::disk;
use halite_spec::{Applied, Args, Cx, Error, Keys, Plan, Rest, Result, State, host::Kind, states};
use halite_value::{Dict, Value};

states! {
    /// File systems on devices, and settings of devices.
    "blockdev": "formatted" => Formatted,
    "tuned" => Tuned,
}

fn is_device(cx: &Cx, name: &str) -> bool {
    cx.host.stat(Path::new(name), true).is_ok_and(|stat| stat.kind == Kind::Block)
}

/// What blkid knows of the file system on a device.
fn kind_on(cx: &Cx, name: &str) -> Result<Option<String>> {
    let about = disk::blkid(cx, Some(name.to_owned()), None)?;
    let kind = about.values().into_iter().find_map(|about| about.get_str("TYPE"));
    Ok(kind.map(|kind| kind.to_string()))
}

/// Make sure that a device has a file system.
#[derive(Args)]
pub struct Formatted {
    /// The device.
    name: String,
    /// The file system.
    #[default("ext4".to_owned())]
    fs_type: String,
    /// Although there is another.
    #[default(false)]
    force: bool,
    /// `inode_size`, `lazy_itable_init`, `fat`.
    kwargs: Rest,
}

impl State for Formatted {
    type Seen = Option<String>;
    const KEYS: Keys = Keys(["changes", "comment", "name", "result"]);

    fn observe(&self, cx: &Cx) -> Result<Option<String>> {
        if !cx.host.exists(Path::new(&self.name))? {
            return Err(Error::failed(format!("{} does not exist", self.name)));
        }
        kind_on(cx, &self.name)
    }

    fn plan(&self, kind: &Option<String>) -> Result<Plan> {
        let Self { name, fs_type, .. } = self;
        if kind.as_ref() == Some(fs_type) {
            let text = format!("{name} already formatted with {fs_type}");
            return Ok(Plan::nothing(text));
        }
        Ok(Plan::change("new", fs_type)
            .and("old", kind.clone())
            .pending(format!("Changes to {name} will be applied "))
            .done(format!("{name} has been formatted with {fs_type}")))
    }

    fn apply(&self, cx: &Cx, old: Option<String>) -> Result<Applied> {
        let option = |name: &str| self.kwargs.kwargs.get(name).filter(|value| !value.is_null());
        disk::format(
            cx,
            self.name.clone(),
            self.fs_type.clone(),
            option("inode_size"),
            option("lazy_itable_init"),
            option("fat"),
            self.force,
        )?;
        // The system notices a moment later.
        for _ in 0..10 {
            if kind_on(cx, &self.name)?.as_ref() == Some(&self.fs_type) {
                return Ok(Applied::as_planned());
            }
            cx.sleep(std::time::Duration::from_secs(1))?;
        }
        let _ = old;
        Err(Error::failed(format!("Failed to format {}", self.name)))
    }
}

/// Make sure of settings of a device.
#[derive(Args)]
pub struct Tuned {
    /// The device.
    name: String,
    /// `read-ahead`, `filesystem-read-ahead`, `read-only`, `read-write`.
    kwargs: Rest,
}

/// The settings, with the name blockdev reads them by.
const SETTINGS: [(&str, &str); 4] = [
    ("read-ahead", "getra"),
    ("filesystem-read-ahead", "getfra"),
    ("read-only", "getro"),
    ("read-write", "getro"),
];

impl Tuned {
    /// Setting, where it is read, and the value it must have there.
    fn wanted(&self) -> Vec<(&'static str, &'static str, String)> {
        let given = |(name, read): &(&'static str, &'static str)| {
            let value = self.kwargs.kwargs.get(*name).filter(|value| !value.is_null())?;
            let value = match (*name, value) {
                ("read-only", value) => i64::from(value.truthy()).to_string(),
                ("read-write", value) => i64::from(!value.truthy()).to_string(),
                (_, value) => value.to_string(),
            };
            Some((*name, *read, value))
        };
        SETTINGS.iter().filter_map(given).collect()
    }
}

impl State for Tuned {
    type Seen = Dict;
    const KEYS: Keys = Keys(["changes", "comment", "name", "result"]);

    fn observe(&self, cx: &Cx) -> Result<Dict> {
        if !is_device(cx, &self.name) {
            let name = &self.name;
            let text = format!("Changes to {name} cannot be applied. Not a block device.");
            return Err(Error::failed(text));
        }
        let found = disk::dump(cx, self.name.clone(), None)?;
        Ok(found.as_dict().cloned().unwrap_or_default())
    }

    fn plan(&self, found: &Dict) -> Result<Plan> {
        let name = &self.name;
        let changes = Dict::new();
        for (setting, read, wanted) in self.wanted() {
            let is = found.get(read).map(|is| is.to_string()).unwrap_or_default();
            if is != wanted {
                let change = Dict::new();
                change.insert("old", is);
                change.insert("new", wanted);
                changes.insert(setting, change);
            }
        }
        if changes.is_empty() {
            let text = format!("Block device {name} successfully modified ");
            return Ok(Plan::nothing(text));
        }
        Ok(Plan::changes(changes)
            .pending(format!("Changes to {name} will be applied "))
            .done(format!("Block device {name} successfully modified ")))
    }

    fn apply(&self, cx: &Cx, _: Dict) -> Result<Applied> {
        let wanted: Vec<&str> = self.wanted().iter().map(|(name, ..)| *name).collect();
        let kwargs = Dict::new();
        for name in wanted {
            // `read-write: False` means read only, and the other way round.
            let value = self.kwargs.kwargs.get(name).unwrap_or_default();
            match (name, value.truthy()) {
                ("read-only", false) => kwargs.insert("read-write", true),
                ("read-write", false) => kwargs.insert("read-only", true),
                _ => kwargs.insert(name, value),
            };
        }
        disk::tune(cx, self.name.clone(), Rest { args: Vec::new(), kwargs })?;
        let found = self.observe(cx)?;
        let right = self.wanted().iter().all(|(_, read, wanted)| {
            found.get(*read).is_some_and(|is: Value| is.to_string() == *wanted)
        });
        Applied::if_done(right, || format!("Failed to modify block device {}", self.name))
    }
}
