//! Repeatable random numbers, from a seed.

use std::time::{SystemTime, UNIX_EPOCH};

/// A pseudo-random number generator (`SplitMix64`).
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// Starts from this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the seed from the environment variable, or one from the clock.
    pub fn seed(variable: &str) -> u64 {
        let named = std::env::var(variable).ok();
        named.map_or_else(
            || {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
                u64::from(now.subsec_nanos())
            },
            |text| text.parse().unwrap(),
        )
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number from 0 to `bound`, exclusive.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound).unwrap()).unwrap()
    }

    pub fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}
