//! From files to options: presets, what the files say, and Salt's adjustments, per role.

use halite_value::{Dict, Value};

use crate::{
    Error, Facts, Machine, Opts, Preset, Role, Warning, WarningKind,
    files::Found,
    find, id,
    paths::{self, os_join},
    programs, roots, suggest, types,
};

/// What is to be loaded.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    pub role: Role,
    /// The configuration folder (`-c`).
    pub config_dir: &'a str,
    /// An id that stands in for a missing one (`--proxyid`).
    pub minion_id: Option<&'a str>,
    /// Whether a generated id is remembered on disk.
    pub remember_id: bool,
    /// Whether an error in an included file stops everything (the minion daemon does so).
    pub strict: bool,
    /// The name the program was called by.
    pub program: &'a str,
}

impl<'a> Request<'a> {
    #[must_use]
    pub fn new(role: Role, config_dir: &'a str) -> Self {
        Self {
            role,
            config_dir,
            minion_id: None,
            remember_id: false,
            strict: false,
            program: "halite",
        }
    }
}

/// Loads the configuration of a program.
///
/// Fails only when the main file is broken, or when a value leaves nothing to start with; all else
/// is found in [`Opts::warnings`].
pub fn load(request: &Request<'_>, machine: &dyn Machine) -> Result<Opts, Error> {
    let mut opts = match request.role {
        Role::Master => master(request, machine)?,
        Role::Client => client(request, machine)?,
        Role::Api => api(request, machine)?,
        Role::Minion => minion(request, machine)?,
        Role::Proxy => proxy(request, machine)?,
        Role::Syndic => syndic(request, machine)?,
        Role::Cloud => cloud(request, machine)?,
    };
    check(&mut opts);
    Ok(opts)
}

// --- files -------------------------------------------------------------------------------------

/// Returns the main file to read: `-c` wins over the environment, which wins over the default.
fn main_file(path: &str, variable: &str, machine: &dyn Machine) -> String {
    if paths::dirname(path) != crate::CONFIG_DIR {
        return path.into();
    }
    let named = machine.env(variable).filter(|value| !value.is_empty());
    let in_dir = || {
        let dir = machine.env("SALT_CONFIG_DIR").filter(|dir| !dir.is_empty())?;
        Some(os_join(&dir, paths::basename(path)))
    };
    named.or_else(in_dir).filter(|file| machine.is_file(file)).unwrap_or_else(|| path.into())
}

fn found(
    request: &Request<'_>,
    name: &str,
    variable: &str,
    default_include: &str,
    machine: &dyn Machine,
) -> Result<(String, Found), Error> {
    let path = os_join(request.config_dir, name);
    let file = main_file(&path, variable, machine);
    let found = Found::read(&path, &file, default_include, machine, request.strict)?;
    Ok((path, found))
}

/// Returns the presets of a role.
fn presets(role: Role, machine: &dyn Machine) -> Dict {
    let facts = Facts { user: machine.user(), home: machine.home() };
    let dict = Dict::new();
    for opt in role.tables().iter().flat_map(|table| table.iter()) {
        let preset: &Preset = if role.is_minion() { &opt.minion } else { &opt.master };
        if let Some(value) = preset.value(&facts) {
            dict.insert(opt.name, value);
        }
    }
    let overlay = match role {
        Role::Proxy => programs::PROXY_PRESETS,
        _ => &[],
    };
    for (name, preset) in overlay {
        dict.insert(*name, preset.value(&facts));
    }
    dict
}

/// Lays what the files say over presets.
fn overlaid(role: Role, presets: Dict, found: &Found) -> Opts {
    presets.update(&found.values);
    let mut opts = Opts::new(role, presets);
    opts.places.clone_from(&found.places);
    opts.warnings.clone_from(&found.warnings);
    opts
}

// --- adjustments both daemons share ----------------------------------------------------------------

/// `log_dir` moves the log file, unless that is absolute.
fn apply_log_dir(found: &Found, preset_log_file: &str) {
    let values = &found.values;
    let text = |name| values.get(name).filter(Value::truthy).map(|value| value.to_str());
    let Some(dir) = text("log_dir") else { return };
    let file = text("log_file").unwrap_or_else(|| paths::basename(preset_log_file).into());
    values.insert("log_file", os_join(&dir, &file));
}

/// `environment` is the former name of `saltenv`.
fn rename_environment(opts: &mut Opts, daemon: &str) {
    let Some(environment) = opts.get("environment") else { return };
    let saltenv = opts.get("saltenv").unwrap_or(Value::Null);
    if saltenv.is_null() {
        opts.adjusted(
            "environment",
            format!(
                "The 'environment' {daemon} config option has been renamed to 'saltenv'. Using {environment} as the 'saltenv' config value."
            ),
        );
        opts.set("saltenv", environment);
    } else {
        opts.adjusted(
            "environment",
            format!(
                "The 'saltenv' and 'environment' {daemon} config options cannot both be used. Ignoring 'environment' in favor of 'saltenv'."
            ),
        );
        opts.set("environment", saltenv);
    }
}

/// `git` means `gitfs`, and so on.
fn rename_backends(opts: &Opts) {
    let renamed =
        opts.list("fileserver_backend").into_iter().map(|backend| match backend.as_str() {
            Some(short @ ("git" | "hg" | "svn" | "minion")) => Value::from(format!("{short}fs")),
            _ => backend,
        });
    opts.set("fileserver_backend", Value::list(renamed));
}

/// A path of a Unix socket must not be too long: `sock_dir` moves into `cachedir`.
fn shorten_sock_dir(opts: &Opts) {
    let (sock_dir, cachedir) = (opts.str("sock_dir"), opts.str("cachedir"));
    if sock_dir.chars().count() > cachedir.chars().count() + 10 {
        opts.set("sock_dir", os_join(&cachedir, ".salt-unix"));
    }
}

fn set_module_dirs(opts: &Opts) {
    if !opts.bool("extension_modules") {
        opts.set("extension_modules", os_join(&opts.str("cachedir"), "extmods"));
    }
    if !opts.bool("utils_dirs") {
        let utils = os_join(&opts.str("extension_modules"), "utils");
        opts.set("utils_dirs", Value::list([utils]));
    }
}

fn set_ipc_buffer(opts: &Opts, found: &Found, machine: &dyn Machine) {
    match found.values.get("ipc_write_buffer") {
        None => opts.set("ipc_write_buffer", 0),
        Some(Value::Str(word)) if word == "dynamic" => {
            // A fortieth of the memory, but at least 5 MiB.
            let buffer = (machine.memory() / 20).max(10 << 20) / 2;
            opts.set("ipc_write_buffer", buffer);
        }
        Some(_) => {}
    }
}

/// Only a literal `True` opens a door.
fn demand_true(opts: &Opts, names: &[&str]) {
    for name in names {
        opts.set(name, opts.get(name).and_then(|value| value.as_bool()) == Some(true));
    }
}

fn set_ssl(opts: &Opts) -> Result<(), Error> {
    const NAMES: [(&str, &[(&str, i64)]); 2] = [
        ("cert_reqs", &[("CERT_NONE", 0), ("CERT_OPTIONAL", 1), ("CERT_REQUIRED", 2)]),
        (
            "ssl_version",
            &[
                ("PROTOCOL_SSLv23", 2),
                ("PROTOCOL_TLS", 2),
                ("PROTOCOL_TLS_CLIENT", 16),
                ("PROTOCOL_TLS_SERVER", 17),
                ("PROTOCOL_TLSv1", 3),
                ("PROTOCOL_TLSv1_1", 4),
                ("PROTOCOL_TLSv1_2", 5),
            ],
        ),
    ];
    let ssl = match opts.get("ssl") {
        Some(Value::Dict(ssl)) => ssl,
        Some(Value::Bool(true)) => {
            opts.set("ssl", Value::dict());
            return Ok(());
        }
        _ => {
            opts.set("ssl", Value::Null);
            return Ok(());
        }
    };
    for (key, names) in NAMES {
        let Some(value) = ssl.get(key).filter(|value| !value.is_null()) else { continue };
        let known = value.as_str().and_then(|name| names.iter().find(|(known, _)| *known == name));
        let Some((_, number)) = known else {
            let names: Vec<_> = names.iter().map(|(name, _)| *name).collect();
            return Err(Error::Invalid {
                option: "ssl",
                message: format!(
                    "SSL option '{key}' must be set to one of the following values: '{}'.",
                    names.join("', '")
                ),
            });
        };
        ssl.insert(key, *number);
    }
    Ok(())
}

fn set_discovery(opts: &Opts, is_minion: bool) -> Result<(), Error> {
    let given = match opts.get("discovery") {
        None | Some(Value::Null | Value::Bool(false)) => return Ok(()),
        Some(Value::Dict(given)) => given,
        Some(_) => Dict::new(),
    };
    let known = Dict::new();
    if is_minion {
        known.insert("attempts", 3);
        known.insert("pause", 5);
    }
    known.insert("port", 4520);
    if is_minion {
        known.insert("match", "any");
    }
    known.insert("mapping", Value::dict());
    for key in given.keys() {
        let name = key.value().to_str();
        if !["attempts", "pause", "port", "match", "mapping"].contains(&name.as_str()) {
            let message = format!("Unknown discovery option: {name}");
            return Err(Error::Invalid { option: "discovery", message });
        }
    }
    known.update(&given);
    opts.set("discovery", known);
    Ok(())
}

fn demand_algorithm(
    opts: &Opts,
    option: &'static str,
    called: &str,
    allowed: &[&str],
) -> Result<(), Error> {
    let value = opts.str(option);
    if allowed.contains(&value.as_str()) {
        return Ok(());
    }
    Err(Error::Invalid {
        option,
        message: format!(
            "The {called} algorithm '{value}' is not valid. Please specify one of {}.",
            allowed.join(",")
        ),
    })
}

const ENCRYPTION: [&str; 2] = ["OAEP-SHA1", "OAEP-SHA224"];
const SIGNING: [&str; 2] = ["PKCS1v15-SHA1", "PKCS1v15-SHA224"];

fn lower_hash_type(opts: &Opts) {
    opts.set("hash_type", opts.str("hash_type").to_lowercase());
}

// --- the master and the programs beside it -----------------------------------------------------------

fn master(request: &Request<'_>, machine: &dyn Machine) -> Result<Opts, Error> {
    let (_, found) = found(request, "master", "SALT_MASTER_CONFIG", "master.d/*.conf", machine)?;
    master_from(request, &found, machine)
}

fn master_from(request: &Request<'_>, found: &Found, machine: &dyn Machine) -> Result<Opts, Error> {
    apply_log_dir(found, "/var/log/salt/master");
    let mut opts = overlaid(request.role, presets(request.role, machine), found);
    opts.set("__role", "master");
    opts.set("__fs_update", true);
    opts.set("__cli", request.program);
    rename_cluster_port(&mut opts, found);
    keep_acl_for_rest(&mut opts);
    rename_environment(&mut opts, "master");
    rename_backends(&opts);
    shorten_sock_dir(&opts);
    let cachedir = opts.str("cachedir");
    opts.set("token_dir", os_join(&cachedir, "tokens"));
    opts.set("syndic_dir", os_join(&cachedir, "syndics"));
    set_module_dirs(&opts);
    set_ipc_buffer(&opts, found, machine);
    set_master_id(&opts, machine)?;
    let here = machine.current_dir();
    paths::prepend_root_dir(
        &opts,
        &[
            "pki_dir",
            "cachedir",
            "pidfile",
            "sock_dir",
            "extension_modules",
            "autosign_file",
            "autoreject_file",
            "token_dir",
            "syndic_dir",
            "sqlite_queue_dir",
            "autosign_grains_dir",
        ],
        &here,
    );
    paths::prepend_root_dir_to_logs(&opts, &["log_file", "key_logfile", "ssh_log_file"], &here);
    check_cluster(&mut opts);
    demand_true(&opts, &["open_mode", "auto_accept"]);
    roots::normalize(&mut opts, "file_roots", "file_roots", "/srv/salt", machine);
    // Salt falls back to the *file* roots here, and says so.
    roots::normalize(&mut opts, "pillar_roots", "file_roots", "/srv/salt", machine);
    wrap_in_list(&opts, "file_ignore_regex");
    wrap_in_list(&opts, "file_ignore_glob");
    raise_worker_threads(&mut opts);
    set_worker_pools(&opts)?;
    lower_hash_type(&opts);
    set_ssl(&opts)?;
    set_discovery(&opts, false)?;
    demand_algorithm(&opts, "publish_signing_algorithm", " publish signging", &SIGNING)?;
    demand_algorithm(&opts, "cluster_encryption_algorithm", "cluster encryption", &ENCRYPTION)?;
    clean_ssh_minion_opts(&mut opts);
    repack_nodegroups(&opts);
    join_returners(&opts);
    Ok(opts)
}

fn rename_cluster_port(opts: &mut Opts, found: &Found) {
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
fn keep_acl_for_rest(opts: &mut Opts) {
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

fn set_master_id(opts: &Opts, machine: &dyn Machine) -> Result<(), Error> {
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

fn check_cluster(opts: &mut Opts) {
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

fn wrap_in_list(opts: &Opts, name: &str) {
    if let Some(text) = opts.get(name).filter(|v| v.as_str().is_some_and(|s| !s.is_empty())) {
        opts.set(name, Value::list([text]));
    }
}

/// Peer publishing needs a worker to wait on another.
fn raise_worker_threads(opts: &mut Opts) {
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

fn set_worker_pools(opts: &Opts) -> Result<(), Error> {
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
fn clean_ssh_minion_opts(opts: &mut Opts) {
    let given = match opts.get("ssh_minion_opts") {
        None => return,
        Some(Value::Dict(given)) => given,
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
fn repack_nodegroups(opts: &Opts) {
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

fn join_returners(opts: &Opts) {
    if let Some(Value::List(_)) = opts.get("return") {
        opts.set("return", opts.str_list("return").join(","));
    }
}

fn client(request: &Request<'_>, machine: &dyn Machine) -> Result<Opts, Error> {
    let opts = master(request, machine)?;
    finish_client(opts, machine)
}

/// Adds what the calling user has in the home folder: settings and a sign-in token.
fn finish_client(mut opts: Opts, machine: &dyn Machine) -> Result<Opts, Error> {
    let home = machine.home();
    let xdg = machine.env("XDG_CONFIG_HOME").unwrap_or_else(|| os_join(&home, ".config"));
    let xdg = os_join(&xdg, "salt");
    let (dir, name) =
        if machine.is_dir(&xdg) { (xdg, "saltrc") } else { (home.clone(), ".saltrc") };
    if !opts.values().contains("token_file") {
        opts.set("token_file", os_join(&dir, "salt_token"));
    }
    let default = os_join(&dir, name);
    let file = machine.env("SALT_CLIENT_CONFIG").filter(|file| machine.is_file(file));
    let file = file.unwrap_or(default);
    if machine.is_file(&file) {
        let dict = crate::files::read(&file, machine)?;
        opts.values().update(&dict);
        opts.set("conf_file", file);
    }
    let token_file = paths::expand_home(&opts.str("token_file"), &home);
    let token_file = paths::abspath(&token_file, &machine.current_dir());
    let fresh = opts.opt_int("token_expire").unwrap_or(43200);
    if machine.age(&token_file).is_some_and(|age| i64::try_from(age).is_ok_and(|a| a < fresh))
        && let Ok(token) = machine.read(&token_file)
    {
        opts.set("token", String::from_utf8_lossy(&token).trim());
    }
    opts.set("token_file", token_file);
    match opts.str("interface").as_str() {
        "0.0.0.0" => opts.set("interface", "127.0.0.1"),
        "::" => opts.set("interface", "::1"),
        _ => {}
    }
    if !opts.values().contains("master_uri") {
        let interface = opts.str("interface");
        let host = interface.trim_start_matches('[').trim_end_matches(']');
        let host = if host.contains(':') { format!("[{host}]") } else { host.into() };
        opts.set("master_uri", format!("tcp://{host}:{}", opts.str("ret_port")));
    }
    opts.warnings.retain(|warning| !matches!(warning.kind, WarningKind::Missing));
    Ok(opts)
}

fn api(request: &Request<'_>, machine: &dyn Machine) -> Result<Opts, Error> {
    let opts = client(request, machine)?;
    opts.set("pidfile", opts.str("api_pidfile"));
    opts.set("log_file", opts.str("api_logfile"));
    let names = ["api_pidfile", "api_logfile", "log_file", "pidfile"];
    paths::prepend_root_dir(&opts, &names, &machine.current_dir());
    Ok(opts)
}

// --- the minion and its kin -----------------------------------------------------------------------

fn minion(request: &Request<'_>, machine: &dyn Machine) -> Result<Opts, Error> {
    let (_, found) = found(request, "minion", "SALT_MINION_CONFIG", "minion.d/*.conf", machine)?;
    let opts = minion_from(request, &found, "/var/log/salt/minion", machine)?;
    opts.set("__role", "minion");
    Ok(opts)
}

/// Proxy minions have files of their own per id, known only once the id is: they are read twice.
fn proxy(request: &Request<'_>, machine: &dyn Machine) -> Result<Opts, Error> {
    let (path, mut found) =
        found(request, "proxy", "SALT_PROXY_CONFIG", "proxy.d/*.conf", machine)?;
    let first = minion_from(request, &found, "/var/log/salt/proxy", machine)?;
    let own = first.str("default_include");
    let asked = found.values.get("default_include");
    found.values.insert("default_include", own.clone());
    found.includes(&path, &own, machine)?;
    match asked {
        Some(asked) => found.values.insert("default_include", asked),
        None => found.values.remove("default_include"),
    };
    minion_from(request, &found, "/var/log/salt/proxy", machine)
}

fn minion_from(
    request: &Request<'_>,
    found: &Found,
    preset_log_file: &str,
    machine: &dyn Machine,
) -> Result<Opts, Error> {
    apply_log_dir(found, preset_log_file);
    let mut opts = overlaid(request.role, presets(request.role, machine), found);
    opts.set("__role", "minion");
    opts.set("__cli", request.program);
    rename_environment(&mut opts, "minion");
    rename_backends(&opts);
    set_minion_id(&opts, request, machine)?;
    append_id_to_dirs(&opts);
    shorten_sock_dir(&opts);
    demand_true(&opts, &["open_mode"]);
    roots::normalize(&mut opts, "file_roots", "file_roots", "/srv/salt", machine);
    roots::normalize(&mut opts, "pillar_roots", "pillar_roots", "/srv/pillar", machine);
    set_module_dirs(&opts);
    let here = machine.current_dir();
    let names = ["pki_dir", "cachedir", "sock_dir", "extension_modules", "pidfile"];
    paths::prepend_root_dir(&opts, &names, &here);
    paths::prepend_root_dir_to_logs(&opts, &["log_file", "key_logfile"], &here);
    if !opts.values().contains("beacons") {
        opts.set("beacons", Value::dict());
    }
    set_ipc_buffer(&opts, found, machine);
    lower_hash_type(&opts);
    set_ssl(&opts)?;
    set_discovery(&opts, true)?;
    demand_algorithm(&opts, "encryption_algorithm", "encryption", &ENCRYPTION)?;
    demand_algorithm(&opts, "signing_algorithm", "signging", &SIGNING)?;
    if !opts.values().contains("__cachedir") {
        opts.set("__cachedir", opts.str("cachedir"));
    }
    join_returners(&opts);
    Ok(opts)
}

fn set_minion_id(opts: &Opts, request: &Request<'_>, machine: &dyn Machine) -> Result<(), Error> {
    let mut is_address = false;
    if !opts.bool("id") {
        match request.minion_id {
            Some(name) => opts.set("id", name),
            None => {
                let found = id::find(opts, machine, request.remember_id)?;
                is_address = found.is_address;
                opts.set("id", found.name);
            }
        }
    }
    if !is_address && let Some(domain) = opts.get("append_domain") {
        opts.set("id", id::with_domain(&opts.str("id"), &domain.to_str()));
    }
    Ok(())
}

/// Gives several minions on one machine folders of their own.
fn append_id_to_dirs(opts: &Opts) {
    let id = opts.str("id");
    for name in opts.str_list("append_minionid_config_dirs") {
        let path = opts.str(&name);
        let (folder, file) = (paths::dirname(&path), paths::basename(&path));
        match name.as_str() {
            "pki_dir" | "cachedir" | "extension_modules" => opts.set(&name, os_join(&path, &id)),
            "default_include" => opts.set(&name, os_join(&os_join(folder, &id), file)),
            "pidfile" => {
                opts.set(&name, os_join(&os_join(&os_join(folder, "salt"), &id), file));
            }
            _ => {}
        }
    }
}

/// A syndic is a minion of a higher master that sits on a master.
fn syndic(request: &Request<'_>, machine: &dyn Machine) -> Result<Opts, Error> {
    let of = |role| Request { role, ..request.clone() };
    let master = master(&of(Role::Master), machine)?;
    let minion = minion(&of(Role::Minion), machine)?;
    let mut opts = Opts::new(Role::Syndic, Dict::new());
    for half in [&master, &minion] {
        opts.values().update(half.values());
        opts.places.extend(half.places.clone());
        opts.warnings.extend(half.warnings.iter().cloned());
    }
    // The names are swapped in Salt, too.
    opts.set("_minion_conf_file", master.get("conf_file"));
    opts.set("_master_conf_file", minion.get("conf_file"));
    opts.set("__role", "syndic");
    opts.set("pidfile", opts.str("syndic_pidfile"));
    opts.set("log_file", opts.str("syndic_log_file"));
    for name in ["log_level", "interface", "sock_pool_size", "cachedir"] {
        opts.set(name, master.get(name));
    }
    opts.set("master", opts.get("syndic_master"));
    let port = opts.opt_int("syndic_master_port").or_else(|| opts.opt_int("master_port"));
    opts.set("master_port", port.unwrap_or(4506));
    opts.set("user", opts.opt_str("syndic_user").unwrap_or_else(|| master.str("user")));
    let sock_dir = opts.opt_str("syndic_sock_dir").unwrap_or_else(|| opts.str("sock_dir"));
    opts.set("sock_dir", os_join(&minion.str("cachedir"), &sock_dir));
    let here = machine.current_dir();
    let names = [
        "pki_dir",
        "cachedir",
        "pidfile",
        "sock_dir",
        "extension_modules",
        "autosign_file",
        "autoreject_file",
        "token_dir",
        "autosign_grains_dir",
    ];
    paths::prepend_root_dir(&opts, &names, &here);
    paths::prepend_root_dir_to_logs(&opts, &["log_file", "key_logfile", "syndic_log_file"], &here);
    Ok(opts)
}

/// salt-cloud lays its file over the master's. Providers and profiles are read by its own code.
fn cloud(request: &Request<'_>, machine: &dyn Machine) -> Result<Opts, Error> {
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

// --- what is odd --------------------------------------------------------------------------------

/// Looks at every option for wrong types and unknown names.
fn check(opts: &mut Opts) {
    let mut warnings = Vec::new();
    for (key, value) in opts.values().entries() {
        let Some(name) = key.as_str() else { continue };
        let place = opts.place_of(name).cloned();
        match find(name) {
            Some(opt) => {
                if let Some(message) = types::mismatch(opt, &value) {
                    let kind = WarningKind::WrongType { option: name.into() };
                    warnings.push(Warning { kind, message, place });
                }
            }
            // Only what a file says: the rest is ours.
            None if place.is_none() => {}
            None => warnings.push(unknown(name, place)),
        }
    }
    opts.warnings.extend(warnings);
}

/// `mysql.host` and the like belong to modules; short names are more likely the user's own data.
fn unknown(name: &str, place: Option<halite_value::Place>) -> Warning {
    let likely_slip = !name.contains('.') && name.chars().count() > 3;
    match suggest(name).filter(|_| likely_slip) {
        Some(suggestion) => Warning {
            message: format!("unknown option `{name}`; did you mean `{suggestion}`?"),
            kind: WarningKind::Unknown { option: name.into(), suggestion: suggestion.into() },
            place,
        },
        None => Warning {
            message: format!("unknown option `{name}`"),
            kind: WarningKind::Foreign { option: name.into() },
            place,
        },
    }
}
