//! `inotify`: an event for each change to files and folders, told by the kernel.
//!
//! Folders below a watched one are watched with `recurse`, and those made later with `auto_add`;
//! what appeared in a new folder before its watch began is told too. When the kernel drops events
//! because there were too many, an event `queue_overflow` says so.

use std::{
    collections::HashMap,
    os::fd::BorrowedFd,
    path::{Path, PathBuf},
};

use halite_pyregex::{Flags, PyRegex as Regex};
use halite_spec::{
    Cx, Result,
    host::{FileWatch, Kind},
};
use halite_value::{Dict, Value, entries};

use crate::{Config, Problem, Watch, beacon};

beacon! {
    /// Tell of changes to files and folders.
    "inotify": Inotify
}

/// The masks Salt knows, by name, in the order their names are joined.
const MASKS: [(&str, u32); 12] = [
    ("access", 0x1),
    ("modify", 0x2),
    ("attrib", 0x4),
    ("close_write", 0x8),
    ("close_nowrite", 0x10),
    ("open", 0x20),
    ("moved_from", 0x40),
    ("moved_to", 0x80),
    ("create", 0x100),
    ("delete", 0x200),
    ("delete_self", 0x400),
    ("move_self", 0x800),
];
const SPECIAL: [(&str, u32); 5] = [
    ("onlydir", 0x0100_0000),
    ("unmount", 0x2000),
    ("excl_unlink", 0x0400_0000),
    ("ignored", 0x8000),
    ("oneshot", 0x8000_0000),
];
const OVERFLOW: u32 = 0x4000;
const IGNORED: u32 = 0x8000;
const IS_DIR: u32 = 0x4000_0000;
const CREATE: u32 = 0x100;
const MOVED_TO: u32 = 0x80;
const MOVE_SELF: u32 = 0x800;
/// Salt's mask when none is given: create, delete, modify.
const PRESET: u32 = 0x100 | 0x200 | 0x2;
/// Deeper trees than this are a mistake (or a bind mount of the root).
const DEEPEST: usize = 64;

#[derive(Default)]
pub struct Inotify {
    kernel: Option<Box<dyn FileWatch>>,
    /// Which path each watch stands for, and the configured one it belongs to.
    watches: HashMap<i32, (PathBuf, Rule)>,
    /// What the watches were made for; another configuration makes them anew.
    made_for: Option<Value>,
}

#[derive(Clone, Debug)]
struct Rule {
    mask: u32,
    recurse: bool,
    auto_add: bool,
    exclude: Vec<Exclude>,
}

#[derive(Clone, Debug)]
enum Exclude {
    Path(String),
    Regex(std::sync::Arc<Regex>),
}

impl Exclude {
    fn has(&self, path: &str) -> bool {
        match self {
            Self::Path(pattern) => {
                path == pattern
                    || path.strip_prefix(pattern.as_str()).is_some_and(|rest| rest.starts_with('/'))
                    || glob(pattern, path)
            }
            Self::Regex(regex) => regex.search(path).is_ok_and(|found| found.is_some()),
        }
    }
}

/// Shell patterns, as far as people use them in paths.
fn glob(pattern: &str, path: &str) -> bool {
    if !pattern.contains(['*', '?', '[']) {
        return false;
    }
    halite_target::fnmatch::fnmatch(path, pattern)
}

impl Rule {
    fn read(options: &Value) -> Self {
        let flag = |key: &str| options.get(key).is_some_and(|value| value.truthy());
        let names = options.get("mask").and_then(|mask| mask.items_of_sequence());
        let bits = names.map_or(PRESET, |names| {
            names.iter().filter_map(|name| bit(&name.to_str())).fold(0, |all, bit| all | bit)
        });
        let mut exclude = Vec::new();
        for item in
            options.get("exclude").and_then(|list| list.items_of_sequence()).unwrap_or_default()
        {
            match &item {
                // `pattern: {regex: True}`
                Value::Dict(map) => {
                    for (pattern, how) in map {
                        let pattern = pattern.to_str();
                        let is_regex = how.get("regex").is_some_and(|regex| regex.truthy());
                        match Regex::cached(&pattern, Flags::default()) {
                            Ok(regex) if is_regex => exclude.push(Exclude::Regex(regex)),
                            _ => exclude.push(Exclude::Path(pattern.to_string())),
                        }
                    }
                }
                other => exclude.push(Exclude::Path(other.to_str().to_string())),
            }
        }
        let bits = if bits == 0 { PRESET } else { bits };
        Self { mask: bits, recurse: flag("recurse"), auto_add: flag("auto_add"), exclude }
    }

    fn excludes(&self, path: &Path) -> bool {
        let path = path.to_string_lossy();
        self.exclude.iter().any(|exclude| exclude.has(&path))
    }
}

fn bit(name: &str) -> Option<u32> {
    MASKS.iter().chain(&SPECIAL).find(|(own, _)| *own == name).map(|(_, bit)| *bit)
}

/// As `IN_CREATE|IN_ISDIR`.
fn mask_name(mask: u32) -> String {
    let mut names: Vec<String> = MASKS
        .iter()
        .filter(|(_, bit)| mask & bit != 0)
        .map(|(name, _)| format!("IN_{}", name.to_ascii_uppercase()))
        .collect();
    if mask & IS_DIR != 0 {
        names.push("IN_ISDIR".into());
    }
    names.join("|")
}

impl Watch for Inotify {
    fn validate(config: &Config) -> Result<(), Problem> {
        config.list()?;
        let Some(files) = config.get("files") else {
            return Err(config.problem("Configuration for inotify beacon must include files."));
        };
        let Value::Dict(files) = files else {
            return Err(config.problem_at(
                "files",
                "Configuration for inotify beacon invalid, files must be a dict.",
            ));
        };
        for (path, options) in &files {
            let place = files.place_of(&path).cloned();
            let wrong = |text: String| {
                Err(Problem {
                    place: place.clone().or_else(|| config.problem_at("files", "").place),
                    text,
                })
            };
            let Value::Dict(options) = options else {
                return wrong(
                    "Configuration for inotify beacon must be a list of dictionaries.".into(),
                );
            };
            // differs: an empty one watches with the usual mask, as Salt's manual says it does.
            let known = ["mask", "recurse", "auto_add"];
            if !options.is_empty() && !known.iter().any(|key| options.contains(*key)) {
                return wrong(
                    "Configuration for inotify beacon must contain mask, recurse or auto_add items."
                        .into(),
                );
            }
            for key in ["auto_add", "recurse"] {
                if options.get(key).is_some_and(|value| !matches!(value, Value::Bool(_))) {
                    return wrong(format!(
                        "Configuration for inotify beacon {key} must be boolean."
                    ));
                }
            }
            if let Some(mask) = options.get("mask") {
                let Value::List(mask) = mask else {
                    return wrong("Configuration for inotify beacon mask must be list.".into());
                };
                for name in mask.to_vec() {
                    if bit(&name.to_str()).is_none() {
                        return wrong(format!(
                            "Configuration for inotify beacon invalid mask option {name}."
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    fn look(&mut self, cx: &Cx, config: &Config) -> Result<Vec<Dict>> {
        let files = config.get("files").unwrap_or_default();
        if self.made_for.as_ref() != Some(&files) {
            self.kernel = None;
            self.watches.clear();
            self.made_for = Some(files.deep_copy());
        }
        if self.kernel.is_none() {
            self.kernel = Some(cx.host.watch_files()?);
        }
        let mut events = self.read(cx);
        // A configured path may appear, or come back after it was replaced.
        if let Value::Dict(files) = files {
            for (path, options) in &files {
                let path = PathBuf::from(path.to_str().as_str());
                if !self.watches.values().any(|(own, _)| *own == path) {
                    self.add(cx, &path, &Rule::read(&options), 0, None);
                }
            }
        }
        if config.flag("coalesce", false) {
            // The same of the same path is told once at a look.
            let mut told: Vec<Dict> = Vec::new();
            for event in events {
                if !told.contains(&event) {
                    told.push(event);
                }
            }
            events = told;
        }
        Ok(events)
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

impl Inotify {
    /// Watches a path, and with `recurse` the folders below it. What a new folder already holds is
    /// reported to `found`.
    fn add(
        &mut self,
        cx: &Cx,
        path: &Path,
        rule: &Rule,
        depth: usize,
        mut found: Option<&mut Vec<Dict>>,
    ) {
        if depth > DEEPEST || rule.excludes(path) {
            return;
        }
        let Some(kernel) = &mut self.kernel else { return };
        // New folders are seen only by who asks for their creation.
        let mut mask = if rule.auto_add { rule.mask | CREATE | MOVED_TO } else { rule.mask };
        if depth == 0 {
            // Editors put the old file aside and write another; that one is to be watched.
            mask |= MOVE_SELF;
        }
        match kernel.add(path, mask) {
            Ok(watch) => {
                self.watches.insert(watch, (path.to_owned(), rule.clone()));
            }
            Err(error) if depth == 0 && error.is_missing() => return,
            Err(error) => {
                tracing::warn!("beacon inotify: {error}");
                return;
            }
        }
        if !rule.recurse {
            return;
        }
        for name in cx.host.read_dir(path).unwrap_or_default() {
            let below = path.join(name);
            let kind = cx.host.stat(&below, false).map(|stat| stat.kind);
            let is_dir = matches!(kind, Ok(Kind::Dir));
            if let Some(found) = found.as_deref_mut()
                && rule.mask & CREATE != 0
                && !rule.excludes(&below)
            {
                let mask = if is_dir { CREATE | IS_DIR } else { CREATE };
                found.push(event(path, &below, mask));
            }
            if is_dir {
                self.add(cx, &below, rule, depth + 1, found.as_deref_mut());
            }
        }
    }

    /// Stops watching what was moved away from a path, and what is below it.
    fn leave(&mut self, path: &Path) {
        let gone: Vec<i32> = self
            .watches
            .iter()
            .filter(|(_, (own, _))| own.starts_with(path))
            .map(|(watch, _)| *watch)
            .collect();
        for watch in gone {
            self.watches.remove(&watch);
            if let Some(kernel) = &mut self.kernel {
                let _ = kernel.remove(watch);
            }
        }
    }

    fn read(&mut self, cx: &Cx) -> Vec<Dict> {
        let Some(kernel) = &mut self.kernel else { return Vec::new() };
        let changes = match kernel.events() {
            Ok(changes) => changes,
            Err(error) => {
                tracing::error!("beacon inotify: {error}");
                return Vec::new();
            }
        };
        let mut events = Vec::new();
        for change in changes {
            if change.mask & OVERFLOW != 0 {
                tracing::warn!("beacon inotify: there were more changes than the kernel keeps");
                events.push(entries! { "tag" => "queue_overflow", "change" => "IN_Q_OVERFLOW" });
                continue;
            }
            let Some((folder, rule)) = self.watches.get(&change.watch).cloned() else { continue };
            if change.mask & IGNORED != 0 {
                // The file is gone, and its watch with it; genuine Salt tells that, whatever the mask.
                self.watches.remove(&change.watch);
                if !rule.excludes(&folder) {
                    let event = event(&folder, &folder, 0);
                    event.insert("change", "IN_IGNORED");
                    events.push(event);
                }
                continue;
            }
            let path =
                change.name.as_ref().map_or_else(|| folder.clone(), |name| folder.join(name));
            if rule.excludes(&path) {
                continue;
            }
            let same =
                events.last().is_some_and(|last| is_repeat(last, &folder, &path, change.mask));
            if change.mask & rule.mask != 0 && !same {
                events.push(event(&folder, &path, change.mask));
            }
            if change.mask & MOVE_SELF != 0 {
                self.leave(&folder);
                continue;
            }
            let is_new = change.mask & IS_DIR != 0 && change.mask & (CREATE | MOVED_TO) != 0;
            if is_new && rule.recurse && rule.auto_add {
                self.add(cx, &path, &rule, 1, Some(&mut events));
            }
        }
        events
    }
}

fn event(folder: &Path, path: &Path, mask: u32) -> Dict {
    entries! {
        "tag" => folder.to_string_lossy().into_owned(),
        "path" => path.to_string_lossy().into_owned(),
        "change" => mask_name(mask),
    }
}

/// A large write is many modifications; one right after the other says nothing new.
fn is_repeat(last: &Dict, folder: &Path, path: &Path, mask: u32) -> bool {
    mask & 0x2 != 0 && *last == event(folder, path, mask)
}
