//! How many events a minion may send: one that floods the bus must not drown the others.
//!
//! ```yaml
//! halite:
//!   minion_events: {rate: 1000, burst: 20000}   # per second, and at once; rate 0: no limit
//! ```
//!
//! A minion that sends faster is slowed first: its request is answered later, and whoever fires waits
//! for the answer. What comes while it should wait longer than a moment is dropped, counted, and
//! told: in the log once a minute, in `halite doctor`, and by the event
//! `salt/minion/<id>/events_dropped`.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use halite_value::{SmolStr, Value};
use parking_lot::Mutex;

/// The longest a minion is made to wait.
const LONGEST: Duration = Duration::from_secs(2);
/// How often one minion's losses are told.
const TOLD: Duration = Duration::from_secs(60);
/// Minions remembered; those that were quiet for longest go.
const MOST: usize = 20_000;

/// What is allowed, and who used how much of it.
pub(crate) struct Quota {
    /// Events per second; 0: no limit.
    rate: f64,
    burst: f64,
    minions: Mutex<HashMap<SmolStr, Used>>,
}

struct Used {
    /// What is left; negative while more was taken than came in.
    left: f64,
    at: Instant,
    dropped: u64,
    told: Option<Instant>,
}

/// What becomes of a minion's events.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    Now,
    After(Duration),
    /// With the number of those dropped, if it is time to tell.
    Dropped(Option<u64>),
}

impl Quota {
    pub(crate) fn new(option: &Value) -> Self {
        let number = |name: &str| option.get(name).and_then(|value| value.as_float());
        let rate = number("rate").unwrap_or(1000.0).max(0.0);
        let burst = number("burst").unwrap_or(rate * 20.0).max(1.0);
        Self { rate, burst, minions: Mutex::default() }
    }

    pub(crate) fn take(&self, id: &str, events: usize, now: Instant) -> Verdict {
        if self.rate <= 0.0 {
            return Verdict::Now;
        }
        let mut minions = self.minions.lock();
        if minions.len() >= MOST && !minions.contains_key(id) {
            let rate = self.rate;
            let burst = self.burst;
            minions.retain(|_, used| used.left + used.passed(now) * rate < burst);
        }
        let used = minions.entry(id.into()).or_insert_with(|| Used {
            left: self.burst,
            at: now,
            dropped: 0,
            told: None,
        });
        used.left = (used.left + used.passed(now) * self.rate).min(self.burst);
        used.at = now;
        let wanted = events as f64;
        let debt = wanted - used.left;
        let wait = Duration::try_from_secs_f64(debt.max(0.0) / self.rate).unwrap_or(LONGEST * 2);
        if wait > LONGEST {
            used.dropped += events as u64;
            let is_due = used.told.is_none_or(|told| now.duration_since(told) >= TOLD);
            if !is_due {
                return Verdict::Dropped(None);
            }
            used.told = Some(now);
            return Verdict::Dropped(Some(std::mem::take(&mut used.dropped)));
        }
        used.left -= wanted;
        if wait.is_zero() { Verdict::Now } else { Verdict::After(wait) }
    }

    pub(crate) fn rate(&self) -> f64 {
        self.rate
    }
}

impl Used {
    fn passed(&self, now: Instant) -> f64 {
        now.saturating_duration_since(self.at).as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use halite_value::dict;

    use super::*;

    #[test]
    fn a_burst_passes_a_flood_does_not() {
        let quota = Quota::new(&dict! { "rate" => 10, "burst" => 20 });
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        for _ in 0..20 {
            assert_eq!(quota.take("m", 1, at(0)), Verdict::Now);
        }
        assert_eq!(quota.take("m", 1, at(0)), Verdict::After(Duration::from_millis(100)));
        assert_eq!(quota.take("other", 1, at(0)), Verdict::Now, "others have their own");
        for _ in 0..19 {
            assert!(matches!(quota.take("m", 1, at(0)), Verdict::After(_)));
        }
        assert_eq!(quota.take("m", 1, at(0)), Verdict::Dropped(Some(1)));
        assert_eq!(quota.take("m", 3, at(1)), Verdict::Dropped(None), "told a moment ago");
        assert_eq!(quota.take("m", 1, at(10_000)), Verdict::Now, "the debt is paid");
        assert_eq!(quota.take("m", 1000, at(61_000)), Verdict::Dropped(Some(1003)));
        assert_eq!(Quota::new(&dict! { "rate" => 0 }).take("m", 1 << 30, start), Verdict::Now);
    }
}
