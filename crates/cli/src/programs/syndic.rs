//! `salt-syndic`: the syndic daemon.

use std::path::PathBuf;

use halite_config::{Request, Role};
use halite_minion::daemon::syndic::{self, Start};

use crate::{
    daemon as system,
    diagnostics::Report,
    machine::Real,
    optparse::{Flag, Group, Program},
    programs::{Context, minion::PidFile, shared},
};

static LOGGING: Group = Group {
    title: shared::LOGGING_TITLE,
    about: Some(shared::LOGGING_ABOUT),
    flags: &[
        shared::LOG_LEVEL,
        shared::log_file("syndic_log_file", "File to log to. Default: '/var/log/salt/syndic'."),
        shared::LOG_FILE_LEVEL,
    ],
};

static DAEMON: &[Flag] =
    &[shared::DAEMON, shared::pid_file("/var/run/salt-syndic.pid"), shared::DISABLE_KEEPALIVE];

pub static PROGRAM: Program = Program {
    name: "salt-syndic",
    usage: "[options]",
    about: Some(
        "The syndic, which passes the commands of a higher master on to the master it runs beside.",
    ),
    flags: &[shared::VERSION, shared::SALTFILE, shared::CONFIG_DIR, shared::USER, DAEMON],
    groups: &[LOGGING],
};

/// Runs the daemon.
pub fn run(cx: &mut Context) -> u8 {
    let own = ["pki_dir", "sock_dir"];
    if let Err(no) = system::sole(cx, "syndic").and_then(|()| system::begin(cx, &own)) {
        return cx.report(&Report::error(no.text).exit(no.code));
    }
    let sock_dir = match master_sock_dir(cx) {
        Ok(folder) => folder,
        Err(error) => return cx.report(&Report::from(&error)),
    };
    let pid_file = PidFile::write(&cx.opts.str("pidfile"));
    system::notify("READY=1\nSTATUS=running");
    let ended = syndic::run(Start { opts: cx.opts.values().clone(), sock_dir });
    system::notify("STOPPING=1");
    drop(pid_file);
    match ended {
        Ok(code) => code,
        Err(error) => cx.report(&Report::error(error.to_string()).exit(1)),
    }
}

/// Returns where the master beside has its sockets: a syndic's own `sock_dir` is the minion's.
fn master_sock_dir(cx: &Context) -> Result<PathBuf, halite_config::Error> {
    let folder = cx.parsed.str("config_dir").unwrap_or_default();
    let request = Request {
        role: Role::Master,
        config_dir: &folder,
        minion_id: None,
        remember_id: false,
        strict: false,
        program: cx.program.name,
    };
    let master = halite_config::load(&request, &Real)?;
    Ok(PathBuf::from(master.str("sock_dir").as_str()))
}
