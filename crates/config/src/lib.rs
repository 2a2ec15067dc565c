//! The configuration: every option declared once, and the files that set them.
//!
//! Start with [`load`]: it reads the main file of a program, its `*.d/*.conf` and `include` files,
//! lays them over the presets of the [`Role`], adjusts paths and ids as Salt does, and returns
//! [`Opts`] with a list of [`Warning`]s. The tables are in `common.rs`, `master.rs`, `minion.rs`
//! and `programs.rs`; one option is one line there.
//!
//! This crate touches nothing itself: files, environment and host names come through [`Machine`],
//! so that tests run on a machine of their own. Surprising on first sight:
//! - files of `*.d` are merged *into each other* at every depth, lists joined; but the result
//!   replaces what the main file says, option by option;
//! - a wrong type is only a warning and the value stays; code that reads an option must cope;
//! - `root_dir` goes before absolute paths too, unless they already begin with it.

mod address;
pub mod common;
mod files;
mod glob;
mod id;
mod load;
mod machine;
pub mod master;
pub mod minion;
mod option;
mod opts;
mod paths;
pub mod programs;
mod roots;
mod types;

pub use address::{MasterAddress, parse_host_port};

pub use files::read as read_file;
pub use glob::fits;
pub use load::{Request, load};
pub use machine::{Machine, Memory};
pub use option::{Facts, Opt, Preset, Type};
pub use opts::{Opts, Warning, WarningKind};
pub use paths::{abspath, join, normalize, prepend_root_dir};

/// Where configuration lives unless `-c` or `SALT_CONFIG_DIR` say otherwise.
pub const CONFIG_DIR: &str = "/etc/salt";
/// Where caches live unless `root_dir` or `cachedir` say otherwise.
pub const CACHE_DIR: &str = "/var/cache/salt";

/// Whose configuration is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Master,
    Minion,
    /// A program beside the master: `salt`, `salt-key`, `salt-run`.
    Client,
    Api,
    Syndic,
    Proxy,
    Cloud,
}

impl Role {
    /// Returns the tables that hold the options of this role, in order of precedence.
    #[must_use]
    pub fn tables(self) -> Vec<&'static [Opt]> {
        match self {
            Self::Master | Self::Client => vec![common::OPTS, master::OPTS],
            Self::Api => vec![common::OPTS, master::OPTS, programs::API],
            Self::Cloud => vec![common::OPTS, master::OPTS, programs::CLOUD],
            Self::Minion => vec![common::OPTS, minion::OPTS],
            Self::Proxy => vec![common::OPTS, minion::OPTS, programs::PROXY],
            Self::Syndic => vec![common::OPTS, minion::OPTS, master::OPTS],
        }
    }

    /// Tells whether the presets of the minion hold for options both daemons have.
    #[must_use]
    pub fn is_minion(self) -> bool {
        matches!(self, Self::Minion | Self::Proxy)
    }
}

/// All tables of options.
pub static TABLES: &[&[Opt]] = &[
    common::OPTS,
    master::OPTS,
    minion::OPTS,
    programs::PROXY,
    programs::API,
    programs::CLOUD,
    programs::SPM,
];

/// Returns the declaration of an option, whoever it belongs to.
#[must_use]
pub fn find(name: &str) -> Option<&'static Opt> {
    TABLES.iter().flat_map(|table| table.iter()).find(|opt| opt.name == name)
}

/// Returns the option a misspelt name probably means.
#[must_use]
pub fn suggest(name: &str) -> Option<&'static str> {
    let names = TABLES.iter().flat_map(|table| table.iter()).map(|opt| opt.name);
    halite_value::suggest::nearest(name, names)
}

/// The configuration cannot be used at all.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file is no YAML.
    #[error("Error parsing configuration file: {file} - {message}")]
    Syntax { file: String, line: u32, column: u32, message: String },
    /// A file holds something else than options.
    #[error(
        "Error parsing configuration file: {file} - conf should be a document, not <class '{found}'>."
    )]
    NotAMap { file: String, found: String },
    /// A file is there but cannot be read.
    #[error("Failed to load configuration: {file}: {source}")]
    Read { file: String, source: std::io::Error },
    /// An option has a value nothing can be done with.
    #[error("{message}")]
    Invalid { option: &'static str, message: String },
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_option_is_declared_once_with_a_sentence() {
        let mut seen = HashSet::new();
        for opt in TABLES.iter().flat_map(|table| table.iter()) {
            assert!(seen.insert(opt.name), "{} is declared twice", opt.name);
            assert!(
                opt.about.ends_with('.') || opt.about.ends_with(')'),
                "{}: no sentence",
                opt.name
            );
        }
        assert!(seen.len() > 600);
    }

    #[test]
    fn presets_have_the_declared_type() {
        let facts = Facts { user: "root".into(), home: "/home/op".into() };
        for opt in TABLES.iter().flat_map(|table| table.iter()).filter(|opt| opt.checked) {
            for preset in [opt.master, opt.minion] {
                let Some(value) = preset.value(&facts) else { continue };
                // Salt presets some text options with None.
                assert!(
                    value.is_null() || types::mismatch(opt, &value).is_none(),
                    "{}: {value:?} is none of {:?}",
                    opt.name,
                    opt.types
                );
            }
        }
    }

    #[test]
    fn a_slip_is_recognised() {
        assert_eq!(suggest("file_root"), Some("file_roots"));
        assert_eq!(suggest("mastr"), Some("master"));
        assert_eq!(suggest("something_entirely_different"), None);
    }
}
