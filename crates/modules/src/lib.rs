//! Execution modules: one file per Salt module, named as Salt names it.
//!
//! A file begins with its `module!` list; every function below it carries `#[function]`. States
//! call these functions directly (`modules::file::stats(cx, …)`), users by name. `pkg` and
//! `service` are virtual: a folder with one file per provider, chosen by grains in one `match`.
//! Modules never call states.

use halite_spec::Module;

// gen:begin
pub mod cmd;
pub mod debconf;
pub mod lowpkg;
pub mod pkg;
pub mod pkg_resource;
pub mod service;
pub mod state;
pub mod test;

/// Every module of this crate.
pub static ALL: &[&Module] = &[
    &cmd::MODULE,
    &debconf::MODULE,
    &lowpkg::MODULE,
    &pkg::MODULE,
    &pkg_resource::MODULE,
    &service::MODULE,
    &state::MODULE,
    &test::MODULE,
];
// gen:end
