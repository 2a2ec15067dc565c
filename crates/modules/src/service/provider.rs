//! The seam between `service` and the init systems.

use halite_spec::{Args, Cx, Error, Result};
use halite_value::Dict;

/// How to start, stop or restart a service under systemd; others ignore it.
#[derive(Args, Clone, Copy, Debug)]
#[arg(defaults)]
pub struct How {
    /// Do not wait for the end (systemd).
    #[default(false)]
    pub no_block: bool,
    /// Unmask it first (systemd).
    #[default(false)]
    pub unmask: bool,
    /// Remove a mask until the next boot first (systemd).
    #[default(false)]
    pub unmask_runtime: bool,
}

/// What to do with a running system's service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Start,
    Stop,
    Restart,
    Reload,
    ForceReload,
}

impl Action {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Restart => "restart",
            Self::Reload => "reload",
            Self::ForceReload => "force-reload",
        }
    }
}

fn unavailable<T>(function: &str) -> Result<T> {
    Err(Error::NotFound(format!("service.{function}")))
}

/// An init system.
#[expect(unused_variables, reason = "the defaults refuse")]
pub trait Provider: Sync {
    /// It can mask services and knows `no_block`.
    fn is_systemd(&self) -> bool {
        false
    }

    fn get_all(&self, cx: &Cx) -> Result<Vec<String>>;

    fn get_enabled(&self, cx: &Cx) -> Result<Vec<String>>;

    fn get_disabled(&self, cx: &Cx) -> Result<Vec<String>> {
        let enabled = self.get_enabled(cx)?;
        Ok(self.get_all(cx)?.into_iter().filter(|name| !enabled.contains(name)).collect())
    }

    fn available(&self, cx: &Cx, name: &str) -> Result<bool> {
        Ok(self.get_all(cx)?.iter().any(|own| own == name))
    }

    fn act(&self, cx: &Cx, name: &str, action: Action, how: How) -> Result<bool>;

    fn status(&self, cx: &Cx, name: &str) -> Result<bool>;

    fn enable(&self, cx: &Cx, name: &str, how: How) -> Result<bool>;

    fn disable(&self, cx: &Cx, name: &str) -> Result<bool>;

    fn enabled(&self, cx: &Cx, name: &str) -> Result<bool> {
        Ok(self.get_enabled(cx)?.iter().any(|own| own == name))
    }

    fn disabled(&self, cx: &Cx, name: &str) -> Result<bool> {
        Ok(self.get_disabled(cx)?.iter().any(|own| own == name))
    }

    fn get_running(&self, cx: &Cx) -> Result<Vec<String>> {
        unavailable("get_running")
    }

    fn get_static(&self, cx: &Cx) -> Result<Vec<String>> {
        unavailable("get_static")
    }

    fn mask(&self, cx: &Cx, name: &str, runtime: bool) -> Result<bool> {
        unavailable("mask")
    }

    fn unmask(&self, cx: &Cx, name: &str, runtime: bool) -> Result<bool> {
        unavailable("unmask")
    }

    fn masked(&self, cx: &Cx, name: &str, runtime: bool) -> Result<bool> {
        unavailable("masked")
    }

    fn show(&self, cx: &Cx, name: &str) -> Result<Dict> {
        unavailable("show")
    }

    fn reload_units(&self, cx: &Cx) -> Result<bool> {
        unavailable("systemctl_reload")
    }
}
