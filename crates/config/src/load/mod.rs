//! From files to options: presets, what the files say, and Salt's adjustments, per role.
//!
//! `steps.rs` is the list of adjustments. `master.rs` and `minion.rs` hold those that are particular
//! to these daemons, and the programs beside them; `adjust.rs` those that both share.

mod adjust;
mod master;
mod minion;
mod steps;

use halite_value::{Dict, Place};

use crate::{
    Error, Facts, Machine, Opts, Preset, Role, Warning, WarningKind,
    files::Found,
    find,
    paths::{self, os_join},
    programs, suggest, types,
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
        Role::Master => master::master(request, machine)?,
        Role::Client => master::client(request, machine)?,
        Role::Api => master::api(request, machine)?,
        Role::Cloud => master::cloud(request, machine)?,
        Role::Minion => minion::minion(request, machine)?,
        Role::Proxy => minion::proxy(request, machine)?,
        Role::Syndic => minion::syndic(request, machine)?,
    };
    check(&mut opts);
    if !request.role.is_minion() {
        master::repack_nodegroups(&opts);
    }
    Ok(opts)
}

/// Returns the main file to read: `-c` wins over the environment, which wins over the default.
pub(super) fn main_file(path: &str, variable: &str, machine: &dyn Machine) -> String {
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

pub(super) fn found(
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
pub(super) fn presets(role: Role, machine: &dyn Machine) -> Dict {
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
pub(super) fn overlaid(role: Role, presets: Dict, found: &Found) -> Opts {
    presets.update(&found.values);
    let mut opts = Opts::new(role, presets);
    opts.places.clone_from(&found.places);
    opts.warnings.clone_from(&found.warnings);
    opts
}

/// Looks at the options that files set, for wrong types and unknown names.
fn check(opts: &mut Opts) {
    let mut warnings = Vec::new();
    for (key, value) in opts.values().entries() {
        // Only what a file says: presets are right.
        let Some((name, place)) = key.as_str().and_then(|k| Some((k, opts.place_of(k)?))) else {
            continue;
        };
        let place = Some(place.clone());
        let Some(opt) = find(name) else {
            warnings.push(unknown(name, place));
            continue;
        };
        if let Some(message) = types::mismatch(opt, &value) {
            let kind = WarningKind::WrongType { option: name.into() };
            warnings.push(Warning { kind, message, place });
        }
    }
    opts.warnings.extend(warnings);
}

/// `mysql.host` and the like belong to modules; short names are more likely the user's own data.
fn unknown(name: &str, place: Option<Place>) -> Warning {
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
