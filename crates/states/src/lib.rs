//! States: one file per Salt state module, named as Salt names it.
//!
//! A file begins with its `states!` list; each state is a struct whose fields are its arguments,
//! with [`State`](halite_spec::State): observe, plan, apply. States call `modules`, never the
//! reverse, and know nothing of requisites, guards or `test=True`: those are the engine's.

use halite_spec::StateModule;

// gen:begin
pub mod beacon;
pub mod cmd;
pub mod cron;
pub mod environ;
pub mod file;
pub mod git;
pub mod grains;
pub mod group;
pub mod host;
pub mod kmod;
pub mod locale;
pub mod module;
pub mod mount;
pub mod pkg;
pub mod schedule;
pub mod service;
pub mod ssh_auth;
pub mod ssh_known_hosts;
pub mod sysctl;
pub mod test;
pub mod timezone;
pub mod user;

/// Every state module of this crate.
pub static ALL: &[&StateModule] = &[
    &beacon::STATES,
    &cmd::STATES,
    &cron::STATES,
    &environ::STATES,
    &file::STATES,
    &git::STATES,
    &grains::STATES,
    &group::STATES,
    &host::STATES,
    &kmod::STATES,
    &locale::STATES,
    &module::STATES,
    &mount::STATES,
    &pkg::STATES,
    &schedule::STATES,
    &service::STATES,
    &ssh_auth::STATES,
    &ssh_known_hosts::STATES,
    &sysctl::STATES,
    &test::STATES,
    &timezone::STATES,
    &user::STATES,
];
// gen:end
