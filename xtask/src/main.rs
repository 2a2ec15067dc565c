//! The project's own scripts, in Rust: `cargo xtask help` lists them.
//!
//! `gen` writes what is derived from the tree (registration lists, the list of deviations) and
//! `gen --check` only tells whether it is up to date; `tidy` fails on what neither compiler nor
//! clippy can see; `docs` writes the reference pages; `counts` prints how many recorded cases the
//! case files hold. Every command works from any folder: it finds the root by its own manifest.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people at a terminal"
)]

mod bench;
mod counts;
mod demo;
mod differences;
mod docs;
mod fuzz;
mod generated;
mod layout;
mod lists;
mod shell;
mod tidy;
mod tree;

use std::process::ExitCode;

use anyhow::{Result, bail};

const USAGE: &str = "\
usage: cargo xtask <command>

  gen [--check]   write the generated lists; --check: fail when one is stale
  tidy            fail on wrong dependency arrows, dead files, stale lists, forbidden crates …
  docs            write the reference pages from the declarations
  counts          print the number of recorded cases per case file
  bench [render] [startup] [bridge] [local] [fleet] [events] [swarm]
                  measure side by side with genuine Salt
  layout          write the order of functions in the executable (needs valgrind)
  setup           install what the tests call, where it is missing (Debian)
  demo            build, and walk through the example tree
  fuzz SECONDS SEED [TARGET…]
                  run the fuzz targets, that long each; SEED 0 takes other inputs every time";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let root = tree::root();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["gen"] => generated::write(root),
        ["gen", "--check"] => generated::check(root),
        ["tidy"] => tidy::run(root),
        ["docs"] => docs::run(root),
        ["counts"] => counts::run(root),
        ["bench", ref names @ ..] => bench::run(root, names),
        ["layout"] => layout::run(root),
        ["setup"] => {
            shell::need("python3", "python3").and_then(|()| shell::need("openssl", "openssl"))
        }
        ["demo"] => demo::run(root),
        ["fuzz", seconds, seed, ref names @ ..] => fuzz::run(root, seconds, seed, names),
        [] | ["help" | "-h" | "--help"] => {
            println!("{USAGE}");
            Ok(())
        }
        _ => bail!("unknown command `{}`\n\n{USAGE}", args.join(" ")),
    }
}
