//! Counts the work that must end before the server may stop.

use tokio::sync::watch;

/// A unit of work in progress; dropping it marks its end.
pub(super) struct DrainGuard(watch::Sender<usize>);

impl DrainGuard {
    /// Counts a new unit of work.
    pub(super) fn begin(count: &watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count.clone())
    }
}

impl Drop for DrainGuard {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
