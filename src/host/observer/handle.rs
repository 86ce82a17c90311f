//! The handle to the observer: callers request a look after a change, and wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use gatewren_store::state::State;

use super::causes::{Cause, Causes};

/// The maximum wait of a caller for a look; after it the call is answered without a revision.
const SEEN_TIME: Duration = Duration::from_secs(2);

/// A handle to the observer; cloning is cheap.
#[derive(Debug, Clone)]
pub struct ObserverHandle {
    state: State,
    asked: Arc<watch::Sender<u64>>,
    answered: Arc<[watch::Receiver<u64>]>,
    causes: Causes,
    /// Whether the watchers wait for another front to end, which watches meanwhile.
    is_waiting: Arc<AtomicBool>,
}

/// A call that changes the host, from before the change until the state shows it.
#[derive(Debug)]
pub struct PendingChange {
    handle: ObserverHandle,
    _cause: Cause,
}

/// A request to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "`wait_for_looks` waits for it"]
pub struct LookRequest(u64);

/// One watcher's end of the handle.
#[derive(Debug)]
pub struct LookRequests {
    asked: watch::Receiver<u64>,
    answered: watch::Sender<u64>,
}

/// The handle under construction, while its watchers are created.
#[derive(Debug, Default)]
pub struct ObserverHandleBuilder {
    asked: watch::Sender<u64>,
    answered: Vec<watch::Receiver<u64>>,
    causes: Causes,
}

impl ObserverHandleBuilder {
    /// Adds a watcher, and returns its end; every request reaches it.
    pub fn requests(&mut self) -> LookRequests {
        let (answered, answered_there) = watch::channel(0);
        self.answered.push(answered_there);
        LookRequests {
            asked: self.asked.subscribe(),
            answered,
        }
    }

    /// The calls to which the watchers attribute changes.
    pub fn causes(&self) -> Causes {
        self.causes.clone()
    }

    /// Returns the handle; it reports revisions of `state`.
    pub fn handle(self, state: State) -> ObserverHandle {
        ObserverHandle {
            state,
            asked: Arc::new(self.asked),
            answered: self.answered.into(),
            causes: self.causes,
            is_waiting: Arc::default(),
        }
    }
}

impl ObserverHandle {
    /// Records that the call with this audit id begins to change the host. While it is the only one, observed
    /// changes are attributed to it.
    pub fn begin(&self, audit_id: &str) -> PendingChange {
        PendingChange {
            handle: self.clone(),
            _cause: self.causes.begin(audit_id),
        }
    }

    /// Sets whether the watchers wait. Meanwhile no caller waits for their looks.
    pub fn set_waiting(&self, is_waiting: bool) {
        self.is_waiting.store(is_waiting, Ordering::Relaxed);
    }

    /// Requests a look from every watcher, because something was changed before this call.
    pub fn nudge(&self) -> LookRequest {
        let mut number = 0;
        self.asked.send_modify(|asked| {
            *asked += 1;
            number = *asked;
        });
        LookRequest(number)
    }

    /// Waits, without a timeout, until every watcher has finished a look that began after `since`.
    pub(super) async fn wait_for_looks(&self, since: LookRequest) {
        for answered in self.answered.iter() {
            // A watcher that has ended never answers, so it is not waited for.
            let mut answered = answered.clone();
            let _ = answered.wait_for(|number| *number >= since.0).await;
        }
    }
}

impl PendingChange {
    /// Ends the call: waits until every watcher has finished a look that began after now, and returns the
    /// document's revision. Returns `None` after two seconds: the call has succeeded and should not wait longer,
    /// but no revision is known to reflect it. The same at once, while the watchers of another front look.
    pub async fn wait_for_revision(self) -> Option<u64> {
        if self.handle.is_waiting.load(Ordering::Relaxed) {
            return None;
        }
        let looked = self.handle.wait_for_looks(self.handle.nudge());
        timeout(SEEN_TIME, looked).await.ok()?;
        Some(self.handle.state.document().revision)
    }
}

impl LookRequests {
    /// Waits for the next request; forever if none can come.
    pub async fn next(&mut self) {
        if self.asked.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Returns the requests that a look beginning now answers; pass it to [`Self::answer`] when the look is
    /// finished.
    pub fn begin(&mut self) -> u64 {
        *self.asked.borrow_and_update()
    }

    /// Notifies the callers that their look is finished.
    pub fn answer(&self, begun: u64) {
        self.answered.send_replace(begun);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use gatewren_base::sys::Scratch;

    use super::*;

    #[tokio::test]
    async fn a_look_that_began_before_the_nudge_does_not_count() {
        let scratch = Scratch::new();
        let state = State::open(&scratch.join("state.db")).unwrap();
        let mut nudges = ObserverHandleBuilder::default();
        let (mut one, mut other) = (nudges.requests(), nudges.requests());
        let handle = nudges.handle(state);
        let early = one.begin();
        let nudge = handle.nudge();
        one.answer(early);
        let begun = other.begin();
        other.answer(begun);
        let mut looked = std::pin::pin!(handle.wait_for_looks(nudge));
        // Polled once: one watcher has not answered yet.
        tokio::select! {
            biased;
            () = &mut looked => panic!("an early look counted"),
            () = std::future::ready(()) => {}
        }
        one.next().await;
        let begun = one.begin();
        one.answer(begun);
        looked.await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_watcher_that_is_gone_holds_nobody_up() {
        let scratch = Scratch::new();
        let state = State::open(&scratch.join("state.db")).unwrap();
        let mut nudges = ObserverHandleBuilder::default();
        drop(nudges.requests());
        let handle = nudges.handle(state);
        let start = Instant::now();
        assert_eq!(handle.begin("a1").wait_for_revision().await, Some(0));
        assert!(start.elapsed() < SEEN_TIME);
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_that_comes_too_late_leaves_the_answer_without_a_revision() {
        let scratch = Scratch::new();
        let state = State::open(&scratch.join("state.db")).unwrap();
        let mut nudges = ObserverHandleBuilder::default();
        let (_late, causes) = (nudges.requests(), nudges.causes());
        let handle = nudges.handle(state);
        let pending = handle.begin("a1");
        assert_eq!(causes.only().as_deref(), Some("a1"));
        assert_eq!(pending.wait_for_revision().await, None);
        assert_eq!(causes.only(), None);
    }
}
