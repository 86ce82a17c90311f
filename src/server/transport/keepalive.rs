//! Keep-alive progress for calls that report none, in seconds, and the order of the reports of those that do.

use serde_json::Value;
use tokio::time::{Duration, Instant, Interval, MissedTickBehavior, interval_at};

use super::wire::WireMessage;
use gatewren_wire::protocol::Notification;

/// Keep-alive progress of a call.
pub struct ProgressKeepAlive {
    phase: KeepAlivePhase,
    /// The last progress that was sent.
    last: f64,
}

/// Who reports.
enum KeepAlivePhase {
    /// This does, in seconds.
    Beating {
        began: Instant,
        token: Value,
        beats: Interval,
    },
    /// The call itself, or nobody. The seconds that were reported before it are added to its reports, since progress
    /// must increase.
    Reporting { seconds_before: f64 },
}

impl ProgressKeepAlive {
    /// Creates the progress of a call that starts now; without a token, or if `every` is zero, none is sent.
    pub fn new(token: Option<Value>, every: Duration) -> Self {
        let Some(token) = token.filter(|_| !every.is_zero()) else {
            return Self::silent();
        };
        let began = Instant::now();
        let mut beats = interval_at(began + every, every);
        beats.set_missed_tick_behavior(MissedTickBehavior::Skip);
        Self {
            phase: KeepAlivePhase::Beating {
                began,
                token,
                beats,
            },
            last: f64::NEG_INFINITY,
        }
    }

    /// Creates one that never reports.
    pub fn silent() -> Self {
        Self {
            phase: KeepAlivePhase::Reporting {
                seconds_before: 0.0,
            },
            last: f64::NEG_INFINITY,
        }
    }

    /// Waits until the next report is due.
    pub async fn wait_until_due(&mut self) {
        match &mut self.phase {
            KeepAlivePhase::Beating { beats, .. } => drop(beats.tick().await),
            KeepAlivePhase::Reporting { .. } => std::future::pending().await,
        }
    }

    /// Returns the report, unless less than a second has passed since the last one.
    pub fn beat(&mut self) -> Option<Vec<u8>> {
        let KeepAlivePhase::Beating { began, token, .. } = &self.phase else {
            return None;
        };
        let seconds = began.elapsed().as_secs();
        let progress = f64::from(u32::try_from(seconds).unwrap_or(u32::MAX));
        if progress <= self.last {
            return None;
        }
        self.last = progress;
        let words = format!("still running after {seconds} s");
        Some(Notification::progress(token, progress, None, Some(&words)).write())
    }

    /// Whether to send a report of the call, whose progress and total are raised by the seconds that were reported
    /// before it. Progress increases strictly; a report that would not increase is dropped. After the call's own first
    /// report, no keep-alive is sent.
    pub fn should_send(&mut self, note: &mut impl WireMessage) -> bool {
        let seconds_before = match &self.phase {
            KeepAlivePhase::Beating { .. } => self.last.max(0.0),
            KeepAlivePhase::Reporting { seconds_before } => *seconds_before,
        };
        let Some(progress) = note.raise_progress(seconds_before) else {
            return true;
        };
        self.phase = KeepAlivePhase::Reporting { seconds_before };
        let increases = progress > self.last;
        self.last = self.last.max(progress);
        increases
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report(progress: f64) -> Notification {
        Notification::progress(&json!("t"), progress, None, None)
    }

    fn progress(beat: &[u8]) -> f64 {
        let beat: Value = serde_json::from_slice(beat).unwrap();
        assert_eq!(beat["params"]["progressToken"], "t");
        beat["params"]["progress"].as_f64().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn beats_are_seconds_and_the_calls_own_reports_follow_them() {
        let mut keep_alive = ProgressKeepAlive::new(Some(json!("t")), Duration::from_secs(2));
        for beat in 1..=100 {
            keep_alive.wait_until_due().await;
            let now = progress(&keep_alive.beat().unwrap());
            assert!((now - f64::from(2 * beat)).abs() < 0.1, "{now}");
        }
        assert!(keep_alive.beat().is_none(), "no second has passed");
        assert!(!keep_alive.should_send(&mut report(0.0)));
        for own in [0.01, 0.02, 1.0] {
            let mut sent = Notification::progress(&json!("t"), own, Some(4.0), None);
            assert!(keep_alive.should_send(&mut sent), "{own}");
            assert_eq!(sent.params["progress"], 200.0 + own);
            assert_eq!(sent.params["total"], 204.0);
            assert!(!keep_alive.should_send(&mut report(own)), "{own} twice");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_reports_is_not_spoken_for() {
        let none = ProgressKeepAlive::new(None, Duration::from_secs(2));
        let off = ProgressKeepAlive::new(Some(json!("t")), Duration::ZERO);
        let mut own = ProgressKeepAlive::new(Some(json!("t")), Duration::from_secs(2));
        assert!(own.should_send(&mut report(1.0)));
        for mut keep_alive in [none, off, own] {
            let hour = Duration::from_hours(1);
            assert!(
                tokio::time::timeout(hour, keep_alive.wait_until_due())
                    .await
                    .is_err()
            );
        }
    }
}
