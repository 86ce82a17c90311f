//! Unique ids: counted up from a random start, so that random bytes are read from the kernel only once.

use std::sync::atomic::{AtomicU64, Ordering};

use gatewren_base::sys::{RandomError, random_bytes};

/// 32 hexadecimal digits.
pub(super) type HexId = [u8; 32];

/// A generator of ids.
///
/// Fast path without a figure of its own: no id needs a system call.
pub(super) struct IdGenerator {
    beginning: u128,
    given: AtomicU64,
}

impl IdGenerator {
    /// Makes a generator with a random start of 128 bits.
    pub(super) fn new() -> Result<Self, RandomError> {
        Ok(Self {
            beginning: u128::from_be_bytes(random_bytes()?),
            given: AtomicU64::new(0),
        })
    }

    /// Returns the next id.
    pub(super) fn next(&self) -> HexId {
        let given = self.given.fetch_add(1, Ordering::Relaxed);
        let id = self.beginning.wrapping_add(given.into());
        let mut digits = [0; 32];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(id.to_be_bytes()) {
            pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 0xf)]);
        }
        digits
    }
}

fn digit(half: u8) -> u8 {
    match half {
        0..=9 => b'0' + half,
        _ => b'a' - 10 + half,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_is_another_also_of_another_process() {
        let (ours, theirs) = (IdGenerator::new().unwrap(), IdGenerator::new().unwrap());
        let given = [ours.next(), ours.next(), theirs.next(), theirs.next()];
        let distinct: std::collections::HashSet<_> = given.iter().collect();
        assert_eq!(distinct.len(), 4);
        let first = u128::from_str_radix(str::from_utf8(&given[0]).unwrap(), 16);
        assert_eq!(first, Ok(ours.beginning));
    }
}
