//! What the jobs look through: the host, the options, and what several of them need.

use std::{path::Path, sync::OnceLock, time::Duration};

use halite_spec::{
    Command, Host,
    host::{Interface, Output},
};
use halite_value::Dict;

pub(crate) struct Probe<'a> {
    pub(crate) host: &'a dyn Host,
    pub(crate) opts: &'a Dict,
    interfaces: OnceLock<Vec<Interface>>,
}

impl<'a> Probe<'a> {
    pub(crate) fn new(host: &'a dyn Host, opts: &'a Dict) -> Self {
        Self { host, opts, interfaces: OnceLock::new() }
    }

    /// Returns the network interfaces, asked for once.
    pub(crate) fn interfaces(&self) -> &[Interface] {
        self.interfaces.get_or_init(|| self.host.interfaces().unwrap_or_default())
    }

    /// Returns a file's text; nothing if it cannot be read.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        self.host.read_text(Path::new(path)).ok()
    }

    /// As [`Self::text`], without the blanks around it.
    pub(crate) fn trimmed(&self, path: &str) -> Option<String> {
        self.text(path).map(|text| text.trim().to_owned())
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.host.exists(Path::new(path)).unwrap_or(false)
    }

    pub(crate) fn is_file(&self, path: &str) -> bool {
        self.host.is_file(Path::new(path)).unwrap_or(false)
    }

    pub(crate) fn is_dir(&self, path: &str) -> bool {
        self.host.is_dir(Path::new(path)).unwrap_or(false)
    }

    /// Returns the names in a folder; none if there is none.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        let names = self.host.read_dir(Path::new(path)).unwrap_or_default();
        names.iter().map(|name| name.to_string_lossy().into_owned()).collect()
    }

    pub(crate) fn has_program(&self, name: &str) -> bool {
        self.host.which(name).is_some()
    }

    /// Runs a program that only looks; nothing if it is not there.
    pub(crate) fn run(&self, words: &[&str]) -> Option<Output> {
        let (program, args) = words.split_first()?;
        let program = self.host.which(program)?;
        let command = Command::new(program)
            .args(args.iter().copied())
            .env("LC_ALL", "C")
            .timeout(Duration::from_secs(10))
            .query();
        self.host.run(&command).ok()
    }

    /// Returns an option that is on unless it is set to false.
    pub(crate) fn enabled(&self, option: &str) -> bool {
        self.opts.get(option).and_then(|value| value.as_bool()) != Some(false)
    }

    pub(crate) fn opt_text(&self, option: &str) -> String {
        self.opts.get(option).map(|value| value.to_str().to_string()).unwrap_or_default()
    }
}
