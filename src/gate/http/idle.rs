//! Counts the requests and responses in progress on a connection; an idle connection is closed after a time.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Frame, SizeHint};
use tokio::time::{Instant, sleep};

use super::body::{BodyChunk, ResponseBody};

/// How soon a complete response must be received, or the next one begun. HTTP/2 has a window for each response (RFC
/// 9113, 5.2), and a client that never opens it would keep its connection forever.
const TAKEN_WITHIN: Duration = Duration::from_mins(2);

/// Counts the requests and responses in progress on one connection. The timer is re-read when a wait ends, so that
/// no request has to set one.
#[derive(Clone)]
pub(super) struct ActivityCounter(Arc<Counts>);

struct Counts {
    /// Requests that are being answered, and event streams.
    running: AtomicUsize,
    /// Complete responses that are being sent.
    sending: AtomicUsize,
    begun: Instant,
    /// When something ended last, in milliseconds after the connection began.
    ended_ms: AtomicU64,
}

impl ActivityCounter {
    /// Creates a counter with nothing in progress.
    pub(super) fn new() -> Self {
        Self(Arc::new(Counts {
            running: AtomicUsize::new(0),
            sending: AtomicUsize::new(0),
            begun: Instant::now(),
            ended_ms: AtomicU64::new(0),
        }))
    }

    /// Counts a request that is being answered.
    pub(super) fn request(&self) -> ActivityGuard {
        self.0.running.fetch_add(1, Relaxed);
        ActivityGuard {
            open: self.clone(),
            sends: false,
        }
    }

    fn count_end(&self, part: &AtomicUsize) {
        let ms = u64::try_from(self.0.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.0.ended_ms.store(ms, Relaxed);
        part.fetch_sub(1, Relaxed);
    }

    /// Waits until nothing has been in progress for `time`, or complete responses were not received. The result of
    /// `time` may grow during the wait.
    ///
    /// Fast path without a figure of its own: hyper would set a timer for each head, and has none for HTTP/2.
    pub(super) async fn rests(&self, time: impl Fn() -> Duration) {
        loop {
            let at_most = time().max(Duration::from_millis(1));
            let bound = if self.0.running.load(Relaxed) > 0 {
                None
            } else if self.0.sending.load(Relaxed) > 0 {
                Some(TAKEN_WITHIN)
            } else {
                Some(at_most)
            };
            let ended = Duration::from_millis(self.0.ended_ms.load(Relaxed));
            let since = self.0.begun.elapsed().saturating_sub(ended);
            let left = bound.map_or(at_most, |bound| bound.saturating_sub(since));
            if left.is_zero() {
                return;
            }
            // Whatever ends in the meantime restarts the wait, but not before this sleep is over.
            sleep(left.min(at_most)).await;
        }
    }
}

/// Something in progress; it counts until it is dropped.
pub(super) struct ActivityGuard {
    open: ActivityCounter,
    sends: bool,
}

impl ActivityGuard {
    /// Counts the response: an event stream keeps running, a complete body only has to be received.
    pub(super) fn count_response(mut self, body: ResponseBody) -> CountedBody {
        if let ResponseBody::Whole(_) | ResponseBody::Parts(_) = body {
            self.sends = true;
            self.open.0.sending.fetch_add(1, Relaxed);
            self.open.count_end(&self.open.0.running);
        }
        CountedBody { body, _held: self }
    }
}

impl Drop for ActivityGuard {
    fn drop(&mut self) {
        let counts = &self.open.0;
        self.open.count_end(if self.sends {
            &counts.sending
        } else {
            &counts.running
        });
    }
}

/// A body that counts as in progress until it is dropped.
pub(super) struct CountedBody {
    body: ResponseBody,
    _held: ActivityGuard,
}

impl hyper::body::Body for CountedBody {
    type Data = BodyChunk;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<BodyChunk>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    const REST: Duration = Duration::from_secs(10);

    /// The number of seconds until the connection counts as idle, on a clock that only the test advances.
    async fn rested_after(open: &ActivityCounter) -> u64 {
        let begun = Instant::now();
        let bound = timeout(Duration::from_hours(1), open.rests(|| REST)).await;
        bound.map_or(u64::MAX, |()| begun.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_rests_when_nothing_is_under_way() {
        let open = ActivityCounter::new();
        assert_eq!(rested_after(&open).await, 10);
        let running = open.request();
        assert_eq!(rested_after(&open).await, u64::MAX, "a request is answered");
        let sending = running.count_response(ResponseBody::whole("answer"));
        assert_eq!(rested_after(&open).await, 120, "nobody takes the answer");
        drop(sending);
        assert_eq!(rested_after(&open).await, 10);
        let parts = crate::http::json_in_parts(hyper::StatusCode::OK, vec!["answer".into()]);
        let sending = open.request().count_response(parts.into_body());
        assert_eq!(rested_after(&open).await, 120, "nobody takes its parts");
        drop(sending);
        assert_eq!(rested_after(&open).await, 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_of_events_is_under_way_until_it_ends() {
        let open = ActivityCounter::new();
        let events = crate::http::events(|_| std::future::pending());
        let stream = open.request().count_response(events.into_body());
        assert_eq!(rested_after(&open).await, u64::MAX);
        drop(stream);
        assert_eq!(rested_after(&open).await, 10);
    }
}
