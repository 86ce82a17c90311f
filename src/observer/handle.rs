//! For whoever has changed something: ask the observer to look, and wait until it has.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use crate::state::State;

/// How long a caller waits for a look; after that it goes on with the revision there is.
const SEEN_TIME: Duration = Duration::from_secs(2);

/// A way to the observer; a clone is a pointer.
#[derive(Debug, Clone)]
pub struct ObserverHandle {
    state: State,
    asked: Arc<watch::Sender<u64>>,
    answered: Arc<[watch::Receiver<u64>]>,
}

/// One request to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "`seen` waits for it"]
pub struct Nudge(u64);

/// One watcher's end of the handle.
#[derive(Debug)]
pub struct Requests {
    asked: watch::Receiver<u64>,
    answered: watch::Sender<u64>,
}

/// The handle while its watchers are being made.
#[derive(Debug, Default)]
pub struct Nudges {
    asked: watch::Sender<u64>,
    answered: Vec<watch::Receiver<u64>>,
}

impl Nudges {
    /// An end for one more watcher, which every request then reaches.
    pub fn requests(&mut self) -> Requests {
        let (answered, answered_there) = watch::channel(0);
        self.answered.push(answered_there);
        Requests {
            asked: self.asked.subscribe(),
            answered,
        }
    }

    /// The handle; it answers with the revision that `state` has then.
    pub fn handle(self, state: State) -> ObserverHandle {
        ObserverHandle {
            state,
            asked: Arc::new(self.asked),
            answered: self.answered.into(),
        }
    }
}

impl ObserverHandle {
    /// Has every watcher look soon, because something was changed before this call.
    pub fn nudge(&self) -> Nudge {
        let mut number = 0;
        self.asked.send_modify(|asked| {
            *asked += 1;
            number = *asked;
        });
        Nudge(number)
    }

    /// Waits until every watcher has finished a look that began after `since`, at most two seconds, and says
    /// which revision the document has then.
    pub async fn seen(&self, since: Nudge) -> u64 {
        // Late: the caller's call is done all the same, and its answer should not wait.
        let _ = timeout(SEEN_TIME, self.looked(since)).await;
        self.state.document().revision
    }

    /// Waits for those looks without a bound.
    pub(super) async fn looked(&self, since: Nudge) {
        for answered in self.answered.iter() {
            // A watcher that is gone will not answer, and nobody waits for it.
            let mut answered = answered.clone();
            let _ = answered.wait_for(|number| *number >= since.0).await;
        }
    }
}

impl Requests {
    /// Waits for the next request; forever if none can come.
    pub async fn next(&mut self) {
        if self.asked.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Which requests a look that begins now answers; give it to [`Self::answer`] when it is finished.
    pub fn begin(&mut self) -> u64 {
        *self.asked.borrow_and_update()
    }

    /// Tells those who wait that their look is finished.
    pub fn answer(&self, begun: u64) {
        self.answered.send_replace(begun);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use crate::sys::Scratch;

    use super::*;

    #[tokio::test]
    async fn a_look_that_began_before_the_nudge_does_not_count() {
        let scratch = Scratch::new();
        let state = State::open(&scratch.join("state.db")).unwrap();
        let mut nudges = Nudges::default();
        let (mut one, mut other) = (nudges.requests(), nudges.requests());
        let handle = nudges.handle(state);
        let early = one.begin();
        let nudge = handle.nudge();
        one.answer(early);
        let begun = other.begin();
        other.answer(begun);
        let mut seen = std::pin::pin!(handle.seen(nudge));
        // Polled once: it still waits for the one.
        tokio::select! {
            biased;
            _ = &mut seen => panic!("an early look counted"),
            () = std::future::ready(()) => {}
        }
        one.next().await;
        let begun = one.begin();
        one.answer(begun);
        assert_eq!(seen.await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_watcher_that_is_gone_holds_nobody_up() {
        let scratch = Scratch::new();
        let state = State::open(&scratch.join("state.db")).unwrap();
        let mut nudges = Nudges::default();
        drop(nudges.requests());
        let handle = nudges.handle(state);
        let start = Instant::now();
        assert_eq!(handle.seen(handle.nudge()).await, 0);
        assert!(start.elapsed() < SEEN_TIME);
    }
}
