//! How soon and how often hints lead to looks: soon after quiet, ever more seldom in a storm.

use std::time::Duration;

use tokio::time::Instant;

/// Hints come in groups: a look that waits for the group sees it whole.
const SETTLE: Duration = Duration::from_millis(50);

/// The least time between two looks, and the most that it grows to while hints keep coming: a storm of any
/// length leads to at most one look in [`MAX_GAP`] after its first seconds.
const MIN_GAP: Duration = Duration::from_millis(500);
const MAX_GAP: Duration = Duration::from_secs(8);

/// When the next look is due because of hints.
#[derive(Debug)]
pub struct Pace {
    gap: Duration,
    last: Option<Instant>,
    due: Option<Instant>,
}

impl Pace {
    /// Nothing is due.
    pub fn new() -> Self {
        Self {
            gap: MIN_GAP,
            last: None,
            due: None,
        }
    }

    /// When to look because of the hints that came; while this is known, no further ones are needed.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// A hint came.
    pub fn hint(&mut self) {
        let now = Instant::now();
        // After a pause as long as the gap itself, the storm is over.
        let quiet = self.last.is_none_or(|last| now >= last + 2 * self.gap);
        self.gap = if quiet {
            MIN_GAP
        } else {
            (2 * self.gap).min(MAX_GAP)
        };
        let earliest = self.last.map_or(now, |last| last + self.gap);
        self.due.get_or_insert(earliest.max(now + SETTLE));
    }

    /// A look begins, for whatever reason.
    pub fn looked(&mut self) {
        if self.due.take().is_some() {
            self.last = Some(Instant::now());
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
    async fn the_first_hint_after_quiet_is_followed_at_once() {
        let mut pace = Pace::new();
        for _ in 0..3 {
            pace.hint();
            assert_eq!(pace.due(), Some(Instant::now() + SETTLE));
            let due = pace.due();
            advance(SETTLE / 2).await;
            pace.hint();
            assert_eq!(pace.due(), due, "hints do not put it off");
            advance(SETTLE / 2).await;
            pace.looked();
            assert_eq!(pace.due(), None);
            advance(2 * MAX_GAP).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_storm_leads_to_few_looks_and_is_forgotten() {
        let mut pace = Pace::new();
        let minute = Duration::from_mins(1);
        let first = looks(&mut pace, Duration::from_millis(1), minute).await;
        assert!((6..=14).contains(&first), "{first}");
        let hour = looks(&mut pace, Duration::from_millis(1), 60 * minute).await;
        assert!(hour <= 460, "{hour}");
        advance(2 * MAX_GAP).await;
        pace.hint();
        assert_eq!(pace.due(), Some(Instant::now() + SETTLE));
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_for_another_reason_does_for_the_hints_too() {
        let mut pace = Pace::new();
        pace.hint();
        pace.looked();
        assert_eq!(pace.due(), None);
    }
}
