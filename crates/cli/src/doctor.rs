//! `halite doctor`: `--config` tells what the user's configuration files set, and what comes of it;
//! `--master` looks at the machine (see `checkup.rs`).
//!
//! Each option set in a file is in one of four lists: acted on, known but not acted on yet, unknown
//! (with a suggestion where it looks like a slip), or of a wrong type.

use std::path::Path;

use halite_config::{Opts, Request, Role, WarningKind};

use crate::{
    checkup,
    diagnostics::{Format, Report, Severity},
    machine::Real,
    optparse::{Action, Default, Flag, Parsed, Program, flag},
    programs::{self, shared},
    terminal,
};

static OWN: &[Flag] = &[
    flag(&["--config"], "config", Action::True, "Look at the configuration files."),
    flag(
        &["--master"],
        "master",
        Action::True,
        "Look at what a master needs on this machine, and at the one that runs.",
    ),
    flag(
        &["--role"],
        "role",
        Action::Choice(&["master", "minion", "proxy", "cloud"]),
        "Look at the files of this daemon only. Without it, at all that are there.",
    ),
    flag(&["-q", "--quiet"], "quiet", Action::True, "Show problems only.")
        .dflt(Default::Bool(false)),
];

static PROGRAM: Program = Program {
    name: "halite doctor",
    usage: "[options]",
    about: Some(
        "Tells what is wrong with an installation, and what of it Halite does not support yet.",
    ),
    flags: &[shared::VERSION, shared::CONFIG_DIR, OWN],
    groups: &[],
};

pub(crate) fn start(args: &[String]) -> u8 {
    let parsed = match PROGRAM.parse(args, &terminal::env) {
        Ok(parsed) => parsed,
        Err(stop) => return programs::stopped(&PROGRAM, &stop),
    };
    if !parsed.bool("config") && !parsed.bool("master") {
        return programs::usage_error(&PROGRAM, "say what to look at: --config, --master");
    }
    let mut worst = 0;
    if parsed.bool("config") {
        worst = config(&parsed);
    }
    if parsed.bool("master") {
        worst = worst.max(master(&parsed));
    }
    worst
}

/// What a master needs on this machine.
fn master(parsed: &Parsed) -> u8 {
    let dir = parsed.str("config_dir").unwrap_or_default();
    let mut request = Request::new(Role::Master, &dir);
    request.minion_id = Some("doctor");
    match halite_config::load(&request, &Real) {
        Ok(opts) => {
            let mut rows = checkup::master(&opts);
            if parsed.bool("quiet") {
                rows.retain(|row| row.state == checkup::State::Wrong);
            }
            terminal::out(&checkup::render(&rows));
            u8::from(rows.iter().any(|row| row.state == checkup::State::Wrong))
        }
        Err(error) => {
            let report = Report::from(&error).with_source(read);
            programs::show(&report, programs::format_of(parsed))
        }
    }
}

fn config(parsed: &Parsed) -> u8 {
    let format = programs::format_of(parsed);
    let dir = parsed.str("config_dir").unwrap_or_default();
    let all = [
        ("master", Role::Master),
        ("minion", Role::Minion),
        ("proxy", Role::Proxy),
        ("cloud", Role::Cloud),
    ];
    let wanted = parsed.str("role");
    let chosen: Vec<_> = all
        .into_iter()
        .filter(|(name, _)| match &wanted {
            Some(wanted) => wanted == name,
            None => is_configured(&dir, name),
        })
        .collect();
    if chosen.is_empty() {
        let report = Report::error(format!("no configuration in {dir}"))
            .help("-c names another folder; --role looks at a daemon without files");
        return programs::show(&report, format);
    }
    let mut worst = 0;
    for (name, role) in chosen {
        worst = worst.max(one(name, role, &dir, format, parsed.bool("quiet")));
    }
    worst
}

fn is_configured(dir: &str, name: &str) -> bool {
    let folder = if name == "cloud" { "cloud.conf.d".into() } else { format!("{name}.d") };
    Path::new(dir).join(name).is_file() || Path::new(dir).join(folder).is_dir()
}

fn one(name: &str, role: Role, dir: &str, format: Format, quiet: bool) -> u8 {
    let mut request = Request::new(role, dir);
    // The id is not looked for: that would ask the network.
    request.minion_id = Some("doctor");
    match halite_config::load(&request, &Real) {
        Ok(opts) => {
            let (text, problems) = describe(name, &opts, format, quiet);
            terminal::out(&text);
            u8::from(problems)
        }
        Err(error) => {
            let report = Report::from(&error).with_source(read);
            programs::show(&report, format)
        }
    }
}

fn read(file: &str) -> Option<String> {
    std::fs::read_to_string(file).ok()
}

/// Returns the report about one daemon, and whether anything is wrong.
fn describe(name: &str, opts: &Opts, format: Format, quiet: bool) -> (String, bool) {
    let mut text = String::new();
    let mut problems = false;
    for warning in opts.warnings() {
        if matches!(warning.kind, WarningKind::Foreign { .. } | WarningKind::Missing) {
            continue;
        }
        problems = true;
        text += &Report::from(warning).with_source(read).render(format);
    }
    if quiet {
        return (text, problems);
    }
    let (mut acted, mut waiting, mut foreign) = (Vec::new(), Vec::new(), Vec::new());
    for (option, place) in opts.set_by_files() {
        match halite_config::find(&option) {
            Some(opt) if opt.acts => acted.push((option, place)),
            Some(_) => waiting.push((option, place)),
            None => foreign.push((option, place)),
        }
    }
    if format == Format::Json {
        for (kind, list) in [("acts", acted), ("waiting", waiting), ("unknown", foreign)] {
            for (option, place) in list {
                let mut report = Report::warning(format!("{kind}: {option}")).at(Some(place));
                report.severity = Severity::Note;
                text += &report.render(format);
            }
        }
        return (text, problems);
    }
    let lists = [
        ("Halite acts on", acted),
        ("known, not acted on yet", waiting),
        ("unknown: left alone, as Salt does", foreign),
    ];
    for (title, list) in lists {
        text += &format!("{name}: {title}: {}\n", list.len());
        for (option, place) in list {
            let about = halite_config::find(&option).map_or("", |opt| opt.about);
            text += &format!("  {option:<28} {place}  {about}\n").replace("  \n", "\n");
        }
    }
    (text, problems)
}
