//! The phases of a watch: from readings to at most one message each time that its condition begins or ends.

use serde::{Deserialize, Serialize};

/// The maximum number of messages of one watch in [`WINDOW_MS`]. At the limit, messages are held back; the last one says
/// so. After that time, a message follows if the phase still differs from the last message.
const MAX_MESSAGES: usize = 6;

/// The period of that limit.
const WINDOW_MS: u64 = 3_600_000;

/// How long checks must be impossible before the owner is notified of that.
const UNABLE_MS: u64 = 600_000;

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchReading {
    /// The condition holds, with the finding.
    Holds(String),
    /// It does not hold, with the finding.
    Clear(String),
    /// It cannot be checked: why.
    Unknown(String),
    /// It must not be checked now, because its agent lacks the permission: why.
    Stopped(String),
}

/// The phase of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WatchPhase {
    /// The condition does not hold.
    #[default]
    Clear,
    /// It holds, but not for long enough.
    Pending,
    /// It has held for long enough.
    Fired,
}

/// The state of a watch. Times are milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchState {
    /// The phase.
    pub phase: WatchPhase,
    /// When the condition began to hold, or stopped; 0 before the first check.
    pub since_ms: u64,
    /// The last check.
    pub checked_ms: u64,
    /// What the last check found.
    pub seen: String,
    /// Whether the agent lacks the permission, so that nothing is checked.
    pub stopped: bool,
    /// When it last fired.
    pub fired_ms: Option<u64>,
    /// When the condition last ended after that.
    pub recovered_ms: Option<u64>,
    /// Since when it cannot be checked.
    pub unable_ms: Option<u64>,
    /// Whether the last message said that the condition holds.
    announced: bool,
    /// Whether the owner was notified that it cannot be checked.
    unable_announced: bool,
    /// The times of the last messages.
    messages_ms: Vec<u64>,
}

/// A message that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DueMessage {
    /// The condition holds; whether further messages are held back for a while.
    Fired(bool),
    /// It no longer holds; whether further messages are held back for a while.
    Recovered(bool),
    /// It cannot be checked.
    Unable,
}

impl WatchPhase {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Clear => "clear",
            Self::Pending => "pending",
            Self::Fired => "fired",
        }
    }
}

impl WatchState {
    /// Records a reading. Returns the message that is due: one when the condition has held for `for_ms`, one when it
    /// no longer holds.
    pub fn advance(
        &mut self,
        reading: WatchReading,
        for_ms: u64,
        now_ms: u64,
    ) -> Option<DueMessage> {
        self.checked_ms = now_ms;
        self.stopped = matches!(reading, WatchReading::Stopped(_));
        let is_first = self.since_ms == 0;
        match reading {
            WatchReading::Stopped(why) => {
                self.seen = why;
                return None;
            }
            WatchReading::Unknown(why) => {
                self.seen = why;
                return self.announce_unable(for_ms, now_ms);
            }
            WatchReading::Holds(found) => {
                self.seen = found;
                if self.phase == WatchPhase::Clear {
                    (self.phase, self.since_ms) = (WatchPhase::Pending, now_ms);
                }
                let held = now_ms.saturating_sub(self.since_ms);
                if self.phase == WatchPhase::Pending && held >= for_ms {
                    (self.phase, self.fired_ms) = (WatchPhase::Fired, Some(now_ms));
                }
            }
            WatchReading::Clear(found) => {
                self.seen = found;
                if self.phase == WatchPhase::Fired {
                    self.recovered_ms = Some(now_ms);
                }
                if self.phase != WatchPhase::Clear || is_first {
                    (self.phase, self.since_ms) = (WatchPhase::Clear, now_ms);
                }
            }
        }
        (self.unable_ms, self.unable_announced) = (None, false);
        self.announce(now_ms)
    }

    /// Begins after a pause: the time of the pause does not count for a condition that was pending.
    pub fn resume(&mut self, now_ms: u64) {
        if self.phase == WatchPhase::Pending {
            (self.phase, self.since_ms) = (WatchPhase::Clear, now_ms);
        }
    }

    /// Whether anything but the time of the last check differs from `before`, or that time is older than `age_ms`.
    pub fn is_worth_writing(&self, before: &Self, age_ms: u64) -> bool {
        let mut same = before.clone();
        same.checked_ms = self.checked_ms;
        same != *self || self.checked_ms.saturating_sub(before.checked_ms) >= age_ms
    }

    /// How long until a pending watch fires if its condition still holds.
    pub fn fires_in_ms(&self, for_ms: u64, now_ms: u64) -> Option<u64> {
        let due = self.since_ms.saturating_add(for_ms);
        (self.phase == WatchPhase::Pending).then(|| due.saturating_sub(now_ms))
    }

    fn announce(&mut self, now_ms: u64) -> Option<DueMessage> {
        let has_fired = self.phase == WatchPhase::Fired;
        if has_fired == self.announced {
            return None;
        }
        let is_last = self.take_message(now_ms)?;
        self.announced = has_fired;
        Some(if has_fired {
            DueMessage::Fired(is_last)
        } else {
            DueMessage::Recovered(is_last)
        })
    }

    fn announce_unable(&mut self, for_ms: u64, now_ms: u64) -> Option<DueMessage> {
        let since = *self.unable_ms.get_or_insert(now_ms);
        let is_due = now_ms.saturating_sub(since) >= for_ms.max(UNABLE_MS);
        if !is_due || self.unable_announced {
            return None;
        }
        self.take_message(now_ms)?;
        self.unable_announced = true;
        Some(DueMessage::Unable)
    }

    /// Counts a message. Returns whether it is the last one for a while; `None` if the limit is reached.
    fn take_message(&mut self, now_ms: u64) -> Option<bool> {
        self.messages_ms
            .retain(|at| now_ms.saturating_sub(*at) < WINDOW_MS && *at <= now_ms);
        if self.messages_ms.len() >= MAX_MESSAGES {
            return None;
        }
        self.messages_ms.push(now_ms);
        Some(self.messages_ms.len() == MAX_MESSAGES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds() -> WatchReading {
        WatchReading::Holds("down".to_owned())
    }

    fn clear() -> WatchReading {
        WatchReading::Clear("up".to_owned())
    }

    #[test]
    fn a_condition_that_holds_for_long_enough_fires_once_and_recovers_once() {
        let mut state = WatchState::default();
        assert_eq!(state.advance(clear(), 60_000, 1_000), None);
        assert_eq!(state.advance(holds(), 60_000, 10_000), None);
        assert_eq!(state.phase, WatchPhase::Pending);
        assert_eq!(state.fires_in_ms(60_000, 30_000), Some(40_000));
        assert_eq!(state.advance(holds(), 60_000, 69_999), None);
        let due = state.advance(holds(), 60_000, 70_000);
        assert_eq!(due, Some(DueMessage::Fired(false)));
        assert_eq!(state.advance(holds(), 60_000, 80_000), None, "once");
        let due = state.advance(clear(), 60_000, 90_000);
        assert_eq!(due, Some(DueMessage::Recovered(false)));
        assert_eq!(state.advance(clear(), 60_000, 99_000), None, "once");
        assert_eq!(
            (state.fired_ms, state.recovered_ms),
            (Some(70_000), Some(90_000))
        );
    }

    #[test]
    fn a_short_interruption_is_no_message() {
        let mut state = WatchState::default();
        for at in 1..50 {
            let reading = if at % 2 == 0 { holds() } else { clear() };
            assert_eq!(state.advance(reading, 60_000, at * 30_000), None, "{at}");
        }
    }

    #[test]
    fn the_time_of_a_pause_does_not_count() {
        let mut state = WatchState::default();
        state.advance(holds(), 60_000, 1_000);
        state.resume(500_000);
        assert_eq!(state.advance(holds(), 60_000, 510_000), None);
        let due = state.advance(holds(), 60_000, 570_000);
        assert_eq!(due, Some(DueMessage::Fired(false)));
        state.resume(600_000);
        assert_eq!(state.advance(holds(), 60_000, 610_000), None, "announced");
        let due = state.advance(clear(), 60_000, 620_000);
        assert_eq!(due, Some(DueMessage::Recovered(false)));
    }

    #[test]
    fn a_restart_in_the_middle_neither_loses_nor_repeats_a_message() {
        let mut state = WatchState::default();
        state.advance(holds(), 60_000, 1_000);
        let restart = |state: &WatchState| -> WatchState {
            serde_json::from_str(&serde_json::to_string(state).unwrap()).unwrap()
        };
        let mut state = restart(&state);
        let due = state.advance(holds(), 60_000, 70_000);
        assert_eq!(due, Some(DueMessage::Fired(false)));
        let mut state = restart(&state);
        assert_eq!(state.advance(holds(), 60_000, 80_000), None);
    }

    #[test]
    fn a_condition_that_changes_all_the_time_sends_few_messages_and_ends_with_the_truth() {
        let mut state = WatchState::default();
        let (mut count, mut at) = (0, 0);
        for _ in 0..100 {
            for reading in [holds(), clear()] {
                at += 1_000;
                let due = state.advance(reading, 0, at);
                count += usize::from(due.is_some());
                if count == MAX_MESSAGES && due.is_some() {
                    assert_eq!(due, Some(DueMessage::Recovered(true)));
                }
            }
        }
        assert_eq!(count, MAX_MESSAGES);
        assert_eq!(state.advance(holds(), 0, at + 1_000), None, "held back");
        let later = state.advance(holds(), 0, at + WINDOW_MS);
        assert_eq!(later, Some(DueMessage::Fired(false)));
    }

    #[test]
    fn a_check_that_stays_impossible_is_one_message_and_no_change_of_the_phase() {
        let mut state = WatchState::default();
        let unknown = || WatchReading::Unknown("no helper".to_owned());
        state.advance(holds(), 0, 1_000);
        assert_eq!(state.advance(unknown(), 0, 2_000), None);
        let due = state.advance(unknown(), 0, 2_000 + UNABLE_MS);
        assert_eq!(due, Some(DueMessage::Unable));
        assert_eq!(state.advance(unknown(), 0, 3_000 + UNABLE_MS), None);
        assert_eq!(state.phase, WatchPhase::Fired);
        let stopped = WatchReading::Stopped("expired".to_owned());
        assert_eq!(state.advance(stopped, 0, 4_000 + UNABLE_MS), None);
        assert!(state.stopped);
    }
}
