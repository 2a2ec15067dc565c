//! `service`: services that run or not, now and at boot.
//!
//! Two things are set right one after the other: whether the service runs, and whether it starts
//! at boot. The comment is Salt's: that of the boot setting replaces that of the service.

use std::time::Duration;

use halite_modules::service::{self, Action, How};
use halite_spec::{Applied, Args, Cx, Error, Outcome, Plan, Rest, Result, State, states};
use halite_value::{Dict, Value, dict, entries};

use crate::beacon::{self, Watched};

states! {
    /// Keep services running or dead, now and at boot.
    "service": "running" => Running,
    "dead" => Dead,
    "enabled" => Enabled,
    "disabled" => Disabled,
    "masked" => Masked,
    "unmasked" => Unmasked,
    "mod_beacon" => Watched<beacon::Services>,
}

const OFFLINE: &str = "Running in OFFLINE mode. Nothing to do";

fn unavailable(name: &str) -> String {
    format!("The named service {name} is not available")
}

/// `enable: "True"` means what it says.
fn wish(enable: &Value) -> Option<bool> {
    match enable {
        Value::Bool(flag) => Some(*flag),
        Value::Str(text) => Some(text.eq_ignore_ascii_case("true")),
        _ => None,
    }
}

fn delay(cx: &Cx, seconds: &Value) -> Result<()> {
    let seconds = seconds.as_float().filter(|seconds| *seconds > 0.0);
    match seconds.and_then(|time| Duration::try_from_secs_f64(time).ok()) {
        Some(time) => cx.sleep(time),
        None => Ok(()),
    }
}

/// What `running` and `dead` found.
pub struct Seen {
    offline: bool,
    available: bool,
    runs: bool,
    enabled: bool,
    masked: bool,
}

/// How a service is, for the comments of the boot setting: running, dead, or as it was.
#[derive(Clone, Copy)]
enum Now {
    Running,
    Dead,
    AsBefore,
}

/// Sets whether a service starts at boot; the comment says what Salt says.
fn set_boot(
    cx: &Cx,
    name: &str,
    enable: bool,
    now: Now,
    result: bool,
    how: How,
) -> Result<Outcome> {
    let provider = service::provider(cx);
    if !provider.available(cx, name)? {
        let found = Outcome::new(Some(!enable), Dict::new(), unavailable(name));
        return Ok(found);
    }
    let is_set = if enable { provider.enabled(cx, name)? } else { provider.disabled(cx, name)? };
    let word = if enable { "enabled" } else { "disabled" };
    let state = match now {
        Now::Running => "is running",
        Now::Dead => "is dead",
        Now::AsBefore => "is in the desired state",
    };
    if is_set {
        let comment = format!("Service {name} is already {word}, and {state}");
        return Ok(Outcome::new(Some(result), Dict::new(), comment));
    }
    let done = if enable { provider.enable(cx, name, how) } else { provider.disable(cx, name) };
    let (done, more) = match done {
        Ok(done) => (done, None),
        Err(Error::Failed(text)) => (false, Some(text)),
        Err(other) => return Err(other),
    };
    if done {
        let after =
            if enable { provider.enabled(cx, name)? } else { provider.disabled(cx, name)? };
        let changes = if after {
            entries! { name => true }
        } else {
            Dict::new()
        };
        let comment = format!("Service {name} has been {word}, and {state}");
        return Ok(Outcome::new(Some(result), changes, comment));
    }
    let end = match (enable, now) {
        (true, Now::Running) => ", but the service is running",
        (_, Now::AsBefore) => ", but the service was already running",
        (_, Now::Dead) => ", and the service is dead",
        (false, Now::Running) => ", and is running",
    };
    let not = if enable { "" } else { "not " };
    let more = more.map(|text| format!(". Additional information follows:\n\n{text}"));
    let comment = format!(
        "Failed when setting service {name} to {not}start at boot{end}{}",
        more.unwrap_or_default()
    );
    Ok(Outcome::new(Some(false), Dict::new(), comment))
}

/// The later outcome over the earlier one: its changes only if it has some.
fn over(earlier: Outcome, later: Outcome) -> Outcome {
    let changes = if later.changes.is_empty() { earlier.changes } else { later.changes };
    Outcome { changes, ..later }
}

fn applied(outcome: Outcome) -> Applied {
    Applied {
        changes: Some(outcome.changes),
        comment: Some(outcome.comment),
        result: outcome.result,
        extra: outcome.extra,
    }
}

/// Keep a service running.
#[derive(Args)]
pub struct Running {
    /// The service.
    name: String,
    /// Whether it starts at boot; left alone if not given.
    #[default(Value::Null)]
    enable: Value,
    /// Tell by a process with this in its command line whether it runs.
    sig: Option<String>,
    /// Seconds to wait after starting it.
    #[default(Value::Null)]
    init_delay: Value,
    /// Do not wait for the end of starting (systemd).
    #[default(false)]
    #[arg(by_name)]
    no_block: bool,
    /// Unmask it first (systemd).
    #[default(false)]
    #[arg(by_name)]
    unmask: bool,
    /// Remove a mask until the next boot first (systemd).
    #[default(false)]
    #[arg(by_name)]
    unmask_runtime: bool,
    /// With `watch`: reload instead of restarting.
    #[default(false)]
    #[arg(by_name)]
    reload: bool,
    /// With `watch`: restart fully, where the init system knows that.
    #[default(false)]
    #[expect(dead_code, reason = "no init system of ours knows it")]
    #[arg(by_name)]
    full_restart: bool,
    /// With `watch` and `reload`: force it.
    #[default(false)]
    #[arg(by_name)]
    force: bool,
    /// Accepted, as Salt does.
    rest: Rest,
}

fn look(cx: &Cx, name: &str, sig: Option<&str>, rest: &Rest) -> Result<Seen> {
    if rest.kwargs.contains("enabled") {
        return Err(Error::failed(format!(
            "Service {name} uses non-existent option \"enabled\".  Perhaps \"enable\" option was \
             intended?"
        )));
    }
    let mut seen =
        Seen { offline: false, available: false, runs: false, enabled: false, masked: false };
    if service::is_offline(cx) {
        seen.offline = true;
        return Ok(seen);
    }
    let provider = service::provider(cx);
    seen.available = provider.available(cx, name)?;
    if seen.available {
        seen.runs = service::runs(cx, name, sig)?;
        seen.enabled = provider.enabled(cx, name)?;
        seen.masked = provider.is_systemd() && provider.masked(cx, name, false)?;
    }
    Ok(seen)
}

impl Running {
    fn how(&self) -> How {
        How { no_block: self.no_block, unmask: self.unmask, unmask_runtime: self.unmask_runtime }
    }
}

impl State for Running {
    type Seen = Seen;
    const WATCHES: bool = true;

    fn observe(&self, cx: &Cx) -> Result<Seen> {
        look(cx, &self.name, self.sig.as_deref(), &self.rest)
    }

    fn plan(&self, seen: &Seen) -> Result<Plan> {
        let name = &self.name;
        if seen.offline {
            return Ok(Plan::nothing(OFFLINE));
        }
        if !seen.available {
            return Ok(Plan::unknown().pending(format!(
                "Service {name} not present; if created in this state run, it would have been \
                 started"
            )));
        }
        if !seen.runs {
            return Ok(Plan::unknown().pending(format!("Service {name} is set to start")));
        }
        let there = format!("The service {name} is already running");
        Ok(match wish(&self.enable) {
            Some(true) if !seen.enabled => {
                Plan::unknown().pending(format!("Service {name} set to be enabled"))
            }
            Some(false) if seen.enabled => {
                Plan::unknown().pending(format!("Service {name} set to be disabled"))
            }
            _ if self.unmask && seen.masked => Plan::unknown().pending(there.clone()).done(there),
            _ => Plan::nothing(there),
        })
    }

    fn apply(&self, cx: &Cx, seen: Seen) -> Result<Applied> {
        let name = &self.name;
        if !seen.available {
            return Err(Error::failed(unavailable(name)));
        }
        let provider = service::provider(cx);
        if seen.runs {
            if self.unmask && seen.masked {
                provider.unmask(cx, name, self.unmask_runtime)?;
            }
            return match wish(&self.enable) {
                Some(enable) if enable != seen.enabled => {
                    set_boot(cx, name, enable, Now::AsBefore, true, self.how()).map(applied)
                }
                _ => Ok(Applied::as_planned()),
            };
        }
        let boot = |now: Now, result: bool, so_far: Outcome| -> Result<Applied> {
            let outcome = match wish(&self.enable) {
                Some(enable) => over(so_far, set_boot(cx, name, enable, now, result, self.how())?),
                None => so_far,
            };
            Ok(applied(outcome))
        };
        if !provider.act(cx, name, Action::Start, self.how())? {
            let comment = format!("Service {name} failed to start");
            return boot(Now::Dead, false, Outcome::failed(comment));
        }
        delay(cx, &self.init_delay)?;
        let after = service::runs(cx, name, self.sig.as_deref())?;
        let changed = after != seen.runs || provider.enabled(cx, name)? != seen.enabled;
        let changes = if changed {
            entries! { name.as_str() => after }
        } else {
            Dict::new()
        };
        let comment = if after {
            format!("Started service {name}")
        } else {
            format!("Service {name} failed to start")
        };
        let now = if after { Now::Running } else { Now::Dead };
        let mut done = boot(now, after, Outcome::new(Some(after), changes, comment))?;
        if self.init_delay.truthy() {
            let comment = done.comment.unwrap_or_default();
            done.comment =
                Some(format!("{comment}\nDelayed return for {} seconds", self.init_delay));
        }
        Ok(done)
    }

    fn watch(&self, cx: &Cx, test: bool) -> Result<Outcome> {
        let name = &self.name;
        let runs = service::runs(cx, name, self.sig.as_deref())?;
        let (action, verb) = match (runs, self.reload, self.force) {
            (false, _, _) => (Action::Start, "start"),
            (true, true, true) => (Action::ForceReload, "forcefully reload"),
            (true, true, false) => (Action::Reload, "reload"),
            (true, false, _) => (Action::Restart, "restart"),
        };
        if test {
            let comment = format!("Service is set to be {verb}ed");
            return Ok(Outcome::new(None, Dict::new(), comment));
        }
        let provider = service::provider(cx);
        if action == Action::Start {
            provider.act(cx, name, Action::Stop, How::default())?;
        }
        let done = provider.act(cx, name, action, self.how())?;
        delay(cx, &self.init_delay)?;
        let comment = if done {
            format!("Service {verb}ed")
        } else {
            format!("Failed to {verb} the service")
        };
        Ok(Outcome::new(Some(done), entries! { name.as_str() => done }, comment))
    }
}

/// Keep a service dead.
#[derive(Args)]
pub struct Dead {
    /// The service.
    name: String,
    /// Whether it starts at boot; left alone if not given.
    #[default(Value::Null)]
    enable: Value,
    /// Tell by a process with this in its command line whether it runs.
    sig: Option<String>,
    /// Seconds to wait after stopping it.
    #[default(Value::Null)]
    init_delay: Value,
    /// Do not wait for the end of stopping (systemd).
    #[default(false)]
    #[arg(by_name)]
    no_block: bool,
    /// Accepted, as Salt does.
    rest: Rest,
}

impl State for Dead {
    type Seen = Seen;
    const WATCHES: bool = true;

    fn observe(&self, cx: &Cx) -> Result<Seen> {
        look(cx, &self.name, self.sig.as_deref(), &self.rest)
    }

    fn plan(&self, seen: &Seen) -> Result<Plan> {
        let name = &self.name;
        if seen.offline {
            return Ok(Plan::nothing(OFFLINE));
        }
        if !seen.available {
            let text = format!(
                "Service {name} not present; if created in this state run, it would have been \
                 stopped"
            );
            return Ok(Plan::unknown().pending(text).done(unavailable(name)));
        }
        if seen.runs {
            return Ok(Plan::unknown().pending(format!("Service {name} is set to be killed")));
        }
        Ok(match wish(&self.enable) {
            Some(true) if !seen.enabled => {
                Plan::unknown().pending(format!("Service {name} set to be enabled"))
            }
            Some(false) if seen.enabled => {
                Plan::unknown().pending(format!("Service {name} set to be disabled"))
            }
            _ => Plan::nothing(format!("The service {name} is already dead")),
        })
    }

    fn apply(&self, cx: &Cx, seen: Seen) -> Result<Applied> {
        let name = &self.name;
        if !seen.available {
            return Ok(Applied::as_planned());
        }
        let provider = service::provider(cx);
        let how = How { no_block: self.no_block, ..How::default() };
        if !seen.runs {
            return match wish(&self.enable) {
                Some(enable) => set_boot(cx, name, enable, Now::AsBefore, true, how).map(applied),
                None => Ok(Applied::as_planned()),
            };
        }
        let stopped = provider.act(cx, name, Action::Stop, how)?;
        let mut after = true;
        let mut changes = Dict::new();
        if stopped {
            delay(cx, &self.init_delay)?;
            after = service::runs(cx, name, None)?;
            if after != seen.runs || provider.enabled(cx, name)? != seen.enabled {
                changes = entries! { name.as_str() => after };
            }
        }
        let comment = if after {
            format!("Service {name} failed to die")
        } else {
            format!("Service {name} was killed")
        };
        let outcome = Outcome::new(Some(!after), changes, comment);
        let now = if after { Now::Running } else { Now::Dead };
        Ok(applied(match wish(&self.enable) {
            Some(enable) => over(outcome, set_boot(cx, name, enable, now, !after, how)?),
            None => outcome,
        }))
    }

    fn watch(&self, cx: &Cx, test: bool) -> Result<Outcome> {
        let name = &self.name;
        if !service::runs(cx, name, self.sig.as_deref())? {
            return Ok(Outcome::new(Some(true), Dict::new(), "Service is already stopped"));
        }
        if test {
            return Ok(Outcome::new(None, Dict::new(), "Service is set to be stopped"));
        }
        let done = service::provider(cx).act(cx, name, Action::Stop, How::default())?;
        delay(cx, &self.init_delay)?;
        let comment = if done { "Service stopped" } else { "Failed to stop the service" };
        Ok(Outcome::new(Some(done), entries! { name.as_str() => done }, comment))
    }
}

/// Let a service start at boot.
#[derive(Args)]
pub struct Enabled {
    /// The service.
    name: String,
    /// Accepted, as Salt does.
    #[expect(dead_code, reason = "taken and ignored")]
    rest: Rest,
}

/// Let a service not start at boot.
#[derive(Args)]
pub struct Disabled {
    /// The service.
    name: String,
    /// Accepted, as Salt does.
    #[expect(dead_code, reason = "taken and ignored")]
    rest: Rest,
}

/// Whether a service is there, and whether its boot setting is as wanted.
fn boot_setting(cx: &Cx, name: &str, enable: bool) -> Result<(bool, bool)> {
    let provider = service::provider(cx);
    if !provider.available(cx, name)? {
        return Ok((false, false));
    }
    Ok((true, if enable { provider.enabled(cx, name)? } else { provider.disabled(cx, name)? }))
}

impl State for Enabled {
    type Seen = (bool, bool);

    fn observe(&self, cx: &Cx) -> Result<(bool, bool)> {
        boot_setting(cx, &self.name, true)
    }

    fn plan(&self, seen: &(bool, bool)) -> Result<Plan> {
        let name = &self.name;
        Ok(match seen {
            (false, _) => Plan::unknown().pending(format!(
                "Service {name} not present; if created in this state run, it would have been \
                 enabled"
            )),
            (true, true) => Plan::nothing(format!(
                "Service {name} is already enabled, and is in the desired state"
            )),
            (true, false) => Plan::unknown().pending(format!("Service {name} set to be enabled")),
        })
    }

    fn apply(&self, cx: &Cx, _: (bool, bool)) -> Result<Applied> {
        set_boot(cx, &self.name, true, Now::AsBefore, true, How::default()).map(applied)
    }
}

impl State for Disabled {
    type Seen = (bool, bool);

    fn observe(&self, cx: &Cx) -> Result<(bool, bool)> {
        boot_setting(cx, &self.name, false)
    }

    fn plan(&self, seen: &(bool, bool)) -> Result<Plan> {
        let name = &self.name;
        Ok(match seen {
            (false, _) => Plan::nothing(unavailable(name)),
            (true, true) => Plan::nothing(format!(
                "Service {name} is already disabled, and is in the desired state"
            )),
            (true, false) => Plan::unknown().pending(format!("Service {name} set to be disabled")),
        })
    }

    fn apply(&self, cx: &Cx, _: (bool, bool)) -> Result<Applied> {
        set_boot(cx, &self.name, false, Now::AsBefore, true, How::default()).map(applied)
    }
}

/// Make it impossible to start a service (systemd).
#[derive(Args)]
pub struct Masked {
    /// The service.
    name: String,
    /// Until the next boot only.
    #[default(false)]
    runtime: bool,
}

/// Make it possible to start a service again (systemd).
#[derive(Args)]
pub struct Unmasked {
    /// The service.
    name: String,
    /// A mask that lasts until the next boot only.
    #[default(false)]
    runtime: bool,
}

fn mask_words(runtime: bool) -> (&'static str, &'static str) {
    if runtime { ("runtime masked", "runtime unmasked") } else { ("masked", "unmasked") }
}

impl State for Masked {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        service::masked(cx, self.name.clone(), self.runtime, None)
    }

    fn plan(&self, masked: &bool) -> Result<Plan> {
        let (name, (word, _)) = (&self.name, mask_words(self.runtime));
        Ok(if *masked {
            Plan::nothing(format!("Service {name} is already {word}"))
        } else {
            Plan::change(word, dict! { "old" => false, "new" => true })
                .pending(format!("Service {name} would be {word}"))
                .done(format!("Service {name} was {word}"))
        })
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        // differs: where systemd does not run (a chroot, an image), Salt masks the unit and then
        // says that it failed, and unmasks none; here both are done, and told so.
        service::mask(cx, self.name.clone(), self.runtime, None)?;
        // Salt calls it done all the same.
        if !self.observe(cx)? {
            let text = format!("Failed to mask service {}", self.name);
            return Ok(Applied::changes(Dict::new()).comment(text));
        }
        Ok(Applied::as_planned())
    }
}

impl State for Unmasked {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        service::masked(cx, self.name.clone(), self.runtime, None)
    }

    fn plan(&self, masked: &bool) -> Result<Plan> {
        let (name, (word, action)) = (&self.name, mask_words(self.runtime));
        Ok(if *masked {
            Plan::change(word, dict! { "old" => true, "new" => false })
                .pending(format!("Service {name} would be {action}"))
                .done(format!("Service {name} was {action}"))
        } else {
            Plan::nothing(format!("Service {name} was already {action}"))
        })
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        service::unmask(cx, self.name.clone(), self.runtime, None)?;
        if self.observe(cx)? {
            let text = format!("Failed to unmask service {}", self.name);
            return Ok(Applied::changes(Dict::new()).comment(text));
        }
        Ok(Applied::as_planned())
    }
}
