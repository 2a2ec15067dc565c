//! The command line of Halite: one executable, many programs.
//!
//! `main` hands its arguments to [`start`], which looks at the name it was called by. Only this
//! crate reads the environment, prints, or picks an exit code. Where to look:
//! - `optparse/`: the parser and its help; `programs/`: one table and one `run` per program;
//! - `args.rs`: arguments of functions, as Salt reads them from the command line;
//! - `diagnostics.rs`: how problems are shown; `logging.rs`: Salt's log lines; `log_handlers.rs`: users' handlers;
//! - `machine.rs`: files, environment and host names for the configuration;
//! - `beside.rs`: the master on a minion's machine;
//! - `doctor.rs` and `links.rs`: commands only Halite has.

pub mod args;
mod beside;
mod checkup;
pub mod daemon;
pub mod diagnostics;
pub mod display;
mod doctor;
pub mod fleet;
mod halite;
mod interrupt;
mod links;
mod log_handlers;
pub mod logging;
pub mod machine;
pub mod optparse;
pub mod programs;
mod sdb;
mod swarm;
pub mod terminal;
mod tree;
pub mod version;
pub mod wheel;
pub mod workshop;

/// Runs the program named by the first argument, and returns its exit code.
#[must_use]
pub fn start(args: &[String]) -> u8 {
    halite_minion::others::has_runners(halite_runners::runners);
    halite_minion::others::has_steps(&halite_runners::STATES);
    halite_minion::others::has_master(beside::ask);
    let Some((called, args)) = args.split_first() else { return halite::start(&[]) };
    let name = called.rsplit('/').next().unwrap_or(called);
    match programs::find(name) {
        Some(entry) => programs::start(entry, args),
        None => halite::start(args),
    }
}
