//! `salt-master`: the master daemon.

use crate::{
    optparse::{Flag, Group, Program},
    programs::{Context, shared},
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

static DAEMON: &[Flag] =
    &[shared::DAEMON, shared::pid_file("/var/run/salt-master.pid"), shared::DISABLE_KEEPALIVE];

pub static PROGRAM: Program = Program {
    name: "salt-master",
    usage: "[options]",
    about: Some("The master, which controls the minions."),
    flags: &[shared::VERSION, shared::SALTFILE, shared::CONFIG_DIR, shared::USER, DAEMON],
    groups: &[LOGGING],
};

/// Runs the daemon.
pub fn run(cx: &mut Context) -> u8 {
    cx.missing("salt-master")
}
