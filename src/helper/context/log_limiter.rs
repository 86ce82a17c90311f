//! Rate limit for log lines that a caller can trigger at will: a few in each period, then only their number.

use gatewren_base::sys::lock;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The most lines in a [`PERIOD`]. Further ones are only counted; the first line of a later period reports the count.
///
/// The journal drops lines of a service that writes too many, and deletes old ones. An attacker who controls the
/// front must not be able to push out the record of what ran by causing many refusals.
const MOST: u32 = 20;

/// The period that [`MOST`] applies to.
const PERIOD: Duration = Duration::from_mins(1);

/// The rate limit for all such lines of one helper.
#[derive(Debug, Default)]
pub struct LogLimiter(Mutex<LogCount>);

#[derive(Debug, Default)]
struct LogCount {
    since: Option<Instant>,
    logged: u32,
    suppressed: u64,
}

impl LogLimiter {
    /// Logs a line if the limit permits it. `say` gets the number of lines dropped since the last one, if there were
    /// any.
    pub fn log(&self, say: impl FnOnce(Option<u64>)) {
        if let Some(suppressed) = self.admit(Instant::now()) {
            say((suppressed > 0).then_some(suppressed));
        }
    }

    fn admit(&self, now: Instant) -> Option<u64> {
        let mut count = lock(&self.0);
        if count.since.is_none_or(|since| now - since >= PERIOD) {
            count.since = Some(now);
            count.logged = 0;
        }
        if count.logged >= MOST {
            count.suppressed += 1;
            return None;
        }
        count.logged += 1;
        Some(std::mem::take(&mut count.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::super::log_limiter::*;

    #[test]
    fn so_many_are_said_and_the_rest_is_counted() {
        let complaints = LogLimiter::default();
        let started_at = Instant::now();
        for _ in 0..MOST {
            assert_eq!(complaints.admit(started_at), Some(0));
        }
        for _ in 0..7 {
            assert_eq!(complaints.admit(started_at + PERIOD / 2), None);
        }
        assert_eq!(complaints.admit(started_at + PERIOD), Some(7));
        assert_eq!(complaints.admit(started_at + PERIOD), Some(0));
    }
}
