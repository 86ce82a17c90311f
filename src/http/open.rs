//! What an HTTP/2 connection has under way: one that has nothing for too long is ended.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Frame, SizeHint};
use tokio::sync::watch;
use tokio::time::timeout;

use super::body::{Body, Piece};

/// An answer that is whole must be taken so soon, or the next one begun: HTTP/2 has a window for each answer
/// (RFC 9113, 5.2), and a client that never opens it would keep its connection for ever.
const TAKEN_WITHIN: Duration = Duration::from_mins(2);

/// Counts what is under way on one connection.
#[derive(Clone)]
pub(super) struct Open(watch::Sender<Count>);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Count {
    /// Requests that are being answered, and streams of events.
    running: usize,
    /// Whole answers that are on their way.
    sending: usize,
}

impl Open {
    /// Nothing yet.
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(Count::default()))
    }

    /// A request that is being answered.
    pub(super) fn request(&self) -> Held {
        self.0.send_modify(|count| count.running += 1);
        Held {
            open: self.clone(),
            sends: false,
        }
    }

    /// Waits until nothing has been under way for so long, or whole answers were not taken.
    pub(super) async fn rests(&self, at_most: Duration) {
        let mut changes = self.0.subscribe();
        loop {
            let count = *changes.borrow_and_update();
            let bound = match count {
                Count { running: 1.., .. } => Duration::MAX,
                Count { sending: 1.., .. } => TAKEN_WITHIN,
                _ => at_most,
            };
            // This holds the sender itself, so only the time can end the wait otherwise.
            if timeout(bound, changes.changed()).await.is_err() {
                return;
            }
        }
    }
}

/// Something under way, until it is dropped.
pub(super) struct Held {
    open: Open,
    sends: bool,
}

impl Held {
    /// The same for the answer: a stream of events runs on, a whole body is only to be taken.
    pub(super) fn answered(mut self, body: Body) -> Counted {
        if let Body::Whole(_) = body {
            self.sends = true;
            self.open.0.send_modify(|count| {
                count.running -= 1;
                count.sending += 1;
            });
        }
        Counted { body, _held: self }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.open.0.send_modify(|count| {
            let part = if self.sends {
                &mut count.sending
            } else {
                &mut count.running
            };
            *part -= 1;
        });
    }
}

/// A body that counts as under way until it is dropped.
pub(super) struct Counted {
    body: Body,
    _held: Held,
}

impl hyper::body::Body for Counted {
    type Data = Piece;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece>, Infallible>>> {
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
    use super::*;

    const REST: Duration = Duration::from_secs(10);

    /// After how many seconds of a clock that only the test moves it counts as resting.
    async fn rested_after(open: &Open) -> u64 {
        let begun = tokio::time::Instant::now();
        let bound = timeout(Duration::from_hours(1), open.rests(REST)).await;
        bound.map_or(u64::MAX, |()| begun.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_rests_when_nothing_is_under_way() {
        let open = Open::new();
        assert_eq!(rested_after(&open).await, 10);
        let running = open.request();
        assert_eq!(rested_after(&open).await, u64::MAX, "a request is answered");
        let sending = running.answered(Body::whole("answer"));
        assert_eq!(rested_after(&open).await, 120, "nobody takes the answer");
        drop(sending);
        assert_eq!(rested_after(&open).await, 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_of_events_is_under_way_until_it_ends() {
        let open = Open::new();
        let events = crate::http::events(|_| std::future::pending());
        let stream = open.request().answered(events.into_body());
        assert_eq!(rested_after(&open).await, u64::MAX);
        drop(stream);
        assert_eq!(rested_after(&open).await, 10);
    }
}
