//! Execution modules: one file per Salt module, named as Salt names it.
//!
//! A file begins with its `module!` list; every function below it carries `#[function]`. States
//! call these functions directly (`modules::file::stats(cx, …)`), users by name. `pkg` and
//! `service` are virtual: a folder with one file per provider, chosen by grains in one `match`.
//! Modules never call states.

use halite_spec::Module;

// gen:begin
pub mod cp;
pub mod defaults;
pub mod file;
pub mod hashutil;
pub mod slsutil;
pub mod state;
pub mod temp;
pub mod test;

/// Every module of this crate.
pub static ALL: &[&Module] = &[
    &cp::MODULE,
    &defaults::MODULE,
    &file::MODULE,
    &hashutil::MODULE,
    &slsutil::MODULE,
    &state::MODULE,
    &temp::MODULE,
    &test::MODULE,
];
// gen:end
