//! Adjustments master and minion share.

use halite_value::{Dict, Value};

use crate::{
    Error, Machine, Opts,
    files::Found,
    paths::{self, os_join},
};

/// `log_dir` moves the log file, unless that is absolute.
pub(super) fn apply_log_dir(found: &Found, preset_log_file: &str) {
    let values = &found.values;
    let text = |name| values.get(name).filter(Value::truthy).map(|value| value.to_str());
    let Some(dir) = text("log_dir") else { return };
    let file = text("log_file").unwrap_or_else(|| paths::basename(preset_log_file).into());
    values.insert("log_file", os_join(&dir, &file));
}

/// `environment` is the former name of `saltenv`.
pub(super) fn rename_environment(opts: &mut Opts, daemon: &str) {
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
pub(super) fn rename_backends(opts: &Opts) {
    let renamed =
        opts.list("fileserver_backend").into_iter().map(|backend| match backend.as_str() {
            Some(short @ ("git" | "hg" | "svn" | "minion")) => Value::from(format!("{short}fs")),
            _ => backend,
        });
    opts.set("fileserver_backend", Value::list(renamed));
}

/// A path of a Unix socket must not be too long: `sock_dir` moves into `cachedir`.
pub(super) fn shorten_sock_dir(opts: &Opts) {
    let (sock_dir, cachedir) = (opts.str("sock_dir"), opts.str("cachedir"));
    if sock_dir.chars().count() > cachedir.chars().count() + 10 {
        opts.set("sock_dir", os_join(&cachedir, ".salt-unix"));
    }
}

pub(super) fn set_module_dirs(opts: &Opts) {
    if !opts.bool("extension_modules") {
        opts.set("extension_modules", os_join(&opts.str("cachedir"), "extmods"));
    }
    if !opts.bool("utils_dirs") {
        let utils = os_join(&opts.str("extension_modules"), "utils");
        opts.set("utils_dirs", Value::list([utils]));
    }
}

pub(super) fn set_ipc_buffer(opts: &Opts, found: &Found, machine: &dyn Machine) {
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
pub(super) fn demand_true(opts: &Opts, names: &[&str]) {
    for name in names {
        opts.set(name, opts.get(name).and_then(|value| value.as_bool()) == Some(true));
    }
}

pub(super) fn set_ssl(opts: &Opts) -> Result<(), Error> {
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

pub(super) fn set_discovery(opts: &Opts, is_minion: bool) -> Result<(), Error> {
    let given = match opts.get("discovery") {
        None | Some(Value::Null | Value::Bool(false)) => return Ok(()),
        Some(Value::Dict(given)) => given,
        // Salt takes a text for a list of options, a letter each.
        Some(Value::Str(text)) => text.chars().map(|c| (c.to_string(), Value::Null)).collect(),
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

pub(super) fn demand_algorithm(
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

pub(super) const ENCRYPTION: [&str; 2] = ["OAEP-SHA1", "OAEP-SHA224"];
pub(super) const SIGNING: [&str; 2] = ["PKCS1v15-SHA1", "PKCS1v15-SHA224"];

pub(super) fn lower_hash_type(opts: &Opts) {
    opts.set("hash_type", opts.str("hash_type").to_lowercase());
}

/// `return` may be a list; everyone else wants it joined.
pub(super) fn join_returners(opts: &Opts) {
    if let Some(Value::List(_)) = opts.get("return") {
        opts.set("return", opts.str_list("return").join(","));
    }
}
