//! systemd, through `systemctl`. What is running is asked of the manager, what is enabled of the
//! unit files, so that much works without a manager, too.

use std::path::Path;

use halite_spec::{Cx, Error, Result};
use halite_value::{Dict, Value};

use super::provider::{Action, How, Provider};
use crate::cmd::{self, Options, Ran};

/// systemd.
#[derive(Debug)]
pub(super) struct Systemd;

const SUFFIXES: [&str; 12] = [
    ".service",
    ".socket",
    ".device",
    ".mount",
    ".automount",
    ".swap",
    ".target",
    ".path",
    ".timer",
    ".slice",
    ".scope",
    ".snapshot",
];

/// The name with its suffix: `.service` unless it has one.
pub(super) fn unit_name(name: &str) -> String {
    if SUFFIXES.iter().any(|end| name.ends_with(end)) {
        name.to_owned()
    } else {
        format!("{name}.service")
    }
}

fn short(unit: &str) -> String {
    unit.strip_suffix(".service").unwrap_or(unit).to_owned()
}

fn ask(cx: &Cx, words: &[&str]) -> Result<Ran> {
    let how = Options { query: true, ignore_retcode: true, ..Options::default() };
    cmd::plain(cx, std::iter::once("systemctl").chain(words.iter().copied()), how)
}

/// Runs a change, in a scope of its own so that it outlives the minion's service.
fn change(cx: &Cx, words: &[&str], no_block: bool) -> Result<Ran> {
    let mut all = Vec::new();
    let wanted = cx.opt("systemd.scope").is_none_or(|flag| flag.truthy());
    if wanted
        && cx.host.is_dir(Path::new("/run/systemd/system"))?
        && cx.host.which("systemd-run").is_some()
    {
        all.extend(["systemd-run", "--scope"]);
    }
    all.push("systemctl");
    if no_block {
        all.push("--no-block");
    }
    all.extend(words);
    cmd::plain(cx, all, Options::default())
}

/// The complaint without what `systemd-run` says of its scope.
fn complaint(ran: &Ran) -> String {
    let text = if ran.stderr.is_empty() { &ran.stdout } else { &ran.stderr };
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("Running scope")).collect();
    lines.join("\n").trim().to_owned()
}

fn unit_files(cx: &Cx, root: Option<&str>) -> Result<Vec<(String, String)>> {
    let words = ["--full", "--no-legend", "--no-pager", "list-unit-files"];
    let ran = ask(cx, &below(root, &words))?;
    let pair = |line: &str| {
        let mut words = line.split_whitespace();
        Some((words.next()?.to_owned(), words.next()?.to_owned()))
    };
    Ok(ran.stdout.lines().filter_map(pair).collect())
}

fn in_state(cx: &Cx, states: &[&str], root: Option<&str>) -> Result<Vec<String>> {
    let mut names: Vec<String> = unit_files(cx, root)?
        .iter()
        .filter(|(unit, state)| states.contains(&state.as_str()) && !unit.contains("@."))
        .filter(|(unit, _)| SUFFIXES.iter().any(|end| unit.ends_with(end)))
        .map(|(unit, _)| short(unit))
        .collect();
    names.sort();
    names.dedup();
    Ok(names)
}

/// Loads the unit files anew if the unit's was changed since.
fn follow_changes(cx: &Cx, unit: &str) -> Result<()> {
    let ran = ask(cx, &["show", "-P", "NeedDaemonReload", unit])?;
    if ran.stdout.trim() == "yes" {
        change(cx, &["--system", "daemon-reload"], false)?;
    }
    Ok(())
}

/// The words of a call, for the machine below another root folder if one is given.
fn below<'a>(root: Option<&'a str>, words: &[&'a str]) -> Vec<&'a str> {
    root.map(|root| ["--root", root]).into_iter().flatten().chain(words.iter().copied()).collect()
}

/// Masks a unit or takes its mask away.
fn set_mask(cx: &Cx, verb: &str, name: &str, runtime: bool, root: Option<&str>) -> Result<bool> {
    let unit = unit_name(name);
    let mut words = vec![verb];
    words.extend(runtime.then_some("--runtime"));
    words.push(&unit);
    if !change(cx, &below(root, &words), false)?.ok() {
        return Err(Error::failed(format!("Failed to {verb} service '{name}'")));
    }
    Ok(true)
}

pub(super) fn mask(cx: &Cx, name: &str, runtime: bool, root: Option<&str>) -> Result<bool> {
    set_mask(cx, "mask", name, runtime, root)
}

pub(super) fn unmask(cx: &Cx, name: &str, runtime: bool, root: Option<&str>) -> Result<bool> {
    Ok(!masked(cx, name, runtime, root)? || set_mask(cx, "unmask", name, runtime, root)?)
}

pub(super) fn masked(cx: &Cx, name: &str, runtime: bool, root: Option<&str>) -> Result<bool> {
    let folder = if runtime { "/run/systemd/system" } else { "/etc/systemd/system" };
    let root = root.unwrap_or_default().trim_end_matches('/');
    let path = format!("{root}{folder}/{}", unit_name(name));
    // Below another root, `/dev/null` is where the link points to, not where it leads.
    let link = cx.host.read_link(Path::new(&path));
    let real = cx.host.real_path(Path::new(&path));
    Ok([link, real].iter().flatten().any(|real| real == Path::new("/dev/null")))
}

pub(super) fn show(cx: &Cx, name: &str, root: Option<&str>) -> Result<Dict> {
    let unit = unit_name(name);
    let ran = ask(cx, &below(root, &["show", &unit]))?;
    let ret = Dict::new();
    for line in ran.stdout.lines() {
        let Some((key, value)) = line.split_once('=') else { continue };
        if let Some(inner) = value.strip_prefix('{') {
            let fields = Dict::new();
            for field in inner.trim_end_matches('}').split(" ; ") {
                if let Some((name, value)) = field.trim().split_once('=') {
                    fields.insert(name, value);
                }
            }
            ret.insert(key, fields);
        } else if matches!(key, "Before" | "After" | "Wants" | "Names") {
            ret.insert(key, Value::list(value.split_whitespace()));
        } else {
            ret.insert(key, value);
        }
    }
    Ok(ret)
}

pub(super) fn get_static(cx: &Cx, root: Option<&str>) -> Result<Vec<String>> {
    in_state(cx, &["static"], root)
}

/// The commands that units start: unit → what `ExecStart` says.
pub(super) fn execs(cx: &Cx, root: Option<&str>) -> Result<Dict> {
    let ret = Dict::new();
    for (unit, _) in unit_files(cx, root)? {
        let name = short(&unit);
        if let Some(exec) = show(cx, &name, root)?.get("ExecStart") {
            ret.insert(name, exec);
        }
    }
    Ok(ret)
}

impl Systemd {
    fn unmask_first(&self, cx: &Cx, name: &str, how: How) -> Result<()> {
        if how.unmask {
            self.unmask(cx, name, false)?;
        }
        if how.unmask_runtime {
            self.unmask(cx, name, true)?;
        }
        Ok(())
    }
}

impl Provider for Systemd {
    fn is_systemd(&self) -> bool {
        true
    }

    fn get_all(&self, cx: &Cx) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for folder in [
            "/etc/systemd/system",
            "/run/systemd/system",
            "/usr/lib/systemd/system",
            "/lib/systemd/system",
        ] {
            for unit in cx.host.read_dir(Path::new(folder)).unwrap_or_default() {
                let unit = unit.to_string_lossy();
                if SUFFIXES.iter().any(|end| unit.ends_with(end)) {
                    names.push(short(&unit));
                }
            }
        }
        let scripts = cx.host.read_dir(Path::new("/etc/init.d")).unwrap_or_default();
        names.extend(
            scripts
                .iter()
                .map(|name| name.to_string_lossy().into_owned())
                .filter(|n| n != "README"),
        );
        names.sort();
        names.dedup();
        Ok(names)
    }

    fn available(&self, cx: &Cx, name: &str) -> Result<bool> {
        let unit = unit_name(name);
        let ran = ask(cx, &["show", "-P", "LoadState", &unit])?;
        match ran.stdout.trim() {
            "loaded" | "masked" | "error" | "bad-setting" => Ok(true),
            "not-found" => Ok(false),
            // No manager to ask: the files tell.
            _ => Ok(self.get_all(cx)?.iter().any(|own| *own == short(&unit))),
        }
    }

    fn get_enabled(&self, cx: &Cx) -> Result<Vec<String>> {
        in_state(cx, &["enabled"], None)
    }

    fn get_disabled(&self, cx: &Cx) -> Result<Vec<String>> {
        in_state(cx, &["disabled"], None)
    }

    fn get_static(&self, cx: &Cx) -> Result<Vec<String>> {
        in_state(cx, &["static"], None)
    }

    fn get_running(&self, cx: &Cx) -> Result<Vec<String>> {
        let ran = ask(cx, &["--full", "--no-legend", "--no-pager"])?;
        let mut names: Vec<String> = ran
            .stdout
            .lines()
            .map(|line| {
                line.trim_start_matches(['●', '*', ' ']).split_whitespace().collect::<Vec<_>>()
            })
            .filter(|words| words.get(3) == Some(&"running"))
            .filter_map(|words| words.first().map(|unit| short(unit)))
            .collect();
        names.sort();
        Ok(names)
    }

    fn act(&self, cx: &Cx, name: &str, action: Action, how: How) -> Result<bool> {
        let unit = unit_name(name);
        follow_changes(cx, &unit)?;
        if action != Action::Stop {
            self.unmask_first(cx, name, how)?;
        }
        let ran = change(cx, &[action.word(), &unit], how.no_block)?;
        if !ran.ok() && action != Action::Stop {
            return Err(Error::failed(complaint(&ran)));
        }
        Ok(ran.ok())
    }

    fn status(&self, cx: &Cx, name: &str) -> Result<bool> {
        let unit = unit_name(name);
        Ok(ask(cx, &["is-active", &unit])?.ok())
    }

    fn enable(&self, cx: &Cx, name: &str, how: How) -> Result<bool> {
        let unit = unit_name(name);
        follow_changes(cx, &unit)?;
        self.unmask_first(cx, name, how)?;
        let ran = change(cx, &["enable", &unit], how.no_block)?;
        if !ran.ok() {
            return Err(Error::failed(complaint(&ran)));
        }
        Ok(true)
    }

    fn disable(&self, cx: &Cx, name: &str) -> Result<bool> {
        let unit = unit_name(name);
        follow_changes(cx, &unit)?;
        Ok(change(cx, &["disable", &unit], false)?.ok())
    }

    fn enabled(&self, cx: &Cx, name: &str) -> Result<bool> {
        let unit = unit_name(name);
        let ran = ask(cx, &["is-enabled", &unit])?;
        Ok(ran.ok() || ran.stdout.trim() == "alias")
    }

    fn disabled(&self, cx: &Cx, name: &str) -> Result<bool> {
        Ok(!self.enabled(cx, name)?)
    }

    fn mask(&self, cx: &Cx, name: &str, runtime: bool) -> Result<bool> {
        mask(cx, name, runtime, None)
    }

    fn unmask(&self, cx: &Cx, name: &str, runtime: bool) -> Result<bool> {
        unmask(cx, name, runtime, None)
    }

    fn masked(&self, cx: &Cx, name: &str, runtime: bool) -> Result<bool> {
        masked(cx, name, runtime, None)
    }

    fn show(&self, cx: &Cx, name: &str) -> Result<Dict> {
        show(cx, name, None)
    }

    fn reload_units(&self, cx: &Cx) -> Result<bool> {
        let ran = change(cx, &["--system", "daemon-reload"], false)?;
        if !ran.ok() {
            let text = format!("Problem performing systemctl daemon-reload: {}", complaint(&ran));
            return Err(Error::failed(text));
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(unit_name("nginx"), "nginx.service");
        assert_eq!(unit_name("a.timer"), "a.timer");
        assert_eq!(short("nginx.service"), "nginx");
    }
}
