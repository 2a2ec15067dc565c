//! `halite doctor`: `--config` tells what the user's configuration files set, and what comes of it;
//! `--master` looks at the machine (see `checkup.rs`); a TREE of states is asked where the functions
//! it uses come from (see `tree.rs`).
//!
//! Each option set in a file is in one of these lists: acted on, not needed here (it steers a part of
//! Salt that Halite does not have), known but not acted on yet, unknown (with a suggestion where it
//! looks like a slip), or of a wrong type.

use std::{path::Path, sync::Arc};

use halite_config::{Opts, Request, Role, WarningKind};
use halite_spec::Host;

use crate::{
    checkup,
    diagnostics::{Format, Report, Severity},
    machine::Real,
    optparse::{Action, Default, Flag, Parsed, Program, flag},
    programs::{self, shared},
    terminal,
    tree::{self, Origin},
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
    usage: "[options] [TREE]",
    about: Some(
        "Tells what is wrong with an installation, and what of it Halite does not support yet. With a TREE of states: where each function it uses comes from.",
    ),
    flags: &[shared::VERSION, shared::CONFIG_DIR, OWN],
    groups: &[],
};

pub(crate) fn start(args: &[String]) -> u8 {
    let parsed = match PROGRAM.parse(args, &terminal::env) {
        Ok(parsed) => parsed,
        Err(stop) => return programs::stopped(&PROGRAM, &stop, args),
    };
    let wrong = |message| programs::usage_error(&PROGRAM, message, programs::format_of(&parsed));
    match parsed.args.as_slice() {
        [tree] => return of_tree(&parsed, tree),
        [] => {}
        _ => return wrong("one TREE at a time"),
    }
    if !parsed.bool("config") && !parsed.bool("master") {
        return wrong("say what to look at: --config, --master, or a TREE");
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

/// Tells where the functions of a state tree come from. Something missing is worth an exit code.
fn of_tree(parsed: &Parsed, folder: &str) -> u8 {
    let format = programs::format_of(parsed);
    if !Path::new(folder).is_dir() {
        return programs::show(&Report::error(format!("there is no folder {folder}")), format);
    }
    let dir = parsed.str("config_dir").unwrap_or_default();
    let mut request = Request::new(Role::Minion, &dir);
    request.minion_id = Some("doctor");
    let opts = match halite_config::load(&request, &Real) {
        Ok(opts) => opts.values().clone(),
        Err(error) => return programs::show(&Report::from(&error).with_source(read), format),
    };
    let host: Arc<dyn Host> = Arc::new(halite_host::Os::new());
    opts.insert("grains", halite_minion::plain_grains(&*host, &opts));
    let report = tree::look(Path::new(folder), &opts);
    terminal::out(&tree::described(&report, format == Format::Json, parsed.bool("quiet")));
    let missing = report.uses.iter().any(|(_, origin, _, _)| matches!(origin, Origin::Missing(_)));
    u8::from(missing || !report.broken.is_empty())
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
    let (mut acted, mut moot) = (Vec::new(), Vec::new());
    let (mut waiting, mut foreign) = (Vec::new(), Vec::new());
    for (option, place) in opts.set_by_files() {
        match halite_config::find(&option) {
            Some(opt) if opt.acts => acted.push((option, place)),
            Some(opt) if opt.moot => moot.push((option, place)),
            Some(_) => waiting.push((option, place)),
            None => foreign.push((option, place)),
        }
    }
    if format == Format::Json {
        let lists = [("acts", acted), ("moot", moot), ("waiting", waiting), ("unknown", foreign)];
        for (kind, list) in lists {
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
        ("not needed: of parts of Salt that Halite does not have", moot),
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
