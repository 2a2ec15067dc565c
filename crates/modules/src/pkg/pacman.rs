//! Arch Linux: pacman.

use std::cmp::Ordering;

use halite_spec::{Cx, Error, Result};
use halite_value::{Dict, List, Value};

use super::{
    Done, Install, Latest, Pkgs, Provider, Uninstall, Upgrade, Which, differences, scope, version,
};
use crate::{
    cmd::{self, Options, Ran},
    pkg_resource::{self, Request, Targets},
};

/// pacman.
#[derive(Debug)]
pub(super) struct Pacman;

fn call<T: Into<String>>(
    cx: &Cx,
    words: impl IntoIterator<Item = T>,
    options: Options,
) -> Result<Ran> {
    let mut all = if options.query { Vec::new() } else { scope(cx, None) };
    all.push("pacman".to_owned());
    all.extend(words.into_iter().map(Into::into));
    cmd::plain(cx, all, Options { output_loglevel: Some("trace".into()), ..options })
}

fn looking() -> Options {
    Options { query: true, ignore_retcode: true, ..Options::default() }
}

fn named(cx: &Cx, name: Option<&str>, pkgs: &Value) -> Result<Vec<pkg_resource::Target>> {
    let request = Request { name, pkgs: Some(pkgs), ..Request::default() };
    Ok(match pkg_resource::targets(cx, &request)? {
        Targets::Repository(named) => named,
        _ => Vec::new(),
    })
}

impl Provider for Pacman {
    fn has(&self, function: &str) -> bool {
        matches!(function, "install" | "list_upgrades" | "owner" | "list_repo_pkgs" | "upgrade")
    }

    fn list_pkgs(&self, cx: &Cx, which: Which, _: &Dict) -> Result<Pkgs> {
        let mut pkgs = Pkgs::new();
        if which == Which::Installed {
            for line in call(cx, ["-Q"], looking())?.stdout.lines() {
                if let Some((name, version)) = line.trim().split_once(' ') {
                    pkgs.entry(name.to_owned()).or_default().push(version.to_owned());
                }
            }
        }
        Ok(pkgs)
    }

    fn latest_version(
        &self,
        cx: &Cx,
        names: &[String],
        how: &Latest,
    ) -> Result<Vec<(String, String)>> {
        if how.refresh {
            self.refresh_db(cx, &how.extra)?;
        }
        let pkgs = self.list_pkgs(cx, Which::Installed, &how.extra)?;
        let words = ["-Sp", "--needed", "--print-format", "%n %v"].map(str::to_owned);
        let ran = call(cx, words.into_iter().chain(names.iter().cloned()), looking())?;
        let newest = |name: &String| -> String {
            let offered = ran
                .stdout
                .lines()
                .filter_map(|line| line.trim().split_once(' '))
                .find(|(own, _)| own == name)
                .map(|(_, version)| version.to_owned())
                .unwrap_or_default();
            let there = pkgs.get(name).map_or(&[][..], Vec::as_slice);
            let has = there.iter().any(|own| version::compare_rpm(own, &offered).is_ge());
            if has && !how.show_installed { String::new() } else { offered }
        };
        Ok(names.iter().map(|name| (name.clone(), newest(name))).collect())
    }

    fn refresh_db(&self, cx: &Cx, _: &Dict) -> Result<Value> {
        super::refreshed(cx);
        let ran = call(cx, ["-Sy"], looking())?;
        if !ran.ok() {
            return Err(Error::failed(format!(
                "Error refreshing package database: {}",
                ran.stderr
            )));
        }
        let ret = Dict::new();
        for line in ran.stdout.lines().map(str::trim) {
            if let Some(name) = line.strip_suffix("is up to date") {
                ret.insert(name.trim(), false);
            } else if line.starts_with("downloading") {
                let name = line.split_whitespace().nth(1).unwrap_or_default();
                ret.insert(name.split('.').next().unwrap_or_default(), true);
            }
        }
        Ok(ret.into())
    }

    fn install(&self, cx: &Cx, request: &Install) -> Result<Done> {
        let targets = pkg_resource::targets(
            cx,
            &Request {
                name: request.name.as_deref(),
                pkgs: Some(&request.pkgs),
                sources: Some(&request.sources),
                version: request.version.as_deref(),
                ..Request::default()
            },
        )?;
        let none = Dict::new();
        let mut errors = Vec::new();
        let mut words: Vec<String>;
        match targets {
            Targets::Nothing | Targets::Advisory(_) => return Ok(Done::default()),
            Targets::Files(files) => {
                words = ["-U", "--noprogressbar", "--noconfirm"].map(str::to_owned).into();
                words.extend(files.iter().map(|file| file.display().to_string()));
            }
            Targets::Repository(named) => {
                words =
                    ["-S", "--noprogressbar", "--noconfirm", "--needed"].map(str::to_owned).into();
                words.extend(request.flag("sysupgrade").then(|| "-u".to_owned()));
                words.extend(request.refresh.then(|| "-y".to_owned()));
                if request.reinstall {
                    words.retain(|word| word != "--needed");
                }
                for (name, wanted) in named {
                    let Some(wanted) = wanted else {
                        words.push(name);
                        continue;
                    };
                    let (operator, version) = version::split_comparison(&wanted);
                    let operator = if operator.is_empty() { "=" } else { operator };
                    if version.contains('*') {
                        let how = Latest { show_installed: true, ..Latest::default() };
                        let found = self.latest_version(cx, std::slice::from_ref(&name), &how)?;
                        let offered = found.into_iter().next().map(|(_, v)| v).unwrap_or_default();
                        if halite_target::fnmatch::fnmatch(&offered, version) {
                            words.push(format!("{name}={offered}"));
                        } else {
                            errors.push(format!(
                                "No version matching '{version}' found for package '{name}' \
                                 (available: {})",
                                if offered.is_empty() { "none" } else { &offered }
                            ));
                        }
                    } else {
                        words.push(format!("{name}{operator}{version}"));
                    }
                }
            }
        }
        let old = self.list_pkgs(cx, Which::Installed, &none)?;
        if errors.is_empty() {
            let ran = call(cx, words, Options::default())?;
            if !ran.ok() && !ran.stderr.is_empty() {
                errors.push(ran.stderr);
            }
        }
        let changes = differences(&old, &self.list_pkgs(cx, Which::Installed, &none)?);
        Ok(Done::with_errors(changes, "Problem encountered installing package(s)", errors))
    }

    fn uninstall(&self, cx: &Cx, request: &Uninstall) -> Result<Done> {
        let none = Dict::new();
        let old = self.list_pkgs(cx, Which::Installed, &none)?;
        let named = named(cx, request.name.as_deref(), &request.pkgs)?;
        let targets = super::matching(&old, &named);
        if targets.is_empty() {
            return Ok(Done::default());
        }
        let action = if request.purge { "-Rsc" } else { "-R" };
        let mut words = vec![action.to_owned(), "--noprogressbar".into(), "--noconfirm".into()];
        words.extend(targets);
        let ran = call(cx, words, Options::default())?;
        let errors: Vec<String> = Some(ran.stderr.clone())
            .filter(|text| !ran.ok() && !text.is_empty())
            .into_iter()
            .collect();
        let changes = differences(&old, &self.list_pkgs(cx, Which::Installed, &none)?);
        Ok(Done::with_errors(changes, "Problem encountered removing package(s)", errors))
    }

    fn upgrade(&self, cx: &Cx, request: &Upgrade) -> Result<Done> {
        let none = Dict::new();
        let old = self.list_pkgs(cx, Which::Installed, &none)?;
        let mut words: Vec<String> =
            ["-S", "--noprogressbar", "--noconfirm", "-u"].map(str::to_owned).into();
        words.extend(request.refresh.then(|| "-y".to_owned()));
        let ran = call(cx, words, Options::default())?;
        let changes = differences(&old, &self.list_pkgs(cx, Which::Installed, &none)?);
        let trouble = (!ran.ok()).then(|| super::Trouble {
            message: "Problem encountered upgrading packages".into(),
            info: halite_value::entries! { "result" => ran.to_value() },
        });
        Ok(Done { changes, trouble })
    }

    fn list_upgrades(&self, cx: &Cx, request: &Upgrade) -> Result<Dict> {
        let flag = if request.refresh { "-Supy" } else { "-Sup" };
        let ran = call(cx, [flag, "--print-format", "%n %v"], looking())?;
        let pairs = ran.stdout.lines().filter_map(|line| line.trim().split_once(' '));
        Ok(pairs.filter(|(name, _)| *name != "::").collect())
    }

    fn compare(&self, one: &str, other: &str) -> Ordering {
        version::compare_rpm(one, other)
    }

    fn owner(&self, cx: &Cx, paths: &[String]) -> Result<Value> {
        let ret = Dict::new();
        for path in paths {
            let ran = call(cx, ["-Qqo", path], looking())?;
            ret.insert(path.as_str(), if ran.ok() { ran.stdout } else { String::new() });
        }
        Ok(if ret.len() == 1 { ret.values().swap_remove(0) } else { ret.into() })
    }

    fn list_repo_pkgs(&self, cx: &Cx, names: &[String], _: &Dict) -> Result<Dict> {
        let ret = Dict::new();
        for line in call(cx, ["-Sl"], looking())?.stdout.lines() {
            let mut words = line.split_whitespace();
            if let (Some(_), Some(name), Some(version)) = (words.next(), words.next(), words.next())
                && (names.is_empty()
                    || names.iter().any(|own| halite_target::fnmatch::fnmatch(name, own)))
                && let Value::List(list) = ret.get_or_insert_with(name, || List::new().into())
            {
                list.push(version);
            }
        }
        Ok(ret)
    }
}
