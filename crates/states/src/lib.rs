//! States: one file per Salt state module, named as Salt names it.
//!
//! A file begins with its `states!` list; each state is a struct whose fields are its arguments,
//! with [`State`](halite_spec::State): observe, plan, apply. States call `modules`, never the
//! reverse, and know nothing of requisites, guards or `test=True`: those are the engine's.

use halite_spec::StateModule;

// gen:begin
pub mod alternatives;
pub mod cmd;
pub mod cron;
pub mod debconf;
pub mod environ;
pub mod file;
pub mod gem;
pub mod git;
pub mod grains;
pub mod group;
pub mod host;
pub mod kmod;
pub mod locale;
pub mod module;
pub mod mount;
pub mod npm;
pub mod pip;
pub mod pkg;
pub mod pkgrepo;
pub mod postgres_database;
pub mod postgres_extension;
pub mod postgres_group;
pub mod postgres_initdb;
pub mod postgres_language;
pub mod postgres_privileges;
pub mod postgres_schema;
pub mod postgres_tablespace;
pub mod postgres_user;
pub mod service;
pub mod ssh_auth;
pub mod ssh_known_hosts;
pub mod sysctl;
pub mod test;
pub mod timezone;
pub mod user;
pub mod virtualenv;

/// Every state module of this crate.
pub static ALL: &[&StateModule] = &[
    &alternatives::STATES,
    &cmd::STATES,
    &cron::STATES,
    &debconf::STATES,
    &environ::STATES,
    &file::STATES,
    &gem::STATES,
    &git::STATES,
    &grains::STATES,
    &group::STATES,
    &host::STATES,
    &kmod::STATES,
    &locale::STATES,
    &module::STATES,
    &mount::STATES,
    &npm::STATES,
    &pip::STATES,
    &pkg::STATES,
    &pkgrepo::STATES,
    &postgres_database::STATES,
    &postgres_extension::STATES,
    &postgres_group::STATES,
    &postgres_initdb::STATES,
    &postgres_language::STATES,
    &postgres_privileges::STATES,
    &postgres_schema::STATES,
    &postgres_tablespace::STATES,
    &postgres_user::STATES,
    &service::STATES,
    &ssh_auth::STATES,
    &ssh_known_hosts::STATES,
    &sysctl::STATES,
    &test::STATES,
    &timezone::STATES,
    &user::STATES,
    &virtualenv::STATES,
];
// gen:end
