//! Talking to the fleet from a terminal: what `salt`, `salt-cp` and `salt-run` share.
//!
//! - [`connect`] finds the master's control socket; [`job`] makes a job from the command line;
//! - `batch.rs` runs a job on a few minions at a time;
//! - `sign_in.rs` is `-a`: the rights of somebody else;
//! - `ticker.rs` is the line that tells people on a terminal how far things are.

pub mod batch;
pub mod sign_in;
pub mod ticker;

use std::path::Path;

pub use halite_client::batch::retcode;
use halite_client::{Client, Error, Job, Patience, Published};
use halite_value::{Dict, SmolStr, Value};

use crate::{args::yamlify, diagnostics::Report, programs::Context, terminal};

/// Connects to the master, or says why not and returns the exit code.
pub fn connect(cx: &Context) -> Result<Client, u8> {
    let mut client = Client::connect(Path::new(&*cx.opts.str("sock_dir")))
        .map_err(|error| unreachable(cx, &error))?;
    sign_in::sign_in(cx, &mut client)?;
    Ok(client)
}

fn unreachable(cx: &Context, error: &Error) -> u8 {
    cx.report(&match error {
        // differs: Salt says this on standard output, and ends with 0.
        Error::NotRunning { .. } => {
            Report::error("The salt master could not be contacted. Is master running?")
                .help(error.to_string())
                .exit(2)
        }
        _ => Report::error(error.to_string()).exit(2),
    })
}

/// Shows why the master did not do it, in Salt's way: its words as if they were the return.
pub fn refused(cx: &Context, error: &Error) -> u8 {
    match error {
        Error::Refused { message, .. } => {
            let text = message.as_str().into();
            match crate::display::show(cx, &text, "", None, 0) {
                Ok(()) => 0,
                Err(error) => cx.report(&Report::error(error.to_string()).exit(1)),
            }
        }
        other => cx.report(&Report::error(other.to_string()).exit(2)),
    }
}

/// What is said when a target means nobody.
pub const NOBODY: &str =
    "No minions matched the target. No command was sent, no jid was assigned.\n";

/// Tells whether a target means nobody; below a master of masters there may be somebody all the same.
pub fn means_nobody(cx: &Context, published: &Published) -> bool {
    published.jid.is_empty() || (published.minions.is_empty() && !cx.opts.bool("order_masters"))
}

/// Returns the way of targeting that was chosen.
pub fn target_type(cx: &Context) -> SmolStr {
    cx.opts.opt_str("selected_target_option").unwrap_or_else(|| "glob".into())
}

pub fn patience(cx: &Context) -> Patience {
    Patience::from_opts(cx.opts.values())
}

/// Whom a job is filed under: `sudo_ann` when Ann became root. Empty: as the socket tells.
pub fn user() -> SmolStr {
    let sudo = terminal::env("SUDO_USER").filter(|user| !user.is_empty() && user != "root");
    match sudo {
        Some(user) if nix::unistd::geteuid().is_root() => format!("sudo_{user}").into(),
        _ => SmolStr::default(),
    }
}

/// Makes the job the command line describes.
pub fn job(cx: &Context) -> Job {
    let text = |dest: &str| cx.parsed.str(dest).filter(|text| !text.is_empty());
    let kwargs = Dict::new();
    if let Some(delimiter) = text("delimiter") {
        kwargs.insert("delimiter", delimiter);
    }
    kwargs.insert("show_timeout", cx.opts.bool("show_timeout"));
    kwargs.insert("show_jid", cx.opts.bool("show_jid"));
    if let Some(config) = text("return_config") {
        kwargs.insert("ret_config", config);
    }
    for (dest, name) in [
        ("return_kwargs", "ret_kwargs"),
        ("module_executors", "module_executors"),
        ("executor_opts", "executor_opts"),
        ("metadata", "metadata"),
    ] {
        match cx.parsed.get(dest) {
            Value::Str(text) if !text.is_empty() => {
                kwargs.insert(name, yamlify(&text));
            }
            value if value.truthy() => {
                kwargs.insert(name, value);
            }
            _ => {}
        }
    }
    if let Some(seconds) = cx.parsed.int("queue_offline").filter(|seconds| *seconds > 0) {
        kwargs.insert("ttl", seconds);
    }
    if cx.parsed.bool("start_event") {
        kwargs.insert("start_event", true);
    }
    let timeout = cx.opts.opt_int("timeout").filter(|timeout| *timeout > 0);
    Job {
        arg: cx.opts.list("arg"),
        ret: text("return").unwrap_or_default().into(),
        user: user(),
        timeout,
        kwargs,
        ..Job::new(
            cx.opts.get("tgt").unwrap_or_default(),
            &target_type(cx),
            cx.opts.get("fun").unwrap_or_default(),
        )
    }
}

/// What `-v` prints first.
pub fn header(jid: &str) -> String {
    let line = format!("Executing job with jid {jid}");
    format!("{line}\n{}\n\n", "-".repeat(line.len()))
}
