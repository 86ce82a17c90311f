//! Turns a reply into the lines of a connection: its notifications, then its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use tokio::sync::mpsc;

use super::in_flight::{CallInFlight, CancelFlag};
use super::keepalive::ProgressKeepAlive;
use super::sessions::session::Session;
use super::stream::PendingReply;
use super::wire::WireMessage;
use crate::dispatch::Listener;
use gatewren_wire::protocol::{Notification, RequestId};

/// A message to the client.
pub struct ClientLine {
    bytes: Vec<u8>,
    of: Option<CancelFlag>,
}

impl ClientLine {
    /// A message that is written unconditionally.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, of: None }
    }

    /// A message that is written unless the request with this flag is cancelled.
    pub fn of(bytes: Vec<u8>, flag: CancelFlag) -> Self {
        let of = Some(flag);
        Self { bytes, of }
    }

    /// Its bytes, without a newline; `None` if the client has cancelled the request that it belongs to, because
    /// then even queued messages must not be sent.
    pub fn into_bytes(self) -> Option<Vec<u8>> {
        let cancelled = self.of.is_some_and(|of| of.is_set());
        (!cancelled).then_some(self.bytes)
    }
}

/// A reply that is being sent to the client.
pub struct ReplyRelay {
    /// The request's entry among those in progress.
    pub held: CallInFlight,
    /// The queue of lines.
    pub lines: mpsc::Sender<ClientLine>,
    /// The keep-alive progress of the call.
    pub keep_alive: ProgressKeepAlive,
    /// Set when the client has closed its input: it waits at most for answers, and some clients fail on other
    /// messages while they close.
    pub leaving: Arc<AtomicBool>,
}

impl ReplyRelay {
    /// Forwards a reply until its end, or until the client cancels it or disconnects.
    pub async fn run<N: WireMessage>(mut self, mut answering: PendingReply<N>) {
        let mark = self.held.mark();
        let line = |bytes| ClientLine::of(bytes, mark.clone());
        let end = loop {
            tokio::select! {
                biased;
                () = self.held.cancelled() => return,
                end = &mut answering.end => break end,
                Some(mut note) = async { answering.notes.as_mut()?.recv().await } => {
                    if self.should_send(&mut note)
                        && self.lines.send(line(note.write())).await.is_err()
                    {
                        return;
                    }
                }
                () = self.keep_alive.wait_until_due() => {
                    if let Some(beat) = self.keep_alive.beat().filter(|_| !self.is_leaving()) {
                        let _ = self.lines.send(line(beat)).await;
                    }
                }
            }
        };
        let Some(end) = end else { return };
        while let Some(mut note) = answering.notes.as_mut().and_then(|n| n.try_recv().ok()) {
            if self.should_send(&mut note) {
                let _ = self.lines.send(line(note.write())).await;
            }
        }
        // A client may use the id again as soon as it has the answer.
        drop(self.held);
        let _ = self.lines.send(line(end.body.into_one())).await;
    }

    fn should_send(&mut self, note: &mut impl WireMessage) -> bool {
        self.keep_alive.should_send(note) && !self.is_leaving()
    }

    /// Whether the client waits at most for answers.
    pub fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Relaxed)
    }
}

/// The notification that precedes the end of a subscription if the server ends it. On a connection that carries
/// everything, no stream closes to signal the end (2026-07-28, cancellation).
pub fn end_notification(id: &RequestId) -> Notification {
    Notification::new(
        "notifications/cancelled",
        json!({ "requestId": id, "reason": "the server ends this subscription" }),
    )
}

/// Sends a session's notifications until the server stops or the client disconnects.
pub async fn forward_events(
    session: Arc<Session>,
    mut listener: Listener,
    lines: mpsc::Sender<ClientLine>,
) {
    while let Some(event) = listener.next().await {
        if !session.wants(&event) {
            continue;
        }
        let line = ClientLine::new(event.to_text().0.into());
        if lines.send(line).await.is_err() {
            return;
        }
    }
}
