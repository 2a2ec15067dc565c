//! Measures Rust: `render ENGINE WORKLOAD TEMPLATES YAML SECONDS` prints one JSON object, as
//! `genuine.py` does for Python.
//!
//! Engine `halite` is the product; `minijinja` and `libyaml-safer` are yardsticks. Templates are
//! compiled once and cached, as both engines do; YAML is read anew each time, by `libyaml-safer` to
//! its events only: no value is made of them, so it has no text to compare.

use std::{
    collections::HashMap,
    error::Error,
    fs,
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use halite_renderers::jinja::{Environment, Error as JinjaError, Files, SaltLoader, Source};
use halite_value::{Value, json, yaml};
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
        ("halite", _) => {
            let name = format!("{workload}.sls");
            (halite(templates.as_ref(), &name)?, halite(templates.as_ref(), &name)?)
        }
        ("libyaml-safer", "yaml") => {
            let text = fs::read(path)?;
            (Box::new(move || Ok(events(&text)?.to_string())), Box::new(|| Ok(String::new())))
        }
        ("minijinja", "loop" | "chain") => {
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
    let hash = Some(hash).filter(|_| engine != "libyaml-safer");
    let result = serde_json::json!({
        "ms": ms, "runs": times.len(), "peak_kb": peak_kb()?, "sha256": hash,
    });
    Ok(result.to_string())
}

/// Reads each file once; the engine compiles each text once.
struct Folder(HashMap<String, Source>);

impl Folder {
    fn read(templates: &Path) -> Result<Self> {
        let mut files = HashMap::new();
        for folder in ["", "lib"] {
            for entry in fs::read_dir(templates.join(folder))? {
                let path = entry?.path();
                if path.is_file() {
                    let name = path.strip_prefix(templates)?.display().to_string();
                    let file = Some(path.display().to_string().into());
                    files.insert(name, Source { text: fs::read_to_string(&path)?.into(), file });
                }
            }
        }
        Ok(Self(files))
    }
}

impl Files for Folder {
    fn read(&self, path: &str) -> std::result::Result<Option<Source>, JinjaError> {
        Ok(self.0.get(path).cloned())
    }
}

fn halite(templates: &Path, name: &str) -> Result<Run> {
    let environment = Environment::new();
    let text = fs::read_to_string(templates.join(name))?;
    let loader = SaltLoader { files: Folder::read(templates)?, local: true };
    let Value::Dict(context) = json::from_str(CONTEXT)? else { return Err("no context".into()) };
    Ok(Box::new(move || Ok(environment.render(&text, &context, &loader)?.text)))
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

/// Reads the events of a YAML text, and returns how many there are.
fn events(mut text: &[u8]) -> Result<usize> {
    let mut parser = libyaml_safer::Parser::new();
    parser.set_input(&mut text);
    let mut count = 0;
    loop {
        count += 1;
        if let libyaml_safer::EventData::StreamEnd = parser.parse()?.data {
            return Ok(count);
        }
    }
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
