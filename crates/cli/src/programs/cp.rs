//! `salt-cp`: copy files to minions.

use halite_config::Machine as _;
use halite_value::Value;

use crate::{
    machine::Real,
    optparse::{Action, Group, Program, flag},
    programs::{Context, Early, check_output, check_targets, id_list, shared},
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

static FILES: Group = Group {
    title: "File Options",
    about: None,
    flags: &[
        flag(
            &["-C", "--chunked"],
            "chunked",
            Action::True,
            "Send files in pieces: for large files, and for whole folders.",
        ),
        flag(&["-n", "--no-compression"], "gzip", Action::False, "Do not compress."),
    ],
};

pub static PROGRAM: Program = Program {
    name: "salt-cp",
    usage: "[options] '<target>' SOURCE DEST",
    about: Some(
        "Copies files from the master to minions. Meant for small files, such as configuration.",
    ),
    flags: &[
        shared::VERSION,
        shared::SALTFILE,
        shared::CONFIG_DIR,
        &[shared::timeout(5)],
        shared::HARD_CRASH,
    ],
    groups: &[shared::TARGET_GROUP, shared::DELIMITER_GROUP, shared::OUTPUT_GROUP, FILES, LOGGING],
};

/// Looks at target, sources and destination.
pub(crate) fn check(cx: &mut Context) -> Result<(), Early> {
    check_output(cx)?;
    check_targets(cx, shared::TARGETS)?;
    let [target, sources @ .., destination] = cx.parsed.args.as_slice() else {
        return Err(Early::HelpThen("Insufficient arguments".into()));
    };
    let by_list = cx.parsed.bool("list");
    cx.opts.set("tgt", if by_list { id_list(target, true) } else { Value::from(target.as_str()) });
    let sources = sources.iter().map(|source| {
        let real = std::fs::canonicalize(source).map(|path| path.to_string_lossy().into_owned());
        real.unwrap_or_else(|_| halite_config::abspath(source, &Real.current_dir()))
    });
    cx.opts.set("src", Value::list(sources));
    cx.opts.set("dest", destination.as_str());
    Ok(())
}

/// Copies the files and prints where they arrived.
pub fn run(cx: &mut Context) -> u8 {
    cx.missing("salt-cp")
}
