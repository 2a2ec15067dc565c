//! Beacons: what a minion watches, one file per beacon, named as Salt names it.
//!
//! A beacon is a [`Watch`]: it checks its configuration, and each time it is asked it looks at the
//! machine and returns what is worth an event. Between two looks it may remember (`onchangeonly`,
//! the end of a log). When to look, what disables a beacon and where events go is the daemon's
//! business (`minion::daemon::beacons`). A beacon that the kernel can wake says by what
//! ([`Watch::wakes`]), and is asked at once.
//!
//! Messages about a wrong configuration are Salt's; where they come from a file, its line is added.

use std::os::fd::BorrowedFd;

use halite_spec::{Cx, Result};
use halite_value::Dict;

pub use self::config::{Config, Problem};

// gen:begin
pub mod btmp;
pub mod cert_info;
pub mod config;
pub mod diskusage;
pub mod haproxy;
pub mod http_status;
pub mod inotify;
pub mod journald;
pub mod load;
pub mod log;
pub mod memusage;
pub mod network_info;
pub mod network_settings;
pub mod pkg;
pub mod ps;
pub mod salt_monitor;
pub mod salt_proxy;
pub mod service;
pub mod sh;
pub mod status;
pub mod swapusage;
pub mod watchdog;
pub mod wtmp;

/// Every beacon of this crate.
pub static ALL: &[&Beacon] = &[
    &btmp::BEACON,
    &cert_info::BEACON,
    &diskusage::BEACON,
    &haproxy::BEACON,
    &http_status::BEACON,
    &inotify::BEACON,
    &journald::BEACON,
    &load::BEACON,
    &log::BEACON,
    &memusage::BEACON,
    &network_info::BEACON,
    &network_settings::BEACON,
    &pkg::BEACON,
    &ps::BEACON,
    &salt_monitor::BEACON,
    &salt_proxy::BEACON,
    &service::BEACON,
    &sh::BEACON,
    &status::BEACON,
    &swapusage::BEACON,
    &watchdog::BEACON,
    &wtmp::BEACON,
];
// gen:end

/// A kind of beacon.
pub struct Beacon {
    pub name: &'static str,
    pub doc: &'static str,
    pub validate: fn(&Config) -> Result<(), Problem>,
    pub start: fn() -> Box<dyn Running>,
}

/// What a beacon does.
pub trait Watch: Default + Send + 'static {
    /// Says what is wrong with a configuration.
    fn validate(config: &Config) -> Result<(), Problem>;

    /// Looks; returns the data of events. A key `tag` becomes part of the event's tag.
    fn look(&mut self, cx: &Cx, config: &Config) -> Result<Vec<Dict>>;

    /// Forgets what happened meanwhile: a state run has caused it.
    fn discard(&mut self) {}

    /// Returns what becomes readable when a look is worth while.
    fn wakes(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// A [`Watch`] that has begun.
pub trait Running: Send {
    fn look(&mut self, cx: &Cx, config: &Config) -> Result<Vec<Dict>>;
    fn discard(&mut self);
    fn wakes(&self) -> Option<BorrowedFd<'_>>;
}

impl<T: Watch> Running for T {
    fn look(&mut self, cx: &Cx, config: &Config) -> Result<Vec<Dict>> {
        Watch::look(self, cx, config)
    }

    fn discard(&mut self) {
        Watch::discard(self);
    }

    fn wakes(&self) -> Option<BorrowedFd<'_>> {
        Watch::wakes(self)
    }
}

/// Declares a beacon: `beacon! { /// Watch the load. "load": Load }`. A file begins with it.
#[macro_export]
macro_rules! beacon {
    ($(#[doc = $doc:literal])* $name:literal : $watch:ty $(,)?) => {
        /// The beacon of this file.
        pub static BEACON: $crate::Beacon = $crate::Beacon {
            name: $name,
            doc: concat!($($doc, "\n"),*),
            validate: <$watch as $crate::Watch>::validate,
            start: || Box::new(<$watch>::default()),
        };
    };
}

/// Returns the beacon of that name.
pub fn beacon(name: &str) -> Option<&'static Beacon> {
    ALL.iter().copied().find(|beacon| beacon.name == name)
}

/// Returns the names of all beacons, sorted.
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|beacon| beacon.name).collect()
}
