//! The engine `script`: what a program of the user's prints becomes events.
//!
//! Each line is `{"tag": …, "data": {…}}`. The program is started again `interval` seconds after it
//! ended; one that never ends is read for as long as it runs. With `onchange` an event whose data
//! are those of the last one of its tag is not fired.

use std::{
    collections::HashMap,
    io::{BufRead as _, BufReader, Read as _},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use halite_value::{Dict, Value, json, yaml};
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use crate::Master;

/// A line longer than this is no event.
const LONGEST: u64 = 1 << 20;

/// Ends the program together with the engine.
#[derive(Clone, Default)]
struct Guard(Arc<(AtomicBool, Mutex<Option<Child>>)>);

impl Guard {
    fn is_over(&self) -> bool {
        self.0.0.load(Ordering::Acquire)
    }
}

/// What the engine's task holds: dropped with it.
struct Ends(Guard);

impl Drop for Ends {
    fn drop(&mut self) {
        let (over, child) = &*self.0.0;
        over.store(true, Ordering::Release);
        if let Some(child) = &mut *child.lock() {
            let _ = child.kill();
        }
    }
}

/// Starts the engine.
pub(super) fn start(master: &Arc<Master>, config: &Dict) -> Result<JoinHandle<()>, String> {
    super::only(config, &["cmd", "output", "interval", "onchange"])?;
    let command = super::text(config, "cmd").ok_or("`cmd` is missing")?;
    let output = super::text(config, "output").unwrap_or_else(|| "json".into());
    if !matches!(output.as_str(), "json" | "yaml") {
        return Err(format!("`output` is json or yaml, not {output}"));
    }
    let interval = config.get("interval").and_then(|every| every.as_float()).unwrap_or(1.0);
    let interval = Duration::try_from_secs_f64(interval).unwrap_or(Duration::from_secs(1));
    let onchange = config.get("onchange").is_some_and(|onchange| onchange.truthy());
    let guard = Guard::default();
    let ends = Ends(guard.clone());
    let master = master.clone();
    let work = move || {
        let mut last = HashMap::new();
        while !guard.is_over() {
            let fire = |line: &str| match event(line, &output) {
                Ok(Some((tag, data))) => {
                    if onchange && last.insert(tag.clone(), data.deep_copy()) == Some(data.clone())
                    {
                        return;
                    }
                    if !data.is_empty() {
                        data.insert("id", master.settings.id.as_str());
                    }
                    master.bus.fire(tag, data);
                }
                Ok(None) => {}
                Err(why) => tracing::error!("The engine script: {command}: {why}: {line}"),
            };
            if let Err(error) = run(&command, &guard, fire) {
                tracing::error!("The engine script cannot run {command}: {error}");
            }
            let mut left = interval;
            while !left.is_zero() && !guard.is_over() {
                let part = left.min(Duration::from_millis(200));
                std::thread::sleep(part);
                left = left.saturating_sub(part);
            }
        }
    };
    let thread = std::thread::Builder::new().name("engine script".into());
    thread.spawn(work).map_err(|error| error.to_string())?;
    Ok(tokio::spawn(async move {
        let _ends = ends;
        std::future::pending::<()>().await;
    }))
}

/// Runs the program to its end, and hands over its lines.
fn run(command: &str, guard: &Guard, mut fire: impl FnMut(&str)) -> std::io::Result<()> {
    let mut child = Command::new("/bin/sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let Some(lines) = child.stdout.take() else { return Ok(()) };
    *guard.0.1.lock() = Some(child);
    let mut lines = BufReader::new(lines);
    while !guard.is_over() {
        let mut line = Vec::new();
        if (&mut lines).take(LONGEST).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let line = String::from_utf8_lossy(&line);
        if !line.trim().is_empty() {
            fire(line.trim());
        }
    }
    if let Some(mut child) = guard.0.1.lock().take() {
        if guard.is_over() {
            let _ = child.kill();
        }
        child.wait()?;
    }
    Ok(())
}

/// Reads a line; one without a tag is nothing.
fn event(line: &str, output: &str) -> Result<Option<(String, Dict)>, String> {
    let read = match output {
        "yaml" => yaml::load_str(line).map_err(|error| error.to_string())?,
        _ => json::from_str(line).map_err(|error| error.to_string())?,
    };
    let Some(tag) = read.get_str("tag").filter(|tag| !tag.is_empty()) else { return Ok(None) };
    match read.get("data") {
        None | Some(Value::Null) => Ok(Some((tag.to_string(), Dict::new()))),
        Some(Value::Dict(data)) => Ok(Some((tag.to_string(), data))),
        Some(_) => Err("`data` must be a dictionary".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &str) {
        let shown = match event(line, "json") {
            Ok(Some((tag, data))) => format!("{tag} {}", Value::from(data)),
            Ok(None) => "nothing".into(),
            Err(why) => why,
        };
        assert!(shown.starts_with(expected), "{shown}");
    }

    #[test]
    fn lines() {
        check("{\"tag\": \"a/b\", \"data\": {\"n\": 1}}", "a/b {'n': 1}");
        check("{\"tag\": \"a/b\"}", "a/b {}");
        check("{\"data\": {\"n\": 1}}", "nothing");
        check("{\"tag\": \"a/b\", \"data\": [1]}", "`data` must be a dictionary");
        assert!(event("no json", "json").is_err());
    }

    #[test]
    fn a_program_is_read_to_its_end_and_ends_with_its_engine() {
        let mut heard = Vec::new();
        run("echo one; echo; echo two", &Guard::default(), |line| heard.push(line.to_owned()))
            .unwrap();
        assert_eq!(heard, ["one", "two"]);
        let guard = Guard::default();
        let ends = Ends(guard.clone());
        let thread = std::thread::spawn(move || {
            run("echo begun; exec sleep 60", &guard, |_| {}).unwrap();
        });
        while ends.0.0.1.lock().is_none() {
            std::thread::yield_now();
        }
        drop(ends);
        thread.join().unwrap();
    }
}
