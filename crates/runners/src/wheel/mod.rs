//! Wheel functions: about the master itself.
// gen:pub

use halite_spec::Module;

// gen:begin
pub mod config;
pub mod error;
pub mod file_roots;
pub mod key;
pub mod minions;
pub mod pillar_roots;
mod roots;

/// Every module of this folder.
pub static ALL: &[&Module] = &[
    &config::MODULE,
    &error::MODULE,
    &file_roots::MODULE,
    &key::MODULE,
    &minions::MODULE,
    &pillar_roots::MODULE,
];
// gen:end
