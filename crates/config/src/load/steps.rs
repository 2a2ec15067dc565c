//! What is done to options once presets and files are together: one list, by subject.
//!
//! A step names the option it is about and the daemons it is for (programs beside the master count
//! as masters, proxies as minions). Later steps see what earlier ones set: ids come before the
//! folders that may be named after them, and folders before whatever lies in them.

use halite_value::Value;

use super::{
    Request,
    adjust::*,
    master::{
        check_cluster, clean_ssh_minion_opts, keep_acl_for_rest, raise_worker_threads,
        rename_cluster_port, set_master_id, set_worker_pools, wrap_in_list,
    },
    minion::{append_id_to_dirs, set_minion_id},
};
use crate::{
    Error, Machine, Opts,
    files::Found,
    paths::{self, os_join},
    roots,
};

/// What steps may look at beside the options.
pub(super) struct Given<'a> {
    pub(super) request: &'a Request<'a>,
    pub(super) found: &'a Found,
    pub(super) machine: &'a dyn Machine,
}

impl Given<'_> {
    fn daemon(&self) -> &'static str {
        if self.request.role.is_minion() { "minion" } else { "master" }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum For {
    All,
    Master,
    Minion,
}
use For::{All, Master, Minion};

enum Step {
    Sets(fn(&mut Opts, &Given<'_>)),
    /// Sets too, perhaps, but may find that there is nothing to start with.
    Checks(fn(&mut Opts, &Given<'_>) -> Result<(), Error>),
}
use Step::{Checks, Sets};

const STEPS: &[(&str, For, Step)] = &[
    // Names that options had once.
    ("cluster_port", Master, Sets(|opts, given| rename_cluster_port(opts, given.found))),
    ("environment", All, Sets(|opts, given| rename_environment(opts, given.daemon()))),
    ("fileserver_backend", All, Sets(|opts, _| rename_backends(opts))),
    // Who we are.
    ("__cli", All, Sets(|opts, given| opts.set("__cli", given.request.program))),
    ("__fs_update", Master, Sets(|opts, _| opts.set("__fs_update", true))),
    ("__role", All, Sets(|opts, given| opts.set("__role", given.daemon()))),
    ("id", Master, Checks(|opts, given| set_master_id(opts, given.machine))),
    ("id", Minion, Checks(|opts, given| set_minion_id(opts, given.request, given.machine))),
    // Folders.
    ("append_minionid_config_dirs", Minion, Sets(|opts, _| append_id_to_dirs(opts))),
    ("sock_dir", All, Sets(|opts, _| shorten_sock_dir(opts))),
    ("token_dir", Master, Sets(|opts, _| below_cachedir(opts, "token_dir", "tokens"))),
    ("syndic_dir", Master, Sets(|opts, _| below_cachedir(opts, "syndic_dir", "syndics"))),
    ("extension_modules", All, Sets(|opts, _| set_module_dirs(opts))),
    ("root_dir", All, Sets(|opts, given| below_root(opts, given))),
    (
        "__cachedir",
        Minion,
        Sets(|opts, _| set_if_absent(opts, "__cachedir", |own| own.str("cachedir").into())),
    ),
    // Files and pillar.
    (
        "file_roots",
        All,
        Sets(|opts, given| {
            roots::normalize(opts, "file_roots", "file_roots", "/srv/salt", given.machine);
        }),
    ),
    // Salt falls back to the *file* roots here, and says so.
    (
        "pillar_roots",
        Master,
        Sets(|opts, given| {
            roots::normalize(opts, "pillar_roots", "file_roots", "/srv/salt", given.machine);
        }),
    ),
    (
        "pillar_roots",
        Minion,
        Sets(|opts, given| {
            roots::normalize(opts, "pillar_roots", "pillar_roots", "/srv/pillar", given.machine);
        }),
    ),
    ("file_ignore_glob", Master, Sets(|opts, _| wrap_in_list(opts, "file_ignore_glob"))),
    ("file_ignore_regex", Master, Sets(|opts, _| wrap_in_list(opts, "file_ignore_regex"))),
    ("hash_type", All, Sets(|opts, _| lower_hash_type(opts))),
    // Who is let in, and how.
    ("open_mode", All, Sets(|opts, _| demand_true(opts, &["open_mode"]))),
    ("auto_accept", Master, Sets(|opts, _| demand_true(opts, &["auto_accept"]))),
    ("keep_acl_in_token", Master, Sets(|opts, _| keep_acl_for_rest(opts))),
    ("ssl", All, Checks(|opts, _| set_ssl(opts))),
    ("discovery", All, Checks(|opts, given| set_discovery(opts, given.request.role.is_minion()))),
    (
        "publish_signing_algorithm",
        Master,
        Checks(|opts, _| {
            demand_algorithm(opts, "publish_signing_algorithm", " publish signging", &SIGNING)
        }),
    ),
    (
        "cluster_encryption_algorithm",
        Master,
        Checks(|opts, _| {
            demand_algorithm(
                opts,
                "cluster_encryption_algorithm",
                "cluster encryption",
                &ENCRYPTION,
            )
        }),
    ),
    (
        "encryption_algorithm",
        Minion,
        Checks(|opts, _| demand_algorithm(opts, "encryption_algorithm", "encryption", &ENCRYPTION)),
    ),
    (
        "signing_algorithm",
        Minion,
        Checks(|opts, _| demand_algorithm(opts, "signing_algorithm", "signging", &SIGNING)),
    ),
    ("cluster_id", Master, Sets(|opts, _| check_cluster(opts))),
    // Processes.
    ("ipc_write_buffer", All, Sets(|opts, given| set_ipc_buffer(opts, given.found, given.machine))),
    ("worker_threads", Master, Sets(|opts, _| raise_worker_threads(opts))),
    ("worker_pools", Master, Checks(|opts, _| set_worker_pools(opts))),
    // The rest.
    ("beacons", Minion, Sets(|opts, _| set_if_absent(opts, "beacons", |_| Value::dict()))),
    ("return", All, Sets(|opts, _| join_returners(opts))),
    ("ssh_minion_opts", Master, Sets(|opts, _| clean_ssh_minion_opts(opts))),
];

/// Takes the steps of a daemon.
pub(super) fn take(opts: &mut Opts, given: &Given<'_>) -> Result<(), Error> {
    let own = if given.request.role.is_minion() { Minion } else { Master };
    let mut steps = STEPS.iter().filter(|(_, who, _)| [All, own].contains(who));
    steps.try_for_each(|(_, _, step)| match step {
        Sets(step) => {
            step(opts, given);
            Ok(())
        }
        Checks(step) => step(opts, given),
    })
}

fn set_if_absent(opts: &Opts, name: &str, value: fn(&Opts) -> Value) {
    if !opts.values().contains(name) {
        opts.set(name, value(opts));
    }
}

fn below_cachedir(opts: &Opts, name: &str, folder: &str) {
    opts.set(name, os_join(&opts.str("cachedir"), folder));
}

/// Paths of every daemon that lie below `root_dir`.
const PATHS: [&str; 5] = ["cachedir", "extension_modules", "pidfile", "pki_dir", "sock_dir"];
/// Further ones of the master.
pub(super) const MASTER_PATHS: [&str; 4] =
    ["autoreject_file", "autosign_file", "autosign_grains_dir", "token_dir"];

fn below_root(opts: &Opts, given: &Given<'_>) {
    let here = given.machine.current_dir();
    paths::prepend_root_dir(opts, &PATHS, &here);
    paths::prepend_root_dir_to_logs(opts, &["key_logfile", "log_file"], &here);
    if !given.request.role.is_minion() {
        paths::prepend_root_dir(opts, &MASTER_PATHS, &here);
        paths::prepend_root_dir(opts, &["sqlite_queue_dir", "syndic_dir"], &here);
        paths::prepend_root_dir_to_logs(opts, &["ssh_log_file"], &here);
    }
}

/// The same for a syndic, which is put together of a master and a minion.
pub(super) fn syndic_below_root(opts: &Opts, here: &str) {
    paths::prepend_root_dir(opts, &PATHS, here);
    paths::prepend_root_dir(opts, &MASTER_PATHS, here);
    paths::prepend_root_dir_to_logs(opts, &["key_logfile", "log_file", "syndic_log_file"], here);
}
