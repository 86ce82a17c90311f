//! Events on their way from what makes them to their connection: a queue that weighs next to nothing while it is empty.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

/// Events wait here for the socket; beyond these, whoever makes them waits.
const QUEUED: usize = 8;

/// The end that events are put into.
#[derive(Clone)]
pub(super) struct Sender(Arc<Mutex<Queue>>);

/// The end that they are taken from.
pub(super) struct Receiver(Arc<Mutex<Queue>>);

#[derive(Default)]
struct Queue {
    events: VecDeque<Bytes>,
    is_closed: bool,
    /// Who takes them, if it waits.
    reader: Option<Waker>,
    /// Who has no room for theirs.
    writers: Vec<Waker>,
}

/// Both ends of a new one.
pub(super) fn queue() -> (Sender, Receiver) {
    let queue = Arc::<Mutex<Queue>>::default();
    (Sender(queue.clone()), Receiver(queue))
}

impl Sender {
    /// Puts one in when there is room; false when nobody takes any more.
    pub(super) async fn send(&self, event: Bytes) -> bool {
        let mut event = Some(event);
        poll_fn(move |cx| self.poll_send(&mut event, cx)).await
    }

    fn poll_send(&self, event: &mut Option<Bytes>, cx: &mut Context<'_>) -> Poll<bool> {
        let mut queue = lock(&self.0);
        if queue.is_closed {
            return Poll::Ready(false);
        }
        if queue.events.len() >= QUEUED {
            let is_known = |writer: &Waker| writer.will_wake(cx.waker());
            if !queue.writers.iter().any(is_known) {
                queue.writers.push(cx.waker().clone());
            }
            return Poll::Pending;
        }
        queue.events.extend(event.take());
        let reader = queue.reader.take();
        drop(queue);
        if let Some(reader) = reader {
            reader.wake();
        }
        Poll::Ready(true)
    }
}

impl Receiver {
    /// The next one, if it is there.
    pub(super) fn take(&mut self) -> Option<Bytes> {
        self.next(None)
    }

    /// The same for who waits for it if it is not there.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Bytes> {
        let event = self.next(Some(cx.waker()));
        event.map_or(Poll::Pending, Poll::Ready)
    }

    fn next(&mut self, waits: Option<&Waker>) -> Option<Bytes> {
        let mut queue = lock(&self.0);
        // Whoever asks is awake.
        queue.reader = None;
        let Some(event) = queue.events.pop_front() else {
            queue.reader = waits.cloned();
            return None;
        };
        let writers = std::mem::take(&mut queue.writers);
        drop(queue);
        writers.into_iter().for_each(Waker::wake);
        Some(event)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let mut queue = lock(&self.0);
        queue.is_closed = true;
        queue.events.clear();
        let writers = std::mem::take(&mut queue.writers);
        drop(queue);
        writers.into_iter().for_each(Waker::wake);
    }
}

fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_has_no_room_waits_and_who_has_no_reader_is_told() {
        let (sender, mut receiver) = queue();
        let writer = tokio::spawn({
            let sender = sender.clone();
            async move {
                for n in 0..100_u8 {
                    assert!(sender.send(Bytes::copy_from_slice(&[n])).await);
                }
            }
        });
        tokio::task::yield_now().await;
        assert_eq!(lock(&receiver.0).events.len(), QUEUED);
        for n in 0..100_u8 {
            assert_eq!(poll_fn(|cx| receiver.poll(cx)).await, [n][..]);
        }
        writer.await.unwrap();
        for _ in 0..QUEUED {
            assert!(sender.send(Bytes::new()).await);
        }
        let waits = tokio::spawn(async move { sender.send(Bytes::new()).await });
        tokio::task::yield_now().await;
        drop(receiver);
        assert!(!waits.await.unwrap());
    }
}
