//! A rate limiter: a burst at once, then a steady rate.

use tokio::time::{Duration, Instant};

/// A rate: `burst` times at once, then once per `every`; unused capacity recovers at the same rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BurstRate {
    /// The size of the burst.
    pub burst: u32,
    /// The interval in the long run.
    pub every: Duration,
}

/// How much of a rate is used.
#[derive(Debug, Clone, Copy, Default)]
pub struct BurstUsage {
    /// When the whole burst is available again; the only state of the generic cell rate algorithm.
    whole_at: Option<Instant>,
}

impl BurstRate {
    /// This many per second, with this burst.
    pub fn per_second(count: u32, burst: u32) -> Self {
        let every = Duration::from_secs(1) / count.max(1);
        Self { burst, every }
    }

    /// This many per minute, all of which may come at once.
    pub fn per_minute(count: u32) -> Self {
        Self {
            burst: count,
            every: Duration::from_mins(1) / count.max(1),
        }
    }
}

impl BurstUsage {
    /// The time from which one more is within the rate; `now` if it already is.
    pub fn allowed_at(&self, rate: BurstRate, now: Instant) -> Instant {
        let ahead = rate.every * rate.burst.saturating_sub(1);
        let from = self.whole_at.and_then(|at| at.checked_sub(ahead));
        from.map_or(now, |from| from.max(now))
    }

    /// Counts one more.
    pub fn spend(&mut self, rate: BurstRate, now: Instant) {
        let from = self.whole_at.map_or(now, |at| at.max(now));
        self.whole_at = Some(from + rate.every);
    }

    /// Counts one more if it is within the rate; otherwise returns how long to wait. A burst of 0 allows nothing.
    pub fn take(&mut self, rate: BurstRate, now: Instant) -> Result<(), Duration> {
        let wait = self.allowed_at(rate, now) - now;
        if rate.burst == 0 {
            return Err(Duration::MAX);
        }
        if !wait.is_zero() {
            return Err(wait);
        }
        self.spend(rate, now);
        Ok(())
    }

    /// Whether the whole burst is available.
    pub fn is_whole(&self, now: Instant) -> bool {
        self.whole_at.is_none_or(|at| at <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: BurstRate = BurstRate {
        burst: 3,
        every: Duration::from_secs(10),
    };

    #[test]
    fn a_burst_is_free_and_the_rest_is_spread() {
        let start = Instant::now();
        let mut usage = BurstUsage::default();
        for _ in 0..3 {
            assert_eq!(usage.allowed_at(RATE, start), start);
            usage.spend(RATE, start);
        }
        let next = usage.allowed_at(RATE, start);
        assert_eq!(next, start + RATE.every);
        usage.spend(RATE, next);
        assert_eq!(usage.allowed_at(RATE, next), next + RATE.every);
    }

    #[test]
    fn quiet_brings_the_burst_back() {
        let start = Instant::now();
        let mut usage = BurstUsage::default();
        (0..3).for_each(|_| usage.spend(RATE, start));
        assert!(!usage.is_whole(start + 2 * RATE.every));
        let later = start + 3 * RATE.every;
        assert!(usage.is_whole(later));
        (0..3).for_each(|_| {
            assert_eq!(usage.allowed_at(RATE, later), later);
            usage.spend(RATE, later);
        });
        assert!(usage.allowed_at(RATE, later) > later);
    }
}
