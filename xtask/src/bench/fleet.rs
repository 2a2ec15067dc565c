//! `make bench`, the part with daemons: one master and up to forty minions of each make, one after the
//! other, through the same scenarios. `bench/fleet/fleet.py` drives them by their command lines only.
//!
//! The result is a table of ratios and `fleet.json`: for each figure genuine Salt's, ours, how many times
//! better ours is, and whether the goal is met; and how many returns were missing in all. What
//! `fleet.py` found besides stays in the build folder, in `fleet-salt.json` and `fleet-halite.json`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use crate::shell;

/// Which way a figure is better.
#[derive(Clone, Copy, PartialEq)]
enum Better {
    Less,
    More,
}

/// Figures: scenario, path in its result, what it is, which way it is better, and the goal as a ratio.
const FIGURES: [(&str, &str, &str, Better, f64); 15] = [
    ("ping@1", "wall_s.median", "ping, 1 minion, s", Better::Less, 20.0),
    ("ping@10", "wall_s.median", "ping, 10 minions, s", Better::Less, 20.0),
    ("ping@40", "wall_s.median", "ping, 40 minions, s", Better::Less, 20.0),
    ("grains_items@10", "wall_s.median", "grains.items, 10 minions, s", Better::Less, 20.0),
    ("sequential", "wall_s", "50 jobs one after another, s", Better::Less, 20.0),
    ("parallel@10", "wall_per_round_s.median", "20 jobs at once, s", Better::Less, 20.0),
    ("apply@20", "first_run.wall_s", "30 templated files, 20 minions, s", Better::Less, 20.0),
    ("apply@20", "second_run.wall_s", "the same, nothing to do, s", Better::Less, 20.0),
    ("get_file", "mb_per_s", "file transfer, MB/s", Better::More, 1.0),
    ("idle@1", "master.pss_mb", "memory of the master, MB", Better::Less, 10.0),
    ("idle@1", "per_minion.pss_mb", "memory of a minion, MB", Better::Less, 10.0),
    ("fault@10", "cli_wall_s.median", "ping with 1 of 10 dead, s", Better::Less, 20.0),
    ("restart@40", "runs.0.all_answer_s", "master killed, all 40 answer, s", Better::Less, 5.0),
    ("master_start", "ports_open_s", "start of the master, s", Better::Less, 20.0),
    ("minion_start", "known_key_s.median", "start of a minion, s", Better::Less, 5.0),
];

/// Scenarios of `fleet.py` that are run.
const SCENARIOS: &str = "master_start,idle,minion_start,ping,grains_items,sequential,parallel,apply,\
                         get_file,fault,restart";

/// The figure that must be zero.
const MISSING: &str = "returns that never came";

/// Measures both makes and prints the ratios. `genuine` is the folder of Salt's programs.
pub(super) fn run(root: &Path, folder: &Path, genuine: &Path) -> Result<()> {
    let halite = super::release(root)?;
    let bin = folder.join("bin");
    let _ = fs::remove_dir_all(&bin);
    fs::create_dir_all(&bin)?;
    std::os::unix::fs::symlink(&halite, bin.join("halite"))?;
    shell::output(Command::new(bin.join("halite")).arg("install-links").arg(&bin))?;
    let theirs = measure(root, folder, "salt", genuine)?;
    let ours = measure(root, folder, "halite", &bin)?;
    let mut figures = Map::new();
    println!("{:<36}{:>12}{:>12}{:>10}   goal", "fleet", "salt", "halite", "ratio");
    for (scenario, path, title, better, goal) in FIGURES {
        let (Some(old), Some(new)) = (at(&theirs, scenario, path), at(&ours, scenario, path))
        else {
            println!("{title:<36}{:>12}", "-");
            continue;
        };
        let ratio = if better == Better::Less { old / new } else { new / old };
        let met = ratio >= goal;
        let mark = if met { "met" } else { "not met" };
        println!("{title:<36}{old:>12.3}{new:>12.3}{ratio:>9.1}x   {goal}x {mark}");
        let figure = json!({"salt": old, "halite": new, "ratio": ratio, "goal": goal, "met": met});
        figures.insert(title.to_owned(), figure);
    }
    let (old, new) = (missing(&theirs), missing(&ours));
    println!("{MISSING:<36}{old:>12}{new:>12}");
    figures.insert(MISSING.to_owned(), json!({"salt": old, "halite": new, "met": new == 0}));
    super::save(&folder.join("fleet.json"), &figures.into())
}

/// Returns how many returns and whole answers never came, over all scenarios.
fn missing(results: &Value) -> u64 {
    let scenarios = results.get("scenarios").and_then(Value::as_object);
    let count = |scenario: &Value, key: &str| scenario.get(key).and_then(Value::as_u64);
    scenarios
        .into_iter()
        .flat_map(Map::values)
        .filter_map(|scenario| count(scenario, "missing_returns").or(count(scenario, "failures")))
        .sum()
}

fn measure(root: &Path, folder: &Path, name: &str, bin: &Path) -> Result<Value> {
    let out = folder.join(format!("fleet-{name}.json"));
    let _ = fs::remove_file(&out);
    // Short: unix sockets live in there.
    let scratch: PathBuf = std::env::temp_dir().join(format!("hxb-{name}"));
    let mut command = Command::new("python3");
    command.arg(root.join("bench/fleet/fleet.py")).args(["--name", name, "--only", SCENARIOS]);
    command.arg("--bin").arg(bin).arg("--scratch").arg(&scratch).arg("--out").arg(&out);
    if let Some(more) = std::env::var_os("FLEET_ARGS") {
        command.args(more.to_string_lossy().split_whitespace());
    }
    let done = shell::output(&mut command);
    let _ = fs::remove_dir_all(&scratch);
    done?;
    serde_json::from_str(&fs::read_to_string(&out)?).with_context(|| out.display().to_string())
}

/// Returns a number by its path in a scenario's result.
fn at(results: &Value, scenario: &str, path: &str) -> Option<f64> {
    let mut value = results.get("scenarios")?.get(scenario)?;
    for part in path.split('.') {
        value = match part.parse::<usize>() {
            Ok(index) => value.get(index)?,
            Err(_) => value.get(part)?,
        };
    }
    value.as_f64()
}
