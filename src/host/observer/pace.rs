//! Limits how often events lead to looks: soon after quiet, rarely in a storm.

use std::time::Duration;

use tokio::time::Instant;

use gatewren_base::sys::{BurstRate, BurstUsage};

/// Events come in groups: a look that waits for the group sees it completely.
const SETTLE: Duration = Duration::from_millis(50);

/// The minimum time between two looks.
const MIN_GAP: Duration = Duration::from_millis(500);

/// The maximum number of looks at that rate, and the interval after such a burst, until the events stop for a while:
/// an hour of storm is 450 looks.
const STORM: BurstRate = BurstRate {
    burst: 8,
    every: Duration::from_secs(8),
};

/// When the next look because of events is due.
#[derive(Debug, Default)]
pub struct LookThrottle {
    last: Option<Instant>,
    usage: BurstUsage,
    due: Option<Instant>,
}

impl LookThrottle {
    /// When to look because of events; while this is set, no further events are needed.
    pub fn next_look(&self) -> Option<Instant> {
        self.due
    }

    /// Records an event.
    pub fn hint(&mut self) {
        let now = Instant::now();
        let apart = self.last.map_or(now, |last| last + MIN_GAP);
        let allowed = self.usage.allowed_at(STORM, now);
        self.due.get_or_insert(apart.max(allowed).max(now + SETTLE));
    }

    /// Records that a look begins, for whatever reason.
    pub fn begin_look(&mut self) {
        if self.due.take().is_some() {
            let now = Instant::now();
            self.last = Some(now);
            self.usage.spend(STORM, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, sleep, sleep_until};

    use super::*;

    /// Looks as the watcher does while events come every `every` for `long`; returns the number of looks.
    async fn looks(pace: &mut LookThrottle, every: Duration, long: Duration) -> u32 {
        let end = Instant::now() + long;
        let mut looks = 0;
        while Instant::now() < end {
            sleep(every).await;
            pace.hint();
            sleep_until(pace.next_look().unwrap()).await;
            pace.begin_look();
            looks += 1;
        }
        looks
    }

    #[tokio::test(start_paused = true)]
    async fn a_hint_after_quiet_is_followed_at_once() {
        let mut pace = LookThrottle::default();
        for _ in 0..STORM.burst {
            pace.hint();
            let due = pace.next_look();
            assert_eq!(due, Some(Instant::now() + SETTLE));
            advance(SETTLE / 2).await;
            pace.hint();
            assert_eq!(pace.next_look(), due, "hints do not put it off");
            advance(SETTLE / 2).await;
            pace.begin_look();
            assert_eq!(pace.next_look(), None);
            advance(MIN_GAP).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_storm_leads_to_few_looks_and_is_forgotten() {
        let mut pace = LookThrottle::default();
        let minute = Duration::from_mins(1);
        let first = looks(&mut pace, Duration::from_millis(1), minute).await;
        assert!((STORM.burst..=STORM.burst + 8).contains(&first), "{first}");
        let hour = looks(&mut pace, Duration::from_millis(1), 60 * minute).await;
        assert!((400..=451).contains(&hour), "{hour}");
        advance(STORM.every * STORM.burst).await;
        pace.hint();
        assert_eq!(pace.next_look(), Some(Instant::now() + SETTLE));
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_for_another_reason_does_for_the_hints_too() {
        let mut pace = LookThrottle::default();
        pace.hint();
        pace.begin_look();
        assert_eq!(pace.next_look(), None);
    }
}
