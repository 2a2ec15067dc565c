//! `salt-minion`: the minion daemon.

use std::{path::Path, sync::Arc};

use halite_minion::{
    Pipes,
    daemon::{self, Start},
};

use crate::{
    daemon as system,
    diagnostics::Report,
    optparse::{Flag, Group, Program},
    programs::{Context, shared},
};

static LOGGING: Group = Group {
    title: shared::LOGGING_TITLE,
    about: Some(shared::LOGGING_ABOUT),
    flags: &[
        shared::LOG_LEVEL,
        shared::log_file("log_file", "File to log to. Default: '/var/log/salt/minion'."),
        shared::LOG_FILE_LEVEL,
    ],
};

static DAEMON: &[Flag] =
    &[shared::DAEMON, shared::pid_file("/var/run/salt-minion.pid"), shared::DISABLE_KEEPALIVE];

pub static PROGRAM: Program = Program {
    name: "salt-minion",
    usage: "[options]",
    about: Some("The minion, which does what a master tells it."),
    flags: &[shared::VERSION, shared::SALTFILE, shared::CONFIG_DIR, shared::USER, DAEMON],
    groups: &[LOGGING],
};

/// Runs the daemon.
pub fn run(cx: &mut Context) -> u8 {
    serve(cx, "minion", &["pki_dir", "cachedir", "sock_dir"])
}

/// Runs a minion daemon; `word` is what is in the name of its program, `own` are options with the
/// folders its user must be able to use.
pub(crate) fn serve(cx: &Context, word: &str, own: &[&str]) -> u8 {
    let failed = |cx: &Context, text: String| cx.report(&Report::error(text).exit(1));
    if let Err(no) = system::sole(cx, word).and_then(|()| system::begin(cx, own)) {
        return cx.report(&Report::error(no.text).exit(no.code));
    }
    let pid_file = PidFile::write(&cx.opts.str("pidfile"));
    let opts = cx.opts.values().clone();
    let rendering = Arc::new(Pipes::new(&opts));
    system::notify("READY=1\nSTATUS=running");
    let ended = daemon::run(Start { opts, rendering });
    system::notify("STOPPING=1");
    drop(pid_file);
    match ended {
        Ok(code) => code,
        Err(error) => failed(cx, error.to_string()),
    }
}

/// The file that names the running daemon's process, for as long as it runs.
pub(crate) struct PidFile(String);

impl PidFile {
    pub(crate) fn write(path: &str) -> Option<Self> {
        if path.is_empty() {
            return None;
        }
        if let Some(folder) = Path::new(path).parent() {
            let _ = std::fs::create_dir_all(folder);
        }
        match std::fs::write(path, std::process::id().to_string()) {
            Ok(()) => Some(Self(path.to_owned())),
            Err(error) => {
                tracing::warn!("Unable to write the pid file {path}: {error}");
                None
            }
        }
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
