//! Alpine Linux: apk. Salt 3008 has this as an extension; the functions are the extension's.

use std::cmp::Ordering;

use halite_spec::{Cx, Error, Result};
use halite_value::{Dict, Value};

use super::{
    Done, Install, Latest, Pkgs, Provider, Uninstall, Upgrade, Which, differences, version,
};
use crate::{
    cmd::{self, Options, Ran},
    pkg_resource::{self, Request, Targets},
};

/// apk.
#[derive(Debug)]
pub(super) struct Apk;

fn call<T: Into<String>>(
    cx: &Cx,
    words: impl IntoIterator<Item = T>,
    options: Options,
) -> Result<Ran> {
    let mut all = vec!["apk".to_owned()];
    all.extend(words.into_iter().map(Into::into));
    cmd::plain(cx, all, Options { output_loglevel: Some("trace".into()), ..options })
}

fn looking() -> Options {
    Options { query: true, ignore_retcode: true, ..Options::default() }
}

/// Splits `busybox-1.36.1-r5`.
fn name_and_version(full: &str) -> Option<(&str, &str)> {
    let mut dashes = full.rmatch_indices('-').map(|(at, _)| at);
    let (_, second) = (dashes.next()?, dashes.next()?);
    Some((&full[..second], &full[second + 1..]))
}

fn failed(action: &str, ran: &Ran) -> Vec<String> {
    let text = if ran.stderr.is_empty() { &ran.stdout } else { &ran.stderr };
    let _ = action;
    if ran.ok() { Vec::new() } else { vec![text.clone()] }
}

impl Provider for Apk {
    fn has(&self, function: &str) -> bool {
        matches!(function, "install" | "list_upgrades" | "owner" | "upgrade")
    }

    fn list_pkgs(&self, cx: &Cx, which: Which, _: &Dict) -> Result<Pkgs> {
        let mut pkgs = Pkgs::new();
        if which == Which::Installed {
            for line in call(cx, ["info", "-v"], looking())?.stdout.lines() {
                if let Some((name, version)) = name_and_version(line.trim()) {
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
        let mut found = Vec::new();
        for name in names {
            let ran = call(cx, ["search", "-x", "-v", name], looking())?;
            let offered = ran
                .stdout
                .lines()
                .filter_map(|line| name_and_version(line.split(' ').next().unwrap_or_default()))
                .filter(|(own, _)| own == name)
                .map(|(_, version)| version.to_owned())
                .max_by(|one, other| version::compare_apk(one, other))
                .unwrap_or_default();
            let there = pkgs.get(name).map_or(&[][..], Vec::as_slice);
            let has = there.iter().any(|own| version::compare_apk(own, &offered).is_ge());
            let version = if has && !how.show_installed { String::new() } else { offered };
            found.push((name.clone(), version));
        }
        Ok(found)
    }

    fn refresh_db(&self, cx: &Cx, _: &Dict) -> Result<Value> {
        super::refreshed(cx);
        let ran = call(cx, ["update"], looking())?;
        if !ran.ok() {
            return Err(Error::failed(ran.stderr));
        }
        let ret = Dict::new();
        for line in ran.stdout.lines() {
            if let Some(source) = line.strip_prefix("fetch ") {
                ret.insert(source.trim(), true);
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
        let mut words = vec!["add".to_owned()];
        match targets {
            Targets::Nothing | Targets::Advisory(_) => return Ok(Done::default()),
            Targets::Files(files) => {
                words.push("--allow-untrusted".into());
                words.extend(files.iter().map(|file| file.display().to_string()));
            }
            Targets::Repository(named) => {
                words.extend(request.skip_verify.then(|| "--allow-untrusted".to_owned()));
                for (name, wanted) in named {
                    words.push(match wanted {
                        Some(wanted) if wanted.starts_with(['<', '>', '=', '~']) => {
                            format!("{name}{wanted}")
                        }
                        Some(wanted) => format!("{name}={wanted}"),
                        None => name,
                    });
                }
            }
        }
        if request.refresh {
            self.refresh_db(cx, &request.extra)?;
        }
        let none = Dict::new();
        let old = self.list_pkgs(cx, Which::Installed, &none)?;
        let ran = call(cx, words, Options::default())?;
        let changes = differences(&old, &self.list_pkgs(cx, Which::Installed, &none)?);
        let errors = failed("install", &ran);
        Ok(Done::with_errors(changes, "Problem encountered installing package(s)", errors))
    }

    fn uninstall(&self, cx: &Cx, request: &Uninstall) -> Result<Done> {
        let none = Dict::new();
        let old = self.list_pkgs(cx, Which::Installed, &none)?;
        let asked = Request {
            name: request.name.as_deref(),
            pkgs: Some(&request.pkgs),
            ..Request::default()
        };
        let Targets::Repository(named) = pkg_resource::targets(cx, &asked)? else {
            return Ok(Done::default());
        };
        let targets = super::matching(&old, &named);
        if targets.is_empty() {
            return Ok(Done::default());
        }
        let mut words = vec!["del".to_owned()];
        words.extend(request.purge.then(|| "--purge".to_owned()));
        words.extend(targets);
        let ran = call(cx, words, Options::default())?;
        let changes = differences(&old, &self.list_pkgs(cx, Which::Installed, &none)?);
        let errors = failed("remove", &ran);
        Ok(Done::with_errors(changes, "Problem encountered removing package(s)", errors))
    }

    fn upgrade(&self, cx: &Cx, request: &Upgrade) -> Result<Done> {
        if request.refresh {
            self.refresh_db(cx, &request.extra)?;
        }
        let none = Dict::new();
        let old = self.list_pkgs(cx, Which::Installed, &none)?;
        let mut words = vec!["upgrade".to_owned()];
        if request.pkgs.truthy() {
            words = vec!["add".to_owned(), "-u".into()];
            words.extend(cmd::split_input(&request.pkgs));
        }
        let ran = call(cx, words, Options::default())?;
        let changes = differences(&old, &self.list_pkgs(cx, Which::Installed, &none)?);
        let errors = failed("upgrade", &ran);
        Ok(Done::with_errors(changes, "Problem encountered upgrading package(s)", errors))
    }

    fn list_upgrades(&self, cx: &Cx, request: &Upgrade) -> Result<Dict> {
        if request.refresh {
            self.refresh_db(cx, &request.extra)?;
        }
        let ran = call(cx, ["upgrade", "-s"], looking())?;
        let ret = Dict::new();
        for line in ran.stdout.lines().filter(|line| line.contains("Upgrading")) {
            let words: Vec<&str> = line.split_whitespace().collect();
            if let (Some(name), Some(version)) = (words.get(2), words.get(5)) {
                ret.insert(*name, version.trim_end_matches(')'));
            }
        }
        Ok(ret)
    }

    fn compare(&self, one: &str, other: &str) -> Ordering {
        version::compare_apk(one, other)
    }

    fn owner(&self, cx: &Cx, paths: &[String]) -> Result<Value> {
        let ret = Dict::new();
        for path in paths {
            let ran = call(cx, ["info", "-W", path], looking())?;
            let owner = ran.stdout.rsplit(' ').next().unwrap_or_default().to_owned();
            ret.insert(
                path.as_str(),
                if ran.ok() { owner } else { format!("Could not find owner of {path}") },
            );
        }
        Ok(if ret.len() == 1 { ret.values().swap_remove(0) } else { ret.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_names() {
        assert_eq!(name_and_version("busybox-1.36.1-r5"), Some(("busybox", "1.36.1-r5")));
        assert_eq!(
            name_and_version("ca-certificates-bundle-2024-r0"),
            Some(("ca-certificates-bundle", "2024-r0"))
        );
        assert_eq!(name_and_version("x"), None);
    }
}
