//! The master, and the programs that read its file: clients, salt-api, salt-cloud.

use halite_value::{Dict, Value};

use super::{
    Request,
    adjust::apply_log_dir,
    found, overlaid, presets,
    steps::{self, Given},
};
use crate::{
    Error, Facts, Machine, Opts, Role, WarningKind,
    files::{self, Found},
    id,
    paths::{self, os_join},
    programs,
};

pub(super) fn master(request: &Request<'_>, machine: &dyn Machine) -> Result<Opts, Error> {
    let (_, found) = found(request, "master", "SALT_MASTER_CONFIG", "master.d/*.conf", machine)?;
    master_from(request, &found, machine)
}

fn master_from(request: &Request<'_>, found: &Found, machine: &dyn Machine) -> Result<Opts, Error> {
    apply_log_dir(found, "/var/log/salt/master");
    let mut opts = overlaid(request.role, presets(request.role, machine), found);
    steps::take(&mut opts, &Given { request, found, machine })?;
    Ok(opts)
}

pub(super) fn rename_cluster_port(opts: &mut Opts, found: &Found) {
    let Some(port) = found.values.get("cluster_port") else { return };
    if found.values.contains("cluster_pool_port") {
        return;
    }
    opts.adjusted(
        "cluster_port",
        "The 'cluster_port' master opt is deprecated and will be removed in Argon+1 / Potassium; use 'cluster_pool_port' instead.",
    );
    opts.set("cluster_pool_port", port);
}

/// Tokens of the `rest` authentication must hold the permissions: there is no password to ask again with.
pub(super) fn keep_acl_for_rest(opts: &mut Opts) {
    if !opts.dict("external_auth").contains("rest") {
        return;
    }
    if opts.get("keep_acl_in_token").and_then(|value| value.as_bool()) == Some(false) {
        opts.adjusted(
            "keep_acl_in_token",
            "The 'rest' external_auth backend requires 'keep_acl_in_token' to be True. Setting 'keep_acl_in_token' to True.",
        );
    }
    opts.set("keep_acl_in_token", true);
}

pub(super) fn set_master_id(opts: &Opts, machine: &dyn Machine) -> Result<(), Error> {
    let given = opts.bool("id");
    let mut is_address = false;
    let mut name = opts.str("id").to_string();
    if !given {
        let found = id::find(opts, machine, false)?;
        (name, is_address) = (found.name, found.is_address);
    }
    if !is_address && let Some(domain) = opts.get("append_domain") {
        name = id::with_domain(&name, &domain.to_str());
    }
    if !given {
        name.push_str("_master");
    }
    opts.set("id", name);
    Ok(())
}

pub(super) fn check_cluster(opts: &mut Opts) {
    let unset = |opts: &Opts, name: &str| !opts.bool(name);
    if opts.get("cluster_id").is_some_and(|id| !id.is_null()) {
        if unset(opts, "cluster_peers") && unset(opts, "cluster_secret") {
            opts.adjusted("cluster_id", "Cluster id defined without defining cluster peers");
            opts.set("cluster_peers", Value::list::<Value>([]));
        }
        if unset(opts, "cluster_pki_dir") {
            opts.adjusted(
                "cluster_id",
                "Cluster id defined without defining cluster pki, falling back to pki_dir",
            );
            opts.set("cluster_pki_dir", opts.str("pki_dir"));
        }
        return;
    }
    if !unset(opts, "cluster_peers") {
        opts.adjusted("cluster_peers", "Cluster peers defined without a cluster_id, ignoring.");
        opts.set("cluster_peers", Value::list::<Value>([]));
    }
    if !unset(opts, "cluster_pki_dir") {
        opts.adjusted("cluster_pki_dir", "Cluster pki dir defined without a cluster_id, ignoring.");
        opts.set("cluster_pki_dir", Value::Null);
    }
}

pub(super) fn wrap_in_list(opts: &Opts, name: &str) {
    if let Some(text) = opts.get(name).filter(|v| v.as_str().is_some_and(|s| !s.is_empty())) {
        opts.set(name, Value::list([text]));
    }
}

/// Peer publishing needs a worker to wait on another.
pub(super) fn raise_worker_threads(opts: &mut Opts) {
    let few = opts.get("worker_threads").and_then(|v| v.as_float()).is_some_and(|n| n < 3.0);
    if few && opts.bool("peer") {
        let message = format!(
            "The 'worker_threads' setting in '{}' cannot be lower than 3. Resetting it to the default value of 3.",
            opts.str("conf_file")
        );
        opts.adjusted("worker_threads", message);
        opts.set("worker_threads", 3);
    }
}

pub(super) fn set_worker_pools(opts: &Opts) -> Result<(), Error> {
    if opts.get("worker_pools_enabled").is_some_and(|enabled| !enabled.truthy()) {
        return Ok(());
    }
    if !opts.bool("worker_pools") {
        let pool = Dict::new();
        pool.insert("worker_count", opts.get("worker_threads"));
        pool.insert("commands", Value::list(["*"]));
        opts.set("worker_pools", [("default", pool)].into_iter().collect::<Dict>());
    }
    let problems = pool_problems(&opts.get("worker_pools").unwrap_or(Value::Null));
    if problems.is_empty() {
        return Ok(());
    }
    Err(Error::Invalid {
        option: "worker_pools",
        message: format!(
            "Worker pools configuration validation failed:\n  - {}",
            problems.join("\n  - ")
        ),
    })
}

fn pool_problems(pools: &Value) -> Vec<String> {
    let Value::Dict(pools) = pools else {
        return vec!["worker_pools must be a dictionary".into()];
    };
    let mut problems = Vec::new();
    let mut owners: Vec<(String, String)> = Vec::new();
    for (key, pool) in pools.entries() {
        let Some(name) = key.as_str() else {
            problems.push(format!("Pool name must be a string, got {}", key.value().type_name()));
            continue;
        };
        if name.is_empty() || name.contains(['/', '\\', '\0']) || name == ".." {
            problems.push(format!("Pool name '{name}' is invalid."));
            continue;
        }
        let Value::Dict(pool) = pool else {
            problems.push(format!("Pool '{name}': configuration must be a dictionary"));
            continue;
        };
        let count = pool.get("worker_count").unwrap_or(Value::Null);
        if count.as_int().or(count.as_bool().map(i64::from)).is_none_or(|n| n < 1) {
            problems.push(format!("Pool '{name}': worker_count must be integer >= 1, got {count}"));
        }
        let commands = match pool.get("commands") {
            None => Vec::new(),
            Some(Value::List(commands)) => commands.to_vec(),
            Some(_) => {
                problems.push(format!("Pool '{name}': commands must be a list"));
                continue;
            }
        };
        if commands.is_empty() {
            problems.push(format!("Pool '{name}': commands list cannot be empty"));
        }
        for command in commands {
            let Some(command) = command.as_str() else {
                problems.push(format!("Pool '{name}': command '{command}' must be a string"));
                continue;
            };
            match owners.iter().find(|(known, _)| known == command) {
                Some((_, owner)) if command == "*" => problems.push(format!(
                    "Multiple pools have catchall ('*'): '{owner}' and '{name}'. Only one pool can use catchall."
                )),
                Some((_, owner)) => problems.push(format!(
                    "Command '{command}' mapped to multiple pools: '{owner}' and '{name}'"
                )),
                None => owners.push((command.into(), name.into())),
            }
        }
    }
    if !owners.iter().any(|(command, _)| command == "*") {
        problems.push(
            "No catchall pool ('*') found. One pool must include '*' in its commands so every command has a routing destination.".into(),
        );
    }
    problems
}

/// salt-ssh targets take pillar and files from the master: they cannot override them.
pub(super) fn clean_ssh_minion_opts(opts: &mut Opts) {
    let given = match opts.get("ssh_minion_opts") {
        None => return,
        Some(Value::Dict(given)) => given,
        // differs: Salt says so too, and dies.
        Some(_) => {
            opts.adjusted("ssh_minion_opts", "Invalidly-formatted ssh_minion_opts");
            opts.remove("ssh_minion_opts");
            return;
        }
    };
    for key in given.keys() {
        let name = key.value().to_str();
        let lower = name.to_lowercase();
        let is_fs = lower.split_once("fs_").is_some_and(|(head, _)| {
            !head.is_empty() && head.bytes().all(|b| b.is_ascii_alphanumeric())
        });
        let is_pillar = name.contains("pillar") && name != "ssh_merge_pillar";
        if is_fs || is_pillar || name == "fileserver_backend" {
            let message = format!("'{name}' is not a valid ssh_minion_opts parameter, ignoring");
            opts.adjusted("ssh_minion_opts", message);
            given.remove(name.as_str());
        }
    }
}

/// `nodegroups` may be a list of one-entry dicts.
pub(super) fn repack_nodegroups(opts: &Opts) {
    match opts.get("nodegroups") {
        None | Some(Value::Null) => opts.set("nodegroups", Value::dict()),
        Some(Value::List(groups)) => {
            let packed = Dict::new();
            for group in &groups {
                match group.as_dict() {
                    Some(one) if one.len() == 1 => packed.update(one),
                    _ => return,
                }
            }
            opts.set("nodegroups", packed);
        }
        Some(_) => {}
    }
}

pub(super) fn client(request: &Request<'_>, machine: &dyn Machine) -> Result<Opts, Error> {
    let opts = master(request, machine)?;
    finish_client(opts, machine)
}

/// Adds what the calling user has in the home folder: settings and a sign-in token.
fn finish_client(mut opts: Opts, machine: &dyn Machine) -> Result<Opts, Error> {
    let folder = OwnFolder::of(machine);
    read_own_settings(&mut opts, &folder, machine)?;
    read_own_token(&opts, &folder, machine);
    address_master(&opts);
    opts.warnings.retain(|warning| !matches!(warning.kind, WarningKind::Missing));
    Ok(opts)
}

/// Where the calling user keeps what is for clients.
struct OwnFolder {
    path: String,
    settings: &'static str,
}

impl OwnFolder {
    /// The folder of the desktop's convention if it is there, the home folder otherwise.
    fn of(machine: &dyn Machine) -> Self {
        let home = machine.home();
        let convention = machine.env("XDG_CONFIG_HOME");
        let convention = convention.unwrap_or_else(|| os_join(&home, ".config"));
        let path = os_join(&convention, "salt");
        match machine.is_dir(&path) {
            true => Self { path, settings: "saltrc" },
            false => Self { path: home, settings: ".saltrc" },
        }
    }
}

fn read_own_settings(
    opts: &mut Opts,
    folder: &OwnFolder,
    machine: &dyn Machine,
) -> Result<(), Error> {
    let named = machine.env("SALT_CLIENT_CONFIG");
    let usual = os_join(&folder.path, folder.settings);
    let mut files = named.into_iter().chain([usual]);
    if let Some(file) = files.find(|file| machine.is_file(file)) {
        let own = files::read(&file, machine)?;
        opts.values().update(&own);
        opts.places.extend(files::places(&own));
        opts.set("conf_file", file);
    }
    Ok(())
}

fn read_own_token(opts: &Opts, folder: &OwnFolder, machine: &dyn Machine) {
    let file = match opts.values().contains("token_file") {
        true => opts.str("token_file").to_string(),
        false => os_join(&folder.path, "salt_token"),
    };
    let file = paths::expand_home(&file, &machine.home());
    let file = paths::abspath(&file, &machine.current_dir());
    let lifetime = opts.opt_int("token_expire").unwrap_or(43200);
    let age = machine.age(&file).and_then(|age| i64::try_from(age).ok());
    if age.is_some_and(|age| age < lifetime)
        && let Ok(token) = machine.read(&file)
    {
        opts.set("token", String::from_utf8_lossy(&token).trim());
    }
    opts.set("token_file", file);
}

/// Clients of a master on all addresses reach it on the one of the machine itself.
fn address_master(opts: &Opts) {
    match opts.str("interface").as_str() {
        "0.0.0.0" => opts.set("interface", "127.0.0.1"),
        "::" => opts.set("interface", "::1"),
        _ => {}
    }
    if opts.values().contains("master_uri") {
        return;
    }
    let interface = opts.str("interface");
    let host = interface.trim_start_matches('[').trim_end_matches(']');
    let (open, close) = if host.contains(':') { ("[", "]") } else { ("", "") };
    opts.set("master_uri", format!("tcp://{open}{host}{close}:{}", opts.str("ret_port")));
}

pub(super) fn api(request: &Request<'_>, machine: &dyn Machine) -> Result<Opts, Error> {
    let opts = client(request, machine)?;
    opts.set("pidfile", opts.str("api_pidfile"));
    opts.set("log_file", opts.str("api_logfile"));
    let names = ["api_pidfile", "api_logfile", "log_file", "pidfile"];
    paths::prepend_root_dir(&opts, &names, &machine.current_dir());
    Ok(opts)
}

/// salt-cloud lays its file over the master's. Providers and profiles are read by its own code.
pub(super) fn cloud(request: &Request<'_>, machine: &dyn Machine) -> Result<Opts, Error> {
    let opts = master(request, machine)?;
    let facts = Facts { user: machine.user(), home: machine.home() };
    for (name, preset) in programs::CLOUD_PRESETS {
        opts.set(name, preset.value(&facts));
    }
    let (_, found) = found(request, "cloud", "SALT_CLOUD_CONFIG", "cloud.conf.d/*.conf", machine)?;
    let mut opts = overlaid(Role::Cloud, opts.values().clone(), &found);
    if let Some(Value::Str(one)) = opts.get("deploy_scripts_search_path") {
        opts.set("deploy_scripts_search_path", Value::list([one]));
    }
    opts.warnings.retain(|warning| !matches!(warning.kind, WarningKind::Missing));
    let here = machine.current_dir();
    paths::prepend_root_dir(&opts, &["cachedir"], &here);
    paths::prepend_root_dir_to_logs(&opts, &["log_file"], &here);
    Ok(opts)
}
