//! `salt-api`: the REST interface.

use crate::{
    optparse::{Flag, Group, Program},
    programs::{Context, shared},
};

static LOGGING: Group = Group {
    title: shared::LOGGING_TITLE,
    about: Some(shared::LOGGING_ABOUT),
    flags: &[
        shared::LOG_LEVEL,
        shared::log_file("api_logfile", "File to log to. Default: '/var/log/salt/api'."),
        shared::LOG_FILE_LEVEL,
    ],
};

static DAEMON: &[Flag] =
    &[shared::DAEMON, shared::pid_file("/var/run/salt-api.pid"), shared::DISABLE_KEEPALIVE];

pub static PROGRAM: Program = Program {
    name: "salt-api",
    usage: "[options]",
    about: Some("The interface through which other programs reach the master over HTTP."),
    flags: &[shared::VERSION, shared::CONFIG_DIR, DAEMON],
    groups: &[LOGGING],
};

/// Runs the daemon.
pub fn run(cx: &mut Context) -> u8 {
    cx.missing("salt-api")
}
