//! Lines of the table of file systems, without regard to what is mounted.

use halite_modules::mount::{self, Entry, Status};
use halite_spec::{Applied, Args, Command, Cx, Error, Keys, Plan, Result, State, Strings};
use halite_value::Value;

/// Make sure that a line is in the table.
#[derive(Args)]
pub(super) struct FstabPresent {
    /// The device.
    name: String,
    /// The place.
    fs_file: String,
    /// The kind of file system.
    fs_vfstype: String,
    /// The options.
    #[default(Strings(vec!["defaults".to_owned()]))]
    #[shown("defaults".to_owned())]
    fs_mntops: Strings,
    /// Whether `dump` saves it.
    #[default("0".to_owned())]
    #[shown(0i64)]
    fs_freq: String,
    /// When it is checked.
    #[default("0".to_owned())]
    #[shown(0i64)]
    fs_passno: String,
    /// How the device is named: `device`, `label`, `uuid`, `partlabel`, `partuuid`.
    mount_by: Option<String>,
    /// The table.
    #[default("/etc/fstab".to_owned())]
    config: String,
    /// Mount it, when the line is new.
    #[default(true)]
    mount: bool,
    /// By what a line is recognised.
    #[default(Value::from("auto"))]
    match_on: Value,
    /// Leave a line that is there as it is.
    #[default(false)]
    not_change: bool,
    /// For AIX.
    #[expect(dead_code, reason = "for AIX")]
    #[default(true)]
    fs_mount: bool,
}

/// Names a device in another way.
fn named_by(cx: &Cx, device: &str, by: Option<&str>) -> Result<Option<String>> {
    let Some(by) = by.filter(|by| !by.is_empty()) else { return Ok(Some(device.to_owned())) };
    let key = by.to_uppercase();
    if (by == "device" && device.starts_with('/')) || device.starts_with(&format!("{key}=")) {
        return Ok(Some(device.to_owned()));
    }
    let line = if device.starts_with('/') {
        vec!["blkid".to_owned(), device.to_owned()]
    } else {
        vec!["blkid".to_owned(), "-t".to_owned(), device.to_owned()]
    };
    let text = cx.host.run(&Command::line(line).query())?.stdout_text();
    let found = mount::read_blkid(&text);
    let [(device, marks)] = found.as_slice() else { return Ok(None) };
    if by == "device" {
        return Ok(Some(device.clone()));
    }
    Ok(marks.get(key.as_str()).map(|mark| format!("{key}={mark}")))
}

fn trimmed(place: &str) -> &str {
    let short = place.trim_end_matches('/');
    if short.is_empty() { "/" } else { short }
}

impl FstabPresent {
    fn entry(&self, device: &str) -> Entry {
        let spaces = |text: &str| text.replace("\\ ", "\\040");
        Entry {
            device: spaces(device),
            name: trimmed(&self.fs_file).to_owned(),
            fstype: self.fs_vfstype.clone(),
            opts: spaces(&self.fs_mntops.join(",")),
            dump: self.fs_freq.clone(),
            pass: self.fs_passno.clone(),
        }
    }
}

impl State for FstabPresent {
    type Seen = (String, Status);
    const KEYS: Keys = Keys(["name", "result", "changes", "comment"]);

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let by = self.mount_by.as_deref();
        let Some(device) = named_by(cx, &self.name, by)? else {
            let by = by.unwrap_or_default();
            return Err(Error::failed(format!("Device {} cannot be converted to {by}", self.name)));
        };
        let entry = self.entry(&device);
        let status =
            mount::remember(cx, &entry, &self.match_on, &self.config, self.not_change, true)?;
        Ok((device, status))
    }

    fn plan(&self, (_, status): &Self::Seen) -> Result<Plan> {
        let (place, config, name) = (trimmed(&self.fs_file), &self.config, &self.name);
        let plan = Plan::change("persist", status.word());
        Ok(match status {
            Status::Present => Plan::nothing(format!("{place} entry is already in {config}."))
                .done(format!("{place} entry was already in {config}.")),
            Status::New => {
                let mut pending = format!("{place} entry will be written in {config}.");
                if self.mount {
                    pending += &format!("\nWill mount {name} on {place}");
                }
                plan.pending(pending)
            }
            Status::Change => plan
                .pending(format!("{place} entry will be updated in {config}."))
                .done(format!("{place} entry updated in {config}.")),
        })
    }

    fn apply(&self, cx: &Cx, (device, status): Self::Seen) -> Result<Applied> {
        let (place, config, name) = (trimmed(&self.fs_file), &self.config, &self.name);
        let entry = self.entry(&device);
        mount::remember(cx, &entry, &self.match_on, config, self.not_change, false)?;
        if status != Status::New {
            return Ok(Applied::as_planned());
        }
        let mut comment = format!("{place} entry added in {config}.");
        let mut right = true;
        if self.mount {
            let opts = vec!["defaults".to_owned()];
            let none = Value::Bool(false);
            let answer = mount::mount(
                cx,
                place.into(),
                none,
                false,
                String::new(),
                opts,
                None,
                "mount".into(),
            )?;
            if answer == Value::Bool(true) {
                comment += &format!("\nMounted {name} on {place}");
            } else {
                right = false;
                let text = answer.to_string();
                let text = text.split_once(':').map_or(text.as_str(), |(_, rest)| rest);
                comment += &format!("\nError while mounting {text}");
            }
        }
        Ok(Applied { result: Some(right), ..Applied::as_planned().comment(comment) })
    }
}

/// Make sure that a line is not in the table.
#[derive(Args)]
pub(super) struct FstabAbsent {
    /// The device.
    name: String,
    /// The place.
    fs_file: String,
    /// How the device is named.
    mount_by: Option<String>,
    /// The table.
    #[default("/etc/fstab".to_owned())]
    config: String,
}

impl State for FstabAbsent {
    type Seen = bool;
    const KEYS: Keys = Keys(["name", "result", "changes", "comment"]);

    fn observe(&self, cx: &Cx) -> Result<bool> {
        let place = trimmed(&self.fs_file);
        Ok(mount::table(cx, &self.config)?.iter().any(|entry| entry.name == place))
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let (place, config) = (trimmed(&self.fs_file), &self.config);
        if !there {
            return Ok(Plan::nothing(format!("{place} entry is already missing in {config}.")));
        }
        Ok(Plan::change("persist", "removed")
            .pending(format!("{place} entry will be removed from {config}."))
            .done(format!("{place} entry removed from {config}.")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let place = trimmed(&self.fs_file);
        let device = named_by(cx, &self.name, self.mount_by.as_deref())?;
        mount::forget(cx, place, device.as_deref(), &self.config)?;
        Ok(Applied::as_planned())
    }
}
