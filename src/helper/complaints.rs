//! Keeps the lines that a caller can cause at will from drowning the others: so many in a time, then their number.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Lines in a [`PERIOD`]; of further ones only the number is told, with the first line of a later period.
///
/// The journal drops lines of a service that writes too many, and forgets old ones. Who has the front in hand
/// must not get rid of the line about what was run by having a great deal refused.
const MOST: u32 = 20;

/// What [`MOST`] is counted in.
const PERIOD: Duration = Duration::from_mins(1);

/// All such lines of one helper.
#[derive(Debug, Default)]
pub struct Complaints(Mutex<Count>);

#[derive(Debug, Default)]
struct Count {
    since: Option<Instant>,
    said: u32,
    unsaid: u64,
}

impl Complaints {
    /// Says one if there is room for it; `say` is told how many were left unsaid since the last, if any were.
    pub fn say(&self, say: impl FnOnce(Option<u64>)) {
        if let Some(unsaid) = self.admit(Instant::now()) {
            say((unsaid > 0).then_some(unsaid));
        }
    }

    fn admit(&self, now: Instant) -> Option<u64> {
        let mut count = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if count.since.is_none_or(|since| now - since >= PERIOD) {
            count.since = Some(now);
            count.said = 0;
        }
        if count.said >= MOST {
            count.unsaid += 1;
            return None;
        }
        count.said += 1;
        Some(std::mem::take(&mut count.unsaid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_are_said_and_the_rest_is_counted() {
        let complaints = Complaints::default();
        let begun = Instant::now();
        for _ in 0..MOST {
            assert_eq!(complaints.admit(begun), Some(0));
        }
        for _ in 0..7 {
            assert_eq!(complaints.admit(begun + PERIOD / 2), None);
        }
        assert_eq!(complaints.admit(begun + PERIOD), Some(7));
        assert_eq!(complaints.admit(begun + PERIOD), Some(0));
    }
}
