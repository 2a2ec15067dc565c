//! Execution modules: one file per Salt module, named as Salt names it.
//!
//! A file begins with its `module!` list; every function below it carries `#[function]`. States
//! call these functions directly (`modules::file::stats(cx, …)`), users by name. `pkg` and
//! `service` are virtual: a folder with one file per provider, chosen by grains in one `match`.
//! Modules never call states.

use halite_spec::Module;

// gen:begin
pub mod cmd;
pub mod config;
pub mod cp;
pub mod cron;
pub mod data;
pub mod environ;
pub mod file;
pub mod git;
pub mod grains;
pub mod group;
pub mod hashutil;
pub mod hosts;
pub mod kmod;
pub mod locale;
pub mod log;
pub mod r#match;
pub mod mount;
pub mod pillar;
pub mod random;
pub mod shadow;
pub mod ssh;
pub mod state;
pub mod sys;
pub mod sysctl;
pub mod temp;
pub mod test;
pub mod timezone;
pub mod user;

/// Every module of this crate.
pub static ALL: &[&Module] = &[
    &cmd::MODULE,
    &config::MODULE,
    &cp::MODULE,
    &cron::MODULE,
    &data::MODULE,
    &environ::MODULE,
    &file::MODULE,
    &git::MODULE,
    &grains::MODULE,
    &group::MODULE,
    &hashutil::MODULE,
    &hosts::MODULE,
    &kmod::MODULE,
    &locale::MODULE,
    &log::MODULE,
    &r#match::MODULE,
    &mount::MODULE,
    &pillar::MODULE,
    &random::MODULE,
    &shadow::MODULE,
    &ssh::MODULE,
    &state::MODULE,
    &sys::MODULE,
    &sysctl::MODULE,
    &temp::MODULE,
    &test::MODULE,
    &timezone::MODULE,
    &user::MODULE,
];
// gen:end
