//! Signs of life: the watchdog is notified only if every essential part is running.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tokio::sync::watch;

/// The parts that must keep running. Each part records its own beat; the watchdog never does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeartbeatPart {
    /// The loop that accepts connections has completed a round.
    AcceptLoop,
    /// The store has answered a read.
    Store,
    /// A probe call has passed all of dispatch.
    Probe,
}

impl HeartbeatPart {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::AcceptLoop, Self::Store, Self::Probe];

    /// Its name in the log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AcceptLoop => "accept_loop",
            Self::Store => "store",
            Self::Probe => "probe",
        }
    }
}

/// When each part was last alive.
#[derive(Debug)]
pub struct Heartbeat {
    begin: Instant,
    /// For each of [`HeartbeatPart::ALL`], microseconds since `begin`, plus one; zero means never.
    last: [AtomicU64; HeartbeatPart::ALL.len()],
    questions: watch::Sender<()>,
}

impl Heartbeat {
    /// Returns a heartbeat without beats.
    pub fn new() -> Self {
        Self {
            begin: Instant::now(),
            last: Default::default(),
            questions: watch::Sender::new(()),
        }
    }

    /// Asks idle parts for a sign of life.
    pub fn ask(&self) {
        self.questions.send_replace(());
    }

    /// Changes with every request from now on; a part answers it with a beat.
    pub fn questions(&self) -> watch::Receiver<()> {
        self.questions.subscribe()
    }

    /// Records that this part is alive now.
    pub fn beat(&self, beat: HeartbeatPart) {
        if let Some(last) = self.last.get(beat as usize) {
            last.fetch_max(self.micros(Instant::now()) + 1, Ordering::Relaxed);
        }
    }

    /// Returns the parts that have not been alive since then.
    pub fn missing_since(&self, then: Instant) -> impl Iterator<Item = HeartbeatPart> + '_ {
        let then = self.micros(then);
        let alive = move |at: &AtomicU64| at.load(Ordering::Relaxed) > then;
        let parts = HeartbeatPart::ALL.into_iter().zip(&self.last);
        parts
            .filter(move |(_, at)| !alive(at))
            .map(|(beat, _)| beat)
    }

    fn micros(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.begin);
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX - 1)
    }
}

impl Default for Heartbeat {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn one_part_that_stands_still_is_enough() {
        let heart = Heartbeat::new();
        let start = Instant::now();
        let missing = |then| heart.missing_since(then).collect::<Vec<_>>();
        assert_eq!(missing(start), HeartbeatPart::ALL);
        heart.beat(HeartbeatPart::AcceptLoop);
        heart.beat(HeartbeatPart::Probe);
        assert_eq!(missing(start), [HeartbeatPart::Store]);
        assert!(heart.missing_since(start).next().is_some());
        heart.beat(HeartbeatPart::Store);
        assert!(heart.missing_since(start).next().is_none());
        let later = Instant::now() + Duration::from_secs(1);
        assert_eq!(missing(later), HeartbeatPart::ALL);
    }

    #[test]
    fn a_beat_has_the_place_of_its_own_name() {
        for (index, beat) in HeartbeatPart::ALL.into_iter().enumerate() {
            assert_eq!(beat as usize, index, "{}", beat.as_str());
        }
    }
}
