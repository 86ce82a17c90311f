//! Limits how often events lead to looks: soon after quiet, rarely in a storm.

use std::time::Duration;

use tokio::time::Instant;

/// Events come in groups: a look that waits for the group sees it completely.
const SETTLE: Duration = Duration::from_millis(50);

/// The minimum time between two looks.
const MIN_GAP: Duration = Duration::from_millis(500);

/// The maximum number of looks at that rate.
const BURST: u32 = 8;

/// The interval after such a burst, until the events stop for a while: an hour of storm is 450 looks.
const GAP_IN_STORM: Duration = Duration::from_secs(8);

/// When the next look because of events is due: a leaky bucket that each look fills.
#[derive(Debug, Default)]
pub struct LookThrottle {
    last: Option<Instant>,
    /// When the bucket is empty.
    empty: Option<Instant>,
    due: Option<Instant>,
}

impl LookThrottle {
    /// When to look because of events; while this is set, no further events are needed.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Records an event.
    pub fn hint(&mut self) {
        let settled = Instant::now() + SETTLE;
        let apart = self.last.map(|last| last + MIN_GAP);
        let bucket = GAP_IN_STORM * (BURST - 1);
        let has_room = self.empty.and_then(|empty| empty.checked_sub(bucket));
        let earliest = [apart, has_room]
            .into_iter()
            .flatten()
            .fold(settled, Instant::max);
        self.due.get_or_insert(earliest);
    }

    /// Records that a look begins, for whatever reason.
    pub fn looked(&mut self) {
        if self.due.take().is_some() {
            let now = Instant::now();
            self.last = Some(now);
            let empty = self.empty.map_or(now, |empty| empty.max(now));
            self.empty = Some(empty + GAP_IN_STORM);
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
            sleep_until(pace.due().unwrap()).await;
            pace.looked();
            looks += 1;
        }
        looks
    }

    #[tokio::test(start_paused = true)]
    async fn a_hint_after_quiet_is_followed_at_once() {
        let mut pace = LookThrottle::default();
        for _ in 0..BURST {
            pace.hint();
            let due = pace.due();
            assert_eq!(due, Some(Instant::now() + SETTLE));
            advance(SETTLE / 2).await;
            pace.hint();
            assert_eq!(pace.due(), due, "hints do not put it off");
            advance(SETTLE / 2).await;
            pace.looked();
            assert_eq!(pace.due(), None);
            advance(MIN_GAP).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_storm_leads_to_few_looks_and_is_forgotten() {
        let mut pace = LookThrottle::default();
        let minute = Duration::from_mins(1);
        let first = looks(&mut pace, Duration::from_millis(1), minute).await;
        assert!((BURST..=BURST + 8).contains(&first), "{first}");
        let hour = looks(&mut pace, Duration::from_millis(1), 60 * minute).await;
        assert!((400..=451).contains(&hour), "{hour}");
        advance(GAP_IN_STORM * BURST).await;
        pace.hint();
        assert_eq!(pace.due(), Some(Instant::now() + SETTLE));
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_for_another_reason_does_for_the_hints_too() {
        let mut pace = LookThrottle::default();
        pace.hint();
        pace.looked();
        assert_eq!(pace.due(), None);
    }
}
