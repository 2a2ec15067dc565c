//! Command lines, one argument per line. Parsing one never prints and never ends the process. All
//! lines are then read as arguments of a function.
//!
//! The files are compiled in here by their path: the crate `cli` links the whole product, and
//! building that with coverage would take longer than the fuzzing. The options are those programs
//! share.
#![no_main]
#![allow(dead_code, unreachable_pub, reason = "the files are public in their own crate")]

use args::Args;
use halite_fuzz::timed;
use libfuzzer_sys::fuzz_target;
use optparse::Program;

#[path = "../../crates/cli/src/args.rs"]
mod args;

#[path = "../../crates/cli/src/optparse/mod.rs"]
mod optparse;

#[path = "../../crates/cli/src/programs/shared.rs"]
mod shared;

mod programs {
    /// What `args` names of `programs`; only the shape matters here.
    pub(crate) fn is_jid(text: &str) -> bool {
        text.len() == 20 && text.bytes().all(|byte| byte.is_ascii_digit())
    }
}

static PROGRAM: Program = Program {
    name: "salt",
    usage: "[options] '<target>' <function> [arguments]",
    about: None,
    flags: &[
        shared::VERSION,
        shared::SALTFILE,
        shared::CONFIG_DIR,
        shared::EXECUTORS,
        shared::ARGS_STDIN,
        shared::NO_PARSE,
        shared::JID,
        shared::USER,
        shared::TARGETS,
    ],
    groups: &[],
};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let typed: Vec<String> = text.lines().map(str::to_owned).collect();
    timed(data, || {
        let _ = PROGRAM.parse(&typed, &|_| None);
        let _ = Args::parse(&typed, &[]).condition();
    });
});
