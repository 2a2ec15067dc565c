//! `make bench`, the part with thousands of minions: `bench/swarm/swarm.py` measures our master under
//! `halite swarm`. There is no genuine column: a genuine minion takes a process of 50 MB, and ten
//! thousand of them fit on no machine this runs on.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::shell;

/// A figure: its place, what it is, and goals by the number of minions.
type Figure = (&'static str, &'static str, &'static [(u64, f64)]);

/// Figures: path in the result, what it is, and the goal for a number of minions.
const FIGURES: [Figure; 9] = [
    ("ping.seconds", "ping, s", &[(1000, 0.3), (10_000, 1.0)]),
    ("event_to_all.seconds", "event to reaction on all, s", &[(10_000, 1.5)]),
    ("master_idle_mb", "master without minions, MB", &[(10_000, 20.0)]),
    ("master_mb", "master with minions, MB", &[(10_000, 200.0)]),
    ("grain_match.seconds", "match by grain, s", &[(10_000, 0.005)]),
    ("key_list.seconds", "list of keys, s", &[(10_000, 0.01)]),
    ("restart_all_back_s", "back after kill -9, s", &[(10_000, 15.0)]),
    ("pillar_edit.seconds", "pillar for all after an edit, s", &[(10_000, 5.0)]),
    ("all_signed_in_s", "all signed in, s", &[]),
];

pub(super) fn run(root: &Path, folder: &Path) -> Result<()> {
    let halite = super::release(root)?;
    let out = folder.join("swarm.json");
    let mut command = Command::new("python3");
    command.arg(root.join("bench/swarm/swarm.py")).arg("--out").arg(&out);
    command.arg("--halite").arg(halite);
    if let Some(more) = std::env::var_os("SWARM_ARGS") {
        command.args(more.to_string_lossy().split_whitespace());
    }
    shell::output(&mut command)?;
    let results: Value = serde_json::from_str(&fs::read_to_string(&out)?)
        .with_context(|| out.display().to_string())?;
    print!("{}", table(&results));
    Ok(())
}

fn table(results: &Value) -> String {
    let empty = Vec::new();
    let sizes = results["sizes"].as_array().unwrap_or(&empty);
    let mut text = format!("{:<36}", "swarm");
    for size in sizes {
        text += &format!("{:>22}", size["minions"].as_u64().unwrap_or(0));
    }
    text.push('\n');
    for (path, title, goals) in FIGURES {
        text += &format!("{title:<36}");
        for size in sizes {
            let pointer = format!("/{}", path.replace('.', "/"));
            let figure = size.pointer(&pointer).and_then(Value::as_f64);
            let minions = size["minions"].as_u64().unwrap_or(0);
            let goal = goals.iter().find(|(own, _)| *own == minions).map(|(_, goal)| *goal);
            let mark = match (figure, goal) {
                (Some(figure), Some(goal)) if figure <= goal => " met",
                (Some(_), Some(_)) => " missed",
                _ => "",
            };
            let figure = figure.map_or("-".to_owned(), |figure| format!("{figure:.3}{mark}"));
            text += &format!("{figure:>22}");
        }
        text.push('\n');
    }
    text
}
