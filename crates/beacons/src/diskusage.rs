//! `diskusage`: an event for each file system that is fuller than allowed.

use halite_pyregex::{Flags, PyRegex as Regex};
use halite_spec::{Cx, Result};
use halite_value::{Dict, entries};

use crate::{
    Config, Problem, Watch, beacon,
    config::{number, share},
};

beacon! {
    /// Tell of file systems that are fuller than allowed.
    "diskusage": DiskUsage
}

#[derive(Default)]
pub struct DiskUsage;

fn expression(config: &Config, mount: &str) -> Result<std::sync::Arc<Regex>, Problem> {
    // Salt takes every mount for a pattern that must reach to the end.
    Regex::cached(&format!("{mount}$"), Flags::default()).map_err(|error| {
        config.problem_at(mount, format!("the mount {mount} of diskusage beacon: {error}"))
    })
}

impl Watch for DiskUsage {
    fn validate(config: &Config) -> Result<(), Problem> {
        config.list()?;
        for (mount, limit) in config.own() {
            expression(config, &mount)?;
            if number(&limit).is_none() {
                let text = format!("the limit of {mount} of diskusage beacon is no share: {limit}");
                return Err(config.problem_at(&mount, text));
            }
        }
        Ok(())
    }

    fn look(&mut self, cx: &Cx, config: &Config) -> Result<Vec<Dict>> {
        let mounts = mounts(&cx.host.read_text("/proc/self/mounts".as_ref())?);
        let mut events = Vec::new();
        for (pattern, limit) in config.own() {
            let Ok(regex) = expression(config, &pattern) else { continue };
            let limit = number(&limit).unwrap_or(f64::MAX);
            for mount in &mounts {
                if !regex.match_start(mount).is_ok_and(|found| found.is_some()) {
                    continue;
                }
                // One that cannot be asked (a stale network mount) must not hide the others.
                let Ok(space) = cx.host.space(mount.as_ref()) else { continue };
                let used = space.total.saturating_sub(space.free) as f64;
                let used = share(used, used + space.available as f64);
                if used >= limit {
                    events.push(entries! { "diskusage" => used, "mount" => mount.as_str() });
                }
            }
        }
        Ok(events)
    }
}

/// Returns the mount points, each once.
pub(crate) fn mounts(table: &str) -> Vec<String> {
    let mut mounts: Vec<String> = Vec::new();
    for mount in table.lines().filter_map(|line| line.split(' ').nth(1)) {
        // The kernel writes blanks and their like in octal.
        let mount = mount.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\");
        if !mounts.contains(&mount) {
            mounts.push(mount);
        }
    }
    mounts
}

#[cfg(test)]
mod tests {
    #[test]
    fn mount_points() {
        let table = "/dev/a / ext4 rw 0 0\nproc /proc proc rw 0 0\nx /a\\040b tmpfs rw 0 0\ny / x";
        assert_eq!(super::mounts(table), ["/", "/proc", "/a b"]);
    }
}
