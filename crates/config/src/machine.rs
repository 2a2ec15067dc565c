//! What the configuration needs to know of the world, as a trait.
//!
//! The command line has the real implementation; [`Memory`] is a machine made of a few strings.

use std::{collections::BTreeMap, io};

use crate::fits;

/// A machine with files, an environment and a name.
pub trait Machine {
    /// Returns what a file holds.
    fn read(&self, path: &str) -> io::Result<Vec<u8>>;
    /// Returns the paths a shell pattern matches, in any order.
    fn glob(&self, pattern: &str) -> Vec<String>;
    fn is_file(&self, path: &str) -> bool;
    fn is_dir(&self, path: &str) -> bool;
    /// Returns how many seconds ago a file was changed.
    fn age(&self, path: &str) -> Option<u64>;
    /// Writes a file, and its folder if that is missing.
    fn write(&self, path: &str, text: &str) -> io::Result<()>;
    /// Returns an environment variable.
    fn env(&self, name: &str) -> Option<String>;
    /// Returns the name of the user this process belongs to.
    fn user(&self) -> String;
    /// Returns that user's home folder.
    fn home(&self) -> String;
    /// Returns the folder relative paths start from.
    fn current_dir(&self) -> String;
    /// Returns names of this machine, the best first: the fully qualified one, the node name, the
    /// host name; then, as a last resort, addresses. Slow, each by itself: it may ask the network.
    fn host_names(&self) -> Box<dyn Iterator<Item = String> + '_>;
    /// Returns the machine's memory in bytes.
    fn memory(&self) -> u64;
}

/// A machine that exists only in memory.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    pub files: BTreeMap<String, String>,
    pub env: BTreeMap<String, String>,
    pub host_names: Vec<String>,
}

impl Memory {
    /// Returns every path there is: the files and the folders above them.
    fn paths(&self) -> Vec<String> {
        let mut paths: Vec<String> = self.files.keys().cloned().collect();
        for file in self.files.keys() {
            let mut path = file.as_str();
            while let Some((parent, _)) = path.rsplit_once('/') {
                if parent.is_empty() || paths.iter().any(|known| known == parent) {
                    break;
                }
                paths.push(parent.into());
                path = parent;
            }
        }
        paths
    }
}

impl Machine for Memory {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        self.files
            .get(path)
            .map(|text| text.clone().into_bytes())
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn glob(&self, pattern: &str) -> Vec<String> {
        let parts: Vec<&str> = pattern.trim_end_matches('/').split('/').collect();
        let all = |path: &String| {
            let names: Vec<&str> = path.split('/').collect();
            names.len() == parts.len()
                && parts.iter().zip(names).all(|(part, name)| {
                    // As everywhere: a leading dot must be spelled out.
                    fits(part, name) && (part.starts_with('.') || !name.starts_with('.'))
                })
        };
        self.paths().into_iter().filter(all).collect()
    }

    fn is_file(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    fn is_dir(&self, path: &str) -> bool {
        !self.is_file(path) && self.paths().iter().any(|known| known == path)
    }

    fn age(&self, path: &str) -> Option<u64> {
        self.is_file(path).then_some(0)
    }

    fn write(&self, _: &str, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn env(&self, name: &str) -> Option<String> {
        self.env.get(name).cloned()
    }

    fn user(&self) -> String {
        "root".into()
    }

    fn home(&self) -> String {
        "/home/op".into()
    }

    fn current_dir(&self) -> String {
        "/".into()
    }

    fn host_names(&self) -> Box<dyn Iterator<Item = String> + '_> {
        Box::new(self.host_names.iter().cloned())
    }

    fn memory(&self) -> u64 {
        8 << 30
    }
}
