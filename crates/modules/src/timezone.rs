//! `timezone`: the time zone of the machine, and of its hardware clock.
//!
//! `timedatectl` is asked where there is one; otherwise the distribution's files are. As in Salt,
//! setting a zone always leaves `/etc/localtime` a link into the zone database.

use std::path::{Path, PathBuf};

use halite_spec::{Command, Cx, Error, Result, function, host::Write, module};

use crate::file::text::read_to_edit_if_there;

module! {
    /// The time zone of the machine.
    "timezone": get_zone, get_zonecode, get_offset, set_zone, zone_compare, get_hwclock, set_hwclock,
}

const ZONES: &str = "/usr/share/zoneinfo";
const LOCALTIME: &str = "/etc/localtime";
/// Where Debian without systemd keeps what the hardware clock shows.
const DEBIAN_CLOCK: &str = "/etc/default/rcS";

fn timedatectl(cx: &Cx) -> Result<Option<String>> {
    if cx.host.which("timedatectl").is_none() {
        return Ok(None);
    }
    let output = cx.host.run(&Command::line(["timedatectl"]).query())?;
    if output.ok() {
        return Ok(Some(output.stdout_text()));
    }
    Err(Error::failed(format!("timedatectl failed: {}", output.stderr_text().trim_end())))
}

fn unparsed(text: &str) -> Error {
    Error::failed(format!(
        "Failed to parse timedatectl output: {}\nPlease file an issue with SaltStack",
        text.trim_end()
    ))
}

/// What the first line gives that sets something of which `word` is a part.
fn setting<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    let mut lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let line = lines.find(|line| line.contains('=') && line.contains(word))?;
    line.rsplit_once('=').map(|(_, value)| value)
}

/// Return the time zone: `Europe/Berlin`.
///
/// ```console
/// $ salt web1 timezone.get_zone
/// ```
#[function]
pub fn get_zone(cx: &Cx) -> Result<String> {
    if let Some(text) = timedatectl(cx)? {
        let line = text.lines().find_map(|line| {
            let rest = line.trim().strip_prefix("Time zone:");
            rest.or_else(|| line.trim().strip_prefix("Timezone:"))
        });
        let zone = line.and_then(|rest| rest.split_whitespace().next());
        return zone.map(str::to_owned).ok_or_else(|| unparsed(&text));
    }
    match cx.grain_str("os_family").as_str() {
        "RedHat" | "Suse" => {
            let path = "/etc/sysconfig/clock";
            let text = cx.host.read_text(Path::new(path))?;
            let zone = setting(&text, "ZONE").map(|zone| zone.trim_matches(['\'', '"']));
            match zone {
                Some("") => Ok("UTC".to_owned()),
                Some(zone) => Ok(zone.to_owned()),
                None => Err(Error::failed(format!("Unable to get timezone from {path}"))),
            }
        }
        "Debian" | "Gentoo" => match cx.host.read_text(Path::new("/etc/timezone")) {
            Ok(text) => Ok(text.trim().to_owned()),
            Err(error) => {
                let shown = error.to_string();
                let reason = shown.rsplit(": ").next().unwrap_or(&shown);
                Err(Error::failed(format!("Problem reading timezone file /etc/timezone: {reason}")))
            }
        },
        "NILinuxRT" | "Slackware" | "Arch" | "Alpine" | "Void" => zone_of_link(cx),
        _ => Err(Error::failed("Unable to get timezone")),
    }
}

fn zone_of_link(cx: &Cx) -> Result<String> {
    let target = cx.host.read_link(Path::new(LOCALTIME))?;
    let target = Path::new("/etc").join(target);
    let name = target.to_string_lossy().into_owned();
    let zone = name.split_once("zoneinfo/").map(|(_, zone)| zone.to_owned());
    zone.ok_or_else(|| Error::failed("Unable to determine timezone"))
}

fn date(cx: &Cx, format: &str) -> Result<String> {
    let output = cx.host.run(&Command::line(["date", format]).query())?;
    Ok(output.stdout_text().trim_end().to_owned())
}

/// Return the short name of the time zone: `CET`.
///
/// ```console
/// $ salt web1 timezone.get_zonecode
/// ```
#[function]
pub fn get_zonecode(cx: &Cx) -> Result<String> {
    date(cx, "+%Z")
}

/// Return the distance from UTC: `+0100`.
///
/// ```console
/// $ salt web1 timezone.get_offset
/// ```
#[function]
pub fn get_offset(cx: &Cx) -> Result<String> {
    date(cx, "+%z")
}

fn zone_file(timezone: &str) -> Result<PathBuf> {
    let path = Path::new(ZONES).join(timezone);
    let inside = timezone.split('/').all(|part| !part.is_empty() && part != "..");
    if inside && !timezone.starts_with('-') {
        return Ok(path);
    }
    Err(Error::invalid(format!("'{timezone}' cannot be the name of a time zone")))
}

fn replace_setting(cx: &Cx, path: &str, word: &str, line: &str) -> Result<()> {
    let path = Path::new(path);
    let Some(text) = read_to_edit_if_there(cx, path)? else { return Ok(()) };
    let mut new = String::new();
    for own in text.split_inclusive('\n') {
        new += if own.starts_with(word) { line } else { own };
    }
    Ok(cx.host.write(path, new.as_bytes(), &Write::default())?)
}

/// Set the time zone. Returns True, or a text when there is no such zone.
///
/// ```console
/// $ salt web1 timezone.set_zone Europe/Vienna
/// ```
#[function]
pub fn set_zone(
    cx: &Cx,
    /// The zone.
    timezone: String,
) -> Result<halite_value::Value> {
    let zone = zone_file(&timezone)?;
    if cx.host.which("timedatectl").is_some() {
        cx.host.run(&Command::line(["timedatectl", "set-timezone", &timezone]))?;
    }
    if !cx.host.exists(&zone)? {
        return Ok(format!("Zone does not exist: {}", zone.display()).into());
    }
    link_localtime(cx, &zone)?;
    match cx.grain_str("os_family").as_str() {
        "RedHat" => {
            replace_setting(
                cx,
                "/etc/sysconfig/clock",
                "ZONE=",
                &format!("ZONE=\"{timezone}\"\n"),
            )?;
        }
        "Suse" => replace_setting(
            cx,
            "/etc/sysconfig/clock",
            "TIMEZONE=",
            &format!("TIMEZONE=\"{timezone}\"\n"),
        )?,
        "Debian" | "Gentoo" => {
            let text = format!("{}\n", timezone.trim());
            cx.host.write(Path::new("/etc/timezone"), text.as_bytes(), &Write::default())?;
        }
        _ => {}
    }
    Ok(true.into())
}

/// Makes `/etc/localtime` a link, in one step: programs read it at any moment.
fn link_localtime(cx: &Cx, zone: &Path) -> Result<()> {
    let link = Path::new(LOCALTIME);
    if cx.host.read_link(link).is_ok_and(|target| target == zone) {
        return Ok(());
    }
    let new = Path::new("/etc/.localtime.halite");
    if cx.host.stat_if_there(new, false)?.is_some() {
        cx.host.remove_file(new)?;
    }
    cx.host.symlink(zone, new)?;
    Ok(cx.host.rename(new, link)?)
}

/// Tell whether the machine is in a time zone.
///
/// ```console
/// $ salt web1 timezone.zone_compare Europe/Vienna
/// ```
#[function]
pub fn zone_compare(
    cx: &Cx,
    /// The zone.
    timezone: String,
) -> Result<bool> {
    match get_zone(cx) {
        Ok(zone) => Ok(zone == timezone),
        Err(Error::Failed(_)) => {
            let zone = zone_file(&timezone)?;
            let Ok(wanted) = cx.host.read(&zone) else {
                return Err(Error::invalid(format!("Can't find a local timezone \"{timezone}\"")));
            };
            let own = cx.host.read(Path::new(LOCALTIME)).map_err(|error| {
                let shown = error.to_string();
                let reason = shown.rsplit(": ").next().unwrap_or(&shown).to_owned();
                Error::failed(format!(
                    "Failed to read {LOCALTIME} to determine current timezone: {reason}"
                ))
            })?;
            Ok(own == wanted)
        }
        Err(error) => Err(error),
    }
}

/// The last line of `/etc/adjtime`.
fn adjtime(cx: &Cx) -> Result<Option<String>> {
    match cx.host.read_text_if_there(Path::new("/etc/adjtime"))? {
        Some(text) => Ok(text.lines().last().map(str::to_owned)),
        None if cx.host.exists(Path::new("/dev/rtc"))? => {
            Err(Error::failed("Unable to get hwclock timezone from /etc/adjtime"))
        }
        None => Ok(None),
    }
}

/// Return what the hardware clock shows: `UTC` or `localtime`.
///
/// ```console
/// $ salt web1 timezone.get_hwclock
/// ```
#[function]
pub fn get_hwclock(cx: &Cx) -> Result<Option<String>> {
    let shown = |local: bool| Ok(Some(if local { "localtime" } else { "UTC" }.to_owned()));
    if let Some(text) = timedatectl(cx)? {
        return shown(is_local(&text).ok_or_else(|| unparsed(&text))?);
    }
    if cx.grain_str("os_family") == "Debian"
        && let Some(text) = cx.host.read_text_if_there(Path::new(DEBIAN_CLOCK))?
        && let Some(utc) = setting(&text, "UTC=")
    {
        return shown(!utc.eq_ignore_ascii_case("yes"));
    }
    adjtime(cx)
}

/// Whether the hardware clock shows local time, in the words of `timedatectl`.
fn is_local(text: &str) -> Option<bool> {
    let line = text.lines().map(str::to_lowercase).find(|line| line.contains("rtc in local tz"))?;
    Some(line.rsplit(':').next()?.trim() == "yes")
}

/// Set what the hardware clock shows.
///
/// ```console
/// $ salt web1 timezone.set_hwclock UTC
/// ```
#[function]
pub fn set_hwclock(
    cx: &Cx,
    /// `UTC` or `localtime`.
    clock: String,
) -> Result<bool> {
    let (switch, line) =
        if clock == "localtime" { ("true", "UTC=no\n") } else { ("false", "UTC=yes\n") };
    if cx.host.which("timedatectl").is_some() {
        return Ok(cx.host.run(&Command::line(["timedatectl", "set-local-rtc", switch]))?.ok());
    }
    // Without the link, what the clock shows would be read in the wrong zone.
    let zone = zone_file(&get_zone(cx)?)?;
    if !cx.host.exists(&zone)? {
        return Err(Error::failed(format!("Zone '{}' does not exist", zone.display())));
    }
    link_localtime(cx, &zone)?;
    if cx.grain_str("os_family") == "Debian" {
        replace_setting(cx, DEBIAN_CLOCK, "UTC=", line)?;
    }
    Ok(true)
}
