//! Counts what has to end before the server may.

use tokio::sync::watch;

/// Something under way; dropping it says that it has ended.
pub(super) struct UnderWay(watch::Sender<usize>);

impl UnderWay {
    /// Something begins.
    pub(super) fn begin(count: &watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
