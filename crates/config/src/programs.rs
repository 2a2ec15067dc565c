//! Options and other presets of the programs that read the master's or the minion's file and add to it.
//!
//! Each program has a table of options of its own, and an overlay: presets that replace those of the daemon.

use crate::option::{BOOL, DICT, INT, LIST, Opt, Preset as P, STR, opt};

/// Options of proxy minions.
pub static PROXY: &[Opt] = &[
    opt(
        "add_proxymodule_to_opts",
        BOOL,
        P::Bool(false),
        "Put the loaded proxy module into the options of a proxy minion.",
    )
    .acts(),
    opt("proxy_always_alive", BOOL, P::Bool(true), "The proxied device is reachable all the time."),
    opt(
        "proxy_deep_merge_pillar_in_opts",
        BOOL,
        P::Bool(false),
        "Merge nested pillar data into the options of a proxy minion.",
    )
    .acts(),
    opt("proxy_keep_alive", BOOL, P::Bool(true), "Check the connection to the device.").acts(),
    opt("proxy_keep_alive_interval", INT, P::Int(1), "Minutes between two such checks.").acts(),
    opt(
        "proxy_merge_grains_in_module",
        BOOL,
        P::Bool(true),
        "Merge the grains of the proxy module.",
    )
    .acts(),
    opt(
        "proxy_merge_pillar_in_opts",
        BOOL,
        P::Bool(false),
        "Merge pillar data into the options of a proxy minion.",
    )
    .acts(),
    opt(
        "proxy_merge_pillar_in_opts_strategy",
        STR,
        P::Str("smart"),
        "How pillar data is merged into the options.",
    )
    .acts(),
    opt(
        "proxy_mines_pillar",
        BOOL,
        P::Bool(true),
        "Take mine functions of a proxy minion from pillar.",
    ),
];

/// What a proxy minion presets differently from a minion.
pub static PROXY_PRESETS: &[(&str, P)] = &[
    (
        "append_minionid_config_dirs",
        P::List(&[
            P::Str("cachedir"),
            P::Str("pidfile"),
            P::Str("default_include"),
            P::Str("extension_modules"),
        ]),
    ),
    ("cachedir", P::Cache("proxy")),
    ("conf_file", P::Etc("proxy")),
    ("default_include", P::Str("proxy.d/*.conf")),
    ("extension_modules", P::Cache("proxy/extmods")),
    ("features", P::Dict(&[])),
    ("log_file", P::Log("proxy")),
    ("pki_dir", P::Etc("pki/proxy")),
    ("sock_dir", P::Run("salt/proxy")),
];

/// Options of salt-api.
pub static API: &[Opt] = &[
    opt("api_logfile", STR, P::Log("api"), "Log file of salt-api.").unchecked().acts(),
    opt("api_pidfile", STR, P::Run("salt-api.pid"), "File with the process id of salt-api.")
        .unchecked(),
    opt("rest_timeout", INT, P::Int(300), "Seconds an API request may take."),
];

/// Options of salt-cloud.
pub static CLOUD: &[Opt] = &[
    opt(
        "bootstrap_delay",
        INT,
        P::Int(0),
        "Seconds to wait after creating a cloud machine before it is bootstrapped.",
    ),
    opt("cache_event_strip_fields", LIST, P::Absent, "Fields left out of cloud cache events.")
        .unchecked(),
    opt("delete_sshkeys", BOOL, P::Bool(false), "Forget the host keys of destroyed machines.")
        .unchecked(),
    opt("deploy", BOOL, P::Absent, "Install a minion on new machines.").unchecked(),
    opt(
        "deploy_scripts_search_path",
        STR,
        P::Str("cloud.deploy.d"),
        "Folders with bootstrap scripts.",
    )
    .unchecked(),
    opt("diff_cache_events", BOOL, P::Absent, "Fire an event when a machine's data changed.")
        .unchecked(),
    opt(
        "enable_cloud_grains",
        BOOL,
        P::Absent,
        "Put the cloud's data into the grains of new machines.",
    )
    .unchecked(),
    opt(
        "enable_hard_maps",
        BOOL,
        P::Bool(false),
        "Allow maps to destroy machines they do not mention.",
    )
    .unchecked(),
    opt("filter_events", DICT, P::Absent, "Which data cloud events carry.").unchecked(),
    opt("master_config", STR, P::Absent, "Master configuration salt-cloud reads.").unchecked(),
    opt("minion", DICT, P::Absent, "Options written into the configuration of new minions.")
        .unchecked(),
    opt("os", STR, P::Str(""), "Operating system that selects the bootstrap script.").unchecked(),
    opt("profiles_config", STR, P::Absent, "File with the profiles of salt-cloud.").unchecked(),
    opt("providers_config", STR, P::Absent, "File with the providers of salt-cloud.").unchecked(),
    opt("script", STR, P::Str("bootstrap-salt"), "Script that bootstraps new machines.")
        .unchecked(),
    opt("ssh_auth", STR, P::Str(""), "Way of signing in to new machines.").unchecked(),
    opt("start_action", STR, P::None, "Function run on a new machine once its minion is up.")
        .unchecked(),
    opt("sync_after_install", STR, P::Absent, "What is synchronised to a new minion.").unchecked(),
    opt("update_cachedir", BOOL, P::Absent, "Keep an index of the machines.").unchecked(),
];

/// What salt-cloud presets differently from the master.
pub static CLOUD_PRESETS: &[(&str, P)] = &[
    ("cache", P::Str("localfs")),
    ("cachedir", P::Cache("cloud")),
    ("default_include", P::Str("cloud.conf.d/*.conf")),
    ("features", P::Dict(&[])),
    ("keysize", P::Int(4096)),
    ("log_datefmt", P::Str("%H:%M:%S")),
    ("log_datefmt_logfile", P::Str("%Y-%m-%d %H:%M:%S")),
    ("log_file", P::Log("cloud")),
    ("log_fmt_console", P::Str("[%(levelname)-8s] %(message)s")),
    ("log_fmt_jid", P::Str("[JID: %(jid)s]")),
    (
        "log_fmt_logfile",
        P::Str(
            "%(asctime)s,%(msecs)03d [%(name)-17s:%(lineno)-4d][%(levelname)-8s][%(process)d] %(message)s",
        ),
    ),
    ("log_fmt_minion_id", P::Str("[%(minion_id)s]")),
    ("log_granular_levels", P::Dict(&[])),
    ("log_level", P::Str("warning")),
    ("log_level_logfile", P::None),
    ("log_rotate_backup_count", P::Int(0)),
    ("log_rotate_max_bytes", P::Int(0)),
    ("verify_env", P::Bool(true)),
];

/// Options of spm.
pub static SPM: &[Opt] = &[
    opt("formula_path", STR, P::Srv("spm/salt"), "Folder for installed formulas.").unchecked(),
    opt("pillar_path", STR, P::Srv("spm/pillar"), "Folder for pillar of installed formulas.")
        .unchecked(),
    opt("reactor_path", STR, P::Srv("spm/reactor"), "Folder for reactors of installed formulas.")
        .unchecked(),
    opt("spm_build_dir", STR, P::Srv("spm_build"), "Folder for built packages.").unchecked(),
    opt(
        "spm_build_exclude",
        LIST,
        P::List(&[P::Str("CVS"), P::Str(".hg"), P::Str(".git"), P::Str(".svn")]),
        "Names left out of packages.",
    )
    .unchecked(),
    opt("spm_cache_dir", STR, P::Cache("spm"), "Cache folder of spm.").unchecked(),
    opt("spm_conf_file", STR, P::Etc("spm"), "Configuration file of spm.").unchecked(),
    opt("spm_db", STR, P::Cache("spm/packages.db"), "Database of installed packages.").unchecked(),
    opt(
        "spm_default_include",
        STR,
        P::Str("spm.d/*.conf"),
        "Pattern of further spm configuration files.",
    )
    .unchecked(),
    opt("spm_logfile", STR, P::Log("spm"), "Log file of spm.").unchecked(),
    opt("spm_node_type", STR, P::Str(""), "Whether spm runs on a master or a minion.").unchecked(),
    opt(
        "spm_repo_dups",
        STR,
        P::Str("ignore"),
        "What to do when a package is in several repositories.",
    )
    .unchecked(),
    opt("spm_repos_config", STR, P::Etc("spm.repos"), "File with the package repositories.")
        .unchecked(),
    opt("spm_share_dir", STR, P::Share("salt/spm"), "Folder for shared files of packages.")
        .unchecked(),
];
