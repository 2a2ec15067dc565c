//! `bridge`: what a call of a user's Python function costs, beside genuine Salt.

use std::{path::Path, process::Command};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::shell;

/// Runs `bench/bridge/bridge.py` with both programs; returns what it measured.
pub(super) fn run(root: &Path, folder: &Path, genuine: &Path) -> Result<Value> {
    let halite = super::release(root)?;
    let line =
        shell::output(Command::new("python3").arg(root.join("bench/bridge/bridge.py")).args([
            &halite,
            &genuine.join("salt-call"),
            &folder.join("bridge"),
        ]))?;
    let result: Value = serde_json::from_str(&line).context(line)?;
    for make in ["halite", "salt"] {
        let one = &result[make];
        println!(
            "{make}: a call of Python {} µs, with a call back {} µs, {} per second, start {} ms",
            one["call_us"], one["call_back_us"], one["calls_per_s"], one["start_ms"]
        );
    }
    println!("(goal: a warm call under 200 µs)");
    Ok(result)
}
