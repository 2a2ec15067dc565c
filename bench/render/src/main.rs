//! Measures Rust: `render ENGINE WORKLOAD TEMPLATES YAML SECONDS` prints one JSON object, as
//! `genuine.py` does for Python.
//!
//! Engine `halite` is the product, `minijinja` a yardstick. Templates are compiled once and cached,
//! as both engines do; YAML is read anew each time.

use std::{
    error::Error,
    fs,
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use halite_value::{json, yaml};
use nix::time::{ClockId, clock_gettime};
use sha2::{Digest, Sha256};

type Result<T> = std::result::Result<T, Box<dyn Error>>;
/// One run of a workload; what it made is returned so that nothing can be optimised away.
type Run = Box<dyn Fn() -> Result<String>>;

const CONTEXT: &str =
    r#"{"prefix": "/srv", "settings": {"home": "/srv/home"}, "grains": {"os_family": "Debian"}}"#;

fn main() -> ExitCode {
    match measure() {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("render: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Result<String> {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let [engine, workload, templates, path, seconds] = args.as_slice() else {
        return Err("usage: render ENGINE WORKLOAD TEMPLATES YAML SECONDS".into());
    };
    let seconds = Duration::from_secs_f64(seconds.parse()?);
    let (run, show): (Run, Run) = match (engine.as_str(), workload.as_str()) {
        ("halite", "yaml") => {
            let text = fs::read_to_string(path)?;
            let again = text.clone();
            let show = move || Ok(json::to_string(&yaml::load_str(&again)?)?);
            (Box::new(move || Ok(yaml::load_str(&text).map(|_| String::new())?)), Box::new(show))
        }
        ("minijinja", _) => {
            let name = format!("{workload}.sls");
            (minijinja(templates.as_ref(), &name)?, minijinja(templates.as_ref(), &name)?)
        }
        _ => return Err(format!("{engine} has no {workload}").into()),
    };
    let shown = show()?;
    drop(show);
    let mut times = Vec::new();
    let begin = Instant::now();
    while begin.elapsed() < seconds || times.len() < 5 {
        let before = processor_time()?;
        std::hint::black_box(run()?);
        times.push(processor_time()? - before);
    }
    times.sort();
    let ms = times[times.len() / 2].as_secs_f64() * 1000.0;
    let hash: String =
        Sha256::digest(shown.trim()).iter().map(|byte| format!("{byte:02x}")).collect();
    let result = serde_json::json!({
        "ms": ms, "runs": times.len(), "peak_kb": peak_kb()?, "sha256": hash,
    });
    Ok(result.to_string())
}

fn minijinja(templates: &Path, name: &str) -> Result<Run> {
    let mut environment = minijinja::Environment::new();
    environment.set_loader(minijinja::path_loader(templates));
    environment.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
    let context: serde_json::Value = serde_json::from_str(CONTEXT)?;
    let context = minijinja::Value::from_serialize(&context);
    let name = name.to_owned();
    Ok(Box::new(move || Ok(environment.get_template(&name)?.render(&context)?)))
}

/// Returns the processor time this process took so far.
fn processor_time() -> Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)?.into())
}

/// Returns the most memory this process ever held.
fn peak_kb() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let line = line.ok_or("the kernel does not tell")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse()?)
}
