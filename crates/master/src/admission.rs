//! Which unknown minions are let in, or turned away, without asking anybody.
//!
//! `autoreject_file`, `auto_accept`, `autosign_file`, stubs in `minions_autosign`, and
//! `autosign_grains_dir`: the first that fits decides. A file that others may write to decides
//! nothing.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use halite_config::Opts;
use halite_target::{Regex, fnmatch::fnmatch};
use halite_value::Dict;
use halite_wire::MinionId;

/// The rules.
pub(crate) struct Admission {
    auto_accept: bool,
    autosign_file: Option<PathBuf>,
    autoreject_file: Option<PathBuf>,
    grains_dir: Option<PathBuf>,
    stubs: PathBuf,
    stub_lifetime: Duration,
    group_may_write: bool,
}

impl Admission {
    pub(crate) fn new(opts: &Opts, stubs: PathBuf) -> Self {
        let path = |name: &str| opts.opt_str(name).map(|path| PathBuf::from(path.as_str()));
        let minutes = opts.opt_int("autosign_timeout").unwrap_or(120);
        Self {
            auto_accept: opts.bool("auto_accept"),
            autosign_file: path("autosign_file"),
            autoreject_file: path("autoreject_file"),
            grains_dir: path("autosign_grains_dir"),
            stubs,
            stub_lifetime: Duration::from_secs(60 * u64::try_from(minutes).unwrap_or(0)),
            group_may_write: opts.bool("permissive_pki_access"),
        }
    }

    /// Tells whether a minion is to be turned away. Blocking.
    pub(crate) fn rejects(&self, id: &MinionId) -> bool {
        self.autoreject_file.as_deref().is_some_and(|file| self.lists(file, id))
    }

    /// Tells whether a minion is to be let in; uses up a stub. Blocking.
    pub(crate) fn accepts(&self, id: &MinionId, grains: &Dict) -> bool {
        self.auto_accept
            || self.autosign_file.as_deref().is_some_and(|file| self.lists(file, id))
            || self.takes_stub(id)
            || self.knows_grains(grains)
    }

    fn lists(&self, file: &Path, id: &MinionId) -> bool {
        let Some(text) = self.trusted(file) else { return false };
        text.lines().map(str::trim).filter(|line| !line.starts_with('#')).any(|line| fits(id, line))
    }

    fn takes_stub(&self, id: &MinionId) -> bool {
        if !self.stub_lifetime.is_zero() {
            let expired = |entry: &fs::DirEntry| {
                let made = entry.metadata().and_then(|metadata| metadata.modified());
                made.is_ok_and(|made| {
                    SystemTime::now().duration_since(made).is_ok_and(|age| age > self.stub_lifetime)
                })
            };
            for entry in fs::read_dir(&self.stubs).into_iter().flatten().flatten().filter(expired) {
                tracing::warn!("Autosign keyid expired {}", entry.path().display());
                // Another sign-in may have been faster.
                let _ = fs::remove_file(entry.path());
            }
        }
        fs::remove_file(self.stubs.join(id.as_str())).is_ok()
    }

    fn knows_grains(&self, grains: &Dict) -> bool {
        let Some(dir) = &self.grains_dir else { return false };
        fs::read_dir(dir).into_iter().flatten().flatten().any(|entry| {
            let name = entry.file_name();
            let Some(grain) = name.to_str().and_then(|name| grains.get(name)) else { return false };
            let Some(text) = self.trusted(&entry.path()) else { return false };
            let wanted = grain.to_str();
            text.lines().map(str::trim).any(|line| !line.starts_with('#') && line == wanted)
        })
    }

    /// Reads a file, unless somebody else could have written it.
    fn trusted(&self, file: &Path) -> Option<String> {
        let mode = fs::metadata(file).ok()?.mode();
        if mode & 0o002 != 0 || (mode & 0o020 != 0 && !self.group_may_write) {
            tracing::warn!("Wrong permissions for {}, ignoring content", file.display());
            return None;
        }
        fs::read_to_string(file).ok()
    }
}

/// Tells whether an id fits an expression: equal, by glob, or by regular expression.
pub(crate) fn fits(text: &str, expression: &str) -> bool {
    text == expression
        || fnmatch(text, expression)
        || Regex::new(&format!(r"(?:{expression})\Z")).is_ok_and(|regex| regex.matches(text))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use halite_config::Role;
    use halite_value::entries;

    use super::*;

    fn rules(dir: &Path, opts: Dict) -> Admission {
        Admission::new(&Opts::new(Role::Master, opts), dir.join("stubs"))
    }

    #[test]
    fn files_stubs_and_grains_let_in() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("sign");
        fs::create_dir_all(dir.path().join("stubs")).unwrap();
        fs::create_dir_all(dir.path().join("grains")).unwrap();
        fs::write(&file, "# comment\nweb*\n^db\\d+$\n").unwrap();
        fs::write(dir.path().join("grains/uuid"), "abc\n# no\n").unwrap();
        fs::write(dir.path().join("stubs/once"), "").unwrap();
        let rules = rules(
            dir.path(),
            entries! {
                "autosign_file" => file.to_str().unwrap(), "autosign_timeout" => 120,
                "autosign_grains_dir" => dir.path().join("grains").to_str().unwrap(),
            },
        );
        let lets_in = |id: &str, grains: &Dict| rules.accepts(&MinionId::new(id).unwrap(), grains);
        let none = Dict::new();
        assert!(lets_in("web7", &none) && lets_in("db12", &none));
        assert!(!lets_in("xdb12", &none) && !lets_in("other", &none));
        assert!(lets_in("once", &none) && !lets_in("once", &none));
        assert!(lets_in("any", &entries! { "uuid" => "abc" }));
        assert!(!lets_in("any", &entries! { "uuid" => "# no" }));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(!lets_in("web7", &none), "anybody can write there");
    }
}
