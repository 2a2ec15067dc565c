//! Wheel functions: about the master itself.
// gen:pub

use halite_spec::Module;

// gen:begin
pub mod config;
pub mod key;
pub mod minions;

/// Every module of this folder.
pub static ALL: &[&Module] = &[&config::MODULE, &key::MODULE, &minions::MODULE];
// gen:end
