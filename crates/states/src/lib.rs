//! States: one file per Salt state module, named as Salt names it.
//!
//! A file begins with its `states!` list; each state is a struct whose fields are its arguments,
//! with [`State`](halite_spec::State): observe, plan, apply. States call `modules`, never the
//! reverse, and know nothing of requisites, guards or `test=True`: those are the engine's.

use halite_spec::StateModule;

// gen:begin
pub mod acl;
pub mod alias;
pub mod alternatives;
pub mod apache;
pub mod apache_conf;
pub mod apache_module;
pub mod apache_site;
pub mod archive;
pub mod at;
pub mod augeas;
pub mod beacon;
pub mod blockdev;
pub mod cmd;
pub mod cron;
pub mod debconf;
pub mod disk;
pub mod environ;
pub mod event;
pub mod file;
pub mod firewall;
pub mod firewalld;
pub mod gem;
pub mod git;
pub mod gpg;
pub mod grains;
pub mod group;
pub mod highstate_doc;
pub mod host;
pub mod http;
pub mod ini;
pub mod ipset;
pub mod iptables;
pub mod keyboard;
pub mod kmod;
pub mod locale;
pub mod logrotate;
pub mod r#loop;
pub mod lvm;
pub mod module;
pub mod mount;
pub mod mysql_database;
pub mod mysql_grants;
pub mod mysql_query;
pub mod mysql_user;
pub mod network;
pub mod nftables;
pub mod npm;
pub mod pip;
pub mod pkg;
pub mod pkgrepo;
mod pki;
mod postgres;
pub mod postgres_cluster;
pub mod postgres_database;
pub mod postgres_extension;
pub mod postgres_group;
pub mod postgres_initdb;
pub mod postgres_language;
pub mod postgres_privileges;
pub mod postgres_schema;
pub mod postgres_tablespace;
pub mod postgres_user;
pub mod process;
pub mod pyenv;
pub mod quota;
pub mod rabbitmq_cluster;
pub mod rabbitmq_plugin;
pub mod rabbitmq_policy;
pub mod rabbitmq_upstream;
pub mod rabbitmq_user;
pub mod rabbitmq_vhost;
pub mod raid;
pub mod saltutil;
pub mod schedule;
pub mod selinux;
pub mod service;
pub mod smtp;
pub mod ssh_auth;
pub mod ssh_known_hosts;
pub mod ssh_pki;
pub mod stateconf;
pub mod status;
pub mod supervisord;
pub mod sysctl;
pub mod sysfs;
pub mod test;
pub mod timezone;
pub mod user;
pub mod virtualenv;
pub mod x509;

/// Every state module of this crate.
pub static ALL: &[&StateModule] = &[
    &acl::STATES,
    &alias::STATES,
    &alternatives::STATES,
    &apache::STATES,
    &apache_conf::STATES,
    &apache_module::STATES,
    &apache_site::STATES,
    &archive::STATES,
    &at::STATES,
    &augeas::STATES,
    &beacon::STATES,
    &blockdev::STATES,
    &cmd::STATES,
    &cron::STATES,
    &debconf::STATES,
    &disk::STATES,
    &environ::STATES,
    &event::STATES,
    &file::STATES,
    &firewall::STATES,
    &firewalld::STATES,
    &gem::STATES,
    &git::STATES,
    &gpg::STATES,
    &grains::STATES,
    &group::STATES,
    &highstate_doc::STATES,
    &host::STATES,
    &http::STATES,
    &ini::STATES,
    &ipset::STATES,
    &iptables::STATES,
    &keyboard::STATES,
    &kmod::STATES,
    &locale::STATES,
    &logrotate::STATES,
    &r#loop::STATES,
    &lvm::STATES,
    &module::STATES,
    &mount::STATES,
    &mysql_database::STATES,
    &mysql_grants::STATES,
    &mysql_query::STATES,
    &mysql_user::STATES,
    &network::STATES,
    &nftables::STATES,
    &npm::STATES,
    &pip::STATES,
    &pkg::STATES,
    &pkgrepo::STATES,
    &postgres_cluster::STATES,
    &postgres_database::STATES,
    &postgres_extension::STATES,
    &postgres_group::STATES,
    &postgres_initdb::STATES,
    &postgres_language::STATES,
    &postgres_privileges::STATES,
    &postgres_schema::STATES,
    &postgres_tablespace::STATES,
    &postgres_user::STATES,
    &process::STATES,
    &pyenv::STATES,
    &quota::STATES,
    &rabbitmq_cluster::STATES,
    &rabbitmq_plugin::STATES,
    &rabbitmq_policy::STATES,
    &rabbitmq_upstream::STATES,
    &rabbitmq_user::STATES,
    &rabbitmq_vhost::STATES,
    &raid::STATES,
    &saltutil::STATES,
    &schedule::STATES,
    &selinux::STATES,
    &service::STATES,
    &smtp::STATES,
    &ssh_auth::STATES,
    &ssh_known_hosts::STATES,
    &ssh_pki::STATES,
    &stateconf::STATES,
    &status::STATES,
    &supervisord::STATES,
    &sysctl::STATES,
    &sysfs::STATES,
    &test::STATES,
    &timezone::STATES,
    &user::STATES,
    &virtualenv::STATES,
    &x509::STATES,
];
// gen:end
