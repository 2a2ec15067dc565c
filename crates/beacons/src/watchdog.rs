//! `watchdog`: an event for each change in folders, by the words of the Python library watchdog.
//!
//! The kernel tells the changes, as for `inotify`; this says `created`, `modified`, `deleted` and
//! `moved`, and that the folder itself is `modified` whenever something comes or goes in it.
//! Folders below are not watched.

use std::{
    collections::HashMap,
    os::fd::BorrowedFd,
    path::{Path, PathBuf},
};

use halite_spec::{
    Cx, Result,
    host::{FileEvent, FileWatch},
};
use halite_value::{Dict, Value, entries};

use crate::{Config, Problem, Watch, beacon};

beacon! {
    /// Tell of changes in folders.
    "watchdog": Watchdog
}

const MODIFY: u32 = 0x2;
const MOVED_FROM: u32 = 0x40;
const MOVED_TO: u32 = 0x80;
const CREATE: u32 = 0x100;
const DELETE: u32 = 0x200;
const ALL: u32 = MODIFY | MOVED_FROM | MOVED_TO | CREATE | DELETE;
const OVERFLOW: u32 = 0x4000;
const IGNORED: u32 = 0x8000;
const IS_DIR: u32 = 0x4000_0000;

/// The masks, and what they are called in events.
const MASKS: [(&str, &str); 4] =
    [("create", "created"), ("modify", "modified"), ("delete", "deleted"), ("move", "moved")];

#[derive(Default)]
pub struct Watchdog {
    kernel: Option<Box<dyn FileWatch>>,
    folders: HashMap<i32, PathBuf>,
    made_for: Option<Value>,
}

impl Watch for Watchdog {
    fn validate(config: &Config) -> Result<(), Problem> {
        config.list()?;
        let wrong = |text: &str| Err(config.problem_at("directories", text));
        let Some(folders) = config.get("directories") else {
            return wrong("Configuration for watchdog beacon must include directories.");
        };
        let Value::Dict(folders) = folders else {
            return wrong("Configuration for watchdog beacon directories must be a dictionary.");
        };
        for options in folders.values() {
            let Value::Dict(options) = options else {
                return wrong(
                    "Configuration for watchdog beacon directory path must be a dictionary.",
                );
            };
            let mask = match options.get("mask") {
                None => continue,
                Some(Value::List(mask)) => mask.to_vec(),
                Some(_) => {
                    return wrong("Configuration for watchdog beacon mask must be list.");
                }
            };
            if !mask.iter().all(|name| MASKS.iter().any(|(own, _)| *name == **own)) {
                return wrong("Configuration for watchdog beacon contains invalid mask");
            }
        }
        Ok(())
    }

    fn look(&mut self, cx: &Cx, config: &Config) -> Result<Vec<Dict>> {
        let folders = config.get("directories").unwrap_or_default();
        if self.made_for.as_ref() != Some(&folders) {
            self.kernel = None;
            self.folders.clear();
            self.made_for = Some(folders.deep_copy());
        }
        if self.kernel.is_none() {
            self.kernel = Some(cx.host.watch_files()?);
        }
        let Some(kernel) = &mut self.kernel else { return Ok(Vec::new()) };
        let changes = kernel.events()?;
        let Value::Dict(folders) = folders else { return Ok(Vec::new()) };
        // A folder may appear, or come back.
        for folder in folders.keys() {
            let folder = PathBuf::from(folder.to_str().as_str());
            if !self.folders.values().any(|own| *own == folder)
                && let Ok(watch) = kernel.add(&folder, ALL)
            {
                self.folders.insert(watch, folder);
            }
        }
        Ok(self.told(&changes, &folders))
    }

    fn discard(&mut self) {
        if let Some(kernel) = &mut self.kernel {
            let _ = kernel.events();
        }
    }

    fn wakes(&self) -> Option<BorrowedFd<'_>> {
        self.kernel.as_ref()?.descriptor()
    }
}

impl Watchdog {
    fn told(&mut self, changes: &[FileEvent], folders: &Dict) -> Vec<Dict> {
        let mut events = Vec::new();
        let mut at = 0;
        while let Some(change) = changes.get(at) {
            at += 1;
            if change.mask & OVERFLOW != 0 {
                tracing::warn!("beacon watchdog: there were more changes than the kernel keeps");
                continue;
            }
            let Some(folder) = self.folders.get(&change.watch).cloned() else { continue };
            if change.mask & IGNORED != 0 {
                self.folders.remove(&change.watch);
                continue;
            }
            let path =
                change.name.as_ref().map_or_else(|| folder.clone(), |name| folder.join(name));
            let next = changes.get(at);
            let kind = match change.mask {
                mask if mask & CREATE != 0 => "created",
                mask if mask & DELETE != 0 => "deleted",
                // What leaves for another place is gone, what comes from one is new.
                mask if mask & MOVED_FROM != 0 => {
                    if next.is_some_and(|next| next.mask & MOVED_TO != 0) {
                        at += 1;
                        "moved"
                    } else {
                        "deleted"
                    }
                }
                mask if mask & MOVED_TO != 0 => "created",
                mask if mask & MODIFY != 0 && mask & IS_DIR == 0 => "modified",
                _ => continue,
            };
            let wanted = wanted(folders, &folder);
            let mut tell = |path: &Path, kind: &str| {
                let path = path.to_string_lossy().into_owned();
                let event = entries! { "tag" => "watchdog", "path" => path, "change" => kind };
                // A large write is many modifications.
                let repeats = kind == "modified" && events.last() == Some(&event);
                if wanted.iter().any(|own| own == kind) && !repeats {
                    events.push(event);
                }
            };
            tell(&path, kind);
            if kind != "modified" {
                tell(&folder, "modified");
            }
        }
        events
    }
}

/// Returns what is to be told of a folder.
fn wanted(folders: &Dict, folder: &Path) -> Vec<String> {
    let options = folders.get(folder.to_string_lossy().as_ref()).unwrap_or_default();
    let mask = options.get("mask").and_then(|mask| mask.items_of_sequence());
    let own = |name: &str| mask.as_ref().is_none_or(|mask| mask.iter().any(|one| *one == *name));
    MASKS.iter().filter(|(name, _)| own(name)).map(|(_, kind)| (*kind).to_owned()).collect()
}
