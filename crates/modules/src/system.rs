//! `system`: halt, restart and the clock of the machine.
//!
//! What ends the machine is started and not waited for: the answer must still get out.

use std::path::Path;

use halite_spec::{Command, Cx, Error, Result, function, host::Write, module};
use halite_value::Value;

use crate::{
    cmd::{self, Options},
    network, status,
};

module! {
    /// Halt, restart and the clock of the machine.
    "system": halt, init, poweroff, reboot, shutdown, get_system_date_time, get_system_date,
    get_system_time, set_system_date, set_system_time, set_system_date_time, get_computer_desc,
    set_computer_desc, set_computer_name, get_computer_name, set_reboot_required_witnessed,
    get_reboot_required_witnessed, has_settable_hwclock,
}

/// Runs a program as `cmd.run` does: what it says comes back, and its failure is the job's.
fn run(cx: &Cx, words: &[&str]) -> Result<String> {
    let ran = cmd::plain(cx, words.iter().copied(), Options::default())?;
    let mut text = ran.stdout;
    if !text.is_empty() && !ran.stderr.is_empty() {
        text.push('\n');
    }
    text += &ran.stderr;
    Ok(text.trim_end().to_owned())
}

fn time_of(at_time: Option<&Value>) -> Result<String> {
    let Some(at) = at_time.filter(|at| !at.is_null()) else { return Ok("now".into()) };
    let text = at.to_string();
    let minutes = text.trim_start_matches('+');
    if minutes.chars().all(|c| c.is_ascii_digit()) && !minutes.is_empty() {
        return Ok(format!("+{minutes}"));
    }
    let is_clock = text.split_once(':').is_some_and(|(hours, minutes)| {
        hours.parse::<u8>().is_ok_and(|hours| hours < 24)
            && minutes.parse::<u8>().is_ok_and(|minutes| minutes < 60)
    });
    if is_clock || text == "now" {
        return Ok(text);
    }
    Err(Error::invalid(format!("'{text}' is no time: give minutes or hh:mm")))
}

fn now(cx: &Cx) -> f64 {
    cx.host.now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Seconds east of UTC of an offset such as `+0200`.
fn offset(text: &str) -> Result<i64> {
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let digits = text.trim_start_matches(['+', '-']);
    let number =
        |range: std::ops::Range<usize>| digits.get(range).and_then(|part| part.parse::<i64>().ok());
    match (digits.len(), number(0..2), number(2..4)) {
        (4, Some(hours), Some(minutes)) => Ok(sign * (hours * 3600 + minutes * 60)),
        _ => Err(Error::invalid(format!("'{text}' is no offset from UTC"))),
    }
}

/// Date and time, as the caller sees them: in the given zone, or in the machine's.
fn shown(cx: &Cx, utc_offset: Option<&str>, format: &str) -> Result<String> {
    let Some(text) = utc_offset else { return status::strftime(cx, now(cx), format) };
    let zone = jiff::tz::Offset::from_seconds(i32::try_from(offset(text)?).unwrap_or(0))
        .map_err(|error| Error::failed(error.to_string()))?;
    let stamp = jiff::Timestamp::from_second(now(cx) as i64)
        .map_err(|error| Error::failed(error.to_string()))?;
    jiff::fmt::strtime::format(format, &stamp.to_zoned(jiff::tz::TimeZone::fixed(zone)))
        .map_err(|error| Error::failed(error.to_string()))
}

/// Sets the clock: `YYYY-MM-DD hh:mm:ss`.
fn set_clock(cx: &Cx, text: &str, utc_offset: Option<&str>) -> Result<bool> {
    let text = match utc_offset {
        Some(offset) => format!("{text} {offset}"),
        None => text.to_owned(),
    };
    let output = cx.host.run(&Command::line(["date", "-s", &text]))?;
    if !output.ok() {
        return Err(Error::failed(output.stderr_text().trim().to_owned()));
    }
    // The hardware clock follows, where there is one.
    if cx.host.which("hwclock").is_some() {
        cx.host.run(&Command::line(["hwclock", "--systohc"]))?;
    }
    Ok(true)
}

/// Brings a date or a time into one form, whichever of several it is written in.
fn in_form(text: &str, forms: &[&str], out: &str) -> Option<String> {
    forms.iter().find_map(|form| {
        let parsed = jiff::fmt::strtime::parse(form, text).ok()?;
        let date = parsed.to_date().ok().unwrap_or(jiff::civil::date(2000, 1, 1));
        let time = parsed.to_time().ok().unwrap_or(jiff::civil::time(0, 0, 0, 0));
        jiff::fmt::strtime::format(out, date.to_datetime(time)).ok()
    })
}

const DATES: &[&str] = &["%Y-%m-%d", "%m-%d-%Y", "%m-%d-%y", "%m/%d/%Y", "%m/%d/%y", "%Y/%m/%d"];
const TIMES: &[&str] = &["%I:%M:%S %p", "%I:%M %p", "%H:%M:%S", "%H:%M", "%I:%M:%S%p", "%I:%M%p"];

/// Halt the machine.
///
/// ```console
/// $ salt web1 system.halt
/// ```
#[function]
pub fn halt(cx: &Cx) -> Result<String> {
    run(cx, &["halt"])
}

/// Change the runlevel.
///
/// ```console
/// $ salt web1 system.init 6
/// ```
#[function]
pub fn init(
    cx: &Cx,
    /// The runlevel.
    runlevel: Value,
) -> Result<String> {
    run(cx, &["init", &runlevel.to_string()])
}

/// Turn the machine off.
///
/// ```console
/// $ salt web1 system.poweroff
/// ```
#[function]
pub fn poweroff(cx: &Cx) -> Result<String> {
    run(cx, &["poweroff"])
}

/// Start the machine anew.
///
/// ```console
/// $ salt web1 system.reboot
/// ```
#[function]
pub fn reboot(
    cx: &Cx,
    /// In how many minutes, or when; now unless given.
    at_time: Option<Value>,
) -> Result<String> {
    run(cx, &["shutdown", "-r", &time_of(at_time.as_ref())?])
}

/// Shut the machine down.
///
/// ```console
/// $ salt web1 system.shutdown
/// ```
#[function]
pub fn shutdown(
    cx: &Cx,
    /// In how many minutes, or when; now unless given.
    at_time: Option<Value>,
) -> Result<String> {
    run(cx, &["shutdown", "-h", &time_of(at_time.as_ref())?])
}

/// Return date and time.
///
/// ```console
/// $ salt web1 system.get_system_date_time '+0100'
/// ```
#[function]
pub fn get_system_date_time(
    cx: &Cx,
    /// The time is in this distance from UTC: `+0200`.
    utc_offset: Option<String>,
) -> Result<String> {
    shown(cx, utc_offset.as_deref(), "%Y-%m-%d %H:%M:%S")
}

/// Return the date.
///
/// ```console
/// $ salt web1 system.get_system_date
/// ```
#[function]
pub fn get_system_date(
    cx: &Cx,
    /// The time is in this distance from UTC: `+0200`.
    utc_offset: Option<String>,
) -> Result<String> {
    shown(cx, utc_offset.as_deref(), "%a %m/%d/%Y")
}

/// Return the time.
///
/// ```console
/// $ salt web1 system.get_system_time
/// ```
#[function]
pub fn get_system_time(
    cx: &Cx,
    /// The time is in this distance from UTC: `+0200`.
    utc_offset: Option<String>,
) -> Result<String> {
    shown(cx, utc_offset.as_deref(), "%I:%M:%S %p")
}

/// Set the date.
///
/// ```console
/// $ salt '*' system.set_system_date '05-20-2026'
/// ```
#[function]
pub fn set_system_date(
    cx: &Cx,
    /// The date, in one of several forms.
    newdate: String,
    /// The time is in this distance from UTC: `+0200`.
    utc_offset: Option<String>,
) -> Result<bool> {
    let Some(date) = in_form(&newdate, DATES, "%Y-%m-%d") else {
        return Err(Error::invalid("Invalid date format"));
    };
    let time = shown(cx, utc_offset.as_deref(), "%H:%M:%S")?;
    set_clock(cx, &format!("{date} {time}"), utc_offset.as_deref())
}

/// Set the time.
///
/// ```console
/// $ salt '*' system.set_system_time '11:31:15 AM'
/// ```
#[function]
pub fn set_system_time(
    cx: &Cx,
    /// The time, in one of several forms.
    newtime: String,
    /// Not looked at.
    posix: Option<Value>,
    /// The time is in this distance from UTC: `+0200`.
    utc_offset: Option<String>,
) -> Result<bool> {
    let _ = posix;
    let Some(time) = in_form(&newtime, TIMES, "%H:%M:%S") else {
        return Err(Error::invalid("Invalid time format"));
    };
    let date = shown(cx, utc_offset.as_deref(), "%Y-%m-%d")?;
    set_clock(cx, &format!("{date} {time}"), utc_offset.as_deref())
}

/// Set date and time; what is not given stays.
///
/// ```console
/// $ salt '*' system.set_system_date_time years=2026 months=5
/// ```
#[function]
pub fn set_system_date_time(
    cx: &Cx,
    /// As it is unless given.
    years: Option<i64>,
    /// As it is unless given.
    months: Option<i64>,
    /// As it is unless given.
    days: Option<i64>,
    /// As it is unless given.
    hours: Option<i64>,
    /// As it is unless given.
    minutes: Option<i64>,
    /// As it is unless given.
    seconds: Option<i64>,
    /// The time is in this distance from UTC: `+0200`.
    utc_offset: Option<String>,
) -> Result<bool> {
    let text = shown(cx, utc_offset.as_deref(), "%Y %m %d %H %M %S")?;
    let mut now = text.split_whitespace().filter_map(|word| word.parse::<i64>().ok());
    let mut or_now = |given: Option<i64>| {
        let own = now.next().unwrap_or(0);
        given.unwrap_or(own)
    };
    let (years, months, days) = (or_now(years), or_now(months), or_now(days));
    let (hours, minutes, seconds) = (or_now(hours), or_now(minutes), or_now(seconds));
    let text = format!("{years:04}-{months:02}-{days:02} {hours:02}:{minutes:02}:{seconds:02}");
    set_clock(cx, &text, utc_offset.as_deref())
}

/// Return the description of the machine; False when there is none.
///
/// ```console
/// $ salt web1 system.get_computer_desc
/// ```
#[function]
pub fn get_computer_desc(cx: &Cx) -> Result<Value> {
    if cx.host.which("hostnamectl").is_some() {
        let options = Options { redirect_stderr: true, query: true, ..Options::default() };
        let ran = cmd::plain(cx, ["hostnamectl", "status", "--pretty"], options)?;
        return Ok(ran.stdout.trim_end().into());
    }
    let text = cx.host.read_text_if_there(Path::new(MACHINE_INFO))?.unwrap_or_default();
    let line = text.lines().find_map(|line| line.trim().strip_prefix(PRETTY));
    Ok(line.map_or(false.into(), |name| unquoted(name).into()))
}

const MACHINE_INFO: &str = "/etc/machine-info";

/// How the line with the description begins.
const PRETTY: &str = "PRETTY_HOSTNAME=";

/// What stands for what in the description, in the order Salt replaces them when it reads.
const ESCAPES: [(&str, &str); 3] = [("\n", "\\n"), ("\t", "\\t"), ("\"", "\\\"")];

fn unquoted(text: &str) -> String {
    let inner = ['"', '\'']
        .into_iter()
        .find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
        .unwrap_or(text)
        .replace("\\\\", "\\");
    ESCAPES.iter().fold(inner, |text, (plain, escaped)| text.replace(escaped, plain))
}

/// Set the description of the machine.
///
/// ```console
/// $ salt web1 system.set_computer_desc 'Shop, front'
/// ```
#[function]
pub fn set_computer_desc(
    cx: &Cx,
    /// The description.
    desc: String,
) -> Result<bool> {
    let desc = ESCAPES.iter().fold(desc, |text, (plain, escaped)| text.replace(plain, escaped));
    if cx.host.which("hostnamectl").is_some() {
        let words = ["hostnamectl", "set-hostname", "--pretty", &desc];
        return Ok(cmd::plain(cx, words, Options::default())?.ok());
    }
    let path = Path::new(MACHINE_INFO);
    let text = cx.host.read_text_if_there(path)?.unwrap_or_default();
    let wanted = format!("{PRETTY}\"{desc}\"");
    let mut lines: Vec<&str> = text.lines().collect();
    // differs: Salt glues the line behind it to the description, and `system.get_computer_desc` reads both.
    match lines.iter_mut().find(|line| line.starts_with(PRETTY)) {
        Some(line) => *line = &wanted,
        None => lines.push(&wanted),
    }
    cx.host.write(path, format!("{}\n", lines.join("\n")).as_bytes(), &Write::default())?;
    Ok(true)
}

/// Set the name of the machine.
///
/// ```console
/// $ salt web1 system.set_computer_name web1
/// ```
#[function]
pub fn set_computer_name(
    cx: &Cx,
    /// The name.
    hostname: String,
) -> Result<bool> {
    network::mod_hostname(cx, Some(hostname))
}

/// Return the name of the machine.
///
/// ```console
/// $ salt web1 system.get_computer_name
/// ```
#[function]
pub fn get_computer_name(cx: &Cx) -> Result<String> {
    network::get_hostname(cx)
}

/// Note that the machine has to be started anew, until it was.
///
/// ```console
/// $ salt web1 system.set_reboot_required_witnessed
/// ```
#[function]
pub fn set_reboot_required_witnessed(cx: &Cx) -> Result<bool> {
    let path = Path::new("/var/run/salt/reboot-required.d/halite");
    if let Some(folder) = path.parent() {
        cx.host.create_dirs(folder, None)?;
    }
    cx.host.write(path, b"", &Write::default())?;
    Ok(true)
}

/// Tell whether it was noted that the machine has to be started anew.
///
/// ```console
/// $ salt web1 system.get_reboot_required_witnessed
/// ```
#[function]
pub fn get_reboot_required_witnessed(cx: &Cx) -> Result<bool> {
    Ok(cx.host.exists(Path::new("/var/run/salt/reboot-required.d/halite"))?)
}

/// Tell whether there is a hardware clock that can be set.
///
/// ```console
/// $ salt web1 system.has_settable_hwclock
/// ```
#[function]
pub fn has_settable_hwclock(cx: &Cx) -> Result<bool> {
    if cx.host.which("hwclock").is_none() {
        return Ok(false);
    }
    Ok(cx.host.run(&Command::line(["hwclock", "--test", "--systohc"]).query())?.ok())
}
