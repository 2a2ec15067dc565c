//! `make bench`: Halite beside genuine Salt, on this machine, in one run.
//!
//! `bench/README.md` says what is measured. Salt comes from pip, into a virtual environment in the
//! build folder; `SALT_PYTHON` names an interpreter that has it already. Every engine must make the
//! same text from a workload, or the comparison would be worth nothing.

mod bridge;
mod fleet;
mod swarm;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::shell;

const SALT: &str = "salt==3008.3";
/// Names the executable to measure, instead of a release build of this tree.
const GIVEN: &str = "HALITE_BIN";
/// How long each engine repeats each workload.
const SECONDS: &str = "3";
/// Columns of the table; the first is what others are compared with.
const ENGINES: [&str; 5] = ["halite", "salt", "python", "minijinja", "libyaml-safer"];
/// Workloads with what they are, and the ratio to `salt` we aim for.
const WORKLOADS: [(&str, &str, f64); 3] = [
    ("loop", "Jinja, 2,000 turns of a loop", 10.0),
    ("chain", "Jinja, chain of 7 imports", 50.0),
    ("yaml", "YAML, 5,000 lines", 20.0),
];

/// Runs all benchmarks, or the named ones.
pub(crate) fn run(root: &Path, names: &[&str]) -> Result<()> {
    let folder = shell::target_dir(root).join("bench");
    fs::create_dir_all(&folder)?;
    let python = python(&folder)?;
    if names.is_empty() || names.contains(&"render") {
        render(root, &folder, &python)?;
    }
    if names.is_empty() || names.contains(&"bridge") {
        let genuine = python.parent().context("an interpreter lies in a folder")?;
        let result = bridge::run(root, &folder, genuine)?;
        save(&folder.join("bridge.json"), &result)?;
    }
    if names.is_empty() || names.contains(&"startup") {
        startup(root, &folder, &python)?;
    }
    if names.is_empty() || names.contains(&"fleet") {
        let genuine = python.parent().context("an interpreter lies in a folder")?;
        fleet::run(root, &folder, genuine)?;
    }
    if names.is_empty() || names.contains(&"local") {
        local(root, &folder, &python)?;
    }
    if names.is_empty() || names.contains(&"events") {
        events(root, &folder, &python)?;
    }
    if names.is_empty() || names.contains(&"swarm") {
        swarm::run(root, &folder)?;
    }
    report(root, &folder)
}

/// Masterless runs of both makes.
fn local(root: &Path, folder: &Path, python: &Path) -> Result<()> {
    shell::need("time", "time")?;
    shell::need("valgrind", "valgrind")?;
    let halite = release(root)?;
    let genuine = python.parent().context("an interpreter lies in a folder")?;
    let mut command = Command::new("python3");
    command.arg(root.join("bench/local/local.py")).arg(halite).arg(genuine.join("salt-call"));
    shell::run(command.arg(folder.join("local.json")))
}

/// Events and reactions of both makes, one after the other.
fn events(root: &Path, folder: &Path, python: &Path) -> Result<()> {
    let halite = release(root)?;
    let bin = folder.join("bin");
    let _ = fs::remove_dir_all(&bin);
    fs::create_dir_all(&bin)?;
    std::os::unix::fs::symlink(&halite, bin.join("halite"))?;
    shell::output(Command::new(bin.join("halite")).arg("install-links").arg(&bin))?;
    let genuine = python.parent().context("an interpreter lies in a folder")?;
    let mut results = serde_json::Map::new();
    for (make, programs) in [("halite", bin.as_path()), ("salt", genuine)] {
        let mut command = Command::new(python);
        command.arg(root.join("bench/events/events.py")).args(["--name", make]);
        command.arg("--bin").arg(programs).arg("--scratch").arg(folder.join("events"));
        if let Some(more) = std::env::var_os("EVENTS_ARGS") {
            command.args(more.to_string_lossy().split_whitespace());
        }
        let text = shell::output(&mut command)?;
        let result: Value = serde_json::from_str(&text).context(text)?;
        println!("{make}: {result}");
        results.insert(make.to_owned(), result);
    }
    save(&folder.join("events.json"), &results.into())
}

/// Builds the executable that is measured, and returns it; `HALITE_BIN` names another one, to try
/// the benchmarks themselves.
fn release(root: &Path) -> Result<PathBuf> {
    if let Some(given) = std::env::var_os(GIVEN) {
        return Ok(given.into());
    }
    shell::run(
        shell::cargo()
            .args(["build", "--quiet", "--release", "--package", "halite"])
            .current_dir(root),
    )?;
    Ok(shell::target_dir(root).join("release/halite"))
}

/// Keeps the results in the repository and writes the report of all that are there.
fn report(root: &Path, folder: &Path) -> Result<()> {
    if std::env::var_os(GIVEN).is_some() {
        println!("bench: measured with {GIVEN}, so nothing is kept");
        return Ok(());
    }
    let kept = root.join("bench/results");
    fs::create_dir_all(&kept)?;
    for name in ["render", "startup", "bridge", "fleet", "local", "events", "swarm"] {
        let file = format!("{name}.json");
        if folder.join(&file).exists() {
            fs::copy(folder.join(&file), kept.join(&file))?;
        }
    }
    shell::run(Command::new("python3").arg(root.join("bench/report.py")))
}

/// Returns an interpreter that can import Salt.
fn python(folder: &Path) -> Result<PathBuf> {
    if let Some(python) = std::env::var_os("SALT_PYTHON") {
        return Ok(python.into());
    }
    let venv = folder.join("venv");
    let python = venv.join("bin/python");
    let imports = |python: &Path| {
        python.exists()
            && Command::new(python)
                .args(["-c", "import salt.version"])
                .status()
                .is_ok_and(|status| status.success())
    };
    if !imports(&python) {
        println!("bench: installing {SALT} into {}", venv.display());
        shell::need("python3", "python3-venv")?;
        shell::run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        let mut pip = Command::new(&python);
        shell::run(pip.args(["-m", "pip", "install", "--quiet", SALT]))?;
    }
    Ok(python)
}

fn render(root: &Path, folder: &Path, python: &Path) -> Result<()> {
    let built = folder.join("build");
    shell::run(
        shell::cargo()
            .args(["build", "--quiet", "--release", "--manifest-path"])
            .arg(root.join("bench/render/Cargo.toml"))
            .env("CARGO_TARGET_DIR", &built),
    )?;
    let yaml = folder.join("states.yaml");
    fs::write(&yaml, yaml_text())?;
    let templates = root.join("bench/render/templates");
    let mut results = serde_json::Map::new();
    for (workload, _, _) in WORKLOADS {
        let mut row = serde_json::Map::new();
        for engine in ENGINES {
            let mut command = if matches!(engine, "salt" | "python") {
                let mut command = Command::new(python);
                command.arg(root.join("bench/render/genuine.py"));
                command
            } else {
                Command::new(built.join("release/halite-bench-render"))
            };
            command.args([engine, workload]).arg(&templates).arg(&yaml).arg(SECONDS);
            let reads_yaml = workload == "yaml";
            if engine == if reads_yaml { "minijinja" } else { "libyaml-safer" } {
                continue;
            }
            match shell::output(&mut command) {
                Ok(line) => {
                    let result: Value = serde_json::from_str(&line).context(line)?;
                    row.insert(engine.to_owned(), result);
                }
                // The yardsticks must run; what is not built yet of our own is shown as missing.
                Err(error) if engine == "halite" => println!("bench: no figure: {error:#}"),
                Err(error) => return Err(error),
            }
        }
        same_text(workload, &row)?;
        results.insert(workload.to_owned(), row.into());
    }
    let results = Value::Object(results);
    save(&folder.join("render.json"), &results)?;
    print!("{}", table(&results));
    Ok(())
}

/// Fails when two engines made different texts of one workload; some make none.
fn same_text(workload: &str, row: &serde_json::Map<String, Value>) -> Result<()> {
    let texts = row.iter().map(|(engine, result)| (engine, &result["sha256"]));
    let mut texts = texts.filter(|(_, text)| !text.is_null());
    let Some((first, text)) = texts.next() else { return Ok(()) };
    for (engine, other) in texts {
        ensure!(text == other, "{workload}: {engine} and {first} made different texts");
    }
    Ok(())
}

/// One line per workload: times, memory, and how many times longer others take than we do.
fn table(results: &Value) -> String {
    let mut text = format!("{:<30}", "median of one render");
    for engine in ENGINES {
        text += &format!("{engine:>26}");
    }
    text.push('\n');
    for (workload, title, goal) in WORKLOADS {
        text += &format!("{title:<30}");
        let row = &results[workload];
        let ours = row["halite"]["ms"].as_f64();
        for engine in ENGINES {
            let cell = match (row[engine]["ms"].as_f64(), row[engine]["peak_kb"].as_u64()) {
                (Some(ms), Some(kb)) => {
                    let ratio = match ours {
                        Some(ours) if engine != "halite" => format!(" {:.1}x", ms / ours),
                        _ => String::new(),
                    };
                    format!("{ms:.3} ms{ratio} {} MB", kb / 1024)
                }
                _ => "-".to_owned(),
            };
            text += &format!("{cell:>26}");
        }
        text += &format!("   (goal: salt {goal}x)\n");
    }
    text
}

/// `--version` of both, and the size of the executable.
fn startup(root: &Path, folder: &Path, python: &Path) -> Result<()> {
    let halite = release(root)?;
    let genuine = python.parent().context("an interpreter lies in a folder")?.join("salt");
    let ours = median_ms(&halite, 50)?;
    let theirs = median_ms(&genuine, 5)?;
    let bytes = fs::metadata(&halite)?.len();
    let ratio = theirs / ours;
    let result = json!({"halite_ms": ours, "salt_ms": theirs, "ratio": ratio, "bytes": bytes});
    save(&folder.join("startup.json"), &result)?;
    println!(
        "halite --version {ours:.2} ms, salt --version {theirs:.0} ms: {ratio:.0}x (goal: 50x)"
    );
    println!("size of the executable: {:.1} MB", bytes as f64 / 1e6);
    Ok(())
}

/// Returns the median wall time of `--version`.
fn median_ms(program: &Path, runs: usize) -> Result<f64> {
    let mut times = Vec::new();
    for _ in 0..runs {
        let before = Instant::now();
        shell::output(Command::new(program).arg("--version"))?;
        times.push(before.elapsed().as_secs_f64() * 1000.0);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

fn save(path: &Path, value: &Value) -> Result<()> {
    fs::write(path, format!("{value:#}\n")).with_context(|| format!("writing {}", path.display()))
}

/// 5,000 lines as state files have them. Only what Salt and bare PyYAML read alike.
fn yaml_text() -> String {
    let mut text = String::new();
    for i in 0..357 {
        let port = 8000 + i;
        text += &format!(
            "package_{i}:\n  pkg.installed:\n    - name: package-{i}\n    - version: '1.{i}.0'\n    \
             - require:\n      - file: /etc/repo.d/{i}.conf\n/etc/package/{i}.conf:\n  \
             file.managed:\n    - makedirs: true\n    - contents: |\n        listen = 0.0.0.0:{port}\n        \
             workers = {}\n    - context: {{name: p{i}, port: {port}, ratio: {i}.5, on_boot: yes, \
             tags: [a, b, 'c d']}}\n    - watch_in: [service: svc-{i}]\n",
            i % 8
        );
    }
    text + "last:\n  test.nop\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_as_many_lines_as_we_say() {
        assert_eq!(yaml_text().lines().count(), 5000);
    }

    #[test]
    fn different_texts_are_no_comparison() {
        let row = json!({"a": {"sha256": "1"}, "b": {"sha256": "2"}});
        let error = same_text("loop", row.as_object().expect("an object")).unwrap_err();
        assert_eq!(error.to_string(), "loop: b and a made different texts");
    }
}
