//! `service`: start, stop and enable services, whatever the init system.
//!
//! A virtual module: systemd where it runs, otherwise the init scripts of the system's family.
//! Where systemd is installed but does not run (a container, an image being built), states have
//! nothing to do: [`is_offline`].

mod provider;
mod systemd;
mod sysv;

use std::path::Path;

use halite_spec::{Cx, Rest, Result, function, module};
use halite_value::{Dict, Value};

use self::{systemd::Systemd, sysv::Sysv};
use crate::cmd::{self, Options};

pub use provider::{Action, How, Provider};

module! {
    /// Start, stop and enable services.
    "service": available, disable, disabled, enable, enabled, force_reload, get_all, get_disabled,
    get_enabled, get_running, get_static, mask, masked, missing, offline, reload, restart, show,
    start, status, stop, systemctl_reload, unmask, execs, firstboot,
}

/// Tells whether systemd manages this machine.
pub fn is_booted(cx: &Cx) -> bool {
    cx.host.is_dir(Path::new("/run/systemd/system")).unwrap_or(false)
}

/// Tells whether systemd is installed but does not run.
pub fn is_offline(cx: &Cx) -> bool {
    !is_booted(cx) && cx.host.which("systemctl").is_some()
}

/// Returns the init system of this machine.
pub fn provider(cx: &Cx) -> &'static dyn Provider {
    if is_booted(cx) {
        return &Systemd;
    }
    match cx.grain_str("os_family").as_str() {
        "Debian" => &Sysv::Debian,
        "RedHat" | "Suse" => &Sysv::RedHat,
        "Alpine" | "Gentoo" => &Sysv::OpenRc,
        _ => &Sysv::Plain,
    }
}

/// Tells whether a service runs: by its process if a pattern is given.
pub fn runs(cx: &Cx, name: &str, sig: Option<&str>) -> Result<bool> {
    match sig.filter(|sig| !sig.is_empty()) {
        Some(sig) => {
            let how = Options { query: true, ignore_retcode: true, ..Options::default() };
            Ok(cmd::plain(cx, ["pgrep", "-f", "--", sig], how)?.ok())
        }
        None => provider(cx).status(cx, name),
    }
}

/// Start a service.
///
/// ```console
/// $ salt '*' service.start nginx
/// ```
#[function]
pub fn start(
    cx: &Cx,
    /// The service.
    name: String,
    #[group] how: How,
) -> Result<bool> {
    provider(cx).act(cx, &name, Action::Start, how)
}

/// Stop a service.
///
/// ```console
/// $ salt '*' service.stop nginx
/// ```
#[function]
pub fn stop(
    cx: &Cx,
    /// The service.
    name: String,
    /// Do not wait for the end (systemd).
    #[default(false)]
    no_block: bool,
) -> Result<bool> {
    provider(cx).act(cx, &name, Action::Stop, How { no_block, ..How::default() })
}

/// Stop a service and start it again.
///
/// ```console
/// $ salt '*' service.restart nginx
/// ```
#[function]
pub fn restart(
    cx: &Cx,
    /// The service.
    name: String,
    #[group] how: How,
) -> Result<bool> {
    provider(cx).act(cx, &name, Action::Restart, how)
}

/// Let a service read its configuration anew.
///
/// ```console
/// $ salt '*' service.reload nginx
/// ```
#[function]
pub fn reload(
    cx: &Cx,
    /// The service.
    name: String,
    #[group] how: How,
) -> Result<bool> {
    provider(cx).act(cx, &name, Action::Reload, how)
}

/// Let a service read its configuration anew, by restarting it if need be.
///
/// ```console
/// $ salt '*' service.force_reload nginx
/// ```
#[function]
pub fn force_reload(
    cx: &Cx,
    /// The service.
    name: String,
    /// Do not wait for the end (systemd).
    #[default(true)]
    no_block: bool,
    /// Unmask it first (systemd).
    #[default(false)]
    unmask: bool,
    /// Remove a mask until the next boot first (systemd).
    #[default(false)]
    unmask_runtime: bool,
) -> Result<bool> {
    provider(cx).act(cx, &name, Action::ForceReload, How { no_block, unmask, unmask_runtime })
}

/// Tell whether a service runs; with wildcards, for each that fits.
///
/// ```console
/// $ salt '*' service.status 'nginx*'
/// ```
#[function]
pub fn status(
    cx: &Cx,
    /// The service, or a pattern.
    name: String,
    /// Look for a process with this in its command line instead.
    sig: Option<String>,
) -> Result<Value> {
    if sig.is_some() || !name.contains(['*', '?', '[']) {
        return Ok(runs(cx, &name, sig.as_deref())?.into());
    }
    let ret = Dict::new();
    for own in provider(cx).get_all(cx)? {
        if halite_target::fnmatch::fnmatch(&own, &name) {
            ret.insert(own.as_str(), provider(cx).status(cx, &own)?);
        }
    }
    Ok(ret.into())
}

/// Let a service start at boot.
///
/// ```console
/// $ salt '*' service.enable nginx
/// ```
#[function]
pub fn enable(
    cx: &Cx,
    /// The service.
    name: String,
    #[group] how: How,
    /// Accepted, as Salt does.
    rest: Rest,
) -> Result<bool> {
    let _ = rest;
    provider(cx).enable(cx, &name, how)
}

/// Let a service not start at boot.
///
/// ```console
/// $ salt '*' service.disable nginx
/// ```
#[function]
pub fn disable(
    cx: &Cx,
    /// The service.
    name: String,
    /// Accepted, as Salt does.
    rest: Rest,
) -> Result<bool> {
    let _ = rest;
    provider(cx).disable(cx, &name)
}

/// Tell whether a service starts at boot.
///
/// ```console
/// $ salt '*' service.enabled nginx
/// ```
#[function]
pub fn enabled(
    cx: &Cx,
    /// The service.
    name: String,
    /// Accepted, as Salt does.
    rest: Rest,
) -> Result<bool> {
    let _ = rest;
    provider(cx).enabled(cx, &name)
}

/// Tell whether a service does not start at boot.
///
/// ```console
/// $ salt '*' service.disabled nginx
/// ```
#[function]
pub fn disabled(
    cx: &Cx,
    /// The service.
    name: String,
) -> Result<bool> {
    provider(cx).disabled(cx, &name)
}

/// Tell whether there is such a service.
///
/// ```console
/// $ salt web1 service.available nginx
/// ```
#[function]
pub fn available(
    cx: &Cx,
    /// The service.
    name: String,
) -> Result<bool> {
    provider(cx).available(cx, &name)
}

/// Tell whether there is no such service.
///
/// ```console
/// $ salt web1 service.missing nginx
/// ```
#[function]
pub fn missing(
    cx: &Cx,
    /// The service.
    name: String,
) -> Result<bool> {
    Ok(!provider(cx).available(cx, &name)?)
}

/// Return all services.
///
/// ```console
/// $ salt web1 service.get_all
/// ```
#[function]
pub fn get_all(cx: &Cx) -> Result<Vec<String>> {
    provider(cx).get_all(cx)
}

/// Return the services that start at boot.
///
/// ```console
/// $ salt web1 service.get_enabled
/// ```
#[function]
pub fn get_enabled(cx: &Cx) -> Result<Vec<String>> {
    provider(cx).get_enabled(cx)
}

/// Return the services that do not start at boot.
///
/// ```console
/// $ salt web1 service.get_disabled
/// ```
#[function]
pub fn get_disabled(cx: &Cx) -> Result<Vec<String>> {
    provider(cx).get_disabled(cx)
}

/// Return the services that run (systemd).
///
/// ```console
/// $ salt web1 service.get_running
/// ```
#[function]
pub fn get_running(cx: &Cx) -> Result<Vec<String>> {
    provider(cx).get_running(cx)
}

/// Return the services that cannot be enabled (systemd).
///
/// ```console
/// $ salt web1 service.get_static
/// ```
#[function]
pub fn get_static(
    cx: &Cx,
    /// The root folder of another machine's file system.
    root: Option<String>,
) -> Result<Vec<String>> {
    match root {
        Some(root) => systemd::get_static(cx, Some(&root)),
        None => provider(cx).get_static(cx),
    }
}

/// Make it impossible to start a service (systemd).
///
/// ```console
/// $ salt web1 service.mask nginx
/// ```
#[function]
pub fn mask(
    cx: &Cx,
    /// The service.
    name: String,
    /// Until the next boot only.
    #[default(false)]
    runtime: bool,
    /// The root folder of another machine's file system.
    root: Option<String>,
) -> Result<bool> {
    systemd::mask(cx, &name, runtime, root.as_deref())
}

/// Make it possible to start a service again (systemd).
///
/// ```console
/// $ salt web1 service.unmask nginx
/// ```
#[function]
pub fn unmask(
    cx: &Cx,
    /// The service.
    name: String,
    /// A mask that lasts until the next boot only.
    #[default(false)]
    runtime: bool,
    /// The root folder of another machine's file system.
    root: Option<String>,
) -> Result<bool> {
    systemd::unmask(cx, &name, runtime, root.as_deref())
}

/// Tell whether a service cannot be started (systemd).
///
/// ```console
/// $ salt web1 service.masked nginx
/// ```
#[function]
pub fn masked(
    cx: &Cx,
    /// The service.
    name: String,
    /// A mask that lasts until the next boot only.
    #[default(false)]
    runtime: bool,
    /// The root folder of another machine's file system.
    root: Option<String>,
) -> Result<bool> {
    systemd::masked(cx, &name, runtime, root.as_deref())
}

/// Return what systemd knows of a service.
///
/// ```console
/// $ salt '*' service.show nginx
/// ```
#[function]
pub fn show(
    cx: &Cx,
    /// The service.
    name: String,
    /// The root folder of another machine's file system.
    root: Option<String>,
) -> Result<Dict> {
    systemd::show(cx, &name, root.as_deref())
}

/// Return the commands that units start.
///
/// ```console
/// $ salt web1 service.execs
/// ```
#[function]
pub fn execs(
    cx: &Cx,
    /// The root folder of another machine's file system.
    root: Option<String>,
) -> Result<Dict> {
    systemd::execs(cx, root.as_deref())
}

/// Set what a system asks for at its first boot.
///
/// ```console
/// $ salt '*' service.firstboot keymap=jp locale=en_US.UTF-8 root=/mnt
/// ```
#[function]
pub fn firstboot(
    cx: &Cx,
    /// The language.
    locale: Option<String>,
    /// The language of messages.
    locale_message: Option<String>,
    /// The keyboard.
    keymap: Option<String>,
    /// The time zone.
    timezone: Option<String>,
    /// The name.
    hostname: Option<String>,
    /// The machine id.
    machine_id: Option<String>,
    /// The root folder of another machine's file system.
    root: Option<String>,
) -> Result<bool> {
    let mut words = vec!["systemd-firstboot".to_owned()];
    let given = [
        ("--locale", locale),
        ("--locale-message", locale_message),
        ("--keymap", keymap),
        ("--timezone", timezone),
        ("--hostname", hostname),
        // differs: Salt says `--machine-ID`, which the program does not know.
        ("--machine-id", machine_id),
        ("--root", root),
    ];
    for (option, value) in given {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            words.extend([option.to_owned(), value]);
        }
    }
    let ran = crate::cmd::plain(cx, words, crate::cmd::Options::default())?;
    if !ran.ok() {
        return Err(halite_spec::Error::failed(format!("systemd-firstboot error: {}", ran.stderr)));
    }
    Ok(true)
}

/// Let systemd read the unit files anew.
///
/// ```console
/// $ salt web1 service.systemctl_reload
/// ```
#[function]
pub fn systemctl_reload(cx: &Cx) -> Result<bool> {
    Systemd.reload_units(cx)
}

/// Tell whether systemd is installed but does not run.
///
/// ```console
/// $ salt web1 service.offline
/// ```
#[function]
pub fn offline(cx: &Cx) -> Result<bool> {
    Ok(is_offline(cx))
}
