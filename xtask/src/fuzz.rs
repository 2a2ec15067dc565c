//! Runs the fuzz targets for a bounded time each, on the stable toolchain.
//!
//! The targets live in `fuzz/`, a workspace of its own. They are optimised and carry LLVM's coverage
//! counters, which stable rustc can insert; the address sanitizer is left out on purpose: what is
//! fuzzed is safe Rust, and it would blur the time limit that the targets check. New inputs are
//! kept in the build folder; the small committed corpus in `fuzz/corpus/` is only read.
//!
//! With a seed a run begins at the committed corpus and makes the same inputs as the last one did,
//! as far as the time goes: what fails for one fails for all. Seed 0 goes on from what earlier runs
//! found, with new inputs every time; that is how new failures are looked for.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use anyhow::{Context, Result, bail};

use crate::shell;

/// The passes and options by which libFuzzer sees which code an input reaches.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
                     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
                     -Cllvm-args=-sanitizer-coverage-pc-table \
                     -Cllvm-args=-sanitizer-coverage-trace-compares";

/// Builds and runs the named targets, or all.
pub(crate) fn run(root: &Path, seconds: &str, seed: &str, names: &[&str]) -> Result<()> {
    let seconds: u32 = seconds.parse().context("SECONDS must be a whole number")?;
    let seed: u32 = seed.parse().context("SEED must be a whole number")?;
    shell::need("c++", "g++")?;
    let built = build(root)?;
    let names: Vec<String> = if names.is_empty() {
        targets(root)?
    } else {
        names.iter().map(|name| (*name).to_owned()).collect()
    };
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    let workers = thread::available_parallelism().map_or(1, Into::into);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match one(root, &built, name, seconds, seed) {
                        Ok(line) => println!("{line}"),
                        Err(error) => {
                            println!("fuzz {name}: FAILED\n{error:#}");
                            failed.lock().expect("no panic under it").push(name.clone());
                        }
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("no panic under it");
    if !failed.is_empty() {
        bail!("fuzz targets failed: {}", failed.join(", "));
    }
    Ok(())
}

/// Builds all targets and returns the folder they are in.
fn build(root: &Path) -> Result<PathBuf> {
    let host = shell::output(Command::new("rustc").arg("--version").arg("--verbose"))?;
    let host = host
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .context("rustc does not name its host")?;
    let folder = shell::target_dir(root).join("fuzz");
    // With `--target` the flags reach the targets only, not build scripts and macros.
    shell::run(
        shell::cargo()
            .args(["build", "--quiet", "--release", "--target", host, "--manifest-path"])
            .arg(root.join("fuzz/Cargo.toml"))
            .env("CARGO_TARGET_DIR", &folder)
            .env("RUSTFLAGS", FLAGS)
            .env("CARGO_INCREMENTAL", "0"),
    )?;
    Ok(folder.join(host).join("release"))
}

fn targets(root: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root.join("fuzz/targets"))? {
        let path = entry?.path();
        names.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

/// Runs one target; returns a line for people.
fn one(root: &Path, built: &Path, name: &str, seconds: u32, seed: u32) -> Result<String> {
    let scratch = shell::target_dir(root).join("fuzz/runs").join(name);
    let found = scratch.join(if seed == 0 { "corpus" } else { "seeded" });
    if seed != 0 && found.exists() {
        fs::remove_dir_all(&found)?;
    }
    fs::create_dir_all(&found)?;
    let log = scratch.join("log");
    let status = Command::new(built.join(name))
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-seed={seed}"))
        .arg("-max_len=4096")
        .arg("-timeout=10")
        .arg("-rss_limit_mb=2048")
        .arg("-print_final_stats=1")
        .arg(format!("-artifact_prefix={}/", scratch.display()))
        .arg(&found)
        .arg(root.join("fuzz/corpus").join(name))
        .stdout(File::create(&log)?)
        .stderr(File::options().append(true).open(&log)?)
        .status()
        .with_context(|| format!("starting the fuzz target {name}"))?;
    let text = fs::read(&log)?;
    let text = String::from_utf8_lossy(&text);
    if !status.success() {
        let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        bail!(
            "{}\n(all of it: {})",
            lines[lines.len().saturating_sub(30)..].join("\n"),
            log.display()
        );
    }
    let stat = |key: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix("stat::")?.strip_prefix(key))
            .map_or("?", |value| value.trim_start_matches(':').trim())
            .to_owned()
    };
    let (runs, new) = (stat("number_of_executed_units"), stat("new_units_added"));
    Ok(format!("fuzz {name}: {runs} inputs in {seconds} s, {new} new, none failed"))
}
