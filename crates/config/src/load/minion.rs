//! The minion and its kin: proxy minions and syndics.

use halite_value::Dict;

use super::{
    Request,
    adjust::apply_log_dir,
    found,
    master::master,
    overlaid, presets,
    steps::{self, Given},
};
use crate::{
    Error, Machine, Opts, Role,
    files::Found,
    id,
    paths::{self, os_join},
};

pub(super) fn minion(request: &Request<'_>, machine: &dyn Machine) -> Result<Opts, Error> {
    let (_, found) = found(request, "minion", "SALT_MINION_CONFIG", "minion.d/*.conf", machine)?;
    let opts = minion_from(request, &found, "/var/log/salt/minion", machine)?;
    opts.set("__role", "minion");
    Ok(opts)
}

/// Proxy minions have files of their own per id, known only once the id is: they are read twice.
pub(super) fn proxy(request: &Request<'_>, machine: &dyn Machine) -> Result<Opts, Error> {
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
    steps::take(&mut opts, &Given { request, found, machine })?;
    Ok(opts)
}

pub(super) fn set_minion_id(
    opts: &Opts,
    request: &Request<'_>,
    machine: &dyn Machine,
) -> Result<(), Error> {
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
pub(super) fn append_id_to_dirs(opts: &Opts) {
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
pub(super) fn syndic(request: &Request<'_>, machine: &dyn Machine) -> Result<Opts, Error> {
    let of = |role| Request { role, ..request.clone() };
    let master = master(&of(Role::Master), machine)?;
    let minion = minion(&of(Role::Minion), machine)?;
    let mut opts = Opts::new(Role::Syndic, Dict::new());
    for half in [&master, &minion] {
        opts.values().update(half.values());
        opts.places.extend(half.places.clone());
        opts.warnings.extend(half.warnings.iter().cloned());
    }
    for name in ["cachedir", "interface", "log_level", "sock_pool_size"] {
        opts.set(name, master.get(name));
    }
    for (name, own) in SYNDIC_NAMES {
        opts.set(name, opts.get(own));
    }
    opts.set("__role", "syndic");
    // The names are swapped in Salt, too.
    opts.set("_minion_conf_file", master.get("conf_file"));
    opts.set("_master_conf_file", minion.get("conf_file"));
    let ports = ["syndic_master_port", "master_port"];
    opts.set("master_port", ports.iter().find_map(|name| opts.opt_int(name)).unwrap_or(4506));
    opts.set("user", opts.opt_str("syndic_user").unwrap_or_else(|| master.str("user")));
    let sock_dir = opts.opt_str("syndic_sock_dir").unwrap_or_else(|| opts.str("sock_dir"));
    opts.set("sock_dir", os_join(&minion.str("cachedir"), &sock_dir));
    steps::syndic_below_root(&opts, &machine.current_dir());
    Ok(opts)
}

/// Options that a syndic has under a name of its own.
const SYNDIC_NAMES: [(&str, &str); 3] =
    [("log_file", "syndic_log_file"), ("master", "syndic_master"), ("pidfile", "syndic_pidfile")];
