//! A small generator (SplitMix64) for jitter and for the simulated network. Not for secrets.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a generator that differs from process to process and from call to call.
    pub(crate) fn from_entropy() -> Self {
        // RandomState draws its keys from the operating system and counts them up.
        Self(RandomState::new().build_hasher().finish())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `bound`; 0 for 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        // The bias of the high product is far below anything that matters here.
        u64::try_from((u128::from(self.next()) * u128::from(bound)) >> 64).unwrap_or(0)
    }

    /// Tells yes with the given probability.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        (self.next() >> 11) as f64 / ((1_u64 << 53) as f64) < probability
    }

    pub(crate) fn between(&mut self, low: Duration, high: Duration) -> Duration {
        let span = u64::try_from(high.saturating_sub(low).as_nanos()).unwrap_or(u64::MAX);
        low + Duration::from_nanos(self.below(span.saturating_add(1)))
    }
}
