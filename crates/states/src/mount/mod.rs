//! `mount`: file systems that are mounted now and at every start.
//!
//! A mount is compared with what the kernel shows of it. Options the kernel never shows are told
//! from those it does by a list; what was asked for the last time is remembered, so that an option
//! taken out of the tree leads to a remount as well.

use std::path::{Path, PathBuf};

use halite_modules::mount::{self, Entry, Mounted, Status};
use halite_pyregex::{Flags, PyRegex};
use halite_spec::{
    Applied, Args, Command, Cx, Error, Outcome, Plan, Rest, Result, State, Strings, states,
};
use halite_value::{Dict, Value};

mod fstab;

use fstab::{FstabAbsent, FstabPresent};

states! {
    /// File systems that are mounted now and at every start.
    "mount": "mounted" => Mount,
    "unmounted" => Unmounted,
    "swap" => Swap,
    "fstab_present" => FstabPresent,
    "fstab_absent" => FstabAbsent,
}

/// Make sure that a device is mounted in a place.
#[derive(Args)]
pub struct Mount {
    /// The place.
    name: String,
    /// The device, a path, `UUID=…` or `LABEL=…`.
    device: String,
    /// The kind of file system.
    fstype: String,
    /// Make the folder.
    #[default(false)]
    mkmnt: bool,
    /// The options.
    #[default(Strings(vec!["defaults".to_owned()]))]
    #[shown("defaults".to_owned())]
    opts: Strings,
    /// Whether `dump` saves it.
    #[default("0".to_owned())]
    #[shown(0i64)]
    dump: String,
    /// When it is checked.
    #[default("0".to_owned())]
    #[shown(0i64)]
    pass_num: String,
    /// The table.
    #[default("/etc/fstab".to_owned())]
    config: String,
    /// Keep it in the table.
    #[default(true)]
    persist: bool,
    /// Mount it now.
    #[default(true)]
    mount: bool,
    /// Who mounts.
    user: Option<String>,
    /// By what a line of the table is recognised.
    #[default(Value::from("auto"))]
    match_on: Value,
    /// Devices that are fine too.
    #[default(Vec::new())]
    #[shown(halite_value::Value::Null)]
    device_name_regex: Vec<String>,
    /// Further options that cannot be seen.
    #[default(Vec::new())]
    #[shown(halite_value::Value::Null)]
    extra_mount_invisible_options: Vec<String>,
    /// Further options whose value cannot be seen.
    #[default(Vec::new())]
    #[shown(halite_value::Value::Null)]
    extra_mount_invisible_keys: Vec<String>,
    /// By kind of file system, options whose value is not compared.
    #[default(Dict::new())]
    #[shown(halite_value::Value::Null)]
    extra_mount_ignore_fs_keys: Dict,
    /// Options the kernel shows under another name.
    #[default(Dict::new())]
    #[shown(halite_value::Value::Null)]
    extra_mount_translate_options: Dict,
    /// Options not compared.
    #[default(Strings::default())]
    #[shown(halite_value::Value::Null)]
    hidden_opts: Strings,
    /// A bind mount has the options of what it shows.
    #[default(true)]
    bind_mount_copy_active_opts: bool,
    /// Accepted for old trees.
    #[expect(dead_code, reason = "taken and ignored, as Salt does")]
    rest: Rest,
}

const INVISIBLE: [&str; 23] = [
    "_netdev",
    "actimeo",
    "auto",
    "backup-volfile-servers",
    "bg",
    "bind",
    "comment",
    "defaults",
    "delay_connect",
    "direct-io-mode",
    "intr",
    "loop",
    "nobootwait",
    "nofail",
    "nointr",
    "nonempty",
    "password",
    "port",
    "reconnect",
    "retry",
    "soft",
    "transform_symlinks",
    "users",
];
const INVISIBLE_KEYS: [&str; 8] = [
    "actimeo",
    "comment",
    "credentials",
    "direct-io-mode",
    "password",
    "port",
    "retry",
    "secretfile",
];

/// What a look found.
pub struct Seen {
    /// The place without links.
    real: PathBuf,
    exists: bool,
    current: Option<Mounted>,
    /// The options to mount with.
    opts: Vec<String>,
    /// Options that lead to a remount.
    remount: Vec<String>,
    /// Names of the device in use, if it is another one.
    wrong: Option<(String, Vec<String>)>,
    /// It is another one, but allowed.
    allowed: Option<String>,
    table: Option<Status>,
}

fn size_in_kilobytes(option: &str) -> Option<String> {
    let size = option.strip_prefix("size=")?;
    let (number, unit) = size.split_at_checked(size.len().checked_sub(1)?)?;
    let number: u64 = number.parse().ok()?;
    let factor: u64 = match unit {
        "k" | "K" => 1,
        "m" | "M" => 1024,
        "g" | "G" => 1024 * 1024,
        _ => return None,
    };
    Some(format!("size={}k", number.checked_mul(factor)?))
}

impl Mount {
    fn place(&self) -> &str {
        let trimmed = self.name.trim_end_matches('/');
        if trimmed.is_empty() { "/" } else { trimmed }
    }

    fn entry(&self, opts: &[String]) -> Entry {
        let spaces = |text: &str| text.replace("\\ ", "\\040");
        Entry {
            device: spaces(&self.device),
            name: self.place().to_owned(),
            fstype: self.fstype.clone(),
            opts: spaces(&opts.join(",")),
            dump: self.dump.clone(),
            pass: self.pass_num.clone(),
        }
    }

    /// The option as the kernel shows it.
    fn shown(&self, cx: &Cx, option: &str) -> Result<String> {
        let option = self.translated(option);
        let (key, value) = match option.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (&*option, None),
        };
        let unshown = self.extra_mount_invisible_keys.iter().map(|own| &**own);
        if INVISIBLE_KEYS.into_iter().chain(unshown).any(|own| own == key) {
            return Ok(key.to_owned());
        }
        let shown = match (key, value) {
            ("size", _) => size_in_kilobytes(&option),
            // The kernel shows no zeros before the mode.
            ("mode", Some(mode)) => {
                u32::from_str_radix(mode, 8).ok().map(|mode| format!("mode={mode:o}"))
            }
            ("user", Some(name)) if self.fstype == "cifs" => Some(format!("username={name}")),
            ("uid" | "gid", Some(name)) if name.parse::<u32>().is_err() => {
                let id = match key {
                    "uid" => cx.host.user_named(name)?.map(|user| user.uid),
                    _ => cx.host.group_named(name)?.map(|group| group.gid),
                };
                id.map(|id| format!("{key}={id}"))
            }
            _ => None,
        };
        Ok(shown.unwrap_or(option))
    }

    /// The option under the name the kernel has for it.
    fn translated(&self, option: &str) -> String {
        match (option, self.extra_mount_translate_options.get(option)) {
            ("tcp" | "udp", _) => format!("proto={option}"),
            (_, Some(own)) => own.to_string(),
            _ => option.to_owned(),
        }
    }

    fn is_ignored(&self, option: &str) -> bool {
        let key = option.split('=').next().unwrap_or_default();
        let more = self.extra_mount_ignore_fs_keys.get(self.fstype.as_str());
        let more = more.and_then(|list| list.items_of_sequence()).unwrap_or_default();
        (self.fstype == "ramfs" && key == "size")
            || more.iter().any(|own| own.to_str() == key)
            || INVISIBLE.contains(&option)
            || INVISIBLE_KEYS.contains(&option)
            || self.extra_mount_invisible_options.iter().any(|own| own == option)
            || self.extra_mount_invisible_keys.iter().any(|own| own == option)
            || self.hidden_opts.iter().any(|own| own == option)
    }

    /// Options that are wanted but not in force.
    fn differing(&self, cx: &Cx, current: &Mounted, opts: &[String]) -> Result<Vec<String>> {
        let mut active: Vec<String> = current.opts.clone();
        for option in &current.superopts {
            active.push(size_in_kilobytes(option).unwrap_or_else(|| option.clone()));
        }
        if opts.iter().any(|own| own == "bind") {
            active.push("bind".into());
        }
        let mut found = Vec::new();
        for option in opts {
            let option = self.shown(cx, option)?;
            if !active.contains(&option) && !self.is_ignored(&option) {
                found.push(option);
            }
        }
        found.sort();
        Ok(found)
    }

    /// The device as the kernel names it.
    fn real_device(&self, cx: &Cx, current: Option<&Mounted>, all: &[Mounted]) -> Result<String> {
        let device = &self.device;
        let upper = device.to_uppercase();
        if let (true, Some(current)) = (self.opts.iter().any(|own| own == "bind"), current) {
            if !current.device.starts_with('/') {
                return Ok(current.device.clone());
            }
            let mut path = PathBuf::from(device);
            loop {
                let name = path.to_string_lossy().replace(' ', "\\040");
                if let Some(own) = all.iter().find(|own| own.name == name) {
                    return Ok(own.device.clone());
                }
                if !path.pop() {
                    return Ok(current.device.clone());
                }
            }
        }
        if let Some(mapped) = mapper_name(device)
            && cx.host.exists(Path::new(&mapped))?
        {
            return Ok(mapped);
        }
        if device.starts_with('/') {
            let real = cx.host.real_path(Path::new(device));
            return Ok(
                real.map_or_else(|_| device.clone(), |path| path.to_string_lossy().into_owned())
            );
        }
        if upper.starts_with("UUID=") {
            return Ok(device
                .split_once('=')
                .map_or("", |(_, uuid)| uuid)
                .trim_matches('"')
                .to_lowercase());
        }
        if upper.starts_with("LABEL=") {
            let label = device.split_once('=').map_or("", |(_, label)| label);
            let line = ["blkid".to_owned(), "-t".to_owned(), format!("LABEL={label}")];
            let output = cx.host.run(&Command::line(line).query())?;
            if !output.ok() {
                return Err(Error::failed(format!("Unable to find device with label {label}.")));
            }
            let text = output.stdout_text();
            return Ok(text.split(':').next().unwrap_or_default().to_owned());
        }
        match device.split_once('#') {
            Some((kind, own))
                if !kind.is_empty() && kind.chars().all(|c| c.is_alphanumeric() || c == '_') =>
            {
                Ok(own.to_owned())
            }
            _ => Ok(device.clone()),
        }
    }

    // differs: Salt overlooks that options changed when a tmpfs was mounted with a size.
    fn remount(&self, cx: &Cx, seen: &Seen, changes: &Dict) -> Result<()> {
        let real = seen.real.to_string_lossy().into_owned();
        let list = seen.remount.join(",");
        let apart =
            matches!(self.fstype.as_str(), "nfs" | "cvfs") || self.fstype.starts_with("fuse");
        if !apart {
            changes.insert("umount", format!("Forced remount because options ({list}) changed"));
            let fstype = self.fstype.clone();
            let answer = mount::remount(
                cx,
                real,
                self.device.clone(),
                self.mkmnt,
                fstype,
                seen.opts.clone(),
                None,
            )?;
            return worked(&answer);
        }
        changes
            .insert("umount", format!("Forced unmount and mount because options ({list}) changed"));
        let mut answer = mount::umount(cx, real.clone(), None, None, "mount".into(), false)?;
        if answer != Value::Bool(true) {
            changes.insert(
                "umount",
                format!(
                    "Forced a lazy unmount and mount because the previous unmount failed and \
                     because the options ({list}) changed"
                ),
            );
            answer = mount::umount(cx, real.clone(), None, None, "mount".into(), true)?;
        }
        if answer != Value::Bool(true) {
            return Err(Error::failed(format!("Unable to unmount {real}: {answer}.")));
        }
        worked(&self.do_mount(cx, &real, &seen.opts, None)?)
    }

    fn do_mount(
        &self,
        cx: &Cx,
        name: &str,
        opts: &[String],
        user: Option<String>,
    ) -> Result<Value> {
        let (device, fstype) = (Value::from(&self.device), self.fstype.clone());
        mount::mount(
            cx,
            name.into(),
            device,
            self.mkmnt,
            fstype,
            opts.to_vec(),
            user,
            "mount".into(),
        )
    }
}

fn worked(answer: &Value) -> Result<()> {
    if *answer == Value::Bool(true) { Ok(()) } else { Err(Error::failed(answer.to_str())) }
}

/// The device mapper's name of a logical volume: dashes are doubled.
fn mapper_name(device: &str) -> Option<String> {
    let (group, volume) = device.strip_prefix("/dev/")?.split_once('/')?;
    if volume.contains('/') {
        return None;
    }
    Some(format!("/dev/mapper/{}-{}", group.replace('-', "--"), volume.replace('-', "--")))
}

impl State for Mount {
    type Seen = Seen;
    const WATCHES: bool = true;

    fn observe(&self, cx: &Cx) -> Result<Seen> {
        for (given, word) in
            [(&self.name, "name"), (&self.device, "device"), (&self.fstype, "fstype")]
        {
            if given.is_empty() {
                return Err(Error::failed(format!("Must provide {word} to mount.mounted")));
            }
        }
        let all = mount::mounts(cx)?;
        let place = Path::new(self.place());
        let real = cx.host.real_path(place).unwrap_or_else(|_| place.to_owned());
        let key = real.to_string_lossy().replace(' ', "\\040");
        let current = all.iter().find(|own| own.name == key).cloned();
        let mut opts = self.opts.0.clone();
        let bind = opts.iter().any(|own| own == "bind");
        if bind && current.is_some() && self.bind_mount_copy_active_opts {
            let mut path = PathBuf::from(&self.device);
            loop {
                let name = path.to_string_lossy().replace(' ', "\\040");
                if let Some(own) = all.iter().find(|own| own.name == name) {
                    opts.extend(own.opts.iter().chain(&own.superopts).cloned());
                    opts.sort();
                    opts.dedup();
                    break;
                }
                // Of other file systems than those on disks Salt only knows the mounted folders.
                let on_disk = current.as_ref().is_some_and(|own| own.device.starts_with('/'));
                if !on_disk || !path.pop() {
                    break;
                }
            }
        }
        let (mut remount, mut wrong, mut allowed) = (Vec::new(), None, None);
        if let Some(current) = current.as_ref().filter(|_| self.mount) {
            remount = self.differing(cx, current, &opts)?;
            let cached = mount::read_mount_cache(cx, real.to_string_lossy().into_owned())?;
            let before =
                cached.get("opts").and_then(|opts| opts.items_of_sequence()).unwrap_or_default();
            if remount.is_empty() {
                remount =
                    before.iter().map(Value::to_string).filter(|own| !opts.contains(own)).collect();
            }
            let device = self.real_device(cx, Some(current), &all)?;
            let mut names = vec![current.device.clone()];
            let more = cx.host.real_path(Path::new(&current.device));
            names.extend(more.ok().map(|path| path.to_string_lossy().into_owned()));
            names.extend(current.uuid.clone());
            names.extend(current.label.clone());
            if !names.contains(&device) {
                for regex in &self.device_name_regex {
                    let regex = PyRegex::cached(regex, Flags::NONE)
                        .map_err(|error| Error::failed(error.to_string()))?;
                    let fits =
                        |name: &&String| regex.match_start(name).is_ok_and(|found| found.is_some());
                    allowed = allowed.or_else(|| names.iter().find(fits).cloned());
                }
                if allowed.is_none() {
                    names.dedup();
                    wrong = Some((device, names));
                }
            }
        }
        let table = if self.persist {
            Some(mount::remember(
                cx,
                &self.entry(&opts),
                &self.match_on,
                &self.config,
                false,
                true,
            )?)
        } else {
            None
        };
        let exists = cx.host.exists(place)?;
        Ok(Seen { real, exists, current, opts, remount, wrong, allowed, table })
    }

    fn plan(&self, seen: &Seen) -> Result<Plan> {
        let name = self.place();
        let changes = Dict::new();
        let pending;
        if seen.current.is_some() {
            if !seen.remount.is_empty() {
                let list = seen.remount.join(",");
                let apart = matches!(self.fstype.as_str(), "nfs" | "cvfs")
                    || self.fstype.starts_with("fuse");
                let how = if apart { "unmount and mount" } else { "remount" };
                changes.insert("umount", format!("Forced {how} because options ({list}) changed"));
                pending = format!("Remount would be forced because options ({list}) changed");
            } else if let Some((device, names)) = &seen.wrong {
                changes.insert("umount", forced(&self.device, device, names));
                changes.insert("mount", true);
                pending = format!(
                    "An umount would have been forced because devices do not match.  Watched: {}",
                    self.device
                );
            } else if let Some(device) = &seen.allowed {
                pending = format!(
                    "An umount will not be forced because device matched device_name_regex: {device}"
                );
            } else {
                pending = "Target was already mounted".to_owned();
            }
        } else if self.mount {
            if !seen.exists && !self.mkmnt {
                let plan = Plan::unknown();
                let text = format!("{name} does not exist and would not be created");
                return Ok(plan.pending(text));
            }
            changes.insert("mount", true);
            let made = if seen.exists { "" } else { "created and " };
            pending = format!("{name} would be {made}mounted");
        } else if !seen.exists {
            pending = if self.mkmnt {
                format!("{name} would be created, but not mounted")
            } else {
                format!("{name} does not exist and would neither be created nor mounted")
            };
        } else {
            pending = format!("{name} would not be mounted");
        }
        let mut pending = pending;
        let mut done =
            if seen.current.is_some() { pending.clone() } else { format!("{name} not mounted") };
        let (key, told) = match (&seen.table, self.mount) {
            (Some(Status::New), true) => (
                Some("new"),
                format!(
                    "{name} is mounted, but needs to be written to the fstab in order to be made \
                     persistent."
                ),
            ),
            (Some(Status::New), false) => (
                Some("new"),
                format!("{name} needs to be written to the fstab in order to be made persistent."),
            ),
            (Some(Status::Change), true) => {
                (Some("update"), format!("{name} is mounted, but its fstab entry must be updated."))
            }
            (Some(Status::Change), false) => {
                (Some("update"), format!("The {name} fstab entry must be updated."))
            }
            (Some(Status::Present), _) => {
                done += ". Entry already exists in the fstab.";
                (None, "Entry already exists in the fstab.".to_owned())
            }
            (None, _) => (None, String::new()),
        };
        if let Some(key) = key {
            changes.insert("persist", key);
        }
        // Salt speaks of the table only where nothing is to be mounted.
        let mounts = seen.current.is_none() && self.mount;
        if !mounts && !told.is_empty() && seen.remount.is_empty() && seen.wrong.is_none() {
            pending = format!("{pending}. {told}");
        }
        let creates = !seen.exists && self.mkmnt && !self.mount;
        let plan = Plan { unknown: creates, ..Plan::changes(changes) };
        Ok(plan.pending(pending).done(done))
    }

    fn apply(&self, cx: &Cx, seen: Seen) -> Result<Applied> {
        let name = self.place();
        let changes = Dict::new();
        let mut comment = "Target was already mounted".to_owned();
        let mut mounts = seen.current.is_none() && self.mount;
        if seen.current.is_some() {
            if !seen.remount.is_empty()
                && let Err(error) = self.remount(cx, &seen, &changes)
            {
                return Ok(Applied::failed(changes, error.to_string()));
            }
            if let Some((device, names)) = &seen.wrong {
                changes.insert("umount", forced(&self.device, device, names));
                let real = seen.real.to_string_lossy().into_owned();
                let answer =
                    mount::umount(cx, real, None, self.user.clone(), "mount".into(), false)?;
                if answer != Value::Bool(true) {
                    return Ok(Applied::failed(changes, "Unable to unmount"));
                }
                mounts = true;
            } else if let Some(device) = &seen.allowed {
                comment = format!(
                    "An umount will not be forced because device matched device_name_regex: {device}"
                );
            }
        }
        if mounts {
            if !cx.host.exists(Path::new(name))? && !self.mkmnt {
                return Ok(Applied::failed(changes, "Mount directory is not present"));
            }
            let answer = self.do_mount(cx, name, &seen.opts, self.user.clone())?;
            if answer != Value::Bool(true) {
                return Ok(Applied::failed(changes, answer.to_str()));
            }
            comment = "Target was successfully mounted".into();
            changes.insert("mount", true);
        } else if seen.current.is_none() {
            comment = match (seen.exists, self.mkmnt) {
                (true, _) => format!("{name} not mounted"),
                (false, true) => {
                    cx.host.create_dirs(Path::new(name), None)?;
                    format!("{name} was created, not mounted")
                }
                (false, false) => format!("{name} not present and not mounted"),
            };
        }
        if self.mount {
            let real = seen.real.to_string_lossy().into_owned();
            let (device, fstype) = (self.device.clone(), self.fstype.clone());
            mount::write_mount_cache(cx, real, device, self.mkmnt, fstype, seen.opts.clone())?;
        }
        if self.persist {
            let entry = self.entry(&seen.opts);
            match mount::remember(cx, &entry, &self.match_on, &self.config, false, false)? {
                Status::Present => comment += ". Entry already exists in the fstab.",
                Status::New => {
                    changes.insert("persist", "new");
                    comment += ". Added new entry to the fstab.";
                }
                Status::Change => {
                    changes.insert("persist", "update");
                    comment += ". Updated the entry in the fstab.";
                }
            }
        }
        Ok(Applied::changes(changes).comment(comment))
    }

    fn watch(&self, cx: &Cx, test: bool) -> Result<Outcome> {
        let name = &self.name;
        if test {
            let comment = format!("{name} would be remounted");
            return Ok(Outcome::new(None, Dict::new(), comment));
        }
        let (device, fstype) = (self.device.clone(), self.fstype.clone());
        let opts = self.opts.0.clone();
        let answer =
            mount::remount(cx, name.clone(), device, false, fstype, opts, self.user.clone())?;
        if answer == Value::Bool(true) {
            return Ok(Outcome::new(Some(true), Dict::new(), format!("{name} remounted")));
        }
        Ok(Outcome::failed(format!("{name} failed to remount: {answer}")))
    }
}

fn forced(wanted: &str, real: &str, names: &[String]) -> String {
    let real = if real == wanted { String::new() } else { format!(" ({real})") };
    format!(
        "Forced unmount because devices don't match. Wanted: {wanted}{real}, current: {}",
        names.join(", ")
    )
}

/// Make sure that nothing is mounted in a place.
#[derive(Args)]
pub struct Unmounted {
    /// The place.
    name: String,
    /// The device.
    device: Option<String>,
    /// The table.
    #[default("/etc/fstab".to_owned())]
    config: String,
    /// Remove it from the table too.
    #[default(false)]
    persist: bool,
    /// Who unmounts.
    user: Option<String>,
    /// Accepted for old trees.
    #[expect(dead_code, reason = "taken and ignored, as Salt does")]
    rest: Rest,
}

impl State for Unmounted {
    /// Whether it is mounted, and the device in the table.
    type Seen = (bool, Option<String>);

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        if self.name.is_empty() {
            return Err(Error::failed("Must provide name to mount.unmounted"));
        }
        let table = mount::table(cx, &self.config)?;
        let own = table.into_iter().find(|entry| entry.name == self.name);
        Ok((mount::is_mounted(cx, self.name.clone())?, own.map(|entry| entry.device)))
    }

    fn plan(&self, (mounted, entry): &Self::Seen) -> Result<Plan> {
        let (name, config) = (&self.name, &self.config);
        let changes = Dict::new();
        let (mut pending, mut done) = if *mounted {
            changes.insert("umount", true);
            let text = "Target was successfully unmounted".to_owned();
            (format!("Mount point {name} is mounted but should not be"), text)
        } else {
            let text = "Target was already unmounted".to_owned();
            (text.clone(), text)
        };
        if self.persist {
            match (entry, &self.device) {
                (None, _) => done += ". fstab entry not found",
                (Some(own), Some(device)) if own != device => {
                    done += &format!(". fstab entry for device {device} not found");
                }
                (Some(_), _) => {
                    changes.insert("persist", "purged");
                    done += ". Removed target from fstab";
                    if !mounted {
                        pending = format!(
                            "Mount point {name} is unmounted but needs to be purged from {config} \
                             to be made persistent"
                        );
                    }
                }
            }
            if changes.is_empty() {
                pending.clone_from(&done);
            }
        }
        Ok(Plan::changes(changes).pending(pending).done(done))
    }

    fn apply(&self, cx: &Cx, (mounted, entry): Self::Seen) -> Result<Applied> {
        let (name, device) = (self.name.clone(), self.device.clone());
        if mounted {
            let user = self.user.clone();
            let answer =
                mount::umount(cx, name.clone(), device.clone(), user, "mount".into(), false)?;
            if answer != Value::Bool(true) {
                return Err(Error::failed(answer.to_str()));
            }
            mount::delete_mount_cache(cx, name.clone())?;
        }
        let same = entry.is_some_and(|own| device.as_ref().is_none_or(|device| *device == own));
        if self.persist && same {
            mount::forget(cx, &name, device.as_deref(), &self.config)?;
        }
        Ok(Applied::as_planned())
    }
}

/// Make sure that a swap space is in use.
#[derive(Args)]
pub struct Swap {
    /// The device or file.
    name: String,
    /// Keep it in the table.
    #[default(true)]
    persist: bool,
    /// The table.
    #[default("/etc/fstab".to_owned())]
    config: String,
}

/// What a look at swap found.
pub struct Swapped {
    device: String,
    on: bool,
    table: Option<Status>,
}

impl Swap {
    fn entry(&self) -> Entry {
        Entry {
            device: self.name.clone(),
            name: "none".into(),
            fstype: "swap".into(),
            opts: "defaults".into(),
            dump: "0".into(),
            pass: "0".into(),
        }
    }
}

impl State for Swap {
    type Seen = Swapped;

    fn observe(&self, cx: &Cx) -> Result<Swapped> {
        let mut device = self.name.clone();
        if let Ok(target) = cx.host.read_link(Path::new(&self.name)) {
            device = if target.is_absolute() {
                target.to_string_lossy().into_owned()
            } else {
                let base = target.file_name().map(|base| base.to_string_lossy().into_owned());
                format!("/dev/{}", base.unwrap_or_default())
            };
        }
        let on = mount::swaps(cx)?.contains(device.as_str());
        let mut table = None;
        if self.persist {
            let entries = mount::table(cx, &self.config)?;
            let other = entries
                .iter()
                .any(|own| own.name == "none" && own.device == self.name && own.fstype != "swap");
            if !other {
                let auto = Value::from("auto");
                table = Some(mount::remember(cx, &self.entry(), &auto, &self.config, false, true)?);
            }
        }
        Ok(Swapped { device, on, table })
    }

    fn plan(&self, seen: &Swapped) -> Result<Plan> {
        let name = &self.name;
        let changes = Dict::new();
        match seen.table {
            Some(Status::New) => drop(changes.insert("persist", "new")),
            Some(Status::Change) => drop(changes.insert("persist", "update")),
            _ => {}
        }
        let pending = match (seen.on, changes.is_empty()) {
            (true, true) => format!("Swap {name} already active"),
            (true, false) => {
                format!("Swap {name} is set to be added to the fstab and to be activated")
            }
            (false, _) => format!("Swap {name} is set to be activated"),
        };
        Ok(Plan { unknown: !seen.on, ..Plan::changes(changes).pending(pending) })
    }

    fn apply(&self, cx: &Cx, seen: Swapped) -> Result<Applied> {
        let name = &self.name;
        let mut changes = Dict::new();
        let mut comment = format!("Swap {name} already active");
        let mut right = true;
        if !seen.on {
            mount::swapon(cx, seen.device.clone(), None)?;
            match mount::swaps(cx)?.get(seen.device.as_str()) {
                Some(Value::Dict(stats)) => {
                    changes = stats;
                    comment = format!("Swap {name} activated");
                }
                _ => {
                    right = false;
                    comment = format!("Swap {name} failed to activate");
                }
            }
        }
        if seen.table.is_some_and(|status| status != Status::Present) {
            let auto = Value::from("auto");
            match mount::remember(cx, &self.entry(), &auto, &self.config, false, false)? {
                Status::Present => {}
                Status::New => {
                    changes.insert("persist", "new");
                    comment += ". Added new entry to the fstab.";
                }
                Status::Change => {
                    changes.insert("persist", "update");
                    comment += ". Updated the entry in the fstab.";
                }
            }
        }
        Ok(Applied { result: Some(right), ..Applied::changes(changes).comment(comment) })
    }
}
