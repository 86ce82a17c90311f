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
    answered: watch::Receiver<u64>,
}

/// One request to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "`seen` waits for it"]
pub struct Nudge(u64);

/// The observer's end of its handles.
#[derive(Debug)]
pub struct Requests {
    asked: watch::Receiver<u64>,
    answered: watch::Sender<u64>,
}

/// A handle and the observer's end of it.
pub fn handle(state: State) -> (ObserverHandle, Requests) {
    let (asked, asked_here) = watch::channel(0);
    let (answered, answered_there) = watch::channel(0);
    let handle = ObserverHandle {
        state,
        asked: Arc::new(asked),
        answered: answered_there,
    };
    (
        handle,
        Requests {
            asked: asked_here,
            answered,
        },
    )
}

impl ObserverHandle {
    /// Has the observer look at everything soon, because something was changed before this call.
    pub fn nudge(&self) -> Nudge {
        let mut number = 0;
        self.asked.send_modify(|asked| {
            *asked += 1;
            number = *asked;
        });
        Nudge(number)
    }

    /// Waits until a look that began after `since` is finished, at most two seconds, and says which
    /// revision the document has then.
    pub async fn seen(&self, since: Nudge) -> u64 {
        let mut answered = self.answered.clone();
        // Late or gone: the caller's call is done all the same, and its answer should not wait.
        let _ = timeout(SEEN_TIME, answered.wait_for(|number| *number >= since.0)).await;
        self.state.document().revision
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
    use std::time::Instant;

    use crate::sys::Scratch;

    use super::*;

    #[tokio::test]
    async fn a_look_that_began_before_the_nudge_does_not_count() {
        let scratch = Scratch::new();
        let state = State::open(&scratch.join("state.db")).unwrap();
        let (handle, mut requests) = handle(state);
        let early = requests.begin();
        let nudge = handle.nudge();
        requests.answer(early);
        let start = Instant::now();
        let waiting = tokio::spawn({
            let handle = handle.clone();
            async move { handle.seen(nudge).await }
        });
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(!waiting.is_finished());
        requests.next().await;
        let begun = requests.begin();
        requests.answer(begun);
        assert_eq!(waiting.await.unwrap(), 0);
        assert!(start.elapsed() < SEEN_TIME);
    }

    #[tokio::test]
    async fn an_observer_that_is_gone_holds_nobody_up() {
        let scratch = Scratch::new();
        let state = State::open(&scratch.join("state.db")).unwrap();
        let (handle, requests) = handle(state);
        drop(requests);
        let start = Instant::now();
        assert_eq!(handle.seen(handle.nudge()).await, 0);
        assert!(start.elapsed() < SEEN_TIME);
    }
}
