//! `halite`, and every program of Salt under its own name.

use std::process::ExitCode;

/// Threads of a master allocate all the time, and for one another: the C library's allocator has them wait
/// (docs/decisions/0022-allocator.md).
#[global_allocator]
static MEMORY: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    // Arguments that are no UTF-8 cannot be told from a broken terminal: they are read as well as possible.
    let args = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned());
    ExitCode::from(halite_cli::start(&args.collect::<Vec<_>>()))
}
