//! What all fuzz targets share: the clock that stops slow inputs.
//!
//! A target may not panic, and an input of 4 KB may not take longer than 100 ms. The time is the
//! thread's own processor time, so that a busy machine does not fail a good parser; the build is
//! optimised but carries coverage counters, which makes the measure stricter than a release build.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// The longest input the limit speaks of; the runner passes it as `-max_len`.
pub const BYTES: usize = 4096;
const LIMIT: Duration = Duration::from_millis(100);

/// Runs the code under test, and panics when it took too long.
pub fn timed<T>(data: &[u8], run: impl FnOnce() -> T) -> T {
    let before = now();
    let result = run();
    let took = now().saturating_sub(before);
    assert!(
        data.len() > BYTES || took <= LIMIT,
        "TOO SLOW: {} bytes took {} ms of processor time; the limit is {} ms",
        data.len(),
        took.as_millis(),
        LIMIT.as_millis()
    );
    result
}

fn now() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("Linux has this clock").into()
}
