//! `halite` itself: the programs of Salt as sub-commands, and the commands only Halite has.

use halite_value::suggest;

use crate::{
    doctor, links,
    optparse::{Program, Stop},
    programs::{self, Entry, shared},
    swarm, terminal, version,
};

/// A command only Halite has.
struct Own {
    name: &'static str,
    about: &'static str,
    run: fn(&[String]) -> u8,
}

static OWN: &[Own] = &[
    Own { name: "doctor", about: "tell what is wrong or not supported", run: doctor::start },
    Own {
        name: "explain",
        about: "explain an error code or a function",
        run: |_| missing("explain"),
    },
    Own { name: "install-links", about: "make links named as Salt's programs", run: links::start },
    Own { name: "lint", about: "find mistakes in a state tree", run: |_| missing("lint") },
    Own { name: "lsp", about: "serve editors", run: |_| missing("lsp") },
    Own { name: "plan", about: "show what a state run would change", run: |_| missing("plan") },
    Own { name: "reactor", about: "show and try what events lead to", run: reactor },
    Own { name: "swarm", about: "run many minions against a master", run: swarm::start },
    Own { name: "top", about: "watch jobs and minions", run: |_| missing("top") },
];

static PROGRAM: Program = Program {
    name: "halite",
    usage: "<command> [options]",
    about: Some("Configuration management and remote execution, compatible with Salt."),
    flags: &[shared::VERSION],
    groups: &[],
};

/// Runs a sub-command.
pub(crate) fn start(args: &[String]) -> u8 {
    let Some((first, rest)) = args.split_first() else {
        terminal::out(&help());
        return 64;
    };
    if first.starts_with('-') || first == "help" {
        return options(args);
    }
    if let Some(own) = OWN.iter().find(|own| own.name == *first) {
        return (own.run)(rest);
    }
    if let Some(entry) = entry_of(first) {
        return programs::start(entry, rest);
    }
    let names = OWN.iter().map(|own| own.name);
    let names = names.chain(programs::ENTRIES.iter().map(short_name));
    let hint = suggest::nearest(first, names).map(|name| format!("; did you mean `{name}`?"));
    programs::usage_error(
        &PROGRAM,
        &format!("no such command: {first}{}", hint.unwrap_or_default()),
        programs::format_in(args),
    )
}

fn options(args: &[String]) -> u8 {
    match PROGRAM.parse(args, &terminal::env) {
        Err(Stop::Error(message)) => {
            programs::usage_error(&PROGRAM, &message, programs::format_in(args))
        }
        Err(Stop::Version) => {
            terminal::out(&version::line(&PROGRAM));
            0
        }
        Ok(parsed) if parsed.bool("versions_report") => {
            terminal::out(&version::report());
            0
        }
        Ok(_) | Err(Stop::Help) => {
            terminal::out(&help());
            0
        }
    }
}

/// Returns the program a sub-command means: `call`, `salt-call`, and `salt` for itself.
fn entry_of(name: &str) -> Option<&'static Entry> {
    programs::ENTRIES.iter().find(|entry| name == entry.program.name || name == short_name(entry))
}

fn short_name(entry: &Entry) -> &'static str {
    entry.program.name.strip_prefix("salt-").unwrap_or(entry.program.name)
}

fn help() -> String {
    let mut text = format!("{}\n{}\n\n", PROGRAM.usage_line(), PROGRAM.about.unwrap_or_default());
    text += "Programs of Salt:\n";
    for entry in programs::ENTRIES {
        let about = entry.program.about.unwrap_or("Runs functions over ssh, without a minion.");
        text += &format!("  {:<15} {about}\n", short_name(entry));
    }
    text += "\nMore:\n";
    for own in OWN {
        text += &format!("  {:<15} {}\n", own.name, own.about);
    }
    text + "\nEach command has its own --help.\n"
}

/// `halite reactor test TAG DATA` is `salt-run reactor.test TAG DATA`, and so on.
fn reactor(args: &[String]) -> u8 {
    let known = ["test", "list", "add", "delete", "status", "dead", "retry"];
    let Some(at) = args.iter().position(|arg| known.contains(&arg.as_str())) else {
        let message = format!("one of {} is expected", known.join(", "));
        return programs::usage_error(&REACTOR, &message, programs::format_in(args));
    };
    let Some(entry) = entry_of("salt-run") else { return missing("reactor") };
    let mut args = args.to_vec();
    let word = if args[at] == "dead" { "dead_letters".to_owned() } else { args[at].clone() };
    args[at] = format!("reactor.{word}");
    programs::start(entry, &args)
}

static REACTOR: Program = Program {
    name: "halite",
    usage: "reactor test|list|add|delete|status|dead|retry [arguments]",
    about: Some("Shows and tries what events lead to."),
    flags: &[],
    groups: &[],
};

fn missing(what: &'static str) -> u8 {
    let format = programs::format_of(&crate::optparse::Parsed::default());
    programs::show(&programs::not_built(&format!("halite {what}")), format)
}
