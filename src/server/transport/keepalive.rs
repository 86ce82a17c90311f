//! Keep-alive progress for calls that report none, and the order of the reports of those that do.

use serde_json::Value;
use tokio::time::{Duration, Instant, Interval, MissedTickBehavior, interval_at};

use super::wire::WireMessage;
use gatewren_wire::protocol::Notification;

/// A second on the call's own scale, which is unknown. It is nearly zero, so that all of the call's own reports are
/// larger.
const SECOND: f64 = 1e-6;

/// Keep-alive progress of a call.
pub struct ProgressKeepAlive {
    began: Instant,
    /// The progress token; not used any more after the call's own first report.
    token: Option<Value>,
    beats: Option<Interval>,
    last: f64,
}

impl ProgressKeepAlive {
    /// Creates the progress of a call that starts now; without a token, or if `every` is zero, none is sent.
    pub fn new(token: Option<Value>, every: Duration) -> Self {
        let began = Instant::now();
        let beats = (token.is_some() && !every.is_zero()).then(|| {
            let mut beats = interval_at(began + every, every);
            beats.set_missed_tick_behavior(MissedTickBehavior::Skip);
            beats
        });
        Self {
            began,
            token,
            beats,
            last: f64::NEG_INFINITY,
        }
    }

    /// Creates one that never reports.
    pub fn silent() -> Self {
        Self::new(None, Duration::ZERO)
    }

    /// Waits until the next report is due.
    pub async fn wait_until_due(&mut self) {
        match &mut self.beats {
            Some(beats) => drop(beats.tick().await),
            None => std::future::pending().await,
        }
    }

    /// Returns the report, unless less than a second has passed since the last one.
    pub fn beat(&mut self) -> Option<Vec<u8>> {
        let token = self.token.as_ref()?;
        let seconds = self.began.elapsed().as_secs();
        let progress = f64::from(u32::try_from(seconds).unwrap_or(u32::MAX)) * SECOND;
        if progress <= self.last {
            return None;
        }
        self.last = progress;
        let words = format!("still running after {seconds} s");
        Some(Notification::progress(token, progress, None, Some(&words)).write())
    }

    /// Whether to send a report of the call. Progress increases strictly; a report that would not increase is
    /// dropped. After the call's own first report, no keep-alive is sent.
    pub fn should_send(&mut self, note: &impl WireMessage) -> bool {
        let Some(progress) = note.progress() else {
            return true;
        };
        self.beats = None;
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
    async fn beats_increase_and_leave_room_for_the_calls_own_reports() {
        let mut keep_alive = ProgressKeepAlive::new(Some(json!("t")), Duration::from_secs(2));
        let mut last = 0.0;
        for _ in 0..100 {
            keep_alive.wait_until_due().await;
            let now = progress(&keep_alive.beat().unwrap());
            assert!(now > last);
            last = now;
        }
        assert!(keep_alive.beat().is_none(), "no second has passed");
        assert!(!keep_alive.should_send(&report(0.0)));
        for own in [0.01, 0.02, 1.0] {
            assert!(keep_alive.should_send(&report(own)), "{own}");
            assert!(!keep_alive.should_send(&report(own)), "{own} twice");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_reports_is_not_spoken_for() {
        let none = ProgressKeepAlive::new(None, Duration::from_secs(2));
        let off = ProgressKeepAlive::new(Some(json!("t")), Duration::ZERO);
        let mut own = ProgressKeepAlive::new(Some(json!("t")), Duration::from_secs(2));
        assert!(own.should_send(&report(1.0)));
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
