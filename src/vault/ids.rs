//! Ids that no other row has: counted on from a random beginning, so that the kernel is asked once.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::sys::{RandomError, random_bytes};

/// Gives ids.
pub(super) struct Ids {
    beginning: u128,
    given: AtomicU64,
}

impl Ids {
    /// Ids from a beginning that no other process has.
    pub(super) fn new() -> Result<Self, RandomError> {
        Ok(Self {
            beginning: u128::from_be_bytes(random_bytes()?),
            given: AtomicU64::new(0),
        })
    }

    /// The next id: 32 hexadecimal digits.
    pub(super) fn next(&self) -> String {
        let given = self.given.fetch_add(1, Ordering::Relaxed);
        format!("{:032x}", self.beginning.wrapping_add(given.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_is_another_also_of_another_process() {
        let (ours, theirs) = (Ids::new().unwrap(), Ids::new().unwrap());
        let given = [ours.next(), ours.next(), theirs.next(), theirs.next()];
        let distinct: std::collections::HashSet<_> = given.iter().collect();
        assert_eq!(distinct.len(), 4);
        assert!(given.iter().all(|id| id.len() == 32));
    }
}
