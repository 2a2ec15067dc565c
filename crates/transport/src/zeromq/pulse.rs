//! Heartbeats: PING when it is quiet, and the end of a link on which nothing is heard any more.
//!
//! Our PINGs carry no time-to-live: libzmq would then drop us whenever *we* have nothing to say for that long, and we
//! PING only when nothing was *heard*. The other end has its own heartbeat to find out about us.

use std::time::Duration;

use tokio::time::Instant;

use super::zmtp;
use crate::options::Heartbeat;
use crate::outlet::{Keep, Outlet};
use crate::peer::Ended;

#[derive(Debug)]
pub(crate) struct Pulse {
    heartbeat: Heartbeat,
    pinged: Option<Instant>,
    /// What the peer's PING allows us to wait; zero if it said nothing.
    pub(crate) ttl: Duration,
    /// ZMTP 3.0 peers do not know PING.
    pub(crate) speaks: bool,
}

impl Pulse {
    pub(crate) fn new(heartbeat: Heartbeat) -> Self {
        Self { heartbeat, pinged: None, ttl: Duration::ZERO, speaks: false }
    }

    pub(crate) fn tick(
        &mut self,
        now: Instant,
        heard: Instant,
        outlet: &Outlet,
    ) -> Result<Option<Instant>, Ended> {
        let Heartbeat { interval, timeout } = self.heartbeat;
        let mut next = None;
        if !self.ttl.is_zero() {
            next = Some(alive_until(now, heard, self.ttl)?);
        }
        if self.speaks && !interval.is_zero() {
            let dead = alive_until(now, heard, timeout.max(interval))?;
            let quiet_since = self.pinged.map_or(heard, |pinged| pinged.max(heard));
            let mut due = quiet_since + interval;
            if now >= due {
                outlet.send(&[zmtp::ping(Duration::ZERO)], Keep::Always);
                self.pinged = Some(now);
                due = now + interval;
            }
            next = Some(next.map_or(due.min(dead), |next: Instant| next.min(due).min(dead)));
        }
        Ok(next)
    }
}

fn alive_until(now: Instant, heard: Instant, most: Duration) -> Result<Instant, Ended> {
    let end = heard + most;
    if now >= end { Err(Ended::Silent(most)) } else { Ok(end) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn pings_when_quiet_and_gives_up_after_the_timeout() {
        let seconds = Duration::from_secs;
        let heartbeat = Heartbeat { interval: seconds(10), timeout: seconds(30) };
        let mut pulse = Pulse::new(heartbeat);
        let outlet = Outlet::new(None, 1000);
        let start = Instant::now();
        assert_eq!(pulse.tick(start, start, &outlet), Ok(None), "a 3.0 peer is left alone");
        pulse.speaks = true;
        assert_eq!(pulse.tick(start, start, &outlet), Ok(Some(start + seconds(10))));
        assert!(!outlet.has_pending());
        let at = |s| start + seconds(s);
        assert_eq!(pulse.tick(at(10), start, &outlet), Ok(Some(at(20))));
        assert_eq!(outlet.pop(), Some(vec![zmtp::ping(Duration::ZERO)]));
        assert_eq!(pulse.tick(at(20), start, &outlet), Ok(Some(at(30))));
        assert_eq!(pulse.tick(at(30), start, &outlet), Err(Ended::Silent(seconds(30))));
        assert_eq!(pulse.tick(at(30), at(29), &outlet), Ok(Some(at(39))));
    }

    #[tokio::test]
    async fn the_peers_time_to_live_counts_even_without_our_own_heartbeat() {
        let off = Heartbeat { interval: Duration::ZERO, timeout: Duration::ZERO };
        let mut pulse = Pulse::new(off);
        (pulse.speaks, pulse.ttl) = (true, Duration::from_secs(3));
        let outlet = Outlet::new(None, 1000);
        let start = Instant::now();
        let end = start + Duration::from_secs(3);
        assert_eq!(pulse.tick(start, start, &outlet), Ok(Some(end)));
        assert_eq!(pulse.tick(end, start, &outlet), Err(Ended::Silent(Duration::from_secs(3))));
    }
}
