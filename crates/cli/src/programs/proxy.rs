//! `salt-proxy`: a minion for a device that cannot run one.

use crate::{
    optparse::{Flag, Group, Program},
    programs::{Context, Early, shared},
};

static LOGGING: Group = Group {
    title: shared::LOGGING_TITLE,
    about: Some(shared::LOGGING_ABOUT),
    flags: &[
        shared::LOG_LEVEL,
        shared::log_file("log_file", "File to log to. Default: '/var/log/salt/proxy'."),
        shared::LOG_FILE_LEVEL,
    ],
};

static DAEMON: &[Flag] =
    &[shared::DAEMON, shared::pid_file("/var/run/salt-proxy.pid"), shared::DISABLE_KEEPALIVE];

pub static PROGRAM: Program = Program {
    name: "salt-proxy",
    usage: "[options]",
    about: Some("The proxy minion, which controls a device that cannot run a minion."),
    flags: &[
        shared::VERSION,
        shared::SALTFILE,
        shared::CONFIG_DIR,
        shared::PROXYID,
        shared::USER,
        DAEMON,
    ],
    groups: &[LOGGING],
};

/// A proxy is nobody without an id: it has no host name to take it from.
pub(crate) fn check(cx: &mut Context) -> Result<(), Early> {
    match cx.parsed.str("proxyid") {
        Some(id) if !id.is_empty() => Ok(()),
        _ => Err(Early::Usage("salt-proxy requires --proxyid".into())),
    }
}

/// Runs the daemon: a minion's, whose options name it a proxy (`proxyid`).
pub fn run(cx: &mut Context) -> u8 {
    // The modules of a proxy do not lie below its `cachedir`.
    super::minion::serve(cx, "proxy", &["pki_dir", "cachedir", "sock_dir", "extension_modules"])
}
