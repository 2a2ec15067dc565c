//! The token by which a job is told to end.
//!
//! Cancelling sets a flag and wakes whoever waits: sleepers and those who wait for a child poll
//! the token's descriptor along with what they wait for. The descriptor is made when somebody
//! first waits, so that a token costs nothing for a job that never does.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::eventfd::{EfdFlags, EventFd},
};

/// Ends a job: clones share the state, and once set it stays set.
#[derive(Clone, Default)]
pub struct Cancel(Arc<Inner>);

#[derive(Default)]
struct Inner {
    flag: AtomicBool,
    bell: OnceLock<EventFd>,
}

impl Cancel {
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells the job to end. Its children are killed, its sleeps return.
    pub fn cancel(&self) {
        self.0.flag.store(true, Ordering::SeqCst);
        if let Some(bell) = self.0.bell.get() {
            // Never read, so it cannot overflow or block more than once.
            let _ = bell.write(1);
        }
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.flag.load(Ordering::SeqCst)
    }

    /// Waits until the time is over (`false`) or the token is cancelled (`true`).
    pub fn wait(&self, time: Duration) -> io::Result<bool> {
        let deadline = Instant::now() + time;
        let bell = self.bell()?;
        loop {
            if self.is_cancelled() {
                return Ok(true);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            match poll(&mut [PollFd::new(bell, PollFlags::POLLIN)], poll_timeout(left)) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns the descriptor that becomes readable on cancellation. Ask [`Self::is_cancelled`]
    /// after this call: a token cancelled before has never rung the bell.
    pub(crate) fn bell(&self) -> io::Result<BorrowedFd<'_>> {
        if self.0.bell.get().is_none() {
            let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
            // Lost to another thread: theirs is as good.
            let _ = self.0.bell.set(EventFd::from_value_and_flags(0, flags)?);
        }
        Ok(self.0.bell.get().expect("set above").as_fd())
    }
}

/// Rounds up: a poll that returns a moment early would spin.
pub(crate) fn poll_timeout(left: Duration) -> PollTimeout {
    let millis = left.as_micros().div_ceil(1000);
    PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wakes_a_sleeper() {
        let token = Cancel::new();
        let other = token.clone();
        let started = Instant::now();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(30));
            other.cancel();
        });
        assert!(token.wait(Duration::from_secs(60)).unwrap());
        assert!(started.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn cancelled_before_the_wait() {
        let token = Cancel::new();
        token.cancel();
        assert!(token.wait(Duration::from_secs(60)).unwrap());
    }

    #[test]
    fn time_runs_out() {
        let started = Instant::now();
        assert!(!Cancel::new().wait(Duration::from_millis(20)).unwrap());
        assert!(started.elapsed() >= Duration::from_millis(20));
    }
}
