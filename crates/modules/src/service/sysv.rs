//! Init scripts: `/etc/init.d`, `service NAME ACTION`, links in `/etc/rc?.d`.
//!
//! How a service is made to start at boot differs: Debian has `update-rc.d`, RedHat `chkconfig`,
//! OpenRC `rc-update`.

use std::path::Path;

use halite_spec::{Cx, Result};

use super::provider::{Action, How, Provider};
use crate::cmd::{self, Options};

/// The tool that links init scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sysv {
    Debian,
    RedHat,
    OpenRc,
    /// Nobody knows how to enable a service.
    Plain,
}

fn succeeds(cx: &Cx, words: &[&str], query: bool) -> Result<bool> {
    let how = Options { query, ignore_retcode: query, ..Options::default() };
    Ok(cmd::plain(cx, words.iter().copied(), how)?.ok())
}

fn names_in(cx: &Cx, folder: &str) -> Vec<String> {
    let names = cx.host.read_dir(Path::new(folder)).unwrap_or_default();
    names.iter().map(|name| name.to_string_lossy().into_owned()).collect()
}

fn runlevel(cx: &Cx) -> Result<String> {
    let how = Options { query: true, ignore_retcode: true, ..Options::default() };
    let ran = cmd::plain(cx, ["runlevel"], how);
    let out = ran.map(|ran| ran.stdout).unwrap_or_default();
    let level = out.split_whitespace().nth(1).filter(|_| !out.contains("unknown"));
    Ok(level.unwrap_or("2").to_owned())
}

impl Provider for Sysv {
    fn get_all(&self, cx: &Cx) -> Result<Vec<String>> {
        let mut names = names_in(cx, "/etc/init.d");
        names.retain(|name| !matches!(name.as_str(), "README" | "functions" | "skeleton"));
        if *self == Self::Debian {
            names.extend(self.get_enabled(cx)?);
        }
        names.sort();
        names.dedup();
        Ok(names)
    }

    fn get_enabled(&self, cx: &Cx) -> Result<Vec<String>> {
        let mut names: Vec<String> = Vec::new();
        if *self == Self::OpenRc {
            for level in names_in(cx, "/etc/runlevels") {
                names.extend(names_in(cx, &format!("/etc/runlevels/{level}")));
            }
        } else {
            for level in ["S".to_owned(), runlevel(cx)?] {
                let links = names_in(cx, &format!("/etc/rc{level}.d"));
                names.extend(links.iter().filter_map(|link| {
                    let rest = link.strip_prefix('S')?;
                    let name = rest.trim_start_matches(|char: char| char.is_ascii_digit());
                    (!name.is_empty()).then(|| name.to_owned())
                }));
            }
        }
        names.sort();
        names.dedup();
        Ok(names)
    }

    fn act(&self, cx: &Cx, name: &str, action: Action, _: How) -> Result<bool> {
        let tool = if *self == Self::OpenRc { "rc-service" } else { "service" };
        succeeds(cx, &[tool, name, action.word()], false)
    }

    fn status(&self, cx: &Cx, name: &str) -> Result<bool> {
        let tool = if *self == Self::OpenRc { "rc-service" } else { "service" };
        succeeds(cx, &[tool, name, "status"], true)
    }

    fn enable(&self, cx: &Cx, name: &str, _: How) -> Result<bool> {
        match self {
            Self::Debian => {
                // Only links that are there can be enabled; `insserv`, which makes them, is gone
                // from newer releases.
                let insserv: &[&str] = &["insserv", name];
                let links = match cx.host.which("insserv") {
                    Some(_) => insserv,
                    None => &["update-rc.d", name, "defaults"],
                };
                Ok(succeeds(cx, links, false)?
                    && succeeds(cx, &["update-rc.d", name, "enable"], false)?)
            }
            Self::RedHat => Ok(succeeds(cx, &["chkconfig", "--add", name], false)?
                && succeeds(cx, &["chkconfig", name, "on"], false)?),
            Self::OpenRc => succeeds(cx, &["rc-update", "add", name], false),
            Self::Plain => Ok(false),
        }
    }

    fn disable(&self, cx: &Cx, name: &str) -> Result<bool> {
        match self {
            Self::Debian => succeeds(cx, &["update-rc.d", name, "disable"], false),
            Self::RedHat => succeeds(cx, &["chkconfig", name, "off"], false),
            Self::OpenRc => succeeds(cx, &["rc-update", "delete", name], false),
            Self::Plain => Ok(false),
        }
    }
}
