//! `salt-run`: run a runner on the master.

use crate::{
    args::Args,
    optparse::{Action, Flag, Group, Program, flag},
    programs::{Context, Early, check_jid, check_no_parse, check_output, shared},
};

static LOGGING: Group = Group {
    title: shared::LOGGING_TITLE,
    about: Some(shared::LOGGING_ABOUT),
    flags: &[
        shared::LOG_LEVEL,
        shared::log_file("log_file", "File to log to. Default: '/var/log/salt/master'."),
        shared::LOG_FILE_LEVEL,
    ],
};

static OWN: &[Flag] = &[
    flag(
        &["-d", "--doc", "--documentation"],
        "doc",
        Action::True,
        "Print the documentation of a runner, or of all.",
    ),
    flag(&["--async"], "async", Action::True, "Start the runner and do not wait for it."),
    flag(&["--skip-grains"], "skip_grains", Action::True, "Do without grains."),
];

// Salt has two groups of this name here.
static MORE_OUTPUT: Group = Group {
    title: "Output Options",
    about: shared::OUTPUT_GROUP.about,
    flags: &[flag(&["--quiet"], "quiet", Action::True, "Do not print the result.")],
};

pub static PROGRAM: Program = Program {
    name: "salt-run",
    usage: "[options] <function> [arguments]",
    about: Some("Runs a runner: a function of the master itself."),
    flags: &[
        shared::VERSION,
        shared::SALTFILE,
        shared::CONFIG_DIR,
        &[shared::timeout(1)],
        shared::ARGS_STDIN,
        shared::JID,
        shared::HARD_CRASH,
        shared::NO_PARSE,
        OWN,
    ],
    groups: &[
        shared::EAUTH_GROUP,
        shared::OUTPUT_GROUP,
        shared::PROFILING_GROUP,
        MORE_OUTPUT,
        LOGGING,
    ],
};

/// Looks at the arguments.
pub(crate) fn check(cx: &mut Context) -> Result<(), Early> {
    check_output(cx)?;
    check_no_parse(cx);
    check_jid(cx)?;
    if cx.parsed.bool("doc") && cx.parsed.args.len() > 1 {
        let message = "You can only get documentation for one method at one time";
        return Err(Early::Usage(message.into()));
    }
    cx.opts.set("fun", cx.parsed.args.first().map_or("", String::as_str));
    Ok(())
}

/// Returns the arguments of the function.
#[must_use]
pub fn arguments(cx: &Context) -> Args {
    Args::parse(cx.parsed.args.get(1..).unwrap_or_default(), &cx.opts.str_list("no_parse"))
}

/// Runs the runner and prints its result.
pub fn run(cx: &mut Context) -> u8 {
    cx.missing("salt-run")
}
