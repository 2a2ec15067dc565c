//! `fileserver_events`: an event when files below `file_roots` come, change or go.
//!
//! The folders are looked through every `loop_interval` and whenever `fileserver.update` asks; the
//! first look only remembers. Without the option nobody looks.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use halite_fileserver::Options;
use halite_value::{Value, dict, entries};
use parking_lot::Mutex;

use crate::Master;

/// Folders inside folders; a link in a circle ends here.
const DEEPEST: usize = 64;

/// Files and their times, as they were seen last.
#[derive(Default)]
pub(crate) struct Seen(Mutex<Option<BTreeMap<PathBuf, SystemTime>>>);

fn collect(folder: &Path, depth: usize, found: &mut BTreeMap<PathBuf, SystemTime>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        // By way of links: a linked file changes with what it leads to.
        let Ok(metadata) = fs::metadata(&path) else { continue };
        if metadata.is_dir() && depth < DEEPEST {
            collect(&path, depth + 1, found);
        } else if metadata.is_file()
            && let Ok(modified) = metadata.modified()
        {
            found.insert(path, modified);
        }
    }
}

impl Master {
    /// Looks through the folders, if that is wanted, and tells what is new. Blocking.
    pub(crate) fn look_at_roots(&self) {
        if !self.settings.opts.bool("fileserver_events") {
            return;
        }
        let mut now = BTreeMap::new();
        for (_, roots) in Options::from_opts(self.settings.opts.values()).file_roots {
            roots.iter().for_each(|root| collect(root, 0, &mut now));
        }
        let Some(before) = self.roots_seen.0.lock().replace(now.clone()) else { return };
        let names =
            |paths: Vec<&PathBuf>| Value::list(paths.iter().map(|path| path.display().to_string()));
        let added: Vec<_> = now.keys().filter(|path| !before.contains_key(*path)).collect();
        let removed: Vec<_> = before.keys().filter(|path| !now.contains_key(*path)).collect();
        let is_other = |(path, time): &(&PathBuf, &SystemTime)| {
            before.get(*path).is_some_and(|known| known != *time)
        };
        let changed: Vec<_> = now.iter().filter(is_other).map(|(path, _)| path).collect();
        if added.is_empty() && removed.is_empty() && changed.is_empty() {
            return;
        }
        let files = dict! {
            "changed" => names(changed), "removed" => names(removed), "added" => names(added),
        };
        let data = entries! { "changed" => true, "files" => files, "backend" => "roots" };
        self.bus.fire("salt/fileserver/roots/update".to_owned(), data);
    }
}
