//! Execution modules: one file per Salt module, named as Salt names it.
//!
//! A file begins with its `module!` list; every function below it carries `#[function]`. States
//! call these functions directly (`modules::file::stats(cx, …)`), users by name. `pkg` and
//! `service` are virtual: a folder with one file per provider, chosen by grains in one `match`.
//! Modules never call states.

use halite_spec::Module;

// gen:begin
pub mod acl;
pub mod aliases;
pub mod alternatives;
pub mod apache;
pub mod archive;
pub mod asymmetric;
pub mod at;
pub mod augeas;
pub mod beacons;
pub mod bridge;
pub mod cmd;
pub mod config;
pub mod cp;
pub mod cron;
pub mod cryptdev;
pub mod data;
pub mod debconf;
pub mod defaults;
pub mod devmap;
pub mod dig;
pub mod disk;
pub mod dnsutil;
pub mod environ;
pub mod ethtool;
pub mod event;
pub mod extfs;
pub mod file;
pub mod firewalld;
pub mod gem;
pub mod git;
pub mod gpg;
pub mod grains;
pub mod group;
pub mod haproxy;
pub mod hashutil;
pub mod hosts;
pub mod http;
pub mod incron;
pub mod ini;
pub mod ip;
pub mod ipset;
pub mod iptables;
pub mod jinja;
pub mod kernelpkg;
pub mod key;
pub mod keyboard;
pub mod kmod;
pub mod locale;
pub mod locate;
pub mod log;
pub mod logrotate;
pub mod lowpkg;
pub mod lvm;
pub mod r#match;
pub mod mine;
pub mod minion;
pub mod mount;
pub mod mysql;
pub mod netaddress;
pub mod network;
pub mod nfs3;
pub mod nftables;
pub mod npm;
pub mod out;
pub mod pam;
pub mod partition;
pub mod pillar;
pub mod pip;
pub mod pkg;
pub mod pkg_resource;
pub mod pki;
pub mod postgres;
pub mod ps;
pub mod publish;
pub mod pyenv;
pub mod quota;
pub mod rabbitmq;
pub mod raid;
pub mod random;
pub mod rsync;
pub mod salt_version;
pub mod saltcheck;
pub mod saltutil;
pub mod schedule;
pub mod scsi;
pub mod sdb;
pub mod selinux;
pub mod service;
pub mod shadow;
pub mod slsutil;
pub mod smtp;
pub mod sqlite3;
pub mod ssh;
pub mod ssh_pki;
pub mod state;
pub mod status;
pub mod supervisord;
pub mod sys;
pub mod sysctl;
pub mod sysfs;
pub mod system;
pub mod temp;
pub mod test;
pub mod timezone;
pub mod udev;
pub mod user;
pub mod virtualenv;
pub mod webutil;
pub mod x509;
pub mod xfs;
pub mod xml;

/// Every module of this crate.
pub static ALL: &[&Module] = &[
    &acl::MODULE,
    &aliases::MODULE,
    &alternatives::MODULE,
    &apache::MODULE,
    &archive::MODULE,
    &asymmetric::MODULE,
    &at::MODULE,
    &augeas::MODULE,
    &beacons::MODULE,
    &bridge::MODULE,
    &cmd::MODULE,
    &config::MODULE,
    &cp::MODULE,
    &cron::MODULE,
    &cryptdev::MODULE,
    &data::MODULE,
    &debconf::MODULE,
    &defaults::MODULE,
    &devmap::MODULE,
    &dig::MODULE,
    &disk::MODULE,
    &dnsutil::MODULE,
    &environ::MODULE,
    &ethtool::MODULE,
    &event::MODULE,
    &extfs::MODULE,
    &file::MODULE,
    &firewalld::MODULE,
    &gem::MODULE,
    &git::MODULE,
    &gpg::MODULE,
    &grains::MODULE,
    &group::MODULE,
    &haproxy::MODULE,
    &hashutil::MODULE,
    &hosts::MODULE,
    &http::MODULE,
    &incron::MODULE,
    &ini::MODULE,
    &ip::MODULE,
    &ipset::MODULE,
    &iptables::MODULE,
    &jinja::MODULE,
    &kernelpkg::MODULE,
    &key::MODULE,
    &keyboard::MODULE,
    &kmod::MODULE,
    &locale::MODULE,
    &locate::MODULE,
    &log::MODULE,
    &logrotate::MODULE,
    &lowpkg::MODULE,
    &lvm::MODULE,
    &r#match::MODULE,
    &mine::MODULE,
    &minion::MODULE,
    &mount::MODULE,
    &mysql::MODULE,
    &netaddress::MODULE,
    &network::MODULE,
    &nfs3::MODULE,
    &nftables::MODULE,
    &npm::MODULE,
    &out::MODULE,
    &pam::MODULE,
    &partition::MODULE,
    &pillar::MODULE,
    &pip::MODULE,
    &pkg::MODULE,
    &pkg_resource::MODULE,
    &postgres::MODULE,
    &ps::MODULE,
    &publish::MODULE,
    &pyenv::MODULE,
    &quota::MODULE,
    &rabbitmq::MODULE,
    &raid::MODULE,
    &random::MODULE,
    &rsync::MODULE,
    &salt_version::MODULE,
    &saltcheck::MODULE,
    &saltutil::MODULE,
    &schedule::MODULE,
    &scsi::MODULE,
    &sdb::MODULE,
    &selinux::MODULE,
    &service::MODULE,
    &shadow::MODULE,
    &slsutil::MODULE,
    &smtp::MODULE,
    &sqlite3::MODULE,
    &ssh::MODULE,
    &ssh_pki::MODULE,
    &state::MODULE,
    &status::MODULE,
    &supervisord::MODULE,
    &sys::MODULE,
    &sysctl::MODULE,
    &sysfs::MODULE,
    &system::MODULE,
    &temp::MODULE,
    &test::MODULE,
    &timezone::MODULE,
    &udev::MODULE,
    &user::MODULE,
    &virtualenv::MODULE,
    &webutil::MODULE,
    &x509::MODULE,
    &xfs::MODULE,
    &xml::MODULE,
];
// gen:end
