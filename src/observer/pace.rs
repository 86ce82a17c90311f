//! How soon and how often hints lead to looks: soon after quiet, seldom in a storm.

use std::time::Duration;

use tokio::time::Instant;

/// Hints come in groups: a look that waits for the group sees it whole.
const SETTLE: Duration = Duration::from_millis(50);

/// The least time between two looks.
const MIN_GAP: Duration = Duration::from_millis(500);

/// So many looks may follow each other as closely as that.
const BURST: u32 = 8;

/// Then they are as far apart as this, until hints stop for a while: an hour of storm is 450 looks.
const GAP_IN_STORM: Duration = Duration::from_secs(8);

/// When the next look is due because of hints: a bucket that a look fills and that empties with time.
#[derive(Debug, Default)]
pub struct Pace {
    last: Option<Instant>,
    /// When the bucket is empty.
    empty: Option<Instant>,
    due: Option<Instant>,
}

impl Pace {
    /// When to look because of the hints that came; while this is known, no further ones are needed.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// A hint came.
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

    /// A look begins, for whatever reason.
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

    /// Looks as the watcher does while hints come every `every` for `long`; how many looks there were.
    async fn looks(pace: &mut Pace, every: Duration, long: Duration) -> u32 {
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
        let mut pace = Pace::default();
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
        let mut pace = Pace::default();
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
        let mut pace = Pace::default();
        pace.hint();
        pace.looked();
        assert_eq!(pace.due(), None);
    }
}
