//! What the configuration says about users' Python.

use std::{path::Path, time::Duration};

use halite_value::{Dict, Value};

/// The kinds of modules, by the folder that holds them.
pub const KINDS: [&str; 25] = [
    "auth",
    "beacons",
    "clouds",
    "engines",
    "executors",
    "fileserver",
    "grains",
    "log_handlers",
    "matchers",
    "modules",
    "output",
    "pillar",
    "proxy",
    "queues",
    "renderers",
    "returners",
    "roster",
    "runners",
    "sdb",
    "serializers",
    "states",
    "thorium",
    "tops",
    "utils",
    "wheel",
];

/// Where modules are, which interpreter runs them, and what it may use.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `halite: {python: …}`
    pub python: String,
    /// Folders by kind, the first wins.
    pub folders: Vec<(&'static str, Vec<String>)>,
    /// Names that the configuration disables, by kind.
    pub disabled: Vec<(&'static str, Vec<String>)>,
    /// Longest time of one call; `None`: none.
    pub timeout: Option<Duration>,
    /// Most memory the process may use, in bytes; `None`: none.
    pub memory: Option<u64>,
    /// `RLIMIT_AS` for the process, which what it starts inherits; `None`: none.
    pub address_space: Option<u64>,
    /// Serve what is missing from an installed `salt` package.
    pub packages: bool,
    /// A proxy minion asks.
    pub proxy: bool,
}

/// Options with further folders, where the name differs from the kind's.
fn dirs_option(kind: &str) -> &str {
    match kind {
        "modules" => "module_dirs",
        "renderers" => "render_dirs",
        "returners" => "returner_dirs",
        "runners" => "runner_dirs",
        "output" => "outputter_dirs",
        "beacons" => "beacons_dirs",
        "engines" => "engines_dirs",
        "grains" => "grains_dirs",
        "log_handlers" => "log_handlers_dirs",
        "states" => "states_dirs",
        "utils" => "utils_dirs",
        "pillar" => "pillar_dirs",
        "wheel" => "wheel_dirs",
        "fileserver" => "fileserver_dirs",
        _ => "",
    }
}

impl Settings {
    /// Reads the settings of a minion's or master's options.
    pub fn from_opts(opts: &Dict) -> Self {
        let own = opts.get("halite").unwrap_or_default();
        let texts = |value: Option<Value>| -> Vec<String> {
            match value {
                Some(Value::Str(one)) if !one.is_empty() => vec![one.into()],
                Some(list) => {
                    let items = list.items_of_sequence().unwrap_or_default();
                    items.iter().map(|item| item.to_str().into()).collect()
                }
                None => Vec::new(),
            }
        };
        let extension = opts.get("extension_modules").unwrap_or_default().to_str();
        let everywhere = texts(opts.get("module_dirs"));
        let folders = KINDS.map(|kind| {
            let mut folders = Vec::new();
            // `module_dirs` hold a folder per kind; a folder of plain modules counts, too.
            for dir in everywhere.iter().rev() {
                let dir = dir.trim_end_matches('/');
                for name in [format!("{dir}/{kind}"), format!("{dir}/_{kind}")] {
                    if Path::new(&name).is_dir() {
                        folders.push(name);
                        break;
                    }
                }
            }
            let option = dirs_option(kind);
            if !option.is_empty() {
                folders.extend(texts(opts.get(option)));
            }
            if !extension.is_empty() {
                folders.push(format!("{extension}/{kind}"));
                if kind == "output" {
                    folders.push(format!("{extension}/outputters"));
                }
            }
            let mut seen = Vec::new();
            folders.retain(|folder| {
                let new = !seen.contains(folder);
                seen.push(folder.clone());
                new
            });
            (kind, folders)
        });
        let number = |name: &str| own.get(name).and_then(|value| value.as_float());
        let megabytes =
            |name: &str| number(name).filter(|mb| *mb > 0.0).map(|mb| mb as u64 * (1 << 20));
        let memory = match number("python_memory_mb") {
            Some(mb) if mb <= 0.0 => None,
            Some(mb) => Some(mb as u64 * (1 << 20)),
            None => half_of_memory(),
        };
        Self {
            python: own
                .get("python")
                .filter(Value::truthy)
                .map_or_else(|| "python3".into(), |python| python.to_str().to_string()),
            folders: folders.to_vec(),
            disabled: vec![
                ("modules", texts(opts.get("disable_modules"))),
                ("returners", texts(opts.get("disable_returners"))),
            ],
            timeout: number("python_timeout")
                .filter(|seconds| *seconds > 0.0)
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
            memory,
            address_space: megabytes("python_address_space_mb"),
            packages: own.get("python_packages").is_none_or(|on| on.truthy()),
            proxy: opts.get("proxyid").is_some_and(|id| id.truthy()),
        }
    }

    /// Returns the folders of a kind.
    pub fn folders_of(&self, kind: &str) -> &[String] {
        let found = self.folders.iter().find(|(name, _)| *name == kind);
        found.map_or(&[], |(_, folders)| folders.as_slice())
    }

    /// Returns a number that differs when modules were added, changed or removed.
    pub fn fingerprint(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash as _, Hasher as _};
        let mut hasher = DefaultHasher::new();
        let folders = self.folders.iter().flat_map(|(_, folders)| folders);
        for folder in folders {
            let mut files: Vec<_> = std::fs::read_dir(folder)
                .into_iter()
                .flatten()
                .flatten()
                .filter_map(|entry| {
                    let about = entry.metadata().ok()?;
                    Some((entry.path(), about.modified().ok()?, about.len()))
                })
                .filter(|(path, ..)| !path.ends_with("__pycache__"))
                .collect();
            files.sort();
            files.hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Tells whether there is any file of that kind.
    pub fn has_files(&self, kind: &str) -> bool {
        let is_module = |name: &std::ffi::OsStr| {
            let name = name.to_string_lossy();
            let plain = [".py", ".pyc", ".so", ".zip"].iter().any(|end| name.ends_with(end));
            plain && !name.starts_with("__")
        };
        self.folders_of(kind).iter().any(|folder| {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            entries.into_iter().any(|entry| {
                is_module(&entry.file_name()) || entry.path().join("__init__.py").is_file()
            })
        })
    }

    /// The frame that settles the process.
    pub(crate) fn to_value(&self, native: Dict, log_level: i64, device: Option<&str>) -> Value {
        let by_kind = |lists: &[(&'static str, Vec<String>)]| -> Dict {
            lists.iter().map(|(kind, list)| (*kind, Value::list(list.clone()))).collect()
        };
        let settled = halite_value::entries! {
            "folders" => by_kind(&self.folders), "disabled" => by_kind(&self.disabled),
            "native" => native, "log_level" => log_level, "packages" => self.packages,
            "address_space" => self.address_space, "proxy" => self.proxy,
        };
        if let Some(device) = device {
            settled.insert("device", device);
        }
        settled.into()
    }
}

/// Half of the machine's memory: more than any module needs, less than the machine dies of.
fn half_of_memory() -> Option<u64> {
    nix::sys::sysinfo::sysinfo().ok().map(|about| about.ram_total() / 2)
}

#[cfg(test)]
mod tests {
    use halite_value::{entries, list};

    use super::*;

    #[test]
    fn folders_in_salts_order() {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = folder.path().to_string_lossy().into_owned();
        std::fs::create_dir_all(folder.path().join("_modules")).expect("a folder");
        let opts = entries! {
            "extension_modules" => "/x/extmods", "module_dirs" => list![dir.as_str()],
            "states_dirs" => list!["/s"],
        };
        let settings = Settings::from_opts(&opts);
        let expected = [format!("{dir}/_modules"), dir.clone(), "/x/extmods/modules".to_owned()];
        assert_eq!(settings.folders_of("modules"), expected);
        assert_eq!(settings.folders_of("states"), ["/s", "/x/extmods/states"]);
        assert_eq!(settings.folders_of("nothing"), [""; 0]);
        assert!(!settings.has_files("modules"));
        std::fs::write(folder.path().join("_modules/a.py"), "").expect("a file");
        assert!(settings.has_files("modules"));
    }

    #[test]
    fn limits_and_interpreter() {
        let settings = Settings::from_opts(&Dict::new());
        assert_eq!((settings.python.as_str(), settings.timeout), ("python3", None));
        let own = entries! {
            "python" => "/opt/py", "python_timeout" => 2.5, "python_memory_mb" => 100,
            "python_packages" => false,
        };
        let settings = Settings::from_opts(&entries! { "halite" => own });
        assert_eq!(settings.python, "/opt/py");
        assert_eq!(settings.timeout, Some(Duration::from_millis(2500)));
        assert_eq!(settings.memory, Some(100 << 20));
        assert!(!settings.packages);
    }
}
