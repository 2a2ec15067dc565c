//! `kernelpkg`: the kernels of a Debian machine: which runs, which are installed, which can be had.
//!
//! A kernel is a package `linux-image-RELEASE`; only those of the running kernel's kind (`amd64`,
//! `generic`, the last part of its release) count. `linux-image-KIND` is the package that depends
//! on the newest of them.

use std::cmp::Ordering;

use halite_spec::{Call, Cx, Error, Need, Rest, Result, function, module};
use halite_value::{Dict, Value, entries};

use crate::{
    cmd::{Options, plain},
    pkg, system,
};

module! {
    /// The kernels of a machine.
    "kernelpkg", needs = [
        Need::test(is_debian, "Module kernelpkg_linux_apt: no APT based system detected"),
    ]: active, list_installed, latest_available, latest_installed, needs_reboot, upgrade,
    upgrade_available, remove, cleanup,
}

fn is_debian(cx: &Cx) -> bool {
    cx.grain_str("os_family") == "Debian"
}

const PREFIX: &str = "linux-image";

/// The last part of the running kernel's release: `amd64`.
fn kind(cx: &Cx) -> String {
    let running = cx.grain_str("kernelrelease").to_string();
    running.rsplit('-').next().unwrap_or_default().to_owned()
}

/// Compares releases number by number: 6.1.0-9 is older than 6.1.0-10.
fn order(one: &str, other: &str) -> Ordering {
    let parts = |text: &str| -> Vec<(u64, String)> {
        let words = text.split(|char: char| !char.is_ascii_alphanumeric());
        words.map(|word| (word.parse().unwrap_or(0), word.to_owned())).collect()
    };
    parts(one).cmp(&parts(other))
}

/// The releases among package names, oldest first.
fn releases<'a>(names: impl Iterator<Item = &'a str>, kind: &str) -> Vec<String> {
    let own = names.filter_map(|name| name.strip_prefix(PREFIX)?.strip_prefix('-'));
    let fits = |release: &&str| {
        let numbers = release.strip_suffix(kind).and_then(|rest| rest.strip_suffix('-'));
        numbers.is_some_and(|numbers| {
            numbers.starts_with(|char: char| char.is_ascii_digit())
                && numbers.chars().all(|char| char.is_ascii_digit() || ".-".contains(char))
        })
    };
    let mut found: Vec<String> = own.filter(fits).map(str::to_owned).collect();
    found.sort_by(|one, other| order(one, other));
    found
}

/// Return the release of the running kernel.
///
/// ```console
/// $ salt web1 kernelpkg.active
/// ```
#[function]
pub fn active(cx: &Cx) -> Result<String> {
    Ok(cx.grain_str("kernelrelease").to_string())
}

/// Return the releases of the installed kernels, oldest first.
///
/// ```console
/// $ salt web1 kernelpkg.list_installed
/// ```
#[function]
pub fn list_installed(cx: &Cx) -> Result<Vec<String>> {
    let no = || Value::Bool(false);
    let there = pkg::list_pkgs(cx, no(), no(), no(), Rest::default())?;
    let names: Vec<String> = there.keys().iter().map(ToString::to_string).collect();
    Ok(releases(names.iter().map(String::as_str), &kind(cx)))
}

/// Return the newest release that can be had.
///
/// ```console
/// $ salt web1 kernelpkg.latest_available
/// ```
#[function]
pub fn latest_available(cx: &Cx) -> Result<Option<String>> {
    // Refreshed as `pkg.latest_version` does; empty when what is installed is as new.
    let newest = format!("{PREFIX}-{}", kind(cx));
    let asked = Rest { args: vec![newest.as_str().into()], kwargs: Dict::new() };
    if pkg::latest_version(cx, asked)?.to_str().is_empty() {
        return latest_installed(cx);
    }
    // differs: Salt reads the release off the version, which only Ubuntu's tell; on Debian it fails.
    let query = Options { query: true, ignore_retcode: true, ..Options::default() };
    let ran = plain(cx, ["apt-cache", "-q", "depends", newest.as_str()], query)?;
    let names = ran.stdout.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    Ok(releases(names, &kind(cx)).pop())
}

/// Return the newest installed release; it need not be the running one.
///
/// ```console
/// $ salt web1 kernelpkg.latest_installed
/// ```
#[function]
pub fn latest_installed(cx: &Cx) -> Result<Option<String>> {
    Ok(list_installed(cx)?.pop())
}

/// Tell whether a newer kernel is installed than the one that runs.
///
/// ```console
/// $ salt web1 kernelpkg.needs_reboot
/// ```
#[function]
pub fn needs_reboot(cx: &Cx) -> Result<bool> {
    // differs: Salt ends with an exception where no kernel is installed, as in containers.
    let newest = latest_installed(cx)?;
    let running = cx.grain_str("kernelrelease").to_string();
    Ok(newest.is_some_and(|newest| order(&running, &newest) == Ordering::Less))
}

/// Tell whether a newer kernel can be had than those installed.
///
/// ```console
/// $ salt web1 kernelpkg.upgrade_available
/// ```
#[function]
pub fn upgrade_available(cx: &Cx) -> Result<bool> {
    Ok(match (latest_available(cx)?, latest_installed(cx)?) {
        (Some(there), Some(own)) => order(&there, &own) == Ordering::Greater,
        (there, own) => there.is_some() && own.is_none(),
    })
}

/// Install the newest kernel, and restart the machine if asked and needed.
///
/// ```console
/// $ salt web1 kernelpkg.upgrade reboot=True at_time=1
/// ```
#[function]
pub fn upgrade(
    cx: &Cx,
    /// Restart when the newest kernel does not run.
    #[default(false)]
    reboot: bool,
    /// In how many minutes.
    at_time: Option<Value>,
) -> Result<Dict> {
    let newest = format!("{PREFIX}-{}", kind(cx));
    let upgrades = cx.call("pkg.install", Call::of([newest]))?;
    let needed = needs_reboot(cx)?;
    let ret = entries! {
        "upgrades" => upgrades, "active" => active(cx)?, "latest_installed" => latest_installed(cx)?,
        "reboot_requested" => reboot, "reboot_required" => needed,
    };
    if reboot && needed {
        system::reboot(cx, at_time)?;
    }
    Ok(ret)
}

/// Remove a kernel that does not run.
///
/// ```console
/// $ salt web1 kernelpkg.remove 6.1.0-9-amd64
/// ```
#[function]
pub fn remove(
    cx: &Cx,
    /// Its release, as `kernelpkg.list_installed` shows it.
    release: String,
) -> Result<Dict> {
    if !list_installed(cx)?.contains(&release) {
        return Err(Error::failed(format!("Kernel release '{release}' is not installed")));
    }
    if release == active(cx)? {
        return Err(Error::failed("Active kernel cannot be removed"));
    }
    let target = format!("{PREFIX}-{release}");
    pkg::purge(cx, Some(target.clone()), Value::Null, Rest::default())?;
    Ok(entries! { "removed" => vec![target] })
}

/// Remove the kernels that do not run.
///
/// ```console
/// $ salt web1 kernelpkg.cleanup
/// ```
#[function]
pub fn cleanup(
    cx: &Cx,
    /// But not the newest.
    #[default(true)]
    keep_latest: bool,
) -> Result<Dict> {
    let (running, there) = (active(cx)?, list_installed(cx)?);
    let newest = there.last().cloned();
    let mut removed = Vec::new();
    for release in there {
        let kept = release == running || (keep_latest && Some(&release) == newest.as_ref());
        if !kept {
            remove(cx, release.clone())?;
            removed.push(format!("{PREFIX}-{release}"));
        }
    }
    Ok(entries! { "removed" => removed })
}

#[cfg(test)]
mod tests {
    use super::releases;

    #[test]
    fn releases_of_one_kind_in_their_order() {
        let names = [
            "linux-image-6.1.0-20-amd64",
            "linux-image-6.1.0-9-amd64",
            "linux-image-6.1.0-30-cloud-amd64",
            "linux-image-amd64",
            "linux-headers-6.1.0-30-amd64",
            "linux-image-6.1.0-10-amd64",
        ];
        let found = releases(names.into_iter(), "amd64");
        assert_eq!(found, ["6.1.0-9-amd64", "6.1.0-10-amd64", "6.1.0-20-amd64"]);
        assert_eq!(releases(names.into_iter(), "v445"), [""; 0]);
    }
}
